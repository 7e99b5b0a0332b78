#!/usr/bin/env python3
"""Cost of a call from Python beside the alignment itself: align() in a loop against the clock inside it.

    call_overhead.py [--points N] [--calls N]

Result.align_us is measured in C around the whole alignment. What is left of the wall time is the binding: arguments,
the copy of the points into the layout of the matcher, the result. The batch does the same alignments in one call.
"""
import argparse
import time

import numpy as np

import ndtd


def measure(aligner, points, guess, calls):
    """Medians over the calls [us]: (wall, inside)."""
    rows = []
    for _ in range(calls):
        start = time.perf_counter()
        result = aligner.align(points, guess)
        rows.append((1e6 * (time.perf_counter() - start), result.align_us))
    return np.median(rows, axis=0)


def measure_batch(aligner, points, guess, calls):
    """Time of one alignment within a batch of 20, the median over the batches [us]."""
    rows = []
    for _ in range(max(3, calls // 20)):
        start = time.perf_counter()
        aligner.align_batch(points, [guess] * 20)
        rows.append(1e6 * (time.perf_counter() - start) / 20)
    return np.median(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, nargs="+", default=[1, 100, 1500, 20000])
    parser.add_argument("--calls", type=int, default=3000)
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    aligner = ndtd.Aligner(ndtd.Map(rng.uniform((-50, -50, 0), (50, 50, 2), (200000, 3))), threads=1, max_iterations=0)
    print("points  wall [us]  inside [us]  binding [us]  in a batch [us]")
    for count in args.points:
        points = rng.uniform((-40, -40, 0), (40, 40, 2), (count, 3)).astype("f4")
        calls = max(10, min(args.calls, 20_000_000 // count // 100))
        wall, inside = measure(aligner, points, np.eye(4), calls)
        print(f"{count:6}  {wall:9.1f}  {inside:11.1f}  {wall - inside:12.1f}  {measure_batch(aligner, points, np.eye(4), calls):15.1f}")


if __name__ == "__main__":
    main()
