"""NCLT's velodyne_hits.bin: the packets of its Velodyne in the frame of the sensor, by its own read_vel_hits.py.

A packet: four times 44444 (uint16), number of hits (uint32), microseconds since 1970 (uint64), 4 bytes, and 8 bytes per hit as in
velodyne_sync. Packets are put together to turns, whose points have the times of their packets.
"""
import mmap
import struct
from pathlib import Path
from typing import List, Tuple, Union

import numpy as np

from ..poses import from_euler, matrix, pose_of
from . import topics
from .datasets import US, nclt_extras, unpack_nclt
from .folders import FolderRecording
from .messages import RecordingError, Scan, Topic
from .tracks import Track, stamps_ns

_MAGIC = struct.pack("<4H", *[44444] * 4)
_HEAD = struct.Struct("<8sIQ4x")
_HIT = 8
_MOST_GAP_US = 500_000  # a longer silence ends a turn
_MOST_TURN_US = 1_000_000  # of a sensor that stands still
_FLIP = np.diag([1.0, -1, -1, 1])
# T_body_velodyne of the paper, Table 4; body and sensor look down there, and up here.
VELODYNE = pose_of(_FLIP @ matrix(from_euler((0.002, -0.004, -0.957), np.radians((0.807, 0.166, -90.703)))) @ _FLIP)


def index_turns(data: Union[bytes, mmap.mmap]) -> Tuple[List[Tuple[int, int, int]], int]:
    """Begin and end of each turn [bytes] and its stamp [us]; and where the file is no longer one of packets."""
    turns: List[Tuple[int, int, int]] = []
    at = begin = 0
    stamp_us = last_us = None
    last, turned = None, 0.0
    while at + _HEAD.size <= len(data):
        magic, hits, us = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + hits * _HIT
        if magic != _MAGIC or end > len(data):
            break
        azimuth = _azimuth(data, at + _HEAD.size) if hits else last
        if last is not None:
            turned += (azimuth - last + np.pi) % (2 * np.pi) - np.pi
        if stamp_us is None:
            stamp_us = us
        elif abs(turned) >= 2 * np.pi or abs(us - last_us) > _MOST_GAP_US or abs(us - stamp_us) > _MOST_TURN_US:
            turns.append((begin, at, stamp_us))
            begin, stamp_us, turned = at, us, float(np.fmod(turned, 2 * np.pi))
        last, last_us, at = azimuth, us, end
    return turns, at  # the last turn has no end


def _azimuth(data, at):
    x, y = struct.unpack_from("<HH", data, at)
    return float(np.arctan2(y - 20000, x - 20000))  # 100 m of 5 mm


class HitsRecording(FolderRecording):
    """The file velodyne_hits.bin, and the tables that lie beside it."""

    def __init__(self, path: Path, options: topics.Options):
        self.notes: List[str] = []
        with path.open("rb") as stream:
            self._data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        self._turns, end = index_turns(self._data)
        if not self._turns:
            raise RecordingError(f"{path}: no turn of a Velodyne in it: NCLT's packets are wanted")
        if end < len(self._data):
            self.notes.append(f"{path}: damaged: no packet at byte {end} of {len(self._data)}; what comes before is taken")
        stamps = stamps_ns(us * US for _, _, us in self._turns)
        scans = Track(Topic("velodyne_hits", "packets of NCLT", len(stamps), kinds=("scan",)), stamps, self._scan,
                      lambda number: self._turns[number][1] - self._turns[number][0])
        found = nclt_extras(path.parent.resolve())
        found.places["velodyne"] = VELODYNE
        self.open(path, [path], scans, found, options)

    def _scan(self, number, stamp_ns):
        begin, end, stamp_us = self._turns[number]
        points, intensity, times = [], [], []
        while begin < end:
            _, hits, us = _HEAD.unpack_from(self._data, begin)
            begin += _HEAD.size
            packet = unpack_nclt(self._data[begin:begin + hits * _HIT])
            points.append(packet[0])
            intensity.append(packet[1])
            times.append(np.full(hits, (us - stamp_us) * 1e-6))
            begin += hits * _HIT
        return Scan(stamp_ns, stamp_ns, "velodyne", np.concatenate(points), np.concatenate(intensity), np.concatenate(times))
