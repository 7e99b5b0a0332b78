#!/usr/bin/env python3
"""Replays a bag with several values of an option, in parallel, and prints a table.

    try_values.py BAG MAP KEY VALUE... [--set KEY=VALUE]... [--jobs N]
    try_values.py drive.bag map.pcd preprocess.sample_count 500 1000 1500 3000
"""
import argparse
import concurrent.futures
import functools

import numpy as np

import ndtd


def measure(bag, target, key, others, value):
    """(value, lost scans, median and 95 % of the error [cm], median alignment [ms]) of one replay."""
    replay = ndtd.Replay(bag, target, options={**others, key: value, "cpu.threads": 1})
    errors, times, lost = [], [], 0
    for scan in replay:
        truth = replay.truth(scan.stamp_ns)
        times.append(scan.align_us * 1e-3)
        lost += not scan.trusted
        if scan.trusted and truth is not None:
            errors.append(100 * np.linalg.norm(scan.position - truth[:3, 3]))
    median, most = np.percentile(errors, (50, 95)) if errors else (np.nan, np.nan)
    return value, lost, median, most, np.median(times)


def sweep(bag, target, key, values, others, jobs):
    """Rows of `measure`; each replay has a process of its own."""
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(functools.partial(measure, bag, target, key, others), values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bag")
    parser.add_argument("map")
    parser.add_argument("key")
    parser.add_argument("values", nargs="+")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--jobs", type=int, help="processes; default: one per core")
    args = parser.parse_args()
    others = dict(text.split("=", 1) for text in args.set)
    print(f"{args.key:>28}  lost  error p50 / p95 [cm]  align p50 [ms]")
    for value, lost, median, most, align_ms in sweep(args.bag, args.map, args.key, args.values, others, args.jobs):
        print(f"{value:>28}  {lost:4}  {median:9.2f} / {most:9.2f}  {align_ms:14.3f}")


if __name__ == "__main__":
    try:
        main()
    except (ImportError, OSError, ValueError) as reason:
        raise SystemExit(f"try_values.py: {reason}") from None
