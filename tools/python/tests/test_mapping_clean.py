"""ndt-map build --clean: the points of cars and people leave the map, by the movers that ndt-sim marks; what stands still stays."""
import json

import numpy as np
import pytest
from scipy.spatial import cKDTree

from mover_shares import cloud_of, counts, marked_points
from ndtd import ndt_map_build, ndt_map_from_glim
from ndtd.mapping import clean
from ndtd.mapping.cloud_store import CloudStore, LeftOut

MARKED = ("--mark-movers", "--truth", 1000, "--beams", 16, "--columns", 600, "--map-spacing", 1)


def build(*arguments):
    assert ndt_map_build.main([*map(str, arguments), "--quiet", "--threads", "1"]) == 0


@pytest.fixture(scope="module")
def street(simulate):
    """Sixty scans of a street, with a car ahead and others that approach."""
    return simulate("--seed", 8, "--scans", 60, *MARKED)


@pytest.fixture(scope="module")
def maps(street, tmp_path_factory):
    """The map as it is, and without what moved."""
    folder = tmp_path_factory.mktemp("maps")
    build(street.bag, "-o", folder / "plain")
    build(street.bag, "-o", folder / "clean", "--clean")
    return folder


def test_movers_leave_and_the_rest_stays(street, maps):
    marked = marked_points(street.bag, maps / "plain/poses.tum")
    movers, still = counts(marked, maps / "plain/map.pcd")
    movers_left, still_left = counts(marked, maps / "clean/map.pcd")
    assert movers > 3000
    assert movers_left < 0.3 * movers and still_left > 0.999 * still
    out_movers, out_still = counts(marked, maps / "clean/moved.pcd")
    assert out_movers > 0.65 * movers and out_still < 0.02 * out_movers
    about = json.loads((maps / "clean/map.json").read_text())
    moved, count = about["moved"], out_movers + out_still
    assert moved["points"] == count and moved["part"] == pytest.approx(count / (count + about["points"]), abs=1e-5)
    assert 1 < len(moved["places"]) <= 20 and sum(place["points"] for place in moved["places"]) <= count
    distance_m = cKDTree(cloud_of(maps / "clean/moved.pcd")).query([place["at_m"] for place in moved["places"]])[0]
    assert distance_m.max() < 2
    assert json.loads((maps / "plain/map.json").read_text())["moved"] is None and not (maps / "plain/moved.pcd").exists()


def test_the_same_drive_is_cleaned_to_the_same_bytes(street, maps, tmp_path):
    pytest.importorskip("matplotlib")
    build(street.bag, "-o", tmp_path / "again", "--clean", "--report")
    for name in ("map.pcd", "moved.pcd", "poses.tum"):
        assert (tmp_path / "again" / name).read_bytes() == (maps / "clean" / name).read_bytes()
    page = (tmp_path / "again/report.html").read_text()
    assert "What moved" in page and "moved.pcd" in page and ">moved<" in page and len(page) < 2e6


def test_at_given_poses_and_in_tiles(street, maps, tmp_path):
    build(street.bag, "-o", tmp_path / "given", "--clean", "--poses", maps / "plain/poses.tum", "--tiles", 50)
    made = tmp_path / "given"
    assert (made / "pointcloud_map.pcd/pointcloud_map_metadata.yaml").exists()
    known = len(cloud_of(maps / "clean/moved.pcd"))
    assert len(cloud_of(made / "moved.pcd")) == pytest.approx(known, rel=0.05)


def test_where_nothing_moves_nothing_leaves(simulate, tmp_path, capsys):
    drive = simulate("--world", "terrace", "--seed", 2, "--scans", 25, *MARKED)
    build(drive.bag, "-o", tmp_path / "plain")
    assert ndt_map_build.main([str(drive.bag), "-o", str(tmp_path / "clean"), "--clean", "--threads", "1"]) == 0
    assert "moved: 0 points (0.0%) are left out\n" in capsys.readouterr().out
    assert (tmp_path / "clean/map.pcd").read_bytes() == (tmp_path / "plain/map.pcd").read_bytes()
    assert json.loads((tmp_path / "clean/map.json").read_text())["moved"] == {"points": 0, "places": [], "part": 0}
    assert not (tmp_path / "clean/moved.pcd").exists()


def test_wrong_use_gives_one_line(street, tmp_path, refused):
    assert "--clean" in refused(ndt_map_build.main, 2, street.bag, "-o", tmp_path / "map", "--clean=all")
    assert "--clean" in refused(ndt_map_from_glim.main, 2, tmp_path, "-o", tmp_path / "map", "--clean")
    assert not (tmp_path / "map").exists()


def ring_points(height_m, elevation_deg):
    """What beams measure on a plane below the sensor."""
    azimuth = np.deg2rad(np.arange(0, 360, 0.5))
    range_m = height_m / np.tan(np.deg2rad(-np.asarray(elevation_deg, float)))
    return np.concatenate([np.stack([r * np.cos(azimuth), r * np.sin(azimuth), np.full(len(azimuth), -height_m)], axis=1) for r in range_m])


def test_ground_at_a_grazing_angle_is_not_looked_through(rng):
    """Between the rings, up to 22 m away, on the plane and 5 cm above and below it."""
    ground = ring_points(1.7, np.arange(-25, -1.9, 0.5))
    view = clean.View(ground, clean.pixel_rad(ground), 0.1)
    angle, range_m = rng.uniform(0, 2 * np.pi, 5000), rng.uniform(4, 22, 5000)
    flat = np.stack([range_m * np.cos(angle), range_m * np.sin(angle), rng.uniform(-1.75, -1.65, 5000)], axis=1)
    through, measured = view.judge(flat)
    assert not through.any() and measured.any()
    person = flat[range_m < 15] + [0, 0, 1.2]
    through, measured = view.judge(person)
    assert through.mean() > 0.8 and not (through & measured).any()


def test_thin_boards_between_two_beams_are_not_looked_through():
    """Boards above the ground: far away the beams pass above and below; nearby one of them would have met them."""
    ground = ring_points(1.7, np.arange(-15, -1.9, 2.0))
    view = clean.View(ground, clean.pixel_rad(ground), 0.1)
    assert not view.judge(np.array([[12.0, 0, -0.9], [0, 15.0, -1.0]]))[0].any()
    assert view.judge(np.array([[6.0, 0, -0.5], [0, 7.0, -0.5]]))[0].all()


def test_pixels_are_as_coarse_as_the_beams():
    assert np.rad2deg(clean.pixel_rad(ring_points(1.7, np.arange(-15, -0.9, 2.0)))) == pytest.approx(2.2, abs=0.01)
    assert np.rad2deg(clean.pixel_rad(np.random.default_rng(3).normal(size=(5000, 3)))) == pytest.approx(0.75)


def test_a_store_hides_points(tmp_path):
    points = np.random.default_rng(2).random((11, 3)).astype(np.float32)
    hidden = np.arange(11) % 3 == 0
    with CloudStore(tmp_path / "clouds") as store:
        store[4], store[5] = points, points
        store.leave_out(4, hidden)
        store.leave_out(5, np.zeros(11, bool))
        assert np.array_equal(store[4], points[~hidden]) and np.array_equal(store[5], points)
        assert LeftOut(store).scans() == [4] and np.array_equal(LeftOut(store)[4], points[hidden])
