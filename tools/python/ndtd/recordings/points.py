"""PointCloud2 and its relatives to arrays: positions, intensity, and the times of the points relative to the stamp.

Fields of the common drivers (README of each): Velodyne `time` (float32 s), Ouster `t` (uint32 ns), Hesai and RoboSense
`timestamp` (float64 s, absolute), Livox `offset_time` (uint32 ns) and `timestamp` (float64 ns, absolute), Autoware
`time_stamp` (uint32 ns, or float64 s and absolute), Aeva `time_offset_ns` (int32), FAST-LIO's `curvature` (float32 ms),
Luminar `time_sec` and `time_nsec` (uint32, absolute).
"""
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np

DTYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8"}
TIME_FIELDS = ("time", "t", "time_s", "time_stamp", "timestamp", "offset_time", "time_offset", "time_offset_ns", "time_ns",
               "time_us", "time_ms", "relative_time", "point_time_offset", "t_us", "t_ns", "dt")
TIME_PAIRS = (("time_sec", "time_nsec"), ("timestamp_sec", "timestamp_nsec"), ("timestamp_s", "timestamp_ns"),
              ("ts_sec", "ts_nsec"), ("sec", "nsec"))
INTENSITY_FIELDS = ("intensity", "reflectivity", "reflectance", "i")
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
MOST_STEP = 65536  # bytes of a point
OTHER_CLOCK_S = 10.0  # no sweep lasts longer: larger times are those of a clock
USUAL_SWEEP_S = (5e-4, 5.0)
STRICT_SWEEP_S = (2e-3, 2.0)  # a factor of 1000: exactly one unit fits
CLOCK_S = (1e8, 1e10)  # 1973 to 2286
TURN_S = 0.1  # of most sensors
STAMP_SWEEPS = 1.1  # a stamp lies this near to the sweep, as ndtd has it


class PointError(ValueError):
    """A cloud that cannot be read."""


def record_dtype(fields, point_step: int, big_endian: bool = False) -> np.dtype:
    """The dtype of a point; fields: (name, offset, datatype) of sensor_msgs/PointField. PointError: they do not fit."""
    order = ">" if big_endian else "<"
    names, formats, offsets = [], [], []
    for name, offset, datatype in fields:
        if name and datatype in DTYPES and name not in names:
            names.append(name)
            formats.append(order + DTYPES[datatype])
            offsets.append(offset)
    if not 0 < point_step <= MOST_STEP:
        raise PointError(f"point_step is {point_step}, the limits are 1 and {MOST_STEP}")
    try:
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": point_step})
    except (ValueError, OverflowError):
        raise PointError(f"its fields do not fit into a point of {point_step} bytes") from None


def records(data, dtype: np.dtype, height: int, width: int, row_step: int) -> np.ndarray:
    """The points of a PointCloud2, shape (height * width,), without a copy where rows have no padding.

    PointError: fewer bytes than points. A row_step that does not fit is taken for that of rows without padding.
    """
    data = np.frombuffer(data, np.uint8)
    packed = width * dtype.itemsize
    if row_step < packed or row_step * (height - 1) + packed > data.size:
        row_step = packed
    if height == 0 or width == 0:
        return np.empty(0, dtype)
    if row_step * (height - 1) + packed > data.size:
        raise PointError(f"{data.size} bytes are fewer than those of {height} x {width} points of {dtype.itemsize} bytes")
    if row_step == packed or height == 1:
        return data[: packed * height].view(dtype)
    rows = np.lib.stride_tricks.as_strided(data, (height, packed), (row_step, 1), writeable=False)
    return np.ascontiguousarray(rows).reshape(-1).view(dtype)


def positions(points: np.ndarray) -> np.ndarray:
    """x y z of records, (3, N), float64 where a coordinate is."""
    names = points.dtype.names or ()
    if not {"x", "y", "z"} <= set(names):
        raise PointError(f"a point has no x, y and z, but {', '.join(names) or 'nothing'}")
    if any(points.dtype[name].kind != "f" for name in "xyz"):
        raise PointError("x, y and z are integers: their unit is not known")
    wide = any(points.dtype[name].itemsize == 8 for name in "xyz")
    columns = np.empty((3, len(points)), np.float64 if wide else np.float32)
    for row, name in zip(columns, "xyz"):
        row[:] = points[name]
    return columns


def returns(xyz: np.ndarray) -> Optional[np.ndarray]:
    """Mask of the points (3, N) that are returns: finite, not all zero as drivers fill gaps of organised clouds. None: all."""
    x, y, z = xyz
    with np.errstate(invalid="ignore", over="ignore"):
        good = np.isfinite(x + y + z)
        good &= (x != 0) | (y != 0) | (z != 0)
    return None if good.all() else good


def intensity(points: np.ndarray) -> Optional[np.ndarray]:
    """(N,) float32, or None."""
    for name in INTENSITY_FIELDS:
        if name in (points.dtype.names or ()):
            return points[name].astype(np.float32)
    return None


def only(values: Any, good: Optional[np.ndarray]) -> Any:
    """Keeps the values of the last axis that are good; None for either: returns them as they are."""
    return values if values is None or good is None else np.compress(good, values, axis=-1)


@dataclass
class Times:
    """The times of the points of one topic. Its unit is decided by the first scan that tells it, and kept."""

    unit_s: Optional[float] = None
    notes: set = field(default_factory=set)
    places: dict = field(default_factory=dict)  # where the stamp lies in the sweep: number of scans
    strays: int = 0  # points whose time lies far outside the sweep: it is NaN

    def of(self, points: np.ndarray, stamp_ns: int, good: Optional[np.ndarray] = None) -> Optional[np.ndarray]:
        """Times of the good points relative to the stamp [s], float64, or None where they have none."""
        names = self._fields(points.dtype.names or ())
        columns = [only(points[name], good) for name in names]
        if not names or len(columns[0]) == 0:
            return None
        if len(columns) == 2:
            seconds = (columns[0].astype(np.int64) * 1_000_000_000 + columns[1].astype(np.int64) - stamp_ns) * 1e-9
        else:
            seconds = self._seconds(names[0], columns[0], stamp_ns)
        return None if seconds is None else self._near(seconds, names[0])

    @staticmethod
    def _fields(names):
        """The field of the times, or the two of seconds and nanoseconds; empty where there is none."""
        pair = next((pair for pair in TIME_PAIRS if set(pair) <= set(names)), None)
        return pair or tuple(name for name in (*TIME_FIELDS, "curvature") if name in names)[:1]

    def _seconds(self, name, values, stamp_ns):
        if values.dtype.kind != "f":
            values = values.astype(np.int64)
        low, high = _range(values, 0)
        if not low <= high:
            return None
        if name == "curvature" and not 1.0 <= high - low < 1e4:
            return None  # that of a surface, as PCL computes it: at most 1/3
        if values.dtype.itemsize == 4 and values.dtype.kind == "f" and abs(float(high)) > 1e6:
            self.notes.add(f"times of points are left out: '{name}' is a clock in float32, which resolves {np.spacing(high):.3g}")
            return None
        absolute = self._absolute_unit(values, float(low), float(high))
        if absolute is not None:
            return _since(values, absolute, stamp_ns)
        if self.unit_s is None:
            self.unit_s = self._relative_unit(name, values.dtype.kind == "f", float(high) - float(low))
        return values.astype(np.float64) * (self.unit_s or _usual_unit(name, values.dtype.kind == "f"))

    def _absolute_unit(self, values, low, high):
        """Seconds per unit of times since 1970, or None; only float64 holds them."""
        if values.dtype.kind != "f" or values.dtype.itemsize < 8:
            return None
        for unit in (self.unit_s,) if self.unit_s else (1e-9, 1e-6, 1e-3, 1.0):
            if CLOCK_S[0] <= low * unit and high * unit < CLOCK_S[1] and (high - low) * unit <= OTHER_CLOCK_S:
                return unit
        return None

    @staticmethod
    def _relative_unit(name, is_float, span):
        usual = _usual_unit(name, is_float)
        if USUAL_SWEEP_S[0] <= span * usual <= USUAL_SWEEP_S[1] or name.endswith(("_ns", "_us", "_ms")):
            return usual
        for unit in (1.0, 1e-3, 1e-6, 1e-9):
            if STRICT_SWEEP_S[0] <= span * unit < STRICT_SWEEP_S[1]:
                return unit
        return None

    def _near(self, seconds, name):
        """Times of another clock are moved to the stamp, strays become NaN; those that are all equal say nothing."""
        low, high = _range(seconds, TURN_S)
        if not high > low:
            self.notes.add(f"times of points are left out: '{name}' is the same for all points of a scan")
            return None
        if high - low > OTHER_CLOCK_S:
            self.notes.add(f"times of points are left out: '{name}' spans {high - low:.3g} s; --time-unit?")
            return None
        if not (seconds.min() >= low and seconds.max() <= high):  # NaN, too
            with np.errstate(invalid="ignore"):
                kept = (seconds >= low) & (seconds <= high)
            self.strays += len(seconds) - int(np.count_nonzero(kept))
            seconds = np.where(kept, seconds, np.nan)
        if not is_near_stamp(low, high):
            self.notes.add(f"'{name}' is of another clock than the stamps: moved, as if the stamp were in the middle of the sweep")
            return seconds - (low + high) / 2
        self._count_place(low, high)
        return seconds

    def _count_place(self, low, high):
        span = high - low
        for name, distance in (("begin", low), ("end", high), ("middle", (low + high) / 2)):
            if abs(distance) <= 0.1 * span:
                break
        else:
            name = "outside" if low > 0 or high < 0 else "inside"
        self.places[name] = self.places.get(name, 0) + 1


def is_near_stamp(low_s: float, high_s: float) -> bool:
    """Whether a sweep may lie so about its stamp: at its begin, in it, at its end, a sweep late."""
    return max(low_s, -high_s) <= STAMP_SWEEPS * max(high_s - low_s, TURN_S)


def _range(values, margin):
    """The least and the largest of the finite values without strays: those that are farther outside the 10 and 90 %
    quantiles than these are apart, plus the margin, as ndtd has it. (inf, -inf): there is none."""
    low, high = values.min(), values.max()
    if not np.isfinite(low) or not np.isfinite(high):
        values = values[np.isfinite(values)]
        if len(values) == 0:
            return np.inf, -np.inf
        low, high = values.min(), values.max()
    low, high = float(low), float(high)
    if high - low <= 2 * margin:
        return low, high
    tenth = len(values) // 10
    ordered = np.partition(values, (tenth, len(values) - 1 - tenth))
    first, last = float(ordered[tenth]), float(ordered[len(values) - 1 - tenth])
    reach = last - first + margin
    if low >= first - reach and high <= last + reach:
        return low, high
    values = values[(values >= first - reach) & (values <= last + reach)]
    return float(values.min()), float(values.max())


def _usual_unit(name, is_float):
    for suffix, unit in (("_ns", 1e-9), ("_us", 1e-6), ("_ms", 1e-3)):
        if name.endswith(suffix):
            return unit
    if name == "curvature":
        return 1e-3
    return 1.0 if is_float else 1e-9


def _since(values, unit, stamp_ns):
    """float64 seconds resolve 0.24 us: the whole seconds of the stamp go off first."""
    per_s = round(1 / unit)
    whole_s, rest_ns = divmod(stamp_ns, 1_000_000_000)
    return (values - float(whole_s) * per_s) * unit - rest_ns * 1e-9
