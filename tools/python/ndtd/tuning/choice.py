"""What trials of the same scans show: is one setting better than another, by more than chance and by an amount that matters."""
from dataclasses import dataclass

import numpy as np

from ..report import paired
from .trial import Trial

LEAST_GAIN = 0.02  # of the median: less is not worth a setting of one's own
MARGIN_LOST = 0.005  # of the scans
LEAST_PART = 100  # scans: of fewer, neighbours that are correlated leave too little to tell chance by


@dataclass
class Judgement:
    """Another setting beside the first one, over some scans."""

    scans: int
    lost: "tuple[int, int]"  # scans without a trusted pose
    wrong: "tuple[int, int]"
    median_m: "tuple[float, float]"  # of the measure; NaN: too few scans have it
    p95_m: "tuple[float, float]"
    low_m: float  # interval of the difference of the medians, second minus first, 95 %
    high_m: float
    p: float  # that there is none; 1: it cannot be told
    p_lost: float  # likewise of the part of the scans that are lost
    align_ms: "tuple[float, float]"  # median
    align_p95_ms: "tuple[float, float]"

    @property
    def is_harmed(self) -> bool:
        """Whether it loses scans, or is wrong where the first is not."""
        return self.lost[1] - self.lost[0] > MARGIN_LOST * self.scans or self.wrong[1] > self.wrong[0]

    @property
    def gain(self) -> float:
        """Part by which the median is lower."""
        return 0.0 if np.isnan(self.p95_m[0]) else 1.0 - self.median_m[1] / max(self.median_m[0], 1e-12)

    def saves(self, p_lost: float) -> bool:
        """Whether it loses fewer scans, and is not less exact. p_lost: for the number of settings that were tried."""
        is_as_exact = np.isnan(self.high_m) or self.high_m <= LEAST_GAIN * self.median_m[0]
        return not self.is_harmed and p_lost < 0.05 and self.lost[0] - self.lost[1] > MARGIN_LOST * self.scans and bool(is_as_exact)

    def is_better(self, p: float, p_lost: float) -> bool:
        """Whether it is to be preferred: it loses fewer scans, or is more exact."""
        return self.saves(p_lost) or (not self.is_harmed and p < 0.05 and self.gain > LEAST_GAIN)


def joined(trials: "list[Trial]", parts: "list[np.ndarray]") -> Trial:
    """Those scans of each trial that its part selects, one after the other."""
    return Trial(*(np.concatenate([getattr(one, name)[part] for one, part in zip(trials, parts)]) for name in Trial.__dataclass_fields__))


def _tested(one: np.ndarray, other: np.ndarray, statistic: str) -> "tuple[paired.Difference, float]":
    """The difference, and its p; 1 where the correlation of the scans is longer than they allow to draw."""
    blocks = paired.choose_blocks(one, other, other - one)
    found = paired.differences(one, other, blocks, {statistic: paired.STATISTICS[statistic]})[statistic]
    return found, 1.0 if blocks.is_short else found.p


def compare(first: Trial, second: Trial, measure: str) -> Judgement:
    """Judges two trials of the same scans by error_m or motion_m."""
    lost, wrong = (tuple(int(np.sum(getattr(t, name))) for t in (first, second)) for name in ("lost", "wrong"))
    p_lost = _tested(first.lost.astype(float), second.lost.astype(float), "mean")[1]
    align, align_p95 = (tuple(float(np.percentile(t.align_ms, q)) for t in (first, second)) for q in (50, 95))
    use = np.isfinite(getattr(first, measure)) & np.isfinite(getattr(second, measure))
    one, other = getattr(first, measure)[use], getattr(second, measure)[use]
    nothing = (np.nan, np.nan)
    if len(one) < LEAST_PART // 2:
        return Judgement(len(first.lost), lost, wrong, nothing, nothing, np.nan, np.nan, 1.0, p_lost, align, align_p95)
    median, p = _tested(one, other, "median")
    p95 = tuple(float(np.percentile(values, 95)) for values in (one, other))
    return Judgement(len(first.lost), lost, wrong, (median.first, median.second), p95, median.low, median.high, p, p_lost, align, align_p95)
