"""ndt-import: any recording to a bag for `ndtd --replay`."""
import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, List, Optional, Tuple

from ._core import BagWriter
from ._extras import MissingPackage
from .recordings import frames as frames_of
from .recordings import topics as topic_rules
from .recordings.checkpoint import Checkpoints, identity
from .recordings.convert import Converter
from .recordings.messages import RecordingError
from .recordings.points import UNITS
from .recordings.progress import Progress, amount
from .recordings.sources import open_recording

DONE, FAILED, USAGE, ENVIRONMENT, STOPPED = 0, 1, 2, 3, 130

EPILOG = """
Reads ROS 1 bags, ROS 2 recordings (folder, .db3, .mcap), MCAP with Foxglove's messages, KITTI drives, and folders of .bin
(KITTI, nuScenes, MulRan), .pcd or .ply. Topics are found by their types; where several could be meant they are listed, and
--scan and the others choose. Writes OUT and, where the recording tells more than a bag holds, OUT.yaml for `ndtd -c`.
An import that was stopped goes on when it is started again. `ndt-import map` makes maps: see its --help.

  ndt-import drive.bag                        writes drive.bag.bin
  ndt-import drive/ --scan /top --scan /left  two sensors
  ndt-import drive.mcap -o - | ndtd --replay - --map map.pcd
"""


class UsageError(Exception):
    """Arguments that do not go together; one line."""


def parser() -> argparse.ArgumentParser:
    """The options; docs/recordings.md explains them."""
    out = argparse.ArgumentParser(prog="ndt-import", description="Makes a bag for `ndtd --replay` from any recording.",
                                  epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("recording", nargs="+", help="file or folder; the parts of a ROS 1 recording go together")
    out.add_argument("-o", "--out", help="bag to write; default: the name of the recording with .bin; '-': standard output")
    out.add_argument("--force", action="store_true", help="overwrite OUT if it exists, and begin anew")
    out.add_argument("--list", action="store_true", help="list topics and what they are taken for; write nothing")
    out.add_argument("--json", action="store_true", help="print the summary (or the list) as JSON")
    out.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    out.add_argument("--progress", action="store_true", help="progress where standard error is no terminal, too")
    which = out.add_argument_group("topics", "of a type that fits; given again: several; 'none': nothing of this kind")
    for kind in topic_rules.KINDS:
        which.add_argument(f"--{kind}", metavar="TOPIC", action="append", dest=f"topics_{kind}",
                           help={"pose": "initial pose", "truth": "true poses T_map_base"}.get(kind, kind))
    which.add_argument("--every-pose", action="store_true", help="all initial poses instead of the first alone")
    how = out.add_argument_group("meaning")
    how.add_argument("--base-frame", metavar="FRAME", help="frame of the vehicle; default: base_link, base_footprint ...")
    how.add_argument("--time-unit", choices=list(UNITS), help="of the times of points; default: what makes a sweep of them")
    how.add_argument("--projector", metavar="FILE", help="map_projector_info.yaml of the map, or its folder: GNSS to the map")
    how.add_argument("--utm", action="store_true", help="the map is in UTM: GNSS to UTM, the zone of the first fix")
    how.add_argument("--times", metavar="FILE", help="folders: one stamp per line; default: beside the scans")
    how.add_argument("--rate", metavar="HZ", type=float, help="folders without stamps: scans per second")
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
    return topic_rules.Options(topics=topics, base_frame=args.base_frame, time_unit_s=UNITS.get(args.time_unit),
                               times=args.times, rate_hz=args.rate, columns=args.columns)


def _key(args) -> dict:
    """The options that change the bag."""
    names = [f"topics_{kind}" for kind in topic_rules.KINDS] + ["every_pose", "base_frame", "time_unit", "projector", "utm",
                                                               "times", "rate", "columns"]
    return {name: getattr(args, name) for name in names}


def _projection(args) -> Any:
    """A function (latitude, longitude, altitude) to x y z, or None."""
    if not args.projector and not args.utm:
        return None
    from .georeference import Projector
    if args.projector:
        path = Path(args.projector)
        return Projector.from_file(path / "map_projector_info.yaml" if path.is_dir() else path).forward
    made: List[Any] = []

    def forward(latitude, longitude, altitude):
        if not made:
            made.append(Projector.utm(latitude, longitude))
        return made[0].forward(latitude, longitude, altitude)
    return forward


def _default_out(recording: str) -> Path:
    path = Path(recording).absolute()
    return Path.cwd() / (path.name + ".bin")


# ---- reading ----

def _topic_states(recording) -> dict:
    """What the readers of topics have learned, as JSON."""
    out = {}
    for topic in recording.topics:
        if hasattr(topic.state, "unit_s"):
            out[topic.name] = {"unit_s": topic.state.unit_s, "places": topic.state.places, "notes": sorted(topic.state.notes)}
    return out


def _restore_topics(recording, states):
    from .recordings.points import Times
    for topic in recording.topics:
        if topic.name in states:
            kept = states[topic.name]
            topic.state = Times(kept["unit_s"], set(kept["notes"]), kept["places"])


def _skip(messages, position, seeks):
    """The messages behind a checkpoint; with an index the recording began at its receive time."""
    skip = position["same"] if seeks else position["messages"]
    for number, raw in enumerate(messages):
        if number >= skip:
            yield raw


def _read(recording, converter, checkpoints, found, progress) -> int:
    """Converts all messages; returns the bytes that were read."""
    taken = [topic for topic in recording.topics if topic.kind not in (None, "tf")]
    position = found["position"] if found else {"messages": 0, "same": 0, "receive_ns": None, "raw_bytes": 0}
    messages = recording.raw(taken, position["receive_ns"] if recording.seeks else None)
    if found:
        messages = _skip(messages, position, recording.seeks)
    count, same, last_ns, size = (position[key] for key in ("messages", "same", "receive_ns", "raw_bytes"))
    for topic, receive_ns, raw_size, read in messages:
        if checkpoints.due():
            checkpoints.save({"messages": count, "same": same, "receive_ns": last_ns, "raw_bytes": size},
                             {"converter": converter.state(), "topics": _topic_states(recording)})
        _convert(converter, topic, read)
        count, size = count + 1, size + raw_size
        same, last_ns = (same + 1 if receive_ns == last_ns else 1), receive_ns
        progress.update(count, size, converter.report.points)
    return size


def _convert(converter, topic, read):
    try:
        decoded = list(read())
    except (MemoryError, OSError, ImportError):
        raise
    except Exception as error:  # of a parser: anything; one bad message does not end an import
        text = " ".join(str(error).split())[:160] or type(error).__name__
        converter.report.leave(topic.kind, text)
        return
    if not decoded:
        converter.report.leave(topic.kind, "no fix" if topic.kind == "gnss" else "nothing in it")
    for message in decoded:
        converter.write(message, topic.kind)


# ---- what is told ----

def _yaml_row(values) -> str:
    return "[" + ", ".join(repr(float(value)) for value in values) + "]"


def _settings(recording, frames, report) -> List[str]:
    """Options of ndtd that follow from the recording, as lines of YAML."""
    poses = {name: frames.of(name) for name in report.sensors}
    known = {name: T for name, T in poses.items() if T is not None}
    lines = []
    antenna = next((frames.of(name) for name in report.gnss_frames if frames.of(name) is not None), None)
    if any(T is not None for T in known.values()) or antenna is not None:
        lines.append("frames:")
    if len(report.sensors) == 1 and known:
        lines.append("  T_base_sensor: " + _yaml_row(next(iter(known.values())).reshape(-1)))
    elif known:
        lines.append("  sensors:")
        lines += ["    - " + " ".join([name] + [repr(float(x)) for x in T.reshape(-1)]) for name, T in known.items()]
        if len(known) == len(report.sensors) > 1:
            lines.append("  merge_sensors: true")
    if antenna is not None:
        lines.append("  gnss_antenna_m: " + _yaml_row(antenna[:3, 3]))
    if report.timed_scans and report.timed_scans == report.taken.get("scan"):
        lines += ["preprocess:", "  deskew: time"]
    elif hasattr(recording, "settings"):
        lines += ["preprocess:"] + [f"  {key}: {value}" for key, value in recording.settings["preprocess"].items()]
    return lines


def _write_settings(path, lines) -> bool:
    if lines:
        path.write_text("# What the recording tells ndtd: ndtd -c FILE\n" + "\n".join(lines) + "\n")
    else:
        path.unlink(missing_ok=True)
    return bool(lines)


def _notes(recording, frames, report) -> List[str]:
    notes = list(getattr(recording, "notes", [])) + frames.notes
    for topic in recording.topics:
        times = topic.state if hasattr(topic.state, "places") else None
        if times is not None and topic.kind == "scan":
            notes += sorted(times.notes)
            if times.places:
                place = max(times.places, key=times.places.get)
                what = f"{place} of the sweep" if place in ("begin", "middle", "end") else f"{place} it"
                notes.append(f"{topic.name}: points have times; the stamp is at the {what}")
    unknown = [name for name in report.sensors if frames.of(name) is None]
    if unknown:
        notes.append(f"the recording does not tell where {', '.join(unknown)} is on the vehicle: frames.T_base_sensor of ndtd")
    if report.rotated:
        notes.append(f"odometry, IMU and poses of {', '.join(report.rotated)} are written as those of {frames.base}")
    if report.steps_back:
        notes.append(f"{report.steps_back} scans are not later than the scan before them")
    return notes


def _summary(recording, frames, report, took_s, size) -> dict:
    untouched = [{"topic": t.name, "type": t.type, "count": t.count, "why": t.why} for t in recording.topics if t.kind is None]
    return {"recording": recording.name, "duration_s": recording.duration_s, "took_s": took_s, "read_bytes": size,
            **asdict(report), "base_frame": frames.base, "topics_left": untouched, "notes": _notes(recording, frames, report),
            "topics": [{"topic": t.name, "type": t.type, "count": t.count, "kind": t.kind} for t in recording.topics if t.kind]}


def _text(summary) -> str:
    taken, took_s = summary["taken"], max(summary["took_s"], 1e-9)
    lines = ["taken: " + ", ".join(f"{count} {kind}" for kind, count in sorted(taken.items())) +
             f"; {amount(summary['points'])}points, {amount(summary['empty_points'])}without a return"]
    for key, count in sorted(summary["left"].items()):
        lines.append(f"left:  {count} {key}")
    for topic in summary["topics_left"]:
        lines.append(f"left:  {topic['count']} of {topic['topic']} ({topic['type']}): {topic['why']}")
    lines += [f"note:  {note}" for note in summary["notes"]]
    lines.append(f"took:  {took_s:.1f} s, {taken.get('scan', 0) / took_s:.0f} scans/s, {amount(summary['points'] / took_s)}points/s, "
                 f"{amount(summary['read_bytes'] / took_s)}B/s")
    return "\n".join(lines)


# ---- the command ----

def _run(args, out: Optional[Path]) -> Tuple[dict, bool]:
    """Writes the bag `out`, None for standard output; returns the summary, and whether there are settings."""
    options, project, begin = _options(args), _projection(args), time.monotonic()
    with open_recording(args.recording, options) as recording:
        frames = frames_of.find(recording, args.base_frame)
        key = identity(recording.files, _key(args)) if out else None
        checkpoints = Checkpoints(out, key)
        if args.force:
            checkpoints.remove()
        found = checkpoints.load()
        progress = Progress(sum(t.count for t in recording.topics if t.kind not in (None, "tf")), args.quiet, args.progress)
        bag = BagWriter(checkpoints.part, append=found is not None) if out else BagWriter("-")
        converter = Converter(bag, frames, project, args.every_pose)
        if found:
            converter.restore(found["state"]["converter"])
            _restore_topics(recording, found["state"]["topics"])
            progress.skip(found["position"]["messages"])
            _say(args, f"goes on: {100 * found['position']['messages'] / max(progress.total, 1):.0f} % are in {checkpoints.part.name}")
        try:
            size = _read(recording, converter, checkpoints, found, progress)
        except (RecordingError, MissingPackage):
            progress.end()
            bag.close()
            checkpoints.remove()
            raise
        finally:
            progress.end()
        bag.close()
        report = converter.report
        if not report.taken.get("scan"):
            checkpoints.remove()
            why = "; ".join(f"{count} {key}" for key, count in list(report.left.items())[:3])
            raise RecordingError(f"{recording.name}: no scan in it can be used{': ' + why if why else ''}")
        has_settings = False
        if out:
            checkpoints.finish(out)
            has_settings = _write_settings(out.with_name(out.name + ".yaml"), _settings(recording, frames, report))
        return _summary(recording, frames, report, time.monotonic() - begin, size), has_settings


def _say(args, text):
    if not args.quiet and not args.json:
        print(text, file=sys.stderr)


def _import(args) -> int:
    is_pipe = args.out == "-"
    out = None if is_pipe else Path(args.out) if args.out else _default_out(args.recording[0])
    if out is not None and out.exists() and not args.force:
        raise UsageError(f"{out}: exists already; --force overwrites it")
    summary, has_settings = _run(args, out)
    stream = sys.stderr if is_pipe else sys.stdout
    if args.json:
        print(json.dumps({"out": args.out if is_pipe else str(out), **summary}, indent=1), file=stream)
    elif not args.quiet:
        if out is not None:
            print(f"written: {out}: ndtd --replay {out}{f' -c {out}.yaml' if has_settings else ''} --map MAP")
        print(_text(summary), file=stream)
    return DONE


def _list(args) -> int:
    try:
        with open_recording(args.recording, _options(args)) as recording:
            topics, duration_s = recording.topics, recording.duration_s
    except topic_rules.AmbiguousError as error:
        print(f"ndt-import: {error}", file=sys.stderr)
        return USAGE
    if args.json:
        print(json.dumps([{"topic": t.name, "type": t.type, "count": t.count, "kind": t.kind, "why": t.why} for t in topics], indent=1))
    else:
        print(topic_rules.table(topics, duration_s))
    return DONE


def main(arguments: Optional[List[str]] = None) -> int:
    """The command; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] == ["map"]:
        from .map_import import main as map_main
        return map_main(arguments[1:])
    args = parser().parse_args(arguments)
    try:
        return _list(args) if args.list else _import(args)
    except (UsageError, topic_rules.AmbiguousError) as error:
        code, text = USAGE, error
    except MissingPackage as error:
        code, text = ENVIRONMENT, error
    except (RecordingError, ValueError, OSError) as error:
        code, text = FAILED, error
    except MemoryError:
        code, text = FAILED, "out of memory"
    except KeyboardInterrupt:
        print("ndt-import: stopped; the same command goes on from here", file=sys.stderr)
        return STOPPED
    print(f"ndt-import: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
