"""Types of messages by their names, and the definitions that rosbags does not have. ROS 1 has the names without `/msg`."""
from typing import Any

from .._extras import need

CLOUD = "sensor_msgs/msg/PointCloud2"
IMU = "sensor_msgs/msg/Imu"
FIX = "sensor_msgs/msg/NavSatFix"
ODOMETRY = "nav_msgs/msg/Odometry"
TWIST = "geometry_msgs/msg/TwistStamped"
TWIST_COVARIANCE = "geometry_msgs/msg/TwistWithCovarianceStamped"
POSE = "geometry_msgs/msg/PoseWithCovarianceStamped"
TF = "tf2_msgs/msg/TFMessage"
OLD_TF = "tf/msg/tfMessage"  # the same in recordings of early ROS 1
DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"
CLOCK = "rosgraph_msgs/msg/Clock"
VELOCITY = ("autoware_vehicle_msgs/msg/VelocityReport", "autoware_auto_vehicle_msgs/msg/VelocityReport")
LIVOX = ("livox_ros_driver2/msg/CustomMsg", "livox_ros_driver/msg/CustomMsg", "livox_interfaces/msg/CustomMsg")
PACKETS = ("velodyne_msgs/msg/VelodyneScan", "nebula_msgs/msg/NebulaPackets")
SCANS = (CLOUD, *LIVOX, *PACKETS)
FLOAT32, INT32 = "autoware_internal_debug_msgs/msg/Float32Stamped", "autoware_internal_debug_msgs/msg/Int32Stamped"
STAMPED_POSE = "geometry_msgs/msg/PoseStamped"
# What --twist takes and the like.
MOTION = {"odometry": (ODOMETRY,), "twist": (TWIST, TWIST_COVARIANCE, *VELOCITY), "imu": (IMU,), "gnss": (FIX,)}

_LIVOX_POINT = "uint32 offset_time\nfloat32 x\nfloat32 y\nfloat32 z\nuint8 reflectivity\nuint8 tag\nuint8 line\n"
_LIVOX_SCAN = "std_msgs/Header header\nuint64 timebase\nuint32 point_num\nuint8 lidar_id\nuint8[3] rsvd\nCustomPoint[] points\n"


def _definitions() -> dict[str, str]:
    found = {FLOAT32: "builtin_interfaces/Time stamp\nfloat32 data\n", INT32: "builtin_interfaces/Time stamp\nint32 data\n",
             TF: "geometry_msgs/TransformStamped[] transforms\n", OLD_TF: "geometry_msgs/TransformStamped[] transforms\n"}
    for name in LIVOX:
        package = name.split("/")[0]
        found[f"{package}/msg/CustomPoint"] = _LIVOX_POINT
        found[name] = _LIVOX_SCAN.replace("CustomPoint", f"{package}/CustomPoint")
    return found


def register(store: Any, more: dict[str, str]) -> Any:
    """Tells a typestore of rosbags the types that it lacks, with `more` texts by names; returns its definitions of fields."""
    typesys = need("rosbags.typesys", "ros")
    for name, text in {**_definitions(), **more}.items():
        if name not in store.types:
            known = typesys.get_types_from_msg(text, name)
            store.register({name: next(iter(known.values()))})  # rosbags names a half of a service anew
    return getattr(store, "fielddefs", None) or store.FIELDDEFS  # rosbags before 0.10
