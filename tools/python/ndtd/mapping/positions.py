"""GNSS: where a drive lies on the earth, and what holds its long wavelengths."""
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from . import se3
from .graph import Positions

LEAST_FIXES, LEAST_SPREAD_M = 10, 20.0
UNKNOWN_DEVIATION_M, LEAST_DEVIATION_M = 2.0, 0.01
REACH_S = 0.5  # of a fix to the scan whose pose it holds


@dataclass
class Fixes:
    """Positions of an antenna in the map [m], in the order of their stamps."""

    stamps_ns: "list[int]"
    position_m: "list[np.ndarray]"
    deviation_m: "list[np.ndarray]"
    antenna: str = ""

    def add(self, message: Any) -> None:
        """Takes a message of a bag."""
        deviation = np.asarray(message.get("deviation", [UNKNOWN_DEVIATION_M] * 3), np.float64)
        self.stamps_ns.append(message["stamp_ns"])
        self.position_m.append(np.asarray(message["position"], np.float64))
        self.deviation_m.append(np.maximum(deviation, LEAST_DEVIATION_M))
        self.antenna = message.get("antenna", "")


def at_scans(fixes: Fixes, trajectory: Any, first: int, antenna_m: np.ndarray) -> Optional[Positions]:
    """The fixes as factors: each at the nearest scan, moved by what the base does between the two. None: too few of them, or
    too near each other to tell a heading."""
    stamps_ns, T = trajectory.reference_ns, trajectory.reference
    node, arm_m, kept = [], [], []
    for number, stamp_ns in enumerate(fixes.stamps_ns):
        k = min(max(int(np.searchsorted(stamps_ns, stamp_ns, side="right")) - 1, 0), len(stamps_ns) - 2)
        s = float(stamp_ns - stamps_ns[k]) / float(stamps_ns[k + 1] - stamps_ns[k])
        near = k if s < 0.5 else k + 1
        if abs(float(stamp_ns - stamps_ns[near])) <= REACH_S * 1e9:
            moved = se3.inverse(T[near]) @ se3.interpolate(T[k], T[k + 1], s)  # of the base between scan and fix
            node.append(first + near)
            arm_m.append(moved[:3, :3] @ antenna_m + moved[:3, 3])
            kept.append(number)
    position_m = np.array(fixes.position_m)[kept] if kept else np.empty((0, 3))
    if len(kept) < LEAST_FIXES or np.linalg.norm(np.ptp(position_m[:, :2], axis=0)) < LEAST_SPREAD_M:
        return None
    return Positions(np.array(node), position_m, np.array(fixes.deviation_m)[kept], np.array(arm_m))


def residuals_m(positions: Positions, poses: np.ndarray) -> np.ndarray:
    """Distances of the antenna from the positions."""
    distances: np.ndarray = np.linalg.norm(positions.residuals(poses) * positions.deviation_m, axis=1)
    return distances


def placement(positions: Positions, poses: np.ndarray) -> np.ndarray:
    """(4, 4): turns about the vertical and moves the poses onto the positions, least squares."""
    at = poses[positions.node]
    have = at[:, :3, 3] + (at[:, :3, :3] @ positions.antenna_m[..., None])[..., 0]
    middle, wanted = have.mean(axis=0), positions.position_m.mean(axis=0)
    a, b = (have - middle)[:, :2], (positions.position_m - wanted)[:, :2]
    yaw = np.arctan2((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum(), (a * b).sum())
    out = se3.exp(np.array([0, 0, 0, 0, 0, yaw]))
    out[:3, 3] = wanted - out[:3, :3] @ middle
    return out
