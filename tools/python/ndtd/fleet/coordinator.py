"""The plan of a run on its way: which task is submitted when, what becomes of its result, when it is tried again.

    bag -> prepare -> for each configuration: replay, or for a long bag a replay of each piece and then join

A bounded window of tasks is at the scheduler, so that its memory does not grow with the fleet. What is done is on disk
(RunFolder); the coordinator holds the bags and the tasks under way alone.
"""
import asyncio
import importlib
import os
import queue
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from .._extras import need
from .._version import __version__
from .cluster import Engine
from .run_folder import Bag, BagIndex, Configuration, Failure, FleetError, Job, RunFolder, digest, task_key

TASKS = "ndtd.fleet.task"  # the module whose functions workers call
GOES_ON = "the same command goes on"
WINDOW, WINDOW_PER_CORE = 64, 8  # tasks at the scheduler
TICK_S, PROGRESS_S, WORKERS_S = 0.5, 2.0, 30.0
COLLECT_S = 0.25  # of results that are fetched together
ANSWER_S = 600.0  # of the scheduler; longer than it takes to find out that a worker has died
FETCH_S = 20.0  # of results, which are small
GONE = "gone"  # status of a result that went with its worker: what it says is on disk, so the task comes again
RATE_S = 60.0  # over which scans per second are told
MOST_LOST = 20  # workers that die with a task before it has begun
MOST_LISTED = 20  # failures, damaged bags and copies that a summary names
UNUSABLE_RETRIES = 1  # of a local bag that cannot be read: its file is the same the next time


class EngineGone(FleetError):
    """The scheduler, or all its workers."""


@dataclass
class Listed:
    """The first ones, and how many there are."""

    first: "list[Any]" = field(default_factory=list)
    count: int = 0

    def add(self, one: Any) -> None:
        self.count += 1
        if len(self.first) < MOST_LISTED:
            self.first.append(one)


@dataclass
class Outcome:
    """Outcome of a call. Tasks: of a bag and a configuration; scans: of those that are done."""

    bags: int = 0
    total: int = 0
    done: int = 0
    present: int = 0  # of these, done by an earlier call
    scans: int = 0
    replayed: int = 0  # scans of this call
    seconds: float = 0.0
    workers: int = 0
    lost: int = 0  # tasks whose worker died; they came again
    failures: Listed = field(default_factory=Listed)
    failed: int = 0
    damaged: Listed = field(default_factory=Listed)  # BagIndex
    copies: Listed = field(default_factory=Listed)  # (url, url of the bag with the same content)


@dataclass
class Task:
    """A call of a function of task.py."""

    kind: str  # map_id, prepare, replay, join
    bag: "Optional[Bag]" = None
    number: int = 0  # of the configuration
    piece: "Optional[int]" = None
    key: str = ""  # of its result; of a bag's ID for prepare
    attempts: int = 0
    failed_on: "tuple[str, ...]" = ()  # addresses of workers
    lost: int = 0  # workers that died with it, whether it had begun or not

    @property
    def arguments(self) -> "tuple[Any, ...]":
        return {"map_id": (self.number,), "prepare": (self.bag,), "replay": (self.bag, self.number, self.piece),
                "join": (self.bag, self.number)}[self.kind]

    @property
    def claim(self) -> str:
        return self.key if self.piece is None else f"{self.key}.{self.piece}"


def work(module: str, version: str, kind: str, folder: str, token: str, arguments: "tuple[Any, ...]") -> "dict[str, Any]":
    """Runs on a worker: {"status": "refused", "line": ...} where this worker cannot take part."""
    mine, worker = __version__, _worker_address()
    if mine != version:
        return {"status": "refused", "line": f"worker {worker}: has ndtd {mine}, this is {version}: all need the same package"}
    try:
        result = getattr(importlib.import_module(module), kind)(folder, token, *arguments)
    except FleetError as error:
        return {"status": "refused", "line": str(error)}
    return {**(result if isinstance(result, dict) else {"status": "done", "value": result}), "address": worker}


def _worker_address() -> str:
    try:
        return str(need("distributed", "fleet").get_worker().address)
    except ValueError:
        return socket.gethostname()


class Coordinator:
    """A call of `ndt-fleet run`."""

    def __init__(self, folder: RunFolder, job: Job, bags: "Sequence[Bag]", engine: Engine, retries: int = 2, tasks: str = TASKS,
                 tell: "Callable[[Outcome, float], None]" = lambda outcome, rate: None):
        """bags: in the order in which they are begun. tell: called now and then, also with scans per second."""
        self.folder, self.job, self.bags, self.retries = folder, job, bags, retries
        self._engine, self.client = engine, engine.client
        self.outcome = Outcome(len(bags), len(bags) * len(job.configurations))
        self.indexed = self.running = 0
        self._tasks, self._tell = tasks, tell
        self._package = __version__
        self._done: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._under_way: "dict[Any, Task]" = {}
        self._bound: "dict[Any, set[str]]" = {}  # of these, those that named workers
        self._next: "deque[Iterator[Task]]" = deque()
        self._pieces: "dict[str, set[int]]" = {}  # key -> pieces that are still to come
        self._refused: "set[str]" = set()  # keys with a piece that failed
        self._seen: "dict[bytes, str]" = {}  # hash of content -> url
        self._maps: "list[str]" = []
        self._former = _failed_keys(folder)
        self._threads, self._serial = 1, 0
        self._hosts: "dict[str, set[str]]" = {}  # machine -> addresses of its workers
        self._begin = self._with_workers = time.monotonic()
        self._told = self._asked = 0.0
        self._rates: "deque[tuple[float, int]]" = deque()
        self._began_ns = time.time_ns()

    # ---- the loop

    def run(self) -> Outcome:
        """FleetError: the run cannot go on. Whatever ends it, what is done stays done."""
        state = "stopped"
        try:
            self._tick()
            self._find_maps()
            self._next.append(self._begun())
            self._loop()
            self._remove_pieces()
            state = "done"
        finally:
            self.outcome.seconds = time.monotonic() - self._begin
            self._save_progress(state)
        return self.outcome

    def _loop(self) -> None:
        while True:
            self._fill()
            if not self._under_way:
                return
            finished = self._finished()
            fetched = self._fetch(finished)
            for future in finished:
                self._bound.pop(future, None)
                self._take(self._under_way.pop(future), future, fetched.get(future))
            self._tick()

    def _fill(self) -> None:
        window = max(WINDOW, WINDOW_PER_CORE * self._threads)
        while len(self._under_way) < window:
            task = self._next_task()
            if task is None:
                return
            self._submit(task)

    def _next_task(self) -> "Optional[Task]":
        while self._next:
            task = next(self._next[0], None)
            if task is not None:
                return task
            self._next.popleft()
        return None

    def _submit(self, task: Task) -> None:
        self._serial += 1
        wanted = self._wanted(task)
        where = {"workers": sorted(wanted), "allow_other_workers": True} if wanted else {}
        future = self.client.submit(work, self._tasks, self._package, task.kind, str(self.folder.path), self.job.token, task.arguments,
                                    key=f"{task.kind}-{self._serial}-{self.job.token}-{self._began_ns}", pure=False,
                                    priority=task.bag.priority if task.bag else 0, **where)
        self._under_way[future] = task
        if wanted:
            self._bound[future] = wanted
        future.add_done_callback(self._done.put)

    def _wanted(self, task: Task) -> "set[str]":
        """The workers that should have a task, if they have time: those of one machine for all tasks of a bag, which is staged and read
        there once; none where it failed. Empty: any will do."""
        if task.failed_on:
            return set(self._workers()) - set(task.failed_on)
        if task.bag is None or len(self._hosts) < 2:
            return set()
        bag_id = task.bag.id
        # Few bags move when machines come and go (rendezvous hashing: Thaler and Ravishankar 1998).
        home = max(self._hosts, key=lambda host: digest(host, bag_id))
        return self._hosts[home]

    def _free_bound(self, workers: "set[str]") -> None:
        """Dask does not give a task to a new worker when all that it named are gone: such a task is submitted again, to any."""
        for future in [one for one, others in self._bound.items() if not others & workers]:
            del self._bound[future]
            task = self._under_way.pop(future, None)
            if task is not None:
                future.cancel()
                self._again(replace(task, failed_on=()))

    def _finished(self) -> "list[Any]":
        """Waits for at least one future, or a moment; for some more while the workers have enough to do."""
        out = []
        try:
            out.append(self._done.get(timeout=TICK_S))
            if len(self._under_way) > 3 * self._threads:
                time.sleep(COLLECT_S)
            while True:
                out.append(self._done.get_nowait())
        except queue.Empty:
            return [one for one in out if one in self._under_way]

    def _fetch(self, futures: "list[Any]") -> "dict[Any, dict[str, Any]]":
        """Results of those that have one, all in one call: one for each costs the scheduler as much as its task. Dask would make a result
        that went with its worker again, and wait for that, on workers that may be gone as well: such a one is GONE."""
        self._check_client()  # which would wait long for a scheduler that went away
        good = [one for one in futures if one.status == "finished"]
        gone = {one: {"status": GONE} for one in futures if one.status in ("pending", "lost")}
        try:
            found = self.client.sync(lambda: self.client.gather(good, asynchronous=True), callback_timeout=FETCH_S)
            return {**gone, **dict(zip(good, found))}
        except (TimeoutError, asyncio.TimeoutError):
            self._workers()  # the scheduler answers
            return {**gone, **{one: {"status": GONE} for one in good}}
        except Exception:  # whose it is, each of them tells
            return gone

    def _workers(self) -> "dict[str, int]":
        """Threads by address."""
        found: "dict[str, int]" = self._ask(lambda: self.client.scheduler.ncores(workers=None))
        return found

    def _ask(self, question: "Callable[[], Any]") -> Any:
        """The answer of the scheduler to a coroutine. EngineGone: it is stopped, or hangs."""
        try:
            return self.client.sync(question, callback_timeout=ANSWER_S)
        except (TimeoutError, asyncio.TimeoutError):
            raise EngineGone(f"the scheduler at {self._engine.address} does not answer within {ANSWER_S:g} s; {GOES_ON}") from None

    def _check_client(self) -> None:
        if self.client.status not in ("running", "newly-created"):
            raise self._gone()

    def _tick(self) -> None:
        self._check_client()
        now = time.monotonic()
        if now - self._told < PROGRESS_S:
            return
        self._told = now
        threads = self._workers()
        self.outcome.workers, self._threads = len(threads), sum(threads.values())
        self._hosts = _by_host(threads)
        self._free_bound(set(threads))
        if threads:
            self._with_workers = now
        elif now - self._with_workers > self._engine.wish.timeout_s:
            raise EngineGone(f"all workers of {self._engine.address} are gone, and none came within {self._engine.wish.timeout_s:g} s "
                             f"(--worker-timeout); {GOES_ON}")
        if now - self._asked > WORKERS_S:
            self._asked = now
            self._engine.keep_workers()
        self._rates.append((now, self.outcome.replayed))
        while now - self._rates[0][0] > RATE_S:
            self._rates.popleft()
        self._save_progress("running")
        self._tell(self.outcome, self.rate)

    def _gone(self) -> EngineGone:
        return EngineGone(f"the scheduler at {self._engine.address} went away; {GOES_ON}")

    @property
    def rate(self) -> float:
        """Scans per second of the last minute."""
        if len(self._rates) < 2:
            return 0.0
        (begin, first), (end, last) = self._rates[0], self._rates[-1]
        return (last - first) / max(end - begin, 1e-9)

    def _save_progress(self, state: str) -> None:
        one = self.outcome
        self.folder.write_json(self.folder.path / "progress.json", {
            "token": self.job.token, "host": socket.gethostname(), "pid": os.getpid(), "state": state, "started_ns": self._began_ns,
            "updated_ns": time.time_ns(), "total": one.total, "done": one.done, "failed": one.failed, "running": len(self._under_way),
            "bags": len(self.bags), "indexed": self.indexed, "scans": one.scans, "scans_per_s": round(self.rate, 1),
            "workers": one.workers, "map_ids": self._maps})

    def _remove_pieces(self) -> None:
        """Removes pieces of what is done, which a worker left that was killed between the two."""
        for path in (self.folder.path / "pieces").glob("??/*.parquet"):
            if self.folder.done_file(path.name.partition(".")[0]).exists():
                path.unlink(missing_ok=True)

    # ---- the plan

    def _find_maps(self) -> None:
        """The id of each configuration's map: a part of each key."""
        found: "dict[int, str]" = {}
        for number in range(len(self.job.configurations)):
            self._submit(Task("map_id", number=number, key=f"map-{number}"))
        while self._under_way:
            for future in self._finished():
                task = self._under_way.pop(future)
                try:
                    result = self._result(future)
                except EngineGone:
                    raise
                except FleetError:  # of storage that may answer the next time
                    if task.attempts >= self.retries:
                        raise
                    result = {"status": "failed"}
                if result["status"] == "done":
                    found[task.number] = str(result["value"])
                elif task.attempts < self.retries:
                    self._submit(replace(task, attempts=task.attempts + 1))
                else:
                    failure = result.get("failure") or {}
                    raise FleetError(f"map {self.job.map}: {failure.get('reason') or 'its worker died'}")
            self._tick()
        self._maps = [found[number] for number in sorted(found)]

    def _begun(self) -> "Iterator[Task]":
        """Every bag: what is left of it, or its preparation where it is not known."""
        for bag in self.bags:
            index = self.folder.index(bag)
            if index is None:
                yield Task("prepare", bag, key=bag.id)
            else:
                yield from self._tasks_of(bag, index)

    def _tasks_of(self, bag: Bag, index: BagIndex) -> "Iterator[Task]":
        self.indexed += 1
        if index.damage:
            self.outcome.damaged.add(index)
        content = bytes.fromhex(index.hash)
        first = self._seen.setdefault(content, bag.url)
        if first != bag.url:
            self.outcome.copies.add((bag.url, first))
            self.outcome.total -= len(self.job.configurations)
            return
        for number, configuration in enumerate(self.job.configurations):
            key = self._key(index, number, configuration)
            if self.folder.done_file(key).exists():
                self.outcome.present += 1
                self._count_done(key, index.scans)
            elif len(index.pieces) < 2:
                yield Task("replay", bag, number, key=key)
            else:
                yield from self._pieces_of(bag, index, number, key)

    def _pieces_of(self, bag: Bag, index: BagIndex, number: int, key: str) -> "Iterator[Task]":
        left = [piece for piece in range(len(index.pieces)) if not self.folder.piece_file(key, piece).exists()]
        if not left:
            yield Task("join", bag, number, key=key)
            return
        self._pieces[key] = set(left)
        for piece in left:
            yield Task("replay", bag, number, piece, key)

    def _key(self, index: BagIndex, number: int, configuration: Configuration) -> str:
        return task_key(index.hash, self._maps[number], configuration.hash, self.job.version, self.job.import_options)

    # ---- results

    def _take(self, task: Task, future: Any, fetched: "Optional[dict[str, Any]]") -> None:
        result = self._result(future, fetched)
        if result["status"] == GONE:
            future.cancel()
            self._again(task)
        elif result["status"] == "lost":
            self.outcome.lost += 1
            task = replace(task, lost=task.lost + 1)
            if self.folder.abandoned(task.claim) or task.lost > MOST_LOST:
                self._fail(task, {"reason": "its worker died", "kind": "lost", "worker": result.get("address")}, "")
            else:  # it had not begun
                self._again(task)
        elif result["status"] == "failed":
            self._fail(task, result.get("failure") or {}, str(result.get("address") or ""))
        elif task.kind == "prepare":
            index = dict(result["index"])
            index["pieces"] = tuple(tuple(one) for one in index["pieces"])
            assert task.bag is not None
            self._forget(task.key)
            self._next.appendleft(self._tasks_of(task.bag, BagIndex(**index)))
        else:
            self._take_replay(task, result)

    def _take_replay(self, task: Task, result: "dict[str, Any]") -> None:
        if result.get("key", task.key) != task.key:
            raise FleetError(f"map {self.job.map}: has changed since this call began, or is another one for worker "
                             f"{result.get('address')}; {GOES_ON}")
        scans = int(result.get("scans") or 0)
        if task.kind == "replay":  # also what is present: it was not when this call submitted it
            self.outcome.replayed += scans
        if task.piece is None:
            self._count_done(task.key, scans)
            return
        left = self._pieces[task.key]
        left.discard(task.piece)
        if not left:
            del self._pieces[task.key]
            self._again(replace(task, kind="join", piece=None, attempts=0, failed_on=()))

    def _again(self, task: Task) -> None:
        """Repeats a task before those that have not begun."""
        self._next.appendleft(iter((task,)))

    def _count_done(self, key: str, scans: int) -> None:
        self.outcome.done += 1
        self.outcome.scans += scans
        self._forget(key)

    def _forget(self, key: str) -> None:
        """Removes the failure of a task that has succeeded now."""
        if key in self._former:
            self._former.discard(key)
            self.folder.failed_file(key).unlink(missing_ok=True)

    def _result(self, future: Any, fetched: "Optional[dict[str, Any]]" = None) -> "dict[str, Any]":
        """A result, or {"status": "lost"}, or GONE. FleetError: the run cannot go on."""
        distributed = need("distributed", "fleet")
        try:
            result: "dict[str, Any]" = future.result(timeout=FETCH_S) if fetched is None else fetched
        except distributed.KilledWorker as error:
            return {"status": "lost", "address": str(getattr(error.last_worker, "address", ""))}
        except (distributed.CancelledError, distributed.comm.CommClosedError):
            raise self._gone() from None
        except ImportError as error:
            raise FleetError(f"a worker cannot import {error.name or 'ndtd'}: all need the package ndtd[fleet]") from None
        except Exception as error:  # of a function that should have returned it, or none came
            if future.status in ("pending", "lost", "finished"):
                return {"status": GONE}
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            return {"status": "failed", "failure": {"reason": reason, "kind": "failed"}}
        if result["status"] == "refused":
            raise FleetError(result["line"])
        return result

    def _fail(self, task: Task, told: "dict[str, Any]", address: str) -> None:
        is_unusable = task.kind == "prepare" and told.get("kind") == "failed" and task.bag is not None and "://" not in task.bag.url
        limit = min(self.retries, UNUSABLE_RETRIES) if is_unusable else self.retries
        task = replace(task, attempts=task.attempts + 1, failed_on=(*task.failed_on, address) if address else task.failed_on)
        self._former.add(task.key)
        if task.attempts <= limit:
            self._next.append(iter((task,)))  # behind all others: what was in its way may be over by then
            return
        assert task.bag is not None
        name = "" if task.kind == "prepare" else self.job.configurations[task.number].name
        failure = Failure(task.key, task.bag.url, name, str(told.get("reason") or "failed"), tuple(told.get("lines") or ()), task.attempts,
                          str(told.get("kind") or "failed"), str(told.get("worker") or address), time.time_ns())
        self.folder.save_failure(failure)
        if task.key in self._refused:  # another piece of it has failed before
            return
        self.outcome.failures.add(failure)
        self.outcome.failed += len(self.job.configurations) if task.kind == "prepare" else 1
        if task.piece is not None:
            self._refused.add(task.key)


def _by_host(addresses: "Iterable[str]") -> "dict[str, set[str]]":
    out: "dict[str, set[str]]" = {}
    for address in addresses:
        out.setdefault(address.rpartition("://")[2].rpartition(":")[0], set()).add(address)
    return out


def _failed_keys(folder: RunFolder) -> "set[str]":
    return {path.stem for path in (folder.path / "failed").glob("??/*.json")}
