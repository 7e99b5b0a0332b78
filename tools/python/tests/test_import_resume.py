"""An import that was killed goes on, and its bag has the bytes of one that was never stopped."""
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from recording_maker import NS, T0, Messages, run_import, stopped, write_bag1, write_bag2

CLOUD, IMU = "sensor_msgs/msg/PointCloud2", "sensor_msgs/msg/Imu"
SCANS = 40


def _rows(is_ros1=False):
    """Scans with times whose unit the first one decides, IMU with equal receive times, one cloud that is damaged."""
    make, rows = Messages(is_ros1), []
    for i in range(SCANS):
        points = np.zeros(200, [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("time", "<u4")])
        for name, column in zip("xyz", np.random.default_rng(i).uniform(2, 9, (3, 200))):
            points[name] = column
        points["time"] = np.linspace(0, 100000 if i == 0 else 1000, 200)  # us; only the first scan tells
        changes = {"point_step": 0} if i == 5 else {}
        ns = T0 + i * NS // 10
        rows += [("/imu", IMU, ns, make.imu(ns + k, "imu", (0, 0, 0.1 * k), (0, 0, 9.8))) for k in range(4)]
        rows.append(("/points", CLOUD, ns, make.cloud(ns, "lidar", points, **changes)))
    return rows


@pytest.fixture(params=["bag", "db3", "mcap"])
def recording(request, tmp_path):
    if request.param == "bag":
        return write_bag1(tmp_path / "drive.bag", _rows(True))
    write_bag2(tmp_path / "drive", _rows(), "mcap" if request.param == "mcap" else "sqlite3")
    return next((tmp_path / "drive").glob("*." + request.param))


def test_goes_on_at_any_message(recording, tmp_path, capsys, monkeypatch):
    run_import(capsys, recording, "-o", tmp_path / "whole.bag", "--json")
    whole, out = (tmp_path / "whole.bag").read_bytes(), tmp_path / "out.bag"
    for count in (1, 4, 5, 6, 31, 199):
        stopped(capsys, monkeypatch, count, recording, "-o", out, "-q")
        assert not out.exists() and (tmp_path / "out.bag.part.json").exists()
        with open(tmp_path / "out.bag.part", "ab") as part:
            part.write(b"half a record")
        done = run_import(capsys, recording, "-o", out)
        assert "goes on: " in done.err and out.read_bytes() == whole
        assert f"{SCANS - 1} scan" in done.out and "left:  1 scan: point_step is 0," in done.out
        assert (tmp_path / "out.bag.yaml").read_text() == (tmp_path / "whole.bag.yaml").read_text()
        assert not list(tmp_path.glob("*.part*"))
        out.unlink()


@pytest.mark.parametrize("what", ["options", "recording", "damage", "shorter"])
def test_begins_anew(what, tmp_path, capsys, monkeypatch):
    """Where anything differs, nothing of the old import is used."""
    recording, out = write_bag1(tmp_path / "drive.bag", _rows(True)), tmp_path / "out.bag"
    stopped(capsys, monkeypatch, 100, recording, "-o", out, "-q")
    arguments, notes = [], tmp_path / "out.bag.part.json"
    if what == "options":
        arguments = ["--imu", "none"]
    elif what == "recording":
        os.utime(recording, ns=(1, 1))
    elif what == "damage":
        notes.write_text("{")
    else:
        os.truncate(tmp_path / "out.bag.part", json.loads(notes.read_text())["bytes"] - 1)
    done = run_import(capsys, recording, "-o", out, *arguments)
    assert "goes on" not in done.err
    run_import(capsys, recording, "-o", tmp_path / "whole.bag", *arguments)
    assert out.read_bytes() == (tmp_path / "whole.bag").read_bytes()


def test_killed(tmp_path, capsys):
    """kill -9 in the middle, for real."""
    recording, out = write_bag1(tmp_path / "drive.bag", _rows(True)), tmp_path / "out.bag"
    code = ("import sys, time, ndtd.ndt_import as c, ndtd.recordings.checkpoint as k\nk.EVERY_S = 0\nold = c._convert\n"
            "def slow(*a):\n    time.sleep(0.01)\n    old(*a)\nc._convert = slow\nsys.exit(c.main(sys.argv[1:]))\n")
    process = subprocess.Popen([sys.executable, "-c", code, str(recording), "-o", str(out), "-q"])
    until = time.monotonic() + 60
    notes = tmp_path / "out.bag.part.json"
    while time.monotonic() < until and not (notes.exists() and json.loads(notes.read_text())["position"]["messages"] > 20):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert "goes on: " in run_import(capsys, recording, "-o", out).err
    run_import(capsys, recording, "-o", tmp_path / "whole.bag", "-q")
    assert out.read_bytes() == (tmp_path / "whole.bag").read_bytes()


def test_force_begins_anew(tmp_path, capsys, monkeypatch):
    recording, out = write_bag1(tmp_path / "drive.bag", _rows(True)), tmp_path / "out.bag"
    stopped(capsys, monkeypatch, 100, recording, "-o", out, "-q")
    assert "goes on" not in run_import(capsys, recording, "-o", out, "--force").err


def test_two_imports_at_once(tmp_path, capsys):
    from ndtd import BagWriter
    recording, out = write_bag1(tmp_path / "drive.bag", _rows(True)), tmp_path / "out.bag"
    with BagWriter(tmp_path / "out.bag.part"):
        assert "another import writes it" in run_import(capsys, recording, "-o", out, code=3).err
