"""Folders of scans: .bin, .pcd, .ply with stamps beside them or as names; datasets tells what lies beside those of known data sets."""
import re
from pathlib import Path
from typing import Any, Iterator, List, Optional

import numpy as np

from .._core import read_cloud
from . import topics
from .datasets import Extras, extras, unpack_nclt
from .messages import Raw, RecordingError, Scan, Topic
from .points import only, returns
from .tracks import Track, merged, stamps_ns, static_track

SUFFIXES = (".bin", ".pcd", ".ply")
NS = 1_000_000_000
SCANS_AND_TIMES = (("velodyne", "times.txt"), ("sensor_data/Ouster", ""), ("Ouster", ""), ("velodyne_sync", ""),
                   ("raw_format/ouster_scan", ""), ("ouster_scan", ""), ("samples/LIDAR_TOP", ""),
                   ("sweeps/LIDAR_TOP", ""), ("LIDAR_TOP", ""), ("data", "timestamps.txt"), ("scans", "times.txt"),
                   (".", "times.txt"), (".", "timestamps.txt"), (".", "../times.txt"), (".", "../timestamps.txt"), (".", ""))


def is_scan(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def _decimal_ns(text):
    whole, _, part = text.partition(".")
    return int(whole) * NS + (-1 if whole.startswith("-") else 1) * int((part + "0" * 9)[:9])


def _stamp_ns(line):
    """KITTI raw: a date with nine digits; elsewhere seconds, or nanoseconds as a whole number."""
    if "-" in line[1:] and ":" in line:
        date, _, part = line.partition(".")
        seconds = int(np.datetime64(date.strip().replace(" ", "T"), "s").astype(np.int64))
        return seconds * NS + int((part + "0" * 9)[:9])
    word = line.replace(",", " ").split()[0]
    if "e" in word.lower() or "nan" in word.lower() or "inf" in word.lower():
        return round(float(word) * NS)
    return int(word) if word.isdigit() and len(word) >= 16 else _decimal_ns(word)


def read_stamps(path: Path) -> List[int]:
    """Reads one stamp [ns] per line. RecordingError names a line without one."""
    out = []
    try:
        lines = path.read_text().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path}: {error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            out.append(_stamp_ns(line.strip()))
        except (ValueError, OverflowError):
            raise RecordingError(f"{path}: line {number}: '{line.strip()[:40]}' is not a stamp") from None
    return out


def number_of(path: Path) -> Optional[int]:
    """The last number in the name of a file."""
    digits = re.findall(r"\d+", path.name[: -len("".join(path.suffixes[-1:]))].replace(".pcd", ""))
    return int(digits[-1]) if digits else None


def _stamp_in_name(path):
    """MulRan: ns; nuScenes, NCLT: us; Newer College: seconds and nanoseconds, `cloud_S_NS`; others: seconds with decimals."""
    stem = path.name[: -len(path.suffix)]
    both = re.fullmatch(r"cloud_(\d{9,10})_(\d{1,9})", stem)
    if both:
        return int(both.group(1)) * NS + int(both.group(2))
    seconds = re.search(r"(?<!\d)(\d{9,10})[._](\d{6,9})(?!\d)", stem)
    if seconds:
        return _decimal_ns(seconds.group(1) + "." + seconds.group(2))
    digits = re.findall(r"\d{13,19}", stem)
    return int(digits[-1]) * {19: 1, 18: 1, 16: 1000, 13: 1_000_000}.get(len(digits[-1]), 0) if digits else 0


def _below(path: Path, names: str) -> Path:
    """path / names, also where the names on the disk differ in case: `Scans` for `scans`."""
    for name in Path(names).parts:
        found = path / name
        if not found.exists() and path.is_dir():
            found = next((one for one in sorted(path.iterdir()) if one.name.lower() == name.lower()), found)
        path = found
    return path


def _layout(path):
    """The folder of the scans and the file of their stamps, if there is one."""
    for scans, times in SCANS_AND_TIMES:
        folder, stamps = _below(path, scans), _below(path, times) if times else None
        if stamps is not None and not stamps.exists():
            continue
        if folder.is_dir() and any(is_scan(one) for one in folder.iterdir()):
            return folder, stamps
    raise RecordingError(f"{path}: no recording in it: neither metadata.yaml, .bag, .db3, .mcap, nor scans (.bin, .pcd, .ply)")


def stamps_of(files: list, times: Optional[Path], rate_hz: Optional[float], where: Path) -> List[int]:
    """A stamp per file: of the line that the number in its name tells, of its name, or from a rate."""
    if times is not None:
        stamps = read_stamps(times)
        numbers = [number_of(one) for one in files]
        if len(stamps) != len(files) and all(n is not None and n < len(stamps) for n in numbers):
            return [stamps[n] for n in numbers if n is not None]  # KITTI raw: a few drives lack scans
        if len(stamps) < len(files):
            raise RecordingError(f"{times}: {len(stamps)} stamps for {len(files)} scans")
        if len(stamps) > len(files):
            raise RecordingError(f"{times}: {len(stamps)} stamps for {len(files)} scans whose names do not tell which")
        return stamps
    if rate_hz:
        return [round(i * NS / rate_hz) for i in range(len(files))]
    stamps = [_stamp_in_name(one) for one in files]
    if all(stamps):
        return stamps
    raise RecordingError(f"{where}: when were the scans taken? --times FILE, one stamp per line; or --rate HZ")


class ScanFiles:
    """Reads the scans of a folder; columns: floats per point of a .bin, 4 or 5; packing "nclt": its .bin have no floats."""

    def __init__(self, files: list, columns: Optional[int], packing: Optional[str] = None):
        self._packing = None if columns else packing
        self._columns = 0 if self._packing else columns or self._guess(files)

    @staticmethod
    def _guess(files):
        sizes = [one.stat().st_size for one in files[:20] if one.suffix == ".bin"]
        if not sizes:
            return 4
        fits = [n for n in (4, 5) if all(size % (4 * n) == 0 for size in sizes)]
        if len(fits) == 2:
            ring = np.fromfile(files[0], np.float32, 5 * 1000)[4::5]
            is_ring = len(ring) and np.isfinite(ring).all() and (ring == np.round(ring)).all() and 0 <= ring.min() and ring.max() < 256
            return 5 if is_ring else 4
        if not fits:
            raise RecordingError(f"{files[0]}: {sizes[0]} bytes are neither points of 4 nor of 5 floats; --columns N")
        return fits[0]

    def read(self, path: Path):
        """(points, intensity, time_s) of a file; ValueError, OSError where it is damaged."""
        if path.suffix == ".bin":
            size = path.stat().st_size
            if self._packing:
                if size % 8:
                    raise ValueError(f"{path.name}: {size} bytes are no whole number of points of 8 bytes")
                return (*unpack_nclt(path.read_bytes()), None)
            if size % (4 * self._columns):
                raise ValueError(f"{path.name}: {size} bytes are no whole number of points of {self._columns} floats")
            data = np.fromfile(path, np.float32).reshape(-1, self._columns)
            return data[:, :3], np.ascontiguousarray(data[:, 3]) if self._columns > 3 else None, None
        cloud = read_cloud(path)
        points = cloud["points"]
        if cloud["origin"].any():
            points = points.astype(np.float64) + cloud["origin"]
        return points, cloud["intensity"], cloud["time_s"]

    def scan(self, path: Path, stamp_ns: int, frame_id: str = "lidar") -> Scan:
        points, intensity, time_s = self.read(path)
        good = returns(points.T)
        kept = only(points.T, good).T
        return Scan(stamp_ns, stamp_ns, frame_id, kept, only(intensity, good), only(time_s, good), len(points) - len(kept),
                    seq=number_of(path) or 0)


def sorted_scans(folder: Path) -> list:
    """Files of scans by the number in their names."""
    files = [one for one in folder.iterdir() if is_scan(one) and not one.name.startswith(".")]
    return sorted(files, key=lambda one: (number_of(one) or 0, one.name))


def _sweeps(folder):
    """nuScenes keeps the scans between its samples in a folder of their own."""
    sweeps = folder.parent.parent / "sweeps" / folder.name
    return sorted_scans(sweeps) if folder.parent.name == "samples" and sweeps.is_dir() else []


def scan_track(name: str, files: List[Path], stamps: List[int], reader: ScanFiles, frame_id: str) -> Track:
    """The scans of files. Numbers in their names count as sequence numbers where they grow with the stamps."""
    at = stamps_ns(stamps)
    numbers = np.array([number_of(one) or 0 for one in np.array(files, object)[np.argsort(at, kind="stable")]])
    has_numbers = bool((np.diff(numbers) > 0).all() and numbers[-1] < 10**9)

    def read(number: int, stamp_ns: int) -> Scan:
        scan = reader.scan(files[number], stamp_ns, frame_id)
        scan.seq = scan.seq if has_numbers else None
        return scan
    return Track(Topic(name, "folder of scans", len(files), kinds=("scan",)), at, read, lambda number: files[number].stat().st_size)


class FolderRecording:
    """A folder of scans, and what a known data set has beside them."""

    seeks = True

    def __init__(self, path: Path, options: topics.Options):
        folder, times = _layout(path)
        files = sorted_scans(folder) + _sweeps(folder)
        times = Path(options.times) if options.times else times
        stamps = stamps_of(files, times, options.rate_hz, folder)
        back = sum(b < a for a, b in zip(stamps, stamps[1:])) if times else 0
        self.notes = [f"{times}: {back} of {len(stamps)} stamps are earlier than those before them: scans are in the order of their "
                      "stamps, not of their names"] if back else []
        found: Extras = extras(path, folder, stamps)
        scans = scan_track(folder.name, files, stamps, ScanFiles(files, options.columns, found.read), found.frame)
        self.open(path, files, scans, found, options)

    def open(self, path: Path, files: List[Path], scans: Track, found: Extras, options: topics.Options) -> None:
        """Chooses among the scans and what there is besides."""
        tracks = [scans, *found.tracks, *([static_track(found.places)] if found.places else [])]
        self.name, self.files, self._tracks = str(path), files + found.files, tracks
        self.topics = [track.topic for track in tracks]
        spans: List[Any] = [track.stamps for track in tracks if track.topic.kinds != ("tf",) and len(track.stamps)]
        self.start_ns = min(int(stamps.min()) for stamps in spans)
        self.duration_s = (max(int(stamps.max()) for stamps in spans) - self.start_ns) * 1e-9
        topics.choose(self.topics, options, self.name, self.duration_s)

    def raw(self, wanted: list, start_ns: Optional[int] = None) -> Iterator[Raw]:
        """The messages of topics in the order of their stamps, from start_ns on."""
        return merged(self._tracks, wanted, start_ns)
