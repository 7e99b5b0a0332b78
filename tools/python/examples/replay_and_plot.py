#!/usr/bin/env python3
"""Replays a bag and plots path, error, confidence and times (pip install 'ndtd[report]'). The whole story: ndtd --replay --report.

    replay_and_plot.py BAG MAP [--config FILE] [--set KEY=VALUE]... [-o PICTURE]
"""
import argparse
from pathlib import Path

import numpy as np

import ndtd
from ndtd.report import figures


def replay(bag, target, config=None, options=None):
    """Arrays over the scans with a pose: stamps [s], positions (N, 3), errors [m] (NaN without truth), confidence, times [ms]."""
    run = ndtd.Replay(bag, target, config=config, options=options or {})
    rows = []
    for scan in run:
        if scan.pose is None:
            print(f"scan {scan.seq}: {scan.outcome}: {scan.reason}")
            continue
        truth = run.truth(scan.stamp_ns)
        error = np.nan if truth is None else np.linalg.norm(scan.position - truth[:3, 3])
        confidence = np.nan if scan.confidence is None else scan.confidence
        rows.append((scan.stamp_ns * 1e-9, *scan.position, error, confidence, scan.align_us * 1e-3))
    print(f"{len(rows)} scans, trajectory hash {run.hash}")
    for line in run.warnings:
        print("warning:", line)
    table = np.array(rows).reshape(-1, 7)
    return {"stamp_s": table[:, 0], "position_m": table[:, 1:4], "error_m": table[:, 4], "confidence": table[:, 5],
            "align_ms": table[:, 6]}


def plot(data, picture):
    drawing = figures.new("replay", "A replay", rows=2, columns=2, height_in=7.5, share_x=False, gap_in=0.75, top_in=0.3)
    path, error, confidence, times = drawing.axes
    seconds = data["stamp_s"] - data["stamp_s"][0]
    path.plot(data["position_m"][:, 0], data["position_m"][:, 1], ".-")
    path.set(title="path", xlabel="x [m]", ylabel="y [m]", aspect="equal", adjustable="datalim")
    error.plot(seconds, 100 * data["error_m"])
    error.set(title="error against the truth of the bag", xlabel="t [s]", ylabel="[cm]")
    confidence.plot(seconds, data["confidence"])
    confidence.set(title="confidence", xlabel="t [s]", ylim=(0, 1.05))
    times.hist(data["align_ms"], bins=30)
    times.set(title="duration of alignments", xlabel="[ms]", ylabel="scans")
    Path(picture).write_bytes(drawing.file(Path(picture).suffix.lower().strip(".") or "png"))
    print("written:", picture)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bag")
    parser.add_argument("map")
    parser.add_argument("--config")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("-o", "--out", default="replay.png")
    args = parser.parse_args()
    options = dict(text.split("=", 1) for text in args.set)
    plot(replay(args.bag, args.map, args.config, options), args.out)


if __name__ == "__main__":
    try:
        main()
    except (ImportError, OSError, ValueError) as reason:
        raise SystemExit(f"replay_and_plot.py: {reason}") from None
