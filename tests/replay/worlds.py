#!/usr/bin/env python3
"""Simulated worlds that are hard to localise in, as a table (standard library only).

    worlds.py BIN_DIR [--rows NAME,NAME...] [--seeds FIRST-LAST] [--scans N] [--jobs N] [--drives DIR] [--json FILE]
              [--most-evaluations N] [--wrong-maps] [-- OPTIONS OF ndtd...]

Columns: scans; converged; off: the pose is more than 1 m or 5 deg from the truth, whatever its outcome; wrong: off, and
`converged`, `tracking`, or aligned and `coasting` all the same; right but declined: not off, and not converged; belief: median and
longest time until a scan converges [s], and drives in which none does; evaluations per scan; milliseconds of alignment,
p50 and p99. The exit status is 1 where a scan is wrong. --drives keeps what ndt-sim wrote there, for the next run;
--json writes the figures of every drive. --wrong-maps replays every drive without a first pose in the map of the next
seed, where no pose is right.
"""
import argparse
import concurrent.futures
import csv
import json
import math
import os
import subprocess
import sys
import tempfile

LIMIT_M, LIMIT_DEG = 1.0, 5.0
HAND, NO_POSE = "--carrier handheld", "initial_pose.mode=search"
HANGING = "frames.T_base_sensor=[0,0,0.2,0.9659258,0,-0.2588190,0]"  # roll 180 deg, pitch 30 deg
# name: options of ndt-sim, options of ndtd. A pose that is given is exact, unless it says otherwise.
ROWS = {
    "office, 1 Hz, other day": (f"--world office {HAND} --rate 1 --columns 900 --changed 0.4", ""),
    "office, 1 Hz, another day yet": (f"--world office {HAND} --rate 1 --columns 900 --changed 0.8", ""),
    "dormitory, 1 Hz": (f"--world dormitory {HAND} --rate 1 --columns 900", ""),
    "dormitory, 1 Hz, other day": (f"--world dormitory {HAND} --rate 1 --columns 900 --changed 0.4", ""),
    "office, 2 Hz, 120 deg, 30 m": (f"--world office {HAND} --rate 2 --view 120 --range 30 --changed 0.4", ""),
    "the same, no first pose": (f"--world office {HAND} --rate 2 --view 120 --range 30 --changed 0.4", NO_POSE),
    "hall, 5 Hz, 120 deg, no first pose": (f"--world hall {HAND} --rate 5 --view 120 --columns 1200", NO_POSE),
    "hall, 2 Hz": (f"--world hall {HAND}", ""),
    "hall, 2 Hz, other day, 16 beams": (f"--world hall {HAND} --beams 16 --changed 0.4", ""),
    "hall, 2 Hz, 70 deg": (f"--world hall {HAND} --view 70", ""),
    "hall, 2 Hz, 70 deg, gaps": (f"--world hall {HAND} --view 70 --gaps 6", ""),
    "hall, 0.5 Hz, 128 beams": (f"--world hall {HAND} --rate 0.5 --beams 128 --columns 600", ""),
    "hall, upside down, 30 deg tilted": (f"--world hall {HAND} --mount 0,0,0.2,180,30,0", HANGING),
    "campus, 5 Hz, other day": (f"--world street {HAND} --rate 5 --columns 900 --changed 0.5", ""),
    "street, 10 Hz, other day": ("--world street --columns 900 --changed 0.8", ""),
    "street, 1 Hz, 16 beams": ("--world street --rate 1 --beams 16 --columns 900", ""),
    "street, sparse map": ("--world street --columns 900 --map-spacing 0.5 --changed 0.3", ""),
    "map of one scan": (f"--world hall {HAND} --rate 5 --map-scans 1", ""),
}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
    return done.stdout


def truths_of(bin_dir, bag):
    lines = run([f"{bin_dir}/ndt-bag", "dump", bag, "--type", "truth"]).splitlines()
    return {message["stamp_ns"]: message["pose"] for message in map(json.loads, lines)}


def is_right(row, truth):
    try:
        pose = [float(row[key]) for key in ("tx", "ty", "tz", "qx", "qy", "qz", "qw")]
    except ValueError:
        return False
    cosine = min(1.0, abs(sum(p * q for p, q in zip(pose[3:], truth[3:]))))
    return math.dist(pose[:3], truth[:3]) <= LIMIT_M and math.degrees(2 * math.acos(cosine)) <= LIMIT_DEG


def figures_of(timing, truths, is_wrong_map):
    with open(timing, encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["row"] == "scan" and int(row["stamp_ns"]) in truths]
    right = [not is_wrong_map and is_right(row, truths[int(row["stamp_ns"])]) for row in rows]
    is_converged = [row["outcome"] == "converged" for row in rows]
    is_claimed = [good or row["state"] == "tracking" or (row["state"] == "coasting" and int(row["evaluations"] or 0) > 0)
                  for good, row in zip(is_converged, rows)]
    first = next((i for i, good in enumerate(is_converged) if good), None)
    return {"scans": len(rows), "converged": sum(is_converged), "off": right.count(False),
            "wrong": sum(claimed and not good for claimed, good in zip(is_claimed, right)),
            "declined": sum(good and not said for said, good in zip(is_converged, right)),
            "belief_s": None if first is None else (int(rows[first]["stamp_ns"]) - int(rows[0]["stamp_ns"])) * 1e-9,
            "evaluations": [int(row["evaluations"] or 0) for row in rows],
            "align_ms": [float(row["align_us"] or 0) * 1e-3 for row in rows],
            "confidence": [[float(row["confidence"] or "nan"), good] for row, good in zip(rows, right)]}


def simulated(args, folder, sim, seed):
    """The folder of a drive, which another process may be about to make as well."""
    place = os.path.join(folder, "".join(c if c.isalnum() else "-" for c in f"{sim} {args.scans} {seed}").strip("-"))
    if not os.path.exists(place):
        with tempfile.TemporaryDirectory(dir=folder) as work:
            run([f"{args.bin_dir}/ndt-sim", "--seed", str(seed), "--scans", str(args.scans), "--out", f"{work}/new",
                 *sim.split()])
            try:
                os.rename(f"{work}/new", place)
            except OSError:
                if not os.path.exists(place):
                    raise
    return place


def drive(job):
    args, options, folder, name, seed = job
    sim, more = ROWS[name]
    bag = simulated(args, folder, sim, seed) + "/drive.bag"
    map_path = simulated(args, folder, sim, seed + args.wrong_maps) + "/map.pcd"
    sets = ["preprocess.deskew=time", *([more] if more else []), *([NO_POSE] if args.wrong_maps and more != NO_POSE else [])]
    with tempfile.NamedTemporaryFile(suffix=".csv") as timing:
        run([f"{args.bin_dir}/ndtd", "--replay", bag, "--map", map_path, "--threads", "1", "--timing", timing.name,
             *(word for text in sets for word in ("--set", text)), *options])
        return name, seed, figures_of(timing.name, truths_of(args.bin_dir, bag), args.wrong_maps)


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else math.nan


def line(name, drives):
    total = {key: sum(d[key] for d in drives) for key in ("scans", "converged", "off", "wrong", "declined")}
    belief = [d["belief_s"] for d in drives if d["belief_s"] is not None]
    evaluations = [count for d in drives for count in d["evaluations"]]
    align_ms = [ms for d in drives for ms in d["align_ms"]]
    return (f"| {name} | {total['scans']} | {total['converged']} | {total['off']} | {total['wrong']} | {total['declined']} | "
            f"{quantile(belief, 0.5):.1f} / {max(belief, default=math.nan):.1f} / {len(drives) - len(belief)} | "
            f"{sum(evaluations) / max(1, len(evaluations)):.1f} | {quantile(align_ms, 0.5):.1f} / {quantile(align_ms, 0.99):.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("--rows")
    parser.add_argument("--seeds", default="1-2")
    parser.add_argument("--scans", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--drives")
    parser.add_argument("--json")
    parser.add_argument("--most-evaluations", type=float, help="exit status 1 where scans need more, on average")
    parser.add_argument("--wrong-maps", action="store_true")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args = parser.parse_args(sys.argv[1:end])
    names = [name for name in ROWS if not args.rows or any(part in name for part in args.rows.split(";"))]
    first, _, last = args.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    with tempfile.TemporaryDirectory() as work:
        folder = args.drives or work
        os.makedirs(folder, exist_ok=True)
        jobs = [(args, sys.argv[end + 1:], folder, name, seed) for name in names for seed in seeds]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            results = list(pool.map(drive, jobs))
    print("| world | scans | converged | off | wrong | declined | belief [s] | evaluations | align [ms] |\n|" + "---|" * 9)
    for name in names:
        print(line(name, [figures for of, _, figures in results if of == name]))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump([[name, seed, figures] for name, seed, figures in results], file)
    costs = [count for _, _, figures in results for count in figures["evaluations"]]
    is_dear = args.most_evaluations is not None and sum(costs) > args.most_evaluations * len(costs)
    return int(is_dear or any(figures["wrong"] for _, _, figures in results))


if __name__ == "__main__":
    sys.exit(main())
