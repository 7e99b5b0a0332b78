"""ndt-fleet run: configurations, bags, the plan on a cluster, stopped and gone on with, refused."""
import os
from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("fsspec")

from ndtd.fleet import bags, cluster, coordinator  # noqa: E402
from ndtd.fleet.run_folder import Configuration, Job, RunFolder  # noqa: E402

TESTS = str(Path(__file__).parent)


@pytest.fixture(scope="module")
def local():
    """Two workers that find the stand-in of task.py."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = TESTS + (os.pathsep + before if before else "")
    try:
        with cluster.connect(cluster.Wish(workers=2)) as engine:
            yield engine
    finally:
        os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


def make_bags(folder, **texts):
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.bag").write_text(f"{text}\nname {name}\n")
    return bags.find([f"{folder}/*.bag"])


def make_run(path, configurations=2):
    folder = RunFolder(path)
    folder.save_job(Job("token", "ndtd 1", "/map", tuple(Configuration(f"c{i}", f"c{i}.yaml", f"{i}" * 32) for i in range(configurations))))
    return folder


def calls(folder):
    return (folder.path / "calls.txt").read_text().splitlines()


def replay(folder, found, engine, **options):
    return coordinator.Coordinator(folder, folder.job(), found, engine, tasks="fleet_stand_in", **options).run()


def test_every_bag_with_every_configuration_once(tmp_path, local):
    found = make_bags(tmp_path / "bags", **{f"b{i}": "scans 10" for i in range(20)}, long="scans 90\npieces 3")
    folder = make_run(tmp_path / "run")
    outcome = replay(folder, found, local)
    assert (outcome.total, outcome.done, outcome.failed, outcome.scans) == (42, 42, 0, 2 * (200 + 90))
    assert len(calls(folder)) == len(set(calls(folder))) == 21 + 40 + 2 * 3 + 2
    again = replay(folder, found, local)
    assert (again.done, again.present, again.scans, again.replayed) == (42, 42, 580, 0)
    assert len(calls(folder)) == 21 + 40 + 8


def test_failures_are_tried_again_and_listed(tmp_path, local):
    found = make_bags(tmp_path / "bags", good="scans 10", twice="scans 10\nfail 2", thrice="scans 10\nfail 3", none="unusable",
                      pieces="scans 30\npieces 3\nfail 3")
    folder = make_run(tmp_path / "run", 1)
    outcome = replay(folder, found, local)
    assert (outcome.total, outcome.done, outcome.failed) == (5, 2, 3)
    said = {Path(one.bag).stem: one for one in outcome.failures.first}
    assert set(said) == {"thrice", "none", "pieces"}
    assert (said["none"].attempts, said["none"].config, said["thrice"].attempts, said["thrice"].config) == (2, "", 3, "c0")
    assert said["thrice"].lines == ("ndtd: no",)
    assert len(list(folder.path.glob("failed/*/*.json"))) == 3
    again = replay(folder, found, local)
    assert (again.done, again.present, again.failed) == (4, 2, 1)
    assert [Path(one.bag).stem for one in again.failures.first] == ["none"]
    assert len(list(folder.path.glob("failed/*/*.json"))) == 1


def test_a_bag_that_kills_its_workers_is_the_only_one_that_fails(tmp_path, local):
    found = make_bags(tmp_path / "bags", **{f"b{i:02}": "scans 10\nsleep 0.02" for i in range(40)}, a="scans 10\ndie 1", k="scans 10\ndie 99")
    folder = make_run(tmp_path / "run", 1)
    outcome = replay(folder, found, local)
    assert (outcome.total, outcome.done, outcome.failed) == (42, 41, 1)
    assert [(Path(one.bag).stem, one.kind, one.attempts) for one in outcome.failures.first] == [("k", "lost", 3)]
    assert sum(line.endswith("/k.bag 0") for line in calls(folder)) == 3


def test_bags_with_the_same_content_are_replayed_once(tmp_path, local):
    found = make_bags(tmp_path / "bags", a="scans 10", b="scans 10")
    Path(found[1].url).write_bytes(Path(found[0].url).read_bytes())
    found = bags.find([str(tmp_path / "bags/*.bag")])
    outcome = replay(make_run(tmp_path / "run"), found, local)
    assert (outcome.total, outcome.done, outcome.copies.count) == (2, 2, 1)
