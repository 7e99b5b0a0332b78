"""What a notebook shows of maps and results: tables, and the map from above (pip install 'ndtd[report]')."""
import html
from collections.abc import Iterable
from typing import Any, Optional

import numpy as np

from ._extras import need
from .poses import checked_pose, matrix

MOST_DRAWN = 200_000  # voxels


def _table(title: str, rows: "list[tuple[str, Any]]") -> str:
    cells = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:left'>{html.escape(str(value))}</td></tr>"
                    for name, value in rows)
    return f"<table><caption>{html.escape(title)}</caption>{cells}</table>"


def _numbers(values: Any, digits: int = 3) -> str:
    return " ".join(f"{value:.{digits}f}" for value in values)


def map_html(target: Any) -> str:
    """Of ndtd.Map."""
    means = target.voxels(target.levels[0])["mean"]
    bounds = [("from", f"{_numbers(means.min(axis=0), 1)} m"), ("to", f"{_numbers(means.max(axis=0), 1)} m")] if len(means) else []
    levels = [(f"cells of {level:g} m", count) for level, count in zip(target.levels, target.voxel_counts)]
    return _table("ndtd.Map", [("points", target.points), *bounds, *levels, ("memory", f"{target.nbytes / 1e6:.1f} MB"), ("id", target.id)])


def _pose_rows(one: Any) -> "list[tuple[str, Any]]":
    """Of a Result or a Scan that has a pose."""
    x_axis = one.pose[:3, 0]
    rows = [("x y z", f"{_numbers(one.position)} m"), ("yaw", f"{np.degrees(np.arctan2(x_axis[1], x_axis[0])):.2f} deg")]
    if one.covariance is not None:
        deviations = np.sqrt(np.clip(np.diag(one.covariance), 0.0, None))
        rows += [("standard deviations", f"{_numbers(deviations[:3])} m, {_numbers(np.degrees(deviations[3:]), 2)} deg")]
    return rows


def _fit_rows(one: Any) -> "list[tuple[str, Any]]":
    confidence = [] if one.confidence is None else [("confidence", f"{one.confidence:.3f}")]
    return [*confidence, ("nvtl", f"{one.scores.nvtl:.3f}"), ("matched points", f"{100 * one.scores.match_ratio:.0f} %")]


def _outcome(one: Any) -> str:
    return f"{one.outcome}: {one.reason}" if one.reason else str(one.outcome)


def result_html(result: Any) -> str:
    """Of ndtd.Result."""
    return _table("ndtd.Result", [("outcome", _outcome(result)), *_pose_rows(result), *_fit_rows(result),
                                  ("alignment", f"{result.iterations} iterations, {result.align_us / 1000:.2f} ms")])


def scan_html(scan: Any) -> str:
    """Of ndtd.Scan."""
    rows = [("stamp", f"{scan.stamp_ns} ns"), ("outcome", _outcome(scan)), ("state", f"{scan.state}, {'' if scan.trusted else 'not '}trusted")]
    return _table(f"ndtd.Scan {scan.seq}", rows + ([] if scan.pose is None else [*_pose_rows(scan), *_fit_rows(scan)]))


def plot_map(target: Any, *, ax: Any = None, points: Any = None, pose: Any = None, scans: "Iterable[Any]" = ()) -> Any:
    """Of ndtd.Map: see Map.plot."""
    if ax is None:
        _, ax = need("matplotlib.pyplot", "report").subplots(figsize=(8, 8))
    few = [level for level, count in zip(target.levels, target.voxel_counts) if count <= MOST_DRAWN]
    means = target.voxels(few[-1] if few else target.levels[0])["mean"]
    means = means[np.argsort(means[:, 2])]  # what is high is seen from above
    ax.scatter(means[:, 0], means[:, 1], s=1, c=means[:, 2], cmap="viridis", linewidths=0, rasterized=True)
    if points is not None:
        T_map_sensor = matrix(checked_pose(np.eye(4) if pose is None else pose))
        placed = np.asarray(points, np.float64)[:, :3] @ T_map_sensor[:3, :3].T + T_map_sensor[:3, 3]
        ax.scatter(placed[:, 0], placed[:, 1], s=1, c="tab:orange", linewidths=0, label="points")
    _plot_scans(ax, list(scans))
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="best")
    ax.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
    return ax


def _plot_scans(ax: Any, scans: "list[Any]") -> None:
    """The way, broken where poses are not trusted, and those as crosses."""
    if not scans:
        return
    nowhere = np.full(2, np.nan)
    trusted = np.array([scan.position[:2] if _is_trusted(scan) else nowhere for scan in scans])
    others = np.array([scan.position[:2] for scan in scans if scan.position is not None and not _is_trusted(scan)]).reshape(-1, 2)
    ax.plot(trusted[:, 0], trusted[:, 1], ".-", color="tab:blue", markersize=3, linewidth=1, label="trusted")
    if len(others):
        ax.plot(others[:, 0], others[:, 1], "x", color="tab:red", markersize=5, label="not trusted")


def _is_trusted(scan: Any) -> bool:
    position: Optional[np.ndarray] = scan.position
    return position is not None and bool(scan.trusted)
