"""align, align_batch and localize: Aligner and Search for those who have one scan."""
from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Sequence

from ._core import Aligner, Candidate, Map, Result, Search

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import TypedDict, Unpack

    class Options(TypedDict, total=False):
        """Options of Aligner."""

        backend: str
        threads: int
        max_points: int
        levels: Sequence[float]
        neighbours: str
        variant: str
        max_iterations: int
        score_threshold: float
        min_match_ratio: float


_KEPT = 4  # per thread: each has threads and buffers of its own
_local = threading.local()
_before_fork: list[threading.local] = []


def _forget() -> None:
    """Forgets aligners in the child of a fork: those of the parent are not freed, because their threads are gone."""
    global _local
    _before_fork.append(_local)
    _local = threading.local()


os.register_at_fork(after_in_child=_forget)


def _kept(kind: Any, target: Map, options: Any) -> Any:
    """The object of this kind, map and options that was used last, or a new one."""
    if not isinstance(target, Map):
        raise TypeError(f"map: an ndtd.Map is wanted, not {type(target).__name__}")
    kept = _local.__dict__.setdefault(kind.__name__, OrderedDict())
    key = (target.id, repr(options) if options else None)
    if key not in kept:
        kept[key] = kind(target, **options)
        if len(kept) > _KEPT:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key]


def align(map: Map, points: ArrayLike, guess: ArrayLike | None = None, *, prior: tuple[ArrayLike, ArrayLike] | None = None,
          deadline_s: float = 0.0, **options: Unpack[Options]) -> Result:
    """Aligns a scan with a map: see Aligner.align; options: those of Aligner.

    points: (N, 3) or wider, float32 or float64, sensor frame [m]. guess: T_map_sensor, (4, 4) or x y z qx qy qz qw.
    ValueError and TypeError name the argument, what is wrong and the limit.

    The aligner is kept for the next call with the same map and options (four per thread).
    """
    found: Result = _kept(Aligner, map, options).align(points, guess, prior=prior, deadline_s=deadline_s)
    return found


def align_batch(map: Map, points: ArrayLike | Sequence[ArrayLike], guesses: Any, *, deadline_s: float = 0.0,
                **options: Unpack[Options]) -> list[Result]:
    """Aligns one scan from many guesses, or many scans: see Aligner.align_batch; options: those of Aligner.

    points: (N, 3), or a list with an array for each guess. guesses: K poses, each (4, 4) or x y z qx qy qz qw.
    """
    found: list[Result] = _kept(Aligner, map, options).align_batch(points, guesses, deadline_s=deadline_s)
    return found


def localize(map: Map, points: ArrayLike, *, up: ArrayLike | None = None, near_m: ArrayLike | None = None,
             radius_m: float = 100.0, threads: int = 0) -> list[Candidate]:
    """Finds where a scan was taken, without a guess: candidates, best first; see Search.run."""
    found: list[Candidate] = _kept(Search, map, {"threads": threads}).run(points, up=up, near_m=near_m, radius_m=radius_m)
    return found
