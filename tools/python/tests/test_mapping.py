"""ndt-map build: maps of simulated drives, other drives localised in them, and what is refused."""
import errno
import json
import os
import subprocess
from pathlib import Path

import drive_bags
import numpy as np
import pytest
import recording_maker
from drive_bags import truth_of

import ndtd
from ndtd import ndt_map_build
from ndtd.georeference import Projector
from ndtd.mapping import checks, given, graph, loops, se3, submaps
from ndtd.mapping.build import Mapped, chain_of, check_bent, leave_out_lost, solve
from ndtd.mapping.cloud_store import CloudStore, thin
from ndtd.mapping.drive import Drive, MappingError
from ndtd.mapping.loops import Loop
from ndtd.mapping.trajectory import Trajectory
from ndtd.poses import matrix

SMALL = ("--beams", 16, "--columns", 600, "--map-spacing", 0.3)


@pytest.fixture(scope="module")
def street(simulate):
    """Sixty scans of a street."""
    return simulate("--seed", 8, "--scans", 60, *SMALL)


def build(*arguments):
    assert ndt_map_build.main([*map(str, arguments), "--quiet", "--threads", "1"]) == 0


def scans_alone(bag, path):
    """A bag of the scans of another one: no initial pose, no odometry."""
    with ndtd.BagWriter(path) as out:
        for scan in drive_bags.scans_of(bag):
            drive_bags.write(out, "scan", scan)
    return path


def error_m(stamps_ns, places, truth):
    """Distances after one rigid alignment."""
    known = np.array([truth[stamp_ns][:3, 3] for stamp_ns in stamps_ns])
    a, b = places - places.mean(0), known - known.mean(0)
    U, _, Vt = np.linalg.svd(b.T @ a)
    R = U @ np.diag([1, 1, np.sign(np.linalg.det(U @ Vt))]) @ Vt
    return np.linalg.norm(a @ R.T - b, axis=1)


@pytest.fixture(scope="module")
def street_map(street, tmp_path_factory):
    out = tmp_path_factory.mktemp("maps") / "map"
    build(street.bag, "-o", out, "--compiled")
    return out


def test_a_map_of_a_drive(street, street_map):
    stamps_ns, T = given.read_tum(street_map / "poses.tum")
    assert len(stamps_ns) == 60
    assert error_m(stamps_ns, T[:, :3, 3], truth_of(street.bag)).max() < 0.1
    about = json.loads((street_map / "map.json").read_text())
    cloud = ndtd.read_cloud(street_map / "map.pcd")["points"]
    assert about["sharpness"]["cells"] > 100 and 0.005 < about["sharpness"]["median_m"] < 0.06
    assert about["points"] == len(cloud) > 20000 and about["drives"][0]["scans"] == 60 and about["version"] == ndtd.__version__
    assert sorted(path.name for path in street_map.iterdir()) == ["map.json", "map.ndtmap", "map.pcd", "poses.tum"]
    assert ndtd.Map(street_map / "map.ndtmap").levels == [4.0, 2.0, 1.0]


def test_another_drive_is_localised_in_the_map(simulate, street_map, tmp_path):
    other = simulate("--seed", 8, "--scans", 50, "--noise", 0.03, *SMALL)  # the same street, measured again
    truth = truth_of(other.bag)
    located = [scan for scan in ndtd.Replay(scans_alone(other.bag, tmp_path / "scans.bag"), street_map / "map.pcd")
               if scan.outcome == "converged" and scan.trusted]
    assert len(located) >= 45
    off_m = error_m([scan.stamp_ns for scan in located], np.array([scan.position for scan in located]), truth)
    assert np.median(off_m) < 0.03 and off_m.max() < 0.12


def test_the_same_drive_gives_the_same_bytes(street, street_map, tmp_path):
    build(street.bag, "-o", tmp_path / "again")
    assert (tmp_path / "again/map.pcd").read_bytes() == (street_map / "map.pcd").read_bytes()
    assert (tmp_path / "again/poses.tum").read_bytes() == (street_map / "poses.tum").read_bytes()


def test_two_drives_become_one_map(street, simulate, tmp_path):
    other = simulate("--seed", 8, "--scans", 40, "--noise", 0.03, *SMALL)  # the same street, measured again
    pytest.importorskip("matplotlib")
    build(street.bag, other.bag, "-o", tmp_path / "both", "--report", "--refine")
    page = (tmp_path / "both/report.html").read_text()
    assert "<h1>both</h1>" in page and "loops" in page and page.count("<svg") == 2 and "Surfaces" in page and str(tmp_path) not in page
    about = json.loads((tmp_path / "both/map.json").read_text())
    assert about["loops_believed"] > 0 and 0 < about["loops_off"]["median_m"] < about["loops_off"]["most_m"] < 0.2
    assert f"the map is {100 * about['loops_off']['median_m']:.1f} cm from them" in page
    places = []
    for number, bag in ((1, street.bag), (2, other.bag)):
        stamps_ns, T = given.read_tum(tmp_path / f"both/poses{number}.tum")
        places.append((stamps_ns, T[:, :3, 3], truth_of(bag)))
    stamps_ns = np.concatenate([place[0] for place in places])
    known = np.concatenate([[place[2][int(s)] for s in place[0]] for place in places])
    off_m = error_m(np.arange(len(stamps_ns)), np.concatenate([place[1] for place in places]), dict(enumerate(known)))
    assert off_m.max() < 0.15


def test_given_poses_and_tiles(street, street_map, tmp_path):
    build(street.bag, "-o", tmp_path / "tiled", "--poses", street_map / "poses.tum", "--tiles", 50)
    assert (tmp_path / "tiled/pointcloud_map.pcd/pointcloud_map_metadata.yaml").exists()
    again, T = given.read_tum(tmp_path / "tiled/poses.tum")
    stamps_ns, known = given.read_tum(street_map / "poses.tum")
    assert np.array_equal(again, stamps_ns) and np.abs(T - known).max() < 1e-5


def test_a_tunnel_is_refused_and_with_odometry_not(simulate, tmp_path, refused):
    tunnel = simulate("--world", "tunnel", "--seed", 2, "--scans", 40, "--odometry", *SMALL)
    said = refused(ndt_map_build.main, 3, scans_alone(tunnel.bag, tmp_path / "without.bag"), "-o", tmp_path / "map", "--quiet")
    assert "do not tell how far the vehicle moved" in said and "wheel odometry" in said
    assert not (tmp_path / "map").exists() and not (tmp_path / "map.part").exists()
    build(tunnel.bag, "-o", tmp_path / "map")


def test_a_corridor_follows_the_wheels(simulate, tmp_path):
    """Doors and the noise of the walls pull at each scan: without the wheels' word the map is 7 % short."""
    corridor = simulate("--world", "corridor", "--seed", 62, "--scans", 200, "--columns", 600, "--odometry", "--imu", 100, "--map-spacing", 2)
    build(corridor.bag, "-o", tmp_path / "map")
    stamps_ns, T = given.read_tum(tmp_path / "map/poses.tum")
    assert error_m(stamps_ns, T[:, :3, 3], truth_of(corridor.bag)).max() < 0.2  # the scale of the wheels: 0.7 %


@pytest.mark.parametrize(("arguments", "code", "text"), [
    (("nothing.bag", "-o", "m"), 3, "nothing.bag: no such file or folder"),
    (("{short}", "-o", "m"), 3, "scans can be used; a map needs 5"),
    (("{street}", "-o", "m", "--voxel", "5"), 2, "--voxel: 5 is outside 0.02 .. 0.25"),
    (("{street}", "-o", "m", "--frame", "left"), 3, "no scan of frame 'left'; there are: lidar"),
    (("{street}", "-o", "m", "--poses", "none.tum"), 2, "none.tum: no such file"),
    (("{street}", "-o", "{other}"), 2, "exists already"),
    (("{street}", "-o", "{other}", "--force"), 2, "is no map of this command"),
    (("{text}", "-o", "m"), 3, "notes.txt"),
])
def test_wrong_inputs_give_one_line(arguments, code, text, street, simulate, tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/precious").write_text("")
    (tmp_path / "notes.txt").write_text("a note\n")
    short = simulate("--seed", 8, "--scans", 3, *SMALL).bag if "{short}" in arguments else ""
    places = {"street": street.bag, "other": "other", "short": short, "text": "notes.txt"}
    assert text in refused(ndt_map_build.main, code, *(word.format(**places) for word in arguments), "--quiet")
    assert (tmp_path / "other/precious").exists() and not (tmp_path / "m").exists()


def test_millimetres_are_suspected(street, tmp_path, refused):
    with ndtd.BagWriter(tmp_path / "mm.bag") as out:
        for scan in drive_bags.scans_of(street.bag)[:8]:
            out.scan(scan["stamp_ns"], 1000.0 * scan["points"], time_s=scan["time_s"])
    said = refused(ndt_map_build.main, 3, tmp_path / "mm.bag", "-o", tmp_path / "map", "--quiet")
    assert "within range (--min-range, --max-range); are its points in metres?" in said


def test_a_bag_that_ends_early_counts_up_to_there(street, tmp_path, capsys):
    whole = street.bag.read_bytes()
    (tmp_path / "cut.bag").write_bytes(whole[:len(whole) // 2])
    build(tmp_path / "cut.bag", "-o", tmp_path / "map", "--no-loops")
    said = capsys.readouterr().err
    assert "truncated" in said and "what comes before is used" in said and said.count("\n") == 1
    assert 25 < json.loads((tmp_path / "map/map.json").read_text())["drives"][0]["scans"] < 35


def test_points_without_times_are_noted(street, tmp_path, capsys):
    scans = drive_bags.scans_of(street.bag)[:8]
    with ndtd.BagWriter(tmp_path / "timeless.bag") as out:
        for k, scan in enumerate(scans):
            out.scan(scan["stamp_ns"], np.random.default_rng(k).permutation(scan["points"]), seq=k, frame_id="lidar")
    build(tmp_path / "timeless.bag", "-o", tmp_path / "map", "--no-loops")
    said = capsys.readouterr().err
    assert "not deskewed; --deskew azimuth_cw" in said and said.count("\n") == 1
    build(tmp_path / "timeless.bag", "-o", tmp_path / "turned", "--no-loops", "--deskew", "azimuth_cw")
    assert capsys.readouterr().err == ""


def test_scans_that_are_missing_repeated_or_late(street, tmp_path):
    """One frame in eight is missing, one repeated, one comes late."""
    scans = drive_bags.scans_of(street.bag)
    order = [k for k in range(len(scans)) if k % 8 != 5]
    order.insert(20, order[19])
    order.insert(30, order[10])
    with ndtd.BagWriter(tmp_path / "rough.bag") as out:
        for k in order:
            out.scan(scans[k]["stamp_ns"], scans[k]["points"], time_s=scans[k]["time_s"], seq=k, frame_id="lidar")
    build(tmp_path / "rough.bag", "-o", tmp_path / "map", "--no-loops")
    drive = json.loads((tmp_path / "map/map.json").read_text())["drives"][0]
    assert drive["scans"] == len(order) - 2 and drive["refused"] == 2 and drive["not_located"] == 0
    stamps_ns, T = given.read_tum(tmp_path / "map/poses.tum")
    assert error_m(stamps_ns, T[:, :3, 3], truth_of(street.bag)).max() < 0.1


def test_ndt_map_starts_it(bin_dir, street, map_build_environment, tmp_path):
    done = subprocess.run([bin_dir / "ndt-map", "build", street.bag, "-o", tmp_path / "map", "--no-loops"], capture_output=True, text=True,
                          env=map_build_environment, timeout=300)
    assert done.returncode == 0 and "next: ndtd --replay" in done.stdout and (tmp_path / "map/map.pcd").exists()
    away = subprocess.run([bin_dir / "ndt-map", "build"], capture_output=True, text=True, env={"PATH": "/nowhere"}, timeout=60)
    assert away.returncode == 3 and "is not installed" in away.stderr


def test_monday_and_tuesday(bin_dir, map_build_environment, tmp_path):
    """What tools/quickstart --map shows."""
    example = Path(__file__).resolve().parents[2] / "examples/monday_tuesday.sh"
    done = subprocess.run([example, bin_dir, tmp_path / "out"], capture_output=True, text=True,
                          env=map_build_environment, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    truth = truth_of(tmp_path / "out/tuesday/drive.bag")
    stamps_ns, T = given.read_tum(tmp_path / "out/tuesday.tum")
    assert len(stamps_ns) >= 145 and error_m(stamps_ns, T[:, :3, 3], truth).max() < 0.1


def test_the_pose_graph():
    """A loop with a wrong one among its closings: the kernel leaves that out."""
    random = np.random.default_rng(3)
    step = se3.exp(np.array([1.0, 0, 0, 0, 0, 2 * np.pi / 100]))
    truth = np.array([np.linalg.matrix_power(step, k) for k in range(101)])
    noise = random.normal(size=(100, 6)) * np.array([0.02] * 3 + [0.0016] * 3)
    T = se3.inverse(truth[:-1]) @ truth[1:] @ se3.exp(noise)
    drifted = [np.eye(4)]
    for one in T:
        drifted.append(drifted[-1] @ one)
    chain = graph.Edges(np.arange(100), np.arange(1, 101), T, graph.diagonal_root(np.full(100, 0.02), np.full(100, 0.0016)))
    wrong = np.eye(4)
    wrong[:3, 3] = 3, 4, 0
    loops = graph.Edges(np.array([0, 1, 2]), np.array([100, 99, 60]),
                        np.array([truth[100], se3.inverse(truth[1]) @ truth[99], se3.inverse(truth[2]) @ truth[60] @ wrong]),
                        graph.diagonal_root(np.full(3, 0.03), np.full(3, 0.003)), robust=True)
    solved = graph.solve(np.array(drifted), [chain, loops])
    before, after = (np.linalg.norm(poses[:, :3, 3] - truth[:, :3, 3], axis=1).max() for poses in (np.array(drifted), solved))
    assert after < 0.6 * before and after < 0.3
    assert graph.cauchy_weights(loops.residuals(solved))[2] < 0.01


def test_positions_hold_the_frame():
    truth = np.array([np.linalg.matrix_power(se3.exp(np.array([1.0, 0, 0, 0, 0, 0.02])), k) for k in range(50)])
    moved = se3.exp(np.array([0.5, -0.3, 0.1, 0, 0, 0.05])) @ truth
    T = se3.inverse(truth[:-1]) @ truth[1:]
    chain = graph.Edges(np.arange(49), np.arange(1, 50), T, graph.diagonal_root(np.full(49, 0.02), np.full(49, 0.002)))
    antenna_m = np.array([0.5, 0, 1])
    at_m = truth[:, :3, :3] @ antenna_m + truth[:, :3, 3]
    positions = graph.Positions(np.arange(50), at_m, np.full((50, 3), 0.1), np.tile(antenna_m, (50, 1)))
    solved = graph.solve(moved, [chain], positions)
    assert np.linalg.norm(solved[:, :3, 3] - truth[:, :3, 3], axis=1).max() < 1e-3


def test_rigid_transforms():
    d = np.random.default_rng(1).uniform(-1.5, 1.5, size=(200, 6))
    T = se3.exp(d)
    small = 1e-5 * d[::-1]
    assert np.allclose(se3.log(T), d) and np.allclose(se3.inverse(T) @ T, np.eye(4))
    assert np.allclose(se3.log(se3.exp(0.1 * d) @ se3.exp(small)),
                       0.1 * d + (se3.right_jacobian_inverse(0.1 * d) @ small[..., None])[..., 0], atol=1e-8)
    assert np.allclose(T @ se3.exp(small), se3.exp((se3.adjoint(T) @ small[..., None])[..., 0]) @ T)


def test_clouds_on_the_disk(tmp_path):
    points = np.random.default_rng(2).random((100, 3)).astype(np.float32)
    with CloudStore(tmp_path / "clouds") as store:
        store[7], store[3] = points, points[:10]
        assert store.scans() == [3, 7] and 3 in store and 4 not in store
        assert np.array_equal(store[7], points) and np.array_equal(store[3], points[:10])
    assert not (tmp_path / "clouds").exists()
    thinned = thin(points, 0.5)
    assert len(thinned) == 8 and np.allclose(thinned.mean(0), 0.5, atol=0.05)
    assert len(thin(points[:0], 0.5)) == 0


def test_gnss_places_the_map(street, tmp_path):
    """Positions of an antenna in UTM, one a second, a decimetre off: the map is there, and not bent by them."""
    random, corner_m, antenna_m = np.random.default_rng(4), np.array([389000.0, 4970000.0, 120.0]), np.array([0.4, 0.1, 0.8])
    turn = se3.exp(np.array([0, 0, 0, 0, 0, 0.7]))
    with ndtd.BagWriter(tmp_path / "gnss.bag") as out:
        out.transform(0, "antenna", [*antenna_m, 0, 0, 0, 1])
        count = 0
        for kind, message in drive_bags.messages_of(street.bag):
            if kind == "truth":
                count += 1
                if count % 4 == 0:
                    at_m = turn[:3, :3] @ se3.apply(matrix(message["pose"]), antenna_m[None])[0] + corner_m
                    out.gnss(message["stamp_ns"], at_m + 0.1 * random.normal(size=3), [0.1] * 3, antenna="antenna")
            elif kind == "scan":
                drive_bags.write(out, kind, message)
    build(tmp_path / "gnss.bag", "-o", tmp_path / "map")
    stamps_ns, T = given.read_tum(tmp_path / "map/poses.tum")
    truth = truth_of(street.bag)
    wanted = np.array([turn[:3, :3] @ truth[stamp_ns][:3, 3] + corner_m for stamp_ns in stamps_ns])
    assert np.linalg.norm(T[:, :3, 3] - wanted, axis=1).max() < 0.3
    assert error_m(stamps_ns, T[:, :3, 3], truth).max() < 0.15
    about = json.loads((tmp_path / "map/map.json").read_text())
    assert about["gnss"]["fixes"] == 15 and 0.05 < about["gnss"]["median_m"] < 0.3
    cloud = ndtd.read_cloud(tmp_path / "map/map.pcd")
    assert np.abs(cloud["points"].mean(0) + cloud["origin"] - wanted.mean(0))[:2].max() < 50


@pytest.fixture(scope="module")
def street_with_fixes(street, tmp_path_factory):
    """A recording of ROS with positions of GNSS, 15 of a drive in UTM zone 32."""
    projector, make = Projector.from_crs(32632), recording_maker.Messages()
    rows = [row for row in recording_maker.rows_of_drive(street.bag) if row[0] in ("/points", "/tf_static")]
    for count, (stamp_ns, T) in enumerate(sorted(truth_of(street.bag).items())):
        if count % 4 == 0:
            x, y, z = T[:3, 3] + [459000.0, 5428000.0, 120.0]
            rows.append(("/fix", "sensor_msgs/msg/NavSatFix", stamp_ns, make.fix(stamp_ns, *(float(value) for value in projector.inverse(x, y, z)))))
    return recording_maker.write_bag2(tmp_path_factory.mktemp("fixes") / "drive", sorted(rows, key=lambda row: row[2]))


def test_a_map_by_gnss_tells_where_it_is(street, street_with_fixes, tmp_path, capfd):
    assert ndt_map_build.main([str(street_with_fixes), "-o", str(tmp_path / "map"), "-q", "--threads", "1", "--", "--utm"]) == 0
    projector = Projector.find(tmp_path / "map/map.pcd")
    at = projector.inverse(459000.0, 5428000.0, 120.0)
    assert projector.info["crs"] == "EPSG:32632" and np.allclose(at, Projector.from_crs(32632).inverse(459000.0, 5428000.0, 120.0))
    stamps_ns, T = given.read_tum(tmp_path / "map/poses.tum")
    truth = truth_of(street.bag)
    wanted = np.array([truth[stamp_ns][:3, 3] + [459000.0, 5428000.0, 120.0] for stamp_ns in stamps_ns])
    assert np.linalg.norm(T[:, :3, 3] - wanted, axis=1).max() < 0.5
    assert "GNSS" not in capfd.readouterr().err


def test_gnss_that_is_left_out_is_told(street_with_fixes, tmp_path, capfd):
    build(street_with_fixes, "-o", tmp_path / "map")
    assert "its 15 positions of GNSS are left out, as nothing tells where the map is on the earth: `-- --utm`" in capfd.readouterr().err
    assert not (tmp_path / "map/map_projector_info.yaml").exists()


def test_a_full_disk_keeps_the_work(street, tmp_path, refused, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with monkeypatch.context() as patch:
        patch.setattr(ndt_map_build.output, "write_map", full)
        said = refused(ndt_map_build.main, 3, street.bag, "-o", tmp_path / "map", "--quiet", "--threads", "1")
    assert f"{tmp_path / 'map.part'}: No space left on device; what is done is kept there, and the same command goes on" in said
    build(street.bag, "-o", tmp_path / "map")
    assert not (tmp_path / "map.part").exists()


def test_what_was_driven_after_the_pose_was_lost(tmp_path):
    """Scans of another segment: in the map with a loop, left out without one, refused where they are many."""
    one = trajectory_along(np.arange(40.0), np.arange(0, 20, 0.5))
    one.segment[37:] = 1
    mapped = Mapped([Drive("walk.bag", None)], [one], [0], one.reference, one.reference.copy())
    with CloudStore(tmp_path / "clouds") as store:
        for k in range(40):
            store[k] = np.zeros((1, 3))
        mapped.loops, mapped.believed = [Loop((0, 1), 3, 38, np.eye(4), np.eye(6), 1.0, False)], [True]
        leave_out_lost(mapped, store)
        assert len(store.scans()) == 40
        mapped.believed = [False]
        leave_out_lost(mapped, store)
        assert store.scans() == list(range(37))
        one.segment[30:] = 1
        with pytest.raises(MappingError, match="the pose was lost before 15.0 s, and nothing tells where the 10 scans"):
            leave_out_lost(mapped, store)


def trajectory_along(places_m, stamps_s):
    T = np.tile(np.eye(4), (len(places_m), 1, 1))
    T[:, 0, 3] = places_m
    stamps_ns = (np.array(stamps_s) * 1e9).astype(np.int64)
    return Trajectory(stamps_ns, stamps_ns, T, T, np.ones(len(T), bool), np.zeros(len(T), bool), np.ones(len(T)), np.zeros(len(T), int))


def mapped_with_turned_loops(one, ends):
    """A straight drive, and loops that have the scans at `ends` beside scan 5, and looking the other way."""
    mapped = Mapped([Drive("walk.bag", None)], [one], [0], one.reference, one.reference.copy())
    for end in ends:
        T = se3.exp(np.array([0, 0, 0, 0, 0, 2.8])) @ se3.inverse(one.reference[ends[0]]) @ one.reference[end]
        mapped.loops.append(Loop((0, 3), 5, end, T, np.diag([0.03 ** 2] * 3 + [0.003 ** 2] * 3), 0.65, True))
    return mapped


def test_wrong_loops_do_not_bend_a_drive_where_it_is_weak():
    """Scans that face a wall do not tell the way along it, but how the sensor turns: three loops with a place that looks alike lose."""
    one = trajectory_along(0.15 * np.arange(100.0), 0.1 * np.arange(100))
    one.degenerate[60:67] = True
    mapped = mapped_with_turned_loops(one, (80, 85, 90))
    right = se3.inverse(one.reference[2]) @ one.reference[95]
    mapped.loops.append(Loop((0, 3), 2, 95, right, np.diag([0.03 ** 2] * 3 + [0.003 ** 2] * 3), 0.9, False))
    solve(mapped, chain_of(mapped))
    assert mapped.believed == [False] * 3 + [True]
    assert np.abs(mapped.poses - one.reference).max() < 0.02
    check_bent(mapped, chain_of(mapped))


def test_loops_that_contradict_odometry_are_refused():
    """At a scan that does not fit much is possible, but no half turn: nothing tells which of the two is wrong."""
    one = trajectory_along(0.15 * np.arange(100.0), 0.1 * np.arange(100))
    one.located[40] = False
    mapped = mapped_with_turned_loops(one, (80, 90))
    solve(mapped, chain_of(mapped))
    with pytest.raises(MappingError, match="walk.bag: after 3.9 s odometry and loops contradict each other: .* --no-loops"):
        check_bent(mapped, chain_of(mapped))


def test_jumps_are_found_and_refused():
    """A person who walks, stops at once and goes on; a car that brakes; the same with doors that were mixed up."""
    times = np.arange(0, 20, 0.5)
    walk = np.cumsum(np.where((times > 5) & (times < 8), 0, 0.65))
    car = np.where(times < 10, 20 * times, 200 + 20 * (times - 10) - 1.75 * (times - 10) ** 2)[:26]
    gap = np.r_[times[:10], times[16:]]
    assert not trajectory_along(walk, times).jumps.any()
    assert not trajectory_along(car, times[:26]).jumps.any()
    assert not trajectory_along(1.3 * gap, gap).jumps.any()
    mixed = trajectory_along(walk + np.where(times > 6, 3.7, 0) - np.where(times > 12, 3.7, 0), times)
    assert set(np.flatnonzero(mixed.jumps)) <= {13, 14, 25, 26} and mixed.jumps.sum() >= 2
    with pytest.raises(MappingError, match="scans jump, by up to 3.7 m: places that look alike"):
        checks.check(Drive("walk.bag", None), mixed)
    assert {why for _, why in checks.weak_places(mixed)} == {"jumps"}
    checks.check(Drive("walk.bag", None), trajectory_along(walk, times))
    long = np.arange(0, 200, 0.5)
    for metres, is_refused in ((0.8, False), (1.2, True)):  # beyond what is possible
        once = trajectory_along(0.65 * long / 0.5 + np.where(long > 150, metres + 1.4, 0), long)
        assert 1 <= once.jumps.sum() <= 2
        if is_refused:
            with pytest.raises(MappingError, match="2 scans jump, by up to"):
                checks.check(Drive("walk.bag", None), once)
        else:
            checks.check(Drive("walk.bag", None), once)


def test_a_way_that_hardly_any_scan_tells_is_refused():
    """A person who faces a wall for an eighth of the way and more: few scans, but their motion is a guess."""
    one = trajectory_along(0.1 * np.arange(100.0), 0.1 * np.arange(100))
    one.degenerate[50:62] = True
    checks.check(Drive("walk.bag", None), one)
    one.degenerate[50:63] = True
    with pytest.raises(MappingError, match="walk.bag: along 13% of the way no scan tells how far the vehicle moved"):
        checks.check(Drive("walk.bag", None), one)


def still_and_lifted(walk, path, still, lifted_m):
    """A walk that begins with `still` scans from one place, and whose sensor rises from scan 30 on within a second."""
    random = np.random.default_rng(4)
    scans = drive_bags.scans_of(walk.bag)
    with ndtd.BagWriter(path) as out:
        for k in range(-still, len(scans)):
            scan = scans[max(k, 0)]
            points = scan["points"] + (0.01 * random.normal(size=scan["points"].shape)).astype(np.float32)
            points[:, 2] -= lifted_m * np.clip((k - 30) / 10, 0, 1)
            time_s = scan["time_s"] if k > 0 else 0 * scan["time_s"]  # nothing moves during these sweeps
            out.scan(scans[0]["stamp_ns"] + k * 10**8, points, time_s=time_s, seq=k + still, frame_id="lidar")
    return scans


def test_a_pause_and_a_sensor_that_is_lifted(simulate, tmp_path):
    walk = simulate("--world", "hall", "--carrier", "handheld", "--rate", 10, "--scans", 80, "--seed", 6, "--columns", 900, "--map-spacing", 1)
    scans = still_and_lifted(walk, tmp_path / "drive.bag", still=60, lifted_m=0.6)
    build(tmp_path / "drive.bag", "-o", tmp_path / "map")
    stamps_ns, T = given.read_tum(tmp_path / "map/poses.tum")
    truth = truth_of(walk.bag)
    expected = [truth[scan["stamp_ns"]][:3, 3] + 0.6 * np.clip((k - 30) / 10, 0, 1) * truth[scan["stamp_ns"]][:3, 2] for k, scan in enumerate(scans)]
    assert np.linalg.norm(T[:60, :3, 3] - T[30, :3, 3], axis=1).max() < 0.03
    known = {k: np.array([[0, 0, 0, place[0]], [0, 0, 0, place[1]], [0, 0, 0, place[2]]]) for k, place in enumerate(expected)}
    assert error_m(range(80), T[60:, :3, 3], known).max() < 0.12


def test_a_submap_that_others_hold_is_done():
    places = np.array([se3_at(0.5 * k) for k in range(10)])
    parts = [submaps.Submap(drive=k // 7, scans=[k], center=k, path_m=200.0 * k, length_m=25.0) for k in range(10)]
    known = [Loop((earlier, 6), earlier, 6, np.eye(4), np.eye(6), 1.0, False) for earlier in range(4)] * 2
    compared = []

    class Finder:
        def verify(self, earlier, later, guess, searched):
            compared.append((earlier, later))
            return []

        def search(self, earlier, later):
            return []

    loops.find(Finder(), parts, places, known, loops.Closing(), lambda part: None)
    assert [pair for pair in compared if pair[1] == 6] == [(4, 6), (3, 6)]  # the nearest two; six less the four that hold it


def se3_at(x):
    out = np.eye(4)
    out[0, 3] = x
    return out
