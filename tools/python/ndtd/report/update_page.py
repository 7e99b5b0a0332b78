"""Changes of an overlay from above, and the page of ndt-map update about it: changes, places, proof, recordings."""
from pathlib import Path
from typing import Any, Optional

import numpy as np

from . import figures, html_parts, map_above, plot_parts, trajectory_figure
from .figures import BLUE, CYCLE, VERMILION, Drawing
from .html_parts import figure, section, table, tiles, verdict

MOST_DRAWN = 30_000  # points of a colour


def above(cloud: Path, gone: np.ndarray, new: np.ndarray, ways: "dict[str, list[list[float]]]") -> Drawing:
    """The map in grey, the points that are gone and the new ones on it, and where the recordings looked from."""
    from matplotlib.lines import Line2D

    seen = [np.asarray(way, np.float64).reshape(-1, 2) for way in ways.values()]
    box = trajectory_figure.around(np.concatenate([gone[:, :2], new[:, :2], *seen]))
    density, _ = map_above.read(cloud, box, *trajectory_figure.pixels(box), [])
    one, ax, origin = trajectory_figure.on_map("changes", "What has changed, from above", box, density)
    handles = [Line2D([], [], color=figures.GREY, marker="s", linewidth=0, label="kept")]
    for number, (name, way) in enumerate(zip(ways, seen)):
        color = CYCLE[(number + 2) % len(CYCLE)]
        ax.plot(*(way - origin).T, color=color, linewidth=0.8, zorder=2)
        if number < 3:
            handles.append(Line2D([], [], color=color, linewidth=0.8, label=Path(name).name))
    for points, color, label in ((gone, VERMILION, "gone"), (new, BLUE, "new")):
        ax.plot(*(points[::1 + len(points) // MOST_DRAWN, :2] - origin).T, ".", color=color, markersize=1.6, markeredgewidth=0, zorder=4)
        handles.append(Line2D([], [], color=color, marker=".", linewidth=0, label=f"{label}: {len(points)} points"))
    plot_parts.legend(ax, handles, columns=6)
    one.caption = "Grey: points of the map that stay. Lines: from where the scans looked that voted."
    return one


def _proof(about: "dict[str, Any]") -> str:
    rows = []
    for one in about["proof"]:
        scale, unit, digits = (100, "cm", 2) if one["measure"] == "error_m" else (1, "fit", 3)
        for name in one["before"]:
            rows.append([Path(one["recording"]).name, one["scans"], one["lost_before"], one["lost_after"], f"{name} [{unit}]",
                         f"{scale * one['before'][name]:.{digits}f}", f"{scale * one['after'][name]:.{digits}f}"])
    return table(["held out", "scans", "lost, old map", "lost, renewed", "measure", "old map", "renewed"], rows)


def _recordings(about: "dict[str, Any]") -> str:
    return table(["recording", "scans", "verified", "voted", "not held", "note"],
                 [[Path(one["recording"]).name, one["scans"], one["verified"], one["voted"], one["not_held"], one["note"]]
                  for one in about["recordings"]])


def _places(about: "dict[str, Any]") -> str:
    rows = [[*(f"{value:.1f}" for value in one["at_m"]), one["removed"], one["added"]] for one in about["changes"]["places"]]
    return table(["x [m]", "y [m]", "z [m]", "gone", "new"], rows) if rows else html_parts.paragraph("None.")


def write(out: Path, cloud: Path, gone: np.ndarray, new: np.ndarray, about: "dict[str, Any]", overlay: str) -> None:
    """Writes the page. about: the content of overlay.json."""
    cells, found = about["cells"], about["changes"]
    head = verdict("good", "renewed", f"{found['removed']} points leave and {found['added']} are added; no held-out recording gets worse.")
    looked = cells["mapped"] - cells["not_looked_at"]
    head += tiles([("Gone", str(found["removed"]), "points"), ("New", str(found["added"]), "points"),
                   ("Looked at", f"{looked / max(cells['mapped'], 1):.0%}", f"of {cells['mapped']} cells around the ways")])
    parts = [section("changes", "What has changed", figure(above(cloud, gone, new, about["ways_m"]))),
             section("places", "Places with most change, cubes of 4 m", _places(about)),
             section("proof", "Held out, in both maps", _proof(about)), section("recordings", "Recordings", _recordings(about))]
    contents = [("changes", "Changes"), ("places", "Places"), ("proof", "Proof"), ("recordings", "Recordings")]
    title = f"Overlay {overlay}"
    html_parts.write(out, html_parts.document(title, contents, f"<header><h1>{figures.escape(title)}</h1>{head}</header>" + "".join(parts),
                                              "ndt-map update"))


def write_picture(path: Path, cloud: Path, gone: np.ndarray, new: np.ndarray, ways: "Optional[dict[str, Any]]") -> None:
    """The figure as a PNG file."""
    path.write_bytes(above(cloud, gone, new, ways or {}).file("png"))
