"""Optional packages: the base install needs numpy alone, the extras of pyproject.toml bring the rest."""
import importlib
from typing import Any


# Everything else that comes out of a parser is of the parser: what Rust throws is a BaseException.
NOT_OF_PARSERS = (KeyboardInterrupt, SystemExit, GeneratorExit)


class MissingPackage(ImportError):
    """A package of an extra is not installed; the message is one line for the user."""


def need(module: str, extra: str) -> Any:
    """Imports and returns `module`; MissingPackage names the extra of ndtd that brings it.

    A submodule may be named ("rosbags.highlevel"): the submodule is returned.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or module).split(".")[0]
        raise MissingPackage(f"{missing} is not installed: pip install 'ndtd[{extra}]'", name=error.name) from error


def os_error_text(error: OSError, place: object = None) -> str:
    """One line without the number: FILE: what is wrong; `place` is what was written where the error names no file."""
    name, what = error.filename or place, error.strerror or str(error)
    return f"{name}: {what}" if name else what


def one_line(text: str, most: int = 600) -> str:
    """Text for a message: without what moves a terminal's cursor, and not longer than one reads."""
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return line if len(line) <= most else f"{line[:most // 2]} ... {line[-most // 2:]}"
