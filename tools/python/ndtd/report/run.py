"""The folder of a replay (`ndtd --replay BAG --map MAP --output FOLDER`) as arrays.

    run = Run("folder")
    run.time_s, run.pose, run.truth, run.values["confidence"]

Row i is scan i of the replay; what a scan does not have is NaN (numbers) or "" (text). Poses are x y z qx qy qz qw, T_map_base [m].
"""
import csv
import json
import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Optional

import numpy as np

from ..recordings.messages import MOST_STAMP_NS
from ..ros.from_ndtd import TRUSTED_STATES
from . import bag_records
from .pose_errors import interpolate

OFF_M, OFF_DEG = 1.0, 5.0  # a pose with a larger error is off, as in the summary of ndtd
STAGES = ("decode", "queue", "preprocess", "upload", "align", "publish")  # upload is a part of align
NUMBERS = ("confidence", "innovation", "margin", "iterations", "evaluations", "oscillation", "hypotheses", "match_ratio", "coverage",
           "nvtl", "nvtl_normalized", "transform_probability", "queue_depth", "drop_counter") + tuple(f"{one}_us" for one in STAGES)
ARRAYS = {"pose": 7, "guess": 7, "covariance": 36, "twist": 6}
LEVELS = ("lateral", "longitudinal", "vertical", "heading")  # of protection_level
MOST_M, MOST_NUMBER = 1e8, 1e12  # coordinates of the wire schema; what is larger was not measured
TRUTH_GAP_S = 0.5  # between ground truth that is interpolated, as in ndtd
BLOCK = 2000  # results that are held as dicts at once
MOST_LINE = 1 << 18  # bytes of a result
MAKE = "`ndtd --replay BAG --map MAP --output FOLDER` writes one"


class RunError(ValueError):
    """A folder that cannot be read; one line with file, line and reason."""


class Run:
    """One replay. Everything but the results is optional: a folder without it gives None, or empty.

    seq (N,) uint64, stamp_ns (N,) int64, outcome, state, reason (N,) str, weak_axes (N,) int: their number,
    pose, guess (N, 7), covariance (N, 6, 6): x y z rx ry rz in map axes, twist (N, 6), values: NUMBERS -> (N,),
    protection (N, 4): lateral, longitudinal, vertical [m], heading [rad], inf: no level, NaN: off, unsafe (N,) bool,
    trusted (N,) bool: whether ndtd --out has the pose, truth (N, 7): T_map_base at the stamps, summary: that of --summary,
    settings: that of --print-config ("section.key" -> text), or {}."""

    def __init__(self, folder: Any):
        self.folder = Path(folder)
        if not self.folder.exists():
            raise RunError(f"{self.folder}: no such folder; {MAKE}")
        if not (self.folder / "results.jsonl").is_file():
            raise RunError(f"{self.folder}: not the folder of a replay: results.jsonl is not there; {MAKE}")
        self.summary: "dict[str, Any]" = self._json("summary.json")
        self._read_results()

    def __len__(self) -> int:
        return len(self.seq)

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.resolve().name

    @property
    def is_temporary(self) -> bool:
        """Whether ndtd removes the folder (--report without --output)."""
        return self.name.startswith("ndtd-replay-")

    def path_of(self, key: str) -> "Optional[Path]":
        """A file that the summary names ("bag", "map"): as it is, or in the folder or beside it, by its path or its name there; None:
        not there."""
        named = str(self.summary.get(key) or "")
        places = (Path(named), *(place / name for name in (named, Path(named).name) for place in (self.folder, self.folder.parent)))
        return next((place for place in places if place.exists()), None) if named else None

    def number_of(self, key: str) -> float:
        """A number of the summary; NaN where it has none."""
        value = self.summary.get(key)
        return _number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan

    def texts_of(self, *keys: str) -> "list[str]":
        """A list of the summary, such as "settings", "files"."""
        value: Any = self.summary
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return [str(one) for one in value] if isinstance(value, list) else []

    # ---- results

    def _read_results(self) -> None:
        path = self.folder / "results.jsonl"
        blocks = [_columns(rows) for rows in _blocks(_result_rows(path))]
        if not blocks:
            raise RunError(f"{path}: contains no result")
        with path.open("rb") as stream:
            stream.seek(-1, 2)
            self.ends_early = stream.read(1) != b"\n"
        joined = {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]}
        self.seq, self.stamp_ns = joined["seq"], joined["stamp_ns"]
        self.outcome, self.state, self.reason = (joined[key].astype(str) for key in ("outcome", "state", "reason"))
        self.weak_axes = joined["weak_axes"]
        self.pose, self.guess, self.twist = joined["pose"], joined["guess"], joined["twist"]
        self.covariance = joined["covariance"].reshape(-1, 6, 6)
        self.values = {key: joined[key] for key in NUMBERS}
        self.protection, self.unsafe = joined["protection_level"], joined["unsafe"]
        self.map_id = str(self.summary.get("map_id") or f"{int(joined['map_id'][-1]):016x}")
        self.config_hash = f"{int(joined['config_hash'][-1]):016x}"
        told = np.array([state or "" for state in TRUSTED_STATES])
        self.trusted = ~np.isnan(self.pose[:, 0]) & np.isin(self.state, told)

    @cached_property
    def time_s(self) -> np.ndarray:
        """(N,) seconds after the first scan."""
        out: np.ndarray = (self.stamp_ns - self.stamp_ns[0]) * 1e-9
        return out

    @cached_property
    def has_truth(self) -> bool:
        return bool(np.isfinite(self.truth[:, 0]).any())

    @cached_property
    def is_compared(self) -> np.ndarray:
        """(N,) bool: trusted poses with ground truth; errors are those of these."""
        out: np.ndarray = self.trusted & np.isfinite(self.truth[:, 0])
        return out

    @cached_property
    def distance_m(self) -> np.ndarray:
        """(N,) way along the ground truth, or else along the trusted poses; constant where there is none."""
        pose = self.truth if self.has_truth else np.where(self.trusted[:, None], self.pose, np.nan)
        known = np.flatnonzero(np.isfinite(pose[:, 0]))
        if len(known) == 0:
            return np.zeros(len(self))
        way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(pose[known, :3], axis=0), axis=1))])
        at = np.searchsorted(known, np.arange(len(self)), side="right") - 1
        return way[np.maximum(at, 0)]

    # ---- the other files

    def _json(self, name: str) -> "dict[str, Any]":
        path = self.folder / name
        if not path.exists():
            return {}
        if not path.is_file():
            raise RunError(f"{path}: is not a file")
        try:
            out = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise RunError(f"{path}: not JSON: {error}") from None
        if not isinstance(out, dict):
            raise RunError(f"{path}: not a summary of ndtd")
        return out

    @cached_property
    def truth(self) -> np.ndarray:
        """(N, 7): of truth.tum, else of the messages `truth` in points.bag, else in the bag of the replay; NaN where none is near."""
        tum, stamps = self.folder / "truth.tum", np.empty(0, np.int64)
        if tum.is_file():
            stamps, poses = _read_tum(tum)
        for bag in (self.folder / "points.bag", self.path_of("bag")):
            if not len(stamps) and bag is not None and bag.is_file():
                stamps, poses = bag_records.truth(bag)
        return truth_at(stamps, poses, self.stamp_ns) if len(stamps) else np.full((len(self), 7), np.nan)

    def iterations_of(self, scans: "Iterable[int]") -> "dict[int, list[dict[str, str]]]":
        """The rows `iteration` of timing.csv of some rows of the run: scan -> rows with the column names as keys."""
        wanted = {int(self.seq[scan]): scan for scan in scans}
        out: "dict[int, list[dict[str, str]]]" = {scan: [] for scan in wanted.values()}
        if (self.folder / "timing.csv").is_file() and wanted:
            for row in self._iteration_rows():
                if int(row["seq"]) in wanted:
                    out[wanted[int(row["seq"])]].append(row)
        return out

    def _iteration_rows(self) -> "Iterator[dict[str, str]]":
        path = self.folder / "timing.csv"
        with path.open("rb") as stream:
            header = stream.readline().decode("utf-8", "replace").strip().split(",")
            if header[:2] != ["row", "seq"]:
                raise RunError(f"{path}: not a file of ndtd --timing: it begins with {','.join(header)[:60]!r}")
            lines = (line.decode("utf-8", "replace") for line in stream if line.startswith(b"iteration,"))
            try:
                for cells in csv.reader(lines):
                    if len(cells) == len(header) and cells[1].isdecimal():
                        yield dict(zip(header, cells))
            except csv.Error as error:
                raise RunError(f"{path}: not a file of ndtd --timing: {error}") from None

    @cached_property
    def settings(self) -> "dict[str, str]":
        """"section.key" -> text of config.yaml."""
        path = self.folder / "config.yaml"
        return flat_yaml(path.read_text(encoding="utf-8", errors="replace")) if path.is_file() else {}


# ---- results.jsonl


def _result_rows(path: Path) -> "Iterator[tuple[int, dict[str, Any]]]":
    """Line numbers and results, without a last line that its writer did not end."""
    with path.open("rb") as stream:
        for number, line in enumerate(iter(lambda: stream.readline(MOST_LINE + 1), b""), 1):
            if len(line) > MOST_LINE:
                raise RunError(f"{path}: line {number}: more than {MOST_LINE} bytes")
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                if not isinstance(row, dict) or not isinstance(row["stamp_ns"], int) or not isinstance(row["seq"], int):
                    raise ValueError("seq and stamp_ns have to be integers")
                if not (0 <= row["seq"] < 1 << 64 and abs(row["stamp_ns"]) <= MOST_STAMP_NS):
                    raise ValueError("seq or stamp_ns is out of range")
                for key, count in ARRAYS.items():
                    _check_array(row, key, count)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                if number > 1 and not line.endswith(b"\n"):
                    return
                why = f"{error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
                raise RunError(f"{path}: line {number}: not a result of ndtd --results: {why[:100]}") from None
            yield number, row


def _check_array(row: "dict[str, Any]", key: str, count: int) -> None:
    values = row.get(key)
    if values is None:
        return
    if len(values) != count or not all(isinstance(one, (int, float)) and math.isfinite(one) for one in values):
        raise ValueError(f"{key} is not {count} finite numbers")
    if count != 7 and not max(abs(one) for one in values) <= MOST_NUMBER:
        raise ValueError(f"{key} has a number beyond {MOST_NUMBER:g}")
    if count == 7 and not max(abs(one) for one in values[:3]) <= MOST_M:
        raise ValueError(f"{key} is beyond {MOST_M:g} m")
    if count == 7 and not abs(math.sqrt(sum(one * one for one in values[3:])) - 1.0) < 0.01:
        raise ValueError(f"the quaternion of {key} does not have length 1")


def _blocks(rows: "Iterator[tuple[int, dict[str, Any]]]") -> "Iterator[list[dict[str, Any]]]":
    block: "list[dict[str, Any]]" = []
    for _, row in rows:
        block.append(row)
        if len(block) == BLOCK:
            yield block
            block = []
    if block:
        yield block


def _columns(rows: "list[dict[str, Any]]") -> "dict[str, np.ndarray]":
    out: "dict[str, np.ndarray]" = {
        "seq": np.array([row["seq"] for row in rows], np.uint64), "stamp_ns": np.array([row["stamp_ns"] for row in rows], np.int64),
        "weak_axes": np.array([len(row.get("weak_axes") or ()) for row in rows])}
    for key in ("map_id", "config_hash"):
        out[key] = np.array([_whole(row.get(key)) for row in rows], np.uint64)
    for key in ("outcome", "state", "reason"):
        out[key] = np.array([str(row.get(key) or "") for row in rows], object)
    for at, row in enumerate(rows):
        if "error" in row:  # ndtd could not put it into a message
            out["outcome"][at], out["reason"][at] = "rejected", str(row["error"])
    for key in NUMBERS:
        out[key] = np.array([_number(row.get(key)) for row in rows])
    for key, count in ARRAYS.items():
        none = [math.nan] * count
        out[key] = np.array([row.get(key) or none for row in rows], np.float64).reshape(-1, count)
    told = [one if isinstance(one := row.get("protection_level"), dict) else {} for row in rows]
    out["protection_level"] = np.array([_levels(one) for one in told]).reshape(-1, len(LEVELS))
    out["unsafe"] = np.array([one.get("unsafe") is True for one in told])
    return out


def _levels(told: "dict[str, Any]") -> "list[float]":
    """Levels, of which null is infinite; NaN where there are none."""
    return [(math.inf if told[key] is None else _number(told[key])) if key in told else math.nan for key in LEVELS]


def _number(value: Any) -> float:
    try:
        number = math.nan if value is None or value == "" else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if abs(number) <= MOST_NUMBER else math.nan


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 64 else 0


# ---- ground truth


def _read_tum(path: Path) -> "tuple[np.ndarray, np.ndarray]":
    """Stamps (K,) int64 [ns] and poses (K, 7)."""
    stamps, poses = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            whole, _, part = words[0].partition(".")
            stamps.append(int(whole) * 1_000_000_000 + int((part + "0" * 9)[:9]))
            poses.append([float(word) for word in words[1:8]])
            if len(words) != 8:
                raise ValueError(f"{len(words)} words instead of 8")
            _check_array({"pose": poses[-1]}, "pose", 7)
        except (ValueError, OverflowError) as error:
            raise RunError(f"{path}: line {number}: not TUM: {error}") from None
    return np.array(stamps, np.int64), np.array(poses).reshape(-1, 7)


def truth_at(stamps: np.ndarray, poses: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Poses (N, 7) at the stamps `wanted`: interpolated on the screw motion, as ndtd does; NaN outside, and in gaps above TRUTH_GAP_S."""
    order = np.argsort(stamps, kind="stable")
    stamps, poses = stamps[order], poses[order]
    after = np.searchsorted(stamps, wanted)
    out = np.full((len(wanted), 7), np.nan)
    inside = after < len(stamps)
    exact = inside & (stamps[np.minimum(after, len(stamps) - 1)] == wanted)
    out[exact] = poses[after[exact]]
    between = inside & ~exact & (after > 0)
    a, b = after[between] - 1, after[between]
    gap_s = (stamps[b] - stamps[a]) * 1e-9
    found = interpolate(poses[a], poses[b], (wanted[between] - stamps[a]) * 1e-9 / gap_s)
    found[gap_s > TRUTH_GAP_S] = np.nan
    out[between] = found
    return out


# ---- config.yaml


def flat_yaml(text: str) -> "dict[str, str]":
    """Parses what --print-config writes: nested sections, comments on lines of their own; a value that is empty leaves its blank."""
    out: "dict[str, str]" = {}
    sections: "list[tuple[int, str]]" = []  # that are open: indentation and name
    for line in text.splitlines():
        bare = line.strip()
        key, colon, value = bare.partition(":")
        if not colon or bare.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        while sections and sections[-1][0] >= indent:
            sections.pop()
        if value.strip() or line.endswith(" "):
            out[".".join([*(name for _, name in sections), key])] = value.strip()
        else:
            sections.append((indent, key))
    return out


def default_settings() -> "dict[str, str]":
    """"section.key" -> text of every option; {} where the clients alone are installed."""
    try:
        from .. import _core  # compiled: only where it is needed

        return dict(_core.settings())
    except (ImportError, AttributeError):
        return {}
