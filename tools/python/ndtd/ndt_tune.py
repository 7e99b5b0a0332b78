"""ndt-tune: settings of the matcher for a sensor and a place, by replays, judged on scans that they were not chosen on."""
import argparse
import concurrent.futures
import os
import re
import sys
import tempfile
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

from ._arguments import Parser, UsageError, add_version, finish
from ._progress import Progress
from .mapping.drive import Drive, MappingError, open_drive
from .report import paired
from .tuning import choice, trial
from .tuning.choice import Judgement
from .tuning.trial import Trial

# Values that are tried unless --try names others.
USUAL = ("preprocess.voxel_m=0.25,1.0", "preprocess.sample_count=750,3000,6000", "preprocess.max_range_m=40,80", "ndt.levels=[2.0,1.0],[2.0],[4.0,2.0]")
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


def settings_of(args: argparse.Namespace) -> "list[Setting]":
    """Those of every replay."""
    return [read_pair(text) for text in args.sets] + ([Setting("preprocess.deskew", args.deskew)] if args.deskew != "auto" else [])


def _check(args: argparse.Namespace) -> None:
    if args.out and not Path(args.out).absolute().parent.is_dir():
        raise UsageError(f"{args.out}: there is no such folder")
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

    def __init__(self, drives: "list[Drive]", args: argparse.Namespace):
        self.drives, self.args = drives, args
        self.always = settings_of(args)
        self.done: "dict[tuple[Setting, ...], list[Trial]]" = {}
        self.measure = ""  # error_m where every recording has truth, else motion_m
        self.references: "list[Optional[trial.Reference]]" = [None] * len(drives)

    def _map(self, what: str, work: "Callable[..., Any]", calls: "list[tuple[Any, ...]]") -> "list[Any]":
        """Results of the calls, each in a process."""
        found: "list[Any]" = []
        jobs = self.args.jobs or len(os.sched_getaffinity(0))
        try:
            with Progress(what, self.args.quiet) as progress, concurrent.futures.ProcessPoolExecutor(jobs) as pool:
                for one in pool.map(work, *zip(*calls)):
                    found.append(one)
                    progress.update(len(found) / len(calls))
        except BrokenProcessPool:
            raise MappingError(f"{what}: a replay was killed; each of {jobs} at once loads the map, --jobs 1 needs least memory") from None
        return found

    def run(self, sets: "list[tuple[Setting, ...]]", what: str) -> None:
        """Replays every recording with each of the sets."""
        wanted = [one for one in dict.fromkeys(sets) if one not in self.done]
        calls = [(drive, self.args.map, self.args.config, dict([*self.always, *one])) for one in wanted for drive in self.drives]
        found = self._map(what, trial.replay, calls)
        if not self.measure:
            self._choose_measure(found[:len(self.drives)])
        for number, one_set in enumerate(wanted):
            rows = found[number * len(self.drives):(number + 1) * len(self.drives)]
            self.done[one_set] = [trial.measure(*one) for one in zip(rows, self.references)]

    def _choose_measure(self, as_they_are: "list[trial.Rows]") -> None:
        """By the replays with the settings as they are, of which each part has to be long enough."""
        counts = [len(rows.trusted) for rows in as_they_are]
        for held_out, name in enumerate(("the choosing part has", "the part that is held out has")):
            scans = sum(int(self._part(number, count, bool(held_out)).sum()) for number, count in enumerate(counts))
            if scans < choice.LEAST_PART:
                parts = f", {2 * choice.LEAST_PART} in a single recording" if len(self.drives) == 1 else ""
                raise MappingError(f"{name} {scans} scans; {choice.LEAST_PART} at least are needed to tell settings from chance{parts}")
        has_truth = all(np.isfinite(rows.error_m).sum() >= 0.5 * sum(rows.trusted) > 0 for rows in as_they_are)
        self.measure = "error_m" if has_truth else "motion_m"
        if not has_truth:
            self.references = self._map("odometry", trial.odometry_of, [(drive,) for drive in self.drives])

    def judge(self, settings: "tuple[Setting, ...]", held_out: bool) -> Judgement:
        """Those settings beside the ones in force, over the scans that choose, or those that are held out."""
        parts = [self._part(number, len(one.lost), held_out) for number, one in enumerate(self.done[()])]
        return choice.compare(choice.joined(self.done[()], parts), choice.joined(self.done[settings], parts), self.measure)

    def without_effect(self, sets: "list[tuple[Setting, ...]]") -> "list[tuple[Setting, ...]]":
        """Those with which every scan is exactly as far from the truth, or the odometry, as with the settings in force."""
        return [one for one in sets if all(np.array_equal(getattr(a, self.measure), getattr(b, self.measure), equal_nan=True)
                                           for a, b in zip(self.done[()], self.done[one]))]

    def _part(self, number: int, scans: int, held_out: bool) -> np.ndarray:
        """Scans of a recording that choose, or are held out."""
        if len(self.drives) > 1:
            return np.full(scans, (number >= len(self.drives) / 2) == held_out)
        return (np.arange(scans) >= scans // 2) == held_out


def best_of_each(work: Work, tries: "list[Setting]") -> "tuple[Setting, ...]":
    """Of each option the value that is better by more than chance: of several the one that saves scans, then the most exact one."""
    judged = [(setting, work.judge((setting,), False)) for setting in tries]
    losing = [number for number, (_, one) in enumerate(judged) if any(one.lost)]  # of the others nothing is tested
    corrected = paired.holm([one.p for _, one in judged] + [judged[number][1].p_lost for number in losing])
    of_losses = dict(zip(losing, corrected[len(judged):]))
    best: "dict[str, tuple[tuple[int, float], Setting]]" = {}
    for number, (setting, one) in enumerate(judged):
        p, p_lost = corrected[number], of_losses.get(number, 1.0)
        if one.is_better(p, p_lost):
            rank = (one.lost[0] - one.lost[1] if one.saves(p_lost) else 0, one.gain)
            if setting.key not in best or rank > best[setting.key][0]:
                best[setting.key] = rank, setting
    return tuple(setting for _, setting in best.values())


def _row(name: str, one: Judgement, which: int, has_truth: bool) -> str:
    measured = "-" if np.isnan(one.p95_m[which]) else f"{100 * one.median_m[which]:.2f} / {100 * one.p95_m[which]:.2f}"
    cost = f"{one.align_ms[which]:.2f} / {one.align_p95_ms[which]:.2f}"
    change = "" if which == 0 or np.isnan(one.low_m) else f"{100 * one.low_m:+.2f} .. {100 * one.high_m:+.2f}"
    return f"{name:34} {one.lost[which]:5} {one.wrong[which] if has_truth else '-':>6} {measured:>15} {change:>17} {cost:>14}"


def table(work: Work, sets: "list[tuple[Setting, ...]]", held_out: bool) -> str:
    """Judgements as lines."""
    judged = [(one, work.judge(one, held_out)) for one in sets]
    has_truth = work.measure == "error_m"
    first = judged[0][1]
    lines = [f"{'settings, ' + str(first.scans) + ' scans':34} {'lost':>5} {'wrong':>6} {'error [cm]' if has_truth else 'motion off [cm]':>15} "
             f"{'change, 95 %':>17} {'align [ms]':>14}", _row("as they are", first, 0, has_truth)]
    return "\n".join(lines + [_row(" ".join(map(str, settings)), one, 1, has_truth) for settings, one in judged])


def _verdict(work: Work, chosen: "tuple[Setting, ...]") -> "tuple[bool, str]":
    one = work.judge(chosen, True)
    if one.is_harmed:
        return False, (f"not confirmed: {one.lost[1]} of {one.scans} scans that were held out have no trusted pose, {one.lost[0]} with the settings as "
                       f"they are; {one.wrong[1]} and {one.wrong[0]} are wrong")
    if not one.is_better(one.p, one.p_lost) and one.p == 1.0 and one.gain > choice.LEAST_GAIN:
        return False, f"not confirmed: errors of neighbouring scans are alike for so long that {one.scans} of them do not tell it from chance; a longer recording, or a second one, would"
    if not one.is_better(one.p, one.p_lost):
        return False, "not confirmed by the scans that were held out: the settings as they are are as good"
    return True, f"better on scans that were held out; an alignment takes {one.align_ms[1] / max(one.align_ms[0], 1e-9):.2f} times as long"


def write_settings(path: Path, settings: "tuple[Setting, ...]", recordings: "list[str]") -> None:
    """Writes settings as a configuration of ndtd; of an option the last one."""
    groups: "dict[str, list[str]]" = {}
    for key, value in dict(settings).items():
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
        work = Work(drives, args)
        singles = [(setting,) for setting in tries]
        work.run([(), *singles], f"{1 + len(tries)} settings")
        print("chosen on " + ("the first half of the recording:" if len(drives) == 1 else f"{', '.join(args.recording[:(len(drives) + 1) // 2])}:"))
        print(table(work, singles, False))
        same = work.without_effect(singles)
        if same:
            print(f"without effect on these scans: {', '.join(' '.join(map(str, one)) for one in same)}")
        chosen = best_of_each(work, tries)
        if not chosen:
            print(f"\nNo setting is better by more than chance: the settings as they are are as good{'' if not args.out else '; nothing is written'}.")
            return
        work.run([chosen], "what was chosen")
        print("\nheld out, " + ("the second half:" if len(drives) == 1 else f"{', '.join(args.recording[(len(drives) + 1) // 2:])}:"))
        print(table(work, [chosen], True))
        is_better, text = _verdict(work, chosen)
        nothing = f"; {args.out} is not written" if args.out and not is_better else ""
        print(f"\n{' '.join(map(str, chosen))}: {text}{nothing}")
        if is_better and args.out:
            write_settings(Path(args.out), (*work.always, *chosen), args.recording)
            print(f"next: ndtd --replay RECORDING --map {args.map}{f' -c {args.config}' if args.config else ''} -c {args.out}")


def command(arguments: "Optional[list[str]]" = None) -> int:
    """The console command."""
    words = sys.argv[1:] if arguments is None else arguments
    own = words[:words.index("--")] if "--" in words else words
    args = parser().parse_args(own)
    args.import_options, args.frame = words[len(own) + 1:], None
    return finish("ndt-tune", lambda: tune(args))


if __name__ == "__main__":
    sys.exit(command())
