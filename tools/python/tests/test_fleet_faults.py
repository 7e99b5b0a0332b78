"""ndt-fleet where workers, the scheduler and the command are killed, and where bags are damaged: nothing is done twice, nothing lost."""
import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

import fleet_runs
from slurm_here import processes_of

pytest.importorskip("distributed")

KILLS = int(os.environ.get("NDT_FLEET_KILLS") or 3)
OPTIONS = (*fleet_runs.OPTIONS, "--retries", 100)
SCANS = fleet_runs.LENGTHS[0]
CLOUD = b"# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\n" + bytes(range(256)) * 40


class Run:
    """A run in a folder, its calls, and what its replays have logged."""

    def __init__(self, folder, drives, ndtd, pause_s=0.0):
        self.folder, self.path, self.log, self.drives = folder, folder / "run", folder / "log", drives
        self.program = fleet_runs.recorder(folder / "program", ndtd, pause_s)
        self.environment = {"NDT_FLEET_TEST": str(folder)}
        self.arguments = ["run", "--bags", drives.pattern, "--map", drives.map, *OPTIONS, "--out", self.path, "--cache", folder / "cache",
                          "--ndtd", self.program]
        self._seen = []  # (moment, {done file: its identity})

    def start(self, *options):
        return fleet_runs.start(*self.arguments, *options, environment=self.environment, log=self.log)

    def call(self, *options, code=0):
        return fleet_runs.call(*self.arguments, *options, environment=self.environment, log=self.log, code=code)

    def events(self, kind):
        return [one for one in fleet_runs.events(self.program) if one["event"] == kind]

    def done(self):
        return {path: path.stat() for path in (self.path / "done").glob("*/[0-9a-f]*.parquet")}

    def look(self):
        """Remembers what is done by now."""
        self._seen.append((time.time_ns(), {path: (info.st_ino, info.st_mtime_ns) for path, info in self.done().items()}))

    def check_done_once(self):
        """Checks that what was done at a look has not been begun after it, and its file is still the same."""
        from ndtd.fleet import scan_table
        from ndtd.fleet.run_folder import RunFolder

        files = {one.name: one.file for one in RunFolder(self.path).job().configurations}
        assert self.events("twice") == []
        for moment, seen in self._seen:
            assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in seen} == seen
            rows = [scan_table.read_run_row(path) for path in seen]
            tasks = {(Path(row["bag"]).name, Path(files[row["config"]]).name) for row in rows}
            again = [one for one in self.events("begin") if one["at_ns"] > moment and tuple(one["task"][:2]) in tasks]
            assert again == []

    def check_whole(self, alone):
        """The tables are those of a run that nothing has disturbed; nothing else is left."""
        digest, runs, scans = fleet_runs.result(self.path)
        assert digest == alone[0] and runs.equals(alone[1]) and scans.equals(alone[2])
        rows = list(zip(*(scans[name].to_pylist() for name in ("bag", "config", "seq"))))
        assert len(rows) == len(set(rows)) == 2 * sum(self.drives.scans.values())
        assert fleet_runs.left_behind(self.path) == []
        fleet_runs.wait_until(lambda: not processes_of(self.folder), "end of all processes")


@pytest.fixture
def disturbed(fleet_drives, bin_dir, tmp_path):
    run = Run(tmp_path, fleet_drives, bin_dir / "ndtd", pause_s=0.2)
    yield run
    for pid in processes_of(tmp_path):
        os.kill(pid, signal.SIGKILL)


def is_alive(pid):
    return Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() != b""


def test_workers_killed_at_random(disturbed, fleet_drives, fleet_alone):
    """Workers, and now and then a program alone, at random moments; the last bag waits until all are killed."""
    rng, killed = random.Random(17), 0
    hold = disturbed.program.with_name("hold")
    hold.write_text(fleet_drives.bags[-2].name)
    process = disturbed.start("--workers", 2)
    while killed < KILLS:
        time.sleep(rng.uniform(0.05, 0.8))
        assert process.poll() is None, disturbed.log.read_text()
        victim = "pid" if rng.random() < 0.25 else "worker"
        alive = sorted(pid for pid in {one[victim] for one in disturbed.events("begin")} if is_alive(pid))
        if alive:
            disturbed.look()
            os.kill(rng.choice(alive), signal.SIGKILL)
            killed += 1
    hold.unlink()
    assert process.wait(600) == 0, disturbed.log.read_text()
    disturbed.check_done_once()
    disturbed.check_whole(fleet_alone)
    assert len(disturbed.events("end")) < len(disturbed.events("begin"))


def test_scheduler_killed(disturbed, fleet_alone):
    with fleet_runs.scheduler(disturbed.folder / "first", environment=disturbed.environment) as one:
        process = disturbed.start("--cluster", one.file)
        fleet_runs.wait_until(lambda: len(disturbed.done()) >= 4, "four results")
        one.process.kill()
        assert process.wait(600) == 3
    said = disturbed.log.read_text().splitlines()[-1]
    assert said.startswith("ndt-fleet: the scheduler at ") and said.endswith(" went away; the same command goes on")
    disturbed.look()
    with fleet_runs.scheduler(disturbed.folder / "second", environment=disturbed.environment) as one:
        disturbed.call("--cluster", one.address)
    disturbed.check_done_once()
    disturbed.check_whole(fleet_alone)


def test_command_killed(disturbed, fleet_alone):
    process = disturbed.start("--workers", 2)
    fleet_runs.wait_until(lambda: len(disturbed.done()) >= 4, "four results")
    process.kill()
    process.wait()
    fleet_runs.wait_until(lambda: not processes_of(disturbed.folder), "end of its workers")
    disturbed.look()
    disturbed.call("--workers", 2)
    disturbed.check_done_once()
    disturbed.check_whole(fleet_alone)
    before = disturbed.events("begin")
    disturbed.call()
    assert disturbed.events("begin") == before, "all is done, and replays were begun"


def test_damaged_bags(fleet_drives, bin_dir, tmp_path):
    """Truncated: replayed up to there; empty, and no bag: listed; the rest completes, and is not done again."""
    bags = tmp_path / "bags"
    bags.mkdir()
    for bag in fleet_drives.bags[:2]:
        (bags / bag.name).symlink_to(bag)
    data = fleet_drives.bags[2].read_bytes()
    (bags / "truncated.bag").write_bytes(data[:len(data) * 2 // 3])
    (bags / "empty.bag").write_bytes(b"")
    (bags / "cloud.bag").write_bytes(CLOUD)
    run = Run(tmp_path, fleet_drives._replace(bags=[bags / "empty.bag"]), bin_dir / "ndtd")
    for again in range(2):
        said = run.call("--workers", 2, code=1)
        assert all(f"{name}.bag" in said for name in ("truncated", "empty", "cloud")), said
        _, runs, scans = fleet_runs.result(run.path)
        rows = {(Path(row["bag"]).name, row["config"]): row for row in runs.to_pylist()}
        assert len(rows) == 10 and run.events("twice") == []
        for (name, _), row in rows.items():
            is_bag = name not in ("empty.bag", "cloud.bag")
            assert row["status"] == ("done" if is_bag else "failed") and bool(row["failure"]) != is_bag
            assert bool(row["damage"]) == (name == "truncated.bag") and (row["scans"] or 0) == {"truncated.bag": row["scans"]}.get(
                name, SCANS if is_bag else 0)
            if name == "truncated.bag":
                assert 0 < row["scans"] < SCANS
        assert scans.num_rows == sum(row["scans"] or 0 for row in rows.values())
        assert len(run.events("begin")) == len(run.events("end")) == 6
    told = json.loads(fleet_runs.call("status", run.path, "--json", environment=run.environment, log=run.log))
    assert {Path(one["bag"]).name for one in told["failures"]} == {"empty.bag", "cloud.bag"}
    assert fleet_runs.left_behind(run.path) == []
