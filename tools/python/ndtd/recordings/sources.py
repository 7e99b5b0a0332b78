"""Opens a recording by what it is: ROS 1 bag, ROS 2 folder, .db3 or .mcap, or a folder of scans."""
import contextlib
import os
import sqlite3
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from . import folders, ros
from .messages import Topic


class SourceError(ValueError):
    """A recording that cannot be read; one line that names it and the reason."""


@dataclass
class Options:
    """scan, odometry ...: the topics to take of a kind; None: all of that kind, but scans of one topic only."""
    topics: dict = field(default_factory=dict)
    time_unit_s: Optional[float] = None
    times: Optional[str] = None  # folders: file of stamps
    poses: Optional[str] = None


def needs(module, extra):
    """Imports a module of an extra, or says which one is missing."""
    try:
        return __import__(module, fromlist=["_"])
    except ImportError:
        raise SourceError(f"this needs the Python package '{module.split('.')[0]}': pip install 'ndtd[{extra}]'") from None


@contextlib.contextmanager
def open(path, options=None):
    """A context with .topics (list of Topic) and .messages() (iterator). SourceError where `path` is no recording."""
    path = Path(path)
    options = options or Options()
    if not path.exists():
        raise SourceError(f"{path}: no such file or folder")
    with contextlib.ExitStack() as stack:
        yield _open(path, options, stack)


def _open(path, options, stack):
    if path.is_dir() and not (path / "metadata.yaml").exists():
        singles = [one for one in sorted(path.iterdir()) if one.suffix in (".db3", ".mcap", ".bag")]
        if len(singles) == 1:
            return _open(singles[0], options, stack)
        if singles:
            raise SourceError(f"{path}: {len(singles)} recordings in it; name one")
        return folders.Folder(path, options)
    if path.suffix == ".db3":
        return RosRecording([_as_folder(path, _db3_topics(path), "sqlite3", stack)], options, stack)
    if path.suffix == ".mcap":
        return _open_mcap(path, options, stack)
    if path.suffix == ".bag" or path.is_dir():
        return RosRecording([path], options, stack)
    raise SourceError(f"{path}: not a recording; known are .bag (ROS 1), .db3, .mcap, a ROS 2 folder, and folders of scans")


def _db3_topics(path):
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return database.execute("SELECT name, type, serialization_format, (SELECT COUNT(*) FROM messages "
                                    "WHERE topic_id = topics.id) FROM topics").fetchall()
    except sqlite3.Error as error:
        raise SourceError(f"{path}: not a ROS 2 recording: {error}") from None


def _mcap_summary(path):
    reader = needs("mcap.reader", "ros")
    with path.open("rb") as stream:
        try:
            summary = reader.make_reader(stream).get_summary()
        except Exception as error:  # of the parser: anything
            raise SourceError(f"{path}: not an MCAP file: {error}") from None
    if summary is None or summary.statistics is None:
        raise SourceError(f"{path}: it has no summary, so it was not closed; `mcap recover` repairs it")
    return summary


def _open_mcap(path, options, stack):
    summary = _mcap_summary(path)
    encodings = {channel.message_encoding for channel in summary.channels.values()}
    if "protobuf" in encodings:
        from . import foxglove
        return foxglove.Recording(path, summary, options)
    rows = [(channel.topic, summary.schemas[channel.schema_id].name, "cdr",
             summary.statistics.channel_message_counts.get(number, 0))
            for number, channel in summary.channels.items() if channel.message_encoding == "cdr"]
    if not rows:
        raise SourceError(f"{path}: messages are {', '.join(sorted(encodings)) or 'missing'}; cdr and protobuf are read")
    return RosRecording([_as_folder(path, rows, "mcap", stack)], options, stack)


def _as_folder(path, rows, storage, stack):
    """A folder with a link to the file and the metadata that rosbag2 would have written."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    os.symlink(path.resolve(), folder / path.name)
    topics = "".join(
        f"    - topic_metadata: {{name: '{name}', type: {kind}, serialization_format: {form}, offered_qos_profiles: ''}}\n"
        f"      message_count: {count}\n" for name, kind, form, count in rows)
    (folder / "metadata.yaml").write_text(
        "rosbag2_bagfile_information:\n  version: 5\n"
        f"  storage_identifier: {storage}\n  relative_file_paths: ['{path.name}']\n"
        "  duration: {nanoseconds: 0}\n  starting_time: {nanoseconds_since_epoch: 0}\n"
        f"  message_count: {sum(row[3] for row in rows)}\n  topics_with_message_count:\n{topics}"
        "  compression_format: ''\n  compression_mode: ''\n  files: []\n")
    return folder


def choose(topics, readers, options, where):
    """Sets the kind of each topic; SourceError where several could be the scans, or a named one is missing."""
    for topic in topics:
        kind = readers[topic.type][0] if topic.type in readers else None
        wanted = options.topics.get(kind)
        if kind is None:
            topic.why = "its type is not used"
        elif wanted is not None and topic.name not in wanted:
            topic.why = f"--{kind.replace('_', '-')} names others"
        else:
            topic.kind = kind
    known = {topic.name for topic in topics if topic.kind}
    for kind, names in options.topics.items():
        for name in names or ():
            if name not in known:
                raise SourceError(f"{where}: no topic {name} that could be --{kind.replace('_', '-')}; there are: " +
                                  ", ".join(f"{t.name} ({t.type})" for t in topics))
    scans = [topic.name for topic in topics if topic.kind == "scan"]
    if len(scans) > 1 and options.topics.get("scan") is None:
        raise SourceError(f"{where}: {len(scans)} topics of scans; choose with --scan: {', '.join(sorted(scans))}")
    if not scans:
        raise SourceError(f"{where}: no topic of scans; there are: " +
                          ", ".join(f"{t.name} ({t.type})" for t in topics))


class RosRecording:
    """ROS 1 and ROS 2 alike, by rosbags."""

    def __init__(self, paths, options, stack):
        highlevel = needs("rosbags.highlevel", "ros")
        typesys = needs("rosbags.typesys", "ros")
        store = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)
        try:
            self._reader = stack.enter_context(highlevel.AnyReader(paths, default_typestore=store))
        except Exception as error:  # of the parser: anything
            raise SourceError(f"{paths[0]}: {str(error) or type(error).__name__}") from None
        self._options = options
        self.topics = [Topic(c.topic, c.msgtype, c.msgcount) for c in self._reader.connections]
        choose(self.topics, ros.READERS, options, paths[0])

    def messages(self):
        taken = {topic.name: topic for topic in self.topics if topic.kind}
        connections = [c for c in self._reader.connections if c.topic in taken]
        for connection, receive_ns, raw in self._reader.messages(connections=connections):
            read = ros.tf_static if connection.topic == "/tf_static" else ros.READERS[connection.msgtype][1]
            message = self._reader.deserialize(raw, connection.msgtype)
            for one in read(message, receive_ns, self._options):
                taken[connection.topic].taken += 1
                yield one
