"""ndtd.report: folders, errors as evo defines them, pictures, verdicts, and folders that lack things."""
import io
import json
import shutil
import struct
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from report_folders import FIRST_STAMP_NS, STEP_NS, drive_along, wander, write_run

pytest.importorskip("matplotlib")

from ndtd import ndt_report  # noqa: E402
from ndtd.report import bag_records, figures, page, plot_parts, pose_errors, protection_figure, raster, trajectory_figure, verdict, worst_scans  # noqa: E402
from ndtd.report.error_figures import Errors  # noqa: E402
from ndtd.report.run import LEVELS, Run, RunError, default_settings, flat_yaml  # noqa: E402

pytestmark = pytest.mark.filterwarnings("error")
FIGURES = ["trajectory", "ape", "rpe", "axes", "consistency", "latency", "latency-time", "states", "matching"]


def turned(rng, poses, deviation_rad):
    """Poses with errors of rotation."""
    q = pose_errors.quaternion_of(rng.normal(size=(len(poses), 3)) * deviation_rad)
    return np.hstack([poses[:, :3], pose_errors.product(q, poses[:, 3:])])


@pytest.fixture
def folder(tmp_path, rng):
    """Two hundred scans with errors of 2 cm and 0.1 deg."""
    truth = drive_along(200)
    pose = truth.copy()
    pose[:, :3] += wander(rng, 200, 0.02)
    return write_run(tmp_path / "run", turned(rng, pose, 0.002), truth)


def run_report(*arguments):
    return ndt_report.main([str(one) for one in arguments])


# ---- errors


def test_errors_are_those_of_evo(folder):
    metrics, trajectory = pytest.importorskip("evo.core.metrics"), pytest.importorskip("evo.core.trajectory")
    run = Run(folder)
    errors = Errors(run)

    def of_evo(poses):
        return trajectory.PoseTrajectory3D(poses[:, :3], poses[:, [6, 3, 4, 5]], timestamps=run.stamp_ns * 1e-9)

    paths = of_evo(run.truth), of_evo(run.pose)
    relations = metrics.PoseRelation.translation_part, metrics.PoseRelation.rotation_angle_rad
    for relation, mine in zip(relations, (errors.translation_m, errors.rotation_rad)):
        ape = metrics.APE(relation)
        ape.process_data(paths)
        np.testing.assert_allclose(mine, ape.error, atol=1e-12)
        told = ape.get_all_statistics()
        found = pose_errors.statistics(mine)
        assert all(found[key] == pytest.approx(told[key], rel=1e-9) for key in ("rmse", "mean", "median", "std", "min", "max"))
    assert [one.distance_m for one in errors.relative] == [10, 20, 50, 100]
    for one in errors.relative:
        for relation, mine in zip(relations, (one.translation_m, one.rotation_rad)):
            rpe = metrics.RPE(relation, delta=one.distance_m, delta_unit=metrics.Unit.meters, all_pairs=True, pairs_from_reference=True)
            rpe.process_data(paths)
            np.testing.assert_allclose(mine, rpe.error, atol=1e-11)


def test_pairs_where_the_vehicle_stands():
    """Poses at one place are no pairs, and the nearest pose is taken."""
    truth = np.zeros((40, 7))
    truth[:, 0], truth[:, 6] = np.concatenate([np.zeros(10), np.arange(1, 21), np.full(10, 20.0)]), 1.0
    first, last = pose_errors.pairs_over(truth, 10.0)
    way = truth[last, 0] - truth[first, 0]
    assert (np.abs(way - 10) <= 1.0).all() and (last > first).all() and len(first) == len(set(first.tolist()))
    assert len(pose_errors.pairs_over(truth, 100.0)[0]) == 0


def test_errors_per_axis_are_in_the_vehicle(tmp_path):
    """A vehicle that heads along y: 3 cm along x is to its right, and the sigmas turn with it."""
    half = np.sqrt(0.5)
    truth = np.tile([0, 0, 0, 0, 0, half, half], (3, 1))
    pose = truth + [0.03, 0.10, -0.02, 0, 0, 0, 0]
    covariance = np.tile(np.diag([1e-4, 4e-4, 9e-4, 1e-6, 4e-6, 9e-6]), (3, 1, 1))
    found = pose_errors.absolute(pose, truth, covariance)
    np.testing.assert_allclose(found.per_axis[0, :3], [0.10, -0.03, -0.02], atol=1e-12)
    np.testing.assert_allclose(found.sigma[0], [0.02, 0.01, 0.03, 0.002, 0.001, 0.003], atol=1e-12)
    assert found.nees[0] == pytest.approx(9 + 25 + 4 / 9)
    yawed = truth.copy()
    yawed[:, 3:] = pose_errors.product(pose_errors.quaternion_of(np.tile([0, 0, 0.01], (3, 1))), truth[:, 3:])
    np.testing.assert_allclose(pose_errors.absolute(yawed, truth, covariance).per_axis[0, 3:], [0, 0, 0.01], atol=1e-12)


def test_sigma_bands_hold_what_they_should(rng):
    """Errors drawn from their covariance: shares of a normal distribution, NEES 6."""
    truth = np.tile(drive_along(50), (80, 1))
    square = rng.normal(size=(6, 6)) * [[0.02]] * 3 + np.diag([0.03, 0.02, 0.04, 0.001, 0.002, 0.001])
    covariance = square @ square.T
    error = rng.multivariate_normal(np.zeros(6), covariance, size=len(truth))
    pose = np.hstack([truth[:, :3] + error[:, :3], pose_errors.product(pose_errors.quaternion_of(error[:, 3:]), truth[:, 3:])])
    found = pose_errors.absolute(pose, truth, np.tile(covariance, (len(truth), 1, 1)))
    assert found.nees.mean() == pytest.approx(6, rel=0.08)
    for k, nominal in pose_errors.INSIDE.items():
        for axis in range(6):
            assert pose_errors.share_inside(found.per_axis[:, axis], found.sigma[:, axis], k) == pytest.approx(nominal, abs=0.03)


def test_truth_between_stamps_is_that_of_ndtd(drive, run_program, tmp_path):
    """Stamps at the end of the sweep, truth in the middle: the screw motion between, as the bag's own replay tells it."""
    import ndtd

    late = tmp_path / "late.bag"
    run_program("ndt-bag", "restamp", drive.bag, "--stamp", "end", "--out", late)
    run_program("ndtd", "--replay", late, "--map", drive.map, "--output", tmp_path / "out", "--set", "preprocess.deskew=time")
    (tmp_path / "out/truth.tum").unlink()
    run = Run(tmp_path / "out")
    replay = ndtd.Replay(late, drive.map, options={"preprocess.deskew": "time"})
    list(replay)
    compared = 0
    for stamp, mine in zip(run.stamp_ns, run.truth):
        theirs = replay.truth(int(stamp))
        assert np.isnan(mine[0]) == (theirs is None)
        if theirs is not None:
            compared += 1
            np.testing.assert_allclose(mine[:3], theirs[:3, 3], atol=1e-9)
            np.testing.assert_allclose(pose_errors.rotate(mine[None, 3:], np.eye(3)[:1])[0], theirs[:3, 0], atol=1e-9)
    assert compared >= len(run) - 1


# ---- the folder


def test_a_folder_of_ndtd(drive, run_program, tmp_path):
    """The reader finds what ndtd --output writes, and its summary says the same errors."""
    out = tmp_path / "out"
    run_program("ndtd", "--replay", drive.bag, "--map", drive.map, "--output", out, "--set", "preprocess.deskew=time")
    run = Run(out)
    assert len(run) == 20 and run.trusted.all() and run.has_truth and run.is_compared.all()
    tum = np.loadtxt(out / "poses.tum")
    np.testing.assert_allclose(run.pose, tum[:, 1:], atol=1e-12)
    errors, told = Errors(run), run.summary["translation_error_m"]
    assert np.median(errors.translation_m) == pytest.approx(told["median"], rel=1e-4)
    assert errors.translation_m.max() == pytest.approx(told["max"], rel=1e-4)
    assert run.settings["preprocess.deskew"] == "time" and default_settings()["preprocess.deskew"] == "auto"
    assert set(run.settings) == set(default_settings())
    assert run.summary["machine"] and run.summary["commit"]
    steps = run.iterations_of([3])[3]
    assert len(steps) == run.values["iterations"][3] and float(steps[0]["score"]) > 0
    (out / "truth.tum").unlink()  # then the bag has it
    assert np.array_equal(Run(out).truth, run.truth)


def test_points_of_scans(drive, run_program, tmp_path):
    out = tmp_path / "out"
    run_program("ndtd", "--replay", drive.bag, "--map", drive.map, "--output", out)
    run = Run(out)
    found = worst_scans.points_of(run, [4, 17])
    assert sorted(found) == [4, 17] and all(100 < len(points) <= 4000 and np.isfinite(points).all() for points in found.values())


def test_damaged_bags_end(tmp_path):
    for name, data in (("empty", b""), ("text", b"no bag at all"), ("head", b"NDTBAG\r\n\1\0\0\0\0\0\0\0"),
                       ("cut", b"NDTBAG\r\n\1\0\0\0\0\0\0\0" + b"\4\0\0\0\xff\xff\xff\0" + b"\0" * 20),
                       ("junk", b"NDTBAG\r\n\1\0\0\0\0\0\0\0" + b"\4\0\0\0\4\0\0\0" + b"\0" * 8 + b"\xc1\xc1\xc1\xc1" + b"\0" * 4)):
        (tmp_path / name).write_bytes(data)
        assert list(bag_records.messages(tmp_path / name, bag_records.TRUTH)) == [] and len(bag_records.truth(tmp_path / name)[0]) == 0


def test_settings_file():
    text = "# comment\n\na:\n  # one\n  b: 1\n  c:\n    d: [1, 2]\n  e: x: y\nf:\n  g: \"\"\n"
    assert flat_yaml(text) == {"a.b": "1", "a.c.d": "[1, 2]", "a.e": "x: y", "f.g": '""'}


def bag_of(kind, *messages):
    """The bytes of a bag of one type of message; a check sum is not looked at."""
    frames = [pytest.importorskip("msgpack").packb(message) for message in messages]
    records = [struct.pack("<IIq", kind, len(frame), 0) + frame + b"0000" for frame in frames]
    return b"NDTBAG\r\n\1\0\0\0\0\0\0\0" + b"".join(records)


def test_hostile_messages(folder, tmp_path):
    """Messages of any type, shape and size cost the picture, and no more."""
    scan = {"v": 1, "type": "points", "seq": 3, "stamp_ns": FIRST_STAMP_NS, "count": 2, "point_step": 12, "data": b"\xff" * 24,
            "fields": [["x", 0, 7, 1], ["y", 4, 7, 1], ["z", 8, 7, 1]]}
    wrong = [{"seq": []}, {"stamp_ns": {}}, {"count": 10**9}, {"count": -1}, {"point_step": -4}, {"fields": 3}, {"fields": [["x"]]},
             {"fields": [["x", -4, 7, 1], ["y", 4, 9, 1], ["z", 1000, 7, 1]]}, {"data": 1}]
    (folder / "points.bag").write_bytes(bag_of(bag_records.POINTS, *({**scan, **one} for one in wrong), scan, [1]))
    found = list(bag_records.messages(folder / "points.bag", bag_records.POINTS))
    assert len(found) == len(wrong) + 1, "up to the one that is no map"
    for one in found[2:-1]:
        with pytest.raises(ValueError, match="not a cloud"):
            bag_records.points(one)
    assert len(bag_records.points(found[-1])) == 0 and worst_scans.points_of(Run(folder), [0, 3]) == {}
    truth = {"v": 1, "type": "truth", "stamp_ns": 5, "frame_id": "map", "pose": [0, 0, 0, 0, 0, 0, 1]}
    wrong = [{"stamp_ns": 1.5}, {"stamp_ns": 2**63}, {"pose": [1]}, {"pose": ["a"] * 7}, {"pose": [1e300, 0, 0, 0, 0, 0, 1]},
             {"pose": [0] * 7}, {"pose": [float("nan")] * 7}]
    (tmp_path / "truth.bag").write_bytes(bag_of(bag_records.TRUTH, *({**truth, **one} for one in wrong), truth))
    assert bag_records.truth(tmp_path / "truth.bag")[0].tolist() == [5]


def test_numbers_that_nobody_measured(folder, tmp_path):
    odd = (("align_us", 1e300), ("confidence", float("inf")), ("iterations", "many"), ("reason", ["a"]), ("state", 7), ("map_id", -1),
           ("hypotheses", 10**400), ("queue_depth", -5), ("innovation", 1e11))
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()][:20]
    for at, (key, value) in enumerate(odd):
        rows[2 * at + 1][key] = value
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "20 scans" in html_of(folder, tmp_path)


def test_a_summary_of_other_types(folder, tmp_path):
    keys = ("bag", "map", "settings", "hints", "map_load_ms", "replay_s", "peak_memory_bytes", "map_points", "version", "commit", "map_id")
    for value in (-1, [[]], {"files": 3}):
        (folder / "summary.json").write_text(json.dumps({key: value for key in keys}))
        html_of(folder, tmp_path)


BAD_ROWS = [("not json", "not a result"), ('{"seq": 1}', "'stamp_ns' is missing"), ('{"seq": 1.5, "stamp_ns": 0}', "integers"),
            ('{"seq": 1, "stamp_ns": 5000000000000000000}', "out of range"), ('{"seq": -1, "stamp_ns": 0}', "out of range"),
            ('{"seq": 1, "stamp_ns": 0, "pose": [1, 2]}', "pose is not 7"), ('{"seq": 1, "stamp_ns": 0, "pose": 3}', "not a result"),
            ('{"seq": 1, "stamp_ns": 0, "pose": [0, 0, 0, 0, 0, 0, 2]}', "quaternion of pose"),
            ('{"seq": 1, "stamp_ns": 0, "covariance": ["a"]}', "covariance is not 36"), ("[1]", "integers"),
            ("[" * 100_000, "not a result"),
            ('{"seq": 1, "stamp_ns": 0, "pose": [1e9, 0, 0, 0, 0, 0, 1]}', "beyond 1e+08 m"),
            (" " * 300_000, "more than 262144 bytes")]


@pytest.mark.parametrize("row,why", BAD_ROWS)
def test_bad_results_are_one_line(row, why, folder, tmp_path, refused):
    (folder / "results.jsonl").write_text((folder / "results.jsonl").read_text().splitlines()[0] + f"\n{row}\n")
    told = refused(ndt_report.main, 3, folder, "--out", tmp_path / "out.html")
    assert why in told and "line 2" in told and not (tmp_path / "out.html").exists()


def test_a_summary_that_is_no_file(folder, tmp_path, refused):
    (folder / "summary.json").unlink()
    (folder / "summary.json").symlink_to("/dev/zero")
    assert "summary.json: is not a file" in refused(ndt_report.main, 3, folder, "--out", tmp_path / "out.html")


def test_a_last_line_that_was_not_ended(folder):
    with (folder / "results.jsonl").open("a") as stream:
        stream.write('{"seq": 7, "stamp')
    assert len(Run(folder)) == 200


@pytest.mark.parametrize("name,content,why", [
    ("summary.json", "{", "not JSON"), ("summary.json", "[]", "not a summary"), ("results.jsonl", "", "contains no result"),
    ("results.jsonl", "{}\n", "line 1: not a result"), ("timing.csv", "a,b\n", "not a file of ndtd --timing"), ("truth.tum", "0 1 2\n", "line 1: not TUM"),
    ("results.jsonl", b"\xff\xfe\0\1", "not a result")])
def test_bad_files_are_one_line(name, content, why, folder, tmp_path, refused):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    told = refused(ndt_report.main, 3, folder, "--out", tmp_path / "out.html")
    assert why in told and str(folder / name) in told


def test_wrong_command_lines(folder, tmp_path, refused):
    out = tmp_path / "out.html"
    for arguments, code, why in (((tmp_path / "none", "--out", out), 3, "no such folder"), ((tmp_path, "--out", out), 3, "not the folder"),
                                 ((folder, "--out", tmp_path), 2, "is a folder"),
                                 ((folder, "--out", tmp_path / "no/x.html"), 2, "no folder"),
                                 ((folder, "--out", out, "--format", "png"), 2, "--figures"),
                                 ((folder, "--out", folder / "summary.json"), 2, "is a file of the replay"),
                                 ((folder, "--out", out, "--figures", folder / "results.jsonl"), 2, "is not a folder")):
        assert why in refused(ndt_report.main, code, *arguments)
    assert not out.exists()


# ---- what it comes to


def test_verdicts(tmp_path, rng):
    truth = drive_along(100)
    good = Run(write_run(tmp_path / "good", truth + [0.01, 0, 0, 0, 0, 0, 0], truth))
    found = verdict.judge(good, Errors(good))
    assert found.level == "good" and found.sentence.startswith("100 scans, all converged, median error 1.0\N{NO-BREAK SPACE}cm")
    assert found.sentence.endswith("no time lost.")
    some = Run(write_run(tmp_path / "some", truth, truth, lost=range(50, 52)))
    found = verdict.judge(some, Errors(some))
    assert found.level == "fair" and "98 converged" in found.sentence and "0.2\N{NO-BREAK SPACE}s without a trusted pose" in found.sentence
    wrong = truth.copy()
    wrong[70:, 1] += 3.0
    wrong = Run(write_run(tmp_path / "wrong", wrong, truth))
    found = verdict.judge(wrong, Errors(wrong))
    assert found.level == "poor" and "30 trusted poses over 1 m" in found.sentence
    none = Run(write_run(tmp_path / "none", truth, lost=range(100)))
    found = verdict.judge(none, None)
    assert found.level == "poor" and "none converged" in found.sentence and "no trusted pose at all" in found.sentence
    start = Run(write_run(tmp_path / "start", truth, truth, lost=range(10)))
    assert "without a trusted pose until the first one" in verdict.judge(start, Errors(start)).sentence


def test_the_map_of_a_folder_that_moved(tmp_path, monkeypatch):
    """As it is named; in the folder or beside it, by path or name; from any working directory."""
    truth = drive_along(5)
    run = Run(write_run(tmp_path / "runs/a", truth, truth, summary={"map": "/gone/town/map.pcd", "bag": "sub/drive.bag"}))
    monkeypatch.chdir("/")
    assert run.path_of("map") is None is run.path_of("bag")
    beside = tmp_path / "runs/map.pcd"
    beside.write_text("x")
    (tmp_path / "runs/sub").mkdir()
    (tmp_path / "runs/sub/drive.bag").write_text("x")
    assert run.path_of("map") == beside and run.path_of("bag") == tmp_path / "runs/sub/drive.bag"
    run.summary["map"] = str(tmp_path / "runs/sub/drive.bag")
    assert run.path_of("map") == tmp_path / "runs/sub/drive.bag"


def judged(folder, truth, rows):
    run = Run(write_run(folder, truth, truth, rows=rows))
    return verdict.judge(run, Errors(run))


def moved(pose, shift_m):
    return (pose + [shift_m, 0, 0, 0, 0, 0, 0]).tolist()


def test_poses_against_the_prediction_are_not_good(tmp_path):
    """One innovation that chance does not explain, a jump without an innovation, scans that did not converge."""
    truth, usual = drive_along(400), {at: {"innovation": 2.4} for at in range(400)}
    one = judged(tmp_path / "one", truth, {**usual, 200: {"innovation": 15.0, "guess": moved(truth[200], 0.42)}})
    assert one.level == "fair" and "1 pose against the prediction, by 15 sigma and 42.0\N{NO-BREAK SPACE}cm" in one.sentence
    two = judged(tmp_path / "two", truth, {**usual, 7: {"innovation": 8.0}, 9: {"innovation": 7.0, "guess": moved(truth[9], 0.1)}})
    assert two.level == "fair" and "2 poses against the prediction, by up to 8 sigma and 10.0\N{NO-BREAK SPACE}cm" in two.sentence
    jump = judged(tmp_path / "jump", truth, {50: {"guess": moved(truth[50], 1.5)}, 60: {"guess": moved(truth[60], 0.42)}})
    assert jump.level == "fair" and "1 pose against the prediction, by 1.5\N{NO-BREAK SPACE}m" in jump.sentence
    unfinished = judged(tmp_path / "unfinished", truth, {at: {"outcome": "iteration_limit"} for at in range(0, 400, 50)})
    assert unfinished.level == "fair" and "392 converged (98\N{NO-BREAK SPACE}%)" in unfinished.sentence


def test_innovations_of_right_predictions_are_good(tmp_path, rng):
    """Innovations follow the law of chi-square: of 200 drives at most a few have a scan beyond the bound."""
    innovation = np.sqrt(rng.chisquare(6, (200, 1000)))
    run = Run(write_run(tmp_path / "drive", drive_along(1000), drive_along(1000)))
    found = []
    for drive in innovation:
        run.values["innovation"] = drive
        found.append(verdict.contradicting(run).any())
    assert sum(found) <= 2
    run.values["innovation"] = np.where(np.arange(1000) == 500, 6.6, innovation[0])  # once in ten million scans
    assert verdict.contradicting(run).nonzero()[0].tolist() == [500]
    start = judged(tmp_path / "start", drive_along(100), {0: {"guess": moved(drive_along(100)[0], 3.0)}, 1: {"innovation": 3.0}})
    assert start.level == "good"  # the first pose is given, not predicted


def test_the_worst_scans_are_the_worst(tmp_path):
    truth = drive_along(100)
    pose = truth.copy()
    pose[[20, 21, 60], 1] += [0.5, 0.4, 0.3]
    run = Run(write_run(tmp_path / "run", pose, truth))
    rows, by = worst_scans.choose(run)
    assert rows[:2] == [20, 60] and 21 not in rows and len(rows) == 10 and "ground truth" in by
    confidence = np.full(100, 0.99)
    confidence[[33, 80]] = 0.1, 0.2
    run = Run(write_run(tmp_path / "blind", truth, confidence=confidence))
    rows, by = worst_scans.choose(run)
    assert rows[:2] == [33, 80] and "no ground truth" in by


# ---- drawing


def test_long_lines_keep_their_extremes(rng):
    x, y = np.arange(100_000.0), rng.normal(size=100_000)
    y[77_777], y[5], y[40_000:40_010] = 50.0, -60.0, np.nan
    shown_x, shown = figures.decimate(x, y, 2000)
    assert len(shown) < 2600 and np.nanmax(shown) == 50.0 and np.nanmin(shown) == -60.0 and np.isnan(shown).any()
    assert (np.diff(shown_x) > 0).all() and shown_x[-1] == x[-1]


def test_rare_states_are_seen_in_strips():
    axes = figures.new("strip", "strip").axes
    names = np.full(50_000, "tracking", object).astype(str)
    names[31_415] = "lost"
    axis = plot_parts.Axis(np.arange(50_000.0), "time", np.empty(0, int))
    found = plot_parts.strip(axes[0], axis, names, {"tracking": figures.BLUE, "lost": figures.VERMILION})
    assert [(name, count) for name, _, count in found] == [("tracking", 49_999), ("lost", 1)]
    widths = [patch.get_width() for patch in axes[0].patches]
    assert len(widths) == 3 and sum(widths) == pytest.approx(50_000)


def test_pictures_are_png(rng):
    image = pytest.importorskip("PIL.Image")
    points = rng.uniform(-10, 10, size=(5000, 3))
    box = raster.Box(-10, -10, 20, 10)
    ground = raster.shades(raster.counts(points, box, 101, 50))
    scan = np.array([[-9.9, -9.95, 0], [9.99, -0.01, 0], [50, 50, 0]])
    picture = image.open(io.BytesIO(raster.picture(ground, scan, box, True, 0))).convert("RGBA")
    pixels = np.asarray(picture)
    assert pixels.shape == (50, 101, 4) and tuple(pixels[49, 0]) == (*raster.AFTER_RGB, 255) == tuple(pixels[0, 100])
    assert (pixels[..., :3] == raster.AFTER_RGB).all(axis=2).sum() == 2
    assert raster.counts(points, box, 101, 50).sum() == box.holds(points).sum()
    assert np.array_equal(raster.thicken(np.array([[0, 0, 0, 0], [0, 3, 0, 0], [0, 0, 0, 0]]), 1)[:, :3], np.full((3, 3), 3))


def test_figures_are_stable_files(folder, tmp_path):
    for kind in ("svg", "png"):
        out = tmp_path / kind
        assert run_report(folder, "--out", tmp_path / "out.html", "--figures", out, "--format", kind, "-q") == 0
        assert sorted(path.name for path in out.iterdir()) == sorted(f"{name}.{kind}" for name in FIGURES)
    for path in (tmp_path / "svg").iterdir():
        ElementTree.parse(path)
        assert "<text" not in path.read_text()  # letters as outlines: the same everywhere
    before = (tmp_path / "svg/ape.svg").read_bytes(), (tmp_path / "out.html").read_bytes()
    assert run_report(folder, "--out", tmp_path / "out.html", "--figures", tmp_path / "svg", "-q") == 0
    assert before == ((tmp_path / "svg/ape.svg").read_bytes(), (tmp_path / "out.html").read_bytes())
    for path in (tmp_path / "png").iterdir():
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and int.from_bytes(path.read_bytes()[16:20], "big") == 1800


def test_inline_figures_follow_the_theme(folder):
    report = page.Report(Run(folder))
    for one in report.drawings:
        svg = one.svg()
        ElementTree.fromstring(svg)
        assert "var(--ink)" in svg and "<text" in svg and figures.INK not in svg and one.caption
    assert [one.name for one in report.drawings] == FIGURES


# ---- folders that lack things


def html_of(folder, tmp_path):
    assert run_report(folder, "--out", tmp_path / "out.html", "-q") == 0
    return (tmp_path / "out.html").read_text()


def test_without_ground_truth(tmp_path):
    text = html_of(write_run(tmp_path / "run", drive_along(60)), tmp_path)
    assert "There is no ground truth for this replay" in text and "Reported uncertainty and innovation" in text and "APE" not in text


def test_results_alone(folder, tmp_path):
    for name in ("summary.json", "truth.tum"):
        (folder / name).unlink()
    text = html_of(folder, tmp_path)
    assert "points.bag is not there" in text and "The map is not drawn" in text and "config.yaml is not there" in text


def test_no_trusted_pose(tmp_path):
    text = html_of(write_run(tmp_path / "run", drive_along(30), drive_along(30), lost=range(30)), tmp_path)
    assert "no trusted pose at all" in text and "No pose is trusted where there is ground truth" in text and "No scan has a pose." in text


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_scans(count, tmp_path):
    text = html_of(write_run(tmp_path / "run", drive_along(count), drive_along(count)), tmp_path)
    assert f"{count} scan" in text and "too short for RPE over 10 m, 20 m, 50 m, 100 m" in text


def test_gaps_and_stamps_that_go_back(folder, tmp_path):
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    for at, row in enumerate(rows):
        row["stamp_ns"] += (at >= 50) * 40 * STEP_NS - (at == 120) * 20 * STEP_NS
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    html_of(folder, tmp_path)
    run = Run(folder)
    assert set(plot_parts.time_axis(run).gaps) >= {50, 120} and run.distance_m[-1] > 100


def test_values_that_are_null(folder, tmp_path):
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    for row in rows:
        for key in ("confidence", "iterations", "evaluations", "nvtl_normalized", "align_us", "match_ratio", "covariance", "state"):
            row[key] = None
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "200 scans, all converged" in html_of(folder, tmp_path)


def test_coordinates_of_utm(tmp_path, rng):
    """Far from the origin: nothing is lost, and the axes have short numbers."""
    truth = drive_along(80) + [389_000.0, 4_970_000.0, 120.0, 0, 0, 0, 0]
    run = Run(write_run(tmp_path / "run", truth + [0.02, 0, 0, 0, 0, 0, 0], truth))
    assert Errors(run).translation_m == pytest.approx(0.02, abs=1e-8)
    box = trajectory_figure.extent(run)
    one = trajectory_figure.draw(run, box, np.zeros(trajectory_figure.pixels(box)[::-1], int), [])
    assert one.axes[0].get_xlabel() == "x \N{MINUS SIGN} 389\N{NO-BREAK SPACE}000 [m]"
    assert max(map(abs, one.axes[0].get_xlim() + one.axes[0].get_ylim())) < 2000


def test_long_drives_stay_small(tmp_path):
    """Twenty thousand scans with states that change all the time."""
    truth = np.tile(drive_along(2000), (10, 1))
    confidence = np.tile([0.999, 0.95, 0.7, 0.2], 5000)
    folder = write_run(tmp_path / "run", truth, truth, lost=range(0, 20_000, 7), confidence=confidence)
    assert len(html_of(folder, tmp_path)) < 5_000_000


def test_names_from_outside_are_escaped(folder, tmp_path):
    summary = {"bag": "<script>alert(1)</script>.bag", "map": '"><img src=x onerror=alert(2)>', "hints": ["<b>hint</b>"],
               "settings": {"files": ["a b.yaml"], "overrides": ["a.b=$(x)"]}}
    (folder / "summary.json").write_text(json.dumps(summary))
    rows = (folder / "results.jsonl").read_text().replace('"reason": ""', '"reason": "<i>why</i>"')
    rows = rows.replace('"state": "tracking"', '"state": "$\\\\frac{ $"', 1)  # no formula of a figure
    (folder / "results.jsonl").write_text(rows)
    text = html_of(folder, tmp_path)
    assert "<script" not in text and "<img src=x" not in text and "<b>hint" not in text and "<i>why" not in text
    assert "&lt;b&gt;hint" in text and "--config &#x27;a b.yaml&#x27; --set &#x27;a.b=$(x)&#x27;" in text


def test_the_page_asks_for_nothing(folder, tmp_path):
    text = html_of(folder, tmp_path)
    assert "http://" not in text.replace("http://www.w3.org/", "") and "https://" not in text and "<script" not in text
    assert "<link rel=\"stylesheet\"" not in text and "@import" not in text and text.count("<h1>") == 1


def test_a_failure_keeps_the_old_page(folder, tmp_path):
    out = tmp_path / "out.html"
    out.write_text("old")
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / "summary.json").write_text("{")
    assert run_report(broken, "--out", out) == 3 and out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir() if ".part" in path.name] == []


def test_stamps_are_exact(folder):
    run = Run(folder)
    assert run.stamp_ns[7] == FIRST_STAMP_NS + 7 * STEP_NS and run.time_s[7] == pytest.approx(0.7)
    with pytest.raises(RunError):
        Run(folder / "nothing")


# ---- protection levels


def test_bound_of_a_share_is_exact():
    assert protection_figure.most_share(0, 0) == 1.0 and protection_figure.most_share(3, 3) == 1.0
    assert protection_figure.most_share(0, 100) == pytest.approx(1 - 0.05**0.01, rel=1e-9)
    assert protection_figure.most_share(2, 10) == pytest.approx(0.506901, abs=1e-6)  # the table of Clopper and Pearson, one-sided 95 %


def test_misleading_levels_are_counted_and_drawn(tmp_path):
    truth = drive_along(50)
    pose = truth.copy()
    pose[:, 2] += 0.1
    rows = {at: {"protection_level": {"lateral": 0.3, "longitudinal": 0.4, "vertical": 0.05 if at == 7 else 0.2, "heading": 0.01,
                                      "unsafe": at == 3, "reason": ""}} for at in range(50)}
    rows[9]["protection_level"] = dict.fromkeys(LEVELS)
    folder = write_run(tmp_path / "run", pose, truth, rows=rows, settings={"integrity": {"alert_limit_m": 0.35}})
    run = Run(folder)
    errors = Errors(run)
    lateral, longitudinal, vertical, heading = protection_figure.counts_of(run, errors, 0.35)
    assert (vertical.scans, vertical.levels, vertical.misleading, vertical.hazardous) == (50, 49, 1, 0)
    assert (lateral.misleading, lateral.available, longitudinal.available, heading.misleading) == (0, 49, 0, 0)
    assert run.unsafe.sum() == 1 and np.isinf(run.protection[9]).all()
    report = page.Report(run)
    assert report.drawings[5].name == "protection"
    assert "the alert limit, 0.35 m" in report.html() and "or without one: 1 of 50 poses." in report.html()


def test_odd_levels_are_none(tmp_path):
    truth = drive_along(5)
    odd = ("x", [1, 2], {"lateral": 1, "heading": 1e300}, {"lateral": [], "vertical": "two", "heading": {}})
    run = Run(write_run(tmp_path / "run", truth, truth, rows={at: {"protection_level": value} for at, value in enumerate(odd)}))
    known = np.isfinite(run.protection)
    assert known.sum() == 1 and known[2, 0] and not np.isinf(run.protection).any() and not run.unsafe.any()
