"""Hand-eye calibration: the transform X between two sensors on one body, by what each of them says about its motion.

A motion A of the base and the motion B of the sensor meet in A X = X B. Residuals Log(A^-1 X B X^-1) of all motions over a second are
made small by a robust Gauss-Newton, together with the faults of the chain that tells A. Each of the six axes has a variance of its
own, found from the residuals. Motions overlap and errors of neighbouring scans are alike, so the covariance is that of sums with the
autocovariance of the residuals (Newey and West 1987), and never below the one that takes each axis as equally noisy all along the drive.
"""
from dataclasses import dataclass

import numpy as np

from ..mapping import se3
from .chain import Chain, Faults

SPAN_S = 1.0  # of a motion
MOST_GAP_S = 1.05  # between scans of a motion
LAG_SPANS = 4.0  # residuals closer than so many spans are taken as correlated
CAUCHY = 3.0  # standard deviations; residuals well beyond count little
ROTATION, POSITION, SCALE, TURN_SCALE, BIAS, TIME = slice(0, 3), slice(3, 6), 6, 7, slice(8, 11), 11
# Standard deviations before the drive: a radian, 3 m, 30 %, 5 % of a turn, 0.05 rad/s, 0.2 s.
BEFORE = np.array([1.0] * 3 + [3.0] * 3 + [0.3, 0.05] + [0.05] * 3 + [0.2])


@dataclass
class Path:
    """Poses T_map_sensor (N, 4, 4) of a sensor at stamps in seconds."""

    stamps_s: np.ndarray
    poses: np.ndarray


@dataclass
class Solution:
    """X and the faults of the chain, with the covariance (12, 12): rotation (left, in axes of the base), position, scale, turn scale,
    bias, time by which the chain's stamps are late."""

    X: np.ndarray
    scale: float
    turn_scale: float
    bias_radps: np.ndarray
    late_s: float
    covariance: np.ndarray
    motions: int
    spread: np.ndarray  # standard deviations of the residuals by axis [m, rad]
    turns: np.ndarray  # (3, 3): mean square of the rotations of a motion, in axes of the base [rad^2]
    outliers: float  # share of the motions


def pairs(path: Path, span_s: float) -> np.ndarray:
    """(N, 2): scans that a span lies between, with no gap between them."""
    gaps = np.concatenate([[0], np.cumsum(np.diff(path.stamps_s) > MOST_GAP_S)])
    begin = np.arange(len(gaps))
    end = np.searchsorted(path.stamps_s, path.stamps_s + span_s - 0.02)
    inside = end < len(gaps)
    begin, end = begin[inside], end[inside]
    whole = (gaps[begin] == gaps[end]) & (path.stamps_s[end] - path.stamps_s[begin] < 2 * span_s)
    return np.stack([begin[whole], end[whole]], 1)


def _first_rotation(moved: np.ndarray, seen: np.ndarray, believed: np.ndarray, has_way: bool) -> np.ndarray:
    """The rotation that turns axes and ways of the sensor best into those of the base (Wahba); `believed` where they do not tell."""
    a, b = se3.log(moved), se3.log(seen)
    pull = a[:, 3:].T @ b[:, 3:]
    if has_way:
        still = np.linalg.norm(b[:, 3:], axis=1) < 0.1  # the lever arm hardly moves it
        pull = pull / max(np.trace(a[:, 3:].T @ a[:, 3:]), 1e-3)
        pull += a[still, :3].T @ b[still, :3] / max(np.trace(a[still, :3].T @ a[still, :3]), 1e-3)
    pull = pull / max(np.linalg.norm(pull), 1e-12) + 0.02 * believed
    U, _, Vt = np.linalg.svd(pull)
    R: np.ndarray = U @ np.diag([1, 1, np.linalg.det(U @ Vt)]) @ Vt
    return R


class HandEye:
    """One calibration: a path of the sensor, and the chain of the base (or of the gyro, which has no position)."""

    def __init__(self, path: Path, chain: Chain, X: np.ndarray, is_gyro: bool):
        self.chain, self.is_gyro, self.believed = chain, is_gyro, X
        which = pairs(path, SPAN_S)
        begin_s, end_s = path.stamps_s[which[:, 0]], path.stamps_s[which[:, 1]]
        known = chain.covers(begin_s, end_s)
        self.begin_s, self.end_s, which = begin_s[known], end_s[known], which[known]
        self.seen = se3.inverse(path.poses[which[:, 0]]) @ path.poses[which[:, 1]]
        self.rows = np.array([False] * 3 + [True] * 3) if is_gyro else np.ones(6, bool)
        self.free = np.ones(12, bool)
        if is_gyro:
            self.free[3:7] = False
        elif chain.is_planar:
            self.free[8:10] = False

    @property
    def motions(self) -> int:
        """How many motions both sensors tell."""
        return len(self.seen)

    def _residuals(self, X: np.ndarray, faults: Faults, late_s: float) -> "tuple[np.ndarray, np.ndarray]":
        """(N, 6) and their Jacobian (N, 6, 12)."""
        moved, changes = self.chain.with_faults(faults).between(self.begin_s + late_s, self.end_s + late_s)
        told = X @ self.seen @ se3.inverse(X[None])
        r = se3.log(se3.inverse(moved) @ told)
        J = np.zeros((len(r), 6, 12))
        by_twist = se3.adjoint(se3.inverse(told)) - np.eye(6)  # Exp(x) told Exp(-x)
        J[:, :, POSITION] = by_twist[:, :, :3]
        J[:, :, ROTATION] = by_twist[:, :, 3:] + by_twist[:, :, :3] @ se3.hat(X[:3, 3])  # about the sensor, which stays
        J[:, :, 6:] = -changes
        return r[:, self.rows], J[:, self.rows]

    def _step(self, r: np.ndarray, J: np.ndarray, x: np.ndarray) -> "tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]":
        """Gauss-Newton step, information, weights and spreads; x: the faults and the pose relative to what was believed."""
        spread = np.maximum(1.4826 * np.median(np.abs(r), axis=0), 1e-6)
        weights = 1 / (1 + (r / (CAUCHY * spread)) ** 2) / spread ** 2
        known = np.where(self.free, 1 / BEFORE ** 2, 1e12)
        H = np.einsum("nij,ni,nik->jk", J, weights, J) + np.diag(known)
        g = np.einsum("nij,ni,ni->j", J, weights, r) + known * x
        return -np.linalg.solve(H, g), H, weights, spread

    def solve(self) -> Solution:
        """The calibration; needs a motion."""
        X = self.believed.copy()
        moved, _ = self.chain.with_faults(Faults()).between(self.begin_s, self.end_s)
        X[:3, :3] = _first_rotation(moved, self.seen, X[:3, :3], not self.is_gyro)
        x = np.zeros(12)
        for _ in range(50):
            x[ROTATION] = se3.log(self._pose(X[:3, :3] @ self.believed[:3, :3].T))[3:]
            x[POSITION] = X[:3, 3] - self.believed[:3, 3]
            r, J = self._residuals(X, Faults(x[SCALE], x[TURN_SCALE], tuple(x[BIAS])), x[TIME])
            step, H, weights, spread = self._step(r, J, x)
            step[TIME] = np.clip(step[TIME], -0.05, 0.05)
            X[:3, :3] = self._turn(step[ROTATION]) @ X[:3, :3]
            X[:3, 3] += step[POSITION]
            x[6:] += step[6:]
            if np.all(np.abs(step) < 1e-3 * np.sqrt(np.diag(np.linalg.inv(H)))):
                break
        covariance = self._covariance(r, J, weights, spread)
        whole = np.zeros(6)
        whole[self.rows] = spread
        about = se3.log(X @ self.seen @ se3.inverse(X[None]))[:, 3:]
        outliers = float(np.mean(np.any(np.abs(r) > 2 * CAUCHY * spread, axis=1)))
        return Solution(X, x[SCALE], x[TURN_SCALE], x[BIAS].copy(), x[TIME], covariance, len(r), whole, about.T @ about / len(about), outliers)

    @staticmethod
    def _pose(R: np.ndarray) -> np.ndarray:
        out = np.eye(4)
        out[:3, :3] = R
        return out

    @staticmethod
    def _turn(phi: np.ndarray) -> np.ndarray:
        R: np.ndarray = se3.exp(np.concatenate([np.zeros(3), phi]))[:3, :3]
        return R

    def _covariance(self, r: np.ndarray, J: np.ndarray, weights: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """Of the parameters, with what was known before; see the top of the file."""
        n = len(r)
        scores = np.einsum("nij,ni->nij", J, weights)  # (N, axes, 12)
        clipped = np.clip(r, -3 * CAUCHY * spread, 3 * CAUCHY * spread)
        own = np.einsum("nij,ni->nj", scores, clipped)
        period_s = max(float(np.median(np.diff(self.begin_s))) if n > 1 else SPAN_S, 1e-3)
        lags = min(int(np.ceil(LAG_SPANS * SPAN_S / period_s)), n - 1)
        alike, local = np.zeros((12, 12)), np.zeros((12, 12))
        for lag in range(lags + 1):
            taper = 1 - lag / (lags + 1)
            near = (self.begin_s[lag:] - self.begin_s[:n - lag] < 1.5 * lag * period_s + 1e-3)
            products = clipped[lag:] * clipped[:n - lag] * near[:, None]
            means = products.sum(0) / max(near.sum(), 1)
            by_axis = (scores[lag:] * near[:, None, None]).transpose(1, 2, 0) @ scores[:n - lag].transpose(1, 0, 2)
            pooled = np.einsum("i,ijk->jk", means, by_axis)
            here = (own[lag:] * near[:, None]).T @ own[:n - lag]
            alike += taper * (pooled if lag == 0 else pooled + pooled.T)
            local += taper * (here if lag == 0 else here + here.T)
        u2 = (r / (CAUCHY * spread)) ** 2
        slope = ((1 - u2) / (1 + u2) ** 2).mean(0) / (1 / (1 + u2)).mean(0)  # of what a residual pulls with, less than its weight
        before = np.diag(np.where(self.free, 1 / BEFORE ** 2, 1e12))
        inverse = np.linalg.inv(np.einsum("nij,ni,nik->jk", J, weights * slope, J) + before)
        before = np.diag(np.where(self.free, 1 / BEFORE ** 2, 0.0))
        P = inverse @ (alike + before) @ inverse
        Q = inverse @ (local + before) @ inverse
        more = np.sqrt(np.maximum(1.0, np.diag(Q) / np.maximum(np.diag(P), 1e-300)))
        whole: np.ndarray = P * more[:, None] * more
        whole[~self.free] = whole[:, ~self.free] = 0
        return whole
