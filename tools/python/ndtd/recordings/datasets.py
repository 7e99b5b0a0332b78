"""What lies beside the scans of known data sets: true poses, odometry, IMU, GNSS, and where the sensors are.

KITTI odometry and SemanticKITTI; MulRan, as its file player reads it, with the places of the sensors of its calibration; NCLT, as its own
read_vel_sync.py and Table 4 of its paper have it; Newer College, as KISS-ICP reads it.
"""
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Optional

import numpy as np

from ..poses import checked_pose, from_euler, pose_of
from .messages import Gnss, Imu, Odometry, Pose, RecordingError
from .tracks import Track, read_table, stamps_ns, table_track

MS = 1_000_000  # ns
US = 1000
IDENTITY = np.array([0, 0, 0, 0, 0, 0, 1.0])


@dataclass
class Extras:
    """What a data set adds to its scans."""

    tracks: List[Track] = field(default_factory=list)
    places: Dict[str, np.ndarray] = field(default_factory=dict)  # T_base_sensor of frames
    frame: str = "lidar"  # of the scans
    read: Optional[str] = None  # how .bin files are packed: None: floats
    files: List[Path] = field(default_factory=list)


def extras(path: Path, folder: Path, stamps: List[int]) -> Extras:
    """By the names of folders and files; folder: that of the scans."""
    if folder.name == "velodyne_sync":
        out = nclt_extras(folder.resolve().parent)
        out.places[folder.name] = IDENTITY
        out.frame, out.read = folder.name, "nclt"
        return out
    if folder.name == "Ouster":
        return _mulran(path)
    if folder.name == "ouster_scan":
        return _newer_college(path, folder)
    poses = _kitti_poses(path, stamps)
    return Extras([poses] if poses else [])


def _first(*files: Path) -> Optional[Path]:
    return next((one for one in files if one.is_file()), None)


def read_matrices(path: Path) -> np.ndarray:
    """(N, 4, 4) from lines of 12 numbers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty file: told below
            rows = np.loadtxt(path, ndmin=2)
    except ValueError as error:
        raise RecordingError(f"{path}: {' '.join(str(error).split())[:160]}") from None
    if rows.size == 0 or rows.shape[1] != 12:
        raise RecordingError(f"{path}: lines of 12 numbers are expected")
    return _matrices(rows)


def _matrices(rows):
    out = np.tile(np.eye(4), (len(rows), 1, 1))
    out[:, :3] = rows.reshape(-1, 3, 4)
    return out


def read_calibration(path: Path) -> dict:
    """Lines `name: numbers` of KITTI."""
    out = {}
    for line in path.read_text(errors="replace").split("\n"):
        name, _, rest = line.partition(":")
        try:
            out[name.strip()] = np.array([float(word) for word in rest.split()])
        except ValueError:
            continue  # calib_time
    return out


def rigid(path: Path, what: str, T: np.ndarray) -> np.ndarray:
    """T, (4, 4) of a file; RecordingError: it is none of a sensor."""
    try:
        checked_pose(T)
        if np.isfinite(T).all():
            return T
    except ValueError:
        pass
    raise RecordingError(f"{path}: {what} no rigid transform")


def true_poses(stamps: np.ndarray, pose: Callable, name: str = "poses") -> Track:
    """A track of T_map_base; pose(number): 7 numbers."""
    return table_track(name, ("truth", "odometry"), stamps, lambda number, stamp_ns: Pose(stamp_ns, stamp_ns, "map", pose(number)))


def _finite(stamps, rows):
    """The rows without NaN and infinity, which data sets have where nothing is known."""
    good = np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)
    return stamps[good], rows[good]


def _true_matrices(stamps, poses):
    stamps, poses = _finite(stamps, poses)
    return true_poses(stamps, lambda at: pose_of(poses[at]))


# ---- KITTI ----

def _kitti_poses(path, stamps):
    """KITTI odometry and SemanticKITTI: poses of the camera, ../../poses/NN.txt or poses.txt, with Tr of calib.txt."""
    number = path.resolve().name
    file = _first(path / "poses.txt", path / f"{number}.txt", path.parent.parent / "poses" / f"{number}.txt",
                  path.parent / "poses" / f"{number}.txt")
    calibration = path / "calib.txt"
    if file is None or not (path / "velodyne").is_dir():
        return None
    if not calibration.exists():
        raise RecordingError(f"{calibration}: missing: without it {file.name} says nothing about the LiDAR")
    tr = read_calibration(calibration).get("Tr")
    if tr is None or tr.size != 12:
        raise RecordingError(f"{calibration}: no line 'Tr:' of 12 numbers")
    T_camera_lidar = np.eye(4)
    T_camera_lidar[:3] = tr.reshape(3, 4)
    rigid(calibration, "'Tr:' is", T_camera_lidar)
    with np.errstate(all="ignore"):  # what is too large is dropped
        poses = np.linalg.inv(T_camera_lidar) @ read_matrices(file) @ T_camera_lidar
    count = min(len(stamps), len(poses))
    return _true_matrices(stamps_ns(stamps[:count]), poses[:count])


# ---- MulRan ----

MULRAN_OUSTER = from_euler((1.7042, -0.021, 1.8047), np.radians((0.0001, 0.0003, 179.6654)))
MULRAN_IMU, MULRAN_GPS = np.array([-0.07, 0, 1.7, 0, 0, 0, 1]), np.array([-0.32, 0, 1.7, 0, 0, 0, 1])


def _mulran(path):
    """global_pose.csv: poses of the vehicle; sensor_data/xsens_imu.csv and gps.csv."""
    out = Extras(places={"Ouster": MULRAN_OUSTER, "imu": MULRAN_IMU, "gps": MULRAN_GPS}, frame="Ouster")
    for name, columns, add in (("global_pose.csv", 13, _mulran_truth), ("sensor_data/xsens_imu.csv", 17, _mulran_imu),
                               ("sensor_data/gps.csv", 13, _mulran_gps)):
        file = _first(path / name, path / Path(name).name)
        if file:
            out.tracks.append(add(*read_table(file, columns, 1)))
            out.files.append(file)
    return out


def _mulran_truth(stamps, numbers):
    return _true_matrices(stamps, _matrices(numbers))


def _mulran_imu(stamps, numbers):  # orientation as quaternion and angles, rates, accelerations, magnetic field
    return table_track("xsens_imu", ("imu",), stamps, lambda at, ns: Imu(ns, ns, "imu", numbers[at, 7:10], numbers[at, 10:13]))


def _mulran_gps(stamps, numbers):  # latitude, longitude [deg], altitude, covariance
    def read(at, ns):
        deviation = np.sqrt(np.maximum(numbers[at, [3, 7, 11]], 0))
        return Gnss(ns, ns, "gps", *numbers[at, :3], deviation if (deviation > 0).all() else None)
    return table_track("gps", ("gnss",), stamps, read)


# ---- NCLT ----

_FLIP = np.array([1.0, -1, -1])  # its body and its map look down: x ahead (north), y right (east), z down
NCLT_IMU = np.array([-0.11, 0.18, 0.71, 0, 0, 0, 1])


def unpack_nclt(data: bytes) -> tuple:
    """Points [m] and intensity of velodyne_sync/*.bin: x y z in units of 5 mm from -100 m, in the frame of the body."""
    rows = np.frombuffer(data, np.dtype([("xyz", "<u2", (3,)), ("intensity", "u1"), ("laser", "u1")]))
    return ((rows["xyz"] * 0.005 - 100.0) * _FLIP).astype(np.float32), rows["intensity"].astype(np.float32)


def nclt_extras(place: Path) -> Extras:
    """place: the folder DATE of the scans; groundtruth_DATE.csv, odometry_mu_100hz.csv, ms25.csv there or where its archives put them."""
    date, up = place.name, (place, place.parent, place.parent.parent)
    out = Extras(places={"ms25": NCLT_IMU})
    truth = [one / folder for one in up for folder in ("", "ground_truth")]
    sensors = [place, *(one / "sensor_data" / date for one in up[1:])]
    for file, columns, add in ((_first(*(one / f"groundtruth_{date}.csv" for one in truth)), 7, _nclt_truth),
                               (_first(*(one / "odometry_mu_100hz.csv" for one in sensors)), 7, _nclt_odometry),
                               (_first(*(one / "ms25.csv" for one in sensors)), 10, _nclt_imu)):
        if file:
            out.tracks.append(add(*read_table(file, columns, US)))
            out.files.append(file)
    return out


def _nclt_pose(row):
    """T_map_body of x y z roll pitch heading, both looking up."""
    return from_euler(row[:3] * _FLIP, row[3:6] * _FLIP)


def _nclt_truth(stamps, numbers):
    stamps, numbers = _finite(stamps, numbers)
    return true_poses(stamps, lambda at: _nclt_pose(numbers[at]), "groundtruth")


def _nclt_odometry(stamps, numbers):
    stamps, numbers = _finite(stamps, numbers)
    return table_track("odometry_mu_100hz", ("odometry",), stamps, lambda at, ns: Odometry(ns, ns, "odom", "base_link", _nclt_pose(numbers[at])))


def _nclt_imu(stamps, numbers):  # magnetic field, accelerations, rates
    return table_track("ms25", ("imu",), stamps, lambda at, ns: Imu(ns, ns, "ms25", numbers[at, 6:9] * _FLIP, numbers[at, 3:6] * _FLIP))


# ---- Newer College ----

NEWER_COLLEGE_LIDAR = np.array([-0.084, -0.025, 0.05, 0, 0, 0.924, 0.383])  # T_base_lidar


def _newer_college(path, folder):
    """raw_format/ouster_scan with ground_truth/registered_poses.csv: sec, nsec, x y z, qx qy qz qw of the base."""
    out = Extras(places={"os1_lidar": NEWER_COLLEGE_LIDAR}, frame="os1_lidar")
    names = ("ground_truth/registered_poses.csv", "registered_poses.csv")
    file = _first(*(up / name for up in (path, folder.parent, folder.parent.parent) for name in names))
    if file:
        seconds_ns, numbers = read_table(file, 9, 1000 * MS)
        nanoseconds = np.clip(np.nan_to_num(numbers[:, 0]), 0, 1e9).astype(np.int64)
        out.tracks.append(true_poses(seconds_ns + nanoseconds, lambda at: numbers[at, 1:8]))
        out.files.append(file)
    return out
