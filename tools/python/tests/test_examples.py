"""The examples run and say what they promise."""
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
TESTED = {"align_two_clouds.py", "replay_and_plot.py", "drive_daemon.py"}


def example(name, *arguments, code=0, cwd=None):
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
                          timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_tested(monkeypatch, capsys):
    assert {path.name for path in EXAMPLES.glob("*.py")} == TESTED
    for path in EXAMPLES.glob("*.py"):
        monkeypatch.setattr(sys, "argv", [path.name, "--help"])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(path), run_name="__main__")
        assert not end.value.code and "usage:" in capsys.readouterr().out


def test_align_two_clouds(drive, scans, tmp_path):
    (tmp_path / "a.bin").write_bytes(with_zeros(scans[0]["points"]))
    (tmp_path / "b.bin").write_bytes(with_zeros(scans[1]["points"]))
    said = example("align_two_clouds.py", tmp_path / "a.bin", tmp_path / "b.bin")
    assert said.startswith("converged\nT_target_source:") and "level 1 m" in said
    assert "level 4 m" not in example("align_two_clouds.py", tmp_path / "a.bin", tmp_path / "b.bin", "--level", 1)


def with_zeros(points):
    import numpy as np

    return np.hstack([points, np.zeros((len(points), 1), "f4")]).tobytes()


def test_replay_and_plot(drive, tmp_path):
    pytest.importorskip("matplotlib")
    said = example("replay_and_plot.py", drive.bag, drive.map, "--set", "preprocess.deskew=time", "-o", tmp_path / "a.png")
    assert "20 scans, trajectory hash " in said and (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("name, arguments, words", [
    ("align_two_clouds.py", ["nosuch.pcd", "b.pcd"], "nosuch.pcd: cannot open"),
    ("replay_and_plot.py", ["nosuch.bag", "map.pcd"], "nosuch.bag")])
def test_wrong_input_is_one_line(name, arguments, words, tmp_path):
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *map(str, arguments)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith(f"{name}: ") and words in done.stderr and done.stderr.count("\n") == 1
