"""The report of one replay: one HTML file that needs nothing else."""
import shlex
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Optional

import numpy as np

from . import error_figures, html_parts, map_above, protection_figure, time_figures, trajectory_figure, worst_page, worst_scans
from .error_figures import DEG, Errors
from .figures import Drawing, escape
from .html_parts import figure, paragraph, section, table
from .pose_errors import statistics
from .raster import Box
from .run import Run, default_settings
from .verdict import Verdict, count, judge, length, milliseconds

WORDS = {"good": "Good", "fair": "Look closer", "poor": "Not good"}
COLUMNS = ("rmse", "mean", "median", "std", "p95", "max")
MOST_CHANGES = 40
NO_TRUTH = ("There is no ground truth for this replay, so errors are not known. Shown instead: what ndtd itself says, its covariance, "
            "innovation and confidence. They tell whether the result is consistent, not whether it is right.")


class Report:
    """`drawings`: every figure, in the order of the page; `html()`: the page."""

    def __init__(self, run: Run):
        self.run = run
        self.errors: "Optional[Errors]" = Errors(run) if run.is_compared.any() else None
        self.verdict: Verdict = judge(run, self.errors)
        rows, self.chosen_by = worst_scans.choose(run)
        box = trajectory_figure.extent(run)
        with ThreadPoolExecutor(1) as helper:  # numpy and zlib work on pictures while matplotlib draws
            pictures = helper.submit(self._pictures, rows, box)
            self.accuracy = self._accuracy()
            self.latency = [time_figures.latency_histograms(run), time_figures.latency_over_time(run)]
            self.matching = [time_figures.states(run), time_figures.matching(run)]
            density, self.map_note, self.worst = pictures.result()
        self.trajectory = trajectory_figure.draw(run, box, density, rows)

    def _pictures(self, rows: "list[int]", box: Box) -> "tuple[np.ndarray, str, list[worst_scans.Worst]]":
        """Points of the map per pixel of the trajectory, why there are none, the worst scans."""
        points = worst_scans.points_of(self.run, rows)
        around = worst_scans.windows(self.run, rows, points)
        density, note = map_above.read(self.run.path_of("map"), box, *trajectory_figure.pixels(box), list(around.values()))
        return density, note, worst_scans.describe(self.run, rows, points, around, note)

    @property
    def drawings(self) -> "list[Drawing]":
        return [self.trajectory, *self.accuracy, *self.latency, *self.matching]

    def _accuracy(self) -> "list[Drawing]":
        if self.errors is None:
            return [error_figures.sigmas(self.run)]
        out = [error_figures.ape(self.run, self.errors)]
        if any(len(one.translation_m) for one in self.errors.relative):
            out.append(error_figures.rpe(self.errors))
        out.append(error_figures.per_axis(self.run, self.errors))
        if np.isfinite(self.errors.sigma).any():
            out.append(error_figures.consistency(self.errors))
        if not np.isnan(self.run.protection[self.errors.compared]).all():
            out.append(protection_figure.stanford(self.run, self.errors, _alert_limit_m(self.run)))
        return out

    def html(self) -> str:
        parts = [self._trajectory(), self._accuracy_section(), self._latency_section(), self._matching_section(),
                 worst_page.section_of(self.run, self.worst, self.chosen_by), _settings(self.run), _run(self.run)]
        titles = (("trajectory-section", "Trajectory"), ("accuracy", "Accuracy"), ("time", "Time"), ("states-section", "States and scores"),
                  ("worst", "Worst scans"), ("settings", "Settings"), ("run", "This run"))
        return html_parts.document(f"Replay report: {_title(self.run)}", titles, self._head() + "".join(parts))

    def _head(self) -> str:
        run, verdict = self.run, self.verdict
        map_name = Path(str(run.summary.get("map") or "an unknown map")).name
        return (f'<header><h1>{escape(_title(run))}</h1><p class="sub">Replay on {escape(map_name)}</p>'
                f"{html_parts.verdict(verdict.level, WORDS[verdict.level], verdict.sentence)}{html_parts.tiles(verdict.numbers)}"
                f"{html_parts.hints('Something may be set wrongly', run.texts_of('hints'))}</header>")

    def _trajectory(self) -> str:
        note = paragraph(f"The map is not drawn: {self.map_note}.", "sub") if self.map_note else ""
        untrusted = paragraph("No pose of this replay is trusted: crosses are what the alignments gave.", "sub")
        none = "" if self.run.trusted.any() else untrusted
        return section("trajectory-section", "Trajectory", note, none, figure(self.trajectory))

    def _accuracy_section(self) -> str:
        if self.errors is None:
            none = NO_TRUTH if not self.run.has_truth else "No pose is trusted where there is ground truth, so there are no errors to show."
            return section("accuracy", "Accuracy", paragraph(none), *map(figure, self.accuracy))
        return section("accuracy", "Accuracy", _error_table(self.run, self.errors), *map(figure, self.accuracy),
                       _protection_table(self.run, self.errors))

    def _latency_section(self) -> str:
        return section("time", "Time", _latency_table(self.run), *map(figure, self.latency))

    def _matching_section(self) -> str:
        return section("states-section", "States and scores", figure(self.matching[0]), _state_changes(self.run), figure(self.matching[1]))


def write(run: Run, out: Any, folder: Any = None, format: str = "svg") -> Report:
    """Writes the page, which is complete or absent, and the figures into `folder`. OSError."""
    report = Report(run)
    html_parts.write(Path(out), report.html(), report.drawings, folder, format)
    return report


def _title(run: Run) -> str:
    return Path(str(run.summary.get("bag") or run.name)).name


# ---- tables


def _error_table(run: Run, errors: Errors) -> str:
    rows = [("APE translation", *_cells(statistics(errors.translation_m), length), int(errors.compared.sum())),
            ("APE rotation", *_cells(statistics(errors.rotation_rad), _degrees), int(errors.compared.sum()))]
    for one in errors.relative:
        if len(one.translation_m):
            rows.append((f"RPE translation, {one.distance_m:g} m", *_cells(statistics(one.translation_m), length), len(one.first)))
            rows.append((f"RPE rotation, {one.distance_m:g} m", *_cells(statistics(one.rotation_rad), _degrees), len(one.first)))
    short = [f"{one.distance_m:g} m" for one in errors.relative if not len(one.translation_m)]
    notes = [f"Errors are those of the {int(errors.compared.sum())} trusted poses with ground truth (as ndtd --out writes them); "
             "APE and RPE as evo computes them, without alignment, RPE of all pairs."]
    if short:
        notes.append(f"The drive is too short for RPE over {', '.join(short)}.")
    nees = errors.nees[np.isfinite(errors.nees)]
    if len(nees):
        notes.append(f"NEES: mean {nees.mean():.3g}; 6 where the covariance is right, less where it is too large.")
    header = ("", "RMSE", "mean", "median", "std", "95 %", "max", "poses, pairs")
    return "".join(map(paragraph, notes)) + table(header, rows)


def _alert_limit_m(run: Run) -> float:
    """integrity.alert_limit_m of the run; infinite: none."""
    try:
        limit_m = float(run.settings.get("integrity.alert_limit_m", 0))
    except ValueError:
        limit_m = 0.0
    return limit_m if limit_m > 0 else np.inf


def _protection_table(run: Run, errors: Errors) -> str:
    if np.isnan(run.protection[errors.compared]).all():
        return ""
    limit_m = _alert_limit_m(run)
    rows = [(one.name, one.scans, one.levels, one.misleading, one.hazardous, f"{one.available / max(1, one.scans):.1%}",
             f"{one.share_most:.2g}") for one in protection_figure.counts_of(run, errors, limit_m)]
    compared = errors.compared
    unsafe = f" Unsafe, by the horizontal level or without one: {int(run.unsafe[compared].sum())} of {int(compared.sum())} poses."
    limit = f"the alert limit, {limit_m:g} m" if np.isfinite(limit_m) else "no alert limit"
    return paragraph(f"Protection levels, {limit}. Misleading: the error is above its level; hazardous: and above the limit; available: the "
                     f"level is within it. At most: exact bound of the share that is misleading, {protection_figure.SURE:.0%} sure, if scans were "
                     f"independent.{unsafe if np.isfinite(limit_m) else ''}") + table(
        ("", "scans", "with a level", "misleading", "hazardous", "available", "at most"), rows)


def _cells(found: "dict[str, float]", text: Any) -> "list[str]":
    return [text(found[key]) if found else "\N{EN DASH}" for key in COLUMNS]


def _degrees(value_rad: float) -> str:
    return f"{value_rad * DEG:.3g}\N{DEGREE SIGN}"


def _latency_table(run: Run) -> str:
    rows = []
    total = time_figures.total_ms(run)
    stages = time_figures.stages_ms(run)
    stages["upload (part of align)"] = run.values["upload_us"] / 1000
    stages["all stages"] = total
    for name, values in stages.items():
        values = values[np.isfinite(values)]
        if len(values):
            p50, p95, p99 = np.percentile(values, (50, 95, 99))
            rows.append((name, *(milliseconds(float(one)) for one in (values.mean(), p50, p95, p99, values.max()))))
    budget = time_figures.budget_ms(run)
    late = int((total > budget).sum())
    text = (f"{late} of {len(run)} scans" if late else "No scan") + f" took longer than the budget of {budget:g} ms."
    speed = run.number_of("replay_s")
    if speed > 0:
        text += f" The replay took {speed:.3g} s: {len(run) / speed:.0f} scans per second."
    return paragraph(text) + table(("", "mean", "p50", "p95", "p99", "max"), rows)


def _state_changes(run: Run) -> str:
    """Table of the scans whose state differs from the one before."""
    told = np.flatnonzero(run.state != "")
    rows, before = [], "initialising"
    for row in told:
        if run.state[row] != before:
            why = run.reason[row] or run.outcome[row]
            rows.append((f"{run.time_s[row]:.1f} s", run.seq[row], f"{before} \N{RIGHTWARDS ARROW} {run.state[row]}", why))
            before = run.state[row]
    several = np.nan_to_num(run.values["hypotheses"]) > 1
    text = f"{count(len(rows), 'change')} of state; {count(int(several.sum()), 'scan')} with more than one hypothesis."
    if len(rows) > MOST_CHANGES:
        text += f" The first {MOST_CHANGES} changes:"
    return paragraph(text) + (table(("time", "scan", "state", "reason"), rows[:MOST_CHANGES], "text") if rows else "")


# ---- where it comes from


def _settings(run: Run) -> str:
    if not run.settings:
        return section("settings", "Settings", paragraph("config.yaml is not there: the settings in force are not known."))
    defaults = default_settings()
    if not defaults:
        text = "The defaults are not known here (only the clients are installed); the command line below has what was set."
        return section("settings", "Settings", paragraph(text))
    changed = [(key, value, defaults.get(key, "\N{EN DASH}")) for key, value in run.settings.items()
               if defaults.get(key) != value and key != "map.path"]
    if not changed:
        return section("settings", "Settings", paragraph("All settings are the defaults."))
    return section("settings", "Settings", paragraph(f"{len(changed)} of {len(run.settings)} settings differ from the defaults."),
                   table(("option", "value", "default"), changed, "text"))


def _run(run: Run) -> str:
    summary, load_ms, memory = run.summary, run.number_of("map_load_ms"), run.number_of("peak_memory_bytes")
    rows = [("recording", summary.get("bag")), ("map", summary.get("map")),
            ("map id", run.map_id), ("map points", _thousands(summary.get("map_points"))),
            ("map load time", milliseconds(load_ms) if load_ms > 0 else None),
            ("configuration files", ", ".join(run.texts_of("settings", "files")) or "none"),
            ("given options", ", ".join(run.texts_of("settings", "overrides")) or "none"),
            ("configuration hash", run.config_hash), ("trajectory hash", summary.get("trajectory_hash")),
            ("ndtd", " ".join(str(one) for one in (summary.get("version"), _commit(summary)) if one)),
            ("backend", summary.get("backend_description") or summary.get("backend")), ("variant", summary.get("variant")),
            ("machine", summary.get("machine")),
            ("peak memory", f"{memory / 2**20:.1f} MiB" if memory > 0 else None),
            ("first scan", _stamp(int(run.stamp_ns[0]))), ("folder", None if run.is_temporary else str(run.folder.resolve()))]
    shown = html_parts.pairs((name, value) for name, value in rows if value not in (None, ""))
    missing = [name for name in ("summary.json", "timing.csv", "config.yaml", "points.bag") if not (run.folder / name).is_file()]
    note = paragraph(f"Not in the folder: {', '.join(missing)}.", "sub") if missing else ""
    if run.ends_early:
        note += paragraph("results.jsonl ends within a line: further scans may be missing.", "sub")
    return section("run", "This run", f'<div class="facts list">{shown}</div>', note, "<h3>Repeat it</h3>",
                   paragraph("The same programs, recording and map give the same poses bit for bit, and the trajectory hash above."),
                   f"<pre>{escape(command_line(run))}</pre>")


def _commit(summary: "dict[str, Any]") -> str:
    return f"(commit {summary['commit']})" if summary.get("commit") else ""


def _stamp(stamp_ns: int) -> str:
    """A stamp as a number, and as a date where it is one."""
    text = f"{stamp_ns / 1e9:.3f} s"
    if 6e17 < stamp_ns < 4e18:  # 1989 to 2096
        when = datetime.fromtimestamp(stamp_ns // 1_000_000_000, timezone.utc)
        text += when.strftime(" (%Y-%m-%d %H:%M:%S UTC)")
    return text


def _thousands(value: Any) -> "Optional[str]":
    return f"{value:,}".replace(",", "\N{NO-BREAK SPACE}") if isinstance(value, int) else None


def command_line(run: Run) -> str:
    """The commands that give this replay and this report again."""
    summary = run.summary
    words = ["ndtd", "--replay", str(summary.get("bag") or "BAG"), "--map", str(summary.get("map") or "MAP")]
    for file in run.texts_of("settings", "files"):
        words += ["--config", file]
    for option in run.texts_of("settings", "overrides"):
        words += ["--set", option]
    if run.is_temporary:
        return shlex.join([*words, "--report", "report.html"])
    out = run.name
    return shlex.join([*words, "--output", out]) + "\n" + shlex.join(["ndt-report", out, "--out", f"{out}.html"])
