"""KITTI raw drives: velodyne_points/, and oxts/ as odometry, IMU and GNSS of the unit on the vehicle."""
from functools import partial
from pathlib import Path
from typing import Iterator, List, Optional

import numpy as np

from ..poses import from_euler, pose_of, rotation
from . import topics
from .datasets import read_calibration, rigid
from .folders import ScanFiles, number_of, read_stamps, sorted_scans, stamps_of
from .messages import Gnss, Imu, Odometry, Raw, RecordingError, Topic, Transform

EARTH_M = 6378137.0
VALUES = 30  # per file of oxts: README of the raw data development kit
UNIT, LIDAR = "imu_link", "velodyne"
ORDER = {"odometry": 0, "imu": 1, "gnss": 2, "scan": 3}


def is_drive(path: Path) -> bool:
    return (path / "velodyne_points" / "data").is_dir()


def unit_poses(oxts: np.ndarray) -> np.ndarray:
    """(N, 4, 4) of the unit from rows of oxts, relative to the first: Mercator's projection at its latitude."""
    scale = np.cos(np.radians(oxts[0, 0]))
    out = np.tile(np.eye(4), (len(oxts), 1, 1))
    out[:, 0, 3] = scale * EARTH_M * np.radians(oxts[:, 1])
    out[:, 1, 3] = scale * EARTH_M * np.log(np.tan(np.pi / 4 + np.radians(oxts[:, 0]) / 2))
    out[:, 2, 3] = oxts[:, 2]
    for T, row in zip(out, oxts):
        T[:3, :3] = rotation(from_euler((0, 0, 0), row[3:6]))
    out[:, :3, 3] -= out[0, :3, 3].copy()
    return np.linalg.inv(out[0]) @ out


def _read_oxts(path):
    files = sorted((path / "oxts" / "data").glob("*.txt"))
    if not files:
        return None, []
    stamps = read_stamps(path / "oxts" / "timestamps.txt")
    rows = []
    for file in files:
        values = file.read_text(errors="replace").split()
        if len(values) < VALUES:
            raise RecordingError(f"{file}: {len(values)} values, {VALUES} are expected")
        try:
            rows.append([float(value) for value in values[:VALUES]])
        except ValueError as error:
            raise RecordingError(f"{file}: {str(error)[:160]}") from None
    numbers = [number_of(file) for file in files]
    if any(n is None or n >= len(stamps) for n in numbers):
        raise RecordingError(f"{path / 'oxts' / 'timestamps.txt'}: {len(stamps)} stamps for {len(files)} files")
    return np.array(rows), [stamps[n] for n in numbers]


def _calibration(path):
    """T_lidar_unit of calib_imu_to_velo.txt in the folder of the drive or of its day, or None."""
    for folder in (path, path.parent, path.resolve().parent):
        file = folder / "calib_imu_to_velo.txt"
        if file.exists():
            values = read_calibration(file)
            if "R" not in values or "T" not in values or values["R"].size != 9 or values["T"].size != 3:
                raise RecordingError(f"{file}: no lines 'R:' of 9 and 'T:' of 3 numbers")
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = values["R"].reshape(3, 3), values["T"]
            return rigid(file, "'R:' and 'T:' are", T)
    return None


class KittiDrive:
    """A folder such as 2011_09_26_drive_0005_sync (or _extract)."""

    seeks = True

    def __init__(self, path: Path, options: topics.Options):
        self.name = str(path)
        self.notes: List[str] = []
        folder = path / "velodyne_points"
        self.files = sorted_scans(folder / "data")
        if not self.files:
            raise RecordingError(f"{folder / 'data'}: no scans (.bin) in it")
        times = Path(options.times) if options.times else folder / "timestamps.txt"
        stamps = stamps_of(self.files, times if times.exists() else None, options.rate_hz, folder)
        self._reader = ScanFiles(self.files, options.columns or 4)
        scans = Topic("velodyne_points", "folder of scans", len(self.files), kinds=("scan",))
        self.topics = [scans]
        self._events = [(stamp, ORDER["scan"], scans, file) for file, stamp in zip(self.files, stamps)]
        self._T_lidar_unit = _calibration(path)
        self._add_oxts(path)
        self._events.sort(key=lambda event: event[:2])
        self.start_ns = self._events[0][0]
        self.duration_s = (self._events[-1][0] - self.start_ns) * 1e-9
        self.settings = {"preprocess": {"deskew": "azimuth_cw", "sweep_stamp": "middle"}}
        topics.choose(self.topics, options, self.name, self.duration_s)

    def _add_oxts(self, path):
        rows, stamps = _read_oxts(path)
        if rows is None:
            self.notes.append("there is no oxts/: no odometry, IMU and GNSS")
            return
        self._rows, self._poses = rows, unit_poses(rows)
        for kind in ("odometry", "imu", "gnss"):
            topic = Topic(f"oxts/{kind}", "oxts", len(rows), kinds=(kind,))
            self.topics.append(topic)
            self._events += [(stamp, ORDER[kind], topic, number) for number, stamp in enumerate(stamps)]
        if self._T_lidar_unit is None:
            self.notes.append("there is no calib_imu_to_velo.txt, here or in the folder of the day: odometry counts as that of the LiDAR")
        else:
            self.topics.append(Topic("calib_imu_to_velo/tf_static", "calibration", 1, kinds=("tf",)))

    def _message(self, topic, stamp_ns, what):
        if topic.kind == "scan":
            return [self._reader.scan(what, stamp_ns, LIDAR)]
        if topic.kind == "tf":
            return [Transform(stamp_ns, LIDAR, UNIT, pose_of(self._T_lidar_unit)),
                    Transform(stamp_ns, "base_link", LIDAR, np.array([0, 0, 0, 0, 0, 0, 1.0]))]
        row, unit = self._rows[what], UNIT if self._T_lidar_unit is not None else LIDAR
        if topic.kind == "odometry":
            return [Odometry(stamp_ns, stamp_ns, "odom", unit, pose_of(self._poses[what]), np.concatenate([row[8:11], row[17:20]]))]
        if topic.kind == "imu":
            return [Imu(stamp_ns, stamp_ns, unit, row[17:20], row[11:14])]
        deviation = np.full(3, row[23]) if row[23] > 0 else None
        return [Gnss(stamp_ns, stamp_ns, unit, row[0], row[1], row[2], deviation)]

    def raw(self, wanted: list, start_ns: Optional[int] = None) -> Iterator[Raw]:
        """The messages of topics in the order of their stamps, from start_ns on."""
        for topic in wanted:
            if topic.kind == "tf":
                yield Raw(topic, self.start_ns, 0, partial(self._message, topic, self.start_ns, None))
        for stamp_ns, _, topic, what in self._events:
            if topic in wanted and (start_ns is None or stamp_ns >= start_ns):
                size = what.stat().st_size if isinstance(what, Path) else 256
                yield Raw(topic, stamp_ns, size, partial(self._message, topic, stamp_ns, what))
