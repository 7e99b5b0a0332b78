"""ndt-report: the report of a replay, or the comparison of two, as one HTML file."""
import argparse
import gc
import sys
from pathlib import Path
from typing import Optional

from ._arguments import Parser, UsageError, add_version, finish

EXIT_WORSE = 1  # as the tools in C
FILES = ("results.jsonl", "summary.json", "timing.csv", "poses.tum", "config.yaml", "points.bag")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    out = Parser(prog="ndt-report", description="Writes the report of a replay as one HTML file, or compares replays.", epilog="""
RUN: the folder that `ndtd --replay BAG --map MAP --output RUN` writes; ndtd makes both with --report OUT. The page has
trajectory, errors against ground truth (or, without it, what ndtd says about itself), times, scores, states, the worst scans with
pictures, and the settings. With OTHER it compares: what differs, which of both is better by what test, the scans that got worse most; the
verdict is that on OTHER. The page needs no network. Exit status: 0 done, 1 OTHER is worse (--fail-if-worse), 2 usage, 3 failure.""")
    add_version(out)
    out.add_argument("run", metavar="RUN", nargs="?", help="folder of a replay")
    out.add_argument("other", metavar="OTHER", nargs="*", help="folder of another replay of the same scans, to be compared with the first; "
                     "several give a table")
    out.add_argument("--out", metavar="OUT", help="the page, such as out.html; an existing one is replaced")
    out.add_argument("--figures", metavar="DIR", help="also write each figure into this folder")
    out.add_argument("--format", choices=("svg", "png"), help="of the figures (default: svg)")
    out.add_argument("--fail-if-worse", action="store_true", help="with OTHER: exit status 1 when a test, or the number of "
                     "missed scans, says that it is worse")
    out.add_argument("--margin", type=float, metavar="M", help="with OTHER: difference of translation errors that does not matter "
                     "[m] (default: 0.005)")
    out.add_argument("--margin-deg", type=float, metavar="DEG", help="the same for rotations (default: 0.02)")
    out.add_argument("-q", "--quiet", action="store_true", help="do not print where it was written")
    return out


def _check(args: argparse.Namespace) -> None:
    if not args.run:
        raise UsageError("nothing to do: RUN or RUN OTHER is wanted; see --help")
    for name, value in (("--margin", args.margin), ("--margin-deg", args.margin_deg), ("--fail-if-worse", args.fail_if_worse)):
        if value not in (None, False) and not args.other:
            raise UsageError(f"{name} is for comparisons: RUN OTHER")
        if isinstance(value, float) and not 0 <= value < 1000:
            raise UsageError(f"{name}: {value:g} is not a margin from 0 to 1000")
    if not args.out and not (args.other and args.fail_if_worse):
        raise UsageError("--out OUT is wanted: the page to write")
    if args.figures and len(args.other) > 1:
        raise UsageError("--figures: of two runs, or of one")
    if args.format and not args.figures:
        raise UsageError("--format: of which figures? --figures DIR writes them")
    if args.out:
        _check_out(Path(args.out), args)
    if args.figures and Path(args.figures).exists() and not Path(args.figures).is_dir():
        raise UsageError(f"{args.figures}: is not a folder")


def _check_out(out: Path, args: argparse.Namespace) -> None:
    if out.is_dir():
        raise UsageError(f"{out}: is a folder; --out names a file")
    if not out.resolve().parent.is_dir():
        raise UsageError(f"{out}: there is no folder {out.resolve().parent}")
    if out.name in FILES and any(out.resolve().parent == Path(run).resolve() for run in (args.run, *args.other) if run):
        raise UsageError(f"{out}: is a file of the replay")


def _report(args: argparse.Namespace) -> int:
    from .report import page
    from .report.run import Run

    run = Run(args.run)
    if run.ends_early:
        print(f"ndt-report: warning: {run.folder / 'results.jsonl'}: ends within a line: further scans may be missing", file=sys.stderr)
    report = page.write(run, args.out, args.figures, args.format or "svg")
    _say(args, report.verdict.sentence, len(report.drawings))
    return 0


def _compare(args: argparse.Namespace) -> int:
    from .report import comparison

    found = comparison.compare_all([args.run, *args.other], comparison.MARGIN_M if args.margin is None else args.margin,
                                   comparison.MARGIN_DEG if args.margin_deg is None else args.margin_deg)
    for line in dict.fromkeys(line for one in found for line in one.warnings):
        print(f"ndt-report: warning: {line}", file=sys.stderr)
    drawings = 0
    if args.out and len(found) == 1:
        from .report import compare_page

        drawings = len(compare_page.write(found[0], args.out, args.figures, args.format or "svg").drawings)
    elif args.out:
        from .report import compare_table

        compare_table.write(found, args.out)
    _say(args, "\n".join(one.sentence for one in found), drawings)
    return EXIT_WORSE if args.fail_if_worse and any(one.is_worse for one in found) else 0


def _say(args: argparse.Namespace, sentence: str, drawings: int) -> None:
    if args.quiet:
        return
    print(sentence)
    if args.out:
        size = Path(args.out).stat().st_size
        print(f"written: {args.out} ({f'{size / 1e6:.1f} MB' if size > 1e6 else f'{size / 1e3:.0f} kB'})" +
              (f", {drawings} figures in {args.figures}" if args.figures else ""))


def main(arguments: "Optional[list[str]]" = None) -> int:
    """Returns the exit code."""
    args = parser().parse_args(arguments)
    gc.disable()  # the program ends soon: a tenth of its time

    def work() -> int:
        _check(args)
        return (_compare if args.other else _report)(args)

    return finish("ndt-report", work)


if __name__ == "__main__":
    sys.exit(main())
