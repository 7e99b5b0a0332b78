"""What it costs to be watched: processor time of browser, ndt-web and ndtd with scans of 120 000 points at 10 Hz.

Printed, since the clock of a shared machine proves nothing; NDT_WEB_COST=1 runs it, with pytest's option -s."""
import os
import pathlib
import subprocess
import tempfile
import time

import pytest
from web_programs import Daemon, Drive, LapSender, Web, wait_until

pytestmark = pytest.mark.skipif(not os.environ.get("NDT_WEB_COST"), reason="a measurement: NDT_WEB_COST=1")
RATE_HZ, PART, ROUNDS = 10.0, 100, 4  # scans per part; parts with and without somebody who watches take turns


@pytest.fixture
def dense(bin_dir):
    return Drive(bin_dir, pathlib.Path(tempfile.mkdtemp()), "--scans", 60, "--beams", 64, "--columns", 1950)


def processes_of(browser):
    """CPU seconds of the processes of the browser so far, by kind; "GPU" is the software that stands in for one."""
    tools = browser.new_browser_cdp_session()
    used = {}
    for process in tools.send("SystemInfo.getProcessInfo")["processInfo"]:
        used[process["type"]] = used.get(process["type"], 0.0) + process["cpuTime"]
    tools.detach()
    return used


def test_cost(bin_dir, folder, dense, browser, open_page):
    pytest.importorskip("zmq")
    daemon = Daemon(bin_dir, folder, dense.map, **{"live.budget_ms": 1000}).start()
    web, watched, alone = Web(bin_dir, folder), [], []
    with LapSender(folder, dense) as sender:
        sender.send(PART // 2, RATE_HZ)
        for turn in range(ROUNDS * 2):
            page = None
            if turn % 2:
                web.start()
                page = open_page(web.url)
                page.wait_for_map()
                sender.send(sender.scans + 30, RATE_HZ)  # warm-up
                tasks = page.page.context.new_cdp_session(page.page)
                tasks.send("Performance.enable")
            before = snapshot(daemon, web, browser, tasks if page else None)
            sender.send(sender.scans + PART, RATE_HZ)
            after = snapshot(daemon, web, browser, tasks if page else None)
            row = {key: after[key] - before[key] for key in after}
            (watched if page else alone).append(row)
            print("watched" if page else "alone  ", " ".join(f"{k} {100 * v / row['wall']:.1f}%" for k, v in row.items() if k != "wall"))
            if page:
                print("  ", page.stats(), f"ndt-web {web.rss_bytes() / 1e6:.0f} MB")
                page.page.goto("about:blank")
                web.end()
    with_page, without = (sorted(row["ndtd"] for row in rows)[len(rows) // 2] for rows in (watched, alone))
    print(f"ndtd, median of {ROUNDS} parts: {1e3 * with_page / PART:.2f} ms of CPU per scan watched, {1e3 * without / PART:.2f} alone: "
          f"ratio {with_page / without:.3f}; {subprocess.getoutput('nproc')} cores, load {os.getloadavg()[0]:.1f}")
    wait_until("it still tracks", lambda: "tracking" in daemon.ctl("status", "--all"))
    daemon.end()


def snapshot(daemon, web, browser, tasks):
    row = {"wall": time.monotonic(), "ndtd": daemon.cpu_s()}
    if tasks:
        metrics = {m["name"]: m["value"] for m in tasks.send("Performance.getMetrics")["metrics"]}
        row.update({"ndt-web": web.cpu_s(), "page tasks": metrics["TaskDuration"], "page scripts": metrics["ScriptDuration"]})
        row.update(processes_of(browser))
    return row
