"""A city in tiles, a million points or NDT_WEB_POINTS, in ndt-web and in its page: all points are served, memory stays within the bounds
of docs/web.md, and the page asks for no more than it can see."""
import math
import os
import subprocess

import pytest
from web_programs import Web, wait_until

POINTS = int(float(os.environ.get("NDT_WEB_POINTS") or 1e6))
POINTS_PER_SQUARE = 0.74  # of a city, per square of the map's spacing
MARGIN_M = 320  # by which the map is larger than the extent
BUDGET = 1_000_000  # of the page


def simulate(bin_dir, folder, extent_m, spacing_m):
    """Points in folder/map.pcd, a folder of tiles."""
    command = [f"{bin_dir}/ndt-sim", "--world", "city", "--extent", f"{extent_m:.0f}", "--map-spacing", f"{spacing_m:.3f}"]
    command += ["--scans", "1", "--beams", "16", "--columns", "36", "--out", str(folder), "--force"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    line = next(line for line in text.splitlines() if line.endswith(" points"))
    return int(line.split()[-2])


def make_city(bin_dir, folder, points):
    """About this many points: how many there are."""
    spacing_m = 0.2
    extent_m = max(math.sqrt(points / POINTS_PER_SQUARE) * spacing_m - MARGIN_M, 200)
    count = simulate(bin_dir, folder, extent_m, spacing_m)
    for _ in range(3):
        if abs(count - points) < 0.15 * points:
            break
        spacing_m *= math.sqrt(count / points)
        count = simulate(bin_dir, folder, extent_m, spacing_m)
    return count


@pytest.fixture(scope="module")
def city(bin_dir, tmp_path_factory):
    """A stopped ndt-web of the city, and its number of points."""
    folder = tmp_path_factory.mktemp("w")
    count = make_city(bin_dir, folder, POINTS)
    web = Web(bin_dir, folder, "--map", folder / "map.pcd", token=None)
    yield web, count
    web.end()


def wait_complete(page):
    def complete():
        stats = page.evaluate("() => ndt.view.stats")
        return stats["complete"] and stats

    return wait_until(lambda: f"all is drawn: {page.evaluate('() => ndt.view.stats')}", complete, 300)


def turn(page):
    """Turns the view by mouse."""
    box = page.locator("#view").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(40):
        page.mouse.move(x + 150 * math.sin(step / 20), y + 20 * math.sin(step / 31))
    page.mouse.up()


def test_large_map(city, browser):
    web, count = city
    assert 0.7 * POINTS < count < 1.4 * POINTS
    web.start()
    wait_until(lambda: f"the map is ready: {web.get_json('api/map')}", lambda: web.get_json("api/map")["state"] == "ready", 600)
    info = web.get_json("api/map")
    assert info["points"] == count and info["left_out"] == 0, (info, count)
    assert web.peak_bytes() < 2**20 * (60 + 18e-6 * count)
    assert web.rss_bytes() < 2**20 * (40 + 9e-6 * count)
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(web.url)
    page.wait_for_function("() => window.ndt && ndt.view.stats.points > 0")
    page.evaluate(f"() => {{ ndt.view.setMode('free'); ndt.view.setPointBudget({BUDGET}); ndt.view.fit(); }}")
    seen = [wait_complete(page)]
    assert seen[0]["nodes"] > 20
    turn(page)
    seen.append(wait_complete(page))
    page.evaluate("() => { const v = ndt.view; v.lookAt(v.pick(v.canvas.clientWidth / 2, v.canvas.clientHeight / 2));"
                  "for (let i = 0; i < 9; i++) v.camera.zoom(0.75); v.camera.orbit(0.5, -0.45); v.cameraMoved(); }")
    seen.append(wait_complete(page))
    turn(page)
    seen.append(wait_complete(page))
    page.close()
    assert all(0 < one["points"] <= BUDGET for one in seen), seen
    assert seen[-1]["gpu_bytes"] <= 256e6 and seen[-1]["bytes"] < 9 * count, seen[-1]
    assert web.end() == 0


def test_a_load_is_interrupted(city):
    web, _ = city
    web.start()
    wait_until("the map is being loaded", lambda: web.get_json("api/map").get("percent", 0) > 10, 600)
    assert web.end() == 0
