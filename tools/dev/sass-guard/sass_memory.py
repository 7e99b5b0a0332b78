"""Memory of the interpreted device: global allocations, shared memory of blocks, local memory of threads; and the
instructions that read and write them. Every access is checked against the allocations and for alignment."""
import re

import numpy as np

from sass_integer import makes, writer
from sass_lanes import LANES, U32, U64, address, bits, is_predicate, register

# Beyond what a process has on the host: recorded allocations keep their addresses.
SHARED_WINDOW, LOCAL_WINDOW, WINDOW = 0xF00200000000, 0xF00300000000, 1 << 32
SECTOR, LINE = 32, 128
CYCLES_PER_LINE = 2  # beyond the first of an access
EXTERNAL, MODULE = 0xF00000000000, 0xF00100000000  # functions that the driver would provide; data of the cubin
BANK = 0xF00400000000  # the constants of bank 0, with the arguments of the kernel


class Fault(Exception):
    """The kernel did what a device would punish."""


class Region:
    def __init__(self, base, data):
        padding = -len(data) % 16
        self.base, self.size = base, len(data)
        self.bytes = np.frombuffer(bytes(data) + bytes(padding), np.uint8).copy()
        self.words = self.bytes.view(U32)


class Global:
    """Allocations by address."""

    def __init__(self):
        self.regions = []

    def add(self, base, data):
        region = Region(base, data)
        self.regions.append(region)
        return region

    def replace(self, base, data):
        self.regions = [x for x in self.regions if x.base != base]
        return self.add(base, data)

    def find(self, at, size):
        for region in self.regions:
            if region.base <= at and at + size <= region.base + region.size:
                return region
        return None

    def read(self, at, size):
        region = self.find(at, size)
        return region.bytes[at - region.base:at - region.base + size].tobytes()


def space_of(at):
    if SHARED_WINDOW <= at < SHARED_WINDOW + WINDOW:
        return "S"
    return "L" if LOCAL_WINDOW <= at < LOCAL_WINDOW + WINDOW else "G"


def locate(warp, space, at, size, pc):
    """Array of bytes, and the place in it."""
    if at % size:
        raise Fault("%04x: address %#x is not a multiple of %d" % (pc, at, size))
    if space == "S":
        at &= WINDOW - 1
        block = warp.block.peer(at >> 24)
        at &= 0xFFFFFF
        if at + size > len(block.shared):
            raise Fault("%04x: shared address %#x of %#x" % (pc, at, len(block.shared)))
        return block.shared, at
    region = warp.block.machine.memory.find(at, size)
    if region is None:
        raise Fault("%04x: address %#x is in no allocation" % (pc, at))
    return region.bytes, at - region.base


def local_words(warp, at, size, pc):
    at &= WINDOW - 1
    if at % size or at + size > warp.local.shape[0] * 4:
        raise Fault("%04x: local address %#x of %#x" % (pc, at, warp.local.shape[0] * 4))
    return at >> 2


def gather(warp, space, at, lanes, size, pc):
    """Values as words (size / 4, lanes), or bytes for smaller sizes."""
    count = max(size // 4, 1)
    out = np.zeros((count, LANES), U32)
    if space == "L":
        for lane in lanes:
            first = local_words(warp, int(at[lane]), size, pc)
            out[:, lane] = warp.local[first:first + count, lane]
            if size < 4:
                out[0, lane] = int(out[0, lane]) >> 8 * (int(at[lane]) & 3) & (1 << 8 * size) - 1
        return out
    data, first = locate(warp, space, int(at[lanes[0]]), size, pc)
    if space == "G" and size >= 4 and len(lanes) > 1:  # all in one allocation: at once
        offsets = at[lanes].astype(np.int64) - (int(at[lanes[0]]) - first)
        if offsets.min() >= 0 and offsets.max() + size <= len(data) and not np.any(offsets % size):
            words = data.view(U32)
            for k in range(count):
                out[k, lanes] = words[(offsets >> 2) + k]
            return out
    for lane in lanes:
        data, first = locate(warp, space, int(at[lane]), size, pc)
        raw = data[first:first + size].tobytes()
        out[:, lane] = np.frombuffer(raw, U32) if size >= 4 else int.from_bytes(raw, "little")
    return out


def scatter(warp, space, at, lanes, size, values, pc):
    count = max(size // 4, 1)
    for lane in lanes:
        if space == "L":
            first = local_words(warp, int(at[lane]), size, pc)
            if size < 4:
                shift, ones = 8 * (int(at[lane]) & 3), (1 << 8 * size) - 1
                old = int(warp.local[first, lane]) & ~(ones << shift)
                warp.local[first, lane] = old | (int(values[0, lane]) & ones) << shift
            else:
                warp.local[first:first + count, lane] = values[:, lane]
            continue
        data, first = locate(warp, space, int(at[lane]), size, pc)
        raw = np.ascontiguousarray(values[:, lane]).tobytes()
        data[first:first + size] = np.frombuffer(raw[:size], np.uint8)


def size_of(flags):
    for name, size in (("128", 16), ("64", 8), ("U8", 1), ("S8", 1), ("U16", 2), ("S16", 2)):
        if name in flags:
            return size
    return 4


def load_cycles(warp, space, at, lanes, size, bypasses):
    """Latency of a load, and what it leaves in the L1 cache of the processor."""
    latency, l1 = warp.latency, warp.block.l1
    if space != "G":
        return latency["shared" if space == "S" else "local"]
    sectors = {int(x) // SECTOR for x in at[lanes]} | {(int(x) + size - 1) // SECTOR for x in at[lanes]}
    extra = CYCLES_PER_LINE * (len({s * SECTOR // LINE for s in sectors}) - 1)
    warp.count("sectors", len(sectors))
    if not bypasses and sectors <= l1:
        return latency["l1"] + extra
    if not bypasses:
        l1 |= sectors
    warp.count("L2 loads", 1)
    return latency["l2"] + extra


def resolved(space, at, lanes):
    """The space of a generic address; lanes may differ."""
    if space != "generic":
        return [(space, lanes)]
    by = {}
    for lane in lanes:
        by.setdefault(space_of(int(at[lane])), []).append(lane)
    return [(name, np.array(some)) for name, some in by.items()]


SPACES = {"LDG": "G", "LDS": "S", "LDL": "L", "LD": "generic", "STG": "G", "STS": "S", "STL": "L", "ST": "generic"}
NAMES = {"G": "global", "S": "shared", "L": "local"}


@makes("LD", "LDG", "LDS", "LDL")
def load(machine, ins):
    n, size, space = register(ins.operands[0]), size_of(ins.flags), SPACES[ins.base]
    where = address(ins.operands[1], ins.base in ("LD", "LDG"))
    is_signed, bypasses = "S8" in ins.flags or "S16" in ins.flags, "STRONG" in ins.flags
    limit = U64(WINDOW - 1)

    def run(warp, mask):
        lanes, at = np.flatnonzero(mask), where(warp)
        at = at & limit if space in ("S", "L") else at
        for name, some in resolved(space, at, lanes):
            values = gather(warp, name, at, some, size, ins.pc)
            if is_signed:
                shift = 32 - 8 * size
                values = (values.astype(np.int32) << shift >> shift).astype(U32)
            chosen = np.zeros(LANES, bool)
            chosen[some] = True
            for k in range(values.shape[0]):
                if n != 255:
                    np.copyto(warp.R[n + k], values[k], where=chosen)
            warp.pending = max(warp.pending, load_cycles(warp, name, at, some, size, bypasses))
            warp.count(NAMES[name] + " loads", 1)
    return run


@makes("ST", "STG", "STS", "STL")
def store(machine, ins):
    size, space = size_of(ins.flags), SPACES[ins.base]
    where, n = address(ins.operands[0], ins.base in ("ST", "STG")), register(ins.operands[1])
    limit = U64(WINDOW - 1)

    def run(warp, mask):
        lanes, at = np.flatnonzero(mask), where(warp)
        at = at & limit if space in ("S", "L") else at
        values = np.array([warp.R[n + k if n != 255 else 255] for k in range(max(size // 4, 1))])
        for name, some in resolved(space, at, lanes):
            scatter(warp, name, at, some, size, values, ins.pc)
            warp.count(NAMES[name] + " stores", 1)
        warp.pending = max(warp.pending, warp.latency["store"])
    return run


def combined(name, old, new, size, swap):
    top = 1 << 8 * size
    if name == "CAS":
        return swap if old == new else old
    if name in ("MIN", "MAX"):
        return min(old, new) if name == "MIN" else max(old, new)
    if name == "INC":
        return 0 if old >= new else old + 1
    return {"ADD": (old + new) % top, "OR": old | new, "AND": old & new, "XOR": old ^ new, "EXCH": new}[name]


@makes("ATOM", "ATOMG", "ATOMS", "RED", "REDG", "REDS")
def atomic(machine, ins):
    """Unsigned integers. Lanes one after the other."""
    operands = [x for x in ins.operands if not is_predicate(x)]
    at_place = next(i for i, x in enumerate(operands) if "[" in x)
    n = register(operands[0]) if at_place else 255
    space = "S" if ins.base in ("ATOMS", "REDS") else "G" if ins.base in ("ATOMG", "REDG") else "generic"
    where, size = address(operands[at_place], space != "S"), 8 if "64" in ins.flags else 4
    name = next((x for x in ins.flags if x in ("ADD", "OR", "AND", "XOR", "MIN", "MAX", "CAS", "EXCH", "INC")), "CAS")
    if any(x in ins.flags for x in ("F32", "F64", "S32", "S64")):
        raise NotImplementedError(ins.text)
    words = size // 4
    new = bits(machine, operands[at_place + 1], "i", words)
    swap = bits(machine, operands[at_place + 2], "i", words) if len(operands) > at_place + 2 else None

    def run(warp, mask):
        at, values = where(warp), np.broadcast_to(new(warp), LANES)
        swaps = np.broadcast_to(swap(warp), LANES) if swap else values
        out = np.zeros(LANES, U64)
        for lane in np.flatnonzero(mask):
            kind = space if space != "generic" else space_of(int(at[lane]))
            data, first = locate(warp, kind, int(at[lane]), size, ins.pc)
            out[lane] = int.from_bytes(data[first:first + size].tobytes(), "little")
            if warp.block.machine.atomic_result is not None and kind == "G":  # see RowSums
                out[lane] = warp.block.machine.atomic_result
                warp.block.machine.atomic_at = warp.t
            result = combined(name, int(out[lane]), int(values[lane]), size, int(swaps[lane]))
            data[first:first + size] = np.frombuffer(result.to_bytes(size, "little"), np.uint8)
            warp.pending = max(warp.pending, warp.latency["shared" if kind == "S" else "atomic"])
        if words == 2:
            warp.set_pair(n, out, mask)
        else:
            warp.set(n, out.astype(U32), mask)
        if len(ins.operands) > len(operands) and name == "CAS":
            flag = register(next(x for x in ins.operands if is_predicate(x)))
            if flag != 7:
                np.copyto(warp.P[flag], out == values, where=mask)
        warp.count("atomics", 1)
    return run


@makes("QSPC")
def ask_space(machine, ins):
    flag, where = register(ins.operands[0]), address(ins.operands[2], True)

    def run(warp, mask):
        found = np.array([space_of(int(x)) == "S" for x in where(warp)])
        if flag != 7:
            np.copyto(warp.P[flag], found, where=mask)
    return run


@makes("LDC", "ULDC", "LDCU")
def load_constant(machine, ins):
    words = 2 if "64" in ins.flags else 1
    put, place = writer(ins.operands[0], words), ins.operands[1]
    match = re.match(r"c\[(\w+)\]\s*\[([^\]]+)\]", place)
    if "R" not in match.group(2):
        value = (U32 if words == 1 else U64)(machine.constant(int(match.group(1), 16), int(match.group(2), 16), words))
        return lambda warp, mask: put(warp, np.asarray(value), mask)
    bank, where = int(match.group(1), 16), address("[" + match.group(2) + "]", False)

    def run(warp, mask):
        at = where(warp)
        values = np.array([machine.constant(bank, int(x) & 0xFFFF, words) if m else 0 for x, m in zip(at, mask)], U64)
        put(warp, values if words == 2 else values.astype(U32), mask)
    return run


@makes("CCTL")
def cache_control(machine, ins):
    """IVALL forgets the L1 cache."""
    def run(warp, mask):
        if "IVALL" in ins.flags:
            warp.block.l1.clear()
            warp.count("L1 emptied", 1)
    return run


@makes("MEMBAR")
def fence(machine, ins):
    scope = "fence" if "GPU" in ins.flags or "SYS" in ins.flags else "fence of the block"

    def run(warp, mask):
        warp.pending = warp.latency[scope]
        warp.count("fences", 1)
    return run
