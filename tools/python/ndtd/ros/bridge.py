"""The threads of a bridge: receiver, publishers, services, and the main one, which asks ndtd for its status and for poses.

Scans go through as they come; where something cannot keep up, the newest ones win and the others are counted.
"""
import queue
import threading
import time
from typing import Any, Callable, Optional

import numpy as np
import zmq

from ..recordings import messages as m
from . import autoware, dds, from_ndtd, hints, initial_pose, link, msgtypes, transport
from .options import Log, Options
from .pose_publisher import PosePublisher, StreamPublisher
from .receiver import Receiver


class Bridge:
    """Runs until `stop` is set, or the graph wants it to end. UsageError: which scans?"""

    def __init__(self, options: Options, log: Log, types: transport.Types, participant: transport.Participant,
                 stop: threading.Event) -> None:
        self._options, self._log, self._participant = options, log, participant
        self._messages = from_ndtd.Messages(types)
        _warm_up(types, self._messages)
        context = zmq.Context()
        self._control = link.Control(context, options.daemon)
        self._receiver = Receiver(options, log, types, participant, context)
        self._trigger = self._align = scores = None
        if options.align_service:
            assert isinstance(participant, dds.Participant)  # services are those of ROS 2
            self._trigger = autoware.Trigger(options, log, participant)
            self._align = autoware.Align(options, log, types, participant, context)
            scores = autoware.Scores(options, types, participant)
        is_active = self._is_active = self._trigger.is_active if self._trigger else lambda: True
        self._publisher = PosePublisher(options, log, types, participant, context, self._receiver, is_active, scores)
        self._stream = StreamPublisher(options, types, participant, context, self._publisher.transforms, is_active)
        self._diagnostics = None
        if options.diagnostics:
            self._diagnostics = participant.writer(options.diagnostics, msgtypes.DIAGNOSTICS, transport.Quality(depth=10))
        self._stop = stop
        self._failure: Optional[BaseException] = None
        self._is_there = False  # ndtd
        self._begin_s = time.monotonic()

    def run(self) -> None:
        """Blocks; raises what a thread raised."""
        parts = (self._receiver, self._publisher, self._stream, self._trigger, self._align)
        threads = [threading.Thread(target=self._guarded, args=(part.run,), name=type(part).__name__, daemon=True)
                   for part in parts if part is not None]
        for thread in threads:
            thread.start()
        try:
            self._supervise()
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(2.0)
            self._participant.close()
        if self._failure is not None:
            raise self._failure

    def summary(self) -> str:
        return ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in self._counts().items())

    def _guarded(self, body: Callable[[threading.Event], None]) -> None:
        try:
            body(self._stop)
        except BaseException as error:  # the main thread raises it again
            self._failure = error
            self._stop.set()

    def _supervise(self) -> None:
        next_s = time.monotonic()
        while not self._stop.is_set():
            try:
                wanted = self._receiver.wanted_pose.get(timeout=min(0.2, max(0.01, next_s - time.monotonic())))
                self._set_pose(wanted)
            except queue.Empty:
                pass
            if time.monotonic() >= next_s:
                next_s = time.monotonic() + 1.0
                self._report()
            if self._participant.ended():
                self._log(self._participant.ended())
                self._stop.set()
        self._control.close()

    # ---- initial pose ----

    def _set_pose(self, wanted: m.Pose) -> None:
        """A pose from RViz: searched for around it, or taken as it is."""
        try:
            if self._options.search_initial_pose:
                found = initial_pose.search(self._control, wanted, self._stop)
                unseen = "" if found.get("accepted") else "; --initial-pose take uses it unseen"
                self._log(f"initial pose: {initial_pose.text(found)}{unseen}")
            else:
                covariance = initial_pose.filled_covariance(wanted.covariance)
                self._control.request("initial_pose", frame_id="map", pose=wanted.pose, covariance=covariance)
                self._log("initial pose: handed over")
        except link.NoAnswer as error:
            self._log(f"initial pose: {error}")

    # ---- once a second ----

    def _report(self) -> None:
        status, problem = None, ""
        try:
            status = self._control.request("status")
            if not self._is_there:
                self._log(f"ndtd {status['version']} answers at {self._control.endpoint}: {status['state']}")
                self._log.forget("no daemon")
            self._is_there = True
        except link.NoAnswer as error:
            self._is_there, problem = False, str(error)
            self._log.seldom("no daemon", problem)
        hints.tell(self._receiver, self._options, self._log, time.monotonic(), self._begin_s)
        if self._diagnostics:
            rows = [from_ndtd.localisation_status(self._publisher.newest(), self._counts(), self._is_active()), _daemon_status(status, problem)]
            now_ns = self._receiver.clock_ns if self._options.use_sim_time else time.time_ns()
            self._diagnostics.write(self._messages.diagnostics(now_ns, rows))

    def _counts(self) -> dict[str, int]:
        return {**self._receiver.counts(), **self._publisher.counts, **self._stream.counts,
                **(self._trigger.counts if self._trigger else {}), **(self._align.counts if self._align else {})}


def _warm_up(types: transport.Types, messages: from_ndtd.Messages) -> None:
    """rosbags writes the code of a type at its first use: 50 ms that the first pose must not wait for."""
    result: dict[str, Any] = {"stamp_ns": 0, "pose": [0.0] * 6 + [1.0]}
    types.encode(messages.pose(result, ""), msgtypes.POSE)
    types.encode(messages.odometry(result, "", ""), msgtypes.ODOMETRY)
    types.encode(messages.transform(0, "", "", result["pose"]), msgtypes.TF)
    types.encode(messages.diagnostics(0, [("", 0, "", {"": ""})]), msgtypes.DIAGNOSTICS)
    types.encode(messages.stamped_pose(result, ""), msgtypes.STAMPED_POSE)
    for name in (msgtypes.FLOAT32, msgtypes.INT32):
        types.encode(types[name](stamp=messages.time(0), data=0), name)
    header, field = messages.header(0, ""), types["sensor_msgs/msg/PointField"]("x", 0, 7, 1)
    cloud = types[msgtypes.CLOUD](header, 1, 1, [field], False, 4, 4, np.zeros(4, np.uint8), True)
    types.decode(types.encode(cloud, msgtypes.CLOUD), msgtypes.CLOUD)


def _daemon_status(status: Optional[dict[str, Any]], problem: str) -> tuple[str, int, str, dict[str, Any]]:
    name = "ndtd: daemon"
    if status is None:
        return name, from_ndtd.ERROR, problem, {}
    level = from_ndtd.OK if status["state"] == "localising" else from_ndtd.WARN
    return name, level, status["state"], {key: value for key, value in status.items() if isinstance(value, (str, int, float))
                                          and key not in ("v", "type", "id", "ok")}
