"""Clients of a running ndtd (pip install 'ndtd[client]'): publish scans, receive results, send requests.

    with ndtd.Client() as daemon:
        daemon.wait_ready()
        daemon.publish_initial_pose(stamp_ns, [0, 0, 0, 0, 0, 0, 1])
        daemon.publish_scan(stamp_ns, points)
        for result in daemon.results(timeout=1.0):
            print(result["seq"], result["outcome"], result.get("state"), result.get("pose"), result.get("confidence"))

AsyncClient has the same methods as coroutines. Messages: proto/SCHEMA.md. Metres, seconds, radians; stamps in int64
nanoseconds; poses x y z qx qy qz qw, or (4, 4) where a pose is given. One thread per client.
"""
from __future__ import annotations

import asyncio
import itertools
import operator
import os
import stat
import time
from typing import TYPE_CHECKING, Any, AsyncIterator, Coroutine, Dict, Generic, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from ._extras import need
from .poses import checked_pose

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Message = Dict[str, Any]
Curve = Tuple[Union[str, bytes], Union[str, bytes], Union[str, bytes]]
Sent = TypeVar("Sent")  # what publishing returns: None, or a coroutine

DATATYPES = {4: 7, 8: 8}  # FLOAT32 and FLOAT64 of sensor_msgs/PointField, by their bytes
FLOAT_IS_ENOUGH_M = 2048.0
CALLS = {"odometry": "publish_odometry(stamp_ns, pose=, twist=)", "initial_pose": "publish_initial_pose(stamp_ns, pose)",
         "transform": "publish_transform(stamp_ns, frame_id, pose)"}  # of poses


class RequestError(Exception):
    """The daemon answered a request with an error."""


# ---- where the daemon is ----


def default_endpoint(name: str) -> str:
    """The default endpoint of the socket NAME: in $RUNTIME_DIRECTORY, else the first existing one of the daemon's folders, else
    the one that a daemon of this user is going to make, at last /tmp/ndtd-UID.

    PermissionError when others own /tmp/ndtd-UID or may write to it; a missing one is made, before others can."""
    folders = [os.environ.get("RUNTIME_DIRECTORY", "").split(":")[0]]
    if not folders[0]:
        folders = ["/run/ndtd"]
        if os.environ.get("XDG_RUNTIME_DIR"):
            folders.append(os.path.join(os.environ["XDG_RUNTIME_DIR"], "ndtd"))
        folders.append(f"/tmp/ndtd-{os.getuid()}")
    there = (path for path in folders if os.path.exists(f"{path}/{name}.ipc"))
    usable = (path for path in folders if _can_be_used(path))
    folder = next(there, None) or next(usable, folders[-1])
    if folder == f"/tmp/ndtd-{os.getuid()}":
        _make_private(folder)
    return f"ipc://{folder}/{name}.ipc"


def _can_be_used(folder: str) -> bool:
    """Whether this user may enter the folder, or where it is missing make it."""
    return os.access(folder, os.X_OK) if os.path.lexists(folder) else os.access(os.path.dirname(folder), os.W_OK | os.X_OK)


def _make_private(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    info = os.lstat(folder)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o022:
        raise PermissionError(f"{folder}: owner {info.st_uid}, mode {info.st_mode & 0o7777:04o}: "
                              "is not a directory that only this user may write to")


# ---- messages ----


def _scan_columns(points: ArrayLike, intensity: Optional[ArrayLike], time_s: Optional[ArrayLike]) -> Dict[str, Tuple[str, Any]]:
    """Names, kinds and values of the fields of a scan."""
    cloud = np.asarray(points)
    if cloud.ndim != 2 or cloud.shape[1] < 3 or cloud.dtype.kind not in "fiu":
        raise ValueError(f"points: numbers of shape (N, 3) or (N, 4) are wanted, not {cloud.dtype} of {cloud.shape}")
    xyz = cloud[:, :3]
    far = np.abs(xyz).max(initial=0.0, where=np.isfinite(xyz)) >= FLOAT_IS_ENOUGH_M
    columns = {name: ("<f8" if far else "<f4", xyz[:, i]) for i, name in enumerate("xyz")}
    if intensity is None and cloud.shape[1] > 3:
        intensity = cloud[:, 3]
    for name, argument, values in (("intensity", "intensity", intensity), ("time", "time_s", time_s)):
        if values is None:
            continue
        column = np.asarray(values)
        if column.shape != (len(cloud),):
            raise ValueError(f"{argument}: one number per point is wanted, ({len(cloud)},), not {column.shape}")
        columns[name] = ("<f4", column)
    return columns


def _stamped(call: str, stamp_ns: Any, message: Message) -> Message:
    """The message with its stamp; TypeError where the arguments have another order than that of `call`."""
    try:
        number = operator.index(stamp_ns)
    except TypeError:
        raise TypeError(f"{call}: stamp_ns: a whole number is wanted, not {type(stamp_ns).__name__}") from None
    if not isinstance(message.get("frame_id", ""), str):
        raise TypeError(f"{call}: frame_id: a name is wanted, not {type(message['frame_id']).__name__}")
    return {**message, "stamp_ns": number}


def _scan(stamp_ns: int, points: ArrayLike, intensity: Optional[ArrayLike], time_s: Optional[ArrayLike], seq: int,
          frame_id: str) -> Message:
    message = _stamped("publish_scan(stamp_ns, points)", stamp_ns, {"type": "scan", "seq": seq, "frame_id": frame_id})
    columns = _scan_columns(points, intensity, time_s)
    records = np.empty(len(columns["x"][1]), dtype=[(name, kind) for name, (kind, _) in columns.items()])
    for name, (_, values) in columns.items():
        records[name] = values
    layout = (records.dtype.fields or {}).items()
    fields = [[name, offset, DATATYPES[kind.itemsize], 1] for name, (kind, offset, *_) in layout]
    return {**message, "count": len(records), "point_step": records.itemsize, "fields": fields, "data": records.tobytes()}


def _pose(kind: str, stamp_ns: int, pose: Optional[ArrayLike], twist: Optional[ArrayLike],
          covariance: Optional[ArrayLike], frame_id: str) -> Message:
    message = _stamped(CALLS[kind], stamp_ns, {"type": kind, "frame_id": frame_id})
    numbers = None if pose is None else checked_pose(pose)
    return {**message, "pose": numbers, "twist": twist, "covariance": covariance}


def _gnss(stamp_ns: int, position: ArrayLike, deviation: Optional[ArrayLike], frame_id: str,
          antenna: Optional[str]) -> Message:
    message = _stamped("publish_gnss(stamp_ns, position)", stamp_ns, {"type": "gnss", "frame_id": frame_id})
    return {**message, "position": position, "deviation": deviation, "antenna": antenna}


def _imu(stamp_ns: int, rate: ArrayLike, acceleration: Optional[ArrayLike], rate_covariance: Optional[ArrayLike],
         acceleration_covariance: Optional[ArrayLike], frame_id: str) -> Message:
    message = _stamped("publish_imu(stamp_ns, angular_velocity)", stamp_ns, {"type": "imu", "frame_id": frame_id})
    return {**message, "angular_velocity": rate, "linear_acceleration": acceleration,
            "angular_velocity_covariance": rate_covariance, "linear_acceleration_covariance": acceleration_covariance}


def _viewed(message: Message) -> Message:
    """A message `points` with arrays instead of its bytes."""
    kinds = {7: "<f4", 8: "<f8"}
    names, offsets, formats = zip(*((name, offset, kinds[kind]) for name, offset, kind, _ in message.pop("fields")))
    layout = np.dtype({"names": names, "offsets": offsets, "formats": formats, "itemsize": message.pop("point_step")})
    records = np.frombuffer(message.pop("data"), dtype=layout)
    message["points"] = np.stack([records[axis] for axis in "xyz"], axis=1)
    message["intensity"] = records["intensity"].copy() if "intensity" in names else None
    return message


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as msgpack takes them."""
    return np.ravel(value).tolist() if np.ndim(value) else np.asarray(value).item()


# ---- clients ----


class _Sockets(Generic[Sent]):
    """The three sockets of a client, and what both kinds of client share."""

    def __init__(self, context: Any, scans: Optional[str], poses: Optional[str], control: Optional[str], push: bool,
                 curve: Optional[Curve]) -> None:
        self._zmq = need("zmq", "client")
        self._msgpack = need("msgpack", "client")
        self._monitor = need("zmq.utils.monitor", "client")
        self._context = context
        self._seq = itertools.count()
        self._id = itertools.count(1)
        self._curve = curve
        self._viewers: List[Any] = []  # an iterator that was not used up is closed with the client
        # XPUB instead of PUB: it receives subscriptions, for which wait_ready waits, because a PUB drops what it sends
        # before the subscription of the daemon arrives.
        self._push = push
        given = {"scans": scans, "poses": poses, "control": control}
        self._addresses = {name: address or default_endpoint(name) for name, address in given.items()}
        self._scans = self._connect(self._zmq.PUSH if push else self._zmq.XPUB, self._addresses["scans"])
        self._poses = self._connect(self._zmq.SUB, self._addresses["poses"])
        self._control = self._connect(self._zmq.DEALER, self._addresses["control"])

    def _connect_viewer(self, endpoint: str, option: str, waiting: int = 4) -> Any:
        if not endpoint:
            raise RequestError(f"the daemon has no such socket: {option}")
        socket = self._open(self._zmq.SUB)
        socket.rcvhwm = waiting  # a viewer that is slow shows the newest
        self._reach(socket, endpoint)
        self._viewers.append(socket)
        return socket

    def _open(self, kind: int) -> Any:
        socket = self._context.socket(kind)
        socket.linger = 1000  # ms: frames published just before close are still sent
        socket.sndhwm = 64
        if self._curve:
            keys = [key.encode() if isinstance(key, str) else key for key in self._curve]
            socket.curve_serverkey, socket.curve_publickey, socket.curve_secretkey = keys
        if kind == self._zmq.SUB:
            socket.subscribe(b"")
        return socket

    def _connect(self, kind: int, endpoint: str) -> Any:
        socket = self._open(kind)
        if kind == self._zmq.SUB:
            self._events = socket.get_monitor_socket(self._zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self._reach(socket, endpoint)
        return socket

    def _reach(self, socket: Any, endpoint: str) -> None:
        try:
            socket.connect(endpoint)
        except self._zmq.ZMQError as reason:
            raise ValueError(f"{endpoint!r} is not an address such as ipc:///run/ndtd/poses.ipc or tcp://host:7001: "
                             f"{reason.strerror}") from None

    def _late(self, name: str, what: str) -> TimeoutError:
        return TimeoutError(f"ndtd: timeout while waiting for {what or name} at {self._addresses[name]}; does it run there?")

    def _close(self) -> None:
        self._poses.disable_monitor()
        for socket in (self._events, self._scans, self._poses, self._control, *self._viewers):
            socket.close()
        self._context.term()

    def _pack(self, message: Message) -> bytes:
        known = {key: value for key, value in message.items() if value is not None}
        packed: bytes = self._msgpack.packb({"v": 1, **known}, default=_plain)
        return packed

    def _unpack(self, frame: bytes) -> Message:
        message: Message = self._msgpack.unpackb(frame)
        return message

    def _next_seq(self, seq: Optional[int]) -> int:
        return next(self._seq) if seq is None else seq

    def _send(self, message: Message) -> Sent:
        """Sends to the socket `scans`, as each kind of client does."""
        raise NotImplementedError

    def publish_odometry(self, stamp_ns: int, *, pose: Optional[ArrayLike] = None, twist: Optional[ArrayLike] = None,
                         covariance: Optional[ArrayLike] = None, frame_id: str = "odom") -> Sent:
        """T_odom_base, or the twist vx vy vz wx wy wz of the base in the base frame, or both."""
        return self._send(_pose("odometry", stamp_ns, pose, twist, covariance, frame_id))

    def publish_initial_pose(self, stamp_ns: int, pose: ArrayLike, *, twist: Optional[ArrayLike] = None,
                             covariance: Optional[ArrayLike] = None, frame_id: str = "map") -> Sent:
        """T_map_base; covariance: (6, 6) or 36 numbers, x y z rx ry rz [m^2, m rad, rad^2]."""
        return self._send(_pose("initial_pose", stamp_ns, pose, twist, covariance, frame_id))

    def publish_gnss(self, stamp_ns: int, position: ArrayLike, deviation: Optional[ArrayLike] = None, *,
                     frame_id: str = "map", antenna: Optional[str] = None) -> Sent:
        """x y z of the antenna in the map frame, and standard deviations [m]; antenna: the frame of its transform."""
        return self._send(_gnss(stamp_ns, position, deviation, frame_id, antenna))

    def publish_transform(self, stamp_ns: int, frame_id: str, pose: ArrayLike) -> Sent:
        """T_base_frame of the sensor with this frame_id: 4 x 4 or x y z qx qy qz qw. Repeat it: a daemon that starts later
        missed it."""
        return self._send(_pose("transform", stamp_ns, pose, None, None, frame_id))

    def publish_imu(self, stamp_ns: int, angular_velocity: ArrayLike, linear_acceleration: Optional[ArrayLike] = None, *,
                    angular_velocity_covariance: Optional[ArrayLike] = None,
                    linear_acceleration_covariance: Optional[ArrayLike] = None, frame_id: str = "imu") -> Sent:
        """rad/s; m/s^2, +9.81 on z at rest; covariances 3 x 3, None when unknown (ROS sends zeros or -1 then)."""
        return self._send(_imu(stamp_ns, angular_velocity, linear_acceleration, angular_velocity_covariance,
                               linear_acceleration_covariance, frame_id))


def _checked(reply: Message) -> Message:
    if not reply["ok"]:
        raise RequestError(reply.get("error", "no reason"))
    return reply


def _hints(pose: Optional[ArrayLike], **others: Any) -> Message:
    hints = {"pose": None if pose is None else checked_pose(pose), **others}
    return {key: value for key, value in hints.items() if value is not None}


def _moment(stamp_ns: Optional[int]) -> Message:
    return {} if stamp_ns is None else _stamped("pose_at(stamp_ns)", stamp_ns, {})


def _finished(report: Message, number: int) -> bool:
    """Whether the search of this number is over; RequestError when another one has begun."""
    if report["search_id"] != number:
        raise RequestError("another search has begun, the result of this one is not known")
    return not report["running"]


class Client(_Sockets[None]):
    """A connection to ndtd; a context manager.

    scans, poses, control: endpoints; default: those of a daemon on this machine. push: the daemon's `scans` socket is
    PULL (sockets.scans_kind). curve: keys in Z85: (server public, own public, own secret)."""

    def __init__(self, scans: Optional[str] = None, poses: Optional[str] = None, control: Optional[str] = None,
                 push: bool = False, curve: Optional[Curve] = None) -> None:
        super().__init__(need("zmq", "client").Context(), scans, poses, control, push, curve)

    def close(self) -> None:
        """Closes the sockets; what was published just before is still sent."""
        self._close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, message: Message) -> None:
        self._scans.send(self._pack(message))

    def _wait(self, socket: Any, end: float, name: str, what: str = "") -> None:
        if not socket.poll(max(0, int(1000 * (end - time.monotonic())))):
            raise self._late(name, what)

    def wait_ready(self, timeout: float = 5.0) -> None:
        """Waits, once, until both sockets are connected to the daemon; TimeoutError otherwise."""
        end = time.monotonic() + timeout
        if not self._push:
            self._wait(self._scans, end, "scans")
            self._scans.recv()  # its subscription
        self._wait(self._events, end, "poses")
        self._monitor.recv_monitor_message(self._events)

    def publish_scan(self, stamp_ns: int, points: ArrayLike, *, intensity: Optional[ArrayLike] = None,
                     time_s: Optional[ArrayLike] = None, seq: Optional[int] = None, frame_id: str = "lidar") -> int:
        """points: (N, 3) x y z, or (N, 4) with intensity, sensor frame [m]; time_s: (N,), relative to the stamp [s].

        Returns the sequence number, by which the result is recognised."""
        number = self._next_seq(seq)
        self._send(_scan(stamp_ns, points, intensity, time_s, number, frame_id))
        return number

    def results(self, timeout: Optional[float] = None) -> Iterator[Message]:
        """Yields results as dicts (pose, twist, covariance, confidence, state, guess only where known); ends when none
        arrives for `timeout` seconds (None: never)."""
        while self._poses.poll(None if timeout is None else int(timeout * 1000)):
            yield self._unpack(self._poses.recv())

    def points(self, timeout: Optional[float] = None, endpoint: Optional[str] = None) -> Iterator[Message]:
        """Yields what a viewer shows of each scan, as dicts: seq, points (N, 3) float32 in the base frame without the motion of
        the sensor, intensity (N,) or None, iterations, candidates, gnss if known; ends when none arrives for `timeout` seconds.

        The daemon makes them while this iterator is used. endpoint: default: the one that the daemon tells."""
        socket = self._connect_viewer(endpoint or self.request("hello")["points"], "sockets.points")
        try:
            while socket.poll(None if timeout is None else int(timeout * 1000)):
                yield _viewed(self._unpack(socket.recv()))
        finally:
            socket.close()

    def poses(self, timeout: Optional[float] = None, endpoint: Optional[str] = None) -> Iterator[Message]:
        """Yields poses between scans as dicts, with the daemon's output.rate_hz: stamp_ns, pose, covariance, twist if known, kind,
        state, scan_ns; ends when none arrives for `timeout` seconds. Made while this iterator is used."""
        socket = self._connect_viewer(endpoint or self.request("hello")["motion"], "output.rate_hz", 64)
        try:
            while socket.poll(None if timeout is None else int(timeout * 1000)):
                yield self._unpack(socket.recv())
        finally:
            socket.close()

    def pose_at(self, stamp_ns: Optional[int] = None, timeout: float = 5.0) -> Message:
        """The pose of the base at a stamp, as a dict with the keys of poses(): smoothed between the scans of the last seconds, or
        predicted by up to output.max_ahead_s (0.2). None: at the newest stamp of all data.

        RequestError where there is none, with the reason first: no_pose, before_window, too_far_ahead, not_trusted."""
        reply: Message = self.request("pose_at", timeout, **_moment(stamp_ns))["pose_at"]
        return reply

    def request(self, op: str, timeout: float = 5.0, **arguments: Any) -> Message:
        """Returns the reply as a dict; RequestError with the daemon's reason, TimeoutError without a reply."""
        end, number = time.monotonic() + timeout, next(self._id)
        self._control.send(self._pack({"type": "request", "id": number, "op": op, **arguments}))
        reply: Message = {"id": None}
        while reply["id"] != number:  # skips late replies to requests that timed out
            self._wait(self._control, end, "control", f"a reply to '{op}'")
            reply = self._unpack(self._control.recv())
        return _checked(reply)

    def localize(self, pose: Optional[ArrayLike] = None, covariance: Optional[ArrayLike] = None,
                 position: Optional[Sequence[float]] = None, deviation: Optional[Sequence[float]] = None,
                 heading: Optional[float] = None, heading_deviation: Optional[float] = None, apply: bool = True,
                 timeout: float = 30.0) -> Message:
        """Searches for the pose of the next scan: around a pose, a GNSS position, a heading (rad), or in the whole map.

        Waits for the end and returns the report as a dict: accepted, applied, reason, pose, confidence, covariance,
        alternatives, times in ms. apply: an accepted pose is used. After `timeout` seconds the search is cancelled:
        TimeoutError."""
        hints = _hints(pose, covariance=covariance, position=position, deviation=deviation, heading=heading,
                       heading_deviation=heading_deviation)
        end = time.monotonic() + timeout
        report: Message = self.request("localize", apply=apply, **hints)["search"]
        number = report["search_id"]
        while not _finished(report, number):
            if time.monotonic() > end:
                self.request("cancel_search")
                raise TimeoutError(f"ndtd: no pose within {timeout} s, the search is cancelled")
            time.sleep(0.02)
            report = self.request("search")["search"]
        return report


class AsyncClient(_Sockets[Coroutine[Any, Any, None]]):
    """Client for asyncio: the same methods as coroutines, an asynchronous context manager.

        async with ndtd.AsyncClient() as daemon:
            await daemon.wait_ready()
            await daemon.publish_scan(stamp_ns, points)
            async for result in daemon.results(timeout=1.0):
                ...

    The arguments are those of Client.
    """

    def __init__(self, scans: Optional[str] = None, poses: Optional[str] = None, control: Optional[str] = None,
                 push: bool = False, curve: Optional[Curve] = None) -> None:
        super().__init__(need("zmq.asyncio", "client").Context(), scans, poses, control, push, curve)
        self._turn = asyncio.Lock()

    async def close(self) -> None:
        """Closes the client; see Client.close."""
        self._close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _send(self, message: Message) -> None:
        await self._scans.send(self._pack(message))

    async def _receive(self, socket: Any, end: float, name: str, what: str = "") -> Any:
        if not await socket.poll(max(0, int(1000 * (end - time.monotonic())))):
            raise self._late(name, what)
        return await socket.recv_multipart()

    async def wait_ready(self, timeout: float = 5.0) -> None:
        """Waits for the daemon; see Client.wait_ready."""
        end = time.monotonic() + timeout
        if not self._push:
            await self._receive(self._scans, end, "scans")
        await self._receive(self._events, end, "poses")

    async def publish_scan(self, stamp_ns: int, points: ArrayLike, *, intensity: Optional[ArrayLike] = None,
                           time_s: Optional[ArrayLike] = None, seq: Optional[int] = None, frame_id: str = "lidar") -> int:
        """Publishes a scan; see Client.publish_scan."""
        number = self._next_seq(seq)
        await self._send(_scan(stamp_ns, points, intensity, time_s, number, frame_id))
        return number

    async def results(self, timeout: Optional[float] = None) -> AsyncIterator[Message]:
        """Yields results, for `async for`; see Client.results."""
        while await self._poses.poll(None if timeout is None else int(timeout * 1000)):
            yield self._unpack(await self._poses.recv())

    async def points(self, timeout: Optional[float] = None, endpoint: Optional[str] = None) -> AsyncIterator[Message]:
        """Yields points, for `async for`; see Client.points."""
        socket = self._connect_viewer(endpoint or (await self.request("hello"))["points"], "sockets.points")
        try:
            while await socket.poll(None if timeout is None else int(timeout * 1000)):
                yield _viewed(self._unpack(await socket.recv()))
        finally:
            socket.close()

    async def poses(self, timeout: Optional[float] = None, endpoint: Optional[str] = None) -> AsyncIterator[Message]:
        """Yields poses, for `async for`; see Client.poses."""
        socket = self._connect_viewer(endpoint or (await self.request("hello"))["motion"], "output.rate_hz", 64)
        try:
            while await socket.poll(None if timeout is None else int(timeout * 1000)):
                yield self._unpack(await socket.recv())
        finally:
            socket.close()

    async def pose_at(self, stamp_ns: Optional[int] = None, timeout: float = 5.0) -> Message:
        """The pose at a stamp; see Client.pose_at."""
        reply: Message = (await self.request("pose_at", timeout, **_moment(stamp_ns)))["pose_at"]
        return reply

    async def request(self, op: str, timeout: float = 5.0, **arguments: Any) -> Message:
        """Sends a request; see Client.request. Requests of several tasks wait for one another."""
        async with self._turn:
            end, number = time.monotonic() + timeout, next(self._id)
            await self._control.send(self._pack({"type": "request", "id": number, "op": op, **arguments}))
            reply: Message = {"id": None}
            while reply["id"] != number:
                reply = self._unpack((await self._receive(self._control, end, "control", f"a reply to '{op}'"))[-1])
        return _checked(reply)

    async def localize(self, pose: Optional[ArrayLike] = None, covariance: Optional[ArrayLike] = None,
                       position: Optional[Sequence[float]] = None, deviation: Optional[Sequence[float]] = None,
                       heading: Optional[float] = None, heading_deviation: Optional[float] = None, apply: bool = True,
                       timeout: float = 30.0) -> Message:
        """Searches for the pose; see Client.localize."""
        hints = _hints(pose, covariance=covariance, position=position, deviation=deviation, heading=heading,
                       heading_deviation=heading_deviation)
        end = time.monotonic() + timeout
        report: Message = (await self.request("localize", apply=apply, **hints))["search"]
        number = report["search_id"]
        while not _finished(report, number):
            if time.monotonic() > end:
                await self.request("cancel_search")
                raise TimeoutError(f"ndtd: no pose within {timeout} s, the search is cancelled")
            await asyncio.sleep(0.02)
            report = (await self.request("search"))["search"]
        return report
