"""Sharpness of a map: the thickness of its surfaces. Poses that do not agree make walls thick."""
from pathlib import Path
from typing import Any

import numpy as np

from ..maps import find_files

CELL_M, LEAST_POINTS = 1.0, 20
FLAT = 4.0  # a surface: the middle deviation of its points is so many times the smallest


def _keys(cell: np.ndarray) -> np.ndarray:
    keys: np.ndarray = (cell[:, 2] << 42) | (cell[:, 1] << 21) | cell[:, 0]
    return keys


class Surfaces:
    """The surfaces of a cloud: one plane in each cell that holds one."""

    def __init__(self, points: np.ndarray):
        cell = np.floor(points / CELL_M).astype(np.int64)
        self._corner = cell.min(axis=0)
        key = _keys(cell - self._corner)
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(key[order]) > 0])
        counts = np.diff(np.r_[starts, len(order)])
        means = np.add.reduceat(points[order], starts, axis=0) / counts[:, None]
        local = points[order] - np.repeat(means, counts, axis=0)
        squares = np.add.reduceat(local[:, :, None] * local[:, None, :], starts, axis=0) / np.maximum(counts - 1, 1)[:, None, None]
        is_full = counts >= LEAST_POINTS
        values, axes = np.linalg.eigh(squares[is_full])
        deviations = np.sqrt(np.maximum(values, 0.0))
        is_flat = deviations[:, 1] > FLAT * deviations[:, 0]
        self.thickness_m: np.ndarray = deviations[is_flat, 0]  # standard deviation across each surface
        self._keys, self._means, self._normals = key[order][starts][is_full][is_flat], means[is_full][is_flat], axes[is_flat, :, 0]

    def distances_m(self, points: np.ndarray) -> np.ndarray:
        """Distances from the surface in their cell of those points that are in a cell with one."""
        cell = np.floor(points / CELL_M).astype(np.int64) - self._corner
        inside = (cell >= 0).all(axis=1) & (cell < 1 << 21).all(axis=1)
        points, key = points[inside], _keys(cell[inside])
        place = np.minimum(np.searchsorted(self._keys, key), max(len(self._keys) - 1, 0))
        found = self._keys[place] == key if len(self._keys) else np.zeros(len(key), bool)
        off: np.ndarray = np.abs(((points[found] - self._means[place[found]]) * self._normals[place[found]]).sum(axis=1))
        return off


def thickness_m(points: np.ndarray) -> np.ndarray:
    """Standard deviation across the surface of each cell that holds one."""
    return Surfaces(points).thickness_m


def of_map(path: Path) -> "dict[str, Any]":
    """Median and 95 % quantile of the thickness [m], and the number of cells with a surface."""
    found = [thickness_m(block.points) for one in find_files([path]) for block in one.blocks() if len(block.points)]
    thick = np.concatenate(found) if found else np.empty(0)
    if len(thick) == 0:
        return {"cells": 0, "median_m": None, "p95_m": None}
    return {"cells": len(thick), "median_m": round(float(np.median(thick)), 4), "p95_m": round(float(np.quantile(thick, 0.95)), 4)}
