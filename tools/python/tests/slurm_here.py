"""A Slurm of this machine alone, for tests: munged, slurmctld and slurmd of Debian's slurm-wlm, with a key, ports and files of its own.

    with slurm_here.running(cores=2) as environment:   # SLURM_CONF
        subprocess.run(["sbatch", ...], env={**os.environ, **environment})

It wants neither systemd nor cgroups nor a cluster's configuration, and touches none. Nothing of it is left afterwards.
"""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "sinfo")
PARTITION = "here"
CONFIGURATION = """
ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={memory_mib}
PartitionName={partition} Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why there can be no Slurm here; "": there can."""
    away = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if away:
        return f"{', '.join(away)}: not installed (Debian: slurm-wlm)"
    return "" if os.geteuid() == 0 else "slurmd has to be started by root"


@contextlib.contextmanager
def running(cores: int = 2) -> "Iterator[dict[str, str]]":
    """Yields the environment in which sbatch finds it; one node with so many cores, whatever the machine has."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))  # short: the name of a socket has 107 characters at most
    environment = {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": _path()}
    started = []
    try:
        _write_files(folder, cores)
        for name, arguments in (("munged", _munged(folder)), ("slurmctld", ["slurmctld", "-D"]), ("slurmd", ["slurmd", "-D"])):
            with open(folder / f"{name}.log", "wb") as log:  # --pdeathsig: also when the test itself is killed
                started.append(subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                                                stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **environment}))
            if name == "munged":
                _wait_for(lambda: (folder / "munge.socket").exists(), "munged", folder, started)
        _wait_for(lambda: _states(environment) == ["idle"], "an idle node", folder, started)
        yield environment
    finally:
        _stop(folder, environment, started)


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def _munged(folder: Path) -> "list[str]":
    return ["munged", "--foreground", "--force", "--num-threads=2", f"--key-file={folder}/munge.key", f"--socket={folder}/munge.socket",
            f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.file", f"--seed-file={folder}/munged.seed"]


def _write_files(folder: Path, cores: int) -> None:
    folder.chmod(0o755)  # munged wants its socket to be reachable by all
    (folder / "state").mkdir()
    (folder / "spool").mkdir()
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o600)
    with socket.socket() as one, socket.socket() as other:
        for held in (one, other):
            held.bind(("127.0.0.1", 0))
        text = CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], folder=folder, controller_port=one.getsockname()[1], node_port=other.getsockname()[1],
            cores=cores, memory_mib=(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) >> 20, partition=PARTITION)
    (folder / "slurm.conf").write_text(text)


def _states(environment: "dict[str, str]") -> "list[str]":
    found = subprocess.run(["sinfo", "--noheader", "--format=%T"], env={**os.environ, **environment}, capture_output=True, text=True,
                           check=False, timeout=60)
    return found.stdout.split()


def _wait_for(condition: "Callable[[], bool]", what: str, folder: Path, started: "list[subprocess.Popen[bytes]]",
              seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end or any(one.poll() is not None for one in started):
            logs = "".join(f"--- {log.name}\n{log.read_text(errors='replace')}" for log in sorted(folder.glob("*.log")))
            raise RuntimeError(f"Slurm: no {what} within {seconds:g} s\n{logs}")
        time.sleep(0.1)


def _stop(folder: Path, environment: "dict[str, str]", started: "list[subprocess.Popen[bytes]]") -> None:
    """Jobs first, then the daemons, the last one first; what has not ended is killed."""
    if len(started) == 3 and all(one.poll() is None for one in started):
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(["scancel", "--signal=KILL", f"--partition={PARTITION}"], env={**os.environ, **environment}, check=False,
                           timeout=30)
    for process in reversed(started):
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pid in processes_of(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def processes_of(folder: Path) -> "list[int]":
    """Processes which were started with the name of this folder, in arguments or environment, such as the jobs of its slurmd."""
    name, found = str(folder).encode(), []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(place.name) != os.getpid() and name in (place / "cmdline").read_bytes() + (place / "environ").read_bytes():
                found.append(int(place.name))
    return sorted(found)
