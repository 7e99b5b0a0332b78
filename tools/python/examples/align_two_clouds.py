#!/usr/bin/env python3
"""Aligns a cloud with another one and prints where it was taken.

    align_two_clouds.py TARGET SOURCE [--level M]...     .pcd, .ply, .bin; the first is the map
"""
import argparse

import numpy as np

import ndtd


def align(target_points, source_points, levels, guess):
    """The target becomes a map of Gaussians, the source a sample of its points."""
    target = ndtd.Map(target_points, levels=levels)
    source = ndtd.preprocess(source_points, voxel_m=0.5, sample_count=5000)
    # The usual threshold of the score is that of dense maps: a single scan as the map reaches less.
    return ndtd.align(target, source, guess, score_threshold=0.1)


def show(result):
    deviation = np.sqrt(np.diag(result.covariance)) if result.covariance is not None else np.full(6, np.nan)
    print(f"{result.outcome} {result.reason}".rstrip())
    print("T_target_source:\n" + np.array2string(result.pose, precision=4, suppress_small=True))
    print("standard deviation [m, rad]:", np.array2string(deviation, precision=4))
    print(f"confidence {result.confidence:.3f}, {result.scores}")
    for row in result.trace:
        print(f"  level {row.level:g} m  score {row.score:10.2f}  step {row.step_m:.4f} m {row.step_rad:.5f} rad")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("source")
    parser.add_argument("--level", type=float, action="append", help="edge of the cells [m]; again for finer ones")
    parser.add_argument("--guess", type=float, nargs=7, metavar="V", help="x y z qx qy qz qw; default: the identity")
    args = parser.parse_args()
    clouds = [ndtd.read_cloud(path) for path in (args.target, args.source)]
    target, source = (cloud["points"] + cloud["origin"] for cloud in clouds)
    result = align(target, source, args.level or [4, 2, 1], args.guess)
    show(result)
    return 0 if result.converged else 1


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except (ImportError, OSError, ValueError) as reason:
        raise SystemExit(f"align_two_clouds.py: {reason}") from None
