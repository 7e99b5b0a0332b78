"""`tools/lab report`: LAB.md and plots from what `tools/lab run` left."""
import csv
import json
import os
import re
import statistics

import lab_roofline
import lab_svg
import lab_table

LEAST = 0.02  # nothing smaller is a difference, however small the spread
HERE = os.path.dirname(os.path.abspath(__file__))


class Cannot(Exception):
    """A line for the user; exit code 3."""


class Row:
    def __init__(self, fields):
        self.experiment, self.case, self.variant, self.role, self.unit = fields[:5]
        self.samples = [float(word) for word in fields[5].split()]

    def median(self):
        return statistics.median(self.samples)


def read(folder):
    try:
        with open(os.path.join(folder, "lab.json"), encoding="utf-8") as file:
            head = json.load(file)
        with open(os.path.join(folder, "lab.csv"), newline="", encoding="utf-8") as file:
            rows = [Row(fields) for fields in list(csv.reader(file))[1:]]
    except FileNotFoundError as error:
        raise Cannot("%s: no such file; `tools/lab run --out DIR` writes it" % error.filename) from None
    except (ValueError, IndexError, KeyError) as error:
        raise Cannot("%s: not what `tools/lab run` writes (%s)" % (folder, error)) from None
    return head, rows


# ---- comparing ----

def quartiles(values):
    """Of a few numbers, between neighbours."""
    values = sorted(values)

    def at(part):
        place = part * (len(values) - 1)
        low = int(place)
        high = min(low + 1, len(values) - 1)
        return values[low] + (place - low) * (values[high] - values[low])
    return at(0.25), at(0.75)


def compare(base, row):
    """Factor (above 1: faster than the base), its quartiles, verdict."""
    if row.unit.startswith("%"):
        off = row.median() - base.median()
        reach = max(max(row.samples) - min(row.samples), max(base.samples) - min(base.samples))
        verdict = "no difference" if abs(off) <= max(reach, 0.5) else "less" if off < 0 else "more"
        return "%.3g %% -> %.3g %%" % (base.median(), row.median()), "%.2g" % reach, verdict
    pairs = [b / r for b, r in zip(base.samples, row.samples) if r > 0]
    if not pairs:
        return "-", "-", "not measured"
    low, high = quartiles(pairs)
    factor = statistics.median(pairs)
    if len(pairs) < 2:
        verdict = "no difference" if abs(factor - 1) < LEAST else "faster" if factor > 1 else "slower"
    elif low <= 1 <= high or abs(factor - 1) < LEAST:
        verdict = "no difference"
    else:
        verdict = "faster" if factor > 1 else "slower"
    return "%.2f" % factor, "%.2f .. %.2f" % (low, high), verdict


def state_of(experiment, row, verdict):
    """Whether the product does it so, and whether that agrees with what was measured."""
    if experiment.product == "*":
        return "by option"
    if row.case.startswith("simulated") and row.variant == "adaptive":
        return "not in the product"
    if row.variant == experiment.product:
        return {"no difference": "kept: no difference here", "slower": "kept: slower here, see note"}.get(verdict, "kept")
    if row.variant.startswith("depth") or experiment.name in ("spin", "tiles"):
        return "by option"
    return {"faster": "not in the product, see note"}.get(verdict, "not in the product")


def cases_of(rows, name):
    """(base, [variants]) of each case, in the order of the file."""
    found = {}
    for row in rows:
        if row.experiment == name and row.role in ("base", "variant"):
            found.setdefault(row.case, []).append(row)
    for case in found.values():
        base = [row for row in case if row.role == "base"]
        if base:
            yield base[0], [row for row in case if row.role == "variant"]


def number(row):
    return "%.4g %s" % (row.median(), row.unit.split("/")[0])


def comparison_lines(rows, experiment):
    for base, variants in cases_of(rows, experiment.name):
        for row in variants:
            factor, spread, verdict = compare(base, row)
            yield "| %s | %s | %s against %s | %s, %s | %s | %s | %s | %s |" % (
                experiment.name, row.case, row.variant, base.variant, number(row), number(base), factor, spread, verdict,
                state_of(experiment, row, verdict))


def left_out(rows):
    """What was measured here, does not help, and therefore is not in the product."""
    found = {}
    for experiment in lab_table.EXPERIMENTS:
        if experiment.gpu or experiment.product in ("", "*"):
            continue
        for base, variants in cases_of(rows, experiment.name):
            for row in variants:
                factor, _, verdict = compare(base, row)
                if row.variant == experiment.product:
                    loser, lost = base.variant, verdict == "faster"
                else:
                    loser, lost = row.variant, verdict in ("slower", "no difference")
                if loser != experiment.product and not state_of(experiment, row, verdict).startswith("by option"):
                    pair = "%s against %s" % (row.variant, base.variant)
                    found.setdefault((experiment.name, loser, pair), []).append((lost, factor, verdict))
    return ["* %s: **%s** (%s: %s; %s)" % (name, loser, pair, ", ".join(dict.fromkeys(case[1] for case in cases)),
                                          ", ".join(dict.fromkeys(case[2] for case in cases)))
            for (name, loser, pair), cases in found.items() if all(case[0] for case in cases)]


def comparison_table(rows):
    lines = ["| experiment | case | what is compared | medians | factor | spread | verdict | in the product |",
             "|---|---|---|---|---|---|---|---|"]
    notes = []
    for experiment in lab_table.EXPERIMENTS:
        if experiment.gpu or experiment.name in ("peer", "roofline"):
            continue
        mine = list(comparison_lines(rows, experiment))
        lines += mine
        if mine:
            notes.append("* **%s**: %s%s." % (experiment.name, experiment.about,
                                              "; " + experiment.why if experiment.why else ""))
    return lines + [""] + notes


# ---- plots ----

def curves(rows, experiment, words):
    found = {}
    for row in rows:
        if row.experiment == experiment and row.role == "curve" and words in row.case:
            found.setdefault(row.case, []).append((float(row.variant), row.median()))
    return found


def slope(points, first, power):
    low, high = min(points), max(points)
    return [(low, first), (high, first * (high / low) ** power)]


def cost_plots(rows):
    """File name, SVG, one line on it."""
    for name, experiment, words, title, x, y in (
            ("lab_cost_points.svg", "cost", "over points", "An evaluation over the number of points", "points", "us"),
            ("lab_cost_voxels.svg", "cost", "over voxels", "Over the size of the map", "voxels", "us (evaluation), ms (build)"),
            ("lab_cost_tiles.svg", "tiles", "over tiles", "First load over the number of tiles", "tiles", "ms"),
            ("lab_cost_threads.svg", "cost", "over threads", "An evaluation over the number of threads", "threads", "us"),
            ("lab_cost_large.svg", "chunking", "over points", "Up to ten million points", "points", "ns per point")):
        found = curves(rows, experiment, words)
        if not found:
            continue
        points = next(iter(found.values()))
        xs, ideal = [px for px, _ in points], []
        if name != "lab_cost_large.svg" and len(points) > 1:
            steepest = max(found.values(), key=lambda series: max(series)[1] / min(series)[1])
            ideal = slope(xs, min(steepest)[1], -1 if words == "over threads" else 1)
        named = [(legend(case), series) for case, series in found.items()]
        yield name, lab_svg.plot(title, x, y, named, ideal), growth(found)


def legend(case):
    return re.sub(" over [^:]*", "", case).replace(": ", ", ")


def growth(found):
    parts = []
    for name, points in found.items():
        low, high = min(points), max(points)
        parts.append("%s: %.4g at %s, %.4g at %s (times %.3g for %.3g times as many)" % (
            name, low[1], lab_svg.short(low[0]), high[1], lab_svg.short(high[0]), high[1] / low[1], high[0] / low[0]))
    return "; ".join(parts)


def peer_series(rows):
    found = {}
    for row in rows:
        if row.experiment == "peer" and row.role in ("base", "variant"):
            found.setdefault(row.variant, []).append((float(row.case.split()[0]), row.median()))
    return found


def peer_part(rows):
    lines = ["| points | " + " | ".join(peer_series(rows)) + " | 1 thread against PCL | success |", ""]
    names = list(peer_series(rows))
    lines[1] = "|" + "---|" * (len(names) + 3)
    success = {(row.case, row.variant[:-8]): row.median() for row in rows
               if row.experiment == "peer" and row.variant.endswith(" success")}
    for case in dict.fromkeys(row.case for row in rows if row.experiment == "peer"):
        here = {row.variant: row for row in rows if row.experiment == "peer" and row.case == case}
        times = ["%.3g ms" % here[name].median() if name in here else "-" for name in names]
        one = next((name for name in names if name.endswith("1 thread")), None)
        ratio = "-"
        if "PCL" in here and one in here:
            factors = [p / o for p, o in zip(here["PCL"].samples, here[one].samples)]
            ratio = "%.0fx (%.0f .. %.0f)" % (statistics.median(factors), min(factors), max(factors))
        parts = ["%s %.0f %%" % ("ndtd" if name == one else name, 100 * success[(case, name)]) for name in names
                 if (case, name) in success and name in (one, "PCL")]
        lines.append("| %s | %s | %s | %s |" % (case.split()[0], " | ".join(times), ratio, ", ".join(parts)))
    return lines


# ---- the rest of the page ----

def gpu_part(head, rows):
    lines = ["`tools/lab run --out DIR` fills all of them on a machine with a GPU; on the emulated device of the tests they run",
             "(`--emulated`), but times from there say nothing and are thrown away.", "",
             "| experiment | what is compared | result | command |", "|---|---|---|---|"]
    notes = {note["name"]: note for note in head["experiments"]}
    for experiment in lab_table.EXPERIMENTS:
        if not experiment.gpu:
            continue
        mine = [row for row in rows if row.experiment == experiment.name and row.role != "base"]
        if not mine:
            why = notes.get(experiment.name, {}).get("why") or "not run"
            lines.append("| %s | %s | open: %s | `%s` |" % (experiment.name, experiment.about, why, experiment.command()))
        bases = {base.case: base for base, _ in cases_of(rows, experiment.name)}
        for row in mine:
            told = number(row)
            if row.role == "variant" and row.case in bases:
                factor, spread, verdict = compare(bases[row.case], row)
                told += "; against %s: %s (%s), %s" % (bases[row.case].variant, factor, spread, verdict)
            lines.append("| %s | %s: %s | %s | |" % (experiment.name, row.case, row.variant, told))
    return lines


def front_part(rows):
    mine = [row for row in rows if row.experiment == "front"]
    cases = list(dict.fromkeys(row.case for row in mine))
    lines = ["| step | " + " | ".join(cases) + " |", "|---|" + "---|" * len(cases)]
    for step in dict.fromkeys(row.variant for row in mine):
        here = {row.case: row for row in mine if row.variant == step}
        lines.append("| %s | %s |" % (step, " | ".join("%.3g us" % here[case].median() if case in here else "-"
                                                       for case in cases)))
    return lines


def earlier_part():
    lines = ["| what | result | verdict | |", "|---|---|---|---|"]
    with open(os.path.join(HERE, "lab_earlier.csv"), newline="", encoding="utf-8") as file:
        for row in list(csv.reader(file))[1:]:
            lines.append("| %s | %s | %s | measured while optimising |" % tuple(row))
    return lines


def run_part(head):
    lines = ["| experiment | | seconds | load before, after |", "|---|---|---|---|"]
    for note in head["experiments"]:
        lines.append("| %s | %s%s | %.0f | %.1f, %.1f |" % (note["name"], note["state"], ": " + note["why"] if note["why"]
                                                           else "", note["seconds"], note["load_before"], note["load_after"]))
    return lines


def opening(head):
    machine = head["machine"]
    loads = [note[key] for note in head["experiments"] for key in ("load_before", "load_after")] or [0]
    alone = "" if max(loads) <= 0.75 * machine["cores"] else "; other programs ran beside it"
    small = ["", "**Made with --quick: shows that everything runs, no figure of it means anything.**"] if head["quick"] else []
    return ["# Performance laboratory", "",
            "Machine: %s, %d cores, %d MiB, %s; %s; CPU variants %s. GPU: %s. %s. Data: %s%s; seed %d." % (
                machine["cpu"], machine["cores"], machine["memory_mib"], machine["system"], machine["compiler"],
                machine["cpu_variants"], head["device"], head["date"], head["data"],
                " (" + ", ".join(head["settings"]) + ")" if head["settings"] else "", head["seed"]),
            "Load average %.1f to %.1f, the lab itself included%s; %s." % (
                min(loads), max(loads), alone, "priority raised (nice -10)" if head["nice"] else "normal priority"),
            ] + small + ["",
            "Written by `tools/lab report` from `tools/lab run`. What is compared takes turns in one run, in a seeded order;",
            "factor: median over the rounds of the time of the second over that of the first of a pair, above 1 where the first",
            "is faster; spread: quartiles of that. **No difference**: 1 lies within the spread, or the factor is less than 2 %",
            "from it; then the simpler one is right. Sizes of figures in `%` are compared as they are."]


def section(title, lines):
    return ["", "## " + title, ""] + lines if lines else []


def page(head, rows, plots):
    lines = opening(head) + section("On the CPU", comparison_table(rows))
    if any(row.experiment == "peer" for row in rows):
        lines += section("Against PCL", ["Whole aligns from starts up to 0.5 m and 2 deg off, one level of 2 m, radius; median "
                                         "of medians of three seeds, PCL in the same runs.", ""] + peer_part(rows) +
                         ["", "![time against points](lab_points.svg)"])
    cost = [line for name, _, told in plots if name != "lab_points.svg" for line in ("![%s](%s)" % (name[:-4], name), "",
                                                                                     told + ".", "")]
    lines += section("Cost", ["Made-up worlds of ndt-lab; evaluations with warm caches (the quicker of two at each of eight places).",
                              ""] + cost if cost else [])
    lines += section("Roofline", lab_roofline.lines(rows))
    if any(row.experiment == "front" for row in rows):
        lines += section("Decoding and preprocessing", front_part(rows))
    lines += section("On a GPU", gpu_part(head, rows))
    lines += section("What is not in the product because it does not help", left_out(rows))
    lines += section("Tried and decided earlier", earlier_part())
    return lines + section("This run", run_part(head))


def write(folder, out):
    head, rows = read(folder)
    plots = list(cost_plots(rows))
    if peer_series(rows):
        plots.append(("lab_points.svg", lab_svg.plot("Whole align, one level of 2 m, radius", "points", "ms",
                                                     list(peer_series(rows).items())), ""))
    os.makedirs(out, exist_ok=True)
    for name, svg, _ in plots:
        with open(os.path.join(out, name), "w", encoding="utf-8") as file:
            file.write(svg)
    with open(os.path.join(out, "LAB.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(page(head, rows, plots)) + "\n")
    print("written: %s and %d plots" % (os.path.join(out, "LAB.md"), len(plots)))
    return 0
