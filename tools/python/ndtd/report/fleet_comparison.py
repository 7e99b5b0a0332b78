"""Two runs of a fleet, or two configurations of one, compared drive by drive.

Drives are paired by the content of their bags. A drive is the unit: its scans are alike, other drives are not, so that the
bootstrap draws drives. Differences are second minus first; a verdict is that on the second run. Errors are those of each run's own
trusted poses, so that the share of scans without one is tested beside them. Drives that failed, or were missed, in the second run
alone are facts and not tested: a replay is deterministic.
"""
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from . import paired
from .comparison import MARGIN_CONFIDENCE, MARGIN_DEG, MARGIN_MISSED, MARGIN_M, Quantity, Test, tests_of, unit_of
from .fleet_reading import FleetRun
from .fleet_totals import BAD_DRIVE, Totals, failed_rows
from .verdict import count

MARGIN_UNTRUSTED = 0.002  # of the scans of a drive
FEWEST_DRIVES = paired.FEWEST_PAIRS
MOST_CHANGED = 10  # drives of a list
AS_BAD = 0.05  # of the scans without a trusted pose: as bad as errors that double, in the order of that list
QUANTITIES = (("error_m_median", "median translation error", "m"), ("error_m_p95", "95 % translation error", "m"),
              ("error_deg_median", "median rotation error", "deg"), ("error_deg_p95", "95 % rotation error", "deg"))


class Side(NamedTuple):
    """A side of the comparison: a run and a configuration of it."""

    run: FleetRun
    totals: Totals
    configuration: str
    name: str


class Fact(NamedTuple):
    """Something that is counted. second is worse or better by a rule, not by a test."""

    name: str
    first: str
    second: str
    verdict: str  # worse, better, equal, equivalent


@dataclass
class FleetComparison:
    """rows (K, 2): of both run tables, one pair per drive; values: quantity -> (first (K,), second (K,))."""

    first: Side
    second: Side
    rows: np.ndarray
    newly_failed: "list[int]"  # rows of the second run whose drive is done in the first
    no_longer_failed: "list[int]"
    only_first: "list[str]"  # bags that the other run has not, not even as failed
    only_second: "list[str]"
    values: "dict[str, tuple[np.ndarray, np.ndarray]]"
    missed: "tuple[np.ndarray, np.ndarray]"  # bool (K,): drives
    facts: "list[Fact]" = field(default_factory=list)
    quantities: "list[Quantity]" = field(default_factory=list)
    tests: "list[Test]" = field(default_factory=list)
    verdict: str = ""
    sentence: str = ""

    @property
    def names(self) -> "tuple[str, str]":
        return self.first.name, self.second.name

    @property
    def has_truth(self) -> bool:
        return "median translation error" in self.values

    @property
    def is_worse(self) -> bool:
        """Whether any test or fact says so."""
        return not self.is_same and "worse" in [test.verdict for test in self.tests] + [fact.verdict for fact in self.facts]

    @property
    def is_same(self) -> bool:
        """Whether all drives of both have equal trajectories, and none failed in one alone."""
        hashes = [side.run.texts["trajectory_hash"][rows] for side, rows in zip((self.first, self.second), self.rows.T)]
        alone = self.newly_failed or self.no_longer_failed
        return bool(len(self.rows)) and not alone and bool(((hashes[0] == hashes[1]) & (hashes[0] != "")).all())

    def changed(self, most: int = MOST_CHANGED) -> "tuple[list[int], list[int]]":
        """Pairs that got worse and better most: by the error of each drive where there is truth, and the share without a trusted pose."""
        share = self.values["scans without a trusted pose"]
        missed = np.nan_to_num(share[1] - share[0])
        if self.has_truth:
            error = self.values["95 % translation error"]
            more = np.nan_to_num(error[1] - error[0]) / max(self._scale(error), 1e-9)
        else:
            sure = self.values.get("median confidence", share)
            more = -np.nan_to_num(sure[1] - sure[0]) / max(self._scale(sure), 1e-9)
        by = more + missed / max(self._scale(share), AS_BAD)
        order = np.argsort(-by, kind="stable")
        return ([int(at) for at in order if by[at] > 0][:most], [int(at) for at in order[::-1] if by[at] < 0][:most])

    @staticmethod
    def _scale(values: "tuple[np.ndarray, np.ndarray]") -> float:
        """The usual size of a value."""
        both = np.concatenate(values)
        both = both[np.isfinite(both)]
        return float(np.median(both)) if len(both) else 0.0


def compare(pairs: "list[tuple[Side, Side]]", margin_m: float = MARGIN_M, margin_deg: float = MARGIN_DEG,
            seed: int = 1) -> "list[FleetComparison]":
    """Each pair; p accounts for the tests of all of them."""
    out, rows = [], []
    for first, second in pairs:
        found = _pair_up(first, second)
        _add_quantities(found, margin_m, margin_deg)
        rows.append([(one, name, by) for one in found.quantities for name, by in _differences(one, seed)])
        out.append(found)
    for found, tests in zip(out, tests_of(rows)):
        found.tests = tests
        found.facts = _facts(found)
        found.verdict, found.sentence = _judge(found)
    return out


# ---- pairs


def _pair_up(first: Side, second: Side) -> FleetComparison:
    done = [{_content(side.run, row): row for row in reversed(side.run.rows_of(side.configuration).tolist())} for side in (first, second)]
    both = [key for key in done[0] if key in done[1]]
    rows = np.array([(done[0][key], done[1][key]) for key in both], np.int64).reshape(-1, 2)
    failed = [failed_rows(side.run, side.configuration).tolist() for side in (first, second)]
    newly, no_longer = (_failed_alone(one, mine, other, side) for one, mine, other, side in (
        (second, failed[1], first, done[0]), (first, failed[0], second, done[1])))
    told = [_bags(side.run, failed[at]) | set(done[at]) for at, side in enumerate((first, second))]
    only = [[str(side.run.texts["bag"][row]) for key, row in done[at].items()
             if key not in told[1 - at] and str(side.run.texts["bag"][row]) not in told[1 - at]] for at, side in enumerate((first, second))]
    out = FleetComparison(first, second, rows, newly, no_longer, only[0], only[1], {}, (np.empty(0, bool), np.empty(0, bool)))
    shares = [side.totals.untrusted_share(mine) for side, mine in zip((first, second), rows.T)]
    out.missed = (_missed(first, rows[:, 0]), _missed(second, rows[:, 1]))
    for column, name, _ in QUANTITIES:
        values = (first.run.numbers[column][rows[:, 0]], second.run.numbers[column][rows[:, 1]])
        if (np.isfinite(values[0]) & np.isfinite(values[1])).any():
            out.values[name] = values
    if not out.values:
        out.values["median confidence"] = (first.run.numbers["confidence_median"][rows[:, 0]],
                                            second.run.numbers["confidence_median"][rows[:, 1]])
    out.values["scans without a trusted pose"] = (shares[0], shares[1])
    return out


def _content(run: FleetRun, row: int) -> str:
    return str(run.texts["bag_hash"][row] or run.texts["bag"][row])


def _bags(run: FleetRun, rows: "list[int]") -> "set[str]":
    """Contents and urls."""
    return {str(text) for row in rows for text in (run.texts["bag_hash"][row], run.texts["bag"][row]) if text}


def _failed_alone(mine: Side, rows: "list[int]", other: Side, done: "dict[str, int]") -> "list[int]":
    """Failed rows whose drive is done in the other run."""
    urls = {str(other.run.texts["bag"][row]) for row in done.values()}
    return [row for row in rows if mine.run.texts["bag_hash"][row] in done or mine.run.texts["bag"][row] in urls]


def _missed(side: Side, rows: np.ndarray) -> np.ndarray:
    """Drives that went wrong as a whole: half of the scans without a trusted pose, or more than 1 % of the poses wrong."""
    counts = side.totals.counts
    matched = np.maximum(counts["matched"][rows], 1)
    out: np.ndarray = (side.totals.untrusted_share(rows) > BAD_DRIVE) | (counts["wrong"][rows] > MARGIN_MISSED * matched)
    return out


# ---- tests


def _add_quantities(found: FleetComparison, margin_m: float, margin_deg: float) -> None:
    units = {"median confidence": ("", MARGIN_CONFIDENCE), "scans without a trusted pose": ("%", MARGIN_UNTRUSTED)}
    units.update({name: (unit, margin_m if unit == "m" else margin_deg) for _, name, unit in QUANTITIES})
    for name, (first, second) in found.values.items():
        both = np.isfinite(first) & np.isfinite(second)
        if both.sum() >= FEWEST_DRIVES:
            a, b, blocks = first[both], second[both], paired.Blocks(1, float(both.sum()), False)
            found.quantities.append(Quantity(name, *units[name], not name.endswith("confidence"), a, b, blocks,
                                             paired.signed_rank(a, b, blocks), paired.share_below(a, b)))


def _differences(one: Quantity, seed: int) -> "list[tuple[str, paired.Difference]]":
    """Differences of the mean over the drives, and of the usual drive: the median of the differences, its p that of signed ranks."""
    mean = paired.differences(one.first, one.second, one.blocks, {"mean": paired.mean_of}, seed)["mean"]
    change = one.second - one.first
    usual = paired.differences(np.zeros(len(change)), change, one.blocks, {"median": paired.STATISTICS["median"]}, seed)["median"]
    p = one.signed_rank if one.signed_rank is not None and usual.difference != 0 else 1.0  # None: too few drives differ
    first = float(np.median(one.first))
    second = first + usual.difference
    return [("mean of drives", mean), ("usual drive", paired.Difference(first, second, usual.difference, usual.low, usual.high, p))]


def _facts(found: FleetComparison) -> "list[Fact]":
    def net(more: int, less: int) -> str:
        return "worse" if more > less else "better" if less > more else "equal"

    failed = [len(failed_rows(side.run, side.configuration)) for side in (found.first, found.second)]
    newly, no_longer = len(found.newly_failed), len(found.no_longer_failed)
    missed = [int(one.sum()) for one in found.missed]
    out = [Fact("failed drives", str(failed[0]), str(failed[1]), "worse" if newly else "better" if no_longer else "equal"),
           Fact("missed drives", str(missed[0]), str(missed[1]), net(missed[1], missed[0]))]
    scans, matched = [], 0
    for side, rows in zip((found.first, found.second), found.rows.T):
        counts = side.totals.counts
        scans.append(int((counts["matched"] - counts["trusted"] + counts["wrong"])[rows].sum()))
        matched = max(matched, int(counts["matched"][rows].sum()))
    word = net(scans[1], scans[0])
    if word != "equal" and abs(scans[1] - scans[0]) <= MARGIN_MISSED * matched:
        word = "equivalent"
    out.append(Fact("missed scans", str(scans[0]), str(scans[1]), word))
    return out


# ---- the verdict in words


def _judge(found: FleetComparison) -> "tuple[str, str]":
    one, other = found.names
    drives = count(len(found.rows), "drive")
    if not len(found.rows) and not found.newly_failed:
        return "undecided", f"{one} and {other} have no drive in common."
    if found.is_same:
        every = f"all {drives}" if len(found.rows) > 1 else "the one drive"
        which = f"the {drives} that both have" if found.only_first or found.only_second else every
        return "same", f"{other} has the trajectories of {one} on {which}, bit for bit."
    told = " ".join(part for part in (*_told_facts(found), _told_test(found)) if part)
    verdicts = [test.verdict for test in found.tests] + [fact.verdict for fact in found.facts]
    better, worse = verdicts.count("better"), verdicts.count("worse")
    tests = count(len(found.tests), "test")
    few = "" if found.tests else f" {drives} are too few to test errors: {FEWEST_DRIVES} are needed."
    if better and worse:
        return "mixed", f"{other} is better than {one} in some respects and worse in others, on {drives}. {told}{few}"
    if better or worse:
        word = "better" if better else "worse"
        agree = [test.verdict for test in found.tests].count(word)
        how = f": {agree} of {tests} say so, none the opposite" if agree else ""
        ours = "" if found.has_truth or not agree else " by its own confidence"
        return word, f"{other} is {word} than {one}{ours} on {drives}{how}. {told}{few}"
    if found.tests and all(verdict in ("equivalent", "equal") for verdict in verdicts):
        return "equivalent", f"No difference that matters on {drives}: all intervals of {tests} lie within the margins. {told}"
    if not found.tests:
        return "undecided", f"Undecided:{few} {told}".strip()
    return "undecided", (f"Undecided: none of {tests} tells {one} and {other} apart on {drives}, and not all intervals lie within the "
                         f"margins. {told} More drives would narrow them.")


def _told_facts(found: FleetComparison) -> "list[str]":
    out = []
    if found.newly_failed:
        out.append(f"{count(len(found.newly_failed), 'drive')} failed that had not failed before.")
    for fact in found.facts[1:]:
        if fact.verdict in ("worse", "better"):
            out.append(f"{count(int(fact.second), fact.name[:-1])} instead of {fact.first}.")
    return out


def _told_test(found: FleetComparison) -> str:
    """The test that says most."""
    order = {"worse": 0, "better": 0, "undecided": 1, "equivalent": 2, "equal": 3}
    if not found.tests:
        return ""
    test = min(found.tests, key=lambda one: (order[one.verdict], one.p_holm if order[one.verdict] == 0 else 0))
    by, unit = test.found, unit_of(found.tests, test.quantity)
    name = f"{test.quantity[0].upper()}{test.quantity[1:]}, {test.statistic}"
    return (f"{name}: {unit.number(by.first)} \N{RIGHTWARDS ARROW} {unit.text(by.second)}, difference {unit.text(by.difference, True)} "
            f"({100 * paired.CONFIDENCE:.0f}\N{NO-BREAK SPACE}% interval {unit.number(by.low, True)} to {unit.text(by.high, True)}).")

