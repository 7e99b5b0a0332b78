"""Records of a large bag by their headers, without reading the rest (src/io/include/ndt_io/bag.h); single messages of it."""
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._extras import need

MAGIC, VERSION = b"NDTBAG\r\n", 1
SCAN, TRUTH, POINTS = 1, 4, 11  # numbers of types (ndt_proto/message.h)
MAX_PAYLOAD = 1 << 28  # bytes
FILE_HEADER = struct.Struct("<8sII")
RECORD_HEADER, CRC_SIZE = struct.Struct("<IIq"), 4
_FRAME = RECORD_HEADER.size + CRC_SIZE  # bytes of a record without a payload
_BLOCK = 4096  # bytes read at once: short records share one reading, long ones cost one each
_HOLE = bytes(_FRAME)  # where a file was never written: no record, its check sum would not be 0


class Records:
    """Iterator over the whole records of an open bag: (type, receive time [ns], offset of the payload, its length, link).

    link: 20 bytes, the check sum of the record before (of the first one: the file's last word before it) and the header. Payloads
    are not read, so damage within one is not seen. After the last record `end` is the offset behind it, and `damage` the reason why
    the bag ends early ("": it does not)."""

    def __init__(self, handle: int):
        """ValueError: not a bag."""
        self.handle = handle
        self.size = os.fstat(handle).st_size
        self.end = FILE_HEADER.size
        self.damage = ""
        head = os.pread(handle, FILE_HEADER.size, 0)
        if len(head) < FILE_HEADER.size:
            raise ValueError(f"not a bag: {len(head)} bytes, the header alone has {FILE_HEADER.size}" if head else "empty")
        if not head.startswith(MAGIC):
            raise ValueError("not a bag: does not begin with NDTBAG")
        _, version, reserved = FILE_HEADER.unpack(head)
        if version != VERSION or reserved:
            raise ValueError(f"bag version {version} (reserved {reserved}); this program reads version {VERSION}")

    def __iter__(self) -> "Iterator[tuple[int, int, int, int, bytes]]":
        at, size, unpack = self.end, self.size, RECORD_HEADER.unpack_from
        block, begin = b"", at
        while at + _FRAME <= size:
            local = at - begin
            if local + _FRAME > len(block):
                begin = at - CRC_SIZE
                block, local = os.pread(self.handle, _BLOCK, begin), CRC_SIZE
                if len(block) < CRC_SIZE + _FRAME:
                    break  # somebody cuts the file off meanwhile
            kind, length, time_ns = unpack(block, local)
            end = at + _FRAME + length
            if length > MAX_PAYLOAD or end > size or (not length and block[local:local + _FRAME] == _HOLE):
                break
            yield kind, time_ns, at + RECORD_HEADER.size, length, block[local - CRC_SIZE:local + RECORD_HEADER.size]
            at = self.end = end
        if at < size:
            self.damage = f"truncated or damaged after byte {at} of {size}"


def messages(path: Any, kind: int) -> "Iterator[dict[str, Any]]":
    """The messages of one type, in order, up to the end or to the first record that is damaged. A file that is no bag has none.

    OSError, MissingPackage."""
    unpack = need("msgpack", "report").unpackb
    with Path(path).open("rb") as stream:
        try:
            records = Records(stream.fileno())
        except ValueError:
            return
        for found, _, begin, length, _ in records:
            if found == kind:
                try:
                    message = unpack(os.pread(records.handle, length, begin), max_bin_len=length)
                except Exception:  # msgpack has no common base of what it raises
                    return
                if not isinstance(message, dict):
                    return
                yield message


def truth(path: Any) -> "tuple[np.ndarray, np.ndarray]":
    """Ground truth of a bag: stamps (K,) int64 [ns] and poses (K, 7), T_map_base."""
    stamps, poses = [], []
    for message in messages(path, TRUTH):
        stamp, pose = message.get("stamp_ns"), message.get("pose")
        is_pose = isinstance(pose, list) and len(pose) == 7 and all(isinstance(one, (int, float)) for one in pose)
        if is_pose and isinstance(stamp, int) and abs(stamp) < 1 << 62:
            stamps.append(stamp)
            poses.append(pose)
    found = np.array(poses, np.float64).reshape(-1, 7)
    with np.errstate(invalid="ignore", over="ignore"):
        good = (np.abs(found) <= 1e8).all(axis=1) & (np.abs(np.linalg.norm(found[:, 3:], axis=1) - 1) < 0.01)
    return np.array(stamps, np.int64)[good], found[good]


def points(message: "dict[str, Any]") -> np.ndarray:
    """(K, 3) float64 [m]: the points of a message `points` or `scan` in its frame; ValueError where it has none."""
    try:
        step, count = int(message["point_step"]), int(message["count"])
        raw = np.frombuffer(message["data"], np.uint8)[:count * step].reshape(count, step)
        offsets = {name: (offset, kind) for name, offset, kind, _ in message["fields"]}
        out = np.empty((count, 3))
        for axis, name in enumerate("xyz"):
            offset, kind = offsets[name]
            dtype = {7: "<f4", 8: "<f8"}[kind]
            out[:, axis] = np.ascontiguousarray(raw[:, offset:offset + int(dtype[-1])]).view(dtype)[:, 0]
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise ValueError(f"not a cloud: {error}") from None
    return out[np.isfinite(out).all(axis=1)]
