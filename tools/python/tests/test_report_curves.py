"""ndt-report --curves: the tables of ndt-bench, by their columns, as SVG, PNG and HTML."""
import json
import re

import numpy as np
import pytest

from ndtd import ndt_report
from ndtd.report import bench_tables, curves
from ndtd.report.bench_tables import Table
from report_folders import DESKTOP, PHONE, check_page

BASIN = [{"variant": variant, "levels": levels, "backend": "cpu", "off_by_up_to": offset, "success_percent": success, "align_ms": 0.3}
         for variant, levels, shares in (("robust", "4-2-1", (100, 100, 99)), ("autoware", "2", (100, 90, 40)))
         for offset, success in zip(("0.5 m 2 deg", "1 m 5 deg", "3 m 20 deg"), shares)]
SWEEP = [{"backend": backend, "points": points, "align_ms": 1e-4 * points * factor}
         for backend, factor in (("cpu, 1 thread", 2), ("cpu, 2 threads", 1)) for points in (500, 1500, 20000)]
COMPARED = [{"experiment": "spin", "option": "cpu.spin_us", "value": str(value), "align_us": 400.0, **more} for value, more in (
    (0, {}), (20, {"factor": 1.1, "factor_low": 1.05, "factor_high": 1.3, "verdict": "faster"}),
    (50, {"factor": 0.8, "factor_low": 0.7, "factor_high": 0.9, "verdict": "slower"}))]


def run(*arguments):
    return ndt_report.main([str(one) for one in arguments])


@pytest.fixture
def write(tmp_path):
    """write(tables): a file as ndt-bench --json writes it."""

    def make(tables, name="tables.json"):
        (tmp_path / name).write_text(json.dumps(tables))
        return tmp_path / name

    return make


def lines_of(drawing, axes=0):
    """label -> (K, 2) of what was drawn."""
    lines = [line for line in drawing.axes[axes].get_lines() if not line.get_label().startswith("_")]
    return {line.get_label(): np.column_stack(line.get_data()) for line in lines}


# ---- what is drawn


def test_basin():
    table = Table("basin", bench_tables_rows(BASIN))
    drawing = curves.draw(table, [table])
    shown = lines_of(drawing)
    assert set(shown) == {"robust", "autoware"} and shown["autoware"].tolist() == [[0, 100], [1, 90], [2, 40]]
    assert drawing.axes[0].get_ylabel() == "success [%]"
    assert [text.get_text() for text in drawing.axes[0].get_xticklabels()][2] == "3 m\n20 deg"


def bench_tables_rows(rows):
    return [{key: float(value) if isinstance(value, (int, float)) else value for key, value in row.items()} for row in rows]


def test_sweep_over_points():
    """Logarithmic, the measured sizes as ticks, a line per backend in the order of x."""
    table = Table("align", bench_tables_rows(SWEEP[::-1]))
    drawing = curves.draw(table, [table])
    shown = lines_of(drawing)
    assert set(shown) == {"cpu, 1 thread", "cpu, 2 threads"} and np.allclose(shown["cpu, 1 thread"], [[500, 0.1], [1500, 0.3], [20000, 4]])
    assert drawing.axes[0].get_xscale() == "log" == drawing.axes[0].get_yscale()
    assert [text.get_text() for text in drawing.axes[0].get_xticklabels()] == ["500", "1500", "20k"]
    assert drawing.axes[0].get_xlabel() == "points" and drawing.axes[0].get_ylabel() == "align [ms]"


def test_comparison():
    table = Table("compare", bench_tables_rows(COMPARED))
    drawing = curves.draw(table, [table])
    assert [text.get_text() for text in drawing.axes[0].get_yticklabels()] == ["spin: 20 against 0", "spin: 50 against 0"]
    ends = [line.get_xdata() for line in drawing.axes[0].get_lines() if len(line.get_xdata()) == 2 and line.get_linewidth() > 2]
    assert [list(end) for end in ends] == [[1.05, 1.3], [0.7, 0.9]]


def test_a_backend_that_is_not_here_makes_no_line():
    rows = bench_tables_rows(SWEEP) + [{"backend": "cuda", "points": 500.0, "align_ms": None, "why": "not here"}]
    assert "cuda" not in lines_of(curves.draw(Table("align", rows), []))


@pytest.mark.parametrize("rows", [[], [{"cpu": "x", "cores": 2.0}], [{"points": 500.0, "align_ms": 1.0}],
                                  [{"points": 5.0}, {"points": 6.0}], [{"align_ms": 1.0}, {"align_ms": 2.0}]])
def test_tables_without_curves(rows):
    assert curves.draw(Table("any", rows), []) is None


def test_markdown_is_the_same_table(tmp_path):
    (tmp_path / "a.md").write_text("# Head\n\n## Alignments\n\nmedians.\n\n| backend | points | align_ms |\n|---|---:|---|\n"
                                   "| cpu | 500 | 0.1 |\n| cpu | 1500 | - |\n\ntext\n")
    table, = bench_tables.read(tmp_path / "a.md")
    assert (table.title, table.note, table.columns) == ("Alignments", "medians.", ["backend", "points", "align_ms"])
    assert table.rows == [{"backend": "cpu", "points": 500.0, "align_ms": 0.1}, {"backend": "cpu", "points": 1500.0, "align_ms": None}]


# ---- the command


def test_formats(write, tmp_path):
    source = write({"machine": [{"cpu": "x"}], "align": SWEEP})
    assert run("--curves", source, "--out", tmp_path / "a.svg", "-q") == 0 and (tmp_path / "a.svg").read_text().count("<svg") == 1
    assert run("--curves", source, "--out", tmp_path / "a.PNG", "-q") == 0 and (tmp_path / "a.PNG").read_bytes()[:4] == b"\x89PNG"
    assert run("--curves", source, "-q") == 0 and (tmp_path / "tables.html").exists()
    before = (tmp_path / "a.svg").read_bytes()
    assert run("--curves", source, "--out", tmp_path / "a.svg", "-q") == 0 and (tmp_path / "a.svg").read_bytes() == before


@pytest.mark.parametrize("content, words", [
    (b"", "contains no table"), (b"{}", "contains no table"), (b'{"basin": []}', "contains no table"), (b"{", "not JSON"),
    (b"[1]", "no tables"),
    (b'{"a": [1]}', "a row is no object"), (b'{"a": 1}', "lists of rows"), (b"\0\1\2", "a binary file"), (b"[" * 100_000, "JSON"),
    (b"just a text\n", "contains no table"), (b'{"machine": [{"cpu": "x"}]}', "nothing to draw")])
def test_bad_files_are_one_line(tmp_path, refused, content, words):
    (tmp_path / "a.json").write_bytes(content)
    assert words in refused(ndt_report.main, 3, "--curves", tmp_path / "a.json", "--out", tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()


@pytest.mark.parametrize("arguments, code, words", [
    (("--out", "a.pdf"), 2, "does not tell the format"), (("--out", "tables.json"), 2, "does not tell the format"),
    (("--figures", "x"), 2, "without --figures"), (("--fail-if-worse",), 2, "without --fail-if-worse"),
    (("--table", "zz"), 3, "there is no table 'zz', but align"), (("--margin", "1"), 2, "for comparisons")])
def test_wrong_usage_is_one_line(write, tmp_path, monkeypatch, refused, arguments, code, words):
    source = write({"align": SWEEP})
    monkeypatch.chdir(tmp_path)
    assert words in refused(ndt_report.main, code, "--curves", source, *arguments)


def test_a_file_that_is_not_there(tmp_path, refused):
    assert "no.json: No such file" in refused(ndt_report.main, 3, "--curves", tmp_path / "no.json")


# ---- what ndt-bench writes, in a browser


@pytest.fixture(scope="module")
def street(simulate):
    return simulate("--seed", 5, "--scans", 40, "--beams", 16, "--columns", 400, "--map-spacing", 0.3)


@pytest.mark.parametrize("command, options, words", [
    ("basin", ("--scans", 6, "--rounds", 6), ("success [%]", "robust", "autoware")),
    ("consistency", ("--seeds", 2), ("within [%]", "nominal", "along: rms", "NEES")),
    ("compare", ("spin", "--scans", 4, "--rounds", 3), ("against 0", "factor")),
    ("align", ("--scans", 4, "--rounds", 4, "--points", "300,1500"), ("align [ms]", "points")),
    ("batch", ("--scans", 3, "--rounds", 2, "--sizes", "1,4", "--points", 500), ("per item [us]", "items")),
    ("confidence", ("--scans", 3), ("right [%]", "without a prior"))])
def test_tables_of_ndt_bench(street, run_program, tmp_path, browser, command, options, words):
    """JSON and Markdown of the program itself: recognised, drawn, and no fault in the browser."""
    given = ("--map", street.map, "--bag", street.bag, "--set", "preprocess.deskew=time")
    run_program("ndt-bench", command, *options, *given, "--json", tmp_path / "a.json", "--markdown", tmp_path / "a.md")
    for source in ("a.json", "a.md"):
        assert run("--curves", tmp_path / source, "--out", tmp_path / "a.html", "-q") == 0
        shown = check_page(browser, tmp_path / "a.html", DESKTOP)
        assert shown["figures"] >= 1 and shown["drawn"] > 10_000
        assert source == "a.md" or all(word in shown["text"] for word in words), shown["text"][:600]
        assert run("--curves", tmp_path / source, "--out", tmp_path / "a.svg", "-q") == 0
    check_page(browser, tmp_path / "a.html", PHONE, "dark")


def test_pages_explain_consistency(street, run_program, tmp_path):
    """The numbers below the figure are those of the table."""
    run_program("ndt-bench", "consistency", "--seeds", 1, "--map", street.map, "--bag", street.bag, "--set", "preprocess.deskew=time",
                "--json", tmp_path / "a.json")
    tables = bench_tables.read(tmp_path / "a.json")
    nees = json.loads((tmp_path / "a.json").read_text())["consistency"][0]["nees"]
    drawing = curves.draw(next(one for one in tables if one.name == "coverage"), tables)
    assert float(re.search(r"NEES ([\d.]+)", drawing.caption)[1]) == pytest.approx(nees, abs=0.006)
