"""Calls of programs with limits of memory and time, which end with their caller: ndtd --replay, and any other."""
import contextlib
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .run_folder import FleetError

MOST_LINES, MOST_LETTERS = 20, 300  # of what a program said that are kept
_TAIL = 1 << 16  # bytes of it
_MOST_SUMMARY = 1 << 22
_NO_MEMORY = re.compile(r"\b(no|out of|not enough) memory\b|(cannot|unable to) allocate|memory allocation|MemoryError", re.IGNORECASE)
_WARNING = "ndtd: warning: "


@dataclass(frozen=True)
class Limits:
    """Limits of one program; 0: none."""

    memory_bytes: int = 0
    timeout_s: float = 0.0


class CallError(Exception):
    """A program that failed: one line, its last lines, and the kind of failure: failed, timeout, memory (see Failure)."""

    def __init__(self, reason: str, lines: "Sequence[str]" = (), kind: str = "failed"):
        super().__init__(reason)
        self.reason, self.lines, self.kind = reason, tuple(lines), kind


@dataclass(frozen=True)
class Ended:
    """A program that did what it should."""

    lines: "tuple[str, ...]"  # the last ones on standard error
    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class Replayed:
    """Files that ndtd --replay left. results: of --results, open and without a name; damage: why it did not reach the bag's end, or ""."""

    results: Any
    summary: "dict[str, Any]"
    damage: str
    warnings: "tuple[str, ...]"  # the others
    wall_s: float
    cpu_s: float


# ---- any program


def call(command: "Sequence[str]", limits: Limits, pass_fds: "Sequence[int]" = (), stdout: Any = subprocess.DEVNULL,
         name: str = "") -> Ended:
    """Runs a program to its end; name: its own, "": that of the file. CallError: it failed, or went beyond a limit. FleetError: it
    cannot be started."""
    begin = time.monotonic()
    try:
        process = subprocess.Popen([*_dies_with_us(), *command], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                                   pass_fds=pass_fds)
    except OSError as error:
        raise FleetError(f"{command[0]}: cannot be started: {error.strerror}") from None
    if limits.memory_bytes:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (limits.memory_bytes, limits.memory_bytes))
    is_late, tail, usage = _watch(process, begin + limits.timeout_s if limits.timeout_s else None)
    lines = tuple(line[:MOST_LETTERS] for line in tail.decode("utf-8", "replace").splitlines() if line.strip())[-MOST_LINES:]
    if is_late or process.returncode:
        raise _failure(name or os.path.basename(command[0]), process.returncode, is_late, lines, limits)
    return Ended(lines, time.monotonic() - begin, usage.ru_utime + usage.ru_stime)


def _dies_with_us() -> "tuple[str, ...]":
    """The words before a command that let it end when this process is killed, and not begin where that was before setpriv could see it."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise FleetError("setpriv, which ends programs with their worker, is not installed: it is a part of util-linux")
    return (setpriv, "--pdeathsig", "KILL", "sh", "-c", f'[ "$PPID" = {os.getpid()} ] && exec "$0" "$@"')


def _watch(process: Any, deadline: "Optional[float]") -> "tuple[bool, bytes, Any]":
    """Waits until the process ends: whether it had to be ended, the tail of its standard error, and the resources that it used."""
    tail, is_late = bytearray(), False
    ended = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        for one in (ended, process.stderr.fileno()):
            poll.register(one, select.POLLIN)
        while True:
            left_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000.0
            ready = {one for one, _ in poll.poll(left_ms)}
            if not ready:
                is_late, deadline = True, None
                process.kill()
            if process.stderr.fileno() in ready:
                data = os.read(process.stderr.fileno(), _TAIL)
                tail = (tail + data)[-_TAIL:]
                if not data:
                    poll.unregister(process.stderr.fileno())
            elif ended in ready:
                break
    except BaseException:
        process.kill()
        raise
    finally:
        os.close(ended)
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return is_late, bytes(tail), usage


def _failure(name: str, code: int, is_late: bool, lines: "tuple[str, ...]", limits: Limits) -> CallError:
    last = lines[-1] if lines else ""
    told = last[len(name) + 2:] if last.startswith(f"{name}: ") else last
    if is_late:
        return CallError(f"{name}: not done after {limits.timeout_s:g} s, the limit (--timeout)", lines, "timeout")
    if code == -signal.SIGKILL:  # not by us
        return CallError(f"{name}: killed from outside, as the system does when memory runs out", lines, "memory")
    if _NO_MEMORY.search(last):
        limit = f" with the limit of {limits.memory_bytes / (1 << 30):.3g} GiB (--memory)" if limits.memory_bytes else ""
        return CallError(f"{name}: out of memory{limit}: {told}", lines, "memory")
    if code < 0:
        return CallError(f"{name}: ended by {signal.Signals(-code).name}" + (f": {told}" if told else ""), lines)
    return CallError(told or f"{name}: exit status {code}", lines)


# ---- ndtd --replay


@contextlib.contextmanager
def replay(program: str, bag: Any, map_file: Any, config_file: Any, work: Any, limits: Limits, skip: int = 0,
           limit: int = 0, overrides: "Sequence[str]" = ()) -> "Iterator[Replayed]":
    """Replays the scans from `skip` on, at most `limit` (0: all), in one thread. work: a folder with room for the results, in files
    without names, which no killed worker leaves behind. CallError as call(), or what ndtd left is not whole."""
    with tempfile.TemporaryFile(dir=work) as results, tempfile.TemporaryFile(dir=work) as summary:
        command = [program, "--replay", str(bag), "--map", str(map_file), "--config", str(config_file), "--threads", "1",
                   "--set", "cpu.pin_threads=false", "--results", f"/dev/fd/{results.fileno()}", "--summary", f"/dev/fd/{summary.fileno()}"]
        for one in overrides:
            command += ["--set", one]
        if skip:
            command += ["--skip", str(skip)]
        if limit:
            command += ["--limit", str(limit)]
        ended = call(command, limits, (results.fileno(), summary.fileno()))
        results.seek(0)
        warnings = [line[len(_WARNING):] for line in ended.lines if line.startswith(_WARNING)]
        of_bag = [line for line in warnings if line.startswith(f"{bag}: ")]
        yield Replayed(results, _summary(summary), "; ".join(line[len(str(bag)) + 2:] for line in of_bag),
                       tuple(line for line in warnings if line not in of_bag), ended.wall_s, ended.cpu_s)


def _summary(stream: Any) -> "dict[str, Any]":
    """CallError: not one that names map and trajectory."""
    stream.seek(0)
    try:
        found: "dict[str, Any]" = json.loads(stream.read(_MOST_SUMMARY))
        if not all(re.fullmatch("[0-9a-f]{16}", found[key]) for key in ("trajectory_hash", "map_id")):
            raise ValueError("hashes have 16 digits")
    except (ValueError, KeyError, TypeError) as error:
        raise CallError(f"ndtd: its summary cannot be used: {' '.join(str(error).split())[:100]}") from None
    return found
