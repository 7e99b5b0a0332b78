"""What the tests of the page share: a drive, the programs, the browser, a connection that can be cut.

A pytest plugin (-p web_fixtures). NDT_BIN: folder of the programs; NDT_CHROMIUM: the browser."""

import os
import pathlib
import socket
import tempfile
import threading

import pytest
from playwright.sync_api import sync_playwright

from page_driver import PageDriver
from web_programs import Daemon, Drive, Sender, Web

SOFTWARE_GL = [
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--js-flags=--expose-gc",
    "--disable-dev-shm-usage",
]


@pytest.fixture(scope="session")
def bin_dir():
    return pathlib.Path(os.environ["NDT_BIN"])


@pytest.fixture(scope="session")
def drive(bin_dir):
    """Ten seconds through a street."""
    return Drive(bin_dir, pathlib.Path(tempfile.mkdtemp()), "--scans", 100)


@pytest.fixture
def folder():
    """An empty folder with a short path."""
    return pathlib.Path(tempfile.mkdtemp(prefix="w"))


class Programs:
    """ndtd with the map of a simulated drive, ndt-web, and what sends the drive."""

    def __init__(self, bin_dir, folder, drive):
        self.daemon = Daemon(bin_dir, folder, drive.map)
        self.web = Web(bin_dir, folder)
        self.sender = Sender(bin_dir, folder, drive.bag)

    def start(self):
        self.daemon.start()
        self.web.start()
        return self

    def end(self):
        for program in (self.sender, self.web, self.daemon):
            program.end()


@pytest.fixture
def programs(bin_dir, folder, drive):
    """Programs that the test starts; they end behind it."""
    found = Programs(bin_dir, folder, drive)
    yield found
    found.end()


@pytest.fixture(scope="module")
def standing(bin_dir, drive):
    """Programs for tests that only look: 30 scans are answered, no more will come."""
    found = Programs(bin_dir, pathlib.Path(tempfile.mkdtemp(prefix="w")), drive).start()
    found.sender.start("--limit", 30, "--rate", 4)
    found.sender.wait()
    yield found
    found.end()


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=os.environ["NDT_CHROMIUM"], args=SOFTWARE_GL)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """open_page(url, token=None, **options of the browser's context): a PageDriver. At the end of the test its console holds
    no error that the test did not expect, and it asked no other host."""
    opened = []

    def make(url, token=None, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        driver = PageDriver(context, url + (f"#token={token}" if token else ""))
        opened.append((context, driver))
        driver.open()
        return driver

    yield make
    faults = []
    for context, driver in opened:
        faults += driver.faults()
        context.close()
    assert not faults, faults


@pytest.fixture
def pictures(request):
    """pictures.take(page, "name"): a screenshot into $NDT_WEB_PICTURES, for those who look at them."""
    target = os.environ.get("NDT_WEB_PICTURES")

    class Pictures:
        def take(self, page, name):
            if target:
                page.save(pathlib.Path(target) / f"{request.node.name.split('[')[0]}-{name}.png")

    return Pictures()


class Proxy:
    """A TCP connection between browser and ndt-web that can be cut and mended."""

    def __init__(self, port):
        self.target, self.is_cut, self.pairs = port, False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self):
        self.is_cut = True
        pairs, self.pairs = self.pairs, []
        for side in (side for pair in pairs for side in pair):
            _close(side)

    def mend(self):
        self.is_cut = False

    def close(self):
        self.cut()
        _close(self.listener)

    def _serve(self):
        while True:
            try:
                near = self.listener.accept()[0]
                if self.is_cut:
                    _close(near)
                    continue
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                if self.listener.fileno() < 0:
                    return
                continue
            self.pairs.append((near, far))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=_copy, args=pair, daemon=True).start()


def _copy(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    _close(source)
    _close(sink)


def _close(side):
    try:
        side.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    side.close()


@pytest.fixture
def proxy():
    """proxy(port): a Proxy."""
    opened = []

    def make(port):
        opened.append(Proxy(port))
        return opened[-1]

    yield make
    for each in opened:
        each.close()
