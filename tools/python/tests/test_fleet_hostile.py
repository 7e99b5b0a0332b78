"""ndt-fleet and what comes from outside: names, damaged folders of runs, full disks, hostile bags. One line and an exit code; the rest completes."""
import json
import os
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

for needed in ("distributed", "pyarrow", "fsspec"):
    pytest.importorskip(needed)

from ndtd import ndt_fleet  # noqa: E402

NAMES = ["new\nline.bag", "two\r\nlines\x1b[31m.bag", "it's \"quoted\".bag", "$(touch pwned).bag", "`touch pwned`;touch pwned|x&.bag", " spaces .bag",
         "-rf.bag", "--set=ndt.levels=[2.0].bag", "größe-地図.bag", "a*b[c]?.bag", "{a,b}.bag", "%2e%2e%2f#frag?x=1&y.bag", "a\\b.bag",
         "<script>alert(1)</script>.bag".replace("/", "\u2215"), "l" * 250 + ".bag", "s3:x.bag", "-"]


@pytest.fixture(scope="module")
def bags(simulate, run_program, tmp_path_factory):
    """(small bags of different content, their map)"""
    long = simulate("--seed", 3, "--scans", 4 * (len(NAMES) + 3), "--beams", 16, "--columns", 300, "--map-spacing", 0.5)
    folder = tmp_path_factory.mktemp("small")
    out = []
    for first in range(1, 4 * (len(NAMES) + 3), 4):
        out.append(folder / f"{first:03}.bag")
        run_program("ndt-bag", "cut", long.bag, "--scans", f"{first}-{first + 3}", "--initial", "first", "--out", out[-1])
    return out, long.map


@pytest.fixture
def fleet(bin_dir, tmp_path):
    """fleet("run", ..., code=0): the command in a process of its own, in tmp_path; its exit code and the form of its lines are checked."""

    def call(*arguments, code=0, env=None, timeout=100):
        done = subprocess.run([sys.executable, "-m", "ndtd.ndt_fleet", *map(str, arguments)], cwd=tmp_path, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=timeout, env={**os.environ, "NDT_BIN": str(bin_dir), **(env or {})})
        said = (done.stdout + done.stderr).decode()
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{said}"
        assert "Traceback" not in said
        assert not any(unicodedata.category(letter) == "Cc" for line in said.split("\n") for letter in line), said
        return said

    return call


def refused(said):
    """The one line of an error."""
    assert said.startswith("ndt-fleet: ") and said.count("\n") == 1 and len(said) < 1000, said
    return said


def rows(run, *columns):
    import pyarrow.parquet as pq

    return pq.read_table(run / "runs.parquet", columns=list(columns)).to_pylist()


SET = ("--set", "preprocess.deskew=time", "--set", "score_estimation.score_threshold=0.1")


def test_names_and_what_is_no_bag(fleet, bags, tmp_path):
    small, target = bags
    names = dict(zip(NAMES, small))
    (tmp_path / "in").mkdir()
    for name, bag in names.items():
        shutil.copy(bag, tmp_path / "in" / name)
    deep = tmp_path / "in" / Path(*["d" * 200] * 18)  # 3600 characters
    os.makedirs(deep)
    shutil.copy(small[-1], deep / "deep.bag")
    shutil.copy(small[-2], os.fsencode(tmp_path / "in") + b"/not-utf8-\xff\xfe.bag")
    broken = {"empty.bag": b"", "text.bag": b"not a bag\n" * 100, "short.bag": small[-3].read_bytes()[:40], "zeros.bag": bytes(1000)}
    for name, data in broken.items():
        (tmp_path / "in" / name).write_bytes(data)
    with open(tmp_path / "in" / "sparse.bag", "wb") as stream:
        stream.truncate(1 << 40)
    os.mkfifo(tmp_path / "in" / "fifo.bag")
    (tmp_path / "in" / "zero.bag").symlink_to("/dev/zero")
    (tmp_path / "in" / "nowhere.bag").symlink_to("nowhere")
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "folder.bag").mkdir()
    cut = tmp_path / "in" / "cut.bag"
    cut.write_bytes(small[-3].read_bytes()[:-100])
    said = fleet("run", "--bags", "in/*", deep / "deep.bag", "--map", target, *SET, "--out", "run", "--retries", 0, "--timeout", 60, "--workers", 1, code=1)
    found = rows(tmp_path / "run", "bag", "status", "failure")
    assert {Path(row["bag"]).name for row in found if row["status"] == "done"} == {*names, "cut.bag"}
    failed = {Path(row["bag"]).name: row["failure"] for row in found if row["status"] == "failed"}
    assert set(failed) == {*broken, "sparse.bag", "fifo.bag", "zero.bag", "nowhere.bag", "loop", "deep.bag", "not-utf8-\\xff\\xfe.bag"}
    assert "the limit is 1023" in failed["deep.bag"] and "neither a file" in failed["fifo.bag"] and "--cache-size" in failed["sparse.bag"]
    assert not list(tmp_path.rglob("pwned"))
    assert "not-utf8" in said
    fleet("status", "run")
    fleet("report", "run", "--out", "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<script>alert" not in page and "empty.bag" in page


ARGUMENTS = {
    "no bags": (("--bags", "none/*.bag"), "none/*.bag: there is no such recording"), "empty pattern": (("--bags", ""), "--bags"),
    "4000 characters": (("--bags", "x" * 4000), "--bags"), "a line": (("--bags", "x\ny"), "--bags"), "@ nothing": (("--bags", "@nothing"), "nothing"),
    "no protocol": (("--bags", "nosuch://x/*"), "nosuch"), "all of S3": (("--bags", "s3://*/*"), "S3"),
    "half a url": (("--bags", "http://[::1/x"), "--bags"),
    "no server": (("--bags", "http://127.0.0.1:9/*.bag"), "127.0.0.1"),
    "no server, one file": (("--bags", "http://127.0.0.1:9/x.bag"), "Connect"), "braces": (("--bags", "{a,b}" * 30), "10000"),
    "sweep of 10 000": (("--sweep", "ndt.max_iterations=" + ",".join(map(str, range(1, 101))), "--sweep", "preprocess.sample_count=" +
                         ",".join(map(str, range(1000, 1100)))), "1000"),
    "sweep of nothing": (("--sweep", "nosuch=1,2"), "nosuch"), "open bracket": (("--sweep", "ndt.levels=[1,2"), "bracket"),
    "option": (("--storage-option", "s3.secret=x"), "environment"), "no option": (("--storage-option", "x"), "--storage-option"),
    "option below an option": (("--storage-option", "s3.a=1", "--storage-option", "s3.a.b=2"), "--storage-option"),
    "header": (("--storage-option", "http.headers.Authorization=hunter2"), "environment"),
    "proxy": (("--storage-option", "http.proxy=http://me:hunter2@proxy"), "environment"),
    "password": (("--bags", "https://user:hunter2@example.org/x.bag"), "environment"),
    "signature": (("--map", "https://example.org/map.pcd?X-Amz-Signature=hunter2"), "environment"),
    "no map": (("--map", "nowhere.pcd"), "nowhere.pcd: no such file"), "map of lines": (("--map", "a\nb"), "--map"), "workers": (("--workers", "-1"), "--workers"),
    "memory": (("--memory", "nan"), "--memory"), "piece": (("--piece", "inf"), "--piece"), "cluster": (("--cluster", "nosuch.Class"), "nosuch"),
    "address": (("--cluster", "tcp://127.0.0.1:9"), "127.0.0.1"), "priority": (("--priority", "x=1.5"), "--priority"),
    "cluster option": (("--cluster-option", "nosuch_option=1"), "does not start"), "program": (("--ndtd", "/bin/true"), "ndtd"),
}


FAILURES = ("no server", "no server, one file", "all of S3", "address", "cluster option", "4000 characters", "half a url")  # not of the command line


@pytest.mark.parametrize("name", list(ARGUMENTS))
def test_arguments(bags, bin_dir, tmp_path, monkeypatch, capfd, name):
    words, told = ARGUMENTS[name]
    given = {"--bags": str(bags[0][0]), "--map": str(bags[1]), "--out": "run"}
    usual = [word for key, value in given.items() if key not in words for word in (key, value)]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NDT_BIN", str(bin_dir))
    code = ndt_fleet.main(["run", *usual, *words, "--worker-timeout", "5"])
    said = refused(capfd.readouterr().err)
    assert told in said and "hunter2" not in said and code == (3 if name in FAILURES else 2), said
    assert not Path("run").exists() or "cluster" in name or name == "address"


# ---- the folder of a run


@pytest.fixture(scope="module")
def finished(bags, bin_dir, tmp_path_factory):
    """A run that is done: five bags."""
    folder = tmp_path_factory.mktemp("finished")
    subprocess.run([sys.executable, "-m", "ndtd.ndt_fleet", "run", "--bags", *bags[0][:5], "--map", bags[1], *SET, "--out", folder / "run", "-q",
                    "--workers", "1"], env={**os.environ, "NDT_BIN": str(bin_dir)}, check=True, timeout=240)
    return folder / "run"


@pytest.fixture
def run(finished, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))


def hashes(run):
    return sorted((row["bag"], row["trajectory_hash"]) for row in rows(run, "bag", "trajectory_hash", "status") if row["status"] == "done")


GOOD = {"format": 1, "token": "x", "version": "ndtd", "map": "map.pcd", "configurations": []}
RUN_FILES = {
    "empty": b"", "half": b'{"format": 1, "tok', "a list": b"[]", "null": b"null", "a number": b"7", "not UTF-8": b'{"format": "\xff"}',
    "another version": b'{"format": 99}', "no format": b"{}", "deep": b"[" * 100_000, "large number": b'{"format": ' + b"9" * 5000 + b"}",
    "no token": json.dumps({**GOOD, "token": None}).encode(), "map of numbers": json.dumps({**GOOD, "map": 5}).encode(),
    "limits of text": json.dumps({**GOOD, "memory_bytes": "x"}).encode(), "another key": json.dumps({**GOOD, "other": 1}).encode(),
    "no configurations": json.dumps({**GOOD, "configurations": None}).encode(),
    "configuration of numbers": json.dumps({**GOOD, "configurations": [{"name": 1, "file": 2, "hash": 3, "overrides": []}]}).encode(),
    "file elsewhere": json.dumps({**GOOD, "configurations": [{"name": "a", "file": "../../a.yaml", "hash": "0", "overrides": []}]}).encode(),
    "a folder": None,
}


@pytest.mark.parametrize("name", list(RUN_FILES))
def test_run_file(run, capfd, name):
    (run / "run.json").unlink()
    if RUN_FILES[name] is None:
        (run / "run.json").mkdir()
    else:
        (run / "run.json").write_bytes(RUN_FILES[name])
    for words in (["status", str(run)], ["run", "--out", str(run)], ["report", str(run), "--out", str(run / "a.html")]):
        assert ndt_fleet.main(words) in (2, 3)
        assert str(run) in refused(capfd.readouterr().err)


def damage(path, how):
    data = path.read_bytes()
    path.write_bytes({"empty": b"", "half": data[:len(data) // 2], "text": b"x" * 100, "list": b"[]", "types": b'{"fingerprint": 5, "pieces": 7}',
                      "zeros": bytes(len(data)), "flipped": data[:200] + bytes(255 - one for one in data[200:300]) + data[300:]}[how])


def looked_at(run, fleet):
    """Status and report of a damaged run: whatever they say, they say it in one line."""
    for words in (["status", run], ["report", run, "--out", run / "report.html"]):
        done = subprocess.run([sys.executable, "-m", "ndtd.ndt_fleet", *map(str, words)], capture_output=True, text=True, timeout=100)
        assert "Traceback" not in done.stderr and done.returncode in (0, 3), done.stderr


def test_damaged_files(fleet, run):
    """Files of each kind; what is damaged is made again, by the next call but one at the latest."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    before = hashes(run)
    done = sorted(run.glob("done/*/*.parquet"))
    for path, how in zip(done, ("empty", "half", "zeros", "flipped", None)):
        if how:
            damage(path, how)
        else:
            pq.write_table(pa.table({"a": [1]}), path)
    for path, how in zip(sorted(run.glob("index/*/*.json")), ("empty", "half", "list", "types", "zeros")):
        damage(path, how)
    looked_at(run, fleet)
    fleet("run", "--out", run, "--workers", 1, code=1)  # what only its rows tell is found when the tables are made
    fleet("run", "--out", run, "--workers", 1)
    assert hashes(run) == before and sorted(run.glob("done/*/*.parquet")) == done
    assert fleet("status", run).startswith(f"{run}: done")


def test_other_files_of_a_run(fleet, run):
    before = hashes(run)
    for name in ("bags.json", "progress.json", "runs.parquet", "maps.json", *(path.relative_to(run) for path in run.glob("scans.parquet/*"))):
        damage(run / name, "half")
    failed = run / "failed" / "00" / ("0" * 32 + ".json")
    failed.parent.mkdir(parents=True)
    failed.write_bytes(b"{")
    for strange in ("done/zz/strange.parquet", "done/file", "index/zz/x.json", "claims/zz/file/file", "pieces/zz/x.0.parquet"):
        (run / strange).parent.mkdir(parents=True, exist_ok=True)
        (run / strange).write_bytes(b"x")
    looked_at(run, fleet)
    fleet("run", "--out", run, "--workers", 1)
    assert hashes(run) == before
    looked_at(run, fleet)


def in_a_namespace(script, *arguments, bin_dir, cwd):
    """Runs a shell script that may mount; "$@" is ndt-fleet with the arguments."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no namespaces of mounts")
    command = ["unshare", "-rm", "sh", "-c", script, "sh", sys.executable, "-m", "ndtd.ndt_fleet", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=240, env={**os.environ, "NDT_BIN": str(bin_dir)})
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done


def test_a_full_disk(bags, bin_dir, tmp_path):
    (tmp_path / "run").mkdir()
    words = ("run", "--bags", *bags[0][:2], "--map", bags[1], *SET, "--out", "run", "--workers", 1, "--retries", 0)
    script = """mount -t tmpfs -o size=400k tmpfs run || exit 77
    head -c 360000 /dev/zero >fill; "$@" >said 2>&1; echo "small $?"; cat said
    head -c 4000000 /dev/zero >run/engine.log 2>/dev/null; "$@"; echo "full $?"
    rm run/engine.log; mount -o remount,size=40m run; "$@"; echo "large $?"; find run -name '.*.*' -type f"""
    done = in_a_namespace(script, *words, bin_dir=bin_dir, cwd=tmp_path)
    if done.returncode == 77:
        pytest.skip("tmpfs cannot be mounted")
    said = done.stdout + done.stderr
    assert "full 3" in said and "/run/bags.json: No space left on device" in said and "large 0" in said, said
    assert ".json." not in said and ".parquet." not in said, said


def test_a_folder_that_cannot_be_written(run, bin_dir, tmp_path):
    script = 'mount --bind run run && mount -o remount,bind,ro run || exit 77; "$@"'
    done = in_a_namespace(script, "run", "--out", "run", bin_dir=bin_dir, cwd=tmp_path)
    if done.returncode == 77:
        pytest.skip("no bind mounts")
    assert done.returncode == 3 and "Read-only file system" in refused(done.stderr)
    done = in_a_namespace(script, "status", "run", bin_dir=bin_dir, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_what_is_no_run(bags, tmp_path, capfd):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    for out in ("mine", "file", "file/run"):
        assert ndt_fleet.main(["run", "--bags", str(bags[0][0]), "--map", str(bags[1]), "--out", str(tmp_path / out)]) in (2, 3)
        refused(capfd.readouterr().err)
        assert ndt_fleet.main(["status", str(tmp_path / out)]) in (2, 3)
        refused(capfd.readouterr().err)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "mine", "thesis.tex"]


# ---- what the workers find


def test_a_map_that_is_not_there_any_more(fleet, bags, tmp_path):
    shutil.copy(bags[1], tmp_path / "map.pcd")
    (tmp_path / "map.pcd").write_bytes(b"not a map")
    said = fleet("run", "--bags", *bags[0][:2], "--map", "map.pcd", *SET, "--out", "run", "--workers", 1, code=3)
    assert "map.pcd" in refused(said)
    (tmp_path / "map.pcd").unlink()
    assert "map.pcd" in refused(fleet("run", "--out", "run", "--workers", 1, code=3))
    fleet("run", "--bags", bags[0][0], "--map", bags[1], *SET, "--out", "run", "--workers", 1)  # without a result it may begin anew
    assert "use another --out" in refused(fleet("run", "--bags", bags[0][0], "--map", tmp_path, *SET, "--out", "run", code=2))


def test_a_cache_that_cannot_be_written(fleet, bags, tmp_path):
    (tmp_path / "cache").write_text("a file")
    said = fleet("run", "--bags", bags[0][0], "--map", bags[1], *SET, "--out", "run", "--cache", "cache", "--workers", 1, code=3)
    assert "/cache: cannot be used as cache (--cache): " in refused(said)
