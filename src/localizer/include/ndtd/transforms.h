/** @file
 * @brief Poses of the sensors: from `transform` messages, unless the configuration (frames.*) sets them.
 *
 * A pose of the configuration wins: a frame of frames.sensors, and frames.T_base_sensor, frames.T_base_imu and
 * frames.gnss_antenna_m unless they are their defaults, the identity and zeros. A transform that is not used for
 * this reason is told once per frame in struct ndtd_transform_events. Frames are few and searched by name; nothing
 * allocates. One owner, one thread. */
#ifndef NDTD_TRANSFORMS_H
#define NDTD_TRANSFORMS_H

#include <stdint.h>

#include "ndt_proto/message.h"
#include "ndtd/extrinsics.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NDTD_TRANSFORMS_MAX = 32 };

/** Events that are worth a line in the log; counts since the start. */
struct ndtd_transform_events {
    uint64_t changed;                      /**< transforms that replaced another one of their frame */
    uint64_t unused;                       /**< frames whose configured pose differs from the transform, and wins */
    char changed_frame[NDTD_FRAME_ID_MAX]; /**< last frame of each kind */
    char unused_frame[NDTD_FRAME_ID_MAX];
    char unused_option[NDTD_FRAME_ID_MAX]; /**< the option that wins */
};

/** Transforms that were received; all zero: none. */
struct ndtd_transforms {
    size_t count;
    struct ndtd_sensor_frame frames[NDTD_TRANSFORMS_MAX]; /**< frames in the order of their first message */
    int64_t stamp_ns[NDTD_TRANSFORMS_MAX];                /**< stamps of the messages */
    uint32_t told;                                        /**< bit i: frames[i] is in `unused` */
    struct ndtd_transform_events events;
};

/** Keeps the transform of a frame, in place of an earlier one. NDT_ERR_LIMIT: a translation of more than 1000 m, or
 * more than NDTD_TRANSFORMS_MAX frames; nothing is changed then. */
NDT_MUST_CHECK enum ndt_status ndtd_transforms_put(struct ndtd_transforms *transforms,
                                                   const struct ndt_pose_message *message, struct ndt_error *err);

/** T_base_sensor of scans with this frame_id; borrowed from `transforms` or `frames`. */
const struct ndt_pose *ndtd_transforms_sensor(struct ndtd_transforms *transforms,
                                              const struct ndtd_extrinsics *frames, const char *frame_id);
/** T_base_imu of imu messages with this frame_id; borrowed from `transforms` or `frames`. */
const struct ndt_pose *ndtd_transforms_imu(struct ndtd_transforms *transforms, const struct ndtd_extrinsics *frames,
                                           const char *frame_id);
/** Position of the GNSS antenna in the base frame [m]; borrowed from `transforms` or `frames`. frame_id: that of
 * the newest gnss message, or NULL. */
const double *ndtd_transforms_antenna(struct ndtd_transforms *transforms, const struct ndtd_extrinsics *frames,
                                      const char *frame_id);

#ifdef __cplusplus
}
#endif
#endif
