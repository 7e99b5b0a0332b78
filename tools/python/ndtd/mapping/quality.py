"""Sharpness of a map: the thickness of its surfaces. Poses that do not agree make walls thick."""
from pathlib import Path
from typing import Any

import numpy as np

from ..maps import find_files

CELL_M, LEAST_POINTS = 1.0, 20
FLAT = 4.0  # a surface: the middle deviation of its points is so many times the smallest


def thickness_m(points: np.ndarray) -> np.ndarray:
    """Standard deviation across the surface of each cell that holds one."""
    cell = np.floor(points / CELL_M).astype(np.int64)
    cell -= cell.min(axis=0)
    key = (cell[:, 2] << 42) | (cell[:, 1] << 21) | cell[:, 0]
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(key[order]) > 0])
    counts = np.diff(np.r_[starts, len(order)])
    local = points[order] - np.repeat(np.add.reduceat(points[order], starts, axis=0) / counts[:, None], counts, axis=0)
    squares = np.add.reduceat(local[:, :, None] * local[:, None, :], starts, axis=0) / np.maximum(counts - 1, 1)[:, None, None]
    deviations = np.sqrt(np.maximum(np.linalg.eigvalsh(squares[counts >= LEAST_POINTS]), 0.0))
    flat = deviations[:, 1] > FLAT * deviations[:, 0]
    thick: np.ndarray = deviations[flat, 0]
    return thick


def of_map(path: Path) -> "dict[str, Any]":
    """Median and 95 % quantile of the thickness [m], and the number of cells with a surface."""
    found = [thickness_m(block.points) for one in find_files([path]) for block in one.blocks() if len(block.points)]
    thick = np.concatenate(found) if found else np.empty(0)
    if len(thick) == 0:
        return {"cells": 0, "median_m": None, "p95_m": None}
    return {"cells": len(thick), "median_m": round(float(np.median(thick)), 4), "p95_m": round(float(np.quantile(thick, 0.95)), 4)}
