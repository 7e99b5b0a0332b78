"""A LiDAR driver and a listener on DDS, independent of ndtd: their IDL is written from the published definitions.

    ros2_peer.py pack DRIVE.bag FOLDER              scans of a bag to PointCloud2 in CDR, one file each
    ros2_peer.py publish FOLDER --rate 10           plays them; a line `stamp_ns monotonic_ns` before each
    ros2_peer.py listen                             a line `pose stamp_ns monotonic_ns x y z` for each pose, `tf ...`, `diagnostics ...`

Field order: ros2/common_interfaces, ros2/geometry2 and ros2/rcl_interfaces. Topics and types have the names that rmw_cyclonedds
gives them.
"""
import argparse
import os
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, byte, float64, int32, sequence, uint8, uint32
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

BEST_EFFORT = Qos(Policy.Reliability.BestEffort, Policy.Durability.Volatile, Policy.History.KeepLast(5))
RELIABLE = Qos(Policy.Reliability.Reliable(duration(milliseconds=100)), Policy.Durability.Volatile, Policy.History.KeepLast(100))


@dataclass
class Time(IdlStruct, typename="builtin_interfaces.msg.dds_.Time_"):
    sec: int32
    nanosec: uint32


@dataclass
class Header(IdlStruct, typename="std_msgs.msg.dds_.Header_"):
    stamp: Time
    frame_id: str


@dataclass
class PointField(IdlStruct, typename="sensor_msgs.msg.dds_.PointField_"):
    name: str
    offset: uint32
    datatype: uint8
    count: uint32


@dataclass
class PointCloud2(IdlStruct, typename="sensor_msgs.msg.dds_.PointCloud2_"):
    header: Header
    height: uint32
    width: uint32
    fields: sequence[PointField]
    is_bigendian: bool
    point_step: uint32
    row_step: uint32
    data: sequence[uint8]
    is_dense: bool


@dataclass
class Point(IdlStruct, typename="geometry_msgs.msg.dds_.Point_"):
    x: float64
    y: float64
    z: float64


@dataclass
class Vector3(IdlStruct, typename="geometry_msgs.msg.dds_.Vector3_"):
    x: float64
    y: float64
    z: float64


@dataclass
class Quaternion(IdlStruct, typename="geometry_msgs.msg.dds_.Quaternion_"):
    x: float64
    y: float64
    z: float64
    w: float64


@dataclass
class Pose(IdlStruct, typename="geometry_msgs.msg.dds_.Pose_"):
    position: Point
    orientation: Quaternion


@dataclass
class PoseWithCovariance(IdlStruct, typename="geometry_msgs.msg.dds_.PoseWithCovariance_"):
    pose: Pose
    covariance: array[float64, 36]


@dataclass
class PoseWithCovarianceStamped(IdlStruct, typename="geometry_msgs.msg.dds_.PoseWithCovarianceStamped_"):
    header: Header
    pose: PoseWithCovariance


@dataclass
class Twist(IdlStruct, typename="geometry_msgs.msg.dds_.Twist_"):
    linear: Vector3
    angular: Vector3


@dataclass
class TwistWithCovariance(IdlStruct, typename="geometry_msgs.msg.dds_.TwistWithCovariance_"):
    twist: Twist
    covariance: array[float64, 36]


@dataclass
class Odometry(IdlStruct, typename="nav_msgs.msg.dds_.Odometry_"):
    header: Header
    child_frame_id: str
    pose: PoseWithCovariance
    twist: TwistWithCovariance


@dataclass
class Imu(IdlStruct, typename="sensor_msgs.msg.dds_.Imu_"):
    header: Header
    orientation: Quaternion
    orientation_covariance: array[float64, 9]
    angular_velocity: Vector3
    angular_velocity_covariance: array[float64, 9]
    linear_acceleration: Vector3
    linear_acceleration_covariance: array[float64, 9]


@dataclass
class Transform(IdlStruct, typename="geometry_msgs.msg.dds_.Transform_"):
    translation: Vector3
    rotation: Quaternion


@dataclass
class TransformStamped(IdlStruct, typename="geometry_msgs.msg.dds_.TransformStamped_"):
    header: Header
    child_frame_id: str
    transform: Transform


@dataclass
class TFMessage(IdlStruct, typename="tf2_msgs.msg.dds_.TFMessage_"):
    transforms: sequence[TransformStamped]


@dataclass
class KeyValue(IdlStruct, typename="diagnostic_msgs.msg.dds_.KeyValue_"):
    key: str
    value: str


@dataclass
class DiagnosticStatus(IdlStruct, typename="diagnostic_msgs.msg.dds_.DiagnosticStatus_"):
    level: byte
    name: str
    message: str
    hardware_id: str
    values: sequence[KeyValue]


@dataclass
class DiagnosticArray(IdlStruct, typename="diagnostic_msgs.msg.dds_.DiagnosticArray_"):
    header: Header
    status: sequence[DiagnosticStatus]


def stamp(ns):
    return Time(ns // 1_000_000_000, ns % 1_000_000_000)


def cloud(stamp_ns, frame_id, fields, point_step, data):
    """The CDR of a PointCloud2. cyclonedds packs bytes one by one: the points are put in afterwards."""
    count = len(data) // point_step
    message = PointCloud2(Header(stamp(stamp_ns), frame_id), 1, count, [PointField(*field) for field in fields], False,
                          point_step, len(data), [], True)
    cdr = message.serialize(use_version_2=False)
    filled = cdr[:-5] + struct.pack("<I", len(data)) + bytes(data) + cdr[-1:]
    return filled + bytes(-len(filled) % 4)


def pack(bag, folder, limit):
    import msgpack
    from ndtd import BagReader
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for record in BagReader(bag):
        if record.type == "scan" and count < limit:
            scan = msgpack.unpackb(record.payload)
            cdr = cloud(scan["stamp_ns"], scan["frame_id"], scan["fields"], scan["point_step"], scan["data"])
            (folder / f"{count:06d}.cdr").write_bytes(cdr)
            count += 1
    print(count)


def frame_of(cdr):
    """frame_id of a message with a header."""
    (length,) = struct.unpack_from("<I", cdr, 12)
    return bytes(cdr[16:16 + length - 1]).decode()


def publish(folder, rate, skip, limit, topic, frames):
    """frames: one topic for each of them, `topic/frame`; none: all scans on `topic`."""
    from cyclonedds._clayer import ddspy_write
    participant = DomainParticipant(int(os.environ["ROS_DOMAIN_ID"]))
    names = {frame: f"rt{topic}/{frame}" for frame in frames} or {"": "rt" + topic}
    writers = {frame: DataWriter(participant, Topic(participant, name, PointCloud2), BEST_EFFORT) for frame, name in names.items()}
    files = sorted(folder.glob("*.cdr"))[skip:skip + limit]
    while not all(writer.get_matched_subscriptions() for writer in writers.values()):
        time.sleep(0.02)
    time.sleep(0.5)
    begin = time.monotonic()
    for i, path in enumerate(files):
        cdr = path.read_bytes()
        sec, nanosec = struct.unpack_from("<iI", cdr, 4)
        writer = writers[frame_of(cdr) if frames else ""]
        time.sleep(max(0.0, begin + i / rate - time.monotonic()))
        now = time.monotonic_ns()
        ddspy_write(writer._ref, cdr)
        print(sec * 1_000_000_000 + nanosec, now, flush=True)
    time.sleep(1.0)


def _ns(header):
    return header.stamp.sec * 1_000_000_000 + header.stamp.nanosec


def listen(pose_topic):
    participant = DomainParticipant(int(os.environ["ROS_DOMAIN_ID"]))
    poses = DataReader(participant, Topic(participant, "rt" + pose_topic, PoseWithCovarianceStamped), RELIABLE)
    tf = DataReader(participant, Topic(participant, "rt/tf", TFMessage), RELIABLE)
    diagnostics = DataReader(participant, Topic(participant, "rt/diagnostics", DiagnosticArray), RELIABLE)
    odometry = DataReader(participant, Topic(participant, "rt/localization/pose_estimator/odometry", Odometry), RELIABLE)
    from cyclonedds.core import InstanceState, ReadCondition, SampleState, ViewState, WaitSet
    waitset = WaitSet(participant)
    for reader in (poses, tf, odometry, diagnostics):
        waitset.attach(ReadCondition(reader, SampleState.NotRead | ViewState.Any | InstanceState.Any))
    print("ready", flush=True)
    while True:
        waitset.wait(duration(seconds=1))
        now = time.monotonic_ns()
        for message in (one for one in poses.take(N=100) if hasattr(one, "header")):
            p = message.pose.pose.position
            print("pose", _ns(message.header), now, p.x, p.y, p.z, message.header.frame_id, flush=True)
        for message in (one for one in odometry.take(N=100) if hasattr(one, "header")):
            p = message.pose.pose.position
            print("odometry", _ns(message.header), now, p.x, p.y, p.z, message.header.frame_id, message.child_frame_id,
                  message.pose.covariance[0], message.twist.twist.linear.x, flush=True)
        for message in (one for one in tf.take(N=100) if hasattr(one, "transforms")):
            for one in message.transforms:
                t = one.transform.translation
                print("tf", _ns(one.header), now, t.x, t.y, t.z, one.header.frame_id, one.child_frame_id, flush=True)
        for message in (one for one in diagnostics.take(N=100) if hasattr(one, "status")):
            for one in message.status:
                print("diagnostics", _ns(message.header), now, int(one.level), one.name.replace(" ", "_"),
                      one.message.replace(" ", "_") or "-", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("command", choices=("pack", "publish", "listen"))
    p.add_argument("paths", nargs="*", type=Path)
    p.add_argument("--rate", type=float, default=10.0)
    p.add_argument("--skip", type=int, default=0)
    p.add_argument("--limit", type=int, default=1_000_000)
    p.add_argument("--frame", action="append", default=[])
    p.add_argument("--topic", default="/points")
    p.add_argument("--pose", default="/localization/pose_estimator/pose_with_covariance")
    args = p.parse_args()
    if args.command == "pack":
        pack(*args.paths, args.limit)
    elif args.command == "publish":
        publish(args.paths[0], args.rate, args.skip, args.limit, args.topic, args.frame)
    else:
        listen(args.pose)


if __name__ == "__main__":
    sys.exit(main())
