"""ndt-fleet: replays of many bags with several configurations on a cluster, their tables and their report."""
import sys
from typing import Optional


def main(arguments: "Optional[list[str]]" = None) -> int:
    """The command; returns its exit code."""
    print("ndt-fleet: not ready", file=sys.stderr)
    return 3


if __name__ == "__main__":
    sys.exit(main())
