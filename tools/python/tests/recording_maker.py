"""Makes small recordings of every kind: messages are (topic, type, receive_ns, message), written by rosbags and mcap."""
import json
from pathlib import Path
from types import SimpleNamespace

import msgpack
import numpy as np
from rosbags import rosbag1, rosbag2
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from ndtd import BagReader, decode_scan, ndt_import
from ndtd.recordings import checkpoint
from ndtd.recordings.ros_types import EXTRA_TYPES

NS = 1_000_000_000
T0 = 1_700_000_000 * NS
LIVOX_POINT = "uint32 offset_time\nfloat32 x\nfloat32 y\nfloat32 z\nuint8 reflectivity\nuint8 tag\nuint8 line\n"
LIVOX = "std_msgs/Header header\nuint64 timebase\nuint32 point_num\nuint8 lidar_id\nuint8[3] rsvd\n{}/CustomPoint[] points\n"


def store(is_ros1=False):
    """A typestore with the types of sensors besides."""
    out = get_typestore(Stores.ROS1_NOETIC if is_ros1 else Stores.ROS2_HUMBLE)
    texts = dict(EXTRA_TYPES)
    texts["tf2_msgs/msg/TFMessage"] = "geometry_msgs/TransformStamped[] transforms\n"
    texts["hesai_ros_driver/msg/UdpPacket"] = "uint8[] data\nuint32 size\nbuiltin_interfaces/Time stamp\n"
    texts["ouster_sensor_msgs/msg/PacketMsg"] = "uint8[] buf\n"
    texts["hesai_lidar/msg/PandarPacket"] = "builtin_interfaces/Time stamp\nuint8[1500] data\nuint32 size\n"
    texts["hesai_lidar/msg/PandarScan"] = "std_msgs/Header header\nhesai_lidar/PandarPacket[] packets\n"
    texts["hesai_ros_driver/msg/UdpFrame"] = "hesai_ros_driver/UdpPacket[] packets\n"
    for package in ("livox_ros_driver", "livox_ros_driver2"):
        texts[f"{package}/msg/CustomPoint"] = LIVOX_POINT
        texts[f"{package}/msg/CustomMsg"] = LIVOX.format(package)
    found = {}
    for name, text in texts.items():
        found.update(get_types_from_msg(text, name))
    out.register({name: one for name, one in found.items() if name not in out.fielddefs})
    return out


def some_points(count=50, seed=0):
    out = np.zeros(count, [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("time", "<f4")])
    for name, column in zip("xyz", np.random.default_rng(seed).uniform(2, 9, (3, count))):
        out[name] = column
    return out


class Messages:
    """Makes messages of a typestore from numbers."""

    def __init__(self, is_ros1=False):
        self.store, self.is_ros1 = store(is_ros1), is_ros1

    def make(self, type_name, /, **fields):
        return self.store.types[type_name](**fields)

    def header(self, stamp_ns, frame_id):
        stamp = self.make("builtin_interfaces/msg/Time", sec=stamp_ns // NS, nanosec=stamp_ns % NS)
        seq = {"seq": 0} if self.is_ros1 else {}
        return self.make("std_msgs/msg/Header", stamp=stamp, frame_id=frame_id, **seq)

    def cloud(self, stamp_ns, frame_id, records, rows=1, row_padding=0, **changes):
        """PointCloud2 of structured points, whose dtype tells the fields."""
        kinds = {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "f4": 7, "f8": 8}
        fields = [self.make("sensor_msgs/msg/PointField", name=name, offset=records.dtype.fields[name][1],
                            datatype=kinds[records.dtype[name].str[1:]], count=1) for name in records.dtype.names]
        step, width = records.dtype.itemsize, len(records) // rows
        data = np.frombuffer(records.tobytes(), np.uint8).reshape(rows, width * step)
        data = np.pad(data, ((0, 0), (0, row_padding))).reshape(-1)
        values = dict(header=self.header(stamp_ns, frame_id), height=rows, width=width, fields=fields,
                      is_bigendian=any(records.dtype[name].byteorder == ">" for name in records.dtype.names), point_step=step,
                      row_step=width * step + row_padding, data=data, is_dense=True)
        return self.make("sensor_msgs/msg/PointCloud2", **dict(values, **changes))

    def vector(self, xyz, kind="Vector3"):
        return self.make(f"geometry_msgs/msg/{kind}", x=float(xyz[0]), y=float(xyz[1]), z=float(xyz[2]))

    def quaternion(self, xyzw):
        x, y, z, w = (float(number) for number in xyzw)
        return self.make("geometry_msgs/msg/Quaternion", x=x, y=y, z=z, w=w)

    def pose(self, numbers):
        return self.make("geometry_msgs/msg/Pose", position=self.vector(numbers[:3], "Point"), orientation=self.quaternion(numbers[3:]))

    def pose_with_covariance(self, numbers, covariance=None):
        covariance = np.zeros(36) if covariance is None else np.asarray(covariance, np.float64)
        return self.make("geometry_msgs/msg/PoseWithCovariance", pose=self.pose(numbers), covariance=covariance)

    def initial_pose(self, stamp_ns, numbers, covariance=None):
        return self.make("geometry_msgs/msg/PoseWithCovarianceStamped", header=self.header(stamp_ns, "map"),
                         pose=self.pose_with_covariance(numbers, covariance))

    def pose_stamped(self, stamp_ns, numbers):
        return self.make("geometry_msgs/msg/PoseStamped", header=self.header(stamp_ns, "map"), pose=self.pose(numbers))

    def twist(self, numbers):
        return self.make("geometry_msgs/msg/Twist", linear=self.vector(numbers[:3]), angular=self.vector(numbers[3:]))

    def odometry(self, stamp_ns, pose, twist=None, child="base_link"):
        twist = self.twist(np.full(6, np.nan) if twist is None else twist)
        return self.make("nav_msgs/msg/Odometry", header=self.header(stamp_ns, "odom"), child_frame_id=child,
                         pose=self.pose_with_covariance(pose),
                         twist=self.make("geometry_msgs/msg/TwistWithCovariance", twist=twist, covariance=np.zeros(36)))

    def twist_stamped(self, stamp_ns, numbers, frame_id="base_link"):
        return self.make("geometry_msgs/msg/TwistStamped", header=self.header(stamp_ns, frame_id), twist=self.twist(numbers))

    def imu(self, stamp_ns, frame_id, omega, acceleration):
        return self.make("sensor_msgs/msg/Imu", header=self.header(stamp_ns, frame_id), orientation=self.quaternion([0, 0, 0, 1]),
                         orientation_covariance=np.zeros(9), angular_velocity=self.vector(omega),
                         angular_velocity_covariance=np.zeros(9), linear_acceleration=self.vector(acceleration),
                         linear_acceleration_covariance=np.zeros(9))

    def fix(self, stamp_ns, latitude, longitude, altitude, status=0, deviation=0.5):
        return self.make("sensor_msgs/msg/NavSatFix", header=self.header(stamp_ns, "gnss"),
                         status=self.make("sensor_msgs/msg/NavSatStatus", status=status, service=1), latitude=latitude,
                         longitude=longitude, altitude=altitude, position_covariance=np.diag([deviation**2] * 3).reshape(-1),
                         position_covariance_type=2)

    def tf(self, stamp_ns, rows):
        """rows: (parent, child, x y z qx qy qz qw)."""
        out = []
        for parent, child, numbers in rows:
            transform = self.make("geometry_msgs/msg/Transform", translation=self.vector(numbers[:3]),
                                  rotation=self.quaternion(numbers[3:]))
            out.append(self.make("geometry_msgs/msg/TransformStamped", header=self.header(stamp_ns, parent), child_frame_id=child,
                                 transform=transform))
        return self.make("tf2_msgs/msg/TFMessage", transforms=out)

    def livox(self, stamp_ns, frame_id, records, package="livox_ros_driver2", timebase=None):
        point = self.store.types[f"{package}/msg/CustomPoint"]
        points = [point(**{name: record[name].item() for name in records.dtype.names}) for record in records]
        return self.make(f"{package}/msg/CustomMsg", header=self.header(stamp_ns, frame_id),
                         timebase=stamp_ns if timebase is None else timebase, point_num=len(points), lidar_id=0,
                         rsvd=np.zeros(3, np.uint8), points=points)


# ---- writing ----

def write_bag1(path, rows, compression=None):
    """ROS 1 .bag; rows: (topic, type, receive_ns, message)."""
    types = store(True)
    with rosbag1.Writer(path) if compression is None else _compressed(path, compression) as writer:
        connections = {}
        for topic, kind, receive_ns, message in rows:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=types)
            writer.write(connections[topic], receive_ns, types.serialize_ros1(message, kind))
    return path


def _compressed(path, compression):
    writer = rosbag1.Writer(path)
    writer.set_compression(getattr(rosbag1.Writer.CompressionFormat, compression))
    return writer


def write_bag2(folder, rows, storage="sqlite3", compression=None):
    """ROS 2 folder; compression: None, "file" or "message" of zstd, or "storage" of MCAP."""
    types = store()
    writer = rosbag2.Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3)
    if compression:
        writer.set_compression(CompressionMode[compression.upper()], CompressionFormat.ZSTD)
    with writer:
        connections = {}
        for topic, kind, receive_ns, message in rows:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=types)
            writer.write(connections[topic], receive_ns, types.serialize_cdr(message, kind))
    return folder


def rows_of_drive(bag, is_ros1=False, lidar=(0, 0, 0, 0, 0, 0, 1), static="/tf_static"):
    """The messages of a bag of ndtd as those of ROS, with tf_static and tf; scans keep their arrays."""
    make, rows, previous = Messages(is_ros1), [], None
    transforms = [("base_link", "lidar", lidar), ("base_link", "imu", (0, 0, 0, 0, 0, 0, 1))]
    for record in BagReader(bag):
        m, ns = msgpack.unpackb(record.payload), record.receive_ns
        if previous is None:
            rows.append((static, "tf2_msgs/msg/TFMessage", ns, make.tf(ns, transforms)))
        previous = ns
        if record.type == "scan":
            rows.append(("/points", "sensor_msgs/msg/PointCloud2", ns, make.cloud(m["stamp_ns"], m["frame_id"], records_of(m))))
        elif record.type == "odometry":
            rows.append(("/odom", "nav_msgs/msg/Odometry", ns, make.odometry(m["stamp_ns"], m["pose"], m.get("twist"))))
            rows.append(("/tf", "tf2_msgs/msg/TFMessage", ns, make.tf(m["stamp_ns"], [("odom", "base_link", m["pose"])])))
        elif record.type == "imu":
            rows.append(("/imu", "sensor_msgs/msg/Imu", ns,
                         make.imu(m["stamp_ns"], "imu", m["angular_velocity"], m["linear_acceleration"])))
        elif record.type == "initial_pose":
            rows.append(("/initialpose", "geometry_msgs/msg/PoseWithCovarianceStamped", ns,
                         make.initial_pose(m["stamp_ns"], m["pose"])))
        elif record.type == "truth":
            rows.append(("/truth", "geometry_msgs/msg/PoseStamped", ns, make.pose_stamped(m["stamp_ns"], m["pose"])))
    return rows


def records_of(m):
    """The points of a decoded scan message."""
    kinds = {7: "<f4", 8: "<f8"}
    dtype = np.dtype({"names": [f[0] for f in m["fields"]], "formats": [kinds[f[2]] for f in m["fields"]],
                      "offsets": [f[1] for f in m["fields"]], "itemsize": m["point_step"]})
    return np.frombuffer(m["data"], dtype)


# ---- importing ----

def run_import(capsys, *arguments, code=0):
    """Runs ndt-import; returns .out, .err and .summary (with --json)."""
    got = ndt_import.main([str(one) for one in arguments])
    text = capsys.readouterr()
    assert got == code, f"exit code {got}: {text.err}{text.out}"
    if code:
        lines = text.err.strip().split("\n")
        assert lines[-1].startswith("ndt-import: ") and "Traceback" not in text.err
    return SimpleNamespace(out=text.out, err=text.err, summary=json.loads(text.out) if text.out.startswith("{") else None)


def stopped(capsys, monkeypatch, count, *arguments):
    """Runs ndt-import, which Ctrl-C stops behind `count` messages, with a checkpoint before every message."""
    convert, done = ndt_import._convert, []

    def counted(*given):
        done.append(1)
        if len(done) > count:
            raise KeyboardInterrupt
        convert(*given)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "EVERY_S", -1)
        patch.setattr(ndt_import, "_convert", counted)
        run_import(capsys, *arguments, code=130)


def goes_on(capsys, monkeypatch, count, recording, folder):
    """An import that is stopped and goes on has the bytes of one that ran through."""
    run_import(capsys, recording, "-o", folder / "whole.bag")
    stopped(capsys, monkeypatch, count, recording, "-o", folder / "out.bag")
    assert f"goes on: {count} messages" in run_import(capsys, recording, "-o", folder / "out.bag").err
    assert (folder / "out.bag").read_bytes() == (folder / "whole.bag").read_bytes()


def survives(capsys, recording, *arguments, codes=(0, 3)):
    """Whatever is in the recording, ndt-import makes something of it or says that it cannot."""
    assert ndt_import.main([str(recording), "-o", str(recording.parent / "out.bag"), *arguments]) in codes
    assert "Traceback" not in capsys.readouterr().err


def import_rows(capsys, tmp_path, rows, *arguments, code=0):
    """Writes a ROS 2 recording, imports it; returns (summary, records of the bag)."""
    recording, out = tmp_path / "recording", tmp_path / "out.bag"
    if not recording.exists():
        write_bag2(recording, rows)
    done = run_import(capsys, recording, "-o", out, "--force", "--json", *arguments, code=code)
    return (done.summary, read_bag(out)) if code == 0 else (done, None)


def read_bag(path: Path):
    """Records of a bag: (type, receive_ns, message); a scan has its arrays."""
    out = []
    for record in BagReader(path):
        message = decode_scan(record.payload) if record.type == "scan" else msgpack.unpackb(record.payload)
        out.append((record.type, record.receive_ns, message))
    return out


def only(records, kind):
    """The messages of one type."""
    return [message for name, _, message in records if name == kind]
