"""What the nodes of Autoware expect of ndt_scan_matcher beside its pose: two services, and its scores as topics.

`ndt_align_srv` searches the map around a pose, `trigger_node` turns the poses off and on. pose_initializer waits for both, and
calls them for each first pose: off, align, on. Each has a thread: a search takes seconds, and off must not wait for it.
"""
import threading
from typing import Any

import numpy as np
import zmq

from ..recordings import messages as m
from ..recordings import ros
from . import dds, from_ndtd, initial_pose, link, msgtypes, rmw, to_ndtd, transport
from .options import Log, Options

# What Autoware's displays and monitors plot, with the types of the topics.
SCORES = {"exe_time_ms": msgtypes.FLOAT32, "iteration_num": msgtypes.INT32, "transform_probability": msgtypes.FLOAT32,
          "nearest_voxel_transformation_likelihood": msgtypes.FLOAT32, "initial_to_result_distance": msgtypes.FLOAT32, "pose": msgtypes.STAMPED_POSE}


class Trigger:
    """The service trigger_node: run() is the thread; is_active() and counts may be read by all."""

    def __init__(self, options: Options, log: Log, participant: dds.Participant) -> None:
        self._name, self._log = options.trigger_service, log
        self._service = participant.service(options.trigger_service, rmw.SET_BOOL)
        self._is_active = True  # ndtd itself knows when its pose may be used: nothing has to be waited for
        self.counts = {"trigger_requests": 0}

    def is_active(self) -> bool:
        """Whether poses are published."""
        return self._is_active

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._service.serve(0.2, self._handle, lambda error: _refuse(self._log, self._name, error))

    def _handle(self, request: dds.Request) -> None:
        self.counts["trigger_requests"] += 1
        is_active = bool(request.message.data)
        if is_active != self._is_active:
            self._log(f"{self._name}: poses are {'published' if is_active else 'withheld'}")
        self._is_active = is_active
        self._service.answer(request, success=True, message="")


class Align:
    """The service ndt_align_srv: run() is the thread; counts may be read by all."""

    def __init__(self, options: Options, log: Log, types: transport.Types, participant: dds.Participant, context: zmq.Context) -> None:
        self._name, self._map_frame, self._log, self._messages = options.align_service, options.map_frame, log, from_ndtd.Messages(types)
        self._control = link.Control(context, options.daemon)
        self._service = participant.service(options.align_service, rmw.ALIGN)
        self._topic = m.Topic(options.align_service, msgtypes.POSE, 0, "pose")
        self.counts = {"align_requests": 0}

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._service.serve(0.2, lambda request: self._handle(request, stop), lambda error: _refuse(self._log, self._name, error))
        self._control.close()

    def _handle(self, request: dds.Request, stop: threading.Event) -> None:
        self.counts["align_requests"] += 1
        message, accepted = request.message.pose_with_covariance, False
        try:
            wanted = next(ros.pose_with_covariance_stamped(message, 0, self._topic, None))
            initial_pose.check(wanted, self._map_frame)
            found = initial_pose.search(self._control, wanted, stop)
            accepted = bool(found.get("accepted"))
            self._log(f"{self._name}: {initial_pose.text(found)}")
            if accepted:
                message.pose.pose = self._messages.plain_pose(found["pose"])
        except (link.NoAnswer, to_ndtd.Refused) as error:
            self._log.seldom(f"{self._name} {error}"[:100], f"{self._name}: {error}")
        self._service.answer(request, success=accepted, reliable=accepted, pose_with_covariance=message)


def _refuse(log: Log, name: str, error: Exception) -> None:
    log.seldom(f"{name} {type(error)}", f"{name}: a request is left out: {type(error).__name__}: {error}")


class Scores:
    """The topics of SCORES that options.scores names."""

    def __init__(self, options: Options, types: transport.Types, participant: transport.Participant) -> None:
        self._types, self._messages, self._frame = types, from_ndtd.Messages(types), options.map_frame
        self._writers = {name: participant.writer(topic, SCORES[name], transport.Quality(depth=10)) for name, topic in options.scores.items()}

    def write(self, result: dict[str, Any]) -> None:
        """All topics of a result with a pose."""
        values: dict[str, Any] = {"exe_time_ms": sum(result[f"{part}_us"] for part in ("decode", "preprocess", "upload", "align")) / 1000,
                                  "iteration_num": result["iterations"], "transform_probability": result["transform_probability"],
                                  "nearest_voxel_transformation_likelihood": result["nvtl"]}
        if "guess" in result:
            values["initial_to_result_distance"] = np.linalg.norm(np.subtract(result["pose"][:3], result["guess"][:3]))
        stamp = self._messages.time(result["stamp_ns"])
        for name, value in values.items():
            data = int(value) if SCORES[name] == msgtypes.INT32 else float(value)
            self._writers[name].write(self._types[SCORES[name]](stamp=stamp, data=data))
        self._writers["pose"].write(self._messages.stamped_pose(result, self._frame))
