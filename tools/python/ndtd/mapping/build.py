"""The stages of ndt-map build, in their order, from recordings to a map."""
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import numpy as np

from .._progress import Progress
from . import checks, clean, given, graph, loops, positions, ranges, records, refine, se3, submaps, trajectory
from .cloud_store import CloudStore
from .drive import Drive, MappingError, open_drive
from .work_state import WorkState

ODOMETRY_M, ODOMETRY_RAD = 0.02, np.deg2rad(0.09)  # deviations from scan to scan
UNKNOWN_M, UNKNOWN_RAD = 1.0, np.deg2rad(10)  # where a pose was lost or is a guess
DEGENERATE_M, DEGENERATE_RAD = 0.3, np.deg2rad(0.5)  # where a scan tells the turn, but not the way along one direction
LOOP_ROUNDS = 3
MOST_LOST_PART = 0.1  # of a drive, that is left out because nothing tells where it was
WRONG_WEIGHT = 0.1  # a loop that the kernel weighs less than this is not believed
MOST_BENT = 5.0  # deviations: right loops bend no step of odometry by more than 3.4, wrong ones a single step by 18


@dataclass
class Mapped:
    """All drives: nodes are their scans one after the other."""

    drives: "list[Drive]"
    trajectories: "list[trajectory.Trajectory]"
    firsts: "list[int]"  # node of the first scan of each drive
    odometry: np.ndarray  # (N, 4, 4) reference poses as odometry has them
    poses: np.ndarray = field(default_factory=lambda: np.empty((0, 4, 4)))  # and as they are in the map
    loops: "list[loops.Loop]" = field(default_factory=list)
    believed: "list[bool]" = field(default_factory=list)
    submaps: "list[submaps.Submap]" = field(default_factory=list)
    positions: Optional[graph.Positions] = None  # of the GNSS
    refinement: Optional[refine.Refinement] = None
    offsets: "list[Optional[ranges.Offset]]" = field(default_factory=list)  # of the ranges of each drive; None: it does not tell

    def believed_loops(self) -> "list[loops.Loop]":
        """The loops that the kernel believes."""
        return [loop for loop, is_believed in zip(self.loops, self.believed) if is_believed]

    def at_stamps(self, number: int) -> np.ndarray:
        """Poses of the scans of a drive at their stamps."""
        of, first = self.trajectories[number], self.firsts[number]
        poses: np.ndarray = self.poses[first:first + len(of.stamps_ns)] @ se3.inverse(of.reference) @ of.at_stamp
        return poses


def _find_offsets(drives: "list[Drive]", options: Any, state: WorkState) -> "list[Optional[ranges.Offset]]":
    """Sets the offsets of the ranges: the one that is given, or what the drives tell; drives with one sensor have one. With given poses
    there is nothing to correct for."""
    found: "list[Optional[ranges.Offset]]" = [None] * len(drives)
    for number, drive in enumerate(drives if options.range_offset is None and options.poses is None else []):
        is_known, found[number] = records.load_offset(state, number)
        if not is_known:
            with Progress(f"ranges of {Path(drive.name).name}", options.quiet) as progress:
                found[number] = ranges.find(drive, options, progress.update)
            records.save_offset(state, number, found[number])
    for drive in drives:
        told = ranges.pooled([one for other, one in zip(drives, found) if other.frame_id == drive.frame_id])
        drive.range_offset_m = options.range_offset or (told.correction_m if told else 0.0)
    return found


def _odometry_of(drive: Drive, number: int, first: int, store: CloudStore, options: Any, state: WorkState) -> trajectory.Trajectory:
    """The odometry of one drive, from the work state where it has run already."""
    one = records.load_trajectory(state, number, store)
    if one is None:
        with Progress(f"odometry of {Path(drive.name).name}", options.quiet) as progress:
            one = trajectory.run(drive, store, first, options, progress.update)
        store.flush()
        records.save_trajectory(state, number, one, first, store)
    return one


def run_odometry(drives: "list[Drive]", store: CloudStore, options: Any, state: WorkState) -> Mapped:
    """The odometry of all drives; MappingError where one cannot be mapped."""
    found: "list[trajectory.Trajectory]" = []
    firsts, count = [], 0
    offsets = _find_offsets(drives, options, state)
    for number, drive in enumerate(drives):
        one = _odometry_of(drive, number, count, store, options, state)
        if options.poses is None:
            checks.check(drive, one)
        found.append(one)
        firsts.append(count)
        count += len(one.stamps_ns)
    mapped = Mapped(drives, found, firsts, np.concatenate([one.reference for one in found]), offsets=offsets)
    mapped.poses = mapped.odometry.copy()
    return mapped


def use_given(mapped: Mapped, path: Any) -> None:
    """Replaces what odometry found by poses that were given."""
    stamps_ns, T = given.read_tum(path)
    for number, one in enumerate(mapped.trajectories):
        first = mapped.firsts[number]
        one.reference = given.at(stamps_ns, T, one.reference_ns, path)
        one.at_stamp = given.at(stamps_ns, T, one.stamps_ns, path)
        mapped.odometry[first:first + len(one.stamps_ns)] = one.reference
    mapped.poses = mapped.odometry.copy()


def chain_of(mapped: Mapped) -> graph.Edges:
    """Odometry from scan to scan."""
    begins, moves, turns = [], [], []
    for one, first in zip(mapped.trajectories, mapped.firsts):
        is_guess = ~one.located | one.jumps
        is_guess[1:] |= one.segment[1:] != one.segment[:-1]
        begins.append(np.arange(first, first + len(one.stamps_ns) - 1))
        moves.append(np.select([is_guess, one.degenerate], [UNKNOWN_M, DEGENERATE_M], ODOMETRY_M)[1:])
        turns.append(np.select([is_guess, one.degenerate], [UNKNOWN_RAD, DEGENERATE_RAD], ODOMETRY_RAD)[1:])
    begin = np.concatenate(begins)
    T = se3.inverse(mapped.odometry[begin]) @ mapped.odometry[begin + 1]
    return graph.Edges(begin, begin + 1, T, graph.diagonal_root(np.concatenate(moves), np.concatenate(turns)))


def _has_positions(mapped: Mapped, number: int) -> bool:
    first = mapped.firsts[number]
    last = first + len(mapped.trajectories[number].stamps_ns)
    return mapped.positions is not None and bool(((mapped.positions.node >= first) & (mapped.positions.node < last)).any())


def _attach(mapped: Mapped, number: int, found: "list[loops.Loop]") -> None:
    """Moves a drive as a whole to where its loops with earlier drives have most of it."""
    first = mapped.firsts[number]
    last = first + len(mapped.trajectories[number].stamps_ns)
    between = [loop for loop in found if first <= loop.end < last and loop.begin < first]
    if not between:
        raise MappingError(f"{mapped.drives[number].name}: no place of it was found in the drives before: they do not overlap, or too little; "
                           "a recording that begins where another one was helps")
    moves = np.array([mapped.poses[loop.begin] @ loop.T @ se3.inverse(mapped.poses[loop.end]) for loop in between])
    ends = np.array([mapped.poses[loop.end][:3, 3] for loop in between])
    placed = np.einsum("aij,bj->abi", moves[:, :3, :3], ends) + moves[:, None, :3, 3]  # every end by every move
    own = placed[np.arange(len(between)), np.arange(len(between))]
    off = np.linalg.norm(placed - own, axis=2)
    best = int(np.argmin(np.median(off, axis=1)))
    mapped.poses[first:last] = moves[best] @ mapped.poses[first:last]


def use_gnss(mapped: Mapped) -> None:
    """Places the first drive by its GNSS, and keeps the positions of all drives for the graph."""
    found = []
    for drive, one, first in zip(mapped.drives, mapped.trajectories, mapped.firsts):
        antenna_m = drive.transforms.get(one.fixes.antenna, np.eye(4))[:3, 3]
        of_drive = positions.at_scans(one.fixes, one, first, antenna_m)
        if of_drive is not None:
            found.append(of_drive)
            last = first + len(one.stamps_ns)
            mapped.poses[first:last] = positions.placement(of_drive, mapped.poses) @ mapped.poses[first:last]
        elif first == 0:
            return
    mapped.positions = graph.Positions(*(np.concatenate([getattr(one, name) for one in found])
                                         for name in ("node", "position_m", "deviation_m", "antenna_m")))


def close_loops(mapped: Mapped, store: CloudStore, options: Any, state: WorkState) -> None:
    """Finds loops and distributes what they contradict, until there are no more."""
    maps = submaps.SubmapMaps(store, mapped.odometry, mapped.submaps, options.threads)
    finder = loops.LoopFinder(maps, mapped.submaps, mapped.odometry)
    closing = records.load_loops(state, mapped)
    chain = chain_of(mapped)
    while closing.round < LOOP_ROUNDS:
        with Progress(f"loops, round {closing.round + 1}", options.quiet) as progress:

            def update(part: float, shown: Progress = progress) -> None:
                shown.update(part)
                if state.is_due():
                    records.save_loops(state, mapped, closing)

            loops.find(finder, mapped.submaps, mapped.poses, mapped.believed_loops(), closing, update)
        _end_round(mapped, closing, chain)
        records.save_loops(state, mapped, closing)
    check_bent(mapped, chain)
    for number in range(1, len(mapped.drives)):
        if not _is_attached(mapped, number):
            raise MappingError(f"{mapped.drives[number].name}: its loops with the drives before contradict each other")


def check_bent(mapped: Mapped, chain: graph.Edges) -> None:
    """MappingError where loops demand another motion between two scans than odometry can have missed: either may be wrong."""
    bent = np.abs(chain.residuals(mapped.poses)).max(axis=1, initial=0.0)
    worst = int(np.argmax(bent)) if len(bent) else 0
    if not any(mapped.believed) or bent[worst] <= MOST_BENT:
        return
    number = int(np.searchsorted(mapped.firsts, chain.begin[worst], side="right")) - 1
    one, drive = mapped.trajectories[number], mapped.drives[number]
    at_s = (one.stamps_ns[chain.begin[worst] - mapped.firsts[number]] - one.stamps_ns[0]) * 1e-9
    others, remedy = "loops", "--no-loops leaves loops out; "
    if mapped.positions is not None:
        others, remedy = "loops or GNSS", "--no-loops and --no-gnss leave them out; "
    if len(mapped.drives) > 1:  # only loops hold several drives together
        remedy = ""
    raise MappingError(f"{drive.name}: after {at_s:.1f} s odometry and {others} contradict each other: places that look alike were taken for "
                       f"one another; {remedy}more scans per second, an IMU or wheel odometry in the recording help")


def _end_round(mapped: Mapped, closing: loops.Closing, chain: graph.Edges) -> None:
    """Takes over the loops that a round has found; the last round is one without."""
    if closing.round == 0:
        for drive in range(1, len(mapped.drives)):
            if not _has_positions(mapped, drive):
                _attach(mapped, drive, closing.found)
    mapped.loops += closing.found
    is_last = not closing.found and (closing.round > 0 or mapped.positions is None)
    closing.next_round()
    if is_last:
        closing.round = LOOP_ROUNDS
    else:
        solve(mapped, chain)


def _is_attached(mapped: Mapped, number: int) -> bool:
    """Whether GNSS or a loop that is believed ties a drive to those before."""
    first = mapped.firsts[number]
    return _has_positions(mapped, number) or any(loop.begin < first <= loop.end and is_believed
                                                 for loop, is_believed in zip(mapped.loops, mapped.believed))


def solve(mapped: Mapped, chain: graph.Edges) -> None:
    """The pose graph of all that is known; loops that are not believed do not pull at it in the end."""
    closing = loops.edges(mapped.loops)
    mapped.poses = graph.solve(mapped.poses, [chain] + ([closing] if closing else []), mapped.positions)
    weights = graph.cauchy_weights(closing.residuals(mapped.poses)) if closing else np.empty(0)
    mapped.believed = [bool(weight >= WRONG_WEIGHT) for weight in weights]
    if not all(mapped.believed) and all(_is_attached(mapped, drive) for drive in range(1, len(mapped.drives))):
        closing = loops.edges(mapped.believed_loops())
        mapped.poses = graph.solve(mapped.poses, [chain] + ([closing] if closing else []), mapped.positions, graph.KERNELS[-1:])


def _is_connected(mapped: Mapped, nodes: "set[int]", others: "set[int]") -> bool:
    """Whether an accepted loop leads from one part to another, or a position holds it."""
    if mapped.positions is not None and nodes & set(mapped.positions.node.tolist()):
        return True
    return any(is_believed and ((loop.begin in others and loop.end in nodes) or (loop.begin in nodes and loop.end in others))
               for loop, is_believed in zip(mapped.loops, mapped.believed))


def leave_out_lost(mapped: Mapped, store: CloudStore) -> None:
    """Leaves out scans after a loss of the pose, unless loops or positions tell where they were."""
    for drive, one, first in zip(mapped.drives, mapped.trajectories, mapped.firsts):
        known = set(range(first)) | {first + k for k in np.flatnonzero(one.segment == one.segment[0]).tolist()}
        for segment in range(int(one.segment[0]) + 1, int(one.segment[-1]) + 1):
            nodes = {first + k for k in np.flatnonzero(one.segment == segment).tolist()}
            if _is_connected(mapped, nodes, known):
                known |= nodes
            elif len(nodes) > MOST_LOST_PART * len(one.segment):
                at_s = (one.stamps_ns[min(nodes) - first] - one.stamps_ns[0]) * 1e-9
                raise MappingError(f"{drive.name}: the pose was lost before {at_s:.1f} s, and nothing tells where the {len(nodes)} scans from "
                                   "there on were; a part of the recording without this place, more scans per second, an IMU or wheel "
                                   "odometry help")
            for node in nodes - known:
                store.discard(node)


def _refine(mapped: Mapped, store: CloudStore, options: Any, state: WorkState) -> None:
    """The refinement, from the work state where it is done already."""
    known = records.load_refinement(state)
    if known is not None:
        mapped.poses, mapped.refinement = known
        return
    closing = loops.edges(mapped.believed_loops())
    with Progress("refinement", options.quiet) as progress:
        mapped.refinement = refine.refine(mapped, [chain_of(mapped)] + ([closing] if closing else []), store, options.threads, progress.update)
    records.save_refinement(state, mapped.poses, mapped.refinement)


def _clean(mapped: Mapped, store: CloudStore, options: Any, state: WorkState) -> None:
    """Leaves out what moved, as the work state has it where it is known already."""
    moved = records.load_moved(state)
    if moved is None:
        with Progress("cleaning", options.quiet) as progress:
            moved = clean.find(mapped, store, options.voxel, progress.update)
        records.save_moved(state, moved)
    for scan, is_moved in moved.items():
        store.leave_out(scan, is_moved)


def _find_poses(mapped: Mapped, store: CloudStore, options: Any, state: WorkState) -> None:
    """Loops, positions and refinement."""
    for number, one in enumerate(mapped.trajectories):
        mapped.submaps += submaps.split(number, mapped.firsts[number], one, store)
    if options.gnss:
        use_gnss(mapped)
    if options.loops or len(mapped.drives) > 1:
        close_loops(mapped, store, options, state)
    elif mapped.positions is not None:
        solve(mapped, chain_of(mapped))
    leave_out_lost(mapped, store)
    if options.refine:
        _refine(mapped, store, options, state)


def build(recordings: "list[str]", state: WorkState, store: CloudStore, options: Any) -> Mapped:
    """All stages until the poses; the cloud follows from them and what is left out. What the work state has is not done again."""
    drives = [open_drive(recording, state.folder, number, options) for number, recording in enumerate(recordings)]
    mapped = run_odometry(drives, store, options, state)
    if options.poses is not None:
        use_given(mapped, options.poses)
    else:
        _find_poses(mapped, store, options, state)
    if options.clean:
        _clean(mapped, store, options, state)
    return mapped
