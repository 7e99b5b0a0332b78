/** @file
 * @brief consistency: replays a bag through the daemon's pipeline for several seeds of the sample, and compares
 * poses and covariances with the truth. */
#include "bench_consistency.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndt_io/bag.h"
#include "ndt_io/map_file.h"
#include "ndtd/pipeline.h"
#include "ndtd/replay_sinks.h"
#include "ndtd/scan_state.h"

struct replay {
    struct ndt_bag_reader *bag;
    struct ndt_map *map;
    struct ndtd_trajectory_error truth;
    struct ndtd_pipeline *pipeline;
    struct consistency results;
    uint64_t seed;
    int64_t first_ns; /* stamp of the first scan of this seed */
};

typedef enum ndt_status take_fn(struct replay *replay, const struct ndt_bag_record *record, struct ndt_error *err);

/* Calls `take` for every record, up to the end or the first damage. */
static enum ndt_status each(struct replay *replay, take_fn *take, struct ndt_error *err)
{
    struct ndt_bag_record record;
    enum ndt_status status = NDT_OK;
    ndt_bag_rewind(replay->bag);
    while (status == NDT_OK && ndt_bag_next(replay->bag, &record, NULL) == NDT_OK)
        status = take(replay, &record, err);
    return status;
}

static enum ndt_status take_truth(struct replay *replay, const struct ndt_bag_record *record, struct ndt_error *err)
{
    struct ndt_pose_message truth;
    if (record->type != NDT_MESSAGE_TRUTH)
        return NDT_OK;
    enum ndt_status status =
        ndt_pose_message_decode(record->payload, record->length, NDT_MESSAGE_TRUTH, &truth, err);
    return status == NDT_OK ? ndtd_trajectory_error_add_truth(&replay->truth, truth.stamp_ns, &truth.pose, err)
                            : status;
}

/* The covariance of a pose, in the axes of the map, as deviations in those of the base; *nees: the distance of the
 * truth in it. Returns 0 where it is none. */
static int base_sigmas(const struct ndt_pose *T_map_base, const double of_map[36],
                       const double error[CONSISTENCY_AXES], double sigma[CONSISTENCY_AXES], double *nees)
{
    double R[9], turn[36] = {0}, covariance[36], inverse[36], scaled[6];
    ndt_pose_rotation(T_map_base, R);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            turn[6 * i + j] = turn[6 * (3 + i) + 3 + j] = R[3 * i + j];
    ndt_congruence(6, 6, turn, of_map, covariance);
    *nees = 0;
    if (!ndt_invert_symmetric(6, covariance, inverse))
        return 0;
    ndt_multiply(6, 6, 1, inverse, error, scaled);
    for (int i = 0; i < CONSISTENCY_AXES; i++) {
        sigma[i] = sqrt(covariance[7 * i]);
        *nees += error[i] * scaled[i];
    }
    return 1;
}

static void compare(struct replay *replay, const struct ndtd_scan_record *record, struct consistency_scan *scan)
{
    const struct ndt_pose *found = &record->result.T_map_sensor;
    struct ndt_pose truth;
    if (!ndtd_outcome_has_pose(record->result.outcome) ||
        !ndtd_trajectory_error_truth_at(&replay->truth, record->stamp_ns, &truth, NULL))
        return;
    const struct ndt_pose off = ndt_pose_between(&truth, found);
    const struct ndt_twist error = ndt_pose_log(&off, 1);
    memcpy(scan->error, error.v_mps, sizeof(error.v_mps));
    memcpy(scan->error + 3, error.w_radps, sizeof(error.w_radps));
    scan->off_m = ndt_pose_distance_m(&truth, found);
    scan->off_deg = ndt_pose_angle_rad(&truth, found) / BENCH_DEG;
    scan->has_error = 1;
    if (record->result.has_covariance && ndtd_state_is_trusted(record->state)) /* others include other places */
        scan->has_nees = base_sigmas(found, record->result.covariance, scan->error, scan->sigma, &scan->nees);
}

static enum ndt_status add(struct replay *replay, const struct ndtd_scan_record *record, struct ndt_error *err)
{
    struct consistency *results = &replay->results;
    const struct ndt_scores *scores = &record->result.scores;
    struct consistency_scan scan = {.seed = replay->seed,
                                    .outcome = record->result.outcome,
                                    .innovation = record->innovation,
                                    .score = scores->nvtl_normalized * scores->match_ratio,
                                    .confidence = record->confidence,
                                    .evaluations = record->result.evaluations};
    if (results->count == results->capacity) {
        const size_t capacity = results->capacity ? 2 * results->capacity : 1024;
        void *scans = realloc(results->scans, capacity * sizeof(*results->scans));
        if (!scans)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu results", capacity);
        results->scans = scans;
        results->capacity = capacity;
    }
    if (replay->first_ns == INT64_MIN)
        replay->first_ns = record->stamp_ns;
    scan.time_s = ndt_track_seconds(replay->first_ns, record->stamp_ns);
    compare(replay, record, &scan);
    results->scans[results->count++] = scan;
    return NDT_OK;
}

/* A frame that cannot be used is skipped; a scan is then rejected, as the daemon does. */
static enum ndt_status take_frame(struct replay *replay, const struct ndt_bag_record *record, struct ndt_error *err)
{
    struct ndtd_message frame = {
        .type = (enum ndt_message_type)record->type, .data = record->payload, .size = record->length};
    struct ndtd_scan_record out = {0};
    enum ndt_status status = NDT_OK;
    if (record->type == NDT_MESSAGE_TRUTH || record->type >= NDT_MESSAGE_END)
        return NDT_OK;
    if (record->type == NDT_MESSAGE_SCAN)
        status = ndt_scan_header_decode(frame.data, frame.size, &frame.scan, err);
    if (status == NDT_OK)
        status = ndtd_pipeline_process(replay->pipeline, &frame, &out, err);
    if (status == NDT_ERR_MEMORY || status == NDT_ERR_DEVICE)
        return status;
    if (status != NDT_OK)
        out = (struct ndtd_scan_record){
            .stamp_ns = record->receive_time_ns, .confidence = NAN, .result.outcome = NDT_REJECTED};
    return record->type == NDT_MESSAGE_SCAN ? add(replay, &out, err) : NDT_OK;
}

static enum ndt_status follow(struct replay *replay, const struct ndtd_settings *settings, struct ndt_error *err)
{
    const struct ndtd_settings_snapshot *snapshot = NULL;
    struct ndtd_settings mine = *settings;
    mine.preprocess.seed = replay->seed;
    replay->first_ns = INT64_MIN;
    enum ndt_status status = ndtd_settings_snapshot_create(&snapshot, &mine, err);
    if (status == NDT_OK)
        status = ndtd_pipeline_create(&replay->pipeline, snapshot, replay->map, 0, err);
    ndtd_settings_snapshot_release(snapshot);
    if (status == NDT_OK)
        status = each(replay, take_frame, err);
    ndtd_pipeline_destroy(replay->pipeline);
    replay->pipeline = NULL;
    return status;
}

enum ndt_status bench_consistency(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    const struct bench_options *options = source->options;
    struct replay replay = {.results.seeds = options->seeds};
    enum ndt_status status = ndt_bag_open(&replay.bag, options->bag, err);
    if (status == NDT_OK)
        status = ndt_map_load(&replay.map, options->map, &options->settings.map, err);
    if (status == NDT_OK)
        status = each(&replay, take_truth, err);
    if (status == NDT_OK && replay.truth.truth.count == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: no truth in it", options->bag);
    for (replay.seed = 1; status == NDT_OK && replay.seed <= options->seeds; replay.seed++)
        status = follow(&replay, &options->settings, err);
    replay.results.per_seed = options->seeds > 0 ? replay.results.count / options->seeds : 0;
    if (status == NDT_OK && replay.results.count == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: no scan in it", options->bag);
    if (status == NDT_OK)
        consistency_report(&replay.results, options->json != NULL, report);
    free(replay.results.scans);
    ndtd_trajectory_error_free(&replay.truth);
    ndt_map_release(replay.map);
    if (replay.bag)
        ndt_bag_close(replay.bag);
    return status;
}
