"""Points of a map to edit before it is compiled.

    cloud = ndtd.Cloud.read("town")                                  # a file of any kind, or a folder of them
    cloud = cloud.crop(center=(12, -4), radius_m=300)
    cloud = cloud.crop(box=((5, -6, 0.2), (9, -4, 3)), outside=True)  # a car that was parked there
    cloud = cloud.thin(0.2) + ndtd.Cloud.read("yard.laz").transform(T_town_yard)
    cloud.write("edited.pcd")
    target = ndtd.Map(cloud.points)
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence

import numpy as np

from . import _core
from .maps.point_files import find_files
from .poses import checked_pose, matrix

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class Cloud:
    """points: (N, 3) float64 [m]; intensity: (N,) float32, or None. What changes it returns another one."""

    __array_ufunc__ = None  # cloud + array is a TypeError, not a sum by rows

    def __init__(self, points: ArrayLike, intensity: Optional[ArrayLike] = None):
        self.points: NDArray[np.float64] = np.asarray(points, np.float64)
        self.intensity: Optional[NDArray[np.float32]] = None if intensity is None else np.asarray(intensity, np.float32)
        if self.points.ndim != 2 or self.points.shape[1] != 3:
            raise ValueError(f"points: an array of shape (N, 3) is wanted, not {self.points.shape}")
        if self.intensity is not None and self.intensity.shape != (len(self.points),):
            raise ValueError(f"intensity: one number per point is wanted, ({len(self.points)},), not {self.intensity.shape}")

    @classmethod
    def read(cls, path: Any) -> Cloud:
        """.pcd, .ply, .bin, .las, .laz, .txt, .npy, or a folder of them: all finite points. ValueError, OSError."""
        blocks = [block for one in find_files([path]) for block in one.blocks()]
        if not blocks:
            return cls(np.empty((0, 3)))
        has_intensity = all(block.intensity is not None for block in blocks)
        points = np.concatenate([block.points for block in blocks])
        known = np.isfinite(points).all(axis=1)
        return cls(points, np.concatenate([block.intensity for block in blocks]) if has_intensity else None)[known]

    def write(self, path: Any) -> None:
        """Writes a binary PCD; `ndt-map tile` makes tiles of it."""
        _core.write_cloud(path, self.points, self.intensity)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, which: Any) -> Cloud:
        """Some of the points: a mask, indices or a slice."""
        return Cloud(self.points[which], None if self.intensity is None else self.intensity[which])

    def __add__(self, other: Cloud) -> Cloud:
        """Both clouds as one; the intensity is kept where both have it."""
        if not isinstance(other, Cloud):
            return NotImplemented
        both = None if self.intensity is None or other.intensity is None else np.concatenate([self.intensity, other.intensity])
        return Cloud(np.concatenate([self.points, other.points]), both)

    def __repr__(self) -> str:
        if not len(self):
            return "ndtd.Cloud(0 points)"
        low, high = (" ".join(f"{value:.1f}" for value in bound(axis=0)) for bound in (self.points.min, self.points.max))
        return f"ndtd.Cloud({len(self)} points from {low} to {high} m{'' if self.intensity is None else ', intensity'})"

    def crop(self, *, box: Optional[ArrayLike] = None, polygon: Optional[ArrayLike] = None, center: Optional[Sequence[float]] = None,
             radius_m: Optional[float] = None, outside: bool = False) -> Cloud:
        """The points within, or with outside=True all others.

        box: (low, high), each x y or x y z [m], borders included. polygon: corners x y, (M, 2), any height. center and radius_m: a
        circle about x y, or a sphere about x y z."""
        given = [box is not None, polygon is not None, center is not None]
        if sum(given) != 1 or (center is None) != (radius_m is None):
            raise TypeError("crop: one of box=, polygon=, or center= with radius_m= is wanted")
        if box is not None:
            within = self._in_box(np.asarray(box, np.float64))
        elif polygon is not None:
            within = self._in_polygon(np.asarray(polygon, np.float64))
        else:
            within = self._in_circle(np.asarray(center, np.float64), float(radius_m or 0.0))
        return self[~within if outside else within]

    def _in_box(self, box: NDArray[np.float64]) -> NDArray[np.bool_]:
        if box.shape not in ((2, 2), (2, 3)) or not (box[0] <= box[1]).all():
            raise ValueError("box: (low, high) is wanted, each x y or x y z, with no coordinate of low above that of high")
        some = self.points[:, :box.shape[1]]
        within: NDArray[np.bool_] = ((some >= box[0]) & (some <= box[1])).all(axis=1)
        return within

    def _in_circle(self, center: NDArray[np.float64], radius_m: float) -> NDArray[np.bool_]:
        if center.shape not in ((2,), (3,)) or not radius_m > 0.0:
            raise ValueError("center: x y or x y z is wanted, and a radius_m above 0")
        within: NDArray[np.bool_] = ((self.points[:, :len(center)] - center)**2).sum(axis=1) <= radius_m**2
        return within

    def _in_polygon(self, corners: NDArray[np.float64]) -> NDArray[np.bool_]:
        """By the number of edges that a ray to the east crosses: odd within."""
        if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3 or not np.isfinite(corners).all():
            raise ValueError("polygon: at least three corners x y are wanted, (M, 2)")
        within = np.zeros(len(self.points), bool)
        x, y = self.points[:, 0], self.points[:, 1]
        for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, axis=0)):
            if ay != by:
                within ^= ((y >= ay) != (y >= by)) & (x < ax + (bx - ax) * (y - ay) / (by - ay))
        return within

    def thin(self, voxel_m: float) -> Cloud:
        """One point for each voxel with points: the mean of them. Points that are not finite are left out."""
        if not voxel_m >= 0.01:
            raise ValueError(f"voxel_m: {voxel_m} is below 0.01 m")
        known = np.isfinite(self.points).all(axis=1)
        if not known.all():
            return self[known].thin(voxel_m)
        if not len(self):
            return self
        cells = np.floor((self.points - self.points.min(axis=0)) / voxel_m)
        if np.prod(cells.max(axis=0) + 1.0) >= 2**62:
            raise ValueError(f"voxel_m: {voxel_m} m is too little for a cloud of {' x '.join(f'{edge:g}' for edge in np.ptp(self.points, axis=0))} m")
        _, place = np.unique(np.ravel_multi_index(cells.astype(np.int64).T, cells.max(axis=0).astype(np.int64) + 1), return_inverse=True)
        counts = np.bincount(place)

        def mean(values: Any) -> Any:
            return np.bincount(place, values) / counts

        near = self.points[0]  # sums of what is far from zero would lose digits
        points = np.column_stack([mean(self.points[:, axis] - near[axis]) for axis in range(3)]) + near
        return Cloud(points, None if self.intensity is None else mean(self.intensity))

    def transform(self, T: ArrayLike) -> Cloud:
        """The points in another frame. T: T_new_old, (4, 4) or x y z qx qy qz qw."""
        T_new_old = matrix(checked_pose(T))
        return Cloud(self.points @ T_new_old[:3, :3].T + T_new_old[:3, 3], self.intensity)
