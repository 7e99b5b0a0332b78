"""Functions in the place of ndtd.fleet.task, for tests of the plan: no program is started. What a bag does is in its text:

    scans 20            and takes nothing else
    fail 1              the first N calls of its replay fail
    die 1               the first N replays end their worker
    pieces 3            it is cut
    unusable            it is no bag
    sleep 0.2           seconds of a replay
"""
import hashlib
import os
import signal
import time
from dataclasses import asdict
from pathlib import Path

import distributed

from ndtd.fleet.run_folder import BagIndex, RunFolder, task_key


def _words(bag):
    return dict((line.split() + [""])[:2] for line in Path(bag.url).read_text().splitlines() if line)


def _log(folder, *words):
    """One line per call, in one write."""
    with open(folder.path / "calls.txt", "ab", buffering=0) as stream:
        stream.write((" ".join(map(str, words)) + "\n").encode())


def _nth(folder, *words):
    lines = (folder.path / "calls.txt").read_text().splitlines()
    return lines.count(" ".join(map(str, words)))


def _place(folder, bag):
    """The machine on which a task of a bag runs."""
    address = distributed.get_worker().address
    with open(folder.path / "places.txt", "ab", buffering=0) as stream:
        stream.write(f"{bag.url} {address.split('//')[1].split(':')[0]}\n".encode())


def map_id(folder, token, number):
    assert RunFolder(folder).job().token == token
    return f"map of {number}"


def prepare(folder, token, bag):
    folder = RunFolder(folder)
    _log(folder, "prepare", bag.url)
    words = _words(bag)
    if "unusable" in words:
        return {"status": "failed", "failure": {"reason": f"{bag.url}: is no bag", "lines": ["is no bag"], "kind": "failed"}}
    scans, count = int(words.get("scans", 10)), int(words.get("pieces", 1))
    pieces = tuple((max(0, i * scans // count - 2), i * scans // count, (i + 1) * scans // count) for i in range(count))
    content = hashlib.blake2b(Path(bag.url).read_bytes(), digest_size=16).hexdigest()
    index = BagIndex(bag.url, bag.fingerprint, content, bag.bytes, scans, 0, 10**9, words.get("damage", ""), pieces)
    folder.save_index(bag, index)
    return {"status": "done", "index": asdict(index)}


def replay(folder, token, bag, number, piece=None):
    folder, words = RunFolder(folder), _words(bag)
    _place(folder, bag)
    key = _key(folder, bag, number)
    file = folder.done_file(key) if piece is None else folder.piece_file(key, piece)
    with folder.claim(key if piece is None else f"{key}.{piece}"):
        if file.exists():
            return {"status": "present", "key": key, "scans": int(words["scans"])}
        call = ("replay", bag.url, number) + (() if piece is None else (piece,))
        _log(folder, *call)
        time.sleep(float(words.get("sleep", 0)))
        if _nth(folder, *call) <= int(words.get("die", 0)):
            os.kill(os.getpid(), signal.SIGKILL)
        if _nth(folder, *call) <= int(words.get("fail", 0)):
            return {"status": "failed", "key": key, "failure": {"reason": "it does not want", "lines": ["ndtd: no"], "kind": "failed"}}
        folder.write_whole(file, b"rows")
    return {"status": "done", "key": key, "scans": int(words["scans"]), "replay_s": 0.0}


def join(folder, token, bag, number):
    folder = RunFolder(folder)
    key, index = _key(folder, bag, number), folder.index(bag)
    with folder.claim(key):
        _log(folder, "join", bag.url, number)
        assert all(folder.piece_file(key, piece).exists() for piece in range(len(index.pieces)))
        folder.write_whole(folder.done_file(key), b"rows")
    return {"status": "done", "key": key, "scans": index.scans}


def _key(folder, bag, number):
    job = folder.job()
    return task_key(folder.index(bag).hash, f"map of {number}", job.configurations[number].hash, job.version, job.import_options)
