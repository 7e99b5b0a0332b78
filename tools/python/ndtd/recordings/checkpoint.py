"""An import that was stopped goes on: OUT.part holds the records so far, OUT.part.json where they end.

A checkpoint is taken between two messages of the recording. The next import of the same files with the same options cuts
OUT.part to the last one and goes on behind the message that it names, so that the bag has the bytes of an import that
was never stopped. Where files, their sizes or dates, or options differ it begins anew.
"""
import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any, Optional

from .messages import RecordingError

FORMAT = 2
EVERY_S = 2.0


def identity(files: list, options: dict) -> dict:
    """The facts that must be the same for an import to go on."""
    rows = []
    for file in files:
        info = file.stat()
        rows.append([str(file.resolve()), info.st_size, info.st_mtime_ns])
    if len(rows) > 100:  # folders of scans
        import hashlib
        rows = [[hashlib.sha256(json.dumps(rows).encode()).hexdigest(), len(rows), 0]]
    return {"format": FORMAT, "files": rows, "options": options}


class Checkpoints:
    """Checkpoints of one bag; `out` None: none are taken, as for pipes."""

    def __init__(self, out: Optional[Path], identity: Optional[dict]):
        self._is_wanted = out is not None
        out = out or Path("-")
        self.part, self._file = out.with_name(out.name + ".part"), out.with_name(out.name + ".part.json")
        self._identity = json.loads(json.dumps(identity))
        self._next = time.monotonic() + EVERY_S

    def load(self, anew: bool = False) -> Optional[dict]:
        """The position to go on from, after OUT.part was cut to it; None: from the beginning, and OUT.part is gone."""
        if not self._is_wanted:
            return None
        self._check_unused()
        try:
            if anew:
                raise ValueError
            found = json.loads(self._file.read_text())
            if found["identity"] == self._identity and self.part.stat().st_size >= found["bytes"] > 0:
                os.truncate(self.part, found["bytes"])
                return found
        except (OSError, ValueError, KeyError, TypeError):
            pass
        self.remove()
        return None

    def _check_unused(self):
        """The writer of a bag holds a lock on it."""
        try:
            with open(self.part, "rb") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return
        except BlockingIOError:
            raise RecordingError(f"{self.part}: another import writes it") from None

    def due(self) -> bool:
        return self._is_wanted and time.monotonic() >= self._next

    def save(self, position: dict, state: Any) -> None:
        """Every record so far is in the file: the writer of bags has no buffer."""
        text = json.dumps({"identity": self._identity, "bytes": self.part.stat().st_size, "position": position, "state": state})
        new = self._file.with_name(self._file.name + ".new")
        new.write_text(text)
        os.replace(new, self._file)
        self._next = time.monotonic() + EVERY_S

    def finish(self, out: Path) -> None:
        os.replace(self.part, out)
        self._file.unlink(missing_ok=True)

    def remove(self) -> None:
        if self._is_wanted:
            self.part.unlink(missing_ok=True)
            self._file.unlink(missing_ok=True)
