"""Takes docs/images/web-live.png, web-phone.png and web-replay.png: the page of ndt-web with a simulated drive.

    build/bin/ndt-sim --seed 12 --scans 300 --map-spacing 0.1 --odometry --out /tmp/drive --force
    python3 docs/images/web_pictures.py build/bin /tmp/drive docs/images

The replay is on a map with a hole, so that the pose is lost and found again. Needs numpy, pillow, playwright and Chromium.
"""
import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

TOKEN = "0123456789abcdefghijklmnopqrstuv"
HOLE = (-139, -49, 30)  # x, y, radius [m]
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
# As many points as with a graphics card, however slow this machine is; a little more of the surroundings.
QUALITY = """() => {
    Object.defineProperty(ndt.view, "movingBudget", { get: () => 2e6, set() {} });
    ndt.view.camera.distance = 75;
    ndt.view.camera.pitch = 0.6;
}"""


# Stops at a scan for the picture, once its latency is that of a machine that does nothing else.
STOP = """() => new Promise((done) => {
    const look = () => {
        if (!(document.getElementById("latency").textContent < 3)) return setTimeout(look, 20);
        ndt.feed.source.close();
        ndt.state.arrival = Infinity;
        return done();
    };
    look();
})"""


def cut_hole(source, target):
    """Copies a binary PCD of float32 x y z intensity without the points in HOLE."""
    raw = source.read_bytes()
    at = raw.index(b"DATA binary\n") + 12
    points = np.frombuffer(raw, np.float32, offset=at).reshape(-1, 4)
    kept = points[np.hypot(points[:, 0] - HOLE[0], points[:, 1] - HOLE[1]) > HOLE[2]]
    header = raw[:at].replace(str(len(points)).encode(), str(len(kept)).encode())
    target.write_bytes(header + kept.tobytes())


@contextlib.contextmanager
def running(*command):
    with open(os.environ["RUNTIME_DIRECTORY"] + "/log", "a") as log:
        child = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log)
        try:
            yield
        finally:
            child.terminate()
            child.wait()


def take(browser, url, path, size, theme, actions):
    """actions: texts to be evaluated in the page, or numbers of seconds to wait."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=theme)
    page.goto(url)
    page.wait_for_function("() => window.ndt && ndt.stats().points > 10000 && ndt.state.result", timeout=120000)
    page.evaluate(QUALITY)
    for action in actions:
        page.evaluate(action) if isinstance(action, str) else time.sleep(action)
    picture = Image.open(io.BytesIO(page.screenshot(timeout=120000))).convert("RGB")
    save(picture, path)
    page.close()


def save(picture, path):
    """As PNG of 256 colours: those of the map do not displace the few of lines and texts, which are everywhere but in the middle."""
    width, height = picture.size
    around = picture.copy()
    around.paste((0, 0, 0), (0, height // 5, 2 * width // 3, 4 * height // 5) if width > height else (0, height // 5, width, height // 2))
    colours = []
    for part, count in ((around, 144), (picture, 112)):
        palette = part.quantize(count, Image.Quantize.MEDIANCUT).getpalette()[:3 * count]
        colours += palette + palette[:3] * (count - len(palette) // 3)
    palette = Image.new("P", (1, 1))
    palette.putpalette(colours)
    picture.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)


def main(programs, drive, out):
    programs, drive, out = pathlib.Path(programs).resolve(), pathlib.Path(drive).resolve(), pathlib.Path(out)
    work = drive / "pictures"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    os.environ["RUNTIME_DIRECTORY"] = str(work)
    map_path, hole, bag = drive / "map.pcd", work / "map.pcd", drive / "drive.bag"
    cut_hole(map_path, hole)
    token = work / "token"
    token.touch(0o600)
    token.write_text(TOKEN + "\n")
    live = f"http://127.0.0.1:8151/#token={TOKEN}"
    options = ["--set", "preprocess.deskew=time"]
    subprocess.run([programs / "ndtd", "--replay", bag, "--map", hole, *options, "--output", work / "replay"], check=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("NDT_CHROMIUM", "/usr/bin/chromium"), args=FLAGS)
        with running(programs / "ndt-web", "--listen", "127.0.0.1:8150", "--replay-dir", work / "replay"):
            time.sleep(3)
            take(browser, "http://127.0.0.1:8150/", out / "web-replay.png", (1440, 900), "light",
                 ["ndt.player.seek(100)", "document.getElementById('mode-top').click()", 15])
        with running(programs / "ndtd", "--map", map_path, *options), running(programs / "ndt-send", "--bag", bag, "--loop", "0"), \
                running(programs / "ndt-web", "--listen", "127.0.0.1:8151", "--allow-control", "--token-file", token):
            time.sleep(25)
            take(browser, live, out / "web-live.png", (1440, 900), "dark", [25, STOP, 8])
            take(browser, live, out / "web-phone.png", (390, 844), "dark",
                 ["document.getElementById('tab-overview').click()", 25, STOP, 8])
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:4])
