"""Votes about a map: rooms of boxes that are scanned at known poses, without a replay."""
import numpy as np
import pytest

import ndtd
from ndtd.mapping.clean import pixel_rad
from ndtd.mapping.cloud_store import CloudStore
from ndtd.renewal import votes
from ndtd.renewal.localise import Voter
from ndtd.renewal.prior_map import PriorMap

ROOM = ((0, 0, 0), (16, 10, 4))
BOX = np.array([(7.0, 6.0, 0.0), (8.2, 7.0, 1.6)])
MOVED = BOX + [3.0, 0.5, 0.0]


def faces(box, spacing_m=0.12):
    """Points on the six faces of a box."""
    low, high = np.asarray(box, float)
    out = []
    for axis in range(3):
        a, b = (np.arange(low[k] + spacing_m / 2, high[k], spacing_m) for k in range(3) if k != axis)
        grid = np.stack(np.meshgrid(a, b), -1).reshape(-1, 2)
        for side in (low, high):
            out.append(np.insert(grid, axis, side[axis], axis=1))
    return np.concatenate(out)


def cast(origin, directions, boxes):
    """Where rays meet the room from inside, or a box."""
    with np.errstate(divide="ignore"):
        inverse = 1 / directions
    reach = np.full(len(directions), np.inf)
    for number, (low, high) in enumerate([ROOM, *boxes]):
        a, b = ((np.asarray(end, float) - origin) * inverse for end in (low, high))
        near, far = np.minimum(a, b).max(axis=1), np.maximum(a, b).min(axis=1)
        met = far if number == 0 else np.where((near < far) & (near > 0), near, np.inf)
        reach = np.minimum(reach, met)
    return directions * reach[:, None]


def scan_of(origin, boxes, rng):
    """What a sensor with 32 beams measures, in its frame."""
    elevation, azimuth = np.meshgrid(np.deg2rad(np.linspace(-30, 15, 32)), np.deg2rad(np.arange(0, 360, 0.5)))
    directions = np.stack([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)], -1).reshape(-1, 3)
    points = cast(origin, directions, boxes)
    return points * (1 + rng.normal(0, 0.01, len(points)) / np.linalg.norm(points, axis=1))[:, None]


def write_map(path, boxes):
    ndtd.write_cloud(path, np.concatenate([faces(ROOM), *map(faces, boxes)]))
    return PriorMap(path)


def walk(count=30):
    """Places along the room."""
    return [np.array([2 + 11 * k / count, 3.0 + 0.3 * np.sin(k), 1.4]) for k in range(count)]


class Drives:
    """Scans that vote; boxes: of each scan."""

    def __init__(self, folder, prior):
        self.prior, self.store, self.voters, self.rng = prior, CloudStore(folder / "clouds"), [], np.random.default_rng(3)

    def add(self, places, boxes_at, part=0, deviation_m=0.005, deviation_rad=1e-3):
        for k, origin in enumerate(places):
            points, T = scan_of(origin, boxes_at(k), self.rng), np.eye(4)
            T[:3, 3] = origin
            key = len(self.voters)
            self.store[key] = points
            self.voters.append(Voter(key, k, part, T, deviation_m, deviation_rad, pixel_rad(points)))
        return self

    def count(self, voters=None, subsets=None):
        parts = {voter.part for voter in self.voters}
        return votes.count_votes(self.prior, self.store, self.voters if voters is None else voters, subsets or {votes.ALL: parts}, lambda part: None)

    def changed(self):
        """Points that leave, and those that are added."""
        change = self.count()[0][votes.ALL].get(0)
        none = np.empty((0, 3))
        return (none, none) if change is None else (self.prior.points(0)[change.removed], change.added_m)


def off_m(points, box):
    """Distance from a box."""
    low, high = box
    return np.linalg.norm(np.maximum(np.maximum(low - points, points - high), 0), axis=1)


def test_a_moved_box_leaves_and_appears(tmp_path):
    prior = write_map(tmp_path / "map.pcd", [BOX])
    drives = Drives(tmp_path, prior).add(walk(), lambda k: [MOVED])
    gone, new = drives.changed()
    assert len(gone) > 300 and off_m(gone, BOX).max() < 0.05
    front = prior.points(0)[(np.abs(prior.points(0)[:, 1] - BOX[0, 1]) < 0.01) & (off_m(prior.points(0), BOX) < 0.01)]
    upper = front[front[:, 2] > 0.6]
    assert np.mean([(gone == point).all(axis=1).any() for point in upper]) > 0.9
    assert len(new) > 100 and off_m(new, MOVED).max() < 0.05
    tally = drives.count()[1]
    assert tally.seen > 1000 and tally.through > 50 and tally.gone > 50 and tally.stay == len(new) and tally.agreed == 0


def test_nothing_changes_where_nothing_has(tmp_path):
    gone, new = Drives(tmp_path, write_map(tmp_path / "map.pcd", [BOX])).add(walk(), lambda k: [BOX]).changed()
    assert len(gone) == 0 and len(new) == 0


@pytest.mark.parametrize("speed_m", [0.1, 0.25, 0.6])
def test_what_moves_is_not_added(tmp_path, speed_m):
    """A person who walks along ahead, or the other way; to the end of the recording."""
    person = np.array([(0.0, 0.0, 0.0), (0.5, 0.5, 1.7)])
    drives = Drives(tmp_path, write_map(tmp_path / "map.pcd", []))
    drives.add(walk(), lambda k: [person + [4 + speed_m * k, 5.0, 0], person + [13 - speed_m * k, 7.0, 0]])
    gone, new = drives.changed()
    assert len(gone) == 0 and len(new) == 0


def test_what_several_drives_see_for_a_moment_is_not_added(tmp_path):
    """Each day something stands in the same place while four scans are taken, and nobody looks there before or after."""
    drives = Drives(tmp_path, write_map(tmp_path / "map.pcd", []))
    for part in (0, 2, 4, 6):
        drives.add(walk()[10:14], lambda k: [MOVED], part)
    assert drives.count()[1].new > 100 and len(drives.changed()[1]) == 0
    drives.add(walk(), lambda k: [MOVED], 8)
    assert len(drives.changed()[1]) > 100


def test_from_one_place_nothing_changes(tmp_path):
    prior = write_map(tmp_path / "map.pcd", [BOX])
    gone, new = Drives(tmp_path, prior).add([np.array([9.0, 3.0, 1.4])] * 20, lambda k: [MOVED]).changed()
    assert len(gone) == 0 and len(new) == 0


def test_unsure_poses_do_not_vote(tmp_path):
    prior = write_map(tmp_path / "map.pcd", [BOX])
    drives = Drives(tmp_path, prior).add(walk(), lambda k: [MOVED], deviation_m=0.07)
    assert drives.count()[0] == {votes.ALL: {}} and votes.Ballot(prior, drives.store, drives.voters).blocks() == []
    sure, turned = drives.voters[0], drives.voters[1]
    sure.deviation_m, turned.deviation_m, turned.deviation_rad = 0.01, 0.01, 0.02
    assert votes.reach_m(sure) > 10 and votes.reach_m(turned) == pytest.approx(2.6, abs=0.1)


def test_a_thin_board_between_beams_stays(tmp_path):
    """At the height of the sensor, which carries it level: the beams pass above and below."""
    board = np.array([(6.0, 6.0, 1.43), (9.0, 6.6, 1.45)])
    gone, _ = Drives(tmp_path, write_map(tmp_path / "map.pcd", [board])).add(walk(), lambda k: [board]).changed()
    assert len(gone) == 0


def test_the_order_of_votes_does_not_matter(tmp_path):
    prior = write_map(tmp_path / "map.pcd", [BOX])
    drives = Drives(tmp_path, prior)
    for part in (0, 2, 4):
        drives.add([place + [0.1 * part, 0.15 * part, 0] for place in walk(12)], lambda k: [MOVED], part)
    subsets = {votes.ALL: {0, 2, 4}, 0: {2, 4}, 4: {0, 2}}
    found, tally = drives.count(subsets=subsets)
    assert tally.agreed > 50
    for parts in ((2, 4, 0), (4, 2, 0)):
        mixed = [voter for part in parts for voter in drives.voters if voter.part == part]
        other, same = drives.count(mixed, subsets)
        assert same == tally and other.keys() == found.keys()
        for name in found:
            assert found[name][0].bytes(1) == other[name][0].bytes(1) and len(found[name][0].added_m) > 50
    block = votes.Ballot(prior, drives.store, drives.voters).judge((0, 0))
    every = list(block.votes.values())
    one, other = (votes.merge(some, len(block.cells)) for some in (every, every[::-1]))
    for name, values in vars(one).items():
        assert np.array_equal(values, getattr(other, name)), name
    assert (votes.count_bits(one.through_places) > votes.count_bits(every[0].through_places)).any()


def test_held_out_votes_are_those_of_the_others_alone(tmp_path):
    """With and without a recording in the ballot, what the others say is the same."""
    prior = write_map(tmp_path / "map.pcd", [BOX])
    drives = Drives(tmp_path, prior).add(walk(12), lambda k: [MOVED], 0).add([one + [0.2, 0.4, 0] for one in walk(12)], lambda k: [MOVED], 2)
    both = drives.count(subsets={7: {2}})[0][7]
    alone = drives.count([voter for voter in drives.voters if voter.part == 2], {7: {2}})[0][7]
    assert both[0].bytes(1) == alone[0].bytes(1) and len(alone[0].removed) > 50


def test_new_points_belong_to_the_nearest_tile(tmp_path):
    folder = tmp_path / "tiles"
    folder.mkdir()
    points = np.concatenate([faces(ROOM), faces(BOX)])
    for number in range(2):
        ndtd.write_cloud(folder / f"{number}.pcd", points[(points[:, 0] < 8) == (number == 0)])
    drives = Drives(tmp_path, PriorMap(folder)).add(walk(), lambda k: [MOVED])
    found = drives.count()[0][votes.ALL]
    assert set(found) == {0, 1} and len(found[0].removed) > 50 and len(found[0].added_m) == 0 and len(found[1].added_m) > 50
    whole = Drives(tmp_path, write_map(tmp_path / "map.pcd", [BOX])).add(walk(), lambda k: [MOVED])
    gone, new = whole.changed()
    assert len(gone) == sum(len(one.removed) for one in found.values()) and np.allclose(np.sort(new, axis=0), np.sort(found[1].added_m, axis=0))
