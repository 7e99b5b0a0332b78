"""Extrinsic calibration from a drive: where a LiDAR and an IMU are on the vehicle."""
