"""The sections of a fleet's report on single drives: the worst ones, and those that failed or are damaged."""
import re
import shlex
from collections.abc import Mapping

from . import fleet_totals, html_parts
from .compare_figures import short
from .figures import escape
from .fleet_reading import FleetRun
from .fleet_results import FleetResults
from .fleet_totals import percent, thousands
from .html_parts import Link, paragraph, section, table
from .verdict import count, length

WORST = 12
MOST_LISTED, MOST_NAME = 20, 64
LINES, MOST_LINE = 10, 500  # of a program that failed


def worst_of(results: FleetResults) -> "list[fleet_totals.BadDrive]":
    """The worst drives, the worst one first."""
    return fleet_totals.worst_drives(results.run, results.totals, results.main.rows, WORST)


def worst(results: FleetResults, pages: "Mapping[int, str]") -> str:
    """A table, and the commands that show each of them. pages: row of a drive -> its own page."""
    run, main = results.run, results.main
    if not len(main.rows):
        return section("worst-drives", "Worst drives", paragraph("No drive is done."))
    found = worst_of(results)
    rows = []
    for number, one in enumerate(found, 1):
        value = (length(float(run.numbers["error_m_p95"][one.row])) if main.has_truth else
                 f"{run.numbers['confidence_median'][one.row]:.4f}")
        name = f"{number}. {short(run.names[one.row], MOST_NAME)}"
        rows.append((Link(name, pages[one.row]) if one.row in pages else name, thousands(int(results.totals.counts["scans"][one.row])),
                     percent(one.untrusted_share), value, one.why))
    header = ("", "scans", "without trust", "error, 95 %" if main.has_truth else "confidence, median", "why")
    commands = [ndtd(run, one.row, results.name, ["--report", f"{stem(run, one.row, number)}.html"])
                for number, one in enumerate(found, 1)]
    more = "\n".join(f"# {number}\n{text}" for number, text in enumerate(commands[1:], 2))
    return section("worst-drives", "Worst drives", table(header, rows, "text drives"),
                   paragraph("Look at the first: this replays it and writes its report."), f"<pre>{escape(commands[0])}</pre>",
                   html_parts.folded("The same for the others", f"<pre>{escape(more)}</pre>") if more else "")


def failed(results: FleetResults) -> str:
    """Section of the drives that failed or are damaged; empty where all is well."""
    run, parts, of_bags, damaged = results.run, [], _failures(results.run), results.damaged
    if not of_bags and not damaged:
        return ""
    for (row, reason, kind), (configs, lines) in list(of_bags.items())[:MOST_LISTED]:
        head = short(run.names[row], MOST_NAME) + (f": {kind}" if kind not in ("", "failed") else "")
        if len(run.configurations) > 1:
            head += " (all configurations)" if len(configs) == len(run.configurations) else f" ({', '.join(configs)})"
        shown = escape("\n".join(line[:MOST_LINE] for line in lines[-LINES:]))
        parts += [f"<h3>{escape(head)}</h3>", paragraph(reason[:MOST_LINE]), f"<pre>{shown}</pre>" if shown else ""]
    if len(of_bags) > MOST_LISTED:
        parts.append(paragraph(f"And {len(of_bags) - MOST_LISTED} more; `ndt-fleet status` lists them."))
    if damaged:
        rows = [(short(run.names[row], MOST_NAME), str(run.texts["damage"][row])[:MOST_LINE]) for row in damaged[:MOST_LISTED]]
        text = count(len(damaged), "bag") + (f", the first {MOST_LISTED}:" if len(damaged) > MOST_LISTED else ":")
        parts += ["<h3>Damaged, used up to the damage</h3>", paragraph(text), table(("bag", "damage"), rows, "text")]
    return section("failed", "Failed and damaged", *parts)


def _failures(run: FleetRun) -> "dict[tuple[int, str, str], tuple[list[str], tuple[str, ...]]]":
    """(row, reason, kind) of a bag -> its configurations, and the last lines."""
    first: "dict[str, int]" = {}
    out: "dict[tuple[int, str, str], tuple[list[str], tuple[str, ...]]]" = {}
    for row in fleet_totals.failed_rows(run, None).tolist():
        bag, config = str(run.texts["bag"][row]), str(run.texts["config"][row])
        told = run.failures.get((bag, config)) or run.failures.get((bag, ""))
        reason = str(run.texts["failure"][row]) or "no reason is known"
        key = (first.setdefault(bag, row), reason, str(run.texts["failure_kind"][row]))
        out.setdefault(key, ([], told.further_lines if told else ()))[0].append(config)
    return out


# ---- commands


def stem(run: FleetRun, row: int, number: int) -> str:
    """Stem of a file name, made of the name of a bag."""
    return re.sub(r"[^\w.-]+", "_", short(run.names[row].rsplit(".", 1)[0], MOST_NAME)).strip("-._") or f"drive-{number}"


def ndtd(run: FleetRun, row: int, configuration: str, options: "list[str]") -> str:
    """The command that replays a drive of a run, as text."""
    note, words = command(run, row, configuration, options)
    return note + shlex.join(words)


def command(run: FleetRun, row: int, configuration: str, options: "list[str]") -> "tuple[str, list[str]]":
    """What to do before the command that replays a drive (nothing where its recording is a file here), and the command."""
    bag = str(run.texts["bag"][row])
    path = bag[len("file://"):] if bag.startswith("file://") else bag
    note = ""
    if "://" in path:
        note, path = f"# first copy {shlex.quote(path)} to this folder\n", path.rstrip("/").rsplit("/", 1)[-1]
    found = next(one for one in run.job.configurations if one.name == configuration)
    config, options_of_import = run.run_folder.config_file(found), run.job.import_options
    words = ["ndtd", "--replay", path, "--map", str(run.map_file or run.job.map), "--config", str(config), *options]
    return note, [*words, *(["--", *options_of_import] if options_of_import else [])]
