"""Two sensors in one topic under one frame_id: where their scans come by turns, neighbours look elsewhere, and every other scan alike."""
from typing import Dict, List

import numpy as np

SECTORS, FLOORS = 12, 6  # of the directions that are counted
MOST_POINTS = 600  # of a scan
LOOKS = 20  # scans that are compared before it is told
FAR, TIMES = 0.5, 4.0  # neighbours differ by this share of their points at least, and by so much more than every other scan


def directions(points: np.ndarray) -> np.ndarray:
    """Shares of the points by direction, and at less than 2 m."""
    some = np.asarray(points, np.float64)[::max(1, len(points) // MOST_POINTS)]
    x, y, z = some.T
    level = np.hypot(x, y)
    sector = np.floor(np.arctan2(y, x) / (2 * np.pi) * SECTORS).astype(int) % SECTORS
    floor = np.clip(np.floor((np.arctan2(z, level) / np.pi + 0.5) * FLOORS), 0, FLOORS - 1).astype(int)
    counts = np.bincount(sector * FLOORS + floor, minlength=SECTORS * FLOORS)
    return counts / max(len(some), 1)


class MixedSensors:
    """Watches the scans of each frame."""

    def __init__(self) -> None:
        self._last: Dict[str, List[List[float]]] = {}  # the last two scans
        self._count: Dict[str, List[int]] = {}  # scans that were compared, and those that alternate

    def add(self, frame: str, points: np.ndarray) -> bool:
        """Whether the scans of this frame are those of two sensors."""
        shares, last = directions(points), self._last.setdefault(frame, [])
        seen = self._count.setdefault(frame, [0, 0])
        if len(last) == 2:
            to_other, to_same = (float(np.abs(shares - one).sum()) / 2 for one in reversed(last))
            seen[0] += 1
            seen[1] += to_other > FAR and to_other > TIMES * to_same
        self._last[frame] = [*last[-1:], shares.tolist()]
        return seen[0] >= LOOKS and seen[1] > 0.8 * seen[0]

    def state(self) -> dict:
        """As JSON."""
        return {"last": self._last, "count": self._count}

    def restore(self, state: dict) -> None:
        self._last, self._count = state["last"], state["count"]
