"""Tasks of a worker: small arguments come in, a small dict goes out, what is made lies in the folder of the run.

    map_id    the map of a configuration: staged, compiled, and its id
    prepare   a bag: staged, imported, indexed
    replay    ndtd on a bag, or on a piece of it, with a configuration
    join      the pieces of a bag with a configuration

Failures of a bag are returned; FleetError is for what makes a worker, or the whole run, useless.
"""
import contextlib
import re
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, Optional

import numpy as np

from ..report import bag_records
from ..report.run import flat_yaml
from . import bag_index, pieces, scan_table
from .job_settings import SweepError, version_of
from .replay_call import CallError, Limits, call, replay as call_replay
from .run_folder import Bag, BagIndex, Failure, FleetError, Job, RunFolder, digest, task_key
from .staging import Cache, StageError, local_path, stage_limit_s

REPLAY_S, REPLAY_PER_S = 60.0, 10.0  # a replay that takes longer than the first, and so many times its drive, has failed
TOKEN_LATE_S, INDEX_LATE_S = 3.0, 30.0  # after which a shared file system shows the run.json and the index that another machine has written
_COMPILE_S = 3600.0
_MAP_SETTINGS = ("ndt.levels", "ndt.min_points", "ndt.min_eigenvalue_ratio", "ndt.covariance", "ndt.outlier_ratio")
_ID = re.compile(r"\bid ([0-9a-f]{16})\b")


class Worker:
    """A process with the run that it works on."""

    def __init__(self, folder: RunFolder, job: Job):
        """FleetError: this machine has another ndtd, or no place for a cache."""
        self.host, self.folder, self.job = socket.gethostname(), folder, job
        self.cache = Cache(self.job.cache, self.job.cache_bytes, self.job.storage)
        try:
            version = version_of(job.program)
        except SweepError:  # killed from outside, or a file system that hung: once more
            version = version_of(job.program)
        self._check_version(version)
        self._ids: "dict[int, tuple[str, str]]" = {}  # by configuration: name of the cache's entry and id

    def _check_version(self, version: str) -> None:
        if version != self.job.version:
            raise FleetError(f"worker on {self.host}: {self.job.program} is {version}; the run needs {self.job.version}")

    # ---- maps

    def map_id(self, number: int) -> str:
        """Id of the compiled map of a configuration, as ndtd prints it. FleetError: there is no such map."""
        return self._map(number)[1]

    @contextlib.contextmanager
    def map_file(self, number: int) -> "Iterator[Path]":
        """The compiled map, as long as the context lasts."""
        name, _ = self._map(number)
        with self.cache.entry(name, 0, lambda part: self._compile(number, part)) as path:
            yield path

    def _map(self, number: int) -> "tuple[str, str]":
        if number not in self._ids:
            try:
                name = f"{self._map_key(number)}.ndtmap"
                found = self.folder.maps().get(name)
                if found is None:
                    found = self._find_id(name, number)
                self._ids[number] = (name, found)
            except StageError as error:
                raise StageError(f"map: {error}") from None
            except CallError as error:
                raise CallError(f"map: {error.reason}", error.lines, error.kind) from None
        return self._ids[number]

    def _map_key(self, number: int) -> str:
        """Key of the files of the map and the settings that shape what is compiled."""
        text = self._config_file(number).read_text(encoding="utf-8")
        settings = flat_yaml(text)
        shape = [f"{key}: {settings.get(key)}" for key in _MAP_SETTINGS]
        return digest(self.job.map, self.cache.map_fingerprint(self.job.map), self.job.version, *shape)

    def _find_id(self, name: str, number: int) -> str:
        found: "list[str]" = []
        with self.cache.entry(name, 0, lambda part: found.append(self._compile(number, part))) as path:
            if not found:  # another run has compiled it
                with tempfile.TemporaryDirectory(dir=self.cache.path, prefix=f"{name}.part.") as folder:
                    found.append(self._compile_from(path, number, Path(folder) / "again"))
        with self.folder.claim("maps"):
            self.folder.write_json(self.folder.path / "maps.json", {**self.folder.maps(), name: found[0]})
        return found[0]

    def _compile(self, number: int, part: Path) -> str:
        with self.cache.map_source(self.job.map) as source:
            return self._compile_from(source, number, part)

    def _compile_from(self, source: Path, number: int, part: Path) -> str:
        """Writes `part` and returns the id."""
        made = Path(f"{part}.ndtmap")
        with tempfile.TemporaryFile(dir=self.cache.path) as said:
            call([self.job.program, "--compile-map", str(made), "--map", str(source), "--config", str(self._config_file(number))],
                 Limits(timeout_s=_COMPILE_S), stdout=said)
            said.seek(0)
            found = _ID.search(said.read(1 << 16).decode("utf-8", "replace"))
        if found is None:
            raise CallError("ndtd --compile-map tells no id")
        made.replace(part)
        return found.group(1)

    def _config_file(self, number: int) -> Path:
        return self.folder.config_file(self.job.configurations[number])

    # ---- replays

    def rows(self, bag: Bag, index: BagIndex, number: int, first: int, end: int,
             overrides: "Sequence[str]" = ()) -> "tuple[Any, dict[str, Any]]":
        """Scans of a bag replayed from `first` to `end`: Table SCANS, and what of the run row the call alone tells."""
        job, configuration = self.job, self.job.configurations[number]
        is_whole = first == 0 and end == index.scans
        limits = Limits(job.memory_bytes, job.timeout_s or _time_limit_s(index, end - first))
        with self.cache.bag(bag, job.import_options, job.memory_bytes) as path, self.map_file(number) as map_file, \
                call_replay(job.program, path, map_file, self._config_file(number), self.cache.path, limits, first,
                            0 if is_whole else end - first, overrides) as found:
            self._check_version(f"ndtd {found.summary.get('version')} (commit {found.summary.get('commit')})")  # it may have been replaced
            try:
                table = scan_table.read_results(found.results, bag.url, configuration.name, _truth(path))
            except FleetError as error:  # of this bag alone
                raise CallError(f"ndtd: {error}") from None
        if found.summary["map_id"] != self.map_id(number):
            raise CallError(f"the map has id {found.summary['map_id']} on {self.host}, and {self.map_id(number)} where the run began")
        return table, {"trajectory_hash": found.summary["trajectory_hash"], "damage": index.damage or found.damage,
                       "hints": [*map(str, found.summary.get("hints") or ()), *found.warnings], "replay_s": found.wall_s,
                       "cpu_s": found.cpu_s, "peak_memory_bytes": found.summary.get("peak_memory_bytes")}

    def piece(self, bag: Bag, index: BagIndex, number: int, first: int, end: int) -> "tuple[Any, dict[str, Any]]":
        """Rows of a piece that is not the first, as rows(); no rows where ndtd cannot begin there, such as behind damage."""
        try:
            return self.rows(bag, index, number, first, end, pieces.START)
        except CallError as error:
            if error.kind != "failed":
                raise
            return scan_table.SCANS.empty_table(), {"failure": error.reason, "damage": "", "hints": [], "replay_s": 0.0, "cpu_s": 0.0,
                                                    "peak_memory_bytes": 0}

    def run_row(self, bag: Bag, index: BagIndex, number: int, table: Any, told: "dict[str, Any]") -> "dict[str, Any]":
        """The row of RUNS of what was replayed; told: that of rows()."""
        configuration = self.job.configurations[number]
        return {"status": "done", "bag": bag.url, "bag_hash": index.hash, "bag_bytes": index.bytes, "config": configuration.name,
                "config_hash": configuration.hash, "map_id": self.map_id(number), "version": self.job.version,
                **scan_table.measures(table), "pieces": 1, "seams_removed": 0, "attempts": 1, "worker": self.host,
                "ended_ns": time.time_ns(), **told}

    def key(self, index: BagIndex, number: int) -> str:
        job = self.job
        return task_key(index.hash, self.map_id(number), job.configurations[number].hash, job.version, job.import_options)

    def save(self, path: Path, table: Any, row: "dict[str, Any]") -> None:
        with self.folder.new_file(path, is_synced=False) as part:
            scan_table.write(part, table, row)


_here: "dict[str, Worker]" = {}  # the last one, by its folder


def _worker(folder: str, token: str) -> Worker:
    """Made anew where run.json is. FleetError: this machine sees another folder; those of Worker."""
    run = RunFolder(folder)

    def look() -> "Optional[Job]":
        job = run.job()
        return job if job.token == token else None

    try:
        job = _late(look, TOKEN_LATE_S)
    except FleetError as error:
        raise FleetError(f"worker on {socket.gethostname()}: {error}") from None
    if job is None:
        raise FleetError(f"{folder} is not the same folder on {socket.gethostname()}: all machines need it under this path")
    if folder not in _here or _here[folder].job is not job:
        _here.clear()
        _here[folder] = Worker(run, job)
    return _here[folder]


def _late(look: "Callable[[], Any]", limit_s: float) -> Any:
    """Waits for what look() finds; None: a shared file system that shows new files late does not show it for so long."""
    end = time.monotonic() + limit_s
    while True:
        found = look()
        if found is not None or time.monotonic() >= end:
            return found
        time.sleep(0.2)


# ---- the tasks


def map_id(folder: str, token: str, number: int) -> str:
    """The id of the map of a configuration, which is compiled where that has not been done. FleetError."""
    try:
        return _worker(folder, token).map_id(number)
    except (StageError, CallError) as error:
        raise FleetError(str(error)) from None


def prepare(folder: str, token: str, bag: Bag) -> "dict[str, Any]":
    """Indexes a bag, and decides in which pieces it is replayed."""
    worker = _worker(folder, token)
    job = worker.job
    try:
        with _claim(worker, bag.id, bag), worker.cache.bag(bag, job.import_options, job.memory_bytes) as path:
            found = bag_index.read(path)
            index = BagIndex(bag.url, bag.fingerprint, found.hash, path.stat().st_size, found.scans, found.begin_ns, found.end_ns,
                             found.damage, pieces.plan(found.times_ns, job.piece_s, job.warm_up_s))
            worker.folder.save_index(bag, index)
    except (StageError, CallError, FleetError, OSError) as error:
        return _failed(worker, bag.id, bag, "", error)
    return {"status": "done", "index": asdict(index)}


def replay(folder: str, token: str, bag: Bag, number: int, piece: "Optional[int]" = None) -> "dict[str, Any]":
    """Replays a bag, or one piece of it, with one configuration; `present`: its file was there."""
    worker = _worker(folder, token)
    try:
        index, key = _prepared(worker, bag, number)
    except (StageError, CallError, OSError) as error:  # of the map
        return _failed(worker, "", bag, worker.job.configurations[number].name, error)
    files = [worker.folder.done_file(key)] if piece is None else [worker.folder.piece_file(key, piece), worker.folder.done_file(key)]
    first, _, end = (0, 0, index.scans) if piece is None else index.pieces[piece]
    try:
        with _claim(worker, key if piece is None else f"{key}.{piece}", bag, index):
            for file in files:
                row = _row_of(file)
                if row is not None:
                    return {"status": "present", "key": key, "scans": row["scans"]}
            table, told = worker.piece(bag, index, number, first, end) if first else worker.rows(bag, index, number, first, end)
            worker.save(files[0], table, worker.run_row(bag, index, number, table, told))
    except (StageError, CallError, OSError) as error:
        return _failed(worker, key, bag, worker.job.configurations[number].name, error)
    return {"status": "done", "key": key, "scans": len(table), "replay_s": told["replay_s"]}


def join(folder: str, token: str, bag: Bag, number: int) -> "dict[str, Any]":
    """The pieces of one bag with one configuration, as one file; `present`: it was there."""
    worker = _worker(folder, token)
    try:
        index, key = _prepared(worker, bag, number)
    except (StageError, CallError, OSError) as error:  # of the map
        return _failed(worker, "", bag, worker.job.configurations[number].name, error)
    try:
        with _claim(worker, key, bag, index):
            row, status = _row_of(worker.folder.done_file(key)), "present"
            if row is None:
                row, status = _Joining(worker, bag, index, number, key).save(), "done"
            for piece in range(len(index.pieces)):
                worker.folder.piece_file(key, piece).unlink(missing_ok=True)
    except (StageError, CallError, OSError) as error:
        return _failed(worker, key, bag, worker.job.configurations[number].name, error)
    return {"status": status, "key": key, "scans": row["scans"], "replay_s": row["replay_s"]}


def _claim(worker: Worker, key: str, bag: Bag, index: "Optional[BagIndex]" = None) -> "contextlib.AbstractContextManager[None]":
    """RunFolder.claim() for as long as the task of another worker may take."""
    replays_s = 2 * (worker.job.timeout_s or _time_limit_s(index, index.scans)) if index else 0.0
    return worker.folder.claim(key, stage_limit_s(bag) + replays_s)


def _prepared(worker: Worker, bag: Bag, number: int) -> "tuple[BagIndex, str]":
    """The index that prepare() has left, and the key of the task."""
    index = _late(lambda: worker.folder.index(bag), INDEX_LATE_S)
    if index is None:
        raise StageError(f"{worker.folder.index_file(bag.id)}: is not there on {worker.host}, or the bag has changed since")
    return index, worker.key(index, number)


class _Joining:
    """The files of pieces on their way to one."""

    def __init__(self, worker: Worker, bag: Bag, index: BagIndex, number: int, key: str):
        self._worker, self._bag, self._index, self._number, self._key = worker, bag, index, number, key
        self._told: "list[dict[str, Any]]" = []

    def save(self) -> "dict[str, Any]":
        """Writes the file; returns its run row."""
        worker, index = self._worker, self._index
        table, removed = pieces.join(index.pieces, self._load, self._replay)
        told = {"trajectory_hash": pieces.trajectory_hash(table), "pieces": len(index.pieces) - removed, "seams_removed": removed,
                "damage": next((one["damage"] for one in self._told if one["damage"]), ""),
                "hints": list(dict.fromkeys(hint for one in self._told for hint in one["hints"])),
                **{name: sum(one[name] for one in self._told) for name in ("replay_s", "cpu_s")},
                "peak_memory_bytes": max(one["peak_memory_bytes"] or 0 for one in self._told)}
        row = worker.run_row(self._bag, index, self._number, table, told)
        worker.save(worker.folder.done_file(self._key), table, row)
        return row

    def _load(self, piece: int) -> Any:
        """The rows of a piece, from its file or, where a failing disk has left none, from its replay."""
        path = self._worker.folder.piece_file(self._key, piece)
        try:
            row, rows = scan_table.read_run_row(path), scan_table.read_scans(path)
        except FleetError:
            return self._replay(*self._index.pieces[piece])
        self._told.append(row)
        return rows if len(rows) else None

    def _replay(self, first: int, _keep: int, end: int) -> Any:
        rows = self._worker.piece if first else self._worker.rows
        table, told = rows(self._bag, self._index, self._number, first, end)
        self._told.append(told)
        return table if len(table) else None


# ---- parts


def _time_limit_s(index: BagIndex, scans: int) -> float:
    return REPLAY_S + REPLAY_PER_S * (index.end_ns - index.begin_ns) * 1e-9 * scans / max(index.scans, 1)


def _row_of(path: Path) -> "Optional[dict[str, Any]]":
    """The run row of a file that is there and whole."""
    try:
        return scan_table.read_run_row(path) if path.exists() else None
    except FleetError:
        return None


def _truth(path: Path) -> "tuple[np.ndarray, np.ndarray]":
    info = path.stat()
    return _truth_of(str(path), info.st_size, info.st_mtime_ns)


@lru_cache(maxsize=4)
def _truth_of(path: str, _size: int, _mtime_ns: int) -> "tuple[np.ndarray, np.ndarray]":
    """Read once for all configurations and pieces of a bag."""
    return bag_records.truth(path)


def _failed(worker: Worker, key: str, bag: Bag, config: str, error: Exception) -> "dict[str, Any]":
    reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    lines, kind = (error.lines, error.kind) if isinstance(error, CallError) else ((), "failed")
    return {"status": "failed", "key": key, "scans": 0, "failure": asdict(Failure(
        key, bag.url, config, _without_name(" ".join(reason.split()), worker, bag), tuple(lines), 1, kind, worker.host, time.time_ns()))}


def _without_name(reason: str, worker: Worker, bag: Bag) -> str:
    """A reason without the bag at its begin, which a failure names anyway."""
    head, _, rest = reason.partition(": ")
    is_bag = head in (bag.url, str(local_path(bag.url))) or Path(head).parent == worker.cache.path
    return rest if rest and is_bag else reason
