"""`tools/lab run`: runs what the machine can and keeps every sample.

DIR/lab.csv: experiment,case,variant,role,unit,samples (see lab.h); DIR/lab.json: machine, data, and of each experiment
the command, how long it took, the load before and after, and what stood in its way."""
import csv
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time

import lab_queue
import lab_table

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Cannot(Exception):
    """A line for the user; exit code 3."""


class Lab:
    """What experiments need to know."""

    def __init__(self, options, work):
        self.options, self.work = options, work
        self.programs = os.path.abspath(options.programs or os.path.join(ROOT, "build", "bin"))
        self.map, self.bag, self.settings = options.map, options.bag, list(options.set)
        self.device = None
        self.rows = []

    def program(self, name):
        path = os.path.join(self.programs, name)
        if not os.access(path, os.X_OK):
            raise Cannot("%s: no such program; build first, or name the folder with --programs" % path)
        return path

    def add(self, experiment, case, variant, role, unit, samples):
        self.rows.append([experiment, case, variant, role, unit, " ".join("%.5g" % value for value in samples)])

    def data(self):
        words = ["--map", self.map, "--bag", self.bag]
        for setting in self.settings:
            words += ["--set", setting]
        return words


def text_of(words, **more):
    """Standard output of a program that has to succeed."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise Cannot("%s: %s" % (os.path.basename(words[0]), lines[-1] if lines else "exit code %d" % done.returncode))
    return done.stdout


def raise_priority():
    """True where it was allowed."""
    try:
        return os.nice(0) <= -10 or os.nice(-10) <= -10
    except OSError:
        return False


def simulate(lab):
    """A drive for those who bring none."""
    folder = os.path.join(lab.work, "drive")
    size = ["--scans", "12", "--beams", "16", "--columns", "900", "--map-spacing", "0.25"] if lab.options.quick else \
        ["--scans", "80", "--beams", "32", "--columns", "1800"]
    text_of([lab.program("ndt-sim"), "--seed", "1", "--out", folder, "--world", "street"] + size)
    lab.map, lab.bag = os.path.join(folder, "map.pcd"), os.path.join(folder, "drive.bag")
    lab.settings.append("preprocess.deskew=time")
    return "simulated street (ndt-sim --seed 1)"


def find_device(lab):
    """Name of the CUDA backend that works here, or None."""
    if lab.options.emulated:
        return "cuda-emulated"
    listing = text_of([lab.program("ndtd"), "--list-backends"])
    row = re.search(r"^cuda +(.*)$", listing, re.M)
    if not row or "not here" in row.group(1):
        return None
    return "cuda"


def take_csv(lab, text, rename=None):
    for row in csv.reader(text.splitlines()):
        if len(row) != 6:
            raise Cannot("ndt-lab printed a line of %d fields" % len(row))
        row[0] = rename or row[0]
        lab.rows.append(row)


def repetitions(lab, experiment):
    if lab.options.quick:
        return lab.options.repetitions or 2
    return lab.options.repetitions or experiment.repetitions


def device_words(lab, words):
    return [re.sub(r"\bcuda(?=[:,]|$)", lab.device, word) for word in words] if lab.device else words


def run_lab(lab, experiment):
    words = device_words(lab, experiment.words) or [experiment.name]
    suffix = "_emulated" if lab.device == "cuda-emulated" and experiment.gpu else ""
    command = [lab.program("ndt-lab" + suffix)] + words + lab.data() + ["--folder", lab.work]
    command += ["--seed", str(lab.options.seed), "--repetitions", str(repetitions(lab, experiment))]
    take_csv(lab, text_of(command + (["--quick"] if lab.options.quick else [])), experiment.name)


def run_device(lab, experiment):
    suffix = "_emulated" if lab.device == "cuda-emulated" else ""
    command = [lab.program("ndt-lab-device" + suffix)] + experiment.words
    command += ["--seed", str(lab.options.seed), "--repetitions", str(repetitions(lab, experiment))]
    take_csv(lab, text_of(command + (["--quick"] if lab.options.quick else [])), experiment.name)


def bench(lab, words, suffix=""):
    path = os.path.join(lab.work, "bench.json")
    text_of([lab.program("ndt-bench" + suffix)] + words + ["--json", path])
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def run_front(lab, experiment):
    words = ["--front", "--points", "10000"] if lab.options.quick else experiment.words
    for case in bench(lab, words)["front"]:
        take_front(lab, case)


def take_front(lab, row):
    if row.get("median_us") is not None:
        lab.add("front", "%d points" % round(row["points"]), row["step"], "fact", "us", [row["median_us"]])


def align_name(row):
    if "peer" in row:
        return "PCL"
    return row["backend_description"] if row["backend"] == "cpu" else row["backend_description"].split(" on ")[0]


def possible(lab, words, suffix):
    """The backends of the list that work here; the shapes of some pipelines need newer devices."""
    at = words.index("--backend") + 1
    good = []
    for name in words[at].split(","):
        try:
            bench(lab, ["--backend", name, "--points", "100", "--starts", "1", "--scans", "1"] + lab.data(), suffix)
            good.append(name)
        except Cannot as error:
            print("          %s: left out: %s" % (name, error))
    return words[:at] + [",".join(good)] + words[at + 1:]


def run_align(lab, experiment):
    """Medians of whole aligns, one sample per seed; within a run of ndt-bench all take turns, start by start."""
    words = device_words(lab, experiment.words)
    if experiment.name == "peer":
        words = words + (["--peer", "pcl"] if has_peer(lab) else [])
    suffix = "_emulated" if lab.device == "cuda-emulated" and experiment.gpu else ""
    starts, seeds = ("3", 1) if lab.options.quick else ("16", 5 if experiment.gpu else 3)
    if lab.options.quick:
        words[words.index("--points") + 1] = "300"
    words = possible(lab, words, suffix) if experiment.gpu else words
    found = {}
    for seed in range(seeds):
        result = bench(lab, words + lab.data() + ["--starts", starts, "--seed", str(lab.options.seed + seed)], suffix)
        for row in result["align"]:
            key = ("%d points" % round(row["points"]), align_name(row))
            found.setdefault(key, []).append(row)
    for (case, name), rows in found.items():
        role = "base" if name == "PCL" or experiment.gpu and rows[0].get("backend") == "cpu" else "variant"
        lab.add(experiment.name, case, name, role, "ms/align", [row["align_ms"]["median"] for row in rows])
        lab.add(experiment.name, case, name + " success", "fact", "", [row["success"] for row in rows])
        if rows[0].get("eval_us"):
            lab.add(experiment.name, case, name + " evaluation", "fact", "us", [row["eval_us"]["median"] for row in rows])


def run_overheads(lab, experiment):
    suffix = "_emulated" if lab.device == "cuda-emulated" else ""
    words = experiment.words + lab.data() + (["--points", "300"] if lab.options.quick else [])
    for row in bench(lab, words, suffix)["overheads"]:
        if row.get("median_us") is not None:
            lab.add(experiment.name, "%d points" % row["points"], "%s: %s" % (row["backend"], row["row"]), "fact", "us",
                    [row["median_us"]])


def has_peer(lab):
    done = subprocess.run([lab.program("ndt-bench"), "--map", lab.map, "--bag", lab.bag, "--points", "100", "--starts", "1",
                           "--scans", "1", "--peer", "pcl"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False)
    return done.returncode == 0


def run_bench(lab, experiment):
    if experiment.name == "front":
        run_front(lab, experiment)
    elif "--overheads" in experiment.words:
        run_overheads(lab, experiment)
    else:
        run_align(lab, experiment)


FLOAT = re.compile(r"^v?(?:mul|add|sub|(fn?m)(?:add|sub)\d*)(ps|ss)\b(.*)$")


def callgrind(lab, isa, count):
    """Instructions in all, facts that ndt-lab prints, and the file with the counts of each instruction."""
    path = os.path.join(lab.work, "callgrind.%s.%d" % (isa, count))
    text = text_of(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--compress-strings=no",
                    "--callgrind-out-file=" + path, lab.program("ndt-lab"), "count"] + lab.data() +
                   ["--repetitions", str(count)] + (["--quick"] if lab.options.quick else []),
                   env=dict(os.environ, NDT_CPU_ISA=isa))
    with open(path, encoding="utf-8") as file:
        total = next(line for line in file if line.startswith(("summary:", "totals:")))
    return int(total.split()[1]), {row[2]: float(row[5]) for row in csv.reader(text.splitlines())}, path


def executed(path, function):
    """How often each instruction of a function ran, by address; what it calls is left out."""
    counts, inside, skip = {}, False, False
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("fn="):
                inside = line.strip() == "fn=" + function
            elif line.startswith("calls="):
                skip = True
            elif line.startswith("0x") and skip:
                skip = False
            elif line.startswith("0x") and inside:
                address, _, count = line.split()
                counts[int(address, 16)] = counts.get(int(address, 16), 0) + int(count)
    return counts


def float_operations(program, counts):
    """Additions, subtractions and multiplications of floats, each lane of a vector one."""
    total = 0
    for line in text_of(["objdump", "-d", "--no-show-raw-insn", program]).splitlines():
        parts = line.split(":", 1)
        address = parts[0].strip()
        if len(parts) < 2 or not re.fullmatch("[0-9a-f]+", address) or int(address, 16) not in counts:
            continue
        found = FLOAT.match(parts[1].strip())
        if found:
            lanes = 1 if found.group(2) == "ss" else 8 if "%ymm" in found.group(3) else 4
            total += lanes * counts[int(address, 16)] * (2 if found.group(1) else 1) # fused: two operations
    return total


def run_count(lab, experiment):
    """The difference of two runs holds nothing but evaluations; the mix of instructions is that of the evaluation."""
    for program in ("valgrind", "objdump"):
        if not shutil.which(program):
            raise Cannot(program + " is not installed")
    for isa in ("avx2",) if platform.machine() == "x86_64" else (): # baseline fuses in software
        (few, first, path), (many, second, _) = callgrind(lab, isa, 1), callgrind(lab, isa, 3)
        lab.add(experiment.name, isa, "instructions per evaluation", "fact", "",
                [(many - few) / (second["evaluations"] - first["evaluations"])])
        operations = float_operations(lab.program("ndt-lab"), executed(path, "ndt_eval_chunk_lab_whole_" + isa))
        lab.add(experiment.name, isa, "float operations per evaluation", "fact", "", [operations / first["evaluations"]])
        for name in ("points", "pairs", "lanes that pairs take", "list entries with padding"):
            lab.add(experiment.name, isa, name, "fact", "", [first[name]])


HOW = {"lab": run_lab, "bench": run_bench, "queue": lab_queue.run, "count": run_count, "device": run_device}


def machine_of(lab):
    """From ndt-bench, which knows its compiler."""
    found = bench(lab, ["--front", "--points", "1000"])["machine"]
    memory = 0
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            memory = int(file.readline().split()[1]) // 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            numbers = dict(re.findall(r"^(cpu family|model)\s*: (\d+)$", file.read(), re.M))
        if len(numbers) == 2:
            found["cpu"] += " (family %s, model %s)" % (numbers["cpu family"], numbers["model"])
    except OSError:
        pass
    return dict(found, system="%s %s" % (platform.system(), platform.release().split("-")[0]), memory_mib=memory)


def run_one(lab, experiment, log):
    """Runs one experiment; what stands in its way becomes its row."""
    note = {"name": experiment.name, "load_before": os.getloadavg()[0]}
    begin, rows = time.monotonic(), len(lab.rows)
    if experiment.gpu and not lab.device:
        note.update(state="open", why="needs a GPU")
    else:
        try:
            HOW[experiment.how](lab, experiment)
            note.update(state="done", why="")
        except (Cannot, OSError, KeyError, ValueError, StopIteration) as error:
            del lab.rows[rows:]
            missing = experiment.how == "count" or experiment.gpu and lab.device == "cuda-emulated"
            note.update(state="left out" if missing else "failed", why=str(error))
        if experiment.gpu and lab.device == "cuda-emulated" and note["state"] == "done":
            note.update(state="open", why="needs a GPU; %d rows under emulation, thrown away" % (len(lab.rows) - rows))
            del lab.rows[rows:]
    note.update(seconds=round(time.monotonic() - begin, 1), load_after=os.getloadavg()[0])
    print("%-9s %-16s %6.1f s  %s" % (note["state"], experiment.name, note["seconds"], note["why"]), flush=True)
    log.append(note)


def wanted(options):
    return [experiment for experiment in lab_table.EXPERIMENTS if not options.only or experiment.name in options.only]


def show(lab):
    lab.device = find_device(lab)
    for experiment in wanted(lab.options):
        state = "open: needs a GPU" if experiment.gpu and not lab.device else "runs here"
        print("%-16s %-18s %s\n%36s%s" % (experiment.name, state, experiment.about, "", experiment.command()))
    return 0


def save(lab, out, head, log):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "lab.csv"), "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["experiment", "case", "variant", "role", "unit", "samples"])
        writer.writerows(lab.rows)
    with open(os.path.join(out, "lab.json"), "w", encoding="utf-8") as file:
        json.dump(dict(head, experiments=log), file, indent=1)
        file.write("\n")


def run(options):
    with tempfile.TemporaryDirectory() as work:
        lab = Lab(options, work)
        for name in ("ndt-lab", "ndt-bench", "ndtd"):
            lab.program(name)
        if options.list:
            return show(lab)
        os.makedirs(options.out, exist_ok=True)
        favoured, log = raise_priority(), []
        lab.device = find_device(lab)
        data = simulate(lab) if not lab.map else "%s on %s" % (os.path.basename(lab.bag), os.path.basename(lab.map))
        head = {"date": datetime.date.today().isoformat(), "machine": machine_of(lab), "data": data,
                "settings": lab.settings, "seed": options.seed, "quick": options.quick, "nice": favoured,
                "device": lab.device or "none"}
        for experiment in wanted(options):
            run_one(lab, experiment, log)
            save(lab, options.out, head, log)
    return 1 if any(note["state"] == "failed" for note in log) else 0
