"""Figures of reports: one style, colours for colour-blind readers, SVG for the page, SVG or PNG files.

    one = figures.new("ape", "Absolute pose error", rows=2, height_in=3.0)
    one.axes[0].plot(x, y, color=figures.BLUE)
    html = one.svg()                   # inline SVG that follows the theme of the page, see theme_css()
    path = one.save(folder, "png")     # folder/ape.png

Colours are those below and nothing else: svg() replaces them by variables of CSS, so that one drawing suits light and dark.
Needs matplotlib (extra `report`), without pyplot: its import is a third of a second.
"""
import html
import io
import re
from pathlib import Path
from typing import Any, Optional

import numpy as np

from .._extras import need

WIDTH_IN = 9.0
PNG_DPI = 200
LEFT_IN, RIGHT_IN, TOP_IN, BOTTOM_IN = 0.62, 0.12, 0.12, 0.42  # around the axes: those of all figures line up
ROW_GAP_IN = 0.12

# Okabe and Ito 2008, and greys. The second colour is the one on a dark page.
INK, MUTED, GRID, PAPER = "#1d2126", "#5b6470", "#d9dde3", "#fefefe"
BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, YELLOW, GREY = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442", "#98a0ab")
CYCLE = (BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, GREY)
THEME = {"ink": (INK, "#e8eaed"), "muted": (MUTED, "#a3abb6"), "grid": (GRID, "#363c45"), "paper": (PAPER, "#16191d"),
         "blue": (BLUE, "#4fa8dc"), "orange": (ORANGE, "#f0b429"), "green": (GREEN, "#2fbf95"), "vermilion": (VERMILION, "#f08341"),
         "sky": (SKY, "#7cc8f2"), "purple": (PURPLE, "#dc9abf"), "yellow": (YELLOW, "#f3ea6d"), "grey": (GREY, "#7f8894")}

_COLOUR_NAMES = {light: name for name, (light, _) in THEME.items()}

STYLE = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8,
    "xtick.labelsize": 7.5, "ytick.labelsize": 7.5, "legend.fontsize": 7.5, "legend.frameon": False, "legend.borderaxespad": 0.2,
    "legend.handlelength": 1.6, "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": MUTED, "axes.labelcolor": INK, "axes.titlecolor": INK, "text.color": INK, "xtick.color": MUTED,
    "ytick.color": MUTED, "xtick.labelcolor": INK, "ytick.labelcolor": INK, "axes.linewidth": 0.7, "xtick.major.width": 0.7,
    "ytick.major.width": 0.7, "xtick.major.size": 3, "ytick.major.size": 3, "axes.grid": True, "grid.color": GRID,
    "grid.linewidth": 0.6, "axes.axisbelow": True, "lines.linewidth": 1.1, "lines.markersize": 3, "patch.linewidth": 0,
    "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": PAPER, "axes.prop_cycle": None,
    "axes.formatter.useoffset": False, "svg.hashsalt": "ndtd", "image.interpolation": "none", "path.simplify": True,
    "path.simplify_threshold": 0.25, "axes.xmargin": 0.01, "text.parse_math": False,  # names of files may have dollar signs
}

_matplotlib: Any = None


def _load() -> Any:
    """matplotlib with the style set, once. MissingPackage."""
    global _matplotlib
    if _matplotlib is None:
        matplotlib = need("matplotlib", "report")
        for part in ("figure", "ticker", "collections", "patches", "backends.backend_svg"):
            need(f"matplotlib.{part}", "report")
        style = {**STYLE, "axes.prop_cycle": matplotlib.cycler(color=CYCLE)}
        matplotlib.rcParams.update({key: value for key, value in style.items() if key in matplotlib.rcParams})
        _matplotlib = matplotlib
    return _matplotlib


class Drawing:
    """One figure. `axes`: from top to bottom (then from left to right); `figure`: matplotlib's."""

    def __init__(self, name: str, title: str, figure: Any, axes: "list[Any]"):
        self.name, self.title, self.figure, self.axes = name, title, figure, axes
        self.caption = ""  # what the reader sees in it: below the figure, and for those who do not see it

    def svg(self) -> str:
        """Inline SVG: text as text, colours as variables of theme_css(), no ids but those that are referred to."""
        text = _render(self.figure, "svg", "none", "none").decode()
        box = re.search(r'viewBox="[^"]*"', text)
        assert box is not None  # matplotlib writes one
        text = text[text.index(">", text.index("<svg")) + 1:]
        text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.S)
        text = _own_ids(text, self.name)
        text = re.sub(r"font: ([\d.]+)px [^;\"]*|font-size: ([\d.]+)px; font-family: [^;\"]*",
                      lambda m: f"font-size: {m[1] or m[2]}px", text)
        text = re.sub(r'(?<= d=")[^"]*', _short_path, text)
        text = re.sub("|".join(_COLOUR_NAMES), lambda m: f"var(--{_COLOUR_NAMES[m[0]]})", text)
        return (f'<svg class="figure" role="img" aria-label="{escape(self.title)}" xmlns="http://www.w3.org/2000/svg" '
                f'xmlns:xlink="http://www.w3.org/1999/xlink" {box[0]}>{text}')

    def file(self, format: str, as_text: bool = False) -> bytes:
        """The contents of a file: svg or png. as_text: letters of an SVG are text, of the reader's fonts, and the file is small."""
        return _render(self.figure, format, "none" if as_text else "path", PAPER)

    def save(self, folder: Any, format: str = "svg") -> Path:
        """Writes FOLDER/NAME.svg or .png, which exists. OSError."""
        path = Path(folder) / f"{self.name}.{format}"
        path.write_bytes(self.file(format))
        return path


def _render(figure: Any, format: str, font_type: str, paper: str) -> bytes:
    out = io.BytesIO()
    with _load().rc_context({"svg.fonttype": font_type}):
        if format == "svg":
            figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, facecolor=paper)
        else:
            need("matplotlib.backends.backend_agg", "report")
            figure.savefig(out, format=format, dpi=PNG_DPI)
    return out.getvalue()


def _short_path(match: "re.Match[str]") -> str:
    """Coordinates in hundredths of a point."""
    return re.sub(r"-?\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}", match[0]).replace(" \n", "").replace("\n", "")


def _own_ids(svg: str, prefix: str) -> str:
    """Ids that something refers to get a prefix, so that figures can share a page; the others go."""
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in used else "", svg)
    return re.sub(r'(url\(#|href="#)([^)"]+)', rf"\g<1>{prefix}-\2", svg)


def escape(text: Any) -> str:
    """Text for HTML, also within attributes."""
    return html.escape(str(text))


def new(name: str, title: str, rows: int = 1, columns: int = 1, height_in: float = 2.4, ratios: "Optional[list[float]]" = None,
        share_x: bool = True, share_y: bool = False, gap_in: float = ROW_GAP_IN, column_gap_in: float = 0.55,
        top_in: float = TOP_IN) -> Drawing:
    """An empty figure with rows x columns axes, WIDTH_IN wide. `name`: of its file and its anchor on the page, [a-z0-9-].

    top_in: 0.3 leaves room for a legend or titles above the axes."""
    matplotlib = _load()
    figure = matplotlib.figure.Figure(figsize=(WIDTH_IN, height_in))
    axes_height = (height_in - top_in - BOTTOM_IN - gap_in * (rows - 1)) / rows
    axes_width = (WIDTH_IN - LEFT_IN - RIGHT_IN - column_gap_in * (columns - 1)) / columns
    grid = figure.add_gridspec(
        rows, columns, left=LEFT_IN / WIDTH_IN, right=1 - RIGHT_IN / WIDTH_IN, bottom=BOTTOM_IN / height_in,
        top=1 - top_in / height_in, hspace=gap_in / axes_height, wspace=column_gap_in / axes_width, height_ratios=ratios)
    axes = grid.subplots(sharex="col" if share_x else False, sharey="row" if share_y else False, squeeze=False)
    return Drawing(name, title, figure, list(axes.flat))


def theme_css() -> str:
    """Variables of CSS that svg() uses, for light and dark pages and for print."""
    light = "".join(f"--{name}:{pair[0]};" for name, pair in THEME.items())
    dark = "".join(f"--{name}:{pair[1]};" for name, pair in THEME.items())
    return (f":root{{color-scheme:light dark;{light}}}"
            f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
            "svg.figure{display:block;width:100%;height:auto}svg.figure *{stroke-linejoin:round;stroke-linecap:butt}")


def decimate(x: np.ndarray, y: np.ndarray, most: int = 2000) -> "tuple[np.ndarray, np.ndarray]":
    """At most about `most` of the points of a line, with the least and the largest of each piece: extremes are kept.

    x (N,) ascending, y (N,) with NaN where the line is interrupted."""
    count = len(y)
    if count <= most:
        return x, y
    edges = np.linspace(0, count, most // 4 + 1).astype(int)
    keep = {0, count - 1}
    for begin, end in zip(edges[:-1], edges[1:]):
        piece = y[begin:end]
        gaps = np.isnan(piece)
        keep.update((begin, end - 1))
        if gaps.any():
            keep.add(begin + int(np.argmax(gaps)))
        if not gaps.all():
            keep.update((begin + int(np.nanargmin(piece)), begin + int(np.nanargmax(piece))))
    at = np.array(sorted(keep))
    return x[at], y[at]
