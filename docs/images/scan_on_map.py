"""Draws docs/images/scan-on-map.png: one scan of a simulated drive laid on the prior map at the pose that ndtd found.

    build/bin/ndt-sim --seed 3 --out /tmp/drive --force
    build/bin/ndtd --replay /tmp/drive/drive.bag --map /tmp/drive/map.pcd --set preprocess.deskew=time --out /tmp/drive/poses.tum
    python3 docs/images/scan_on_map.py /tmp/drive docs/images/scan-on-map.png

Needs numpy, msgpack and matplotlib.
"""
import struct
import sys

import matplotlib
import msgpack
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from PIL import Image  # noqa: E402


def read_pcd(path):
    """N x 3 points of a binary PCD whose first fields are float32 x y z."""
    with open(path, "rb") as file:
        header = {}
        for line in iter(file.readline, b""):
            key, *values = line.decode().split()
            header[key] = values
            if key == "DATA":
                break
        step = sum(int(size) for size in header["SIZE"])
        points = np.frombuffer(file.read(), np.uint8).reshape(-1, step)
    return points[:, :12].copy().view("<f4").astype(float)


def scans(path):
    """Messages of type scan: a bag is a header and then records of length, checksum and msgpack bytes."""
    data = open(path, "rb").read()
    at = 0
    while (at := data.find(b"\xa4type\xa4scan", at)) >= 0:
        begin = data.rfind(b"\xa1v\x01", 0, at) - 1
        unpacker = msgpack.Unpacker(max_bin_len=1 << 28)
        unpacker.feed(data[begin:begin + (1 << 24)])
        yield unpacker.unpack()
        at += 16


def rotation(q):
    x, y, z, w = q
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def main(folder, out, at=90):
    poses = np.loadtxt(f"{folder}/poses.tum")
    world = read_pcd(f"{folder}/map.pcd")
    scan = next(s for i, s in enumerate(scans(f"{folder}/drive.bag")) if i == at)
    fields = {name: offset for name, offset, _, _ in scan["fields"]}
    raw = np.frombuffer(scan["data"], np.uint8).reshape(scan["count"], scan["point_step"])
    points = np.stack([raw[:, fields[k]:fields[k] + 4].copy().view("<f4")[:, 0] for k in "xyz"], 1).astype(float)
    pose = poses[at]
    points = points @ rotation(pose[4:8]).T + pose[1:4]
    along = poses[at + 5, 1:3] - poses[at - 5, 1:3]
    along /= np.hypot(*along)
    turn = np.array([[along[0], -along[1], 0], [along[1], along[0], 0], [0, 0, 1]])  # the street lies along the picture
    world, points, track = ((p - pose[1:4]) @ turn for p in (world, points, poses[:, 1:4]))
    half = np.array([46.0, 23.0])
    near = lambda p: np.all(np.abs(p[:, :2]) < half * 1.1, axis=1)  # noqa: E731
    world, points = world[near(world)], points[near(points)]
    world = world[np.argsort(world[:, 2])]

    figure, axis = plt.subplots(figsize=(10, 5.2), dpi=110)
    axis.set_facecolor("white")
    axis.scatter(world[:, 0], world[:, 1], s=0.35, c=world[:, 2], cmap="gray_r", vmin=-6, vmax=6,
                 linewidths=0, rasterized=True, label="prior map")
    axis.scatter(points[:, 0], points[:, 1], s=1.2, c="#d1495b", linewidths=0, rasterized=True,
                 label=f"scan {at} at its pose")
    axis.plot(track[:, 0], track[:, 1], c="#00798c", lw=2, label="trajectory")
    axis.plot(0, 0, "o", c="#00798c", ms=8, mec="white")
    axis.set_aspect("equal")
    axis.set_xlim(-half[0], half[0])
    axis.set_ylim(-half[1], half[1])
    axis.set_xlabel("along the street [m]")
    axis.set_ylabel("across [m]")
    axis.legend(loc="upper right", markerscale=6, framealpha=0.95)
    figure.tight_layout()
    figure.savefig(out)
    Image.open(out).convert("RGB").quantize(64).save(out, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
