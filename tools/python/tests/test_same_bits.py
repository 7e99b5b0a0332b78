"""The package and the command line: the same bits."""
import json
import pickle

import numpy as np
import pytest

import ndtd


@pytest.mark.parametrize("options", [{}, {"preprocess.deskew": "time"}, {"ndt.variant": "autoware", "ndt.levels": (2,)},
                                     {"ndt.levels": np.array([2.0, 1.0]), "recovery.enable": False, "cpu.threads": np.int64(1)}],
                         ids=["default", "deskew", "autoware", "levels"])
def test_replay_has_the_hash_of_the_command_line(trajectory_hash, drive, options):
    texts = {name: str(value).replace("(2,)", "[2]").replace("False", "false").replace("2. ", "2,") for name, value in options.items()}
    sets = [word for name, value in texts.items() for word in ("--set", f"{name}={value}")]
    replay = ndtd.Replay(drive.bag, drive.map, options=options)
    assert len(list(replay)) == 20 and replay.hash == trajectory_hash(drive.bag, drive.map, *sets)
    assert list(replay) == [] and replay.warnings == []


def test_skip_limit_and_configuration(trajectory_hash, drive, tmp_path):
    (tmp_path / "a.yaml").write_text(f"map:\n  path: {drive.map}\npreprocess:\n  voxel_m: 0.4\n")
    replay = ndtd.Replay(drive.bag, config=tmp_path / "a.yaml", skip=3, limit=5)
    scans = list(replay)
    assert [scan.seq for scan in scans] == [3, 4, 5, 6, 7]
    assert replay.hash == trajectory_hash(drive.bag, drive.map, "-c", tmp_path / "a.yaml", "--skip", 3, "--limit", 5)


def test_results_have_the_numbers_of_the_command_line(run_program, drive, tmp_path):
    rows_file = tmp_path / "results.jsonl"
    run_program("ndtd", "--replay", drive.bag, "--map", drive.map, "--set", "preprocess.deskew=time", "--results", rows_file)
    rows = [json.loads(line) for line in rows_file.read_text().splitlines()]
    scans = list(ndtd.Replay(drive.bag, drive.map, options={"preprocess.deskew": "time"}))
    assert len(rows) == len(scans) == 20
    for row, scan in zip(rows, scans):
        assert (row["seq"], row["stamp_ns"], row["outcome"], row["state"]) == (scan.seq, scan.stamp_ns, scan.outcome, scan.state)
        assert row["pose"] == [*scan.position, *scan.quaternion] and row["covariance"] == scan.covariance.ravel().tolist()
        assert row["twist"] == scan.twist.tolist() and row["nvtl"] == scan.scores.nvtl and row["iterations"] == scan.iterations
        assert row["confidence"] == scan.confidence and scan.trusted and scan.reason == "" and scan.points == 1500
        assert np.array_equal(scan.pose[:3, 3], scan.position) and len(scan.trace) == scan.iterations and scan.align_us > 0
    assert repr(scans[0]).startswith("ndtd.Scan(seq 0, converged, tracking, x ")


def test_align_is_the_alignment_of_the_command_line(run_program, drive, scans, poses, street, tmp_path):
    """Without prior and motion the pose of a first scan is that of its alignment."""
    row_file = tmp_path / "results.jsonl"
    for k in (0, 7, 13):
        start = ndtd.align(street, scans[k]["points"], poses[k], max_iterations=0)
        guess = [*(start.position + (0.3, -0.2, 0.1)), *start.quaternion]
        run_program("ndtd", "--replay", drive.bag, "--map", drive.map, "--set", "ndt.prior=off", "--skip", k, "--limit", 1,
                    "--initial-pose", ",".join(repr(float(number)) for number in guess), "--results", row_file)
        row = json.loads(row_file.read_text())
        result = ndtd.align(street, ndtd.preprocess(scans[k]["points"], sequence=row["seq"]), guess)
        assert row["outcome"] == "converged" and row["pose"][:3] == result.position.tolist()
        assert np.allclose(row["pose"][3:], result.quaternion, rtol=0, atol=1e-15)  # composed with the mount: the last digit
        assert row["iterations"] == result.iterations


def test_truth_and_errors(drive):
    replay = ndtd.Replay(drive.bag, drive.map, options={"preprocess.deskew": "time"})
    assert replay.truth(0) is None
    for scan in replay:
        truth = replay.truth(scan.stamp_ns)
        assert truth.shape == (4, 4) and np.linalg.norm(truth[:3, 3] - scan.position) < 0.05


def test_scans_may_be_pickled(drive):
    scan = next(ndtd.Replay(drive.bag, drive.map))
    again = pickle.loads(pickle.dumps(scan))
    assert repr(again) == repr(scan) and np.array_equal(again.pose, scan.pose) and len(again.trace) == len(scan.trace)


def test_a_bag_that_is_written_here_replays_alike(run_program, trajectory_hash, drive, tmp_path):
    """Scans, poses and truth through BagWriter: the same hash."""
    pytest.importorskip("msgpack")
    import drive_bags

    copy = tmp_path / "copy.bag"
    with ndtd.BagWriter(copy) as bag:
        for kind, message in drive_bags.messages_of(drive.bag):
            drive_bags.write(bag, kind, message)
    run_program("ndt-bag", "check", copy)
    replay = ndtd.Replay(copy, drive.map, options={"preprocess.deskew": "time"})
    assert len(list(replay)) == 20
    assert replay.hash == trajectory_hash(drive.bag, drive.map, "--set", "preprocess.deskew=time")


def test_damage_is_a_warning(run_program, drive, tmp_path):
    data = drive.bag.read_bytes()
    (tmp_path / "cut.bag").write_bytes(data[: len(data) * 2 // 3])
    replay = ndtd.Replay(tmp_path / "cut.bag", drive.map)
    scans = list(replay)
    assert 10 <= len(scans) < 20 and len(replay.warnings) == 1 and "cut.bag" in replay.warnings[0]


def test_kitti(trajectory_hash, shared_data, tmp_path):
    """A real drive: packed by ndt-bag, replayed by both."""
    data = shared_data / "kitti0005_lite"
    bag = tmp_path / "kitti.bag"
    with ndtd.BagWriter(bag) as out:
        stamps = np.loadtxt(data / "times.txt")
        truth = np.loadtxt(data / "poses_velo_lidar_refined.txt").reshape(-1, 3, 4)
        for k in range(1, 40, 2):
            stamp_ns = int(round(stamps[k] * 1e9))
            pose = np.vstack([truth[k], [0, 0, 0, 1]])
            pose[:3, :3] = np.linalg.svd(pose[:3, :3])[0] @ np.linalg.svd(pose[:3, :3])[2]
            if k == 1:
                out.initial_pose(stamp_ns, pose)
            out.truth(stamp_ns, pose)
            cloud = ndtd.read_cloud(sorted((data / "scans").iterdir())[k])
            out.scan(stamp_ns, cloud["points"], intensity=cloud["intensity"], seq=k)
    target = data / "map_from_even_scans_0.20m.pcd"
    replay = ndtd.Replay(bag, target, options={"preprocess.deskew": "azimuth_cw"})
    errors = [np.linalg.norm(scan.position - replay.truth(scan.stamp_ns)[:3, 3]) for scan in replay]
    assert len(errors) == 20 and np.median(errors) < 0.03
    assert replay.hash == trajectory_hash(bag, target, "--set", "preprocess.deskew=azimuth_cw")
