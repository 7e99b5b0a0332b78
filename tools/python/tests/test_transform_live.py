"""Message transform on a live ndtd: the poses of the replay to the bit, and a recording that begins late knows it."""
import json
import subprocess
import time

import numpy as np
import pytest

import ndtd

msgpack = pytest.importorskip("msgpack")
pytest.importorskip("zmq")

MOUNT = (1.2, 0.1, 0.4, 0.0, 0.0, 0.0, 1.0)


@pytest.fixture
def mounted(drive, tmp_path):
    """The drive with a lidar that is not at the base."""
    with ndtd.BagWriter(tmp_path / "mounted.bin") as writer:
        for record in ndtd.BagReader(drive.bag):
            message = msgpack.unpackb(record.payload)
            if record.type == "initial_pose":
                writer.initial_pose(message["stamp_ns"], message["pose"], receive_ns=record.receive_ns)
                writer.transform(message["stamp_ns"], "lidar", MOUNT, receive_ns=record.receive_ns)
            elif record.type == "scan":
                scan = ndtd.decode_scan(record.payload)
                writer.scan(scan["stamp_ns"], scan["points"], seq=scan["seq"], receive_ns=record.receive_ns)
    return tmp_path / "mounted.bin"


@pytest.fixture
def daemon(bin_dir, tmp_path, drive):
    """Endpoints of an ndtd of its own."""
    endpoints = {name: f"ipc://{tmp_path}/{name}.ipc" for name in ("scans", "poses", "control")}
    options = {"backend": {"name": "cpu"}, "map": {"path": str(drive.map)}, "live": {"budget_ms": 5000.0}, "sockets": endpoints,
               "recording": {"directory": str(tmp_path)}}
    (tmp_path / "ndtd.yaml").write_text(json.dumps(options))
    with open(tmp_path / "ndtd.log", "w") as log:
        process = subprocess.Popen([str(bin_dir / "ndtd"), "-c", str(tmp_path / "ndtd.yaml")], stderr=log, stdin=subprocess.DEVNULL)
    yield endpoints
    process.kill()
    process.wait()


def test_live_and_late_recording(mounted, daemon, drive, tmp_path):
    expected = [scan.pose for scan in ndtd.Replay(mounted, drive.map)]
    found = {}
    with ndtd.Client(daemon["scans"], daemon["poses"], daemon["control"]) as client:
        client.wait_ready()
        end = time.monotonic() + 30
        while client.request("status", timeout=30).get("map_id", 1) == 0 and time.monotonic() < end:
            time.sleep(0.1)
        for record in ndtd.BagReader(mounted):
            message = msgpack.unpackb(record.payload)
            if record.type == "initial_pose":
                client.publish_initial_pose(message["pose"], message["stamp_ns"])
            elif record.type == "transform":
                client.publish_transform(message["pose"], message["frame_id"], message["stamp_ns"])
            else:
                scan = ndtd.decode_scan(record.payload)
                client.publish_scan(scan["points"], scan["stamp_ns"], seq=scan["seq"])
                found[scan["seq"]] = next(one for one in client.results(timeout=10) if one["seq"] == scan["seq"])
                if len(found) == 1:
                    client.request("start_recording", path="late.bin")
        client.request("stop_recording", timeout=30)
    assert len(found) == len(expected) == 20
    for seq, result in found.items():
        # a replay waits for the search's model of the map, which may propose where the alignment begins
        assert np.linalg.norm(np.array(result["pose"][:3]) - expected[seq][:3, 3]) < 0.001
    late = list(ndtd.BagReader(tmp_path / "late.bin"))
    assert [record.type for record in late] == ["transform"] + 19 * ["scan"]
    told = msgpack.unpackb(late[0].payload)
    assert told["frame_id"] == "lidar" and tuple(told["pose"]) == MOUNT
