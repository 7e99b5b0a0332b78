"""PointCloud2 and its relatives to arrays: positions, intensity, and the times of the points relative to the stamp.

Fields of the common drivers (README of each): Velodyne `time` (float32 s), Ouster `t` (uint32 ns), Hesai and RoboSense
`timestamp` (float64 s, absolute), Livox `offset_time` (uint32 ns) and `timestamp` (float64 ns, absolute), Autoware
`time_stamp` (uint32 ns), FAST-LIO's `curvature` (float32 ms), Luminar `time_sec` and `time_nsec` (uint32, absolute).
"""
import numpy as np

DTYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8"}
TIME_FIELDS = ("time", "t", "time_s", "time_stamp", "timestamp", "offset_time", "time_offset", "curvature")
INTENSITY_FIELDS = ("intensity", "reflectivity", "i")
OTHER_CLOCK_S = 10.0  # no sweep lasts longer: larger times are those of a clock


class PointError(ValueError):
    """A cloud that cannot be read."""


def record_dtype(fields, point_step, big_endian=False):
    """The dtype of a point; fields: (name, offset, datatype) of sensor_msgs/PointField."""
    order = ">" if big_endian else "<"
    names, formats, offsets = [], [], []
    for name, offset, datatype in fields:
        if name and datatype in DTYPES and name not in names:
            names.append(name)
            formats.append(order + DTYPES[datatype])
            offsets.append(offset)
    try:
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": point_step})
    except ValueError as error:
        raise PointError(f"fields do not fit into a point of {point_step} bytes: {error}") from None


def records(data, dtype, height, width, row_step):
    """The points of a PointCloud2 as an array of shape (height * width,), without a copy where rows have no padding."""
    data = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data
    packed = width * dtype.itemsize
    if row_step < packed or row_step * height > data.size:
        if packed * height > data.size:
            raise PointError(f"{data.size} bytes for {height} x {width} points of {dtype.itemsize} bytes")
        row_step = packed
    if row_step == packed or height == 1:
        return data[: packed * height].view(dtype)
    rows = data[: row_step * height].reshape(height, row_step)[:, :packed]
    return np.ascontiguousarray(rows).reshape(-1).view(dtype)


def positions(points):
    names = points.dtype.names or ()
    if not {"x", "y", "z"} <= set(names):
        raise PointError(f"a point has no x, y and z, but {', '.join(names) or 'nothing'}")
    wide = any(points.dtype[name] == np.float64 for name in "xyz")
    out = np.empty((len(points), 3), np.float64 if wide else np.float32)
    for k, name in enumerate("xyz"):
        out[:, k] = points[name]
    return out


def intensity(points):
    for name in INTENSITY_FIELDS:
        if name in (points.dtype.names or ()):
            return points[name].astype(np.float32)
    return None


def _first_finite(values):
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    return float(finite[0]) if len(finite) else None


def _float_unit(name, values):
    """Seconds per unit of a field of floats, and whether it tells absolute times."""
    if name == "curvature":
        return 1e-3, False
    first = _first_finite(values)
    if first is None:
        return 1.0, False
    for unit in (1e-9, 1e-6, 1e-3, 1.0):
        if 1e8 <= abs(first) * unit < 1e10:  # 1973 to 2286
            return unit, True
    span = float(np.nanmax(values) - np.nanmin(values))
    for unit in (1.0, 1e-3, 1e-6, 1e-9):
        if span * unit <= OTHER_CLOCK_S:
            return unit, False
    return 1.0, False


def times(points, stamp_ns, unit_s=None):
    """Times relative to the stamp [s], float64, or None. unit_s: seconds per unit of the field, where it is known."""
    names = points.dtype.names or ()
    if {"time_sec", "time_nsec"} <= set(names):
        ns = points["time_sec"].astype(np.int64) * 1_000_000_000 + points["time_nsec"].astype(np.int64)
        return _relative(ns - stamp_ns)
    name = next((name for name in TIME_FIELDS if name in names), None)
    if name is None:
        return None
    values = points[name]
    if values.dtype.kind in "iu":
        return values.astype(np.int64) * (unit_s or 1e-9)
    scale, is_absolute = _float_unit(name, values) if unit_s is None else (unit_s, abs(_first_finite(values) or 0) * unit_s > 1e8)
    if not is_absolute:
        return values.astype(np.float64) * scale
    if scale == 1.0:  # float64 seconds resolve 0.24 us: take the whole seconds of the stamp off first
        whole = stamp_ns // 1_000_000_000
        return _far((values - whole) - (stamp_ns % 1_000_000_000) * 1e-9)
    return _far((values - stamp_ns * 1e-9 / scale) * scale)


def _relative(ns):
    return _far(ns * 1e-9)


def _far(seconds):
    """Times of another clock become relative to the first one."""
    first = _first_finite(seconds)
    if first is not None and abs(first) > OTHER_CLOCK_S:
        return seconds - first
    return seconds
