"""Messages that a recording yields. Stamps and receive times in int64 ns; points in the frame `frame_id` of the sensor."""
from dataclasses import dataclass
from typing import Callable, Iterable, NamedTuple, Optional

import numpy as np

MOST_STAMP_NS = 4_600_000_000_000_000_000  # since 1970: NDT_LIMIT_STAMP_NS


class RecordingError(ValueError):
    """A recording that cannot be read; one line that names it and the reason."""


class MetadataError(RecordingError):
    """The metadata.yaml of a folder of ROS 2 cannot be used."""


class DamagedError(RecordingError):
    """The structure of a recording is damaged from here on; what came before is good."""


@dataclass
class Scan:
    receive_ns: int
    stamp_ns: int
    frame_id: str
    points: np.ndarray  # (N, 3) float32 or float64 [m]
    intensity: Optional[np.ndarray] = None  # (N,)
    time_s: Optional[np.ndarray] = None  # (N,) relative to the stamp
    empty: int = 0  # points without a return, which are left out
    seq: Optional[int] = None


@dataclass
class Odometry:
    receive_ns: int
    stamp_ns: int
    frame_id: str
    child_frame_id: str
    pose: Optional[np.ndarray] = None  # T_frame_child: x y z qx qy qz qw
    twist: Optional[np.ndarray] = None  # vx vy vz wx wy wz, in the child frame


@dataclass
class Imu:
    receive_ns: int
    stamp_ns: int
    frame_id: str
    angular_velocity: np.ndarray
    linear_acceleration: Optional[np.ndarray] = None


@dataclass
class Gnss:
    """A fix: latitude and longitude [deg], altitude [m] above the ellipsoid."""

    receive_ns: int
    stamp_ns: int
    frame_id: str
    latitude: float
    longitude: float
    altitude: float
    deviation: Optional[np.ndarray] = None  # east north up [m]


@dataclass
class Pose:
    """T_map_child: an initial pose, the truth, or odometry without a twist, by the kind of its topic."""

    receive_ns: int
    stamp_ns: int
    frame_id: str
    pose: np.ndarray  # x y z qx qy qz qw
    covariance: Optional[np.ndarray] = None
    child_frame_id: str = ""


@dataclass
class Transform:
    """T_parent_child, from tf or tf_static."""

    receive_ns: int
    parent: str
    child: str
    pose: np.ndarray  # x y z qx qy qz qw


@dataclass(eq=False)
class Topic:
    """A topic of a recording and what it is taken for; `kind` None: nothing, for the reason `why`."""

    name: str
    type: str
    count: int
    kind: Optional[str] = None
    why: str = ""
    kinds: tuple = ()  # what it can be taken for; the first by default, unless that is ""
    state: object = None  # of its reader


class Raw(NamedTuple):
    """A message as it is recorded; read() decodes it."""

    topic: Topic
    receive_ns: int
    size: int
    read: Callable[[], Iterable]
