"""The result of a run: runs.parquet, a row for every bag and configuration, and scans.parquet, a folder of tables with all their scans.

    collect("RUN")
    runs = pandas.read_parquet("RUN/runs.parquet")
    scans = pandas.read_parquet("RUN/scans.parquet", columns=["bag", "seq", "error_m"], filters=[("config", "==", "base")])
    pyarrow.dataset.dataset("RUN/scans.parquet").to_table(filter=pyarrow.dataset.field("bag") == url)
    polars.scan_parquet("RUN/scans.parquet/*.parquet").filter(polars.col("confidence") < 0.5).collect()
    duckdb.sql("SELECT config, median(error_m) FROM 'RUN/scans.parquet/*.parquet' WHERE trusted GROUP BY config")
    spark.read.parquet("RUN/scans.parquet").where("outcome != 'converged'").groupBy("bag").count()

Scans are sorted by bag and config, those of a replay as they are in the bag; each row group tells its first and last bag, so that readers
skip the others (of texts that are no dictionaries: bag and config are none here, other than in done files). A part is named after what is in
it, and `scans.parquet` is a link to the folder of one collection. It is replaced in one step: a reader that has listed the parts before
finds them as they were or not at all, never rows twice. Parts that stay the same are linked, not written again.
"""
import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Optional

from .._extras import need, one_line
from .._progress import Progress
from . import run_folder
from .run_folder import Bag, BagIndex, Configuration, Failure, FleetError, RunFolder, task_key

RUNS_NAME, SCANS_NAME = "runs.parquet", "scans.parquet"
MOST_ROWS, MOST_TASKS, MOST_BYTES = 4_000_000, 10_000, 1 << 30  # of a part
GROUP_ROWS = 1 << 17  # of a row group
_EFFORT = ("attempts", "worker", "replay_s", "cpu_s", "peak_memory_bytes", "ended_ns")  # and times of ndtd
_EFFORT_ENDS = ("_us", "_ms_p50", "_ms_p95", "_ms_max")
_FOLDER = ".scans-"  # begin of the names of the folders of collections
_SORTED = ["bag", "config", "seq"]


class Tables(NamedTuple):
    """Tables that collect() has written."""

    runs: Path
    scans: Path
    broken: int  # done files that were removed: their tasks are left
    done: int  # tasks that are in both


@dataclass
class Task:
    """A bag with a configuration. keys: that its result may have; none: the bag is not indexed."""

    bag: Bag
    configuration: Configuration
    index: "Optional[BagIndex]"
    keys: "tuple[str, ...]"

    def failure(self, run: RunFolder) -> "Optional[Failure]":
        """The last one, of a task that is not done."""
        return next((found for found in map(run.failure, self.keys or (self.bag.id,)) if found), None)


def tasks(run: RunFolder, found: "list[Bag]") -> "Iterator[Task]":
    """Tasks of some bags, sorted by the url of the bag and the name of the configuration; the first stands for bags of the same content."""
    job = run.job()
    configurations = sorted(zip(job.configurations, map_ids(run)), key=lambda one: one[0].name)
    seen: "set[str]" = set()
    for bag in sorted(found, key=lambda one: one.url):
        index = run.index(bag)
        if index is not None:
            if index.hash in seen:
                continue
            seen.add(index.hash)
        for one, maps in configurations:
            keys = (task_key(index.hash, map_id, one.hash, job.version, job.import_options) for map_id in maps) if index else ()
            yield Task(bag, one, index, tuple(keys))


def bags(run: RunFolder) -> "list[Bag]":
    """Bags of bags.json; none before they were looked for."""
    path = run.path / "bags.json"
    try:
        return [Bag(**one) for one in run.read_json(path) or ()]
    except TypeError as error:
        raise FleetError(f"{path}: not the bags of a run: {error}") from None


def map_ids(run: RunFolder) -> "list[tuple[str, ...]]":
    """Map ids of each configuration: the map that the last call has found, or all that there were, the newest first."""
    count = len(run.job().configurations)
    last = (run.read_json(run.path / "progress.json") or {}).get("map_ids") or []
    if len(last) == count:
        return [(str(one),) for one in last]
    known = run.maps()
    return [tuple(dict.fromkeys(reversed([str(one) for one in known.values()])))] * count


def collect(folder: Any, tell: "Optional[Callable[[str], None]]" = None, quiet: bool = True) -> Tables:
    """Writes the tables of what is done and failed by now. Memory is that of the list of bags and of one row group.

    A done file that cannot be read is removed, and `tell` gets a line: that task is not done. quiet: no progress on a terminal."""
    run = RunFolder(folder)
    run.job()
    with run.claim("tables"):
        try:
            collection = _Collection(run, tell or _print, Progress("tables", quiet))
            collection.write()
        finally:
            _remove_old(run)
    return Tables(run.path / RUNS_NAME, run.path / SCANS_NAME, collection.broken, collection.done)


def digest(runs: Any) -> str:
    """Digest of a runs.parquet: equal where the same bags and configurations have the same trajectories, whatever ran them."""
    columns = ["bag_hash", "config_hash", "trajectory_hash", "status"]
    rows = []
    for batch in need("pyarrow.parquet", "fleet").ParquetFile(runs).iter_batches(columns=columns):
        cells = ([value or "" for value in batch[name].to_pylist()] for name in columns)
        rows += [run_folder.digest(*row) for row in zip(*cells)]
    return run_folder.digest(*sorted(rows))


def result_columns(schema: Any) -> "list[str]":
    """The columns of SCANS or RUNS that are the same wherever a run is done; the others are its effort: times, memory, workers."""
    return [name for name in schema.names if name not in _EFFORT and not name.endswith(_EFFORT_ENDS)]


def scan_schema() -> Any:
    """Schema of scans.parquet: SCANS with bag and config as plain texts, by which pyarrow can skip row groups."""
    from . import scan_table

    string = need("pyarrow", "fleet").string()
    fields = (field.with_type(string) if field.name in ("bag", "config") else field for field in scan_table.SCANS)
    return need("pyarrow", "fleet").schema(list(fields))


class _Done(NamedTuple):
    """A done file, and its run row with the bag as this run names it."""

    path: Path
    row: "dict[str, Any]"
    rows: int
    bytes: int


class _Broken(Exception):
    """A done file that cannot be read."""

    def __init__(self, path: Path, reason: Any):
        super().__init__(f"{path}: not the result of a replay: {' '.join(str(reason).split())[:100].rstrip('.')}")
        self.path = path


class _Collection:
    def __init__(self, run: RunFolder, tell: "Callable[[str], None]", progress: Progress):
        from . import scan_table

        self._run, self._job, self._tell, self._progress, self._tables = run, run.job(), tell, progress, scan_table
        self._pa, self._pq = need("pyarrow", "fleet"), need("pyarrow.parquet", "fleet")
        self._parts = self.broken = self.done = 0
        self._schema = scan_schema()
        old = run.path / SCANS_NAME
        self._old = {path.stem.rsplit("-", 1)[-1]: path for path in old.glob("part-*-*.parquet")}  # digest of the content -> part

    def write(self) -> None:
        runs = self._tables.RUNS
        new = Path(tempfile.mkdtemp(dir=self._run.path, prefix=_FOLDER))
        new.chmod(0o755)
        with self._run.new_file(self._run.path / RUNS_NAME) as part:
            with self._progress, self._pq.ParquetWriter(part, runs, compression="zstd") as writer:
                held: "list[dict[str, Any]]" = []
                for group in self._groups():
                    held += self._write_group(group, new)
                    if len(held) >= MOST_TASKS:
                        writer.write_table(self._pa.Table.from_pylist(held, runs))
                        held = []
                if held or not self._parts:
                    writer.write_table(self._pa.Table.from_pylist(held, runs))
            if not self._parts:
                self._write_part(new, [])  # a table without rows is one, a folder without parts is none
            _sync_folder(new)
            _point(self._run.path / SCANS_NAME, new)

    def _groups(self) -> "Iterator[list[Any]]":
        """Done files (_Done) and failures (run rows) of each part, in the order of the tables.

        Which bag is the last of a part is decided by the bag itself, so that one more bag does not move all that follow."""
        found = bags(self._run)
        total = len(found) * len(self._job.configurations)
        group: "list[Any]" = []
        filled = step = 0.0  # of a part; by the last bag
        last: "Optional[Bag]" = None
        for number, task in enumerate(tasks(self._run, found)):
            self._progress.update(number / total, f"{number} tasks")
            if last and task.bag != last:
                if group and _ends(last, filled, step):
                    yield group
                    group, filled = [], 0.0
                step = 0.0
            last = task.bag
            one = self._find(task)
            if one is not None:
                group.append(one)
                part = max(one.rows / MOST_ROWS, one.bytes / MOST_BYTES, 1 / MOST_TASKS) if isinstance(one, _Done) else 1 / MOST_TASKS
                filled, step = filled + part, step + part
        if group:
            yield group

    def _find(self, task: Task) -> Any:
        """State of a task: _Done, the run row of a failure, or None."""
        for key in task.keys:
            try:
                return self._open(self._run.done_file(key), task)
            except FileNotFoundError:
                continue
            except _Broken as error:
                self._drop(error)
        failure = task.failure(self._run)
        return None if failure is None else self._failed_row(task, failure)

    def _open(self, path: Path, task: Task) -> _Done:
        with _reading(path), path.open("rb") as stream:
            file = self._pq.ParquetFile(stream)
            if not file.schema_arrow.equals(self._tables.SCANS):
                raise ValueError("has other columns")
            stream.seek(0)
            try:
                row = self._tables.read_run_row(stream)
            except FleetError:
                raise ValueError("has no run row") from None
            names = {**self._names(task), "damage": (task.index.damage if task.index else "") or row["damage"]}
            return _Done(path, {**row, **names}, file.metadata.num_rows, os.fstat(stream.fileno()).st_size)

    def _names(self, task: Task) -> "dict[str, Any]":
        """The bag may have been replayed under another url with the same content."""
        return {"bag": task.bag.url, "bag_bytes": task.index.bytes if task.index else task.bag.bytes,
                "config": task.configuration.name, "config_hash": task.configuration.hash}

    def _failed_row(self, task: Task, failure: Failure) -> "dict[str, Any]":
        found = {"bag_hash": task.index.hash, "damage": task.index.damage} if task.index else {}
        return {"status": "failed", **self._names(task), **found, "version": self._job.version,
                "failure": failure.reason, "failure_kind": failure.kind, "attempts": failure.attempts, "worker": failure.worker,
                "ended_ns": failure.ended_ns}

    def _drop(self, error: _Broken) -> None:
        error.path.unlink(missing_ok=True)
        self.broken += 1
        self._tell(f"{error}: removed; `ndt-fleet run --out {self._run.path}` makes it again")

    # ---- parts

    def _write_group(self, group: "list[Any]", new: Path) -> "list[dict[str, Any]]":
        """Writes one part, without files that turn out to be broken, and returns its run rows."""
        while True:
            done = [one for one in group if isinstance(one, _Done)]
            try:
                if done:
                    self._write_part(new, done)
                self.done += len(done)
                return [one.row if isinstance(one, _Done) else one for one in group]
            except _Broken as error:
                self._drop(error)
                group = [one for one in group if not (isinstance(one, _Done) and one.path == error.path)]

    def _write_part(self, new: Path, done: "list[_Done]") -> None:
        schema = self._schema
        content = hashlib.blake2b(f"{schema}{GROUP_ROWS}".encode(), digest_size=8)
        for one in done:
            content.update(json.dumps(one.row, sort_keys=True).encode() + b"\n")  # with the time at which it ended
        path = new / f"part-{self._parts:05d}-{content.hexdigest()}.parquet"
        if not self._link(content.hexdigest(), path):
            texts = ["bag", "config", "outcome", "state", "reason"]
            with self._run.new_file(path) as part:
                with self._pq.ParquetWriter(part, schema, compression="zstd", use_dictionary=texts, write_statistics=_SORTED) as writer:
                    for table in self._row_groups(done):
                        writer.write_table(table, row_group_size=max(len(table), 1))
        self._parts += 1

    def _link(self, content: str, path: Path) -> bool:
        """Whether the collection before has this part: then it is this one too."""
        if content not in self._old:
            return False
        try:
            os.link(self._old[content], path)
        except OSError:  # a file system without links
            return False
        return True

    def _row_groups(self, done: "list[_Done]") -> "Iterator[Any]":
        held: "list[Any]" = []
        rows = 0
        for one in done:
            for batch in self._batches(one):
                held.append(batch)
                rows += len(batch)
                if rows >= GROUP_ROWS:
                    yield self._joined(held)
                    held, rows = [], 0
        if held or not done:
            yield self._joined(held)

    def _joined(self, batches: "list[Any]") -> Any:
        return self._pa.Table.from_batches(batches, self._schema).unify_dictionaries()

    def _batches(self, done: _Done) -> "Iterator[Any]":
        with _reading(done.path), done.path.open("rb") as stream:
            for batch in self._pq.ParquetFile(stream).iter_batches(GROUP_ROWS, use_threads=False):  # quicker: files are small
                columns = dict(zip(batch.schema.names, batch.columns))
                for name in ("bag", "config"):
                    columns[name] = self._pa.repeat(done.row[name], len(batch))
                yield self._pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)


def _ends(bag: Bag, filled: float, step: float) -> bool:
    """Whether a part ends after this bag, which is `step` of it: when it is full, and by the chance of the bag's ID from a quarter on."""
    return filled >= 1.0 or (filled >= 0.25 and int(bag.id[:8], 16) < 4 * step * (1 << 32))


@contextlib.contextmanager
def _reading(path: Path) -> "Iterator[None]":
    """_Broken: it is no table. OSError: of the system, such as a missing permission."""
    try:
        yield
    except (ValueError, KeyError, NotImplementedError) as error:  # those of pyarrow are ValueErrors, or:
        raise _Broken(path, error) from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise _Broken(path, error) from None


def _point(link: Path, target: Path) -> None:
    """Makes `link` a link to a folder beside it, in one step."""
    if link.is_dir() and not link.is_symlink():  # of a run that was copied with what its links point to
        link.rename(target.with_name(f"{target.name}.old"))
    other = target.with_name(f"{target.name}.link")
    other.symlink_to(target.name)
    os.replace(other, link)
    _sync_folder(link.parent)


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_old(run: RunFolder) -> None:
    """Removes what former collections have left, those that were killed included."""
    link = run.path / SCANS_NAME
    now = os.readlink(link) if link.is_symlink() else ""
    for path in [*run.path.glob(f"{_FOLDER}*"), *run.path.glob(f".{RUNS_NAME}.*")]:
        if path.is_dir() and not path.is_symlink():
            if path.name != now:
                shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _print(line: str) -> None:
    print(f"ndt-fleet: {one_line(line)}", file=sys.stderr)
