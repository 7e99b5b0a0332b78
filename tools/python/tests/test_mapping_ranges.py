"""The constant error of a sensor's ranges: found from a drive, undone for its poses, left in its map."""
import importlib.util
import json

import drive_bags
import numpy as np
import pytest
from drive_bags import truth_of

import ndtd
from ndtd import ndt_map_build
from ndtd.mapping import given, ranges, records
from ndtd.mapping.drive import Drive
from ndtd.mapping.work_state import WorkState

SHORT_M = 0.06  # what the sensor of the drives measures too little


@pytest.fixture(scope="module")
def street(simulate):
    return simulate("--seed", 8, "--scans", 80, "--beams", 16, "--columns", 600, "--map-spacing", 1)


@pytest.fixture(scope="module")
def short(street, tmp_path_factory):
    """The drive as a sensor measures it whose ranges are short."""
    path = tmp_path_factory.mktemp("short") / "drive.bag"
    with ndtd.BagWriter(path) as out:
        for scan in drive_bags.scans_of(street.bag):
            drive_bags.write(out, "scan", {**scan, "points": ranges.lengthen(scan["points"].astype(np.float64), -SHORT_M).astype(np.float32)})
    return path


def length_m(places):
    return np.linalg.norm(np.diff(places, axis=0), axis=1).sum()


def way_of(path):
    stamps_ns, T = given.read_tum(path)
    return stamps_ns, T[:, :3, 3]


def too_long(folder, street):
    """The part by which the way in a map is longer than the true one."""
    stamps_ns, places = way_of(folder / "poses.tum")
    truth = truth_of(street.bag)
    return length_m(places) / length_m(np.array([truth[int(stamp_ns)][:3, 3] for stamp_ns in stamps_ns])) - 1


def build(*arguments):
    assert ndt_map_build.main([*map(str, arguments), "--threads", "1"]) == 0


def test_short_ranges_are_found_and_the_way_is_as_long_as_it_was(street, short, tmp_path, capsys):
    has_report = importlib.util.find_spec("matplotlib") is not None
    build(short, "-o", tmp_path / "map", *(["--report"] if has_report else []))
    drive = json.loads((tmp_path / "map/map.json").read_text())["drives"][0]
    assert abs(drive["range_offset_m"] - SHORT_M) < 0.025
    assert drive["range_offset_told"]["deviation_m"] < 0.015 and drive["range_offset_told"]["scans"] > 50
    assert f"ranges corrected by {100 * drive['range_offset_m']:+.1f} cm" in capsys.readouterr().out
    assert not has_report or f"<td>{100 * drive['range_offset_m']:+.1f}</td>" in (tmp_path / "map/report.html").read_text()
    build(short, "-o", tmp_path / "left", "--range-offset", 0)
    assert abs(too_long(tmp_path / "map", street)) < 0.25 * abs(too_long(tmp_path / "left", street))


def test_right_ranges_stay(street, tmp_path, capsys):
    build(street.bag, "-o", tmp_path / "map")
    drive = json.loads((tmp_path / "map/map.json").read_text())["drives"][0]
    assert drive["range_offset_m"] == 0 and drive["range_offset_told"]["scans"] > 50
    assert "ranges corrected" not in capsys.readouterr().out


def test_the_map_has_the_points_as_they_were_measured(short, tmp_path):
    """With the same poses, the cloud with and without a correction is the same: scans of the sensor fit it as they are."""
    build(short, "-o", tmp_path / "left", "--range-offset", 0)
    build(short, "-o", tmp_path / "map", "--range-offset", 0.06, "--poses", tmp_path / "left/poses.tum")
    left, corrected = (ndtd.read_cloud(tmp_path / name / "map.pcd")["points"] for name in ("left", "map"))
    cells = [set(map(tuple, np.floor(points / 0.2).astype(int))) for points in (left, corrected)]
    assert len(cells[0] & cells[1]) > 0.9 * len(cells[0])


def fits_of(best_m, scans=200, noise=0.01, seed=1):
    """Fits as drives with the offsets have them."""
    random = np.random.default_rng(seed)
    of_offset = 0.55 - 0.9 * (np.array(ranges.OFFSETS_M) - best_m) ** 2
    return of_offset[:, None] + 0.05 * random.normal(size=scans) + noise * random.normal(size=(len(of_offset), scans)), np.ones((5, scans), bool)


@pytest.mark.parametrize("best_m", [-0.05, 0.0, 0.03, 0.08])
def test_the_peak_tells_the_offset(best_m):
    found = ranges.estimate(*fits_of(best_m, noise=0.002))
    assert abs(found.offset_m - best_m) < 4 * found.deviation_m < 0.04
    assert (found.correction_m == 0) == (best_m == 0)


def test_an_offset_that_is_not_certain_is_left():
    told = [ranges.estimate(*fits_of(0.0, noise=0.02, seed=seed)) for seed in range(100)]
    assert sum(one is not None and one.correction_m != 0 for one in told) <= 3
    assert ranges.Offset(0.05, 0.02, 100).correction_m == 0  # 2.5 deviations
    assert abs(ranges.Offset(0.09, 0.03, 100).correction_m - 0.045) < 1e-9  # half of what is as usual as it is certain


def test_drives_that_tell_nothing():
    fits, located = fits_of(0.05)
    assert ranges.estimate(fits[:, :30], located[:, :30]) is None  # few scans
    lost = fits.copy()
    lost[0, 100:] *= 0.5  # one drive took another way
    assert ranges.estimate(lost, located) is None
    assert ranges.estimate(1 - fits, located) is None  # no peak
    assert ranges.estimate(fits_of(0.5, noise=0.001)[0], located) is None  # beyond the offsets that were tried


def test_drives_of_one_sensor_have_one_offset():
    sure, unsure = ranges.Offset(0.06, 0.01, 400), ranges.Offset(0.03, 0.02, 60)
    both = ranges.pooled([sure, None, unsure])
    assert both.scans == 460 and abs(both.offset_m - 0.054) < 1e-9 and 0.008 < both.deviation_m < 0.0125
    assert ranges.pooled([sure]) == sure and ranges.pooled([None]) is None
    assert ranges.pooled([sure, ranges.Offset(-0.05, 0.01, 400)]) is None  # two sensors


def test_a_drive_that_tells_nothing_is_corrected_as_the_other(short, tmp_path):
    scans = drive_bags.scans_of(short)
    with ndtd.BagWriter(tmp_path / "few.bag") as out:
        for scan in scans[30:60]:
            drive_bags.write(out, "scan", scan)
    build(short, tmp_path / "few.bag", "-o", tmp_path / "map")
    one, few = json.loads((tmp_path / "map/map.json").read_text())["drives"]
    assert few["range_offset_told"] is None and few["range_offset_m"] == one["range_offset_m"] > 0.03


def test_the_record_of_it(tmp_path):
    state = WorkState(tmp_path / "work", {"a": 1}, print)
    assert records.load_offset(state, 0) == (False, None)
    records.save_offset(state, 0, ranges.Offset(0.05, 0.01, 100))
    records.save_offset(state, 1, None)
    assert records.load_offset(state, 0) == (True, ranges.Offset(0.05, 0.01, 100)) and records.load_offset(state, 1) == (True, None)


def test_given_poses_need_no_correction(short, tmp_path, monkeypatch):
    build(short, "-o", tmp_path / "left", "--range-offset", 0)
    monkeypatch.setattr(ranges, "find", lambda *_: pytest.fail("driven for nothing"))
    build(short, "-o", tmp_path / "map", "--poses", tmp_path / "left/poses.tum")


def test_points_keep_their_direction():
    points = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 0.01], [0.0, 0.0, 0.0]])
    assert np.allclose(ranges.lengthen(points, 0.5), [[3.3, 4.4, 0.0], [0.0, 0.0, 0.51], [0.0, 0.0, 0.0]])
    assert np.allclose(ranges.lengthen(points, -0.5)[1], 0)  # it does not pass the sensor
    inside = ndtd.preprocess(points[:1], voxel_m=0, sample_count=0, range_offset_m=0.5)
    assert np.allclose(inside, [[3.3, 4.4, 0.0]], atol=1e-6)


def test_each_drive_has_its_own_sensor():
    class Store:
        def scans(self):
            return [0, 5]

        def __getitem__(self, scan):
            return np.array([[10.0, 0.0, 2.0]], np.float32)

    mount = np.eye(4)
    mount[2, 3] = 2
    drives = [Drive("a", None), Drive("b", None, T_base_sensor=mount, range_offset_m=0.1)]
    seen = ranges.AsMeasured(Store(), drives, [0, 3])
    assert seen.scans() == [0, 5] and np.array_equal(seen[0], [[10, 0, 2]])
    assert np.allclose(seen[5], [[9.9, 0, 2]], atol=1e-5)


@pytest.mark.parametrize("value", ["nan", "1.5", "-2"])
def test_offsets_out_of_range(street, refused, value):
    said = refused(ndt_map_build.main, 2, street.bag, "-o", "m", "--range-offset", value)
    assert "--range-offset" in said and "outside -1 .. 1" in said
    said = refused(ndt_map_build.main, 2, street.bag, "-o", "m", "--range-offset", "-0.5", "--min-range", "0.5")
    assert "--range-offset: -0.5 leaves nothing of --min-range, 0.5" in said
