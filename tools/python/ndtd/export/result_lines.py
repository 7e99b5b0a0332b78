"""Results of a replay or of the daemon: the JSON lines of `ndtd --results` and `ndt-echo --format json`, or a TUM file."""
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import numpy as np

from ..recordings.messages import MOST_STAMP_NS
from ..ros.from_ndtd import is_trusted


class ResultError(ValueError):
    """A file that holds no results; one line with file, line and reason."""


@dataclass
class ResultLine:
    """One result. Poses x y z qx qy qz qw [m], T_map_base at stamp_ns; None: unknown."""

    stamp_ns: int
    pose: Optional[np.ndarray] = None  # (7,)
    seq: Optional[int] = None  # None: from a TUM file
    outcome: str = "converged"
    reason: str = ""
    state: str = "tracking"
    covariance: Optional[np.ndarray] = None  # (6, 6): x y z rx ry rz in map axes
    twist: Optional[np.ndarray] = None  # (6,): vx vy vz wx wy wz of the base in the base frame
    sensor: Optional[str] = None  # frame_id of the scan
    T_base_sensor: Optional[np.ndarray] = None  # (7,): where that sensor was as the scan was matched
    values: dict[str, Any] = field(default_factory=dict)  # all keys of the message

    @property
    def is_trusted(self) -> bool:
        """Whether ndtd --out has this pose."""
        return self.pose is not None and is_trusted(self.values)


def read_results(path: Any) -> Iterator[ResultLine]:
    """The results in the order of the file, one at a time. ResultError, OSError."""
    path, count = Path(path), 0
    with path.open("rb") as binary:
        if b"\0" in binary.read(4096):
            raise ResultError(f"{path}: no results, but a binary file; `ndtd --replay BAG --map MAP --results FILE` writes results")
    with path.open("r", encoding="utf-8", errors="replace") as stream:
        for number, line in enumerate(stream, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            try:
                result = from_message(json.loads(text)) if text.startswith("{") else _from_tum(text)
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                if count and not line.endswith("\n"):
                    return  # the writer was stopped within its last line
                why = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
                raise ResultError(f"{path}: line {number}: not a result of ndtd --results, nor TUM: {why[:100]}") from None
            count += 1
            yield result
    if count == 0:
        raise ResultError(f"{path}: contains no result")


def _numbers(values: Any, count: int, name: str) -> Optional[np.ndarray]:
    if values is None:
        return None
    out = np.array(values, np.float64)
    if out.shape != (count,) or not np.isfinite(out).all():
        raise ValueError(f"{name} is not {count} numbers")
    return out


def from_message(row: "dict[str, Any]") -> ResultLine:
    """A result as ndtd publishes it. ValueError, TypeError, KeyError: it is none."""
    stamp_ns = row["stamp_ns"]
    if not isinstance(stamp_ns, int) or not isinstance(row["seq"], int):
        raise ValueError("seq and stamp_ns have to be integers")
    _check_stamp(stamp_ns)
    if "error" in row:  # ndtd could not put it into a message
        return ResultLine(stamp_ns, seq=row["seq"], outcome="rejected", reason=str(row["error"]), state="",
                          values={**row, "outcome": "rejected", "reason": str(row["error"])})
    covariance = _numbers(row.get("covariance"), 36, "covariance")
    return ResultLine(stamp_ns, _unit(_numbers(row.get("pose"), 7, "pose")), row["seq"], str(row["outcome"]), str(row.get("reason", "")),
                      str(row.get("state", "")), None if covariance is None else covariance.reshape(6, 6),
                      _numbers(row.get("twist"), 6, "twist"), None if "sensor" not in row else str(row["sensor"]),
                      _unit(_numbers(row.get("T_base_sensor"), 7, "T_base_sensor")), row)


def _from_tum(text: str) -> ResultLine:
    words = text.split()
    if len(words) != 8:
        raise ValueError(f"{len(words)} words instead of 8: stamp x y z qx qy qz qw")
    stamp_ns, pose = _check_stamp(_nanoseconds(words[0])), _unit(_numbers([float(word) for word in words[1:]], 7, "pose"))
    values = {"stamp_ns": stamp_ns, "outcome": "converged", "state": "tracking", "reason": "", "pose": pose}
    return ResultLine(stamp_ns, pose, values=values)


def _check_stamp(stamp_ns: int) -> int:
    if abs(stamp_ns) > MOST_STAMP_NS:
        raise ValueError(f"the stamp {stamp_ns} ns is beyond 4.6e18 ns")
    return stamp_ns


def _nanoseconds(text: str) -> int:
    """Decimal seconds to int64 nanoseconds without passing through a float where that is possible."""
    whole, _, part = text.partition(".")
    if whole.lstrip("+-").isdigit() and (part.isdigit() or not part):
        sign = -1 if whole.startswith("-") else 1
        return int(whole) * 1_000_000_000 + sign * int((part + "0" * 9)[:9])
    return round(float(text) * 1e9)


def _unit(pose: Optional[np.ndarray]) -> Optional[np.ndarray]:
    if pose is not None and not abs(math.sqrt(float(pose[3:] @ pose[3:])) - 1.0) < 0.01:
        raise ValueError("the quaternion does not have length 1")
    return pose
