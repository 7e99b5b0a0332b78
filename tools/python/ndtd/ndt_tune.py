"""ndt-tune: settings of the matcher for a sensor and a place, by replays, judged on scans that they were not chosen on."""
import argparse
import concurrent.futures
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

from ._arguments import Parser, UsageError, add_version, finish
from ._extras import need
from ._progress import Progress
from .mapping.drive import Drive, MappingError, open_drive
from .report import paired
from .tuning import choice, trial
from .tuning.choice import Judgement
from .tuning.trial import Trial

# What is tried, beside the value that is in force.
USUAL = ("preprocess.voxel_m=0.25,1.0", "preprocess.sample_count=750,3000,6000", "preprocess.max_range_m=40,80", "ndt.levels=[2.0,1.0],[2.0],[4.0,2.0]")
LEAST_SCANS = 40  # of all recordings together
EPILOG = """
Reads bags of ndtd and all that ndt-import reads (its options follow after --). With several recordings the first half of them
chooses and the others are held out; of one, the second half is. Errors are those from the truth where recordings have one, else
differences between the motion of the poses over half a second and that of the odometry of the scans, which knows neither map nor
settings. A setting is chosen where it is better by more than chance.

  ndt-tune monday.mcap tuesday.mcap --map map.pcd -o tuned.yaml
  ndt-tune drive.bag --map map.pcd --try preprocess.sample_count=500,1000,3000 --try ndt.levels=[2.0],[1.0]
"""


class Setting(NamedTuple):
    """An option and a value."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


def parser() -> argparse.ArgumentParser:
    """The options; docs/tuning.md explains them."""
    out = Parser(prog="ndt-tune", description="Finds settings of the matcher for a sensor and a place.", epilog=EPILOG,
                 formatter_class=argparse.RawDescriptionHelpFormatter)
    add_version(out)
    out.add_argument("recording", nargs="+", metavar="RECORDING", help="bag, or what ndt-import reads")
    out.add_argument("--map", required=True, metavar="MAP", help="as ndtd takes it: a cloud, a folder of tiles, a compiled map")
    out.add_argument("--try", action="append", default=[], dest="tries", metavar="KEY=VALUE,VALUE...",
                     help=f"values to try; may be repeated (default: {' '.join(USUAL)}); commas inside brackets belong to the value")
    out.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE", help="option of ndtd in every replay; may be repeated")
    out.add_argument("-c", "--config", metavar="FILE", help="configuration of ndtd in every replay")
    out.add_argument("-o", "--out", metavar="FILE.yaml", help="write the settings that were chosen, for ndtd -c; only if any are better")
    out.add_argument("--force", action="store_true", help="overwrite FILE.yaml if it exists")
    out.add_argument("--deskew", default="auto", choices=("auto", "off", "time", "azimuth_cw", "azimuth_ccw"),
                     help="how the time of a point is known (default: auto: its time, or the order of the points)")
    out.add_argument("--jobs", type=int, default=0, metavar="N", help="replays at once (default: one per core)")
    out.add_argument("-q", "--quiet", action="store_true", help="no progress")
    return out


def read_pair(text: str) -> Setting:
    """KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise UsageError(f"{text}: not KEY=VALUE")
    return Setting(key, value)


def read_tries(texts: "list[str]") -> "list[Setting]":
    """Every value of KEY=VALUE,VALUE... apart."""
    out = []
    for text in texts:
        key, values = read_pair(text)
        out += [Setting(key, value.strip()) for value in re.split(r",(?![^\[]*\])", values)]
    if any(not value for _, value in out):
        raise UsageError(f"{' '.join(texts)}: a value is empty")
    return list(dict.fromkeys(out))


def _check(args: argparse.Namespace) -> None:
    if args.out and Path(args.out).exists() and not args.force:
        raise UsageError(f"{args.out}: exists already; --force overwrites it")
    if args.config is not None and not Path(args.config).is_file():
        raise UsageError(f"{args.config}: no such file")
    if args.jobs < 0:
        raise UsageError(f"--jobs: {args.jobs} is not a number of replays")
    if len({Path(one).resolve() for one in args.recording}) < len(args.recording):
        raise UsageError("a recording is given twice")


class Work:
    """The recordings, and their trials with sets of settings: each set is replayed once."""

    def __init__(self, drives: "list[Drive]", map_path: Any, args: argparse.Namespace):
        self.drives, self.map_path, self.args = drives, map_path, args
        self.always = [read_pair(text) for text in args.sets]
        self.done: "dict[tuple[Setting, ...], list[Trial]]" = {}
        self.references: "list[trial.Reference]" = []

    def _map(self, what: str, work: "Callable[..., Any]", calls: "list[tuple[Any, ...]]") -> "list[Any]":
        """Results of the calls, each in a process."""
        found: "list[Any]" = []
        with Progress(what, self.args.quiet) as progress, concurrent.futures.ProcessPoolExecutor(self.args.jobs or os.cpu_count()) as pool:
            for one in pool.map(work, *zip(*calls)):
                found.append(one)
                progress.update(len(found) / len(calls))
        return found

    def run(self, sets: "list[tuple[Setting, ...]]", what: str) -> None:
        """Replays every recording with each of the sets."""
        wanted = [one for one in dict.fromkeys(sets) if one not in self.done]
        calls = [(drive, self.map_path, self.args.config, dict([*self.always, *one])) for one in wanted for drive in self.drives]
        found = self._map(what, trial.replay, calls)
        if not self.references:
            self.references = self._map("odometry", trial.odometry_of, [(drive,) for drive in self.drives])
        for number, one_set in enumerate(wanted):
            rows = found[number * len(self.drives):(number + 1) * len(self.drives)]
            self.done[one_set] = [trial.measure(*one) for one in zip(rows, self.references)]

    def judge(self, settings: "tuple[Setting, ...]", held_out: bool) -> Judgement:
        """Those settings beside the ones in force, over the scans that choose, or those that are held out."""
        parts = [self._part(number, held_out) for number in range(len(self.drives))]
        return choice.compare(choice.joined(self.done[()], parts), choice.joined(self.done[settings], parts))

    def _part(self, number: int, held_out: bool) -> np.ndarray:
        count = len(self.done[()][number].trusted)
        if len(self.drives) > 1:
            return np.full(count, (number >= len(self.drives) / 2) == held_out)
        return (np.arange(count) >= count // 2) == held_out


def best_of_each(work: Work, tries: "list[Setting]") -> "tuple[Setting, ...]":
    """Of each option the value that is better by more than chance, the best where several are."""
    judged = [(setting, work.judge((setting,), False)) for setting in tries]
    corrected = paired.holm([one.p for _, one in judged])
    best: "dict[str, tuple[float, Setting]]" = {}
    for (setting, one), p in zip(judged, corrected):
        if one.is_better(p):
            gain = one.median_m[0] - one.median_m[1] if one.measure else 0.0
            if setting.key not in best or gain > best[setting.key][0]:
                best[setting.key] = gain, setting
    return tuple(setting for _, setting in best.values())


def _row(name: str, one: Judgement, which: int = 1) -> str:
    measured = "-" if not one.measure else f"{100 * one.median_m[which]:.2f} / {100 * one.p95_m[which]:.2f}"
    cost = f"{one.align_ms[which]:.2f} / {one.align_p95_ms[which]:.2f}"
    change = "" if which == 0 or not one.measure else f"{100 * one.low_m:+.2f} .. {100 * one.high_m:+.2f}"
    return f"{name:34} {one.lost[which]:5} {one.wrong[which]:6} {measured:>15} {change:>17} {cost:>14}"


def table(work: Work, sets: "list[tuple[Setting, ...]]", held_out: bool) -> str:
    """Judgements as lines."""
    judged = [(one, work.judge(one, held_out)) for one in sets]
    first = judged[0][1]
    measure = {"error_m": "error [cm]", "motion_m": "motion off [cm]", "": ""}[first.measure]
    lines = [f"{'settings, ' + str(first.scans) + ' scans':34} {'lost':>5} {'wrong':>6} {measure:>15} {'change, 95 %':>17} {'align [ms]':>14}",
             _row("as they are", first, 0)]
    return "\n".join(lines + [_row(" ".join(map(str, settings)), one) for settings, one in judged])


def _verdict(work: Work, chosen: "tuple[Setting, ...]") -> "tuple[bool, str]":
    one = work.judge(chosen, True)
    if one.is_harmed:
        return False, (f"not confirmed: {one.lost[1]} of {one.scans} scans that were held out have no trusted pose, {one.lost[0]} with the settings as "
                       f"they are; {one.wrong[1]} and {one.wrong[0]} are wrong")
    if not one.is_better(one.p):
        return False, "not confirmed by the scans that were held out: the settings as they are are as good"
    dearer = one.align_ms[1] / max(one.align_ms[0], 1e-9)
    return True, f"better on scans that were held out; an alignment takes {dearer:.2f} times as long"


def write_settings(path: Path, chosen: "tuple[Setting, ...]", recordings: "list[str]") -> None:
    """The settings as a configuration of ndtd."""
    groups: "dict[str, list[str]]" = {}
    for key, value in chosen:
        group, _, name = key.partition(".")
        groups.setdefault(group, []).append(f"  {name}: {value}")
    lines = [f"# By ndt-tune, on {', '.join(Path(one).name for one in recordings)}."]
    for group, entries in groups.items():
        lines += [f"{group}:", *entries]
    path.write_text("\n".join(lines) + "\n")


def tune(args: argparse.Namespace) -> None:
    """Tries, chooses, and checks the choice."""
    _check(args)
    tries = read_tries(args.tries or list(USUAL))
    with tempfile.TemporaryDirectory(prefix="ndt-tune-") as folder:
        drives = [open_drive(name, Path(folder), number, args) for number, name in enumerate(args.recording)]
        if sum(drive.scans for drive in drives) < LEAST_SCANS:
            raise MappingError(f"{sum(drive.scans for drive in drives)} scans; {LEAST_SCANS} at least are needed to tell settings apart")
        work = Work(drives, args.map, args)
        singles = [(setting,) for setting in tries]
        work.run([(), *singles], f"{1 + len(tries)} settings")
        print("chosen on " + ("the first half of the recording:" if len(drives) == 1 else f"{', '.join(args.recording[:(len(drives) + 1) // 2])}:"))
        print(table(work, singles, False))
        chosen = best_of_each(work, tries)
        if not chosen:
            print("\nNo setting is better by more than chance: the settings as they are are as good.")
            return
        work.run([chosen], "what was chosen")
        print("\nheld out, " + ("the second half:" if len(drives) == 1 else f"{', '.join(args.recording[(len(drives) + 1) // 2:])}:"))
        print(table(work, [chosen], True))
        is_better, text = _verdict(work, chosen)
        print(f"\n{' '.join(map(str, chosen))}: {text}")
        if is_better and args.out:
            write_settings(Path(args.out), chosen, args.recording)
            print(f"next: ndtd --replay RECORDING --map {args.map} -c {args.out}")


def command(arguments: "Optional[list[str]]" = None) -> int:
    """The console command."""
    words = sys.argv[1:] if arguments is None else arguments
    own = words[:words.index("--")] if "--" in words else words
    args = parser().parse_args(own)
    args.import_options, args.frame = words[len(own) + 1:], None
    return finish("ndt-tune", lambda: tune(args))


if __name__ == "__main__":
    sys.exit(command())
