"""One page of ndt-web in a browser: what it shows, as numbers, and what it did wrong."""
import io
import pathlib
import re
from urllib.parse import urlsplit

import numpy as np
from PIL import Image
from web_programs import wait_until

CHECKS = pathlib.Path(__file__).with_name("page_checks.js")


class PageDriver:
    """`page` is playwright's page; expect_errors(TEXT) excuses lines of the console that contain TEXT."""

    def __init__(self, context, url):
        self.url, self.expected, self.console, self.requests = url, [], [], []
        self.page = context.new_page()
        self.page.set_default_timeout(120000)
        self.page.add_init_script(path=str(CHECKS))
        self.page.on("console", lambda line: self.console.append(line.text) if line.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.console.append(f"not caught: {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self):
        self.page.goto(self.url)
        self.wait_for("window.ndt is there", "() => !!window.ndt")

    def expect_errors(self, *texts):
        self.expected += texts

    def faults(self):
        """Errors of the console, violations of the policy, requests to other hosts."""
        host = urlsplit(self.url).netloc
        found = [line for line in self.console if not any(text in line for text in self.expected)]
        asked = [urlsplit(url) for url in self.requests]
        found += [f"request to {at.geturl()}" for at in asked if at.scheme not in ("blob", "data") and at.netloc != host]
        return found + self.check("violations")

    def evaluate(self, script, argument=None):
        return self.page.evaluate(script, argument)

    def check(self, name, *arguments):
        """The value of a function of page_checks.js."""
        return self.page.evaluate("([name, ...rest]) => window.pageChecks[name](...rest)", [name, *arguments])

    def wait_for(self, what, script, argument=None):
        """Until the script's value is true; returns it."""
        def explain():
            return f"{what}; the page says: {self.text()[:600]} {self.console[-3:]}"

        return wait_until(explain, lambda: self.evaluate(script, argument))

    def wait_for_map(self):
        self.wait_for("the map is drawn", "() => window.pageChecks.hasMap()")
        self.settle()

    def wait_for_state(self, state):
        self.wait_for(f"state {state}", "state => window.pageChecks.state() === state", state)

    def text(self):
        return self.page.inner_text("body")

    def stats(self):
        return self.evaluate("() => window.ndt.stats()")

    def settle(self):
        """Until everything in sight is drawn, and two pictures of it are the same."""
        last = []

        def same():
            if not self.stats()["complete"]:
                return False
            last.append(self.page.locator("#view").screenshot())
            return len(last) > 1 and last[-1] == last[-2]

        wait_until(lambda: f"the picture of the map is still: {self.stats()}", same)

    def canvas(self):
        """The picture of the map, RGB."""
        return Image.open(io.BytesIO(self.page.locator("#view").screenshot())).convert("RGB")

    def save(self, path):
        self.page.screenshot(path=str(path))


def number_in(text):
    """The number that a text shows; minus as typographers write it."""
    found = re.search(r"-?[0-9.]+", text.replace("\u2212", "-").replace("\u2009", ""))
    return float(found.group()) if found else float("nan")


def pixels_unlike_background(picture, distance=40):
    """How many pixels differ from the most frequent colour by more than `distance` (sum of channels, 0 to 765)."""
    pixels = np.asarray(picture, dtype=int)
    colours, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
    return int((np.abs(pixels - colours[counts.argmax()]).sum(axis=2) > distance).sum())


def pixels_that_changed(before, after, distance=40):
    """How many pixels differ together with their eight neighbours: areas count, thin lines that move by a fraction of a pixel do not."""
    changed = np.abs(np.asarray(before, dtype=int) - np.asarray(after, dtype=int)).sum(axis=2) > distance
    rows, columns = changed.shape
    inner = [changed[y : rows - 2 + y, x : columns - 2 + x] for y in range(3) for x in range(3)]
    return int(np.logical_and.reduce(inner).sum())
