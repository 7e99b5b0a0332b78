"""The records of a bag, or of any recording that `ndtd --replay` accepts: ndt-import writes it into a pipe, as for ndtd."""
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator, List, Optional, Sequence

from .. import _core
from ..recordings.sources import BAG_MAGIC
from .result_lines import ResultError

PREFIX = "ndt-import: "


def _is_bag(path: Path) -> bool:
    """As ndtd decides it: what cannot be read is one, and the reader of bags tells why."""
    if not path.is_file():
        return not path.is_dir()
    with path.open("rb") as stream:
        return BAG_MAGIC.startswith(stream.read(len(BAG_MAGIC)))


class Records:
    """Iterates over the records, once. import_options: of ndt-import. ResultError: the import failed, with its line."""

    def __init__(self, path: Any, import_options: Sequence[str] = ()):
        self._path, self._import, self._has_options = path, None, bool(import_options)
        if _is_bag(Path(path)):
            if import_options:
                raise ResultError(f"{path}: what follows -- is for ndt-import, which a bag does not need")
            self._records: Optional[Iterator[Any]] = iter(_core.BagReader(path))
            return
        self._log = tempfile.TemporaryFile()
        command: List[str] = [sys.executable, "-m", "ndtd.ndt_import", "-q", "-o", "-", *import_options, "--", str(path)]
        self._import = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log)
        assert self._import.stdout
        try:
            self._records = iter(_core.BagReader(f"/dev/fd/{self._import.stdout.fileno()}"))
        except Exception:  # nothing came
            self._end_of_import()
            raise

    def __iter__(self) -> "Records":
        return self

    def __next__(self) -> Any:
        try:
            return next(self._records if self._records is not None else iter(()))
        except Exception as error:
            if self._import:
                if not isinstance(error, StopIteration):
                    self._records = None  # holds the pipe, too: an import that still writes must not wait for a reader
                self._end_of_import()
            raise

    def _end_of_import(self):
        """A bag that ends, or is cut off, is complete if the import succeeded; one that nobody reads any more ends the import."""
        self._import.stdout.close()
        status = self._import.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().split("\n")
        if status and not lines[-1].endswith("Broken pipe"):
            more = "" if self._has_options else "; options of ndt-import follow --"
            raise ResultError((lines[-1] or f"{self._path}: ndt-import failed ({status})").replace(PREFIX, "", 1) + more) from None

    def close(self) -> None:
        """Ends an import whose rest nobody reads."""
        self._records = None
        if self._import:
            self._import.terminate()
            self._import.wait()
            self._log.close()
