"""ROS messages, as `rosbags` decodes them: one function per type."""
import struct
from typing import Any, Callable, Dict, Iterator, Tuple

import numpy as np

from . import packets
from . import points as point_fields
from .messages import Gnss, Imu, Odometry, Pose, Scan, Topic, Transform

NS = 1_000_000_000


def stamp_of(header: Any, receive_ns: int) -> int:
    """Stamp of a header [ns]; a driver without a clock leaves zeros, and the receive time counts."""
    ns = header.stamp.sec * NS + header.stamp.nanosec
    return ns if ns > 0 else receive_ns


def _vector(v):
    return np.array([v.x, v.y, v.z], np.float64)


def _pose(pose):
    p, q = pose.position, pose.orientation
    return np.array([p.x, p.y, p.z, q.x, q.y, q.z, q.w], np.float64)


def _twist(twist):
    return np.concatenate([_vector(twist.linear), _vector(twist.angular)])


def _times(topic, options):
    if topic.state is None:
        topic.state = point_fields.Times(options.time_unit_s)
    return topic.state


def scan_of_records(records, head, topic, options) -> Scan:
    """A scan of structured points; head: receive_ns, stamp_ns, frame_id."""
    xyz = point_fields.positions(records)
    good = point_fields.returns(xyz)
    times = _times(topic, options).of(records, head[1], good)
    xyz, strength = point_fields.only(xyz, good), point_fields.only(point_fields.intensity(records), good)
    receive_ns, stamp_ns, frame_id = head
    return Scan(receive_ns, stamp_ns, frame_id, xyz.T, strength, times, len(records) - xyz.shape[1])


def point_cloud2(message, receive_ns, topic, options) -> Iterator:
    fields = [(field.name, field.offset, field.datatype) for field in message.fields]
    dtype = point_fields.record_dtype(fields, message.point_step, message.is_bigendian)
    records = point_fields.records(message.data, dtype, message.height, message.width, message.row_step)
    head = receive_ns, stamp_of(message.header, receive_ns), message.header.frame_id
    yield scan_of_records(records, head, topic, options)


# ---- Livox ----

_LIVOX = [("offset_time", "<u4"), ("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("reflectivity", "u1"), ("tag", "u1"), ("line", "u1")]


def _livox_head(raw, is_ros2):
    """Stamp [ns], frame, timebase [ns], number of points and where they begin in a CustomMsg."""
    at = 4 if is_ros2 else 0
    sec, nsec, size = struct.unpack_from("<iII" if is_ros2 else "<III", raw, at + (0 if is_ros2 else 4))
    at += 12 if is_ros2 else 16
    frame = bytes(raw[at:at + size]).rstrip(b"\0").decode("ascii", "replace")
    at += size
    if is_ros2:
        at += -(at - 4) % 8
    timebase, _ = struct.unpack_from("<QI", raw, at)
    at += 16
    (count,) = struct.unpack_from("<I", raw, at)
    return sec * NS + nsec, frame, timebase, count, at + 4


def livox_custom(raw, is_ros2, receive_ns, topic, options) -> Iterator:
    """livox_ros_driver and livox_ros_driver2: their points as one array, since rosbags makes an object of each."""
    if is_ros2 and raw[1] != 1:
        raise point_fields.PointError("a CustomMsg in big endian")
    try:
        stamp_ns, frame, timebase, count, begin = _livox_head(raw, is_ros2)
    except struct.error:
        raise point_fields.PointError("a CustomMsg that ends in its header") from None
    step = 20 if is_ros2 else 19  # CDR aligns each point to its offset_time
    dtype = np.dtype({"names": [n for n, _ in _LIVOX], "formats": [f for _, f in _LIVOX],
                      "offsets": [0, 4, 8, 12, 16, 17, 18], "itemsize": step})
    if begin + count * step - (step - 19) > len(raw):
        raise point_fields.PointError(f"{len(raw)} bytes are fewer than those of {count} points")
    data = bytes(raw[begin:begin + count * step]).ljust(count * step, b"\0")
    stamp_ns = stamp_ns or receive_ns
    scan = scan_of_records(np.frombuffer(data, dtype), (receive_ns, stamp_ns, frame), topic, options)
    shift_ns = timebase - stamp_ns
    if scan.time_s is not None and point_fields.is_near_stamp(*(shift_ns * 1e-9 + np.array([np.nanmin(scan.time_s), np.nanmax(scan.time_s)]))):
        scan.time_s = scan.time_s + shift_ns * 1e-9
    yield scan


# ---- motion ----

def odometry(message, receive_ns, topic, options) -> Iterator:
    if topic.kind != "odometry":
        yield Pose(receive_ns, stamp_of(message.header, receive_ns), message.header.frame_id, _pose(message.pose.pose),
                   np.asarray(message.pose.covariance, np.float64), message.child_frame_id)
        return
    yield Odometry(receive_ns, stamp_of(message.header, receive_ns), message.header.frame_id, message.child_frame_id,
                   _pose(message.pose.pose), _twist(message.twist.twist))


def twist_stamped(message, receive_ns, topic, options) -> Iterator:
    twist = message.twist.twist if hasattr(message.twist, "twist") else message.twist
    yield Odometry(receive_ns, stamp_of(message.header, receive_ns), "", message.header.frame_id, None, _twist(twist))


def velocity_report(message, receive_ns, topic, options) -> Iterator:
    """Autoware's: forward, left and heading rate of the base."""
    twist = np.array([message.longitudinal_velocity, message.lateral_velocity, 0, 0, 0, message.heading_rate], np.float64)
    yield Odometry(receive_ns, stamp_of(message.header, receive_ns), "", message.header.frame_id, None, twist)


def imu(message, receive_ns, topic, options) -> Iterator:
    has_acceleration = message.linear_acceleration_covariance[0] != -1
    yield Imu(receive_ns, stamp_of(message.header, receive_ns), message.header.frame_id, _vector(message.angular_velocity),
              _vector(message.linear_acceleration) if has_acceleration else None)


def nav_sat_fix(message, receive_ns, topic, options) -> Iterator:
    if message.status.status < 0:
        return
    diagonal = np.asarray(message.position_covariance)[[0, 4, 8]]
    is_known = message.position_covariance_type > 0 and (diagonal > 0).all()
    yield Gnss(receive_ns, stamp_of(message.header, receive_ns), message.header.frame_id, message.latitude,
               message.longitude, message.altitude, np.sqrt(diagonal) if is_known else None)


def pose_with_covariance_stamped(message, receive_ns, topic, options) -> Iterator:
    covariance = np.asarray(message.pose.covariance, np.float64)
    yield Pose(receive_ns, stamp_of(message.header, receive_ns), message.header.frame_id, _pose(message.pose.pose),
               covariance if covariance.any() else None)


def pose_stamped(message, receive_ns, topic, options) -> Iterator:
    yield Pose(receive_ns, stamp_of(message.header, receive_ns), message.header.frame_id, _pose(message.pose))


def text(message, receive_ns, topic, options) -> Iterator:
    yield message.data


def transforms(message, receive_ns, topic, options) -> Iterator:
    for one in message.transforms:
        t, q = one.transform.translation, one.transform.rotation
        yield Transform(receive_ns, one.header.frame_id.lstrip("/"), one.child_frame_id.lstrip("/"),
                        np.array([t.x, t.y, t.z, q.x, q.y, q.z, q.w], np.float64))


# Type: kinds that its topics can be taken for (the first by default, unless it is ""), and the function that reads it.
READERS: Dict[str, Tuple[tuple, Callable[..., Iterator]]] = {
    "sensor_msgs/msg/PointCloud2": (("scan",), point_cloud2),
    "livox_ros_driver/msg/CustomMsg": (("scan",), livox_custom),
    "livox_ros_driver2/msg/CustomMsg": (("scan",), livox_custom),
    "livox_interfaces/msg/CustomMsg": (("scan",), livox_custom),
    "velodyne_msgs/msg/VelodyneScan": (("scan",), packets.scan_of_packets),
    "nebula_msgs/msg/NebulaPackets": (("scan",), packets.scan_of_packets),
    "pandar_msgs/msg/PandarScan": (("scan",), packets.scan_of_packets),
    "hesai_lidar/msg/PandarScan": (("scan",), packets.scan_of_packets),
    "hesai_ros_driver/msg/UdpFrame": (("scan",), packets.scan_of_packets),
    "robosense_msgs/msg/RobosenseScan": (("scan",), packets.scan_of_packets),
    "robosense_msgs/msg/RobosenseInfoPacket": ((), packets.info_packet),
    **{name: (("scan",), packets.single_packet) for name in (*packets.OUSTER_TYPES, packets.ROBOSENSE_TYPE)},
    "std_msgs/msg/String": ((), text),
    "nav_msgs/msg/Odometry": (("odometry", "truth", "pose"), odometry),
    "geometry_msgs/msg/TwistStamped": (("odometry",), twist_stamped),
    "geometry_msgs/msg/TwistWithCovarianceStamped": (("odometry",), twist_stamped),
    "autoware_vehicle_msgs/msg/VelocityReport": (("odometry",), velocity_report),
    "autoware_auto_vehicle_msgs/msg/VelocityReport": (("odometry",), velocity_report),
    "sensor_msgs/msg/Imu": (("imu",), imu),
    "sensor_msgs/msg/NavSatFix": (("gnss",), nav_sat_fix),
    "geometry_msgs/msg/PoseWithCovarianceStamped": (("pose", "truth", "odometry"), pose_with_covariance_stamped),
    "geometry_msgs/msg/PoseStamped": (("", "truth", "odometry", "pose"), pose_stamped),
    "tf2_msgs/msg/TFMessage": (("tf",), transforms),
    "tf/msg/tfMessage": (("tf",), transforms),
}

def read(message_type: str, decode, raw, is_ros2: bool, receive_ns: int, topic: Topic, options) -> Iterator:
    """The messages of a raw message; decode(raw, type) makes an object of it."""
    reader = READERS[message_type][1]
    if reader is livox_custom:
        return livox_custom(raw, is_ros2, receive_ns, topic, options)
    return reader(decode(raw, message_type), receive_ns, topic, options)
