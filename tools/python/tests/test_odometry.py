"""ndtd.Odometry: a simulated drive without a map, the velocity of the start, and arguments that cannot be."""
import numpy as np
import pytest
from drive_bags import scans_of, truth_of

import ndtd


@pytest.fixture(scope="module")
def scans(drive):
    """(stamp, points, times) of the drive, and its true poses."""
    return [(scan["stamp_ns"], scan["points"], scan["time_s"]) for scan in scans_of(drive.bag)], truth_of(drive.bag)


def follow(scans, odometry):
    """The results of a drive whose start was driven before."""
    for _ in range(2):
        for scan in scans[:7]:
            odometry.add(*scan[:2], time_s=scan[2])
        assert odometry.restart()
    return [odometry.add(stamp_ns, points, time_s=time_s) for stamp_ns, points, time_s in scans]


def test_a_drive_without_a_map(scans):
    found, truth = scans
    odometry = ndtd.Odometry(map_voxel_m=0.1)
    results = follow(found, odometry)
    first = truth[found[0][0]]
    for result in results:
        moved = np.linalg.inv(first) @ truth[result.stamp_ns]
        assert result.located and result.outcome == "converged" and not result.degenerate and result.segment == 0
        assert np.linalg.norm(result.pose[:3, 3] - moved[:3, 3]) < 0.25  # the first attitude is that of one sparse scan
        assert np.all(np.linalg.eigvalsh(result.covariance) > 0) and result.deviation_m < 0.2
    assert results[0].keyframe and sum(result.keyframe for result in results) > 5
    assert odometry.points.shape[1] == 3 and len(odometry.points) > 500
    assert odometry.map.points > 0 and odometry.map.levels == [4.0, 2.0, 1.0]
    assert "converged" in repr(results[-1])


def test_the_same_scans_give_the_same_bits(scans):
    one, other = (follow(scans[0], ndtd.Odometry()) for _ in range(2))
    assert all(np.array_equal(a.pose, b.pose) and np.array_equal(a.covariance, b.covariance) for a, b in zip(one, other))


def test_scans_that_cannot_be_used(scans):
    odometry = ndtd.Odometry()
    assert odometry.map is None and not odometry.restart()
    stamp_ns, points, time_s = scans[0][0]
    assert odometry.add(stamp_ns, np.empty((0, 3))).reason == "no point of it is finite and within range"
    assert odometry.add(stamp_ns, points, time_s=time_s).located
    again = odometry.add(stamp_ns, points, time_s=time_s)
    assert again.outcome == "rejected" and "not newer" in again.reason and len(odometry.points) == 0
    lost = odometry.add(stamp_ns + 10**8, np.full((100, 3), np.nan))
    assert lost.outcome == "rejected"


@pytest.mark.parametrize(("options", "error", "text"), [
    ({"windows": 3}, TypeError, "windows"),
    ({"window": 0}, ValueError, "window: 0 is outside 1 .. 10000"),
    ({"max_keyframes": 5}, ValueError, "max_keyframes: 5 is outside 20"),
    ({"deskew": "sideways"}, ValueError, "deskew: 'sideways' is not known"),
    ({"levels": [1, 0.5]}, ValueError, "cells of 0.5 m need points thinned to 0.125 m or less"),
    ({"backend": "abacus"}, ValueError, "abacus"),
])
def test_wrong_arguments_are_named(options, error, text):
    with pytest.raises(error, match=text):
        ndtd.Odometry(**options)


def test_other_sensors():
    odometry = ndtd.Odometry()
    odometry.add_imu(0, [0, 0, 0.1], [0, 0, 9.81])
    odometry.add_wheels(0, twist=[1, 0, 0, 0, 0, 0])
    with pytest.raises(ValueError, match="a pose, a twist or both"):
        odometry.add_wheels(0)
    with pytest.raises(ValueError, match="angular_velocity"):
        odometry.add_imu(0, [1, 2])


@pytest.mark.parametrize(("call", "given", "text"), [
    ("add", (np.zeros((3, 3), "f4"), 0), r"add\(stamp_ns, points\): stamp_ns: a whole number is wanted, not ndarray"),
    ("add_imu", ([0, 0, 0.1], 0), r"add_imu\(stamp_ns, angular_velocity\): stamp_ns: a whole number is wanted, not list"),
    ("add_wheels", (np.eye(4),), r"add_wheels\(stamp_ns, pose=, twist=\): stamp_ns: a whole number"),
])
def test_arguments_in_another_order(call, given, text):
    with pytest.raises(TypeError, match="^" + text):
        getattr(ndtd.Odometry(), call)(*given)


def test_scans_before_the_first_step_set_no_measure(simulate):
    """While a person stands each scan meets the points that it was measured at, and fits as none does that is measured on the way."""
    walk = simulate("--world", "hall", "--carrier", "handheld", "--rate", 10, "--scans", 40, "--seed", 5, "--beams", 16, "--columns", 600,
                    "--map-spacing", 1)
    scans, odometry = scans_of(walk.bag), ndtd.Odometry(map_voxel_m=0.1)
    random = np.random.default_rng(4)
    for k in range(-60, len(scans)):
        scan = scans[max(k, 0)]
        points = scan["points"] + 0.01 * random.normal(size=scan["points"].shape)
        found = odometry.add(scans[0]["stamp_ns"] + k * 10**8, points, time_s=scan["time_s"] if k > 0 else 0 * scan["time_s"])
        assert found.located, (k, found.reason, found.fit)
