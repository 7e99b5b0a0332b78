"""A finished replay in the page: ndt-web --replay-dir, without a daemon."""
import subprocess

import pytest
from page_driver import number_in, pixels_that_changed
from web_programs import Web

SCANS = 60


@pytest.fixture(scope="module")
def replay(bin_dir, drive, tmp_path_factory):
    """The folder of a replay, or skipped when ndtd does not write one."""
    folder = tmp_path_factory.mktemp("replay") / "out"
    bag = folder.with_name("short.bag")
    subprocess.run([bin_dir / "ndt-bag", "cut", drive.bag, "--scans", f"1-{SCANS}", "--initial", "first", "--out", bag], check=True,
                   capture_output=True)
    subprocess.run([bin_dir / "ndtd", "--replay", bag, "--map", drive.map, "--set", "preprocess.deskew=time", "--output", folder],
                   check=True, capture_output=True)
    return folder


@pytest.fixture
def web(bin_dir, folder, replay):
    program = Web(bin_dir, folder, "--replay-dir", replay, token=None)
    yield program.start()
    program.end()


def test_replay_is_shown(web, open_page, pictures):
    page = open_page(web.url)
    page.wait_for_map()
    assert web.get_json("api/replay")["scans"] == SCANS
    assert page.page.is_visible("#player") and not page.page.is_visible("#control-buttons")
    slider = page.page.locator("#player-slider")
    assert number_in(slider.get_attribute("max")) == SCANS - 1
    page.page.keyboard.press("t")
    places = []
    for number in (5, 30, 55):
        slider.fill(str(number))
        page.wait_for("that scan is shown", "n => document.getElementById('scan-title').textContent.includes(n)", str(number))
        page.settle()
        places.append(page.page.inner_text("#pose"))
    assert len(set(places)) == 3
    pictures.take(page, "middle")


@pytest.mark.parametrize("width, height", [(1280, 800), (390, 844)])
def test_the_map_ends_above_the_slider(web, open_page, width, height):
    """The vehicle that is followed is in the middle of what is seen, not behind the player."""
    page = open_page(web.url, viewport={"width": width, "height": height})
    page.wait_for_map()
    page.page.keyboard.press("t")
    page.settle()
    view, player = (page.page.locator(name).bounding_box() for name in ("#view", "#player"))
    assert view["y"] + view["height"] == pytest.approx(player["y"], abs=1)
    at = page.evaluate("() => ndt.view.project(ndt.view.pose)")
    assert at == pytest.approx([view["width"] / 2, view["height"] / 2], abs=2)


def test_time_of_the_charts(web, open_page):
    """All of the drive, or a part around the scan that is shown."""
    page = open_page(web.url)
    page.wait_for("it is loaded", "n => window.ndt.charts.history.length === n", SCANS)
    assert page.page.input_value("#span") == "all"
    page.page.select_option("#span", "30")  # as long as the drive is, at the most
    page.wait_for("all", "() => Math.abs(ndt.charts.range.to - ndt.charts.range.from - 5.9) < 0.05")
    page.page.locator("#view").focus()
    page.evaluate("() => ndt.charts.setSpan(2)")
    page.page.locator("#player-slider").fill("30")
    page.wait_for("two seconds about it", "() => Math.abs(ndt.charts.range.from - 2) < 0.05 && Math.abs(ndt.charts.range.to - 4) < 0.05")
    page.page.locator("#player-slider").fill("59")
    page.wait_for("the last two", "() => Math.abs(ndt.charts.range.to - 5.9) < 0.05 && Math.abs(ndt.charts.range.from - 3.9) < 0.05")


def test_replay_by_keyboard(web, open_page):
    page = open_page(web.url)
    page.wait_for_map()
    page.page.locator("#player-slider").fill("10")
    page.page.locator("#view").focus()
    page.settle()
    before, pose = page.canvas(), page.page.inner_text("#pose")
    for _ in range(5):
        page.page.keyboard.press("ArrowRight")
    page.wait_for("five scans on", "() => Number(document.getElementById('player-slider').value) === 15")
    page.wait_for("another pose", "pose => document.getElementById('pose').innerText !== pose", pose)
    page.settle()
    assert pixels_that_changed(before, page.canvas()) > 100
    page.page.keyboard.press("Space")
    page.wait_for("it plays to the end", "n => Number(document.getElementById('player-slider').value) === n", SCANS - 1)


def test_worst_scans_and_iterations(web, open_page, pictures):
    page = open_page(web.url)
    page.wait_for_map()
    choices = page.page.locator("#player-worst option")
    assert 2 <= choices.count() <= 21
    page.page.select_option("#player-worst", index=1)
    page.page.click("#tab-scan")
    page.wait_for("its iterations", "() => document.querySelectorAll('#iterations tbody tr').length >= 1")
    pictures.take(page, "worst")
