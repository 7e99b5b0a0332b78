"""Malformed, forged and oversized HTTP requests, made at random from a seed. Each is the bytes of one connection, and whether
anything in them deserves a 2xx.

KINDS names the makers: functions of (random.Random, Target) that return (bytes, may_succeed)."""

import json
import urllib.parse


class Target:
    """What an attacker knows: the host as it should be named, paths that exist, files that must stay private; and, for the
    requests whose fault is behind the token, the token."""

    def __init__(self, host, paths, private_files, token):
        self.host, self.paths, self.private_files, self.token = host, paths, private_files, token


def request(target, path, *headers, method="GET", host=None, body=b"", length=True):
    """A request that is well-formed apart from what the caller puts into it."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {target.host if host is None else host}", *headers]
    if method == "POST" and length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


# If one of these got through, scans would be rejected or the pose be lost: the daemon's counters tell.
HARMFUL = [
    b'{"op":"stop"}', b'{"op":"initial_pose","pose":[500,500,0,0,0,0,1]}', b'{"op":"localize","position":[900,0,0]}',
    b'{"op":"start_recording","path":"stolen.bag"}', b'{"op":"shutdown"}', b'{"op":"unload_map"}',
]


def post(target, *headers, body=None, token=None, kind="application/json", **more):
    given = [f"Authorization: Bearer {target.token if token is None else token}"] if token != "" else []
    given += [f"Content-Type: {kind}"] if kind else []
    return request(target, "/api/request", *given, *headers, method="POST", body=HARMFUL[0] if body is None else body, **more)


def bad_method(rng, target):
    method = rng.choice([
        "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "PROPFIND", "get", "G\tET", "", " GET", "GET/",
        "A" * rng.randrange(1, 5000), "\x01\x02", "DEBUG", "MOVE", "PURGE", "SEARCH",
    ])
    return request(target, rng.choice(target.paths), method=method), False


def bad_version(rng, target):
    version = rng.choice(
        ["HTTP/9.9", "HTTP/2.0", "HTTP/1.1x", "HTP/1.1", "HTTP/-1.1", "HTTP/1", "http/1.1", "HTTP/1.111111111111111", "", "x" * 900]
    )
    if rng.random() < 0.1:
        return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", False
    return f"GET {rng.choice(target.paths)} {version}\r\nHost: {target.host}\r\n\r\n".encode(), True


def huge_header(rng, target):
    size = rng.choice([5000, 20000, 70000, 300000, 1000000])
    return request(target, rng.choice(target.paths), rng.choice(["X", "Cookie", "Host", "Range"]) + ": " + "y" * size), size <= 20000


def many_headers(rng, target):
    count = rng.choice([100, 1000, 20000])
    return request(target, rng.choice(target.paths), *(f"X-{i}: {i}" for i in range(count))), True


def long_target(rng, target):
    junk = rng.choice("a/%.?&") * rng.choice([1000, 9000, 100000])
    return request(target, rng.choice([f"/{junk}", f"/?{junk}", f"/api/map/r{junk}", f"/api/history?from={junk}"])), True


def bad_chunks(rng, target):
    chunk = rng.choice([
        b"-1\r\nx\r\n", b"ffffffffffffffff\r\n", b"fffffffffffffffff\r\n", b"0x5\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhelloworld\r\n0\r\n\r\n", b"5\nhello\n0\n\n", b"zz\r\n\r\n", b"5;" + b"e" * 50000 + b"\r\nhello\r\n0\r\n\r\n",
        b"0\r\n" + b"T: r\r\n" * 5000 + b"\r\n", b"1\r\n{\r\n" * 6000, b"d\r\n" + HARMFUL[0],
        b" d\r\n" + HARMFUL[0] + b"\r\n0\r\n\r\n",
    ])
    return post(target, "Transfer-Encoding: chunked", body=chunk, length=False, token=rng.choice(["wrong", ""])), False


def nul_bytes(rng, target):
    """libmicrohttpd ends a value at a NUL: who sends `right NUL wrong` could have sent `right`."""
    whole = bytearray(request(target, rng.choice(target.paths), "X-Extra: value"))
    for _ in range(rng.randrange(1, 4)):
        whole.insert(rng.randrange(len(whole)), rng.choice([0, 0, 11, 13, 127, 255]))
    return bytes(whole), True


def half_request(rng, target):
    whole = rng.choice([request(target, rng.choice(target.paths)), post(target, token="wrong")])
    return whole[: rng.randrange(len(whole))], True  # what is cut in the body only is a request of its own


def pipelined(rng, target):
    parts = [request(target, rng.choice(target.paths + ["/no", "/../x"])) for _ in range(rng.randrange(2, 60))]
    if rng.random() < 0.5:
        parts.insert(rng.randrange(len(parts)), rng.randbytes(rng.randrange(1, 60)))
    return b"".join(parts), True


def wrong_length(rng, target):
    length = rng.choice([
        "-1", "1e3", "99999999999999999999999", "18446744073709551616", "13, 13", "0x0d", "+13", " ", "13\r\nContent-Length: 5", "13;",
        "4294967309", "5000", "1",
    ])
    body = HARMFUL[0] + request(target, "/api/request", method="POST")
    return post(target, f"Content-Length: {length}", body=body, length=False, token="wrong"), False


DOTS = ["..", "%2e%2e", "%2E.", ".%2e", "%252e%252e", "..%00", "%c0%ae%c0%ae", "%uff0e%uff0e", "..;", "...", "\uff0e\uff0e", "%e0%80%ae."]
SLASHES = ["/", "%2f", "%2F", "\\", "%5c", "%255c", "//", "%c0%af", "/./", "%252f"]


def traversal(rng, target):
    up = "".join(rng.choice(DOTS) + rng.choice(SLASHES) for _ in range(rng.randrange(1, 12)))
    name = rng.choice(["etc/passwd", "etc/hostname", "proc/self/environ", "proc/self/maps", *(p.lstrip("/") for p in target.private_files)])
    name = rng.choice([
        name, urllib.parse.quote(name, safe=""), name.replace("/", "//"),
        name + rng.choice(["%00", "%00.js", "?.css", "#.svg", "/", "/."]),
    ])
    begin = rng.choice(
        ["/", "/api/map/", "/api/map/r", "/main.js/", "/page/", "", "//", "/api/", "/static/", "file:///", f"http://{target.host}/", "/./"]
    )
    return request(target, begin + (up + name if rng.random() < 0.8 else name)), False


def wrong_host(rng, target):
    port = target.host.rpartition(":")[2]
    host = rng.choice([
        "evil.example", f"127.0.0.1.evil.example:{port}", f"evil.example:{port}", f"localhost.evil.example:{port}", "", " ",
        f"127.0.0.1@evil.example:{port}", f"{target.host}.", f"169.254.169.254:{port}", "x" * 2000, f"evil.example\t{target.host}",
        f"{target.host}, evil.example", f"{target.host}#", f"/{target.host}", "0.0.0.0.evil.example",
        f"[::1].evil.example:{port}", f"metadata:{port}", "0",
    ])
    if rng.random() < 0.15:
        return f"GET / HTTP/1.1\r\n{rng.choice(['', 'Hst: x'])}\r\n\r\n".encode(), False
    if rng.random() < 0.15:
        return request(target, "/", "Host: evil.example", host=target.host), False
    path = rng.choice(target.paths)
    return (request(target, path, host=host) if rng.random() < 0.7 else post(target, host=host)), False


def wrong_origin(rng, target):
    port = target.host.rpartition(":")[2]
    origin = rng.choice([
        "http://evil.example", "null", f"http://127.0.0.1.evil.example:{port}", f"http://evil.example:{port}",
        f"https://evil.example/{target.host}", "", f"http://{target.host}.evil.example", f"http://evil.example http://{target.host}",
        f"http://127.0.0.1:{int(port) ^ 1}", f"http://evil@{target.host}x", "file://", "chrome-extension://abc", "http://", "x" * 3000,
        f"ftp://{target.host}",
    ])
    return post(target, f"Origin: {origin}"), False


def wrong_token(rng, target):
    token = target.token
    value = rng.choice([
        "Bearer wrong", "Bearer", "Bearer ", "", f"Basic {token}", token, f"Bearer {token[:-1]}", f"Bearer {token}x",
        f"Bearer {token.upper()}", f"Bearer x{token}", "Bearer " + "a" * 3000, f"Bearer {token[:8]}*",
        "Bearer %s", "Bearer null", f"Digest {token}", f"Bearer {token[::-1]}",
    ])
    header = rng.choice(
        [f"Authorization: {value}", f"X-Authorization: Bearer {token}", f"Cookie: token={token}", f"Proxy-Authorization: Bearer {token}"]
    )
    path = rng.choice(["/api/request", f"/api/request?token={token}", f"/api/request?Authorization=Bearer%20{token}"])
    return request(target, path, header, "Content-Type: application/json", method="POST", body=rng.choice(HARMFUL)), False


def wrong_content_type(rng, target):
    kind = rng.choice([
        "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "application/jsonp", "text/html",
        "application/xml", "json", "x" * 1000, "text/plain; application/json", "application/json-seq",
    ])
    return post(target, kind=kind, body=rng.choice(HARMFUL)), False


def oversized_body(rng, target):
    size = rng.choice([4097, 5000, 65536, 1000000])
    body = b'{"op":"stop"' + b" " * size + b"}"
    return post(target, body=body, token=rng.choice([None, "wrong"])), False


DEEP = ["[" * 4000, '{"op":' * 600, '{"op":"stop","x":' + "[" * 1900 + "]" * 1900 + "}"]
NOT_JSON = [
    "", "{", "}", "[]", "null", "true", "7", '"stop"', "{'op':'stop'}", '{op:"stop"}', '{"op":"stop",}', '{"op" "stop"}', '{"op":"stop"}}',
    '{"op":"stop"}{"op":"stop"}', '{"op":"stop"', '{"op":"st\nop"}', '{"op":"stop"}//', '/**/{"op":"stop"}', '\ufeff{"op":"stop"}',
    '{"op":"\\u0073top\\ud800"}', '{"op":"stop\\u0000"}', '{"op":"\\x"}', '{"op":["stop"]}', '{"op":null}', '{"op":1}', '{"op":{}}',
    '{"":"stop"}', '{"OP":"stop"}', '{"op":"STOP"}', '{"op":"status"}', '{"op":"shutdown"}', '{"op":"load_map","path":"/"}',
    '{"op":"unload_map"}', '{"op":"stop","op":"start"}', '{"op":"start","op":"stop"}', "nan", '{"op":NaN}', '{"op":"' + "s" * 3000 + '"}',
    '{"o\\u0070":"x"}', "{}", "\x00",
]
NUMBERS = [
    "1e400", "-1e400", "1e999999999", "NaN", "Infinity", "-Infinity", "0x10", "01", "1.", ".5", "+1", "1e", "--1", "9" * 3000, "null",
    "true", '"1"', "[]", "{}", "1e308", "-", "1_000", "1 2", "١",
]


def bad_json(rng, target):
    which = rng.randrange(5)
    if which == 0:
        body = rng.choice(DEEP).encode()
    elif which == 1:
        body = rng.choice(NOT_JSON).encode("utf-8", "surrogatepass")
    elif which == 2:  # a pose with one number that is none
        pose = ["0"] * 7
        pose[rng.randrange(7)] = rng.choice(NUMBERS)
        body = '{"op":"initial_pose","pose":[%s]}' % ",".join(pose)
        body = body.encode()
    elif which == 3:  # a pose of another length
        body = json.dumps({"op": "initial_pose", "pose": [0.0] * rng.choice([0, 1, 6, 8, 36, 500])}).encode()
    else:
        body = bytearray(b'{"op":"initial_pose","pose":[500,500,0,0,0,0,1]}')
        body[rng.randrange(2, 20)] = rng.choice([0x80, 0xC0, 0xFF, 0xED, 0xF8, 0x01, 0x1F])
        body = bytes(body)
    return post(target, body=body[:4096]), False


def smuggled(rng, target):
    inner = post(target, token="wrong", body=HARMFUL[0])
    chunked = rng.choice([
        "Transfer-Encoding: chunked", "Transfer-Encoding : chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding:\tchunked",
        "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        " Transfer-Encoding: chunked", "X: y\r\n Transfer-Encoding: chunked", 'Transfer-Encoding: "chunked"',
    ])
    body = b"0\r\n\r\n" + inner
    return post(
        target, chunked, f"Content-Length: {rng.choice([0, 3, 5, len(body), len(body) + 9])}", body=body, length=False, token="wrong"
    ), False


def two_lengths(rng, target):
    """Right in all but that a proxy may see another request than ndt-web."""
    length = rng.choice([0, 3, 13, 23, 4096])
    headers = ["Transfer-Encoding: chunked", f"Content-Length: {length}"]
    rng.shuffle(headers)
    return post(target, *headers, body=b"d\r\n" + b'{"op":"stop"}' + b"\r\n0\r\n\r\n", length=False), False


def upgrade(rng, target):
    headers = rng.choice([
        ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="],
        ["Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"], ["Expect: 100-continue"], ["Expect: everything"],
        ["Connection: close, Host"], ["Connection: keep-alive, x" + "y" * 500], ["TE: trailers, deflate;q=9e999"],
        ["Range: bytes=0-1,1-2,2-3," + ",".join("0-1" for _ in range(500))], ["Range: bytes=-99999999999"],
        ["If-None-Match: " + '"x",' * 900], ["If-Modified-Since: Thu, 99 Foo 99999 99:99:99 GMT"],
        ["Accept-Encoding: " + "gzip;q=1e5," * 200], ["X-Forwarded-Host: evil.example", "X-Original-URL: /etc/passwd"],
    ])
    return request(target, rng.choice(target.paths), *headers), True


def garbage(rng, _target):
    hello = bytes.fromhex("16030100c8010000c40303") + rng.randbytes(190)
    return rng.choice([
        hello, b"SSH-2.0-x\r\n", b"\xff" + bytes(8) + b"\x7f\x03\x00NULL", rng.randbytes(rng.randrange(1, 4000)),
        b"\r\n" * rng.randrange(1, 3000), b"\n", b"GET\r\n\r\n", b"GET  / HTTP/1.1\r\n\r\n", b"\x00" * 3000, b" / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\rHost: x\r\r", b"*1\r\n$4\r\nINFO\r\n", b":" * 5000 + b"\r\n\r\n",
    ]), False


def odd_query(rng, target):
    number = rng.choice([
        "-1", "99999999999999999999999999", "18446744073709551615", "18446744073709551616", "9223372036854775808", "abc", "", "1e9",
        "0x1", "%31", "1%00", "NaN", "+1", " 1", "0", "1&seq=2", "-0", "%ff", "1;2", "9" * 500,
    ])
    path = rng.choice([
        f"/api/history?from={number}&count={number}", f"/api/history?count={number}", f"/api/history?from={number}",
        f"/api/scan?seq={number}", f"/api/timing?seq={number}", "/api/scan", "/api/scan?", "/api/timing", f"/api/map/r{number}",
        "/api/map/", "/api/map/r8", "/api/map/R0", "/api/map/x", "/api/map/r" + "0" * rng.randrange(1, 400), "/api/map/r0/",
        f"/api/map/r?v={number}", "/api/history?from=0&count=2000&" + "a=b&" * 300, f"/api/{number}", "/api/replay", "/api/request",
    ])
    return request(target, path.replace(" ", "%20")), True


# Headers by which two readers see different ends of one request. Those of the second list are refused by libmicrohttpd itself.
UNCERTAIN_ENDS = [
    ("Content-Length: 5", "Transfer-Encoding: chunked"), ("Transfer-Encoding: chunked", "Content-Length: 4"),
    ("Content-Length: 5", "Content-Length: 5"), ("Content-Length: 5", "Content-Length: 0"), ("Content-Length: 0", "Content-Length: 5"),
    ("Content-Length : 5",), ("Content-Length\t: 5",), ("Transfer-Encoding : chunked",), ("Transfer-Encoding\t: chunked",),
    ("Content-Length: 5", "Transfer-Encoding : chunked"), ("\x0bTransfer-Encoding: chunked",), ("X: y", " Transfer-Encoding: chunked"),
    ("Transfer-Encoding: xchunked",), ("Transfer-Encoding: identity",), ("Transfer-Encoding: chunked, identity",),
    ("Transfer-Encoding: \x0bchunked",), ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
    ("Transfer-Encoding: identity", "Transfer-Encoding: chunked"), ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
]
REFUSED_ENDS = [("Content-Length: 5, 5",), ("Content-Length: +5",), ("Content-Length: 0x5",), ("Content-Length:",), ("Transfer-Encoding\0: chunked",)]
CERTAIN_ENDS = [("Content-Length: 5",), ("Transfer-Encoding: chunked",), ("transfer-encoding:Chunked",)]
LAST_CHUNK = b"0\r\n\r\n"  # and five bytes

KINDS = [
    bad_method, bad_version, huge_header, many_headers, long_target, bad_chunks, nul_bytes, half_request, pipelined, wrong_length,
    traversal, traversal, wrong_host, wrong_origin, wrong_token, wrong_content_type, oversized_body, bad_json, bad_json, smuggled,
    two_lengths, upgrade, garbage, odd_query,
]
