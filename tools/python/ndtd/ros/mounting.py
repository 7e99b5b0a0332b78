"""Poses of the sensors on the vehicle: tf_static of ROS to `transform` messages of ndtd."""
import time
from typing import Any, Callable

from ..poses import pose_of
from ..recordings.sensor_frames import Frames
from .to_ndtd import pack

PATIENCE_S = 2.0  # that a scan waits for tf_static
DISCOVERY_S = 0.5  # after the start, until it is known whether somebody publishes it
REPEAT_S = 1.0  # a daemon that starts later has missed the first one


class Mounting:
    """Tells ndtd about the frames that its messages name. One thread."""

    def __init__(self, base_frame: str, send: Callable[[bytes], Any], log: Any, is_wanted: bool = True) -> None:
        """is_wanted: tf_static is read."""
        self.frames = Frames(base=base_frame)
        self._send, self._log = send, log
        self._first_s: dict[str, float] = {}  # frame: when a message named it
        self._told: dict[str, list[float]] = {}  # frame of scans: its pose, or nothing yet
        self._next_s, self._begin_s = 0.0, time.monotonic()
        self.is_wanted, self.is_published = is_wanted, False  # somebody publishes tf_static

    def add(self, transforms: list[Any], stamp_ns: int) -> None:
        for transform in transforms:
            self.frames.tree.add(transform)
        self.frames.known.clear()
        for frame in self._told:
            self._tell(frame, stamp_ns)

    def wants(self, frame_id: str, stamp_ns: int, tells: bool = False) -> bool:
        """Whether a message of this frame should go: False while its transform can still come. tells: ndtd needs it as well."""
        frame = frame_id.lstrip("/")
        if tells and frame not in self._told:
            self._told[frame] = []
            self._tell(frame, stamp_ns)
        if not frame or self.frames.of(frame) is not None:
            return True
        if not self.is_published:
            return not self.is_wanted or time.monotonic() - self._begin_s > DISCOVERY_S
        if time.monotonic() - self._first_s.setdefault(frame, time.monotonic()) < PATIENCE_S:
            return False
        self._log.seldom(f"mounting {frame}", f"tf_static does not tell where '{frame}' is on '{self.frames.base}': "
                         "ndtd takes it from frames.* of its configuration")
        return True

    def repeat(self, stamp_ns: int) -> None:
        """Repeats the transforms, once a second."""
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + REPEAT_S
            for frame, pose in self._told.items():
                if pose:
                    self._send(pack("transform", stamp_ns=stamp_ns, frame_id=frame, pose=pose))

    def _tell(self, frame: str, stamp_ns: int) -> None:
        T = self.frames.of(frame)
        pose = [] if T is None else pose_of(T).tolist()
        if pose and pose != self._told[frame]:
            self._send(pack("transform", stamp_ns=stamp_ns, frame_id=frame, pose=pose))
            self._told[frame] = pose
            self._log(f"'{frame}' is at {' '.join(f'{value:.4g}' for value in pose)} on '{self.frames.base}' (x y z qx qy qz qw)")
