"""ndt-map build: a map from recordings of drives."""
import argparse
import errno
import importlib
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Optional

import numpy as np

from . import _child
from ._arguments import CommandError, Parser, UsageError, add_version, finish
from ._core import Map
from ._extras import need, os_error_text
from ._progress import Progress
from ._version import __version__
from .georeference import Projector
from .mapping import build, checks, output, positions, quality, ranges, se3, trajectory
from .mapping.cloud_store import Clouds, CloudStore, LeftOut
from .mapping.work_state import CLOUDS, WorkState, identity_of
from .report import build_page

MADE = "map"  # folder of the work state
EPILOG = """
Reads bags of ndtd and all that ndt-import reads (its options follow after --). Writes MAP/map.pcd (or tiles), MAP/poses.tum with
the pose of every scan, and MAP/map.json. Several recordings become one map where they overlap. A build that was stopped goes
on when the same command is given again; until then its work is in MAP.part.

  ndt-map build monday.mcap -o map
  ndtd --replay tuesday.mcap --map map/map.pcd --out tuesday.tum
"""


def parser() -> argparse.ArgumentParser:
    """The options; docs/mapping.md explains them."""
    out = Parser(prog="ndt-map build", description="Makes a map from recordings of drives.", epilog=EPILOG,
                 formatter_class=argparse.RawDescriptionHelpFormatter)
    add_version(out)
    out.add_argument("recording", nargs="+", help="bag, or what ndt-import reads")
    output.add_options(out)
    out.add_argument("--poses", metavar="FILE", help="poses of the vehicle that are known already (TUM): the map is made at these")
    out.add_argument("--report", action="store_true", help="also write MAP/report.html (needs ndtd[report])")
    out.add_argument("--no-loops", dest="loops", action="store_false", help="odometry alone; faster, and drifts")
    out.add_argument("--refine", action="store_true", help="align scans with the map of others, as long as scans held out come nearer to its surfaces")
    out.add_argument("--clean", action="store_true",
                     help="leave out what moved, cars and people: points that other scans look through; MAP/moved.pcd has them")
    out.add_argument("--no-gnss", dest="gnss", action="store_false", help="the map begins at the first scan, not at the positions of the GNSS")
    how = out.add_argument_group("scans")
    how.add_argument("--frame", metavar="NAME", help="frame of the scans; default: the one with most scans")
    how.add_argument("--deskew", default="auto", choices=("auto", "off", "time", "azimuth_cw", "azimuth_ccw"),
                     help="how the time of a point is known (default: auto: its time, or the order of the points)")
    how.add_argument("--min-range", type=float, default=1.0, metavar="M", help="nearer points are the vehicle (default: 1)")
    how.add_argument("--max-range", type=float, default=200.0, metavar="M", help="farther points are not used (default: 200)")
    how.add_argument("--range-offset", type=float, metavar="M",
                     help="added to every range, by which the sensor measures too little, -1 to 1 (default: what the drive tells)")
    out.add_argument("--threads", type=int, default=0, metavar="N", help="0: one per core, of loops at most 4; the same map (default: 0)")
    out.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    return out


def _check(args: argparse.Namespace) -> Path:
    out = output.check_place(args)
    for name, value, least, most in (("--min-range", args.min_range, 0, 1000), ("--max-range", args.max_range, 1, 1e6)):
        if not least <= value <= most:
            raise UsageError(f"{name}: {value:g} is outside {least:g} .. {most:g}")
    if args.range_offset is not None and not -1 <= args.range_offset <= 1:
        raise UsageError(f"--range-offset: {args.range_offset:g} is outside -1 .. 1")
    if args.range_offset is not None and args.min_range + args.range_offset <= 0 and args.range_offset < 0:
        raise UsageError(f"--range-offset: {args.range_offset:g} leaves nothing of --min-range, {args.min_range:g}")
    if args.min_range >= args.max_range:
        raise UsageError("--min-range: it is not below --max-range")
    if args.report:
        need("matplotlib", "report")
    if args.poses is not None and not Path(args.poses).is_file():
        raise UsageError(f"{args.poses}: no such file")
    return out


def _as_measured(store: Clouds, mapped: build.Mapped) -> Clouds:
    return ranges.AsMeasured(store, mapped.drives, mapped.firsts)


def _write(part: Path, mapped: build.Mapped, store: CloudStore, args: argparse.Namespace) -> "tuple[int, Optional[dict[str, Any]]]":
    """The files of the map; returns the number of points, and what moved where that was asked for."""
    with Progress("writing", args.quiet) as progress:
        points = output.write_map(part, part, _as_measured(store, mapped), mapped.poses, args, progress.update)
    moved = output.write_moved(part, _as_measured(LeftOut(store), mapped), mapped.poses, args.voxel) if args.clean else None
    names = ["poses.tum"] if len(mapped.drives) == 1 else [f"poses{number + 1}.tum" for number in range(len(mapped.drives))]
    for number, name in enumerate(names):
        trajectory.write_tum(part / name, mapped.trajectories[number].stamps_ns, mapped.at_stamps(number))
    if args.compiled:
        Map(str(output.cloud_place(part, args)), threads=args.threads).save(str(part / "map.ndtmap"))
    if moved is not None:
        moved["part"] = round(moved["points"] / max(moved["points"] + points, 1), 5)
    return points, moved


def _about(mapped: build.Mapped, points: int, sharpness: "dict[str, Any]", args: argparse.Namespace, spent_s: float) -> "dict[str, Any]":
    """The contents of map.json, except for the moving points."""
    drives = []
    for drive, one, first, offset in zip(mapped.drives, mapped.trajectories, mapped.firsts, mapped.offsets):
        moved = mapped.poses[first:first + len(one.stamps_ns), :3, 3]
        drives.append({"recording": drive.name, "frame": drive.frame_id, "deskew": drive.deskew, "scans": len(one.stamps_ns),
                       "refused": len(one.reasons), "left_out": drive.left_out, "imu": drive.has_imu, "wheels": drive.has_wheels,
                       "range_offset_m": drive.range_offset_m,
                       "range_offset_told": offset and {"m": round(offset.offset_m, 4), "deviation_m": round(offset.deviation_m, 4), "scans": offset.scans},
                       "way_m": round(float(np.linalg.norm(np.diff(moved, axis=0), axis=1).sum()), 2),
                       "not_located": int((~one.located).sum()), "degenerate": int(one.degenerate.sum()),
                       "segments": int(one.segment[-1]) + 1, "usual_fit": round(float(np.median(one.fit[1:])), 4),
                       "weak_places": [{"scan": k, "stamp_ns": int(one.stamps_ns[k]), "why": why} for k, why in checks.weak_places(one)[:100]]})
    return {"version": __version__, "points": points, "voxel_m": args.voxel, "poses_given": args.poses, "drives": drives,
            "submaps": len(mapped.submaps), "loops": len(mapped.loops), "loops_believed": sum(mapped.believed),
            "loops_off": _loops_off(mapped), "gnss": _gnss(mapped), "loops_searched": sum(loop.searched for loop in mapped.loops), "sharpness": sharpness,
            "refinement": _refinement(mapped), "seconds": round(spent_s, 1)}


def _loops_off(mapped: build.Mapped) -> "Optional[dict[str, Any]]":
    """How far the loops that are believed are from the poses of the map; None: there are none."""
    believed = mapped.believed_loops()
    if not believed:
        return None
    found = se3.inverse(mapped.poses[[loop.begin for loop in believed]]) @ mapped.poses[[loop.end for loop in believed]]
    off_m = np.linalg.norm((found - np.array([loop.T for loop in believed]))[:, :3, 3], axis=1)
    return {"median_m": round(float(np.median(off_m)), 4), "most_m": round(float(off_m.max()), 4)}


def _or_none(value_m: float) -> "Optional[float]":
    return None if np.isnan(value_m) else round(value_m, 5)


def _refinement(mapped: build.Mapped) -> "Optional[dict[str, Any]]":
    """What the refinement has done; None: there was none."""
    one = mapped.refinement
    if one is None:
        return None
    return {"rounds": one.rounds, "held_out_m": [_or_none(m) for m in one.held_out_m],
            "thickness_m": [_or_none(one.before_m), _or_none(one.after_m)]}


def _gnss(mapped: build.Mapped) -> "Optional[dict[str, Any]]":
    """Distances of the antenna from its positions in the map; None: positions are not used."""
    if mapped.positions is None:
        return None
    off_m = positions.residuals_m(mapped.positions, mapped.poses)
    return {"fixes": len(off_m), "median_m": round(float(np.median(off_m)), 3), "most_m": round(float(off_m.max()), 3)}


def _refinement_said(one: "dict[str, Any]") -> str:
    off_m, rounds = one["held_out_m"], one["rounds"]
    if rounds == 0:
        return "scans held out come no nearer to the surfaces; poses stay"
    before_m, after_m = one["thickness_m"]
    return (f"{rounds} round{'s' * (rounds > 1)}; scans held out are {100 * off_m[0]:.2f} cm from the surfaces before, {100 * off_m[rounds]:.2f} after"
            + (f"; surfaces {100 * before_m:.1f} cm thick, then {100 * after_m:.1f}" if before_m and after_m else ""))


def _summary(about: "dict[str, Any]", cloud: Path) -> str:
    lines = []
    for drive in about["drives"]:
        weak = drive["not_located"] + drive["degenerate"]
        lines.append(f"{drive['recording']}: {drive['scans']} scans, {drive['way_m']:.1f} m, deskew {drive['deskew']}"
                     + (f", ranges corrected by {100 * drive['range_offset_m']:+.1f} cm for its poses" if drive["range_offset_m"] else "")
                     + (f", {drive['refused']} scans refused" if drive["refused"] else "")
                     + (f", {weak} weak scans (map.json lists them)" if weak else ""))
    if about["gnss"]:
        lines.append(f"GNSS: {about['gnss']['fixes']} positions, {about['gnss']['median_m']:.2f} m from the map in the median")
    if about["refinement"]:
        lines.append(f"refinement: {_refinement_said(about['refinement'])}")
    if about["moved"]:
        lines.append(f"moved: {about['moved']['points']} points ({about['moved']['part']:.1%}) are left out"
                     + (f", and in {output.MOVED}" if about["moved"]["points"] else ""))
    loops = f"{about['loops_believed']} of {about['loops']} loops are believed" if about["loops"] else "no loops were found"
    lines.append(f"{loops}; {about['points']} points; {about['seconds']:.0f} s")
    lines.append(f"next: ndtd --replay RECORDING --map {cloud}")
    return "\n".join(lines)


def _note(text: str) -> None:
    print(f"ndt-map build: note: {text}", file=sys.stderr)


def _georeference(made: Path, mapped: build.Mapped) -> None:
    """map_projector_info.yaml, where the GNSS that holds the map has come with the projection; notes about GNSS that is not used."""
    for drive, one in zip(mapped.drives, mapped.trajectories):
        if drive.fixes_left:
            _note(f"{drive.name}: its {drive.fixes_left} positions of GNSS are left out, as nothing tells where the map is on the earth: "
                  "`-- --utm` behind the command makes a map in UTM, `-- --projector FILE` one in coordinates of your own")
        elif mapped.positions is None and one.fixes.stamps_ns:
            _note(f"{drive.name}: its {len(one.fixes.stamps_ns)} positions of GNSS are not used: the first recording has to have "
                  f"{positions.LEAST_FIXES} at least, {positions.LEAST_SPREAD_M:g} m apart")
    told = [drive.projector for drive in mapped.drives if drive.projector]
    if mapped.positions is None or not told:
        return
    if any(one != told[0] for one in told):
        _note("no map_projector_info.yaml is written: the GNSS of the recordings has several projections")
        return
    Projector.from_info(told[0]).write(made)


def _make(state: WorkState, args: argparse.Namespace, begin: float) -> "dict[str, Any]":
    """All files of the map, in the folder `map` of the work state; returns what map.json says."""
    made = state.folder / MADE
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    with CloudStore(state.folder / CLOUDS, keep=True) as store:
        mapped = build.build(args.recording, state, store, args)
        points, moved = _write(made, mapped, store, args)
    if args.gnss and args.poses is None:
        _georeference(made, mapped)
    about = _about(mapped, points, quality.of_map(output.cloud_place(made, args)), args, time.monotonic() - begin)
    about["moved"] = moved
    if args.report:
        build_page.write(made / "report.html", Path(args.out).resolve().name, output.cloud_place(made, args), mapped, about)
    (made / "map.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return about


def make_map(args: argparse.Namespace) -> None:
    """Makes MAP in a folder beside its place, and moves it there as a whole. What a build that was stopped has done is used."""
    out, begin = _check(args), time.monotonic()
    state = WorkState(out.with_name(out.name + ".part"), identity_of(args), _note)
    try:
        about = _make(state, args, begin)
        if out.exists():
            shutil.rmtree(out)
        os.replace(state.folder / MADE, out)
        state.remove()
    except (CommandError, ValueError):  # the same again would end the same
        state.remove()
        raise
    except OSError as error:
        goes_on = "; what is done is kept there, and the same command goes on" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        raise CommandError(os_error_text(error, state.folder) + goes_on) from error
    finally:
        state.close()
    if not args.quiet:
        print(_summary(about, output.cloud_place(out, args)))


def main(arguments: "Optional[list[str]]" = None) -> int:
    """The command; returns its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    cut = given.index("--") if "--" in given else len(given)
    args = parser().parse_args(given[:cut])
    args.import_options = given[cut + 1:]
    return finish("ndt-map build", lambda: make_map(args), "stopped; the same command goes on from here")


def command(arguments: "Optional[list[str]]" = None) -> int:
    """The console command: main, or that of another way to a map, in a process of its own."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    name, work = "ndt-map build", main
    if given[:1] in (["from-glim"], ["update"], ["changes"]):
        other, *given = given
        name, work = f"ndt-map {other}", importlib.import_module(f".ndt_map_{other.replace('-', '_')}", __package__).main
    about = next((word for word in given if not word.startswith("-")), None)
    return work(given) if about is None else _child.run(lambda: work(given), name, about)


if __name__ == "__main__":
    sys.exit(command())
