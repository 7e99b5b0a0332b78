"""The page that compares two replays: one HTML file that needs nothing else."""
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from . import compare_figures, html_parts, map_above, paired, trajectory_figure
from .comparison import OFF_DEG, OFF_M, Comparison, Setting, Test, Unit, unit_of, with_unit
from .compare_worst import Pictures
from .figures import Drawing, escape
from .html_parts import figure, paragraph, section, table
from .page import command_line

WORDS = {"better": ("Better", "good"), "worse": ("Worse", "poor"), "mixed": ("Mixed", "fair"), "undecided": ("Undecided", "fair"),
         "equivalent": ("No difference that matters", "good"), "same": ("The same", "good")}
SIGNS = {"better": "\N{BLACK UP-POINTING TRIANGLE} better", "worse": "\N{BLACK DOWN-POINTING TRIANGLE} worse",
         "faster": "\N{BLACK UP-POINTING TRIANGLE} faster", "slower": "\N{BLACK DOWN-POINTING TRIANGLE} slower",
         "equivalent": "within the margin"}
KINDS = {"better": "up", "faster": "up", "worse": "down", "slower": "down"}  # classes of cells
TITLES = (("changes", "What differs"), ("tests", "Tests"), ("paths", "Trajectories"), ("errors", "Errors"), ("outcomes", "Outcomes"),
          ("effort-section", "Time and effort"), ("regressions", "Scans that got worse"), ("repeat", "Repeat it"))


UNKNOWN_SETTINGS = "Settings are not known: config.yaml is not in both folders."


class ComparisonPage:
    """`drawings`: every figure, in the order of the page; `html()`: the page."""

    def __init__(self, found: Comparison):
        self.found = found
        self.names = [compare_figures.short(name, 24) for name in found.names]  # in tables
        self.pictures = Pictures(found)
        box = compare_figures.extent(found)
        density, self.map_note = map_above.read(
            found.first.path_of("map"), box, *trajectory_figure.pixels(box), list(self.pictures.windows.values()))
        self.paths = compare_figures.trajectories(found, box, density, self.pictures.chosen)
        self.intervals = compare_figures.intervals(found)
        self.errors = [one for one in (compare_figures.over_time(found), compare_figures.distributions(found)) if one]
        self.effort = [one for one in (compare_figures.latencies(found.latencies), compare_figures.effort(found)) if one]

    @property
    def drawings(self) -> "list[Drawing]":
        return [*([self.intervals] if self.intervals else []), self.paths, *self.errors, *self.effort]

    def html(self) -> str:
        found = self.found
        titles = [(name, "Distance" if name == "errors" and not found.has_truth else title) for name, title in TITLES]
        errors = section("errors", dict(titles)["errors"], *map(figure, self.errors))
        parts = (self._changes(), self._tests(), self._paths(), errors, self._outcomes(), self._effort(), self.pictures.html(self.map_note),
                 self._repeat())
        return html_parts.document(f"{found.names[1]} against {found.names[0]}", titles, self._head() + "".join(parts))

    def _head(self) -> str:
        found = self.found
        one, other = (escape(name) for name in found.names)
        word, kind = WORDS[found.verdict]
        bag = Path(str(found.second.summary.get("bag") or "an unknown recording")).name
        arrow = '<span class="sub">\N{RIGHTWARDS ARROW}</span>'
        return (f'<header><h1><i class="dot first"></i>{one} {arrow} <i class="dot second"></i>{other}</h1>'
                f'<p class="sub">Two replays of {escape(bag)}; the verdict is that on {other}.</p>'
                f"{html_parts.verdict(kind, word, found.sentence)}{html_parts.tiles(self._tiles())}"
                f"{html_parts.hints('Read with care', found.warnings)}</header>")

    def _tiles(self) -> "list[tuple[str, str, str]]":
        found = self.found
        out = [("scans paired", str(len(found.pairs)), "by stamp")]
        for quantity, statistic, name in (
                ("translation error", "median", "error, median"), ("translation error", "p95", "error, 95 %"),
                ("rotation error", "median", "rotation, median"), ("confidence", "mean", "confidence, mean")):
            for test in (one for one in found.tests if (one.quantity, one.statistic) == (quantity, statistic)):
                unit = unit_of(found.tests, quantity)
                out.append((name, unit.text(test.found.second), f"was {unit.text(test.found.first)}"))
        if not found.has_truth and np.isfinite(found.distance_m).any():
            out.append(("apart, median", with_unit(float(np.nanmedian(found.distance_m)), "m"),
                        f"at most {with_unit(float(np.nanmax(found.distance_m)), 'm')}"))
        word = {"worse": ": worse", "better": ": better"}.get(found.missed_verdict, "")
        out.append(("missed scans", str(int(found.second_missed.sum())), f"was {int(found.first_missed.sum())}{word}"))
        total = [one for one in found.latencies if one.stage == "total"]
        if total:
            out.append(("latency, median", _ms(total[0].second_us), f"was {_ms(total[0].first_us)}: {total[0].verdict}"))
        return out

    # ---- sections

    def _changes(self) -> str:
        found = self.found
        rows = [*(Setting(one.key.replace("_", " "), one.first, one.second) for one in found.inputs), *found.settings]
        known = found.first.settings and found.second.settings
        if not rows:
            text = "Inputs and settings are equal." if known else "Inputs are equal."
            return section("changes", "What differs", paragraph(text), "" if known else paragraph(UNKNOWN_SETTINGS, "sub"))
        cells = [(one.key, one.first, one.second, one.default or "\N{EN DASH}") for one in rows]
        return section("changes", "What differs", table(("", *self.names, "default"), cells, "text"),
                       "" if known else paragraph(UNKNOWN_SETTINGS, "sub"))

    def _tests(self) -> str:
        found = self.found
        if not found.tests:
            return section("tests", "Tests", paragraph(found.sentence))
        rows = [test_row(test, unit_of(found.tests, test.quantity)) for test in found.tests]
        header = ("", "verdict", *self.names, "difference", "95 % interval", "p", "p of all tests")
        worth = [(one.name, f"{100 * one.second_is_below:.0f} %", f"{one.blocks.length}, {one.blocks.count:.3g}",
                  "too few blocks" if one.signed_rank is None else _p(one.signed_rank))
                 for one in found.quantities]
        more = table(("", f"scans with less in {self.names[1]}", "scans per block, blocks", "p of signed ranks"), worth)
        return section("tests", "Tests", figure(self.intervals) if self.intervals else "", verdict_table(header, rows), _method(found),
                       more if worth else "")

    def _paths(self) -> str:
        note = paragraph(f"The map is not drawn: {self.map_note}.", "sub") if self.map_note else ""
        return section("paths", "Trajectories", note, figure(self.paths))

    def _outcomes(self) -> str:
        found = self.found
        rows = [(f"{kind} {name}", str(one), str(other), f"{other - one:+d}" if one != other else "")
                for kind, counts in (("outcome", found.outcomes), ("state", found.states)) for name, (one, other) in counts.items()]
        one, other = found.first_missed, found.second_missed
        counts = (("both", one & other), (f"{found.names[0]} alone", one & ~other), (f"{found.names[1]} alone", other & ~one))
        missed = ("Missed scans: " + ", ".join(f"by {name} {int(which.sum())}" for name, which in counts) +
                f". Missed: without a trusted pose, or over {OFF_M:g} m or {OFF_DEG:g}\N{DEGREE SIGN} off. They are counted, "
                "not tested: a replay is deterministic. 1 % of the scans matter.")
        cells = [[("", cell) for cell in row[:-1]] + [("changed", row[-1])] for row in rows]
        return section("outcomes", "Outcomes", verdict_table(("", *self.names, "change"), cells), paragraph(missed),
                       paragraph(_first_difference(found)))

    def _effort(self) -> str:
        found = self.found
        rows = [[("", one.stage + (" (part of align)" if one.stage == "upload" else "")),
                 (KINDS.get(one.verdict, ""), SIGNS.get(one.verdict, one.verdict)), ("", _ms(one.first_us)), ("", _ms(one.second_us)),
                 ("", _ms(one.first_p95_us)), ("", _ms(one.second_p95_us)),
                 ("", f"{one.factor:.2f} ({one.low:.2f} .. {one.high:.2f})")] for one in found.latencies]
        one, other = self.names
        text = ("Factor: time of the first run over that of the second, median over the scans, quartiles in parentheses; no difference: 1 "
                "lies between them, or less than 2 % (as ndt-bench compare). The runs did not take turns: what else the machine did is "
                "part of it. For speed alone, use ndt-bench compare.")
        header = ("", "verdict", f"{one} p50", f"{other} p50", f"{one} p95", f"{other} p95", "factor")
        return section("effort-section", "Time and effort", verdict_table(header, rows) if rows else "", paragraph(text, "sub"),
                       *map(figure, self.effort), table(("", *self.names), _means(found)))

    def _repeat(self) -> str:
        found = self.found
        lines = [command_line(run).splitlines()[0] for run in (found.first, found.second)]
        lines.append(shlex.join(["ndt-report", str(found.first.folder), str(found.second.folder), "--out", "compare.html"]))
        return section("repeat", "Repeat it", f"<pre>{escape(chr(10).join(lines))}</pre>")


def write(found: Comparison, out: Any, folder: Any = None, format: str = "svg") -> ComparisonPage:
    """Writes the page, which is complete or absent, and the figures into `folder`. OSError."""
    page = ComparisonPage(found)
    html_parts.write(Path(out), page.html(), page.drawings, folder, format)
    return page


# ---- cells


def verdict_table(header: "Any", rows: "list[list[tuple[str, str]]]") -> str:
    """A table whose cells have a class."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join("<tr>" + "".join(
        f'<th scope="row">{escape(text)}</th>' if at == 0 else f'<td class="{kind}">{escape(text)}</td>'
        for at, (kind, text) in enumerate(row)) + "</tr>" for row in rows).replace(' class=""', "")
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def test_row(test: Test, unit: Unit) -> "list[tuple[str, str]]":
    """Cells with their classes."""
    by = test.found
    name = f"{test.quantity}, {test.statistic}"
    cells = [unit.text(by.first), unit.text(by.second), unit.text(by.difference, True),
             f"{unit.number(by.low, True)} to {unit.text(by.high, True)}", _p(by.p), _p(test.p_holm)]
    return [("", name), (KINDS.get(test.verdict, ""), SIGNS.get(test.verdict, test.verdict)), *(("", cell) for cell in cells)]


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1000:.3g} ms"


def _method(found: Comparison) -> str:
    count = len(found.tests)
    margins = ", ".join(f"{one.name} {with_unit(one.margin, one.unit)}" for one in found.quantities)
    return paragraph(
        f"Scans are paired by stamp; differences are {found.names[1]} minus {found.names[0]}. Intervals: moving-block bootstrap of the "
        f"pairs with seed, blocks as long as errors stay alike, Student's t with one degree of freedom less than blocks; they hold the "
        f"true difference in {100 * paired.CONFIDENCE:.0f} of 100 drives of this kind. p of all tests: Holm's correction for "
        f"{count} test{'s' if count > 1 else ''}; below 0.05 a test tells the runs apart, unless its interval lies within the margin of "
        f"what does not matter ({margins}). Second opinion: Wilcoxon's signed ranks of the mean differences of whole blocks.", "sub")


def _first_difference(found: Comparison) -> str:
    hashes = [str(run.summary.get("trajectory_hash") or "unknown") for run in (found.first, found.second)]
    if found.first_difference is None:
        return f"All {len(found.pairs)} paired results are equal bit for bit (trajectory hash {hashes[0]})."
    at = found.first_difference
    far = f", {with_unit(found.distance_m[at], 'm')} apart" if np.isfinite(found.distance_m[at]) else ""
    return (f"The first result that differs is that of scan {found.first.seq[found.pairs[at, 0]]} at {found.time_s[at]:.1f} s{far}. "
            f"Trajectory hashes: {hashes[0]} and {hashes[1]}.")


def _means(found: Comparison) -> "list[tuple[str, str, str]]":
    """Means over the pairs of what has no unit."""
    out = []
    for name in ("iterations", "evaluations", "confidence", "match_ratio", "nvtl_normalized"):
        values = [run.values[name][rows] for run, rows in zip((found.first, found.second), found.pairs.T)]
        if all(np.isfinite(one).any() for one in values):
            first, second = (f"{np.nanmean(one):.4g}" for one in values)
            out.append((f"{name.replace('_', ' ')}, mean", first, second))
    return out
