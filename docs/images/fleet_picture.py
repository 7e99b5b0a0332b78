"""Takes docs/images/fleet.png: the report of a fleet whose map has a hole.

    python3 docs/images/fleet_picture.py build/bin /tmp/fleet docs/images/fleet.png

Eight simulated drives on one street; the points of a box are left out of the map. Needs the Python package with its extra `fleet`,
playwright, Chromium and pillow.
"""
import io
import pathlib
import shutil
import subprocess
import sys

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import ndtd

BOX = ((105, 135), (-84, -54))  # x, y [m]
SETTINGS = ("preprocess.deskew=time",)


def cut_map(source, out):
    cloud = ndtd.read_cloud(source)
    points = cloud["points"] + cloud["origin"]
    inside = np.all([(points[:, axis] > low) & (points[:, axis] < high) for axis, (low, high) in enumerate(BOX)], axis=0)
    kept = points[~inside].astype("<f4")
    head = (f"VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH {len(kept)}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\n"
            f"POINTS {len(kept)}\nDATA binary\n")
    out.write_bytes(head.encode() + kept.tobytes())


def main(bins, work, out):
    work = pathlib.Path(work)
    (work / "drives").mkdir(parents=True, exist_ok=True)
    for number in range(1, 9):
        subprocess.run([f"{bins}/ndt-sim", "--out", f"{work}/drives/{number}", "--seed", "4", "--scans", "75", "--rate", "5", "--range", "20",
                        "--odometry", "--noise", f"0.0{number}", "--force"], check=True)
    cut_map(work / "drives/1/map.pcd", work / "street.pcd")
    run = work / "release"
    shutil.rmtree(run, ignore_errors=True)
    subprocess.run(["ndt-fleet", "run", "--bags", f"{work}/drives/*/drive.bag", "--map", f"{work}/street.pcd", "--set", *SETTINGS,
                    "--ndtd", f"{bins}/ndtd", "--out", str(run)], check=True)
    subprocess.run(["ndt-fleet", "report", str(run), "--out", f"{work}/release.html"], check=True)
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1440}, color_scheme="light")
        page.goto((work / "release.html").resolve().as_uri())
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        browser.close()
    picture.resize((1000, 1125), Image.LANCZOS).save(out, optimize=True)


main(*sys.argv[1:])
