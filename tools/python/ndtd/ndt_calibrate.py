"""ndt-calibrate: where LiDAR and IMU are on the vehicle, from a drive in a map, with what the drive does not tell."""
import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Optional

import numpy as np

from . import _core, poses
from ._arguments import CommandError, Parser, UsageError, add_version, finish
from ._version import __version__
from .calibration import hand_eye, reading, result
from .calibration.chain import Chain
from .calibration.reading import Readings
from .mapping.drive import Drive, is_bag, open_drive

LEAST_MOTIONS = 50
MOST_RESIDUAL = 0.3  # of the motion itself; beyond, the sensor tells another one
EPILOG = """
Reads a bag of ndtd and all that ndt-import reads (its options follow after --). The scans are localised without wheels and IMU, with
the mounting as it is configured (-c, --set, or the transforms of the recording), which has to be right to 20 deg or so. Drive curves
both ways and change the speed; what the drive does not tell is refused, and stays as it is configured.

  ndt-calibrate drive.bag --map map.pcd
  ndt-calibrate drive.mcap --map map.pcd --set frames.T_base_sensor=[1.2,0,1.8,0,0,0] --json
"""


def parser() -> argparse.ArgumentParser:
    """The options; docs/calibration.md explains them."""
    out = Parser(prog="ndt-calibrate", description="Finds where LiDAR and IMU are on the vehicle, from a drive.", epilog=EPILOG,
                 formatter_class=argparse.RawDescriptionHelpFormatter)
    add_version(out)
    out.add_argument("recording", metavar="DRIVE", help="bag, or what ndt-import reads")
    out.add_argument("--map", required=True, metavar="MAP", help="as ndtd takes it: a cloud, a folder of tiles, a compiled map")
    out.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE", help="option of ndtd; may be repeated")
    out.add_argument("-c", "--config", metavar="FILE", help="configuration of ndtd")
    out.add_argument("--frame", metavar="FRAME", help="of the LiDAR, where there are several (default: that of most scans)")
    out.add_argument("--json", action="store_true", help="print JSON: all numbers, with covariances")
    out.add_argument("-q", "--quiet", action="store_true", help="no progress")
    return out


def options_of(args: argparse.Namespace) -> "dict[str, str]":
    """Those of --set."""
    out = {}
    for text in args.sets:
        key, equals, value = text.partition("=")
        if not equals or not key or not value:
            raise UsageError(f"{text}: not KEY=VALUE")
        out[key] = value
    return out


def _solve(name: str, what: str, readings: Readings, chain: Chain, X: np.ndarray, is_gyro: bool) -> hand_eye.Solution:
    """The calibration of LiDAR and wheels, or LiDAR and gyro; CommandError where they do not tell the same motion."""
    problem = hand_eye.HandEye(readings.path, chain, X, is_gyro)
    if problem.motions < LEAST_MOTIONS:
        raise CommandError(f"{name}: the {what} tells {problem.motions} motions of a second between scans that are believed; {LEAST_MOTIONS} are needed")
    found = problem.solve()
    way = float(np.sqrt(np.mean(problem.seen[:, :3, 3] ** 2) * 3))
    turned = float(np.sqrt(np.trace(found.turns)))
    if not is_gyro and way > 0.3 and np.linalg.norm(found.spread[:3]) > MOST_RESIDUAL * way:
        raise CommandError(f"{name}: the {what} tells another way than the scans: {np.linalg.norm(found.spread[:3]):.2f} m off in {way:.2f} m")
    if turned > 0.05 and np.linalg.norm(found.spread[3:]) > MOST_RESIDUAL * turned:
        raise CommandError(f"{name}: the {what} turns otherwise than the scans: {np.degrees(np.linalg.norm(found.spread[3:])):.1f} deg off in "
                           f"{np.degrees(turned):.1f} deg")
    return found


def table(title: str, one: result.Mount) -> str:
    """A mount as lines: what was found less what is configured, by axis."""
    lines = [title, f"  {'axis of the base':22} {'configured':>11} {'change':>11} {'1 sigma':>9}"]
    for k in range(0 if one.has_position else 3, 6):
        scale, unit, digits = (1.0, "m", 4) if k < 3 else (np.degrees(1.0), "deg", 3)
        configured = f"{one.configured[k, 3]:.4f}" if k < 3 else ""
        told = f"{scale * one.off[k]:+11.{digits}f} {scale * one.deviations[k]:9.{digits}f} {unit}" if one.kept[k] else f"{'kept':>11}"
        lines.append(f"  {result.AXES[k]:22} {configured:>11} {told}")
    for name, before, after in zip(result.ANGLES, result.angles(one.configured), result.angles(one.T)):
        lines.append(f"  {name + ' [deg]':22} {np.degrees(before) + 0.0:11.3f} -> {np.degrees(after):.3f}")
    lines += [f"  refused: {text}" for text in one.refused]
    if one.kept.any():
        lines.append(f"  what is observed is {one.sigmas:.1f} sigma from what is configured")
    return "\n".join(lines)


def _faults_text(found: "dict[str, dict[str, Any]]", what: str) -> "list[str]":
    lines = []
    if "scale" in found:
        lines.append(f"  scale of the {what}: {100 * found['scale']['value']:+.2f} % too much way (1 sigma {100 * found['scale']['deviation']:.2f})")
    if "turn_scale" in found:
        turn = found["turn_scale"]
        lines.append(f"  scale of its turns: {100 * turn['value']:+.2f} % too much (1 sigma {100 * turn['deviation']:.2f})")
    if "bias_radps" in found:
        rows = found["bias_radps"]
        lines.append(f"  bias of its turn rate: {', '.join(f'{one:+.5f}' for one in rows['value'])} rad/s (1 sigma {max(rows['deviation']):.5f})")
    if "late_s" in found:
        late_ms, deviation_ms = 1e3 * found["late_s"]["value"], 1e3 * found["late_s"]["deviation"]
        lines.append(f"  its stamps are {abs(late_ms):.1f} ms {'late' if late_ms > 0 else 'early'} against those of the LiDAR (1 sigma {deviation_ms:.1f})")
    return lines


def line_of_config(key: str, one: result.Mount) -> str:
    """The transform as an entry of `frames`."""
    return f"{key}: [{', '.join(f'{value:g}' for value in result.numbers(one))}]"


def _configured_imu(settings: "dict[str, str]", drive: Drive) -> np.ndarray:
    """T_base_imu of the configuration, else of the recording: as ndtd takes it."""
    told = np.array(json.loads(settings["frames.T_base_imu"]), np.float64)
    return drive.T_base_imu if np.array_equal(told, [0, 0, 0, 0, 0, 0, 1]) else poses.matrix(told)


def _check(args: argparse.Namespace) -> None:
    if args.config is not None and not Path(args.config).is_file():
        raise UsageError(f"{args.config}: no such file")
    if args.import_options and is_bag(Path(args.recording)):
        raise UsageError(f"{args.recording}: what follows -- is for ndt-import, which a bag does not need")


def _read(args: argparse.Namespace, drive: Drive) -> Readings:
    """The drive, or the reason why it cannot be used."""
    if not drive.has_wheels and not drive.has_imu:
        raise CommandError(f"{drive.name}: has neither odometry nor an IMU: there is nothing to calibrate the LiDAR with")
    readings = reading.read(drive, args.map, args.config, options_of(args), args.quiet)
    believed = len(readings.path.stamps_s)
    if believed < LEAST_MOTIONS:
        told = f" ({readings.warnings[0]})" if readings.warnings else ""
        raise CommandError(f"{drive.name}: {believed} of {readings.scans} scans are believed in {args.map}, {LEAST_MOTIONS} are needed: "
                           f"another place, or a mounting that is configured more than 20 deg wrong{told}")
    return readings


def calibrate(args: argparse.Namespace) -> None:
    """Reads, solves, prints."""
    _check(args)
    settings = _core.settings(args.config, options_of(args))
    args.deskew, args.deskew_option = settings["preprocess.deskew"], "--set preprocess.deskew="
    with tempfile.TemporaryDirectory(prefix="ndt-calibrate-") as folder:
        drive = open_drive(args.recording, Path(folder), 0, args)
        readings = _read(args, drive)
    base, mounts, lines, told = readings.T_base_sensor, {}, [], {}
    if readings.wheels is not None:
        found = _solve(drive.name, "odometry", readings, readings.wheels, base, False)
        mounts["T_base_sensor"] = one = result.mount(found, base, True, readings.wheels.is_planar)
        told["T_base_sensor"] = {**result.as_json(one), "motions": found.motions, "faults": result.faults(found, False)}
        planar = "; the odometry is planar: roll, pitch and z are those over the ground" if readings.wheels.is_planar else ""
        lines += [table(f"T_base_sensor of {drive.frame_id}, by the odometry ({found.motions} motions{planar}):", one),
                  *_faults_text(told["T_base_sensor"]["faults"], "odometry")]
        base = one.T
    if readings.gyro is not None:
        configured = _configured_imu(settings, drive)
        found = _solve(drive.name, "IMU", readings, readings.gyro, np.linalg.inv(configured) @ base, True)
        mounts["T_base_imu"] = one = result.mount(result.imu_in_base(found, base), configured, False)
        told["T_base_imu"] = {**result.as_json(one), "motions": found.motions, "faults": result.faults(found, True)}
        lines += [table(f"T_base_imu, by the gyro and the attitudes of the LiDAR ({found.motions} motions):", one),
                  *_faults_text(told["T_base_imu"]["faults"], "gyro")]
    if not mounts:
        raise CommandError(f"{drive.name}: odometry and IMU have fewer than two messages that can be used")
    if args.json:
        about = {"version": __version__, "recording": drive.name, "map": str(args.map), "frame": drive.frame_id, "scans": readings.scans,
                 "believed": len(readings.path.stamps_s)}
        print(json.dumps({**about, **told}, indent=2))
        return
    print(f"{drive.name}: {len(readings.path.stamps_s)} of {readings.scans} scans are believed")
    print("\n".join(lines))
    print("frames:")
    for key, one in mounts.items():
        is_listed = key == "T_base_sensor" and drive.frame_id in settings["frames.sensors"]
        print(f"  {line_of_config(key, one)}" if not is_listed else
              f"  sensors:\n    - {drive.frame_id} {' '.join(f'{value:g}' for value in result.numbers(one))}")


def command(arguments: "Optional[list[str]]" = None) -> int:
    """The console command."""
    words = sys.argv[1:] if arguments is None else arguments
    own = words[:words.index("--")] if "--" in words else words
    args = parser().parse_args(own)
    args.import_options = words[len(own) + 1:]
    return finish("ndt-calibrate", lambda: calibrate(args))


if __name__ == "__main__":
    sys.exit(command())
