/** @file
 * @brief The pipeline of a frame, with at most one result: decode, predict, preprocess, align, track.
 *
 * The replay and the live daemon use the same object, and their results are bit-identical. Clocks are used for
 * timings and, after ndtd_pipeline_set_deadline, to bound the work on a scan; nothing else depends on them. Scans
 * cause no allocation after warm-up. Threads: one at a time; every function is called between frames. Source:
 * pipeline.c, which is the path of a scan from top to bottom. */
#ifndef NDTD_PIPELINE_H
#define NDTD_PIPELINE_H

#include <stdio.h>

#include "ndtd/autotune.h"
#include "ndtd/queued_message.h"
#include "ndtd/pipeline_events.h"
#include "ndtd/settings_snapshot.h"
#include "ndt_proto/control_message.h"
#include "ndt_proto/message.h"
#include "ndt_track/track.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The result of a scan, and the time it took [us]. */
struct ndtd_scan_record {
    uint64_t seq;
    int64_t stamp_ns;
    uint64_t points_raw, points_used;
    uint64_t points_thinned; /**< points of points_raw that were not read, see preprocess.max_points */
    /** T_map_sensor is T_map_base at the stamp, the covariance that of the estimate, in the axes of the map;
     * of a pose that is not trusted with the other places of the vehicle */
    struct ndt_align_result result;
    double reference_s;              /**< the reference moment of the sweep, relative to the stamp */
    struct ndt_pose T_map_reference; /**< estimate of the base pose there, before it is carried to the stamp */
    int has_twist;
    struct ndt_twist twist; /**< twist of the base at the reference moment, in the base frame */
    int has_innovation;     /**< the scan was aligned with a prior */
    double innovation;      /**< squared distance of the alignment from the prediction, chi-square with 6 degrees */
    double weakest;         /**< see struct ndt_weighed_observation */
    double confidence;      /**< see ndt_confidence; NAN: unknown, the scan was not aligned or has no observation */
    int is_doubted;         /**< the confidence is below score_estimation.min_confidence */
    enum ndt_state state;   /**< state after this scan */
    double margin;          /**< probability of the pose against all others tried; NAN: none was */
    int has_guess;
    struct ndt_pose T_map_guess; /**< initial guess of the final alignment: the base at the stamp */
    int has_protection;          /**< with integrity.risk */
    struct ndt_protection protection;
    int is_odometry;    /**< there is no map: all poses are in the frame `odom` in place of `map` */
    int is_ahead;       /**< the scan was aligned together with scans before it; see batch.together */
    int32_t hypotheses; /**< guesses that were aligned */
    int has_sensor;
    struct ndtd_sensor_frame sensor; /**< frame_id of the scan, and the sensor's pose as it was processed */
    double decode_us;                /**< time of copying the points out of the message */
    double queue_us, preprocess_us, upload_us, align_us, publish_us;
    const struct ndt_iteration *trace; /**< trace of the last pass; borrowed until the next frame */
    size_t trace_count;
};

struct ndtd_pipeline;
/** T_base_sensor of scans with this frame_id, as in use; borrowed until the next frame. */
const struct ndt_pose *ndtd_pipeline_extrinsics(struct ndtd_pipeline *pipeline, const char *frame_id);
/** Opens the backend and acquires references to the snapshot and the map, which may be NULL
 * (every scan is answered no_map). is_live: 1: searches for a lost pose run in a thread, so that no answer waits
 * for them; 0: within the scan, so that results do not depend on time. */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_create(struct ndtd_pipeline **out,
                                                    const struct ndtd_settings_snapshot *snapshot,
                                                    struct ndt_map *map, int is_live, struct ndt_error *err);
/** Closes the backend and frees everything; `pipeline` may be NULL. */
void ndtd_pipeline_destroy(struct ndtd_pipeline *pipeline);
/** Processes one frame; frames other than scan, initial pose, odometry, IMU and GNSS are ignored. For a scan, whose
 * header has been decoded into frame->scan, `record` then holds the result; a scan that cannot be matched, or whose
 * result is not finite, has the outcome rejected and the reason. A frame that cannot be decoded is an error
 * (NDT_ERR_FORMAT, LIMIT or UNSUPPORTED) and changes nothing. NDT_ERR_MEMORY: memory does not suffice for this
 * scan, even after buffers were given back; it may for a smaller one. NDT_ERR_DEVICE: no further scan can be
 * computed.
 *
 * A scan with more than preprocess.max_points points is thinned to every k-th, and with a deadline to as many as
 * can be preprocessed in time. */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_process(struct ndtd_pipeline *pipeline,
                                                     const struct ndtd_message *frame,
                                                     struct ndtd_scan_record *record, struct ndt_error *err);

/** Announces frames that wait: with batch.together the scans among them are preprocessed and aligned together now,
 * and ndtd_pipeline_process, called for each of the frames in this order, uses what was found.
 *
 * Each scan is aligned from the pose that is predicted from the state before the first of them. Its result counts
 * if it has that prediction when its turn comes: then it has the bits of a scan that was not announced. It also
 * counts if it has converged, and the prediction then lies within the basin of the finest level, is as near and as
 * certain as was expected, and deskews the same to 5 cm. Otherwise it is deskewed with its real motion and aligned
 * again. Scans after an initial pose are not aligned ahead; nor is any if the deadline (that of the first scan)
 * could be missed, the state is not tracking, the backend has neither lanes nor solves, or preprocesses itself. The
 * frames stay where they are until they are processed.
 *
 * Returns the number of frames, from the first on, that were taken in: 0, or up to as many scans as the autotuner
 * found to pay. The rest can be announced when these have been processed. */
size_t ndtd_pipeline_expect(struct ndtd_pipeline *pipeline, struct ndtd_message *const *frames, size_t count);

/** Aligns the following scans to this map and acquires a reference to it; may be NULL (no map). On failure the
 * previous map stays. */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_set_map(struct ndtd_pipeline *pipeline, struct ndt_map *map,
                                                     struct ndt_error *err);
/** Sets the map without waiting for a device: called between frames until *taken is 1; until then scans are aligned
 * to the previous map. For the live daemon only: the moment of the change depends on time. See
 * ndt_aligner_set_map_async. */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_set_map_async(struct ndtd_pipeline *pipeline, struct ndt_map *map,
                                                           int *taken, struct ndt_error *err);
/** Uses this snapshot from now on. It differs from the previous one in reloadable options only. */
void ndtd_pipeline_apply_settings(struct ndtd_pipeline *pipeline, const struct ndtd_settings_snapshot *snapshot);
/** Sets the deadline of the following scans: the moment of the monotonic clock [us] at which a result is due; 0 =
 * no deadline. A scan whose deadline passes before it could be aligned is answered `deadline` with the predicted
 * pose. */
void ndtd_pipeline_set_deadline(struct ndtd_pipeline *pipeline, double deadline_us);
/** Uses the backend and the costs that the autotuner chose. On failure the previous backend stays. When the
 * settings name a backend, that one stays and only the costs are used. */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_set_autotune_result(struct ndtd_pipeline *pipeline,
                                                                 const struct ndtd_autotune_result *tuned,
                                                                 struct ndt_error *err);
/** @name What a viewer shows
 * @{ */
/** is_watched: keeps the data of the following scans that ndtd_pipeline_points needs. It changes no result. */
void ndtd_pipeline_watch(struct ndtd_pipeline *pipeline, int is_watched);
/** Writes the points of the last scan, in the base frame at its stamp, without the motion of the sensor, and the
 * poses that were tried to align it. The points are all that have a return, before any filter, or every k-th of
 * them, k odd, so that at most `most` are left. Points and message are the caller's and reused; nothing is
 * allocated once they have held as many points. NDT_END: there are none, because the scan was not watched, or its
 * points were not read (the scan was refused, stopped, or held for other sensors). */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_points(struct ndtd_pipeline *pipeline, size_t most,
                                                    struct ndt_points_message *message, struct ndt_cloud *points,
                                                    struct ndt_error *err);
/** @} */
/** active = 0: scans are answered `rejected` without being decoded, and the estimator does not change. */
void ndtd_pipeline_set_active(struct ndtd_pipeline *pipeline, int active);
/** Sets the pose of the estimator. A stamp of 0 means the stamp of the next scan. */
void ndtd_pipeline_set_initial_pose(struct ndtd_pipeline *pipeline, const struct ndt_pose_message *start);

/** @name Search for the pose on request
 * The following scans are searched for in the map, around what the request tells; the pose hypotheses that are
 * found follow them until one is accepted or none can be. The estimator goes on as before; with hint.apply it takes
 * over the pose that was accepted. A request replaces the one before.
 * @{ */
void ndtd_pipeline_localize(struct ndtd_pipeline *pipeline, const struct ndt_request_message *request);
/** Searches for the scan that was just answered; called after each scan. Hypotheses that were found follow it. */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_follow_up(struct ndtd_pipeline *pipeline, struct ndt_error *err);
void ndtd_pipeline_cancel_localize(struct ndtd_pipeline *pipeline);
/** Copies the result; returns 0 while there is none. */
int ndtd_pipeline_localize_report(const struct ndtd_pipeline *pipeline, struct ndt_localize_report *out);
/** Percent of the search that runs, 0 to 100; thread-safe. */
unsigned ndtd_pipeline_search_progress(const struct ndtd_pipeline *pipeline);
/** Ends a search that no scan confirms within 5 s, without an accepted pose; called while no scan comes. */
void ndtd_pipeline_idle(struct ndtd_pipeline *pipeline);
/** @} */

/** The state after the last scan. */
enum ndt_state ndtd_pipeline_state(const struct ndtd_pipeline *pipeline);
/** The newest GNSS position, of the antenna; returns 0 when there is none. */
int ndtd_pipeline_gnss(const struct ndtd_pipeline *pipeline, double position_m[3]);
/** Counts of everything that went wrong so far; borrowed. */
const struct ndtd_pipeline_events *ndtd_pipeline_events(const struct ndtd_pipeline *pipeline);
/** The pose of the base at a stamp, see ndtd_moment_at; 0: at the newest of all scans and motion samples. */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_pose_at(const struct ndtd_pipeline *pipeline, int64_t stamp_ns,
                                                     struct ndt_moment_message *out, struct ndt_error *err);
/** The estimator; borrowed. */
const struct ndt_track *ndtd_pipeline_track(const struct ndtd_pipeline *pipeline);
/** How the last scan led to the state of the estimator; NULL: the state was set. Borrowed. */
const struct ndt_track_step *ndtd_pipeline_step(const struct ndtd_pipeline *pipeline);
/** Writes the backend's intermediate values at one iteration of the last scan's trace; see ndt_aligner_dump. */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_dump(struct ndtd_pipeline *pipeline, size_t iteration, FILE *file,
                                                  struct ndt_error *err);
/** The backend in use, for its name, description and counters; borrowed. */
const struct ndt_backend *ndtd_pipeline_backend(const struct ndtd_pipeline *pipeline);

#ifdef __cplusplus
}
#endif
#endif
