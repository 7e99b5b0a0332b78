"""Many calls, many threads, other processes: no leak, no crash, the same bits."""
import gc
import os
import sys
import threading

import numpy as np
import pytest

import ndtd


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def least_growth(turn, turns, windows=5):
    """Bytes that the process grows by in the calmest of some windows of `turns` calls.

    A leak grows in every window; what other threads of the tests allocate, and the allocator's own caches, do not.
    """
    growths = []
    for _ in range(windows):
        before = resident_bytes()
        for _ in range(turns):
            turn()
        gc.collect()
        growths.append(resident_bytes() - before)
    return min(growths)


def together(work, count=4):
    """work(number) in threads."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


@pytest.fixture(scope="module")
def scan(scans):
    return ndtd.preprocess(scans[0]["points"])


def test_no_leak_over_100000_alignments(street, scan, poses):
    """Results, arrays, clouds and references; a leak of 100 bytes a call would be 10 MB."""
    aligner = ndtd.Aligner(street, threads=1, levels=[1], max_iterations=2)
    points, guess = scan[:5].copy(), poses[0]

    def turn():
        result = aligner.align(points, guess)
        return result.pose, result.covariance, result.trace

    for _ in range(10000):
        turn()
    gc.collect()
    references = sys.getrefcount(points), sys.getrefcount(guess)
    assert least_growth(turn, 20000) < 1e6  # 50 bytes a call
    assert (sys.getrefcount(points), sys.getrefcount(guess)) == references


def test_no_leak_of_refused_calls_maps_and_batches(street, scan, poses, drive):
    def turn():
        for bad in (np.zeros((5, 2)), np.zeros((5, 3), int), "scan", None):
            with pytest.raises((ValueError, TypeError)):
                ndtd.align(street, bad, poses[0])
        with pytest.raises(TypeError):
            ndtd.Aligner(street, unknown=1)
        ndtd.align_batch(street, scan[:50], poses[:4])
        ndtd.preprocess(scan)
        ndtd.Map(scan, levels=[2]).voxels(2)
        list(ndtd.Replay(drive.bag, drive.map, limit=1))

    for _ in range(20):
        turn()
    gc.collect()
    assert least_growth(turn, 20) < 1.6e6  # a map of the drive has 6 MB


def test_threads_share_a_map_and_an_aligner(street, scan, poses):
    """Eight threads: aligners of their own, a shared one, refused calls in between."""
    shared, wanted = ndtd.Aligner(street), [ndtd.align(street, scan, pose).pose for pose in poses[:4]]
    wrong = []

    def work(number):
        try:
            for k in range(40):
                which = (number + k) % 4
                use = shared.align if k % 2 else lambda *arguments: ndtd.align(street, *arguments)
                if not np.array_equal(use(scan, poses[which]).pose, wanted[which]):
                    wrong.append((number, k))
                with pytest.raises(ValueError):
                    use(scan, np.eye(3))
        except BaseException as reason:
            wrong.append(reason)

    together(work, 8)
    assert wrong == []


def test_the_interpreter_is_released(street, scan, poses, scans):
    """Another thread goes on while one aligns: it counts while a long batch runs."""
    aligner, many = ndtd.Aligner(street, threads=1), np.vstack([one["points"] for one in scans])
    counted, ends = [0], threading.Event()

    def count():
        while not ends.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    aligner.align_batch(many, [poses[0]] * 4)  # 150 000 points, four times, within one call
    during = counted[0] - before
    ends.set()
    thread.join()
    assert during > 1000


def test_threads_share_a_replay(drive):
    replay, scans = ndtd.Replay(drive.bag, drive.map), []

    def work(_):
        for scan in replay:
            scans.append(scan.seq)
            replay.hash, replay.truth(scan.stamp_ns)

    together(work)
    alone = ndtd.Replay(drive.bag, drive.map)
    assert sorted(scans) == [scan.seq for scan in alone] and replay.hash == alone.hash


def test_after_fork_the_child_makes_its_own(street, scan, poses, drive):
    """Threads do not survive fork(): what has some is refused there; align begins anew."""
    wanted = ndtd.align(street, scan, poses[0]).pose
    aligner, replay = ndtd.Aligner(street), ndtd.Replay(drive.bag, drive.map)
    search = ndtd.Search(street)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for use in (lambda: aligner.align(scan, poses[0]), lambda: next(replay), lambda: search.run(scan)):
                with pytest.raises(RuntimeError, match=r"made before fork\(\)"):
                    use()
            del aligner, replay, search
            gc.collect()
            same = np.array_equal(ndtd.align(street, scan, poses[0]).pose, wanted)
            code = 0 if same and ndtd.Aligner(street).align(scan, poses[0]).converged else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(aligner.align(scan, poses[0]).pose, wanted)


def test_threads_share_a_bag(tmp_path, scan):
    """Writers of one bag, then readers of it: whole records, each once."""
    with ndtd.BagWriter(tmp_path / "a.bag") as bag:
        together(lambda number: [bag.scan(number, scan[: 10 * number + 5], seq=100 * number + k) for k in range(50)])
    reader, seen = ndtd.BagReader(tmp_path / "a.bag"), []
    together(lambda number: seen.extend(ndtd.decode_scan(record.payload) for record in reader))
    assert sorted(one["seq"] for one in seen) == [100 * number + k for number in range(4) for k in range(50)]
    assert all(len(one["points"]) == 10 * one["stamp_ns"] + 5 for one in seen)
