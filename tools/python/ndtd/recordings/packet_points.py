"""Points of packets, and the two clocks that they have: that of the sensor and that of the recording."""
from typing import NamedTuple

import numpy as np

from .messages import Scan

NS = 1_000_000_000
SAME_CLOCK_NS = NS // 10  # farther apart, the sensor was not synchronised: packets come at once


class Points(NamedTuple):
    """Points of a sweep in the frame of the driver."""

    xyz: np.ndarray  # (3, N) float32 [m]
    intensity: np.ndarray  # (N,) float32
    time_ns: np.ndarray  # (N,) int64, clock of the sensor
    empty: int  # firings without a return
    begin_ns: int  # clock of the sensor at the first packet


def calendar_ns(year, month, day, hour, minute, second) -> np.ndarray:
    """Nanoseconds since 1970 of dates in UTC; arrays of int64, and any number counts as it is: day 40 is in the next month."""
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]").astype(np.int64) + day - 1
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * NS


def same_clock(sensor_ns: int, receive_ns: int, most_ns: int = SAME_CLOCK_NS) -> int:
    """A stamp in the clock of the recording: that of the sensor where it was synchronised, else when it was received."""
    return sensor_ns if abs(sensor_ns - receive_ns) < most_ns else receive_ns


def scan_of(points: Points, packet_ns: int, head) -> Scan:
    """A scan. packet_ns: the first packet in the clock of the recording; head: receive_ns, stamp_ns (0: that of the first
    packet), frame_id.

    Where the clock of the sensor is another one, its first packet is where the recording has it.
    """
    receive_ns, stamp_ns, frame_id = head
    shift_ns = same_clock(points.begin_ns, packet_ns) - points.begin_ns
    stamp_ns = stamp_ns or points.begin_ns + shift_ns
    return Scan(receive_ns, stamp_ns, frame_id, points.xyz.T, points.intensity, (points.time_ns + (shift_ns - stamp_ns)) * 1e-9,
                points.empty)
