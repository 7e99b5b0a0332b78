"""ROS 2 recordings by rosbags: opens in Foxglove, `ros2 bag` and RViz; no ROS needed.

| topic | type | |
|---|---|---|
| /localization/pose_estimator/pose_with_covariance | geometry_msgs/PoseWithCovarianceStamped | each result with a pose and a covariance |
| /localization/odometry | nav_msgs/Odometry | pose and twist |
| /localization/path | nav_msgs/Path | the whole trajectory, once at the start |
| /tf, /tf_static | tf2_msgs/TFMessage | map to base; base to the sensors, map to map_near where coordinates are large |
| /diagnostics | diagnostic_msgs/DiagnosticArray | each result: outcome, state, confidence, scores, times |
| /localization/scan, /map | sensor_msgs/PointCloud2 | in the map, with --bag and --map |
| /localization/fix | sensor_msgs/NavSatFix | where the map is georeferenced |
"""
import os
import shutil
from pathlib import Path
from typing import Any, Optional

import numpy as np

from .._extras import need
from ..cloud import Cloud
from ..georeference import Projector
from ..ros import msgtypes
from ..ros.from_ndtd import Messages, localisation_status
from .clouds import CLOUD_FIELDS, point_records
from .result_lines import ResultError, ResultLine

NS = 1_000_000_000
NEAR_FRAME = "map_near"


class RosWriter:
    """Writes a folder of ROS 2 (storage mcap or sqlite3), or with single one .mcap file. origin_m: clouds are float32
    relative to it, in the frame map_near where it is not zero."""

    def __init__(self, path: Any, names: Any, origin_m: np.ndarray, projector: Optional[Projector], storage: str, single: bool):
        rosbag2 = need("rosbags.rosbag2", "ros")
        typesys = need("rosbags.typesys", "ros")
        self._ri = need("rosbags.interfaces", "ros")
        self._store = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)
        self._messages = Messages(self._store.types)
        self._path, self._single, self._names, self._projector = Path(path), single, names, projector
        self._origin_m = origin_m
        self._connections: "dict[str, Any]" = {}
        self._cloud_frame = NEAR_FRAME if origin_m.any() else names.map
        self._folder = self._path.with_name(self._path.name + ".d") if single else self._path
        plugin = rosbag2.StoragePlugin.SQLITE3 if storage == "sqlite3" else rosbag2.StoragePlugin.MCAP
        # Version 8, that of Iron: QoS profiles are one string, as Humble expects; in 9 they are a list.
        self._writer = rosbag2.Writer(self._folder, version=8, storage_plugin=plugin)
        self._writer.open()

    # ---- messages

    def _new(self, kind: str, *values: Any) -> Any:
        return self._store.types[kind](*values)

    def _vector(self, values: Any) -> Any:
        return self._new("geometry_msgs/msg/Vector3", *map(float, values))

    def _header(self, stamp_ns: int, frame_id: str) -> Any:
        return self._messages.header(stamp_ns, frame_id)

    def _transform(self, stamp_ns: int, parent: str, child: str, pose: np.ndarray) -> Any:
        return self._messages.transform(stamp_ns, parent, child, pose).transforms[0]

    def _write(self, topic: str, kind: str, message: Any, stamp_ns: int, latched: bool = False) -> None:
        if not 0 <= stamp_ns < 2**31 * NS:
            raise ResultError(f"stamp {stamp_ns} ns: recordings of ROS 2 have times from 1970 to 2038")
        if topic not in self._connections:
            qos = [self._latched()] if latched else []
            self._connections[topic] = self._writer.add_connection(topic, kind, typestore=self._store, offered_qos_profiles=qos)
        self._writer.write(self._connections[topic], stamp_ns, self._store.serialize_cdr(message, kind))

    def _latched(self) -> Any:
        ri = self._ri
        never = ri.QosTime(9223372036, 854775807)
        return ri.Qos(ri.QosHistory.KEEP_LAST, 1, ri.QosReliability.RELIABLE, ri.QosDurability.TRANSIENT_LOCAL, never, never,
                      ri.QosLiveliness.AUTOMATIC, never, False)

    # ---- the start

    def begin(self, stamp_ns: int, path: np.ndarray, mounts: "dict[str, np.ndarray]") -> None:
        """path: (N, 7) poses of the trajectory, thinned."""
        self.mounts(stamp_ns, mounts)
        header = self._header(stamp_ns, self._names.map)
        poses = [self._new("geometry_msgs/msg/PoseStamped", header, self._messages.pose({"pose": pose, "stamp_ns": stamp_ns}, "").pose.pose)
                 for pose in path]
        self._write("/localization/path", "nav_msgs/msg/Path", self._new("nav_msgs/msg/Path", header, poses), stamp_ns, latched=True)

    def mounts(self, stamp_ns: int, mounts: "dict[str, np.ndarray]") -> None:
        """All static transforms, T_base_sensor by frame; again where one has changed: readers keep the last message."""
        near = np.concatenate([self._origin_m, [0.0, 0.0, 0.0, 1.0]])
        static = [self._transform(stamp_ns, self._names.map, NEAR_FRAME, near)] if self._origin_m.any() else []
        static += [self._transform(stamp_ns, self._names.base, name, pose) for name, pose in mounts.items()]
        if static:
            self._write("/tf_static", msgtypes.TF, self._new(msgtypes.TF, static), stamp_ns, latched=True)

    def map(self, stamp_ns: int, cloud: Cloud) -> None:
        self._cloud("/map", stamp_ns, cloud, latched=True)

    # ---- each scan

    def add(self, result: ResultLine) -> None:
        """A result, with its pose where it is to be shown."""
        if result.pose is not None:
            self._add_pose(result, result.pose)
        array = self._messages.diagnostics(result.stamp_ns, [localisation_status(result.values, {})])
        self._write("/diagnostics", msgtypes.DIAGNOSTICS, array, result.stamp_ns)

    def _add_pose(self, result: ResultLine, pose: np.ndarray) -> None:
        stamp_ns, names = result.stamp_ns, self._names
        shown = {"stamp_ns": stamp_ns, "pose": pose}
        if result.covariance is not None:
            shown["covariance"] = result.covariance.reshape(36)
        message = self._messages.pose(shown, names.map)
        self._write("/tf", msgtypes.TF, self._messages.transform(stamp_ns, names.map, names.base, pose), stamp_ns)
        if result.covariance is not None:
            self._write("/localization/pose_estimator/pose_with_covariance", msgtypes.POSE, message, stamp_ns)
        twist = np.zeros(6) if result.twist is None else result.twist
        moving = self._new("geometry_msgs/msg/Twist", self._vector(twist[:3]), self._vector(twist[3:]))
        with_covariance = self._new("geometry_msgs/msg/TwistWithCovariance", moving, np.zeros(36))
        self._write("/localization/odometry", msgtypes.ODOMETRY,
                    self._new(msgtypes.ODOMETRY, message.header, names.base, message.pose, with_covariance), stamp_ns)
        if self._projector is not None:
            latitude, longitude, altitude = self._projector.inverse(*map(float, pose[:3]))
            status = self._new("sensor_msgs/msg/NavSatStatus", 0, 1)
            header = self._header(stamp_ns, names.base)
            fix = self._new(msgtypes.FIX, header, status, latitude, longitude, altitude, np.zeros(9), 0)
            self._write("/localization/fix", msgtypes.FIX, fix, stamp_ns)

    def scan(self, stamp_ns: int, frame_id: str, cloud: Cloud) -> None:
        self._cloud("/localization/scan", stamp_ns, cloud)

    def _cloud(self, topic: str, stamp_ns: int, cloud: Cloud, latched: bool = False) -> None:
        records = point_records(cloud, self._origin_m)
        fields = [self._new("sensor_msgs/msg/PointField", name, 4 * at, 7, 1) for at, name in enumerate(CLOUD_FIELDS)]
        message = self._new(msgtypes.CLOUD, self._header(stamp_ns, self._cloud_frame), 1, len(records), fields, False,
                            records.itemsize, records.nbytes, np.frombuffer(records.tobytes(), np.uint8), True)
        self._write(topic, msgtypes.CLOUD, message, stamp_ns, latched)

    def close(self) -> None:
        self._writer.close()
        if self._single:
            os.replace(next(self._folder.glob("*.mcap")), self._path)
            shutil.rmtree(self._folder)
