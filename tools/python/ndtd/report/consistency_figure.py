"""Figures of `ndt-bench consistency`: coverage of the covariances, errors over sigma, errors over the drive; acceptance by confidence."""
from typing import Any

import numpy as np

from . import figures
from .bench_tables import Table
from .curve_parts import margins
from .figures import BLUE, GRID, INK, MUTED, ORANGE, SKY, Drawing

NOMINAL = {"within_1": 68.27, "within_2": 95.45, "within_3": 99.73}
COLOURS = (BLUE, SKY, figures.GREY)
LIMIT = 5  # of the histograms, in sigma
SCALE = {"cm": 100.0, "deg": 180 / np.pi}


def draw_consistency(coverage: Table, tables: "list[Table]") -> Drawing:
    """Above: the share of errors within one, two and three sigma per axis, and the nominal one. With the table `scans` also errors over
    sigma against the normal density, and the errors of the first seed in a band of three sigma."""
    scans = next((table for table in tables if table.has("seed", "time_s", "nees")), None)
    axes_rows = [row for row in coverage.rows if row.get("mean_sigma") is not None]
    if scans is None or not axes_rows:
        drawing = figures.new("consistency", "Errors within sigma", height_in=2.4)
        _draw_coverage(drawing.axes[0], coverage)
        margins(drawing, top_in=0.32)
        return drawing
    drawing = figures.new("consistency", "Consistency", rows=3, columns=len(axes_rows), height_in=6.2, share_x=False, gap_in=0.62,
                          column_gap_in=0.42)
    for axes in drawing.axes[:len(axes_rows)]:
        axes.remove()
    bottom = drawing.axes[len(axes_rows):]
    top = drawing.figure.add_subplot(bottom[0].get_gridspec()[0, :])
    _draw_coverage(top, coverage)
    rows = [row for row in scans.rows if row.get("nees") is not None]
    first = [row for row in rows if row["seed"] == rows[0]["seed"]]
    time_s = np.array([row["time_s"] for row in first], float)
    for at, row in enumerate(axes_rows):
        name, unit = str(row["axis"]), str(row["unit"])

        def column(kind: str, of: "list[Any]") -> np.ndarray:
            return SCALE.get(unit, 1.0) * np.array([one.get(f"{kind}_{name}") for one in of], float)

        _draw_histogram(bottom[at], name, column("error", rows), column("sigma", rows))
        _draw_drive(bottom[len(axes_rows) + at], unit, time_s, column("error", first), column("sigma", first))
    bottom[len(axes_rows)].set_ylabel("error, 3 sigma [cm]")
    margins(drawing, top_in=0.32)
    drawing.axes = [top, *bottom]
    drawing.caption = _summary(tables)
    return drawing


def _draw_coverage(axes: Any, coverage: Table) -> None:
    rows = [row for row in coverage.rows if row["axis"] != "nominal"]
    names = [str(row["axis"]) for row in rows]
    for k, (key, colour) in enumerate(zip(NOMINAL, COLOURS)):
        places = np.arange(len(names)) + 0.27 * (k - 1)
        axes.bar(places, [row[key] for row in rows], 0.25, color=colour, label=f"{k + 1} sigma")
        axes.hlines([NOMINAL[key]] * len(names), places - 0.125, places + 0.125, color=INK, linewidth=1.2)
    axes.plot([], [], color=INK, linewidth=1.2, label="nominal")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylim(0, 104)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.grid(False, axis="x")
    axes.set_ylabel("within [%]")
    axes.legend(loc="lower left", ncol=4, bbox_to_anchor=(-0.005, 0.99))


def _draw_histogram(axes: Any, name: str, errors: np.ndarray, sigmas: np.ndarray) -> None:
    normalised = np.clip(errors / sigmas, -LIMIT, LIMIT)
    x = np.linspace(-LIMIT, LIMIT, 200)
    axes.hist(normalised, np.linspace(-LIMIT, LIMIT, 41), density=True, color=SKY, histtype="stepfilled")
    axes.plot(x, np.exp(-x * x / 2) / np.sqrt(2 * np.pi), color=INK, linewidth=1)
    axes.set_title(f"{name}: rms {np.sqrt(np.mean((errors / sigmas) ** 2)):.2f}")
    axes.set_xlabel("error / sigma")
    axes.set_yticks([])


def _draw_drive(axes: Any, unit: str, time_s: np.ndarray, errors: np.ndarray, sigmas: np.ndarray) -> None:
    axes.fill_between(time_s, -3 * sigmas, 3 * sigmas, color=GRID, linewidth=0)
    axes.plot(time_s, errors, color=BLUE, linewidth=0.8)
    axes.axhline(0, color=MUTED, linewidth=0.4)
    # The first scans know nothing of the velocity: their band would hide all others.
    reach = 1.1 * max(float(np.quantile(3 * sigmas, 0.95)), float(np.abs(errors).max()))
    axes.set_ylim(-reach, reach)
    axes.set_xlabel("time [s]")
    axes.set_title(f"[{unit}]")


def _summary(tables: "list[Table]") -> str:
    numbers = {key: value for table in tables if table.name in ("consistency", "drive") for key, value in table.rows[0].items()
               if isinstance(value, float)}
    shown = "Middle: errors of all seeds over sigma; below: errors of the first seed in a band of 3 sigma."
    if not all(key in numbers for key in ("nees", "nees_low", "nees_high", "scans", "seeds")):
        return shown
    where = "within" if numbers["nees_low"] <= numbers["nees"] <= numbers["nees_high"] else "outside of"
    return (f"NEES {numbers['nees']:.2f}, {where} its 99 % band of {numbers['nees_low']:.2f} to {numbers['nees_high']:.2f}; "
            f"{numbers['scans']:.0f} scans, {numbers['seeds']:.0f} seeds. {shown}")


def draw_acceptance(table: Table, _: "list[Table]") -> Drawing:
    """Right poses that are accepted, and wrong ones, over the threshold."""
    parts = [part for part in (("true_accepts", "right"), ("false_accepts", "wrong")) if table.numbers(part[0])]
    drawing = figures.new("acceptance", "Acceptance of poses", columns=max(1, len(parts)), height_in=2.5)
    for name, colour in zip(dict.fromkeys(str(row["by"]) for row in table.rows), (BLUE, ORANGE, figures.GREEN, figures.PURPLE)):
        rows = [row for row in table.rows if str(row["by"]) == name and isinstance(row["threshold"], float)]
        for axes, (part, of) in zip(drawing.axes, parts):
            share = [one if isinstance(one := row[part], float) else np.nan for row in rows]
            axes.plot([row["threshold"] for row in rows], share, "o-", color=colour, label=name)
            axes.set_xlabel("threshold")
            axes.set_ylabel(f"accepted of the {of} poses [%]")
    for axes in drawing.axes:
        axes.set_ylim(-3, 103)
    drawing.axes[0].legend(loc="lower left")
    return drawing
