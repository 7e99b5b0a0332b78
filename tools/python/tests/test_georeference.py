"""Coordinates of maps: known places, Autoware's projector types, what a wrong file says."""
import math

import numpy as np
import pytest

pytest.importorskip("pyproj")
pytest.importorskip("yaml")

from ndtd import georeference
from ndtd.georeference import GeoreferenceError, Projector, mgrs_square, utm_zone

TOKYO = (35.62426, 139.74252)  # UTM zone 54: by GeographicLib 386128.182, 3943002.610


def test_known_utm():
    x, y, z = Projector.utm(*TOKYO).forward(*TOKYO, 7.0)
    assert (x, y, z) == pytest.approx((386128.1818, 3943002.6101, 7.0), abs=1e-3)
    # The north pole of UTM's formulas: 500 km on the central meridian, false northing of 10 000 km in the south.
    assert Projector.utm(0.0, 9.0).forward(0.0, 9.0) == pytest.approx((500000.0, 0.0, 0.0), abs=1e-6)
    assert Projector.utm(-1e-9, 9.0).forward(-1e-9, 9.0)[:2] == pytest.approx((500000.0, 1e7), abs=1e-3)


def test_zones():
    assert [utm_zone(49.0, 8.4), utm_zone(60.0, 5.0), utm_zone(78.0, 10.0), utm_zone(0.0, 180.0)] == [32, 32, 33, 1]


@pytest.mark.parametrize("place, square", [(TOKYO, "54SUE"), ((49.0114, 8.4166), "32UMV"), ((-33.8568, 151.2153), "56HLH"),
                                           ((38.8895, -77.0353), "18SUJ"), ((60.39, 5.32), "32VKN"), ((0.5, 9.5), "32NNF")])
def test_mgrs_squares(place, square):
    assert mgrs_square(*place) == square
    projector = Projector.from_info({"projector_type": "MGRS", "vertical_datum": "WGS84", "mgrs_grid": square})
    x, y, _ = projector.forward(*place)
    full = Projector.utm(*place).forward(*place)
    assert 0 <= x < 1e5 and 0 <= y < 1e5
    assert (x, y) == pytest.approx((full[0] % 1e5, full[1] % 1e5), abs=1e-6)


INFOS = [{"projector_type": "MGRS", "mgrs_grid": "54SUE"},
         {"projector_type": "LocalCartesianUTM", "map_origin": {"latitude": 35.6, "longitude": 139.7}},
         {"projector_type": "LocalCartesian", "map_origin": {"latitude": 35.6, "longitude": 139.7, "altitude": 3.0}},
         {"projector_type": "TransverseMercator", "map_origin": {"latitude": 35.6, "longitude": 139.7}},
         {"projector_type": "Local", "crs": "EPSG:6677", "offset": [-8000.0, -41000.0, 0.0]}]


@pytest.mark.parametrize("info", INFOS, ids=lambda info: info["projector_type"])
def test_forth_and_back_through_the_file(info, tmp_path):
    Projector.from_info(info).write(tmp_path)
    projector = Projector.find(tmp_path)
    assert projector.info == info
    latitude = TOKYO[0] + np.linspace(-0.02, 0.02, 5)
    longitude = TOKYO[1] + np.linspace(0.02, -0.02, 5)
    altitude = np.linspace(-10.0, 120.0, 5)
    x, y, z = projector.forward(latitude, longitude, altitude)
    assert x.shape == (5,)
    back = projector.inverse(x, y, z)
    assert np.allclose(back[0], latitude, atol=1e-9) and np.allclose(back[1], longitude, atol=1e-9)
    assert np.allclose(back[2], altitude, atol=1e-6)


@pytest.mark.parametrize("info", [i for i in INFOS if "map_origin" in i], ids=lambda info: info["projector_type"])
def test_origin_is_zero(info):
    origin = info["map_origin"]
    at = Projector.from_info(info).forward(origin["latitude"], origin["longitude"], origin.get("altitude", 0.0))
    assert at == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)


def test_scale_of_the_types():
    """100 m north: 99.96 m in UTM on the central meridian, the real distance in the tangent plane."""
    step_deg = 100.0 / 111_132.954  # at 45 deg
    for kind, wanted in (("LocalCartesian", 1.0), ("TransverseMercator", 0.9996), ("LocalCartesianUTM", 0.9996)):
        projector = Projector.from_info({"projector_type": kind, "map_origin": {"latitude": 45.0, "longitude": 9.0}})
        assert projector.forward(45.0 + step_deg, 9.0)[1] / 100.0 == pytest.approx(wanted, abs=2e-5)


def test_convergence_and_heading():
    """The formula of the sphere for the angle; the direction by two projected points."""
    projector = Projector.utm(49.0, 6.5)  # 2.5 deg west of the central meridian
    wanted = math.atan(math.tan(math.radians(6.5 - 9.0)) * math.sin(math.radians(49.0)))
    assert projector.convergence(49.0, 6.5) == pytest.approx(wanted, abs=1e-5)
    here, ahead = projector.forward(49.0, 6.5), projector.forward(49.001, 6.5)
    north_yaw = math.atan2(ahead[1] - here[1], ahead[0] - here[0])
    assert projector.yaw_from_heading(0.0, 49.0, 6.5) == pytest.approx(north_yaw, abs=1e-5)
    assert projector.yaw_from_heading(math.pi / 2, 49.0, 6.5) == pytest.approx(north_yaw - math.pi / 2, abs=1e-5)


def test_offset_becomes_what_autoware_knows(tmp_path):
    offset = (386000.0, 3943000.0, 0.0)
    projector = Projector.from_crs("EPSG:32654", offset)
    assert projector.info["projector_type"] == "LocalCartesianUTM"
    projector.write(tmp_path)
    again = Projector.from_file(tmp_path / "map_projector_info.yaml")
    assert again.forward(*TOKYO, 5.0) == pytest.approx((128.1818, 2.6101, 5.0), abs=1e-3)
    assert again.forward(*TOKYO, 5.0) == pytest.approx(projector.forward(*TOKYO, 5.0), abs=1e-5)
    square = Projector.from_crs(32654, (300000.0, 3900000.0, 0.0))
    assert square.info == {"projector_type": "MGRS", "vertical_datum": "WGS84", "mgrs_grid": "54SUE"}


def test_etrs89_is_utm():
    assert Projector.from_crs(25832, (450000.0, 5420000.0, 0.0)).info["projector_type"] == "LocalCartesianUTM"
    assert Projector.from_crs("EPSG:5555").info["crs"] == "EPSG:25832"  # with heights: the horizontal part


def test_local_and_missing(tmp_path):
    assert Projector.find(tmp_path) is None
    (tmp_path / "map_projector_info.yaml").write_text("projector_type: Local\n")
    assert Projector.find(tmp_path) is None
    with pytest.raises(GeoreferenceError, match="map_projector_info.yaml: projector_type Local: the map is not on the earth"):
        Projector.from_file(tmp_path / "map_projector_info.yaml")


def test_beside_and_above(tmp_path):
    Projector.from_info(INFOS[0]).write(tmp_path)
    (tmp_path / "pointcloud_map.pcd").mkdir()
    (tmp_path / "map.pcd").touch()
    assert Projector.find(tmp_path / "pointcloud_map.pcd").info == INFOS[0]
    assert Projector.find(tmp_path / "map.pcd").info == INFOS[0]
    (tmp_path / "pointcloud_map.pcd" / "a.pcd").touch()
    assert Projector.find(tmp_path / "pointcloud_map.pcd" / "a.pcd").info == INFOS[0]


@pytest.mark.parametrize("text, line", [
    ("[1, 2]", "has no projector_type"),
    ("projector_type: Mercator", "projector_type 'Mercator' is not known; known are MGRS"),
    ("projector_type: MGRS", "mgrs_grid '': not a square of 100 km"),
    ("projector_type: MGRS\nmgrs_grid: 54SAA", "zone 54 has no square AA"),
    ("projector_type: LocalCartesianUTM", "needs map_origin with latitude and longitude"),
    ("projector_type: LocalCartesianUTM\nmap_origin: {latitude: 350, longitude: 3}", "no latitude and longitude"),
    ("projector_type: TransverseMercator\nscale_factor: x\nmap_origin: {latitude: 3, longitude: 3}", "scale_factor x"),
    ("projector_type: Local\ncrs: EPSG:99999", "not a coordinate system that pyproj knows"),
    ("projector_type: Local\ncrs: EPSG:32632\noffset: [1]", "offset: needs three numbers"),
    ("a: [", "not YAML"),
])
def test_wrong_files(text, line, tmp_path):
    path = tmp_path / "map_projector_info.yaml"
    path.write_text(text)
    with pytest.raises(GeoreferenceError) as error:
        Projector.from_file(path)
    assert line in str(error.value) and str(path) in str(error.value) and "\n" not in str(error.value)


def test_wrong_crs():
    with pytest.raises(GeoreferenceError, match="not projected"):
        Projector.from_crs("EPSG:4326")
    with pytest.raises(GeoreferenceError, match="US survey foot"):
        Projector.from_crs("EPSG:2227")


def test_heights_note():
    info = dict(INFOS[1], vertical_datum="EGM2008")
    assert "EGM2008" in Projector.from_info(info).heights_note()
    assert Projector.from_info(INFOS[1]).heights_note() is None


def test_heights_above_the_geoid(monkeypatch):
    """With a grid altitudes are converted; here with a geoid of 36.7 m."""

    class Geoid:
        def transform(self, longitude, latitude, altitude, direction="FORWARD"):
            return longitude, latitude, altitude + (36.7 if direction == "INVERSE" else -36.7)

    monkeypatch.setattr(georeference, "_geoid", lambda datum: Geoid() if datum == "EGM2008" else None)
    projector = Projector.from_info(dict(INFOS[1], vertical_datum="EGM2008"))
    x, y, z = projector.forward(*TOKYO, 40.0)
    assert z == pytest.approx(3.3) and projector.heights_note() is None
    assert projector.inverse(x, y, z) == pytest.approx((*TOKYO, 40.0), abs=1e-8)
