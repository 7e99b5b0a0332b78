"""A command in a process of its own: a decoder of a foreign format that ends its process costs one line, not the command.

Such decoders are programs of others in C, C++ and Rust. What they throw is caught where they are called; an allocation that fails in
Rust, or a wrong pointer, ends the process instead.
"""
import ctypes
import mmap
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

FAILED = 3
PR_SET_PDEATHSIG = 1
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # who sends these wants the command to end: no fault
NAME_BYTES = 4096

_working_on: Optional[mmap.mmap] = None  # shared by both processes


def working_on(path: Any) -> None:
    """Tells which file is decoded now, for the line of a decoder that ends the process."""
    if _working_on is not None:
        name = os.fsencode(str(path))[:NAME_BYTES - 1]
        _working_on[:len(name) + 1] = name + b"\0"


def part_of(out: Path, process: Optional[int] = None) -> Path:
    """The file that a process, this one by default, writes and that becomes `out` when it is complete."""
    return out.with_name(f".{out.name}.part-{process or os.getpid()}")


def run(command: Callable[[], int], name: str, about: Any, out: Optional[Path] = None) -> int:
    """Runs `command` in a child and returns its exit code. Where the child ends by a fault: one line that begins with `name` and
    the file it was working on (`about` where it told none), no part_of(out) of it is left, and exit code 3."""
    global _working_on
    _working_on = mmap.mmap(-1, NAME_BYTES)
    working_on(about)
    signals = {*PASSED_ON, signal.SIGCHLD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with tempfile.TemporaryFile() as native:
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            _begin(parent, native.fileno())
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            return command()
        status = _wait(child, signals)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if not os.WIFSIGNALED(status):
            return os.WEXITSTATUS(status)
        number = os.WTERMSIG(status)
        if number in PASSED_ON:  # end as the child did
            signal.signal(number, signal.SIG_DFL)
            os.kill(parent, number)
        if out is not None:
            shutil.rmtree(part_of(out, child), ignore_errors=True)
        file = os.fsdecode(_working_on[:].split(b"\0", 1)[0])
        print(f"{name}: {file}: damaged: its decoder ended the process ({_why(number, native)})", file=sys.stderr)
    return FAILED


def _begin(parent: int, native: int) -> None:
    """Prepares the child: it ends with its parent, is interrupted once, and what native code writes to standard error is kept apart."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(FAILED)

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent passes on what a terminal sends to both
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    sys.stderr = open(os.dup(2), "w", buffering=1, errors="backslashreplace")
    os.dup2(native, 2)


def _wait(child: int, signals: "set[signal.Signals]") -> int:
    """The status of the child at its end; signals that a process sent to this one are passed on."""
    while True:
        told = signal.sigwaitinfo(signals)
        if told.si_signo != signal.SIGCHLD:
            if told.si_code <= 0:  # by a process, not by the terminal
                os.kill(child, told.si_signo)
            continue
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status


def _why(number: int, native: Any) -> str:
    native.seek(0)
    first = native.readline(200).decode(errors="replace").strip()
    what = "SIGKILL: out of memory?" if number == signal.SIGKILL else signal.Signals(number).name
    return f"{what}: {first}" if first else what
