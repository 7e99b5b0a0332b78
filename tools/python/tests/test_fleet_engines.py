"""ndt-fleet on every kind of engine: the same run has the same result on one worker, two, jobs of Slurm and a scheduler of its own."""
import contextlib
import os
import subprocess
from pathlib import Path

import pytest

import fleet_runs
import slurm_here

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def replay(fleet_drives, bin_dir, tmp_path_factory):
    """replay(name, *options): a run, its folder. meanwhile: called with that folder while it runs."""
    place = tmp_path_factory.mktemp("runs")

    def run(name, *options, environment=None, meanwhile=None):
        fleet_runs.call("run", "--bags", fleet_drives.pattern, "--map", fleet_drives.map, *fleet_runs.OPTIONS, "--out", place / name, "--cache",
                        place / f"{name}.cache", "--ndtd", bin_dir / "ndtd", *options, environment=environment or {},
                        log=place / f"{name}.log", meanwhile=meanwhile and (lambda: meanwhile(place / name)))
        return place / name

    return run


def check_same(alone, found):
    assert found[0] == alone[0]
    for mine, other in zip(alone[1:], found[1:]):
        assert mine.schema.equals(other.schema)
        assert [name for name in mine.column_names if not mine[name].equals(other[name])] == []


def test_two_workers(fleet_alone, replay):
    check_same(fleet_alone, fleet_runs.result(replay("two", "--workers", 2)))


def test_slurm(fleet_alone, replay, slurm, tmp_path):
    """Jobs of Slurm; one of them is cancelled on the way."""
    def cancel(run):
        fleet_runs.wait_until(lambda: list((run / "done").glob("*/*.parquet")), "first result")
        assert len(list(run.glob(".engine-keys-*/key.pem"))) == 1 and "tcp://" not in (run / "engine.log").read_text()
        ask("scancel", ask("squeue", "--noheader", "--format=%A").split()[0])

    def ask(*words):
        return subprocess.run(words, env={**os.environ, **slurm}, capture_output=True, text=True, check=True, timeout=120).stdout

    run = replay("slurm", "--cluster", "slurm", "--workers", 2, "--cluster-option", "interface=lo",
                 "--cluster-option", f"log_directory={tmp_path}", environment=slurm, meanwhile=cancel)
    check_same(fleet_alone, fleet_runs.result(run))
    assert list(run.glob(".engine-keys-*")) == []
    assert any("CANCELLED" in path.read_text() for path in tmp_path.glob("dask-worker-*.err")), "no job of Slurm was cancelled"
    fleet_runs.wait_until(lambda: ask("squeue", "--noheader", "--states=RUNNING,PENDING") == "", "end of all jobs")


def test_scheduler_with_workers_of_its_own(fleet_alone, replay, tmp_path):
    with fleet_runs.scheduler(tmp_path / "dask") as one:
        check_same(fleet_alone, fleet_runs.result(replay("scheduler", "--cluster", one.address)))


def test_slurm_leaves_nothing(slurm):
    """Slurm itself: a job runs, and what one of it has started ends with it, also when the test fails."""
    folder = None
    with contextlib.suppress(ZeroDivisionError), slurm_here.running(cores=1) as environment:
        folder = Path(environment["SLURM_CONF"]).parent
        assert folder != Path(slurm["SLURM_CONF"]).parent
        done = subprocess.run(["srun", "printenv", "SLURM_CONF"], env={**os.environ, **environment}, capture_output=True, text=True,
                              check=True, timeout=120)
        assert done.stdout.strip().startswith(str(folder))
        subprocess.run(["sbatch", "--output=/dev/null", "--wrap", "sleep 1000"], env={**os.environ, **environment}, check=True, timeout=120,
                       stdout=subprocess.DEVNULL)
        raise ZeroDivisionError
    assert folder is not None and not folder.exists() and slurm_here.processes_of(folder) == []


@pytest.fixture(scope="module")
def slurm():
    if slurm_here.missing():
        pytest.skip(slurm_here.missing())
    with slurm_here.running(cores=2) as environment:
        yield environment
