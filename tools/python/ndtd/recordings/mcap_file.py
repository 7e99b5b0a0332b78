"""MCAP files: ROS 2, ROS 1 and Foxglove's protobuf messages, by `mcap`."""
import contextlib
import inspect
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Optional

from .._extras import need
from . import foxglove, ros, topics
from .messages import DamagedError, Raw, RecordingError, Topic
from .ros_types import decoder, reason, ros2_name

ENCODINGS = ("cdr", "ros1", "protobuf")


class _Contents:
    """Schemas, channels and counts; from the summary, or by reading the file where it was not closed."""

    def __init__(self, path, stream):
        self.schemas, self.channels, self.counts = {}, {}, {}
        self.start_ns = self.end_ns = 0
        self.is_indexed = False
        self.damage = ""
        try:
            summary = need("mcap.reader", "ros").make_reader(stream).get_summary()
            self.is_indexed = summary is not None and summary.statistics is not None and bool(summary.chunk_indexes)
        except Exception as error:  # of the parser: anything
            self.damage = reason(error)
        if self.is_indexed:
            self.schemas, self.channels = summary.schemas, summary.channels
            self.counts = summary.statistics.channel_message_counts
            self.start_ns, self.end_ns = summary.statistics.message_start_time, summary.statistics.message_end_time
            return
        self._scan(path, stream)

    def _scan(self, path, stream):
        count = 0
        for record in records(stream, self):
            kind = type(record).__name__
            if kind == "Schema":
                self.schemas[record.id] = record
            elif kind == "Channel":
                self.channels[record.id] = record
            elif kind == "Message":
                count += 1
                self.counts[record.channel_id] = self.counts.get(record.channel_id, 0) + 1
                self.start_ns = min(self.start_ns or record.log_time, record.log_time)
                self.end_ns = max(self.end_ns, record.log_time)
        if count == 0:
            raise RecordingError(f"{path}: not an MCAP file with messages{': ' + self.damage if self.damage else ''}")


def records(stream, contents) -> Iterator[Any]:
    """The records of a file without an index, up to its end or its damage, which is told in `contents`."""
    stream.seek(0)
    reader = need("mcap.stream_reader", "ros")
    try:
        yield from reader.StreamReader(stream, validate_crcs=True).records
    except (OSError, GeneratorExit):
        raise
    except Exception as error:  # of the parser: anything
        contents.damage = reason(error)


class McapRecording:
    """One .mcap file."""

    def __init__(self, path, options: topics.Options, stack: contextlib.ExitStack):
        self.name, self.files = str(path), [path]
        self._stream = stack.enter_context(open(path, "rb"))
        self._contents = contents = _Contents(path, self._stream)
        self._options = options
        self.seeks = contents.is_indexed
        self.start_ns = contents.start_ns
        self.duration_s = (contents.end_ns - contents.start_ns) * 1e-9
        self.notes = []
        if not contents.is_indexed:
            self.notes.append("the file has no index, as it was not closed; it is read in its own order")
        self._decoders: Dict[int, Callable] = {}
        self.topics: List[Topic] = []
        self._topic: Dict[int, Topic] = {}
        for number, channel in contents.channels.items():
            self._add(number, channel)
        topics.choose(self.topics, options, self.name, self.duration_s, lambda topic: topics.first_frame(self, topic))

    def _add(self, number, channel):
        schema = self._contents.schemas.get(channel.schema_id)
        kind = schema.name if schema else "no schema"
        encoding = channel.message_encoding
        readers = foxglove.READERS if encoding == "protobuf" else ros.READERS
        name = kind if encoding == "protobuf" else ros2_name(kind)
        known = next((t for t in self.topics if (t.name, t.type) == (channel.topic, name)), None)
        count = self._contents.counts.get(number, 0)
        if known is None:
            why = "" if encoding in ENCODINGS else f"its messages are {encoding or 'of no encoding'}; " \
                f"{', '.join(ENCODINGS)} are read"
            known = topics.make(channel.topic, name, 0, readers if encoding in ENCODINGS else {}, why)
            self.topics.append(known)
        known.count += count
        self._topic[number] = known

    def _decoder(self, channel, schema):
        if channel.id not in self._decoders:
            if channel.message_encoding == "protobuf":
                factory = need("mcap_protobuf.decoder", "ros").DecoderFactory()
                self._decoders[channel.id] = factory.decoder_for("protobuf", schema)
            else:
                name, text, encoding = "", "", ""
                if schema is not None:
                    name, text, encoding = ros2_name(schema.name), schema.data.decode("utf-8", "replace"), schema.encoding
                self._decoders[channel.id] = decoder(name, text, encoding == "ros2idl", channel.message_encoding == "ros1")
        return self._decoders[channel.id]

    def _messages(self, names, start_ns):
        reader = need("mcap.reader", "ros")
        if self._contents.is_indexed:
            parameters = inspect.signature(reader.McapReader.iter_messages).parameters
            start = {"starting_at" if "starting_at" in parameters else "start_time": start_ns} if start_ns is not None else {}
            self._stream.seek(0)
            yield from reader.make_reader(self._stream, validate_crcs=True).iter_messages(topics=names, **start)
            return
        for record in records(self._stream, self._contents):
            if type(record).__name__ == "Message" and record.channel_id in self._contents.channels:
                channel = self._contents.channels[record.channel_id]
                if channel.topic in names:
                    yield self._contents.schemas.get(channel.schema_id), channel, record

    def raw(self, wanted: list, start_ns: Optional[int] = None) -> Iterator[Raw]:
        """The messages of topics in the order of their receive times, from start_ns on."""
        chosen, damage = {id(topic) for topic in wanted}, self._contents.damage
        if not wanted:
            return
        try:
            for schema, channel, message in self._messages({topic.name for topic in wanted}, start_ns):
                topic = self._topic[channel.id]
                if id(topic) not in chosen:
                    continue
                yield Raw(topic, message.log_time, len(message.data), partial(self._read, channel, schema, topic, message))
            if damage and not self._contents.is_indexed:
                raise DamagedError(f"{self.name}: not closed: {damage}")
        except (MemoryError, OSError, GeneratorExit, ImportError, DamagedError):
            raise
        except Exception as error:  # of the parser: anything
            raise DamagedError(f"{self.name}: damaged: {reason(error)}") from None

    def _read(self, channel, schema, topic, message):
        decode, options = self._decoder(channel, schema), self._options
        if channel.message_encoding == "protobuf":
            return foxglove.READERS[schema.name][1](decode(message.data), message.log_time, topic, options)
        is_ros2 = channel.message_encoding == "cdr"
        return ros.read(topic.type, decode, message.data, is_ros2, message.log_time, topic, options)
