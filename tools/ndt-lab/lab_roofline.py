"""The roofline part of LAB.md: operations and bytes of an evaluation, counted from eval_wide.c, against measured peaks.

Floating-point operations (comparisons, conversions and integer work are not counted):
  point   45  rotation 15 and translation 3, twice; cell 3, place inside it 6
  entry    8  of a neighbour list, padding included: squared distance
  pair    80  offset 9, u 15, q.u 5, exp and its argument 16, score 1, A 6, S 28; a fused multiply-add is two
  sums    89  per point: N 9, K 27, L 18, adding 35
Bytes: 12 per point, 12 for its cell's reference, 16 per list entry, 48 per pair."""

POINT, ENTRY, PAIR, SUMS = 45, 8, 80, 89
STEPS = (("cells of the points", "cells only", None), ("references to their lists", "and list references", "cells only"),
         ("voxels in reach (lists read, compacted)", "and voxels in reach", "and list references"),
         ("records loaded and transposed", "and records loaded", "and voxels in reach"),
         ("pairs", "and pairs", "and records loaded"), ("sums of points", "whole", "and pairs"))


def facts(rows, case):
    return {row.variant: row.median() for row in rows if row.experiment == "roofline" and row.case == case}


def parts(case, found):
    whole = found["whole"]
    for name, upto, before in STEPS:
        took = found[upto] - (found[before] if before else 0)
        yield "| %s | %s | %.2f us | %.0f %% |" % (case, name, took, 100 * took / whole)
    yield "| %s | of the pairs: exp | %.2f us | %.0f %% |" % (case, whole - found["whole without exp"],
                                                           100 * (whole - found["whole without exp"]) / whole)


def achieved(case, found, isa, peak):
    useful = found["points"] * (POINT + SUMS) + found["voxels listed"] * ENTRY + found["pairs"] * PAIR
    moved = found["points"] * 24 + found["list entries with padding"] * 16 + found["pairs"] * 48
    whole, top = found["whole"], peak["fused peak"] * 1e3 if peak["fused peak"] else peak["apart peak"] * 1e3
    idle = (found["lanes that pairs take"] - found["pairs"]) * PAIR
    padding = (found["list entries with padding"] - found["voxels listed"]) * ENTRY
    level = next((name for name in peak if name.startswith("L2")), None)
    yield "* **%s**: %.0f kflop and %.0f kB in %.1f us: %.1f GFLOP/s, %.0f %% of the %.0f GFLOP/s that %s does with " \
          "fused multiply-adds (apart: %.0f); %.1f GB/s%s, %.2f flop per byte." % (
              case, useful * 1e-3, moved * 1e-3, whole, useful / whole * 1e-3, 100 * useful / whole / top, top * 1e-3, isa,
              peak["apart peak"], moved / whole * 1e-3,
              ", %.0f %% of what %s gives" % (100 * moved / whole / (peak[level] * 1e3), level) if level else "", useful / moved)
    yield "  At its peak the useful work would take %.1f us. Lanes whose point has no further voxel add %.1f us (%.0f %% of " \
          "the lanes of pairs idle), padding of lists %.2f us. The remaining %.1f us are no arithmetic of this count: loads " \
          "and transposition of records (a gather by hand), look-ups, compaction, integer work of exp, stores." % (
              useful / top, idle / top, 100 * idle / PAIR / found["lanes that pairs take"], padding / top,
              whole - (useful + idle + padding) / top)


def peaks(rows, names):
    columns = []
    for name in names:
        columns += [key for key in facts(rows, name) if key not in columns]
    yield "| | " + " | ".join(columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for name in names:
        found = facts(rows, name)
        yield "| %s | %s |" % (name, " | ".join("%.0f" % found[key] if found.get(key) else "-" for key in columns))


def lines(rows):
    cases = list(dict.fromkeys(row.case for row in rows if row.experiment == "roofline"))
    sizes = [case for case in cases if "whole" in facts(rows, case)]
    names = [case for case in cases if "apart peak" in facts(rows, case)]
    if not sizes or not names:
        return []
    found = ["Measured peaks of one core [GFLOP/s, GB/s]; useful operations and bytes of an evaluation (2 m, radius, 1 thread)",
             "are counted from the source, see the head of `lab_roofline.py`.", ""] + list(peaks(rows, names)) + [""]
    for case in sizes:
        found += achieved(case, facts(rows, case), names[-1], facts(rows, names[-1]))
    found += ["", "| | part of an evaluation, by leaving out what follows | time | share |", "|---|---|---|---|"]
    for case in sizes:
        found += parts(case, facts(rows, case))
    return found + counted(rows, sizes)


def counted(rows, sizes):
    """Callgrind's instructions, and the float operations among them against what is counted from the source."""
    out = []
    for isa in dict.fromkeys(row.case for row in rows if row.experiment == "count"):
        found = {row.variant: row.median() for row in rows if row.experiment == "count" and row.case == isa}
        expected = found["points"] * (POINT + SUMS) + found["list entries with padding"] * ENTRY + \
            found["lanes that pairs take"] * PAIR
        out.append("* %s, %s, callgrind: %.0f instructions per evaluation. Float operations among them, idle lanes and padding "
                   "included: %.0f; by the count above: %.0f (%+.1f %%)." % (
                       sizes[0], isa, found["instructions per evaluation"], found["float operations per evaluation"], expected,
                       100 * (expected / found["float operations per evaluation"] - 1)))
    return [""] + out if out else []
