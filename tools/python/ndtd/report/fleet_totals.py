"""Totals of a fleet: counts and errors of each drive, of each configuration, and the verdict on all.

A drive is a bag replayed with one configuration. A scan is low when it has no trusted pose, when its confidence is below the
minimum of the settings, or when its pose is wrong: over 1 m or 5 deg off.
"""
from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from .fleet_reading import Block, FleetRun
from .run import OFF_DEG, OFF_M
from .verdict import FAIR, GOOD, NB, NONE, POOR, Verdict, count, duration, length, milliseconds

COLUMNS = ("outcome", "trusted", "confidence", "error_m", "error_deg")
COUNTS = ("scans", "matched", "trusted", "low", "wrong")
LEAST_M, STEP = 1e-6, 0.005  # histogram of errors: bins that grow by half a percent
BINS = int(np.log(1e5 / LEAST_M) / STEP)
BAD_DRIVE = 0.5  # low share above which a drive tells about itself, and not about places
MOST_GOOD, MOST_FAIR = 0.01, 0.05  # of the scans without a trusted pose
MOST_WRONG = 0.001  # of the scans: beyond, it is not good
TOLD = 3  # places that the verdict names
MOST_FAILED = 0.05  # of the drives


class Low:
    """Flags of the scans of a block (N,): matched (not merged into others), wrong, low."""

    def __init__(self, run: FleetRun, block: Block, min_confidence: float):
        values, outcomes = block.values, run.labels["outcome"]
        self.matched = values["outcome"] != (outcomes.index("merged") if "merged" in outcomes else -1)
        self.wrong = values["trusted"] & ((values["error_m"] > OFF_M) | (values["error_deg"] > OFF_DEG))
        unsure = values["confidence"] < min_confidence  # False where there is none
        self.low = self.matched & (~values["trusted"] | self.wrong | unsure)


@dataclass
class Totals:
    """Sums over the scans of each row of the run table; counts: COUNTS -> (R,)."""

    counts: "dict[str, np.ndarray]"
    error_sum_m: np.ndarray
    error_count: np.ndarray
    errors: "dict[str, np.ndarray]" = field(default_factory=dict)  # configuration -> scans per bin of the error

    @staticmethod
    def of(run: FleetRun) -> "Totals":
        return Totals({name: np.zeros(len(run), np.int64) for name in COUNTS}, np.zeros(len(run)), np.zeros(len(run), np.int64),
                      {name: np.zeros(BINS, np.int64) for name in run.configurations})

    def add(self, run: FleetRun, block: Block, low: Low) -> None:
        """Adds the drives with one configuration."""
        values = block.values
        compared = values["trusted"] & np.isfinite(values["error_m"])
        flags = {"scans": np.ones(len(block), bool), "matched": low.matched, "trusted": values["trusted"], "low": low.low,
                 "wrong": low.wrong}
        for name, flag in flags.items():
            self.counts[name][block.drives] = block.sums(flag.astype(np.int64))
        self.error_sum_m[block.drives] = block.sums(np.where(compared, values["error_m"], 0.0))
        self.error_count[block.drives] = block.sums(compared.astype(np.int64))
        place = np.log(np.maximum(values["error_m"][compared], LEAST_M) / LEAST_M) / STEP
        self.errors[run.texts["config"][block.drives[0]]] += np.bincount(np.minimum(place.astype(np.int64), BINS - 1), minlength=BINS)

    def untrusted_share(self, rows: np.ndarray) -> np.ndarray:
        """Share of the scans of each drive, without those merged into others; NaN: it has none."""
        matched, trusted = self.counts["matched"][rows], self.counts["trusted"][rows]
        return np.where(matched > 0, (matched - trusted) / np.maximum(matched, 1), np.nan)

    def low_share(self, rows: np.ndarray) -> np.ndarray:
        matched, low = self.counts["matched"][rows], self.counts["low"][rows]
        return np.where(matched > 0, low / np.maximum(matched, 1), np.nan)

    def mean_error_m(self, rows: np.ndarray) -> np.ndarray:
        return np.where(self.error_count[rows] > 0, self.error_sum_m[rows] / np.maximum(self.error_count[rows], 1), np.nan)


def bin_quantile(bins: np.ndarray, q: float) -> float:
    """The error [m] that a share q of the scans does not exceed, to half a percent; NaN: no scan."""
    total = bins.sum()
    return float(LEAST_M * np.exp(STEP * (np.searchsorted(np.cumsum(bins), q * total) + 0.5))) if total else float("nan")


@dataclass(frozen=True)
class Configured:
    """All drives of one configuration, added up."""

    name: str
    rows: np.ndarray  # of the run table, done
    failed: int
    scans: int
    hours: float
    distance_m: float
    untrusted: int
    matched: int
    wrong: int
    error_median_m: float  # of all scans
    error_p95_m: float
    confidence: float  # of the usual drive: median over the drives
    latency_p50_ms: float
    latency_p95_ms: float
    replay_s: float
    never: int  # drives without any trusted pose

    @property
    def has_truth(self) -> bool:
        return bool(np.isfinite(self.error_median_m))

    @property
    def untrusted_share(self) -> float:
        return self.untrusted / max(self.matched, 1)


def configured(run: FleetRun, totals: Totals, name: str) -> Configured:
    rows, numbers = run.rows_of(name), run.numbers
    matched, trusted, wrong, scans = (int(totals.counts[key][rows].sum()) for key in ("matched", "trusted", "wrong", "scans"))
    failed = failed_rows(run, name)
    usual = {key: _median(numbers[key][rows]) for key in ("confidence_median", "total_ms_p50", "total_ms_p95")}
    return Configured(
        name, rows, len(failed), scans, float(np.nansum(numbers["duration_s"][rows])) / 3600, float(np.nansum(numbers["distance_m"][rows])),
        matched - trusted, matched, wrong, bin_quantile(totals.errors[name], 0.5), bin_quantile(totals.errors[name], 0.95),
        usual["confidence_median"], usual["total_ms_p50"], usual["total_ms_p95"], float(np.nansum(numbers["replay_s"][rows])),
        int(((totals.counts["matched"][rows] > 0) & (totals.counts["trusted"][rows] == 0)).sum()))


def failed_rows(run: FleetRun, name: "Optional[str]") -> np.ndarray:
    """Rows of drives that are not done: with this configuration, or whose bag cannot be read (None: with any)."""
    config = run.texts["config"]
    mine = np.ones(len(run), bool) if name is None else (config == name) | (config == "")
    return np.flatnonzero((run.texts["status"] != "done") & mine)


def _median(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else float("nan")


# ---- the verdict


def percent(share: float) -> str:
    """A share with the digits that matter: those of what is missing to 100 %."""
    if not np.isfinite(share):
        return NONE
    value = 100 * share
    if 0 < value < 0.01:
        return f"< 0.01{NB}%"
    if 99.99 < value < 100:
        return f"> 99.99{NB}%"
    return f"{value:.2f}".rstrip("0").rstrip(".") + f"{NB}%" if value < 1 or value > 99 else f"{value:.3g}{NB}%"


def several(values: np.ndarray) -> str:
    """The different texts."""
    kinds = sorted({str(one) for one in values.tolist() if one})
    return ", ".join(kinds[:4]) + (f" and {len(kinds) - 4} more" if len(kinds) > 4 else "")


def thousands(number: int) -> str:
    return f"{number:,}".replace(",", "\N{NO-BREAK SPACE}")


def hours(value: float) -> str:
    return duration(3600 * value) if value < 2 else f"{value:.3g}{NB}h" if value < 1000 else f"{thousands(round(value))}{NB}h"


def kilometres(metres: float) -> str:
    return f"{metres / 1000:.3g}{NB}km" if metres < 1e6 else f"{thousands(round(metres / 1000))}{NB}km"


def judge(found: Configured, places: "list[str]", damaged: int) -> Verdict:
    """The verdict on a configuration. places: that have to be surveyed again, the worst first."""
    drives = len(found.rows)
    parts = [f"{count(drives, 'drive')}, {hours(found.hours)}, {thousands(found.scans)} scans",
             f"{percent(1 - found.untrusted_share)} with a trusted pose" if found.matched else "no scan was matched"]
    if found.has_truth:
        parts.append(f"median error {length(found.error_median_m)} (95{NB}%: {length(found.error_p95_m)})")
    elif np.isfinite(found.confidence):
        parts.append(f"no ground truth, median confidence {found.confidence:.4g}")
    if found.wrong:
        parts.append(f"{count(found.wrong, 'trusted pose')} over {OFF_M:g}{NB}m or {OFF_DEG:g}\N{DEGREE SIGN} off")
    sentence = ", ".join(parts) + "."
    if found.failed:
        sentence += f" {count(found.failed, 'drive')} failed."
    if found.never:
        sentence += f" {count(found.never, 'drive')} never located: {'is it' if found.never == 1 else 'are they'} of this map?"
    if damaged:
        sentence += f" {count(damaged, 'recording')} damaged, used up to the damage."
    if places:
        more = f" and {len(places) - TOLD} more" if len(places) > TOLD else ""
        sentence += f" {count(len(places), 'place')} of the map should be surveyed again: {'; '.join(places[:TOLD])}{more}."
    share, wrong = found.untrusted_share, found.wrong / max(found.matched, 1)
    failed = found.failed / max(drives + found.failed, 1)
    if not found.matched or share > MOST_FAIR or wrong > MOST_WRONG or failed > MOST_FAILED:
        level = POOR
    else:
        level = FAIR if found.failed or found.wrong or places or damaged or share > MOST_GOOD else GOOD
    return Verdict(level, sentence, _numbers(found, damaged))


def _numbers(found: Configured, damaged: int) -> "list[tuple[str, str, str]]":
    out = [("drives", thousands(len(found.rows)), f"{hours(found.hours)}, {kilometres(found.distance_m)}"),
           ("scans", thousands(found.scans), f"{found.scans / found.replay_s:.0f}/s of one core" if found.replay_s > 0 else ""),
           ("trusted poses", percent(1 - found.untrusted_share), f"{thousands(found.untrusted)} scans without one")]
    if found.has_truth:
        out.append(("error, median", length(found.error_median_m), f"95{NB}%: {length(found.error_p95_m)}"))
        out.append(("wrong poses", thousands(found.wrong), f"trusted, over {OFF_M:g}{NB}m or {OFF_DEG:g}\N{DEGREE SIGN} off"))
    elif np.isfinite(found.confidence):
        out.append(("confidence, median", f"{found.confidence:.4f}", "of the usual drive"))
    out.append(("latency, median", milliseconds(found.latency_p50_ms), f"95{NB}%: {milliseconds(found.latency_p95_ms)}"))
    out.append(("failed drives", thousands(found.failed), f"{damaged} damaged" if damaged else "none damaged"))
    return out


# ---- drives


@dataclass(frozen=True)
class BadDrive:
    row: int
    untrusted_share: float
    why: str


def worst_drives(run: FleetRun, totals: Totals, rows: np.ndarray, most: int) -> "list[BadDrive]":
    """The worst first: by low scans, then by the 95th percentile of the error."""
    low, p95 = np.nan_to_num(totals.low_share(rows), nan=1.0), np.nan_to_num(run.numbers["error_m_p95"][rows])
    typical = _median(run.numbers["error_m_p95"][rows])
    order = np.lexsort((-p95, -np.round(low, 4)))[:most]
    share = totals.untrusted_share(rows)
    return [BadDrive(int(rows[at]), float(share[at]), _why(run, totals, int(rows[at]), float(share[at]), typical)) for at in order]


def _why(run: FleetRun, totals: Totals, row: int, share: float, typical_p95_m: float) -> str:
    counts = {name: int(values[row]) for name, values in totals.counts.items()}
    parts = []
    if not counts["matched"]:
        parts.append("no scan")
    elif not counts["trusted"]:
        parts.append("never a trusted pose")
    elif share > BAD_DRIVE:
        parts.append("mostly without a trusted pose")
    elif share > 0:
        seconds = run.numbers["untrusted_s"][row]
        parts.append(f"{duration(float(seconds))} without a trusted pose" if np.isfinite(seconds) else
                     f"{counts['matched'] - counts['trusted']} scans without a trusted pose")
    if counts["wrong"]:
        parts.append(f"{count(counts['wrong'], 'wrong pose')}")
    p95 = run.numbers["error_m_p95"][row]
    if np.isfinite(p95) and p95 > 3 * typical_p95_m:
        parts.append(f"errors {p95 / typical_p95_m:.2g} times the usual ones")
    if run.texts["damage"][row]:
        parts.append(f"damaged: {run.texts['damage'][row]}")
    return "; ".join(parts) or "like the others"

