"""The programs under test as processes: ndtd, ndt-web, a simulated drive and what sends it. Standard library only.

Every program has its files in one folder, whose path is short since sockets have paths of at most 107 bytes, and ends
with its parent. Waiting is for conditions, never for a time."""

import ctypes
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time
import urllib.error
import urllib.request

PATIENCE_S = float(os.environ.get("NDT_WEB_PATIENCE_S", "120"))  # for a condition on a busy machine
PR_SET_PDEATHSIG = 1


def wait_until(what, condition, patience_s=PATIENCE_S):
    """Returns the first true value of condition(); AssertionError with `what` after patience_s."""
    end = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not within {patience_s:.0f} s: {what() if callable(what) else what}"
        time.sleep(0.02)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """A process that logs to FOLDER/NAME.log."""

    def __init__(self, bin_dir, folder, name):
        self.path, self.folder, self.name = pathlib.Path(bin_dir) / name, pathlib.Path(folder), name
        self.log_file = self.folder / f"{name}.log"
        self.environment = {**os.environ, "RUNTIME_DIRECTORY": str(folder)}
        self.process = None

    def launch(self, *arguments):
        assert not self.is_alive()
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                [str(self.path), *map(str, arguments)],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self.environment,
                preexec_fn=_die_with_parent,
            )

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def expect_alive(self):
        assert self.is_alive(), f"{self.name} has ended with {self.process.returncode}: {self.log()[-2000:]}"
        return True

    def end(self, sig=signal.SIGTERM):
        """Sends the signal, returns the exit code."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.name} does not end: {self.log()[-2000:]}") from None
        self.process = None
        return code

    def rss_bytes(self):
        """Resident memory of this process."""
        return 1024 * int(self._status("VmRSS"))

    def peak_bytes(self):
        """The most memory of this process so far."""
        return 1024 * int(self._status("VmHWM"))

    def threads(self):
        return int(self._status("Threads"))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def _status(self, key):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return line.split()[1]
        raise KeyError(key)


class Daemon(Program):
    """ndtd with a map of its own and sockets in its folder."""

    def __init__(self, bin_dir, folder, cloud, deskew="time", **settings):
        super().__init__(bin_dir, folder, "ndtd")
        self.settings = {
            "map.path": cloud,
            "preprocess.deskew": deskew,
            "live.budget_ms": 20000,
            "cpu.threads": 1,
            "backend.name": "cpu",
            **settings,
        }

    def start(self):
        ready = self.log().count(" ready ")
        sets = [word for key, value in self.settings.items() for word in ("--set", f"{key}={value}")]
        self.launch(*sets)
        wait_until(lambda: f"ndtd is ready: {self.log()[-500:]}", lambda: self.expect_alive() and self.log().count(" ready ") > ready)
        return self

    def ctl(self, *arguments):
        """What ndt-ctl prints."""
        done = subprocess.run(
            [str(self.path.with_name("ndt-ctl")), *map(str, arguments)],
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=PATIENCE_S,
        )
        return done.stdout + done.stderr


class Web(Program):
    """ndt-web at a port that it keeps when it is started again."""

    def __init__(self, bin_dir, folder, *options, token="correct-horse-battery-staple"):
        super().__init__(bin_dir, folder, "ndt-web")
        self.port, self.options, self.token = free_port(), list(options), token
        if token:
            secret = self.folder / "token"
            secret.write_text(token + "\n")
            secret.chmod(0o600)
            self.options += ["--allow-control", "--token-file", secret]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def start(self):
        self.launch("--listen", f"127.0.0.1:{self.port}", *self.options)
        wait_until(lambda: f"ndt-web answers: {self.log()[-500:]}", lambda: self.expect_alive() and self.is_healthy())
        return self

    def is_healthy(self):
        try:
            return self.get("healthz")[0] == 200
        except OSError:
            return False

    def get(self, path, headers=None, data=None):
        """(status, headers, body) of a request."""
        request = urllib.request.Request(self.url + path, headers=headers or {}, data=data)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
                return reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.headers, refused.read()

    def get_json(self, path):
        status, _, body = self.get(path)
        assert status == 200, (path, status, body[:200])
        return json.loads(body)


class Sender(Program):
    """ndt-send with a bag."""

    def __init__(self, bin_dir, folder, bag):
        super().__init__(bin_dir, folder, "ndt-send")
        self.bag = bag

    def start(self, *options):
        self.launch("--bag", self.bag, *options)
        return self

    def wait(self):
        assert self.process.wait(10 * PATIENCE_S) == 0, self.log()[-1000:]
        self.process = None


class Drive:
    """A simulated drive: folder/drive.bag and folder/map.pcd. Little data: fast also under sanitizers."""

    def __init__(self, bin_dir, folder, *options):
        self.bag, self.map = folder / "drive.bag", folder / "map.pcd"
        command = [
            f"{bin_dir}/ndt-sim",
            "--seed",
            "3",
            "--out",
            str(folder),
            "--beams",
            "16",
            "--columns",
            "900",
            "--map-spacing",
            "0.25",
            "--odometry",
            "--force",
            *map(str, options),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def read_bag(path):
    """(type, payload) of every record of a bag."""
    data, at = pathlib.Path(path).read_bytes(), 16
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        yield kind, data[at + 16 : at + 16 + length]
        at += 20 + length


class LapSender:
    """Sends a drive lap after lap from this process: numbers and stamps go on, so that no two scans are the same."""

    def __init__(self, folder, drive):
        import msgpack
        import zmq

        self.messages = [msgpack.unpackb(payload) for _, payload in read_bag(drive.bag)]
        self.messages = [m for m in self.messages if m["type"] not in ("truth", "result")]
        stamps = [m["stamp_ns"] for m in self.messages]
        self.lap_ns = max(stamps) - min(stamps) + 100_000_000
        self.pack, self.scans = msgpack.packb, 0
        self.frames = self._laps()
        self.socket = zmq.Context.instance().socket(zmq.XPUB)
        self.socket.sndhwm = 100000
        self.socket.connect(f"ipc://{folder}/scans.ipc")
        assert self.socket.poll(1000 * PATIENCE_S), "the daemon does not subscribe"

    def _laps(self):
        lap = 0
        while True:
            for message in self.messages:
                is_scan = message["type"] == "scan"
                changed = {**message, "stamp_ns": message["stamp_ns"] + lap * self.lap_ns}
                if is_scan:
                    changed["seq"] = self.scans
                yield self.pack(changed), is_scan
            lap += 1

    def send(self, until, rate_hz):
        """Sends until `until` scans are sent altogether; not faster than rate_hz."""
        begin, first = time.monotonic(), self.scans
        while self.scans < until:
            frame, is_scan = next(self.frames)
            self.socket.send(frame)
            if is_scan:
                self.scans += 1
                time.sleep(max(0.0, begin + (self.scans - first) / rate_hz - time.monotonic()))

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.socket.close(linger=0)
