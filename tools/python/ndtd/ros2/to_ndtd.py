"""Messages of ROS 2 to frames of the `scans` socket (proto/SCHEMA.md), by the readers that ndt-import uses."""
import struct
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Optional

import msgpack
import numpy as np

from ..recordings import messages as m
from ..recordings import points as point_fields
from ..recordings import ros
from . import rmw

DATATYPES = {"f4": 7, "f8": 8}
READERS: Dict[str, Callable] = {
    rmw.ODOMETRY: ros.odometry, rmw.TWIST: ros.twist_stamped, rmw.TWIST_COVARIANCE: ros.twist_stamped, rmw.IMU: ros.imu,
    rmw.FIX: ros.nav_sat_fix, rmw.POSE: ros.pose_with_covariance_stamped, rmw.TF: ros.tf}
NO_OPTIONS = SimpleNamespace(time_unit_s=None)


class Refused(ValueError):
    """A message that ndtd cannot use; the text tells why."""


def pack(kind: str, **fields: Any) -> bytes:
    """A frame; what is None is left out."""
    message = {"v": 1, "type": kind, **{key: value for key, value in fields.items() if value is not None}}
    return msgpack.packb(message, default=lambda value: np.ravel(value).tolist())


def read(message: Any, type_name: str, receive_ns: int) -> List[Any]:
    """The messages of ndtd.recordings in a message of ROS."""
    return list(READERS[type_name](message, receive_ns, NO_OPTIONS))


def motion_frame(message: Any, projector: Optional[Callable] = None) -> bytes:
    """Odometry, Imu or Gnss as a frame. projector: latitude, longitude, altitude to x y z of the map."""
    if isinstance(message, m.Odometry):
        return _odometry(message)
    if isinstance(message, m.Imu):
        if not np.isfinite(message.angular_velocity).all():
            raise Refused("the angular velocity is not finite")
        return pack("imu", stamp_ns=message.stamp_ns, frame_id=message.frame_id or "imu",
                    angular_velocity=message.angular_velocity, linear_acceleration=message.linear_acceleration)
    if projector is None:
        raise Refused("the map's projection is not known: --projector")
    position = projector(message.latitude, message.longitude, message.altitude)
    return pack("gnss", stamp_ns=message.stamp_ns, frame_id="map", position=position, deviation=message.deviation)


def _odometry(message: m.Odometry) -> bytes:
    twist = message.twist if message.twist is not None and np.isfinite(message.twist).all() else None
    pose = message.pose
    if pose is not None and not (np.isfinite(pose).all() and abs(np.linalg.norm(pose[3:]) - 1) < 0.01):
        pose = None
    if pose is None and twist is None:
        raise Refused("neither a pose nor a twist that is finite")
    return pack("odometry", stamp_ns=message.stamp_ns, frame_id=message.frame_id or "odom", pose=pose, twist=twist)


def scan_frame(cloud: Any, seq: int, receive_ns: int) -> bytearray:
    """A sensor_msgs/PointCloud2 as a frame: x y z as they are, intensity and time as float32 where the cloud has them.

    The points are written once, into the frame. Refused: no points, or a layout that cannot be read.
    """
    stamp_ns = cloud.header.stamp.sec * 1_000_000_000 + cloud.header.stamp.nanosec or receive_ns
    try:
        fields = [(field.name, field.offset, field.datatype) for field in cloud.fields]
        dtype = point_fields.record_dtype(fields, cloud.point_step, cloud.is_bigendian)
        points = point_fields.records(cloud.data, dtype, cloud.height, cloud.width, cloud.row_step)
        times = point_fields.times(points, stamp_ns)
    except point_fields.PointError as error:
        raise Refused(str(error)) from None
    columns = _columns(points, times)
    record = np.dtype([(name, values[0]) for name, values in columns.items()])
    if len(points) == 0:
        raise Refused("no points")
    frame, records = _frame(seq, stamp_ns, cloud.header.frame_id or "lidar", len(points), record)
    for name, (_, values) in columns.items():
        records[name] = values
    return frame


def _columns(points: np.ndarray, times: Optional[np.ndarray]) -> Dict[str, Any]:
    names = points.dtype.names or ()
    if not {"x", "y", "z"} <= set(names):
        raise Refused(f"a point has no x, y and z, but {', '.join(names) or 'nothing'}")
    real = "<f8" if any(points.dtype[name].itemsize == 8 for name in "xyz") else "<f4"
    columns = {name: (real, points[name]) for name in "xyz"}
    intensity = next((name for name in point_fields.INTENSITY_FIELDS if name in names), None)
    if intensity is not None:
        columns["intensity"] = ("<f4", points[intensity])
    if times is not None:
        columns["time"] = ("<f4", times)
    return columns


def _frame(seq: int, stamp_ns: int, frame_id: str, count: int, record: np.dtype) -> Any:
    layout = [[name, record.fields[name][1], DATATYPES[record[name].str[1:]], 1] for name in record.names]
    head = pack("scan", seq=seq, stamp_ns=stamp_ns, frame_id=frame_id, count=count, point_step=record.itemsize,
                fields=layout, data=b"")[:-2]  # without the empty binary at its end
    size = count * record.itemsize
    begin = len(head) + 5
    frame = bytearray(begin + size)
    frame[:begin] = head + b"\xc6" + struct.pack(">I", size)
    return frame, np.frombuffer(frame, record, count, begin)
