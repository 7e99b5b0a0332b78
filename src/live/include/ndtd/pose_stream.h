/** @file
 * @brief The pose at any time, in the running daemon: answers `pose_at`, and publishes `pose` messages on the
 * socket `motion` (XPUB) at output.rate_hz.
 *
 * A thread "ndt-pose" has an estimator of its own, which only takes in: samples of odometry and IMU from the
 * receiver, at once and not behind the scan that is being matched, and from the matching thread the state that each
 * scan has left. Both are handed over in rings without a lock; neither thread waits or allocates. A full ring loses
 * what is new, which is counted.
 *
 * Poses are published at the stamps of the samples of odometry and IMU, at most output.rate_hz of them; where none
 * has come for 0.2 s, at that rate by the clock, carried on from the newest scan by the time since it arrived. Only
 * while somebody has subscribed and the pose is trusted (ndt_track_pose_at); stamps grow.
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
/** When receiver and matching thread have ended: ends the thread and closes the socket; NULL is allowed. */
void ndtd_pose_stream_close(struct ndtd_pose_stream *stream);

/** The receiver: hands over a message of odometry, IMU or a transform; others are ignored, and so are those that
 * cannot be decoded (the matching thread says so). */
void ndtd_pose_stream_take(struct ndtd_pose_stream *stream, const struct ndtd_message *frame);

/** The estimator after a scan. */
struct ndtd_pose_stream_scan {
    const struct ndt_track *track; /**< the pipeline's: its state, parameters and ignored inputs are copied */
    enum ndt_state state;
    double max_ahead_s;
    double arrival_us; /**< of the scan, monotonic clock */
};
/** The matching thread, after each scan. */
void ndtd_pose_stream_follow(struct ndtd_pose_stream *stream, const struct ndtd_pose_stream_scan *scan);

/** Any thread: ndtd_moment_at with all that has been handed over; 0: now. Waits at most for one pose. */
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
