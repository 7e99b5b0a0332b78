"""Single messages of a large bag, without reading the rest: the records are walked by their headers (src/io/include/ndt_io/bag.h)."""
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._extras import need

MAGIC = b"NDTBAG\r\n"
TRUTH, POINTS = 4, 11  # numbers of types (ndt_proto/message.h)
_FILE_HEADER, _RECORD_HEADER, _CRC = 16, struct.Struct("<IIq"), 4


def messages(path: Any, kind: int) -> "Iterator[dict[str, Any]]":
    """The messages of one type, in order, up to the end or to the first record that is damaged. A file that is no bag has none.

    OSError, MissingPackage."""
    unpack = need("msgpack", "report").unpackb
    with Path(path).open("rb") as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at, size = _FILE_HEADER, len(data)
            while at + _RECORD_HEADER.size <= size:
                found, length, _ = _RECORD_HEADER.unpack_from(data, at)
                begin, end = at + _RECORD_HEADER.size, at + _RECORD_HEADER.size + length
                if end + _CRC > size:
                    return
                if found == kind:
                    try:
                        message = unpack(data[begin:end], max_bin_len=length)
                    except Exception:  # msgpack has no common base of what it raises
                        return
                    if not isinstance(message, dict):
                        return
                    yield message
                at = end + _CRC


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
