"""Kinds of topics, found by their types and by what the user says."""
import os
from dataclasses import dataclass, field
from typing import Callable, Optional

from .messages import RecordingError, Topic

KINDS = ("scan", "odometry", "imu", "gnss", "pose", "truth")
WORDS = {"scan": "scans", "odometry": "odometry", "imu": "an IMU", "gnss": "GNSS", "pose": "initial poses", "truth": "the truth"}
MOST_NAMED = 6  # topics in one line
# The first type in this list is meant where topics of several types are of one kind.
PREFERRED = ("sensor_msgs/msg/PointCloud2", "foxglove.PointCloud", "nav_msgs/msg/Odometry",
             "geometry_msgs/msg/TwistWithCovarianceStamped", "geometry_msgs/msg/TwistStamped")


@dataclass
class Options:
    """Choice of what is taken, and how; `topics` maps a kind to the set of topics that the user named (empty: none of it)."""

    topics: dict = field(default_factory=dict)
    time_unit_s: Optional[float] = None
    times: Optional[str] = None  # folders: file of stamps
    rate_hz: Optional[float] = None  # folders: where there are no stamps
    columns: Optional[int] = None  # of .bin: floats per point
    scene: Optional[str] = None  # nuScenes with its tables
    calibration: dict = field(default_factory=dict)  # packets: bytes of the file of a sensor, by topic; "": of all others
    only_list: bool = False  # topics that could be meant are marked instead of refused: "scan?"


class AmbiguousError(RecordingError):
    """Several topics could be meant; the user has to say which. `table` has them in lines."""

    def __init__(self, text: str, table: str):
        super().__init__(text)
        self.table = table


def table(topics: list, duration_s: float) -> str:
    """Topics with type, count, rate and what they are taken for, in lines."""
    rows = [(topic.kind or "-", topic.name, topic.type, str(topic.count),
             f"{topic.count / duration_s:.1f} Hz" if duration_s > 0 else "") for topic in topics]
    widths = [max([len(row[k]) for row in rows] + [1]) for k in range(5)]
    return "\n".join("  " + "  ".join(text.rjust(width) if k in (3, 4) else text.ljust(width)
                                      for k, (text, width) in enumerate(zip(row, widths))).rstrip() for row in rows)


def _named(topic, options):
    """The kind that the user gave a topic, or None."""
    return next((kind for kind in KINDS if topic.name in options.topics.get(kind, ())), None)


def _assign(topics, options, where):
    for topic in topics:
        kind = _named(topic, options)
        if kind is not None and kind not in topic.kinds:
            what = " or ".join("--" + one for one in topic.kinds if one in KINDS)
            raise RecordingError(f"{where}: {topic.name} ({topic.type}) cannot be --{kind}" + (f", but {what}" if what else ""))
        default = topic.kinds[0] if topic.kinds else ""
        if kind is not None:
            topic.kind = kind
        elif not topic.kinds:
            topic.why = topic.why or "its type is not used"
        elif not default:
            topic.why = "only where it is named: " + ", ".join("--" + one for one in topic.kinds[1:])
        elif default in options.topics:
            topic.why = f"--{default} names others" if options.topics[default] else f"--{default} none"
        elif topic.count:
            topic.kind = default
        else:
            topic.why = "no messages"


def _check_names(topics, options, where):
    known = {topic.name for topic in topics}
    for kind, names in options.topics.items():
        for name in sorted(names):
            if name not in known:
                fit = [topic.name for topic in topics if kind in topic.kinds]
                there = f"; there are: {', '.join(fit[:MOST_NAMED])}" if fit else "; --list shows those there are"
                if kind == "truth" and os.path.isfile(name):
                    there = f"; of scans in a folder: ndt-bag pack --scans DIR --times FILE --truth {name}"
                raise RecordingError(f"{where}: there is no topic {name} for --{kind}{there}")


def _settle(topics, kind, options, where, duration_s):
    """Leaves one topic of a kind, or says that the user must choose."""
    if options.topics.get(kind):
        return
    found = [topic for topic in topics if topic.kind == kind]
    for wanted in PREFERRED:
        if any(topic.type == wanted for topic in found):
            for topic in found:
                if topic.type != wanted:
                    topic.kind, topic.why = None, f"{wanted} is preferred; --{kind} takes it"
            found = [topic for topic in found if topic.type == wanted]
            break
    if len(found) > 1 and options.only_list:
        for topic in found:
            topic.kind, topic.why = f"{kind}?", f"one of {len(found)}: --{kind} chooses"
    elif len(found) > 1:
        more = " (again for each sensor)" if kind == "scan" else f", or --{kind} none"
        raise AmbiguousError(f"{where}: {len(found)} topics could be {WORDS[kind]}; choose with --{kind} TOPIC{more}",
                             table(found, duration_s))


def _leave_poses_in_the_map(topics, options, frame_of):
    """Odometry in the frame of the map is what a localiser says: the truth perhaps, but no measurement."""
    for topic in topics:
        if topic.kind == "odometry" and "truth" in topic.kinds and _named(topic, options) is None and frame_of(topic) == "map":
            topic.kind, topic.why = None, "its frame is the map, as that of a localiser; --odometry or --truth takes it"


def first_frame(recording, topic: Topic) -> str:
    """The frame of the first message of a topic, "" where there is none."""
    try:
        for raw in recording.raw([topic]):
            return next(message.frame_id.lstrip("/") for message in raw.read())
    except Exception:  # told when all messages are read
        pass
    return ""


def choose(topics: list, options: Options, where, duration_s: float, frame_of: Callable[[Topic], str] = lambda topic: "") -> None:
    """Sets the kind of each topic, from `kinds` and the options. frame_of: as first_frame.

    RecordingError: a name that is not there, a type that does not fit, no scans; AmbiguousError: see its text.
    """
    _check_names(topics, options, where)
    _assign(topics, options, where)
    _leave_poses_in_the_map(topics, options, frame_of)
    for kind in ("scan", "odometry", "imu", "gnss", "pose"):
        _settle(topics, kind, options, where, duration_s)
    if not options.only_list and not any(topic.kind == "scan" for topic in topics):
        raise RecordingError(_no_scans(topics, where))


def _no_scans(topics, where):
    packets = [topic for topic in topics if topic.why and not topic.kinds and topic.why != "its type is not used"]
    if packets:
        return f"{where}: no scans: {packets[0].name}: {packets[0].why}"
    named = ", ".join(f"{topic.name} ({topic.type})" for topic in topics[:8])
    more = f" and {len(topics) - 8} more" if len(topics) > 8 else ""
    return f"{where}: no topic of scans; there are: {named or 'none'}{more}"


def make(name: str, message_type: str, count: int, readers, why: str = "") -> Topic:
    """A topic with the kinds of its type."""
    kinds = readers[message_type][0] if message_type in readers else ()
    if message_type.endswith("/PacketMsg") and "imu" in name.rpartition("/")[2]:
        kinds, why = (), "packets of an IMU"
    return Topic(name, message_type, count, kinds=kinds, why="" if kinds else why)
