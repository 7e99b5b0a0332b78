"""Pieces of HTML: escaped text, tables, figures."""
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from .._version import __version__
from .figures import Drawing, escape, theme_css


class Link(NamedTuple):
    """A cell of a table that leads to another page."""

    text: str
    target: str


def _cell(value: Any) -> str:
    if isinstance(value, Link):
        return f'<a href="{escape(quote(value.target))}">{escape(value.text)}</a>'
    return escape(value)


def table(header: "Iterable[Any]", rows: "Iterable[Iterable[Any]]", kind: str = "") -> str:
    """The first column names the row, the others are numbers unless `kind` is "text"."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join("<tr>" + "".join(f'<th scope="row">{_cell(cell)}</th>' if at == 0 else f"<td>{_cell(cell)}</td>"
                                    for at, cell in enumerate(row)) + "</tr>" for row in rows)
    return f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def pairs(rows: "Iterable[tuple[str, Any]]") -> str:
    """Names and values."""
    return "<dl>" + "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in rows) + "</dl>"


def figure(drawing: Drawing) -> str:
    """A figure with its title and caption."""
    return (f'<figure id="{drawing.name}"><h3>{escape(drawing.title)}</h3><div class="wide">{drawing.svg()}</div>'
            f"<figcaption>{escape(drawing.caption)}</figcaption></figure>")


def tiles(numbers: "Iterable[tuple[str, str, str]]") -> str:
    """Large numbers: name, value, note."""
    return '<dl class="tiles">' + "".join(f'<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd><dd class="note">{escape(note)}</dd></div>'
                                          for name, value, note in numbers) + "</dl>"


def verdict(level: str, word: str, sentence: str) -> str:
    """level: good, fair, poor."""
    return f'<div class="verdict {level}"><b>{escape(word)}</b><p>{escape(sentence)}</p></div>'


def hints(title: str, lines: "Iterable[str]") -> str:
    """A box with a list; nothing without lines."""
    shown = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<div class="hints"><b>{escape(title)}</b><ul>{shown}</ul></div>' if shown else ""


def folded(title: str, body: str) -> str:
    """HTML that readers open; closed ones are not printed."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def section(name: str, title: str, *parts: str) -> str:
    return f'<section id="{name}"><h2>{escape(title)}</h2>{"".join(parts)}</section>'


def paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def document(title: str, contents: "Iterable[tuple[str, str]]", body: str, maker: str = "ndt-report") -> str:
    """The whole page. contents: id and title of each section."""
    links = "".join(f'<a href="#{name}">{escape(text)}</a>' for name, text in contents)
    style = theme_css() + (Path(__file__).with_name("report.css").read_text(encoding="utf-8"))
    return ('<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; style-src \'unsafe-inline\'">'
            f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{style}</style></head><body><div class="page">'
            f'<nav aria-label="Contents">{links}</nav><main>{body}</main>'
            f"<footer>Made by {escape(maker)} of ndtd {escape(__version__)}.</footer></div></body></html>\n")


def write(path: Path, text: str, drawings: "Iterable[Drawing]" = (), folder: Any = None, format: str = "svg") -> None:
    """Writes the page, which is complete or absent, and the drawings into `folder` (None: not at all). OSError."""
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        part.unlink(missing_ok=True)
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for drawing in drawings:
            drawing.save(folder, format)
