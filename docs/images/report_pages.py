"""Draws docs/images/report.png: two parts of the report of a simulated drive, as a browser shows it.

    build/bin/ndt-sim --seed 3 --scans 1000 --imu 100 --out /tmp/drive --force
    build/bin/ndtd --replay /tmp/drive/drive.bag --map /tmp/drive/map.pcd --report /tmp/drive/report.html
    python3 docs/images/report_pages.py /tmp/drive/report.html docs/images/report.png

Needs playwright, Chromium and pillow.
"""
import io
import pathlib
import shutil
import sys

from PIL import Image
from playwright.sync_api import sync_playwright

WIDTH, HEIGHT, GAP = 1280, 1600, 20


def shot(page, top):
    page.evaluate(f"window.scrollTo(0, {top})")
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def main(report, out):
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(pathlib.Path(report).resolve().as_uri())
        left = shot(page, 0)
        right = shot(page, page.evaluate("document.querySelector('#worst').getBoundingClientRect().top + scrollY + 40"))
        browser.close()
    both = Image.new("RGB", (2 * WIDTH + GAP, HEIGHT), (210, 214, 220))
    both.paste(left, (0, 0))
    both.paste(right, (WIDTH + GAP, 0))
    both.resize((1600, HEIGHT * 1600 // (2 * WIDTH + GAP)), Image.LANCZOS).quantize(200, dither=Image.Dither.NONE).save(out, optimize=True)


main(*sys.argv[1:])
