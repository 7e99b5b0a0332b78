"""Cost of a run per task, without what workers do: of a folder of synthetic tables, and of an engine with tasks that do nothing.

    python fleet_cost.py [TASKS]          # prints measured numbers, for docs/fleet.md; default: 10000 tasks, some minutes
"""
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fleet_maker import HOUR, MAP_ID, Maker, scans

from ndtd.fleet import cluster, coordinator, scan_table, status, tables


def map_id(folder, token, number):
    return MAP_ID


def replay(folder, token, bag, number, piece=None):
    return {"status": "done", "key": bag.id, "scans": HOUR, "replay_s": 50.0}


def timed(function, *arguments):
    """Processor time [s] and result."""
    begin = time.process_time()
    result = function(*arguments)
    return time.process_time() - begin, result


def copies(folder, count, size):
    """A run with `count` done files of `size` scans, all with the bytes of the first."""
    maker = Maker(folder, bags=count, scans=size)
    base = maker.configurations[0]
    data = maker.done(maker.bags[0], base).read_bytes()
    for bag in maker.bags[1:]:
        maker.index(bag)
        maker.run.write_whole(maker.run.done_file(maker.key(bag, base)), data)
    return maker, len(data)


def table_costs(folder, count):
    hours = min(count, 40)
    maker, data = copies(folder / "hours", hours, HOUR)
    yield "done file of an hour, bytes per scan", data / HOUR
    yield "index file, bytes", maker.run.index_file(maker.bags[0].id).stat().st_size
    table = scans("a", "base")
    yield "done file of an hour, made [ms]", 1e3 * timed(scan_table.write, folder / "one.parquet", table, {})[0]
    yield "collect, per task of an hour [ms]", 1e3 * timed(tables.collect, maker.run.path)[0] / hours
    yield "scans.parquet, bytes per scan", sum(path.stat().st_size for path in (maker.run.path / "scans.parquet").iterdir()) / hours / HOUR
    maker, data = copies(folder / "many", count, 20)
    yield "done file of 20 scans, bytes", data
    yield "names and dates of done files, per file [us]", 1e6 * timed(status._dates, maker.run.path / "done", ".parquet")[0] / count
    yield "status, per task [us]", 1e6 * timed(status.read, maker.run.path)[0] / count
    yield "collect, per task of 20 scans [ms]", 1e3 * timed(tables.collect, maker.run.path)[0] / count
    yield "collect again, nothing new, per task [ms]", 1e3 * timed(tables.collect, maker.run.path)[0] / count


@contextlib.contextmanager
def engine(folder):
    """A scheduler and two workers in processes of their own."""
    import psutil

    options = ["--scheduler-file", str(folder / "scheduler.json"), "--no-dashboard"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    commands = (["scheduler", "--port", "0"], *[["worker", "--nthreads", "1", "--no-nanny"]] * 2)
    processes = [subprocess.Popen([sys.executable, "-m", "dask", *words, *options], env=environment, stderr=subprocess.DEVNULL)
                 for words in commands]
    try:
        while not (folder / "scheduler.json").exists():
            time.sleep(0.1)
        with cluster.connect(cluster.Wish(str(folder / "scheduler.json"))) as found:
            yield found, psutil.Process(processes[0].pid)
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def engine_costs(folder, count):
    maker = Maker(folder / "run", bags=count, scans=HOUR)
    for bag in maker.bags:
        maker.index(bag)
    with engine(folder) as (found, scheduler):
        plan = coordinator.Coordinator(maker.run, maker.run.job(), maker.bags, found, tasks="fleet_cost")
        before, memory, began = sum(scheduler.cpu_times()[:2]), scheduler.memory_info().rss, time.monotonic()
        mine, _ = timed(plan.run)
        yield "tasks that do nothing, per second, on this machine", count / (time.monotonic() - began)
        yield "scheduler, per task [ms]", 1e3 * (sum(scheduler.cpu_times()[:2]) - before) / count
        yield "scheduler, memory before [MB]", memory / 1e6
        yield "scheduler, memory that it gains per task [kB]", (scheduler.memory_info().rss - memory) / 1e3 / count
        yield "coordinator, per task [ms]", 1e3 * mine / count


def main(count=10_000):
    os.fsync = lambda handle: None  # times are those of the processor
    with tempfile.TemporaryDirectory() as folder:
        for name, number in (*table_costs(Path(folder), count), *engine_costs(Path(folder), count)):
            print(f"| {name} | {number:.4g} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
