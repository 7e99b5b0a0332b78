"""The odometry of a drive: a pose of each scan, and the points of those that the map is made of."""
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

from .. import poses
from .._core import Odometry
from . import se3
from .cloud_store import CloudStore
from .drive import Drive, messages
from .positions import Fixes

START_SCANS, START_ROUNDS = 7, 2  # NDT_ODOMETRY_START_SCANS; rounds until the velocity of the start is known
JUMP_M, MOST_MPS2 = 0.4, 4.0  # what poses are uncertain by, and how a person or a vehicle accelerates at most for long
SAVED_M, SAVED_RAD = 0.25, np.deg2rad(5)  # a scan whose base has moved less shows nothing new


@dataclass
class Trajectory:
    """One entry per scan that odometry took; poses are (N, 4, 4) of the base."""

    stamps_ns: np.ndarray
    reference_ns: np.ndarray
    at_stamp: np.ndarray  # T_odom_base at the stamp
    reference: np.ndarray  # and at the moment to which its points were moved
    located: np.ndarray
    degenerate: np.ndarray
    fit: np.ndarray
    segment: np.ndarray
    reasons: "list[str]" = field(default_factory=list)  # why scans were not taken
    fixes: Fixes = field(default_factory=lambda: Fixes([], [], []))  # of the GNSS

    @property
    def jumps_m(self) -> np.ndarray:
        """How far each scan is beyond what the base can have reached since the two scans before; 0: within reach."""
        found: np.ndarray = np.zeros(len(self.reference_ns))
        step = np.diff(self.reference[:, :3, 3], axis=0)
        step_s = np.maximum(np.diff(self.reference_ns) * 1e-9, 1e-3)[:, None]
        off_m = np.linalg.norm(step[1:] - step[:-1] * (step_s[1:] / step_s[:-1]), axis=1)
        found[2:] = np.maximum(off_m - JUMP_M - MOST_MPS2 * (step_s[1:, 0] * (step_s[1:, 0] + step_s[:-1, 0]) / 2), 0)
        return found

    @property
    def jumps(self) -> np.ndarray:
        """Scans at which the base would have to accelerate as nothing does: the scan fits another place that looks alike."""
        found: np.ndarray = self.jumps_m > 0
        return found

    @property
    def path_m(self) -> np.ndarray:
        """Way since the first scan."""
        steps = np.linalg.norm(np.diff(self.reference[:, :3, 3], axis=0), axis=1)
        path_m: np.ndarray = np.r_[0.0, np.cumsum(steps)]
        return path_m


def new_odometry(drive: Drive, options: Any, map_voxel_m: float, range_offset_m: float) -> Odometry:
    """Odometry for the scans of a drive."""
    return Odometry(T_base_sensor=drive.T_base_sensor, deskew=drive.deskew, sweep_s=drive.sweep_s, map_voxel_m=map_voxel_m,
                    min_range_m=options.min_range, max_range_m=options.max_range, range_offset_m=range_offset_m)


def feed(odometry: Odometry, drive: Drive, kind: str, message: Any) -> Any:
    """Gives a message to the odometry; what it found for a scan, else None."""
    if kind == "scan" and message["frame_id"] == drive.frame_id:
        time_s = message["time_s"] if drive.deskew == "time" else None
        return odometry.add(message["stamp_ns"], message["points"], time_s=time_s)
    if kind == "imu":
        turn = drive.T_base_imu[:3, :3]
        force = message.get("linear_acceleration")
        odometry.add_imu(message["stamp_ns"], turn @ message["angular_velocity"], None if force is None else turn @ force)
    elif kind == "odometry":
        odometry.add_wheels(message["stamp_ns"], pose=message.get("pose"), twist=message.get("twist"))
    return None


def find_start(odometry: Odometry, drive: Drive) -> None:
    """Drives the first scans until the velocity with which the drive begins is known: it deforms them."""
    if drive.deskew == "off":
        return
    for _ in range(START_ROUNDS):
        taken = 0
        for kind, message in messages(drive.bag):
            found = feed(odometry, drive, kind, message)
            taken += found is not None and found.outcome != "rejected"
            if taken == START_SCANS:
                break
        odometry.restart()


def run(drive: Drive, store: CloudStore, first: int, options: Any, progress: Callable[[float], None]) -> Trajectory:
    """Runs the odometry over a drive; the points of scan k go to the store as number first + k."""
    odometry = new_odometry(drive, options, options.voxel, drive.range_offset_m)
    find_start(odometry, drive)
    found: "list[tuple[Any, ...]]" = []
    reasons: "list[str]" = []
    seen, last, fixes = 0, None, Fixes([], [], [])
    for kind, message in messages(drive.bag):
        result = feed(odometry, drive, kind, message)
        if kind == "gnss":
            fixes.add(message)
        if result is None:
            continue
        seen += 1
        progress(seen / drive.scans)
        if result.outcome == "rejected":
            reasons.append(result.reason)
            continue
        if result.located and (last is None or has_moved(last, result.reference_pose)):
            last = result.reference_pose
            store[first + len(found)] = se3.apply(drive.T_base_sensor, odometry.points)
        found.append((result.stamp_ns, result.reference_ns, result.pose, result.reference_pose, result.located, result.degenerate,
                      result.fit, result.segment))
    columns: "list[Any]" = list(zip(*found)) if found else [[] for _ in range(8)]
    return Trajectory(np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2]).reshape(-1, 4, 4),
                      np.array(columns[3]).reshape(-1, 4, 4), np.array(columns[4], bool), np.array(columns[5], bool),
                      np.array(columns[6], np.float64), np.array(columns[7], np.int64), reasons, fixes)


def has_moved(last: np.ndarray, now: np.ndarray) -> bool:
    """Whether a scan shows something new: the base has moved or turned since the last one that did."""
    step = se3.inverse(last) @ now
    return bool(np.linalg.norm(step[:3, 3]) >= SAVED_M or se3.angle_rad(step) >= SAVED_RAD)


def write_tum(path: Any, stamps_ns: np.ndarray, T: np.ndarray) -> None:
    """Writes one line per pose: seconds x y z qx qy qz qw."""
    with open(path, "w", encoding="utf-8") as stream:
        for stamp_ns, pose in zip(stamps_ns, T):
            numbers = " ".join(f"{value:.9g}" if k >= 3 else f"{value:.6f}" for k, value in enumerate(poses.pose_of(pose)))
            stream.write(f"{int(stamp_ns) // 10**9}.{int(stamp_ns) % 10**9:09d} {numbers}\n")
