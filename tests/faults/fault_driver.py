#!/usr/bin/env python3
"""Makes the calls of ndtd fail one after the other and prints what became of it; see docs/testing.md.

  fault_driver.py BIN_DIR SHIM [--all] [--seconds S] [--seed N] [--only TEXT] [--jobs N] [--verbose]

Without --all a sample is run, as much as fits into S seconds (40), at least one fault of every kind. --only takes the
cases whose name contains TEXT, as "memory / live start". Exit codes: 0 no defect, 1 defects, 77 cannot run here."""
import argparse
import collections
import concurrent.futures
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

try:
    import fault_scenarios as scenarios
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
from fault_page import KINDS, Page

DECADES_S = 40 * 31556952
# Each call of this kind fails once, in every scenario that makes such calls: (name, kind, error).
ONCE = (("memory", "memory", "ENOMEM"), ("mmap", "map", "ENOMEM"), ("open", "open", "EMFILE"), ("read", "read", "EIO"),
        ("write", "write", "EIO"), ("no space", "write", "ENOSPC"), ("fsync", "sync", "EIO"), ("rename", "rename", "EIO"),
        ("file calls", "file", "EIO"), ("thread", "thread", "EAGAIN"), ("libzmq", "socket", "EMFILE"),
        ("interrupted", "message", "EINTR"), ("interrupted wait", "wait", "EINTR"))
AT_START = ("socket",)  # kinds of calls that fail while libzmq opens sockets, and not afterwards
# Calls that fail, are short or slow again and again: (name, [(kind, rule)]).
STORMS = (("EINTR storm", [(kind, {"error": "EINTR", "every": 2}) for kind in ("read", "write", "sync", "message", "wait")]),
          ("short reads and writes", [(kind, {"mode": "short", "every": 1}) for kind in ("read", "write")]),
          ("slow disk, 10 ms", [(kind, {"mode": "slow", "every": 1, "amount": 10000}) for kind in ("read", "write", "sync", "open")]),
          ("no memory at all", [("memory", {"every": 1})]), ("no descriptors at all", [("open", {"every": 1, "error": "EMFILE"})]),
          ("no threads at all", [("thread", {"every": 1, "error": "EAGAIN"})]),
          ("broken disk", [(kind, {"every": 1, "error": "EIO"}) for kind in ("read", "write", "sync", "rename", "file")]))
CLOCKS = (("clock 40 years on", [("wall", {"mode": "jumps", "amount": DECADES_S})]),
          ("clock 80 years back", [("wall", {"mode": "jumps", "amount": -2 * DECADES_S})]),
          ("steady clock slow", [("steady", {"mode": "crawls", "amount": 20})]))
LIMITED = ("compile-map", "replay points")
SMALL_RECORD_BYTES = 1100


class Case:
    """One fault in one scenario, at a moment that is counted from 1."""

    def __init__(self, fault, scenario, rules, at, file_limit=None):
        self.fault, self.scenario, self.rules, self.at, self.file_limit = fault, scenario, rules, at, file_limit

    def name(self):
        return f"{self.fault} / {self.scenario.name} / {self.at}"


class Bench:
    """Runs cases, each in a folder and with a page of its own."""

    def __init__(self, bin_dir, shim, folder):
        self.folder, self.shim = pathlib.Path(folder), shim
        self.inputs = scenarios.Inputs(bin_dir, self.folder / "inputs")
        listing = subprocess.run(["nm", self.inputs.ndtd], capture_output=True, text=True, check=False)
        self.sanitized = "__asan_init" in listing.stdout
        self._local, self._numbers, self._lock = threading.local(), iter(range(1 << 30)), threading.Lock()

    def _place(self):
        if not hasattr(self._local, "page"):
            with self._lock:
                number = next(self._numbers)
            self._local.out = self.folder / f"out{number}"
            self._local.page = Page(self.folder / f"page{number}")
        return self._local.page, scenarios.fresh(self._local.out)

    def run(self, case):
        """(verdict, explanation, faults injected, calls of each kind)"""
        page, out = self._place()
        page.clear()
        for kind, rule in case.rules:
            page.set(kind, **{"first": case.at, **rule})
        more = {} if case.file_limit is None else {"file_limit": case.file_limit}
        verdict, why = case.scenario.run(self.inputs, page, self.shim, out, self.sanitized, **more)
        if verdict in scenarios.BAD:
            why += " | " + page.trace(self.inputs.ndtd)
        calls = {kind: page.calls(kind) for kind in KINDS}
        injected = page.injected() if case.file_limit is None else 1
        return verdict, why, injected, calls


def plan(bench, only):
    """Every case of every fault, by (fault, scenario); the counts of calls come from a run without a fault."""
    cases = collections.OrderedDict()

    def add(fault, scenario, rules, moments, limits=None):
        found = [Case(fault, scenario, rules, at, limits[i] if limits else None) for i, at in enumerate(moments)]
        if found and only in f"{fault} / {scenario.name} / ":
            cases[fault, scenario.name] = found

    for scenario in scenarios.COMMANDS + scenarios.LIVES:
        verdict, why, _, calls = bench.run(Case("none", scenario, [], 0))
        if verdict in scenarios.BAD:
            sys.exit(f"{scenario.name} without a fault: {verdict}: {why}")
        for fault, kind, error in ONCE:
            if kind in AT_START and scenario.name != "live start":
                continue
            add(fault, scenario, [(kind, {"error": error, "most": 1})], range(1, calls[kind] + 1))
        for fault, rules in STORMS:
            add(fault, scenario, rules, (1, 2, 3))
        if isinstance(scenario, scenarios.Live):
            for fault, rules in CLOCKS:
                add(fault, scenario, rules, (1, 5, 20))
    rules = [[("write", {"mode": "space", "every": 1, "error": "ENOSPC", "amount": n, "first": 1})] for n in range(SMALL_RECORD_BYTES)]
    full = [Case("disk full at a byte", scenarios.SMALL_RECORD, rule, n) for n, rule in enumerate(rules)]
    if only in f"disk full at a byte / {scenarios.SMALL_RECORD.name} / ":
        cases["disk full at a byte", scenarios.SMALL_RECORD.name] = full
    for scenario in scenarios.COMMANDS:
        if scenario.name in LIMITED:
            most = bench.inputs.compiled.stat().st_size if scenario.name == "compile-map" else 12000
            step = max(1, most // 4096)
            moments = range(0, most, step)
            add("file too large at a byte", scenario, [], moments, moments)
    return cases


def sample(cases, seed):
    """The cases in an order in which every beginning is spread over all of them."""
    order = random.Random(seed)
    groups = [order.sample(group, len(group)) for group in cases.values()]
    order.shuffle(groups)
    for turn in range(max((len(group) for group in groups), default=0)):
        for group in groups:
            if turn < len(group):
                yield group[turn]


def print_table(results):
    verdicts = ("unharmed", "refused", "degraded") + scenarios.BAD
    used = [v for v in verdicts if any(v in row["verdicts"] for row in results.values())]
    print(f"\n{'fault':25} {'scenario':16} {'runs':>6} {'injected':>9}  " + "  ".join(f"{v:>8}" for v in used))
    for (fault, scenario), row in sorted(results.items()):
        print(f"{fault:25} {scenario:16} {row['runs']:6} {row['injected']:9}  " + "  ".join(f"{row['verdicts'][v]:>8}" for v in used))
    print(f"{'all':25} {'':16} {sum(r['runs'] for r in results.values()):6} {sum(r['injected'] for r in results.values()):9}  " +
          "  ".join(f"{sum(r['verdicts'][v] for r in results.values()):>8}" for v in used))


def run_all(bench, cases, options):
    results = collections.defaultdict(lambda: {"runs": 0, "injected": 0, "verdicts": collections.Counter()})
    defects, end = [], time.monotonic() + options.seconds
    todo, least = sample(cases, options.seed), len(cases)

    def work(numbered):
        number, case = numbered
        if not options.all and number >= least and time.monotonic() > end:
            return None
        return case, bench.run(case)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in pool.map(work, enumerate(todo)):
            if done is None:
                continue
            case, (verdict, why, injected, _) = done
            row = results[case.fault, case.scenario.name]
            row["runs"] += 1
            row["injected"] += injected
            row["verdicts"][verdict] += 1
            if verdict in scenarios.BAD:
                defects.append(f"{verdict}: {case.name()}: {why}")
                print(defects[-1], flush=True)
            elif options.verbose:
                print(f"{verdict}: {case.name()}: {why}", flush=True)
    print_table(results)
    return defects


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("shim")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.bin_dir, pathlib.Path(options.shim).resolve(), folder)
        cases = plan(bench, options.only)
        print(f"{sum(map(len, cases.values()))} cases in {len(cases)} groups", flush=True)
        defects = run_all(bench, cases, options)
    print(f"{len(defects)} defects")
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
