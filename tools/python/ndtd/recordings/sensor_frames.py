"""Poses of the sensors of a recording on the vehicle, found before its messages are read."""
from dataclasses import dataclass, field
from itertools import islice
from typing import Dict, Optional

import numpy as np

from .messages import DamagedError, Odometry, RecordingError, Scan
from .transforms import Tree

MOST_TF = 5000  # messages of tf that are read for transforms that tf_static lacks


@dataclass
class Frames:
    """The static transforms of a recording; `base`: the frame of the vehicle, "" where nothing tells it."""

    tree: Tree = field(default_factory=Tree)
    base: str = ""
    notes: list = field(default_factory=list)
    known: Dict[str, Optional[np.ndarray]] = field(default_factory=dict)

    def of(self, frame: str) -> Optional[np.ndarray]:
        """T_base_frame, 4 x 4, or None where it is not known."""
        frame = frame.lstrip("/")
        if frame not in self.known:
            self.known[frame] = self.tree.find(self.base, frame) if self.base else None
        return self.known[frame]


def _is_static(topic):
    return topic.name.endswith("tf_static")


def _up_to(recording, topics, most):
    """The first messages of topics; a damage among them is told when all are read."""
    try:
        yield from islice(recording.raw(topics), most)
    except DamagedError:
        return


def _first_messages(recording):
    """The first message of each topic that has a frame."""
    found = []
    for topic in recording.topics:
        if topic.kind not in (None, "tf"):
            for raw in _up_to(recording, [topic], 3):
                try:
                    found += list(raw.read())
                except Exception:  # told when all messages are read
                    continue
                break
    return found


def _frame(message):
    return getattr(message, "child_frame_id", "") if isinstance(message, Odometry) else message.frame_id


def find(recording, base: Optional[str]) -> Frames:
    """Reads tf_static, and tf where a sensor is not connected to the base otherwise."""
    frames = Frames()
    tf = [topic for topic in recording.topics if topic.kind == "tf"]
    if not tf and not base:
        return frames
    first = _first_messages(recording)
    for topic in filter(_is_static, tf):
        for raw in _up_to(recording, [topic], topic.count):
            _add(frames.tree, raw)
    children = [_frame(one) for one in first if isinstance(one, Odometry)]
    wanted = {_frame(one).lstrip("/") for one in first if isinstance(one, Scan)}

    def settle():
        frames.base = base or frames.tree.base(children)
        return bool(frames.base) and all(frames.tree.find(frames.base, one) is not None for one in wanted)

    if not settle():
        moving = [topic for topic in tf if not _is_static(topic)]
        used = False
        for number, raw in enumerate(_up_to(recording, moving, MOST_TF)):
            used = True
            _add(frames.tree, raw, keep=True)
            if number % 100 == 99 and settle():
                break
        if settle() and used and wanted:
            frames.notes.append("the poses of sensors are those of their first transforms in tf")
    known = frames.tree.frames()
    if base and base not in known:
        raise RecordingError(f"{recording.name}: no transform names --base-frame {base}{_among(known)}")
    if known and not frames.base:
        frames.notes.append(f"which frame is the vehicle? --base-frame{_among(known)}")
    for one in wanted:
        frames.of(one)
    return frames


def _among(names):
    """The frames there are, as the rest of a sentence."""
    shown = ", ".join(sorted(names)[:12])
    return f"; there are: {shown}{' ...' if len(names) > 12 else ''}" if names else "; there are no transforms"


def _add(tree, raw, keep=False):
    try:
        for transform in raw.read():
            tree.add(transform, keep)
    except Exception:  # one that cannot be decoded tells nothing
        return
