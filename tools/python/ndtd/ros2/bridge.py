"""The threads of ndt-ros2-bridge: one takes from DDS and sends to ndtd, one publishes results, the main one asks for the status.

Scans go through as they come; where something cannot keep up, the newest ones win and the others are counted.
"""
import queue
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import numpy as np
import zmq

from ..recordings import messages as m
from ..recordings import ros
from ..recordings.points import Times
from . import dds, from_ndtd, link, mounting, rmw, tf_buffer, to_ndtd

HINT_AFTER_S = 5.0
HINT_EVERY_S = 60.0
SETTLE_S = 1.0  # topics of one robot are discovered within this time of each other
INITIAL_POSE_DEVIATION = (2.0, 2.0, 5.0, 0.1, 0.1, 0.3)  # m, rad: where RViz leaves zeros


class UsageError(ValueError):
    """Options that do not fit the graph; one line."""


@dataclass
class Options:
    """Topic names are resolved: absolute, with namespace and remappings."""
    scans: list[str] = field(default_factory=list)  # empty: the only PointCloud2 that there is
    motion: dict[str, tuple[str, ...]] = field(default_factory=dict)  # topic: types that it may have
    initial_pose: Optional[str] = "/initialpose"
    pose: Optional[str] = "/localization/pose_estimator/pose_with_covariance"
    diagnostics: Optional[str] = "/diagnostics"
    tf: str = "auto"  # auto, map-odom, map-base, none
    tf_topic: str = "/tf"
    tf_static_topic: Optional[str] = "/tf_static"
    tf_ahead_ns: int = 0
    map_frame: str = "map"
    odom_frame: str = "odom"
    base_frame: str = "base_link"
    search_initial_pose: bool = True
    publish_all: bool = False
    use_sim_time: bool = False
    reliable: bool = False
    domain_id: int = 0
    daemon: link.Daemon = field(default_factory=link.Daemon)
    projector: Optional[Callable] = None


class Log:
    """Lines on standard error; the same cause at most once a minute."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        print(f"ndt-ros2-bridge: {text}", file=sys.stderr, flush=True)

    def seldom(self, cause: str, text: str) -> None:
        now = time.monotonic()
        with self._lock:
            if now - self._last.get(cause, -HINT_EVERY_S) < HINT_EVERY_S:
                return
            self._last[cause] = now
        self(text)

    def forget(self, cause: str) -> None:
        with self._lock:
            self._last.pop(cause, None)


@dataclass
class Input:
    """A topic that is read, as soon as somebody publishes it."""
    topic: str
    types: tuple[str, ...]
    handle: Callable[[bytes, m.Topic], None]
    quality: Callable[[dds.Endpoint], dds.Quality]
    is_scan: bool = False
    wants_reliable: bool = False
    reader: Optional[dds.Reader] = None
    state: Optional[m.Topic] = None  # of the functions that read it
    received: int = 0
    last_s: float = 0.0  # of a message, monotonic


class Bridge:
    """Runs until stop() is called. OSError: no DDS; UsageError: which scans?"""

    def __init__(self, options: Options, log: Log) -> None:
        self.options, self._log = options, log
        self._types = rmw.Types()
        self._messages = from_ndtd.Messages(self._types)
        self._participant = dds.Participant(options.domain_id, self._types)
        self._context = zmq.Context()
        self._stop = threading.Event()
        self._failure: Optional[BaseException] = None
        self._odometry = tf_buffer.Buffer()
        self._wanted_pose: queue.Queue[m.Pose] = queue.Queue(maxsize=1)
        self._last_result: Optional[tuple[float, dict[str, Any]]] = None
        self._clock_ns: Optional[int] = None
        self._inbound: Optional[to_ndtd.Inbound] = None
        self._counts = dict.fromkeys(("scans", "scans_refused", "scans_before_tf_static", "motion", "results",
                                      "poses"), 0)
        self._is_there = False  # ndtd
        self._begin_s = time.monotonic()
        self._inputs = self._make_inputs()
        self._warm_up()
        self._open_writers()

    # ---- set-up ----

    def _make_inputs(self) -> list[Input]:
        o = self.options

        def as_offered(depth: int) -> Callable[[dds.Endpoint], dds.Quality]:
            return lambda writer: dds.Quality(writer.reliable, writer.transient_local, depth)

        inputs = [Input(topic, types, self._on_motion, as_offered(100)) for topic, types in o.motion.items()]
        if o.tf != "none":
            inputs.append(Input(o.tf_topic, (rmw.TF,), self._on_tf, as_offered(100)))
        if o.tf_static_topic:
            latched = dds.Quality(transient_local=True, depth=100)
            inputs.append(Input(o.tf_static_topic, (rmw.TF,), self._on_tf_static, lambda writer: latched))
        if o.initial_pose:
            inputs.append(Input(o.initial_pose, (rmw.POSE,), self._on_initial_pose, as_offered(1)))
        if o.use_sim_time:
            inputs.append(Input("/clock", ("rosgraph_msgs/msg/Clock",), self._on_clock, lambda writer: dds.SENSOR))
        return inputs + [self._scan_input(topic) for topic in o.scans]

    def _scan_input(self, topic: str) -> Input:
        quality = dds.Quality(self.options.reliable, False, 2 if self.options.reliable else dds.SENSOR.depth)
        return Input(topic, rmw.SCANS, self._on_scan, lambda writer: quality, is_scan=True,
                     wants_reliable=self.options.reliable)

    def _open_writers(self) -> None:
        o, reliable = self.options, dds.Quality(depth=10)
        self._pose_writer = self._participant.writer(o.pose, rmw.POSE, reliable) if o.pose else None
        self._tf_writer = self._participant.writer(o.tf_topic, rmw.TF, dds.Quality(depth=100)) if o.tf != "none" else None
        self._diagnostics_writer = None
        if o.diagnostics:
            self._diagnostics_writer = self._participant.writer(o.diagnostics, rmw.DIAGNOSTICS, reliable)

    def _warm_up(self) -> None:
        """rosbags writes the code of a type at its first use: 50 ms that the first pose must not wait for."""
        result = {"stamp_ns": 0, "pose": [0.0] * 6 + [1.0]}
        self._types.encode(self._messages.pose(result, ""), rmw.POSE)
        self._types.encode(self._messages.transform(0, "", "", result["pose"]), rmw.TF)
        self._types.encode(self._messages.diagnostics(0, [("", 0, "", {"": ""})]), rmw.DIAGNOSTICS)
        header, field = self._messages.header(0, ""), self._types["sensor_msgs/msg/PointField"]("x", 0, 7, 1)
        cloud = self._types[rmw.CLOUD](header, 1, 1, [field], False, 4, 4, np.zeros(4, np.uint8), True)
        self._types.decode(self._types.encode(cloud, rmw.CLOUD), rmw.CLOUD)

    # ---- threads ----

    def run(self) -> None:
        """Blocks; raises what a thread raised."""
        threads = [threading.Thread(target=self._guarded, args=(body,), name=name, daemon=True)
                   for name, body in (("dds", self._receive), ("results", self._publish_results))]
        for thread in threads:
            thread.start()
        try:
            self._supervise()
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(2.0)
        if self._failure is not None:
            raise self._failure

    def stop(self, *_: Any) -> None:
        self._stop.set()

    def _guarded(self, body: Callable[[], None]) -> None:
        try:
            body()
        except BaseException as error:  # the main thread raises it again
            self._failure = error
            self._stop.set()

    # ---- DDS to ndtd ----

    def _receive(self) -> None:
        self._scans = link.Scans(self._context, self.options.daemon)
        self._mounting = mounting.Mounting(self.options.base_frame, self._scans.send, self._log)
        self._inbound = to_ndtd.Inbound(self._types, self._scans.send, self._mounting.frames, self.options.projector)
        while not self._stop.is_set():
            self._participant.wait(0.2)
            if self._participant.discovered() or not self.options.scans:
                self._open_readers()
            for one in self._inputs:  # motion first: it is short, and older than the scan
                for cdr in one.reader.take() if one.reader else ():
                    self._take(one, cdr)
        self._scans.close()

    def _take(self, one: Input, cdr: bytes) -> None:
        one.received += 1
        one.last_s = time.monotonic()
        try:
            one.handle(cdr, one.state)
        except Exception as error:  # whatever a stranger sends: one line, and on with the next one
            self._counts["scans_refused"] += one.is_scan
            self._log.seldom(f"refused {one.topic} {type(error)}", f"{one.topic}: left out: {_line(error)}")

    def _open_readers(self) -> None:
        if not self.options.scans:
            self._choose_scan()
        endpoints = self._participant.endpoints()
        for one in self._inputs:
            writer = next((e for e in endpoints if e.topic == one.topic and e.type in one.types), None)
            if one.reader is None and writer is not None:
                kind = "scan" if one.is_scan else ros.READERS[writer.type][0][0] if writer.type in ros.READERS else None
                one.state = m.Topic(one.topic, writer.type, 0, kind)
                self._mounting.is_published |= one.topic == self.options.tf_static_topic
                one.reader = self._participant.reader(one.topic, writer.type, one.quality(writer))
                self._log(f"reads {one.topic} ({writer.type})")

    def _choose_scan(self) -> None:
        clouds = sorted({e.topic for e in self._participant.endpoints() if e.type == rmw.CLOUD})
        if not clouds:
            self._first_cloud_s = None
            return
        self._first_cloud_s = getattr(self, "_first_cloud_s", None) or time.monotonic()
        if time.monotonic() - self._first_cloud_s < SETTLE_S:
            return
        if len(clouds) > 1:
            raise UsageError(f"which scans? There are {', '.join(clouds)}: --scan TOPIC, once per LiDAR")
        self.options.scans = clouds
        self._inputs.append(self._scan_input(clouds[0]))

    def _on_scan(self, cdr: bytes, topic: m.Topic) -> None:
        receive_ns = time.time_ns()
        self._counts["scans"] += 1
        if topic.type == rmw.CLOUD:
            cloud = self._types.decode(cdr, topic.type)
            if self._is_mounted(cloud.header.frame_id, ros.stamp_of(cloud.header, receive_ns)):
                self._inbound.cloud(cloud, topic, receive_ns)
        else:
            for scan in self._inbound.read(cdr, topic, receive_ns):
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

    def _on_motion(self, cdr: bytes, topic: m.Topic) -> None:
        for message in self._inbound.read(cdr, topic, time.time_ns()):
            frame_id = message.child_frame_id if isinstance(message, m.Odometry) else message.frame_id
            if isinstance(message, m.Gnss) or self._mounting.wants(frame_id, message.stamp_ns):
                self._inbound.motion(message, topic)
                self._counts["motion"] += 1

    def _on_tf_static(self, cdr: bytes, topic: m.Topic) -> None:
        now_ns = time.time_ns()
        self._mounting.add(self._inbound.read(cdr, topic, now_ns), now_ns)

    def _on_tf(self, cdr: bytes, topic: m.Topic) -> None:
        o = self.options
        for one in self._types.decode(cdr, topic.type).transforms:
            if (one.header.frame_id.lstrip("/"), one.child_frame_id.lstrip("/")) == (o.odom_frame, o.base_frame):
                t, q = one.transform.translation, one.transform.rotation
                self._odometry.add(ros.stamp_of(one.header, time.time_ns()), [t.x, t.y, t.z, q.x, q.y, q.z, q.w])

    def _on_clock(self, cdr: bytes, topic: m.Topic) -> None:
        clock = self._types.decode(cdr, topic.type).clock
        self._clock_ns = clock.sec * 1_000_000_000 + clock.nanosec

    def _on_initial_pose(self, cdr: bytes, topic: m.Topic) -> None:
        pose = self._inbound.read(cdr, topic, time.time_ns())[0]
        frame = pose.frame_id.lstrip("/")
        if frame != self.options.map_frame:
            raise to_ndtd.Refused(f"a pose in the frame '{frame}'; ndtd wants '{self.options.map_frame}': Fixed Frame of RViz")
        if not np.isfinite(pose.pose).all() or abs(np.linalg.norm(pose.pose[3:]) - 1) > 0.01:
            raise to_ndtd.Refused("a pose that is not finite, or whose quaternion has not the length 1")
        while True:
            try:
                return self._wanted_pose.put_nowait(pose)
            except queue.Full:
                self._wanted_pose.get_nowait()

    # ---- ndtd to DDS ----

    def _publish_results(self) -> None:
        results = link.Results(self._context, self.options.daemon)
        while not self._stop.is_set():
            result = results.next(0.2)
            # A late subscriber gets the result of the last scan at once: that one was published before.
            if result is not None and self._counts["scans"] > 0:
                self._publish(result)
        results.close()

    def _publish(self, result: dict[str, Any]) -> None:
        self._counts["results"] += 1
        if result["outcome"] != "merged":
            self._last_result = (time.monotonic(), result)
        if not from_ndtd.is_trusted(result) and not (self.options.publish_all and "pose" in result):
            return
        self._counts["poses"] += 1
        if self._pose_writer:
            self._pose_writer.write(self._messages.pose(result, self.options.map_frame))
        if self._tf_writer:
            self._publish_transform(result["stamp_ns"], result["pose"])

    def _publish_transform(self, stamp_ns: int, T_map_base: Any) -> None:
        o = self.options
        is_odom = o.tf == "map-odom" or (o.tf == "auto" and len(self._odometry) > 0)
        child, pose = o.base_frame, T_map_base
        if is_odom:
            T_odom_base = self._odometry.at(stamp_ns)
            if T_odom_base is None:
                self._log.seldom("no odom", f"{o.tf_topic} has no {o.odom_frame} -> {o.base_frame} within 0.2 s of the scan: no "
                                 f"{o.map_frame} -> {o.odom_frame} now")
                return
            child, pose = o.odom_frame, tf_buffer.multiply(T_map_base, tf_buffer.inverse(T_odom_base))
        self._tf_writer.write(self._messages.transform(stamp_ns + o.tf_ahead_ns, o.map_frame, child, pose))

    # ---- main thread ----

    def _supervise(self) -> None:
        control = link.Control(self._context, self.options.daemon)
        next_s = time.monotonic()
        while not self._stop.is_set():
            try:
                self._localize(control, self._wanted_pose.get(timeout=min(0.2, max(0.01, next_s - time.monotonic()))))
            except queue.Empty:
                pass
            if time.monotonic() >= next_s:
                next_s = time.monotonic() + 1.0
                self._report(control)
        control.close()

    def _localize(self, control: link.Control, wanted: m.Pose) -> None:
        """A pose from RViz: searched for around it, or taken as it is."""
        covariance = _filled_covariance(wanted.covariance)
        arguments = {"pose": wanted.pose, "covariance": covariance}
        try:
            if not self.options.search_initial_pose:
                control.request("initial_pose", frame_id="map", **arguments)
                self._log("initial pose: handed over")
                return
            search = control.request("localize", apply=True, **arguments)["search"]
            number, end_s = search["search_id"], time.monotonic() + 30.0
            while search["running"] and search["search_id"] == number and not self._stop.is_set():
                if time.monotonic() > end_s:
                    control.request("cancel_search")
                    raise link.NoAnswer("the search did not end within 30 s")
                time.sleep(0.05)
                search = control.request("search")["search"]
            if search.get("accepted"):
                self._log(f"initial pose: found, {_pose_text(search['pose'])}, confidence {search['confidence']:.3f}")
            else:
                self._log(f"initial pose: not accepted: {search.get('reason') or 'no place fits'}; --initial-pose take uses it unseen")
        except link.NoAnswer as error:
            self._log(f"initial pose: {error}")

    def _report(self, control: link.Control) -> None:
        status, problem = None, ""
        try:
            status = control.request("status")
            if not self._is_there:
                self._log(f"ndtd {status['version']} answers at {control.endpoint}: {status['state']}")
                self._log.forget("no daemon")
            self._is_there = True
        except link.NoAnswer as error:
            self._is_there, problem = False, str(error)
            self._log.seldom("no daemon", problem)
        self._hint()
        if self._diagnostics_writer:
            age_s, result = self._last_result or (0.0, None)
            fresh = result if result is not None and time.monotonic() - age_s < 2.0 else None
            rows = [from_ndtd.localisation_status(fresh, self._all_counts()), _daemon_status(status, problem)]
            self._diagnostics_writer.write(self._messages.diagnostics(self._now_ns(), rows))

    def _now_ns(self) -> int:
        return self._clock_ns or 0 if self.options.use_sim_time else time.time_ns()

    def _all_counts(self) -> dict[str, Any]:
        lost = sum(one.reader.lost() for one in self._inputs if one.is_scan and one.reader)
        not_sent = self._inbound.sender.scans_not_sent if self._inbound else 0
        return {**self._counts, "scans_not_sent": not_sent, "scans_lost_on_dds": lost}

    def _hint(self) -> None:
        """Says what is missing, once a minute and topic."""
        now_s = time.monotonic()
        if now_s - self._begin_s < HINT_AFTER_S:
            return
        endpoints = self._participant.endpoints()
        if not self.options.scans:
            self._log.seldom("no scans", f"no publisher of {rmw.CLOUD} in the domain {self.options.domain_id}: "
                             f"{_seen(endpoints)}; ROS_DOMAIN_ID, CYCLONEDDS_URI")
        o = self.options  # what need not be published, or not more than once
        quiet = (o.initial_pose, o.tf_static_topic, o.tf_topic if o.tf != "map-odom" else None)
        for one in list(self._inputs):
            if one.topic in quiet:
                continue
            if now_s - max(one.last_s, self._begin_s) < HINT_AFTER_S:
                self._log.forget(one.topic)
                continue
            self._log.seldom(one.topic, _why_silent(one, endpoints, self.options.domain_id))

    def summary(self) -> str:
        return ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in self._all_counts().items())


def _line(error: Exception) -> str:
    text = " ".join(str(error).split())[:300]
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"


def _seen(endpoints: list[dds.Endpoint]) -> str:
    topics = sorted({endpoint.topic for endpoint in endpoints})
    return f"{len(topics)} topics of ROS 2 are seen" if topics else "no topic of ROS 2 is seen at all"


def _why_silent(one: Input, endpoints: list[dds.Endpoint], domain_id: int) -> str:
    writers = [endpoint for endpoint in endpoints if endpoint.topic == one.topic]
    if not writers:
        others = sorted({endpoint.topic for endpoint in endpoints if endpoint.type in one.types})
        hint = f"that type is on {', '.join(others)}" if others else _seen(endpoints)
        return f"no publisher of {one.topic} ({' or '.join(one.types)}) in the domain {domain_id}: {hint}"
    if one.reader is None:
        return f"{one.topic} has the type {writers[0].type}, not {' or '.join(one.types)}"
    if one.received == 0 and one.reader.lost() == 0:
        wants = ": its writer is best effort, leave --reliable out" if one.is_scan and one.wants_reliable and \
            not writers[0].reliable else ""
        return f"nothing comes on {one.topic}, though it is advertised{wants}"
    return f"nothing comes on {one.topic} any more, {one.received} messages came, {one.reader.lost()} were lost: " \
        "net.core.rmem_max, see docs/ros2.md"


def _filled_covariance(covariance: Optional[np.ndarray]) -> np.ndarray:
    """RViz tells x, y and yaw; a variance of zero stands for unknown."""
    filled = np.zeros((6, 6)) if covariance is None else np.array(covariance, np.float64).reshape(6, 6)
    for axis, deviation in enumerate(INITIAL_POSE_DEVIATION):
        if not filled[axis, axis] > 0:
            filled[axis, :] = filled[:, axis] = 0.0
            filled[axis, axis] = deviation * deviation
    return filled


def _pose_text(pose: Any) -> str:
    yaw = np.degrees(np.arctan2(2 * (pose[6] * pose[5] + pose[3] * pose[4]), 1 - 2 * (pose[4] ** 2 + pose[5] ** 2)))
    return f"x {pose[0]:.2f} y {pose[1]:.2f} z {pose[2]:.2f} m yaw {yaw:.1f} deg"


def _daemon_status(status: Optional[dict[str, Any]], problem: str) -> tuple[str, int, str, dict[str, Any]]:
    name = "ndtd: daemon"
    if status is None:
        return name, from_ndtd.ERROR, problem, {}
    level = from_ndtd.OK if status["state"] == "localising" else from_ndtd.WARN
    return name, level, status["state"], {key: value for key, value in status.items() if isinstance(value, (str, int, float))
                                          and key not in ("v", "type", "id", "ok")}
