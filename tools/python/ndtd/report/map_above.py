"""The map of a replay, seen from above: read once, in blocks; what is kept is a picture of all and the points around some scans."""
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import numpy as np

from . import raster
from .raster import Box

BELOW_M, ABOVE_M = 8.0, 15.0  # around the height of a scan: points beyond are other floors
MOST_POINTS = 1_500_000  # around one scan


class Window:
    """The points around a scan: `points` (N, 3) relative to `centre` (3,), map axes."""

    def __init__(self, centre: np.ndarray, reach_m: float):
        self.centre, self.reach_m = centre, reach_m
        self._parts: "list[np.ndarray]" = []
        self._count = 0

    def add(self, points: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        """points (N, 3) float64; x, y: their first columns, contiguous."""
        here = np.flatnonzero(np.abs(x - self.centre[0]) < self.reach_m)
        near = points[here[np.abs(y[here] - self.centre[1]) < self.reach_m]] - self.centre
        near = near[(near[:, 2] > -BELOW_M) & (near[:, 2] < ABOVE_M)]
        if self._count + len(near) <= MOST_POINTS:
            self._parts.append(near.astype(np.float32))
            self._count += len(near)

    @property
    def points(self) -> np.ndarray:
        return np.concatenate(self._parts) if self._parts else np.empty((0, 3), np.float32)


def read(path: "Optional[Path]", box: Box, columns: int, rows: int, windows: "list[Window]") -> "tuple[np.ndarray, str]":
    """Points per pixel (rows, columns) of the box, and why there are none ("": there are). Fills the windows."""
    density = np.zeros((rows, columns), int)
    if path is None:
        return density, "its file is not where it was"
    try:
        for points in _blocks(path):
            x, y = np.ascontiguousarray(points[:, 0]), np.ascontiguousarray(points[:, 1])
            low, high = (x.min(), y.min()), (x.max(), y.max())
            if _overlap(box, low, high):
                density += raster.counts(points, box, columns, rows)
            for window in windows:
                if _overlap(Box.around(window.centre, 2 * window.reach_m, 2 * window.reach_m), low, high):
                    window.add(points, x, y)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        return density, re.sub(r"\s+", " ", str(error))[:200]
    return density, "" if density.any() else f"no point of {path} is near the trajectory"


def _overlap(box: Box, low: "tuple[float, float]", high: "tuple[float, float]") -> bool:
    return bool(low[0] < box.x + box.width and high[0] >= box.x and low[1] < box.y + box.height and high[1] >= box.y)


def _blocks(path: Path) -> "Iterator[np.ndarray]":
    """Points (N, 3) float64, N > 0. Of a compiled map: eight per voxel, drawn from its Gaussian."""
    if path.suffix.lower() == ".ndtmap":
        yield _points_of_voxels(path)
        return
    from ..maps.point_files import find_files

    for one in find_files([path]):
        for block in one.blocks():
            points = block.points
            if not np.isfinite(points.sum()):
                points = points[np.isfinite(points).all(axis=1)]
            if len(points):
                yield points


def _points_of_voxels(path: Path) -> np.ndarray:
    from .. import _core

    world = _core.Map(str(path))
    voxels = world.voxels(min(world.levels))
    mean, information = voxels["mean"], voxels["inverse_covariance"]
    if len(mean) == 0:
        raise ValueError(f"{path}: has no voxels")
    values, vectors = np.linalg.eigh(information)
    deviation = 1.0 / np.sqrt(np.maximum(values, 1e-6))
    normal = np.random.default_rng(1).standard_normal((8, len(mean), 3))
    drawn = mean + np.einsum("nij,knj->kni", vectors, normal * np.minimum(deviation, 1.0))
    out: np.ndarray = drawn.reshape(-1, 3)
    return out
