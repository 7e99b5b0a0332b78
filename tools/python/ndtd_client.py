"""A client of ndtd (pyzmq, msgpack, numpy): publishes scans, receives results, sends requests. Messages: proto/SCHEMA.md.

    with Client() as ndtd:
        ndtd.wait_ready()
        ndtd.publish_initial_pose([0, 0, 0, 0, 0, 0, 1], stamp_ns)
        ndtd.publish_scan(points, stamp_ns)
        for result in ndtd.results(timeout=1.0):
            print(result["seq"], result["outcome"], result.get("state"), result.get("pose"), result.get("confidence"))

Metres, seconds, radians; stamps in int64 nanoseconds; poses x y z qx qy qz qw. One thread per client.
"""
import itertools
import os
import stat
import time

import msgpack
import numpy as np
import zmq
from zmq.utils.monitor import recv_monitor_message

DATATYPES = {4: 7, 8: 8}  # FLOAT32 and FLOAT64 of sensor_msgs/PointField, by their bytes
FLOAT_IS_ENOUGH_M = 2048.0


class RequestError(Exception):
    """The daemon answered a request with an error."""


def default_endpoint(name):
    """The default endpoint of the socket NAME: in $RUNTIME_DIRECTORY, else the first existing one of the daemon's folders, else /tmp/ndtd-UID.

    PermissionError when others own /tmp/ndtd-UID or may write to it; a missing one is made, before others can."""
    folders = [os.environ.get("RUNTIME_DIRECTORY", "").split(":")[0]]
    if not folders[0]:
        folders = ["/run/ndtd"]
        if os.environ.get("XDG_RUNTIME_DIR"):
            folders.append(os.path.join(os.environ["XDG_RUNTIME_DIR"], "ndtd"))
        folders.append(f"/tmp/ndtd-{os.getuid()}")
    folder = next((path for path in folders if os.path.exists(f"{path}/{name}.ipc")), folders[-1])
    if folder == f"/tmp/ndtd-{os.getuid()}":
        _make_private(folder)
    return f"ipc://{folder}/{name}.ipc"


def _make_private(folder):
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    info = os.lstat(folder)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o022:
        raise PermissionError(f"{folder}: owner {info.st_uid}, mode {info.st_mode & 0o7777:04o}: "
                              "is not a directory that only this user may write to")


class Client:
    """push: the daemon's `scans` socket is PULL (sockets.scans_kind). curve: keys in Z85: (server public, own public, own secret)."""

    def __init__(self, scans=None, poses=None, control=None, push=False, curve=None):
        self._context = zmq.Context()
        self._curve = curve
        self._seq = itertools.count()
        self._id = itertools.count(1)
        # XPUB instead of PUB: it receives subscriptions, for which wait_ready waits, because a PUB drops what it sends
        # before the subscription of the daemon arrives.
        self._push = push
        self._scans = self._connect(zmq.PUSH if push else zmq.XPUB, scans or default_endpoint("scans"))
        self._poses = self._connect(zmq.SUB, poses or default_endpoint("poses"))
        self._control = self._connect(zmq.DEALER, control or default_endpoint("control"))

    def _connect(self, kind, endpoint):
        socket = self._context.socket(kind)
        socket.linger = 1000  # ms: frames published just before close are still sent
        socket.sndhwm = 64
        if self._curve:
            socket.curve_serverkey, socket.curve_publickey, socket.curve_secretkey = map(_as_bytes, self._curve)
        if kind == zmq.SUB:
            socket.subscribe(b"")
            self._events = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        socket.connect(endpoint)
        return socket

    def close(self):
        self._poses.disable_monitor()
        for socket in (self._events, self._scans, self._poses, self._control):
            socket.close()
        self._context.term()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def wait_ready(self, timeout=5.0):
        """Waits, once, until both sockets are connected to the daemon; TimeoutError otherwise."""
        end = time.monotonic() + timeout
        if not self._push:
            _wait(self._scans, end, "scans")
            self._scans.recv()  # its subscription
        _wait(self._events, end, "poses")
        recv_monitor_message(self._events)

    def _publish(self, kind, **fields):
        message = {"v": 1, "type": kind, **{key: value for key, value in fields.items() if value is not None}}
        self._scans.send(_pack(message))

    def publish_scan(self, points, stamp_ns, seq=None, frame_id="lidar", time_s=None):
        """points: N x 3 (x y z) or N x 4 (with intensity), sensor frame; time_s: N, relative to the stamp. Returns seq."""
        points = np.asarray(points)
        xyz = points[:, :3]
        far = np.abs(xyz).max(initial=0.0, where=np.isfinite(xyz)) >= FLOAT_IS_ENOUGH_M
        columns = dict(zip(("x", "y", "z"), [("<f8" if far else "<f4", xyz[:, i]) for i in range(3)]))
        if points.shape[1] > 3:
            columns["intensity"] = ("<f4", points[:, 3])
        if time_s is not None:
            columns["time"] = ("<f4", time_s)
        records = np.empty(len(points), dtype=[(name, kind) for name, (kind, _) in columns.items()])
        for name, (_, values) in columns.items():
            records[name] = values
        layout = records.dtype.fields.items()
        fields = [[name, offset, DATATYPES[kind.itemsize], 1] for name, (kind, offset) in layout]
        seq = next(self._seq) if seq is None else seq
        self._publish("scan", seq=seq, stamp_ns=stamp_ns, frame_id=frame_id, count=len(records),
                      point_step=records.itemsize, fields=fields, data=records.tobytes())
        return seq

    def publish_odometry(self, stamp_ns, pose=None, twist=None, covariance=None, frame_id="odom"):
        self._publish("odometry", stamp_ns=stamp_ns, frame_id=frame_id, pose=pose, twist=twist,
                      covariance=covariance)

    def publish_initial_pose(self, pose, stamp_ns, twist=None, covariance=None, frame_id="map"):
        self._publish("initial_pose", stamp_ns=stamp_ns, frame_id=frame_id, pose=pose, twist=twist,
                      covariance=covariance)

    def publish_gnss(self, position, stamp_ns, deviation=None, frame_id="map", antenna=None):
        """antenna: frame of the antenna, that of its transform."""
        self._publish("gnss", stamp_ns=stamp_ns, frame_id=frame_id, position=position, deviation=deviation, antenna=antenna)

    def publish_transform(self, pose, frame_id, stamp_ns):
        """Where the sensor with this frame_id is: T_base_frame, x y z qx qy qz qw. Repeat it: a daemon that starts later missed it."""
        self._publish("transform", stamp_ns=stamp_ns, frame_id=frame_id, pose=pose)

    def publish_imu(self, angular_velocity, stamp_ns, linear_acceleration=None, angular_velocity_covariance=None,
                    linear_acceleration_covariance=None, frame_id="imu"):
        """rad/s; m/s^2, +9.81 on z at rest; covariances 3 x 3, None when unknown (ROS sends zeros or -1 then)."""
        self._publish("imu", stamp_ns=stamp_ns, frame_id=frame_id, angular_velocity=angular_velocity,
                      linear_acceleration=linear_acceleration,
                      angular_velocity_covariance=angular_velocity_covariance,
                      linear_acceleration_covariance=linear_acceleration_covariance)

    def results(self, timeout=None):
        """Yields results as dicts (pose, twist, covariance, confidence, state, guess only where known); ends when none arrives for `timeout` seconds (None: never)."""
        while self._poses.poll(None if timeout is None else int(timeout * 1000)):
            yield msgpack.unpackb(self._poses.recv())

    def request(self, op, timeout=5.0, **arguments):
        """Returns the reply as a dict; RequestError with the daemon's reason, TimeoutError without a reply."""
        end, number = time.monotonic() + timeout, next(self._id)
        self._control.send(_pack({"v": 1, "type": "request", "id": number, "op": op, **arguments}))
        reply = {"id": None}
        while reply["id"] != number:  # skips late replies to requests that timed out
            _wait(self._control, end, f"a reply to '{op}'")
            reply = msgpack.unpackb(self._control.recv())
        if not reply["ok"]:
            raise RequestError(reply.get("error", "no reason"))
        return reply

    def localize(self, pose=None, covariance=None, position=None, deviation=None, heading=None, heading_deviation=None,
                 apply=True, timeout=30.0):
        """Searches for the pose of the next scan: around a pose, a GNSS position, a heading (rad), or in the whole map.

        Waits for the end and returns the report as a dict: accepted, applied, reason, pose, confidence, covariance,
        alternatives, times in ms. apply: an accepted pose is used. After `timeout` seconds the search is cancelled:
        TimeoutError."""
        hints = {"pose": pose, "covariance": covariance, "position": position, "deviation": deviation,
                 "heading": heading, "heading_deviation": heading_deviation}
        given = {key: value for key, value in hints.items() if value is not None}
        end = time.monotonic() + timeout
        report = self.request("localize", apply=apply, **given)["search"]
        number = report["search_id"]
        while report["running"] and report["search_id"] == number:
            if time.monotonic() > end:
                self.request("cancel_search")
                raise TimeoutError(f"ndtd: no pose within {timeout} s, the search is cancelled")
            time.sleep(0.02)
            report = self.request("search")["search"]
        if report["search_id"] != number:
            raise RequestError("another search has begun, the result of this one is not known")
        return report


def _wait(socket, end, what):
    if not socket.poll(max(0, int(1000 * (end - time.monotonic())))):
        raise TimeoutError(f"ndtd: timeout while waiting for {what}")


def _pack(message):
    return msgpack.packb(message, default=lambda v: np.ravel(v).tolist() if np.ndim(v) else v.item())


def _as_bytes(key):
    return key.encode() if isinstance(key, str) else key
