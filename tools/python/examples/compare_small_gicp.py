#!/usr/bin/env python3
"""The same scans from the same starts through ndtd and small_gicp (pip install small_gicp), in turns, in one run.

    compare_small_gicp.py --kitti kitti0005_lite        KITTI 2011_09_26_0005: odd scans against the map of the even ones
    compare_small_gicp.py --bag drive.bag --map map.pcd --deskew time        a bag with ground truth (ndt-sim)

Each scan is deskewed once with the true motion, for all alike. Then each method thins it, aligns it from the truth plus
an offset of up to --offset, and is judged by the truth. ndtd: voxels of 0.5 m, 1500 points, map of 4, 2 and 1 m.
small_gicp: as named in the table; covariances of 10 neighbours, correspondences up to 1 m (VGICP: cells of 1 m).
"""
import argparse
import os
import time
from pathlib import Path

import numpy as np

import ndtd


# ---- scans with true poses ----


def twist_between(before, after, seconds):
    """vx vy vz wx wy wz of the sensor in its own frame."""
    moved = np.linalg.inv(before) @ after
    rotation = moved[:3, :3] - moved[:3, :3].T  # small angles
    return np.array([*moved[:3, 3], rotation[2, 1] / 2, rotation[0, 2] / 2, rotation[1, 0] / 2]) / seconds


def read_kitti(folder):
    """(map points, [(points, time_s, pose, twist)]) of the odd scans."""
    folder = Path(folder)
    stamps = np.loadtxt(folder / "times.txt")
    poses = np.tile(np.eye(4), (len(stamps), 1, 1))
    poses[:, :3] = np.loadtxt(folder / "poses_velo_lidar_refined.txt").reshape(-1, 3, 4)
    left, _, right = np.linalg.svd(poses[:, :3, :3])
    poses[:, :3, :3] = left @ right
    files, scans = sorted((folder / "scans").iterdir()), []
    for k in range(1, len(stamps) - 1, 2):
        twist = twist_between(poses[k - 1], poses[k + 1], stamps[k + 1] - stamps[k - 1])
        scans.append((ndtd.read_cloud(files[k])["points"], None, poses[k], twist))
    return ndtd.read_cloud(folder / "map_from_even_scans_0.20m.pcd"), scans


def read_bag(bag, target):
    """The same of a bag with ground truth and the sensor at the base."""
    replay, rows = ndtd.Replay(bag, target), []
    for record in (record for record in ndtd.BagReader(bag) if record.type == "scan"):
        scan = ndtd.decode_scan(record.payload)
        next(replay, None)  # reads the truth of this scan
        rows.append((scan["stamp_ns"] * 1e-9, scan, replay.truth(scan["stamp_ns"])))
    scans = []
    for (t_before, _, before), (_, scan, pose), (t_after, _, after) in zip(rows, rows[1:], rows[2:]):
        scans.append((scan["points"], scan["time_s"], pose, twist_between(before, after, t_after - t_before)))
    return ndtd.read_cloud(target), scans


def deskewed(scan, mode):
    points, time_s, _, twist = scan
    return ndtd.preprocess(points, time_s, deskew=mode, twist=twist, voxel_m=0, sample_count=0)


def offset(rng, most_m, most_deg):
    """A transform of random direction and size."""
    axis, shift = rng.normal(size=3), rng.normal(size=3)
    axis *= np.radians(most_deg) * rng.uniform() / np.linalg.norm(axis)
    out, angle = np.eye(4), np.linalg.norm(axis)
    K = np.cross(np.eye(3), axis / angle) * -1
    out[:3, :3] = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    out[:3, 3] = shift * most_m * rng.uniform() / np.linalg.norm(shift)
    return out


# ---- methods: name and threads; prepare(points) -> scan; align(scan, guess) -> (pose, says converged) ----


class Ndt:
    def __init__(self, target, threads):
        self.name = "ndtd, NDT 4-2-1 m, 1500 points"
        self._aligner = ndtd.Aligner(target, backend="cpu", threads=threads)

    def prepare(self, points):
        return ndtd.preprocess(points)

    def align(self, scan, guess):
        result = self._aligner.align(scan, guess)
        return result.pose, result.converged


class SmallGicp:
    def __init__(self, small_gicp, kind, resolution_m, target, threads):
        self.name = f"small_gicp, {kind}, scan thinned to {resolution_m:g} m"
        self._package, self._kind, self._resolution_m, self._threads = small_gicp, kind, resolution_m, threads
        self._target, self._tree = target
        if kind == "VGICP":
            self._voxels = small_gicp.GaussianVoxelMap(1.0)
            self._voxels.insert(self._target)

    def prepare(self, points):
        return self._package.preprocess_points(points.astype("f8"), downsampling_resolution=self._resolution_m,
                                               num_threads=self._threads)[0]

    def align(self, scan, guess):
        if self._kind == "VGICP":
            result = self._package.align(self._voxels, scan, guess, num_threads=self._threads, max_iterations=30)
        else:
            result = self._package.align(self._target, scan, self._tree, guess, registration_type=self._kind,
                                         num_threads=self._threads, max_iterations=30)
        return result.T_target_source, result.converged


def methods(cloud, all_threads):
    """[(method, threads)], with one map each."""
    points = cloud["points"].astype("f8") + cloud["origin"]
    target = ndtd.Map(points)
    out = [(Ndt(target, threads), threads) for threads in all_threads]
    try:
        import small_gicp
    except ImportError:
        print("small_gicp is not installed (pip install small_gicp): ndtd alone\n")
        return out
    thinned = small_gicp.preprocess_points(points, downsampling_resolution=0.25, num_threads=max(all_threads))
    for kind, resolution_m in (("GICP", 0.25), ("GICP", 0.5), ("VGICP", 0.25), ("VGICP", 0.5)):
        out += [(SmallGicp(small_gicp, kind, resolution_m, thinned, threads), threads) for threads in all_threads]
    return out


# ---- the run ----


def measure(method, points, guess, truth):
    """(error [m], error [deg], prepare [ms], align [ms])."""
    start = time.perf_counter()
    scan = method.prepare(points)
    middle = time.perf_counter()
    pose, _ = method.align(scan, guess)
    end = time.perf_counter()
    off = np.linalg.inv(truth) @ pose
    angle = np.degrees(np.arccos(np.clip((np.trace(off[:3, :3]) - 1) / 2, -1, 1)))
    return np.linalg.norm(off[:3, 3]), angle, 1e3 * (middle - start), 1e3 * (end - middle)


def compare(cloud, scans, mode, all_threads, most, rounds, seed=1):
    """{(name, threads): rows of measure}: the methods take turns, scan by scan."""
    rng = np.random.default_rng(seed)
    runs, table = methods(cloud, all_threads), {}
    for scan in scans[:2]:  # warm up
        for method, _ in runs:
            measure(method, deskewed(scan, mode), scan[2], scan[2])
    for _ in range(rounds):
        for scan in scans:
            points, guess = deskewed(scan, mode), scan[2] @ offset(rng, *most)
            for method, threads in runs:
                table.setdefault((method.name, threads), []).append(measure(method, points, guess, scan[2]))
    return {key: np.array(rows) for key, rows in table.items()}


def show(table):
    print("| method | threads | off by > 0.5 m | error p50 / p95 [cm] | [deg] | preprocess [ms] | align p50 / p95 [ms] |")
    print("|---|---|---|---|---|---|---|")
    for (name, threads), rows in table.items():
        right = rows[rows[:, 0] <= 0.5]
        (cm, cm95), (deg, deg95) = (np.percentile(right[:, k] * scale, (50, 95)) for k, scale in ((0, 100), (1, 1)))
        align, align95 = np.percentile(rows[:, 3], (50, 95))
        print(f"| {name} | {threads} | {len(rows) - len(right)} of {len(rows)} | {cm:.2f} / {cm95:.2f} | {deg:.3f} / {deg95:.3f} "
              f"| {np.median(rows[:, 2]):.2f} | {align:.2f} / {align95:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kitti", metavar="FOLDER")
    parser.add_argument("--bag")
    parser.add_argument("--map")
    parser.add_argument("--deskew", default=None, help="of the bag's scans (off)")
    parser.add_argument("--offset", type=float, nargs=2, default=(0.5, 2), metavar=("M", "DEG"), help="default: 0.5 2")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    if not args.kitti and not (args.bag and args.map):
        parser.error("--kitti FOLDER, or --bag and --map")
    cloud, scans = read_kitti(args.kitti) if args.kitti else read_bag(args.bag, args.map)
    table = compare(cloud, scans, args.deskew or ("azimuth_cw" if args.kitti else "off"), args.threads, args.offset, args.rounds)
    print(f"{len(scans)} scans, {args.rounds} starts each, up to {args.offset[0]} m and {args.offset[1]} deg off; {os.cpu_count()} cores\n")
    show(table)


if __name__ == "__main__":
    main()
