"""The programs in C that the package brings, as commands: ndtd, ndt-sim, ndt-web and the others.

Beside the package ndtd, because a command need not wait until that has loaded numpy.
"""
import os
import sys
from pathlib import Path
from shutil import which

FOLDER = Path(__file__).parent / "bin"


def main() -> int:
    """Becomes the program that the command is named after, which finds the other commands on PATH."""
    command = Path(sys.argv[0])
    commands = os.path.abspath(command.parent)
    others = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.abspath(folder) != commands]
    # A package may be built without programs: then it is one that is installed elsewhere.
    program = FOLDER / command.name
    found = str(program) if program.exists() else which(command.name, path=os.pathsep.join(others))
    if not found:
        print(f"{command.name}: this package was built without it (NDT_PROGRAMS=OFF), and PATH has no other", file=sys.stderr)
        return 3
    os.environ["PATH"] = os.pathsep.join([commands, *others])
    try:
        os.execv(found, [command.name, *sys.argv[1:]])
    except OSError as error:
        print(f"{command.name}: {found}: {error.strerror}", file=sys.stderr)
    return 3
