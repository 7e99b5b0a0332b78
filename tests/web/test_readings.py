"""What the page reads out of results: speed, charts, the badge of the log, where a lost scan is drawn."""
import pytest
from page_driver import number_in


@pytest.fixture
def page(standing, open_page):
    """The page with a drive on it, standing still."""
    found = open_page(standing.web.url)
    found.wait_for("the results so far are there", "() => window.ndt.stats().results > 0")
    found.wait_for("the map is drawn", "() => window.pageChecks.hasMap()")
    return found


def test_speed(page, standing):
    twist = standing.web.get_json("api/history?from=0&count=2000")["results"][-1]["twist"]
    speed = sum(value**2 for value in twist[:3]) ** 0.5
    assert speed > 1
    page.wait_for("a speed", "() => document.getElementById('speed').textContent !== '–'")
    assert number_in(page.page.inner_text("#speed")) == pytest.approx(speed, abs=0.051)
    assert "m/s" in page.page.inner_text(".fact-speed")
    page.evaluate("() => ndt.feed.on.result({...ndt.state.result, twist: null, seq: ndt.state.result.seq + 1})")
    page.wait_for("none where it is not known", "() => document.getElementById('speed').textContent === '–'")


def test_time_of_the_charts(page):
    """From 10 s to 10 min, by the list and by keys, and as long as the page says."""
    options = page.page.locator("#span option")
    assert [options.nth(k).inner_text() for k in range(options.count())] == ["10 s", "30 s", "1 min", "2 min", "5 min", "10 min"]
    assert page.page.input_value("#span") == "60"
    labels = "() => ndt.charts.timeLabels().map(([, text]) => text)"
    wide = "() => ndt.charts.range.to - ndt.charts.range.from"
    for seconds, shown in (("10", ["−10 s", "−5", "now"]), ("600", ["−10 min", "−8", "−6", "−4", "−2", "now"])):
        page.page.select_option("#span", seconds)
        page.wait_for("that time is drawn", f"w => Math.abs(({wide})() - w) < 1e-6", float(seconds))
        assert page.evaluate(labels) == shown
    page.page.locator("#view").focus()
    page.page.keyboard.press(".")  # there is no longer one
    page.page.keyboard.press(",")
    page.wait_for("five minutes", f"() => Math.abs(({wide})() - 300) < 1e-6")
    page.page.reload()
    page.wait_for("it is remembered", "() => window.ndt && document.getElementById('span').value === '300'")


def test_badge_of_the_log(page):
    """Warnings and errors are told apart by shape, by words, and by colour."""
    tell = "([level, text]) => ndt.log.add({level, text})"
    seen = "() => [...['#log-badge', '#log-badge-icon'].map(q => document.querySelector(q)).map(e => e.dataset.level || e.getAttribute('href'))]"
    page.page.click("#tab-log")
    page.page.click("#tab-overview")
    page.evaluate(tell, ["warning", "one"])
    page.wait_for("a warning", "() => document.getElementById('tab-log').innerText.includes('1')")
    assert page.evaluate(seen) == ["warning", "#i-warning"] and "1 warning" in page.page.inner_text("#tab-log")
    colour = "() => getComputedStyle(document.getElementById('log-badge')).backgroundColor"
    amber = page.evaluate(colour)
    page.evaluate(tell, ["warning", "two"])
    page.evaluate(tell, ["error", "three"])
    page.wait_for("an error", "() => document.getElementById('log-badge').dataset.level === 'error'")
    assert page.evaluate(seen) == ["error", "#i-error"] and "1 error, 2 warnings" in page.page.inner_text("#tab-log")
    assert page.evaluate(colour) != amber and page.check("lowContrast") == []
    page.page.click("#tab-log")
    page.wait_for("they are seen", "() => document.getElementById('log-badge').hidden")


def test_lost_scan_is_where_the_vehicle_is(page):
    """Poses of a lost vehicle jump. A scan that comes later than its result is drawn at the vehicle, and moves with it."""
    together = "() => { const v = ndt.view; return v.scan ? Math.hypot(...[0, 1, 2].map(k => v.scan.pose[k] - v.pose[k])) : -1; }"
    page.evaluate("""() => {
        const last = ndt.state.result, points = Int16Array.from({length: 400}, (_, k) => k);
        window.jump = (by, state) => ndt.feed.on.result({...last, seq: last.seq + by, state, outcome: state === "lost" ? "lost" : "converged",
                                                         pose: last.pose && [last.pose[0] + by, ...last.pose.slice(1)]});
        window.arrive = (by) => ndt.feed.on.points({seq: last.seq + by, count: 100, scale: 0.01, points});
        jump(40, "lost");
        jump(90, "lost");
        arrive(40);
    }""")
    assert page.evaluate(together) == 0
    page.evaluate("() => jump(10, 'lost')")
    assert page.evaluate(together) == 0
    page.evaluate("() => { jump(11, 'tracking'); jump(12, 'tracking'); arrive(11); }")
    assert page.evaluate(together) == pytest.approx(1)  # a pose that is known: the scan at its own
