"""What is between the page and the vehicle ends and comes back: the connection, ndt-web, the daemon."""
import signal

from web_programs import wait_until

AWAY = "() => window.pageChecks.isCutOff()"
MOVED = "x => document.getElementById('pose-x').textContent !== x"
LOST_CONNECTION = ["net::ERR_", "Failed to load resource", "EventSource"]


def expect_recovery(page):
    """The page needs no hand to go on."""
    page.wait_for_state("tracking")
    page.wait_for("the banner is gone", "() => document.getElementById('banner').hidden")
    page.wait_for("the pose moves again", MOVED, page.page.inner_text("#pose-x"))


def test_connection_is_cut(programs, open_page, proxy, pictures):
    line = proxy(programs.web.port)
    programs.start()
    programs.sender.start("--loop", 0)
    page = open_page(line.url)
    page.expect_errors(*LOST_CONNECTION)
    page.wait_for_state("tracking")
    for _ in range(2):
        line.cut()
        page.wait_for("the page says that it is cut off", AWAY)
        pictures.take(page, "cut_off")
        line.mend()
        expect_recovery(page)
    programs.web.expect_alive()


def test_web_is_killed(programs, open_page):
    programs.start()
    programs.sender.start("--loop", 0)
    page = open_page(programs.web.url)
    page.expect_errors(*LOST_CONNECTION)
    page.wait_for_state("tracking")
    programs.web.end(signal.SIGKILL)
    page.wait_for("the page says that it is cut off", AWAY)
    programs.web.start()
    expect_recovery(page)
    page.wait_for("the map is drawn again", "() => window.pageChecks.hasMap()")


def test_daemon_is_killed(programs, open_page, pictures):
    programs.start()
    programs.sender.start("--loop", 0)
    page = open_page(programs.web.url)
    page.expect_errors("503")
    page.wait_for_state("tracking")
    wait_until("ready", lambda: programs.web.get("readyz")[0] == 200)  # by its next status
    programs.daemon.end(signal.SIGKILL)
    page.wait_for("the page says that the daemon is away", AWAY)
    wait_until("not ready", lambda: programs.web.get("readyz")[0] == 503)
    assert programs.web.get("healthz")[0] == 200
    pictures.take(page, "daemon_away")
    programs.daemon.start()
    expect_recovery(page)
    wait_until("ready", lambda: programs.web.get("readyz")[0] == 200)
    page.page.click("#tab-log")
    page.wait_for("both are in the log", "() => document.getElementById('log').innerText.match(/daemon/g)?.length >= 2")


def test_web_before_the_daemon(programs, open_page):
    """An empty page says what it waits for; nothing has to be started again."""
    programs.web.start()
    page = open_page(programs.web.url)
    page.expect_errors("503")
    page.wait_for("the page says that the daemon is away", AWAY)
    programs.daemon.start()
    programs.sender.start("--loop", 0)
    expect_recovery(page)
    page.wait_for("the map is drawn", "() => window.pageChecks.hasMap()")
