"""Checks whether a recording can be mapped: if not, one line tells the reason and a remedy, and no map is written."""
from typing import Any

import numpy as np

from .drive import Drive, MappingError
from .trajectory import Trajectory

LEAST_SCANS = 5
MOST_DEGENERATE, MOST_LOST, MOST_JUMPS = 0.2, 0.2, 0.01  # parts of a drive
LONGEST_DEGENERATE_M = 20.0
MOST_DEGENERATE_WAY = 0.125  # part of the way
LARGEST_JUMP_M = 1.0  # beyond what is possible: a single one displaces all that follows


def longest_m(path_m: np.ndarray, flags: np.ndarray) -> float:
    """The longest part of the way along which a flag is set without a break."""
    most, begin = 0.0, None
    for k, is_set in enumerate(flags):
        begin = (begin if begin is not None else k) if is_set else None
        if begin is not None:
            most = max(most, float(path_m[k] - path_m[begin]))
    return most


def check(drive: Drive, trajectory: Trajectory) -> None:
    """MappingError where the poses of a drive are guesses."""
    count = len(trajectory.stamps_ns)
    if count < LEAST_SCANS:
        why = f"; the last one was refused: {trajectory.reasons[-1]}" if trajectory.reasons else ""
        range_told = " (--min-range, --max-range); are its points in metres?" if why.endswith("within range") else ""
        raise MappingError(f"{drive.name}: {count} scans can be used; a map needs {LEAST_SCANS}{why}{range_told}")
    lost = float(np.mean(~trajectory.located))
    if lost > MOST_LOST:
        raise MappingError(f"{drive.name}: {lost:.0%} of the scans do not fit those before: the motion between them is too large, or the "
                           f"points are deskewed wrongly (--deskew {drive.deskew}); an IMU or wheel odometry in the recording helps")
    degenerate, along_m = float(np.mean(trajectory.degenerate)), longest_m(trajectory.path_m, trajectory.degenerate)
    if degenerate > MOST_DEGENERATE:
        raise MappingError(f"{drive.name}: {degenerate:.0%} of the scans do not tell how far the vehicle moved, as in a tunnel; "
                           "the length of the way would be a guess: wheel odometry in the recording helps")
    _check_jumps(drive, trajectory)
    if along_m > LONGEST_DEGENERATE_M:
        raise MappingError(f"{drive.name}: along {along_m:.0f} m no scan tells how far the vehicle moved, as in a tunnel; the limit is "
                           f"{LONGEST_DEGENERATE_M:g} m: wheel odometry in the recording helps")
    steps_m = np.diff(trajectory.path_m, prepend=0.0)
    way = float(steps_m[trajectory.degenerate].sum() / max(steps_m.sum(), 1e-9))
    if way > MOST_DEGENERATE_WAY:
        raise MappingError(f"{drive.name}: along {way:.0%} of the way no scan tells how far the vehicle moved, as in front of a wall: that part "
                           "would be a guess: wheel odometry in the recording helps")


def _check_jumps(drive: Drive, trajectory: Trajectory) -> None:
    jumps, found = trajectory.jumps, trajectory.located
    # Where the pose was lost shortly before, it comes back with a jump.
    is_followed = found & np.r_[True, found[:-1]] & np.r_[True, True, found[:-2]] & np.r_[True, np.diff(trajectory.segment) == 0]
    if jumps.sum() > max(1.0, MOST_JUMPS * len(jumps)) or trajectory.jumps_m[is_followed].max(initial=0.0) > LARGEST_JUMP_M:
        steps_m = np.linalg.norm(np.diff(trajectory.reference[:, :3, 3], axis=0), axis=1)
        raise MappingError(f"{drive.name}: {int(jumps.sum())} scans jump, by up to {steps_m[jumps[1:]].max():.1f} m: places that look alike "
                           "are taken for one another; more scans per second, an IMU or wheel odometry in the recording help")


def weak_places(trajectory: Any) -> "list[tuple[int, str]]":
    """Scans whose poses are worth a second look, with the reason."""
    out, jumps = [], trajectory.jumps
    for k in range(len(trajectory.stamps_ns)):
        if not trajectory.located[k]:
            out.append((k, "does not fit the scans before"))
        elif trajectory.degenerate[k]:
            out.append((k, "does not tell the way along one direction"))
        elif jumps[k]:
            out.append((k, "jumps"))
        elif k and trajectory.segment[k] != trajectory.segment[k - 1]:
            out.append((k, "the pose was lost before"))
    return out
