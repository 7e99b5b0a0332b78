"""ndt-map from-glim: dumps as GLIM writes them (SubMap::save, GlobalMapping::save), written here; and what is none."""
import json
import os
import shutil
import subprocess

import numpy as np
import pytest

import ndtd
from ndtd import ndt_map_from_glim
from ndtd.mapping import given, se3

pytest.importorskip("msgpack")
from drive_bags import truth_of  # noqa: E402

SMALL = ("--beams", 16, "--columns", 600, "--map-spacing", 0.3)
LIDAR_IMU = se3.exp(np.array([0.1, -0.05, 0.2, 0.01, 0.02, 1.5]))
PER_SUBMAP = 10


def rows(T):
    """A matrix as Eigen prints it."""
    return "\n".join(" ".join(f"{value:12.9g}" for value in row) for row in T) + "\n"


def write_submap(folder, number, poses, stamps_ns, points, drift):
    """poses: T_world_lidar as they are in the end; drift: what the odometry had wrong when the submap was made."""
    at = folder / f"{number:06d}"
    at.mkdir(parents=True)
    T_world_origin = poses[len(poses) // 2]
    text = f"id: {number}\nT_world_origin: \n{rows(T_world_origin)}T_origin_endpoint_L: \n"
    text += rows(se3.inverse(T_world_origin) @ poses[0] @ LIDAR_IMU) + "T_origin_endpoint_R: \n"
    text += rows(se3.inverse(T_world_origin) @ poses[-1] @ LIDAR_IMU) + f"T_lidar_imu: \n{rows(LIDAR_IMU)}imu_bias: 0 0 0 0 0 0\nframe_id: 1\n"
    text += f"num_frames: {len(poses)}\n"
    for k, (T, stamp_ns) in enumerate(zip(poses, stamps_ns)):
        text += f"frame_{k}\nid: {k}\nstamp: {stamp_ns // 10**9}.{stamp_ns % 10**9:09d}\nT_odom_lidar: \n{rows(drift @ T)}"
        text += f"T_world_lidar: \n{rows(drift @ T)}v_world_imu: 0 0 0\n"
    (at / "data.txt").write_text(text)
    points.astype("<f4").tofile(at / "points_compact.bin")


@pytest.fixture(scope="module")
def street(simulate):
    return simulate("--seed", 8, "--scans", 60, *SMALL)


@pytest.fixture(scope="module")
def truth(street):
    found = truth_of(street.bag)
    return np.array(list(found), np.int64), np.array(list(found.values()))


@pytest.fixture(scope="module")
def dump(street, truth, tmp_path_factory):
    """Six submaps of the street: of each the points of the map that are near it."""
    folder = tmp_path_factory.mktemp("glim") / "dump"
    folder.mkdir()
    cloud = ndtd.read_cloud(street.map)["points"].astype(np.float64)
    stamps_ns, poses = truth
    count = len(poses) // PER_SUBMAP
    (folder / "graph.txt").write_text(f"num_submaps: {count}\nnum_all_frames: {len(poses)}\nnum_matching_cost_factors: 1\n"
                                      "matching_cost vgicp 0 1\n")
    for number in range(count):
        part = slice(number * PER_SUBMAP, (number + 1) * PER_SUBMAP)
        origin = poses[part][PER_SUBMAP // 2]
        near = cloud[np.linalg.norm(cloud - origin[:3, 3], axis=1) < 60]
        drift = se3.exp(number * np.array([0.5, 0.2, 0, 0, 0, 0.03]))
        write_submap(folder, number, poses[part], stamps_ns[part], se3.apply(se3.inverse(origin), near), drift)
    return folder


def from_glim(*arguments, code=0):
    assert ndt_map_from_glim.main([*map(str, arguments)]) == code


def test_a_map_of_a_dump(dump, street, truth, tmp_path, capfd):
    from_glim(dump, "-o", tmp_path / "map", "--compiled", "--voxel", 0.2)
    assert "next: ndtd --replay RECORDING --map" in capfd.readouterr().out
    assert sorted(path.name for path in (tmp_path / "map").iterdir()) == ["map.json", "map.ndtmap", "map.pcd", "poses.tum"]
    stamps_ns, T = given.read_tum(tmp_path / "map/poses.tum")
    assert np.array_equal(stamps_ns, truth[0]) and np.abs(T - truth[1]).max() < 1e-5
    about = json.loads((tmp_path / "map/map.json").read_text())
    assert about["submaps"] == 6 and about["points"] == len(ndtd.read_cloud(tmp_path / "map/map.pcd")["points"]) > 10000
    known = dict(zip(truth[0].tolist(), truth[1]))
    located = list(ndtd.Replay(street.bag, tmp_path / "map/map.ndtmap"))
    assert len(located) == 60 and all(scan.outcome == "converged" for scan in located)
    assert max(np.linalg.norm(scan.position - known[scan.stamp_ns][:3, 3]) for scan in located) < 0.15


def test_tiles_and_what_is_there_already(dump, tmp_path, capfd):
    from_glim(dump, "-o", tmp_path / "map", "--tiles", 50, "--quiet")
    assert (tmp_path / "map/pointcloud_map.pcd/pointcloud_map_metadata.yaml").exists()
    from_glim(dump, "-o", tmp_path / "map", code=2)
    assert "exists already; --force overwrites it" in capfd.readouterr().err
    from_glim(dump, "-o", tmp_path / "map", "--force", "--quiet")
    assert (tmp_path / "map/map.pcd").exists() and not (tmp_path / "map/pointcloud_map.pcd").exists()
    assert list(tmp_path.iterdir()) == [tmp_path / "map"]


def put(name, text):
    return lambda folder: (folder / name).write_text(text)


def swap(name, before, after):
    return lambda folder: (folder / name).write_text((folder / name).read_text().replace(before, after, 1))


@pytest.mark.parametrize(("spoil", "said"), [
    (lambda folder: shutil.rmtree(folder), "dump: no such folder"),
    (lambda folder: (folder / "graph.txt").unlink(), "graph.txt: is missing: no dump of GLIM, or an incomplete one"),
    (lambda folder: (folder / "graph.txt").write_bytes(b"\xff\xfe\x00"), "graph.txt: is no text"),
    (put("graph.txt", "hello\n"), "graph.txt: does not tell num_submaps"),
    (put("graph.txt", "num_submaps: many\n"), "graph.txt: num_submaps 'many' is not 1 to 1000000"),
    (put("graph.txt", "num_submaps: 99999999999999999999\n"), "num_submaps '99999999999999999999' is not 1 to"),
    (put("graph.txt", "num_submaps: 7\n"), "000006/data.txt: is missing"),
    (put("000002/data.txt", ""), "000002/data.txt: does not tell T_world_origin"),
    (put("000002/data.txt", "T_world_origin: \n1 0 0 0\n0 1 0 0\n"), "data.txt: line 1: T_world_origin is not followed by four rows"),
    (put("000002/data.txt", "T_world_origin: \n1 0 0 x\n0 1 0 0\n0 0 1 0\n0 0 0 1\n"), "line 1: T_world_origin is not followed"),
    (put("000002/data.txt", "T_world_origin: \n2 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n"), "line 1: T_world_origin is no rigid transform"),
    (put("000002/data.txt", "T_world_origin: \nnan 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n"), "T_world_origin is no rigid transform"),
    (swap("000002/data.txt", "stamp: ", "stamp: x"), "000002/data.txt: line 27: the stamp 'x17"),
    (swap("000002/data.txt", "T_lidar_imu", "T_lidar"), "000002/data.txt: does not tell T_lidar_imu"),
    (swap("000002/data.txt", "T_world_lidar", "T_earth_lidar"), "000002/data.txt: does not tell T_world_lidar of frame_0"),
    (lambda folder: (folder / "000003/points_compact.bin").unlink(), "000003/points_compact.bin: is missing"),
    (lambda folder: os.truncate(folder / "000003/points_compact.bin", 1001), "has 1001 bytes, no multiple of the 12 of a point"),
    (lambda folder: [os.truncate(one, 0) for one in folder.glob("*/points_compact.bin")], "its 6 submaps have no points"),
])
def test_what_is_no_dump_gives_one_line(dump, tmp_path, refused, spoil, said):
    folder = tmp_path / "dump"
    shutil.copytree(dump, folder)
    spoil(folder)
    assert said in refused(ndt_map_from_glim.main, 3, folder, "-o", tmp_path / "map")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("map")]


def test_older_dumps_and_points_that_are_none(dump, tmp_path):
    """points.bin of float64 with a one; points that are not finite are left out; a submap without frames has no poses."""
    folder = tmp_path / "dump"
    folder.mkdir()
    points = np.fromfile(dump / "000000/points_compact.bin", "<f4").reshape(-1, 3).astype("<f8")
    points[5] = np.nan
    (folder / "000000").mkdir()
    np.column_stack([points, np.ones(len(points))]).tofile(folder / "000000/points.bin")
    (folder / "graph.txt").write_text("num_submaps: 1\n")
    (folder / "000000/data.txt").write_text(f"id: 0\nT_world_origin: \n{rows(np.eye(4))}num_frames: 0\n")
    from_glim(folder, "-o", tmp_path / "map", "--quiet")
    about = json.loads((tmp_path / "map/map.json").read_text())
    assert about["points_read"] == len(points) - 1 and about["poses"] == 0 and (tmp_path / "map/poses.tum").read_text() == ""


def test_ndt_map_starts_it(bin_dir, dump, map_build_environment, tmp_path):
    done = subprocess.run([bin_dir / "ndt-map", "from-glim", dump, "-o", tmp_path / "map"], capture_output=True, text=True,
                          env=map_build_environment, timeout=300, check=False)
    assert done.returncode == 0 and "6 submaps" in done.stdout and (tmp_path / "map/map.pcd").exists()
