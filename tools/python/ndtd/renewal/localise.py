"""Poses of the scans of a recording in the map, found by a replay in it, and the points of those that may vote.

No pose from outside is taken, unless the user says so: a start that is off by an offset has no way to bring it in. Only scans that the map
itself holds are verified: converged and tracking for some scans before and after, with a high confidence and a small covariance.
"""
from dataclasses import dataclass
from typing import Any, Callable, Optional

import numpy as np

from .._core import Replay, preprocess
from ..mapping import se3
from ..mapping.clean import pixel_rad
from ..mapping.cloud_store import CloudStore
from ..mapping.drive import Drive, MappingError, messages

LEAST_CONFIDENCE, MOST_DEVIATION_M, MOST_DEVIATION_RAD = 0.95, 0.08, np.deg2rad(0.8)
AROUND = 4  # scans before and after that have to be verified as well
LEAST_PART = 0.2  # of the scans: a recording of which fewer are verified casts no vote
LEAST_SCANS = 5
APART_M, APART_RAD = 0.25, np.deg2rad(5)  # a scan whose sensor has moved less shows nothing new
SCAN_VOXEL_M = 0.1
MOST_TIME_S = 10.0  # of a point from its stamp


@dataclass
class Located:
    """A replay of one recording: one entry per scan."""

    stamps_ns: np.ndarray
    trusted: np.ndarray
    converged: np.ndarray
    verified: np.ndarray
    position_m: np.ndarray  # (N, 3) NaN: the scan has no pose
    poses: np.ndarray  # (N, 4, 4) T_map_base at the stamps
    twists: np.ndarray  # (N, 6) of the base
    deviation_m: np.ndarray  # largest standard deviation of the position; NaN: not known
    deviation_rad: np.ndarray
    fit: np.ndarray  # nvtl_normalized * match_ratio
    error_m: np.ndarray  # from the truth of the recording; NaN: none
    sensors: "list[Optional[str]]"
    mounts: np.ndarray  # (N, 4, 4) T_base_sensor


def _largest(covariance: Optional[np.ndarray]) -> "tuple[float, float]":
    """Standard deviations of position and attitude along their worst directions."""
    if covariance is None:
        return np.nan, np.nan
    return tuple(float(np.sqrt(max(np.linalg.eigvalsh(part)[-1], 0.0))) for part in (covariance[:3, :3], covariance[3:, 3:]))  # type: ignore[return-value]


def _is_sure(scan: Any, deviation_m: float, deviation_rad: float) -> bool:
    """Whether the scan itself says that its pose is right."""
    return bool(scan.outcome == "converged" and scan.state == "tracking" and scan.trusted and (scan.confidence or 0.0) >= LEAST_CONFIDENCE
                and deviation_m <= MOST_DEVIATION_M and deviation_rad <= MOST_DEVIATION_RAD)


def _steady(sure: np.ndarray) -> np.ndarray:
    """Scans that are sure as all around them are: none soon before or after a loss or a search, or at the start."""
    unsure = np.r_[True, ~sure, False].astype(np.int64)
    near = np.convolve(unsure, np.ones(2 * AROUND + 1, np.int64), "same") > 0
    steady: np.ndarray = ~near[1:-1]
    return steady


def locate(drive: Drive, map_path: Any, options: Any, progress: Callable[[float], None]) -> Located:
    """Replays a recording in a map. options: config, deskew, given_start of the command line."""
    settings = {} if options.deskew == "auto" else {"preprocess.deskew": options.deskew}
    if not options.given_start:
        settings["initial_pose.mode"] = "search"
    replay = Replay(drive.bag, map_path, config=options.config, options=settings)
    rows: "list[tuple[Any, ...]]" = []
    for scan in replay:
        moved_m, turned_rad = _largest(scan.covariance)
        pose, truth = scan.pose, replay.truth(scan.stamp_ns)
        fit = scan.scores.nvtl_normalized * scan.scores.match_ratio if scan.outcome == "converged" else np.nan
        error_m = np.linalg.norm(pose[:3, 3] - truth[:3, 3]) if scan.trusted and pose is not None and truth is not None else np.nan
        rows.append((scan.stamp_ns, scan.trusted, scan.outcome == "converged", _is_sure(scan, moved_m, turned_rad),
                     np.full((4, 4), np.nan) if pose is None else pose, np.zeros(6) if scan.twist is None else scan.twist,
                     moved_m, turned_rad, fit, error_m, scan.sensor, np.eye(4) if scan.T_base_sensor is None else scan.T_base_sensor))
        progress(len(rows) / max(drive.scans + drive.left_out, 1))
    stamps, trusted, converged, sure, poses, twists, moved, turned, fits, errors, sensors, mounts = zip(*rows)
    T = np.array(poses).reshape(-1, 4, 4)
    return Located(np.array(stamps, np.int64), np.array(trusted, bool), np.array(converged, bool), _steady(np.array(sure, bool)),
                   T[:, :3, 3], T, np.array(twists), np.array(moved), np.array(turned), np.array(fits, np.float64), np.array(errors, np.float64),
                   list(sensors), np.array(mounts).reshape(-1, 4, 4))


def may_vote(located: Located) -> bool:
    """Whether enough of a recording is verified."""
    count = int(located.verified.sum())
    return count >= LEAST_SCANS and count >= LEAST_PART * len(located.verified)


@dataclass
class Voter:
    """A scan that may vote; its points are in the store under `key`, in the frame of its sensor."""

    key: int
    row: int  # of Located
    part: int  # recording, or half of one, whose votes are counted together
    T_map_sensor: np.ndarray
    deviation_m: float
    deviation_rad: float
    edge_rad: float  # of a pixel of its image


def _twist_of_sensor(twist: np.ndarray, T_base_sensor: np.ndarray) -> np.ndarray:
    R = T_base_sensor[:3, :3]
    return np.concatenate([R.T @ (twist[:3] + np.cross(twist[3:], T_base_sensor[:3, 3])), R.T @ twist[3:]])


def _middle_s(time_s: Optional[np.ndarray], deskew: str) -> float:
    """Middle of the sweep, after the stamp, which deskewed points belong to."""
    if deskew != "time" or time_s is None:
        return 0.0
    usable = time_s[np.isfinite(time_s) & (np.abs(time_s) <= MOST_TIME_S)]
    return float(usable.min() + usable.max()) / 2 if len(usable) else 0.0


def _has_moved(last: Optional[np.ndarray], now: np.ndarray) -> bool:
    if last is None:
        return True
    step = se3.inverse(last) @ now
    return bool(np.linalg.norm(step[:3, 3]) >= APART_M or se3.angle_rad(step) >= APART_RAD)


def read_voters(drive: Drive, located: Located, part: int, store: CloudStore) -> "list[Voter]":
    """The verified scans of a recording between which the sensor moved; their points, deskewed and thinned, go to the store."""
    row_of = {(int(located.stamps_ns[row]), located.sensors[row]): row for row in np.flatnonzero(located.verified).tolist()}
    voters: "list[Voter]" = []
    last: "dict[str, np.ndarray]" = {}
    edges_rad: "dict[str, float]" = {}
    for kind, message in messages(drive.bag):
        row = row_of.get((message["stamp_ns"], message["frame_id"])) if kind == "scan" else None
        if row is None or not len(message["points"]):
            continue
        frame, mount, twist = message["frame_id"], located.mounts[row], located.twists[row]
        middle_s = _middle_s(message["time_s"], drive.deskew)
        T = located.poses[row] @ se3.exp(twist * middle_s) @ mount
        if not _has_moved(last.get(frame), T):
            continue
        last[frame] = T
        edges_rad.setdefault(frame, pixel_rad(message["points"]))
        points = preprocess(message["points"], message["time_s"] if drive.deskew == "time" else None, deskew=drive.deskew,
                            twist=_twist_of_sensor(twist, mount), voxel_m=SCAN_VOXEL_M, sample_count=0, sweep_s=drive.sweep_s)
        key = len(store.scans())
        store[key] = points
        voters.append(Voter(key, row, part, T, float(located.deviation_m[row]), float(located.deviation_rad[row]), edges_rad[frame]))
    return voters


def check_scans(drive: Drive) -> None:
    """MappingError where a recording has too few scans to be judged."""
    if drive.scans < LEAST_SCANS:
        raise MappingError(f"{drive.name}: {drive.scans} scans; {LEAST_SCANS} at least are needed")
