"""The transform odom -> base_link of the last seconds, as tf tells it."""
import threading
from collections import deque
from typing import Any, Optional

import numpy as np

KEPT = 1024  # 10 s at 100 Hz
REACH_NS = 200_000_000  # beyond the newest or before the oldest one


class Buffer:
    """Poses by their stamps; any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._poses: deque = deque(maxlen=KEPT)  # (stamp_ns, pose), ascending

    def __len__(self) -> int:
        return len(self._poses)

    def add(self, stamp_ns: int, pose: Any) -> None:
        with self._lock:
            if self._poses and stamp_ns < self._poses[-1][0]:
                if stamp_ns > self._poses[-1][0] - 1_000_000_000:
                    return  # out of order
                self._poses.clear()  # the clock was set back, as in a loop of a recording
            self._poses.append((stamp_ns, np.array(pose, np.float64)))

    def at(self, stamp_ns: int) -> Optional[np.ndarray]:
        """Interpolated; the nearest within 0.2 s at the ends; None where nothing is that near."""
        with self._lock:
            poses = list(self._poses)
        stamps = [stamp for stamp, _ in poses]
        i = int(np.searchsorted(stamps, stamp_ns)) if poses else 0
        if 0 < i < len(poses):
            (before_ns, before), (after_ns, after) = poses[i - 1], poses[i]
            return _between(before, after, (stamp_ns - before_ns) / max(after_ns - before_ns, 1))
        near = poses[min(i, len(poses) - 1)] if poses else None
        return near[1] if near is not None and abs(near[0] - stamp_ns) <= REACH_NS else None


def _between(a: np.ndarray, b: np.ndarray, part: float) -> np.ndarray:
    q = b[3:] if a[3:] @ b[3:] >= 0 else -b[3:]
    mixed = (1 - part) * a + part * np.concatenate([b[:3], q])
    mixed[3:] /= np.linalg.norm(mixed[3:])
    return mixed
