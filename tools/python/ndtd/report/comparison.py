"""Two replays of the same scans, compared: what differs, and which one is better by what test.

    found = ndtd.report.compare("before", "after")      # import ndtd.report; folders of `ndtd --replay ... --output FOLDER`
    found.verdict, found.sentence, found.tests, found.latencies

Scans are paired by stamp. Differences are second minus first; a verdict is that on the second run. Errors are those of pairs in
which both runs have a trusted pose; scans that one of them missed are counted. Latencies are compared as `ndt-bench compare`
does: factor = time of the first over that of the second, median over the scans; no difference: 1 lies between the quartiles,
or the factor differs from 1 by less than 2 %. They are no part of the verdict: the runs did not take turns.
"""
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from . import paired
from .pose_errors import absolute, conjugate, product, rotation_vector
from .run import OFF_DEG, OFF_M, STAGES, Run, RunError, default_settings

MARGIN_M, MARGIN_DEG, MARGIN_CONFIDENCE = 0.005, 0.02, 0.01
MARGIN_MISSED = 0.01  # of the scans
LEAST_FACTOR = 0.02  # of latencies, as in ndt-bench compare
SIGNIFICANT = 0.05
WORST, APART_S = 5, 0.5  # scans that got worse most, and how far from one another
LOW = {"median": paired.STATISTICS["median"], "mean": paired.mean_of, "p05": paired.quantile_of(0.05)}
TIMES = (*STAGES, "total")  # upload is a part of align


@dataclass(frozen=True)
class Test:
    """One statistic of one quantity. `verdict`: better, worse, equivalent (the interval lies within the margin), equal, undecided."""

    quantity: str
    statistic: str
    unit: str
    margin: float
    found: paired.Difference
    p_holm: float  # p, accounting for the number of tests
    verdict: str


@dataclass(frozen=True)
class Quantity:
    """One value per pair (K,). `second_is_below`: share of pairs; signed_rank: p of Wilcoxon's test on blocks, None: too few."""

    name: str
    unit: str
    margin: float
    low_is_good: bool
    first: np.ndarray
    second: np.ndarray
    blocks: paired.Blocks
    signed_rank: Optional[float]
    second_is_below: float


@dataclass(frozen=True)
class Latency:
    """Times of one stage [us], medians over the pairs; factor: of the first over the second, median and quartiles."""

    stage: str
    first_us: float
    second_us: float
    first_p95_us: float
    second_p95_us: float
    factor: float
    low: float
    high: float
    verdict: str  # faster, slower, no difference


@dataclass(frozen=True)
class Setting:
    """A value that differs. default: None where it is not known."""

    key: str
    first: str
    second: str
    default: Optional[str] = None


@dataclass
class Comparison:
    """Result of compare(). Rows of `pairs` (K, 2) are rows of the runs with equal stamps; arrays (K,) belong to them."""

    first: Run
    second: Run
    pairs: np.ndarray
    warnings: "list[str]"
    inputs: "list[Setting]"
    settings: "list[Setting]"
    outcomes: "dict[str, tuple[int, int]]"  # scans by outcome, of the whole runs
    states: "dict[str, tuple[int, int]]"
    has_truth: bool
    first_missed: np.ndarray  # bool: no trusted pose, or over 1 m or 5 deg off
    second_missed: np.ndarray
    first_error_m: np.ndarray  # NaN: no truth, or no trusted pose
    second_error_m: np.ndarray
    first_error_deg: np.ndarray
    second_error_deg: np.ndarray
    distance_m: np.ndarray  # between the trusted poses of both
    distance_deg: np.ndarray
    first_difference: Optional[int]  # pair whose outcome or pose differs in a bit; None: all are equal
    quantities: "list[Quantity]" = field(default_factory=list)
    tests: "list[Test]" = field(default_factory=list)
    latencies: "list[Latency]" = field(default_factory=list)
    verdict: str = ""  # better, worse, mixed, equivalent, same, undecided
    sentence: str = ""

    @property
    def names(self) -> "tuple[str, str]":
        """Names of the folders, or their paths where the names are equal."""
        one, other = self.first.name, self.second.name
        return (one, other) if one != other else (str(self.first.folder), str(self.second.folder))

    @property
    def is_worse(self) -> bool:
        """Whether any test says so, or the missed scans do."""
        return self.missed_verdict == "worse" or any(test.verdict == "worse" for test in self.tests)

    @property
    def missed_verdict(self) -> str:
        """Verdict on the number of missed scans, which is a fact of this drive and not tested: 1 % of the scans matter."""
        more = int(self.second_missed.sum()) - int(self.first_missed.sum())
        if abs(more) <= MARGIN_MISSED * len(self.pairs):
            return "equal" if more == 0 else "equivalent"
        return "worse" if more > 0 else "better"

    @property
    def time_s(self) -> np.ndarray:
        """(K,) after the first scan of the first run."""
        out: np.ndarray = self.first.time_s[self.pairs[:, 0]]
        return out

    def regressions(self, most: int = WORST) -> "list[int]":
        """Pairs that got worse most, the worst first; without ground truth those that are farthest apart."""
        got_worse = self.second_error_m - self.first_error_m if self.has_truth else self.distance_m
        newly_missed = self.second_missed & ~self.first_missed
        order = np.lexsort((-np.nan_to_num(got_worse, nan=-1.0), ~newly_missed))
        out: "list[int]" = []
        for at in order:  # one bad moment counts once
            if (newly_missed[at] or got_worse[at] > 0) and len(out) < most and all(
                    abs(self.time_s[at] - self.time_s[one]) >= APART_S for one in out):
                out.append(int(at))
        return out


def compare(first: Union[Run, Any], second: Union[Run, Any], margin_m: float = MARGIN_M, margin_deg: float = MARGIN_DEG,
            seed: int = 1) -> Comparison:
    """Compares two runs: Run, or folders. RunError, one line: a folder is none, or the runs share no scan."""
    return compare_all([first, second], margin_m, margin_deg, seed)[0]


def compare_all(runs: "Sequence[Union[Run, Any]]", margin_m: float = MARGIN_M, margin_deg: float = MARGIN_DEG,
                seed: int = 1) -> "list[Comparison]":
    """Compares every run but the first with the first one; p accounts for the tests of all of them."""
    first, *others = (one if isinstance(one, Run) else Run(one) for one in runs)
    out, rows = [], []
    for second in others:
        found = _pair_up(first, second)
        _add_quantities(found, margin_m, margin_deg)
        rows.append(_differences(found, seed))
        out.append(found)
    for found, tests in zip(out, tests_of(rows)):
        found.tests = tests
        if any(one.blocks.is_short for one in found.quantities):
            found.warnings.append("errors stay alike for longer than a fifth of the drive: intervals are too narrow, compare longer drives")
        found.latencies = [one for one in (_latency(found, stage) for stage in TIMES) if one]
        found.verdict, found.sentence = _judge(found)
    return out


# ---- what belongs together


def _pair_up(first: Run, second: Run) -> Comparison:
    _, one, other = np.intersect1d(first.stamp_ns, second.stamp_ns, return_indices=True)  # of equal stamps the first
    if len(one) == 0:
        raise RunError(f"{first.folder} and {second.folder} have no stamp in common: they are replays of different recordings")
    pairs = np.stack([one, other], axis=1)
    pose, twin = first.pose[one], second.pose[other]
    truth = np.where(np.isfinite(first.truth[one]), first.truth[one], second.truth[other])
    both = first.trusted[one] & second.trusted[other]
    errors = [_errors(run, rows, truth) for run, rows in ((first, one), (second, other))]
    missed = [~run.trusted[rows] | (error[0] > OFF_M) | (error[1] > OFF_DEG)
            for (run, rows), error in zip(((first, one), (second, other)), errors)]
    turn = np.linalg.norm(rotation_vector(product(pose[:, 3:], conjugate(twin[:, 3:]))), axis=1)
    return Comparison(
        first, second, pairs, _warnings(first, second, len(pairs), truth), _inputs(first, second), _settings(first, second),
        _counts(first.outcome, second.outcome), _counts(first.state, second.state), bool(np.isfinite(truth[:, 0]).any()),
        missed[0], missed[1], errors[0][0], errors[1][0], errors[0][1], errors[1][1],
        np.where(both, np.linalg.norm(pose[:, :3] - twin[:, :3], axis=1), np.nan), np.where(both, np.degrees(turn), np.nan),
        _first_difference(first, second, pairs))


def _errors(run: Run, rows: np.ndarray, truth: np.ndarray) -> "tuple[np.ndarray, np.ndarray]":
    """(K,) [m] and [deg] of trusted poses."""
    known = run.trusted[rows] & np.isfinite(truth[:, 0])
    out = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    error = absolute(run.pose[rows][known], truth[known], run.covariance[rows][known])
    out[0][known], out[1][known] = error.translation_m, np.degrees(error.rotation_rad)
    return out


def _first_difference(first: Run, second: Run, pairs: np.ndarray) -> Optional[int]:
    one, other = pairs.T
    same = (first.pose[one] == second.pose[other]) | (np.isnan(first.pose[one]) & np.isnan(second.pose[other]))
    differs = ~same.all(axis=1) | (first.outcome[one] != second.outcome[other])
    return int(np.argmax(differs)) if differs.any() else None


def _warnings(first: Run, second: Run, pairs: int, truth: np.ndarray) -> "list[str]":
    out = []
    if not np.isfinite(truth[:, 0]).any():
        out.append("there is no ground truth: the runs are compared by their own confidence, which is not how right they are")
    points = [run.summary.get("map_points", run.map_id) for run in (first, second)]  # the id depends on the levels as well
    if points[0] != points[1]:
        out.append("the runs have different maps: " + (
            "errors are those of each against the same ground truth" if np.isfinite(truth[:, 0]).any() else
            "their poses can be compared only if both maps have one frame"))
    for run in (first, second):
        if pairs < len(run):
            out.append(f"{len(run) - pairs} of {len(run)} scans of {run.folder} have no scan of the other run with their stamp: left out")
    bags = [str(run.summary.get("bag") or "") for run in (first, second)]
    if all(bags) and bags[0] != bags[1]:
        out.append(f"the recordings have different names ({bags[0]} and {bags[1]}); their scans are paired by stamp")
    both = np.isfinite(first.truth[:, 0]).any(), np.isfinite(second.truth[:, 0]).any()
    if any(both) and not all(both):
        out.append(f"ground truth of {(first if both[0] else second).folder} is used for both runs")
    return out


INPUTS = ("bag", "map", "map_id", "map_points", "backend", "backend_description", "variant", "threads", "version")


def _inputs(first: Run, second: Run) -> "list[Setting]":
    pairs = [(key, str(first.summary.get(key, "")), str(second.summary.get(key, ""))) for key in INPUTS]
    return [Setting(key, one, other) for key, one, other in pairs if one != other]


def _settings(first: Run, second: Run) -> "list[Setting]":
    defaults = default_settings()
    keys = [*first.settings, *(key for key in second.settings if key not in first.settings)]
    return [Setting(key, first.settings.get(key, "-"), second.settings.get(key, "-"), defaults.get(key)) for key in keys
            if first.settings.get(key) != second.settings.get(key) and first.settings and second.settings]


def _counts(one: np.ndarray, other: np.ndarray) -> "dict[str, tuple[int, int]]":
    names = [str(name) for name in np.unique(np.concatenate([one, other])) if name]
    return {name: (int(np.sum(one == name)), int(np.sum(other == name))) for name in names}


# ---- tests


def _add_quantities(found: Comparison, margin_m: float, margin_deg: float) -> None:
    def add(name: str, unit: str, margin: float, first: np.ndarray, second: np.ndarray, low_is_good: bool = True) -> None:
        both = np.isfinite(first) & np.isfinite(second)
        if both.sum() >= paired.FEWEST_PAIRS:
            a, b = first[both], second[both]
            blocks = paired.choose_blocks(a, b, b - a)
            found.quantities.append(Quantity(name, unit, margin, low_is_good, a, b, blocks, paired.signed_rank(a, b, blocks),
                                             paired.share_below(a, b)))

    if found.has_truth:
        add("translation error", "m", margin_m, found.first_error_m, found.second_error_m)
        add("rotation error", "deg", margin_deg, found.first_error_deg, found.second_error_deg)
    else:
        one, other = (run.values["confidence"][rows] for run, rows in zip((found.first, found.second), found.pairs.T))
        add("confidence", "", MARGIN_CONFIDENCE, one, other, low_is_good=False)


def _differences(found: Comparison, seed: int) -> "list[tuple[Quantity, str, paired.Difference]]":
    """Quantity, statistic, difference."""
    rows = []
    for one in found.quantities:
        statistics = paired.STATISTICS if one.low_is_good else LOW
        rows += [(one, name, by) for name, by in paired.differences(one.first, one.second, one.blocks, statistics, seed).items()]
    return rows


def tests_of(rows: "list[list[tuple[Quantity, str, paired.Difference]]]") -> "list[list[Test]]":
    """Tests of each comparison from its quantities, statistics and differences; p accounts for the tests of all of them."""
    p_holm = iter(paired.holm([by.p for some in rows for _, _, by in some]))
    return [[Test(one.name, name, one.unit, one.margin, by, p, verdict_of(one, by, p)) for (one, name, by), p in zip(some, p_holm)]
            for some in rows]


def verdict_of(one: Quantity, found: paired.Difference, p_holm: float) -> str:
    """better, worse, equivalent, equal, undecided."""
    if np.array_equal(one.first, one.second):
        return "equal"
    if -one.margin < found.low and found.high < one.margin:
        return "equivalent"
    if p_holm >= SIGNIFICANT:
        return "undecided"
    return "better" if (found.difference < 0) == one.low_is_good else "worse"


def _latency(found: Comparison, stage: str) -> Optional[Latency]:
    def times(run: Run, rows: np.ndarray) -> np.ndarray:
        stages = [one for one in STAGES if one != "upload"] if stage == "total" else [stage]
        out: np.ndarray = np.sum([run.values[f"{one}_us"][rows] for one in stages], axis=0)
        return out

    one, other = times(found.first, found.pairs[:, 0]), times(found.second, found.pairs[:, 1])
    both = (one > 0) & (other > 0)
    if not both.any():
        return None
    factor, low, high = np.quantile(one[both] / other[both], (0.5, 0.25, 0.75))
    verdict = "no difference" if low <= 1 <= high or abs(factor - 1) < LEAST_FACTOR else "faster" if factor > 1 else "slower"
    return Latency(stage, float(np.median(one[both])), float(np.median(other[both])), float(np.quantile(one[both], 0.95)),
                   float(np.quantile(other[both], 0.95)), float(factor), float(low), float(high), verdict)


# ---- the verdict in words


class Unit(NamedTuple):
    """A unit for values that are read together: the largest has up to three digits before the point, the smallest the same decimals."""

    factor: float
    name: str
    decimals: int

    @staticmethod
    def of(unit: str, *values: float) -> "Unit":
        """Chooses the unit for values in "m", "deg", "%" (shares) or ""."""
        top = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
        factor, name = {"m": (1000.0, "mm") if top < 0.00995 else (100.0, "cm") if top < 0.995 else (1.0, "m"),
                        "deg": (1.0, "\N{DEGREE SIGN}"), "%": (100.0, "%")}.get(unit, (1.0, ""))
        return Unit(factor, name, 0 if top == 0 else max(0, min(4, 2 - math.floor(math.log10(top * factor)))))

    def number(self, value: float, sign: bool = False) -> str:
        text = f"{value * self.factor:{'+' if sign else ''}.{self.decimals}f}"
        return text if float(text) else f"{0:.{self.decimals}f}"

    def text(self, value: float, sign: bool = False) -> str:
        return self.number(value, sign) + self.tail

    @property
    def tail(self) -> str:
        return self.name if self.name in ("", "\N{DEGREE SIGN}") else f"\N{NO-BREAK SPACE}{self.name}"


def with_unit(value: float, unit: str) -> str:
    """A value with the unit that suits it."""
    return Unit.of(unit, value).text(value)


def unit_of(tests: "Sequence[Test]", quantity: str) -> Unit:
    """The unit that suits all tests of a quantity."""
    mine = [test for test in tests if test.quantity == quantity]
    return Unit.of(mine[0].unit, *(value for test in mine for value in (test.found.first, test.found.second)))


def _judge(found: Comparison) -> "tuple[str, str]":
    one, other = found.names
    if found.first_difference is None and len(found.pairs) == len(found.first) == len(found.second):
        return "same", f"{other} has the trajectory of {one}, bit for bit."
    verdicts = [test.verdict for test in found.tests] + [found.missed_verdict]
    better, worse = verdicts.count("better"), verdicts.count("worse")
    word = "mixed" if better and worse else "better" if better else "worse" if worse else "undecided"
    if not found.tests:
        few = f"errors cannot be tested: {len(found.pairs)} scans belong together, and {paired.FEWEST_PAIRS} with poses are needed."
        return word, f"{_missed(found)} {few[0].upper()}{few[1:]}".strip()
    count = len(found.tests)
    tests = f"{count} test{'s' if count > 1 else ''}"
    told = " ".join(part for part in (_missed(found), _told(found)) if part)
    if word == "mixed":
        return word, f"{other} is better than {one} in some respects and worse in others. {told}"
    if not found.has_truth and word != "undecided":
        word_of = {"better": "surer", "worse": "less sure"}[word]
        return word, f"{other} is {word_of} of its poses than {one}; there is no ground truth to say which is right. {told}"
    if word != "undecided":
        agree = [test.verdict for test in found.tests].count(word)
        return word, f"{other} is {word} than {one}" + (f": {agree} of {tests} say so, none the opposite. " if agree else ". ") + told
    if all(verdict in ("equivalent", "equal") for verdict in verdicts):
        return "equivalent", f"No difference that matters: all intervals of {tests} lie within the margins. {told}"
    return word, (f"Undecided: none of {tests} tells {one} and {other} apart, and not all intervals lie within the margins. "
                  f"{told} More scans would narrow them.")


def _missed(found: Comparison) -> str:
    """A sentence where the numbers differ."""
    one, other = int(found.first_missed.sum()), int(found.second_missed.sum())
    return f"{other} scan{'' if other == 1 else 's'} missed instead of {one}." if one != other else ""


def _told(found: Comparison) -> str:
    """The test that says most: one that tells the runs apart, of translations before rotations; else the first."""
    order = {"worse": 0, "better": 0, "undecided": 1, "equivalent": 2, "equal": 3}
    names = [one.name for one in found.quantities]
    test = min(found.tests, key=lambda one: (order[one.verdict], names.index(one.quantity), one.p_holm if order[one.verdict] == 0 else 0))
    by, unit = test.found, unit_of(found.tests, test.quantity)
    name = f"{test.quantity[0].upper()}{test.quantity[1:]}, {test.statistic}"
    return (f"{name}: {unit.number(by.first)} \N{RIGHTWARDS ARROW} {unit.text(by.second)}, "
            f"difference {unit.text(by.difference, True)} ({100 * paired.CONFIDENCE:.0f}\N{NO-BREAK SPACE}% interval "
            f"{unit.number(by.low, True)} to {unit.text(by.high, True)}).")
