"""Draws what ndt-bench consistency measured.

    build/bin/ndt-bench consistency --bag odd.bag --map map.pcd --json consistency.json
    python3 tools/ndt-bench/consistency_plot.py consistency.json consistency.svg

Above: the share of errors within one, two and three sigma per axis, next to the nominal one. Middle: errors over
sigma against the normal density. Below: errors of the first seed over the drive, in a band of three sigma.
Needs numpy and matplotlib.
"""
import json
import sys

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

NOMINAL = {"within_1": 68.27, "within_2": 95.45, "within_3": 99.73}
COLOURS = ("#4477aa", "#66ccee", "#bbbbbb")
LIMIT = 5  # of the histograms, in sigma


def draw_coverage(axes, rows):
    for k, (key, colour) in enumerate(zip(NOMINAL, COLOURS)):
        places = np.arange(len(rows)) + 0.27 * (k - 1)
        axes.bar(places, [row[key] for row in rows], 0.25, color=colour, label=f"{k + 1} sigma")
        axes.hlines([NOMINAL[key]] * len(rows), places - 0.13, places + 0.13, color="black", linewidth=1)
    axes.set_xticks(range(len(rows)), [row["axis"] for row in rows])
    axes.set_ylim(0, 104)
    axes.set_ylabel("covered [%]; line: nominal")
    axes.legend(loc="lower right", ncol=3)


def draw_histogram(axes, name, errors, sigmas):
    normalised = np.clip(errors / sigmas, -LIMIT, LIMIT)
    x = np.linspace(-LIMIT, LIMIT, 200)
    axes.hist(normalised, np.linspace(-LIMIT, LIMIT, 41), density=True, color=COLOURS[1])
    axes.plot(x, np.exp(-x * x / 2) / np.sqrt(2 * np.pi), color="black", linewidth=1)
    axes.set_title(f"{name}: rms {np.sqrt(np.mean((errors / sigmas) ** 2)):.2f}", fontsize=9)
    axes.set_xlabel("error / sigma")
    axes.set_yticks([])


def draw_drive(axes, unit, time_s, errors, sigmas):
    axes.fill_between(time_s, -3 * sigmas, 3 * sigmas, color=COLOURS[2], alpha=0.5, linewidth=0)
    axes.plot(time_s, errors, color=COLOURS[0], linewidth=0.8)
    axes.axhline(0, color="black", linewidth=0.4)
    # The first scans know nothing of the velocity: their band would hide all others.
    reach = 1.1 * max(np.quantile(3 * sigmas, 0.95), np.abs(errors).max())
    axes.set_ylim(-reach, reach)
    axes.set_xlabel("time [s]")
    axes.set_ylabel(f"error, 3 sigma [{unit}]")


def main(source, out):
    with open(source, encoding="utf-8") as file:
        report = json.load(file)
    rows = [row for row in report["coverage"] if "mean_sigma" in row]
    scans = [scan for scan in report["scans"] if "nees" in scan]
    first = [scan for scan in scans if scan["seed"] == scans[0]["seed"]]
    time_s = np.array([scan["time_s"] for scan in first])
    figure = plt.figure(figsize=(13, 8.5), layout="constrained")
    parts = figure.subfigures(3, 1, height_ratios=(1, 1, 1))
    pooled = [row for row in report["coverage"] if row["axis"] == "pooled"]
    draw_coverage(parts[0].subplots(), rows + pooled)
    summary, drive = report["consistency"][0], report["drive"][0]
    parts[0].suptitle(f"NEES {summary['nees']:.2f} (99 %: {summary['nees_low']:.2f} to {summary['nees_high']:.2f}); "
                      f"{drive['scans']:.0f} scans, {drive['seeds']:.0f} seeds")
    histograms, drives = parts[1].subplots(1, len(rows)), parts[2].subplots(1, len(rows))
    for k, row in enumerate(rows):
        name, unit = row["axis"], row["unit"]
        scale = 100 if unit == "cm" else 180 / np.pi

        def column(kind, items):
            return scale * np.array([scan[f"{kind}_{name}"] for scan in items])
        draw_histogram(histograms[k], name, column("error", scans), column("sigma", scans))
        draw_drive(drives[k], unit, time_s, column("error", first), column("sigma", first))
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
