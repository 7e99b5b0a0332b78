"""Packets of sensors, as drivers record them and networks carry them: which sensor sent them, and which make a sweep."""
import base64
from itertools import islice
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np

from .._extras import need
from . import hesai, livox, ouster, robosense
from .messages import DamagedError
from .packet_points import NS, Points, scan_of
from .points import PointError, only, returns

VELODYNE_BYTES = 1206
MOST_PACKETS = 8_000  # of a turn
SMALL_STEP = 0.05  # of a turn: packets that come in another order go back by less
MOST_GAP_NS = NS  # a sensor that was silent for longer begins anew

_POINTS = "record its point cloud, or replay the packets through the driver of the sensor"

OUSTER_TYPES = ("ouster_ros/msg/PacketMsg", "ouster_sensor_msgs/msg/PacketMsg")
ROBOSENSE_TYPE = "rslidar_msg/msg/RslidarPacket"
MOST_LOOKED_AT = 5000  # packets in which the angles of a RoboSense are looked for
Row = Tuple[int, bytes]  # when a packet was received [ns], and the packet


class UnknownPacket(PointError):
    """A packet of no sensor that is known."""


class Velodyne:
    """Packets of a Velodyne; velodyne-decoder recognises the model and its returns."""

    name = "Velodyne"

    def __init__(self) -> None:
        self._decoder, self.notes = need("velodyne_decoder", "ros"), set()
        self._scans = self._decoder.ScanDecoder(self._decoder.Config())

    @staticmethod
    def is_own(packet: bytes) -> bool:
        return len(packet) == VELODYNE_BYTES

    @staticmethod
    def turn(packet: bytes) -> float:
        return (packet[2] + 256 * packet[3]) / 36000

    def points(self, rows: List[Row]) -> Points:
        vector = self._decoder.PacketVector()
        for receive_ns, packet in rows:
            vector.append(self._decoder.VelodynePacket(receive_ns * 1e-9, packet))
        _, found = self._scans.decode(vector, True)
        xyz = np.stack([found["x"], found["y"], found["z"]])
        good = returns(xyz)
        time_ns = np.rint(only(found["time"].astype(np.float64), good) * 1e9).astype(np.int64)  # relative to the last packet
        kept, intensity = only(xyz, good), only(found["intensity"].astype(np.float32), good)
        return Points(kept, intensity, time_ns + rows[-1][0], xyz.shape[1] - kept.shape[1], rows[0][0])


def decoder_of(packet: bytes, calibration: Optional[bytes]) -> Any:
    """A decoder of the sensor that sent a packet. PointError: it is not known, or its calibration is missing."""
    if calibration is not None and ouster.is_metadata(calibration):
        found = ouster.Decoder(calibration)
        if found.is_own(packet):
            return found
        raise PointError(f"packets of {len(packet)} bytes: not those of the Ouster whose metadata are given")
    if len(packet) == VELODYNE_BYTES:
        return Velodyne()
    model = hesai.model_of(packet)
    if model is not None:
        return hesai.Decoder(model, calibration)
    model = robosense.model_of(packet)
    if model is not None:
        return robosense.Decoder(model, calibration)
    if livox.is_livox(packet):
        return livox.Decoder()
    raise UnknownPacket(f"packets of {len(packet)} bytes, of no sensor that is known here (those of an Ouster need its metadata: "
                        f"--calibration FILE): {_POINTS}")


def _first_decoder(rows, calibration):
    """The decoder of the first packet that tells its sensor; where none does, the error of the first."""
    first = None
    for _, packet in rows:
        try:
            return decoder_of(packet, calibration)
        except PointError as error:
            first = first or error
    raise first


def own_rows(rows: List[Row], decoder: Any) -> List[Row]:
    """The packets of the sensor of a decoder; damaged ones are left. PointError: there are some of another sensor, or no other."""
    own = [row for row in rows if decoder.is_own(row[1])]
    if len(own) == len(rows):
        return own
    others = []
    for _, packet in rows:
        if not decoder.is_own(packet):
            try:
                others.append(decoder_of(packet, None).name)
            except PointError as error:
                others.append("")
                reason = error
    if any(others):
        raise PointError(f"packets of two sensors among one another, {decoder.name} and {next(filter(None, others))}")
    if not own:
        raise reason
    decoder.notes.add(f"{decoder.name}: packets that are damaged are left out")
    return own


def calibration_of(name: str, options: Any) -> Optional[bytes]:
    """The file of the sensor of a topic."""
    return options.calibration.get(name, options.calibration.get(""))


def _sweep(rows, head, topic, options):
    """The scan of one message; head: receive_ns, stamp_ns (0: that of the first packet), frame_id."""
    if not rows:
        return
    if topic.state is None:
        topic.state = _first_decoder(rows, calibration_of(topic.name, options))
    rows = own_rows(rows, topic.state)
    yield scan_of(topic.state.points(rows), rows[0][0], head)


def _ns(stamp):
    return stamp.sec * NS + stamp.nanosec


def scan_of_packets(message, receive_ns, topic, options) -> Iterator:
    """Messages of one sweep: packets with their bytes, and perhaps their stamp and size."""
    header = getattr(message, "header", None)
    rows = []
    for packet in message.packets:
        data = bytes(packet.data)
        stamp_ns = _ns(packet.stamp) if hasattr(packet, "stamp") else 0
        rows.append((stamp_ns or receive_ns, data[:getattr(packet, "size", len(data))]))
    stamp_ns, frame_id = (_ns(header.stamp), header.frame_id) if header else (0, "")
    return _sweep(rows, (receive_ns, stamp_ns, frame_id), topic, options)


class Turns:
    """Cuts the packets of one sensor into turns. A part at the begin or end of less than half a turn is left."""

    def __init__(self, turn):
        self._turn, self._last = turn, 0.0
        self._way = 0  # packets that went on by a small step, less those that went back: which way the sensor turns
        self._rows: List[Row] = []
        self._first: Optional[List[Row]] = None  # kept until the second turn tells whether it is one
        self._count = 0  # packets of the longest turn

    def add(self, receive_ns: int, packet: bytes) -> List[List[Row]]:
        """The turns that a packet ends: none, one, or two, as the first is compared with the second."""
        if self._rows and self._rows[-1] == (receive_ns, packet):
            return []  # twice
        at, out = self._turn(packet), []
        if self._rows and (self._begins_anew(at - self._last) or len(self._rows) >= MOST_PACKETS or
                           receive_ns - self._rows[-1][0] > MOST_GAP_NS):
            out = self._cut()
        self._rows.append((receive_ns, packet))
        self._last = at
        return out

    def _begins_anew(self, step):
        """Whether the sensor is at the begin of its turn again; blind sectors are jumps ahead."""
        if 0 < abs(step) < SMALL_STEP:
            self._way = max(-MOST_PACKETS, min(self._way + (1 if step > 0 else -1), MOST_PACKETS))
        return abs(step) > 0.5 if self._way == 0 else step * self._way < 0 and abs(step) > SMALL_STEP

    def _cut(self):
        rows, self._rows = self._rows, []
        self._count = max(self._count, len(rows))
        if self._first is None:
            self._first = rows
            return []
        out = [self._first] if self._first and 2 * len(self._first) >= len(rows) else []
        self._first = []
        return out + [rows]

    def end(self) -> List[List[Row]]:
        """Turns that are left when the packets end."""
        out = [self._first] if self._first else []
        return out + ([self._rows] if self._rows and 2 * len(self._rows) >= self._count else [])

    def state(self) -> dict:
        """Rows that belong to no turn yet, as JSON."""
        first = None if self._first is None else _texts(self._first)
        return {"rows": _texts(self._rows), "first": first, "count": self._count, "last": self._last, "way": self._way}

    def restore(self, state: dict) -> None:
        self._rows, self._count, self._last, self._way = _rows(state["rows"]), state["count"], state["last"], state["way"]
        self._first = None if state["first"] is None else _rows(state["first"])


def _texts(rows):
    return [[receive_ns, base64.b64encode(packet).decode()] for receive_ns, packet in rows]


def _rows(texts):
    return [(receive_ns, base64.b64decode(text)) for receive_ns, text in texts]


class Stream:
    """The state of a topic whose messages are one packet each."""

    def __init__(self, state: Optional[dict] = None):
        self.decoder, self.turns, self.notes, self._state = None, None, set(), state

    def state(self) -> Optional[dict]:
        return self.turns.state() if self.turns else self._state

    def add(self, receive_ns: int, packet: bytes, calibration: Optional[bytes]) -> List[List[Row]]:
        """The turns that a packet ends."""
        if self.decoder is None:
            self.decoder = decoder_of(packet, calibration)
            self.notes, self.turns = self.decoder.notes, Turns(self.decoder.turn)
            if self._state:
                self.turns.restore(self._state)
        own_rows([(receive_ns, packet)], self.decoder)
        return self.turns.add(receive_ns, packet)


def single_packet(message, receive_ns, topic, options) -> Iterator:
    """Messages of one packet: a scan when a turn ends."""
    if topic.state is None:
        topic.state = Stream()
    header = getattr(message, "header", None)
    data = bytes(message.buf if hasattr(message, "buf") else message.data)
    if data.startswith(robosense.DIFOP):
        options.calibration.setdefault(topic.name, data)
        return
    for rows in topic.state.add((_ns(header.stamp) if header else 0) or receive_ns, data, calibration_of(topic.name, options)):
        decoder = topic.state.decoder
        yield scan_of(decoder.points(rows), rows[0][0], (receive_ns, 0, header.frame_id if header else decoder.frame_id))


def info_packet(message, receive_ns, topic, options) -> Iterator:
    """robosense_msgs/RobosenseInfoPacket: the angles of the sensor."""
    yield bytes(message.packet.data)


def find_calibrations(recording: Any, options: Any) -> None:
    """Finds calibrations in the recording, for topics without a file: the metadata of an Ouster, as text (/ouster/metadata for
    /ouster/lidar_packets), and packets with the angles of a RoboSense, among the others or in a topic."""
    known = {topic.name: topic for topic in recording.topics}
    for topic in recording.topics:
        if topic.kind != "scan" or calibration_of(topic.name, options) is not None:
            continue
        folder = topic.name.rpartition("/")[0]
        if topic.type == ROBOSENSE_TYPE:
            _look_through(recording, topic, options)
            topic.state = None
            continue
        beside = {"robosense_msgs/msg/RobosenseScan": "/robosense_info_packets", **dict.fromkeys(OUSTER_TYPES, "/metadata")}.get(topic.type)
        found = known.get(folder + beside) if beside else None
        try:
            data = next(iter(next(iter(recording.raw([found]))).read())) if found else None
        except Exception:  # then the packets tell that it is missing
            continue
        if data is not None:
            options.calibration[topic.name] = data if isinstance(data, bytes) else data.encode()


def _look_through(recording, topic, options):
    try:
        for raw in islice(recording.raw([topic]), MOST_LOOKED_AT):
            try:
                list(raw.read())
            except Exception:  # told when all are read
                continue
            if topic.name in options.calibration:
                return
    except DamagedError:  # told then, too
        return
