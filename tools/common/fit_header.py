"""Numbers of a fit in a C header: written by the scripts that fit, verified by the tests."""
import math
import re
import sys


def write(path, kind, names, numbers):
    """kind: evidence or confidence, the folder of the script and the name of the public header."""
    module = {"evidence": "ndt_search", "confidence": "ndt_track"}[kind]
    guard = f"NDT_{kind.upper()}_FIT_H"
    with open(path, "w", encoding="ascii") as file:
        file.write(f"/* Written by tools/{kind}/fit_{kind}.py from tools/{kind}/features.csv.gz; see\n"
                   f" * {module}/{kind}.h. */\n#ifndef {guard}\n#define {guard}\n\n")
        for name, number in zip(names, numbers):
            file.write(f"static const double FIT_{name} = {number:.3f};\n")
        file.write("\n#endif\n")


def verify(path, names, numbers):
    """Exits with 1 unless the header has these numbers; the last digit may depend on the machine."""
    with open(path, encoding="ascii") as file:
        written = {name: float(number) for name, number in re.findall(r"FIT_(\w+) = ([-\d.]+);", file.read())}
    wrong = [name for name, number in zip(names, numbers) if not abs(written.get(name, math.inf) - number) <= 0.01]
    if wrong or len(written) != len(names):
        sys.exit(f"{path}: not the numbers of the fit: {' '.join(wrong)}")
