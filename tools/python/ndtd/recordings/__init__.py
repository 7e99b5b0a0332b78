"""Recordings of other systems as streams of messages: what ndt-import reads.

    for message in ndtd.recordings.open("drive.mcap"):
        ...

Every source yields the messages below in the order in which they were received.
"""
from .messages import Gnss, Imu, InitialPose, Odometry, Scan, Transform, Truth
from .sources import open

__all__ = ["Gnss", "Imu", "InitialPose", "Odometry", "Scan", "Transform", "Truth", "open"]
