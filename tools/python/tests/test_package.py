"""The installed package: version, types, extras, the oldest Python."""
import importlib
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
    wanted = re.search(r"project\(ndtd VERSION ([0-9.]+)", text).group(1)
    assert metadata.version("ndtd") == ndtd.__version__ == wanted


def test_types_are_installed():
    folder = resources.files("ndtd")
    assert (folder / "py.typed").is_file()
    assert "class Aligner" in (folder / "_core.pyi").read_text()


def test_every_public_name_has_a_docstring():
    for name in ndtd.__all__:
        value = getattr(ndtd, name)
        if isinstance(value, str):
            continue  # __version__
        assert value.__doc__, name
        members = [member for member in vars(value) if not member.startswith("_")] if isinstance(value, type) else []
        assert all((getattr(value, member).__doc__ or "").strip() for member in members), name


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


def test_the_clients_need_no_compiled_part(tmp_path):
    """The files that `cmake --install` delivers: three files, for the system's Python."""
    rules = (PACKAGE / "../cmake/install.cmake").read_text()
    for name in re.findall(r"tools/python/(\S+\.py)", rules):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((PACKAGE / name).read_text())
    (tmp_path / "ndtd/_version.py").write_text("__version__ = '1.2.3'\n")  # made of the version of the project
    script = """if True:
        import sys
        sys.meta_path = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
        sys.path.insert(0, sys.argv[1])
        import ndtd
        assert ndtd.__file__.startswith(sys.argv[1]), ndtd.__file__
        assert ndtd.__version__ == "1.2.3"
        ndtd.Client("ipc:///tmp/a", "ipc:///tmp/b", "ipc:///tmp/c").close()
        try:
            ndtd.Map
        except AttributeError as reason:
            assert "pip install" in str(reason)
        else:
            sys.exit("ndtd.Map is there")
    """
    pytest.importorskip("zmq")
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


@pytest.mark.parametrize("command", ["ndt_import", "ndt_export", "map_import", "ndt_ros1_bridge", "ndt_ros2_bridge", "ndt_report", "ndt_fleet",
                                     "ndt_foxglove", "ndt_rerun"])
def test_commands_tell_the_version(command, capsys):
    module = importlib.import_module(f"ndtd.{command}")
    with pytest.raises(SystemExit) as end:
        getattr(module, "main", getattr(module, "command", None))(["--version"])
    assert end.value.code == 0 and re.fullmatch(r"ndt-[a-z0-9 -]+ \d+\.\d+\.\d+\n", capsys.readouterr().out)


@pytest.mark.parametrize("command, arguments, told", [
    ("ndt_import", [], "ndt-import: the following arguments are required: recording; ndt-import --help tells more"),
    ("ndt_import", ["a", "--nosuch\n"], "ndt-import: unrecognized arguments: --nosuch; ndt-import --help tells more"),
    ("ndt_export", ["a"], "ndt-export: the following arguments are required: OUT; ndt-export --help tells more"),
    ("map_import", ["a"], "ndt-import map: the following arguments are required: -o/--out; ndt-import map --help tells more"),
    ("ndt_ros2_bridge", ["--tf-ahead", "x"],
     "ndt-ros2-bridge: argument --tf-ahead: invalid float value: 'x'; ndt-ros2-bridge --help tells more"),
    ("ndt_report", ["a", "--margin", "x"], "ndt-report: argument --margin: invalid float value: 'x'; ndt-report --help tells more"),
    ("ndt_fleet", [], "ndt-fleet: the following arguments are required: COMMAND; ndt-fleet --help tells more"),
    ("ndt_fleet", ["report"], "ndt-fleet report: the following arguments are required: RUN; ndt-fleet report --help tells more")])
def test_a_wrong_command_line_is_one_line(command, arguments, told, capsys):
    with pytest.raises(SystemExit) as end:
        importlib.import_module(f"ndtd.{command}").main(arguments)
    assert (end.value.code, capsys.readouterr().err) == (2, told + "\n")
