"""ndtd --map none: replay and daemon without a map, with poses in the frame odom, and what is no pose any more."""
import json

import numpy as np
import pytest

import ndtd

pytest.importorskip("msgpack")

import drive_bags  # noqa: E402
from drive_bags import scans_of, truth_of  # noqa: E402
from ndtd.poses import matrix  # noqa: E402

SMALL = ("--beams", 16, "--columns", 600, "--map-spacing", 0.3)


@pytest.fixture(scope="module")
def street(simulate):
    return simulate("--seed", 8, "--scans", 60, *SMALL)


def errors_m(results, truth):
    """Distances from the truth, both relative to the first scan."""
    from ndtd.mapping import se3
    first = matrix(results[0]["pose"]) @ se3.inverse(truth[results[0]["stamp_ns"]])
    return np.array([np.linalg.norm(matrix(one["pose"])[:3, 3] - (first @ truth[one["stamp_ns"]])[:3, 3]) for one in results])


def replay(run_program, bag, folder, *options):
    done = run_program("ndtd", "--replay", bag, "--map", "none", "--out", folder / "odom.tum", "--results", folder / "results.jsonl", *options)
    results = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    poses = [line for line in (folder / "odom.tum").read_text().splitlines() if not line.startswith("#")]
    return done.stdout + done.stderr, results, poses


def test_a_replay_without_a_map(run_program, street, tmp_path):
    said, results, poses = replay(run_program, street.bag, tmp_path)
    assert {one["frame_id"] for one in results} == {"odom"} and {one["outcome"] for one in results} == {"converged"}
    assert results[0]["pose"] == [0, 0, 0, 0, 0, 0, 1] and len(poses) == 60 and {one["state"] for one in results} == {"tracking"}
    assert errors_m(results, truth_of(street.bag)).max() < 0.4  # the velocity at the start is not known: the first scan is deformed
    assert "off              0 of 60" in said and "hint" not in said
    again = tmp_path / "again"
    again.mkdir()
    _, other, _ = replay(run_program, street.bag, again, "--set", "cpu.threads=1")
    assert [one["pose"] for one in other] == [one["pose"] for one in results]


def test_where_the_way_cannot_be_told_no_pose_is_called_one(run_program, simulate, tmp_path):
    tunnel = simulate("--world", "tunnel", "--seed", 2, "--scans", 40, "--odometry", *SMALL)
    with ndtd.BagWriter(tmp_path / "scans.bag") as out:
        for scan in scans_of(tunnel.bag):
            drive_bags.write(out, "scan", scan)
    _, results, poses = replay(run_program, tmp_path / "scans.bag", tmp_path)
    assert {one["outcome"] for one in results[1:]} == {"lost"} and {one["state"] for one in results[1:]} == {"lost"}
    assert "the way was lost: scans do not tell it" in results[5]["reason"] and len(poses) == 1
    _, results, poses = replay(run_program, tunnel.bag, tmp_path)  # wheels tell it
    assert {one["state"] for one in results} <= {"tracking", "coasting"} and len(poses) == 40
    assert sum(one["state"] == "coasting" for one in results) > 30 and "wheels do" in results[20]["reason"]
    assert errors_m(results, truth_of(tunnel.bag)).max() < 0.02 * 56


@pytest.mark.parametrize("seed", [12, 32])
def test_doors_that_are_mixed_up_end_the_way(run_program, simulate, tmp_path, seed):
    rooms = simulate("--world", "dormitory", "--carrier", "handheld", "--scans", 60, "--seed", seed)
    _, results, _ = replay(run_program, rooms.bag, tmp_path)
    tracking = np.array([one["state"] == "tracking" for one in results])
    assert 5 < tracking.sum() < 60 and not tracking[np.flatnonzero(~tracking)[0]:].any()
    assert errors_m(results, truth_of(rooms.bag))[tracking].max() < 0.5


def test_an_initial_pose_begins_anew_and_other_frames_are_not_used(street, tmp_path):
    scans = scans_of(street.bag)[:12]
    with ndtd.BagWriter(tmp_path / "mixed.bag") as out:
        for k, scan in enumerate(scans):
            if k == 8:
                out.initial_pose(scan["stamp_ns"], [50, 0, 0, 0, 0, 0, 1])
            out.scan(scan["stamp_ns"], scan["points"], time_s=scan["time_s"], seq=k, frame_id="left" if k == 3 else "lidar")
    results = list(ndtd.Replay(tmp_path / "mixed.bag", "none"))
    assert [one.outcome for one in results] == ["converged"] * 3 + ["rejected"] + ["converged"] * 8
    assert "the frame of the first one" in results[3].reason
    assert np.linalg.norm(results[7].position) > 2 and np.linalg.norm(results[8].position) < 1e-9


def test_a_daemon_without_a_map(bin_dir, street, tmp_path):
    """Every scan is answered with the pose of the replay."""
    pytest.importorskip("zmq")
    with drive_bags.daemon(bin_dir / "ndtd", tmp_path, "none") as daemon:
        with ndtd.Client(**daemon.endpoints) as client:
            client.request("status", timeout=30)
            client.wait_ready(30)
            for scan in scans_of(street.bag)[:20]:
                seq = client.publish_scan(scan["stamp_ns"], scan["points"], time_s=scan["time_s"], frame_id=scan["frame_id"])
                result = drive_bags.answer(client, seq)
                assert result["frame_id"] == "odom" and result["outcome"] == "converged" and result["state"] == "tracking"
            client.request("initial_pose", pose=[9, 0, 0, 0, 0, 0, 1])
            scan = scans_of(street.bag)[20]
            seq = client.publish_scan(scan["stamp_ns"], scan["points"], time_s=scan["time_s"], frame_id=scan["frame_id"])
            assert drive_bags.answer(client, seq)["pose"] == [0, 0, 0, 0, 0, 0, 1]
        known = [one.pose for one in ndtd.Replay(street.bag, "none", limit=20)]
        assert np.abs(matrix(result["pose"]) - known[-1]).max() < 1e-12
        assert "odometry without a map" in daemon.log()
        daemon.process.terminate()
        assert daemon.process.wait(30) == 0
