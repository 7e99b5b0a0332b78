"""MCAP with Foxglove's schemas (protobuf), by foxglove-sdk: opens in Foxglove as it is.

| topic | schema | |
|---|---|---|
| /pose | PoseInFrame | each result with a pose |
| /tf | FrameTransforms | map to base; at the start base to the sensors that have a name |
| /path | PosesInFrame | the whole trajectory, once at the start |
| /scan | PointCloud | the scan in the map, with --bag |
| /map | PointCloud | once at the start, with --map |
| /fix | LocationFix | where the map is georeferenced |
| /log | Log | results without a trusted pose, and changes of the state |
| /result | JSON | outcome, state, confidence, scores, times: for plots |
"""
from typing import Any, Optional

import numpy as np

from .._extras import need
from ..cloud import Cloud
from ..georeference import Projector
from .clouds import CLOUD_FIELDS, point_records
from .result_lines import ResultError, ResultLine
from .result_values import RESULT_NUMBERS, News, result_values

NS = 1_000_000_000
RESULT_SCHEMA: "dict[str, Any]" = {"type": "object", "title": "ndtd.Result", "properties": {
    "seq": {"type": "integer"}, "outcome": {"type": "string"}, "state": {"type": "string"}, "reason": {"type": "string"},
    "is_trusted": {"type": "boolean"}, "deviation_m": {"type": "number"}, "deviation_rad": {"type": "number"},
    "speed_mps": {"type": "number"}, **{name: {"type": "number"} for name in RESULT_NUMBERS}}}


class FoxgloveWriter:
    """Writes one MCAP file. origin_m: clouds are float32 relative to it."""

    def __init__(self, path: Any, names: Any, origin_m: np.ndarray, projector: Optional[Projector]):
        foxglove = need("foxglove", "foxglove")
        try:
            self._m = need("foxglove.messages", "foxglove")
        except ImportError:  # its name until 2025
            self._m = need("foxglove.schemas", "foxglove")
        self._context = foxglove.Context()
        self._channels, self._foxglove = need("foxglove.channels", "foxglove"), foxglove
        self._open: "dict[str, Any]" = {}
        self._names, self._origin_m, self._projector, self._news = names, origin_m, projector, News()
        self._sink = self._open_sink(path)

    def _open_sink(self, path: Any) -> Any:
        """What takes the messages of the context."""
        return self._foxglove.open_mcap(str(path), allow_overwrite=True, context=self._context)

    def _log(self, topic: str, message: Any, stamp_ns: int) -> None:
        self._channel(topic, type(message).__name__).log(message, log_time=stamp_ns)

    def _channel(self, topic: str, schema: str) -> Any:
        if topic not in self._open:
            if schema == RESULT_SCHEMA["title"]:
                self._open[topic] = self._foxglove.Channel(topic, schema=RESULT_SCHEMA, context=self._context)
            else:
                self._open[topic] = getattr(self._channels, schema + "Channel")(topic, context=self._context)
        return self._open[topic]

    def _time(self, stamp_ns: int) -> Any:
        if not 0 <= stamp_ns < 2**32 * NS:
            raise ResultError(f"stamp {stamp_ns} ns: Foxglove has times from 1970 to 2106")
        return self._m.Timestamp(stamp_ns // NS, stamp_ns % NS)

    def _vector(self, values: Any) -> Any:
        return self._m.Vector3(x=float(values[0]), y=float(values[1]), z=float(values[2]))

    def _quaternion(self, pose: np.ndarray) -> Any:
        return self._m.Quaternion(x=float(pose[3]), y=float(pose[4]), z=float(pose[5]), w=float(pose[6]))

    def _pose(self, pose: np.ndarray) -> Any:
        return self._m.Pose(position=self._vector(pose), orientation=self._quaternion(pose))

    def _transform(self, stamp_ns: int, parent: str, child: str, pose: np.ndarray) -> Any:
        return self._m.FrameTransform(timestamp=self._time(stamp_ns), parent_frame_id=parent, child_frame_id=child,
                                      translation=self._vector(pose), rotation=self._quaternion(pose))

    # ---- the start

    def begin(self, stamp_ns: int, path: np.ndarray, mounts: "dict[str, np.ndarray]") -> None:
        """path: (N, 7) poses of the trajectory, thinned."""
        self.mounts(stamp_ns, mounts)
        poses = [self._pose(pose) for pose in path]
        self._log("/path", self._m.PosesInFrame(timestamp=self._time(stamp_ns), frame_id=self._names.map, poses=poses), stamp_ns)

    def mounts(self, stamp_ns: int, mounts: "dict[str, np.ndarray]") -> None:
        """T_base_sensor by frame; again where one has changed."""
        static = [self._transform(stamp_ns, self._names.base, name, pose) for name, pose in mounts.items()]
        if static:
            self._log("/tf", self._m.FrameTransforms(transforms=static), stamp_ns)

    def map(self, stamp_ns: int, cloud: Cloud) -> None:
        self._cloud("/map", stamp_ns, cloud)

    # ---- each scan

    def add(self, result: ResultLine) -> None:
        """A result, with its pose where it is to be shown."""
        stamp_ns = result.stamp_ns
        if result.pose is not None:
            child = self._names.base
            self._log("/tf", self._m.FrameTransforms(transforms=[self._transform(stamp_ns, self._names.map, child, result.pose)]), stamp_ns)
            self._log("/pose", self._m.PoseInFrame(timestamp=self._time(stamp_ns), frame_id=self._names.map,
                                                   pose=self._pose(result.pose)), stamp_ns)
            self._fix(result)
        self._channel("/result", RESULT_SCHEMA["title"]).log(result_values(result), log_time=stamp_ns)
        self._tell(result)

    def scan(self, stamp_ns: int, frame_id: str, cloud: Cloud) -> None:
        self._cloud("/scan", stamp_ns, cloud)

    def close(self) -> None:
        self._sink.close()

    def _tell(self, result: ResultLine) -> None:
        told = self._news.of(result)
        if told is not None:
            level = getattr(self._m.LogLevel, told[0].capitalize())
            self._log("/log", self._m.Log(timestamp=self._time(result.stamp_ns), level=level, message=told[1], name="ndtd"), result.stamp_ns)

    def _fix(self, result: ResultLine) -> None:
        if self._projector is None or result.pose is None:
            return
        latitude, longitude, altitude = self._projector.inverse(*map(float, result.pose[:3]))
        self._log("/fix", self._m.LocationFix(timestamp=self._time(result.stamp_ns), frame_id=self._names.base, latitude=latitude,
                                              longitude=longitude, altitude=altitude), result.stamp_ns)

    def _cloud(self, topic: str, stamp_ns: int, cloud: Cloud, frame_id: "Optional[str]" = None) -> None:
        origin_m = self._origin_m if frame_id is None else np.zeros(3)
        records = point_records(cloud, origin_m)
        kind = self._m.PackedElementFieldNumericType.Float32
        fields = [self._m.PackedElementField(name=name, offset=4 * at, type=kind) for at, name in enumerate(CLOUD_FIELDS)]
        origin = np.concatenate([origin_m, [0.0, 0.0, 0.0, 1.0]])
        self._log(topic, self._m.PointCloud(timestamp=self._time(stamp_ns), frame_id=frame_id or self._names.map, pose=self._pose(origin),
                                            point_stride=records.itemsize, fields=fields, data=records.tobytes()), stamp_ns)
