"""Dumps of GLIM (koide3/glim): what its offline viewer and `glim_rosbag` leave, a folder for each submap.

    graph.txt                     num_submaps: N, and more that is not needed here
    000000/data.txt               T_world_origin, T_origin_endpoint_L, T_lidar_imu as rows of 4 x 4 numbers; for each frame its
                                  stamp [s] and T_world_lidar, as they were when the submap was made
    000000/points_compact.bin     float32 x y z in the frame of the origin; older dumps: points.bin, float64 x y z 1

T_world_origin is what GLIM's global mapping has found; a frame follows its submap, by the left end point.
"""
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import numpy as np

from .._arguments import CommandError
from .._extras import one_line
from . import se3

MOST_SUBMAPS = 1000000  # their folders have six digits
MOST_TEXT_BYTES = 1 << 26
MOST_POINTS = 1 << 27  # of a submap
FAR_M = 1e7
NOT_RIGID = 1e-3  # the text has six digits
KEY = re.compile(r"([A-Za-z_]\w*):(.*)")


class DumpError(CommandError):
    """A dump that cannot be used; one line: which file, and what is wrong."""


@dataclass
class GlimSubmap:
    """A submap: its pose, its points, and the poses of the LiDAR at its frames."""

    T_world_origin: np.ndarray
    points_file: Path
    stamps_ns: "list[int]"
    T_world_lidar: "list[np.ndarray]"

    def points(self) -> np.ndarray:
        """(N, 3) float32, those that are finite."""
        is_compact = self.points_file.name == "points_compact.bin"
        size = self.points_file.stat().st_size
        point_bytes = 12 if is_compact else 32
        if size % point_bytes:
            raise DumpError(f"{self.points_file}: has {size} bytes, no multiple of the {point_bytes} of a point: it is cut short")
        if size // point_bytes > MOST_POINTS:
            raise DumpError(f"{self.points_file}: has {size // point_bytes} points, at most {MOST_POINTS} are possible")
        values = np.fromfile(self.points_file, "<f4" if is_compact else "<f8")
        points = values.reshape(-1, 3 if is_compact else 4)[:, :3]
        kept: np.ndarray = points[(np.abs(points) < FAR_M).all(axis=1)].astype(np.float32)  # false where it is no number
        return kept


def _text(path: Path) -> "list[str]":
    try:
        size = path.stat().st_size
        if size > MOST_TEXT_BYTES:
            raise DumpError(f"{path}: has {size} bytes, at most {MOST_TEXT_BYTES} are possible")
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise DumpError(f"{path}: is no text") from None
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise DumpError(f"{path}: is missing: no dump of GLIM, or an incomplete one") from None


def submap_count(folder: Path) -> int:
    """The number of submaps that graph.txt tells."""
    path = folder / "graph.txt"
    for line in _text(path):
        found = KEY.match(line.strip())
        if found and found[1] == "num_submaps":
            word = found[2].strip()
            if not word.isdigit() or not 0 < int(word[:9]) <= MOST_SUBMAPS:
                raise DumpError(f"{path}: num_submaps '{one_line(word, 40)}' is not 1 to {MOST_SUBMAPS}")
            return int(word)
    raise DumpError(f"{path}: does not tell num_submaps: no dump of GLIM")


def _matrix(path: Path, number: int, rows: "list[str]", key: str) -> np.ndarray:
    """The rigid transform in four lines behind line `number`."""
    try:
        T = np.array([[float(word) for word in row.split()] for row in rows], np.float64)
    except ValueError:
        T = np.empty(0)
    if T.shape != (4, 4):
        raise DumpError(f"{path}: line {number}: {key} is not followed by four rows of four numbers")
    off = np.abs(T[:3, :3] @ T[:3, :3].T - np.eye(3)).max() if np.isfinite(T).all() else np.inf
    if not (off <= NOT_RIGID and np.linalg.det(T[:3, :3]) > 0 and np.abs(T[3] - [0, 0, 0, 1]).max() <= NOT_RIGID and np.abs(T[:3, 3]).max() < FAR_M):
        raise DumpError(f"{path}: line {number}: {key} is no rigid transform")
    U, _, Vt = np.linalg.svd(T[:3, :3])
    T[:3, :3] = U @ Vt
    T[3] = 0, 0, 0, 1
    return T


def _stamp_ns(path: Path, number: int, word: str) -> int:
    found = re.fullmatch(r"(\d{1,10})(?:\.(\d{1,12}))?", word)
    if not found:
        raise DumpError(f"{path}: line {number}: the stamp '{one_line(word, 40)}' is no time in seconds")
    return int(found[1]) * 10**9 + int(((found[2] or "") + "0" * 9)[:9])


def _read_data(path: Path) -> "tuple[dict[str, Any], list[dict[str, Any]]]":
    """Reads data.txt: matrices and stamps by name, of the submap, and of each of its frames."""
    lines = _text(path)
    submap: "dict[str, Any]" = {}
    frames: "list[dict[str, Any]]" = []
    place = submap
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if re.fullmatch(r"frame_\d+", text):
            frames.append({})
            place = frames[-1]
        found = KEY.match(text)
        if found and found[1].startswith("T_"):
            place[found[1]] = _matrix(path, number, lines[number:number + 4], found[1])
        elif found and found[1] == "stamp":
            place["stamp"] = _stamp_ns(path, number, found[2].strip())
    return submap, frames


def _of(path: Path, told: "dict[str, Any]", key: str, where: str = "") -> Any:
    if key not in told:
        raise DumpError(f"{path}: does not tell {key}{where}")
    return told[key]


def _points_file(folder: Path) -> Path:
    for name in ("points_compact.bin", "points.bin"):
        if (folder / name).is_file():
            return folder / name
    raise DumpError(f"{folder / 'points_compact.bin'}: is missing: the submap has no points")


def read_submap(folder: Path, number: int) -> GlimSubmap:
    """Submap `number` of a dump; DumpError where it is not as GLIM writes it."""
    at = folder / f"{number:06d}"
    path = at / "data.txt"
    submap, frames = _read_data(path)
    T_world_origin = _of(path, submap, "T_world_origin")
    stamps_ns: "list[int]" = []
    T_world_lidar: "list[np.ndarray]" = []
    first: Optional[np.ndarray] = None
    for k, frame in enumerate(frames):
        T_imu = _of(path, frame, "T_world_lidar", f" of frame_{k}") @ _of(path, submap, "T_lidar_imu")
        first = T_imu if first is None else first
        moved = T_world_origin @ _of(path, submap, "T_origin_endpoint_L") @ se3.inverse(first) @ T_imu
        stamps_ns.append(_of(path, frame, "stamp", f" of frame_{k}"))
        T_world_lidar.append(moved @ se3.inverse(submap["T_lidar_imu"]))
    return GlimSubmap(T_world_origin, _points_file(at), stamps_ns, T_world_lidar)
