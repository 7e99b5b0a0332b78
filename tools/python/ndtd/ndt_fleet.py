"""ndt-fleet: replays of many bags with several configurations on a cluster, their tables and their report."""
import argparse
import contextlib
import fcntl
import io
import json
import os
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Optional

from . import ndt_import
from ._arguments import Parser, UsageError, add_version, finish
from ._extras import need
from ._progress import Progress
from .fleet import bags as bag_patterns
from .fleet import cluster, job_settings, tables
from .fleet.coordinator import GOES_ON, Coordinator, Listed, Outcome
from .fleet.run_folder import Bag, FleetError, Job, RunFolder
from .report.verdict import count

EXIT_WORSE = 1  # as the tools in C
GIB = float(1 << 30)
LATE_S = 60.0  # after which NFS has looked for files that were not there before
LINES = 5  # of a program that failed
BEFORE_RUN = ("lock", "configs", "bags.json", ".bags.json.part", ".run.json.part")  # names in a folder whose run.json is still to come
PROTECTED = ("secret", "password", "token", "account_key", "connection_string", "authorization")


# ---- command line


def parser() -> argparse.ArgumentParser:
    """The command line."""
    out = Parser(prog="ndt-fleet", description="Replays many bags with several configurations on a cluster (Dask), and "
                 "says what came out.", epilog="Exit status: 0 done, 1 a task failed, or RUN is worse "
                 "(--fail-if-worse), 2 usage, 3 failure, 130 stopped.")
    add_version(out)
    commands = out.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_run(commands.add_parser("run", help="replay, or go on with a run", description="Replays every bag with every configuration. "
                                 "What is done is not done again: the same command, or `ndt-fleet run --out RUN`, goes on.",
                                 epilog="OPTIONS after -- are those of ndt-import, for recordings that are no bag.bin."))
    state = commands.add_parser("status", help="how far a run is",
                                description="Says how far a run is, on any machine that sees its folder.")
    state.add_argument("run", metavar="RUN")
    state.add_argument("--json", action="store_true")
    _add_report(commands.add_parser("report", help="one HTML file: what came out, and where to survey again",
                                    description="Writes the report of a run: totals, worst drives, the places of the map to survey again, "
                                    "configurations compared; with --against the verdict on RUN against another run of the same "
                                    "recordings."))
    return out


def _add_report(report: argparse.ArgumentParser) -> None:
    report.add_argument("run", metavar="RUN")
    report.add_argument("--against", metavar="RUN2", help="the run before; drives are paired by the content of their bags")
    report.add_argument("--out", metavar="FILE.html", help="an existing one is replaced (default: RUN/report.html)")
    report.add_argument("--configuration", metavar="NAME", help="of a sweep: the one that the page shows and compares (default: the first)")
    report.add_argument("--fail-if-worse", action="store_true", help="exit status 1 when RUN is worse than RUN2")
    report.add_argument("--margin", type=float, metavar="M", help="difference of translation errors that does not matter [m] "
                        "(default: 0.005)")
    report.add_argument("--margin-deg", type=float, metavar="DEG", help="the same for rotations (default: 0.02)")
    report.add_argument("--figures", metavar="DIR", help="also write each figure into this folder")
    report.add_argument("--drives", type=int, default=0, metavar="N", help="replay the N worst drives here, write their reports into "
                        "FILE-drives and link them, at most 12 (default: 0)")
    report.add_argument("-q", "--quiet", action="store_true", help="print nothing")


def _add_run(run: argparse.ArgumentParser) -> None:
    what = run.add_argument_group("what is replayed")
    what.add_argument("--bags", action="extend", nargs="+", metavar="PATTERN", help="paths or urls of recordings, with * ** ? {a,b}; "
                      "@FILE: one per line; may be repeated")
    what.add_argument("--map", metavar="URL", help="cloud, folder of tiles or .ndtmap")
    what.add_argument("-c", "--config", action="append", default=[], metavar="FILE",
                      help="settings of ndtd; may be repeated, later ones win")
    what.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting; may be repeated")
    what.add_argument("--sweep", action="append", default=[], metavar="KEY=VALUE,VALUE...", help="a configuration for each value; with "
                      "several --sweep for every combination")
    what.add_argument("--out", required=True, metavar="RUN", help="folder of the run, which all workers see under this path")
    what.add_argument("--piece", type=float, metavar="MINUTES", help="longer bags are replayed in pieces; 0: never (default: 10)")
    what.add_argument("--warm-up", type=float, metavar="S", help="before each piece, to be at the pose of the whole replay (default: 5)")
    where = run.add_argument_group("where")
    where.add_argument("--cluster", default="local", metavar="ENGINE", help="local; slurm, pbs, lsf, sge, oar, htcondor, moab "
                       "(dask-jobqueue); tcp://HOST:8786 or FILE.json of a scheduler; package.Class of a cluster (default: local)")
    where.add_argument("--workers", type=int, default=0, metavar="N", help="(default: cores)")
    where.add_argument("--cluster-option", action="append", default=[], metavar="KEY=VALUE", help="argument of the cluster, such as "
                       "queue=night; may be repeated")
    where.add_argument("--worker-timeout", type=float, default=300.0, metavar="S", help="how long to wait for a worker (default: 300)")
    where.add_argument("--ndtd", metavar="PROGRAM", help="name or path on the workers (default: in $NDT_BIN, beside Python, on PATH)")
    where.add_argument("--cache", metavar="DIR", help="of each worker's machine (default: ~/.cache/ndtd-fleet)")
    where.add_argument("--cache-size", type=float, metavar="GIB", help="(default: 50)")
    where.add_argument("--storage-option", action="append", default=[], metavar="KEY=VALUE",
                       help="of fsspec, such as s3.endpoint_url=http://...; secrets come from the environment")
    how = run.add_argument_group("how")
    how.add_argument("--priority", action="append", default=[], metavar="PATTERN=N", help="bags that are replayed earlier; others have 0")
    how.add_argument("--retries", type=int, default=2, metavar="N", help="of a task that fails (default: 2)")
    how.add_argument("--timeout", type=float, metavar="S", help="of one replay (default: by its length)")
    how.add_argument("--memory", type=float, metavar="GIB", help="of one replay (default: 4)")
    how.add_argument("--json", metavar="FILE", help="also write the summary; - : standard output, instead of the text")
    how.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary; failures are told")


def _check(args: argparse.Namespace) -> None:
    ranges = (("--piece", args.piece, 0, 1e6), ("--warm-up", args.warm_up, 0, 3600), ("--worker-timeout", args.worker_timeout, 1, 1e6),
              ("--workers", args.workers, 0, 1e6), ("--retries", args.retries, 0, 1000), ("--timeout", args.timeout, 1, 1e7),
              ("--memory", args.memory, 0.01, 1e5), ("--cache-size", args.cache_size, 0.01, 1e7))
    for name, value, least, most in ranges:
        if value is not None and not least <= value <= most:
            raise UsageError(f"{name}: {value:g} is not from {least:g} to {most:g}")
    if not args.out:
        raise UsageError("--out: is empty")
    if args.json and args.json != "-" and (Path(args.json).is_dir() or not Path(args.json).resolve().parent.is_dir()):
        raise UsageError(f"--json: {args.json}: " + ("is a folder" if Path(args.json).is_dir() else "its folder is not there"))
    if args.bags is None and (args.map or args.config or args.set or args.sweep) and not _is_run(Path(args.out)):
        raise UsageError("--bags is wanted: patterns of recordings")


def _priorities(words: "list[str]") -> "list[tuple[str, int]]":
    out = []
    for word in words:
        pattern, equals, number = word.rpartition("=")
        try:
            out.append((pattern, int(number)))
        except ValueError:
            equals = ""
        if not equals or not pattern:
            raise UsageError(f"--priority: '{word}': PATTERN=N is wanted, N a whole number")
    return out


def _storage(words: "list[str]") -> "dict[str, Any]":
    """"s3.client_kwargs.region_name=x" as {"s3": {"client_kwargs": {"region_name": "x"}}}."""
    out: "dict[str, Any]" = {}
    for word in words:
        key, equals, value = word.partition("=")
        *path, name = key.split(".")
        if not equals or not path or not all([*path, name]):
            raise UsageError(f"--storage-option: '{word}': PROTOCOL.NAME=VALUE is wanted, such as s3.endpoint_url=http://...")
        if any(part in key.lower() for part in PROTECTED) or bag_patterns.SECRET.search(value):
            raise UsageError(f"--storage-option: {key}: secrets come from the environment; the folder of a run may be read by others")
        place = out
        for part in path:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise UsageError(f"--storage-option: {key}: {part} has a value")
        place[name] = cluster.plain_value(value)
    return out


# ---- the folder of the run


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file()


def _goes_on(path: Path, args: argparse.Namespace) -> bool:
    """A run without any result, as of a map that could not be read, may begin anew with other words."""
    return _is_run(path) and not (args.bags and args.map and not any(any(path.glob(f"{one}/*/*.parquet")) for one in ("done", "pieces")))


def _check_folder(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise UsageError(f"--out: {path}: is not a folder")
    if path.is_dir() and not _is_run(path) and any(one.name not in BEFORE_RUN for one in path.iterdir()):
        raise UsageError(f"--out: {path}: has other files and no run.json: it is not the folder of a run")


@contextlib.contextmanager
def _locked(path: Path) -> "Iterator[None]":
    """Holds the lock of the folder, for one `run` at a time. A new folder is removed when nothing was written to it."""
    try:
        path.mkdir(parents=True)
        is_new = True
    except FileExistsError:
        is_new = False
    with open(path / "lock", "a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stream.seek(0)
            who = stream.read(200).strip() or "its host is not known"
            raise FleetError(f"{path}: another `ndt-fleet run` works on it ({who})") from None
        stream.truncate(0)
        stream.write(f"host {socket.gethostname()}, pid {os.getpid()}\n")
        stream.flush()
        try:
            yield
        finally:
            if is_new and not _is_run(path):
                shutil.rmtree(path, ignore_errors=True)


def _program(named: "Optional[str]", former: Optional[Job]) -> str:
    """A name stays a name, which each worker finds on its PATH."""
    named = named or (former.program if former else "")
    if named:
        return os.path.abspath(named) if os.sep in named else str(named)
    places = [os.environ.get("NDT_BIN", ""), os.path.dirname(sys.executable)]
    for place in places:
        found = shutil.which("ndtd", path=place) if place else None
        if found:
            return os.path.abspath(found)
    found = shutil.which("ndtd")
    if not found:
        raise UsageError("ndtd is not there: neither in $NDT_BIN, nor beside Python, nor on PATH; --ndtd names the program")
    return os.path.abspath(found)


def _map(url: str) -> str:
    bag_patterns.check_url(url, "--map")
    if "://" in url:
        return url
    if not Path(url).exists():
        raise UsageError(f"--map: {url}: no such file or folder")
    return os.path.abspath(url)


def _patterns(args: argparse.Namespace) -> "tuple[str, ...]":
    return tuple(bag_patterns.absolute(one) for one in args.bags or ())


def _check_import(options: "tuple[str, ...]") -> None:
    """Refuses options here, and not first at every recording: those that ndt-import refuses, and those that are not the user's to set."""
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(said):
        try:
            found = ndt_import.parser().parse_args(["-", *options])
        except SystemExit:
            why = said.getvalue().strip().split("ndt-import: ", 1)
            raise UsageError(f"--: options of ndt-import: {why[-1] if len(why) > 1 else ' '.join(options)}") from None
    if found.recording != ["-"] or found.out or found.list or found.json:
        raise UsageError(f"--: options of ndt-import: '{' '.join(options)}': recordings, outputs and --list have no place here")


def _new_job(args: argparse.Namespace, folder: RunFolder, options: "tuple[str, ...]") -> Job:
    if not args.bags or not args.map:
        raise UsageError(f"{args.out}: is a new run: {'--map' if args.bags else '--bags'} is wanted")
    program = _program(args.ndtd, None)
    version = job_settings.version_of(program)
    found = job_settings.configurations(program, args.config, args.set, args.sweep, folder)
    piece_min = 10.0 if args.piece is None else args.piece
    warm_up_s = 5.0 if args.warm_up is None else args.warm_up
    job = Job("", version, _map(args.map), found, options, 60.0 * piece_min, warm_up_s, _patterns(args), program=program,
              memory_bytes=int(4 * GIB))
    return _with_limits(job, args)


def _old_job(args: argparse.Namespace, folder: RunFolder, options: "tuple[str, ...]") -> Job:
    """The job of the folder, with the limits of this call. UsageError: this call would have other results."""
    former = folder.job()
    program = _program(args.ndtd, former)
    changes = [("ndtd", former.version, job_settings.version_of(program))]
    if args.map:
        changes.append(("--map", former.map, _map(args.map)))
    if options:
        changes.append(("options of ndt-import", " ".join(former.import_options), " ".join(options)))
    if args.piece is not None:
        changes.append(("--piece", f"{former.piece_s / 60:g}", f"{args.piece:g}"))
    if args.warm_up is not None:
        changes.append(("--warm-up", f"{former.warm_up_s:g}", f"{args.warm_up:g}"))
    for name, before, now in changes:
        if before != now:
            raise UsageError(f"{folder.path}: {name}: '{before}' there, '{now}' now: use another --out; `ndt-fleet report` compares runs")
    if args.config or args.set or args.sweep:
        _check_configurations(args, folder, former, program)
    patterns = tuple(dict.fromkeys((*former.patterns, *_patterns(args))))
    return _with_limits(replace(former, program=program, patterns=patterns), args)


def _check_configurations(args: argparse.Namespace, folder: RunFolder, former: Job, program: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        wanted = job_settings.configurations(program, args.config, args.set, args.sweep, RunFolder(scratch))
    before, now = ({one.name: one.hash for one in some} for some in (former.configurations, wanted))
    for name in [*now, *before]:
        if before.get(name) != now.get(name):
            why = ("is not in the run" if name not in before else "is in the run, and not wanted now" if name not in now
                   else "has other settings")
            raise UsageError(f"{folder.path}: configuration {name} {why}: use another --out; `ndt-fleet report` compares runs")


def _with_limits(job: Job, args: argparse.Namespace) -> Job:
    """Limits and places are those of the last call that names them."""
    new: "dict[str, Any]" = {}
    if args.cache:
        new["cache"] = os.path.abspath(os.path.expanduser(args.cache))
    if args.cache_size is not None:
        new["cache_bytes"] = int(args.cache_size * GIB)
    if args.timeout is not None:
        new["timeout_s"] = args.timeout
    if args.memory is not None:
        new["memory_bytes"] = int(args.memory * GIB)
    if args.storage_option:
        new["storage"] = _storage(args.storage_option)
    return replace(job, **new)


# ---- run


def _run(args: argparse.Namespace, options: "tuple[str, ...]") -> int:
    _check(args)
    _check_import(options)
    path = Path(args.out).resolve()
    _check_folder(path)
    rules = _priorities(args.priority)
    wish = cluster.Wish(args.cluster, args.workers, cluster.parse_options(args.cluster_option), args.worker_timeout,
                        int((args.memory or 4.0) * GIB), path)
    cluster.check(wish)
    folder = RunFolder(path)
    with _locked(path):
        job = _old_job(args, folder, options) if _goes_on(path, args) else _new_job(args, folder, options)
        job = replace(job, token=uuid.uuid4().hex)  # of this call: workers see its limits, and none goes on for an earlier one
        bags = bag_patterns.prioritised(bag_patterns.find(job.patterns, job.storage), rules)
        folder.write_json(path / "bags.json", [asdict(one) for one in bags])
        folder.save_job(job)
        outcome = _replay(args, folder, job, bags, wish)
        made = tables.collect(path, quiet=args.quiet)
        if made.done + made.broken < outcome.done:  # a shared file system shows new files late
            time.sleep(LATE_S)
            made = tables.collect(path, quiet=args.quiet)
        return _summary(args, folder, job, outcome, made)


def _replay(args: argparse.Namespace, folder: RunFolder, job: Job, bags: "list[Bag]", wish: cluster.Wish) -> Outcome:
    plan: Optional[Coordinator] = None
    try:
        with cluster.quiet(folder.path / "engine.log"), cluster.connect(wish) as engine, Progress("replaying", args.quiet) as progress:
            def tell(one: Outcome, rate: float) -> None:
                ended = one.done + one.failed
                progress.update(ended / max(one.total, 1), f"{ended} of {one.total}, {rate:.0f} scans/s, {count(one.workers, 'worker')}" +
                                (f", {one.failed} failed" if one.failed else ""))

            plan = Coordinator(folder, job, bags, engine, args.retries, tell=tell)
            return plan.run()
    except KeyboardInterrupt:
        done, total = (plan.outcome.done, plan.outcome.total) if plan else (0, len(bags) * len(job.configurations))
        raise KeyboardInterrupt(f"stopped: {done} of {total} done; {GOES_ON}") from None


def _summary(args: argparse.Namespace, folder: RunFolder, job: Job, one: Outcome, made: tables.Tables) -> int:
    found = {"run": str(folder.path), "version": job.version, "bags": one.bags, "total": one.total, "done": one.done,
             "present": one.present, "failed": one.failed, "scans": one.scans, "replayed": one.replayed, "seconds": round(one.seconds, 3),
             "scans_per_s": round(one.replayed / max(one.seconds, 1e-9), 1), "workers": one.workers, "lost": one.lost,
             "digest": tables.digest(made.runs), "failures": [asdict(failure) for failure in one.failures.first],
             "damaged": [{"bag": index.url, "damage": index.damage} for index in one.damaged.first],
             "copies": [{"bag": url, "of": first} for url, first in one.copies.first]}
    if args.json and args.json != "-":
        folder.write_whole(Path(args.json).resolve(), (json.dumps(found, indent=1) + "\n").encode())
    if args.json == "-":
        print(json.dumps(found, indent=1))
    elif not args.quiet:
        print("\n".join(_summary_lines(found, one)))
    elif one.failed:
        print(f"ndt-fleet: {count(one.failed, 'task')} of {one.total} failed", file=sys.stderr)
    if made.done + made.broken < one.done:
        print(f"ndt-fleet: {folder.path}: {count(one.done - made.done - made.broken, 'result')} cannot be seen from here; {GOES_ON}",
              file=sys.stderr)
    return EXIT_WORSE if one.failed or made.broken or made.done < one.done else 0


def _summary_lines(found: "dict[str, Any]", one: Outcome) -> "list[str]":
    earlier = f" ({one.present} by an earlier call)" if one.present else ""
    lines = [f"tasks    {one.done} of {one.total} done{earlier}, {one.failed} failed",
             f"bags     {one.bags}, {one.damaged.count} damaged, {one.copies.count} copies of others",
             f"scans    {one.scans}" + (f"; {one.replayed} of this call in {one.seconds:.4g} s: {found['scans_per_s']:.4g} scans/s with "
                                        f"{count(one.workers, 'worker')}" if one.replayed else "")]
    if one.lost:
        lines.append(f"lost     {count(one.lost, 'task')} with a worker that died; replayed by others")
    for failure in one.failures.first:
        lines.append(f"failed   {failure.bag}{f' with {failure.config}' if failure.config else ''}: {failure.reason} ({failure.kind}, "
                     f"{count(failure.attempts, 'attempt')})")
        lines += [f"         {line}" for line in failure.further_lines[-LINES:]]
    lines += _further(one.failures, "failed")
    lines += [f"damaged  {index.url}: {index.damage}" for index in one.damaged.first] + _further(one.damaged, "damaged")
    lines += [f"copy     {url}: of {first}" for url, first in one.copies.first] + _further(one.copies, "copies")
    lines += [f"digest   {found['digest']}", f"report   ndt-fleet report {shlex.quote(found['run'])} --out report.html"]
    return ["".join(letter if letter.isprintable() else "?" for letter in line) for line in lines]


def _further(listed: Listed, what: str) -> "list[str]":
    more = listed.count - len(listed.first)
    return [f"         and {more} more {what}: `ndt-fleet status`, runs.parquet"] if more else []


# ---- status


def _status(args: argparse.Namespace) -> int:
    from .fleet import status

    found = status.read(args.run)
    print(json.dumps(found, indent=1) if args.json else status.text(found))
    return 0


# ---- report


def _report(args: argparse.Namespace) -> int:
    out = Path(args.out) if args.out else Path(args.run) / "report.html"
    _check_report(args, out)
    need("matplotlib", "fleet")
    from .report import comparison, fleet_page

    for folder in filter(None, (args.run, args.against)):
        _collect(folder)
    page = fleet_page.write(args.run, args.against, out=out, configuration=args.configuration, figures=args.figures,
                            drives=(lambda found: _drive_pages(found, args, out)) if args.drives else None,
                            margin_m=comparison.MARGIN_M if args.margin is None else args.margin,
                            margin_deg=comparison.MARGIN_DEG if args.margin_deg is None else args.margin_deg)
    if not args.quiet:
        print(f"{page.sentence}\nwritten: {out} ({out.stat().st_size / 1e6:.1f} MB)" +
              (f", {count(len(page.drawings), 'figure')} in {args.figures}" if args.figures else ""))
    if args.fail_if_worse and not page.is_compared:
        raise FleetError(f"--fail-if-worse: nothing was compared: {args.run} and {args.against} have no drive in common")
    return EXIT_WORSE if args.fail_if_worse and page.is_worse else 0


def _drive_pages(results: Any, args: argparse.Namespace, out: Path) -> "dict[int, str]":
    """Reports of the worst drives beside the page."""
    from .report import fleet_drive_pages

    pages = fleet_drive_pages.write(results, out.with_name(f"{out.stem}-drives"), args.drives, _program(None, results.run.job),
                                    lambda line: print(f"ndt-fleet: warning: {line}", file=sys.stderr))
    if not args.quiet:
        print(f"{count(len(pages), 'drive')} with a page of its own in {out.with_name(f'{out.stem}-drives')}")
    return pages


def _check_report(args: argparse.Namespace, out: Path) -> None:
    for name, value in (("--fail-if-worse", args.fail_if_worse), ("--margin", args.margin), ("--margin-deg", args.margin_deg)):
        if isinstance(value, float) and not 0 <= value < 1000:
            raise UsageError(f"{name}: {value:g} is not a margin from 0 to 1000")
        if name == "--fail-if-worse" and value and not args.against:
            raise UsageError("--fail-if-worse: worse than which run? --against RUN2")
    if not 0 <= args.drives <= 12:
        raise UsageError(f"--drives: {args.drives} is not from 0 to 12, the worst drives that the page lists")
    if out.is_dir():
        raise UsageError(f"{out}: is a folder; --out names a file")
    if args.out and not out.resolve().parent.is_dir():
        raise UsageError(f"{out}: there is no folder {out.resolve().parent}")
    if args.figures and Path(args.figures).exists() and not Path(args.figures).is_dir():
        raise UsageError(f"{args.figures}: is not a folder")


def _collect(folder: str) -> None:
    """The tables of a run, unless they are newer than what `ndt-fleet run` last said."""
    RunFolder(folder).job()
    said, runs = (Path(folder) / name for name in ("progress.json", tables.RUNS_NAME))
    if not runs.exists() or (said.exists() and said.stat().st_mtime_ns > runs.stat().st_mtime_ns):
        tables.collect(folder)


def main(arguments: "Optional[list[str]]" = None) -> int:
    """The command; returns its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    cut = given.index("--") if "--" in given else len(given)
    args = parser().parse_args(given[:cut])
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def work() -> int:
        if args.command != "run" and cut < len(given):
            raise UsageError("--: options of ndt-import are for `run`")
        if args.command == "run":
            return _run(args, tuple(given[cut + 1:]))
        return _report(args) if args.command == "report" else _status(args)

    return finish("ndt-fleet", work, "stopped; nothing was begun")


if __name__ == "__main__":
    sys.exit(main())
