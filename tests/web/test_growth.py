"""Nothing grows: a long drive at many times its pace, then the memory of page, ndt-web and daemon.

NDT_WEB_SCANS: scans of the drive; 18 000 are half an hour at 10 Hz."""
import os

import pytest
from web_programs import LapSender, wait_until

SCANS = int(os.environ.get("NDT_WEB_SCANS", "500"))
RATE_HZ = float(os.environ.get("NDT_WEB_RATE", "100"))
MIB = 1 << 20
# From the second look to the last. The page's trail fills up to its limit meanwhile, 0.2 kB per scan. A leak of a
# kilobyte per scan is 9 MiB in half an hour; short runs see larger ones.
LIMITS_MIB = {"page": 6, "ndt-web": 8, "ndtd": 6}


class Heap:
    """The JavaScript heap of a page behind its garbage collection, by the protocol of the developer tools."""

    def __init__(self, page):
        self.tools = page.page.context.new_cdp_session(page.page)
        self.tools.send("HeapProfiler.enable")

    def used_mib(self):
        self.tools.send("HeapProfiler.collectGarbage")
        return self.tools.send("Runtime.getHeapUsage")["usedSize"] / MIB


def test_nothing_grows(bin_dir, programs, open_page, drive):
    pytest.importorskip("zmq")
    programs.web.options += ["--history", max(SCANS // 6, 100)]  # full before the first look
    programs.start()
    page = open_page(programs.web.url, programs.web.token)
    page.wait_for_map()
    page.expect_errors("404")  # a page that is late asks for scans that are no longer kept
    heap, rows = Heap(page), []
    with LapSender(programs.daemon.folder, drive) as sender:
        for part in range(4):  # warm-up, then three looks
            sender.send((part + 1) * SCANS // 4, RATE_HZ)
            last = send_until_answered(sender, programs.web)
            page.wait_for(f"scan {last} is in the page", "seq => Number(window.ndt.state.last?.seq) === seq", last)
            rows.append({"scans": sender.scans, "page": heap.used_mib(), "ndt-web": programs.web.rss_bytes() / MIB,
                         "ndtd": programs.daemon.rss_bytes() / MIB})
            print(" ".join(f"{key} {value:.1f}" for key, value in rows[-1].items()))
    for name, limit in LIMITS_MIB.items():
        assert rows[-1][name] - rows[1][name] < limit, (name, rows)
    assert programs.web.threads() < 40 and programs.web.descriptors() < 60


def send_until_answered(sender, web):
    """Number of the newest scan, which is answered. At this pace sockets drop messages: more scans follow a lost one."""
    for _ in range(24):
        last = sender.scans - 1
        try:
            wait_until(f"scan {last} is answered", lambda last=last: newest(web, last) == last, patience_s=5)
            return last
        except AssertionError:
            sender.send(sender.scans + 1, RATE_HZ)
    raise AssertionError("24 scans are not answered")


def newest(web, expected):
    """Number of the newest result, when it is near the expected one."""
    results = web.get_json(f"api/history?from={max(0, expected - 50)}&count=100")["results"]
    return results[-1]["seq"] if results else None
