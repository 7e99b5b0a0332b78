"""The overlay of a map: for each of its clouds that changes a file NAME.change, map_overlay.yaml, by which ndtd reads it as a map,
and overlay.json about all of it.

NAME.change, little endian: magic, id of the overlay, points and checksum of the cloud that it is for, numbers of removed and of
added points; the places of the removed points in the cloud (uint32, ascending); the added ones (x y z, doubles, map coordinates).
The id is the beginning of the SHA-256 of all names and files, with the id in them zero.
"""
import hashlib
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._arguments import CommandError

MAGIC, HEAD = b"NDTDCHG1", struct.Struct("<8sQQQQQ")
FORMAT, VERSION, SUFFIX, ABOUT, HEADER = "ndtd-overlay", 1, ".change", "overlay.json", "map_overlay.yaml"


class OverlayError(CommandError):
    """A folder that is no overlay, or one of another map; one line for the user."""


@dataclass
class Change:
    """Changes of one cloud."""

    removed: np.ndarray  # places in the cloud, ascending
    added_m: np.ndarray  # (N, 3) in map coordinates, in the order in which they follow
    base_points: int = 0  # of the cloud
    base_sum: int = 0

    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return len(self.removed) == 0 and len(self.added_m) == 0

    def bytes(self, overlay_id: int) -> bytes:
        """The file."""
        head = HEAD.pack(MAGIC, overlay_id, self.base_points, self.base_sum, len(self.removed), len(self.added_m))
        return head + self.removed.astype("<u4").tobytes() + np.ascontiguousarray(self.added_m, "<f8").tobytes()


def id_of(changes: "dict[str, Change]") -> int:
    """The id of the overlay with these changes, by names of clouds."""
    digest = hashlib.sha256()
    for name in sorted(changes):
        digest.update(name.encode() + changes[name].bytes(0))
    return int.from_bytes(digest.digest()[:8], "big")


def write(folder: Path, place: str, changes: "dict[str, Change]", about: "dict[str, Any]") -> str:
    """Writes the files of an overlay of the map at `place` into a folder that is there; returns its id as text."""
    kept = {name: one for name, one in changes.items() if not one.is_empty()}
    number = id_of(kept)
    for name in sorted(kept):
        (folder / (name + SUFFIX)).write_bytes(kept[name].bytes(number))
    text = f"{number:016x}"
    (folder / HEADER).write_text(f"map: {json.dumps(place)}\noverlay_id: '{text}'\n", encoding="utf-8")
    whole = {"format": FORMAT, "version": VERSION, "overlay_id": text, "map": place, **about}
    (folder / ABOUT).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    return text


def read_about(folder: Any) -> "dict[str, Any]":
    """The content of overlay.json. OverlayError."""
    path = Path(folder) / ABOUT
    if not path.is_file():
        raise OverlayError(f"{folder}: no overlay: {ABOUT} is missing")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise OverlayError(f"{path}: is no JSON: {error}") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT or about.get("version") != VERSION:
        raise OverlayError(f"{path}: is no {FORMAT} of version {VERSION}")
    return about


def read_change(path: Path) -> "tuple[int, Change]":
    """The id in a file, and the change. OverlayError."""
    data = path.read_bytes()
    if len(data) < HEAD.size or data[:8] != MAGIC:
        raise OverlayError(f"{path}: is no change of a cloud")
    _, number, base_points, base_sum, removed, added = HEAD.unpack_from(data)
    if removed > base_points or len(data) != HEAD.size + 4 * removed + 24 * added:
        raise OverlayError(f"{path}: has {len(data)} bytes, which are not those of {removed} removed and {added} added points")
    places = np.frombuffer(data, "<u4", removed, HEAD.size).astype(np.int64)
    added_m = np.frombuffer(data, "<f8", 3 * added, HEAD.size + 4 * removed).reshape(-1, 3)
    if (np.diff(places) <= 0).any() or (removed and places[-1] >= base_points):
        raise OverlayError(f"{path}: the removed points are not ascending places in the cloud")
    if not np.isfinite(added_m).all():
        raise OverlayError(f"{path}: an added point is not finite")
    return number, Change(places, added_m, base_points, base_sum)


def read(folder: Any) -> "tuple[dict[str, Any], dict[str, Change]]":
    """overlay.json and the changes by names of clouds. OverlayError: a file is missing, damaged, or of another overlay."""
    about, changes = read_about(folder), {}
    for path in sorted(Path(folder).glob("*" + SUFFIX)):
        number, changes[path.name[:-len(SUFFIX)]] = read_change(path)
        if f"{number:016x}" != about.get("overlay_id"):
            raise OverlayError(f"{path}: is of the overlay {number:016x}, not of {about.get('overlay_id')}")
    if f"{id_of(changes):016x}" != about.get("overlay_id"):
        raise OverlayError(f"{folder}: its files are not those of the overlay {about.get('overlay_id')}")
    return about, changes
