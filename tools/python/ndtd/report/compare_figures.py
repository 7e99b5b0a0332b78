"""Figures of a comparison. The first run is blue, the second orange; better is green, worse vermilion, and both have a sign."""
from typing import Any, Optional

import numpy as np

from . import figures, plot_parts, trajectory_figure
from .comparison import OFF_M, Comparison, Latency, Test
from .figures import BLUE, GREEN, GRID, INK, MUTED, ORANGE, VERMILION, Drawing, decimate
from .raster import Box

FIRST, SECOND = BLUE, ORANGE
MARKS = {"better": (GREEN, "^"), "worse": (VERMILION, "v"), "faster": (GREEN, "^"), "slower": (VERMILION, "v")}


def _mark(verdict: str) -> "tuple[str, str]":
    return MARKS.get(verdict, (MUTED, "o"))


def _scale(unit: str, values: np.ndarray) -> "tuple[float, str]":
    """Factor and name of the unit in which values are shown."""
    top = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 0.0
    if unit == "m":
        return (1.0, "m") if top >= 2 else (100.0, "cm") if top >= 0.02 else (1000.0, "mm")
    return (100.0, "%") if unit == "%" else (1.0, unit)


def _margins(drawing: Drawing, left_in: Optional[float] = None, bottom_in: Optional[float] = None, top_in: Optional[float] = None) -> None:
    """Other margins than those of all figures; what is added above or below makes the figure higher."""
    figure, grid = drawing.figure, drawing.axes[-1].get_gridspec()
    height = float(figure.get_size_inches()[1])
    below, above = grid.bottom * height, (1 - grid.top) * height
    bottom_in, top_in = below if bottom_in is None else bottom_in, above if top_in is None else top_in
    higher = height + bottom_in - below + top_in - above
    figure.set_size_inches(figures.WIDTH_IN, higher)
    grid.left = grid.left if left_in is None else left_in / figures.WIDTH_IN
    grid.bottom, grid.top = bottom_in / higher, 1 - top_in / higher
    for axes in figure.axes:
        axes.set_subplotspec(axes.get_subplotspec())  # which moves it


def _factor_axis(axes: Any, values: np.ndarray) -> None:
    """A logarithmic x axis around 1."""
    reach = 1.1 * max(1.5, float(values.max()), 1 / max(float(values.min()), 1e-6))
    axes.set_xscale("log")
    axes.set_xlim(1 / reach, reach)
    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100) if reach < 4 else (
        0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)
    ticks = [value for value in steps if 1 / reach <= value <= reach]
    axes.set_xticks(ticks, [f"{value:g}" for value in ticks])
    axes.minorticks_off()


# ---- from above


def extent(found: Comparison) -> Box:
    """Box around the trusted poses of both runs."""
    boxes = [trajectory_figure.extent(run) for run in (found.first, found.second)]
    low, high = (min(box.x for box in boxes), min(box.y for box in boxes)), (max(box.x + box.width for box in boxes),
                                                                             max(box.y + box.height for box in boxes))
    centre = np.add(low, high) / 2
    width = max(high[0] - low[0], (high[1] - low[1]) / trajectory_figure.MOST_ASPECT)
    return Box.around(centre, float(width), float(max(high[1] - low[1], width * trajectory_figure.LEAST_ASPECT)))


def trajectories(found: Comparison, box: Box, density: np.ndarray, worst: "list[int]") -> Drawing:
    """Draws both paths over the map; worst: pairs that are numbered."""
    drawing, axes, origin = trajectory_figure.on_map("trajectories", "Trajectories over the map, from above", box, density)
    handles = []
    for run, name, colour, width in ((found.second, found.names[1], SECOND, 3.4), (found.first, found.names[0], FIRST, 1.4)):
        path = np.where(run.trusted[:, None], run.pose[:, :2] - origin, np.nan)
        step = max(1, len(path) // trajectory_figure.MOST_TRAIL)
        handles += axes.plot(*path[::step].T, color=colour, linewidth=width, solid_capstyle="round", label=short(name), zorder=3)
    for number, at in enumerate(worst, 1):
        place = found.second.pose[found.pairs[at, 1], :2] - origin
        if np.isfinite(place[0]):
            axes.plot(*place, "o", color=VERMILION, markeredgecolor=figures.PAPER, markeredgewidth=0.6, markersize=3.6, zorder=6)
            trajectory_figure.note(axes, str(number), place[0], place[1], (4, -10), VERMILION, 7)
    plot_parts.legend(axes, handles[::-1])
    drawing.caption = ("Trusted poses of both runs over the points of the map" +
                       ("; numbers: the scans that got worse most." if worst else "."))
    return drawing


# ---- the tests


def intervals(found: Comparison) -> "Optional[Drawing]":
    """Draws one row per test: the difference with its interval, over the margin."""
    groups = [[test for test in found.tests if test.quantity == one.name] for one in found.quantities]
    if not groups:
        return None
    rows = max(len(group) for group in groups)
    drawing = figures.new("intervals", "Differences with their intervals", columns=len(groups), height_in=0.85 + 0.32 * rows,
                          column_gap_in=0.75)
    for axes, group in zip(drawing.axes, groups):
        draw_intervals(axes, group, rows)
    drawing.caption = ("Second minus first run, with intervals that hold the true difference in 95 of 100 drives of this kind; left of "
                       f"zero {found.names[1]} has the smaller value. Shaded: differences that do not matter. Triangles: tests that tell "
                       "the runs apart.")
    return drawing


def draw_intervals(axes: Any, group: "list[Test]", rows: int) -> None:
    """Tests of one quantity, as rows of axes with `rows` of them."""
    ends = np.array([value for test in group for value in (test.found.low, test.found.high, test.margin, -test.margin)])
    factor, unit = _scale(group[0].unit, ends)
    if group[0].margin > 0:
        axes.axvspan(-factor * group[0].margin, factor * group[0].margin, color=GRID, alpha=0.55, linewidth=0)
    axes.axvline(0, color=INK, linewidth=0.8)
    for place, test in enumerate(group):
        colour, marker = _mark(test.verdict)
        axes.plot([factor * test.found.low, factor * test.found.high], [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
        axes.plot([factor * test.found.difference], [place], marker, color=colour, markersize=6)
    axes.set_yticks(range(len(group)), [test.statistic for test in group])
    axes.set_ylim(rows - 0.5, -0.5)
    axes.grid(False, axis="y")
    reach = 1.08 * factor * float(np.abs(ends).max()) or 1.0
    axes.set_xlim(-reach, reach)
    axes.set_xlabel(f"difference of the {group[0].quantity}" + (f" [{unit}]" if unit else ""))


# ---- over time


def over_time(found: Comparison) -> Drawing:
    """Errors of both runs and their paired difference; without ground truth the distance between the runs."""
    if not found.has_truth:
        return _apart_over_time(found)
    drawing = figures.new("differences", "Errors over time and their paired difference", rows=4, height_in=5.6, ratios=[1.3, 1, 1.3, 1])
    rows = ((found.first_error_m, found.second_error_m, "m", "translation"),
            (found.first_error_deg, found.second_error_deg, "deg", "rotation"))
    margins = {one.unit: one.margin for one in found.quantities}
    for at, (first, second, unit, name) in enumerate(rows):
        errors, difference = drawing.axes[2 * at:2 * at + 2]
        factor, shown = _scale(unit, np.concatenate([first, second]))
        _two_lines(errors, found, factor * first, factor * second)
        errors.set_ylim(bottom=0)
        errors.set_ylabel(f"{name} [{shown}]")
        _difference(difference, found.time_s, factor * (second - first), factor * margins.get(unit, 0.0))
        difference.set_ylabel(f"change [{shown}]")
        _shade_missed(errors, found)
    drawing.axes[0].legend(loc="upper right", ncol=2)
    drawing.axes[-1].set_xlabel("time [s]")
    drawing.figure.align_ylabels(drawing.axes)
    drawing.caption = ("Errors of both runs, and below them second minus first, scan by scan: green where the second run is nearer to the "
                       "ground truth, vermilion where it is farther. Shaded band: the margin." + _missed_caption(found))
    return drawing


def _apart_over_time(found: Comparison) -> Drawing:
    drawing = figures.new("differences", "Distance between the runs and their confidence", rows=3, height_in=4.2, ratios=[1, 1, 1])
    for axes, values, unit in ((drawing.axes[0], found.distance_m, "m"), (drawing.axes[1], found.distance_deg, "deg")):
        factor, shown = _scale(unit, values)
        axes.plot(*decimate(found.time_s, factor * values), color=INK)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(f"apart [{shown}]")
    first, second = (run.values["confidence"][rows] for run, rows in zip((found.first, found.second), found.pairs.T))
    _two_lines(drawing.axes[2], found, first, second)
    drawing.axes[2].set_ylabel("confidence")
    drawing.axes[2].set_ylim(-0.03, 1.06)
    drawing.axes[2].legend(loc="lower right", ncol=2)
    drawing.axes[-1].set_xlabel("time [s]")
    drawing.figure.align_ylabels(drawing.axes)
    _shade_missed(drawing.axes[0], found)
    drawing.caption = "How far apart the poses of both runs are, and how sure each run is of its own." + _missed_caption(found)
    return drawing


def _two_lines(axes: Any, found: Comparison, first: np.ndarray, second: np.ndarray) -> None:
    for name, values, colour in zip(found.names, (first, second), (FIRST, SECOND)):
        axes.plot(*decimate(found.time_s, values), color=colour, label=short(name), zorder=3 if colour == FIRST else 2.5)


def _difference(axes: Any, time_s: np.ndarray, change: np.ndarray, margin: float) -> None:
    if margin > 0:
        axes.axhspan(-margin, margin, color=GRID, alpha=0.55, linewidth=0)
    axes.axhline(0, color=INK, linewidth=0.7)
    x, y = decimate(time_s, change)
    axes.fill_between(x, 0, y, where=y > 0, color=VERMILION, linewidth=0, interpolate=True)
    axes.fill_between(x, 0, y, where=y < 0, color=GREEN, linewidth=0, interpolate=True)
    reach = 1.1 * max(float(np.nanmax(np.abs(change))) if np.isfinite(change).any() else 0.0, margin) or 1.0
    axes.set_ylim(-reach, reach)


def _shade_missed(axes: Any, found: Comparison) -> None:
    """Ticks at the top edge: scans that a run missed."""
    for missed, colour, height in ((found.first_missed, FIRST, 0.97), (found.second_missed, SECOND, 0.90)):
        axes.plot(found.time_s[missed], np.full(int(missed.sum()), height), "|", color=colour, markersize=5,
                  transform=axes.get_xaxis_transform(), clip_on=False)


def _missed_caption(found: Comparison) -> str:
    if not (found.first_missed | found.second_missed).any():
        return ""
    return f" Ticks at the top: scans without a trusted pose, or over {OFF_M:g} m or 5 deg off, in the colour of the run."


# ---- distributions


def distributions(found: Comparison) -> "Optional[Drawing]":
    """Shares of scans below an error, and the errors of each scan in both runs."""
    if not any(one.unit in ("m", "deg") for one in found.quantities):
        return None
    drawing = figures.new("distributions", "Distribution of the errors", columns=4, height_in=2.5, share_x=False, column_gap_in=0.62)
    for at, one in enumerate(one for one in found.quantities if one.unit in ("m", "deg")):
        factor, unit = _scale(one.unit, np.concatenate([one.first, one.second]))
        cumulative, scatter = drawing.axes[at], drawing.axes[2 + at]
        for name, values, colour in zip(found.names, (one.first, one.second), (FIRST, SECOND)):
            ordered = np.sort(factor * values)
            x, y = decimate(np.linspace(0, 100, len(ordered)), ordered, 400)[::-1]
            cumulative.plot(x, y, color=colour, label=short(name, 14))
        cumulative.set_xlim(left=0)
        cumulative.set_ylim(0, 101)
        cumulative.set_xlabel(f"{one.name} [{unit}]")
        top = 1.05 * factor * max(one.first.max(), one.second.max()) or 1.0
        scatter.plot([0, top], [0, top], color=INK, linewidth=0.7)
        scatter.plot(factor * one.first, factor * one.second, ".", color=MUTED, markersize=2.5,
                     alpha=0.6 if len(one.first) <= 2000 else 0.15, rasterized=len(one.first) > 2000)
        scatter.set(xlim=(0, top), ylim=(0, top), aspect="equal")
        scatter.set_xlabel(f"{short(found.names[0], 16)} [{unit}]")
        scatter.set_ylabel(f"{short(found.names[1], 16)} [{unit}]")
    drawing.axes[0].set_ylabel("scans [%]")
    drawing.axes[0].legend(loc="lower right")
    drawing.caption = ("Left: share of the scans whose error is at most so large. Right: every scan as a point; above the line its "
                       "error is larger in the second run.")
    return drawing


# ---- effort


def latencies(rows: "list[Latency]") -> "Optional[Drawing]":
    """Factor of each stage with its quartiles."""
    if not rows:
        return None
    drawing = figures.new("latencies", "Latency of the first run over that of the second", height_in=0.75 + 0.24 * len(rows))
    axes = drawing.axes[0]
    axes.axvspan(0.98, 1.02, color=GRID, alpha=0.8, linewidth=0)
    axes.axvline(1, color=INK, linewidth=0.8)
    for place, row in enumerate(rows):
        colour, marker = _mark(row.verdict)
        axes.plot([row.low, row.high], [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
        axes.plot([row.factor], [place], marker, color=colour, markersize=6)
    axes.set_yticks(range(len(rows)), [row.stage for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(False, axis="y")
    _margins(drawing, left_in=0.85)
    _factor_axis(axes, np.array([value for row in rows for value in (row.low, row.high)]))
    axes.set_xlabel("factor: above 1 the second run is faster")
    drawing.caption = ("Median over the scans of the time of the first run over that of the second, with its quartiles; shaded: less than "
                       "2 %.")
    return drawing


def effort(found: Comparison) -> Drawing:
    """Iterations and, with ground truth, confidence of both runs over time."""
    names = ["iterations"] + (["confidence"] if found.has_truth else [])
    drawing = figures.new("effort", "Iterations and confidence" if len(names) > 1 else "Iterations", rows=len(names),
                          height_in=0.55 + 1.1 * len(names))
    for axes, name in zip(drawing.axes, names):
        first, second = (run.values[name][rows] for run, rows in zip((found.first, found.second), found.pairs.T))
        _two_lines(axes, found, first, second)
        axes.set_ylabel(name)
        if name == "confidence":
            axes.set_ylim(-0.03, 1.06)
        else:
            axes.set_ylim(bottom=0)
    drawing.axes[0].legend(loc="upper right", ncol=2)
    drawing.axes[-1].set_xlabel("time [s]")
    drawing.figure.align_ylabels(drawing.axes)
    drawing.caption = "Newton steps" + (" and confidence" if found.has_truth else "") + " of each scan."
    return drawing


def short(name: str, most: int = 32) -> str:
    """A name that fits: the middle is left out."""
    return name if len(name) <= most else f"{name[:most // 2 - 1]}...{name[len(name) - most // 2 + 2:]}"
