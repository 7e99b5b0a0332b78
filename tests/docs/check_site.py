#!/usr/bin/env python3
"""Checks a built site: links lead somewhere, nothing comes from a network, search and narrow screens work from the disk.

    check_site.py SITE [CHROMIUM]      without CHROMIUM (and playwright) the links alone

Exit codes: 0 good, 1 not (one line per fault).
"""
import html.parser
import pathlib
import sys
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src"}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.ids = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        self.ids.update(of[key] for key in ("id", "name") if of.get(key))
        if tag == "a" and of.get("href"):
            self.links.append(of["href"])
        elif of.get(LOADED.get(tag)):
            self.loaded.append(of[LOADED[tag]])


def link_faults(site):
    """Pages of Doxygen are aims of links; their own links are its business."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        if path.relative_to(site).parts[0] == "c-api":
            continue
        name = path.relative_to(site)
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    yield f"{name}: loads {link}"
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not aim.is_file():
                yield f"{name}: {link} does not exist"
            elif parts.fragment and aim in pages and unquote(parts.fragment) not in pages[aim].ids:
                yield f"{name}: {link}: there is no such place"
    if len(pages) < 2:
        yield f"{site}: no pages"


def browser_faults(site, chromium):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        console, asked = [], []
        page.on("console", lambda line: console.append(line.text) if line.type in ("error", "warning") else None)
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{site.as_uri()}/search.html?q=deskew")
        page.wait_for_function("document.querySelector('#search-results .search-summary')?.textContent.includes('found')", timeout=60000)
        found = page.eval_on_selector_all("#search-results li a", "all => all.map(a => a.href)")
        if not any("/docs/operations.html" in link for link in found):
            yield f"a search for 'deskew' finds {found}"
        for path in sorted(site.rglob("*.html")):
            if path.relative_to(site).parts[0] == "c-api":
                continue
            page.goto(path.as_uri())
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            if wide > 0:
                yield f"{path.relative_to(site)}: {wide} pixels too wide for a phone"
        yield from (f"the console says {line}" for line in console)
        yield from (f"asks for {url}" for url in asked if not url.startswith(("file:", "data:")))
        browser.close()


def main(site, chromium=None):
    site = pathlib.Path(site).resolve()
    faults = list(link_faults(site))
    if chromium:
        faults += browser_faults(site, chromium)
    else:
        print("no Chromium: search and screens are not tried")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
