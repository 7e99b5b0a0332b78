"""A recording, replayed with some settings: what became of each scan, what it cost, and how far the poses are from right.

Without truth the odometry of the scans is the measure. It knows no map and no setting, and drifts slowly: over half a second
its motion is right to millimetres, and the motion between poses differs from it by their errors. On simulated drives
differences of settings were the same by this and by the truth. How near points are to surfaces of the map, or how well they
fit, was no such measure: settings with twice the error fitted better.
"""
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Optional

import numpy as np

from .._core import Replay
from ..mapping import se3, trajectory
from ..mapping.drive import Drive, messages

SPAN_NS = 500_000_000  # of a motion that is compared
MOST_SPAN_NS = 2_500_000_000
WRONG_M = 1.0
MAP_VOXEL_M, MIN_RANGE_M, MAX_RANGE_M = 0.1, 1.0, 200.0  # of the odometry: those of ndt-map build


@dataclass
class Reference:
    """Motion of the sensor by odometry: T_odom_sensor (N, 4, 4) at the stamps. segments: numbers of the pieces that hang together."""

    stamps_ns: np.ndarray
    poses: np.ndarray
    segments: np.ndarray


@dataclass
class Trial:
    """A replay: one entry per scan."""

    lost: np.ndarray  # no trusted pose
    wrong: np.ndarray  # trusted, and a metre from the truth
    error_m: np.ndarray  # distance from the truth of the recording (APE); NaN: none, or no trusted pose
    motion_m: np.ndarray  # difference from the motion of odometry over half a second (RPE); NaN: not known
    align_ms: np.ndarray


@dataclass
class Rows:
    """What a replay gave: one entry per scan."""

    stamps_ns: "list[int]" = field(default_factory=list)
    trusted: "list[bool]" = field(default_factory=list)
    error_m: "list[float]" = field(default_factory=list)
    align_ms: "list[float]" = field(default_factory=list)
    poses: "list[Optional[np.ndarray]]" = field(default_factory=list)  # T_map_sensor; None: no trusted one, or of another sensor


def odometry_of(drive: Drive) -> Reference:
    """Runs the odometry over a recording."""
    options = SimpleNamespace(min_range=MIN_RANGE_M, max_range=MAX_RANGE_M)
    odometry = trajectory.new_odometry(drive, options, MAP_VOXEL_M, 0.0)
    trajectory.find_start(odometry, drive)
    found = []
    for kind, message in messages(drive.bag):
        result = trajectory.feed(odometry, drive, kind, message)
        if result is not None and result.located:
            found.append((result.stamp_ns, result.pose @ drive.T_base_sensor, result.segment))
    stamps, poses, segments = zip(*found) if found else ((), (), ())
    return Reference(np.array(stamps, np.int64), np.array(poses).reshape(-1, 4, 4), np.array(segments, np.int64))


def replay(drive: Drive, map_path: Any, config: Optional[str], options: "dict[str, Any]") -> Rows:
    """Replays a recording with these options."""
    rows = Rows()
    scans = Replay(drive.bag, map_path, config=config, options={"cpu.threads": 1, **options})
    for scan in scans:
        truth = scans.truth(scan.stamp_ns) if scan.trusted else None
        rows.stamps_ns.append(scan.stamp_ns)
        rows.trusted.append(bool(scan.trusted))
        rows.error_m.append(np.nan if truth is None else float(np.linalg.norm(scan.position - truth[:3, 3])))
        rows.align_ms.append(1e-3 * scan.align_us)
        mount = np.eye(4) if scan.T_base_sensor is None else scan.T_base_sensor
        rows.poses.append(scan.pose @ mount if scan.trusted and scan.sensor in (None, drive.frame_id) else None)
    return rows


def _motion(rows: Rows, reference: Reference) -> np.ndarray:
    """Of each scan: the distance between both motions to the first scan that is half a second later."""
    out = np.full(len(rows.stamps_ns), np.nan)
    row_of = {stamp: row for row, stamp in enumerate(rows.stamps_ns) if rows.poses[row] is not None}
    later = np.searchsorted(reference.stamps_ns, reference.stamps_ns + SPAN_NS)
    for here, there in enumerate(later.tolist()):
        if there == len(later) or reference.segments[here] != reference.segments[there]:
            continue
        begin, end = row_of.get(int(reference.stamps_ns[here])), row_of.get(int(reference.stamps_ns[there]))
        if begin is None or end is None or reference.stamps_ns[there] - reference.stamps_ns[here] > MOST_SPAN_NS:
            continue
        told = se3.inverse(rows.poses[begin]) @ rows.poses[end]
        known = se3.inverse(reference.poses[here]) @ reference.poses[there]
        out[begin] = float(np.linalg.norm((se3.inverse(told) @ known)[:3, 3]))
    return out


def measure(rows: Rows, reference: Optional[Reference]) -> Trial:
    """The replay, beside the odometry of its recording where that is given."""
    error_m = np.array(rows.error_m)
    motion_m = np.full(len(error_m), np.nan) if reference is None else _motion(rows, reference)
    return Trial(~np.array(rows.trusted, bool), error_m > WRONG_M, error_m, motion_m, np.array(rows.align_ms))
