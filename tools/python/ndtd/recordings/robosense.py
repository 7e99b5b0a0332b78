"""Packets of RoboSense: RS-LiDAR-16 and 32, Bpearl, Helios and 16P, Ruby (RS-128) and Ruby Plus, Airy, M1, M2, E1.

From the user manuals (MSOP, DIFOP; big endian) and, for the firing times and the place of the lens, RoboSense's rs_driver. The spinning
ones tell the angles of their channels in packets of their own (DIFOP), about once a second; without one, a CSV `vertical,horizontal`
of each channel [deg] has them. M1, M2 and E1 tell directions with each point.
"""
from dataclasses import dataclass
from typing import List, Optional, Set, Tuple, Union

import numpy as np

from .packet_points import NS, Points, calendar_ns
from .points import PointError

DIFOP = b"\xa5\xff\x00\x5a\x11\x11\x55\x55"
DIFOP_BYTES = 1248
_OLD, _NEW, _SOLID = b"\x55\xaa\x05\x0a\x5a\xa5\x50\xa0", b"\x55\xaa\x05\x5a", b"\x55\xaa\x5a\xa5"
_GAP = 100  # steps of the azimuth above it [0.01 deg] are blind sectors
_US_BP3 = np.array([0, 2.56, 5.12, 7.68, 10.24, 12.8, 15.36, 17.92, 25.68, 28.24, 30.8, 33.36, 35.92, 38.48, 41.04, 43.6])
_US_32 = np.append(np.arange(15) * 2.88, 44.64)
_US_16P = np.array([0, 3.15, 6.3, 9.45, 13.26, 17.08, 20.56, 23.71, 26.53, 27.77, 31.49, 32.73, 36.46, 38.94, 41.42, 43.91])
_US_RUBY_PLUS = np.append(np.repeat([0, 1.13, 2.13, 3.26, 4.26, 5.38, 6.38, 7.51, 8.51, 10.01, 11.38, 13.31, 15.11, 17.04, 18.85, 21.14,
                                     23.31, 25.61, 27.78, 30.07, 32.24, 34.54, 36.7, 38.64, 40.44, 41.94, 43.3, 44.8, 46.17, 47.66, 49.03,
                                     50.53], [4] * 15 + [5] + [4] * 15 + [2]), 53.771)
# By the way an Airy is mounted, which its DIFOP tells: upright, on its side, Airy M.
_US_AIRY = [np.repeat(times, 8) for times in (
    np.array([0, 5.712, 12.376, 19.04, 25.704, 33.32, 41.888, 50.456, 59.024, 70.448, 81.872, 93.296]),
    np.array([0, 11.424, 22.848, 34.272, 45.696, 54.264, 62.832, 71.4, 79.016, 85.68, 92.344, 99.008]),
    np.array([0, 7.616, 16.184, 24.752, 33.32, 42.84, 52.36, 61.88, 71.4, 79.968, 88.536, 97.104]))]


@dataclass(frozen=True, eq=False)
class Spinning:
    """Layout and geometry of a model whose packets have blocks of one azimuth each."""

    name: str
    channels: int
    is_utc: bool  # seconds and microseconds; else a date
    unit_m: float
    firing_us: np.ndarray  # of the returns of one azimuth
    block_us: float
    lens_m: Tuple[float, float]  # from the axis outward, and upward
    angle_deg: float = 0.01  # unit of the angles in DIFOP
    angles: int = 0  # how many DIFOP has of each kind; 0: one per channel
    blocks: int = 12
    parts: int = 1  # blocks of one azimuth, which have its returns together
    bits: int = 0xFFFF  # of a distance

    @property
    def head(self) -> int:
        """Bytes before the blocks."""
        return 80 if self.channels == 128 else 42

    @property
    def layout(self) -> np.dtype:
        unit = np.dtype([("distance", ">u2"), ("reflectivity", "u1")])
        block = np.dtype([("mark", "V2"), ("azimuth", ">u2"), ("units", unit, (len(self.firing_us) // self.parts,))])
        return np.dtype({"names": ["time", "blocks"], "formats": [("u1", (10,)), (block, (self.blocks,))],
                         "offsets": [10 if self.channels == 128 else 20, self.head], "itemsize": 1248})


@dataclass(frozen=True, eq=False)
class Solid:
    """Layout of a model without a spinning part."""

    name: str
    packets: int  # of a frame
    layout: np.dtype


def _solid_layout(size, blocks, block, at):
    return np.dtype({"names": ["time", "blocks"], "formats": [("u1", (10,)), (np.dtype(block), (blocks,))],
                     "offsets": [10, at], "itemsize": size})


_RS16 = Spinning("RS-LiDAR-16", 16, False, 0.005, np.append(np.arange(16) * 2.8, 55.5 + np.arange(16) * 2.8), 111.0, (0.03825, 0))
_RS32 = Spinning("RS-LiDAR-32", 32, False, 0.005, np.append(_US_32, np.append(_US_32[:15] + 1.44, 46.08)), 55.52, (0.03997, 0), 0.001)
_BPEARL = Spinning("Bpearl", 32, False, 0.005, np.append(_US_BP3, _US_BP3 + 1.28), 55.52, (0.01473, 0.09427))
_BPEARL4 = Spinning("Bpearl 4", 32, True, 0.0025, np.arange(32) * 1.668, 55.56, (0.01619, 0.09571))
_HELIOS = {unit: Spinning("Helios", 32, True, unit, np.arange(32) * 1.73, 55.56, (0.03498, 0)) for unit in (0.005, 0.0025)}
_HELIOS_16P = {unit: Spinning("Helios 16P", 16, True, unit, np.append(_US_16P, _US_16P + 55.56), 111.12, (0.03498, 0), angles=32)
               for unit in (0.005, 0.0025)}
_RUBY = Spinning("Ruby (RS-128)", 128, True, 0.005, np.arange(128) // 4 % 16 * 3.236, 55.55, (0.03615, 0), blocks=3)
_RUBY_PLUS = Spinning("Ruby Plus", 128, True, 0.005, _US_RUBY_PLUS, 55.56, (0.02892, 0), blocks=3)
_AIRY = Spinning("Airy", 96, True, 0.005, _US_AIRY[2], 111.08, (0.01002, 0.04532), blocks=8, parts=2, bits=0x3FFF)
_M1 = Solid("M1", 630, _solid_layout(1210, 25, [("us", "u1"), ("number", "u1"), ("points", [
    ("distance", ">u2"), ("pitch", ">u2"), ("yaw", ">u2"), ("reflectivity", "u1"), ("more", "V2")], (5,))], 32))
_M2 = Solid("M2", 1260, _solid_layout(1342, 25, [("us", "u1"), ("number", "u1"), ("points", [
    ("distance", ">u2"), ("xyz", ">i2", (3,)), ("reflectivity", "u1"), ("more", "V1")], (5,))], 32))
_E1 = Solid("E1", 288, _solid_layout(1200, 96, [
    ("us", ">u2"), ("distance", ">u2"), ("xyz", ">i2", (3,)), ("reflectivity", "u1"), ("more", "V1")], 32))


def model_of(packet: bytes) -> Union[Spinning, Solid, None]:
    """The model that sent a packet, None where it is not of RoboSense. PointError: a model that is not known."""
    if packet[:4] == _SOLID:
        found = {1210: _M1, 1342: _M2, 1200: _E1}.get(len(packet))
        if found is None:
            raise PointError(f"packets of {len(packet)} bytes of a RoboSense that is not known here")
        return found
    if len(packet) != 1248 or packet[:4] not in (_OLD[:4], _NEW):
        return None
    found = _old_model(packet) if packet[:8] == _OLD else _new_model(packet)
    if found is None:
        raise PointError(f"packets of a RoboSense that is not known here: model {packet[30:33].hex(' ')}")
    return found


def _old_model(packet):
    if packet[31:33] == b"\x03\x04":
        return _BPEARL4
    return {1: _RS16, 2: _RS32, 3: _BPEARL}.get(packet[30])


def _new_model(packet):
    """The manuals have the kind of the sensor at byte 31 and its model behind it; older firmware and rs_driver the kind at 30, alone."""
    old, kind, model = packet[30:33]
    if packet[80] == packet[468] == packet[856] == 0xFE:
        return _RUBY_PLUS if (kind, model) == (5, 1) or old == 5 else _RUBY if 4 in (old, kind) else None
    marks = [packet[at:at + 2] == b"\xff\xee" for at in (42, 142, 190)]
    if marks == [True, False, True] and packet[32] in (0, 2) and packet[16] == 0:
        return _AIRY
    unit_m = 0.0025 if packet[17] == 1 else 0.005
    if marks[:2] == [True, True] and (kind == 6 or (old, kind) == (6, 0)):
        return (_HELIOS_16P if (kind, model) == (6, 3) else _HELIOS)[unit_m]
    return None


def _difop_angles(data, model):
    """Vertical and horizontal angle of each channel [deg]; those of an RS-LiDAR-16 have three bytes, and the lower half is negative."""
    if model is _RS16:
        values = np.frombuffer(data, np.uint8, 48, 1165).reshape(16, 3) @ np.array([65536, 256, 1]) * 1e-4
        return np.stack([np.where(np.arange(16) < 8, -values, values), np.zeros(16)])
    count = model.angles or model.channels
    rows = np.frombuffer(data, np.dtype([("sign", "u1"), ("value", ">u2")]), 2 * count, 468).reshape(2, -1)[:, :model.channels]
    if (rows["sign"] == 0xFF).any():
        raise PointError(f"the angles of a RoboSense {model.name} in its own packets (DIFOP) are not set: --calibration FILE")
    return np.where(rows["sign"] == 0, 1, -1) * rows["value"] * model.angle_deg


def _csv_angles(data, model):
    try:
        rows = [[float(word) for word in line.split(",")[:2]] for line in data.decode("utf-8", "replace").split("\n") if line.strip()]
        angles = np.array(rows, np.float64).T
    except ValueError:
        raise PointError("the calibration is no CSV of vertical and horizontal angles") from None
    if angles.shape != (2, model.channels):
        raise PointError(f"the calibration has angles of {len(rows)} channels, a RoboSense {model.name} has {model.channels}")
    return angles


def _clock_ns(time, is_utc):
    """The clock of the sensor: 6 bytes of seconds and 4 of microseconds; or year to second, and 2 bytes each of ms and us."""
    numbers = time.astype(np.int64)
    if is_utc:
        return numbers[:, 1:6] @ (256 ** np.arange(4, -1, -1)) % 2 ** 33 * NS + numbers[:, 6:] @ (256 ** np.arange(3, -1, -1)) * 1000
    ms, us = numbers[:, 6] * 256 + numbers[:, 7], numbers[:, 8] * 256 + numbers[:, 9]
    return calendar_ns(numbers[:, 0] + 2000, *numbers[:, 1:6].T) + ms * 1_000_000 + us * 1000


class Decoder:
    """Makes points of the packets of one sensor, in the driver's frame."""

    def __init__(self, model: Union[Spinning, Solid], calibration: Optional[bytes] = None):
        self.name, self._model, self._layout = f"RoboSense {model.name}", model, model.layout
        self.notes: Set[str] = set()
        self._angles: Optional[np.ndarray] = None  # vertical and horizontal of each channel [rad]
        self._way = 1  # -1: the azimuth counts the other way
        self._firing_us = model.firing_us if isinstance(model, Spinning) else None
        if calibration is not None:
            self.calibrate(calibration)

    def calibrate(self, data: bytes) -> None:
        """Takes the angles of a DIFOP packet, or of a CSV."""
        if isinstance(self._model, Solid):
            return
        is_difop = data.startswith(DIFOP) and len(data) == DIFOP_BYTES
        angles = _difop_angles(data, self._model) if is_difop else _csv_angles(data, self._model)
        if not (np.abs(angles) <= 90).all():
            raise PointError(f"the angles of a {self.name} are above 90 deg")
        self._angles = np.radians(angles)
        self._way = -1 if is_difop and self._model.name.startswith("Bpearl") and data[337] else 1
        if is_difop and self._model is _AIRY and data[289] < len(_US_AIRY):
            self._firing_us = _US_AIRY[data[289]]

    def is_own(self, packet: bytes) -> bool:
        try:
            return model_of(packet) is self._model
        except PointError:
            return False

    def turn(self, packet: bytes) -> float:
        """Part of the turn at which a packet begins; of M1, M2 and E1: of the packets of a frame, which two returns double."""
        if isinstance(self._model, Solid):
            return int.from_bytes(packet[4:6], "big") / self._model.packets
        at = self._model.head + 2
        return int.from_bytes(packet[at:at + 2], "big") / 36000

    def points(self, packets: List[Tuple[int, bytes]]) -> Points:
        rows = np.frombuffer(b"".join(packet for _, packet in packets), self._layout)
        return self._solid(rows) if isinstance(self._model, Solid) else self._spinning(rows)

    def _spinning(self, rows):
        model = self._model
        if self._angles is None:
            raise PointError(f"packets of a {self.name} need the angles of its channels: record its DIFOP packets, too, "
                             "or --calibration FILE")
        azimuth = rows["blocks"]["azimuth"].astype(np.int32)
        distance = rows["blocks"]["units"]["distance"].astype(np.int32) & model.bits
        packet_ns = _clock_ns(rows["time"], model.is_utc)
        firing_us, block_us = self._firing_us, model.block_us
        if model.channels == 16 and len(rows) > 1 and np.median(np.diff(packet_ns)) < 1_000_000:  # a block has both returns of one firing
            firing_us, block_us = np.tile(firing_us[:16], 2), block_us / 2
            distance[..., 16:][distance[..., 16:] == distance[..., :16]] = 0
        before, behind = slice(None, -model.parts), slice(model.parts, None)
        same = azimuth[:, behind] == azimuth[:, before]  # blocks of two returns of one firing
        distance[:, behind][same[..., None] & (distance[:, behind] == distance[:, before])] = 0
        block_ns, rate = _steps(azimuth, block_us)
        row, block, unit = np.nonzero(distance)
        channel = unit + block % model.parts * distance.shape[2]
        turned = np.radians((azimuth[row, block] + rate * firing_us[channel]) * 0.01) * self._way
        laser = channel % model.channels
        vertical, level = self._angles[0][laser], turned + self._angles[1][laser] * self._way
        range_m = distance[row, block, unit] * model.unit_m
        flat_m = range_m * np.cos(vertical)
        xyz = np.empty((3, len(row)), np.float32)
        xyz[0] = flat_m * np.cos(level) + model.lens_m[0] * np.cos(turned)
        xyz[1] = -flat_m * np.sin(level) - model.lens_m[0] * np.sin(turned)
        xyz[2] = range_m * np.sin(vertical) + model.lens_m[1]
        time_ns = packet_ns[row] + block_ns[row, block] + (firing_us * 1000).astype(np.int64)[channel]
        reflectivity = rows["blocks"]["units"]["reflectivity"][row, block, unit]
        return Points(xyz, reflectivity.astype(np.float32), time_ns, distance.size - len(row), int(packet_ns[0]))

    def _solid(self, rows):
        packet_ns, blocks = _clock_ns(rows["time"], True), rows["blocks"]
        points = blocks[..., None] if self._model is _E1 else blocks["points"]
        at = np.nonzero(points["distance"])
        range_m = points["distance"][at] * 0.005
        if self._model is _M1:
            pitch, yaw = (np.radians((points[name][at].astype(np.int32) - 32768) * 0.01) for name in ("pitch", "yaw"))
            xyz = range_m * np.stack([np.cos(pitch) * np.cos(yaw), np.cos(pitch) * np.sin(yaw), np.sin(pitch)])
        else:
            xyz = range_m * points["xyz"][at].T / 32768
        time_ns = packet_ns[at[0]] + blocks["us"].astype(np.int64)[at[0], at[1]] * 1000
        return Points(xyz.astype(np.float32), points["reflectivity"][at].astype(np.float32), time_ns,
                      points["distance"].size - len(time_ns), int(packet_ns[0]))


def _steps(azimuth, block_us):
    """Time of each block since the first one of its packet [ns], and how fast the azimuth turns [0.01 deg/us]."""
    step = np.diff(azimuth, axis=1) % 36000
    usual = step[(step > 0) & (step <= _GAP)]
    usual = float(np.median(usual)) if len(usual) else 20.0
    passed_us = np.where(step == 0, 0, np.where(step <= _GAP, block_us, block_us * step / usual))
    block_us_since = np.cumsum(np.concatenate([np.zeros((len(azimuth), 1)), passed_us], axis=1), axis=1)
    return (block_us_since * 1000).astype(np.int64), usual / block_us
