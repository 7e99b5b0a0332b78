"""Three and more replays of the same scans: one table, every run against the first one."""
from pathlib import Path
from typing import Any

import numpy as np

from . import compare_figures, figures, html_parts
from .compare_page import KINDS, SIGNS, WORDS, verdict_table
from .comparison import Comparison, Unit
from .figures import CYCLE, Drawing, decimate, escape
from .html_parts import figure, paragraph, section, table
from .run import STAGES, Run


def write(found: "list[Comparison]", out: Any) -> "list[Drawing]":
    """Writes the page of compare_all(), complete or absent. OSError."""
    runs = [found[0].first, *(one.second for one in found)]
    names = _names(runs)
    drawing = _distributions(found, names)
    bag = Path(str(runs[0].summary.get("bag") or "an unknown recording")).name
    head = (f"<header><h1>{len(runs)} replays of {escape(bag)}</h1>"
            f'<p class="sub">Verdicts are those on each run against {escape(names[0])}.</p></header>')
    note = f"p accounts for the {sum(len(one.tests) for one in found)} tests of all runs (Holm)."
    parts = [section("runs", "Runs", _table(found, runs, names), paragraph(note), figure(drawing)),
             section("changes", "What differs", *(_changes(one, name) for one, name in zip(found, names[1:])))]
    titles = (("runs", "Runs"), ("changes", "What differs"))
    html_parts.write(Path(out), html_parts.document(f"{len(runs)} replays", titles, head + "".join(parts)))
    return [drawing]


def _names(runs: "list[Run]") -> "list[str]":
    short = [run.name for run in runs]
    return short if len(set(short)) == len(short) else [str(run.folder) for run in runs]


def _table(found: "list[Comparison]", runs: "list[Run]", names: "list[str]") -> str:
    """Errors of each run are those of its own pairs with the first run."""
    columns = [_errors(found[0].first_error_m, found[0].first_error_deg, found[0].first_missed)]
    columns += [_errors(one.second_error_m, one.second_error_deg, one.second_missed) for one in found]
    unit, turn = (Unit.of(name, *(row[at] for row in columns)) for name, at in (("m", 0), ("deg", 2)))
    rows = []
    for at, (run, name, (median, p95, rotation, missed)) in enumerate(zip(runs, names, columns)):
        verdict = found[at - 1].verdict if at else ""
        cells = [unit.text(median), unit.text(p95), turn.text(rotation)] if np.isfinite(median) else ["\N{EN DASH}"] * 3
        cells += [str(int(missed)), f"{_total_ms(run):.3g} ms", f"{np.nanmean(run.values['iterations']):.3g}"]
        word = SIGNS.get(verdict, WORDS[verdict][0].lower()) if verdict else "\N{EN DASH}"
        rows.append([("", compare_figures.short(name)), (KINDS.get(verdict, ""), word), *(("", cell) for cell in cells)])
    return verdict_table(("", "verdict", "error, median", "95 %", "rotation, median", "missed", "latency, median", "iterations"), rows)


def _errors(error_m: np.ndarray, error_deg: np.ndarray, missed: np.ndarray) -> "tuple[float, float, float, float]":
    if not np.isfinite(error_m).any():
        return float("nan"), float("nan"), float("nan"), float(missed.sum())
    return float(np.nanmedian(error_m)), float(np.nanquantile(error_m, 0.95)), float(np.nanmedian(error_deg)), float(missed.sum())


def _total_ms(run: Run) -> float:
    return float(np.nanmedian(np.sum([run.values[f"{one}_us"] for one in STAGES if one != "upload"], axis=0))) / 1000


def _distributions(found: "list[Comparison]", names: "list[str]") -> Drawing:
    """Shares of scans below an error; without ground truth below a confidence."""
    has_truth = found[0].has_truth
    runs = [found[0].first, *(one.second for one in found)]
    values = ([found[0].first_error_m, *(one.second_error_m for one in found)] if has_truth else [run.values["confidence"] for run in runs])
    drawing = figures.new("distribution", "Translation error" if has_truth else "Confidence", height_in=2.8)
    unit = Unit.of("m", *(float(np.nanquantile(one, 0.95)) for one in values if np.isfinite(one).any())) if has_truth else Unit(1.0, "", 2)
    for at, (name, one) in enumerate(zip(names, values)):
        ordered = np.sort(unit.factor * one[np.isfinite(one)])
        if len(ordered):
            y, x = decimate(np.linspace(0, 100, len(ordered)), ordered, 400)
            drawing.axes[0].plot(x, y, color=CYCLE[at % len(CYCLE)], linestyle="-" if at < len(CYCLE) else "--",
                                 label=compare_figures.short(name))
    drawing.axes[0].set_ylim(0, 101)
    if has_truth:
        drawing.axes[0].set_xlim(left=0)
    drawing.axes[0].set_ylabel("scans [%]")
    drawing.axes[0].set_xlabel(f"translation error [{unit.name}]" if has_truth else "confidence")
    drawing.axes[0].legend(loc="lower right")
    drawing.caption = "Share of the scans whose value is at most so large."
    return drawing


def _changes(found: Comparison, name: str) -> str:
    rows = [(one.key, one.first, one.second, one.default or "\N{EN DASH}") for one in [*found.inputs, *found.settings]]
    shown = table(("", "first run", "here", "default"), rows, "text") if rows else paragraph("Inputs and settings are the same.")
    warned = "".join(paragraph(line, "sub") for line in found.warnings)
    return f"<h3>{escape(name)}</h3>{paragraph(found.sentence)}{warned}{shown}"
