"""Completion of the commands of this package for a shell, made by shtab from their parsers.

    python -m ndtd.completion bash ndt-import >~/.local/share/bash-completion/completions/ndt-import
    python -m ndtd.completion zsh ndt-import >~/.zsh/completions/_ndt-import        # a folder of $fpath
"""
import importlib
import sys
from typing import List, Optional

from ._arguments import Parser
from ._extras import MissingPackage, need

COMMANDS = {"ndt-import": "ndt_import", "ndt-export": "ndt_export", "ndt-ros1-bridge": "ndt_ros1_bridge",
            "ndt-ros2-bridge": "ndt_ros2_bridge", "ndt-report": "ndt_report", "ndt-fleet": "ndt_fleet",
            "ndt-map-build": "ndt_map_build", "ndt-tune": "ndt_tune", "ndt-calibrate": "ndt_calibrate", "ndt-foxglove": "ndt_foxglove",
            "ndt-rerun": "ndt_rerun"}
SHELLS = ("bash", "zsh", "tcsh")


def script(shell: str, command: str) -> str:
    """The completion of `command` (one of COMMANDS) for `shell` (one of SHELLS); MissingPackage without shtab."""
    shtab = need("shtab", "completion")
    module = importlib.import_module(f".{COMMANDS[command]}", __package__)
    parser = module.parser()
    parser.prog = command  # `ndt-map build` is two words
    return shtab.complete(parser, shell)


def main(arguments: Optional[List[str]] = None) -> int:
    """The command line; returns the exit code: 0 done, 2 usage, 3 shtab is missing."""
    parser = Parser(prog="python -m ndtd.completion", description=__doc__.split("\n", 1)[0],
                    allow_abbrev=False)
    parser.add_argument("shell", choices=SHELLS)
    parser.add_argument("command", choices=sorted(COMMANDS))
    options = parser.parse_args(arguments)
    try:
        print(script(options.shell, options.command))
    except MissingPackage as error:
        print(f"ndtd.completion: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
