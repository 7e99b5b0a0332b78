"""The Python side of test_python_client.sh: python_client_check.py codec|live BIN_DIR WORK_DIR"""
import json
import os
import struct
import subprocess
import sys
import threading
import time

import msgpack
import numpy as np
import zmq

from ndtd_client import Client, RequestError, default_endpoint

MODE, BIN, WORK = sys.argv[1:]
GOLDEN = os.path.join(os.path.dirname(__file__), "../../proto/golden")
EXAMPLE = os.path.join(os.path.dirname(__file__), "../../tools/python/example.py")
ENDPOINTS = {name: f"ipc://{WORK}/{name}.ipc" for name in ("scans", "poses", "control")}
TYPES = {"scan": 1, "initial_pose": 2, "odometry": 3, "truth": 4, "result": 5, "gnss": 6, "imu": 9}
POINT_KINDS = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 8: "<f8"}
STAMP_NS = 1317042272349000123


# ---- bags ----


def read_bag(path):
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"NDTBAG\r\n"
    at = 16
    while at < len(data):
        _, length, _ = struct.unpack_from("<IIq", data, at)
        yield msgpack.unpackb(data[at + 16 : at + 16 + length])
        at += 16 + length + 4


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


def points_of(scan):
    names, offsets, kinds, _ = zip(*scan["fields"])
    layout = {"names": names, "formats": [POINT_KINDS[kind] for kind in kinds], "offsets": offsets,
              "itemsize": scan["point_step"]}
    records = np.frombuffer(scan["data"], dtype=np.dtype(layout))
    return np.column_stack([records[name] for name in ("x", "y", "z", "intensity")]), records["time"]


# ---- the folder of the sockets ----


def endpoint_as_user(prepare):
    """What default_endpoint returns or raises for a user without privileges, after prepare(folder) by this one."""
    user = os.getuid() or 12345
    folder = f"/tmp/ndtd-{user}"
    prepare(folder)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        if os.getuid() == 0:
            os.setuid(user)
        try:
            said = default_endpoint("scans")
        except OSError as reason:
            said = f"{type(reason).__name__}: {reason}"
        os.write(writer, said.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    mode = os.lstat(folder).st_mode & 0o777 if os.path.isdir(folder) else None
    os.unlink(folder) if os.path.islink(folder) else os.path.isdir(folder) and os.rmdir(folder)
    return said, mode, f"ipc://{folder}/scans.ipc"


def check_private_folder():
    """In /tmp any user can make the folder first: one of others is refused, and a missing one is made."""
    user = os.getuid() or 12345
    os.environ.pop("RUNTIME_DIRECTORY", None)
    os.environ.pop("XDG_RUNTIME_DIR", None)
    if os.path.lexists(f"/tmp/ndtd-{user}") or os.path.exists("/run/ndtd/scans.ipc"):
        print("a daemon runs here: its folder is left alone")
        return
    said, mode, endpoint = endpoint_as_user(lambda folder: None)
    assert (said, mode) == (endpoint, 0o700), (said, mode)

    def open_to_all(folder):
        os.mkdir(folder)
        os.chown(folder, user, -1)
        os.chmod(folder, 0o777)

    refused = [open_to_all, lambda folder: os.symlink(WORK, folder)]
    if os.getuid() == 0:
        refused.append(lambda folder: os.mkdir(folder, 0o700))  # of root
    for prepare in refused:
        said, _, _ = endpoint_as_user(prepare)
        assert said.startswith("PermissionError: ") and f"/tmp/ndtd-{user}" in said, said


# ---- codec: the C decoders read what the client sends ----


def check_codec():
    context = zmq.Context()
    scans, poses, control = (context.socket(kind) for kind in (zmq.SUB, zmq.XPUB, zmq.ROUTER))
    scans.subscribe(b"")
    for socket, name in ((scans, "scans"), (poses, "poses"), (control, "control")):
        socket.bind(ENDPOINTS[name])
    frames = []
    receiver = threading.Thread(target=lambda: frames.extend(scans.recv() for _ in range(9)), daemon=True)
    receiver.start()
    with Client(**ENDPOINTS) as client:
        client.wait_ready()
        assert client.publish_scan([[1, 2, 3], [-1, 0.5, np.nan]], STAMP_NS) == 0
        near = np.array([[1.5, 2.25, -3, 0.5], [4, 5, 6, 255]])
        assert client.publish_scan(near, np.int64(STAMP_NS), time_s=[-0.05, 0.05], frame_id="top") == 1
        assert client.publish_scan(near[:, :3] + [500000.125, 4649984, 0], STAMP_NS, seq=2**64 - 1) == 2**64 - 1
        client.publish_scan(np.zeros((0, 3)), STAMP_NS)
        client.publish_gnss(np.array([1.0, 2, 3]), STAMP_NS, deviation=(0.5, 0.5, 2))
        client.publish_odometry(STAMP_NS, twist=[8.5, 0, 0, 0, 0, np.float64(0.25)])
        client.publish_initial_pose([1, 2, 3, 0, 0, 0, 1], STAMP_NS, covariance=np.diag(np.arange(1.0, 7)))
        client.publish_imu([0.5, 0, np.float32(-0.25)], STAMP_NS)
        client.publish_imu((0, 0, 1), STAMP_NS, np.array([0, 0.5, 9.75]), 1e-4 * np.eye(3), np.diag([1, 2, 3]), "base")
        receiver.join(10)
        assert len(frames) == 9, frames
        check_silence(client)
        check_localize(client, control)
    context.destroy(0)
    write_bag(f"{WORK}/sent.bag", frames)
    dump = subprocess.run([f"{BIN}/ndt-bag", "dump", f"{WORK}/sent.bag", "--points", "2"], capture_output=True,
                          text=True)
    assert dump.returncode == 0, dump.stderr
    check_dump([json.loads(line) for line in dump.stdout.splitlines()])
    subprocess.run([f"{BIN}/ndt-bag", "check", f"{WORK}/sent.bag"], check=True, stdout=subprocess.DEVNULL)
    check_estimate()
    check_private_folder()
    os.environ["RUNTIME_DIRECTORY"] = f"{WORK}/runtime"
    os.mkdir(f"{WORK}/runtime")
    open(f"{WORK}/runtime/scans.ipc", "w", encoding="ascii").close()
    assert default_endpoint("scans") == f"ipc://{WORK}/runtime/scans.ipc"


def check_estimate():
    """Twist, confidence and innovation of a result, printed as they were sent."""
    with open(f"{GOLDEN}/result_estimate.hex", encoding="ascii") as file:
        frame = bytes.fromhex("".join(line for line in file if not line.startswith("#")))
    write_bag(f"{WORK}/result.bag", [frame])
    dump = subprocess.run([f"{BIN}/ndt-bag", "dump", f"{WORK}/result.bag"], capture_output=True, text=True, check=True)
    shown, sent = json.loads(dump.stdout), msgpack.unpackb(frame)
    assert all(shown[key] == sent[key] for key in sent if key != "v"), (shown, sent)


def check_silence(client):
    try:
        client.request("hello", timeout=0.1)
    except TimeoutError as reason:
        assert "hello" in str(reason)
    else:
        raise AssertionError("a reply without a daemon")
    assert not list(client.results(timeout=0.05))


def check_localize(client, control):
    """The client polls until the search has ended; a search that takes too long is cancelled."""
    requests = []

    def serve(reports):
        for report in reports:
            identity, frame = control.recv_multipart()
            requests.append(msgpack.unpackb(frame))
            reply = {"v": 1, "type": "reply", "id": requests[-1]["id"], "ok": True, "search": report}
            control.send_multipart([identity, msgpack.packb(reply)])

    while control.poll(0):
        control.recv_multipart()  # the request that was not answered
    running = {"search_id": 5, "running": True, "percent": 40, "elapsed_ms": 3.0}
    done = {"search_id": 5, "running": False, "percent": 100, "elapsed_ms": 9.0, "accepted": True, "confidence": 0.99}
    for reports, timeout, outcome in (([running, running, done], 10, done), ([running] * 2, 0, TimeoutError),
                                      ([running, {**running, "search_id": 6}], 10, RequestError)):
        requests.clear()
        server = threading.Thread(target=serve, args=(reports,), daemon=True)
        server.start()
        try:
            assert client.localize(position=(1, 2, 3), heading=np.float64(0.5), apply=False, timeout=timeout) == outcome
        except (TimeoutError, RequestError) as reason:
            assert isinstance(reason, outcome), reason
        server.join(10)
        assert requests[0]["op"] == "localize" and requests[0]["position"] == [1, 2, 3], requests
        assert requests[0]["apply"] is False and requests[0]["heading"] == 0.5 and "pose" not in requests[0], requests
        assert requests[-1]["op"] == ("cancel_search" if outcome is TimeoutError else "search"), requests


def check_dump(messages):
    plain, full, far, empty, gnss, odometry, start, rates, imu = messages
    assert plain["xyz_m"] == [[1, 2, 3], [-1, 0.5, None]] and "intensity" not in plain and plain["seq"] == 0, plain
    assert full["xyz_m"] == [[1.5, 2.25, -3], [4, 5, 6]] and full["intensity"] == [0.5, 255], full
    assert np.allclose(full["time_s"], [-0.05, 0.05]) and full["frame_id"] == "top", full
    assert all(message["stamp_ns"] == STAMP_NS for message in messages)
    assert far["xyz_m"] == [[500001.625, 4649986.25, -3], [500004.125, 4649989, 6]] and far["seq"] == 2**64 - 1, far
    assert empty["points"] == 0 and empty["seq"] == 2, empty
    assert gnss["type"] == "gnss" and gnss["position"] == [1, 2, 3] and gnss["deviation"] == [0.5, 0.5, 2], gnss
    assert odometry["twist"] == [8.5, 0, 0, 0, 0, 0.25] and "pose" not in odometry, odometry
    assert start["pose"] == [1, 2, 3, 0, 0, 0, 1] and start["covariance"][35] == 6, start
    assert rates["angular_velocity"] == [0.5, 0, -0.25] and "linear_acceleration" not in rates, rates
    assert imu["frame_id"] == "base" and imu["linear_acceleration"] == [0, 0.5, 9.75], imu
    assert imu["angular_velocity_covariance"][8] == 1e-4 and imu["linear_acceleration_covariance"][4] == 2, imu


# ---- live: a drive through the daemon ----


def start_daemon():
    with open(f"{WORK}/ndtd.yaml", "w", encoding="ascii") as file:
        json.dump({"backend": {"name": "cpu"}, "cpu": {"threads": 2}, "map": {"path": f"{WORK}/drive/map.pcd"},
                   "preprocess": {"deskew": "time"}, "live": {"budget_ms": 5000.0}, "sockets": ENDPOINTS}, file)
    log = open(f"{WORK}/ndtd.log", "w", encoding="ascii")
    return subprocess.Popen([f"{BIN}/ndtd", "-c", f"{WORK}/ndtd.yaml"], stderr=log, stdout=log,
                            stdin=subprocess.DEVNULL)


def wait_for_map(client):
    """The daemon may open its sockets before the map is loaded: polls its status until it has a map."""
    end = time.monotonic() + 30
    while True:
        reply = client.request("status", timeout=30)
        if reply.get("map_id", 1) != 0 or time.monotonic() > end:
            return
        time.sleep(0.1)


def answer(client, seq):
    for result in client.results(timeout=10):
        if result["seq"] == seq:
            return result
    raise AssertionError(f"no answer to scan {seq}")


def assert_near(result, truth):
    pose = np.array(result["pose"])
    distance_m = np.linalg.norm(pose[:3] - truth[:3])
    angle_rad = 2 * np.arccos(min(1.0, abs(pose[3:] @ truth[3:])))
    assert distance_m < 0.15 and angle_rad < 0.01, f"{distance_m:.3f} m and {angle_rad:.4f} rad off: {result}"


def drive(client):
    """Publishes every scan of the drive after the result of the one before."""
    truth, last = {}, None
    for message in read_bag(f"{WORK}/drive/drive.bag"):
        if message["type"] == "truth":
            truth[message["stamp_ns"]] = np.array(message["pose"])
        elif message["type"] == "initial_pose":
            client.publish_initial_pose(message["pose"], message["stamp_ns"], twist=message.get("twist"))
        elif message["type"] == "scan":
            points, times = points_of(message)
            seq = client.publish_scan(points, message["stamp_ns"], time_s=times)
            result = answer(client, seq)
            assert result["outcome"] == "converged" and result["stamp_ns"] == message["stamp_ns"], result
            assert result["frame_id"] == "map", result
            assert_near(result, truth[message["stamp_ns"]])
            assert len(result["covariance"]) == 36 and result["config_hash"] and result["map_id"], result
            assert result["drop_counter"] == 0 and result["queue_us"] >= 0 and result["align_us"] > 0, result
            last = (points, times, truth[message["stamp_ns"]], message["stamp_ns"])
    assert len(truth) == 20
    return last


def refused(client, word, op, **arguments):
    try:
        reply = client.request(op, **arguments)
    except RequestError as reason:
        assert word in str(reason), f"{op} {arguments}: '{reason}' does not name {word}"
    else:
        raise AssertionError(f"{op} {arguments} was accepted: {reply}")


def check_control(client):
    assert client.request("hello")["ok"] is True
    assert client.request("status")["ok"] is True
    assert client.request("timings", count=5)["ok"] is True
    refused(client, "'dance'", "dance")
    refused(client, "'path' is missing", "load_map")
    refused(client, "'pose'", "initial_pose")
    refused(client, "'pose'", "initial_pose", pose=[0, 0, 0, 0, 0, 0, 2])
    refused(client, "'count'", "timings", count="many")
    newer = msgpack.packb({"v": 2, "type": "request", "id": 7, "op": "hello"})
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:  # with the empty delimiter, and malformed requests
        socket.linger = 0
        socket.connect(ENDPOINTS["control"])
        for frame in (b"", b"\xc1", msgpack.packb([1, 2]), newer):
            socket.send(frame)
            assert socket.poll(5000), f"no reply to {frame}"
            reply = msgpack.unpackb(socket.recv())
            assert reply["ok"] is False and reply["error"] and reply["id"] == (7 if frame == newer else 0), reply


def check_bad_scans(client, last):
    points, times, pose, stamp_ns = last
    bad = {"v": 1, "type": "scan", "seq": 70, "stamp_ns": stamp_ns + 1, "frame_id": "lidar", "count": 3,
           "point_step": 12, "fields": [["x", 0, 7, 1], ["y", 4, 7, 1], ["z", 8, 7, 1]], "data": b"too short"}
    for frame in (b"", b"\xc1", b"\x81", os.urandom(100), msgpack.packb({"v": 1, "type": "nonsense"})):
        client._scans.send(frame)
    client._scans.send(msgpack.packb(bad))
    result = answer(client, 70)
    assert result["outcome"] == "rejected" and "'data'" in result["reason"], result
    client.publish_initial_pose(pose, stamp_ns)
    seq = client.publish_scan(points, stamp_ns + 100_000_000, time_s=times)
    result = answer(client, seq)
    assert result["outcome"] == "converged", result


def check_example(last):
    points, times, pose, _ = last
    np.save(f"{WORK}/scan.npy", np.column_stack([points, times]))
    points.astype("<f4").tofile(f"{WORK}/scan.bin")
    with open(f"{WORK}/scan.pcd", "wb") as file:
        head = (f"VERSION .7\nFIELDS x y z time\nSIZE 4 4 4 4\nTYPE F F F F\nCOUNT 1 1 1 1\nWIDTH {len(points)}\n"
                f"HEIGHT 1\nPOINTS {len(points)}\nDATA binary\n")
        file.write(head.encode() + np.column_stack([points[:, :3], times]).astype("<f4").tobytes())
    where = [f"--{name}={endpoint}" for name, endpoint in ENDPOINTS.items()]
    where.append("--initial=" + ",".join(map(str, pose)))
    # KITTI files have no times, which this daemon requires: the example prints the reason.
    for name, code, words in (("scan.npy", 0, "converged"), ("scan.pcd", 0, "converged"), ("scan.bin", 1, "rejected")):
        run = subprocess.run([sys.executable, EXAMPLE, f"{WORK}/{name}", *where], capture_output=True, text=True)
        assert run.returncode == code and run.stdout.startswith(words), f"{name}: {run.stdout}{run.stderr}"


def check_live():
    daemon = start_daemon()
    try:
        with Client(**ENDPOINTS) as client:
            client.wait_ready(30)
            wait_for_map(client)
            last = drive(client)
            check_control(client)
            check_bad_scans(client, last)
            check_example(last)
            assert client.request("shutdown")["ok"] is True
        assert daemon.wait(10) == 0
        assert not [name for name in os.listdir(WORK) if name.endswith(".ipc")]
    except BaseException:
        with open(f"{WORK}/ndtd.log", encoding="ascii", errors="replace") as file:
            print("log of the daemon:\n" + file.read(), file=sys.stderr)
        raise
    finally:
        daemon.kill()
        daemon.wait()


check_codec() if MODE == "codec" else check_live()
