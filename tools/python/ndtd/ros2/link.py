"""The sockets of ndtd. Each object belongs to one thread; sockets connect again by themselves when ndtd restarts."""
import itertools
import time
from typing import Any, Optional

import msgpack
import zmq

from ..client import default_endpoint
from .to_ndtd import pack

WAITING_FRAMES = 8  # scans that wait for ndtd at most


class NoAnswer(Exception):
    """ndtd does not answer, or answers with an error; the text is one line."""


class Scans:
    """Sends frames; knows whether ndtd listens."""

    def __init__(self, context: zmq.Context, endpoint: Optional[str], push: bool = False) -> None:
        self._socket = context.socket(zmq.PUSH if push else zmq.XPUB)
        self._push = push
        self._socket.linger = 0
        self._socket.sndhwm = WAITING_FRAMES
        self._socket.connect(endpoint or default_endpoint("scans"))
        self._listeners = 0

    def send(self, frame: Any) -> bool:
        """False: nobody listens, or too much waits; the frame is dropped."""
        if not self._push:
            self._count_listeners()
            if self._listeners == 0:
                return False
        try:
            self._socket.send(frame, zmq.NOBLOCK, copy=len(frame) < 65536)
        except zmq.Again:
            return False
        return True

    def _count_listeners(self) -> None:
        while self._socket.poll(0):
            subscription = self._socket.recv()
            self._listeners = max(0, self._listeners + (1 if subscription[:1] == b"\x01" else -1))

    def close(self) -> None:
        self._socket.close()


class Results:
    """Receives results."""

    def __init__(self, context: zmq.Context, endpoint: Optional[str]) -> None:
        self._socket = context.socket(zmq.SUB)
        self._socket.linger = 0
        self._socket.subscribe(b"")
        self._socket.connect(endpoint or default_endpoint("poses"))

    def next(self, timeout_s: float) -> Optional[dict[str, Any]]:
        if not self._socket.poll(int(1000 * timeout_s)):
            return None
        message = msgpack.unpackb(self._socket.recv())
        return message if isinstance(message, dict) and message.get("type") == "result" else None

    def close(self) -> None:
        self._socket.close()


class Control:
    """Sends requests."""

    def __init__(self, context: zmq.Context, endpoint: Optional[str]) -> None:
        self.endpoint = endpoint or default_endpoint("control")
        self._socket = context.socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.immediate = True  # nothing waits for a daemon that is not there
        self._socket.connect(self.endpoint)
        self._ids = itertools.count(time.time_ns() & 0xFFFFFFFF)

    def request(self, op: str, timeout_s: float = 1.0, **arguments: Any) -> dict[str, Any]:
        end, number = time.monotonic() + timeout_s, next(self._ids)
        if not self._socket.poll(int(1000 * timeout_s), zmq.POLLOUT):
            raise NoAnswer(f"ndtd does not answer at {self.endpoint}: is it running? (--control)")
        self._socket.send(pack("request", id=number, op=op, **arguments))
        while self._socket.poll(max(0, int(1000 * (end - time.monotonic())))):
            reply = msgpack.unpackb(self._socket.recv())
            if reply.get("id") == number:
                if not reply["ok"]:
                    raise NoAnswer(f"ndtd refuses '{op}': {reply.get('error', 'no reason')}")
                return reply
        raise NoAnswer(f"ndtd at {self.endpoint} does not answer to '{op}' within {timeout_s:g} s")

    def close(self) -> None:
        self._socket.close()
