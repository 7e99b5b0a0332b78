"""A line of progress on a terminal; nothing where standard error is a file or a pipe."""
import sys
import time
from typing import Any


class Progress:
    """A context. `update(part)` with the part that is done, in [0, 1], as often as one likes: drawn ten times a second."""

    CELLS = 30

    def __init__(self, what: str, quiet: bool = False, stream: Any = None):
        stream = stream or sys.stderr
        self._stream = stream if stream.isatty() and not quiet else None
        self._what, self._begin, self._next = what, time.monotonic(), 0.0

    def update(self, part: float, text: str = "") -> None:
        """text: what is counted, such as '12.3 M points'."""
        now = time.monotonic()
        if self._stream is None or now < self._next:
            return
        self._next = now + 0.1
        spent_s = now - self._begin
        left_s = spent_s * (1.0 - part) / part if part > 0.0 else 0.0
        bar = "#" * int(part * self.CELLS)
        self._stream.write(f"\r{self._what} [{bar:.<{self.CELLS}}] {100 * part:3.0f} %  {text}  {left_s:.0f} s left\033[K")
        self._stream.flush()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._stream is not None:
            self._stream.write("\r\033[K")
            self._stream.flush()
