"""ndt-import map: every format gives the same tiles; tiles, thinning, offsets; a drive on them; what wrong input says."""
import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ndtd
from ndtd import _core, map_import
from ndtd.maps import tiles as tiles_module
from ndtd.maps.point_files import MapFileError, PointFile

UTM = np.array([389000.0, 4970000.0, 120.0])


def wall_and_ground(count=20_000, seed=3):
    """(N, 3) float64 near zero: ground of 90 m by 70 m from -40, -30 and a wall on it."""
    rng = np.random.default_rng(seed)
    points = np.column_stack([rng.uniform(-40, 50, count), rng.uniform(-30, 40, count), rng.normal(0, 0.02, count)])
    wall = rng.random(count) < 0.3
    points[wall, 1] = 10.0
    points[wall, 2] = rng.uniform(0, 8, wall.sum())
    return np.round(points, 3)


def run(*arguments):
    return map_import.main([str(argument) for argument in arguments])


def read(folder):
    """All points of a folder of tiles, (N, 3) float64, sorted."""
    clouds = [_core.read_cloud(path) for path in sorted(Path(folder).glob("*.pcd"))]
    points = np.concatenate([cloud["points"] + cloud["origin"] for cloud in clouds])
    return points[np.lexsort(points.T)]


def write_pcd(path, points, intensity=None):
    layout = [(name, "<f8") for name in "xyz"] + ([("intensity", "<f4")] if intensity is not None else [])
    table = np.empty(len(points), layout)
    for at, name in enumerate("xyz"):
        table[name] = points[:, at]
    if intensity is not None:
        table["intensity"] = intensity
    path.write_bytes(tiles_module._pcd_header(table.dtype, len(table)) + table.tobytes())
    return path


def write_las(path, points, crs=None, classification=None):
    laspy = pytest.importorskip("laspy")
    if path.suffix == ".laz":
        pytest.importorskip("lazrs")
    header = laspy.LasHeader(point_format=6, version="1.4")
    header.offsets, header.scales = np.floor(points.min(axis=0)), [0.001] * 3
    if crs:
        header.add_crs(pytest.importorskip("pyproj").CRS(crs))
    las = laspy.LasData(header)
    las.x, las.y, las.z = points.T
    las.intensity = np.arange(len(points)) % 1000
    if classification is not None:
        las.classification = classification
    las.write(str(path))
    return path


def write_ply(path, points):
    table = np.empty(len(points), [(name, "<f8") for name in "xyz"])
    for at, name in enumerate("xyz"):
        table[name] = points[:, at]
    head = "ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % len(points)
    path.write_bytes((head + "".join(f"property double {n}\n" for n in "xyz") + "end_header\n").encode() + table.tobytes())
    return path


def write_text(path, points, head="", separator=" ", columns=(0, 1, 2)):
    rows = [separator.join(repr(float(point[column])) for column in columns) for point in points]
    path.write_text(head + "\n".join(rows) + "\n")
    return path


def as_file(kind, folder, points):
    path = folder / f"cloud.{kind.split('-')[0]}"
    if kind in ("las", "laz"):
        return write_las(path, points)
    if kind == "pcd":
        return write_pcd(path, points)
    if kind == "ply":
        return write_ply(path, points)
    if kind == "npy":
        np.save(path, points)
        return path
    if kind == "csv-header":
        return write_text(path, points, '"Y","X","Z"\n', ",", (1, 0, 2))
    if kind == "csv-semicolon":
        return write_text(path, points, "# a survey\n", "; ")
    if kind == "pts-count":
        return write_text(path, points, f"{len(points)}\n")
    if kind == "txt-comment":
        return write_text(path, points, "//X Y Z\n")
    return write_text(path, points)


KINDS = ("las", "laz", "pcd", "ply", "npy", "xyz", "csv-header", "csv-semicolon", "pts-count", "txt-comment")


@pytest.mark.parametrize("where", ("near", "utm"))
@pytest.mark.parametrize("kind", KINDS)
def test_every_format_keeps_its_points(kind, where, tmp_path):
    points = wall_and_ground(3000) + (UTM if where == "utm" else 0.0)
    assert run(as_file(kind, tmp_path, points), "-o", tmp_path / "map", "--voxel", 0, "-q") == 0
    got = read(tmp_path / "map")
    wanted = points[np.lexsort(points.T)]
    assert got.shape == wanted.shape
    assert np.abs(np.sort(got, axis=0) - np.sort(wanted, axis=0)).max() < 2e-4  # 0.1 mm of ndtd's reader
    sizes = {line for path in (tmp_path / "map").glob("*.pcd") for line in path.read_bytes()[:200].split(b"\n") if b"SIZE" in line}
    assert {line.split()[1] for line in sizes} == {b"8" if where == "utm" else b"4"}


def test_tiles_and_metadata(tmp_path, capfd):
    points = wall_and_ground()
    assert run(as_file("npy", tmp_path, points), "-o", tmp_path / "map", "--tile", 25, "--voxel", 0.5) == 0
    lines = (tmp_path / "map" / "pointcloud_map_metadata.yaml").read_text().splitlines()
    assert lines[:2] == ["x_resolution: 25.0", "y_resolution: 25.0"]
    assert "-50_-50.pcd: [-50.0, -50.0]" in lines and len(lines) == 2 + 4 * 4
    for line in lines[2:]:
        name, corner = line.split(": ")
        low = np.array([float(word) for word in corner.strip("[]").split(",")])
        xy = _core.read_cloud(tmp_path / "map" / name)["points"][:, :2]
        assert (xy >= low - 1e-4).all() and (xy <= low + 25 + 1e-4).all() and len(xy)
    assert ndtd.Map(tmp_path / "map") is not None
    out = capfd.readouterr().out
    assert "16 tiles of 25 m" in out and "one per voxel of 0.5 m out of 20000" in out and "--epsg" in out


def test_thinning_is_the_mean_of_each_voxel(tmp_path, monkeypatch):
    points = wall_and_ground()
    run(as_file("npy", tmp_path, points), "-o", tmp_path / "map", "--tile", 2000, "--voxel", 0.5, "-q")
    means = {}
    corner = np.floor(points[:, :2] / 2000) * 2000
    index = np.column_stack([corner, np.floor((points[:, :2] - corner) / 0.5), np.floor(points[:, 2] / 0.5)])
    for key, point in zip(map(tuple, index), points):
        means.setdefault(key, []).append(point)
    wanted = np.array([np.mean(group, axis=0) for group in means.values()])
    got = read(tmp_path / "map")
    assert abs(len(got) - len(wanted)) <= 2  # a point on a face may be rounded to the other side
    assert np.abs(got.mean(axis=0) - wanted.mean(axis=0)).max() < 2e-3
    monkeypatch.setattr(tiles_module, "BLOCK_POINTS", 777)  # sums over several blocks
    run(tmp_path / "cloud.npy", "-o", tmp_path / "parts", "--tile", 2000, "--voxel", 0.5, "-q")
    assert np.allclose(read(tmp_path / "parts"), got, atol=1e-5)


def test_same_input_same_bytes(tmp_path):
    path = as_file("npy", tmp_path, wall_and_ground())
    hashes = []
    for name in ("a", "b"):
        run(path, "-o", tmp_path / name, "-q")
        files = sorted((tmp_path / name).iterdir())
        hashes.append([(one.name, hashlib.sha256(one.read_bytes()).hexdigest()) for one in files])
    assert hashes[0] == hashes[1]


def test_offsets(tmp_path):
    points = wall_and_ground(2000) + UTM
    path = as_file("npy", tmp_path, points)
    for text, taken in (("auto", (388000.0, 4970000.0, 0.0)), ("389000,4970000,100", (389000.0, 4970000.0, 100.0)),
                        ("-10,-20.5", (-10.0, -20.5, 0.0))):
        first = np.floor(np.median(points, axis=0) / 1000) * 1000
        taken = (first[0], first[1], 0.0) if text == "auto" else taken
        assert run(path, "-o", tmp_path / "map", "--offset", text, "--voxel", 0, "-q", "--force") == 0
        got = np.sort(read(tmp_path / "map"), axis=0) + taken
        assert np.abs(got - np.sort(points, axis=0)).max() < 2e-4
        assert text[0] == "-" or b"SIZE 4 4 4" in next((tmp_path / "map").glob("*.pcd")).read_bytes()[:200]


def test_crs_of_las_and_epsg(tmp_path):
    pytest.importorskip("yaml")
    from ndtd.georeference import Projector
    points = wall_and_ground(500) + UTM
    path = write_las(tmp_path / "town.las", points, 25832)
    assert run(path, "-o", tmp_path / "keep", "-q") == 0
    keep = Projector.find(tmp_path / "keep")
    assert keep.info["crs"] == "EPSG:25832" and not keep.offset_m.any()
    place = keep.inverse(*points[0])
    for how, kind in (("auto", "LocalCartesianUTM"), ("mgrs", "MGRS")):
        assert run(path, "-o", tmp_path / how, "--offset", how, "-q") == 0
        projector = Projector.find(tmp_path / how)
        assert projector.info["projector_type"] == kind
        assert np.allclose(np.array(projector.forward(*place)) + projector.offset_m, points[0], atol=1e-4)
    assert run(as_file("npy", tmp_path, points), "-o", tmp_path / "told", "--epsg", 25832, "-q") == 0
    assert Projector.find(tmp_path / "told").info == keep.info


def test_noise_and_bad_points_are_left_out(tmp_path, capfd):
    points = wall_and_ground(100)
    classes = np.ones(100, np.uint8)
    classes[:7] = 7
    classes[7:9] = 18
    run(write_las(tmp_path / "a.las", points, classification=classes), "-o", tmp_path / "a", "--voxel", 0)
    assert "91 points" in (out := capfd.readouterr().out) and "left:    9 points marked as noise" in out
    points[3] = np.nan
    points[4, 2] = 9e5
    run(as_file("npy", tmp_path, points), "-o", tmp_path / "b", "--voxel", 0)
    out = capfd.readouterr().out
    assert "98 points" in out and "left:    1 points not finite" in out
    assert "1 points 100 km or more away from the others, or 8 km above" in out


def test_lost_digits_are_told(tmp_path, capfd):
    points = wall_and_ground(100) + UTM
    np.save(tmp_path / "a.npy", points.astype(np.float32))
    run(tmp_path / "a.npy", "-o", tmp_path / "a")
    assert "a.npy: float32 at such coordinates is rounded to 50 cm: write float64" in capfd.readouterr().out
    for name in ("b.npy", "c.npy"):
        np.save(tmp_path / name, points if name == "b.npy" else (points - UTM).astype(np.float32))
        run(tmp_path / name, "-o", tmp_path / name[0])
        assert "rounded" not in capfd.readouterr().out


def test_zeros_among_utm_coordinates(tmp_path, capfd):
    """Some tools write (0, 0, 0) where there was no return."""
    points = wall_and_ground(1000) + UTM
    points[:10] = 0.0
    assert run(as_file("npy", tmp_path, points), "-o", tmp_path / "map", "--voxel", 0, "--offset", "auto") == 0
    out = capfd.readouterr().out
    assert "990 points" in out and "left:    10 points 100 km or more away" in out


def test_too_many_tiles(tmp_path, refused, monkeypatch):
    monkeypatch.setattr(tiles_module, "MOST_TILES", 100)
    path = as_file("npy", tmp_path, wall_and_ground(1000))
    assert "more than 100 tiles of 1 m: choose a larger --tile" in refused(map_import.main, 3, path, "-o", tmp_path / "map", "--tile", 1)


@pytest.mark.parametrize(("points", "line"), [
    (1000.0 * wall_and_ground(20000), "too few to match anything: are they in millimetres? A map needs metres"),
    (np.array([8.4, 49.0, 110.0]) + wall_and_ground(20000) * [1e-5, 1e-5, 1.0], "are they degrees, or kilometres? A map needs metres")])
def test_other_units_than_metres(points, line, tmp_path, refused):
    path = as_file("npy", tmp_path, points)
    assert line in refused(map_import.main, 3, path, "-o", tmp_path / "map")
    assert not (tmp_path / "map").exists()


def test_a_full_disk_names_what_was_written(tmp_path, refused, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(tiles_module.TileSet, "write", full)
    path = as_file("npy", tmp_path, wall_and_ground(1000))
    said = refused(map_import.main, 3, path, "-o", tmp_path / "map")
    assert f"{tmp_path / 'map'}: No space left on device; " in said and "are free there" in said and "Errno" not in said


def test_folder_of_files(tmp_path):
    points = wall_and_ground(4000)
    (tmp_path / "in" / "sub").mkdir(parents=True)
    np.save(tmp_path / "in" / "a.npy", points[:1000])
    write_ply(tmp_path / "in" / "sub" / "b.ply", points[1000:])
    (tmp_path / "in" / "readme.md").write_text("text")
    (tmp_path / "in" / "times.txt").write_text("no points")
    assert run(tmp_path / "in", "-o", tmp_path / "map", "--voxel", 0, "-q") == 0
    assert len(read(tmp_path / "map")) == 4000


def test_autoware_map_keeps_its_projector(tmp_path):
    pytest.importorskip("yaml")
    path = as_file("pcd", tmp_path, wall_and_ground(100))
    info = "projector_type: MGRS\nvertical_datum: WGS84\nmgrs_grid: 54SUE\n"
    (tmp_path / "map_projector_info.yaml").write_text(info)
    assert run(path, "-o", tmp_path / "map", "-q") == 0
    assert (tmp_path / "map" / "map_projector_info.yaml").read_text() == info


@pytest.mark.parametrize("where", ("street", "utm"))
def test_a_drive_on_the_tiles_is_as_accurate(where, simulate, run_program, tmp_path):
    """The simulated drive on the original map and on its tiles: every scan converges, with the same errors."""
    drive = simulate("--world", where, "--scans", 60, "--columns", 900)
    assert run(drive.map, "-o", tmp_path / "thinned", "-q") == 0
    assert run(drive.map, "-o", tmp_path / "all", "--voxel", 0, "-q") == 0
    p95_m = {}
    for name, path in (("original", drive.map), ("thinned", tmp_path / "thinned"), ("all", tmp_path / "all")):
        summary = tmp_path / f"{name}.json"
        run_program("ndtd", "--replay", drive.bag, "--map", path, "--summary", summary, "--set", "preprocess.deskew=time")
        report = json.loads(summary.read_text())
        assert report["off"] == 0 and report["outcomes"]["converged"] == 60
        p95_m[name] = report["translation_error_m"]["p95"]
    assert max(p95_m["all"], p95_m["thinned"]) < p95_m["original"] + 3e-3


# ---- what is wrong


@pytest.mark.parametrize("name, content, line", [
    ("a.las", b"no LAS file", "a.las: not a readable LAS file"),
    ("a.laz", b"LASF" + bytes(400), "a.laz: not a readable LAS file"),
    ("a.npy", b"\x93NUMPY rubbish", "a.npy: not a readable numpy file"),
    ("a.pcd", b"# .PCD\nrubbish", "a.pcd"),
    ("a.ply", b"ply\nformat ascii 1.0\nelement face 1\nend_header\n", "a.ply"),
    ("a.xyz", b"1 2\n", "a.xyz: line 1: neither x y z nor a header"),
    ("a.xyz", b"1 2 3\n4 5 6\n7 oops 9\n", "a.xyz: line 3: not the numbers of a point: 7 oops 9"),
    ("a.txt", b"85,831 73,523 2,699\n", "names: 85,831 73,523 2,699; decimal commas are not read: write points"),
    ("a.csv", b"x,y,z\n1,2,3\n1,2\n", "a.csv: line 3: not the numbers of a point"),
    ("a.csv", b"", "a.csv: is empty"),
    ("a.xyz", b"nan nan nan\n", "no point to make a map from"),
    ("a.e57", b"ASTM-E57", "E57 is not read; write PLY or LAZ from it, for example with `CloudCompare -SILENT -O a.e57"),
    ("a.dwg", b"x", "not a point cloud; known are .asc .bin"),
])
def test_wrong_files(name, content, line, tmp_path, refused):
    (tmp_path / name).write_bytes(content)
    assert line in refused(map_import.main, 3, tmp_path / name, "-o", tmp_path / "map")
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]  # nothing is left


def test_ndt_import_tells_of_maps(tmp_path, capfd):
    from ndtd import ndt_import
    path = write_ply(tmp_path / "a.ply", wall_and_ground(10))
    assert ndt_import.main([str(path), "-o", str(tmp_path / "a.bag")]) == 3
    assert f"`ndt-import map {path} -o DIR` makes a map of it" in capfd.readouterr().err
    assert ndt_import.main(["map", str(path), "-o", str(tmp_path / "map"), "-q"]) == 0
    assert (tmp_path / "map" / "pointcloud_map_metadata.yaml").exists()


@pytest.mark.parametrize("kind", ("las", "laz", "pcd", "ply", "npy", "csv-header"))
def test_damaged_files(kind, tmp_path, capfd):
    """Cut and changed bytes: a map or one line, no exception, nothing left behind."""
    path = as_file(kind, tmp_path, wall_and_ground(500))
    data, rng = path.read_bytes(), np.random.default_rng(11)
    for at in range(8):
        some = bytearray(data[:rng.integers(len(data))] if at % 2 else data)
        if at % 2 == 0:
            for place in rng.integers(0, min(len(some), 400), 5):
                some[place] = rng.integers(256)
        path.write_bytes(some)
        code = run(path, "-o", tmp_path / "map", "--force", "-q")
        text = capfd.readouterr().err
        assert (code, text) == (0, "") or (code == 3 and text.count("\n") == 1)
    assert {one.name for one in tmp_path.iterdir()} <= {path.name, "map"}


@pytest.mark.parametrize("place, count", [(100, 0xffffffff), (243, 0x7fffffff)])
def test_las_that_counts_too_many_records(place, count, tmp_path, refused):
    path = write_las(tmp_path / "a.las", wall_and_ground(50))
    data = bytearray(path.read_bytes())
    data[place:place + 4] = count.to_bytes(4, "little")
    path.write_bytes(data)
    assert f"it counts {count} records in its header" in refused(map_import.main, 3, path, "-o", tmp_path / "map")


def test_wrong_arrays(tmp_path, refused):
    np.save(tmp_path / "a.npy", np.zeros((4, 2)))
    assert "neither an N x 3 array nor records" in refused(map_import.main, 3, tmp_path / "a.npy", "-o", tmp_path / "map")
    np.save(tmp_path / "b.npy", np.array([{}, {}]))
    assert "not a readable numpy file" in refused(map_import.main, 3, tmp_path / "b.npy", "-o", tmp_path / "map")


def test_wrong_command_lines(tmp_path, refused):
    path = as_file("npy", tmp_path, wall_and_ground(100))
    out = tmp_path / "map"
    assert refused(map_import.main, 3, tmp_path / "none.las", "-o", out) == f"ndt-import map: {tmp_path}/none.las: no such file or folder\n"
    for arguments, line in ((["--tile", "0"], "--tile 0: 1 to 2000 m"), (["--voxel", "-1"], "--voxel -1: 0, or 0.01 m"),
                            (["--offset", "here"], "--offset here: none, auto, mgrs, or x,y,z"),
                            (["--offset", "mgrs"], "--offset mgrs: the points have to be in UTM")):
        assert line in refused(map_import.main, 2, path, "-o", out, *arguments)
    (tmp_path / "file").touch()
    assert refused(map_import.main, 3, path, "-o", tmp_path / "file" / "map") == f"ndt-import map: {tmp_path}/file/map: Not a directory\n"
    (tmp_path / "empty").mkdir()
    assert "no point cloud in this folder" in refused(map_import.main, 3, tmp_path / "empty", "-o", out)
    with pytest.raises(SystemExit) as usage:
        run(path)
    assert usage.value.code == 2


def test_what_is_replaced(tmp_path, refused):
    path = as_file("npy", tmp_path, wall_and_ground(100))
    out = tmp_path / "map"
    assert run(path, "-o", out, "-q") == 0
    assert "--force replaces" in refused(map_import.main, 2, path, "-o", out)
    assert run(path, "-o", out, "-q", "--force") == 0
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("1 2 3")
    text = refused(map_import.main, 2, path, "-o", tmp_path / "home", "--force")
    assert "it is not replaced" in text and (tmp_path / "home" / "thesis.txt").exists()
    assert "an input is in it" in refused(map_import.main, 2, path, "-o", tmp_path, "--force")
    assert "is a file" in refused(map_import.main, 2, path, "-o", path)


def test_wrong_systems(tmp_path, refused):
    pytest.importorskip("pyproj")
    path = as_file("npy", tmp_path, wall_and_ground(100))
    for code, line in (("4326", "is not projected"), ("2227", "US survey foot"), ("999999", "not a coordinate system")):
        assert line in refused(map_import.main, 3, path, "-o", tmp_path / "map", "--epsg", code)
    two = [write_las(tmp_path / "a.las", wall_and_ground(50) + UTM, 25832), write_las(tmp_path / "b.las", wall_and_ground(50) + UTM, 25833)]
    assert "convert one, or tell --epsg" in refused(map_import.main, 3, *two, "-o", tmp_path / "map")


def test_missing_package_is_named(tmp_path, refused, monkeypatch):
    path = write_las(tmp_path / "a.las", wall_and_ground(50))
    monkeypatch.setitem(sys.modules, "laspy", None)
    assert "laspy is not installed: pip install 'ndtd[las]'" in refused(map_import.main, 3, path, "-o", tmp_path / "map")


def test_memory_is_bounded(tmp_path):
    """Six million points of a large area: far less memory than all of them would need in float64 (144 MB) and sorted."""
    points = np.random.default_rng(1).random((6_000_000, 3)).astype(np.float32)
    points[:, :2] *= 800
    np.save(tmp_path / "a.npy", points)
    code = ("import resource, sys; from ndtd import map_import; map_import.main(['-q', '--voxel', '0', '--tile', '100', *sys.argv[1:]]);"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)")
    blocks = []
    for rows in (1_500_000, 6_000_000):
        np.save(tmp_path / "a.npy", points[:rows])
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.npy"), "-o", str(tmp_path / f"map{rows}")], check=True,
                              capture_output=True, text=True)
        blocks.append(int(done.stdout))
    assert blocks[1] - blocks[0] < 120_000  # kB: the mapped pages of the input (54 MB) count


def test_read_cloud_owns_its_memory(tmp_path):
    """The arrays outlive the dict that they came in, and are freed with it."""
    points = wall_and_ground(200_000)
    path = write_pcd(tmp_path / "a.pcd", points, np.arange(200_000, dtype=np.float32))
    xyz = _core.read_cloud(path)["points"]
    others = [_core.read_cloud(path) for _ in range(5)]
    assert np.abs(xyz - points).max() < 1e-4 and others[0]["intensity"][199_999] == 199_999
    del others

    def resident_kb():
        return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1])

    before = resident_kb()
    for _ in range(100):
        _core.read_cloud(path)
    assert resident_kb() - before < 50_000  # 100 times 3.2 MB are read


def test_point_file_of_unknown_kind():
    with pytest.raises(MapFileError, match="not a point cloud"):
        PointFile("/etc/hostname")
