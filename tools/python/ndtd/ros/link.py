"""The sockets of ndtd. Each object belongs to one thread; sockets connect again by themselves when ndtd restarts."""
import itertools
import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import msgpack
import zmq

from ..client import default_endpoint
from .to_ndtd import pack

WAITING_FRAMES = 8  # scans that wait for ndtd at most
SEARCH_EVERY_S = 1.0  # for the folder of the sockets, while ndtd is away
KEY_TEXT = 40


class NoAnswer(Exception):
    """ndtd does not answer, or answers with an error; the text is one line."""


@dataclass
class Daemon:
    """Address of ndtd. endpoints: those of scans, poses, motion, control that are not the default ones."""

    endpoints: dict[str, str] = field(default_factory=dict)
    push: bool = False  # its scans socket is PULL
    curve: Optional[tuple[bytes, bytes, bytes]] = None  # server public, own public, own secret, in Z85


def read_keys(server_file: Optional[str], secret_file: Optional[str]) -> Optional[tuple[bytes, bytes, bytes]]:
    """CURVE keys as the tools of ndtd read them; ValueError or OSError in one line."""
    if not server_file and not secret_file:
        return None
    if not server_file or not secret_file:
        raise ValueError("--curve-server-key and --curve-keys belong together")
    if os.stat(secret_file).st_mode & stat.S_IRWXO:
        raise ValueError(f"{secret_file}: others may read or write the secret key: chmod o= it")
    secret = _key(secret_file)
    return _key(server_file), zmq.curve_public(secret), secret


def _key(path: str) -> bytes:
    words = [line.split()[0] for line in Path(path).read_text(encoding="ascii", errors="replace").splitlines() if line.split()]
    key = next((word for word in words if len(word) == KEY_TEXT), None)
    if key is None:
        raise ValueError(f"{path}: there is no key of {KEY_TEXT} characters in it")
    return key.encode()


class _Socket:
    def __init__(self, context: zmq.Context, kind: int, name: str, daemon: Daemon) -> None:
        self._name, self._is_default = name, name not in daemon.endpoints
        self.endpoint = daemon.endpoints.get(name) or default_endpoint(name)
        self._socket = context.socket(kind)
        self._socket.linger = 0
        self._socket.sndhwm = WAITING_FRAMES
        if daemon.curve:
            self._socket.curve_serverkey, self._socket.curve_publickey, self._socket.curve_secretkey = daemon.curve
        self._next_search_s = time.monotonic() + SEARCH_EVERY_S

    def _connect(self) -> None:
        self._socket.connect(self.endpoint)

    def search(self) -> None:
        """Searches for ndtd while it is away: it may come back in another folder, as the service instead of a program of the user."""
        if not self._is_default or time.monotonic() < self._next_search_s:
            return
        self._next_search_s = time.monotonic() + SEARCH_EVERY_S
        endpoint = default_endpoint(self._name)
        if endpoint != self.endpoint:
            self._socket.disconnect(self.endpoint)
            self.endpoint = endpoint
            self._connect()

    def close(self) -> None:
        self._socket.close()


class Scans(_Socket):
    """Sends frames; knows whether ndtd listens."""

    def __init__(self, context: zmq.Context, daemon: Daemon) -> None:
        super().__init__(context, zmq.PUSH if daemon.push else zmq.XPUB, "scans", daemon)
        self._push = daemon.push
        self._socket.immediate = True  # nothing waits for a daemon that is not there, and its leaving shows
        self._listeners = 0
        self._connect()

    def send(self, frame: Any) -> bool:
        """False: ndtd does not listen, or too much waits; the frame is dropped."""
        if not self._push:
            self._count_listeners()
            if self._listeners == 0:
                self.search()
                return False
        try:
            self._socket.send(frame, zmq.NOBLOCK, copy=len(frame) < 65536)
        except zmq.Again:
            self.search()
            return False
        return True

    def _count_listeners(self) -> None:
        while self._socket.poll(0):
            subscription = self._socket.recv()
            self._listeners = max(0, self._listeners + (1 if subscription[:1] == b"\x01" else -1))


class Results(_Socket):
    """Receives results; with name "motion" and kind "pose" the poses between scans."""

    def __init__(self, context: zmq.Context, daemon: Daemon, name: str = "poses", kind: str = "result") -> None:
        super().__init__(context, zmq.SUB, name, daemon)
        self._kind = kind
        self._socket.subscribe(b"")
        self._connect()

    def next(self, timeout_s: float) -> Optional[dict[str, Any]]:
        if not self._socket.poll(int(1000 * timeout_s)):
            self.search()
            return None
        message = msgpack.unpackb(self._socket.recv())
        return message if isinstance(message, dict) and message.get("type") == self._kind else None


class Control(_Socket):
    """Sends requests."""

    def __init__(self, context: zmq.Context, daemon: Daemon) -> None:
        super().__init__(context, zmq.DEALER, "control", daemon)
        self._socket.immediate = True
        self._ids = itertools.count(time.time_ns() & 0xFFFFFFFF)
        self._connect()

    def request(self, op: str, timeout_s: float = 1.0, **arguments: Any) -> dict[str, Any]:
        end, number = time.monotonic() + timeout_s, next(self._ids)
        if not self._socket.poll(int(1000 * timeout_s), zmq.POLLOUT):
            endpoint = self.endpoint
            self.search()
            raise NoAnswer(f"ndtd does not answer at {endpoint}: is it running? (--control)")
        self._socket.send(pack("request", id=number, op=op, **arguments))
        while self._socket.poll(max(0, int(1000 * (end - time.monotonic())))):
            reply = msgpack.unpackb(self._socket.recv())
            if reply.get("id") == number:
                if not reply["ok"]:
                    raise NoAnswer(f"ndtd refuses '{op}': {reply.get('error', 'no reason')}")
                return reply
        raise NoAnswer(f"ndtd at {self.endpoint} does not answer to '{op}' within {timeout_s:g} s")
