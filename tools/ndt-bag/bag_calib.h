/** @file
 * @brief Calibration files of KITTI: from poses of a camera or an IMU to poses of the LiDAR. */
#ifndef BAG_CALIB_H
#define BAG_CALIB_H

#include "ndt_io/trajectory.h"

/** Calibration: the pose of the sensor that poses belong to. */
struct bag_calib {
    struct ndt_pose T_sensor_lidar;
    int is_camera; /**< the world has the axes of the camera at the start: z forward, y down */
};

/** Reads
 *  - calib.txt of KITTI odometry, or of object data: the line `Tr:` (Tr_velo_to_cam) with 12 numbers;
 *  - calib_velo_to_cam.txt and calib_imu_to_velo.txt of KITTI raw, told by their names: the lines `R:` and `T:`.
 * NDT_ERR_FORMAT with the line that is missing. */
NDT_MUST_CHECK enum ndt_status bag_calib_read(struct bag_calib *out, const char *path, struct ndt_error *err);
/** T_map_sensor to T_map_lidar. With a camera the map gets the axes of the LiDAR at the start, too. */
void bag_calib_apply(const struct bag_calib *calib, struct ndt_trajectory *trajectory);

#endif
