"""ndt-export to GeoPackage and KML: read back by sqlite3 and an XML parser, which share nothing with GDAL."""
import json
import sqlite3
import struct
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from ndtd import ndt_export
from ndtd.georeference import Projector
from ndtd.poses import matrix

pytest.importorskip("pyogrio")
pytest.importorskip("pyproj")

INFO = {"projector_type": "LocalCartesianUTM", "vertical_datum": "WGS84", "map_origin": {"latitude": 60.0, "longitude": 11.9, "altitude": 50.0}}
T0_NS = 1_700_000_000_123_000_000
KML = {"k": "http://www.opengis.net/kml/2.2"}


def row(at, **changes):
    """A result on a circle of 100 m, whose x axis is along the way."""
    angle = 0.01 * at
    out = {"seq": at, "stamp_ns": T0_NS + at * 100_000_000, "outcome": "converged", "state": "tracking", "reason": "", "confidence": 0.9,
           "pose": [100 * np.cos(angle), 100 * np.sin(angle), 2.0, 0, 0, np.sin(angle / 2 + np.pi / 4), np.cos(angle / 2 + np.pi / 4)],
           "covariance": (np.eye(6) * 0.0004).ravel().tolist(), "twist": [10.0, 0, 0, 0, 0, 0]}
    return {**out, **changes}


def export(folder, name, rows, *options):
    (folder / "map_projector_info.yaml").write_text(json.dumps(INFO))
    (folder / "r.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    arguments = (folder / "r.jsonl", folder / name, "-q", "--projector", folder / "map_projector_info.yaml", *options)
    assert ndt_export.main([str(word) for word in arguments]) == 0
    return folder / name


def shape_of(blob):
    """WKB type and (N, 3) of a geometry of a GeoPackage: OGC 12-128, a header before WKB."""
    assert blob[:2] == b"GP" and struct.unpack_from("<i", blob, 4)[0] == 4326
    wkb = blob[8 + (0, 32, 48, 48, 64)[blob[3] >> 1 & 7]:]
    kind = struct.unpack_from("<I", wkb, 1)[0]
    return kind, np.frombuffer(wkb[5 if kind == 1001 else 9:], "<f8").reshape(-1, 3)


def places_of(rows):
    latitude, longitude, altitude = Projector.from_info(INFO).inverse(*np.array([one["pose"][:3] for one in rows]).T)
    return np.column_stack([longitude, latitude, altitude])


def test_a_geopackage_is_read_by_sqlite(tmp_path):
    rows = [row(at) for at in range(40)]
    for at in (20, 21):
        rows[at].update(state="lost", outcome="low_score")
    kept = rows[:20] + rows[22:]
    base = sqlite3.connect(export(tmp_path, "drive.gpkg", rows))
    base.row_factory = sqlite3.Row
    assert sorted(tuple(one) for one in base.execute("SELECT table_name, geometry_type_name, srs_id, z FROM gpkg_geometry_columns")) == [
        ("poses", "POINT", 4326, 1), ("trajectory", "LINESTRING", 4326, 1)]
    poses = base.execute("SELECT * FROM poses").fetchall()
    found = np.concatenate([shape_of(one["geom"])[1] for one in poses])
    assert np.allclose(found, places_of(kept), atol=1e-10, rtol=0) and all(shape_of(one["geom"])[0] == 1001 for one in poses)
    assert [one["stamp_ns"] for one in poses] == [one["stamp_ns"] for one in kept] and poses[0]["time"] == "2023-11-14T22:13:20.123Z"
    assert {(one["state"], one["outcome"], one["confidence"], one["speed_mps"]) for one in poses} == {("tracking", "converged", 0.9, 10.0)}
    assert [one["deviation_m"] for one in poses] == pytest.approx([0.02] * 38)
    lines = base.execute("SELECT * FROM trajectory").fetchall()
    assert [(shape_of(one["geom"])[0], len(shape_of(one["geom"])[1]), one["poses"]) for one in lines] == [(1002, 20, 20), (1002, 18, 18)]
    assert np.allclose(shape_of(lines[1]["geom"])[1], places_of(rows[22:]), atol=1e-10, rtol=0) and lines[1]["begin"] == "2023-11-14T22:13:22.323Z"


def test_headings_are_those_between_places(tmp_path):
    """From true north: the grid of UTM is turned by 2.5 degrees there."""
    geod = pytest.importorskip("pyproj").Geod(ellps="WGS84")
    rows = [row(at) for at in range(40)]
    poses = sqlite3.connect(export(tmp_path, "drive.gpkg", rows)).execute("SELECT heading_deg FROM poses").fetchall()
    ahead = [{**one, "pose": (matrix(one["pose"]) @ [10.0, 0, 0, 1])[:3]} for one in rows]
    (x, y, _), (to_x, to_y, _) = places_of(rows).T, places_of(ahead).T
    wanted = np.array(geod.inv(x, y, to_x, to_y)[0])
    assert np.abs((np.array(poses)[:, 0] - wanted + 180) % 360 - 180).max() < 0.01


def test_many_poses_and_unknown_values(tmp_path):
    rows = [row(at) for at in range(11_000)]
    for one in rows[::2]:
        del one["confidence"], one["covariance"]
    base = sqlite3.connect(export(tmp_path, "drive.gpkg", rows))
    assert base.execute("SELECT count(*), count(confidence), count(deviation_m), count(DISTINCT fid) FROM poses").fetchone() == (11_000, 5500, 5500, 11_000)
    assert [count for count, in base.execute("SELECT poses FROM trajectory")] == [5000, 5000, 1002]  # each begins where the last ends
    tum = tmp_path / "drive.tum"
    assert ndt_export.main([str(tmp_path / "r.jsonl"), str(tum), "-q"]) == 0
    assert ndt_export.main([str(tum), str(tmp_path / "b.gpkg"), "-q", "--projector", str(tmp_path / "map_projector_info.yaml")]) == 0
    assert sqlite3.connect(tmp_path / "b.gpkg").execute("SELECT count(*), count(seq) FROM poses").fetchone() == (11_000, 0)


@pytest.mark.parametrize("name, options", [("drive.kml", ()), ("drive.xml", ("--to", "kml"))])
def test_kml_is_read_by_an_xml_parser(name, options, tmp_path):
    rows = [row(at) for at in range(40)]
    del rows[20]["pose"], rows[39]["pose"]
    rows[38].update(state="lost")
    rows.append(row(40))
    root = ElementTree.parse(export(tmp_path, name, rows, *options)).getroot()
    lines = [np.array([place.split(",") for place in one.text.split()], float) for one in root.iterfind(".//k:LineString/k:coordinates", KML)]
    assert [len(line) for line in lines] == [20, 17, 2]  # a single pose is a line, too
    assert np.allclose(np.concatenate(lines), np.concatenate([places_of(rows[:20]), places_of(rows[21:38]), places_of([rows[40]] * 2)]), atol=1e-9)
    assert root.find(".//k:Placemark/k:name", KML).text == "2023-11-14T22:13:20.123Z"
    assert root.find(".//k:Placemark/k:description", KML).text == "to 2023-11-14T22:13:22.023Z, 20 poses"
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([name, "map_projector_info.yaml", "r.jsonl"])


@pytest.mark.parametrize("name", ("a.gpkg", "a.kml"))
def test_what_is_wrong_is_one_line(name, tmp_path, refused):
    (tmp_path / "r.jsonl").write_text(json.dumps(row(0, state="lost")) + "\n")
    (tmp_path / "map_projector_info.yaml").write_text(json.dumps(INFO))
    assert "where is the map on the earth" in refused(ndt_export.main, 2, tmp_path / "r.jsonl", tmp_path / name)
    assert "no pose to write" in refused(ndt_export.main, 3, tmp_path / "r.jsonl", tmp_path / name, "--projector", tmp_path / "map_projector_info.yaml")
    assert not (tmp_path / name).exists()
