"""ndt-import map: point clouds of any kind to a folder of tiles for `ndtd --map`."""
import argparse
import errno
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Optional

import numpy as np

from . import _child
from ._arguments import Parser, UsageError, add_version, finish, join_negative
from ._extras import os_error_text
from ._progress import Progress
from .georeference import FILE_NAME, Projector
from .maps.point_files import Block, MapFileError, PointFile, find_files
from .maps.tiles import FLOAT_IS_ENOUGH_M, METADATA_NAME, TileSet, free_bytes

COARSE_M = 0.01  # a float32 that is rounded by more is worth a line
THIN_TILES, THIN_PER_M2 = 1000, 0.02  # more tiles than that, with fewer points in the mean, are no map in metres
MANY_POINTS = 1000


def parser() -> argparse.ArgumentParser:
    """The command line."""
    out = Parser(prog="ndt-import map", description=f"Makes {__doc__.split(': ', 1)[1]}", epilog="""
Reads LAS, LAZ, text (.xyz .txt .csv .asc .pts), .npy (N x 3 or more, or records), .pcd, .ply, .bin and folders of these; E57
has to be written as PLY or LAZ first. Writes DIR with one PCD per tile, pointcloud_map_metadata.yaml as Autoware has it and,
where the coordinate system is known, map_projector_info.yaml. Coordinates above 8192 m are written as float64, which ndtd
reads; PCL and Autoware need float32: --offset auto.""")
    add_version(out)
    out.add_argument("input", nargs="+", metavar="IN", help="files or folders")
    out.add_argument("-o", "--out", metavar="DIR", required=True, help="folder to write")
    out.add_argument("--force", action="store_true", help="replace the map in DIR")
    out.add_argument("--tile", type=float, default=20.0, metavar="M", help="edge of a tile, 1 to 2000 m (default: 20)")
    out.add_argument("--voxel", type=float, default=0.1, metavar="M",
                     help="keep the mean of the points in each cube of this edge, 0.01 m or more; 0: keep all (default: 0.1)")
    out.add_argument("--offset", default="none", metavar="WHAT", help="what to take off the coordinates: none, x,y,z, auto (whole "
                     "kilometres, where they are large) or mgrs (to the corner of the square of 100 km) (default: none)")
    out.add_argument("--epsg", metavar="CODE", help="coordinate system of the points; default: what LAS and LAZ files say")
    out.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    return out


def _check(args: argparse.Namespace) -> None:
    if not 1.0 <= args.tile <= 2000.0:
        raise UsageError(f"--tile {args.tile:g}: 1 to 2000 m are possible")
    if args.voxel != 0.0 and not 0.01 <= args.voxel <= args.tile:
        raise UsageError(f"--voxel {args.voxel:g}: 0, or 0.01 m to the edge of a tile")


# ---- where the map is


def _system(files: "list[PointFile]", epsg: Optional[str]) -> Any:
    """The CRS as pyproj.CRS or what --epsg says, None where nothing is known. MapFileError where files differ."""
    if epsg:
        return f"EPSG:{epsg}" if epsg.isdigit() else epsg
    known = [(one.path, one.crs) for one in files if one.crs is not None]
    for path, crs in known:
        if crs != known[0][1]:
            raise MapFileError(f"{path}: is in {crs.name}, but {known[0][0]} in {known[0][1].name}; convert one, or tell --epsg")
    return known[0][1] if known else None


def _middle(files: "list[PointFile]") -> np.ndarray:
    """The median of the first points (3,)."""
    for one in files:
        for block in one.blocks():
            finite = block.points[np.isfinite(block.points).all(axis=1)]
            if len(finite):
                return np.median(finite, axis=0)
    raise MapFileError(f"{files[0].path}: no finite point in it")


def _offset(text: str, files: "list[PointFile]", crs: Any) -> np.ndarray:
    """Offset that is taken off the coordinates, (3,)."""
    if text == "none":
        return np.zeros(3)
    if text in ("auto", "mgrs"):
        middle = _middle(files)
        if text == "mgrs" and crs is None:
            raise UsageError("--offset mgrs: the points have to be in UTM; tell with --epsg")
        if text == "auto" and np.abs(middle[:2]).max() < FLOAT_IS_ENOUGH_M:
            return np.zeros(3)
        step = 1e5 if text == "mgrs" else 1e3
        return np.array([step * np.floor(middle[0] / step), step * np.floor(middle[1] / step), 0.0])
    try:
        offset = np.array([float(word) for word in text.split(",")])
    except ValueError:
        offset = np.empty(0)
    if offset.shape not in ((2,), (3,)) or not np.isfinite(offset).all():
        raise UsageError(f"--offset {text}: none, auto, mgrs, or x,y,z in metres")
    return np.append(offset, 0.0)[:3]


def _projector(crs: Any, offset: np.ndarray, args: argparse.Namespace) -> "tuple[Optional[Projector], str]":
    """The projector of the map, or None and a note."""
    if crs is not None:
        found = Projector.from_crs(crs, offset)
        if args.offset == "mgrs" and found.info["projector_type"] != "MGRS":
            raise UsageError(f"--offset mgrs: the points have to be in UTM, not in {found.info.get('crs', crs)}")
        return found, ""
    beside = _beside(args.input[0])
    if beside is None:
        return None, "the coordinate system is not known (--epsg tells it): the map is not georeferenced"
    if offset.any():
        return None, f"{beside} is left: it does not hold with an --offset"
    return Projector.from_file(beside), ""


def _beside(path: str) -> Optional[Path]:
    at = Path(path)
    for folder in (at, at.parent):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME if Projector.find(at) else None
    return None


# ---- the work


def _spacing(block: Block) -> float:
    """The largest distance between neighbouring numbers of float32 coordinates [m]; 0 for float64."""
    most = np.abs(block.points).max(initial=0.0, where=np.isfinite(block.points)) if block.is_float else 0.0
    return float(np.spacing(np.float32(most)))


def _check_unit(path: Any, tiles: TileSet, part: float) -> None:
    """Millimetres, centimetres and degrees as metres: thinner than any map, or all of it within a metre. `part` is read of the input."""
    if tiles.count > THIN_TILES and tiles.taken < part * THIN_PER_M2 * tiles.tile_m ** 2 * tiles.count:
        raise MapFileError(f"{path}: {tiles.taken} points in {tiles.count} tiles of {tiles.tile_m:g} m, too few to match anything: are they in "
                           "millimetres? A map needs metres")
    size_m = (tiles.max_m - tiles.min_m)[:2]
    if part == 1.0 and tiles.taken > MANY_POINTS and (size_m < 1.0).all():
        low, high = tiles.min_m, tiles.max_m
        raise MapFileError(f"{path}: all {tiles.taken} points are within a metre, x {low[0]:.5g} .. {high[0]:.5g}, y {low[1]:.5g} .. {high[1]:.5g}: "
                           "are they degrees, or kilometres? A map needs metres, such as those of UTM")


def _divide(files: "list[PointFile]", tiles: TileSet, quiet: bool) -> "tuple[int, list[str]]":
    """Reads all; returns the number of points that the files mark as noise, and lines about lost digits."""
    total, before, left, notes = sum(one.size for one in files), 0, 0, []
    with Progress("reading", quiet) as progress:
        for one in files:
            spacing_m = 0.0
            for block in one.blocks():
                tiles.add(block)
                left += block.left
                spacing_m = max(spacing_m, _spacing(block))
                part = (before + block.part * one.size) / total
                _check_unit(one.path, tiles, part)
                progress.update(part, f"{tiles.taken / 1e6:.1f} M points")
            before += one.size
            if spacing_m > COARSE_M:
                notes.append(f"note:    {one.path}: float32 at such coordinates is rounded to {100 * spacing_m:.2g} cm: write float64, "
                             "or take the offset off before")
    return left, notes


def _replace(part: Path, out: Path) -> None:
    if out.exists():
        shutil.rmtree(out)
    os.replace(part, out)


def _check_out(out: Path, force: bool, inputs: "list[str]") -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise UsageError(f"{out}: is a file; -o names a folder")
    if any(out.resolve() in (Path(one).resolve(), *Path(one).resolve().parents) for one in inputs):
        raise UsageError(f"{out}: an input is in it")
    if any(out.iterdir()):
        if not force:
            raise UsageError(f"{out}: exists and is not empty; --force replaces the map in it")
        if not (out / METADATA_NAME).is_file():
            raise UsageError(f"{out}: is not empty and has no {METADATA_NAME}: it is not replaced")


def _summary(tiles: TileSet, noise: int, out: Path, projector: Optional[Projector], note: str, args: argparse.Namespace) -> "list[str]":
    low, high = tiles.min_m, tiles.max_m
    thinned = f", one per voxel of {args.voxel:g} m out of {tiles.taken}" if args.voxel else ""
    lines = [f"written: {out}: {tiles.count} tiles of {args.tile:g} m, {tiles.written} points{thinned}",
             "bounds:  " + ", ".join(f"{name} {a:.1f} .. {b:.1f}" for name, a, b in zip("xyz", low, high)) + " m"]
    if tiles.offset_m.any():
        lines.append("offset:  " + ", ".join(f"{value:.12g}" for value in tiles.offset_m) + " m are taken off the coordinates")
    for count, why in ((noise, "marked as noise or withheld"), (tiles.not_finite, "not finite"),
                       (tiles.far, "100 km or more away from the others, or 8 km above or below")):
        if count:
            lines.append(f"left:    {count} points {why}")
    if projector is not None:
        lines.append("place:   " + ", ".join(f"{key} {value}" for key, value in projector.info.items() if key != "vertical_datum"))
        lines += [f"note:    {text}" for text in [projector.heights_note()] if text]
    if note:
        lines.append(f"note:    {note}")
    if tiles.is_double and args.offset != "auto":
        lines.append("note:    coordinates are float64; PCL and Autoware need float32: --offset auto")
    return lines


def import_map(args: argparse.Namespace) -> None:
    """Imports a map as the command line says; failures leave DIR as it was."""
    _check(args)
    out = Path(args.out)
    files = find_files(args.input)
    _check_out(out, args.force, args.input)
    crs = _system(files, args.epsg)
    offset = _offset(args.offset, files, crs)
    projector, note = _projector(crs, offset, args)
    part = _child.part_of(out)
    try:
        with TileSet(part, args.tile, args.voxel, offset) as tiles:
            noise, coarse = _divide(files, tiles, args.quiet)
            if tiles.taken == 0:
                raise MapFileError(f"{files[0].path}: no point to make a map from")
            _check_unit(files[0].path, tiles, 1.0)
            with Progress("writing", args.quiet) as progress:
                tiles.write(progress.update)
        if projector is not None:
            projector.write(part)
        _replace(part, out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    if not args.quiet:
        print("\n".join(_summary(tiles, noise, out, projector, note, args) + coarse + [f"next:    ndtd --map {out}"]))


def main(arguments: "Optional[list[str]]" = None) -> int:
    """Returns the exit code."""
    args = parser().parse_args(join_negative(arguments, sys.argv[1:], "--offset"))

    def work() -> None:
        try:
            import_map(args)
        except OSError as error:
            space = f"; {free_bytes(Path(args.out)) / 1e9:.1f} GB are free there" if error.errno == errno.ENOSPC else ""
            raise MapFileError(os_error_text(error, args.out).replace(_child.part_of(Path(args.out)).name, Path(args.out).name) + space) from error

    return finish("ndt-import map", work)


def command(arguments: "list[str]") -> int:
    """The console command: main in a process of its own."""
    args = parser().parse_args(join_negative(arguments, [], "--offset"))
    return _child.run(lambda: main(arguments), "ndt-import map", args.input[0], Path(args.out))


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
