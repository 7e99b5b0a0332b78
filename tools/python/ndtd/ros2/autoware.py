"""What the nodes of Autoware expect of ndt_scan_matcher beside its pose: two services, and its scores as topics.

`ndt_align_srv` searches the map around a pose, `trigger_node` turns the poses off and on. pose_initializer waits for both, and
calls them for each first pose: off, align, on.
"""
import threading
from typing import Any

import numpy as np
import zmq

from ..recordings import messages as m
from ..recordings import ros
from . import dds, from_ndtd, initial_pose, link, rmw, to_ndtd
from .options import Log, Options


class Services:
    """run() is the thread; is_active() and counts may be read by all."""

    def __init__(self, options: Options, log: Log, types: rmw.Types, participant: dds.Participant, context: zmq.Context) -> None:
        self._options, self._log, self._messages = options, log, from_ndtd.Messages(types)
        self._control = link.Control(context, options.daemon)
        self._services = participant.services({options.align_service: rmw.ALIGN, options.trigger_service: rmw.SET_BOOL})
        self._align, self._trigger = (self._services.servers[name] for name in (options.align_service, options.trigger_service))
        self._is_active = True  # ndtd itself knows when its pose may be used: nothing has to be waited for
        self.counts = {"align_requests": 0, "trigger_requests": 0}

    def is_active(self) -> bool:
        """Whether poses are published."""
        return self._is_active

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._services.wait(0.2)
            for server, handle in ((self._trigger, self._on_trigger), (self._align, self._on_align)):
                try:
                    for request in server.take():
                        handle(request, stop)
                except Exception as error:  # whatever a stranger sends: one line, and on with the next one
                    self._log.seldom(f"service {type(error)}", f"a request of a service is left out: {type(error).__name__}: {error}")
        self._control.close()

    def _on_trigger(self, request: dds.Request, stop: threading.Event) -> None:
        self.counts["trigger_requests"] += 1
        self._is_active = bool(request.message.data)
        self._log(f"{self._options.trigger_service}: poses are {'published' if self._is_active else 'withheld'}")
        self._trigger.answer(request, success=True, message="")

    def _on_align(self, request: dds.Request, stop: threading.Event) -> None:
        self.counts["align_requests"] += 1
        message, accepted = request.message.pose_with_covariance, False
        try:
            wanted = next(ros.pose_with_covariance_stamped(message, 0, m.Topic(self._options.align_service, rmw.POSE, 0, "pose"), None))
            initial_pose.check(wanted, self._options.map_frame)
            found = initial_pose.search(self._control, wanted, stop)
            accepted = bool(found.get("accepted"))
            said = initial_pose.text(found)
            if accepted:
                message.pose.pose = self._messages.plain_pose(found["pose"])
        except (link.NoAnswer, to_ndtd.Refused) as error:
            said = str(error)
        self._log(f"{self._options.align_service}: {said}")
        self._align.answer(request, success=accepted, reliable=accepted, pose_with_covariance=message)


class Scores:
    """Topics beside the pose, in the namespace of the pose: what Autoware's displays and monitors plot."""

    TOPICS = {"exe_time_ms": rmw.FLOAT32, "iteration_num": rmw.INT32, "transform_probability": rmw.FLOAT32,
              "nearest_voxel_transformation_likelihood": rmw.FLOAT32, "initial_to_result_distance": rmw.FLOAT32,
              "pose": rmw.STAMPED_POSE}

    def __init__(self, options: Options, types: rmw.Types, participant: dds.Participant) -> None:
        self._types, self._messages, self._frame = types, from_ndtd.Messages(types), options.map_frame
        folder = options.align_service.rsplit("/", 1)[0]
        self._writers = {name: participant.writer(f"{folder}/{name}", kind, dds.Quality(depth=10)) for name, kind in self.TOPICS.items()}

    def write(self, result: dict[str, Any]) -> None:
        """All topics of a result with a pose."""
        values: dict[str, Any] = {"exe_time_ms": sum(result[f"{part}_us"] for part in ("decode", "preprocess", "upload", "align")) / 1000,
                                  "iteration_num": result["iterations"], "transform_probability": result["transform_probability"],
                                  "nearest_voxel_transformation_likelihood": result["nvtl"]}
        if "guess" in result:
            values["initial_to_result_distance"] = np.linalg.norm(np.subtract(result["pose"][:3], result["guess"][:3]))
        stamp = self._messages.time(result["stamp_ns"])
        for name, value in values.items():
            kind = self.TOPICS[name]
            self._writers[name].write(self._types[kind](stamp=stamp, data=int(value) if kind == rmw.INT32 else float(value)))
        self._writers["pose"].write(self._messages.stamped_pose(result, self._frame))
