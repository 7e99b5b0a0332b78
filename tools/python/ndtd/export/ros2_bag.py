"""ROS 2 recordings by rosbags: opens in Foxglove, `ros2 bag` and RViz; no ROS needed.

| topic | type | |
|---|---|---|
| /localization/pose_with_covariance | geometry_msgs/PoseWithCovarianceStamped | each result with a pose and a covariance |
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
from ..georeference import Projector
from .clouds import CLOUD_FIELDS, Cloud
from .foxglove_mcap import result_values
from .frames import Sensors
from .result_lines import ResultError, ResultLine

NS = 1_000_000_000
NEAR_FRAME = "map_near"
UNKNOWN_COVARIANCE = np.zeros(36)


class RosWriter:
    """Writes a folder of ROS 2 (storage mcap or sqlite3), or with single one .mcap file. origin_m: clouds are float32
    relative to it, in the frame map_near where it is not zero."""

    def __init__(self, path: Any, names: Any, origin_m: np.ndarray, projector: Optional[Projector], storage: str, single: bool):
        rosbag2 = need("rosbags.rosbag2", "ros")
        typesys = need("rosbags.typesys", "ros")
        self._ri = need("rosbags.interfaces", "ros")
        self._store = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)
        self._path, self._single, self._names, self._projector = Path(path), single, names, projector
        self._origin_m = origin_m
        self._connections: "dict[str, Any]" = {}
        self._cloud_frame = NEAR_FRAME if origin_m.any() else names.map
        self._folder = self._path.with_name(self._path.name + ".d") if single else self._path
        plugin = rosbag2.StoragePlugin.SQLITE3 if storage == "sqlite3" else rosbag2.StoragePlugin.MCAP
        # Version 8 is that of Iron; Humble reads it, 9 it does not.
        self._writer = rosbag2.Writer(self._folder, version=8, storage_plugin=plugin)
        self._writer.open()

    # ---- messages

    def _new(self, kind: str, *values: Any) -> Any:
        return self._store.types[kind](*values)

    def _time(self, stamp_ns: int) -> Any:
        if not -(2**31) * NS <= stamp_ns < 2**31 * NS:
            raise ResultError(f"stamp {stamp_ns} ns: ROS has times until 2038")
        return self._new("builtin_interfaces/msg/Time", stamp_ns // NS, stamp_ns % NS)

    def _header(self, stamp_ns: int, frame_id: str) -> Any:
        return self._new("std_msgs/msg/Header", self._time(stamp_ns), frame_id)

    def _vector(self, values: Any, kind: str = "Vector3") -> Any:
        return self._new(f"geometry_msgs/msg/{kind}", float(values[0]), float(values[1]), float(values[2]))

    def _pose(self, pose: np.ndarray) -> Any:
        return self._new("geometry_msgs/msg/Pose", self._vector(pose, "Point"), self._quaternion(pose))

    def _quaternion(self, pose: np.ndarray) -> Any:
        return self._new("geometry_msgs/msg/Quaternion", *(float(value) for value in pose[3:]))

    def _transform(self, stamp_ns: int, parent: str, child: str, pose: np.ndarray) -> Any:
        transform = self._new("geometry_msgs/msg/Transform", self._vector(pose), self._quaternion(pose))
        return self._new("geometry_msgs/msg/TransformStamped", self._header(stamp_ns, parent), child, transform)

    def _write(self, topic: str, kind: str, message: Any, stamp_ns: int, latched: bool = False) -> None:
        if stamp_ns < 0:
            raise ResultError(f"stamp {stamp_ns} ns: recordings of ROS 2 begin at 0")
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

    def begin(self, stamp_ns: int, path: np.ndarray, sensors: Sensors) -> None:
        """path: (N, 7) poses of the trajectory, thinned."""
        static = [self._transform(stamp_ns, self._names.base, name, pose) for name, pose in sensors.by_frame.items()]
        if self._origin_m.any():
            near = np.concatenate([self._origin_m, [0.0, 0.0, 0.0, 1.0]])
            static.append(self._transform(stamp_ns, self._names.map, NEAR_FRAME, near))
        if static:
            self._write("/tf_static", "tf2_msgs/msg/TFMessage", self._new("tf2_msgs/msg/TFMessage", static), stamp_ns, latched=True)
        header = self._header(stamp_ns, self._names.map)
        poses = [self._new("geometry_msgs/msg/PoseStamped", header, self._pose(pose)) for pose in path]
        self._write("/localization/path", "nav_msgs/msg/Path", self._new("nav_msgs/msg/Path", header, poses), stamp_ns, latched=True)

    def map(self, stamp_ns: int, cloud: Cloud) -> None:
        self._cloud("/map", stamp_ns, cloud, latched=True)

    # ---- each scan

    def add(self, result: ResultLine) -> None:
        """A result, with its pose where it is to be shown."""
        if result.pose is not None:
            self._add_pose(result, result.pose)
        self._diagnose(result)

    def _add_pose(self, result: ResultLine, pose: np.ndarray) -> None:
        stamp_ns, names = result.stamp_ns, self._names
        header, where = self._header(stamp_ns, names.map), self._pose(pose)
        covariance = UNKNOWN_COVARIANCE if result.covariance is None else result.covariance.reshape(36)
        with_covariance = self._new("geometry_msgs/msg/PoseWithCovariance", where, covariance)
        transforms = [self._transform(stamp_ns, names.map, names.base, pose)]
        self._write("/tf", "tf2_msgs/msg/TFMessage", self._new("tf2_msgs/msg/TFMessage", transforms), stamp_ns)
        if result.covariance is not None:
            kind = "geometry_msgs/msg/PoseWithCovarianceStamped"
            self._write("/localization/pose_with_covariance", kind, self._new(kind, header, with_covariance), stamp_ns)
        twist = np.zeros(6) if result.twist is None else result.twist
        moving = self._new("geometry_msgs/msg/Twist", self._vector(twist), self._vector(twist[3:]))
        twist_message = self._new("geometry_msgs/msg/TwistWithCovariance", moving, UNKNOWN_COVARIANCE)
        self._write("/localization/odometry", "nav_msgs/msg/Odometry",
                    self._new("nav_msgs/msg/Odometry", header, names.base, with_covariance, twist_message), stamp_ns)
        if self._projector is not None:
            latitude, longitude, altitude = self._projector.inverse(*map(float, pose[:3]))
            status = self._new("sensor_msgs/msg/NavSatStatus", 0, 1)
            self._write("/localization/fix", "sensor_msgs/msg/NavSatFix", self._new(
                "sensor_msgs/msg/NavSatFix", self._header(stamp_ns, names.base), status, latitude, longitude, altitude, np.zeros(9), 0),
                stamp_ns)

    def _diagnose(self, result: ResultLine) -> None:
        is_fine = result.is_trusted and result.outcome == "converged"
        level = 0 if is_fine else 1 if result.is_trusted or result.state == "initialising" else 2
        values = [self._new("diagnostic_msgs/msg/KeyValue", name, f"{value}") for name, value in result_values(result).items()]
        text = result.reason or result.outcome
        status = self._new("diagnostic_msgs/msg/DiagnosticStatus", level, "ndtd: localization", text, "ndtd", values)
        self._write("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray", self._new(
            "diagnostic_msgs/msg/DiagnosticArray", self._header(result.stamp_ns, ""), [status]), result.stamp_ns)

    def scan(self, stamp_ns: int, frame_id: str, cloud: Cloud) -> None:
        self._cloud("/localization/scan", stamp_ns, cloud)

    def _cloud(self, topic: str, stamp_ns: int, cloud: Cloud, latched: bool = False) -> None:
        records = cloud.records(self._origin_m)
        fields = [self._new("sensor_msgs/msg/PointField", name, 4 * at, 7, 1) for at, name in enumerate(CLOUD_FIELDS)]
        message = self._new("sensor_msgs/msg/PointCloud2", self._header(stamp_ns, self._cloud_frame), 1, len(records), fields, False,
                            records.itemsize, records.nbytes, np.frombuffer(records.tobytes(), np.uint8), True)
        self._write(topic, "sensor_msgs/msg/PointCloud2", message, stamp_ns, latched)

    def close(self) -> None:
        self._writer.close()
        if self._single:
            os.replace(next(self._folder.glob("*.mcap")), self._path)
            shutil.rmtree(self._folder)
