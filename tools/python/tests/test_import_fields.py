"""The points of every driver: fields, units of their times, layouts that are legal and seldom."""
import numpy as np
import pytest
from recording_maker import NS, T0, Messages, import_rows, only, write_bag1

COUNT, SWEEP_S = 600, 0.1
CLOUD = "sensor_msgs/msg/PointCloud2"


def _xyz(seed=0):
    return np.random.default_rng(seed).uniform(2, 50, (COUNT, 3)).astype(np.float32)


def _records(fields, times, itemsize=None, begin=0):
    """Records with x y z, and `times` in the fields that are not x y z or numbers."""
    offset, names, formats, offsets = begin, [], [], []
    for name, kind in [("x", "<f4"), ("y", "<f4"), ("z", "<f4")] + fields:
        names.append(name)
        formats.append(kind)
        offsets.append(offset)
        offset += np.dtype(kind).itemsize
    out = np.zeros(COUNT, np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize or offset}))
    for name, column in zip("xyz", _xyz().T):
        out[name] = column
    for name, values in times.items():
        out[name] = values
    return out


T = np.linspace(0, SWEEP_S, COUNT)  # since the begin of the sweep
STAMP = T0 + 123456789
T_NS = STAMP + np.round(T * 1e9).astype(np.int64)
ABSOLUTE = np.float64(STAMP // NS) + (STAMP % NS) * 1e-9 + T

# Driver: fields beside x y z, their values, times that follow, where the stamp lies.
DRIVERS = {
    "velodyne": ([("intensity", "<f4"), ("ring", "<u2"), ("time", "<f4")], {"time": T}, T, "begin"),
    "velodyne_end": ([("intensity", "<f4"), ("ring", "<u2"), ("time", "<f4")], {"time": T - SWEEP_S}, T - SWEEP_S, "end"),
    "velodyne_middle": ([("intensity", "<f4"), ("time", "<f4")], {"time": T - SWEEP_S / 2}, T - SWEEP_S / 2, "middle"),
    "ouster": ([("intensity", "<f4"), ("t", "<u4"), ("reflectivity", "<u2"), ("ring", "u1"), ("ambient", "<u2"), ("range", "<u4")],
               {"t": np.round(T * 1e9)}, T, "begin"),
    "hesai": ([("intensity", "<f4"), ("ring", "<u2"), ("timestamp", "<f8")], {"timestamp": ABSOLUTE}, T, "begin"),
    "robosense_end": ([("intensity", "<f4"), ("ring", "<u2"), ("timestamp", "<f8")], {"timestamp": ABSOLUTE - SWEEP_S}, T - SWEEP_S, "end"),
    "livox_points": ([("intensity", "<f4"), ("tag", "u1"), ("line", "u1"), ("timestamp", "<f8")], {"timestamp": ABSOLUTE * 1e9}, T,
                     "begin"),
    "fast_lio": ([("intensity", "<f4"), ("normal_x", "<f4"), ("normal_y", "<f4"), ("normal_z", "<f4"), ("curvature", "<f4")],
                 {"curvature": T * 1e3}, T, "begin"),
    "luminar": ([("intensity", "<f4"), ("time_sec", "<u4"), ("time_nsec", "<u4")],
                {"time_sec": T_NS // NS, "time_nsec": T_NS % NS}, T, "begin"),
    "autoware_xyzircaedt": ([("intensity", "u1"), ("return_type", "u1"), ("channel", "<u2"), ("azimuth", "<f4"), ("elevation", "<f4"),
                             ("distance", "<f4"), ("time_stamp", "<u4")], {"time_stamp": np.round(T * 1e9)}, T, "begin"),
    "autoware_xyziradrt": ([("intensity", "<f4"), ("ring", "<u2"), ("azimuth", "<f4"), ("distance", "<f4"), ("return_type", "u1"),
                            ("time_stamp", "<f8")], {"time_stamp": ABSOLUTE}, T, "begin"),
    "aeva": ([("reflectivity", "<f4"), ("velocity", "<f4"), ("time_offset_ns", "<i4")], {"time_offset_ns": np.round(T * 1e9)}, T, "begin"),
    "microseconds": ([("time", "<u4")], {"time": np.round(T * 1e6)}, T, "begin"),
    "milliseconds": ([("t", "<f4")], {"t": T * 1e3}, T, "begin"),
    "absolute_microseconds": ([("timestamp", "<f8")], {"timestamp": ABSOLUTE * 1e6}, T, "begin"),
    "time_us": ([("time_us", "<u4")], {"time_us": np.round(T * 1e6)}, T, "begin"),
}


@pytest.mark.parametrize("driver", list(DRIVERS))
def test_driver(driver, tmp_path, capsys):
    fields, times, want, place = DRIVERS[driver]
    cloud = Messages().cloud(STAMP, "top", _records(fields, times))
    summary, records = import_rows(capsys, tmp_path, [("/points", CLOUD, STAMP, cloud)])
    scan = only(records, "scan")[0]
    assert scan["stamp_ns"] == STAMP and scan["frame_id"] == "top"
    assert (scan["points"] == _xyz()).all()
    assert np.abs(scan["time_s"] - want).max() < 2e-6
    assert any(f"at the {place} of the sweep" in note for note in summary["notes"]), summary["notes"]
    has_intensity = {"intensity", "reflectivity"} & {name for name, _ in fields}
    assert (scan["intensity"] is not None) == bool(has_intensity)


def test_time_unit_is_what_the_user_says(tmp_path, capsys):
    cloud = Messages().cloud(STAMP, "top", _records([("time", "<u4")], {"time": np.round(T * 1e9)}))
    _, records = import_rows(capsys, tmp_path, [("/points", CLOUD, STAMP, cloud)], "--time-unit", "us")
    assert only(records, "scan")[0]["time_s"] is None  # 100000 s are no sweep
    _, records = import_rows(capsys, tmp_path, [("/points", CLOUD, STAMP, cloud)], "--time-unit", "ns")
    assert np.abs(only(records, "scan")[0]["time_s"] - T).max() < 2e-6


@pytest.mark.parametrize("times,note", [
    ({"time": ("<f4", np.full(COUNT, 1.7e9))}, "clock in float32"),
    ({"time": ("<f4", np.zeros(COUNT))}, "the same for all points"),
    ({"time": ("<f4", np.full(COUNT, np.nan))}, ""),
    ({"curvature": ("<f4", np.linspace(0, 0.33, COUNT))}, ""),
])
def test_times_that_say_nothing(times, note, tmp_path, capsys):
    fields, values = [(name, kind) for name, (kind, _) in times.items()], {name: one for name, (_, one) in times.items()}
    cloud = Messages().cloud(STAMP, "top", _records(fields, values))
    summary, records = import_rows(capsys, tmp_path, [("/points", CLOUD, STAMP, cloud)])
    assert only(records, "scan")[0]["time_s"] is None
    assert not note or any(note in one for one in summary["notes"])


def test_times_of_another_clock(tmp_path, capsys):
    cloud = Messages().cloud(STAMP, "top", _records([("timestamp", "<f8")], {"timestamp": 4321.5 + T[::-1]}))
    summary, records = import_rows(capsys, tmp_path, [("/points", CLOUD, STAMP, cloud)])
    assert np.abs(only(records, "scan")[0]["time_s"] - (T[::-1] - SWEEP_S / 2)).max() < 2e-6
    assert any("another clock" in note and "in the middle" in note for note in summary["notes"])


@pytest.mark.parametrize("offset_s", [-5, -1, -0.3, 0.3, 3, 9.98, 10])
@pytest.mark.parametrize("unit", [1, 1e3])
def test_times_off_the_stamps(offset_s, unit, tmp_path, capsys):
    """A clock that is a few seconds off: within the 10 s of a relative time."""
    cloud = Messages().cloud(STAMP, "top", _records([("time", "<f4")], {"time": (offset_s + T) * unit}))
    summary, records = import_rows(capsys, tmp_path, [("/points", CLOUD, STAMP, cloud)])
    assert np.abs(only(records, "scan")[0]["time_s"] - (T - SWEEP_S / 2)).max() < 2e-6
    assert sum("another clock" in note for note in summary["notes"]) == 1


@pytest.mark.parametrize("stray_s", [8.0, -0.9, 1e9, np.nan])
@pytest.mark.parametrize("field,per_s", [("time", 1), ("time", 1e3), ("timestamp", 1), ("timestamp", 1e9)])
def test_strays(stray_s, field, per_s, tmp_path, capsys):
    """1 % of the points, and the first, with a time that is not of this sweep."""
    times = (ABSOLUTE if field == "timestamp" else T.copy()) * per_s
    times[::100] += stray_s * per_s
    kind = "<f8" if field == "timestamp" else "<f4"
    cloud = Messages().cloud(STAMP, "top", _records([(field, kind)], {field: times}))
    summary, records = import_rows(capsys, tmp_path, [("/points", CLOUD, STAMP, cloud)])
    got, right = only(records, "scan")[0]["time_s"], np.arange(COUNT) % 100 != 0
    assert np.isnan(got[~right]).all() and np.abs(got - T)[right].max() < 2e-6
    assert any("6 points have no time" in note for note in summary["notes"])


def test_big_endian(tmp_path, capsys):
    little = _records([("intensity", "<f4"), ("t", "<u4")], {"t": np.round(T * 1e9), "intensity": np.arange(COUNT)})
    big = little.astype(np.dtype([(name, little.dtype[name].newbyteorder(">")) for name in little.dtype.names]))
    _, records = import_rows(capsys, tmp_path, [("/points", CLOUD, STAMP, Messages().cloud(STAMP, "top", big))])
    scan = only(records, "scan")[0]
    assert (scan["points"] == _xyz()).all() and (scan["intensity"] == np.arange(COUNT)).all()
    assert np.abs(scan["time_s"] - T).max() < 2e-6


def test_layout(tmp_path, capsys):
    """Padding within points and behind rows, odd offsets, an organised cloud whose gaps are NaN or zero."""
    points = _records([("pad", "u1"), ("intensity", "<f4"), ("t", "<u4")], {"t": np.round(T * 1e9)}, itemsize=48, begin=3)
    points["x"][5], points["t"][5] = np.nan, 4_000_000_000
    points["y"][7] = np.inf
    for name in "xyz":
        points[name][9] = 0
    cloud = Messages().cloud(STAMP, "top", points, rows=6, row_padding=13)
    summary, records = import_rows(capsys, tmp_path, [("/points", CLOUD, STAMP, cloud)])
    scan, keep = only(records, "scan")[0], np.setdiff1d(np.arange(COUNT), [5, 7, 9])
    assert (scan["points"] == _xyz()[keep]).all() and np.abs(scan["time_s"] - T[keep]).max() < 2e-6
    assert summary["empty_points"] == 3 and summary["points"] == COUNT - 3


def test_double_coordinates(tmp_path, capsys):
    far = np.zeros(COUNT, [("x", "<f8"), ("y", "<f8"), ("z", "<f8")])
    far["x"], far["y"], far["z"] = 389000.123 + T, 4970000.456 - T, 120.5
    _, records = import_rows(capsys, tmp_path, [("/points", CLOUD, STAMP, Messages().cloud(STAMP, "top", far))])
    scan = only(records, "scan")[0]
    xyz = scan["points"].astype(np.float64) + scan["origin"]
    assert np.abs(xyz[:, 0] - far["x"]).max() < 1e-3 and np.abs(xyz[:, 1] - far["y"]).max() < 1e-3


@pytest.mark.parametrize("package", ["livox_ros_driver", "livox_ros_driver2"])
@pytest.mark.parametrize("is_ros1", [False, True])
def test_livox_custom(package, is_ros1, tmp_path, capsys):
    from recording_maker import read_bag, run_import
    points = np.zeros(COUNT, [("offset_time", "<u4"), ("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("reflectivity", "u1"), ("tag", "u1"),
                              ("line", "u1")])
    for name, column in zip("xyz", _xyz().T):
        points[name] = column
    points["offset_time"], points["reflectivity"] = np.round(T * 1e9), np.arange(COUNT) % 200
    for frame in ("livox", "livox_frame_9"):  # the name moves what is aligned behind it
        message = Messages(is_ros1).livox(STAMP, frame, points, package)
        rows = [("/livox/lidar", f"{package}/msg/CustomMsg", STAMP, message)]
        if is_ros1:
            run_import(capsys, write_bag1(tmp_path / f"{frame}.bag", rows), "-o", tmp_path / "out.bag", "--force", "--json")
            records = read_bag(tmp_path / "out.bag")
        else:
            (tmp_path / frame).mkdir()
            _, records = import_rows(capsys, tmp_path / frame, rows)
        scan = only(records, "scan")[0]
        assert scan["frame_id"] == frame and scan["stamp_ns"] == STAMP
        assert (scan["points"] == _xyz()).all() and (scan["intensity"] == np.arange(COUNT) % 200).all()
        assert np.abs(scan["time_s"] - T).max() < 2e-6


def test_livox_timebase(tmp_path, capsys):
    """Times count from the timebase, which need not be the stamp."""
    points = np.zeros(COUNT, [("offset_time", "<u4"), ("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("reflectivity", "u1"), ("tag", "u1"),
                              ("line", "u1")])
    points["x"], points["offset_time"] = 3, np.round(T * 1e9)
    message = Messages().livox(STAMP, "livox", points, timebase=STAMP - NS // 10)
    _, records = import_rows(capsys, tmp_path, [("/livox/lidar", "livox_ros_driver2/msg/CustomMsg", STAMP, message)])
    assert np.abs(only(records, "scan")[0]["time_s"] - (T - 0.1)).max() < 2e-6
