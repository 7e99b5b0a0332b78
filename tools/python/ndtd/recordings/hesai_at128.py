"""The angles of a Hesai AT128, whose mirror has three faces: each sweeps the field of view once per turn of the mirror.

The correction file of the sensor (`.dat`, version 1.5), as HesaiLidar_SDK_2.0 (udp4_3_parser) and Autoware's Nebula read it, has the
field of each face on the encoder, azimuth and elevation of each channel, and adjustments of both at every 2 deg of the encoder. A sweep
of one face is a scan.
"""
import hashlib
from typing import Tuple

import numpy as np

from .points import PointError

CHANNELS = 128
_NODES = 180  # of the adjustments of a channel, around the encoder
_HEAD = 16
_HASH = 32
_UNITS = 25600  # per degree
_CIRCLE = 360 * _UNITS


class Correction:
    """The correction file of one sensor."""

    def __init__(self, data: bytes):
        begin = data.find(b"\xee\xff")
        data = data[max(begin, 0):]
        if begin < 0 or len(data) < _HEAD:
            raise PointError("the calibration is no correction file (.dat) of a Hesai AT128")
        version, channels, mirrors, frames, unit = tuple(data[2:4]), data[4], data[5], data[6], data[15]
        if version != (1, 5) or channels != CHANNELS or not 0 < frames <= mirrors <= 8 or unit == 0:
            raise PointError(f"a correction file of version {version[0]}.{version[1]} with {channels} channels and {frames} fields: "
                             "that of an AT128 has version 1.5, 128 and up to 8")
        size = _HEAD + 8 * mirrors + 8 * channels + 2 * channels * _NODES + _HASH
        if len(data) < size:
            raise PointError(f"a correction file of {len(data)} bytes: that of this AT128 has {size}")
        if hashlib.sha256(data[:size - _HASH]).digest() != data[size - _HASH:size]:
            raise PointError("the correction file of the AT128 is damaged: its checksum is another one")
        fields = np.frombuffer(data, "<u4", 2 * mirrors, _HEAD).reshape(2, -1).astype(np.int64)[:, :frames] * unit
        angles = np.frombuffer(data, "<i4", 2 * channels, _HEAD + 8 * mirrors).reshape(2, -1)
        nodes = np.frombuffer(data, "i1", 2 * channels * _NODES, size - _HASH - 2 * channels * _NODES).reshape(2, channels, _NODES)
        self._start, self._length = fields[0] % _CIRCLE, (fields[1] - fields[0]) % _CIRCLE  # 1 / 25600 deg
        self._azimuth_deg, self._elevation_deg = angles * (unit / _UNITS)
        self._adjust_deg = np.concatenate([nodes, nodes[..., :1]], axis=2) * (0.01 * unit)  # the encoder is a circle

    def fields(self, encoder: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """The field of positions of the encoder [1 / 25600 deg], -1 outside of all, and the way since its begin."""
        since = (encoder[..., None].astype(np.int64) - self._start) % _CIRCLE
        is_in = since <= self._length
        field = np.where(is_in.any(axis=-1), is_in.argmax(axis=-1), -1)
        return field, np.take_along_axis(since, np.maximum(field, 0)[..., None], axis=-1)[..., 0]

    def part(self, encoder: int) -> float:
        """Part of its field at which the encoder is, 0 to 1."""
        field, since = self.fields(np.array([encoder]))
        return float(since[0] / max(self._length[field[0]], 1)) if field[0] >= 0 else 0.0

    def directions(self, encoder: np.ndarray, since: np.ndarray, channel: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Azimuth and elevation of points [rad]: the beam turns twice as fast as the mirror."""
        at = encoder % _CIRCLE / (2 * _UNITS)
        node = at.astype(np.intp)
        weight = at - node
        azimuth_adjust, elevation_adjust = (
            (1 - weight) * table[channel, node] + weight * table[channel, node + 1] for table in self._adjust_deg)
        azimuth_deg = 2 / _UNITS * since - self._azimuth_deg[channel] + azimuth_adjust
        return np.radians(azimuth_deg), np.radians(self._elevation_deg[channel] + elevation_adjust)
