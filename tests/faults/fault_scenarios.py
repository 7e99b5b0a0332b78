"""What ndtd does while calls fail: its commands, and the daemon in phases of its life. A scenario runs under one fault
and returns (verdict, explanation); the verdicts of BAD are defects:

  unharmed     ended as without the fault
  refused      ended with the reason in its last line; its output files are absent
  degraded     something failed, was said, and the rest went on: every scan and every request is answered
  crash, hang, silent (no reason), unanswered, partial (an output file that is not whole), leftover (files), sanitizer
"""
import json
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import time

import msgpack
import zmq

BAD = ("crash", "hang", "silent", "unanswered", "partial", "leftover", "sanitizer")
LIMIT_S = 30.0
SANITIZER = ("AddressSanitizer", "LeakSanitizer", "runtime error:", "stack smashing", "buffer overflow detected")


class Inputs:
    """A short drive with its map as points, compiled and as tiles; made once."""

    def __init__(self, bin_dir, folder):
        self.bin, self.folder = pathlib.Path(bin_dir).resolve(), pathlib.Path(folder)
        self.ndtd = self.bin / "ndtd"
        subprocess.run([self.bin / "ndt-sim", "--seed", "3", "--out", folder, "--scans", "4", "--beams", "16", "--columns", "600",
                        "--range", "40", "--map-spacing", "0.3", "--odometry", "--force"], check=True, stdout=subprocess.DEVNULL)
        self.points, self.bag = self.folder / "map.pcd", self.folder / "drive.bag"
        self.compiled, self.tiles, self.tile = self.folder / "map.ndtmap", self.folder / "tiles", self.folder / "tiles/0_0.pcd"
        subprocess.run([self.ndtd, "--compile-map", self.compiled, "--map", self.points], check=True, stdout=subprocess.DEVNULL)
        self._cut_tiles()
        self.frames = list(read_bag(self.bag))
        self.pose = next(msgpack.unpackb(data)["pose"] for data in self.frames if b"initial_pose" in data[:40])
        self.scans = sum(is_scan(data) for data in self.frames)

    def _cut_tiles(self):
        head, _, body = self.points.read_bytes().partition(b"DATA binary\n")
        parts = {}
        for at in range(0, len(body), 16):
            x, y = struct.unpack_from("<2f", body, at)
            parts.setdefault((int(x // 40), int(y // 40)), []).append(body[at : at + 16])
        self.tiles.mkdir(exist_ok=True)
        names = []
        for (i, k), points in parts.items():
            lines = [line for line in head.decode().splitlines() if not line.startswith(("WIDTH", "POINTS"))]
            at = [n for n, line in enumerate(lines) if line.startswith("HEIGHT")][0]
            lines[at:at] = [f"WIDTH {len(points)}"]
            lines.append(f"POINTS {len(points)}")
            name = f"{i}_{k}.pcd"
            (self.tiles / name).write_bytes("\n".join(lines + ["DATA binary", ""]).encode() + b"".join(points))
            names.append(f"{name}: [{40 * i}, {40 * k}]\n")
        (self.tiles / "pointcloud_map_metadata.yaml").write_text("x_resolution: 40\ny_resolution: 40\n" + "".join(names))


def read_bag(path):
    """Payloads of a bag; ValueError where it does not consist of whole records."""
    data, at = pathlib.Path(path).read_bytes(), 16
    if len(data) < 16:
        raise ValueError("a partial header")
    while at < len(data):
        if at + 16 > len(data):
            raise ValueError("a partial record")
        length = struct.unpack_from("<II", data, at)[1]
        if at + 20 + length > len(data):
            raise ValueError("a partial record")
        yield data[at + 16 : at + 16 + length]
        at += 20 + length


def is_scan(frame):
    return b"\xa4type\xa4scan" in frame[:40]


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def says_why(text):
    """A line about a failure; the reasons of a daemon stand in its log."""
    return any(line.startswith("ndtd: ") or " error: " in line for line in text.splitlines())


def judge_end(code, text):
    """The verdict of an end that is bad in any case, or None."""
    found = [word for word in SANITIZER if word in text]
    if found or code == 99:
        return "sanitizer", text[-3000:]
    if code < 0:
        return "crash", f"{signal.Signals(-code).name}: {last_line(text)}"
    if code > 3:
        return "crash", f"exit code {code}: {last_line(text)}"
    if code != 0 and not says_why(text):
        return "silent", f"exit code {code}: {last_line(text)!r}"
    return None


class Command:
    """A call of ndtd that ends by itself. outputs: names of files that it writes, with a check of their content."""

    def __init__(self, name, arguments, outputs=(), check=None):
        self.name, self._arguments, self._outputs, self._check = name, arguments, outputs, check

    def run(self, inputs, page, shim, folder, sanitized=False, file_limit=None):
        folder = pathlib.Path(folder)
        environment = page.environment(shim, sanitized)
        limit = None
        if file_limit is not None:  # a disk that is full at this byte
            def limit():
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, resource.RLIM_INFINITY))
        page.arm()
        try:
            done = subprocess.run([inputs.ndtd, *self._arguments(inputs, folder)], env=environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S, preexec_fn=limit, check=False)
        except subprocess.TimeoutExpired:
            return "hang", f"no end within {LIMIT_S} s"
        finally:
            page.arm(False)
        text = done.stderr.decode(errors="replace")
        return judge_end(done.returncode, text) or self._judge_files(inputs, folder, done.returncode, text)

    def _judge_files(self, inputs, folder, code, text):
        left = sorted(p.name for p in folder.iterdir() if p.is_file() and p.name not in self._outputs)
        if left:
            return "leftover", f"exit code {code}, but these files remain: {left}"
        for name in self._outputs:
            path = folder / name
            if code == 0 and not path.exists():
                return "silent", f"exit code 0, but {name} is absent"
            if path.exists() and self._check:
                wrong = self._check(inputs, path)
                if wrong:
                    return "partial", f"{name}: {wrong}"
        return ("unharmed" if "warning" not in text else "degraded", "") if code == 0 else ("refused", last_line(text))


def check_replay_output(inputs, path):
    text = path.read_text()
    if not text.endswith("\n"):
        return "its last line is not whole"
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in text.splitlines()]
        return None if len(rows) == inputs.scans else f"{len(rows)} results of {inputs.scans} scans"
    if path.suffix == ".json":
        json.loads(text)
    return None


def check_map(inputs, path):
    return None if path.read_bytes() == inputs.compiled.read_bytes() else "not the bytes that are written without the fault"


QUICK = ("--set", "backend.name=cpu", "--set", "cpu.threads=2", "--set", "preprocess.deskew=time")


def replay(kind):
    def arguments(inputs, out):
        return ["--replay", inputs.bag, "--map", getattr(inputs, kind), *QUICK, "--out", out / "poses.tum", "--results",
                out / "results.jsonl", "--summary", out / "summary.json", "--timing", out / "timing.csv"]
    return Command(f"replay {kind}", arguments, ("poses.tum", "results.jsonl", "summary.json", "timing.csv"), check_replay_output)


CONFIG = pathlib.Path(__file__).resolve().parents[2] / "config/ndtd.yaml"
COMMANDS = [
    Command("print-config", lambda inputs, out: ["--print-config", "-c", CONFIG]),
    Command("check-config", lambda inputs, out: ["--check-config", "-c", CONFIG]),
    Command("compile-map", lambda inputs, out: ["--compile-map", out / "map.ndtmap", "--map", inputs.points], ("map.ndtmap",), check_map),
    Command("make-keys", lambda inputs, out: ["--make-keys", out / "pair"], ("pair.secret", "pair.public")),
    replay("points"), replay("compiled"), replay("tiles"),
]


class Defect(Exception):
    """What the daemon failed to do: (verdict, explanation)."""


class Daemon:
    """A daemon under a fault, and its client."""

    context = zmq.Context()

    def __init__(self, inputs, page, shim, folder, sanitized):
        self.inputs, self.page, self.folder = inputs, page, pathlib.Path(folder)
        self.sent, self.answers, self.asked = [], {}, 0
        self.config, self.log = self.folder / "ndtd.yaml", self.folder / "log"
        self.write_config(20000)
        self.recordings = self.folder / "recordings"
        self.recordings.mkdir()
        self._environment = {**page.environment(shim, sanitized), "STATE_DIRECTORY": str(self.folder)}
        self.process, self.stamp_ns = None, 0
        self._sockets = []

    def write_config(self, budget_ms):
        ends = {name: f"ipc://{self.folder}/{name}.ipc" for name in ("scans", "poses", "control")}
        self.config.write_text(json.dumps({
            "backend": {"name": "cpu"}, "cpu": {"threads": 2}, "preprocess": {"deskew": "time"}, "live": {"budget_ms": budget_ms},
            "dynamic_map_loading": {"enable": True}, "map": {"path": str(self.inputs.points)}, "sockets": {**ends, "scans_kind": "pull"}}))

    def start(self):
        """Whether it became ready."""
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([self.inputs.ndtd, "-c", self.config, "--initial-pose", ",".join(map(str, self.inputs.pose))],
                                            stderr=log, stdout=log, env=self._environment, cwd=self.recordings)
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end and self.process.poll() is None:
            if b" ready " in self.log.read_bytes():
                return self._connect()
            time.sleep(0.002)
        if self.process.poll() is None:
            raise Defect("hang", "neither ready nor ended")
        return False

    def text(self):
        return self.log.read_text(errors="replace")

    def _connect(self):
        for name, kind in (("scans", zmq.PUSH), ("poses", zmq.SUB), ("control", zmq.DEALER)):
            socket = self.context.socket(kind)
            socket.linger = 0
            if kind == zmq.SUB:
                socket.subscribe(b"")
            socket.connect(f"ipc://{self.folder}/{name}.ipc")
            self._sockets.append(socket)
        self._out, self._in, self._control = self._sockets
        return True

    def lives(self):
        return self.process.poll() is None

    def await_subscription(self):
        for _ in range(500):
            reply = self.request("status")
            if not reply or reply.get("publisher", {}).get("subscribers", 1) > 0:
                return
            time.sleep(0.01)

    def request(self, op, **arguments):
        """The reply, also one that refuses; None and a problem if there is none."""
        if not self.lives():
            return None
        self.asked += 1
        self._control.send(msgpack.packb({"v": 1, "type": "request", "id": self.asked, "op": op, **arguments}))
        end = time.monotonic() + LIMIT_S / 3
        while time.monotonic() < end and self.lives():
            while self._control.poll(20):
                reply = self._decode(self._control.recv(), f"a reply to {op}")
                if reply["id"] == self.asked:
                    return reply
        if self.lives():
            raise Defect("unanswered", f"no reply to {op}")
        return None

    def _decode(self, data, what):
        try:
            return msgpack.unpackb(data)
        except ValueError as error:  # msgpack's are
            raise Defect("partial", f"{what} cannot be decoded: {error}: {data[:60]}") from error

    def await_map(self):
        for _ in range(500):
            reply = self.request("status")
            if not reply or not reply["map"]["busy"]:
                return
            time.sleep(0.01)

    def send(self, frame):
        self._out.send(frame)

    def scan(self, count=1, points=None):
        """Sends scans of the drive again, later ones, with their odometry; each after the answer to the one before."""
        for _ in range(count if self.lives() else 0):
            message = None
            for frame in self.inputs.frames:
                if is_scan(frame):
                    message = msgpack.unpackb(frame)
                    break
            self.stamp_ns = max(self.stamp_ns, message["stamp_ns"]) + 100000000
            message.update(seq=len(self.sent), stamp_ns=self.stamp_ns)
            if points:
                message.update(count=points, data=message["data"][: points * message["point_step"]])
            self.send(msgpack.packb({"v": 1, "type": "odometry", "stamp_ns": self.stamp_ns - 1000, "frame_id": "odom", "twist": [0.0] * 6}))
            self.sent.append(msgpack.packb(message))
            self.send(self.sent[-1])
            self.collect(len(self.sent) - 1)

    def collect(self, seq):
        end = time.monotonic() + LIMIT_S / 3
        while seq not in self.answers and time.monotonic() < end and self.lives():
            while self._in.poll(20):
                result = self._decode(self._in.recv(), "a result")
                self.answers.setdefault(result["seq"], []).append(result["outcome"])
                if seq in self.answers:
                    return
        if self.lives():
            raise Defect("unanswered", f"no answer to scan {seq}")

    def end(self):
        """Ends it in the orderly way and returns the verdict."""
        if self.lives():
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.verdict(self.process.wait(LIMIT_S))
        except subprocess.TimeoutExpired:
            raise Defect("hang", "SIGTERM does not end it") from None

    def verdict(self, code):
        text = self.text()
        found = judge_end(code, text)
        if found:
            return found
        missing = [seq for seq in range(len(self.sent)) if seq not in self.answers]
        if missing and code == 0:
            raise Defect("unanswered", f"scans {missing} of {len(self.sent)}")
        # Without a descriptor the daemon cannot tell whether a socket is still its own, and leaves it to the next start.
        left = [p.name for p in self.folder.glob("*.tmp")] + [p.name for p in self.folder.glob("*.ipc") if not self.page.injected()]
        if left:
            raise Defect("leftover", f"exit code {code}, but these files remain: {left}")
        for bag in self.recordings.glob("*.bag"):
            self._check_bag(bag)
        if code != 0:
            return "refused", last_line(text)
        return ("degraded", "") if " error: " in text or " warning: " in text else ("unharmed", "")

    def _check_bag(self, bag):
        try:
            strange = [data for data in read_bag(bag) if is_scan(data) and data not in self.sent]
        except ValueError as error:
            raise Defect("partial", f"{bag.name}: {error}") from error
        if strange:
            raise Defect("partial", f"{bag.name} has {len(strange)} scans that were not sent")

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for socket in self._sockets:
            socket.close()


class Live:
    """The daemon; calls fail from `armed at` (start, ready or end) and during the phase. Afterwards it must work as ever."""

    def __init__(self, name, phase=None, armed="ready"):
        self.name, self._phase, self._armed = name, phase, armed

    def run(self, inputs, page, shim, folder, sanitized=False):
        daemon = Daemon(inputs, page, shim, folder, sanitized)
        try:
            return self._run(daemon, page)
        except Defect as defect:
            page.arm(False)
            verdict, why = defect.args
            code = daemon.process.poll()
            found = judge_end(code, daemon.text()) if code is not None else None
            return found or (verdict, why + " | log: " + " / ".join(daemon.text().strip().splitlines()[-4:]))
        finally:
            page.arm(False)
            daemon.close()

    def _run(self, daemon, page):
        page.arm(self._armed == "start")
        if not daemon.start():
            page.arm(False)
            code = daemon.process.returncode
            return ("silent", "ended with 0 before it was ready") if code == 0 else daemon.verdict(code)
        page.arm(self._armed == "ready")
        daemon.await_subscription()
        if self._phase:
            self._phase(daemon)
        page.arm(False)
        self._prove(daemon)
        page.arm(self._armed == "end")
        return daemon.end()

    def _prove(self, daemon):
        """Whatever failed, the daemon now loads a map, is told a pose, and matches."""
        daemon.request("start")
        daemon.request("load_map", path=str(daemon.inputs.points))
        daemon.await_map()
        for _ in range(20):
            daemon.request("initial_pose", pose=list(daemon.inputs.pose))
            daemon.scan()
            if not daemon.lives() or daemon.answers[len(daemon.sent) - 1][0] == "converged":
                return
        raise Defect("unanswered", f"no scan converges any more: {daemon.answers[len(daemon.sent) - 1]}")


def phase_scan(daemon):
    daemon.scan(3)
    daemon.send(daemon.sent[-1][:100])  # a truncated scan
    daemon.send(msgpack.packb({"v": 1, "type": "gnss", "stamp_ns": daemon.stamp_ns, "frame_id": "map", "position": [0.0, 0.0, 0.0]}))


def phase_record(daemon):
    daemon.request("start_recording", path="live.bag")
    daemon.scan(2)
    daemon.request("stop_recording")


def phase_small_record(daemon):
    daemon.request("start_recording", path="live.bag")
    daemon.scan(2, points=10)
    daemon.request("stop_recording")


def phase_control(daemon):
    for op in ("hello", "status", "stop", "start", "timings", "search"):
        daemon.request(op)
    daemon.request("initial_pose", pose=list(daemon.inputs.pose))
    daemon.request("localize", position=list(daemon.inputs.pose[:3]), deviation=[1.0, 1.0, 1.0])
    daemon.scan()
    daemon.request("cancel_search")
    daemon.request("load_map")  # without its argument


def phase_reload(daemon):
    daemon.write_config(15000)
    daemon.request("reload")
    daemon.scan()
    daemon.write_config(20000)
    daemon.process.send_signal(signal.SIGHUP)
    daemon.request("status")
    daemon.scan()


def phase_map(daemon):
    for path in (daemon.inputs.compiled, daemon.inputs.tiles, daemon.inputs.points):
        daemon.request("load_map", path=str(path))
        daemon.await_map()
        daemon.scan()
    daemon.request("load_tile", path=str(daemon.inputs.tile))
    daemon.request("unload_tile", path=str(daemon.inputs.tile))
    daemon.request("unload_map")
    daemon.await_map()
    daemon.scan()


LIVES = [
    Live("live start", armed="start"), Live("live scan", phase_scan), Live("live record", phase_record),
    Live("live control", phase_control), Live("live reload", phase_reload), Live("live map", phase_map), Live("live end", armed="end"),
]
SMALL_RECORD = Live("small record", phase_small_record)


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    pathlib.Path(folder).mkdir(parents=True)
    return folder
