"""Captures: packets by the address of their sensor, positions as GNSS, and files that are damaged or made to harm."""
import struct

import numpy as np
import pytest
from packet_maker import hesai_packet, hesai_turn, pcap, pcapng, rmc, udp_frame, velodyne_turn
from recording_maker import NS, T0, goes_on, only, read_bag, run_import, survives

HESAI, VELODYNE, IPV6 = bytes([192, 168, 1, 201]), bytes([192, 168, 1, 202]), bytes.fromhex("fe80000000000000000000000000002a")


def _hesai_rows(turns=3, start=0, source=HESAI, name="XT32", **frame):
    """Turns of 100 ms; the sensor is synchronised, and its packets come 0.3 ms late."""
    for turn in range(turns):
        for us, packet in hesai_turn(name, begin_us=100_000 * turn, start=start):
            yield T0 + us * 1000 + 300_000, udp_frame(source, 2368, packet, **frame)


def _velodyne_rows(turns=3):
    return ((T0 + us * 1000, udp_frame(VELODYNE, 2368, packet)) for us, packet in velodyne_turn(turns))


def _position_rows(seconds=2):
    """Position packets of 512 bytes: each sentence is repeated, and comes 0.2 s late."""
    for number in range(10 * seconds):
        sentence = rmc(f"2213{20 + number // 10:02d}")
        yield T0 + NS // 10 * number + NS // 5, udp_frame(VELODYNE, 8308, bytes(206) + sentence + bytes(306 - len(sentence)))


def _import(capsys, tmp_path, data, *arguments, suffix=".pcap", code=0):
    path = tmp_path / f"drive{suffix}"
    path.write_bytes(data)
    done = run_import(capsys, path, "-o", tmp_path / "out.bag", "--force", "--json", *arguments, code=code)
    return done if code else (done.summary, read_bag(tmp_path / "out.bag"))


FORMATS = {
    "pcap": lambda rows: pcap(rows),
    "big endian": lambda rows: pcap(rows, ">"),
    "nanoseconds": lambda rows: pcap(rows, nanoseconds=True),
    "pcapng": lambda rows: pcapng(rows),
    "pcapng, big endian": lambda rows: pcapng(rows, ">"),
    "cooked": lambda rows: pcap([(ns, b"\0" * 14 + frame[12:]) for ns, frame in rows], link=113),
    "raw": lambda rows: pcap([(ns, frame[14:]) for ns, frame in rows], link=101),
}


@pytest.mark.parametrize("form", list(FORMATS))
def test_turns_of_a_hesai(form, tmp_path, capsys):
    summary, records = _import(capsys, tmp_path, FORMATS[form](list(_hesai_rows())))
    scans = only(records, "scan")
    assert [scan["frame_id"] for scan in scans] == ["192.168.1.201"] * 3 and summary["left"] == {}
    assert [len(scan["points"]) for scan in scans] == [36 * 256] * 3
    # Stamps are those of the sensor, not 0.3 ms later.
    assert [scan["stamp_ns"] - T0 for scan in scans] == [(100_000 * turn + 2777) * 1000 for turn in range(3)]
    assert all(np.abs(np.linalg.norm(scan["points"], axis=1) - 10).max() < 1e-4 for scan in scans)
    assert summary["topics"][0] == {"topic": "192.168.1.201:2368", "type": "packets of a Hesai XT32", "count": 3, "kind": "scan"}


@pytest.mark.parametrize("frame, address", [({"vlan": True}, "192.168.1.201"), ({"source": IPV6}, "fe80:0000:0000:0000:0000:0000:0000:002a")])
def test_networks(frame, address, tmp_path, capsys):
    summary, _ = _import(capsys, tmp_path, pcap(_hesai_rows(**frame)))
    assert summary["taken"] == {"scan": 3} and summary["sensors"] == [address]


def test_parts_of_turns(tmp_path, capsys):
    """A capture begins and ends somewhere: less than half a turn is no scan."""
    for begin, end, want in ((0, 108, 3), (10, 108, 3), (25, 108, 2), (0, 80, 2), (0, 100, 3), (3, 30, 1)):
        _, records = _import(capsys, tmp_path, pcap(list(_hesai_rows())[begin:end]))
        assert len(only(records, "scan")) == want, (begin, end)


@pytest.mark.parametrize("sector", [(9000, 18000), (30000, 46000), (0, 4000)])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_sectors(sector, is_reversed, tmp_path, capsys):
    """Sensors that are blind elsewhere, over the begin of the turn as well, and those that turn the other way; packets in another order."""
    rows, first = [], sector[0]
    for turn in range(4):
        part = []
        for at in range(60):
            azimuths = [(first + (sector[1] - first) * (8 * at + block) // 480) % 36000 for block in range(8)]
            azimuths = [36000 - 1 - azimuth for azimuth in azimuths] if is_reversed else azimuths
            part.append((T0 + turn * NS // 10 + at * NS // 1000, hesai_packet("XT32", azimuths, np.full((8, 32), 2500), 0)))
        part[20:22] = (part[20][0], part[21][1]), (part[21][0], part[20][1])
        rows += part
    _, records = _import(capsys, tmp_path, pcap((ns, udp_frame(HESAI, 2368, data)) for ns, data in rows))
    counts = [len(scan["points"]) // 256 for scan in only(records, "scan")]
    assert sum(counts[-3:]) >= 150 and len(counts) in (3, 4) and counts.count(60) >= 2


def test_silence_ends_a_turn(tmp_path, capsys):
    """The 12 packets of 36 behind it are less than half a turn."""
    rows = list(_hesai_rows(2))
    rows = rows[:60] + [(ns + 5 * NS, frame) for ns, frame in rows[60:]]
    _, records = _import(capsys, tmp_path, pcap(rows))
    assert [len(scan["points"]) // 256 for scan in only(records, "scan")] == [36, 24]


def test_two_sensors_and_positions(tmp_path, capsys):
    rows = sorted([*_hesai_rows(), *_velodyne_rows(), *_position_rows()])
    data = pcap(rows)
    done = _import(capsys, tmp_path, data, code=2)
    assert "2 topics could be scans; choose with --scan TOPIC" in done.err
    assert "192.168.1.201:2368  packets of a Hesai XT32" in done.err and "192.168.1.202:2368  packets of a Velodyne" in done.err
    both = ("--scan", "192.168.1.201:2368", "--scan", "192.168.1.202:2368")
    summary, records = _import(capsys, tmp_path, data, *both, "--utm")
    frames = [scan["frame_id"] for scan in only(records, "scan")]
    assert frames.count("192.168.1.201") == 3 and frames.count("192.168.1.202") == 3
    assert summary["taken"] == {"scan": 6, "gnss": 2}
    fixes = only(records, "gnss")
    # The second that the sentence tells counts, not when it arrived; of what is repeated, the first.
    assert [fix["stamp_ns"] for fix in fixes] == [T0, T0 + NS]
    assert fixes[0]["deviation"] == [5, 5, 1000] and fixes[0]["position"][0] == pytest.approx(312_700, abs=50)
    assert fixes[0]["position"][1] == pytest.approx(5_332_600, abs=200)


def test_a_velodyne(tmp_path, capsys):
    _, records = _import(capsys, tmp_path, pcap(_velodyne_rows()))
    scans = only(records, "scan")
    assert [len(scan["points"]) for scan in scans] == [76 * 12 * 32] * 3
    assert all(0.095 < np.ptp(scan["time_s"]) < 0.105 and np.abs(scan["time_s"]).max() < 0.105 for scan in scans)


@pytest.mark.parametrize("sentence, why", [
    (rmc("221320", state="V"), "no fix"), (rmc("221320").replace(b"4807", b"4817"), "checksum is wrong"),
    (b"$GPRMC,221320,A\r\n", "cannot be read"), (b"$GPRMC,221320,A,x,N,y,E,,,141123,,*zz\r\n", "cannot be read")])
def test_positions_that_are_none(sentence, why, tmp_path, capsys):
    rows = [*_hesai_rows(), (T0 + NS, udp_frame(HESAI, 10110, bytes(20) + sentence))]
    summary, _ = _import(capsys, tmp_path, pcap(rows), "--utm")
    assert any(why in key for key in summary["left"])


def test_resumes_with_the_same_bytes(tmp_path, capsys, monkeypatch):
    path = tmp_path / "drive.pcap"
    path.write_bytes(pcap(_hesai_rows(6)))
    goes_on(capsys, monkeypatch, 3, path, tmp_path)


def test_unknown_packets(tmp_path, capsys):
    rows = [(T0 + number, udp_frame(HESAI, 5000, bytes(100))) for number in range(5)]
    done = _import(capsys, tmp_path, pcap(rows), code=3)
    assert "192.168.1.201:5000: packets of 100 bytes, of no sensor that is known here" in done.err
    for empty in (pcap([]), pcapng([]), pcap([(T0, udp_frame(HESAI, 2368, b"x", fragment=0x2000))])):
        assert "no UDP packets in it" in _import(capsys, tmp_path, empty, code=3).err


def test_other_traffic(tmp_path, capsys):
    """What other programs send is a line, however many ports they have; a sensor that lacks its angles is told by name."""
    rows = [*((T0 + number, udp_frame(VELODYNE, 5000 + number, bytes(100))) for number in range(450)), *_hesai_rows()]
    rows += [(T0 + us * 1000, udp_frame(VELODYNE, 2368, packet)) for us, packet in hesai_turn("Pandar128")]
    summary, _ = _import(capsys, tmp_path, pcap(rows))
    assert summary["taken"] == {"scan": 3} and "UDP packets of other sources are left: of no sensor that is known here" in summary["notes"]
    left = summary["topics_left"]
    assert [(topic["topic"], topic["count"]) for topic in left] == [("192.168.1.202:2368", 36)] and "--calibration FILE" in left[0]["why"]


def test_cut_off(tmp_path, capsys):
    for whole, suffix in ((pcap(_hesai_rows()), ".pcap"), (pcapng(_hesai_rows()), ".pcapng")):
        summary, _ = _import(capsys, tmp_path, whole[:-700], suffix=suffix)
        assert summary["taken"] == {"scan": 3} and any("the capture ends before its end: cut off in a" in note for note in summary["notes"])


@pytest.mark.parametrize("data, why", [
    (b"", "the file is empty"), (b"\0" * 40, "neither pcap nor pcapng"), (pcap([])[:10], "cut off in its header"),
    (pcap([]) + struct.pack("<IIII", 0, 0, 2**32 - 1, 0), "a packet of 4294967295 bytes, the limit is 1048576"),
    (pcapng([]) + struct.pack("<III", 6, 2**32 - 4, 0), "a block of 4294967292 bytes"), (pcapng([]) + struct.pack("<III", 6, 0, 0), "a block of 0 bytes")])
def test_files_that_are_none(data, why, tmp_path, capsys):
    done = _import(capsys, tmp_path, data, code=3)
    assert why in done.err and len(done.err.strip().split("\n")) == 1 and not list(tmp_path.glob("out*"))


def test_mutations(tmp_path, capsys):
    """Bytes changed anywhere: a summary or one line, and no more memory than the file has."""
    rows = sorted([*_hesai_rows(1), *_position_rows(1)])
    rng = np.random.default_rng(11)
    for number in range(60):
        data = bytearray((pcap if number % 2 else pcapng)(rows))
        for at in rng.integers(0, 300 if number % 3 == 0 else len(data), 8):
            data[at] = rng.integers(256)
        (tmp_path / "drive.pcap").write_bytes(data)
        survives(capsys, tmp_path / "drive.pcap", "--force", "--utm", codes=(0, 2, 3))


@pytest.mark.parametrize("name, median_m, most_m", [("hesai_40p_ros2", 0.005, 0.05), ("velodyne_vlp16_ros2", 0.01, 0.05)])
def test_real_packets(name, median_m, most_m, tmp_path, capsys, shared_data):
    """The packets of a real recording as a capture, against the cloud that the driver made of them."""
    from rosbags.rosbag2 import Reader
    from recording_maker import store
    from scipy.spatial import cKDTree

    from ndtd import read_cloud
    folder, types, frames = shared_data / "ros_recordings" / name, store(), []
    with Reader(next(one for one in folder.iterdir() if one.is_dir())) as recording:
        for connection, _, raw in recording.messages():
            for packet in types.deserialize_cdr(raw, connection.msgtype).packets:
                data = bytes(packet.data)[:getattr(packet, "size", None)]
                frames.append((packet.stamp.sec * NS + packet.stamp.nanosec, udp_frame(HESAI, 2368, data)))
    _, records = _import(capsys, tmp_path, pcapng(frames), suffix=".pcapng")
    scans = only(records, "scan")
    assert len(scans) == 4 and all(0.09 < np.ptp(scan["time_s"]) < 0.11 for scan in scans)
    cloud = read_cloud(next(folder.glob("*.pcd")))["points"]
    distance_m = cKDTree(np.concatenate([scan["points"] for scan in scans[2:]])).query(cloud)[0]
    assert np.median(distance_m) < median_m and np.quantile(distance_m, 0.99) < most_m
