"""Transforms between frames: a tree of those that a recording tells."""
from typing import Iterable, Optional

import numpy as np

from .messages import Transform

BASES = ("base_link", "base_footprint", "base", "vehicle", "ego_vehicle", "body", "chassis", "base_frame")
MOVING = ("map", "odom", "world", "earth", "global")


def matrix(pose: np.ndarray) -> np.ndarray:
    """4 x 4 from x y z qx qy qz qw."""
    x, y, z, qx, qy, qz, qw = (float(number) for number in pose)
    n = np.sqrt(qx * qx + qy * qy + qz * qz + qw * qw) or 1.0
    qx, qy, qz, qw = qx / n, qy / n, qz / n, qw / n
    out = np.eye(4)
    out[:3, :3] = [[1 - 2 * (qy * qy + qz * qz), 2 * (qx * qy - qz * qw), 2 * (qx * qz + qy * qw)],
                   [2 * (qx * qy + qz * qw), 1 - 2 * (qx * qx + qz * qz), 2 * (qy * qz - qx * qw)],
                   [2 * (qx * qz - qy * qw), 2 * (qy * qz + qx * qw), 1 - 2 * (qx * qx + qy * qy)]]
    out[:3, 3] = x, y, z
    return out


def pose_of(T: np.ndarray) -> np.ndarray:
    """x y z qx qy qz qw from 4 x 4."""
    R = T[:3, :3]
    K = np.array([[R[0, 0] - R[1, 1] - R[2, 2], 0, 0, 0],
                  [R[0, 1] + R[1, 0], R[1, 1] - R[0, 0] - R[2, 2], 0, 0],
                  [R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], R[2, 2] - R[0, 0] - R[1, 1], 0],
                  [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], R[0, 0] + R[1, 1] + R[2, 2]]])
    q = np.linalg.eigh(K)[1][:, 3]  # of the largest eigenvalue; eigh reads the lower triangle
    return np.concatenate([T[:3, 3], q if q[3] >= 0 else -q])


class Tree:
    """Transforms T_parent_child, and what follows from them."""

    def __init__(self):
        self._parent = {}

    def add(self, transform: Transform, keep: bool = False) -> None:
        """keep: a transform that is known stays as it is."""
        if np.isfinite(transform.pose).all() and not (keep and transform.child in self._parent):
            self._parent[transform.child] = (transform.parent, matrix(transform.pose))

    def frames(self) -> set:
        return set(self._parent) | {parent for parent, _ in self._parent.values()}

    def _to_root(self, frame):
        T, path = np.eye(4), {frame: np.eye(4)}
        while frame in self._parent:
            frame, T_parent_child = self._parent[frame]
            if frame in path:  # a circle
                break
            T = T_parent_child @ T
            path[frame] = T
        return path

    def find(self, base: str, frame: str) -> Optional[np.ndarray]:
        """T_base_frame, or None where the transforms do not connect them, or only by way of the world."""
        up, down = self._to_root(base), self._to_root(frame)
        for common in down:
            if common in up:
                if common in MOVING and common not in (base, frame):
                    return None
                return down[common] if common == base else np.linalg.inv(up[common]) @ down[common]
        return None

    def base(self, candidates: Iterable[str] = ()) -> str:
        """The frame of the vehicle by its customary name, or the first candidate that is in the tree, or ""."""
        frames = self.frames()
        return next((name for name in (*BASES, *candidates) if name and name.lstrip("/") in frames), "")
