"""align and align_batch: Aligner for those who have one scan."""
import threading
from collections import OrderedDict

from ._core import Aligner

_KEPT = 4  # aligners per thread: each has a backend with its threads
_local = threading.local()


def _aligner(target, options):
    kept = _local.__dict__.setdefault("aligners", OrderedDict())
    key = (target.id, tuple(sorted((name, repr(value)) for name, value in options.items())))
    if key not in kept:
        kept[key] = Aligner(target, **options)
        if len(kept) > _KEPT:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key]


def align(map, points, guess=None, *, prior=None, deadline_s=0.0, **options):
    """Aligns a scan with a map: see Aligner.align; options: those of Aligner.

    The aligner is kept for the next call with the same map and options (four per thread).
    """
    return _aligner(map, options).align(points, guess, prior=prior, deadline_s=deadline_s)


def align_batch(map, points, guesses, *, deadline_s=0.0, **options):
    """Aligns one scan from many guesses, or many scans: see Aligner.align_batch; options: those of Aligner."""
    return _aligner(map, options).align_batch(points, guesses, deadline_s=deadline_s)
