"""ndtd, a bridge and its peers as processes, for the tests of ndt-ros1-bridge and ndt-ros2-bridge."""
import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgpack

from ndtd import BagReader


class Processes:
    """folder: for sockets and logs; a process NAME writes NAME.out and NAME.err there."""

    bridge_module = ""

    def __init__(self, ndtd, map_path, folder, deskew="time", **environment):
        self.folder, self.ndtd, self._map, self._deskew = Path(folder), ndtd, map_path, deskew
        self.folder.mkdir(parents=True, exist_ok=True)
        self.environment = {**os.environ, "RUNTIME_DIRECTORY": str(self.folder), "PYTHONUNBUFFERED": "1", **environment}
        self._processes = {}

    def start(self, name, *command, **environment):
        out = open(self.folder / f"{name}.out", "ab")
        err = open(self.folder / f"{name}.err", "ab")
        self._processes[name] = subprocess.Popen([str(part) for part in command], stdout=out, stderr=err,
                                                 env={**self.environment, **environment})

    def start_ndtd(self, *options):
        self.start("ndtd", self.ndtd, "--map", self._map, "--set", f"preprocess.deskew={self._deskew}", *options)

    def start_bridge(self, *options):
        self.start("bridge", sys.executable, "-m", self.bridge_module, *options)

    def stop(self, name, how=signal.SIGTERM):
        process = self._processes.pop(name, None)
        if process is not None and process.poll() is None:
            process.send_signal(how)
            process.wait(20)
        return process.returncode if process else None

    def finish(self, name, timeout_s):
        """Waits for the end of a process."""
        code = self._processes[name].wait(timeout_s)
        del self._processes[name]
        return code

    def close(self):
        for name in list(self._processes):
            self.stop(name, signal.SIGKILL)

    def lines(self, name, stream="out"):
        path = self.folder / f"{name}.{stream}"
        return path.read_text().splitlines() if path.exists() else []

    def wait_for(self, name, text, timeout_s, stream="out"):
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if any(text in line for line in self.lines(name, stream)):
                return
            time.sleep(0.05)
        raise TimeoutError(f"{name}: no '{text}' within {timeout_s} s: {self.lines(name, 'err')[-5:]}")

    def wait_for_poses(self, count, timeout_s):
        """Waits until the listener has got so many; a limit, so that a test ends that waits for what does not come."""
        end = time.monotonic() + timeout_s
        while len(self.received("pose")) < count:
            if time.monotonic() > end:
                raise TimeoutError(f"{len(self.received('pose'))} of {count} poses within {timeout_s} s: {self.lines('bridge', 'err')[-5:]}")
            time.sleep(0.05)

    def received(self, kind):
        """Columns of what the listener got: (stamp_ns, monotonic_ns, rest)."""
        rows = [line.split() for line in self.lines("listener")]
        return [(int(row[1]), int(row[2]), row[3:]) for row in rows if row[0] == kind and len(row) > 3]


def initial_pose(bag):
    """Initial pose of a simulated drive, for --initial-pose."""
    record = next(record for record in BagReader(str(bag)) if record.type == "initial_pose")
    return ",".join(str(value) for value in msgpack.unpackb(record.payload)["pose"])


def truth(bag):
    """Positions by stamp."""
    rows = [msgpack.unpackb(record.payload) for record in BagReader(str(bag)) if record.type == "truth"]
    return {row["stamp_ns"]: row["pose"][:3] for row in rows}


def drive_arguments(description):
    """Parser of the programs that play a drive through a bridge."""
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bag", type=Path)
    p.add_argument("map", type=Path)
    p.add_argument("--ndtd", default="build/bin/ndtd")
    p.add_argument("--scans", type=int, default=600)
    p.add_argument("--rate", type=float, default=10.0)
    return p
