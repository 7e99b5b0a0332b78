"""The folder of a run: small files, each written whole, so that a process that is killed at any time leaves no half of one.

    run.json              what is wanted (Job); written once
    configs/NAME.yaml     settings of each configuration, as `ndtd --print-config` writes them
    bags.json             the bags that were found: [Bag], rewritten by every `ndt-fleet run`
    index/ab/ID.json      what is in a bag (BagIndex); ID: of its url
    done/ab/KEY.parquet   rows of the scans of one bag and configuration, its run row in the metadata; its presence means done
    pieces/ab/KEY.N.parquet   the same of a piece of a long bag, until all are joined
    failed/ab/KEY.json    the last failure of one (Failure); removed when it succeeds
    claims/ab/KEY         empty; locked while a process works on it
    progress.json         what the running `ndt-fleet run` last said; lock: held by it
    runs.parquet, scans.parquet/   the result, made of done/ and failed/

"ab" are the first two digits of ID or KEY, so that no folder has more than 1/256 of the files. The folder lies on a file
system that all workers share. KEY is made of what a result depends on: task_key().
"""
import contextlib
import fcntl
import hashlib
import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Optional

from .._arguments import CommandError

FORMAT = 1  # of the folder
_STEP_S = 0.05  # between looks at a claim


class FleetError(CommandError):
    """A run, or a part of it, fails; one line for the user."""


@dataclass(frozen=True)
class Configuration:
    """A set of settings. name: "base", or the settings of the sweep ("ndt.levels=[2.0]"); file: below configs/."""

    name: str
    file: str
    hash: str  # of the settings that --print-config shows, without map.path and what cannot change a result
    overrides: "tuple[str, ...]" = ()


@dataclass(frozen=True)
class Job:
    """run.json. What changes results is compared when a run goes on; limits and places are those of the last call."""

    token: str  # random; a worker that reads another one sees another folder
    version: str  # of ndtd with its commit, as `ndtd --version` prints it
    map: str  # url
    configurations: "tuple[Configuration, ...]"
    import_options: "tuple[str, ...]" = ()  # of ndt-import
    piece_s: float = 0.0  # bags that are longer are cut; 0: none
    warm_up_s: float = 0.0
    patterns: "tuple[str, ...]" = ()
    storage: "dict[str, Any]" = field(default_factory=dict)  # options of fsspec by protocol; secrets come from the environment
    program: str = "ndtd"  # name or path on the workers
    cache: str = ""  # local folder of a worker; "": of the user
    cache_bytes: int = 50 << 30
    timeout_s: float = 0.0  # of one replay; 0: by its length
    memory_bytes: int = 0  # of one replay; 0: no limit


@dataclass(frozen=True)
class Bag:
    """A recording as it was found. fingerprint: size and date or ETag, which say whether it has changed."""

    url: str
    bytes: int
    fingerprint: str
    priority: int = 0

    @property
    def id(self) -> str:
        return digest(self.url)


@dataclass(frozen=True)
class BagIndex:
    """index/ab/ID.json: what is in a bag, and in which pieces it is replayed."""

    url: str
    fingerprint: str
    hash: str  # of the content: bag_index.py
    bytes: int
    scans: int
    begin_ns: int
    end_ns: int
    damage: str = ""  # why it ends early; "": it does not
    pieces: "tuple[tuple[int, int, int], ...]" = ()  # (first scan replayed, first scan kept, end); one: it is not cut


@dataclass(frozen=True)
class Failure:
    """failed/ab/KEY.json. key: of the bag's ID where it could not be indexed."""

    key: str
    bag: str
    config: str  # name; "": all, the bag cannot be read
    reason: str  # one line
    lines: "tuple[str, ...]"  # the last ones of the program
    attempts: int
    kind: str = "failed"  # failed, timeout, memory, lost (its worker died)
    worker: str = ""
    ended_ns: int = 0

    @property
    def further_lines(self) -> "tuple[str, ...]":
        """The last lines, unless they are the reason again."""
        return () if len(self.lines) == 1 and self.lines[0].endswith(self.reason) else self.lines


def digest(*parts: str) -> str:
    """32 hexadecimal digits of texts."""
    out = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode()
        out.update(len(data).to_bytes(8, "little") + data)
    return out.hexdigest()


def task_key(bag_hash: str, map_id: str, config_hash: str, version: str, import_options: "tuple[str, ...]" = ()) -> str:
    """KEY: equal keys have equal results."""
    return digest(bag_hash, map_id, config_hash, version, *import_options)


class RunFolder:
    """Names and whole files of a run. Any process may read; each file has one writer at a time (claim())."""

    def __init__(self, path: Any):
        self.path = Path(path)

    # ---- names

    @property
    def run_file(self) -> Path:
        return self.path / "run.json"

    def config_file(self, configuration: Configuration) -> Path:
        return self.path / "configs" / configuration.file

    def index_file(self, bag_id: str) -> Path:
        return self.path / "index" / bag_id[:2] / f"{bag_id}.json"

    def done_file(self, key: str) -> Path:
        return self.path / "done" / key[:2] / f"{key}.parquet"

    def piece_file(self, key: str, number: int) -> Path:
        return self.path / "pieces" / key[:2] / f"{key}.{number}.parquet"

    def failed_file(self, key: str) -> Path:
        return self.path / "failed" / key[:2] / f"{key}.json"

    # ---- contents

    def job(self) -> Job:
        """FleetError where the folder is none of a run."""
        try:
            with open(self.run_file, "rb") as stream:  # which makes NFS look at its server, as stat() does not
                seen = os.fstat(stream.fileno())
        except (FileNotFoundError, NotADirectoryError):
            raise FleetError(f"{self.path}: not the folder of a run: run.json is not there; `ndt-fleet run --out` makes one") from None
        return _job(str(self.path), seen.st_mtime_ns, seen.st_ino)

    def save_job(self, job: Job) -> None:
        self.write_json(self.run_file, {"format": FORMAT, **asdict(job)})

    def index(self, bag: Bag) -> "Optional[BagIndex]":
        """The index of a bag; None: it is not indexed yet, it has changed since, or the file is damaged, and the index is made again."""
        try:
            found = self.read_json(self.index_file(bag.id))
            if found is None or found["fingerprint"] != bag.fingerprint:
                return None
            index: BagIndex = _checked(BagIndex(**{**found, "pieces": tuple((int(a), int(b), int(c)) for a, b, c in found["pieces"])}))
            bytes.fromhex(index.hash)
            return index
        except (FleetError, ValueError, KeyError, TypeError):
            return None

    def maps(self) -> "dict[str, str]":
        """maps.json: ids by the names of compiled maps; none where it is damaged: they are found again."""
        try:
            return {str(name): str(found) for name, found in (self.read_json(self.path / "maps.json") or {}).items()}
        except (FleetError, AttributeError):
            return {}

    def save_index(self, bag: Bag, index: BagIndex) -> None:
        self.write_json(self.index_file(bag.id), asdict(index))

    def save_failure(self, failure: Failure) -> None:
        self.write_json(self.failed_file(failure.key), asdict(failure))

    def failure(self, key: str) -> "Optional[Failure]":
        path = self.failed_file(key)
        found = self.read_json(path)
        try:
            return None if found is None else _checked(Failure(**{**found, "lines": tuple(found["lines"])}))
        except (KeyError, TypeError) as error:
            raise FleetError(f"{path}: not that of a run: {error}") from None

    # ---- whole files

    def read_json(self, path: Path) -> Any:
        """The contents of a file; None where there is no such file. FleetError: it is not JSON."""
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise FleetError(f"{path}: not JSON: {str(error)[:200]}") from None

    def write_json(self, path: Path, value: Any) -> None:
        self.write_whole(path, json.dumps(value, indent=1).encode())

    def write_whole(self, path: Path, data: bytes) -> None:
        """Complete or absent, also when the machine fails."""
        with self.new_file(path) as part:
            Path(part).write_bytes(data)

    @contextlib.contextmanager
    def new_file(self, path: Path, is_synced: bool = True) -> "Iterator[str]":
        """The name of a temporary file beside `path`, which takes its place at the end; removed on failure. It is always the same, so that
        the next writer takes the place of one that was killed.

        is_synced: not cut off either when the machine fails. That waits for the disk: results, which say themselves whether they are
        whole, do without."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        try:
            yield str(part)
            if is_synced:
                with open(part, "rb") as stream:
                    os.fsync(stream.fileno())
            os.replace(part, path)
        except BaseException as error:
            part.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.filename is None:  # of a write, such as to a full disk
                error.filename = str(path)
            raise

    @contextlib.contextmanager
    def claim(self, key: str, limit_s: float = math.inf) -> "Iterator[None]":
        """Waits until no other process works on `key`; ends with the process, however that ends. Look at done_file() inside.

        TimeoutError: another process has it all the time, such as one that is stopped."""
        path = self.path / "claims" / key[:2] / key
        path.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + limit_s
        while True:
            with open(path, "a", encoding="utf-8") as stream:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"another process works on it for more than {limit_s:.3g} s") from None
                    time.sleep(_STEP_S)
                    continue
                try:
                    if os.fstat(stream.fileno()).st_ino != path.stat().st_ino:
                        continue  # its former holder has removed it
                except FileNotFoundError:
                    continue
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)
                return

    def abandoned(self, key: str) -> bool:
        """Whether somebody who worked on `key` was killed; says so once."""
        path = self.path / "claims" / key[:2] / key
        try:
            with open(path, "r+b") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
                return True
        except OSError:  # there is none, or it is held
            return False


@lru_cache(maxsize=8)
def _job(path: str, _mtime_ns: int, _inode: int) -> Job:
    """Read once as long as the file is the same."""
    file = Path(path) / "run.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if found.pop("format") != FORMAT:
            raise ValueError("of another version of ndt-fleet")
        found["configurations"] = tuple(_checked(Configuration(**{**one, "overrides": tuple(one["overrides"])}))
                                        for one in found["configurations"])
        for name in ("import_options", "patterns"):
            found[name] = tuple(found[name])
        if any("/" in one.file for one in found["configurations"]):
            raise ValueError("the file of a configuration is elsewhere")
        job: Job = _checked(Job(**found))
        return job
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FleetError(f"{file}: not that of a run: {str(error)[:200]}") from None


_KINDS: "dict[Any, Any]" = {str: str, int: int, float: (int, float), "dict[str, Any]": dict}


def _checked(value: Any) -> Any:
    """A dataclass that was made of a file, its fields of their types. TypeError."""
    for one in fields(value):
        found = getattr(value, one.name)
        kind = _KINDS.get(one.type, object)
        if not isinstance(found, kind) or (one.type == "tuple[str, ...]" and not all(isinstance(text, str) for text in found)):
            raise TypeError(f"{one.name} is a {type(found).__name__}")
    return value
