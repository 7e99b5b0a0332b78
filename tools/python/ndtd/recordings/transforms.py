"""Where sensors are on the vehicle: T_base_sensor from the transforms of a recording."""
import numpy as np

BASES = ("base_link", "base_footprint", "base", "body", "vehicle", "imu_link")


def matrix(pose):
    """4 x 4 from x y z qx qy qz qw."""
    x, y, z, qx, qy, qz, qw = pose
    n = np.sqrt(qx * qx + qy * qy + qz * qz + qw * qw) or 1.0
    qx, qy, qz, qw = qx / n, qy / n, qz / n, qw / n
    out = np.eye(4)
    out[:3, :3] = [[1 - 2 * (qy * qy + qz * qz), 2 * (qx * qy - qz * qw), 2 * (qx * qz + qy * qw)],
                   [2 * (qx * qy + qz * qw), 1 - 2 * (qx * qx + qz * qz), 2 * (qy * qz - qx * qw)],
                   [2 * (qx * qz - qy * qw), 2 * (qy * qz + qx * qw), 1 - 2 * (qx * qx + qy * qy)]]
    out[:3, 3] = x, y, z
    return out


class Tree:
    """The static transforms of a recording."""

    def __init__(self):
        self._parent = {}

    def add(self, transform):
        self._parent[transform.child] = (transform.parent, matrix(transform.pose))

    def frames(self):
        return set(self._parent) | {parent for parent, _ in self._parent.values()}

    def _to_root(self, frame):
        T, path = np.eye(4), {frame: np.eye(4)}
        while frame in self._parent and len(path) < 64:
            frame, T_parent_child = self._parent[frame]
            T = T_parent_child @ T
            if frame in path:
                break
            path[frame] = T
        return path

    def find(self, base, frame):
        """T_base_frame, or None where the transforms do not connect them."""
        up, down = self._to_root(base), self._to_root(frame)
        for common in down:
            if common in up:
                return np.linalg.inv(up[common]) @ down[common]
        return None

    def base(self):
        """The frame of the vehicle by its customary name, or None."""
        frames = self.frames()
        return next((name for name in BASES if name in frames), None)
