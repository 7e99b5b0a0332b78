"""A pose graph in SE(3), solved as a sparse least-squares problem.

Levenberg-Marquardt with a Cauchy kernel on loops and positions (Triggs et al. 2000, section 4.3; Sola et al. 2018 for the Jacobians).
The kernel is wide at first and narrows (graduated non-convexity, Yang et al. 2020): a drive that has drifted far is brought to its
loops before those that contradict the others are left out.
The equations of a drive are a chain with few loops: their Cholesky-like factors stay nearly as sparse as the chain, and SciPy's
SuperLU solves tens of thousands of poses in seconds. Equal inputs give equal poses on one machine.
"""
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from .._extras import need
from . import se3

MOST_ROUNDS, LEAST_GAIN = 50, 1e-6
KERNELS = (1000.0, 100.0, 10.0, 3.0, 1.0)  # standard deviations at which a residual counts half
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-6, 1e-12, 1e6
FIRST_M, FIRST_RAD = 1e-4, 1e-5  # deviations of a first pose that is held


@dataclass
class Edges:
    """Relative poses: T_from_to with the information of its right error; robust ones through a Cauchy kernel."""

    begin: np.ndarray  # (E,) int
    end: np.ndarray
    T: np.ndarray  # (E, 4, 4)
    root: np.ndarray  # (E, 6, 6): root^T root is the information
    robust: bool = False

    def residuals(self, poses: np.ndarray) -> np.ndarray:
        """(E, 6), whitened."""
        error = se3.log(se3.inverse(self.T) @ se3.inverse(poses[self.begin]) @ poses[self.end])
        white: np.ndarray = (self.root @ error[..., None])[..., 0]
        return white

    def jacobians(self, poses: np.ndarray) -> "tuple[np.ndarray, np.ndarray]":
        """Jacobians by the right errors of both ends."""
        between = se3.inverse(poses[self.begin]) @ poses[self.end]
        J = self.root @ se3.right_jacobian_inverse(se3.log(se3.inverse(self.T) @ between))
        return -J @ se3.adjoint(se3.inverse(between)), J


@dataclass
class Positions:
    """Positions of an antenna, through a Cauchy kernel."""

    node: np.ndarray  # (P,) int
    position_m: np.ndarray  # (P, 3)
    deviation_m: np.ndarray  # (P, 3)
    antenna_m: np.ndarray  # (P, 3) in the frame of the base

    def residuals(self, poses: np.ndarray) -> np.ndarray:
        """(P, 3), whitened."""
        at = poses[self.node]
        white: np.ndarray = ((at[:, :3, :3] @ self.antenna_m[..., None])[..., 0] + at[:, :3, 3] - self.position_m) / self.deviation_m
        return white

    def jacobians(self, poses: np.ndarray) -> np.ndarray:
        """(P, 3, 6)."""
        R = poses[self.node][:, :3, :3]
        J = np.concatenate([R, -R @ se3.hat(self.antenna_m)], axis=2)
        whitened: np.ndarray = J / self.deviation_m[..., None]
        return whitened


def information_root(covariance: np.ndarray) -> np.ndarray:
    """L^T with L L^T the inverse of each covariance."""
    root: np.ndarray = np.swapaxes(np.linalg.cholesky(np.linalg.inv(covariance)), -1, -2)
    return root


def diagonal_root(move_m: Any, turn_rad: Any) -> np.ndarray:
    """Roots of the information of errors with these deviations, arrays of any length."""
    move_m, turn_rad = np.atleast_1d(move_m), np.atleast_1d(turn_rad)
    out = np.zeros((len(move_m), 6, 6))
    for k in range(6):
        out[:, k, k] = 1 / (move_m if k < 3 else turn_rad)
    return out


def cauchy_weights(residuals: np.ndarray, kernel: float = KERNELS[-1]) -> np.ndarray:
    """Weight of each row, in (0, 1], by its mean square."""
    weights: np.ndarray = 1 / (1 + (residuals ** 2).mean(axis=1) / kernel ** 2)
    return weights


def _cauchy_cost(residuals: np.ndarray, kernel: float) -> float:
    """Cost whose derivative is that of the weighted squares."""
    scale = residuals.shape[1] * kernel ** 2
    return float(scale * np.log1p((residuals ** 2).sum(axis=1) / scale).sum())


class _System:
    """The normal equations, summed up block by block."""

    def __init__(self, count: int):
        self._size = 6 * count
        self._rows: "list[np.ndarray]" = []
        self._columns: "list[np.ndarray]" = []
        self._values: "list[np.ndarray]" = []
        self.gradient = np.zeros((count, 6))

    def add(self, a: np.ndarray, b: np.ndarray, blocks: np.ndarray) -> None:
        """Adds blocks (E, 6, 6) at node rows a and node columns b."""
        k = np.arange(6)
        shape = (len(a), 6, 6)
        self._rows.append(np.broadcast_to(6 * a[:, None, None] + k[:, None], shape).ravel())
        self._columns.append(np.broadcast_to(6 * b[:, None, None] + k, shape).ravel())
        self._values.append(blocks.ravel())

    def add_factor(self, nodes: "list[np.ndarray]", jacobians: "list[np.ndarray]", residuals: np.ndarray, weights: np.ndarray) -> None:
        """Adds one kind of factors: J^T w J and J^T w r."""
        for a, Ja in zip(nodes, jacobians):
            np.add.at(self.gradient, a, (np.swapaxes(Ja, 1, 2) @ (weights[:, None] * residuals)[..., None])[..., 0])
            for b, Jb in zip(nodes, jacobians):
                self.add(a, b, np.swapaxes(Ja, 1, 2) @ (weights[:, None, None] * Jb))

    def solve(self, damping: float) -> np.ndarray:
        """The step of each node, (N, 6)."""
        sparse, linalg = need("scipy.sparse", "map"), need("scipy.sparse.linalg", "map")
        H = sparse.coo_matrix((np.concatenate(self._values), (np.concatenate(self._rows), np.concatenate(self._columns))),
                              shape=(self._size, self._size)).tocsc()
        H = H + damping * sparse.diags(H.diagonal(), format="csc")
        factor = linalg.splu(H, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        step: np.ndarray = factor.solve(-self.gradient.ravel()).reshape(-1, 6)
        return step


def cost(poses: np.ndarray, edges: "list[Edges]", positions: Optional[Positions], kernel: float) -> float:
    """Half the sum of the squares, of robust ones through the kernel."""
    total = 0.0
    for group in edges:
        residuals = group.residuals(poses)
        total += _cauchy_cost(residuals, kernel) if group.robust else float((residuals ** 2).sum())
    if positions is not None:
        total += _cauchy_cost(positions.residuals(poses), kernel)
    return total / 2


def _linearize(poses: np.ndarray, edges: "list[Edges]", positions: Optional[Positions], kernel: float) -> _System:
    system = _System(len(poses))
    for group in edges:
        residuals = group.residuals(poses)
        weights = cauchy_weights(residuals, kernel) if group.robust else np.ones(len(residuals))
        system.add_factor([group.begin, group.end], list(group.jacobians(poses)), residuals, weights)
    if positions is not None:
        residuals = positions.residuals(poses)
        system.add_factor([positions.node], [positions.jacobians(poses)], residuals, cauchy_weights(residuals, kernel))
    else:  # nothing else holds the frame
        hold = diagonal_root(FIRST_M, FIRST_RAD)
        system.add(np.zeros(1, int), np.zeros(1, int), np.swapaxes(hold, 1, 2) @ hold)
    return system


def solve(poses: np.ndarray, edges: "list[Edges]", positions: Optional[Positions] = None,
          kernels: "tuple[float, ...]" = KERNELS) -> np.ndarray:
    """The most probable poses (N, 4, 4), from those given. Without positions the first one stays."""
    edges = [group for group in edges if len(group.begin)]
    is_robust = positions is not None or any(group.robust for group in edges)
    for kernel in kernels if is_robust else kernels[-1:]:
        poses = _solve(poses, edges, positions, kernel)
    return poses


def _solve(poses: np.ndarray, edges: "list[Edges]", positions: Optional[Positions], kernel: float) -> np.ndarray:
    now, damping = cost(poses, edges, positions, kernel), FIRST_DAMPING
    for _ in range(MOST_ROUNDS):
        system = _linearize(poses, edges, positions, kernel)
        while damping <= MOST_DAMPING:
            tried = poses @ se3.exp(system.solve(damping))
            then = cost(tried, edges, positions, kernel)
            if then <= now:
                break
            damping *= 10
        else:
            return poses
        gain, poses, now, damping = now - then, tried, then, max(damping / 10, LEAST_DAMPING)
        if gain <= LEAST_GAIN * now:
            break
    return poses
