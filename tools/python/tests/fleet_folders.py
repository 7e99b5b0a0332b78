"""Run folders of a fleet with planted errors, for the tests of its report."""
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ndtd.fleet.run_folder import FORMAT, digest

FIRST_STAMP_NS, STEP_NS = 1_700_000_000_000_000_000, 100_000_000
NEEDED = {"x": pa.float64(), "y": pa.float64(), "z": pa.float64(), "confidence": pa.float32(), "error_m": pa.float64(), "error_deg": pa.float64()}


class Planted:
    """One drive: path (N, 3), error (N,) [m], lost: rows without a pose, confidence one or (N,)."""

    def __init__(self, name, path, error=None, lost=(), confidence=0.99, config="base", status="done", content=None, damage="", reason="", hint=""):
        self.name, self.path, self.config, self.status, self.damage, self.hint = name, np.asarray(path, float), config, status, damage, hint
        self.content = digest(content or name)
        count = len(self.path)
        self.trusted = np.ones(count, bool)
        self.trusted[list(lost)] = False
        self.error = np.full(count, np.nan) if error is None else np.asarray(error, float)
        self.has_truth = error is not None
        self.confidence = np.where(self.trusted, confidence, 0.2)
        self.reason = reason


def straight(count, y=0.0, speed=1.0, x=0.0):
    """(count, 3): along x, `speed` metres per scan."""
    return np.column_stack([x + speed * np.arange(count), np.full(count, y), np.zeros(count)])


def scan_table(one):
    """The rows of a drive."""
    count, trusted = len(one.path), one.trusted
    columns = {
        "bag": pa.array([one.name] * count).dictionary_encode(), "config": pa.array([one.config] * count).dictionary_encode(),
        "seq": np.arange(count), "stamp_ns": FIRST_STAMP_NS + STEP_NS * np.arange(count),
        "outcome": pa.array(np.where(trusted, "converged", "low_score")).dictionary_encode(),
        "state": pa.array(np.where(trusted, "tracking", "lost")).dictionary_encode(),
        "reason": pa.array([None if good else one.reason or "the score is 0.31" for good in trusted], pa.string()).dictionary_encode(),
        "trusted": trusted}
    values = {"x": one.path[:, 0], "y": one.path[:, 1], "z": one.path[:, 2], "confidence": one.confidence, "error_m": one.error,
              "error_deg": one.error * 2}
    for name, kind in NEEDED.items():
        hidden = np.zeros(count, bool) if name == "confidence" else ~trusted | np.isnan(values[name])
        columns[name] = pa.array(values[name], kind, mask=hidden)
    return pa.table(columns)


def run_row(one):
    """The row of a drive."""
    good, errors = one.trusted, one.error[one.trusted & np.isfinite(one.error)]
    done = one.status == "done"

    def quantile(values, q):
        return float(np.quantile(values, q)) if done and len(values) else None

    row = {"status": one.status, "bag": one.name, "bag_hash": one.content, "bag_bytes": 1000 * len(one.path), "config": one.config,
           "config_hash": "c", "map_id": "m", "version": "1.0 (abc)", "scans": len(one.path), "trusted": int(good.sum()),
           "converged": int(good.sum()), "lost": 0, "first_ns": FIRST_STAMP_NS, "last_ns": FIRST_STAMP_NS + STEP_NS * (len(one.path) - 1),
           "duration_s": 0.1 * len(one.path), "distance_m": float(len(one.path)), "untrusted_s": 0.1 * float((~good).sum()),
           "error_m_median": quantile(errors, 0.5), "error_m_p95": quantile(errors, 0.95), "error_m_max": quantile(errors, 1),
           "error_deg_median": quantile(2 * errors, 0.5), "error_deg_p95": quantile(2 * errors, 0.95), "error_deg_max": quantile(2 * errors, 1),
           "confidence_median": quantile(one.confidence, 0.5), "confidence_min": quantile(one.confidence, 0), "align_ms_p50": 0.5,
           "align_ms_p95": 0.9, "total_ms_p50": 1.1, "total_ms_p95": 1.9, "total_ms_max": 4.0,
           "trajectory_hash": digest(one.path.tobytes().hex(), one.error.tobytes().hex(), good.tobytes().hex())[:16], "pieces": 1, "seams_removed": 0, "damage": one.damage,
           "hints": [one.hint] if one.hint else [], "failure": "" if done else "ndtd: it failed\nlast line", "failure_kind": "" if done else "failed",
           "attempts": 1, "worker": "w", "replay_s": 0.001 * len(one.path), "cpu_s": 0.1, "peak_memory_bytes": 1 << 28, "ended_ns": 1}
    if not done:
        row.update({name: None for name in ("scans", "trusted", "first_ns", "last_ns", "duration_s", "distance_m", "untrusted_s", "replay_s")})
    return row


def write_fleet(folder, drives, configurations=("base",), map_url="map.pcd", settings=None, per_file=3):
    """A run folder of Planted drives, as ndt-fleet leaves it."""
    folder = Path(folder)
    (folder / "configs").mkdir(parents=True)
    (folder / "scans.parquet").mkdir()
    configs = [{"name": name, "file": f"{at}.yaml", "hash": f"h{at}", "overrides": []} for at, name in enumerate(configurations)]
    for one in configs:
        values = {"min_confidence": 0.8, **((settings or {}).get(one["name"], {}))}
        (folder / "configs" / one["file"]).write_text("score_estimation:\n" + "".join(f"  {key}: {value}\n" for key, value in values.items()))
    (folder / "run.json").write_text(json.dumps({"format": FORMAT, "token": "t", "version": "1.0 (abc)", "map": map_url, "configurations": configs,
                                                 "import_options": [], "patterns": ["bags/*.bag"]}))
    drives = sorted(drives, key=lambda one: (one.name, one.config))
    rows = [run_row(one) for one in drives]
    texts = {name: pa.string() for name, value in rows[0].items() if isinstance(value, str)}
    table = pa.table({name: pa.array([row[name] for row in rows], texts.get(name, pa.list_(pa.string()) if name == "hints" else None))
                      for name in rows[0]})
    pq.write_table(table, folder / "runs.parquet")
    done = [scan_table(one) for one in drives if one.status == "done" and len(one.path)]
    for at in range(0, max(len(done), 1), per_file):
        some = pa.concat_tables([one.unify_dictionaries() for one in done[at:at + per_file]]).unify_dictionaries() if done else scan_table(
            Planted("none", np.zeros((0, 3))))
        pq.write_table(some, folder / "scans.parquet" / f"part-{at // per_file:05d}.parquet")
    return folder
