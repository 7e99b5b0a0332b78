"""Recordings of Rerun (.rrd), by rerun-sdk: opens in Rerun's viewer as it is. Time line `stamp`: that of the scans.

| entity | archetype | |
|---|---|---|
| map/cloud, map/path | Points3D, LineStrips3D | the map, with --map; the whole trajectory; both static |
| map/base_link, map/base_link/SENSOR | Transform3D | each result with a pose; where the sensors are |
| map/covariance | Ellipsoids3D | the position, three standard deviations |
| map/scan | Points3D | the scan in the map, with --bag |
| position_m | Scalars | x y z in the map, float64 |
| fix | GeoPoints | where the map is georeferenced |
| log | TextLog | results without a trusted pose, and changes of the state |
| result/NAME | Scalars | confidence, scores, deviations, times: for plots |
| state, outcome | StateChange | where they change |
"""
from typing import Any, Optional

import numpy as np

from .._extras import need
from ..cloud import Cloud
from ..georeference import Projector
from ..poses import quaternion
from .result_lines import ResultLine
from .result_values import News, result_values

TIME_LINE = "stamp"
DEVIATIONS_SHOWN = 3.0
SCAN_RGB, PATH_RGB = (255, 140, 0), (0, 200, 255)
GOOD_RGB, FAIR_RGB, BAD_RGB = (60, 160, 80), (210, 160, 40), (190, 60, 60)
STATE_RGB = {"tracking": GOOD_RGB, "converged": GOOD_RGB, "merged": GOOD_RGB, "coasting": FAIR_RGB, "extending": FAIR_RGB,
             "initialising": FAIR_RGB, "iteration_limit": FAIR_RGB, "deadline": FAIR_RGB, "dropped": FAIR_RGB, "lost": BAD_RGB,
             "recovering": BAD_RGB, "rejected": BAD_RGB, "low_score": BAD_RGB, "degenerate": BAD_RGB, "off_map": BAD_RGB}
LEVELS = {"info": "INFO", "warning": "WARN", "error": "ERROR"}


class RerunWriter:
    """Writes one .rrd. Shapes are float32, relative to origin_m."""

    results_at_once = 1000  # whose numbers are written together: one by one takes twice as long

    def __init__(self, path: Any, names: Any, origin_m: np.ndarray, projector: Optional[Projector]):
        self._rr = need("rerun", "rerun")
        self._names, self._origin_m, self._projector = names, origin_m, projector
        self._news, self._labels = News(), {"state": "", "outcome": ""}
        self._numbers: "dict[str, tuple[list[int], list[float]]]" = {}  # stamps and values that wait
        self._waiting = 0
        self._stream = self._rr.RecordingStream("ndtd")
        self._stream.set_log_time_enabled(False)
        self._open_sink(path)
        self._log([names.map, names.base], self._rr.TransformAxes3D(2.0), None)
        for label in self._labels:
            self._log([label], self._rr.StateConfiguration(values=list(STATE_RGB), colors=list(STATE_RGB.values())), None)
        if origin_m.any():
            self._log([names.map], self._rr.AnyValues(origin_m=origin_m), None)

    def _open_sink(self, path: Any) -> None:
        """What takes the data of the stream."""
        self._stream.save(path)
        self._stream.send_blueprint(self._blueprint(), make_active=False)  # save() with it waits for ever where the disk is full
        self._stream.send_recording_name(path.stem)

    def _blueprint(self) -> Any:
        """How the viewer lays it out until the user does."""
        b = need("rerun.blueprint", "rerun")
        scores = [f"/result/{name}" for name in ("confidence", "nvtl_normalized", "match_ratio", "coverage")]
        plots = [b.TimeSeriesView(name="Scores", contents=scores, origin="/result"),
                 b.TimeSeriesView(name="Standard deviation [m]", contents=["/result/deviation_m"], origin="/result"),
                 b.TimeSeriesView(name="Alignment [us]", contents=["/result/align_us"], origin="/result"),
                 b.StateTimelineView(name="States", contents=["/state", "/outcome"], origin="/"),
                 b.TextLogView(name="Log", origin="/log")]
        if self._projector is not None:
            plots.insert(0, b.MapView(name="Earth", origin="/fix"))
        view = b.Spatial3DView(name="Map", origin=f"/{self._rr.escape_entity_path_part(self._names.map)}")
        return b.Blueprint(b.Horizontal(view, b.Vertical(*plots), column_shares=[2, 1]), b.TimePanel(timeline=TIME_LINE),
                           b.SelectionPanel(state="collapsed"))

    def _log(self, path: "list[object]", what: Any, stamp_ns: Optional[int], *more: Any) -> None:
        """stamp_ns None: static, at all times."""
        if stamp_ns is not None:
            self._stream.set_time(TIME_LINE, timestamp=np.datetime64(stamp_ns, "ns"))
        self._stream.log(path, what, *more, static=stamp_ns is None, strict=True)

    def _transform(self, pose: np.ndarray, origin_m: Any = 0.0) -> Any:
        return self._rr.Transform3D(translation=pose[:3] - origin_m, quaternion=pose[3:])

    # ---- the start

    def begin(self, stamp_ns: int, path: np.ndarray, mounts: "dict[str, np.ndarray]") -> None:
        """path: (N, 7) poses of the trajectory, thinned."""
        self.mounts(stamp_ns, mounts)
        self._log([self._names.map, "path"], self._rr.LineStrips3D([path[:, :3] - self._origin_m], colors=PATH_RGB), None)

    def mounts(self, stamp_ns: int, mounts: "dict[str, np.ndarray]") -> None:
        """T_base_sensor by frame; again where one has changed."""
        for name, pose in mounts.items():
            self._log([self._names.map, self._names.base, name], self._transform(pose), stamp_ns, self._rr.TransformAxes3D(0.5))

    def map(self, stamp_ns: int, cloud: Cloud) -> None:
        self._cloud([self._names.map, "cloud"], None, cloud, self._origin_m, _grey_by_height(cloud.points[:, 2]), 1.0)

    # ---- each scan

    def add(self, result: ResultLine) -> None:
        """A result, with its pose where it is to be shown."""
        stamp_ns = result.stamp_ns
        if result.pose is not None:
            self._add_pose(stamp_ns, result.pose, result.covariance)
        for name, value in result_values(result).items():
            if name in self._labels:
                self._label(name, str(value), stamp_ns)
            elif not isinstance(value, (str, bool)):
                stamps, values = self._numbers.setdefault(name, ([], []))
                stamps.append(stamp_ns)
                values.append(float(value))
        told = self._news.of(result)
        if told is not None:
            self._log(["log"], self._rr.TextLog(told[1], level=LEVELS[told[0]]), stamp_ns)
        self._waiting += 1
        if self._waiting >= self.results_at_once:
            self._send_numbers()

    def _send_numbers(self) -> None:
        for name, (stamps, values) in self._numbers.items():
            times = self._rr.TimeColumn(TIME_LINE, timestamp=np.array(stamps, "datetime64[ns]"))
            self._stream.send_columns(f"result/{name}", indexes=[times], columns=self._rr.Scalars.columns(scalars=values))
        self._numbers, self._waiting = {}, 0

    def _add_pose(self, stamp_ns: int, pose: np.ndarray, covariance: Optional[np.ndarray]) -> None:
        self._log([self._names.map, self._names.base], self._transform(pose, self._origin_m), stamp_ns)
        self._log(["position_m"], self._rr.Scalars(pose[:3]), stamp_ns)
        if covariance is not None:
            variances, axes = np.linalg.eigh(covariance[:3, :3])
            axes[:, 2] *= np.sign(np.linalg.det(axes))
            half = DEVIATIONS_SHOWN * np.sqrt(np.clip(variances, 0.0, None))
            self._log([self._names.map, "covariance"], self._rr.Ellipsoids3D(half_sizes=[half], centers=[pose[:3] - self._origin_m],
                                                                             quaternions=[quaternion(axes)]), stamp_ns)
        if self._projector is not None:
            latitude, longitude, _ = self._projector.inverse(*map(float, pose[:3]))
            self._log(["fix"], self._rr.GeoPoints(lat_lon=[[latitude, longitude]]), stamp_ns)

    def _label(self, name: str, value: str, stamp_ns: int) -> None:
        if value != self._labels[name]:
            self._labels[name] = value
            self._log([name], self._rr.StateChange(state=value), stamp_ns)

    def scan(self, stamp_ns: int, frame_id: str, cloud: Cloud) -> None:
        self._cloud([self._names.map, "scan"], stamp_ns, cloud, self._origin_m, SCAN_RGB, 2.0)

    def close(self) -> None:
        self._send_numbers()
        self._stream.flush()
        self._stream.disconnect()

    def _cloud(self, path: "list[object]", stamp_ns: Optional[int], cloud: Cloud, origin_m: Any, colors: Any,
               size_px: float) -> None:
        more = [] if cloud.intensity is None else [self._rr.AnyValues(intensity=cloud.intensity)]
        points = self._rr.Points3D(cloud.points - origin_m, colors=colors, radii=self._rr.Radius.ui_points(size_px))
        self._log(path, points, stamp_ns, *more)


def _grey_by_height(z_m: np.ndarray) -> np.ndarray:
    """(N, 3) uint8, so that a map of one colour has a shape."""
    if not len(z_m):
        return np.empty((0, 3), np.uint8)
    low, high = np.percentile(z_m, (2, 98))
    grey = 70 + 150 * np.clip((z_m - low) / max(high - low, 1e-6), 0.0, 1.0)
    return np.repeat(grey.astype(np.uint8)[:, None], 3, axis=1)
