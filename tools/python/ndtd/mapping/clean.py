"""Removes moving objects from the map: points that later and earlier scans look through.

Each scan becomes an image of ranges as its sensor saw them. A scan looks through a point of the map if all its ranges
around that direction (3 x 3 pixels) are farther away than the point. The nearest of nine pixels shows free space only if nothing
of the surface is left: the pixels below ground at a grazing angle are always nearer, and so the ground stays. Points leave in cells of the
map, by the votes of many scans, and only where few scans have measured the cell as it is mapped.
"""
from dataclasses import dataclass
from typing import Any, Callable, Optional

import numpy as np

from . import se3, submaps
from .cloud_store import CloudStore
from .drive import first_scan

REACH_PART, LEAST_REACH_M, MOST_VIEWS = 1.6, 15.0, 48  # scans that judge a submap: those around it, evenly chosen
NEAR_M, FAR_M, WIDEST_M = 1.0, 40.0, 0.3  # points that a scan judges, and the edge of a pixel there: thin boards are between two beams
LEAST_PIXEL_RAD, BEAMS_PER_PIXEL, LEAST_GAP_RAD = np.deg2rad(0.75), 1.1, np.deg2rad(0.1)
LEVELS = 4  # of an image, with pixels of twice the edge each: points nearby are far apart, seen as angles
MARGIN_M, MARGIN_PART = 0.25, 0.02  # of the range, by which free space ends behind a point
LEAST_PIXELS = 3  # of the nine that have measured anything
SEEN_CELL_M = 0.3
LEAST_VOTES, VOTES_PER_SEEN = 8, 2  # scans that look through a point, and for each that has measured its cell


def pixel_rad(points: np.ndarray) -> float:
    """The edge of a pixel for a sensor, from a raw scan of it: the pixels below a point always have the next beam."""
    elevation = np.sort(np.arctan2(points[:, 2], np.hypot(points[:, 0], points[:, 1])))
    gaps = np.diff(elevation)
    gaps = gaps[gaps > LEAST_GAP_RAD]
    beam_rad = float(np.median(gaps)) if len(gaps) > 5 else 0.0
    return max(BEAMS_PER_PIXEL * beam_rad, float(LEAST_PIXEL_RAD))


def _polar(points: np.ndarray) -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
    """Range, elevation above straight down, azimuth from behind; angles from 0."""
    range_m = np.sqrt((points ** 2).sum(axis=1))
    elevation = np.arcsin(np.clip(points[:, 2] / np.maximum(range_m, 1e-6), -1, 1)) + np.pi / 2
    return range_m, elevation, np.arctan2(points[:, 1], points[:, 0]) + np.pi


def _around(image: np.ndarray, combine: Any, empty: Any) -> np.ndarray:
    """Combines the nine pixels around each one; columns wrap around."""
    row = combine(combine(np.roll(image, 1, axis=1), image), np.roll(image, -1, axis=1))
    padded = np.pad(row, ((1, 1), (0, 0)), constant_values=empty)
    out: np.ndarray = combine(combine(padded[:-2], padded[1:-1]), padded[2:])
    return out


class View:
    """The images of one scan: the nearest range around each pixel, and how many of its pixels have one."""

    def __init__(self, points: np.ndarray, edge_rad: float, voxel_m: float, far_m: Optional[float] = None):
        """points: in the frame of the sensor, thinned to voxel_m. far_m: of points that are judged; None: while a pixel is narrow."""
        self._edge_rad, self._voxel_m = edge_rad, voxel_m
        self.far_m = min(FAR_M, WIDEST_M / edge_rad) if far_m is None else far_m
        polar = _polar(points)
        order = np.argsort(-polar[0], kind="stable")  # the nearest is written last
        range_m, elevation, azimuth = (column[order] for column in polar)
        self._levels = []
        for level in range(LEVELS):
            rows, columns = self._shape(level)
            image = np.full(rows * columns, np.inf)
            image[self._pixels(elevation, azimuth, level)] = range_m
            grid = image.reshape(rows, columns)
            count = _around(np.isfinite(grid).astype(np.int8), np.add, 0)
            self._levels.append((_around(grid, np.minimum, np.inf).ravel(), count.ravel()))

    def _shape(self, level: int) -> "tuple[int, int]":
        edge_rad = self._edge_rad * 2 ** level
        return int(np.ceil(np.pi / edge_rad)), int(2 * np.pi / edge_rad)

    def _pixels(self, elevation: np.ndarray, azimuth: np.ndarray, level: int) -> np.ndarray:
        rows, columns = self._shape(level)
        row = np.minimum((elevation / (self._edge_rad * 2 ** level)).astype(np.int64), rows - 1)
        pixels: np.ndarray = row * columns + (azimuth * (columns / (2 * np.pi))).astype(np.int64) % columns
        return pixels

    def judge(self, points: np.ndarray) -> "tuple[np.ndarray, np.ndarray]":
        """Flags of the points that the scan looks through, and of those that lie at its range around their direction."""
        range_m, elevation, azimuth = _polar(points)
        near_m, count = np.full(len(points), np.inf), np.zeros(len(points), np.int8)
        level = np.ceil(np.log2(np.maximum(self._voxel_m / (np.maximum(range_m, 0.3) * self._edge_rad), 1)))
        for number, (nearest_m, pixels) in enumerate(self._levels):
            here = np.flatnonzero(np.minimum(level, LEVELS - 1) == number)
            place = self._pixels(elevation[here], azimuth[here], number)
            near_m[here], count[here] = nearest_m[place], pixels[place]
        is_judged = (range_m > NEAR_M) & (range_m < self.far_m) & (count >= LEAST_PIXELS)
        margin_m = MARGIN_M + MARGIN_PART * range_m
        return is_judged & (near_m > range_m + margin_m), is_judged & (np.abs(near_m - range_m) <= margin_m)


def keys_of(points: np.ndarray, edge_m: float) -> np.ndarray:
    """A number for the cell of each point; up to 20 km away with the smallest edge."""
    cell = np.floor(points / edge_m).astype(np.int64) + (1 << 20)
    keys: np.ndarray = (cell[:, 2] << 42) | (cell[:, 1] << 21) | cell[:, 0]
    return keys


def is_in(keys: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Flags of the keys that are among the known ones, which are sorted."""
    found: np.ndarray = known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys if len(known) else np.zeros(len(keys), bool)
    return found


@dataclass
class _Cells:
    """The cells of the map in a submap, in the frame of the base at its center."""

    mean: np.ndarray  # (N, 3)
    of_point: np.ndarray  # of the points of all its scans, one scan after the other


def _cells(points: np.ndarray, voxel_m: float) -> _Cells:
    _, of_point = np.unique(keys_of(points, voxel_m), return_inverse=True)
    of_point = of_point.reshape(-1)
    count = np.bincount(of_point)
    return _Cells(np.stack([np.bincount(of_point, points[:, k]) / count for k in range(3)], axis=1), of_point)


class Cleaner:
    """Judges the submaps of a map one after the other; a submap and one scan are in memory."""

    def __init__(self, mapped: Any, parts: "list[submaps.Submap]", store: CloudStore, voxel_m: float):
        self._mapped, self._store, self._voxel_m = mapped, store, voxel_m
        self._parts = parts
        self._edges_rad = [pixel_rad(first_scan(drive)["points"]) for drive in mapped.drives]
        self._scans = [[k for k in part.scans if k in store] for part in parts]

    def _judges(self, number: int) -> "list[tuple[int, int]]":
        """Scans that judge a submap, each with the number of its drive."""
        here, poses = self._parts[number], self._mapped.poses
        reach_m = max(REACH_PART * here.length_m, LEAST_REACH_M)
        off_m = np.linalg.norm(poses[[part.center for part in self._parts], :3, 3] - poses[here.center, :3, 3], axis=1)
        found = [(k, part.drive) for part, scans, away_m in zip(self._parts, self._scans, off_m) if away_m <= reach_m for k in scans]
        chosen = np.linspace(0, len(found) - 1, min(len(found), MOST_VIEWS)).round().astype(int)
        return [found[place] for place in chosen]

    def clean(self, number: int) -> "dict[int, np.ndarray]":
        """Flags of the moving points in the scans of a submap, by scan."""
        scans, poses = self._scans[number], self._mapped.poses
        if not scans:
            return {}
        T_center = se3.inverse(poses[self._parts[number].center])
        points = [se3.apply(T_center @ poses[k], self._store[k].astype(np.float64)) for k in scans]
        cells = _cells(np.concatenate(points), self._voxel_m)
        through, measured, seen = (np.zeros(len(cells.mean), np.int32) for _ in range(3))
        keys = keys_of(cells.mean, SEEN_CELL_M)
        for k, drive in self._judges(number):
            T_sensor = self._mapped.drives[drive].T_base_sensor
            of_scan = self._store[k].astype(np.float64)
            view = View(se3.apply(se3.inverse(T_sensor), of_scan), self._edges_rad[drive], self._voxel_m)
            T_view = T_center @ poses[k] @ T_sensor
            near = np.flatnonzero(((cells.mean - T_view[:3, 3]) ** 2).sum(axis=1) < (view.far_m + 0.01) ** 2)  # it judges no others
            is_through, is_measured = view.judge(se3.apply(se3.inverse(T_view), cells.mean[near]))
            through[near] += is_through
            measured[near] += is_measured
            seen += is_in(keys, np.unique(keys_of(se3.apply(T_center @ poses[k], of_scan), SEEN_CELL_M)))
        moved = (through >= LEAST_VOTES) & (through >= VOTES_PER_SEEN * seen) & (through >= measured)
        ends = np.cumsum([len(one) for one in points])[:-1]
        return dict(zip(scans, np.split(moved[cells.of_point], ends)))


def find(mapped: Any, store: CloudStore, voxel_m: float, progress: Callable[[float], None]) -> "dict[int, np.ndarray]":
    """Flags of the moving points in each scan of the store."""
    parts = mapped.submaps or [part for number, one in enumerate(mapped.trajectories)
                               for part in submaps.split(number, mapped.firsts[number], one, store)]
    cleaner = Cleaner(mapped, parts, store, voxel_m)
    moved: "dict[int, np.ndarray]" = {}
    for number in range(len(parts)):
        moved.update(cleaner.clean(number))
        progress((number + 1) / len(parts))
    return moved
