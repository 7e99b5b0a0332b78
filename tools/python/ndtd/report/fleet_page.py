"""The report of a fleet's run: one HTML file that needs nothing else. Whether to ship, and where to survey again, first."""
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Optional

import numpy as np

from . import fleet_against_section, fleet_comparison, fleet_drives_section, fleet_figures, fleet_totals, html_parts
from .compare_page import WORDS
from .comparison import MARGIN_DEG, MARGIN_M
from .figures import Drawing, escape
from .fleet_against_section import AgainstSection
from .fleet_reading import plain_reason
from .fleet_results import FleetResults
from .fleet_survey_section import SurveySection, coordinates
from .fleet_totals import several
from .html_parts import figure, paragraph, section
from .page import WORDS as LEVELS
from .verdict import count

MOST_NAMED, MOST_HINTS = 20, 5
WriteDrives = Callable[[FleetResults], "Mapping[int, str]"]  # row of a drive -> its page


class FleetPage:
    """`sentence`, `is_worse`, `drawings` (in the order of the page) and `html()`."""

    def __init__(self, results: FleetResults, pages: "Optional[Mapping[int, str]]" = None):
        """pages: row of a drive -> its own page."""
        self.results, self.found, self.pages = results, results.found, pages or {}
        told = [f"{coordinates(one)} ({one.bad} of {one.passed} drives)" for one in results.places]
        self.verdict = fleet_totals.judge(results.main, told, len(results.damaged))
        self.survey = SurveySection(results)
        self.against = AgainstSection(results, self.found) if self.found else None
        self.distributions = fleet_figures.distributions(results.run, results.totals, results.configured)

    @property
    def drawings(self) -> "list[Drawing]":
        return [*(self.against.drawings if self.against else []), *self.survey.drawings, self.distributions]

    @property
    def is_worse(self) -> bool:
        """Whether it is worse than the run it is compared with."""
        return self.results.is_worse

    @property
    def is_compared(self) -> bool:
        """Whether both runs have a drive, done or failed anew, with the same content."""
        return any(len(one.rows) or one.newly_failed or one.no_longer_failed for one in self.results.against)

    @property
    def sentence(self) -> str:
        """The verdict: on the run against the other one, or by itself."""
        if self.found is None:
            return self.verdict.sentence
        against = self.results.against
        if len(against) == 1:
            return self.found.sentence
        words = Counter(WORDS[one.verdict][0].lower() for one in against)
        told = ", ".join(f"{times} {word}" for word, times in words.items())
        return f"{len(against)} configurations: {told}. {self.found.second.configuration}: {self.found.sentence}"

    def html(self) -> str:
        results = self.results
        parts = [("against", "Against the other run", self.against.html() if self.against else ""),
                 ("survey", "Where to survey again", self.survey.html()),
                 ("configurations", "Configurations", fleet_against_section.configurations(results)),
                 ("worst-drives", "Worst drives", fleet_drives_section.worst(results, self.pages)),
                 ("failed", "Failed and damaged", fleet_drives_section.failed(results)),
                 ("spread", "Distributions", section("spread", "Distributions", figure(self.distributions))),
                 ("run", "This run", self._run())]
        shown = [one for one in parts if one[2]]
        return html_parts.document(f"Fleet report: {results.run.name}", [(name, title) for name, title, _ in shown],
                                   self._head() + "".join(body for _, _, body in shown), "ndt-fleet")

    def _head(self) -> str:
        run, name, found = self.results.run, self.results.name, self.found
        sub = f"Fleet of {count(len(set(run.names)), 'drive')} on {run.job.map.rstrip('/').rsplit('/', 1)[-1]}"
        sub += f", configuration {name}" if len(run.configurations) > 1 or name != "base" else ""
        if found:
            word, level = WORDS[found.verdict]
            one, other = (escape(name) for name in found.names)
            title = (f'<i class="dot first"></i>{one} <span class="sub">\N{RIGHTWARDS ARROW}</span> '
                     f'<i class="dot second"></i>{other}')
            verdict = html_parts.verdict("poor" if self.is_worse else level, word, self.sentence)
            verdict += paragraph(f"By itself: {self.verdict.sentence}")
        else:
            title = escape(run.name)
            verdict = html_parts.verdict(self.verdict.level, LEVELS[self.verdict.level], self.sentence)
        return (f'<header><h1>{title}</h1><p class="sub">{escape(sub)}</p>{verdict}{html_parts.tiles(self._tiles())}'
                f"{html_parts.hints('Read with care', self._care())}"
                f"{html_parts.hints('Something may be set wrongly', self._hints())}</header>")

    def _tiles(self) -> "list[tuple[str, str, str]]":
        """Numbers at the top, with what they were before."""
        if not self.found:
            return self.verdict.numbers
        first = self.found.first
        before = fleet_totals.judge(fleet_totals.configured(first.run, first.totals, first.configuration), [], 0).numbers
        was = {name: value for name, value, _ in before}
        return [(name, value, f"was {was[name]}" if name in was else note) for name, value, note in self.verdict.numbers]

    def _care(self) -> "list[str]":
        run, main, found, out = self.results.run, self.results.main, self.found, []
        if not main.has_truth and len(main.rows):
            out.append("There is no ground truth: errors are not known. Shown is what ndtd says of itself, its confidence and the share of "
                       "scans without a trusted pose, which tell whether a result is consistent, not whether it is right.")
        left = len(run.run_folder.read_json(run.folder / "bags.json") or ()) - len(set(run.texts["bag"].tolist()))
        if left > 0:
            out.append(f"{count(left, 'bag')} not in the tables: not replayed yet, or of the same content as another; `ndt-fleet run` "
                       "tells which.")
        if found and not found.tests and not found.is_same and len(found.rows):
            out.append(f"{count(len(found.rows), 'drive')} in both runs: fewer than the {fleet_comparison.FEWEST_DRIVES} that a test over "
                       "drives needs. ndt-report compares two replays of one drive scan by scan; the commands stand below.")
        return out

    def _hints(self) -> "list[str]":
        """Hints that ndtd gives, with the number of their drives."""
        run, rows = self.results.run, self.results.main.rows
        found = Counter(line for row in rows.tolist() for line in {plain_reason(one) for one in run.hints[row]})
        return [f"{line} ({times} of {len(rows)} drives)" for line, times in found.most_common(MOST_HINTS)]

    def _run(self) -> str:
        run, numbers = self.results.run, self.results.run.numbers
        begin, memory = (numbers[name][np.isfinite(numbers[name])] for name in ("first_ns", "peak_memory_bytes"))
        rows = [("map", run.job.map), ("map id", several(run.texts["map_id"])), ("ndtd", several(run.texts["version"])),
                ("bags", ", ".join(run.job.patterns)), ("configurations", "; ".join(run.configurations[:MOST_NAMED])),
                ("settings", str(run.folder.resolve() / "configs")), ("recorded", _dates(begin)),
                ("replayed", f"{fleet_totals.hours(float(np.nansum(numbers['replay_s'])) / 3600)} of one core"),
                ("peak memory of a replay", f"{memory.max() / 2**20:.0f} MiB" if len(memory) else ""),
                ("folder", str(run.folder.resolve()))]
        shown = html_parts.pairs((name, value) for name, value in rows if value)
        against = ["--against", str(self.found.first.run.folder)] if self.found else []
        commands = "\n".join(shlex.join(words) for words in (
            ["ndt-fleet", "run", "--out", str(run.folder)], ["ndt-fleet", "report", str(run.folder), *against, "--out", "fleet.html"]))
        return section("run", "This run", f'<div class="facts list">{shown}</div>', "<h3>Repeat it</h3>", f"<pre>{escape(commands)}</pre>")


def write(run: Any, against: Any = None, *, out: Any, configuration: "Optional[str]" = None, margin_m: float = MARGIN_M,
          margin_deg: float = MARGIN_DEG, figures: Any = None, format: str = "svg", drives: "Optional[WriteDrives]" = None) -> FleetPage:
    """Writes the page, which is complete or absent, and the figures into a folder. run, against: run folders; drives: writes pages
    of single drives. OSError, FleetError."""
    results = FleetResults(run, against, configuration, margin_m, margin_deg)
    page = FleetPage(results, drives(results) if drives else None)
    html_parts.write(Path(out), page.html(), page.drawings, figures, format)
    return page


def _dates(stamps_ns: np.ndarray) -> str:
    """First and last day; nothing where stamps are no dates."""
    if not len(stamps_ns) or not 6e17 < stamps_ns.min() <= stamps_ns.max() < 4e18:  # 1989 to 2096
        return ""
    ends = (datetime.fromtimestamp(float(one) / 1e9, timezone.utc) for one in (stamps_ns.min(), stamps_ns.max()))
    first, last = (one.strftime("%Y-%m-%d") for one in ends)
    return first if first == last else f"{first} to {last}"
