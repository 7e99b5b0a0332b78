"""Bags of simulated drives, read and written anew, and a daemon to send them to."""
import contextlib
import json
import subprocess
import time

import msgpack

import ndtd
from ndtd.poses import matrix


def messages_of(bag):
    """(type, message) in their order; a scan has its arrays, and every message receive_ns."""
    for record in ndtd.BagReader(str(bag)):
        scan = ndtd.decode_scan(record.payload) if record.type == "scan" else {}
        yield record.type, {**msgpack.unpackb(record.payload), **scan, "receive_ns": record.receive_ns}


def scans_of(bag):
    return [message for kind, message in messages_of(bag) if kind == "scan"]


def truth_of(bag):
    """stamp_ns: T_map_base (4, 4)."""
    return {message["stamp_ns"]: matrix(message["pose"]) for kind, message in messages_of(bag) if kind == "truth"}


def write(out, kind, message):
    """Writes a message of messages_of() into a BagWriter."""
    stamp_ns, receive_ns = message["stamp_ns"], message["receive_ns"]
    if kind == "scan":
        out.scan(stamp_ns, message["points"], intensity=message["intensity"], time_s=message["time_s"], seq=message["seq"],
                 frame_id=message["frame_id"], receive_ns=receive_ns)
    elif kind == "initial_pose":
        out.initial_pose(stamp_ns, message["pose"], twist=message.get("twist"), covariance=message.get("covariance"), receive_ns=receive_ns)
    elif kind == "odometry":
        out.odometry(stamp_ns, pose=message["pose"], twist=message.get("twist"), receive_ns=receive_ns)
    elif kind == "imu":
        out.imu(stamp_ns, message["angular_velocity"], message["linear_acceleration"], receive_ns=receive_ns)
    elif kind == "truth":
        out.truth(stamp_ns, message["pose"], receive_ns=receive_ns)


class Daemon:
    """An ndtd with sockets of its own in `folder`; options: sections of its configuration besides."""

    def __init__(self, ndtd_program, folder, map_path, **options):
        self.endpoints = {name: f"ipc://{folder}/{name}.ipc" for name in ("scans", "poses", "control")}
        sections = {"backend": {"name": "cpu"}, "map": {"path": str(map_path)}, "sockets": self.endpoints, "live": {"budget_ms": 20000.0}}
        (folder / "ndtd.yaml").write_text(json.dumps({**sections, **options}))
        self.folder = folder
        with open(folder / "ndtd.log", "w") as log:
            self.process = subprocess.Popen([str(ndtd_program), "-c", str(folder / "ndtd.yaml")], stderr=log, stdout=log,
                                            stdin=subprocess.DEVNULL)

    def log(self):
        return (self.folder / "ndtd.log").read_text(errors="replace")


@contextlib.contextmanager
def daemon(*arguments, **options):
    """A Daemon that is killed at the end."""
    out = Daemon(*arguments, **options)
    try:
        yield out
    finally:
        out.process.kill()
        out.process.wait()


def wait_for_map(client):
    """The daemon may open its sockets before the map is loaded."""
    end = time.monotonic() + 30
    while client.request("status", timeout=30).get("map_id", 1) == 0 and time.monotonic() < end:
        time.sleep(0.1)


def answer(client, seq):
    """The result of a scan."""
    return next(result for result in client.results(timeout=30) if result["seq"] == seq)
