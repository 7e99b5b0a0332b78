/** @file
 * @brief The pose at any time, in the running daemon: answers `pose_at`, and publishes `pose` messages on the
 * socket `motion` (XPUB) at output.rate_hz.
 *
 * A thread "ndt-pose" has an estimator of its own, which takes in samples of odometry and IMU from the receiver,
 * without waiting for the scan in work, and from the matching thread the state after each scan. Both are handed
 * over in rings without a lock; neither thread waits or allocates. A full ring loses the new entries, which are
 * counted.
 *
 * Poses are published at the stamps of the samples of odometry and IMU, at most output.rate_hz of them; without a
 * sample for 0.2 s, at that rate by the clock, carried on from the newest scan by the time since its arrival. Poses
 * are published only while there is a subscriber and the pose is trusted (ndt_track_pose_at); their stamps grow.
 *
 * Threads: as named below. Source: pose_stream.c. */
#ifndef NDTD_POSE_STREAM_H
#define NDTD_POSE_STREAM_H

#include "ndtd/moment.h"
#include "ndtd/queued_message.h"
#include "ndtd/settings_snapshot.h"
#include "ndtd/socket.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_pose_stream;
/** Starts the thread and, where the endpoint has an address, binds the socket. `sockets` is borrowed. On failure
 * *out is NULL. */
NDT_MUST_CHECK enum ndt_status ndtd_pose_stream_open(struct ndtd_pose_stream **out, struct ndtd_sockets *sockets,
                                                     const struct ndtd_endpoint *endpoint,
                                                     const struct ndtd_settings *settings, struct ndt_error *err);
/** Ends the thread and closes the socket, after receiver and matching thread have ended; NULL is allowed. */
void ndtd_pose_stream_close(struct ndtd_pose_stream *stream);

/** Hands over a message of odometry, IMU or a transform; called by the receiver. Others are ignored, and so are
 * those that cannot be decoded, which the matching thread reports. */
void ndtd_pose_stream_take(struct ndtd_pose_stream *stream, const struct ndtd_message *frame);

/** State of the estimator after a scan. */
struct ndtd_pose_stream_scan {
    const struct ndt_track
        *track; /**< track of the pipeline: its state, parameters and ignored inputs are copied */
    const struct ndt_track_step *step; /**< how the state followed from the one before; NULL: it was set */
    enum ndt_state state;
    double max_ahead_s;
    double arrival_us; /**< arrival of the scan, monotonic clock */
};
/** Hands over the state after a scan; called by the matching thread. */
void ndtd_pose_stream_follow(struct ndtd_pose_stream *stream, const struct ndtd_pose_stream_scan *scan);

/** ndtd_moment_at with all inputs handed over so far; 0: now. Any thread; waits at most for one pose. */
NDT_MUST_CHECK enum ndt_status ndtd_pose_stream_at(struct ndtd_pose_stream *stream, int64_t stamp_ns,
                                                   struct ndt_moment_message *out, struct ndt_error *err);

/** Counters since the start. */
struct ndtd_pose_stream_counters {
    uint64_t published, lost; /**< lost: samples and states that did not fit */
    unsigned subscribers;     /**< connections that have subscribed */
};
/** Copies the counters; any thread. */
struct ndtd_pose_stream_counters ndtd_pose_stream_counters(const struct ndtd_pose_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
