"""The way from ROS to ndtd: a thread that takes messages, and opens readers for topics as they appear."""
import queue
import threading
import time
from dataclasses import dataclass
from typing import Callable, Optional

import zmq

from ..recordings import messages as m
from ..recordings import ros
from ..recordings.points import Times
from . import initial_pose, link, mounting, msgtypes, tf_buffer, to_ndtd, transport
from .options import Log, Options, UsageError

SETTLE_S = 1.0  # topics of one robot are discovered within this time of each other
TRANSFORMS = (msgtypes.TF, msgtypes.OLD_TF)
COUNTS = ("scans", "scans_refused", "scans_before_tf_static", "motion")


@dataclass
class Input:
    """A topic that is read, as soon as it is published."""

    topic: str
    types: tuple[str, ...]
    handle: Callable[[bytes, m.Topic], None]
    quality: Callable[[list[transport.Endpoint]], transport.Quality]  # of a reader for these writers
    is_scan: bool = False
    reader: Optional[transport.Reader] = None
    state: Optional[m.Topic] = None  # of the functions that read it
    received: int = 0
    last_s: float = 0.0  # of a message, monotonic


def _as_offered(depth: int) -> Callable[[list[transport.Endpoint]], transport.Quality]:
    """The quality that all writers of a topic can meet."""
    return lambda writers: transport.Quality(all(one.reliable for one in writers), all(one.transient_local for one in writers), depth)


class Receiver:
    """run() is the thread; the other functions and the attributes may be read by all."""

    def __init__(self, options: Options, log: Log, types: transport.Types, participant: transport.Participant, context: zmq.Context) -> None:
        self._options, self._log, self._types, self.participant = options, log, types, participant
        self.odometry = tf_buffer.Buffer()
        self.wanted_pose: queue.Queue[m.Pose] = queue.Queue(maxsize=1)  # from RViz, the newest one
        self.clock_ns = 0
        self._counts = dict.fromkeys(COUNTS, 0)
        self._first_cloud_s: Optional[float] = None
        self._scans = link.Scans(context, options.daemon)
        self._mounting = mounting.Mounting(options.base_frame, self._scans.send, log, bool(options.tf_static_topic))
        self._inbound = to_ndtd.Inbound(types, self._scans.send, self._mounting.frames, options.projector)
        self.inputs = self._make_inputs()

    def _make_inputs(self) -> list[Input]:
        o = self._options
        inputs = [Input(topic, types, self._on_motion, _as_offered(100)) for topic, types in o.motion.items()]
        if o.tf != "none":
            inputs.append(Input(o.tf_topic, TRANSFORMS, self._on_tf, _as_offered(100)))
        if o.tf_static_topic:
            latched = transport.Quality(transient_local=True, depth=100)
            inputs.append(Input(o.tf_static_topic, TRANSFORMS, self._on_tf_static, lambda writers: latched))
        if o.initial_pose:
            inputs.append(Input(o.initial_pose, (msgtypes.POSE,), self._on_initial_pose, _as_offered(1)))
        if o.use_sim_time:
            inputs.append(Input("/clock", (msgtypes.CLOCK,), self._on_clock, lambda writers: transport.SENSOR))
        inputs += [self._scan_input(topic) for topic in o.scans]
        for one in inputs:
            self.participant.expect(one.topic, one.types, one.quality([]))
        return inputs

    def _scan_input(self, topic: str) -> Input:
        quality = transport.Quality(depth=2) if self._options.reliable else transport.SENSOR
        return Input(topic, msgtypes.SCANS, self._on_scan, lambda writers: quality, is_scan=True)

    # ---- thread ----

    def run(self, stop: threading.Event) -> None:
        """UsageError: several topics could be the scans."""
        while not stop.is_set():
            self.participant.wait(0.2)
            if self.participant.discovered() or not self._options.scans:
                self._open_readers()
            for one in self.inputs:  # motion first: it is short, and older than the scan
                for raw in one.reader.take() if one.reader else ():
                    self._take(one, raw)
        self._scans.close()

    def _take(self, one: Input, raw: bytes) -> None:
        assert one.state is not None  # as it has a reader
        one.received += 1
        one.last_s = time.monotonic()
        try:
            one.handle(raw, one.state)
        except Exception as error:  # whatever a stranger sends: one line, and on with the next one
            self._counts["scans_refused"] += one.is_scan
            self._log.seldom(f"refused {one.topic} {type(error)}", f"{one.topic}: left out: {_line(error)}")

    def _open_readers(self) -> None:
        if not self._options.scans:
            self._choose_scan()
        endpoints = self.participant.endpoints()
        for one in self.inputs:
            writers = [writer for writer in endpoints if writer.topic == one.topic and writer.type in one.types]
            if one.reader is None and writers:
                self._open_reader(one, writers)

    def _open_reader(self, one: Input, writers: list[transport.Endpoint]) -> None:
        name = writers[0].type
        kind = "scan" if one.is_scan else ros.READERS[name][0][0] if name in ros.READERS else None
        one.state = m.Topic(one.topic, name, 0, kind)
        self._mounting.is_published |= one.topic == self._options.tf_static_topic
        one.reader = self.participant.reader(one.topic, name, one.quality(writers))
        self._log(f"reads {one.topic} ({name})")

    def _choose_scan(self) -> None:
        found = [writer for writer in self.participant.endpoints() if writer.type == msgtypes.CLOUD]
        for topic in {writer.topic for writer in found}:
            self.participant.expect(topic, msgtypes.SCANS, transport.SENSOR)
        # A latched cloud is a map: late subscribers get it, too.
        clouds = sorted({writer.topic for writer in found} - {writer.topic for writer in found if writer.transient_local})
        now_s = time.monotonic()
        self._first_cloud_s = (self._first_cloud_s or now_s) if clouds else None
        if self._first_cloud_s is None or now_s - self._first_cloud_s < SETTLE_S:
            return
        if len(clouds) > 1:
            raise UsageError(f"which scans? There are {', '.join(clouds)}: --scan TOPIC, once per LiDAR")
        self._options.scans = clouds
        self.inputs.append(self._scan_input(clouds[0]))

    # ---- messages ----

    def _on_scan(self, raw: bytes, topic: m.Topic) -> None:
        receive_ns = time.time_ns()
        self._counts["scans"] += 1
        if topic.type == msgtypes.CLOUD:
            cloud = self._types.decode(raw, topic.type)
            if self._is_mounted(cloud.header.frame_id, ros.stamp_of(cloud.header, receive_ns)):
                self._inbound.cloud(cloud, topic, receive_ns)
        else:
            for scan in self._inbound.read(raw, topic, receive_ns):
                if self._is_mounted(scan.frame_id, scan.stamp_ns):
                    self._inbound.scan(scan, topic)
        for note in topic.state.notes if isinstance(topic.state, Times) else ():
            self._log.seldom(f"{topic.name} {note}", f"{topic.name}: {note}")

    def _is_mounted(self, frame_id: str, stamp_ns: int) -> bool:
        self._mounting.repeat(stamp_ns)
        if self._mounting.wants(frame_id, stamp_ns, tells=True):
            return True
        self._counts["scans_before_tf_static"] += 1
        return False

    def _on_motion(self, raw: bytes, topic: m.Topic) -> None:
        for message in self._inbound.read(raw, topic, time.time_ns()):
            is_odometry = isinstance(message, m.Odometry)  # becomes that of the base here; ndtd moves the others
            frame_id = message.child_frame_id if is_odometry else message.frame_id
            if self._mounting.wants(frame_id, message.stamp_ns, tells=not is_odometry):
                self._inbound.motion(message, topic)
                self._counts["motion"] += 1

    def _on_tf_static(self, raw: bytes, topic: m.Topic) -> None:
        now_ns = time.time_ns()
        self._mounting.add(self._inbound.read(raw, topic, now_ns), now_ns)

    def _on_tf(self, raw: bytes, topic: m.Topic) -> None:
        o = self._options
        for one in self._types.decode(raw, topic.type).transforms:
            if (one.header.frame_id.lstrip("/"), one.child_frame_id.lstrip("/")) == (o.odom_frame, o.base_frame):
                t, q = one.transform.translation, one.transform.rotation
                self.odometry.add(ros.stamp_of(one.header, time.time_ns()), [t.x, t.y, t.z, q.x, q.y, q.z, q.w])

    def _on_clock(self, raw: bytes, topic: m.Topic) -> None:
        clock = self._types.decode(raw, topic.type).clock
        self.clock_ns = clock.sec * 1_000_000_000 + clock.nanosec

    def _on_initial_pose(self, raw: bytes, topic: m.Topic) -> None:
        pose = self._inbound.read(raw, topic, time.time_ns())[0]
        initial_pose.check(pose, self._options.map_frame)
        while True:
            try:
                return self.wanted_pose.put_nowait(pose)
            except queue.Full:
                self.wanted_pose.get_nowait()

    # ---- for others ----

    def counts(self) -> dict[str, int]:
        lost = sum(one.reader.lost() for one in self.inputs if one.is_scan and one.reader)
        return {**self._counts, "scans_not_sent": self._inbound.sender.scans_not_sent, self.participant.loss: lost}

    def has_scans(self) -> bool:
        return self._counts["scans"] > 0


def _line(error: Exception) -> str:
    text = " ".join(str(error).split())[:300]
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"
