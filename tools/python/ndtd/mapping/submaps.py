"""Parts of the way whose points are joined rigidly, as their odometry has them: what loops are looked for in."""
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core import Aligner, Map, Search, preprocess
from . import se3
from .cloud_store import CloudStore, thin

SLOW_MPS, SHORT_M, LONG_M = 3.0, 8.0, 25.0  # a person or a car, and the way of a submap of theirs
SUBMAP_VOXEL_M, QUERY_VOXEL_M, QUERY_POINTS = 0.2, 0.5, 3000
QUERY_CLOUDS = 9  # joined to one query
KEPT = 12  # submaps whose maps are in memory


@dataclass
class Submap:
    """Consecutive scans of one segment of one drive; points in the frame of the base at `center`."""

    drive: int
    scans: "list[int]"  # nodes that have points
    center: int  # node
    path_m: float  # way of the drive until the center
    length_m: float


def split(drive: int, first: int, trajectory: Any, store: CloudStore) -> "list[Submap]":
    """The submaps of a drive whose nodes begin at `first`."""
    path_m = trajectory.path_m
    spent_s = (trajectory.stamps_ns[-1] - trajectory.stamps_ns[0]) * 1e-9
    length_m = SHORT_M if path_m[-1] < SLOW_MPS * max(spent_s, 1e-3) else LONG_M
    out: "list[Submap]" = []
    scans: "list[int]" = []
    for k in range(len(trajectory.stamps_ns)):
        if first + k not in store:
            continue
        is_apart = scans and (path_m[k] - path_m[scans[0] - first] > length_m or
                              trajectory.segment[k] != trajectory.segment[scans[0] - first])
        if is_apart:
            out.append(_submap(drive, scans, first, path_m))
            scans = []
        scans.append(first + k)
    if scans:
        out.append(_submap(drive, scans, first, path_m))
    return out


def _submap(drive: int, scans: "list[int]", first: int, path_m: np.ndarray) -> Submap:
    center = scans[len(scans) // 2]
    return Submap(drive, scans, center, float(path_m[center - first]), float(path_m[scans[-1] - first] - path_m[scans[0] - first]))


def join(store: CloudStore, odometry: np.ndarray, scans: "list[int]", center: int) -> np.ndarray:
    """The points of scans in the frame of the base at `center`."""
    T_center = se3.inverse(odometry[center])
    return np.concatenate([se3.apply(T_center @ odometry[k], store[k]) for k in scans])


def queries(submap: Submap) -> "list[tuple[int, list[int]]]":
    """Three nodes of a submap, each with the scans around it that are joined to one view."""
    count = len(submap.scans)
    out = []
    for at in sorted({count // 6, count // 2, count - 1 - count // 6}):
        begin = max(0, min(at - QUERY_CLOUDS // 2, count - QUERY_CLOUDS))
        out.append((submap.scans[at], submap.scans[begin:begin + QUERY_CLOUDS]))
    return out


class SubmapMaps:
    """Aligners and searches of submaps, those used last in memory."""

    def __init__(self, store: CloudStore, odometry: np.ndarray, submaps: "list[Submap]", threads: int):
        self._store, self._odometry, self._submaps, self._threads = store, odometry, submaps, threads
        self._maps: "OrderedDict[int, tuple[Map, Aligner]]" = OrderedDict()
        self._searches: "OrderedDict[int, Search]" = OrderedDict()

    def aligner(self, number: int) -> Aligner:
        """Aligner for scans in the submap."""
        return self._map(number)[1]

    def search(self, number: int) -> Search:
        """Search for scans anywhere in the submap."""
        if number not in self._searches:
            self._searches[number] = Search(self._map(number)[0], threads=self._threads)
        return _keep_last(self._searches, number)

    def _map(self, number: int) -> "tuple[Map, Aligner]":
        if number not in self._maps:
            submap = self._submaps[number]
            points = thin(join(self._store, self._odometry, submap.scans, submap.center), SUBMAP_VOXEL_M)
            target = Map(points, threads=self._threads)
            self._maps[number] = (target, Aligner(target, backend="cpu", threads=self._threads, score_threshold=0.0))
        kept: "tuple[Map, Aligner]" = _keep_last(self._maps, number)
        return kept

    def view(self, node: int, scans: "list[int]") -> np.ndarray:
        """A query: the points of several scans, thinned for an alignment, in the frame of the base at `node`."""
        points = join(self._store, self._odometry, scans, node)
        thinned: np.ndarray = preprocess(points, voxel_m=QUERY_VOXEL_M, sample_count=QUERY_POINTS, min_range_m=0.0)
        return thinned


def _keep_last(kept: "OrderedDict[int, Any]", number: int) -> Any:
    kept.move_to_end(number)
    while len(kept) > KEPT:
        kept.popitem(last=False)
    return kept[number]
