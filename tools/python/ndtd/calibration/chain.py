"""Motion that a sensor tells in small steps: wheels with position and attitude, a gyro with attitude alone."""
from dataclasses import dataclass

import numpy as np

from ..mapping import se3

MOST_GAP_S = 0.25  # between samples; over a longer one the motion is not known
MOST_SPEED_MPS = 100.0  # of wheels; a faster step is a restart of the odometry
RATE_REACH_S = 0.05  # to either side: the velocity at a moment is a mean, so that its noise tells no offset of time


@dataclass(frozen=True)
class Faults:
    """Systematic errors of a chain: the motion is (1 - scale) times the translation, (1 - turn_scale) times the rotation less bias."""

    scale: float = 0.0
    turn_scale: float = 0.0
    bias_radps: "tuple[float, ...]" = (0.0, 0.0, 0.0)


@dataclass
class Chain:
    """Steps between samples: twists (N, 6), translation and rotation, over steps_s (N,); stamps (N + 1,) in seconds."""

    stamps_s: np.ndarray
    steps: np.ndarray

    def __post_init__(self) -> None:
        self.steps_s = np.diff(self.stamps_s)
        speed = np.linalg.norm(self.steps[:, :3], axis=1) / np.maximum(self.steps_s, 1e-9)
        self._breaks = np.concatenate([[0], np.cumsum((self.steps_s > MOST_GAP_S) | (speed > MOST_SPEED_MPS))])

    @property
    def is_planar(self) -> bool:
        """Whether it tells x, y and yaw alone, as wheels do."""
        return bool(np.all(np.abs(self.steps[:, 2:5]) < 1e-9))

    def covers(self, begin_s: np.ndarray, end_s: np.ndarray) -> np.ndarray:
        """Whether the motion from one time to the other is known."""
        reach = RATE_REACH_S
        inside = (begin_s - reach >= self.stamps_s[0]) & (end_s + reach <= self.stamps_s[-1])
        first = np.clip(np.searchsorted(self.stamps_s, begin_s - reach, "right") - 1, 0, len(self.steps))
        last = np.clip(np.searchsorted(self.stamps_s, end_s + reach), 0, len(self.steps))
        known: np.ndarray = inside & (self._breaks[first] == self._breaks[last])
        return known

    def with_faults(self, faults: Faults) -> "Motion":
        """The motion without these faults."""
        steps = self.steps.copy()
        steps[:, :3] *= 1 - faults.scale
        steps[:, 3:] *= 1 - faults.turn_scale
        steps[:, 3:] -= self.steps_s[:, None] * np.asarray(faults.bias_radps)
        return Motion(self, steps)


def _running_product(steps: np.ndarray) -> np.ndarray:
    """(N + 1, 4, 4): the identity, and the products of the first 1, 2 ... N transforms."""
    out = np.concatenate([np.eye(4)[None], steps])
    reach = 1
    while reach < len(out):
        out[reach:] = out[:-reach] @ out[reach:]
        reach *= 2
    return out


class Motion:
    """A chain as poses, and what its faults would change about them."""

    def __init__(self, chain: Chain, steps: np.ndarray):
        self.chain, self.steps = chain, steps
        self.poses = _running_product(se3.exp(steps))
        adjoint = se3.adjoint(self.poses[1:])
        changes = np.zeros((len(steps), 6, 5))  # of a step by scale, turn scale, bias
        changes[:, :3, 0] = -chain.steps[:, :3]
        changes[:, 3:, 1] = -chain.steps[:, 3:]
        changes[:, [3, 4, 5], [2, 3, 4]] = -chain.steps_s[:, None]
        self._changes = np.concatenate([np.zeros((1, 6, 5)), np.cumsum(adjoint @ changes, 0)])

    def _place(self, t_s: np.ndarray) -> "tuple[np.ndarray, np.ndarray]":
        at = np.clip(np.searchsorted(self.chain.stamps_s, t_s, "right") - 1, 0, len(self.steps) - 1)
        return at, (t_s - self.chain.stamps_s[at]) / self.chain.steps_s[at]

    def pose(self, t_s: np.ndarray) -> np.ndarray:
        """(N, 4, 4) in the frame of the chain."""
        at, part = self._place(t_s)
        moved: np.ndarray = self.poses[at] @ se3.exp(part[:, None] * self.steps[at])
        return moved

    def velocity(self, t_s: np.ndarray) -> np.ndarray:
        """Mean twists (N, 6) around a time."""
        before, after = self.pose(t_s - RATE_REACH_S), self.pose(t_s + RATE_REACH_S)
        return se3.log(se3.inverse(before) @ after) / (2 * RATE_REACH_S)

    def between(self, begin_s: np.ndarray, end_s: np.ndarray) -> "tuple[np.ndarray, np.ndarray]":
        """Transforms (N, 4, 4) from the end to the begin, and their right changes (N, 6, 6) by scale, turn scale, bias (3), and a
        time that is later [s]."""
        begin, end = self.pose(begin_s), self.pose(end_s)
        moved = se3.inverse(begin) @ end
        changes = np.zeros((len(moved), 6, 6))
        (a, a_part), (b, b_part) = self._place(begin_s), self._place(end_s)
        at_begin = self._changes[a] + a_part[:, None, None] * (self._changes[a + 1] - self._changes[a])
        at_end = self._changes[b] + b_part[:, None, None] * (self._changes[b + 1] - self._changes[b])
        changes[:, :, :5] = se3.adjoint(se3.inverse(end)) @ (at_end - at_begin)
        back = se3.adjoint(se3.inverse(moved)) @ self.velocity(begin_s)[..., None]
        changes[:, :, 5] = self.velocity(end_s) - back[..., 0]
        return moved, changes
