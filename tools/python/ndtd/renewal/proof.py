"""The proof of an overlay: each recording is replayed in the old map and in the one that the votes of the others make of it.

Harm is what a test of the pairs of scans tells, and what no test is needed for: poses that are lost, and wrong ones.
"""
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from ..report import paired
from .localise import Located

MARGIN_LOST = 0.01  # of the scans that lose their trusted pose
MARGIN_ERROR_M, MARGIN_ERROR_PART = 0.005, 0.1  # by which errors may grow: the larger one
MARGIN_FIT = 0.02  # by which the fit may shrink
WRONG_M = 1.0  # a trusted pose that is farther off
APART_M, APART_SIGMAS, MARGIN_APART = 0.1, 4.0, 0.02  # poses in both maps, and the part of the scans that may be farther apart
STATISTICS = {"median": paired.STATISTICS["median"], "mean": paired.mean_of, "p95": paired.STATISTICS["p95"]}


@dataclass
class Proof:
    """Comparison of a recording, or of a part of one, in both maps."""

    name: str
    scans: int
    lost_before: int  # scans without a trusted pose
    lost_after: int
    measure: str  # error, or fit
    before: "dict[str, float]"  # statistic: value; empty: too few scans
    after: "dict[str, float]"
    apart_m: float  # between the poses in both maps, 95 %
    harm: str  # why the overlay is refused; empty: it is not
    truth_off_m: float = 0.0  # of a ground truth that is not used, since it is not that of this map; 0: there is none

    def about(self) -> "dict[str, Any]":
        """The comparison for overlay.json."""
        def rounded(values: "dict[str, float]") -> "dict[str, float]":
            return {name: round(value, 5) for name, value in values.items()}
        return {"recording": self.name, "scans": self.scans, "lost_before": self.lost_before, "lost_after": self.lost_after,
                "measure": self.measure, "before": rounded(self.before), "after": rounded(self.after), "apart_m": round(self.apart_m, 4), "truth_off_m": round(self.truth_off_m, 3)}


def _tested(before: np.ndarray, after: np.ndarray, is_error: bool) -> "tuple[dict[str, paired.Difference], str]":
    """Differences of two series of the same scans, and what got worse by more than the margin, as a test tells."""
    if len(before) < paired.FEWEST_PAIRS:
        return {}, ""
    found = paired.differences(before, after, paired.choose_blocks(before, after), STATISTICS)
    p_holm = paired.holm([one.p for one in found.values()])
    for (name, one), p in zip(found.items(), p_holm):
        margin = max(MARGIN_ERROR_M, MARGIN_ERROR_PART * one.first) if is_error else MARGIN_FIT
        worse = one.difference if is_error else -one.difference
        if worse > margin and (p < 0.05 or name == "median"):
            shown = f"{100 * one.first:.1f} to {100 * one.second:.1f} cm" if is_error else f"{one.first:.3f} to {one.second:.3f}"
            return found, f"the {name} {'error' if is_error else 'fit'} goes from {shown}"
    return found, ""


def _far_apart(before: Located, after: Located, both: np.ndarray) -> "tuple[float, float]":
    """Distance of the poses in both maps [m], 95 %, and the part of the scans whose poses are farther apart than their deviations allow."""
    if not both.any():
        return 0.0, 0.0
    apart_m = np.linalg.norm(before.position_m[both] - after.position_m[both], axis=1)
    sigma_m = np.hypot(np.nan_to_num(before.deviation_m[both]), np.nan_to_num(after.deviation_m[both]))
    return float(np.percentile(apart_m, 95)), float(np.mean(apart_m > np.maximum(APART_M, APART_SIGMAS * sigma_m)))


def compare(name: str, before: Located, after: Located, begin: int = 0, end: Optional[int] = None) -> Proof:
    """Judges the scans [begin, end) of a recording that was replayed in both maps."""
    part = np.zeros(len(before.stamps_ns), bool)
    part[begin:end] = True
    count = int(part.sum())
    lost = [int((part & ~one.trusted).sum()) for one in (before, after)]
    both = part & before.trusted & after.trusted
    errors_m = before.error_m[both & np.isfinite(before.error_m)]
    # Truth of the frame of another map says nothing about the poses: a part of its distances would be a margin of metres.
    other_frame_m = float(np.median(errors_m)) if len(errors_m) and np.median(errors_m) > WRONG_M else 0.0
    has_truth = bool(len(errors_m)) and not other_frame_m
    use = both & np.isfinite(before.fit) & np.isfinite(after.fit)
    tested, harm = _tested(before.fit[use], after.fit[use], False)
    if has_truth:
        use = both & np.isfinite(before.error_m) & np.isfinite(after.error_m)
        tested, more = _tested(before.error_m[use], after.error_m[use], True)
        harm = more or harm
    wrong = [int((part & (one.error_m > WRONG_M)).sum()) for one in (before, after)]
    apart_m, far_part = _far_apart(before, after, both & before.verified & after.converged)
    if lost[1] - lost[0] > MARGIN_LOST * count:
        harm = f"{lost[1]} of {count} scans have no trusted pose, {lost[0]} in the old map"
    elif wrong[1] > wrong[0]:
        harm = f"{wrong[1]} trusted poses are off by more than {WRONG_M:g} m, {wrong[0]} in the old map"
    elif far_part > MARGIN_APART and not has_truth:
        harm = f"{far_part:.0%} of the poses are not where the old map has them, by up to {apart_m:.2f} m (95 %)"
    if harm:
        k = _worst(before, after, part, has_truth)
        x, y, z = before.position_m[k] if np.isfinite(before.position_m[k]).all() else after.position_m[k]
        harm += f"; most at scan {k}, x {x:.1f} y {y:.1f} z {z:.1f}"
    return Proof(name, count, lost[0], lost[1], "error_m" if has_truth else "fit", {key: one.first for key, one in tested.items()},
                 {key: one.second for key, one in tested.items()}, apart_m, harm, other_frame_m)


def _worst(before: Located, after: Located, part: np.ndarray, has_truth: bool) -> int:
    """The scan that got worse most: the first one that was lost, else by what is measured."""
    lost = np.flatnonzero(part & before.trusted & ~after.trusted)
    if len(lost):
        return int(lost[0])
    worse = np.where(part, after.error_m - before.error_m if has_truth else before.fit - after.fit, -np.inf)
    return int(np.argmax(np.nan_to_num(worse, nan=-np.inf)))
