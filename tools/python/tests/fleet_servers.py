"""Storage on the loopback for the tests of ndt-fleet: an S3 server (moto) and an HTTP server, both with planted faults."""
import contextlib
import html
import threading
import time
import urllib.request
from pathlib import Path

import pytest

werkzeug_serving = pytest.importorskip("werkzeug.serving")

KEY, SECRET = "AKIDEXAMPLEKEY", "wJalrXUtnFEMIexampleSECRET"


class Faulty:
    """A WSGI application around another: plans[part of a path] is a list of faults, each for one GET; the last one stays if it ends in "!".

    503, 404 ...: an error of the server; cut: half of the body, then the connection ends; long, short: a Content-Length that is not
    that of the body; none: no Content-Length; ends: none, and half of the body; slow: the body in pieces with pauses.
    """

    def __init__(self, app, ranges=True):
        self.app, self.ranges = app, ranges
        self.plans = {}
        self.seen = []  # (method, path, Range)
        self._lock = threading.Lock()

    def gets(self, part):
        """Number of times that a body was asked for."""
        return sum(method == "GET" and part in path for method, path, _ in self.seen)

    def _fault(self, method, path):
        with self._lock:
            for part, faults in self.plans.items():
                if method == "GET" and part in path and faults:
                    return faults[0].rstrip("!") if faults[0].endswith("!") else faults.pop(0)
        return ""

    def __call__(self, environ, start_response):
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if not self.ranges:
            environ.pop("HTTP_RANGE", None)
        self.seen.append((method, path, environ.get("HTTP_RANGE", "")))
        fault = self._fault(method, path)
        if fault.isdigit():
            start_response(f"{fault} planted", [("Content-Type", "text/plain"), ("Content-Length", "0")])
            return []
        told = {}

        def start(status, headers, exc_info=None):
            told["length"] = length = int(dict((name.lower(), value) for name, value in headers).get("content-length", 0))
            other = {"long": length + 1000, "short": length // 2, "none": None, "ends": None}.get(fault, length)
            headers = [row for row in headers if row[0].lower() != "content-length"]
            if not self.ranges:
                headers = [row for row in headers if row[0].lower() != "accept-ranges"]
            if other is not None:
                headers.append(("Content-Length", str(other)))
            return start_response(status, headers, exc_info)

        body = self.app(environ, start)
        return _broken(b"".join(body), fault) if fault in ("cut", "slow", "short", "ends") else body


def _broken(data, fault):
    if fault == "slow":
        for at in range(0, len(data), len(data) // 8 + 1):
            time.sleep(0.05)
            yield data[at:at + len(data) // 8 + 1]
        return
    yield data[:len(data) // 2]
    if fault == "cut":
        raise ConnectionAbortedError("planted")


def folder_app(folder):
    """Serves files with ETag and ranges, and folders as pages of links."""
    from werkzeug.exceptions import NotFound
    from werkzeug.utils import send_from_directory
    from werkzeug.wrappers import Response

    def app(environ, start_response):
        path = Path(folder, environ["PATH_INFO"].encode("latin-1").decode().lstrip("/"))
        if path.is_dir():
            names = sorted(one.name + "/" * one.is_dir() for one in path.iterdir())
            rows = "".join(f'<a href="{html.escape(name)}">{html.escape(name)}</a>\n' for name in names)
            return Response(rows, mimetype="text/html")(environ, start_response)
        try:
            return send_from_directory(folder, path.relative_to(folder), environ)(environ, start_response)
        except (NotFound, ValueError):
            return Response("not here", 404)(environ, start_response)

    return app


@contextlib.contextmanager
def serving(app):
    """The URL under which `app` answers on the loopback."""
    server = werkzeug_serving.make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Quiet(werkzeug_serving.WSGIRequestHandler):
    def log(self, *_):
        pass


@contextlib.contextmanager
def s3_server():
    """(Faulty, its file system) of an S3 server without buckets; Faulty.url: its endpoint."""
    server = pytest.importorskip("moto.server")
    s3fs = pytest.importorskip("s3fs")
    app = Faulty(server.DomainDispatcherApplication(server.create_backend_app))
    with serving(app) as app.url:
        with urllib.request.urlopen(urllib.request.Request(f"{app.url}/moto-api/reset", method="POST")):  # moto keeps its buckets in the process
            pass
        yield app, s3fs.S3FileSystem(key=KEY, secret=SECRET, endpoint_url=app.url, skip_instance_cache=True, use_listings_cache=False)
