"""Votes of scans about cells of a map: seen as mapped, looked through, new, not looked at; and what the votes decide.

A map is judged in blocks, one in memory. Cells are those of mapped points, and those of points that scans have measured where the map
has none. A vote is an integer: a number of scans, or a bit for each place that a cell was seen from. Votes of recordings add up (numbers)
or join (bits), so that their order does not matter. A scan votes only as far away as several standard deviations of its pose move
points by less than the margin by which the geometry has to differ.
"""
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Callable, Optional

import numpy as np

from ..mapping import se3
from ..mapping.clean import FAR_M, MARGIN_M, View, is_in, keys_of
from ..mapping.cloud_store import CloudStore
from .localise import SCAN_VOXEL_M, Voter
from .overlay import Change
from .prior_map import PriorMap

BLOCK_M = 30.0
CELL_M = 0.2  # of mapped points, which leave together
NEAR_M = 0.3  # a point with no mapped point in its cell of this edge and the 26 around it is new
WIDEST_M = 0.6  # edge of a pixel where a scan still judges
RAY_M = 0.04  # by which a beam has to come to a point that it passes
SIGMAS = 4.0  # of the pose, that move points by less than MARGIN_M where a scan votes
MOST_SCANS = 64  # of a recording, evenly chosen, that judge a block
VIEWPOINT_M = 0.5  # places are distinct in cells of this edge; 8 x 8 of them have a bit each, those 4 m away share them
KEPT_VIEWS = 64
# A cell leaves by so many scans that look through it, times those that see it, and distinct places that they look from.
LEAST_THROUGH, THROUGH_PER_SEEN, LEAST_THROUGH_PLACES = 4, 4, 3
# New points stay by so many scans of one recording that see them, times those that look through them, distinct places.
LEAST_SEEN, SEEN_PER_THROUGH, LEAST_SEEN_PLACES = 6, 8, 4
UNIT_M = 1e-4  # in which coordinates of new points are added up, as integers

ALL = -1  # the votes of all parts


def reach_m(voter: Voter) -> float:
    """Range up to which a scan may vote."""
    room_m = MARGIN_M / SIGMAS - voter.deviation_m
    return min(FAR_M, WIDEST_M / voter.edge_rad, room_m / max(voter.deviation_rad, 1e-9)) if room_m > 0 else 0.0


class Rays(View):
    """The images of a scan, and the directions in which it has measured: a thin board between two beams is not looked through."""

    def __init__(self, points: np.ndarray, voter: Voter):
        from scipy.spatial import cKDTree

        super().__init__(points, voter.edge_rad, SCAN_VOXEL_M, reach_m(voter))
        self._directions = cKDTree(points / np.maximum(np.linalg.norm(points, axis=1), 1e-6)[:, None])

    def passed(self, points: np.ndarray) -> np.ndarray:
        """Flags of the points that a beam has passed as closely as RAY_M."""
        range_m = np.linalg.norm(points, axis=1)
        off_rad, _ = self._directions.query(points / np.maximum(range_m, 1e-6)[:, None])
        passed: np.ndarray = off_rad * range_m <= RAY_M
        return passed


@dataclass
class Votes:
    """Votes of one part about the cells of a block: mapped ones first, then new ones. Numbers of scans; bits of places."""

    through: np.ndarray
    seen: np.ndarray
    measured: np.ndarray  # scans with a range there around its direction
    through_places: np.ndarray
    seen_places: np.ndarray
    sums: np.ndarray  # (N, 3) coordinates of new points, less those of the block's corner [UNIT_M]
    points: np.ndarray  # how many

    @staticmethod
    def none(count: int) -> "Votes":
        """No vote about each of `count` cells."""
        def zeros() -> np.ndarray:
            return np.zeros(count, np.int64)
        return Votes(zeros(), zeros(), zeros(), np.zeros(count, np.uint64), np.zeros(count, np.uint64), np.zeros((count, 3), np.int64), zeros())


def merge(votes: "Iterable[Votes]", count: int) -> Votes:
    """The votes of several parts about the same cells, whatever their order."""
    out = Votes.none(count)
    for one in votes:
        for name in ("through", "seen", "measured", "sums", "points"):
            getattr(out, name)[:] += getattr(one, name)
        for name in ("through_places", "seen_places"):
            getattr(out, name)[:] |= getattr(one, name)
    return out


def count_bits(bits: np.ndarray) -> np.ndarray:
    """Ones of each number."""
    ones: np.ndarray = np.unpackbits(bits.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=1, dtype=np.int64)
    return ones


def leaves(votes: Votes) -> np.ndarray:
    """Flags of the cells that are looked through often, from several places, and hardly seen as mapped."""
    gone: np.ndarray = ((votes.through >= LEAST_THROUGH) & (votes.through >= THROUGH_PER_SEEN * votes.seen) & (votes.through >= votes.measured)
                        & (count_bits(votes.through_places) >= LEAST_THROUGH_PLACES))
    return gone


def stays(votes: Votes, stands: np.ndarray) -> np.ndarray:
    """Flags of the new cells that are a surface at rest (in one recording at least), and are not looked through."""
    new: np.ndarray = stands & (votes.seen >= SEEN_PER_THROUGH * votes.through) & (votes.points > 0)
    return new


def _place_bit(T_map_sensor: np.ndarray) -> np.uint64:
    x, y = np.floor(T_map_sensor[:2, 3] / VIEWPOINT_M).astype(np.int64) % 8
    return np.uint64(1) << np.uint64(8 * x + y)


def _around(keys: np.ndarray) -> np.ndarray:
    """These cells and their neighbours, sorted."""
    steps = [(k << 42) + (j << 21) + i for k in (-1, 0, 1) for j in (-1, 0, 1) for i in (-1, 0, 1)]
    return np.unique((keys[:, None] + np.array(steps, np.int64)).ravel())


def _centers(keys: np.ndarray, edge_m: float) -> np.ndarray:
    """Centers of cells, from their keys."""
    cell = np.stack([keys & 0x1FFFFF, (keys >> 21) & 0x1FFFFF, keys >> 42], axis=1) - (1 << 20)
    centers: np.ndarray = (cell + 0.5) * edge_m
    return centers


@dataclass
class Block:
    """The cells of one block. Coordinates are those of the map less `corner`, which has whole metres."""

    corner: np.ndarray
    files: np.ndarray  # of each mapped point
    places: np.ndarray  # and its place in the file
    of_point: np.ndarray  # and its cell
    cells: np.ndarray  # (N, 3) means of mapped cells, then centers of new ones
    mapped: int  # how many are mapped
    new_keys: np.ndarray
    votes: "dict[int, Votes]" = field(default_factory=dict)

    def merged(self, parts: "set[int]") -> "tuple[Votes, np.ndarray]":
        """The votes of some parts; and which cells one recording among them has seen often, from several places: cars that drive by
        one after the other, each for a moment, are no surface that stands."""
        stands = np.zeros(len(self.cells), bool)
        for drive in {part // 2 for part in parts}:
            of_drive = merge((one for part, one in self.votes.items() if part in parts and part // 2 == drive), len(self.cells))
            stands |= (of_drive.seen >= LEAST_SEEN) & (count_bits(of_drive.seen_places) >= LEAST_SEEN_PLACES)
        return merge((one for part, one in self.votes.items() if part in parts), len(self.cells)), stands


@dataclass
class Tally:
    """Cells of the map by what was seen of them."""

    mapped: int = 0
    seen: int = 0
    through: int = 0  # looked through more often than seen
    not_looked_at: int = 0
    gone: int = 0
    new: int = 0
    stay: int = 0
    agreed: int = 0  # of those that are gone or stay: by the votes of several recordings

    def add(self, block: Block, votes: Votes, stands: np.ndarray) -> None:
        """Counts the cells of a block."""
        n = block.mapped
        changes = np.r_[leaves(votes)[:n], stays(votes, stands)[n:]]
        looked = (votes.seen[:n] + votes.through[:n]) > 0
        through = votes.through[:n] > votes.seen[:n]
        self.mapped += n
        self.seen += int((looked & ~through).sum())
        self.through += int(through.sum())
        self.not_looked_at += int((~looked).sum())
        self.gone += int(changes[:n].sum())
        self.new += int((votes.seen[n:] > 0).sum())
        self.stay += int(changes[n:].sum())
        drives = [{part // 2 for part, one in block.votes.items() if (one.through if k < n else one.seen)[k]} for k in np.flatnonzero(changes)]
        self.agreed += sum(len(one) > 1 for one in drives)


class Ballot:
    """Counts votes block by block. Voters by part; their points are in the store."""

    def __init__(self, prior: PriorMap, store: CloudStore, voters: "list[Voter]"):
        self._prior, self._store = prior, store
        self._voters = [one for one in voters if reach_m(one) > 0]
        self._kept: "OrderedDict[int, Rays]" = OrderedDict()

    def blocks(self) -> "list[tuple[int, int]]":
        """Blocks that voters reach, in a fixed order."""
        found = set()
        for voter in self._voters:
            far_m = reach_m(voter)
            low, high = (np.floor((voter.T_map_sensor[:2, 3] + sign * far_m) / BLOCK_M).astype(int) for sign in (-1, 1))
            found |= {(x, y) for x in range(low[0], high[0] + 1) for y in range(low[1], high[1] + 1)}
        return sorted(found)

    def _rays(self, voter: Voter) -> Rays:
        if voter.key not in self._kept:
            self._kept[voter.key] = Rays(self._store[voter.key].astype(np.float64), voter)
        self._kept.move_to_end(voter.key)
        while len(self._kept) > KEPT_VIEWS:
            self._kept.popitem(last=False)
        return self._kept[voter.key]

    def _near(self, low: np.ndarray, high: np.ndarray) -> "list[Voter]":
        """Voters that reach a block, at most MOST_SCANS of each part."""
        near: "dict[int, list[Voter]]" = {}
        for voter in self._voters:
            at = voter.T_map_sensor[:2, 3]
            off_m = np.linalg.norm(np.maximum(np.maximum(low - at, at - high), 0))
            if off_m < reach_m(voter):
                near.setdefault(voter.part, []).append(voter)
        chosen = []
        for part in sorted(near):
            places = np.linspace(0, len(near[part]) - 1, min(len(near[part]), MOST_SCANS)).round().astype(int)
            chosen += [near[part][place] for place in places]
        return chosen

    def judge(self, number: "tuple[int, int]") -> Optional[Block]:
        """The votes about one block; None: nobody can tell anything."""
        corner = np.array([number[0] * BLOCK_M, number[1] * BLOCK_M, 0.0])
        low, high = corner[:2], corner[:2] + BLOCK_M
        voters = self._near(low, high)
        if not voters:
            return None
        points, files, places = self._prior.inside(low - 2 * NEAR_M, high + 2 * NEAR_M)
        points = points - corner
        known = _around(np.unique(keys_of(points, NEAR_M)))
        own = ((points[:, :2] >= 0) & (points[:, :2] < BLOCK_M)).all(axis=1)
        points, files, places = points[own], files[own], places[own]
        keys, of_point = np.unique(keys_of(points, CELL_M), return_inverse=True)
        of_point = of_point.reshape(-1)
        count = np.maximum(np.bincount(of_point, minlength=len(keys)), 1)
        means = np.stack([np.bincount(of_point, points[:, k], len(keys)) / count for k in range(3)], axis=1)
        scans = [self._measured(voter, corner) for voter in voters]
        news = [self._new_points(one, known) for one in scans]
        new_keys, times = np.unique(np.concatenate([np.unique(one_keys) for _, one_keys in news]), return_counts=True)
        new_keys = new_keys[times >= LEAST_SEEN]  # the others never stay
        cells = np.concatenate([means, _centers(new_keys, self._prior.spacing_m)])
        block = Block(corner, files, places, of_point, cells, len(means), new_keys)
        for voter, one, new in zip(voters, scans, news):
            self._count(block, voter, np.unique(keys_of(one, NEAR_M)), *new)
        return block

    def _measured(self, voter: Voter, corner: np.ndarray) -> np.ndarray:
        """Points of a scan relative to the corner, as far as it may vote."""
        points = self._store[voter.key].astype(np.float64)
        points = points[(points ** 2).sum(axis=1) < reach_m(voter) ** 2]
        measured: np.ndarray = se3.apply(voter.T_map_sensor, points) - corner
        return measured

    def _new_points(self, points: np.ndarray, known: np.ndarray) -> "tuple[np.ndarray, np.ndarray]":
        """Points of a scan in the block where the map has none, and their cells."""
        points = points[((points[:, :2] >= 0) & (points[:, :2] < BLOCK_M)).all(axis=1)]
        points = np.asarray(points[~is_in(keys_of(points, NEAR_M), known)])
        return points, keys_of(points, self._prior.spacing_m)

    def _count(self, block: Block, voter: Voter, scan_keys: np.ndarray, new_points: np.ndarray, new_keys: np.ndarray) -> None:
        """The votes of one scan. scan_keys: cells of NEAR_M that it has measured."""
        cells, n = block.cells + block.corner, block.mapped
        votes, bit = block.votes.setdefault(voter.part, Votes.none(len(cells))), _place_bit(voter.T_map_sensor)
        near = np.flatnonzero(((cells - voter.T_map_sensor[:3, 3]) ** 2).sum(axis=1) < reach_m(voter) ** 2)
        rays, of_cells = self._rays(voter), se3.apply(se3.inverse(voter.T_map_sensor), cells[near])
        through, measured = rays.judge(of_cells)
        mapped_through = np.flatnonzero(through & (near < n))  # new cells are kept out by less
        through[mapped_through] = rays.passed(of_cells[mapped_through])
        votes.through[near] += through
        votes.measured[near] += measured
        votes.through_places[near[through]] |= bit
        is_seen = np.zeros(len(cells), bool)
        mapped = near[near < n]
        is_seen[mapped] = is_in(keys_of(block.cells[mapped], NEAR_M), scan_keys)
        is_kept = is_in(new_keys, block.new_keys)
        at = n + np.searchsorted(block.new_keys, new_keys[is_kept])
        is_seen[at] = True
        np.add.at(votes.sums, at, np.round(new_points[is_kept] / UNIT_M).astype(np.int64))
        np.add.at(votes.points, at, 1)
        votes.seen += is_seen
        votes.seen_places[is_seen] |= bit


def _decide(block: Block, votes: Votes, stands: np.ndarray, prior: PriorMap, into: "dict[int, list[Change]]") -> None:
    """Adds what the votes change to the changes of each file."""
    gone = leaves(votes)[:block.mapped][block.of_point] if len(block.of_point) else np.zeros(0, bool)
    at = block.mapped + np.flatnonzero(stays(votes, stands)[block.mapped:])
    added = votes.sums[at] / votes.points[at, None] * UNIT_M + block.corner
    home = prior.home_of(added) if len(added) else np.zeros(0, np.int64)
    for number in sorted(set(block.files[gone].tolist()) | set(home.tolist())):
        into.setdefault(number, []).append(Change(block.places[gone & (block.files == number)], added[home == number]))


def count_votes(prior: PriorMap, store: CloudStore, voters: "list[Voter]", subsets: "dict[int, set[int]]",
                progress: Callable[[float], None]) -> "tuple[dict[int, dict[int, Change]], Tally]":
    """Changes of each file for each subset of the parts, by its number; and what the cells of the map are by the votes of all."""
    ballot, tally = Ballot(prior, store, voters), Tally()
    found: "dict[int, dict[int, list[Change]]]" = {number: {} for number in subsets}
    blocks = ballot.blocks()
    for done, number in enumerate(blocks):
        block = ballot.judge(number)
        progress((done + 1) / len(blocks))
        if block is None:
            continue
        for name, parts in subsets.items():
            votes, stands = block.merged(parts)
            _decide(block, votes, stands, prior, found[name])
            if name == ALL:
                tally.add(block, votes, stands)
    return {name: {number: _joined(changes, prior, number) for number, changes in of.items()} for name, of in found.items()}, tally


def _joined(changes: "list[Change]", prior: PriorMap, number: int) -> Change:
    """Joins the changes of a file into one: removed places ascending, added points in the order of the blocks."""
    of = prior.files[number]
    removed: np.ndarray = np.sort(np.concatenate([one.removed for one in changes]))
    return Change(removed, np.concatenate([one.added_m for one in changes]), of.points, of.checksum)
