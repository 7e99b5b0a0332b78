"""ndtd.Cloud edits points as numpy and matplotlib say they have to be; what notebooks show of maps and results."""
import numpy as np
import pytest

import ndtd
from ndtd.poses import from_euler, matrix

RANDOM = np.random.default_rng(7)


@pytest.fixture
def cloud():
    return ndtd.Cloud(RANDOM.uniform((-50, -40, -2), (50, 40, 10), (5000, 3)), RANDOM.uniform(0, 255, 5000))


def same(a, b):
    assert np.array_equal(a.points, b.points) and np.array_equal(a.intensity, b.intensity)


def test_crop_to_boxes_and_circles(cloud):
    x, y, z = cloud.points.T
    same(cloud.crop(box=((-10, -5), (20, 30))), cloud[(x >= -10) & (x <= 20) & (y >= -5) & (y <= 30)])
    same(cloud.crop(box=((-10, -5, 0), (20, 30, 3))), cloud[(x >= -10) & (x <= 20) & (y >= -5) & (y <= 30) & (z >= 0) & (z <= 3)])
    same(cloud.crop(center=(3, 4), radius_m=12), cloud[np.hypot(x - 3, y - 4) <= 12])
    same(cloud.crop(center=(3, 4, 1), radius_m=12, outside=True), cloud[np.linalg.norm(cloud.points - (3, 4, 1), axis=1) > 12])
    assert 0 < len(cloud.crop(center=(3, 4), radius_m=12)) < len(cloud)


def test_crop_to_a_polygon_as_matplotlib(cloud):
    path = pytest.importorskip("matplotlib.path")
    for _ in range(20):  # with crossing edges, too
        corners = RANDOM.uniform(-45, 45, (RANDOM.integers(3, 9), 2))
        inside = cloud.crop(polygon=corners)
        if len(corners) == 3:
            same(inside, cloud[path.Path(corners).contains_points(cloud.points[:, :2])])
        assert len(inside) + len(cloud.crop(polygon=corners, outside=True)) == len(cloud)
    hook = [(-30, -30), (30, -30), (30, 30), (10, 30), (10, -10), (-30, -10)]
    same(cloud.crop(polygon=hook), cloud[path.Path(hook).contains_points(cloud.points[:, :2])])
    same(cloud.crop(polygon=hook[::-1]), cloud.crop(polygon=hook))


def test_thin_has_the_mean_of_each_voxel(cloud):
    far = ndtd.Cloud(cloud.points + (500_000.0, 5_400_000.0, 100.0), cloud.intensity)
    for one in (cloud, far):
        thinned = one.thin(2.0)
        cells = {}
        for point, value in zip(one.points, one.intensity):
            cells.setdefault(tuple(np.floor((point - one.points.min(axis=0)) / 2.0)), []).append((*point, value))
        wanted = np.array(sorted(np.mean(rows, axis=0).tolist() for rows in cells.values()))
        found = np.column_stack([thinned.points, thinned.intensity])
        assert np.allclose(found[np.lexsort(found.T[::-1])], wanted, atol=1e-4) and len(thinned) == len(cells) < len(one)
    assert len(ndtd.Cloud(np.vstack([cloud.points, [np.nan] * 3])).thin(1000.0)) == 1 and len(cloud[:0].thin(1.0)) == 0


def test_transform_and_merge(cloud):
    T = from_euler((1.0, -2.0, 3.0), (0.1, -0.2, 0.3))
    moved = cloud.transform(T)
    assert np.allclose(moved.points, (np.c_[cloud.points, np.ones(len(cloud))] @ matrix(T).T)[:, :3])
    assert np.allclose(moved.transform(np.linalg.inv(matrix(T))).points, cloud.points)
    both = cloud + moved
    assert len(both) == 2 * len(cloud) and np.array_equal(both.points[len(cloud):], moved.points) and np.array_equal(both.intensity[:5000], cloud.intensity)
    assert (cloud + ndtd.Cloud(moved.points)).intensity is None


def test_a_map_is_read_edited_and_used(drive, tmp_path):
    whole = ndtd.Cloud.read(drive.map)
    assert len(whole) == ndtd.Map(drive.map).points and "points from" in repr(whole)
    middle = np.median(whole.points, axis=0)
    part = whole.crop(center=middle[:2], radius_m=30).thin(0.5)
    part.write(tmp_path / "part.pcd")
    again = ndtd.Cloud.read(tmp_path / "part.pcd")
    assert np.allclose(again.points, part.points, atol=1e-3) and np.allclose(again.intensity, part.intensity, atol=1e-3)
    assert ndtd.Map(part.points).points == len(part) == ndtd.Map(tmp_path / "part.pcd").points
    (tmp_path / "tiles").mkdir()
    whole.crop(box=((-1e6, -1e6), (middle[0], 1e6))).write(tmp_path / "tiles/a.pcd")
    whole.crop(box=((-1e6, -1e6), (middle[0], 1e6)), outside=True).write(tmp_path / "tiles/b.pcd")
    assert len(ndtd.Cloud.read(tmp_path / "tiles")) == len(whole)


@pytest.mark.parametrize("call, kind, words", [
    (lambda one: ndtd.Cloud(one.points[:, :2]), ValueError, r"points: an array of shape \(N, 3\) is wanted, not \(5000, 2\)"),
    (lambda one: ndtd.Cloud(one.points, [1.0]), ValueError, "intensity: one number per point"),
    (lambda one: one.crop(), TypeError, "one of box=, polygon=, or center= with radius_m="),
    (lambda one: one.crop(center=(0, 0)), TypeError, "center= with radius_m="),
    (lambda one: one.crop(box=((0, 0), (1, 1)), radius_m=1), TypeError, "one of box="),
    (lambda one: one.crop(box=((0, 0), (-1, 1))), ValueError, "box: .*low above"), (lambda one: one.crop(box=(1, 2)), ValueError, "box: "),
    (lambda one: one.crop(polygon=[(0, 0), (1, 1)]), ValueError, "polygon: at least three corners"),
    (lambda one: one.crop(center=(0, 0), radius_m=-1), ValueError, "radius_m above 0"),
    (lambda one: one.thin(0), ValueError, "voxel_m: 0 is below 0.01 m"),
    (lambda one: ndtd.Cloud([[0, 0, 0], [1e8, 1e8, 1e8]]).thin(0.01), ValueError, "voxel_m: 0.01 m is too little"),
    (lambda one: one.transform(2 * np.eye(4)), ValueError, "not a rigid transform"),
    (lambda one: one + one.points, TypeError, "unsupported operand|Cloud"), (lambda one: one.write("a.ply"), ValueError, "PCD"),
    (lambda one: ndtd.Cloud.read("nosuch.pcd"), ValueError, "nosuch.pcd: no such file")])
def test_what_is_wrong_is_named(cloud, call, kind, words):
    with pytest.raises(kind, match=words):
        call(cloud)


# ---- notebooks


def test_tables_of_maps_results_and_scans(drive):
    target = ndtd.Map(drive.map)
    assert target.voxel_counts == [len(target.voxels(level)["count"]) for level in target.levels]
    text = target._repr_html_()
    assert text.startswith("<table>") and f"<td style='text-align:left'>{target.points}</td>" in text and target.id in text
    scan = next(iter(ndtd.Replay(drive.bag, drive.map)))
    assert "converged" in scan._repr_html_() and "tracking, trusted" in scan._repr_html_()
    result = ndtd.align(target, np.zeros((5, 3), "f4"), np.eye(4))
    assert result.outcome in result._repr_html_() and "<script" not in result._repr_html_()


def test_a_map_with_scans_is_drawn(drive):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot
    target, scans = ndtd.Map(drive.map), list(ndtd.Replay(drive.bag, drive.map))
    ax = target.plot(points=np.array([[1.0, 0, 0], [0, 1, 0]]), pose=scans[0].pose, scans=scans)
    fine, points = (one.get_offsets() for one in ax.collections)
    assert len(fine) == target.voxel_counts[-1] and np.allclose(points[0], (scans[0].pose @ [1, 0, 0, 1])[:2])
    assert np.allclose(ax.lines[0].get_xydata(), [scan.position[:2] for scan in scans]) and ax.get_xlabel() == "x [m]"
    assert target.plot(ax=ax) is ax
    ax.figure.canvas.draw()
    pyplot.close(ax.figure)
