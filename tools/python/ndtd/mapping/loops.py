"""Loops: places that a drive, or another drive, has seen before.

A candidate is a pair of submaps that may overlap: by the drift that odometry can have had, or of two drives. Three views of the later
submap are aligned with the earlier one, from where the estimate puts them and, if that fails, from where the search finds the middle
one. A loop is accepted only if at least two views fit nearly as well as in their own submap and agree with each other as odometry
says. Each brings the covariance of its alignment: along a corridor it says little.
"""
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import numpy as np

from . import se3
from .graph import Edges, information_root
from .submaps import Submap, SubmapMaps, queries

NEAR_DRIFT, FAR_DRIFT, FAR_LEAST_M = 0.05, 0.15, 10.0  # parts of the way since; the search looks farther than the alignment
LEAST_FIT = 0.6  # of that in the own submap, which the view is part of; wrong places reach 0.4
LEAST_VIEWS, AGREE_M, AGREE_PART, AGREE_RAD = 2, 0.2, 0.03, np.deg2rad(2)
LOOP_M, LOOP_RAD = 0.03, np.deg2rad(0.17)  # deviations besides those of the alignment
PAIRS_PER_SUBMAP, SEARCHES_PER_SUBMAP, PLACES = 6, 3, 3
YAWS_RAD = np.deg2rad([0, 10, -10, 20, -20])
STEPS_M = ((1.5, 0, 0), (-1.5, 0, 0), (0, 1.5, 0), (0, -1.5, 0))


@dataclass
class Loop:
    """A view that fits an earlier submap."""

    pair: "tuple[int, int]"  # numbers of the earlier and the later submap
    begin: int  # node: the center of the earlier submap
    end: int  # node: the view
    T: np.ndarray  # T_begin_end
    covariance: np.ndarray
    fit: float  # part of that in its own submap
    searched: bool


@dataclass
class Closing:
    """Progress of the search for loops."""

    round: int = 0
    later: int = 0  # the submap that is compared next with earlier ones
    tried: "set[tuple[int, int]]" = field(default_factory=set)  # pairs that were compared, of all rounds
    found: "list[Loop]" = field(default_factory=list)  # in this round

    def next_round(self) -> None:
        """Begins anew with the submaps."""
        self.round, self.later, self.found = self.round + 1, 0, []


def _fit(result: Any) -> float:
    if result.outcome not in ("converged", "iteration_limit"):
        return 0.0
    return float(result.scores.nvtl_normalized * result.scores.match_ratio)


def _guesses(guess: np.ndarray) -> "list[np.ndarray]":
    out = [guess @ se3.exp(np.array([0, 0, 0, 0, 0, yaw])) for yaw in YAWS_RAD]
    for step in STEPS_M:
        moved = np.eye(4)
        moved[:3, 3] = step
        out.append(guess @ moved)
    return out


class LoopFinder:
    """Verifies candidates; keeps how well each view fits its own submap."""

    def __init__(self, maps: SubmapMaps, submaps: "list[Submap]", odometry: np.ndarray):
        self._maps, self._submaps, self._odometry = maps, submaps, odometry
        self._views: "dict[int, list[tuple[int, np.ndarray, float]]]" = {}

    def _views_of(self, number: int) -> "list[tuple[int, np.ndarray, float]]":
        """Node, points and usual fit of the views of a submap."""
        if number not in self._views:
            submap, found = self._submaps[number], []
            aligner = self._maps.aligner(number)
            for node, scans in queries(submap):
                points = self._maps.view(node, scans)
                own = aligner.align(points, se3.inverse(self._odometry[submap.center]) @ self._odometry[node])
                if _fit(own) > 0:
                    found.append((node, points, _fit(own)))
            self._views = {number: found}  # one at a time: candidates of a submap come in a row
        return self._views[number]

    def verify(self, earlier: int, later: int, guess: np.ndarray, searched: bool) -> "list[Loop]":
        """The views that fit and agree; guess: of the center of the later submap in the earlier one."""
        aligner, center = self._maps.aligner(earlier), self._submaps[later].center
        found = []
        for node, points, usual in self._views_of(later):
            T_center_node = se3.inverse(self._odometry[center]) @ self._odometry[node]
            results = aligner.align_batch(points, _guesses(guess @ T_center_node) if not searched else [guess @ T_center_node])
            best = max(results, key=_fit)
            if _fit(best) >= LEAST_FIT * usual and best.covariance is not None:
                covariance = _right_covariance(best.pose, best.covariance)
                found.append(Loop((earlier, later), self._submaps[earlier].center, node, best.pose, covariance, _fit(best) / usual, searched))
        return self._agreeing(found)

    def _agreeing(self, found: "list[Loop]") -> "list[Loop]":
        """Loops that agree with another one about the motion between the two."""
        kept = []
        for loop in found:
            others = [other for other in found if other is not loop and self._agree(loop, other)]
            if len(others) + 1 >= LEAST_VIEWS:
                kept.append(loop)
        return kept

    def _agree(self, a: Loop, b: Loop) -> bool:
        moved = se3.inverse(self._odometry[a.end]) @ self._odometry[b.end]
        off = se3.inverse(moved) @ se3.inverse(a.T) @ b.T
        limit_m = AGREE_M + AGREE_PART * float(np.linalg.norm(moved[:3, 3]))
        return bool(np.linalg.norm(off[:3, 3]) <= limit_m and se3.angle_rad(off) <= AGREE_RAD)

    def search(self, earlier: int, later: int) -> "list[Loop]":
        """Verifies loops from the places that a search in the earlier submap finds for the middle view."""
        views = self._views_of(later)
        if not views:
            return []
        node, points, _ = views[len(views) // 2]
        T_node_center = se3.inverse(self._odometry[node]) @ self._odometry[self._submaps[later].center]
        up = self._odometry[node][2, :3]
        for place in self._maps.search(earlier).run(points, up=up)[:PLACES]:
            found = self.verify(earlier, later, place.pose @ T_node_center, True)
            if found:
                return found
        return []


def _right_covariance(pose: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Covariance of the right error from one in map axes, plus the deviations that an alignment does not tell."""
    turn = np.zeros((6, 6))
    turn[:3, :3] = turn[3:, 3:] = pose[:3, :3].T
    out: np.ndarray = turn @ covariance @ turn.T + np.diag([LOOP_M ** 2] * 3 + [LOOP_RAD ** 2] * 3)
    return out


def _drift_m(part: float, a: Submap, b: Submap) -> float:
    return (a.length_m + b.length_m) / 4 + part * abs(b.path_m - a.path_m)


def _candidates(submaps: "list[Submap]", estimate: np.ndarray, later: int, tried: "set[tuple[int, int]]", most: int) -> "list[tuple[int, bool]]":
    """At most so many earlier submaps, the nearest first, and whether the estimate is near enough for an alignment."""
    to, found = submaps[later], []
    at = estimate[to.center][:3, 3]
    for number, submap in enumerate(submaps[:later]):
        if (number, later) in tried or (submap.drive == to.drive and later - number < 2):
            continue
        away_m = float(np.linalg.norm(estimate[submap.center][:3, 3] - at))
        if submap.drive != to.drive:
            found.append((away_m, number, away_m <= NEAR_DRIFT * to.path_m + (submap.length_m + to.length_m) / 4))
        elif away_m <= max(_drift_m(FAR_DRIFT, submap, to), FAR_LEAST_M):
            found.append((away_m, number, away_m <= _drift_m(NEAR_DRIFT, submap, to)))
    found.sort()
    return [(number, is_near) for _, number, is_near in found[:max(most, 0)]]


def find(finder: LoopFinder, submaps: "list[Submap]", estimate: np.ndarray, known: "list[Loop]", closing: Closing,
         progress: Callable[[float], None]) -> None:
    """New loops of all submaps with earlier ones, into `closing`, beside those that are known; progress is called after each submap.

    A submap is compared with at most PAIRS_PER_SUBMAP earlier ones at once, less those that hold it already; of a later drive, those of
    other drives."""
    held = Counter(later for earlier, later in {loop.pair for loop in known}
                   if submaps[later].drive == 0 or submaps[earlier].drive != submaps[later].drive)
    while closing.later < len(submaps):
        later, searches = closing.later, 0
        for earlier, is_near in _candidates(submaps, estimate, later, closing.tried, PAIRS_PER_SUBMAP - held[later]):
            guess = se3.inverse(estimate[submaps[earlier].center]) @ estimate[submaps[later].center]
            found = finder.verify(earlier, later, guess, False) if is_near else []
            if not found and searches < SEARCHES_PER_SUBMAP:
                searches += 1
                found = finder.search(earlier, later)
            closing.tried.add((earlier, later))
            closing.found += found
        closing.later += 1
        progress(closing.later / len(submaps))


def edges(loops: "list[Loop]") -> Optional[Edges]:
    """Loops as factors of the graph; None: there are none."""
    if not loops:
        return None
    return Edges(np.array([loop.begin for loop in loops]), np.array([loop.end for loop in loops]), np.array([loop.T for loop in loops]),
                 information_root(np.array([loop.covariance for loop in loops])), robust=True)
