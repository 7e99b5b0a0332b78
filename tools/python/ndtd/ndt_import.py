"""ndt-import: any recording to a bag for `ndtd --replay`."""
import argparse
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any, List, Optional, Tuple

from . import _child
from ._core import BagWriter
from ._arguments import Parser, UsageError, add_version, finish
from ._extras import MissingPackage
from ._progress import Progress
from .recordings import sensor_frames, summary
from .recordings import topics as topic_rules
from .recordings.checkpoint import Checkpoints, identity
from .recordings.convert import Converter
from .recordings.messages import DamagedError, RecordingError
from .recordings.packets import Stream, find_calibrations
from .recordings.points import UNITS
from .recordings.sources import open_recording

MOST_CALIBRATION = 1 << 20
EPILOG = """
Reads ROS 1 bags, ROS 2 recordings (folder, .db3, .mcap), MCAP with Foxglove's messages, captures of networks (.pcap,
.pcapng), KITTI drives, and folders of .bin (KITTI, nuScenes, MulRan, NCLT), .pcd or .ply. Topics are found by their types; where
several could be meant they are listed, and --scan and the others choose. Writes OUT and, where the recording tells more than a bag holds, OUT.yaml for `ndtd -c`.
An import that was stopped goes on when it is started again. `ndt-import map` makes maps: see its --help.

  ndt-import drive.bag                        writes drive.bag.bin
  ndt-import drive/ --scan /top --scan /left  two sensors
  ndt-import drive.mcap -o - | ndtd --replay - --map map.pcd
"""


def parser() -> argparse.ArgumentParser:
    """The options; docs/recordings.md explains them."""
    out = Parser(prog="ndt-import", description="Makes a bag for `ndtd --replay` from any recording.",
                 epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_version(out)
    out.add_argument("recording", nargs="+", help="file or folder; the parts of a ROS 1 recording go together")
    out.add_argument("-o", "--out", help="bag to write; default: the name of the recording with .bin; '-': standard output")
    out.add_argument("--force", action="store_true", help="overwrite OUT if it exists, and begin anew")
    out.add_argument("--list", action="store_true", help="list topics and what they are taken for; write nothing")
    out.add_argument("--json", action="store_true", help="print the summary (or the list) as JSON")
    out.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    which = out.add_argument_group("topics", "of a type that fits; given again: several; 'none': nothing of this kind")
    for kind in topic_rules.KINDS:
        which.add_argument(f"--{kind}", *(["--twist"] if kind == "odometry" else []), metavar="TOPIC", action="append",
                           dest=f"topics_{kind}", help={"pose": "initial pose", "truth": "true poses T_map_base"}.get(kind, kind))
    which.add_argument("--every-pose", action="store_true", help="all initial poses instead of the first alone")
    how = out.add_argument_group("meaning")
    how.add_argument("--base-frame", metavar="FRAME", help="frame of the vehicle; default: base_link, base_footprint ...")
    how.add_argument("--time-unit", choices=list(UNITS), help="of the times of points; default: what makes a sweep of them")
    how.add_argument("--projector", metavar="FILE", help="map_projector_info.yaml of the map, or its folder: GNSS to the map")
    how.add_argument("--utm", action="store_true", help="the map is in UTM: GNSS to UTM, the zone of the first fix")
    how.add_argument("--calibration", metavar="[TOPIC=]FILE", action="append", default=[],
                     help="packets: the file of the sensor with its angles (Hesai: CSV, AT128: .dat; RoboSense: CSV; Ouster: JSON); again for each")
    how.add_argument("--times", metavar="FILE", help="folders: one stamp per line; default: beside the scans")
    how.add_argument("--rate", metavar="HZ", type=float, help="folders without stamps: scans per second")
    how.add_argument("--scene", metavar="NAME", help="nuScenes with its tables: the scene, such as scene-0061")
    how.add_argument("--columns", metavar="N", type=int, choices=(3, 4, 5, 6), help="floats per point of .bin")
    return out


def _options(args) -> topic_rules.Options:
    topics = {}
    for kind in topic_rules.KINDS:
        names = getattr(args, f"topics_{kind}")
        if names is not None:
            topics[kind] = set(names) - {"none"}
    if args.projector and args.utm:
        raise UsageError("--projector and --utm say different things about the map")
    if args.rate is not None and not 0 < args.rate < 1e6:
        raise UsageError(f"--rate: {args.rate} is no rate in Hz")
    return topic_rules.Options(topics=topics, time_unit_s=UNITS.get(args.time_unit), calibration=_calibrations(args.calibration),
                               times=args.times, rate_hz=args.rate, columns=args.columns, scene=args.scene, only_list=args.list)


def _calibrations(given: List[str]) -> dict:
    """The contents of the files by topic, "" for those of no topic."""
    out = {}
    for one in given:
        topic, _, name = one.rpartition("=")
        path = Path(name)
        if not path.is_file() or path.stat().st_size > MOST_CALIBRATION:
            raise UsageError(f"--calibration: {name}: no file of at most {MOST_CALIBRATION} bytes")
        out[topic] = path.read_bytes()
    return out


def _key(args) -> dict:
    """The options that change the bag."""
    names = [f"topics_{kind}" for kind in topic_rules.KINDS] + ["every_pose", "base_frame", "time_unit", "projector", "utm",
                                                               "times", "rate", "columns", "scene"]
    calibrations = {name: hashlib.sha256(data).hexdigest() for name, data in _calibrations(args.calibration).items()}
    return {**{name: getattr(args, name) for name in names}, "calibration": calibrations}


class _Projection:
    """Positions of GNSS in the map; `info` tells where it is as map_projector_info.yaml does, None before the first fix."""

    def __init__(self, projector: Any):
        self._projector = projector  # None: UTM of the zone of the first fix

    @property
    def info(self) -> Optional[dict]:
        return self._projector.info if self._projector is not None else None

    def __call__(self, latitude, longitude, altitude):
        if self._projector is None:
            from .georeference import Projector
            self._projector = Projector.utm(latitude, longitude)
        return self._projector.forward(latitude, longitude, altitude)


def _projection(args) -> Optional[_Projection]:
    """Latitude, longitude and altitude to x y z; None where nothing tells where the map is."""
    if not args.projector:
        return _Projection(None) if args.utm else None
    from .georeference import Projector
    path = Path(args.projector)
    projector = Projector.from_file(path / "map_projector_info.yaml" if path.is_dir() else path)
    if projector.heights_note():
        print(f"note:  {projector.heights_note()}", file=sys.stderr)
    return _Projection(projector)


def _default_out(recording: str) -> Path:
    path = Path(recording).absolute()
    return Path.cwd() / (path.name + ".bin")


# ---- reading ----

def _topic_states(recording) -> dict:
    """State that the readers of topics have learned, as JSON."""
    out = {}
    for topic in recording.topics:
        if hasattr(topic.state, "unit_s"):
            out[topic.name] = {"unit_s": topic.state.unit_s, "places": topic.state.places, "notes": sorted(topic.state.notes),
                               "strays": topic.state.strays}
        elif isinstance(topic.state, Stream):
            out[topic.name] = {"packets": topic.state.state()}
    return out


def _restore_topics(recording, states):
    from .recordings.points import Times
    for topic in recording.topics:
        if topic.name in states and "packets" in states[topic.name]:
            topic.state = Stream(states[topic.name]["packets"])
        elif topic.name in states:
            kept = states[topic.name]
            topic.state = Times(kept["unit_s"], set(kept["notes"]), kept["places"], kept.get("strays", 0))


def _skip(messages, position, seeks):
    """The messages behind a checkpoint; with an index the recording began at its receive time."""
    skip = position["same"] if seeks else position["messages"]
    for number, raw in enumerate(messages):
        if number >= skip:
            yield raw


def _read(recording, converter, checkpoints, found, progress) -> None:
    """Converts all messages."""
    taken = [topic for topic in recording.topics if topic.kind not in (None, "tf")]
    position: Any = found["position"] if found else {"messages": 0, "same": 0, "receive_ns": None}
    messages = recording.raw(taken, position["receive_ns"] if recording.seeks else None)
    if found:
        messages = _skip(messages, position, recording.seeks)
    count, same, last_ns, report = position["messages"], position["same"], position["receive_ns"], converter.report
    for topic, receive_ns, raw_size, read in messages:
        if checkpoints.due():
            checkpoints.save({"messages": count, "same": same, "receive_ns": last_ns},
                             {"converter": converter.state(), "topics": _topic_states(recording)})
        _convert(converter, topic, read)
        count, same, last_ns = count + 1, (same + 1 if receive_ns == last_ns else 1), receive_ns
        report.read_bytes += raw_size
        progress(count, report.read_bytes, report.points)


def _show(progress, recording):
    """A function (messages, bytes, points) that draws a line."""
    total, begin = max(sum(t.count for t in recording.topics if t.kind not in (None, "tf")), 1), time.monotonic()

    def show(messages, size, points):
        amount, passed_s = summary.amount, max(time.monotonic() - begin, 1e-3)
        progress.update(min(messages / total, 1.0), f"{amount(size)}B, {amount(size / passed_s)}B/s, {amount(points / passed_s)}points/s")
    return show


def _convert(converter, topic, read):
    try:
        decoded = list(read())
    except (MemoryError, OSError, ImportError):
        raise
    except Exception as error:  # of a parser: anything; one bad message does not end an import
        text = " ".join(str(error).split())[:160] or type(error).__name__
        converter.report.leave(topic.kind, text)
        return
    if not decoded and not isinstance(topic.state, Stream):
        converter.report.leave(topic.kind, "no fix" if topic.kind == "gnss" else "nothing in it")
    for message in decoded:
        converter.write(message, topic.kind)


# ---- the command ----

def _run(args, out: Optional[Path]) -> Tuple[dict, bool]:
    """Writes the bag `out`, None for standard output; returns the summary, and whether there are settings."""
    options, project, begin = _options(args), _projection(args), time.monotonic()
    with open_recording(args.recording, options) as recording:
        find_calibrations(recording, options)
        _check_out(out, recording.files, is_forced=True)
        frames = sensor_frames.find(recording, args.base_frame)
        key = identity(recording.files, _key(args)) if out else None
        checkpoints = Checkpoints(out, key)
        found = checkpoints.load(anew=args.force)
        bag = BagWriter(checkpoints.part, append=found is not None) if out else BagWriter("-")
        converter = Converter(bag, frames, project, args.every_pose)
        if found:
            converter.restore(found["state"]["converter"])
            _restore_topics(recording, found["state"]["topics"])
            _say(args, f"goes on: {found['position']['messages']} messages are in {checkpoints.part.name}")
        try:
            with Progress("import", args.quiet) as progress:
                _read(recording, converter, checkpoints, found, _show(progress, recording))
        except DamagedError as error:
            converter.report.damage = str(error)
        except (RecordingError, MissingPackage):
            bag.close()
            checkpoints.remove()
            raise
        finally:
            bag.close()  # a writer that is left open removes its file, which the next import needs
        report = converter.report
        if not report.taken.get("scan"):
            checkpoints.remove()
            why = report.damage or "; ".join(f"{count} {key}" for key, count in list(report.left.items())[:3])
            raise RecordingError(f"{recording.name}: no scan in it can be used{': ' + why if why else ''}")
        has_settings = False
        if report.damage:
            print(f"ndt-import: warning: {report.damage}; the bag has what comes before", file=sys.stderr)
        if out:
            checkpoints.finish(out)
            has_settings = summary.write_settings(out.with_name(out.name + ".yaml"), summary.settings(recording, frames, report))
        told = summary.summary(recording, frames, report, time.monotonic() - begin)
        return {**told, "projector": project.info if project else None}, has_settings


def _say(args, text):
    if not args.quiet and not args.json:
        print(text, file=sys.stderr)


def _check_out(out: Optional[Path], inputs, is_forced: bool) -> None:
    """--force overwrites what was written before, not what is read."""
    if out is None or not out.exists():
        return
    if any(Path(one).exists() and out.samefile(one) for one in inputs):
        raise UsageError(f"{out}: is an input")
    if not is_forced:
        raise UsageError(f"{out}: exists already; --force overwrites it")
    if out.is_dir():
        raise UsageError(f"{out}: is a folder; -o names a file")


def _import(args) -> None:
    is_pipe = args.out == "-"
    out = None if is_pipe else Path(args.out) if args.out else _default_out(args.recording[0])
    _check_out(out, args.recording, args.force)
    told, has_settings = _run(args, out)
    stream = sys.stderr if is_pipe else sys.stdout
    if args.json:
        print(json.dumps({"out": args.out if is_pipe else str(out), **told}, indent=1), file=stream)
    elif not args.quiet:
        if out is not None:
            print(f"written: {out}: ndtd --replay {out}{f' -c {out}.yaml' if has_settings else ''} --map MAP")
        print(summary.text_of(told), file=stream)


def _list(args) -> None:
    with open_recording(args.recording, _options(args)) as recording:
        topics, duration_s = recording.topics, recording.duration_s
    if args.json:
        print(json.dumps([{"topic": t.name, "type": t.type, "count": t.count, "kind": t.kind, "why": t.why} for t in topics], indent=1))
    else:
        print(topic_rules.table(topics, duration_s))


def main(arguments: Optional[List[str]] = None) -> int:
    """The command; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] == ["map"]:
        from .map_import import main as map_main
        return map_main(arguments[1:])
    args = parser().parse_args(arguments)

    def work() -> None:
        try:
            (_list if args.list else _import)(args)
        except topic_rules.AmbiguousError as error:
            print(error.table, file=sys.stderr)  # the last line is the reason, also for ndtd, which may have started this
            raise UsageError(str(error)) from None

    return finish("ndt-import", work, "stopped" + ("" if args.out == "-" else "; the same command goes on from here"))


def command(arguments: Optional[List[str]] = None) -> int:
    """The console command: main in a process of its own."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] == ["map"]:
        from .map_import import command as map_command
        return map_command(arguments[1:])
    args = parser().parse_args(arguments)
    return _child.run(lambda: main(arguments), "ndt-import", args.recording[0])


if __name__ == "__main__":
    sys.exit(command())
