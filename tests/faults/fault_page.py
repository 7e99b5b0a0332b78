"""The page that the library fault_shim.so shares with its driver; its layout is that of fault_page.h."""
import errno
import mmap
import os
import subprocess

KINDS = ("memory", "map", "open", "read", "write", "sync", "rename", "file", "thread", "socket", "message", "wait", "wall",
         "steady")
MODES = ("fails", "short", "slow", "space", "leaks", "jumps", "crawls")
FIELDS = ("first", "every", "most", "mode", "error", "amount", "calls", "injected")
TRACE = 16


class Page:
    """A file that $NDT_FAULT_PAGE of one process names at a time."""

    def __init__(self, path):
        self.path = str(path)
        size = 8 * (2 + len(FIELDS) * len(KINDS) + TRACE)
        with open(self.path, "wb") as file:
            file.truncate(size)
        with open(self.path, "r+b") as file:
            self._words = memoryview(mmap.mmap(file.fileno(), size)).cast("q")

    def environment(self, shim, sanitized=False):
        more = {"NDT_FAULT_PAGE": self.path, "LD_PRELOAD": str(shim)}
        if sanitized:  # the shim comes before the sanitizer's library and calls it
            more["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=1:exitcode=99"
        return {**os.environ, **more}

    def _at(self, kind, field):
        return 2 + KINDS.index(kind) * len(FIELDS) + FIELDS.index(field)

    def clear(self):
        for i in range(len(self._words)):
            self._words[i] = 0

    def arm(self, armed=True):
        self._words[0] = int(armed)

    def set(self, kind, first, mode="fails", error="ENOMEM", every=0, most=0, amount=0):
        """Call number `first` and then every `every`-th one has the fault, `most` in total (0: no limit)."""
        values = {"first": first, "every": every, "most": most, "mode": MODES.index(mode), "error": getattr(errno, error),
                  "amount": amount, "calls": 0, "injected": 0}
        for field, value in values.items():
            self._words[self._at(kind, field)] = value

    def calls(self, kind):
        return self._words[self._at(kind, "calls")]

    def injected(self):
        return sum(self._words[self._at(kind, "injected")] for kind in KINDS)

    def trace(self, program):
        """Functions of the program that led to the newest fault, the innermost first."""
        words = self._words[2 + len(FIELDS) * len(KINDS):]
        addresses = [hex(word - self._words[1] - 1) for word in words[: (list(words) + [0]).index(0)]]
        if not addresses:
            return ""
        found = subprocess.run(["addr2line", "-f", "-e", str(program), *addresses], capture_output=True, text=True, check=False)
        return " < ".join(found.stdout.splitlines()[::2])
