"""Folders of replays with planted errors, and pages in a browser, for the tests of ndt-report."""
import contextlib
import json
import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

FIRST_STAMP_NS, STEP_NS = 1_700_000_000_000_000_000, 100_000_000
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


def drive_along(count):
    """Ground truth (count, 7): ten metres per second along a bend."""
    heading = np.linspace(0, 1.2, count)
    xy = np.cumsum(np.stack([np.cos(heading), np.sin(heading)], axis=1), axis=0)
    return np.column_stack([xy, np.zeros(count), np.zeros((count, 2)), np.sin(heading / 2), np.cos(heading / 2)])


def wander(rng, count, deviation, phi=0.6):
    """(count, 3): errors per axis whose neighbours are correlated."""
    noise = rng.normal(size=(count, 3))
    out = noise.copy()
    for at in range(1, count):
        out[at] = phi * out[at - 1] + math.sqrt(1 - phi * phi) * noise[at]
    return deviation * out


def write_run(folder, pose, truth=None, lost=(), settings=None, summary=None, align_us=400.0, confidence=0.99, first=0, rows=None):
    """A folder as ndtd writes it: pose (N, 7) of scans from `first` on; lost: rows without a pose; align_us, confidence: one or (N,);
    rows: row -> keys that differ."""
    folder = Path(folder)
    folder.mkdir(parents=True)
    count = len(pose)
    align_us, confidence = (np.broadcast_to(one, count) for one in (align_us, confidence))
    lines = []
    for at in range(count):
        row = {"seq": first + at, "stamp_ns": FIRST_STAMP_NS + STEP_NS * (first + at), "frame_id": "map", "outcome": "converged",
               "reason": "", "state": "tracking", "iterations": 4 + at % 3, "evaluations": 5, "confidence": float(confidence[at]),
               "match_ratio": 0.9, "nvtl_normalized": 0.6, "map_id": 7, "config_hash": 8, "decode_us": 30.0, "queue_us": 0.0,
               "preprocess_us": 500.0, "upload_us": 10.0, "align_us": float(align_us[at]), "publish_us": 9.0, "pose": pose[at].tolist(),
               "covariance": (np.eye(6) * 1e-4).ravel().tolist()}
        if at in lost:
            row.update(outcome="low_score", reason="the score is low", state="lost")
            del row["pose"], row["covariance"]
        row.update((rows or {}).get(at, {}))
        lines.append(json.dumps(row))
    (folder / "results.jsonl").write_text("\n".join(lines) + "\n")
    if truth is not None:
        stamps = [divmod(FIRST_STAMP_NS + STEP_NS * (first + at), 10**9) for at in range(count)]
        (folder / "truth.tum").write_text("".join(
            f"{whole}.{part:09d} " + " ".join(f"{value:.17g}" for value in one) + "\n" for (whole, part), one in zip(stamps, truth)))
    if settings is not None:
        sections = "".join(f"{name}:\n" + "".join(f"  {key}: {value}\n" for key, value in rows.items()) for name, rows in settings.items())
        (folder / "config.yaml").write_text(sections)
    (folder / "summary.json").write_text(json.dumps({"bag": "drive.bag", "map_points": 1000, **(summary or {})}))
    return folder


def replay(run_program, folder, bag, world, *options):
    """Replays a bag into a folder."""
    run_program("ndtd", "--replay", bag, "--map", world, "--output", folder, *options)
    return folder


@contextlib.contextmanager
def chromium():
    """A browser; skips without playwright or Chromium (NDT_CHROMIUM, or on PATH)."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = os.environ.get("NDT_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not path:
        pytest.skip("Chromium is not installed (NDT_CHROMIUM)")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def check_page(browser, path, viewport, scheme="light"):
    """Opens a page; no error, no request, all pictures decoded, no sideways scrolling. Returns what the page says of itself."""
    context = browser.new_context(viewport=viewport, color_scheme=scheme)
    page, complaints, asked = context.new_page(), [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(Path(path).resolve().as_uri())
    found = page.evaluate("""async () => {
        await Promise.all([...document.images].map(image => image.decode()));
        const box = document.querySelector('svg.figure')?.getBoundingClientRect();
        return {images: document.images.length, broken: [...document.images].filter(image => !image.naturalWidth).length,
                figures: document.querySelectorAll('figure svg.figure').length, text: document.body.innerText,
                width: document.documentElement.scrollWidth, drawn: box ? box.width * box.height : 0,
                ids: [...document.querySelectorAll('[id]')].map(one => one.id),
                links: [...document.querySelectorAll('nav a')].map(one => one.getAttribute('href')),
                paper: getComputedStyle(document.body).backgroundColor};
    }""")
    context.close()
    assert complaints == [] and [url for url in asked if not url.startswith(("file:", "data:"))] == [] and len(asked) >= 1
    assert sum(url.startswith("file:") for url in asked) == 1 and found["broken"] == 0
    assert found["width"] <= viewport["width"], "the page scrolls sideways"
    assert len(found["ids"]) == len(set(found["ids"])) and all(link[1:] in found["ids"] for link in found["links"])
    return found
