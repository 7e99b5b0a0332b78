/* One frame in, at most one result out: decode, preprocess, guess, align, update. The same object serves the
 * replay and the live daemon. One thread. After warm-up no allocation per scan. Clocks write timings, and bound the
 * work on a scan when ndtd_pipeline_set_deadline was called; nothing else depends on them. */
#ifndef NDTD_PIPELINE_H
#define NDTD_PIPELINE_H

#include <stdio.h>

#include "ndt_proto/message.h"
#include "ndtd/autotune.h"
#include "ndtd/settings_snapshot.h"
#include "ndtd/tracker.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a scan got, and the time it took [us]. */
struct ndtd_scan_record {
    uint64_t seq;
    int64_t stamp_ns;
    uint64_t points_raw, points_used;
    struct ndt_align_result result;
    double decode_us, queue_us, preprocess_us, upload_us, align_us, publish_us;
    const struct ndt_iteration *trace; /* borrowed until the next frame; rows of the last pass */
    size_t trace_count;
};

struct ndtd_pipeline;
/* Opens the backend and keeps references to the snapshot and the map (may be NULL: every scan is answered no_map).
 */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_create(struct ndtd_pipeline **out,
                                                    const struct ndtd_settings_snapshot *snapshot,
                                                    struct ndt_map *map, struct ndt_error *err);
void ndtd_pipeline_destroy(struct ndtd_pipeline *pipeline);
/* Handles one frame. *emitted becomes 1 when it was a scan, with `record` filled. A frame that cannot be
 * decoded is an error of the decoder's (format, limit, unsupported version) and changes nothing. A scan that cannot
 * be matched is emitted as rejected, with the reason. NDT_ERR_MEMORY and NDT_ERR_DEVICE: nothing can be
 * computed any more. Truth and result messages are not for the pipeline. */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_frame(struct ndtd_pipeline *pipeline, enum ndt_message_type type,
                                                   const uint8_t *data, size_t size, int *emitted,
                                                   struct ndtd_scan_record *record, struct ndt_error *err);

/* Between frames. The next scan meets this map (a reference of its own is taken); NULL: no map. On failure the
 * map before stays. */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_set_map(struct ndtd_pipeline *pipeline, struct ndt_map *map,
                                                     struct ndt_error *err);
/* The same without waiting, to be called between frames until *taken is 1: scans meet the map before until then.
 * For the live daemon; when a map is taken depends on time. See ndt_aligner_offer_map. */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_set_map_async(struct ndtd_pipeline *pipeline, struct ndt_map *map,
                                                           int *taken, struct ndt_error *err);
/* Between frames. The snapshot replaces the one before, from which it differs in reloadable options only. */
void ndtd_pipeline_apply(struct ndtd_pipeline *pipeline, const struct ndtd_settings_snapshot *snapshot);
/* For the scans that follow: the moment of the monotonic clock [us] by which a result is wanted; 0 = take your
 * time. A scan whose time is over before it could be aligned is answered `deadline` with the predicted pose. */
void ndtd_pipeline_set_deadline(struct ndtd_pipeline *pipeline, double deadline_us);
/* Between frames. Computes in the way that was chosen from now on, and expects its costs. opened: that backend,
 * open already, with any map or none, which the pipeline then owns, also when this fails; NULL: it is opened here.
 * On failure the backend before stays. Where the settings name a backend it stays anyway, and only the costs are
 * taken over. */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_set_autotune_result(struct ndtd_pipeline *pipeline,
                                                                 const struct ndtd_autotune_result *tuned,
                                                                 struct ndt_backend *opened, struct ndt_error *err);
/* The points of the last scan that converged, and where that was; borrowed until the next frame. 0: none. */
int ndtd_pipeline_last_scan(const struct ndtd_pipeline *pipeline, const struct ndt_cloud **points,
                            struct ndt_pose *T_map_sensor);
/* 0: scans are answered `rejected` without being looked at, and the tracker stands still. */
void ndtd_pipeline_set_active(struct ndtd_pipeline *pipeline, int active);
/* A new start. A stamp of 0 means the stamp of the next scan. */
void ndtd_pipeline_start_at(struct ndtd_pipeline *pipeline, const struct ndt_pose_message *start);

struct ndtd_tracker *ndtd_pipeline_tracker(struct ndtd_pipeline *pipeline);
/* Writes what the backend computes between points and sums at one iteration of the last scan's trace. */
NDT_MUST_CHECK enum ndt_status ndtd_pipeline_dump(struct ndtd_pipeline *pipeline, size_t iteration, FILE *file,
                                                  struct ndt_error *err);
/* The backend behind it, for its name, description and counters; borrowed. */
const struct ndt_backend *ndtd_pipeline_backend(const struct ndtd_pipeline *pipeline);

#ifdef __cplusplus
}
#endif
#endif
