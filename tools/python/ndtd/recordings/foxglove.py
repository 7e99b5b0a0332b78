"""Foxglove's messages in protobuf, as `mcap-protobuf-support` decodes them: one function per type."""
from typing import Iterator

import numpy as np

from . import points as point_fields
from ..poses import matrix
from .messages import Gnss, Odometry, Pose, Transform
from .ros import scan_of_records

NS = 1_000_000_000
# NumericType of foxglove.PackedElementField: datatype of sensor_msgs/PointField.
DATATYPES = {1: 2, 2: 1, 3: 4, 4: 3, 5: 6, 6: 5, 7: 7, 8: 8}


def _stamp(message, receive_ns):
    ns = message.timestamp.seconds * NS + message.timestamp.nanos
    return ns if ns > 0 else receive_ns


def _pose(pose):
    """x y z qx qy qz qw; a quaternion that was never set is the identity."""
    p, q = pose.position, pose.orientation
    numbers = np.array([p.x, p.y, p.z, q.x, q.y, q.z, q.w], np.float64)
    if not numbers[3:].any():
        numbers[6] = 1
    return numbers


def point_cloud(message, receive_ns, topic, options) -> Iterator:
    fields = [(field.name, field.offset, DATATYPES.get(field.type, 0)) for field in message.fields]
    step = message.point_stride
    dtype = point_fields.record_dtype(fields, step)
    if len(message.data) % step:
        raise point_fields.PointError(f"{len(message.data)} bytes are no whole number of points of {step} bytes")
    records = point_fields.records(message.data, dtype, 1, len(message.data) // step, 0)
    scan = scan_of_records(records, (receive_ns, _stamp(message, receive_ns), message.frame_id), topic, options)
    pose = _pose(message.pose)
    if message.HasField("pose") and (pose != [0, 0, 0, 0, 0, 0, 1]).any():
        T = matrix(pose)
        scan.points = (scan.points.astype(np.float64) @ T[:3, :3].T + T[:3, 3]).astype(scan.points.dtype)
    yield scan


def location_fix(message, receive_ns, topic, options) -> Iterator:
    diagonal = np.array(list(message.position_covariance) or [0] * 9)[[0, 4, 8]]
    is_known = message.position_covariance_type > 0 and (diagonal > 0).all()
    yield Gnss(receive_ns, _stamp(message, receive_ns), message.frame_id, message.latitude, message.longitude,
               message.altitude, np.sqrt(diagonal) if is_known else None)


def pose_in_frame(message, receive_ns, topic, options) -> Iterator:
    stamp_ns = _stamp(message, receive_ns)
    if topic.kind == "odometry":
        yield Odometry(receive_ns, stamp_ns, message.frame_id, "", _pose(message.pose))
    else:
        yield Pose(receive_ns, stamp_ns, message.frame_id, _pose(message.pose))


def _transform(one, receive_ns):
    t, q = one.translation, one.rotation
    return Transform(receive_ns, one.parent_frame_id.lstrip("/"), one.child_frame_id.lstrip("/"),
                     np.array([t.x, t.y, t.z, q.x, q.y, q.z, q.w], np.float64))


def frame_transform(message, receive_ns, topic, options) -> Iterator:
    yield _transform(message, receive_ns)


def frame_transforms(message, receive_ns, topic, options) -> Iterator:
    for one in message.transforms:
        yield _transform(one, receive_ns)


# As ros.READERS.
READERS = {
    "foxglove.PointCloud": (("scan",), point_cloud),
    "foxglove.LocationFix": (("gnss",), location_fix),
    "foxglove.PoseInFrame": (("", "odometry", "truth", "pose"), pose_in_frame),
    "foxglove.FrameTransform": (("tf",), frame_transform),
    "foxglove.FrameTransforms": (("tf",), frame_transforms),
}
