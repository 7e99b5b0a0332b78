"""Folders of scans: KITTI odometry (velodyne/, times.txt, poses), nuScenes and MulRan (stamps as names), .bin, .pcd, .ply."""
import re
from functools import partial
from pathlib import Path
from typing import Iterator, List, Optional

import numpy as np

from .._core import read_cloud
from ..poses import pose_of
from . import topics
from .messages import Pose, Raw, RecordingError, Scan, Topic
from .points import only, returns

SUFFIXES = (".bin", ".pcd", ".ply")
NS = 1_000_000_000
SCANS_AND_TIMES = (("velodyne", "times.txt"), ("sensor_data/Ouster", ""), ("Ouster", ""), ("samples/LIDAR_TOP", ""),
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
    """MulRan: ns; nuScenes: us; others: seconds with decimals."""
    stem = path.name[: -len(path.suffix)]
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
    """Reads the scans of a folder; columns: floats per point of a .bin, 4 or 5."""

    def __init__(self, files: list, columns: Optional[int]):
        self._columns = columns or self._guess(files)

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


class FolderRecording:
    """A folder of scans, and for KITTI odometry and MulRan the true poses beside them."""

    seeks = True

    def __init__(self, path: Path, options: topics.Options):
        folder, times = _layout(path)
        self.name = str(path)
        self.files = sorted_scans(folder) + _sweeps(folder)
        stamps = stamps_of(self.files, Path(options.times) if options.times else times, options.rate_hz, folder)
        self._seq_by_number = len({number_of(one) for one in self.files}) == len(self.files) and \
            all((number_of(one) or 0) < 10**9 for one in self.files)
        self._reader = ScanFiles(self.files, options.columns)
        self._scans = Topic(folder.name, "folder of scans", len(self.files), kinds=("scan",))
        self._events = [(stamp, 1, self._scans, file) for file, stamp in zip(self.files, stamps)]
        self.topics = [self._scans]
        self._add_truth(path, stamps)
        self._events.sort(key=lambda event: event[:2])
        self.start_ns = self._events[0][0]
        self.duration_s = (self._events[-1][0] - self.start_ns) * 1e-9
        topics.choose(self.topics, options, self.name, self.duration_s)

    def _add_truth(self, path, stamps):
        poses = _kitti_poses(path, stamps) or _mulran_poses(path)
        if poses:
            truth = Topic("poses", "file of poses", len(poses), kinds=("truth", "odometry"))
            self.topics.append(truth)
            self._events += [(stamp, 0, truth, T) for stamp, T in poses]

    def _message(self, topic, stamp_ns, what):
        if topic is self._scans:
            scan = self._reader.scan(what, stamp_ns)
            scan.seq = scan.seq if self._seq_by_number else None
            return [scan]
        return [Pose(stamp_ns, stamp_ns, "map", pose_of(what))]

    def raw(self, wanted: list, start_ns: Optional[int] = None) -> Iterator[Raw]:
        """The messages of topics in the order of their stamps, from start_ns on."""
        for stamp_ns, _, topic, what in self._events:
            if topic in wanted and (start_ns is None or stamp_ns >= start_ns):
                size = what.stat().st_size if isinstance(what, Path) else 128
                yield Raw(topic, stamp_ns, size, partial(self._message, topic, stamp_ns, what))


def read_matrices(path: Path) -> np.ndarray:
    """(N, 4, 4) from lines of 12 numbers."""
    try:
        rows = np.loadtxt(path, ndmin=2)
    except ValueError as error:
        raise RecordingError(f"{path}: {error}") from None
    if rows.size == 0 or rows.shape[1] != 12:
        raise RecordingError(f"{path}: lines of 12 numbers are expected")
    out = np.tile(np.eye(4), (len(rows), 1, 1))
    out[:, :3] = rows.reshape(-1, 3, 4)
    return out


def read_calibration(path: Path) -> dict:
    """Lines `name: numbers` of KITTI."""
    out = {}
    for line in path.read_text().split("\n"):
        name, colon, rest = line.partition(":")
        try:
            out[name.strip()] = np.array([float(word) for word in rest.split()])
        except ValueError:
            continue  # calib_time
    return out


def _kitti_poses(path, stamps):
    """KITTI odometry: poses of the camera, ../../poses/NN.txt or poses.txt, with Tr of calib.txt."""
    number = path.resolve().name
    file = next((one for one in (path / "poses.txt", path / f"{number}.txt", path.parent.parent / "poses" / f"{number}.txt",
                                 path.parent / "poses" / f"{number}.txt") if one.exists()), None)
    calibration = path / "calib.txt"
    if file is None or not (path / "velodyne").is_dir():
        return []
    T_camera_lidar = np.eye(4)
    if calibration.exists():
        tr = read_calibration(calibration).get("Tr")
        if tr is None or tr.size != 12:
            raise RecordingError(f"{calibration}: no line 'Tr:' of 12 numbers")
        T_camera_lidar[:3] = tr.reshape(3, 4)
    else:
        raise RecordingError(f"{calibration}: missing: without it {file.name} says nothing about the LiDAR")
    poses = np.linalg.inv(T_camera_lidar) @ read_matrices(file) @ T_camera_lidar
    return list(zip(stamps, poses))


def _mulran_poses(path):
    """MulRan: global_pose.csv, a stamp [ns] and 12 numbers per line."""
    file = path / "global_pose.csv"
    if not file.exists():
        return []
    out = []
    for number, line in enumerate(file.read_text().split("\n"), 1):
        words = line.replace(",", " ").split()
        if not words:
            continue
        if len(words) != 13:
            raise RecordingError(f"{file}: line {number}: a stamp and 12 numbers are expected")
        T = np.eye(4)
        T[:3] = np.array([float(word) for word in words[1:]]).reshape(3, 4)
        out.append((int(words[0]), T))
    return out
