"""Which topics are taken for what, where sensors are, and what motion becomes."""
import sys

import numpy as np
import pytest
from recording_maker import NS, T0, Messages, goes_on, import_rows, only, run_import, write_bag1, write_bag2

from ndtd.poses import matrix

M = Messages()
CLOUD, ODOM, IMU = "sensor_msgs/msg/PointCloud2", "nav_msgs/msg/Odometry", "sensor_msgs/msg/Imu"
TF = "tf2_msgs/msg/TFMessage"
QUARTER = (0.0, 0.0, 0.7071067811865476, 0.7071067811865476)  # 90 deg about z


def _points(count=50, seed=0):
    out = np.zeros(count, [("x", "<f4"), ("y", "<f4"), ("z", "<f4")])
    for name, column in zip("xyz", np.random.default_rng(seed).uniform(2, 9, (3, count))):
        out[name] = column
    return out


def _scans(topic="/points", frame="lidar", count=3):
    return [(topic, CLOUD, T0 + i * NS // 10, M.cloud(T0 + i * NS // 10, frame, _points(seed=i))) for i in range(count)]


def _by_time(*groups):
    return sorted([row for group in groups for row in group], key=lambda row: row[2])


def test_two_topics_of_scans_must_be_chosen(tmp_path, capsys):
    rows = _by_time(_scans("/top"), _scans("/left", "left"))
    done, _ = import_rows(capsys, tmp_path, rows, code=2)
    assert "--scan TOPIC" in done.err.strip().split("\n")[-1] and "/top" in done.err and "/left" in done.err and "15.0 Hz" in done.err
    summary, records = import_rows(capsys, tmp_path, rows, "--scan", "/top")
    assert summary["taken"] == {"scan": 3} and "--scan names others" in summary["topics_left"][0]["why"]
    summary, records = import_rows(capsys, tmp_path, rows, "--scan", "/top", "--scan", "/left")
    assert {scan["frame_id"] for scan in only(records, "scan")} == {"lidar", "left"}


def test_list(tmp_path, capsys):
    write_bag2(tmp_path / "r", _by_time(_scans(), [("/imu", IMU, T0, M.imu(T0, "imu", (0, 0, 0), (0, 0, 9.8)))]))
    done = run_import(capsys, tmp_path / "r", "--list")
    assert "/points" in done.out and "15.0 Hz" in done.out and "imu" in done.out
    assert not list(tmp_path.glob("*.bin"))
    write_bag2(tmp_path / "two", _by_time(_scans("/top"), _scans("/left")))
    assert run_import(capsys, tmp_path / "two", "--list").out.count("scan?") == 2
    write_bag2(tmp_path / "none", [("/imu", IMU, T0, M.imu(T0, "imu", (0, 0, 0), (0, 0, 9.8)))])
    assert "/imu" in run_import(capsys, tmp_path / "none", "--list").out


def test_unknown_and_unfit_topics(tmp_path, capsys):
    rows = _by_time(_scans(), [("/imu", IMU, T0, M.imu(T0, "imu", (0, 0, 0), (0, 0, 9.8)))])
    done, _ = import_rows(capsys, tmp_path, rows, "--scan", "/nothing", code=3)
    assert "there is no topic /nothing for --scan; there are: /points" in done.err
    (tmp_path / "poses.txt").write_text("")
    done, _ = import_rows(capsys, tmp_path, rows, "--truth", str(tmp_path / "poses.txt"), code=3)
    assert f"ndt-bag pack --scans DIR --times FILE --truth {tmp_path}/poses.txt" in done.err
    done, _ = import_rows(capsys, tmp_path, rows, "--scan", "/imu", code=3)
    assert "/imu (sensor_msgs/msg/Imu) cannot be --scan, but --imu" in done.err
    summary, _ = import_rows(capsys, tmp_path, rows, "--imu", "none")
    assert summary["taken"] == {"scan": 3}


def test_odometry_wins_over_twist(tmp_path, capsys):
    rows = _by_time(_scans(), [("/odom", ODOM, T0, M.odometry(T0, [1, 2, 3, 0, 0, 0, 1]))],
                    [("/twist", "geometry_msgs/msg/TwistStamped", T0, M.twist_stamped(T0, [1, 0, 0, 0, 0, 0.5]))])
    summary, records = import_rows(capsys, tmp_path, rows)
    assert "pose" in only(records, "odometry")[0] and summary["taken"]["odometry"] == 1
    _, records = import_rows(capsys, tmp_path, rows, "--odometry", "/twist")
    assert only(records, "odometry")[0]["twist"] == [1, 0, 0, 0, 0, 0.5] and "pose" not in only(records, "odometry")[0]


def test_odometry_in_the_map_is_not_odometry(tmp_path, capsys):
    """Autoware's kinematic_state is the answer of its localiser."""
    state = M.odometry(T0, [1, 2, 3, 0, 0, 0, 1])
    state.header.frame_id = "map"
    rows = _by_time(_scans(), [("/localization/kinematic_state", ODOM, T0, state)],
                    [("/twist", "geometry_msgs/msg/TwistStamped", T0, M.twist_stamped(T0, [1, 0, 0, 0, 0, 0.5]))])
    summary, records = import_rows(capsys, tmp_path, rows)
    assert only(records, "odometry")[0]["twist"] == [1, 0, 0, 0, 0, 0.5] and "localiser" in summary["topics_left"][0]["why"]
    _, records = import_rows(capsys, tmp_path, rows, "--truth", "/localization/kinematic_state")
    assert only(records, "truth")[0]["pose"] == [1, 2, 3, 0, 0, 0, 1]
    _, records = import_rows(capsys, tmp_path, rows, "--odometry", "/localization/kinematic_state")
    assert only(records, "odometry")[0]["pose"] == [1, 2, 3, 0, 0, 0, 1]


def test_two_imus_must_be_chosen(tmp_path, capsys):
    imu = [(f"/{name}/imu", IMU, T0, M.imu(T0, name, (0, 0, 0), (0, 0, 9.8))) for name in ("ouster", "xsens")]
    done, _ = import_rows(capsys, tmp_path, _by_time(_scans(), imu), code=2)
    assert "--imu TOPIC, or --imu none" in done.err


def test_no_scans(tmp_path, capsys):
    done, _ = import_rows(capsys, tmp_path, [("/imu", IMU, T0, M.imu(T0, "imu", (0, 0, 0), (0, 0, 9.8)))], code=3)
    assert "no topic of scans; there are: /imu (sensor_msgs/msg/Imu)" in done.err


CHAIN = [("base_link", "mast", (1, 0, 1, *QUARTER)), ("mast", "lidar", (0.5, 0, 0.25, 0, 0, 0, 1))]
T_BASE_LIDAR = matrix(np.array([1, 0, 1, *QUARTER])) @ matrix(np.array([0.5, 0, 0.25, 0, 0, 0, 1]))


@pytest.mark.parametrize("static", [True, False])
def test_chain_of_transforms(static, tmp_path, capsys):
    """tf_static, or tf as ROS 1's static_transform_publisher repeats it; odom -> base_link moves and is no chain."""
    topic = "/tf_static" if static else "/tf"
    tf = [(topic, TF, T0 + i, M.tf(T0, CHAIN)) for i in range(1 if static else 20)]
    moving = [("/tf", TF, T0 + 50 + i, M.tf(T0, [("odom", "base_link", (i, 0, 0, 0, 0, 0, 1))])) for i in range(5)]
    summary, records = import_rows(capsys, tmp_path, _by_time(tf, moving, _scans()))
    assert [kind for kind, _, _ in records] == ["transform", "scan", "scan", "scan"]
    transform = records[0][2]
    assert transform["frame_id"] == "lidar" and summary["base_frame"] == "base_link"
    assert np.abs(matrix(np.array(transform["pose"])) - T_BASE_LIDAR).max() < 1e-12


def test_base_frame_is_what_the_user_says(tmp_path, capsys):
    tf = [("/tf_static", TF, T0, M.tf(T0, CHAIN))]
    _, records = import_rows(capsys, tmp_path, _by_time(tf, _scans()), "--base-frame", "mast")
    assert only(records, "transform")[0]["pose"] == [0.5, 0, 0.25, 0, 0, 0, 1]
    done, _ = import_rows(capsys, tmp_path, [], "--base-frame", "chassis", code=3)
    assert "no transform names --base-frame chassis; there are: base_link, lidar, mast" in done.err


def test_no_frame_of_the_vehicle(tmp_path, capsys):
    tf = [("/tf_static", TF, T0, M.tf(T0, [("robot", "lidar", (1, 0, 0, 0, 0, 0, 1))]))]
    summary, records = import_rows(capsys, tmp_path, _by_time(tf, _scans()))
    assert not only(records, "transform") and any("--base-frame; there are: lidar, robot" in note for note in summary["notes"])


def test_two_sensors(tmp_path, capsys, run_program):
    import yaml
    tf = [("/tf_static", TF, T0, M.tf(T0, CHAIN + [("base_link", "left", (0, 1, 0, 0, 0, 0, 1))]))]
    import_rows(capsys, tmp_path, _by_time(tf, _scans("/top"), _scans("/left", "left")), "--scan", "/top", "--scan", "/left")
    frames = yaml.safe_load((tmp_path / "out.bag.yaml").read_text())["frames"]
    assert [row.split()[0] for row in frames["sensors"]] == ["lidar", "left"] or len(frames["sensors"]) == 2
    assert frames["merge_sensors"] is True
    run_program("ndtd", "--check-config", "-c", tmp_path / "out.bag.yaml", "--map", tmp_path / "out.bag")


def test_motion_becomes_that_of_the_base(tmp_path, capsys):
    """Odometry of a frame that is turned and off the base; an IMU that is turned."""
    turned = [("base_link", "imu", (0, 0, 0, *QUARTER)), ("base_link", "wheel", (2, 0, 0, *QUARTER))]
    tf = [("/tf_static", TF, T0, M.tf(T0, CHAIN + turned))]
    rows = _by_time(tf, _scans(), [("/imu", IMU, T0, M.imu(T0, "imu", (1, 0, 0), (0, 2, 9.8)))],
                    [("/odom", ODOM, T0, M.odometry(T0, [0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1], "wheel"))])
    summary, records = import_rows(capsys, tmp_path, rows)
    imu, odometry = only(records, "imu")[0], only(records, "odometry")[0]
    assert imu["angular_velocity"] == [1, 0, 0] and imu["frame_id"] == "imu"  # as it was recorded; ndtd turns it
    # The wheel stands and turns: the base, 2 m behind it, moves to its right.
    assert odometry["twist"] == pytest.approx([0, -2, 0, 0, 0, 1])
    T = matrix(np.array(odometry["pose"]))
    assert np.abs(T @ matrix(np.array([2, 0, 0, *QUARTER])) - np.eye(4)).max() < 1e-12
    assert any("of wheel are written as those of base_link" in note for note in summary["notes"])
    assert {t["frame_id"]: t["pose"] for t in only(records, "transform")}["imu"] == pytest.approx([0, 0, 0, *QUARTER])


def test_initial_poses(tmp_path, capsys):
    kind = "geometry_msgs/msg/PoseWithCovarianceStamped"
    covariance = np.diag([0.25] * 6).reshape(-1)
    poses = [("/initialpose", kind, T0 + i, M.initial_pose(T0 + i, [i, 0, 0, 0, 0, 0, 1], covariance)) for i in (1, 2)]
    summary, records = import_rows(capsys, tmp_path, _by_time(_scans(), poses))
    assert summary["taken"]["pose"] == 1 and only(records, "initial_pose")[0]["covariance"][0] == 0.25
    assert any("--every-pose" in why for why in summary["left"])
    summary, _ = import_rows(capsys, tmp_path, _by_time(_scans(), poses), "--every-pose")
    assert summary["taken"]["pose"] == 2


def test_gnss(tmp_path, capsys):
    kind = "sensor_msgs/msg/NavSatFix"
    fixes = [("/fix", kind, T0 + 1, M.fix(T0 + 1, 49.0, 8.4, 110.0)), ("/fix", kind, T0 + 2, M.fix(T0 + 2, 49.0, 8.4, 110.0, status=-1)),
             ("/fix", kind, T0 + 3, M.fix(T0 + 3, float("nan"), 8.4, 110.0))]
    summary, _ = import_rows(capsys, tmp_path, _by_time(_scans(), fixes))
    assert "gnss" not in summary["taken"] and any("--projector FILE or --utm" in why for why in summary["left"])
    pytest.importorskip("pyproj")
    summary, records = import_rows(capsys, tmp_path, _by_time(_scans(), fixes), "--utm")
    assert summary["taken"]["gnss"] == 1 and any("no fix" in why for why in summary["left"])
    fix = only(records, "gnss")[0]
    assert fix["position"] == pytest.approx([456123.5, 5427629.2, 110.0], abs=1500) and fix["deviation"] == [0.5] * 3
    info = tmp_path / "map_projector_info.yaml"
    info.write_text("projector_type: LocalCartesianUTM\nvertical_datum: WGS84\nmap_origin:\n  latitude: 49.0\n  longitude: 8.4\n"
                    "  altitude: 100.0\n")
    for argument in (info, tmp_path):
        _, records = import_rows(capsys, tmp_path, _by_time(_scans(), fixes), "--projector", argument)
        assert only(records, "gnss")[0]["position"][:2] == pytest.approx([0, 0], abs=1e-3)
    antenna = [("/tf_static", TF, T0, M.tf(T0, [("base_link", "gnss", (-0.3, 0, 1.9, 0, 0, 0, 1))]))]
    (tmp_path / "tf").mkdir()
    _, records = import_rows(capsys, tmp_path / "tf", _by_time(antenna, _scans(), fixes), "--utm")
    assert only(records, "transform")[0]["frame_id"] == only(records, "gnss")[0]["antenna"] == "gnss"


def test_compressions(tmp_path, capsys):
    """zstd and lz4 of bags, files, messages and chunks give the same bag."""
    rows, bags = _scans(), []
    recordings = [write_bag2(tmp_path / f"r_{mode}", rows, storage, mode) for storage, mode in
                  (("sqlite3", None), ("sqlite3", "file"), ("sqlite3", "message"), ("mcap", "storage"))]
    ros1 = [(topic, kind, ns, Messages(True).cloud(ns, "lidar", _points(seed=i))) for i, (topic, kind, ns, _) in enumerate(rows)]
    recordings += [write_bag1(tmp_path / f"{name}.bag", ros1, name) for name in ("LZ4", "BZ2")]
    recordings += [next((tmp_path / "r_storage").glob("*.mcap"))]
    for name in ("r_file", "r_message"):  # only their folders tell
        file = next(one for one in (tmp_path / name).iterdir() if one.suffix != ".yaml")
        assert f"name its folder, {tmp_path / name}" in run_import(capsys, file, "-o", tmp_path / "out.bag", code=3).err
    for recording in recordings:
        run_import(capsys, recording, "-o", tmp_path / "out.bag", "--force", "-q")
        bags.append((tmp_path / "out.bag").read_bytes())
    assert len(set(bags)) == 1


def test_parts_of_a_ros1_recording(tmp_path, capsys):
    make, paths = Messages(True), []
    for part in range(2):
        rows = [("/points", CLOUD, T0 + part * NS + i, make.cloud(T0 + part * NS + i, "lidar", _points())) for i in range(2)]
        paths.append(write_bag1(tmp_path / f"drive_{part}.bag", rows))
    summary = run_import(capsys, *paths, "-o", tmp_path / "out.bag", "--json").summary
    assert summary["taken"] == {"scan": 4}
    done = run_import(capsys, tmp_path, "-o", tmp_path / "x.bag", code=3)
    assert "recordings in it; name one" in done.err


def test_existing_bag_is_kept(tmp_path, capsys):
    import_rows(capsys, tmp_path, _scans())
    before = (tmp_path / "out.bag").read_bytes()
    done = run_import(capsys, tmp_path / "recording", "-o", tmp_path / "out.bag", code=2)
    assert "exists already; --force overwrites it" in done.err and (tmp_path / "out.bag").read_bytes() == before


def test_recording_is_not_overwritten(tmp_path, capsys):
    """--force overwrites a bag, not what is read, by whatever name; nor a folder."""
    folder = write_bag2(tmp_path / "recording", _scans(), "mcap")
    file = next(folder.glob("*.mcap"))
    (tmp_path / "link.bin").symlink_to(file)
    before = file.read_bytes()
    for recording, out in ((file, file), (folder, file), (folder, folder), (file, tmp_path / "link.bin")):
        done = run_import(capsys, recording, "-o", out, "--force", code=2)
        assert f"{out}: is an input" in done.err and file.read_bytes() == before
    (tmp_path / "other").mkdir()
    assert "is a folder" in run_import(capsys, file, "-o", tmp_path / "other", "--force", code=2).err
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.bin", "other", "recording"]


def test_a_bag_of_ndtd_is_no_recording(tmp_path, capsys):
    import_rows(capsys, tmp_path, _scans())
    bag = (tmp_path / "out.bag").rename(tmp_path / "drive.bag")
    assert f"a bag of ndtd already: ndtd --replay {bag}" in run_import(capsys, bag, code=3).err


def test_errors_of_files_are_one_line_without_numbers(tmp_path, capsys):
    folder = write_bag2(tmp_path / "recording", _scans())
    done = run_import(capsys, folder, "-o", tmp_path / "out.bag", "--projector", tmp_path / "nosuch.yaml", code=3)
    assert done.err == f"ndt-import: {tmp_path / 'nosuch.yaml'}: No such file or directory\n"


def test_mcap_without_its_package(tmp_path, capsys, monkeypatch):
    folder = write_bag2(tmp_path / "recording", _scans(), "mcap")
    for module in ("mcap", "mcap.reader", "mcap.stream_reader"):
        monkeypatch.setitem(sys.modules, module, None)
    done = run_import(capsys, next(folder.glob("*.mcap")), "-o", tmp_path / "out.bag", code=3)
    assert done.err == "ndt-import: mcap is not installed: pip install 'ndtd[ros]'\n"


def test_settings_of_the_user_stay(tmp_path, capsys):
    """OUT.yaml is written over only where an import made it."""
    settings = tmp_path / "out.bag.yaml"
    settings.write_text("mine: true\n")
    import_rows(capsys, tmp_path, _scans())
    assert settings.read_text() == "mine: true\n"


def _sector(yaw_deg, number, count=400):
    """A sensor that sees 120 deg around a direction."""
    rng = np.random.default_rng(number)
    angle, up = np.radians(yaw_deg + rng.uniform(-60, 60, count)), rng.uniform(-0.3, 0.2, count)
    out = np.zeros(count, [("x", "<f4"), ("y", "<f4"), ("z", "<f4")])
    out["x"], out["y"], out["z"] = 8 * np.cos(angle), 8 * np.sin(angle), 8 * up
    return out


@pytest.mark.parametrize("yaws,is_told", [((60, -120), True), ((60,), False), ((60, 70), False)])
def test_two_sensors_under_one_frame(yaws, is_told, tmp_path, capsys, monkeypatch):
    """One topic, no frame_id: scans of the left and the right by turns; a sensor that stands and sees the same again and again is none."""
    rows = []
    for number in range(40):
        ns = T0 + number * NS // 20
        rows.append(("/points", "sensor_msgs/msg/PointCloud2", ns, M.cloud(ns, "", _sector(yaws[number % len(yaws)], number))))
    write_bag2(tmp_path / "r", rows)
    goes_on(capsys, monkeypatch, 15, tmp_path / "r", tmp_path)
    summary = run_import(capsys, tmp_path / "r", "-o", tmp_path / "json.bag", "--json").summary
    told = [note for note in summary["notes"] if "two sensors in one topic" in note]
    assert told == (["every other scan of lidar looks elsewhere: two sensors in one topic whose frame_id does not tell which, or half turns; "
                     "ndtd takes them for one"] if is_told else [])


def test_a_sensor_that_stands(tmp_path, capsys):
    """The same scan each time."""
    rows = [("/points", "sensor_msgs/msg/PointCloud2", T0 + k * NS // 10, M.cloud(T0 + k * NS // 10, "lidar", _sector(0, 1))) for k in range(30)]
    summary, records = import_rows(capsys, tmp_path, rows)
    assert len(only(records, "scan")) == 30 and summary["left"] == {} and not any("scan" in note for note in summary["notes"])


def test_shuffled_stamps_are_told(tmp_path, capsys):
    rows = [("/points", "sensor_msgs/msg/PointCloud2", T0 + k * NS // 10, M.cloud(T0 + shuffled * NS // 10, "lidar", _sector(0, 1)))
            for k, shuffled in enumerate([0, 3, 1, 2, 4, 4])]
    summary, _ = import_rows(capsys, tmp_path, rows)
    assert summary["steps_back"] == 2 and "2 scans are not later than the scan before them" in summary["notes"]
