"""Contents of a bag, told by the headers of its records: 1 TB costs what its headers cost."""
import hashlib
import os
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..report.bag_records import CRC_SIZE, SCAN, Records
from .run_folder import FleetError

MAX_SCANS = 1 << 24  # of a bag: nine days at 20 Hz
_LINKS = 4096  # hashed at once


@dataclass(frozen=True)
class Index:
    """The whole records of a bag. hash: of their headers and check sums, which stand for the payloads: those are not read."""

    hash: str
    times_ns: np.ndarray  # (K,) int64: receive times of the scans, in the order of the bag
    begin_ns: int  # first and last of them
    end_ns: int
    damage: str  # why the bag ends early; "": it does not

    @property
    def scans(self) -> int:
        return len(self.times_ns)


def read(path: Any) -> Index:
    """The index of a bag.bin. A record that is cut off, and what follows it, is left out and told as damage.

    FleetError: not a bag, or none with a scan. OSError."""
    if not Path(path).is_file():
        raise FleetError(f"{path}: not a file")
    with open(path, "rb", buffering=0) as stream:
        try:
            records = Records(stream.fileno())
        except ValueError as error:
            raise FleetError(f"{path}: {error}") from None
        content, times_ns = _walk(records, path)
        content.update(os.pread(stream.fileno(), CRC_SIZE, records.end - CRC_SIZE))
    if not times_ns:
        raise FleetError(f"{path}: no scan in it" + (f": {records.damage}" if records.damage else ""))
    return Index(content.hexdigest(), np.array(times_ns, np.int64), min(times_ns), max(times_ns), records.damage)


def _walk(records: Records, path: Any) -> "tuple[Any, array[int]]":
    """The hash without the last check sum, and the receive times of the scans."""
    content = hashlib.blake2b(digest_size=16)
    times_ns, links = array("q"), []
    for kind, time_ns, _, _, link in records:
        links.append(link)
        if kind == SCAN:
            times_ns.append(time_ns)
        if len(links) == _LINKS:
            content.update(b"".join(links))
            links.clear()
            if len(times_ns) > MAX_SCANS:
                raise FleetError(f"{path}: more than {MAX_SCANS} scans, the limit of a bag: cut it (ndt-bag cut)")
    content.update(b"".join(links))
    return content, times_ns
