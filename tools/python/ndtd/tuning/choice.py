"""What trials of the same scans show: is one setting better than another, by more than chance and by an amount that matters."""
from dataclasses import dataclass

import numpy as np

from ..report import paired
from .trial import Trial

LEAST_GAIN = 0.02  # of the median: less is not worth a setting of one's own
MARGIN_LOST = 0.005  # of the scans


@dataclass
class Judgement:
    """Another setting beside the first one, over some scans."""

    scans: int
    lost: "tuple[int, int]"  # scans without a trusted pose
    wrong: "tuple[int, int]"
    measure: str  # error_m or motion_m; empty: too few scans have either
    median_m: "tuple[float, float]"
    p95_m: "tuple[float, float]"
    low_m: float  # interval of the difference of the medians, second minus first, 95 %
    high_m: float
    p: float  # that there is none
    align_ms: "tuple[float, float]"  # median
    align_p95_ms: "tuple[float, float]"

    @property
    def is_harmed(self) -> bool:
        """Whether it loses scans, or is wrong where the first is not."""
        return self.lost[1] - self.lost[0] > MARGIN_LOST * self.scans or self.wrong[1] > self.wrong[0]

    def is_better(self, p: float) -> bool:
        """Whether it is to be preferred, p: for the number of settings that were tried."""
        if self.is_harmed:
            return False
        if self.lost[0] - self.lost[1] > MARGIN_LOST * self.scans:
            return not self.measure or self.low_m <= LEAST_GAIN * self.median_m[0]
        return bool(self.measure) and p < 0.05 and self.median_m[0] - self.median_m[1] > LEAST_GAIN * self.median_m[0]


def joined(trials: "list[Trial]", parts: "list[np.ndarray]") -> Trial:
    """Those scans of each trial that its part selects, one after the other."""
    return Trial(*(np.concatenate([getattr(one, name)[part] for one, part in zip(trials, parts)]) for name in Trial.__dataclass_fields__))


def compare(first: Trial, second: Trial) -> Judgement:
    """Judges two trials of the same scans; by the truth where the recordings have it, else by the motion."""
    measure, one, other = "", np.empty(0), np.empty(0)
    for name in ("error_m", "motion_m"):
        use = np.isfinite(getattr(first, name)) & np.isfinite(getattr(second, name))
        if use.sum() >= paired.FEWEST_PAIRS:
            measure, one, other = name, getattr(first, name)[use], getattr(second, name)[use]
            break
    counts = tuple((int((~t.trusted).sum()), int(t.wrong.sum())) for t in (first, second))
    costs_ms = tuple(tuple(float(np.percentile(t.align_ms, q)) for t in (first, second)) for q in (50, 95))
    lost, wrong = (counts[0][0], counts[1][0]), (counts[0][1], counts[1][1])
    if not measure:
        nothing = (float("nan"), float("nan"))
        return Judgement(len(first.trusted), lost, wrong, "", nothing, nothing, float("nan"), float("nan"), 1.0, *costs_ms)
    found = paired.differences(one, other, paired.choose_blocks(one, other))
    median, p95 = found["median"], found["p95"]
    return Judgement(len(first.trusted), lost, wrong, measure, (median.first, median.second), (p95.first, p95.second), median.low, median.high,
                     median.p, *costs_ms)
