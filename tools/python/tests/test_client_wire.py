"""Messages of the clients, read by the C decoders (ndt-bag); how they wait; which folder of sockets they trust."""
import asyncio
import json
import os
import struct
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import ndtd

msgpack = pytest.importorskip("msgpack")
zmq = pytest.importorskip("zmq")

GOLDEN = Path(__file__).resolve().parents[3] / "proto/golden"
TYPES = {"scan": 1, "initial_pose": 2, "odometry": 3, "truth": 4, "result": 5, "gnss": 6, "imu": 9}
STAMP_NS = 1317042272349000123
NEAR = np.array([[1.5, 2.25, -3, 0.5], [4, 5, 6, 255]])


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def write_bag(path, frames):
    with open(path, "wb") as file:
        file.write(b"NDTBAG\r\n" + struct.pack("<II", 1, 0))
        for number, frame in enumerate(frames):
            record = struct.pack("<IIq", TYPES[msgpack.unpackb(frame)["type"]], len(frame), number) + frame
            file.write(record + struct.pack("<I", crc32c(record)))


@pytest.fixture
def endpoints(tmp_path):
    return {name: f"ipc://{tmp_path}/{name}.ipc" for name in ("scans", "poses", "control")}


class Peer:
    """The daemon's side: receives scans in a thread (a SUB subscribes only while it is used), answers nothing."""

    def __init__(self, endpoints):
        self._context = zmq.Context()
        kinds = (zmq.SUB, zmq.XPUB, zmq.ROUTER)
        self._scans, self._poses, self.control = sockets = [self._context.socket(kind) for kind in kinds]
        self._scans.subscribe(b"")
        for socket, name in zip(sockets, endpoints):
            socket.bind(endpoints[name])
        self._frames, self._ends = [], False
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    def _receive(self):
        while not self._ends:
            if self._scans.poll(20):
                self._frames.append(self._scans.recv())

    def frames(self, count):
        """The next `count` frames."""
        end = time.monotonic() + 10
        while len(self._frames) < count and time.monotonic() < end:
            time.sleep(0.005)
        taken, self._frames[:count] = self._frames[:count], []
        assert len(taken) == count
        return taken

    def close(self):
        self._ends = True
        self._thread.join()
        self._context.destroy(0)


@pytest.fixture
def peer(endpoints):
    out = Peer(endpoints)
    yield out
    out.close()


def publish_all(client):
    """One call of each kind; for AsyncClient the same calls give awaitables."""
    return [client.publish_scan(STAMP_NS, [[1, 2, 3], [-1, 0.5, np.nan]]),
            client.publish_scan(np.int64(STAMP_NS), NEAR, time_s=[-0.05, 0.05], frame_id="top"),
            client.publish_scan(STAMP_NS, NEAR[:, :3] + [500000.125, 4649984, 0], intensity=NEAR[:, 3], seq=2**64 - 1),
            client.publish_scan(STAMP_NS, np.zeros((0, 3))),
            client.publish_gnss(STAMP_NS, np.array([1.0, 2, 3]), deviation=(0.5, 0.5, 2)),
            client.publish_odometry(STAMP_NS, twist=[8.5, 0, 0, 0, 0, np.float64(0.25)]),
            client.publish_initial_pose(STAMP_NS, [1, 2, 3, 0, 0, 0, 1], covariance=np.diag(np.arange(1.0, 7))),
            client.publish_imu(STAMP_NS, [0.5, 0, np.float32(-0.25)]),
            client.publish_imu(STAMP_NS, (0, 0, 1), np.array([0, 0.5, 9.75]), angular_velocity_covariance=1e-4 * np.eye(3),
                               linear_acceleration_covariance=np.diag([1, 2, 3]), frame_id="base")]


def check_bag(frames, path, run_program):
    write_bag(path, frames)
    dump = [json.loads(line) for line in run_program("ndt-bag", "dump", path, "--points", 2).stdout.splitlines()]
    run_program("ndt-bag", "check", path)
    plain, full, far, empty, gnss, odometry, start, rates, imu = dump
    assert all(message["stamp_ns"] == STAMP_NS for message in dump)
    assert plain["xyz_m"] == [[1, 2, 3], [-1, 0.5, None]] and "intensity" not in plain and plain["seq"] == 0
    assert full["xyz_m"] == [[1.5, 2.25, -3], [4, 5, 6]] and full["intensity"] == [0.5, 255]
    assert np.allclose(full["time_s"], [-0.05, 0.05]) and full["frame_id"] == "top"
    assert far["intensity"] == [0.5, 255]
    assert far["xyz_m"] == [[500001.625, 4649986.25, -3], [500004.125, 4649989, 6]] and far["seq"] == 2**64 - 1
    assert empty["points"] == 0 and empty["seq"] == 2
    assert gnss["type"] == "gnss" and gnss["position"] == [1, 2, 3] and gnss["deviation"] == [0.5, 0.5, 2]
    assert odometry["twist"] == [8.5, 0, 0, 0, 0, 0.25] and "pose" not in odometry
    assert start["pose"] == [1, 2, 3, 0, 0, 0, 1] and start["covariance"][35] == 6
    assert rates["angular_velocity"] == [0.5, 0, -0.25] and "linear_acceleration" not in rates
    assert imu["frame_id"] == "base" and imu["linear_acceleration"] == [0, 0.5, 9.75]
    assert imu["angular_velocity_covariance"][8] == 1e-4 and imu["linear_acceleration_covariance"][4] == 2


def test_messages_are_read_by_the_c_decoders(peer, endpoints, tmp_path, run_program):
    with ndtd.Client(**endpoints) as client:
        client.wait_ready()
        assert publish_all(client)[:4] == [0, 1, 2**64 - 1, 2]
        frames = peer.frames(9)
    check_bag(frames, tmp_path / "sent.bag", run_program)


def test_the_asynchronous_client_sends_the_same_bytes(peer, endpoints):
    async def send():
        async with ndtd.AsyncClient(**endpoints) as client:
            await client.wait_ready()
            assert [await one for one in publish_all(client)][:4] == [0, 1, 2**64 - 1, 2]

    with ndtd.Client(**endpoints) as client:
        client.wait_ready()
        publish_all(client)
        frames = peer.frames(9)
    asyncio.run(send())
    assert peer.frames(9) == frames


@pytest.mark.parametrize("call, given, words", [
    ("publish_scan", (NEAR, STAMP_NS), r"publish_scan\(stamp_ns, points\): stamp_ns: a whole number is wanted, not ndarray"),
    ("publish_scan", (0.5, NEAR), r"publish_scan\(.*\): stamp_ns: a whole number is wanted, not float"),
    ("publish_initial_pose", (np.eye(4), STAMP_NS), r"publish_initial_pose\(stamp_ns, pose\): stamp_ns: "),
    ("publish_odometry", (np.eye(4),), r"publish_odometry\(stamp_ns, "),
    ("publish_transform", (np.eye(4), "lidar", STAMP_NS), r"publish_transform\(stamp_ns, frame_id, pose\): stamp_ns: .* not ndarray"),
    ("publish_transform", (STAMP_NS, np.eye(4), "lidar"), r"publish_transform\(.*\): frame_id: a name is wanted, not ndarray"),
    ("publish_gnss", ([1, 2, 3], STAMP_NS), r"publish_gnss\(stamp_ns, position\): "),
    ("publish_imu", ([1, 2, 3], STAMP_NS), r"publish_imu\(stamp_ns, angular_velocity\): ")])
def test_arguments_in_another_order(call, given, words, endpoints):
    with ndtd.Client(**endpoints) as daemon, pytest.raises(TypeError, match="^" + words):
        getattr(daemon, call)(*given)


def test_a_pose_may_be_a_matrix(peer, endpoints):
    pose = np.array([[0, -1, 0, 5], [1, 0, 0, 6], [0, 0, 1, 7], [0, 0, 0, 1.0]])
    with ndtd.Client(**endpoints) as client:
        client.wait_ready()
        client.publish_initial_pose(STAMP_NS, pose)
        sent = msgpack.unpackb(peer.frames(1)[0])["pose"]
        assert np.allclose(sent, [5, 6, 7, 0, 0, np.sqrt(0.5), np.sqrt(0.5)])
        for bad in (np.eye(3), 2 * np.eye(4), [1, 2, 3], [0, 0, 0, 0, 0, 90, 1]):
            with pytest.raises(ValueError, match="^pose: "):
                client.publish_initial_pose(STAMP_NS, bad)
        for bad, times, word in ((np.zeros(3), None, "points: "), (np.zeros((2, 2)), None, "points: "),
                                 (np.zeros((2, 3)), [0.0], "time_s: one number per point"), (np.array([["a", "b", "c"]]), None, "points: ")):
            with pytest.raises(ValueError, match=word):
                client.publish_scan(STAMP_NS, bad, time_s=times)


def test_a_result_is_shown_as_it_was_sent(tmp_path, run_program):
    lines = (GOLDEN / "result_estimate.hex").read_text().splitlines()
    frame = bytes.fromhex("".join(line for line in lines if not line.startswith("#")))
    write_bag(tmp_path / "result.bag", [frame])
    shown, sent = json.loads(run_program("ndt-bag", "dump", tmp_path / "result.bag").stdout), msgpack.unpackb(frame)
    assert all(shown[key] == sent[key] for key in sent if key != "v")


def test_silence_ends_in_time(peer, endpoints):
    with ndtd.Client(**endpoints) as client:
        with pytest.raises(TimeoutError, match="hello"):
            client.request("hello", timeout=0.1)
        assert not list(client.results(timeout=0.05))


def test_no_daemon_is_a_timeout(endpoints):
    with ndtd.Client(**endpoints) as client, pytest.raises(TimeoutError, match=f"scans at {endpoints['scans']};"):
        client.wait_ready(0.05)


def test_what_is_no_address_is_refused(endpoints):
    with pytest.raises(ValueError, match="'nowhere' is not an address such as"):
        ndtd.Client(**{**endpoints, "control": "nowhere"})


RUNNING = {"search_id": 5, "running": True, "percent": 40, "elapsed_ms": 3.0}
DONE = {"search_id": 5, "running": False, "percent": 100, "elapsed_ms": 9.0, "accepted": True, "confidence": 0.99}


@pytest.mark.parametrize("reports, timeout, outcome", [
    ([RUNNING, RUNNING, DONE], 10, DONE), ([RUNNING] * 2, 0, TimeoutError),
    ([RUNNING, {**RUNNING, "search_id": 6}], 10, ndtd.RequestError)])
@pytest.mark.parametrize("kind", [ndtd.Client, ndtd.AsyncClient])
def test_localize_polls_until_the_search_has_ended(peer, endpoints, reports, timeout, outcome, kind):
    requests = []

    def serve():
        for report in reports:
            identity, frame = peer.control.recv_multipart()
            requests.append(msgpack.unpackb(frame))
            reply = {"v": 1, "type": "reply", "id": requests[-1]["id"], "ok": True, "search": report}
            peer.control.send_multipart([identity, msgpack.packb(reply)])

    wanted = dict(position=(1, 2, 3), heading=np.float64(0.5), apply=False, timeout=timeout)

    def ask():
        with ndtd.Client(**endpoints) as client:
            return client.localize(**wanted)

    async def ask_asynchronously():
        async with ndtd.AsyncClient(**endpoints) as client:
            return await client.localize(**wanted)

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    try:
        assert (ask() if kind is ndtd.Client else asyncio.run(ask_asynchronously())) == outcome
    except (TimeoutError, ndtd.RequestError) as reason:
        assert isinstance(outcome, type) and isinstance(reason, outcome)
    server.join(10)
    assert requests[-1]["op"] == ("cancel_search" if outcome is TimeoutError else "search")
    first = requests[0]
    assert first["op"] == "localize" and first["position"] == [1, 2, 3] and first["heading"] == 0.5
    assert first["apply"] is False and "pose" not in first


# ---- the folder of the sockets ----


def endpoint_as_user(prepare):
    """Result of default_endpoint, or what it raises, for a user without privileges, after prepare(folder) by this one."""
    user = os.getuid() or 12345
    folder = f"/tmp/ndtd-{user}"
    prepare(folder)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        if os.getuid() == 0:
            os.setuid(user)
        try:
            said = ndtd.default_endpoint("scans")
        except OSError as reason:
            said = f"{type(reason).__name__}: {reason}"
        os.write(writer, said.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    mode = os.lstat(folder).st_mode & 0o777 if os.path.isdir(folder) else None
    if os.path.islink(folder):
        os.unlink(folder)
    elif os.path.isdir(folder):
        os.rmdir(folder)
    return said, mode, f"ipc://{folder}/scans.ipc"


def test_the_folder_of_others_is_refused(monkeypatch, tmp_path):
    """In /tmp any user can make the folder first: one of others is refused, and a missing one is made."""
    user = os.getuid() or 12345
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    if os.path.lexists(f"/tmp/ndtd-{user}") or os.path.exists("/run/ndtd/scans.ipc"):
        pytest.skip("a daemon runs here: its folder is left alone")
    said, mode, endpoint = endpoint_as_user(lambda folder: None)
    assert (said, mode) == (endpoint, 0o700)

    def open_to_all(folder):
        os.mkdir(folder)
        os.chown(folder, user, -1)
        os.chmod(folder, 0o777)

    refused = [open_to_all, lambda folder: os.symlink(tmp_path, folder)]
    if os.getuid() == 0:
        refused.append(lambda folder: os.mkdir(folder, 0o700))  # of root
    for prepare in refused:
        said, _, _ = endpoint_as_user(prepare)
        assert said.startswith("PermissionError: ") and f"/tmp/ndtd-{user}" in said


def test_a_client_that_is_first_takes_the_folder_of_the_daemon(monkeypatch):
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    if os.path.exists("/run/ndtd/scans.ipc"):
        pytest.skip("a daemon runs here: its folder has priority")
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        os.chmod(home, 0o777)
        monkeypatch.setenv("XDG_RUNTIME_DIR", home)
        said, _, _ = endpoint_as_user(lambda folder: None)
    assert said == f"ipc://{home}/ndtd/scans.ipc"


def test_the_runtime_directory_is_used(monkeypatch, tmp_path):
    (tmp_path / "scans.ipc").touch()
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    assert ndtd.default_endpoint("scans") == f"ipc://{tmp_path}/scans.ipc"
