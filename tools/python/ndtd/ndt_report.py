"""ndt-report: the report of a replay as one HTML file."""
import argparse
import sys
from pathlib import Path
from typing import Optional

from ._arguments import add_version
from ._extras import MissingPackage, os_error_text

EXIT_USAGE, EXIT_FAILED, EXIT_STOPPED = 2, 3, 130  # as the tools in C


class UsageError(Exception):
    """A command line that cannot be used; one line for the user."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    out = argparse.ArgumentParser(prog="ndt-report", description="Writes the report of a replay as one HTML file.", epilog="""
RUN: the folder that `ndtd --replay BAG --map MAP --output RUN` writes; ndtd makes both with --report OUT. The page has
trajectory, errors against ground truth (or, without it, what ndtd says about itself), times, scores, states, the worst scans with
pictures, and the settings. It needs no network.""")
    add_version(out)
    out.add_argument("run", metavar="RUN", help="folder of a replay")
    out.add_argument("--out", metavar="OUT", required=True, help="the page, such as out.html; an existing one is replaced")
    out.add_argument("--figures", metavar="DIR", help="also write each figure into this folder")
    out.add_argument("--format", choices=("svg", "png"), help="of the figures (default: svg)")
    out.add_argument("-q", "--quiet", action="store_true", help="do not print where it was written")
    return out


def _check(args: argparse.Namespace) -> None:
    out = Path(args.out)
    if args.format and not args.figures:
        raise UsageError("--format: of which figures? --figures DIR writes them")
    if out.is_dir():
        raise UsageError(f"{out}: is a folder; --out names a file")
    if not out.resolve().parent.is_dir():
        raise UsageError(f"{out}: there is no folder {out.resolve().parent}")
    if out.resolve().parent == Path(args.run).resolve() and out.name in (
            "results.jsonl", "summary.json", "timing.csv", "poses.tum", "config.yaml", "points.bag"):
        raise UsageError(f"{out}: is a file of the replay")
    if args.figures and Path(args.figures).exists() and not Path(args.figures).is_dir():
        raise UsageError(f"{args.figures}: is not a folder")


def main(arguments: "Optional[list[str]]" = None) -> int:
    """Returns the exit code."""
    args = parser().parse_args(arguments)
    try:
        _check(args)
        from .report import page
        from .report.run import Run

        report = page.write(Run(args.run), args.out, args.figures, args.format or "svg")
        if not args.quiet:
            size = Path(args.out).stat().st_size / 1e6
            print(f"{report.verdict.sentence}\nwritten: {args.out} ({size:.1f} MB)" +
                  (f", {len(report.drawings)} figures in {args.figures}" if args.figures else ""))
    except UsageError as error:
        print(f"ndt-report: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (OSError, ValueError, MissingPackage) as error:
        text = os_error_text(error) if isinstance(error, OSError) else str(error)
        print(f"ndt-report: {text}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("ndt-report: stopped; nothing was written", file=sys.stderr)
        return EXIT_STOPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
