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
        run_program("ndt-bag", "cut", long.bag, "--scans", f"{6 * number - 5}-{6 * number}", "--initial", "first", "--out", folder / str(number) / "drive.bag")
    (folder / str(COUNT + 1)).rename(folder.with_name(f"{folder.name}-other"))
    return folder


@pytest.fixture
def fleet(bin_dir, tmp_path):
    """fleet(..., code=0): `ndt-fleet run` into tmp_path/NAME with a cache of its own; returns what it said."""

    def run(*arguments, name="run", code=0, env=None):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        done = subprocess.run([sys.executable, "-m", "ndtd.ndt_fleet", "run", "--out", name, "--cache", "cache", "--workers", "2", *map(str, arguments)],
                              cwd=tmp_path, capture_output=True, text=True, timeout=240, env={**clean, "NDT_BIN": str(bin_dir), **(env or {})})
        assert done.returncode == code and "Traceback" not in done.stderr, f"{done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    return run


def rows(run):
    import pyarrow.parquet as pq

    return pq.read_table(run / "runs.parquet").to_pylist()


def hashes(run):
    """By the end of the URL, which tells the drives apart."""
    return {tuple(row["bag"].split("/")[-2:]) + (row["config"],): row["trajectory_hash"] for row in rows(run) if row["status"] == "done"}


@pytest.fixture
def expected(fleet, drives, tmp_path):
    """The hashes of the drives from the local disk."""
    fleet("--bags", drives / "*/drive.bag", "--map", drives / "map.pcd", *SET, name="local")
    assert not list((tmp_path / "cache").glob("*.bag"))  # used in place
    return hashes(tmp_path / "local")


def whole(cache, drives):
    """The cache has whole bags alone."""
    good = {path.read_bytes() for path in drives.glob("*/drive.bag")} | {path.read_bytes() for path in drives.parent.glob(f"{drives.name}-other/drive.bag")}
    assert all(path.read_bytes() in good for path in cache.rglob("*.bag") if path.is_file())
    assert not list(cache.rglob("*.part*"))


def contains(folder, words):
    return [path for path in folder.rglob("*") if path.is_file() for word in words if word.encode() in path.read_bytes()]


@pytest.fixture
def s3(drives, monkeypatch):
    """(server, options and environment of the calls, its file system), with the drives in the bucket fleet."""
    with s3_server() as (server, url, files):
        files.mkdir("fleet")
        files.put(str(drives), "fleet/drives", recursive=True)
        yield server, ("--storage-option", f"s3.endpoint_url={url}"), {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}, files


def test_s3(fleet, drives, expected, s3, tmp_path):
    server, options, env, files = s3
    server.seen.clear()
    words = ("--bags", "s3://fleet/drives/**/*.{bag,mcap,db3}", "--map", "s3://fleet/drives/map.pcd", *SET, "--sweep", "ndt.levels=[4.0,2.0,1.0],[2.0]")
    said = fleet(*words, *options, env=env)
    run = tmp_path / "run"
    found = hashes(run)
    assert len(found) == 2 * COUNT
    assert {key[:2]: value for key, value in found.items() if "4.0" in key[2]} == {key[:2]: value for key, value in expected.items()}
    for number in range(1, COUNT + 1):  # once, for two configurations and two workers
        assert server.gets(f"drives/{number}/drive.bag") == 1
    assert server.gets("map.pcd") == 1
    assert not contains(run, [KEY, SECRET]) and not contains(tmp_path / "cache", [KEY, SECRET]) and SECRET not in said
    whole(tmp_path / "cache", drives)
    # Unchanged: nothing is staged or replayed. Changed: that bag alone.
    server.seen.clear()
    fleet(env=env)
    assert hashes(run) == found and not [path for method, path, _ in server.seen if method == "GET" and path.endswith(".bag")]
    files.put(str(drives.with_name(f"{drives.name}-other") / "drive.bag"), "fleet/drives/2/drive.bag")
    server.seen.clear()
    fleet(env=env)
    again = hashes(run)
    assert {key for key in found if found[key] != again[key]} == {key for key in found if key[0] == "2"}
    assert [path for method, path, _ in server.seen if method == "GET" and path.endswith(".bag")] == ["/fleet/drives/2/drive.bag"]


def test_s3_without_a_key(fleet, drives, s3):
    said = fleet("--bags", "s3://fleet/drives/*/drive.bag", "--map", drives / "map.pcd", "--storage-option", s3[1][1], code=3,
                 env={"AWS_EC2_METADATA_DISABLED": "true", "HOME": str(drives)})
    assert said.startswith("ndt-fleet: ") and "credentials" in said and said.count("\n") == 1


@pytest.mark.parametrize("ranges", [True, False])
def test_http(fleet, drives, expected, ranges, tmp_path):
    server = Faulty(folder_app(drives), ranges)
    with serving(server) as url:
        fleet("--bags", f"{url}/**/*.bag", "--map", f"{url}/map.pcd", *SET)
        assert hashes(tmp_path / "run") == expected
        whole(tmp_path / "cache", drives)
        for number in range(1, COUNT + 1):
            bodies = [one for one in server.seen if one[0] == "GET" and f"/{number}/drive.bag" in one[1]]
            assert len(bodies) == 1 or all(header for _, _, header in bodies)
        server.seen.clear()
        fleet()
        assert not server.gets("drive.bag")


FAULTS = {"1/drive": ["503", "cut"], "2/drive": ["long", "ends"], "3/drive": ["short"], "4/drive": ["slow"], "map": ["503"]}


@pytest.mark.parametrize("ranges", [True, False])
def test_http_that_fails_now_and_then(fleet, drives, expected, ranges, tmp_path):
    server = Faulty(folder_app(drives), ranges)
    server.plans = {part: list(faults) for part, faults in FAULTS.items()}
    with serving(server) as url:
        fleet("--bags", f"{url}/*/drive.bag", "--map", f"{url}/map.pcd", *SET)
    assert hashes(tmp_path / "run") == expected
    whole(tmp_path / "cache", drives)


def test_s3_that_fails_now_and_then(fleet, drives, expected, s3, tmp_path):
    server, options, env, _ = s3
    server.plans = {"1/drive": ["503", "cut"], "2/drive": ["short"], "3/drive": ["long"], "4/drive": ["403"]}
    fleet("--bags", "s3://fleet/drives/*/drive.bag", "--map", drives / "map.pcd", *SET, *options, env=env)
    assert hashes(tmp_path / "run") == expected
    whole(tmp_path / "cache", drives)


def test_what_never_comes_is_listed(fleet, drives, expected, tmp_path):
    server = Faulty(folder_app(drives))
    server.plans = {"1/drive": ["cut!"], "2/drive": ["404!"], "3/drive": ["ends!"]}
    with serving(server) as url:
        said = fleet("--bags", f"{url}/*/drive.bag", "--map", f"{url}/map.pcd", *SET, "--retries", 1, code=1)
        assert hashes(tmp_path / "run") == {key: value for key, value in expected.items() if key[0] == "4"}
        failed = {row["bag"]: row["failure"] for row in rows(tmp_path / "run") if row["status"] == "failed"}
        assert set(failed) == {f"{url}/{number}/drive.bag" for number in (1, 2, 3)} and all(failed.values())
        assert all(bag in said for bag in failed)
        whole(tmp_path / "cache", drives)
        server.plans = {}
        fleet()
    assert hashes(tmp_path / "run") == expected


def test_a_small_cache(fleet, drives, expected, tmp_path):
    """Room for two of the bags."""
    size = max(path.stat().st_size for path in drives.glob("*/drive.bag"))
    server = Faulty(folder_app(drives))
    with serving(server) as url:
        fleet("--bags", f"{url}/*/drive.bag", "--map", drives / "map.pcd", *SET, "--cache-size", 3 * size / (1 << 30))
    assert hashes(tmp_path / "run") == expected
    assert sum(path.stat().st_size for path in (tmp_path / "cache").rglob("*") if path.is_file()) <= 3 * size


# ---- what is found


def test_patterns_of_s3(s3):
    server, _, _, files = s3
    url = server.url
    storage = {"s3": {"key": KEY, "secret": SECRET, "endpoint_url": url}}
    files.pipe({"fleet/a b/é#?%41.bag": b"x", "fleet/recording/metadata.yaml": b"x", "fleet/recording/a_0.mcap": b"x", "fleet/recording/a_1.mcap": b"x"})
    found = [bag.url for bag in bag_patterns.find(["s3://fleet/**/*.{bag,mcap,db3}"], storage)]
    assert found == ["s3://fleet/a b/é#?%41.bag", *(f"s3://fleet/drives/{number}/drive.bag" for number in range(1, COUNT + 1)), "s3://fleet/recording"]


@pytest.mark.parametrize("protocol, fault", [("s3", "503!"), ("s3", "403!"), ("http", "503!"), ("http", "403!")])
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
