"""Pieces of HTML: escaped text, tables, figures."""
from collections.abc import Iterable
from typing import Any

from .figures import Drawing, escape


def table(header: "Iterable[Any]", rows: "Iterable[Iterable[Any]]", kind: str = "") -> str:
    """The first column names the row, the others are numbers unless `kind` is "text"."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join("<tr>" + "".join(f'<th scope="row">{escape(cell)}</th>' if at == 0 else f"<td>{escape(cell)}</td>"
                                    for at, cell in enumerate(row)) + "</tr>" for row in rows)
    return f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def pairs(rows: "Iterable[tuple[str, Any]]") -> str:
    """Names and values."""
    return "<dl>" + "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in rows) + "</dl>"


def figure(drawing: Drawing) -> str:
    """With its title and caption."""
    return (f'<figure id="{drawing.name}"><h3>{escape(drawing.title)}</h3><div class="wide">{drawing.svg()}</div>'
            f"<figcaption>{escape(drawing.caption)}</figcaption></figure>")


def section(name: str, title: str, *parts: str) -> str:
    return f'<section id="{name}"><h2>{escape(title)}</h2>{"".join(parts)}</section>'


def paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"
