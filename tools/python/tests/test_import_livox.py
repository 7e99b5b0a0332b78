"""Packets of a Livox Mid-360 in captures: known points in, the same points out, a scan each tenth of a second."""
import math

import numpy as np
import pytest
from packet_maker import livox_imu, livox_packet, pcap, udp_frame
from recording_maker import NS, T0, only, read_bag, run_import, survives

ADDRESS = b"\xc0\xa8\x01\x65"
CLOCK = 77 * NS  # since the sensor was switched on


def _points(kind, rng):
    if kind == 3:
        return [(int(rng.integers(100, 70000)), int(rng.integers(0, 18000)), int(rng.integers(0, 36000))) for _ in range(96)]
    return [tuple(int(number) for number in rng.integers(-30000, 30000, 3)) for _ in range(96)]


def _metres(kind, point):
    if kind == 3:
        theta, phi = math.radians(point[1] / 100), math.radians(point[2] / 100)
        return [point[0] / 1000 * one for one in (math.sin(theta) * math.cos(phi), math.sin(theta) * math.sin(phi), math.cos(theta))]
    return [one / (1000 if kind == 1 else 100) for one in point]


def _frames(kind, scans=3, clock_ns=CLOCK, packets=208):
    """Packets of 96 points, and what is in them: scan, time [ns], x y z, for every 13th packet."""
    rng, frames, expected = np.random.default_rng(1), [], []
    for number in range(0, scans * packets, 13):
        passed_ns = number * (NS // 10) // packets
        points = _points(kind, rng)
        points[5] = (0, 0, 0)  # no return
        frames.append((T0 + passed_ns, udp_frame(ADDRESS, 56301, livox_packet(clock_ns + passed_ns, kind, points))))
        expected += [(number // packets, passed_ns + 4800 * k, *_metres(kind, point)) for k, point in enumerate(points) if k != 5]
    return frames, np.array(expected)


@pytest.mark.parametrize("clock_ns", [CLOCK, T0 + 1_000_000], ids=["own clock", "synchronised"])
@pytest.mark.parametrize("kind", [1, 2, 3])
def test_points_in_points_out(kind, clock_ns, tmp_path, capsys):
    frames, expected = _frames(kind, clock_ns=clock_ns // (NS // 10) * (NS // 10))
    (tmp_path / "drive.pcap").write_bytes(pcap(frames, nanoseconds=True))
    summary = run_import(capsys, tmp_path / "drive.pcap", "-o", tmp_path / "out.bag", "--json").summary
    scans = only(read_bag(tmp_path / "out.bag"), "scan")
    assert len(scans) == 3 and summary["empty_points"] == len(frames) and summary["topics"][0]["type"] == "packets of a Livox"
    for number, scan in enumerate(scans):
        want = expected[expected[:, 0] == number]
        assert np.abs(scan["points"] - want[:, 2:]).max() < 1e-4 and (scan["intensity"] == 60).all()
        assert np.abs(scan["time_s"] * 1e9 + (scan["stamp_ns"] - T0) - want[:, 1]).max() < 100


@pytest.mark.parametrize("clock_ns, late_ns", [(CLOCK, 0), (T0, 1_000_000)], ids=["own clock", "synchronised"])
def test_imu(clock_ns, late_ns, tmp_path, capsys):
    """Stamps are those of the sensor where its clock is that of the capture."""
    frames, _ = _frames(1, clock_ns=clock_ns)
    frames += [(T0 + number * 5_000_000 + late_ns, udp_frame(ADDRESS, 56401, livox_imu(clock_ns + number * 5_000_000, (0.1, 0.2, number), (0, 0.5, 1))))
               for number in range(40)]
    (tmp_path / "drive.pcap").write_bytes(pcap(sorted(frames), nanoseconds=True))
    summary = run_import(capsys, tmp_path / "drive.pcap", "-o", tmp_path / "out.bag", "--json").summary
    assert summary["taken"] == {"scan": 3, "imu": 40}
    for number, record in enumerate(only(read_bag(tmp_path / "out.bag"), "imu")):
        assert record["stamp_ns"] == T0 + number * 5_000_000 and record["frame_id"] == "192.168.1.101"
        assert record["angular_velocity"] == pytest.approx([0.1, 0.2, number]) and record["linear_acceleration"] == pytest.approx([0, 4.903325, 9.80665])


def test_packets_of_noise(tmp_path, capsys):
    rng, frames = np.random.default_rng(4), []
    for number in range(300):
        data = bytearray(livox_packet(CLOCK + number * NS // 1000, 1, _points(1, rng)))
        for at in rng.integers(0, len(data) if number % 2 else 36, 2):
            data[at] = rng.integers(256)
        frames.append((T0 + number * NS // 1000, udp_frame(ADDRESS, 56301, bytes(data))))
    (tmp_path / "drive.pcap").write_bytes(pcap(frames))
    survives(capsys, tmp_path / "drive.pcap")
