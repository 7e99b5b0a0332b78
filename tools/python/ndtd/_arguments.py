"""Command lines: one line for each error, --version, and what argparse takes for an option although it is a value."""
import argparse
import sys
from typing import Callable, NoReturn, Optional

from ._extras import MissingPackage, one_line, os_error_text
from ._version import __version__

EXIT_USAGE, EXIT_FAILED, EXIT_STOPPED = 2, 3, 130  # as the tools in C; of a shell: 128 and the number of the signal


class CommandError(Exception):
    """A command cannot do what it is for; one line for the user: what, where, which limit."""


class UsageError(CommandError):
    """A command line that cannot be used; one line for the user."""


class Parser(argparse.ArgumentParser):
    """An error is one line without the usage, as of the tools in C, and exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"{self.prog}: {one_line(message)}; {self.prog} --help tells more\n")


def finish(prog: str, work: "Callable[[], Optional[int]]", stopped: str = "stopped; nothing was written", place: object = None) -> int:
    """The exit code of a command: what `work` returns, or that of the exception, which becomes one line on standard error.

    `place` is what the command writes: for errors of the system that name no file, such as that of a full disk."""
    try:
        return work() or 0
    except UsageError as error:
        code, text = EXIT_USAGE, str(error)
    except OSError as error:
        code, text = EXIT_FAILED, os_error_text(error, place)
    except (CommandError, MissingPackage, ValueError) as error:
        code, text = EXIT_FAILED, str(error)
    except MemoryError:
        code, text = EXIT_FAILED, "out of memory"
    except KeyboardInterrupt as stop:
        code, text = EXIT_STOPPED, str(stop) or stopped
    print(f"{prog}: {one_line(text)}", file=sys.stderr)
    return code


def add_version(parser: argparse.ArgumentParser) -> None:
    """--version prints the name of the program and the version of the package."""
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")


def join_negative(arguments: "Optional[list[str]]", given: "list[str]", *options: str) -> "list[str]":
    """`--offset -1,2,3` as `--offset=-1,2,3`: argparse refuses a list of numbers that begins with a minus sign.

    arguments: those of the caller, or None for `given` (sys.argv without the program)."""
    out: "list[str]" = []
    for word in given if arguments is None else arguments:
        if out and out[-1] in options and word[:1] == "-" and word[1:2] in tuple("0123456789."):
            out[-1] += "=" + word
        else:
            out.append(word)
    return out
