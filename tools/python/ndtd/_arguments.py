"""Command lines: --version, and what argparse takes for an option although it is a value."""
import argparse
from typing import Optional

from ._version import __version__


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
