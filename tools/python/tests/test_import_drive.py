"""A drive as .bag, .db3 and .mcap gives the trajectory that its own bag gives, bit for bit."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import drive_bags
import pytest
import yaml
from recording_maker import only, read_bag, rows_of_drive, run_import, write_bag1, write_bag2

from ndtd import BagWriter

MOUNT = (1.2, 0.0, 1.8, 0.0, 0.0, 0.25881904510252074, 0.9659258262890683)


def _write(kind, folder, bag, lidar):
    if kind == "bag":
        return write_bag1(folder / "drive.bag", rows_of_drive(bag, True, lidar))
    if kind == "db3":
        write_bag2(folder / "drive", rows_of_drive(bag, False, lidar))
        return next((folder / "drive").glob("*.db3"))
    if kind == "mcap":
        write_bag2(folder / "drive", rows_of_drive(bag, False, lidar), "mcap", "storage")
        return next((folder / "drive").glob("*.mcap"))
    return write_bag2(folder / "drive", rows_of_drive(bag, False, lidar))


def _without_twist_of_initial_pose(bag, out):
    """ROS has no twist beside an initial pose: a bag without it."""
    with BagWriter(out) as writer:
        for kind, message in drive_bags.messages_of(bag):
            if kind != "truth":
                drive_bags.write(writer, kind, {**message, "twist": None, "covariance": None} if kind == "initial_pose" else message)
    return out


@pytest.mark.parametrize("kind", ["bag", "db3", "mcap", "folder"])
def test_simulated_drive(kind, simulate, trajectory_hash, tmp_path, capsys):
    drive = simulate("--seed", 5, "--scans", 20, "--beams", 16, "--columns", 600, "--map-spacing", 0.3, "--odometry", "--imu", 100,
                     "--mount", "1.2,0,1.8,0,0,30")
    recording, out = _write(kind, tmp_path, drive.bag, MOUNT), tmp_path / "out.bag"
    summary = run_import(capsys, recording, "-o", out, "--json").summary
    assert summary["taken"] == {"scan": 20, "odometry": 101, "imu": 201, "pose": 1}
    assert summary["base_frame"] == "base_link"
    assert any("middle of the sweep" in note for note in summary["notes"])
    settings = tmp_path / "out.bag.yaml"
    assert yaml.safe_load(settings.read_text()) == {"preprocess": {"deskew": "time"}}
    reference = _without_twist_of_initial_pose(drive.bag, tmp_path / "reference.bag")
    got, mount = trajectory_hash(out, drive.map, "-c", settings), ",".join(map(repr, MOUNT))
    assert got == trajectory_hash(reference, drive.map, "-c", settings, "--set", f"frames.T_base_sensor=[{mount}]")
    assert got != trajectory_hash(reference, drive.map, "-c", settings)  # where the sensor is matters
    importer = Path(sys.executable).with_name("ndt-import")
    if importer.exists():  # ndtd starts it: no file in between
        assert got == trajectory_hash(recording, drive.map, "-c", settings, env=dict(os.environ, NDT_IMPORT=str(importer)))


@pytest.mark.parametrize("kind", ["bag", "db3", "mcap"])
def test_kitti_drive(kind, shared_data, run_program, trajectory_hash, tmp_path, capsys):
    data = shared_data / "kitti0005_lite"
    packed, out = tmp_path / "packed.bag", tmp_path / "out.bag"
    run_program("ndt-bag", "pack", "--scans", data / "scans", "--times", data / "times.txt", "--format", "kitti",
                "--truth", data / "poses_velo_lidar_refined.txt", "--odometry", data / "poses_velo.txt",
                "--initial", "0,0,0,0,0,0,1", "--out", packed)
    recording = _write(kind, tmp_path, packed, (0, 0, 0, 0, 0, 0, 1))
    summary = run_import(capsys, recording, "-o", out, "--truth", "/truth", "--json").summary
    assert summary["taken"] == {"scan": 154, "odometry": 154, "truth": 154, "pose": 1}
    options = ("--set", "preprocess.deskew=azimuth_cw")
    map_path = data / "map_from_even_scans_0.20m.pcd"
    assert trajectory_hash(out, map_path, *options) == trajectory_hash(packed, map_path, *options)


def test_kitti_folder_is_what_pack_makes(shared_data, run_program, tmp_path, capsys):
    data, packed, out = shared_data / "kitti0005_lite", tmp_path / "packed.bag", tmp_path / "out.bag"
    run_program("ndt-bag", "pack", "--scans", data / "scans", "--times", data / "times.txt", "--out", packed)
    run_import(capsys, data, "-o", out, "--json")
    mine, theirs = only(read_bag(out), "scan"), only(read_bag(packed), "scan")
    assert [(s["seq"], s["stamp_ns"]) for s in mine] == [(s["seq"], s["stamp_ns"]) for s in theirs]
    for a, b in zip(mine, theirs):
        returns = b["points"].any(axis=1)
        assert (a["points"] == b["points"][returns]).all() and (a["intensity"] == b["intensity"][returns]).all()


def test_pipe(drive, trajectory_hash, bin_dir, tmp_path, capsys):
    """-o - | ndtd --replay -: the hash of the file."""
    recording = _write("mcap", tmp_path, drive.bag, (0, 0, 0, 0, 0, 0, 1))
    run_import(capsys, recording, "-o", tmp_path / "out.bag", "-q")
    importer = subprocess.run([sys.executable, "-m", "ndtd.ndt_import", str(recording), "-o", "-"], capture_output=True, check=True)
    assert importer.stdout == (tmp_path / "out.bag").read_bytes()
    assert b"taken: " in importer.stderr
    piped = subprocess.run([str(bin_dir / "ndtd"), "--replay", "-", "--map", str(drive.map)], input=importer.stdout, capture_output=True)
    assert piped.returncode == 0 and trajectory_hash(tmp_path / "out.bag", drive.map) in piped.stdout.decode()


def test_luminar(shared_data, tmp_path, capsys):
    """A ROS 1 bag of a real sensor: padded points, integer times, stamp of the last point, odometry that says nothing."""
    out = tmp_path / "out.bag"
    summary = run_import(capsys, shared_data / "ros_recordings/luminar_ros1/test.bag", "-o", out, "--json").summary
    assert summary["taken"] == {"scan": 5, "odometry": 5}
    assert any("/luminar_pointcloud" in note and "end of the sweep" in note for note in summary["notes"])
    assert any("odometry: its stamps are" in note and "before those of the scans" in note for note in summary["notes"])
    for scan in only(read_bag(out), "scan"):
        assert 35000 < len(scan["points"]) < 37000 and scan["frame_id"] == "luminar_lidar"
        assert abs(scan["time_s"].max()) < 1e-6 and -0.11 < scan["time_s"].min() < -0.05


def test_velodyne_packets(shared_data, tmp_path, capsys):
    """Packets of a VLP-16 against the cloud that Nebula decoded from them."""
    import numpy as np

    from ndtd._core import read_cloud
    folder = shared_data / "ros_recordings/velodyne_vlp16_ros2"
    run_import(capsys, folder, "-o", tmp_path / "out.bag", "--json")
    scans = only(read_bag(tmp_path / "out.bag"), "scan")
    assert len(scans) == 4 and scans[0]["frame_id"] == "velodyne"
    want, got = read_cloud(next(folder.glob("*.pcd")))["points"], scans[-1]["points"]
    assert abs(len(got) - len(want)) < 100
    assert 0.09 < np.ptp(scans[-1]["time_s"]) < 0.11 and scans[-1]["time_s"].min() > -1e-4
    # Both have the points of a firing in their own order: compare each with the nearest of the other.
    near = [np.linalg.norm(want - point, axis=1).min() for point in got[::50]]
    assert np.median(near) < 0.01 and max(near) < 0.1


def test_folder_with_pcd_beside_the_bag(tmp_path, drive, capsys):
    """metadata.yaml one level below wins over .pcd files."""
    (tmp_path / "all").mkdir()
    write_bag2(tmp_path / "all" / "inner", rows_of_drive(drive.bag))
    shutil.copy(drive.map, tmp_path / "all" / "1673400472138016708.pcd")
    summary = run_import(capsys, tmp_path / "all", "-o", tmp_path / "out.bag", "--json").summary
    assert summary["taken"]["scan"] == 20
