"""Contents of a bag, where it is cut, and pieces that say together what the whole bag says."""
import json
import os
import struct
from types import SimpleNamespace

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from ndtd.fleet import bag_index, pieces, scan_table  # noqa: E402
from ndtd.fleet.run_folder import FleetError  # noqa: E402
from ndtd.report import bag_records  # noqa: E402

HEAD = b"NDTBAG\r\n\1\0\0\0\0\0\0\0"
SECOND_NS = 10**9


def record(kind, time_ns=0, payload=b"", length=None, crc=b"0000"):
    return struct.pack("<IIq", kind, len(payload) if length is None else length, time_ns) + payload + crc


def bag_of(path, *records):
    path.write_bytes(HEAD + b"".join(records))
    return path


# ---- index


def test_index_of_a_drive(drive, monkeypatch):
    import ndtd

    times = [one.receive_ns for one in ndtd.BagReader(drive.bag) if one.type == "scan"]
    pread, read = os.pread, []
    monkeypatch.setattr(os, "pread", lambda handle, size, at: read.append(size) or pread(handle, size, at))
    index = bag_index.read(drive.bag)
    assert index.scans == 20 and index.times_ns.tolist() == times and index.damage == ""
    assert (index.begin_ns, index.end_ns) == (times[0], times[-1])
    assert sum(read) < 50 * 4096 < drive.bag.stat().st_size / 10, "payloads are not read"


def test_hash_of_the_content(drive, tmp_path):
    data, whole = drive.bag.read_bytes(), bag_index.read(drive.bag)
    copy = tmp_path / "of_another_name"
    copy.write_bytes(data)
    assert bag_index.read(copy).hash == whole.hash
    hashes = {whole.hash}
    for at in (len(HEAD), len(HEAD) + 8, len(data) - 1):  # a type, a time, the last check sum
        copy.write_bytes(data[:at] + bytes((data[at] ^ 16,)) + data[at + 1:])
        hashes.add(bag_index.read(copy).hash)
    copy.write_bytes(data[:-1])
    assert bag_index.read(copy).scans == 19 and bag_index.read(copy).damage
    assert len(hashes | {bag_index.read(copy).hash}) == 5


def test_short_and_long_records(tmp_path):
    """Headers anywhere in the blocks that are read, unknown types, times that go back."""
    kinds = [1, 2, 77, 1 << 31, 1]
    records = [record(kinds[i % 5], 10**6 - i, bytes(i * 7 % 9000), crc=struct.pack("<I", i)) for i in range(3000)]
    index = bag_index.read(bag_of(tmp_path / "a.bag", *records))
    assert index.times_ns.tolist() == [10**6 - i for i in range(3000) if kinds[i % 5] == 1] and index.damage == ""
    assert (index.begin_ns, index.end_ns) == (10**6 - 2999, 10**6)
    assert index.hash == digest(b"\0\0\0\0" + b"".join(one[:16] + one[-4:] for one in records))


def digest(data):
    import hashlib

    return hashlib.blake2b(data, digest_size=16).hexdigest()


SCAN = record(1, 5, b"scan", crc=b"abcd")


@pytest.mark.parametrize("tail", [
    b"\1", record(1, 6, b"scan")[:-1], record(1, 6, b"x", length=2), record(1, 6, b"x" * 99, length=2**32 - 1), b"\0" * 4000,
    record(3, 6, bytes(5000), length=5000 + (1 << 28))], ids=["byte", "cut", "long by one", "huge", "zeros", "beyond the limit"])
def test_damage(tail, tmp_path):
    index = bag_index.read(bag_of(tmp_path / "a.bag", SCAN, SCAN, tail))
    whole = bag_index.read(bag_of(tmp_path / "b.bag", SCAN, SCAN))
    assert index.scans == whole.scans == 2 and index.hash == whole.hash, "what counts is what is used"
    assert whole.damage == "" and index.damage.startswith(f"truncated or damaged after byte {16 + 2 * len(SCAN)} of ")


def test_a_file_of_holes(tmp_path):
    """A terabyte that was never written is not walked through."""
    for name, begin in (("a", HEAD + SCAN), ("b", HEAD + SCAN + record(1, 6, length=1 << 28, crc=b""))):
        (tmp_path / name).write_bytes(begin)
        os.truncate(tmp_path / name, 1 << 40)
        assert bag_index.read(tmp_path / name).scans == 1 + (name == "b")


@pytest.mark.parametrize("data,reason", [
    (b"", "empty"), (b"NDTBAG", "not a bag: 6 bytes, the header alone has 16"), (b"x" * 99, "not a bag: does not begin with NDTBAG"),
    (HEAD, "no scan in it"), (HEAD + record(3, 1, b"odometry"), "no scan in it"), (HEAD + SCAN[:-1], "no scan in it: truncated or damaged"),
    (HEAD.replace(b"\1", b"\2"), "bag version 2"), (HEAD[:12] + b"\1\0\0\0", r"bag version 1 \(reserved 1\)")])
def test_what_is_no_bag(data, reason, tmp_path):
    path = tmp_path / "a.bag"
    path.write_bytes(data)
    with pytest.raises(FleetError, match=f"^{path}: {reason}"):
        bag_index.read(path)


def test_more_scans_than_any_drive(tmp_path, monkeypatch):
    monkeypatch.setattr(bag_index, "MAX_SCANS", 5000)
    assert bag_index.read(bag_of(tmp_path / "a.bag", SCAN * 4000)).scans == 4000
    with pytest.raises(FleetError, match="more than 5000 scans, the limit of a bag"):
        bag_index.read(bag_of(tmp_path / "a.bag", SCAN * 10000))
    with pytest.raises(FleetError, match="not a file"):
        bag_index.read(tmp_path)


# ---- where


def steady(count, hz=10.0):
    return (np.arange(count) * (SECOND_NS / hz)).astype(np.int64) + 1_700_000_000 * SECOND_NS


def check_plan(found, count):
    assert found[0][:2] == (0, 0) and found[-1][2] == count
    for (_, keep, end), (first, after, _) in zip(found, found[1:]):
        assert end == after and keep < end and 0 <= first <= after - pieces.WARM_UP_SCANS


def test_pieces_of_a_steady_drive():
    found = pieces.plan(steady(6000), 120.0, 5.0)
    check_plan(found, 6000)
    assert len(found) == 5 and all(abs(end - keep - 1200) <= 1 for _, keep, end in found)
    assert all(keep - first in (50, 51) for first, keep, _ in found[1:]), "5 s before the last scan of the piece before"
    assert pieces.plan(steady(6000), 120.0, 5.0) == found
    for piece_s in (0.0, 600.0, 420.0):  # none wanted, or less than one and a half
        assert pieces.plan(steady(6000), piece_s, 5.0) == ((0, 0, 6000),)
    assert len(pieces.plan(steady(6000), 390.0, 5.0)) == 2
    assert pieces.plan(steady(1), 1.0, 5.0) == ((0, 0, 1),)


def test_slow_scans_have_a_longer_warm_up():
    found = pieces.plan(steady(600, hz=2.0), 60.0, 5.0)
    check_plan(found, 600)
    assert len(found) == 5 and all(keep - first == pieces.WARM_UP_SCANS for first, keep, _ in found[1:])


def test_cut_at_the_largest_gap_near_by():
    times = steady(3000)
    times[1100:] += 3 * SECOND_NS
    times[1300:] += SECOND_NS
    times[2500:] += 40 * SECOND_NS  # not near
    found = pieces.plan(times, 100.0, 5.0)
    check_plan(found, 3000)
    assert found[1][1] == 1100
    assert found[1][0] in (1049, 1050), "the gap is no part of the warm-up"


def test_a_pause_is_no_work():
    times = steady(3000)
    times[1500:] += 3600 * SECOND_NS
    found = pieces.plan(times, 100.0, 5.0)
    check_plan(found, 3000)
    assert len(found) == 3 and max(end - keep for _, keep, end in found) < 1300


@pytest.mark.parametrize("times", [
    [0] * 500, list(range(500, 0, -1)), [-2**63, 2**63 - 1] * 250, [i * SECOND_NS % (17 * SECOND_NS) for i in range(500)],
    [0] + [1_700_000_000 * SECOND_NS + i * SECOND_NS // 10 for i in range(499)]],
    ids=["none", "backwards", "absurd", "going back", "from zero"])
def test_times_that_no_clock_shows(times):
    for piece_s in (1e-9, 0.5, 20.0, 1e9):
        check_plan(pieces.plan(np.array(times, np.int64), piece_s, 5.0), 500)


# ---- together again


def table_of(first, end, offset_m=0.0, state="tracking", trusted=True, pose=True):
    """Rows of scans that go along a line."""
    size = end - first
    at = np.arange(first, end)
    columns = {name: np.zeros(size) for name in pieces.POSE}
    columns["x"], columns["y"], columns["qw"] = at * 0.5, np.full(size, offset_m), np.ones(size)
    rows = {"seq": at, "stamp_ns": at * 10**8, "outcome": ["converged"] * size, "state": [state] * size, "trusted": [trusted] * size,
            **{name: values if pose else [None] * size for name, values in columns.items()}}
    return pa.table({name: pa.array(values, scan_table.SCANS.field(name).type if name not in ("outcome", "state") else pa.string())
                     for name, values in rows.items()})


PLAN = ((0, 0, 100), (70, 100, 200), (170, 200, 300), (270, 300, 400))


def joined(tables, replay=None):
    """The rows, the seams that were removed, and what was replayed again."""
    calls = []

    def again(first, keep, end):
        calls.append((first, keep, end))
        return replay(first, end) if replay else table_of(first, end)

    table, removed = pieces.join(PLAN, lambda number: tables[number], again)
    return table, removed, calls


def good():
    return [table_of(first, end) for first, _, end in PLAN]


def test_seams_that_hold():
    tables = good()
    tables[2] = table_of(170, 300, offset_m=0.9 * pieces.SEAM_M)
    table, removed, calls = joined(tables)
    assert table["seq"].to_pylist() == list(range(400)) and removed == 0 and calls == []
    assert set(np.flatnonzero(table["y"].to_numpy())) == set(range(200, 300)), "the warm-up is dropped"


@pytest.mark.parametrize("other", [{"offset_m": 1.1 * pieces.SEAM_M}, {"state": "coasting"}, {"pose": False}, {"trusted": False}])
def test_a_seam_that_does_not_hold(other):
    """The piece is replayed with the one before."""
    tables = good()
    tables[2] = table_of(170, 300, **other)
    table, removed, calls = joined(tables)
    assert calls == [(70, 100, 400)]
    assert removed == 2 and table.equals(table_of(0, 400))


@pytest.mark.parametrize("at,holds", [((4, 3), True), ((4, 3, 2), False), ((1,), False)])
def test_scans_that_hardly_converge(at, holds):
    """at: scans before the seam."""
    tables = good()
    y = np.zeros(130)
    y[30 - np.array(at)] = 0.5
    tables[1] = tables[1].set_column(tables[1].column_names.index("y"), "y", pa.array(y))
    assert joined(tables)[1:] == ((0, []) if holds else (1, [(0, 0, 200)]))


def test_one_seam_only():
    tables = good()
    half = np.radians(1.1 * pieces.SEAM_DEG) / 2
    for name, value in (("qz", np.sin(half)), ("qw", np.cos(half))):
        tables[1] = tables[1].set_column(tables[1].column_names.index(name), name, pa.array(np.full(130, value)))
    assert joined(tables)[1:] == (2, [(0, 0, 300)])
    tables = good()
    tables[3] = None
    table, removed, calls = joined(tables)
    assert (removed, calls) == (1, [(170, 200, 400)]) and table.equals(table_of(0, 400))


def test_the_whole_bag_at_last():
    """Together the two end elsewhere, so that the next seam does not hold either."""
    tables = good()
    tables[1] = None
    table, removed, calls = joined(tables, lambda first, end: table_of(first, end, offset_m=5.0))
    assert calls == [(0, 0, 300), (0, 0, 400)] and removed == 3 and len(table) == 400 and set(table["y"].to_pylist()) == {5.0}


def test_untrusted_everywhere():
    tables = [table_of(first, end, trusted=False) for first, _, end in PLAN]
    assert joined(tables)[1:] == (3, [(0, 0, 400)]), "there is no state that both are in"


def test_damage_ends_the_bag():
    tables = good()
    tables[1] = tables[1].slice(0, 90)  # up to scan 159
    table, removed, calls = joined(tables)
    assert table.equals(table_of(0, 160)) and (removed, calls) == (0, [])
    tables = [tables[0], None, None, None]  # nor can those behind begin
    table, removed, calls = joined(tables, lambda first, end: table_of(first, 160))
    assert table.equals(table_of(0, 160)) and calls == [(0, 0, 400)]


def test_what_a_replay_raises_is_passed_on():
    def fail(first, end):
        raise ValueError("of memory")

    with pytest.raises(ValueError, match="of memory"):
        joined([good()[0], None, *good()[2:]], fail)


# ---- with ndtd


class Replays:
    """Replays of parts of a bag as a worker does them."""

    def __init__(self, run_program, folder, bag, map_file, options=()):
        self._run, self._folder, self._bag, self._map, self._options = run_program, folder, bag, map_file, options
        truth = bag_records.truth(bag)
        self._truth = truth if len(truth[0]) else None
        self.index = bag_index.read(bag)
        self.again = 0
        self.whole = self.rows(0, self.index.scans)
        self.summary = json.loads((folder / "summary.json").read_text())

    def rows(self, first, end):
        part = ["--skip", first, "--limit", end - first] if first else ["--limit", end]
        start = [word for setting in pieces.START for word in ("--set", setting)] if first else []
        results, summary = self._folder / "results.jsonl", self._folder / "summary.json"
        self._run("ndtd", "--replay", self._bag, "--map", self._map, "--threads", 1, "--results", results, "--summary", summary,
                  *self._options, *start, *part)
        return scan_table.read_results(results, "bag", "base", self._truth)

    def _more(self, first, _keep, end):
        self.again += 1
        return self.rows(first, end)

    def joined(self, piece_s, warm_up_s=5.0):
        """The rows, the pieces, and how many seams were removed."""
        plan = pieces.plan(self.index.times_ns, piece_s, warm_up_s)
        assert len(plan) > 2
        table, removed = pieces.join(plan, lambda number: self.rows(plan[number][0], plan[number][2]), self._more)
        return table, plan, removed


def without_truth(drive, path):
    with drive.bag.open("rb") as stream, path.open("wb") as out:
        records = bag_records.Records(stream.fileno())
        out.write(HEAD)
        for kind, _, begin, length, _ in records:
            stream.seek(begin - 16)
            if kind != bag_records.TRUTH:
                out.write(stream.read(16 + length + 4))
    return path


SMALL = ("--seed", 7, "--scans", 150, "--beams", 16, "--columns", 600, "--map-spacing", 0.3)
DESKEW = ("--set", "preprocess.deskew=time")


def steady_error(tables):
    errors = np.concatenate([table["error_m"].drop_null().to_numpy() for table in tables])
    return np.array([np.median(errors), np.percentile(errors, 95)])


def test_joined_handheld(simulate, run_program, tmp_path):
    """Two narrow scans a second: some hardly converge, and end elsewhere when they begin a nanometre apart. Pieces cost no accuracy,
    over several walks: within one a single scan moves the 95 % quantile by a seventh."""
    drives = []
    for seed in (3, 4, 5, 6):
        drive = simulate("--seed", seed, "--world", "hall", "--carrier", "handheld", "--view", 120, "--scans", 80, "--beams", 16,
                         "--columns", 600)
        replays = Replays(run_program, tmp_path, drive.bag, drive.map)
        drives.append((replays.whole, *replays.joined(15.0)[:2]))
    compare(drives, 0.1)
    assert np.all(steady_error([table for _, table, _ in drives]) <= 1.1 * steady_error([whole for whole, _, _ in drives]))


@pytest.mark.parametrize("has_truth", [True, False], ids=["truth", "no truth"])
def test_joined_kitti(has_truth, shared_data, run_program, tmp_path):
    data = shared_data / "kitti0005_lite"
    packed = SimpleNamespace(bag=tmp_path / "kitti.bag")
    run_program("ndt-bag", "pack", "--scans", data / "scans", "--times", data / "times.txt", "--format", "kitti", "--initial", "first",
                "--truth", data / "poses_velo_lidar_refined.txt", "--out", packed.bag)
    bag = packed.bag if has_truth else without_truth(packed, tmp_path / "no_truth.bag")
    replays = Replays(run_program, tmp_path, bag, data / "map_from_even_scans_0.20m.pcd", ("--set", "preprocess.deskew=azimuth_cw"))
    table, plan, removed = replays.joined(5.0)
    assert removed == 0
    compare([(replays.whole, table, plan)])


@pytest.mark.parametrize("has_truth,options", [(True, ()), (False, ()), (True, ("--gaps", 1)), (True, ("--odometry", "--imu", 100)),
                                               (False, ("--odometry", "--imu", 100))],
                         ids=["truth", "no truth", "gaps", "odometry", "odometry, no truth"])
def test_joined_against_whole(options, has_truth, simulate, run_program, tmp_path):
    drive = simulate(*SMALL, *options)
    bag = drive.bag if has_truth else without_truth(drive, tmp_path / "no_truth.bag")
    replays = Replays(run_program, tmp_path, bag, drive.map, DESKEW)
    table, plan, removed = replays.joined(5.0)
    assert removed == 0 and replays.again == 0
    compare([(replays.whole, table, plan)])


def compare(drives, different_part=0.0):
    """Alike: as two replays are that begin 1 cm apart. A scan that hardly converges may differ by more. Drives: whole, joined, plan."""
    for whole, table, plan in drives:
        for name in ("seq", "stamp_ns"):
            assert table[name].to_pylist() == whole[name].to_pylist()
        assert pieces.differences_of(whole, table)[0][:plan[0][2]].max() == 0.0, "the first piece has the bits of the whole"
    changed = sum(a != b for whole, table, _ in drives for a, b in zip(table["outcome"].to_pylist(), whole["outcome"].to_pylist()))
    assert changed <= different_part * sum(len(whole) for whole, _, _ in drives)
    off_m, off_deg = np.concatenate([pieces.differences_of(whole, table) for whole, table, _ in drives], axis=1)
    assert np.median(off_m) < 0.005 and np.percentile(off_m, 95) < 0.02 and np.percentile(off_deg, 95) < 0.1


def test_hash_is_that_of_ndtd(simulate, run_program, tmp_path):
    drive = simulate(*SMALL)
    replays = Replays(run_program, tmp_path, drive.bag, drive.map, DESKEW)
    assert pieces.trajectory_hash(replays.whole) == replays.summary["trajectory_hash"]
    table, _, _ = replays.joined(5.0)
    assert pieces.trajectory_hash(table) != pieces.trajectory_hash(replays.whole)
    bag = tmp_path / "unknown.bag"  # no pose is given
    with drive.bag.open("rb") as stream:
        data = [stream.seek(begin - 16) and stream.read(16 + length + 4) for kind, _, begin, length, _ in
                list(bag_records.Records(stream.fileno()))[:40] if kind == bag_records.SCAN]
    bag_of(bag, *data[:5])
    given = Replays(run_program, tmp_path, bag, drive.map, ("--set", "initial_pose.mode=given"))
    assert set(given.whole["outcome"].to_pylist()) == {"no_guess"}
    assert pieces.trajectory_hash(given.whole) == given.summary["trajectory_hash"]


def test_damage_within_a_scan(simulate, run_program, tmp_path):
    """Its check sum is not looked at by the index, nor by pieces that begin behind it."""
    drive = simulate(*SMALL)
    with drive.bag.open("rb") as stream:
        scans = [one for one in bag_records.Records(stream.fileno()) if one[0] == bag_records.SCAN]
        stream.seek(0)
        data = bytearray(stream.read())
    data[scans[60][2] + 1000] ^= 1
    damaged = tmp_path / "damaged.bag"
    damaged.write_bytes(data)
    replays = Replays(run_program, tmp_path, damaged, drive.map, DESKEW)
    assert replays.index.scans == 150 and len(replays.whole) == 60
    table, plan, removed = replays.joined(5.0, 2.0)
    assert len(replays.rows(*plan[2][::2])) == plan[2][2] - plan[2][0], "it begins behind the damage"
    assert removed == 0 and table["seq"].to_pylist() == list(range(60))
    compare([(replays.whole, table, plan)])


def test_a_piece_does_not_know_more_than_the_whole(simulate, run_program, tmp_path):
    """Lost from the start, and no search: a piece would begin at the true pose."""
    drive = simulate(*SMALL)
    lost = ("--set", "recovery.enable=false", "--set", "initial_pose.pose=[400,0,0,0,0,0,1]", *DESKEW)
    replays = Replays(run_program, tmp_path, drive.bag, drive.map, lost)
    assert not any(replays.whole["trusted"].to_pylist())
    piece = replays.rows(100, 150)
    assert any(piece["trusted"].to_pylist())
    table, plan, removed = replays.joined(5.0)
    assert removed == len(plan) - 1 and replays.again <= 2
    assert pieces.trajectory_hash(table) == replays.summary["trajectory_hash"] == pieces.trajectory_hash(replays.whole)
