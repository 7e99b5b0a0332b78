"""Configurations of a run: the settings of the user, and every combination of what a sweep varies."""
import itertools
import re
import subprocess
from collections.abc import Iterable, Sequence

from .._arguments import UsageError
from ..report.run import flat_yaml
from .run_folder import Configuration, FleetError, RunFolder, digest

BASE = "base"
MOST_CONFIGURATIONS = 1000
PROGRAM_S = 60.0  # ndtd prints its settings at once
# Settings that cannot change a trajectory: places, threads (results are the same for any number), and what the daemon alone uses.
WITHOUT_EFFECT = ("map.path", "map.threads", "cpu.threads", "cpu.pin_threads", "cpu.spin_us", "autotune.", "sockets.", "recording.",
                  "security.", "live.", "log.", "rt.")


class SweepError(FleetError, UsageError):
    """A configuration that cannot be used: of the command line, not of the run."""


def configurations(program: str, files: "Sequence[str]", overrides: "Sequence[str]", sweeps: "Sequence[str]",
                   folder: RunFolder) -> "tuple[Configuration, ...]":
    """Asks `ndtd --print-config` for each and writes it below configs/. SweepError: ndtd refuses one, or two are the same."""
    out: "list[Configuration]" = []
    texts: "list[str]" = []
    for combination in combinations(sweeps):
        text = print_config(program, files, [*overrides, *combination])
        name = ", ".join(combination) or BASE
        found = Configuration(name, _file_name(name), settings_hash(text), tuple(combination))
        same = next((one.name for one in out if one.hash == found.hash), None)
        if same is not None:
            raise SweepError(f"--sweep: {same} and {name} are the same settings")
        out.append(found)
        texts.append(text)
    for one, text in zip(out, texts):
        folder.write_whole(folder.config_file(one), text.encode())
    return tuple(out)


def combinations(sweeps: "Sequence[str]") -> "list[tuple[str, ...]]":
    """Every combination of the values, each as KEY=VALUE; one without any where nothing is swept."""
    axes: "list[list[str]]" = []
    count, seen = 1, set()
    for sweep in sweeps:
        key, equals, values = sweep.partition("=")
        if not equals or not key.strip():
            raise SweepError(f"--sweep: '{sweep}': KEY=VALUE,VALUE... is wanted")
        if key in seen:
            raise SweepError(f"--sweep: {key} is swept twice; all its values belong to one --sweep")
        seen.add(key)
        axes.append([f"{key.strip()}={value}" for value in split_values(values)])
        count *= len(axes[-1])
        if count > MOST_CONFIGURATIONS:
            raise SweepError(f"--sweep: more than {MOST_CONFIGURATIONS} configurations")
    return list(itertools.product(*axes))


def split_values(text: str) -> "list[str]":
    """Split at the commas that are not within brackets: "[4.0,2.0],[2.0]" are two values."""
    out, depth = [""], 0
    for letter in text:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            out.append("")
        else:
            out[-1] += letter
        if depth < 0:
            break
    if depth:
        raise SweepError(f"--sweep: '{text}': the brackets do not match")
    values = [value.strip() for value in out]
    if not all(values):
        raise SweepError(f"--sweep: '{text}': a value is empty")
    return values


def print_config(program: str, files: "Iterable[str]", overrides: "Iterable[str]") -> str:
    """All settings as ndtd understands them. SweepError: the line of ndtd that says what is wrong."""
    command = [program, "--print-config"]
    for file in files:
        command += ["--config", file]
    for override in overrides:
        command += ["--set", override]
    return run_ndtd(command)


def version_of(program: str) -> str:
    """The program and its commit, as `ndtd --version` prints them."""
    text = run_ndtd([program, "--version"]).strip()
    if not text.startswith("ndtd ") or "\n" in text:
        raise SweepError(f"{program}: is not ndtd: --version says '{' '.join(text.split())[:60]}'")
    return text


def run_ndtd(command: "Sequence[str]") -> str:
    """Runs ndtd and returns what it prints. SweepError: its last line, or why it cannot be started."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=PROGRAM_S,
                              check=False)
    except subprocess.TimeoutExpired:
        raise SweepError(f"{command[0]}: {command[1]} takes more than {PROGRAM_S:g} s") from None
    except OSError as error:
        raise SweepError(f"{command[0]}: {error.strerror}; --ndtd names the program") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"{command[0]} {command[1]}: exit status {done.returncode}"]
        raise SweepError(lines[-1])
    return done.stdout


def settings_hash(text: str) -> str:
    """Hash of the settings that can change a trajectory."""
    settings = sorted(flat_yaml(text).items())
    return digest(*(f"{key}: {value}" for key, value in settings if not key.startswith(WITHOUT_EFFECT)))


def _file_name(name: str) -> str:
    """Readable, and unique also where it is shortened."""
    plain = re.sub(r"[^\w.=,\[\]+-]+", "_", name, flags=re.ASCII)  # as many bytes as letters
    return f"{plain}.yaml" if plain == name and len(plain) <= 80 else f"{plain[:80]}.{digest(name)[:8]}.yaml"
