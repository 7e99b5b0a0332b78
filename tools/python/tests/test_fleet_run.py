"""ndt-fleet run: configurations, bags, the plan on a cluster, stopped and gone on with, refused."""
import contextlib
import gc
import json
import os
import pathlib
import shutil
import signal
import sys
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("fsspec")
pytest.importorskip("pyarrow")

from fleet_runs import call, cut, events, recorder, result, scheduler, start, wait_until  # noqa: E402

from ndtd import ndt_fleet  # noqa: E402
from ndtd.fleet import bags, cluster, coordinator, job_settings  # noqa: E402
from ndtd.fleet.run_folder import Bag, BagIndex, Configuration, FleetError, Job, RunFolder  # noqa: E402

TESTS = str(Path(__file__).parent)


@pytest.fixture(scope="module")
def local():
    """Two workers that find the stand-in of task.py."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = TESTS + (os.pathsep + before if before else "")
    try:
        with cluster.connect(cluster.Wish(workers=2)) as engine:
            yield engine
    finally:
        os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


def make_bags(folder, **texts):
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.bag").write_text(f"{text}\nname {name}\n")
    return bags.find([f"{folder}/*.bag"])


def make_run(path, configurations=2):
    folder = RunFolder(path)
    folder.save_job(Job("token", "ndtd 1", "/map", tuple(Configuration(f"c{i}", f"c{i}.yaml", f"{i}" * 32) for i in range(configurations))))
    return folder


def calls(folder):
    return (folder.path / "calls.txt").read_text().splitlines()


def replay(folder, found, engine, **options):
    return coordinator.Coordinator(folder, folder.job(), found, engine, tasks="fleet_stand_in", **options).run()


def test_every_bag_with_every_configuration_once(tmp_path, local):
    found = make_bags(tmp_path / "bags", **{f"b{i}": "scans 10" for i in range(20)}, long="scans 90\npieces 3")
    folder = make_run(tmp_path / "run")
    outcome = replay(folder, found, local)
    assert (outcome.total, outcome.done, outcome.failed, outcome.scans) == (42, 42, 0, 2 * (200 + 90))
    assert len(calls(folder)) == len(set(calls(folder))) == 21 + 40 + 2 * 3 + 2
    again = replay(folder, found, local)
    assert (again.done, again.present, again.scans, again.replayed) == (42, 42, 580, 0)
    assert len(calls(folder)) == 21 + 40 + 8


def test_failures_are_tried_again_and_listed(tmp_path, local):
    found = make_bags(tmp_path / "bags", good="scans 10", twice="scans 10\nfail 2", thrice="scans 10\nfail 3", none="unusable",
                      pieces="scans 30\npieces 3\nfail 3")
    folder = make_run(tmp_path / "run", 1)
    outcome = replay(folder, found, local)
    assert (outcome.total, outcome.done, outcome.failed) == (5, 2, 3)
    said = {Path(one.bag).stem: one for one in outcome.failures.first}
    assert set(said) == {"thrice", "none", "pieces"}
    assert (said["none"].attempts, said["none"].config, said["thrice"].attempts, said["thrice"].config) == (2, "", 3, "c0")
    assert said["thrice"].lines == ("ndtd: no",)
    assert len(list(folder.path.glob("failed/*/*.json"))) == 3
    again = replay(folder, found, local)
    assert (again.done, again.present, again.failed) == (4, 2, 1)
    assert [Path(one.bag).stem for one in again.failures.first] == ["none"]
    assert len(list(folder.path.glob("failed/*/*.json"))) == 1


def test_a_bag_that_kills_its_workers_is_the_only_one_that_fails(tmp_path, local):
    found = make_bags(tmp_path / "bags", a="scans 10\ndie 1", k="scans 10\ndie 99",
                      **{f"b{i:02}": "scans 10\nsleep 0.02" for i in range(40)})
    folder = make_run(tmp_path / "run", 1)
    outcome = replay(folder, found, local)
    assert (outcome.total, outcome.done, outcome.failed) == (42, 41, 1)
    assert [(Path(one.bag).stem, one.kind, one.attempts) for one in outcome.failures.first] == [("k", "lost", 3)]
    assert sum(line.endswith("/k.bag 0") for line in calls(folder)) == 3


def test_pieces_that_a_killed_worker_left_beside_their_result(tmp_path, local):
    found, folder = make_bags(tmp_path / "bags", a="scans 10\npieces 2"), make_run(tmp_path / "run", 1)
    replay(folder, found, local)
    done, = (folder.path / "done").glob("*/*")
    left = [folder.piece_file(key, 0) for key in (done.stem, "0" * 32)]
    for path in left:
        folder.write_whole(path, b"rows")
    assert replay(folder, found, local).present == 1
    assert [path.exists() for path in left] == [False, True]


def test_bags_with_the_same_content_are_replayed_once(tmp_path, local):
    found = make_bags(tmp_path / "bags", a="scans 10", b="scans 10")
    Path(found[1].url).write_bytes(Path(found[0].url).read_bytes())
    found = bags.find([str(tmp_path / "bags/*.bag")])
    outcome = replay(make_run(tmp_path / "run"), found, local)
    assert (outcome.total, outcome.done, outcome.copies.count) == (2, 2, 1)


# ---- the plan without a cluster


class NoCluster:
    """A client whose tasks run when their result is wanted. most: that were submitted at once; began: urls of bags in order."""

    status = "running"

    def __init__(self, function):
        self.function, self.most, self.under_way, self.began = function, 0, 0, []

    @property
    def scheduler(self):
        return self

    def ncores(self, workers):
        return {"tcp://a": 2}

    def sync(self, question, callback_timeout):
        return question()

    def submit(self, _work, _tasks, _package, kind, _folder, _token, arguments, **_options):
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        return NoFuture(self, kind, arguments)

    def gather(self, futures, asynchronous):
        return [one.result() for one in futures]


class NoFuture:
    status = "finished"

    def __init__(self, client, kind, arguments):
        self.client, self.kind, self.arguments = client, kind, arguments

    def add_done_callback(self, tell):
        tell(self)

    def result(self, timeout=None):
        self.client.under_way -= 1
        return self.client.function(self.kind, *self.arguments)

    def cancel(self):
        self.client.under_way -= 1


def test_tasks_at_the_scheduler_do_not_grow_with_the_fleet(tmp_path, monkeypatch):
    monkeypatch.setattr(coordinator, "COLLECT_S", 0.0)  # these results are there at once
    folder, count, calls_of = make_run(tmp_path / "run", 1), 20_000, Counter()

    def function(kind, bag, *_):
        calls_of[kind] += 1
        if kind == "map_id":
            return {"status": "done", "value": "map"}
        index = {"url": bag.url, "fingerprint": "", "hash": bag.id, "bytes": 1, "scans": 1, "begin_ns": 0, "end_ns": 0}
        return {"status": "done", "scans": 1} if kind == "replay" else {"status": "done", "index": {**index, "pieces": ((0, 0, 1),)}}

    client = NoCluster(function)
    engine = cluster.Engine(client, None, cluster.Wish("tcp://a"), "tcp://a")
    found = [Bag(f"/bags/{number:07}.bag", 1, "1") for number in range(count)]
    gc.collect()
    tracemalloc.start()
    try:
        outcome = coordinator.Coordinator(folder, folder.job(), found, engine).run()
        names = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, pathlib.__file__)])  # Python's table of strings
        peak = tracemalloc.get_traced_memory()[1] - sum(one.size for one in names.traces)
    finally:
        tracemalloc.stop()
    assert (outcome.done, outcome.scans, calls_of["prepare"], calls_of["replay"]) == (count, count, count, count)
    assert client.most == coordinator.WINDOW and peak < 300 * count, peak


@pytest.mark.parametrize("how", ("it is waited for", "it is known to be lost"))
def test_results_that_went_with_their_worker(tmp_path, monkeypatch, how):
    """Dask makes them again, on workers that may be gone as well, and lets its client wait for ever: the task comes again instead."""
    folder, bag, replays = make_run(tmp_path / "run", 1), Bag("/bags/a.bag", 1, "1"), []
    index = BagIndex(bag.url, "1", bag.id, 1, 5, 0, 0, pieces=((0, 0, 5),))

    def function(kind, *_):
        if kind == "replay":
            replays.append(kind)
            return {"status": "done", "scans": 5}
        return {"status": "done", "value": "map"} if kind == "map_id" else {"status": "done", "index": vars(index)}

    client, kept = NoCluster(function), []

    def gather(futures, asynchronous):
        if any(one.kind == "replay" for one in futures) and not kept:
            kept.append(futures)
            raise TimeoutError
        return [one.result() for one in futures]

    def submit(*arguments, **options):
        future = NoCluster.submit(client, *arguments, **options)
        if future.kind == "replay" and how == "it is known to be lost" and not kept:
            kept.append(future)
            future.status = "pending"
        return future

    monkeypatch.setattr(client, "gather", gather)
    monkeypatch.setattr(client, "submit", submit)
    engine = cluster.Engine(client, None, cluster.Wish("tcp://a"), "tcp://a")
    outcome = coordinator.Coordinator(folder, folder.job(), [bag], engine).run()
    assert (outcome.done, outcome.scans, outcome.failed, len(kept), replays) == (1, 5, 0, 1, ["replay"])


@pytest.mark.parametrize("key, said", ((None, ""), ("other", "map /map: has changed since this call began")))
def test_results_of_another_process(tmp_path, key, said):
    """A worker that was thought dead has made it meanwhile, or with another map."""
    def function(kind, bag, *_):
        if kind != "replay":
            return {"status": "done", "value": "map"} if kind == "map_id" else {"status": "done", "index": vars(index)}
        return {"status": "present", "scans": 5, **({"key": key} if key else {})}

    folder, bag = make_run(tmp_path / "run", 1), Bag("/bags/a.bag", 1, "1")
    index = BagIndex(bag.url, "1", bag.id, 1, 5, 0, 0, pieces=((0, 0, 5),))
    engine = cluster.Engine(NoCluster(function), None, cluster.Wish("tcp://a"), "tcp://a")
    plan = coordinator.Coordinator(folder, folder.job(), [bag], engine)
    with pytest.raises(FleetError, match=said) if said else contextlib.nullcontext():
        plan.run()
        assert (plan.outcome.done, plan.outcome.present, plan.outcome.replayed) == (1, 0, 5)
    assert plan.outcome.done == (not said)


def test_bags_of_a_higher_priority_begin_first(tmp_path):
    found = make_bags(tmp_path, a="x", b="x", c="x", rain="x")
    ordered = bags.prioritised(found, [("*/b.bag", 2), ("*.bag", 1), ("{rain,snow}.bag", 5)])
    assert [(Path(one.url).stem, one.priority) for one in ordered] == [("rain", 5), ("a", 1), ("b", 1), ("c", 1)]
    assert [Path(one.url).stem for one in bags.prioritised(found, [("a.bag", -1)])] == ["b", "c", "rain", "a"]


# ---- what is asked for


def test_patterns(tmp_path):
    make_bags(tmp_path, a="x", b="x")
    ros = tmp_path / "deep/ros"
    ros.mkdir(parents=True)
    for name in ("metadata.yaml", "ros_0.db3", "ros_1.db3"):
        (ros / name).write_text(name)
    (tmp_path / "deep/alone.mcap").write_text("x")
    (tmp_path / "list").write_text(f"# comment\n{tmp_path}/a.bag\n\n{tmp_path}/deep/alone.mcap\n")
    found = bags.find([f"{tmp_path}/**/*.{{bag,mcap,db3}}"])
    assert [str(Path(one.url).relative_to(tmp_path)) for one in found] == ["a.bag", "b.bag", "deep/alone.mcap", "deep/ros"]
    assert found[-1].bytes == len("metadata.yaml" + "ros_0.db3" * 2)
    assert bags.find([str(ros), f"{tmp_path}/*.bag"]) == [found[0], found[1], found[3]]
    assert bags.find([f"@{tmp_path}/list"]) == [found[0], found[2]]
    (ros / "ros_1.db3").write_text("other.db3")
    os.utime(ros / "ros_1.db3", ns=(1, 1))
    assert bags.find([str(ros)])[0].fingerprint != found[3].fingerprint
    (tmp_path / "nothing").write_text("# comment\n")
    for pattern in ("none/*.bag", f"{tmp_path}/a.mcap", "@none", f"@{tmp_path}/nothing", f"{tmp_path}/c.{{bag,mcap}}"):
        with pytest.raises(FleetError, match="^--bags: "):
            bags.find([pattern])


def test_configurations(tmp_path, bin_dir):
    ndtd, folder = str(bin_dir / "ndtd"), RunFolder(tmp_path)
    (tmp_path / "base.yaml").write_text("preprocess:\n  deskew: time\n")
    base, = job_settings.configurations(ndtd, [str(tmp_path / "base.yaml")], [], [], folder)
    assert (base.name, base.file) == ("base", "base.yaml") and "deskew: time" in folder.config_file(base).read_text()
    same, = job_settings.configurations(ndtd, [], ["preprocess.deskew=time", "cpu.threads=3", "log.level=debug", "map.path=/x"], [], folder)
    other, = job_settings.configurations(ndtd, [], ["preprocess.deskew=time", "preprocess.seed=2"], [], folder)
    assert base.hash == same.hash != other.hash
    assert len(job_settings._file_name("map.frame_id=" + "\u5730" * 300).encode()) < 200
    four = job_settings.configurations(ndtd, [], [], ["ndt.levels=[2.0],[4.0,2.0]", "preprocess.seed=1,2"], folder)
    assert [one.name for one in four] == [f"ndt.levels={levels}, preprocess.seed={seed}"
                                          for levels in ("[2.0]", "[4.0,2.0]") for seed in (1, 2)]
    assert len({one.hash for one in four}) == len({one.file for one in four}) == 4
    for words, told in ((["ndt.levels=[2.0],[2]"], "are the same settings"), (["nosuch=1,2"], "'nosuch' is not an option"),
                        (["preprocess.seed=1,,2"], "a value is empty"), (["preprocess.seed"], "KEY=VALUE"),
                        (["ndt.levels=[2.0"], "brackets"),
                        (["preprocess.seed=1,x"], "x"), (["preprocess.seed=1", "preprocess.seed=2"], "swept twice")):
        with pytest.raises(job_settings.SweepError) as error:
            job_settings.configurations(ndtd, [], [], words, folder)
        assert told in str(error.value) and "\n" not in str(error.value)


# ---- the command


@pytest.fixture(scope="module")
def drives(simulate, bin_dir, tmp_path_factory):
    whole = simulate("--seed", 5, "--scans", 120, "--beams", 16, "--columns", 600, "--map-spacing", 0.3)
    return cut(bin_dir / "ndt-bag", whole.bag, whole.map, tmp_path_factory.mktemp("drives"), [20] * 6)


@pytest.fixture
def options(drives, tmp_path):
    """Options of a run of six drives with two configurations, and its folder."""
    return ["run", "--bags", drives.pattern, "--map", drives.map, "--set", "preprocess.deskew=time", "--sweep",
            "ndt.levels=[4.0,2.0],[2.0]", "--out", tmp_path / "run", "--cache", tmp_path / "cache"]


def marked(mark):
    """Processes with this variable in their environment: those that a command of the test has started."""
    out = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                out.append(int(process.name))
    return out


def done_files(run):
    return len(list(run.glob("done/*/*.parquet")))


def test_stopped_killed_and_gone_on_with(options, drives, bin_dir, tmp_path):
    """The last but one bag waits while several workers are stopped: however slow that is, they do not end before."""
    run, program, log = tmp_path / "run", recorder(tmp_path / "recorder", bin_dir / "ndtd"), tmp_path / "log"
    hold, began = program.with_name("hold"), []
    hold.write_text(drives.bags[-2].name)
    for number, (workers, stop) in enumerate(((2, signal.SIGINT), (3, signal.SIGKILL), (1, signal.SIGTERM))):
        before, mark = done_files(run), f"NDT_FLEET_MARK={tmp_path}.{number}"
        if workers == 1:
            hold.unlink()
        process = start(*options, "--ndtd", program, "--workers", workers, environment=dict([mark.split("=")]), log=log)
        wait_until(lambda: done_files(run) > before or process.poll() is not None, "done file")
        for pid in [*marked(mark), process.pid] if stop == signal.SIGINT else [process.pid]:  # as a terminal does
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, stop)
        assert process.wait(60) == (-9 if stop == signal.SIGKILL else 130), log.read_text()
        wait_until(lambda: not marked(mark), "end of what it had started", 30)
        began.append(len(events(program)))
        lines = log.read_text().splitlines()
        assert len(lines) == (1, 1, 2)[number] and "of 12 done; the same command goes on" in lines[-1], lines
    before = done_files(run)
    assert 3 <= before < 12
    said = call("run", "--out", run, "--workers", 2, environment={}, log=log)
    assert f"tasks    12 of 12 done ({before} by an earlier call), 0 failed" in said
    again = events(program)[began[-1]:]
    assert [one["event"] for one in again].count("begin") == 12 - before and not any(one["event"] == "twice" for one in events(program))
    digest, runs, scans = result(run)
    assert f"digest   {digest}" in said and (runs.num_rows, scans.num_rows) == (12, 240)
    alone = call(*options, "--out", tmp_path / "alone", "--ndtd", bin_dir / "ndtd", "--workers", 1, environment={}, log=log)
    assert f"digest   {digest}" in alone and result(tmp_path / "alone")[1].equals(runs)


def test_a_run_is_gone_on_with_as_it_was(options, drives, bin_dir, tmp_path, refused, monkeypatch):
    monkeypatch.setenv("NDT_BIN", str(bin_dir))
    run = tmp_path / "run"
    (run / "configs").mkdir(parents=True)  # as left behind by a call that was killed before it knew its bags
    (run / "bags.json").write_text("[]")
    assert "no worker" in refused(ndt_fleet.main, 3, *options, "--cluster", f"{__name__}.NoWorkers", "--worker-timeout", 1)
    job = RunFolder(run).job()
    assert [one.name for one in job.configurations] == ["ndt.levels=[4.0,2.0]", "ndt.levels=[2.0]"] and job.piece_s == 600.0
    shutil.copy(drives.map, tmp_path / "other.pcd")
    other = tmp_path / "ndtd"
    other.write_text(f"#!/bin/sh\n[ $1 != --version ] || exec echo 'ndtd 9.9 (commit 0)'\nexec {bin_dir}/ndtd \"$@\"\n")
    other.chmod(0o755)
    for words, told in ((("--map", tmp_path / "other.pcd"), "--map: "),
                        (("--set", "preprocess.seed=3"), "configuration base is not in the run"),
                        (("--sweep", "ndt.levels=[4.0,2.0]"), "configuration ndt.levels=[4.0,2.0] has other settings"),
                        (("--piece", 3), "--piece: '10' there, '3' now"), (("--warm-up", 3), "--warm-up: '5' there, '3' now"),
                        (("--ndtd", other), "'ndtd 9.9 (commit 0)' now"), (("--", "--scan", "/points"), "options of ndt-import")):
        said = refused(ndt_fleet.main, 2, "run", "--out", run, *words)
        assert told in said and "use another --out; `ndt-fleet report` compares runs" in said, said
    with ndt_fleet._locked(run):
        assert f"pid {os.getpid()})" in refused(ndt_fleet.main, 3, "run", "--out", run)
    assert RunFolder(run).job() == job
    refused(ndt_fleet.main, 3, "run", "--out", run, "--bags", drives.map, "--timeout", 7, "--cluster", f"{__name__}.NoWorkers",
            "--worker-timeout", 1)
    now = RunFolder(run).job()
    assert (now.timeout_s, now.configurations, now.token != job.token) == (7.0, job.configurations, True)
    assert len(json.loads((run / "bags.json").read_text())) == 7


def test_results_that_cannot_be_seen(options, drives, bin_dir, monkeypatch, refused):
    """Tables without a task that is done are told."""
    monkeypatch.setenv("NDT_BIN", str(bin_dir))
    monkeypatch.setattr(ndt_fleet, "LATE_S", 0.0)
    monkeypatch.setattr(ndt_fleet, "_replay", lambda *_: coordinator.Outcome(bags=6, total=12, done=12))
    assert refused(ndt_fleet.main, 1, *options, "-q").endswith("run: 12 results cannot be seen from here; the same command goes on\n")


class NoWorkers:
    """A cluster without workers, as of a queue that does not begin."""

    def __init__(self):
        from distributed import LocalCluster

        self.cluster = LocalCluster(n_workers=0, dashboard_address=None)
        self.get_client, self.close = self.cluster.get_client, self.cluster.close


def test_what_cannot_be(options, drives, bin_dir, tmp_path, refused, monkeypatch):
    monkeypatch.setenv("NDT_BIN", str(bin_dir))
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("x")
    words = {"--bags": drives.pattern, "--map": drives.map, "--out": tmp_path / "new"}
    for more, told in (({"--out": tmp_path / "file"}, "is not a folder"), ({"--out": tmp_path / "full"}, "no run.json"),
                       ({"--set": "nosuch=1"}, "ndtd: --set: 'nosuch' is not an option"), ({"--config": "none.yaml"}, "none.yaml"),
                       ({"--ndtd": "/none/ndtd"}, "/none/ndtd"), ({"--ndtd": "/bin/echo"}, "is not ndtd"),
                       ({"--retries": -1}, "--retries: -1"), ({"--json": tmp_path}, "is a folder"),
                       ({"--json": tmp_path / "no/file"}, "its folder is not there"), ({"--out": ""}, "--out: is empty"),
                       ({"--": "--nonsense"}, "options of ndt-import: unrecognized arguments: --nonsense"),
                       ({"--": "--list"}, "no place here"),
                       ({"--cluster": "nosuch"}, "is none of local, slurm"),
                       ({"--cluster": "tcp://127.0.0.1:9", "--workers": 2}, "without --workers"),
                       ({"--cluster": "none.json"}, "no such file of a scheduler"), ({"--priority": "x"}, "PATTERN=N"),
                       ({"--cluster-option": "x"}, "KEY=VALUE")):
        said = refused(ndt_fleet.main, 2, "run", *(word for pair in {**words, **more}.items() for word in pair))
        assert told in said, said
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
    with ndt_fleet._locked(tmp_path / "new"):  # by another call that still looks for its bags
        refused(ndt_fleet.main, 3, *options, "--out", tmp_path / "new")
        assert (tmp_path / "new/lock").exists()
    assert not (tmp_path / "new").exists()
    assert "--map is wanted" in refused(ndt_fleet.main, 2, "run", "--bags", drives.pattern, "--out", tmp_path / "new")
    monkeypatch.delenv("NDT_BIN")
    monkeypatch.setenv("PATH", "/none")
    monkeypatch.setattr(sys, "executable", "/none/python")
    assert "neither in $NDT_BIN, nor beside Python" in refused(ndt_fleet.main, 2, *options)


def test_a_worker_of_another_version_or_another_folder(tmp_path, local, monkeypatch):
    found, folder = make_bags(tmp_path / "bags", a="scans 10"), make_run(tmp_path / "run")
    job = folder.job()
    elsewhere = coordinator.Coordinator(folder, Job("another token", *list(vars(job).values())[1:]), found, local)
    with pytest.raises(FleetError, match="is not the same folder on "):
        elsewhere.run()
    plan = coordinator.Coordinator(folder, job, found, local, tasks="fleet_stand_in")
    plan._package = "0.0"
    with pytest.raises(FleetError, match="all need the same package"):
        plan.run()
    with pytest.raises(FleetError, match="cannot import nosuch"):
        coordinator.Coordinator(folder, job, found, local, tasks="nosuch").run()


@pytest.mark.parametrize("number, said", ((signal.SIGKILL, "went away; the same command goes on$"),
                                          (signal.SIGSTOP, "does not answer within 1 s; the same command")))
def test_a_scheduler_that_goes_away_or_hangs(tmp_path, monkeypatch, number, said):
    monkeypatch.setattr(coordinator, "ANSWER_S", 1.0)
    found, folder = make_bags(tmp_path / "bags", **{f"b{i}": "scans 10\nsleep 0.5" for i in range(40)}), make_run(tmp_path / "run", 1)
    with scheduler(tmp_path / "dask", 1, {"PYTHONPATH": TESTS}) as one, cluster.connect(cluster.Wish(one.address)) as engine:
        plan = coordinator.Coordinator(folder, folder.job(), found, engine, tasks="fleet_stand_in",
                                       tell=lambda outcome, rate: one.process.send_signal(number) if outcome.done else None)
        with pytest.raises(coordinator.EngineGone, match=f"^the scheduler at {one.address} {said}"):
            plan.run()


def test_tasks_of_a_bag_go_to_one_machine(tmp_path):
    """A machine stages a bag once; where a task failed, another machine may have it."""
    found = make_bags(tmp_path / "bags", **{f"b{i}": "scans 9\npieces 3\nsleep 0.05" for i in range(8)})
    folder = make_run(tmp_path / "run")
    with scheduler(tmp_path / "engine", 2, {"PYTHONPATH": TESTS}, ("127.0.0.1", "127.0.0.2")) as there, \
            cluster.connect(cluster.Wish(str(there.file), 2)) as engine:
        wait_until(lambda: len(engine.client.nthreads()) == 2, "workers")
        plan = coordinator.Coordinator(folder, folder.job(), found, engine, tasks="fleet_stand_in")
        assert plan.run().done == 16
        task = coordinator.Task("replay", found[0], 0, 1)
        assert plan._wanted(task) == plan._wanted(coordinator.Task("join", found[0], 1)) and len(plan._wanted(task)) == 1
        assert plan._wanted(coordinator.replace(task, failed_on=tuple(plan._wanted(task)))).isdisjoint(plan._wanted(task))
    places = Counter((folder.path / "places.txt").read_text().splitlines())
    homes = {bag.url: max(places[f"{bag.url} {host}"] for host in ("127.0.0.1", "127.0.0.2")) for bag in found}
    assert len({line.split()[1] for line in places}) == 2, "one machine did all"
    assert sum(homes.values()) > 0.75 * sum(places.values()), "bags are spread over the machines"  # idle workers take what waits
