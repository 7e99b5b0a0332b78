"""Conventions of ROS 2 on DDS: names of topics and types, IDL of messages, QoS, hashes of types.

Topics get the prefix `rt`, types the namespace `dds_` and a trailing underscore, as in rmw_cyclonedds and rmw_fastrtps. The
requests of a service are a topic with the prefix `rq`, its replies one with `rr`; in front of their fields rmw_cyclonedds puts
the client and the number of the request, which rmw_fastrtps sends beside them: clients on that one are not understood.
Messages travel as XCDR1, little endian. rosbags knows the definitions and reads and writes them; cyclonedds gets the same
definitions as IDL, from one place.
"""
from typing import Any, Optional

from .._extras import need
from ..recordings import ros_types
from . import msgtypes

ALIGN = "autoware_internal_localization_msgs/srv/PoseWithCovarianceStamped"
SET_BOOL = "std_srvs/srv/SetBool"
REQUEST, RESPONSE = "_Request", "_Response"
SERVICES = {ALIGN: ("geometry_msgs/PoseWithCovarianceStamped pose_with_covariance\n",
                    "bool success\nbool reliable\ngeometry_msgs/PoseWithCovarianceStamped pose_with_covariance\n"),
            SET_BOOL: ("bool data\n", "bool success\nstring message\n")}
SERVICE_HEADER = "uint64 guid\nint64 seq\n"  # cdds_request_header_t of rmw_cyclonedds


def dds_topic(name: str) -> str:
    """/points -> rt/points"""
    return "rt" + name


def dds_service(name: str) -> tuple[str, str]:
    """/align -> rq/alignRequest, rr/alignReply"""
    return f"rq{name}Request", f"rr{name}Reply"


def ros_topic(name: str) -> Optional[str]:
    """rt/points -> /points; None for what is no topic of ROS 2, such as services (rq, rr) and ros_discovery_info."""
    return name[2:] if name.startswith("rt/") else None


def dds_type(name: str) -> str:
    """sensor_msgs/msg/Imu -> sensor_msgs::msg::dds_::Imu_"""
    package, kind, message = name.split("/")
    return f"{package}::{kind}::dds_::{message}_"


def ros_type(name: str) -> str:
    """sensor_msgs::msg::dds_::Imu_ -> sensor_msgs/msg/Imu; other names as they are."""
    parts = name.split("::")
    if len(parts) < 3 or parts[-2] != "dds_" or not parts[-1].endswith("_"):
        return name
    return "/".join(parts[:-2] + [parts[-1][:-1]])


def _services() -> dict[str, str]:
    """The text of each half of a service."""
    found = {}
    for name, (request, response) in SERVICES.items():
        found[name + REQUEST], found[name + RESPONSE] = SERVICE_HEADER + request, SERVICE_HEADER + response
    return found


class Types:
    """Message classes, their CDR and their IDL. Threads: any, after the first use of a type."""

    is_ros2 = True

    def __init__(self) -> None:
        self._store = ros_types.default_store()
        self._fields = msgtypes.register(self._store, _services())
        self._idl_types = need("cyclonedds.idl.types", "dds")
        self._idl_module = need("cyclonedds.idl", "dds")
        self._structs: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """The class of a message."""
        return self._store.types[name]

    def decode(self, cdr: bytes, name: str) -> Any:
        """A message from CDR with its encapsulation; sequences of numbers are arrays that share the bytes."""
        return self._store.deserialize_cdr(memoryview(cdr), name)  # a slice of bytes would be a copy

    def encode(self, message: Any, name: str) -> bytes:
        """CDR with the encapsulation, padded to 4 bytes as DDS wants it."""
        cdr = bytes(self._store.serialize_cdr(message, name))
        return cdr + bytes(-len(cdr) % 4)

    def user_data(self, name: str) -> bytes:
        """The hash of a type, which rmw tells other nodes since Iron (REP-2016)."""
        return f"typehash={self._store.hash_rihs01(name)};".encode()

    def idl(self, name: str) -> Any:
        """The IdlStruct of a message, for a topic of cyclonedds."""
        if name not in self._structs:
            fields = {field: self._idl_field(node) for field, node in self._fields[name][1]}
            typename = dds_type(name).replace("::", ".")
            self._structs[name] = self._idl_module.make_idl_struct(typename.split(".")[-1], typename, fields)
        return self._structs[name]

    def _idl_field(self, node: Any) -> Any:
        kind, value = node
        if kind.name == "BASE":
            return self._idl_base(*value)
        if kind.name == "NAME":
            return self.idl(value)
        element = self._idl_field(value[0])
        if kind.name == "ARRAY":
            return self._idl_types.array[element, value[1]]
        return self._idl_types.sequence[element, value[1]] if value[1] else self._idl_types.sequence[element]

    def _idl_base(self, base: str, bound: int) -> Any:
        if base == "string":
            return self._idl_types.bounded_str[bound] if bound else str
        if base == "bool":
            return bool
        return getattr(self._idl_types, "byte" if base == "octet" else base)
