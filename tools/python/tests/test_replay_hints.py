"""Hints of whole replays: a map of another place, GNSS positions that are turned against the poses; none of a drive that is right."""
import json
import re

import numpy as np
import pytest

import drive_bags
import ndtd


@pytest.fixture
def hints(run_program, tmp_path):
    """hints(bag, map): what a replay hints at."""

    def of(bag, map_path):
        summary = tmp_path / "summary.json"
        run_program("ndtd", "--replay", bag, "--map", map_path, "--set", "preprocess.deskew=time", "--summary", summary)
        return json.loads(summary.read_text())["hints"]

    return of


def with_positions(bag, out, turn_rad):
    """The drive with a position per second, half a metre off, in axes that are turned."""
    random, (c, s) = np.random.default_rng(5), (np.cos(turn_rad), np.sin(turn_rad))
    with ndtd.BagWriter(out) as writer:
        count = 0
        for kind, message in drive_bags.messages_of(bag):
            if kind == "truth":
                count += 1
                x, y, z = message["pose"][:3]
                if count % 10 == 1:
                    writer.gnss(message["stamp_ns"], np.array([c * x - s * y, s * x + c * y, z]) + 0.5 * random.normal(size=3), [0.5] * 3)
            else:
                drive_bags.write(writer, kind, message)
    return out


def test_hints_of_a_drive(simulate, hints, tmp_path):
    drive = simulate("--seed", 2, "--scans", 150, "--beams", 16, "--columns", 450, "--map-spacing", 0.3, "--odometry")
    other = simulate("--seed", 9, "--world", "parking", "--scans", 2, "--beams", 16, "--columns", 36, "--map-spacing", 0.3)
    assert hints(drive.bag, drive.map) == []
    assert hints(with_positions(drive.bag, tmp_path / "right.bag", 0), drive.map) == []
    turned = hints(with_positions(drive.bag, tmp_path / "turned.bag", 0.5), drive.map)
    assert len(turned) == 1 and re.match(r"poses are turned by -2[789] deg against GNSS positions \(15 of them", turned[0])
    lost = hints(drive.bag, other.map)
    assert len(lost) == 1 and lost[0].startswith("none of the scans fits the map. Is it the map of this place")
