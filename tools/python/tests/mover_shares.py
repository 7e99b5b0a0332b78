"""Shares of moving points in maps of drives that ndt-sim has marked (--mark-movers --truth 1000)."""
import numpy as np
from drive_bags import scans_of, truth_of
from scipy.spatial import cKDTree

import ndtd
from ndtd.mapping import given, se3


def cloud_of(path):
    found = ndtd.read_cloud(path)
    return found["points"].astype(np.float64) + found["origin"]


def marked_points(bag, poses):
    """All that the scans measured, in the frame of the map, and whether it was on a mover."""
    truth, scans = truth_of(bag), {scan["stamp_ns"]: scan for scan in scans_of(bag)}
    points, moves = [], []
    stamps_ns = np.array(sorted(truth))
    T = np.array([truth[stamp_ns] for stamp_ns in stamps_ns])
    for stamp_ns, T_map in zip(*given.read_tum(poses)):
        scan = scans[stamp_ns]
        at = np.minimum(np.searchsorted(stamps_ns, stamp_ns + (1e9 * scan["time_s"]).astype(np.int64)), len(T) - 1)
        measured = np.einsum("nij,nj->ni", T[at, :3, :3], scan["points"]) + T[at, :3, 3]
        points.append(se3.apply(T_map @ se3.inverse(truth[stamp_ns]), measured))
        moves.append(scan["intensity"] < 0)
    return np.concatenate(points), np.concatenate(moves)


def counts(marked, path):
    """Points of a cloud on movers, and on what stands still: as the nearest measured point is."""
    points, moves = marked
    cloud = cloud_of(path)
    if not moves.any():
        return 0, len(cloud)
    is_mover = cKDTree(points[moves]).query(cloud)[0] < cKDTree(points[~moves]).query(cloud)[0]
    return int(is_mover.sum()), int((~is_mover).sum())
