"""ndt-rerun: shows a running ndtd in Rerun: poses, scans, map, covariance, states, log and numbers for plots, over gRPC."""
import argparse
import socket
import sys
import threading
from typing import Any, Optional

import numpy as np

from .cloud import Cloud
from .export import live
from .export.rerun_rrd import SCAN_RGB, RerunWriter
from .georeference import Projector


class RerunServer(RerunWriter):
    """The entities of ndt-export's .rrd, served. listen: host and port."""

    results_at_once = 1

    def __init__(self, listen: "tuple[str, int]", names: live.Names, origin_m: np.ndarray, projector: Optional[Projector]):
        self.joined = threading.Event()
        self.joined.set()  # once is enough: the server keeps what is static for viewers that join later
        self.address = ""
        super().__init__(listen, names, origin_m, projector)

    def _open_sink(self, path: Any) -> None:
        host, port = path
        try:  # what the sink does not report: it listens in a thread of its own
            with socket.create_server((host, port)) as free:
                host, port = free.getsockname()
        except OSError as error:
            raise live.cannot_listen(host, port, str(error.strerror).split(" (")[0]) from None
        sink = self._rr.GrpcServerSink(host, port)
        self._stream.set_sinks(sink, default_blueprint=self._blueprint())
        self.address = sink.uri

    def mounts(self, stamp_ns: int, mounts: "dict[str, np.ndarray]") -> None:
        """The newest ones alone, static: what has a stamp is dropped when the memory for late viewers is full."""
        for name, pose in mounts.items():
            self._log([self._names.map, self._names.base, name], self._transform(pose), None, self._rr.TransformAxes3D(0.5))

    def scan_of_base(self, stamp_ns: int, cloud: Cloud) -> None:
        self._cloud([self._names.map, self._names.base, "scan"], stamp_ns, cloud, 0.0, SCAN_RGB, 2.0)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    return live.parser("ndt-rerun", "Rerun", 9877, """
Viewer: `rerun rerun+http://127.0.0.1:9877/proxy`. Entities: map, position_m, fix, log, result, state, outcome, as ndt-export
writes them. A viewer that joins later gets what the last GiB of memory has, and map and sensors in any case. Whoever reaches
the port sees and may send data: an address that other machines reach has no password.""")


def command(arguments: "Optional[list[str]]" = None) -> int:
    """The console command."""
    return live.run(parser().parse_args(arguments), "ndt-rerun", "rerun", "rerun", RerunServer)


if __name__ == "__main__":
    sys.exit(command())
