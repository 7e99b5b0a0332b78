"""Who gets into a cluster of ndt-fleet: those who have the certificate of the run, no one else."""
import asyncio
import http.client
import importlib
import json
import os
import ssl
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

import psutil  # noqa: E402, of distributed
from distributed import Security  # noqa: E402
from distributed.comm.tcp import TCPConnector, TLSConnector  # noqa: E402

import fleet_runs  # noqa: E402
from ndtd.fleet import cluster  # noqa: E402

PAGES = ("/", "/status", "/info/main/workers.html", "/json/identity.json", "/metrics", "/api/v1/get_workers", "/statics/css/base.css")


def listening():
    """Ports of this process and of those it has started."""
    mine = psutil.Process()
    return {each.laddr.port for one in [mine, *mine.children(recursive=True)] for each in one.net_connections("inet")
            if each.status == psutil.CONN_LISTEN}


def answers(port, context=None):
    """Whether a peer of Dask gets a word out of it: over plain tcp, or with the credentials of an ssl.SSLContext."""
    async def talk():
        connector, arguments = (TLSConnector(), {"ssl_context": context}) if context else (TCPConnector(), {})
        try:
            link = await connector.connect(f"127.0.0.1:{port}", **arguments)
            await link.write({"op": "identity", "reply": True})
            return bool(await link.read())
        except (OSError, ValueError):  # a connection that ends; a word of plain tcp before that of TLS
            return False

    return asyncio.run(talk())


def context_of(security):
    return security.get_connection_args("client")["ssl_context"]


def strangers():
    """Credentials of others, by name."""
    anonymous = ssl.create_default_context()
    anonymous.check_hostname, anonymous.verify_mode = False, ssl.CERT_NONE
    return {"plain tcp": None, "no certificate": anonymous, "a certificate of another run": context_of(Security.temporary())}


def check_strangers(port):
    assert [name for name, context in strangers().items() if answers(port, context)] == [], port


def page_statuses(port):
    """HTTP statuses of PAGES; empty: the port does not speak HTTP."""
    found = {}
    for path in PAGES:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            link.request("GET", path)
            found[path] = link.getresponse().status
        except (OSError, http.client.HTTPException):
            return {}
        finally:
            link.close()
    return found


def test_local_workers_let_nobody_else_in():
    before = listening()
    with cluster.connect(cluster.Wish(workers=1)) as engine:
        ports = listening() - before
        own = context_of(engine.cluster.security)
        pages = {port: found for port, found in ((port, page_statuses(port)) for port in ports) if found}
        assert {status for found in pages.values() for status in found.values()} <= {404}, pages
        speaking = ports - set(pages)
        assert len(speaking) >= 3, "scheduler, nanny and worker"
        for port in speaking:
            assert answers(port, own), port
            check_strangers(port)
        tree = [psutil.Process(), *psutil.Process().children(recursive=True)]
        secret = engine.cluster.security.tls_worker_key
        assert not any(secret in text for one in tree for text in [*one.cmdline(), *one.environ().values()])
        assert engine.client.submit(sum, [1, 2]).result() == 3


def test_pages_for_those_who_ask_for_them():
    with cluster.connect(cluster.Wish(workers=1, options={"dashboard_address": "127.0.0.1:0"})) as engine:
        port = engine.client.scheduler_info()["services"]["dashboard"]
        assert page_statuses(port)["/info/main/workers.html"] == 200


@pytest.fixture
def keys(tmp_path):
    """A folder of settings for Dask, as in docs/fleet.md, and the certificate that they name."""
    made, folder = Security.temporary(), tmp_path / "keys"
    folder.mkdir(0o700)
    (folder / "certificate.pem").write_text(made.tls_worker_cert)
    (folder / "key.pem").write_text(made.tls_worker_key)
    pair = {"cert": str(folder / "certificate.pem"), "key": str(folder / "key.pem")}
    settings = {"distributed": {"comm": {"require-encryption": True,
                                         "tls": {"ca-file": pair["cert"], "scheduler": pair, "worker": pair, "client": pair}}}}
    (folder / "fleet.yaml").write_text(json.dumps(settings))
    return folder


def test_a_scheduler_with_a_certificate(keys, simulate, bin_dir, tmp_path):
    whole = simulate("--seed", 7, "--scans", 6, "--beams", 16, "--columns", 600, "--map-spacing", 0.3)
    drives = fleet_runs.cut(bin_dir / "ndt-bag", whole.bag, whole.map, tmp_path / "drives", [6])
    words = ["--bags", drives.pattern, "--map", drives.map, "--cache", tmp_path / "cache", "--ndtd", bin_dir / "ndtd"]

    def run(out, address, environment, code=0):
        return fleet_runs.call("run", *words, "--out", tmp_path / out, "--cluster", address, environment=environment,
                               log=tmp_path / "log", code=code)

    with_keys = {"DASK_CONFIG": str(keys)}
    with fleet_runs.scheduler(tmp_path / "dask", workers=1, environment=with_keys, protocol="tls") as one:
        assert one.address.startswith("tls://")
        run("own", one.address, with_keys)
        check_strangers(int(one.address.rpartition(":")[2]))
        for environment, why in (({}, "names no certificate"), ({"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": "/none",
                                                                  "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT": "/none"}, "No such file")):
            said = run("none", one.address, environment, code=2)
            assert said.startswith(f"ndt-fleet: --cluster: {one.address}: distributed.comm.tls of Dask's settings: ") and why in said, said
            assert said.count("\n") == 1, said
    fleet_runs.call("run", *words, "--out", tmp_path / "local", "--workers", 1, environment={}, log=tmp_path / "log")
    assert fleet_runs.result(tmp_path / "own")[0] == fleet_runs.result(tmp_path / "local")[0]


def test_a_certificate_of_the_settings_is_used(keys):
    dask = pytest.importorskip("dask")
    wanted = json.loads((keys / "fleet.yaml").read_text())["distributed"]["comm"]["tls"]
    with dask.config.set({f"distributed.comm.tls.{name}": value for name, value in wanted.items()}), cluster.connect(cluster.Wish(workers=1)) as engine:
        assert engine.cluster.security.tls_worker_key == str(keys / "key.pem")


def test_keys_of_a_queue_are_private_and_leave_nothing(tmp_path, monkeypatch):
    """Files for jobs, here those of dask-jobqueue that are processes of this machine; of this call, and of one that was killed before it."""
    pytest.importorskip("dask_jobqueue")
    (tmp_path / f"{cluster.KEYS_PREFIX}former").mkdir()
    monkeypatch.setitem(cluster.QUEUES, "here", "HereCluster")
    monkeypatch.setattr("dask_jobqueue.HereCluster", importlib.import_module("dask_jobqueue.local").LocalCluster, raising=False)
    old = os.umask(0)
    try:
        with cluster.connect(cluster.Wish("here", 1, memory_bytes=2**30, folder=tmp_path, options={"interface": "lo"})) as engine:
            folder, = tmp_path.glob(f"{cluster.KEYS_PREFIX}*")
            assert folder.stat().st_mode & 0o777 == 0o700 and (folder / "key.pem").stat().st_mode & 0o777 == 0o600
            assert engine.client.submit(sum, [1, 2]).result() == 3
            assert str(folder / "key.pem") in engine.cluster.job_script()
            for address in (engine.address, *engine.client.scheduler_info()["workers"]):
                assert address.startswith("tls://")
                check_strangers(int(address.rpartition(":")[2]))
    finally:
        os.umask(old)
    assert list(tmp_path.glob(f"{cluster.KEYS_PREFIX}*")) == []


def test_the_package_is_wanted(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(cluster.EngineError, match=r"^--cluster: local: cryptography is not installed: pip install 'ndtd\[fleet\]'$"), \
            cluster.connect(cluster.Wish(workers=1)):
        pass


def test_documentation_names_the_settings(keys):
    """The YAML of docs/fleet.md has the keys that the tests above use."""
    yaml = pytest.importorskip("yaml")
    text = (Path(__file__).parents[3] / "docs/fleet.md").read_text()
    block = next(part for part in text.split("```yaml\n") if part.startswith("# ~/.config/dask/fleet.yaml")).split("```")[0]
    shape = json.loads((keys / "fleet.yaml").read_text().replace(str(keys), "/shared/keys"))
    assert yaml.safe_load(block) == shape
