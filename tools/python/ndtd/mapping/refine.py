"""Refinement: scans are aligned with the map of other scans, later ones too, and all that is known about the poses is weighed at once.

Odometry aligns a scan with earlier scans alone. Here half of the scans are aligned with the map of the other half, and the other way
round. What an alignment says is about a scan and the scans that the map around it is made of: edges from these to it, beside the odometry
from scan to scan, loops and positions, in one pose graph. Nothing is held but by what was measured, so that long waves of the map are
free to move only as loops, positions and odometry let them. Every tenth scan is held out: it is in no map that others are aligned with,
and in no edge. A round counts if their points, aligned, lie nearer to the surfaces of the map of the others than before; the first that
does not is the last. (How well they fit says nothing: thick surfaces fit as well.)
"""
from dataclasses import dataclass
from typing import Any, Callable, Optional

import numpy as np

from .._core import Aligner, Map, preprocess
from . import graph, quality, se3
from .cloud_store import CloudStore, thin
from .submaps import QUERY_VOXEL_M, SUBMAP_VOXEL_M, Submap

MOST_M, MOST_RAD = 0.3, np.deg2rad(2)  # that an alignment moves a scan: farther away it fits something else
POINTS, LEVELS_M = 3000, (2.0, 1.0)
REACH_PART, LEAST_REACH_M, MOST_CLOUDS = 1.6, 15.0, 60  # of the map around a submap
LEAST_FIT = 0.7  # of the median: others say nothing
HELD_OUT = 10  # one scan in so many
NEIGHBOURS = 6  # scans that an alignment ties a scan to
FLOOR_M, FLOOR_RAD = 0.01, np.deg2rad(0.05)  # of the deviation of an alignment, beside its covariance
MOST_ROUNDS, LEAST_GAIN = 8, 0.01  # part by which the scans held out have to come nearer
EDGE_KERNELS = (3.0, 1.0)
THIN_M = 0.1  # of points whose thickness is measured


@dataclass
class Refinement:
    """What the rounds have done."""

    held_out_m: "list[float]"  # mean over the scans held out: before, and after each round that was tried
    rounds: int  # that count
    before_m: float  # median thickness of surfaces; nan: there is none
    after_m: float


@dataclass
class Aligned:
    """An alignment of a scan with the map of others."""

    T: np.ndarray  # in the map
    covariance: np.ndarray
    fit: float
    off_m: float  # median distance of its points from surfaces; nan: none is in a cell with one
    clouds: "list[int]"  # scans that the map was made of


def _around(submaps: "list[Submap]", number: int, poses: np.ndarray, wanted: "set[int]") -> "list[int]":
    """Wanted scans in this submap and those near it, at most MOST_CLOUDS, evenly chosen."""
    here = submaps[number]
    at = poses[here.center][:3, 3]
    reach_m = max(REACH_PART * here.length_m, LEAST_REACH_M)
    found = [k for one in submaps if np.linalg.norm(poses[one.center][:3, 3] - at) <= reach_m for k in one.scans if k in wanted]
    chosen = np.unique(np.linspace(0, len(found) - 1, min(len(found), MOST_CLOUDS)).round().astype(int)) if found else []
    return [found[place] for place in chosen]


class Refiner:
    """Aligns scans with maps of others, submap by submap."""

    def __init__(self, submaps: "list[Submap]", store: CloudStore, threads: int):
        self._submaps, self._store, self._threads = submaps, store, threads

    def _target(self, number: int, poses: np.ndarray, fixed: "set[int]") -> "tuple[Aligner, quality.Surfaces, list[int]]":
        """The map of the fixed scans around a submap, in the frame of its center."""
        clouds = _around(self._submaps, number, poses, fixed)
        T_center = se3.inverse(poses[self._submaps[number].center])
        points = thin(np.concatenate([se3.apply(T_center @ poses[k], self._store[k]) for k in clouds]), SUBMAP_VOXEL_M)
        target = Map(points, levels=LEVELS_M, threads=self._threads)
        return Aligner(target, backend="cpu", threads=self._threads, score_threshold=0.0), quality.Surfaces(points.astype(np.float64)), clouds

    def thickness_m(self, poses: np.ndarray) -> float:
        """Median thickness of the surfaces of all submaps, each with the points of its own scans; nan: there is none."""
        found = []
        for one in self._submaps:
            T_center = se3.inverse(poses[one.center])
            clouds = [se3.apply(T_center @ poses[k], self._store[k]) for k in one.scans if k in self._store]
            if clouds:
                found.append(quality.thickness_m(thin(np.concatenate(clouds), THIN_M).astype(np.float64)))
        thick = np.concatenate(found) if found else np.empty(0)
        return float(np.median(thick)) if len(thick) else float("nan")

    def align(self, poses: np.ndarray, moved: "set[int]", fixed: "set[int]", progress: Callable[[float], None]) -> "dict[int, Aligned]":
        """Alignments of the scans `moved` with the map of the scans `fixed`."""
        found: "dict[int, Aligned]" = {}
        for number, submap in enumerate(self._submaps):
            scans = [k for k in submap.scans if k in moved]
            if scans and _around(self._submaps, number, poses, fixed):
                aligner, surfaces, clouds = self._target(number, poses, fixed)
                for k in scans:
                    one = self._align_one(aligner, surfaces, poses[submap.center], poses[k], k, clouds)
                    if one is not None:
                        found[k] = one
            progress((number + 1) / len(self._submaps))
        return found

    def _align_one(self, aligner: Aligner, surfaces: quality.Surfaces, T_center: np.ndarray, T: np.ndarray, k: int,
                   clouds: "list[int]") -> Optional[Aligned]:
        guess = se3.inverse(T_center) @ T
        points = preprocess(self._store[k], voxel_m=QUERY_VOXEL_M, sample_count=POINTS, min_range_m=0.0)
        result = aligner.align(points, guess)
        step = se3.inverse(guess) @ result.pose
        if not result.converged or result.covariance is None or np.linalg.norm(step[:3, 3]) > MOST_M or se3.angle_rad(step) > MOST_RAD:
            return None
        off_m = surfaces.distances_m(se3.apply(result.pose, self._store[k].astype(np.float64)))
        turn = np.kron(np.eye(2), result.pose[:3, :3].T)  # from the axes of the map to those of the scan
        return Aligned(T_center @ result.pose, turn @ result.covariance @ turn.T, result.scores.nvtl_normalized * result.scores.match_ratio,
                       float(np.median(off_m)) if len(off_m) else float("nan"), clouds)


def _neighbours(k: int, aligned: Aligned, poses: np.ndarray) -> "list[int]":
    """Scans of the map that a scan is tied to: half of them next to it in the order of the scans, half spread over what lies around it."""
    clouds = np.array(aligned.clouds)
    next_to = clouds[np.argsort(np.abs(clouds - k), kind="stable")[:NEIGHBOURS // 2]]
    rest = np.setdiff1d(clouds, next_to)
    rest = rest[np.argsort(np.linalg.norm(poses[rest, :3, 3] - poses[k, :3, 3], axis=1), kind="stable")[:max(len(rest) // 2, 1)]]
    rest = np.sort(rest)
    spread = rest[np.linspace(0, len(rest) - 1, min(len(rest), NEIGHBOURS - len(next_to))).round().astype(int)] if len(rest) else rest
    return [int(one) for one in np.r_[next_to, spread]]


def _edges(found: "dict[int, Aligned]", poses: np.ndarray) -> graph.Edges:
    """What the alignments say, as relative poses."""
    usual = float(np.median([one.fit for one in found.values()])) if found else 0.0
    floor = np.diag([FLOOR_M ** 2] * 3 + [FLOOR_RAD ** 2] * 3)
    begins, ends, T, covariances = [], [], [], []
    for k, one in found.items():
        tied = _neighbours(k, one, poses) if one.fit >= LEAST_FIT * usual else []
        for j in tied:
            begins.append(j)
            ends.append(k)
            T.append(se3.inverse(poses[j]) @ one.T)
            covariances.append(len(tied) * (one.covariance + floor))
    root = graph.information_root(np.array(covariances)) if covariances else np.empty((0, 6, 6))
    return graph.Edges(np.array(begins, int), np.array(ends, int), np.array(T).reshape(-1, 4, 4), root, robust=True)


def _held_out(refiner: Refiner, poses: np.ndarray, held: "set[int]", others: "set[int]", progress: Callable[[float], None]) -> "dict[int, float]":
    """Median distances of the points of scans from the surfaces of the map of others, by scan."""
    return {k: one.off_m for k, one in refiner.align(poses, held, others, progress).items() if np.isfinite(one.off_m)}


def _mean_m(off_m: "dict[int, float]", scans: "set[int]") -> float:
    return float(np.mean([off_m[k] for k in sorted(scans)])) if scans else float("nan")


def refine(mapped: Any, known: "list[graph.Edges]", store: CloudStore, threads: int, progress: Callable[[float], None]) -> Refinement:
    """Moves the poses of all drives, as long as scans held out come nearer to the surfaces. known: the edges of the graph so far."""
    scans = store.scans()
    held = set(scans[HELD_OUT // 2::HELD_OUT])
    used = [k for k in scans if k not in held]
    even, odd = set(used[::2]), set(used[1::2])
    refiner = Refiner(mapped.submaps, store, threads)

    def part_of(step: int) -> Callable[[float], None]:
        return lambda part: progress((step + part) / (1 + 3 * MOST_ROUNDS))

    before = _held_out(refiner, mapped.poses, held, even | odd, part_of(0))
    held_out_m, poses, rounds = [_mean_m(before, set(before))], mapped.poses, 0
    for number in range(MOST_ROUNDS):
        found = refiner.align(poses, odd, even, part_of(1 + 3 * number))
        found.update(refiner.align(poses, even, odd, part_of(2 + 3 * number)))
        moved = graph.solve(poses, [*known, _edges(found, poses)], mapped.positions, EDGE_KERNELS)
        after = _held_out(refiner, moved, held, even | odd, part_of(3 + 3 * number))
        held_out_m.append(_mean_m(after, set(after)))
        both = set(before) & set(after)
        if len(after) < len(before) or not _mean_m(after, both) <= _mean_m(before, both) * (1 - LEAST_GAIN):
            break
        before, poses, rounds = after, moved, rounds + 1
    first_m = refiner.thickness_m(mapped.poses)
    mapped.poses = poses
    return Refinement(held_out_m, rounds, first_m, refiner.thickness_m(poses) if rounds else first_m)
