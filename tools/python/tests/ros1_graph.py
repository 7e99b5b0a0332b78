"""A real roscore, rosbag play, the bridge, ndtd and a listener as processes; and a measurement of the way of a scan to its pose.

    ros1_graph.py DRIVE.bag MAP.pcd --scans 600     # prints poses, losses, and milliseconds from publish to pose
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import xmlrpc.client
from pathlib import Path

import numpy as np
from ros_processes import Processes, drive_arguments, initial_pose

PEER = Path(__file__).with_name("ros1_peer.py")
PYTHON = "/usr/bin/python3"  # of the system, which has rospy


def missing():
    """What of ROS 1 is not here; empty: all of it is."""
    programs = [name for name in ("roscore", "rosbag") if shutil.which(name) is None]
    modules = "rospy", "tf2_ros", "sensor_msgs.msg", "nav_msgs.msg", "diagnostic_msgs.msg"
    if not programs and subprocess.run([PYTHON, "-c", f"import {', '.join(modules)}"], env=of_system({**os.environ}),
                                       stderr=subprocess.DEVNULL).returncode:
        programs = [f"a module of {', '.join(modules)}"]
    return ", ".join(programs)


def of_system(environment):
    """Without what belongs to the Python of the tests."""
    return {name: value for name, value in environment.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


class Graph(Processes):
    """Processes with a master of their own, which start_master starts."""

    bridge_module = "ndtd.ndt_ros1_bridge"

    def __init__(self, ndtd, map_path, folder, deskew="time"):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.master_uri = f"http://127.0.0.1:{self._port}"
        super().__init__(ndtd, map_path, folder, deskew, ROS_MASTER_URI=self.master_uri, ROS_IP="127.0.0.1",
                         ROS_HOME=str(folder), ROS_LOG_DIR=str(Path(folder) / "log"))

    def start_ndtd(self, *options):
        """With a budget that a machine full of other work keeps to."""
        super().start_ndtd("--set", "live.budget_ms=2000", *options)

    def start_ros(self, name, *command):
        """A program of the system."""
        environment = self.environment
        self.environment = of_system(environment)
        self.start(name, *command)
        self.environment = environment

    def start_master(self, **parameters):
        self.start_ros("roscore", "roscore", "-p", self._port)
        end = time.monotonic() + 60
        while not self.is_there():
            if time.monotonic() > end:
                raise TimeoutError(f"no roscore: {self.lines('roscore')[-3:]} {self.lines('roscore', 'err')[-3:]}")
            time.sleep(0.1)
        for name, value in parameters.items():
            self.master().setParam("/test", f"/{name}", value)

    def master(self):
        return xmlrpc.client.ServerProxy(self.master_uri)

    def is_there(self):
        try:
            return self.master().getPid("/test")[0] == 1
        except OSError:
            return False

    def start_peer(self, name, *words):
        self.start_ros(name, PYTHON, PEER, *words)

    def start_listener(self):
        self.start_peer("listener", "listen")
        self.wait_for("listener", "ready", 60)

    def play(self, bag, *options):
        """Plays a recording with its clock, as soon as all of its topics are read."""
        self.start_ros("play", "rosbag", "play", "--quiet", "--clock", "--wait-for-subscribers", bag, *options)

    def close(self):
        for name in [name for name in self._processes if name != "roscore"]:
            self.stop(name, signal.SIGKILL)
        self.stop("roscore")  # by itself it stops rosmaster and rosout
        super().close()


def pack(bag, folder, limit):
    """Scans of a bag as serialised PointCloud2, one file each."""
    import msgpack
    import recording_maker
    from ndtd import BagReader
    folder.mkdir(parents=True, exist_ok=True)
    make, count = recording_maker.Messages(is_ros1=True), 0
    for record in BagReader(str(bag)):
        if record.type == "scan" and count < limit:
            scan = msgpack.unpackb(record.payload)
            message = make.cloud(scan["stamp_ns"], scan["frame_id"], recording_maker.records_of(scan))
            (folder / f"{count:06d}.ros1").write_bytes(bytes(make.store.serialize_ros1(message, message.__msgtype__)))
            count += 1
    return count


def main():
    p = drive_arguments(__doc__)
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="ros1_graph_") as folder:
        pack(args.bag, Path(folder) / "scans", args.scans)
        load, graph = os.getloadavg()[0], Graph(args.ndtd, args.map, folder)
        try:
            graph.start_master()
            graph.start_listener()
            graph.start_ndtd("--initial-pose", initial_pose(args.bag), "--set", "live.budget_ms=auto")
            graph.start_bridge("--scan", "/points")
            time.sleep(3.0)
            graph.start_peer("driver", "publish", Path(folder) / "scans", "--rate", args.rate)
            graph.finish("driver", 60 + 1.2 * args.scans / args.rate)
            graph.stop("bridge")
            report(graph, load)
        finally:
            graph.close()


def report(graph, load):
    published = {int(stamp): int(at) for stamp, at in (line.split() for line in graph.lines("driver"))}
    poses = [(stamp, at) for stamp, at, _ in graph.received("pose") if stamp in published]
    delays_ms = np.array([(at - published[stamp]) * 1e-6 for stamp, at in poses])
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores")
    print(f"{len(published)} scans in, {len(poses)} poses out")
    print("publish to pose [ms]: " + ", ".join(f"{name} {np.percentile(delays_ms, q):.1f}" for name, q in
                                                (("p50", 50), ("p90", 90), ("p99", 99), ("max", 100))))
    print("\n".join(graph.lines("bridge", "err")))


if __name__ == "__main__":
    sys.exit(main())
