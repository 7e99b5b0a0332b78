"""Requests to the daemon: with the token by mouse and keyboard, without it and from other pages not at all."""
import http.server
import math
import threading

import pytest
from web_programs import read_bag, wait_until

START = 30  # the drive begins at this scan: the bag's own initial pose is left out


def true_pose(drive, number):
    """x, y, z, yaw of the vehicle at a scan of the simulated drive."""
    msgpack = pytest.importorskip("msgpack")
    messages = [msgpack.unpackb(payload) for _, payload in read_bag(drive.bag)]
    stamp = [m for m in messages if m["type"] == "scan"][number]["stamp_ns"]
    truth = min((m for m in messages if m["type"] == "truth"), key=lambda m: abs(m["stamp_ns"] - stamp))
    x, y, z, qx, qy, qz, qw = truth["pose"]
    return x, y, z, math.atan2(2 * (qw * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz))


def test_initial_pose_by_mouse(programs, open_page, drive, pictures):
    """Press at the place, drag along the heading, release: the daemon localises from there."""
    programs.start()
    page = open_page(programs.web.url, programs.web.token)
    page.wait_for_map()
    page.page.keyboard.press("g")
    page.page.keyboard.press("t")
    page.settle()
    x, y, _, yaw = true_pose(drive, START)
    begin = page.check("pixelOf", [x, y])
    end = page.check("pixelOf", [x + 15 * math.cos(yaw), y + 15 * math.sin(yaw)])
    assert max(begin["off"], end["off"]) < 3, "the place is not in the view"
    page.page.click("#control-pose")
    with page.page.expect_response("**/api/request") as answered:
        page.page.mouse.move(begin["x"], begin["y"])
        page.page.mouse.down()
        page.page.mouse.move((begin["x"] + end["x"]) / 2, (begin["y"] + end["y"]) / 2)
        page.page.mouse.move(end["x"], end["y"])
        pictures.take(page, "drag")
        page.page.mouse.up()
    sent, reply = answered.value.request.post_data_json, answered.value.json()
    assert reply["ok"], reply
    assert sent["op"] == "initial_pose" and math.hypot(sent["pose"][0] - x, sent["pose"][1] - y) < 3
    heading = 2 * math.atan2(sent["pose"][5], sent["pose"][6])
    assert abs(math.remainder(heading - yaw, math.tau)) < math.radians(15)
    programs.sender.start("--skip", START, "--limit", 20)
    programs.sender.wait()
    results = programs.web.get_json("api/history?from=0&count=2000")["results"]
    assert [r["state"] for r in results][-1] == "tracking" and results[-1]["confidence"] > 0.5, results[-1]
    end_x, end_y, *_ = true_pose(drive, START + 19)
    assert math.hypot(results[-1]["pose"][0] - end_x, results[-1]["pose"][1] - end_y) < 1.0


def test_localise_by_button(programs, open_page, pictures):
    programs.start()
    page = open_page(programs.web.url, programs.web.token)
    page.wait_for_map()
    programs.sender.start("--skip", START, "--loop", 0)
    page.page.keyboard.press("l")
    page.page.click("#localize-send")
    page.wait_for("the search is shown", "() => !document.getElementById('search-card').hidden")
    page.wait_for_state("tracking")
    pictures.take(page, "localised")
    assert "search_id 1" in programs.daemon.ctl("status", "--all")


def test_stop_asks_first(programs, open_page):
    programs.start()
    programs.sender.start("--loop", 0)
    page = open_page(programs.web.url, programs.web.token)
    page.wait_for_state("tracking")
    page.page.click("#control-run")
    assert "rejected 0" in programs.daemon.ctl("status", "--all")
    page.page.click("#stop-send")
    wait_until("scans are rejected", lambda: "rejected 0" not in programs.daemon.ctl("status", "--all"))
    page.wait_for("the page offers to resume", "() => document.getElementById('control-run-text').textContent === 'Resume'")
    page.page.click("#control-run")
    page.wait_for_state("tracking")


def test_the_token_leaves_the_address(programs, open_page):
    """It does not stay where it is shared by accident, and survives a reload."""
    programs.start()
    page = open_page(programs.web.url, programs.web.token)
    page.wait_for("control is offered", "() => !document.getElementById('control-buttons').hidden")
    assert programs.web.token not in page.page.url
    page.page.reload()
    page.wait_for("control is offered again", "() => window.ndt && !document.getElementById('control-buttons').hidden")
    assert not any(programs.web.token in url for url in page.requests)


def ask(page, headers):
    """Status of a request by a script of the page itself."""
    script = """headers => fetch('/api/request', {method: 'POST', headers, body: '{"op":"stop"}'}).then(r => r.status)"""
    return page.evaluate(script, {"Content-Type": "application/json", **headers})


def test_read_only_without_token(programs, open_page):
    programs.start()
    page = open_page(programs.web.url)
    page.expect_errors("401", "403")
    page.wait_for("it says that it is read-only", "() => !document.getElementById('read-only').hidden")
    assert not page.page.is_visible("#control-pose")
    page.page.keyboard.press("p")
    page.page.keyboard.press("l")
    assert not page.page.is_visible("#localize-dialog")
    assert ask(page, {}) in (401, 403)
    assert ask(page, {"Authorization": "Bearer guess"}) in (401, 403)
    assert "state       stopped" not in programs.daemon.ctl("status", "--all")


def test_read_only_unless_allowed(programs, open_page, bin_dir, folder):
    programs.web.options = [option for option in programs.web.options if option != "--allow-control"]
    del programs.web.options[-2:]  # nor the file of the token
    programs.start()
    page = open_page(programs.web.url, programs.web.token)
    page.expect_errors("403")
    page.wait_for("it says that it is read-only", "() => !document.getElementById('read-only').hidden")
    assert ask(page, {"Authorization": f"Bearer {programs.web.token}"}) == 403


ELSEWHERE = """<!doctype html><title>elsewhere</title><form id=f method=post target=g action="%(url)sapi/request" enctype="text/plain">
<input name='{"op":"stop","x":"' value='"}'></form><iframe name=g></iframe><iframe id=framed src="%(url)s"></iframe>"""
FORGERIES = """async ([url, token]) => {
  const post = headers => fetch(url + 'api/request', {method: 'POST', body: '{"op":"stop"}', headers});
  const tries = {
    read: () => fetch(url + 'api/status').then(r => r.text()),
    history: () => fetch(url + 'api/history?from=0&count=1').then(r => r.json()),
    simple: () => post({}),
    json: () => post({'Content-Type': 'application/json'}),
    bearer: () => post({'Content-Type': 'application/json', Authorization: 'Bearer ' + token}),
    events: () => new Promise((yes, no) => { const e = new EventSource(url + 'api/events'); e.onopen = yes; e.onerror = no; }),
  };
  const out = {};
  for (const [name, run] of Object.entries(tries))
    out[name] = await run().then(() => 'let through', () => 'refused');
  await fetch(url + 'api/request', {method: 'POST', mode: 'no-cors', body: '{"op":"stop"}', credentials: 'include'}).catch(() => 0);
  document.getElementById('f').submit();
  return out;
}"""


def last_outcome(web):
    return web.get_json("api/history?from=0&count=2000")["results"][-1]["outcome"]


class _Elsewhere(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write((ELSEWHERE % {"url": self.server.target}).encode())

    def log_message(self, *_arguments):
        pass


def test_other_pages_get_nothing(programs, browser):
    """A page of another origin, opened in the same browser, that even knows the token."""
    programs.start()
    programs.sender.start("--loop", 0)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere)
    server.target = programs.web.url
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = browser.new_context()
    try:
        own = context.new_page()
        own.goto(f"{programs.web.url}#token={programs.web.token}")
        other = context.new_page()
        other.goto(f"http://127.0.0.1:{server.server_port}/")
        outcome = other.evaluate(FORGERIES, [programs.web.url, programs.web.token])
        assert set(outcome.values()) == {"refused"}, outcome
        assert not any(frame.query_selector("#view") for frame in other.frames), "framed"
        wait_until("scans are answered", lambda: last_outcome(programs.web) == "converged")
        assert "rejected 0" in programs.daemon.ctl("status", "--all")
    finally:
        context.close()
        server.shutdown()
