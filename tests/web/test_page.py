"""The first look: the page is there, the map's points are on it, the pose moves."""

from page_driver import pixels_unlike_background


def test_first_paint(programs, open_page):
    programs.start()
    page = open_page(programs.web.url)
    page.wait_for("the map is drawn", "() => window.ndt.stats().points > 0")
    assert pixels_unlike_background(page.canvas()) > 2000
