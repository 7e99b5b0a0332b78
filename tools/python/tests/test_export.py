"""ndt-export: what it writes is read back by the libraries of others with the same values; evo agrees with ndtd; wrong input."""
import importlib.metadata
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ndtd
from drive_bags import scans_of
from ndtd import _core, map_import, ndt_export
from ndtd.export import sensor_poses as frames
from ndtd.poses import compose, rotation
from ndtd.export.clouds import Thinned
from ndtd.export.result_lines import read_results

ROOT = Path(__file__).resolve().parents[3]
INFO = "projector_type: LocalCartesianUTM\nvertical_datum: WGS84\nmap_origin: {latitude: 49.0, longitude: 8.4}\n"


def run(*arguments):
    return ndt_export.main([str(argument) for argument in arguments])


class Run:
    """A replay: its drive, and what ndtd wrote."""

    def __init__(self, drive, folder, run_program, *options):
        self.drive, self.results, self.tum = drive, folder / "results.jsonl", folder / "poses.tum"
        run_program("ndtd", "--replay", drive.bag, "--map", drive.map, "--results", self.results, "--out", self.tum, "--summary",
                    folder / "summary.json", "--set", "preprocess.deskew=time", *options)
        self.summary = json.loads((folder / "summary.json").read_text())
        self.rows = [json.loads(line) for line in self.results.read_text().splitlines()]


@pytest.fixture(scope="module")
def replay(simulate, run_program, tmp_path_factory):
    drive = simulate("--seed", 5, "--scans", 41, "--beams", 16, "--columns", 600, "--map-spacing", 0.3)
    return Run(drive, tmp_path_factory.mktemp("replay"), run_program)


@pytest.fixture(scope="module")
def far_replay(simulate, run_program, tmp_path_factory):
    """At UTM coordinates."""
    drive = simulate("--world", "utm", "--scans", 15, "--beams", 16, "--columns", 600, "--map-spacing", 0.3)
    return Run(drive, tmp_path_factory.mktemp("far"), run_program)


# ---- text


def test_tum_is_the_file_of_ndtd(replay, tmp_path):
    assert run(replay.results, tmp_path / "a.tum", "-q") == 0
    wanted = [line for line in replay.tum.read_text().splitlines() if not line.startswith("#")]
    assert (tmp_path / "a.tum").read_text().splitlines() == wanted
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.jsonl").write_bytes(replay.results.read_bytes())
    for i, given in enumerate((replay.tum, tmp_path / "out")):  # a TUM file, and the folder of --output
        assert run(given, tmp_path / f"{i}.txt", "-q") == 0
        assert (tmp_path / f"{i}.txt").read_text() == (tmp_path / "a.tum").read_text()


def test_untrusted_poses_are_left_out_as_by_ndtd(simulate, run_program, tmp_path, capfd):
    """The drive leaves the map: later scans end refused or lost."""
    drive = simulate("--scans", 100, "--beams", 16, "--columns", 300, "--map-spacing", 0.3)
    cloud = _core.read_cloud(drive.map)
    points = cloud["points"] + cloud["origin"]
    run_program("ndtd", "--replay", drive.bag, "--map", drive.map, "--results", tmp_path / "whole.jsonl")
    begin = next(read_results(tmp_path / "whole.jsonl")).pose[:2]
    np.save(tmp_path / "cut.npy", points[np.linalg.norm(points[:, :2] - begin, axis=1) < 25.0])
    assert map_import.main(["-q", "--voxel", "0", "-o", str(tmp_path / "map"), str(tmp_path / "cut.npy")]) == 0
    one = Run(drive._replace(map=tmp_path / "map"), tmp_path, run_program, "--set", "recovery.enable=false")
    assert 0 < one.summary["out_omitted"] < 100
    assert run(one.results, tmp_path / "a.tum") == 0
    wanted = [line for line in one.tum.read_text().splitlines() if not line.startswith("#")]
    assert (tmp_path / "a.tum").read_text().splitlines() == wanted
    assert "without a trusted pose" in capfd.readouterr().out
    assert run(one.results, tmp_path / "all.tum", "--all", "-q") == 0
    assert len((tmp_path / "all.tum").read_text().splitlines()) == sum("pose" in row for row in one.rows) > len(wanted)
    assert run(one.results, tmp_path / "all.mcap", "-q") == 0


def test_kitti_and_euroc(replay, tmp_path):
    assert run(replay.results, tmp_path / "a.kitti", "-q") == run(replay.results, tmp_path / "a.csv", "-q") == 0
    matrices = np.loadtxt(tmp_path / "a.kitti").reshape(-1, 3, 4)
    table = [line.split(",") for line in (tmp_path / "a.csv").read_text().splitlines()]
    assert table[0][0] == "#timestamp [ns]" and len(matrices) == len(table) - 1 == len(replay.rows)
    for row, matrix, line in zip(replay.rows, matrices, table[1:]):
        x, y, z, qx, qy, qz, qw = row["pose"]
        assert int(line[0]) == row["stamp_ns"]
        assert [float(word) for word in line[1:]] == [x, y, z, qw, qx, qy, qz]
        assert np.allclose(matrix[:, 3], [x, y, z], atol=1e-12)
        assert np.allclose(matrix[:, :3] @ matrix[:, :3].T, np.eye(3), atol=1e-9)
        point = np.array([1.0, 2.0, 3.0])
        u, v = np.array([qx, qy, qz]), np.cross([qx, qy, qz], point)
        assert np.allclose(matrix[:, :3] @ point, point + 2 * (qw * v + np.cross(u, v)), atol=1e-9)  # Rodrigues


def test_evo_reads_kitti_and_euroc(replay, tmp_path):
    interface = pytest.importorskip("evo.tools.file_interface")
    for name in ("a.kitti", "a.csv", "a.tum"):
        assert run(replay.results, tmp_path / name, "-q") == 0
    kitti, euroc = interface.read_kitti_poses_file(str(tmp_path / "a.kitti")), interface.read_euroc_csv_trajectory(str(tmp_path / "a.csv"))
    tum = interface.read_tum_trajectory_file(str(tmp_path / "a.tum"))
    for one in (kitti, euroc):
        assert np.allclose(one.positions_xyz, tum.positions_xyz, atol=1e-9)
        assert np.allclose(np.abs((one.orientations_quat_wxyz * tum.orientations_quat_wxyz).sum(axis=1)), 1.0)
    assert np.allclose(euroc.timestamps, tum.timestamps)


def test_poses_of_the_sensor(replay, tmp_path):
    assert run(replay.results, tmp_path / "a.kitti", "--of", "sensor", "--T-base-sensor", "-1.2,0,1.8,0,0,1.5707963267948966", "-q") == 0
    assert run(replay.results, tmp_path / "b.kitti", "-q") == 0
    base = np.loadtxt(tmp_path / "b.kitti").reshape(-1, 3, 4)
    sensor = np.loadtxt(tmp_path / "a.kitti").reshape(-1, 3, 4)
    offset = np.array([[0.0, -1.0, 0.0, -1.2], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.8], [0.0, 0.0, 0.0, 1.0]])
    assert np.allclose(sensor, base @ offset, atol=1e-9)
    (tmp_path / "frames.yaml").write_text("frames:\n  T_base_sensor: [-1.2, 0, 1.8, 0, 0, 1.5707963267948966]\n")
    assert run(replay.results, tmp_path / "sensor.mcap", "--to", "ros2", "--of", "sensor", "-c", tmp_path / "frames.yaml", "-q") == 0
    assert run(replay.results, tmp_path / "c.kitti", "--of", "sensor", "-c", tmp_path / "frames.yaml", "-q") == 0
    assert (tmp_path / "c.kitti").read_text() == (tmp_path / "a.kitti").read_text()


def test_transforms():
    rng = np.random.default_rng(2)
    for _ in range(50):
        values = np.concatenate([rng.uniform(-5, 5, 3), rng.uniform(-3, 3, 3)])
        pose = frames.parse_transform(values)
        roll, pitch, yaw = values[3:]
        c, s = np.cos, np.sin
        Rx = np.array([[1, 0, 0], [0, c(roll), -s(roll)], [0, s(roll), c(roll)]])
        Ry = np.array([[c(pitch), 0, s(pitch)], [0, 1, 0], [-s(pitch), 0, c(pitch)]])
        Rz = np.array([[c(yaw), -s(yaw), 0], [s(yaw), c(yaw), 0], [0, 0, 1]])
        R = Rz @ Ry @ Rx
        assert np.allclose(rotation(pose), R)
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = R, values[:3]
        again = frames.parse_transform(matrix.reshape(-1))
        assert np.allclose(rotation(again), R) and np.allclose(again[:3], values[:3])
        other = frames.parse_transform(np.concatenate([rng.uniform(-5, 5, 3), rng.uniform(-3, 3, 3)]))
        product = compose(pose, other)
        assert np.allclose(rotation(product), R @ rotation(other))
        assert np.allclose(product[:3], R @ other[:3] + values[:3])


def test_covariance_and_twist_of_the_sensor():
    """Checks by small changes of the pose, and by the motion of a point."""
    rng = np.random.default_rng(4)
    pose, offset = (frames.parse_transform(np.concatenate([rng.uniform(-5, 5, 3), rng.uniform(-3, 3, 3)])) for _ in range(2))
    J = np.empty((6, 6))
    for k in range(6):
        small = np.zeros(6)
        small[k] = 1e-6
        turn = frames.parse_transform(np.concatenate([np.zeros(3), small[3:]]))
        turned_pose = compose(turn, np.concatenate([np.zeros(3), pose[3:]]))
        moved = compose(np.concatenate([pose[:3] + small[:3], turned_pose[3:]]), offset)
        J[:3, k] = (moved[:3] - compose(pose, offset)[:3]) / 1e-6
        J[3:, k] = small[3:] / 1e-6
    L = rng.normal(size=(6, 6))
    assert np.allclose(frames.move_covariance(L @ L.T, pose, offset), J @ L @ L.T @ J.T, atol=1e-3)
    twist, dt = rng.normal(size=6), 1e-6
    step = frames.parse_transform(np.concatenate([twist[:3] * dt, twist[3:] * dt]))
    before, after = compose(pose, offset), compose(compose(pose, step), offset)
    got = frames.move_twist(twist, offset)
    assert np.allclose(rotation(before).T @ (after[:3] - before[:3]) / dt, got[:3], atol=1e-4)
    turned = rotation(before).T @ rotation(after)
    assert np.allclose(np.array([turned[2, 1], turned[0, 2], turned[1, 0]]) / dt, got[3:], atol=1e-4)


def test_motion_is_undone():
    """A world point that a moving base sees at several times is one point after."""
    twist, world = np.array([8.0, 0.5, 0.0, 0.0, 0.1, 0.6]), np.array([20.0, 5.0, 1.0])
    times = np.linspace(-0.05, 0.05, 11)
    seen = []
    for t in times:
        steps, R, p = 2000, np.eye(3), np.zeros(3)
        for _ in range(steps):  # T(t) = exp(twist t), in small steps
            p = p + R @ twist[:3] * (t / steps)
            wx, wy, wz = twist[3:] * (t / steps)
            R = R @ (np.eye(3) + np.array([[0, -wz, wy], [wz, 0, -wx], [-wy, wx, 0]]))
        seen.append(np.linalg.solve(R, world - p))
    got = frames.undo_motion(np.array(seen), times, twist)
    assert np.abs(got - world).max() < 0.01
    assert np.abs(np.array(seen) - world).max() > 0.4


def test_geojson(replay, tmp_path):
    pytest.importorskip("pyproj")
    pytest.importorskip("yaml")
    from ndtd.georeference import Projector
    (tmp_path / "map_projector_info.yaml").write_text(INFO)
    shutil.copy(replay.drive.map, tmp_path / "map.pcd")
    assert run(replay.results, tmp_path / "a.geojson", "--map", tmp_path / "map.pcd", "-q") == 0
    document = json.loads((tmp_path / "a.geojson").read_text())
    assert document["type"] == "FeatureCollection" and len(document["features"]) == 1
    feature = document["features"][0]
    assert feature["geometry"]["type"] == "LineString" and len(feature["geometry"]["coordinates"]) == len(replay.rows)
    projector = Projector.from_file(tmp_path / "map_projector_info.yaml")
    for row, (longitude, latitude, altitude) in zip(replay.rows, feature["geometry"]["coordinates"]):
        assert np.allclose(projector.forward(latitude, longitude, altitude), row["pose"][:3], atol=2e-3)
    assert feature["properties"]["coordTimes"][0].startswith("2023-11-14T22:13:20.05")


def test_geojson_breaks_where_poses_are_missing(tmp_path, monkeypatch):
    pytest.importorskip("pyproj")
    from ndtd.export import pose_lines
    monkeypatch.setattr(pose_lines, "SEGMENT_POSES", 3)
    (tmp_path / "map_projector_info.yaml").write_text(INFO)
    rows = []
    for i, known in enumerate([1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1]):
        row = {"seq": i, "stamp_ns": i * 10**8, "outcome": "converged", "state": "tracking"}
        rows.append({**row, "pose": [float(i), 0, 0, 0, 0, 0, 1]} if known else {**row, "outcome": "lost", "state": "lost"})
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert run(tmp_path / "r.jsonl", tmp_path / "a.geojson", "--projector", tmp_path / "map_projector_info.yaml", "-q") == 0
    features = json.loads((tmp_path / "a.geojson").read_text())["features"]
    counts = [(one["geometry"]["type"], one["properties"]["poses"]) for one in features]
    assert counts == [("LineString", 2), ("LineString", 3), ("LineString", 3), ("LineString", 3), ("Point", 1)]


# ---- evo


def evo_ape(folder, relation):
    """Output of evo_ape about ours.tum against truth.tum."""
    entry = next(one for one in importlib.metadata.distribution("evo").entry_points if one.name == "evo_ape")
    module, function = entry.value.split(":")
    command = [sys.executable, "-c", f"import sys, {module}; sys.argv[0] = 'evo_ape'; sys.exit({module}.{function}())"]
    done = subprocess.run([*command, "tum", "truth.tum", "ours.tum", "--t_max_diff", "0.0001", "-r", relation], cwd=folder,
                          env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    return {words[0]: float(words[1]) for words in rows if len(words) == 2 and words[0] in ("max", "median", "mean", "rmse")}


def check_evo(replay, folder):
    msgpack = pytest.importorskip("msgpack")
    pytest.importorskip("evo")
    lines = []
    for record in ndtd.BagReader(replay.drive.bag):
        if record.type == "truth":
            message = msgpack.unpackb(record.payload)
            stamp = message["stamp_ns"]
            lines.append(f"{stamp // 10**9}.{stamp % 10**9:09d} " + " ".join(map(repr, message["pose"])))
    (folder / "truth.tum").write_text("\n".join(lines) + "\n")
    assert run(replay.results, folder / "ours.tum", "-q") == 0
    for relation, key in (("trans_part", "translation_error_m"), ("angle_deg", "rotation_error_deg")):
        errors = evo_ape(folder, relation)
        assert len(replay.rows) % 2 == 1  # the median is one of the errors for both
        for name in ("max", "median"):
            assert errors[name] == pytest.approx(replay.summary[key][name], abs=2e-6)


def test_evo_agrees_with_the_summary(replay, tmp_path):
    """evo_ape on our TUM output, against the truth in the bag: its errors are those that ndtd prints."""
    check_evo(replay, tmp_path)


def test_evo_agrees_on_kitti(shared_data, run_program, tmp_path):
    """The same on the real drive, odd scans against the map of the even ones, which goes through ndt-import map."""
    drive = shared_data / "kitti0005_lite"
    run_program("ndt-bag", "pack", "--scans", drive / "scans", "--times", drive / "times.txt", "--truth",
                drive / "poses_velo_lidar_refined.txt", "--format", "kitti", "--initial", "first", "--every", 2, "--offset", 1,
                "--out", tmp_path / "drive.bag")
    original = drive / "map_from_even_scans_0.20m.pcd"
    assert map_import.main(["-q", "-o", str(tmp_path / "tiles"), str(original)]) == 0
    p95_m = []
    for name in (tmp_path / "tiles", original):
        replay = Run(SimpleNamespace(bag=tmp_path / "drive.bag", map=name), tmp_path, run_program, "--set", "preprocess.deskew=azimuth_cw")
        assert replay.summary["outcomes"]["converged"] == 77
        p95_m.append(replay.summary["translation_error_m"]["p95"])
    assert p95_m[0] < p95_m[1] + 2e-3
    check_evo(replay, tmp_path)


# ---- Foxglove


def read_mcap(path, *factories):
    """Header, summary, decoded messages as (topic, schema name, log time, message); CRCs are checked."""
    reader_module = pytest.importorskip("mcap.reader")
    with open(path, "rb") as stream:
        reader = reader_module.make_reader(stream, validate_crcs=True, decoder_factories=factories)
        header, summary = reader.get_header(), reader.get_summary()
        messages = [(channel.topic, schema.name, message.log_time, decoded)
                    for schema, channel, message, decoded in reader.iter_decoded_messages()]
    assert summary.statistics.message_count == len(messages)
    assert sum(summary.statistics.channel_message_counts.values()) == len(messages)
    assert summary.chunk_indexes and all(index.message_index_offsets for index in summary.chunk_indexes)
    return header, summary, messages


def json_factory():
    from mcap.decoder import DecoderFactory

    class JsonFactory(DecoderFactory):
        def decoder_for(self, message_encoding, schema):
            return json.loads if message_encoding == "json" else None

    return JsonFactory()


def seconds_ns(stamp):
    return stamp.seconds * 10**9 + stamp.nanos


@pytest.fixture(scope="module")
def foxglove_file(replay, tmp_path_factory):
    pytest.importorskip("foxglove")
    protobuf = pytest.importorskip("mcap_protobuf.decoder")
    folder = tmp_path_factory.mktemp("foxglove")
    (folder / "map_projector_info.yaml").write_text(INFO)
    (folder / "c.yaml").write_text("frames: {sensors: ['lidar 0 0 0 0 0 0']}\n")
    path = folder / "drive.mcap"
    assert run(replay.results, path, "--bag", replay.drive.bag, "--map", replay.drive.map, "--map-points", 5000, "--projector",
               folder / "map_projector_info.yaml", "-c", folder / "c.yaml", "-q") == 0
    return (path, *read_mcap(path, protobuf.DecoderFactory(), json_factory()))


def test_foxglove_messages(replay, foxglove_file):
    _, _, summary, messages = foxglove_file
    by_topic = {}
    for topic, schema, log_ns, message in messages:
        by_topic.setdefault(topic, []).append((schema, log_ns, message))
    kinds = {topic: rows[0][0] for topic, rows in by_topic.items()}
    assert kinds == {"/pose": "foxglove.PoseInFrame", "/tf": "foxglove.FrameTransforms", "/path": "foxglove.PosesInFrame",
                     "/scan": "foxglove.PointCloud", "/map": "foxglove.PointCloud", "/fix": "foxglove.LocationFix",
                     "/log": "foxglove.Log", "/result": "ndtd.Result"}
    count = len(replay.rows)
    assert [len(by_topic[topic]) for topic in ("/pose", "/scan", "/fix", "/result")] == [count] * 4
    assert len(by_topic["/tf"]) == count + 1 and len(by_topic["/path"]) == len(by_topic["/map"]) == 1
    moving = [row for row in by_topic["/tf"] if row[2].transforms[0].child_frame_id == "base_link"]
    for row, (_, log_ns, pose), (_, _, tf) in zip(replay.rows, by_topic["/pose"], moving):
        at, turn = pose.pose.position, pose.pose.orientation
        assert [at.x, at.y, at.z, turn.x, turn.y, turn.z, turn.w] == row["pose"]
        assert log_ns == row["stamp_ns"] == seconds_ns(pose.timestamp) and pose.frame_id == "map"
        transform = tf.transforms[0]
        assert (transform.parent_frame_id, transform.translation.x, transform.rotation.w) == ("map", row["pose"][0], row["pose"][6])
    assert len(by_topic["/path"][0][2].poses) == count
    for row, (_, _, values) in zip(replay.rows, by_topic["/result"]):
        assert values["seq"] == row["seq"] and values["nvtl"] == row["nvtl"] and values["is_trusted"] is True
    assert "tracking" in by_topic["/log"][0][2].message


def test_foxglove_schemas_are_those_of_the_sdk(foxglove_file):
    """Every protobuf schema in the file is, byte by byte, that of foxglove-sdk."""
    _, _, summary, _ = foxglove_file
    try:
        from foxglove import messages
    except ImportError:
        from foxglove import schemas as messages
    seen = 0
    for schema in summary.schemas.values():
        if schema.encoding == "protobuf":
            known = getattr(messages, schema.name.split(".")[1]).get_schema()
            assert (schema.name, schema.data) == (known.name, known.data)
            seen += 1
        else:
            described = json.loads(schema.data)["properties"]
            assert schema.encoding == "jsonschema" and described["outcome"]["type"] == "string"
    assert seen == 6


def points_of(cloud):
    layout = [(field.name, "<f4") for field in cloud.fields]
    table = np.frombuffer(cloud.data, layout)
    return np.column_stack([table[name] for name in "xyz"]).astype(np.float64) + [cloud.pose.position.x, cloud.pose.position.y,
                                                                                  cloud.pose.position.z]


def test_scans_lie_on_the_map(replay, foxglove_file):
    """Scans in the map frame, motion undone: their points are near points of the map, and not so with a wrong pose."""
    _, _, _, messages = foxglove_file
    scans = [points_of(message) for topic, _, _, message in messages if topic == "/scan"]

    def part(points):
        return share_on_the_map(points, replay.drive.map)

    assert part(scans[20]) > 0.75
    assert part(scans[20] + [0.0, 0.0, 1.0]) < 0.6
    maps = [points_of(message) for topic, _, _, message in messages if topic == "/map"]
    assert 2500 < len(maps[0]) <= 5000 and part(maps[0]) == 1.0


def test_large_coordinates_keep_their_digits(far_replay, tmp_path):
    """float32 at UTM coordinates would be off by 25 cm."""
    pytest.importorskip("foxglove")
    protobuf = pytest.importorskip("mcap_protobuf.decoder")
    assert run(far_replay.results, tmp_path / "a.mcap", "--map", far_replay.drive.map, "--map-points", 100_000_000, "-q") == 0
    messages = read_mcap(tmp_path / "a.mcap", protobuf.DecoderFactory(), json_factory())[2]
    got = next(points_of(message) for topic, _, _, message in messages if topic == "/map")
    cloud = _core.read_cloud(far_replay.drive.map)
    wanted = cloud["points"] + cloud["origin"]
    assert np.abs(got - wanted).max() < 2e-4


# ---- where the sensors are

MOUNTS = {"lidar_left": [0.4, 0.9, 1.5, 0.3, 0.0, 1.2], "lidar_right": [-0.3, -0.8, 1.6, np.pi, 0.1, -0.7]}


@pytest.fixture(scope="module")
def mounted(replay, run_program, tmp_path_factory):
    """The drive with every other scan of another sensor, both displaced, as only the transforms of the bag tell."""
    folder = tmp_path_factory.mktemp("mounted")
    poses = {name: frames.parse_transform(numbers) for name, numbers in MOUNTS.items()}
    with ndtd.BagWriter(folder / "drive.bag", append=False) as bag:
        for name, pose in poses.items():
            bag.transform(0, name, pose)
        for record in ndtd.BagReader(replay.drive.bag):
            if record.type != "scan":
                continue
            scan = ndtd.decode_scan(record.payload)
            name = list(poses)[scan["seq"] % 2]
            points = (scan["points"] + scan["origin"] - poses[name][:3]) @ rotation(poses[name])
            bag.scan(scan["stamp_ns"], points.astype(np.float32), time_s=scan["time_s"], seq=scan["seq"], frame_id=name)
    start = ",".join(map(repr, replay.rows[0]["pose"]))
    one = Run(replay.drive._replace(bag=folder / "drive.bag"), folder, run_program, "--initial-pose", start)
    return SimpleNamespace(run=one, poses=poses, folder=folder)


def test_results_tell_where_the_sensor_is(mounted):
    for row in mounted.run.rows:
        name = list(MOUNTS)[row["seq"] % 2]
        assert row["sensor"] == name and row["T_base_sensor"] == mounted.poses[name].tolist()
    scans = list(ndtd.Replay(mounted.run.drive.bag, mounted.run.drive.map, options={"preprocess.deskew": "time"}, limit=2))
    assert [scan.sensor for scan in scans] == [row["sensor"] for row in mounted.run.rows[:2]]
    assert np.allclose(scans[0].T_base_sensor[:3, 3], mounted.run.rows[0]["T_base_sensor"][:3])


def test_poses_of_the_sensors_of_the_results(mounted, tmp_path):
    run_folder = tmp_path / "config.yaml"
    run_folder.write_text("frames:\n  T_base_sensor: [0, 0, 0, 0, 0, 0, 1]\n")  # as config.yaml of a replay has it
    assert run(mounted.run.results, tmp_path / "a.csv", "--of", "sensor", "-c", run_folder, "-q") == 0
    lines = (tmp_path / "a.csv").read_text().splitlines()[1:]
    assert len(lines) == len(mounted.run.rows)
    for row, line in zip(mounted.run.rows, lines):
        wanted = compose(np.array(row["pose"]), mounted.poses[row["sensor"]])
        assert np.allclose([float(word) for word in line.split(",")[1:4]], wanted[:3], atol=1e-9)
    given = "1,0,2,0,0,0"  # the command line wins
    assert run(mounted.run.results, tmp_path / "b.csv", "--of", "sensor", "--T-base-sensor", given, "-q") == 0
    first = [float(word) for word in (tmp_path / "b.csv").read_text().splitlines()[1].split(",")[1:4]]
    wanted = compose(np.array(mounted.run.rows[0]["pose"]), np.array([1.0, 0, 2, 0, 0, 0, 1]))
    assert np.allclose(first, wanted[:3], atol=1e-9)


def share_on_the_map(points, map_path):
    cloud = _core.read_cloud(map_path)
    cells = {tuple(cell) for cell in np.floor((cloud["points"] + cloud["origin"]) / 0.5).astype(int)}
    return np.mean([tuple(cell) in cells for cell in np.floor(points / 0.5).astype(int)])


def test_scans_of_displaced_sensors_lie_on_the_map(mounted, tmp_path):
    pytest.importorskip("rosbags.rosbag2")
    pytest.importorskip("foxglove")
    protobuf = pytest.importorskip("mcap_protobuf.decoder")
    one = mounted.run
    assert run(one.results, tmp_path / "ros", "--bag", one.drive.bag, "-q") == 0
    assert run(one.results, tmp_path / "fox.mcap", "--bag", one.drive.bag, "-q") == 0
    topics = ros_messages(tmp_path / "ros")
    for at in (20, 21):
        cloud = np.frombuffer(topics["/localization/scan"][at][2].data, "<f4").reshape(-1, 4)[:, :3]
        assert share_on_the_map(cloud, one.drive.map) > 0.75
    foxglove = read_mcap(tmp_path / "fox.mcap", protobuf.DecoderFactory(), json_factory())[2]
    clouds = [points_of(message) for topic, _, _, message in foxglove if topic == "/scan"]
    assert min(share_on_the_map(clouds[at], one.drive.map) for at in (20, 21)) > 0.75
    ros = {tf.child_frame_id: tf.transform for tf in topics["/tf_static"][0][2].transforms if tf.header.frame_id == "base_link"}
    fox = {tf.child_frame_id: tf for topic, _, _, message in foxglove if topic == "/tf" for tf in message.transforms
           if tf.parent_frame_id == "base_link"}
    assert set(ros) == set(fox) == set(MOUNTS) and len(topics["/tf_static"]) == 1
    for name, pose in mounted.poses.items():
        for where, turn in ((ros[name].translation, ros[name].rotation), (fox[name].translation, fox[name].rotation)):
            assert np.allclose([where.x, where.y, where.z, turn.x, turn.y, turn.z, turn.w], pose, atol=1e-12)


def test_a_sensor_that_is_mounted_anew(mounted, tmp_path):
    """The static transforms come again, all of them, where one has changed."""
    pytest.importorskip("rosbags.rosbag2")
    rows = [dict(row) for row in mounted.run.rows[:6]]
    for row in rows[4:]:
        row["T_base_sensor"] = [row["T_base_sensor"][0] + 0.5, *row["T_base_sensor"][1:]]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(tmp_path / "r.jsonl", tmp_path / "ros", "-q") == 0
    static = ros_messages(tmp_path / "ros")["/tf_static"]
    assert [stamp_ns for _, stamp_ns, _ in static] == [rows[at]["stamp_ns"] for at in (0, 4, 5)]
    assert all(len(message.transforms) == 2 for _, _, message in static)
    assert run(tmp_path / "r.jsonl", tmp_path / "of", "--of", "sensor", "-q") == 0
    assert "/tf_static" not in ros_messages(tmp_path / "of")


# ---- ROS 2


def ros_messages(path):
    highlevel = pytest.importorskip("rosbags.highlevel")
    from rosbags.typesys import Stores, get_typestore
    out = {}
    with highlevel.AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        for connection, stamp_ns, raw in reader.messages():
            out.setdefault(connection.topic, []).append((connection.msgtype, stamp_ns, reader.deserialize(raw, connection.msgtype)))
    return out


def ros_ns(header):
    return header.stamp.sec * 10**9 + header.stamp.nanosec


@pytest.mark.parametrize("storage", ("mcap", "sqlite3"))
def test_ros2_folder_is_read_back(replay, storage, tmp_path):
    pytest.importorskip("rosbags.rosbag2")
    (tmp_path / "map_projector_info.yaml").write_text(INFO)
    (tmp_path / "c.yaml").write_text("frames: {sensors: ['lidar 0 0 0 0 0 0']}\n")
    out = tmp_path / "drive"
    assert run(replay.results, out, "--bag", replay.drive.bag, "--map", replay.drive.map, "--storage", storage, "--projector",
               tmp_path / "map_projector_info.yaml", "-c", tmp_path / "c.yaml", "-q") == 0
    assert {one.name for one in out.iterdir()} == {"metadata.yaml", "drive.mcap" if storage == "mcap" else "drive.db3"}
    topics = ros_messages(out)
    assert {topic: (rows[0][0], len(rows)) for topic, rows in topics.items()} == {
        "/localization/pose_estimator/pose_with_covariance": ("geometry_msgs/msg/PoseWithCovarianceStamped", 41),
        "/localization/odometry": ("nav_msgs/msg/Odometry", 41), "/localization/path": ("nav_msgs/msg/Path", 1),
        "/tf": ("tf2_msgs/msg/TFMessage", 41), "/tf_static": ("tf2_msgs/msg/TFMessage", 1), "/map": ("sensor_msgs/msg/PointCloud2", 1),
        "/diagnostics": ("diagnostic_msgs/msg/DiagnosticArray", 41), "/localization/scan": ("sensor_msgs/msg/PointCloud2", 41),
        "/localization/fix": ("sensor_msgs/msg/NavSatFix", 41)}
    for at, row in enumerate(replay.rows):
        _, stamp_ns, pose = topics["/localization/pose_estimator/pose_with_covariance"][at]
        _, _, odometry = topics["/localization/odometry"][at]
        assert stamp_ns == ros_ns(pose.header) == row["stamp_ns"]
        for message in (pose, odometry):
            where, turn = message.pose.pose.position, message.pose.pose.orientation
            assert [where.x, where.y, where.z, turn.x, turn.y, turn.z, turn.w] == row["pose"]
            assert message.pose.covariance.tolist() == row["covariance"] and message.header.frame_id == "map"
        speed, rate = odometry.twist.twist.linear, odometry.twist.twist.angular
        assert [speed.x, speed.y, speed.z, rate.x, rate.y, rate.z] == row["twist"] and odometry.child_frame_id == "base_link"
        status = topics["/diagnostics"][at][2].status[0]
        values = {one.key: one.value for one in status.values}
        assert int.from_bytes(bytes([status.level]) if isinstance(status.level, int) else status.level, "little") == 0
        assert values["outcome"] == "converged" and float(values["nvtl"]) == pytest.approx(row["nvtl"], rel=1e-5)
    assert len(topics["/localization/path"][0][2].poses) == 41


def test_ros2_in_one_mcap(replay, tmp_path):
    """The mcap reader and the ROS 2 decoder of mcap, which use the definitions in the file, read the same."""
    decoder = pytest.importorskip("mcap_ros2.decoder")
    pytest.importorskip("rosbags.rosbag2")
    out = tmp_path / "drive.mcap"
    assert run(replay.results, out, "--to", "ros2", "--bag", replay.drive.bag, "-q") == 0
    header, summary, messages = read_mcap(out, decoder.DecoderFactory())
    assert header.profile == "ros2" and {schema.encoding for schema in summary.schemas.values()} == {"ros2msg"}
    poses = [(log_ns, message) for topic, _, log_ns, message in messages if topic == "/localization/pose_estimator/pose_with_covariance"]
    for row, (log_ns, message) in zip(replay.rows, poses):
        where = message.pose.pose.position
        assert (log_ns, [where.x, where.y, where.z]) == (row["stamp_ns"], row["pose"][:3])
    assert sorted(one.name for one in tmp_path.iterdir()) == ["drive.mcap"]


def test_ros2_large_coordinates(far_replay, tmp_path):
    pytest.importorskip("rosbags.rosbag2")
    assert run(far_replay.results, tmp_path / "far", "--bag", far_replay.drive.bag, "--map", far_replay.drive.map, "-q") == 0
    topics = ros_messages(tmp_path / "far")
    near = topics["/tf_static"][0][2].transforms[0]
    assert (near.header.frame_id, near.child_frame_id) == ("map", "map_near")
    cloud = topics["/map"][0][2]
    assert cloud.header.frame_id == "map_near" == topics["/localization/scan"][0][2].header.frame_id
    x = np.frombuffer(cloud.data, [("x", "<f4"), ("rest", "V12")])["x"] + near.transform.translation.x
    original = _core.read_cloud(far_replay.drive.map)
    low = (original["points"][:, 0] + original["origin"][0]).min()
    assert np.abs(x).max() > 3e5 and abs(x.min() - low) < 5.0


# ---- the machinery


def test_thinning_bounds_the_rows():
    thinned = Thinned(1, 100)
    for begin in range(0, 10_000, 37):
        thinned.add(np.arange(begin, min(begin + 37, 10_000), dtype=float)[:, None])
    rows = thinned.rows()[:, 0]
    assert 50 < len(rows) <= 100 and (np.diff(rows) == 128).all() and rows[0] == 0


def test_results_with_errors_and_gaps(tmp_path):
    rows = ['{"seq":0,"stamp_ns":5,"error":"covariance: not finite"}', "", "# text",
            '{"seq":1,"stamp_ns":6,"outcome":"no_guess","reason":"x","state":"initialising","nvtl":NaN}']
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    first, second = read_results(tmp_path / "a.jsonl")
    assert (first.pose, first.reason, second.outcome) == (None, "covariance: not finite", "no_guess")
    assert not first.is_trusted and not second.is_trusted


def test_a_cut_last_line_is_left(replay, tmp_path, capfd, refused):
    text = replay.results.read_text()
    (tmp_path / "r.jsonl").write_text(text[:-200])
    assert run(tmp_path / "r.jsonl", tmp_path / "a.tum") == 0
    assert "40 poses" in capfd.readouterr().out
    (tmp_path / "r.jsonl").write_text("{}\n" + text)
    assert "line 1: not a result" in refused(ndt_export.main, 3, tmp_path / "r.jsonl", tmp_path / "b.tum")


def test_stamps_of_tum_keep_their_nanoseconds(tmp_path):
    (tmp_path / "a.tum").write_text("1317042272.349000123 0 0 0 0 0 0 1\n-0.5 0 0 0 0 0 0 1\n")
    assert [one.stamp_ns for one in read_results(tmp_path / "a.tum")] == [1317042272349000123, -500000000]
    assert run(tmp_path / "a.tum", tmp_path / "b.tum", "-q") == 0
    assert (tmp_path / "b.tum").read_text().split()[0] == "1317042272.349000123"


def test_commands_of_the_pages():
    """Every command line of docs/maps.md and docs/export.md is one that the commands take."""
    seen = 0
    for page in ("maps.md", "export.md"):
        for line in (ROOT / "docs" / page).read_text().splitlines():
            words = shlex.split(line) if line.startswith("    ndt-") else []
            if words[:2] == ["ndt-import", "map"]:
                map_import.parser().parse_args(words[2:])
            elif words[:1] == ["ndt-export"]:
                ndt_export._format(ndt_export.parser().parse_args(words[1:]))
            seen += bool(words)
    assert seen >= 10


# ---- what is wrong


@pytest.mark.parametrize("text, line", [
    ("", "contains no result"), ("# only a comment\n", "contains no result"),
    ("1 2 3\n", "line 1: not a result of ndtd --results, nor TUM: 3 words instead of 8"),
    ("1 0 0 0 0 0 0 9\n", "line 1: not a result of ndtd --results, nor TUM: the quaternion does not have length 1"),
    ("{rubbish\n", "line 1: not a result"), ('{"a": 1}\n', "line 1: not a result of ndtd --results, nor TUM: 'stamp_ns' is missing"),
    ('{"seq": 1, "stamp_ns": 1, "outcome": "converged", "pose": [1, 2]}\n', "pose is not 7 numbers"),
    ('{"seq": 1, "stamp_ns": 1.5, "outcome": "converged"}\n', "seq and stamp_ns have to be integers"),
    ('{"seq": 1, "stamp_ns": 99999999999999999999, "outcome": "converged"}\n', "is beyond 4.6e18 ns"),
    ('{"seq": 1, "stamp_ns": 1, "outcome": "lost", "state": "lost"}\n', "no pose to write among 1 results"),
])
def test_wrong_results(text, line, tmp_path, refused):
    (tmp_path / "r.jsonl").write_text(text)
    assert line in refused(ndt_export.main, 3, tmp_path / "r.jsonl", tmp_path / "a.tum")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["r.jsonl"]


@pytest.mark.parametrize("name, options", [("a.mcap", []), ("a.mcap", ["--to", "ros2"]), ("a", [])])
def test_stamps_that_the_format_lacks(name, options, tmp_path, refused):
    pytest.importorskip("foxglove")
    pytest.importorskip("rosbags.rosbag2")
    row = {"seq": 1, "stamp_ns": -5, "outcome": "converged", "reason": "", "state": "tracking", "pose": [0, 0, 0, 0, 0, 0, 1]}
    (tmp_path / "r.jsonl").write_text(json.dumps(row) + "\n")
    assert "stamp -5 ns" in refused(ndt_export.main, 3, tmp_path / "r.jsonl", tmp_path / name, *options)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["r.jsonl"]


def test_wrong_command_lines(replay, tmp_path, refused):
    r = replay.results
    for arguments, line in (
            ([r, tmp_path / "a.xyz"], "the name does not tell the format"), ([r, tmp_path / "a.geojson"], "where is the map on the earth"),
            ([r, tmp_path / "a.tum", "--bag", "x"], "--bag: tum has no clouds"),
            ([replay.tum, tmp_path / "a.tum", "--of", "sensor"], "where is it?"),
            ([r, tmp_path / "a.tum", "--T-base-sensor", "1,2"], "--T-base-sensor: x,y,z,roll"), ([r, r, "--to", "tum"], "is an input"),
            ([r, tmp_path / "a.mcap", "--map-points", "0"], "at least 1")):
        assert line in refused(ndt_export.main, 2, *arguments)
    for arguments, line in (
            ([tmp_path / "none.jsonl", tmp_path / "a.tum"], "none.jsonl: No such file"),
            ([r, tmp_path / "none" / "a.tum"], f"ndt-export: {tmp_path}/none/a.tum: No such file or directory\n"),
            ([r, tmp_path / "a.mcap", "--bag", r], "results.jsonl"),
            ([r, tmp_path / "a.mcap", "--map", tmp_path / "x.ndtmap"], "no points"),
            ([r, tmp_path / "a.tum", "--projector", tmp_path / "none.yaml"], "none.yaml: No such file")):
        assert line in refused(ndt_export.main, 3, *arguments)
    (tmp_path / "a.tum").write_text("mine")
    assert "--force replaces it" in refused(ndt_export.main, 2, r, tmp_path / "a.tum") and (tmp_path / "a.tum").read_text() == "mine"
    (tmp_path / "home").mkdir()
    assert "is not replaced" in refused(ndt_export.main, 2, r, tmp_path / "home", "--force")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.tum", "home"]


def test_a_bag_is_no_results(replay, tmp_path, refused):
    text = refused(ndt_export.main, 3, replay.drive.bag, tmp_path / "a.tum")
    assert "drive.bag: no results, but a binary file; `ndtd --replay BAG --map MAP --results FILE`" in text


def _as_folder(bag, folder):
    """The scans of a bag as a folder of .bin with times.txt."""
    (folder / "scans").mkdir(parents=True)
    stamps = []
    for scan in scans_of(bag):
        assert scan["seq"] == len(stamps)
        points = (scan["points"] + scan["origin"]).astype(np.float32)
        np.column_stack([points, np.zeros(len(points), np.float32)]).tofile(folder / f"scans/{len(stamps):06d}.bin")
        stamps.append(f"{scan['stamp_ns'] // 10**9}.{scan['stamp_ns'] % 10**9:09d}")
    (folder / "times.txt").write_text("\n".join(stamps))
    return folder


def test_what_replay_accepts_is_a_bag(replay, tmp_path, refused):
    """--bag FOLDER: ndt-import reads it, and gets the options behind --."""
    foxglove = pytest.importorskip("mcap_protobuf.decoder")
    pytest.importorskip("foxglove")
    folder = _as_folder(replay.drive.bag, tmp_path / "drive")
    assert run(replay.results, tmp_path / "a.mcap", "--bag", folder, "-q", "--", "--columns", "4") == 0
    *_, messages = read_mcap(tmp_path / "a.mcap", foxglove.DecoderFactory(), json_factory())
    scans = [message for topic, _, _, message in messages if topic == "/scan"]
    assert len(scans) == len(replay.rows) and {scan.frame_id for scan in scans} == {"map"}
    short = tmp_path / "short.jsonl"  # the rest of the recording is not read
    short.write_text("\n".join(json.dumps(row) for row in replay.rows[:2]))
    assert run(short, tmp_path / "b.mcap", "--bag", folder, "-q") == 0
    assert "ndt-export: " in refused(ndt_export.main, 2, short, tmp_path / "c.mcap", "--bag", folder, "--", "--list")
    assert "--bag RECORDING" in refused(ndt_export.main, 2, short, tmp_path / "c.mcap", "--", "--columns", "4")
    assert "which a bag does not need" in refused(ndt_export.main, 3, short, tmp_path / "c.mcap", "--bag", replay.drive.bag, "--", "--columns", "4")
    text = refused(ndt_export.main, 3, short, tmp_path / "c.mcap", "--bag", folder, "--", "--scan", "/top")
    assert "there is no topic /top for --scan" in text and text.count("ndt-") == 1
    (tmp_path / "empty").mkdir()
    text = refused(ndt_export.main, 3, short, tmp_path / "c.mcap", "--bag", tmp_path / "empty")
    assert "no recording in it" in text and "options of ndt-import follow --" in text and not (tmp_path / "c.mcap").exists()


def test_bag_of_another_drive(replay, tmp_path, refused):
    pytest.importorskip("foxglove")
    other = tmp_path / "other.bag"
    with ndtd.BagWriter(other) as bag:
        bag.scan(77, np.zeros((3, 3), np.float32), seq=900)
    text = refused(ndt_export.main, 3, replay.results, tmp_path / "a.mcap", "--bag", other)
    assert "none of its scans" in text and not (tmp_path / "a.mcap").exists()


@pytest.mark.parametrize("module, name", [("foxglove", "a.mcap"), ("rerun", "a.rrd"), ("pyogrio", "a.gpkg"), ("foxglove", "a.tum")])
def test_a_full_disk_is_one_line(module, name, replay, tmp_path):
    """The limit of a file's size stands for it."""
    pytest.importorskip(module)
    (tmp_path / "map_projector_info.yaml").write_text(INFO)
    script = ("import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)); from ndtd import ndt_export; "
              "sys.exit(ndt_export.main(sys.argv[1:]))")
    clouds = ["--map", replay.drive.map] if name in ("a.mcap", "a.rrd") else []
    done = subprocess.run([sys.executable, "-c", script, str(replay.results), str(tmp_path / name), "--projector", str(tmp_path / "map_projector_info.yaml"),
                           *map(str, clouds)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 3 and "Traceback" not in done.stderr, done.stderr
    assert done.stderr.splitlines()[-1].startswith("ndt-export: ") and sorted(one.name for one in tmp_path.iterdir()) == ["map_projector_info.yaml"]


@pytest.mark.parametrize("module, name", [("foxglove", "a.mcap"), ("rosbags.rosbag2", "folder"), ("pyproj", "a.geojson"), ("pyogrio.raw", "a.kml")])
def test_missing_package_is_named(module, name, replay, tmp_path, refused, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "map_projector_info.yaml").write_text(INFO)
    text = refused(ndt_export.main, 3, replay.results, tmp_path / name, "--projector", tmp_path / "map_projector_info.yaml")
    assert "pip install 'ndtd[" in text


def test_an_import_ends_when_its_reader_fails(tmp_path, monkeypatch):
    """It would wait for ever for somebody who reads the rest."""
    from ndtd.export import piped_records

    class Failing:
        def __next__(self):
            raise MemoryError("of the reader")

    for at in range(3):
        np.random.default_rng(at).uniform(2, 9, (20_000, 4)).astype(np.float32).tofile(tmp_path / f"{at}.bin")
    records = piped_records.Records(tmp_path, ["--rate", "10", "--columns", "4"])
    assert next(records)
    records._records = Failing()
    with pytest.raises(MemoryError, match="of the reader"):
        next(records)
    assert records._import.poll() is not None
