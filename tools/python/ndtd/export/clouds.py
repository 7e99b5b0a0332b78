"""Clouds for viewers: scans of a bag in the map frame, a map thinned to a number of points."""
from collections import OrderedDict
from pathlib import Path
from typing import Any, Optional, Sequence

import numpy as np

from .. import _core
from ..cloud import Cloud
from ..maps.point_files import find_files
from .piped_records import Records
from .sensor_poses import IDENTITY, Sensors, apply, undo_motion
from .result_lines import ResultError, ResultLine

WAITING_SCANS = 16
CLOUD_FIELDS = ("x", "y", "z", "intensity")  # float32 each


def point_records(cloud: Cloud, origin_m: np.ndarray) -> np.ndarray:
    """float32 x y z relative to `origin_m`, and intensity (0 where unknown): 16 bytes per point."""
    out = np.zeros(len(cloud), [(name, "<f4") for name in CLOUD_FIELDS])
    for at, name in enumerate("xyz"):
        out[name] = cloud.points[:, at] - origin_m[at]
    if cloud.intensity is not None:
        out["intensity"] = cloud.intensity
    return out


class Scans:
    """The scans of a bag or another recording beside their results: read once, in order."""

    def __init__(self, path: Any, sensors: Sensors, most_points: int, import_options: Sequence[str] = ()):
        self._records = Records(path, import_options)
        self._sensors, self._most = sensors, most_points
        self._waiting: "OrderedDict[tuple[int, int], dict[str, Any]]" = OrderedDict()
        self.missing = 0  # results whose scan is not in the bag

    def find(self, result: ResultLine) -> "Optional[tuple[str, Cloud]]":
        """frame_id and the points of the scan of a result in the map, its motion undone by the twist of the result where points
        have times. Points: at most `most_points`, every k-th."""
        if result.seq is None or result.pose is None:
            return None
        scan = self._take((result.seq, result.stamp_ns))
        if scan is None:
            self.missing += 1
            return None
        points = scan["points"]
        keep = np.flatnonzero(np.isfinite(points).all(axis=1))
        keep = keep[::max(1, -(-len(keep) // self._most))] if self._most else keep
        frame_id = scan["frame_id"]
        mount = self._sensors.find(result, frame_id)
        points = apply(IDENTITY if mount is None else mount, points[keep].astype(np.float64) + scan["origin"])
        if scan["time_s"] is not None and result.twist is not None:
            points = undo_motion(points, scan["time_s"][keep].astype(np.float64), result.twist)
        intensity = None if scan["intensity"] is None else scan["intensity"][keep]
        return frame_id, Cloud(apply(result.pose, points), intensity)

    def close(self) -> None:
        self._records.close()

    def _take(self, key: "tuple[int, int]") -> "Optional[dict[str, Any]]":
        """The scan with this number and stamp among those that wait and the next ones of the bag."""
        if key in self._waiting:
            return self._waiting.pop(key)
        for record in self._records:
            if record.type != "scan":
                continue
            scan = _core.decode_scan(record.payload)
            if (scan["seq"], scan["stamp_ns"]) == key:
                return scan
            self._waiting[(scan["seq"], scan["stamp_ns"])] = scan
            if len(self._waiting) > WAITING_SCANS:
                self._waiting.popitem(last=False)
                break
        return None


class Thinned:
    """Keeps every k-th of the rows that are added, with the least k (a power of two) that leaves at most `most`."""

    def __init__(self, columns: int, most: int):
        self._rows, self._most, self._step, self._seen = np.empty((0, columns)), most, 1, 0

    def add(self, rows: np.ndarray) -> None:
        """rows (N, columns)."""
        first = -self._seen % self._step
        self._seen += len(rows)
        self._rows = np.concatenate([self._rows, rows[first::self._step]])
        while len(self._rows) > self._most:
            self._rows, self._step = self._rows[::2], 2 * self._step

    def rows(self) -> np.ndarray:
        return self._rows


def read_map(path: Any, most_points: int) -> Cloud:
    """A cloud file of any kind or a folder of tiles, thinned while it is read. ResultError, MapFileError, OSError."""
    if Path(path).suffix.lower() == ".ndtmap":
        raise ResultError(f"{path}: a compiled map has no points; name the cloud or the folder that it was made from")
    thinned = Thinned(4, most_points)
    for one in find_files([path]):
        for block in one.blocks():
            rows = np.zeros((len(block.points), 4))
            rows[:, :3] = block.points
            if block.intensity is not None:
                rows[:, 3] = block.intensity
            thinned.add(rows[np.isfinite(block.points).all(axis=1)])
    rows = thinned.rows()
    return Cloud(rows[:, :3], rows[:, 3].astype(np.float32))
