"""ndt-rerun serves what a running ndtd publishes: read by Rerun's own program, which joins when the drive is over."""
import contextlib
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("rerun")
pytest.importorskip("zmq")

import drive_bags  # noqa: E402
from drive_bags import answer, truth_of, wait_for_map  # noqa: E402
from rerun_reading import read_rrd, static, timed  # noqa: E402

import ndtd  # noqa: E402

LONGEST_S = 300  # against a program that hangs; a busy machine needs a minute to start one


def command(daemon, *options):
    return [sys.executable, "-m", "ndtd.ndt_rerun", "--poses", daemon.endpoints["poses"], "--control", daemon.endpoints["control"], *map(str, options)]


def saved_by_a_viewer(address, path, is_whole):
    """What a viewer gets, as a recording: once it `is_whole`, or at the latest after LONGEST_S."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    viewer = subprocess.Popen([sys.executable, "-m", "rerun", address, "--save", str(path), "--bind", "127.0.0.1", "--port", str(port)],
                              stderr=subprocess.DEVNULL)
    end, found = time.monotonic() + LONGEST_S, {}
    try:
        while not is_whole(found) and time.monotonic() < end and viewer.poll() is None:
            time.sleep(0.5)
            with contextlib.suppress(Exception):  # of a file that is being written
                found = read_rrd(path)
    finally:
        viewer.terminate()
        viewer.wait(LONGEST_S)
    return read_rrd(path)


def has_all(found, stamps):
    """Whether each pose and its numbers, points of a scan and the map are there."""
    timed_paths = ("/map/base_link", "/result/nvtl")
    return {"/map/cloud", "/map/base_link/scan", *timed_paths} <= set(found) and all(
        set(stamps) <= {stamp_ns for stamp_ns, _ in found[path]} for path in timed_paths)


def test_a_viewer_that_joins_late_gets_the_drive_and_the_map(daemon, drive, tmp_path):
    stamps = []
    with ndtd.Client(**daemon.endpoints) as client:
        client.wait_ready()
        wait_for_map(client)
        show = subprocess.Popen(command(daemon, "--listen", "127.0.0.1:0", "--map", drive.map, "--map-points", 5000), stdout=subprocess.PIPE, text=True)
        try:
            address = show.stdout.readline().split()[1]
            for kind, message in drive_bags.messages_of(drive.bag):
                if kind == "initial_pose":
                    client.publish_initial_pose(message["stamp_ns"], message["pose"], twist=message.get("twist"))
                elif kind == "scan":
                    time.sleep(0.05)  # a viewer is sent the newest points alone where it does not keep up
                    answer(client, client.publish_scan(message["stamp_ns"], message["points"], time_s=message["time_s"]))
                    stamps.append(message["stamp_ns"])
            found = saved_by_a_viewer(address, tmp_path / "seen.rrd", lambda found: has_all(found, stamps))
        finally:
            show.terminate()
            show.wait(LONGEST_S)
    truth, poses, scans = truth_of(drive.bag), timed(found, "/map/base_link"), timed(found, "/map/base_link/scan")
    origin_m = static(found, "/map")["origin_m"] if "/map" in found else np.zeros(3)
    assert [stamp_ns for stamp_ns, _ in poses] == stamps and scans  # how many scans depends on how busy the machine is
    for stamp_ns, pose in poses:
        assert np.linalg.norm(pose["Transform3D:translation"][0] + origin_m - truth[stamp_ns][:3, 3]) < 0.15
    assert len(scans[-1][1]["Points3D:positions"]) > 1000 and {stamp_ns for stamp_ns, _ in scans} <= set(stamps)
    assert 1000 < len(static(found, "/map/cloud")["Points3D:positions"]) <= 5000 and len(timed(found, "/result/nvtl")) == len(stamps)


@pytest.mark.parametrize("arguments, code, words", [
    (["--listen", "9877"], 2, "'9877' is not ADDRESS:PORT"), (["--listen", "no.such.host.invalid:0"], 3, "--listen no.such.host.invalid:0: "),
    (["--poses", "ipc:///nosuch/poses.ipc", "--control", "ipc:///nosuch/control.ipc", "--timeout", "0.2"], 3, "does it run")])
def test_wrong_input_is_one_line(arguments, code, words, daemon, tmp_path):
    done = subprocess.run(command(daemon, *arguments), capture_output=True, text=True, timeout=LONGEST_S, cwd=tmp_path)
    assert done.returncode == code and words in done.stderr and done.stderr.count("\n") == 1 and done.stderr.startswith("ndt-rerun: ")


def test_a_port_in_use_is_one_line(daemon):
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        address = f"127.0.0.1:{port}"
        done = subprocess.run(command(daemon, "--listen", address), capture_output=True, text=True, timeout=LONGEST_S)
    assert done.returncode == 3 and done.stderr == f"ndt-rerun: --listen {address}: Address already in use; another port, as --listen 127.0.0.1:{port + 1}\n"


def test_this_machine_alone_reaches_the_port(daemon):
    """rerun-sdk listens on every address unless it is told one."""
    show = subprocess.Popen(command(daemon, "--listen", "127.0.0.1:0"), stdout=subprocess.PIPE, text=True)
    try:
        port = int(show.stdout.readline().split(":")[-1].split("/")[0])
        wanted = f":{port:04X}"
        with open("/proc/net/tcp") as table:
            listening = [row.split()[1] for row in table if row.split()[1].endswith(wanted) and row.split()[3] == "0A"]
        assert listening == [f"0100007F{wanted}"]
    finally:
        show.terminate()
        show.wait(LONGEST_S)
