"""Message transform on a live ndtd: the poses of the replay to the bit, and a recording that begins late knows it."""
import numpy as np
import pytest

import ndtd

msgpack = pytest.importorskip("msgpack")
pytest.importorskip("zmq")

import drive_bags  # noqa: E402

MOUNT = (1.2, 0.1, 0.4, 0.0, 0.0, 0.0, 1.0)


@pytest.fixture
def mounted(drive, tmp_path):
    """The drive with a lidar that is not at the base."""
    with ndtd.BagWriter(tmp_path / "mounted.bin") as writer:
        for kind, message in drive_bags.messages_of(drive.bag):
            if kind in ("initial_pose", "scan"):
                drive_bags.write(writer, kind, {**message, "twist": None, "intensity": None, "time_s": None})
            if kind == "initial_pose":
                writer.transform(message["stamp_ns"], "lidar", MOUNT, receive_ns=message["receive_ns"])
    return tmp_path / "mounted.bin"


@pytest.fixture
def daemon(bin_dir, tmp_path, drive):
    with drive_bags.daemon(bin_dir / "ndtd", tmp_path, drive.map, recording={"directory": str(tmp_path)}) as running:
        yield running


def test_live_and_late_recording(mounted, daemon, drive, tmp_path):
    expected = [scan.pose for scan in ndtd.Replay(mounted, drive.map)]
    found = {}
    with ndtd.Client(**daemon.endpoints) as client:
        client.wait_ready()
        drive_bags.wait_for_map(client)
        for kind, message in drive_bags.messages_of(mounted):
            if kind == "initial_pose":
                client.publish_initial_pose(message["stamp_ns"], message["pose"])
            elif kind == "transform":
                client.publish_transform(message["stamp_ns"], message["frame_id"], message["pose"])
            else:
                client.publish_scan(message["stamp_ns"], message["points"], seq=message["seq"])
                found[message["seq"]] = drive_bags.answer(client, message["seq"])
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
