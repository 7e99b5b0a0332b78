"""Captures of networks: .pcap and .pcapng, of which the packets of LiDARs and the positions (GPRMC) that they pass on are read."""
import struct
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from . import livox, packets, robosense, topics
from .messages import DamagedError, Gnss, Raw, RecordingError, Topic
from .packet_points import NS, calendar_ns, same_clock, scan_of
from .points import PointError

MOST_BLOCK = 1 << 20  # bytes of a packet or a block
MOST_SOURCES = 200
MOST_PARTS = 32  # of a datagram, and datagrams of which parts are kept
MOST_NS = 2 ** 62  # year 2116
MOST_TRIES = 50  # packets of a source before it is given up
SENTENCES = (b"$GPRMC", b"$GNRMC")
# RMC says neither the height nor how good a fix is: what a receiver without corrections has.
DEVIATION_M = (5.0, 5.0, 1000.0)
LATEST_NS = NS  # a sentence comes within its second

# Bytes of a frame before its network layer, and where they say what that is; by type of link.
LINKS = {0: (4, None), 1: (14, 12), 12: (0, None), 101: (0, None), 108: (4, None), 113: (16, 14), 228: (0, None), 229: (0, None),
         276: (20, 0)}
IPV4, IPV6, VLANS = 0x0800, 0x86DD, (0x8100, 0x88A8, 0x9100)


class Datagram(NamedTuple):
    """A UDP datagram: when it was captured [ns], from where, to which port."""

    receive_ns: int
    source: str
    port: int
    payload: bytes


# ---- files ----

def _exactly(stream, size, what):
    data = stream.read(size)
    if len(data) < size:
        raise DamagedError(f"cut off in {what}")
    return data


def _classic(stream, order, per_s) -> Iterator[Tuple[int, int, bytes]]:
    """(receive_ns, link, frame) of a .pcap."""
    link = struct.unpack(order + "HHiIII", _exactly(stream, 20, "its header"))[5] & 0xFFFF
    while True:
        head = stream.read(16)
        if not head:
            return
        if len(head) < 16:
            raise DamagedError("cut off in a packet")
        sec, part, size, _ = struct.unpack(order + "IIII", head)
        if size > MOST_BLOCK:
            raise DamagedError(f"a packet of {size} bytes, the limit is {MOST_BLOCK}")
        yield sec * NS + part * (NS // per_s), link, _exactly(stream, size, "a packet")


def _resolution(options, order):
    """Ticks per second, from the options of an interface."""
    at = 0
    while at + 4 <= len(options):
        code, size = struct.unpack_from(order + "HH", options, at)
        if code == 9 and size == 1 and at + 5 <= len(options):
            value = options[at + 4]
            return min(2 ** (value & 0x7F) if value & 0x80 else 10 ** value, 10 ** 18)
        at += 4 + size + -size % 4
    return 10 ** 6


def _blocks(stream) -> Iterator[Tuple[int, int, bytes]]:
    """(receive_ns, link, frame) of a .pcapng, from its first block on."""
    order, interfaces = "<", []
    while True:
        head = stream.read(12)
        if not head:
            return
        if len(head) < 12:
            raise DamagedError("cut off in a block")
        if head[:4] == b"\x0a\x0d\x0d\x0a":  # a section: the order of its bytes, and its own interfaces
            order, interfaces = ("<" if head[8:12] == b"\x4d\x3c\x2b\x1a" else ">"), []
        kind, size = struct.unpack(order + "II", head[:8])
        if not 12 <= size <= MOST_BLOCK:
            raise DamagedError(f"a block of {size} bytes, the limits are 12 and {MOST_BLOCK}")
        body = head[8:] + _exactly(stream, size - 12, "a block")
        if kind == 1 and len(body) >= 12:
            interfaces.append((struct.unpack_from(order + "H", body)[0], _resolution(body[8:-4], order)))
        elif kind == 6 and len(body) >= 24:
            number, high, low, kept = struct.unpack_from(order + "IIII", body)
            if number < len(interfaces):
                link, per_s = interfaces[number]
                yield (high << 32 | low) * NS // per_s, link, body[20:20 + kept]


def frames(stream: BinaryIO) -> Iterator[Tuple[int, int, bytes]]:
    """(receive_ns, type of link, frame) of a capture. DamagedError: it is cut off or damaged from there on; RecordingError: it is none."""
    magic = stream.read(4)
    for order in "<>":
        for number, per_s in ((0xA1B2C3D4, 10 ** 6), (0xA1B23C4D, NS)):
            if magic == struct.pack(order + "I", number):
                yield from _classic(stream, order, per_s)
                return
    if magic != b"\x0a\x0d\x0d\x0a":
        raise RecordingError("not a capture: neither pcap nor pcapng")
    stream.seek(-4, 1)
    yield from _blocks(stream)


class Part(NamedTuple):
    """A UDP datagram in IP, or a part of it: networks cut those of more than 1500 bytes."""

    source: str
    number: int  # that parts of one datagram have in common
    offset: int
    is_last: bool
    data: bytes


def part_of(link: int, frame: bytes) -> Optional[Part]:
    """The part of a datagram in a frame; None: there is none."""
    at, where = LINKS.get(link, (None, None))
    if at is None:
        return None
    kind = int.from_bytes(frame[where:where + 2], "big") if where is not None else 0
    while kind in VLANS:
        kind = int.from_bytes(frame[at + 2:at + 4], "big")
        at += 4
    if where is None and at < len(frame):
        kind = IPV6 if frame[at] >> 4 == 6 else IPV4
    if kind == IPV4 and len(frame) >= at + 20 and frame[at + 9] == 17:
        size, number, place = struct.unpack_from(">HHH", frame, at + 2)
        data = frame[at + 4 * (frame[at] & 15):at + size]
        return Part(".".join(map(str, frame[at + 12:at + 16])), number, 8 * (place & 0x1FFF), not place & 0x2000, data)
    if kind == IPV6 and len(frame) >= at + 40 and frame[at + 6] == 17:
        return Part(frame[at + 8:at + 24].hex(":", 2), 0, 0, True, frame[at + 40:])
    return None


class Fragments:
    """Joins parts to datagrams; of few at a time, each of few parts."""

    def __init__(self) -> None:
        self._parts: Dict[Tuple[str, int], Dict[int, Part]] = {}

    def add(self, part: Part) -> bytes:
        """The datagram that a part completes, or nothing."""
        if part.offset == 0 and part.is_last:
            return part.data
        key = part.source, part.number
        parts = self._parts.pop(key, {})
        parts[part.offset] = part
        size = next((one.offset + len(one.data) for one in parts.values() if one.is_last), -1)
        if sum(len(one.data) for one in parts.values()) == size:
            return b"".join(parts[offset].data for offset in sorted(parts))
        if len(parts) < MOST_PARTS:
            self._parts[key] = parts
        if len(self._parts) > MOST_PARTS:
            del self._parts[next(iter(self._parts))]
        return b""


def datagram(receive_ns: int, source: str, data: bytes) -> Optional[Datagram]:
    """The ports and the payload of a datagram; None: it is not whole."""
    if len(data) <= 8:
        return None
    _, port, size, _ = struct.unpack_from(">HHHH", data)
    return Datagram(receive_ns, source, port, data[8:size]) if 8 < size <= len(data) else None


# ---- positions ----

def _sentence(payload):
    """The RMC sentence in a packet of positions, or nothing."""
    at = max(payload.find(name) for name in SENTENCES)
    return payload[at:at + 120].split(b"\r")[0].split(b"\n")[0].split(b"\0")[0] if at >= 0 else b""


def _degrees(text, half, width):
    value = int(text[:width]) + float(text[width:]) / 60
    return -value if half in "SW" else value


def fix(sentence: bytes, receive_ns: int) -> Iterator[Gnss]:
    """A fix of an RMC sentence; nothing where the receiver had none. PointError: it is damaged."""
    text, _, check = sentence.decode("ascii", "replace")[1:].partition("*")
    try:
        total = 0
        for letter in text:
            total ^= ord(letter)
        if check and total != int(check[:2], 16):
            raise PointError("an RMC sentence whose checksum is wrong")
        words = text.split(",")
        if words[2] != "A":
            return
        latitude, longitude = _degrees(words[3], words[4], 2), _degrees(words[5], words[6], 3)
        day, month, year = (int(words[9][k:k + 2]) for k in (0, 2, 4))
        hour, minute, second = int(words[1][:2]), int(words[1][2:4]), float(words[1][4:])
    except (ValueError, IndexError) as error:
        raise error if isinstance(error, PointError) else PointError("an RMC sentence that cannot be read") from None
    whole = (np.array([number], np.int64) for number in (2000 + year, month, day, hour, minute, int(second)))
    stamp_ns = int(calendar_ns(*whole)[0]) + round(second % 1 * NS)
    yield Gnss(receive_ns, same_clock(stamp_ns, receive_ns, LATEST_NS), "gnss", latitude, longitude, 0.0, np.array(DEVIATION_M))


# ---- the recording ----

class _Source:
    """Packets that one address sends to one port."""

    def __init__(self, name, calibration):
        self.topic, self.decoder, self.turns = Topic(name, "UDP", 0), None, None
        self.has_file = calibration is not None
        self.address = name.rpartition(":")[0]
        self._calibration, self._tries, self._last = calibration, 0, b""
        self.is_unknown = True  # no packet tells a sensor, nor anything about one

    def begin(self):
        """Prepares reading the packets from the first one on."""
        self.turns, self._last = packets.Turns(self.decoder.turn) if self.decoder else None, b""

    def count(self, one):
        """Takes note of a packet while the capture is looked through."""
        sentence = _sentence(one.payload) if self.decoder is None else b""
        if sentence:
            if not self.topic.kinds:
                self.topic.type, self.topic.kinds, self.topic.why, self.topic.count, self.is_unknown = "GPRMC", ("gnss",), "", 0, False
            self.topic.count += self.is_new(sentence)
        elif livox.is_imu(one.payload) and self.topic.kinds in ((), ("imu",)):
            self.topic.type, self.topic.kinds, self.topic.why, self.is_unknown = "IMU of a Livox", ("imu",), "", False
            self.topic.count += 1
        elif self.decoder is None and self._tries < MOST_TRIES and not self.topic.kinds:
            self._tries += 1
            self._recognise(one.payload)
        if self.turns:
            self.topic.count += len(self.cut(one))
        elif not self.topic.kinds:
            self.topic.count += 1

    def _recognise(self, payload):
        try:
            self.decoder = packets.decoder_of(payload, self._calibration)
        except PointError as error:
            self.is_unknown &= isinstance(error, packets.UnknownPacket)
            self.topic.why = self.topic.why or str(error)
            return
        self.topic.type, self.topic.kinds, self.topic.why = f"packets of a {self.decoder.name}", ("scan",), ""
        self.topic.count, self.topic.state, self.is_unknown = 0, self.decoder, False
        self.begin()

    def is_new(self, sentence):
        """Sensors repeat a sentence until the next one."""
        is_new, self._last = sentence != self._last, sentence
        return is_new

    def cut(self, one):
        """The turns that a packet ends; a packet that is none of the sensor is left."""
        if not self.decoder.is_own(one.payload):
            self.decoder.notes.add(f"{self.topic.name}: packets that are damaged or of another kind are left out")
            return []
        return self.turns.add(one.receive_ns, one.payload)


class PcapRecording:
    """A capture. Each source is a topic `ADDRESS:PORT`, and its address the frame of its scans."""

    seeks = False

    def __init__(self, path: Path, options: topics.Options, stack: Any):
        self.name, self.files, self.notes = str(path), [path], []
        self._stream = stack.enter_context(open(path, "rb"))
        self._sources: Dict[str, _Source] = {}
        self._angles: Dict[str, bytes] = {}
        self._has_others = False  # that were forgotten
        self.start_ns = end_ns = 0
        try:
            for one in self._datagrams():
                self._count(one, options)
                self.start_ns, end_ns = self.start_ns or one.receive_ns, one.receive_ns
        except RecordingError as error:
            if not self._sources:
                raise RecordingError(f"{path}: {error}") from None
            self.notes.append(f"the capture ends before its end: {error}")
        self._calibrate()
        self.duration_s = max(0, end_ns - self.start_ns) * 1e-9
        for source in self._sources.values():
            source.topic.count += len(source.turns.end()) if source.turns else 0
        if not self._sources:
            raise RecordingError(f"{path}: no UDP packets in it")
        known = [source.topic for source in self._sources.values() if not source.is_unknown]
        self.topics: List[Topic] = known or [source.topic for source in self._sources.values()]
        if self._has_others or len(known) < len(self._sources):
            self.notes.append("UDP packets of other sources are left: of no sensor that is known here")
        topics.choose(self.topics, options, self.name, self.duration_s)

    def _datagrams(self) -> Iterator[Datagram]:
        self._stream.seek(0)
        fragments = Fragments()
        for receive_ns, link, frame in frames(self._stream):
            part = part_of(link, frame)
            found = datagram(receive_ns, part.source, fragments.add(part)) if part and receive_ns < MOST_NS else None
            if found is not None:
                yield found

    def _count(self, one, options):
        name = f"{one.source}:{one.port}"
        if name not in self._sources:
            if len(self._sources) >= MOST_SOURCES:  # answers to other programs, each to a port of its own
                self._sources = {name: source for name, source in self._sources.items() if not source.is_unknown}
                self._has_others = True
            if len(self._sources) >= MOST_SOURCES:
                return
            self._sources[name] = _Source(name, packets.calibration_of(name, options))
        if one.payload.startswith(robosense.DIFOP):  # with positions, where the sensor has them
            self._angles.setdefault(one.source, one.payload)
            self._sources[name].topic.why, self._sources[name].is_unknown = "the angles of a RoboSense", False
        self._sources[name].count(one)

    def _calibrate(self):
        """A RoboSense sends its angles to another port than its points."""
        for source in self._sources.values():
            if isinstance(source.decoder, robosense.Decoder) and source.address in self._angles and not source.has_file:
                try:
                    source.decoder.calibrate(self._angles[source.address])
                except PointError as error:
                    self.notes.append(f"{source.topic.name}: {error}")

    def raw(self, wanted: list, start_ns: Optional[int] = None) -> Iterator[Raw]:
        """Turns and fixes in the order in which they end."""
        chosen = {topic.name: self._sources[topic.name] for topic in wanted}
        for source in chosen.values():
            source.begin()
        last_ns = self.start_ns
        try:
            for one in self._datagrams():
                source, last_ns = chosen.get(f"{one.source}:{one.port}"), one.receive_ns
                if source is not None:
                    yield from self._messages(source, one)
        except RecordingError:  # told above
            pass
        for source in chosen.values():
            for rows in source.turns.end() if source.turns else ():
                yield self._turn(source, rows, last_ns)

    def _messages(self, source, one):
        if source.decoder is not None:
            for rows in source.cut(one):
                yield self._turn(source, rows, one.receive_ns)
            return
        sentence = _sentence(one.payload)
        if livox.is_imu(one.payload):
            yield Raw(source.topic, one.receive_ns, len(one.payload), partial(livox.imu, one.payload, one.receive_ns, source.address))
        elif sentence and source.is_new(sentence):
            yield Raw(source.topic, one.receive_ns, len(sentence), partial(fix, sentence, one.receive_ns))

    @staticmethod
    def _turn(source, rows, receive_ns):
        size = sum(len(packet) for _, packet in rows)
        return Raw(source.topic, receive_ns, size, partial(_scan, source.decoder, rows, (receive_ns, 0, source.address)))


def _scan(decoder, rows, head):
    return [scan_of(decoder.points(rows), rows[0][0], head)]
