"""ndt-foxglove serves what a running ndtd publishes: read by a WebSocket client, with the schemas that it is told."""
import base64
import contextlib
import json
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("foxglove")
websockets = pytest.importorskip("websockets.sync.client")
pytest.importorskip("zmq")

import drive_bags  # noqa: E402
from drive_bags import answer, wait_for_map  # noqa: E402

import ndtd  # noqa: E402


def decoder(channel):
    """Reads messages of a channel by its own schema."""
    if channel["encoding"] == "json":
        return json.loads
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(channel["schema"] + "==")).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(channel["schemaName"])).FromString


class Viewer:
    """A client of the protocol: subscribes to every channel, and keeps the messages by topic."""

    def __init__(self, address):
        self.open = contextlib.ExitStack()
        self.socket = self.open.enter_context(websockets.connect(address, subprotocols=["foxglove.sdk.v1", "foxglove.websocket.v1"], max_size=None))
        self.channels, self.messages = {}, {}

    def read(self, until, timeout=20):
        while not until(self.messages):
            message = self.socket.recv(timeout)
            if isinstance(message, str):
                self.told(json.loads(message))
            elif message[0] == 1:
                number, stamp_ns = struct.unpack_from("<IQ", message, 1)
                topic, decode = self.channels[number]
                self.messages.setdefault(topic, []).append((stamp_ns, decode(message[13:])))

    def told(self, message):
        if message["op"] != "advertise":
            return
        for channel in message["channels"]:
            self.channels[channel["id"]] = channel["topic"], decoder(channel)
        wanted = [{"id": channel["id"], "channelId": channel["id"]} for channel in message["channels"]]
        self.socket.send(json.dumps({"op": "subscribe", "subscriptions": wanted}))


def test_a_viewer_sees_poses_scans_map_and_numbers(daemon, drive):
    truth = {}
    with ndtd.Client(**daemon.endpoints) as client:
        client.wait_ready()
        wait_for_map(client)
        show = subprocess.Popen([sys.executable, "-m", "ndtd.ndt_foxglove", "--listen", "127.0.0.1:0", "--poses", daemon.endpoints["poses"],
                                 "--control", daemon.endpoints["control"], "--map", str(drive.map), "--map-points", "5000"], stdout=subprocess.PIPE, text=True)
        try:
            viewer = Viewer(show.stdout.readline().split()[1])
            viewer.read(lambda found: len(viewer.channels) >= 6)
            reading = threading.Thread(target=viewer.read, args=(lambda found: len(found.get("/pose", [])) >= 15 and len(found.get("/scan", [])) >= 10
                                                                 and "/map" in found,))
            reading.start()
            for kind, message in drive_bags.messages_of(drive.bag):
                if kind == "truth":
                    truth[message["stamp_ns"]] = message["pose"]
                elif kind == "initial_pose":
                    client.publish_initial_pose(message["stamp_ns"], message["pose"], twist=message.get("twist"))
                elif kind == "scan":
                    answer(client, client.publish_scan(message["stamp_ns"], message["points"], time_s=message["time_s"]))
            reading.join(60)
            assert not reading.is_alive()
            viewer.open.close()
        finally:
            show.terminate()
            show.wait(20)
    for stamp_ns, pose in viewer.messages["/pose"]:
        assert np.linalg.norm(np.array([pose.pose.position.x, pose.pose.position.y, pose.pose.position.z]) - truth[stamp_ns][:3]) < 0.15
    stamp_ns, scan = viewer.messages["/scan"][-1]
    points = np.frombuffer(scan.data, "<f4").reshape(-1, scan.point_stride // 4)
    assert stamp_ns in truth and scan.frame_id == "base_link" and len(points) > 1000 and np.isfinite(points[:, :3]).all()
    _, cloud = viewer.messages["/map"][0]
    assert cloud.frame_id == "map" and 1000 < len(cloud.data) // cloud.point_stride <= 5000
    assert viewer.messages["/result"][-1][1]["outcome"] == "converged" and viewer.messages["/tf"]


@pytest.mark.parametrize("arguments, code, words", [
    (["--listen", "8765"], 2, "'8765' is not ADDRESS:PORT"),
    (["--map", "nosuch.pcd"], 3, "nosuch.pcd"),
    (["--map-points", "0"], 2, "--map-points: 0"),
    (["--poses", "ipc:///nosuch/poses.ipc", "--control", "ipc:///nosuch/control.ipc", "--timeout", "0.2"], 3, "does it run")])
def test_wrong_input_is_one_line(arguments, code, words, tmp_path):
    done = subprocess.run([sys.executable, "-m", "ndtd.ndt_foxglove", *arguments], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == code and words in done.stderr and done.stderr.count("\n") == 1 and done.stderr.startswith("ndt-foxglove: ")


def test_a_port_in_use_is_one_line(daemon):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as used:
        done = subprocess.run([sys.executable, "-m", "ndtd.ndt_foxglove", "--listen", f"127.0.0.1:{used.getsockname()[1]}", "--poses", daemon.endpoints["poses"],
                               "--control", daemon.endpoints["control"]], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and done.stderr.count("\n") == 1 and "in use" in done.stderr.lower() and "; another port, as --listen 127.0.0.1:" in done.stderr
