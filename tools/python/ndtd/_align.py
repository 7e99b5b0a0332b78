"""align, align_batch and localize: Aligner and Search for those who have one scan."""
import threading
from collections import OrderedDict

from ._core import Aligner, Search

_KEPT = 4  # per thread: each has threads and buffers of its own
_local = threading.local()


def _kept(kind, target, options):
    """The object of this kind, map and options that was used last, or a new one."""
    kept = _local.__dict__.setdefault(kind.__name__, OrderedDict())
    key = (target.id, tuple(sorted((name, repr(value)) for name, value in options.items())))
    if key not in kept:
        kept[key] = kind(target, **options)
        if len(kept) > _KEPT:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key]


def align(map, points, guess=None, *, prior=None, deadline_s=0.0, **options):
    """Aligns a scan with a map: see Aligner.align; options: those of Aligner.

    The aligner is kept for the next call with the same map and options (four per thread).
    """
    return _kept(Aligner, map, options).align(points, guess, prior=prior, deadline_s=deadline_s)


def align_batch(map, points, guesses, *, deadline_s=0.0, **options):
    """Aligns one scan from many guesses, or many scans: see Aligner.align_batch; options: those of Aligner."""
    return _kept(Aligner, map, options).align_batch(points, guesses, deadline_s=deadline_s)


def localize(map, points, *, up=None, near_m=None, radius_m=100.0, threads=0):
    """Where was this scan taken? Candidates, best first, without a guess: see Search.run."""
    return _kept(Search, map, {"threads": threads}).run(points, up=up, near_m=near_m, radius_m=radius_m)
