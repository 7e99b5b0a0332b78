"""Progress of a run, by its folder: from any machine that sees the folder, while `ndt-fleet run` works and afterwards.

    values = read("RUN")
    print(text(values)); print(json.dumps(values))
"""
import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Optional

from ..report.verdict import NB, count, duration
from . import tables
from .run_folder import Bag, BagIndex, RunFolder

RUNNING, STOPPED, DONE, EMPTY = "running", "stopped", "done", "no bags"
WINDOW_S, WINDOW_TASKS = 300.0, 20  # rates are those of the last tasks: at least of so long or of so many
SHOWN = 10  # failures and damaged bags that are listed


def read(folder: Any) -> "dict[str, Any]":
    """The object that `ndt-fleet status --json` prints. FleetError: not the folder of a run.

    Opens the index of every bag and the failures that are shown; of done files the names and dates are enough."""
    run = RunFolder(folder)
    job, found = run.job(), tables.bags(run)
    now = time.time()
    progress = run.read_json(run.path / "progress.json") or {}
    is_running = is_locked(run)
    counted = _Count(run)
    for task in tables.tasks(run, found):
        counted.add(task)
    left = counted.tasks - len(counted.done) - len(counted.failed)
    begin = progress.get("started_ns", 0) * 1e-9
    out = {
        "folder": str(run.path), "state": RUNNING if is_running else EMPTY if not found else STOPPED if left else DONE,
        "host": progress.get("host"), "pid": progress.get("pid"), "workers": progress.get("workers") if is_running else 0,
        "version": job.version, "map": job.map, "configurations": [one.name for one in job.configurations],
        "bags": len(found), "copies": len(found) - counted.bags, "bytes": sum(bag.bytes for bag in found), "indexed": counted.indexed,
        "damaged": len(counted.damaged), "tasks": counted.tasks, "done": len(counted.done), "failed": len(counted.failed), "left": left,
        "scans": sum(one.scans for one in counted.done), "scans_left": counted.scans_left(),
        **_rates(counted.done, begin, now if is_running else None),
        "running_s": now - begin if is_running and begin else None,
        **counted.failures(), "damaged_bags": counted.damaged[:SHOWN]}
    rate, scans_left = out["scans_per_s"], out["scans_left"]
    out["left_s"] = scans_left / rate if is_running and rate and scans_left is not None else None
    return out


def is_locked(run: RunFolder) -> bool:
    """Whether an `ndt-fleet run` works on it, on any machine: it holds RUN/lock."""
    try:
        with open(run.path / "lock", "rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def text(values: "dict[str, Any]") -> str:
    """The lines of `ndt-fleet status`."""
    lines = [f"{values['folder']}: {_state(values)}",
             f"tasks    {_grouped(values['done'])} of {_grouped(values['tasks'])} done ({_percent(values['done'], values['tasks'])}), "
             f"{_grouped(values['failed'])} failed, {_grouped(values['left'])} left",
             f"bags     {_grouped(values['bags'])} ({values['bytes'] / 1e9:.3g} GB), {_grouped(values['indexed'])} indexed, "
             f"{_grouped(values['damaged'])} damaged, {_grouped(values['copies'])} with the content of others; "
             f"{count(len(values['configurations']), 'configuration')}",
             f"scans    {_scans(values)}"]
    lines += [f"failed   {one['bag']}{' with ' + one['config'] if one['config'] else ''}: {one['reason']} "
              f"({one['kind']}, {count(one['attempts'], 'attempt')})" for one in values["failures"]]
    lines += _further(values["further_failures"], "failed")
    lines += [f"damaged  {one['bag']}: {one['damage']}" for one in values["damaged_bags"]]
    lines += _further(values["damaged"] - len(values["damaged_bags"]), "damaged")
    return "\n".join("".join(one if one.isprintable() else " " if one == NB else "?" for one in line) for line in lines)


class _Finished(NamedTuple):
    ended_s: float
    scans: int


class _Count:
    """Sums over the tasks of a run."""

    def __init__(self, run: RunFolder):
        self._run = run
        self._done_files, self._failed_files = _dates(run.path / "done", ".parquet"), _dates(run.path / "failed", ".json")
        self._scans = self._bytes = 0  # of the bags that are indexed
        self._left_scans = self._left_bytes = 0  # of the tasks that are left; bytes: of the bags that are not indexed
        self._last: "Optional[Bag]" = None
        self.tasks = self.bags = self.indexed = 0
        self.done: "list[_Finished]" = []
        self.failed: "list[tuple[float, str, tables.Task]]" = []  # date, key
        self.damaged: "list[dict[str, str]]" = []

    def add(self, task: tables.Task) -> None:
        """Adds a task; tasks of one bag have to follow each other."""
        self.tasks += 1
        if task.bag != self._last:
            self.bags += 1
            self._add_bag(task.bag, task.index)
        self._last = task.bag
        ended = next((self._done_files[key] for key in task.keys if key in self._done_files), None)
        failed = next((key for key in task.keys or (task.bag.id,) if key in self._failed_files), None)
        if ended is not None:
            self.done.append(_Finished(ended, task.index.scans if task.index else 0))
        elif failed is not None:
            self.failed.append((self._failed_files[failed], failed, task))
        elif task.index:
            self._left_scans += task.index.scans
        else:
            self._left_bytes += task.bag.bytes

    def _add_bag(self, bag: Bag, index: "Optional[BagIndex]") -> None:
        if index is None:
            return
        self.indexed += 1
        self._scans, self._bytes = self._scans + index.scans, self._bytes + bag.bytes
        if index.damage:
            self.damaged.append({"bag": bag.url, "damage": index.damage})

    def scans_left(self) -> "Optional[int]":
        """Estimate of the scans left; bags that are not indexed count by their size. None: nothing tells."""
        if not self._left_bytes:
            return self._left_scans
        return self._left_scans + round(self._left_bytes * self._scans / self._bytes) if self._bytes else None

    def failures(self) -> "dict[str, Any]":
        """The last ones first, and how many more there are; a bag that cannot be read is one."""
        keys = dict.fromkeys(key for _, key, _ in sorted(self.failed, key=lambda one: -one[0]))
        out = []
        for key in list(keys)[:SHOWN]:
            found = self._run.failure(key)
            if found is not None:
                out.append({"bag": found.bag, "config": found.config, "kind": found.kind, "reason": found.reason,
                            "lines": list(found.lines),
                            "attempts": found.attempts, "worker": found.worker, "ended_ns": found.ended_ns})
        return {"failures": out, "further_failures": len(keys) - len(out)}


def _dates(folder: Path, suffix: str) -> "dict[str, float]":
    """Names, without suffix, and dates of the whole files in the 256 folders."""
    return {entry.name[:-len(suffix)]: entry.stat().st_mtime for part in _entries(folder) if part.is_dir()
            for entry in _entries(Path(part.path)) if entry.name.endswith(suffix) and not entry.name.startswith(".")}


def _entries(folder: Path) -> "Iterator[os.DirEntry[str]]":
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        yield from entries


def _rates(done: "list[_Finished]", begin_s: float, now_s: "Optional[float]") -> "dict[str, Any]":
    """Rates of the last tasks that ended since begin_s; now_s: None where nothing runs, then until the last of them."""
    ended = sorted(one for one in done if one.ended_s >= begin_s)
    if not ended:
        return {"scans_per_s": None, "tasks_per_s": None, "rate_over_s": None}
    end_s = ended[-1].ended_s if now_s is None else now_s
    first = min(sum(one.ended_s < end_s - WINDOW_S for one in ended), max(len(ended) - WINDOW_TASKS, 0))
    since_s = max(begin_s, ended[first - 1].ended_s if first else ended[0].ended_s if not begin_s else begin_s)
    used = ended[first:]
    over_s = end_s - since_s
    if over_s <= 0:
        return {"scans_per_s": None, "tasks_per_s": None, "rate_over_s": None}
    return {"scans_per_s": sum(one.scans for one in used) / over_s, "tasks_per_s": len(used) / over_s, "rate_over_s": over_s}


def _state(values: "dict[str, Any]") -> str:
    if values["state"] != RUNNING:
        return str(values["state"]) + (", nothing is to do" if values["state"] == EMPTY else "")
    where = f" on {values['host']} (pid {values['pid']})" if values["host"] else ""
    since = f" for {duration(values['running_s'])}" if values["running_s"] is not None else ""
    return f"running{where}{since}" + (f", {count(values['workers'], 'worker')}" if values["workers"] else "")


def _scans(values: "dict[str, Any]") -> str:
    left = "" if values["scans_left"] is None else f", {_grouped(values['scans_left'])} left"
    rate = f"; {values['scans_per_s']:.4g}/s over the last {duration(values['rate_over_s'])}" if values["scans_per_s"] else ""
    end = f"; {duration(values['left_s'])} left" if values["left_s"] is not None else ""
    return f"{_grouped(values['scans'])} done{left}{rate}{end}"


def _further(number: int, what: str) -> "list[str]":
    return [f"{what:8} {_grouped(number)} more"] if number > 0 else []


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _percent(part: int, total: int) -> str:
    return f"{100 * part / total:.3g} %" if total else "0 %"
