"""Trajectories as text: TUM, KITTI, EuRoC, GeoJSON. One line per pose, written as it comes."""
import datetime
import json
from typing import Any

from ..georeference import Projector
from ..poses import rotation
from .pose_lines import PoseLines
from .result_lines import ResultLine

NS = 1_000_000_000


def _seconds(stamp_ns: int) -> str:
    whole, part = divmod(abs(stamp_ns), NS)
    return f"{'-' if stamp_ns < 0 else ''}{whole}.{part:09d}"


def _digits(values: Any) -> str:
    """All digits: reading restores the numbers bit by bit."""
    return " ".join(f"{value:.17g}" for value in values)


class TextWriter:
    """Base: `head`, then a line for each pose."""

    head = ""

    def __init__(self, path: Any):
        self._stream = open(path, "w", encoding="ascii", newline="\n")
        self._stream.write(self.head)

    def add(self, result: ResultLine) -> None:
        """Writes one pose; results without one are left out."""
        if result.pose is not None:
            self._stream.write(self.line(result) + "\n")

    def line(self, result: ResultLine) -> str:
        raise NotImplementedError

    def close(self) -> None:
        self._stream.close()


class Tum(TextWriter):
    """stamp_s x y z qx qy qz qw, as ndtd --out."""

    def line(self, result: ResultLine) -> str:
        return f"{_seconds(result.stamp_ns)} {_digits(result.pose)}"


class Kitti(TextWriter):
    """The 12 numbers of a 3x4 matrix by rows. No stamps: line i is pose i of those that were written."""

    def line(self, result: ResultLine) -> str:
        assert result.pose is not None
        R = rotation(result.pose)
        return _digits(value for row in range(3) for value in (*R[row], result.pose[row]))


class Euroc(TextWriter):
    """CSV of the EuRoC MAV data set: stamp in integer nanoseconds, position, quaternion w x y z."""

    head = "#timestamp [ns],p_RS_R_x [m],p_RS_R_y [m],p_RS_R_z [m],q_RS_w [],q_RS_x [],q_RS_y [],q_RS_z []\n"

    def line(self, result: ResultLine) -> str:
        assert result.pose is not None
        x, y, z, qx, qy, qz, qw = result.pose
        return f"{result.stamp_ns}," + ",".join(f"{value:.17g}" for value in (x, y, z, qw, qx, qy, qz))


class GeoJson:
    """RFC 7946: a FeatureCollection of lines, broken where poses are missing; longitude, latitude, altitude."""

    def __init__(self, path: Any, projector: Projector):
        self._stream = open(path, "w", encoding="ascii", newline="\n")
        self._projector, self._lines, self._separator = projector, PoseLines(), ""
        self._stream.write('{"type": "FeatureCollection", "features": [')

    def add(self, result: ResultLine) -> None:
        """A result without a pose ends a line."""
        for line in self._lines.add(result):
            self._write(line)

    def _write(self, line: "list[tuple[int, Any]]") -> None:
        stamps, places = [one[0] for one in line], []
        for _, (x, y, z) in line:
            latitude, longitude, altitude = self._projector.inverse(float(x), float(y), float(z))
            places.append([round(longitude, 9), round(latitude, 9), round(altitude, 3)])
        shape = {"type": "Point", "coordinates": places[0]} if len(places) == 1 else {"type": "LineString", "coordinates": places}
        times = [_iso(stamp) for stamp in stamps]
        feature = {"type": "Feature", "geometry": shape,
                   "properties": {"poses": len(line), "begin_s": _seconds(stamps[0]), "end_s": _seconds(stamps[-1]),
                                  "coordTimes": times[0] if len(times) == 1 else times}}
        self._stream.write(self._separator + "\n" + json.dumps(feature))
        self._separator = ","

    def close(self) -> None:
        for line in self._lines.end():
            self._write(line)
        self._stream.write("\n]}\n")
        self._stream.close()


def _iso(stamp_ns: int) -> str:
    whole = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=stamp_ns // NS)
    return f"{whole.isoformat()}.{stamp_ns % NS:09d}Z"
