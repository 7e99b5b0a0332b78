"""The cases: what runs in the interpreter, with which input, and what is counted."""
import math
import os
import struct
import subprocess

import numpy as np

from sass_build import host_program
from sass_machine import Machine
from sass_memory import Global

# FP64 has a fixed latency, which the stall counts hold, on processors that compute at half the rate of FP32.
FAST_FP64 = ("80", "90")
CAPACITY = 48
TOLERANCE = 1e-12    # of a Newton step: the same operations in the same order
POSE_TOLERANCE = 1e-4  # of an alignment: sums in float, m and rad


class Wrong(Exception):
    """The machine code does not compute what the host computes."""


def latency_of(arch):
    return {"fp64": 0} if arch in FAST_FP64 else {}


def counts_of(blocks):
    """Counts of all warps together; the longest time."""
    total = {"cycles": max(w.t for b in blocks for w in b.warps), "warps": sum(len(b.warps) for b in blocks)}
    for block in blocks:
        for warp in block.warps:
            for name, much in warp.counts.items():
                total[name] = total.get(name, 0) + much
    return total


def worst_difference(a, b):
    """Relative, over doubles; equal bits do not count, nor do what are no numbers on both sides."""
    worst = 0.0
    for x, y in zip(np.frombuffer(a, np.float64), np.frombuffer(b, np.float64)):
        if x != y and not (math.isnan(x) and math.isnan(y)):
            worst = max(worst, abs(x - y) / max(abs(x), abs(y), 1e-300))
    return worst


# ---- Newton steps


class Newton:
    """Newton steps by one thread: ordinary ones, and the last of a level."""

    def __init__(self, builder):
        self.builder, self.folder, self.steps = builder, os.path.join(builder.folder, "newton"), None

    def prepare(self):
        if self.steps is None:
            os.makedirs(self.folder, exist_ok=True)
            program = host_program(self.builder, "guard_newton_host")
            text = subprocess.run([program, self.folder], check=True, capture_output=True, text=True).stdout
            self.steps = [line.split() for line in text.splitlines()]

    def read(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def run(self, arch):
        self.prepare()
        cubin, rows = self.builder.get("guard_newton", arch), {}
        for step, kind in self.steps:
            counts = self._step(cubin, arch, step)
            if kind not in rows or counts["cycles"] > rows[kind]["cycles"]:
                rows[kind] = counts
        return {"newton step, " + kind: counts for kind, counts in rows.items()}

    def _step(self, cubin, arch, step):
        memory = Global()
        parts = {name: memory.add(0x10000000 * (i + 1), self.read(name if name == "rules" else step + "." + name))
                 for i, name in enumerate(("newton", "rules", "rows", "sums"))}
        cycles = memory.add(0x70000000, bytes(8))
        arguments = struct.pack("<QQQiiQQ", parts["newton"].base, parts["rules"].base, parts["rows"].base, CAPACITY, 0,
                                parts["sums"].base, cycles.base)
        machine = Machine(cubin, "guard_newton", arguments, memory, latency_of(arch))
        warp = machine.launch(1, 32)[0].warps[0]
        answer = memory.read(parts["newton"].base, parts["newton"].size)
        off = worst_difference(answer, self.read(step + ".answer"))
        if off > TOLERANCE:
            raise Wrong("Newton step %s on sm_%s differs from the host's by %.1e of a value" % (step, arch, off))
        begin, end = warp.marks
        counts = {name: much - begin.get(name, 0) for name, much in end.items()}
        return dict(counts, cycles=struct.unpack("<q", memory.read(cycles.base, 8))[0], warps=1)


# ---- recorded launches


class Launch:
    """One launch as guard_launches recorded it."""

    def __init__(self, folder, number):
        self.path = os.path.join(folder, str(number))
        with open(self.path + ".launch", encoding="utf-8") as file:
            lines = file.read().split("\n")
        self.kernel, *shape = lines[0].split()
        self.blocks, self.threads, self.cluster = (int(x) for x in shape)
        self.arguments = bytes.fromhex(lines[1])
        self.allocations = [[int(x) for x in line.split()] for line in lines[2:] if line]

    def memory(self, which):
        memory = Global()
        with open(self.path + "." + which, "rb") as file:
            for base, size, offset in self.allocations:
                file.seek(offset)
                memory.add(base, file.read(size))
        return memory


class Launches:
    """Launches of the backend's own host code, recorded on the emulated device."""

    def __init__(self, builder, program):
        self.builder, self.program, self.recorded = builder, program, {}

    def record(self, name):
        if name not in self.recorded:
            folder = os.path.join(self.builder.folder, name)
            os.makedirs(folder, exist_ok=True)
            done = subprocess.run([self.program, name, folder], capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError("guard_launches %s: %s" % (name, done.stderr.strip() or done.returncode))
            said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
            self.recorded[name] = said, [Launch(folder, i) for i in range(int(said["launches"]))]
        return self.recorded[name]

    def machine(self, launch, arch, memory):
        cubin = self.builder.owner(launch.kernel, arch)
        return Machine(cubin, launch.kernel, launch.arguments, memory, latency_of(arch))


class Evaluation:
    """A block of 128 points, each with the neighbours that a street gives it; not the last block of its grid."""

    def __init__(self, launches):
        self.launches = launches

    def run(self, arch):
        _, recorded = self.launches.record("evaluate_256")
        launch = recorded[0]
        machine = self.launches.machine(launch, arch, launch.memory("before"))
        blocks = machine.launch(launch.blocks, launch.threads, launch.cluster, only=[0])
        return {"evaluation of 128 points": per_warp(counts_of(blocks))}


def per_warp(counts):
    """Counts of a warp on average; cycles are those of the slowest."""
    warps = counts["warps"]
    return {k: v if k in ("cycles", "warps") else round(v / warps) for k, v in counts.items()}


class Scores:
    """Scores of 256 points at two poses: the bits of the emulated device, which are those of the plain C."""

    def __init__(self, launches):
        self.launches = launches

    def run(self, arch):
        _, recorded = self.launches.record("scores_256")
        launch = recorded[0]
        memory = launch.memory("before")
        machine = self.launches.machine(launch, arch, memory)
        counts = counts_of(machine.launch(launch.blocks, launch.threads, launch.cluster))
        with open(launch.path + ".after", "rb") as file:
            after = file.read()
        for base, size, offset in launch.allocations:
            if memory.read(base, size) != after[offset:offset + size]:
                raise Wrong("scores on sm_%s: the bits are not those of the host" % arch)
        return {"scores of 256 points at a pose": per_warp(counts)}


class RowSums:
    """The last block of a grid: what it takes from its ticket on, when it adds the rows of all blocks."""

    def __init__(self, launches, points):
        self.launches, self.points = launches, points

    def run(self, arch):
        _, recorded = self.launches.record("evaluate_%d" % self.points)
        launch = recorded[0]
        machine = self.launches.machine(launch, arch, launch.memory("after"))
        machine.atomic_result = launch.blocks - 1  # all other blocks have arrived
        block = machine.launch(launch.blocks, launch.threads, 1, only=[launch.blocks - 1])[0]
        begin = machine.atomic_at
        counts = {"cycles": max(w.t for w in block.warps) - begin, "warps": len(block.warps)}
        counts["rows"] = launch.blocks
        return {"row sums of %d points" % self.points: counts}


class Alignment:
    """A whole alignment; the answer is compared with that of the emulated device."""

    def __init__(self, launches, name, text, archs=None):
        self.launches, self.name, self.text, self.archs = launches, name, text, archs

    def run(self, arch):
        if self.archs and arch not in self.archs:
            return {}
        said, recorded = self.launches.record(self.name)
        launch = recorded[0]
        memory = launch.memory("before")
        machine = self.launches.machine(launch, arch, memory)
        counts = counts_of(machine.launch(launch.blocks, launch.threads, launch.cluster))
        if len(recorded) == 1:
            self._compare(arch, said, launch, memory)
        return {self.text: counts}

    def _compare(self, arch, said, launch, memory):
        answer = np.array([float.fromhex(x) for x in said["answer"].split()])
        with open(launch.path + ".after", "rb") as file:
            after = file.read()
        found, at, pattern = 0, after.find(answer.tobytes()), answer.tobytes()
        while at >= 0:
            for base, size, offset in launch.allocations:
                if offset <= at <= offset + size - len(pattern):
                    got = np.frombuffer(memory.read(base + at - offset, len(pattern)), np.float64)
                    if np.max(np.abs(got - answer)) > POSE_TOLERANCE:
                        raise Wrong("%s on sm_%s: the pose is off by %s" % (self.text, arch, got - answer))
                    found += 1
            at = after.find(pattern, at + 8)
        if not found:
            raise Wrong("%s: no answer in the memory of the device" % self.text)


class WholeLaunches:
    """Launches from their beginning to their end; afterwards the memory is that of the emulated device: bit for bit, or
    sums in float within a tolerance, whose exponentials differ in the last bits."""

    def __init__(self, launches, name, text, tolerance=0.0):
        self.launches, self.name, self.text, self.tolerance = launches, name, text, tolerance

    def run(self, arch):
        _, recorded = self.launches.record(self.name)
        cycles = 0
        for launch in recorded:
            memory = launch.memory("before")
            machine = self.launches.machine(launch, arch, memory)
            cycles += counts_of(machine.launch(launch.blocks, launch.threads, launch.cluster))["cycles"]
            self._compare(arch, launch, memory)
        return {self.text: {"cycles": cycles}}

    def _compare(self, arch, launch, memory):
        expected = launch.memory("after")
        for base, size, _ in launch.allocations:
            whole = size // 8 * 8
            a, b = (np.frombuffer(m.read(base, whole), np.uint64) for m in (memory, expected))
            for i in np.flatnonzero(a != b):
                if not self._near(a[i:i + 1], b[i:i + 1]):
                    raise Wrong("%s, %s on sm_%s: byte %d of an allocation of %d is %016x, on the emulated device %016x"
                                % (self.text, launch.kernel, arch, 8 * i, size, a[i], b[i]))

    def _near(self, a, b):
        for kind in (np.float64, np.float32):
            x, y = a.view(kind).astype(np.float64), b.view(kind).astype(np.float64)
            if np.all(np.abs(x - y) <= self.tolerance * (np.abs(x) + np.abs(y) + 100)):
                return self.tolerance > 0
        return False


def all_cases(builder, program):
    """Name -> case. program: guard_launches, or a function that builds it."""
    launches = Launches(builder, program)
    return {
        "newton": Newton(builder),
        "evaluation": Evaluation(launches),
        "scores": Scores(launches),
        "rows_20000": RowSums(launches, 20000),
        "rows_100000": RowSums(launches, 100000),
        "pass_block": Alignment(launches, "block_0", "block: a pass without points"),
        "pass_cluster": Alignment(launches, "cluster_0", "cluster: a pass without points", ("90",)),
        "pass_graph": Alignment(launches, "graph_0", "graph: a pass without points"),
        "evaluation_sums": WholeLaunches(launches, "evaluate_256", "an evaluation of 256 points, two blocks", 1e-4),
        "inform_sums": WholeLaunches(launches, "inform_256", "the information of 256 points, two blocks", 1e-4),
        "staged": WholeLaunches(launches, "staged_256", "staged: an evaluation of 256 points, two blocks", 1e-4),
        "alignment": Alignment(launches, "block_100", "block: an alignment of 100 points"),
        "alignment_cluster": Alignment(launches, "cluster_260", "cluster: an alignment of 260 points", ("90",)),
    }
