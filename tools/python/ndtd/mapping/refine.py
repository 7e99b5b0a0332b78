"""One round of refinement: half of the scans are aligned with the map of the other half, and the other way round.

Odometry aligns a scan with earlier scans alone; here later ones count as well. One round sharpens the map; more rounds let it bend,
because nothing holds its long waves.
"""
from typing import Any, Callable

import numpy as np

from .._core import Aligner, Map, preprocess
from . import se3
from .cloud_store import CloudStore, thin
from .submaps import QUERY_VOXEL_M, SUBMAP_VOXEL_M, Submap

PRIOR_M, PRIOR_RAD = 0.1, np.deg2rad(0.6)
POINTS, LEVELS_M = 3000, (2.0, 1.0)
REACH_PART, LEAST_REACH_M, MOST_CLOUDS = 1.6, 15.0, 60  # of the map around a submap
LEAST_FIT = 0.7  # of the median: others stay where they are


def _around(submaps: "list[Submap]", number: int, poses: np.ndarray, wanted: "set[int]") -> "list[int]":
    """Scans of the wanted half in this submap and those near it, at most MOST_CLOUDS, evenly chosen."""
    here = submaps[number]
    at = poses[here.center][:3, 3]
    reach_m = max(REACH_PART * here.length_m, LEAST_REACH_M)
    found = [k for one in submaps if np.linalg.norm(poses[one.center][:3, 3] - at) <= reach_m for k in one.scans if k in wanted]
    chosen = np.unique(np.linspace(0, len(found) - 1, min(len(found), MOST_CLOUDS)).round().astype(int)) if found else []
    return [found[place] for place in chosen]


def _align(submap: Submap, target: np.ndarray, scans: "list[int]", store: CloudStore, poses: np.ndarray, threads: int) -> "dict[int, Any]":
    """New poses of scans, with how well they fit."""
    T_center = poses[submap.center]
    aligner = Aligner(Map(target, levels=LEVELS_M, threads=threads), backend="cpu", threads=threads, score_threshold=0.0)
    covariance = np.diag([PRIOR_M ** 2] * 3 + [PRIOR_RAD ** 2] * 3)
    found = {}
    for k in scans:
        guess = se3.inverse(T_center) @ poses[k]
        points = preprocess(store[k], voxel_m=QUERY_VOXEL_M, sample_count=POINTS, min_range_m=0.0)
        result = aligner.align(points, guess, prior=(guess, covariance))
        if result.converged:
            found[k] = (T_center @ result.pose, result.scores.nvtl_normalized * result.scores.match_ratio)
    return found


def _half(submaps: "list[Submap]", moved: "set[int]", fixed: "set[int]", store: CloudStore, poses: np.ndarray, threads: int,
          progress: Callable[[float], None]) -> "dict[int, np.ndarray]":
    found: "dict[int, Any]" = {}
    for number, submap in enumerate(submaps):
        clouds = _around(submaps, number, poses, fixed)
        scans = [k for k in submap.scans if k in moved]
        if clouds and scans:
            T_center = se3.inverse(poses[submap.center])
            target = thin(np.concatenate([se3.apply(T_center @ poses[k], store[k]) for k in clouds]), SUBMAP_VOXEL_M)
            found.update(_align(submap, target, scans, store, poses, threads))
        progress((number + 1) / len(submaps))
    usual = float(np.median([fit for _, fit in found.values()])) if found else 0.0
    return {k: T for k, (T, fit) in found.items() if fit >= LEAST_FIT * usual}


def spread(poses: np.ndarray, new: "dict[int, np.ndarray]", first: int, last: int) -> np.ndarray:
    """Poses of the nodes first .. last - 1: those that moved, and between them what both neighbours moved by."""
    out = poses.copy()
    known = [k for k in sorted(new) if first <= k < last]
    for a, b in zip([None, *known], [*known, None]):
        begin, end = (first if a is None else a), (last if b is None else b)
        for k in range(begin, end):
            by_a = None if a is None else new[a] @ se3.inverse(poses[a]) @ poses[k]
            by_b = None if b is None else new[b] @ se3.inverse(poses[b]) @ poses[k]
            if by_a is not None and by_b is not None:
                out[k] = se3.interpolate(by_a, by_b, (k - begin) / (end - begin))
            elif by_a is not None or by_b is not None:
                out[k] = by_a if by_a is not None else by_b
    return out


def refine(mapped: Any, store: CloudStore, threads: int, progress: Callable[[float], None]) -> None:
    """Moves the poses of all drives."""
    scans = store.scans()
    even, odd = set(scans[::2]), set(scans[1::2])
    for number, (moved, fixed) in enumerate(((odd, even), (even, odd))):
        new = {k: mapped.poses[k] for k in scans}
        new.update(_half(mapped.submaps, moved, fixed, store, mapped.poses, threads, lambda part, n=number: progress((n + part) / 2)))
        for first, one in zip(mapped.firsts, mapped.trajectories):
            mapped.poses = spread(mapped.poses, new, first, first + len(one.stamps_ns))
