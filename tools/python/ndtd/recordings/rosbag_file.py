"""ROS 1 bags and ROS 2 recordings, by `rosbags`."""
import contextlib
import heapq
import json
import os
import sqlite3
import tempfile
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Tuple
from urllib.parse import quote

from .._extras import need
from . import ros, topics
from .messages import DamagedError, MetadataError, Raw, RecordingError, Topic
from .ros_types import decoder, reason


def _reads_files() -> bool:
    """Whether this version of rosbags opens a .db3 that has no folder."""
    return ".db3" in getattr(need("rosbags.rosbag2", "ros").Reader, "STORAGE_PLUGINS", {})


def _topics_of(path: Path) -> list:
    """(name, type, format, messages, first and last stamp [ns]) of each topic of a .db3."""
    with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
        return database.execute("SELECT name, type, serialization_format, (SELECT COUNT(*) FROM messages WHERE topic_id = topics.id), "
                                "(SELECT MIN(timestamp) FROM messages), (SELECT MAX(timestamp) FROM messages) FROM topics").fetchall()


def _as_folder(paths: List[Path], stack: contextlib.ExitStack) -> Path:
    """A folder with links to the .db3 of a recording, and the metadata that rosbag2 would have written."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    counts: Dict[Tuple[str, str, str], int] = {}
    stamps: List[int] = []
    for at, path in enumerate(paths):
        os.symlink(path.resolve(), folder / f"{at}.db3")
        for name, kind, form, count, first_ns, last_ns in _topics_of(path):
            counts[name, kind, form] = counts.get((name, kind, form), 0) + count
            stamps += [one for one in (first_ns, last_ns) if one is not None]
    begin_ns, end_ns = (min(stamps), max(stamps)) if stamps else (0, 0)
    topic_rows = [{"topic_metadata": {"name": name, "type": kind, "serialization_format": form, "offered_qos_profiles": ""},
                   "message_count": count} for (name, kind, form), count in counts.items()]
    information = {"version": 5, "storage_identifier": "sqlite3", "relative_file_paths": [f"{at}.db3" for at in range(len(paths))],
                   "duration": {"nanoseconds": end_ns - begin_ns}, "starting_time": {"nanoseconds_since_epoch": begin_ns},
                   "message_count": sum(counts.values()), "topics_with_message_count": topic_rows, "compression_format": "",
                   "compression_mode": "", "files": []}
    (folder / "metadata.yaml").write_text(json.dumps({"rosbag2_bagfile_information": information}))  # JSON is YAML
    return folder


class RosbagRecording:
    """One or more .bag, a .db3 or those of one recording, or a ROS 2 folder."""

    def __init__(self, paths: list, options: topics.Options, stack: contextlib.ExitStack):
        given = paths[0]
        self.name = str(given)
        self._is_ros1 = given.suffix == ".bag"
        try:
            self._readers = [stack.enter_context(reader) for reader in self._make(paths, stack)]
            self.start_ns = min(reader.start_time for reader in self._readers)
            self.duration_s = max(0, max(reader.start_time + reader.duration for reader in self._readers) - self.start_ns) * 1e-9
        except (MemoryError, ImportError):
            raise
        except Exception as error:  # of the parser: anything
            raise (MetadataError if given.is_dir() else RecordingError)(_opening(given, error)) from None
        self.notes: List[str] = []
        self._options = options
        self._decoders: Dict[str, Callable] = {}
        self.topics: List[Topic] = []
        self._topic: Dict[Tuple[str, str], Topic] = {}
        for connection in (one for reader in self._readers for one in reader.connections):
            self._add(connection)
        self.seeks = len(paths) == 1 and not _is_split(given)
        self.files = _files(paths)
        topics.choose(self.topics, options, self.name, self.duration_s, lambda topic: topics.first_frame(self, topic))

    def _make(self, paths, stack):
        if self._is_ros1:
            return [need("rosbags.rosbag1", "ros").Reader(path) for path in paths]
        is_alone = len(paths) == 1 and (paths[0].suffix != ".db3" or _reads_files())
        path = paths[0] if is_alone else _as_folder(paths, stack)
        return [need("rosbags.rosbag2", "ros").Reader(path)]

    def _add(self, connection):
        key = connection.topic, connection.msgtype
        if key not in self._topic:
            self._topic[key] = topics.make(*key, 0, ros.READERS)
            self.topics.append(self._topic[key])
        self._topic[key].count += connection.msgcount or 0

    def _decode(self, connection, raw):
        """Decodes with the definition of its own connection."""
        kind = connection.msgtype
        if kind not in self._decoders:
            definition = connection.msgdef
            text = getattr(definition, "data", definition) or ""
            is_idl = getattr(getattr(definition, "format", None), "name", "") == "IDL" or text.startswith("=" * 80 + "\nIDL: ")
            self._decoders[kind] = decoder(kind, text, is_idl, self._is_ros1)
        return self._decoders[kind](raw, kind)

    def raw(self, wanted: list, start_ns: Optional[int] = None) -> Iterator[Raw]:
        """The messages of topics in the order of their receive times, from start_ns on."""
        chosen = {id(topic) for topic in wanted}
        parts = []
        for reader in self._readers:
            connections = [c for c in reader.connections if id(self._topic[c.topic, c.msgtype]) in chosen]
            if connections:
                parts.append(reader.messages(connections=connections, start=start_ns))
        try:
            for connection, receive_ns, raw in heapq.merge(*parts, key=lambda message: message[1]):
                topic = self._topic[connection.topic, connection.msgtype]
                yield Raw(topic, receive_ns, len(raw), partial(self._read, connection, topic, receive_ns, raw))
        except (MemoryError, OSError, ImportError, GeneratorExit):
            raise
        except Exception as error:  # of the parser: anything
            raise DamagedError(f"{self.name}: damaged: {reason(error)}") from None

    def _read(self, connection, topic, receive_ns, raw):
        return ros.read(topic.type, lambda data, _: self._decode(connection, data), raw, not self._is_ros1, receive_ns, topic,
                        self._options)


def _opening(path, error):
    text = reason(error).replace("('", "").replace("',)", "")  # rosbags' errors of more than one part
    if isinstance(error, UnicodeDecodeError):
        return f"{path}: not a recording of ROS: its first line is not text"
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
