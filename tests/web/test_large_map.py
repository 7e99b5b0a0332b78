"""A map of a million points; tests/web/web_large_map.py measures larger ones, and processor times, which no check reads, over longer."""
import web_large_map


def test_large_map(bin_dir, browser, capsys):
    count, row = web_large_map.measure(bin_dir, browser, 1_000_000, drag_s=2, pictures=1)
    with capsys.disabled():
        print("\n" + web_large_map.table(count, row))
    assert 0.7e6 < count < 1.4e6
    assert row["all"]["nodes"] > 20 and row["end"]["bytes"] < 9 * count
