#!/usr/bin/env python3
"""Publishes one scan and prints the pose of the result.

    drive_daemon.py [SCAN] [--initial x,y,z,qx,qy,qz,qw] [--scans E] [--poses E] [--control E] [--timeout S]

SCAN: .pcd, .ply, .bin (KITTI: float32 x y z intensity) or .npy (N x 3, 4 or 5: x y z intensity time); without it a
synthetic room is published. Exit status 0 when the result converged, 1 otherwise.
"""
import argparse
import signal
import sys
import time

import numpy as np

import ndtd


def read_scan(path):
    if path is None:
        return synthetic_room()
    if path.endswith(".npy"):
        return np.load(path)
    cloud = ndtd.read_cloud(path)
    columns = [cloud["points"]] + [values for values in (cloud["intensity"], cloud["time_s"]) if values is not None]
    if cloud["time_s"] is not None and cloud["intensity"] is None:
        columns.insert(1, np.zeros(len(cloud["points"])))
    return np.column_stack(columns)


def synthetic_room():
    """Four walls of 20 m by 12 m and a floor, seen from 1.7 m above it."""
    across = np.linspace(-1, 1, 200)
    a, b = (values.ravel() for values in np.meshgrid(across, np.linspace(-1.7, 2, 20)))
    walls = [np.column_stack([10 * a, np.full_like(a, side * 6), b]) for side in (-1, 1)]
    walls += [np.column_stack([np.full_like(a, side * 10), 6 * a, b]) for side in (-1, 1)]
    x, y = (values.ravel() for values in np.meshgrid(10 * across, 6 * across))
    return np.vstack(walls + [np.column_stack([x, y, np.full_like(x, -1.7)])])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scan", nargs="?")
    parser.add_argument("--initial", default="", metavar="POSE", help="publish this initial pose first")
    for name in ("scans", "poses", "control"):
        parser.add_argument(f"--{name}", metavar="ENDPOINT")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="S")
    return parser.parse_args()


def main():
    args = parse_arguments()
    points = read_scan(args.scan)
    stamp_ns = time.monotonic_ns()
    with ndtd.Client(args.scans, args.poses, args.control) as daemon:
        daemon.wait_ready(args.timeout)
        if args.initial:
            daemon.publish_initial_pose(stamp_ns, [float(word) for word in args.initial.split(",")])
        seq = daemon.publish_scan(stamp_ns, points[:, :4], time_s=points[:, 4] if points.shape[1] > 4 else None)
        for result in daemon.results(args.timeout):
            if (result["seq"], result["stamp_ns"]) == (seq, stamp_ns):  # another client's last result may come first
                print(result["outcome"], result["reason"], *result.get("pose", []))
                return 0 if result["outcome"] == "converged" else 1
    print("no result", file=sys.stderr)
    return 1


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a closed pipe ends it without a word
    try:
        sys.exit(main())
    except TimeoutError as reason:
        sys.exit(f"{reason}: is ndtd running?")
    except (OSError, ValueError) as reason:
        print(f"drive_daemon.py: {reason}", file=sys.stderr)
        sys.exit(2)
