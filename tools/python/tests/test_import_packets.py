"""Packets of a Velodyne, and those that nothing decodes; the seldom types of motion."""
import numpy as np
import pytest
from packet_maker import velodyne_turn
from recording_maker import NS, T0, Messages, import_rows, only, read_bag, run_import, survives, write_bag2

pytest.importorskip("velodyne_decoder")
M = Messages()
RETURNS = 76 * 12 * 32


def _turn(package="velodyne", name="VelodyneScan", packet="VelodynePacket"):
    """Type and message of a turn."""
    kind, packets = f"{package}_msgs/msg/{name}", []
    for us, data in velodyne_turn():
        ns = T0 + us * 1000
        stamp = M.make("builtin_interfaces/msg/Time", sec=ns // NS, nanosec=ns % NS)
        packets.append(M.make(f"{package}_msgs/msg/{packet}", stamp=stamp, data=np.frombuffer(data, np.uint8)))
    return kind, M.make(kind, header=M.header(T0, "velodyne"), packets=packets)


@pytest.mark.parametrize("names", [(), ("nebula", "NebulaPackets", "NebulaPacket")])
def test_velodyne(names, tmp_path, capsys):
    kind, message = _turn(*names)
    _, records = import_rows(capsys, tmp_path, [("/packets", kind, T0, message)])
    scan = only(records, "scan")[0]
    assert len(scan["points"]) == RETURNS and scan["frame_id"] == "velodyne" and scan["stamp_ns"] == T0
    assert np.abs(np.linalg.norm(scan["points"], axis=1) - 10).max() < 0.1 and (scan["intensity"] == 77).all()
    assert -1e-3 < scan["time_s"].min() < 1e-3 and 0.095 < scan["time_s"].max() < 0.105


def test_clouds_win_over_packets(tmp_path, capsys):
    points = np.ones(5, [("x", "<f4"), ("y", "<f4"), ("z", "<f4")])
    kind, message = _turn()
    rows = [("/packets", kind, T0, message), ("/points", "sensor_msgs/msg/PointCloud2", T0, M.cloud(T0, "velodyne", points))]
    summary, records = import_rows(capsys, tmp_path, rows)
    assert len(only(records, "scan")[0]["points"]) == 5
    assert "sensor_msgs/msg/PointCloud2 is preferred; --scan takes it" in summary["topics_left"][0]["why"]
    _, records = import_rows(capsys, tmp_path, rows, "--scan", "/packets")
    assert len(only(records, "scan")[0]["points"]) == RETURNS


def test_packets_that_nothing_decodes(tmp_path, capsys):
    other = M.make("nebula_msgs/msg/NebulaPacket", stamp=M.header(T0, "").stamp, data=np.zeros(1262, np.uint8))
    message = M.make("nebula_msgs/msg/NebulaPackets", header=M.header(T0, "pandar"), packets=[other])
    done, _ = import_rows(capsys, tmp_path, [("/packets", "nebula_msgs/msg/NebulaPackets", T0, message)], code=3)
    assert "packets of 1262 bytes, of no sensor that is known here" in done.err


def test_damaged_packets(tmp_path, capsys):
    kind, message = _turn()
    for packet in message.packets:
        packet.data = np.random.default_rng(1).integers(0, 256, 1206, dtype=np.uint8)
    empty = M.make(kind, header=M.header(T0, "velodyne"), packets=[])
    write_bag2(tmp_path / "r", [("/packets", kind, T0, message), ("/packets", kind, T0 + 1, empty)])
    survives(capsys, tmp_path / "r")


def _cloud_row(ns=T0):
    points = np.ones(5, [("x", "<f4"), ("y", "<f4"), ("z", "<f4")])
    return "/points", "sensor_msgs/msg/PointCloud2", ns, M.cloud(ns, "lidar", points)


def test_kinds_of_motion(tmp_path, capsys):
    report = M.make("autoware_vehicle_msgs/msg/VelocityReport", header=M.header(T0, "base_link"), longitudinal_velocity=3.0,
                    lateral_velocity=0.5, heading_rate=0.25)
    twist = M.twist_stamped(T0, [1, 2, 3, 4, 5, 6])
    covariance = M.make("geometry_msgs/msg/TwistWithCovariance", twist=twist.twist, covariance=np.zeros(36))
    stamped = M.make("geometry_msgs/msg/TwistWithCovarianceStamped", header=M.header(T0, "base_link"), twist=covariance)
    pose = M.pose_stamped(T0, [1, 2, 3, 0, 0, 0, 1])
    rows = [_cloud_row(), ("/velocity", "autoware_vehicle_msgs/msg/VelocityReport", T0, report),
            ("/twist", "geometry_msgs/msg/TwistWithCovarianceStamped", T0, stamped), ("/pose", "geometry_msgs/msg/PoseStamped", T0, pose)]
    summary, records = import_rows(capsys, tmp_path, rows)
    assert only(records, "odometry")[0]["twist"] == [1, 2, 3, 4, 5, 6]
    assert any("only where it is named: --truth, --odometry, --pose" in topic["why"] for topic in summary["topics_left"])
    for topic, kind, name, want in (("/velocity", "odometry", "twist", [3, 0.5, 0, 0, 0, 0.25]),
                                    ("/pose", "odometry", "pose", [1, 2, 3, 0, 0, 0, 1]),
                                    ("/pose", "truth", "pose", [1, 2, 3, 0, 0, 0, 1])):
        _, records = import_rows(capsys, tmp_path, rows, f"--{kind}", topic)
        assert only(records, kind)[0][name] == want
    _, records = import_rows(capsys, tmp_path, rows, "--pose", "/pose")
    assert only(records, "initial_pose")[0]["pose"] == [1, 2, 3, 0, 0, 0, 1]


def test_default_name(tmp_path, capsys, monkeypatch):
    write_bag2(tmp_path / "drive", [_cloud_row()])
    monkeypatch.chdir(tmp_path)
    assert "written: " in run_import(capsys, "drive").out
    assert len(read_bag(tmp_path / "drive.bin")) == 1
