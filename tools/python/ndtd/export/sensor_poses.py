"""Poses of sensors on the vehicle, and results of ndtd moved to them."""
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from .._extras import need
from ..poses import checked_pose, from_euler, rotation
from .result_lines import ResultLine

IDENTITY = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


class FrameError(ValueError):
    """A transform that cannot be used; one line."""


def apply(pose: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(N, 3) points mapped by a pose."""
    return points @ rotation(pose).T + pose[:3]


def move_covariance(covariance: np.ndarray, pose: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """(6, 6) of pose * offset from that of a pose; x y z rx ry rz in the axes of the map, rotations about the origin of the pose."""
    x, y, z = rotation(pose) @ offset[:3]
    J = np.eye(6)
    J[:3, 3:] = [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]  # the lever times a small rotation
    return J @ covariance @ J.T


def move_twist(twist: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """(6,) vx vy vz wx wy wz of a sensor in its own axes from that of the base; offset: T_base_sensor."""
    R = rotation(offset)
    return np.concatenate([R.T @ (twist[:3] + np.cross(twist[3:], offset[:3])), R.T @ twist[3:]])


def undo_motion(points: np.ndarray, time_s: np.ndarray, twist: np.ndarray) -> np.ndarray:
    """(N, 3) points of the base frame, taken at time_s after the stamp, as if taken at the stamp, at a constant twist."""
    speed = float(np.linalg.norm(twist[3:]))
    out = points + time_s[:, None] * twist[:3]
    if speed > 1e-9:
        axis, angle = twist[3:] / speed, (speed * time_s)[:, None]
        turned = points * np.cos(angle) + np.cross(axis, points) * np.sin(angle) + axis * (points @ axis)[:, None] * (1 - np.cos(angle))
        out += turned - points
    return out


def parse_transform(numbers: Sequence[Any]) -> np.ndarray:
    """x y z roll pitch yaw [m, rad], x y z qx qy qz qw, or the 16 numbers of a matrix by rows. FrameError."""
    try:
        values = np.array([float(number) for number in numbers])
    except (TypeError, ValueError):
        values = np.empty(0)
    if len(values) not in (6, 7, 16) or not np.isfinite(values).all():
        raise FrameError("x,y,z,roll,pitch,yaw, or x,y,z,qx,qy,qz,qw, or 16 numbers of a matrix are needed")
    if len(values) == 16:
        try:
            return checked_pose(values.reshape(4, 4))
        except ValueError:
            raise FrameError("the matrix is not a rotation and a translation") from None
    if len(values) == 7:
        if not abs(np.linalg.norm(values[3:]) - 1.0) < 0.01:
            raise FrameError("the quaternion does not have length 1")
        return values
    return from_euler(values[:3], values[3:])


class Sensors:
    """Poses of the sensors of results: `given` holds for all of them, else the section `frames` of a configuration (`by_frame`,
    and `default` where it is not the identity), else what a result says itself: ndtd, too, lets the configuration win."""

    def __init__(self, default: Optional[np.ndarray] = None, by_frame: "Optional[dict[str, np.ndarray]]" = None,
                 given: Optional[np.ndarray] = None):
        self.default, self.by_frame, self.given = default, by_frame or {}, given

    def find(self, result: ResultLine, frame_id: Optional[str] = None) -> Optional[np.ndarray]:
        """T_base_sensor of the scan of a result; frame_id: of that scan, for results that do not name it. None: unknown."""
        if self.given is not None:
            return self.given
        configured = self.by_frame.get(result.sensor or frame_id or "", self.default)
        is_default = configured is self.default and (configured is None or np.array_equal(configured, IDENTITY))
        return result.T_base_sensor if is_default and result.T_base_sensor is not None else configured

    @classmethod
    def from_config(cls, path: Any) -> "Sensors":
        """Reads frames.T_base_sensor and frames.sensors of a configuration file."""
        yaml = need("yaml", "foxglove")
        try:
            with open(path, encoding="utf-8") as stream:
                root = yaml.safe_load(stream) or {}
            while isinstance(root, dict) and ("/**" in root or "ros__parameters" in root):
                root = root.get("/**", root.get("ros__parameters"))
            frames = root.get("frames") or {}
            default = parse_transform(_words(frames["T_base_sensor"])) if "T_base_sensor" in frames else None
            rows = [_words(row) for row in frames.get("sensors") or []]
            return cls(default, {str(row[0]): parse_transform(row[1:]) for row in rows if row})
        except FrameError as error:
            raise FrameError(f"{path}: frames: {error}") from None
        except (yaml.YAMLError, AttributeError, UnicodeDecodeError) as error:
            raise FrameError(f"{path}: not a configuration of ndtd: {' '.join(str(error).split())[:100]}") from None


def _words(value: Any) -> "list[Any]":
    return value.replace(",", " ").split() if isinstance(value, str) else list(value)
