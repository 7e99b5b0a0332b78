"""Packets of Hesai: known points in, the same points out; and the driver's own cloud of a real Pandar40P."""
import math

import numpy as np
import pytest
from packet_maker import HESAI, angles_csv, hesai_packet, hesai_turn
from recording_maker import NS, T0, Messages, import_rows, only, read_bag, run_import

M = Messages()
NEBULA, PANDAR = "nebula_msgs/msg/NebulaPackets", "pandar_msgs/msg/PandarScan"


def _stamp(ns):
    return M.make("builtin_interfaces/msg/Time", sec=ns // NS, nanosec=ns % NS)


def _nebula(rows, stamp_ns=T0):
    packets = [M.make("nebula_msgs/msg/NebulaPacket", stamp=_stamp(ns), data=np.frombuffer(data, np.uint8)) for ns, data in rows]
    return M.make(NEBULA, header=M.header(stamp_ns, "hesai"), packets=packets)


def _pandar(rows):
    packets = [M.make("pandar_msgs/msg/PandarPacket", stamp=_stamp(ns), data=np.frombuffer(data.ljust(1500, b"\xee"), np.uint8), size=len(data))
               for ns, data in rows]
    return M.make(PANDAR, header=M.header(T0, "hesai"), packets=packets)


def _udp_frame(rows):
    packets = [M.make("hesai_ros_driver/msg/UdpPacket", data=np.frombuffer(data, np.uint8), size=len(data), stamp=_stamp(ns)) for ns, data in rows]
    return M.make("hesai_ros_driver/msg/UdpFrame", packets=packets)


def _angles(model, seed=1):
    rng = np.random.default_rng(seed)
    azimuths = rng.uniform(*getattr(model, "azimuths", (-9, 9)), model.channels)
    return np.round(rng.uniform(-25, 15, model.channels), 3), np.round(azimuths, 3)


def _expected(model, azimuths, distances, angles):
    """The points of a packet one by one, and the numbers of their blocks and channels."""
    points, places = [], []
    for block, row in enumerate(distances):
        for channel, distance in enumerate(row):
            if distance:
                e = math.radians(angles[0][channel])
                a = math.radians(azimuths[block] / 100 + angles[1][channel])
                flat = 0.004 * distance * math.cos(e)
                points.append((flat * math.sin(a), flat * math.cos(a), 0.004 * distance * math.sin(e)))
                places.append((block, channel))
    return np.array(points), np.array(places)


@pytest.mark.parametrize("name", list(HESAI))
def test_points_in_points_out(name, tmp_path, capsys):
    model, rng = HESAI[name], np.random.default_rng(2)
    angles = _angles(model)
    (tmp_path / "angles.csv").write_text(angles_csv(*angles))
    azimuths = [(35900 + 40 * block) % 36000 for block in range(model.blocks)]  # over the begin of the turn
    distances = rng.integers(0, 40000, (model.blocks, model.channels)) * (rng.random((model.blocks, model.channels)) < 0.8)
    packet = hesai_packet(name, azimuths, distances, 250_000, reflectivity=77)
    rows = [("/packets", NEBULA, T0, _nebula([(T0 + NS // 4, packet), (T0 + NS // 4, packet)]))]
    _, records = import_rows(capsys, tmp_path, rows, "--calibration", f"/packets={tmp_path / 'angles.csv'}")
    scan = only(records, "scan")[0]
    points, places = _expected(model, azimuths, distances, angles)
    assert scan["frame_id"] == "hesai" and scan["stamp_ns"] == T0 and (scan["intensity"] == 77).all()
    assert len(scan["points"]) == 2 * len(points)
    assert np.abs(scan["points"][:len(points)] - points).max() < 1e-4
    # The sensor is synchronised: its own clock tells the times, not that of the recording.
    assert np.abs(scan["time_s"][:len(points)] - 0.25).max() < 1.2e-3
    assert np.ptp(scan["time_s"]) > 2e-6 * model.blocks and len(places) == len(points)


# Manuals, times of points [us] since that of the packet: (block, channel) from 1, in the mode of one return.
TIMES = {
    "Pandar40P": {(10, 1): -28.58 - 42.22, (10, 40): -28.58 - 3.62, (1, 1): -28.58 - 9 * 55.56 - 42.22},
    "Pandar64": {(6, 1): -42.58 - 23.18, (1, 64): -42.58 - 5 * 55.56 - 12.748},
    "PandarQT": {(1, 1): 25.71 + 12.31, (4, 64): 25.71 + 3 * 166.67 + 146.45},
    "XT32": {(8, 1): 6.0, (1, 32): 5.632 - 350 + 0.368 + 31 * 1.512},
    "XT16": {(8, 16): 6.0 + 15 * 3.024},
    "XT32M": {(6, 17): 6.0, (5, 16): 6.0 - 50 + 15 * 2.888},
}


@pytest.mark.parametrize("name", list(TIMES))
def test_times(name, tmp_path, capsys):
    model = HESAI[name]
    (tmp_path / "angles.csv").write_text(angles_csv(*_angles(model)))
    for (block, channel), want_us in TIMES[name].items():
        distances = np.zeros((model.blocks, model.channels), int)
        distances[block - 1, channel - 1] = 1000
        packet = hesai_packet(name, [100 + 20 * k for k in range(model.blocks)], distances, 250_000)
        folder = tmp_path / f"{block}_{channel}"
        folder.mkdir()
        _, records = import_rows(capsys, folder, [("/packets", NEBULA, T0, _nebula([(T0 + NS // 4, packet)]))])
        assert only(records, "scan")[0]["time_s"][0] == pytest.approx(0.25 + want_us * 1e-6, abs=2e-8)


NOMINAL = {  # manuals: (channel from 1, elevation [deg], azimuth [deg])
    "Pandar40P": [(1, 15, -1.042), (7, 1.67, 3.125), (8, 1.33, -5.208), (40, -25, -1.042)],
    "Pandar64": [(1, 14.882, -1.042), (9, 1.522, 5.208), (64, -24.897, -1.042)],
    "PandarQT": [(1, -52.121, 8.736), (33, 0.725, 5.493), (64, 52.133, -7.892)],
    "XT16": [(1, 15, 0), (16, -15, 0)],
    "XT32": [(1, 15, 0), (32, -16, 0)],
    "XT32M": [(1, 19.5, 0), (32, -20.8, 0)],
    "QT128": [(1, -52.627, 10.108), (65, 7.91, 5.949), (128, 52.627, -10.108)],
    "OT128": [(1, 14.985, 0.186), (128, -24.765, 0.286)],
}


@pytest.mark.parametrize("name", list(NOMINAL))
def test_nominal_angles(name, tmp_path, capsys):
    model = HESAI[name]
    packet = hesai_packet(name, [0] * model.blocks, np.full((model.blocks, model.channels), 2500), 100_000)
    summary, records = import_rows(capsys, tmp_path, [("/packets", PANDAR, T0, _pandar([(T0, packet)]))])
    points = only(records, "scan")[0]["points"][:model.channels]
    assert any("nominal angles" in note for note in summary["notes"])
    elevation = np.degrees(np.arcsin(points[:, 2] / 10))
    azimuth = np.degrees(np.arctan2(points[:, 0], points[:, 1]))
    for channel, want_e, want_a in NOMINAL[name]:
        assert (elevation[channel - 1], azimuth[channel - 1]) == pytest.approx((want_e, want_a), abs=2e-3)


def test_two_returns(tmp_path, capsys):
    distances = np.zeros((8, 32), int)
    distances[0, :3], distances[1, :3] = (1000, 2000, 3000), (1000, 2500, 0)  # the same return twice; two returns; one
    packet = hesai_packet("XT32", [100, 100, 120, 120, 140, 140, 160, 160], distances, 100_000, mode=0x39)
    _, records = import_rows(capsys, tmp_path, [("/packets", NEBULA, T0, _nebula([(T0 + NS // 10, packet)]))])
    scan = only(records, "scan")[0]
    assert sorted(np.round(np.linalg.norm(scan["points"], axis=1), 3)) == [4, 8, 10, 12]
    # Both blocks of a firing have its time: three firings before that of the packet.
    assert np.sort(scan["time_s"])[0] == pytest.approx(0.1 - 150e-6 + 6e-6, abs=1e-7)


@pytest.mark.parametrize("late", [1_800_000_000 * NS, T0 + NS // 2])
def test_sensor_without_synchronisation(late, tmp_path, capsys):
    """A clock of its own: the first packet is where the recording has it, and the rest follows."""
    rows = [(late + us * 1000, packet) for us, packet in hesai_turn("XT32", begin_us=300_000)]
    message = _nebula(rows, late)
    _, records = import_rows(capsys, tmp_path, [("/packets", NEBULA, late, message)])
    scan = only(records, "scan")[0]
    first_s = (rows[0][0] - late) * 1e-9
    assert scan["time_s"].min() == pytest.approx(first_s - 344e-6, abs=1e-6) and np.ptp(scan["time_s"]) == pytest.approx(0.0976, abs=1e-3)


def test_frames_of_the_new_driver(tmp_path, capsys):
    """hesai_ros_driver/UdpFrame has no header: the first packet is the stamp."""
    rows = [(T0 + us * 1000, packet) for us, packet in hesai_turn("QT128")]
    _, records = import_rows(capsys, tmp_path, [("/lidar_packets", "hesai_ros_driver/msg/UdpFrame", T0 + NS, _udp_frame(rows))])
    scan = only(records, "scan")[0]
    assert scan["stamp_ns"] == rows[0][0] // 1000 * 1000 and scan["frame_id"] == "lidar" and len(scan["points"]) == 36 * 256


def test_ros1(tmp_path, capsys):
    """The driver of ROS 1 has its own package; the bag has the definitions."""
    from recording_maker import write_bag1
    make = Messages(True)
    packets = [make.make("hesai_lidar/msg/PandarPacket", stamp=make.make("builtin_interfaces/msg/Time", sec=T0 // NS, nanosec=us * 1000),
                         data=np.frombuffer(data.ljust(1500, b"\0"), np.uint8), size=len(data)) for us, data in hesai_turn("Pandar40P")]
    message = make.make("hesai_lidar/msg/PandarScan", header=make.header(T0, "pandar"), packets=packets)
    write_bag1(tmp_path / "drive.bag", [("/hesai/pandar_packets", "hesai_lidar/msg/PandarScan", T0, message)])
    run_import(capsys, tmp_path / "drive.bag", "-o", tmp_path / "out.bag")
    scan = only(read_bag(tmp_path / "out.bag"), "scan")[0]
    assert scan["frame_id"] == "pandar" and len(scan["points"]) == 36 * 400


def _error(capsys, tmp_path, packets, *arguments):
    done, _ = import_rows(capsys, tmp_path, [("/packets", NEBULA, T0, _nebula([(T0, packet) for packet in packets]))], *arguments, code=3)
    assert len(done.err.strip().split("\n")) == 1
    return done.err


def test_errors(tmp_path, capsys):
    good = next(hesai_turn("XT32"))[1]
    (tmp_path / "short.csv").write_text(angles_csv(np.zeros(31), np.zeros(31)))
    unknown = good[:6] + bytes([7]) + good[7:]
    cases = [
        ([unknown], "a Hesai that is not known here: 7 channels, 8 blocks, protocol 6.1"),
        ([good[:-1]], "a packet of 1075 bytes: those of a XT32 have 1076"),
        ([good[:9] + b"\0" + good[10:]], "whose unit of distances is 0"),
        ([next(hesai_turn("Pandar128"))[1]], "packets of a Pandar128 or OT128 need the angles of its channels: --calibration FILE"),
        ([next(hesai_turn("JT128"))[1]], "packets of a JT128 need the angles of its channels: --calibration FILE"),
        ([good, next(hesai_turn("XT16"))[1]], "packets of two sensors among one another, Hesai XT32 and Hesai XT16"),
        ([b"\xee\xff"], "packets of 2 bytes, of no sensor that is known here"),
    ]
    for number, (packets, why) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert why in _error(capsys, folder, packets)
    (tmp_path / "angles").mkdir()
    assert "the calibration has angles of 31 channels, a XT32 has 32" in _error(
        capsys, tmp_path / "angles", [good], "--calibration", tmp_path / "short.csv")
    done = run_import(capsys, tmp_path, "--calibration", tmp_path / "none.csv", code=2)
    assert "--calibration: " in done.err and "none.csv" in done.err


def test_a_damaged_packet_among_good_ones(tmp_path, capsys):
    rows = [(T0 + us * 1000, packet) for us, packet in hesai_turn("XT32")]
    rows[3] = rows[3][0], rows[3][1][:700]
    summary, records = import_rows(capsys, tmp_path, [("/packets", NEBULA, T0, _nebula(rows))])
    assert len(only(records, "scan")[0]["points"]) == 35 * 256 and any("damaged are left out" in note for note in summary["notes"])


@pytest.mark.parametrize("name", list(HESAI))
def test_packets_of_noise(name, tmp_path, capsys):
    """Right headers, bytes of noise behind them: whatever it becomes, the import goes on."""
    rng = np.random.default_rng(5)
    (tmp_path / "angles.csv").write_text(angles_csv(*_angles(HESAI[name])))
    good = next(hesai_turn(name))[1]
    rows = []
    for number in range(20):
        noise = good[:12] + bytes(rng.integers(0, 256, len(good) - 12, dtype=np.uint8))
        rows.append(("/packets", NEBULA, T0 + number, _nebula([(T0, noise)] * 3)))
    summary, _ = import_rows(capsys, tmp_path, rows, "--calibration", tmp_path / "angles.csv")
    assert summary["taken"]["scan"] + sum(summary["left"].values()) == 20


# The angles of the sensor of the recording, as Nebula has them: its elevations are 0.2 deg off the nominal ones.
SENSOR = """14.794 10.944 7.971 4.969 2.952 1.94 1.6 1.263 0.925 0.587 0.249 -0.088 -0.425 -0.763 -1.101 -1.439 -1.776 -2.116 -2.453
    -2.788 -3.128 -3.463 -3.8 -4.138 -4.473 -4.808 -5.145 -5.479 -5.814 -6.149 -7.151 -8.147 -9.148 -10.133 -11.12 -12.094 -13.062
    -14.018 -18.977 -24.985"""


def test_real_pandar40p(tmp_path, capsys, shared_data):
    """Decoded packets against the cloud that Autoware's Nebula made of them: each of its points is there."""
    from scipy.spatial import cKDTree

    from ndtd import read_cloud
    folder = shared_data / "ros_recordings" / "hesai_40p_ros2"
    azimuth = [-1.042] * 6 + [3.125, -5.208, -1.042] * 8 + [-1.042] * 10
    (tmp_path / "angles.csv").write_text(angles_csv([float(word) for word in SENSOR.split()], azimuth))
    recording = next(one for one in folder.iterdir() if one.is_dir())
    cloud = read_cloud(next(folder.glob("*.pcd")))["points"]
    for arguments, median_m, most_m in ((("--calibration", tmp_path / "angles.csv"), 1e-5, 1e-4), ((), 0.005, 0.05)):
        run_import(capsys, recording, "-o", tmp_path / "out.bag", "--force", *arguments)
        scans = only(read_bag(tmp_path / "out.bag"), "scan")
        assert len(scans) == 4 and all(0.09 < np.ptp(scan["time_s"]) < 0.11 for scan in scans)
        points = np.concatenate([scan["points"] for scan in scans[2:]])  # its cloud is cut elsewhere, and within these two
        distance_m = cKDTree(points).query(cloud)[0]
        assert np.median(distance_m) < median_m and np.quantile(distance_m, 0.99) < most_m
