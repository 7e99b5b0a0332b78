"""ndt-map from-glim: the map that GLIM has made, for ndtd."""
import argparse
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ._arguments import Parser, add_version, finish
from ._core import Map
from ._progress import Progress
from ._version import __version__
from .mapping import glim_dump, output, quality, trajectory
from .mapping.cloud_store import CloudStore

EPILOG = """
DIR is a dump of GLIM: graph.txt, and 000000, 000001 ... with data.txt and points_compact.bin. Writes MAP/map.pcd (or tiles),
MAP/poses.tum with the poses of the LiDAR at the frames that GLIM has kept, and MAP/map.json, in GLIM's frame `world`.

  ndt-map from-glim dump -o map
  ndtd --replay tuesday.mcap --map map/map.pcd --out tuesday.tum
"""


def parser() -> argparse.ArgumentParser:
    """The options; docs/mapping.md explains them."""
    out = Parser(prog="ndt-map from-glim", description="Makes a map from a dump of GLIM.", epilog=EPILOG,
                 formatter_class=argparse.RawDescriptionHelpFormatter)
    add_version(out)
    out.add_argument("dump", metavar="DIR", help="dump of GLIM")
    output.add_options(out)
    out.add_argument("--threads", type=int, default=0, metavar="N", help="for --compiled; 0: one per core, at most 4 (default: 0)")
    out.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    return out


def _read(folder: Path, store: CloudStore, progress: Any) -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
    """The poses of the submaps, whose points go to the store; stamps and poses of all frames, in the order of time."""
    count = glim_dump.submap_count(folder)
    origins, frames = [], {}
    for number in range(count):
        submap = glim_dump.read_submap(folder, number)
        store[number] = submap.points()
        origins.append(submap.T_world_origin)
        frames.update(zip(submap.stamps_ns, submap.T_world_lidar))
        progress((number + 1) / count)
    stamps_ns = sorted(frames)
    return np.array(origins), np.array(stamps_ns, np.int64), np.array([frames[stamp] for stamp in stamps_ns]).reshape(-1, 4, 4)


def _make(args: argparse.Namespace, part: Path) -> "dict[str, Any]":
    """The files of the map; returns what map.json says."""
    with CloudStore(part / "clouds") as store:
        with Progress("reading", args.quiet) as progress:
            T, stamps_ns, poses = _read(Path(args.dump), store, progress.update)
        read = sum(store.place(number)[1] for number in store.scans())
        if read == 0:
            raise glim_dump.DumpError(f"{args.dump}: its {len(T)} submaps have no points")
        with Progress("writing", args.quiet) as progress:
            points = output.write_map(part, part, store, T, args, progress.update)
    trajectory.write_tum(part / "poses.tum", stamps_ns, poses)
    if args.compiled:
        Map(str(output.cloud_place(part, args)), threads=args.threads).save(str(part / "map.ndtmap"))
    about = {"version": __version__, "from": "GLIM", "dump": args.dump, "submaps": len(T), "points_read": read, "points": points,
             "poses": len(stamps_ns), "voxel_m": args.voxel, "sharpness": quality.of_map(output.cloud_place(part, args))}
    (part / "map.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return about


def make_map(args: argparse.Namespace) -> None:
    """Makes MAP beside its place, and moves it there as a whole."""
    out = output.check_place(args)
    if not Path(args.dump).is_dir():
        raise glim_dump.DumpError(f"{args.dump}: no such folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f"{out.name}.part.", dir=out.parent))
    try:
        part.chmod(0o777 & ~_umask())
        about = _make(args, part)
        if out.exists():
            shutil.rmtree(out)
        os.replace(part, out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    if not args.quiet:
        print(f"{args.dump}: {about['submaps']} submaps, {about['points_read']} points; {about['points']} points in the map, "
              f"{about['poses']} poses\nnext: ndtd --replay RECORDING --map {output.cloud_place(out, args)}")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def main(arguments: "list[str]") -> int:
    """The command; returns its exit code."""
    args = parser().parse_args(arguments)
    return finish("ndt-map from-glim", lambda: make_map(args))
