"""The confidence of a pose (ndt_track/confidence.h), fitted to alignments from right and wrong starts; see fit.py.

A table is the output of `ndt-bench confidence --csv`, plain or gzipped, named DRIVE-VIEW.csv, or a thinned table. For
thresholds of the confidence the report tells how many right and wrong poses pass (true and false accepts).
"""
import csv
import gzip
import math
import os

import numpy as np


GATE, TYPICAL_SLACK_M, LEAST_SLACK_M, MOST_SLACK_M = 22.5, 0.1, 0.05, 10.0
RIGHT_M, HELD = 0.5, 0.5
NAMES = ("ONE", "QUALITY", "LEAF", "SLACK", "INNOVATION")
THRESHOLDS = (0.5, 0.7, 0.8, 0.9, 0.95)
TOO_SURE = 0.1  # priors below this part of the offset are wrong and too sure
KEPT = ("drive", "view", "prior", "leaf_m", "nvtl_normalized", "match_ratio", "coverage", "slack_m",
        "moved_m", "innovation", "right")
TEXTS = 2  # columns of text, ahead of those of numbers
HEADER = "ndt_track/confidence.h"


def read(paths):
    rows = []
    for path in paths:
        drive, _, view = os.path.basename(path).split(".")[0].partition("-")
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="ascii") as file:
            for row in csv.DictReader(file):
                row.setdefault("drive", drive)
                row.setdefault("view", view)
                rows.append([row[key] for key in KEPT])
    data = {key: np.array([float(row[i] or "nan") for row in rows]) for i, key in enumerate(KEPT) if i > 1}
    data["drive"], data["view"] = (np.array([row[i] for row in rows]) for i in range(2))
    return data


def select(data, mask):
    return {key: values[mask] for key, values in data.items()}


def normal_below(x):
    return 0.5 * np.array([math.erfc(-value / math.sqrt(2)) for value in x.ravel()]).reshape(x.shape)


def held(data):
    """The probability that the pose cannot be elsewhere."""
    deviation = np.maximum(data["slack_m"], 1e-3)
    with np.errstate(invalid="ignore"):
        return normal_below((RIGHT_M - data["moved_m"]) / deviation) - normal_below((-RIGHT_M - data["moved_m"]) / deviation)


def design(data):
    slack = np.clip(data["slack_m"], LEAST_SLACK_M, MOST_SLACK_M)
    return np.stack([np.ones_like(slack), data["nvtl_normalized"] * data["match_ratio"], np.log2(data["leaf_m"]),
                     np.log(slack / TYPICAL_SLACK_M), np.log1p(np.nan_to_num(data["innovation"]) / GATE)], 1)


def sigmoid(z):
    return 1 / (1 + np.exp(-np.clip(z, -500, 500)))


def predict(numbers, data):
    return held(data) * sigmoid(design(data) @ numbers)


def loss_of(p, right, weight):
    p = np.clip(p, 1e-9, 1 - 1e-9)
    return -np.sum(weight * (right * np.log(p) + (1 - right) * np.log(1 - p)))


def fit(data):
    """Maximum likelihood of p = held * sigmoid(X a) by Fisher scoring; every drive has the same weight. Poses that are
    not held say nothing about the fit: in a tunnel a right one is as lucky as its start."""
    data = select(data, held(data) > HELD)
    X, h, right = design(data), held(data), data["right"]
    drives, index, counts = np.unique(data["drive"], return_inverse=True, return_counts=True)
    weight = 1 / counts[index] / len(drives)
    a = np.zeros(X.shape[1])
    loss = loss_of(h * sigmoid(X @ a), right, weight)
    for _ in range(200):
        s = sigmoid(X @ a)
        rest = np.maximum(1 - h * s, 1e-9)
        gradient = X.T @ (weight * (right * (1 - s) - (1 - right) * h * s * (1 - s) / rest))
        information = (X * (weight * h * s * (1 - s) ** 2 / rest)[:, None]).T @ X + 1e-7 * np.eye(len(a))
        step, length = np.linalg.solve(information, gradient), 1.0
        while length > 1e-6 and loss_of(h * sigmoid(X @ (a + length * step)), right, weight) > loss:
            length /= 2
        a = a + length * step
        before, loss = loss, loss_of(h * sigmoid(X @ a), right, weight)
        if before - loss < 1e-12:
            break
    return a


def line(name, data, p, thresholds=THRESHOLDS):
    right = data["right"] > 0
    cells = [f"{100 * np.mean(p[right] >= t):.1f} / {np.sum(p[~right] >= t)}" if right.any() else
             f"- / {np.sum(p[~right] >= t)}" for t in thresholds]
    return f"| {name} | {right.sum()} | {(~right).sum()} | " + " | ".join(cells) + " |"


def print_table(title, data, p, keys):
    print(f"\n{title}: true accepts [%] / number of false accepts\n")
    print("| drive | right | wrong | " + " | ".join(f">= {t}" for t in THRESHOLDS) + " |")
    print("|-|-|-|" + "-|" * len(THRESHOLDS))
    for key in np.unique(keys):
        print(line(key, select(data, keys == key), p[keys == key]))
    print(line("all", data, p))


def report(title, data, p):
    sure = (data["prior"] > 0) & (data["prior"] < TOO_SURE)
    honest, names = ~sure, np.where(data["view"] == "all", data["drive"], [f"{d} {v}" for d, v in
                                                                          zip(data["drive"], data["view"])])
    print_table(f"{title}, no prior or one that is right about itself", select(data, honest), p[honest], names[honest])
    unheld = np.char.startswith(data["drive"], "corridor") | np.char.startswith(data["drive"], "tunnel")
    for name, mask in (("all without corridors and tunnels", honest & ~unheld), ("corridors and tunnels", honest & unheld)):
        if mask.any():
            print(line(name, select(data, mask), p[mask]))
    print_table(f"{title}, priors that are wrong and far too sure", select(data, sure), p[sure], names[sure])
    reliability(data, p)


def cross_validate(data):
    p = np.zeros(len(data["right"]))
    for drive in np.unique(data["drive"]):
        mask = data["drive"] == drive
        p[mask] = predict(fit(select(data, ~mask)), select(data, mask))
    return p


def reliability(data, p):
    print("\nCalibration: poses by confidence, and the part of them that is right\n\n| confidence | poses | mean | right |"
          "\n|-|-|-|-|")
    edges = (0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.98, 1.0001)
    for low, high in zip(edges, edges[1:]):
        mask = (p >= low) & (p < high)
        if mask.any():
            print(f"| {low:g} to {min(high, 1):g} | {mask.sum()} | {p[mask].mean():.3f} | {data['right'][mask].mean():.3f} |")


def write_rows(path, numbers, data, count=24):
    """Rows for the unit test: spread over the confidence."""
    p = predict(numbers, data)
    order = np.argsort(p, kind="stable")
    picked = order[np.unique(np.searchsorted(p[order], np.linspace(p.min(), p.max(), count)).clip(0, len(p) - 1))]
    keys = ("nvtl_normalized", "match_ratio", "coverage", "slack_m", "moved_m", "innovation", "leaf_m")
    with open(path, "w", encoding="ascii") as file:
        file.write("/* Written by tools/dev/fits/fit.py confidence: rows of features, and the confidence that it computes. */\n"
                   "#ifndef CONFIDENCE_ROWS_H\n#define CONFIDENCE_ROWS_H\n\n#include <math.h>\n\n/* clang-format off */\n"
                   "static const struct {\n    double values[7]; /* " + ", ".join(keys) + " */\n"
                   "    double confidence;\n} confidence_rows[] = {\n")
        for i in picked:
            values = ["NAN" if np.isnan(data[key][i]) else "INFINITY" if np.isinf(data[key][i]) else
                      f"{data[key][i]:.9g}" for key in keys]
            file.write("    {{" + ", ".join(values) + f"}}, {p[i]:.12f}}},\n")
        file.write("};\n\n#endif\n")


def thinned(data, thin):
    return range(0, len(data["right"]), thin)
