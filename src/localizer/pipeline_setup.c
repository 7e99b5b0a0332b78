/* The life cycle of a pipeline: its map, backend and settings. */
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "ndtd/autotune.h"
#include "ndtd/log.h"
#include "pipeline_state.h"

/* Time of preprocessing per point before the first measurement: as on a busy core. */
static const double FIRST_POINT_US = 0.08;

/* Sets the configured initial pose, which is valid for the first scan, whatever its stamp. */
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

/* Creates an aligner with room for the batches of the pipeline. */
static enum ndt_status create_aligner(const struct ndtd_pipeline *pipeline, struct ndt_backend *backend,
                                      struct ndt_aligner **out, struct ndt_error *err)
{
    const enum ndt_status status = ndt_aligner_create(out, backend, err);
    return status == NDT_OK
               ? ndt_aligner_reserve_batch(*out, NDTD_GUESSES_MAX, pipeline->settings->preprocess.sample_count, err)
               : status;
}

static enum ndt_status open_matcher(struct ndtd_pipeline *pipeline, struct ndt_error *err)
{
    const struct ndtd_settings *settings = pipeline->settings;
    struct ndtd_matcher *matcher = &pipeline->matcher;
    ndt_cloud_init(&matcher->raw);
    matcher->track = &pipeline->track;
    matcher->gnss = &pipeline->gnss;
    enum ndt_status status =
        ndt_backend_open_failover(&matcher->backend, settings->backend, &settings->compute, err);
    if (status == NDT_OK)
        status = create_aligner(pipeline, matcher->backend, &matcher->aligner, err);
    if (status == NDT_OK)
        status = ndt_preprocessor_create(&matcher->preprocessor, err);
    return status;
}

/* The backend whose device may score searches: the named one; with auto the first that has a device, if
 * measurements decide. */
static const char *backend_of_searches(const struct ndtd_settings *settings, int has_choice)
{
    const struct ndt_backend_ops *ops;
    for (size_t i = 0; has_choice && (ops = ndt_backend_at(i)); i++)
        if (ops->pipelines && ndtd_settings_allow_backend(settings, ops->name))
            return ops->name;
    return settings->backend;
}

static enum ndt_status open_relocalizer(struct ndtd_pipeline *pipeline, int is_live, struct ndt_error *err)
{
    const struct ndtd_settings *settings = pipeline->settings;
    const int has_choice = is_live && settings->autotune && strcmp(settings->backend, "auto") == 0;
    const struct ndtd_searcher_config config = {.is_background = is_live,
                                                .is_eager = settings->recovery.enable,
                                                .compute = &settings->compute,
                                                .backend = backend_of_searches(settings, has_choice),
                                                .choice_limit_us =
                                                    has_choice ? settings->autotune_limit_s * 1e6 : 0,
                                                .choice_pause_s = NDTD_SCAN_PERIOD_S};
    enum ndt_status status = NDT_OK;
    if (settings->recovery.enable || is_live) /* live: requests search, too */
        status = ndtd_searcher_create(&pipeline->searcher, &config, err);
    const struct ndtd_relocalizer_parts parts = {.matcher = &pipeline->matcher,
                                                 .track = &pipeline->track,
                                                 .gnss = &pipeline->gnss,
                                                 .searcher = pipeline->searcher,
                                                 .compute = &settings->compute,
                                                 .is_watched = is_live};
    if (status == NDT_OK)
        status = ndtd_relocalizer_create(&pipeline->relocalizer, &parts, err);
    if (status == NDT_OK)
        ndtd_relocalizer_set_settings(pipeline->relocalizer, settings);
    return status;
}

static enum ndt_status open_parts(struct ndtd_pipeline *pipeline, struct ndt_map *map, int is_live,
                                  struct ndt_error *err)
{
    enum ndt_status status = open_matcher(pipeline, err);
    if (status == NDT_OK)
        status = open_relocalizer(pipeline, is_live, err);
    if (status == NDT_OK)
        status = ndtd_scan_merge_create(&pipeline->merge, err);
    if (status == NDT_OK)
        status = ndtd_lookahead_create(&pipeline->lookahead, err);
    if (status == NDT_OK)
        status = ndtd_points_view_create(&pipeline->view, err);
    if (status == NDT_OK && ndtd_settings_has_no_map(pipeline->settings))
        status = ndtd_odometry_mode_create(&pipeline->odometry, pipeline->settings,
                                           pipeline->settings->compute.threads, err);
    if (status == NDT_OK && pipeline->settings->recovery.enable && !pipeline->odometry)
        status = ndtd_scan_odometry_create(&pipeline->scan_odometry, pipeline->settings, err);
    if (status == NDT_OK && pipeline->settings->extend_map)
        status = ndtd_extension_create(&pipeline->extension, pipeline->settings, err);
    if (status == NDT_OK && pipeline->settings->integrity_risk > 0)
        status = ndtd_integrity_create(&pipeline->integrity, pipeline->settings->integrity_risk,
                                       pipeline->settings->compute.isa, err);
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
    pipeline->matcher.point_us = FIRST_POINT_US;
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
    ndtd_relocalizer_destroy(pipeline->relocalizer);
    ndtd_searcher_destroy(pipeline->searcher);
    close_compute(pipeline->matcher.backend, pipeline->matcher.aligner);
    ndt_preprocessor_destroy(pipeline->matcher.preprocessor);
    ndtd_scan_merge_destroy(pipeline->merge);
    ndtd_lookahead_destroy(pipeline->lookahead);
    ndtd_points_view_destroy(pipeline->view);
    ndtd_odometry_mode_destroy(pipeline->odometry);
    ndtd_scan_odometry_destroy(pipeline->scan_odometry);
    ndtd_extension_destroy(pipeline->extension);
    ndtd_integrity_destroy(pipeline->integrity);
    ndt_map_release(pipeline->matcher.map);
    ndt_cloud_free(&pipeline->matcher.raw);
    ndtd_settings_snapshot_release(pipeline->snapshot);
    free(pipeline);
}

/* Levels of the settings that the map fills; all where they are not to be chosen. */
static size_t levels_for(const struct ndtd_settings *settings, const struct ndt_map *map)
{
    const size_t count = settings->align.level_count;
    const size_t filled = map && settings->align.choose_levels ? ndt_map_filled_levels(map) : count;
    return filled < count ? filled : count;
}

/* A map that is too sparse for a level is matched without it: scores there say little, for few points meet it. */
static void fit_levels(struct ndtd_pipeline *pipeline)
{
    const struct ndt_map *map = pipeline->matcher.map;
    const size_t count = levels_for(&pipeline->snapshot->settings, map);
    if (pipeline->fitted.align.level_count == count)
        return;
    pipeline->fitted.align.level_count = count;
    ndtd_relocalizer_set_settings(pipeline->relocalizer, pipeline->settings);
    if (count < pipeline->snapshot->settings.align.level_count)
        ndtd_log(NDTD_LOG_WARNING,
                 "the map is too sparse for its level of %g m, %u voxels against %u of %g m: levels end at %g m",
                 map->levels[count].leaf_m, map->levels[count].voxel_count - 1,
                 map->levels[count - 1].voxel_count - 1, map->levels[count - 1].leaf_m,
                 map->levels[count - 1].leaf_m);
}

static void keep_map(struct ndtd_pipeline *pipeline, struct ndt_map *map)
{
    struct ndt_map *before = pipeline->matcher.map;
    ndtd_integrity_set_map(pipeline->integrity, map);
    pipeline->matcher.map = ndt_map_retain(map);
    if (!(before && map && before->id == map->id))
        ndtd_pipeline_break_intervals(pipeline); /* the frame may be another one */
    ndtd_relocalizer_set_map(pipeline->relocalizer, before, map);
    fit_levels(pipeline);
    ndt_map_release(before);
    ndtd_lookahead_forget(pipeline->lookahead);
}

enum ndt_status ndtd_pipeline_set_map(struct ndtd_pipeline *pipeline, struct ndt_map *map, struct ndt_error *err)
{
    enum ndt_status status = ndt_aligner_set_map(pipeline->matcher.aligner, map, err);
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
    if (status == NDT_OK && pipeline->matcher.map)
        status = ndt_aligner_set_map(aligner, pipeline->matcher.map, err);
    if (status != NDT_OK) {
        close_compute(backend, aligner);
        return status;
    }
    close_compute(pipeline->matcher.backend, pipeline->matcher.aligner);
    pipeline->matcher.backend = backend;
    pipeline->matcher.aligner = aligner;
    ndtd_lookahead_forget(pipeline->lookahead);
    return NDT_OK;
}

static enum ndt_status use_candidate(struct ndtd_pipeline *pipeline, const struct ndtd_backend_candidate *candidate,
                                     struct ndt_error *err)
{
    struct ndt_backend_config config = pipeline->settings->compute;
    struct ndt_backend *opened;
    if (!ndtd_backend_candidate_config(candidate, &config))
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "there is no backend %s %s", candidate->backend,
                        candidate->pipeline);
    const enum ndt_status status = ndt_backend_open_failover(&opened, candidate->backend, &config, err);
    return status == NDT_OK ? replace_backend(pipeline, opened, err) : status;
}

enum ndt_status ndtd_pipeline_set_autotune_result(struct ndtd_pipeline *pipeline,
                                                  const struct ndtd_autotune_result *tuned, struct ndt_error *err)
{
    const struct ndtd_autotune_row *chosen = tuned->choice.row >= 0 ? &tuned->rows[tuned->choice.row] : NULL;
    const struct ndtd_settings *settings = pipeline->settings;
    const int is_open_choice = strcmp(settings->backend, "auto") == 0 ||
                               (chosen && *chosen->candidate.pipeline && !settings->compute.pipeline);
    enum ndt_status status = NDT_OK;
    if (chosen && is_open_choice)
        status = use_candidate(pipeline, &chosen->candidate, err);
    if (status != NDT_OK)
        return status;
    ndt_aligner_set_costs(pipeline->matcher.aligner, &tuned->costs);
    pipeline->matcher.evaluation_us = chosen ? chosen->evaluation_us : 0;
    pipeline->matcher.evaluation_points = tuned->points;
    pipeline->together = tuned->together;
    return NDT_OK;
}

enum ndt_status ndtd_pipeline_set_map_async(struct ndtd_pipeline *pipeline, struct ndt_map *map, int *taken,
                                            struct ndt_error *err)
{
    enum ndt_status status = ndt_aligner_set_map_async(pipeline->matcher.aligner, map, taken, err);
    if (status == NDT_OK && *taken)
        keep_map(pipeline, map);
    return status;
}

void ndtd_pipeline_apply_settings(struct ndtd_pipeline *pipeline, const struct ndtd_settings_snapshot *snapshot)
{
    ndtd_settings_snapshot_replace(&pipeline->snapshot, snapshot);
    pipeline->fitted = snapshot->settings;
    pipeline->fitted.align.level_count = levels_for(&snapshot->settings, pipeline->matcher.map);
    pipeline->settings = pipeline->matcher.settings = &pipeline->fitted;
    pipeline->track.params = pipeline->settings->track;
    if (pipeline->relocalizer)
        ndtd_relocalizer_set_settings(pipeline->relocalizer, pipeline->settings);
    ndtd_lookahead_forget(pipeline->lookahead);
    if (pipeline->merge)
        ndtd_scan_merge_reset(pipeline->merge);
}

void ndtd_pipeline_set_deadline(struct ndtd_pipeline *pipeline, double deadline_us)
{
    pipeline->matcher.deadline_us = deadline_us;
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
    memcpy(position_m, pipeline->gnss.message.position_m, 3 * sizeof(*position_m));
    return pipeline->gnss.is_known;
}

const struct ndt_pose *ndtd_pipeline_extrinsics(struct ndtd_pipeline *pipeline, const char *frame_id)
{
    return ndtd_transforms_sensor(&pipeline->transforms, &pipeline->settings->frames, frame_id);
}

unsigned ndtd_pipeline_search_progress(const struct ndtd_pipeline *pipeline)
{
    unsigned percent = 0;
    if (pipeline->searcher && ndtd_relocalizer_is_searching(pipeline->relocalizer))
        (void)ndtd_searcher_progress(pipeline->searcher, &percent);
    return percent;
}

const struct ndtd_pipeline_events *ndtd_pipeline_events(const struct ndtd_pipeline *pipeline)
{
    return &pipeline->events;
}

enum ndt_status ndtd_pipeline_pose_at(const struct ndtd_pipeline *pipeline, int64_t stamp_ns,
                                      struct ndt_moment_message *out, struct ndt_error *err)
{
    const struct ndtd_moments moments = {&pipeline->window, &pipeline->track, pipeline->state,
                                         pipeline->settings->max_ahead_s};
    return ndtd_moment_at(&moments, stamp_ns, out, err);
}

const struct ndt_track *ndtd_pipeline_track(const struct ndtd_pipeline *pipeline)
{
    return &pipeline->track;
}

const struct ndt_track_step *ndtd_pipeline_step(const struct ndtd_pipeline *pipeline)
{
    return ndt_track_window_last_step(&pipeline->window);
}

const struct ndt_backend *ndtd_pipeline_backend(const struct ndtd_pipeline *pipeline)
{
    return pipeline->matcher.backend;
}

enum ndt_status ndtd_pipeline_dump(struct ndtd_pipeline *pipeline, size_t iteration, FILE *file,
                                   struct ndt_error *err)
{
    return ndt_aligner_dump(pipeline->matcher.aligner, iteration, file, err);
}

/* ---- the search for the pose on request ---- */

void ndtd_pipeline_localize(struct ndtd_pipeline *pipeline, const struct ndt_request_message *request)
{
    pipeline->has_answered = 0; /* a search starts with the next scan */
    ndtd_relocalizer_request(pipeline->relocalizer, request);
}

void ndtd_pipeline_cancel_localize(struct ndtd_pipeline *pipeline)
{
    ndtd_relocalizer_cancel(pipeline->relocalizer);
}

int ndtd_pipeline_localize_report(const struct ndtd_pipeline *pipeline, struct ndt_localize_report *out)
{
    return ndtd_relocalizer_answer(pipeline->relocalizer, out);
}

void ndtd_pipeline_idle(struct ndtd_pipeline *pipeline)
{
    ndtd_relocalizer_idle(pipeline->relocalizer);
}
