"""The command line of tools/lab."""
import argparse
import os
import sys

import lab_report
import lab_runner
import lab_table


class Usage(Exception):
    """A line for the user; exit code 2."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Usage(message + "; --help explains")


def parse(words, about):
    parser = Parser(prog="lab", description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True, parser_class=Parser)
    run = verbs.add_parser("run", description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    run.add_argument("--out")
    run.add_argument("--only", action="append", default=[])
    run.add_argument("--list", action="store_true")
    run.add_argument("--map")
    run.add_argument("--bag")
    run.add_argument("--set", action="append", default=[])
    run.add_argument("--programs")
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("--repetitions", type=int)
    run.add_argument("--quick", action="store_true")
    run.add_argument("--emulated", action="store_true")
    report = verbs.add_parser("report", description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    report.add_argument("folder")
    report.add_argument("--out")
    return parser.parse_args(words)


def check(options):
    names = [experiment.name for experiment in lab_table.EXPERIMENTS]
    for name in options.only:
        if name not in names:
            raise Usage("there is no experiment '%s'; there are: %s" % (name, " ".join(names)))
    if options.list:
        return
    if not options.out:
        raise Usage("--out is missing")
    if bool(options.map) != bool(options.bag):
        raise Usage("--map and --bag belong together")
    for path in (options.map, options.bag):
        if path and not os.path.exists(path):
            raise Usage("%s: no such file" % path)
    if options.repetitions is not None and not 1 <= options.repetitions <= 101:
        raise Usage("--repetitions %d: a number from 1 to 101 is wanted" % options.repetitions)
    if options.seed < 0:
        raise Usage("--seed %d: a number from 0 on is wanted" % options.seed)


def main(words, about):
    try:
        options = parse(words, about)
        if options.verb == "report":
            return lab_report.write(options.folder, options.out or options.folder)
        check(options)
        return lab_runner.run(options)
    except Usage as error:
        print("lab: %s" % error, file=sys.stderr)
        return 2
    except (lab_runner.Cannot, lab_report.Cannot) as error:
        print("lab: %s" % error, file=sys.stderr)
        return 3
    except OSError as error:
        print("lab: %s: %s" % (error.filename, error.strerror), file=sys.stderr)
        return 3
