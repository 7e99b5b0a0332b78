"""What viewers show of a result beside its pose: numbers for plots, lines for a log."""
from typing import Any, Optional

import numpy as np

from .result_lines import ResultLine

RESULT_NUMBERS = ("confidence", "innovation", "margin", "transform_probability", "nvtl", "nvtl_normalized", "match_ratio", "coverage",
                  "iterations", "evaluations", "hypotheses", "decode_us", "queue_us", "preprocess_us", "upload_us", "align_us",
                  "publish_us", "queue_depth", "drop_counter")


def result_values(result: ResultLine) -> "dict[str, Any]":
    """Values of a result beside its pose, for plots and diagnostics; unknown values are left out."""
    out: "dict[str, Any]" = {} if result.seq is None else {"seq": result.seq}
    out.update(outcome=result.outcome, state=result.state, reason=result.reason, is_trusted=result.is_trusted)
    if result.covariance is not None:
        deviation = np.sqrt(np.clip(np.diag(result.covariance), 0.0, None))
        out.update(deviation_m=float(deviation[:3].max()), deviation_rad=float(deviation[3:].max()))
    if result.twist is not None:
        out["speed_mps"] = float(np.linalg.norm(result.twist[:3]))
    for name in RESULT_NUMBERS:
        value = result.values.get(name)
        if isinstance(value, (int, float)) and value == value:
            out[name] = value
    return out


class News:
    """Which results are told in a log: those without a trusted pose, and changes of the state."""

    def __init__(self) -> None:
        self._state = ""

    def of(self, result: ResultLine) -> "Optional[tuple[str, str]]":
        """Level (info, warning, error) and text; None: nothing to tell."""
        changed, self._state = result.state != self._state, result.state
        if result.is_trusted and result.outcome == "converged" and not changed:
            return None
        level = "info" if result.is_trusted else "warning" if result.state in ("coasting", "initialising") else "error"
        return level, " ".join(word for word in (f"scan {result.seq}:", result.state, result.outcome, result.reason) if word)
