"""ndt-import: any recording to a bag for `ndtd --replay`."""
import argparse
import os
import sys
import time
from pathlib import Path

from ._core import BagWriter
from .recordings import sources
from .recordings.convert import Converter

KINDS = ("scan", "odometry", "imu", "gnss", "initial_pose")


class UsageError(Exception):
    """One line for the user."""


def parser():
    out = argparse.ArgumentParser(prog="ndt-import", description=__doc__.split(": ", 1)[1], epilog="""
Reads ROS 1 bags, ROS 2 recordings (folder, .db3, .mcap), KITTI folders and folders of .bin, .pcd or .ply. Topics are
found by their types; scans of several topics need --scan. Writes OUT and, where the recording tells where the sensors
are, OUT.yaml for `ndtd -c`.""", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    out.add_argument("recording", help="file or folder")
    out.add_argument("-o", "--out", help="bag to write; default: the name of the recording with .bag.bin")
    out.add_argument("--force", action="store_true", help="replace OUT")
    out.add_argument("--list", action="store_true", help="list topics and what they would be taken for; write nothing")
    for kind in KINDS:
        out.add_argument(f"--{kind.replace('_', '-')}", metavar="TOPIC", action="append", dest=f"topics_{kind}",
                         help=f"topic of {kind.replace('_', ' ')}; again for several; 'none': leave them out")
    out.add_argument("--base", metavar="FRAME", help="frame of the vehicle; default: base_link, base_footprint ...")
    out.add_argument("--time-unit", choices=("s", "ms", "us", "ns"), help="of the times of points, where drivers differ")
    out.add_argument("--times", metavar="FILE", help="folders: one stamp per line; default: beside the scans")
    out.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    return out


def _options(args):
    topics = {}
    for kind in KINDS:
        names = getattr(args, f"topics_{kind}")
        if names is not None:
            topics[kind] = set() if names == ["none"] else set(names)
    units = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, None: None}
    return sources.Options(topics=topics, time_unit_s=units[args.time_unit], times=args.times)


class Progress:
    """A line on a terminal, ten times a second."""

    def __init__(self, total, quiet):
        self._total, self._next = total, 0.0
        self._stream = sys.stderr if sys.stderr.isatty() and not quiet else None
        self._begin = time.monotonic()

    def update(self, done):
        now = time.monotonic()
        if self._stream is None or now < self._next:
            return
        self._next = now + 0.1
        rate = done / max(now - self._begin, 1e-3)
        left = (self._total - done) / rate if rate > 0 else 0
        self._stream.write(f"\r{100 * done / max(self._total, 1):5.1f} %  {done} messages, {rate:.0f}/s, {left:.0f} s left ")

    def end(self):
        if self._stream is not None:
            self._stream.write("\r\033[K")


def _default_out(recording):
    path = Path(recording)
    return path.with_name((path.stem if path.is_file() else path.name) + ".bag.bin")


def _write_frames(path, report):
    """The poses of the sensors as options of ndtd; returns whether there were any."""
    known = {name: T for name, T in report.sensors.items() if T is not None}
    if not known:
        return False
    lines = [f"# Where the sensors are on {report.base}, from the transforms of the recording.", "frames:"]
    rows = [" ".join([name] + [f"{value:.9g}" for value in T.reshape(-1)]) for name, T in known.items()]
    if len(known) == 1:
        values = next(iter(known.values())).reshape(-1)
        lines.append("  T_base_sensor: [" + ", ".join(f"{value:.9g}" for value in values) + "]")
    else:
        lines.append("  sensors: [" + ", ".join(rows) + "]")
    path.write_text("\n".join(lines) + "\n")
    return True


def _summary(report, source, took_s):
    lines = ["taken: " + (", ".join(f"{count} {kind}" for kind, count in sorted(report.counts.items())) or "nothing")]
    for topic in source.topics:
        if topic.kind is None:
            lines.append(f"left:  {topic.count} of {topic.name} ({topic.type}): {topic.why}")
    for (kind, why), count in sorted(report.left.items()):
        lines.append(f"left:  {count} {kind}: {why}")
    for name, T in report.sensors.items():
        if T is None:
            lines.append(f"note:  the recording does not tell where '{name}' is on the vehicle: frames.T_base_sensor of ndtd")
    lines.append(f"took:  {took_s:.1f} s")
    return lines


def convert(recording, out, options, base=None, quiet=False, force=False):
    """Writes the bag `out`; returns the report. ValueError and OSError leave no file."""
    out = Path(out)
    if out.exists() and not force:
        raise UsageError(f"{out}: exists; --force replaces it")
    part = out.with_name(out.name + ".part")
    part.unlink(missing_ok=True)
    begin = time.monotonic()
    with sources.open(recording, options) as source:
        progress = Progress(sum(topic.count for topic in source.topics if topic.kind), quiet)
        with BagWriter(part) as bag:
            converter = Converter(bag, base)
            for done, message in enumerate(source.messages()):
                converter.write(message)
                progress.update(done)
            progress.end()
            report = converter.finish()
            if not report.counts.get("scan"):
                raise UsageError(f"{recording}: no scan in it that could be used")
        os.replace(part, out)
        if _write_frames(out.with_name(out.name + ".yaml"), report) and not quiet:
            print(f"written: {out} and {out.name}.yaml: ndtd --replay {out} -c {out}.yaml --map MAP")
        elif not quiet:
            print(f"written: {out}: ndtd --replay {out} --map MAP")
        if not quiet:
            print("\n".join(_summary(report, source, time.monotonic() - begin)))
    return report


def list_topics(recording, options):
    with sources.open(recording, options) as source:
        for topic in source.topics:
            print(f"{topic.kind or '-':12} {topic.count:8}  {topic.name}  ({topic.type})")


def main(arguments=None):
    args = parser().parse_args(arguments)
    try:
        if args.list:
            list_topics(args.recording, _options(args))
        else:
            convert(args.recording, args.out or _default_out(args.recording), _options(args), args.base, args.quiet,
                    args.force)
    except (UsageError, ValueError, OSError) as error:
        print(f"ndt-import: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ndt-import: stopped; nothing was written", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
