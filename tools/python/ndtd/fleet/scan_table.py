"""Tables of a run: the Arrow schemas SCANS and RUNS, and the file of one replay, which has its scans and, in the metadata, its run row.

    table = read_results("results.jsonl", bag, config, truth)
    write(path, table, {**measures(table), "bag": ..., ...})
    read_run_row(path)

Null is what a scan does not have: numbers without a pose, errors without ground truth or trust.
"""
import contextlib
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, Optional

import numpy as np

from .._extras import need
from ..recordings.messages import MOST_STAMP_NS
from ..report.pose_errors import differences
from ..report.run import ARRAYS, MOST_LINE, MOST_M, MOST_NUMBER, OFF_DEG, OFF_M, truth_at
from ..ros.from_ndtd import TRUSTED_STATES
from .run_folder import FleetError

pa: Any = need("pyarrow", "fleet")
pc: Any = need("pyarrow.compute", "fleet")
pj: Any = need("pyarrow.json", "fleet")
pq: Any = need("pyarrow.parquet", "fleet")

_TEXT = pa.dictionary(pa.int32(), pa.string())
_TEXTS = ["bag", "config", "outcome", "state", "reason"]
_POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")
_DEVIATIONS = ("sd_x", "sd_y", "sd_z", "sd_rx", "sd_ry", "sd_rz")  # square roots of the diagonal of the covariance
_SCORES = ("confidence", "match_ratio", "coverage", "nvtl_normalized", "innovation")
_COUNTS = ("iterations", "evaluations")
_STAGES = ("decode_us", "queue_us", "preprocess_us", "upload_us", "align_us", "publish_us")
_ERRORS = ("error_m", "error_deg", "error_forward_m", "error_left_m", "error_up_m")
_TOTAL = ("decode_us", "queue_us", "preprocess_us", "align_us", "publish_us")  # upload is a part of align

SCANS: Any = pa.schema([
    ("bag", _TEXT), ("config", _TEXT), ("seq", pa.int64()), ("stamp_ns", pa.int64()), ("outcome", _TEXT), ("state", _TEXT),
    ("reason", _TEXT), ("trusted", pa.bool_()), *((name, pa.float64()) for name in _POSE),
    *((name, pa.float32()) for name in _DEVIATIONS + _SCORES), *((name, pa.int32()) for name in _COUNTS),
    *((name, pa.float32()) for name in _STAGES), *((name, pa.float64()) for name in _ERRORS)])

RUNS: Any = pa.schema([
    ("status", pa.string()), ("bag", pa.string()), ("bag_hash", pa.string()), ("bag_bytes", pa.int64()), ("config", pa.string()),
    ("config_hash", pa.string()), ("map_id", pa.string()), ("version", pa.string()), ("scans", pa.int64()), ("trusted", pa.int64()),
    ("converged", pa.int64()), ("wrong", pa.int64()), ("first_ns", pa.int64()), ("last_ns", pa.int64()), ("duration_s", pa.float64()),
    ("distance_m", pa.float64()), ("untrusted_s", pa.float64()),
    *((f"{name}_{level}", pa.float64()) for name in ("error_m", "error_deg") for level in ("median", "p95", "max")),
    ("confidence_median", pa.float64()), ("confidence_min", pa.float64()), ("align_ms_p50", pa.float64()), ("align_ms_p95", pa.float64()),
    ("total_ms_p50", pa.float64()), ("total_ms_p95", pa.float64()), ("total_ms_max", pa.float64()), ("trajectory_hash", pa.string()),
    ("pieces", pa.int64()), ("seams_removed", pa.int64()), ("damage", pa.string()), ("hints", pa.list_(pa.string())),
    ("failure", pa.string()), ("failure_kind", pa.string()), ("attempts", pa.int64()), ("worker", pa.string()), ("replay_s", pa.float64()),
    ("cpu_s", pa.float64()), ("peak_memory_bytes", pa.int64()), ("ended_ns", pa.int64())])

_RUN_ROW = b"ndtd.run"  # key of the metadata
_BLOCK = 1 << 20  # bytes of results.jsonl that are parsed at once
_USED_STEPS = 3.0  # a scan stands for at most so many usual steps of time, as in verdict.py
_LINE: Any = pa.schema([
    ("seq", pa.int64()), ("stamp_ns", pa.int64()), *((name, pa.string()) for name in ("outcome", "state", "reason", "error")),
    ("pose", pa.list_(pa.float64())), ("covariance", pa.list_(pa.float64())), *((name, pa.float64()) for name in _SCORES + _STAGES),
    *((name, pa.int32()) for name in _COUNTS)])


# ---- results.jsonl


def read_results(source: Any, bag: str, config: str, truth: "Optional[tuple[np.ndarray, np.ndarray]]" = None) -> Any:
    """Table SCANS of what `ndtd --results` writes: a path, or an open binary file.

    bag: url, config: name, truth: stamps (K,) int64 [ns] and poses (K, 7), T_map_base. FleetError: not results of ndtd, or none."""
    with contextlib.nullcontext(source) if hasattr(source, "read") else open(source, "rb") as stream:
        blocks = [_table_of(found, bag, config, truth) for found in _blocks(stream, "results" if stream is source else str(source))]
    if not blocks:
        raise FleetError(f"{'results' if stream is source else source}: no result in it")
    return blocks[0] if len(blocks) == 1 else pa.concat_tables(blocks).unify_dictionaries().combine_chunks()


def _blocks(stream: Any, name: str) -> "Iterator[tuple[Any, np.ndarray, np.ndarray]]":
    """Record batches of lines with their poses and covariances, _BLOCK bytes of the file at a time."""
    parse = pj.ParseOptions(explicit_schema=_LINE, unexpected_field_behavior="ignore")
    number = 0
    while True:
        data = stream.read(_BLOCK)
        if len(data) == _BLOCK:
            data += stream.readline(MOST_LINE)
        if not data:
            return
        try:
            read = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
            batches = pj.read_json(pa.BufferReader(data), read_options=read, parse_options=parse).to_batches()
            found = [(batch, *_checked(batch)) for batch in batches if len(batch)]
        except (ValueError, OverflowError) as error:  # pyarrow.ArrowInvalid is a ValueError
            why = " ".join(str(error).split())[:100]
            raise FleetError(f"{name}: not what ndtd --results writes, after line {number}: {why}") from None
        number += sum(len(batch) for batch in batches)
        yield from found


def _checked(lines: Any) -> "tuple[np.ndarray, np.ndarray]":
    """Poses (N, 7) and covariances (N, 36)."""
    for name in ("seq", "stamp_ns"):
        if lines[name].null_count:
            raise ValueError(f"{name} is missing")
    if numbers(lines["seq"]).min() < 0 or not (np.abs(numbers(lines["stamp_ns"])) <= MOST_STAMP_NS).all():
        raise ValueError("seq or stamp_ns is out of range")
    pose, covariance = _rows(lines, "pose"), _rows(lines, "covariance")
    if (np.abs(pose[:, :3]) > MOST_M).any():
        raise ValueError(f"pose is beyond {MOST_M:g} m")
    if (np.abs(np.linalg.norm(pose[:, 3:], axis=1) - 1.0) >= 0.01).any():
        raise ValueError("the quaternion of pose does not have length 1")
    if (np.abs(covariance) > MOST_NUMBER).any():
        raise ValueError(f"covariance has a number beyond {MOST_NUMBER:g}")
    return pose, covariance


def _rows(lines: Any, name: str) -> np.ndarray:
    """(N, k) of a column of arrays; NaN where a line has none. ValueError: of another length."""
    column, count = lines[name], ARRAYS[name]
    there = _bits(column.is_valid())
    if (np.diff(numbers(column.offsets))[there] != count).any():
        raise ValueError(f"{name} is not {count} numbers")
    out = np.full((len(column), count), np.nan)
    out[there] = numbers(column.flatten()).reshape(-1, count)
    return out


def _table_of(found: "tuple[Any, np.ndarray, np.ndarray]", bag: str, config: str,
              truth: "Optional[tuple[np.ndarray, np.ndarray]]") -> Any:
    lines, pose, covariance = found
    size = len(lines)
    texts = {name: lines[name] for name in ("outcome", "state", "reason")}
    failed = lines["error"].is_valid()
    if lines["error"].null_count < size:  # ndtd could not put it into a message
        texts["outcome"] = pc.if_else(failed, "rejected", texts["outcome"])
        texts["reason"] = pc.if_else(failed, lines["error"], texts["reason"])
    columns: "dict[str, Any]" = {name: (value.fill_null("") if value.null_count else value).dictionary_encode()
                                 for name, value in texts.items()}
    told = [state or "" for state in TRUSTED_STATES]
    trusted = _is_one_of(columns["state"], told) & ~np.isnan(pose[:, 0])
    columns.update(bag=_constant(bag, size), config=_constant(config, size), seq=lines["seq"], stamp_ns=lines["stamp_ns"], trusted=trusted,
                   **{name: lines[name] for name in _COUNTS}, **{name: _plausible(lines, name) for name in _SCORES + _STAGES})
    with np.errstate(invalid="ignore"):
        deviations = np.sqrt(covariance[:, ::7])
    errors = _errors(pose, trusted, numbers(lines["stamp_ns"]), truth)
    for names, values in ((_POSE, pose), (_DEVIATIONS, deviations), (_ERRORS, errors)):
        columns.update(zip(names, values.T))
    return pa.table([_column(columns[field.name], field.type) for field in SCANS], schema=SCANS)


def numbers(column: Any) -> np.ndarray:
    """A column or array of numbers; as float64 with NaN where there are nulls. Its own to_numpy() imports pandas, in every worker."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(array):
        return np.empty(0, _kind(array.type))
    if pa.types.is_boolean(array.type):
        return _bits(array)
    found = np.frombuffer(array.buffers()[1], _kind(array.type))[array.offset:array.offset + len(array)]
    return np.where(_bits(array.is_valid()), found, np.nan) if array.null_count else found


def _kind(kind: Any) -> Any:
    """The type of numpy; to_pandas_dtype() imports pandas in older versions of pyarrow."""
    return np.dtype({"float": "float32", "double": "float64"}.get(str(kind), str(kind)))


def _bits(array: Any) -> np.ndarray:
    """Bits of an array of booleans without nulls."""
    found = np.unpackbits(np.frombuffer(array.buffers()[1], np.uint8), bitorder="little")
    return found[array.offset:array.offset + len(array)].astype(bool)


def _is_one_of(column: Any, values: "Iterable[str]") -> np.ndarray:
    """(N,) bool, of a column of texts."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    good = np.array([one in values for one in array.dictionary.to_pylist()], bool)
    out: np.ndarray = good[numbers(array.indices)]
    return out


def _plausible(lines: Any, name: str) -> np.ndarray:
    out = numbers(lines[name])
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(out) <= MOST_NUMBER, out, np.nan)


def _constant(text: str, size: int) -> Any:
    data = text.encode()
    ends = np.array([0, len(data)], np.int32)
    words = pa.StringArray.from_buffers(1, pa.py_buffer(ends), pa.py_buffer(data))
    return pa.DictionaryArray.from_arrays(_column(np.zeros(size, np.int32), pa.int32()), words)


def _column(values: Any, kind: Any) -> Any:
    """Array of Arrow in which NaN is null; pa.array() would import pandas."""
    if not isinstance(values, np.ndarray):
        return values
    if pa.types.is_boolean(kind):
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))])
    values = np.ascontiguousarray(values, _kind(kind))
    known = ~np.isnan(values)
    valid = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(values)])


def _errors(pose: np.ndarray, trusted: np.ndarray, stamps: np.ndarray, truth: "Optional[tuple[np.ndarray, np.ndarray]]") -> np.ndarray:
    """(N, 5) of _ERRORS: of the trusted poses that have ground truth."""
    out = np.full((len(pose), len(_ERRORS)), np.nan)
    if truth is None or len(truth[0]) == 0:
        return out
    true = truth_at(*truth, stamps)
    at = np.flatnonzero(trusted & ~np.isnan(true[:, 0]))
    _, per_axis = differences(pose[at], true[at])
    out[at, 0] = np.linalg.norm(per_axis[:, :3], axis=1)
    out[at, 1] = np.degrees(np.linalg.norm(per_axis[:, 3:], axis=1))
    out[at, 2:] = per_axis[:, :3]
    return out


# ---- the run row


def measures(table: Any) -> "dict[str, Any]":
    """The columns of RUNS that follow from the scans of a replay, in the order of the bag; of no scan their number alone."""
    if not len(table):
        return {"scans": 0}
    stamps, trusted = numbers(table["stamp_ns"]), numbers(table["trusted"])
    merged = _is_one_of(table["outcome"], ("merged",))
    error_m, error_deg = _floats(table, "error_m"), _floats(table, "error_deg")
    confidence, align_ms = _floats(table, "confidence"), _floats(table, "align_us") / 1000.0
    total_ms = np.nansum(np.stack([_floats(table, name) for name in _TOTAL]), axis=0) / 1000.0
    position = np.stack([_floats(table, name)[trusted] for name in "xyz"], axis=1)
    with np.errstate(invalid="ignore"):
        wrong = (error_m > OFF_M) | (error_deg > OFF_DEG)
    return {
        "scans": len(table), "trusted": int(trusted.sum()), "converged": int(_is_one_of(table["outcome"], ("converged",)).sum()),
        "wrong": int(wrong.sum()), "first_ns": int(stamps.min()), "last_ns": int(stamps.max()),
        "duration_s": (int(stamps.max()) - int(stamps.min())) * 1e-9,
        "distance_m": float(np.linalg.norm(np.diff(position, axis=0), axis=1).sum()),
        "untrusted_s": float(_intervals_s(stamps)[~trusted & ~merged].sum()),
        **_levels("error_m", error_m, median=50, p95=95, max=100), **_levels("error_deg", error_deg, median=50, p95=95, max=100),
        **_levels("confidence", confidence, median=50, min=0), **_levels("align_ms", align_ms, p50=50, p95=95),
        **_levels("total_ms", total_ms, p50=50, p95=95, max=100)}


def _floats(table: Any, name: str) -> np.ndarray:
    return numbers(table[name]).astype(np.float64)


def _intervals_s(stamps: np.ndarray) -> np.ndarray:
    """Time that each scan stands for [s]: up to the next one, at most _USED_STEPS usual steps."""
    step = np.diff(stamps) * 1e-9
    usual = float(np.median(step[step > 0])) if (step > 0).any() else 0.0
    return np.append(np.clip(step, 0.0, _USED_STEPS * usual), usual)


def _levels(name: str, values: np.ndarray, **levels: int) -> "dict[str, Optional[float]]":
    """Percentiles; None without values. As numpy.percentile(), which takes longer for a hundred values than all else here."""
    values = np.sort(values[~np.isnan(values)])
    if not len(values):
        return {f"{name}_{key}": None for key in levels}
    out: "dict[str, Optional[float]]" = {}
    for key, level in levels.items():
        below, part = divmod((len(values) - 1) * level, 100)
        step = values[min(below + 1, len(values) - 1)] - values[below]
        out[f"{name}_{key}"] = float(values[below] + step * part / 100)
    return out


# ---- the file of one replay


def write(path: Any, table: Any, run_row: "dict[str, Any]") -> None:
    """Writes one Parquet file; columns of RUNS that run_row lacks are null. Equal input gives equal bytes. See RunFolder.new_file()."""
    unknown = set(run_row) - set(RUNS.names)
    if unknown:
        raise ValueError(f"not columns of RUNS: {', '.join(sorted(unknown))}")
    row = {name: _plain(run_row.get(name)) for name in RUNS.names}
    if table.schema != SCANS:
        table = table.cast(SCANS)
    table = table.replace_schema_metadata({_RUN_ROW: json.dumps(row)})
    pq.write_table(table, path, compression="snappy", use_dictionary=_TEXTS, write_statistics=False)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_run_row(path: Any) -> "dict[str, Any]":
    """The run row of such a file; reads its footer alone. FleetError: not one, or not whole."""
    try:
        metadata = pq.read_metadata(path).metadata
        row = json.loads(metadata[_RUN_ROW])
        return {name: row[name] for name in RUNS.names}
    except FileNotFoundError:
        raise FleetError(f"{path}: no such file") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FleetError(f"{path}: not the result of a replay: {' '.join(str(error).split())[:100]}") from None


def read_scans(path: Any, columns: "Optional[list[str]]" = None) -> Any:
    """The table of such a file, or some columns. FleetError as read_run_row()."""
    try:
        with open(path, "rb") as stream:
            return pq.ParquetFile(stream).read(columns)
    except FileNotFoundError:
        raise FleetError(f"{path}: no such file") from None
    except (OSError, ValueError, KeyError) as error:
        raise FleetError(f"{path}: not the result of a replay: {' '.join(str(error).split())[:100]}") from None
