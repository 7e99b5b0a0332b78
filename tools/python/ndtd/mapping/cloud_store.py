"""Points of scans on the disk: written once in a row, read in any order. Memory does not grow with the drive."""
from pathlib import Path
from typing import Any

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


class CloudStore:
    """A context: the file is removed at its end. clouds[i] is (N, 3) float32, in the frame of the base at scan i."""

    def __init__(self, path: Path):
        self._path = path
        self._stream: Any = path.open("w+b")
        self._places: "dict[int, tuple[int, int]]" = {}
        self._end = 0

    def __enter__(self) -> "CloudStore":
        return self

    def __exit__(self, *_: Any) -> None:
        self._stream.close()
        self._path.unlink(missing_ok=True)

    def __setitem__(self, scan: int, points: np.ndarray) -> None:
        points = np.ascontiguousarray(points, np.float32)
        self._stream.seek(self._end)
        self._stream.write(points.data)
        self._places[scan] = (self._end, len(points))
        self._end += points.nbytes

    def __getitem__(self, scan: int) -> np.ndarray:
        place, count = self._places[scan]
        self._stream.seek(place)
        return np.frombuffer(self._stream.read(12 * count), np.float32).reshape(-1, 3)

    def discard(self, scan: int) -> None:
        """Forgets the points of a scan, if it has any."""
        self._places.pop(scan, None)

    def __contains__(self, scan: int) -> bool:
        return scan in self._places

    def scans(self) -> "list[int]":
        """Those that have a cloud, ascending."""
        return sorted(self._places)
