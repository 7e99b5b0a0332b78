#!/usr/bin/env python3
"""A large map in ndt-web and in its page: time, memory, bytes, pictures per second.

  web_large_map.py BIN_DIR [--points N] [--keep DIR]

Simulates a city of about N points (default: 20 million, tiles of 100 m), serves it with ndt-web without a daemon, and
opens it in Chromium with software rendering (NDT_CHROMIUM, default: chromium). Prints a table of Markdown. Exit codes: 0
done, 1 a check failed. What depends on the machine is printed; what does not is checked: that all points are served,
that memory stays within the bounds of docs/web.md, that the page asks for no more than it can see."""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from web_programs import Web, wait_until

POINTS_PER_SQUARE = 0.74  # of a city, per square of the map's spacing
MARGIN_M = 320  # by which the map is larger than the extent
BUDGET = 1_000_000  # of the page
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--disable-dev-shm-usage"]


def simulate(bin_dir, folder, extent_m, spacing_m):
    """Points in folder/map.pcd, a folder of tiles."""
    command = [f"{bin_dir}/ndt-sim", "--world", "city", "--extent", f"{extent_m:.0f}", "--map-spacing", f"{spacing_m:.3f}"]
    command += ["--scans", "1", "--beams", "16", "--columns", "36", "--out", str(folder), "--force"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    line = next(line for line in text.splitlines() if line.endswith(" points"))
    return int(line.split()[-2])


def make_city(bin_dir, folder, points):
    """About this many points: (path of the tiles, points in them)."""
    spacing_m = 0.2
    extent_m = max(math.sqrt(points / POINTS_PER_SQUARE) * spacing_m - MARGIN_M, 200)
    count = simulate(bin_dir, folder, extent_m, spacing_m)
    for _ in range(3):
        if abs(count - points) < 0.15 * points:
            break
        spacing_m *= math.sqrt(count / points)
        count = simulate(bin_dir, folder, extent_m, spacing_m)
    return folder / "map.pcd", count


def memory_mb(pid, key):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) / 1024
    raise KeyError(key)


def serve(web, points):
    """Starts ndt-web and waits for the map; its times and memory."""
    begin = time.monotonic()
    web.start()
    wait_until(lambda: f"the map is ready: {web.get_json('api/map')}", lambda: web.get_json("api/map")["state"] == "ready", 600)
    ready_s = time.monotonic() - begin
    info = web.get_json("api/map")
    assert info["points"] == points and info["left_out"] == 0, (info, points)
    pid = web.process.pid
    row = {"load_s": ready_s, "load_cpu_s": web.cpu_s(), "nodes": info["nodes"]}
    row.update({"peak_mb": memory_mb(pid, "VmHWM"), "after_mb": memory_mb(pid, "VmRSS")})
    assert row["peak_mb"] < 60 + 18e-6 * points, row
    assert row["after_mb"] < 40 + 9e-6 * points, row
    return row


def stop_while_loading(web):
    """Seconds from SIGTERM to the end, in the middle of a load."""
    web.start()
    wait_until("the map is being loaded", lambda: web.get_json("api/map").get("percent", 0) > 10, 600)
    begin = time.monotonic()
    assert web.end() == 0
    return time.monotonic() - begin


def stats_of(page):
    return page.evaluate("() => ndt.view.stats")


def wait_complete(page):
    def complete():
        stats = stats_of(page)
        return stats["complete"] and stats

    return wait_until(lambda: f"all is drawn: {stats_of(page)}", complete, 300)


def gpu_cpu_s(browser):
    """Processor time of the software that stands in for a GPU."""
    tools = browser.new_browser_cdp_session()
    rows = tools.send("SystemInfo.getProcessInfo")["processInfo"]
    tools.detach()
    return sum(row["cpuTime"] for row in rows if row["type"] == "GPU")


def drag(browser, page, seconds):
    """Turns the view by mouse: points, pictures per second, and processor time of a picture, of the second half."""
    box = page.locator("#view").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    step, marks = 0, []
    for part in range(2):
        marks.append((time.monotonic(), gpu_cpu_s(browser), stats_of(page)))
        while time.monotonic() < marks[-1][0] + seconds / 2:
            step += 1
            page.mouse.move(x + 150 * math.sin(step / 20), y + 20 * math.sin(step / 31))
    marks.append((time.monotonic(), gpu_cpu_s(browser), stats_of(page)))
    page.mouse.up()
    (begin, cpu, before), (end, cpu_end, after) = marks[1], marks[2]
    pictures = max(1, after["pictures"] - before["pictures"])
    return {"points": after["points"], "fps": pictures / (end - begin), "cpu_ms": 1e3 * (cpu_end - cpu) / pictures}


def cost_ms(browser, page, call, count):
    """Processor time of one of `count` pictures, each after a call of the view such as redraw."""
    wait_complete(page)
    time.sleep(1)  # what the last picture left to the browser
    cpu = gpu_cpu_s(browser)
    for _ in range(count):
        before = stats_of(page)["pictures"]
        page.evaluate(f"() => ndt.view.{call}()")
        wait_until("a picture", lambda: stats_of(page)["pictures"] > before)
    return 1e3 * (gpu_cpu_s(browser) - cpu) / count


def browser_memory_mb(browser):
    """Resident memory of the renderer and of the process that stands in for a GPU."""
    tools = browser.new_browser_cdp_session()
    rows = tools.send("SystemInfo.getProcessInfo")["processInfo"]
    tools.detach()
    found = {}
    for row in rows:
        try:
            found[row["type"]] = max(found.get(row["type"], 0), memory_mb(row["id"], "VmRSS"))
        except (OSError, KeyError):
            pass
    return found


def look(browser, url, keep, drag_s, pictures):
    """Opens the page, flies over the map and down to a street."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    begin = time.monotonic()
    page.goto(url)
    page.wait_for_function("() => window.ndt && ndt.view.stats.points > 0")
    row = {"first_s": time.monotonic() - begin}
    page.evaluate(f"() => {{ ndt.view.setMode('free'); ndt.view.setPointBudget({BUDGET}); ndt.view.fit(); }}")
    row["all"] = wait_complete(page)
    row["all_s"] = time.monotonic() - begin
    row["all"]["cpu_ms"] = cost_ms(browser, page, "changeMap", pictures)
    row["redraw_ms"] = cost_ms(browser, page, "redraw", pictures)
    shot(page, keep, "all")
    row["all_moving"] = drag(browser, page, drag_s)
    shot(page, keep, "moving")
    row["all_again"] = wait_complete(page)
    page.evaluate("() => { const v = ndt.view; v.lookAt(v.pick(v.canvas.clientWidth / 2, v.canvas.clientHeight / 2));"
                  "for (let i = 0; i < 9; i++) v.camera.zoom(0.75); v.camera.orbit(0.5, -0.45); v.cameraMoved(); }")
    row["street"] = wait_complete(page)
    row["street"]["cpu_ms"] = cost_ms(browser, page, "changeMap", pictures)
    shot(page, keep, "street")
    row["street_moving"] = drag(browser, page, drag_s)
    row["end"] = wait_complete(page)
    metrics = page.context.new_cdp_session(page)
    metrics.send("Performance.enable")
    values = {m["name"]: m["value"] for m in metrics.send("Performance.getMetrics")["metrics"]}
    row["heap_mb"] = values["JSHeapUsedSize"] / 1e6
    row["memory_mb"] = browser_memory_mb(browser)
    page.close()
    for name in ("all", "street", "end"):
        assert 0 < row[name]["points"] <= BUDGET, (name, row[name])
    assert row["end"]["gpu_bytes"] <= 256e6, row["end"]
    return row


def shot(page, keep, name):
    if keep:
        page.locator("#view").screenshot(path=str(pathlib.Path(keep) / f"large-map-{name}.png"))


def table(points, row):
    """The figures as Markdown."""
    def still(name):
        now = row[name]
        return f"{now['points'] / 1e6:.2f} M points in {now['nodes']} nodes, {now['cpu_ms']:.0f} ms of processor time per picture"

    def turning(name):
        now = row[name]
        return f"{now['points'] / 1e3:.0f} k points, {now['cpu_ms']:.0f} ms of processor time per picture, {now['fps']:.1f} pictures/s"

    lines = [("points of the map, nodes", f"{points / 1e6:.1f} M, {row['nodes']}"),
             ("`ndt-web`: until the map is ready", f"{row['load_s']:.1f} s, {row['load_cpu_s']:.1f} s of processor time"),
             ("`ndt-web`: memory at the peak, afterwards", f"{row['peak_mb']:.0f} MB, {row['after_mb']:.0f} MB"),
             ("`ndt-web`: SIGTERM while it loads", f"{1e3 * row['stop_s']:.0f} ms until the end"),
             ("page: first points after opening it", f"{row['first_s']:.1f} s"),
             ("page: everything in sight, complete", f"{row['all_s']:.1f} s, {row['all']['bytes'] / 1e6:.1f} MB received"),
             ("page, whole map: still", still("all")), ("page, whole map: turning", turning("all_moving")),
             ("page, street: still", still("street")), ("page, street: turning", turning("street_moving")),
             ("page: a scan or pose over a still map", f"{row['redraw_ms']:.0f} ms of processor time"),
             ("page: received in all", f"{row['end']['bytes'] / 1e6:.1f} MB of {points * 8e-6:.0f} MB"),
             ("page: points on the GPU, JavaScript heap", f"{row['end']['gpu_bytes'] / 1e6:.0f} MB, {row['heap_mb']:.0f} MB"),
             ("browser: renderer, software GPU",
              f"{row['memory_mb'].get('renderer', 0):.0f} MB, {row['memory_mb'].get('GPU', 0):.0f} MB")]
    return "\n".join(["| | |", "|---|---|"] + [f"| {name} | {value} |" for name, value in lines])


def measure(bin_dir, browser, points, keep=None, drag_s=8, pictures=6):
    """All figures of a map of about this many points. drag_s, pictures: over how much processor times of pictures are taken."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="w"))
    path, count = make_city(bin_dir, folder, points)
    web = Web(bin_dir, folder, "--map", path, token=None)
    try:
        row = serve(web, count)
        row.update(look(browser, web.url, keep, drag_s, pictures))
        web.end()
        row["stop_s"] = stop_while_loading(web)
    finally:
        web.end()
        subprocess.run(["rm", "-rf", str(folder)], check=False)
    return count, row


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("bin_dir", type=lambda text: pathlib.Path(text).resolve())
    options.add_argument("--points", type=float, default=20e6)
    options.add_argument("--keep", help="folder for screenshots")
    options.add_argument("--json", action="store_true", help="also print all values")
    args = options.parse_args()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = os.environ.get("NDT_CHROMIUM") or subprocess.run(["which", "chromium"], capture_output=True, text=True).stdout.strip()
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            count, row = measure(args.bin_dir, browser, int(args.points), args.keep)
        except AssertionError as failed:
            print(f"failed: {failed}", file=sys.stderr)
            return 1
        finally:
            browser.close()
    print(table(count, row))
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if args.json:
        print(json.dumps(row, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
