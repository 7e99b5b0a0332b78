"""Statistics of two series that belong together scan by scan, where neighbouring scans are correlated. Needs numpy alone.

Differences are second minus first. Their deviation comes from a moving-block bootstrap of the pairs (Kuensch 1989): whole
blocks of neighbouring scans are drawn, so that the correlation within a block stays. Blocks are twice as long as is best for
the deviation of a mean (Politis and White 2004, corrected in Patton, Politis and White 2009), since intervals want them longer,
and the width follows Student's t with one degree of freedom less than there are blocks: a short drive tells little.
tests/test_report_paired.py measures how often such intervals hold the true difference. All is seeded: equal input, equal output.
"""
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Callable, Optional

import numpy as np

ROUNDS, FEWEST_ROUNDS = 1000, 200  # resamples: they know a deviation to 2 %, or 5 %
MOST_DRAWN = 20_000_000  # scans of all resamples; beyond, there are fewer rounds
CHUNK = 2_000_000  # scans that are drawn at once
FEWEST_BLOCKS = 5
FEWEST_PAIRS = 10  # for an interval
FEWEST_RANKS = 6  # of a signed-rank test: below, its least p is above 0.05
EXACT_UP_TO = 25  # ranks of a signed-rank test whose distribution is counted out
CONFIDENCE = 0.95
Statistic = Callable[[np.ndarray], np.ndarray]  # (..., n) -> (...)


def quantile_of(q: float) -> Statistic:
    """The q-quantile along the last axis, interpolated linearly as in ndt/quantile.h."""
    def statistic(values: np.ndarray) -> np.ndarray:
        count = values.shape[-1]
        place = q * (count - 1)
        below = min(int(place), count - 1)
        above = min(below + 1, count - 1)
        parted = np.partition(values, sorted({below, above}), axis=-1)
        low = parted[..., below]
        found: np.ndarray = low + (place - below) * (parted[..., above] - low)
        return found
    return statistic


def mean_of(values: np.ndarray) -> np.ndarray:
    """The mean along the last axis."""
    found: np.ndarray = np.mean(values, axis=-1)
    return found


STATISTICS: "dict[str, Statistic]" = {"median": quantile_of(0.5), "mean": mean_of, "p95": quantile_of(0.95)}


# ---- correlation of neighbours


def autocorrelation(values: np.ndarray, lags: int) -> np.ndarray:
    """(lags + 1,) from 1 at lag 0; zeros for a constant series."""
    centred = np.asarray(values, np.float64) - np.mean(values)
    power = float(centred @ centred)
    if not power > 0:
        return np.zeros(lags + 1)
    return np.array([centred[: len(centred) - lag] @ centred[lag:] for lag in range(lags + 1)]) / power


def block_length(values: np.ndarray) -> float:
    """Scans per block that are best for the variance of the mean of `values` (n,): 1 for white noise."""
    count = len(values)
    quiet = max(5, math.ceil(math.sqrt(math.log10(max(count, 2)))))
    reach = min(count - 1, math.ceil(math.sqrt(count)) + quiet)
    if reach < 2 or np.ptp(values) == 0:
        return 1.0
    rho = autocorrelation(values, reach)
    limit = 2 * math.sqrt(math.log10(count) / count)
    loud = np.abs(rho[1:]) > limit
    # The last lag that matters: `quiet` lags that do not matter follow it.
    after = next((lag for lag in range(reach - quiet + 1) if not loud[lag:lag + quiet].any()), None)
    bandwidth = min(2 * max(after if after is not None else int(np.flatnonzero(loud)[-1]) + 1, 1), reach)
    lags = np.arange(1, bandwidth + 1)
    window = np.minimum(1, 2 * (1 - lags / bandwidth)) * rho[1:bandwidth + 1]
    slope, density = 2 * float(lags @ window), 1 + 2 * float(window.sum())
    if density <= 0:
        return 1.0
    return float(min(max(1.0, (1.5 * slope ** 2 / density ** 2 * count) ** (1 / 3)), count))


@dataclass(frozen=True)
class Blocks:
    """Blocks in which pairs are drawn. `is_short`: longer blocks are wanted than the drive allows, so that intervals are too narrow."""

    length: int  # scans
    count: float  # of them in the drive
    is_short: bool

    @property
    def freedom(self) -> int:
        """Degrees of freedom of Student's t."""
        return max(1, math.ceil(self.count) - 1)


def choose_blocks(*series: np.ndarray) -> Blocks:
    """Chooses blocks for series (n,) of the same scans: the most correlated one decides."""
    count = len(series[0])
    most = max(1, count // FEWEST_BLOCKS)
    wanted = max(block_length(one) for one in series)
    wanted = math.ceil(2 * wanted) if wanted > 1 else 1
    return Blocks(min(wanted, most), count / min(wanted, most), wanted > most)


# ---- Student's t, Holm


def student_tail(t: float, freedom: int) -> float:
    """P(|T| > t), t >= 0, for a whole number of degrees of freedom (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    term, total = (math.cos(angle), 0.0) if freedom % 2 else (1.0, 0.0)
    for k in range(3 if freedom % 2 else 2, freedom + 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (k - 1) / k
    inside = 2 / math.pi * (angle + math.sin(angle) * total) if freedom % 2 else math.sin(angle) * total
    return min(max(1 - inside, 0.0), 1.0)


def student_quantile(tail: float, freedom: int) -> float:
    """t with P(|T| > t) = tail."""
    low, high = 0.0, 1.0
    while student_tail(high, freedom) > tail:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, freedom) > tail else (low, middle)
    return high


def holm(p: "Sequence[float]") -> "list[float]":
    """p values that account for the number of tests (Holm 1979): below 0.05 for any is wrong in 5 % of all such families."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    out, least = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        least = max(least, min(1.0, (len(p) - rank) * p[i]))
        out[i] = least
    return out


# ---- differences


@dataclass(frozen=True)
class Difference:
    """One statistic of both series. low, high: the interval of `difference` at CONFIDENCE; p: that the difference is zero."""

    first: float
    second: float
    difference: float
    low: float
    high: float
    p: float


def differences(first: np.ndarray, second: np.ndarray, blocks: Blocks, statistics: "Mapping[str, Statistic]" = STATISTICS,
                seed: int = 1) -> "dict[str, Difference]":
    """Differences of two series (n,) of the same scans, n >= 2, finite."""
    drawn: "dict[str, list[np.ndarray]]" = {name: [] for name in statistics}
    for rows in _resamples(len(first), blocks.length, seed):
        a, b = first[rows], second[rows]
        for name, statistic in statistics.items():
            drawn[name].append(statistic(b) - statistic(a))
    wide = blocks.count / max(blocks.count - 1, 1e-9)  # the mean of the drive itself is not known
    t = student_quantile(1 - CONFIDENCE, blocks.freedom)
    out = {}
    for name, statistic in statistics.items():
        one, other = float(statistic(first)), float(statistic(second))
        deviation = float(np.std(np.concatenate(drawn[name]), ddof=1)) * math.sqrt(wide)
        found = other - one
        p = student_tail(abs(found) / deviation, blocks.freedom) if deviation > 0 else float(found == 0)
        out[name] = Difference(one, other, found, found - t * deviation, found + t * deviation, p)
    return out


def _resamples(count: int, length: int, seed: int) -> "Iterator[np.ndarray]":
    """Rows (rounds, count) of resampled scans, in pieces."""
    random = np.random.default_rng(seed)
    rounds = max(FEWEST_ROUNDS, min(ROUNDS, MOST_DRAWN // count))
    blocks, inside = math.ceil(count / length), np.arange(length)
    for begin in range(0, rounds, max(1, CHUNK // count)):
        size = min(max(1, CHUNK // count), rounds - begin)
        starts = random.integers(0, count - length + 1, (size, blocks))
        yield (starts[:, :, None] + inside).reshape(size, -1)[:, :count]


def signed_rank(first: np.ndarray, second: np.ndarray, blocks: Blocks) -> Optional[float]:
    """p of Wilcoxon's test on the mean differences of whole blocks, which neighbouring scans do not inflate; None: too few blocks."""
    count = len(first) // blocks.length
    d = (second - first)[:count * blocks.length].reshape(count, blocks.length).mean(axis=1)
    d = d[d != 0]
    if len(d) < FEWEST_RANKS:
        return None
    sizes, which, ties = np.unique(np.abs(d), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[which.ravel()]
    n, total = len(d), float(ranks[d > 0].sum())
    if len(sizes) == n and n <= EXACT_UP_TO:
        ways = np.zeros(n * (n + 1) // 2 + 1)
        ways[0] = 1
        for rank in range(1, n + 1):
            ways[rank:] = ways[rank:] + ways[:-rank]
        least = int(round(min(total, n * (n + 1) / 2 - total)))
        return float(min(1.0, 2 * ways[:least + 1].sum() / ways.sum()))
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((ties ** 3 - ties).sum()) / 48
    return math.erfc(abs(total - n * (n + 1) / 4) / math.sqrt(2 * variance))


def share_below(first: np.ndarray, second: np.ndarray) -> float:
    """Share of scans with second < first, equal ones half: 0.5 without a difference (probability of superiority)."""
    return float(np.mean(second < first) + 0.5 * np.mean(second == first))
