"""The work of a build so far, in the folder MAP.part, so that a build that was stopped goes on.

`identity` describes the inputs of the work: arguments, recordings, program. Each completed stage leaves a record NAME.npz, which is
written beside its place and moved there, and begins with the SHA-256 of its contents. Points lie in `clouds`, which grows; records
tell how much of it is valid. If a file is damaged, or of other inputs, the build begins anew.
"""
import fcntl
import hashlib
import io
import json
import os
import shutil
import time
import zlib
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np

from .. import _core
from .._arguments import UsageError
from .._version import __version__

FORMAT = 3
EVERY_S = 2.0  # between records of one stage
SAMPLE_BYTES = 1 << 16  # at both ends of a recording
CLOUDS, IDENTITY = "clouds", "identity"
NOT_IN_IDENTITY = ("quiet", "threads", "force", "out")  # they change no byte of the map


def _sample(path: Path, size: int) -> str:
    with path.open("rb") as stream:
        begin = stream.read(SAMPLE_BYTES)
        stream.seek(max(size - SAMPLE_BYTES, 0))
        return hashlib.sha256(begin + stream.read(SAMPLE_BYTES)).hexdigest()


def _facts(name: str) -> "list[Any]":
    """Facts that distinguish recordings: names, sizes, dates; of a single file its ends as well."""
    path = Path(name)
    if path.is_file():
        info = path.stat()
        return [str(path.resolve()), info.st_size, info.st_mtime_ns, _sample(path, info.st_size)]
    rows = []
    for folder, _, files in sorted(os.walk(path)):
        for file in sorted(files):
            info = (Path(folder) / file).stat()
            rows.append([str(Path(folder) / file), info.st_size, info.st_mtime_ns])
    return [str(path.resolve()), len(rows), hashlib.sha256(json.dumps(rows).encode()).hexdigest()]


def identity_of(options: Any) -> "dict[str, Any]":
    """The identity of a command line: options.recording, options.poses, and all other inputs that decide the map."""
    program = os.stat(str(_core.__file__))
    told = {key: value for key, value in vars(options).items() if key not in NOT_IN_IDENTITY}
    return {"format": FORMAT, "version": __version__, "program": [program.st_size, program.st_mtime_ns], "numpy": np.__version__,
            "options": told, "recordings": [_facts(name) for name in options.recording],
            "poses": _facts(options.poses) if options.poses is not None else None}


class WorkState:
    """The folder; one build at a time. say: called with one line where work that was done cannot be used."""

    def __init__(self, folder: Path, identity: "dict[str, Any]", say: Callable[[str], None]):
        self.folder = folder
        self._next = time.monotonic() + EVERY_S
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise UsageError(f"{folder}: another ndt-map build works there") from None
        wanted = json.dumps(identity, sort_keys=True).encode()
        why = self._why_unusable(wanted)
        if why is not None:
            self._empty()
            if why:
                say(f"{folder}: {why}; the build begins anew")
            self._write(IDENTITY, wanted)

    def _why_unusable(self, wanted: bytes) -> Optional[str]:
        """The reason why the work cannot be used; None: it can; empty: there is none."""
        names = {path.name for path in self.folder.iterdir()}
        if not names - {f"{IDENTITY}.new"}:
            return ""
        if IDENTITY not in names:
            raise UsageError(f"{self.folder}: is not of this command, which works there; move it away")
        told = self._read(IDENTITY)
        if told is None:
            return "its identity is damaged"
        if told != wanted:
            return "is of other arguments, recordings, or another version"
        end, crc = 0, 0
        for path in sorted(self.folder.glob("*.npz")):
            record = self.load(path.stem)
            if record is None:
                return f"{path.name} is damaged"
            if "clouds_end" in record and int(record["clouds_end"]) >= end:
                end, crc = int(record["clouds_end"]), int(record["clouds_crc"])
        return None if self._is_whole(end, crc) else f"{CLOUDS} is damaged"

    def _is_whole(self, end: int, crc: int) -> bool:
        found, left = 0, end
        if left == 0:
            return True
        try:
            with (self.folder / CLOUDS).open("rb") as stream:
                while left > 0:
                    block = stream.read(min(left, 1 << 20))
                    if not block:
                        return False
                    found, left = zlib.crc32(block, found), left - len(block)
        except OSError:
            return False
        return found == crc

    def _empty(self) -> None:
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _read(self, name: str) -> Optional[bytes]:
        """The content of a file, without its digest; None: it is not there, or is damaged."""
        try:
            data = (self.folder / name).read_bytes()
        except OSError:
            return None
        return data[32:] if hashlib.sha256(data[32:]).digest() == data[:32] else None

    def _write(self, name: str, content: bytes) -> None:
        new = self.folder / f"{name}.new"
        with new.open("wb") as stream:
            stream.write(hashlib.sha256(content).digest() + content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(new, self.folder / name)

    def save(self, name: str, **arrays: Any) -> None:
        """The record of a stage; it replaces an older one as a whole."""
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        self._write(f"{name}.npz", stream.getvalue())
        self._next = time.monotonic() + EVERY_S

    def is_due(self) -> bool:
        """Whether the last record is old enough for a new one within a stage; no result depends on this clock."""
        return time.monotonic() >= self._next

    def load(self, name: str) -> "Optional[dict[str, np.ndarray]]":
        """The arrays of a record; None: there is none."""
        content = self._read(f"{name}.npz")
        if content is None:
            return None
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            return {key: found[key] for key in found.files}

    def close(self) -> None:
        """Lets another build work there."""
        os.close(self._lock)

    def remove(self) -> None:
        """Forgets everything."""
        shutil.rmtree(self.folder, ignore_errors=True)
