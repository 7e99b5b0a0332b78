#!/usr/bin/env python3
"""Protection levels against the truth of simulated drives, as a table (standard library only).

    protection.py BIN_DIR [--rows NAME;NAME...] [--seeds FIRST-LAST] [--scans N] [--risk P] [--limit M] [--drives DIR]

Columns: scans; with a level; misleading: an error above its level, lateral, longitudinal, vertical, heading; safe: of these scans
not `unsafe`; largest error over its level; share of the scans whose horizontal level is at most 0.3, 0.5 and 1.0 m; their median
level, lateral and longitudinal [m]. Rows whose fault is everywhere are outside of the promise (docs/integrity.md), and are told
apart. The exit status is 1 where a row within the promise has a misleading scan, or no row within it has a level. The last lines are
the sums, with the exact upper bound of the share of misleading scans at 95 % if scans were independent (Clopper and Pearson 1934).
"""
import argparse
import array
import csv
import math
import os
import random
import statistics
import sys
import tempfile
from typing import NamedTuple

from worlds import BOTH, HAND, dump, run, simulated

AVAILABLE_M = (0.3, 0.5, 1.0)
HALF_M, BESIDE_M = 15, 12  # of a shifted block: half its edge, and how far its middle is from that of the drive


class Row(NamedTuple):
    sim: str  # options of ndt-sim
    ndtd: str = ""  # an option of ndtd
    wall: bool = False  # a wall moves along for 2 s
    shifted_m: float = 0  # of a block of the map
    is_promised: bool = True


ROWS = {
    "street": Row("--world street --columns 900"),
    "street, odometry and IMU": Row(f"--world street {BOTH}"),
    "street, other day": Row("--world street --columns 900 --changed 0.5"),
    "street, another day, 16 beams": Row("--world street --beams 16 --columns 900 --changed 0.8"),
    "street, sparse map": Row("--world street --columns 900 --map-spacing 0.5 --changed 0.3"),
    "street, 120 deg": Row("--world street --columns 900 --view 120"),
    "street, a wall along": Row("--world street --columns 900", wall=True),
    "corridor": Row("--world corridor --columns 600"),
    "corridor, odometry and IMU": Row(f"--world corridor {BOTH}"),
    "corridor, wheels tell 0.5": Row(f"--world corridor {BOTH} --wheel-scale 0.5"),
    "corridor, a wall along": Row("--world corridor --columns 600", wall=True),
    "shelves, odometry and IMU": Row(f"--world shelves {BOTH}"),
    "parking": Row("--world parking --columns 600"),
    "terrace": Row("--world terrace --columns 600"),
    "terrace, wheels tell 0.5": Row(f"--world terrace {BOTH} --wheel-scale 0.5"),
    "hall": Row(f"--world hall {HAND}"),
    "hall, other day, 16 beams": Row(f"--world hall {HAND} --beams 16 --changed 0.4"),
    "hall, 70 deg, gaps": Row(f"--world hall {HAND} --view 70 --gaps 6"),
    "office, 10 Hz": Row(f"--world office {HAND} --rate 10 --columns 600"),
    "office, 10 Hz, odometry, other day": Row(f"--world office {HAND} --rate 10 {BOTH} --changed 0.4"),
    "dormitory, 5 Hz": Row(f"--world dormitory {HAND} --rate 5 --columns 600"),
    "furnished, 10 Hz, 120 deg": Row(f"--world furnished {HAND} --rate 10 --columns 900 --view 120 --changed 0.2"),
    "street, block of 30 m shifted 0.3 m": Row("--world street --columns 900", shifted_m=0.3, is_promised=False),
    "street, block of 30 m shifted 0.6 m": Row("--world street --columns 900", shifted_m=0.6, is_promised=False),
    "corridor, block of 30 m shifted 0.3 m": Row("--world corridor --columns 600", shifted_m=0.3, is_promised=False),
    "hall, block of 30 m shifted 0.3 m": Row(f"--world hall {HAND}", shifted_m=0.3, is_promised=False),
    "street, sensor turned 0.5 deg": Row("--world street --columns 900", "frames.T_base_sensor=[0,0.05,0,0,0,0.00436,0.99999]",
                                         is_promised=False),
}


class Scan(NamedTuple):
    errors: list  # lateral, longitudinal, vertical [m], heading [rad]
    levels: list
    is_unsafe: bool


def shift_block(source, target, middle, shift_m):
    """A map (binary PCD, floats x y z first), of which a square block is shifted."""
    with open(source, "rb") as file:
        data = file.read()
    at = data.index(b"DATA binary\n") + len(b"DATA binary\n")
    header = dict(line.split(" ", 1) for line in data[:at].decode().splitlines() if " " in line)
    width = len(header["FIELDS"].split())
    values = array.array("f", data[at:at + 4 * width * int(header["POINTS"])])
    for i in range(0, len(values), width):
        if abs(values[i] - middle[0]) <= HALF_M and abs(values[i + 1] - middle[1]) <= HALF_M:
            values[i] += shift_m[0]
            values[i + 1] += shift_m[1]
    with open(target, "wb") as file:
        file.write(data[:at] + values.tobytes())


def rotation(q):
    x, y, z, w = q
    return [[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]


def errors_of(pose, truth):
    """In the axes of the base."""
    R, T = rotation(pose[3:]), rotation(truth[3:])
    off = [sum(R[k][i] * (truth[k] - pose[k]) for k in range(3)) for i in range(3)]
    D = [[sum(R[k][i] * T[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
    angle = math.acos(max(-1.0, min(1.0, (D[0][0] + D[1][1] + D[2][2] - 1) / 2)))
    per_sine = angle / (2 * math.sin(angle)) if 1e-9 < angle < 3 else 0.5
    return [abs(off[1]), abs(off[0]), abs(off[2]), abs(per_sine * (D[1][0] - D[0][1]))]


def read(timing, truths):
    out = []
    with open(timing, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["row"] != "scan" or int(row["stamp_ns"]) not in truths:
                continue
            pose = [float(row[key] or "nan") for key in ("tx", "ty", "tz", "qx", "qy", "qz", "qw")]
            levels = [float(row["protection_" + key]) for key in ("lateral", "longitudinal", "vertical", "heading")]
            out.append(Scan(errors_of(pose, truths[int(row["stamp_ns"])]), [math.inf if math.isnan(one) else one for one in levels],
                            row["unsafe"] == "1"))
    return out


def drive(args, folder, row, seed):
    place = simulated(args, folder, row.sim, seed)
    bag, map_path = f"{place}/drive.bag", f"{place}/map.pcd"
    truths = {message["stamp_ns"]: message["pose"] for message in dump(args.bin_dir, bag, "truth")}
    with tempfile.TemporaryDirectory() as work:
        if row.wall:
            first, last = min(truths), max(truths)
            run([f"{args.bin_dir}/ndt-bag", "cut", bag, "--out", f"{work}/cut.bag", "--wall", f"{(last - first) * 0.25e-9:.1f}:2"])
            bag = f"{work}/cut.bag"
        if row.shifted_m:
            chance, middle = random.Random(seed), list(truths.values())[len(truths) // 2]
            beside = [middle[k] + chance.uniform(-BESIDE_M, BESIDE_M) for k in range(2)]
            angle = chance.uniform(0, 2 * math.pi)
            shift_block(map_path, f"{work}/map.pcd", beside, (row.shifted_m * math.cos(angle), row.shifted_m * math.sin(angle)))
            map_path = f"{work}/map.pcd"
        sets = ["preprocess.deskew=time", f"integrity.risk={args.risk}", f"integrity.alert_limit_m={args.limit}", row.ndtd]
        run([f"{args.bin_dir}/ndtd", "--replay", bag, "--map", map_path, "--threads", "1", "--timing", f"{work}/timing.csv",
             *(word for text in sets if text for word in ("--set", text))])
        return read(f"{work}/timing.csv", truths)


def most_share(events, count):
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        log_terms = (math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * math.log(middle)
                     + (count - k) * math.log1p(-middle) for k in range(events + 1))
        low, high = (middle, high) if sum(map(math.exp, log_terms)) > 0.05 else (low, middle)
    return high


def line(name, scans):
    known = [scan for scan in scans if math.isfinite(scan.levels[0])]
    above = [[error > level for error, level in zip(scan.errors, scan.levels)] for scan in known]
    misleading = [sum(column) for column in zip(*above)] or [0] * 4
    safe = sum(any(one) and not scan.is_unsafe for one, scan in zip(above, known))
    ratio = max((error / level for scan in known for error, level in zip(scan.errors, scan.levels)), default=0)
    available = [sum(math.hypot(*scan.levels[:2]) <= limit for scan in known) / max(1, len(scans)) for limit in AVAILABLE_M]
    median = [statistics.median(scan.levels[k] for scan in known) if known else math.nan for k in range(2)]
    print(f"| {name} | {len(scans)} | {len(known)} | {' '.join(map(str, misleading))} | {safe} | {ratio:.2f} | "
          f"{' '.join(f'{share:.0%}' for share in available)} | {median[0]:.2f} {median[1]:.2f} |", flush=True)
    return len(known), sum(map(any, above))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("--rows")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--scans", type=int, default=60)
    parser.add_argument("--risk", default="1e-5")
    parser.add_argument("--limit", default="0.5")
    parser.add_argument("--drives")
    args = parser.parse_args()
    first, _, last = args.seeds.partition("-")
    sums = {True: [0, 0], False: [0, 0]}
    print("| world | scans | with a level | misleading | safe | largest ratio | within 0.3, 0.5, 1.0 m | median |\n|" + "---|" * 8)
    with tempfile.TemporaryDirectory() as work:
        folder = args.drives or work
        os.makedirs(folder, exist_ok=True)
        for name, row in ROWS.items():
            if args.rows and not any(part in name for part in args.rows.split(";")):
                continue
            scans = [scan for seed in range(int(first), int(last or first) + 1) for scan in drive(args, folder, row, seed)]
            known, misleading = line(name, scans)
            sums[row.is_promised][0] += known
            sums[row.is_promised][1] += misleading
    for is_promised, (known, misleading) in sums.items():
        where = "within the promise" if is_promised else "outside of it"
        most = f", at most {most_share(misleading, known):.2g}" if known else ""
        print(f"{where}: {misleading} misleading of {known} scans with a level{most}")
    levels, misleading = sums[True]
    return int(misleading > 0 or levels == 0)


if __name__ == "__main__":
    sys.exit(main())
