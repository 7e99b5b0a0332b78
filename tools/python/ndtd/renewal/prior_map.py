"""The clouds of a map as ndtd reads them, in parts around a place. Memory: the clouds that a part touches."""
import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import numpy as np

from .._arguments import CommandError, UsageError
from .._core import read_cloud
from . import overlay

CLOUDS = (".pcd", ".ply", ".bin")
KEPT_POINTS = 5_000_000  # of files in memory, besides the one that is used
MOST_HOMES = 64  # files around a block that new points are divided among
SAMPLE, DISC_M = 2000, 0.5  # what the spacing of the points is told by
LEAST_SPACING_M, MOST_SPACING_M = 0.1, 0.3


@dataclass
class CloudFile:
    """One file of the map. box: least and largest x, y of its finite points (2, 2)."""

    path: Path
    points: int
    checksum: int  # sum of the bit patterns of its finite coordinates, modulo 2^64
    box: np.ndarray


def checksum(points: np.ndarray) -> int:
    """Checksum of points (N, 3) float64, as in the overlay: points that are not finite are left out."""
    finite = np.ascontiguousarray(points[np.isfinite(points).all(axis=1)])
    return int(finite.view(np.uint64).sum(dtype=np.uint64))


def _clouds_in(folder: Path) -> "list[Path]":
    return sorted(one for one in folder.iterdir() if one.is_file() and one.suffix.lower() in CLOUDS and not one.name.startswith("."))


def find_clouds(given: Any) -> "tuple[Path, list[Path]]":
    """The path that ndtd takes as the map, and its files. UsageError: there is no map with points."""
    path = Path(given)
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder")
    if path.is_dir() and (path / "map.json").is_file():  # made by ndt-map build, with other files beside the cloud
        made = [path / name for name in ("map.pcd", "pointcloud_map.pcd") if (path / name).exists()]
        path = made[0] if made else path
    if path.suffix.lower() == ".ndtmap":
        raise UsageError(f"{path}: a compiled map has no points: give the clouds that it was made of")
    if not path.is_dir():
        if path.suffix.lower() not in CLOUDS:
            raise UsageError(f"{path}: not a point cloud; known are {' '.join(CLOUDS)}, and folders of these")
        return path, [path]
    files = _clouds_in(path)
    if not files and (path / "pointcloud_map.pcd").is_dir():
        files = _clouds_in(path / "pointcloud_map.pcd")
    if not files:
        raise UsageError(f"{path}: no point cloud in this folder; known are {' '.join(CLOUDS)}")
    return path, files


class PriorMap:
    """The files of a map; `path` is what ndtd takes."""

    def __init__(self, given: Any):
        self.path, paths = find_clouds(given)
        self._kept: "OrderedDict[int, np.ndarray]" = OrderedDict()
        self.files: "list[CloudFile]" = []
        for number, path in enumerate(paths):
            points = self._read(path)
            finite = points[np.isfinite(points).all(axis=1), :2]
            box = np.array([finite.min(axis=0), finite.max(axis=0)]) if len(finite) else np.full((2, 2), np.nan)
            self.files.append(CloudFile(path, len(points), checksum(points), box))
            self._keep(number, points)
        if not any(np.isfinite(one.box).all() for one in self.files):
            raise CommandError(f"{self.path}: has no points")
        self._boxes = np.array([one.box for one in self.files])
        self.spacing_m = self._spacing()

    @staticmethod
    def _read(path: Path) -> np.ndarray:
        cloud = read_cloud(path)
        points: np.ndarray = cloud["points"].astype(np.float64) + cloud["origin"]
        return points

    def _keep(self, number: int, points: np.ndarray) -> None:
        self._kept[number] = points
        while len(self._kept) > 1 and sum(map(len, self._kept.values())) > KEPT_POINTS:
            self._kept.popitem(last=False)

    def points(self, number: int) -> np.ndarray:
        """(N, 3) float64 of a file, in its order."""
        if number not in self._kept:
            self._keep(number, self._read(self.files[number].path))
        self._kept.move_to_end(number)
        return self._kept[number]

    def inside(self, low: np.ndarray, high: np.ndarray) -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
        """Points with low <= x, y < high, and the file and the place in it of each."""
        points, files, places = [np.empty((0, 3))], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for number in np.flatnonzero(((self._boxes[:, 1] >= low) & (self._boxes[:, 0] < high)).all(axis=1)).tolist():
            of_file = self.points(number)
            found = np.flatnonzero(((of_file[:, :2] >= low) & (of_file[:, :2] < high)).all(axis=1) & np.isfinite(of_file[:, 2]))
            points.append(of_file[found])
            files.append(np.full(len(found), number))
            places.append(found)
        return np.concatenate(points), np.concatenate(files), np.concatenate(places)

    def _off_m(self, files: np.ndarray, points: np.ndarray) -> np.ndarray:
        """(files, points): distances of the boxes of files from points, seen from above."""
        low, high = self._boxes[files, None, 0], self._boxes[files, None, 1]
        off_m = np.linalg.norm(np.maximum(np.maximum(low - points[:, :2], points[:, :2] - high), 0), axis=2)
        return np.nan_to_num(off_m, nan=np.inf)

    def home_of(self, points: np.ndarray) -> np.ndarray:
        """The file that new points, which are near each other, belong to: the one whose box is nearest."""
        near = np.sort(np.argsort(self._off_m(np.arange(len(self.files)), points.mean(axis=0)[None])[:, 0], kind="stable")[:MOST_HOMES])
        home: np.ndarray = near[np.argmin(self._off_m(near, points), axis=0)]
        return home

    def _spacing(self) -> float:
        """Distance of neighbours on a surface, rounded: new points are as dense as the existing ones."""
        from scipy.spatial import cKDTree

        points = self.points(int(np.argmax([one.points for one in self.files])))
        points = points[np.isfinite(points).all(axis=1)]
        near = cKDTree(points).query_ball_point(points[::1 + len(points) // SAMPLE], DISC_M, return_length=True)
        spacing_m = float(np.sqrt(np.pi * DISC_M ** 2 / np.median(near)))
        return round(min(max(spacing_m, LEAST_SPACING_M), MOST_SPACING_M), 2)

    def write_overlay(self, folder: Path, changes: "dict[int, overlay.Change]", about: "Optional[dict[str, Any]]" = None) -> str:
        """Makes the folder, an overlay with the changes of files by their numbers; returns its id."""
        folder.mkdir()
        named = {self.files[number].path.name: one for number, one in changes.items()}
        return overlay.write(folder, os.path.abspath(self.path), named, about or {})
