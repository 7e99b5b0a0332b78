/** @file
 * @brief Extrinsics: transforms from the sensors to the base frame, and their text form in the options.
 *
 * The base frame is that of the vehicle (base_link). A transform is one of
 *
 *   x y z qx qy qz qw       translation [m] and unit quaternion
 *   x y z roll pitch yaw    translation [m] and rotation Rz(yaw) Ry(pitch) Rx(roll) [rad], as in URDF and tf2
 *   16 numbers              4x4 matrix by rows
 *
 * Pure functions, any thread; nothing allocates. */
#ifndef NDTD_EXTRINSICS_H
#define NDTD_EXTRINSICS_H

#include <stddef.h>

#include "ndt/pose.h"
#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    NDTD_EXTRINSICS_SENSORS = 8, /**< sensors with transforms of their own */
    NDTD_FRAME_ID_MAX = 64       /**< bytes of a frame_id, with the final zero */
};

/** A sensor with its own transform. */
struct ndtd_sensor_frame {
    char frame_id[NDTD_FRAME_ID_MAX]; /**< frame_id of its scans */
    struct ndt_pose T_base_sensor;
};

/** Options frames.*; the identity and no sensors by default. */
struct ndtd_extrinsics {
    struct ndt_pose T_base_sensor; /**< for scans whose frame_id is not that of one of `sensors` */
    struct ndt_pose T_base_imu;
    double gnss_antenna_m[3]; /**< antenna in the base frame */
    size_t sensor_count;
    struct ndtd_sensor_frame sensors[NDTD_EXTRINSICS_SENSORS];
    int merge_sensors; /**< scans of all `sensors` become one, see scan_merge.h */
};

/** The sensor with this frame_id, borrowed; NULL if there is none. */
const struct ndtd_sensor_frame *ndtd_extrinsics_sensor(const struct ndtd_extrinsics *frames, const char *frame_id);
/** T_base_sensor of scans with this frame_id, borrowed. */
const struct ndt_pose *ndtd_extrinsics_of(const struct ndtd_extrinsics *frames, const char *frame_id);

/** Reads a transform from texts of numbers between spaces or commas. NDT_ERR_ARGUMENT, with one line that names the
 * number or the limit: 6, 7 or 16 finite numbers, angles within 2 pi, a rotation that is orthonormal to 1e-3, a
 * translation of at most 1000 m. */
NDT_MUST_CHECK enum ndt_status ndtd_transform_parse(const char *const *texts, size_t count, struct ndt_pose *out,
                                                    struct ndt_error *err);
/** Reads "frame_id TRANSFORM", such as "lidar_left 0 0.5 1.8 0 0 1.57". */
NDT_MUST_CHECK enum ndt_status ndtd_sensor_frame_parse(const char *text, struct ndtd_sensor_frame *out,
                                                       struct ndt_error *err);
/** Whether the members fit together: names of sensors are unique, and merging needs two of them. */
NDT_MUST_CHECK enum ndt_status ndtd_extrinsics_check(const struct ndtd_extrinsics *frames, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
