"""Packets of sensors, as drivers record them: decoded by the packages that the field keeps for that."""
from typing import Iterator

import numpy as np

from .._extras import need
from .messages import Scan
from .points import PointError, only, returns

NS = 1_000_000_000
VELODYNE_BYTES = 1206

_POINTS = "record its point cloud, or replay the packets through the driver of the sensor"

# Types of packets that nothing reads, and what to do.
UNREADABLE = {
    "pandar_msgs/msg/PandarScan": "packets of a Hesai Pandar: those of an XT-32 and an OT-128 become clouds with hydra4 (PyPI), "
                                  "those of another model (40P) with none there; else " + _POINTS,
    "hesai_ros_driver/msg/UdpFrame": "packets of a Hesai are not decoded here: " + _POINTS,
    "ouster_ros/msg/PacketMsg": "packets of an Ouster need the metadata of the sensor: " + _POINTS,
    "ouster_sensor_msgs/msg/PacketMsg": "packets of an Ouster need the metadata of the sensor: " + _POINTS,
    "rslidar_msg/msg/RslidarPacket": "packets of a RoboSense are not decoded here: " + _POINTS,
    "robosense_msgs/msg/RobosenseScan": "packets of a RoboSense are not decoded here: " + _POINTS,
}


def _ns(stamp):
    return stamp.sec * NS + stamp.nanosec


def velodyne_scan(message, receive_ns, topic, options) -> Iterator:
    """velodyne_msgs/VelodyneScan: one sweep; the model and its returns are recognised by velodyne-decoder."""
    decoder = need("velodyne_decoder", "ros")
    if topic.state is None:
        topic.state = decoder.ScanDecoder(decoder.Config())
    vector = decoder.PacketVector()
    for packet in message.packets:
        vector.append(decoder.VelodynePacket(_ns(packet.stamp) * 1e-9, bytes(packet.data)))
    if not message.packets:
        return
    _, points = topic.state.decode(vector, True)
    stamp_ns = _ns(message.header.stamp) or receive_ns
    xyz = np.stack([points["x"], points["y"], points["z"]])
    good = returns(xyz)
    last_s = (_ns(message.packets[-1].stamp) - stamp_ns) * 1e-9  # the times of the decoder are relative to it
    kept = only(xyz, good)
    yield Scan(receive_ns, stamp_ns, message.header.frame_id, kept.T, only(points["intensity"].astype(np.float32), good),
               only(points["time"].astype(np.float64), good) + last_s, xyz.shape[1] - kept.shape[1])


def nebula_packets(message, receive_ns, topic, options) -> Iterator:
    """nebula_msgs/NebulaPackets: of any vendor; those of Velodyne are recognised by their size."""
    sizes = {len(packet.data) for packet in message.packets}
    if sizes and sizes != {VELODYNE_BYTES}:
        raise PointError("packets that are not of a Velodyne: " + _POINTS)
    return velodyne_scan(message, receive_ns, topic, options)
