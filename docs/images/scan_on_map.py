"""Draws docs/images/scan-on-map.png: one scan of a simulated drive laid on the prior map at the pose that ndtd found.

    build/bin/ndt-sim --seed 3 --out /tmp/drive --force
    build/bin/ndtd --replay /tmp/drive/drive.bag --map /tmp/drive/map.pcd --output /tmp/drive/run
    python3 docs/images/scan_on_map.py /tmp/drive/run docs/images/scan-on-map.png

Needs the Python package: pip install './tools/python[report]'.
"""
import io
import sys

import numpy as np

import ndtd
from ndtd.poses import matrix
from ndtd.report import figures, map_above
from ndtd.report.raster import Box
from ndtd.report.run import Run

HALF_M = np.array([46.0, 23.0])


def main(folder, out, at=90):
    run = Run(folder)
    pose = run.pose[at]
    along = run.pose[at + 5, :2] - run.pose[at - 5, :2]
    turn = np.array([[along[0], along[1]], [-along[1], along[0]]]) / np.hypot(*along)  # the street lies along the picture
    window = map_above.Window(pose[:3], 1.2 * float(HALF_M[0]))
    map_above.read(run.path_of("map"), Box.around(pose, 100, 100), 1, 1, [window])
    scan = next(ndtd.decode_scan(one.payload) for one in ndtd.BagReader(run.path_of("bag"))
                if one.type == "scan" and ndtd.decode_scan(one.payload)["stamp_ns"] == run.stamp_ns[at])
    points = scan["points"][:, :3] @ matrix(pose)[:3, :3].T
    world, points, track = (one[:, :2] @ turn.T for one in (window.points, points, run.pose[:, :2] - pose[:2]))
    order = np.argsort(window.points[:, 2])
    box = Box.around(np.zeros(2), *(2 * HALF_M))
    drawing = figures.new("scan-on-map", "A scan on the map", height_in=4.6)
    axes = drawing.axes[0]
    axes.scatter(*world[order].T, s=0.3, c=window.points[order, 2], cmap="gray_r", vmin=-6, vmax=6, linewidths=0, label="prior map")
    axes.plot(*points[box.holds(points)].T, ".", color=figures.VERMILION, markersize=1.3, markeredgewidth=0, label=f"scan {at} at its pose")
    axes.plot(*track.T, color=figures.BLUE, linewidth=2, label="trajectory")
    axes.plot(0, 0, "o", color=figures.BLUE, markersize=8, markeredgecolor=figures.PAPER)
    axes.set(xlim=(-HALF_M[0], HALF_M[0]), ylim=(-HALF_M[1], HALF_M[1]), aspect="equal", xlabel="along the street [m]", ylabel="across [m]")
    axes.grid(False)
    axes.legend(loc="upper right", frameon=True, facecolor=figures.PAPER, framealpha=0.95, markerscale=6)
    save(drawing, out)


def save(drawing, out):
    """A small file: 64 colours."""
    from PIL import Image

    image = Image.open(io.BytesIO(drawing.file("png"))).convert("RGB").resize((1100, 562))
    image.quantize(64, Image.Quantize.MAXCOVERAGE).save(out, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
