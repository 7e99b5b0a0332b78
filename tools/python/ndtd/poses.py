"""Rigid transforms: (4, 4), or 7 numbers x y z qx qy qz qw, T_a_b takes coordinates of b to those of a."""
from typing import Any

import numpy as np


def matrix(pose: Any) -> np.ndarray:
    """(4, 4) from 7 numbers; the quaternion need not have length 1."""
    numbers = np.asarray(pose, np.float64)
    x, y, z, w = numbers[3:] / (np.linalg.norm(numbers[3:]) or 1.0)
    out = np.eye(4)
    out[:3, :3] = [[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                   [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                   [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]
    out[:3, 3] = numbers[:3]
    return out


def rotation(pose: Any) -> np.ndarray:
    """(3, 3) of the quaternion of a pose."""
    return matrix(pose)[:3, :3]


def quaternion(R: np.ndarray) -> np.ndarray:
    """x y z w of a rotation (3, 3); w >= 0."""
    # R of q is a quadratic form: its matrix has q as the eigenvector of the largest eigenvalue (Bar-Itzhack 2000).
    K = np.empty((4, 4))
    K[:3, :3] = R + R.T - np.trace(R) * np.eye(3)
    K[3, :3] = K[:3, 3] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    K[3, 3] = np.trace(R)
    q = np.linalg.eigh(K)[1][:, 3]
    return q if q[3] >= 0 else -q


def pose_of(T: np.ndarray) -> np.ndarray:
    """7 numbers from a (4, 4) that is rigid; qw >= 0."""
    T = np.asarray(T)
    return np.concatenate([T[:3, 3], quaternion(T[:3, :3])])


def checked_pose(pose: Any) -> np.ndarray:
    """7 numbers from (4, 4) or from 7 numbers as they are; ValueError: neither, or no rigid transform."""
    numbers = np.asarray(pose, dtype=np.float64)
    if numbers.shape == (7,):
        length = np.linalg.norm(numbers[3:])
        if not 0.9 < length < 1.1:  # as the daemon would; it could only log it
            raise ValueError(f"pose: the quaternion has length {length:.4g}, not 1")
        return numbers
    if numbers.shape != (4, 4):
        raise ValueError(f"pose: (4, 4) or 7 numbers x y z qx qy qz qw are wanted, not {numbers.shape}")
    R = numbers[:3, :3]
    if not np.allclose(R @ R.T, np.eye(3), atol=1e-3) or np.linalg.det(R) < 0 or any(numbers[3] != (0, 0, 0, 1)):
        raise ValueError("pose: the matrix is not a rigid transform")
    return pose_of(numbers)


def rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v turned by the unit quaternion q: x y z w."""
    t = 2 * np.cross(q[:3], v)
    turned: np.ndarray = v + q[3] * t + np.cross(q[:3], t)
    return turned


def compose(a: Any, b: Any) -> np.ndarray:
    """T_a_c of T_a_b and T_b_c."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    p, q = a[3:], b[3:]
    out = np.empty(7)
    out[:3] = a[:3] + rotate(p, b[:3])
    out[3:6] = p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3])
    out[6] = p[3] * q[3] - p[:3] @ q[:3]
    out[3:] /= np.linalg.norm(out[3:])
    return out


def inverse(a: Any) -> np.ndarray:
    """T_b_a of T_a_b."""
    a = np.asarray(a, np.float64)
    q = a[3:] * [-1, -1, -1, 1]
    return np.concatenate([-rotate(q, a[:3]), q])


def from_euler(x_y_z: Any, roll_pitch_yaw_rad: Any) -> np.ndarray:
    """7 numbers from a position and R = Rz(yaw) Ry(pitch) Rx(roll)."""
    half = np.asarray(roll_pitch_yaw_rad, np.float64) / 2
    (cr, cp, cy), (sr, sp, sy) = np.cos(half), np.sin(half)
    return np.array([*x_y_z, sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy, cr * cp * sy - sr * sp * cy,
                     cr * cp * cy + sr * sp * sy])
