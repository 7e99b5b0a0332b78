"""The constant error of a sensor's ranges, found from a drive.

A sensor that measures every range some centimetres short sees a wall nearer from either side. Scans of a drive then fit each other
best at poses that are too near to each other, and the way is too short: by 0.13 % with 6 cm and surfaces 5 to 40 m away. Scans whose
ranges are corrected fit best of all, which tells the error: the drive is driven with five offsets, and the mean fit of its scans over
the offset is a parabola near its peak. Where the peak is off the middle, they are driven again around it.
"""
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Optional

import numpy as np

from . import se3, trajectory
from .cloud_store import Clouds
from .drive import Drive, messages

OFFSETS_M = (-0.12, -0.06, 0.0, 0.06, 0.12)
MIDDLE = OFFSETS_M.index(0.0)
MOST_SCANS, LEAST_SCANS = 600, 32  # that moved; fewer tell nothing
MAP_VOXEL_M = 0.2
MOST_SEEN = 2400  # scans, moved or not
WORSE_PART, MOST_WORSE = 0.8, 0.05  # nothing is told if more of the scans than this part fit worse, with one offset, than so much of their fit in the middle
GROUPS = 16  # stretches of the drive, each left out once for the deviation
SIDE_M = 0.03  # a peak farther from the middle is looked at again, from its own place
LEAST_DEVIATION_M = 0.008  # beside the jackknife: simulated drives are off by as much, more often to larger offsets than to smaller ones
USUAL_M = 0.03  # deviation of the offsets of sensors, as their makers state it
CERTAIN = 3.0  # deviations from zero below which ranges stay as they are
SAME = 3.0  # deviations between drives above which their sensors are not the same


@dataclass
class Offset:
    """What a drive tells about the ranges of its sensor; add offset_m to them."""

    offset_m: float
    deviation_m: float
    scans: int  # that told it

    @property
    def expected_m(self) -> float:
        """The mean of what the drive tells and what is usual for sensors, by their variances."""
        return self.offset_m * USUAL_M ** 2 / (USUAL_M ** 2 + self.deviation_m ** 2)

    @property
    def correction_m(self) -> float:
        """What the ranges are corrected by, in millimetres; 0 where the drive does not tell an error."""
        return round(self.expected_m, 3) if abs(self.offset_m) >= CERTAIN * self.deviation_m else 0.0


def pooled(told: "list[Optional[Offset]]") -> Optional[Offset]:
    """What drives with one sensor tell together, by their variances; None: nothing, or things that contradict each other."""
    found = [one for one in told if one is not None]
    if not found:
        return None
    weights = np.array([1 / one.deviation_m ** 2 for one in found])
    offsets_m = np.array([one.offset_m for one in found])
    offset_m, deviation_m = float(weights @ offsets_m / weights.sum()), float(weights.sum() ** -0.5)
    if len(found) > 1 and (np.abs(offsets_m - offset_m) * np.sqrt(weights)).max() > SAME:
        return None
    return Offset(offset_m, float(np.hypot(deviation_m, LEAST_DEVIATION_M)) if len(found) > 1 else deviation_m, sum(one.scans for one in found))


def lengthen(points: np.ndarray, offset_m: float) -> np.ndarray:
    """Points relative to the sensor, farther away by offset_m."""
    range_m = np.linalg.norm(points, axis=1, keepdims=True)
    farther: np.ndarray = points * np.maximum(1 + offset_m / np.maximum(range_m, 1e-6), 0)
    return farther


class AsMeasured:
    """A store of points whose corrected ranges become those that the sensor measured, for scans of the same sensor to fit them."""

    def __init__(self, store: Clouds, drives: "list[Drive]", firsts: "list[int]"):
        self._store, self._drives, self._firsts = store, drives, firsts

    def scans(self) -> "list[int]":
        """Scans that have a cloud, ascending."""
        return self._store.scans()

    def __getitem__(self, scan: int) -> np.ndarray:
        drive = self._drives[int(np.searchsorted(self._firsts, scan, side="right")) - 1]
        points: np.ndarray = self._store[scan]
        if drive.range_offset_m == 0:
            return points
        seen = se3.apply(se3.inverse(drive.T_base_sensor), points.astype(np.float64))
        return se3.apply(drive.T_base_sensor, lengthen(seen, -drive.range_offset_m)).astype(np.float32)


def _drive_all(drive: Drive, options: Any, middle_m: float, progress: Callable[[float], None]) -> "tuple[np.ndarray, np.ndarray]":
    """Fits (offsets, scans) of the scans before which the base had moved, and flags of those that have a pose."""
    odometries = [trajectory.new_odometry(drive, options, MAP_VOXEL_M, middle_m + offset_m) for offset_m in OFFSETS_M]
    fits: "list[list[float]]" = []
    located: "list[list[bool]]" = []
    seen, last = 0, None
    with ThreadPoolExecutor(options.threads or None) as pool:
        list(pool.map(lambda one: trajectory.find_start(one, drive), odometries))
        for kind, message in messages(drive.bag):
            if kind != "scan":
                for one in odometries:
                    trajectory.feed(one, drive, kind, message)
                continue
            found = list(pool.map(lambda one: trajectory.feed(one, drive, kind, message), odometries))
            if found[MIDDLE] is None:  # of another frame
                continue
            seen += 1
            progress(max(seen / min(drive.scans, MOST_SEEN), len(fits) / MOST_SCANS))
            if seen == MOST_SEEN:
                break
            if found[MIDDLE].outcome == "rejected" or (last is not None and not trajectory.has_moved(last, found[MIDDLE].reference_pose)):
                continue
            last = found[MIDDLE].reference_pose
            fits.append([one.fit for one in found])
            located.append([bool(one.located and one.fit > 0) for one in found])
            if len(fits) == MOST_SCANS:
                break
    return np.array(fits).reshape(-1, len(OFFSETS_M)).T, np.array(located, bool).reshape(-1, len(OFFSETS_M)).T


def _peak(fits: np.ndarray) -> float:
    square, slope, _ = np.polyfit(np.array(OFFSETS_M), fits.mean(axis=1), 2)
    return float(-slope / (2 * square)) if square < 0 else float("nan")


def estimate(fits: np.ndarray, located: np.ndarray, middle_m: float = 0.0) -> Optional[Offset]:
    """The offset at the peak, from fits (offsets, scans) around middle_m; its deviation by the jackknife. None: the drive does not tell it."""
    fits, located = fits[:, trajectory.START_SCANS + 1:], located[:, trajectory.START_SCANS + 1:]
    if fits.shape[1] < LEAST_SCANS or ((fits < WORSE_PART * fits[MIDDLE]).mean(axis=1) > MOST_WORSE).any():
        return None  # too few, or one of the drives took another way
    fits = fits[:, located.all(axis=0)]
    if fits.shape[1] < LEAST_SCANS:
        return None
    peak_m = _peak(fits)
    without = [_peak(np.delete(fits, group, axis=1)) for group in np.array_split(np.arange(fits.shape[1]), GROUPS)]
    deviation_m = float(np.hypot(np.sqrt((GROUPS - 1) * np.var(without)), LEAST_DEVIATION_M))
    if not np.isfinite([peak_m, deviation_m]).all() or abs(peak_m) > OFFSETS_M[-1]:
        return None
    return Offset(middle_m + peak_m, deviation_m, fits.shape[1])


def find(drive: Drive, options: Any, progress: Callable[[float], None]) -> Optional[Offset]:
    """Drives up to MOST_SCANS scans of a recording with each offset. options: min_range, max_range, threads."""
    if drive.scans <= trajectory.START_SCANS + LEAST_SCANS:
        return None
    found = estimate(*_drive_all(drive, options, 0.0, lambda part: progress(0.5 * part)))
    if found is None or abs(found.offset_m) <= SIDE_M:
        return found
    middle_m = found.offset_m
    return estimate(*_drive_all(drive, options, middle_m, lambda part: progress(0.5 + 0.5 * part)), middle_m)
