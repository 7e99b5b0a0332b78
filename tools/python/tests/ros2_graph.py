"""ndtd, the bridge, a driver and a listener as processes; and a measurement of the way of a scan to its pose.

    ros2_graph.py DRIVE.bag MAP.pcd --scans 600     # prints poses, losses, and milliseconds from publish to pose
"""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from ros_processes import Processes, drive_arguments, initial_pose

PEER = Path(__file__).with_name("ros2_peer.py")

# The loopback alone, without multicast: nothing of it reaches the network.
CONFIGURATION = ("<CycloneDDS><Domain id='any'><General><Interfaces><NetworkInterface address='127.0.0.1' multicast='false'/>"
                 "</Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>"
                 "<MaxAutoParticipantIndex>20</MaxAutoParticipantIndex><Peers><Peer address='127.0.0.1'/></Peers></Discovery>"
                 "</Domain></CycloneDDS>")


def _free_domain():
    """A DDS domain that no other test on this machine uses, and the socket that keeps it: DDS itself needs UDP ports only."""
    for domain in range(10, 100):  # beyond 101 its ports are those of clients
        keeper = socket.socket()
        try:
            keeper.bind(("127.0.0.1", 7400 + 250 * domain))
            return domain, keeper
        except OSError:
            keeper.close()
    raise OSError("every DDS domain from 10 to 99 is in use")


class Graph(Processes):
    """Processes in a DDS domain of their own. folder: for sockets, logs and CDR files."""

    bridge_module = "ndtd.ndt_ros2_bridge"

    def __init__(self, ndtd, map_path, folder, deskew="time", dds=""):
        self.domain, self._domain_keeper = _free_domain()
        self.configuration = CONFIGURATION + ("," + dds if dds else "")
        super().__init__(ndtd, map_path, folder, deskew, ROS_DOMAIN_ID=str(self.domain), CYCLONEDDS_URI=self.configuration,
                         ROS_LOCALHOST_ONLY="0")

    def start_listener(self):
        self.start("listener", sys.executable, PEER, "listen")
        self.wait_for("listener", "ready", 20)

    def start_driver(self, *options):
        self.start("driver", sys.executable, PEER, "publish", self.folder / "scans", *options)

    def close(self):
        super().close()
        self._domain_keeper.close()

    def published(self):
        """stamp_ns: monotonic_ns."""
        return {int(stamp): int(at) for stamp, at in (line.split() for line in self.lines("driver"))}

    def delays_ms(self):
        """Delay of each pose, from just before the cloud is written to DDS to when the pose was taken from it."""
        published = self.published()
        return np.array([(at - published[stamp]) * 1e-6 for stamp, at, _ in self.received("pose") if stamp in published])


def pack(bag, folder, limit):
    command = [sys.executable, str(PEER), "pack", str(bag), str(folder), "--limit", str(limit)]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main():
    p = drive_arguments(__doc__)
    p.add_argument("--bridge", nargs="*", default=["--scan", "/points"], help="options of the bridge")
    p.add_argument("--restart", choices=("bridge", "ndtd", "driver"), help="kill and start it again in the middle")
    p.add_argument("--down", type=float, default=1.0, metavar="S", help="time between the two")
    p.add_argument("--dds", default="", metavar="XML", help="more configuration of Cyclone DDS")
    p.add_argument("--folder", type=Path, help="keeps the logs, and the packed scans for the next run")
    args = p.parse_args()
    args.load = os.getloadavg()[0]
    folder = args.folder or Path(tempfile.mkdtemp(prefix="ros2_graph_"))
    for old in list(folder.glob("*.out")) + list(folder.glob("*.err")):
        old.unlink()
    if not (folder / "scans").exists():
        pack(args.bag, folder / "scans", args.scans)
    graph = Graph(args.ndtd, args.map, folder, dds=args.dds)
    try:
        run(graph, args)
    finally:
        graph.close()
    return report(graph, args)


def run(graph, args):
    graph.start_listener()
    graph.start_ndtd("--initial-pose", initial_pose(args.bag))
    graph.start_bridge(*args.bridge)
    time.sleep(3.0)
    half = args.scans // 2 if args.restart == "driver" else args.scans
    graph.start_driver("--rate", args.rate, "--limit", half)
    if args.restart in ("bridge", "ndtd"):
        time.sleep(args.scans / args.rate / 2)
        graph.stop(args.restart, signal.SIGKILL)
        time.sleep(args.down)
        {"bridge": lambda: graph.start_bridge(*args.bridge), "ndtd": graph.start_ndtd}[args.restart]()
    graph.finish("driver", 15 + 1.2 * args.scans / args.rate)
    if args.restart == "driver":
        time.sleep(args.down)
        graph.start_driver("--rate", args.rate, "--skip", half, "--limit", args.scans - half)
        graph.finish("driver", 60 + args.scans / args.rate)
    time.sleep(0.5)
    graph.stop("bridge")


def report(graph, args):
    published, poses = graph.published(), graph.received("pose")
    stamps = [stamp for stamp, _, _ in poses]
    missing = [i for i, stamp in enumerate(sorted(published)) if stamp not in set(stamps)]
    delays = graph.delays_ms()
    print(f"load {args.load:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores")
    print(f"{len(published)} scans in, {len(poses)} poses out, {len(stamps) - len(set(stamps))} twice, missing: {missing}")
    if len(delays):
        print("publish to pose [ms]: " + ", ".join(f"{name} {np.percentile(delays, q):.1f}" for name, q in
                                                    (("p50", 50), ("p90", 90), ("p99", 99), ("max", 100))))
    print("\n".join(graph.lines("bridge", "err")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
