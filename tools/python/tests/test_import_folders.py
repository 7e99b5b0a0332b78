"""Folders: KITTI raw and odometry, nuScenes, MulRan, .pcd and .ply with stamps or without."""
import numpy as np
import pytest
from recording_maker import NS, only, read_bag, run_import

from ndtd.poses import matrix

KITTI_T0 = 1317042272349000000


def _floats(columns=4, count=30, seed=0):
    out = np.random.default_rng(seed).uniform(2, 9, (count, columns)).astype(np.float32)
    if columns == 5:
        out[:, 4] = np.arange(count) % 32  # rings
    return out


def _bin(path, columns=4, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    _floats(columns, seed=seed).tofile(path)


def _pcd(path, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    points = _floats(3, seed=seed)
    size = len(points)
    head = f"VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH {size}\nHEIGHT 1\nPOINTS {size}\nDATA binary\n"
    path.write_bytes(head.encode() + points.tobytes())


def _kitti_stamp(i):
    return f"2011-09-26 13:04:{32.349 + 0.1 * i:012.9f}"


def _kitti_raw(day, missing=()):
    drive = day / "2011_09_26_drive_0005_sync"
    for i in range(4):
        if i not in missing:
            _bin(drive / f"velodyne_points/data/{i:010d}.bin", seed=i)
        values = np.zeros(30)
        values[:6] = 49.0 + 1e-6 * i, 8.4, 112.8, 0, 0, np.pi / 2  # to the north, looking north
        values[8], values[13], values[19], values[23] = 1.1, 9.8, 0.25, 0.05
        file = drive / f"oxts/data/{i:010d}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(" ".join(repr(float(value)) for value in values))
    for folder in ("velodyne_points", "oxts"):
        (drive / folder / "timestamps.txt").write_text("\n".join(_kitti_stamp(i) for i in range(4)) + "\n")
    (day / "calib_imu_to_velo.txt").write_text("calib_time: 25-May-2012 16:47:16\nR: 1 0 0 0 1 0 0 0 1\nT: -0.8 0.3 -0.8\n")
    return drive


@pytest.mark.parametrize("names", [("Scans", "Times.txt"), ("SCANS", "times.txt"), ("scans", "times.txt")])
def test_names_of_folders_in_any_case(names, tmp_path, capsys):
    for i in range(3):
        _pcd(tmp_path / "drive" / names[0] / f"{i:04d}.pcd", seed=i)
    (tmp_path / "drive" / names[1]).write_text("100.0\n100.1\n100.2\n")
    run_import(capsys, tmp_path / "drive", "-o", tmp_path / "out.bag", "-q")
    assert [scan["stamp_ns"] for scan in only(read_bag(tmp_path / "out.bag"), "scan")] == [100 * NS + i * NS // 10 for i in range(3)]


def test_kitti_raw(tmp_path, capsys):
    import yaml
    drive = _kitti_raw(tmp_path, missing=(2,))
    summary = run_import(capsys, drive, "-o", tmp_path / "out.bag", "--json").summary
    assert summary["taken"] == {"scan": 3, "odometry": 4, "imu": 4} and summary["left"] == {
        "gnss: where the map is on Earth is not known: --projector FILE or --utm": 4}
    records = read_bag(tmp_path / "out.bag")
    scans = only(records, "scan")
    assert [scan["seq"] for scan in scans] == [0, 1, 3]
    assert [scan["stamp_ns"] - KITTI_T0 for scan in scans] == [0, NS // 10, 3 * NS // 10]
    assert (scans[2]["points"] == _floats(seed=3)[:, :3]).all()
    # The unit is 0.8 m ahead of the LiDAR, which is the base; it drives north, ahead.
    last = only(records, "odometry")[3]
    step_m = 3e-6 * np.pi / 180 * 6378137.0
    T_odom_base = matrix(np.array(last["pose"]))
    T_odom_unit = T_odom_base @ matrix(np.array([-0.8, 0.3, -0.8, 0, 0, 0, 1]))
    assert T_odom_unit[:3, 3] == pytest.approx([step_m, 0, 0], abs=1e-6)
    assert last["twist"] == pytest.approx([1.1 + 0.25 * 0.3, 0.25 * 0.8, 0, 0, 0, 0.25])
    assert only(records, "imu")[0]["linear_acceleration"] == [0, 0, 9.8]
    assert [kind for kind, _, _ in records[-3:]] == ["odometry", "imu", "scan"]
    settings = yaml.safe_load((tmp_path / "out.bag.yaml").read_text())
    assert settings["preprocess"] == {"deskew": "azimuth_cw", "sweep_stamp": "middle"}


def test_kitti_raw_without_calibration(tmp_path, capsys):
    drive = _kitti_raw(tmp_path)
    (tmp_path / "calib_imu_to_velo.txt").unlink()
    summary = run_import(capsys, drive, "-o", tmp_path / "out.bag", "--json").summary
    assert any("calib_imu_to_velo.txt" in note for note in summary["notes"])


@pytest.mark.parametrize("name, data, why", [
    ("../calib_imu_to_velo.txt", b"R: 0 0 0 0 0 0 0 0 0\nT: 0 0 0\n", "no rigid transform"), ("../calib_imu_to_velo.txt", b"\xff\xfe" * 99, "no lines 'R:'"),
    ("../calib_imu_to_velo.txt", b"R: 1 0 0 0 1 0 0 0 1\nT: nan 0 0\n", "no rigid transform"),
    ("oxts/data/0000000001.txt", b"\xff " * 30, "could not convert string to float")])
def test_kitti_raw_damaged(name, data, why, tmp_path, capsys):
    drive = _kitti_raw(tmp_path)
    (drive / name).write_bytes(data)
    said = run_import(capsys, drive, "-o", tmp_path / "out.bag", code=3).err
    assert said.count("\n") == 1 and name.split("/")[-1] + ": " in said and why in said


def test_kitti_folder_of_the_day(tmp_path, capsys):
    _kitti_raw(tmp_path / "2011_09_26")
    summary = run_import(capsys, tmp_path / "2011_09_26", "-o", tmp_path / "out.bag", "--json").summary
    assert summary["taken"]["scan"] == 4


def test_kitti_odometry(tmp_path, capsys):
    """Poses of the camera become those of the LiDAR."""
    sequence = tmp_path / "sequences/05"
    for i in range(3):
        _bin(sequence / f"velodyne/{i:06d}.bin", seed=i)
    (sequence / "times.txt").write_text("0.000000e+00\n1.036550e-01\n2.073100e-01\n")
    (sequence / "calib.txt").write_text("P0: " + "0 " * 12 + "\nTr: 0 -1 0 0.1 0 0 -1 0.2 1 0 0 0.3\n")
    (tmp_path / "poses").mkdir()
    (tmp_path / "poses/05.txt").write_text("\n".join(f"1 0 0 0 0 1 0 0 0 0 1 {i}" for i in range(3)) + "\n")
    summary = run_import(capsys, sequence, "-o", tmp_path / "out.bag", "--json").summary
    assert summary["taken"] == {"scan": 3, "truth": 3}
    records = read_bag(tmp_path / "out.bag")
    assert [scan["stamp_ns"] for scan in only(records, "scan")] == [0, 103655000, 207310000]
    assert only(records, "truth")[2]["pose"] == pytest.approx([2, 0, 0, 0, 0, 0, 1])  # z of the camera is x of the LiDAR


def test_nuscenes(tmp_path, capsys):
    for i in range(3):
        _bin(tmp_path / f"n/samples/LIDAR_TOP/n015-2018-07-24-11-22-45+0800__LIDAR_TOP__{1532402927647951 + i * 50000}.pcd.bin", 5, i)
    run_import(capsys, tmp_path / "n", "-o", tmp_path / "out.bag", "-q")
    scans = only(read_bag(tmp_path / "out.bag"), "scan")
    assert [scan["stamp_ns"] for scan in scans] == [1532402927647951000 + i * 50000000 for i in range(3)]
    _bin(tmp_path / "n/sweeps/LIDAR_TOP/n015-2018-07-24-11-22-45+0800__LIDAR_TOP__1532402927672951.pcd.bin", 5, 9)
    run_import(capsys, tmp_path / "n", "-o", tmp_path / "out.bag", "-q", "--force")
    all_scans = only(read_bag(tmp_path / "out.bag"), "scan")
    assert len(all_scans) == 4 and (np.diff([scan["stamp_ns"] for scan in all_scans]) >= 0).all()
    assert (scans[1]["points"] == _floats(5, seed=1)[:, :3]).all() and (scans[1]["intensity"] == _floats(5, seed=1)[:, 3]).all()


def test_mulran(tmp_path, capsys):
    stamps = [1567496784952532897 + i * 100000000 for i in range(3)]
    for i, stamp in enumerate(stamps):
        _bin(tmp_path / f"m/sensor_data/Ouster/{stamp}.bin", seed=i)
    (tmp_path / "m/global_pose.csv").write_text("".join(f"{stamp + 5},1,0,0,{i},0,1,0,0,0,0,1,0\n" for i, stamp in enumerate(stamps)))
    summary = run_import(capsys, tmp_path / "m", "-o", tmp_path / "out.bag", "--json").summary
    assert summary["taken"] == {"scan": 3, "truth": 3}
    records = read_bag(tmp_path / "out.bag")
    assert [scan["stamp_ns"] for scan in only(records, "scan")] == stamps
    assert only(records, "truth")[2]["pose"][0] == 2


@pytest.mark.parametrize("names,stamps", [
    (["1673400149.711850138.pcd", "1673400149.811850138.pcd"], [1673400149711850138, 1673400149811850138]),
    (["1673400149711.pcd", "1673400149811.pcd"], [1673400149711000000, 1673400149811000000]),
])
def test_stamps_as_names(names, stamps, tmp_path, capsys):
    for name in names:
        _pcd(tmp_path / "s" / name)
    run_import(capsys, tmp_path / "s", "-o", tmp_path / "out.bag", "-q")
    assert [scan["stamp_ns"] for scan in only(read_bag(tmp_path / "out.bag"), "scan")] == stamps


def test_stamps_and_rate(tmp_path, capsys):
    for i in range(3):
        _pcd(tmp_path / f"s/scan_{i}.pcd", i)
    done = run_import(capsys, tmp_path / "s", "-o", tmp_path / "out.bag", code=3)
    assert "--times FILE, one stamp per line; or --rate HZ" in done.err
    run_import(capsys, tmp_path / "s", "-o", tmp_path / "out.bag", "--rate", 20, "-q")
    assert [scan["stamp_ns"] for scan in only(read_bag(tmp_path / "out.bag"), "scan")] == [0, 50000000, 100000000]
    (tmp_path / "stamps.txt").write_text("# seconds\n12.5\n12.6\n12.7\n")
    run_import(capsys, tmp_path / "s", "-o", tmp_path / "out.bag", "--times", tmp_path / "stamps.txt", "--force", "-q")
    scans = only(read_bag(tmp_path / "out.bag"), "scan")
    assert [scan["stamp_ns"] for scan in scans] == [12500000000, 12600000000, 12700000000]
    assert (scans[1]["points"] == _floats(3, seed=1)).all()


@pytest.mark.parametrize("text,message", [("12.5\nnan\n12.7\n", "line 2: 'nan' is not a stamp"), ("1\n2\n", "2 stamps for 3 scans"),
                                          ("1\n2\n3\n4\n", "1 2 3"), ("1\n\xff\n", "")])
def test_bad_stamps(text, message, tmp_path, capsys):
    for i in "abc":
        _pcd(tmp_path / f"s/{i}.pcd")
    (tmp_path / "stamps.txt").write_text(text, encoding="latin-1")
    done = run_import(capsys, tmp_path / "s", "-o", tmp_path / "out.bag", "--times", tmp_path / "stamps.txt", code=3)
    assert message in done.err or "4 stamps for 3 scans" in done.err


def test_stamps_beyond_the_limit_are_left(tmp_path, capsys):
    for stamp in ("1673400149711850138", "4600000000000000001", "9673400149811850138"):
        _pcd(tmp_path / "s" / f"{stamp}.pcd")
    summary = run_import(capsys, tmp_path / "s", "-o", tmp_path / "out.bag", "--json").summary
    assert summary["taken"] == {"scan": 1} and summary["left"] == {"scan: its stamp is beyond the year 2115": 2}
    assert len(only(read_bag(tmp_path / "out.bag"), "scan")) == 1


def test_damaged_scans_are_left(tmp_path, capsys):
    for i in range(3):
        _bin(tmp_path / f"s/{i}.bin", seed=i)
    (tmp_path / "s/1.bin").write_bytes(b"123")
    (tmp_path / "s/2.bin").write_bytes(b"")
    summary = run_import(capsys, tmp_path / "s", "-o", tmp_path / "out.bag", "--rate", 10, "--columns", 4, "--json").summary
    assert summary["taken"] == {"scan": 1}
    assert summary["left"] == {"scan: 1.bin: 3 bytes are no whole number of points of 4 floats": 1, "scan: no points": 1}
