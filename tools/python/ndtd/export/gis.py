"""GeoPackage and KML, by pyogrio (GDAL): what QGIS, ArcGIS and Google Earth open. WGS84, altitudes above the ellipsoid.

| layer | geometry | |
|---|---|---|
| poses | Point Z | each pose with its time and how good it is; GeoPackage alone |
| trajectory | LineString Z | broken where poses are missing, with the times of its ends |
"""
import os
from pathlib import Path

import numpy as np

from .._extras import need
from ..georeference import Projector
from ..poses import matrix
from .pose_lines import PoseLines
from .result_lines import ResultLine
from .result_values import result_values

CHUNK_POSES = 5000
NUMBERS = ("seq", "confidence", "deviation_m", "speed_mps")  # of result_values
LABELS = ("state", "outcome")
POINT_Z, LINE_Z = 0x80000001, 0x80000002  # of WKB with a bit for z, which pyogrio has always taken
UTC = 100  # of GDAL: quarters of an hour, and 100
POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("at", "<f8", 3)])


class GisWriter:
    """Writes one file; kind: geopackage or kml."""

    def __init__(self, path: Path, projector: Projector, kind: str):
        self._write = need("pyogrio.raw", "gis").write
        self._path, self._projector, self._lines = path, projector, PoseLines()
        self._is_kml = kind == "kml"
        self._made = path.with_suffix(".kml" if self._is_kml else ".gpkg")  # GDAL takes other names for folders
        self._poses: "list[ResultLine]" = []
        self._shapes: "list[bytes]" = []  # the lines of the trajectory: written at the end, because KML is written at once
        self._ends: "list[tuple[int, int, int]]" = []  # stamps of the ends, poses

    def add(self, result: ResultLine) -> None:
        """A result without a pose ends a line."""
        for line in self._lines.add(result):
            self._add_line(line)
        if result.pose is not None and not self._is_kml:
            self._poses.append(result)
        if len(self._poses) >= CHUNK_POSES:
            self._send_poses()

    def close(self) -> None:
        self._send_poses()
        for line in self._lines.end():
            self._add_line(line)
        if self._shapes:
            begin, end, poses = np.array(self._ends, np.int64).T
            columns = {"begin": _times(begin), "end": _times(end), "poses": poses}
            if self._is_kml:
                rows = zip(*(np.datetime_as_string(_times(stamps)) for stamps in (begin, end)), poses)
                names, texts = zip(*((f"{first}Z", f"to {last}Z, {count} poses") for first, last, count in rows))
                columns = {"Name": np.array(names, object), "Description": np.array(texts, object)}
            self._append("trajectory", "LineString Z", self._shapes, columns)
        if self._made.exists():
            os.replace(self._made, self._path)

    def _places(self, points: np.ndarray) -> np.ndarray:
        """(N, 3) longitude, latitude, altitude of points in the map."""
        latitude, longitude, altitude = self._projector.inverse(*points.T)
        return np.column_stack([longitude, latitude, altitude])

    def _send_poses(self) -> None:
        if not self._poses:
            return
        results, self._poses = self._poses, []
        places = self._places(np.array([one.pose[:3] for one in results if one.pose is not None]))
        x_axes = np.array([matrix(one.pose)[:2, 0] for one in results])
        yaw = np.arctan2(x_axes[:, 1], x_axes[:, 0])
        heading = np.pi / 2 - yaw + self._projector.convergence(places[:, 1], places[:, 0])
        values = [result_values(one) for one in results]
        stamps = np.array([one.stamp_ns for one in results], np.int64)
        columns = {"time": _times(stamps), "stamp_ns": stamps, "heading_deg": np.degrees(heading) % 360.0,
                   **{name: np.array([one.get(name, np.nan) for one in values], np.float64) for name in NUMBERS},
                   **{name: np.array([str(one[name]) for one in values], object) for name in LABELS}}
        self._append("poses", "Point Z", [_point(place) for place in places], columns)

    def _add_line(self, line: "list[tuple[int, np.ndarray]]") -> None:
        places = self._places(np.array([place for _, place in line]))
        if len(places) == 1:  # a line has two points
            places = np.repeat(places, 2, axis=0)
        head = np.array([(1, LINE_Z, len(places))], [("order", "u1"), ("kind", "<u4"), ("count", "<u4")])
        self._shapes.append(head.tobytes() + places.astype("<f8").tobytes())
        self._ends.append((line[0][0], line[-1][0], len(line)))

    def _append(self, layer: str, kind: str, shapes: "list[bytes]", columns: "dict[str, np.ndarray]") -> None:
        zones = {name: np.full(len(values), UTC) for name, values in columns.items() if values.dtype.kind == "M"}
        self._write(str(self._made), np.array(shapes, object), list(columns.values()), list(columns), layer=layer, geometry_type=kind,
                    crs="EPSG:4326", driver="KML" if self._is_kml else "GPKG", append=self._made.exists(), gdal_tz_offsets=zones)


def _times(stamps_ns: np.ndarray) -> np.ndarray:
    """What GDAL has of a time: milliseconds."""
    return (stamps_ns // 1_000_000).astype("datetime64[ms]")


def _point(place: np.ndarray) -> bytes:
    return np.array([(1, POINT_Z, place)], POINT).tobytes()
