"""The way from ndtd to ROS: a thread that publishes the poses of results, one for the poses between scans, and the transform
that follows from them."""
import threading
import time
from typing import Any, Callable, Optional

import zmq

from ..poses import compose, inverse
from . import from_ndtd, link, msgtypes, transport
from .options import Log, Options
from .receiver import Receiver

FRESH_S = 2.0
STREAM_S = 0.5  # poses between scans have ceased: the transform follows from results again


class TransformWriter:
    """The transform of a pose; used by two threads, of which the results step back while poses between scans come."""

    def __init__(self, options: Options, log: Log, messages: from_ndtd.Messages, participant: transport.Participant,
                 receiver: Receiver) -> None:
        self._options, self._log, self._messages, self._receiver = options, log, messages, receiver
        self._tf = participant.writer(options.tf_topic, msgtypes.TF, transport.Quality(depth=100)) if options.tf != "none" else None
        self._stream_s = -STREAM_S

    def write(self, stamp_ns: int, T_map_base: Any, is_stream: bool) -> None:
        if is_stream:
            self._stream_s = time.monotonic()
        if self._tf and (is_stream or time.monotonic() - self._stream_s >= STREAM_S):
            transform = self._transform(stamp_ns, T_map_base)
            if transform is not None:
                self._tf.write(transform)

    def _transform(self, stamp_ns: int, T_map_base: Any) -> Any:
        o, odometry = self._options, self._receiver.odometry
        child, pose = o.base_frame, T_map_base
        if o.tf == "map-odom" or (o.tf == "auto" and len(odometry) > 0):
            T_odom_base = odometry.at(stamp_ns)
            if T_odom_base is None:
                self._log.seldom("no odom", f"{o.tf_topic} has no {o.odom_frame} -> {o.base_frame} within 0.2 s of the scan: no "
                                 f"{o.map_frame} -> {o.odom_frame} now")
                return None
            child, pose = o.odom_frame, compose(T_map_base, inverse(T_odom_base))
        return self._messages.transform(stamp_ns + o.tf_ahead_ns, o.map_frame, child, pose)


class StreamPublisher:
    """Poses between scans, where ndtd has output.rate_hz: run() is the thread."""

    def __init__(self, options: Options, types: transport.Types, participant: transport.Participant, context: zmq.Context,
                 transforms: TransformWriter, is_active: Callable[[], bool]) -> None:
        """is_active: whether anything is published."""
        o = self._options = options
        self._is_active = is_active
        self._messages, self._transforms = from_ndtd.Messages(types), transforms
        self._poses = link.Results(context, o.daemon, "motion", "pose")
        self.counts = {"poses_between_scans": 0}
        self._odometry = participant.writer(o.odometry_out, msgtypes.ODOMETRY, transport.Quality(depth=10)) if o.odometry_out else None

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            pose = self._poses.next(0.2)
            if pose is not None and self._is_active():
                self.counts["poses_between_scans"] += 1
                if self._odometry:
                    self._odometry.write(self._messages.odometry(pose, self._options.map_frame, self._options.base_frame))
                self._transforms.write(pose["stamp_ns"], pose["pose"], True)
        self._poses.close()


class PosePublisher:
    """run() is the thread; counts and newest() may be read by all."""

    def __init__(self, options: Options, log: Log, types: transport.Types, participant: transport.Participant, context: zmq.Context,
                 receiver: Receiver, is_active: Callable[[], bool], scores: Any) -> None:
        """is_active: whether poses are published. scores: what is published beside them, or None."""
        self._options, self._receiver, self._is_active, self._scores = options, receiver, is_active, scores
        self._messages = from_ndtd.Messages(types)
        self.transforms = TransformWriter(options, log, self._messages, participant, receiver)
        self._results = link.Results(context, options.daemon)
        self._last: Optional[tuple[float, dict[str, Any]]] = None  # when it came, monotonic
        self.counts = {"results": 0, "poses": 0}
        o = options
        self._pose = participant.writer(o.pose, msgtypes.POSE, transport.Quality(depth=10)) if o.pose else None

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            result = self._results.next(0.2)
            # A late subscriber gets the result of the last scan at once: that one was published before.
            if result is not None and self._receiver.has_scans():
                self._publish(result)
        self._results.close()

    def newest(self) -> Optional[dict[str, Any]]:
        """The last result, unless it is old."""
        last = self._last
        return last[1] if last is not None and time.monotonic() - last[0] < FRESH_S else None

    def _publish(self, result: dict[str, Any]) -> None:
        self.counts["results"] += 1
        if result["outcome"] != "merged":
            self._last = (time.monotonic(), result)
        if not self._is_active() or not (from_ndtd.is_trusted(result) or (self._options.publish_all and "pose" in result)):
            return
        self.counts["poses"] += 1
        if self._pose:
            self._pose.write(self._messages.pose(result, self._options.map_frame))
        self.transforms.write(result["stamp_ns"], result["pose"], False)
        if self._scores:
            self._scores.write(result)
