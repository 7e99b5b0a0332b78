"""Figures of a fleet's report: low confidence on the map, the places to survey again, drives and their distributions."""
from typing import Any

import numpy as np

from . import figures, map_above, plot_parts, raster, trajectory_figure
from .compare_figures import SECOND, draw_intervals, short
from .fleet_comparison import FleetComparison
from .fleet_places import Grid, Place
from .fleet_totals import LEAST_M, STEP, Configured, Totals
from .fleet_reading import FleetRun
from .figures import CYCLE, INK, MUTED, ORANGE, PAPER, SKY, VERMILION, YELLOW, Drawing, decimate
from .raster import Box

LEVELS = ((0.0, SKY, "below 1 % of the scans"), (0.01, YELLOW, "1 to 10 %"), (0.1, ORANGE, "10 to 50 %"), (0.5, VERMILION, "50 % or more"))
PALEST, MANY_SCANS = 0.35, 100.0  # opacity of a cell with one scan; scans from which on it is opaque
FAR_SHARE = 0.0005  # of the scans at either end may lie outside of the picture
LEAST_SHOWN = 0.5  # percent of the scans whose errors are too small to be shown
DETAILS, DETAIL_COLUMNS, AROUND_M, DETAIL_PIXELS = 6, 3, 45.0, 360
MOST_DOTS, MOST_RINGS, MOST_LINES = 3000, 12, 6


# ---- cells


def extent(grid: Grid, places: "list[Place]") -> Box:
    """Box around nearly all scans and every place, in the shape of the figure."""
    corners, scans = grid.corners(), grid.shown[:, 0]
    if not scans.sum():
        return Box(-50.0, -25.0, 100.0, 50.0)
    points = []
    for axis in (0, 1):
        order = np.argsort(corners[:, axis], kind="stable")
        share = np.cumsum(scans[order]) / scans.sum()
        ends = corners[order[np.searchsorted(share, (FAR_SHARE, 1 - FAR_SHARE))], axis]
        points.append([ends[0], ends[1] + grid.edge_m])
    box = np.array(points).T
    return trajectory_figure.around(np.concatenate([box, *(np.stack([place.low_m, place.high_m]) for place in places)]))


def cells_rgba(grid: Grid, box: Box, most: int) -> "tuple[np.ndarray, Box]":
    """Colours of the cells in the box and what the picture covers; at most `most` pixels wide, where cells are joined if need be."""
    step = grid.edge_m * max(1, int(np.ceil(box.width / grid.edge_m / most)))
    low = np.floor(np.array([box.x, box.y]) / step) * step
    columns, rows = (int(np.ceil((end - start) / step)) for start, end in zip(low, (box.x + box.width, box.y + box.height)))
    column, row = (np.floor((grid.corners() + grid.edge_m / 2 - low) / step).astype(int)).T
    inside = (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
    place = (rows - 1 - row[inside]) * columns + column[inside]
    scans, lows = (np.bincount(place, grid.shown[inside, at], rows * columns).reshape(rows, columns) for at in (0, 1))
    share = lows / np.maximum(scans, 1)
    level = np.searchsorted([least for least, _, _ in LEVELS], share, side="right") - 1
    rgb = np.array([[int(colour[at:at + 2], 16) for at in (1, 3, 5)] for _, colour, _ in LEVELS], np.uint8)[level]
    opacity = PALEST + (1 - PALEST) * np.minimum(np.log1p(scans) / np.log1p(MANY_SCANS), 1.0)
    alpha = np.where(scans > 0, 255 * np.where(share >= LEVELS[1][0], np.maximum(opacity, 0.8), 0.75 * opacity), 0).astype(np.uint8)
    large = max(1, most // max(columns, rows))  # viewers smooth small pictures
    rgba = np.repeat(np.repeat(np.dstack([rgb, alpha]), large, axis=0), large, axis=1)
    return rgba, Box(float(low[0]), float(low[1]), columns * step, rows * step)


def _draw_cells(axes: Any, grid: Grid, box: Box, origin: np.ndarray, most: int) -> None:
    rgba, covered = cells_rgba(grid, box, most)
    x, y = covered.x - origin[0], covered.y - origin[1]
    limits = axes.get_xlim(), axes.get_ylim()
    axes.imshow(rgba, extent=(x, x + covered.width, y, y + covered.height), aspect="equal", zorder=2)
    axes.set(xlim=limits[0], ylim=limits[1])


def places_map(grid: Grid, box: Box, density: np.ndarray, places: "list[Place]") -> Drawing:
    """Cells by their share of low scans over the map; places: numbered."""
    from matplotlib.patches import Patch

    drawing, axes, origin = trajectory_figure.on_map("places", "Low confidence over the map, from above", box, density)
    _draw_cells(axes, grid, box, origin, trajectory_figure.MAP_COLUMNS)
    for number, place in enumerate(places[:MOST_RINGS], 1):
        x, y = (place.low_m + place.high_m) / 2 - origin
        _ring(axes, x, y, np.maximum(1.35 * (place.high_m - place.low_m), 0.03 * box.width), number)
    plot_parts.legend(axes, [Patch(color=colour, label=label) for _, colour, label in LEVELS])
    drawing.caption = (f"Cells of {grid.edge_m:g} m, by the share of their scans that are low: without a trusted pose, of low confidence "
                       "or wrong; the fainter the fewer scans. Grey: points of the map." +
                       (" Numbers: the places to survey again." if places else ""))
    return drawing


def _ring(axes: Any, x: float, y: float, size: np.ndarray, number: int) -> None:
    from matplotlib.patches import Ellipse

    for colour, width in ((PAPER, 3.2), (INK, 1.3)):
        axes.add_patch(Ellipse((x, y), *size, fill=False, edgecolor=colour, linewidth=width, zorder=6))
    trajectory_figure.note(axes, str(number), x + 0.36 * size[0], y + 0.36 * size[1], (3, 3), INK, 9)


def windows(places: "list[Place]") -> "list[map_above.Window]":
    """The surroundings of the first places, to be filled with points of the map."""
    middles = (np.append((place.low_m + place.high_m) / 2, place.centre[2]) for place in places)
    return [map_above.Window(middle, _reach_m(place)) for middle, place in zip(middles, places[:DETAILS])]


def _reach_m(place: Place) -> float:
    return float((place.high_m - place.low_m).max()) / 2 + AROUND_M


def place_details(grid: Grid, places: "list[Place]", around: "list[map_above.Window]") -> Drawing:
    """The places with the points of the map around them."""
    rows = -(-len(around) // DETAIL_COLUMNS)
    width = (figures.WIDTH_IN - figures.LEFT_IN - figures.RIGHT_IN - 0.55 * (DETAIL_COLUMNS - 1)) / DETAIL_COLUMNS
    drawing = figures.new("place-details", "Places to survey again", rows=rows, columns=DETAIL_COLUMNS, share_x=False, gap_in=0.5,
                          height_in=0.3 + figures.BOTTOM_IN + rows * width + 0.5 * (rows - 1), top_in=0.3)
    for axes in drawing.axes[len(around):]:
        axes.set_axis_off()
    for number, (axes, place, window) in enumerate(zip(drawing.axes, places, around), 1):
        box = Box.around(window.centre, 2 * window.reach_m, 2 * window.reach_m)
        origin = np.floor(window.centre[:2] / 1000) * 1000 if np.abs(window.centre[:2]).max() > trajectory_figure.FAR_M else np.zeros(2)
        density = raster.counts(window.points + np.append(window.centre[:2], 0.0), box, DETAIL_PIXELS, DETAIL_PIXELS)
        x, y = box.x - origin[0], box.y - origin[1]
        axes.imshow(raster.map_rgba(density), extent=(x, x + box.width, y, y + box.height), aspect="equal", zorder=0)
        axes.set(xlim=(x, x + box.width), ylim=(y, y + box.height))
        _draw_cells(axes, grid, box, origin, DETAIL_PIXELS)
        axes.grid(False)
        axes.set_title(f"{number}: {place.bad} of {place.passed} drives")
    is_far = bool(np.abs(around[0].centre[:2]).max() > trajectory_figure.FAR_M)
    drawing.caption = (f"The first {len(around)} places" if len(around) > 1 else "The place") + (
        " with the points of the map around; axes in metres" + (", without whole kilometres." if is_far else "."))
    return drawing


# ---- distributions


def distributions(run: FleetRun, totals: Totals, configured: "list[Configured]") -> Drawing:
    """Shares of scans and of drives below an error; shares of drives below a share of scans without a trusted pose."""
    has_truth = any(one.has_truth for one in configured)
    columns = 3 if has_truth else 2
    drawing = figures.new("distributions", "Distributions over scans and drives", columns=columns, height_in=2.9, share_x=False, top_in=0.5)
    for at, one in enumerate(configured[:MOST_LINES]):
        style = {"color": CYCLE[at], "label": short(one.name, 28)}
        if has_truth:
            bins = totals.errors[one.name]
            below = 100 * np.cumsum(bins) / max(bins.sum(), 1)
            some = np.flatnonzero((bins > 0) & (below > LEAST_SHOWN))
            _cumulative(drawing.axes[0], LEAST_M * np.exp(STEP * (some + 0.5)), below[some], style)
            _ordered(drawing.axes[1], run.numbers["error_m_p95"][one.rows], style)
        else:
            _ordered(drawing.axes[0], run.numbers["confidence_median"][one.rows], style)
        _ordered(drawing.axes[-1], 100 * totals.untrusted_share(one.rows), style)
    labels = ("error of a scan [m]", "error of a drive, 95 % [m]") if has_truth else ("confidence of a drive, median",)
    for axes, label in zip(drawing.axes, labels):
        axes.set_xlabel(label)
        if has_truth:
            _logarithmic(axes)
    drawing.axes[-1].set_xlabel("scans without a trusted pose [%]")
    drawing.axes[-1].set_xlim(left=0)
    for axes in drawing.axes:
        axes.set_ylim(0, 102)
    drawing.axes[0].set_ylabel("scans [%]" if has_truth else "drives [%]")
    drawing.axes[1].set_ylabel("drives [%]")
    if len(configured) > 1:
        plot_parts.legend(drawing.axes[-1], drawing.axes[-1].get_lines(), columns=3)
    values = "the error of each scan, of the 95th percentile of each drive" if has_truth else "the confidence of each drive"
    drawing.caption = (f"How many scans, or drives, have at most such a value: of {values}, and of the share of its scans without a "
                       "trusted pose." + (f" The first {MOST_LINES} configurations." if len(configured) > MOST_LINES else ""))
    return drawing


def _ordered(axes: Any, values: np.ndarray, style: "dict[str, Any]") -> None:
    ordered = np.sort(values[np.isfinite(values)])
    if len(ordered):
        _cumulative(axes, ordered, 100 * np.arange(1, len(ordered) + 1) / len(ordered), style)


def _cumulative(axes: Any, x: np.ndarray, share: np.ndarray, style: "dict[str, Any]") -> None:
    share, x = decimate(share, x, 400)
    axes.step(np.concatenate([x[:1], x]), np.concatenate([[0], share]), where="post", **style)


def _logarithmic(axes: Any, names: str = "x") -> None:
    """0.01, 0.02, 0.05 instead of powers, on these axes; linear ones where the values are alike."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    for name in names:
        low, high = axes.get_xlim() if name == "x" else axes.get_ylim()
        axis = axes.xaxis if name == "x" else axes.yaxis
        if 0 < high < 5 * low:
            axis.set_major_locator(MaxNLocator(5))
            continue
        axes.set(**{f"{name}scale": "log"})
        low, high = axes.get_xlim() if name == "x" else axes.get_ylim()
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 30 * low else (1,)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


# ---- comparisons


def intervals(found: FleetComparison) -> Drawing:
    """Draws one row per test: the difference of drives with its interval, over the margin."""
    names = [one.name for one in found.quantities]
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    drawing = figures.new("intervals", "Differences of drives with their intervals", rows=rows, columns=columns, share_x=False,
                          height_in=0.75 + 0.75 * rows + 0.7 * (rows - 1), gap_in=0.7, top_in=0.3)
    for axes in drawing.axes[len(names):]:
        axes.set_axis_off()
    for axes, name in zip(drawing.axes, names):
        draw_intervals(axes, [test for test in found.tests if test.quantity == name], 2)
        axes.set_title(name)
        axes.set_xlabel(axes.get_xlabel().replace(f" of the {name}", ""))
        axes.set_yticks(axes.get_yticks(), ["mean", "usual"])
    drawing.caption = (f"{found.names[1]} minus {found.names[0]}, with intervals that hold the true difference in 95 of 100 such fleets; "
                       "left of zero the value is smaller than before. Shaded: differences that do not matter. Triangles: tests that tell "
                       "them apart.")
    return drawing


def paired_drives(found: FleetComparison) -> Drawing:
    """Every drive as a point: its value before and now."""
    names = [name for name in ("median translation error", "95 % translation error", "median confidence", "scans without a trusted pose")
             if name in found.values]
    drawing = figures.new("drives", "Each drive before and now", columns=3, share_x=False, height_in=3.05, top_in=0.16)
    for axes in drawing.axes[len(names):]:
        axes.set_axis_off()
    for axes, name in zip(drawing.axes, names):
        first, second = (100 * one if name.startswith("scans") else one for one in found.values[name])
        both = np.isfinite(first) & np.isfinite(second)
        first, second = first[both], second[both]
        step = max(1, len(first) // MOST_DOTS)
        is_error = name.endswith("error")
        low, high = _range(np.concatenate([first, second]), is_error, 1.0 if name.startswith("scans") else 1e-3)
        axes.plot([low, high], [low, high], color=INK, linewidth=0.7)
        axes.plot(first[::step], second[::step], ".", color=MUTED if len(first) > 200 else SECOND, markersize=3, alpha=0.6)
        axes.set(xlim=(low, high), ylim=(low, high))
        if is_error:
            _logarithmic(axes, "xy")
        axes.set_aspect("equal")
        axes.set_title(name + (" [m]" if is_error else " [%]" if name.startswith("scans") else ""))
        axes.set_xlabel("before")
        axes.set_ylabel("now")
    drawing.caption = f"Every drive as a point: {found.names[0]} to the right, {found.names[1]} up. Above the line the value has grown."
    return drawing


def _range(values: np.ndarray, is_log: bool, least: float) -> "tuple[float, float]":
    if is_log:
        values = np.maximum(values, LEAST_M)
        return float(values.min()) / 1.15, float(values.max()) * 1.15
    low, high = float(values.min(initial=0.0 if not len(values) else np.inf)), float(values.max(initial=0.0))
    room = 0.05 * max(high - low, least)
    return low - room, high + room
