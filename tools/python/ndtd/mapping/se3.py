"""Rigid transforms as arrays: (N, 4, 4), with twists (N, 6) in the order translation, rotation. Right errors: T = T_mean Exp(d)."""
import numpy as np

_SMALL = 1e-8


def hat(v: np.ndarray) -> np.ndarray:
    """(N, 3, 3) with hat(v) w = v x w."""
    out = np.zeros((*v.shape[:-1], 3, 3))
    out[..., 0, 1], out[..., 0, 2] = -v[..., 2], v[..., 1]
    out[..., 1, 0], out[..., 1, 2] = v[..., 2], -v[..., 0]
    out[..., 2, 0], out[..., 2, 1] = -v[..., 1], v[..., 0]
    return out


def _left_jacobian(angle2: np.ndarray, W: np.ndarray) -> np.ndarray:
    angle2 = angle2[..., None, None]
    angle = np.sqrt(angle2)
    small = angle2 < _SMALL
    safe = np.where(small, 1.0, angle)
    b = np.where(small, 0.5 - angle2 / 24, (1 - np.cos(safe)) / safe ** 2)
    c = np.where(small, 1 / 6 - angle2 / 120, (safe - np.sin(safe)) / safe ** 3)
    J: np.ndarray = np.eye(3) + b * W + c * (W @ W)
    return J


def exp(d: np.ndarray) -> np.ndarray:
    """(N, 4, 4) from (N, 6)."""
    d = np.asarray(d, np.float64)
    rho, phi = d[..., :3], d[..., 3:]
    W, angle2 = hat(phi), (phi ** 2).sum(-1)
    angle = np.sqrt(angle2)[..., None, None]
    small = angle < 1e-4
    safe = np.where(small, 1.0, angle)
    a = np.where(small, 1 - angle ** 2 / 6, np.sin(safe) / safe)
    b = np.where(small, 0.5 - angle ** 2 / 24, (1 - np.cos(safe)) / safe ** 2)
    out = np.zeros((*d.shape[:-1], 4, 4))
    out[..., :3, :3] = np.eye(3) + a * W + b * (W @ W)
    out[..., :3, 3] = (_left_jacobian(angle2, W) @ rho[..., None])[..., 0]
    out[..., 3, 3] = 1
    return out


def log(T: np.ndarray) -> np.ndarray:
    """(N, 6) from (N, 4, 4); angles below pi."""
    R = T[..., :3, :3]
    axis = np.stack([R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], -1) / 2
    sine = np.linalg.norm(axis, axis=-1)
    cosine = (np.trace(R, axis1=-2, axis2=-1) - 1) / 2
    angle = np.arctan2(sine, cosine)
    scale = np.where(sine < 1e-9, 1.0, angle / np.where(sine < 1e-9, 1.0, sine))
    phi = axis * scale[..., None]
    rho = np.linalg.solve(_left_jacobian((phi ** 2).sum(-1), hat(phi)), T[..., :3, 3:])[..., 0]
    return np.concatenate([rho, phi], -1)


def inverse(T: np.ndarray) -> np.ndarray:
    """Inverse of rigid transforms."""
    out = np.zeros_like(T)
    Rt = np.swapaxes(T[..., :3, :3], -1, -2)
    out[..., :3, :3] = Rt
    out[..., :3, 3] = -(Rt @ T[..., :3, 3:])[..., 0]
    out[..., 3, 3] = 1
    return out


def adjoint(T: np.ndarray) -> np.ndarray:
    """(N, 6, 6): T Exp(d) = Exp(Ad d) T."""
    R = T[..., :3, :3]
    out = np.zeros((*T.shape[:-2], 6, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = R
    out[..., :3, 3:] = hat(T[..., :3, 3]) @ R
    return out


def right_jacobian_inverse(d: np.ndarray) -> np.ndarray:
    """(N, 6, 6): Log(Exp(d) Exp(e)) = d + J e to first order; the series up to the second power, enough for d below 0.5."""
    ad = np.zeros((*d.shape[:-1], 6, 6))
    ad[..., :3, :3] = ad[..., 3:, 3:] = hat(d[..., 3:])
    ad[..., :3, 3:] = hat(d[..., :3])
    return np.eye(6) + ad / 2 + (ad @ ad) / 12


def apply(T: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(N, 3) points in the frame that one transform leads to."""
    moved: np.ndarray = points @ T[:3, :3].T + T[:3, 3]
    return moved


def angle_rad(T: np.ndarray) -> np.ndarray:
    """Angles of the rotations."""
    turned: np.ndarray = np.linalg.norm(log(T)[..., 3:], axis=-1)
    return turned


def interpolate(a: np.ndarray, b: np.ndarray, s: float) -> np.ndarray:
    """Interpolates on the screw motion from a (s = 0) to b (s = 1)."""
    moved: np.ndarray = a @ exp(s * log(inverse(a) @ b))
    return moved
