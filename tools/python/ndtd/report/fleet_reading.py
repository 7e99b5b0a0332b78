"""The tables of a fleet's run as arrays: the run table at once, the scan table drive by drive in bounded memory.

    run = FleetRun("RUN")
    run.numbers["error_m_median"], run.texts["bag"]        # (R,): a row per bag and configuration
    for block in run.blocks(("x", "y")): ...               # whole drives, some 100 000 scans at once
"""
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Optional

import numpy as np

from .._extras import need
from ..fleet.run_folder import Failure, FleetError, RunFolder
from .run import flat_yaml

TEXTS = ("status", "bag", "bag_hash", "config", "config_hash", "map_id", "version", "trajectory_hash", "damage", "failure", "failure_kind")
NUMBERS = ("scans", "bag_bytes", "first_ns", "duration_s", "distance_m", "untrusted_s", "error_m_median", "error_m_p95", "error_m_max",
           "error_deg_median", "error_deg_p95", "confidence_median", "total_ms_p50", "total_ms_p95", "replay_s", "peak_memory_bytes")
LABELS = ("bag", "config", "outcome", "reason")  # texts of the scan table: few different ones
FILL: "dict[str, Any]" = {"stamp_ns": 0, "seq": 0, "trusted": False}  # others are NaN where a scan has none
MOST_PARTS = 5  # of a name
ROWS = 1 << 18  # that are read at once
MAKE = "`ndt-fleet run --out RUN` makes it"
MIN_CONFIDENCE = 0.8  # score_estimation.min_confidence where the settings are not known


@dataclass
class Block:
    """Scans of whole drives: rows [starts[i], starts[i + 1]) are those of row drives[i] of the run table, in the order of time."""

    drives: np.ndarray
    starts: np.ndarray
    values: "dict[str, np.ndarray]"  # column -> (N,); of LABELS: numbers of FleetRun.labels

    def __len__(self) -> int:
        return len(self.values["drive"])

    @property
    def lengths(self) -> np.ndarray:
        """(drives,) scans of each."""
        return np.diff(np.append(self.starts, len(self)))

    def of(self, mine: np.ndarray) -> "Block":
        """The drives that `mine` (drives,) names; there is one."""
        if mine.all():
            return self
        rows = np.repeat(mine, self.lengths)
        starts = np.concatenate([[0], np.cumsum(self.lengths[mine])[:-1]])
        return Block(self.drives[mine], starts, {name: values[rows] for name, values in self.values.items()})

    def sums(self, values: np.ndarray) -> np.ndarray:
        """(drives,) of values (N,)."""
        out: np.ndarray = np.add.reduceat(values, self.starts)
        return out


class FleetRun:
    """A run folder with its tables. texts, numbers: columns of runs.parquet (R,), "" and NaN where there is none. FleetError: one line."""

    def __init__(self, folder: Any):
        self.run_folder = RunFolder(folder)
        self.folder = Path(folder)
        self.job = self.run_folder.job()
        self._pq = need("pyarrow.parquet", "fleet")
        self._read_runs()
        self.labels: "dict[str, list[str]]" = {name: [] for name in LABELS}
        self._numbers_of: "dict[str, dict[str, int]]" = {name: {} for name in LABELS}

    def __len__(self) -> int:
        return len(self.texts["bag"])

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @cached_property
    def configurations(self) -> "list[str]":
        """Names, in the order of run.json."""
        return [one.name for one in self.job.configurations]

    def rows_of(self, configuration: str) -> np.ndarray:
        """Rows of the run table that are done with it."""
        return np.flatnonzero((self.texts["config"] == configuration) & (self.texts["status"] == "done"))

    @cached_property
    def names(self) -> "list[str]":
        """(R,) of the bags: as short as tells them apart."""
        urls = list(dict.fromkeys(self.texts["bag"].tolist()))
        short = dict(zip(urls, _names_of(urls)))
        return [short[url] for url in self.texts["bag"].tolist()]

    def settings(self, configuration: str) -> "dict[str, str]":
        """"section.key" -> text; {} where the file is not there."""
        found = next((one for one in self.job.configurations if one.name == configuration), None)
        path = self.run_folder.config_file(found) if found else None
        return flat_yaml(path.read_text(encoding="utf-8", errors="replace")) if path is not None and path.is_file() else {}

    def min_confidence(self, configuration: str) -> float:
        """Below it ndtd refuses a pose."""
        try:
            value = float(self.settings(configuration).get("score_estimation.min_confidence", MIN_CONFIDENCE))
        except ValueError:
            return MIN_CONFIDENCE
        return value if 0 < value <= 1 else MIN_CONFIDENCE

    @property
    def map_file(self) -> "Optional[Path]":
        """The map, where it can be read from here."""
        url = self.job.map
        path = Path(url[len("file://"):] if url.startswith("file://") else url)
        return path if "://" not in str(path) and path.exists() else None

    @cached_property
    def failures(self) -> "dict[tuple[str, str], Failure]":
        """(bag, configuration) -> what failed/ says of it."""
        out = {}
        for path in sorted((self.folder / "failed").glob("*/*.json")):
            found = self.run_folder.failure(path.stem)
            if found is not None:
                out[found.bag, found.config] = found
        return out

    # ---- runs.parquet

    def _read_runs(self) -> None:
        path = self.folder / "runs.parquet"
        file, columns = self._open(path), [*TEXTS, *NUMBERS, "hints"]
        missing = [name for name in columns if name not in file.schema_arrow.names]
        if missing:
            raise FleetError(f"{path}: not the run table of ndt-fleet: column {missing[0]} is missing")
        table = self._read(path, file, columns)
        self.texts = {name: np.array(["" if one is None else str(one) for one in table[name].to_pylist()], object) for name in TEXTS}
        self.numbers = {name: _floats(table[name]) for name in NUMBERS}
        if table.num_rows == 0:
            raise FleetError(f"{path}: has no row: no drive is done")
        self.hints = [one or [] for one in table["hints"].to_pylist()]
        self._row_of = {(bag, config): row for row, (bag, config) in enumerate(zip(self.texts["bag"], self.texts["config"]))}

    def _read(self, path: Path, file: Any, columns: "list[str]") -> Any:
        try:
            return file.read(columns=columns)
        except (OSError, ValueError) as error:
            raise FleetError(f"{path}: cannot be read: {' '.join(str(error).split())[:200]}") from None

    def _open(self, path: Path, dictionaries: "Sequence[str]" = ()) -> Any:
        try:
            return self._pq.ParquetFile(path, read_dictionary=list(dictionaries))
        except FileNotFoundError:
            raise FleetError(f"{path}: is not there; {MAKE}") from None
        except (OSError, ValueError) as error:
            raise FleetError(f"{path}: not a Parquet file: {' '.join(str(error).split())[:200]}") from None

    # ---- scans.parquet

    @cached_property
    def scan_files(self) -> "list[Path]":
        """Files of the scan table, in the order of their rows."""
        found = sorted((self.folder / "scans.parquet").glob("*.parquet"))
        if not found:
            raise FleetError(f"{self.folder / 'scans.parquet'}: has no table; {MAKE}")
        return found

    def blocks(self, columns: "Sequence[str]") -> "Iterator[Block]":
        """Whole drives with these columns; memory is that of a batch and of the longest drive."""
        held: "list[dict[str, np.ndarray]]" = []
        seen = np.zeros(len(self), bool)
        for batch in self._batches(("bag", "config", *columns)):
            if not len(batch["drive"]):
                continue
            last = batch["drive"][-1]
            if held and held[-1]["drive"][-1] == last == batch["drive"][0]:
                held.append(batch)
                continue
            end = int(np.flatnonzero(batch["drive"] != last)[-1]) + 1 if (batch["drive"] != last).any() else 0
            whole = [*held, {name: values[:end] for name, values in batch.items()}]
            held = [{name: values[end:] for name, values in batch.items()}]
            yield from self._block(whole, seen)
        yield from self._block(held, seen)

    def _block(self, parts: "list[dict[str, np.ndarray]]", seen: np.ndarray) -> "Iterator[Block]":
        values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
        if not values or not len(values["drive"]):
            return
        starts = np.concatenate([[0], np.flatnonzero(np.diff(values["drive"])) + 1])
        drives = values["drive"][starts]
        if seen[drives].any() or len(np.unique(drives)) != len(drives):
            raise FleetError(f"{self.folder / 'scans.parquet'}: the scans of {self.texts['bag'][drives[0]]} are not beside each other")
        seen[drives] = True
        yield Block(drives, starts, values)

    def _batches(self, columns: "Sequence[str]") -> "Iterator[dict[str, np.ndarray]]":
        for path in self.scan_files:
            file = self._open(path)
            missing = [name for name in columns if name not in file.schema_arrow.names]
            if missing:
                raise FleetError(f"{path}: not a scan table of ndt-fleet: column {missing[0]} is missing")
            file = self._open(path, [name for name in columns if name in LABELS])
            try:
                for batch in file.iter_batches(batch_size=ROWS, columns=list(columns)):
                    yield self._arrays(batch, columns)
            except (OSError, ValueError) as error:
                raise FleetError(f"{path}: cannot be read: {' '.join(str(error).split())[:200]}") from None

    def _arrays(self, batch: Any, columns: "Sequence[str]") -> "dict[str, np.ndarray]":
        out = {name: self._label_numbers(name, batch[name]) if name in LABELS else _filled(batch[name], name) for name in columns}
        bags, configs = self.labels["bag"], self.labels["config"]
        kinds, which = np.unique(out.pop("bag") * (1 << 20) + out.pop("config"), return_inverse=True)
        rows = np.array([self._row_of.get((bags[kind >> 20], configs[kind & ((1 << 20) - 1)]), -1) for kind in kinds.tolist()], np.int64)
        out["drive"] = rows[which.ravel()] if len(kinds) else np.empty(0, np.int64)
        known = out["drive"] >= 0  # of a bag that the run table has
        return out if known.all() else {name: values[known] for name, values in out.items()}

    def _label_numbers(self, name: str, column: Any) -> np.ndarray:
        """Numbers of texts in `labels`, which grow."""
        encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
        numbers, texts = self._numbers_of[name], self.labels[name]
        table = [0] * len(encoded.dictionary)
        for at, found in enumerate(encoded.dictionary.to_pylist()):
            text = plain_reason(found or "") if name == "reason" else found or ""
            table[at] = numbers.setdefault(text, len(texts))
            if table[at] == len(texts):
                texts.append(text)
        if encoded.null_count:
            empty = numbers.setdefault("", len(texts))
            if empty == len(texts):
                texts.append("")
            codes = encoded.indices.fill_null(len(table)).to_numpy(zero_copy_only=False)
            table.append(empty)
        else:
            codes = encoded.indices.to_numpy(zero_copy_only=False)
        return np.array(table, np.int64)[codes] if len(table) else np.empty(0, np.int64)


def _names_of(urls: "list[str]") -> "list[str]":
    """The last parts of different urls, with as many as tell them apart."""
    parts = [url.rstrip("/").split("/") for url in urls]
    out = [one[-1] for one in parts]
    for depth in range(2, MOST_PARTS + 1):
        seen = Counter(out)
        if max(seen.values(), default=0) <= 1:
            break
        out = ["/".join(one[-depth:]) if seen[name] > 1 else name for name, one in zip(out, parts)]
    return out


def plain_reason(text: str) -> str:
    """A reason without its numbers, so that equal reasons count as one."""
    return re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "\N{HORIZONTAL ELLIPSIS}", text)[:120]


def _floats(column: Any) -> np.ndarray:
    return np.array([math.nan if one is None else float(one) for one in column.to_pylist()])


def _filled(column: Any, name: str) -> np.ndarray:
    out: np.ndarray = (column.fill_null(FILL.get(name, math.nan)) if column.null_count else column).to_numpy(zero_copy_only=False)
    return out
