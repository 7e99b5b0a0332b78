#!/usr/bin/env python3
"""Drives that are hard to localise in, replayed and compared with the truth, as a table (standard library only).

    worlds.py BIN_DIR [--set NAME] [--rows NAME;NAME...] [--seeds FIRST-LAST] [--scans N] [--starts LIST] [--quick]
              [--jobs N] [--drives DIR] [--json FILE] [--most-evaluations N]
              [--least-converged N] [--most-off N] [--wrong-maps] [-- OPTIONS OF ndtd...]

Sets of rows; --rows takes those whose name contains one of the texts:
  worlds   other days, views and rates of the scans, hanging sensors, sparse maps
  alike    places that look alike one step aside, from first poses ALONG:ACROSS:YAW off [m, deg]: --starts
  lies     odometry that stands still, tells half or twice the speed, or runs backwards
  stress   what a tracker gets lost on, without odometry: walks with gaps and narrow views and, with NDT_SHARED_DATA, the
           odd scans of KITTI drives: scans left out, first poses wrong by 10 m and 180 deg, a wall that moves along for
           2 s, a block of the map turned; --quick takes the first of each kind

Columns: scans; converged; off: the pose is more than 1 m or 5 deg from the truth, whatever its outcome; wrong: off, and
`converged`, `tracking`, or aligned and `coasting` all the same (alike: or `coasting` at all); right but declined: not off,
and not converged; belief: median and longest time until a scan converges [s], and drives in which none does; evaluations
per scan; milliseconds of alignment, p50 and p99; back, after a disturbance: replays that are within 1 s, of how many, and
after how many seconds, median and longest: from there three right scans in a row converge and track. The exit status is 1
where a scan is wrong, or where a drive from the true pose loses more scans than its row allows. --drives keeps what ndt-sim
wrote there, for the next run; --json writes the figures of every drive. --wrong-maps replays every drive without a first
pose in the map of the next seed, where no pose is right.
"""
import argparse
import array
import concurrent.futures
import csv
import functools
import json
import math
import os
import subprocess
import sys
import tempfile
from typing import NamedTuple

LIMIT_M, LIMIT_DEG, IN_A_ROW, SOON_S = 1.0, 5.0, 3, 1.001
HAND, NO_POSE = "--carrier handheld", "initial_pose.mode=search"
HANGING = "frames.T_base_sensor=[0,0,0.2,0.9659258,0,-0.2588190,0]"  # roll 180 deg, pitch 30 deg
BOTH = "--columns 600 --odometry --imu 100"


class Row(NamedTuple):
    """What a drive is made of. A pose that is given is exact, unless it says otherwise."""
    sim: str  # options of ndt-sim
    ndtd: str = ""  # an option of ndtd
    cut: str = ""  # options of ndt-bag cut
    most_lost: float = math.inf  # scans that do not converge from the true pose


WORLDS = {
    "office, 1 Hz, other day": Row(f"--world office {HAND} --rate 1 --columns 900 --changed 0.4"),
    "office, 1 Hz, another day yet": Row(f"--world office {HAND} --rate 1 --columns 900 --changed 0.8"),
    "dormitory, 1 Hz": Row(f"--world dormitory {HAND} --rate 1 --columns 900"),
    "dormitory, 1 Hz, other day": Row(f"--world dormitory {HAND} --rate 1 --columns 900 --changed 0.4"),
    "office, 2 Hz, 120 deg, 30 m": Row(f"--world office {HAND} --rate 2 --view 120 --range 30 --changed 0.4"),
    "the same, no first pose": Row(f"--world office {HAND} --rate 2 --view 120 --range 30 --changed 0.4", NO_POSE),
    "office, 2 Hz, odometry and IMU": Row(f"--world office {HAND} --rate 2 {BOTH} --changed 0.4"),
    "office, 2 Hz, IMU": Row(f"--world office {HAND} --rate 2 --columns 600 --imu 100 --changed 0.4"),
    "office, 10 Hz": Row(f"--world office {HAND} --rate 10 --columns 600"),
    "office, 10 Hz, IMU": Row(f"--world office {HAND} --rate 10 --columns 600 --imu 100"),
    "office, 10 Hz, odometry and IMU": Row(f"--world office {HAND} --rate 10 {BOTH}"),
    "dormitory, 5 Hz": Row(f"--world dormitory {HAND} --rate 5 --columns 600"),
    "furnished, 5 Hz, 120 deg": Row(f"--world furnished {HAND} --rate 5 --columns 900 --view 120 --changed 0.2"),
    "furnished, 10 Hz, 120 deg": Row(f"--world furnished {HAND} --rate 10 --columns 900 --view 120 --changed 0.2"),
    "furnished, 2 Hz": Row(f"--world furnished {HAND} --rate 2 --columns 900 --changed 0.2"),
    "furnished, 2 Hz, odometry and IMU": Row(f"--world furnished {HAND} --rate 2 {BOTH} --changed 0.2"),
    "furnished, 2 Hz, 120 deg": Row(f"--world furnished {HAND} --rate 2 --view 120 --changed 0.2"),
    "furnished, 2 Hz, 120 deg, odometry and IMU": Row(f"--world furnished {HAND} --rate 2 --view 120 --odometry --imu 100 --changed 0.2"),
    "hall, 5 Hz, 120 deg, no first pose": Row(f"--world hall {HAND} --rate 5 --view 120 --columns 1200", NO_POSE),
    "hall, 2 Hz": Row(f"--world hall {HAND}"),
    "hall, 2 Hz, other day, 16 beams": Row(f"--world hall {HAND} --beams 16 --changed 0.4"),
    "hall, 2 Hz, 70 deg": Row(f"--world hall {HAND} --view 70"),
    "hall, 2 Hz, 70 deg, gaps": Row(f"--world hall {HAND} --view 70 --gaps 6"),
    "hall, 0.5 Hz, 128 beams": Row(f"--world hall {HAND} --rate 0.5 --beams 128 --columns 600"),
    "hall, upside down, 30 deg tilted": Row(f"--world hall {HAND} --mount 0,0,0.2,180,30,0", HANGING),
    "campus, 5 Hz, other day": Row(f"--world street {HAND} --rate 5 --columns 900 --changed 0.5"),
    "street, 10 Hz, other day": Row("--world street --columns 900 --changed 0.8"),
    "street, 1 Hz, 16 beams": Row("--world street --rate 1 --beams 16 --columns 900"),
    "street, sparse map": Row("--world street --columns 900 --map-spacing 0.5 --changed 0.3"),
    "map of one scan": Row(f"--world hall {HAND} --rate 5 --map-scans 1"),
}
ALIKE = {
    "corridor, scans alone": Row("--world corridor --columns 600", most_lost=3),
    "corridor, dense scans": Row("--world corridor", most_lost=3),
    "shelves, scans alone": Row("--world shelves --columns 600"),
    "parking, scans alone": Row("--world parking --columns 600"),
    "terrace, scans alone": Row("--world terrace --columns 600"),
    "tunnel, scans alone": Row("--world tunnel --columns 600"),
    "corridor, odometry and IMU": Row(f"--world corridor {BOTH}", most_lost=3),
    "shelves, odometry and IMU": Row(f"--world shelves {BOTH}"),
    "parking, odometry and IMU": Row(f"--world parking {BOTH}"),
    "terrace, odometry and IMU": Row(f"--world terrace {BOTH}"),
    "tunnel, odometry and IMU": Row(f"--world tunnel {BOTH}"),
    # Nothing undoes the motion within the sweep.
    "terrace, times that fit no unit": Row("--world terrace --columns 600", "preprocess.deskew=auto", "--point-times 19.5,0"),
}
# Wheels that tell another speed: they stand still, tell half or twice of it, or run backwards.
WHEELS = f"{BOTH} --beams 16 --map-spacing 0.3 --wheel-scale"
LIES = {f"{world}, wheels tell {scale}": Row(f"--world {world} {WHEELS} {scale}")
        for world in ("terrace", "corridor", "shelves", "street") for scale in (0, 0.5, 2, -1)}
LIES |= {f"corridor of equal doors, wheels tell {scale}": Row(f"--world corridor {BOTH} --wheel-scale {scale}")
         for scale in (0, 0.5, 2, -1)}
STRESS = {
    "hall": Row(f"--world hall {HAND}"),
    "hall, gaps": Row(f"--world hall {HAND} --gaps 6"),
    "hall, 70 deg": Row(f"--world hall {HAND} --view 70"),
    "hall, 70 deg, gaps": Row(f"--world hall {HAND} --view 70 --gaps 6"),
    "16 beams, 20 m": Row(f"--world hall {HAND} --beams 16 --range 20"),
    "campus": Row(f"--world street {HAND}"),
    "campus, 70 deg, gaps": Row(f"--world street {HAND} --view 70 --gaps 6"),
    "KITTI 0005": "kitti0005_lite",  # folders of NDT_SHARED_DATA
    "KITTI 0001": "kitti0001_lite",
}
STARTS = "0:0:0 -3:0:0 -2:0:0 2:0:0 3:0.4:12 5:-0.3:-30"
SETS = {"worlds": (WORLDS, "1-2", 60, ""), "alike": (ALIKE, "1", 60, STARTS), "lies": (LIES, "1", 60, ""),
        "stress": (STRESS, "1-5", 300, "")}


# ---- the programs

def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
    return done.stdout


def dump(bin_dir, bag, kind):
    return [json.loads(line) for line in run([f"{bin_dir}/ndt-bag", "dump", bag, "--type", kind]).splitlines()]


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


def replayed(args, bag, map_path, cut, sets, since_scan=None):
    """The figures of one replay of what `cut` leaves of a bag. since_scan: the first one after a disturbance, from 0."""
    since_ns = None if since_scan is None else dump(args.bin_dir, bag, "scan")[since_scan]["stamp_ns"]
    with tempfile.TemporaryDirectory() as work:
        if cut:
            run([f"{args.bin_dir}/ndt-bag", "cut", bag, "--out", f"{work}/cut.bag", *cut])
            bag = f"{work}/cut.bag"
        run([f"{args.bin_dir}/ndtd", "--replay", bag, "--map", map_path, "--threads", "1", "--timing", f"{work}/timing.csv",
             *(word for text in sets for word in ("--set", text)), *args.options])
        truths = {message["stamp_ns"]: message["pose"] for message in dump(args.bin_dir, bag, "truth")}
        return figures_of(f"{work}/timing.csv", truths, args, since_ns)


# ---- figures

def is_right(row, truth):
    try:
        pose = [float(row[key]) for key in ("tx", "ty", "tz", "qx", "qy", "qz", "qw")]
    except ValueError:
        return False
    cosine = min(1.0, abs(sum(p * q for p, q in zip(pose[3:], truth[3:]))))
    return math.dist(pose[:3], truth[:3]) <= LIMIT_M and math.degrees(2 * math.acos(cosine)) <= LIMIT_DEG


def is_claimed(row, args):
    may_coast = args.set == "alike" or int(row["evaluations"] or 0) > 0
    return row["outcome"] == "converged" or row["state"] == "tracking" or (row["state"] == "coasting" and may_coast)


def seconds_between(first, second):
    return (int(second["stamp_ns"]) - int(first["stamp_ns"])) * 1e-9


def figures_of(timing, truths, args, since_ns):
    with open(timing, encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["row"] == "scan" and int(row["stamp_ns"]) in truths]
    right = [not args.wrong_maps and is_right(row, truths[int(row["stamp_ns"])]) for row in rows]
    is_converged = [row["outcome"] == "converged" for row in rows]
    first = next((i for i, good in enumerate(is_converged) if good), None)
    figures = {"scans": len(rows), "converged": sum(is_converged), "off": right.count(False),
               "wrong": sum(is_claimed(row, args) and not good for row, good in zip(rows, right)),
               "declined": sum(good and not said for said, good in zip(is_converged, right)),
               "belief_s": None if first is None else seconds_between(rows[0], rows[first]),
               "evaluations": [int(row["evaluations"] or 0) for row in rows],
               "align_ms": [float(row["align_us"] or 0) * 1e-3 for row in rows],
               "confidence": [[float(row["confidence"] or "nan"), good] for row, good in zip(rows, right)]}
    if since_ns is not None:
        tracks = [good and said and row["state"] == "tracking" for good, said, row in zip(right, is_converged, rows)]
        begin = next(i for i, row in enumerate(rows) if int(row["stamp_ns"]) >= since_ns)
        back = next((i for i in range(begin, len(rows)) if all(tracks[i:i + IN_A_ROW])), None)
        figures["back_s"] = None if back is None else seconds_between(rows[begin], rows[back])
    return figures


# ---- simulated drives

def offset_of(args, bag, start):
    """Of the first pose, along and across the first heading."""
    along_m, across_m, yaw_deg = map(float, start.split(":"))
    x, y, z, w = dump(args.bin_dir, bag, "truth")[0]["pose"][3:7]
    yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return (f"{along_m * math.cos(yaw) - across_m * math.sin(yaw):.4f},"
            f"{along_m * math.sin(yaw) + across_m * math.cos(yaw):.4f},0,{yaw_deg}")


def drive(args, folder, row, seed, start):
    bag = simulated(args, folder, row.sim, seed) + "/drive.bag"
    map_path = simulated(args, folder, row.sim, seed + args.wrong_maps) + "/map.pcd"
    cut = row.cut.split() + (["--offset-pose", offset_of(args, bag, start)] if start else [])
    sets = ["preprocess.deskew=time", *([row.ndtd] if row.ndtd else []),
            *([NO_POSE] if args.wrong_maps and row.ndtd != NO_POSE else [])]
    figures = replayed(args, bag, map_path, cut, sets)
    figures["is_lost"] = start in ("", "0:0:0") and figures["scans"] - figures["converged"] > row.most_lost
    return figures


def simulated_jobs(args, folder, name, row, seeds):
    for seed in seeds:
        for start in args.starts.split() or [""]:
            kind = "" if not start else ", right first pose" if start == "0:0:0" else ", wrong first pose"
            yield name + kind, seed, functools.partial(drive, args, folder, row, seed, start)


# ---- KITTI

def turn_block(source, target, middle, half_m, yaw_deg):
    """A map (binary PCD, floats x y z first), of which a square block is turned about its middle."""
    with open(source, "rb") as file:
        data = file.read()
    at = data.index(b"DATA binary\n") + len(b"DATA binary\n")
    header = dict(line.split(" ", 1) for line in data[:at].decode().splitlines() if " " in line)
    width = len(header["FIELDS"].split())
    if header["FIELDS"].split()[:3] != ["x", "y", "z"] or set(header["SIZE"].split()) != {"4"}:
        raise RuntimeError(f"{source}: its fields are {header['FIELDS']} of {header['SIZE']} bytes, not floats x y z")
    values = array.array("f", data[at:at + 4 * width * int(header["POINTS"])])
    c, s = math.cos(math.radians(yaw_deg)), math.sin(math.radians(yaw_deg))
    turned = 0
    for i in range(0, len(values), width):
        dx, dy = values[i] - middle[0], values[i + 1] - middle[1]
        if abs(dx) <= half_m and abs(dy) <= half_m:
            values[i], values[i + 1] = middle[0] + c * dx - s * dy, middle[1] + s * dx + c * dy
            turned += 1
    if turned == 0:
        raise RuntimeError(f"{source}: the block holds no point")
    with open(target, "wb") as file:
        file.write(data[:at] + values.tobytes())


def disturbances(count, is_quick):
    """(name, options of ndt-bag cut, first scan after the disturbance or None), for a drive of so many scans at 5 Hz"""
    yield "as it is", [], None
    for every in (2, 3, 5):
        yield f"every scan of {every}", ["--every", str(every)], None
    for dropped in (10, 20, 40):
        begins = [begin for begin in range(5, 60, 5) if begin + dropped + 3 <= count]
        for begin in begins[:1] if is_quick else begins:
            yield f"{dropped} scans cut out", ["--drop", f"{begin}:{dropped}"], begin + dropped - 1
    for begin_s in range(1, 2 if is_quick else 7):
        yield "a wall along for 2 s", ["--wall", f"{begin_s}:2"], (begin_s + 2) * 5 + 1
    for scan in range(1, count - 4, 10 if is_quick else 1):  # later ones have no second of data left
        offset = f"{10 * math.cos(2.4 * scan):.3f},{10 * math.sin(2.4 * scan):.3f},0,180"
        yield ("first pose wrong by 10 m and 180 deg",
               ["--scans", f"{scan}-{scan + 9}", "--initial", "first", "--offset-pose", offset], scan - 1)


def kitti_jobs(args, folder, name, data):
    bag, map_path = f"{folder}/{os.path.basename(data)}.bag", f"{data}/map_from_even_scans_0.20m.pcd"
    run([f"{args.bin_dir}/ndt-bag", "pack", "--scans", f"{data}/scans", "--times", f"{data}/times.txt",
         "--truth", f"{data}/poses_velo_lidar_refined.txt", "--format", "kitti", "--every", "2", "--offset", "1",
         "--initial", "first", "--force", "--out", bag])
    truths = dump(args.bin_dir, bag, "truth")
    replay = functools.partial(replayed, args, bag, sets=["preprocess.deskew=azimuth_cw"])
    for kind, cut, since_scan in disturbances(len(dump(args.bin_dir, bag, "scan")), args.quick):
        yield f"{name}, {kind}", 0, functools.partial(replay, map_path, cut, since_scan=since_scan)
    x, y = truths[len(truths) // 2 - 1]["pose"][:2]
    for beside_m in (0, 15, -15):
        turned = f"{folder}/{name}, {beside_m}.pcd"
        turn_block(map_path, turned, (x, y + beside_m), 15, 30)
        yield f"{name}, block of the map turned by 30 deg, {beside_m} m beside", 0, functools.partial(replay, turned, [])


# ---- the table

def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else math.nan


def line(name, drives):
    total = {key: sum(d[key] for d in drives) for key in ("scans", "converged", "off", "wrong", "declined")}
    belief = [d["belief_s"] for d in drives if d["belief_s"] is not None]
    evaluations = [count for d in drives for count in d["evaluations"]]
    align_ms = [ms for d in drives for ms in d["align_ms"]]
    text = (f"| {name} | {total['scans']} | {total['converged']} | {total['off']} | {total['wrong']} | {total['declined']} | "
            f"{quantile(belief, 0.5):.1f} / {max(belief, default=math.nan):.1f} / {len(drives) - len(belief)} | "
            f"{sum(evaluations) / max(1, len(evaluations)):.1f} | {quantile(align_ms, 0.5):.1f} / {quantile(align_ms, 0.99):.1f} |")
    if "back_s" in drives[0]:
        back = [d["back_s"] for d in drives if d["back_s"] is not None]
        text += (f" {sum(seconds <= SOON_S for seconds in back)} of {len(drives)}, {quantile(back, 0.5):.2f} / "
                 f"{max(back, default=math.nan):.2f} |")
    return text


def read_command_line():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("--set", choices=SETS, default="worlds")
    parser.add_argument("--rows")
    parser.add_argument("--seeds")
    parser.add_argument("--scans", type=int)
    parser.add_argument("--starts")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--drives")
    parser.add_argument("--json")
    parser.add_argument("--most-evaluations", type=float, help="exit status 1 where scans need more, on average")
    parser.add_argument("--least-converged", type=int, default=0, help="exit status 1 where fewer scans converge")
    parser.add_argument("--most-off", type=int, help="exit status 1 where more scans are off")
    parser.add_argument("--wrong-maps", action="store_true")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args = parser.parse_args(sys.argv[1:end])
    rows, seeds, scans, starts = SETS[args.set]
    args.options = sys.argv[end + 1:]
    args.scans = args.scans or scans
    args.starts = starts if args.starts is None else args.starts
    first, _, last = (args.seeds or seeds).partition("-")
    chosen = {name: row for name, row in rows.items() if not args.rows or any(part in name for part in args.rows.split(";"))}
    return args, chosen, range(int(first), int(last or first) + 1)


def jobs_of(args, folder, rows, seeds, pool):
    """(name, seed, what returns the figures) of every drive. Drives are simulated first: several rows may share one."""
    drives = {(row.sim, seed + more) for row in rows.values() if isinstance(row, Row)
              for seed in seeds for more in {0, int(args.wrong_maps)}}
    list(pool.map(lambda one: simulated(args, folder, *one), sorted(drives)))
    for name, row in rows.items():
        data = None if isinstance(row, Row) else os.path.join(os.environ.get("NDT_SHARED_DATA", ""), row)
        if data is None:
            yield from simulated_jobs(args, folder, name, row, seeds)
        elif os.path.exists(f"{data}/times.txt"):
            yield from kitti_jobs(args, folder, name, data)
        else:
            print(f"note: NDT_SHARED_DATA names no folder with {row}, {name} is left out")


def main():
    args, rows, seeds = read_command_line()
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        folder = args.drives or work
        os.makedirs(folder, exist_ok=True)
        jobs = list(jobs_of(args, folder, rows, seeds, pool))
        results = [(name, seed, figures) for (name, seed, _), figures in zip(jobs, pool.map(lambda job: job[2](), jobs))]
    has_back = any("back_s" in figures for _, _, figures in results)
    print("| world | scans | converged | off | wrong | declined | belief [s] | evaluations | align [ms] |"
          f"{' back [s] |' if has_back else ''}\n|" + "---|" * (9 + has_back))
    for name in dict.fromkeys(name for name, _, _ in results):
        print(line(name, [figures for of, _, figures in results if of == name]))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(results, file)
    costs = [count for _, _, figures in results for count in figures["evaluations"]]
    is_dear = args.most_evaluations is not None and sum(costs) > args.most_evaluations * len(costs)
    has_declined = sum(figures["converged"] for _, _, figures in results) < args.least_converged
    is_off = args.most_off is not None and sum(figures["off"] for _, _, figures in results) > args.most_off
    return int(is_dear or has_declined or is_off or any(figures["wrong"] or figures.get("is_lost") for _, _, figures in results))


if __name__ == "__main__":
    sys.exit(main())
