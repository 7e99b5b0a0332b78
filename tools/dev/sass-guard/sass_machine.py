"""Runs a kernel's machine code: warps of 32 lanes that may diverge, blocks with shared memory and barriers, clusters.

Cycles come from the control codes, which the assembler sets: the stall count of each instruction and the barriers
that it waits for, with an assumed latency for each kind of instruction whose time varies. Not modelled: caches of
instructions, conflicts of banks, units that warps share. So the cycles are those of a warp that has the processor to
itself; a change of the code shows in them, the time on a device does not."""
import heapq
import struct

import numpy as np

import sass_float  # noqa: F401  (instructions)
import sass_transactions  # noqa: F401
from sass_flow import lanes_of, number_of
from sass_integer import MAKERS
from sass_lanes import LANES, Registers, predicate
from sass_memory import BANK, EXTERNAL, LOCAL_WINDOW, MODULE, SHARED_WINDOW, Fault, Global

# Cycles until the result is there, for what has a scoreboard. FP64 of consumer chips has one as well.
LATENCY = {"shared": 29, "local": 38, "l1": 38, "l2": 270, "atomic": 300, "store": 12, "MUFU": 22, "F2I": 22,
           "I2F": 22, "F2F": 22, "FRND": 22, "S2R": 25, "S2UR": 25, "LDC": 30, "ULDC": 30, "LDCU": 30, "R2UR": 12, "SHFL": 25,
           "fp64": 45, "fence": 500, "fence of the block": 20, "barrier": 20, "cluster": 190, "remote": 190, "other": 20}
BRANCH_CYCLES = 6  # of a branch that is taken
FP64 = ("DFMA", "DADD", "DMUL", "DSETP")
PARAMETERS_AT = {"90": 0x210, "120": 0x380}
EARLIER_PARAMETERS_AT = 0x160
BANK_AT, ARGUMENTS_AT = 0x40, 0x198  # in bank 0: where it, or the arguments, can be read as memory
STACK_TOP_AT, SHAPE_AT = 0x37c, (0x360, 0x370)  # in bank 0, from compute capability 10.0; of threads, of blocks
IS_CLUSTER_AT, CLUSTER_SIZE_AT = 0x140, 0x188  # in bank 0, from compute capability 9.0
profile = None  # a dictionary: cycles of the first warp of each block by kernel, address and instruction
QUANTUM = 32  # instructions of a warp before another one has its turn
SHARED_AT = {"90": 0x400, "120": 0x400}  # below lies what the system keeps


class Warp(Registers):
    def __init__(self, block, number, lanes):
        super().__init__()
        self.block, self.number, self.latency = block, number, block.machine.latency
        self.code = block.machine.kernel.instructions
        self.local = np.zeros(((block.machine.kernel.stack + 1024) // 4, LANES), np.uint32)
        self.t, self.pending, self.voted = 0, 0, 0
        self.scoreboard = [0] * 6
        self.pc, self.lanes, self.alive = 0, lanes, lanes
        self.ready, self.waiting = [], []  # (pc, lanes); (what for, pc, lanes)
        self.at_barrier = 0
        self.counts, self.marks = {}, []  # marks: counts at each reading of the clock

    def count(self, name, much):
        self.counts[name] = self.counts.get(name, 0) + much

    # ---- lanes that part and meet

    def diverge(self, mask, target):
        self.scatter({target: mask})

    def scatter(self, targets):
        """Lanes go to the given addresses; the others go on."""
        rest, many = self.lanes, []
        for target, mask in targets.items():
            taken = number_of(mask) & rest
            if taken:
                many.append((target, taken))
                rest &= ~taken
        if rest:
            many.append((self.next, rest))
        if many and many[0][0] != self.pc + 16:
            self.t += BRANCH_CYCLES
        self.next, self.lanes = many.pop()
        self.ready += many

    def end(self, mask):
        gone = number_of(mask)
        self.alive &= ~gone
        self.lanes &= ~gone
        self.block.changed = True

    def wait_for(self, what, mask):
        """The lanes wait for those that go the same way: of a convergence barrier, or named by a mask."""
        here = number_of(mask)
        if here == self.alive:  # no other lanes
            return
        self.waiting.append((what, self.next, here))
        self.lanes &= ~here

    def wait_block(self, name, count, mask, vote):
        self.waiting.append((("bar", name), self.next, number_of(mask)))
        self.lanes &= ~number_of(mask)
        self.block.arrive(self, name, count, number_of(mask), vote)

    def wait_cluster(self, mask):
        self.waiting.append((("cluster", 0), self.next, number_of(mask)))
        self.lanes &= ~number_of(mask)
        self.at_barrier |= number_of(mask)

    def release(self, what):
        """Lanes that wait for a barrier go on."""
        some = [x for x in self.waiting if x[0] == what]
        self.waiting = [x for x in self.waiting if x[0] != what]
        by_place = {}
        for _, pc, lanes in some:
            by_place[pc] = by_place.get(pc, 0) | lanes
        self.ready += list(by_place.items())

    def needed(self, what, lanes):
        if what[0] == "W":
            return what[1] & self.alive
        first = (lanes & -lanes).bit_length() - 1
        return (self.B[what[1]][first] | lanes) & self.alive

    def choose(self):
        """The next lanes that can go on; False: none can."""
        if self.lanes:
            return True
        if not self.ready:
            for what, pc, lanes in list(self.waiting):
                if what[0] in ("bar", "cluster"):
                    continue
                together = sum(x[2] for x in self.waiting if x[:2] == (what, pc))
                if together & self.needed(what, lanes) == self.needed(what, lanes):
                    self.waiting = [x for x in self.waiting if x[:2] != (what, pc)]
                    self.ready.append((pc, together))
                    break
        if not self.ready:
            return False
        self.pc, self.lanes = self.ready.pop()
        return True

    # ---- instructions

    def run(self, budget):
        """Some instructions; False when the warp waits or is done."""
        while budget > 0:
            if not self.lanes and not self.choose():
                return False
            self.step(self.code[self.pc >> 4])
            budget -= 1
        return True

    def step(self, ins):
        handler = ins.handler or self.block.machine.prepare(ins)
        wait, first = ins.wait_mask, self.t
        for i in range(6):
            if wait >> i & 1 and self.scoreboard[i] > self.t:
                self.t = self.scoreboard[i]
        mask = lanes_of(self.lanes)
        self.next, self.pending = self.pc + 16, 0
        machine, start = self.block.machine, self.t
        if ins.predicate:
            mask = mask & ins.guard(self)
        if not ins.predicate or mask.any():
            handler(self, mask)
        else:
            machine.skipped += 1
        machine.note(self, ins, start)
        if ins.write_bar < 6:
            ready = self.t + (self.pending or ins.latency)
            self.scoreboard[ins.write_bar] = max(self.scoreboard[ins.write_bar], ready)
        if ins.read_bar < 6:
            ready = self.t + self.latency["store"]
            self.scoreboard[ins.read_bar] = max(self.scoreboard[ins.read_bar], ready)
        self.t += ins.stall or 1
        if profile is not None and self.number == 0:
            key = machine.kernel.name, ins.pc, ins.text
            profile[key] = profile.get(key, 0) + self.t - first
        self.pc = self.next


class Block:
    def __init__(self, machine, index, threads, cluster=None, rank=0):
        self.machine, self.index, self.threads, self.rank = machine, index, threads, rank
        self.cluster = cluster or Cluster()
        self.cluster.blocks.append(self)
        self.shared = np.full(machine.shared_bytes, 0xFF, np.uint8)  # a device does not clear it either
        self.l1 = set()
        self.barriers, self.byte_barriers = {}, {}
        self.changed = False
        self.warps = []
        for number in range((threads + LANES - 1) // LANES):
            lanes = min(LANES, threads - number * LANES)
            self.warps.append(Warp(self, number, (1 << lanes) - 1))
            self.warps[-1].R[1] = machine.stack_top

    def peer(self, rank):
        if rank >= len(self.cluster.blocks):
            raise Fault("shared memory of block %d of a cluster of %d" % (rank, len(self.cluster.blocks)))
        return self.cluster.blocks[rank] if self.cluster.size > 1 else self

    def arrive(self, warp, name, count, lanes, vote):
        state = self.barriers.setdefault(name, {"arrived": 0, "wanted": count, "vote": 0, "time": 0})
        state["arrived"] += bin(lanes).count("1")
        state["vote"] += vote
        state["time"] = max(state["time"], warp.t + 1)
        self.changed = True

    def settle(self):
        """Barriers at which all have arrived let them go on; returns the warps that can."""
        awake = []
        alive = sum(bin(w.alive).count("1") for w in self.warps)
        for name, state in list(self.barriers.items()):
            if state["arrived"] < (state["wanted"] or alive):
                continue
            del self.barriers[name]
            for warp in self.warps:
                if any(x[0] == ("bar", name) for x in warp.waiting):
                    warp.t = max(warp.t, state["time"] + warp.latency["barrier"])
                    warp.voted = state["vote"]
                    warp.release(("bar", name))
                    awake.append(warp)
        self.changed = False
        return awake


class Cluster:
    """Blocks that run together; alone: a cluster of one."""

    def __init__(self, size=1):
        self.size, self.blocks, self.arrived, self.time = size, [], 0, 0

    def arrive(self, warp):
        self.arrived += 1
        self.time = max(self.time, warp.t)

    def settle(self):
        warps = [w for b in self.blocks for w in b.warps if w.alive]
        waiting = [w for w in warps if any(x[0][0] == "cluster" for x in w.waiting)]
        if not waiting or len(waiting) < len(warps):
            return []
        for warp in waiting:
            warp.t = max(warp.t, self.time + warp.latency["cluster"])
            warp.release(("cluster", 0))
        self.arrived = self.time = 0
        return waiting


class Machine:
    """One launch of a kernel of a cubin. memory: shared by several launches, or a new one."""

    def __init__(self, cubin, name, parameters, memory=None, latency=None):
        self.cubin, self.kernel = cubin, cubin.kernels[name]
        self.memory = memory or Global()
        self.latency = dict(LATENCY, **(latency or {}))
        self.shared_bytes = SHARED_AT.get(cubin.arch, 0) + self.kernel.shared
        self.stack_top = (self.kernel.stack + 512) // 16 * 16
        self.conditions, self.functions, self.skipped = [], {}, 0
        self.cycles_per_ns, self.instructions = 1.5, 0
        self.watch = {}  # address -> function of machine, warp and instruction
        self.atomic_result = self.atomic_at = None  # what atomics of global memory return instead of the old value
        self._make_banks(parameters)

    def _make_banks(self, parameters):
        self.banks = {k: bytearray(0x2000) for k in range(5)}
        at = PARAMETERS_AT.get(self.cubin.arch, EARLIER_PARAMETERS_AT)
        bank = self.banks[0]
        bank[at:at + len(parameters)] = parameters
        struct.pack_into("<QQI", bank, 0x18, SHARED_WINDOW, LOCAL_WINDOW, self.stack_top)
        struct.pack_into("<Q", bank, BANK_AT, BANK)
        if int(self.cubin.arch) >= 100:
            struct.pack_into("<I", bank, STACK_TOP_AT, self.stack_top)
        if int(self.cubin.arch) >= 90:
            struct.pack_into("<Q", bank, ARGUMENTS_AT, BANK + at)
        for k in (2, 3, 4):
            for name in (".nv.constant%d" % k, ".nv.constant%d.%s" % (k, self.kernel.name)):
                content = self.cubin.content(name)
                self.banks[k][:len(content)] = content
                for offset, symbol, addend in self.cubin.relocations(name):
                    struct.pack_into("<Q", self.banks[k], offset, self._address(symbol) + addend)

    def _address(self, symbol):
        if symbol["section"] == 0:
            number = self.functions.setdefault(symbol["name"], len(self.functions))
            return EXTERNAL + number
        section = self.cubin.sections[symbol["section"]]
        base = MODULE + symbol["section"] * 0x1000000
        if not any(r.base == base for r in self.memory.regions):
            self.memory.add(base, self.cubin.content(section["name"]) or bytes(section["size"]))
        return base + symbol["value"]

    def constant(self, bank, at, words):
        return int.from_bytes(self.banks[bank][at:at + 4 * words], "little")

    def external(self, number, warp, lane):
        names = {v: k for k, v in self.functions.items()}
        if names.get(number) != "cudaGraphSetConditional":
            raise Fault("a call of %s" % names.get(number, hex(number)))
        self.conditions.append((int(warp.pair(4)[lane]), int(warp.R[6][lane])))

    @staticmethod
    def barrier_count(word):
        """Arrivals that a barrier in shared memory waits for, from the word that begins it."""
        return 0x100000 - (word >> 1 & 0xFFFFF)

    def prepare(self, ins):
        maker = MAKERS.get(ins.base)
        if not maker:
            raise NotImplementedError("%04x: %s" % (ins.pc, ins.text))
        try:
            ins.handler = maker(self, ins)
        except (IndexError, ValueError, KeyError, AttributeError, StopIteration) as error:
            raise NotImplementedError("%04x: %s" % (ins.pc, ins.text)) from error
        ins.guard = predicate(ins.predicate) if ins.predicate else None
        ins.latency = self.latency["fp64"] if ins.base in FP64 else self.latency.get(ins.base, self.latency["other"])
        return ins.handler

    def note(self, warp, ins, start):
        self.instructions += 1
        warp.counts["instructions"] = warp.counts.get("instructions", 0) + 1
        if warp.number == 0 and ins.pc in self.watch:
            self.watch[ins.pc](self, warp, ins)

    def launch(self, blocks, threads, cluster=1, only=None):
        """Runs the blocks one after the other, clusters together. only: these blocks."""
        shape_at = SHAPE_AT if int(self.cubin.arch) >= 100 else (0, 0xc)
        for at, many in zip(shape_at, (threads, blocks)):
            struct.pack_into("<III", self.banks[0], at, many, 1, 1)
        if cluster > 1:
            struct.pack_into("<I", self.banks[0], IS_CLUSTER_AT, 1)
        if int(self.cubin.arch) >= 90:
            struct.pack_into("<I", self.banks[0], CLUSTER_SIZE_AT, cluster)
        self.memory.replace(BANK, self.banks[0])
        for ins in self.kernel.instructions:  # constants differ between launches
            ins.handler = None
        done = []
        for first in range(0, blocks, cluster):
            if only is not None and first not in only:
                continue
            team = Cluster(cluster)
            for rank in range(cluster):
                Block(self, first + rank, threads, team, rank)
            self._run(team)
            done += team.blocks
        return done

    def _run(self, team):
        order, count = [], 0
        for block in team.blocks:
            for warp in block.warps:
                heapq.heappush(order, (0, count, warp))
                count += 1
        while True:
            while order:
                _, _, warp = heapq.heappop(order)
                if warp.run(QUANTUM):
                    count += 1
                    heapq.heappush(order, (warp.t, count, warp))
                if warp.block.changed:
                    for other in warp.block.settle():
                        count += 1
                        heapq.heappush(order, (other.t, count, other))
            awake = team.settle()
            if not awake:
                break
            for warp in awake:
                count += 1
                heapq.heappush(order, (warp.t, count, warp))
        stuck = [w for b in team.blocks for w in b.warps if w.alive]
        if stuck:
            raise Fault("%d warps wait for ever, one at %04x" % (len(stuck), stuck[0].waiting[0][1] if stuck[0].waiting
                                                               else stuck[0].pc))
