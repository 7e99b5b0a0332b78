#!/usr/bin/env python3
"""Fits the two probabilities of the localiser to tables of what was right and wrong.

    fit.py MODEL [--check TABLE ...] [--verify FILE] [--header FILE] [--rows FILE] [--table FILE [--thin N]] TABLE ...

    fit.py confidence tools/dev/fits/confidence.csv.gz --header src/track/confidence_fit.h --rows tests/unit/confidence_rows.h
    fit.py hypothesis tools/dev/fits/hypothesis.csv.gz --header src/search/hypothesis_fit.h

MODEL: confidence (of a pose, ndt_track/confidence.h), or hypothesis (of a pose that searches have found,
ndt_search/hypothesis_test.h). Prints the numbers of the fit, and how often right and wrong poses pass with numbers that
were fitted to the other drives; tables of --check take no part in the fit. Needs numpy.
"""
import argparse
import gzip
import math
import re
import sys

import numpy as np

import confidence
import hypothesis

MODELS = {"confidence": confidence, "hypothesis": hypothesis}


def write_header(path, name, model, numbers):
    """The numbers as a C header."""
    guard = f"NDT_{name.upper()}_FIT_H"
    with open(path, "w", encoding="ascii") as file:
        file.write(f"/* Written by tools/dev/fits/fit.py {name} from tools/dev/fits/{name}.csv.gz; see\n"
                   f" * {model.HEADER}. */\n#ifndef {guard}\n#define {guard}\n\n")
        for key, number in zip(model.NAMES, numbers):
            file.write(f"static const double FIT_{key} = {number:.3f};\n")
        file.write("\n#endif\n")


def verify(path, names, numbers):
    """Exits with 1 unless the header has these numbers; the last digit may depend on the machine."""
    with open(path, encoding="ascii") as file:
        written = {name: float(number) for name, number in re.findall(r"FIT_(\w+) = ([-\d.]+);", file.read())}
    wrong = [name for name, number in zip(names, numbers) if not abs(written.get(name, math.inf) - number) <= 0.01]
    if wrong or len(written) != len(names):
        sys.exit(f"{path}: not the numbers of the fit: {' '.join(wrong)}")


def write_table(path, model, data, thin):
    """The rows that the model keeps of every thin-th, with three digits, gzipped."""
    texts = model.TEXTS
    with gzip.GzipFile(path, "wb", mtime=0) as binary:
        lines = [",".join(model.KEPT)]
        for i in model.thinned(data, thin):
            numbers = ["" if np.isnan(data[key][i]) else f"{data[key][i]:.3g}" for key in model.KEPT[texts:]]
            lines.append(",".join([data[key][i] for key in model.KEPT[:texts]] + numbers))
        binary.write(("\n".join(lines) + "\n").encode("ascii"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=sorted(MODELS), metavar="MODEL")
    parser.add_argument("tables", nargs="+", metavar="TABLE")
    parser.add_argument("--check", nargs="+", default=[], metavar="TABLE", help="only predicted, not fitted")
    parser.add_argument("--verify", metavar="FILE", help="exit with 1 unless this C header has the numbers of the fit")
    parser.add_argument("--header", help="write the numbers as a C header")
    parser.add_argument("--rows", help="confidence only: write rows for the unit test")
    parser.add_argument("--table", help="write a thinned table (gzipped)")
    parser.add_argument("--thin", type=int, default=1, help="keep every THIN-th row in it (default: 1)")
    return parser.parse_args()


def main():
    args = arguments()
    model = MODELS[args.model]
    data = model.read(args.tables)
    numbers = np.round(model.fit(data), 3)
    print(f"{len(data['right'])} rows of {len(np.unique(data['drive']))} drives")
    for name, number in zip(model.NAMES, numbers):
        print(f"{name:14} {number:9.3f}")
    if args.verify:
        verify(args.verify, model.NAMES, numbers)
        return
    model.report("Fitted to the other drives", data, model.cross_validate(data))
    if args.check:
        check = model.read(args.check)
        model.report("Not fitted", check, model.predict(numbers, check))
    if args.header:
        write_header(args.header, args.model, model, numbers)
    if args.rows:
        confidence.write_rows(args.rows, numbers, data)
    if args.table:
        write_table(args.table, model, data, args.thin)


if __name__ == "__main__":
    main()
