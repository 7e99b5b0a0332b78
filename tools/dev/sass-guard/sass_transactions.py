"""Barriers in shared memory that count bytes (mbarrier), and stores into the shared memory of another block of the
cluster that such a barrier counts (st.async)."""
import re

import numpy as np

from sass_integer import flag_writer, makes
from sass_lanes import LANES, address, bits, is_predicate, register
from sass_memory import Fault, locate

POLL_CYCLES = 64  # a wait that is in vain suspends the warp about so long


class ByteBarrier:
    """Phases end when all arrivals came and as many bytes as they announced."""

    def __init__(self, count):
        self.count = self.pending = count
        self.bytes = 0
        self.phase = 0
        self.latest, self.ended_at = 0, [0]

    def arrive(self, announced, at):
        self.pending -= 1
        self.bytes += announced
        self._settle(at)

    def complete(self, done, at):
        self.bytes -= done
        self._settle(at)

    def _settle(self, at):
        self.latest = max(self.latest, at)
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.count
            self.ended_at.append(self.latest)


def barrier_at(warp, at, pc):
    block = warp.block.peer(at >> 24 & 0xFF)
    barrier = block.byte_barriers.get(at & 0xFFFFFF)
    if barrier is None:
        raise Fault("%04x: no barrier at shared address %#x" % (pc, at))
    return barrier


def first(value, mask):
    return int(np.broadcast_to(value, LANES)[int(np.argmax(mask))])


@makes("SYNCS")
def synchronise(machine, ins):
    where = address(next(x for x in ins.operands if "[" in x), False)
    last = bits(machine, ins.operands[-1], "i", 2 if "EXCH" in ins.flags else 1)
    if "EXCH" in ins.flags:
        def begin(warp, mask):
            at = first(where(warp), mask)
            warp.block.peer(at >> 24 & 0xFF).byte_barriers[at & 0xFFFFFF] = ByteBarrier(machine.barrier_count(
                first(last(warp), mask)))
        return begin
    if "ARRIVE" in ins.flags:
        def arrive(warp, mask):
            for lane in np.flatnonzero(mask):
                barrier_at(warp, int(where(warp)[lane]), ins.pc).arrive(
                    int(np.broadcast_to(last(warp), LANES)[lane]) if "A1T0" not in ins.flags else 0, warp.t)
        return arrive
    if "PHASECHK" not in ins.flags:
        raise NotImplementedError(ins.text)
    flag = flag_writer(next(x for x in ins.operands if is_predicate(x)))

    def check(warp, mask):
        barrier = barrier_at(warp, first(where(warp), mask), ins.pc)
        parity = first(last(warp), mask) >> 31
        is_over = barrier.phase & 1 != parity and barrier.ended_at[-1] <= warp.t + POLL_CYCLES
        warp.t = max(warp.t, barrier.ended_at[-1]) if is_over else warp.t + POLL_CYCLES
        warp.pending = warp.latency["shared"]
        flag(warp, np.full(LANES, is_over), mask)
        warp.count("waits", 1)
    return check


@makes("STAS")
def store_and_count(machine, ins):
    """The registers of the address: of the word, then of the barrier that counts it."""
    n = register(re.search(r"R\d+", ins.operands[0]).group(0))
    value, size = register(ins.operands[1]), 8 if "64" in ins.flags else 4

    def run(warp, mask):
        for lane in np.flatnonzero(mask):
            data, place = locate(warp, "S", int(warp.R[n][lane]), size, ins.pc)
            words = [int(warp.R[value + k][lane]) if value != 255 else 0 for k in range(size // 4)]
            data[place:place + size] = np.frombuffer(b"".join(x.to_bytes(4, "little") for x in words), np.uint8)
            barrier_at(warp, int(warp.R[n + 1][lane]), ins.pc).complete(size, warp.t + warp.latency["remote"])
        warp.pending = warp.latency["store"]
        warp.count("remote stores", 1)
    return run


@makes("FENCE")
def fence_view(machine, ins):
    return lambda warp, mask: None
