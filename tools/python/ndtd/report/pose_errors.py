"""Errors of poses against ground truth, in the terms of the field: APE, RPE, errors per axis over sigma. Arrays of N poses at once.

Poses (N, 7) are x y z qx qy qz qw, T_map_base [m]. APE and RPE are those of evo (github.com/MichaelGrupp/evo) without alignment: results
and ground truth are in the frame of the map.
"""
from typing import NamedTuple

import numpy as np

AXES = ("longitudinal", "lateral", "vertical", "roll", "pitch", "yaw")
INSIDE = {1: 0.682689, 2: 0.954500, 3: 0.997300}  # of a normal distribution within k sigma
RPE_DISTANCES_M = (10, 20, 50, 100)
RPE_TOLERANCE = 0.1  # of the distance, between the poses of a pair


def conjugate(q: np.ndarray) -> np.ndarray:
    """Inverses of unit quaternions (N, 4)."""
    out: np.ndarray = q * [-1.0, -1.0, -1.0, 1.0]
    return out


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Products of quaternions (N, 4)."""
    px, py, pz, pw = p.T
    qx, qy, qz, qw = q.T
    return np.stack([pw * qx + px * qw + py * qz - pz * qy, pw * qy - px * qz + py * qw + pz * qx,
                     pw * qz + px * qy - py * qx + pz * qw, pw * qw - px * qx - py * qy - pz * qz], axis=1)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross products of vectors (N, 3); a third of the time of numpy.cross()."""
    ax, ay, az = a.T
    bx, by, bz = b.T
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=1)


def rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Vectors (N, 3) turned by unit quaternions (N, 4)."""
    t = 2.0 * cross(q[:, :3], v)
    out: np.ndarray = v + q[:, 3:] * t + cross(q[:, :3], t)
    return out


def rotation_vector(q: np.ndarray) -> np.ndarray:
    """(N, 3) axis times angle [rad], at most pi long, of unit quaternions (N, 4)."""
    q = np.where(q[:, 3:] < 0.0, -q, q)
    sine = np.linalg.norm(q[:, :3], axis=1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, q[:, 3:])
    out: np.ndarray = q[:, :3] * np.where(sine > 1e-12, angle / np.maximum(sine, 1e-12), 2.0)
    return out


def quaternion_of(vector: np.ndarray) -> np.ndarray:
    """(N, 4) of rotation vectors (N, 3)."""
    angle = np.linalg.norm(vector, axis=1, keepdims=True)
    return np.hstack([vector * 0.5 * np.sinc(angle / (2.0 * np.pi)), np.cos(0.5 * angle)])


def between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(N, 7) T_a_b of the poses a and b of a frame."""
    inverse = conjugate(a[:, 3:])
    return np.hstack([rotate(inverse, b[:, :3] - a[:, :3]), product(inverse, b[:, 3:])])


def interpolate(a: np.ndarray, b: np.ndarray, part: np.ndarray) -> np.ndarray:
    """(N, 7): the part (N,) in [0, 1] of the screw motions from a to b."""
    moved = between(a, b)
    turn = rotation_vector(moved[:, 3:])
    w = turn * part[:, None]
    v = _left_jacobian(turn, moved[:, :3], inverse=True) * part[:, None]
    p = _left_jacobian(w, v, inverse=False)
    return np.hstack([a[:, :3] + rotate(a[:, 3:], p), product(a[:, 3:], quaternion_of(w))])


def _left_jacobian(w: np.ndarray, v: np.ndarray, inverse: bool) -> np.ndarray:
    """J(w) v, or J(w)^-1 v, of SO(3) (Sola, Deray and Atchuthan 2018, eq. 145 and 146)."""
    angle = np.linalg.norm(w, axis=1, keepdims=True)
    small = angle < 1e-4
    t = np.where(small, 1.0, angle)
    if inverse:
        first, second = np.full_like(t, -0.5), np.where(small, 1.0 / 12.0, 1.0 / t**2 - 0.5 / (t * np.tan(0.5 * t)))
    else:
        first = np.where(small, 0.5, (1.0 - np.cos(t)) / t**2)
        second = np.where(small, 1.0 / 6.0, (t - np.sin(t)) / t**3)
    across = cross(w, v)
    out: np.ndarray = v + first * across + second * cross(w, across)
    return out


class Absolute(NamedTuple):
    """APE of N poses, and its parts along the axes of the vehicle."""

    translation_m: np.ndarray  # (N,)
    rotation_rad: np.ndarray  # (N,)
    per_axis: np.ndarray  # (N, 6): AXES [m, rad], estimate minus truth, in the base frame of the truth
    sigma: np.ndarray  # (N, 6): of the covariance of the results, in the same axes; NaN: unknown
    nees: np.ndarray  # (N,): normalised estimation error squared, 6 degrees of freedom; NaN: unknown


def differences(pose: np.ndarray, truth: np.ndarray) -> "tuple[np.ndarray, np.ndarray]":
    """Estimate minus truth of poses (N, 7), twice (N, 6): in the axes of the map, and of the vehicle (AXES) [m, rad].

    Roll, pitch and yaw are the components of the rotation vector."""
    to_body = conjugate(truth[:, 3:])
    shift = pose[:, :3] - truth[:, :3]
    turn = rotation_vector(product(pose[:, 3:], to_body))  # about map axes, as the covariance
    return np.hstack([shift, turn]), np.hstack([rotate(to_body, shift), rotate(to_body, turn)])


def absolute(pose: np.ndarray, truth: np.ndarray, covariance: np.ndarray) -> Absolute:
    """Errors of poses (N, 7) with covariances (N, 6, 6) in map axes."""
    in_map, per_axis = differences(pose, truth)
    to_body = conjugate(truth[:, 3:])
    R = np.stack([rotate(to_body, np.tile(axis, (len(pose), 1))) for axis in np.eye(3)], axis=2)  # R_base_map
    variance = [np.einsum("nij,njk,nik->ni", R, covariance[:, at:at + 3, at:at + 3], R) for at in (0, 3)]
    with np.errstate(invalid="ignore"):
        sigma = np.sqrt(np.hstack(variance))
    return Absolute(np.linalg.norm(in_map[:, :3], axis=1), np.linalg.norm(in_map[:, 3:], axis=1), per_axis, sigma,
                    _nees(in_map, covariance))


def _nees(error: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    out = np.full(len(error), np.nan)
    known = np.flatnonzero(np.isfinite(covariance).all(axis=(1, 2)))
    scale = np.sqrt(np.maximum(np.einsum("nii->ni", covariance[known]), 1e-300))
    scaled = covariance[known] / (scale[:, :, None] * scale[:, None, :])
    for at, matrix, one in zip(known, scaled, error[known] / scale):
        try:
            out[at] = one @ np.linalg.solve(matrix, one)
        except np.linalg.LinAlgError:
            pass
    return out


class Relative(NamedTuple):
    """RPE over one distance."""

    distance_m: float
    first: np.ndarray  # (K,) of each pair
    last: np.ndarray  # (K,)
    translation_m: np.ndarray  # (K,)
    rotation_rad: np.ndarray  # (K,)


def pairs_over(truth: np.ndarray, distance_m: float) -> "tuple[np.ndarray, np.ndarray]":
    """Pairs each pose with the later one whose way along the truth is nearest to the distance, where it is within RPE_TOLERANCE of it."""
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(truth[:, :3], axis=0), axis=1))])
    first = np.arange(len(way) - 1)
    target = way[:-1] + distance_m
    above = np.minimum(np.maximum(np.searchsorted(way, target), first + 1), len(way) - 1)
    below = np.maximum(np.searchsorted(way, way[np.maximum(above - 1, 0)]), first + 1)
    take_below = np.abs(way[below] - target) <= np.abs(way[above] - target)
    last = np.where(take_below, below, above)
    good = np.abs(way[last] - target) <= RPE_TOLERANCE * distance_m
    return first[good], last[good]


def relative(pose: np.ndarray, truth: np.ndarray, distance_m: float) -> Relative:
    """RPE of poses (N, 7) over a distance along the truth: as `evo_rpe --all_pairs --pairs_from_reference --delta_unit m`."""
    if len(pose) < 2:
        none = np.empty(0)
        return Relative(distance_m, none.astype(int), none.astype(int), none, none)
    first, last = pairs_over(truth, distance_m)
    error = between(between(truth[first], truth[last]), between(pose[first], pose[last]))
    turn = np.linalg.norm(rotation_vector(error[:, 3:]), axis=1)
    return Relative(distance_m, first, last, np.linalg.norm(error[:, :3], axis=1), turn)


def statistics(values: np.ndarray) -> "dict[str, float]":
    """rmse, mean, median, std, p95, min, max of the finite ones of (N,); {} without any."""
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return {}
    median, p95 = np.percentile(values, (50, 95))
    return {"rmse": float(np.sqrt(np.mean(values**2))), "mean": float(values.mean()), "median": float(median),
            "std": float(values.std()), "p95": float(p95), "min": float(values.min()), "max": float(values.max())}


def share_inside(error: np.ndarray, sigma: np.ndarray, k: float) -> float:
    """Part of the errors within k sigma, of those whose sigma is known; NaN without any."""
    known = np.isfinite(sigma) & np.isfinite(error)
    return float(np.mean(np.abs(error[known]) <= k * sigma[known])) if known.any() else float("nan")
