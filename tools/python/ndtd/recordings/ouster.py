"""Packets and recordings (.osf) of an Ouster, by ouster-sdk: the metadata of the sensor, a JSON, tell layout and angles."""
import json
from functools import partial
from pathlib import Path
from typing import Any, Iterator, List, Optional, Set, Tuple

import numpy as np

from .._extras import need
from . import topics
from .messages import DamagedError, Raw, RecordingError, Topic
from .packet_points import Points, scan_of
from .points import PointError

MOST_PIXELS = 1 << 20  # of a turn
FIELDS = (("RANGE", "REFLECTIVITY"), ("RANGE2", "REFLECTIVITY2"))  # by returns


def is_metadata(data: bytes) -> bool:
    return data.lstrip()[:1] == b"{"


def _fields(names):
    """The fields of ranges and reflectivities, by returns."""
    found = [pair for pair in FIELDS if set(pair) <= set(names)]
    if not found:
        raise PointError(f"an Ouster without ranges and reflectivities, but {', '.join(names)}")
    return found


def _points(project, images, column_ns, begin_ns):
    """Points of images of ranges and reflectivities, (rows, columns) each."""
    parts = []
    for ranges, reflectivity in images:
        row, column = np.nonzero(ranges)
        xyz = project(ranges)[row, column].astype(np.float32)
        parts.append((xyz.T, reflectivity[row, column].astype(np.float32), column_ns[column]))
    xyz, intensity, time_ns = (np.concatenate(columns, axis=-1) for columns in zip(*parts))
    return Points(xyz, intensity, time_ns, sum(image[0].size for image in images) - len(time_ns), begin_ns)


class Decoder:
    """Makes points of the packets of one sensor, in its frame (os_sensor). PointError: metadata that cannot be read."""

    name, frame_id = "Ouster", "os_sensor"

    def __init__(self, metadata: bytes):
        self._core = need("ouster.sdk.core", "ouster")
        self.notes: Set[str] = set()
        try:
            text = metadata.decode("utf-8")
            json.loads(text)
            info = self._core.SensorInfo(text)
            self._shape = int(info.format.pixels_per_column), int(info.format.columns_per_frame)
            if not 0 < self._shape[0] * self._shape[1] <= MOST_PIXELS:
                raise ValueError(f"{self._shape[0]} x {self._shape[1]} pixels")
            self._format, self._project = self._core.PacketFormat(info), self._core.XYZLut(info)
        except Exception as error:  # of the parser: anything
            raise PointError(f"the metadata of the Ouster cannot be read: {' '.join(str(error).split())[:160]}") from None
        self._fields = _fields(list(self._format.fields))

    def is_own(self, packet: bytes) -> bool:
        return len(packet) == self._format.lidar_packet_size

    def turn(self, packet: bytes) -> float:
        return float(self._header("MEASUREMENT_ID", packet)[0]) / self._shape[1]

    def _header(self, name, packet):
        return self._format.packet_header(getattr(self._core.ColHeader, name), np.frombuffer(packet, np.uint8))

    def points(self, rows: List[Tuple[int, bytes]]) -> Points:
        """The points of some packets of one turn."""
        images = np.zeros((len(self._fields), 2, *self._shape), np.uint32)
        column_ns = np.zeros(self._shape[1], np.int64)
        begin_ns = int(self._header("TIMESTAMP", rows[0][1])[0])
        for _, packet in rows:
            column, status = self._header("MEASUREMENT_ID", packet), self._header("STATUS", packet)
            good = (status & 1 != 0) & (column < self._shape[1])
            column_ns[column[good]] = self._header("TIMESTAMP", packet)[good].astype(np.int64)
            data = np.frombuffer(packet, np.uint8)
            for image, pair in zip(images, self._fields):
                for one, name in zip(image, pair):
                    one[:, column[good]] = self._format.packet_field(name, data)[:, good]
        return _points(self._project, images, column_ns, begin_ns)


def _frames(source):
    """The scans of a file with the numbers of their sensors. Sets that the sensors did not fill together have one scan each, and only
    its serial number tells which sensor it is of."""
    numbers = {info.sn: at for at, info in enumerate(source.sensor_info)}
    for frames in source:
        for at, frame in enumerate(frames):
            if frame is not None:
                yield (numbers.get(frame.sensor_info.sn, at) if len(numbers) == len(source.sensor_info) else at), frame


def _contents(source):
    """Scans of each sensor, and the stamps of all [ns]; a file without an index is read for it, as ouster-sdk would write into the file."""
    if source.is_indexed:
        return list(source.frames_num), [int(row[0]) for row in source.full_index]
    counts, stamps = [0] * len(source.sensor_info), []
    for at, frame in _frames(source):
        counts[at] += 1
        stamps.append(int(frame.timestamp.max()))
    return counts, stamps


class OsfRecording:
    """An .osf: scans of one sensor or several, `sensor 0` and so on."""

    seeks = False

    def __init__(self, path: Path, options: topics.Options, stack: Any):
        self.name, self.files, self.notes = str(path), [path], []
        self._core, self._osf = need("ouster.sdk.core", "ouster"), need("ouster.sdk.osf", "ouster")
        try:
            source = self._osf.OsfFrameSetSource(str(path))
            self._project = [self._core.XYZLut(info) for info in source.sensor_info]
            counts, stamps = _contents(source)
        except Exception as error:  # of the parser: anything
            raise RecordingError(f"{path}: {' '.join(str(error).split())[:300]}") from None
        self.topics = [Topic(f"sensor {at}", "scans of an Ouster", count, kinds=("scan",)) for at, count in enumerate(counts)]
        self.start_ns = min(stamps, default=0)
        self.duration_s = (max(stamps, default=0) - self.start_ns) * 1e-9
        topics.choose(self.topics, options, self.name, self.duration_s)

    def raw(self, wanted: list, start_ns: Optional[int] = None) -> Iterator[Raw]:
        """The scans in the order of the file."""
        try:
            for at, frame in _frames(self._osf.OsfFrameSetSource(self.name)):
                if self.topics[at] in wanted:
                    received = frame.packet_timestamp[frame.packet_timestamp > 0]
                    receive_ns = int(received.max()) if len(received) else int(frame.timestamp.max())
                    yield Raw(self.topics[at], receive_ns, frame.h * frame.w * 4, partial(self._scan, at, frame, received, receive_ns))
        except (MemoryError, OSError, ImportError, GeneratorExit):
            raise
        except Exception as error:  # of the parser: anything
            raise DamagedError(f"{self.name}: damaged: {' '.join(str(error).split())[:300]}") from None

    def _scan(self, at, frame, received, receive_ns):
        column_ns = frame.timestamp.astype(np.int64)
        images = [[np.asarray(frame.field(name), np.uint32) for name in pair] for pair in _fields(list(frame.fields))]
        if not (column_ns > 0).any():
            raise PointError("a turn without times")
        begin_ns = int(column_ns[column_ns > 0].min())
        points = _points(self._project[at], images, column_ns, begin_ns)
        frame_id = f"os_sensor_{at}" if at else "os_sensor"
        return [scan_of(points, int(received.min()) if len(received) else begin_ns, (receive_ns, 0, frame_id))]
