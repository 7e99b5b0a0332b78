"""ndt-map update and changes: drives of a parking deck whose cars have moved since its map, and what is refused."""
import json
import struct

import numpy as np
import pytest
from mover_shares import cloud_of

import ndtd
from ndtd import ndt_map_changes, ndt_map_update
from ndtd.renewal import localise, overlay, proof, votes
from ndtd.renewal.overlay import Change
from ndtd.renewal.prior_map import PriorMap, checksum

SMALL = ("--world", "parking", "--beams", 16, "--columns", 600, "--map-spacing", 0.2)
DECK = (*SMALL, "--seed", 11, "--changed", 0.5)


@pytest.fixture(scope="module")
def monday(simulate):
    return simulate(*DECK, "--scans", 40)


@pytest.fixture(scope="module")
def tuesday(simulate):
    """The same deck on the same day, with other scans."""
    return simulate(*DECK, "--scans", 32, "--rate", 8)


@pytest.fixture(scope="module")
def elsewhere(simulate):
    """A drive through another deck."""
    return simulate(*SMALL, "--seed", 12, "--scans", 30)


def update(*arguments, code=0, start=("--given-start",)):
    """Decks look alike everywhere: without the starts that the bags have, no place of theirs is believed."""
    assert ndt_map_update.main([*map(str, arguments), *start]) == code


@pytest.fixture(scope="module")
def renewed(monday, tuesday, tmp_path_factory):
    """An overlay by two drives, and the page about it."""
    folder = tmp_path_factory.mktemp("renewed")
    pytest.importorskip("matplotlib")
    update(monday.map, monday.bag, tuesday.bag, "-o", folder / "overlay", "--report", folder / "page.html", "-q")
    return folder


def off_m(points, cloud):
    from scipy.spatial import cKDTree
    return cKDTree(cloud).query(points)[0]


def test_what_changed_is_found(monday, simulate, renewed):
    truth = cloud_of(simulate(*SMALL, "--seed", 11, "--scans", 40, "--map-spacing", 0.08).map)
    about, changes = overlay.read(renewed / "overlay")
    old, change = cloud_of(monday.map), changes["map.pcd"]
    gone = old[change.removed]
    assert len(gone) > 100 and np.mean(off_m(gone, truth) > 0.15) > 0.98
    assert len(change.added_m) > 300 and np.mean(off_m(change.added_m, truth) < 0.2) > 0.98
    assert (about["changes"]["removed"], about["changes"]["added"]) == (len(gone), len(change.added_m))
    assert about["cells"]["agreed"] > 100 and about["halves"] is False and len(about["proof"]) == 2
    assert all(one["lost_after"] <= one["lost_before"] for one in about["proof"])


def test_the_page_tells_it(renewed):
    page = (renewed / "page.html").read_text()
    for text in ("What has changed", "Held out, in both maps", "Places with most change", "no held-out recording gets worse"):
        assert text in page
    assert len(page) < 3e6


def test_the_order_of_recordings_does_not_matter(monday, tuesday, renewed, tmp_path):
    update(monday.map, tuesday.bag, monday.bag, "-o", tmp_path / "again", "-q")
    names = sorted(path.name for path in (renewed / "overlay").iterdir())
    assert names == ["map.pcd.change", "map_overlay.yaml", "overlay.json"]
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (renewed / "overlay" / name).read_bytes()


def test_the_format_is_the_one_agreed(monday, renewed):
    data = (renewed / "overlay/map.pcd.change").read_bytes()
    magic, number, points, total, removed, added = struct.unpack_from("<8sQQQQQ", data)
    cloud = cloud_of(monday.map)
    assert magic == b"NDTDCHG1" and len(data) == 48 + 4 * removed + 24 * added and points == len(cloud)
    assert total == int(np.ascontiguousarray(cloud).view(np.uint64).sum(dtype=np.uint64))
    assert json.loads((renewed / "overlay/overlay.json").read_text())["overlay_id"] == f"{number:016x}"


def test_ndtd_reads_the_overlay_as_a_map(monday, renewed):
    """The Python reader and the one of ndtd see the same points; a replay tells no other places."""
    _, changes = overlay.read(renewed / "overlay")
    change = changes["map.pcd"]
    points = np.concatenate([np.delete(cloud_of(monday.map), change.removed, axis=0), change.added_m])
    assert ndtd.Map(renewed / "overlay").id == ndtd.Map(points).id
    scans = list(ndtd.Replay(monday.bag, renewed / "overlay"))
    assert len(scans) == 40 and all(scan.outcome == "converged" for scan in scans)


def test_recordings_of_elsewhere_cast_no_vote(monday, tuesday, elsewhere, simulate, renewed, tmp_path, capsys):
    """Another deck, a map that is the mirror image of the world, a start that is not known; beside others they change nothing."""
    mirror = simulate(*SMALL, "--seed", 13, "--scans", 30, "--mirror")
    for drive, place, start in ((elsewhere.bag, monday.map, ["--given-start"]), (mirror.bag, mirror.map, ["--given-start"]),
                                (mirror.bag, mirror.map, []), (monday.bag, monday.map, [])):
        update(place, drive, "-o", tmp_path / "none", "-q", code=3, start=start)
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 2 and "it casts no vote" in said[0] and "nothing is written" in said[1]
    update(monday.map, monday.bag, elsewhere.bag, tuesday.bag, "-o", tmp_path / "mixed")
    told = capsys.readouterr()
    assert "it casts no vote" in told.err and "held out" in told.out and "next: ndtd --replay RECORDING --map " in told.out
    assert (tmp_path / "mixed/map.pcd.change").read_bytes() == (renewed / "overlay/map.pcd.change").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["mixed"]


def harm(prior):
    """Overlays that hurt: walls that are gone, and a map that has moved as a whole."""
    points = prior.points(0)
    of = prior.files[0]
    everything = np.arange(len(points))
    walls = np.flatnonzero(points[:, 2] > points[:, 2].min() + 0.3)
    return {"without walls": Change(walls, np.empty((0, 3)), of.points, of.checksum),
            "moved": Change(everything, points + [0.4, 0.3, 0.0], of.points, of.checksum)}


@pytest.mark.parametrize("kind", ["without walls", "moved"])
@pytest.mark.parametrize("has_truth", [True, False])
def test_an_overlay_that_hurts_is_refused(monday, kind, has_truth, tmp_path, monkeypatch, capsys):
    count, locate = votes.count_votes, localise.locate

    def planted(prior, store, voters, subsets, progress):
        found, tally = count(prior, store, voters, subsets, progress)
        return ({name: {0: harm(prior)[kind]} for name in found} if len(subsets) > 1 else found), tally

    def blind(*arguments):
        found = locate(*arguments)
        found.error_m[:] = np.nan
        return found

    monkeypatch.setattr(votes, "count_votes", planted)
    if not has_truth:
        monkeypatch.setattr(localise, "locate", blind)
    update(monday.map, monday.bag, "-o", tmp_path / "overlay", "-q", code=3)
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "held out, it is worse in the renewed map" in said and "most at scan" in said
    assert list(tmp_path.iterdir()) == []


def test_poses_that_the_rest_does_not_hold_do_not_vote(monday, tmp_path, monkeypatch, capsys):
    """In the part of the map that stays the drive is elsewhere: a change that carries its own poses."""
    locate = localise.locate

    def drifting(drive, place, *rest):
        found = locate(drive, place, *rest)
        if "untouched" in str(place):
            found.position_m[:, 0] += 0.3
        return found

    monkeypatch.setattr(localise, "locate", drifting)
    update(monday.map, monday.bag, "-o", tmp_path / "overlay", "-q", code=3)
    said = capsys.readouterr().err
    assert "the part of the map that stays holds 0 of" in said and "nothing is written" in said


def test_a_half_alone_proves_nothing(monday, tmp_path, monkeypatch, capsys):
    locate = localise.locate

    def first_half(drive, place, *rest):
        found = locate(drive, place, *rest)
        found.verified[20:] = False
        return found

    monkeypatch.setattr(localise, "locate", first_half)
    update(monday.map, monday.bag, "-o", tmp_path / "overlay", "-q", code=3)
    assert "all its scans that vote are in one half of it" in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def test_changes_as_a_table_a_picture_and_geojson(monday, renewed, tmp_path, capsys):
    assert ndt_map_changes.main([str(renewed / "overlay"), "--picture", str(tmp_path / "above.png")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "points leave" in lines[0] and len(lines) > 3 and all("gone" in line and "new" in line for line in lines[1:])
    assert (tmp_path / "above.png").read_bytes()[:4] == b"\x89PNG"
    assert ndt_map_changes.main([str(renewed / "overlay"), "--geojson", str(tmp_path / "changes.json")]) == 2
    assert "where is the map on the earth?" in capsys.readouterr().err
    pytest.importorskip("yaml")
    (monday.folder / "map_projector_info.yaml").write_text("projector_type: LocalCartesian\nmap_origin: {latitude: 49.0, longitude: 8.4, altitude: 100}\n")
    try:
        assert ndt_map_changes.main([str(renewed / "overlay"), "--geojson", str(tmp_path / "changes.json")]) == 0
    finally:
        (monday.folder / "map_projector_info.yaml").unlink()
    found = json.loads((tmp_path / "changes.json").read_text())
    assert found["type"] == "FeatureCollection" and len(found["features"]) >= len(lines) - 1
    ring = np.array(found["features"][0]["geometry"]["coordinates"][0])
    assert ring.shape == (5, 2) and np.array_equal(ring[0], ring[4]) and np.abs(ring - [8.4, 49.0]).max() < 0.01


@pytest.mark.parametrize(("spoil", "said"), [
    (lambda folder: (folder / "overlay.json").unlink(), "no overlay: overlay.json is missing"),
    (lambda folder: (folder / "overlay.json").write_text("{"), "overlay.json: is no JSON"),
    (lambda folder: (folder / "overlay.json").write_text("[]"), "is no ndtd-overlay of version 1"),
    (lambda folder: (folder / "map.pcd.change").unlink(), "its files are not those of the overlay"),
    (lambda folder: (folder / "map.pcd.change").write_bytes(b"NDTDCHG1"), "is no change of a cloud"),
    (lambda folder: cut(folder, slice(0, -8)), "bytes, which are not those of"),
    (lambda folder: cut(folder, slice(0, 8), b"\1" * 8), "is of the overlay 0101010101010101"),
    (lambda folder: cut(folder, slice(0, 48), b"\xff" * 12), "are not ascending places"),
    (lambda folder: cut(folder, slice(0, -8), b"\0\0\0\0\0\0\xf8\x7f"), "an added point is not finite"),
])
def test_damaged_overlays_give_one_line(renewed, tmp_path, refused, spoil, said):
    for path in (renewed / "overlay").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    spoil(tmp_path)
    assert said in refused(ndt_map_changes.main, 3, tmp_path)


def cut(folder, kept, put=b""):
    """Keeps a part of the change, puts other bytes behind it, and what followed them."""
    path = folder / "map.pcd.change"
    data = path.read_bytes()
    head = data[kept]
    path.write_bytes(head + put + data[len(head) + len(put):] if put else head)


def test_an_overlay_of_another_map_is_told(renewed, elsewhere, tmp_path, refused):
    for path in (renewed / "overlay").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    about = json.loads((tmp_path / "overlay.json").read_text())
    (tmp_path / "overlay.json").write_text(json.dumps({**about, "map": str(elsewhere.map)}))
    assert "is not the one that it was made for" in refused(ndt_map_changes.main, 3, tmp_path)


def test_wrong_use_gives_one_line(monday, tmp_path, refused):
    there, empty = tmp_path / "there", tmp_path / "empty"
    there.mkdir()
    (there / "mine").write_text("")
    empty.mkdir()
    ndtd.Map(monday.map).save(str(tmp_path / "map.ndtmap"))
    for arguments, said in ((("none.pcd", monday.bag, "-o", "x"), "none.pcd: no such file"),
                            ((tmp_path / "map.ndtmap", monday.bag, "-o", "x"), "a compiled map has no points"),
                            ((monday.bag, monday.bag, "-o", "x"), "not a point cloud"),
                            ((empty, monday.bag, "-o", "x"), "no point cloud in this folder"),
                            ((monday.map, monday.bag, "-o", there), "exists already; --force"),
                            ((monday.map, monday.bag, "-o", there, "--force"), "is no overlay of this command"),
                            ((monday.folder, monday.bag, "-o", monday.folder / "x"), "lies beside its map, not in it"),
                            ((monday.map, monday.bag, monday.bag, "-o", "x"), "given twice"),
                            ((monday.map, monday.bag, "-o", "x", "-c", "none.yaml"), "none.yaml: no such file")):
        assert said in refused(ndt_map_update.main, 2, *arguments)
    assert "none.bag: no such file or folder" in refused(ndt_map_update.main, 3, monday.map, "none.bag", "-o", tmp_path / "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "map.ndtmap", "there"]


def test_force_replaces_an_overlay(monday, tmp_path, capsys):
    (tmp_path / "overlay").mkdir()
    (tmp_path / "overlay/overlay.json").write_text("{}")
    update(monday.map, monday.bag, "-o", tmp_path / "overlay", "--force")
    told = capsys.readouterr().out
    assert "its second half was held out" in told and overlay.read(tmp_path / "overlay")[0]["halves"] is True


def test_points_that_are_not_finite_do_not_count():
    points = np.array([[1.0, 2.0, 3.0], [np.nan, 1.0, 1.0], [4.0, 5.0, 6.0]])
    assert checksum(points) == int(points[[0, 2]].ravel().view(np.uint64).sum(dtype=np.uint64))


def located(error_m, fit=0.6, trusted=True):
    """A replay with these errors."""
    count = len(error_m)
    flags, poses = np.full(count, True), np.tile(np.eye(4), (count, 1, 1))
    return localise.Located(np.arange(count), np.full(count, trusted), flags, flags, np.zeros((count, 3)), poses, np.zeros((count, 6)),
                            np.full(count, 0.01), np.full(count, 1e-3), np.full(count, fit), np.asarray(error_m, float), [None] * count, poses)


def test_the_proof_knows_harm_from_chance(rng):
    before = np.abs(rng.normal(0, 0.02, 200))
    for after, harm in ((before, ""), (before + rng.normal(0, 0.002, 200), ""), (before * 0.5, ""), (before * 1.6, "error goes from"),
                        (np.where(np.arange(200) == 7, 3.0, before), "off by more than 1 m")):
        told = proof.compare("drive", located(before), located(after)).harm
        assert (harm in told) if harm else told == "", told
    lost = located(before)
    lost.trusted[40:50] = False
    assert "10 of 200 scans have no trusted pose, 0 in the old map; most at scan 40" in proof.compare("drive", located(before), lost).harm
    blind = np.full(200, np.nan)
    assert "the median fit goes from 0.600 to 0.500" in proof.compare("drive", located(blind), located(blind, 0.5)).harm
    assert "the median fit goes from 0.600 to 0.500" in proof.compare("drive", located(before), located(before, 0.5)).harm
    away = located(blind)
    away.position_m[:20] += 0.2
    assert "10% of the poses are not where the old map has them" in proof.compare("drive", located(blind), away).harm


def test_truth_of_another_map_is_no_proof(rng):
    """Poses 78 m from a truth in the frame of another map: a tenth of that is no margin, and the poses of the old map judge."""
    far = 78.0 + np.abs(rng.normal(0, 0.02, 200))
    away = located(far + 3.0)
    away.position_m[:, 0] += 3.0
    told = proof.compare("drive", located(far), away)
    assert "100% of the poses are not where the old map has them" in told.harm
    assert told.measure == "fit" and told.about()["truth_off_m"] == pytest.approx(78.0, abs=0.1)
    assert proof.compare("drive", located(far), located(far)).harm == ""


def test_a_map_in_a_folder_of_ndt_map_build(monday, tmp_path):
    (tmp_path / "map.json").write_text("{}")
    (tmp_path / "map.pcd").write_bytes(monday.map.read_bytes())
    (tmp_path / "moved.pcd").write_bytes(monday.map.read_bytes())
    prior = PriorMap(tmp_path)
    assert prior.path == tmp_path / "map.pcd" and len(prior.files) == 1 and prior.spacing_m == pytest.approx(0.2, abs=0.05)
