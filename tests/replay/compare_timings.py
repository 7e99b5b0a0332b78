#!/usr/bin/env python3
"""compare_timings.py A.csv B.csv: compares two replays of one drive that differ in the stamps of the scans.

Results are poses at the stamps. To compare poses of the same moment, the estimate at the reference moment of the
sweep is taken from the files of --timing, as it was before it was carried to the stamp. Where the reference moments
differ (up to 1 ms: field and azimuth see another first point), the second pose is carried on to that of the first by
its twist, T(t + dt) = T(t) Exp(twist dt). Scans belong together by that moment; those whose points went with another
scan are left out.
Prints: scans, scans that did not converge, largest distance [mm], largest angle [deg], largest difference of the
reference moments [us]."""
import csv
import math
import sys

def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def times(a, b):
    """Product of quaternions x y z w."""
    v = cross(a[:3], b[:3])
    return tuple(a[3] * b[i] + b[3] * a[i] + v[i] for i in range(3)) + (a[3] * b[3] - sum(a[i] * b[i] for i in range(3)),)


def turn(q, v):
    t = tuple(2 * x for x in cross(q[:3], v))
    c = cross(q[:3], t)
    return tuple(v[i] + q[3] * t[i] + c[i] for i in range(3))


def compose(a, b):
    moved = turn(a[1], b[0])
    return (tuple(a[0][i] + moved[i] for i in range(3)), times(a[1], b[1]))


def exponential(twist, dt):
    v, w = [tuple(x * dt for x in twist[i:i + 3]) for i in (0, 3)]
    angle = math.sqrt(sum(x * x for x in w))
    small = angle < 1e-4
    b = 0.5 - angle * angle / 24 if small else (1 - math.cos(angle)) / angle**2
    c = 1 / 6 - angle * angle / 120 if small else (angle - math.sin(angle)) / angle**3
    half = 0.5 - angle * angle / 48 if small else math.sin(angle / 2) / angle
    wv = cross(w, v)
    wwv = cross(w, wv)
    return (tuple(v[i] + b * wv[i] + c * wwv[i] for i in range(3)), tuple(half * x for x in w) + (math.cos(angle / 2),))


def read(path):
    scans = []
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["row"] != "scan" or row["outcome"] == "merged":
                continue
            number = {key: float(row[key] or 0) for key in row if key not in ("row", "outcome", "state", "stamp_ns")}
            pose = tuple(tuple(number["reference_" + k] for k in keys) for keys in (("tx", "ty", "tz"), ("qx", "qy", "qz", "qw")))
            twist = tuple(number[k] for k in ("vx", "vy", "vz", "wx", "wy", "wz"))
            moment_us = int(row["stamp_ns"]) // 1000 + round(number["reference_s"] * 1e6)
            scans.append((moment_us, pose, twist, row["outcome"]))
    return sorted(scans)


def main():
    first, second = read(sys.argv[1]), read(sys.argv[2])
    if len(first) != len(second):
        print(f"the replays have {len(first)} and {len(second)} scans", file=sys.stderr)
        return 1
    distance = angle = shift = lost = 0
    for (moment_us, pose, _, outcome), (other_us, other, twist, other_outcome) in zip(first, second):
        lost += (outcome != "converged") + (other_outcome != "converged")
        between_us = moment_us - other_us
        if abs(between_us) > 1000:
            print(f"the reference moments of two scans are {between_us} us apart", file=sys.stderr)
            return 1
        other = compose(other, exponential(twist, between_us * 1e-6))
        back = tuple(-x for x in pose[1][:3]) + (pose[1][3],)
        q = times(back, other[1])
        distance = max(distance, math.dist(pose[0], other[0]))
        angle = max(angle, 2 * math.atan2(math.sqrt(sum(x * x for x in q[:3])), abs(q[3])))
        shift = max(shift, abs(between_us))
    print(f"{len(first)} {lost} {distance * 1e3:.4f} {math.degrees(angle):.6f} {shift}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
