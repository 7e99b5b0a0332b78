"""Protection levels of a replay against its errors: the Stanford diagram, and how often a level was exceeded."""
import math
from typing import Any, NamedTuple

import numpy as np

from . import figures, plot_parts
from .error_figures import DEG, Errors
from .figures import BLUE, INK, MUTED, VERMILION, Drawing
from .run import LEVELS, Run

AXIS = (1, 0, 2, 5)  # of errors.per_axis, for each of LEVELS
SURE = 0.95  # of the bound of the share
LEAST_PART = 1e-3  # of the least level: smaller errors are drawn there


class Counts(NamedTuple):
    """Scans of one component with a trusted pose and ground truth: all, with a level, with an error above it, of these also above the
    alert limit, with a level within the limit; share_most: exact upper bound of the share above, of those with a level."""

    name: str
    scans: int
    levels: int
    misleading: int
    hazardous: int
    available: int
    share_most: float


def most_share(events: int, count: int, sure: float = SURE) -> float:
    """Upper bound of a probability of which `events` in `count` independent trials were seen (Clopper and Pearson 1934)."""
    if count == 0 or events >= count:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        terms = (math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * math.log(middle)
                 + (count - k) * math.log1p(-middle) for k in range(events + 1))
        low, high = (middle, high) if sum(map(math.exp, terms)) > 1 - sure else (low, middle)
    return high


def counts_of(run: Run, errors: Errors, limit_m: float) -> "list[Counts]":
    """Counts per component; limit_m: alert limit of the positions, infinite for none. The heading has no limit."""
    out = []
    for at, name in enumerate(LEVELS):
        error, level = np.abs(errors.per_axis[:, AXIS[at]]), run.protection[:, at]
        limit = limit_m if at < 3 else math.inf
        known = np.isfinite(error) & ~np.isnan(level)
        above = known & (error > level)
        levels, misleading = int((known & np.isfinite(level)).sum()), int(above.sum())
        out.append(Counts(name, int(known.sum()), levels, misleading, int((above & (error > limit)).sum()),
                          int((known & np.isfinite(level) & (level <= limit)).sum()), most_share(misleading, levels)))
    return out


def stanford(run: Run, errors: Errors, limit_m: float) -> Drawing:
    """Error against level, one panel per component."""
    one = figures.new("protection", "Error against protection level", rows=2, columns=2, height_in=5.2, share_x=False, column_gap_in=0.85,
                      gap_in=0.6)
    for at, name in enumerate(LEVELS):
        unit, scale = ("m", 1.0) if at < 3 else ("deg", DEG)
        _panel(one.axes[at], np.abs(errors.per_axis[:, AXIS[at]]) * scale, run.protection[:, at] * scale,
               limit_m if at < 3 else math.inf, f"{name} [{unit}]")
    one.caption = ("Stanford diagram. Blue: the level holds; red: misleading, the error is above its level. Above the dashed line, the alert "
                   "limit, the pose is not available. Scans without a level are not shown.")
    return one


def _panel(ax: Any, error: np.ndarray, level: np.ndarray, limit: float, label: str) -> None:
    shown = np.isfinite(error) & np.isfinite(level) & (level > 0)
    error, level = error[shown], level[shown]
    if len(error):
        error = np.maximum(error, LEAST_PART * level.min())
    ax.set_xscale("log")
    ax.set_yscale("log")
    if len(error):
        low, high = 0.7 * min(float(error.min()), float(level.min())), 1.5 * max(float(error.max()), float(level.max()))
        ax.plot([low, high], [low, high], color=INK, linewidth=0.9)
        ax.set_xlim(low, high)
        ax.set_ylim(low, high)
    holds = error <= level
    ax.plot(error[holds], level[holds], ".", color=BLUE, markersize=2.5)
    ax.plot(error[~holds], level[~holds], "o", color=VERMILION, markersize=3.0)
    if math.isfinite(limit) and len(error):
        ax.axhline(limit, color=MUTED, linewidth=0.9, linestyle=(0, (4, 2)))
    ax.set_xlabel(f"error, {label}")
    ax.set_ylabel(f"level, {label}")
    plot_parts.plain_log(ax, both=True)
