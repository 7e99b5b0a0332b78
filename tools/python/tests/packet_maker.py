"""Packets of LiDARs as the manuals lay them out, and captures of them: an encoder that shares nothing with the decoder."""
import hashlib
import struct
from types import SimpleNamespace

import numpy as np

WEIGHT, SAFETY = 0x20, 0x04  # flags of protocol 1.4: a fourth byte per return, the part of functional safety
DATE = (2023, 11, 14, 22, 13, 20)  # T0 of recording_maker: 1_700_000_000 s
# Model: channels, blocks, bytes of a return, header, bytes behind the blocks, the tail from (returns, date, microseconds).
HESAI = {
    "Pandar40P": SimpleNamespace(channels=40, blocks=10, unit=3, mark=b"\xff\xee", head=b"", gap=0, tail="old", year=2000),
    "Pandar64": SimpleNamespace(channels=64, blocks=6, unit=3, mark=b"", head=bytes([0xEE, 0xFF, 64, 6, 0, 4, 0, 0]), gap=0, tail="old", year=2000),
    "PandarQT": SimpleNamespace(channels=64, blocks=4, unit=4, mark=b"", head=b"\x05\x01", gap=0, tail="qt", year=1900),
    "XT16": SimpleNamespace(channels=16, blocks=8, unit=4, mark=b"", head=b"\x06\x01", gap=0, tail="xt", year=1900),
    "XT32": SimpleNamespace(channels=32, blocks=8, unit=4, mark=b"", head=b"\x06\x01", gap=0, tail="xt", year=1900),
    "XT32M": SimpleNamespace(channels=32, blocks=6, unit=4, mark=b"", head=b"\x06\x01", gap=0, tail="xt", year=1900),
    "QT128": SimpleNamespace(channels=128, blocks=2, unit=4, mark=b"", head=b"\x03\x02", gap=4 + 17, tail="qt128", year=1900),
    "Pandar128": SimpleNamespace(channels=128, blocks=2, unit=4, mark=b"", head=b"\x01\x04", gap=4 + 17, tail="128", year=1900),
    "OT128": SimpleNamespace(channels=128, blocks=2, unit=4, mark=b"", head=b"\x01\x04\x80", gap=4 + 17, tail="128", year=1900),
    "JT128": SimpleNamespace(channels=128, blocks=2, unit=4, mark=b"", head=b"\x01\x04\x89", gap=4 + 17, tail="128", year=1900,
                             azimuths=(160, 270)),
}


def hesai_packet(name, azimuths, distances, us, mode=0x37, reflectivity=50):
    """A packet. azimuths: of each block [0.01 deg]; distances: (blocks, channels) [4 mm]; us: of the second of DATE."""
    model = HESAI[name]
    head = model.head
    if len(head) in (2, 3):  # protocol and, of JT128, version of the states; channels, blocks, unit of distances [mm], returns, flags
        head = b"\xee\xff" + head.ljust(4, b"\0") + bytes([model.channels, model.blocks, 0, 4, 1, WEIGHT | SAFETY | 1])
    body = b""
    for azimuth, row in zip(azimuths, distances):
        body += model.mark + struct.pack("<H", azimuth)
        for distance in row:
            body += struct.pack("<HB", distance, reflectivity) + b"\x07" * (model.unit - 3)
    date = bytes([DATE[0] - model.year, *DATE[1:]])
    time, motor = struct.pack("<I", us), struct.pack("<H", 600)
    tail = {"old": b"\x01" * 8 + motor + time + bytes([mode, 0x42]) + date,
            "qt": b"\x01" * 10 + motor + time + bytes([mode, 0x42]) + date,
            "xt": b"\x01" * 10 + bytes([mode]) + motor + date + time + b"\x42",
            "qt128": b"\x01" * 12 + bytes([mode]) + motor + date + time + b"\x42" + b"\x09" * 8,
            "128": b"\x01" * 12 + bytes([mode]) + motor + date + time + b"\x42" + b"\x09" * 8}[model.tail]
    return head + body + b"\x03" * model.gap + tail


def hesai_turn(name, begin_us=0, packets=36, start=0, distance=2500):
    """A turn of 100 ms as (microseconds, packet): every return is at the same distance."""
    model = HESAI[name]
    for number in range(packets):
        azimuths = [(start + 36000 * (number * model.blocks + block) // (packets * model.blocks)) % 36000 for block in range(model.blocks)]
        us = begin_us + 100_000 * (number + 1) // packets
        yield us, hesai_packet(name, azimuths, np.full((model.blocks, model.channels), distance), us)


FIELDS = ((50 * 25600, 165 * 25600), (170 * 25600, 285 * 25600), (290 * 25600, 45 * 25600))  # of an AT128: begin, end [1 / 25600 deg]


def at128_correction(angles, adjust, unit=2, fields=FIELDS, version=5):
    """The .dat of an AT128. angles: azimuth and elevation of each channel [1 / 25600 deg]; adjust: (2, 128, 180) [0.01 deg]."""
    out = bytes([0xEE, 0xFF, 1, version, 128, 3, len(fields), 1, 2, 4, 0, 0, 0, 0, 0, unit])
    for numbers, kind in ((np.transpose(fields), "<u4"), (angles, "<i4"), (adjust, "i1")):
        out += (np.asarray(numbers) // unit).astype(kind).tobytes()
    return out + hashlib.sha256(out).digest()


def at128_packet(encoders, distances, us, mode=0x37, reflectivity=50, sequence=True):
    """encoders: of both blocks [1 / 25600 deg]; distances: (2, 128) [4 mm]; us: of the second of DATE."""
    body = b"\xee\xff\x04\x03\0\0" + bytes([128, 2, 0, 4, 1, int(sequence)])
    for encoder, row in zip(encoders, distances):
        body += struct.pack("<HB", encoder // 256, encoder % 256) + b"".join(struct.pack("<HBB", distance, reflectivity, 9) for distance in row)
    tail = bytes(18) + struct.pack("<hI", 2000, us) + bytes([mode, 0x42, DATE[0] - 1900, *DATE[1:]])
    return body + b"\x03" * 4 + tail + b"\x05" * (8 if sequence else 4)


def angles_csv(elevation_deg, azimuth_deg):
    rows = (f"{channel + 1},{e:.3f},{a:.3f}" for channel, (e, a) in enumerate(zip(elevation_deg, azimuth_deg)))
    return "\n".join(["Channel,Elevation,Azimuth", *rows]) + "\n"


def velodyne_turn(turns=1):
    """Turns of 100 ms of a VLP-16 that sees a sphere of 10 m, as (microseconds, packet): 12 blocks of 32 returns."""
    for number in range(76 * turns):
        blocks = (36000 * (12 * number + block) // (12 * 76) % 36000 for block in range(12))
        us = 100_000 * number // 76
        yield us, b"".join(struct.pack("<HH", 0xEEFF, azimuth) + struct.pack("<HB", 5000, 77) * 32 for azimuth in blocks) + \
            struct.pack("<IBB", us, 0x37, 0x22)


# ---- captures ----

def udp_frame(source, port, payload, vlan=False, fragment=0):
    """An Ethernet frame with a datagram of IPv4, or IPv6 where the source is of 16 bytes."""
    udp = struct.pack(">HHHH", 10000, port, 8 + len(payload), 0) + payload
    if len(source) == 16:
        kind, network = b"\x86\xdd", struct.pack(">IHBB", 6 << 28, len(udp), 17, 64) + source + b"\xfe" * 16
    else:
        kind = b"\x08\x00"
        network = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 1, fragment, 64, 17, 0) + source + b"\xff" * 4
    return b"\xaa" * 6 + b"\xbb" * 6 + (b"\x81\x00\x00\x05" if vlan else b"") + kind + network + udp


def pcap(rows, order="<", nanoseconds=False, link=1):
    """A .pcap of (ns, frame)."""
    out = [struct.pack(order + "IHHiIII", 0xA1B23C4D if nanoseconds else 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)]
    for ns, frame in rows:
        part = ns % 10 ** 9 // (1 if nanoseconds else 1000)
        out += [struct.pack(order + "IIII", ns // 10 ** 9, part, len(frame), len(frame)), frame]
    return b"".join(out)


def _block(order, kind, body):
    body += b"\0" * (-len(body) % 4)
    return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)


def pcapng(rows, order="<"):
    """A .pcapng of (ns, frame) with two interfaces: the packets are of the second, whose clock counts nanoseconds."""
    out = _block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += _block(order, 1, struct.pack(order + "HHI", 105, 0, 65535))
    out += _block(order, 1, struct.pack(order + "HHI", 1, 0, 65535) + struct.pack(order + "HHB3xHH", 9, 1, 9, 0, 0))
    for ns, frame in rows:
        out += _block(order, 6, struct.pack(order + "IIIII", 1, ns >> 32, ns & 0xFFFFFFFF, len(frame), len(frame)) + frame)
    return out


def rmc(hour_minute_second, position="4807.038,N,01131.000,W", state="A", date="141123"):
    """An RMC sentence with its checksum."""
    text = f"GPRMC,{hour_minute_second},{state},{position},022.4,084.4,{date},003.1,W"
    total = 0
    for letter in text.encode():
        total ^= letter
    return f"${text}*{total:02X}\r\n".encode()


# ---- RoboSense ----

ROBOSENSE = {  # blocks, returns of a block, bytes before the blocks, header, unit [m], a block [us], lens outward and upward [m]
    "RS-LiDAR-16": SimpleNamespace(blocks=12, returns=32, lasers=16, old=(1, 0, 0), unit_m=0.005, block_us=111.0, lens=(0.03825, 0)),
    "RS-LiDAR-32": SimpleNamespace(blocks=12, returns=32, lasers=32, old=(2, 0, 0), unit_m=0.005, block_us=55.52, lens=(0.03997, 0)),
    "Bpearl": SimpleNamespace(blocks=12, returns=32, lasers=32, old=(3, 0, 0), unit_m=0.005, block_us=55.52, lens=(0.01473, 0.09427)),
    "Bpearl 4": SimpleNamespace(blocks=12, returns=32, lasers=32, old=(0, 3, 4), unit_m=0.0025, block_us=55.56, lens=(0.01619, 0.09571)),
    "Helios": SimpleNamespace(blocks=12, returns=32, lasers=32, old=None, unit_m=0.0025, block_us=55.56, lens=(0.03498, 0)),
    "Helios 16P": SimpleNamespace(blocks=12, returns=32, lasers=16, old=None, unit_m=0.0025, block_us=111.12, lens=(0.03498, 0)),
    "Ruby (RS-128)": SimpleNamespace(blocks=3, returns=128, lasers=128, old=None, unit_m=0.005, block_us=55.55, lens=(0.03615, 0)),
    "Ruby Plus": SimpleNamespace(blocks=3, returns=128, lasers=128, old=None, unit_m=0.005, block_us=55.56, lens=(0.02892, 0)),
    "Airy": SimpleNamespace(blocks=8, returns=48, lasers=96, old=None, unit_m=0.005, block_us=111.08, lens=(0.01002, 0.04532), parts=2),
}


def _utc(seconds, us):
    return seconds.to_bytes(6, "big") + us.to_bytes(4, "big")


def robosense_packet(name, azimuths, distances, us, reflectivity=60):
    """MSOP. azimuths: of each block [0.01 deg]; distances: (blocks, returns) in units of the model; us: of the second of DATE."""
    model, utc = ROBOSENSE[name], _utc(1_700_000_000, us)
    date = bytes([DATE[0] - 2000, *DATE[1:]]) + struct.pack(">HH", us // 1000, us % 1000)
    mark = b"\xff\xee"
    if model.old:
        head = bytes.fromhex("55aa050a5aa550a0") + bytes(12) + (utc if name == "Bpearl 4" else date) + bytes(model.old) + bytes(9)
    elif model.lasers < 128:
        kind = {"Helios": b"\0\x06\x01", "Helios 16P": b"\0\x06\x03", "Airy": b"\0\0\x02"}[name]
        head = bytes.fromhex("55aa055a0001") + bytes(11) + (b"\0" if name == "Airy" else b"\x01") + bytes(2) + utc + kind + bytes(9)
    else:
        kind = {"Ruby (RS-128)": b"\x04\x01\0", "Ruby Plus": b"\0\x05\x01"}[name]
        head, mark = bytes.fromhex("55aa055a0001") + bytes(4) + utc + bytes(10) + kind + bytes(47), b"\xfe\x01"
    body = b"".join(mark + struct.pack(">H", azimuth) + b"".join(struct.pack(">HB", distance, reflectivity) for distance in row)
                    for azimuth, row in zip(azimuths, distances))
    return (head + body).ljust(1248, b"\0")


def difop(name, vertical_deg, horizontal_deg, reverse=False, sentence=b"", mounting=255):
    """The packet with the angles."""
    out = bytearray(1248)
    out[:8] = bytes.fromhex("a5ff005a11115555")
    if name == "RS-LiDAR-16":
        for laser, angle in enumerate(vertical_deg):
            assert (angle < 0) == (laser < 8)
            out[1165 + 3 * laser:1168 + 3 * laser] = round(abs(angle) * 1e4).to_bytes(3, "big")
        return bytes(out)
    per_deg, more = 1000 if name == "RS-LiDAR-32" else 100, [0.0] * (16 if name == "Helios 16P" else 0)
    for at, angle in enumerate([*vertical_deg, *more, *horizontal_deg, *more]):
        out[468 + 3 * at:471 + 3 * at] = struct.pack(">BH", int(angle < 0), round(abs(angle) * per_deg))
    out[289] = mounting
    if name.startswith("Bpearl"):
        out[337] = reverse
    out[382:382 + len(sentence)] = sentence
    return bytes(out)


def m1_packet(number, us, points, reflectivity=60):
    """points: (25, 5) of (distance [5 mm], pitch, yaw [0.01 deg])."""
    body = b"".join(bytes([2 * block, 1]) + b"".join(struct.pack(">HHHBBB", d, pitch + 32768, yaw + 32768, reflectivity, 0, 0) for d, pitch, yaw in row)
                    for block, row in enumerate(points))
    return bytes.fromhex("55aa5aa5") + struct.pack(">HH", number, 0) + bytes(2) + _utc(1_700_000_000, us) + bytes(12) + body + bytes(3)


def m2_packet(number, us, points, reflectivity=60):
    """points: (25, 5) of (distance [5 mm], x y z of the direction [1 / 32768])."""
    body = b"".join(bytes([2 * block, 1]) + b"".join(struct.pack(">HhhhBB", *point, reflectivity, 0) for point in row)
                    for block, row in enumerate(points))
    return bytes.fromhex("55aa5aa5") + struct.pack(">HH", number, 0) + bytes(2) + _utc(1_700_000_000, us) + bytes(12) + body + bytes(10)


def e1_packet(number, us, points, reflectivity=60):
    """points: 96 of (distance [5 mm], x y z of the direction [1 / 32768])."""
    body = b"".join(struct.pack(">HHhhhBB", 3 * at, *point, reflectivity, 0) for at, point in enumerate(points))
    return bytes.fromhex("55aa5aa5") + struct.pack(">HH", number, 0) + bytes(2) + _utc(1_700_000_000, us) + bytes(12) + body + bytes(16)


# ---- Livox ----

def livox_packet(time_ns, kind, points, step_ns=4800, reflectivity=60):
    """points: x y z in mm (kind 1) or cm (2); or distance [mm], theta, phi [0.01 deg] (3)."""
    layout = {1: "<iiiBB", 2: "<hhhBB", 3: "<IHHBB"}[kind]
    data = b"".join(struct.pack(layout, *point, reflectivity, 0) for point in points)
    head = struct.pack("<BHHHHBBB12xI", 0, 36 + len(data), step_ns * len(points) // 100, len(points), 7, 0, kind, 1, 0xABCD)
    return head + struct.pack("<Q", time_ns) + data


def livox_imu(time_ns, rates, forces):
    """rad/s and g."""
    return struct.pack("<BHHHHBBB12xIQ6f", 0, 60, 0, 1, 7, 0, 0, 1, 0xABCD, time_ns, *rates, *forces)
