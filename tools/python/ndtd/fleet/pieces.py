"""Long bags in pieces: where they are cut, and how the trajectories of the pieces become one.

    piece 0                    first = keep ................ end
    piece 1                              first ... keep ................ end        scans of the bag
                                         (warm-up)

A piece begins some scans early, as it has to find its pose (ground truth, GNSS, or search: `ndtd --skip`) and its velocity. The warm-up
is dropped. Its last scans are in the piece before, too: where both tell the same there, the estimators are in the same state, and go on
alike. Where they do not, the pieces are replayed as one.
"""
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from .._extras import need
from ..report.pose_errors import between, rotation_vector

POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")  # columns of SCANS
WARM_UP_SCANS = 20  # at least
LEAST_SCANS = 20  # of a piece, without its warm-up
SEAM_SCANS = 5  # the last ones of the warm-up, which are compared
SEAM_M, SEAM_DEG = 0.02, 0.1  # as far as poses of both pieces may be apart there
# Settings of all pieces but the first, which begin with the true pose, or search: a pose in the configuration is that of the bag's begin.
START = ("initial_pose.mode=auto", "initial_pose.pose=[]")
_PAUSE_S = 10.0  # a longer one between two scans counts as this
_GAP_STEPS = 2.0  # usual steps of time between scans; a longer one is a gap
_NEAR = 0.25  # of a piece: as far from its place a cut may move to a gap


# ---- where


def plan(times_ns: np.ndarray, piece_s: float, warm_up_s: float) -> "tuple[tuple[int, int, int], ...]":
    """The pieces of a bag whose scans were received at these times: about piece_s each, cut at the largest gap near by.

    piece_s = 0, or a bag of at most one and a half pieces: one piece."""
    count = len(times_ns)
    clock_s, step_s = _clock(times_ns)
    number = int(min(clock_s[-1] / piece_s + 0.5, count // LEAST_SCANS)) if piece_s > 0 and count else 1
    pieces, keep = [], 0
    for wanted_s in clock_s[-1] / max(number, 1) * np.arange(1, number):
        cut = _cut(clock_s, step_s, float(wanted_s), float(clock_s[-1]) / number * _NEAR)
        if min(cut - keep, count - cut) >= LEAST_SCANS:
            pieces.append((_first(clock_s, keep, warm_up_s), keep, cut))
            keep = cut
    return (*pieces, (_first(clock_s, keep, warm_up_s), keep, count))


def _clock(times_ns: np.ndarray) -> "tuple[np.ndarray, np.ndarray]":
    """Seconds of work at each scan, and the step to it from the one before: pauses count little, and time never goes back."""
    step_s = np.diff(times_ns.astype(np.float64), prepend=times_ns[:1].astype(np.float64)) * 1e-9
    step_s = np.clip(step_s, 0.0, _PAUSE_S)
    return np.cumsum(step_s), step_s


def _cut(clock_s: np.ndarray, step_s: np.ndarray, wanted_s: float, near_s: float) -> int:
    """The scan that follows the largest gap near a time; without a gap the scan at that time."""
    begin, at, end = np.searchsorted(clock_s, (wanted_s - near_s, wanted_s, wanted_s + near_s))
    usual_s = float(np.median(step_s[1:]))
    if begin < end:
        largest = int(begin + np.argmax(step_s[begin:end]))
        if step_s[largest] > _GAP_STEPS * usual_s:
            return largest
    return int(at)


def _first(clock_s: np.ndarray, keep: int, warm_up_s: float) -> int:
    """First scan of the warm-up: its seconds end with the scan before `keep`, so that a gap there is none of them."""
    if keep == 0:
        return 0
    begin = int(np.searchsorted(clock_s, clock_s[keep - 1] - warm_up_s))
    return max(min(begin, keep - WARM_UP_SCANS), 0)


# ---- together again


@dataclass(frozen=True)
class _Part:
    """Rows that were replayed of the scans from `first` to `end`, of which those from `keep` on count."""

    first: int
    keep: int
    end: int
    rows: Any  # Table SCANS: one row for each scan; fewer where the bag is damaged, none where it could not begin there
    pieces: int = 1


def join(pieces: "Iterable[Sequence[int]]", load: "Callable[[int], Any]",
         replay: "Callable[[int, int, int], Any]") -> "tuple[Any, int]":
    """The rows of a bag from those of its pieces, and how many of their seams do not hold.

    load(number): the rows of a piece with its warm-up, in the order of the bag; None: it could not begin there. replay(first, keep,
    end): the rows of all scans from `first` to `end`; called for pieces whose seam does not hold, together with the one before, and
    for the whole bag where a seam does not hold then either. Where a piece ends early the bag is damaged: it ends there, as it does
    for a replay of the whole. What both raise is passed on."""
    parts = _up_to_damage([_Part(first, keep, end, load(number)) for number, (first, keep, end) in enumerate(pieces)])
    for together in (_groups, _whole):
        groups = together(parts)
        if all(len(group) == 1 for group in groups):
            break
        parts = _up_to_damage([_replayed(group, replay) for group in groups])
    return _concatenated([part.rows.slice(part.keep - part.first) for part in parts]), sum(part.pieces - 1 for part in parts)


def _up_to_damage(parts: "list[_Part]") -> "list[_Part]":
    for number, part in enumerate(parts):
        if part.rows is not None and 0 < len(part.rows) < part.end - part.first:
            return parts[:number + 1]
    return parts


def _groups(parts: "list[_Part]") -> "list[list[_Part]]":
    """Parts that have to be replayed as one."""
    groups = [parts[:1]]
    for before, part in zip(parts, parts[1:]):
        if _holds(before, part):
            groups.append([part])
        else:
            groups[-1].append(part)
    return groups


def _whole(parts: "list[_Part]") -> "list[list[_Part]]":
    """All as one, unless all seams hold."""
    groups = _groups(parts)
    return groups if len(groups) == len(parts) else [parts]


def _replayed(group: "list[_Part]", replay: "Callable[[int, int, int], Any]") -> _Part:
    if len(group) == 1:
        return group[0]
    first, keep, end = group[0].first, group[0].keep, group[-1].end
    return _Part(first, keep, end, replay(first, keep, end), sum(part.pieces for part in group))


def _holds(before: _Part, part: _Part) -> bool:
    """Whether both tell the same just before the seam: in the last scan, and in most of the ones compared, of which one is trusted.

    A scan that hardly converges ends elsewhere after the least change, and the next one not: it alone removes no seam."""
    if not before.rows or not part.rows or len(before.rows) < before.end - before.first:
        return False
    size = min(SEAM_SCANS, part.keep - part.first)
    a = before.rows.slice(before.end - before.first - size)
    b = part.rows.slice(part.keep - part.first - size, size)
    if len(b) < size or any(a[name].to_pylist() != b[name].to_pylist() for name in ("seq", "stamp_ns")):
        return False
    off_m, off_deg = differences_of(a, b)
    is_same = ((off_m <= SEAM_M) & (off_deg <= SEAM_DEG)) | (np.isnan(_poses(a)[:, 0]) & np.isnan(_poses(b)[:, 0]))
    for name in ("outcome", "state"):
        is_same &= [x == y for x, y in zip(a[name].to_pylist(), b[name].to_pylist())]
    is_trusted = a["trusted"].to_numpy() & b["trusted"].to_numpy()
    return bool(is_same[-1] and is_same.sum() > size / 2 and (is_same & is_trusted).any())


def differences_of(a: Any, b: Any) -> "tuple[np.ndarray, np.ndarray]":
    """Distances between the poses of two tables of the same scans: [m], [deg]; NaN where one has none."""
    step = between(_poses(a), _poses(b))
    return np.linalg.norm(step[:, :3], axis=1), np.degrees(np.linalg.norm(rotation_vector(step[:, 3:]), axis=1))


def _poses(table: Any) -> np.ndarray:
    """(N, 7); NaN: none."""
    return np.stack([np.asarray(table[name].to_numpy(), np.float64) for name in POSE], axis=1)


def _concatenated(tables: "list[Any]") -> Any:
    return need("pyarrow", "fleet").concat_tables(tables).unify_dictionaries().combine_chunks()


# ---- hash

# As ndt_hash64() in ndt/hash.h, of one row after the other as in src/replay/reference_trajectory.c
_START, _BITS = 0x6E64746400000001, (1 << 64) - 1
_NO_POSE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
_OUTCOMES = {name: number for number, name in enumerate((  # enum ndt_outcome
    "converged", "iteration_limit", "deadline", "dropped", "rejected", "low_score", "degenerate", "no_map", "no_guess", "off_map", "lost",
    "merged"))}


def trajectory_hash(table: Any) -> str:
    """The trajectory hash that ndtd prints for these rows, 16 digits.

    Of pieces that were joined it differs from that of the whole bag, as do the last bits of their poses."""
    poses = _poses(table)
    poses[np.isnan(poses[:, 0])] = _NO_POSE
    rows = np.empty((len(table), 3 + len(POSE)), np.uint64)
    rows[:, 0] = table["seq"].to_numpy().astype(np.uint64)
    rows[:, 1] = table["stamp_ns"].to_numpy().astype(np.uint64)
    rows[:, 2] = [_OUTCOMES.get(name, len(_OUTCOMES)) for name in table["outcome"].to_pylist()]
    rows[:, 3:] = poses.view(np.uint64)
    found = _START
    for row in rows.tolist():
        found = _hash64(row, found)
    return f"{found:016x}"


def _hash64(words: "list[int]", seed: int) -> int:
    lanes = [seed, seed + 1 & _BITS, seed + 2 & _BITS, seed + 3 & _BITS]
    for number, word in enumerate(words):
        lanes[number & 3] = _mixed(lanes[number & 3], word)
    found = 8 * len(words)
    for lane in lanes:
        found = _mixed(found, _finished(lane))
    return _finished(found)


def _mixed(state: int, word: int) -> int:
    state = (state ^ word) * 0x9E3779B97F4A7C15 & _BITS
    return (state << 29 | state >> 35) + 0x632BE59BD9B4E019 & _BITS


def _finished(value: int) -> int:
    value = (value ^ value >> 32) * 0xD6E8FEB86659FD93 & _BITS
    value = (value ^ value >> 32) * 0xD6E8FEB86659FD93 & _BITS
    return value ^ value >> 32
