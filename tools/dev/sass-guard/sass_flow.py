"""Branches, calls, convergence of lanes, barriers, exchanges between lanes, special registers."""
import re

import numpy as np

from sass_integer import flag_writer, makes, writer
from sass_lanes import LANES, U32, U64, bits, is_predicate, predicate, register
from sass_memory import EXTERNAL, SHARED_WINDOW, Fault

BITS = {}


def lanes_of(number):
    """The mask of lanes for the bits of a number."""
    mask = BITS.get(number)
    if mask is None:
        mask = BITS[number] = np.array([number >> i & 1 for i in range(LANES)], bool)
    return mask


def number_of(mask):
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


@makes("BRA")
def branch(machine, ins):
    target = int(ins.operands[-1], 16)
    if "DIV" in ins.flags or "CONV" in ins.flags:  # whether the lanes are the given ones
        wanted, if_same = bits(machine, ins.operands[0]), "CONV" in ins.flags

        def compare(warp, mask):
            if (warp.lanes == int(wanted(warp))) == if_same:
                warp.diverge(mask, target)
        return compare
    gets = [predicate(x) for x in ins.operands[:-1]]

    def run(warp, mask):
        for get in gets:
            mask = mask & get(warp)
        warp.diverge(mask, target)
    return run


@makes("CALL")
def call(machine, ins):
    if "REL" in ins.flags:
        target = int(ins.operands[-1], 16)
        return lambda warp, mask: warp.diverge(mask, target)
    n = register(ins.operands[-1])

    def run(warp, mask):
        lane = int(np.argmax(mask))
        function = int(warp.pair(n)[lane]) - EXTERNAL
        machine.external(function, warp, lane)
        warp.diverge(mask, int(warp.R[20][lane]))
    return run


@makes("RET")
def leave_function(machine, ins):
    name, offset = re.match(r"R(\d+)\s+(\S+)", ins.operands[-1]).groups()
    n, fixed = int(name), int(offset, 16)

    def run(warp, mask):
        targets = warp.R[n].astype(np.int64) + fixed & 0xFFFFFFFF
        warp.scatter({int(x): mask & (targets == x) for x in set(targets[mask].tolist())})
    return run


@makes("LEPC")
def own_address(machine, ins):
    put = writer(ins.operands[0], 2)
    value = int(ins.operands[1], 16) if len(ins.operands) > 1 else ins.pc
    return lambda warp, mask: put(warp, np.full(LANES, value, U64), mask)


@makes("EXIT")
def leave(machine, ins):
    return lambda warp, mask: warp.end(mask)


@makes("BSSY")
def begin_together(machine, ins):
    n = register(ins.operands[0])

    def run(warp, mask):
        together = number_of(mask)
        for lane in np.flatnonzero(mask):
            warp.B[n][lane] = together
    return run


@makes("BSYNC")
def wait_together(machine, ins):
    n = register(ins.operands[0])
    return lambda warp, mask: warp.wait_for(("B", n), mask)


@makes("BREAK")
def leave_together(machine, ins):
    n = register(ins.operands[0])

    def run(warp, mask):
        gone = number_of(mask)
        for lane in range(LANES):
            warp.B[n][lane] &= ~gone
    return run


@makes("BMOV")
def move_barrier(machine, ins):
    target, source = ins.operands
    clears = "CLEAR" in ins.flags
    if target.startswith("B"):
        n = register(target)
        if source.startswith("B"):
            m = register(source)

            def copy(warp, mask):
                for lane in np.flatnonzero(mask):
                    warp.B[n][lane] = warp.B[m][lane]
                    warp.B[m][lane] = 0 if clears else warp.B[m][lane]
            return copy
        get = bits(machine, source)

        def put(warp, mask):
            values = np.broadcast_to(get(warp), LANES)
            for lane in np.flatnonzero(mask):
                warp.B[n][lane] = int(values[lane])
        return put
    n, m = register(target), register(source)

    def take(warp, mask):
        for lane in np.flatnonzero(mask):
            if n != 255:
                warp.R[n][lane] = warp.B[m][lane]
            warp.B[m][lane] = 0 if clears else warp.B[m][lane]
    return take


@makes("WARPSYNC")
def wait_lanes(machine, ins):
    """With COLLECTIVE, what follows up to ENDCOLLECTIVE is done once for all lanes that have come, and all go on at the
    address that is named, behind it."""
    is_named = "COLLECTIVE" in ins.flags  # mask, address
    get = (lambda warp: 0xFFFFFFFF) if "ALL" in ins.flags else bits(machine, ins.operands[0 if is_named else -1])

    def run(warp, mask):
        named = np.broadcast_to(get(warp), LANES)[int(np.argmax(mask))]
        warp.wait_for(("W", int(named)), mask)
    return run


@makes("BAR")
def barrier(machine, ins):
    if "ARV" in ins.flags:
        raise NotImplementedError(ins.text)
    operands = list(ins.operands)
    reduces = predicate(operands.pop()) if "RED" in ins.flags else None
    names = [bits(machine, x) for x in operands]

    def run(warp, mask):
        values = [int(np.broadcast_to(get(warp), LANES)[int(np.argmax(mask))]) for get in names]
        vote = int(np.count_nonzero(mask & reduces(warp))) if reduces else 0
        warp.wait_block(values[0], values[1] if len(values) > 1 else 0, mask, vote)
    return run


@makes("B2R")
def barrier_result(machine, ins):
    if len(ins.operands) > 1:
        raise NotImplementedError(ins.text)
    put = writer(ins.operands[0])
    return lambda warp, mask: put(warp, U32(warp.voted), mask)


@makes("UCGABAR_ARV", "UCGABAR_WAIT")
def cluster_barrier(machine, ins):
    if ins.base == "UCGABAR_ARV":
        return lambda warp, mask: warp.block.cluster.arrive(warp)
    return lambda warp, mask: warp.wait_cluster(mask)


@makes("SHFL")
def shuffle(machine, ins):
    way = ins.flags[0]
    operands = ins.operands
    flag = flag_writer(operands[0])
    put = writer(operands[1])
    value, lane_of, limit_of = (bits(machine, x) for x in operands[2:5])

    def run(warp, mask):
        lane = np.arange(LANES, dtype=np.int64)
        b, c = (np.broadcast_to(get(warp), LANES).astype(np.int64) for get in (lane_of, limit_of))
        values, segment, clamp = np.broadcast_to(value(warp), LANES), c >> 8 & 31, c & 31
        low, high = lane & segment, lane & segment | clamp & ~segment
        source = {"BFLY": lane ^ b, "UP": lane - b, "DOWN": lane + b, "IDX": low | b & ~segment}[way]
        inside = source >= high if way == "UP" else source <= high
        source = np.where(inside, source, lane)
        if not np.all(mask[source[mask]]):
            raise Fault("%04x: a shuffle reads a lane that does not take part" % ins.pc)
        flag(warp, inside, mask)
        put(warp, values[source], mask)
    return run


@makes("VOTE", "VOTEU")
def vote(machine, ins):
    operands = list(ins.operands)
    asked = predicate(operands.pop())
    flags = [flag_writer(x) for x in operands if is_predicate(x)]
    puts = [writer(x) for x in operands if not is_predicate(x)]

    def run(warp, mask):
        raised = mask & np.broadcast_to(asked(warp), LANES)
        any_of, all_of = bool(raised.any()), bool((raised == mask).all())
        for flag in flags:
            flag(warp, np.full(LANES, all_of if "ALL" in ins.flags else any_of), mask)
        for put in puts:
            put(warp, np.full(LANES, number_of(raised), U32), mask)
    return run


@makes("REDUX")
def reduce_lanes(machine, ins):
    put, get = writer(ins.operands[0]), bits(machine, ins.operands[1])
    is_signed, name = "S32" in ins.flags, next((x for x in ins.flags if x in ("OR", "AND", "XOR", "MIN", "MAX")), "SUM")
    function = {"OR": np.bitwise_or, "AND": np.bitwise_and, "XOR": np.bitwise_xor, "MIN": np.minimum,
                "MAX": np.maximum, "SUM": np.add}[name]

    def run(warp, mask):
        values = np.broadcast_to(get(warp), LANES)[mask]
        values = values.astype(np.int32) if is_signed else values
        put(warp, np.full(LANES, function.reduce(values)).astype(U32), mask)
    return run


LANE_MASKS = {"SR_EQMASK": lambda i: 1 << i, "SR_LTMASK": lambda i: (1 << i) - 1, "SR_LEMASK": lambda i: (2 << i) - 1,
              "SR_GTMASK": lambda i: ~((2 << i) - 1), "SR_GEMASK": lambda i: ~((1 << i) - 1)}


def special_value(warp, name):
    block = warp.block
    if name == "SR_TID.X":
        return np.arange(LANES, dtype=U64) + U64(warp.number * LANES)
    if name == "SR_CLOCKLO":
        warp.marks.append(dict(warp.counts))
    if name == "SR_GLOBALTIMERLO":
        return np.full(LANES, int(warp.t / warp.block.machine.cycles_per_ns), U64)
    values = {"SR_CTAID.X": block.index, "SR_CgaCtaId": block.rank, "SR_CLOCKLO": int(warp.t), "SR_SWINHI":
              SHARED_WINDOW >> 32, "SR_TID.Y": 0, "SR_TID.Z": 0, "SR_CTAID.Y": 0, "SR_CTAID.Z": 0, "SRZ": 0,
              "SR_CgaSize": block.cluster.size, "SR_VIRTUALSMID": block.index, "SR_NTID": block.threads}
    if name == "SR_LANEID":
        return np.arange(LANES, dtype=U64)
    if name in LANE_MASKS:
        return np.array([LANE_MASKS[name](i) & 0xFFFFFFFF for i in range(LANES)], U64)
    if name not in values:
        raise NotImplementedError(name)
    return np.full(LANES, values[name], U64)


@makes("S2R", "S2UR", "CS2R", "CS2UR")
def special(machine, ins):
    words = 2 if ins.base in ("CS2R", "CS2UR") and "32" not in ins.flags else 1
    put, name = writer(ins.operands[0], words), ins.operands[1]
    return lambda warp, mask: put(warp, special_value(warp, name) if words == 2 else
                                  special_value(warp, name).astype(U32), mask)
