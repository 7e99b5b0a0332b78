"""A recording to a bag of ndtd."""
from dataclasses import dataclass, field

import numpy as np

from . import messages as m
from .transforms import Tree, matrix


@dataclass
class Report:
    """What was taken and what was left, and why."""
    counts: dict = field(default_factory=dict)
    left: dict = field(default_factory=dict)
    sensors: dict = field(default_factory=dict)  # frame_id: T_base_sensor, or None where it is not known
    base: str = ""
    notes: list = field(default_factory=list)
    end_stamps: int = 0  # scans whose stamp is the last of their times
    stamp_gap_s: float = 0.0

    def take(self, kind):
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def leave(self, kind, why):
        self.left[kind, why] = self.left.get((kind, why), 0) + 1


class Converter:
    """Writes messages to a BagWriter; projector: latitude, longitude, altitude to x y z of the map, or None."""

    def __init__(self, bag, base=None, projector=None, take_initial_pose="first"):
        self._bag = bag
        self._base = base
        self._project = projector
        self._tree = Tree()
        self._seq = 0
        self._has_initial_pose = False
        self._initial = take_initial_pose
        self.report = Report()

    def write(self, message):
        {m.Scan: self._scan, m.Odometry: self._odometry, m.Imu: self._imu, m.Gnss: self._gnss,
         m.InitialPose: self._initial_pose, m.Truth: self._truth, m.Transform: self._transform}[type(message)](message)

    def finish(self):
        """Where the sensors are, once all transforms are known."""
        report = self.report
        report.base = self._base or self._tree.base() or ""
        for frame_id in report.sensors:
            report.sensors[frame_id] = self._tree.find(report.base, frame_id) if report.base else None
        return report

    def _scan(self, scan):
        if len(scan.points) == 0:
            self.report.leave("scan", "no points")
            return
        self._bag.scan(scan.stamp_ns, scan.points, intensity=scan.intensity, time_s=scan.time_s, seq=self._seq,
                       frame_id=scan.frame_id or "lidar", receive_ns=scan.receive_ns)
        self._seq += 1
        self.report.sensors.setdefault(scan.frame_id or "lidar", None)
        self.report.take("scan")

    def _odometry(self, odometry):
        twist = odometry.twist if odometry.twist is not None and np.isfinite(odometry.twist).all() else None
        pose = odometry.pose
        if pose is not None and not (np.isfinite(pose).all() and abs(np.linalg.norm(pose[3:]) - 1) < 0.01):
            pose = None
        if pose is None and twist is None:
            self.report.leave("odometry", "neither a pose nor a twist that is finite")
            return
        self._bag.odometry(odometry.stamp_ns, pose=pose, twist=twist, frame_id=odometry.frame_id or "odom",
                           receive_ns=odometry.receive_ns)
        self.report.take("odometry")

    def _imu(self, imu):
        if not np.isfinite(imu.angular_velocity).all():
            self.report.leave("imu", "the angular velocity is not finite")
            return
        self._bag.imu(imu.stamp_ns, imu.angular_velocity, imu.linear_acceleration, frame_id=imu.frame_id or "imu",
                      receive_ns=imu.receive_ns)
        self.report.take("imu")

    def _gnss(self, gnss):
        if self._project is None:
            self.report.leave("gnss", "the map's projection is not known: --projector or --utm")
            return
        self._bag.gnss(gnss.stamp_ns, self._project(gnss.latitude, gnss.longitude, gnss.altitude), gnss.deviation,
                       receive_ns=gnss.receive_ns)
        self.report.take("gnss")

    def _initial_pose(self, pose):
        if self._initial == "none" or (self._initial == "first" and self._has_initial_pose):
            self.report.leave("initial_pose", "only the first one counts: --initial-pose all")
            return
        self._has_initial_pose = True
        self._bag.initial_pose(pose.stamp_ns, pose.pose, covariance=pose.covariance, receive_ns=pose.receive_ns)
        self.report.take("initial_pose")

    def _truth(self, truth):
        self._bag.truth(truth.stamp_ns, truth.pose, receive_ns=truth.receive_ns)
        self.report.take("truth")

    def _transform(self, transform):
        self._tree.add(transform)
        self.report.take("tf_static" if transform.is_static else "tf")


__all__ = ["Converter", "Report", "matrix"]
