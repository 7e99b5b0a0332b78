"""Data sets by the names of their folders and files: what lies beside the scans, and where the sensors are."""
import json
import struct

import numpy as np
import pytest
from recording_maker import NS, only, read_bag, run_import

from ndtd.poses import from_euler, matrix
from ndtd.recordings import nuscenes

STAMP_US = 1326030975726043  # of NCLT


def _floats(path, columns=4, count=30, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    out = np.random.default_rng(seed).uniform(2, 9, (count, columns)).astype(np.float32)
    out.tofile(path)
    return out


def _import(capsys, path, tmp_path, *arguments):
    summary = run_import(capsys, path, "-o", tmp_path / "out.bag", "--force", "--json", *arguments).summary
    return summary, read_bag(tmp_path / "out.bag")


def _error(capsys, path, tmp_path, *arguments, code=3):
    done = run_import(capsys, path, "-o", tmp_path / "none.bag", *arguments, code=code)
    assert "Traceback" not in done.err
    return done.err.strip().split("\n")


def _transforms(records):
    return {one["frame_id"]: matrix(np.array(one["pose"])) for one in only(records, "transform")}


def test_stamps_of_any_size(tmp_path, capsys):
    sequence = tmp_path / "sequences/08"
    for at in range(2):
        _floats(sequence / f"velodyne/{at:06d}.bin", seed=at)
    (sequence / "times.txt").write_text("1.0\n99999999999999999999\n")
    (sequence / "calib.txt").write_text("Tr: 0 -1 0 0.1 0 0 -1 0.2 1 0 0 0.3\n")
    (sequence / "poses.txt").write_text("1 0 0 0 0 1 0 0 0 0 1 0\n" * 2)
    summary, _ = _import(capsys, sequence, tmp_path)
    assert summary["taken"] == {"scan": 1, "truth": 1} and sum(summary["left"].values()) == 2


def _sequence(tmp_path):
    sequence = tmp_path / "sequences/08"
    for at in range(3):
        _floats(sequence / f"velodyne/{at:06d}.bin", seed=at)
        (sequence / "labels").mkdir(exist_ok=True)
        (sequence / f"labels/{at:06d}.label").write_bytes(bytes(120))
    (sequence / "times.txt").write_text("0.0\n1.036550e-01\n2.073100e-01\n")
    (sequence / "calib.txt").write_text("Tr: 0 -1 0 0.1 0 0 -1 0.2 1 0 0 0.3\n")
    (sequence / "poses.txt").write_text("\n".join(f"1 0 0 0 0 1 0 0 0 0 1 {at}" for at in range(3)) + "\n")
    return sequence


def test_semantic_kitti(tmp_path, capsys):
    """Poses of the camera lie within the sequence; labels lie beside and are of no use."""
    summary, records = _import(capsys, _sequence(tmp_path), tmp_path)
    assert summary["taken"] == {"scan": 3, "truth": 3}
    assert only(records, "truth")[2]["pose"] == pytest.approx([2, 0, 0, 0, 0, 0, 1])


@pytest.mark.parametrize("file, data, why", [
    ("calib.txt", b"Tr: " + b"0 " * 12, "calib.txt: 'Tr:' is no rigid transform"), ("calib.txt", b"Tr: " + b"nan " * 12, "calib.txt: 'Tr:' is no rigid"),
    ("calib.txt", b"Tr: 1 0 0 inf 0 1 0 0 0 0 1 0", "calib.txt: 'Tr:' is no rigid transform"),
    ("calib.txt", b"\xff\xfe\0\x80" * 40, "calib.txt: no line 'Tr:' of 12 numbers"), ("calib.txt", b"Tr: 1 2 3", "calib.txt: no line 'Tr:'"),
    ("poses.txt", b"\xff\xfe\0\x80" * 40, "poses.txt: "), ("poses.txt", b"", "poses.txt: lines of 12 numbers"),
    ("poses.txt", b"1 2 3\n", "poses.txt: lines of 12 numbers"), ("poses.txt", b"1 2\n1 2 3\n", "poses.txt: ")])
def test_semantic_kitti_damaged(file, data, why, tmp_path, capsys):
    sequence = _sequence(tmp_path)
    (sequence / file).write_bytes(data)
    lines = _error(capsys, sequence, tmp_path)
    assert len(lines) == 1 and why in lines[0]


def test_true_poses_that_are_not_finite_are_dropped(tmp_path, capsys):
    sequence = _sequence(tmp_path)
    (sequence / "poses.txt").write_text("1 0 0 0 0 1 0 0 0 0 1 0\n" + "nan " * 12 + "\n1 0 0 0 0 1 0 0 0 0 inf 2\n")
    done = run_import(capsys, sequence, "-o", tmp_path / "out.bag", "--json")
    assert done.summary["taken"] == {"scan": 3, "truth": 1} and not done.summary["left"] and "Warning" not in done.err
    stamps = _mulran(tmp_path / "m")
    (tmp_path / "m/global_pose.csv").write_text(f"{stamps[0]},1,0,0,nan,0,1,0,0,0,0,1,0\n{stamps[1]},1,0,0,5,0,1,0,0,0,0,1,0\n")
    assert _import(capsys, tmp_path / "m", tmp_path, "--utm")[0]["taken"]["truth"] == 1


# ---- MulRan ----

def _mulran(folder, rows=3):
    stamps = [1567496784952532897 + at * NS // 10 for at in range(rows)]
    for at, stamp in enumerate(stamps):
        _floats(folder / f"sensor_data/Ouster/{stamp}.bin", seed=at)
    (folder / "global_pose.csv").write_text("".join(f"{stamp},1,0,0,{at},0,1,0,0,0,0,1,0\n" for at, stamp in enumerate(stamps)))
    (folder / "sensor_data/xsens_imu.csv").write_text("".join(
        f"{stamp + 7},0,0,0,1,0.1,0.2,0.3,{0.01 * at},0.02,0.03,1,2,9.8,11,12,13\n" for at, stamp in enumerate(stamps)))
    (folder / "sensor_data/gps.csv").write_text(f"{stamps[0] + 9},36.38,127.36,80.5,4,0,0,0,9,0,0,0,16\n")
    return stamps


def test_mulran(tmp_path, capsys):
    stamps = _mulran(tmp_path / "m")
    summary, records = _import(capsys, tmp_path / "m", tmp_path, "--utm")
    assert summary["taken"] == {"scan": 3, "truth": 3, "imu": 3, "gnss": 1} and summary["base_frame"] == "base_link"
    assert [scan["stamp_ns"] for scan in only(records, "scan")] == stamps
    imu = only(records, "imu")[2]
    assert imu["stamp_ns"] == stamps[2] + 7 and imu["angular_velocity"] == [0.02, 0.02, 0.03] and imu["linear_acceleration"] == [1, 2, 9.8]
    assert only(records, "gnss")[0]["deviation"] == pytest.approx([2, 3, 4])
    places = _transforms(records)  # calib_base2ouster.txt: the LiDAR looks back
    assert places["Ouster"][:3, 3] == pytest.approx([1.7042, -0.021, 1.8047]) and places["Ouster"][0, 0] == pytest.approx(-1, abs=1e-4)
    assert places["imu"][:3, 3] == pytest.approx([-0.07, 0, 1.7])
    assert only(records, "truth")[2]["pose"][0] == 2  # of the vehicle, as the file has it


@pytest.mark.parametrize("text", ["1567496784952532897,1,2\n", "abc,1,0,0,0,0,1,0,0,0,0,1,0\n", ""])
def test_a_damaged_table(text, tmp_path, capsys):
    _mulran(tmp_path / "m")
    (tmp_path / "m/global_pose.csv").write_text(text)
    lines = _error(capsys, tmp_path / "m", tmp_path)
    assert "global_pose.csv: " in lines[-1] and "lines of 13 numbers" in lines[-1]


# ---- NCLT ----

def _nclt_bin(path, xyz, intensity):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = np.zeros(len(xyz), [("xyz", "<u2", (3,)), ("intensity", "u1"), ("laser", "u1")])
    rows["xyz"], rows["intensity"] = np.rint((np.asarray(xyz) + 100) / 0.005), intensity
    path.write_bytes(rows.tobytes())


@pytest.mark.parametrize("layout", ["together", "archives"])
def test_nclt(layout, tmp_path, capsys):
    """The body and the map look down: x ahead, y right, z down. Here, both look up."""
    day = tmp_path / ("2012-01-08" if layout == "together" else "velodyne_data/2012-01-08")
    sensors = day if layout == "together" else tmp_path / "sensor_data/2012-01-08"
    truth = day if layout == "together" else tmp_path / "ground_truth"
    for at in range(3):
        _nclt_bin(day / f"velodyne_sync/{STAMP_US + at * 200_000}.bin", [(10, 2, 0.5), (-3.005, 0, -70)], [7, 200])
    for folder in (sensors, truth):
        folder.mkdir(parents=True, exist_ok=True)
    (truth / "groundtruth_2012-01-08.csv").write_text(
        f"{STAMP_US - 500},nan,nan,nan,nan,nan,nan\n{STAMP_US},100,20,3,0.01,0.02,0.5\n{STAMP_US + 9},101,20,3,0,0,0\n")
    (sensors / "odometry_mu_100hz.csv").write_text(f"{STAMP_US + 1},1,2,3,0,0,0.25\n{STAMP_US + 2},nan,2,3,0,0,0.25\n")
    (sensors / "ms25.csv").write_text(f"{STAMP_US + 2},0.1,0.2,0.3,0.5,0.25,-9.8,0.01,0.02,0.03\n")
    summary, records = _import(capsys, day, tmp_path)
    assert summary["taken"] == {"scan": 3, "truth": 2, "odometry": 1, "imu": 1}
    scan = only(records, "scan")[1]
    assert scan["stamp_ns"] == (STAMP_US + 200_000) * 1000 and scan["intensity"].tolist() == [7, 200]
    assert scan["points"] == pytest.approx(np.array([(10, -2, -0.5), (-3.005, 0, 70)]), abs=1e-5)
    # A landmark 10 m ahead of the vehicle, 2 m right and 0.5 m down: in the map of the data set, and in ours.
    F = np.diag([1.0, -1, -1, 1])
    landmark = matrix(from_euler((100, 20, 3), (0.01, 0.02, 0.5))) @ np.array([10, 2, 0.5, 1])
    ours = matrix(np.array(only(records, "truth")[0]["pose"])) @ np.array([10, -2, -0.5, 1])
    assert ours == pytest.approx(F @ landmark)
    assert matrix(np.array(only(records, "odometry")[0]["pose"])) == pytest.approx(matrix(from_euler((1, -2, -3), (0, 0, -0.25))))
    imu = only(records, "imu")[0]
    assert imu["angular_velocity"] == [0.01, -0.02, -0.03] and imu["linear_acceleration"] == [0.5, -0.25, 9.8]
    assert _transforms(records)["ms25"][:3, 3] == pytest.approx([-0.11, 0.18, 0.71])


def _hits(turns=3, packets=40, silence_s=0.0):
    """Packets of a sensor that turns clockwise in 0.1 s, seen from below, and sees a circle of 10 m from 45 deg on."""
    out = b""
    for at in range(turns * packets):
        us = STAMP_US + 100_000 * at // packets + (int(silence_s * 1e6) if at >= packets else 0)
        azimuth = np.pi / 4 + 2 * np.pi * (at / packets + np.arange(12) / 12 / packets)
        rows = np.zeros(12, [("xyz", "<u2", (3,)), ("intensity", "u1"), ("laser", "u1")])
        rows["xyz"] = np.rint((np.stack([10 * np.cos(azimuth), 10 * np.sin(azimuth), np.full(12, 1.5)], 1) + 100) / 0.005)
        rows["intensity"] = 77
        out += struct.pack("<4HIQ4x", *[44444] * 4, 12, us) + rows.tobytes()
    return out


def test_nclt_hits(tmp_path, capsys):
    """Packets become turns; the last one has no end. The sensor looks down, too, and is turned by -90 deg."""
    day = tmp_path / "2012-01-08"
    day.mkdir()
    (day / "velodyne_hits.bin").write_bytes(_hits())
    (day / "ms25.csv").write_text(f"{STAMP_US + 2},0.1,0.2,0.3,0.5,0.25,-9.8,0.01,0.02,0.03\n")
    for path in (day, day / "velodyne_hits.bin"):
        summary, records = _import(capsys, path, tmp_path)
        assert summary["taken"] == {"scan": 2, "imu": 1}
        scans = only(records, "scan")
        assert [len(scan["points"]) for scan in scans] == [480, 480] and (scans[0]["intensity"] == 77).all()
        assert [scan["stamp_ns"] for scan in scans] == [STAMP_US * 1000, (STAMP_US + 100_000) * 1000]
        assert scans[1]["time_s"] == pytest.approx(np.repeat(np.arange(40) * 0.0025, 12), abs=1e-6)
        assert scans[0]["points"][0] == pytest.approx([7.07, -7.07, -1.5], abs=0.006)
    place = _transforms(records)["velodyne"]
    body = matrix(from_euler((0.002, -0.004, -0.957), np.radians((0.807, 0.166, -90.703)))) @ np.array([3, 4, 5, 1])
    assert place @ np.array([3, -4, -5, 1]) == pytest.approx(np.diag([1, -1, -1, 1]) @ body)


def test_nclt_hits_with_a_silence_and_damage(tmp_path, capsys):
    file = tmp_path / "velodyne_hits.bin"
    file.write_bytes(_hits(silence_s=5)[:-50])
    summary, records = _import(capsys, file, tmp_path)
    assert [len(scan["points"]) for scan in only(records, "scan")] == [480, 480]
    assert any("velodyne_hits.bin: damaged: no packet at byte" in note for note in summary["notes"])
    for data in (b"\0" * 100, _hits(1)):
        file.write_bytes(data)
        assert "no turn of a Velodyne in it" in _error(capsys, file, tmp_path)[0]


def _packet(us, azimuth_rad=0.0):
    xy = np.rint((10 * np.array([np.cos(azimuth_rad), np.sin(azimuth_rad)]) + 100) / 0.005).astype(np.uint16)
    return struct.pack("<4HIQ4x", *[44444] * 4, 1, us) + struct.pack("<3HBB", *xy.tolist(), 20300, 77, 0)


def test_nclt_hits_of_a_sensor_that_does_not_turn(tmp_path, capsys):
    file = tmp_path / "velodyne_hits.bin"
    file.write_bytes(b"".join(_packet(STAMP_US + 10_000 * at) for at in range(350)))
    _, records = _import(capsys, file, tmp_path)
    assert [len(scan["points"]) for scan in only(records, "scan")] == [101] * 3  # the last one has no end


def test_nclt_hits_with_stamps_of_any_size(tmp_path, capsys):
    file = tmp_path / "velodyne_hits.bin"
    file.write_bytes(b"".join(_packet(us) for us in (STAMP_US, STAMP_US + 1, 2**64 - 1, 2**64 - 2, STAMP_US + 2)))
    summary, records = _import(capsys, file, tmp_path)
    assert [scan["stamp_ns"] for scan in only(records, "scan")] == [STAMP_US * 1000]
    assert summary["left"] == {"scan: its stamp is beyond the year 2115": 1}


def test_a_damaged_scan_of_nclt(tmp_path, capsys):
    day = tmp_path / "2012-01-08"
    for at in range(3):
        _nclt_bin(day / f"velodyne_sync/{STAMP_US + at}.bin", [(10, 2, 0.5)], [7])
    (day / f"velodyne_sync/{STAMP_US}.bin").write_bytes(b"123")
    summary, _ = _import(capsys, day, tmp_path)
    assert summary["taken"] == {"scan": 2}
    assert summary["left"] == {f"scan: {STAMP_US}.bin: 3 bytes are no whole number of points of 8 bytes": 1}


# ---- Newer College ----

def test_newer_college(tmp_path, capsys):
    """cloud_SECONDS_NANOSECONDS, which have no leading zeros; poses of the base."""
    root = tmp_path / "01_short_experiment"
    names = ["1583836591_182590976", "1583836591_82590976", "1583836591_982590976", "1583836592_5"]
    head = "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 9\nHEIGHT 1\nPOINTS 9\nDATA binary\n"
    for name in names:
        file = root / f"raw_format/ouster_scan/cloud_{name}.pcd"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(head.encode() + np.ones((9, 3), np.float32).tobytes())
    (root / "ground_truth").mkdir()
    (root / "ground_truth/registered_poses.csv").write_text(
        "#sec,nsec,x,y,z,qx,qy,qz,qw\n1583836591,82590976,5,6,7,0,0,0,1\n1583836592,5,8,6,7,0,0,1,0\n")
    summary, records = _import(capsys, root, tmp_path)
    assert summary["taken"] == {"scan": 4, "truth": 2}
    begin = 1583836591 * NS
    assert [scan["stamp_ns"] - begin for scan in only(records, "scan")] == [82590976, 182590976, 982590976, NS + 5]
    truth = only(records, "truth")
    assert [one["stamp_ns"] - begin for one in truth] == [82590976, NS + 5] and truth[1]["pose"] == pytest.approx([8, 6, 7, 0, 0, 1, 0])
    place = _transforms(records)["os1_lidar"]
    assert place[:3, 3] == pytest.approx([-0.084, -0.025, 0.05]) and np.degrees(np.arctan2(place[1, 0], place[0, 0])) == pytest.approx(135, abs=0.1)
    assert _import(capsys, root / "raw_format/ouster_scan", tmp_path)[0]["taken"] == {"scan": 4, "truth": 2}


# ---- nuScenes ----

def _nuscenes(root, scenes=("scene-0061", "scene-0103"), version="v1.0-mini"):
    """Two sweeps per scene; another sensor, and a scan of another scene between them."""
    tables = {name: [] for name in ("scene", "sample", "sensor", "calibrated_sensor", "sample_data", "ego_pose", "log")}
    tables["sensor"] = [{"token": "s1", "channel": "LIDAR_TOP", "modality": "lidar"}, {"token": "s2", "channel": "CAM_FRONT", "modality": "camera"}]
    for number, name in enumerate(scenes):
        tables["scene"].append({"token": f"scene{number}", "name": name, "description": f"drive {number}", "first_sample_token": f"sample{number}"})
        tables["sample"].append({"token": f"sample{number}", "scene_token": f"scene{number}", "timestamp": 0})
        for sensor in ("s1", "s2"):
            tables["calibrated_sensor"].append({"token": f"{sensor}c{number}", "sensor_token": sensor, "rotation": [0.7071067811865476, 0, 0, -0.7071067811865475],
                                                "translation": [0.94, 0.5 * number, 1.84], "camera_intrinsic": []})
        for at in range(2):
            stamp = 1532402927647951 + 50_000 * (2 * at + number)
            folder = "samples" if at == 0 else "sweeps"
            for sensor, file in (("s1", f"{folder}/LIDAR_TOP/n015-2018-07-24-11-22-45+0800__LIDAR_TOP__{stamp}.pcd.bin"), ("s2", f"{folder}/CAM_FRONT/{stamp}.jpg")):
                token = f"{sensor}-{stamp}"
                tables["sample_data"].append({"token": token, "sample_token": f"sample{number}", "ego_pose_token": token, "is_key_frame": at == 0,
                                              "calibrated_sensor_token": f"{sensor}c{number}", "timestamp": stamp, "filename": file})
                tables["ego_pose"].append({"token": token, "timestamp": stamp, "translation": [400 + at, 1100 + number, 0],
                                           "rotation": [1, 0, 0, 0]})
                if sensor == "s1":
                    _floats(root / file, 5, seed=10 * number + at)
    (root / version).mkdir(parents=True)
    for name, rows in tables.items():
        (root / version / f"{name}.json").write_text(json.dumps(rows, indent=0))


def test_nuscenes_scene(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(nuscenes, "_CHUNK", 100)  # records are split among chunks
    _nuscenes(tmp_path / "n")
    summary, records = _import(capsys, tmp_path / "n", tmp_path, "--scene", "scene-0103")
    assert summary["taken"] == {"scan": 2, "truth": 2}
    scans = only(records, "scan")
    assert [scan["stamp_ns"] for scan in scans] == [(1532402927647951 + us) * 1000 for us in (50_000, 150_000)]
    again = np.random.default_rng(11).uniform(2, 9, (30, 5)).astype(np.float32)
    assert (scans[1]["points"] == again[:, :3]).all() and (scans[1]["intensity"] == again[:, 3]).all()
    assert [one["pose"][:3] for one in only(records, "truth")] == [[400, 1101, 0], [401, 1101, 0]]
    place = _transforms(records)["LIDAR_TOP"]
    assert place[:3, 3] == pytest.approx([0.94, 0.5, 1.84]) and place[0, 1] == pytest.approx(1)  # -90 deg: w first


def test_nuscenes_scenes_are_listed(tmp_path, capsys):
    _nuscenes(tmp_path / "n")
    lines = _error(capsys, tmp_path / "n", tmp_path, code=2)
    assert lines[-1].endswith("v1.0-mini: 2 scenes; choose with --scene NAME") and lines[0].split() == ["scene-0061", "drive", "0"]
    assert "2 scenes; there is no scene-9" in _error(capsys, tmp_path / "n", tmp_path, "--scene", "scene-9", code=2)[-1]
    _nuscenes(tmp_path / "one", scenes=("scene-0061",))
    assert _import(capsys, tmp_path / "one", tmp_path)[0]["taken"]["scan"] == 2


def test_nuscenes_with_parts_of_its_files(tmp_path, capsys):
    _nuscenes(tmp_path / "n")
    first = next((tmp_path / "n/samples/LIDAR_TOP").glob("*927647951*"))
    first.unlink()
    summary, _ = _import(capsys, tmp_path / "n", tmp_path, "--scene", "scene-0061")
    assert summary["taken"] == {"scan": 1, "truth": 1} and "1 of 2 scans of scene-0061 have no file" in summary["notes"]
    for file in (tmp_path / "n/sweeps/LIDAR_TOP").iterdir():
        file.unlink()
    assert "2 scans of scene-0061 in its tables, and none of their files" in _error(capsys, tmp_path / "n", tmp_path, "--scene", "scene-0061")[-1]


@pytest.mark.parametrize("name,text,why", [
    ("ego_pose", "[]", "2 records are missing that another table names"), ("sample_data", '[{"token": "a"}]', "not those of nuScenes: KeyError"),
    ("sample", '[{"token": "a", "scene_token": "scene0"}, {"tok', "sample.json: damaged: no table of records"), ("scene", "", "scene.json: damaged"),
    ("sample_data", "[{\"token\": 1, \"sample_token\": \"sample0\", \"calibrated_sensor_token\": \"s1c0\", \"timestamp\": \"x\", \"filename\": \"a\"}]",
     "1 scans of scene-0061 in its tables, and none of their files"),
    ("sample_data", json.dumps([{"token": 1, "sample_token": "sample0", "calibrated_sensor_token": "s1c0", "timestamp": 1, "filename": "a" * 5000}]),
     "1 scans of scene-0061 in its tables, and none of their files"),
    ("sample", '[{"a":' * 100_000, "sample.json: damaged: no table of records"),
    *[("calibrated_sensor", json.dumps([{"token": "s1c0", "sensor_token": "s1", "rotation": rotation, "translation": [translation, 0, 0]}]), why)
      for rotation, translation, why in (([1, 0, 0], 1, "(6,)"), ([0, 0, 0, 0], 1, "the quaternion has length 0"), ([float("nan")] * 4, 1, "length nan"),
                                         ([1, 0, 0, 0], float("inf"), "[inf, 0, 0] is no translation"))],
    ("sample", "{}", "not those of nuScenes: KeyError 'scene_token'"), ("scene", "[1, 2]", "scene.json: damaged"),
])
def test_nuscenes_damaged_tables(name, text, why, tmp_path, capsys):
    _nuscenes(tmp_path / "n")
    (tmp_path / f"n/v1.0-mini/{name}.json").write_text(text)
    lines = _error(capsys, tmp_path / "n", tmp_path, "--scene", "scene-0061")
    assert len(lines) == 1 and why in lines[0]


# ---- stamps and names ----

def test_files_numbered_by_name_and_not_by_time(tmp_path, capsys):
    for at in range(4):
        _floats(tmp_path / f"s/scans/{at}.bin", seed=at)
    (tmp_path / "s/times.txt").write_text("10.0\n10.3\n10.1\n10.2\n")
    summary, records = _import(capsys, tmp_path / "s", tmp_path, "--columns", "4")
    scans = only(records, "scan")
    assert [scan["stamp_ns"] for scan in scans] == [10 * NS + at * NS // 10 for at in range(4)]
    assert [scan["seq"] for scan in scans] == [0, 1, 2, 3]
    assert (scans[3]["points"] == np.random.default_rng(1).uniform(2, 9, (30, 4)).astype(np.float32)[:, :3]).all()
    assert any("times.txt: 1 of 4 stamps are earlier than those before them: scans are in the order of their stamps" in note for note in summary["notes"])
