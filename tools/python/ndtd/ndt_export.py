"""ndt-export: results of ndtd in the formats of evo, Foxglove, Rerun, ROS 2 and maps."""
import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Optional

import numpy as np

from . import _child
from ._arguments import CommandError, Parser, UsageError, add_version, finish, join_negative
from ._progress import Progress
from .export import text_formats
from .export.clouds import Scans, Thinned, read_map
from .export.foxglove_mcap import FoxgloveWriter
from .export.gis import GisWriter
from .export.sensor_poses import FrameError, Sensors, move_covariance, move_twist, parse_transform
from .export.rerun_rrd import RerunWriter
from .export.result_lines import ResultError, ResultLine, read_results
from .export.ros2_bag import RosWriter
from .georeference import Projector
from .poses import compose

FORMATS = ("tum", "kitti", "euroc", "geojson", "geopackage", "kml", "foxglove", "rerun", "ros2")
RECORDINGS = ("foxglove", "rerun", "ros2")  # with clouds and numbers
ON_EARTH = ("geojson", "geopackage", "kml")
BY_SUFFIX = {".tum": "tum", ".txt": "tum", ".kitti": "kitti", ".csv": "euroc", ".geojson": "geojson", ".json": "geojson",
             ".gpkg": "geopackage", ".kml": "kml", ".mcap": "foxglove", ".rrd": "rerun", "": "ros2"}
FLOAT_IS_ENOUGH_M = 8192.0  # below, float32 is spaced by less than 0.5 mm
PATH_POSES = 10_000


@dataclass
class Names:
    """Frames."""

    map: str
    base: str


def _results_path(text: str) -> str:
    """Of a replay's folder the results in it."""
    return os.path.join(text, "results.jsonl") if os.path.isdir(text) else text


def parser() -> argparse.ArgumentParser:
    """The command line."""
    out = Parser(prog="ndt-export", description=f"Writes {__doc__.split(': ', 1)[1]}", epilog="""
RESULTS: what `ndtd --replay ... --results FILE` or `ndt-echo --format json > FILE` wrote, the folder of `ndtd --output`, or a
TUM file of `ndtd --out`. The format of OUT follows its name: .tum .txt (TUM), .kitti, .csv (EuRoC), .geojson, .gpkg (GeoPackage),
.kml, .rrd (Rerun), .mcap (Foxglove; --to ros2 for messages of ROS 2), and a name without a suffix is a folder of ROS 2. Poses that
ndtd does not trust are left out, as in `ndtd --out`; --all keeps them. What follows -- are options of ndt-import, as for
ndtd --replay, where --bag is no bag. Stamps are those of the scans; T_map_base, or with --of sensor T_map_sensor.""")
    add_version(out)
    out.add_argument("results", metavar="RESULTS", type=_results_path)
    out.add_argument("out", metavar="OUT")
    out.add_argument("--to", choices=FORMATS, help="format; default: by the name of OUT")
    out.add_argument("--force", action="store_true", help="replace OUT")
    out.add_argument("--all", action="store_true", help="write untrusted poses, too")
    out.add_argument("--of", choices=("base", "sensor"), default="base", help="whose poses are written (default: base)")
    out.add_argument("--T-base-sensor", metavar="LIST", dest="T_base_sensor", help="pose of the sensor on the vehicle: "
                     "x,y,z,roll,pitch,yaw (m, rad), x,y,z,qx,qy,qz,qw or 16 numbers; default: frames of -c, else what RESULTS says")
    out.add_argument("-c", "--config", metavar="FILE", help="configuration of ndtd: takes frames.T_base_sensor and frames.sensors")
    out.add_argument("--bag", metavar="BAG", help="what was replayed, a bag or another recording: its scans are written in the map "
                     "(recordings)")
    out.add_argument("--scan-points", type=int, default=20_000, metavar="N", help="at most N points of a scan; 0: all (default: 20000)")
    out.add_argument("--map", metavar="MAP", help="map: cloud or folder of tiles; written once (recordings), and tells the projector")
    out.add_argument("--map-points", type=int, default=500_000, metavar="N", help="at most N points of the map (default: 500000)")
    out.add_argument("--projector", metavar="FILE", help="map_projector_info.yaml; default: beside --map")
    out.add_argument("--map-frame", default="map", metavar="NAME", help="(default: map)")
    out.add_argument("--base-frame", default="base_link", metavar="NAME", help="(default: base_link)")
    out.add_argument("--storage", choices=("mcap", "sqlite3"), default="mcap", help="of a folder of ROS 2 (default: mcap)")
    out.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    return out


# ---- what the command line means


def _format(args: argparse.Namespace) -> str:
    suffix = Path(args.out).suffix.lower()
    found = args.to or BY_SUFFIX.get(suffix)
    if found is None:
        raise UsageError(f"{args.out}: the name does not tell the format; use --to {{{','.join(FORMATS)}}}")
    if found not in RECORDINGS:
        for name in ("bag",) + (() if found in ON_EARTH else ("map",)):
            if getattr(args, name):
                raise UsageError(f"--{name}: {found} has no clouds; {', '.join(RECORDINGS)} have")
    if args.map_points < 1 or args.scan_points < 0:
        raise UsageError("--map-points and --scan-points: numbers of points, at least 1 and 0")
    return found


def _sensors(args: argparse.Namespace) -> Sensors:
    sensors = Sensors.from_config(args.config) if args.config else Sensors()
    if args.T_base_sensor:
        try:
            sensors.given = parse_transform(args.T_base_sensor.replace(",", " ").split())
        except FrameError as error:
            raise UsageError(f"--T-base-sensor: {error}") from None
    return sensors


def _projector(args: argparse.Namespace, kind: str) -> Optional[Projector]:
    projector = Projector.from_file(args.projector) if args.projector else Projector.find(args.map) if args.map else None
    if kind in ON_EARTH and projector is None:
        raise UsageError(f"{kind}: where is the map on the earth? --projector map_projector_info.yaml, or --map with one beside it")
    return projector


def _prepare_out(out: Path, kind: str, args: argparse.Namespace) -> None:
    if not out.exists():
        return
    if any(out.resolve() == Path(one).resolve() for one in (args.results, args.bag, args.map) if one):
        raise UsageError(f"{out}: is an input")
    if not args.force:
        raise UsageError(f"{out}: exists; --force replaces it")
    if out.is_dir() and not (kind == "ros2" and (out / "metadata.yaml").is_file()):
        raise UsageError(f"{out}: is a folder that is no recording of ROS 2: it is not replaced")


# ---- the work


class Export:
    """One run: reads the results twice, once for the whole trajectory where the format has it at its start."""

    def __init__(self, args: argparse.Namespace):
        self.args, self.kind = args, _format(args)
        self.sensors, self.projector = _sensors(args), _projector(args, self.kind)
        self.out = Path(args.out)
        _prepare_out(self.out, self.kind, args)
        self._folder = _child.part_of(self.out)
        self.part = self._folder / self.out.name  # its name is in what a recording says about itself
        self.poses = self.left = self.results = self.clouds = 0
        self.mounts: "dict[str, np.ndarray]" = {}  # T_base_sensor by frame, as the recording has it so far

    def _shown(self) -> "Iterator[tuple[ResultLine, ResultLine]]":
        """Each result as it is written and as it is of the base; without the pose where that is not to be written."""
        for result in read_results(self.args.results):
            if result.pose is not None and not (result.is_trusted or self.args.all):
                result = replace(result, pose=None)
            yield self._moved(result), result

    def _moved(self, result: ResultLine) -> ResultLine:
        """The pose as --of wants it."""
        if self.args.of == "base" or result.pose is None:
            return result
        offset = self.sensors.find(result)
        if offset is None:
            raise UsageError(f"--of sensor: where is it? {self.args.results} does not say it; --T-base-sensor x,y,z,roll,pitch,yaw, "
                             "or -c with frames.T_base_sensor")
        covariance, twist = result.covariance, result.twist
        return replace(result, pose=compose(result.pose, offset),
                       covariance=None if covariance is None else move_covariance(covariance, result.pose, offset),
                       twist=None if twist is None else move_twist(twist, offset))

    def _mount(self, mounts: "dict[str, np.ndarray]", result: ResultLine) -> bool:
        """Enters the mounting of the sensor of a result; True: `mounts` has changed."""
        pose = self.sensors.find(result)
        if self.args.of == "sensor" or pose is None or not result.sensor or result.sensor == self.args.base_frame:
            return False
        if result.sensor in mounts and np.array_equal(mounts[result.sensor], pose):
            return False
        mounts[result.sensor] = pose
        return True

    def _trajectory(self) -> "tuple[int, np.ndarray, np.ndarray]":
        """Stamp of the first result, the poses thinned (N, 7), and the origin of clouds (3,)."""
        thinned, first_ns, origin = Thinned(7, PATH_POSES), None, None
        self.mounts = {} if self.args.of == "sensor" else dict(self.sensors.by_frame)
        for result, _ in self._shown():
            if result.sensor is not None and result.sensor not in self.mounts:
                self._mount(self.mounts, result)
            first_ns = result.stamp_ns if first_ns is None else min(first_ns, result.stamp_ns)
            if result.pose is not None:
                thinned.add(result.pose[None])
                if origin is None:
                    is_far = np.abs(result.pose[:3]).max() >= FLOAT_IS_ENOUGH_M
                    origin = np.round(result.pose[:3] / 1000.0) * 1000.0 if is_far else np.zeros(3)
        assert first_ns is not None  # read_results yields at least one
        return first_ns, thinned.rows(), np.zeros(3) if origin is None else origin

    def _text_writer(self) -> Any:
        if self.kind in ON_EARTH:
            assert self.projector is not None  # _projector refuses it
            if self.kind != "geojson":
                return GisWriter(self.part, self.projector, self.kind)
            return text_formats.GeoJson(self.part, self.projector)
        return {"tum": text_formats.Tum, "kitti": text_formats.Kitti, "euroc": text_formats.Euroc}[self.kind](self.part)

    def _recording_writer(self) -> Any:
        first_ns, path, origin = self._trajectory()
        names = Names(self.args.map_frame, self.args.base_frame if self.args.of == "base" else "sensor")
        if self.kind == "ros2":
            writer: Any = RosWriter(self.part, names, origin, self.projector, self.args.storage, self.out.suffix.lower() == ".mcap")
        else:
            writer = {"foxglove": FoxgloveWriter, "rerun": RerunWriter}[self.kind](self.part, names, origin, self.projector)
        writer.begin(first_ns, path, self.mounts)
        if self.args.map:
            writer.map(first_ns, read_map(self.args.map, self.args.map_points))
        return writer

    def run(self) -> None:
        """Writes OUT; a failure leaves it as it was."""
        try:
            self._folder.mkdir()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.out)) from None
        try:
            scans = Scans(self.args.bag, self.sensors, self.args.scan_points, self.args.import_options) if self.args.bag else None
            writer = self._recording_writer() if self.kind in RECORDINGS else self._text_writer()
            try:
                self._write(writer, scans)
            finally:
                writer.close()
                if scans:
                    scans.close()
            if self.poses == 0 and self.kind not in RECORDINGS:
                raise ResultError(f"{self.args.results}: no pose to write among {self.results} results" +
                                  ("" if self.args.all else "; --all writes those that are not trusted"))
            if self.out.is_dir():
                shutil.rmtree(self.out)
            os.replace(self.part, self.out)
        except RuntimeError as error:  # of foxglove-sdk, rerun-sdk and GDAL, where the disk is full
            raise CommandError(f"{self.out}: cannot be written: {error}") from None
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, writer: Any, scans: Optional[Scans]) -> None:
        is_text = self.kind not in RECORDINGS
        size = max(os.path.getsize(self.args.results), 1)
        with Progress("exporting", self.args.quiet) as progress:
            for result, of_base in self._shown():
                self.results += 1
                self.poses += result.pose is not None
                self.left += result.pose is None
                if not is_text and self._mount(self.mounts, of_base):
                    writer.mounts(result.stamp_ns, self.mounts)
                writer.add(result)
                found = scans.find(of_base) if scans and not is_text else None
                if found is not None:
                    writer.scan(result.stamp_ns, *found)
                    self.clouds += 1
                progress.update(min(self.results * 1900 / size, 1.0), f"{self.results} results")
        if scans and not self.clouds:
            raise ResultError(f"{self.args.bag}: none of its scans has the number and the stamp of a result in {self.args.results}")

    def summary(self) -> "list[str]":
        """Lines for the user."""
        parts = [f"{self.poses} poses"] + ([f"{self.clouds} scans"] if self.clouds else [])
        lines = [f"written: {self.out}: {', '.join(parts)}"]
        if self.left:
            why = "without a pose" if self.args.all else "without a trusted pose (--all writes those that have one)"
            lines.append(f"left:    {self.left} results {why}")
        if self.kind == "kitti" and self.left:
            lines.append("note:    line i of the file is not scan i")
        if self.projector is not None and self.projector.heights_note():
            lines.append(f"note:    {self.projector.heights_note()}")
        return lines


def _parse(given: "list[str]") -> argparse.Namespace:
    """The arguments, and as import_options what follows --."""
    own = given[:given.index("--")] if "--" in given else given
    args = parser().parse_args(join_negative(own, [], "--T-base-sensor"))
    args.import_options = given[len(own) + 1:]
    refused = next((word for word in args.import_options if word in ("-o", "--out", "--list", "--json", "-h", "--help")), None)
    if refused:
        parser().error(f"{refused} is not for an export: ndt-import RECORDING {refused}")
    if args.import_options and not args.bag:
        parser().error("what follows -- is for ndt-import: --bag RECORDING")
    return args


def main(arguments: "Optional[list[str]]" = None) -> int:
    """Returns the exit code."""
    args = _parse(sys.argv[1:] if arguments is None else arguments)

    def work() -> None:
        export = Export(args)
        export.run()
        if not args.quiet:
            print("\n".join(export.summary()))

    return finish("ndt-export", work)


def command(arguments: "Optional[list[str]]" = None) -> int:
    """The console command: main in a process of its own, since --map reads files of others."""
    given = sys.argv[1:] if arguments is None else arguments
    args = _parse(given)
    return _child.run(lambda: main(given), "ndt-export", args.map or args.results, Path(args.out))


if __name__ == "__main__":
    sys.exit(command())
