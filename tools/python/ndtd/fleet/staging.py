"""Inputs of a worker on its local disk: bags and maps of other places, recordings that were imported, maps that were compiled.

    NAME           a whole entry, one file; its date is that of its last use
    NAME.lock      held while NAME is made (by one) or used (by any number)
    NAME.part...   being made; left behind only by a process that was killed, and removed then

All processes of a machine share the folder. The least recently used entries go when it is full. Bags that are local files
are used where they are.
"""
import contextlib
import errno
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Optional

from .._extras import need
from .._version import __version__
from ..report.bag_records import MAGIC
from .bags import fingerprint, folder_fingerprint
from .replay_call import Limits, call
from .run_folder import Bag, FleetError, digest

_WAIT_S, _STEP_S = 600.0, 0.5  # for entries that are in use, when there is no room otherwise
_SILENCE_S = 120.0  # of a server, which ends a download
_IMPORT_S, _IMPORT_BYTES_PER_S = 600.0, 1e6  # an import that takes longer than for so many bytes has failed


class StageError(Exception):
    """A recording or map that cannot be had, in one line."""


class Cache:
    """The local folder of a machine."""

    def __init__(self, folder: "Optional[str]" = None, limit_bytes: int = 50 << 30, storage: "Optional[dict[str, Any]]" = None):
        """folder: None or "": that of the user; storage: options of fsspec by protocol. FleetError: it cannot be written."""
        self.path = Path(folder) if folder else _user_folder()
        self.limit_bytes, self._storage = limit_bytes, storage or {}
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / "room.lock").touch()
        except OSError as error:
            raise FleetError(f"{self.path}: cannot be used as cache (--cache): {error.strerror}") from None

    # ---- bags

    @contextlib.contextmanager
    def bag(self, bag: Bag, import_options: "Sequence[str]" = (), memory_bytes: int = 0) -> "Iterator[Path]":
        """A bag.bin with the content of a recording, as long as the context lasts. StageError; CallError of ndt-import."""
        local = local_path(bag.url)
        name = f"{digest(bag.url, bag.fingerprint, _package(), *import_options)}.bag"
        if local is not None and not (self.path / name).exists():
            _check_unchanged(local, bag)
            if _is_bag(local):
                yield local
                _check_unchanged(local, bag)  # neither while it was used
                return
        limits = Limits(memory_bytes, stage_limit_s(bag))

        def make(part: Path) -> None:
            source = local
            if source is None:
                source = self._fetch(bag.url, Path(f"{part}.d") / _last_name(bag.url), bag.fingerprint)
                if source.is_file() and _is_bag(source):
                    os.replace(source, part)
                    return
            _import(source, part, import_options, limits)
            if local is not None:
                _check_unchanged(local, bag)

        with self.entry(name, bag.bytes, make) as path:
            yield path

    # ---- entries

    @contextlib.contextmanager
    def entry(self, name: str, size: int, make: "Callable[[Path], object]") -> "Iterator[Path]":
        """The file `name`, made by make(part) where it is not there; size: about what it needs. It stays as long as the context lasts."""
        path = self.path / name
        with contextlib.ExitStack() as held:
            while True:
                held.enter_context(_locked(self.path / f"{name}.lock", fcntl.LOCK_SH))
                if path.exists():
                    break
                held.close()
                self._make(path, size, make)
            with contextlib.suppress(OSError):  # a cache that is not ours to date
                os.utime(path)
            yield path

    def _make(self, path: Path, size: int, make: "Callable[[Path], object]") -> None:
        part, lock = Path(f"{path}.part"), Path(f"{path}.lock")
        with _locked(lock, fcntl.LOCK_EX):
            if path.exists():  # another process has made it meanwhile
                return
            try:
                _remove_parts(path)
                self._make_room(size, path)
                make(part)
                os.replace(part, path)
            except OSError as error:
                raise _stage_error(error, self.path) from None
            finally:
                _remove_parts(path)
                if not path.exists():
                    lock.unlink(missing_ok=True)

    def _make_room(self, size: int, path: Path) -> None:
        """Reserves the room by a sparse file, so that others count it, too. StageError: there is none."""
        if size > self.limit_bytes:
            raise StageError(f"{_gib(size)} to stage; the cache has {_gib(self.limit_bytes)} (--cache-size)")
        deadline = time.monotonic() + _WAIT_S
        while True:
            with _locked(self.path / "room.lock", fcntl.LOCK_EX):
                if self._evict(size):
                    with open(f"{path}.part", "wb") as stream:
                        os.truncate(stream.fileno(), size)
                    return
            if time.monotonic() > deadline:
                raise StageError(f"{self.path}: no room for {_gib(size)}: what is in the cache of {_gib(self.limit_bytes)} is in use "
                                 "(--cache-size)")
            time.sleep(_STEP_S)

    def _evict(self, size: int) -> bool:
        """Whether there is room for `size` now."""
        names = [one.name for one in os.scandir(self.path)]
        entries = {name.partition(".part")[0] for name in names if not name.endswith(".lock")}
        used = {name: _bytes_of(self.path / name) for name in entries}
        total = sum(bytes_ for bytes_, _ in used.values())
        for name in {name.partition(".part")[0] for name in names if ".part" in name}:  # of makers that were killed
            with _locked(self.path / f"{name}.lock", fcntl.LOCK_EX | fcntl.LOCK_NB) as lock:
                if lock is not None:
                    before = used[name][0]
                    _remove_parts(self.path / name)
                    used[name] = _bytes_of(self.path / name)
                    total -= before - used[name][0]
        for name in sorted(used, key=lambda one: used[one][1]):
            if total + size <= self.limit_bytes:
                break
            with _locked(self.path / f"{name}.lock", fcntl.LOCK_EX | fcntl.LOCK_NB) as lock:
                if lock is not None:
                    (self.path / name).unlink(missing_ok=True)
                    (self.path / f"{name}.lock").unlink(missing_ok=True)
                    total -= used[name][0]
        return total + size <= self.limit_bytes

    # ---- other places

    def _fetch(self, url: str, to: Path, wanted: str = "") -> Path:
        """Streams a file, or all files of a folder, to the disk; wanted: fingerprint of the one that was found. StageError."""
        try:
            files, path = self._open(url)
            info = files.info(path)
            found = files.find(path, detail=True) if info["type"] == "directory" else {}
            if wanted and wanted != (folder_fingerprint(found, path) if found else fingerprint(info)):
                raise StageError(f"{url}: has changed since the run began: `ndt-fleet run` finds it anew")
            for one, part in found.items():
                _copy(files, part, to / one[len(path):].lstrip("/"))
            if not found:
                _copy(files, info, to)
        except (StageError, ImportError):
            raise
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise StageError(_one_line(error)) from None
        except Exception as error:  # of a file system of fsspec: anything
            raise StageError(_one_line(error)) from None
        return to

    def _open(self, url: str) -> "tuple[Any, str]":
        fsspec = need("fsspec", "fleet")
        protocol = fsspec.utils.get_protocol(url)
        options = dict(self._storage.get(protocol, {}))
        if protocol in ("http", "https"):  # aiohttp's own limit is that of a whole download: five minutes
            limits = need("aiohttp", "fleet").ClientTimeout(total=None, sock_connect=_SILENCE_S, sock_read=_SILENCE_S)
            options["client_kwargs"] = {"timeout": limits, **options.get("client_kwargs", {})}
        files, path = fsspec.core.url_to_fs(url, **options)
        files.invalidate_cache()  # what was listed before may have changed since
        return files, path

    # ---- maps

    def map_fingerprint(self, url: str) -> str:
        """Says whether the files of a map have changed. StageError: there is none."""
        try:
            local = local_path(url)
            if local is not None:
                return digest(*_rows_of(local))
            files, path = self._open(url)
            info = files.info(path)
            return folder_fingerprint(files.find(path, detail=True), path) if info["type"] == "directory" else digest(fingerprint(info))
        except FileNotFoundError:
            raise StageError(f"{url}: no such map") from None
        except (StageError, ImportError):
            raise
        except Exception as error:  # of a file system of fsspec: anything
            raise StageError(f"{url}: {_one_line(error)}") from None

    @contextlib.contextmanager
    def map_source(self, url: str) -> "Iterator[Path]":
        """The files of a map on the local disk, to be compiled; those of other places are removed afterwards."""
        local = local_path(url)
        if local is not None:
            yield local
            return
        name = f"{digest('map', url)}.source"
        with _locked(self.path / f"{name}.lock", fcntl.LOCK_EX):
            try:
                yield self._fetch(url, self.path / f"{name}.part.d" / _last_name(url))
            finally:
                _remove_parts(self.path / name)


# ---- parts


@lru_cache(maxsize=1)
def _package() -> str:
    """The version of ndt-import: another one may import otherwise, and all machines of a run have to have the same bag."""
    return __version__


def stage_limit_s(bag: Bag) -> float:
    return _IMPORT_S + bag.bytes / _IMPORT_BYTES_PER_S


def local_path(url: str) -> "Optional[Path]":
    """Local path of a path or file:// url; None: it is elsewhere."""
    for head in ("file://", "local://"):
        if url.startswith(head):
            return Path(url[len(head):])
    return None if "://" in url or "::" in url else Path(url)


def _user_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "ndtd-fleet"


@contextlib.contextmanager
def _locked(path: Path, how: int) -> "Iterator[Optional[int]]":
    """A lock on a file that may be removed by who holds it alone; None: it is held (LOCK_NB)."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(handle, how)
            except BlockingIOError:
                yield None
                return
            try:
                is_ours = os.fstat(handle).st_ino == os.stat(path).st_ino
            except FileNotFoundError:
                is_ours = False
            if is_ours:
                yield handle
                return
        finally:
            os.close(handle)


def _remove_parts(path: Path) -> None:
    for one in path.parent.glob(f"{path.name}.part*"):
        if one.is_dir():
            shutil.rmtree(one, ignore_errors=True)
        else:
            one.unlink(missing_ok=True)


def _bytes_of(path: Path) -> "tuple[int, int]":
    """Bytes of an entry and of what is reserved for it, and when it was used."""
    total, used_ns = 0, 0
    for one in (path, Path(f"{path}.part")):
        with contextlib.suppress(OSError):
            info = one.stat()
            total, used_ns = total + info.st_size, max(used_ns, info.st_mtime_ns)
    return total, used_ns


def _copy(files: Any, info: "dict[str, Any]", to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    files.get_file(info["name"], str(to))
    came = to.stat().st_size
    if info.get("size") not in (None, came):
        raise StageError(f"{info['name']}: {came} bytes came instead of {info['size']}")


def _check_unchanged(path: Path, bag: Bag) -> None:
    try:
        size, dates = path.stat().st_size, (path.stat().st_mtime, path.lstat().st_mtime)  # fsspec tells the date of a link
    except OSError as error:
        raise StageError(f"{path}: {error.strerror}") from None
    if not path.is_file() and not path.is_dir():
        raise StageError(f"{path}: is neither a file nor a folder")
    if path.is_dir():
        files = need("fsspec", "fleet").filesystem("file")
        is_same = bag.fingerprint == folder_fingerprint(files.find(str(path), detail=True), str(path))
    else:
        is_same = bag.fingerprint in [f"{size} {date}" for date in dates]
    if not is_same:
        raise StageError(f"{path}: has changed since the run began: `ndt-fleet run` finds it anew")


def _is_bag(path: Path) -> bool:
    """Whether a file is a bag, also one that is cut off within its first bytes: its reader tells what is missing."""
    if path.is_dir():
        return False
    try:
        with open(path, "rb") as stream:
            return MAGIC.startswith(stream.read(len(MAGIC)))
    except OSError as error:
        raise StageError(f"{path}: {error.strerror}") from None


def _import(source: Path, part: Path, options: "Sequence[str]", limits: Limits) -> None:
    """A bag.bin of any recording: ndt-import, the one of this package."""
    made = Path(f"{part}.d") / "import.bag"
    made.parent.mkdir(exist_ok=True)
    call([sys.executable, "-m", "ndtd.ndt_import", str(source), "--out", str(made), "--quiet", "--force", *options], limits,
         name="ndt-import")
    os.replace(made, part)


def _rows_of(path: Path) -> "Iterator[str]":
    """Name, size and date of each file of a map."""
    if not path.is_dir():
        info = path.stat()
        yield f"{path.name} {info.st_size} {info.st_mtime_ns}"
        return
    found = False
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            info = os.stat(os.path.join(folder, name))
            found = True
            yield f"{os.path.relpath(folder, path)}/{name} {info.st_size} {info.st_mtime_ns}"
    if not found:
        raise StageError(f"{path}: the folder of the map is empty")


def _stage_error(error: OSError, cache: Path) -> StageError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StageError(f"{cache}: no space left on the disk of the cache (--cache)")
    return StageError(f"{error.filename or cache}: {error.strerror or error}")


def _last_name(url: str) -> str:
    """Last name of a url, which tells ndt-import the kind of a recording."""
    name = url.split("?")[0].rstrip("/").rpartition("/")[2]
    return name if name not in ("", ".", "..") else "recording"


def _gib(size: float) -> str:
    return f"{size / (1 << 30):.3g} GiB"


def _one_line(error: Exception) -> str:
    text = " ".join((getattr(error, "strerror", None) or str(error)).split())[:200]
    return text or type(error).__name__
