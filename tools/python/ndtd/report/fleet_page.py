"""The report of a fleet's run: one HTML file that needs nothing else. Whether to ship, and where to survey again, first."""
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Optional

import numpy as np

from ..fleet.run_folder import FleetError
from . import fleet_comparison, fleet_figures, fleet_places, fleet_totals, html_parts, map_above, trajectory_figure
from .compare_figures import short
from .compare_page import KINDS, SIGNS, WORDS, test_row, verdict_table
from .comparison import MARGIN_DEG, MARGIN_M, Unit, unit_of, with_unit
from .figures import Drawing, escape
from .fleet_comparison import FleetComparison, Side
from .fleet_places import Grid, Place, Survey
from .fleet_reading import FleetRun, plain_reason
from .fleet_totals import Low, Totals, percent, thousands
from .html_parts import figure, paragraph, section, table
from .page import WORDS as LEVELS
from .verdict import NB, NONE, count, length, milliseconds

MOST_LISTED, MOST_NAME = 20, 64
LINES, MOST_LINE = 10, 500  # of a program that failed
WORST = 12  # drives
MOST_SMALL = 1.5
MOST_SURE = 50  # places


class FleetPage:
    """`sentence`, `is_worse`, `drawings` (in the order of the page) and `html()`."""

    def __init__(self, run: Any, against: Any = None, configuration: "Optional[str]" = None, margin_m: float = MARGIN_M,
                 margin_deg: float = MARGIN_DEG):
        self.run = FleetRun(run)
        self.name = _chosen(self.run, configuration)
        self.totals, self.grid = _read(self.run, self.name)
        self.configured = [fleet_totals.configured(self.run, self.totals, name) for name in self.run.configurations]
        self.main = next(one for one in self.configured if one.name == self.name)
        self.places, self.unsure = _places(self.run, self.name, self.grid)
        self.sweep = _sweep(self.run, self.totals, margin_m, margin_deg)
        self.against: "list[FleetComparison]" = []
        self.grid_before: "Optional[Grid]" = None
        if against is not None:
            self.against, self.grid_before = _against(self.run, self.totals, against, configuration, margin_m, margin_deg, self.grid.edge_m)
        self.found = _worst_comparison(self.against, self.name) if self.against else None
        told = [f"{_coordinates(one)} ({one.bad} of {one.passed} drives)" for one in self.places]
        self.verdict = fleet_totals.judge(self.main, told, len(self._damaged()))
        self._draw()

    def _draw(self) -> None:
        around = fleet_figures.windows(self.places)
        box = fleet_figures.extent(self.grid, self.places)
        density, self.map_note = map_above.read(self.run.map_file, box, *trajectory_figure.pixels(box), around)
        self.map = fleet_figures.places_map(self.grid, box, density, self.places)
        is_small = box.width < MOST_SMALL * 2 * fleet_figures.AROUND_M  # the map shows what they would
        self.details = fleet_figures.place_details(self.grid, self.places, around) if around and not is_small else None
        self.distributions = fleet_figures.distributions(self.run, self.totals, self.configured)
        tested = self.found if self.found and len(self.found.rows) else None
        self.intervals = fleet_figures.intervals(tested) if tested and tested.tests else None
        self.paired = fleet_figures.paired_drives(tested) if tested else None

    @property
    def drawings(self) -> "list[Drawing]":
        return [one for one in (self.intervals, self.paired, self.map, self.details, self.distributions) if one]

    @property
    def is_worse(self) -> bool:
        """Than the run it is compared with."""
        return any(one.is_worse for one in self.against)

    @property
    def sentence(self) -> str:
        if len(self.against) > 1:
            words = Counter(WORDS[one.verdict][0].lower() for one in self.against)
            told = ", ".join(f"{times} {word}" for word, times in words.items())
            return f"{len(self.against)} configurations: {told}. {self.found.second.configuration if self.found else ''}: " + self._told()
        return self._told()

    def _told(self) -> str:
        return self.found.sentence if self.found else self.verdict.sentence

    # ---- the page

    def html(self) -> str:
        parts = [("against", "Against the other run", self._against() if self.found else ""),
                 ("survey", "Where to survey again", self._survey()),
                 ("configurations", "Configurations", self._configurations() if len(self.configured) > 1 else ""),
                 ("worst-drives", "Worst drives", self._worst()),
                 ("failed", "Failed and damaged", self._failed()),
                 ("spread", "Distributions", section("spread", "Distributions", figure(self.distributions))),
                 ("run", "This run", self._run())]
        shown = [one for one in parts if one[2]]
        return html_parts.document(f"Fleet report: {self.run.name}", [(name, title) for name, title, _ in shown],
                                   self._head() + "".join(body for _, _, body in shown), "ndt-fleet")

    def _head(self) -> str:
        run, found = self.run, self.found
        map_name = run.job.map.rstrip("/").rsplit("/", 1)[-1]
        title = escape(run.name)
        sub = f"Fleet of {count(len(set(run.texts['bag'].tolist())), 'drive')} on {map_name}"
        sub += f", configuration {self.name}" if len(self.configured) > 1 or self.name != "base" else ""
        if found:
            word, level = WORDS[found.verdict]
            if found.is_worse and level == "good":
                level = "poor"
            title = (f'<i class="dot first"></i>{escape(found.names[0])} <span class="sub">\N{RIGHTWARDS ARROW}</span> '
                     f'<i class="dot second"></i>{escape(found.names[1])}')
            head = html_parts.verdict(level, word, self.sentence) + paragraph(f"By itself: {self.verdict.sentence}")
        else:
            head = html_parts.verdict(self.verdict.level, LEVELS[self.verdict.level], self.verdict.sentence)
        return (f'<header><h1>{title}</h1><p class="sub">{escape(sub)}</p>{head}{html_parts.tiles(self._tiles())}'
                f"{self._care()}{html_parts.hints('Something may be set wrongly', self._hints())}</header>")

    def _tiles(self) -> "list[tuple[str, str, str]]":
        """With what they were before."""
        if not self.found:
            return self.verdict.numbers
        first = self.found.first
        before = fleet_totals.judge(fleet_totals.configured(first.run, first.totals, first.configuration), [], 0).numbers
        was = {name: value for name, value, _ in before}
        return [(name, value, f"was {was[name]}" if name in was else note) for name, value, note in self.verdict.numbers]

    def _care(self) -> str:
        out = []
        if not self.main.has_truth and len(self.main.rows):
            out.append("There is no ground truth: errors are not known. Shown is what ndtd says of itself, its confidence and the share of scans "
                       "without a trusted pose, which tell whether a result is consistent, not whether it is right.")
        left = len(self.run.run_folder.read_json(self.run.folder / "bags.json") or ()) - len(set(self.run.texts["bag"].tolist()))
        if left > 0:
            out.append(f"{count(left, 'bag')} not in the tables: not replayed yet, or of the same content as another; `ndt-fleet status` tells which.")
        if self.found and not self.found.tests and not self.found.is_same and len(self.found.rows):
            out.append(f"{count(len(self.found.rows), 'drive')} in both runs: fewer than the {fleet_comparison.FEWEST_DRIVES} that a test over drives "
                       "needs. ndt-report compares two replays of one drive scan by scan; the commands stand below.")
        return html_parts.hints("Read with care", out)

    def _hints(self) -> "list[str]":
        found: "Counter[str]" = Counter()
        for row in self.main.rows.tolist() if self.run.hints else []:
            found.update({plain_reason(line) for line in self.run.hints[row]})
        return [f"{line} ({times} of {len(self.main.rows)} drives)" for line, times in found.most_common(5)]

    # ---- places

    def _survey(self) -> str:
        grid, parts = self.grid, []
        if self.map_note:
            parts.append(paragraph(f"The map is not drawn: {self.map_note}.", "sub"))
        parts += [paragraph(_survey_text(self.places)), figure(self.map)]
        if self.places:
            parts.append(self._place_table(self.places[:MOST_SURE]))
        if self.details:
            parts.append(figure(self.details))
        if self.unsure:
            rows = [(_coordinates(one), f"{one.bad} of {one.passed}", f"{percent(one.share)} of {thousands(one.scans)}", self._name(one.worst[1]))
                    for one in self.unsure[:MOST_LISTED]]
            listed = f", the first {MOST_LISTED}" if len(self.unsure) > MOST_LISTED else ""
            parts.append(f"<details><summary>{count(len(self.unsure), 'more place')} where drives were low, but so few passed that it may be chance"
                         f"{listed}: drive there again before surveying</summary>"
                         f"{table(('', 'drives that were low', 'low scans', 'worst drive'), rows)}</details>")
        is_one = grid.bad_drives == 1
        left_out = ("" if not grid.bad_drives else " Half of all drives are low at most places: that is no matter of places." if not grid.leaves_out else
                    f" {count(grid.bad_drives, 'drive')} that {'is' if is_one else 'are'} low at most places {'is' if is_one else 'are'} left out.")
        parts.append(paragraph(
            f"A scan is low without a trusted pose, below the confidence of {self.run.min_confidence(self.name):g}, or where its pose is wrong. Without "
            f"a trusted pose it counts where the drive was: between trusted poses at most {fleet_places.MOST_GAP_S:g} s apart, or at the last one if "
            f"that is at most {fleet_places.FRESH_S:g} s old; {count(grid.nowhere, 'low scan')} of others are nowhere. A cell is bad where "
            f"{percent(fleet_places.LOW_DRIVES)} of the drives that passed had {percent(fleet_places.LOW_SHARE)} of their scans low. Bad cells near each "
            f"other are a place, and it is named when drives that are low as often as elsewhere would not be low there together ({percent(1 - fleet_places.SIGNIFICANT)} "
            f"sure, all places taken together). Where drives are lost for long, the place is where they were lost.{left_out}", "sub"))
        return section("survey", "Where to survey again", *parts)

    def _place_table(self, places: "list[Place]") -> str:
        has_truth = any(one.error_count for one in places)
        header = ["place", "extent", "drives that were low", "low scans", "how", "worst drive"]
        header[4:4] = [*(["low before"] if self.grid_before else []), *(["error of trusted poses"] if has_truth else [])]
        rows = []
        for number, one in enumerate(places, 1):
            size = one.high_m - one.low_m
            why = [f"{name} ({percent(times / max(one.low, 1))})" for name, times in one.outcomes.most_common(2) if name]
            why += [name for name, _ in one.reasons.most_common(2) if name]
            more = [percent(self.grid_before.low_share(one.keys))] if self.grid_before else []
            if has_truth:
                more.append(f"{length(one.error_sum_m / one.error_count)}, at most {length(one.error_max_m)}" if one.error_count else NONE)
            rows.append((f"{number} {_coordinates(one)}", f"{size[0]:.0f}{NB}\N{MULTIPLICATION SIGN}{NB}{size[1]:.0f}{NB}m", f"{one.bad} of {one.passed}",
                         f"{percent(one.share)} of {thousands(one.scans)}", *more, "; ".join(why), self._name(one.worst[1], 26)))
        return table(header, rows, "words")

    def _name(self, row: int, most: int = MOST_NAME) -> str:
        return short(self.run.names[row], most)

    # ---- configurations

    def _configurations(self) -> str:
        unit = Unit.of("m", *(value for one in self.configured for value in (one.error_median_m, one.error_p95_m)))
        verdicts = {found.second.configuration: found.verdict for found in self.sweep}
        rows = []
        for one in self.configured:
            word = verdicts.get(one.name, "")
            errors = [unit.text(one.error_median_m), unit.text(one.error_p95_m)] if one.has_truth else [f"{one.confidence:.4f}", NONE]
            cells = [*errors, percent(1 - one.untrusted_share), thousands(one.wrong), milliseconds(one.latency_p50_ms),
                     milliseconds(one.latency_p95_ms), thousands(len(one.rows)), thousands(one.failed)]
            rows.append([("", short(one.name, MOST_NAME)), (KINDS.get(word, ""), SIGNS.get(word, WORDS[word][0].lower()) if word else NONE),
                         *(("", cell) for cell in cells)])
        first = self.configured[0]
        header = ("", "verdict", "error, median" if first.has_truth else "confidence", "95 %", "trusted", "wrong", "latency", "95 %", "drives", "failed")
        sentences = "".join(f"<li>{escape(found.sentence)}</li>" for found in self.sweep)
        return section("configurations", "Configurations", verdict_table(header, rows), f"<ul>{sentences}</ul>",
                       paragraph(f"Each against {first.name}, paired over the drives; errors are those of all scans. {_method(self.sweep)}", "sub"))

    # ---- comparison

    def _against(self) -> str:
        found = self.found
        assert found is not None
        parts = []
        if len(self.against) > 1:
            rows = [[("", one.second.configuration), (KINDS.get(one.verdict, ""), SIGNS.get(one.verdict, WORDS[one.verdict][0].lower()))]
                    for one in self.against]
            parts += [verdict_table(("configuration", "verdict"), rows), paragraph(f"Shown below: {found.second.configuration}.")]
        names = [short(name, 24) for name in found.names]
        if found.tests:
            rows = [test_row(test, unit_of(found.tests, test.quantity)) for test in found.tests]
            parts.append(verdict_table(("", "verdict", *names, "difference", "95 % interval", "p", "p of all tests"), rows))
        facts = [[("", fact.name), (KINDS.get(fact.verdict, ""), SIGNS.get(fact.verdict, fact.verdict)), ("", fact.first), ("", fact.second)]
                 for fact in found.facts]
        parts.append(verdict_table(("counted", "verdict", *names), facts))
        if self.intervals:
            parts.append(figure(self.intervals))
        if self.paired:
            parts.append(figure(self.paired))
        parts += [self._changed(found), _alone_lists(found), _differing(found), paragraph(_method([found]), "sub")]
        return section("against", "Against the other run", *parts)

    def _changed(self, found: FleetComparison) -> str:
        worse, better = found.changed()
        parts = []
        for title, rows in (("Drives that got worse most", worse), ("Drives that got better most", better)):
            if rows and not found.is_same:
                parts.append(f"<h3>{title}</h3>{_changed_table(found, rows)}")
        if worse and not found.is_same:
            row = found.rows[worse[0]]
            before, after = (_replay(side.run, int(at), side.configuration, name)
                             for side, at, name in zip((found.first, found.second), row, ("before", "after")))
            lines = "\n".join([before, after, "ndt-report before after --out compare.html"])
            parts.append(f"{paragraph('The first of them, scan by scan:')}<pre>{escape(lines)}</pre>")
        return "".join(parts)

    # ---- drives

    def _worst(self) -> str:
        rows = self.main.rows
        if not len(rows):
            return section("worst-drives", "Worst drives", paragraph("No drive is done."))
        found = fleet_totals.worst_drives(self.run, self.totals, rows, WORST)
        cells = []
        for number, one in enumerate(found, 1):
            p95 = self.run.numbers["error_m_p95"][one.row]
            value = length(float(p95)) if self.main.has_truth else f"{self.run.numbers['confidence_median'][one.row]:.4f}"
            cells.append((f"{number} {self._name(one.row)}", thousands(int(self.totals.counts["scans"][one.row])), percent(one.untrusted_share),
                          value, one.why))
        commands = [f"# {number}\n{_command(self.run, one.row, self.name, number)}" for number, one in enumerate(found, 1)]
        header = ("", "scans", "without trust", "error, 95 %" if self.main.has_truth else "confidence, median", "why")
        more = "\n".join(commands[1:])
        return section(
            "worst-drives", "Worst drives", table(header, cells, "text"), paragraph("Look at the first: this replays it and writes its report."),
            f"<pre>{escape(_command(self.run, found[0].row, self.name, 1))}</pre>",
            f"<details><summary>The same for the others</summary><pre>{escape(more)}</pre></details>" if more else "")

    def _damaged(self) -> "list[int]":
        return [int(row) for row in self.main.rows if self.run.texts["damage"][row]]

    def _failed(self) -> str:
        failed, damaged, parts = self._failures(), self._damaged(), []
        if not failed and not damaged:
            return ""
        for (row, reason, kind), (configs, lines) in list(failed.items())[:MOST_LISTED]:
            head = self._name(row) + (f": {kind}" if kind not in ("", "failed") else "")
            if len(self.configured) > 1:
                head += " (all configurations)" if len(configs) == len(self.configured) else f" ({', '.join(configs)})"
            shown = "\n".join(line[:MOST_LINE] for line in lines[-LINES:])
            parts.append(f"<h3>{escape(head)}</h3>{paragraph(reason[:MOST_LINE])}" + (f"<pre>{escape(shown)}</pre>" if lines else ""))
        if len(failed) > MOST_LISTED:
            parts.append(paragraph(f"And {len(failed) - MOST_LISTED} more; `ndt-fleet status` lists them."))
        if damaged:
            cells = [(self._name(row), str(self.run.texts["damage"][row])[:200]) for row in damaged[:MOST_LISTED]]
            text = count(len(damaged), "bag") + (f", the first {MOST_LISTED}:" if len(damaged) > MOST_LISTED else ":")
            parts += ["<h3>Damaged, used up to the damage</h3>", paragraph(text), table(("bag", "damage"), cells, "text")]
        return section("failed", "Failed and damaged", *parts)

    def _failures(self) -> "dict[tuple[int, str, str], tuple[list[str], tuple[str, ...]]]":
        """(row, reason, kind) of a bag -> the configurations, and the last lines."""
        run = self.run
        first: "dict[str, int]" = {}
        out: "dict[tuple[int, str, str], tuple[list[str], tuple[str, ...]]]" = {}
        for row in fleet_totals.failed_rows(run, None).tolist():
            bag, config = str(run.texts["bag"][row]), str(run.texts["config"][row])
            told = run.failures.get((bag, config)) or run.failures.get((bag, ""))
            key = (first.setdefault(bag, row), str(run.texts["failure"][row]) or "no reason is known", str(run.texts["failure_kind"][row]))
            out.setdefault(key, ([], told.lines if told else ()))[0].append(config)
        return out

    # ---- this run

    def _run(self) -> str:
        run, numbers = self.run, self.run.numbers
        begin = numbers["first_ns"][np.isfinite(numbers["first_ns"])]
        memory = numbers["peak_memory_bytes"][np.isfinite(numbers["peak_memory_bytes"])]
        rows = [("map", run.job.map), ("map id", _several(run.texts["map_id"])), ("ndtd", _several(run.texts["version"])),
                ("bags", ", ".join(run.job.patterns)), ("configurations", ", ".join(run.configurations[:MOST_LISTED])),
                ("settings", str(run.run_folder.path.resolve() / "configs")), ("recorded", _dates(begin)),
                ("replayed", f"{np.nansum(numbers['replay_s']) / 3600:.3g} hours of one core"),
                ("peak memory of a replay", f"{memory.max() / 2**20:.0f} MiB" if len(memory) else ""), ("folder", str(run.folder.resolve()))]
        shown = html_parts.pairs((name, value) for name, value in rows if value)
        again = shlex.join(["ndt-fleet", "report", str(run.folder), *(["--against", str(self.found.first.run.folder)] if self.found and
                            self.found.first.run is not run else []), "--out", "fleet.html"])
        return section("run", "This run", f'<div class="facts list">{shown}</div>', "<h3>Repeat it</h3>",
                       f"<pre>{escape(shlex.join(['ndt-fleet', 'run', '--out', str(run.folder)]) + chr(10) + again)}</pre>")


def write(run: Any, against: Any = None, *, out: Any, configuration: "Optional[str]" = None, margin_m: float = MARGIN_M,
          margin_deg: float = MARGIN_DEG, figures: Any = None, format: str = "svg") -> FleetPage:
    """Writes the page, which is complete or absent, and the figures into a folder. run, against: run folders. OSError, FleetError."""
    page = FleetPage(run, against, configuration, margin_m, margin_deg)
    html_parts.write(Path(out), page.html(), page.drawings, figures, format)
    return page


# ---- reading


def _chosen(run: FleetRun, configuration: "Optional[str]") -> str:
    if configuration is None:
        return run.configurations[0]
    if configuration not in run.configurations:
        raise FleetError(f"{run.folder}: has no configuration {configuration!r}, but {', '.join(run.configurations[:MOST_LISTED])}")
    return configuration


def _read(run: FleetRun, places_of: str, edge_m: "Optional[float]" = None) -> "tuple[Totals, Grid]":
    """One reading of the scan table: totals of all drives, and cells of a configuration; edge_m: of a cell, None: by the extent."""
    totals, grid = Totals.of(run), Grid(edge_m or fleet_places.cell_edge_m(run, places_of))
    limits = {name: run.min_confidence(name) for name in run.configurations}
    for block in run.blocks(fleet_totals.COLUMNS + fleet_places.COLUMNS):
        for name in np.unique(run.texts["config"][block.drives]).tolist():
            mine = block.of(run.texts["config"][block.drives] == name)
            low = Low(mine, _merged(run), limits.get(name, limits[run.configurations[0]]))
            totals.add(run, mine, low)
            if name == places_of:
                grid.add(mine, fleet_places.positions(mine, low.wrong), low)
    grid.merge()
    return totals, grid


def _merged(run: FleetRun) -> int:
    """Number of the outcome of scans that are parts of others; -1: there is none."""
    return run.labels["outcome"].index("merged") if "merged" in run.labels["outcome"] else -1


def _places(run: FleetRun, name: str, grid: Grid) -> "tuple[list[Place], list[Place]]":
    """Those to survey again, and those that may be chance."""
    found, candidates = fleet_places.groups(grid)
    if found:
        survey, limit = Survey(run, grid, found), run.min_confidence(name)
        for block in run.blocks((*fleet_totals.COLUMNS, *fleet_places.COLUMNS, "reason")):
            is_mine = run.texts["config"][block.drives] == name
            if is_mine.any():
                mine = block.of(is_mine)
                low = Low(mine, _merged(run), limit)
                survey.add(mine, fleet_places.positions(mine, low.wrong), low)
    return fleet_places.rank(grid, found, candidates)


# ---- comparisons


def _sweep(run: FleetRun, totals: Totals, margin_m: float, margin_deg: float) -> "list[FleetComparison]":
    sides = [Side(run, totals, name, name) for name in run.configurations]
    return fleet_comparison.compare([(sides[0], side) for side in sides[1:]], margin_m, margin_deg)


def _against(run: FleetRun, totals: Totals, against: Any, configuration: "Optional[str]", margin_m: float, margin_deg: float,
             edge_m: float) -> "tuple[list[FleetComparison], Grid]":
    """A comparison for each configuration of both, and the cells of the other run."""
    other = FleetRun(against)
    names = [run.name, other.name] if run.name != other.name else [str(run.folder), str(other.folder)]
    if len(run.configurations) == len(other.configurations) == 1:
        pairs = [(other.configurations[0], run.configurations[0])]
    else:
        wanted = [configuration] if configuration else run.configurations
        pairs = [(name, name) for name in wanted if name in other.configurations]
        if not pairs and len(other.configurations) == 1 and len(wanted) == 1:
            pairs = [(other.configurations[0], wanted[0])]
    if not pairs:
        raise FleetError(f"{run.folder} and {other.folder} have no configuration in common: --configuration chooses one of "
                         f"{', '.join(run.configurations[:MOST_LISTED])}")
    other_totals, grid = _read(other, next((one for one, two in pairs if two == _chosen(run, configuration)), pairs[0][0]), edge_m)
    sides = [(Side(other, other_totals, one, names[1]), Side(run, totals, two, names[0])) for one, two in pairs]
    return fleet_comparison.compare(sides, margin_m, margin_deg), grid


def _worst_comparison(found: "list[FleetComparison]", name: str) -> FleetComparison:
    return next((one for one in found if one.is_worse), next((one for one in found if one.second.configuration == name), found[0]))


# ---- texts


def _survey_text(places: "list[Place]") -> str:
    if not places:
        return "No place of the map is bad for several drives: nothing has to be surveyed again."
    return f"{count(len(places), 'place')} where more drives were low than chance explains." + (
        f" The first {MOST_SURE}:" if len(places) > MOST_SURE else "")


def _coordinates(one: Place) -> str:
    middle = (one.low_m + one.high_m) / 2
    return f"x{NB}{middle[0]:.0f} y{NB}{middle[1]:.0f} z{NB}{one.centre[2]:.0f}{NB}m".replace("-", "\N{MINUS SIGN}")


def _last(url: str) -> str:
    return short(url.rstrip("/").rsplit("/", 1)[-1], MOST_NAME)


def _changed_table(found: FleetComparison, rows: "list[int]") -> str:
    names = [name for name in ("median translation error", "95 % translation error", "median confidence", "scans without a trusted pose")
             if name in found.values]
    cells = []
    for at in rows:
        line = [short(found.second.run.names[found.rows[at, 1]], MOST_NAME)]
        for name in names:
            first, second = (float(values[at]) for values in found.values[name])
            if name.startswith("scans"):
                line.append(f"{percent(first)} \N{RIGHTWARDS ARROW} {percent(second)}")
            elif name.endswith("confidence"):
                line.append(f"{first:.4f} \N{RIGHTWARDS ARROW} {second:.4f}")
            elif np.isfinite(first) and np.isfinite(second):
                unit = Unit.of("m", first, second)
                line.append(f"{unit.number(first)} \N{RIGHTWARDS ARROW} {unit.text(second)}")
            else:
                line.append(f"{length(first)} \N{RIGHTWARDS ARROW} {length(second)}")
        if "95 % translation error" in names:
            means = [side.totals.mean_error_m(found.rows[at:at + 1, column])[0] for column, side in enumerate((found.first, found.second))]
            change = float(means[1] - means[0])
            line.insert(3, Unit.of("m", change).text(change, True) if np.isfinite(change) else NONE)
        cells.append(line)
    header = ["", *names]
    if "95 % translation error" in names:
        header.insert(3, "mean, change")
    return table(header, cells)


def _alone_lists(found: FleetComparison) -> str:
    parts = []
    newly = [str(found.second.run.texts["bag"][row]) for row in found.newly_failed]
    for title, urls in ((f"Failed in {found.names[1]} alone", newly), (f"Only in {found.names[0]}", found.only_first),
                        (f"Only in {found.names[1]}", found.only_second)):
        if urls:
            more = f" and {len(urls) - MOST_LISTED} more" if len(urls) > MOST_LISTED else ""
            parts.append(paragraph(f"{title}: {len(urls)}: {', '.join(_last(url) for url in urls[:MOST_LISTED])}{more}."))
    return "".join(parts)


def _differing(found: FleetComparison) -> str:
    sides = (found.first, found.second)
    settings = [side.run.settings(side.configuration) for side in sides]
    rows = [(name, *(_several(side.run.texts[column]) for side in sides)) for name, column in (("map id", "map_id"), ("ndtd", "version"))]
    rows.insert(0, ("map", sides[0].run.job.map, sides[1].run.job.map))
    rows += [(key, settings[0].get(key, NONE), settings[1].get(key, NONE)) for key in dict.fromkeys([*settings[0], *settings[1]])
             if settings[0] and settings[1] and key != "map.path"]
    changed = [row for row in rows if row[1] != row[2]]
    if not changed:
        return paragraph("Map, version and settings are equal.")
    return f"<h3>What differs</h3>{table(('', *(short(name, 24) for name in found.names)), changed, 'text')}"


def _method(found: "Sequence[FleetComparison]") -> str:
    tests = sum(len(one.tests) for one in found)
    if not tests:
        return ""
    margins = dict.fromkeys(f"{with_unit(one.margin, one.unit)} ({one.name.split(' ', 2)[-1] if ' error' in one.name else one.name})" for one in found[0].quantities)
    return (f"A drive is the unit: pairs are drives with the same content. Mean: bootstrap over the drives, Student's t. Usual drive: the median of the "
            f"differences, its p that of Wilcoxon's signed ranks. p of all tests: Holm's correction for {tests}; below 0.05 a test tells them apart, "
            f"unless its interval lies within the margin: {', '.join(margins)}. Errors are those of each run's own trusted poses. Drives that fail "
            "anew, and more lost ones (half of their scans without a trusted pose, or 1 % of the poses wrong), are worse without a test.")


def _replay(run: FleetRun, row: int, name: str, folder: str) -> str:
    return _ndtd(run, row, name, ["--output", folder])


def _command(run: FleetRun, row: int, name: str, number: int) -> str:
    stem = re.sub(r"[^\w.-]+", "_", short(run.names[row].rsplit(".", 1)[0], MOST_NAME)).strip("-._") or f"drive-{number}"
    return _ndtd(run, row, name, ["--report", f"{stem}.html"])


def _ndtd(run: FleetRun, row: int, name: str, more: "list[str]") -> str:
    bag = str(run.texts["bag"][row])
    found = next(one for one in run.job.configurations if one.name == name)
    note = f"# first copy {bag.splitlines()[0]} to this folder\n" if "://" in bag and not bag.startswith("file://") else ""
    path = bag[len("file://"):] if bag.startswith("file://") else bag.rstrip("/").rsplit("/", 1)[-1] if "://" in bag else bag
    words = ["ndtd", "--replay", path, "--map", str(run.map_file or run.job.map), "--config", str(run.run_folder.config_file(found)), *more]
    return note + shlex.join([*words, *(["--", *run.job.import_options] if run.job.import_options else [])])


def _several(values: np.ndarray) -> str:
    """The different ones."""
    kinds = sorted({str(one) for one in values.tolist() if one})
    return ", ".join(kinds[:4]) + (f" and {len(kinds) - 4} more" if len(kinds) > 4 else "")


def _dates(stamps_ns: np.ndarray) -> str:
    if not len(stamps_ns) or not 6e17 < stamps_ns.min() <= stamps_ns.max() < 4e18:  # 1989 to 2096
        return ""
    first, last = (datetime.fromtimestamp(float(one) / 1e9, timezone.utc).strftime("%Y-%m-%d") for one in (stamps_ns.min(), stamps_ns.max()))
    return first if first == last else f"{first} to {last}"
