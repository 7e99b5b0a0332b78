"""ndt-ros2-bridge: names, CDR, conversions, and the way of scans through DDS and ndtd to poses."""
import os
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("cyclonedds")
pytest.importorskip("rosbags")
pytest.importorskip("zmq")

import msgpack
import ros2_graph
import ros2_peer as peer
from ndtd import BagReader, decode_scan, ndt_ros2_bridge
from ndtd.recordings import messages as m
from ndtd.recordings.sensor_frames import Frames
from ndtd.poses import compose, inverse, matrix
from ndtd.ros import from_ndtd, initial_pose, link, mounting, msgtypes, rmw, tf_buffer, to_ndtd
from ros2_peer import msg
from ros_processes import truth

STAMP_NS = 1_700_000_000_250_000_000


@pytest.fixture(scope="module")
def types():
    return rmw.Types()


def test_names():
    assert rmw.dds_topic("/sensing/points") == "rt/sensing/points"
    assert rmw.ros_topic("rt/sensing/points") == "/sensing/points"
    assert rmw.ros_topic("rq/service") is None and rmw.ros_topic("ros_discovery_info") is None
    assert rmw.dds_type(msgtypes.CLOUD) == "sensor_msgs::msg::dds_::PointCloud2_"
    assert rmw.ros_type("sensor_msgs::msg::dds_::PointCloud2_") == msgtypes.CLOUD
    assert rmw.ros_type("Plain") == "Plain"


def test_hash_of_a_type(types):
    # The hash that ROS 2 Iron and later publish for sensor_msgs/msg/PointCloud2.
    assert types.user_data(msgtypes.CLOUD) == b"typehash=RIHS01_9198cabf7da3796ae6fe19c4cb3bdd3525492988c70522628af5daa124bae2b5;"


def ros_header(types, frame_id="lidar"):
    return from_ndtd.Messages(types).header(STAMP_NS, frame_id)


def ros_imu(types, rng):
    vector = types["geometry_msgs/msg/Vector3"]
    covariance = [rng.standard_normal(9) for _ in range(3)]
    turn, force = rng.standard_normal(3), rng.standard_normal(3)
    message = types[msgtypes.IMU](ros_header(types, "imu"), types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0), covariance[0],
                             vector(*turn), covariance[1], vector(*force), covariance[2])
    same = msg.Imu(msg.Header(peer.stamp(STAMP_NS), "imu"), msg.Quaternion(0, 0, 0, 1), list(covariance[0]),
                   msg.Vector3(*turn), list(covariance[1]), msg.Vector3(*force), list(covariance[2]))
    return message, same


def ros_pose(types, rng):
    numbers, covariance = rng.standard_normal(7), rng.standard_normal((6, 6))
    result = {"stamp_ns": STAMP_NS, "pose": numbers.tolist(), "covariance": covariance.ravel().tolist()}
    pose = msg.Pose(msg.Point(*numbers[:3]), msg.Quaternion(*numbers[3:]))
    return (from_ndtd.Messages(types).pose(result, "map"),
            msg.PoseWithCovarianceStamped(msg.Header(peer.stamp(STAMP_NS), "map"),
                                          msg.PoseWithCovariance(pose, list(covariance.ravel()))))


def ros_tf(types, rng):
    numbers = rng.standard_normal(7)
    transform = msg.Transform(msg.Vector3(*numbers[:3]), msg.Quaternion(*numbers[3:]))
    return (from_ndtd.Messages(types).transform(STAMP_NS, "map", "base_link", numbers),
            msg.TFMessage([msg.TransformStamped(msg.Header(peer.stamp(STAMP_NS), "map"), "base_link", transform)]))


def ros_diagnostics(types, rng):
    row = ("ndtd: localisation", from_ndtd.WARN, "coasting", {"seq": 12, "confidence": 0.5})
    status = msg.DiagnosticStatus(1, row[0], row[2], "ndtd", [msg.KeyValue("seq", "12"), msg.KeyValue("confidence", "0.5")])
    return (from_ndtd.Messages(types).diagnostics(STAMP_NS, [row]),
            msg.DiagnosticArray(msg.Header(peer.stamp(STAMP_NS), ""), [status]))


def test_an_unsafe_pose_is_an_error_in_the_diagnostics():
    level = {"lateral": 0.5, "longitudinal": 0.5, "vertical": 0.1, "heading": 0.01, "unsafe": False, "reason": ""}
    result = {"pose": [0.0] * 6 + [1.0], "state": "tracking", "outcome": "converged", "reason": "", "protection_level": level}
    assert from_ndtd.localisation_status(result, {})[1:3] == (from_ndtd.OK, "tracking")
    level.update(unsafe=True, reason="level 0.71 m, limit 0.5 m")
    _, grade, text, values = from_ndtd.localisation_status(result, {})
    assert (grade, text) == (from_ndtd.ERROR, "unsafe: level 0.71 m, limit 0.5 m")
    assert values["protection_lateral"] == 0.5 and values["protection_unsafe"] is True


def test_a_pose_beyond_the_map_is_used_with_a_warning():
    result = {"pose": [0.0] * 6 + [1.0], "state": "extending", "outcome": "off_map", "reason": "12 m beyond the edge of the map"}
    assert from_ndtd.is_trusted(result)
    assert from_ndtd.localisation_status(result, {})[1:3] == (from_ndtd.WARN, "extending")
    assert not from_ndtd.is_trusted({**result, "state": "lost"})


@pytest.mark.parametrize("make, name, idl", [
    (ros_imu, msgtypes.IMU, msg.Imu), (ros_pose, msgtypes.POSE, msg.PoseWithCovarianceStamped), (ros_tf, msgtypes.TF, msg.TFMessage),
    (ros_diagnostics, msgtypes.DIAGNOSTICS, msg.DiagnosticArray)])
def test_cdr_in_both_directions(types, rng, make, name, idl):
    """The bytes of the bridge are those of cyclonedds with types written by hand, and each reads the other's."""
    message, same = make(types, rng)
    theirs = same.serialize(use_version_2=False)
    ours = types.encode(message, name)
    assert ours[:4] == b"\x00\x01\x00\x00" and len(ours) % 4 == 0
    assert ours[:len(theirs)] == theirs and not any(ours[len(theirs):])
    assert idl.deserialize(ours) == same
    assert types.encode(types.decode(theirs, name), name) == ours


@pytest.mark.parametrize("name", [msgtypes.CLOUD, msgtypes.IMU, msgtypes.FIX, msgtypes.ODOMETRY, msgtypes.TWIST, msgtypes.TWIST_COVARIANCE,
                                  msgtypes.POSE, msgtypes.TF, msgtypes.DIAGNOSTICS, msgtypes.CLOCK])
def test_idl_of_a_type(types, name):
    idl = types.idl(name)
    assert idl.__idl__.idl_transformed_typename == rmw.dds_type(name)
    idl.__idl__.populate()
    assert idl.__idl__.keyless


def test_cloud_of_a_real_recording(types, shared_data):
    """A PointCloud2 that a driver wrote: ROS 1 to CDR by rosbags, to fields by hand-written IDL and back: the same bytes."""
    highlevel = pytest.importorskip("rosbags.highlevel")
    typesys = pytest.importorskip("rosbags.typesys")
    count = 0
    store = typesys.get_typestore(typesys.Stores.ROS1_NOETIC)
    with highlevel.AnyReader([shared_data / "ros_recordings/luminar_ros1/test.bag"], default_typestore=store) as reader:
        clouds = [one for one in reader.connections if one.msgtype == msgtypes.CLOUD]
        for connection, _, raw in reader.messages(clouds[:1]):
            ros1 = reader.deserialize(raw, connection.msgtype)
            header = types["std_msgs/msg/Header"](ros1.header.stamp, ros1.header.frame_id)
            fields = [types["sensor_msgs/msg/PointField"](f.name, f.offset, f.datatype, f.count) for f in ros1.fields]
            cdr = types.encode(types[msgtypes.CLOUD](header, ros1.height, ros1.width, fields, ros1.is_bigendian, ros1.point_step,
                                                ros1.row_step, ros1.data, ros1.is_dense), msgtypes.CLOUD)
            again = msg.PointCloud2.deserialize(cdr)
            assert (again.width, again.point_step, again.fields[0].name) == (ros1.width, ros1.point_step, ros1.fields[0].name)
            theirs = again.serialize(use_version_2=False)
            assert cdr[:len(theirs)] == theirs
            frame = scan_frame(types, types.decode(cdr, msgtypes.CLOUD))
            decoded = decode_scan(frame)
            assert decoded["points"].shape == (ros1.width * ros1.height, 3)
            assert decoded["time_s"].max() <= 1e-3 < -decoded["time_s"].min() < 0.2  # the stamp is that of the last point
            count += 1
            break
    assert count == 1


def scan_frame(types, message, times=1):
    """The frame that a cloud becomes; the second one of a topic may go as it is."""
    sent = []
    inbound = to_ndtd.Inbound(types, lambda frame: sent.append(bytes(frame)) or True, Frames(), None)
    topic = m.Topic("/points", msgtypes.CLOUD, 0, "scan")
    for _ in range(times):
        inbound.cloud(message, topic, 0)
    assert [msgpack.unpackb(frame)["seq"] for frame in sent] == list(range(times))
    return sent[-1]


def cloud(types, fields, points, stamp_ns=STAMP_NS, row_padding=0):
    """A decoded PointCloud2 with one row."""
    cdr = peer.cloud(stamp_ns, "lidar", fields, points.itemsize, points.tobytes())
    return types.decode(cdr, msgtypes.CLOUD)


def test_cloud_by_hand_equals_the_serializer():
    data = bytes(range(36))
    fields = [["x", 0, 7, 1], ["y", 4, 7, 1], ["z", 8, 7, 1]]
    message = msg.PointCloud2(msg.Header(peer.stamp(STAMP_NS), "lidar"), 1, 3, [msg.PointField(*f) for f in fields], False, 12,
                              36, list(data), True)
    theirs = message.serialize(use_version_2=False)
    assert peer.cloud(STAMP_NS, "lidar", fields, 12, data)[:len(theirs)] == theirs


@pytest.mark.parametrize("name, datatype, dtype, values, seconds", [
    ("time", 7, "<f4", [0.0, 0.05], [0.0, 0.05]), ("t", 6, "<u4", [0, 50_000_000], [0.0, 0.05]),
    ("timestamp", 8, "<f8", [STAMP_NS * 1e-9, STAMP_NS * 1e-9 + 0.05], [0.0, 0.05]),
    ("timestamp", 8, "<f8", [float(STAMP_NS), STAMP_NS + 5e7], [0.0, 0.05]), ("curvature", 7, "<f4", [0.0, 50.0], [0.0, 0.05])])
def test_times_of_drivers(types, name, datatype, dtype, values, seconds):
    layout = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("pad", "V3"), ("intensity", "u1"), (name, dtype)])
    points = np.zeros(2, layout)
    points["x"], points["intensity"], points[name] = [1, 2], [3, 200], values
    fields = [[key, layout.fields[key][1], {"intensity": 2, name: datatype}.get(key, 7), 1]
              for key in ("x", "y", "z", "intensity", name)]
    decoded = decode_scan(scan_frame(types, cloud(types, fields, points)))
    assert decoded["stamp_ns"] == STAMP_NS and decoded["frame_id"] == "lidar"
    assert decoded["points"][:, 0].tolist() == [1, 2] and decoded["intensity"].tolist() == [3, 200]
    np.testing.assert_allclose(decoded["time_s"], seconds, atol=1e-6)


def test_clouds_as_they_are(types):
    """Records that ndtd reads as they should be are not written anew; others are; both give the same points."""
    layout = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("reflectivity", "u1"), ("t", "<u4"), ("pad", "V7")])
    points = np.zeros(3, layout)
    points["y"], points["reflectivity"], points["t"] = [1, np.nan, 3], 9, [0, 10, 20_000_000]
    fields = [["x", 0, 7, 1], ["y", 4, 7, 1], ["z", 8, 7, 1], ["reflectivity", 12, 2, 1], ["t", 13, 6, 1]]
    same = scan_frame(types, cloud(types, fields, points), times=2)
    assert points.tobytes() in same
    wide = np.zeros(3, np.dtype({"names": layout.names[:-1], "formats": ["<f4", "<f4", "<f4", "u1", "<u4"],
                                 "offsets": [0, 4, 8, 12, 13], "itemsize": 48}))
    for name in layout.names[:-1]:
        wide[name] = points[name]
    anew = scan_frame(types, cloud(types, fields, wide), times=2)
    assert len(anew) < wide.nbytes + 150 and len(msgpack.unpackb(anew)["data"]) == 2 * 20
    for key in ("points", "intensity", "time_s"):
        np.testing.assert_array_equal(decode_scan(same)[key][[0, 2]], decode_scan(anew)[key])  # without the empty one


def test_clouds_that_are_refused(types):
    points = np.zeros(1, np.dtype([("a", "<f4"), ("b", "<f4")]))
    with pytest.raises(ValueError, match="no x, y and z"):
        scan_frame(types, cloud(types, [["a", 0, 7, 1]], points))
    xyz = [["x", 0, 7, 1], ["y", 4, 7, 1], ["z", 8, 7, 1]]
    with pytest.raises(ValueError, match="fit"):
        scan_frame(types, cloud(types, xyz, points))
    with pytest.raises(to_ndtd.Refused, match="no points"):
        scan_frame(types, cloud(types, xyz, np.zeros(0, np.dtype(("V12")))))


def test_transforms(rng):
    def some():
        q = rng.standard_normal(4)
        return np.concatenate([rng.standard_normal(3), q / np.linalg.norm(q)])

    for _ in range(20):
        a, b = some(), some()
        np.testing.assert_allclose(matrix(compose(a, b)), matrix(a) @ matrix(b), atol=1e-12)
        np.testing.assert_allclose(matrix(inverse(a)), np.linalg.inv(matrix(a)), atol=1e-12)


def test_odometry_between_stamps():
    buffer = tf_buffer.Buffer()
    assert buffer.at(0) is None
    for k in range(3):
        buffer.add(k * 100_000_000, [k, 0, 0, 0, 0, 0, (-1) ** k])  # q and -q are the same rotation
    np.testing.assert_allclose(buffer.at(150_000_000), [1.5, 0, 0, 0, 0, 0, -1])
    assert buffer.at(300_000_000)[0] == 2 and buffer.at(500_000_000) is None
    buffer.add(190_000_000, [9, 0, 0, 0, 0, 0, 1])  # late: left out
    assert buffer.at(190_000_000)[0] == pytest.approx(1.9)


def transform(parent, child, x):
    return m.Transform(0, parent, child, np.array([x, 0, 0, 0, 0, 0, 1.0]))


def test_mounting_waits_for_tf_static(monkeypatch):
    sent, lines = [], []
    log = type("Log", (), {"__call__": lambda self, text: lines.append(text), "seldom": lambda self, cause, text: lines.append(text)})()
    one = mounting.Mounting("base_link", lambda frame: sent.append(msgpack.unpackb(frame)), log)
    assert not one.wants("lidar", 1, tells=True)  # a publisher of tf_static may be discovered yet
    begin_s = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: begin_s + 1.0)
        assert one.wants("lidar", 1, tells=True)
    one.is_published = True
    assert not one.wants("lidar", 2, tells=True)
    one.add([transform("base_link", "mast", 1.0), transform("mast", "lidar", 0.5), transform("base_link", "other", 7.0)], 3)
    assert one.wants("lidar", 4, tells=True) and len(sent) == 1
    assert sent[0]["type"] == "transform" and sent[0]["frame_id"] == "lidar" and sent[0]["pose"][0] == 1.5
    assert not one.wants("lost", 5)
    later_s = time.monotonic() + 60
    monkeypatch.setattr(time, "monotonic", lambda: later_s)
    assert one.wants("lost", 6) and "lost" in lines[-1]


@pytest.mark.parametrize("arguments, message", [
    (["--gnss", "/fix"], "--projector"), (["-r", "a=b"], "FROM:=TO"), (["--scan", "my points"], "is no name of a topic"),
    (["--domain", "300"], "0 to 232"), (["-p", "x:=1"], "use_sim_time")])
def test_wrong_usage(arguments, message, capsys):
    assert ndt_ros2_bridge.main(arguments) == 2
    assert message in capsys.readouterr().err


def test_names_of_topics():
    args = ndt_ros2_bridge.parser().parse_args(["--scan", "points", "--imu", "/imu", "--ros-args", "-r", "__ns:=/robot", "-r",
                                                "initialpose:=/initialpose", "-r", "/tf:=tf", "-p", "use_sim_time:=true"])
    options = ndt_ros2_bridge.options(args)
    assert options.scans == ["/robot/points"] and list(options.motion) == ["/imu"]
    assert options.initial_pose == "/initialpose" and options.tf_topic == "/robot/tf" and options.use_sim_time
    assert options.pose == "/robot/localization/pose_estimator/pose_with_covariance"


def test_missing_package():
    """One line that says what to install."""
    code = ("import sys; sys.modules['cyclonedds'] = None\n"
            "from ndtd.ndt_ros2_bridge import main; sys.exit(main([]))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and "pip install 'ndtd[dds]'" in done.stderr and done.stderr.count("\n") == 1


def test_curve_keys(tmp_path):
    """Key files of `ndtd --make-keys`: both or none, and the secret one is for its owner alone."""
    zmq = pytest.importorskip("zmq")
    public, secret = zmq.curve_keypair()
    (tmp_path / "server").write_text(f"# of the daemon\n{public.decode()} # robot\n")
    (tmp_path / "secret").write_bytes(secret)
    (tmp_path / "secret").chmod(0o640)
    keys = str(tmp_path / "server"), str(tmp_path / "secret")
    assert link.read_keys(None, None) is None
    assert link.read_keys(*keys) == (public, public, secret)
    with pytest.raises(ValueError, match="belong together"):
        link.read_keys(keys[0], None)
    (tmp_path / "secret").chmod(0o644)
    with pytest.raises(ValueError, match="others may read"):
        link.read_keys(*keys)
    (tmp_path / "server").write_text("# nothing\n")
    (tmp_path / "secret").chmod(0o600)
    with pytest.raises(ValueError, match="no key"):
        link.read_keys(*keys)


def test_sockets_in_another_folder(tmp_path, monkeypatch):
    """A daemon that starts later, as the service: the link finds its folder."""
    import zmq
    context, folder = zmq.Context(), tmp_path / "user"
    monkeypatch.setattr(link, "default_endpoint", lambda name: f"ipc://{folder}/{name}.ipc")
    monkeypatch.setattr(link, "SEARCH_EVERY_S", 0.0)
    scans = link.Scans(context, link.Daemon())
    assert not scans.send(b"before")
    folder = tmp_path / "service"
    folder.mkdir()
    daemon = context.socket(zmq.SUB)
    daemon.subscribe(b"")
    daemon.bind(f"ipc://{folder}/scans.ipc")
    end = time.monotonic() + 10
    while not scans.send(b"after") and time.monotonic() < end:
        daemon.poll(50)  # zmq subscribes within the calls of its user
    assert daemon.poll(5000) and daemon.recv() == b"after"
    daemon.close()
    end = time.monotonic() + 10
    while scans.send(b"alone") and time.monotonic() < end:
        time.sleep(0.05)
    assert not scans.send(b"alone")  # nothing waits for the next daemon
    scans.close()
    context.term()


def test_motion(types, rng):
    """Imu, odometry, twist and fixes as frames; the twist of a sensor becomes that of the base."""
    sent, frames = [], Frames(base="base_link")
    frames.tree.add(m.Transform(0, "base_link", "imu", np.array([1.0, 0, 0, 0, 0, 1, 0])))  # half a turn about z
    inbound = to_ndtd.Inbound(types, lambda frame: sent.append(msgpack.unpackb(frame)) or True, frames,
                              lambda latitude, longitude, altitude: (latitude * 10, longitude * 10, altitude))

    def take(name, kind, cdr):
        topic = m.Topic("/topic", name, 0, kind)
        for message in inbound.read(cdr, topic, 1):
            inbound.motion(message, topic)

    message, same = ros_imu(types, rng)
    take(msgtypes.IMU, "imu", same.serialize(use_version_2=False))
    turn = same.angular_velocity
    assert sent[-1]["type"] == "imu" and sent[-1]["frame_id"] == "imu" and sent[-1]["stamp_ns"] == STAMP_NS
    assert sent[-1]["angular_velocity"] == [turn.x, turn.y, turn.z]
    vector, header = types["geometry_msgs/msg/Vector3"], ros_header(types, "base_link")
    twist = types["geometry_msgs/msg/Twist"](vector(5.0, 0.0, 0.0), vector(0.0, 0.0, 0.1))
    take(msgtypes.TWIST, "odometry", types.encode(types[msgtypes.TWIST](header, twist), msgtypes.TWIST))
    assert sent[-1]["type"] == "odometry" and "pose" not in sent[-1] and sent[-1]["twist"] == [5.0, 0, 0, 0, 0, 0.1]
    turned = types[msgtypes.TWIST](ros_header(types, "imu"), types["geometry_msgs/msg/Twist"](vector(5.0, 0.0, 0.0), vector(0.0, 0.0, 0.1)))
    take(msgtypes.TWIST, "odometry", types.encode(turned, msgtypes.TWIST))
    np.testing.assert_allclose(sent[-1]["twist"], [-5.0, -0.1, 0, 0, 0, 0.1], atol=1e-12)
    velocity = types[msgtypes.VELOCITY[0]](header, 4.0, 0.5, 0.25)
    take(msgtypes.VELOCITY[0], "odometry", types.encode(velocity, msgtypes.VELOCITY[0]))
    assert sent[-1]["twist"] == [4.0, 0.5, 0, 0, 0, 0.25]
    fix = types[msgtypes.FIX](header, types["sensor_msgs/msg/NavSatStatus"](0, 1), 1.0, 2.0, 3.0, np.diag([4.0, 9, 16]).ravel(), 2)
    take(msgtypes.FIX, "gnss", types.encode(fix, msgtypes.FIX))
    assert sent[-1]["type"] == "gnss" and sent[-1]["position"] == [10, 20, 3] and sent[-1]["deviation"] == [2, 3, 4]
    assert sent[-1]["antenna"] == "base_link"
    with pytest.raises(to_ndtd.Refused, match="finite"):
        bad = types["geometry_msgs/msg/Twist"](vector(np.nan, 0.0, 0.0), vector(0.0, 0.0, 0.0))
        take(msgtypes.TWIST, "odometry", types.encode(types[msgtypes.TWIST](header, bad), msgtypes.TWIST))


def test_livox(types):
    """livox_ros_driver2/msg/CustomMsg: 100 000 points without an object for each."""
    name = msgtypes.LIVOX[0]
    count = 100_000
    point = np.zeros(count, [("offset_time", "<u4"), ("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("rest", "u1", 3), ("pad", "u1")])
    point["offset_time"], point["x"] = np.arange(count) * 1000, np.arange(count) + 1
    head = types.encode(types[name](ros_header(types), STAMP_NS, count, 0, np.zeros(3, np.uint8), []), name)
    length = head.rindex(b"\0\0\0\0")
    cdr = head[:length] + np.uint32(count).tobytes() + point.tobytes()
    sent = []
    inbound = to_ndtd.Inbound(types, lambda frame: sent.append(frame) or True, Frames(), None)
    topic = m.Topic("/livox/lidar", name, 0, "scan")
    for scan in inbound.read(cdr, topic, 0):
        inbound.scan(scan, topic)
    decoded = decode_scan(sent[0])
    assert decoded["points"].shape == (count, 3) and decoded["points"][-1, 0] == count
    assert decoded["time_s"][-1] == pytest.approx((count - 1) * 1e-6, rel=1e-5)


@pytest.mark.parametrize("variables", [{"ROS_LOCALHOST_ONLY": "1"}, {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"},
                                       {"ROS_STATIC_PEERS": "127.0.0.1;localhost"}])
def test_discovery_by_variables_of_ros(variables, tmp_path):
    """Two processes on the loopback find each other by the variables alone."""
    code = ("import sys, time\n"
            "from ndtd.ros import dds, msgtypes, rmw, transport\n"
            "types = rmw.Types()\n"
            "participant = dds.Participant(9, types)\n"
            "writer = participant.writer('/' + sys.argv[1], msgtypes.CLOCK, transport.Quality(transient_local=True))\n"
            "end = time.monotonic() + 30\n"
            "while time.monotonic() < end:\n"
            "    participant.wait(0.1)\n"
            "    participant.discovered()\n"
            "    if any(one.topic == '/' + sys.argv[2] and one.transient_local for one in participant.endpoints()):\n"
            "        time.sleep(1)\n"
            "        sys.exit(0)\n"
            "sys.exit(1)")
    environment = {**os.environ, **variables}
    environment.pop("CYCLONEDDS_URI", None)
    processes = [subprocess.Popen([sys.executable, "-c", code, *names], env=environment) for names in (("a", "b"), ("b", "a"))]
    assert [process.wait(60) for process in processes] == [0, 0]


def test_covariance_of_rviz():
    given = np.zeros((6, 6))
    given[0, 0] = given[1, 1] = 0.25
    given[5, 5] = 0.07
    filled = initial_pose.filled_covariance(given)
    assert (np.linalg.eigvalsh(filled) > 0).all() and filled[0, 0] == 0.25 and filled[5, 5] == 0.07


# ---- through DDS and ndtd ----

SCANS = 60


@pytest.fixture(scope="module")
def drive_120k(simulate, tmp_path_factory):
    """A drive of 60 scans with 120 000 points each, and its clouds as CDR."""
    drive = simulate("--seed", 5, "--scans", SCANS, "--beams", 128, "--columns", 1100)
    folder = tmp_path_factory.mktemp("packed") / "scans"
    assert ros2_graph.pack(drive.bag, folder, SCANS) == SCANS
    return drive, folder


@pytest.fixture
def graph(bin_dir, drive_120k, tmp_path):
    drive, folder = drive_120k
    (tmp_path / "scans").symlink_to(folder)
    graph = ros2_graph.Graph(bin_dir / "ndtd", drive.map, tmp_path)
    yield graph
    graph.close()


def test_scans_in_poses_out(graph, drive_120k):
    drive, _ = drive_120k
    graph.start_listener()
    graph.start_ndtd("--initial-pose", ros2_graph.initial_pose(drive.bag))
    graph.wait_for("ndtd", "ready", 30, "err")
    graph.start_bridge()  # finds the only cloud by itself
    graph.start_driver("--rate", 5)
    assert graph.finish("driver", 60) == 0
    graph.wait_for("listener", "diagnostics", 5)
    assert graph.stop("bridge") == 0
    poses, published, true = graph.received("pose"), graph.published(), truth(drive.bag)
    assert len(published) == SCANS
    stamps = [stamp for stamp, _, _ in poses]
    assert len(set(stamps)) == len(stamps) and set(stamps) <= set(published)
    summary = graph.lines("bridge", "err")[-1]
    assert f"{len(stamps)} poses" in summary, summary
    lost, results = (int(summary.split(f" {what}")[0].split()[-1]) for what in ("scans lost on dds", "results"))
    assert results + lost >= SCANS - 1, summary  # each scan is answered, or known to be lost on the way
    assert len(stamps) >= SCANS * 0.8, summary
    for stamp, _, rest in poses:
        assert np.linalg.norm(np.subtract([float(v) for v in rest[:3]], true[stamp])) < 0.1
        assert rest[3] == "map"
    tf = {stamp: rest for stamp, _, rest in graph.received("tf")}
    assert set(tf) == set(stamps) and {tuple(rest[3:]) for rest in tf.values()} == {("map", "base_link")}
    rows = graph.received("diagnostics")
    assert any(rest[:2] == ["0", "ndtd:_localisation"] and rest[2] == "tracking" for _, _, rest in rows)
    assert any(rest[:3] == ["0", "ndtd:_daemon", "localising"] for _, _, rest in rows)


def test_poses_between_scans(graph, drive_120k):
    """With output.rate_hz: Odometry, and the transform with it."""
    drive, _ = drive_120k
    graph.start_listener()
    graph.start_ndtd("--initial-pose", ros2_graph.initial_pose(drive.bag), "--set", "output.rate_hz=50")
    graph.wait_for("ndtd", "ready", 30, "err")
    graph.start_bridge("--scan", "/points")
    graph.start_driver("--rate", 10)
    assert graph.finish("driver", 60) == 0
    graph.wait_for("listener", "odometry", 10)
    assert graph.stop("bridge") == 0
    rows, true = graph.received("odometry"), truth(drive.bag)
    stamps = [stamp for stamp, _, _ in rows]
    assert stamps == sorted(set(stamps)) and len(stamps) > 50, graph.lines("bridge", "err")
    known = sorted(true)
    for stamp, _, rest in rows:
        assert rest[3:5] == ["map", "base_link"] and float(rest[5]) > 0
        if known[0] <= stamp <= known[-1]:
            there = [np.interp(stamp - known[0], [k - known[0] for k in known], [true[k][i] for k in known]) for i in range(3)]
            # On a busy machine scans come late, and the pose is far ahead of them: it then says how uncertain it is.
            deviation_m = np.sqrt(float(rest[5]))
            assert np.linalg.norm(np.subtract([float(v) for v in rest[:3]], there)) < max(0.15, 5 * deviation_m)
    assert {stamp for stamp, _, _ in graph.received("tf")} & set(stamps)
    assert "poses between scans" in graph.lines("bridge", "err")[-1]


@pytest.mark.parametrize("which", ["bridge", "ndtd", "driver"])
def test_restart(graph, drive_120k, which):
    """Each of them is killed and started again: poses go on, and stamps stay in order."""
    drive, _ = drive_120k
    initial = ("--initial-pose", ros2_graph.initial_pose(drive.bag))
    graph.start_listener()
    graph.start_ndtd(*initial)
    graph.wait_for("ndtd", "ready", 30, "err")
    graph.start_bridge("--scan", "/points")
    graph.start_driver("--rate", 2)
    graph.wait_for("listener", "pose", 30)
    graph.stop(which, 9)
    before = len(graph.received("pose"))
    restarts = {"bridge": lambda: graph.start_bridge("--scan", "/points"), "ndtd": graph.start_ndtd,
                "driver": lambda: graph.start_driver("--rate", 2, "--skip", 20)}
    restarts[which]()
    graph.wait_for_poses(before + 5, 90)
    graph.stop("driver")
    stamps = [stamp for stamp, _, _ in graph.received("pose")]
    assert stamps == sorted(set(stamps))


@pytest.fixture
def robot(graph):
    """Writers of the test: robot(topic, type, latched=False).write(message)."""
    import cyclonedds.core as core
    from cyclonedds.domain import Domain, DomainParticipant
    from cyclonedds.pub import DataWriter
    from cyclonedds.topic import Topic
    domain = Domain(graph.domain, graph.configuration)  # noqa: F841  it lives as long as the fixture
    participant = DomainParticipant(graph.domain)
    policy = core.Policy

    def make(topic, data_type, latched=False):
        qos = core.Qos(policy.Reliability.Reliable(10**8), policy.History.KeepLast(1000),
                       policy.Durability.TransientLocal if latched else policy.Durability.Volatile,
                       policy.DurabilityService(0, policy.History.KeepLast(1000), -1, -1, -1))  # as rmw_cyclonedds does
        return DataWriter(participant, Topic(participant, "rt" + topic, data_type), qos)

    yield make


def tf_message(stamp_ns, parent, child, pose):
    transform = msg.Transform(msg.Vector3(*pose[:3]), msg.Quaternion(*pose[3:]))
    return msg.TFMessage([msg.TransformStamped(msg.Header(peer.stamp(stamp_ns), parent), child, transform)])


def pose_message(frame_id, pose):
    covariance = [0.0] * 36
    covariance[0] = covariance[7] = 0.25
    covariance[35] = 0.07
    return msg.PoseWithCovarianceStamped(msg.Header(peer.stamp(0), frame_id), msg.PoseWithCovariance(
        msg.Pose(msg.Point(*pose[:3]), msg.Quaternion(*pose[3:])), covariance))


def test_tf_and_initial_pose(graph, robot, simulate):
    """A LiDAR that is mounted off the base, odometry in tf, and the first pose from RViz: map -> odom is where it should be."""
    drive = simulate("--seed", 8, "--scans", 40, "--beams", 32, "--columns", 600, "--mount", "1.2,0.1,0.6,0,3,20")
    (graph.folder / "scans").unlink()
    ros2_graph.pack(drive.bag, graph.folder / "scans", 40)
    record = next(record for record in BagReader(str(drive.bag)) if record.type == "scan")
    lidar = msgpack.unpackb(record.payload)["frame_id"]
    pitch, yaw = np.radians([3, 20]) / 2
    about_y, about_z = [0, np.sin(pitch), 0, np.cos(pitch)], [0, 0, np.sin(yaw), np.cos(yaw)]
    mount = compose([1.2, 0.1, 0.6, *about_z], [0, 0, 0, *about_y])
    poses = [msgpack.unpackb(record.payload) for record in BagReader(str(drive.bag)) if record.type == "truth"]
    T_map_odom = np.array([7.0, -3.0, 0.2, 0.0, 0.0, np.sin(0.4), np.cos(0.4)])
    static, tf = robot("/tf_static", msg.TFMessage, latched=True), robot("/tf", msg.TFMessage)
    initial = robot("/initialpose", msg.PoseWithCovarianceStamped)
    static.write(tf_message(0, "base_link", lidar, mount))
    graph.start_listener()
    graph.start("ndtd", graph.ndtd, "--map", drive.map, "--set", "preprocess.deskew=time", "--set", "initial_pose.mode=given")
    graph.wait_for("ndtd", "ready", 30, "err")
    graph.start_bridge("--scan", "/points")
    graph.wait_for("bridge", "reads /tf_static", 20, "err")
    graph.start_driver("--rate", 2.5)  # the drive lasts while a busy machine takes its time
    graph.wait_for("bridge", "reads /tf (", 20, "err")
    for row in poses:
        T_odom_base = compose(inverse(T_map_odom), row["pose"])
        tf.write(tf_message(row["stamp_ns"], "odom", "base_link", T_odom_base))
    end = time.monotonic() + 20
    while len(graph.lines("driver")) < 5 and time.monotonic() < end:
        time.sleep(0.05)
    initial.write(pose_message("odom", poses[5]["pose"]))
    graph.wait_for("bridge", "a pose in the frame 'odom'; ndtd wants 'map'", 10, "err")
    initial.write(pose_message("map", poses[8]["pose"]))
    graph.wait_for("bridge", "initial pose: found", 20, "err")
    assert graph.finish("driver", 60) == 0
    assert graph.stop("bridge") == 0
    assert f"'{lidar}' is at 1.2 0.1 0.6" in "\n".join(graph.lines("bridge", "err"))
    true = {row["stamp_ns"]: row["pose"][:3] for row in poses}
    got = graph.received("pose")
    assert len(got) >= 10, graph.lines("bridge", "err")
    for stamp, _, rest in got:
        assert np.linalg.norm(np.subtract([float(v) for v in rest[:3]], true[stamp])) < 0.15
    tf_rows = [rest for _, _, rest in graph.received("tf") if rest[3] == "map"]
    assert {rest[4] for rest in tf_rows} == {"odom"}
    for rest in tf_rows:
        np.testing.assert_allclose([float(v) for v in rest[:3]], T_map_odom[:3], atol=0.3)


def test_two_lidars(graph, robot, simulate):
    """Two topics, each LiDAR at its place by tf_static."""
    drive = simulate("--seed", 8, "--scans", 20, "--beams", 32, "--columns", 1200, "--sensors", 2, "--mount",
                     "1.2,0.5,0.6,0,0,20,-1,-0.5,0.7,0,0,-30")
    (graph.folder / "scans").unlink()
    count = ros2_graph.pack(drive.bag, graph.folder / "scans", 100)
    static = robot("/tf_static", msg.TFMessage, latched=True)
    for frame, place, yaw in (("lidar_0", [1.2, 0.5, 0.6], 20), ("lidar_1", [-1.0, -0.5, 0.7], -30)):
        half = np.radians(yaw) / 2
        static.write(tf_message(0, "base_link", frame, [*place, 0, 0, np.sin(half), np.cos(half)]))
    graph.start_listener()
    graph.start("ndtd", graph.ndtd, "--map", drive.map, "--set", "preprocess.deskew=time", "--initial-pose",
                ros2_graph.initial_pose(drive.bag))
    graph.wait_for("ndtd", "ready", 30, "err")
    graph.start_bridge("--scan", "/points/lidar_0", "--scan", "/points/lidar_1")
    graph.wait_for("bridge", "reads /tf_static", 20, "err")
    graph.start_driver("--rate", 10, "--frame", "lidar_0", "--frame", "lidar_1")
    assert graph.finish("driver", 60) == 0
    assert graph.stop("bridge") == 0
    text = "\n".join(graph.lines("bridge", "err"))
    assert "'lidar_0' is at 1.2 0.5 0.6" in text and "'lidar_1' is at -1 -0.5 0.7" in text
    true, got = truth(drive.bag), graph.received("pose")
    assert count == 40 and len(got) >= 30, text
    for stamp, _, rest in got:
        if stamp in true:
            assert np.linalg.norm(np.subtract([float(v) for v in rest[:3]], true[stamp])) < 0.2


def test_list_of_topics(graph, robot):
    keep = robot("/tf_static", msg.TFMessage, latched=True)
    graph.start("bridge", sys.executable, "-m", "ndtd.ndt_ros2_bridge", "--list")
    assert graph.finish("bridge", 30) == 0
    assert graph.lines("bridge") == ["/tf_static  tf2_msgs/msg/TFMessage  reliable, transient local"]
    del keep


def test_a_map_is_no_scan(graph, robot):
    """What late subscribers get is not what a LiDAR sees."""
    keep = robot("/map", msg.PointCloud2, latched=True)
    graph.start_driver("--limit", 1)
    graph.start_bridge()
    graph.wait_for("bridge", "reads /points", 30, "err")
    del keep


def test_hints(graph):
    """No daemon, no cloud on the named topic, another one elsewhere: three lines."""
    graph.start_driver("--topic", "/elsewhere", "--limit", 1)
    graph.start_bridge("--scan", "/points", "--imu", "/imu")
    graph.wait_for("bridge", "no publisher of /points", 20, "err")
    lines = "\n".join(graph.lines("bridge", "err"))
    assert "that type is on /elsewhere" in lines
    assert "ndtd does not answer" in lines and "no publisher of /imu" in lines
    assert graph.stop("bridge") == 0


def test_qos_that_do_not_match(graph):
    graph.start_driver("--limit", 1)
    graph.start_bridge("--scan", "/points", "--reliable")
    graph.wait_for("bridge", "its writer is best effort, leave --reliable out", 30, "err")


def test_ambiguous_scans(graph):
    graph.start_driver("--topic", "/left", "--limit", 1)
    graph.start("other", sys.executable, ros2_graph.PEER, "publish", graph.folder / "scans", "--topic", "/right", "--limit", 1)
    graph.start_bridge()
    assert graph.finish("bridge", 30) == 2
    assert "which scans? There are /left, /right: --scan TOPIC" in graph.lines("bridge", "err")[-1]
