"""The worst scans of a replay and their pictures: the points on the map at the guess and at the result."""
import math
from typing import NamedTuple, Optional

import numpy as np

from ..poses import rotation
from . import bag_records, map_above, raster
from .pose_errors import absolute
from .raster import Box
from .run import Run

COUNT = 10
APART_S = 0.5  # else one bad moment would be all of them
COLUMNS, ROWS = 520, 390  # pixels of a picture
LEAST_HALF_M, MOST_HALF_M = 18.0, 45.0  # half of the width of an overview
DETAIL_M = 8.0  # width of a detail
ABOVE_GROUND_M = 0.4  # what details show
CELL_M, KEY_ROW = 0.2, 1 << 20


class View(NamedTuple):
    """One picture: PNG, what it shows [m] relative to the centre of the scan, and the places on it."""

    png: bytes
    box: Box
    label: str
    is_after: bool


class Worst(NamedTuple):
    """One scan: row of the run, errors against the truth (NaN without) of the result and of the guess, pictures (or none, and why)."""

    row: int
    error_m: float
    error_rad: float
    guess_error_m: float
    guess_error_rad: float
    views: "list[View]"
    why_none: str


def choose(run: Run, count: int = COUNT) -> "tuple[list[int], str]":
    """Rows of the run, the worst first, and what they are chosen by."""
    pose_error = np.full(len(run), np.nan)
    known = np.isfinite(run.truth[:, 0]) & np.isfinite(run.pose[:, 0])
    pose_error[known] = np.linalg.norm(run.pose[known, :3] - run.truth[known, :3], axis=1)
    if known.any():
        badness, by = pose_error, "error against ground truth"
    else:
        badness, by = 1.0 - run.values["confidence"], "confidence, as there is no ground truth"
        badness = np.where(run.trusted & np.isnan(badness), 0.0, badness)
        by = by if np.isfinite(badness).any() else "number: no scan has a confidence"
    order = np.argsort(-np.where(np.isfinite(badness), badness, -1.0), kind="stable")
    out: "list[int]" = []
    for row in order:
        has_place = np.isfinite(run.pose[row, 0]) or np.isfinite(run.guess[row, 0])
        if has_place and np.isfinite(badness[row]) and all(abs(run.time_s[row] - run.time_s[one]) >= APART_S for one in out):
            out.append(int(row))
            if len(out) == count:
                break
    return out, by


def centre_of(run: Run, row: int) -> np.ndarray:
    """(3,) where the pictures of a scan are: at its result, else at its guess."""
    place: np.ndarray = (run.pose if np.isfinite(run.pose[row, 0]) else run.guess)[row, :3]
    return place


def points_of(run: Run, rows: "list[int]") -> "dict[int, np.ndarray]":
    """Points (K, 3) in the base frame of the scans that points.bag has."""
    path, wanted, out = run.folder / "points.bag", {(int(run.seq[row]), int(run.stamp_ns[row])): row for row in rows}, {}
    if not path.is_file():
        return {}
    for message in bag_records.messages(path, bag_records.POINTS):
        seq, stamp_ns = message.get("seq"), message.get("stamp_ns")
        row = wanted.pop((seq, stamp_ns), None) if isinstance(seq, int) and isinstance(stamp_ns, int) else None
        if row is not None:
            try:
                out[row] = bag_records.points(message)
            except ValueError:
                continue
            if not wanted:
                break
    return out


def windows(run: Run, rows: "list[int]", points: "dict[int, np.ndarray]") -> "dict[int, map_above.Window]":
    """Windows of the map around each scan that has points."""
    out = {}
    for row in rows:
        if row in points:
            moved = run.guess[row, :3] - centre_of(run, row) if np.isfinite(run.guess[row, 0]) else np.zeros(3)
            reach = half_width(points[row]) + min(float(np.hypot(*moved[:2])), 20.0)
            out[row] = map_above.Window(centre_of(run, row), reach)
    return out


def half_width(points: np.ndarray) -> float:
    """Half the width of an overview [m]: most of the points are within."""
    if len(points) == 0:
        return LEAST_HALF_M
    return float(np.clip(np.percentile(np.hypot(points[:, 0], points[:, 1]), 88), LEAST_HALF_M, MOST_HALF_M))


def describe(run: Run, rows: "list[int]", points: "dict[int, np.ndarray]",
             around: "dict[int, map_above.Window]", map_note: str) -> "list[Worst]":
    """The scans with their pictures; the windows have been filled."""
    out = []
    for row in rows:
        result, guess = _errors_of(run, row, run.pose), _errors_of(run, row, run.guess)
        views: "list[View]" = []
        why = ""
        if not (run.folder / "points.bag").is_file():
            why = "No picture: points.bag is not there; `ndtd --replay ... --output FOLDER` writes it."
        elif row not in points:
            why = "No picture: points.bag has no points of this scan."
        elif map_note:
            why = f"No picture: {map_note}."
        else:
            views = views_of(points[row], around[row].points, centre_of(run, row), run.guess[row], run.pose[row])
        out.append(Worst(row, *result, *guess, views, why))
    return out


def _errors_of(run: Run, row: int, poses: np.ndarray) -> "tuple[float, float]":
    at = slice(row, row + 1)
    if not (np.isfinite(poses[row, 0]) and np.isfinite(run.truth[row, 0])):
        return math.nan, math.nan
    found = absolute(poses[at], run.truth[at], np.full((1, 6, 6), np.nan))
    return float(found.translation_m[0]), float(found.rotation_rad[0])


def views_of(points: np.ndarray, world: np.ndarray, centre: np.ndarray, before: np.ndarray, after: np.ndarray,
             names: "tuple[str, str]" = ("guess", "result")) -> "list[View]":
    """Points (K, 3) of a scan, at two poses (7,) of which one may be NaN, on the points of the map, which are relative to `centre` (3,)."""
    half = half_width(points)
    overview = Box.around(np.zeros(2), 2 * half, 2 * half * ROWS / COLUMNS)
    placed = {names[0]: _place(points, before, centre), names[1]: _place(points, after, centre)}
    best = placed[names[1]] if placed[names[1]] is not None else placed[names[0]]
    if best is None:
        return []
    detail, floor = _detail(best, world, overview)
    out = []
    ground = raster.shades(raster.counts(world, overview, COLUMNS, ROWS))
    for name, scan in placed.items():
        if scan is not None:
            out.append(View(raster.picture(ground, scan, overview, name == names[1], 1), overview, name, name == names[1]))
    if detail is None:
        return out
    near = world[detail.holds(world)]
    ground = raster.thicken(raster.shades(raster.counts(near[near[:, 2] > floor], detail, COLUMNS, ROWS)), 2)
    for name, scan in placed.items():
        if scan is not None:
            high = scan[scan[:, 2] > floor]
            out.append(View(raster.picture(ground, high, detail, name == names[1], 2), detail, f"{name}, detail", name == names[1]))
    return out


def _place(points: np.ndarray, pose: np.ndarray, centre: np.ndarray) -> "Optional[np.ndarray]":
    """Points in map axes relative to the centre; None without a pose."""
    if not np.isfinite(pose[0]):
        return None
    out: np.ndarray = points @ rotation(pose).T + (pose[:3] - centre)
    return out


def _detail(scan: np.ndarray, world: np.ndarray, overview: Box) -> "tuple[Optional[Box], float]":
    """The rectangle whose walls and poles tell most about the position in both directions, and the height from which it is shown."""
    height = DETAIL_M * ROWS / COLUMNS
    if len(scan) == 0 or len(world) == 0:
        return None, 0.0
    floor = float(np.percentile(scan[:, 2], 10)) + ABOVE_GROUND_M
    high, tall = scan[(scan[:, 2] > floor) & overview.holds(scan)], world[world[:, 2] > floor]
    shared = np.intersect1d(_cell_keys(high), _cell_keys(tall))
    cells = (np.column_stack([shared // KEY_ROW, shared % KEY_ROW]) - KEY_ROW // 2) * CELL_M
    best, found = 0.0, None
    for x in np.arange(overview.x, overview.x + overview.width - DETAIL_M, DETAIL_M / 3):
        column = cells[(cells[:, 0] >= x) & (cells[:, 0] < x + DETAIL_M)]
        for y in np.arange(overview.y, overview.y + overview.height - height, height / 3):
            inside = column[(column[:, 1] >= y) & (column[:, 1] < y + height)]
            if len(inside) < 8:
                continue
            spread = np.linalg.eigvalsh(np.cov(inside.T))[0]
            value = math.sqrt(len(inside)) * math.sqrt(max(spread, 0.0))
            if value > best:
                best, found = value, Box(float(x), float(y), DETAIL_M, height)
    return found, floor


def _cell_keys(points: np.ndarray) -> np.ndarray:
    """The cells of CELL_M that have a point, one number each."""
    cells = np.floor(points[:, :2] / CELL_M).astype(np.int64) + KEY_ROW // 2
    return np.unique(cells[:, 0] * KEY_ROW + cells[:, 1])
