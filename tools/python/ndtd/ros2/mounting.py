"""Where the sensors are on the vehicle: tf_static of ROS to `transform` messages of ndtd."""
import time
from typing import Any, Callable, Optional

import numpy as np

from ..recordings.transforms import Tree
from .to_ndtd import pack

PATIENCE_S = 2.0  # that a scan waits for tf_static
REPEAT_S = 1.0  # a daemon that starts later has missed the first one


def pose_of(T: np.ndarray) -> list[float]:
    """x y z qx qy qz qw of a 4 x 4 matrix."""
    R = T[:3, :3]
    # The row of 4 q q^T with the largest diagonal (Shepperd): no cancellation.
    diagonal = np.array([1 + R[0, 0] - R[1, 1] - R[2, 2], 1 - R[0, 0] + R[1, 1] - R[2, 2], 1 - R[0, 0] - R[1, 1] + R[2, 2],
                         1 + np.trace(R)])
    symmetric = R + R.T
    rows = np.diag(diagonal)
    rows[:3, :3] += symmetric - np.diag(np.diag(symmetric))
    rows[3, :3] = rows[:3, 3] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    q = rows[int(np.argmax(diagonal))]
    return [*T[:3, 3].tolist(), *(q / np.linalg.norm(q)).tolist()]


class Mounting:
    """Tells ndtd about the frames that its messages name. One thread."""

    def __init__(self, base_frame: str, send: Callable[[bytes], Any], log: Any) -> None:
        self._base, self._send, self._log = base_frame, send, log
        self._tree = Tree()
        self._first_s: dict[str, float] = {}  # frame_id: when a message named it
        self._sent: dict[str, list[float]] = {}
        self._next_s = 0.0
        self.is_published = False  # somebody publishes tf_static

    def add(self, transforms: list[Any], stamp_ns: int) -> None:
        for transform in transforms:
            self._tree.add(transform)
        self._tell(stamp_ns)

    def wants(self, frame_id: str, stamp_ns: int) -> bool:
        """Whether a message of this frame should go: False while its transform can still come."""
        if not frame_id or frame_id in self._sent:
            return True
        self._first_s.setdefault(frame_id, time.monotonic())
        self._tell(stamp_ns)
        if frame_id in self._sent or not self.is_published:
            return True
        if time.monotonic() - self._first_s[frame_id] < PATIENCE_S:
            return False
        self._log.seldom(f"mounting {frame_id}", f"tf_static does not tell where '{frame_id}' is on '{self._base}': "
                         "ndtd takes it from frames.* of its configuration")
        return True

    def repeat(self, stamp_ns: int) -> None:
        """Once a second."""
        if self._sent and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + REPEAT_S
            for frame_id, pose in self._sent.items():
                self._send(pack("transform", stamp_ns=stamp_ns, frame_id=frame_id, pose=pose))

    def _tell(self, stamp_ns: int) -> None:
        for frame_id in self._first_s:
            T: Optional[np.ndarray] = self._tree.find(self._base, frame_id.lstrip("/"))
            pose = None if T is None else pose_of(T)
            if pose is not None and pose != self._sent.get(frame_id):
                self._send(pack("transform", stamp_ns=stamp_ns, frame_id=frame_id, pose=pose))
                self._sent[frame_id] = pose
                self._log(f"'{frame_id}' is at {' '.join(f'{value:.4g}' for value in pose)} on '{self._base}' (x y z qx qy qz qw)")
