"""The sections of a fleet's report that compare: a run with the one before, and configurations with the first one."""
from collections.abc import Sequence

import numpy as np

from . import fleet_figures, html_parts
from .compare_figures import short
from .compare_page import KINDS, SIGNS, WORDS, test_row, verdict_table
from .comparison import Unit, unit_of, with_unit
from .figures import Drawing, escape
from .fleet_comparison import FleetComparison
from .fleet_drives_section import MOST_LISTED, MOST_NAME, ndtd
from .fleet_results import FleetResults
from .fleet_totals import percent, several, thousands
from .html_parts import figure, paragraph, section, table
from .verdict import NONE, length, milliseconds

SHORT_NAME = 24  # of a run in the head of a table
MOST_SENTENCES = 5
LISTED = ("median translation error", "95 % translation error", "median confidence", "scans without a trusted pose")


class AgainstSection:
    """A run against another one; found: the configuration that is shown."""

    def __init__(self, results: FleetResults, found: FleetComparison):
        self.results, self.found = results, found
        self.intervals = fleet_figures.intervals(found) if found.tests else None
        self.drives = fleet_figures.paired_drives(found) if len(found.rows) else None

    @property
    def drawings(self) -> "list[Drawing]":
        return [one for one in (self.intervals, self.drives) if one]

    def html(self) -> str:
        found, against = self.found, self.results.against
        names = [short(name, SHORT_NAME) for name in found.names]
        parts = []
        if len(against) > 1:
            rows = [[("", short(one.second.configuration, MOST_NAME)), _verdict(one.verdict)] for one in against]
            parts += [verdict_table(("configuration", "verdict"), rows), paragraph(f"Shown below: {found.second.configuration}.")]
        if found.tests:
            rows = [test_row(test, unit_of(found.tests, test.quantity)) for test in found.tests]
            parts.append(verdict_table(("", "verdict", *names, "difference", "95 % interval", "p", "p of all tests"), rows))
        facts = [[("", fact.name), _verdict(fact.verdict), ("", fact.first), ("", fact.second)] for fact in found.facts]
        parts += [verdict_table(("counted", "verdict", *names), facts), *map(figure, self.drawings)]
        parts += [*([] if found.is_same else [_changed(found)]), _alone(found), _differing(found), paragraph(_method([found]), "sub")]
        return section("against", "Against the other run", *parts)


def configurations(results: FleetResults) -> str:
    """A table of all, each against the first one; nothing where there is one."""
    if len(results.configured) < 2:
        return ""
    first = results.configured[0]
    unit = Unit.of("m", *(value for one in results.configured for value in (one.error_median_m, one.error_p95_m)))
    verdicts = {found.second.configuration: found.verdict for found in results.sweep}
    rows = []
    for one in results.configured:
        errors = [unit.text(one.error_median_m), unit.text(one.error_p95_m)] if one.has_truth else [f"{one.confidence:.4f}", NONE]
        cells = [*errors, percent(1 - one.untrusted_share), thousands(one.wrong), milliseconds(one.latency_p50_ms),
                 milliseconds(one.latency_p95_ms), thousands(len(one.rows)), thousands(one.failed)]
        rows.append([("", short(one.name, MOST_NAME)), _verdict(verdicts.get(one.name, "")), *(("", cell) for cell in cells)])
    header = ("", "verdict", "error, median" if first.has_truth else "confidence", "95 %", "trusted", "wrong", "latency", "95 %", "drives",
              "failed")
    sentences = "<ul>" + "".join(f"<li>{escape(found.sentence)}</li>" for found in results.sweep) + "</ul>"
    if len(results.sweep) > MOST_SENTENCES:
        sentences = html_parts.folded("What the tests say of each", sentences)
    text = f"Each against {first.name}, paired over the drives; errors are those of all scans. {_method(results.sweep)}"
    return section("configurations", "Configurations", verdict_table(header, rows), sentences, paragraph(text, "sub"))


def _verdict(word: str) -> "tuple[str, str]":
    """A cell with its class."""
    return KINDS.get(word, ""), SIGNS.get(word, WORDS[word][0].lower() if word in WORDS else word or NONE)


# ---- drives


def _changed(found: FleetComparison) -> str:
    worse, better = found.changed()
    parts = [f"<h3>Drives that got {word} most</h3>{_changed_table(found, rows)}" for word, rows in (("worse", worse), ("better", better))
             if rows]
    if worse:
        lines = [ndtd(side.run, int(row), side.configuration, ["--output", name])
                 for side, row, name in zip((found.first, found.second), found.rows[worse[0]], ("before", "after"))]
        text = "\n".join([*lines, "ndt-report before after --out compare.html"])
        parts.append(f"{paragraph('The drive that got worse most, scan by scan:')}<pre>{escape(text)}</pre>")
    return "".join(parts)


def _changed_table(found: FleetComparison, rows: "list[int]") -> str:
    names = [name for name in LISTED if name in found.values]
    header = ["", *names, *(["mean error, change"] if found.has_truth else [])]
    cells = []
    for at in rows:
        line = [short(found.second.run.names[found.rows[at, 1]], MOST_NAME)]
        line += [_change(name, *(float(values[at]) for values in found.values[name])) for name in names]
        if found.has_truth:
            means = [side.totals.mean_error_m(found.rows[at:at + 1, column])[0] for column, side in enumerate((found.first, found.second))]
            change = float(means[1] - means[0])
            line.append(Unit.of("m", change).text(change, True) if np.isfinite(change) else NONE)
        cells.append(line)
    return table(header, cells)


def _change(name: str, first: float, second: float) -> str:
    arrow = "\N{RIGHTWARDS ARROW}"
    if name.startswith("scans"):
        return f"{percent(first)} {arrow} {percent(second)}"
    if name.endswith("confidence"):
        return f"{first:.4f} {arrow} {second:.4f}"
    if not np.isfinite(first + second):
        return f"{length(first)} {arrow} {length(second)}"
    unit = Unit.of("m", first, second)
    return f"{unit.number(first)} {arrow} {unit.text(second)}"


def _alone(found: FleetComparison) -> str:
    parts = []
    names_of = {bag: name for side in (found.first, found.second) for bag, name in zip(side.run.texts["bag"].tolist(), side.run.names)}
    newly = [str(found.second.run.texts["bag"][row]) for row in found.newly_failed]
    for title, urls in ((f"Failed in {found.names[1]} alone", newly), (f"Only in {found.names[0]}", found.only_first),
                        (f"Only in {found.names[1]}", found.only_second)):
        if urls:
            names = ", ".join(short(names_of[url], MOST_NAME) for url in urls[:MOST_LISTED])
            more = f" and {len(urls) - MOST_LISTED} more" if len(urls) > MOST_LISTED else ""
            parts.append(paragraph(f"{title}: {len(urls)}: {names}{more}."))
    return "".join(parts)


def _differing(found: FleetComparison) -> str:
    sides = (found.first, found.second)
    settings = [side.run.settings(side.configuration) for side in sides]
    rows = [("map", sides[0].run.job.map, sides[1].run.job.map)]
    rows += [(name, several(sides[0].run.texts[column]), several(sides[1].run.texts[column]))
             for name, column in (("map id", "map_id"), ("ndtd", "version"))]
    if settings[0] and settings[1]:
        keys = dict.fromkeys([*settings[0], *settings[1]])
        rows += [(key, settings[0].get(key, NONE), settings[1].get(key, NONE)) for key in keys if key != "map.path"]
    changed = [row for row in rows if row[1] != row[2]]
    if not changed:
        return paragraph("Map, version and settings are equal.")
    return f"<h3>What differs</h3>{table(('', *(short(name, SHORT_NAME) for name in found.names)), changed, 'text')}"


def _method(found: "Sequence[FleetComparison]") -> str:
    tests = sum(len(one.tests) for one in found)
    if not tests:
        return ""
    quantities = next(one.quantities for one in found if one.quantities)
    margins = dict.fromkeys(f"{with_unit(one.margin, one.unit)} ({one.name.split(' ', 2)[-1] if ' error' in one.name else one.name})"
                            for one in quantities)
    return (f"A drive is the unit: pairs are drives with the same content. Mean: bootstrap over the drives, Student's t. Usual drive: the "
            f"median of the differences, its p that of Wilcoxon's signed ranks. p of all tests: Holm's correction for {tests}; below 0.05 "
            f"a test tells them apart, unless its interval lies within the margin: {', '.join(margins)}. Errors are those of each run's "
            "own trusted poses. Drives that fail anew, and more missed ones (half of their scans without a trusted pose, or 1 % of the poses "
            "wrong), are worse without a test.")
