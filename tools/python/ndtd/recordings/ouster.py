"""Packets of an Ouster, by ouster-sdk: the metadata of the sensor, a JSON, tell the layout of its packets and its angles."""
import json
from typing import List, Set, Tuple

import numpy as np

from .._extras import need
from .packet_points import Points
from .points import PointError

MOST_PIXELS = 1 << 20  # of a turn
FIELDS = (("RANGE", "REFLECTIVITY"), ("RANGE2", "REFLECTIVITY2"))  # by returns


def is_metadata(data: bytes) -> bool:
    return data.lstrip()[:1] == b"{"


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
        self._fields = [pair for pair in FIELDS if set(pair) <= set(self._format.fields)]
        if not self._fields:
            raise PointError(f"packets of an Ouster without ranges and reflectivities: profile {info.format.udp_profile_lidar}")

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
        parts = [self._returns(image, column_ns) for image in images]
        xyz, intensity, time_ns = (np.concatenate(columns, axis=-1) for columns in zip(*parts))
        return Points(xyz, intensity, time_ns, images[:, 0].size - len(time_ns), begin_ns)

    def _returns(self, image, column_ns):
        ranges, reflectivity = image
        row, column = np.nonzero(ranges)
        xyz = self._project(ranges)[row, column].astype(np.float32)
        return xyz.T, reflectivity[row, column].astype(np.float32), column_ns[column]
