"""MCAP files beyond ROS 2: Foxglove's protobuf, ROS 1 messages, lz4, files that were not closed."""
import numpy as np
import pytest
from recording_maker import NS, T0, Messages, only, read_bag, run_import, store

foxglove = pytest.importorskip("foxglove")


def _points(count=40):
    out = np.zeros(count, [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "u1"), ("time", "<f4")])
    for name, column in zip("xyz", np.random.default_rng(1).uniform(2, 9, (3, count))):
        out[name] = column
    out["intensity"], out["time"] = np.arange(count), np.linspace(0, 0.1, count)
    return out


def _foxglove_file(path, pose=None):
    from foxglove import channels, messages as m
    types = {"f4": m.PackedElementFieldNumericType.Float32, "u1": m.PackedElementFieldNumericType.Uint8}
    stamp, points = m.Timestamp(sec=T0 // NS, nsec=5), _points()
    fields = [m.PackedElementField(name=name, offset=points.dtype.fields[name][1], type=types[points.dtype[name].str[1:]])
              for name in points.dtype.names]
    context = foxglove.Context()
    with foxglove.open_mcap(str(path), context=context):
        def log(kind, topic, message):
            getattr(channels, kind + "Channel")(topic=topic, context=context).log(message, log_time=T0)
        log("FrameTransform", "/transforms", m.FrameTransform(
            timestamp=stamp, parent_frame_id="base_link", child_frame_id="lidar", translation=m.Vector3(x=1.0, y=0.0, z=2.0),
            rotation=m.Quaternion(x=0.0, y=0.0, z=0.0, w=1.0)))
        log("PoseInFrame", "/odom", m.PoseInFrame(timestamp=stamp, frame_id="odom", pose=m.Pose(
            position=m.Vector3(x=1.0, y=2.0, z=3.0), orientation=m.Quaternion(x=0.0, y=0.0, z=0.0, w=1.0))))
        log("LocationFix", "/fix", m.LocationFix(timestamp=stamp, frame_id="gnss", latitude=49.0, longitude=8.4, altitude=110.0))
        log("PointCloud", "/points", m.PointCloud(timestamp=stamp, frame_id="lidar", pose=pose, point_stride=points.dtype.itemsize,
                                                  fields=fields, data=points.tobytes()))
    return path


def test_foxglove(tmp_path, capsys):
    recording, out = _foxglove_file(tmp_path / "drive.mcap"), tmp_path / "out.bag"
    summary = run_import(capsys, recording, "-o", out, "--json").summary
    assert summary["taken"] == {"scan": 1} and summary["base_frame"] == "base_link"
    scan = only(read_bag(out), "scan")[0]
    assert scan["stamp_ns"] == T0 + 5 and (scan["intensity"] == np.arange(40)).all()
    assert (scan["points"] == np.stack([_points()[name] for name in "xyz"]).T).all()
    assert np.abs(scan["time_s"] - _points()["time"]).max() == 0
    assert only(read_bag(out), "transform")[0]["pose"] == [1, 0, 2, 0, 0, 0, 1]
    summary = run_import(capsys, recording, "-o", out, "--json", "--odometry", "/odom", "--utm", "--force").summary
    assert summary["taken"] == {"scan": 1, "odometry": 1, "gnss": 1}
    assert only(read_bag(out), "odometry")[0]["pose"] == [1, 2, 3, 0, 0, 0, 1]
    summary = run_import(capsys, recording, "-o", out, "--json", "--truth", "/odom", "--force").summary
    assert summary["taken"] == {"scan": 1, "truth": 1}


def test_foxglove_pose_of_a_cloud(tmp_path, capsys):
    from foxglove import messages as m
    pose = m.Pose(position=m.Vector3(x=10.0, y=0.0, z=0.0), orientation=m.Quaternion(x=0.0, y=0.0, z=1.0, w=0.0))
    run_import(capsys, _foxglove_file(tmp_path / "drive.mcap", pose), "-o", tmp_path / "out.bag", "-q")
    points, want = only(read_bag(tmp_path / "out.bag"), "scan")[0]["points"], _points()
    assert np.abs(points[:, 0] - (10 - want["x"])).max() < 1e-5 and np.abs(points[:, 1] + want["y"]).max() < 1e-5


def _write_mcap(path, encoding, chunking=True, compression="zstd", finish=True, profile=""):
    from mcap.writer import CompressionType, Writer
    is_ros1 = encoding == "ros1"
    make, types = Messages(is_ros1), store(is_ros1)
    kind = "sensor_msgs/msg/PointCloud2"
    with open(path, "wb") as stream:
        writer = Writer(stream, chunk_size=4000, compression=CompressionType[compression.upper()], use_chunking=chunking)
        writer.start(profile=profile)
        text = types.generate_msgdef(kind)[0]
        schema = writer.register_schema(kind.replace("/msg/", "/") if is_ros1 else kind, encoding + "msg" if is_ros1 else "ros2msg",
                                        text.encode())
        channel = writer.register_channel("/points", encoding, schema)
        for i in range(20):
            message = make.cloud(T0 + i, "lidar", _points())
            data = types.serialize_ros1(message, kind) if is_ros1 else types.serialize_cdr(message, kind)
            writer.add_message(channel, T0 + i, bytes(data), T0 + i)
        if finish:
            writer.finish()
    return path


@pytest.mark.parametrize("encoding,chunking,compression", [("cdr", True, "zstd"), ("cdr", True, "lz4"), ("cdr", False, "none"),
                                                          ("ros1", True, "zstd")])
def test_mcap(encoding, chunking, compression, tmp_path, capsys):
    recording = _write_mcap(tmp_path / "drive.mcap", encoding, chunking, compression)
    summary = run_import(capsys, recording, "-o", tmp_path / "out.bag", "--json").summary
    assert summary["taken"] == {"scan": 20}
    assert len(only(read_bag(tmp_path / "out.bag"), "scan")[19]["points"]) == 40


def test_mcap_that_was_not_closed(tmp_path, capsys):
    """Messages before the damage are taken, and it is told."""
    whole = _write_mcap(tmp_path / "drive.mcap", "cdr").read_bytes()
    part = tmp_path / "part.mcap"
    part.write_bytes(whole[: len(whole) // 2])
    done = run_import(capsys, part, "-o", tmp_path / "out.bag", "--json")
    assert 1 < done.summary["taken"]["scan"] < 20 and any("not closed" in note for note in done.summary["notes"])
    assert "ndt-import: warning: " in done.err and "the bag has what comes before" in done.err


def test_mcap_of_json(tmp_path, capsys):
    from mcap.writer import Writer
    path = tmp_path / "drive.mcap"
    with open(path, "wb") as stream:
        writer = Writer(stream)
        writer.start()
        channel = writer.register_channel("/points", "json", writer.register_schema("foxglove.PointCloud", "jsonschema", b"{}"))
        writer.add_message(channel, T0, b"{}", T0)
        writer.finish()
    done = run_import(capsys, path, "-o", tmp_path / "out.bag", code=3)
    assert "its messages are json; cdr, ros1, protobuf are read" in done.err
