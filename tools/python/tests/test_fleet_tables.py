"""The tables and the status of a run folder, of synthetic done files: nothing is replayed."""
import fcntl
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.compute as pc  # noqa: E402
import pyarrow.dataset as ds  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from fleet_maker import Maker, scans  # noqa: E402

from ndtd.fleet import scan_table, status, tables  # noqa: E402
from ndtd.fleet.run_folder import FleetError, RunFolder, digest, task_key  # noqa: E402


@pytest.fixture
def maker(tmp_path):
    return Maker(tmp_path / "run", bags=4, configurations=("base", "a=1"))


def parts(run):
    return sorted(path.name for path in (run.path / "scans.parquet").iterdir())


def read(run):
    """The tables, as others read them."""
    return pq.read_table(run.path / "runs.parquet"), ds.dataset(run.path / "scans.parquet").to_table()


def rows_of(table):
    return list(zip(*(table[name].to_pylist() for name in ("bag", "config", "seq"))))


# ---- what is in them


def test_all_rows_once_and_sorted(maker):
    maker.done_all()
    made = tables.collect(maker.run.path)
    runs, found = read(maker.run)
    assert made == (maker.run.path / "runs.parquet", maker.run.path / "scans.parquet", 0, len(runs))
    wanted = [(bag.url, name, seq) for bag in maker.bags for name in ("a=1", "base") for seq in range(20)]
    assert rows_of(found) == wanted
    assert list(zip(runs["bag"].to_pylist(), runs["config"].to_pylist())) == sorted({row[:2] for row in wanted})
    assert runs.schema.equals(scan_table.RUNS) and found.schema.equals(tables.scan_schema())
    one = scans(maker.bags[2].url, "a=1", 20, int(digest(maker.bags[2].url)[:8], 16) + 1)
    mine = found.filter((pc.field("bag") == maker.bags[2].url) & (pc.field("config") == "a=1"))
    assert mine.to_pylist() == one.to_pylist()  # to the last bit, nulls included
    assert runs["scans"].to_pylist() == [20] * 8 and runs["trajectory_hash"].null_count == 0


def test_failed_and_left_tasks(maker):
    first, second, third, _ = maker.bags
    base, other = maker.configurations
    maker.done(first, base)
    maker.fail(first, other, "no initial pose")
    maker.fail(second, reason="is empty")  # the bag: none of its tasks
    maker.index(third)
    tables.collect(maker.run.path)
    runs, found = read(maker.run)
    rows = [(row["bag"], row["config"], row["status"], row["failure"], row["attempts"]) for row in runs.to_pylist()]
    assert rows == [(first.url, "a=1", "failed", "no initial pose", 3), (first.url, "base", "done", None, 1),
                    (second.url, "a=1", "failed", "is empty", 3), (second.url, "base", "failed", "is empty", 3)]
    assert set(rows_of(found)) == {(first.url, "base", seq) for seq in range(20)}
    maker.done(first, other)  # it is tried again, and its failure has not been removed yet
    tables.collect(maker.run.path)
    assert read(maker.run)[0]["status"].to_pylist() == ["done", "done", "failed", "failed"]


def test_a_run_with_nothing_done(maker):
    tables.collect(maker.run.path)
    runs, found = read(maker.run)
    assert len(runs) == len(found) == 0 and found.schema.equals(tables.scan_schema()) and runs.schema.equals(scan_table.RUNS)


def test_only_bags_that_are_listed_with_what_is_in_them_now(maker):
    base = maker.configurations[0]
    maker.done_all()
    changed, gone = maker.bags[0], maker.bags[3]
    maker.index(changed, content="recorded again")
    maker.done(changed, base)
    maker.list_bags([bag.url for bag in maker.bags[:3]])
    tables.collect(maker.run.path)
    runs, found = read(maker.run)
    assert [row["bag_hash"] for row in runs.to_pylist() if row["bag"] == changed.url] == [digest("recorded again")]
    assert len(found) == 20 * 5 == len(set(rows_of(found))) and gone.url not in found["bag"].to_pylist()


def test_the_same_content_under_two_urls_is_there_once(maker):
    base = maker.configurations[0]
    first, second = maker.bags[:2]
    for bag in (first, second):
        maker.index(bag, content="the same", damage="ends within a record" if bag == first else "")
    maker.done(second, base)  # that one was begun first
    tables.collect(maker.run.path)
    runs, found = read(maker.run)
    assert [(row["bag"], row["damage"]) for row in runs.to_pylist()] == [(first.url, "ends within a record")]
    assert set(found["bag"].to_pylist()) == {first.url} and len(found) == 20
    values = status.read(maker.run.path)
    assert (values["tasks"], values["done"], values["copies"], values["damaged"]) == (6, 1, 1, 1)


def test_results_are_those_of_the_map_that_the_last_call_has_found(maker):
    base = maker.configurations[0]
    paths = maker.done_all()
    bag = maker.bags[0]
    key = task_key(maker.run.index(bag).hash, "b" * 16, base.hash, maker.run.job().version)
    table, row = scan_table.read_scans(paths[0]), scan_table.read_run_row(paths[0])
    maker.run.done_file(key).parent.mkdir(exist_ok=True)
    scan_table.write(maker.run.done_file(key), table.slice(0, 5), {**row, "map_id": "b" * 16, "scans": 5})
    first = maker.run.read_json(maker.run.path / "maps.json")["a"]
    maker.run.write_json(maker.run.path / "maps.json", {"a": first, "b": "b" * 16})
    for ids, rows in ((None, 7 * 20 + 5), ([first, first], 8 * 20), (["b" * 16, first], 4 * 20 + 5), (["b" * 16] * 2, 5)):
        maker.run.write_json(maker.run.path / "progress.json", {"map_ids": ids} if ids else {})
        tables.collect(maker.run.path)
        assert len(read(maker.run)[1]) == rows, ids
    assert status.read(maker.run.path)["done"] == 1


# ---- broken files


def broken_files():
    table = pa.table({"bag": ["a"]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    foreign = sink.getvalue().to_pybytes()
    sink = pa.BufferOutputStream()
    pq.write_table(scans("a", "base", 5), sink)
    return {"empty": lambda data: b"", "cut": lambda data: data[:-1], "half": lambda data: data[:len(data) // 2], "text": lambda data: b"x" * 500,
            "foreign": lambda data: foreign, "no run row": lambda data: sink.getvalue().to_pybytes(),
            "pages": lambda data: data[:4] + bytes(200) + data[204:], "footer": lambda data: data[:footer_at(data)] + bytes(50) + data[footer_at(data) + 50:]}


def footer_at(data):
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


@pytest.mark.parametrize("how", broken_files())
def test_a_broken_done_file_is_removed_and_told(maker, how, capsys):
    paths = maker.done_all()
    paths[2].write_bytes(broken_files()[how](paths[2].read_bytes()))
    assert tables.collect(maker.run.path).broken == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and said[0].startswith(f"ndt-fleet: {paths[2]}: not the result of a replay: ") and "ndt-fleet run --out" in said[0]
    assert not paths[2].exists() and sum(path.exists() for path in paths) == 7
    runs, found = read(maker.run)
    assert len(runs) == 7 and len(found) == 140 and (maker.bags[1].url, "base") not in {row[:2] for row in rows_of(found)}
    assert status.read(maker.run.path)["left"] == 1
    maker.done(maker.bags[1], maker.configurations[0])
    tables.collect(maker.run.path)
    assert len(read(maker.run)[1]) == 160 and not capsys.readouterr().err


def test_a_file_that_may_not_be_read_stays(maker, monkeypatch):
    path = maker.done_all()[0]

    really = type(path).open

    def refuse(self, *arguments, **options):
        if self == path:
            raise PermissionError(13, "Permission denied", str(path))
        return really(self, *arguments, **options)

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(PermissionError):
        tables.collect(maker.run.path)
    assert path.exists()


# ---- parts


def small_parts(monkeypatch, rows=60, group=25):
    monkeypatch.setattr(tables, "MOST_ROWS", rows)
    monkeypatch.setattr(tables, "GROUP_ROWS", group)


def test_parts_and_row_groups(tmp_path, monkeypatch):
    small_parts(monkeypatch)
    maker = Maker(tmp_path / "run", bags=12)
    maker.done_all()
    tables.collect(maker.run.path)
    assert [name[:10] for name in parts(maker.run)] == [f"part-{number:05d}" for number in range(len(parts(maker.run)))]
    assert 4 <= len(parts(maker.run)) <= 12
    assert rows_of(read(maker.run)[1]) == [(bag.url, "base", seq) for bag in maker.bags for seq in range(20)]
    for name in parts(maker.run):
        file = pq.ParquetFile(maker.run.path / "scans.parquet" / name)
        assert file.metadata.num_rows <= 80 and file.schema_arrow.metadata is None
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
        assert all(group.num_rows <= 2 * 25 for group in groups) and len(groups) >= file.metadata.num_rows // 50
        for number, group in enumerate(groups):
            column = group.column(0)
            found = sorted(file.read_row_group(number, ["bag"])["bag"].to_pylist())
            assert column.path_in_schema == "bag" and (column.statistics.min, column.statistics.max) == (found[0], found[-1])


def test_one_more_bag_leaves_most_parts_as_they_are(tmp_path, monkeypatch):
    small_parts(monkeypatch, rows=100)
    maker = Maker(tmp_path / "run", bags=120, scans=5)
    maker.done_all()
    tables.collect(maker.run.path)
    folder = maker.run.path / "scans.parquet"
    before = {path.name[11:]: path.stat().st_ino for path in folder.iterdir()}
    written = [path.resolve().parent for path in folder.iterdir()][0]
    maker.list_bags([*(bag.url for bag in maker.bags), maker.bags[3].url + "x"])
    maker.done_all()
    tables.collect(maker.run.path)
    after = {path.name[11:]: path.stat().st_ino for path in folder.iterdir()}
    same = {name for name in after if before.get(name) == after[name]}
    assert len(before) > 6 and 1 <= len(after) - len(same) <= 4 and not written.exists()
    assert rows_of(read(maker.run)[1]) == [(bag.url, "base", seq) for bag in sorted(maker.bags, key=lambda one: one.url) for seq in range(5)]


def test_without_links_parts_are_written_again(maker, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    maker.done_all()
    tables.collect(maker.run.path)
    before = read(maker.run)
    monkeypatch.setattr(os, "link", refuse)
    tables.collect(maker.run.path)
    assert all(one.equals(other) for one, other in zip(before, read(maker.run)))


# ---- readers and kills

KILLED = """
import os, signal, sys
from ndtd.fleet import tables
left = [int(sys.argv[2])]
def audit(event, arguments):
    if event in ("os.chmod", "os.rename", "os.symlink", "os.rmdir", "os.remove") and sys.argv[1] in str(arguments):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(audit)
tables.collect(sys.argv[1])
"""


def test_a_kill_at_any_step_loses_and_doubles_nothing(tmp_path):
    maker = Maker(tmp_path / "run", bags=2)
    maker.done(maker.bags[0], maker.configurations[0])
    tables.collect(maker.run.path)
    first = rows_of(read(maker.run)[1])
    maker.done(maker.bags[1], maker.configurations[0])
    shutil.copytree(maker.run.path, tmp_path / "before", symlinks=True)
    at, seen = 0, set()
    while True:
        shutil.rmtree(maker.run.path)
        shutil.copytree(tmp_path / "before", maker.run.path, symlinks=True)
        done = subprocess.run([sys.executable, "-c", KILLED, str(maker.run.path), str(at)], capture_output=True, text=True, timeout=60)
        found = read(maker.run)
        rows = rows_of(found[1])
        assert rows == first or (rows[:20] == first and len(rows) == len(set(rows)) == 40), f"killed at {at}"
        assert len(found[0]) * 20 <= len(rows)  # each row of runs has its scans
        seen.add((len(found[0]), len(rows)))
        if done.returncode == 0:
            break
        assert done.returncode == -9, done.stderr
        tables.collect(maker.run.path)
        assert len(read(maker.run)[1]) == 40 and len(read(maker.run)[0]) == 2
        left = [path.name for path in maker.run.path.iterdir() if path.name.startswith(".")]
        assert left == [os.readlink(maker.run.path / "scans.parquet")]
        at += 1
    assert at > 5 and seen == {(1, 20), (1, 40), (2, 40)}


def test_a_reader_with_an_old_list_of_parts_gets_old_rows_or_an_error(maker, monkeypatch):
    small_parts(monkeypatch)
    maker.done_all()
    tables.collect(maker.run.path)
    listed = ds.dataset(maker.run.path / "scans.parquet")
    maker.list_bags([maker.bags[0].url + "0", *(bag.url for bag in maker.bags)])
    maker.done_all()
    tables.collect(maker.run.path)
    with pytest.raises(FileNotFoundError):
        listed.to_table()
    assert len(read(maker.run)[1]) == 20 * 10


def test_a_run_that_was_copied_with_folders_for_links(maker, tmp_path):
    maker.done_all()
    tables.collect(maker.run.path)
    copy = tmp_path / "copy"
    shutil.copytree(maker.run.path, copy)
    assert not (copy / "scans.parquet").is_symlink()
    tables.collect(copy)
    assert all(one.equals(other) for one, other in zip(read(maker.run), read(RunFolder(copy))))
    assert [path.name for path in copy.iterdir() if path.name.startswith(".")] == [os.readlink(copy / "scans.parquet")]


# ---- the same whatever ran where


def test_results_do_not_depend_on_what_ran_where(tmp_path):
    found = []
    for name, workers in (("one", 1), ("other", 3)):
        maker = Maker(tmp_path / name, bags=6, configurations=("base", "a=1"))
        jobs = [(bag, one) for bag in maker.bags for one in maker.configurations]
        random.Random(workers).shuffle(jobs)
        for number, job in enumerate(jobs):
            path = maker.done(*job, worker=f"worker-{number % workers}")
            if workers > 1:
                hurry(path)
        tables.collect(maker.run.path)
        found.append((tables.digest(maker.run.path / "runs.parquet"), *read(maker.run)))
    (digest_a, *tables_a), (digest_b, *tables_b) = found
    assert digest_a == digest_b
    for one, other in zip(tables_a, tables_b):
        names = tables.result_columns(one.schema)
        assert not one.equals(other) and one.select(names).equals(other.select(names))
    assert not {"worker", "replay_s", "ended_ns", "attempts", "align_us", "total_ms_max"} & {*names, *tables.result_columns(scan_table.RUNS)}


def hurry(path):
    """Other times in a done file."""
    table, row = scan_table.read_scans(path), scan_table.read_run_row(path)
    at = table.schema.get_field_index("align_us")
    table = table.set_column(at, table.schema.field(at), pc.multiply(table["align_us"], pa.scalar(2, pa.float32())))
    scan_table.write(path, table, {**row, "replay_s": 0.5, "ended_ns": row["ended_ns"] + 5, "align_ms_p50": 3.0})


def test_the_digest_tells_trajectories_and_failures_apart(maker):
    maker.done_all()
    tables.collect(maker.run.path)
    runs = maker.run.path / "runs.parquet"
    before = tables.digest(runs)
    table = pq.read_table(runs)
    pq.write_table(table.take(list(reversed(range(len(table))))), runs)
    assert tables.digest(runs) == before and len(before) == 32
    for name, value in (("trajectory_hash", "0" * 16), ("status", "failed"), ("bag_hash", None)):
        column = [value, *table[name].to_pylist()[1:]]
        pq.write_table(table.set_column(table.schema.get_field_index(name), table.schema.field(name), pa.array(column, pa.string())), runs)
        assert tables.digest(runs) != before
    pq.write_table(table.slice(1), runs)
    assert tables.digest(runs) != before


# ---- other readers


def test_a_filter_reads_the_row_groups_of_a_bag(maker, monkeypatch):
    small_parts(monkeypatch, rows=1000, group=20)
    maker.done_all()
    tables.collect(maker.run.path)
    url = maker.bags[1].url
    wanted = ds.field("bag") == url
    fragments = list(ds.dataset(maker.run.path / "scans.parquet").get_fragments(wanted))
    assert sum(len(fragment.split_by_row_group(wanted)) for fragment in fragments) == 2
    assert ds.dataset(maker.run.path / "scans.parquet").to_table(filter=wanted, columns=["seq"])["seq"].to_pylist() == [*range(20)] * 2


def test_pandas_reads_it(maker):
    pandas = pytest.importorskip("pandas")
    maker.done_all()
    tables.collect(maker.run.path)
    found = pandas.read_parquet(maker.run.path / "scans.parquet", columns=["bag", "seq", "error_m"], filters=[("config", "==", "base")])
    assert len(found) == 80 and found["bag"].nunique() == 4 and np.isfinite(found["error_m"]).sum() > 70
    assert len(pandas.read_parquet(maker.run.path / "runs.parquet")) == 8


def test_polars_and_duckdb_read_it(maker):
    maker.done_all()
    tables.collect(maker.run.path)
    files = str(maker.run.path / "scans.parquet/*.parquet")
    polars = pytest.importorskip("polars")
    assert len(polars.scan_parquet(files).filter(polars.col("config") == "base").collect()) == 80
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql(f"SELECT config, count(*) FROM '{files}' GROUP BY config ORDER BY config").fetchall() == [("a=1", 80), ("base", 80)]


# ---- status


def test_status_of_a_run_without_bags(tmp_path):
    maker = Maker(tmp_path / "run", bags=0)
    (maker.run.path / "bags.json").unlink()
    values = status.read(maker.run.path)
    assert (values["state"], values["tasks"], values["left_s"]) == ("no bags", 0, None)
    assert status.text(values).splitlines()[0] == f"{maker.run.path}: no bags, nothing is to do"


def test_status_of_what_is_no_run(tmp_path):
    with pytest.raises(FleetError, match="not the folder of a run"):
        status.read(tmp_path)
    maker = Maker(tmp_path / "run")
    (maker.run.path / "bags.json").write_text("{")
    with pytest.raises(FleetError, match="bags.json: not JSON"):
        status.read(maker.run.path)
    (maker.run.path / "bags.json").write_text('[{"a": 1}]')
    with pytest.raises(FleetError, match="bags.json: not the bags of a run"):
        status.read(maker.run.path)


def test_status_counts(maker):
    first, second, third, _ = maker.bags
    base, other = maker.configurations
    maker.done(first, base)
    maker.fail(first, other, "no initial pose", ended_ns=5)
    maker.fail(second, reason="is \x1b[31mempty\nindeed", ended_ns=7)
    maker.index(third, damage="ends within a record, 12 bytes")
    for key, age in ((maker.key(first, other), 10), (second.id, 5)):
        os.utime(maker.run.failed_file(key), (time.time() - age,) * 2)
    values = status.read(maker.run.path)
    counts = {name: values[name] for name in ("state", "bags", "indexed", "damaged", "tasks", "done", "failed", "left", "scans", "workers")}
    assert counts == {"state": "stopped", "bags": 4, "indexed": 2, "damaged": 1, "tasks": 8, "done": 1, "failed": 3, "left": 4, "scans": 20,
                      "workers": 0}
    assert values["scans_left"] == 2 * 20 + 2 * 20  # of the last bag by its size
    assert values["further_failures"] == 0
    assert [(one["bag"], one["config"], one["attempts"]) for one in values["failures"]] == [(second.url, "", 3), (first.url, "a=1", 3)]
    lines = status.text(values).splitlines()
    assert lines[0].endswith(": stopped") and lines[1] == "tasks    1 of 8 done (12.5 %), 3 failed, 4 left"
    assert f"failed   {second.url}: is ?[31mempty?indeed (failed, 3 attempts)" in lines
    assert f"failed   {first.url} with a=1: no initial pose (failed, 3 attempts)" in lines
    assert f"damaged  {third.url}: ends within a record, 12 bytes" in lines
    assert json.loads(json.dumps(values)) == values
    maker.done_all()
    assert status.read(maker.run.path)["state"] == "done"


def test_many_failures_are_counted(tmp_path):
    maker = Maker(tmp_path / "run", bags=15)
    for number, bag in enumerate(maker.bags):
        maker.fail(bag, reason=f"reason {number}")
    values = status.read(maker.run.path)
    assert values["failed"] == 15 and values["state"] == "done" and len(values["failures"]) == 10
    assert status.text(values).splitlines()[-1] == "failed   5 more"


@pytest.mark.parametrize("finished_at, rate, over", [([-10.0, -20.0, -30.0, -40.0], 80 / 40, 40), ([-450.0] * 3 + [-30.0], 80 / 480, 480)])
def test_rate_and_time_left_while_it_runs(tmp_path, monkeypatch, finished_at, rate, over):
    maker = Maker(tmp_path / "run", bags=8)
    now = 1_800_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    for bag, at in zip(maker.bags, finished_at):
        os.utime(maker.done(bag, maker.configurations[0]), (now + at,) * 2)
    maker.run.write_json(maker.run.path / "progress.json", {"host": "node7", "pid": 123, "workers": 2, "started_ns": int((now - over) * 1e9)})
    with open(maker.run.path / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        values = status.read(maker.run.path)
        assert (values["state"], values["host"], values["pid"], values["workers"]) == ("running", "node7", 123, 2)
        assert values["scans_per_s"] == pytest.approx(rate) and values["rate_over_s"] == pytest.approx(over)
        assert values["left_s"] == pytest.approx(80 / rate)
        first, *_, last = status.text(values).splitlines()
        told = "8 min" if over == 480 else "40 s"
        assert first.endswith(f": running on node7 (pid 123) for {told}, 2 workers")
        assert last == f"scans    80 done, 80 left; {rate:.4g}/s over the last {told}; {told} left"
    values = status.read(maker.run.path)
    assert (values["state"], values["left_s"], values["workers"]) == ("stopped", None, 0)


def test_a_killed_run_has_stopped(tmp_path):
    maker = Maker(tmp_path / "run", bags=2)
    hold = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"
    maker.run.write_json(maker.run.path / "progress.json", {"host": socket.gethostname(), "pid": 1, "state": "running"})
    with subprocess.Popen([sys.executable, "-c", hold, str(maker.run.path / "lock")], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        assert status.read(maker.run.path)["state"] == "running"
        process.kill()
        process.wait()
    assert status.read(maker.run.path)["state"] == "stopped"


def test_status_opens_no_done_file(maker, monkeypatch):
    for path in maker.done_all():
        path.write_bytes(b"not opened")
    values = status.read(maker.run.path)
    assert (values["done"], values["left"], values["scans"]) == (8, 0, 160)
