"""A line on a terminal while an import runs."""
import sys
import time


def amount(number: float) -> str:
    """1234567 as 1.2 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f} "


class Progress:
    """On standard error, five times a second; nothing where that is no terminal, unless `always`: then a line in 10 s."""

    def __init__(self, total_messages: int, quiet: bool, always: bool = False):
        self.total = max(total_messages, 1)
        self._is_terminal = sys.stderr.isatty()
        self._wanted = not quiet and (self._is_terminal or always)
        self._begin = self._next = time.monotonic()
        self._skipped = 0

    def skip(self, messages: int) -> None:
        """Those that an earlier import has done."""
        self._skipped = messages

    def update(self, messages: int, raw_bytes: int, points: int) -> None:
        now = time.monotonic()
        if not self._wanted or now < self._next:
            return
        self._next = now + (0.2 if self._is_terminal else 10.0)
        passed = max(now - self._begin, 1e-3)
        left_s = passed * (self.total - messages) / max(messages - self._skipped, 1)
        text = (f"{100 * messages / self.total:5.1f} %  {amount(raw_bytes)}B, {amount(raw_bytes / passed)}B/s, "
                f"{amount(points / passed)}points/s, {left_s:.0f} s left")
        sys.stderr.write(f"\r{text} \033[K" if self._is_terminal else text + "\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._wanted and self._is_terminal:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
