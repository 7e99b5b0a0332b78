"""Parts that the figures of replays share: axes of time, lines with gaps, strips, boxes, units that fit."""
from typing import Any, NamedTuple, Optional

import numpy as np

from . import figures
from .run import Run

GAP_FACTOR = 5.0  # a pause of more than this many usual intervals interrupts lines
MOST_SPANS = 300  # shaded pieces of a figure


class Axis(NamedTuple):
    """The x axis of figures: time, or the way."""

    x: np.ndarray  # (N,)
    label: str
    gaps: np.ndarray  # indices i with a pause between i - 1 and i


def time_axis(run: Run) -> Axis:
    """Seconds after the first scan; minutes or hours where that reads better."""
    length = float(run.time_s.max() - run.time_s.min()) if len(run) else 0.0
    scale, unit = (1.0, "s") if length < 900 else (60.0, "min") if length < 4 * 3600 else (3600.0, "h")
    step = np.diff(run.time_s)
    usual = float(np.median(step)) if len(step) else 0.0
    gaps = np.flatnonzero((step > GAP_FACTOR * usual) | (step < 0)) + 1 if usual > 0 else np.empty(0, int)
    return Axis(run.time_s / scale, f"time [{unit}]", gaps)


def span_x(axes: "list[Any]", axis: Axis) -> None:
    """Sets the same ends for all figures over time."""
    half = half_steps(axis.x)
    for ax in axes:
        ax.set_xlim(float(axis.x.min() - half[0]), float(axis.x.max() + half[0]))


def distance_axis(run: Run) -> Axis:
    """Way since the first pose."""
    far = run.distance_m[-1] > 5000
    return Axis(run.distance_m / (1000.0 if far else 1.0), f"distance travelled [{'km' if far else 'm'}]", time_axis(run).gaps)


def line(ax: Any, axis: Axis, y: np.ndarray, color: str, label: Optional[str] = None, where: "Optional[np.ndarray]" = None,
         **options: Any) -> None:
    """A line that gaps and NaN interrupt; points that stand alone are dots. where: (N,) bool."""
    x = axis.x
    y = np.where(where, y, np.nan) if where is not None else np.asarray(y, float)
    if len(axis.gaps):
        x, y = np.insert(x, axis.gaps, x[axis.gaps]), np.insert(y, axis.gaps, np.nan)
    known = np.isfinite(y)
    alone = known & ~np.concatenate([[False], known[:-1]]) & ~np.concatenate([known[1:], [False]])
    if known.sum() <= 120:
        options.setdefault("marker", "o")
        options.setdefault("markersize", 1.8)
    elif alone.any():
        ax.plot(*figures.decimate(x[alone], y[alone]), color=color, marker=".", markersize=2, linestyle="none")
    ax.plot(*figures.decimate(x, y), color=color, label=label, **options)


def shade_untrusted(axes: "list[Any]", run: Run, axis: Axis) -> bool:
    """Marks the time without a trusted pose behind the lines; whether there is some."""
    spans = spans_of(~run.trusted)
    if len(spans) > MOST_SPANS:  # the longest ones
        spans = sorted(spans, key=lambda one: one[0] - one[1])[:MOST_SPANS]
    half = half_steps(axis.x)
    for ax in axes:
        for begin, end in spans:
            left, right = axis.x[begin] - half[begin], axis.x[end - 1] + half[end - 1]
            ax.axvspan(left, right, color=figures.VERMILION, alpha=0.16, linewidth=0)
    return bool(spans)


def half_steps(x: np.ndarray) -> np.ndarray:
    """(N,) half of the usual step: how far a scan reaches to either side."""
    steps = np.diff(x)
    usual = float(np.median(steps[steps > 0])) if (steps > 0).any() else 1.0
    return np.full(len(x), usual / 2)


def spans_of(flag: np.ndarray) -> "list[tuple[int, int]]":
    """[begin, end) of the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flag.astype(int), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[0::2], edges[1::2])]


def plain_log(ax: Any, both: bool = False) -> None:
    """0.1, 1, 10 instead of powers, on the y axis or on both."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for axis in (ax.yaxis, ax.xaxis)[:1 + both]:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def strip(ax: Any, axis: Axis, names: np.ndarray, order: "dict[str, str]", columns: int = 1500) -> "list[tuple[str, str, int]]":
    """A band whose colour tells the name of each scan; order: name -> colour, the later one wins where scans share a pixel.

    Returns (name, colour, count) of those that occur, in the order of `order`, then unknown ones in grey."""
    known = list(order) + sorted(set(names) - set(order))
    code = np.array([known.index(name) for name in names])
    x, half = axis.x, half_steps(axis.x)
    left, right = float(x.min() - half[0]), float(x.max() + half[-1])
    columns = int(min(columns, max(4 * len(x), 200)))
    cell = (right - left) / columns
    order_x = np.argsort(x, kind="stable")
    middle = left + (np.arange(columns) + 0.5) * cell
    after = np.clip(np.searchsorted(x[order_x], middle), 1, max(len(x) - 1, 1)) if len(x) > 1 else np.zeros(columns, int)
    before = np.maximum(after - 1, 0)
    nearest = np.where(np.abs(x[order_x[after]] - middle) < np.abs(x[order_x[before]] - middle), after, before)
    row = np.where(np.abs(x[order_x[nearest]] - middle) <= 2 * half[0] + cell, code[order_x[nearest]], -1)
    np.maximum.at(row, np.clip(((x - left) / cell).astype(int), 0, columns - 1), code)  # the rare ones win
    for begin, end in spans_of(row >= 0):
        edges = np.flatnonzero(np.diff(row[begin:end])) + begin + 1
        for a, b in zip(np.concatenate([[begin], edges]), np.concatenate([edges, [end]])):
            ax.barh(0, (b - a) * cell, left=left + a * cell, height=0.9, color=order.get(known[row[a]], figures.GREY))
    ax.set_ylim(-0.5, 0.5)
    ax.set_yticks([])
    ax.grid(False)
    ax.spines["left"].set_visible(False)
    return [(name, order.get(name, figures.GREY), int((code == c).sum())) for c, name in enumerate(known) if (code == c).any()]


def boxes(ax: Any, samples: "list[np.ndarray]", labels: "list[str]", color: str) -> None:
    """Quartiles as boxes with the median, lines to 5 % and 95 %, the largest as a dot."""
    for at, values in enumerate(samples):
        if len(values) == 0:
            ax.text(at, 0.5, "too short", ha="center", va="center", color=figures.MUTED, transform=ax.get_xaxis_transform())
            continue
        p5, p25, p50, p75, p95 = np.percentile(values, (5, 25, 50, 75, 95))
        ax.plot([at, at], [p5, p95], color=color, linewidth=1.2)
        ax.bar(at, p75 - p25, bottom=p25, width=0.46, color=color, alpha=0.45)
        ax.plot([at - 0.23, at + 0.23], [p50, p50], color=figures.INK, linewidth=1.4)
        ax.plot(at, values.max(), "o", color=color, markersize=3)
        ax.annotate(f"{p50:.2g}", (at + 0.26, p50), va="center", fontsize=7, color=figures.INK)
    ax.set_xticks(range(len(labels)), labels)
    ax.set_xlim(-0.6, len(labels) - 0.4)
    ax.set_ylim(bottom=0)
    ax.grid(False, axis="x")


def legend(ax: Any, handles: "Optional[list[Any]]" = None, columns: int = 8, above: bool = True) -> None:
    """Draws a legend of one row above the axes, at the right; or within them if `above` is false."""
    found = handles if handles is not None else [one for one in ax.get_legend_handles_labels()[0]]
    if not found:
        return
    options = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)} if above else {"loc": "best"}
    ax.legend(handles=found, ncol=min(columns, len(found)), columnspacing=1.2, handletextpad=0.5, **options)


def length_unit(values: np.ndarray) -> "tuple[float, str]":
    """Factor from metres and unit in which numbers have few digits."""
    top = np.nanpercentile(np.abs(values), 98) if np.isfinite(values).any() else 0.0
    return (1000.0, "mm") if top < 0.005 else (100.0, "cm") if top < 1.0 else (1.0, "m")


def from_zero(ax: Any, values: np.ndarray, most_ratio: float = 40.0) -> None:
    """y from zero; logarithmic where the largest value hides the usual ones."""
    finite = values[np.isfinite(values) & (values > 0)]
    if len(finite) == 0:
        ax.set_ylim(0, 1)
    elif finite.max() > most_ratio * np.median(finite):
        ax.set_yscale("log")
        plain_log(ax)
        ax.set_ylim(max(np.percentile(finite, 1) / 2, finite.max() * 1e-6), finite.max() * 1.6)
    else:
        ax.set_ylim(0, finite.max() * 1.08)
