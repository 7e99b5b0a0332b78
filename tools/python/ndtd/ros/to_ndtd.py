"""Messages of ROS to frames of the `scans` socket (proto/SCHEMA.md), by the readers and the Converter of ndt-import."""
import struct
from typing import Any, Callable, Optional

import msgpack
import numpy as np

from ..recordings import messages as m
from ..recordings import points as point_fields
from ..recordings import ros
from ..recordings.convert import Converter
from ..recordings.sensor_frames import Frames
from ..recordings.topics import Options
from . import transport

FLOATS = {4: 7, 8: 8}  # FLOAT32 and FLOAT64 of sensor_msgs/PointField, by their bytes
WIDEST_AS_IT_IS = 32  # bytes of a point: beyond, writing fewer bytes takes less time than sending more


class Refused(ValueError):
    """A message that ndtd cannot use; the text tells why."""


def pack(kind: str, **fields: Any) -> bytes:
    """A frame; what is None is left out."""
    message = {"v": 1, "type": kind, **{key: value for key, value in fields.items() if value is not None}}
    return msgpack.packb(message, default=lambda value: np.ravel(value).tolist())


class FrameSender:
    """Stands for the BagWriter of ndt-import: the Converter writes into it, and `send` gets frames. False of send: not sent."""

    def __init__(self, send: Callable[[bytes], bool]) -> None:
        self._send = send
        self.scans_not_sent = 0

    def scan(self, stamp_ns: int, points: np.ndarray, *, intensity: Any, time_s: Any, seq: int, frame_id: str, receive_ns: int) -> None:
        columns = {name: (points.dtype.newbyteorder("<"), column) for name, column in zip("xyz", points.T)}
        columns.update({name: (np.dtype("<f4"), values) for name, values in (("intensity", intensity), ("time", time_s))
                        if values is not None})
        records = np.empty(len(points), [(name, real) for name, (real, _) in columns.items()])
        fields, offset = [], 0
        for name, (real, values) in columns.items():
            records[name] = values
            fields.append([name, offset, FLOATS[real.itemsize], 1])
            offset += real.itemsize
        self.records(stamp_ns, records, fields, seq, frame_id)

    def records(self, stamp_ns: int, records: np.ndarray, fields: list[list[Any]], seq: int, frame_id: str) -> None:
        """A scan of records as they are."""
        head = pack("scan", seq=seq, stamp_ns=stamp_ns, frame_id=frame_id, count=len(records), point_step=records.itemsize,
                    fields=fields, data=b"")[:-2]  # without the empty binary at its end
        frame = b"".join((head, b"\xc6", struct.pack(">I", records.nbytes), records.view(np.uint8).data))
        self.scans_not_sent += not self._send(frame)

    def odometry(self, stamp_ns: int, *, pose: Any, twist: Any, frame_id: str, receive_ns: int) -> None:
        self._send(pack("odometry", stamp_ns=stamp_ns, frame_id=frame_id, pose=pose, twist=twist))

    def imu(self, stamp_ns: int, omega: Any, acceleration: Any, *, frame_id: str, receive_ns: int) -> None:
        self._send(pack("imu", stamp_ns=stamp_ns, frame_id=frame_id, angular_velocity=omega, linear_acceleration=acceleration))

    def gnss(self, stamp_ns: int, xyz: Any, deviation: Any, *, antenna: str, receive_ns: int) -> None:
        self._send(pack("gnss", stamp_ns=stamp_ns, frame_id="map", position=xyz, deviation=deviation, antenna=antenna or None))

    def transform(self, *_: Any, **__: Any) -> None:
        """Mounting tells them, and repeats them."""


class Inbound:
    """Messages of ROS to ndtd. frames: where the sensors are, as it becomes known. One thread.

    ndtd reads any layout of points, but not every driver's times. A PointCloud2 whose points, intensity and times ndtd reads as
    they should be goes as it is, with the fields named as ndtd wants them; any other one is written anew, as ndt-import does.
    """

    def __init__(self, types: transport.Types, send: Callable[[bytes], bool], frames: Frames, project: Optional[Callable]) -> None:
        self._types = types
        self.sender = FrameSender(send)
        self._converter = Converter(self.sender, frames, project)
        self._options = Options()
        self._as_is: dict[Any, Optional[list[list[Any]]]] = {}  # layout: the fields of the frame, None: written anew
        self._seq = 0

    def read(self, raw: bytes, topic: m.Topic, receive_ns: int) -> list[Any]:
        """The messages of ndtd.recordings in a message."""
        return list(ros.read(topic.type, self._types.decode, raw, self._types.is_ros2, receive_ns, topic, self._options))

    def motion(self, message: Any, topic: m.Topic) -> None:
        """Odometry, Imu or Gnss. Refused: ndtd cannot use it."""
        self._write(message, topic)

    def cloud(self, message: Any, topic: m.Topic, receive_ns: int) -> None:
        """A sensor_msgs/PointCloud2. Refused: no points, or a layout that cannot be read."""
        layout = tuple((field.name, field.offset, field.datatype) for field in message.fields)
        dtype = point_fields.record_dtype(layout, message.point_step, message.is_bigendian)
        records = point_fields.records(message.data, dtype, message.height, message.width, message.row_step)
        if len(records) == 0:
            raise Refused("no points")
        frame_id = message.header.frame_id.lstrip("/") or "lidar"
        stamp_ns = ros.stamp_of(message.header, receive_ns)
        key = (topic.name, message.point_step, message.is_bigendian, layout)
        fields = self._as_is.get(key)
        if fields is not None:
            self.sender.records(stamp_ns, records, fields, self._seq, frame_id)
            self._seq += 1
            return
        scan = ros.scan_of_records(records, (receive_ns, stamp_ns, frame_id), topic, self._options)
        if key not in self._as_is and (scan.time_s is not None or not getattr(topic.state, "notes", None)):
            self._as_is[key] = fields_as_they_are(layout, records, scan)
        self.scan(scan, topic)

    def scan(self, scan: m.Scan, topic: m.Topic) -> None:
        scan.seq = self._seq
        self._seq += 1
        self._write(scan, topic)

    def _write(self, message: Any, topic: m.Topic) -> None:
        left = self._converter.report.left
        before = dict(left)
        self._converter.write(message, topic.kind or "")
        reason = next((key for key, count in left.items() if count != before.get(key)), None)
        if reason is not None:
            raise Refused(reason.partition(": ")[2] or reason)


def fields_as_they_are(layout: Any, records: np.ndarray, scan: m.Scan) -> Optional[list[list[Any]]]:
    """Fields of a frame that takes the records of a cloud unchanged; None where ndtd would read them otherwise.

    layout: (name, offset, datatype); scan: what the records mean. Points without a return are left to ndtd, which drops them.
    """
    names = records.dtype.names or ()
    if records.dtype.itemsize > WIDEST_AS_IT_IS or records.dtype["x"].byteorder == ">":
        return None
    wanted = {"x": "x", "y": "y", "z": "z"}
    intensity = next((name for name in point_fields.INTENSITY_FIELDS if name in names), None)
    if intensity is not None:
        wanted[intensity] = "intensity"
    if scan.time_s is not None:
        good = records[point_fields.returns(point_fields.positions(records))] if scan.empty else records
        field = next((name for name in point_fields.TIME_FIELDS if name in names and _tells(good[name], scan.time_s)), None)
        if field is None:
            return None
        wanted[field] = "time"
    return [[wanted.pop(name), offset, datatype, 1] for name, offset, datatype in layout if name in wanted]


def _tells(values: np.ndarray, times: np.ndarray) -> bool:
    """Whether ndtd reads a field of times as `times` (SCHEMA.md: integers are ns, floats near zero relative seconds)."""
    seconds = values * 1e-9 if values.dtype.kind in "iu" else values
    return bool(np.array_equal(seconds.astype(np.float32), times.astype(np.float32), equal_nan=True))
