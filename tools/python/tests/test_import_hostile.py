"""Recordings that are damaged, or lie: one clear line and an exit code, or a message less."""
import numpy as np
import pytest
from recording_maker import NS, T0, Messages, import_rows, only, read_bag, run_import, some_points, write_bag1, write_bag2

M = Messages()
CLOUD = "sensor_msgs/msg/PointCloud2"


def _with_good(cloud):
    """A hostile cloud between two good ones."""
    return [("/points", CLOUD, T0, M.cloud(T0, "lidar", some_points())), ("/points", CLOUD, T0 + 1, cloud),
            ("/points", CLOUD, T0 + 2, M.cloud(T0 + NS // 10, "lidar", some_points()))]


def _field(name, offset, datatype=7, count=1):
    return M.make("sensor_msgs/msg/PointField", name=name, offset=offset, datatype=datatype, count=count)


XYZ = [_field("x", 0), _field("y", 4), _field("z", 8)]
HOSTILE = {
    "width of 4 GB": (dict(width=2**32 - 1), "800 bytes are fewer than those of 1 x 4294967295 points of 16 bytes"),
    "height of 4 GB": (dict(height=2**32 - 1), "4294967295 x 50"),
    "point_step 0": (dict(point_step=0), "point_step is 0, the limits are 1 and 65536"),
    "huge point_step": (dict(point_step=2**31), "point_step is 2147483648"),
    "offset outside": (dict(fields=[_field("x", 0), _field("y", 4), _field("z", 14)]), "do not fit into a point of 16 bytes"),
    "huge offset": (dict(fields=[_field("x", 2**32 - 1), _field("y", 4), _field("z", 8)]), "do not fit into a point of 16 bytes"),
    "no z": (dict(fields=XYZ[:2]), "no x, y and z, but x, y"),
    "no fields": (dict(fields=[]), "no x, y and z, but nothing"),
    "unknown datatype": (dict(fields=XYZ[:2] + [_field("z", 8, 99)]), "no x, y and z"),
    "integer coordinates": (dict(fields=[_field(name, 4 * i, 5) for i, name in enumerate("xyz")]), "are integers"),
    "no data": (dict(data=np.zeros(0, np.uint8)), "0 bytes are fewer"),
    "truncated data": (dict(data=np.zeros(799, np.uint8)), "799 bytes are fewer"),
    "no points": (dict(width=0, data=np.zeros(0, np.uint8)), "no points"),
    "stamp before 1970": (dict(header=M.make("std_msgs/msg/Header", frame_id="lidar", stamp=M.make(
        "builtin_interfaces/msg/Time", sec=-5, nanosec=0))), None),
    "frame of 100 letters": (dict(header=M.header(T0, "f" * 100)), "longer than 63 bytes"),
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile_cloud(name, tmp_path, capsys):
    changes, why = HOSTILE[name]
    summary, records = import_rows(capsys, tmp_path, _with_good(M.cloud(T0, "lidar", some_points(), **changes)))
    assert summary["taken"] == {"scan": 2 if why else 3}
    if why:
        assert any(why in reason for reason in summary["left"]), summary["left"]


def test_only_hostile_clouds(tmp_path, capsys):
    rows = [("/points", CLOUD, T0, M.cloud(T0, "lidar", some_points(), width=2**32 - 1))]
    done, _ = import_rows(capsys, tmp_path, rows, code=3)
    assert "no scan in it can be used: 1 scan: 800 bytes" in done.err and not list(tmp_path.glob("out*"))


def test_row_step_that_lies(tmp_path, capsys):
    for row_step in (0, 1, 2**32 - 1):
        rows = [("/points", CLOUD, T0, M.cloud(T0, "lidar", some_points(), row_step=row_step))]
        (tmp_path / str(row_step)).mkdir()
        _, records = import_rows(capsys, tmp_path / str(row_step), rows)
        assert len(only(records, "scan")[0]["points"]) == 50


def test_stamps_that_go_back(tmp_path, capsys):
    rows = [("/points", CLOUD, T0 + i, M.cloud(T0 - i * NS, "lidar", some_points())) for i in range(3)]
    summary, _ = import_rows(capsys, tmp_path, rows)
    assert summary["steps_back"] == 2 and any("not later than the scan before" in note for note in summary["notes"])


def test_another_clock(tmp_path, capsys):
    rows = [("/points", CLOUD, T0 + i, M.cloud(T0 + i, "lidar", some_points())) for i in range(2)]
    rows += [("/odom", "nav_msgs/msg/Odometry", T0 + 5, M.odometry(T0 + 9 * NS, [0, 0, 0, 0, 0, 0, 1])),
             ("/imu", "sensor_msgs/msg/Imu", T0 + 6, M.imu(T0 + NS, "imu", (0, 0, 0), (0, 0, 9.8)))]
    summary, _ = import_rows(capsys, tmp_path, rows)
    assert [note for note in summary["notes"] if "another clock" in note] == [
        "odometry: its stamps are 9 s or more after those of the scans: another clock, of no use to ndtd"]


def test_numbers_that_are_none(tmp_path, capsys):
    bad = float("nan")
    rows = [("/points", CLOUD, T0, M.cloud(T0, "lidar", some_points())),
            ("/imu", "sensor_msgs/msg/Imu", T0 + 1, M.imu(T0, "imu", (bad, 0, 0), (0, 0, 9.8))),
            ("/imu", "sensor_msgs/msg/Imu", T0 + 2, M.imu(T0, "imu", (0, 0, 0), (bad, 0, 9.8))),
            ("/imu", "sensor_msgs/msg/Imu", T0 + 3, M.imu(T0, "imu", (1e9, 0, 0), (0, 0, 9.8))),
            ("/odom", "nav_msgs/msg/Odometry", T0 + 4, M.odometry(T0, [bad] * 7)),
            ("/odom", "nav_msgs/msg/Odometry", T0 + 5, M.odometry(T0, [1, 2, 3, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0])),
            ("/odom", "nav_msgs/msg/Odometry", T0 + 6, M.odometry(T0, [1e12, 2, 3, 0, 0, 0, 1])),
            ("/initialpose", "geometry_msgs/msg/PoseWithCovarianceStamped", T0 + 7, M.initial_pose(T0, [0] * 7)),
            ("/tf_static", "tf2_msgs/msg/TFMessage", T0 + 8, M.tf(T0, [("base_link", "lidar", [bad] * 7), ("a", "b", [0] * 7),
                                                                      ("b", "a", [0, 0, 0, 0, 0, 0, 1])]))]
    summary, records = import_rows(capsys, tmp_path, rows)
    taken = summary["taken"]
    assert taken["imu"] <= 2 and taken["odometry"] <= 2 and "pose" not in taken
    assert "linear_acceleration" not in only(records, "imu")[0]
    assert only(records, "odometry")[0].get("twist") == [1, 0, 0, 0, 0, 0]
    assert sum(summary["left"].values()) >= 3


def test_messages_of_noise(tmp_path, capsys):
    """Payloads that are no messages: each is left, with a reason."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from recording_maker import store
    types, rng = store(), np.random.default_rng(3)
    good = bytes(types.serialize_cdr(M.cloud(T0, "lidar", some_points()), CLOUD))
    with Writer(tmp_path / "r", version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        connection = writer.add_connection("/points", CLOUD, typestore=types)
        livox = writer.add_connection("/livox", "livox_ros_driver2/msg/CustomMsg", typestore=types)
        writer.write(connection, T0, good)
        for i in range(300):
            noise = bytearray(good)
            for at in rng.integers(0, 200, 4):
                noise[at] = rng.integers(256)
            noise = bytes(noise)[: rng.integers(len(good) + 1)] if i % 2 else bytes(noise)
            writer.write(connection, T0 + i + 1, noise)
            writer.write(livox, T0 + i + 1, bytes(rng.integers(0, 256, 80, dtype=np.uint8)))
    for topic in ("/points", "/livox"):
        arguments = [tmp_path / "r", "-o", tmp_path / "out.bag", "--force", "--scan", topic]
        if topic == "/livox":
            done = run_import(capsys, *arguments, code=3)
            assert "no scan in it can be used" in done.err
        else:
            summary = run_import(capsys, *arguments, "--json").summary
            assert summary["taken"]["scan"] >= 1
            assert summary["taken"]["scan"] + sum(summary["left"].values()) == 301


@pytest.mark.parametrize("suffix", [".bag", ".db3", ".mcap"])
@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"#ROSBAG V2.0\n", b"\x89MCAP0\r\n", b"SQLite format 3\0" + b"\1" * 200])
def test_files_that_are_no_recordings(suffix, content, tmp_path, capsys):
    path = tmp_path / f"drive{suffix}"
    path.write_bytes(content)
    done = run_import(capsys, path, "-o", tmp_path / "out.bag", code=3)
    assert str(path) in done.err and len(done.err.strip().split("\n")) == 1
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("kind", ["bag", "db3", "mcap"])
@pytest.mark.parametrize("keep", [0.05, 0.5, 0.9, 0.999])
def test_truncated(kind, keep, tmp_path, capsys):
    make = Messages(kind == "bag")
    rows = [("/points", CLOUD, T0 + i, make.cloud(T0 + i, "lidar", some_points(2000, i))) for i in range(80)]
    if kind == "bag":
        path = write_bag1(tmp_path / "drive.bag", rows)
    else:
        write_bag2(tmp_path / "r", rows, "mcap" if kind == "mcap" else "sqlite3", "storage" if kind == "mcap" else None)
        path = next((tmp_path / "r").glob("*." + kind))
    whole = path.read_bytes()
    path = tmp_path / f"part.{kind}"
    path.write_bytes(whole[: int(keep * len(whole))])
    from ndtd.ndt_import import main
    code = main([str(path), "-o", str(tmp_path / "out.bag"), "--json"])
    text = capsys.readouterr()
    assert "Traceback" not in text.err
    if code == 0:  # MCAP and SQLite: what is there
        count = len(only(read_bag(tmp_path / "out.bag"), "scan"))
        assert 0 < count <= 80 and (count == 80 or text.err.startswith("ndt-import: warning: "))
    else:
        assert code == 3 and text.err.startswith("ndt-import: ") and len(text.err.strip().split("\n")) == 1
        assert not list(tmp_path.glob("out*"))


def test_what_is_no_recording(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "drive.bag.active").write_bytes(b"#ROSBAG V2.0\n")
    assert "`rosbag reindex`" in run_import(capsys, tmp_path / "drive.bag.active", code=3).err
    assert "no such file or folder" in run_import(capsys, tmp_path / "nothing", code=3).err
    assert "no recording in it" in run_import(capsys, tmp_path / "empty", code=3).err
    assert "not a recording; known are .bag" in run_import(capsys, tmp_path / "notes.txt", code=3).err


BAD_METADATA = ("", "[1", "rosbag2_bagfile_information:\n  version: 99\n", "a: b\n",
                "rosbag2_bagfile_information:\n  version: 5\n  storage_identifier: ''\n  relative_file_paths: []\n")


@pytest.mark.parametrize("storage", ["sqlite3", "mcap"])
def test_bad_metadata(storage, tmp_path, capsys):
    """The files of the folder are read without it, all of them, and a note says so; several .mcap are not one recording."""
    whole = write_bag2(tmp_path / "r", _with_good(M.cloud(T0, "lidar", some_points())), storage)
    file = next(one for one in whole.iterdir() if one.suffix in (".db3", ".mcap"))
    for text in BAD_METADATA:
        (whole / "metadata.yaml").write_text(text)
        summary = run_import(capsys, whole, "-o", tmp_path / "out.bag", "--force", "--json").summary
        assert summary["taken"] == {"scan": 3}
        assert any(f"metadata.yaml cannot be used; read without it: {file.name}" in note for note in summary["notes"])
    later = [("/points", CLOUD, T0 + 9, M.cloud(T0 + NS, "lidar", some_points()))]
    second = next(one for one in write_bag2(tmp_path / "s", later, storage).iterdir() if one.suffix == file.suffix)
    second.rename(whole / f"r_1{file.suffix}")
    if storage == "mcap":
        done = run_import(capsys, whole, "-o", tmp_path / "out.bag", "--force", code=3)
        assert "name one of its files" in done.err
    else:
        assert run_import(capsys, whole, "-o", tmp_path / "out.bag", "--force", "--json").summary["taken"] == {"scan": 4}
    for one in whole.glob("*" + file.suffix):
        one.unlink()
    done = run_import(capsys, whole, "-o", tmp_path / "out.bag", "--force", code=3)
    assert len(done.err.strip().split("\n")) == 1


def test_usage(tmp_path, capsys):
    write_bag2(tmp_path / "r", _with_good(M.cloud(T0, "lidar", some_points())))
    assert "different things" in run_import(capsys, tmp_path / "r", "--utm", "--projector", "x", code=2).err
    assert "--rate" in run_import(capsys, tmp_path / "r", "--rate", "-1", code=2).err
    done = run_import(capsys, tmp_path / "r", "-o", tmp_path / "no/such/folder/out.bag", code=3)
    assert "no/such/folder" in done.err


def test_missing_package(tmp_path, capsys, monkeypatch):
    import sys
    write_bag2(tmp_path / "r", _with_good(M.cloud(T0, "lidar", some_points())))
    monkeypatch.setitem(sys.modules, "rosbags.typesys", None)
    monkeypatch.setitem(sys.modules, "rosbags.rosbag2", None)
    done = run_import(capsys, tmp_path / "r", "-o", tmp_path / "out.bag", code=3)
    assert "pip install 'ndtd[ros]'" in done.err


def test_types_that_cannot_be_read(tmp_path, capsys):
    """A definition that is no definition concerns the messages of its own topic alone."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from recording_maker import store
    types = store()
    with Writer(tmp_path / "r", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        points = writer.add_connection("/points", CLOUD, typestore=types)
        odd = [writer.add_connection(f"/odd{i}", kind, msgdef="float32 ((( x", rihs01="RIHS01_" + "0" * 64)
               for i, kind in enumerate(("my_msgs/msg/Odd", "nav_msgs/msg/Odometry"))]
        writer.write(points, T0, types.serialize_cdr(M.cloud(T0, "lidar", some_points()), CLOUD))
        writer.write(odd[0], T0, b"\0\1\0\0")
        writer.write(odd[1], T0, types.serialize_cdr(M.odometry(T0, [1, 2, 3, 0, 0, 0, 1]), "nav_msgs/msg/Odometry"))
    for recording in (tmp_path / "r", next((tmp_path / "r").glob("*.mcap"))):
        summary = run_import(capsys, recording, "-o", tmp_path / "out.bag", "--force", "--json").summary
        assert summary["taken"] == {"scan": 1, "odometry": 1}


@pytest.mark.parametrize("kind", ["bag", "db3", "mcap"])
def test_damaged_inside(kind, tmp_path, capsys):
    """Messages before the damage are taken, and a warning says so."""
    make = Messages(kind == "bag")
    rows = [("/points", CLOUD, T0 + i, make.cloud(T0 + i, "lidar", some_points(40000, i))) for i in range(12)]
    if kind == "bag":
        path = write_bag1(tmp_path / "drive.bag", rows, "LZ4")
    else:
        write_bag2(tmp_path / "r", rows, "mcap" if kind == "mcap" else "sqlite3", "storage" if kind == "mcap" else None)
        path = next((tmp_path / "r").glob("*." + kind))
    whole = bytearray(path.read_bytes())
    middle = int(0.54 * len(whole))
    whole[middle:middle + 60000] = bytes(60000)
    path.write_bytes(whole)
    done = run_import(capsys, path, "-o", tmp_path / "out.bag", "-q")
    count = len(only(read_bag(tmp_path / "out.bag"), "scan"))
    if kind == "db3":  # pages of a blob have no checksum
        assert 1 <= count <= 12
    else:
        assert 1 <= count < 12 and "ndt-import: warning: " in done.err and "the bag has what comes before" in done.err
