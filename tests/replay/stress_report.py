#!/usr/bin/env python3
"""What came out of a replay under stress, from its --timing file and the truth in its bag (standard library only).

  stress_report.py one BIN_DIR BAG TIMING.csv FILE [--since STAMP_NS]   appends the figures of one replay to FILE
  stress_report.py sum NAME FILE   prints one line for all replays in FILE; status 1: limits of --strict, 2: wrong > 0
  stress_report.py check FILE MOST   status 1: a scan is off and trusted, or a replay has more than MOST not converged
  stress_report.py offset BIN_DIR BAG ALONG ACROSS YAW   X,Y,Z,YAW for ndt-bag cut --offset-pose, along the first heading
  stress_report.py stamp BIN_DIR BAG N                                  prints the stamp of scan N, from 1

A pose is right within 1 m and 5 deg. `off` counts the scans whose pose is not right, whatever their outcome, `wrong`
those of them that claim `converged`, and `trusted` those in state `tracking` or `coasting`. A replay is back at the first of three right and converged scans in a row (two
or one at its end), counted from --since: the first scan after the disturbance. Where the file has a column `state`,
only scans in state `tracking` count."""
import csv
import json
import math
import subprocess
import sys

LIMIT_M, LIMIT_DEG, IN_A_ROW = 1.0, 5.0, 3


def dump(bin_dir, bag, kind):
    run = subprocess.run([f"{bin_dir}/ndt-bag", "dump", bag, "--type", kind], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def is_right(row, truth):
    try:
        pose = [float(row[key]) for key in ("tx", "ty", "tz", "qx", "qy", "qz", "qw")]
    except ValueError:
        return False
    away_m = math.dist(pose[:3], truth[:3])
    cosine = min(1.0, abs(sum(p * q for p, q in zip(pose[3:], truth[3:]))))
    return away_m <= LIMIT_M and math.degrees(2 * math.acos(cosine)) <= LIMIT_DEG


def one(bin_dir, bag, timing, out, since_ns=None):
    truths = {message["stamp_ns"]: message["pose"] for message in dump(bin_dir, bag, "truth")}
    with open(timing, encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["row"] == "scan"]
    rows = [row for row in rows if int(row["stamp_ns"]) in truths]
    right = [is_right(row, truths[int(row["stamp_ns"])]) for row in rows]
    good = [is_it and row["outcome"] == "converged" and row.get("state", "tracking") == "tracking"
            for is_it, row in zip(right, rows)]
    figures = {"scans": len(rows), "converged": sum(row["outcome"] == "converged" for row in rows),
               "off": len(rows) - sum(right),
               "trusted": sum(row.get("state") in ("tracking", "coasting") and not is_it
                              for is_it, row in zip(right, rows)),
               "wrong": sum(row["outcome"] == "converged" and not is_it for is_it, row in zip(right, rows))}
    if since_ns is not None:
        first = next(i for i, row in enumerate(rows) if int(row["stamp_ns"]) >= int(since_ns))
        back = next((i for i in range(first, len(rows)) if all(good[i:i + IN_A_ROW])), None)
        figures["back_scans"] = None if back is None else back - first
        figures["back_s"] = None if back is None else (int(rows[back]["stamp_ns"]) - int(rows[first]["stamp_ns"])) * 1e-9
    with open(out, "a", encoding="utf-8") as file:
        print(json.dumps(figures), file=file)


def summarise(name, path):
    with open(path, encoding="utf-8") as file:
        runs = [json.loads(line) for line in file]
    total = {key: sum(run[key] for run in runs) for key in ("scans", "converged", "off", "wrong", "trusted")}
    line = (f"{name}: {total['scans']} scans, {total['converged']} converged, {total['off']} off, "
            f"{total['wrong']} wrong converged, {total['trusted']} wrong trusted")
    kept = True
    if "back_s" in runs[0]:
        back = sorted(run["back_s"] for run in runs if run["back_s"] is not None)
        scans = sorted(run["back_scans"] for run in runs if run["back_scans"] is not None)
        soon = sum(seconds <= 1.001 for seconds in back)
        kept = kept and soon == len(runs)
        line += f"; back within 1 s: {soon} of {len(runs)}, at all: {len(back)}"
        if back:
            line += f", after {scans[len(scans) // 2]} scans {back[len(back) // 2]:.2f} s (median), {back[-1]:.2f} s (longest)"
    else:
        kept = kept and total["off"] <= 0.01 * total["scans"]
    print(line, flush=True)
    return 2 if total["wrong"] > 0 else 0 if kept else 1


def check(path, most):
    with open(path, encoding="utf-8") as file:
        runs = [json.loads(line) for line in file]
    bad = [run for run in runs if run["wrong"] + run["trusted"] > 0 or run["scans"] - run["converged"] > int(most)]
    for run in bad:
        print("FAIL", run)
    return int(bool(bad))


def offset(bin_dir, bag, along_m, across_m, yaw_deg):
    x, y, z, w = dump(bin_dir, bag, "truth")[0]["pose"][3:7]
    yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    along_m, across_m = float(along_m), float(across_m)
    print(f"{along_m * math.cos(yaw) - across_m * math.sin(yaw):.4f},"
          f"{along_m * math.sin(yaw) + across_m * math.cos(yaw):.4f},0,{yaw_deg}")


if __name__ == "__main__":
    command, words = sys.argv[1], [word for word in sys.argv[2:] if word != "--since"]
    if command == "one":
        one(*words)
    elif command == "sum":
        sys.exit(summarise(*words))
    elif command == "check":
        sys.exit(check(*words))
    elif command == "offset":
        offset(*words)
    else:
        print(dump(words[0], words[1], "scan")[int(words[2]) - 1]["stamp_ns"])
