"""The completion of the commands, run in the shell it is for."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ndtd import completion

pytest.importorskip("shtab")


def test_every_command_is_known():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    scripts = re.findall(r'^(ndt-[\w-]+) = "ndtd\.(\w+):(?:main|command)"$', text, re.M)
    assert dict(scripts) == completion.COMMANDS


@pytest.mark.parametrize("command", completion.COMMANDS)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_is_a_script(shell, command):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    done = subprocess.run([shell, "-n"], input=completion.script(shell, command), text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words, wanted", [("ndt-import --sc", "--scan"), ("ndt-export --", "--help")])
def test_completes_options(words, wanted):
    command = words.split()[0]
    run = f"""{completion.script("bash", command)}
COMP_WORDS=({words}) COMP_CWORD=1 COMP_LINE='{words}' COMP_POINT={len(words)} COMPREPLY=()
_shtab_{command.replace("-", "_")} 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", run], text=True, capture_output=True)
    assert wanted in done.stdout.split(), done.stderr


def test_tells_what_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert completion.main(["bash", "ndt-import"]) == 3
    assert "pip install 'ndtd[completion]'" in capsys.readouterr().err
