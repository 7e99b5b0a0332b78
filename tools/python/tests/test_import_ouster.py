"""Packets of an Ouster, in recordings and captures: known points in, the same points out; the metadata that they need."""
import json
import math
import struct

import numpy as np
import pytest
from packet_maker import pcap, udp_frame
from recording_maker import NS, T0, Messages, goes_on, import_rows, only, read_bag, run_import, survives, write_bag2

M = Messages()
PACKET, TEXT = "ouster_sensor_msgs/msg/PacketMsg", "std_msgs/msg/String"
ROWS, COLUMNS = 16, 512
ALTITUDE = np.linspace(15, -15, ROWS)
AZIMUTH = np.tile([3.1, 1.0, -1.0, -3.1], ROWS // 4)
ORIGIN_MM = 15.8
UP = [-1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1, 36.18, 0, 0, 0, 1]  # the lidar in the sensor: turned by 180 deg, 36 mm up


def metadata():
    eye = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
    return json.dumps({
        "beam_intrinsics": {"beam_altitude_angles": list(ALTITUDE), "beam_azimuth_angles": list(AZIMUTH), "lidar_origin_to_beam_origin_mm": ORIGIN_MM,
                            "beam_to_lidar_transform": [1, 0, 0, ORIGIN_MM, *eye[4:]]},
        "calibration_status": {}, "config_params": {"lidar_mode": "512x10", "udp_port_imu": 7503, "udp_port_lidar": 7502},
        "imu_intrinsics": {"imu_to_sensor_transform": eye},
        "lidar_data_format": {"column_window": [0, COLUMNS - 1], "columns_per_frame": COLUMNS, "columns_per_packet": 16, "pixel_shift_by_row": [0] * ROWS,
                              "pixels_per_column": ROWS, "udp_profile_imu": "LEGACY", "udp_profile_lidar": "LEGACY"},
        "lidar_intrinsics": {"lidar_to_sensor_transform": UP},
        "sensor_info": {"build_date": "", "build_rev": "v2.3.0", "image_rev": "", "initialization_id": 1, "prod_line": "OS-1-16", "prod_pn": "", "prod_sn": "1",
                        "status": "RUNNING"}, "user_data": ""})


def range_mm(row, column):
    """0: no return."""
    return 0 if (row + column) % 7 == 0 else 4000 + 10 * column + row


def turn(number, clock_ns=5 * NS):
    """The packets of a turn of 100 ms: 16 columns each, as the manual lays out the legacy profile."""
    for first in range(0, COLUMNS, 16):
        out = b""
        for column in range(first, first + 16):
            ns = clock_ns + number * NS // 10 + column * NS // 10 // COLUMNS
            out += struct.pack("<QHHI", ns, column, number, column * 90112 // COLUMNS)
            for row in range(ROWS):
                out += struct.pack("<IHHHH", range_mm(row, column), 40 + row, 7, 8, 0)
            out += struct.pack("<I", 0xFFFFFFFF)
        yield T0 + number * NS // 10 + first * NS // 10 // COLUMNS, out


def expected():
    """By the manual: the beam leaves the lidar at ORIGIN_MM from its axis."""
    points = []
    for row in range(ROWS):
        for column in range(COLUMNS):
            r = range_mm(row, column)
            if r:
                encoder, azimuth, altitude = 2 * math.pi * (1 - column / COLUMNS), -math.radians(AZIMUTH[row]), math.radians(ALTITUDE[row])
                x = (r - ORIGIN_MM) * math.cos(encoder + azimuth) * math.cos(altitude) + ORIGIN_MM * math.cos(encoder)
                y = (r - ORIGIN_MM) * math.sin(encoder + azimuth) * math.cos(altitude) + ORIGIN_MM * math.sin(encoder)
                points.append((-x / 1000, -y / 1000, ((r - ORIGIN_MM) * math.sin(altitude) + 36.18) / 1000))
    return np.array(points)


def _rows(turns, topic="/ouster/lidar_packets"):
    for number in range(turns):
        for ns, data in turn(number):
            yield topic, PACKET, ns, M.make(PACKET, buf=np.frombuffer(data, np.uint8))


def test_metadata_are_missing(tmp_path, capsys):
    done, _ = import_rows(capsys, tmp_path, list(_rows(1)), code=3)
    assert "those of an Ouster need its metadata: --calibration FILE" in done.err


def test_package_is_missing(tmp_path, capsys, monkeypatch):
    from ndtd.recordings import ouster

    def missing(module, extra):
        from ndtd._extras import need
        return need("no_such_module", extra)
    monkeypatch.setattr(ouster, "need", missing)
    (tmp_path / "meta.json").write_text(metadata())
    done, _ = import_rows(capsys, tmp_path, list(_rows(1)), "--calibration", tmp_path / "meta.json", code=3)
    assert "is not installed: pip install 'ndtd[ouster]'" in done.err and len(done.err.strip().split("\n")) == 1


def _check(scans, turns):
    points = expected()
    assert len(scans) == turns and all(scan["frame_id"] == "os_sensor" or "." in scan["frame_id"] for scan in scans)
    for number, scan in enumerate(scans):
        assert scan["stamp_ns"] == T0 + number * NS // 10  # the sensor is not synchronised
        assert np.abs(scan["points"] - points).max() < 1e-3 and 0.099 < np.ptp(scan["time_s"]) < 0.1
        assert set(scan["intensity"]) <= set(range(40, 40 + ROWS))


def test_recording_with_metadata(tmp_path, capsys):
    """The topic of the metadata is in the recording; the last turn has no end there."""
    pytest.importorskip("ouster.sdk.core")
    rows = [("/ouster/metadata", TEXT, T0, M.make(TEXT, data=metadata())), *_rows(4),
            ("/ouster/imu_packets", PACKET, T0 + NS, M.make(PACKET, buf=np.zeros(48, np.uint8)))]
    summary, records = import_rows(capsys, tmp_path, rows)
    _check(only(records, "scan"), 3)
    assert summary["left"] == {} and any("packets of an IMU" in topic["why"] for topic in summary["topics_left"])


def test_capture_with_fragments(tmp_path, capsys):
    pytest.importorskip("ouster.sdk.core")
    (tmp_path / "meta.json").write_text(metadata())
    frames = []
    for number in range(3):
        for at, (ns, data) in enumerate(turn(number)):
            whole = udp_frame(b"\x0a\0\0\x01", 7502, data)
            udp, parts = whole[34:], []
            for offset in range(0, len(udp), 1480):
                place = offset // 8 | (0x2000 if offset + 1480 < len(udp) else 0)
                head = whole[:16] + struct.pack(">HHH", 20 + len(udp[offset:offset + 1480]), at + 100 * number, place) + whole[22:34]
                parts.append((ns, head + udp[offset:offset + 1480]))
            frames += parts[::-1] if at % 2 else parts  # in any order
    (tmp_path / "drive.pcap").write_bytes(pcap(frames))
    run_import(capsys, tmp_path / "drive.pcap", "-o", tmp_path / "out.bag", "--calibration", tmp_path / "meta.json")
    _check(only(read_bag(tmp_path / "out.bag"), "scan"), 3)


def test_resumes_within_a_turn(tmp_path, capsys, monkeypatch):
    pytest.importorskip("ouster.sdk.core")
    write_bag2(tmp_path / "r", [("/ouster/metadata", TEXT, T0, M.make(TEXT, data=metadata())), *_rows(4)])
    goes_on(capsys, monkeypatch, 79, tmp_path / "r", tmp_path)


@pytest.mark.parametrize("text", ["{", '{"a": 1}', "{}"])
def test_metadata_that_are_none(text, tmp_path, capsys):
    pytest.importorskip("ouster.sdk.core")
    (tmp_path / "meta.json").write_text(text)
    done, _ = import_rows(capsys, tmp_path, list(_rows(1)), "--calibration", tmp_path / "meta.json", code=3)
    assert "the metadata of the Ouster cannot be read" in done.err and len(done.err.strip().split("\n")) == 1


def test_packets_of_noise(tmp_path, capsys):
    pytest.importorskip("ouster.sdk.core")
    rng, rows = np.random.default_rng(3), [("/ouster/metadata", TEXT, T0, M.make(TEXT, data=metadata()))]
    for topic, kind, ns, message in _rows(3):
        noise = message.buf.copy()
        noise[rng.integers(0, len(noise), 40)] = rng.integers(0, 256, 40)
        rows.append((topic, kind, ns, M.make(PACKET, buf=noise[:rng.integers(1, len(noise))] if ns % 5 == 0 else noise)))
    write_bag2(tmp_path / "r", rows)
    survives(capsys, tmp_path / "r")


def test_second_returns(tmp_path, capsys):
    """The profile of two returns; ouster-sdk makes the packets."""
    core = pytest.importorskip("ouster.sdk.core")
    text = metadata().replace('"udp_profile_lidar": "LEGACY"', '"udp_profile_lidar": "RNG19_RFL8_SIG16_NIR16_DUAL"')
    info = core.SensorInfo(text)
    frame = core.LidarFrame(info)
    frame.frame_id = 3
    frame.field("RANGE")[:], frame.field("RANGE2")[:, ::2] = 5000, 7000
    frame.timestamp[:], frame.status[:] = 5 * NS + np.arange(COLUMNS) * NS // 10 // COLUMNS, 1
    packets = [bytes(packet.buf) for packet in core.frame_to_packets(frame, core.PacketFormat(info), 0, 1)]
    rows = [("/ouster/metadata", TEXT, T0, M.make(TEXT, data=text))]
    rows += [("/ouster/lidar_packets", PACKET, T0 + number, M.make(PACKET, buf=np.frombuffer(data, np.uint8)))
             for number, data in enumerate([*packets, *packets, *packets])]
    _, records = import_rows(capsys, tmp_path, rows)
    scan = only(records, "scan")[0]
    up_m = np.array([0, 0, 0.03618])
    ranges = np.linalg.norm(scan["points"] - up_m, axis=1)
    assert len(ranges) == ROWS * COLUMNS * 3 // 2
    assert np.allclose(sorted(ranges)[:ROWS * COLUMNS], 5, atol=0.001) and np.allclose(sorted(ranges)[ROWS * COLUMNS:], 7, atol=0.001)


def test_osf(tmp_path, capsys):
    core, osf = pytest.importorskip("ouster.sdk.core"), pytest.importorskip("ouster.sdk.osf")
    info = core.SensorInfo(metadata())
    writer = osf.Writer(str(tmp_path / "drive.osf"), [info])
    for number in range(3):
        frame = core.LidarFrame(info)
        frame.frame_id = number
        frame.field("RANGE")[:] = [[range_mm(row, column) for column in range(COLUMNS)] for row in range(ROWS)]
        frame.field("REFLECTIVITY")[:] = 40
        frame.timestamp[:] = 5 * NS + number * NS // 10 + np.arange(COLUMNS) * NS // 10 // COLUMNS
        frame.packet_timestamp[:] = T0 + number * NS // 10 + np.arange(len(frame.packet_timestamp)) * 1000
        frame.status[:] = 1
        writer.save(0, frame)
    writer.close()
    summary = run_import(capsys, tmp_path / "drive.osf", "-o", tmp_path / "out.bag", "--json").summary
    _check(only(read_bag(tmp_path / "out.bag"), "scan"), 3)
    assert summary["duration_s"] == pytest.approx(0.2, abs=0.01)
    (tmp_path / "drive.osf").write_bytes((tmp_path / "drive.osf").read_bytes()[:5000])
    done = run_import(capsys, tmp_path / "drive.osf", "-o", tmp_path / "other.bag", code=3)
    assert "drive.osf: " in done.err and len(done.err.strip().split("\n")) == 1


def test_osf_of_two_sensors(tmp_path, capsys):
    """Scans that are not grouped come one by one: the serial number tells the sensor."""
    core, osf = pytest.importorskip("ouster.sdk.core"), pytest.importorskip("ouster.sdk.osf")
    infos = [core.SensorInfo(metadata()), core.SensorInfo(metadata())]
    infos[1].sn = infos[0].sn + 1
    writer = osf.Writer(str(tmp_path / "drive.osf"), infos)
    for number in range(5):
        frame = core.LidarFrame(infos[number % 2])
        frame.frame_id, frame.status[:] = number, 1
        frame.field("RANGE")[:] = 5000 + 2000 * (number % 2)
        frame.timestamp[:] = T0 + number * NS // 20 + np.arange(COLUMNS) * 1000
        writer.save(number % 2, frame)
    writer.close()
    arguments = ("--scan", "sensor 0", "--scan", "sensor 1", "-o", tmp_path / "out.bag", "--json")
    assert run_import(capsys, tmp_path / "drive.osf", *arguments).summary["taken"] == {"scan": 5}
    for scan in only(read_bag(tmp_path / "out.bag"), "scan"):
        away_m = np.median(np.linalg.norm(scan["points"] - np.array([0, 0, 0.03618]), axis=1))
        assert away_m == pytest.approx({"os_sensor": 5, "os_sensor_1": 7}[scan["frame_id"]], abs=0.01)
    assert run_import(capsys, tmp_path / "drive.osf", "--scan", "sensor 1", "-o", tmp_path / "1.bag", "--json").summary["taken"] == {"scan": 2}


def test_osf_without_times(tmp_path, capsys):
    core, osf = pytest.importorskip("ouster.sdk.core"), pytest.importorskip("ouster.sdk.osf")
    info = core.SensorInfo(metadata())
    writer, frame = osf.Writer(str(tmp_path / "drive.osf"), [info]), core.LidarFrame(info)
    frame.field("RANGE")[:], frame.status[:] = 5000, 1
    writer.save(0, frame)
    writer.close()
    done = run_import(capsys, tmp_path / "drive.osf", "-o", tmp_path / "out.bag", code=3)
    assert "no scan in it can be used: 1 scan: a turn without times" in done.err
