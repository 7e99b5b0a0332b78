/* The life cycle of a pipeline: its map, backend and settings. */
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "drain.h"
#include "ndtd/autotune.h"
#include "pipeline_state.h"
#include "scan_points.h"

/* Time to preprocess one point before any was measured: as on a busy core. */
static const double FIRST_POINT_US = 0.08;

/* A configured initial pose is valid for the first scan, whatever its stamp. */
static void set_configured_pose(struct ndtd_pipeline *pipeline)
{
    struct ndt_pose_message *start = &pipeline->start;
    if (!ndtd_settings_starts_at_pose(pipeline->settings))
        return;
    memcpy(start->pose.t_m, pipeline->settings->initial_pose, sizeof(start->pose.t_m));
    memcpy(start->pose.q_xyzw, pipeline->settings->initial_pose + 3, sizeof(start->pose.q_xyzw));
    (void)ndt_pose_normalize(&start->pose);
    pipeline->has_start = 1;
}

/* With room for its batches. */
static enum ndt_status create_aligner(const struct ndtd_pipeline *pipeline, struct ndt_backend *backend,
                                      struct ndt_aligner **out, struct ndt_error *err)
{
    const enum ndt_status status = ndt_aligner_create(out, backend, err);
    return status == NDT_OK ? ndt_aligner_reserve_batch(*out, NDTD_HYPOTHESES_MAX,
                                                        pipeline->settings->preprocess.sample_count, err)
                            : status;
}

static enum ndt_status open_parts(struct ndtd_pipeline *pipeline, struct ndt_map *map, int is_live,
                                  struct ndt_error *err)
{
    const struct ndtd_settings *settings = pipeline->settings;
    const struct ndtd_searcher_config searcher = {.is_background = is_live,
                                                  .is_eager = settings->recovery.enable,
                                                  .compute = &settings->compute,
                                                  .backend = settings->backend};
    enum ndt_status status =
        ndt_backend_open_failover(&pipeline->backend, settings->backend, &settings->compute, err);
    if (status == NDT_OK)
        status = create_aligner(pipeline, pipeline->backend, &pipeline->aligner, err);
    if (status == NDT_OK)
        status = ndt_preprocessor_create(&pipeline->preprocessor, err);
    if (status == NDT_OK)
        status = ndtd_scan_merge_create(&pipeline->merge, err);
    if (status == NDT_OK && (settings->recovery.enable || is_live)) /* live also for requests */
        status = ndtd_searcher_create(&pipeline->recovery.searcher, &searcher, err);
    if (status == NDT_OK)
        status = ndtd_drain_create(&pipeline->drain, err);
    if (status == NDT_OK)
        status = ndtd_scan_points_create(&pipeline->view, err);
    if (status == NDT_OK && map)
        status = ndtd_pipeline_set_map(pipeline, map, err);
    return status;
}

enum ndt_status ndtd_pipeline_create(struct ndtd_pipeline **out, const struct ndtd_settings_snapshot *snapshot,
                                     struct ndt_map *map, int is_live, struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_pipeline *pipeline = calloc(1, sizeof(*pipeline));
    if (!pipeline)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the pipeline");
    ndtd_pipeline_apply_settings(pipeline, snapshot);
    pipeline->point_us = FIRST_POINT_US;
    ndt_cloud_init(&pipeline->scan);
    ndt_track_init(&pipeline->track, &pipeline->settings->track);
    set_configured_pose(pipeline);
    enum ndt_status status = open_parts(pipeline, map, is_live, err);
    if (status == NDT_OK)
        *out = pipeline;
    else
        ndtd_pipeline_destroy(pipeline);
    return status;
}

static void close_compute(struct ndt_backend *backend, struct ndt_aligner *aligner)
{
    ndt_aligner_destroy(aligner);
    if (backend)
        backend->ops->close(backend);
}

void ndtd_pipeline_destroy(struct ndtd_pipeline *pipeline)
{
    if (!pipeline)
        return;
    ndtd_searcher_destroy(pipeline->recovery.searcher);
    free(pipeline->localize.scan);
    close_compute(pipeline->backend, pipeline->aligner);
    ndt_preprocessor_destroy(pipeline->preprocessor);
    ndtd_scan_merge_destroy(pipeline->merge);
    ndtd_drain_destroy(pipeline->drain);
    ndtd_scan_points_destroy(pipeline->view);
    ndt_map_release(pipeline->map);
    ndt_cloud_free(&pipeline->scan);
    ndtd_settings_snapshot_release(pipeline->snapshot);
    free(pipeline);
}

/* Places that were found in another map have to be found again. */
static void forget_places(struct ndtd_pipeline *pipeline, const struct ndt_map *next)
{
    const int is_same = pipeline->map && next && pipeline->map->id == next->id;
    if (is_same)
        return;
    pipeline->recovery.others.count = pipeline->recovery.searches = 0;
    pipeline->localize.places.count = 0;
    pipeline->localize.scans = 0;
    ndtd_candidate_forget(&pipeline->recovery.lead);
}

static void keep_map(struct ndtd_pipeline *pipeline, struct ndt_map *map)
{
    forget_places(pipeline, map);
    ndt_map_retain(map);
    ndt_map_release(pipeline->map);
    pipeline->map = map;
    if (pipeline->recovery.searcher)
        ndtd_searcher_set_map(pipeline->recovery.searcher, map);
    ndtd_drain_forget(pipeline->drain);
}

enum ndt_status ndtd_pipeline_set_map(struct ndtd_pipeline *pipeline, struct ndt_map *map, struct ndt_error *err)
{
    enum ndt_status status = ndt_aligner_set_map(pipeline->aligner, map, err);
    if (status == NDT_OK)
        keep_map(pipeline, map);
    return status;
}

/* Replaces backend and aligner. Takes ownership of `backend`, also on failure. */
static enum ndt_status replace_backend(struct ndtd_pipeline *pipeline, struct ndt_backend *backend,
                                       struct ndt_error *err)
{
    struct ndt_aligner *aligner = NULL;
    enum ndt_status status = create_aligner(pipeline, backend, &aligner, err);
    if (status == NDT_OK && pipeline->map)
        status = ndt_aligner_set_map(aligner, pipeline->map, err);
    if (status != NDT_OK) {
        close_compute(backend, aligner);
        return status;
    }
    close_compute(pipeline->backend, pipeline->aligner);
    pipeline->backend = backend;
    pipeline->aligner = aligner;
    ndtd_drain_forget(pipeline->drain);
    return NDT_OK;
}

static enum ndt_status open_candidate(const struct ndtd_pipeline *pipeline,
                                      const struct ndtd_backend_candidate *candidate, struct ndt_backend **out,
                                      struct ndt_error *err)
{
    struct ndt_backend_config config = pipeline->settings->compute;
    if (!ndtd_backend_candidate_config(candidate, &config))
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "there is no backend %s %s", candidate->backend,
                        candidate->pipeline);
    return ndt_backend_open_failover(out, candidate->backend, &config, err);
}

enum ndt_status ndtd_pipeline_set_autotune_result(struct ndtd_pipeline *pipeline,
                                                  const struct ndtd_autotune_result *tuned,
                                                  struct ndt_backend *opened, struct ndt_error *err)
{
    const int is_automatic = strcmp(pipeline->settings->backend, "auto") == 0 && tuned->choice.row >= 0;
    enum ndt_status status = NDT_OK;
    if (opened && !is_automatic)
        opened->ops->close(opened);
    else if (is_automatic && !opened)
        status = open_candidate(pipeline, &tuned->rows[tuned->choice.row].candidate, &opened, err);
    if (status == NDT_OK && is_automatic)
        status = replace_backend(pipeline, opened, err);
    if (status != NDT_OK)
        return status;
    ndt_aligner_set_costs(pipeline->aligner, &tuned->costs);
    pipeline->evaluation_us = ndtd_autotune_evaluation_us(tuned, tuned->points);
    pipeline->evaluation_points = tuned->points;
    pipeline->together = tuned->together;
    return NDT_OK;
}

enum ndt_status ndtd_pipeline_set_map_async(struct ndtd_pipeline *pipeline, struct ndt_map *map, int *taken,
                                            struct ndt_error *err)
{
    enum ndt_status status = ndt_aligner_set_map_async(pipeline->aligner, map, taken, err);
    if (status == NDT_OK && *taken)
        keep_map(pipeline, map);
    return status;
}

void ndtd_pipeline_apply_settings(struct ndtd_pipeline *pipeline, const struct ndtd_settings_snapshot *snapshot)
{
    ndtd_settings_snapshot_replace(&pipeline->snapshot, snapshot);
    pipeline->settings = &snapshot->settings;
    pipeline->track.params = pipeline->settings->track;
    ndtd_drain_forget(pipeline->drain);
    if (pipeline->merge)
        ndtd_scan_merge_reset(pipeline->merge);
}

void ndtd_pipeline_set_deadline(struct ndtd_pipeline *pipeline, double deadline_us)
{
    pipeline->deadline_us = deadline_us;
}

void ndtd_pipeline_set_active(struct ndtd_pipeline *pipeline, int active)
{
    pipeline->is_stopped = !active;
}

enum ndt_state ndtd_pipeline_state(const struct ndtd_pipeline *pipeline)
{
    return pipeline->state;
}

int ndtd_pipeline_gnss(const struct ndtd_pipeline *pipeline, double position_m[3])
{
    memcpy(position_m, pipeline->gnss.position_m, sizeof(pipeline->gnss.position_m));
    return pipeline->has_gnss;
}

const struct ndt_pose *ndtd_pipeline_extrinsics(struct ndtd_pipeline *pipeline, const char *frame_id)
{
    return ndtd_transforms_sensor(&pipeline->transforms, &pipeline->settings->frames, frame_id);
}

unsigned ndtd_pipeline_search_progress(const struct ndtd_pipeline *pipeline)
{
    unsigned percent = 0;
    if (pipeline->recovery.searcher)
        (void)ndtd_searcher_progress(pipeline->recovery.searcher, &percent);
    return percent;
}

const struct ndtd_pipeline_events *ndtd_pipeline_events(const struct ndtd_pipeline *pipeline)
{
    return &pipeline->events;
}

const struct ndt_track *ndtd_pipeline_track(const struct ndtd_pipeline *pipeline)
{
    return &pipeline->track;
}

const struct ndt_backend *ndtd_pipeline_backend(const struct ndtd_pipeline *pipeline)
{
    return pipeline->backend;
}

enum ndt_status ndtd_pipeline_dump(struct ndtd_pipeline *pipeline, size_t iteration, FILE *file,
                                   struct ndt_error *err)
{
    return ndt_aligner_dump(pipeline->aligner, iteration, file, err);
}
