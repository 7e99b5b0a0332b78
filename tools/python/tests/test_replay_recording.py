"""`ndtd --replay` of recordings that are no bag.bin: the real ndt-import as its child, the bits of importing first."""
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from recording_maker import rows_of_drive, run_import, write_bag1, write_bag2

import ndtd

pytest.importorskip("rosbags")
MOUNT = (1.2, 0.1, 0.4, 0.0, 0.0, 0.0, 1.0)  # T_base_lidar of the recordings
KINDS = ("bag", "db3", "mcap")


@pytest.fixture(autouse=True)
def importer(tmp_path, monkeypatch):
    """The ndt-import of these sources, wherever ndtd would look for one."""
    script = tmp_path / "ndt-import"
    script.write_text(f"#!{sys.executable}\nimport sys\nsys.path[:] = {sys.path!r}\nfrom ndtd.ndt_import import main\nsys.exit(main())\n")
    script.chmod(0o755)
    monkeypatch.setenv("NDT_IMPORT", str(script))
    return script


def write(kind, drive, folder, lidar=MOUNT):
    rows = rows_of_drive(drive.bag, is_ros1=kind == "bag", lidar=lidar)
    if kind == "bag":
        write_bag1(folder / "drive.bag", rows)
        return folder / "drive.bag"
    return write_bag2(folder / "drive", rows, storage="mcap" if kind == "mcap" else "sqlite3")


@pytest.mark.parametrize("kind", KINDS)
def test_the_bits_of_importing_first(kind, drive, trajectory_hash, tmp_path, capsys):
    recording = write(kind, drive, tmp_path)
    run_import(capsys, recording, "-o", tmp_path / "file.bin")
    expected = trajectory_hash(tmp_path / "file.bin", drive.map)
    assert trajectory_hash(recording, drive.map) == expected
    assert list(tmp_path.glob("*.part*")) == []
    replay = ndtd.Replay(recording, drive.map)
    assert sum(1 for _ in replay) == 20
    assert replay.hash == expected


def test_transforms_count_and_the_configuration_wins(drive, run_program, tmp_path):
    """The pose of the vehicle is beside that of the sensor by the lever arm, unless frames.* says otherwise."""
    recording = write("mcap", drive, tmp_path)

    def poses(*options):
        done = run_program("ndtd", "--replay", recording, "--map", drive.map, "--out", tmp_path / "out.tum", *options)
        return np.loadtxt(tmp_path / "out.tum")[:, 1:4], done.stderr

    mounted, said = poses()
    assert "transform" not in said
    as_sensor, said = poses("--set", "frames.sensors=[lidar 0 0 0 0 0 0 1]")
    assert "that of 'lidar' is not used: frames.sensors of the configuration is another one, and wins" in said
    off = np.linalg.norm(mounted[5:] - as_sensor[5:], axis=1)
    assert np.all(np.abs(off - np.linalg.norm(MOUNT[:3])) < 0.3)
    by_option, _ = poses("--set", "frames.T_base_sensor=" + " ".join(map(str, MOUNT)))
    assert np.array_equal(mounted, by_option)


def test_topics_follow_after_two_dashes(drive, run_program, tmp_path):
    recording = write("mcap", drive, tmp_path)
    done = run_program("ndtd", "--replay", recording, "--map", drive.map, "--", "--scan", "/nothing", code=3)
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"ndtd: {recording}: ndt-import failed (exit status 3): there is no topic /nothing")
    run_program("ndtd", "--replay", recording, "--map", drive.map, "--limit", 3, "--", "--scan", "/points")
    replay = ndtd.Replay(recording, drive.map, limit=3, import_options=["--scan", "/points"], options={"preprocess.deskew": "off"})
    assert sum(1 for _ in replay) == 3
    assert len(replay.hints) == 1 and "preprocess.deskew is off" in replay.hints[0]
    with pytest.raises(OSError, match="no topic /nothing"):
        next(ndtd.Replay(recording, drive.map, import_options=["--scan", "/nothing"]))


def test_a_file_of_another_kind(drive, run_program, tmp_path):
    (tmp_path / "note.txt").write_text("not a recording")
    done = run_program("ndtd", "--replay", tmp_path / "note.txt", "--map", drive.map, code=3)
    assert len(done.stderr.splitlines()) == 1 and "note.txt" in done.stderr
    with pytest.raises(OSError, match="not a recording"):
        list(ndtd.Replay(tmp_path / "note.txt", drive.map))


def test_pip_install_is_named(drive, bin_dir, tmp_path, monkeypatch):
    if (bin_dir / "ndt-import").exists():
        pytest.skip("ndt-import is beside ndtd")
    monkeypatch.delenv("NDT_IMPORT")
    recording = write("db3", drive, tmp_path)
    done = subprocess.run([str(bin_dir / "ndtd"), "--replay", str(recording), "--map", str(drive.map)], capture_output=True, text=True,
                          env={**os.environ, "PATH": "/nowhere"})
    assert done.returncode == 3
    assert "pip install './tools/python[ros]'" in done.stderr and len(done.stderr.splitlines()) == 1


def test_kitti_folder(shared_data, trajectory_hash, tmp_path, capsys):
    """A real drive as a folder of clouds."""
    folder = Path(shared_data) / "kitti0005_lite"
    options = (folder / "map_from_even_scans_0.20m.pcd", "--initial-pose", "0,0,0,0,0,0,1", "--limit", 30)
    run_import(capsys, folder, "-o", tmp_path / "file.bin")
    expected = trajectory_hash(tmp_path / "file.bin", *options)
    assert trajectory_hash(folder, *options) == expected


def test_a_part_keeps_its_transforms(drive, run_program, tmp_path, capsys):
    """A transform that comes before the part holds in it."""
    run_import(capsys, write("mcap", drive, tmp_path), "-o", tmp_path / "whole.bin")
    run_program("ndt-bag", "cut", tmp_path / "whole.bin", "--scans", "5-8", "--out", tmp_path / "part.bin")
    kinds = [record.type for record in ndtd.BagReader(tmp_path / "part.bin")]
    assert kinds.count("scan") == 4 and kinds[0] == "transform"
    run_program("ndt-bag", "cut", tmp_path / "whole.bin", "--scans", "5-8", "--without", "transform", "--out", tmp_path / "bare.bin")
    assert "transform" not in [record.type for record in ndtd.BagReader(tmp_path / "bare.bin")]


def test_the_ndt_import_of_an_environment_that_is_not_activated(drive, tmp_path):
    """Not on PATH, beside the interpreter: as in a notebook."""
    recording = write("mcap", drive, tmp_path)
    if not Path(sysconfig.get_path("scripts"), "ndt-import").exists():
        pytest.skip("ndt-import is not installed in this environment")
    script = f"import ndtd; print(sum(1 for _ in ndtd.Replay({str(recording)!r}, {str(drive.map)!r})))"
    environment = {name: value for name, value in os.environ.items() if name != "NDT_IMPORT"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**environment, "PATH": "/usr/bin:/bin"})
    assert done.stdout.strip() == "20", done.stderr
