"""Packets of a Velodyne, and those that nothing decodes; the seldom types of motion."""
import struct

import numpy as np
import pytest
from recording_maker import NS, T0, Messages, import_rows, only, read_bag, run_import

pytest.importorskip("velodyne_decoder")
M = Messages()
PACKETS, TURN_NS = 76, NS // 10


def _velodyne_packet(number):
    """A packet of a VLP-16 that sees a sphere of 10 m: 12 blocks of 32 returns."""
    out = b""
    for block in range(12):
        azimuth = int(36000 * (12 * number + block) / (12 * PACKETS)) % 36000
        out += struct.pack("<HH", 0xEEFF, azimuth) + struct.pack("<HB", 5000, 77) * 32
    return out + struct.pack("<IBB", int(1e5 * number / PACKETS), 0x37, 0x22)


def _packets():
    for number in range(PACKETS):
        ns = T0 + TURN_NS * number // PACKETS
        yield M.make("builtin_interfaces/msg/Time", sec=ns // NS, nanosec=ns % NS), np.frombuffer(_velodyne_packet(number), np.uint8)


def _velodyne_scan():
    packets = [M.make("velodyne_msgs/msg/VelodynePacket", stamp=stamp, data=data) for stamp, data in _packets()]
    return "velodyne_msgs/msg/VelodyneScan", M.make("velodyne_msgs/msg/VelodyneScan", header=M.header(T0, "velodyne"), packets=packets)


def _nebula_packets():
    packets = [M.make("nebula_msgs/msg/NebulaPacket", stamp=stamp, data=data) for stamp, data in _packets()]
    return "nebula_msgs/msg/NebulaPackets", M.make("nebula_msgs/msg/NebulaPackets", header=M.header(T0, "velodyne"), packets=packets)


@pytest.mark.parametrize("make", [_velodyne_scan, _nebula_packets])
def test_velodyne(make, tmp_path, capsys):
    kind, message = make()
    _, records = import_rows(capsys, tmp_path, [("/packets", kind, T0, message)])
    scan = only(records, "scan")[0]
    assert len(scan["points"]) == PACKETS * 12 * 32 and scan["frame_id"] == "velodyne" and scan["stamp_ns"] == T0
    assert np.abs(np.linalg.norm(scan["points"], axis=1) - 10).max() < 0.1 and (scan["intensity"] == 77).all()
    assert -1e-3 < scan["time_s"].min() < 1e-3 and 0.095 < scan["time_s"].max() < 0.105


def test_clouds_win_over_packets(tmp_path, capsys):
    points = np.ones(5, [("x", "<f4"), ("y", "<f4"), ("z", "<f4")])
    kind, message = _velodyne_scan()
    rows = [("/packets", kind, T0, message), ("/points", "sensor_msgs/msg/PointCloud2", T0, M.cloud(T0, "velodyne", points))]
    summary, records = import_rows(capsys, tmp_path, rows)
    assert len(only(records, "scan")[0]["points"]) == 5
    assert "sensor_msgs/msg/PointCloud2 is preferred; --scan takes it" in summary["topics_left"][0]["why"]
    _, records = import_rows(capsys, tmp_path, rows, "--scan", "/packets")
    assert len(only(records, "scan")[0]["points"]) == PACKETS * 12 * 32


def test_packets_that_nothing_decodes(tmp_path, capsys):
    other = M.make("nebula_msgs/msg/NebulaPacket", stamp=M.header(T0, "").stamp, data=np.zeros(1262, np.uint8))
    message = M.make("nebula_msgs/msg/NebulaPackets", header=M.header(T0, "pandar"), packets=[other])
    done, _ = import_rows(capsys, tmp_path, [("/packets", "nebula_msgs/msg/NebulaPackets", T0, message)], code=3)
    assert "packets of 1262 bytes, of no sensor that is known here" in done.err


def test_damaged_packets(tmp_path, capsys):
    kind, message = _velodyne_scan()
    for packet in message.packets:
        packet.data = np.random.default_rng(1).integers(0, 256, 1206, dtype=np.uint8)
    empty = M.make(kind, header=M.header(T0, "velodyne"), packets=[])
    from ndtd.ndt_import import main
    from recording_maker import write_bag2
    write_bag2(tmp_path / "r", [("/packets", kind, T0, message), ("/packets", kind, T0 + 1, empty)])
    assert main([str(tmp_path / "r"), "-o", str(tmp_path / "out.bag")]) in (0, 3)
    assert "Traceback" not in capsys.readouterr().err


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
    from recording_maker import write_bag2
    write_bag2(tmp_path / "drive", [_cloud_row()])
    monkeypatch.chdir(tmp_path)
    assert "written: " in run_import(capsys, "drive").out
    assert len(read_bag(tmp_path / "drive.bin")) == 1
