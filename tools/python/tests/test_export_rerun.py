"""ndt-export to Rerun: read back by Rerun's own reader with the same values."""
import json
import subprocess
import sys

import numpy as np
import pytest
from drive_bags import truth_of
from rerun_reading import read_rrd, static, timed

from ndtd import _core, ndt_export

rr = pytest.importorskip("rerun")

INFO = "projector_type: LocalCartesianUTM\nvertical_datum: WGS84\nmap_origin: {latitude: 49.0, longitude: 8.4}\n"


def replay(drive, folder, run_program):
    """Results of the drive as ndtd writes them, as rows."""
    run_program("ndtd", "--replay", drive.bag, "--map", drive.map, "--results", folder / "results.jsonl", "--set", "preprocess.deskew=time")
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def export(folder, name, *options):
    assert ndt_export.main([str(word) for word in (folder / "results.jsonl", folder / name, "-q", *options)]) == 0
    return read_rrd(folder / name)


def test_a_recording_is_read_back(drive, run_program, tmp_path):
    rows, truth = replay(drive, tmp_path, run_program), truth_of(drive.bag)
    (tmp_path / "map_projector_info.yaml").write_text(INFO)
    found = export(tmp_path, "drive.rrd", "--bag", drive.bag, "--map", drive.map, "--map-points", 5000, "--projector", tmp_path / "map_projector_info.yaml")
    poses, exact, fixes, scans = (timed(found, name) for name in ("/map/base_link", "/position_m", "/fix", "/map/scan"))
    assert len(poses) == len(exact) == len(fixes) == len(scans) == len(rows) == 20
    for row, (stamp_ns, pose), (_, position), (_, fix) in zip(rows, poses, exact, fixes):
        assert stamp_ns == row["stamp_ns"]
        assert np.allclose(pose["Transform3D:translation"][0], row["pose"][:3], atol=1e-5)
        assert np.allclose(pose["Transform3D:quaternion"][0], row["pose"][3:], atol=1e-6)
        assert position["Scalars:scalars"].tolist() == row["pose"][:3]  # float64, bit by bit
        assert np.linalg.norm(pose["Transform3D:translation"][0] - truth[stamp_ns][:3, 3]) < 0.1
        assert np.allclose(fix["GeoPoints:positions"][0], (49.0, 8.4), atol=0.01)
    for name in ("confidence", "nvtl", "iterations", "align_us"):
        assert [float(values["Scalars:scalars"][0]) for _, values in timed(found, f"/result/{name}")] == pytest.approx([row[name] for row in rows])
    assert [values["StateChange:state"].tolist() for _, values in timed(found, "/state")] == [["tracking"]]
    assert [values["TextLog:text"].tolist() for _, values in timed(found, "/log")] == [["scan 0: tracking converged"]]
    assert static(found, "/map/path")["LineStrips3D:strips"][0] is not None and 1000 < len(static(found, "/map/cloud")["Points3D:positions"]) <= 5000
    assert reader_verifies(tmp_path / "drive.rrd")


def reader_verifies(path):
    """Whether Rerun's program finds that the file can be interpreted."""
    return subprocess.run([sys.executable, "-m", "rerun", "rrd", "verify", str(path)], capture_output=True, text=True, timeout=120).returncode == 0


def test_scans_lie_on_the_map(drive, run_program, tmp_path):
    replay(drive, tmp_path, run_program)
    found = export(tmp_path, "drive.rrd", "--bag", drive.bag, "--scan-points", 2000, "--map", drive.map, "--map-points", 10**7)
    cells = {tuple(cell) for cell in np.floor(static(found, "/map/cloud")["Points3D:positions"] / 0.5).astype(int)}
    for _, scan in timed(found, "/map/scan"):
        points = scan["Points3D:positions"]
        assert 1000 < len(points) <= 2000 and len(scan["intensity"]) == len(points)
        assert np.mean([tuple(cell) in cells for cell in np.floor(points / 0.5).astype(int)]) > 0.75


def test_the_ellipsoid_is_that_of_the_covariance(drive, run_program, tmp_path):
    rows = replay(drive, tmp_path, run_program)
    for row, (_, shape) in zip(rows, timed(export(tmp_path, "drive.rrd"), "/map/covariance")):
        x, y, z, w = shape["Ellipsoids3D:quaternions"][0]
        axes = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                         [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])
        covariance = axes @ np.diag((shape["Ellipsoids3D:half_sizes"][0] / 3.0)**2) @ axes.T
        wanted = np.array(row["covariance"]).reshape(6, 6)[:3, :3]
        assert np.allclose(covariance, wanted, atol=1e-4 * np.trace(wanted))
        assert np.allclose(shape["Ellipsoids3D:centers"][0], row["pose"][:3], atol=1e-5)


def test_large_coordinates_are_near_an_origin(simulate, run_program, tmp_path):
    """Rerun has float32: it would round UTM coordinates to half a metre."""
    drive = simulate("--world", "utm", "--scans", 8, "--beams", 16, "--columns", 600, "--map-spacing", 0.3)
    rows = replay(drive, tmp_path, run_program)
    found = export(tmp_path, "far.rrd", "--map", drive.map, "--bag", drive.bag)
    origin_m = static(found, "/map")["origin_m"]
    cloud = _core.read_cloud(drive.map)
    points = static(found, "/map/cloud")["Points3D:positions"]
    assert abs(points[:, 0].min() + origin_m[0] - (cloud["points"][:, 0] + cloud["origin"][0]).min()) < 5.0 and np.abs(rows[0]["pose"][:2]).max() > 3e5
    for row, (_, pose), (_, exact) in zip(rows, timed(found, "/map/base_link"), timed(found, "/position_m")):
        assert np.allclose(pose["Transform3D:translation"][0] + origin_m, row["pose"][:3], atol=1e-3)
        assert exact["Scalars:scalars"].tolist() == row["pose"][:3]


def test_what_is_not_trusted_is_told_and_not_shown(drive, run_program, tmp_path):
    rows = replay(drive, tmp_path, run_program)
    for row in rows[5:9]:
        row.update(state="lost", outcome="low_score", reason="it does not fit")
    for row in rows[12:]:
        row["T_base_sensor"] = [1.0, 0, 2.0, 0, 0, 0, 1]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = export(tmp_path, "drive.rrd")
    assert [stamp_ns for stamp_ns, _ in timed(found, "/map/base_link")] == [row["stamp_ns"] for row in rows[:5] + rows[9:]]
    assert [(stamp_ns, values["StateChange:state"][0]) for stamp_ns, values in timed(found, "/state")] == [
        (rows[0]["stamp_ns"], "tracking"), (rows[5]["stamp_ns"], "lost"), (rows[9]["stamp_ns"], "tracking")]
    lines = [(values["TextLog:level"][0], values["TextLog:text"][0]) for _, values in timed(found, "/log")]
    assert lines[1:5] == [("ERROR", f"scan {row['seq']}: lost low_score it does not fit") for row in rows[5:9]] and len(lines) == 6
    mounts = timed(found, "/map/base_link/lidar")
    assert [stamp_ns for stamp_ns, _ in mounts] == [rows[0]["stamp_ns"], rows[12]["stamp_ns"]]
    assert mounts[1][1]["Transform3D:translation"].tolist() == [[1, 0, 2]]


def test_names_of_frames_are_one_part_of_a_path(drive, run_program, tmp_path):
    replay(drive, tmp_path, run_program)
    found = export(tmp_path, "drive.rrd", "--map-frame", "earth/map 1", "--base-frame", "robot:1")
    assert len([name for name in found if name.endswith("robot\\:1")]) == 1 and not any(name.startswith("/earth/") for name in found)


def test_the_package_is_named_where_it_is_missing(drive, run_program, tmp_path, refused, monkeypatch):
    replay(drive, tmp_path, run_program)
    monkeypatch.setitem(sys.modules, "rerun", None)
    assert "rerun is not installed: pip install 'ndtd[rerun]'" in refused(ndt_export.main, 3, tmp_path / "results.jsonl", tmp_path / "a.rrd")
