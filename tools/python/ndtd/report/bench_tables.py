"""Tables of ndt-bench: what --json and --markdown write."""
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

Cell = Union[str, float, None]
Row = dict[str, Cell]
MAKE = "`ndt-bench COMMAND --json FILE` writes tables"
MOST_BYTES = 256 << 20


class TableError(ValueError):
    """A file without tables; one line with file, place and reason."""


@dataclass
class Table:
    """Rows of numbers, texts and None (a cell that is empty), by the names of the columns."""

    name: str
    rows: "list[Row]"
    title: str = ""
    note: str = ""
    columns: "list[str]" = field(default_factory=list)

    def __post_init__(self) -> None:
        self.columns = self.columns or list(dict.fromkeys(key for row in self.rows for key in row))

    def has(self, *columns: str) -> bool:
        return all(column in self.columns for column in columns)

    def numbers(self, column: str) -> bool:
        """Whether the column holds numbers alone."""
        cells = [row[column] for row in self.rows if row.get(column) is not None]
        return bool(cells) and all(isinstance(cell, float) for cell in cells)

    def varies(self, column: str) -> bool:
        return len({row.get(column) for row in self.rows}) > 1


def read(path: Any) -> "list[Table]":
    """The tables of a file, in order. TableError, OSError."""
    path = Path(path)
    if path.stat().st_size > MOST_BYTES:
        raise TableError(f"{path}: {path.stat().st_size} bytes; tables of ndt-bench have at most {MOST_BYTES}")
    data = path.read_bytes()
    if b"\0" in data[:4096]:
        raise TableError(f"{path}: a binary file; {MAKE}")
    text = data.decode("utf-8", "replace")
    found = _from_json(path, text) if text.lstrip().startswith(("{", "[")) else _from_markdown(text)
    if not any(table.rows for table in found):
        raise TableError(f"{path}: contains no table; {MAKE}")
    return [table for table in found if table.rows]


def _from_json(path: Path, text: str) -> "list[Table]":
    try:
        whole = json.loads(text)
    except ValueError as error:
        raise TableError(f"{path}: not JSON: {error}") from None
    except RecursionError:
        raise TableError(f"{path}: not JSON of ndt-bench: nested too deeply") from None
    if not isinstance(whole, dict) or not all(isinstance(rows, list) for rows in whole.values()):
        raise TableError(f"{path}: no tables of ndt-bench: lists of rows by the names of the tables are wanted; {MAKE}")
    out = []
    for name, rows in whole.items():
        if not all(isinstance(row, dict) for row in rows):
            raise TableError(f"{path}: table '{name[:40]}': a row is no object; {MAKE}")
        out.append(Table(name, [{key: _cell(value) for key, value in row.items()} for row in rows]))
    return out


def _cell(value: Any) -> Cell:
    if value is None or isinstance(value, str):
        return value
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else json.dumps(value)


def _from_markdown(text: str) -> "list[Table]":
    """Tables between lines of |; title and note are what stands above."""
    out: "list[Table]" = []
    title, note = "", ""  # of the next table
    header: "list[str]" = []
    rows: "list[Row]" = []
    for line in [*text.splitlines(), ""]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else []
        if cells and not header:
            header = cells
        elif cells and all(re.fullmatch(":?-+:?", cell) for cell in cells):
            pass
        elif cells:
            rows.append(dict(zip(header, (_text_cell(cell) for cell in cells))))
        elif header:
            out.append(Table(header[0] if not title else title, rows, title, note, header))
            header, rows, note = [], [], ""
        elif line.startswith("#"):
            title, note = line.lstrip("# ").strip(), ""
        elif line.strip():
            note = line.strip()
    return out


def _text_cell(cell: str) -> Cell:
    if cell in ("-", ""):
        return None
    try:
        return float(cell)
    except ValueError:
        return cell
