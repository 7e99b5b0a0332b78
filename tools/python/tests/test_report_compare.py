"""ndt-report RUN OTHER: planted differences are found, others are not, and the page holds in a browser."""
import json
import subprocess
import sys

import numpy as np
import pytest

from ndtd import ndt_report
from ndtd.report import compare, comparison
from ndtd.report.comparison import Unit, with_unit
from ndtd.report.run import RunError
from report_folders import DESKTOP, PHONE, check_page, drive_along, replay, wander, write_run

COUNT = 240
SETTINGS = {"ndt": {"levels": "[4.0, 2.0, 1.0]", "variant": "robust"}, "preprocess": {"deskew": "off"}}


@pytest.fixture
def plant(tmp_path):
    """plant(name, error, ...): a folder whose positions are off by error (N, 3); further options as write_run."""

    def make(name, error, with_truth=True, **options):
        truth = drive_along(len(error))
        pose = truth.copy()
        pose[:, :3] += error
        return write_run(tmp_path / name, pose, truth if with_truth else None, **options)

    return make


def verdicts(found, quantity):
    return {test.statistic: test.verdict for test in found.tests if test.quantity == quantity}


def grown(error, metres):
    """Errors (N, 3) that are longer by `metres`."""
    return error * (1 + metres / np.linalg.norm(error, axis=1, keepdims=True))


# ---- what is better


def test_a_worse_run_is_worse_and_the_other_way_round_better(plant, rng):
    error = wander(rng, COUNT, 0.01) + [0.01, 0, 0]
    before, after = plant("before", error), plant("after", grown(error, 0.012))
    found = compare(before, after)
    assert found.verdict == "worse" and found.is_worse and set(verdicts(found, "translation error").values()) == {"worse"}
    for test in found.tests[:3]:
        assert test.found.low <= 0.012 <= test.found.high and test.found.difference == pytest.approx(0.012, abs=1e-9)
    assert "after is worse than before: 3 of 6 tests say so" in found.sentence
    turned = compare(after, before)
    assert turned.verdict == "better" and not turned.is_worse and "before is better than after" in turned.sentence


def test_noise_is_no_difference(plant, rng):
    """Independent errors of 5 mm: nothing is said to be better, and with a margin of 5 mm they are equivalent."""
    found = compare(plant("one", wander(rng, COUNT, 0.005)), plant("two", wander(rng, COUNT, 0.005)))
    assert found.verdict == "equivalent" and set(verdicts(found, "translation error").values()) == {"equivalent"}
    assert not compare(found.first, found.second, margin_m=0.0, margin_deg=0.0).is_worse
    assert compare(found.first, found.second, margin_m=1e-5).verdict == "undecided"


def test_the_margin_says_what_matters(plant, rng):
    error = wander(rng, COUNT, 0.01)
    one, two = plant("one", error), plant("two", grown(error, 0.002))
    assert compare(one, two).verdict == "equivalent" and compare(one, two, margin_m=0.001).verdict == "worse"


def test_equal_runs_are_the_same(plant, rng):
    error = wander(rng, COUNT, 0.01)
    found = compare(plant("one", error), plant("two", error))
    assert found.verdict == "same" and found.first_difference is None and found.regressions() == []
    assert {test.verdict for test in found.tests} == {"equal"} and found.settings == [] == found.warnings
    assert all(one.verdict == "no difference" and one.factor == 1 for one in found.latencies)


def test_the_first_bit_that_differs(plant, rng):
    error = wander(rng, COUNT, 0.01)
    other = error.copy()
    other[37, 1] += 1e-9
    found = compare(plant("one", error), plant("two", other))
    assert found.first_difference == 37 and found.verdict == "equivalent"


def test_missed_scans_count(plant, rng):
    """Scans without a pose, and poses over a metre off, are missed; errors are those of scans that both have."""
    error = wander(rng, COUNT, 0.01)
    far = error.copy()
    far[100:130] += 5.0
    found = compare(plant("one", error, lost=range(5)), plant("two", far, lost=range(60, 90)))
    assert found.first_missed.sum() == 5 and found.second_missed.sum() == 60 and found.outcomes["low_score"] == (5, 30)
    assert found.missed_verdict == "worse" == found.verdict and found.is_worse and "60 scans missed instead of 5." in found.sentence
    assert len(found.quantities[0].first) == COUNT - 35
    assert found.regressions()[0] in range(60, 130)
    once = compare(plant("three", error), plant("four", error, lost=(7,)))
    assert once.missed_verdict == "equivalent" == once.verdict and not once.is_worse and "1 scan missed instead of 0." in once.sentence
    assert compare(found.second, found.first).verdict == "better"


def test_no_ground_truth(plant, rng):
    """Runs are compared by confidence, and by the distance between them."""
    error = wander(rng, COUNT, 0.01)
    sure = 0.9 + 0.02 * wander(rng, COUNT, 1.0)[:, 0]
    found = compare(plant("one", error, False, confidence=sure), plant("two", error + [0.0, 0.3, 0.0], False, confidence=sure - 0.2))
    assert not found.has_truth and np.allclose(found.distance_m, 0.3) and found.verdict == "worse"
    assert "two is less sure of its poses than one" in found.sentence and "no ground truth" in found.warnings[0]
    assert verdicts(found, "confidence") == {"median": "worse", "mean": "worse", "p05": "worse"}


def test_better_here_and_worse_there_is_mixed(plant, rng):
    """Turned by less, shifted by more."""
    error = wander(rng, COUNT, 0.01)
    one, two = plant("one", error), plant("two", grown(error, 0.02))
    rows = [json.loads(line) for line in (one / "results.jsonl").read_text().splitlines()]
    for row in rows:
        turn = np.radians(0.2) / 2
        x, y, z, w = row["pose"][3:]
        row["pose"][3:] = [x, y, z * np.cos(turn) + w * np.sin(turn), w * np.cos(turn) - z * np.sin(turn)]
    (one / "results.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    found = compare(one, two)
    assert found.verdict == "mixed" and found.is_worse and [test.verdict for test in found.tests] == 3 * ["worse"] + 3 * ["better"]


def test_the_number_of_tests_counts(plant, rng):
    """p of all tests are those of Holm over the whole family."""
    found = compare(plant("one", wander(rng, COUNT, 0.01)), plant("two", wander(rng, COUNT, 0.011)))
    assert len(found.tests) == 6 and [test.p_holm for test in found.tests] == pytest.approx(
        comparison.paired.holm([test.found.p for test in found.tests]))
    assert all(test.p_holm >= test.found.p for test in found.tests)


# ---- what belongs together, what differs


def test_scans_are_paired_by_stamp(plant, rng):
    """The second run begins later and has no scan 150: values of one stamp meet."""
    error = wander(rng, COUNT, 0.01)
    one = plant("one", error)
    two = write_run(one.parent / "two", drive_along(COUNT)[20:] + np.column_stack([error[20:], np.zeros((COUNT - 20, 4))]),
                    drive_along(COUNT)[20:], first=20)
    lines = (two / "results.jsonl").read_text().splitlines()
    (two / "results.jsonl").write_text("\n".join(line for line in lines if '"seq": 150,' not in line) + "\n")
    found = compare(one, two)
    assert len(found.pairs) == COUNT - 21
    assert np.array_equal(found.first.stamp_ns[found.pairs[:, 0]], found.second.stamp_ns[found.pairs[:, 1]])
    assert np.array_equal(found.first_error_m, found.second_error_m) and np.nanmax(found.distance_m) == 0
    assert found.warnings == [f"21 of {COUNT} scans of {one} have no scan of the other run with their stamp: left out"]
    assert found.verdict == "equivalent"  # all that can be compared is equal, but not the runs


def test_settings_that_differ(plant, rng):
    error = wander(rng, 40, 0.01)
    changed = {**SETTINGS, "ndt": {**SETTINGS["ndt"], "levels": "[2.0]"}}
    found = compare(plant("one", error, settings=SETTINGS), plant("two", error, settings=changed, summary={"threads": 4}))
    assert [(one.key, one.first, one.second) for one in found.settings] == [("ndt.levels", "[4.0, 2.0, 1.0]", "[2.0]")]
    assert found.settings[0].default in ("[4.0, 2.0, 1.0]", None)
    assert [(one.key, one.first, one.second) for one in found.inputs] == [("threads", "", "4")]


def test_other_maps_and_recordings_are_told(plant, rng):
    error = wander(rng, 40, 0.01)
    found = compare(plant("one", error), plant("two", error, summary={"map_points": 5, "bag": "b.bag"}))
    assert len(found.warnings) == 2 and "different maps" in found.warnings[0] and "different names" in found.warnings[1]


def test_latencies_are_compared_as_by_ndt_bench(plant, rng):
    """Factor: first over second, median of the pairs, quartiles; 2 %, or 1 between the quartiles, is no difference."""
    error, base = wander(rng, 200, 0.01), rng.uniform(300, 500, 200)
    times = {"one": base, "half": base / 2, "noisy": base * rng.permutation(np.repeat([0.5, 2.0], 100)), "near": base * 1.015,
             "slow": base * 1.1}
    runs = {name: plant(name, error, align_us=one) for name, one in times.items()}

    def of(other):
        return next(one for one in compare(runs["one"], runs[other]).latencies if one.stage == "align")

    assert of("half").factor == pytest.approx(2) and of("half").verdict == "faster"
    assert of("noisy").low == pytest.approx(0.5) and of("noisy").high == pytest.approx(2) and of("noisy").verdict == "no difference"
    assert of("near").verdict == "no difference" and of("slow").verdict == "slower"
    total = next(one for one in compare(runs["one"], runs["half"]).latencies if one.stage == "total")
    assert total.first_us == pytest.approx(np.median(base) + 539) and compare(runs["one"], runs["slow"]).verdict == "same"


def test_several_runs_share_the_correction(plant, rng, tmp_path):
    """Against the first one; p accounts for the tests of all."""
    error = wander(rng, COUNT, 0.01)
    runs = [plant("one", error), plant("two", grown(error, 0.02)), plant("three", error), plant("four", wander(rng, COUNT, 0.01))]
    found = comparison.compare_all(runs)
    assert [one.verdict for one in found] == ["worse", "same", "equivalent"]
    tests = [test for one in found for test in one.tests]
    assert [test.p_holm for test in tests] == pytest.approx(comparison.paired.holm([test.found.p for test in tests])) and len(tests) == 18
    assert run(*runs, "--out", tmp_path / "out.html", "-q") == 0 and run(*runs, "--fail-if-worse", "-q") == 1
    assert (tmp_path / "out.html").read_text().count("<tr>") >= 5
    assert run(*runs, "--out", tmp_path / "x.html", "--figures", tmp_path / "f") == 2


def test_the_verdict_needs_numpy_alone(plant, rng):
    """No matplotlib, scipy or msgpack, as in a small image of CI."""
    one, two = plant("one", wander(rng, COUNT, 0.01)), plant("two", wander(rng, COUNT, 0.05))
    code = ("import sys\n"
            "for name in ('matplotlib', 'scipy', 'msgpack', 'PIL', 'yaml'): sys.modules[name] = None\n"
            "from ndtd import ndt_report\n"
            "sys.exit(ndt_report.main(sys.argv[1:]))")
    done = subprocess.run([sys.executable, "-c", code, str(one), str(two), "--fail-if-worse"], capture_output=True, text=True)
    assert done.returncode == 1 and "two is worse than one" in done.stdout, done.stderr


def test_few_scans_are_not_tested(plant, rng):
    error = wander(rng, 8, 0.01)
    found = compare(plant("one", error), plant("two", 3 * error))
    assert found.tests == [] and found.verdict == "undecided" and "8 scans belong together" in found.sentence


def test_units():
    assert [with_unit(value, "m") for value in (0.0042, 0.0123, 0.5, 3.14159)] == ["4.20\xa0mm", "1.23\xa0cm", "50.0\xa0cm", "3.14\xa0m"]
    assert with_unit(0.25, "%") == "25.0\xa0%" and with_unit(0.02, "deg") == "0.0200\N{DEGREE SIGN}" and with_unit(0.0, "m") == "0\xa0mm"
    both = Unit.of("m", 0.004, 0.02)
    assert both.number(0.004) == "0.40" and both.text(-0.00001, True) == "0.00\xa0cm" and both.text(0.003, True) == "+0.30\xa0cm"


# ---- the command


def run(*arguments):
    return ndt_report.main([str(one) for one in arguments])


def test_exit_status_for_ci(plant, rng, capfd):
    error = wander(rng, COUNT, 0.01)
    one, two = plant("one", error), plant("two", grown(error, 0.02))
    assert run(one, two, "--fail-if-worse") == 1 and "two is worse than one" in capfd.readouterr().out
    assert run(two, one, "--fail-if-worse", "-q") == 0 and run(one, one, "--fail-if-worse", "-q") == 0
    assert run(one, two, "--fail-if-worse", "--margin", 0.1, "-q") == 0
    assert capfd.readouterr().out == ""


def test_figures_and_the_same_bytes_twice(plant, rng, tmp_path):
    error = wander(rng, COUNT, 0.01)
    one, two = plant("one", error), plant("two", grown(error, 0.02))
    assert run(one, two, "--out", tmp_path / "a.html", "--figures", tmp_path / "figures") == 0
    assert run(one, two, "--out", tmp_path / "b.html", "--figures", tmp_path / "png", "--format", "png") == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    names = {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    assert names == {"intervals", "trajectories", "differences", "distributions", "latencies", "effort"}
    assert names == {path.stem for path in (tmp_path / "png").glob("*.png")}


def change_text(path, old, new):
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize("change, words", [
    (lambda two: two.rename(two.parent / "gone"), "no such folder"),
    (lambda two: (two / "results.jsonl").write_bytes(bytes(range(256)) * 9), "line 1: not a result"),
    (lambda two: (two / "truth.tum").write_text("1.0 a b\n"), "truth.tum: line 1"),
    (lambda two: change_text(two / "results.jsonl", "17000000", "16000000"), "no stamp in common")])
def test_bad_folders_are_one_line(plant, rng, tmp_path, refused, change, words):
    error = wander(rng, 20, 0.01)
    one, two = plant("one", error), plant("two", error)
    change(two)
    assert words in refused(ndt_report.main, 3, one, two, "--out", tmp_path / "out.html") and not (tmp_path / "out.html").exists()


@pytest.mark.parametrize("arguments, words", [
    ((), "nothing to do"), (("one", "two"), "--out OUT is wanted"), (("one", "--fail-if-worse"), "--fail-if-worse is for comparisons"),
    (("one", "two", "--out", "x.html", "--margin", "-1"), "--margin: -1 is not a margin"),
    (("one", "two", "--out", "x.html", "--margin-deg", "nan"), "--margin-deg: nan is not a margin"),
    (("one", "two", "--out", "two/results.jsonl"), "is a file of the replay")])
def test_wrong_usage_is_one_line(plant, rng, tmp_path, monkeypatch, refused, arguments, words):
    for name in ("one", "two"):
        plant(name, wander(rng, 20, 0.01))
    monkeypatch.chdir(tmp_path)
    assert words in refused(ndt_report.main, 2, *arguments)


def test_names_are_escaped(plant, rng, tmp_path):
    error = wander(rng, 30, 0.01)
    one, two = plant("<b>&amp;", error), plant("a" * 120, 2 * error, settings={"map": {"path": '"<script>alert(1)</script>"'}})
    assert run(one, two, "--out", tmp_path / "out.html", "-q") == 0
    text = (tmp_path / "out.html").read_text()
    assert "<script" not in text and "<b>&amp; " not in text and "&lt;b&gt;&amp;amp;" in text


# ---- in a browser


def test_pages_of_planted_runs(plant, rng, tmp_path, browser):
    """With and without ground truth, missed scans, long names: on a desktop, a phone, in the dark."""
    error = wander(rng, COUNT, 0.01)
    pairs = {"worse": (plant("before", error), plant("after-" + "x" * 60, grown(error, 0.02), lost=range(30, 40), settings=SETTINGS)),
             "blind": (plant("one", error, False), plant("two", error + 0.1, False, confidence=0.5)),
             "short": (plant("three", error[:5]), plant("four", error[:5]))}
    for name, (one, two) in pairs.items():
        assert run(one, two, "--out", tmp_path / f"{name}.html", "-q") == 0
        shown = check_page(browser, tmp_path / f"{name}.html", DESKTOP)
        assert shown["drawn"] > 10_000 and shown["figures"] >= 3
        dark = check_page(browser, tmp_path / f"{name}.html", PHONE, "dark")
        assert dark["paper"] != shown["paper"]
    assert run(*(one for pair in list(pairs.values())[:1] for one in (*pair, pair[0])), "--out", tmp_path / "table.html", "-q") == 0
    assert check_page(browser, tmp_path / "table.html", PHONE)["figures"] == 1


def test_simulated_drive(simulate, run_program, tmp_path, browser):
    """A coarse map on few points is worse; other points of the same scans are no difference; the pictures are there."""
    drive = simulate("--seed", 8, "--scans", 60, "--beams", 16, "--columns", 600, "--map-spacing", 0.25)
    usual = ("--set", "preprocess.deskew=time")
    folders = {"base": (), "points": ("--set", "preprocess.seed=5"),
               "coarse": ("--set", "ndt.levels=[2.0]", "--set", "preprocess.sample_count=150", "--set", "ndt.prior=off")}
    for name, options in folders.items():
        replay(run_program, tmp_path / name, drive.bag, drive.map, *usual, *options)
    found = compare(tmp_path / "base", tmp_path / "coarse")
    assert found.verdict == "worse" and {"ndt.levels", "preprocess.sample_count", "ndt.prior"} <= {one.key for one in found.settings}
    assert all(one.default for one in found.settings)
    summary = found.first.summary["translation_error_m"]
    assert np.nanmedian(found.first_error_m) == pytest.approx(summary["median"], rel=1e-4)
    assert not compare(tmp_path / "base", tmp_path / "points").is_worse
    replay(run_program, tmp_path / "again", drive.bag, drive.map, *usual)
    assert compare(tmp_path / "base", tmp_path / "again").verdict == "same"
    assert run(tmp_path / "base", tmp_path / "coarse", "--out", tmp_path / "out.html") == 0
    shown = check_page(browser, tmp_path / "out.html", DESKTOP)
    assert shown["images"] >= 4 and shown["figures"] == 6 and (tmp_path / "out.html").stat().st_size < 5_000_000


def test_kitti(shared_data, run_program, tmp_path, browser):
    """One level of 2 m against three: docs/benchmarks.md says 1.84 cm against 1.04 cm."""
    data = shared_data / "kitti0005_lite"
    run_program("ndt-bag", "pack", "--scans", data / "scans", "--times", data / "times.txt",
                "--truth", data / "poses_velo_lidar_refined.txt", "--format", "kitti", "--every", 2, "--offset", 1, "--initial", "first",
                "--out", tmp_path / "odd.bag")
    world, usual = data / "map_from_even_scans_0.20m.pcd", ("--set", "preprocess.deskew=azimuth_cw")
    replay(run_program, tmp_path / "three", tmp_path / "odd.bag", world, *usual)
    replay(run_program, tmp_path / "one", tmp_path / "odd.bag", world, *usual, "--set", "ndt.levels=[2.0]")
    found = compare(tmp_path / "three", tmp_path / "one")
    assert found.verdict == "worse" and set(verdicts(found, "translation error").values()) == {"worse"} and found.warnings == []
    assert run(tmp_path / "three", tmp_path / "one", "--out", tmp_path / "out.html", "--fail-if-worse") == 1
    shown = check_page(browser, tmp_path / "out.html", DESKTOP)
    assert shown["images"] == 20 and "ndt.levels" in shown["text"]
    check_page(browser, tmp_path / "out.html", PHONE, "dark")


def test_one_stamp_apart_is_an_error_of_python(plant, rng):
    error = wander(rng, 20, 0.01)
    one = plant("one", error)
    other = write_run(one.parent / "two", drive_along(20), first=5000)
    with pytest.raises(RunError, match="no stamp in common"):
        compare(one, other)
