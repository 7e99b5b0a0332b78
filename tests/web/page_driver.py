"""One page of ndt-web in a browser: what it shows, as numbers, and what it did wrong."""

import collections
import io
from urllib.parse import urlsplit

from PIL import Image

from web_programs import wait_until

# Kept beside the page, since events before the first script would be lost otherwise.
WATCH = """
window.__violations = [];
document.addEventListener('securitypolicyviolation', e => window.__violations.push(`${e.violatedDirective} ${e.blockedURI}`));
"""


class PageDriver:
    """`page` is playwright's page; expect_errors(TEXT) excuses lines of the console that contain TEXT."""

    def __init__(self, context, url):
        self.url, self.expected, self.console, self.requests = url, [], [], []
        self.page = context.new_page()
        self.page.add_init_script(WATCH)
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
        found += [
            f"request to {url}"
            for url in self.requests
            if urlsplit(url).scheme in ("http", "https", "ws", "wss") and urlsplit(url).netloc != host
        ]
        return found + self.page.evaluate("window.__violations || []")

    def evaluate(self, script, argument=None):
        return self.page.evaluate(script, argument)

    def wait_for(self, what, script, argument=None):
        """Until the script's value is true; returns it."""
        return wait_until(
            lambda: f"{what}; the page says: {self.text()[:600]} {self.console[-3:]}", lambda: self.evaluate(script, argument)
        )

    def text(self):
        return self.page.inner_text("body")

    def stats(self):
        return self.evaluate("window.ndt.stats()")

    def canvas(self):
        """The picture of the map, RGB."""
        canvas = self.page.locator("canvas#view, canvas").first
        return Image.open(io.BytesIO(canvas.screenshot())).convert("RGB")

    def save(self, path):
        self.page.screenshot(path=str(path))


def pixels_unlike_background(picture, distance=40):
    """How many pixels differ from the most frequent colour by more than `distance` (sum of channels, 0 to 765)."""
    count = collections.Counter(picture.getdata())
    (red, green, blue), _ = count.most_common(1)[0]
    return sum(n for (r, g, b), n in count.items() if abs(r - red) + abs(g - green) + abs(b - blue) > distance)


def pixels_near(picture, colour, distance=60):
    """How many pixels are within `distance` of a colour (r, g, b)."""
    red, green, blue = colour
    return sum(1 for r, g, b in picture.getdata() if abs(r - red) + abs(g - green) + abs(b - blue) <= distance)


def pixels_that_changed(before, after, distance=40):
    return sum(1 for a, b in zip(before.getdata(), after.getdata()) if sum(abs(x - y) for x, y in zip(a, b)) > distance)
