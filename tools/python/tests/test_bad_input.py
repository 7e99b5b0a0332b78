"""Wrong arguments: an exception of the right kind that names the argument, what is wrong and the limit."""
import numpy as np
import pytest

import ndtd

GOOD = np.zeros((10, 3), "f4")
POINTS = [  # what is not a cloud, the exception, words of its message
    (np.zeros((5, 2)), ValueError, r"points: an array of shape \(N, 3\) is wanted, not \(5, 2\)"),
    (np.zeros(3), ValueError, r"points: .* not \(3,\)"),
    (np.zeros((3, 100)), ValueError, r"points: .* not \(3, 100\): its transpose"),
    (np.zeros((2, 3, 3)), ValueError, r"points: .* not \(2, 3, 3\)"),
    (np.zeros((5, 3), int), TypeError, "points: an array of float32 or float64 is wanted, not an array of int64"),
    (np.zeros((5, 3), "f2"), TypeError, "points: .*float16"),
    (np.zeros((5, 3), ">f4"), TypeError, "points: .*>f4"),
    (np.zeros((5, 3), complex), TypeError, "points: .*complex128"),
    (np.array([["a", "b", "c"]]), TypeError, "points: .*<U1"),
    (np.zeros(5, [("x", "f4"), ("y", "f4"), ("z", "f4")]), TypeError, r"points: .*'x'.*: numpy.column_stack"),
    ([[1, 2, 3], [4, 5]], TypeError, "points: .*all rows alike"),
    ("scan", TypeError, "points: .*not str"),
    (None, TypeError, "points: .*NoneType"),
    (object(), TypeError, "points: .*not object"),
    (np.broadcast_to(np.zeros(3, "f4"), (1 << 33, 3)), ValueError, "points: 8589934592 points; the limit is 268435456"),
]
ids = [repr(words) for _, _, words in POINTS]


@pytest.mark.parametrize("points, kind, words", POINTS, ids=ids)
def test_points(street, points, kind, words):
    calls = [lambda: ndtd.align(street, points), lambda: ndtd.align_batch(street, [points], [np.eye(4)]),
             lambda: ndtd.preprocess(points), lambda: ndtd.localize(street, points)]
    if not isinstance(points, str):  # the name of a file
        calls.append(lambda: ndtd.Map(points))
    for call in calls:
        with pytest.raises(kind, match="^" + words):
            call()


@pytest.mark.parametrize("guess, kind, words", [
    (np.eye(3), ValueError, r"\(4, 4\) or 7 numbers x y z qx qy qz qw are wanted, not \(3, 3\)"),
    (np.full((4, 4), np.nan), ValueError, "not finite"),
    (2 * np.eye(4), ValueError, "not a rigid transform"),
    (np.diag([1, 1, -1, 1]), ValueError, "not a rigid transform"),
    ([0, 0, 0, 0, 0, 0, 0], ValueError, "the quaternion is zero"),
    ([0, 0, 0, 0, 0, 90, 1], ValueError, "the quaternion has length 90.01, not 1"),
    ([1e300, 0, 0, 0, 0, 0, 1], ValueError, "beyond the limit of 1e8 m"),
    ("here", TypeError, "not str")])
def test_guess(street, guess, kind, words):
    with pytest.raises(kind, match=f"^guess: .*{words}"):
        ndtd.align(street, GOOD, guess)
    with pytest.raises(kind, match=rf"^guesses\[1\]: .*{words}"):
        ndtd.align_batch(street, GOOD, [np.eye(4), guess])


@pytest.mark.parametrize("options, kind, words", [
    ({"threads": -1}, ValueError, r"threads: -1 is outside 0 \.\. 64"),
    ({"threads": 1.5}, TypeError, "threads: a whole number is wanted, not float"),
    ({"max_points": 0}, ValueError, r"max_points: 0 is outside 1 \.\."),
    ({"max_points": 1 << 70}, ValueError, "max_points: .* is outside"),
    ({"max_iterations": 513}, ValueError, r"max_iterations: 513 is outside 0 \.\. 512"),
    ({"score_threshold": float("nan")}, ValueError, "score_threshold: nan is outside"),
    ({"min_match_ratio": "half"}, TypeError, "min_match_ratio: a number is wanted, not str"),
    ({"levels": []}, ValueError, "levels: 1 to 6 numbers are wanted, not 0"),
    ({"levels": 2.0}, TypeError, "levels: a sequence of numbers is wanted, not float"),
    ({"levels": [3]}, ValueError, "levels: the map has no level of 3 m; it has 4 m, 2 m, 1 m"),
    ({"neighbours": "direct5"}, ValueError, "neighbours: 'direct5' is not known; there are: .*direct7"),
    ({"variant": 1}, TypeError, "variant: a string is wanted, not int"),
    ({"backend": "gpu"}, ValueError, "backend 'gpu' is not known; there are: auto, cpu"),
    ({"max_iter": 3}, TypeError, r"Aligner\(\) has no argument 'max_iter'; did you mean 'max_iterations'\?")])
def test_options_of_align(street, options, kind, words):
    for call in (lambda: ndtd.Aligner(street, **options), lambda: ndtd.align(street, GOOD, **options)):
        with pytest.raises(kind, match="^" + words):
            call()


def test_arguments_of_align(street, scans, poses):
    scan = ndtd.preprocess(scans[0]["points"])
    with pytest.raises(ValueError, match="a scan of 1500 points; the limit is 10"):
        ndtd.align(street, scan, poses[0], max_points=10)
    for deadline_s in (-1, float("nan"), 1e9):
        with pytest.raises(ValueError, match="^deadline_s: 0 .* to 3600 s"):
            ndtd.align(street, scan, poses[0], deadline_s=deadline_s)
    for prior, kind, words in ((poses[0], TypeError, r"prior: a pair \(pose, covariance\)"),
                               ((poses[0], np.eye(5)), ValueError, r"prior\[1\]: 36 numbers are wanted, not 25"),
                               ((poses[0], -np.eye(6)), ValueError, "prior is not positive definite"),
                               ((np.eye(3), np.eye(6)), ValueError, r"prior\[0\]: ")):
        with pytest.raises(kind, match=words):
            ndtd.align(street, scan, poses[0], prior=prior)
    for other in ("map.pcd", None):
        for call in (lambda: ndtd.align(other, scan), lambda: ndtd.Aligner(other), lambda: ndtd.localize(other, scan),
                     lambda: ndtd.Search(other)):
            with pytest.raises(TypeError, match="^map: an ndtd.Map is wanted, not "):
                call()
    with pytest.raises(ValueError, match="points: a list of 3 scans for 2 guesses"):
        ndtd.align_batch(street, [scan] * 3, poses[:2])
    with pytest.raises(TypeError, match="guesses: a sequence of poses is wanted, not int"):
        ndtd.align_batch(street, scan, 3)


def test_a_scan_that_cannot_be_matched_is_an_outcome(street, scans, poses):
    """A loop over scans goes on."""
    scan = ndtd.preprocess(scans[0]["points"])
    for points, guess, outcome in ((np.zeros((0, 3)), poses[0], "rejected"), (np.full((9, 3), np.nan), poses[0], "off_map"),
                                   (scan, [1e6, 0, 0, 0, 0, 0, 1], "off_map"), (scan * 1e30, poses[0], "off_map")):
        result = ndtd.align(street, points, guess)
        assert result.outcome == outcome and result.reason and not result.converged and result.trace == []
        assert result.covariance is None and np.isnan(result.confidence)
    some = ndtd.align(street, np.vstack([scan, np.full((3, 3), np.inf, "f4")]), poses[0])
    assert some.converged and np.linalg.norm(some.position - poses[0][:3, 3]) < 0.1


@pytest.mark.parametrize("arguments, options, kind, words", [
    ((np.zeros((0, 3)),), {}, ValueError, "points: none of 0 is finite"),
    ((np.full((9, 3), np.nan),), {}, ValueError, "points: none of 9 is finite"),
    ((np.full((9, 3), 1e300),), {}, ValueError, "points: a coordinate is beyond the limit of 1e8 m"),
    ((np.array([[0, 0, 0], [1e7, 0, 0.0]]),), {}, ValueError, "point 1 is 10000000 m from the origin .*the limit"),
    ((GOOD,), {"levels": [0.01]}, ValueError, r"map leaf 0.01 m is outside 0.1 \.\. 100 m"),
    ((GOOD,), {"levels": "2"}, TypeError, "levels: a sequence of numbers is wanted, not str"),
    ((GOOD,), {"level": [2]}, TypeError, r"Map\(\) has no argument 'level'; did you mean 'levels'\?"),
    ((GOOD,), {"min_points": 2}, ValueError, r"min_points: 2 is outside 3 \.\. 1000000"),
    ((GOOD,), {"covariance": "autowar"}, ValueError, "covariance: 'autowar' is not known; there are: unbiased, autoware"),
    ((GOOD,), {"threads": 65}, ValueError, r"threads: 65 is outside 0 \.\. 64")])
def test_map(arguments, options, kind, words):
    with pytest.raises(kind, match="^" + words):
        ndtd.Map(*arguments, **options)


@pytest.mark.parametrize("options, kind, words", [
    ({"voxel_m": -1}, ValueError, r"voxel_m: -1 is outside 0 \.\. 100"),
    ({"sample_count": -1}, ValueError, "sample_count: -1 is outside"),
    ({"min_range_m": 5, "max_range_m": 1}, ValueError, "min_range_m: it is larger than max_range_m"),
    ({"deskew": "tim"}, ValueError, "deskew: 'tim' is not known; there are: auto, off, time"),
    ({"deskew": "time"}, ValueError, "time_s: missing"),
    ({"time_s": np.zeros(3)}, ValueError, r"time_s: one number per point is wanted, \(10,\), not \(3,\)"),
    ({"time_s": np.zeros(10, int)}, TypeError, "time_s: .*int64"),
    ({"time_s": np.full(10, 1e9), "deskew": "time"}, ValueError, "no point has a time within 10 s of the stamp"),
    ({"twist": [1]}, ValueError, "twist: 6 numbers are wanted, not 1"),
    ({"twist": [np.nan] * 6}, ValueError, "twist: a number is not finite"),
    ({"voxel": 1}, TypeError, r"preprocess\(\) has no argument 'voxel'; did you mean 'voxel_m'\?")])
def test_preprocess(options, kind, words):
    with pytest.raises(kind, match="^" + words):
        ndtd.preprocess(GOOD + 5, **options)


def test_localize(street, scans):
    points = scans[0]["points"]
    for options, words in (({"up": [0, 0, 0]}, "up: it has no direction"), ({"near_m": [1]}, "near_m: 2 numbers"),
                           ({"near_m": [0, 0], "radius_m": -1}, "radius_m: "), ({"threads": 65}, "threads: ")):
        with pytest.raises(ValueError, match="^" + words):
            ndtd.localize(street, points, **options)
    assert ndtd.localize(street, np.zeros((0, 3))) == []


def test_clouds_come_back(tmp_path):
    points = np.random.default_rng(3).uniform(-50, 50, (100, 3)).astype("f4")
    path, utm = tmp_path / "a.pcd", points.astype(np.float64) + [389000.125, 4970000.25, 120]
    ndtd.write_cloud(path, points, points[:, 0])
    cloud = ndtd.read_cloud(path)
    np.testing.assert_array_equal(cloud["points"], points)
    np.testing.assert_array_equal(cloud["intensity"], points[:, 0])
    ndtd.write_cloud(path, utm)
    cloud = ndtd.read_cloud(path)
    np.testing.assert_allclose(cloud["points"].astype(np.float64) + cloud["origin"], utm, rtol=0, atol=1e-4)


def test_files(drive, tmp_path):
    text = tmp_path / "text.pcd"
    text.write_text("nonsense\n")
    for call, kind, words in (
            (lambda: ndtd.Map("nosuch.pcd"), FileNotFoundError, "nosuch.pcd: cannot open"),
            (lambda: ndtd.Map(text), ValueError, "text.pcd"),
            (lambda: ndtd.Map(__file__), ValueError, "not a point cloud file; extensions: .pcd"),
            (lambda: ndtd.Map(drive.map).save("nosuch/a.ndtmap"), FileNotFoundError, "nosuch/a.ndtmap"),
            (lambda: ndtd.read_cloud("nosuch.bin"), FileNotFoundError, "nosuch.bin"),
            (lambda: ndtd.read_cloud(text), ValueError, "text.pcd"),
            (lambda: ndtd.write_cloud("nosuch/a.pcd", GOOD), FileNotFoundError, "nosuch/a.pcd"),
            (lambda: ndtd.write_cloud(tmp_path / "a.ply", GOOD), ValueError, "a.ply: clouds are written as PCD"),
            (lambda: ndtd.write_cloud(tmp_path / "a.pcd", GOOD[:, :2]), ValueError, "points: an array of shape"),
            (lambda: ndtd.write_cloud(tmp_path / "a.pcd", GOOD, GOOD[1:, 0]), ValueError, "intensity: one number per point"),
            (lambda: ndtd.BagReader("nosuch.bag"), FileNotFoundError, "nosuch.bag"),
            (lambda: ndtd.BagReader(__file__), ValueError, "not a bag"),
            (lambda: ndtd.BagWriter("nosuch/a.bag"), FileNotFoundError, "nosuch/a.bag"),
            (lambda: ndtd.Replay("nosuch.bag", drive.map), FileNotFoundError, "nosuch.bag"),
            (lambda: ndtd.Replay(drive.bag, "nosuch.pcd"), FileNotFoundError, "nosuch.pcd"),
            (lambda: ndtd.Replay(drive.bag, drive.map, config="nosuch.yaml"), FileNotFoundError, "nosuch.yaml")):
        with pytest.raises(kind, match=words):
            call()


@pytest.mark.parametrize("options, kind, words", [
    ({"options": {"preproces.deskew": "time"}}, ValueError, "'preproces.deskew' is not an option; did you mean 'preprocess.deskew'"),
    ({"options": {"preprocess.deskew": "tim"}}, ValueError, "'tim' is not one of auto, off, time"),
    ({"options": {1: 2}}, TypeError, "options: a name is wanted, not int"),
    ({"options": ["a"]}, TypeError, "options: a dict is wanted, not list"),
    ({"skip": -1}, ValueError, "skip, limit: 0 or more")])
def test_replay(drive, options, kind, words):
    with pytest.raises(kind, match=words):
        ndtd.Replay(drive.bag, drive.map, **options)


def test_replay_without_scans(drive):
    with pytest.raises(ValueError, match="holds only 20 scans"):
        list(ndtd.Replay(drive.bag, drive.map, skip=100))
    with pytest.raises(ValueError, match="no map"):
        ndtd.Replay(drive.bag)


def test_bag_writer(tmp_path):
    with ndtd.BagWriter(tmp_path / "a.bag") as bag:
        for call, kind, words in ((lambda: bag.scan(0, np.zeros((3, 2))), ValueError, "points: "),
                                  (lambda: bag.scan(0, GOOD, time_s=[0.0]), ValueError, "time_s: "),
                                  (lambda: bag.scan(0, GOOD, frame_id="x" * 300), ValueError, "frame_id: "),
                                  (lambda: bag.initial_pose(0, np.zeros((4, 4))), ValueError, "pose: "),
                                  (lambda: bag.scan(GOOD, 0), TypeError, r"scan\(stamp_ns, points\): stamp_ns: .* not ndarray$"),
                                  (lambda: bag.scan(1.5, GOOD), TypeError, r"scan\(stamp_ns, points\): stamp_ns: .* not float: nanoseconds, as int\(stamp_s \* 1e9\)$"),
                                  (lambda: bag.scan(2**63, GOOD), ValueError, r"scan\(.*\): stamp_ns: beyond 64 bits$"),
                                  (lambda: bag.truth(np.eye(4), 0), TypeError, r"truth\(stamp_ns, pose\): stamp_ns: "),
                                  (lambda: bag.gnss([1, 2, 3], 0), TypeError, r"gnss\(stamp_ns, position\): stamp_ns: "),
                                  (lambda: bag.imu([1, 2, 3], 0), TypeError, r"imu\(stamp_ns, angular_velocity\): stamp_ns: "),
                                  (lambda: bag.imu(0, [1, 2]), ValueError, "angular_velocity: 3 numbers"),
                                  (lambda: bag.gnss(0, [1, 2, np.inf]), ValueError, "position: a number is not finite")):
            with pytest.raises(kind, match="^" + words):
                call()
        bag.scan(np.int64(0), GOOD)
    with pytest.raises(ValueError, match="the bag is closed"):
        bag.scan(0, GOOD)
    assert [record.type for record in ndtd.BagReader(tmp_path / "a.bag")] == ["scan"]
    with pytest.raises(KeyError), ndtd.BagWriter(tmp_path / "b.bag") as bag:
        raise KeyError
    assert not (tmp_path / "b.bag").exists()
