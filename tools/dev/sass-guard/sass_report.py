"""Rows of counts: static ones of every kernel, and a baseline with a band."""
import re

LOADS = {"LDG": "global", "LD": "global", "LDS": "shared", "LDL": "local"}
STORES = {"STG": "global", "ST": "global", "STS": "shared", "STL": "local"}
KERNEL_MEASURES = ("instructions", "registers", "stack", "spills", "global loads", "global stores", "shared loads",
                   "shared stores", "local loads", "local stores")
CASE_MEASURES = ("cycles", "instructions", "global loads", "L2 loads", "local loads", "local stores", "shared loads",
                 "fences", "L1 emptied")
BAND = 0.05
SLACK = {"cycles": 40, "instructions": 16, "stack": 32, "spills": 32, "registers": 2}
OTHER_SLACK = 4
LOOP_SYMBOL = "cudaGraphSetConditional"


def static_counts(kernel):
    counts = {"instructions": 0, "registers": kernel.registers, "stack": kernel.stack, "spills": kernel.spills}
    for ins in kernel.instructions:
        counts["instructions"] += ins.base != "NOP"
        for table, what in ((LOADS, " loads"), (STORES, " stores")):
            if ins.base in table:
                counts[table[ins.base] + what] = counts.get(table[ins.base] + what, 0) + 1
    return {name: counts.get(name, 0) for name in KERNEL_MEASURES}


def undefined_symbols(name, cubin):
    """What the driver would have to provide: it refuses the module where it cannot."""
    allowed = {LOOP_SYMBOL} if re.search(r"loop", name) else set()
    return [x for x in cubin.undefined() if x not in allowed]


# ---- chains of load and addition


def loops(kernel):
    """Innermost loops, as lists of instructions: from the target of a branch backwards to the branch."""
    spans = []
    for ins in kernel.instructions:
        if ins.base == "BRA" and re.match(r"^0x[0-9a-f]+$", ins.operands[-1]):
            target = int(ins.operands[-1], 16)
            if target < ins.pc:
                spans.append((target, ins.pc))
    inner = [a for a in spans if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in spans)]
    return [kernel.instructions[a >> 4:(b >> 4) + 1] for a, b in sorted(set(inner))]


def number(text):
    match = re.match(r"^-?\|?R(\d+)", text)
    return int(match.group(1)) if match else None


def loads_in_flight(body):
    """Most loads of doubles from global memory that are under way when an addition needs the first of them; None:
    no addition of what was loaded. Generic loads count where they pass by the L1 cache, as those of rows have to."""
    pending, most = set(), None
    for ins in body:
        is_global = ins.base == "LDG" or ins.base == "LD" and "STRONG" in ins.flags
        if is_global and ("64" in ins.flags or "128" in ins.flags):
            pending.add(number(ins.operands[0]))
        elif ins.base == "DADD":
            used = {number(x) for x in ins.operands[1:]} & pending
            if used:
                most = max(most or 0, len(pending))
                pending -= used
    return most


def load_add_chains(kernel):
    """Loops that wait for each load before they begin the next one. One beside a loop with more loads under way is
    its remainder."""
    found = [(body[0].pc, loads_in_flight(body)) for body in loops(kernel)]
    found = [x for x in found if x[1] is not None]
    if any(flight >= 4 for _, flight in found):
        return []
    return [place for place, flight in found if flight == 1]


# ---- baseline


def is_more(measure, before, now):
    return now > before * (1 + BAND) + SLACK.get(measure, OTHER_SLACK)


def read_rows(path):
    """Sections by version of nvcc: {version: {(arch, subject, measure): count}}."""
    sections, rows, archs = {}, None, []
    with open(path, encoding="utf-8") as file:
        for place, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if line.startswith("#") or not line:
                continue
            head = re.match(r"^\[nvcc ([0-9.]+)\]$", line)
            if head:
                rows, archs = sections.setdefault(head.group(1), {}), []
                continue
            subject, measure, *cells = line.split("\t")
            if rows is not None and not archs:
                archs = cells
            elif rows is None or len(cells) != len(archs) or not all(cell == "-" or cell.isdigit() for cell in cells):
                raise ValueError("%s:%d: no row of counts below [nvcc VERSION] and a row of architectures" % (path, place))
            else:
                rows.update({(arch, subject, measure): int(cell) for arch, cell in zip(archs, cells) if cell != "-"})
    return sections


def write_rows(path, sections):
    with open(path, "w", encoding="utf-8") as file:
        file.write("# Counts of machine code, written by tools/dev/sass-guard/sass-guard --update: kernel or case, measure, and a\n"
                   "# column for each architecture. One section per version of nvcc.\n")
        for version, rows in sorted(sections.items()):
            archs = sorted({key[0] for key in rows}, key=int)
            file.write("\n[nvcc %s]\nkernel or case\tmeasure\t%s\n" % (version, "\t".join(archs)))
            for subject, measure in sorted({key[1:] for key in rows}):
                cells = (rows.get((arch, subject, measure)) for arch in archs)
                file.write("\t".join([subject, measure, *("-" if cell is None else "%d" % cell for cell in cells)]) + "\n")


def compare(rows, baseline):
    """Lines of what is more than the band allows, and lines of the rest that changed."""
    worse, other = [], []
    for key in sorted(rows):
        now, before = rows[key], baseline.get(key)
        name = "sm_%s %s, %s" % key
        if before is None:
            other.append("NEW    %s: %d" % (name, now))
        elif is_more(key[2], before, now):
            worse.append("MORE   %s: %d, baseline %d" % (name, now, before))
        elif is_more(key[2], now, before):
            other.append("FEWER  %s: %d, baseline %d" % (name, now, before))
    return worse, other
