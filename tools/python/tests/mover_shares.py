"""Shares of moving points in maps of drives that ndt-sim has marked (--mark-movers --truth 1000).

    python mover_shares.py DRIVE.bag PLAIN CLEAN     # maps of ndt-map build, without and with --clean
"""
import sys
from pathlib import Path

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


def main(bag, plain, clean):
    """Prints what the map without movers has of both kinds, compared with the other one."""
    marked = marked_points(bag, Path(plain) / "poses.tum")
    movers, still = counts(marked, Path(plain) / "map.pcd")
    movers_left, still_left = counts(marked, Path(clean) / "map.pcd")
    print(f"movers: {movers} -> {movers_left}, {1 - movers_left / max(movers, 1):.1%} gone; "
          f"what stands still: {still} -> {still_left}, {1 - still_left / still:.3%} gone")
    moved = Path(clean) / "moved.pcd"
    if moved.exists():
        out_movers, out_still = counts(marked, moved)
        print(f"moved.pcd: {out_movers} points of movers, {out_still} others, {out_movers / (out_movers + out_still):.1%} right")


if __name__ == "__main__":
    main(*sys.argv[1:])
