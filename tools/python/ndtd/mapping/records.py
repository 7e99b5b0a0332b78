"""Stages of a build as records of its work state, and back."""
from typing import Any, Optional

import numpy as np

from .cloud_store import CloudStore
from .loops import Closing, Loop
from .positions import Fixes
from .ranges import Offset
from .refine import Refinement
from .trajectory import Trajectory
from .work_state import WorkState

COLUMNS = ("stamps_ns", "reference_ns", "at_stamp", "reference", "located", "degenerate", "fit", "segment")


def save_trajectory(state: WorkState, number: int, one: Trajectory, first: int, store: CloudStore) -> None:
    """The odometry of drive `number`, whose nodes begin at `first`, and where its points lie."""
    scans = [scan for scan in store.scans() if scan >= first]
    places = np.array([store.place(scan) for scan in scans], np.int64).reshape(-1, 2)
    state.save(f"odometry{number}", **{name: getattr(one, name) for name in COLUMNS}, reasons=np.array(one.reasons, np.str_),
               fix_ns=np.array(one.fixes.stamps_ns, np.int64), fix_m=np.array(one.fixes.position_m, np.float64).reshape(-1, 3),
               fix_deviation_m=np.array(one.fixes.deviation_m, np.float64).reshape(-1, 3), antenna=np.array(one.fixes.antenna),
               scans=np.array(scans, np.int64), places=places, clouds_end=np.int64(store.end), clouds_crc=np.int64(store.crc))


def load_trajectory(state: WorkState, number: int, store: CloudStore) -> Optional[Trajectory]:
    """Loads a trajectory from its record, and its points in the store; None: odometry has not run."""
    found = state.load(f"odometry{number}")
    if found is None:
        return None
    store.restore(found["scans"].tolist(), found["places"], int(found["clouds_end"]), int(found["clouds_crc"]))
    fixes = Fixes(found["fix_ns"].tolist(), list(found["fix_m"]), list(found["fix_deviation_m"]), str(found["antenna"]))
    return Trajectory(*(found[name] for name in COLUMNS), [str(reason) for reason in found["reasons"]], fixes)


def save_offset(state: WorkState, number: int, found: Optional[Offset]) -> None:
    """Saves the offset of the ranges of drive `number`; None: it does not tell it."""
    state.save(f"ranges{number}", told=np.array([] if found is None else [found.offset_m, found.deviation_m, found.scans], np.float64))


def load_offset(state: WorkState, number: int) -> "tuple[bool, Optional[Offset]]":
    """Whether there is a record of save_offset(), and the offset."""
    found = state.load(f"ranges{number}")
    if found is None or len(found["told"]) == 0:
        return found is not None, None
    return True, Offset(float(found["told"][0]), float(found["told"][1]), int(found["told"][2]))


def save_refinement(state: WorkState, poses: np.ndarray, done: Refinement) -> None:
    """The poses after the refinement, and what it has done."""
    state.save("refined", poses=poses, held_out_m=np.array(done.held_out_m), rounds=np.int64(done.rounds), thickness_m=np.array([done.before_m, done.after_m]))


def load_refinement(state: WorkState) -> "Optional[tuple[np.ndarray, Refinement]]":
    """What save_refinement() has saved; None: it has not run."""
    found = state.load("refined")
    if found is None:
        return None
    before_m, after_m = found["thickness_m"].tolist()
    return found["poses"], Refinement(found["held_out_m"].tolist(), int(found["rounds"]), before_m, after_m)


def save_moved(state: WorkState, moved: "dict[int, np.ndarray]") -> None:
    """Saves the flags of the moving points of each scan."""
    flags = [moved[scan] for scan in moved]
    state.save("moved", scans=np.array(list(moved), np.int64), counts=np.array([len(one) for one in flags], np.int64),
               bits=np.packbits(np.concatenate(flags) if flags else np.empty(0, bool)))


def load_moved(state: WorkState) -> "Optional[dict[int, np.ndarray]]":
    """Loads the flags of save_moved(); None: the cleaning has not run."""
    found = state.load("moved")
    if found is None:
        return None
    flags = np.unpackbits(found["bits"], count=int(found["counts"].sum())).astype(bool)
    return dict(zip(found["scans"].tolist(), np.split(flags, np.cumsum(found["counts"])[:-1])))


def _arrays(loops: "list[Loop]") -> "dict[str, np.ndarray]":
    count = len(loops)
    return {"pair": np.array([loop.pair for loop in loops], np.int64).reshape(count, 2),
            "begin": np.array([loop.begin for loop in loops], np.int64), "end": np.array([loop.end for loop in loops], np.int64),
            "T": np.array([loop.T for loop in loops], np.float64).reshape(count, 4, 4),
            "covariance": np.array([loop.covariance for loop in loops], np.float64).reshape(count, 6, 6),
            "fit": np.array([loop.fit for loop in loops], np.float64), "searched": np.array([loop.searched for loop in loops], bool)}


def save_loops(state: WorkState, mapped: Any, closing: Closing) -> None:
    """Saves the progress of the search for loops, with the poses that it goes on from."""
    state.save("loops", round=np.int64(closing.round), later=np.int64(closing.later), accepted=np.int64(len(mapped.loops)),
               tried=np.array(sorted(closing.tried), np.int64).reshape(-1, 2), poses=mapped.poses, believed=np.array(mapped.believed, bool),
               **_arrays(mapped.loops + closing.found))


def load_loops(state: WorkState, mapped: Any) -> Closing:
    """Sets loops and poses as the record has them; without one the search begins."""
    found = state.load("loops")
    if found is None:
        return Closing()
    loops = [Loop((int(pair[0]), int(pair[1])), int(begin), int(end), T, covariance, float(fit), bool(searched))
             for pair, begin, end, T, covariance, fit, searched in zip(found["pair"], found["begin"], found["end"], found["T"],
                                                                       found["covariance"], found["fit"], found["searched"])]
    accepted = int(found["accepted"])
    mapped.loops, mapped.poses = loops[:accepted], found["poses"]
    mapped.believed = [bool(one) for one in found["believed"]]
    return Closing(int(found["round"]), int(found["later"]), {(int(a), int(b)) for a, b in found["tried"]}, loops[accepted:])
