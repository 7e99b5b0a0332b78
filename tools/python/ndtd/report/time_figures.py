"""Figures of what a replay did: times of the stages, iterations, scores, confidence, outcomes and states."""
from typing import Any

import numpy as np

from . import figures, plot_parts
from .figures import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, SKY, VERMILION, YELLOW, Drawing
from .run import Run

STAGE_COLOURS = {"decode": SKY, "queue": GREY, "preprocess": BLUE, "align": ORANGE, "publish": GREEN}  # upload is a part of align
# The later one wins where scans share a pixel: what is rare and matters comes last.
STATE_COLOURS = {"tracking": BLUE, "coasting": SKY, "initialising": GREY, "recovering": ORANGE, "extending": PURPLE, "lost": VERMILION}
OUTCOME_COLOURS = {"converged": BLUE, "merged": GREY, "iteration_limit": SKY, "deadline": YELLOW, "degenerate": PURPLE,
                   "low_score": ORANGE, "no_guess": GREY, "no_map": GREY, "rejected": INK, "dropped": INK, "off_map": VERMILION,
                   "lost": VERMILION}
DEFAULT_BUDGET_MS = 100.0
INNOVATION_LIMIT = 4.7  # 1 in 1000 of 6 degrees of freedom


def budget_ms(run: Run) -> float:
    """Time that a scan may take, of the settings in force."""
    try:
        told = float(run.settings.get("live.budget_ms", DEFAULT_BUDGET_MS))
    except ValueError:
        told = DEFAULT_BUDGET_MS
    return told if 0 < told < 1e9 else DEFAULT_BUDGET_MS


def stages_ms(run: Run) -> "dict[str, np.ndarray]":
    """Stage -> (N,) [ms], in the order of processing; NaN where a scan did not get there."""
    return {name: run.values[f"{name}_us"] / 1000.0 for name in STAGE_COLOURS}


def total_ms(run: Run) -> np.ndarray:
    """(N,) sum of the stages."""
    out: np.ndarray = np.nansum(np.stack(list(stages_ms(run).values())), axis=0)
    return out


def latency_histograms(run: Run) -> Drawing:
    """Draws one histogram per stage and one of the sum."""
    one = figures.new("latency", "Latency by stage", rows=2, columns=3, height_in=3.5, share_x=False, gap_in=0.62, column_gap_in=0.45,
                      top_in=0.3)
    panels = [*stages_ms(run).items(), ("all stages", total_ms(run))]
    for at, (ax, (name, values)) in enumerate(zip(one.axes, panels)):
        values = values[np.isfinite(values)]
        _histogram(ax, values, STAGE_COLOURS.get(name, PURPLE))
        note = "" if not (values > 0).any() else ":  p50 {}, p99 {}".format(*(_ms(v) for v in np.percentile(values, (50, 99))))
        ax.set_title(name + note, fontsize=7.5)
        if at % 3 == 0:
            ax.set_ylabel("scans")
        if at >= 3:
            ax.set_xlabel("time")
    one.caption = "Time per scan, logarithmic; lines: median and 99 % quantile. Upload is a part of align."
    return one


def _histogram(ax: Any, values: np.ndarray, color: str) -> None:
    positive = values[values > 0]
    if len(positive) == 0:
        ax.text(0.5, 0.5, "0 in this replay" if len(values) else "no values", ha="center", va="center", color=MUTED,
                transform=ax.transAxes)
        ax.set_xticks([])
        ax.set_yticks([])
        return
    low, high = positive.min(), positive.max()
    low, high = (low / 1.5, high * 1.5) if high < 2 * low else (low, high)
    edges = np.geomspace(low * 0.999, high * 1.001, int(np.clip(2 * len(positive) ** 0.5, 8, 40)))
    ax.set_xscale("log")
    ax.stairs(np.histogram(positive, edges)[0], edges, fill=True, color=color)
    ax.set_ylim(bottom=0)
    for level in (50, 99):
        ax.axvline(np.percentile(values, level), color=INK, linewidth=0.9, linestyle="-" if level == 50 else (0, (3, 2)))
    ticks = [t for t in _nice_times() if low / 1.05 <= t <= high * 1.05]
    ticks = ticks[::max(1, -(-len(ticks) // 5))]
    ax.set_xticks(ticks, [_ms(t) for t in ticks])
    ax.set_xticks([], minor=True)
    ax.grid(False, axis="x")


def _nice_times() -> "list[float]":
    return [m * 10.0**e for e in range(-4, 6) for m in (1, 2, 5)]


def _ms(value_ms: float) -> str:
    """Three digits at most, with the unit."""
    if value_ms < 0.1:
        return f"{value_ms * 1000:.3g} \N{MICRO SIGN}s"
    return f"{value_ms:.3g} ms" if value_ms < 1000 else f"{value_ms / 1000:.3g} s"


def latency_over_time(run: Run) -> Drawing:
    """The sum against the budget, and the stages on top of each other."""
    one = figures.new("latency-time", "Latency over time", rows=2, height_in=3.5, ratios=[1, 1.4], gap_in=0.3)
    axis, total, budget = plot_parts.time_axis(run), total_ms(run), budget_ms(run)
    upper, lower = one.axes
    plot_parts.line(upper, axis, np.where(total > 0, total, np.nan), PURPLE, linewidth=0.8)
    upper.set_yscale("log")
    plot_parts.plain_log(upper)
    upper.axhline(budget, color=VERMILION, linewidth=1, linestyle=(0, (4, 2)))
    upper.text(0.998, budget, f"budget {budget:g} ms ", color=VERMILION, ha="right", va="bottom", fontsize=7,
               transform=upper.get_yaxis_transform())
    positive = total[total > 0]
    upper.set_ylim((positive.min() if len(positive) else 1) / 2, max(budget * 3, (positive.max() if len(positive) else 1) * 2))
    upper.set_ylabel("all stages [ms]")
    keep = _largest_per_piece(total, 450)
    lower.stackplot(axis.x[keep], *(np.nan_to_num(values[keep]) for values in stages_ms(run).values()),
                    colors=list(STAGE_COLOURS.values()), labels=list(STAGE_COLOURS), linewidth=0, step="mid")
    lower.set_ylabel("stages [ms]")
    lower.set_xlabel(axis.label)
    top = float(np.percentile(total, 99.9)) * 1.25 if len(total) else 1.0
    lower.set_ylim(0, max(top, 1e-3))
    plot_parts.legend(lower)
    plot_parts.span_x(one.axes, axis)
    if budget < top:
        lower.axhline(budget, color=VERMILION, linewidth=1, linestyle=(0, (4, 2)))
    one.caption = f"Above: all stages of a scan, logarithmic, against the budget of {budget:g} ms. Below: the stages on top of each other."
    return one


def _largest_per_piece(values: np.ndarray, pieces: int) -> np.ndarray:
    """Indices: all, or the one of the largest value in each of `pieces`."""
    if len(values) <= pieces:
        return np.arange(len(values))
    edges = np.linspace(0, len(values), pieces + 1).astype(int)
    return np.array([a + int(np.argmax(values[a:b])) for a, b in zip(edges[:-1], edges[1:])])


def matching(run: Run) -> Drawing:
    """Iterations, confidence, scores, innovation."""
    one = figures.new("matching", "Iterations, confidence, scores and innovation", rows=4, height_in=5.2, gap_in=0.3, top_in=0.3)
    axis, values = plot_parts.time_axis(run), run.values
    plot_parts.shade_untrusted(one.axes, run, axis)
    counts, confidence, scores, innovation = one.axes
    plot_parts.line(counts, axis, values["evaluations"], ORANGE, "evaluations", linewidth=0.9)
    plot_parts.line(counts, axis, values["iterations"], BLUE, "iterations", linewidth=0.9)
    counts.set_ylim(0, max(4.0, 1.15 * _largest(values["evaluations"], values["iterations"])))
    counts.set_ylabel("iterations")
    plot_parts.line(confidence, axis, values["confidence"], BLUE, "confidence", linewidth=0.9)
    if np.isfinite(values["margin"]).any():
        plot_parts.line(confidence, axis, values["margin"], ORANGE, "margin over the second best", linewidth=0.9)
    confidence.set_ylim(-0.04, 1.06)
    confidence.set_ylabel("confidence")
    for key, color, label in (("nvtl_normalized", BLUE, "NVTL, normalised"), ("match_ratio", GREEN, "matched points"),
                              ("coverage", PURPLE, "coverage")):
        shown = np.where(values[key] >= 0, values[key], np.nan)
        plot_parts.line(scores, axis, shown, color, label, linewidth=0.9)
    scores.set_ylim(-0.04, 1.06)
    scores.set_ylabel("scores")
    plot_parts.line(innovation, axis, values["innovation"], BLUE, linewidth=0.9)
    innovation.axhline(INNOVATION_LIMIT, color=VERMILION, linewidth=0.9, linestyle=(0, (4, 2)))
    innovation.set_ylim(0, max(5.4, 1.1 * _largest(values["innovation"])))
    innovation.set_ylabel("innovation [sigma]")
    innovation.set_xlabel(axis.label)
    for ax in (counts, confidence, scores):
        plot_parts.legend(ax)
    plot_parts.span_x(one.axes, axis)
    one.caption = ("Newton iterations and evaluations of the score per scan; confidence; scores in [0, 1]; distance of the alignment from "
                   "the prediction (dashed: 4.7 sigma, 1 in 1000).")
    return one


def _largest(*arrays: np.ndarray) -> float:
    joined = np.concatenate(arrays)
    joined = joined[np.isfinite(joined)]
    return float(joined.max()) if len(joined) else 0.0


def states(run: Run) -> Drawing:
    """Strips of outcome and state, then hypotheses and queue where they say something."""
    values, axis = run.values, plot_parts.time_axis(run)
    rows: "list[tuple[str, np.ndarray]]" = [("hypotheses", values["hypotheses"])]
    if np.nan_to_num(values["queue_depth"]).any():
        rows.append(("scans waiting", values["queue_depth"]))
    if np.nan_to_num(values["drop_counter"]).any():
        rows.append(("scans dropped", values["drop_counter"]))
    one = figures.new("states", "Outcomes, states and hypotheses", rows=2 + len(rows), height_in=2.1 + 0.6 * len(rows), gap_in=0.34,
                      ratios=[0.5, 0.5] + [1.0] * len(rows), top_in=0.3)
    strips = (("outcome", run.outcome, OUTCOME_COLOURS), ("state", run.state, STATE_COLOURS))
    for ax, (label, names, colours) in zip(one.axes, strips):
        shown = np.where(names == "", "not told", names)
        found = plot_parts.strip(ax, axis, shown, colours)
        ax.set_ylabel(label, rotation=0, ha="right", va="center")
        handles = [_patch(color, f"{name} {count}") for name, color, count in found]
        plot_parts.legend(ax, handles, columns=6)
    for ax, (label, numbers) in zip(one.axes[2:], rows):
        plot_parts.line(ax, axis, numbers, BLUE, linewidth=0.9)
        ax.set_ylim(0, max(2.0, 1.15 * _largest(numbers)))
        ax.set_ylabel(label)
    one.axes[-1].set_xlabel(axis.label)
    plot_parts.span_x(one.axes, axis)
    one.caption = "What became of each scan, and how many guesses were aligned for it (more than one: a search, or recovery)."
    return one


def _patch(color: str, label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=color, label=label)
