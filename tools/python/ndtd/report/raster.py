"""Clouds from above as pictures: counted and drawn by numpy, since a million points take matplotlib seconds. PNG files of a palette."""
import base64
import struct
import zlib
from typing import NamedTuple

import numpy as np

MAP_RGB, BEFORE_RGB, AFTER_RGB = (124, 133, 145), (222, 105, 20), (0, 124, 196)  # on light and on dark paper
MAP_SHADES = 12
SPARSE = 0.3  # part of the pixels that have a neighbour
_BEFORE, _AFTER = MAP_SHADES + 1, MAP_SHADES + 2


class Box(NamedTuple):
    """A rectangle of the map [m], seen from above: x to the right, y up."""

    x: float
    y: float
    width: float
    height: float

    def holds(self, points: np.ndarray) -> np.ndarray:
        """(N,) bool of points (N, 2 or 3)."""
        x, y = points[:, 0], points[:, 1]
        inside: np.ndarray = (x >= self.x) & (x < self.x + self.width) & (y >= self.y) & (y < self.y + self.height)
        return inside

    @staticmethod
    def around(centre: np.ndarray, width: float, height: float) -> "Box":
        return Box(float(centre[0]) - width / 2, float(centre[1]) - height / 2, width, height)


def counts(points: np.ndarray, box: Box, columns: int, rows: int) -> np.ndarray:
    """(rows, columns): points (N, 2 or 3) per pixel; the first row is the upper one."""
    points = points[box.holds(points)]
    px = np.minimum(((points[:, 0] - box.x) * (columns / box.width)).astype(int), columns - 1)
    py = np.minimum(((points[:, 1] - box.y) * (rows / box.height)).astype(int), rows - 1)
    return np.bincount((rows - 1 - py) * columns + px, minlength=rows * columns).reshape(rows, columns)


def shades(density: np.ndarray) -> np.ndarray:
    """Counts (H, W) to 0 (nothing) .. MAP_SHADES (dense): logarithmic, dense at the 99.5th percentile of what is not empty."""
    occupied = density[density > 0]
    if len(occupied) == 0:
        return np.zeros(density.shape, np.uint8)
    top = np.log1p(max(float(np.percentile(occupied, 99.5)), 1.0))
    level = np.ceil(np.log1p(density) / top * MAP_SHADES)
    out: np.ndarray = np.clip(level, 0, MAP_SHADES).astype(np.uint8)
    return out


def map_rgba(density: np.ndarray) -> np.ndarray:
    """(H, W, 4) uint8: grey, the denser the more opaque, for light and dark paper."""
    level, least = shades(density), 60
    hit = level > 0
    if hit.any() and (hit[:, 1:] & hit[:, :-1]).sum() < SPARSE * hit.sum():  # single points: larger, to be seen
        level, least = thicken(level, 1), 40
    out: np.ndarray = _palette(least)[level]
    return out


def _palette(least: int) -> np.ndarray:
    """RGBA of the shades, the lightest with this alpha, and of the points of a scan."""
    alpha = np.concatenate([[0], np.linspace(least, 255, MAP_SHADES)]).astype(np.uint8)
    greys = np.array([(*MAP_RGB, a) for a in alpha], np.uint8)
    return np.concatenate([greys, np.array([(*BEFORE_RGB, 255), (*AFTER_RGB, 255)], np.uint8)])


def thicken(image: np.ndarray, radius: int) -> np.ndarray:
    """Each pixel becomes a square of 2 radius + 1 pixels; the largest wins."""
    out = image
    for axis in (0, 1):
        padded = out
        for shift in range(1, radius + 1):
            for sign in (-shift, shift):
                moved = np.roll(out, sign, axis=axis)
                edge = [slice(None), slice(None)]
                edge[axis] = slice(0, shift) if sign > 0 else slice(-shift, None)
                moved[tuple(edge)] = 0
                padded = np.maximum(padded, moved)
        out = padded
    return out


def picture(ground: np.ndarray, scan: np.ndarray, box: Box, is_after: bool, dot: int) -> bytes:
    """PNG: the map as shades (H, W), the points of the scan (N, 3) on it as dots of 2 dot + 1 pixels."""
    rows, columns = ground.shape
    hit = thicken((counts(scan, box, columns, rows) > 0).astype(np.uint8), dot)
    return png(np.where(hit > 0, np.uint8(_AFTER if is_after else _BEFORE), ground), _palette(70))


def png(pixels: np.ndarray, palette: np.ndarray) -> bytes:
    """A PNG file of indices (H, W) uint8 into a palette (K, 4) of RGBA."""
    height, width = pixels.shape
    bits = 4 if len(palette) <= 16 else 8
    if bits == 4:
        even = np.pad(pixels, ((0, 0), (0, width % 2)))
        pixels = (even[:, 0::2] << 4 | even[:, 1::2]).astype(np.uint8)
    rows = np.zeros((height, pixels.shape[1] + 1), np.uint8)  # each begins with its filter: none
    rows[:, 1:] = pixels
    parts = ((b"IHDR", struct.pack(">IIBBBBB", width, height, bits, 3, 0, 0, 0)), (b"PLTE", palette[:, :3].tobytes()),
             (b"tRNS", palette[:, 3].tobytes()), (b"IDAT", zlib.compress(rows.tobytes(), 4)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts)


def data_url(file: bytes) -> str:
    """The PNG file as the source of an image."""
    return "data:image/png;base64," + base64.b64encode(file).decode()
