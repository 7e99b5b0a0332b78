"""Messages of a recording to a bag of ndtd."""
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, List, Optional

import numpy as np

from ..poses import matrix, pose_of
from . import messages as m
from .mixed_sensors import MixedSensors
from .sensor_frames import Frames

MOST_REASONS = 50


@dataclass
class Report:
    """Counts of what was taken and what was left, and why."""

    taken: dict = field(default_factory=dict)  # kind: messages
    left: dict = field(default_factory=dict)  # "kind: why": messages
    read_bytes: int = 0
    points: int = 0
    empty_points: int = 0  # without a return
    timed_scans: int = 0
    steps_back: int = 0  # scans that are not later than the one before them
    last_ns: Optional[int] = None  # stamp of the last scan
    spans: dict = field(default_factory=dict)  # kind: least and largest stamp [ns]
    sensors: list = field(default_factory=list)  # frames of scans
    damage: str = ""  # where the recording ends before its end
    rotated: list = field(default_factory=list)  # frames whose motion became that of the base
    mixed: list = field(default_factory=list)  # frames whose scans are those of two sensors, by turns

    def take(self, kind: str) -> None:
        self.taken[kind] = self.taken.get(kind, 0) + 1

    def leave(self, kind: str, why: str) -> None:
        key = f"{kind}: {why}"
        if key not in self.left and len(self.left) >= MOST_REASONS:
            key = f"{kind}: other reasons"
        self.left[key] = self.left.get(key, 0) + 1


def _once(names, name):
    if name not in names:
        names.append(name)


def _is_identity(T):
    return T is None or np.array_equal(T, np.eye(4))


class Converter:
    """Writes messages into a BagWriter.

    frames: where the sensors are. project: latitude, longitude [deg], altitude [m] to x y z of the map, or None.
    every_pose: all initial poses instead of the first alone.
    """

    def __init__(self, bag: Any, frames: Frames, project: Optional[Callable] = None, every_pose: bool = False):
        self._bag, self._frames, self._project, self._every_pose = bag, frames, project, every_pose
        self._seq = 0
        self._transforms: List[str] = []
        self._mixed = MixedSensors()
        self.report = Report()

    def state(self) -> dict:
        """The state that a later Converter needs to go on, as JSON."""
        return {"seq": self._seq, "transforms": self._transforms, "mixed": self._mixed.state(), "report": asdict(self.report)}

    def restore(self, state: dict) -> None:
        self._seq, self._transforms, self.report = state["seq"], state["transforms"], Report(**state["report"])
        self._mixed.restore(state["mixed"])

    def write(self, message: Any, kind: str) -> None:
        """Writes one message of a topic of this kind; a message that ndtd would refuse is counted with the reason."""
        if max(abs(message.stamp_ns), abs(message.receive_ns)) > m.MOST_STAMP_NS:
            self.report.leave(kind, "its stamp is beyond the year 2115")
            return
        writers = {m.Scan: self._scan, m.Odometry: self._odometry, m.Imu: self._imu, m.Gnss: self._gnss, m.Pose: self._pose}
        try:
            writers[type(message)](message, kind)
        except ValueError as error:
            self.report.leave(kind, str(error))
            return
        span = self.report.spans.setdefault(kind, [message.stamp_ns, message.stamp_ns])
        span[:] = min(span[0], message.stamp_ns), max(span[1], message.stamp_ns)

    # ---- frames ----

    def _put_transform(self, frame, receive_ns):
        """Tells ndtd where a sensor is, before its first message."""
        if frame in self._transforms:
            return
        T = self._frames.of(frame)
        if T is not None:
            self._bag.transform(receive_ns, frame, T, receive_ns=receive_ns)
            self._transforms.append(frame)

    def _base_from(self, frame):
        """T_base_frame where it moves anything, else None."""
        T = self._frames.of(frame) if frame else None
        if _is_identity(T):
            return None
        _once(self.report.rotated, frame)
        return T

    # ---- one function per message ----

    def _scan(self, scan, kind):
        report, frame = self.report, scan.frame_id.lstrip("/") or "lidar"
        report.empty_points += scan.empty
        if len(scan.points) == 0:
            report.leave(kind, "no points")
            return
        self._put_transform(frame, scan.receive_ns)
        self._bag.scan(scan.stamp_ns, scan.points, intensity=scan.intensity, time_s=scan.time_s,
                       seq=self._seq if scan.seq is None else scan.seq, frame_id=frame, receive_ns=scan.receive_ns)
        self._seq += 1
        _once(report.sensors, frame)
        if self._mixed.add(frame, scan.points):
            _once(report.mixed, frame)
        report.points += len(scan.points)
        report.timed_scans += scan.time_s is not None
        report.steps_back += report.last_ns is not None and scan.stamp_ns <= report.last_ns
        report.last_ns = scan.stamp_ns
        report.take(kind)

    def _odometry(self, odometry, kind):
        twist = odometry.twist if odometry.twist is not None and np.isfinite(odometry.twist).all() else None
        pose = odometry.pose
        if pose is not None and not (np.isfinite(pose).all() and abs(np.linalg.norm(pose[3:]) - 1) < 0.01):
            pose = None
        if pose is None and twist is None:
            self.report.leave(kind, "neither a pose nor a twist that is finite")
            return
        T = self._base_from(odometry.child_frame_id)
        if T is not None:
            pose, twist = _pose_of_base(pose, T), _twist_of_base(twist, T)
        self._bag.odometry(odometry.stamp_ns, pose=pose, twist=twist, frame_id=odometry.frame_id or "odom",
                           receive_ns=odometry.receive_ns)
        self.report.take(kind)

    def _imu(self, imu, kind):
        if not np.isfinite(imu.angular_velocity).all():
            self.report.leave(kind, "its angular velocity is not finite")
            return
        acceleration = imu.linear_acceleration
        if acceleration is not None and not np.isfinite(acceleration).all():
            acceleration = None
        frame = imu.frame_id.lstrip("/") or "imu"
        self._put_transform(frame, imu.receive_ns)
        self._bag.imu(imu.stamp_ns, imu.angular_velocity, acceleration, frame_id=frame, receive_ns=imu.receive_ns)
        self.report.take(kind)

    def _gnss(self, gnss, kind):
        position = np.array([gnss.latitude, gnss.longitude, gnss.altitude], np.float64)
        if not np.isfinite(position).all() or abs(gnss.latitude) > 90 or abs(gnss.longitude) > 180:
            self.report.leave(kind, "latitude, longitude or altitude is none")
            return
        if self._project is None:
            self.report.leave(kind, "where the map is on Earth is not known: --projector FILE or --utm")
            return
        xyz = np.array([float(number) for number in self._project(*position)])
        if not np.isfinite(xyz).all():
            self.report.leave(kind, "outside of the projection of the map")
            return
        deviation = gnss.deviation if gnss.deviation is not None and np.isfinite(gnss.deviation).all() else None
        antenna = gnss.frame_id.lstrip("/")
        self._put_transform(antenna, gnss.receive_ns)
        self._bag.gnss(gnss.stamp_ns, xyz, deviation, antenna=antenna, receive_ns=gnss.receive_ns)
        self.report.take(kind)

    def _pose(self, pose, kind):
        if kind == "odometry":
            self._odometry(m.Odometry(pose.receive_ns, pose.stamp_ns, pose.frame_id, pose.child_frame_id, pose.pose), kind)
            return
        if kind == "pose" and self.report.taken.get(kind) and not self._every_pose:
            self.report.leave(kind, "only the first initial pose counts: --every-pose")
            return
        T, numbers = self._base_from(pose.child_frame_id), pose.pose
        numbers = numbers if T is None else _pose_of_base(numbers, T)
        if kind == "truth":
            self._bag.truth(pose.stamp_ns, numbers, receive_ns=pose.receive_ns)
        else:
            has_covariance = pose.covariance is not None and pose.covariance.any() and np.isfinite(pose.covariance).all()
            self._bag.initial_pose(pose.stamp_ns, numbers, covariance=pose.covariance if has_covariance else None,
                                   receive_ns=pose.receive_ns)
        self.report.take(kind)


def _pose_of_base(pose, T_base_child):
    """T_odom_base of T_odom_child."""
    return None if pose is None else pose_of(matrix(pose) @ np.linalg.inv(T_base_child))


def _twist_of_base(twist, T_base_child):
    """A twist as the velocity of the base, in its frame."""
    if twist is None:
        return None
    R, t = T_base_child[:3, :3], T_base_child[:3, 3]
    omega = R @ twist[3:]
    return np.concatenate([R @ twist[:3] + np.cross(t, omega), omega])
