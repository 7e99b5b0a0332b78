"""The trajectory over the map, from above: axes in metres of equal length."""
from typing import Any

import numpy as np

from . import figures, plot_parts, raster
from .figures import BLUE, INK, ORANGE, PAPER, SKY, VERMILION, Drawing
from .raster import Box
from .run import Run

MARGIN_M, MARGIN_PART = 12.0, 0.06
LEAST_ASPECT, MOST_ASPECT = 0.38, 0.72  # height over width of the axes
FAR_M = 10_000.0  # coordinates beyond are shown relative to a round number
MAP_COLUMNS = 1100
CONFIDENCE = ((0.99, BLUE, "confidence 0.99 or more"), (0.9, SKY, "0.9 to 0.99"), (0.5, ORANGE, "0.5 to 0.9"),
              (-1.0, VERMILION, "below 0.5"))
MOST_TRAIL = 3000  # poses


def extent(run: Run) -> Box:
    """The trusted poses and the ground truth with a margin, in the shape of the figure; of all poses where none is trusted."""
    known = [run.pose[run.trusted, :2], run.truth[np.isfinite(run.truth[:, 0]), :2]]
    if not sum(map(len, known)):
        known = [run.pose[np.isfinite(run.pose[:, 0]), :2], run.guess[np.isfinite(run.guess[:, 0]), :2]]
    points = np.concatenate(known)
    if len(points) == 0:
        return Box(-50.0, -25.0, 100.0, 50.0)
    return around(points)


def around(points: np.ndarray) -> Box:
    """Box around the points (N, 2), N > 0, with a margin, in the shape of the figure."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = (high - low) + 2 * np.maximum(MARGIN_M, MARGIN_PART * (high - low).max())
    width, height = max(size[0], size[1] / MOST_ASPECT), max(size[1], size[0] * LEAST_ASPECT)
    return Box.around((low + high) / 2, float(width), float(height))


def pixels(box: Box) -> "tuple[int, int]":
    """Columns and rows of the picture of the map."""
    return MAP_COLUMNS, max(1, round(MAP_COLUMNS * box.height / box.width))


def draw(run: Run, box: Box, density: np.ndarray, worst: "list[int]") -> Drawing:
    """density: counts of pixels(box); worst: rows of the run that are marked and numbered."""
    one, ax, origin = on_map("trajectory", "Trajectory over the map, from above", box, density)
    handles = _trail(ax, run, origin) + _truth(ax, run, origin)
    _ends(ax, run, box, origin, worst)
    plot_parts.legend(ax, handles, columns=7)
    one.caption = ("Grey: points of the map. Line: trusted poses by confidence" +
                   ("; dashed: ground truth" if run.has_truth else "") +
                   ("; numbers: the worst scans, see below." if worst else "."))
    return one


def on_map(name: str, title: str, box: Box, density: np.ndarray) -> "tuple[Drawing, Any, np.ndarray]":
    """A figure with the map in grey: drawing, axes, and the place of the map (2,) where their coordinates are zero."""
    axes_width = figures.WIDTH_IN - figures.LEFT_IN - figures.RIGHT_IN
    height = axes_width * box.height / box.width + figures.BOTTOM_IN + 0.34
    one = figures.new(name, title, height_in=height, top_in=0.34)
    ax, origin = one.axes[0], _origin(box)
    x, y = box.x - origin[0], box.y - origin[1]
    ax.imshow(raster.map_rgba(density), extent=(x, x + box.width, y, y + box.height), aspect="equal", zorder=0)
    _scale_bar(ax, box, origin)
    ax.set_xlim(x, x + box.width)
    ax.set_ylim(y, y + box.height)
    ax.grid(False)
    ax.set_xlabel(_label("x", origin[0]))
    ax.set_ylabel(_label("y", origin[1]))
    if max(box.width, box.height) > FAR_M:
        _in_kilometres(ax)
    return one, ax, origin


def _origin(box: Box) -> np.ndarray:
    centre = np.array([box.x + box.width / 2, box.y + box.height / 2])
    return np.where(np.abs(centre) > FAR_M, np.floor(centre / 1000.0) * 1000.0, 0.0)


def _label(name: str, origin: float) -> str:
    if origin == 0.0:
        return f"{name} [m]"
    sign, size = ("\N{MINUS SIGN}" if origin > 0 else "+"), f"{abs(origin):,.0f}".replace(",", "\N{NO-BREAK SPACE}")
    return f"{name} {sign} {size} [m]"


def _in_kilometres(ax: Any) -> None:
    from matplotlib.ticker import FuncFormatter

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:g}"))
        axis.set_label_text(axis.get_label_text().replace("[m]", "[km]"))


def _trail(ax: Any, run: Run, origin: np.ndarray) -> "list[Any]":
    """Trusted poses as pieces of one colour each, others as crosses; returns what the legend shows."""
    from matplotlib.lines import Line2D

    xy, level, handles = run.pose[:, :2] - origin, _levels(run), []
    moved = _jumps(xy)
    for i, (_, color, label) in enumerate(CONFIDENCE):
        mine = level == i
        if not mine.any():
            continue
        joined = mine | (np.concatenate([[False], mine[:-1]]) & (level >= 0) & ~moved)  # up to the next piece
        alone = mine & ~np.concatenate([[False], joined[:-1]]) & ~np.concatenate([joined[1:], [False]])
        ax.plot(*_interrupted(xy, joined, moved).T, color=color, linewidth=2.2, solid_capstyle="round", zorder=3)
        ax.plot(*xy[alone].T, "o", color=color, markersize=2.2, markeredgewidth=0, zorder=3)
        handles.append(Line2D([], [], color=color, linewidth=2.2, label=label))
    other = ~run.trusted & np.isfinite(run.pose[:, 0])
    if other.any():
        step = max(1, int(other.sum()) // 600)
        ax.plot(*xy[other][::step].T, "x", color=VERMILION, markersize=3.5, markeredgewidth=0.8, zorder=4)
        handles.append(Line2D([], [], color=VERMILION, marker="x", markersize=4, linestyle="none", label="not trusted"))
    return handles


def _levels(run: Run) -> np.ndarray:
    """(N,) index into CONFIDENCE, the worst of each k scans of long drives; -1 where not trusted."""
    confidence = np.where(np.isfinite(run.values["confidence"]), run.values["confidence"], 1.0)
    level = np.select([confidence >= least for least, _, _ in CONFIDENCE], np.arange(len(CONFIDENCE)), len(CONFIDENCE) - 1)
    level = np.where(run.trusted, level, -1)
    step = max(1, -(-len(run) // MOST_TRAIL))
    worst = np.repeat(np.maximum.reduceat(level, np.arange(0, len(run), step)), step)[:len(run)]
    return np.where(level < 0, -1, worst)


def _jumps(xy: np.ndarray) -> np.ndarray:
    """(N,) bool: farther from the one before than a vehicle drives between scans."""
    step = np.hypot(*np.diff(xy, axis=0, prepend=xy[:1]).T)
    usual = np.nanmedian(step) if np.isfinite(step).any() else 0.0
    out: np.ndarray = np.nan_to_num(step) > max(20.0 * usual, 10.0)
    return out


def _interrupted(xy: np.ndarray, shown: np.ndarray, jumps: np.ndarray) -> np.ndarray:
    """Positions with NaN where they are not shown and before jumps."""
    at = np.flatnonzero(jumps)
    out: np.ndarray = np.insert(np.where(shown[:, None], xy, np.nan), at, np.nan, axis=0)
    return out


def _truth(ax: Any, run: Run, origin: np.ndarray) -> "list[Any]":
    from matplotlib.lines import Line2D

    if not run.has_truth:
        return []
    xy = run.truth[:, :2] - origin
    options: "dict[str, Any]" = {"color": INK, "linewidth": 0.8, "linestyle": (0, (3, 2))}
    ax.plot(*_interrupted(xy, np.isfinite(xy[:, 0]), _jumps(xy)).T, zorder=5, **options)
    return [Line2D([], [], label="ground truth", **options)]


def _ends(ax: Any, run: Run, box: Box, origin: np.ndarray, worst: "list[int]") -> None:
    known = np.flatnonzero(run.trusted)
    if len(known):
        ends = ((known[0], "begin", "o"), (known[-1], "end", "s")) if len(known) > 1 else ((known[0], "begin and end", "o"),)
        for row, text, mark in ends:
            x, y = run.pose[row, :2] - origin
            ax.plot(x, y, mark, color=PAPER, markeredgecolor=INK, markeredgewidth=1.2, markersize=6, zorder=7)
            note(ax, text, x, y, (7, 6), INK, 8)
    labels: "list[tuple[np.ndarray, list[str]]]" = []
    for number, row in enumerate(worst, 1):
        place = (run.pose if np.isfinite(run.pose[row, 0]) else run.guess)[row, :2] - origin
        if not box.holds((place + origin)[None])[0]:
            continue
        ax.plot(*place, "o", color=VERMILION, markeredgecolor=PAPER, markeredgewidth=0.6, markersize=3.6, zorder=6)
        near = next((one for one in labels if np.hypot(*(one[0] - place)) < 0.03 * box.width), None)
        near[1].append(str(number)) if near else labels.append((place, [str(number)]))
    for place, numbers in labels:
        text = ", ".join(numbers[:3]) + (" \N{HORIZONTAL ELLIPSIS}" if len(numbers) > 3 else "")
        note(ax, text, place[0], place[1], (4, -10), VERMILION, 7)


def note(ax: Any, text: str, x: float, y: float, offset: "tuple[float, float]", color: str, size: float) -> None:
    ax.annotate(text, (x, y), xytext=offset, textcoords="offset points", fontsize=size, color=color, fontweight="bold", zorder=8,
                bbox={"boxstyle": "round,pad=0.12", "facecolor": PAPER, "edgecolor": "none", "alpha": 0.75})


def _scale_bar(ax: Any, box: Box, origin: np.ndarray) -> None:
    wanted = box.width / 6
    power = 10.0 ** np.floor(np.log10(wanted))
    length = float(max(m for m in (1, 2, 5) if m * power <= wanted) * power)
    x, y = box.x - origin[0] + box.width * 0.025, box.y - origin[1] + box.height * 0.05
    ax.plot([x, x + length], [y, y], color=INK, linewidth=2.5, solid_capstyle="butt", zorder=8)
    ax.annotate(f"{length:g} m" if length < 1000 else f"{length / 1000:g} km", (x + length / 2, y), xytext=(0, 4),
                textcoords="offset points", ha="center", fontsize=8, color=INK, zorder=8,
                bbox={"boxstyle": "round,pad=0.12", "facecolor": PAPER, "edgecolor": "none", "alpha": 0.75})
