"""What a calibration tells of a transform: the directions that the drive observes are taken from it, the others stay as configured."""
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import poses
from ..mapping import se3
from .hand_eye import BIAS, POSITION, ROTATION, SCALE, TIME, TURN_SCALE, Solution

# A direction that is less certain than this is refused: a tape measure, or a drawing, tells it better.
MOST_M, MOST_RAD = 0.05, np.radians(0.5)
MOST_SCALE, MOST_BIAS_RADPS, MOST_TIME_S = 0.02, 0.005, 0.02
# Standard deviations of errors of the localiser that go with the motion, as those of the motion within a sweep do, so that no residual
# shows them: of a motion of a second, and of any rotation.
FOLLOW_M, FOLLOW_RAD, LEAST_RAD = 0.001, 3e-5, np.radians(0.01)
# Planar wheels tell no roll, pitch or z: those are of a base that drives parallel to the ground, which bodies do to so much.
LEVEL_RAD = np.radians(0.1)
AXES = ("x", "y", "z", "rotation about x", "rotation about y", "rotation about z")
ANGLES = ("roll", "pitch", "yaw")


@dataclass
class Mount:
    """A transform T_base_sensor: `T` has what was found in the directions that are observed, and is `configured` in the others."""

    T: np.ndarray
    configured: np.ndarray
    off: np.ndarray  # (6,) what was found less what is configured: position, rotation vector, both in axes of the base; 0 where refused
    covariance: np.ndarray  # (6, 6) of `off`; 0 where refused
    kept: np.ndarray  # (6,) whether an axis is observed
    refused: "list[str]"  # a line each: which axis, and why
    has_position: bool

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations (6,) of `off` [m, rad]; 0 where refused."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def sigmas(self) -> float:
        """How far the configured transform is from the one that was found, in standard deviations (Mahalanobis); 0: nothing is observed."""
        if not self.kept.any():
            return 0.0
        known = self.covariance[np.ix_(self.kept, self.kept)]
        return float(np.sqrt(self.off[self.kept] @ np.linalg.solve(known, self.off[self.kept])))


_SCALES = np.array([MOST_M] * 3 + [MOST_RAD] * 3)


def angles(T: np.ndarray) -> "tuple[float, float, float]":
    """roll, pitch, yaw [rad] of R = Rz Ry Rx."""
    R = T[:3, :3]
    return float(np.arctan2(R[2, 1], R[2, 2])), float(np.arcsin(np.clip(-R[2, 0], -1, 1))), float(np.arctan2(R[1, 0], R[0, 0]))


def _why(axis: int, turns: np.ndarray, is_position: bool) -> str:
    along, across = (float(np.degrees(np.sqrt(one))) for one in (turns[axis, axis], np.trace(turns) - turns[axis, axis]))
    if not is_position and along > 2 * across and along > 1.0:
        return f"the drive turns about this axis alone: by {along:.1f} deg in a second, and {across:.1f} about others"
    return f"the drive {'tilts' if is_position and axis == 2 else 'turns'} too little: by {across if is_position else along + across:.1f} deg in a second"


def _unseen(turns: np.ndarray, has_position: bool, is_planar: bool) -> np.ndarray:
    """Variances (6,) by errors that go with the motion: the less the drive turns about the other axes, the more they are."""
    across = np.maximum(np.trace(turns) - np.diag(turns), 1e-12)
    rotation = np.full(3, LEAST_RAD ** 2) + (0.0 if has_position else FOLLOW_RAD ** 2 / across)
    rotation[:2] += LEVEL_RAD ** 2 if is_planar else 0.0
    return np.concatenate([FOLLOW_M ** 2 / across, rotation])


def mount(solution: Solution, configured: np.ndarray, has_position: bool, is_planar: bool = False) -> Mount:
    """Sorts the axes of T_base_sensor: each is taken, or refused, by its own standard deviation, whatever the others are."""
    order = np.r_[POSITION, ROTATION]
    turn = np.eye(4)
    turn[:3, :3] = solution.X[:3, :3] @ configured[:3, :3].T
    off = np.concatenate([solution.X[:3, 3] - configured[:3, 3], se3.log(turn)[3:]])
    covariance = solution.covariance[np.ix_(order, order)] + np.diag(_unseen(solution.turns, has_position, is_planar))
    possible = np.array([has_position] * 3 + [True] * 3)
    kept = possible & (np.sqrt(np.diag(covariance)) <= _SCALES)
    refused = [f"{AXES[k]} ({_why(k % 3, solution.turns, k < 3)})" for k in range(6) if possible[k] and not kept[k]]
    off = np.where(kept, off, 0.0)
    covariance = np.where(np.outer(kept, kept), covariance, 0.0)
    T = np.eye(4)
    T[:3, :3] = se3.exp(np.concatenate([np.zeros(3), off[3:]]))[:3, :3] @ configured[:3, :3]
    T[:3, 3] = configured[:3, 3] + off[:3]
    return Mount(T, configured, off, covariance, kept, refused, has_position)


def imu_in_base(solution: Solution, T_base_sensor: np.ndarray) -> Solution:
    """T_base_imu of what the gyro told: T_imu_sensor, whose rotation alone is known."""
    turned = np.eye(4)
    turned[:3, :3] = T_base_sensor[:3, :3] @ solution.X[:3, :3].T
    R = turned[:3, :3]
    covariance = np.zeros_like(solution.covariance)
    covariance[6:, 6:] = solution.covariance[6:, 6:]
    covariance[ROTATION, ROTATION] = R @ solution.covariance[ROTATION, ROTATION] @ R.T
    return Solution(turned, solution.scale, solution.turn_scale, solution.bias_radps, solution.late_s, covariance, solution.motions,
                    solution.spread, R @ solution.turns @ R.T, solution.outliers)


def faults(solution: Solution, is_gyro: bool) -> "dict[str, dict[str, Any]]":
    """Scale, bias and lateness of a chain with their standard deviations; what is less certain than of use is left out."""
    deviations = np.sqrt(np.diag(solution.covariance))
    out: "dict[str, dict[str, Any]]" = {}
    if not is_gyro and deviations[SCALE] <= MOST_SCALE:
        out["scale"] = {"value": solution.scale, "deviation": deviations[SCALE]}
    if deviations[TURN_SCALE] <= MOST_SCALE:
        out["turn_scale"] = {"value": solution.turn_scale, "deviation": deviations[TURN_SCALE]}
    if np.all(deviations[BIAS] <= MOST_BIAS_RADPS):
        out["bias_radps"] = {"value": solution.bias_radps.tolist(), "deviation": deviations[BIAS].tolist()}
    if deviations[TIME] <= MOST_TIME_S:
        out["late_s"] = {"value": solution.late_s, "deviation": deviations[TIME]}
    return out


def numbers(one: Mount) -> "list[float]":
    """x y z roll pitch yaw [m, rad], rounded to 0.1 mm and 0.0006 deg."""
    return [round(float(value), 4) + 0.0 for value in one.T[:3, 3]] + [round(value, 5) + 0.0 for value in angles(one.T)]


def as_json(one: Mount) -> "dict[str, Any]":
    """Of a mount: the transform, how far from the configured one, and how certain that is, in axes of the base."""
    axes = {name: {"observed": bool(one.kept[k]), "off": float(one.off[k]) if one.kept[k] else None,
                   "deviation": float(one.deviations[k]) if one.kept[k] else None} for k, name in enumerate(AXES) if one.has_position or k >= 3}
    return {"pose": poses.pose_of(one.T).tolist(), "configured": poses.pose_of(one.configured).tolist(), "axes": axes, "refused": one.refused,
            "sigmas": one.sigmas, "covariance": one.covariance.tolist()}
