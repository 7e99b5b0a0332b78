"""Points of scans on the disk: written once in a row, read in any order. Memory does not grow with the drive."""
import zlib
from pathlib import Path
from typing import Any, Protocol

import numpy as np

VOXEL_BITS = 21


def thin(points: np.ndarray, voxel_m: float) -> np.ndarray:
    """The means of the points of each voxel, float32, in the order of the voxels."""
    if len(points) == 0 or voxel_m <= 0:
        return np.asarray(points, np.float32)
    index = np.floor(points / voxel_m).astype(np.int64)
    index -= index.min(axis=0)
    key = (index[:, 2] << (2 * VOXEL_BITS)) | (index[:, 1] << VOXEL_BITS) | index[:, 0]
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(key[order]) > 0])
    counts = np.diff(np.r_[starts, len(order)])
    sums = np.add.reduceat(points[order].astype(np.float64), starts, axis=0)
    means: np.ndarray = (sums / counts[:, None]).astype(np.float32)
    return means


class Clouds(Protocol):
    """Points of scans, each (N, 3) float32, in the frame of the base at the scan."""

    def scans(self) -> "list[int]":
        """Scans that have points, ascending."""

    def __getitem__(self, scan: int) -> np.ndarray: ...


class CloudStore:
    """A context: the file is removed at its end, unless it is kept. clouds[i] is (N, 3) float32, in the frame of the base at scan i."""

    def __init__(self, path: Path, keep: bool = False):
        self._path, self._is_kept = path, keep
        self._stream: Any = path.open("r+b" if keep and path.exists() else "w+b")
        self._places: "dict[int, tuple[int, int]]" = {}
        self._left_out: "dict[int, np.ndarray]" = {}
        self.end = 0  # bytes that count
        self.crc = 0  # of these

    def __enter__(self) -> "CloudStore":
        return self

    def __exit__(self, *_: Any) -> None:
        self._stream.close()
        if not self._is_kept:
            self._path.unlink(missing_ok=True)

    def __setitem__(self, scan: int, points: np.ndarray) -> None:
        points = np.ascontiguousarray(points, np.float32)
        data = points.tobytes()
        self._stream.seek(self.end)
        self._stream.write(data)
        self._places[scan] = (self.end, len(points))
        self.crc = zlib.crc32(data, self.crc)
        self.end += len(data)

    def _read(self, scan: int) -> np.ndarray:
        place, count = self._places[scan]
        self._stream.seek(place)
        return np.frombuffer(self._stream.read(12 * count), np.float32).reshape(-1, 3)

    def __getitem__(self, scan: int) -> np.ndarray:
        points = self._read(scan)
        return points[~self._mask(scan)] if scan in self._left_out else points

    def _mask(self, scan: int) -> np.ndarray:
        return np.unpackbits(self._left_out[scan], count=self._places[scan][1]).astype(bool)

    def leave_out(self, scan: int, is_left_out: np.ndarray) -> None:
        """Hides points of a scan: one bit each, in memory."""
        if is_left_out.any():
            self._left_out[scan] = np.packbits(is_left_out)

    def left_out(self, scan: int) -> np.ndarray:
        """The points of a scan that are hidden."""
        points = self._read(scan)
        return points[self._mask(scan)] if scan in self._left_out else points[:0]

    def place(self, scan: int) -> "tuple[int, int]":
        """Offset in the file, and the number of points."""
        return self._places[scan]

    def flush(self) -> None:
        """Hands what was written to the system."""
        self._stream.flush()

    def restore(self, scans: "list[int]", places: np.ndarray, end: int, crc: int) -> None:
        """Scans that an earlier process has written, as `place`, `end` and `crc` told then."""
        self._places.update({scan: (int(place), int(count)) for scan, (place, count) in zip(scans, places)})
        self.end, self.crc = end, crc

    def discard(self, scan: int) -> None:
        """Forgets the points of a scan, if it has any."""
        self._places.pop(scan, None)

    def __contains__(self, scan: int) -> bool:
        return scan in self._places

    def scans(self) -> "list[int]":
        """Scans that have a cloud, ascending."""
        return sorted(self._places)


class LeftOut:
    """The points that a store hides, as a store."""

    def __init__(self, store: CloudStore):
        self._store = store

    def __getitem__(self, scan: int) -> np.ndarray:
        return self._store.left_out(scan)

    def scans(self) -> "list[int]":
        """Scans that have hidden points, ascending."""
        return [scan for scan in self._store.scans() if len(self._store.left_out(scan))]
