"""Places where a fleet is unsure: cells of the map with the scans and drives that were low there, and the places to survey again.

A scan without a trusted pose lies where the drive was: between the trusted poses around it where they are near in time, else at
the last one if that is fresh, else nowhere. One drive's bad day is no fault of the map: drives that are low nearly everywhere are left
out, and a place is named where more drives were low, out of those that passed, than chance brings together: given that one of
them was, the others are low as often as drives are in the cells elsewhere (binomial), and every place that could be named counts
(Bonferroni).
"""
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from .fleet_reading import Block, FleetRun
from .fleet_totals import BAD_DRIVE, Low

COLUMNS = ("stamp_ns", "x", "y", "z")
MOST_GAP_S, MOST_GAP_M = 10.0, 300.0  # between trusted poses: the way between them is taken as straight
FRESH_S = 2.0  # after the last trusted pose
LOW_SHARE = 0.3  # of its scans: a drive is low in a cell, or in a place
LOW_DRIVES = 0.25  # of the drives that passed: the cell is bad, and the place
SIGNIFICANT = 0.05  # chance that any place of a run is named wrongly
REACH = 2  # cells: bad ones that are so near are one place
CELLS_M = ((100.0, 2.0), (300.0, 5.0), (20_000.0, 10.0), (100_000.0, 20.0))  # extent -> edge of a cell
LARGEST_CELL_M = 50.0
SAMPLE = 1 << 20  # scans that choose the edge
MOST_GROUPS = 200
FIELDS = ("scans", "low", "drives", "low_drives")
_HALF = 1 << 30


def positions(block: Block, wrong: np.ndarray) -> np.ndarray:
    """(N, 3) where each scan was taken; NaN: nowhere."""
    values = block.values
    stamp_ns = values["stamp_ns"]
    known = values["trusted"] & ~wrong & np.isfinite(values["x"])
    out = np.where(known[:, None], np.stack([values["x"], values["y"], values["z"]], axis=1), np.nan)
    rows = np.arange(len(block))
    first = np.repeat(block.starts, block.lengths)
    end = first + np.repeat(block.lengths, block.lengths)
    before = np.maximum.accumulate(np.where(known, rows, -1))
    after = np.minimum.accumulate(np.where(known, rows, len(block))[::-1])[::-1]
    unknown = np.flatnonzero(~known & (before >= first))
    a, b = before[unknown], np.minimum(after[unknown], len(block) - 1)
    gap_s = np.where(after[unknown] < end[unknown], (stamp_ns[b] - stamp_ns[a]) * 1e-9, np.inf)
    since_s = (stamp_ns[unknown] - stamp_ns[a]) * 1e-9
    between = (gap_s <= MOST_GAP_S) & (gap_s > 0)
    between &= np.linalg.norm(np.where(between[:, None], out[b] - out[a], np.inf), axis=1) <= MOST_GAP_M
    share = np.where(between, since_s / np.where(between, gap_s, 1.0), 0.0)
    placed = np.where(between[:, None], out[a] + share[:, None] * (out[b] - out[a]), out[a])
    out[unknown] = np.where((between | (since_s <= FRESH_S))[:, None], placed, np.nan)
    return out


def cell_edge_m(run: FleetRun, configuration: str) -> float:
    """Chooses the edge by the extent of trusted poses, without the farthest hundredth."""
    held, count = [], 0
    for block in run.blocks(("trusted", "x", "y")):
        mine = block.values["trusted"] & np.isfinite(block.values["x"]) & (run.texts["config"][block.values["drive"]] == configuration)
        held.append(np.stack([block.values["x"][mine], block.values["y"][mine]], axis=1)[::7])
        count += len(block)
        if count > SAMPLE:
            break
    points = np.concatenate(held) if held else np.empty((0, 2))
    if not len(points):
        return 10.0
    extent = float(np.ptp(np.quantile(points, (0.005, 0.995), axis=0), axis=0).max())
    return next((edge for reach, edge in CELLS_M if extent <= reach), LARGEST_CELL_M)


class Grid:
    """Counts per cell. key (K,) ascending; counts (K, 2, 4): of usual drives and of bad ones, FIELDS."""

    def __init__(self, edge_m: float):
        self.edge_m = edge_m
        self.key = np.empty(0, np.int64)
        self.counts = np.empty((0, 2, 4), np.int64)
        self.nowhere = 0  # low scans
        self.bad_drives = 0
        self.drives = 0
        self._parts: "list[tuple[np.ndarray, np.ndarray]]" = []
        self._held = 0

    def keys_of(self, place: np.ndarray) -> np.ndarray:
        """(N,) of positions (N, 2 or 3)."""
        cell = np.clip(np.floor(place[:, :2] / self.edge_m), 1 - _HALF, _HALF - 1).astype(np.int64) + _HALF
        out: np.ndarray = cell[:, 0] << 31 | cell[:, 1]
        return out

    def corners(self) -> np.ndarray:
        """(K, 2) lower left [m]."""
        return self.edge_m * self.columns_rows(self.key)

    @staticmethod
    def columns_rows(key: np.ndarray) -> np.ndarray:
        out: np.ndarray = np.stack([(key >> 31) - _HALF, (key & (2 * _HALF - 1)) - _HALF], axis=1)
        return out

    def add(self, block: Block, place: np.ndarray, low: Low) -> None:
        placed = low.matched & np.isfinite(place[:, 0])
        self.nowhere += int((low.low & ~placed).sum())
        scans, lows = block.sums(placed.astype(np.int64)), block.sums((placed & low.low).astype(np.int64))
        is_bad = lows > BAD_DRIVE * scans
        number = np.repeat(np.arange(len(block.drives)), block.lengths)[placed]
        self.bad_drives += int((is_bad & (scans > 0)).sum())
        self.drives += int((scans > 0).sum())
        key, drive, counts = _per_drive(self.keys_of(place[placed]), number, low.low[placed])
        found = np.zeros((len(key), 2, 4), np.int64)
        found[np.arange(len(key)), is_bad[drive].astype(int)] = np.stack(
            [counts[:, 0], counts[:, 1], np.ones(len(key), np.int64), counts[:, 1] >= LOW_SHARE * counts[:, 0]], axis=1)
        self._parts.append((key, found))
        self._held += len(key)
        if self._held > max(len(self.key), 1 << 20):
            self.merge()

    def merge(self) -> None:
        key = np.concatenate([self.key, *(part[0] for part in self._parts)])
        counts = np.concatenate([self.counts, *(part[1] for part in self._parts)])
        order = np.argsort(key, kind="stable")
        key, counts = key[order], counts[order]
        starts = np.flatnonzero(np.diff(key, prepend=key[:1] - 1)) if len(key) else np.empty(0, np.int64)
        self.key, self.counts = key[starts], np.add.reduceat(counts, starts, axis=0) if len(key) else self.counts
        self._parts, self._held = [], 0

    @property
    def leaves_out(self) -> bool:
        """Whether bad drives are left out: not where they are the half of all."""
        return 2 * self.bad_drives < self.drives

    @property
    def shown(self) -> np.ndarray:
        """(K, 4) FIELDS of the drives that count."""
        out: np.ndarray = self.counts[:, 0] if self.leaves_out else self.counts.sum(axis=1)
        return out

    def low_share(self, keys: np.ndarray) -> float:
        """Share of low scans among those in these cells; NaN: there are none."""
        if not len(self.key):
            return float("nan")
        at = np.minimum(np.searchsorted(self.key, keys), len(self.key) - 1)
        scans, low = self.shown[at[self.key[at] == keys], :2].sum(axis=0)
        return float(low / scans) if scans else float("nan")

    def bad_cells(self) -> np.ndarray:
        """Keys of cells where half of the drives that passed were low."""
        found = self.shown
        return self.key[(found[:, 3] > 0) & (found[:, 3] >= LOW_DRIVES * found[:, 2])]


def _per_drive(key: np.ndarray, drive: np.ndarray, low: np.ndarray) -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
    """Key and drive of each pair that occurs, and (pairs, 2): scans, low scans."""
    order = np.lexsort((drive, key))
    key, drive, low = key[order], drive[order], low[order]
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(key) != 0) | (np.diff(drive) != 0)])) if len(key) else np.empty(0, np.int64)
    if not len(starts):
        return key, drive, np.empty((0, 2), np.int64)
    lows = np.add.reduceat(low.astype(np.int64), starts)
    return key[starts], drive[starts], np.stack([np.diff(np.append(starts, len(key))), lows], axis=1)


# ---- places


@dataclass
class Place:
    """Bad cells near each other. passed, bad: bags that passed, and those of them that were low here."""

    keys: np.ndarray
    low_m: np.ndarray  # (2,) corners of what it covers
    high_m: np.ndarray
    passed: int = 0
    bad: int = 0
    scans: int = 0
    low: int = 0
    outcomes: "Counter[str]" = field(default_factory=Counter)
    reasons: "Counter[str]" = field(default_factory=Counter)
    centre: np.ndarray = field(default_factory=lambda: np.zeros(3))
    error_sum_m: float = 0.0
    error_count: int = 0
    error_max_m: float = 0.0
    worst: "tuple[int, int]" = (0, -1)  # low scans and row of the run table
    chance: float = 1.0  # that drives which are low as often as elsewhere are low here together

    @property
    def share(self) -> float:
        return self.low / max(self.scans, 1)

    @property
    def is_told(self) -> bool:
        """Whether so many were low that it is worth a line."""
        return self.bad > 0 and self.bad >= LOW_DRIVES * self.passed


def groups(grid: Grid) -> "tuple[list[Place], int]":
    """Bad cells that are near each other, those with most low drives first, MOST_GROUPS of them, and how many there are."""
    keys = grid.bad_cells()
    left = {(int(x), int(y)): int(key) for key, (x, y) in zip(keys, Grid.columns_rows(keys))}
    weight = dict(zip(grid.key.tolist(), grid.shown[:, 3].tolist()))
    near = [(x, y) for x in range(-REACH, REACH + 1) for y in range(-REACH, REACH + 1)]
    out = []
    while left:
        start = next(iter(left))
        open_cells, mine = [start], [left.pop(start)]
        while open_cells:
            x, y = open_cells.pop()
            for step_x, step_y in near:
                key = left.pop((x + step_x, y + step_y), None)
                if key is not None:
                    open_cells.append((x + step_x, y + step_y))
                    mine.append(key)
        cells = Grid.columns_rows(np.array(mine, np.int64))
        out.append(Place(np.sort(np.array(mine, np.int64)), grid.edge_m * cells.min(axis=0), grid.edge_m * (cells.max(axis=0) + 1)))
    out.sort(key=lambda place: (-max(weight[key] for key in place.keys.tolist()), -len(place.keys), int(place.keys[0])))
    return out[:MOST_GROUPS], len(out)


class Survey:
    """Counts who passed the places, and what happened there: a second reading, of the places alone."""

    def __init__(self, run: FleetRun, grid: Grid, places: "list[Place]"):
        self.run, self.grid, self.places = run, grid, places
        self._keys = np.concatenate([place.keys for place in places]) if places else np.empty(0, np.int64)
        self._number = np.repeat(np.arange(len(places)), [len(place.keys) for place in places])
        order = np.argsort(self._keys)
        self._keys, self._number = self._keys[order], self._number[order]
        self._centre_count = np.zeros(len(places), np.int64)

    def add(self, block: Block, place: np.ndarray, low: Low) -> None:
        placed = np.flatnonzero(low.matched & np.isfinite(place[:, 0]))
        if self.grid.leaves_out:
            scans = block.sums(np.isin(np.arange(len(block)), placed).astype(np.int64))
            is_placed = np.zeros(len(block), bool)
            is_placed[placed] = True
            bad = block.sums((is_placed & low.low).astype(np.int64)) > BAD_DRIVE * scans
            placed = placed[~np.repeat(bad, block.lengths)[placed]]
        key = self.grid.keys_of(place[placed])
        at = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        inside = self._keys[at] == key
        rows, number = placed[inside], self._number[at[inside]]
        which, drive, counts = _per_drive(number, block.values["drive"][rows], low.low[rows])
        for group, one, (scans_here, low_here) in zip(which.tolist(), drive.tolist(), counts.tolist()):
            self._count_drive(self.places[group], one, scans_here, low_here)
        self._describe(block, place, rows, number, low)

    def _count_drive(self, place: Place, row: int, scans: int, low: int) -> None:
        place.passed += 1
        place.scans += scans
        place.low += low
        if low >= LOW_SHARE * scans:
            place.bad += 1
            place.worst = max(place.worst, (low, row))

    def _describe(self, block: Block, place: np.ndarray, rows: np.ndarray, number: np.ndarray, low: Low) -> None:
        values, labels = block.values, self.run.labels
        for group in np.unique(number).tolist():
            one, mine = self.places[group], rows[number == group]
            bad = mine[low.low[mine]]
            for names, counter in ((values["outcome"], one.outcomes), (values["reason"], one.reasons)):
                kinds, counts = np.unique(names[bad], return_counts=True)
                texts = labels["outcome" if counter is one.outcomes else "reason"]
                for kind, times in zip(kinds.tolist(), counts.tolist()):
                    counter[texts[kind]] += times
            one.centre = (one.centre * self._centre_count[group] + place[bad].sum(axis=0)) / max(self._centre_count[group] + len(bad), 1)
            self._centre_count[group] += len(bad)
            errors = values["error_m"][mine]
            errors = errors[np.isfinite(errors)]
            one.error_sum_m += float(errors.sum())
            one.error_count += len(errors)
            one.error_max_m = max(one.error_max_m, float(errors.max(initial=0.0)))


def rank(grid: Grid, places: "list[Place]", candidates: int) -> "tuple[list[Place], list[Place]]":
    """Splits places into those that no chance explains and those that it may. candidates: places that could be named."""
    drives, low_drives = (int(grid.shown[:, at].sum()) for at in (2, 3))
    for one in places:
        inside = np.isin(grid.key, one.keys)
        elsewhere = drives - int(grid.shown[inside, 2].sum()), low_drives - int(grid.shown[inside, 3].sum())
        one.chance = tail(one.passed - 1, one.bad - 1, (elsewhere[1] + 1) / (elsewhere[0] + 2))
    sure = [one for one in places if one.is_told and one.bad > 1 and one.chance * candidates < SIGNIFICANT]
    named = {int(one.keys[0]) for one in sure}
    unsure = [one for one in places if one.is_told and int(one.keys[0]) not in named]
    return (sorted(sure, key=lambda one: (-one.bad, -one.share, -one.low, int(one.keys[0]))),
            sorted(unsure, key=lambda one: (one.chance, -one.low, int(one.keys[0]))))


def tail(count: int, least: int, share: float) -> float:
    """P(at least `least` of `count`), each with probability `share` in (0, 1): binomial."""
    if least <= 0:
        return 1.0
    if least > count:
        return 0.0
    k = np.arange(least, count + 1)
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count + 1)))])
    log_p = factorial[count] - factorial[k] - factorial[count - k] + k * np.log(share) + (count - k) * np.log1p(-share)
    return float(min(1.0, np.exp(log_p).sum()))
