"""What the renewal of simulated maps is worth: a drive that never votes, in the old map and with the votes of one and of three others.

    python renewal_measure.py OUT.jsonl WORLD CHANGED SEED...     # WORLD: street, city, parking, hall, office; ndt-sim on PATH

One line per seed and number of drives. What has changed is known from the map of the same seed with --changed 0.
"""
import json
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

import ndtd
from ndtd.mapping.cloud_store import CloudStore
from ndtd.renewal import localise, update, votes
from ndtd.renewal.changes import points_of
from ndtd.renewal.prior_map import PriorMap

DRIVEN, ON_FOOT = ("--beams", 16, "--columns", 900, "--scans", 80), ("--carrier", "handheld", "--scans", 100)
WORLDS = {"street": (DRIVEN, 10), "city": ((*DRIVEN, "--extent", 300), 10), "parking": (DRIVEN, 10),
          "hall": (ON_FOOT, 4), "office": ((*ON_FOOT, "--imu", 100), 4)}
OTHERS = ((1, ()), (0.8, ()), (1.2, ("--noise", 0.03)), (0.9, ("--dropout", 0.1)))  # rate, and what differs; the first never votes
APART_M, NEAR_M = 0.3, 10.0
GIVEN = Namespace(config=None, deskew="auto", given_start=True, frame=None, import_options=[], quiet=True)
SEARCHED = Namespace(**{**vars(GIVEN), "given_start": False})


def simulate(world, seed, changed, out, rate=1.0, more=()):
    """A drive of today, and the map of the day that `changed` tells."""
    given, hz = WORLDS[world]
    given = list(given)
    at = given.index("--scans") + 1
    given[at] = round(given[at] * rate)
    command = ["ndt-sim", "--world", world, "--seed", seed, "--changed", changed, "--rate", hz * rate, "--out", out, *given, *more]
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL)


def errors(located):
    """Counts and errors of a replay."""
    off = located.error_m > 1
    known = located.error_m[np.isfinite(located.error_m)] * 100
    p50, p95 = np.percentile(known, (50, 95)) if len(known) else (np.nan, np.nan)
    return {"scans": len(located.stamps_ns), "converged": int(located.converged.sum()), "lost": int((~located.trusted).sum()),
            "off": int(off.sum()), "wrong": int((off & located.converged).sum()), "p50_cm": round(float(p50), 3), "p95_cm": round(float(p95), 3)}


def cloud_of(path):
    prior = PriorMap(path)
    return np.concatenate([prior.points(number) for number in range(len(prior.files))])


def found_part(prior, changes, truth, voters):
    """Precision and recall of the points that leave and of those that are added, within NEAR_M of the ways."""
    gone, new = points_of(prior, changes)
    old, is_near = np.concatenate([prior.points(k) for k in range(len(prior.files))]), cKDTree([one.T_map_sensor[:3, 3] for one in voters])
    of_old, of_truth = cKDTree(old), cKDTree(truth)
    true_gone = old[(of_truth.query(old)[0] > APART_M) & (is_near.query(old)[0] < NEAR_M)]
    true_new = truth[(of_old.query(truth)[0] > APART_M) & (is_near.query(truth)[0] < NEAR_M)]

    def share(points, others, reach_m):
        return round(float((cKDTree(others).query(points)[0] < reach_m).mean()), 4) if len(points) and len(others) else None
    return {"gone": len(gone), "new": len(new), "true_gone": len(true_gone), "true_new": len(true_new),
            "gone_recall": share(true_gone, gone, 0.01), "new_recall": share(true_new, new, APART_M),
            "gone_apart": round(float((of_truth.query(gone)[0] > 0.15).mean()), 4) if len(gone) else None, "new_right": share(new, truth, 0.2)}


def measure(world, changed, seed, folder):
    """Rows of one world: the old map, then one drive, and three."""
    simulate(world, seed, 0, folder / "truth")
    for number, (rate, more) in enumerate(OTHERS):
        simulate(world, seed, changed, folder / str(number), rate, more)
    old = folder / "0/map.pcd"
    truth, prior = cloud_of(folder / "truth/map.pcd"), PriorMap(old)
    options = GIVEN if world in ("parking", "office") else SEARCHED  # decks and rooms look alike: no search finds them
    bags = [str(folder / str(number) / "drive.bag") for number in range(len(OTHERS))]
    held, = update._open(bags[:1], prior, folder, GIVEN)
    recordings = update._open(bags[1:], prior, folder, options)
    rows = [{"drives": 0, **errors(held.located)}]
    renewal = update.Renewal(prior, recordings)
    with CloudStore(folder / "clouds") as store:
        update._read(recordings, store)
        update._divide(renewal.voting)
        subsets = {number: {part for one in recordings[:number + 1] for part in one.parts} for number in (0, 2)}
        tentative, _ = update._count(renewal, store, {votes.ALL: subsets[2]}, "votes", options)
        update._drop_drifting(renewal, tentative[votes.ALL], folder, options)
        found, _ = update._count(renewal, store, subsets, "votes", options)
    for number, changes in found.items():
        place = folder / f"renewed{number}"
        prior.write_overlay(place, changes)
        after = localise.locate(held.drive, place, GIVEN, lambda part: None)
        voters = [voter for one in recordings[:number + 1] for voter in one.voters]
        rows.append({"drives": number + 1, **errors(after), **(found_part(prior, changes, truth, voters) if voters else {})})
    return [{"world": world, "changed": changed, "seed": seed, **row} for row in rows]


def main(out, world, changed, *seeds):
    """Appends the rows of the seeds to OUT."""
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder, open(out, "a", encoding="utf-8") as stream:
            for row in measure(world, float(changed), int(seed), Path(folder)):
                stream.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
