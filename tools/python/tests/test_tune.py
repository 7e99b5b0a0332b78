"""ndt-tune chooses what is better, keeps what is as good, and refuses what does not hold on scans that were held out."""
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("msgpack")
import ndtd
from ndtd import ndt_tune
from ndtd.tuning import choice
from ndtd.tuning.trial import Trial


def tune(*arguments, code=0):
    done = subprocess.run([sys.executable, "-m", "ndtd.ndt_tune", "--quiet", *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def street(simulate):
    return simulate("--world", "street", "--scans", 220, "--beams", 16, "--columns", 900, "--seed", 31)


@pytest.fixture(scope="module")
def no_truth(street, tmp_path_factory):
    """The same recording without the truth."""
    import msgpack

    bag = tmp_path_factory.mktemp("tune") / "no_truth.bag"
    with ndtd.BagWriter(str(bag)) as out:
        for record in ndtd.BagReader(str(street.bag)):
            if record.type == "scan":
                scan = ndtd.decode_scan(record.payload)
                out.scan(scan["stamp_ns"], scan["points"], time_s=scan["time_s"], frame_id=scan["frame_id"])
            elif record.type == "initial_pose":
                message = msgpack.unpackb(record.payload)
                out.initial_pose(message["stamp_ns"], ndtd.poses.matrix(message["pose"]))
    return bag


def test_coarse_levels_are_found_out_with_the_truth_and_without(street, no_truth, tmp_path, run_program):
    """The usual levels are better than coarse ones: chosen, confirmed, written, read by ndtd."""
    for bag, measure in ((street.bag, "error [cm]"), (no_truth, "motion off [cm]")):
        out = tmp_path / f"{bag.stem}.yaml"
        said = tune(bag, "--map", street.map, "--set", "ndt.levels=[4.0,2.0]", "--try", "ndt.levels=[4.0,2.0,1.0],[4.0]", "-o", out)
        assert measure in said and "held out, the second half:" in said
        assert "\nndt.levels=[4.0,2.0,1.0]: better on scans that were held out" in said
        assert out.read_text().splitlines()[1:] == ["ndt:", "  levels: [4.0,2.0,1.0]"]
        run_program("ndtd", "--check-config", "-c", out)
        assert "exists already" in tune(bag, "--map", street.map, "-o", out, code=2)


def test_what_changes_nothing_is_not_chosen(street, tmp_path):
    out = tmp_path / "tuned.yaml"
    said = tune(street.bag, "--map", street.map, "--try", "cpu.spin_us=0,50", "--try", "ndt.step_size=0.05", "-o", out)
    assert "without effect on these scans: cpu.spin_us=0, cpu.spin_us=50, ndt.step_size=0.05\n" in said
    assert "No setting is better by more than chance" in said and not out.exists()


def test_other_recordings_are_held_out(street, simulate):
    other = simulate("--world", "street", "--scans", 110, "--beams", 16, "--columns", 900, "--seed", 31, "--noise", "0.021")
    said = tune(street.bag, other.bag, "--map", street.map, "--set", "ndt.levels=[4.0,2.0]", "--try", "ndt.levels=[4.0,2.0,1.0]")
    assert f"chosen on {street.bag}:" in said and f"held out, {other.bag}:" in said and "settings, 110 scans" in said


def trial(error_m, lost=0.0):
    error_m = np.asarray(error_m, float)
    is_lost = np.random.default_rng(9).random(len(error_m)) < lost
    return Trial(is_lost, (error_m > 1.0) & ~is_lost, np.where(is_lost, np.nan, error_m), np.full(len(error_m), np.nan), np.full(len(error_m), 0.5))


def judge(first, second):
    found = choice.compare(first, second, "error_m")
    return found, found.is_better(found.p, found.p_lost)


def test_losses_and_wrong_poses_weigh_more_than_errors():
    random = np.random.default_rng(1)
    first = 0.02 * random.random(200)
    assert judge(trial(first), trial(0.5 * first))[1]
    assert judge(trial(first), trial(0.5 * first, lost=0.1))[0].is_harmed
    wrong = 0.5 * first
    wrong[100] = 3.0
    assert judge(trial(first), trial(wrong))[0].is_harmed
    assert judge(trial(first, lost=0.2), trial(first))[1]
    assert not judge(trial(first, lost=0.2), trial(1.2 * first))[1]  # saves scans, and is less exact
    assert not judge(trial(first), trial(first + 1e-5 * random.standard_normal(200)))[1]


def test_one_scan_saved_is_chance():
    error_m = 0.02 * np.random.default_rng(3).random(110)
    first = trial(error_m)
    first.lost[50] = True
    assert not judge(first, trial(error_m))[1]


def test_settings_without_a_difference_are_seldom_called_better():
    """Series with the same errors, correlated as those of neighbouring scans are; one side of 5 % would be 5 of 200."""
    for scans, width in ((100, 9), (200, 9), (150, 40)):
        random, called = np.random.default_rng(2), 0
        for _ in range(200):
            one, other = (np.abs(np.convolve(random.standard_normal(scans + width - 1), np.ones(width) / width ** 0.5, "valid")) for _ in range(2))
            called += judge(trial(0.01 * one), trial(0.01 * other))[1]
        assert called <= 10, (scans, width, called)


def test_values_with_brackets():
    assert [str(one) for one in ndt_tune.read_tries(["ndt.levels=[2.0,1.0],[2.0]", "preprocess.voxel_m=0.5, 1"])] == [
        "ndt.levels=[2.0,1.0]", "ndt.levels=[2.0]", "preprocess.voxel_m=0.5", "preprocess.voxel_m=1"]


@pytest.mark.parametrize("arguments, code, words", [
    (["{bag}", "--map", "nosuch.pcd"], 3, "nosuch.pcd"),
    (["nosuch.bag", "--map", "{map}"], 3, "nosuch.bag: no such file or folder"),
    (["{bag}", "--map", "{map}", "--try", "preprocess.voxel"], 2, "preprocess.voxel: not KEY=VALUE"),
    (["{bag}", "--map", "{map}", "--try", "preprocess.voxl_m=1"], 3, "did you mean 'preprocess.voxel_m'?"),
    (["{bag}", "--map", "{map}", "--try", "preprocess.voxel_m=-1"], 3, "preprocess.voxel_m"),
    (["{bag}", "{bag}", "--map", "{map}"], 2, "given twice"),
    (["{bag}", "--map", "{map}", "-c", "nosuch.yaml"], 2, "nosuch.yaml: no such file"),
    (["{bag}", "--map", "{map}", "--jobs", "-1"], 2, "--jobs"),
    (["{bag}", "--map", "{map}", "-o", "nosuch/tuned.yaml"], 2, "there is no such folder"),
    (["{short}", "--map", "{map}"], 3, "scans; 100 at least are needed to tell settings from chance, 200 in a single recording"),
    (["{bag}", "{short}", "--map", "{map}"], 3, "the part that is held out has 20 scans; 100 at least are needed")])
def test_wrong_input_is_one_line(arguments, code, words, street, drive):
    names = {"bag": street.bag, "map": street.map, "short": drive.bag}
    said = tune(*(one.format(**names) for one in arguments), code=code)
    assert said.startswith("ndt-tune: ") and words in said and said.count("\n") == 1
    assert not os.path.exists("nosuch.yaml")
