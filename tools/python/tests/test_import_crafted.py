"""Files that are made to harm: whatever their decoder does, the command says one line and ends with a documented code."""
import ctypes
import faulthandler
import os
import random
import signal
import sys
import time
import traceback

import numpy as np
import pytest
from recording_maker import T0, Messages, some_points, write_bag1, write_bag2

from ndtd import map_import, ndt_export, ndt_import
from ndtd.maps import point_files

CLOUD, PACKETS = "sensor_msgs/msg/PointCloud2", "velodyne_msgs/msg/VelodyneScan"
MUTATIONS = int(os.environ.get("NDT_MUTATIONS", 15))


def start(log, command, *arguments):
    """The id of a process that runs a console command, with its output in `log`."""
    process = os.fork()
    if process:
        return process
    code = 99
    faulthandler.disable()  # of pytest
    try:
        stream = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(stream, 1)
        os.dup2(stream, 2)
        sys.stdout, sys.stderr = (open(fd, "w", closefd=False) for fd in (1, 2))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP):  # other tests of this process may have set handlers
            signal.signal(number, signal.SIG_DFL)
        code = command([str(one) for one in arguments])
    except SystemExit as error:
        code = error.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def outcome(log, command, *arguments):
    """(exit code, or minus the signal; output) of a command."""
    _, status = os.waitpid(start(log, command, *arguments), 0)
    return os.waitstatus_to_exitcode(status), log.read_text(errors="replace")


# ---- what decoders do


class Panic(BaseException):
    """As pyo3 raises it for a panic of Rust."""


def abort(path):
    os.write(2, b"memory allocation of 68719476720 bytes failed\nstack backtrace:\n   0: std::alloc::rust_oom\n")
    os.abort()


def panic(path):
    raise Panic("attempt to subtract with overflow")


FAULTS = {"abort": (abort, "SIGABRT: memory allocation of 68719476720 bytes failed"),
          "wrong pointer": (lambda path: ctypes.string_at(0), "SIGSEGV"),
          "out of memory": (lambda path: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL: out of memory?")}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_decoder_that_ends_the_process(fault, tmp_path, monkeypatch):
    """The decoder of the second file ends: the first is good; nothing is left behind."""
    function, why = FAULTS[fault]
    np.save(tmp_path / "a.npy", np.random.default_rng(1).uniform(0, 9, (100, 3)))
    (tmp_path / "b.pcd").write_bytes(b"x")
    monkeypatch.setitem(point_files._READERS, ".pcd", function)
    code, text = outcome(tmp_path / "log", map_import.command, "-o", tmp_path / "map", tmp_path / "a.npy", tmp_path / "b.pcd")
    assert code == 3
    assert text == f"ndt-import map: {tmp_path}/b.pcd: damaged: its decoder ended the process ({why})\n"
    (tmp_path / "r.tum").write_text("1 0 0 0 0 0 0 1\n")
    code, text = outcome(tmp_path / "log", ndt_export.command, tmp_path / "r.tum", tmp_path / "out.mcap", "--map", tmp_path / "b.pcd")
    assert (code, text) == (3, f"ndt-export: {tmp_path}/b.pcd: damaged: its decoder ended the process ({why})\n")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.npy", "b.pcd", "log", "r.tum"]


def test_a_panic_is_an_error_of_the_file(tmp_path, monkeypatch, capsys):
    laspy = pytest.importorskip("laspy")
    monkeypatch.setattr(laspy, "open", panic)
    (tmp_path / "a.las").write_bytes(bytes(400))
    assert map_import.main(["-o", str(tmp_path / "map"), str(tmp_path / "a.las")]) == 3
    assert capsys.readouterr().err == f"ndt-import map: {tmp_path}/a.las: not a readable LAS file: attempt to subtract with overflow\n"


@pytest.mark.parametrize("sent, status", [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_signals_end_both_processes(sent, status, tmp_path, monkeypatch):
    begin, write_end = os.pipe()

    def wait(path):
        os.write(write_end, b"x")
        while True:
            time.sleep(1)

    monkeypatch.setitem(point_files._READERS, ".pcd", wait)
    (tmp_path / "b.pcd").write_bytes(b"x")
    process = start(tmp_path / "log", map_import.command, "-o", tmp_path / "map", tmp_path / "b.pcd")
    os.close(write_end)
    assert os.read(begin, 1) == b"x"
    os.kill(process, sent)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == status
    assert os.read(begin, 1) == b""  # the other end is closed: both have ended
    os.close(begin)
    assert (tmp_path / "log").read_text() == ("ndt-import map: stopped; nothing was written\n" if sent == signal.SIGINT else "")


def test_exit_codes_pass(tmp_path):
    assert outcome(tmp_path / "log", ndt_import.command, "--version")[0] == 0
    assert outcome(tmp_path / "log", ndt_import.command, "--nonsense")[0] == 2
    code, text = outcome(tmp_path / "log", ndt_import.command, tmp_path / "nothing")
    assert code == 3 and text.startswith("ndt-import: ") and "no such file" in text


# ---- files


def make_las(folder, point_format, suffix):
    laspy = pytest.importorskip("laspy")
    header = laspy.LasHeader(point_format=point_format, version="1.4" if point_format > 5 else "1.2")
    header.scales = [0.001] * 3
    las = laspy.LasData(header)
    las.x, las.y, las.z = np.random.default_rng(1).uniform(0, 50, (3, 2000))
    las.write(folder / f"good{suffix}")
    return folder / f"good{suffix}"


def make_packets(folder, make):
    rng = np.random.default_rng(4)
    packets = [make.make("velodyne_msgs/msg/VelodynePacket", stamp=make.header(T0 + i * 1000000, "").stamp,
                         data=rng.integers(0, 256, 1206, dtype=np.uint8)) for i in range(20)]
    for at, packet in enumerate(packets):
        blocks = packet.data[:1200].reshape(12, 100)
        blocks[:, :2] = 0xFF, 0xEE
        azimuth = np.arange(12) * 20 + at * 240
        blocks[:, 2], blocks[:, 3] = azimuth % 256, azimuth // 256
        packet.data[1204:] = 0x37, 0x22  # strongest return, VLP-16
    message = make.make(PACKETS, header=make.header(T0, "velodyne"), packets=packets)
    write_bag2(folder / "r", [("/packets", PACKETS, T0, message)])
    return next((folder / "r").glob("*.db3"))


def make_recording(folder, kind):
    make = Messages(kind == "bag")
    if kind == "packets":
        return make_packets(folder, make)
    rows = [("/points", CLOUD, T0 + i, make.cloud(T0 + i, "lidar", some_points(400, i))) for i in range(6)]
    rows.append(("/tf_static", "tf2_msgs/msg/TFMessage", T0, make.tf(T0, [("base_link", "lidar", [0, 0, 1, 0, 0, 0, 1])])))
    if kind == "bag":
        return write_bag1(folder / "good.bag", rows, "LZ4")
    write_bag2(folder / "r", rows, "mcap" if kind == "mcap" else "sqlite3", "storage" if kind == "mcap" else None)
    return next((folder / "r").glob("*." + kind))


def mutate(whole, seed):
    """Cut off, changed bytes anywhere or near the begin or the end, large numbers, a piece twice."""
    rng, out = random.Random(seed), bytearray(whole)
    how = seed % 5
    if how == 0:
        return bytes(out[:rng.randrange(100, len(out))])
    if how == 1:
        for _ in range(rng.randint(1, 12)):
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    elif how == 2:
        edge = min(1000, len(out))
        for _ in range(rng.randint(1, 4)):
            out[rng.choice((rng.randrange(edge), -1 - rng.randrange(edge)))] = rng.randrange(256)
    elif how == 3:
        at = rng.randrange(len(out) - 8)
        out[at:at + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, b"\xff" * 7 + b"\x7f", b"\xf0\xff\xff\xff" * 2))
    else:
        at, size = rng.randrange(len(out)), rng.randrange(1, 2000)
        out[at:at] = out[at:at + size]
    return bytes(out)


@pytest.mark.parametrize("kind", [".las", ".laz", ".1.4.laz", "bag", "db3", "mcap", "packets"])
def test_mutated_files(kind, tmp_path):
    is_map = kind.startswith(".")
    good = make_las(tmp_path, 6 if "1.4" in kind else 3, kind) if is_map else make_recording(tmp_path, kind)
    command = map_import.command if is_map else ndt_import.command
    path, out = tmp_path / f"crafted{good.suffix}", tmp_path / "out"
    whole, codes = good.read_bytes(), set()
    for seed in range(MUTATIONS):
        path.write_bytes(mutate(whole, seed))
        code, text = outcome(tmp_path / "log", command, path, "-o", out, "--force", "-q")
        lines = [line for line in text.splitlines() if not line.startswith("ndt-import: warning: ")]
        assert code in (0, 3) and len(lines) == (code == 3), f"seed {seed}: {code} {text}"
        assert "Traceback" not in text and "panicked" not in text, f"seed {seed}: {text}"
        assert code == 0 or lines[0].startswith("ndt-import"), f"seed {seed}: {text}"
        codes.add(code)
    assert codes == {0, 3} or kind == "packets"  # the mutations reach both ends


def test_a_table_of_chunks_that_lies(tmp_path):
    """It counts 4 thousand million: refused before room is made for them, also where the place of the table is at the end."""
    good = make_las(tmp_path, 3, ".laz")
    whole = bytearray(good.read_bytes())
    begin = int.from_bytes(whole[96:100], "little")
    table = int.from_bytes(whole[begin:begin + 8], "little")
    whole[table + 4:table + 8] = b"\xf0\xff\xff\xff"
    for place in (whole[begin:begin + 8], b"\xff" * 8):
        whole[begin:begin + 8] = place
        end = whole if place != b"\xff" * 8 else whole + table.to_bytes(8, "little")
        (tmp_path / "crafted.laz").write_bytes(end)
        code, text = outcome(tmp_path / "log", map_import.command, tmp_path / "crafted.laz", "-o", tmp_path / "out")
        assert code == 3 and text.endswith("its table counts 4294967280 chunks, more than it has room for\n")
