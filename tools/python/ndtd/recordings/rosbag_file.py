"""ROS 1 bags and ROS 2 recordings, by `rosbags`."""
import contextlib
import os
import sqlite3
import tempfile
from pathlib import Path
from typing import Any, Iterator, Optional

from .._extras import need
from . import ros, topics
from .messages import Raw, RecordingError


def reason(error: Exception) -> str:
    """An exception of a parser in one line."""
    return " ".join((str(error) or type(error).__name__).split())[:300]


def default_store() -> Any:
    """Types for recordings without definitions: those of ROS 2, and those that READERS know besides."""
    typesys = need("rosbags.typesys", "ros")
    store = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)
    found = {}
    for name, text in ros.EXTRA_TYPES.items():
        found.update(typesys.get_types_from_msg(text, name))
    known = getattr(store, "fielddefs", None) or store.FIELDDEFS  # rosbags before 0.10, the last for Python 3.9
    store.register({name: definition for name, definition in found.items() if name not in known})
    return store


def _reads_files() -> bool:
    """Whether this version of rosbags opens a .db3 that has no folder."""
    return ".db3" in getattr(need("rosbags.rosbag2", "ros").Reader, "STORAGE_PLUGINS", {})


def _as_folder(path: Path, stack: contextlib.ExitStack) -> Path:
    """A folder with a link to a .db3, and the metadata that rosbag2 would have written."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT name, type, serialization_format, (SELECT COUNT(*) FROM messages WHERE topic_id = topics.id), "
                                "(SELECT MIN(timestamp) FROM messages), (SELECT MAX(timestamp) FROM messages) FROM topics").fetchall()
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    os.symlink(path.resolve(), folder / path.name)
    begin, end = (rows[0][4] or 0, rows[0][5] or 0) if rows else (0, 0)
    topic_lines = "".join(
        f"    - topic_metadata: {{name: '{name}', type: {kind}, serialization_format: {form}, offered_qos_profiles: ''}}\n"
        f"      message_count: {count}\n" for name, kind, form, count, _, _ in rows)
    (folder / "metadata.yaml").write_text(
        "rosbag2_bagfile_information:\n  version: 5\n"
        f"  storage_identifier: sqlite3\n  relative_file_paths: ['{path.name}']\n"
        f"  duration: {{nanoseconds: {end - begin}}}\n  starting_time: {{nanoseconds_since_epoch: {begin}}}\n"
        f"  message_count: {sum(row[3] for row in rows)}\n  topics_with_message_count:\n{topic_lines}"
        "  compression_format: ''\n  compression_mode: ''\n  files: []\n")
    return folder


class RosbagRecording:
    """One or more .bag, a .db3, or a ROS 2 folder."""

    def __init__(self, paths: list, options: topics.Options, stack: contextlib.ExitStack):
        highlevel = need("rosbags.highlevel", "ros")
        self.name = str(paths[0])
        given = paths[0]
        try:
            if given.suffix == ".db3" and not _reads_files():
                paths = [_as_folder(given, stack)]
            self._reader = stack.enter_context(highlevel.AnyReader(paths, default_typestore=default_store()))
            self.duration_s = max(0, self._reader.duration) * 1e-9
            self.start_ns = self._reader.start_time
        except MemoryError:
            raise
        except Exception as error:  # of the parser: anything
            raise RecordingError(_opening(given, error)) from None
        self._options = options
        counts: dict = {}
        for c in self._reader.connections:
            counts[c.topic, c.msgtype] = counts.get((c.topic, c.msgtype), 0) + (c.msgcount or 0)
        self.topics = [topics.make(name, kind, count, ros.READERS, ros.refused(kind)) for (name, kind), count in counts.items()]
        self._topic = {(topic.name, topic.type): topic for topic in self.topics}
        self.seeks = len(paths) == 1 and not _is_split(given)
        self.files = _files([given, *paths[1:]])
        topics.choose(self.topics, options, self.name, self.duration_s)

    def raw(self, wanted: list, start_ns: Optional[int] = None) -> Iterator[Raw]:
        """The messages of topics in the order of their receive times, from start_ns on."""
        chosen = {id(topic) for topic in wanted}
        connections = [c for c in self._reader.connections if id(self._topic[c.topic, c.msgtype]) in chosen]
        if not connections:
            return
        decode, is_ros2, options = self._reader.deserialize, self._reader.is2, self._options
        try:
            for connection, receive_ns, raw in self._reader.messages(connections=connections, start=start_ns):
                topic = self._topic[connection.topic, connection.msgtype]
                yield Raw(topic, receive_ns, len(raw),
                          lambda t=topic, r=raw, ns=receive_ns: ros.read(t.type, decode, r, is_ros2, ns, t, options))
        except (MemoryError, OSError, GeneratorExit):
            raise
        except Exception as error:  # of the parser: anything
            raise RecordingError(f"{self.name}: damaged: {reason(error)}") from None


def _opening(path, error):
    text = reason(error)
    if "magic" in text or "file is not a database" in text.lower() or "notadb" in text.lower():
        return f"{path}: not a recording of ROS: {text}"
    if "not indexed" in text:
        return f"{path}: it was not closed, so it has no index; `rosbag reindex` repairs it"
    return f"{path}: {text}"


def _is_split(path: Path) -> bool:
    return path.is_dir() and sum(one.suffix in (".db3", ".mcap", ".zstd") for one in path.iterdir()) > 1


def _files(paths):
    files = []
    for path in paths:
        files += sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
    return files
