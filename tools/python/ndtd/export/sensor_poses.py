"""Rigid transforms as 7 numbers x y z qx qy qz qw, and where sensors are on the vehicle."""
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from .._extras import need

IDENTITY = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


class FrameError(ValueError):
    """A transform that cannot be used; one line."""


def rotation(pose: np.ndarray) -> np.ndarray:
    """(3, 3) of the quaternion of a pose."""
    x, y, z, w = pose[3:] / np.linalg.norm(pose[3:])
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def compose(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a * b: coordinates in the frame of b to those that a maps to."""
    (ax, ay, az, aw), (bx, by, bz, bw) = a[3:], b[3:]
    q = np.array([aw * bx + ax * bw + ay * bz - az * by, aw * by - ax * bz + ay * bw + az * bx,
                  aw * bz + ax * by - ay * bx + az * bw, aw * bw - ax * bx - ay * by - az * bz])
    return np.concatenate([a[:3] + rotation(a) @ b[:3], q / np.linalg.norm(q)])


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


def _from_matrix(m: np.ndarray) -> np.ndarray:
    R = m[:3, :3]
    if np.abs(R @ R.T - np.eye(3)).max() > 1e-3 or np.linalg.det(R) < 0:
        raise FrameError("the matrix is not a rotation and a translation")
    # The largest of the four squares gives the most digits.
    squares = np.array([R[0, 0] - R[1, 1] - R[2, 2], R[1, 1] - R[0, 0] - R[2, 2], R[2, 2] - R[0, 0] - R[1, 1], np.trace(R)])
    k = int(np.argmax(squares))
    q = np.empty(4)
    if k == 3:
        q[:] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], 1 + squares[3]
    else:
        i, j = (k + 1) % 3, (k + 2) % 3
        q[k], q[i], q[j], q[3] = 1 + squares[k], R[i, k] + R[k, i], R[j, k] + R[k, j], R[j, i] - R[i, j]
    return np.concatenate([m[:3, 3], q / np.linalg.norm(q)])


def parse_transform(numbers: Sequence[Any]) -> np.ndarray:
    """x y z roll pitch yaw [m, rad], x y z qx qy qz qw, or the 16 numbers of a matrix by rows. FrameError."""
    try:
        values = np.array([float(number) for number in numbers])
    except (TypeError, ValueError):
        values = np.empty(0)
    if len(values) not in (6, 7, 16) or not np.isfinite(values).all():
        raise FrameError("x,y,z,roll,pitch,yaw, or x,y,z,qx,qy,qz,qw, or 16 numbers of a matrix are needed")
    if len(values) == 16:
        return _from_matrix(values.reshape(4, 4))
    if len(values) == 7:
        if not abs(np.linalg.norm(values[3:]) - 1.0) < 0.01:
            raise FrameError("the quaternion does not have length 1")
        return values
    half = values[3:] / 2
    (cr, cp, cy), (sr, sp, sy) = np.cos(half), np.sin(half)
    return np.concatenate([values[:3], [sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy, cr * cp * sy - sr * sp * cy,
                                        cr * cp * cy + sr * sp * sy]])


class Sensors:
    """T_base_sensor by frame_id, as the section `frames` of a configuration of ndtd has them."""

    def __init__(self, default: Optional[np.ndarray] = None, by_frame: "Optional[dict[str, np.ndarray]]" = None):
        self.default = default
        self.by_frame = by_frame or {}

    def find(self, frame_id: str) -> np.ndarray:
        """T_base_sensor of a frame; the identity where nothing is known, as in ndtd."""
        found = self.by_frame.get(frame_id, self.default)
        return IDENTITY if found is None else found

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
