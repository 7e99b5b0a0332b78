"""ndt-ros2-bridge --autoware: what pose_initializer calls and what displays plot, by a client as rmw_cyclonedds makes them."""
import time

import numpy as np
import pytest

pytest.importorskip("cyclonedds")
pytest.importorskip("rosbags")
pytest.importorskip("zmq")

import msgpack
import ros2_graph
import ros2_peer as peer
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import make_idl_struct, types
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from ndtd import BagReader, ndt_ros2_bridge
from ros2_peer import msg

FOLDER = "/localization/pose_estimator"
SCANS = 100
HEADER = {"guid": types.uint64, "seq": types.int64}  # in front of the fields, both ways


def struct(package, kind, name, **fields):
    return make_idl_struct(f"{name}_", f"{package}.{kind}.dds_.{name}_", fields)


class Client:
    """A client of a service. Its guid is that of the client, made up: the server has to send it back."""

    def __init__(self, participant, service, package, name, request, response):
        reliable = Qos(Policy.Reliability.Reliable(10**8), Policy.Durability.Volatile, Policy.History.KeepLast(10))
        self._request = struct(package, "srv", f"{name}_Request", **HEADER, **request)
        replies = struct(package, "srv", f"{name}_Response", **HEADER, **response)
        self._writer = DataWriter(participant, Topic(participant, f"rq{service}Request", self._request), reliable)
        self._reader = DataReader(participant, Topic(participant, f"rr{service}Reply", replies), reliable)
        self._number = 0

    def wait(self):
        end = time.monotonic() + 30
        while not (self._writer.get_matched_subscriptions() and self._reader.get_matched_publications()):
            assert time.monotonic() < end, "the service is not there"
            time.sleep(0.05)
        ids = [bytes(entity.qos[Policy.Userdata].data) for entity in (
            self._writer.get_matched_subscription_data(self._writer.get_matched_subscriptions()[0]),
            self._reader.get_matched_publication_data(self._reader.get_matched_publications()[0]))]
        assert ids[0] == ids[1] and ids[0].startswith(b"serviceid=")

    def call(self, **fields):
        self._number += 1
        guid = 0xF00D0000FEED + self._number
        self._writer.write(self._request(guid=guid, seq=self._number, **fields))
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for reply in self._reader.take(N=10):
                assert (reply.guid, reply.seq) == (guid, self._number)
                return reply
            time.sleep(0.02)
        raise AssertionError("no reply")


FLOAT = struct("autoware_internal_debug_msgs", "msg", "Float32Stamped", stamp=msg.Time, data=types.float32)
SCORES = {"iteration_num": struct("autoware_internal_debug_msgs", "msg", "Int32Stamped", stamp=msg.Time, data=types.int32),
          "pose": struct("geometry_msgs", "msg", "PoseStamped", header=msg.Header, pose=msg.Pose),
          **dict.fromkeys(("exe_time_ms", "transform_probability", "nearest_voxel_transformation_likelihood",
                           "initial_to_result_distance"), FLOAT)}


@pytest.fixture
def participant(graph):
    domain = Domain(graph.domain, graph.configuration)  # noqa: F841  it lives as long as the fixture
    yield DomainParticipant(graph.domain)


@pytest.fixture
def graph(bin_dir, drive, tmp_path):
    graph = ros2_graph.Graph(bin_dir / "ndtd", drive.map, tmp_path)
    assert ros2_graph.pack(drive.bag, tmp_path / "scans", SCANS) == SCANS
    yield graph
    graph.close()


@pytest.fixture(scope="module")
def drive(simulate):
    return simulate("--seed", 8, "--scans", SCANS, "--beams", 32, "--columns", 600)


def pose(frame_id, at, deviation_m=1.0):
    covariance = [0.0] * 36
    covariance[0] = covariance[7] = covariance[14] = deviation_m ** 2
    covariance[35] = 0.1
    return msg.PoseWithCovarianceStamped(msg.Header(peer.stamp(7), frame_id), msg.PoseWithCovariance(
        msg.Pose(msg.Point(*map(float, at[:3])), msg.Quaternion(*at[3:])), covariance))


def test_pose_initializer(graph, drive, participant):
    """Off, align, on, as pose_initializer does it: a pose that does not fit is no success, and none is published while off."""
    trigger = Client(participant, f"{FOLDER}/trigger_node", "std_srvs", "SetBool", {"data": bool}, {"success": bool, "message": str})
    align = Client(participant, f"{FOLDER}/ndt_align_srv", "autoware_internal_localization_msgs", "PoseWithCovarianceStamped",
                   {"pose_with_covariance": msg.PoseWithCovarianceStamped},
                   {"success": bool, "reliable": bool, "pose_with_covariance": msg.PoseWithCovarianceStamped})
    scores = {name: DataReader(participant, Topic(participant, f"rt{FOLDER}/{name}", kind), Qos(Policy.History.KeepLast(100)))
              for name, kind in SCORES.items()}
    true = [msgpack.unpackb(record.payload) for record in BagReader(str(drive.bag)) if record.type == "truth"]
    places = np.array([row["pose"][:3] for row in true])
    graph.start_listener()
    graph.start_ndtd("--set", "initial_pose.mode=given")
    graph.wait_for("ndtd", "ready", 60, "err")
    graph.start_bridge("--autoware", "--scan", "/points")
    trigger.wait()
    align.wait()
    assert trigger.call(data=False).success
    graph.start_driver("--rate", 2)  # the drive lasts while a busy machine takes its time
    graph.wait_for("driver", "000", 30)
    assert not align.call(pose_with_covariance=pose("gnss_link", true[0]["pose"])).success
    assert not align.call(pose_with_covariance=pose("map", [np.nan] * 3 + [0.0, 0.0, 0.0, 1.0])).success
    assert not align.call(pose_with_covariance=pose("map", [5000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])).success
    found = align.call(pose_with_covariance=pose("map", true[5]["pose"], 3.0))
    assert found.success and found.reliable, graph.lines("bridge", "err")
    given = found.pose_with_covariance
    assert given.header.frame_id == "map" and given.header.stamp == peer.stamp(7) and given.pose.covariance[0] == 9.0
    at = given.pose.pose.position
    assert np.linalg.norm(places - [at.x, at.y, at.z], axis=1).min() < 0.5  # a scan somewhere between two of the drive
    graph.wait_for("listener", "poses_are_withheld,_tracking", 60)  # scans are answered, and nothing of it is published
    assert graph.received("pose") == []
    assert trigger.call(data=True).success
    graph.wait_for_poses(5, 60)
    graph.stop("driver")
    for stamp_ns, _, rest in graph.received("pose"):
        here = next(row["pose"] for row in true if row["stamp_ns"] == stamp_ns)
        assert np.linalg.norm(np.subtract([float(v) for v in rest[:3]], here[:3])) < 0.15
    rows = {name: [row for row in reader.take(N=100) if hasattr(row, "data" if name != "pose" else "pose")] for name, reader in scores.items()}
    stamps = {stamp_ns for stamp_ns, _, _ in graph.received("pose")}
    for name, least, most in (("iteration_num", 1, 60), ("exe_time_ms", 0.001, 60_000), ("transform_probability", 0.5, 20),
                              ("nearest_voxel_transformation_likelihood", 0.5, 4), ("initial_to_result_distance", 0, 1)):
        assert rows[name] and all(least <= row.data <= most for row in rows[name]), (name, rows[name])
        assert {row.stamp.sec * 10**9 + row.stamp.nanosec for row in rows[name]} <= stamps
    assert rows["pose"] and all(row.header.frame_id == "map" for row in rows["pose"])
    assert np.linalg.norm(places - [getattr(rows["pose"][0].pose.position, axis) for axis in "xyz"], axis=1).min() < 0.15
    assert graph.stop("bridge") == 0
    said = "\n".join(graph.lines("bridge", "err"))
    assert "a pose in the frame 'gnss_link'" in said and "ndt_align_srv: found, x" in said and "poses are withheld" in said
    assert graph.received("tf") == []


def test_options():
    parse = ndt_ros2_bridge.parser().parse_args
    autoware = ndt_ros2_bridge.options(parse(["--autoware"]))
    assert (autoware.align_service, autoware.trigger_service) == (f"{FOLDER}/ndt_align_srv", f"{FOLDER}/trigger_node")
    assert autoware.tf == "none" and autoware.initial_pose == ""
    own = ndt_ros2_bridge.options(parse(["--autoware", "--tf", "map-base", "--initialpose", "/initialpose", "-r",
                                         f"{FOLDER}/ndt_align_srv:=/align", "-r", f"{FOLDER}/exe_time_ms:=/time"]))
    assert (own.tf, own.initial_pose, own.align_service) == ("map-base", "/initialpose", "/align")
    assert own.scores == {**autoware.scores, "exe_time_ms": "/time"} and autoware.scores["pose"] == f"{FOLDER}/pose"
    plain = ndt_ros2_bridge.options(parse([]))
    assert (plain.tf, plain.initial_pose, plain.align_service) == ("auto", "/initialpose", "")
