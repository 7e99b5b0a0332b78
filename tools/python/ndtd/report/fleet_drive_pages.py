"""Reports of single drives beside that of their fleet: the worst ones, replayed again on this machine."""
import tempfile
from collections.abc import Callable
from pathlib import Path

from ..fleet.replay_call import CallError, Limits, call
from . import page
from .fleet_drives_section import command, stem, worst_of
from .fleet_results import FleetResults
from .run import Run, RunError


def write(results: FleetResults, folder: Path, most: int, program: str, say: "Callable[[str], None]") -> "dict[int, str]":
    """Writes the reports of at most so many drives into `folder`: row of a drive -> path of its page from the folder above. A drive
    that cannot be replayed here has none, and say() tells why. OSError; FleetError: the program cannot be started."""
    out: "dict[int, str]" = {}
    run = results.run
    folder.mkdir(exist_ok=True)
    for number, one in enumerate(worst_of(results)[:most], 1):
        name, target = run.names[one.row], folder / f"{number:02d}-{stem(run, one.row, number)}.html"
        target.unlink(missing_ok=True)  # of an earlier report
        note, words = command(run, one.row, results.name, [])
        if note:
            say(f"{name}: is not on this machine: it has no page")
            continue
        with tempfile.TemporaryDirectory(prefix="ndtd-replay-") as replay:  # the name of a folder that is not kept
            at = words.index("--") if "--" in words else len(words)
            try:
                call([program, *words[1:at], "--output", replay, *words[at:]], Limits(), name="ndtd")
                page.write(Run(replay), target)
            except (CallError, RunError) as error:
                say(f"{name}: has no page: {error}")
                continue
        out[one.row] = f"{folder.name}/{target.name}"
    return out
