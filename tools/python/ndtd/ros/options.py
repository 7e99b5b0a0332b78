"""Options and log of a bridge."""
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Callable, Optional

from . import link

SELDOM_S = 60.0
LONGEST_LINE = 500


class UsageError(ValueError):
    """Options that do not fit the graph; one line."""


@dataclass
class Options:
    """Topic names are resolved: absolute, with namespace and remappings; empty: none."""

    scans: list[str] = field(default_factory=list)  # empty: the only PointCloud2 that there is
    motion: dict[str, tuple[str, ...]] = field(default_factory=dict)  # topic: types that it may have
    initial_pose: str = "/initialpose"
    pose: str = "/localization/pose_estimator/pose_with_covariance"
    odometry_out: str = "/localization/pose_estimator/odometry"
    diagnostics: str = "/diagnostics"
    tf: str = "auto"  # auto, map-odom, map-base, none
    tf_topic: str = "/tf"
    tf_static_topic: str = "/tf_static"
    tf_ahead_ns: int = 0
    map_frame: str = "map"
    odom_frame: str = "odom"
    base_frame: str = "base_link"
    search_initial_pose: bool = True
    publish_all: bool = False
    align_service: str = ""  # these three, or none
    trigger_service: str = ""
    scores: dict[str, str] = field(default_factory=dict)  # name: topic
    use_sim_time: bool = False
    reliable: bool = False
    daemon: link.Daemon = field(default_factory=link.Daemon)
    projector: Optional[Callable] = None


class Log:
    """Lines on standard error; the same cause at most once a minute."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._last: dict[str, float] = {}
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        """One line, whatever strangers have sent."""
        print(f"{self._program}: {' '.join(text.split())[:LONGEST_LINE]}", file=sys.stderr, flush=True)

    def seldom(self, cause: str, text: str) -> None:
        now = time.monotonic()
        with self._lock:
            if now - self._last.get(cause, -SELDOM_S) < SELDOM_S:
                return
            self._last[cause] = now
        self(text)

    def forget(self, cause: str) -> None:
        with self._lock:
            self._last.pop(cause, None)
