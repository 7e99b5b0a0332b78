"""ndt-map update: what has changed since a map was made, by recordings of later drives; kept in an overlay beside the map."""
import argparse
import os
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ._arguments import Parser, UsageError, add_version, finish
from ._extras import need
from ._version import __version__
from .renewal import changes, overlay
from .renewal.prior_map import find_clouds
from .renewal.update import Renewal, renew

WAY_M = 2.0  # between the places of a way in overlay.json
EPILOG = """
Reads bags of ndtd and all that ndt-import reads (its options follow after --). Every recording is localised in MAP; scans whose poses
are verified vote about what they see as mapped, look through, or see new. OVERLAY is written only if recordings that are held out
get no worse in the map with it.

  ndt-map update map tuesday.mcap friday.mcap -o map-friday
  ndt-map changes map-friday --picture changes.png
  ndtd --replay monday.mcap --map map-friday
"""


def parser() -> argparse.ArgumentParser:
    """The options; docs/renewal.md explains them."""
    out = Parser(prog="ndt-map update", description="Finds what has changed since a map was made.", epilog=EPILOG,
                 formatter_class=argparse.RawDescriptionHelpFormatter)
    add_version(out)
    out.add_argument("map", metavar="MAP", help="map with points: a cloud, a folder of tiles, or what ndt-map build has made")
    out.add_argument("recording", nargs="+", metavar="RECORDING", help="bag, or what ndt-import reads")
    out.add_argument("-o", "--out", required=True, metavar="OVERLAY", help="folder to write, beside the map")
    out.add_argument("--force", action="store_true", help="overwrite OVERLAY if it exists")
    out.add_argument("--report", metavar="PAGE.html", help="also write a page about it (needs ndtd[report])")
    out.add_argument("-c", "--config", metavar="FILE", help="configuration of ndtd, with which the recordings are localised")
    out.add_argument("--given-start", action="store_true",
                     help="begin at the initial poses that the recordings carry, where places look alike and a search finds none; "
                          "there a wrong one may not be noticed")
    out.add_argument("--deskew", default="auto", choices=("auto", "off", "time", "azimuth_cw", "azimuth_ccw"),
                     help="how the time of a point is known (default: auto: its time, or the order of the points)")
    out.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    return out


def _check(args: argparse.Namespace) -> Path:
    out, (place, _) = Path(args.out), find_clouds(args.map)
    if out.exists() and not args.force:
        raise UsageError(f"{out}: exists already; --force overwrites it")
    if out.exists() and not (out.is_dir() and ((out / overlay.ABOUT).exists() or not any(out.iterdir()))):
        raise UsageError(f"{out}: is no overlay of this command; it is not overwritten")
    if any(folder in out.resolve().parents or folder == out.resolve() for folder in (Path(args.map).resolve(), place.resolve())):
        raise UsageError(f"{out}: an overlay lies beside its map, not in it")
    if len({Path(one).resolve() for one in args.recording}) < len(args.recording):
        raise UsageError("a recording is given twice: it counts once")
    if args.config is not None and not Path(args.config).is_file():
        raise UsageError(f"{args.config}: no such file")
    if args.report:
        need("matplotlib", "report")
    return out


def _ways(renewal: Renewal) -> "dict[str, list[list[float]]]":
    """Positions of the scans that voted, WAY_M apart."""
    out: "dict[str, list[list[float]]]" = {}
    for one in renewal.voting:
        way, last = [], np.full(2, np.inf)
        for voter in one.voters:
            at = voter.T_map_sensor[:2, 3]
            if not np.linalg.norm(at - last) < WAY_M:
                way.append([round(float(value), 2) for value in at])
                last = at
        out[one.name] = way
    return out


def _about(renewal: Renewal, gone: np.ndarray, new: np.ndarray) -> "dict[str, Any]":
    """The contents of overlay.json besides the id."""
    recordings = [{"recording": one.name, "scans": len(one.located.stamps_ns), "verified": int(one.located.verified.sum()),
                   "voted": len(one.voters), "not_held": one.not_held, "note": one.reason} for one in renewal.recordings]
    return {"made_by": f"ndt-map update {__version__}", "recordings": recordings,
            "cells": asdict(renewal.tally), "changes": changes.numbers(gone, new), "halves": len(renewal.voting) == 1,
            "proof": [one.about() for one in renewal.proofs], "ways_m": _ways(renewal)}


def _summary(about: "dict[str, Any]", out: Path) -> str:
    lines = [f"{one['recording']}: {one['verified']} of {one['scans']} scans verified, {one['voted']} voted"
             + (f", {one['not_held']} not held by what stays" if one["not_held"] else "") for one in about["recordings"]]
    cells, found = about["cells"], about["changes"]
    lines.append(f"cells: {cells['mapped']} mapped, {cells['seen']} seen as mapped, {cells['through']} looked through, "
                 f"{cells['not_looked_at']} not looked at, {cells['new']} new")
    lines.append(f"changes: {found['removed']} points leave, {found['added']} are added"
                 + (f"; {cells['agreed']} of {cells['gone'] + cells['stay']} cells by several recordings" if not about["halves"] else ""))
    for one in about["proof"]:
        shown = ", ".join(f"{name} {one['before'][name]:.4f} -> {one['after'][name]:.4f}" for name in one["before"])
        lines.append(f"held out: {one['recording']}: lost {one['lost_before']} -> {one['lost_after']} of {one['scans']} scans; "
                     f"{one['measure']}: {shown or 'too few scans'}")
        if one["truth_off_m"]:
            lines.append(f"its ground truth is {one['truth_off_m']:.1f} m off in the median, in the frame of another map: the fit was judged")
    if about["halves"]:
        lines.append("one recording alone: its second half was held out, which proves less than another drive does")
    lines.append(f"next: ndtd --replay RECORDING --map {out}")
    return "\n".join(lines)


def _note(text: str) -> None:
    print(f"ndt-map update: note: {text}", file=sys.stderr)


def make_overlay(args: argparse.Namespace) -> None:
    """Makes OVERLAY beside its place, and moves it there as a whole."""
    out = _check(args)
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{out.name}.part.", dir=out.absolute().parent))
    try:
        renewal = renew(args.map, args.recording, work, args, _note)
        gone, new = changes.points_of(renewal.prior, renewal.changes)
        about, made = _about(renewal, gone, new), work / "overlay"
        number = renewal.prior.write_overlay(made, renewal.changes, about)
        if args.report:
            from .report import update_page
            update_page.write(Path(args.report), renewal.prior.path, gone, new, about, number)
        if out.exists():
            shutil.rmtree(out)
        os.replace(made, out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if not args.quiet:
        print(_summary(about, out))


def main(arguments: "list[str]") -> int:
    """The command; returns its exit code."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    args = parser().parse_args(arguments[:cut])
    args.import_options, args.frame = arguments[cut + 1:], None
    return finish("ndt-map update", lambda: make_overlay(args), place=args.out)
