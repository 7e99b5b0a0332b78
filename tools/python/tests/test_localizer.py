"""ndtd.Localizer: the bits of a replay inside the program, one line for what is wrong, threads, memory, processes."""
import gc
import json
import os
import threading

import numpy as np
import pytest
from drive_bags import messages_of, scans_of, truth_of, write
from test_threads_and_memory import least_growth

import ndtd

OPTIONS = {"preprocess.deskew": "time"}


def pose_of(message):
    return np.array(message["pose"], float)


def push(localizer, scans, poses, twist=(0, 0, 0, 0, 0, 0)):
    """The drive as a bag has it: the first pose, then the scans."""
    localizer.initial_pose(scans[0]["stamp_ns"], poses[0], twist=twist)
    return [localizer.scan(scan["stamp_ns"], scan["points"], intensity=scan["intensity"], time_s=scan["time_s"]) for scan in scans]


@pytest.fixture(scope="module")
def bag(scans, poses, tmp_path_factory):
    path = tmp_path_factory.mktemp("localizer") / "drive.bag"
    with ndtd.BagWriter(path) as writer:
        writer.initial_pose(scans[0]["stamp_ns"], poses[0], twist=(0, 0, 0, 0, 0, 0))
        for seq, scan in enumerate(scans):
            writer.scan(scan["stamp_ns"], scan["points"], intensity=scan["intensity"], time_s=scan["time_s"], seq=seq)
    return path


def test_the_hash_is_that_of_a_replay(drive, bag, scans, poses):
    """The same bits, with the map as a path and as a Map, whatever the number of threads."""
    replay = ndtd.Replay(bag, drive.map, options=OPTIONS)
    wanted = list(replay)
    for target, threads in ((drive.map, 1), (ndtd.Map(drive.map), 2)):
        localizer = ndtd.Localizer(target, options={**OPTIONS, "cpu.threads": threads})
        got = push(localizer, scans, poses)
        assert localizer.hash == replay.hash
        for a, b in zip(got, wanted):
            assert (a.seq, a.stamp_ns, a.outcome, a.state, a.trusted) == (b.seq, b.stamp_ns, b.outcome, b.state, b.trusted)
            np.testing.assert_array_equal(a.covariance, b.covariance)
            assert len(a.trace) == len(b.trace)
    assert all(scan.trusted for scan in got) and any(scan.trace for scan in got)


def test_protection_levels_change_no_pose(drive, scans, poses):
    off, on = (ndtd.Localizer(drive.map, options={**OPTIONS, **options})
               for options in ({}, {"integrity.risk": 1e-5, "integrity.alert_limit_m": 1e-3}))
    assert push(off, scans, poses)[-1].protection_level is None
    last = push(on, scans, poses)[-1]
    assert on.hash == off.hash
    assert last.protection_level.shape == (4,) and (last.protection_level > 0).all()
    assert last.unsafe and "limit 0.001 m" in last.protection_reason


def test_motion_without_a_first_pose(drive, scans, poses):
    """Odometry, IMU, GNSS and a transform are taken in; the first scan is searched for in the map."""
    localizer = ndtd.Localizer(drive.map, options=OPTIONS)
    results = []
    for k, scan in enumerate(scans[:6]):
        stamp = scan["stamp_ns"]
        localizer.transform(stamp, "lidar", np.eye(4))
        localizer.odometry(stamp, pose=poses[k])
        localizer.imu(stamp, (0, 0, 0), (0, 0, 9.81))
        localizer.gnss(stamp, poses[k][:3, 3] if poses[k].shape == (4, 4) else poses[k][:3], (0.5, 0.5, 1))
        results.append(localizer.scan(stamp, scan["points"], time_s=scan["time_s"]))
    assert results[-1].trusted


def test_the_pose_at_any_time(drive, scans, poses):
    localizer = ndtd.Localizer(drive.map, options=OPTIONS)
    with pytest.raises(LookupError, match="no_pose: "):
        localizer.pose_at()
    push(localizer, scans[:4], poses)
    now, before = localizer.pose_at(), localizer.hash
    assert now["kind"] == "filtered" and now["state"] == "tracking" and now["scan_ns"] == now["stamp_ns"]
    assert now["pose"].shape == (4, 4) and now["covariance"].shape == (6, 6) and now["twist"].shape == (6,)
    between = localizer.pose_at(now["stamp_ns"] - 130_000_000)
    assert between["kind"] == "smoothed" and np.all(np.diag(between["covariance"]) > 0)
    assert localizer.pose_at(np.int64(now["stamp_ns"] + 100_000_000))["kind"] == "predicted"
    with pytest.raises(LookupError, match="too_far_ahead: the stamp is 0.3 s later than can be predicted"):
        localizer.pose_at(now["stamp_ns"] + 500_000_000)
    with pytest.raises(TypeError, match="stamp_ns"):
        localizer.pose_at("now")
    assert localizer.hash == before


def along(pose, distance_m):
    return pose @ [[1, 0, 0, distance_m], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def localized(drive, along_m, twist, gap=0, scans=30):
    """Every scan with its result and error [m], from a first pose that is off along the way; `gap` scans are left out."""
    truth, localizer = truth_of(drive.bag), ndtd.Localizer(drive.map, options=OPTIONS)
    for at, scan in enumerate(scans_of(drive.bag)):
        stamp_ns, right = scan["stamp_ns"], truth[scan["stamp_ns"]]
        if at == 0:
            localizer.initial_pose(stamp_ns, along(right, along_m), twist=twist)
        if at == scans:
            return
        if 8 <= at < 8 + gap:
            continue
        found = localizer.scan(stamp_ns, scan["points"], time_s=scan["time_s"])
        off_m = np.linalg.norm(found.pose[:3, 3] - right[:3, 3])
        assert off_m <= 1 or not (found.trusted or found.outcome == "converged"), f"scan {at}: {off_m} m off, {found}"
        yield at, found, off_m


@pytest.fixture(scope="module")
def corridor(simulate):
    """One step aside all looks the same; the bag begins with the true pose and velocity."""
    return simulate("--seed", 1, "--world", "corridor", "--scans", 30, "--columns", 600)


@pytest.mark.parametrize("along_m, speed_mps, gap", [(-3, None, 0), (3, None, 0), (0, 5, 0), (0, -3, 0), (2, 5, 10), (-3, None, 10)])
def test_a_wrong_start_where_all_looks_alike(along_m, speed_mps, gap, corridor):
    """Off along the corridor, with a wrong first velocity (the true one is 1.3 m/s), over a gap of scans: no pose that is off
    by a metre is trusted, and while nothing tells where it is, its deviation is as large as its error: all places count."""
    twist = None if speed_mps is None else (speed_mps, 0, 0, 0, 0, 0)
    for at, found, off_m in localized(corridor, along_m, twist, gap):
        if not found.trusted and speed_mps is None:
            assert off_m <= 4 * np.sqrt(np.linalg.norm(found.covariance[:3, :3], 2)), f"scan {at}: {off_m} m"


@pytest.mark.parametrize("world, seed, along_m, faster_mps", [("corridor", 312, 0, -4), ("terrace", 369, -2, 4), ("shelves", 421, 0, 0)])
def test_a_first_velocity_that_the_sweeps_contradict(world, seed, along_m, faster_mps, simulate):
    """Drives that were wrong and trusted: 1.3 m, one house on from the first scan, and, from an exact start, 1.3 m where a
    sweep tells hardly anything of the velocity along an aisle."""
    drive = simulate("--seed", seed, "--world", world, "--scans", 30, "--columns", 600)
    first = next(message for kind, message in messages_of(drive.bag) if kind == "initial_pose")
    twist = np.add(first["twist"], (faster_mps, 0, 0, 0, 0, 0))
    assert [at for at, _, _ in localized(drive, along_m, twist, scans=8)] == list(range(8))


def scaled(by):
    def lie(message):
        message["pose"][:3] = [by * x for x in message["pose"][:3]]
        message["twist"][:3] = [by * x for x in message["twist"][:3]]
    return lie


def turned(by):
    def lie(message):
        message["angular_velocity"] = [by * x for x in message["angular_velocity"]]
    return lie


@pytest.fixture(scope="module")
def street_with_motion(simulate):
    return simulate("--seed", 5, "--scans", 90, "--beams", 16, "--columns", 600, "--map-spacing", 0.3, "--odometry", "--imu", 100)


@pytest.mark.parametrize("kind, lie, words", [
    ("odometry", scaled(0.2), "scale 0.2"), ("odometry", scaled(-1), "it runs backwards, scale "),
    ("odometry", scaled(0), "it stands still while they move; "),
    ("imu", turned(0), "it does not turn while they turn; "), ("imu", turned(0.3), "scale of the rotation 0.3"),
    ("imu", turned(2), "scale of the rotation 2"), ("imu", turned(-1), "it turns the other way, scale ")])
def test_an_input_that_lies_is_named_and_not_believed(kind, lie, words, street_with_motion, run_program, tmp_path):
    """One line of a replay names it, alone beside the scans; no pose is off, and the scans go on without it."""
    drive, truth = street_with_motion, truth_of(street_with_motion.bag)
    with ndtd.BagWriter(tmp_path / "lie.bag") as bag:
        for name, message in messages_of(drive.bag):
            if name == kind:
                lie(message)
            if name in (kind, "initial_pose", "scan", "truth"):
                write(bag, name, message)
    said = run_program("ndtd", "--replay", tmp_path / "lie.bag", "--map", drive.map, "--set", "preprocess.deskew=time",
                       "--results", tmp_path / "results.jsonl").stderr
    assert f"{kind} disagrees with the scans: {words}" in said and said.count("disagrees") == 1, said
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert len(rows) == 90 and {row["state"] for row in rows[-10:]} == {"tracking"}
    assert max(np.linalg.norm(np.array(row["pose"][:3]) - truth[row["stamp_ns"]][:3, 3]) for row in rows) < 0.5


def test_another_map_and_what_is_refused_changes_nothing(drive, scans, poses):
    localizer, plain = (ndtd.Localizer(drive.map, options=OPTIONS) for _ in range(2))
    push(localizer, scans[:3], poses)
    push(plain, scans[:3], poses)
    points, stamp = scans[3]["points"], scans[3]["stamp_ns"]
    for call, line in (
            (lambda: localizer.scan(points, stamp), r"scan\(stamp_ns, points\): stamp_ns: a whole number is wanted, not .*ndarray"),
            (lambda: localizer.scan(stamp / 1e9, points), r"not float: nanoseconds, as int\(stamp_s \* 1e9\)"),
            (lambda: localizer.scan(stamp, points, [0.0]), r"scan\(stamp_ns, points, time_s=.*: further arguments are wanted by name"),
            (lambda: localizer.scan(stamp, points, times=[0.0]), r"scan\(\) has no argument 'times'; did you mean 'time_s'\?"),
            (lambda: localizer.initial_pose(stamp, [0, 0, 0, 0, 0, 90, 1]), "the quaternion has length 90.01"),
            (lambda: localizer.scan(stamp, np.zeros((4, 2))), "points"),
            (lambda: localizer.scan(stamp, points, time_s=[0.0]), "time_s"),
            (lambda: localizer.scan(stamp, points, frame_id="x" * 200), "frame_id"),
            (lambda: localizer.initial_pose(stamp, np.full((4, 4), np.nan)), "pose"),
            (lambda: localizer.odometry(stamp), "pose"),
            (lambda: localizer.odometry(stamp, 1.0), r"odometry\(stamp_ns, pose=, twist=\): further arguments are wanted by name"),
            (lambda: localizer.odometry(stamp, twist=[1, 0, 0]), "twist vx vy vz wx wy wz: 6 numbers are wanted, not 3"),
            (lambda: localizer.imu(stamp, (0, np.inf, 0)), "angular_velocity"),
            (lambda: localizer.gnss(stamp, (0, 0)), "position"),
            (lambda: localizer.set_map("map.pcd"), "an ndtd.Map is wanted, not str")):
        with pytest.raises((ValueError, TypeError), match=line) as caught:
            call()
        assert "\n" not in str(caught.value)
    localizer.set_map(ndtd.Map(drive.map))
    for one in (localizer, plain):
        one.scan(stamp, points, time_s=scans[3]["time_s"])
    assert localizer.hash == plain.hash


@pytest.mark.parametrize("arguments, options, kind, line", [
    (("missing.pcd",), {}, FileNotFoundError, "missing.pcd"),
    ((), {}, ValueError, "map: none was given"),
    ((5,), {}, TypeError, "PathLike"),
    ((np.zeros((9, 3)),), {}, TypeError, r"not an array: ndtd.Map\(array\)"),
    (("map.pcd", "ndtd.yaml"), {}, TypeError, r"Localizer\(map, config=, options=\): further arguments are wanted by name"),
    (("map.pcd",), {"voxel_m": 0.2}, TypeError, r"Localizer\(\) has no argument 'voxel_m'"),
    (("map.pcd",), {"options": {"preproces.deskew": "time"}}, ValueError, "preprocess.deskew"),
    (("map.pcd",), {"config": "missing.yaml"}, FileNotFoundError, "missing.yaml")])
def test_what_cannot_be_made(arguments, options, kind, line):
    with pytest.raises(kind, match=line) as caught:
        ndtd.Localizer(*arguments, **options)
    assert "\n" not in str(caught.value)


def test_warnings_and_reasons_say_what_is_wrong(drive, scans):
    """Points that cannot be used, and the motion that stays in them; of a right drive there is none."""
    localizer = ndtd.Localizer(drive.map, options={**OPTIONS, "frames.T_base_sensor": np.eye(4)})
    assert localizer.warnings == []
    stamp, points = scans[0]["stamp_ns"], scans[0]["points"]
    far = localizer.scan(stamp, 1000 * points, time_s=scans[0]["time_s"])
    assert far.outcome == "no_guess" and "all points are beyond preprocess.max_range_m, 200 m" in far.reason
    assert far.reason in repr(far) and localizer.warnings == [f"scans without a usable point: 1 so far, the last: {far.reason}"]
    with pytest.raises(ValueError, match="^frames.T_base_sensor: the last row of the matrix"):
        ndtd.Localizer(drive.map, options={"frames.T_base_sensor": 2 * np.eye(4)})


def test_threads_wait_for_each_other(drive, scans, poses):
    """Four threads push the same scans into one localiser while a fifth has one of its own."""
    shared, own, hashes = ndtd.Localizer(drive.map), ndtd.Localizer(drive.map), []

    def work(localizer):
        for scan in scans[:4]:
            localizer.scan(scan["stamp_ns"], scan["points"])
        hashes.append(localizer.hash)

    threads = [threading.Thread(target=work, args=(one,)) for one in (shared, shared, shared, shared, own)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(hashes) == 5


def test_memory_and_forks(drive, scans, poses):
    localizer = ndtd.Localizer(drive.map, options=OPTIONS)
    push(localizer, scans[:2], poses)
    stamp = [scans[1]["stamp_ns"]]

    def turn():
        stamp[0] += 1
        localizer.initial_pose(stamp[0], poses[1])
        localizer.scan(stamp[0], scans[1]["points"])

    for _ in range(20):
        turn()
    gc.collect()
    assert least_growth(turn, 20) < 1e6
    child = os.fork()
    if child == 0:
        try:
            localizer.scan(stamp[0], scans[1]["points"])
        except RuntimeError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
