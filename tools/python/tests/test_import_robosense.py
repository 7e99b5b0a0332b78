"""Packets of RoboSense: known points in, the same points out, with angles from the sensor's own packets."""
import math

import numpy as np
import pytest
from packet_maker import ROBOSENSE, difop, e1_packet, m1_packet, m2_packet, pcap, rmc, robosense_packet, udp_frame
from recording_maker import NS, T0, Messages, import_rows, only, read_bag, run_import, survives, write_bag2

M = Messages()
PACKET, SCAN, INFO = "rslidar_msg/msg/RslidarPacket", "robosense_msgs/msg/RobosenseScan", "robosense_msgs/msg/RobosenseInfoPacket"
STEP = 20  # azimuth from block to block [0.01 deg]


def _firing_us(name):
    """Firing times of the returns of a block, as the manuals list them."""
    return {"RS-LiDAR-16": [2.8 * (k % 16) + 55.5 * (k // 16) for k in range(32)],
            "RS-LiDAR-32": [2.88 * k for k in range(15)] + [44.64] + [1.44 + 2.88 * k for k in range(15)] + [46.08],
            "Bpearl": [2.56 * (k % 8) + 25.68 * (k // 8 % 2) + 1.28 * (k // 16) for k in range(32)],
            "Bpearl 4": [1.668 * k for k in range(32)], "Helios": [1.73 * k for k in range(32)],
            "Helios 16P": [us + begin for begin in (0, 55.56) for us in HELIOS_16P_US],
            "Ruby (RS-128)": [3.236 * (k % 64 // 4) for k in range(128)],
            "Ruby Plus": [RUBY_PLUS_US[(k if k < 64 else k - 1) // 4] for k in range(127)] + [53.771],
            "Airy": [AIRY_US[255][k // 8] for k in range(96)]}[name]


HELIOS_16P_US = [0, 3.15, 6.3, 9.45, 13.26, 17.08, 20.56, 23.71, 26.53, 27.77, 31.49, 32.73, 36.46, 38.94, 41.42, 43.91]
RUBY_PLUS_US = [0, 1.13, 2.13, 3.26, 4.26, 5.38, 6.38, 7.51, 8.51, 10.01, 11.38, 13.31, 15.11, 17.04, 18.85, 21.14, 23.31, 25.61, 27.78, 30.07,
                32.24, 34.54, 36.7, 38.64, 40.44, 41.94, 43.3, 44.8, 46.17, 47.66, 49.03, 50.53]
AIRY_US = {0: [0, 5.712, 12.376, 19.04, 25.704, 33.32, 41.888, 50.456, 59.024, 70.448, 81.872, 93.296],  # by its mounting
           1: [0, 11.424, 22.848, 34.272, 45.696, 54.264, 62.832, 71.4, 79.016, 85.68, 92.344, 99.008],
           255: [0, 7.616, 16.184, 24.752, 33.32, 42.84, 52.36, 61.88, 71.4, 79.968, 88.536, 97.104]}


def _angles(name, seed=1):
    rng, lasers = np.random.default_rng(seed), ROBOSENSE[name].lasers
    if name == "RS-LiDAR-16":
        return np.array([-15, -13, -11.02, -9, -7, -5, -3, -1, 15, 13, 11, 9, 7.01, 5, 3, 1]), np.zeros(16)
    return np.round(rng.uniform(-20, 20, lasers), 2), np.round(rng.uniform(-8, 8, lasers), 2)


def _parts(name):
    """Blocks of one azimuth."""
    return getattr(ROBOSENSE[name], "parts", 1)


def _expected(name, azimuths, distances, angles, way=1, rate=None, all_us=None):
    model, points, times_us = ROBOSENSE[name], [], []
    rate, parts, all_us = rate or STEP / model.block_us, _parts(name), all_us or _firing_us(name)
    for block, row in enumerate(distances):
        for k, distance in enumerate(row, block % parts * model.returns):
            if distance:
                firing_us = all_us[k]
                turned = math.radians((azimuths[block] + rate * firing_us) / 100) * way
                vertical, level = math.radians(angles[0][k % model.lasers]), turned + math.radians(angles[1][k % model.lasers]) * way
                flat = distance * model.unit_m * math.cos(vertical)
                points.append((flat * math.cos(level) + model.lens[0] * math.cos(turned), -flat * math.sin(level) - model.lens[0] * math.sin(turned),
                               distance * model.unit_m * math.sin(vertical) + model.lens[1]))
                times_us.append(block // parts * model.block_us + firing_us)
    return np.array(points), np.array(times_us)


def _message(ns, data):
    return M.make(PACKET, header=M.header(ns, "rslidar"), is_difop=int(data[0] == 0xA5), is_frame_begin=0, data=np.frombuffer(data, np.uint8))


def _one(name, seed=3):
    """Azimuths and distances of a packet."""
    model, rng = ROBOSENSE[name], np.random.default_rng(seed)
    azimuths = [9000 + STEP * (block // _parts(name)) for block in range(model.blocks)]
    return azimuths, rng.integers(100, 12000 if name == "Airy" else 30000, (model.blocks, model.returns)) * (rng.random((model.blocks, model.returns)) < 0.8)


def _scan(capsys, tmp_path, name, packets, angles, *arguments, info=True, code=0, **flags):
    """The scan of a message of packets, with a topic that has the angles."""
    make = [M.make("robosense_msgs/msg/RobosensePacket", stamp=M.header(T0, "").stamp, data=np.frombuffer(one, np.uint8)) for one in packets]
    rows = [("/sensor/robosense_packets", SCAN, T0, M.make(SCAN, header=M.header(T0, "robosense"), packets=make))]
    if info:
        data = np.frombuffer(difop(name, *angles, **flags), np.uint8)
        packet = M.make("robosense_msgs/msg/RobosensePacket", stamp=M.header(T0, "").stamp, data=data)
        rows.append(("/sensor/robosense_info_packets", INFO, T0 + 1, M.make(INFO, lidar_model="", packet=packet)))
    done, records = import_rows(capsys, tmp_path, rows, *arguments, code=code)
    return done if code else only(records, "scan")[0]


@pytest.mark.parametrize("name", list(ROBOSENSE))
def test_points_in_points_out(name, tmp_path, capsys):
    (azimuths, distances), angles = _one(name), _angles(name)
    scan = _scan(capsys, tmp_path, name, [robosense_packet(name, azimuths, distances, 50_000, 77)], angles)
    points, times_us = _expected(name, azimuths, distances, angles)
    assert len(scan["points"]) == len(points) and scan["frame_id"] == "robosense" and (scan["intensity"] == 77).all()
    assert np.abs(scan["points"] - points).max() < 1e-4 * 60
    assert np.abs(scan["time_s"] - 0.05 - times_us * 1e-6).max() < 1e-7


def test_a_bpearl_that_turns_the_other_way(tmp_path, capsys):
    (azimuths, distances), angles = _one("Bpearl"), _angles("Bpearl")
    scan = _scan(capsys, tmp_path, "Bpearl", [robosense_packet("Bpearl", azimuths, distances, 250_000)], angles, reverse=True)
    assert np.abs(scan["points"] - _expected("Bpearl", azimuths, distances, angles, way=-1)[0]).max() < 6e-3


@pytest.mark.parametrize("mounting", [0, 1])
def test_an_airy_upright_or_on_its_side(mounting, tmp_path, capsys):
    """The order of its firings follows from how it is mounted, which its own packets tell."""
    (azimuths, distances), angles = _one("Airy"), _angles("Airy")
    flags = 0x4000 * np.random.default_rng(4).integers(0, 4, distances.shape) * (distances > 0)  # the upper bits tell what kind of echo it was
    scan = _scan(capsys, tmp_path, "Airy", [robosense_packet("Airy", azimuths, distances + flags, 0)], angles, mounting=mounting)
    points, times_us = _expected("Airy", azimuths, distances, angles, all_us=np.repeat(AIRY_US[mounting], 8).tolist())
    assert np.abs(scan["points"] - points).max() < 1e-4 * 60 and np.abs(scan["time_s"] - times_us * 1e-6).max() < 1e-7


def test_two_returns_of_an_airy(tmp_path, capsys):
    """Four blocks of one azimuth: both halves of the channels, first and second return."""
    distances = np.zeros((8, 48), int)
    distances[0, :2], distances[1, 0], distances[2, :2], distances[3, 0] = (1000, 2000), 3000, (1000, 2500), 3000
    packet = robosense_packet("Airy", [9000 + STEP * (block // 4) for block in range(8)], distances, 0)
    scan = _scan(capsys, tmp_path, "Airy", [packet], (np.zeros(96), np.zeros(96)))
    assert len(scan["points"]) == 4 and scan["time_s"].max() < 55e-6  # 1000 and 3000 came twice


def test_a_helios_of_older_firmware(tmp_path, capsys):
    """Its packets have the kind of the sensor one byte before, and no model."""
    (azimuths, distances), angles = _one("Helios"), _angles("Helios")
    packet = robosense_packet("Helios", azimuths, distances, 0)
    scan = _scan(capsys, tmp_path, "Helios", [packet[:30] + b"\x06\0\0" + packet[33:]], angles)
    assert len(scan["points"]) == (distances > 0).sum()


def test_two_returns(tmp_path, capsys):
    """Blocks of one azimuth are returns of one firing; an RS-LiDAR-16 has both in one block, and packets twice as often."""
    distances = np.zeros((12, 32), int)
    distances[0, :3], distances[1, :3] = (1000, 2000, 3000), (1000, 2500, 0)
    azimuths = [9000 + STEP * (block // 2) for block in range(12)]
    scan = _scan(capsys, tmp_path, "RS-LiDAR-32", [robosense_packet("RS-LiDAR-32", azimuths, distances, 0)], (np.zeros(32), np.zeros(32)))
    assert len(scan["points"]) == 4 and scan["time_s"].max() < 6e-6
    (tmp_path / "16").mkdir()
    distances = np.zeros((12, 32), int)
    distances[2, [0, 5, 16, 21]] = 1000, 2000, 1000, 2500
    azimuths = [9000 + STEP * block for block in range(12)]
    packets = [robosense_packet("RS-LiDAR-16", azimuths, distances, us) for us in (0, 666)]
    scan = _scan(capsys, tmp_path / "16", "RS-LiDAR-16", packets, _angles("RS-LiDAR-16"))
    assert len(scan["points"]) == 6
    assert np.sort(scan["time_s"])[:3] == pytest.approx([111e-6, 111e-6 + 14e-6, 111e-6 + 14e-6], abs=1e-7)


def _turn(name, number, packets=60, begin=0):
    model = ROBOSENSE[name]
    for at in range(packets):
        azimuths = [(begin + 36000 * (at * model.blocks + block) // (packets * model.blocks)) % 36000 for block in range(model.blocks)]
        us = 100_000 * number + 100_000 * at // packets
        yield us, robosense_packet(name, azimuths, np.full((model.blocks, model.returns), 4000), us)


def test_packets_one_by_one(tmp_path, capsys):
    """rslidar_msg: the packet with the angles comes late, and counts for all turns; the last turn has no end."""
    name = "Helios"
    rows = [("/rslidar_packets", PACKET, T0 + us * 1000, _message(T0 + us * 1000, data)) for number in range(4) for us, data in _turn(name, number)]
    rows.insert(100, ("/rslidar_packets", PACKET, rows[99][2], _message(T0, difop(name, *_angles(name)))))
    summary, records = import_rows(capsys, tmp_path, rows)
    scans = only(records, "scan")
    assert [len(scan["points"]) for scan in scans] == [60 * 12 * 32] * 3 and summary["left"] == {}
    assert [scan["stamp_ns"] - T0 for scan in scans] == [0, NS // 10, NS // 5] and scans[0]["frame_id"] == "rslidar"


def test_capture(tmp_path, capsys):
    name = "RS-LiDAR-32"
    rows = [(T0 + us * 1000, udp_frame(b"\xc0\xa8\x01\xc8", 6699, data)) for number in range(3) for us, data in _turn(name, number)]
    for at, second in ((36, 20), (100, 20), (180, 21)):
        info = difop(name, *_angles(name), sentence=rmc(f"2213{second}"))
        rows.insert(at, (rows[at][0], udp_frame(b"\xc0\xa8\x01\xc8", 7788, info)))
    (tmp_path / "drive.pcap").write_bytes(pcap(rows))
    summary = run_import(capsys, tmp_path / "drive.pcap", "-o", tmp_path / "out.bag", "--utm", "--json").summary
    scans = only(read_bag(tmp_path / "out.bag"), "scan")
    assert [len(scan["points"]) for scan in scans] == [60 * 12 * 32] * 3
    assert summary["taken"] == {"scan": 3, "gnss": 2}  # positions come with the angles
    (tmp_path / "drive.pcap").write_bytes(pcap([(ns, frame) for ns, frame in rows if b"$GPRMC" not in frame]
                                               + [(rows[-1][0], udp_frame(b"\xc0\xa8\x01\xc8", 7788, difop(name, *_angles(name))))]))
    summary = run_import(capsys, tmp_path / "drive.pcap", "-o", tmp_path / "out.bag", "--force", "--json").summary
    assert summary["taken"] == {"scan": 3} and summary["topics_left"][0]["why"] == "the angles of a RoboSense"


def test_m1(tmp_path, capsys):
    rng, rows, expected = np.random.default_rng(7), [], []
    for frame in range(3):
        for number in range(1, 631, 9):
            us = 100_000 * frame + 100_000 * number // 631
            points = [[(int(rng.integers(1, 30000)), int(rng.integers(-1250, 1250)), int(rng.integers(-6000, 6000))) for _ in range(5)] for _ in range(25)]
            rows.append(("/rslidar_packets", PACKET, T0 + us * 1000, _message(T0 + us * 1000, m1_packet(number, us, points))))
            expected += [(frame, us + 2 * block, *(0.005 * d * np.array([
                math.cos(math.radians(p / 100)) * math.cos(math.radians(y / 100)), math.cos(math.radians(p / 100)) * math.sin(math.radians(y / 100)),
                math.sin(math.radians(p / 100))]))) for block, row in enumerate(points) for d, p, y in row]
    _check_solid(capsys, tmp_path, rows, np.array(expected))


def test_m2(tmp_path, capsys):
    rng, rows, expected = np.random.default_rng(9), [], []
    for frame in range(3):
        for number in range(1, 1261, 18):
            us = 100_000 * frame + 100_000 * number // 1261
            points = [[(int(rng.integers(1, 30000)), *map(int, rng.integers(-32768, 32767, 3))) for _ in range(5)] for _ in range(25)]
            rows.append(("/rslidar_packets", PACKET, T0 + us * 1000, _message(T0 + us * 1000, m2_packet(number, us, points))))
            expected += [(frame, us + 2 * block, *(0.005 * d / 32768 * np.array([x, y, z]))) for block, row in enumerate(points) for d, x, y, z in row]
    _check_solid(capsys, tmp_path, rows, np.array(expected))


def test_e1(tmp_path, capsys):
    rng, rows, expected = np.random.default_rng(8), [], []
    for frame in range(3):
        for number in range(1, 289, 9):
            us = 100_000 * frame + 100_000 * number // 289
            points = [(int(rng.integers(1, 30000)), *map(int, rng.integers(-32768, 32767, 3))) for _ in range(96)]
            rows.append(("/rslidar_packets", PACKET, T0 + us * 1000, _message(T0 + us * 1000, e1_packet(number, us, points))))
            expected += [(frame, us + 3 * at, *(0.005 * d / 32768 * np.array([x, y, z]))) for at, (d, x, y, z) in enumerate(points)]
    _check_solid(capsys, tmp_path, rows, np.array(expected))


def _check_solid(capsys, tmp_path, rows, expected):
    summary, records = import_rows(capsys, tmp_path, rows)
    scans = only(records, "scan")
    assert len(scans) == 2 and summary["left"] == {}  # the third frame has no end
    for frame, scan in enumerate(scans):
        want = expected[expected[:, 0] == frame]
        assert np.abs(scan["points"] - want[:, 2:]).max() < 1e-4 * 150
        assert np.abs(scan["time_s"] * 1e6 + (scan["stamp_ns"] - T0) / 1000 - want[:, 1]).max() < 0.01


def test_errors(tmp_path, capsys):
    good = robosense_packet("RS-LiDAR-32", *_one("RS-LiDAR-32"), 0)
    zeros = np.zeros(32), np.zeros(32)
    (tmp_path / "good.csv").write_text("1.5,0\n" * 32)
    (tmp_path / "short.csv").write_text("1.5,0\n" * 31)
    (tmp_path / "none.csv").write_text("a,b\n")

    def error(number, packet, *arguments, info=False):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = _scan(capsys, folder, "RS-LiDAR-32", [packet], zeros, *arguments, info=info, code=3)
        assert len(done.err.strip().split("\n")) == 1
        return done.err
    assert "need the angles of its channels: record its DIFOP packets, too, or --calibration FILE" in error(0, good)
    assert "has angles of 31 channels, a RoboSense RS-LiDAR-32 has 32" in error(1, good, "--calibration", tmp_path / "short.csv")
    assert "no CSV of vertical and horizontal angles" in error(2, good, "--calibration", tmp_path / "none.csv")
    assert "a RoboSense that is not known here: model 09 00 00" in error(3, good[:30] + b"\x09" + good[31:], info=True)
    helios = bytearray(robosense_packet("Helios", *_one("Helios"), 0))
    helios[30:33] = b"\x07\0\0"  # a Helios-1615 or a 16P of older firmware, which do not say which
    assert "a RoboSense that is not known here: model 07 00 00" in error(4, bytes(helios), info=True)
    (tmp_path / "csv").mkdir()
    assert len(_scan(capsys, tmp_path / "csv", "RS-LiDAR-32", [good], zeros, "--calibration", tmp_path / "good.csv", info=False)["points"]) > 300


@pytest.mark.parametrize("name", [*ROBOSENSE, "M1", "M2", "E1"])
def test_packets_of_noise(name, tmp_path, capsys):
    """Right headers, bytes of noise behind them and in the packet with the angles: whatever it becomes, the import goes on."""
    rng, rows = np.random.default_rng(5), []
    size = {"M1": 1210, "M2": 1342, "E1": 1200}.get(name, 1248)
    good, kept = bytes.fromhex("55aa5aa5"), set(range(4))
    if name in ROBOSENSE:
        good, model = robosense_packet(name, *_one(name), 0), ROBOSENSE[name]
        head, block = 80 if model.lasers == 128 else 42, 4 + 3 * model.returns
        kept = {*range(head), *(head + block * number + at for number in range(model.blocks) for at in range(2))}
    for number in range(200):
        noise = bytes(rng.integers(0, 256, size, dtype=np.uint8))
        data = bytes(good[at] if at in kept else byte for at, byte in enumerate(noise))
        data = bytes.fromhex("a5ff005a11115555") + noise[8:] if number == 150 else data
        rows.append(("/rslidar_packets", PACKET, T0 + number * NS // 100, _message(T0 + number, data[:rng.integers(1, size)] if number % 20 == 7 else data)))
    write_bag2(tmp_path / "r", rows)
    survives(capsys, tmp_path / "r")
