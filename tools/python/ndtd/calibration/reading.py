"""A drive as calibration needs it: poses of the LiDAR in the map, found without the help of any other sensor, and what the others tell."""
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np

from .. import poses
from .._core import Localizer
from .._progress import Progress
from ..mapping import se3
from ..mapping.drive import Drive, messages
from .chain import Chain
from .hand_eye import Path


@dataclass
class Readings:
    """Of one drive. path: T_map_sensor of the scans that are believed; wheels, gyro: None where the drive has none."""

    path: Path
    scans: int
    wheels: Optional[Chain]
    gyro: Optional[Chain]
    T_base_sensor: np.ndarray  # as it is configured, or as the recording has it
    warnings: "list[str]" = field(default_factory=list)


def _in_order(stamps_ns: "list[int]", values: "list[Any]", first_ns: int) -> "tuple[np.ndarray, np.ndarray]":
    """Seconds since the first scan, each later than the one before, and the values."""
    stamps = np.array(stamps_ns, np.int64)
    order = np.argsort(stamps, kind="stable")
    order = order[np.concatenate([[True], np.diff(stamps[order]) > 0])]
    return (stamps[order] - first_ns) * 1e-9, np.array(values, np.float64)[order]


def _wheels(samples: "list[dict[str, Any]]", first_ns: int) -> Optional[Chain]:
    """By the poses where all samples have one, else by the twists."""
    has_poses = all(one.get("pose") is not None for one in samples)
    key = "pose" if has_poses else "twist"
    samples = [one for one in samples if one.get(key) is not None]
    if len(samples) < 2:
        return None
    stamps_s, values = _in_order([one["stamp_ns"] for one in samples], [one[key] for one in samples], first_ns)
    if len(stamps_s) < 2:
        return None
    if not has_poses:
        return Chain(stamps_s, np.diff(stamps_s)[:, None] * (values[1:] + values[:-1]) / 2)
    placed = np.stack([poses.matrix(one) for one in values])
    return Chain(stamps_s, se3.log(se3.inverse(placed[:-1]) @ placed[1:]))


def _gyro(samples: "list[dict[str, Any]]", first_ns: int) -> Optional[Chain]:
    if len(samples) < 2:
        return None
    stamps_s, rates = _in_order([one["stamp_ns"] for one in samples], [one["angular_velocity"] for one in samples], first_ns)
    if len(stamps_s) < 2:
        return None
    turned = np.diff(stamps_s)[:, None] * (rates[1:] + rates[:-1]) / 2
    return Chain(stamps_s, np.concatenate([np.zeros_like(turned), turned], 1))


def read(drive: Drive, map_path: Any, config: Optional[str], options: "dict[str, Any]", quiet: bool) -> Readings:
    """Localises the scans of one sensor. Wheels and IMU are kept from the localiser: with a wrong place of a sensor their motion
    would turn and shift the points within a sweep."""
    localizer = Localizer(map_path, config=config, options={**options, "frames.merge_sensors": "false"})
    wheels: "list[dict[str, Any]]" = []
    imu: "list[dict[str, Any]]" = []
    stamps_ns: "list[int]" = []
    found: "list[np.ndarray]" = []
    mount, scans = drive.T_base_sensor, 0
    with Progress("localising", quiet) as progress:
        for kind, message in messages(drive.bag):
            if kind == "odometry":
                wheels.append(message)
            elif kind == "imu":
                imu.append(message)
            elif kind == "initial_pose":
                localizer.initial_pose(message["stamp_ns"], message["pose"], covariance=message.get("covariance"))
            elif kind == "transform":
                localizer.transform(message["stamp_ns"], message["frame_id"], message["pose"])
            elif kind == "scan" and message["frame_id"] == drive.frame_id:
                scan = localizer.scan(message["stamp_ns"], message["points"], intensity=message["intensity"], time_s=message["time_s"],
                                      seq=message["seq"], frame_id=message["frame_id"])
                scans += 1
                progress.update(scans / drive.scans)
                mount = mount if scan.T_base_sensor is None else scan.T_base_sensor
                if scan.trusted and scan.state == "tracking" and scan.pose is not None and (not stamps_ns or scan.stamp_ns > stamps_ns[-1]):
                    stamps_ns.append(scan.stamp_ns)
                    found.append(scan.pose @ mount)
    first_ns = drive.stamps_ns[0]
    path = Path((np.array(stamps_ns, np.int64) - first_ns) * 1e-9, np.array(found).reshape(-1, 4, 4))
    return Readings(path, scans, _wheels(wheels, first_ns), _gyro(imu, first_ns), mount, list(localizer.warnings))
