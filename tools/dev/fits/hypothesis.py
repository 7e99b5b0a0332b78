"""The probability of a pose hypothesis (ndt_search/hypothesis_test.h), fitted to searches in right and wrong worlds; see
fit.py.

A table is the output of `ndt-bench search --steady --csv`, named DRIVE__MAP__VIEW.csv, or a thinned table. A map of
another name than the drive, or a drive that begins with "mir", is a wrong world: no pose is right. Every third scan
starts a hypothesis, the best one of its search, which is followed over the next 40 searches along the true motion, but
may slide by a metre each time. Views that end with -N are single scans, far apart. The report tells how many hypotheses
are accepted.
"""
import collections
import csv
import gzip
import math
import os
import re

import numpy as np


STEP_M, TURN_DEG, LEAST, NARROW, VIEWS, POINTS, UNEXPLAINED, BELIEVED = 1.0, 25.0, 30, 0.5, 3, 100, 0.03, 0.99
MOST, NOT_FOUND, FADES = 8.0, -1.0, 0.8
RIGHT_M, RIGHT_DEG, MISSES, FOLLOWED, EVERY = 1.0, 5.0, 3, 40, 3
TWINS = ("corridor", "tunnel", "twincity", "twinhall")  # worlds in which a right place looks like others
NAMES = ("ONE", "SIGNIFICANCE", "UNEXPLAINED")
KEPT = ("drive", "map", "view", "start", "k", "moved_m", "time_s", "views", "significance", "unexplained", "sectors",
        "points", "found", "right")
TEXTS = 3  # columns of text, ahead of those of numbers
HEADER = "ndt_search/hypothesis_test.h"
POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")


def family(name):
    return name.rstrip("0123456789")


def pose_of(v):
    x, y, z, w = v[3:]
    T = np.eye(4)
    T[:3, :3] = [[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                 [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                 [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]
    T[:3, 3] = v[:3]
    return T


def apart(A, B):
    turn = math.degrees(math.acos(np.clip((np.trace(A[:3, :3].T @ B[:3, :3]) - 1) / 2, -1, 1)))
    return np.linalg.norm(A[:3, 3] - B[:3, 3]), turn


def difference(p, r, n):
    return (p - r) / math.sqrt((p * (1 - p) + r * (1 - r) + 0.25 / n) / n)


def read_searches(path):
    """One dictionary per search with a candidate."""
    searches = []
    with open(path, encoding="ascii") as file:
        for row in csv.DictReader(file):
            number = lambda key: float(row[key] or "nan")
            count = int(number("count"))
            if count:
                searches.append({"T": pose_of([number("t" + key) for key in POSE]), "t": number("t_s"), "n": number("dense_points"),
                                 "sectors": number("sectors"), "inliers": [number(f"inliers{i}") for i in range(count)],
                                 "match": [number(f"match{i}") for i in range(count)],
                                 "poses": [pose_of([number(f"{key}{i}") for key in POSE]) for i in range(count)]})
    return searches


def features(search, i):
    """z and match ratio of candidate i, None: of a place that is not found."""
    others = sorted((p for k, p in enumerate(search["inliers"]) if k != i), reverse=True) + [0, 0]
    if i is None:
        z, match = difference(others[1], others[0], search["n"]) + NOT_FOUND, math.nan
    else:
        z, match = difference(search["inliers"][i], others[0], search["n"]), search["match"][i]
    return min(max(z, -MOST), MOST), match


def follow(searches, start, steps, is_wrong_world):
    """Rows of the place that is best at `start`: k, moved, time, views, Z, unexplained, sectors, points, found, right."""
    place = searches[start]["poses"][0]
    truth, view, moved, misses, views, is_view_found = searches[start]["T"], None, 0, 0, 0, False
    z_sum, z_count, before, weight2, means = 0, 0, 0, 0, np.zeros(4)
    for k, search in enumerate(searches[start:start + steps]):
        step = np.linalg.inv(truth) @ search["T"]
        length = np.linalg.norm(step[:3, 3])
        truth, place, moved = search["T"], place @ step, moved + length
        at = next((i for i, pose in enumerate(search["poses"]) if apart(pose, place)[0] < 1 + 0.1 * length
                   and apart(pose, place)[1] < 6), None)
        misses = misses + 1 if at is None else 0
        place = place if at is None else search["poses"][at]
        if search["n"] >= LEAST:
            far, turn = apart(view, place) if view is not None else (math.inf, 0)
            if far > STEP_M or (search["sectors"] < NARROW and turn > TURN_DEG):
                if z_count:
                    before, weight2 = FADES * (before + z_sum / z_count), FADES**2 * (weight2 + 1)
                means, view, z_sum, z_count, is_view_found = FADES * means, place, 0, 0, False
            z, match = features(search, at)
            z_sum, z_count = z_sum + z, z_count + 1
            if at is not None:
                views, is_view_found = views + (not is_view_found), True
                means = means + (1, 1 - match, search["sectors"], search["n"])
        off_m, off_deg = apart(place, truth)
        if means[0]:
            yield [k, moved, search["t"] - searches[start]["t"], views, (before + z_sum / z_count) / math.sqrt(weight2 + 1),
                   *(means[1:] / means[0]), int(at is not None), int(not is_wrong_world and off_m < RIGHT_M and off_deg < RIGHT_DEG)]
        if misses == MISSES:
            return


def read(paths):
    rows = []
    for path in paths:
        if path.endswith(".gz"):
            with gzip.open(path, "rt", encoding="ascii") as file:
                rows += [[row[key] for key in KEPT] for row in csv.DictReader(file)]
            continue
        drive, world, view = os.path.basename(path)[:-4].split("__")
        searches = read_searches(path)
        single = re.search(r"-\d+$", view)
        wrong = drive != world or drive.startswith("mir")
        for start in range(0, len(searches), 1 if single else EVERY):
            for row in follow(searches, start, 1 if single else FOLLOWED, wrong):
                rows.append([drive, world, view, start] + row)
    data = {key: np.array([row[i] for row in rows]) for i, key in enumerate(KEPT)}
    return {key: values if i < 3 else values.astype(float) for i, (key, values) in enumerate(data.items())}


def design(data):
    narrow = data["sectors"] < NARROW
    return np.stack([np.ones(len(narrow)), np.minimum(data["significance"], MOST), narrow * data["unexplained"]], 1)


def sigmoid(z):
    return 1 / (1 + np.exp(-np.clip(z, -500, 500)))


def fit(data):
    """Maximum likelihood; right and wrong have the same weight. A right place in a world of twins says nothing."""
    twin = np.isin([family(name) for name in data["drive"]], TWINS)
    used = (data["found"] > 0) & ~(twin & (data["right"] > 0))
    X, y = design(data)[used], data["right"][used]
    weight = len(y) * np.where(y > 0, 0.5 / y.sum(), 0.5 / (1 - y).sum())
    a = np.zeros(X.shape[1])
    for _ in range(100):
        p = sigmoid(X @ a)
        step = np.linalg.solve((X * (weight * p * (1 - p))[:, None]).T @ X + 1e-3 * np.eye(len(a)),
                               X.T @ (weight * (y - p)) - 1e-3 * a)
        a = a + step
        if np.abs(step).max() < 1e-10:
            break
    return a


def predict(numbers, data):
    return sigmoid(design(data) @ numbers)


def accepted_by(data, p):
    narrow = data["sectors"] < NARROW
    seen = (data["views"] >= VIEWS) & (data["points"] >= POINTS) & (data["unexplained"] <= UNEXPLAINED)
    return (p >= BELIEVED) & (data["found"] > 0) & (~narrow | seen)


def cross_validate(data):
    families, worlds = (np.array([family(name) for name in data[key]]) for key in ("drive", "map"))
    p = np.zeros(len(families))
    for name in np.unique(families):
        rest = (families != name) & (worlds != name)
        held = families == name
        p[held] = sigmoid(design({k: v[held] for k, v in data.items()}) @ fit({k: v[rest] for k, v in data.items()}))
    return p


def report(title, data, p):
    """Per family: hypotheses by the search that began them."""
    print(f"\n# {title}")
    accepted = accepted_by(data, p)
    places = collections.OrderedDict()
    for i in range(len(p)):
        key = (data["drive"][i], data["map"][i], data["view"][i], data["start"][i])
        place = places.setdefault(key, {"right": data["right"][i], "narrow": data["sectors"][i] < NARROW, "at": None, "wrong": 0,
                                        "p": 0, "n": 0})
        place["n"] += 1
        if accepted[i] and data["right"][i] and place["at"] is None:
            place["at"] = (data["k"][i], data["moved_m"][i], data["time_s"][i])
        if data["found"][i] and not data["right"][i]:
            place["wrong"] += accepted[i]
            place["p"] = max(place["p"], p[i])
    print("\nRight places by the search that found them: share believed at that scan, within 1 s, 2.5 m, 5 m\n")
    print("| drive | view | places | first | 1 s | 2.5 m | 5 m |\n|-|-|-|-|-|-|-|")
    groups = collections.defaultdict(list)
    for key, place in places.items():
        if place["right"] and place["n"] > 1:
            groups[family(key[0]), "narrow" if place["narrow"] else "wide"].append(place["at"] or (99, 1e9, 1e9))
    for (name, view), at in sorted(groups.items()):
        k, m, s = np.array(at).T
        print(f"| {name} | {view} | {len(at)} | {np.mean(k == 0):.3f} | {np.mean(s <= 1.01):.3f} | {np.mean(m <= 2.5):.3f} | {np.mean(m <= 5):.3f} |")
    print("\nWrong places: begun, believed at any time, largest probability\n\n| drive | map | places | believed | p |\n|-|-|-|-|-|")
    groups = collections.defaultdict(list)
    for key, place in places.items():
        if not place["right"]:
            world = "own" if key[0] == key[1] else "mirrored" if key[1] == "m_" + key[0] else "other"
            groups[family(key[0]), world].append(place)
    total = [0, 0]
    for (name, world), group in sorted(groups.items()):
        count, wrong = len(group), sum(place["wrong"] > 0 for place in group)
        total = [total[0] + count, total[1] + wrong]
        print(f"| {name} | {world} | {count} | {wrong} | {max(place['p'] for place in group):.3f} |")
    print(f"\nwrong places {total[0]}, believed {total[1]}; upper bound of the rate with 0: {3 / max(total[0], 1):.1e} (95 %)")
    for key, place in places.items():
        if place["wrong"]:
            print("believed wrong:", *key)


def thinned(data, thin):
    """The first row of every hypothesis and every thin-th of the others."""
    return (i for i in range(len(data["right"])) if data["k"][i] == 0 or i % thin == 0)
