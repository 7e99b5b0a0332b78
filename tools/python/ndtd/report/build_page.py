"""The page of a map that ndt-map build has made: the map from above with the way and its loops, the fit of the scans, weak places."""
from pathlib import Path
from typing import Any

import numpy as np

from ..mapping.output import MOVED
from ..maps import find_files
from . import figures, html_parts, map_above, plot_parts, trajectory_figure
from .figures import BLUE, CYCLE, GREEN, PURPLE, VERMILION, Drawing
from .html_parts import figure, hints, section, table, tiles, verdict

MOST_LOOPS, MOST_WEAK, MOST_MOVED = 500, 40, 3000  # drawn, in the table, and drawn
WEAK_PART, THICK_M = 0.02, 0.05  # of the scans; of surfaces: more is worth a look


def write(out: Path, name: str, cloud: Path, mapped: Any, about: "dict[str, Any]") -> None:
    """Writes the page of the map `name`. mapped: a mapping.build.Mapped; about: the content of map.json."""
    box = trajectory_figure.around(mapped.poses[:, :2, 3])
    density, why = map_above.read(cloud, box, *trajectory_figure.pixels(box), [])
    parts = [section("map", "The map", figure(_above(mapped, box, density, out.with_name(MOVED))), html_parts.paragraph(why, "sub") if why else ""),
             section("fit", "How well scans fit those before", figure(_fits(mapped))),
             section("drives", "Recordings", _drives(about)), section("weak", "Weak places", _weak(about))]
    if about["moved"]:
        parts.append(section("moved", "What moved", _moved(about["moved"])))
    contents = [("map", "Map"), ("fit", "Fit"), ("drives", "Recordings"), ("weak", "Weak places")] + ([("moved", "What moved")] if about["moved"] else [])
    head = f"<header><h1>{figures.escape(name)}</h1>{_verdict(about)}{_numbers(about)}</header>"
    html_parts.write(out, html_parts.document(f"Map {name}", contents, head + "".join(parts), "ndt-map build"))


def _above(mapped: Any, box: Any, density: np.ndarray, moved: Path) -> Drawing:
    from matplotlib.lines import Line2D

    one, ax, origin = trajectory_figure.on_map("above", "The map from above, the way, and its loops", box, density)
    handles = []
    for number, (drive, way, first) in enumerate(zip(mapped.drives, mapped.trajectories, mapped.firsts)):
        xy = mapped.poses[first:first + len(way.stamps_ns), :2, 3] - origin
        color = CYCLE[number % len(CYCLE)]
        ax.plot(*xy.T, color=color, linewidth=1.6, zorder=3)
        handles.append(Line2D([], [], color=color, linewidth=1.6, label=Path(drive.name).name))
        weak = ~way.located | way.degenerate
        if weak.any():
            ax.plot(*xy[weak].T, "x", color=VERMILION, markersize=3.5, markeredgewidth=0.8, zorder=5)
    for loop, is_believed in list(zip(mapped.loops, mapped.believed))[:MOST_LOOPS]:
        ends = mapped.poses[[loop.begin, loop.end], :2, 3] - origin
        ax.plot(*ends.T, color=GREEN if is_believed else VERMILION, linewidth=0.8, linestyle=(0, (3, 2)), zorder=4)
    if any(mapped.believed):
        handles.append(Line2D([], [], color=GREEN, linewidth=0.8, linestyle=(0, (3, 2)), label="loops"))
    if moved.exists():
        points = np.concatenate([block.points[:, :2] for cloud in find_files([moved]) for block in cloud.blocks()])
        ax.plot(*(points[::1 + len(points) // MOST_MOVED] - origin).T, ".", color=PURPLE, markersize=1, zorder=2)
        handles.append(Line2D([], [], color=PURPLE, marker=".", linewidth=0, label="moved"))
    plot_parts.legend(ax, handles, columns=6)
    one.caption = "Grey: points of the map. Dashed: pairs of places that were found to be one; red: not believed. Crosses: weak scans."
    return one


def _fits(mapped: Any) -> Drawing:
    one = figures.new("fits", "Fit along the way")
    ax, before_m = one.axes[0], 0.0
    for way in mapped.trajectories:
        x, y = figures.decimate(before_m + way.path_m, way.fit)
        ax.plot(x, y, color=BLUE, linewidth=0.9)
        before_m += float(way.path_m[-1])
    ax.set_ylim(0, 1)
    ax.set_xlabel("way [m]")
    ax.set_ylabel("fit")
    one.caption = "nvtl_normalized * match_ratio of each scan in the local map of the scans before; of one recording after the other."
    return one


def _verdict(about: "dict[str, Any]") -> str:
    scans = sum(drive["scans"] for drive in about["drives"])
    weak = sum(drive["not_located"] + drive["degenerate"] for drive in about["drives"])
    thick_m = about["sharpness"]["median_m"]
    if weak > WEAK_PART * scans:
        return verdict("poor", "weak places", f"{weak} of {scans} scans do not fit, or do not tell the way: see the weak places.")
    if thick_m is not None and thick_m > THICK_M:
        return verdict("fair", "not sharp", f"Surfaces are {100 * thick_m:.1f} cm thick: the poses do not agree everywhere.")
    return verdict("good", "good", f"{scans - weak} of {scans} scans fit those before.")


def _numbers(about: "dict[str, Any]") -> str:
    thick_m, gnss = about["sharpness"]["median_m"], about["gnss"]
    rows = [("Way", f"{sum(drive['way_m'] for drive in about['drives']):.0f} m", f"{sum(drive['scans'] for drive in about['drives'])} scans"),
            ("Loops", str(about["loops_believed"]), _loops(about)),
            ("Surfaces", "\N{EN DASH}" if thick_m is None else f"{100 * thick_m:.1f} cm", "thick, median; a wall measured once: the noise of the sensor"),
            ("Points", f"{about['points']:,}".replace(",", "\N{NO-BREAK SPACE}"), f"one per {about['voxel_m']:g} m")]
    if about["refinement"]:
        rows.append(_refinement(about["refinement"]))
    if about["moved"]:
        rows.append(("Moved", f"{about['moved']['part']:.1%}", "of the points are left out: other scans look through them"))
    if gnss:
        rows.append(("GNSS", f"{gnss['median_m']:.2f} m", f"from {gnss['fixes']} positions, median"))
    return tiles(rows)


def _loops(about: "dict[str, Any]") -> str:
    off = about["loops_off"]
    apart = f"; the map is {100 * off['median_m']:.1f} cm from them, median, {100 * off['most_m']:.1f} at most" if off else ""
    return f"of {about['loops']} that were found{apart}"


def _refinement(one: "dict[str, Any]") -> "tuple[str, str, str]":
    off_m, rounds = one["held_out_m"], one["rounds"]
    if rounds == 0:
        return "Refinement", "none", "scans held out come no nearer to the surfaces"
    before_m, after_m = one["thickness_m"]
    thick = f"; surfaces {100 * before_m:.1f} cm thick before, {100 * after_m:.1f} after" if before_m and after_m else ""
    return "Refinement", f"{rounds} rounds", f"scans held out {100 * off_m[0]:.2f} cm from surfaces before, {100 * off_m[rounds]:.2f} after{thick}"


def _ranges(one: "dict[str, Any]") -> str:
    return f"{100 * one['range_offset_m']:+.1f}" if one["range_offset_m"] else "as measured"


def _drives(about: "dict[str, Any]") -> str:
    return table(["recording", "scans", "way [m]", "deskew", "IMU", "wheels", "ranges [cm]", "usual fit", "refused", "not located", "degenerate", "segments"],
                 [[Path(one["recording"]).name, one["scans"], one["way_m"], one["deskew"], "yes" if one["imu"] else "no",
                   "yes" if one["wheels"] else "no", _ranges(one), one["usual_fit"], one["refused"], one["not_located"], one["degenerate"], one["segments"]]
                  for one in about["drives"]])


def _weak(about: "dict[str, Any]") -> str:
    rows = [[Path(drive["recording"]).name, place["scan"], f"{place['stamp_ns'] * 1e-9:.3f}", place["why"]]
            for drive in about["drives"] for place in drive["weak_places"]]
    if not rows:
        return html_parts.paragraph("None.")
    more = hints("More", [f"{len(rows) - MOST_WEAK} more in map.json"]) if len(rows) > MOST_WEAK else ""
    return table(["recording", "scan", "stamp [s]", "why"], rows[:MOST_WEAK], "text") + more


def _moved(moved: "dict[str, Any]") -> str:
    if not moved["places"]:
        return html_parts.paragraph("Nothing.")
    said = html_parts.paragraph("The points that the map is without are in moved.pcd. Most of them, in cubes of 4 m:", "sub")
    rows = [[*(f"{value:.1f}" for value in one["at_m"]), one["points"]] for one in moved["places"]]
    return said + table(["x [m]", "y [m]", "z [m]", "points"], rows)
