"""ndt-foxglove: shows a running ndtd in Foxglove: poses, scans, map, log and numbers for plots, over a WebSocket."""
import argparse
import asyncio
import sys
import threading
from collections import OrderedDict
from typing import Any, NamedTuple, Optional

import numpy as np

from ._arguments import CommandError, Parser, UsageError, add_version, finish
from ._extras import need
from .client import AsyncClient
from .export.clouds import Cloud, read_map
from .export.foxglove_mcap import FoxgloveWriter
from .export.result_lines import ResultLine, from_message
from .georeference import Projector

KEPT_STAMPS = 64  # of results, for the points that come after them


class Names(NamedTuple):
    """Frames."""

    map: str
    base: str


TOPICS = {"/tf": "FrameTransforms", "/pose": "PoseInFrame", "/scan": "PointCloud", "/map": "PointCloud", "/log": "Log", "/result": "ndtd.Result"}


class FoxgloveServer(FoxgloveWriter):
    """The topics of ndt-export's MCAP, served. listen: host and port. `joined` is set when a viewer asks for what is sent once."""

    def __init__(self, listen: "tuple[str, int]", names: Names, origin_m: np.ndarray, projector: Optional[Projector]):
        self.joined = threading.Event()
        super().__init__(listen, names, origin_m, projector)
        for topic, schema in TOPICS.items():  # what viewers can choose from at once
            self._channel(topic, schema)

    def _open_sink(self, path: "tuple[str, int]") -> Any:
        host, port = path
        try:
            return self._foxglove.start_server(name="ndtd", host=host, port=port, context=self._context, server_listener=self)
        except RuntimeError as error:
            raise CommandError(f"{host}:{port}: {error}") from None

    def on_subscribe(self, _client: Any, channel: Any) -> None:
        """Of foxglove's ServerListener: a viewer that joins late gets the map and the sensors as well."""
        if channel.topic in ("/map", "/tf"):
            self.joined.set()

    def scan_of_base(self, stamp_ns: int, points: np.ndarray, intensity: Optional[np.ndarray]) -> None:
        """Points in the frame of the base, which the pose of the same stamp lays on the map."""
        self._cloud("/scan", stamp_ns, Cloud(points, intensity), self._names.base)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._sink.port)

    def close(self) -> None:
        self._sink.stop()


def parser() -> argparse.ArgumentParser:
    """The command line."""
    out = Parser(prog="ndt-foxglove", description="Shows a running ndtd in Foxglove.", formatter_class=argparse.RawDescriptionHelpFormatter, epilog="""
In Foxglove: Open connection, Foxglove WebSocket, ws://127.0.0.1:8765. Topics: /pose /tf /scan /map /fix /log /result, as
ndt-export writes them. Whoever reaches the port sees them: an address that other machines reach has no password.""")
    add_version(out)
    out.add_argument("--listen", default="127.0.0.1:8765", metavar="ADDRESS:PORT", help="where viewers connect; port 0: any (default: 127.0.0.1:8765)")
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


class Show:
    """Passes what a daemon publishes on to viewers."""

    def __init__(self, server: FoxgloveServer, map_cloud: Optional[Cloud]):
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
        """The points of scans with a trusted pose."""
        async for message in daemon.points():
            stamp_ns = self.stamps.get(message["seq"])
            if stamp_ns is not None:
                self.server.scan_of_base(stamp_ns, message["points"], message["intensity"])

    async def once(self) -> None:
        """What does not change, for each viewer that joins."""
        while True:
            if self.newest_ns > 0 and self.server.joined.is_set():
                self.server.joined.clear()
                self.server.mounts(self.newest_ns, {name: np.array(pose) for name, pose in self.mounts.items()})
                if self.map_cloud is not None:
                    self.server.map(self.newest_ns, self.map_cloud)
            await asyncio.sleep(0.2)


async def serve(args: argparse.Namespace) -> None:
    """Until it is stopped."""
    listen = read_listen(args.listen)
    if args.map_points < 1:
        raise UsageError(f"--map-points: {args.map_points} is not a number of points")
    cloud = read_map(args.map, args.map_points) if args.map else None
    origin_m = np.round(np.median(cloud.points, axis=0)) if cloud is not None and len(cloud.points) else np.zeros(3)
    async with AsyncClient(poses=args.poses, control=args.control) as daemon:
        await daemon.request("hello", args.timeout)
        server = FoxgloveServer(listen, Names(args.map_frame, args.base_frame), origin_m, Projector.find(args.map) if args.map else None)
        print(f"ndt-foxglove: ws://{listen[0]}:{server.port}", flush=True)
        show = Show(server, cloud)
        try:
            await asyncio.gather(show.results(daemon), show.scans(daemon), show.once())
        finally:
            server.close()


def command(arguments: "Optional[list[str]]" = None) -> int:
    """The console command."""
    args = parser().parse_args(arguments)

    def work() -> None:
        need("foxglove", "foxglove")
        try:
            asyncio.run(serve(args))
        except TimeoutError as error:
            raise CommandError(f"no ndtd: {error}") from None

    return finish("ndt-foxglove", work, "stopped")


if __name__ == "__main__":
    sys.exit(command())
