"""Draws the tables of ndt-bench: basins, consistency, comparisons, sweeps. A table is known by its columns.

    tables = bench_tables.read("basin.json")
    for table in tables:
        drawing = curves.draw(table, tables)     # None: nothing to draw

A new kind of table needs a row in KINDS, or none if it is a sweep: a column of X_COLUMNS against one of Y_COLUMNS.
"""
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

from . import figures
from .bench_tables import Cell, Row, Table
from .consistency_figure import draw_acceptance, draw_consistency
from .curve_parts import factor_axis, margins
from .figures import CYCLE, GRID, INK, MUTED, Drawing

# Columns that a sweep is drawn over, and those that are drawn: the first one that is there and varies, or is there.
X_COLUMNS = ("items", "poses", "waiting", "tiles", "km2", "points", "threads", "voxels")
Y_COLUMNS = ("align_ms", "per_item_us", "per_pose_us", "evaluation_us", "together_ms", "dense_ms",
             "align_us", "median_us", "build_ms", "per_evaluation_us", "median_ms", "preprocess_us", "open_ms", "ns_per_point")
SERIES = ("variant", "backend", "scored_by", "levels", "neighbours", "tier", "of", "threads", "points", "tiles")  # what makes a line
MOST_SERIES = 14
MARKERS = "osD^v<>"


class Kind(NamedTuple):
    """A kind of table: its columns, its drawing."""

    columns: "tuple[str, ...]"
    draw: "Callable[[Table, list[Table]], Optional[Drawing]]"


def draw(table: Table, tables: "list[Table]") -> "Optional[Drawing]":
    """The figure of a table; None where it has one row, or nothing that can be drawn. `tables`: of the same file."""
    for kind in KINDS:
        if table.has(*kind.columns):
            return kind.draw(table, tables)
    return None


def slug(name: str) -> str:
    """A name for files and anchors."""
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in name.lower()).strip("-")[:40] or "table"


# ---- lines


def _lines(rows: "list[Row]", x: str, y: "list[str]") -> "dict[str, list[Row]]":
    """The rows that have a number to draw, by the series columns that tell them apart."""
    rows = [row for row in rows if any(isinstance(row.get(column), float) for column in y)]
    by: "list[str]" = []
    for column in SERIES:  # what does not tell more lines apart is left out
        tuples = {columns: len({tuple(row.get(one) for one in columns) for row in rows}) for columns in (tuple(by), (*by, column))}
        if column != x and tuples[(*by, column)] > tuples[tuple(by)]:
            by.append(column)
    out: "dict[str, list[Row]]" = {}
    for row in rows:
        label = ", ".join(_named(column, row.get(column)) for column in by if row.get(column) is not None)
        out.setdefault(label, []).append(row)
    return dict(list(out.items())[:MOST_SERIES])


def _named(column: str, value: Cell) -> str:
    if column in ("points", "threads", "tiles"):
        return f"{_plain(value)} {column[:-1] if value == 1 else column}"
    return f"levels {_plain(value)}" if column == "levels" else _plain(value)


def _plain(value: Cell) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _style(at: int) -> "dict[str, Any]":
    return {"color": CYCLE[at % len(CYCLE)], "marker": MARKERS[at % len(MARKERS)], "linestyle": "-" if at < len(CYCLE) else "--",
            "markersize": 4}


def _values(rows: "list[Row]", column: str) -> np.ndarray:
    return np.array([value if isinstance(value := row.get(column), float) else np.nan for row in rows])


def label_of(column: str) -> str:
    """"align_ms" is "align [ms]"."""
    for suffix, unit in (("_percent", "%"), ("_per_s", "1/s"), ("_ms", "ms"), ("_us", "us"), ("_ns", "ns"), ("_cm", "cm"), ("_mm", "mm"),
                         ("_deg", "deg"), ("_mib", "MiB"), ("_m", "m")):
        if column.endswith(suffix):
            return f"{column[:-len(suffix)].replace('_', ' ')} [{unit}]"
    return "map [km2]" if column == "km2" else column.replace("_", " ")


def _legend(drawing: Drawing, lines: int) -> None:
    """Above the axes, so that no line is hidden; the figure grows."""
    if lines < 2:
        return
    handles, labels = drawing.axes[0].get_legend_handles_labels()
    columns = max(1, min(lines, 4, int(130 / (max(len(label) for label in labels) + 6))))
    margins(drawing, top_in=figures.TOP_IN + 0.2 * -(-lines // columns) + 0.04)
    drawing.figure.legend(handles, labels, loc="upper left", ncol=columns, bbox_to_anchor=(drawing.axes[0].get_position().x0, 0.997))


def _sweep(table: Table, _: "list[Table]") -> "Optional[Drawing]":
    """A line per series."""
    x = next((column for column in X_COLUMNS if table.numbers(column) and table.varies(column)), "")
    y = next((column for column in Y_COLUMNS if table.numbers(column)), "")
    lines = _lines(table.rows, x, [y])
    if not x or not any(len(rows) > 1 for rows in lines.values()):
        return None
    drawing = figures.new(slug(table.name), f"{table.title or table.name}: {label_of(y)} over {label_of(x)}", height_in=3.0)
    axes = drawing.axes[0]
    for at, (label, line) in enumerate(lines.items()):
        line = sorted(line, key=lambda row: float(row.get(x) or 0))
        axes.plot(_values(line, x), _values(line, y), label=label, **_style(at))
    axes.margins(x=0.025)
    _scale_axes(axes, _values(table.rows, x), _values(table.rows, y))
    axes.set_xlabel(label_of(x))
    axes.set_ylabel(label_of(y))
    _legend(drawing, len(lines))
    return drawing


def _scale_axes(axes: Any, x: np.ndarray, y: np.ndarray) -> None:
    """Logarithmic where values span more than a factor of 8; few values of x are the ticks."""
    for values, set_scale, axis in ((x, axes.set_xscale, axes.xaxis), (y, axes.set_yscale, axes.yaxis)):
        values = np.unique(values[np.isfinite(values)])
        is_log = len(values) > 1 and values[0] > 0 and values[-1] > 8 * values[0]
        if is_log:
            set_scale("log")
        elif axis is axes.yaxis and len(values) and values[0] >= 0:
            axes.set_ylim(0, 1.08 * values[-1] or 1)
        near = np.diff(np.log(values) if is_log else values) < 0.06 * np.ptp(np.log(values) if is_log else values)
        if axis is axes.xaxis and len(values) <= 10 and not near.any():
            axis.set_ticks(values, [_short_number(value) for value in values])
        elif is_log:
            low, high = values[0] / 1.25, values[-1] * 1.25
            ticks = [base * 10.0 ** power for power in range(-6, 10) for base in (1, 2, 5) if low <= base * 10.0 ** power <= high]
            ticks = [tick for tick in ticks if len(ticks) <= 8 or f"{tick:e}"[0] == "1"]
            axis.set_ticks(ticks, [_short_number(tick) for tick in ticks])
        if is_log:
            axis.set_ticks([], minor=True)


def _short_number(value: float) -> str:
    return f"{value / 1e6:.3g}M" if value >= 1e6 else f"{value / 1e3:.3g}k" if value >= 1e4 else f"{value:.4g}"


# ---- basins of convergence, confidence


def _basin(table: Table, _: "list[Table]") -> Drawing:
    columns = [column for column in ("success_percent", "believed_wrong_percent", "align_ms") if table.has(column)]
    return _over_offsets(table, columns, "Basin of convergence")


def _confidence(table: Table, _: "list[Table]") -> Drawing:
    return _over_offsets(table, ["right_percent", "converged_percent", "believed_wrong_percent"], "Alignments from right and wrong starts")


def _over_offsets(table: Table, columns: "list[str]", title: str) -> Drawing:
    places = list(dict.fromkeys(str(row["off_by_up_to"]) for row in table.rows))
    if table.has("prior"):
        lines: "dict[str, list[Row]]" = {}
        for row in table.rows:
            share = row.get("prior")
            label = f"prior of {share:g} of the offset" if isinstance(share, float) and share else "without a prior"
            lines.setdefault(label, []).append(row)
    else:
        lines = _lines(table.rows, "off_by_up_to", columns)
    drawing = figures.new(slug(table.name), title, columns=len(columns), height_in=2.9, column_gap_in=0.62)
    for axes, column in zip(drawing.axes, columns):
        for at, (label, rows) in enumerate(lines.items()):
            axes.plot([places.index(str(row["off_by_up_to"])) for row in rows], _values(rows, column), label=label, **_style(at))
        axes.set_xticks(range(len(places)), [place.replace(" m ", " m\n") for place in places])
        axes.set_ylabel(label_of(column))
        axes.set_ylim(*((-3, 103) if column.endswith("_percent") else (0, None)))
        axes.margins(x=0.08)
        axes.set_xlabel("start off by up to")
    margins(drawing, bottom_in=0.6)
    _legend(drawing, len(lines))
    return drawing


# ---- comparisons


def _compare(table: Table, _: "list[Table]") -> "Optional[Drawing]":
    """Factors with their quartiles, one row per value, experiments below one another."""
    rows = [row for row in table.rows if all(isinstance(row.get(key), float) for key in ("factor", "factor_low", "factor_high"))]
    if not rows:
        return None
    drawing = figures.new(slug(table.name), "Factors against the first value", height_in=0.75 + 0.23 * len(rows))
    colours = {"faster": figures.GREEN, "slower": figures.VERMILION}
    labels = []
    axes = drawing.axes[0]
    for place, row in enumerate(rows):
        colour, marker = colours.get(str(row.get("verdict")), MUTED), {"faster": "^", "slower": "v"}.get(str(row.get("verdict")), "o")
        first = next(other for other in table.rows if other.get("experiment") == row.get("experiment"))
        labels.append(f"{row['experiment']}: {_plain(row['value'])} against {_plain(first['value'])}")
        axes.plot([row["factor_low"], row["factor_high"]], [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
        axes.plot([row["factor"]], [place], marker, color=colour, markersize=6)
    axes.axvspan(0.98, 1.02, color=GRID, alpha=0.8, linewidth=0, zorder=0)
    axes.axvline(1, color=INK, linewidth=0.8, zorder=0.5)
    axes.set_yticks(range(len(rows)), labels)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(False, axis="y")
    factor_axis(axes, np.concatenate([_values(rows, "factor_low"), _values(rows, "factor_high")]))
    axes.set_xlabel("factor: above 1 faster than the first value")
    margins(drawing, left_in=min(4.0, 0.25 + 0.066 * max(len(label) for label in labels)))
    drawing.caption = ("Median over the rounds of the time of the first value over that of this one, with its quartiles; shaded: less than "
                       "2 %.")
    return drawing


KINDS = (
    Kind(("off_by_up_to", "success_percent"), _basin),
    Kind(("off_by_up_to", "right_percent"), _confidence),
    Kind(("experiment", "factor", "factor_low"), _compare),
    Kind(("axis", "within_1", "within_2", "within_3"), draw_consistency),
    Kind(("by", "threshold", "true_accepts", "false_accepts"), draw_acceptance),
    Kind((), _sweep),
)
