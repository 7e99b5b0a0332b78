"""The map as files: one cloud, or tiles; the options that say which, and where."""
import argparse
import shutil
from pathlib import Path
from typing import Any, Callable

import numpy as np

from .._arguments import UsageError
from ..maps import Block, TileSet, find_files
from . import se3
from .cloud_store import Clouds

TILE_M = 100.0  # of the cloud while it is thinned: one is in memory
MOVED = "moved.pcd"
PLACE_M, MOST_PLACES = 4.0, 20  # where most moved, in cells of this edge


def add_options(out: argparse.ArgumentParser) -> None:
    """Adds the options of commands that write a map."""
    out.add_argument("-o", "--out", required=True, metavar="MAP", help="folder to write")
    out.add_argument("--force", action="store_true", help="overwrite MAP if it exists")
    out.add_argument("--voxel", type=float, default=0.1, metavar="M", help="points are thinned to one per voxel of this edge (default: 0.1)")
    out.add_argument("--tiles", type=float, metavar="M", help="a folder of tiles of this size, as Autoware has them, in place of map.pcd")
    out.add_argument("--compiled", action="store_true", help="also write MAP/map.ndtmap, which ndtd loads in milliseconds")


def check_place(args: argparse.Namespace) -> Path:
    """The folder to write; UsageError where an option is out of range, or the folder is not to be overwritten."""
    out = Path(args.out)
    for name, value, least, most in (("--voxel", args.voxel, 0.02, 0.25), ("--tiles", args.tiles, 5, 10000), ("--threads", args.threads, 0, 64)):
        if value is not None and not least <= value <= most:
            raise UsageError(f"{name}: {value:g} is outside {least:g} .. {most:g}")
    if out.exists() and not args.force:
        raise UsageError(f"{out}: exists already; --force overwrites it")
    if out.exists() and not (out.is_dir() and ((out / "map.json").exists() or not any(out.iterdir()))):
        raise UsageError(f"{out}: is no map of this command; it is not overwritten")
    return out


def cloud_place(folder: Path, args: argparse.Namespace) -> Path:
    """The cloud or the folder of tiles in the folder of the map."""
    return folder / ("pointcloud_map.pcd" if args.tiles else "map.pcd")


def write_map(out: Path, work: Path, store: Clouds, T: np.ndarray, args: argparse.Namespace, progress: Callable[[float], None]) -> int:
    """Writes cloud or tiles, as the options say; returns the number of points."""
    place = cloud_place(out, args)
    if args.tiles:
        return write_tiles(place, store, T, args.voxel, args.tiles, progress)
    return write_cloud(place, work, store, T, args.voxel, progress)


def write_moved(out: Path, left_out: Clouds, T: np.ndarray, voxel_m: float) -> "dict[str, Any]":
    """Writes moved.pcd, the points that the map is without, if there are any; how many, and where most of them are."""
    count = 0
    if left_out.scans():
        count = write_cloud(out / MOVED, out, left_out, T, voxel_m, lambda part: None)
    places: "list[dict[str, Any]]" = []
    if count:
        points = np.concatenate([block.points for one in find_files([out / MOVED]) for block in one.blocks()])
        _, cell, counts = np.unique(np.floor(points / PLACE_M), axis=0, return_inverse=True, return_counts=True)
        for place in np.argsort(-counts, kind="stable")[:MOST_PLACES]:
            at_m = points[cell.reshape(-1) == place].mean(axis=0)
            places.append({"at_m": [round(float(value), 1) for value in at_m], "points": int(counts[place])})
    return {"points": count, "places": places}


def write_cloud(out: Path, work: Path, store: Clouds, T: np.ndarray, voxel_m: float, progress: Callable[[float], None]) -> int:
    """Writes map.pcd, the means of voxels; returns the number of points."""
    folder = work / "tiles"
    count = write_tiles(folder, store, T, voxel_m, TILE_M, progress)
    tiles = sorted(folder.glob("*.pcd"))
    with out.open("wb") as stream:
        for number, tile in enumerate(tiles):
            with tile.open("rb") as part:
                _copy(part, stream, count if number == 0 else None)
    shutil.rmtree(folder)
    return count


def write_tiles(folder: Path, store: Clouds, T: np.ndarray, voxel_m: float, tile_m: float, progress: Callable[[float], None]) -> int:
    """Writes a folder of tiles with Autoware's metadata; returns the number of points."""
    with TileSet(folder, tile_m, voxel_m, np.zeros(3)) as tiles:
        scans = store.scans()
        for number, k in enumerate(scans):
            tiles.add(Block(se3.apply(T[k], store[k].astype(np.float64)), None))
            progress(0.5 * (number + 1) / len(scans))
        tiles.write(lambda part: progress(0.5 + 0.5 * part))
        return tiles.written


def _copy(part: Any, stream: Any, count: Any) -> None:
    """The points of a tile; with its header, which then tells the number of all points, if `count` is given."""
    header: "list[bytes]" = []
    while not header or not header[-1].startswith(b"DATA"):
        header.append(part.readline())
    for line in header if count is not None else []:
        name = line.split(b" ", 1)[0]
        stream.write(b"%s %d\n" % (name, count) if name in (b"WIDTH", b"POINTS") else line)
    shutil.copyfileobj(part, stream)
