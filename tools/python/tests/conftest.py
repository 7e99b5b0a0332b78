"""Fixtures that the tests share: the programs of the build, a simulated drive, real recordings.

    python -m pytest tools/python          # NDT_BIN: folder of the programs; default: build/bin of the tree
"""
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]


class Drive(NamedTuple):
    """A simulated drive: bag with initial pose, truth, scans with times; map.pcd; odometry and IMU on request."""

    folder: Path
    bag: Path
    map: Path


@pytest.fixture(scope="session")
def bin_dir():
    """The folder of ndtd, ndt-sim and ndt-bag; skips without."""
    folder = Path(os.environ.get("NDT_BIN") or ROOT / "build/bin").resolve()
    if not (folder / "ndtd").exists():
        pytest.skip(f"{folder}/ndtd is not built (NDT_BIN)")
    return folder


@pytest.fixture(scope="session")
def run_program(bin_dir):
    """run_program("ndtd", "--replay", bag, code=0): runs a program of the build, checks its exit code, returns it."""

    def run(name, *arguments, code=0, **options):
        done = subprocess.run([str(bin_dir / name), *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)
        assert done.returncode == code, f"{name} {arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    return run


@pytest.fixture(scope="session")
def trajectory_hash(run_program):
    """trajectory_hash(bag, map, "--limit", 5): as ndtd says it of a replay."""

    def run(bag, map_path, *arguments, **options):
        text = run_program("ndtd", "--replay", bag, "--map", map_path, *arguments, **options).stdout
        return re.search(r"^trajectory hash +([0-9a-f]{16})$", text, re.MULTILINE).group(1)

    return run


@pytest.fixture(scope="session")
def simulate(run_program, tmp_path_factory):
    """simulate("--scans", 10, ...): a Drive of ndt-sim with these options."""

    def make(*options):
        folder = tmp_path_factory.mktemp("drive")
        run_program("ndt-sim", "--out", folder, *options)
        return Drive(folder, folder / "drive.bag", folder / "map.pcd")

    return make


@pytest.fixture(scope="session")
def drive(simulate):
    """Twenty scans of a street."""
    return simulate("--seed", 5, "--scans", 20, "--beams", 16, "--columns", 600, "--map-spacing", 0.3)


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real recordings; skips without NDT_SHARED_DATA."""
    folder = Path(os.environ.get("NDT_SHARED_DATA") or "-")
    if not folder.is_dir():
        pytest.skip("NDT_SHARED_DATA is not set: no real recordings")
    return folder


@pytest.fixture
def refused(capfd):
    """refused(main, 2, *words): the one line, which begins with its name, that a command ends with; checks the exit code."""

    def call(main, code, *words):
        capfd.readouterr()
        try:
            found = main([str(word) for word in words])
        except SystemExit as ended:
            found = ended.code
        said = capfd.readouterr().err
        prog = sys.modules[main.__module__].parser().prog
        assert found == code and said.startswith(f"{prog}: ") and said.count("\n") == 1, f"{found}: {said}"
        return said

    return call


@pytest.fixture
def map_build_environment(tmp_path):
    """Variables by which ndt-map finds an ndt-map-build of this interpreter."""
    script = tmp_path / "ndt-map-build"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -m ndtd.ndt_map_build \"$@\"\n")
    script.chmod(0o755)
    return {**os.environ, "NDT_MAP_BUILD": str(script)}


@pytest.fixture(scope="module")
def browser():
    """Chromium, for pages of reports; skips without."""
    from report_folders import chromium

    with chromium() as running:
        yield running


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def daemon(bin_dir, tmp_path, drive):
    """A running daemon with the map of the drive."""
    import drive_bags

    with drive_bags.daemon(bin_dir / "ndtd", tmp_path, drive.map, cpu={"threads": 2}, preprocess={"deskew": "time"}) as running:
        yield running


@pytest.fixture(scope="session")
def scans(drive):
    """The scans of the drive, decoded: dicts of stamp_ns, points, time_s, seq ..."""
    import ndtd

    return [ndtd.decode_scan(record.payload) for record in ndtd.BagReader(drive.bag) if record.type == "scan"]


@pytest.fixture(scope="session")
def poses(drive):
    """The true poses of the scans, (4, 4), and with them the map: see street."""
    import ndtd

    replay = ndtd.Replay(drive.bag, drive.map)
    return [replay.truth(scan.stamp_ns) for scan in replay]


@pytest.fixture(scope="session")
def street(drive):
    """The map of the drive."""
    import ndtd

    return ndtd.Map(drive.map)


@pytest.fixture(scope="session")
def fleet_drives(simulate, bin_dir, tmp_path_factory):
    """Short drives over one map, see fleet_runs.LENGTHS."""
    import fleet_runs

    whole = simulate("--seed", 7, "--scans", sum(fleet_runs.LENGTHS), "--beams", 16, "--columns", 600, "--map-spacing", 0.3)
    return fleet_runs.cut(bin_dir / "ndt-bag", whole.bag, whole.map, tmp_path_factory.mktemp("drives"), fleet_runs.LENGTHS)


@pytest.fixture(scope="session")
def fleet_alone(fleet_drives, bin_dir, tmp_path_factory):
    """The result of fleet_drives on one worker that nothing disturbs, which is checked for being whole."""
    import fleet_runs

    folder, count = tmp_path_factory.mktemp("alone"), len(fleet_drives.bags)
    fleet_runs.call("run", "--bags", fleet_drives.pattern, "--map", fleet_drives.map, *fleet_runs.OPTIONS, "--out", folder / "run", "--cache",
                    folder / "cache", "--ndtd", bin_dir / "ndtd", "--workers", 1, environment={}, log=folder / "log")
    digest, runs, scans = fleet_runs.result(folder / "run")
    rows = runs.to_pylist()
    assert len(rows) == 2 * count and {row["status"] for row in rows} == {"done"}
    assert {(row["bag"], row["config"]): row["scans"] for row in rows} == {
        (bag, config): size for bag, size in fleet_drives.scans.items() for config in {row["config"] for row in rows}}
    assert len({row["config"] for row in rows}) == 2 and len({row["trajectory_hash"] for row in rows}) == len(rows)
    assert scans.num_rows == 2 * sum(fleet_drives.scans.values()) and max(row["pieces"] for row in rows) > 1
    return digest, runs, scans
