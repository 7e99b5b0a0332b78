"""Results of align, align_batch, preprocess and localize."""
import pickle
import re

import numpy as np
import pytest

import ndtd


@pytest.fixture(scope="module")
def scan(scans):
    return ndtd.preprocess(scans[0]["points"], scans[0]["time_s"])


@pytest.fixture(scope="module")
def near(poses):
    """A start 0.3 m beside the truth."""
    out = poses[0].copy()
    out[:3, 3] += (0.2, -0.2, 0.1)
    return out


def bits(result):
    """All that a result says but its durations."""
    rows = [(row.level, row.score, row.step_m, row.step_rad, row.pose.tobytes()) for row in result.trace]
    covariance = None if result.covariance is None else result.covariance.tobytes()
    return (result.outcome, result.reason, result.pose.tobytes(), covariance, result.confidence, repr(result.scores),
            result.weak_axes.tobytes(), result.iterations, result.evaluations, result.points, rows)


def test_result(street, scan, near, poses):
    result = ndtd.align(street, scan, near)
    assert result.converged and result.outcome == "converged" and result.reason == ""
    assert result.pose.shape == (4, 4) and result.pose.dtype == np.float64
    assert np.linalg.norm(result.position - poses[0][:3, 3]) < 0.05
    assert np.array_equal(result.pose[:3, 3], result.position) and np.allclose(np.linalg.norm(result.quaternion), 1)
    x, y, z, w = result.quaternion
    assert np.allclose(result.pose[:3, 0], [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)])
    assert result.covariance.shape == (6, 6) and np.linalg.eigvalsh(result.covariance).min() > 0
    assert 0.9 < result.confidence <= 1 and result.points == len(scan) and result.align_us > 0
    assert 0 < result.scores.nvtl_normalized < 1 and 0 < result.scores.match_ratio <= 1 and 0 < result.scores.coverage <= 1
    assert result.weak_axes.shape == (0, 6)
    assert len(result.trace) == result.iterations and [row.iteration for row in result.trace] == list(range(result.iterations))
    assert [row.level for row in result.trace] == sorted((row.level for row in result.trace), reverse=True)
    assert np.allclose(result.trace[-1].pose, result.pose) and result.trace[0].step_m > 0
    assert sum(row.evaluations for row in result.trace) <= result.evaluations


def test_arrays_are_new_each_time(street, scan, near):
    result = ndtd.align(street, scan, near)
    pose = result.pose
    pose[:] = 0
    assert result.pose[3, 3] == 1


def test_points_of_any_layout_give_the_same_bits(street, scan, near):
    wanted = bits(ndtd.align(street, scan, near))
    wide = np.hstack([scan, np.full((len(scan), 2), np.nan, "f4")])
    frozen = scan.copy()
    frozen.flags.writeable = False
    every = np.repeat(scan, 2, axis=0)[::2]
    for points in (scan.astype("f8"), np.asfortranarray(scan), wide, wide[:, :3], frozen, every, scan.tolist()):
        assert bits(ndtd.align(street, points, near)) == wanted
    backwards = ndtd.align(street, scan[::-1], near)  # negative strides; another order is another sum
    assert bits(backwards) == bits(ndtd.align(street, scan[::-1].copy(), near))
    assert np.allclose(backwards.pose, ndtd.align(street, scan, near).pose, atol=1e-3)


def test_the_input_is_not_changed(street, scan, near):
    points, guess = scan.copy(), near.copy()
    ndtd.align(street, points, guess)
    assert np.array_equal(points, scan) and np.array_equal(guess, near)


def test_guess_as_numbers_or_matrix(street, scan, near):
    first = ndtd.align(street, scan, near)
    start = ndtd.align(street, scan, near, max_iterations=0)
    assert start.iterations == 0 and np.allclose(start.pose, near)
    again = ndtd.align(street, scan, [*start.position, *start.quaternion])
    assert np.allclose(again.pose, first.pose, atol=1e-9)
    assert ndtd.align(street, scan).outcome != "converged"  # the identity is far from there


def test_threads_do_not_change_bits(street, scan, near):
    results = {threads: bits(ndtd.align(street, scan, near, threads=threads)) for threads in (1, 2, 3, 5)}
    assert len(set(map(str, results.values()))) == 1


def test_batch_has_the_bits_of_single_alignments(street, scans, scan, near, poses):
    guesses = np.stack([near, poses[0], poses[1]])
    single = [ndtd.align(street, scan, guess) for guess in guesses]
    for together in (ndtd.align_batch(street, scan, guesses), ndtd.align_batch(street, scan, list(guesses)),
                     ndtd.align_batch(street, [scan] * 3, guesses)):
        assert [bits(one)[:-1] for one in together] == [bits(one)[:-1] for one in single]
        assert all(one.trace == [] for one in together)
    many = [ndtd.preprocess(one["points"], sequence=one["seq"]) for one in scans[:4]]
    together = ndtd.align_batch(street, many, poses[:4])
    assert [bits(one)[:-1] for one in together] == [bits(ndtd.align(street, *one))[:-1] for one in zip(many, poses)]
    assert ndtd.align_batch(street, scan, []) == []


def test_prior_holds_the_pose(street, scan, near):
    tight = ndtd.align(street, scan, near, prior=(near, 1e-10 * np.eye(6)))
    loose = ndtd.align(street, scan, near, prior=(near, 1e2 * np.eye(6)))
    free = ndtd.align(street, scan, near)
    assert np.linalg.norm(tight.position - near[:3, 3]) < 0.01 < np.linalg.norm(free.position - near[:3, 3])
    assert np.linalg.norm(loose.position - free.position) < 0.01 and tight.covariance is None


def test_levels_variant_and_deadline(street, scan, near):
    one = ndtd.align(street, scan, near, levels=[1])
    assert {row.level for row in one.trace} == {1.0} and one.converged
    assert ndtd.align(street, scan, near, variant="autoware").trace
    assert bits(ndtd.align(street, scan, near, neighbours="direct27")) != bits(ndtd.align(street, scan, near))
    assert ndtd.align(street, scan, near, deadline_s=1e-7).outcome in ("deadline", "converged")
    assert ndtd.align(street, scan, near, score_threshold=1).outcome == "low_score"
    assert ndtd.align(street, scan, near, min_match_ratio=1).outcome == "degenerate"
    assert ndtd.align(street, scan, near, max_iterations=1).outcome == "iteration_limit"


def test_the_defaults_in_the_signatures_are_those_that_count(street, scan, scans, near):
    """Signatures are text: given explicitly, their values change nothing."""
    for function, call in ((ndtd.Aligner.__init__, lambda options: bits(ndtd.align(street, scan, near, **options))),
                           (ndtd.preprocess, lambda options: ndtd.preprocess(scans[0]["points"], **options).tobytes()),
                           (ndtd.Map.__init__, lambda options: ndtd.Map(scans[0]["points"], **options).id)):
        text = function.__nb_signature__[0][0].split("*, ")[1]
        options = {name: eval(value) for name, value in re.findall(r"(\w+): [^=]*? = ('\w*'|\([^)]*\)|[\w.]+)", text)}
        assert len(options) >= 4
        options = {name: value for name, value in options.items() if value is not None}
        assert call(options) == call({})


def test_aligner_is_kept_for_the_next_call(street, scan, near):
    aligner = ndtd.Aligner(street, threads=2)
    assert bits(aligner.align(scan, near)) == bits(aligner.align(scan, near)) == bits(ndtd.align(street, scan, near))
    assert repr(aligner).startswith("ndtd.Aligner(cpu") and "2 threads" in repr(aligner)


def test_map_from_points_and_from_a_file(street, drive, tmp_path):
    cloud = ndtd.read_cloud(drive.map)
    again = ndtd.Map(cloud["points"].astype("f8") + cloud["origin"])
    assert again.id == street.id and again.levels == street.levels == [4, 2, 1] and again.points == street.points
    assert ndtd.Map(cloud["points"][::-1].astype("f8") + cloud["origin"]).id == street.id
    street.save(tmp_path / "a.ndtmap")
    assert ndtd.Map(tmp_path / "a.ndtmap").id == ndtd.Map(str(tmp_path / "a.ndtmap")).id == street.id and street.nbytes > 1e6
    other = ndtd.Map(drive.map, levels=[2, 0.5], min_points=10, covariance="autoware", threads=1)
    assert other.levels == [2, 0.5] and other.id != street.id
    voxels = street.voxels(1)
    assert voxels["mean"].shape[1:] == (3,) and voxels["inverse_covariance"].shape[1:] == (3, 3) and voxels["count"].min() >= 6
    assert f"{street.points} points, levels 4 m, 2 m, 1 m" in repr(street)


def test_coordinates_far_from_zero_keep_their_digits(rng):
    points = rng.normal(size=(20000, 3)) * (20, 20, 2)
    far = np.array([389000.0, 4970000.0, 120.0])
    here, there = ndtd.Map(points, levels=[2]), ndtd.Map(points + far, levels=[2])
    shift = there.voxels(2)["mean"].mean(axis=0) - here.voxels(2)["mean"].mean(axis=0)
    assert np.linalg.norm(there.origin) > 1e6 and np.allclose(shift, far, atol=0.5)
    scan = points[:2000].astype("f4")
    guess = np.eye(4)
    guess[:3, 3] = far + (0.1, 0, 0)
    assert np.linalg.norm(ndtd.align(there, scan, guess).position - far) < 0.05


def test_preprocess(scans):
    points, times = scans[0]["points"], scans[0]["time_s"]
    scan = ndtd.preprocess(points)
    assert scan.shape == (1500, 3) and scan.dtype == np.float32
    distance = np.linalg.norm(ndtd.preprocess(points, min_range_m=5, max_range_m=20, voxel_m=0, sample_count=0), axis=1)
    assert len(distance) and distance.min() >= 4.99 and distance.max() <= 20.01
    assert np.array_equal(scan, ndtd.preprocess(points)) and not np.array_equal(scan, ndtd.preprocess(points, sequence=1))
    plain = dict(voxel_m=0, sample_count=0)
    still = ndtd.preprocess(points, times, deskew="time", twist=np.zeros(6), **plain)
    moved = ndtd.preprocess(points, times, deskew="time", twist=[10, 0, 0, 0, 0, 0], **plain)
    assert np.array_equal(still, ndtd.preprocess(points, **plain)) and 0.45 < np.abs(moved - still).max() < 0.55
    assert ndtd.preprocess(np.zeros((0, 3))).shape == (0, 3)


def test_localize(street, scans, poses):
    found = ndtd.localize(street, scans[0]["points"])
    assert 1 <= len(found) <= 10 and np.linalg.norm(found[0].pose[:3, 3] - poses[0][:3, 3]) < 0.5
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert 0 < found[0].inliers <= 1 and found[0].scores.nvtl > 0 and "ndtd.Candidate(x" in repr(found[0])
    near = ndtd.localize(street, scans[0]["points"], up=[0, 0, 1], near_m=poses[0][:2, 3], radius_m=10)
    assert np.linalg.norm(near[0].pose[:3, 3] - poses[0][:3, 3]) < 0.5


@pytest.mark.parametrize("turn", [np.diag([1.0, -1, -1]), np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]),
                                  np.array([[0.0, 0, -1], [0, 1, 0], [1, 0, 0]])])
def test_localize_with_a_sensor_that_is_not_upright(street, scans, poses, turn):
    points = np.asarray(scans[0]["points"]) @ turn.T
    for gravity in (turn @ [0, 0, 1], 9.81 * (turn @ [0, 0, 1])):
        found = ndtd.localize(street, points, up=gravity)
        assert np.linalg.norm(found[0].pose[:3, 3] - poses[0][:3, 3]) < 0.5
        assert np.trace(found[0].pose[:3, :3] @ turn @ poses[0][:3, :3].T) > 2.99


def test_every_class_has_a_repr(street, scan, near):
    result = ndtd.align(street, scan, near)
    for one in (street, result, result.scores, result.trace[0], ndtd.Aligner(street), ndtd.Search(street)):
        assert repr(one).startswith(f"ndtd.{type(one).__name__}(") and "object at" not in repr(one)


def test_results_may_be_pickled(street, scan, near):
    result = ndtd.align(street, scan, near)
    again = pickle.loads(pickle.dumps(result))
    assert bits(again) == bits(result) and again.align_us == result.align_us
    assert repr(pickle.loads(pickle.dumps(result.scores))) == repr(result.scores)
    assert np.array_equal(pickle.loads(pickle.dumps(result.trace[0])).pose, result.trace[0].pose)
    state = result.__getstate__()
    with pytest.raises(ValueError, match="another build"):
        ndtd.Result.__new__(ndtd.Result).__setstate__((state[0][:8], *state[1:]))
