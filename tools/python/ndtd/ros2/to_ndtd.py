"""Messages of ROS 2 to frames of the `scans` socket (proto/SCHEMA.md), by the readers that ndt-import uses."""
import struct
from types import SimpleNamespace
from typing import Any, Callable, Optional

import msgpack
import numpy as np

from ..recordings import messages as m
from ..recordings import points as point_fields
from ..recordings import ros
from . import rmw

DATATYPES = {"f4": 7, "f8": 8}
READERS: dict[str, Callable] = {
    rmw.ODOMETRY: ros.odometry, rmw.TWIST: ros.twist_stamped, rmw.TWIST_COVARIANCE: ros.twist_stamped, rmw.IMU: ros.imu,
    rmw.FIX: ros.nav_sat_fix, rmw.POSE: ros.pose_with_covariance_stamped, rmw.TF: ros.tf}
WIDEST_AS_IT_IS = 32  # bytes of a point: beyond, writing fewer bytes takes less time than sending more
NO_OPTIONS = SimpleNamespace(time_unit_s=None)


class Refused(ValueError):
    """A message that ndtd cannot use; the text tells why."""


def pack(kind: str, **fields: Any) -> bytes:
    """A frame; what is None is left out."""
    message = {"v": 1, "type": kind, **{key: value for key, value in fields.items() if value is not None}}
    return msgpack.packb(message, default=lambda value: np.ravel(value).tolist())


def read(message: Any, type_name: str, receive_ns: int) -> list[Any]:
    """The messages of ndtd.recordings in a message of ROS."""
    return list(READERS[type_name](message, receive_ns, NO_OPTIONS))


def stamp(header: Any, receive_ns: int) -> int:
    """In ns; a driver without a clock leaves zeros: the time of its receipt then."""
    return header.stamp.sec * 1_000_000_000 + header.stamp.nanosec or receive_ns


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
    position = np.array(projector(message.latitude, message.longitude, message.altitude), np.float64)
    return pack("gnss", stamp_ns=message.stamp_ns, frame_id="map", position=position, deviation=message.deviation,
                antenna=message.frame_id or None)


def _odometry(message: m.Odometry) -> bytes:
    twist = message.twist if message.twist is not None and np.isfinite(message.twist).all() else None
    pose = message.pose
    if pose is not None and not (np.isfinite(pose).all() and abs(np.linalg.norm(pose[3:]) - 1) < 0.01):
        pose = None
    if pose is None and twist is None:
        raise Refused("neither a pose nor a twist that is finite")
    return pack("odometry", stamp_ns=message.stamp_ns, frame_id=message.frame_id or "odom", pose=pose, twist=twist)


class Clouds:
    """sensor_msgs/PointCloud2 to frames, by the functions of ndt-import. One thread.

    ndtd reads any layout, but not every driver's times. A cloud whose x y z, intensity and times ndtd reads as they should be
    goes as it is, with the fields named as ndtd wants them; any other one is written anew as x y z, intensity and time.
    """

    def __init__(self) -> None:
        self._as_is: dict[Any, Optional[list[list[Any]]]] = {}  # layout: the fields of the frame, None: written anew

    def frame(self, cloud: Any, seq: int, receive_ns: int) -> bytes:
        """Refused: no points, or a layout that cannot be read."""
        stamp_ns = stamp(cloud.header, receive_ns)
        layout = tuple((field.name, field.offset, field.datatype) for field in cloud.fields)
        try:
            dtype = point_fields.record_dtype(layout, cloud.point_step, cloud.is_bigendian)
            points = point_fields.records(cloud.data, dtype, cloud.height, cloud.width, cloud.row_step)
        except point_fields.PointError as error:
            raise Refused(str(error)) from None
        if len(points) == 0:
            raise Refused("no points")
        key = (cloud.header.frame_id, cloud.point_step, cloud.is_bigendian, layout)
        times, fields = None, self._as_is.get(key)
        if key not in self._as_is:
            times = point_fields.times(points, stamp_ns)
            if times is None or np.nanmax(times, initial=-np.inf) > np.nanmin(times, initial=np.inf):  # zeros have no unit yet
                fields = self._as_is[key] = fields_as_they_are(layout, points, times)
        if fields is None:
            columns = _columns(points, point_fields.times(points, stamp_ns) if times is None else times)
            record = np.dtype([(name, values[0]) for name, values in columns.items()])
            fields = [[name, record.fields[name][1], DATATYPES[record[name].str[1:]], 1] for name in record.names]
            points = np.empty(len(points), record)
            for name, (_, values) in columns.items():
                points[name] = values
        return _frame(seq, stamp_ns, cloud.header.frame_id or "lidar", fields, points)


def fields_as_they_are(layout: Any, points: np.ndarray, times: Optional[np.ndarray]) -> Optional[list[list[Any]]]:
    """Fields of a frame that takes the records of a cloud unchanged; None where ndtd would read them otherwise.

    layout: (name, offset, datatype); times: what the cloud means, relative to the stamp [s], or None."""
    names = points.dtype.names or ()
    if points.dtype.itemsize > WIDEST_AS_IT_IS or not {"x", "y", "z"} <= set(names):
        return None
    if any(points.dtype[name].kind != "f" or points.dtype[name].byteorder == ">" for name in "xyz"):
        return None
    wanted = {"x": "x", "y": "y", "z": "z"}
    intensity = next((name for name in point_fields.INTENSITY_FIELDS if name in names), None)
    if intensity is not None:
        wanted[intensity] = "intensity"
    if times is not None:
        time_field = next((name for name in point_fields.TIME_FIELDS if name in names and _tells(points[name], times)), None)
        if time_field is None:
            return None
        wanted[time_field] = "time"
    return [[wanted.pop(name), offset, datatype, 1] for name, offset, datatype in layout if name in wanted]


def _tells(values: np.ndarray, times: np.ndarray) -> bool:
    """Whether ndtd reads a field of times as `times` (SCHEMA.md: integers are ns, floats near zero relative seconds)."""
    seconds = values * 1e-9 if values.dtype.kind in "iu" else values
    return bool(np.array_equal(seconds.astype(np.float32), times.astype(np.float32), equal_nan=True)
                and (np.abs(times[np.isfinite(times)]) < 10.0).all())


def _columns(points: np.ndarray, times: Optional[np.ndarray]) -> dict[str, Any]:
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


def _frame(seq: int, stamp_ns: int, frame_id: str, fields: list[list[Any]], points: np.ndarray) -> bytes:
    head = pack("scan", seq=seq, stamp_ns=stamp_ns, frame_id=frame_id, count=len(points), point_step=points.itemsize,
                fields=fields, data=b"")[:-2]  # without the empty binary at its end
    return b"".join((head, b"\xc6", struct.pack(">I", points.nbytes), points.view(np.uint8)))
