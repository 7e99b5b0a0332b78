"""Packets of Hesai's LiDARs: Pandar40P and 40M, Pandar64, PandarQT (QT64), QT128, XT16, XT32, XT32M, Pandar128, OT128, JT128, AT128.

From the user manuals of the models, "Data Structure" (layout of the packets, little endian) and their appendices "Channel
Distribution" and "Firing Times"; angles also as Hesai's drivers and Autoware's Nebula have them. Angles of one sensor differ from the
nominal ones by up to 0.4 deg (Pandar40P): its calibration file, a CSV, says them, and a Pandar128 and a JT128 cannot do without; of an
OT128, whose packets are the same, HesaiLidar_SDK_2.0 tells nominal ones and how to know it. An AT128 has a file of another kind: hesai_at128.
"""
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import List, NamedTuple, Optional, Set, Tuple

import numpy as np

from .hesai_at128 import Correction
from .packet_points import NS, Points, calendar_ns
from .points import PointError


def _numbers(text):
    return np.array(text.split(), np.float64)


# Angles of the channels and their firing times within a block, in degrees and microseconds.
_ELEVATION_40P = _numbers("""
    15 11 8 5 3 2 1.67 1.33 1 0.67 0.33 0 -0.33 -0.67 -1 -1.33 -1.66 -2 -2.33 -2.67 -3 -3.33 -3.67 -4 -4.33 -4.67 -5
    -5.33 -5.67 -6 -7 -8 -9 -10 -11 -12 -13 -14 -19 -25""")
_ELEVATION_64 = _numbers("""
    14.882 11.032 8.059 5.057 3.04 2.028 1.86 1.688 1.522 1.351 1.184 1.013 0.846 0.675 0.508 0.337 0.169 0 -0.169
    -0.337 -0.508 -0.675 -0.845 -1.013 -1.184 -1.351 -1.522 -1.688 -1.86 -2.028 -2.198 -2.365 -2.536 -2.7 -2.873
    -3.04 -3.21 -3.375 -3.548 -3.712 -3.884 -4.05 -4.221 -4.385 -4.558 -4.72 -4.892 -5.057 -5.229 -5.391 -5.565
    -5.726 -5.898 -6.061 -7.063 -8.059 -9.06 -9.885 -11.032 -12.006 -12.974 -13.93 -18.889 -24.897""")
_ELEVATION_QT64 = _numbers("""
    -52.121 -49.785 -47.577 -45.477 -43.465 -41.528 -39.653 -37.831 -36.055 -34.32 -32.619 -30.95 -29.308 -27.69
    -26.094 -24.517 -22.964 -21.42 -19.889 -18.372 -16.865 -15.368 -13.88 -12.399 -10.925 -9.457 -7.994 -6.535 -5.079
    -3.626 -2.175 -0.725 0.725 2.175 3.626 5.079 6.534 7.993 9.456 10.923 12.397 13.877 15.365 16.861 18.368 19.885
    21.415 22.959 24.524 26.101 27.697 29.315 30.957 32.627 34.328 36.064 37.84 39.662 41.537 43.475 45.487 47.587
    49.795 52.133""")
_AZIMUTH_QT64 = _numbers("""
    8.736 8.314 7.964 7.669 7.417 7.198 7.007 6.838 6.688 6.554 6.434 6.326 6.228 6.14 6.059 5.987 -5.27 -5.216
    -5.167 -5.123 -5.083 -5.047 -5.016 -4.988 -4.963 -4.942 -4.924 -4.91 -4.898 -4.889 -4.884 -4.881 5.493 5.496
    5.502 5.512 5.525 5.541 5.561 5.584 5.611 5.642 5.676 5.716 5.759 5.808 5.862 5.921 -5.33 -5.396 -5.469 -5.55
    -5.64 -5.74 -5.85 -5.974 -6.113 -6.269 -6.447 -6.651 -6.887 -7.163 -7.493 -7.892""")
_ELEVATION_QT128 = _numbers("""
    -52.627 -51.028 -49.515 -48.074 -46.695 -45.369 -44.09 -42.852 -41.651 -40.482 -39.343 -38.231 -37.143 -36.076
    -35.03 -34.002 -32.992 -31.996 -31.015 -30.048 -29.093 -28.149 -27.216 -26.292 -25.378 -24.473 -23.575 -22.685
    -21.802 -20.926 -20.056 -19.191 -18.331 -17.477 -16.627 -15.781 -14.94 -14.102 -13.268 -12.436 -11.608 -10.783
    -9.96 -9.139 -8.32 -7.503 -6.688 -5.874 -5.061 -4.25 -3.439 -2.63 -1.82 -1.012 -0.203 0.606 1.414 2.223 3.033
    3.843 4.654 5.466 6.279 7.094 7.91 8.728 9.547 10.369 11.194 12.02 12.85 13.683 14.519 15.359 16.202 17.05 17.902
    18.759 19.621 20.488 21.362 22.241 23.128 24.022 24.923 25.833 26.751 27.679 28.618 29.567 30.528 31.502 32.49
    33.493 34.512 35.549 19.191 20.056 20.926 21.802 22.685 23.575 24.473 25.378 26.292 27.216 28.149 29.093 30.048
    31.015 31.996 32.992 34.002 35.03 36.076 37.143 38.231 39.343 40.482 41.651 42.852 44.09 45.369 46.695 48.074
    49.515 51.028 52.627""")
_AZIMUTH_QT128 = _numbers("""
    10.108 9.72 9.384 9.091 8.833 8.603 8.396 8.209 8.04 7.885 7.743 7.612 7.492 7.38 7.277 7.18 7.09 7.006 6.928
    6.854 6.785 6.721 6.66 6.602 6.549 6.498 6.45 6.405 6.363 6.323 6.285 6.25 -6.217 -6.186 -6.157 -6.129 -6.104
    -6.08 -6.057 -6.037 -6.018 -6 -5.984 -5.969 -5.955 -5.943 -5.927 -5.923 -5.915 -5.908 -5.902 -5.897 -5.894 -5.892
    -5.891 -5.891 -5.893 -5.896 -5.899 -5.905 -5.911 -5.919 -5.927 -5.938 5.949 5.962 5.976 5.992 6.008 6.027 6.047
    6.068 6.091 6.116 6.143 6.171 6.201 6.233 6.267 6.304 6.343 6.384 6.427 6.474 6.523 6.575 6.631 6.69 6.752 6.819
    6.89 6.966 7.047 7.134 7.227 7.327 -6.25 -6.285 -6.323 -6.363 -6.405 -6.45 -6.498 -6.549 -6.602 -6.66 -6.721
    -6.785 -6.854 -6.928 -7.006 -7.09 -7.18 -7.277 -7.38 -7.492 -7.612 -7.743 -7.885 -8.04 -8.209 -8.396 -8.603
    -8.833 -9.091 -9.384 -9.72 -10.108""")
_ELEVATION_OT128 = _numbers("""
    14.985 13.283 11.758 10.483 9.836 9.171 8.496 7.812 7.462 7.115 6.767 6.416 6.064 5.71 5.355 4.998 4.643 4.282
    3.921 3.558 3.194 2.829 2.463 2.095 1.974 1.854 1.729 1.609 1.487 1.362 1.242 1.12 0.995 0.875 0.75 0.625 0.5 0.375
    0.25 0.125 0 -0.125 -0.25 -0.375 -0.5 -0.626 -0.751 -0.876 -1.001 -1.126 -1.251 -1.377 -1.502 -1.627 -1.751 -1.876
    -2.001 -2.126 -2.251 -2.376 -2.501 -2.626 -2.751 -2.876 -3.001 -3.126 -3.251 -3.376 -3.501 -3.626 -3.751 -3.876
    -4.001 -4.126 -4.25 -4.375 -4.501 -4.626 -4.751 -4.876 -5.001 -5.126 -5.252 -5.377 -5.502 -5.626 -5.752 -5.877
    -6.002 -6.378 -6.754 -7.13 -7.507 -7.882 -8.257 -8.632 -9.003 -9.376 -9.749 -10.121 -10.493 -10.864 -11.234 -11.603
    -11.975 -12.343 -12.709 -13.075 -13.439 -13.803 -14.164 -14.525 -14.879 -15.237 -15.593 -15.948 -16.299 -16.651 -17
    -17.347 -17.701 -18.386 -19.063 -19.73 -20.376 -21.653 -23.044 -24.765""")
_AZIMUTH_OT128 = _numbers("""
    0.186 0.185 1.335 1.343 0.148 0.147 0.146 0.146 1.335 1.336 1.337 1.338 1.339 1.34 1.341 1.342 0.128 0.128 0.127
    0.127 0.107 0.106 0.105 0.105 -3.118 1.315 4.529 -3.121 1.316 4.532 -3.124 1.317 4.536 -3.127 1.317 4.539 -3.13
    1.318 4.542 -3.133 0.103 2.935 -1.517 0.103 2.937 -1.519 0.103 2.939 -1.52 0.103 2.941 -1.521 0.102 2.943 -1.523
    0.102 2.945 -1.524 0.102 2.946 -1.526 0.102 2.948 -1.526 1.324 4.57 -3.155 1.325 4.573 -3.157 1.326 4.575 -3.159
    1.326 4.578 -3.161 1.327 4.581 -3.163 1.328 4.583 -3.165 1.329 4.586 -3.167 1.329 4.588 -3.168 0.102 0.103 0.103
    0.103 0.104 0.104 0.104 0.104 1.337 1.337 1.338 1.339 1.34 1.341 1.341 1.342 0.108 0.108 0.109 0.109 0.13 0.131
    0.131 0.132 1.384 1.384 1.385 1.385 1.386 1.386 1.387 1.387 0.151 0.153 0.154 0.156 1.388 1.408 0.196 0.286""")
_FIRING_40P = _numbers("""
    -42.22 -28.47 -16.04 -3.62 -45.49 -31.74 -47.46 -54.67 -20.62 -33.71 -40.91 -8.19 -20.62 -27.16 -50.73 -8.19
    -14.74 -36.98 -45.49 -52.7 -23.89 -31.74 -38.95 -11.47 -18.65 -25.19 -48.76 -6.23 -12.77 -35.01 -21.92 -9.5
    -43.52 -29.77 -17.35 -4.92 -42.22 -28.47 -16.04 -3.62""")
_FIRING_64 = _numbers("""
    -23.18 -21.876 -20.572 -19.268 -17.964 -16.66 -11.444 -46.796 -7.532 -36.956 -50.732 -54.668 -40.892 -44.828
    -31.052 -34.988 -48.764 -52.7 -38.924 -42.86 -29.084 -33.02 -46.796 -25.148 -36.956 -50.732 -27.116 -40.892
    -44.828 -31.052 -34.988 -48.764 -25.148 -38.924 -42.86 -29.084 -33.02 -52.7 -6.228 -54.668 -15.356 -27.116 -10.14
    -23.18 -4.924 -21.876 -14.052 -17.964 -8.836 -19.268 -3.62 -20.572 -12.748 -16.66 -7.532 -11.444 -6.228 -15.356
    -10.14 -4.924 -3.62 -14.052 -8.836 -12.748""")
_FIRING_QT64 = _numbers("""
    12.31 14.37 16.43 18.49 20.54 22.6 24.66 26.71 29.16 31.22 33.28 35.34 37.39 39.45 41.5 43.56 46.61 48.67 50.73
    52.78 54.84 56.9 58.95 61.01 63.45 65.52 67.58 69.63 71.69 73.74 75.8 77.86 80.9 82.97 85.02 87.08 89.14 91.19
    93.25 95.3 97.75 99.82 101.87 103.93 105.98 108.04 110.1 112.15 115.2 117.26 119.32 121.38 123.43 125.49 127.54
    129.6 132.05 134.11 136.17 138.22 140.28 142.34 144.39 146.45""")
_FIRING_AT128 = _numbers("""
    0 0 8.24 4.112 4.144 8.24 0 0 12.424 4.144 4.112 8.264 12.376 12.376 8.264 12.424 0 0 4.112 8.24 4.144 0 0 4.144
    12.424 8.264 4.112 12.376 12.376 12.424 8.264 0.848 2.504 4.976 6.616 6.616 9.112 2.504 0.848 10.768 13.28 13.28
    4.976 9.112 14.928 14.928 10.768 2.504 0.848 6.616 4.976 9.112 6.616 0.848 2.504 13.28 10.768 4.976 13.28 14.928
    9.112 10.768 14.928 13.28 0.848 9.112 13.28 2.504 4.976 0.848 2.504 14.928 10.768 10.768 14.928 4.976 6.616 6.616
    9.112 0.848 13.28 13.28 9.112 4.976 2.504 2.504 0.848 10.768 14.928 14.928 10.768 6.616 4.976 9.112 6.616 4.112
    12.424 0 4.144 0 0 12.424 0 8.264 4.112 4.144 8.24 8.24 8.264 12.376 12.376 12.424 4.112 4.144 0 0 0 0 0 12.424
    8.264 8.24 4.144 8.264 8.24 12.376 12.376 8.264""")
_AZIMUTH_40P = np.array([-1.042] * 6 + [3.125, -5.208, -1.042] * 8 + [-1.042] * 10)
_AZIMUTH_64 = np.array([-1.042] * 6 + [1.042, 3.125, 5.208, -5.208, -3.125, -1.042] * 8 + [-1.042] * 10)
_FIRING_XT = 0.368 + 1.512 * np.arange(32)


class Tail(NamedTuple):
    """Offsets of the fields in the tail of a packet [bytes]."""

    size: int
    returns: int  # one byte
    date: int  # six: year month day hour minute second, UTC
    us: int  # four: microseconds of the second


_TAIL_40P, _TAIL_QT64, _TAIL_XT = Tail(22, 14, 16, 10), Tail(24, 16, 18, 12), Tail(24, 10, 13, 19)
_TAIL_QT128, _TAIL_128, _TAIL_AT128 = Tail(34, 12, 15, 21), Tail(26, 12, 15, 21), Tail(32, 24, 26, 20)


@dataclass(frozen=True, eq=False)
class Model:
    """Layout and geometry of a model. A block is: mark, azimuth [0.01 deg], its fraction, and a return of each channel."""

    name: str
    channels: int
    blocks: int
    head: int  # bytes before the blocks
    mark: int  # bytes of a block before its azimuth
    unit: int  # bytes of a return: distance (2), reflectivity (1)
    gap: int  # bytes between the blocks and the tail
    tail: Tail
    more: Tuple[int, ...]  # bytes that may follow the tail
    elevation_deg: Optional[np.ndarray]  # None: only a calibration file tells them
    azimuth_deg: np.ndarray
    firing_us: np.ndarray
    start_us: float  # of the last block, or of the first one, since the time of the packet
    block_us: float  # from block to block; blocks of several returns of one firing count once
    from_last: bool = True
    fraction: int = 0  # bytes of a block behind its azimuth [0.01 / 256 deg]

    @cached_property
    def layout(self) -> np.dtype:
        """A packet as a record."""
        unit = np.dtype({"names": ["distance", "reflectivity"], "formats": ["<u2", "u1"], "offsets": [0, 2], "itemsize": self.unit})
        block = np.dtype([("mark", f"V{self.mark}"), ("azimuth", "<u2"), ("fraction", "u1", (self.fraction,)),
                          ("units", unit, (self.channels,))])
        at = self.head + self.blocks * block.itemsize + self.gap
        return np.dtype({"names": ["blocks", "returns", "date", "us"],
                         "formats": [(block, (self.blocks,)), "u1", ("u1", (6,)), "<u4"],
                         "offsets": [self.head, at + self.tail.returns, at + self.tail.date, at + self.tail.us],
                         "itemsize": at + self.tail.size})


_SEQUENCE = (0, 4)  # a number of the packet may follow
_NONE = np.zeros(128)
_PANDAR40P = Model("Pandar40P", 40, 10, 0, 2, 3, 0, _TAIL_40P, _SEQUENCE, _ELEVATION_40P, _AZIMUTH_40P, _FIRING_40P, -28.58, 55.56)
# By the numbers of channels and blocks in the header.
_MODELS = {(one.channels, one.blocks): one for one in (
    Model("Pandar64", 64, 6, 8, 0, 3, 0, _TAIL_40P, _SEQUENCE, _ELEVATION_64, _AZIMUTH_64, _FIRING_64, -42.58, 55.56),
    Model("PandarQT", 64, 4, 12, 0, 4, 0, _TAIL_QT64, _SEQUENCE, _ELEVATION_QT64, _AZIMUTH_QT64, _FIRING_QT64, 25.71, 166.667, False),
    Model("XT16", 16, 8, 12, 0, 4, 0, _TAIL_XT, _SEQUENCE, np.arange(15.0, -16, -2), _NONE[:16], 0.368 + 3.024 * np.arange(16),
          5.632, 50),
    Model("XT32", 32, 8, 12, 0, 4, 0, _TAIL_XT, _SEQUENCE, np.arange(15.0, -17, -1), _NONE[:32], _FIRING_XT, 5.632, 50),
    Model("XT32M", 32, 6, 12, 0, 4, 0, _TAIL_XT, _SEQUENCE, 19.5 - 1.3 * np.arange(32), _NONE[:32],
          0.368 + 2.888 * (np.arange(32) % 16), 5.632, 50),
    Model("QT128", 128, 2, 12, 0, 4, 4 + 17, _TAIL_QT128, (0, 32), _ELEVATION_QT128, _AZIMUTH_QT128, _NONE, 9, 111.11),
)}

# A number of the packet and a signature may surround its checksum.
_AT128 = Model("AT128", 128, 2, 12, 0, 4, 4, _TAIL_AT128, (4, 8, 36, 40), None, _NONE, _FIRING_AT128, -9.249 - 41.666, 41.666, fraction=1)


@lru_cache(maxsize=None)
def _pandar128(name: str, flags: int) -> Model:
    """Protocol 1.4, whose flags tell the parts of a packet; firing times within a block (0.1 ms) are left out."""
    more = 4 + (4 if flags & 1 else 0) + (22 if flags & 2 else 0)  # checksum, number of the packet, IMU
    unit = 3 + sum(bool(flags & one) for one in (0x10, 0x20, 0x40))  # confidence, weight, light around
    elevation, azimuth = (_ELEVATION_OT128, _AZIMUTH_OT128) if name == "OT128" else (None, _NONE)
    return Model(name, 128, 2, 12, 0, unit, 4 + (17 if flags & 4 else 0), _TAIL_128,
                 (more, more + 32), elevation, azimuth, _NONE, 0, 27.778)


def model_of(packet: bytes) -> Optional[Model]:
    """The model that sent a packet, None where it is not of Hesai. PointError: a model that is not known, a wrong length."""
    found = None
    if packet[:2] == b"\xff\xee" and len(packet) in (1262, 1266):
        return _PANDAR40P
    if packet[:2] == b"\xee\xff" and len(packet) > 100:
        protocol, key = (packet[2], packet[3]), (packet[6], packet[7])
        if protocol == (64, 6):  # the header of a Pandar64 has no protocol
            found = _MODELS[64, 6]
        elif key == (128, 2) and protocol == (1, 4):  # the version of the part with states tells the model, says HesaiLidar_SDK_2.0
            found = _pandar128("JT128" if packet[4] >= 137 else "OT128" if packet[4] >= 128 else "Pandar128 or OT128", packet[11])
        elif key == (128, 2) and protocol == (4, 3):
            found = _AT128
        elif key in _MODELS and (key != (128, 2) or protocol == (3, 2)):
            found = _MODELS[key]
        else:
            raise PointError(f"packets of a Hesai that is not known here: {key[0]} channels, {key[1]} blocks, "
                             f"protocol {protocol[0]}.{protocol[1]}")
        size = found.layout.itemsize
        if len(packet) - size not in found.more:
            raise PointError(f"a packet of {len(packet)} bytes: those of a {found.name} have {size + found.more[0]}")
        if _unit_m(found, packet) == 0:
            raise PointError(f"a packet of a {found.name} whose unit of distances is 0")
    return found


def _unit_m(model, packet):
    """Unit of distances [m], which a Pandar40P does not tell."""
    return (packet[9] if model.head == 12 else packet[5] if model.head == 8 else 4) * 1e-3


def angles_of(text: str, model: Model) -> Tuple[np.ndarray, np.ndarray]:
    """Elevation and azimuth of each channel [deg] from a calibration file: lines `channel,elevation,azimuth`."""
    found = {}
    for line in text.splitlines():
        words = line.replace("\ufeff", "").split(",")
        try:
            found[int(words[0])] = float(words[1]), float(words[2])
        except (ValueError, IndexError):
            continue  # titles
    rows = np.array([found.get(channel + 1, (np.nan, np.nan)) for channel in range(model.channels)])
    if len(found) != model.channels or not (np.abs(rows) <= 360).all():
        raise PointError(f"the calibration has angles of {len(found)} channels, a {model.name} has {model.channels}")
    return rows[:, 0], rows[:, 1]


class Decoder:
    """Makes points of the packets of one sensor."""

    def __init__(self, model: Model, calibration: Optional[bytes] = None):
        self.name, self._model, self._layout = f"Hesai {model.name}", model, model.layout
        self.notes: Set[str] = set()
        self._correction: Optional[Correction] = None
        if model is _AT128:
            if calibration is None:
                raise PointError("packets of an AT128 need the fields and angles of its mirrors: --calibration FILE, the sensor's own "
                                 "correction file (.dat)")
            self._correction = Correction(calibration)
            elevation_deg, azimuth_deg = _NONE, _NONE
        elif calibration is not None:
            elevation_deg, azimuth_deg = angles_of(calibration.decode("utf-8", "replace"), model)
        elif model.elevation_deg is None:
            raise PointError(f"packets of a {model.name} need the angles of its channels: --calibration FILE, the sensor's own CSV")
        else:
            elevation_deg, azimuth_deg = model.elevation_deg, model.azimuth_deg
            self.notes.add(f"{self.name}: nominal angles, up to 0.4 deg off those of a sensor: --calibration FILE")
        self._elevation_rad, self._azimuth_rad = np.radians(elevation_deg), np.radians(azimuth_deg)

    def is_own(self, packet: bytes) -> bool:
        try:
            return model_of(packet) is self._model
        except PointError:
            return False

    def turn(self, packet: bytes) -> float:
        """Part of the turn, of an AT128 of the field of a mirror, at which the packet begins, 0 to 1."""
        if self._correction:
            return self._correction.part((packet[12] + 256 * packet[13]) * 256 + packet[14])
        at = 2 if packet[0] == 0xFF else 8 if packet[2] == 64 else 12
        return (packet[at] + 256 * packet[at + 1]) / 36000

    def points(self, packets: List[Tuple[int, bytes]]) -> Points:
        """The points of some packets, with the times at which they were received, in the driver's frame."""
        rows = np.frombuffer(b"".join(packet[:self._layout.itemsize] for _, packet in packets), self._layout)
        units, returns = rows["blocks"]["units"], _returns(rows["returns"])
        distance = units["distance"].astype(np.int32)
        _drop_doubles(distance, returns)
        if self._correction:
            encoder = rows["blocks"]["azimuth"].astype(np.int32) * 256 + rows["blocks"]["fraction"][..., 0]
            field, since = self._correction.fields(encoder)
            distance[field < 0] = 0
        row, block, channel = np.nonzero(distance)
        range_m = distance[row, block, channel] * _unit_m(self._model, packets[0][1])
        if self._correction:
            azimuth_rad, elevation_rad = self._correction.directions(encoder[row, block], since[row, block], channel)
            sin_a, cos_a, sin_e, cos_e = np.sin(azimuth_rad), np.cos(azimuth_rad), np.sin(elevation_rad), np.cos(elevation_rad)
        else:
            turned_rad = np.radians(rows["blocks"]["azimuth"] * 0.01)
            cos_t, sin_t = np.cos(turned_rad)[row, block], np.sin(turned_rad)[row, block]
            cos_c, sin_c = np.cos(self._azimuth_rad)[channel], np.sin(self._azimuth_rad)[channel]
            sin_a, cos_a = sin_t * cos_c + cos_t * sin_c, cos_t * cos_c - sin_t * sin_c
            sin_e, cos_e = np.sin(self._elevation_rad)[channel], np.cos(self._elevation_rad)[channel]
        flat_m = range_m * cos_e
        xyz = np.empty((3, len(row)), np.float32)
        xyz[0], xyz[1], xyz[2] = flat_m * sin_a, flat_m * cos_a, range_m * sin_e
        packet_ns = self._packet_ns(rows)
        time_ns = packet_ns[row] + self._since_packet_ns(returns)[row, block] + (self._model.firing_us * 1000).astype(np.int64)[channel]
        return Points(xyz, units["reflectivity"][row, block, channel].astype(np.float32), time_ns,
                      distance.size - len(row), int(packet_ns[0]))

    @staticmethod
    def _packet_ns(rows):
        """The clock of the sensor. Years count from 1900, or from 2000 below 70; in year 0 the rest are seconds since 1970."""
        date = rows["date"].astype(np.int64)
        seconds_ns = date[:, 2:] @ (256 ** np.arange(3, -1, -1)) * NS
        year = date[:, 0] + np.where(date[:, 0] < 70, 2000, 1900)
        return np.where(date[:, 0] == 0, seconds_ns, calendar_ns(year, *date.T[1:])) + rows["us"].astype(np.int64) * 1000

    def _since_packet_ns(self, returns):
        """Time of each block since that of its packet, (packets, blocks)."""
        model = self._model
        number = np.arange(model.blocks) // returns[:, None]
        if model.from_last:
            number = number - (model.blocks // returns[:, None] - 1)
        return ((model.start_us + model.block_us * number) * 1000).astype(np.int64)


def _returns(mode):
    """Returns per firing: 0x39 and above are modes of two, 0x3d is of three."""
    return np.where(mode == 0x3D, 3, np.where(mode >= 0x39, 2, 1))


def _drop_doubles(distance, returns):
    """Drops double returns: if strongest and last are the same return, blocks have it twice, and one is kept."""
    for count in (2, 3):
        rows = np.flatnonzero(returns == count)
        for block in range(distance.shape[1]) if len(rows) else ():
            if block % count:
                first = distance[rows, block - block % count]
                distance[rows, block] = np.where(distance[rows, block] == first, 0, distance[rows, block])
