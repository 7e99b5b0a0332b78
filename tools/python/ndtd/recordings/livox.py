"""Packets of a Livox Mid-360 and HAP, as Livox-SDK2 and the communication protocol of the sensors have them (little endian).

They have points in metres, not angles: no calibration is needed. There are no turns: a scan is what comes in a tenth of a second.
Other packets have what the IMU in the sensor measured.
"""
from typing import Iterator, List, Set, Tuple

import numpy as np

from .messages import Imu
from .packet_points import Points, same_clock
from .points import PointError

HEAD = 36
SCAN_NS = 100_000_000
_REST = [("reflectivity", "u1"), ("tag", "u1")]
LAYOUTS = {  # by type of data: coordinates in mm, in cm, or distance [mm] with angles from above and around [0.01 deg]
    1: np.dtype([("at", "<i4", (3,)), *_REST]), 2: np.dtype([("at", "<i2", (3,)), *_REST]),
    3: np.dtype([("distance", "<u4"), ("theta", "<u2"), ("phi", "<u2"), *_REST])}
UNIT_M = {1: 1e-3, 2: 1e-2}
IMU_BYTES, G_MPS2 = HEAD + 24, 9.80665


def is_livox(packet: bytes) -> bool:
    """Whether a packet has points of a Livox: its header tells its length in two ways."""
    if len(packet) <= HEAD or packet[0] != 0 or packet[10] not in LAYOUTS:
        return False
    size, dots = int.from_bytes(packet[1:3], "little"), int.from_bytes(packet[5:7], "little")
    return size == len(packet) == HEAD + dots * LAYOUTS[packet[10]].itemsize


def is_imu(packet: bytes) -> bool:
    """Whether a packet is one of the IMU."""
    return len(packet) == IMU_BYTES and packet[0] == packet[10] == 0 and packet[1:3] == bytes([IMU_BYTES, 0])


def imu(packet: bytes, receive_ns: int, frame_id: str) -> Iterator[Imu]:
    """Rates [rad/s] and specific forces [g], in the frame of the points."""
    numbers = np.frombuffer(packet, "<f4", 6, HEAD).astype(np.float64)
    yield Imu(receive_ns, same_clock(_time_ns(packet), receive_ns), frame_id, numbers[:3], numbers[3:] * G_MPS2)


def _time_ns(packet):
    return int.from_bytes(packet[28:36], "little")


class Decoder:
    """Makes points of the packets of one sensor."""

    name = "Livox"

    def __init__(self) -> None:
        self.notes: Set[str] = set()

    @staticmethod
    def is_own(packet: bytes) -> bool:
        return is_livox(packet)

    @staticmethod
    def turn(packet: bytes) -> float:
        return _time_ns(packet) % SCAN_NS / SCAN_NS

    def points(self, rows: List[Tuple[int, bytes]]) -> Points:
        """The points of some packets."""
        parts = [_points_of(packet) for _, packet in rows]
        xyz, intensity, time_ns = (np.concatenate(columns, axis=-1) for columns in zip(*parts))
        good = xyz.any(axis=0)
        begin_ns = _time_ns(rows[0][1])
        if not 0 <= int(time_ns.min()) <= int(time_ns.max()) < 2 ** 62:
            raise PointError("packets of a Livox with times that are none")
        return Points(xyz[:, good].astype(np.float32), intensity[good].astype(np.float32), time_ns[good],
                      len(good) - int(np.count_nonzero(good)), begin_ns)


def _points_of(packet):
    """x y z [m] (3, N), reflectivity and time [ns] of the points of a packet, which are evenly spaced."""
    kind = packet[10]
    data = np.frombuffer(packet, LAYOUTS[kind], -1, HEAD)
    if kind in UNIT_M:
        xyz = data["at"].T * UNIT_M[kind]
    else:
        theta, phi = np.radians(data["theta"] * 0.01), np.radians(data["phi"] * 0.01)
        xyz = data["distance"] * 1e-3 * np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)])
    step_ns = int.from_bytes(packet[3:5], "little") * 100 // len(data)
    return xyz, data["reflectivity"], np.int64(_time_ns(packet) % 2 ** 63) + np.arange(len(data)) * step_ns
