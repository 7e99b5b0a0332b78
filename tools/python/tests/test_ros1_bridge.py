"""ndt-ros1-bridge among the real thing: roscore, rosbag play, nodes of rospy, tf2. Skipped where ROS 1 is not installed."""
import os
import signal
import subprocess
import sys
import threading
import time
from xmlrpc.server import SimpleXMLRPCServer

import msgpack
import numpy as np
import pytest

pytest.importorskip("rosbags")
pytest.importorskip("zmq")

import recording_maker
import ros1_graph
from ndtd import BagReader, decode_scan, ndt_ros1_bridge
from ndtd.poses import compose
from ndtd.recordings import messages as m
from ndtd.recordings.sensor_frames import Frames
from ndtd.ros import from_ndtd, msgtypes, rospy_graph, to_ndtd
from ros_processes import truth
from rosbags import rosbag1

STAMP_NS = 1_700_000_000_250_000_000
SCANS = 100

MISSING = ros1_graph.missing()
has_ros = pytest.mark.skipif(bool(MISSING), reason=f"no ROS 1: {MISSING} (Debian: tools/install-deps tests)")


@pytest.fixture(scope="module")
def types():
    return rospy_graph.Types()


# ---- without ROS ----

def test_names_and_remapping_arguments(monkeypatch):
    for name in ("ROS_NAMESPACE", "ROS_MASTER_URI", "ROS_IP"):
        monkeypatch.setenv(name, "")
    arguments = ["__ns:=/robot", "--scan", "points", "--imu", "/imu", "__name:=left", "initialpose:=/initialpose", "/tf:=tf", "__log:=/x",
                 "_use_sim_time:=true", "~own:=/other", "__ip:=10.0.0.1", "__master:=http://robot:11311", "--odometry", "~own"]
    options, node = ndt_ros1_bridge.options(ndt_ros1_bridge.parser().parse_intermixed_args(arguments))
    assert node == "left" and options.use_sim_time
    assert options.scans == ["/robot/points"] and list(options.motion) == ["/other", "/imu"]
    assert options.initial_pose == "/initialpose" and options.tf_topic == "/robot/tf"
    assert options.pose == "/robot/localization/pose_estimator/pose_with_covariance"
    assert [os.environ[name] for name in ("ROS_NAMESPACE", "ROS_MASTER_URI", "ROS_IP")] == ["/robot", "http://robot:11311", "10.0.0.1"]


@pytest.mark.parametrize("arguments, message", [
    (["--gnss", "/fix"], "--projector"), (["a=b"], "FROM:=TO is wanted"), (["--scan", "my points"], "is no name of a topic"),
    (["_rate:=1", "--scan", "/a", "/b:=/c"], "only _use_sim_time is known"), (["__name:=a/b"], "is no name of a node"), (["--list", "__master:=robot"], "http://HOST:PORT"),
    (["--list", "__master:=https://robot:1"], "http://HOST:PORT"), (["--list", "__ns:=a b"], "is no name of a namespace")])
def test_wrong_usage(arguments, message, capsys, monkeypatch):
    for name in ("ROS_NAMESPACE", "ROS_MASTER_URI"):
        monkeypatch.setenv(name, "")
    assert ndt_ros1_bridge.main(arguments) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_no_rospy():
    """One line that says how to get it."""
    code = ("import sys; sys.modules['rospy'] = None\n"
            "from ndtd.ros import rospy_graph; rospy_graph.FOLDERS = ()\n"
            "from ndtd.ndt_ros1_bridge import main; sys.exit(main([]))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and "apt install python3-rospy" in done.stderr and done.stderr.count("\n") == 1


def test_list_without_a_master(capsys, monkeypatch):
    monkeypatch.setenv("ROS_MASTER_URI", "http://127.0.0.1:1")
    assert ndt_ros1_bridge.main(["--list"]) == 3
    assert "no master of ROS at http://127.0.0.1:1" in capsys.readouterr().err


STATE = [["/points", ["/lidar"]]], [], []


@pytest.mark.parametrize("state, types", [(7, []), ([[], []], []), ([[["/points"]], [], []], []), ([[["/points", 3]], [], []], []), (STATE, [["/points"]]), (STATE, 5)])
def test_list_of_a_master_that_answers_nonsense(state, types, capsys, monkeypatch):
    with SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False) as server:
        server.register_function(lambda caller: (1, "", state), "getSystemState")
        server.register_function(lambda caller: (1, "", types), "getTopicTypes")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("ROS_MASTER_URI", f"http://127.0.0.1:{server.server_address[1]}")
        assert ndt_ros1_bridge.main(["--list"]) == 3
        server.shutdown()
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "its list of topics is none" in said


def sent_by(types, feed):
    """Frames that ndtd gets of what feed(inbound) gives."""
    sent, frames = [], Frames(base="base_link")
    frames.tree.add(m.Transform(0, "base_link", "imu", np.array([1.0, 0, 0, 0, 0, 1, 0])))  # half a turn about z
    feed(to_ndtd.Inbound(types, lambda frame: sent.append(bytes(frame)) or True, frames, None))
    return sent


def test_messages_of_ros1(types):
    """A cloud, CustomMsg of Livox and a twist of another frame, a VelocityReport; frames with a leading slash."""
    make = recording_maker.Messages(is_ros1=True)
    records = recording_maker.some_points()

    def raw(message):
        return bytes(make.store.serialize_ros1(message, message.__msgtype__))

    def feed(inbound):
        cloud = make.cloud(STAMP_NS, "/lidar", records)
        inbound.cloud(types.decode(raw(cloud), msgtypes.CLOUD), m.Topic("/points", msgtypes.CLOUD, 0, "scan"), 0)
        livox = np.zeros(3, [("offset_time", "<u4"), ("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("reflectivity", "u1"), ("tag", "u1"), ("line", "u1")])
        livox["x"], livox["offset_time"] = [1, 2, 3], [0, 10_000_000, 20_000_000]
        for name in ("livox_ros_driver2", "livox_ros_driver"):
            topic = m.Topic("/livox", f"{name}/msg/CustomMsg", 0, "scan")
            for scan in inbound.read(raw(make.livox(STAMP_NS, "livox", livox, name)), topic, 0):
                inbound.scan(scan, topic)
        topic = m.Topic("/twist", msgtypes.TWIST, 0, "odometry")
        for message in inbound.read(raw(make.twist_stamped(STAMP_NS, [5.0, 0, 0, 0, 0, 0.1], "/imu")), topic, 0):
            inbound.motion(message, topic)
        topic = m.Topic("/velocity", msgtypes.VELOCITY[0], 0, "odometry")
        report = types[topic.type](make.header(STAMP_NS, "base_link"), longitudinal_velocity=5.0, lateral_velocity=0.5, heading_rate=0.25)
        for message in inbound.read(raw(report), topic, 0):
            inbound.motion(message, topic)

    *scans, twist, velocity = sent_by(types, feed)
    cloud, *livoxes = [decode_scan(scan) for scan in scans]
    assert cloud["stamp_ns"] == STAMP_NS and cloud["frame_id"] == "lidar"
    np.testing.assert_allclose(cloud["points"][:, 0], records["x"])
    for one in livoxes:
        assert one["points"][:, 0].tolist() == [1, 2, 3] and one["time_s"] == pytest.approx([0, 0.01, 0.02])
    np.testing.assert_allclose(msgpack.unpackb(twist)["twist"], [-5.0, -0.1, 0, 0, 0, 0.1], atol=1e-12)
    assert msgpack.unpackb(velocity)["twist"] == [5.0, 0.5, 0, 0, 0, 0.25]


# ---- with ROS ----

def made(types, rng):
    """Messages of every type that the bridge publishes."""
    messages, numbers = from_ndtd.Messages(types), rng.standard_normal(7)
    result = {"stamp_ns": STAMP_NS, "pose": numbers.tolist(), "covariance": rng.standard_normal(36).tolist(), "twist": [1.0] * 6}
    return {msgtypes.POSE: messages.pose(result, "map"), msgtypes.ODOMETRY: messages.odometry(result, "map", "base_link"),
            msgtypes.TF: messages.transform(STAMP_NS, "map", "odom", numbers),
            msgtypes.DIAGNOSTICS: messages.diagnostics(STAMP_NS, [("ndtd: localisation", from_ndtd.WARN, "coasting", {"seq": 12})])}


@has_ros
@pytest.mark.parametrize("name", [msgtypes.POSE, msgtypes.ODOMETRY, msgtypes.TF, msgtypes.DIAGNOSTICS])
def test_bytes_and_checksums_are_those_of_genpy(types, rng, name):
    raw = types.encode(made(types, rng)[name], name)
    done = subprocess.run([ros1_graph.PYTHON, ros1_graph.PEER, "recode", rospy_graph.ros1_name(name)], input=raw.hex(), check=True,
                          capture_output=True, text=True, env=ros1_graph.of_system({**os.environ}))
    md5, again, text = done.stdout.splitlines()
    assert md5 == types.definition(name)[1] and bytes.fromhex(again) == raw
    assert "secs: 1700000000 nsecs: 250000000" in text and types.has_header(name) == (name != msgtypes.TF)


def quaternion(axis, degrees):
    half = np.radians(degrees) / 2
    return [*(np.sin(half) * np.eye(3)[axis]), np.cos(half)]


MOUNT = compose([1.2, 0.1, 0.6, *quaternion(2, 20)], [0, 0, 0, *quaternion(1, 3)])


@pytest.fixture(scope="module")
def recording(simulate):
    """A drive, and its recording of ROS 1: a LiDAR off the base, which only tf_static tells; IMU, odometry and tf."""
    drive = simulate("--seed", 8, "--scans", SCANS, "--beams", 32, "--columns", 600, "--mount", "1.2,0.1,0.6,0,3,20", "--imu", 100, "--odometry")
    rows = [row for row in recording_maker.rows_of_drive(drive.bag, True, MOUNT) if row[0] not in ("/initialpose", "/truth")]
    types, path, connections = recording_maker.store(True), drive.folder / "ros1.bag", {}
    with rosbag1.Writer(path) as writer:
        for topic, kind, receive_ns, message in rows:
            if topic not in connections:
                latched = 1 if topic == "/tf_static" else None
                connections[topic] = writer.add_connection(topic, kind, typestore=types, latching=latched)
            writer.write(connections[topic], receive_ns, types.serialize_ros1(message, kind))
    return drive, path


@pytest.fixture
def graph(bin_dir, recording, tmp_path):
    drive, _ = recording
    graph = ros1_graph.Graph(bin_dir / "ndtd", drive.map, tmp_path)
    yield graph
    graph.close()


def check_poses(poses, true, most_m):
    """Poses near the truth, in ascending order."""
    stamps = [stamp for stamp, _, _ in poses]
    assert stamps == sorted(set(stamps))
    for stamp, _, rest in poses:
        assert np.linalg.norm(np.subtract([float(v) for v in rest[:3]], true[stamp])) < most_m


def yaw_of(pose):
    return 2 * np.arctan2(pose[5], pose[6])


@has_ros
def test_recording_with_tf_and_initial_pose(graph, recording):
    """rosbag play --clock; the first pose by rviz's click; poses, map -> odom by tf2 and diagnostics in the time of the recording."""
    drive, path = recording
    true, rows = truth(drive.bag), [msgpack.unpackb(one.payload) for one in BagReader(str(drive.bag)) if one.type == "truth"]
    graph.start_master(use_sim_time=True)
    graph.start_listener()
    graph.start_ndtd("--set", "initial_pose.mode=given")
    graph.wait_for("ndtd", "ready", 60, "err")
    graph.start_bridge("--scan", "/points", "--imu", "/imu", "--odometry", "/odom")
    graph.play(path, "--rate", "0.25")
    graph.wait_for("bridge", "reads /points", 60, "err")
    x, y = rows[10]["pose"][:2]
    graph.start_peer("elsewhere", "click", "odom", x, y, 0)
    graph.wait_for("bridge", "a pose in the frame 'odom'; ndtd wants 'map'", 60, "err")
    graph.start_peer("click", "click", "map", x, y, yaw_of(rows[10]["pose"]))
    graph.wait_for("bridge", "initial pose: found", 60, "err")
    assert graph.finish("play", 200) == 0
    time.sleep(1.0)
    assert graph.stop("bridge") == 0
    poses, lines = graph.received("pose"), "\n".join(graph.lines("bridge", "err"))
    assert "'lidar' is at 1.2 0.1 0.6" in lines and f"{len(poses)} poses" in lines.splitlines()[-1], lines
    assert len(poses) > SCANS / 3, lines
    check_poses(poses, true, 0.15)
    assert [int(rest[4]) for _, _, rest in poses] == list(range(1, len(poses) + 1)) and {rest[3] for _, _, rest in poses} == {"map"}
    for _, _, (length2, *covariance) in graph.received("contract"):  # what robot_localization expects
        covariance = np.array(covariance, float).reshape(6, 6)
        assert float(length2) == pytest.approx(1) and np.allclose(covariance, covariance.T) and (np.linalg.eigvalsh(covariance) > 0).all()
    tf = [rest for _, _, rest in graph.received("tf") if rest[3] == "map"]
    assert {rest[4] for rest in tf} == {"odom"} and len(tf) == len(poses)
    of_tf2 = graph.received("tf2")
    assert len(of_tf2) > len(poses) / 2
    check_poses(sorted(of_tf2), true, 0.15)
    diagnostics = [(stamp, rest) for stamp, _, rest in graph.received("diagnostics")]
    assert any(rest[:3] == ["0", "ndtd:_localisation", "tracking"] for _, rest in diagnostics)
    assert all(rows[0]["stamp_ns"] - 2e9 < stamp < rows[-1]["stamp_ns"] + 2e9 for stamp, _ in diagnostics if stamp)


@has_ros
def test_poses_between_scans(graph, recording):
    """With output.rate_hz: Odometry; without odom in tf: map -> base_link."""
    drive, path = recording
    graph.start_master(use_sim_time=True)
    graph.start_listener()
    graph.start_ndtd("--set", "output.rate_hz=50")
    graph.wait_for("ndtd", "ready", 60, "err")
    graph.start_bridge("--imu", "/imu", "--tf", "map-base", "/points:=/cloud", "--scan", "/points")
    graph.play(path, "--rate", "0.5", "/points:=/cloud", "--topics", "/points", "/imu", "/tf_static")
    assert graph.finish("play", 200) == 0
    graph.wait_for("listener", "odometry", 30)
    assert graph.stop("bridge") == 0
    rows, true = graph.received("odometry"), truth(drive.bag)
    stamps, known = [stamp for stamp, _, _ in rows], sorted(true)
    settled_ns = graph.received("pose")[2][1]  # a search does not tell how fast the vehicle is
    assert stamps == sorted(set(stamps)) and len(stamps) > SCANS, graph.lines("bridge", "err")
    for stamp, at_ns, rest in rows:
        assert rest[3:5] == ["map", "base_link"] and float(rest[5]) > 0
        if at_ns > settled_ns and stamp <= known[-1]:
            there = [np.interp(stamp - known[0], [k - known[0] for k in known], [true[k][i] for k in known]) for i in range(3)]
            assert np.linalg.norm(np.subtract([float(v) for v in rest[:3]], there)) < max(0.5, 5 * np.sqrt(float(rest[5])))
    assert {tuple(rest[3:5]) for _, _, rest in graph.received("tf") if rest[3] == "map"} == {("map", "base_link")}


@has_ros
def test_a_new_master_and_a_new_bridge(graph, recording):
    """The bridge waits for a master, tells a new one its topics, and takes leave without one."""
    drive, path = recording
    graph.start_ndtd()
    graph.start_bridge("--scan", "/points", "--imu", "/imu", "--odometry", "/odom", "--use-sim-time")
    graph.wait_for("bridge", "no master of ROS at http://127.0.0.1", 60, "err")
    graph.start_master()
    graph.wait_for("bridge", "answers at", 60, "err")
    graph.stop("roscore")
    graph.wait_for("bridge", "connected topics go on", 60, "err")
    graph.start_master()
    graph.wait_for("bridge", "are registered again", 60, "err")
    graph.start_listener()
    graph.play(path, "--rate", "0.5")
    graph.wait_for_poses(3, 60)
    graph.stop("bridge", 9)
    graph.start_bridge("--scan", "/points", "--imu", "/imu", "--odometry", "/odom")
    graph.wait_for_poses(len(graph.received("pose")) + 3, 60)
    check_poses(graph.received("pose"), truth(drive.bag), 0.2)
    graph.stop("play")
    graph.stop("roscore")
    assert graph.stop("bridge") == 0
    assert "stopped:" in graph.lines("bridge", "err")[-1]


@has_ros
def test_hints(graph):
    """No daemon, a topic of another type, none at all: a line for each; and the list of topics."""
    graph.start_master()
    graph.start_peer("others", "advertise", "/imu=sensor_msgs/PointCloud2", "/elsewhere=sensor_msgs/NavSatFix")
    graph.wait_for("others", "ready", 60)
    graph.start_bridge("--scan", "/points", "--imu", "/imu", "--twist", "/twist")
    graph.wait_for("bridge", "no publisher of /points", 60, "err")
    lines = "\n".join(graph.lines("bridge", "err"))
    assert "that type is on /imu" in lines and "ndtd does not answer" in lines
    graph.wait_for("bridge", "/imu has the type sensor_msgs/msg/PointCloud2, not sensor_msgs/msg/Imu", 60, "err")
    graph.start("list", sys.executable, "-m", "ndtd.ndt_ros1_bridge", "--list")
    assert graph.finish("list", 60) == 0
    assert any(line.startswith("/elsewhere  sensor_msgs/NavSatFix  /advertiser_") for line in graph.lines("list"))
    assert graph.stop("bridge") == 0


@has_ros
def test_a_node_that_is_gone(graph):
    """The master knows the topics of a node that was killed, too; and one that hangs does not keep the bridge."""
    graph.start_master()
    graph.start_peer("others", "advertise", "/points=sensor_msgs/PointCloud2")
    graph.wait_for("others", "ready", 60)
    graph.stop("others", signal.SIGKILL)
    graph.start_bridge("--scan", "/points")
    graph.wait_for("bridge", "nothing comes on /points, though it is advertised: is its node alive", 60, "err")
    master = graph.master().getPid("/test")[2]
    os.kill(master, signal.SIGSTOP)
    try:
        assert graph.stop("bridge") == 0
    finally:
        os.kill(master, signal.SIGCONT)


@has_ros
def test_which_scans(graph):
    graph.start_master()
    graph.start_peer("others", "advertise", "/left=sensor_msgs/PointCloud2", "/right=sensor_msgs/PointCloud2")
    graph.wait_for("others", "ready", 60)
    graph.start_bridge()
    assert graph.finish("bridge", 60) == 2
    assert "which scans? There are /left, /right: --scan TOPIC" in graph.lines("bridge", "err")[-1]


@has_ros
def test_a_map_is_no_scan(graph):
    """What is latched is not what a LiDAR sees."""
    graph.start_master()
    graph.start_peer("others", "advertise", "/map_cloud:=sensor_msgs/PointCloud2", "/points=sensor_msgs/PointCloud2")
    graph.wait_for("others", "ready", 60)
    graph.start_bridge()
    graph.wait_for("bridge", "reads /points", 60, "err")
    assert graph.stop("bridge") == 0


@has_ros
def test_another_bridge_of_the_same_name(graph):
    """As for any node of ROS: the later one stays."""
    graph.start_master()
    graph.start_bridge("--scan", "/points")
    graph.wait_for("bridge", "node /ndt_ros1_bridge", 60, "err")
    graph.start("second", sys.executable, "-m", "ndtd.ndt_ros1_bridge", "--scan", "/points")
    assert graph.finish("bridge", 60) == 0
    assert any("stopped from the graph: " in line and "same name" in line for line in graph.lines("bridge", "err"))
    assert graph.stop("second") == 0
