"""Definitions of ROS messages: those that a recording brings along, or the usual ones."""
import re
from typing import Any, Callable

from .._extras import need
from .points import PointError

# Messages that bags hold without their definitions.
EXTRA_TYPES = {
    "velodyne_msgs/msg/VelodynePacket": "builtin_interfaces/Time stamp\nuint8[1206] data\n",
    "velodyne_msgs/msg/VelodyneScan": "std_msgs/Header header\nvelodyne_msgs/VelodynePacket[] packets\n",
    "pandar_msgs/msg/PandarPacket": "builtin_interfaces/Time stamp\nuint8[1500] data\nuint32 size\n",
    "pandar_msgs/msg/PandarScan": "std_msgs/Header header\npandar_msgs/PandarPacket[] packets\n",
    "nebula_msgs/msg/NebulaPacket": "builtin_interfaces/Time stamp\nuint8[] data\n",
    "nebula_msgs/msg/NebulaPackets": "std_msgs/Header header\nnebula_msgs/NebulaPacket[] packets\n",
    "rslidar_msg/msg/RslidarPacket": "std_msgs/Header header\nuint8 is_difop\nuint8 is_frame_begin\nuint8[] data\n",
    "robosense_msgs/msg/RobosensePacket": "builtin_interfaces/Time stamp\nuint8[1248] data\n",
    "robosense_msgs/msg/RobosenseScan": "std_msgs/Header header\nrobosense_msgs/RobosensePacket[] packets\n",
    "robosense_msgs/msg/RobosenseInfoPacket": "string lidar_model\nrobosense_msgs/RobosensePacket packet\n",
    "autoware_vehicle_msgs/msg/VelocityReport":
        "std_msgs/Header header\nfloat32 longitudinal_velocity\nfloat32 lateral_velocity\nfloat32 heading_rate\n",
    "autoware_auto_vehicle_msgs/msg/VelocityReport":
        "std_msgs/Header header\nfloat32 longitudinal_velocity\nfloat32 lateral_velocity\nfloat32 heading_rate\n",
}


def reason(error: Exception) -> str:
    """An exception of a parser in one line."""
    return " ".join((str(error) or type(error).__name__).split())[:300]


def ros2_name(name: str) -> str:
    """sensor_msgs/PointCloud2 of ROS 1 by the name of ROS 2."""
    package, _, rest = name.partition("/")
    return f"{package}/msg/{rest}" if rest and "/" not in rest else name


def _known(store):
    return getattr(store, "fielddefs", None) or store.FIELDDEFS  # rosbags before 0.10, the last for Python 3.9


def default_store(is_ros1: bool = False) -> Any:
    """Types for recordings without definitions: those of ROS, and EXTRA_TYPES."""
    typesys = need("rosbags.typesys", "ros")
    store = typesys.get_typestore(typesys.Stores.ROS1_NOETIC if is_ros1 else typesys.Stores.ROS2_HUMBLE)
    found = {}
    for name, text in EXTRA_TYPES.items():
        found.update(typesys.get_types_from_msg(text, name))
    store.register({name: definition for name, definition in found.items() if name not in _known(store)})
    return store


def _idl_types(typesys, text):
    found = {}
    for part in re.split(r"^=+\nIDL: .*\n", text, flags=re.M):
        if part.strip():
            found.update(typesys.get_types_from_idl(part))
    return found


def decoder(name: str, text: str, is_idl: bool, is_ros1: bool) -> Callable[[bytes, str], Any]:
    """A function (raw, type) to a message. text: the definition that the recording has, or "".

    Of the types of a recording only those that are used are ever parsed: one that cannot be concerns no other.
    """
    typesys = need("rosbags.typesys", "ros")
    store = default_store(is_ros1)
    try:
        if text.strip():
            found = _idl_types(typesys, text) if is_idl else typesys.get_types_from_msg(text, name)
            own = typesys.get_typestore(typesys.Stores.EMPTY)
            own.register(found)
            store = own
    except Exception as error:  # of the parser: anything
        if name not in _known(store):
            raise PointError(f"its definition cannot be read: {reason(error)}") from None
    if name not in _known(store):
        raise PointError("the recording does not have its definition")
    return store.deserialize_ros1 if is_ros1 else store.deserialize_cdr
