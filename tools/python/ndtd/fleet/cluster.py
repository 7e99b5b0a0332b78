"""The engine of a run: a Dask cluster that is started for it, or one that exists.

    local                     processes of this machine, one thread each
    slurm, pbs, lsf, ...      jobs of a queue (dask-jobqueue)
    tcp://..., FILE.json      a scheduler that runs already
    package.Class             any other cluster of Dask

A peer that reaches a scheduler or a worker of Dask can run code as its user. What is started here therefore talks TLS with a certificate that
both sides have to have, made for the run unless Dask's settings name one, and its HTTP servers have no pages.
"""
import ast
import contextlib
import importlib
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from .._arguments import UsageError
from .._extras import need
from .run_folder import FleetError

QUEUES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "lsf": "LSFCluster", "sge": "SGECluster", "oar": "OARCluster",
          "htcondor": "HTCondorCluster", "moab": "MoabCluster"}
ADDRESSES = ("tcp://", "tls://", "ws://", "wss://", "ucx://")
CLOSE_S = 10.0
SETTINGS = {"distributed.scheduler.allowed-failures": 0,  # a lost task comes back to the coordinator, which counts
            "distributed.scheduler.worker-saturation": 1.1,  # workers hold what they run and one more; the rest waits at the scheduler
            "distributed.worker.profile.enabled": False,  # with the next two: a third of what a worker's Python costs beside its programs
            "distributed.admin.system-monitor.interval": "10s", "distributed.admin.tick.interval": "500ms",
            "distributed.admin.large-graph-warning-threshold": "1 GB", "distributed.worker.memory.target": False,
            "distributed.worker.memory.spill": False, "distributed.worker.memory.pause": False,
            "distributed.worker.memory.terminate": False}


# A local worker that is slow to come again, on a busy machine, is not given up.
LOCAL_SETTINGS = {"distributed.deploy.lost-worker-timeout": "1 day"}
# State, logs and names of bags are for those who may read the run. The server itself cannot be switched off.
NO_PAGES: "dict[str, list[str]]" = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
KEYS_PREFIX = ".engine-keys-"  # of the folder for what jobs of a queue need to join


class EngineError(FleetError, UsageError):
    """A cluster that cannot be used: of the command line."""


@dataclass(frozen=True)
class Wish:
    """Cluster that the command line asks for. workers: 0: as many as there are cores, or as its settings say. folder: one that workers on
    other machines see too, None: that for temporary files."""

    kind: str = "local"
    workers: int = 0
    options: "dict[str, Any]" = field(default_factory=dict)
    timeout_s: float = 300.0
    memory_bytes: int = 0  # of one task
    folder: Optional[Path] = None

    @property
    def has_pages(self) -> bool:
        """The user asks for the dashboard."""
        return any("dashboard_address" in some for some in (self.options, self.options.get("scheduler_options") or {}))


@dataclass
class Engine:
    """A client, and the cluster that was started for it; None: it exists without us."""

    client: Any
    cluster: Any
    wish: Wish
    address: str

    @property
    def workers(self) -> int:
        """Number of workers that are wanted; 0: the engine knows."""
        named = self.wish.options.get("n_workers") or self.wish.workers
        return int(named) or (core_count() if self.wish.kind == "local" else 0)

    def keep_workers(self) -> None:
        """Asks again for workers that have ended, such as jobs of a queue."""
        if self.cluster is not None and self.workers and hasattr(self.cluster, "scale"):
            with contextlib.suppress(Exception):  # the next call asks again
                self.cluster.scale(self.workers)


def parse_options(words: "Sequence[str]") -> "dict[str, Any]":
    """KEY=VALUE of --cluster-option: numbers, true, false, lists, else text."""
    out = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip().replace("-", "_").isidentifier():
            raise EngineError(f"--cluster-option: '{word}': KEY=VALUE is wanted")
        out[key.strip().replace("-", "_")] = plain_value(value)
    return out


def plain_value(text: str) -> Any:
    """A number, true, false, none or a list where it is one; else the text."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


@contextlib.contextmanager
def quiet(log: Path) -> "Iterator[None]":
    """Sends what Dask, its workers and Python say on standard error to a file; sys.stderr still reaches the user."""
    sys.stderr.flush()
    terminal, former = os.dup(2), sys.stderr
    root, handler = logging.getLogger(), logging.FileHandler(log, "a", delay=True)
    with open(log, "wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        need("distributed", "fleet")  # its loggers find the file
        with os.fdopen(os.dup(terminal), "w", buffering=1, errors="replace") as stream:
            if _is_standard(former):
                sys.stderr = stream
            root.addHandler(handler)
            logging.captureWarnings(True)
            yield
    finally:
        sys.stderr = former
        logging.captureWarnings(False)
        root.removeHandler(handler)
        handler.close()
        os.dup2(terminal, 2)
        os.close(terminal)


def _is_standard(stream: Any) -> bool:
    try:
        return bool(stream.fileno() == 2)
    except (OSError, ValueError):
        return False


@contextlib.contextmanager
def connect(wish: Wish) -> "Iterator[Engine]":
    """An engine with at least one worker; nothing of it is left afterwards. FleetError: it does not come."""
    need("distributed", "fleet")  # whose defaults would go with the settings below
    dask = need("dask", "fleet")
    settings = {**SETTINGS, **(LOCAL_SETTINGS if wish.kind == "local" else {}), **({} if wish.has_pages else NO_PAGES)}
    with dask.config.set(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.ExitStack() as stack:
            engine = _open(wish, stack)
            try:
                _wait_for_workers(engine)
                yield engine
            except KeyboardInterrupt:
                if threading.current_thread() is threading.main_thread():
                    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end is near: nothing of the cluster is to be left
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                raise


def check(wish: Wish) -> None:
    """EngineError: there is no such engine."""
    is_running = _runs_already(wish)
    if not (is_running or wish.kind == "local" or wish.kind in QUEUES or wish.kind.count(".")):
        raise EngineError(f"--cluster: {wish.kind}: is none of local, {', '.join(QUEUES)}, tcp://HOST:PORT, FILE.json, package.Class")
    if is_running and (wish.workers or wish.options):
        raise EngineError(f"--cluster: {wish.kind}: has its workers: without --workers and --cluster-option")


def _runs_already(wish: Wish) -> bool:
    return wish.kind.startswith(ADDRESSES) or wish.kind.endswith(".json")


def _open(wish: Wish, stack: contextlib.ExitStack) -> Engine:
    distributed = need("distributed", "fleet")
    if _runs_already(wish):
        client = _client_of(wish)
        stack.callback(_close_client, client)
        return Engine(client, None, wish, wish.kind)
    cluster = _start(wish, stack)
    stack.callback(_close_cluster, cluster)
    client = cluster.get_client() if hasattr(cluster, "get_client") else distributed.Client(cluster)
    stack.callback(_close_client, client)
    engine = Engine(client, cluster, wish, str(getattr(cluster, "scheduler_address", wish.kind)))
    engine.keep_workers()
    return engine


def _client_of(wish: Wish) -> Any:
    distributed = need("distributed", "fleet")
    timeout_s = min(wish.timeout_s, 30.0)
    try:
        if wish.kind.startswith(ADDRESSES):
            _check_credentials(wish.kind)
            return distributed.Client(wish.kind, timeout=timeout_s, set_as_default=False)
        if not Path(wish.kind).is_file():
            raise EngineError(f"--cluster: {wish.kind}: there is no such file of a scheduler")
        _check_credentials(str(json.loads(Path(wish.kind).read_text(encoding="utf-8"))["address"]))
        return distributed.Client(scheduler_file=wish.kind, timeout=timeout_s, set_as_default=False)
    except (OSError, ValueError, KeyError, TypeError) as error:  # TimeoutError is an OSError
        raise FleetError(f"--cluster: {wish.kind}: no scheduler answers within {timeout_s:g} s ({_line(error)})") from None


def _check_credentials(address: str) -> None:
    """EngineError: the scheduler wants a certificate that Dask's settings do not have."""
    where = f"--cluster: {address}: distributed.comm.tls of Dask's settings"
    try:
        context = need("distributed", "fleet").Security().get_connection_args("client")["ssl_context"]
    except (OSError, ValueError) as error:
        raise EngineError(f"{where}: {_line(error)}") from None
    if context is None and address.startswith(("tls://", "wss://")):
        raise EngineError(f"{where}: names no certificate")


def _start(wish: Wish, stack: contextlib.ExitStack) -> Any:
    try:
        if wish.kind == "local":
            return _start_local(wish)
        if wish.kind in QUEUES:
            return _start_queue(wish, stack)
        module, _, name = wish.kind.rpartition(".")
        return getattr(importlib.import_module(module), name)(**wish.options)
    except (ImportError, AttributeError) as error:
        raise EngineError(f"--cluster: {wish.kind}: {_line(error)}") from None
    except (TypeError, ValueError) as error:
        raise EngineError(f"--cluster: {wish.kind}: --cluster-option: {_line(error)}") from None
    except (OSError, RuntimeError) as error:
        raise FleetError(f"--cluster: {wish.kind}: does not start: {_line(error)}") from None


def _start_local(wish: Wish) -> Any:
    distributed = need("distributed", "fleet")
    options = {"n_workers": wish.workers or core_count(), "threads_per_worker": 1, "processes": True, "dashboard_address": None,
               "memory_limit": 0, "silence_logs": False, "security": _security(), **wish.options}
    return distributed.LocalCluster(**options)


def _start_queue(wish: Wish, stack: contextlib.ExitStack) -> Any:
    jobqueue = need("dask_jobqueue", "fleet")

    def configured(name: str) -> Any:
        return need("dask", "fleet").config.get(f"jobqueue.{wish.kind}.{name}", None)

    options = {"security": None if "security" in wish.options else _on_disk(_security(), wish, stack), **wish.options}
    for name, value in (("cores", 1), ("memory", f"{wish.memory_bytes / 2**30 + 1:.2f} GiB")):
        if configured(name) is None:
            options.setdefault(name, value)
    options["scheduler_options"] = {"dashboard_address": None, **(options.get("scheduler_options") or configured("scheduler-options") or {})}
    return getattr(jobqueue, QUEUES[wish.kind])(**options)


def _security() -> Any:
    """The certificate that Dask's settings name, or one for this run, whose key stays in memory."""
    distributed = need("distributed", "fleet")
    if need("dask", "fleet").config.get("distributed.comm.tls.ca-file", None):
        return distributed.Security(require_encryption=True)
    need("cryptography", "fleet")
    return distributed.Security.temporary()


def _on_disk(security: Any, wish: Wish, stack: contextlib.ExitStack) -> Any:
    """Credentials in files, for workers that are started elsewhere; only this user can read them, until the run ends. Those of a call
    that was killed let no one in, as its scheduler is gone."""
    if "\n" not in security.tls_ca_file:
        return security
    for former in wish.folder.glob(f"{KEYS_PREFIX}*") if wish.folder else ():
        shutil.rmtree(former, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=KEYS_PREFIX, dir=wish.folder))  # mode 0700
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_text(security.tls_worker_cert)
    key.touch(0o600)
    key.write_text(security.tls_worker_key)
    roles = {f"tls_{role}_{part}": str(path) for role in ("client", "scheduler", "worker") for part, path in (("cert", certificate), ("key", key))}
    return need("distributed", "fleet").Security(require_encryption=True, tls_ca_file=str(certificate), **roles)


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _wait_for_workers(engine: Engine) -> None:
    try:
        engine.client.wait_for_workers(1, timeout=engine.wish.timeout_s)
    except OSError:
        raise FleetError(f"no worker of {engine.wish.kind} came within {engine.wish.timeout_s:g} s (--worker-timeout)") from None


def _close_client(client: Any) -> None:
    with contextlib.suppress(Exception):  # a scheduler that went away
        client.close(timeout=CLOSE_S)


def _close_cluster(cluster: Any) -> None:
    _kill_local(cluster)
    with contextlib.suppress(Exception):
        cluster.close(timeout=CLOSE_S)


def _kill_local(cluster: Any) -> None:
    """Workers of this machine have nothing to lose: files are whole or absent, and their ndtd dies with them."""
    for nanny in list(getattr(cluster, "workers", {}).values()):
        process = getattr(nanny, "process", None)
        pid: Optional[int] = getattr(process, "pid", None)
        if pid:
            nanny.auto_restart = False
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _line(error: BaseException) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:200]
