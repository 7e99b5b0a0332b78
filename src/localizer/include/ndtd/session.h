/** @file
 * @brief Localisation inside another program: options and a map in, scans and motion in, one result per scan out.
 *
 *     struct ndtd_session *session;
 *     ndtd_session_create(&session, &err);
 *     ndtd_session_set_option(session, "map.path", "map.pcd", &err);
 *     ndtd_session_start(session, NULL, &err);
 *     ndtd_session_pose(session, NDT_MESSAGE_ODOMETRY, &odometry, &err);    // also _imu, _gnss
 *     ndtd_session_scan(session, &scan, &points, &result, &err);            // result.result.T_map_sensor
 *     if (ndtd_session_is_pose_trusted(session))
 *         printf("%g\n", result.result.T_map_sensor.t_m[0]);
 *     ndtd_session_destroy(session);
 *
 * This is `ndtd --replay` without a bag: equal options, map and messages give equal bits, for any number of
 * threads; no clock affects a result. Inputs go in the order of their stamps. Without an initial pose the first
 * scans are searched for in the map, within the call.
 *
 * Failures leave the session as it is and are one line in `err`; NDT_ERR_ARGUMENT also for a call before the start
 * that belongs after it, or the reverse. Warnings go to standard error. One thread at a time per session; any
 * number of sessions. Allocates in start, and for a scan that is larger than any before. Source: session.c. */
#ifndef NDTD_SESSION_H
#define NDTD_SESSION_H

#include "ndt/map.h"
#include "ndt_proto/message.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_session;
/** Creates a session with the default options. */
NDT_MUST_CHECK enum ndt_status ndtd_session_create(struct ndtd_session **out, struct ndt_error *err);
/** Destroys a session, started or not; `session` may be NULL. */
void ndtd_session_destroy(struct ndtd_session *session);

/** @name Before the start
 * Later calls override earlier ones. `ndtd --help-options` lists the options; those of sockets, queues and
 * recordings have no effect here.
 * @{ */
/** Reads a configuration file, as `ndtd --config` does. */
NDT_MUST_CHECK enum ndt_status ndtd_session_read_options(struct ndtd_session *session, const char *path,
                                                         struct ndt_error *err);
/** Sets one option from text, as `ndtd --set NAME=VALUE` does. */
NDT_MUST_CHECK enum ndt_status ndtd_session_set_option(struct ndtd_session *session, const char *name,
                                                       const char *value, struct ndt_error *err);
/** Checks the options together, loads the map and opens the backend. map: is used with a reference of its own; it
 * has the levels of ndt.levels. NULL: the map at map.path is loaded. Once per session. */
NDT_MUST_CHECK enum ndt_status ndtd_session_start(struct ndtd_session *session, struct ndt_map *map,
                                                  struct ndt_error *err);
/** @} */

/** @name After the start
 * @{ */
/** Localises a scan: `points` in the frame of the sensor, times relative to scan->stamp_ns. result->result holds
 * T_map_base at the stamp, outcome and scores; a scan that cannot be used has the outcome rejected, and the reason.
 * NDT_ERR_ARGUMENT, LIMIT: not a scan that could be a message (SCHEMA.md). NDT_ERR_DEVICE: no further scan can be
 * computed. */
NDT_MUST_CHECK enum ndt_status ndtd_session_scan(struct ndtd_session *session, const struct ndt_scan_message *scan,
                                                 const struct ndt_cloud *points, struct ndt_result_message *result,
                                                 struct ndt_error *err);
/** Takes in an initial pose (NDT_MESSAGE_INITIAL_POSE) or odometry (NDT_MESSAGE_ODOMETRY). */
NDT_MUST_CHECK enum ndt_status ndtd_session_pose(struct ndtd_session *session, enum ndt_message_type type,
                                                 const struct ndt_pose_message *pose, struct ndt_error *err);
/** Takes in a sample of the IMU, in its frame. */
NDT_MUST_CHECK enum ndt_status ndtd_session_imu(struct ndtd_session *session, const struct ndt_imu_message *imu,
                                                struct ndt_error *err);
/** Takes in a position of the GNSS antenna in the map. */
NDT_MUST_CHECK enum ndt_status ndtd_session_gnss(struct ndtd_session *session, const struct ndt_gnss_message *gnss,
                                                 struct ndt_error *err);
/** Takes in an encoded message, such as the payload of a bag record. *is_scan: whether it was a scan, and `result`
 * holds its result. Messages that are no input (truth, results, requests) are ignored. */
NDT_MUST_CHECK enum ndt_status ndtd_session_message(struct ndtd_session *session, const void *data, size_t size,
                                                    int *is_scan, struct ndt_result_message *result,
                                                    struct ndt_error *err);
/** The pose of the base at any time: between two scans of the last seconds (smoothed by those around it), at the
 * newest scan or sample of the motion (stamp_ns = 0), or predicted by up to output.max_ahead_s beyond them.
 * NDT_END: there is no pose at that stamp; the line begins with the reason: no_pose, before_window, too_far_ahead,
 * not_trusted. The answer depends on the inputs so far, not on the time of the call, and changes nothing. A call
 * takes about 3 us after the newest scan; before it, 12 us for each scan after the stamp, of up to 16, and with
 * odometry or an IMU 23 us for each scan of the last 2 s: 0.6 ms for a stamp 1 s ago on a drive at 10 Hz. */
NDT_MUST_CHECK enum ndt_status ndtd_session_pose_at(const struct ndtd_session *session, int64_t stamp_ns,
                                                    struct ndt_moment_message *out, struct ndt_error *err);
/** Whether the pose of the last result may be used: the state is tracking, coasting or extending, and the pose is
 * the estimate. */
int ndtd_session_is_pose_trusted(const struct ndtd_session *session);
/** Aligns the following scans with another map, of which the session holds a reference. On failure the previous
 * map stays. */
NDT_MUST_CHECK enum ndt_status ndtd_session_set_map(struct ndtd_session *session, struct ndt_map *map,
                                                    struct ndt_error *err);
/** @} */

#ifdef __cplusplus
}
#endif
#endif
