"""Tasks of a worker of a fleet: tasks, tables of results, calls of ndtd with limits, the cache."""
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
fsspec = pytest.importorskip("fsspec")
aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("msgpack")

from fleet_runs import wait_until  # noqa: E402
from fleet_servers import Faulty, folder_app, serving  # noqa: E402

from ndtd.fleet import bags, job_settings, pieces, replay_call, scan_table, staging, task  # noqa: E402
from ndtd.fleet.run_folder import FleetError, Job, RunFolder  # noqa: E402
from ndtd.report.error_figures import Errors  # noqa: E402
from ndtd.report.run import Run  # noqa: E402

SETTINGS = ["preprocess.deskew=time"]


class Made:
    """A run of its own folder and cache; replay() and the others call the tasks."""

    def __init__(self, path, program, map_file, sweeps=(), **limits):
        self.folder, self.cache = RunFolder(path / "run"), path / "cache"
        self.folder.path.mkdir(parents=True)
        configurations = job_settings.configurations(str(program), (), SETTINGS, sweeps, self.folder)
        self.job = Job(secrets.token_hex(8), job_settings.version_of(str(program)), str(map_file), configurations, program=str(program),
                       cache=str(self.cache), **limits)
        self.folder.save_job(self.job)

    @property
    def place(self):
        return str(self.folder.path), self.job.token

    def change(self, **values):
        self.job = replace(self.job, **values)
        self.folder.save_job(self.job)

    def index(self, bag):
        out = task.prepare(*self.place, bag)
        assert out["status"] == "done", out
        return self.folder.index(bag)

    def failure(self, bag, number=0):
        """The failure of a replay, or of the preparation."""
        out = task.prepare(*self.place, bag)
        out = task.replay(*self.place, bag, number) if out["status"] == "done" else out
        assert out["status"] == "failed" and "\n" not in out["failure"]["reason"], out
        return out["failure"]

    def replayed(self, bag, number=0, status="done"):
        """The run row and the scans."""
        self.index(bag)
        out = task.replay(*self.place, bag, number)
        assert out["status"] == status, out
        path = self.folder.done_file(out["key"])
        return scan_table.read_run_row(path), scan_table.read_scans(path)


@pytest.fixture
def make(tmp_path, bin_dir, drive):
    """make(timeout_s=1, ...): a run on the map of the drive."""
    def made(name="one", program=bin_dir / "ndtd", map_file=drive.map, **options):
        return Made(tmp_path / name, program, map_file, **options)

    return made


def found(path):
    return bags.find([str(path)])[0]


def stand_in(path, bin_dir, replay):
    """ndtd, but for --replay a line of the shell."""
    path.write_text(f'#!/bin/sh\nfor word; do [ "$word" = --replay ] && {{ {replay}; }}; done\nexec {bin_dir}/ndtd "$@"\n')
    path.chmod(0o755)
    return path


# ---- a bag


def test_a_replay_and_its_rows(make, drive, run_program, tmp_path):
    one, bag = make(), found(drive.bag)
    row, scans = one.replayed(bag)
    run_program("ndtd", "--replay", drive.bag, "--map", drive.map, "--set", SETTINGS[0], "--output", tmp_path / "plain")
    run = Run(tmp_path / "plain")
    errors = Errors(run)
    assert row["trajectory_hash"] == run.summary["trajectory_hash"] and row["map_id"] == run.map_id
    assert row["status"] == "done" and row["bag"] == str(drive.bag) and row["config"] == "base" and row["version"] == one.job.version
    assert row["bag_bytes"] == drive.bag.stat().st_size and row["bag_hash"] == one.folder.index(bag).hash and row["hints"] == []
    assert (row["scans"], row["trusted"], row["converged"], row["wrong"], row["pieces"]) == (20, 20, 20, 0, 1)
    assert row["duration_s"] == pytest.approx(1.9) and row["distance_m"] == pytest.approx(run.distance_m[-1], abs=0.05)
    for name, level in (("median", 50), ("p95", 95), ("max", 100)):
        assert row[f"error_m_{name}"] == pytest.approx(np.percentile(errors.translation_m, level))
        assert row[f"error_deg_{name}"] == pytest.approx(np.degrees(np.percentile(errors.rotation_rad, level)))
    assert row["confidence_min"] == pytest.approx(run.values["confidence"].min()) and row["replay_s"] > 0 and row["cpu_s"] > 0
    assert scans.schema.equals(scan_table.SCANS) and scans["seq"].to_pylist() == run.seq.tolist()
    assert scans["stamp_ns"].to_pylist() == run.stamp_ns.tolist() and set(scans["bag"].to_pylist()) == {str(drive.bag)}
    assert np.array_equal(np.stack([scans[name].to_numpy() for name in ("x", "y", "z", "qx", "qy", "qz", "qw")], axis=1), run.pose)
    assert np.allclose(scans["sd_rz"].to_numpy(), np.sqrt(run.covariance[:, 5, 5]))
    assert np.allclose(np.stack([scans[f"error_{name}_m"].to_numpy() for name in ("forward", "left", "up")], axis=1),
                       errors.per_axis[:, :3], atol=1e-12)


def test_what_is_done_is_not_done_again(make, drive):
    one, bag = make(), found(drive.bag)
    row, _ = one.replayed(bag)
    again, _ = one.replayed(bag, status="present")
    assert again == row
    path = next(one.folder.path.glob("done/*/*.parquet"))
    path.write_bytes(path.read_bytes()[:-1])  # cut off by a failing disk
    assert one.replayed(bag)[0]["trajectory_hash"] == row["trajectory_hash"]


def test_ndtd_is_called_with_one_thread_that_is_not_pinned(make, drive, bin_dir, tmp_path):
    program = stand_in(tmp_path / "ndtd", bin_dir, f'echo "$@" >>{tmp_path}/calls')
    one = make(program=program)
    one.replayed(found(drive.bag))
    words = (tmp_path / "calls").read_text().split()
    assert words[words.index("--threads") + 1] == "1" and words[words.index("--set") + 1] == "cpu.pin_threads=false"
    assert "--skip" not in words and "--limit" not in words
    assert sorted(path.suffix for path in one.cache.iterdir()) == [".lock", ".lock", ".ndtmap"]  # nothing else is left


def test_the_same_bytes_for_the_same_rows(make, drive, tmp_path):
    row, scans = make().replayed(found(drive.bag))
    for name in ("a", "b"):
        scan_table.write(tmp_path / name, scans, row)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with pytest.raises(ValueError, match="not columns of RUNS: bags"):
        scan_table.write(tmp_path / "c", scans, {"bags": "a"})


@pytest.mark.parametrize("text, reason", [
    (b"", "empty"), (b"NDT", "3 bytes"), (b"NDTBAG\r\n" + b"\x09" * 8, "version"), (b"hello " * 100, "not a recording of ROS")])
def test_files_that_are_no_bags(make, tmp_path, text, reason):
    path = tmp_path / "drive.bag"
    path.write_bytes(text)
    failure = make().failure(found(path))
    assert re.search(reason, failure["reason"]), failure
    assert failure["kind"] == "failed" and failure["config"] == "" and failure["bag"] == str(path) and failure["key"] == found(path).id
    assert not (tmp_path / "drive.bag.lock").exists()


def test_a_folder_without_scans(make, tmp_path):
    (tmp_path / "drive").mkdir()
    (tmp_path / "drive" / "notes.txt").write_text("none")
    failure = make().failure(found(tmp_path / "drive"))
    assert failure["lines"][-1] == f"ndt-import: {tmp_path / 'drive'}: {failure['reason']}"


def test_a_bag_that_goes_or_changes_while_it_waits(make, drive, tmp_path):
    one, path = make(), tmp_path / "drive.bag"
    shutil.copy(drive.bag, path)
    bag = found(path)
    one.index(bag)
    with open(path, "ab") as stream:
        stream.write(b"more")
    assert "has changed" in task.replay(*one.place, bag, 0)["failure"]["reason"]
    path.unlink()
    assert task.replay(*one.place, bag, 0)["failure"]["reason"] == "No such file or directory"
    assert list(one.folder.path.glob("done/*/*")) == []


def test_a_bag_that_changes_while_it_is_replayed(make, drive, bin_dir, tmp_path):
    shutil.copy(drive.bag, tmp_path / "drive.bag")
    program = stand_in(tmp_path / "ndtd", bin_dir, f"touch -d 2001-01-01 {tmp_path}/drive.bag")
    one = make(program=program)
    assert "has changed" in one.failure(found(tmp_path / "drive.bag"))["reason"]
    assert list(one.folder.path.glob("done/*/*")) == []


def test_a_folder_that_changes_while_it_waits(make, tmp_path):
    (tmp_path / "drive").mkdir()
    (tmp_path / "drive/notes.txt").write_text("none")
    bag = found(tmp_path / "drive")
    (tmp_path / "drive/more.txt").write_text("none")
    assert "has changed" in make().failure(bag)["reason"]


def test_a_program_that_is_replaced_meanwhile(make, drive, bin_dir, tmp_path):
    (tmp_path / "ndtd").symlink_to(bin_dir / "ndtd")
    one, bag = make(program=tmp_path / "ndtd"), found(drive.bag)
    one.index(bag)
    commit = one.job.version.split()[-1].rstrip(")").encode()
    (tmp_path / "ndtd").unlink()
    (tmp_path / "ndtd").write_bytes((bin_dir / "ndtd").read_bytes().replace(commit, b"x" * len(commit)))
    (tmp_path / "ndtd").chmod(0o755)
    with pytest.raises(FleetError, match=r"worker on .* is ndtd \S* \(commit xx*\); the run needs ndtd"):
        task.replay(*one.place, bag, 0)
    assert list(one.folder.path.glob("done/*/*")) == []


def test_results_of_one_bag_that_cannot_be_used(make, drive, monkeypatch):
    """Its failure alone: the run goes on."""
    def refuse(*_):
        raise FleetError("results: not what ndtd --results writes, after line 3: pose is beyond 1e+08 m")

    monkeypatch.setattr(scan_table, "read_results", refuse)
    assert "pose is beyond" in make().failure(found(drive.bag))["reason"]


@pytest.mark.parametrize("do", (task.replay, task.join))
def test_an_index_that_is_not_there_yet_is_tried_again(make, drive, monkeypatch, do):
    """As on a shared file system that shows new files late."""
    one, bag = make(), found(drive.bag)
    monkeypatch.setattr(task, "INDEX_LATE_S", 0.0)
    out = do(*one.place, bag, 0)
    assert out["status"] == "failed" and "is not there on" in out["failure"]["reason"]
    task.prepare(*one.place, bag)
    assert task.replay(*one.place, bag, 0)["status"] == "done"


def test_files_that_another_machine_shows_late(make, drive):
    one, bag = make(), found(drive.bag)
    one.index(bag)
    files = [one.folder.index_file(bag.id), one.folder.run_file]
    late = [file.read_bytes() for file in files]
    files[0].unlink()
    one.folder.write_whole(files[1], late[1].replace(one.job.token.encode(), b"former"))
    timers = [threading.Timer(1.0 + number, one.folder.write_whole, pair) for number, pair in enumerate(zip(files[::-1], late[::-1]))]
    for timer in timers:
        timer.start()
    try:
        assert task.replay(*one.place, bag, 0)["status"] == "done"
    finally:
        for timer in timers:
            timer.join()


@pytest.mark.parametrize("do", (task.prepare, task.replay, task.join))
def test_a_worker_that_is_stopped(make, drive, monkeypatch, do):
    """Its claim stays, and does not keep the others for ever."""
    one, bag = make(), found(drive.bag)
    one.index(bag)
    monkeypatch.setattr(task, "stage_limit_s", lambda _: 0.1)
    one.change(timeout_s=0.05)
    number = () if do is task.prepare else (0,)
    with one.folder.claim(task._worker(*one.place).key(one.folder.index(bag), 0) if number else bag.id):
        out = do(*one.place, bag, *number)
    assert out["status"] == "failed" and out["failure"]["reason"].startswith("another process works on it for more than 0.")


def test_a_link_to_a_bag(make, drive, tmp_path):
    (tmp_path / "link.bag").symlink_to(drive.bag)
    assert make().replayed(found(tmp_path / "link.bag"))[0]["scans"] == 20


def test_a_bag_that_is_cut_off(make, drive, tmp_path):
    path = tmp_path / "cut.bag"
    path.write_bytes(drive.bag.read_bytes()[:-1000])
    row, scans = make().replayed(found(path))
    assert row["scans"] == len(scans) == 19 and row["damage"].startswith("truncated or damaged")


def test_damage_that_its_headers_do_not_tell(make, drive, tmp_path):
    data = bytearray(drive.bag.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad.bag").write_bytes(data)
    one = make()
    row, scans = one.replayed(found(tmp_path / "bad.bag"))
    assert one.folder.index(found(tmp_path / "bad.bag")).damage == "" and "damaged" in row["damage"]
    assert 0 < row["scans"] == len(scans) < 20


def test_hints_are_kept(make, drive):
    one = make(sweeps=["preprocess.deskew=off"])
    assert any("preprocess.deskew is off" in hint for hint in one.replayed(found(drive.bag))[0]["hints"])


# ---- limits


def test_more_memory_than_allowed(make, drive):
    one = make()
    task.map_id(*one.place, 0)
    one.change(memory_bytes=5 << 20)
    failure = one.failure(found(drive.bag))
    assert failure["kind"] == "memory" and failure["reason"].startswith("ndtd: out of memory with the limit of 0.00488 GiB (--memory): ")
    assert failure["lines"] and failure["config"] == "base" and failure["worker"]


def test_more_time_than_allowed(make, drive, bin_dir, tmp_path):
    one = make(program=stand_in(tmp_path / "ndtd", bin_dir, "echo begins >&2; exec sleep 300"), timeout_s=0.5)
    failure = one.failure(found(drive.bag))
    assert failure["reason"] == "ndtd: not done after 0.5 s, the limit (--timeout)"
    assert failure["kind"] == "timeout" and failure["lines"] == ("begins",)


@pytest.mark.parametrize("line, kind, reason", [
    ("kill -9 $$", "memory", "ndtd: killed from outside"), ("kill -11 $$", "failed", "ndtd: ended by SIGSEGV"),
    ("echo 'ndtd: one: two' >&2; exit 3", "failed", "one: two"), ("exit 3", "failed", "ndtd: exit status 3"),
    ("exit 0", "failed", "ndtd: its summary cannot be used"), ("yes | head -c 1000000 >&2; exit 3", "failed", "y")])
def test_a_program_that_fails(make, drive, bin_dir, tmp_path, line, kind, reason):
    failure = make(program=stand_in(tmp_path / "ndtd", bin_dir, line)).failure(found(drive.bag))
    assert failure["kind"] == kind and failure["reason"].startswith(reason) and len(failure["lines"]) <= replay_call.MOST_LINES


def test_default_limits_grow_with_the_drive(make, drive):
    one = make()
    index = one.index(found(drive.bag))
    assert task._time_limit_s(index, 20) == pytest.approx(60 + 10 * 1.9, abs=0.2)
    assert task._time_limit_s(index, 10) == pytest.approx(60 + 5 * 1.9, abs=0.2)


CALL = "import sys; from ndtd.fleet import task, run_folder; print(task.replay({!r}, {!r}, run_folder.Bag(*{!r}), 0)['status'])"


def start(one, bag):
    """A process of its own that replays."""
    code = CALL.format(*one.place, (bag.url, bag.bytes, bag.fingerprint))
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_ndtd_ends_with_its_worker(make, drive, bin_dir, tmp_path):
    line = f"echo $$ >{tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; exec sleep 300"
    one = make(program=stand_in(tmp_path / "ndtd", bin_dir, line))
    bag = found(drive.bag)
    index = one.index(bag)
    key = task._worker(*one.place).key(index, 0)
    worker = start(one, bag)
    wait_until((tmp_path / "pid").exists, "replay")
    ndtd = int((tmp_path / "pid").read_text())
    os.kill(ndtd, 0)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    wait_until(lambda: not is_running(ndtd), "end of ndtd")
    assert one.folder.abandoned(key) and not one.folder.abandoned(key)
    assert sorted(path.suffix for path in one.cache.iterdir()) == [".lock", ".lock", ".ndtmap"]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_two_workers_with_the_same_task(make, drive, bin_dir, tmp_path):
    one = make(program=stand_in(tmp_path / "ndtd", bin_dir, f"echo call >>{tmp_path}/calls; sleep 1"))
    bag = found(drive.bag)
    one.index(bag)
    workers = [start(one, bag) for _ in range(2)]
    assert sorted(worker.communicate(timeout=120)[0].strip() for worker in workers) == ["done", "present"]
    assert (tmp_path / "calls").read_text() == "call\n" and len(list(one.folder.path.glob("done/*/*"))) == 1


# ---- workers that cannot take part


def test_another_folder_or_another_ndtd(make, drive, bin_dir, tmp_path):
    one, bag = make(), found(drive.bag)
    with pytest.raises(FleetError, match="is not the same folder on .*: all machines need it under this path"):
        task.prepare(one.place[0], "another", bag)
    with pytest.raises(FleetError, match="worker on .*: not the folder of a run"):
        task.prepare(str(tmp_path / "none"), "another", bag)
    one.change(version="ndtd 9.9.9 (commit 123456789abc)")
    with pytest.raises(FleetError, match=r"worker on .* is ndtd \d.*; the run needs ndtd 9.9.9"):
        task.prepare(*one.place, bag)
    one.change(program=str(tmp_path / "nothing"))
    with pytest.raises(FleetError, match="nothing: No such file or directory"):
        task.prepare(*one.place, bag)


def test_a_map_that_cannot_be_used(make, tmp_path):
    for number, (name, text) in enumerate({"none.pcd": None, "text.pcd": "no map", "empty": ""}.items()):
        path = tmp_path / name
        if name == "empty":
            path.mkdir()
        elif text:
            path.write_text(text)
        with pytest.raises(FleetError, match=f"map: .*{name}"):
            task.map_id(*make(f"run{number}", map_file=path).place, 0)


# ---- maps


def test_a_map_is_compiled_once_for_its_settings(make, drive, run_program, tmp_path):
    one = make(sweeps=["ndt.levels=[2.0],[4.0,2.0]", "ndt.max_iterations=20,30"])
    ids = [task.map_id(*one.place, number) for number in range(4)]
    assert ids[0] == ids[1] != ids[2] == ids[3] and len(list(one.cache.glob("*.ndtmap"))) == 2
    assert sorted(json.loads((one.folder.path / "maps.json").read_text()).values()) == sorted({*ids})
    run_program("ndtd", "--replay", drive.bag, "--map", drive.map, "--set", "ndt.levels=[2.0]", "--summary", tmp_path / "summary.json")
    assert json.loads((tmp_path / "summary.json").read_text())["map_id"] == ids[0]
    run_program("ndt-map", "tile", drive.map, "--out", tmp_path / "tiles", "--size", 20)
    tiles = make("tiles", map_file=tmp_path / "tiles", sweeps=["ndt.levels=[2.0],[4.0,2.0]"])
    assert task.map_id(*tiles.place, 0) == ids[0]


def test_another_run_uses_the_compiled_map(make, drive, bin_dir, tmp_path):
    one = make()
    first = task.map_id(*one.place, 0)
    (before,) = one.cache.glob("*.ndtmap")
    inode = before.stat().st_ino
    two = make("two")
    two.change(cache=str(one.cache))
    assert task.map_id(*two.place, 0) == first and before.stat().st_ino == inode
    assert len(list(one.cache.iterdir())) == 3


def test_a_map_of_another_place(make, drive):
    files = fsspec.filesystem("memory")
    files.pipe("/maps/town.pcd", drive.map.read_bytes())
    one, two = make(map_file="memory://maps/town.pcd"), make("two")
    assert task.map_id(*one.place, 0) == task.map_id(*two.place, 0)
    assert not list(one.cache.glob("*.part*")) and not list(one.cache.glob("*.source*[!k]"))


def test_a_map_that_changes_meanwhile(make, drive, tmp_path):
    path = tmp_path / "map.pcd"
    shutil.copy(drive.map, path)
    one = make(map_file=path)
    known = task.map_id(*one.place, 0)
    name = next(iter(json.loads((one.folder.path / "maps.json").read_text())))
    one.folder.write_json(one.folder.path / "maps.json", {name: "0" * 16})  # as another machine told it
    one.change()
    failure = one.failure(found(drive.bag))
    assert failure["reason"].startswith(f"the map has id {known} on ")


# ---- the cache


@pytest.fixture
def remote(drive):
    """Bags of another place: memory://bags/N.bag."""
    files = fsspec.filesystem("memory")
    names = [f"/bags/{secrets.token_hex(4)}.bag" for _ in range(3)]
    for number, name in enumerate(names):
        files.pipe(name, drive.bag.read_bytes()[:-1000 * number or None])
    yield [found(f"memory:/{name}") for name in names]
    for name in names:
        if files.exists(name):
            files.rm(name)


def test_a_bag_of_another_place_is_fetched_once(make, drive, remote):
    one = make()
    row, _ = one.replayed(remote[0])
    assert row["bag"] == remote[0].url and row["bag_hash"] == one.index(found(drive.bag)).hash
    fsspec.filesystem("memory").rm(remote[0].url[len("memory:/"):])
    next(one.folder.path.glob("done/*/*")).unlink()
    assert one.replayed(remote[0])[0]["trajectory_hash"] == row["trajectory_hash"]
    failure = one.failure(replace(remote[0], fingerprint="newer"))
    assert remote[0].url.rpartition("/")[2] in failure["reason"] and not list(one.cache.glob("*.part*"))


def test_the_cache_has_a_limit(remote, tmp_path):
    size = remote[0].bytes
    cache = staging.Cache(str(tmp_path), 2 * size)
    used = []
    for bag in (remote[0], remote[1], remote[0], remote[2]):
        with cache.bag(bag) as path:
            used.append(path.name)
            os.utime(path, ns=(len(used), len(used)))
    assert {path.name for path in tmp_path.glob("*.bag")} == {used[2], used[3]}  # the least recently used one went
    with pytest.raises(staging.StageError, match=r"GiB to stage; the cache has .* GiB \(--cache-size\)"):
        with staging.Cache(str(tmp_path), size - 1).bag(replace(remote[0], fingerprint="new")):
            pass


def test_what_is_in_use_stays(remote, tmp_path, monkeypatch):
    monkeypatch.setattr(staging, "_WAIT_S", 0.0)
    monkeypatch.setattr(staging, "_STEP_S", 0.0)
    cache = staging.Cache(str(tmp_path), remote[0].bytes + 10)
    with cache.bag(remote[0]) as path:
        with pytest.raises(staging.StageError, match="no room for .* is in use"):
            with cache.bag(remote[1]):
                pass
        assert path.stat().st_size == remote[0].bytes
    with cache.bag(remote[1]) as other:
        assert other.stat().st_size == remote[1].bytes and not path.exists()


def test_room_that_is_freed_while_it_is_waited_for(remote, tmp_path, monkeypatch):
    monkeypatch.setattr(staging, "_STEP_S", 0.05)
    cache = staging.Cache(str(tmp_path), remote[0].bytes + 10)
    context, seen = cache.bag(remote[0]), []
    context.__enter__()

    def other():
        with cache.bag(remote[1]) as path:
            seen.append(path.stat().st_size)

    thread = threading.Thread(target=other)
    thread.start()
    time.sleep(0.2)
    assert not seen
    context.__exit__(None, None, None)
    thread.join(60)
    assert seen == [remote[1].bytes]


def test_what_killed_workers_left_is_removed(remote, tmp_path):
    (tmp_path / "0123.bag.part").write_bytes(b"x" * 100)
    (tmp_path / "0123.bag.part.d").mkdir()
    (tmp_path / "0123.bag.part.d" / "drive.mcap").write_bytes(b"x" * 1000)
    (tmp_path / "0123.bag.lock").touch()
    with staging._locked(tmp_path / "4567.bag.lock", staging.fcntl.LOCK_EX):
        (tmp_path / "4567.bag.part").write_bytes(b"x")  # another process works on this one
        with staging.Cache(str(tmp_path)).bag(remote[0]):
            pass
        assert sorted(path.name for path in tmp_path.glob("*.part*")) == ["4567.bag.part"]


def test_a_full_disk(make, remote, monkeypatch):
    one = make()

    def full(*_):
        raise OSError(staging.errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "get_file", full)
    failure = one.failure(remote[0])
    assert failure["reason"] == f"{one.cache}: no space left on the disk of the cache (--cache)"
    assert not list(one.cache.glob("*.part*"))


def test_a_download_takes_as_long_as_it_takes(make, drive, monkeypatch):
    """By itself aiohttp ends one after five minutes."""
    monkeypatch.setattr("aiohttp.client.DEFAULT_TIMEOUT", aiohttp.ClientTimeout(total=0.2))
    server = Faulty(folder_app(drive.folder))
    server.plans = {"drive.bag": ["slow!"]}
    with serving(server) as url:
        assert make().replayed(found(f"{url}/drive.bag"))[0]["scans"] == 20


# ---- other recordings


@pytest.fixture
def recording(scans, tmp_path):
    """A folder of .bin with three scans of the drive."""
    folder = tmp_path / "velodyne"
    folder.mkdir()
    for number, scan in enumerate(scans[:3]):
        points = np.asarray(scan["points"], np.float32)
        np.hstack([points[:, :3], np.zeros((len(points), 1), np.float32)]).tofile(folder / f"{number:06d}.bin")
    return folder


def test_another_version_imports_anew(make, recording, monkeypatch):
    one, bag = make(import_options=("--rate", "10")), bags.find([str(recording)])[0]
    one.index(bag)
    monkeypatch.setattr(staging, "_package", lambda: "99")
    one.index(bag)
    assert len(list(one.cache.glob("*.bag"))) == 2


def test_a_recording_is_imported_once(make, recording):
    one = make(import_options=("--rate", "10"))
    bag = bags.find([str(recording)])[0]
    index = one.index(bag)
    assert index.scans == 3 and len(list(one.cache.glob("*.bag"))) == 1
    shutil.rmtree(recording)
    assert one.replayed(bag)[0]["scans"] == 3
    assert not list(one.cache.glob("*.part*")) and not list(one.cache.glob("*.yaml"))


def test_options_that_do_not_fit_a_recording(make, recording):
    failure = make(import_options=("--rate", "-5")).failure(bags.find([str(recording)])[0])
    assert "--rate" in failure["reason"] and failure["config"] == ""


# ---- pieces


def replayed_in_pieces(one, bag):
    index = one.index(bag)
    for number in range(len(index.pieces)):
        out = task.replay(*one.place, bag, 0, number)
        assert out["status"] == "done", out
    return index, task.join(*one.place, bag, 0)


@pytest.fixture(scope="module")
def long_drive(simulate):
    return simulate("--seed", 6, "--scans", 70, "--beams", 16, "--columns", 400, "--map-spacing", 0.3)


def test_pieces_become_one_file(make, long_drive):
    one, bag = make(map_file=long_drive.map, piece_s=3.0, warm_up_s=1.0), found(long_drive.bag)
    index, out = replayed_in_pieces(one, bag)
    assert len(index.pieces) == 2 and out["status"] == "done" and out["scans"] == 70
    row = scan_table.read_run_row(one.folder.done_file(out["key"]))
    scans = scan_table.read_scans(one.folder.done_file(out["key"]))
    assert scans["seq"].to_pylist() == list(range(70)) and row["pieces"] + row["seams_removed"] == 2
    assert row["trajectory_hash"] == pieces.trajectory_hash(scans) and not list(one.folder.path.glob("pieces/*/*"))
    assert task.join(*one.place, bag, 0)["status"] == task.replay(*one.place, bag, 0, 1)["status"] == "present"


def test_a_piece_that_was_lost_is_replayed_again(make, long_drive):
    one, bag = make(map_file=long_drive.map, piece_s=3.0, warm_up_s=1.0), found(long_drive.bag)
    one.index(bag)
    key = task.replay(*one.place, bag, 0, 0)["key"]
    assert task.replay(*one.place, bag, 0, 1)["status"] == "done"
    damaged = one.folder.piece_file(key, 0)
    data = damaged.read_bytes()
    damaged.write_bytes(data[:4] + bytes(len(data) // 2 - 4) + data[len(data) // 2:])  # its end, with the run row, is whole
    one.folder.piece_file(key, 1).unlink()
    assert task.join(*one.place, bag, 0)["scans"] == 70


def test_damage_in_the_middle_of_pieces(make, long_drive, tmp_path):
    data = bytearray(long_drive.bag.read_bytes())
    data[len(data) // 4] ^= 1
    (tmp_path / "bad.bag").write_bytes(data)
    whole = make("whole", map_file=long_drive.map).replayed(found(tmp_path / "bad.bag"))[0]
    one = make(map_file=long_drive.map, piece_s=3.0, warm_up_s=1.0)
    _, out = replayed_in_pieces(one, found(tmp_path / "bad.bag"))
    row = scan_table.read_run_row(one.folder.done_file(out["key"]))
    assert 0 < row["scans"] == whole["scans"] < 35 and "damaged" in row["damage"]
    assert row["trajectory_hash"] == whole["trajectory_hash"]


# ---- results.jsonl


@pytest.fixture(scope="module")
def lines(drive, run_program, tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "results.jsonl"
    run_program("ndtd", "--replay", drive.bag, "--map", drive.map, "--set", SETTINGS[0], "--results", path)
    return [json.loads(line) for line in path.read_text().splitlines()]


def table_of(path, rows, **options):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return scan_table.read_results(path, "bag", "base", **options)


def test_scans_without_a_pose_or_trust(lines, tmp_path):
    rows = [dict(line) for line in lines[:6]]
    for key in ("pose", "covariance", "confidence", "twist", "guess"):
        rows[1].pop(key)
    rows[1]["outcome"] = "no_guess"
    rows[2]["state"] = "lost"
    rows[3] = {"seq": 3, "stamp_ns": rows[3]["stamp_ns"], "error": "cannot be told"}
    rows[4]["outcome"], rows[4]["reason"] = "merged", "into another"
    rows[4].pop("pose")
    rows[5].pop("state")  # of a daemon that does not tell
    stamps = np.array([row["stamp_ns"] for row in rows], np.int64)
    poses = np.array([line["pose"] for line in lines[:6]])
    poses[0, 0] += 2.0
    table = table_of(tmp_path / "r.jsonl", rows, truth=(stamps, poses))
    assert table["trusted"].to_pylist() == [True, False, False, False, False, True]
    assert table["outcome"].to_pylist()[3] == "rejected" and table["reason"].to_pylist()[3:5] == ["cannot be told", "into another"]
    assert [value is None for value in table["x"].to_pylist()] == [False, True, False, True, True, False]
    assert table["confidence"].null_count == 2 and table["iterations"].null_count == 1
    assert table["error_m"].to_pylist() == [pytest.approx(2.0), None, None, None, None, pytest.approx(0.0, abs=1e-9)]
    measures = scan_table.measures(table)
    assert (measures["scans"], measures["trusted"], measures["wrong"]) == (6, 2, 1)
    assert measures["untrusted_s"] == pytest.approx(0.3)  # the merged one is no time without a pose
    none = scan_table.measures(table_of(tmp_path / "r.jsonl", rows[1:5]))
    assert none["trusted"] == 0 and none["error_m_median"] is None and none["distance_m"] == 0.0


@pytest.mark.parametrize("change, reason", [
    ({"pose": [1, 2, 3]}, "pose is not 7 numbers"), ({"pose": [1, 2, 3, 0, 0, 0, 2]}, "does not have length 1"),
    ({"pose": [1e9, 2, 3, 0, 0, 0, 1]}, "beyond"), ({"covariance": [1e13] * 36}, "beyond"), ({"covariance": []}, "covariance is not 36"),
    ({"stamp_ns": None}, "stamp_ns is missing"), ({"seq": -1}, "out of range"), ({"stamp_ns": 1 << 62}, "out of range"),
    ({"seq": "one"}, "JSON"), ({"confidence": "high"}, "JSON"), ({"seq": 1 << 64}, ".")])
def test_results_that_cannot_be_used(lines, tmp_path, change, reason):
    rows = [lines[0], {**lines[1], **change}]
    with pytest.raises(FleetError, match=f"r.jsonl: not what ndtd --results writes, after line 0: .*{reason}") as told:
        table_of(tmp_path / "r.jsonl", rows)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("text", ["", "\n", "{", "[1]", "no results", '{"seq": 1}', "\0" * 100, "{" * 100000])
def test_files_without_results(tmp_path, text):
    (tmp_path / "r.jsonl").write_text(text)
    with pytest.raises(FleetError, match="r.jsonl: "):
        scan_table.read_results(tmp_path / "r.jsonl", "bag", "base")


def test_long_results_are_read_in_blocks(lines, tmp_path, monkeypatch):
    path = tmp_path / "r.jsonl"
    whole = table_of(path, lines)
    monkeypatch.setattr(scan_table, "_BLOCK", 5000)
    found = scan_table.read_results(path, "bag", "base")
    assert found.equals(whole) and all(found[name].num_chunks == 1 for name in found.schema.names)
    with open(path, "rb") as stream:
        assert scan_table.read_results(stream, "bag", "base").equals(whole)


def test_files_that_are_no_results(tmp_path):
    path = tmp_path / "a.parquet"
    for text in (b"", b"PAR1", b"text" * 100):
        path.write_bytes(text)
        for read in (scan_table.read_run_row, scan_table.read_scans):
            with pytest.raises(FleetError, match="a.parquet: not the result of a replay"):
                read(path)
    with pytest.raises(FleetError, match="b.parquet: no such file"):
        scan_table.read_run_row(tmp_path / "b.parquet")
    scan_table.pq.write_table(scan_table.SCANS.empty_table(), path)  # without a run row
    with pytest.raises(FleetError, match="not the result of a replay"):
        scan_table.read_run_row(path)


def test_workers_load_what_they_need(make, drive):
    one = make()
    bag = found(drive.bag)
    one.index(bag)
    code = CALL.format(*one.place, (bag.url, bag.bytes, bag.fingerprint)) + "; print([name for name in {!r} if name in sys.modules])"
    heavy = ("pandas", "matplotlib", "fsspec", "distributed", "rosbags", "scipy")
    done = subprocess.run([sys.executable, "-c", code.format(heavy)], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines() == ["done", "[]"]


def test_the_memory_told_is_that_of_ndtd(make, drive):
    filled = bytearray(400 << 20)  # of this process, which starts it
    assert 0 < make().replayed(found(drive.bag))[0]["peak_memory_bytes"] < 200 << 20 < len(filled)
