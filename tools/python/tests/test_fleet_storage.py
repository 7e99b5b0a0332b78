"""ndt-fleet with bags and maps on an S3 server and on HTTP servers: staged once, replayed again when they change, whole or not at all."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

for needed in ("distributed", "pyarrow", "s3fs", "moto.server"):
    pytest.importorskip(needed)

from fleet_servers import KEY, SECRET, Faulty, folder_app, s3_server, serving  # noqa: E402

from ndtd import ndt_fleet  # noqa: E402
from ndtd.fleet import bags as bag_patterns  # noqa: E402
from ndtd.fleet.staging import Cache, StageError  # noqa: E402

SET = ("--set", "preprocess.deskew=time", "--set", "score_estimation.score_threshold=0.1")
COUNT = 4


@pytest.fixture(scope="module")
def drives(simulate, run_program, tmp_path_factory):
    """A folder with map.pcd and 1/drive.bag to 4/drive.bag."""
    long = simulate("--seed", 8, "--scans", 6 * (COUNT + 1), "--beams", 16, "--columns", 300, "--map-spacing", 0.5)
    folder = tmp_path_factory.mktemp("drives")
    shutil.copy(long.map, folder / "map.pcd")
    for number in range(1, COUNT + 2):
        (folder / str(number)).mkdir()
        run_program("ndt-bag", "cut", long.bag, "--scans", f"{6 * number - 5}-{6 * number}", "--initial", "first",
                    "--out", folder / str(number) / "drive.bag")
    (folder / str(COUNT + 1) / "drive.bag").rename(other(folder))
    (folder / str(COUNT + 1)).rmdir()
    return folder


def other(drives):
    """A bag that is none of them."""
    return drives.with_name(f"{drives.name}.bag")


@pytest.fixture
def fleet(bin_dir, tmp_path):
    """fleet(..., code=0): `ndt-fleet run` into tmp_path/run with a cache of its own; returns what it said."""
    return lambda *arguments, code=0, env=None: call_fleet(bin_dir, tmp_path, arguments, code, env or {})


def call_fleet(bin_dir, folder, arguments, code=0, env=None):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    done = subprocess.run([sys.executable, "-m", "ndtd.ndt_fleet", "run", "--out", "run", "--cache", "cache", "--workers", "2", *map(str, arguments)],
                          cwd=folder, capture_output=True, text=True, timeout=240, env={**clean, "NDT_BIN": str(bin_dir), **(env or {})})
    assert done.returncode == code and "Traceback" not in done.stderr, f"{done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def rows(run):
    import pyarrow.parquet as pq

    return pq.read_table(run / "runs.parquet").to_pylist()


def hashes(run):
    """Hashes by the end of the URL, which tells the drives apart."""
    return {tuple(row["bag"].split("/")[-2:]) + (row["config"],): row["trajectory_hash"] for row in rows(run) if row["status"] == "done"}


@pytest.fixture(scope="module")
def expected(bin_dir, drives, tmp_path_factory):
    """The hashes of the drives from the local disk."""
    folder = tmp_path_factory.mktemp("expected")
    call_fleet(bin_dir, folder, ["--workers", 1, "--bags", drives / "*/drive.bag", "--map", drives / "map.pcd", *SET])
    assert not list((folder / "cache").glob("*.bag"))  # used in place
    return hashes(folder / "run")


def contents(cache):
    """Bytes of the bags in a cache; nothing that is half done is there."""
    assert not list(cache.rglob("*.part*"))
    return sorted(path.read_bytes() for path in cache.rglob("*.bag"))


def contains(folder, words):
    return [path for path in folder.rglob("*") if path.is_file() for word in words if word.encode() in path.read_bytes()]


@pytest.fixture
def s3(drives):
    """(server, options and environment of the calls, its file system), with the drives in the bucket fleet."""
    with s3_server() as (server, files):
        files.mkdir("fleet")
        files.put(str(drives), "fleet/drives", recursive=True)
        server.seen.clear()
        yield server, ("--storage-option", f"s3.endpoint_url={server.url}"), {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}, files


def bodies(server):
    """The bags whose bytes were sent."""
    return sorted(path for method, path, _ in server.seen if method == "GET" and path.endswith(".bag"))


def test_s3(fleet, drives, expected, s3, tmp_path):
    """Two configurations; errors of the server now and then; then one bag changes, and is replayed again, alone."""
    server, options, env, files = s3
    server.plans = {"1/drive": ["503"], "2/drive": ["404"]}
    said = fleet("--bags", "s3://fleet/drives/**/*.{bag,mcap,db3}", "--map", "s3://fleet/drives/map.pcd", *SET,
                 "--sweep", "ndt.max_iterations=30,20", *options, env=env)
    run = tmp_path / "run"
    before = hashes(run)
    assert len(before) == 2 * COUNT
    assert {key[:2]: value for key, value in before.items() if "30" in key[2]} == {key[:2]: value for key, value in expected.items()}
    sent = [f"/fleet/drives/{number}/drive.bag" for number in (1, 1, 2, 2, 3, 4)]  # once, for two configurations and two workers
    assert bodies(server) == sent and server.gets("map.pcd") == 1
    assert contents(tmp_path / "cache") == sorted(path.read_bytes() for path in drives.glob("*/drive.bag"))
    files.put(str(other(drives)), "fleet/drives/2/drive.bag")
    server.seen.clear()
    said += fleet("--workers", 1, env=env)
    after = hashes(run)
    assert {key for key in before if before[key] != after[key]} == {key for key in before if key[0] == "2"}
    assert bodies(server) == ["/fleet/drives/2/drive.bag"]
    assert not contains(tmp_path, [KEY, SECRET]) and SECRET not in said and KEY not in said


def test_http(fleet, drives, expected, tmp_path):
    """A server without ranges. What fails now and then is tried again; what never comes is listed, and comes with the next call."""
    server = Faulty(folder_app(drives), ranges=False)
    server.plans = {"1/drive": ["cut!"], "2/drive": ["ends", "503"], "3/drive": ["404!"], "map": ["503"]}
    with serving(server) as url:
        said = fleet("--bags", f"{url}/**/*.bag", "--map", f"{url}/map.pcd", *SET, code=1)
        assert hashes(tmp_path / "run") == {key: value for key, value in expected.items() if key[0] in "24"}
        failed = {row["bag"]: row["failure"] for row in rows(tmp_path / "run") if row["status"] == "failed"}
        assert set(failed) == {f"{url}/1/drive.bag", f"{url}/3/drive.bag"} and all(reason and bag in said for bag, reason in failed.items())
        assert contents(tmp_path / "cache") == sorted((drives / number / "drive.bag").read_bytes() for number in "24")
        server.plans = {}
        server.seen.clear()
        fleet("--workers", 1)
    assert hashes(tmp_path / "run") == expected
    assert bodies(server) == ["/1/drive.bag", "/3/drive.bag"]


# ---- one bag at a time


WHOLE = ["", "none", "slow"]
BROKEN = ["503", "404", "cut", "long", "short", "ends"]


def stage(cache, url, storage=None):
    """The bytes of a bag in the cache. StageError."""
    with cache.bag(bag_patterns.find([url], storage or {})[0]) as path:
        return path.read_bytes()


@pytest.mark.parametrize("fault", WHOLE + BROKEN)
@pytest.mark.parametrize("ranges", [True, False])
def test_downloads_by_http(drives, tmp_path, ranges, fault):
    server = Faulty(folder_app(drives), ranges)
    cache = Cache(str(tmp_path))
    data = (drives / "1/drive.bag").read_bytes()
    with serving(server) as url:
        server.plans = {"drive.bag": [f"{fault}!"] if fault else []}
        if fault in BROKEN:
            with pytest.raises(StageError) as failed:
                stage(cache, f"{url}/1/drive.bag")
            assert "\n" not in str(failed.value) and str(failed.value) and not contents(tmp_path)
            server.plans = {}
        assert stage(cache, f"{url}/1/drive.bag") == data
        server.seen.clear()
        assert stage(cache, f"{url}/1/drive.bag") == data and not server.gets("drive.bag")


def test_downloads_by_s3(drives, s3, tmp_path):
    server, _, _, _ = s3
    storage = {"s3": {"key": KEY, "secret": SECRET, "endpoint_url": server.url, "config_kwargs": {"retries": {"max_attempts": 1}}}}
    data = (drives / "1/drive.bag").read_bytes()
    for fault in WHOLE + BROKEN:
        cache = Cache(str(tmp_path / f"cache{fault}"), storage=storage)
        server.plans = {"drive.bag": [fault] if fault else []}
        try:  # s3fs and botocore try some of these again
            assert stage(cache, "s3://fleet/drives/1/drive.bag", storage) == data
        except StageError as failed:
            assert fault in BROKEN and "\n" not in str(failed) and not contents(cache.path)
            assert stage(cache, "s3://fleet/drives/1/drive.bag", storage) == data


def test_a_bag_that_changes_under_way(drives, tmp_path):
    folder = tmp_path / "served"
    shutil.copytree(drives, folder)
    with serving(Faulty(folder_app(folder))) as url:
        bag = bag_patterns.find([f"{url}/1/drive.bag"], {})[0]
        shutil.copy(other(drives), folder / "1/drive.bag")
        with pytest.raises(StageError, match="has changed"), Cache(str(tmp_path / "cache")).bag(bag):
            pass
        assert not contents(tmp_path / "cache")


def test_a_small_cache(drives, tmp_path):
    """Room for two of the bags: the one that was not used for the longest time goes."""
    size = max(path.stat().st_size for path in drives.glob("*/drive.bag"))
    cache = Cache(str(tmp_path), 5 * size // 2)
    server = Faulty(folder_app(drives))
    with serving(server) as url:
        for use, number in enumerate((1, 2, 1, 3)):
            with cache.bag(bag_patterns.find([f"{url}/{number}/drive.bag"], {})[0]) as path:
                os.utime(path, (use, use))  # clocks are coarse
        assert contents(tmp_path) == sorted((drives / number / "drive.bag").read_bytes() for number in "13")
        with pytest.raises(StageError, match="--cache-size"):
            stage(Cache(str(tmp_path / "small"), size // 2), f"{url}/1/drive.bag")


# ---- what is found


def test_patterns_of_s3(s3):
    server, _, _, files = s3
    storage = {"s3": {"key": KEY, "secret": SECRET, "endpoint_url": server.url}}
    files.pipe({f"fleet/{name}": b"x" for name in ("a b/é#?%41.bag", "recording/metadata.yaml", "recording/a_0.mcap", "recording/a_1.mcap")})
    found = [bag.url for bag in bag_patterns.find(["s3://fleet/**/*.{bag,mcap,db3}"], storage)]
    drives = [f"s3://fleet/drives/{number}/drive.bag" for number in range(1, COUNT + 1)]
    assert found == ["s3://fleet/a b/é#?%41.bag", *drives, "s3://fleet/recording"]


def test_s3_without_a_key(s3, drives, capfd, tmp_path, monkeypatch, bin_dir):
    for name, value in {"NDT_BIN": str(bin_dir), "HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    words = ("run", "--bags", "s3://fleet/drives/*/drive.bag", "--map", str(drives / "map.pcd"), *s3[1], "--out", str(tmp_path / "run"))
    assert ndt_fleet.main(words) == 3
    said = capfd.readouterr().err
    assert said.startswith("ndt-fleet: --bags: ") and "credentials" in said and said.count("\n") == 1


@pytest.mark.parametrize("protocol, fault", [("s3", "403!"), ("http", "503!"), ("http", "403!")])
def test_servers_that_do_not_list(s3, drives, capfd, tmp_path, monkeypatch, bin_dir, protocol, fault):
    monkeypatch.setenv("NDT_BIN", str(bin_dir))
    for name, value in s3[2].items():
        monkeypatch.setenv(name, value)
    other = Faulty(folder_app(drives))
    with serving(other) as url:
        (s3[0] if protocol == "s3" else other).plans = {"": [fault]}
        pattern = "s3://fleet/**/*.bag" if protocol == "s3" else f"{url}/**/*.bag"
        assert ndt_fleet.main(["run", "--bags", pattern, "--map", str(drives / "map.pcd"), "--out", str(tmp_path / "run"), *s3[1]]) == 3
    said = capfd.readouterr().err
    assert said.startswith("ndt-fleet: --bags: ") and said.count("\n") == 1 and len(said) < 500, said
    assert not Path(tmp_path / "run").exists()
