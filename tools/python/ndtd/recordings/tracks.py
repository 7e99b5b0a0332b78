"""Streams of a folder: each has stamps, and reads one message by its number; folders merge them in the order of their stamps."""
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Optional

import numpy as np

from .messages import MOST_STAMP_NS, Raw, RecordingError, Topic, Transform

KINDS_FIRST = ("truth", "odometry", "imu", "gnss", "scan")  # of one stamp


@dataclass
class Track:
    """A topic with its stamps [ns]; read(number, stamp_ns) makes a message, size(number) tells how many bytes it took."""

    topic: Topic
    stamps: np.ndarray  # int64
    read: Callable
    size: Callable[[int], int] = lambda number: 128


def stamps_ns(stamps: Iterable[int]) -> np.ndarray:
    """Whole numbers of any size as int64: beyond the limit, where ndtd refuses them, it does not matter by how much."""
    most = MOST_STAMP_NS + 1
    return np.array([max(-most, min(int(stamp), most)) for stamp in stamps], np.int64)


def table_track(name: str, kinds: tuple, stamps: np.ndarray, read: Callable) -> Track:
    """The track of a table, a row per message."""
    return Track(Topic(name, "table", len(stamps), kinds=kinds), stamps, read)


def static_track(places: Dict[str, np.ndarray]) -> Track:
    """Where the sensors are on the vehicle, once; places: T_base_sensor of frames."""
    transforms = [Transform(0, "base_link", frame, pose) for frame, pose in places.items()]
    return Track(Topic("tf_static", "table", 1, kinds=("tf",)), np.zeros(1, np.int64), lambda number, stamp_ns: transforms)


def _messages(track, number, stamp_ns):
    message = track.read(number, stamp_ns)
    return message if isinstance(message, list) else [message]


def merged(tracks: List[Track], wanted: list, start_ns: Optional[int]) -> Iterator[Raw]:
    """The messages of topics in the order of their stamps, from start_ns on; transforms come first."""
    chosen = [track for track in tracks if track.topic in wanted]
    for track in chosen:
        if track.topic.kind == "tf":
            yield Raw(track.topic, 0, 0, partial(_messages, track, 0, 0))
    chosen = [track for track in chosen if track.topic.kind != "tf"]
    if not chosen:
        return
    stamps = np.concatenate([track.stamps for track in chosen])
    owner = np.concatenate([np.full(len(track.stamps), at, np.int32) for at, track in enumerate(chosen)])
    number = np.concatenate([np.arange(len(track.stamps)) for track in chosen])
    rank = np.array([KINDS_FIRST.index(track.topic.kinds[0]) for track in chosen])[owner]
    order = np.lexsort((number, rank, stamps))
    if start_ns is not None:
        order = order[stamps[order] >= start_ns]
    for at in order:
        track, row, stamp_ns = chosen[owner[at]], int(number[at]), int(stamps[at])
        yield Raw(track.topic, stamp_ns, track.size(row), partial(_messages, track, row, stamp_ns))


def read_table(path: Path, columns: int, unit_ns: int) -> tuple:
    """Stamps [ns] and numbers of a CSV whose first column is a whole number of units of time. RecordingError names the line."""
    try:
        with path.open() as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty table: told below
            rows = np.loadtxt(stream, dtype=[("stamp", "i8"), ("numbers", "f8", (columns - 1,))], delimiter=",", comments="#", ndmin=1)
    except (ValueError, OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path}: lines of {columns} numbers are expected: {' '.join(str(error).split())[:160]}") from None
    if len(rows) == 0:
        raise RecordingError(f"{path}: no lines of {columns} numbers in it")
    most = MOST_STAMP_NS // unit_ns + 1  # beyond, it does not matter by how much
    return np.clip(rows["stamp"], -most, most) * unit_ns, rows["numbers"]
