"""Poses that somebody else has found, in place of odometry and loops."""
from pathlib import Path
from typing import Any

import numpy as np

from .. import poses
from . import se3
from .drive import MappingError

MOST_GAP_S = 0.5  # between poses that are interpolated


def read_tum(path: Any) -> "tuple[np.ndarray, np.ndarray]":
    """Stamps [ns] and (N, 4, 4), ascending."""
    stamps, matrices = [], []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            whole, _, part = words[0].partition(".")
            stamps.append(int(whole) * 10**9 + int((part + "0" * 9)[:9]))
            matrices.append(poses.matrix([float(word) for word in words[1:8]]))
        except (ValueError, IndexError):
            raise MappingError(f"{path}: line {number} is not 'seconds x y z qx qy qz qw'") from None
    if len(stamps) < 2:
        raise MappingError(f"{path}: has {len(stamps)} poses; two at least are needed")
    order = np.argsort(stamps, kind="stable")
    return np.array(stamps, np.int64)[order], np.array(matrices)[order]


def at(stamps_ns: np.ndarray, T: np.ndarray, wanted_ns: np.ndarray, path: Any) -> np.ndarray:
    """(M, 4, 4) at other stamps; MappingError where the poses do not reach or are too far apart."""
    out = np.empty((len(wanted_ns), 4, 4))
    for k, stamp_ns in enumerate(wanted_ns):
        after = int(np.searchsorted(stamps_ns, stamp_ns))
        before = min(max(after - 1, 0), len(stamps_ns) - 2)
        gap_ns = stamps_ns[before + 1] - stamps_ns[before]
        s = float(stamp_ns - stamps_ns[before]) / max(float(gap_ns), 1.0)
        outside_s = max(-s, s - 1.0) * float(gap_ns) * 1e-9
        if gap_ns > MOST_GAP_S * 1e9 or outside_s > MOST_GAP_S / 2:
            raise MappingError(f"{path}: has no pose within {MOST_GAP_S} s of the scan at {int(stamp_ns) * 1e-9:.3f} s")
        out[k] = se3.interpolate(T[before], T[before + 1], s)
    return out
