"""Refinement of a map's poses: it repairs odometry that is worse than its scans tell, and leaves alone what it cannot better."""
import argparse
import json

import numpy as np
import pytest
from drive_bags import truth_of

from ndtd import ndt_map_build
from ndtd.mapping import quality, records, refine, se3, submaps, trajectory
from ndtd.mapping.build import Mapped, chain_of
from ndtd.mapping.cloud_store import CloudStore
from ndtd.mapping.drive import open_drive
from ndtd.mapping.work_state import WorkState


@pytest.fixture(scope="module")
def street(simulate):
    return simulate("--seed", 8, "--scans", 60, "--beams", 16, "--columns", 600, "--map-spacing", 1)


@pytest.fixture
def mapped(street, tmp_path):
    """mapped, store: the street as odometry has it."""
    options = argparse.Namespace(frame=None, deskew="auto", import_options=[], voxel=0.1, min_range=1.0, max_range=200.0)
    drive = open_drive(str(street.bag), tmp_path, 0, options)
    with CloudStore(tmp_path / "clouds") as store:
        one = trajectory.run(drive, store, 0, options, lambda part: None)
        found = Mapped([drive], [one], [0], one.reference.copy())
        found.poses = found.odometry.copy()
        found.submaps = submaps.split(0, 0, one, store)
        yield found, store


def off_m(mapped, street):
    """Root mean square of the errors of the poses against the truth, after one rigid alignment."""
    truth = truth_of(street.bag)
    known = np.array([truth[int(stamp_ns)][:3, 3] for stamp_ns in mapped.trajectories[0].stamps_ns])
    found = mapped.at_stamps(0)[:, :3, 3]
    a, b = found - found.mean(0), known - known.mean(0)
    U, _, Vt = np.linalg.svd(b.T @ a)
    R = U @ np.diag([1, 1, np.sign(np.linalg.det(U @ Vt))]) @ Vt
    return np.sqrt(((a @ R.T - b) ** 2).sum(axis=1).mean())


def test_odometry_that_is_worse_than_its_scans(mapped, street):
    found, store = mapped
    random = np.random.default_rng(2)
    steps = se3.inverse(found.odometry[:-1]) @ found.odometry[1:] @ se3.exp(random.normal(size=(59, 6)) * ([0.02] * 3 + [0.0016] * 3))
    for k, step in enumerate(steps):
        found.odometry[k + 1] = found.odometry[k] @ step
    found.poses = found.odometry.copy()
    before_m = off_m(found, street)
    done = refine.refine(found, [chain_of(found)], store, 1, lambda part: None)
    assert done.rounds >= 1 and done.held_out_m[done.rounds] < 0.9 * done.held_out_m[0]
    assert done.after_m < 0.8 * done.before_m
    assert off_m(found, street) < 0.4 * before_m


def test_what_it_betters_too_little_stays(mapped, monkeypatch):
    found, store = mapped
    monkeypatch.setattr(refine, "LEAST_GAIN", 0.5)
    before, parts = found.poses.copy(), []
    done = refine.refine(found, [chain_of(found)], store, 1, parts.append)
    assert done.rounds == 0 and len(done.held_out_m) == 2 and np.array_equal(found.poses, before) and done.after_m == done.before_m
    assert parts == sorted(parts) and parts[-1] < 1


def test_scans_that_are_left_out_of_the_map(mapped):
    found, store = mapped
    for node in [*range(20, 24), *found.submaps[-1].scans]:
        store.discard(node)
    assert refine.refine(found, [chain_of(found)], store, 1, lambda part: None).before_m > 0


def test_a_round_after_which_fewer_scans_align_does_not_count(mapped, monkeypatch):
    found, store = mapped
    align, calls = refine.Refiner.align, []

    def fewer(self, poses, moved, fixed, progress):
        aligned = align(self, poses, moved, fixed, progress)
        calls.append(len(moved))
        if len(calls) > 1 and len(moved) < 10:  # the scans held out
            worst = max(aligned, key=lambda k: aligned[k].off_m)
            del aligned[worst]
        return aligned

    monkeypatch.setattr(refine.Refiner, "align", fewer)
    assert refine.refine(found, [chain_of(found)], store, 1, lambda part: None).rounds == 0


def test_scans_that_are_held_out_say_nothing(mapped, monkeypatch):
    found, store = mapped
    seen = []
    edges = refine._edges

    def watched(alignments, poses):
        made = edges(alignments, poses)
        seen.append(set(made.begin.tolist()) | set(made.end.tolist()))
        return made

    monkeypatch.setattr(refine, "_edges", watched)
    refine.refine(found, [chain_of(found)], store, 1, lambda part: None)
    held = set(store.scans()[refine.HELD_OUT // 2::refine.HELD_OUT])
    assert len(held) >= 4 and seen and not any(nodes & held for nodes in seen)
    assert all(nodes == set(store.scans()) - held for nodes in seen)


def test_distances_from_surfaces():
    random = np.random.default_rng(1)
    floor = np.c_[random.uniform(0, 5, (4000, 2)), 0.5 + 0.01 * random.normal(size=4000)]
    surfaces = quality.Surfaces(np.r_[floor, random.uniform(8, 9, (500, 3))])  # and a bush
    assert len(surfaces.thickness_m) == 25 and abs(np.median(surfaces.thickness_m) - 0.01) < 0.001
    off_m = surfaces.distances_m(np.array([[2.5, 2.5, 0.53], [2.5, 2.5, 0.47], [8.5, 8.5, 8.5], [100, 100, 100], [-3, 2, 0.5]]))
    assert len(off_m) == 2 and np.allclose(off_m, 0.03, atol=0.003)
    assert len(quality.Surfaces(random.uniform(8, 9, (500, 3))).distances_m(floor)) == 0


def test_the_record_of_it(tmp_path):
    state = WorkState(tmp_path / "work", {"a": 1}, print)
    assert records.load_refinement(state) is None
    done = refine.Refinement([0.5, 0.6, 0.59], 1, 0.02, float("nan"))
    records.save_refinement(state, np.tile(np.eye(4), (3, 1, 1)), done)
    poses, again = records.load_refinement(state)
    assert poses.shape == (3, 4, 4) and again.held_out_m == done.held_out_m and again.rounds == 1 and again.before_m == 0.02 and np.isnan(again.after_m)


def test_the_map_tells_of_it(street, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert ndt_map_build.main([str(street.bag), "-o", str(tmp_path / "map"), "--refine", "--report", "--threads", "1"]) == 0
    told = json.loads((tmp_path / "map/map.json").read_text())["refinement"]
    assert told["rounds"] == len(told["held_out_m"]) - 2 and len(told["thickness_m"]) == 2
    assert "refinement: " in capsys.readouterr().out and "Refinement" in (tmp_path / "map/report.html").read_text()
