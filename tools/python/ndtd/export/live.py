"""What a running ndtd publishes, passed on to viewers; the commands are ndt-foxglove and ndt-rerun."""
import argparse
import asyncio
import threading
from collections import OrderedDict
from typing import Callable, NamedTuple, Optional, Protocol

import numpy as np

from .._arguments import CommandError, Parser, UsageError, add_version, finish
from .._extras import need
from ..client import AsyncClient
from ..cloud import Cloud
from ..georeference import Projector
from .clouds import read_map
from .result_lines import ResultLine, from_message

KEPT_STAMPS = 64  # of results, for the points that come after them


class Names(NamedTuple):
    """Frames."""

    map: str
    base: str


class Server(Protocol):
    """Where viewers connect."""

    joined: threading.Event  # is set when a viewer needs what is sent once
    address: str  # that viewers open

    def mounts(self, stamp_ns: int, mounts: "dict[str, np.ndarray]") -> None: ...

    def map(self, stamp_ns: int, cloud: Cloud) -> None: ...

    def add(self, result: ResultLine) -> None: ...

    def scan_of_base(self, stamp_ns: int, cloud: Cloud) -> None: ...

    def close(self) -> None: ...


MakeServer = Callable[["tuple[str, int]", Names, np.ndarray, Optional[Projector]], Server]


def parser(prog: str, viewer: str, port: int, epilog: str) -> argparse.ArgumentParser:
    """The command line."""
    out = Parser(prog=prog, description=f"Shows a running ndtd in {viewer}.", formatter_class=argparse.RawDescriptionHelpFormatter, epilog=epilog)
    add_version(out)
    out.add_argument("--listen", default=f"127.0.0.1:{port}", metavar="ADDRESS:PORT",
                     help=f"where viewers connect; port 0: any (default: 127.0.0.1:{port})")
    out.add_argument("--poses", metavar="ENDPOINT", help="the poses socket of the daemon (default: that of this machine)")
    out.add_argument("--control", metavar="ENDPOINT", help="its control socket (default: that of this machine)")
    out.add_argument("--map", metavar="MAP", help="map to show: a cloud or a folder of tiles; and its projector")
    out.add_argument("--map-points", type=int, default=500_000, metavar="N", help="at most N points of it (default: 500000)")
    out.add_argument("--timeout", type=float, default=10.0, metavar="S", help="wait so long for the daemon (default: 10)")
    out.add_argument("--map-frame", default="map", metavar="NAME", help="(default: map)")
    out.add_argument("--base-frame", default="base_link", metavar="NAME", help="(default: base_link)")
    return out


def read_listen(text: str) -> "tuple[str, int]":
    """ADDRESS:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"--listen: '{text}' is not ADDRESS:PORT")
    return host, int(port)


def cannot_listen(host: str, port: int, reason: object) -> CommandError:
    """For a port that is in use, or an address that is not of this machine."""
    text = f"--listen {host}:{port}: {' '.join(str(reason).split())}"
    is_used = "in use" in text.lower() and port < 65535
    return CommandError(f"{text}; another port, as --listen {host}:{port + 1}" if is_used else text)


class Show:
    """Passes what a daemon publishes on to viewers."""

    def __init__(self, server: Server, map_cloud: Optional[Cloud]):
        self.server, self.map_cloud = server, map_cloud
        self.stamps: "OrderedDict[int, int]" = OrderedDict()  # seq: stamp of its result
        self.mounts: "dict[str, list[float]]" = {}
        self.newest_ns = 0

    def add(self, result: ResultLine) -> None:
        """A result: its pose where it is trusted, its numbers in any case."""
        self.newest_ns = max(self.newest_ns, result.stamp_ns)
        if result.seq is not None and result.is_trusted:
            self.stamps[result.seq] = result.stamp_ns
            if len(self.stamps) > KEPT_STAMPS:
                self.stamps.popitem(last=False)
        if result.sensor and result.T_base_sensor is not None and self.mounts.get(result.sensor) != result.T_base_sensor.tolist():
            self.mounts[result.sensor] = result.T_base_sensor.tolist()
            self.server.mounts(result.stamp_ns, {result.sensor: result.T_base_sensor})
        if not result.is_trusted:
            result.pose = None
        self.server.add(result)

    async def results(self, daemon: AsyncClient) -> None:
        """Every result."""
        async for message in daemon.results():
            self.add(from_message(message))

    async def scans(self, daemon: AsyncClient) -> None:
        """The points of scans with a trusted pose, in the frame of the base: the pose of the same stamp lays them on the map."""
        async for message in daemon.points():
            stamp_ns = self.stamps.get(message["seq"])
            if stamp_ns is not None:
                self.server.scan_of_base(stamp_ns, Cloud(message["points"], message["intensity"]))

    async def once(self) -> None:
        """What does not change, for each viewer that joins."""
        while True:
            if self.newest_ns > 0 and self.server.joined.is_set():
                self.server.joined.clear()
                self.server.mounts(self.newest_ns, {name: np.array(pose) for name, pose in self.mounts.items()})
                if self.map_cloud is not None:
                    self.server.map(self.newest_ns, self.map_cloud)
            await asyncio.sleep(0.2)


async def serve(args: argparse.Namespace, prog: str, make_server: MakeServer) -> None:
    """Until it is stopped."""
    listen = read_listen(args.listen)
    if args.map_points < 1:
        raise UsageError(f"--map-points: {args.map_points} is not a number of points")
    cloud = read_map(args.map, args.map_points) if args.map else None
    origin_m = np.round(np.median(cloud.points, axis=0)) if cloud is not None and len(cloud.points) else np.zeros(3)
    async with AsyncClient(poses=args.poses, control=args.control) as daemon:
        await daemon.request("hello", args.timeout)
        server = make_server(listen, Names(args.map_frame, args.base_frame), origin_m, Projector.find(args.map) if args.map else None)
        print(f"{prog}: {server.address}", flush=True)
        show = Show(server, cloud)
        try:
            await asyncio.gather(show.results(daemon), show.scans(daemon), show.once())
        finally:
            server.close()


def run(args: argparse.Namespace, prog: str, module: str, extra: str, make_server: MakeServer) -> int:
    """The exit code of a command; module: the package of the viewer, which the extra brings."""

    def work() -> None:
        need(module, extra)
        try:
            asyncio.run(serve(args, prog, make_server))
        except TimeoutError as error:
            raise CommandError(str(error)) from None

    return finish(prog, work, "stopped")
