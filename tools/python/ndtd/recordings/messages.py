"""What a source yields. Stamps and receive times in int64 ns; points in the frame `frame_id` of the sensor."""
from dataclasses import dataclass, field
from typing import Optional

import numpy as np


@dataclass
class Scan:
    receive_ns: int
    stamp_ns: int
    frame_id: str
    points: np.ndarray  # (N, 3) float32 or float64 [m]
    intensity: Optional[np.ndarray] = None  # (N,)
    time_s: Optional[np.ndarray] = None  # (N,) relative to the stamp


@dataclass
class Odometry:
    receive_ns: int
    stamp_ns: int
    frame_id: str
    child_frame_id: str
    pose: Optional[np.ndarray] = None  # x y z qx qy qz qw
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
class InitialPose:
    receive_ns: int
    stamp_ns: int
    pose: np.ndarray
    covariance: Optional[np.ndarray] = None


@dataclass
class Truth:
    receive_ns: int
    stamp_ns: int
    pose: np.ndarray


@dataclass
class Transform:
    """T_parent_child, from tf or tf_static."""
    receive_ns: int
    stamp_ns: int
    parent: str
    child: str
    pose: np.ndarray  # x y z qx qy qz qw
    is_static: bool = False


@dataclass
class Topic:
    """A topic of a recording and what it is taken for; `kind` None: nothing."""
    name: str
    type: str
    count: int
    kind: Optional[str] = None
    why: str = ""
    taken: int = field(default=0, compare=False)
