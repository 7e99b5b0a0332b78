"""Point clouds of maps, read in blocks: LAS and LAZ, text, numpy, PCD, PLY and KITTI's .bin."""
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import numpy as np

from .. import _core
from .. import _child
from .._extras import NOT_OF_PARSERS, need

BLOCK_POINTS = 1_000_000
NOISE_CLASSES = (7, 18)  # low and high noise of the LAS specification
_E57 = ("E57 is not read; write PLY or LAZ from it, for example with "
        "`CloudCompare -SILENT -O {0} -C_EXPORT_FMT PLY -SAVE_CLOUDS` or `pdal translate {0} {1}.laz`")


class MapFileError(ValueError):
    """A file that cannot be used; one line with its name and the reason."""


@dataclass
class Block:
    """Some points of a file."""

    points: np.ndarray  # (N, 3) float64 [m]
    intensity: Optional[np.ndarray]  # (N,) float32, or None
    left: int = 0  # points before these that the file marks as noise or withheld
    part: float = 1.0  # of the file that has been read, in [0, 1]
    is_float: bool = False  # the file has float32


class PointFile:
    """One file: `crs` (pyproj.CRS, or None), `blocks()`."""

    def __init__(self, path: Any):
        self.path = Path(path)
        kind = self.path.suffix.lower()
        if kind == ".e57":
            raise MapFileError(f"{path}: {_E57.format(self.path.name, self.path.stem)}")
        if kind not in _READERS:
            raise MapFileError(f"{path}: not a point cloud; known are {' '.join(sorted(_READERS))}, and folders of these")
        self.size = self.path.stat().st_size
        if self.size == 0:
            raise MapFileError(f"{path}: is empty")
        self._read = _READERS[kind]
        self.crs = _las_crs(self.path) if self._read is _las_blocks else None

    def blocks(self) -> Iterator[Block]:
        """Yields at most a million points at once, except for PCD, PLY and .bin, which are held whole (as float32) meanwhile."""
        _child.working_on(self.path)
        return self._read(self.path)


def find_files(paths: Iterable[Any]) -> list[PointFile]:
    """The files, and those in the folders and their folders, sorted by name; .txt in folders, where they may be anything, only
    if there is nothing else. MapFileError."""
    out = []
    for path in map(Path, paths):
        if not path.exists():
            raise MapFileError(f"{path}: no such file or folder")
        if not path.is_dir():
            out.append(PointFile(path))
            continue
        known = sorted(one for one in path.rglob("*") if one.is_file() and one.suffix.lower() in _READERS)
        if not known:
            raise MapFileError(f"{path}: no point cloud in this folder; known are {' '.join(sorted(_READERS))}")
        points = [one for one in known if one.suffix.lower() != ".txt"]
        out += [PointFile(one) for one in points or known]
    return out


# ---- LAS, LAZ


def _las_open(path: Path) -> Any:
    laspy = need("laspy", "las")
    if path.suffix.lower() == ".laz":
        need("lazrs", "las")
    _check_las(path)
    _child.working_on(path)
    try:
        return laspy.open(str(path))
    except NOT_OF_PARSERS:
        raise
    except BaseException as error:
        raise _unreadable(path, "LAS", error) from None


def _check_las(path: Path) -> None:
    """laspy reads as many records as the header counts, for hours where the count is wrong: they have to fit into the file."""
    with path.open("rb") as stream:
        head = stream.read(375)
    counts = [(head[100:104], 54)] + ([(head[243:247], 60)] if head[24:26] >= b"\1\4" else [])
    for count, size in counts:
        if int.from_bytes(count, "little") * size > path.stat().st_size:
            raise MapFileError(f"{path}: not a readable LAS file: it counts {int.from_bytes(count, 'little')} records in its header, "
                               "more than it has room for")
    if path.suffix.lower() == ".laz":
        _check_chunks(path, head)


def _check_chunks(path: Path, head: bytes) -> None:
    """lazrs makes room for as many chunks as their table counts: each has a point at least, which is not compressed."""
    size, point_bytes = path.stat().st_size, max(int.from_bytes(head[105:107], "little"), 20)
    with path.open("rb") as stream:
        stream.seek(int.from_bytes(head[96:100], "little"))
        table = int.from_bytes(stream.read(8), "little", signed=True)
        if table == -1:  # written without seeking: its place is at the end
            stream.seek(max(size - 8, 0))
            table = int.from_bytes(stream.read(8), "little", signed=True)
        stream.seek(min(max(table, 0) + 4, size))
        chunks = int.from_bytes(stream.read(4), "little")
    if chunks * point_bytes > size:
        raise MapFileError(f"{path}: not a readable LAS file: its table counts {chunks} chunks, more than it has room for")


def _unreadable(path: Path, kind: str, error: Exception) -> MapFileError:
    return MapFileError(f"{path}: not a readable {kind} file: {' '.join(str(error).split()) or type(error).__name__}")


def _las_crs(path: Path) -> Any:
    with _las_open(path) as reader:
        try:
            return reader.header.parse_crs()
        except Exception:  # no pyproj, or a description that it does not know: as without one
            return None


def _las_blocks(path: Path) -> Iterator[Block]:
    with _las_open(path) as reader:
        total, done = max(reader.header.point_count, 1), 0
        chunks = reader.chunk_iterator(BLOCK_POINTS)
        while True:
            try:
                chunk = next(chunks, None)
                if chunk is None:
                    return
                keep = ~np.isin(np.asarray(chunk.classification), NOISE_CLASSES) & (np.asarray(chunk.withheld) == 0)
                points = np.column_stack([chunk.x, chunk.y, chunk.z])[keep]
                intensity = np.asarray(chunk.intensity)[keep].astype(np.float32)
            except NOT_OF_PARSERS:
                raise
            except BaseException as error:
                raise _unreadable(path, "LAS", error) from None
            done += len(keep)
            yield Block(points, intensity, len(keep) - len(points), done / total)


# ---- text


def _text_blocks(path: Path) -> Iterator[Block]:
    size = max(path.stat().st_size, 1)
    with path.open("r", encoding="utf-8", errors="replace", newline=None) as stream:
        separator, columns, head = _text_layout(path, stream)
        number, read = len(head.skipped), sum(map(len, head.skipped))
        lines: Iterable[str] = itertools.chain(head.kept, stream)
        while True:
            some = list(itertools.islice(lines, BLOCK_POINTS // 4))
            if not some:
                return
            values = _numbers(path, some, separator, columns, number)
            number += len(some)
            read += sum(map(len, some))
            intensity = values[:, 3].astype(np.float32) if len(columns) > 3 else None
            yield Block(np.ascontiguousarray(values[:, :3]), intensity, 0, min(read / size, 1.0))


@dataclass
class _Head:
    skipped: list[str]
    kept: list[str]


def _text_layout(path: Path, stream: Any) -> "tuple[Optional[str], list[int], _Head]":
    """Separator, columns of x y z (and intensity), and the lines that were read to find them."""
    skipped = []
    for line in itertools.islice(stream, 100):
        text = line.strip()
        is_count = len(text.split()) == 1 and text.isdigit() and path.suffix.lower() == ".pts"
        if not text or is_count or (text[0] in "#/" and not _names(text)):
            skipped.append(line)
            continue
        separator = next((one for one in (",", ";") if one in text), None)
        words = [word.strip() for word in text.split(separator)]
        names = _names(text)
        if names:
            skipped.append(line)
            wanted = ["x", "y", "z"] + (["intensity"] if "intensity" in names else [])
            return separator, [names.index(name) for name in wanted], _Head(skipped, [])
        if len(words) < 3 or not all(_is_number(word) for word in words[:3]):
            commas = len([word for word in text.replace(";", " ").split() if "," in word and _is_number(word.replace(",", "."))])
            why = "; decimal commas are not read: write points" if commas >= 3 else ""
            raise MapFileError(f"{path}: line {len(skipped) + 1}: neither x y z nor a header with these names: {text[:60]}{why}")
        return separator, [0, 1, 2], _Head(skipped, [line])
    raise MapFileError(f"{path}: no points in its first 100 lines")


def _names(text: str) -> Optional[list[str]]:
    """The columns of a header, lower case; None if the line is not one."""
    text = text.lstrip("#/ ").lower()
    for separator in (",", ";", None):
        names = [name.strip(' "\'') for name in text.split(separator)]
        if {"x", "y", "z"} <= set(names):
            return names
    return None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _numbers(path: Path, lines: list[str], separator: Optional[str], columns: list[int], before: int) -> np.ndarray:
    try:
        return np.loadtxt(lines, delimiter=separator, usecols=columns, ndmin=2, comments=("#", "//"))
    except (ValueError, IndexError):
        for at, line in enumerate(lines):
            text = line.split("#")[0].split("//")[0].strip()
            words = text.split(separator)
            if text and not (len(words) > max(columns) and all(_is_number(words[column]) for column in columns)):
                raise MapFileError(f"{path}: line {before + at + 1}: not the numbers of a point: {text[:60]}") from None
        raise


# ---- numpy


def _npy_blocks(path: Path) -> Iterator[Block]:
    try:
        array = np.load(str(path), mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise _unreadable(path, "numpy", error) from None
    names = array.dtype.names
    if names and array.ndim == 1 and {"x", "y", "z"} <= set(names):
        columns: Any = ["x", "y", "z"]
        has_intensity = "intensity" in names
    elif not names and array.ndim == 2 and array.shape[1] >= 3 and np.issubdtype(array.dtype, np.number):
        columns, has_intensity = None, array.shape[1] > 3
    else:
        raise MapFileError(f"{path}: neither an N x 3 array nor records with x, y and z: shape {array.shape}, {array.dtype}")
    for begin in range(0, len(array), BLOCK_POINTS):
        some = array[begin:begin + BLOCK_POINTS]
        points = np.column_stack([some[name] for name in columns]) if columns else some[:, :3]
        intensity = (some["intensity"] if columns else some[:, 3]) if has_intensity else None
        yield Block(points.astype(np.float64), None if intensity is None else np.asarray(intensity, np.float32), 0,
                    (begin + len(some)) / len(array), points.dtype == np.float32)


# ---- the formats of ndtd


def _cloud_blocks(path: Path) -> Iterator[Block]:
    try:
        cloud = _core.read_cloud(path)
    except (ValueError, RuntimeError) as error:
        raise MapFileError(str(error)) from None
    points, intensity = cloud["points"], cloud["intensity"]
    is_float = not cloud["origin"].any()  # float64 far from zero has an origin; near it, nothing is lost
    for begin in range(0, len(points), BLOCK_POINTS):
        end = min(begin + BLOCK_POINTS, len(points))
        yield Block(points[begin:end] + cloud["origin"], None if intensity is None else intensity[begin:end].copy(), 0,
                    end / len(points), is_float)


_READERS = {".las": _las_blocks, ".laz": _las_blocks, ".pcd": _cloud_blocks, ".ply": _cloud_blocks, ".bin": _cloud_blocks,
            ".npy": _npy_blocks, ".xyz": _text_blocks, ".txt": _text_blocks, ".csv": _text_blocks, ".asc": _text_blocks,
            ".pts": _text_blocks}
