#!/usr/bin/env python3
"""Publishes one scan and prints the pose of the result.

    example.py [SCAN] [--initial x,y,z,qx,qy,qz,qw] [--scans E] [--poses E] [--control E] [--timeout S]

SCAN: .pcd (ascii or binary), .bin (KITTI: float32 x y z intensity) or .npy (N x 3, 4 or 5: x y z intensity time);
without it a synthetic room is published.
Exit status 0 when the result converged, 1 otherwise.
"""
import argparse
import signal
import sys
import time

import numpy as np

from ndtd_client import Client


def read_pcd(path):
    with open(path, "rb") as file:
        head = {}
        while "DATA" not in head:
            line = file.readline()
            if not line:
                sys.exit(f"{path}: the header has no DATA line")
            key, *words = line.decode("ascii", "replace").split() or ["#"]
            head[key] = words
        names, count = head["FIELDS"], int(head["POINTS"][0])
        if any(int(n) != 1 for n in head.get("COUNT", [])):
            sys.exit(f"{path}: fields with several elements are not supported by this example")
        if head["DATA"] == ["ascii"]:
            columns = dict(zip(names, np.loadtxt(file, ndmin=2).T))
        elif head["DATA"] == ["binary"]:
            kinds = [f"<{kind.lower()}{size}" for kind, size in zip(head["TYPE"], head["SIZE"])]
            columns = np.frombuffer(file.read(), dtype=list(zip(names, kinds)), count=count)
        else:
            sys.exit(f"{path}: DATA {' '.join(head['DATA'])} is not supported by this example")
    zeros = np.zeros(count)
    wanted = [columns[name] if name in names else zeros for name in ("x", "y", "z", "intensity")]
    return np.column_stack(wanted + ([columns["time"]] if "time" in names else []))


def read_scan(path):
    if path is None:
        return synthetic_room()
    if path.endswith(".pcd"):
        return read_pcd(path)
    if path.endswith(".bin"):
        return np.fromfile(path, dtype="<f4").reshape(-1, 4)
    return np.load(path)


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
    with Client(args.scans, args.poses, args.control) as ndtd:
        ndtd.wait_ready(args.timeout)
        if args.initial:
            ndtd.publish_initial_pose([float(word) for word in args.initial.split(",")], stamp_ns)
        seq = ndtd.publish_scan(points[:, :4], stamp_ns, time_s=points[:, 4] if points.shape[1] > 4 else None)
        for result in ndtd.results(args.timeout):
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
        print(f"example.py: {reason}", file=sys.stderr)
        sys.exit(2)
