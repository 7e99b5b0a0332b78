"""What is installed: version, types, extras, the oldest Python."""
import re
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import pytest

import ndtd
from ndtd import _extras

PACKAGE = Path(__file__).resolve().parents[1]


def test_version_is_that_of_the_tree():
    text = (PACKAGE / "../../CMakeLists.txt").read_text()
    assert metadata.version("ndtd") == re.search(r"project\(ndtd VERSION ([0-9.]+)", text).group(1)


def test_types_are_installed():
    folder = resources.files("ndtd")
    assert (folder / "py.typed").is_file()
    assert "class Aligner" in (folder / "_core.pyi").read_text()


def test_every_public_name_has_a_docstring():
    for name in ndtd.__all__:
        assert getattr(ndtd, name).__doc__, name


def test_base_install_needs_numpy_alone():
    needed = [row for row in metadata.requires("ndtd") if "extra ==" not in row]
    assert [re.split(r"[ <>=]", row)[0] for row in needed] == ["numpy"]


def test_missing_package_names_the_extra():
    assert _extras.need("json", "ros").dumps([1]) == "[1]"
    with pytest.raises(_extras.MissingPackage, match=r"^nosuch is not installed: pip install 'ndtd\[ros\]'$"):
        _extras.need("nosuch.part", "ros")


def test_python_3_9_can_read_it():
    pytest.importorskip("vermin")
    found = subprocess.run([sys.executable, "-c", "from vermin import main; main()", "-t=3.9-", "--violations", "--no-tips",
                            "--eval-annotations", str(PACKAGE / "ndtd")], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
