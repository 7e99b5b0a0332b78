"""ndt-fleet report: planted places, drives and differences are found, others are not; the page holds in a browser."""
import os
import resource
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from fleet_folders import Planted, straight, write_fleet  # noqa: E402
from ndtd import ndt_fleet  # noqa: E402
from ndtd.fleet import scan_table  # noqa: E402
from ndtd.fleet.run_folder import FleetError  # noqa: E402
from ndtd.report import bag_records, fleet_comparison, fleet_page, fleet_places, fleet_totals  # noqa: E402
from ndtd.report.fleet_reading import Block, FleetRun  # noqa: E402
from ndtd.report.fleet_results import FleetResults  # noqa: E402
from report_folders import DESKTOP, PHONE, check_page  # noqa: E402


def report(run, tmp_path, against=None, **options):
    return fleet_page.write(run, against, out=tmp_path / "page.html", **options)


def results(run, against=None, **options):
    return FleetResults(run, against, **options)


def centre(place):
    return (place.low_m + place.high_m) / 2


# ---- places


def test_a_hole_of_the_map_is_the_place_to_survey_again_and_a_broken_sensor_is_not(simulate, run_program, tmp_path):
    """Five drives through a city's map with a hole: that place and no other. A sixth one sees next to nothing: a bad drive."""
    options = ("--seed", 4, "--scans", 75, "--rate", 5, "--beams", 16, "--columns", 400, "--range", 20, "--map-spacing", 0.3, "--odometry")
    drives = [simulate(*options, "--noise", 0.01 + 0.003 * at) for at in range(5)]
    drives.append(simulate(*options, "--noise", 1.0, "--dropout", 0.95))
    _, truth = bag_records.truth(drives[0].bag)
    middle, half = truth[len(truth) // 2, :2], 15.0
    world = _without(drives[0].map, middle, half, tmp_path / "map.pcd")
    rows = [_replay(run_program, drive.bag, world, f"bags/drive-{at}.bag", tmp_path) for at, drive in enumerate(drives)]
    found = report(write_fleet(tmp_path / "run", rows, map_url=world), tmp_path)
    edge = found.results.grid.edge_m
    assert len(found.results.places) == 1 and found.results.unsure == []
    place = found.results.places[0]
    assert (place.low_m < middle + half + edge).all() and (place.high_m > middle - half - edge).all(), "it touches the hole"
    assert np.abs(centre(place) - middle).max() < half + edge
    assert (place.bad, place.passed) == (5, 5) and place.outcomes.most_common(1)[0][0] in ("low_score", "degenerate")
    bad = fleet_totals.worst_drives(found.results.run, found.results.totals, found.results.main.rows, 3)[0]
    assert found.results.run.texts["bag"][bad.row] == "bags/drive-5.bag" and bad.why.startswith("never a trusted pose")
    assert "1 place of the map should be surveyed again: x" in found.sentence and found.survey.map_note == ""
    assert " 1 drive never located: is it of this map?" in found.sentence
    text = (tmp_path / "page.html").read_text()
    assert "drive-5.bag" in text and "5 of 5" in text and "never a trusted pose" in text


def _without(source, middle, half, target):
    """The map as a new file without the points of a box."""
    from ndtd.maps.point_files import find_files

    points = np.concatenate([block.points for one in find_files([source]) for block in one.blocks()])[:, :3]
    points = points[(np.abs(points[:, :2] - middle) > half).any(axis=1)].astype(np.float32)
    head = ("# .PCD v0.7\nVERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
            f"WIDTH {len(points)}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {len(points)}\nDATA binary\n")
    target.write_bytes(head.encode() + points.tobytes())
    return target


def _replay(run_program, bag, world, name, folder):
    results = folder / "results.jsonl"
    run_program("ndtd", "--replay", bag, "--map", world, "--set", "preprocess.deskew=time", "--threads", 1, "--results", results)
    table = scan_table.read_results(results, name, "base", bag_records.truth(bag))
    names = {"status": "done", "bag": name, "bag_hash": name, "config": "base", "trajectory_hash": name}
    return table, {**scan_table.measures(table), **names, "replay_s": 1.0}


def test_one_drives_bad_day_is_no_place(tmp_path):
    """Ten drives on one street; one is low here, one low nearly everywhere; two are low at 60 m, which is no quarter of ten."""
    lost = {0: range(20, 40), 1: [at for at in range(5, 200) if at % 10], 2: range(60, 75), 3: range(60, 75)}
    drives = [Planted(f"{at}.bag", straight(200), np.full(200, 0.01), lost.get(at, ())) for at in range(10)]
    found = report(write_fleet(tmp_path / "run", drives), tmp_path)
    seen = found.results
    assert seen.places == [] and seen.unsure == [] and seen.grid.bad_drives == 1 and seen.grid.leaves_out
    assert "1.bag" in seen.run.texts["bag"][fleet_totals.worst_drives(seen.run, seen.totals, seen.main.rows, 1)[0].row]
    assert "nothing has to be surveyed again" in found.html() and "1 drive that is low at most places is left out" in found.html()


def test_places_count_drives_once_and_are_ranked(tmp_path):
    """The place that five of five drives tell comes before that of three of four; what one of one tells may be chance."""
    first = [Planted(f"a{at}.bag", straight(300), np.full(300, 0.01), range(50, 60)) for at in range(5)]
    second = [Planted(f"b{at}.bag", straight(100, y=500.0), np.full(100, 0.02), range(30, 40) if at < 3 else ()) for at in range(4)]
    alone = [Planted("c.bag", straight(100, y=900.0), np.full(100, 0.02), range(30, 40))]
    found = report(write_fleet(tmp_path / "run", first + second + alone), tmp_path)
    assert [(place.bad, place.passed) for place in found.results.places] == [(5, 5), (3, 4)]
    assert [(place.bad, place.passed) for place in found.results.unsure] == [(1, 1)]
    np.testing.assert_allclose(centre(found.results.places[0]), [55, 0], atol=10)
    np.testing.assert_allclose(centre(found.results.places[1]), [35, 500], atol=10)
    assert found.results.places[0].reasons.most_common(1)[0][0].startswith("score \N{HORIZONTAL ELLIPSIS} is below")
    assert "1 more place where drives were low, but so few passed that it may be chance" in found.html()


def test_what_chance_brings_together_is_no_place(tmp_path):
    """Sixty drives on twelve streets that are lost twelve times each, anywhere: where some of them meet is no place."""
    named = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        drives = []
        for at in range(60):
            lost = {int(begin) + step for begin in rng.integers(5, 590, 12) for step in range(6)}
            drives.append(Planted(f"{at}.bag", straight(600, y=40.0 * (at % 12)), np.full(600, 0.01), sorted(lost)))
        found = results(write_fleet(tmp_path / f"run{seed}", drives, per_file=60))
        assert len(found.unsure) > 5
        named += found.places
    assert len(named) <= 1, "5 % of the runs name one"


def test_chances_of_binomials():
    assert fleet_places.tail(5, 0, 0.1) == 1.0 and fleet_places.tail(2, 3, 0.1) == 0.0
    assert fleet_places.tail(1, 1, 0.1) == pytest.approx(0.1) and fleet_places.tail(3, 2, 0.5) == pytest.approx(0.5)
    assert fleet_places.tail(100_000, 1100, 0.01) == pytest.approx(0.0009117803, rel=1e-6), "3.1 deviations"


def test_scans_without_a_pose_lie_where_the_drive_was():
    """Between trusted poses; at the last one as long as that is fresh; nowhere before the first one, and long after."""
    values = {"trusted": np.array([0, 1, 0, 0, 1, 0, 0, 1, 0], bool), "x": np.array([0, 10, 0, 0, 16, 0, 0, 90, 0.0]),
              "stamp_ns": np.array([0, 1, 2, 3, 4, 5, 30, 31, 0]) * 10**9, "drive": np.zeros(9, np.int64)}
    values["y"] = values["z"] = np.zeros(9)
    where = fleet_places.positions(Block(np.array([0, 1]), np.array([0, 8]), values), np.zeros(9, bool))[:, 0]
    np.testing.assert_allclose(where, [np.nan, 10, 12, 14, 16, 16, np.nan, 90, np.nan])


def test_merged_scans_are_not_lost(tmp_path):
    """A scan that is part of another one has no pose of its own, and needs none."""
    drives = [Planted(f"{at}.bag", straight(60), np.full(60, 0.01), (7, 9), merged=range(1, 60, 2)[5:]) for at in range(3)]
    found = results(write_fleet(tmp_path / "run", drives))
    assert (found.main.scans, found.main.matched, found.main.untrusted) == (180, 105, 6) and found.grid.counts[:, :, 0].sum() == 105


def test_no_truth_is_told_and_nothing_is_invented(tmp_path):
    drives = [Planted(f"{at}.bag", straight(60), confidence=0.9 + 0.002 * at) for at in range(12)]
    found = report(write_fleet(tmp_path / "run", drives), tmp_path)
    assert "no ground truth" in found.sentence and "There is no ground truth: errors are not known" in found.html()
    assert "error, median" not in found.html() and "confidence, median" in found.html()
    assert fleet_page.write(tmp_path / "run", out=tmp_path / "again.html").html() == found.html(), "equal input, equal page"


# ---- two runs


def fleet_of(rng, count, scale=1.0, extra_lost=0, seed_noise=None):
    """Drives whose hardness differs; scale: of all errors."""
    hard = np.random.default_rng(3).lognormal(0, 0.5, count)
    drives = []
    for at in range(count):
        error = np.abs(rng.normal(0, 0.02 * hard[at], 60)) * scale
        drives.append(Planted(f"drive-{at:03d}.bag", straight(60), error, rng.choice(60, extra_lost + rng.integers(0, 3), replace=False)))
    return drives


def test_a_worse_run_is_worse_and_the_other_way_round_better(tmp_path, rng):
    before, after = write_fleet(tmp_path / "before", fleet_of(rng, 40)), write_fleet(tmp_path / "after", fleet_of(rng, 40, scale=1.6))
    found = report(after, tmp_path, before)
    assert found.is_worse and found.found.verdict == "worse" and "after is worse than before on 40 drives" in found.sentence
    worst, better = found.found.changed()
    first, second = found.found.values["95 % translation error"]
    assert len(worst) == 10 and (second > first)[worst].all() and len(better) < 10 and "Drives that got worse most" in found.html()
    turned = results(before, after)
    assert not turned.is_worse and turned.found.verdict == "better"
    none = results(after, before, margin_m=1.0, margin_deg=10.0)
    assert not none.is_worse and none.found.verdict in ("equivalent", "undecided")


def test_a_drive_that_fails_anew_is_worse_without_a_test(tmp_path):
    drives = [Planted(f"{at}.bag", straight(30), np.full(30, 0.01)) for at in range(12)]
    broken = [*drives[:5], Planted("5.bag", straight(30), np.full(30, 0.01), failure="ndtd: bag: it is cut off"), *drives[6:], Planted(
        "new.bag", straight(30), np.full(30, 0.01))]
    before, after = write_fleet(tmp_path / "before", drives), write_fleet(tmp_path / "after", broken)
    found = report(after, tmp_path, before)
    assert found.is_worse and "1 drive failed that had not failed before" in found.sentence and found.found.only_second == ["new.bag"]
    assert "it is cut off" in found.html() and "Failed in after alone: 1: 5.bag" in found.html()
    assert not results(before, after).is_worse, "failed in the other run alone"


def test_drives_that_are_lost_anew_are_worse(tmp_path):
    lost = [Planted(f"{at}.bag", straight(50), np.full(50, 0.01), range(10, 50) if at == 3 else ()) for at in range(30)]
    good = [Planted(f"{at}.bag", straight(50), np.full(50, 0.01)) for at in range(30)]
    found = results(write_fleet(tmp_path / "after", lost), write_fleet(tmp_path / "before", good))
    assert found.is_worse and "1 missed drive instead of 0" in found.found.sentence


def test_equal_runs_are_the_same_bit_for_bit(tmp_path, rng):
    drives = fleet_of(rng, 12)
    found = report(write_fleet(tmp_path / "b", drives), tmp_path, write_fleet(tmp_path / "a", drives))
    assert found.found.verdict == "same" and "bit for bit" in found.sentence and not found.is_worse
    some = results(write_fleet(tmp_path / "some", drives[:7]), tmp_path / "a").found
    assert some.verdict == "same" and "on the 7 drives that both have, bit for bit" in some.sentence and len(some.only_first) == 5
    drives[4] = Planted("drive-004.bag", straight(60), np.full(60, 0.02))
    assert results(write_fleet(tmp_path / "c", drives), tmp_path / "a").found.verdict != "same"


def test_few_drives_are_not_tested_and_the_page_says_what_to_do(tmp_path, rng):
    before, after = write_fleet(tmp_path / "before", fleet_of(rng, 5)), write_fleet(tmp_path / "after", fleet_of(rng, 5, scale=3.0))
    found = report(after, tmp_path, before)
    assert found.found.tests == [] and not found.is_worse and "5 drives are too few" in found.sentence
    assert "ndt-report before after --out compare.html" in found.html() and "scan by scan" in found.html()


class Tables:
    """The tables of a run with one configuration, as far as a comparison reads them: error of each drive, share of scans without a pose."""

    def __init__(self, error_m, share, scans=1000):
        count = len(error_m)
        self.texts = {name: np.array([f"{name}{at}" for at in range(count)], object) for name in ("bag", "bag_hash", "trajectory_hash")}
        self.texts.update(status=np.full(count, "done", object), config=np.full(count, "base", object))
        self.texts["trajectory_hash"] = np.array([f"{one:.17g}" for one in error_m], object)
        self.numbers = {"error_m_median": error_m, "error_m_p95": 2.2 * error_m ** 1.1, "error_deg_median": error_m ** 0.9,
                        "error_deg_p95": 2 * error_m}
        self.totals = fleet_totals.Totals({name: np.full(count, scans) for name in fleet_totals.COUNTS}, error_m, np.full(count, scans))
        self.totals.counts.update(trusted=scans - np.round(share * scans).astype(int), wrong=np.zeros(count, int))

    def rows_of(self, configuration):
        return np.arange(len(self.texts["bag"]))


@pytest.mark.parametrize("drives, worse_by", [(12, 1.0), (40, 1.0), (40, 1.35)])
def test_how_often_equal_runs_are_called_worse(drives, worse_by):
    """200 pairs of runs of drives of unlike hardness, some of them far off now and then: of equal ones at most 5 % are called worse, and
    three deviations of a binomial; a third more error is found in most, by 40 drives."""
    rng, flagged = np.random.default_rng(11), 0
    for _ in range(200):
        hard = rng.lognormal(-4.0, 0.8, drives)
        sides = []
        for factor in (1.0, worse_by):
            error = factor * hard * rng.lognormal(0.0, 0.2, drives) * np.where(rng.random(drives) < 0.03, 4.0, 1.0)
            one = Tables(error, np.abs(rng.normal(0.0, 0.01, drives)))
            sides.append(fleet_comparison.Side(one, one.totals, "base", f"run{len(sides)}"))
        found = fleet_comparison.compare([tuple(sides)], margin_m=0.0, margin_deg=0.0)[0]
        assert len(found.tests) == 10
        flagged += found.is_worse
    print(f"{drives} drives, errors times {worse_by}: {flagged} of 200 called worse")
    assert flagged >= 180 if worse_by > 1.0 else flagged <= 200 * 0.05 + 3 * (200 * 0.05 * 0.95) ** 0.5


def test_configurations_of_a_sweep_are_each_compared_with_the_first(tmp_path, rng):
    drives = fleet_of(rng, 24)
    hashes = {one.name: one.row["trajectory_hash"] for one in drives}

    def with_settings(one, factor, **options):
        error = one.table["error_m"].to_numpy()
        return Planted(one.name, straight(60), factor * error, np.flatnonzero(np.isnan(error)), **options)

    worse = [with_settings(one, 2.0, config="ndt.levels=[2.0]") for one in drives]
    same = [with_settings(one, 1.0, config="cpu.x=1", hash=hashes[one.name]) for one in drives]
    run = write_fleet(tmp_path / "run", [*drives, *worse, *same], ("base", "ndt.levels=[2.0]", "cpu.x=1"))
    found = report(run, tmp_path)
    assert [one.verdict for one in found.results.sweep] == ["worse", "same"] and not found.is_worse, "a sweep is no regression"
    assert "ndt.levels=[2.0] is worse than base on 24 drives" in found.html()
    assert results(run, configuration="ndt.levels=[2.0]").main.name == "ndt.levels=[2.0]"
    other = write_fleet(tmp_path / "other", drives)
    assert results(run, other, configuration="ndt.levels=[2.0]").is_worse
    assert results(run, other).found.verdict == "same", "the configuration with the name of the other run's"
    with pytest.raises(FleetError, match="has no configuration 'none', but base"):
        results(run, configuration="none")


# ---- the page


HOSTILE = "bags/<script>document.title='owned'</script><img src=x onerror=alert(1)>\"'&.bag"


def test_the_page_in_a_browser(tmp_path, rng, browser):
    """Names that are HTML, or have 4000 characters, are text and fit; figures are written; light, dark, phone."""
    drives = fleet_of(rng, 20)
    drives.append(Planted(HOSTILE, straight(60), np.full(60, 0.3), range(10, 60)))
    drives.append(Planted(f"bags/{'long' * 1000}.bag", straight(60), np.full(60, 0.4), range(30, 40), damage="<b>ends within</b>"))
    drives.append(Planted("bags/empty.bag", straight(0), failure="ndtd: <i>empty</i>\nlast <line>"))
    drives.append(Planted(f"s3://fleet/{'x' * 4000}.bag", straight(10), failure="ndtd: bag: not one"))
    after = write_fleet(tmp_path / "after", drives)
    before = write_fleet(tmp_path / ("before" + "e" * 200), fleet_of(rng, 20))
    for options in ({}, {"against": before}):
        found = report(after, tmp_path, figures=tmp_path / "figures", **options)
        for viewport, scheme in ((DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light")):
            seen = check_page(browser, tmp_path / "page.html", viewport, scheme)
            assert seen["figures"] == len(found.drawings) and seen["images"] == 0 and seen["drawn"] > 10_000
            assert "<i>empty</i>" in seen["text"] and "last <line>" in seen["text"] and "onerror=" in seen["text"]
        assert {path.stem for path in (tmp_path / "figures").iterdir()} >= {one.name for one in found.drawings}
        assert (tmp_path / "page.html").stat().st_size < 1_500_000 and "<script" not in (tmp_path / "page.html").read_text()


def test_runs_that_cannot_be_read_say_so(tmp_path):
    with pytest.raises(FleetError, match="not the folder of a run"):
        FleetRun(tmp_path)
    run = write_fleet(tmp_path / "run", [Planted("a.bag", straight(30), np.full(30, 0.01))])
    (run / "scans.parquet" / "part-00000.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(FleetError, match="part-00000.parquet: not a Parquet file"):
        report(run, tmp_path)
    (run / "scans.parquet" / "part-00000.parquet").unlink()
    with pytest.raises(FleetError, match="scans.parquet: has no table"):
        report(run, tmp_path)
    pq.write_table(pa.table({"bag": ["a.bag"]}), run / "runs.parquet")
    with pytest.raises(FleetError, match="not the run table of ndt-fleet: column status is missing"):
        FleetRun(run)
    (run / "runs.parquet").unlink()
    with pytest.raises(FleetError, match="runs.parquet: is not there"):
        FleetRun(run)


def test_a_run_of_failures_alone_has_a_page(tmp_path):
    found = report(write_fleet(tmp_path / "run", [Planted(f"{at}.bag", straight(5), failure="no bag") for at in range(30)]), tmp_path)
    assert found.verdict.level == "poor" and "30 drives failed" in found.sentence and "And 10 more" in found.html()


def test_blocks_hold_whole_drives(tmp_path, rng, monkeypatch):
    """Batches of a few rows give the sums of one batch."""
    run = write_fleet(tmp_path / "run", fleet_of(rng, 9), per_file=2)
    whole = fleet_page.FleetPage(FleetResults(run))
    monkeypatch.setattr("ndtd.report.fleet_reading.ROWS", 7)
    pieces = fleet_page.FleetPage(FleetResults(run))
    assert whole.html() == pieces.html() and whole.results.main.scans == 540
    for block in FleetRun(run).blocks(("seq",)):
        assert (block.lengths == 60).all()


def test_the_command(tmp_path, rng, capfd, refused):
    """Exit codes, one line for what is wrong, and a page that is there or not."""
    before, after = write_fleet(tmp_path / "before", fleet_of(rng, 20)), write_fleet(tmp_path / "after", fleet_of(rng, 20, scale=2.0))
    assert ndt_fleet.main(["report", str(before)]) == 0 and (before / "report.html").is_file()
    assert "20 drives" in capfd.readouterr().out
    others = write_fleet(tmp_path / "others", [Planted("another.bag", straight(60), np.full(60, 0.01), [])])
    both, page = ["report", str(after), "--against", str(before)], tmp_path / "page.html"
    assert ndt_fleet.main([*both, "--out", str(page), "--fail-if-worse", "--figures", str(tmp_path / "figures"), "-q"]) == 1
    assert page.is_file() and (tmp_path / "figures" / "intervals.svg").is_file() and capfd.readouterr() == ("", "")
    assert ndt_fleet.main(both) == 0 and "after is worse than before" in capfd.readouterr().out
    for words, code, told in (
            (["report", str(tmp_path)], 3, "not the folder of a run"), ([*both, "--margin", "-1"], 2, "is not a margin"),
            (["report", str(after), "--fail-if-worse"], 2, "worse than which run"), ([*both, "--out", str(tmp_path)], 2, "is a folder"),
            (["report", str(others), "--against", str(before), "--fail-if-worse", "-q"], 3, "nothing was compared"),
            ([*both, "--configuration", "x"], 3, "has no configuration 'x'"),
            ([*both, "--out", str(tmp_path / "no" / "page.html")], 2, "there is no folder")):
        assert told in refused(ndt_fleet.main, code, *words)


def test_pages_of_the_worst_drives(simulate, run_program, bin_dir, tmp_path, capfd, refused, monkeypatch):
    """The drives that are here are replayed again, and the table leads to their reports; one that has gone is told."""
    monkeypatch.setenv("NDT_BIN", str(bin_dir))
    drives = [simulate("--seed", seed, "--scans", 20, "--beams", 16, "--columns", 300, "--map-spacing", 0.4) for seed in (1, 2)]
    rows = [_replay(run_program, one.bag, drives[0].map, str(one.bag), tmp_path) for one in drives]
    gone = Planted(str(tmp_path / "gone away.bag"), straight(60), np.full(60, 0.01), range(40))
    run, out = write_fleet(tmp_path / "run", [*rows, gone], map_url=drives[0].map), tmp_path / "a page.html"
    assert ndt_fleet.main(["report", str(run), "--out", str(out), "--drives", "2"]) == 0
    said = capfd.readouterr()
    assert "1 drive with a page of its own" in said.out and "gone away.bag: has no page: " in said.err and said.err.count("\n") == 1
    text, made = out.read_text(), sorted((tmp_path / "a page-drives").iterdir())
    assert len(made) == 1 and "Replay report" in made[0].read_text()
    assert f'<a href="a%20page-drives/{made[0].name}">' in text and text.count("page-drives") == 1
    assert ndt_fleet.main(["report", str(run), "--out", str(out), "-q"]) == 0 and "page-drives" not in out.read_text()
    assert "not from 0 to 12" in refused(ndt_fleet.main, 2, "report", str(run), "--drives", "13")


@pytest.mark.skipif("NDT_FLEET_ROWS" not in os.environ, reason="a measurement: NDT_FLEET_ROWS=10000000")
def test_memory_and_speed_of_a_large_run(tmp_path):
    """Prints rows/s and memory."""
    rows, length = int(os.environ["NDT_FLEET_ROWS"]), 36_000
    rng = np.random.default_rng(1)
    drives = []
    for at in range(max(1, rows // length)):
        heading = np.cumsum(rng.normal(0, 0.02, length))
        path = np.column_stack([np.cumsum(np.cos(heading)), np.cumsum(np.sin(heading)), np.zeros(length)])
        lost = np.unique(np.concatenate([begin + np.arange(20) for begin in rng.integers(100, length - 100, 30)]))
        one = Planted(f"drive-{at:05d}.bag", path, np.abs(rng.normal(0, 0.02, length)), lost)
        drives.append((str(tmp_path / f"{at}.parquet"), one.run_row()))
        pq.write_table(one.table, drives[-1][0])
    folder = write_fleet(tmp_path / "run", [(scan_table.SCANS.empty_table(), row) for _, row in drives])
    for old in Path(folder / "scans.parquet").iterdir():
        old.unlink()
    for at, (path, _) in enumerate(drives):
        os.replace(path, folder / "scans.parquet" / f"part-{at:05d}.parquet")
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    found = report(folder, tmp_path)
    spent = time.monotonic() - begin
    scans, cells = found.results.main.scans, len(found.results.grid.key)
    print(f"\n{scans} rows, {cells} cells: {spent:.1f} s, {scans / spent:.0f} rows/s, page "
          f"{(tmp_path / 'page.html').stat().st_size / 1e6:.2f} MB, peak memory {before / 1024:.0f} MiB before, "
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB after")
