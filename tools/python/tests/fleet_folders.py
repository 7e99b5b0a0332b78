"""Run folders of a fleet with planted errors, for the tests of its report."""
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ndtd.fleet import scan_table
from ndtd.fleet.run_folder import FORMAT, digest

FIRST_STAMP_NS, STEP_NS = 1_700_000_000_000_000_000, 100_000_000


class Planted:
    """One drive: path (N, 3); error (N,) [m], None: no ground truth; lost: scans without a pose; merged: those that are part of another."""

    def __init__(self, name, path, error=None, lost=(), merged=(), confidence=0.99, config="base", hash=None, failure="", **row):
        count = len(path)
        self.name, self.config, self.row, self.failure = name, config, row, failure
        self.row["bag_hash"] = digest(name)
        trusted = np.ones(count, bool)
        trusted[[*lost, *merged]] = False
        outcome = np.where(trusted, "converged", "low_score").astype(object)
        outcome[list(merged)] = "merged"
        error = np.full(count, np.nan) if error is None else np.asarray(error, float)
        error[~trusted] = np.nan
        self.row["trajectory_hash"] = hash or digest(*(np.asarray(one).tobytes().hex() for one in (path, error, trusted, confidence)))[:16]
        values = {
            "bag": np.full(count, name), "config": np.full(count, config), "seq": np.arange(count),
            "stamp_ns": FIRST_STAMP_NS + STEP_NS * np.arange(count), "outcome": outcome,
            "state": np.where(trusted, "tracking", "lost"), "trusted": trusted, "confidence": np.where(trusted, confidence, 0.2),
            "reason": [None if good else f"score 0.{at:03d} is below the threshold 0.350" for at, good in enumerate(trusted)],
            "error_m": error, "error_deg": 2 * error, "align_us": np.full(count, 900.0), "preprocess_us": np.full(count, 200.0)}
        values.update(zip("xyz", np.where(trusted[:, None], path, np.nan).T))
        self.table = pa.table([_column(values.get(field.name, [None] * count), field.type) for field in scan_table.SCANS],
                              schema=scan_table.SCANS)

    def run_row(self):
        common = {"bag": self.name, "bag_bytes": 1000, "config": self.config, "config_hash": "c", "map_id": "m", "version": "1.0 (abc)",
                  "attempts": 1, **self.row}
        if self.failure:
            return {**common, "status": "failed", "failure": self.failure, "failure_kind": "failed", "trajectory_hash": None}
        return {**scan_table.measures(self.table), **common, "status": "done", "replay_s": 0.1, "cpu_s": 0.1, "peak_memory_bytes": 1 << 28}


def _column(values, kind):
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    column = pa.array(values, kind, from_pandas=True)
    return column.dictionary_encode() if kind == pa.string() else column


def straight(count, y=0.0, x=0.0, step=1.0):
    """(count, 3): along x, `step` metres per scan."""
    return np.column_stack([x + step * np.arange(count), np.full(count, y), np.zeros(count)])


def write_fleet(folder, drives, configurations=("base",), map_url="map.pcd", settings="", per_file=3):
    """A run folder of drives (Planted, or pairs of a table and a run row), as ndt-fleet leaves it."""
    folder = Path(folder)
    for name in ("configs", "scans.parquet"):
        (folder / name).mkdir(parents=True)
    configs = [{"name": name, "file": f"{at}.yaml", "hash": f"h{at}", "overrides": []} for at, name in enumerate(configurations)]
    for one in configs:
        (folder / "configs" / one["file"]).write_text(f"score_estimation:\n  min_confidence: 0.8\n{settings}")
    (folder / "run.json").write_text(json.dumps({
        "format": FORMAT, "token": "t", "version": "1.0 (abc)", "map": str(map_url), "configurations": configs, "import_options": [],
        "patterns": ["bags/*.bag"]}))
    both = [(one.table, one.run_row()) if isinstance(one, Planted) else one for one in drives]
    both.sort(key=lambda one: (one[1]["bag"], one[1]["config"]))
    rows = [{name: row.get(name) for name in scan_table.RUNS.names} for _, row in both]
    pq.write_table(pa.Table.from_pylist(rows, schema=scan_table.RUNS), folder / "runs.parquet")
    tables = [table for table, row in both if row["status"] == "done"] or [scan_table.SCANS.empty_table()]
    for at in range(0, len(tables), per_file):
        joined = pa.concat_tables(tables[at:at + per_file]).unify_dictionaries()
        pq.write_table(joined, folder / "scans.parquet" / f"part-{at // per_file:05d}.parquet")
    return folder
