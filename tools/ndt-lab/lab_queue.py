"""The daemon under load: latency and drops for each depth of its queue, and what a depth that adapts would do.

Every scan is made slower by a fixed time (debug.align_delay_ms), so that a known rate is too fast. An adaptive depth is
not in the product: it is simulated on the service times just measured, next to the fixed depths under the same rules."""
import json
import os
import re
import signal
import subprocess
import time

DELAY_MS, BUDGET_MS = 40, 200
DEPTHS = (1, 2, 3)
CONFIG = """map: {path: "%(map)s"}
sockets: {scans: "ipc://%(folder)s/scans.ipc", poses: "ipc://%(folder)s/poses.ipc", control: "ipc://%(folder)s/control.ipc"}
live: {budget_ms: %(budget).1f, queue_depth: %(depth)d}
debug: {align_delay_ms: %(delay).1f}
"""


class Failed(ValueError):
    """The daemon did not do its part."""


def await_ready(daemon, log):
    for _ in range(300):
        with open(log, encoding="utf-8", errors="replace") as file:
            if "ready" in file.read():
                return
        if daemon.poll() is not None:
            break
        time.sleep(0.05)
    raise Failed("ndtd did not become ready")


def stop(process, how=signal.SIGTERM):
    if process.poll() is None:
        process.send_signal(how)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def results_of(path):
    rows = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                row = json.loads(line)
                rows[row["seq"]] = row
    return list(rows.values())


def recorded_hz(lab):
    told = subprocess.run([lab.program("ndt-bag"), "info", lab.bag], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = re.search(r"scan rate +([0-9.]+) Hz", told)
    if not found or float(found.group(1)) <= 0:
        raise Failed("the bag's rate is not known")
    return float(found.group(1))


def drive(lab, depth, hz, scans):
    """Every result of one drive at that rate; 0: all scans at once."""
    folder = os.path.join(lab.work, "queue")
    os.makedirs(folder, exist_ok=True)
    config, log, out = (os.path.join(folder, name) for name in ("ndtd.yaml", "ndtd.log", "results.json"))
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG % dict(map=lab.map, folder=folder, depth=depth, budget=BUDGET_MS, delay=DELAY_MS))
    words = [word for setting in lab.settings for word in ("--set", setting)]
    with open(log, "w", encoding="utf-8") as errors, open(out, "w", encoding="utf-8") as answers:
        daemon = subprocess.Popen([lab.program("ndtd"), "-c", config] + words, stdout=subprocess.DEVNULL, stderr=errors)
        echo = None
        try:
            await_ready(daemon, log)
            echo = subprocess.Popen([lab.program("ndt-echo"), "--endpoint", "ipc://%s/poses.ipc" % folder, "--format",
                                     "json", "--timeout", "20"], stdout=answers, stderr=subprocess.DEVNULL)
            time.sleep(0.3)
            subprocess.run([lab.program("ndt-send"), "--bag", lab.bag, "--endpoint", "ipc://%s/scans.ipc" % folder,
                            "--rate", "%g" % (hz / recorded_hz(lab)) if hz else "max", "--limit", str(scans)], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=True)
            time.sleep(0.6)
        finally:
            stop(daemon)
            if echo:
                time.sleep(0.1)
                stop(echo)
    return results_of(out)


def latency_ms(row):
    return 1e-3 * sum(row[key] or 0 for key in ("decode_us", "queue_us", "preprocess_us", "align_us", "publish_us"))


def quantile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))] if values else 0.0


def digest(rows):
    """99th percentile of the answered, percent dropped."""
    if not rows:
        raise Failed("no result came")
    answered = [latency_ms(row) for row in rows if row["outcome"] != "dropped"]
    return quantile(answered, 0.99), 100.0 * (len(rows) - len(answered)) / len(rows)


def simulate(service_ms, arrival_of, depth_of):
    """One matcher, oldest dropped; scan i comes at arrival_of(i) ms; depth_of(service times so far) says how many may
    wait."""
    free_ms, waiting, done, dropped, seen = 0.0, [], [], 0, []

    def work(until_ms):
        nonlocal free_ms
        while waiting and max(free_ms, waiting[0][0]) < until_ms:
            arrival, takes = waiting.pop(0)
            free_ms = max(free_ms, arrival) + takes
            done.append(free_ms - arrival)
            seen.append(takes)

    for i, takes in enumerate(service_ms):
        now_ms = arrival_of(i)
        work(now_ms)
        waiting.append((now_ms, takes))
        while len(waiting) > depth_of(seen) + (free_ms <= now_ms):
            waiting.pop(0)
            dropped += 1
    work(float("inf"))
    return quantile(done, 0.99), 100.0 * dropped / len(service_ms)


def adaptive(seen):
    """As many as can wait and still be answered in half the budget."""
    return 3 if not seen else max(1, min(3, int(BUDGET_MS / 2 / quantile(seen[-20:], 0.95)) - 1))


POLICIES = [("depth %d" % depth, lambda seen, depth=depth: depth) for depth in DEPTHS] + [("adaptive", adaptive)]
KINDS = (("p99", 0, "ms"), ("dropped", 1, "% dropped"))


def role(name):
    return "base" if name == "depth 1" else "variant"


def measure(lab, experiment, case, hz, scans, repetitions):
    """All depths in turn; returns the service times."""
    found = {depth: [] for depth in DEPTHS}
    service_ms = []
    for repetition in range(repetitions):
        for depth in DEPTHS[repetition:] + DEPTHS[:repetition]:
            rows = drive(lab, depth, hz, scans)
            found[depth].append(digest(rows))
            service_ms += [1e-3 * (row["preprocess_us"] + row["align_us"]) for row in rows if row["outcome"] != "dropped"]
    for what, index, unit in KINDS:
        for depth in DEPTHS:
            name = "depth %d" % depth
            lab.add(experiment.name, "daemon; %s: %s" % (case, what), name, role(name), unit,
                    [pair[index] for pair in found[depth]])
    return service_ms


def run(lab, experiment):
    quick = lab.options.quick
    repetitions = 1 if quick else 3
    service_ms = []
    for hz in (40,) if quick else (20, 40):
        service_ms += measure(lab, experiment, "%d Hz" % hz, hz, 12 if quick else 40, repetitions)
    service_ms += measure(lab, experiment, "4 at once", 0, 4, repetitions)
    for case, arrival_of in (("20 Hz", lambda i: 50.0 * i), ("40 Hz", lambda i: 25.0 * i),
                             ("10 Hz in bursts of 4", lambda i: 400.0 * (i // 4))):
        for what, index, unit in KINDS:
            for name, depth_of in POLICIES:
                lab.add(experiment.name, "simulated on its times; %s: %s" % (case, what), name, role(name), unit,
                        [simulate(service_ms, arrival_of, depth_of)[index]])
