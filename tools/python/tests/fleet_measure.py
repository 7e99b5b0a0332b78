"""Cost of a run of ndt-fleet beside plain loops of ndtd, on simulated drives over one map.

    python fleet_measure.py --work /tmp/measure                                  # 200 drives of 75 scans, 2 configurations, 2 local workers
    python fleet_measure.py --work /tmp/measure --cluster slurm --no-loops       # the same on a Slurm of this machine
    python fleet_measure.py --work /tmp/measure --cluster scheduler --no-loops   # and on a scheduler with workers of its own

Loops: `ndtd --replay --threads 1 --results --summary` on one bag after the other, with the map as it is; with a map that was compiled
before; and two of these beside each other, which says what the cores give at most. The drives are kept in the folder for the next call.
"""
import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fleet_runs
import pyarrow.parquet as pq
import slurm_here

SENSORS = (("--beams", "32"), ("--beams", "16"), ("--beams", "64", "--columns", "900"),
           ("--beams", "32", "--noise", "0.04", "--dropout", "0.1"))
SETTINGS = ("--set", "preprocess.deskew=time")
LEVELS = ("[4.0,2.0,1.0]", "[2.0,1.0]")


def make_drives(args: argparse.Namespace, bins: Path) -> fleet_runs.Drives:
    """Four kinds of vehicles drive through one world; each of their drives is cut out of a long one."""
    place = Path(args.work) / f"drives-{args.drives}x{args.scans}"
    lengths = {kind: [args.scans] * len(range(kind, args.drives, len(SENSORS))) for kind in range(len(SENSORS))}
    if not (place / "whole").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for kind, options in enumerate(SENSORS):
            folder = place / f"vehicle{kind}"
            subprocess.run([str(bins / "ndt-sim"), "--seed", "7", "--scans", str(max(map(sum, lengths.values()))), "--out", str(folder),
                            *options], check=True, stdout=subprocess.DEVNULL)
            (folder / "drive.bag").rename(folder / f"vehicle{kind}.bag")
            fleet_runs.cut(bins / "ndt-bag", folder / f"vehicle{kind}.bag", folder / "map.pcd", place / "bags", lengths[kind])
            (folder / f"vehicle{kind}.bag").unlink()
        (place / "whole").touch()
    bags = sorted((place / "bags").glob("*.bag"))
    return fleet_runs.Drives(bags, place / "vehicle0" / "map.pcd", {str(bag): args.scans for bag in bags})


def warm(drives: fleet_runs.Drives) -> int:
    """Reads all bags, so that they lie in memory where it suffices; their bytes."""
    for bag in drives.bags:
        subprocess.run(["cat", str(bag)], check=True, stdout=subprocess.DEVNULL)
    return sum(bag.stat().st_size for bag in drives.bags)


def loop(drives: fleet_runs.Drives, bins: Path, work: Path, core: int, part: slice = slice(None), is_compiled: bool = True) -> float:
    """Seconds of one plain loop on one core; the time to compile its maps is not in them."""
    commands, folder = [], work / f"loop{core}"
    folder.mkdir(exist_ok=True)
    for number, levels in enumerate(LEVELS):
        settings, compiled = [*SETTINGS, "--set", f"ndt.levels={levels}"], folder / f"{number}.ndtmap"
        compiled.unlink(missing_ok=True)
        subprocess.run([str(bins / "ndtd"), "--compile-map", str(compiled), "--map", str(drives.map), *settings], check=True,
                       stdout=subprocess.DEVNULL)
        map_file = str(compiled if is_compiled else drives.map)
        commands += [[str(bins / "ndtd"), "--replay", str(bag), "--map", map_file, "--threads", "1", *settings, "--results",
                      str(folder / "results.jsonl"), "--summary", str(folder / "summary.json")] for bag in drives.bags[part]]
    begin = time.monotonic()
    for command in commands:
        subprocess.run(["taskset", "-c", str(core), *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin


def two_loops(drives: fleet_runs.Drives, bins: Path, work: Path) -> float:
    """Seconds until both are through, each with every second bag."""
    spent = [0.0, 0.0]

    def one(core: int) -> None:
        spent[core] = loop(drives, bins, work, core, slice(core, None, 2))

    threads = [threading.Thread(target=one, args=(core,)) for core in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(spent)


class Usage(threading.Thread):
    """Largest memory and processor time of the processes of a run, by kind, looked at twice a second."""

    def __init__(self, marker: Path):
        super().__init__(daemon=True)
        self.marker, self.stopped = marker, threading.Event()
        self.found: "dict[int, tuple[str, float, float]]" = {}  # pid -> kind, MiB, seconds

    def run(self) -> None:
        while not self.stopped.wait(0.5):
            for pid in slurm_here.processes_of(self.marker):
                with contextlib.suppress(OSError, LookupError, ValueError):  # it has ended
                    self._look(pid)

    def _look(self, pid: int) -> None:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        text = " ".join(words)
        kind = ("client" if "ndtd.ndt_fleet" in words else "scheduler" if "dask_scheduler" in text else
                "worker" if "spawn_main" in text else "nanny" if "dask_worker" in text else words[0].rpartition("/")[2])
        self.found[pid] = (kind, int(status["VmHWM"].split()[0]) / 1024.0, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))

    def end(self) -> "list[tuple[str, int, float, float]]":
        """Kind, processes, MiB of the largest, seconds of all."""
        self.stopped.set()
        self.join()
        kinds = sorted({kind for kind, _, _ in self.found.values()})
        of = {name: [one for one in self.found.values() if one[0] == name] for name in kinds}
        return [(name, len(some), max(one[1] for one in some), sum(one[2] for one in some)) for name, some in of.items()]


@contextlib.contextmanager
def engine(args: argparse.Namespace, work: Path, environment: "dict[str, str]") -> "Iterator[tuple[list[str], dict[str, str]]]":
    """Options and environment of `ndt-fleet run`."""
    workers = ["--workers", str(args.workers)]
    if args.cluster == "slurm":
        with slurm_here.running(cores=args.workers) as slurm:
            yield ["--cluster", "slurm", *workers, "--cluster-option", "interface=lo", "--cluster-option", f"log_directory={work}"], slurm
    elif args.cluster == "scheduler":
        with fleet_runs.scheduler(work / "dask", args.workers, environment) as one:
            yield ["--cluster", one.address], {}
    else:
        yield ["--cluster", args.cluster, *workers], {}


def fleet(args: argparse.Namespace, drives: fleet_runs.Drives, bins: Path, work: Path) -> "dict[str, Any]":
    """Runs ndt-fleet; what it says, and what it used."""
    run, environment = work / "run", {"NDT_FLEET_MEASURE": str(work)}
    with engine(args, work, environment) as (options, more):
        usage, begin = Usage(work), time.monotonic()
        usage.start()
        fleet_runs.call("run", "--bags", drives.pattern, "--map", drives.map, *SETTINGS, "--sweep", f"ndt.levels={','.join(LEVELS)}",
                        "--out", run, "--cache", work / "cache", "--ndtd", bins / "ndtd", "--quiet", "--json", work / "told.json", *options,
                        environment={**environment, **more}, log=work / "log")
        wall_s, used = time.monotonic() - begin, usage.end()
    files = [path for path in run.rglob("*") if path.is_file() and not path.is_symlink()]
    return {**json.loads((work / "told.json").read_text()), "wall_s": wall_s, "used": used, "digest": fleet_runs.result(run)[0],
            "files": len(files), "bytes": sum(path.stat().st_size for path in files),
            "runs": pq.read_table(run / "runs.parquet", columns=["cpu_s", "replay_s", "peak_memory_bytes", "error_m_median"]).to_pandas()}


def show(args: argparse.Namespace, found: "dict[str, Any]", loops: "list[float]") -> None:
    """Prints the figures."""
    scans, tasks = found["scans"], found["total"]
    rate = scans / found["seconds"]
    print(f"ndt-fleet, {args.cluster}, {args.workers} workers: {found['done']} of {tasks} tasks, {scans} scans in "
          f"{found['seconds']:.1f} s, {rate:.0f} scans/s; with start, tables and end {found['wall_s']:.1f} s, "
          f"{scans / found['wall_s']:.0f} scans/s")
    names = (("one loop, map as it is", 2), ("one loop, compiled map", 2), ("two loops, compiled map", 1))
    for (name, times), seconds in zip(names, loops):
        print(f"  {name}: {seconds:.1f} s, {scans / seconds:.0f} scans/s; ndt-fleet of {'twice ' * (times - 1)}that: "
              f"{rate * seconds / scans / times:.1%}, with start and end {seconds / found['wall_s'] / times:.1%}")
    for kind, count, memory_mib, cpu_s in found["used"]:
        print(f"  {kind:10} {count:5} processes, largest {memory_mib:6.0f} MiB, processor {cpu_s:7.1f} s, "
              f"{cpu_s / tasks * 1e3:6.1f} ms per task")
    runs = found["runs"]
    print(f"  all replays: largest {runs.peak_memory_bytes.max() / 2**20:.0f} MiB, processor {runs.cpu_s.sum():.1f} s, "
          f"wall {runs.replay_s.sum():.1f} s; median of the median errors {runs.error_m_median.median() * 1e3:.1f} mm")
    print(f"RUN: {found['files']} files, {found['bytes'] / 1e6:.1f} MB; digest {found['digest']}")


def main() -> int:
    """Exit status: 0, whatever the figures are."""
    args = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    args.add_argument("--work", required=True, metavar="DIR", help="a folder with room for the drives (1 MB per scan)")
    args.add_argument("--drives", type=int, default=200)
    args.add_argument("--scans", type=int, default=75, help="of a drive (default: 75)")
    args.add_argument("--cluster", default="local", help="local, slurm, scheduler, or an address")
    args.add_argument("--workers", type=int, default=2)
    args.add_argument("--no-loops", action="store_true", help="without the plain loops")
    given = args.parse_args()
    bins = Path(os.environ.get("NDT_BIN") or Path(__file__).resolve().parents[3] / "build/bin")
    work = Path(given.work).resolve() / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    drives = make_drives(given, bins)
    print(f"{len(drives.bags)} drives of {given.scans} scans, {warm(drives) / 1e9:.1f} GB, {len(LEVELS)} configurations", flush=True)
    loops = [] if given.no_loops else [loop(drives, bins, work, 0, is_compiled=False), loop(drives, bins, work, 0),
                                       two_loops(drives, bins, work)]
    show(given, fleet(given, drives, bins, work), loops)
    return 0


if __name__ == "__main__":
    sys.exit(main())
