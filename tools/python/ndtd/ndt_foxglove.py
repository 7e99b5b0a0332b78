"""ndt-foxglove: shows a running ndtd in Foxglove: poses, scans, map, log and numbers for plots, over a WebSocket."""
import argparse
import sys
import threading
from typing import Any, Optional

import numpy as np

from .cloud import Cloud
from .export import live
from .export.foxglove_mcap import FoxgloveWriter
from .georeference import Projector

TOPICS = {"/tf": "FrameTransforms", "/pose": "PoseInFrame", "/scan": "PointCloud", "/map": "PointCloud", "/log": "Log", "/result": "ndtd.Result"}


class FoxgloveServer(FoxgloveWriter):
    """The topics of ndt-export's MCAP, served. listen: host and port."""

    def __init__(self, listen: "tuple[str, int]", names: live.Names, origin_m: np.ndarray, projector: Optional[Projector]):
        self.joined = threading.Event()
        super().__init__(listen, names, origin_m, projector)
        for topic, schema in TOPICS.items():  # what viewers can choose from at once
            self._channel(topic, schema)
        self.address = f"ws://{listen[0]}:{self._sink.port}"

    def _open_sink(self, path: "tuple[str, int]") -> Any:
        host, port = path
        try:
            return self._foxglove.start_server(name="ndtd", host=host, port=port, context=self._context, server_listener=self)
        except RuntimeError as error:
            raise live.cannot_listen(host, port, error) from None

    def on_subscribe(self, _client: Any, channel: Any) -> None:
        """Of foxglove's ServerListener: a viewer that joins late gets the map and the sensors as well."""
        if channel.topic in ("/map", "/tf"):
            self.joined.set()

    def scan_of_base(self, stamp_ns: int, cloud: Cloud) -> None:
        self._cloud("/scan", stamp_ns, cloud, self._names.base)

    def close(self) -> None:
        self._sink.stop()


def parser() -> argparse.ArgumentParser:
    """The command line."""
    return live.parser("ndt-foxglove", "Foxglove", 8765, """
In Foxglove: Open connection, Foxglove WebSocket, ws://127.0.0.1:8765. Topics: /pose /tf /scan /map /fix /log /result, as
ndt-export writes them. Whoever reaches the port sees them: an address that other machines reach has no password.""")


def command(arguments: "Optional[list[str]]" = None) -> int:
    """The console command."""
    return live.run(parser().parse_args(arguments), "ndt-foxglove", "foxglove", "foxglove", FoxgloveServer)


if __name__ == "__main__":
    sys.exit(command())
