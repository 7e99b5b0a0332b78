"""Verdict on a replay: one sentence, and the numbers behind it."""
from typing import NamedTuple, Optional

import numpy as np

from .error_figures import DEG, Errors
from .run import OFF_DEG, OFF_M, Run
from .time_figures import budget_ms, total_ms

GOOD, FAIR, POOR = "good", "fair", "poor"
NB, DEG_SIGN, NONE = "\N{NO-BREAK SPACE}", "\N{DEGREE SIGN}", "\N{EN DASH}"
MOST_FAIR = 0.05  # of the time without a trusted pose
MOST_UNCONVERGED = 0.01  # of the scans: their poses are predictions, or unfinished
CHANCE = 1e-3  # of a drive whose predictions are right to have one scan beyond the bound on innovations


class Verdict(NamedTuple):
    level: str  # GOOD, FAIR, POOR
    sentence: str
    numbers: "list[tuple[str, str, str]]"  # name, value, what it is compared with


def judge(run: Run, errors: "Optional[Errors]") -> Verdict:
    """errors: None without ground truth."""
    matched = run.outcome != "merged"
    untrusted_s = time_without_pose(run)
    wrong = _wrong(run)
    parts = [_outcomes(run, matched)]
    if errors is not None and errors.compared.any():
        median, p95 = np.nanpercentile(errors.translation_m, (50, 95))
        parts.append(f"median error {length(median)} and {np.nanmedian(errors.rotation_rad) * DEG:.2g}{DEG_SIGN} "
                     f"(95{NB}%: {length(p95)})" if errors.compared.sum() > 1 else f"error {length(median)}")
    elif not run.has_truth:
        confidence = run.values["confidence"][np.isfinite(run.values["confidence"])]
        parts.append("no ground truth" + (f", median confidence {np.median(confidence):.4g}" if len(confidence) else ""))
    parts.append(_time_untrusted(run, matched, untrusted_s))
    contradictions = contradicting(run)
    if contradictions.any():
        parts.append(_contradictions(run, contradictions))
    if wrong:
        parts.append(f"{count(wrong, 'trusted pose')} over {OFF_M:g} m or {OFF_DEG:g}{DEG_SIGN} off")
    share = untrusted_s / max(_duration_s(run), 1e-9)
    none_trusted = not run.trusted.any()
    is_doubtful = contradictions.any() or (run.outcome[matched] != "converged").mean() > MOST_UNCONVERGED
    level = POOR if none_trusted or wrong or share > MOST_FAIR else FAIR if is_doubtful or (~run.trusted[matched]).any() else GOOD
    return Verdict(level, ", ".join(parts) + ".", _numbers(run, errors, untrusted_s))


def length(metres: float) -> str:
    """A length in the unit in which it has few digits."""
    if not np.isfinite(metres):
        return NONE
    size = abs(metres)
    value, unit = (metres * 1000, "mm") if size < 0.00995 else (metres * 100, "cm") if size < 0.995 else (metres, "m")
    text = f"{value:.1f}" if abs(value) < 99.95 else f"{value:.0f}"
    return f"{text}{NB}{unit}"


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g}{NB}s"
    minutes = round(seconds / 60)
    return f"{minutes}{NB}min" if minutes < 120 else f"{minutes // 60}{NB}h{NB}{minutes % 60:02d}{NB}min"


def milliseconds(value: float) -> str:
    if not np.isfinite(value):
        return NONE
    if 0 < value < 0.1:
        return f"{value * 1000:.3g}{NB}\N{MICRO SIGN}s"
    return f"{value:.3g}{NB}ms" if value < 1000 else f"{value / 1000:.3g}{NB}s"


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it is one."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _outcomes(run: Run, matched: np.ndarray) -> str:
    total, names = len(run), run.outcome[matched]
    merged = total - len(names)
    head = count(total, "scan") + (f" ({merged} merged into others)" if merged else "")
    converged = int((names == "converged").sum())
    if len(names) and converged == len(names):
        return f"{head}, {'all ' if len(names) > 1 else ''}converged"
    kinds, numbers = np.unique(names[names != "converged"], return_counts=True)
    worst = ", ".join(f"{number} {kind}" for number, kind in sorted(zip(numbers.tolist(), kinds.tolist()), reverse=True)[:3])
    if converged == 0:
        return f"{head}, none converged: {worst}"
    return f"{head}, {converged} converged ({100 * converged / max(len(names), 1):.3g}{NB}%), {worst}"


def _intervals(run: Run) -> np.ndarray:
    """(N,) what each scan stands for [s]: up to the next one, at most three usual steps."""
    step = np.diff(run.time_s)
    usual = float(np.median(step[step > 0])) if (step > 0).any() else 0.0
    out: np.ndarray = np.append(np.clip(step, 0.0, 3.0 * usual), usual)
    return out


def _duration_s(run: Run) -> float:
    return float(run.time_s.max() - run.time_s.min())


def time_without_pose(run: Run) -> float:
    """Seconds during which a vehicle has no trusted pose."""
    return float(_intervals(run)[~run.trusted & (run.outcome != "merged")].sum())


def _time_untrusted(run: Run, matched: np.ndarray, untrusted_s: float) -> str:
    if not run.trusted.any():
        return "no trusted pose at all"
    if not (~run.trusted[matched]).any():
        return "no time lost"
    first = int(np.flatnonzero(run.trusted)[0])
    where = " until the first one" if first and run.trusted[first:][matched[first:]].all() else ""
    return f"{duration(untrusted_s)} without a trusted pose{where}"


def _wrong(run: Run) -> int:
    """Trusted poses that are wrong."""
    at = run.is_compared
    if not at.any():
        return 0
    shift = np.linalg.norm(run.pose[at, :3] - run.truth[at, :3], axis=1)
    dot = np.abs(np.sum(run.pose[at, 3:] * run.truth[at, 3:], axis=1))
    angle = 2 * np.arccos(np.clip(dot, 0, 1)) * DEG
    return int(((shift > OFF_M) | (angle > OFF_DEG)).sum())


def contradicting(run: Run) -> np.ndarray:
    """(N,) bool: trusted poses that the prediction excludes. The square of an innovation is chi-square with six degrees of freedom
    where the prediction is right; a drive of so many scans has one beyond the bound by chance once in a thousand. Where no
    innovation is known, the pose is moved from its guess by more than a wrong pose is off."""
    innovation = run.values["innovation"]
    half = np.square(np.nan_to_num(innovation)) / 2
    by_chance = np.exp(-half) * (1 + half + half * half / 2)
    is_known = np.isfinite(innovation)
    is_beyond = is_known & (by_chance * is_known.sum() < CHANCE)
    after_trusted = np.append(False, run.trusted[:-1])
    moved_m, moved_deg = _correction(run)
    out: np.ndarray = run.trusted & (is_beyond | (~is_known & after_trusted & ((moved_m > OFF_M) | (moved_deg > OFF_DEG))))
    return out


def _contradictions(run: Run, at: np.ndarray) -> str:
    moved_m, moved_deg = _correction(run)
    sigmas = np.nan_to_num(run.values["innovation"][at]).max()
    one = int(at.sum()) == 1
    by = ([f"{sigmas:.3g} sigma"] if sigmas > 0 else []) + ([length(float(np.nanmax(moved_m[at])))] if np.isfinite(moved_m[at]).any() else [])
    return f"{count(int(at.sum()), 'pose')} against the prediction, by {'' if one else 'up to '}{' and '.join(by)}"


def _correction(run: Run) -> "tuple[np.ndarray, np.ndarray]":
    """(N,) metres and degrees from the guess to the pose; NaN: one of them is not known."""
    dot = np.abs(np.sum(run.pose[:, 3:] * run.guess[:, 3:], axis=1))
    return np.linalg.norm(run.pose[:, :3] - run.guess[:, :3], axis=1), 2 * np.arccos(np.clip(dot, 0, 1)) * DEG


def _numbers(run: Run, errors: "Optional[Errors]", untrusted_s: float) -> "list[tuple[str, str, str]]":
    total, matched = total_ms(run), run.outcome != "merged"
    share = 100 * run.trusted[matched].mean() if matched.any() else 0.0
    out = [("drive", f"{run.distance_m[-1]:.4g}{NB}m" if run.distance_m[-1] < 10000 else
            f"{run.distance_m[-1] / 1000:.4g}{NB}km", f"{count(len(run), 'scan')} in {duration(_duration_s(run))}"),
           ("trusted poses", f"{share:.4g}{NB}%", f"{duration(untrusted_s)} without one")]
    if errors is not None and errors.compared.any():
        shift, turn = errors.translation_m, errors.rotation_rad * DEG
        out.append(("APE, median", length(float(np.nanmedian(shift))), f"largest {length(float(np.nanmax(shift)))}"))
        out.append(("APE, rotation", f"{np.nanmedian(turn):.2g}{DEG_SIGN}", f"largest {np.nanmax(turn):.2g}{DEG_SIGN}"))
        longest = [one for one in errors.relative if len(one.translation_m)][-1:]
        for one in longest:
            middle = float(np.median(one.translation_m))
            out.append((f"RPE {one.distance_m:g}{NB}m, median", f"{100 * middle / one.distance_m:.2g}{NB}%", length(middle)))
    else:
        confidence = run.values["confidence"][np.isfinite(run.values["confidence"])]
        if len(confidence):
            out.append(("confidence, median", f"{np.median(confidence):.4f}", f"least {confidence.min():.4f}"))
    p50, p99 = np.percentile(total, (50, 99))
    against = f"99{NB}%: {milliseconds(float(p99))}; budget {budget_ms(run):g}{NB}ms"
    out.append(("latency, median", milliseconds(float(p50)), against))
    return out
