"""Parts that the tests of ndt-fleet share: many drives over one map, calls of the command, schedulers, a program that logs the replays."""
import contextlib
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pyarrow.parquet as pq

SWEEP = "ndt.levels=[4.0,2.0,1.0],[2.0,1.0]"
DRIVES = int(os.environ.get("NDT_FLEET_DRIVES") or 5)
LENGTHS = [6] * (DRIVES - 1) + [60]  # scans; the last drive is cut into pieces
OPTIONS = ("--set", "preprocess.deskew=time", "--sweep", SWEEP, "--piece", 0.04, "--warm-up", 0.5)
FLEET = [sys.executable, "-m", "ndtd.ndt_fleet"]
RECORDER = r"""#!{python} -SE
import fcntl, hashlib, json, os, subprocess, sys, time
if "--replay" not in sys.argv:
    os.execv({ndtd!r}, [{ndtd!r}, *sys.argv[1:]])
def value(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else ""
task = [os.path.basename(value("--replay")), os.path.basename(value("--config")), value("--skip")]
def say(event, **more):
    line = json.dumps(dict(event=event, task=task, pid=os.getpid(), worker=parent, at_ns=time.time_ns(), **more)) + "\n"
    os.write(log, line.encode())
parent = os.getppid()
log = os.open({folder!r} + "/log.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
lock = os.open({folder!r} + "/" + hashlib.md5(repr(task).encode()).hexdigest(), os.O_RDWR | os.O_CREAT, 0o644)
os.set_inheritable(lock, True)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    say("twice")
say("begin")
time.sleep({pause_s})
while os.path.exists({folder!r} + "/hold") and open({folder!r} + "/hold").read() == task[0]:
    time.sleep(0.02)
same = '[ "$PPID" = %d ] && exec "$0" "$@"' % os.getpid()
code = subprocess.call(["setpriv", "--pdeathsig", "KILL", "sh", "-c", same, {ndtd!r}, *sys.argv[1:]], close_fds=False)
say("end", code=code)
sys.exit(code if code >= 0 else 128 - code)
"""


class Drives(NamedTuple):
    """Bags that share a map. scans: of each bag, by its url."""

    bags: "list[Path]"
    map: Path
    scans: "dict[str, int]"

    @property
    def pattern(self) -> str:
        return f"{self.bags[0].parent}/*.bag"


def cut(ndt_bag: Path, whole: Path, map_file: Path, folder: Path, lengths: "Sequence[int]") -> Drives:
    """Drives of so many scans each, one after the other, out of one."""
    folder.mkdir(parents=True, exist_ok=True)
    bags, first = [], 1
    for number, length in enumerate(lengths):
        bags.append(folder / f"{whole.stem}_{number:04d}.bag")
        subprocess.run([str(ndt_bag), "cut", str(whole), "--scans", f"{first}-{first + length - 1}", "--initial", "first", "--out",
                        str(bags[-1])], check=True, stdout=subprocess.DEVNULL)
        first += length
    return Drives(bags, map_file, {str(bag): length for bag, length in zip(bags, lengths)})


def recorder(folder: Path, ndtd: Path, pause_s: float = 0.0) -> Path:
    """A program that is ndtd, and logs begin and end of each replay, and whether the same one ran already; see events(). It is slower by
    pause_s, and replays of the bag that a file `hold` beside it names wait until that is gone."""
    folder.mkdir()
    path = folder / "ndtd"
    path.write_text(RECORDER.format(python=sys.executable, ndtd=str(ndtd), folder=str(folder), pause_s=pause_s))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def events(program: Path) -> "list[dict[str, Any]]":
    """Events of a recorder: event (begin, end, twice), task (bag, configuration, skipped scans), worker (its pid), at_ns; code at the end."""
    log = program.with_name("log.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def start(*arguments: Any, environment: "dict[str, str]", log: Path) -> "subprocess.Popen[bytes]":
    """Starts `ndt-fleet ARGUMENTS`."""
    with log.open("ab") as stream:
        return subprocess.Popen([*FLEET, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
                                env={**os.environ, **environment})


def call(*arguments: Any, environment: "dict[str, str]", log: Path, code: int = 0, meanwhile: "Optional[Callable[[], None]]" = None) -> str:
    """Runs `ndt-fleet ARGUMENTS`, checks its exit code, returns what it said."""
    begin = log.stat().st_size if log.exists() else 0
    process = start(*arguments, environment=environment, log=log)
    try:
        if meanwhile:
            meanwhile()
        found = process.wait(1800)
    finally:
        process.kill()
    said = log.read_bytes()[begin:].decode(errors="replace")
    assert found == code, f"ndt-fleet {' '.join(map(str, arguments))}: {found}\n{said}"
    assert "Traceback" not in said, said
    return said


class Scheduler(NamedTuple):
    """One with workers, each a process of its own. file: what --cluster wants, as the address."""

    file: Path
    address: str
    process: "subprocess.Popen[bytes]"


@contextlib.contextmanager
def scheduler(folder: Path, workers: int = 2, environment: "Optional[dict[str, str]]" = None,
              hosts: "Sequence[str]" = ("127.0.0.1",), protocol: str = "tcp") -> "Iterator[Scheduler]":
    """A scheduler with workers, of which nothing is left afterwards. hosts: addresses of the workers, in turn."""
    folder.mkdir()
    place, started = folder / "scheduler.json", []
    with (folder / "log").open("wb") as log:
        def begin(name: str, *options: str) -> None:
            words = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", f"distributed.cli.{name}", "--scheduler-file", str(place),
                     "--no-dashboard", *options]
            started.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder,
                                            env={**os.environ, **(environment or {})}))

        try:
            begin("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--protocol", protocol)
            wait_until(place.exists, "scheduler")
            for number in range(workers):
                begin("dask_worker", "--nthreads", "1", "--no-nanny", "--local-directory", str(folder), "--host", hosts[number % len(hosts)])
            yield Scheduler(place, json.loads(place.read_text())["address"], started[0])
        finally:
            for process in started:  # without asking: a worker without its scheduler takes seconds to end
                process.kill()
                process.wait(60)


def result(run: Path) -> "tuple[str, Any, Any]":
    """Digest, and the columns of both tables that are the same wherever it ran, with plain texts."""
    from ndtd.fleet import scan_table, tables

    out = []
    for name, schema in (("runs.parquet", scan_table.RUNS), ("scans.parquet", scan_table.SCANS)):
        found = pq.read_table(run / name).select(tables.result_columns(schema))
        for index, column in enumerate(found.schema):
            if str(column.type).startswith("dictionary"):
                found = found.set_column(index, column.name, found.column(index).cast("string"))
        out.append(found.combine_chunks())
    return (tables.digest(run / "runs.parquet"), *out)


def left_behind(run: Path) -> "list[str]":
    """Temporary files below a run that no process works on."""
    return [str(path) for path in run.rglob(".*") if path.is_file()]


def wait_until(condition: Any, what: str, seconds: float = 120) -> None:
    """A limit, so that a test ends that waits for what does not come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"no {what} within {seconds:g} s"
        time.sleep(0.05)
