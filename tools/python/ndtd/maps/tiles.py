"""Points of any number to tiles on the disk: each block is divided among spill files, then tile by tile is thinned and written.

Memory: one block of points while dividing, one tile's voxels while thinning, whatever the size of the map."""
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np

from .point_files import BLOCK_POINTS, Block, MapFileError

METADATA_NAME = "pointcloud_map_metadata.yaml"
HELD_POINTS = 4_000_000  # 64 MB wait for their files: the more, the fewer files are opened
FLOAT_IS_ENOUGH_M = 8192.0  # below, float32 is spaced by less than 0.5 mm
FAR_M = np.array([100e3, 100e3, 8e3])  # from the middle of the first block: no points of the same map
MOST_TILES = 1_000_000
_INDEX_BITS = 21


class TileSet:
    """Collects blocks of points, then writes tiles. A context: what is left on the disk at its end is removed.

    Tiles are the squares [i, i + 1) * tile_m of map coordinates. Points of a voxel (in a grid that begins at the corner of its
    tile) become one, their mean; with voxel_m 0 all are kept. The same blocks give the same bytes."""

    def __init__(self, folder: Any, tile_m: float, voxel_m: float, offset_m: np.ndarray):
        self.folder = Path(folder)  # made for this; spill files and tiles
        self.tile_m, self.voxel_m, self.offset_m = tile_m, voxel_m, np.asarray(offset_m, np.float64)
        self.min_m, self.max_m = np.full(3, np.inf), np.full(3, -np.inf)
        self.taken = self.not_finite = self.far = self.written = 0
        self.has_intensity = True
        self._counts: dict[tuple[int, int], int] = {}
        self._held: dict[tuple[int, int], list[np.ndarray]] = {}
        self._held_points = 0
        self._middle_m: Optional[np.ndarray] = None
        self.folder.mkdir(parents=True)
        self._spill = Path(tempfile.mkdtemp(prefix=".spill-", dir=self.folder))

    def __enter__(self) -> "TileSet":
        return self

    def __exit__(self, *_: Any) -> None:
        shutil.rmtree(self._spill, ignore_errors=True)

    @property
    def count(self) -> int:
        """Tiles."""
        return len(self._counts)

    @property
    def is_double(self) -> bool:
        """Whether coordinates are so large that float32 would lose a millimetre."""
        return bool(max(np.abs(self.min_m).max(), np.abs(self.max_m).max()) >= FLOAT_IS_ENOUGH_M)

    # ---- dividing

    def add(self, block: Block) -> None:
        """Takes the finite points of a block."""
        points = block.points - self.offset_m
        keep: Any = np.isfinite(points).all(axis=1)
        self.not_finite += len(keep) - int(keep.sum())
        points = points[keep]
        if len(points) == 0:
            return
        if self._middle_m is None:
            self._middle_m = np.round(np.median(points, axis=0) / 100.0) * 100.0
        near: Any = (np.abs(points - self._middle_m) < FAR_M).all(axis=1)
        self.far += len(near) - int(near.sum())
        points = points[near]
        if len(points) == 0:
            return
        self.has_intensity &= block.intensity is not None
        intensity = np.zeros(len(points)) if block.intensity is None else block.intensity[keep][near]
        self.taken += len(points)
        self.min_m = np.minimum(self.min_m, points.min(axis=0))
        self.max_m = np.maximum(self.max_m, points.max(axis=0))
        self._divide(points, intensity)

    def _divide(self, points: np.ndarray, intensity: np.ndarray) -> None:
        assert self._middle_m is not None
        tiles = np.floor(points[:, :2] / self.tile_m).astype(np.int64)
        order = np.lexsort((tiles[:, 0], tiles[:, 1]))
        tiles = tiles[order]
        records = np.empty((len(points), 4), "<f4")
        records[:, :2] = points[order, :2] - tiles * self.tile_m
        records[:, 2] = points[order, 2] - self._middle_m[2]
        records[:, 3] = intensity[order]
        cuts = np.flatnonzero((tiles[1:] != tiles[:-1]).any(axis=1)) + 1
        for begin, end in zip([0, *cuts], [*cuts, len(tiles)]):
            key = (int(tiles[begin, 0]), int(tiles[begin, 1]))
            self._held.setdefault(key, []).append(records[begin:end])
            self._counts[key] = self._counts.get(key, 0) + int(end - begin)
        if len(self._counts) > MOST_TILES:
            raise MapFileError(f"more than {MOST_TILES} tiles of {self.tile_m:g} m: choose a larger --tile")
        self._held_points += len(records)
        if self._held_points >= HELD_POINTS:
            self._flush()

    def _flush(self) -> None:
        for key, parts in self._held.items():
            with (self._spill / f"{key[0]}_{key[1]}").open("ab") as stream:
                for part in parts:
                    stream.write(part.data)
        self._held, self._held_points = {}, 0

    # ---- thinning and writing

    def write(self, progress: Callable[[float], None]) -> None:
        """Writes the tiles and the metadata; `progress` is called with the part that is done, in [0, 1]."""
        self._flush()
        done = 0
        lines = [f"x_resolution: {self.tile_m!r}", f"y_resolution: {self.tile_m!r}"]
        for key in sorted(self._counts):
            corner = (key[0] * self.tile_m, key[1] * self.tile_m)
            name = f"{_short(corner[0])}_{_short(corner[1])}.pcd"
            path = self._spill / f"{key[0]}_{key[1]}"
            self._write_tile(self.folder / name, path, corner, self._counts[key])
            path.unlink()
            lines.append(f"{name}: [{corner[0]!r}, {corner[1]!r}]")
            done += self._counts[key]
            progress(done / self.taken)
        (self.folder / METADATA_NAME).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _write_tile(self, out: Path, spill: Path, corner: tuple[float, float], count: int) -> None:
        assert self._middle_m is not None
        base = np.array([corner[0], corner[1], self._middle_m[2]])
        if self.voxel_m > 0.0:
            thinned = _thin(_records(spill), self.voxel_m, self.tile_m)
            count, blocks = len(thinned), iter([thinned])
        else:
            blocks = _records(spill)
        coordinate = "<f8" if self.is_double else "<f4"
        layout = [(name, coordinate) for name in "xyz"] + ([("intensity", "<f4")] if self.has_intensity else [])
        with out.open("wb") as stream:
            stream.write(_pcd_header(np.dtype(layout), count))
            for block in blocks:
                table = np.empty(len(block), np.dtype(layout))
                for at, name in enumerate("xyz"):
                    table[name] = block[:, at] + base[at]
                if self.has_intensity:
                    table["intensity"] = block[:, 3]
                stream.write(table.data)
        self.written += count


def _records(path: Path) -> Iterator[np.ndarray]:
    with path.open("rb") as stream:
        while True:
            block = np.fromfile(stream, "<f4", 4 * BLOCK_POINTS).reshape(-1, 4)
            if len(block) == 0:
                return
            yield block


def _thin(blocks: Iterator[np.ndarray], voxel_m: float, tile_m: float) -> np.ndarray:
    """(V, 4) float64: the means of the voxels, in the order of their indices; sums are made in the order of the points."""
    keys: np.ndarray = np.empty(0, np.int64)
    counts: np.ndarray = np.empty(0)
    sums: np.ndarray = np.empty((4, 0))
    across = math.ceil(tile_m / voxel_m)
    for block in blocks:
        index = np.floor(block[:, :3].astype(np.float64) / voxel_m).astype(np.int64)
        index[:, :2] = np.clip(index[:, :2], 0, across - 1)  # a float32 may be rounded up to the border
        index[:, 2] += 1 << (_INDEX_BITS - 1)
        key = (index[:, 2] << (2 * _INDEX_BITS)) | (index[:, 1] << _INDEX_BITS) | index[:, 0]
        keys, place = np.unique(np.concatenate([keys, key]), return_inverse=True)
        place = place.reshape(-1)
        weights = np.concatenate([counts, np.ones(len(block))])
        counts = np.bincount(place, weights, len(keys))
        sums = np.stack([np.bincount(place, np.concatenate([sums[k], block[:, k]]), len(keys)) for k in range(4)])
    return (sums / counts).T


def _pcd_header(layout: np.dtype, count: int) -> bytes:
    names = layout.names or ()
    sizes = [layout[name].itemsize for name in names]
    return (f"# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS {' '.join(names)}\n"
            f"SIZE {' '.join(map(str, sizes))}\nTYPE{' F' * len(names)}\nCOUNT{' 1' * len(names)}\nWIDTH {count}\nHEIGHT 1\n"
            f"VIEWPOINT 0 0 0 1 0 0 0\nPOINTS {count}\nDATA binary\n").encode()


def _short(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def free_bytes(folder: Path) -> int:
    """Free space of the disk of a folder, or of the nearest one above that exists."""
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(os.fspath(folder)).free
