"""A LiDAR driver and a listener on DDS, independent of ndtd: their IDL is written from the published definitions.

    ros2_peer.py pack DRIVE.bag FOLDER              scans of a bag to PointCloud2 in CDR, one file each
    ros2_peer.py publish FOLDER --rate 10           plays them; a line `stamp_ns monotonic_ns` before each
    ros2_peer.py listen                             a line `pose stamp_ns monotonic_ns x y z` for each pose, `tf ...`, `diagnostics ...`

Field order: ros2/common_interfaces, ros2/geometry2 and ros2/rcl_interfaces. Topics and types have the names that rmw_cyclonedds
gives them.
"""
import argparse
import os
import re
import struct
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import make_idl_struct, types
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

BEST_EFFORT = Qos(Policy.Reliability.BestEffort, Policy.Durability.Volatile, Policy.History.KeepLast(5))
RELIABLE = Qos(Policy.Reliability.Reliable(duration(milliseconds=100)), Policy.Durability.Volatile, Policy.History.KeepLast(100))

# A field is TYPE NAME; TYPE[] is a sequence, TYPE[n] an array; what a type is made of stands above it.
DEFINITIONS = """
builtin_interfaces/Time: int32 sec, uint32 nanosec
std_msgs/Header: Time stamp, str frame_id
sensor_msgs/PointField: str name, uint32 offset, uint8 datatype, uint32 count
sensor_msgs/PointCloud2: Header header, uint32 height, uint32 width, PointField[] fields, bool is_bigendian, uint32 point_step, \
uint32 row_step, uint8[] data, bool is_dense
geometry_msgs/Point: float64 x, float64 y, float64 z
geometry_msgs/Vector3: float64 x, float64 y, float64 z
geometry_msgs/Quaternion: float64 x, float64 y, float64 z, float64 w
geometry_msgs/Pose: Point position, Quaternion orientation
geometry_msgs/PoseWithCovariance: Pose pose, float64[36] covariance
geometry_msgs/PoseWithCovarianceStamped: Header header, PoseWithCovariance pose
geometry_msgs/Twist: Vector3 linear, Vector3 angular
geometry_msgs/TwistWithCovariance: Twist twist, float64[36] covariance
nav_msgs/Odometry: Header header, str child_frame_id, PoseWithCovariance pose, TwistWithCovariance twist
sensor_msgs/Imu: Header header, Quaternion orientation, float64[9] orientation_covariance, Vector3 angular_velocity, \
float64[9] angular_velocity_covariance, Vector3 linear_acceleration, float64[9] linear_acceleration_covariance
geometry_msgs/Transform: Vector3 translation, Quaternion rotation
geometry_msgs/TransformStamped: Header header, str child_frame_id, Transform transform
tf2_msgs/TFMessage: TransformStamped[] transforms
diagnostic_msgs/KeyValue: str key, str value
diagnostic_msgs/DiagnosticStatus: byte level, str name, str message, str hardware_id, KeyValue[] values
diagnostic_msgs/DiagnosticArray: Header header, DiagnosticStatus[] status
"""


def _messages():
    """The class of each message, by its name without the package."""
    known = {"bool": bool, "str": str, **{name: getattr(types, name) for name in ("byte", "uint8", "int32", "uint32", "float64")}}
    names = []
    for line in DEFINITIONS.strip().splitlines():
        package, name, rows = re.fullmatch(r"(\w+)/(\w+): (.*)", line).groups()
        fields = {}
        for kind, many, size, field in re.findall(r"(\w+)(\[(\d*)\])? (\w+)", rows):
            one = known[kind]
            fields[field] = types.array[one, int(size)] if size else types.sequence[one] if many else one
        known[name] = make_idl_struct(f"{name}_", f"{package}.msg.dds_.{name}_", fields)
        names.append(name)
    return SimpleNamespace(**{name: known[name] for name in names})


msg = _messages()


def stamp(ns):
    return msg.Time(ns // 1_000_000_000, ns % 1_000_000_000)


def cloud(stamp_ns, frame_id, fields, point_step, data):
    """The CDR of a PointCloud2. cyclonedds packs bytes one by one: the points are put in afterwards."""
    count = len(data) // point_step
    message = msg.PointCloud2(msg.Header(stamp(stamp_ns), frame_id), 1, count, [msg.PointField(*field) for field in fields], False,
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
    writers = {frame: DataWriter(participant, Topic(participant, name, msg.PointCloud2), BEST_EFFORT) for frame, name in names.items()}
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
    poses = DataReader(participant, Topic(participant, "rt" + pose_topic, msg.PoseWithCovarianceStamped), RELIABLE)
    tf = DataReader(participant, Topic(participant, "rt/tf", msg.TFMessage), RELIABLE)
    diagnostics = DataReader(participant, Topic(participant, "rt/diagnostics", msg.DiagnosticArray), RELIABLE)
    odometry = DataReader(participant, Topic(participant, "rt/localization/pose_estimator/odometry", msg.Odometry), RELIABLE)
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
