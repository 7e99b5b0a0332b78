"""Recordings of Rerun, read by its own reader."""
import numpy as np
import pytest

pytest.importorskip("rerun")
try:
    from rerun.chunk import RrdReader
except ImportError:  # its place until 0.38
    from rerun.experimental import RrdReader


def read_rrd(path):
    """{entity: [(stamp_ns or None, {component: value})]} of the one recording in a file, in the order of the stamps."""
    reader = RrdReader(path)
    assert len(reader.recordings()) == 1
    out = {}
    for chunk in reader.stream():
        batch = chunk.to_record_batch()
        assert set(chunk.timeline_names) <= {"stamp"}
        names = [name for name in batch.schema.names if name not in ("rerun.controls.RowId", "stamp")]
        stamps = batch.column("stamp").cast("int64").to_pylist() if "stamp" in batch.schema.names else [None] * batch.num_rows
        for at, stamp_ns in enumerate(stamps):
            values = {name: batch.column(name)[at].values for name in names if batch.column(name)[at].is_valid}
            out.setdefault(str(chunk.entity_path), []).append((stamp_ns, values))
    for rows in out.values():
        rows.sort(key=lambda row: (row[0] is not None, row[0]))
    return out


def array_of(values):
    """A component as an array: (N,), or (N, K) of vectors."""
    if not hasattr(values, "flatten") or not hasattr(values.type, "list_size"):
        return np.array(values.to_pylist())
    return np.array(values.flatten().to_numpy(zero_copy_only=False)).reshape(len(values), -1)


def timed(entities, path):
    """[(stamp_ns, {component: array})] of an entity, without what is static."""
    return [(stamp_ns, {name: array_of(value) for name, value in values.items()}) for stamp_ns, values in entities[path] if stamp_ns is not None]


def static(entities, path):
    """{component: array} of an entity that is there at all times."""
    return {name: array_of(value) for stamp_ns, values in entities[path] if stamp_ns is None for name, value in values.items()}
