"""Transforms between frames: a tree of those that a recording tells."""
from typing import Iterable, Optional

import numpy as np

from ..poses import matrix
from .messages import Transform

BASES = ("base_link", "base_footprint", "base", "vehicle", "ego_vehicle", "body", "chassis", "base_frame")
MOVING = ("map", "odom", "world", "earth", "global")


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
