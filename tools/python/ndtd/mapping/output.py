"""The map as files: one cloud, or tiles; the poses; what it was made of."""
import shutil
from pathlib import Path
from typing import Any, Callable

import numpy as np

from ..maps import Block, TileSet
from . import se3
from .cloud_store import CloudStore

TILE_M = 100.0  # of the cloud while it is thinned: one is in memory


def write_cloud(out: Path, work: Path, store: CloudStore, T: np.ndarray, voxel_m: float, progress: Callable[[float], None]) -> int:
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


def write_tiles(folder: Path, store: CloudStore, T: np.ndarray, voxel_m: float, tile_m: float, progress: Callable[[float], None]) -> int:
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
