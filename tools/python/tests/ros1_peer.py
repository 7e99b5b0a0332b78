"""Nodes of ROS 1 that know nothing of ndtd: rospy, tf2_ros and messages of the system, whose python3 runs this file.

    ros1_peer.py listen                             a line `pose stamp_ns monotonic_ns x y z frame seq` for each pose, `odometry ...`,
                                                    `contract ...` (its quaternion squared, its covariance), `tf ...`, `tf2 ...`
                                                    (map -> base_link at its stamp), `diagnostics ...`
    ros1_peer.py publish FOLDER --rate 10           plays serialised clouds; a line `stamp_ns monotonic_ns` before each
    ros1_peer.py advertise TOPIC=PACKAGE/TYPE...    empty messages, 5 per second; TOPIC:=...: a latched one, once
    ros1_peer.py click FRAME X Y YAW                the tool 2D Pose Estimate of rviz, to whoever listens
    ros1_peer.py recode PACKAGE/TYPE                a serialised message as hex in, its MD5 sum, its text and the same bytes out
"""
import argparse
import importlib
import io
import math
import sys
import time
from pathlib import Path

import rospy


def message_class(name):
    package, kind = name.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), kind)


def say(*words):
    """One line; rospy has a thread for each connection."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


# ---- listen ----

def _on_pose(message, wanted):
    now, p = time.monotonic_ns(), message.pose.pose.position
    wanted.append(message.header.stamp)
    say("pose", message.header.stamp.to_nsec(), now, p.x, p.y, p.z, message.header.frame_id, message.header.seq)
    q = message.pose.pose.orientation
    say("contract", message.header.stamp.to_nsec(), now, q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w, *message.pose.covariance)


def _on_odometry(message):
    now, p = time.monotonic_ns(), message.pose.pose.position
    say("odometry", message.header.stamp.to_nsec(), now, p.x, p.y, p.z, message.header.frame_id, message.child_frame_id,
        message.pose.covariance[0], message.twist.twist.linear.x)


def _on_tf(message):
    now = time.monotonic_ns()
    for one in message.transforms:
        t = one.transform.translation
        say("tf", one.header.stamp.to_nsec(), now, t.x, t.y, t.z, one.header.frame_id, one.child_frame_id)


def _on_diagnostics(message):
    now = time.monotonic_ns()
    for one in message.status:
        say("diagnostics", message.header.stamp.to_nsec(), now, one.level, one.name.replace(" ", "_"), one.message.replace(" ", "_") or "-")


def listen():
    import tf2_ros
    rospy.init_node("listener")
    buffer, wanted, folder = tf2_ros.Buffer(rospy.Duration(3600)), [], "/localization/pose_estimator"
    transforms = tf2_ros.TransformListener(buffer)  # noqa: F841  it lives as long as the node
    rospy.Subscriber(f"{folder}/pose_with_covariance", message_class("geometry_msgs/PoseWithCovarianceStamped"), _on_pose, wanted, tcp_nodelay=True)
    rospy.Subscriber(f"{folder}/odometry", message_class("nav_msgs/Odometry"), _on_odometry)
    rospy.Subscriber("/tf", message_class("tf2_msgs/TFMessage"), _on_tf)
    rospy.Subscriber("/diagnostics", message_class("diagnostic_msgs/DiagnosticArray"), _on_diagnostics)
    say("ready")
    while not rospy.is_shutdown():
        for stamp in list(wanted):
            if buffer.can_transform("map", "base_link", stamp):
                wanted.remove(stamp)
                t = buffer.lookup_transform("map", "base_link", stamp).transform.translation
                say("tf2", stamp.to_nsec(), time.monotonic_ns(), t.x, t.y, t.z)
        time.sleep(0.1)


# ---- publish ----

def publish(folder, rate, skip, limit):
    cloud = message_class("sensor_msgs/PointCloud2")

    class Packed(cloud):
        """Bytes as they are: rospy would take the points apart."""
        __slots__ = ["raw"]
        _has_header = False

        def serialize(self, buff):
            buff.write(self.raw)

    rospy.init_node("driver", disable_rostime=True)
    publisher = rospy.Publisher("/points", Packed, queue_size=5, tcp_nodelay=True)
    while not publisher.get_num_connections() and not rospy.is_shutdown():
        time.sleep(0.02)
    time.sleep(0.5)
    begin = time.monotonic()
    for i, path in enumerate(sorted(folder.glob("*.ros1"))[skip:skip + limit]):
        message = Packed()
        message.raw = path.read_bytes()
        sec, nsec = (int.from_bytes(message.raw[at:at + 4], "little") for at in (4, 8))
        time.sleep(max(0.0, begin + i / rate - time.monotonic()))
        now = time.monotonic_ns()
        publisher.publish(message)
        say(sec * 10**9 + nsec, now)
    time.sleep(1.0)


def advertise(topics):
    rospy.init_node("advertiser", anonymous=True, disable_rostime=True)
    kinds = [(name, message_class(kind)) for name, kind in (topic.split("=") for topic in topics)]
    publishers = [(rospy.Publisher(name.rstrip(":"), kind, queue_size=5, latch=name[-1] == ":"), kind) for name, kind in kinds]
    for publisher, kind in publishers:
        publisher.publish(kind())
    say("ready")
    while not rospy.is_shutdown():
        for publisher, kind in publishers:
            if not publisher.impl.is_latch:
                publisher.publish(kind())
        time.sleep(0.2)


def click(frame, x, y, yaw):
    rospy.init_node("click", anonymous=True, disable_rostime=True)
    kind = message_class("geometry_msgs/PoseWithCovarianceStamped")
    publisher = rospy.Publisher("/initialpose", kind, queue_size=1)
    end = time.monotonic() + 20
    while not publisher.get_num_connections() and time.monotonic() < end:
        time.sleep(0.05)
    message = kind()
    message.header.frame_id, pose = frame, message.pose
    pose.pose.position.x, pose.pose.position.y = x, y
    pose.pose.orientation.z, pose.pose.orientation.w = math.sin(yaw / 2), math.cos(yaw / 2)
    pose.covariance = [{0: 0.25, 7: 0.25, 35: (math.pi / 12) ** 2}.get(i, 0.0) for i in range(36)]  # rviz: 0.5 m, 15 degrees
    publisher.publish(message)
    time.sleep(0.5)


def recode(name):
    message, out = message_class(name)(), io.BytesIO()
    message.deserialize(bytes.fromhex(sys.stdin.read()))
    message.serialize(out)
    say(message._md5sum)
    say(out.getvalue().hex())
    say(" ".join(str(message).split()))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("command", choices=("listen", "publish", "advertise", "click", "recode"))
    p.add_argument("words", nargs="*")
    p.add_argument("--rate", type=float, default=10.0)
    p.add_argument("--skip", type=int, default=0)
    p.add_argument("--limit", type=int, default=1_000_000)
    args = p.parse_args()
    if args.command == "publish":
        publish(Path(args.words[0]), args.rate, args.skip, args.limit)
    elif args.command == "advertise":
        advertise(args.words)
    elif args.command == "click":
        click(args.words[0], *(float(word) for word in args.words[1:]))
    else:
        {"listen": listen, "recode": lambda: recode(*args.words)}[args.command]()


if __name__ == "__main__":
    sys.exit(main())
