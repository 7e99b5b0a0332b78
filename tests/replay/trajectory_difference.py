#!/usr/bin/env python3
"""Compares two trajectories of one drive whose scans may have different stamps.

    trajectory_difference.py BIN_DIR A.tum A.bag B.tum B.bag

A result belongs to the stamp of its scan, so two trajectories are not compared with each other but in what they differ
from the truth of their bags, in the frame of the true pose: pose k of A against the pose of B nearest in time. Prints the
number of pairs and median, 95 % and maximum of the differences in mm and degrees.
"""
import bisect
import json
import math
import subprocess
import sys

PAIR_S = 0.075  # stamps of the same sweep differ by less


def multiply(a, b):
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (aw * bx + ax * bw + ay * bz - az * by, aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw, aw * bw - ax * bx - ay * by - az * bz)


def conjugate(q):
    return (-q[0], -q[1], -q[2], q[3])


def rotate(q, v):
    return multiply(multiply(q, (v[0], v[1], v[2], 0.0)), conjugate(q))[:3]


def interpolate(a, b, s):
    """Between two poses (x, y, z, qx, qy, qz, qw) that are close: linear, normalised quaternion."""
    sign = 1 if sum(a[i] * b[i] for i in range(3, 7)) >= 0 else -1
    q = [a[i] + s * (sign * b[i] - a[i]) for i in range(3, 7)]
    norm = math.sqrt(sum(x * x for x in q))
    return [a[i] + s * (b[i] - a[i]) for i in range(3)] + [x / norm for x in q]


def read_truth(bin_dir, bag):
    lines = subprocess.run([f"{bin_dir}/ndt-bag", "dump", bag], check=True, capture_output=True, text=True).stdout
    messages = (json.loads(line) for line in lines.splitlines())
    return sorted((m["stamp_ns"], m["pose"]) for m in messages if m["type"] == "truth")


def true_pose(truth, stamps, stamp_ns):
    at = min(max(bisect.bisect_left(stamps, stamp_ns), 1), len(truth) - 1)
    (t0, a), (t1, b) = truth[at - 1], truth[at]
    return interpolate(a, b, (stamp_ns - t0) / (t1 - t0))


def read_errors(bin_dir, tum, bag):
    """Stamp [s], error in the frame of the true pose [m], rotation error as a quaternion."""
    truth = read_truth(bin_dir, bag)
    stamps = [stamp for stamp, _ in truth]
    rows = []
    with open(tum, encoding="ascii") as file:
        for line in file:
            if line.startswith("#"):
                continue
            text, *numbers = line.split()
            seconds, _, fraction = text.partition(".")
            pose = [float(x) for x in numbers]
            true = true_pose(truth, stamps, int(seconds) * 10**9 + int((fraction + "0" * 9)[:9]))
            back = conjugate(true[3:])
            rows.append((float(text), rotate(back, [pose[i] - true[i] for i in range(3)]), multiply(back, pose[3:])))
    return rows


def compare(a, b):
    times = [row[0] for row in b]
    for time, error, turn in a:
        at = min(range(max(bisect.bisect(times, time) - 2, 0), min(bisect.bisect(times, time) + 2, len(b))),
                 key=lambda i: abs(times[i] - time))
        if abs(times[at] - time) > PAIR_S:
            continue
        off = multiply(conjugate(turn), b[at][2])
        angle = 2 * math.degrees(math.atan2(math.sqrt(sum(x * x for x in off[:3])), abs(off[3])))
        yield 1e3 * math.dist(error, b[at][1]), angle


def quantile(values, p):
    values = sorted(values)
    return values[min(int(p * len(values)), len(values) - 1)]


def main():
    bin_dir, *files = sys.argv[1:]
    a, b = read_errors(bin_dir, *files[:2]), read_errors(bin_dir, *files[2:])
    pairs = list(compare(a, b))
    if not pairs:
        sys.exit("no pair of poses")
    moved, turned = zip(*pairs)
    print(len(pairs), *(f"{quantile(moved, p):.4f}" for p in (0.5, 0.95, 1)),
          *(f"{quantile(turned, p):.5f}" for p in (0.5, 0.95, 1)))


if __name__ == "__main__":
    main()
