"""Figures and tables of ndt-bench as one HTML file, or one figure as SVG or PNG."""
from pathlib import Path
from typing import Any, Optional

from . import bench_tables, curves, html_parts
from .bench_tables import Cell, Table, TableError
from .figures import Drawing, escape
from .html_parts import figure, paragraph, section, table

FORMATS = {".svg": "svg", ".png": "png", ".html": "html", ".htm": "html"}
MOST_ROWS, LONG = 200, 40  # rows of a table on the page; long ones are folded


def write(source: Any, out: Any, name: Optional[str] = None) -> "list[Drawing]":
    """Draws the tables of a file, or the one named, as .html; the main one as .svg or .png. Returns what was drawn.

    TableError, OSError."""
    source, out = Path(source), Path(out)
    kind = FORMATS[out.suffix.lower()]
    tables = bench_tables.read(source)
    names = [one.name for one in tables]
    if name is not None and name not in names:
        raise TableError(f"{source}: there is no table '{name[:60]}', but {', '.join(names)[:200]}")
    drawn = [(one, curves.draw(one, tables)) for one in tables if name in (None, one.name)]
    drawings = [drawing for _, drawing in drawn if drawing]
    if kind == "html":
        html_parts.write(out, _page(source, drawn))
        return drawings
    if not drawings:
        raise TableError(f"{source}: nothing to draw: {f'the table {name} has no curves' if name else 'no table has curves'}; "
                         "--out FILE.html shows the tables")
    one = _main(drawn)
    one.name = out.stem
    out.write_bytes(one.file(kind, as_text=True))
    return [one]


def _main(drawn: "list[tuple[Table, Any]]") -> Drawing:
    """The consistency of a drive, else the last table that is drawn: files begin with machine and input."""
    found = [(one, drawing) for one, drawing in drawn if drawing]
    best: Drawing = next((drawing for one, drawing in found if one.has("axis", "within_1")), found[-1][1])
    return best


def _page(source: Path, drawn: "list[tuple[Table, Any]]") -> str:
    titles, parts = [], []
    for number, (one, drawing) in enumerate(drawn):
        name, title = f"table-{number}", one.title or one.name.replace("_", " ").capitalize()
        titles.append((name, title))
        shown = _table(one)
        if drawing or len(one.rows) > LONG:
            shown = f"<details><summary>Table of {len(one.rows)} rows</summary>{shown}</details>"
        if drawing:
            drawing.name = f"{drawing.name}-{number}"
            shown = figure(drawing) + shown
        parts.append(section(name, title, paragraph(one.note[:1].upper() + one.note[1:], "sub") if one.note else "", shown))
    head = f'<header><h1>{escape(source.name)}</h1><p class="sub">Measured by ndt-bench.</p></header>'
    return html_parts.document(source.name, titles, head + "".join(parts))


def _table(one: Table) -> str:
    rows = [[_cell(row.get(column)) for column in one.columns] for row in one.rows[:MOST_ROWS]]
    more = paragraph(f"The first {MOST_ROWS} of {len(one.rows)} rows.", "sub") if len(one.rows) > MOST_ROWS else ""
    return table([column.replace("_", " ") for column in one.columns], rows) + more


def _cell(value: Cell) -> str:
    return "\N{EN DASH}" if value is None else f"{value:.6g}" if isinstance(value, float) else value
