"""ndt-map build that is killed goes on, and ends with the bytes of one that ran through; work that cannot be used is not."""
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from ndtd import ndt_map_build

SMALL = ("--beams", 16, "--columns", 600, "--map-spacing", 0.3)
# Kills the process before or after the record that is written as number COUNT, with a record after each submap; 0: never.
KILLED = """
import os, signal, sys
from ndtd import ndt_map_build
from ndtd.mapping import work_state
count, is_before = int(sys.argv[1]), sys.argv[2] == "before"
write, written = work_state.WorkState._write, [0]
work_state.WorkState.is_due = lambda self: True

def kill(self, name, content):
    written[0] += 1
    if written[0] == count and is_before:
        (self.folder / f"{name}.new").write_bytes(content[:7])
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, name, content)
    if written[0] == count:
        os.kill(os.getpid(), signal.SIGKILL)

work_state.WorkState._write = kill
code = ndt_map_build.main(sys.argv[3:])
print(written[0])
sys.exit(code)
"""


@pytest.fixture(scope="module")
def drives(simulate):
    """The same street, measured twice."""
    return [simulate("--seed", 8, "--scans", scans, "--noise", noise, *SMALL).bag for scans, noise in ((30, 0.02), (24, 0.03))]


def arguments(drives, out):
    return [*map(str, drives), "-o", str(out), "--refine", "--clean", "--quiet", "--threads", "1"]


def build_and_kill(drives, out, count, moment="after"):
    return subprocess.run([sys.executable, "-c", KILLED, str(count), moment, *arguments(drives, out)], capture_output=True, text=True,
                          timeout=500, check=False)


def files_of(folder):
    """The bytes of each file; of map.json without the time that it took."""
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    found["map.json"] = {key: value for key, value in json.loads(found["map.json"]).items() if key != "seconds"}
    return found


@pytest.fixture(scope="module")
def whole(drives, tmp_path_factory):
    """A map whose build ran through, and the number of records that it wrote."""
    out = tmp_path_factory.mktemp("whole") / "map"
    done = build_and_kill(drives, out, 0)
    assert done.returncode == 0, done.stderr
    return out, int(done.stdout)


@pytest.fixture(scope="module")
def stopped(drives, whole, tmp_path_factory):
    """stopped(count, folder): in the folder is what a build leaves that was killed at this record. Each is built once."""
    made = {}

    def copy(count, folder):
        if count not in made:
            made[count] = tmp_path_factory.mktemp("stopped")
            build_and_kill(drives, made[count] / "map", count)
        shutil.copytree(made[count], folder, dirs_exist_ok=True)

    return copy


def test_a_build_that_is_killed_goes_on(drives, whole, tmp_path):
    """Each life ends at the first record that it writes: before it is in its place, and the next one behind it."""
    known, records = whole
    assert records >= 7  # identity, odometry of two, loops, refinement, what moved
    out, lives = tmp_path / "map", 0
    while not out.exists():
        done = build_and_kill(drives, out, 1, ("before", "after")[lives % 2])
        assert done.returncode in (0, -signal.SIGKILL) and done.stderr == ""
        lives += 1
        assert lives <= 2 * records + 1
    assert lives > records and files_of(out) == files_of(known) and not (tmp_path / "map.part").exists()


@pytest.mark.parametrize("name", ["map.pcd", "poses1.tum", "map.json"])
def test_a_build_that_is_killed_while_the_map_is_written(drives, whole, stopped, tmp_path, name):
    known, records = whole
    out = tmp_path / "map"
    stopped(records, tmp_path)
    made = tmp_path / "map.part/map"
    made.mkdir(exist_ok=True)
    (made / name).write_bytes(b"half")
    assert ndt_map_build.main(arguments(drives, out)) == 0
    assert files_of(out) == files_of(known)


def _flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize(("damage", "said"), [
    (lambda part: _flip(part / "odometry0.npz"), "odometry0.npz is damaged"),
    (lambda part: _flip(part / "clouds"), "clouds is damaged"),
    (lambda part: (part / "clouds").unlink(), "clouds is damaged"),
    (lambda part: os.truncate(part / "loops.npz", 40), "loops.npz is damaged"),
    (lambda part: _flip(part / "identity"), "its identity is damaged"),
])
def test_damaged_work_is_not_used(drives, whole, stopped, tmp_path, capsys, damage, said):
    known, records = whole
    out = tmp_path / "map"
    stopped(records - 1, tmp_path)
    damage(tmp_path / "map.part")
    assert ndt_map_build.main(arguments(drives, out)) == 0
    told = capsys.readouterr().err
    assert said in told and "the build begins anew" in told and told.count("\n") == 1
    assert files_of(out) == files_of(known)


def test_work_of_something_else_is_not_used(drives, whole, tmp_path, capsys):
    """Other arguments; the same name with another recording behind it."""
    known, _ = whole
    drive, out = tmp_path / "drive.bag", tmp_path / "map"
    shutil.copy(drives[0], drive)
    build_and_kill([drive], out, 2)
    assert ndt_map_build.main([str(drive), "-o", str(out), "--quiet", "--threads", "1", "--no-loops"]) == 0
    assert "of other arguments, recordings, or another version; the build begins anew" in capsys.readouterr().err
    shutil.rmtree(out)
    build_and_kill([drive], out, 2)
    shutil.copy(drives[1], drive)
    assert ndt_map_build.main(arguments([drive], out)) == 0
    assert "the build begins anew" in capsys.readouterr().err
    assert json.loads((out / "map.json").read_text())["drives"][0]["scans"] == 24
    assert known.exists()


def test_folders_of_others_are_left_alone(drives, tmp_path, capsys):
    (tmp_path / "map.part").mkdir()
    (tmp_path / "map.part/precious").write_text("mine")
    assert ndt_map_build.main(arguments(drives, tmp_path / "map")) == 2
    said = capsys.readouterr().err
    assert "map.part: is not of this command" in said and said.count("\n") == 1
    assert (tmp_path / "map.part/precious").read_text() == "mine"
