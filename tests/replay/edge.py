#!/usr/bin/env python3
"""A drive that leaves the map and comes back into it, with and without map.extend (standard library only).

    edge.py BIN_DIR

A simulated street, of whose map everything is cut away that lies nearest to a part of the way. Without map.extend the
pose is lost there. With it no scan is lost: the state beyond the edge is `extending` with a pose whose error its
covariance holds, and tracking goes on where the map is met again. In the whole map the option changes no bit.
"""
import array
import json
import math
import subprocess
import sys
import tempfile

BEGIN_M, END_M = 40, 100  # the part of the way without a map
# Another street, which a place that was reached beyond the edge resembles: without map.extend nothing is believed there.
ALIKE = "--world street --seed 42 --scans 420 --columns 900 --map-spacing 0.25", 60, 220
SIM = "--world street --seed 31 --scans 220 --columns 450 --range 40 --map-spacing 0.35"
CELL_M = 4
INSIDE_M = 2.83, 3.76  # distances in sigmas, 3 degrees of freedom, within which 95.4 % and 99.7 % are


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"FAIL {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def nearest_in(cell, samples):
    """The samples that can be the nearest one to a point of a square cell: a point is at most half a diagonal from its centre."""
    centre = [(index + 0.5) * CELL_M for index in cell]
    off_m = [math.dist(centre, sample[1:]) for sample in samples]
    reach_m = min(off_m) + 1.001 * math.sqrt(2) * CELL_M
    return [sample for sample, distance_m in zip(samples, off_m) if distance_m <= reach_m]


def cut_away(source, target, truths, begin_m, end_m):
    """Leaves out the points that are nearest to the truth where its way is between begin_m and end_m."""
    way, samples = 0.0, []
    for before, now in zip(truths, truths[1:]):
        way += math.dist(before[:3], now[:3])
        if not samples or way - samples[-1][0] > 2:
            samples.append((way, now[0], now[1]))
    with open(source, "rb") as file:
        data = file.read()
    at = data.index(b"DATA binary\n") + len(b"DATA binary\n")
    values, kept, near = array.array("f", data[at:]), array.array("f"), {}
    for i in range(0, len(values), 4):
        x, y = values[i], values[i + 1]
        cell = x // CELL_M, y // CELL_M
        if cell not in near:
            near[cell] = nearest_in(cell, samples)
        nearest = min(near[cell], key=lambda sample: (sample[1] - x) ** 2 + (sample[2] - y) ** 2)[0]
        if not begin_m < nearest < end_m:
            kept.extend(values[i:i + 4])
    count = str(len(values) // 4)
    header = data[:at].decode().replace(f"WIDTH {count}", f"WIDTH {len(kept) // 4}").replace(
        f"POINTS {count}", f"POINTS {len(kept) // 4}")
    with open(target, "wb") as file:
        file.write(header.encode() + kept.tobytes())


def simulate(bin_dir, folder, options, begin_m, end_m):
    """A drive, its map and the map that is cut; the true poses by stamp."""
    run(f"{bin_dir}/ndt-sim", "--out", folder, "--force", *options.split())
    dump = [json.loads(line) for line in
            run(f"{bin_dir}/ndt-bag", "dump", f"{folder}/drive.bag", "--type", "truth").splitlines()]
    truths = {message["stamp_ns"]: message["pose"] for message in dump}
    cut_away(f"{folder}/map.pcd", f"{folder}/cut.pcd", list(truths.values()), begin_m, end_m)
    return truths


def distance(off, covariance):
    """Of a position from the truth, in sigmas: |L^-1 off| with the Cholesky factor L of its covariance."""
    L = [[0.0] * 3 for _ in range(3)]
    for i in range(3):
        for j in range(i + 1):
            rest = covariance[6 * i + j] - sum(L[i][k] * L[j][k] for k in range(j))
            L[i][j] = math.sqrt(rest) if i == j else rest / L[j][j]
    z = []
    for i in range(3):
        z.append((off[i] - sum(L[i][k] * z[k] for k in range(i))) / L[i][i])
    return math.hypot(*z)


class Replay:
    def __init__(self, bin_dir, folder, map_name, truths, *options):
        text = run(f"{bin_dir}/ndtd", "--replay", f"{folder}/drive.bag", "--map", f"{folder}/{map_name}",
                   "--results", f"{folder}/results.jsonl", "--threads", "1", *options)
        self.hash = next(line.split()[-1] for line in text.splitlines() if line.startswith("trajectory hash"))
        with open(f"{folder}/results.jsonl", encoding="utf-8") as file:
            self.rows = [json.loads(line) for line in file]
        self.states = [row["state"] for row in self.rows]
        self.off = [[a - b for a, b in zip(row["pose"][:3], truths[row["stamp_ns"]][:3])] for row in self.rows]
        claims = [row["outcome"] == "converged" or row["state"] == "tracking" for row in self.rows]
        self.wrong = sum(said and math.hypot(*off) > 1 for said, off in zip(claims, self.off))
        self.lost = sum(state in ("lost", "recovering", "initialising") for state in self.states)

    def extending(self):
        return [i for i, state in enumerate(self.states) if state == "extending"]


def main():
    bin_dir, failed = sys.argv[1], []

    def check(what, holds):
        print(f"{'ok  ' if holds else 'FAIL'} {what}")
        failed.extend([] if holds else [what])

    with tempfile.TemporaryDirectory() as folder:
        truths = simulate(bin_dir, folder, *ALIKE)
        alike = Replay(bin_dir, folder, "cut.pcd", truths)
        check(f"a street like another: {alike.lost} lost, {alike.wrong} wrong", alike.lost > 20 and alike.wrong == 0)
    with tempfile.TemporaryDirectory() as folder:
        truths = simulate(bin_dir, folder, SIM, BEGIN_M, END_M)
        on = ("--set", "map.extend=true")
        before = Replay(bin_dir, folder, "cut.pcd", truths)
        after = Replay(bin_dir, folder, "cut.pcd", truths, *on)
        check(f"without it {before.lost} scans are lost, {before.wrong} wrong", before.lost > 20 and before.wrong == 0)
        check(f"with it {after.lost} are lost, {after.wrong} wrong", after.lost == 0 and after.wrong == 0)
        beyond = after.extending()
        check(f"{len(beyond)} are extending, and the last is tracking", len(beyond) > 20 and after.states[-1] == "tracking")
        check("none of them claims to have converged", all(after.rows[i]["outcome"] == "off_map" for i in beyond))
        sigmas = [distance(after.off[i], after.rows[i]["covariance"]) for i in beyond]
        largest_m = max(math.hypot(*after.off[i]) for i in beyond)
        inside = [sum(d <= limit for d in sigmas) / len(sigmas) for limit in INSIDE_M]
        check(f"off by {largest_m:.3f} m at most, {max(sigmas):.2f} sigmas", inside[0] >= 0.9 and inside[1] >= 0.99)
        spread = [sum(after.rows[i]["covariance"][k] for k in (0, 7, 14)) for i in beyond]
        check("the covariance grows", spread[-1] > 4 * spread[len(spread) // 10] > 0)
        whole = Replay(bin_dir, folder, "map.pcd", truths)
        check("in the whole map it changes no bit", whole.hash == Replay(bin_dir, folder, "map.pcd", truths, *on).hash)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
