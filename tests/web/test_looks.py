"""Looks and manners of the page: policy, themes, small screens, keyboard, names and contrast of everything."""
import re

import pytest
from web_programs import wait_until

POLICY = ["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob:", "connect-src 'self'", "base-uri 'none'",
          "form-action 'none'", "frame-ancestors 'none'"]
DARK, LIGHT = 0.08, 0.5  # luminance of the background
TABS = ["overview", "scan", "daemon", "log"]


@pytest.fixture
def shown(standing, open_page):
    """shown(**options): the page with a drive on it, standing still."""

    def make(token=None, **options):
        page = open_page(standing.web.url, token, **options)
        page.wait_for("the results so far are there", "() => window.ndt.stats().results > 0")
        page.wait_for("the map is drawn", "() => window.pageChecks.hasMap()")
        return page

    return make


def test_headers(standing):
    for path in ("", "main.js", "page.css", "api/status", "metrics", "healthz", "nowhere"):
        _, headers, _ = standing.web.get(path)
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer", path
        policy = headers["Content-Security-Policy"]
        assert all(rule in policy for rule in POLICY) and "unsafe" not in policy, (path, policy)
        assert headers["Access-Control-Allow-Origin"] is None and headers["Set-Cookie"] is None


def test_injected_scripts_do_not_run(shown):
    page = shown()
    page.expect_errors("Content Security Policy", "404")
    page.evaluate("""() => {
      const script = document.createElement('script'), box = document.createElement('div');
      script.textContent = 'window.injected = 1';
      box.innerHTML = '<img src=x onerror="window.injected = 2">';
      document.body.append(script, box);
    }""")
    seen = []
    wait_until("the policy is enforced", lambda: seen.extend(page.check("violations")) or len(seen) >= 2)
    assert page.evaluate("() => window.injected") is None


def test_dark_and_light(shown, pictures):
    page = shown(color_scheme="dark")
    assert page.check("brightness") < DARK
    page.settle()
    pictures.take(page, "dark")
    page.page.emulate_media(color_scheme="light")
    page.wait_for("it is light", "limit => window.pageChecks.brightness() > limit", LIGHT)
    page.settle()
    pictures.take(page, "light")
    shade = page.canvas().resize((1, 1)).getpixel((0, 0))
    assert sum(shade) > 3 * 128, f"the map's background is dark in the light theme: {shade}"
    page.page.click("#theme")
    page.wait_for("the button wins", "limit => window.pageChecks.brightness() < limit", DARK)
    page.page.reload()
    page.wait_for("and is remembered", "limit => window.ndt && window.pageChecks.brightness() < limit", DARK)


SCREENS = [(390, 844, True), (844, 390, True), (768, 1024, True), (1920, 1080, False), (2560, 1440, False)]


@pytest.mark.parametrize("width, height, touch", SCREENS)
def test_every_screen(shown, pictures, width, height, touch):
    page = shown(viewport={"width": width, "height": height}, has_touch=touch, is_mobile=touch, device_scale_factor=2 if touch else 1)
    assert page.check("outOfWindow") == []
    pictures.take(page, f"screen_{width}")


def test_keyboard_reaches_everything(shown, standing):
    page = shown(standing.web.token)
    page.wait_for("control is offered", "() => !document.getElementById('control-buttons').hidden")
    wanted, walked = set(page.check("stops")), []
    for _ in range(3 * len(wanted)):
        page.page.keyboard.press("Tab")
        at = page.check("focus")
        if at is None and walked:
            break
        if at:
            assert at["seen"], f"focus on what is not seen: {at['name']}"
            assert at["marked"], f"focus is not marked: {at['name']}"
            walked.append(at["name"])
    groups = {"mode-follow", "mode-top", "mode-free"}  # tools of a bar may share one stop, with arrows between them
    assert not wanted - set(walked) - groups, f"not reached: {wanted - set(walked)}"


def test_shortcuts(shown):
    page = shown()
    for key, mode in (("t", "top"), ("v", "free"), ("f", "follow")):
        page.page.keyboard.press(key)
        page.wait_for(f"mode {mode}", "mode => window.ndt.view.mode === mode", mode)
        assert page.page.get_attribute(f"#mode-{mode}", "aria-pressed") == "true"
    for key, mode in (("t", "top"), ("f", "free")):
        page.page.keyboard.press(key)
        page.page.keyboard.press("g")
        page.wait_for("the whole map, a plan from above", "mode => window.ndt.view.mode === mode && !window.ndt.view.camera.pinned", mode)
        assert page.page.get_attribute(f"#mode-{mode}", "aria-pressed") == "true"
    page.page.keyboard.press("f")
    page.page.keyboard.press("?")
    page.wait_for("help opens", "() => document.getElementById('help-dialog').open")
    assert page.evaluate("() => document.getElementById('help-dialog').contains(document.activeElement)")
    page.page.keyboard.press("Escape")
    page.wait_for("help closes", "() => !document.getElementById('help-dialog').open")
    page.page.focus("#tab-overview")
    for tab in TABS[1:]:
        page.page.keyboard.press("ArrowRight")
        page.wait_for(f"tab {tab}", "tab => !document.getElementById('pane-' + tab).hidden", tab)
    page.page.focus("#log-filter")
    page.page.keyboard.type("tv?")
    assert page.page.input_value("#log-filter") == "tv?" and page.evaluate("() => window.ndt.view.mode") == "follow"


NAMED_ROLES = {"button", "textbox", "searchbox", "slider", "combobox", "checkbox", "radio", "tab", "tabpanel", "img", "link", "dialog",
               "progressbar", "spinbutton", "toolbar", "Canvas", "switch"}


def test_everything_has_a_name(shown, standing):
    """Names and roles as a screen reader gets them; ids are unique, headings have no gaps."""
    page = shown(standing.web.token)
    tools = page.page.context.new_cdp_session(page.page)
    for tab in TABS:
        page.page.click(f"#tab-{tab}")
        nodes = tools.send("Accessibility.getFullAXTree")["nodes"]
        seen = [(node["role"]["value"], node.get("name", {}).get("value", "").strip()) for node in nodes if not node["ignored"]]
        nameless = [role for role, name in seen if role in NAMED_ROLES and not name]
        assert not nameless, (tab, nameless)
    assert page.check("brokenIds") == []
    assert page.evaluate("() => document.documentElement.lang") == "en"


def test_the_checks_can_fail(shown):
    """What the tests below look for is found when it is there."""
    page = shown()
    page.evaluate("""() => {
      const button = document.getElementById('mode-top');
      Object.assign(button.style, {color: '#bbbbbb', backgroundColor: '#cccccc', width: '10px', minWidth: '0', padding: '0'});
      document.getElementById('header').style.minWidth = '3000px';
      button.setAttribute('aria-controls', 'nowhere');
    }""")
    assert page.check("lowContrast") and page.check("smallTargets") and page.check("outOfWindow") and page.check("brokenIds") == ["nowhere"]


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_contrast(shown, scheme, standing):
    page = shown(standing.web.token, color_scheme=scheme)
    for tab in TABS:
        page.page.click(f"#tab-{tab}")
        bad = page.check("lowContrast")
        assert not bad, (tab, bad)


def test_targets_are_large_enough(shown, standing):
    """24 px by 24 px with a mouse, as WCAG 2.2 wants."""
    page = shown(standing.web.token)
    assert page.check("smallTargets") == []


def test_nothing_is_loaded_from_elsewhere(standing):
    """No address of another host in what is served."""
    seen, waiting = set(), [""]
    while waiting:
        path = waiting.pop()
        seen.add(path)
        text = standing.web.get(path)[2].decode()
        assert not re.findall(r"(?:src|href|from|import|url)[\s=(\"']*(?:https?:)?//[a-z]", text), path
        found = re.findall(r"[\"'(](?:\./)?([\w-]+\.(?:js|css|svg))[\"')]", text)
        waiting += [name for name in dict.fromkeys(found) if name not in seen and name not in waiting]
    assert {"main.js", "view.js", "page.css"} <= seen
