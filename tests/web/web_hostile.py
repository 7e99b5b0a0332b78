#!/usr/bin/env python3
"""web_hostile.py BIN_DIR: what clients without manners do to ndt-web while a drive is localised.

Malformed, forged and oversized requests (hostile_requests.py), connections that send a byte now and then, connections that ask
for events and read none. Nothing is served that should not be, users with manners are answered all the time, the memory of
ndt-web is bounded, and every scan of the drive is answered and converges. NDT_WEB_REQUESTS: how many requests.

Exit codes: 0 passed, 1 failed, 77 no ndt-web."""

import collections
import itertools
import os
import pathlib
import random
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
import traceback

from hostile_requests import CERTAIN_ENDS, KINDS, LAST_CHUNK, REFUSED_ENDS, UNCERTAIN_ENDS, Target, post, request
from web_programs import PATIENCE_S, Daemon, Drive, Sender, Web, wait_until

REQUESTS = int(os.environ.get("NDT_WEB_REQUESTS", "6000"))
CROWD = 200  # connections of slow and of deaf clients
CLIENTS = 8  # connections at a time
REFUSALS = 500  # before each request that is allowed
AWAY = b"no daemon answers"
LOG_S = 20.0  # for a line that is missing
QUIET_S = 1.0  # a server that waits for more is left after that long
GROWTH_BYTES = 48 << 20  # of ndt-web after its warm-up; what the sanitizer keeps of freed memory comes on top
QUARANTINE_MB = 16
READ_ONLY = ["/", "/api/status", "/api/map", "/api/history?from=0&count=10", "/metrics", "/healthz", "/main.js", "/page.css"]


class Ledger:
    """What came back, per kind of request, and what should not have."""

    def __init__(self, private):
        self.private, self.lock, self.answers, self.faults = private, threading.Lock(), collections.Counter(), []

    def fault(self, text):
        with self.lock:
            self.faults.append(text)

    def note(self, kind, sent, reply, may_succeed):
        statuses = re.findall(rb"(?:^|\r\n\r\n|[^\r\n])HTTP/1\.[01] (\d{3})", reply)
        with self.lock:
            self.answers.update([f"{kind} {s.decode()}" for s in statuses[:1]] or [f"{kind} none"])
        refused_by_daemon = b'"ok":false' in reply.replace(b" ", b"")
        if not may_succeed and any(s[:1] == b"2" for s in statuses) and not refused_by_daemon:
            self.fault(f"{kind}: {sent[:300]!r} was answered {reply[:300]!r}")
        if b"access-control-allow" in reply.lower():
            self.fault(f"{kind}: CORS headers for {sent[:300]!r}")
        for secret in self.private:
            if secret in reply and secret not in sent:
                self.fault(f"{kind}: {sent[:300]!r} was answered with {secret!r}")


def ends_with_a_reply(data):
    """Whether the bytes are whole HTTP replies."""
    at = 0
    while at < len(data):
        end = data.find(b"\r\n\r\n", at)
        head = data[at:end].lower()
        length = re.search(rb"content-length: *(\d+)", head)
        if end < 0 or not head.startswith(b"http/1.") or b"transfer-encoding" in head:
            return False
        at = end + 4 + int(length.group(1) if length else 0)
    return at == len(data) > 0


def converse(port, sent, limit=4 << 20):
    """Sends everything, then reads to the end, or until nothing follows. A server may close in the middle of what it refuses, and may
    wait for the rest of a request."""
    reply = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as link:
        try:
            link.sendall(sent)
            link.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        link.settimeout(QUIET_S if sent.endswith(b"\n") else 0.1)
        try:
            while len(reply) < limit:
                data = link.recv(65536)
                if not data:
                    break
                reply += data
                if ends_with_a_reply(reply):
                    link.settimeout(0.02)
        except (ConnectionResetError, socket.timeout):
            pass
    return bytes(reply)


def attack(port, target, ledger, numbers):
    """Requests of the kinds in turn until the numbers end; each number is a seed of its own, so that it can be repeated."""
    for number in numbers:
        rng = random.Random(number)
        make = KINDS[number % len(KINDS)]
        sent, may_succeed = make(rng, target)
        try:
            ledger.note(make.__name__, sent, converse(port, sent), may_succeed)
        except OSError as error:
            ledger.fault(f"{make.__name__}: {error}: {sent[:100]!r} (number {number})")


class Polite(threading.Thread):
    """A user who looks at pages, one after another, until told to stop."""

    def __init__(self, web):
        super().__init__(daemon=True)
        self.web, self.answered, self.refused, self.slowest_s, self.enough = web, 0, [], 0.0, threading.Event()

    def run(self):
        for path in itertools.cycle(READ_ONLY):
            begin = time.monotonic()
            try:
                status = self.web.get(path[1:])[0]
            except OSError as error:
                status = error
            self.slowest_s = max(self.slowest_s, time.monotonic() - begin)
            if status == 200:
                self.answered += 1
            else:
                self.refused.append((path, status))
            if self.enough.wait(0.02):
                return

    def stop(self):
        self.enough.set()
        self.join(PATIENCE_S)
        return self


def during(web, ledger, what, act):
    """Runs act() while a user with manners asks, who must be answered at least 20 times meanwhile, and never be refused."""
    user = Polite(web)
    user.start()
    act(user)
    wait_until(f"{what}: a user is answered", lambda: user.answered >= 20 or not user.is_alive() or web.expect_alive() is None)
    user.stop()
    print(
        f"{what}: a user was answered {user.answered} times, at most after {user.slowest_s:.2f} s; {web.rss_bytes() / 1e6:.0f} MB, "
        f"{web.threads()} threads, {web.descriptors()} descriptors"
    )
    if user.refused:
        ledger.fault(f"{what}: a user was refused {len(user.refused)} times: {user.refused[:3]}")


def flood(web, target, ledger):
    numbers = iter(range(REQUESTS))
    lock = threading.Lock()

    def take():
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            yield number

    def act(_user):
        clients = [threading.Thread(target=attack, args=(web.port, target, ledger, take()), daemon=True) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            while client.is_alive():
                client.join(1.0)
                web.expect_alive()

    begin = time.monotonic()
    during(web, ledger, f"{REQUESTS} malformed requests", act)
    print(f"{REQUESTS / (time.monotonic() - begin):.0f} requests per second")


def answers_of(port, sent, are_enough):
    """Statuses that come for `sent` while this side stays open, until the server closes or they are enough; and whether it closed."""
    reply = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as link:
        link.sendall(sent)
        while True:
            found = [int(status) for status in re.findall(rb"(?:^|\n|})HTTP/1\.1 (\d{3})", reply)]
            if are_enough(found) and ends_with_a_reply(reply):
                return found, False
            try:
                data = link.recv(65536)
            except socket.timeout:
                return found, False
            except ConnectionResetError:
                data = b""
            if not data:
                return found, True
            reply += data


def uncertain_ends(web, target, ledger):
    """Where two readers see different ends of a request, the connection ends with the refusal: what follows is no request of anybody."""
    second = request(target, "/healthz")
    for version in (b"HTTP/1.1", b"HTTP/1.0"):
        for lines in [*CERTAIN_ENDS, *UNCERTAIN_ENDS, *REFUSED_ENDS]:
            headers = ["Connection: keep-alive", *lines]
            for first in (request(target, "/healthz", *headers, body=LAST_CHUNK), post(target, *headers, body=LAST_CHUNK, length=False)):
                is_certain = lines in CERTAIN_ENDS and (version == b"HTTP/1.1" or lines == CERTAIN_ENDS[0])
                sent = first.replace(b"HTTP/1.1", version, 1) + second
                statuses, is_closed = answers_of(web.port, sent, lambda found: len(found) >= 2 if is_certain else set(found) - {400})
                if is_certain and (is_closed or len(statuses) != 2 or statuses[1] != 200):
                    ledger.fault(f"{sent!r}: {statuses}, closed {is_closed}, 2 answers are wanted")
                if not is_certain and (not is_closed or set(statuses) - {400}):
                    ledger.fault(f"{sent!r}: {statuses}, closed {is_closed}, 400 and the end are wanted")


def logs_of_changes(daemon, web, target, ledger):
    """What changes the state of the daemon is in both logs, who and what, among thousands of refusals, and if its client leaves at once."""
    refused = post(target, token="wrong", body=b'{"op":"start"}') * REFUSALS
    places = range(100, 109)
    for x in places:
        body, is_left = b'{"op":"initial_pose","pose":[%d,2,3,0,0,1,0]}' % x, x == places[-1]
        reply = AWAY
        while AWAY in reply:  # ndt-web takes a daemon that a busy machine keeps from answering for one that is away
            wait_until("the daemon answers", lambda: AWAY not in web.get("readyz")[2])
            with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENCE_S) as link:
                link.sendall(b"" if is_left else refused)
                link.sendall(post(target, "Connection: close", body=body))
                address = "127.0.0.1 port %d" % link.getsockname()[1]
                reply = b"".join(iter(lambda: link.recv(65536), b"")) if not is_left else b""
        if not is_left and (reply.count(b"HTTP/1.1 401") != REFUSALS or reply.count(b'"ok":true') != 1):
            ledger.fault(f"{REFUSALS} requests without the token, then one with it: {reply[-300:]!r}")
        what = f"initial_pose at {x}.00, 2.00, 3.00 m, yaw 180.0 deg from "
        for program, line in ((web, f"info: {what}{address}: done"), (daemon, f"control: {what}user {os.getuid()}, process {web.process.pid}")):
            try:
                wait_until(f"{program.name} logs '{line}'", lambda program=program, line=line: line in program.log(), LOG_S)
            except AssertionError as error:
                ledger.fault(str(error))
    lines = web.log().count("the token is missing or wrong")
    if lines > len(places) * REFUSALS / 10:
        ledger.fault(f"{lines} lines of refusals")


def crowd_of(web, first_words):
    """CROWD connections that say `first_words`; some may be refused."""
    links = []
    for _ in range(CROWD):
        try:
            link = socket.create_connection(("127.0.0.1", web.port), timeout=PATIENCE_S)
            link.sendall(first_words)
            links.append(link)
        except OSError:
            pass
    return links


def slow_clients(web, ledger):
    """Every one sends a request byte by byte."""

    def act(user):
        links = crowd_of(web, b"G")
        trickle = iter(request(Target(f"127.0.0.1:{web.port}", [], [], ""), "/", "X-Slow: " + "z" * 10000)[1:])
        enough = user.answered + 200
        while user.answered < enough and user.is_alive():
            byte = bytes([next(trickle)])
            for link in list(links):
                try:
                    link.send(byte)
                except OSError:
                    links.remove(link)
            time.sleep(0.05)
        print(f"{len(links)} of {CROWD} slow clients are still connected")
        for link in links:
            link.close()

    during(web, ledger, f"{CROWD} slow clients", act)


def deaf_clients(web, ledger, sender):
    """Every one asks for events, and reads none while hundreds of scans pass."""

    def act(user):
        links = crowd_of(web, request(Target(f"127.0.0.1:{web.port}", [], [], ""), "/api/events"))
        before = web.get_json("api/status")
        enough = user.answered + 400
        wait_until("a user is answered", lambda: user.answered >= enough)
        sender.expect_alive()
        assert before is not None
        for link in links:
            link.close()

    during(web, ledger, f"{CROWD} clients that read no events", act)


def check_programs(daemon, web, sender, ledger, at_rest):
    """What the attack left behind."""
    wait_until(lambda: f"connections are closed: {web.descriptors()} descriptors", lambda: web.descriptors() <= at_rest["descriptors"] + 8)
    grown = web.rss_bytes() - at_rest["rss"]
    if grown > GROWTH_BYTES + at_rest["quarantine"]:
        ledger.fault(f"ndt-web grew by {grown / 1e6:.0f} MB")
    sender.end()
    state = wait_until("the daemon answers", lambda: daemon.ctl("status", "--all"))
    outcomes = dict(re.findall(r"(\w+) (\d+)", re.search(r"outcomes +(.*)", state).group(1)))
    given = re.search(r"\nreceiver .*?scans (\d+)", state).group(1)
    answered = re.search(r"\npublisher .*?published (\d+)", state).group(1)
    others = {name: number for name, number in outcomes.items() if int(number) and name not in ("converged", "dropped")}
    print(f"daemon: {given} scans, {answered} answered, {outcomes['converged']} converged, {outcomes['dropped']} dropped on a busy machine")
    if given != answered or others or "stopped" in state or list(daemon.folder.rglob("*stolen*")):
        ledger.fault(f"the daemon was disturbed: {state}")
    for program in (web, daemon):
        code = program.end()
        log = program.log()
        if code != 0 or "Sanitizer" in log or "runtime error" in log:
            ledger.fault(f"{program.name} ended with {code}: {log[-3000:]}")
    if len(web.log()) > 1 << 20:
        ledger.fault(f"ndt-web logged {len(web.log())} bytes: {web.log()[:1000]}")


def main(bin_dir, folder):
    is_sanitized = b"__asan_init" in (bin_dir / "ndt-web").read_bytes()
    os.environ["ASAN_OPTIONS"] = (
        os.environ.get("ASAN_OPTIONS", "detect_leaks=1") + f":quarantine_size_mb={QUARANTINE_MB}:malloc_context_size=3"
    )
    drive = Drive(bin_dir, folder, "--scans", 60)
    daemon, web, sender = Daemon(bin_dir, folder, drive.map), Web(bin_dir, folder), Sender(bin_dir, folder, drive.bag)
    secret = folder / "private.txt"
    secret.write_text("only for the owner of this machine\n")
    target = Target(f"127.0.0.1:{web.port}", READ_ONLY, [str(secret), str(folder / "token"), str(drive.map)], web.token)
    ledger = Ledger([secret.read_bytes().strip(), b"root:x:0:", b"# .PCD v", web.token.encode(), b"RUNTIME_DIRECTORY="])
    try:
        daemon.start()
        web.start()
        logs_of_changes(daemon, web, target, ledger)
        sender.start("--loop", 0)
        wait_until("the map is ready", lambda: web.get_json("api/map").get("state") == "ready")
        attack(web.port, target, Ledger([]), range(len(KINDS) * 4))  # warm-up
        at_rest = {"rss": web.rss_bytes(), "descriptors": web.descriptors(), "quarantine": (QUARANTINE_MB << 20) * 2 if is_sanitized else 0}
        uncertain_ends(web, target, ledger)
        flood(web, target, ledger)
        slow_clients(web, ledger)
        deaf_clients(web, ledger, sender)
        check_programs(daemon, web, sender, ledger, at_rest)
    except (AssertionError, OSError) as error:
        traceback.print_exc()
        ledger.fault(f"{error}; {web.log()[-2000:]}")
    finally:
        for program in (sender, web, daemon):
            program.end()
    for kind in sorted({key.split()[0] for key in ledger.answers}):
        print(f"  {kind}: " + ", ".join(f"{key.split()[1]} {n}" for key, n in sorted(ledger.answers.items()) if key.split()[0] == kind))
    for fault in ledger.faults[:20]:
        print("FAIL", fault)
    print(f"{len(ledger.faults)} faults")
    return 1 if ledger.faults else 0


if __name__ == "__main__":
    programs = pathlib.Path(sys.argv[1]).resolve()
    if not (programs / "ndt-web").exists():
        print("skipped: no ndt-web")
        sys.exit(77)
    work = pathlib.Path(tempfile.mkdtemp(prefix="h"))
    try:
        result = main(programs, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(result)
