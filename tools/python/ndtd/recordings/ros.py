"""ROS 1 bags and ROS 2 recordings by `rosbags`; one function per message type."""
import numpy as np

from . import points as point_fields
from .messages import Gnss, Imu, InitialPose, Odometry, Scan, Transform

NS = 1_000_000_000


def _stamp(header, receive_ns):
    ns = header.stamp.sec * NS + header.stamp.nanosec
    return ns if ns > 0 else receive_ns  # a driver without a clock leaves zeros


def _vector(v):
    return np.array([v.x, v.y, v.z], np.float64)


def _pose(pose):
    p, q = pose.position, pose.orientation
    return np.array([p.x, p.y, p.z, q.x, q.y, q.z, q.w], np.float64)


def _twist(twist):
    return np.concatenate([_vector(twist.linear), _vector(twist.angular)])


def point_cloud2(message, receive_ns, options):
    stamp_ns = _stamp(message.header, receive_ns)
    fields = [(field.name, field.offset, field.datatype) for field in message.fields]
    dtype = point_fields.record_dtype(fields, message.point_step, message.is_bigendian)
    points = point_fields.records(message.data, dtype, message.height, message.width, message.row_step)
    yield Scan(receive_ns, stamp_ns, message.header.frame_id, point_fields.positions(points),
               point_fields.intensity(points), point_fields.times(points, stamp_ns, options.time_unit_s))


def livox_custom(message, receive_ns, options):
    stamp_ns = _stamp(message.header, receive_ns)
    count = len(message.points)
    points = np.empty((count, 3), np.float32)
    times, strength = np.empty(count, np.float64), np.empty(count, np.float32)
    for i, point in enumerate(message.points):
        points[i] = point.x, point.y, point.z
        times[i], strength[i] = point.offset_time, point.reflectivity
    offset_ns = int(getattr(message, "timebase", 0)) - stamp_ns
    if abs(offset_ns) > 10 * NS:
        offset_ns = 0
    yield Scan(receive_ns, stamp_ns, message.header.frame_id, points, strength, (times + offset_ns) * 1e-9)


def odometry(message, receive_ns, options):
    yield Odometry(receive_ns, _stamp(message.header, receive_ns), message.header.frame_id, message.child_frame_id,
                   _pose(message.pose.pose), _twist(message.twist.twist))


def twist_stamped(message, receive_ns, options):
    twist = message.twist.twist if hasattr(message.twist, "twist") else message.twist
    yield Odometry(receive_ns, _stamp(message.header, receive_ns), "", message.header.frame_id, None, _twist(twist))


def imu(message, receive_ns, options):
    has_acceleration = message.linear_acceleration_covariance[0] != -1
    yield Imu(receive_ns, _stamp(message.header, receive_ns), message.header.frame_id, _vector(message.angular_velocity),
              _vector(message.linear_acceleration) if has_acceleration else None)


def nav_sat_fix(message, receive_ns, options):
    if message.status.status < 0:
        return
    diagonal = np.asarray(message.position_covariance)[[0, 4, 8]]
    is_known = message.position_covariance_type > 0 and (diagonal > 0).all()
    yield Gnss(receive_ns, _stamp(message.header, receive_ns), message.header.frame_id, message.latitude,
               message.longitude, message.altitude, np.sqrt(diagonal) if is_known else None)


def pose_with_covariance_stamped(message, receive_ns, options):
    covariance = np.asarray(message.pose.covariance, np.float64)
    yield InitialPose(receive_ns, _stamp(message.header, receive_ns), _pose(message.pose.pose),
                      covariance if covariance.any() else None)


def _transforms(message, receive_ns, is_static):
    for one in message.transforms:
        t, q = one.transform.translation, one.transform.rotation
        yield Transform(receive_ns, _stamp(one.header, receive_ns), one.header.frame_id.lstrip("/"),
                        one.child_frame_id.lstrip("/"), np.array([t.x, t.y, t.z, q.x, q.y, q.z, q.w]), is_static)


def tf(message, receive_ns, options):
    return _transforms(message, receive_ns, False)


def tf_static(message, receive_ns, options):
    return _transforms(message, receive_ns, True)


# Message type: kind, and the function that reads it.
READERS = {
    "sensor_msgs/msg/PointCloud2": ("scan", point_cloud2),
    "livox_ros_driver/msg/CustomMsg": ("scan", livox_custom),
    "livox_ros_driver2/msg/CustomMsg": ("scan", livox_custom),
    "nav_msgs/msg/Odometry": ("odometry", odometry),
    "geometry_msgs/msg/TwistStamped": ("odometry", twist_stamped),
    "geometry_msgs/msg/TwistWithCovarianceStamped": ("odometry", twist_stamped),
    "sensor_msgs/msg/Imu": ("imu", imu),
    "sensor_msgs/msg/NavSatFix": ("gnss", nav_sat_fix),
    "geometry_msgs/msg/PoseWithCovarianceStamped": ("initial_pose", pose_with_covariance_stamped),
    "tf2_msgs/msg/TFMessage": ("tf", tf),
    "tf/msg/tfMessage": ("tf", tf),
}
