"""Packets of a Hesai AT128, whose correction file tells the fields of its mirrors: known points in, the same points out."""
import math

import numpy as np
import pytest
from packet_maker import FIELDS, at128_correction, at128_packet, pcap, udp_frame
from recording_maker import NS, T0, Messages, import_rows, only, read_bag, run_import

M = Messages()
NEBULA = "nebula_msgs/msg/NebulaPackets"
DEG = 25600
CIRCLE = 360 * DEG


def _nebula(rows):
    stamp = M.make("builtin_interfaces/msg/Time", sec=T0 // NS, nanosec=0)
    packets = [M.make("nebula_msgs/msg/NebulaPacket", stamp=stamp, data=np.frombuffer(data, np.uint8)) for data in rows]
    return M.make(NEBULA, header=M.header(T0, "hesai"), packets=packets)


def _calibration(seed=1):
    """Azimuth and elevation of each channel [1 / 25600 deg], and adjustments of both [0.01 deg]: even numbers, as the unit is 2."""
    rng = np.random.default_rng(seed)
    angles = np.stack([rng.integers(-2 * DEG, 2 * DEG, 128), rng.integers(-12 * DEG, 12 * DEG, 128)])
    return 2 * (angles // 2), 2 * rng.integers(-40, 40, (2, 128, 180))


def _direction(encoder, begin, channel, angles, adjust):
    """The azimuth from the begin of the field, twice as fast as the mirror, and the elevation [rad]; adjustments from node to node."""
    at = encoder / DEG / 2
    node = int(at)
    azimuth, elevation = ((1 - at + node) * table[channel][node] + (at - node) * table[channel][(node + 1) % 180] for table in adjust)
    azimuth_deg = 2 * ((encoder - begin) % CIRCLE) / DEG - angles[0][channel] / DEG + azimuth / 100
    return math.radians(azimuth_deg), math.radians(angles[1][channel] / DEG + elevation / 100)


def _expected(encoders, begins, distances, calibration):
    out = []
    for encoder, begin, row in zip(encoders, begins, distances):
        for channel in np.flatnonzero(row):
            azimuth, elevation = _direction(encoder, begin, channel, *calibration)
            flat = 0.004 * row[channel] * math.cos(elevation)
            out.append((flat * math.sin(azimuth), flat * math.cos(azimuth), 0.004 * row[channel] * math.sin(elevation)))
    return np.array(out)


@pytest.fixture
def dat(tmp_path):
    (tmp_path / "at128.dat").write_bytes(b"\0\0" + at128_correction(*_calibration()))  # the sensor's answer may have bytes before it
    return tmp_path / "at128.dat"


@pytest.mark.parametrize("sequence", [True, False])
def test_points_in_points_out(sequence, dat, tmp_path, capsys):
    rng = np.random.default_rng(2)
    # Azimuths of each field; the third goes on behind 0 deg, where the last adjustment and the first are neighbours.
    encoders = [(70 * DEG + 77, 100 * DEG), (200 * DEG, 201 * DEG + 5), (359 * DEG + 9001, 10 * DEG + 3)]
    distances = rng.integers(1, 40000, (3, 2, 128)) * (rng.random((3, 2, 128)) < 0.8)
    packets = [at128_packet(pair, rows, 250_000, reflectivity=77, sequence=sequence) for pair, rows in zip(encoders, distances)]
    _, records = import_rows(capsys, tmp_path, [("/packets", NEBULA, T0, _nebula(packets))], "--calibration", dat)
    scan = only(records, "scan")[0]
    want = np.concatenate([_expected(pair, [field[0]] * 2, rows, _calibration()) for pair, field, rows in zip(encoders, FIELDS, distances)])
    assert len(scan["points"]) == len(want) and (scan["intensity"] == 77).all()
    assert np.abs(scan["points"] - want).max() < 1e-4


def test_times(dat, tmp_path, capsys):
    """Channels 1 and 31 fire 0 and 8.264 us into their block; blocks are 41.666 us apart, and the last begins 50.915 us before the packet's time."""
    distances = np.zeros((2, 128), int)
    distances[:, [0, 30]] = 1000
    for mode, want_us in ((0x37, [-92.581, -84.317, -50.915, -42.651]), (0x39, [-50.915, -42.651])):
        folder = tmp_path / str(mode)
        folder.mkdir()
        packet = at128_packet([70 * DEG, 70 * DEG + 2500 * (mode == 0x37)], distances, 0, mode=mode)
        _, records = import_rows(capsys, folder, [("/packets", NEBULA, T0, _nebula([packet]))], "--calibration", dat)
        assert only(records, "scan")[0]["time_s"] * 1e6 == pytest.approx(want_us, abs=0.1)


def test_what_is_outside_of_the_fields_is_left(dat, tmp_path, capsys):
    packet = at128_packet([167 * DEG, 180 * DEG], np.full((2, 128), 1000), 0)
    _, records = import_rows(capsys, tmp_path, [("/packets", NEBULA, T0, _nebula([packet]))], "--calibration", dat)
    assert len(only(records, "scan")[0]["points"]) == 128


def test_a_field_is_a_scan(dat, tmp_path, capsys):
    """In a capture: each face of the mirror sweeps 60 deg of its field in 0.1 s; between them the encoder jumps."""
    rows = []
    for number in range(7):
        begin = FIELDS[(number + 1) % 3][0]
        for at in range(60):
            us = 100_000 * number + 80_000 * at // 60
            encoder = (begin + (28 + at) * DEG) % CIRCLE
            packet = at128_packet([encoder, (encoder + DEG // 2) % CIRCLE], np.full((2, 128), 2500), us)
            rows.append((T0 + us * 1000, udp_frame(b"\xc0\xa8\x01\xc9", 2368, packet)))
    (tmp_path / "drive.pcap").write_bytes(pcap(rows))
    summary = run_import(capsys, tmp_path / "drive.pcap", "-o", tmp_path / "out.bag", "--calibration", dat, "--json").summary
    scans = only(read_bag(tmp_path / "out.bag"), "scan")
    assert [len(scan["points"]) for scan in scans] == [60 * 256] * 7 and summary["left"] == {}
    assert [round((scan["stamp_ns"] - T0) * 1e-6) for scan in scans] == [100 * number for number in range(7)]
    for scan in scans:  # each of them looks ahead: from 56 to 175 deg of azimuth, and 13 deg up and down
        assert 50 < np.degrees(np.arctan2(scan["points"][:, 0], scan["points"][:, 1])).min() and np.abs(scan["points"][:, 2]).max() < 10 * 0.23


def test_errors(tmp_path, capsys):
    packet = at128_packet([70 * DEG, 71 * DEG], np.full((2, 128), 1000), 0)
    good = at128_correction(*_calibration())
    damaged = good[:5000] + bytes([good[5000] ^ 1]) + good[5001:]
    cases = [(None, "need the fields and angles of its mirrors: --calibration FILE, the sensor's own correction file (.dat)"),
             (b"Channel,Elevation,Azimuth\n1,12.93,2.4\n", "is no correction file (.dat) of a Hesai AT128"),
             (damaged, "the correction file of the AT128 is damaged: its checksum is another one"),
             (good[:-40], f"a correction file of {len(good) - 40} bytes: that of this AT128 has {len(good)}"),
             (at128_correction(*_calibration(), version=3), "a correction file of version 1.3 with 128 channels and 3 fields"),
             (b"\xee\xff", "is no correction file")]
    for number, (data, why) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "at.dat").write_bytes(data or b"")
        arguments = () if data is None else ("--calibration", folder / "at.dat")
        done, _ = import_rows(capsys, folder, [("/packets", NEBULA, T0, _nebula([packet]))], *arguments, code=3)
        assert len(done.err.strip().split("\n")) == 1 and why in done.err


def test_packets_of_noise(dat, tmp_path, capsys):
    rng, rows = np.random.default_rng(5), []
    good = at128_packet([70 * DEG, 71 * DEG], np.full((2, 128), 1000), 0)
    for number in range(20):
        noise = good[:12] + bytes(rng.integers(0, 256, len(good) - 12, dtype=np.uint8))
        rows.append(("/packets", NEBULA, T0 + number, _nebula([noise] * 3)))
    summary, _ = import_rows(capsys, tmp_path, rows, "--calibration", dat)
    assert summary["taken"]["scan"] + sum(summary["left"].values()) == 20
