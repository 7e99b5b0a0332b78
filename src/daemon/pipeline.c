#include "ndtd/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends.h"
#include "ndtd/autotune.h"
#include "ndtd/settings_snapshot.h"
#include "ndt/clock.h"

/* A position is used for scans that are not farther from it in time than this. */
static const double GNSS_REACH_S = 1.0;

struct ndtd_pipeline {
    const struct ndtd_settings_snapshot *snapshot;
    const struct ndtd_settings *settings; /* the snapshot's */
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    struct ndt_map *map;
    struct ndt_preprocessor *preprocessor;
    struct ndtd_tracker tracker;
    struct ndt_cloud scan;
    struct ndt_preprocess_plan plan; /* of the scan, when the backend preprocesses it */
    int stopped;
    double deadline_us;   /* 0 = none */
    double evaluation_us; /* what one took in the last alignment, its part of the rest included */
    int has_start;        /* `start` waits for the stamp of the next scan */
    struct ndt_pose_message start;
    int has_gnss;
    struct ndt_gnss_message gnss;        /* the newest */
    const struct ndt_cloud *last_points; /* the preprocessor's; NULL: none, or not converged */
    struct ndt_pose T_map_last;
};

/* A configured initial pose holds from the first scan on, whatever its stamp. */
static void set_configured_pose(struct ndtd_pipeline *pipeline)
{
    struct ndt_pose pose;
    if (!pipeline->settings->has_initial_pose)
        return;
    memcpy(pose.t_m, pipeline->settings->initial_pose, sizeof(pose.t_m));
    memcpy(pose.q_xyzw, pipeline->settings->initial_pose + 3, sizeof(pose.q_xyzw));
    (void)ndt_pose_normalize(&pose);
    ndtd_tracker_reset(&pipeline->tracker, 0, &pose, NULL);
}

static enum ndt_status open_parts(struct ndtd_pipeline *pipeline, struct ndt_map *map, struct ndt_error *err)
{
    const struct ndtd_settings *settings = pipeline->settings;
    enum ndt_status status =
        ndt_backend_open_failover(&pipeline->backend, settings->backend, &settings->compute, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&pipeline->aligner, pipeline->backend, err);
    if (status == NDT_OK)
        status = ndt_preprocessor_create(&pipeline->preprocessor, err);
    if (status == NDT_OK && map)
        status = ndtd_pipeline_set_map(pipeline, map, err);
    return status;
}

enum ndt_status ndtd_pipeline_create(struct ndtd_pipeline **out, const struct ndtd_settings_snapshot *snapshot,
                                     struct ndt_map *map, struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_pipeline *pipeline = calloc(1, sizeof(*pipeline));
    if (!pipeline)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the pipeline");
    ndtd_pipeline_apply(pipeline, snapshot);
    ndt_cloud_init(&pipeline->scan);
    ndtd_tracker_init(&pipeline->tracker, pipeline->settings->max_prediction_s);
    set_configured_pose(pipeline);
    enum ndt_status status = open_parts(pipeline, map, err);
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
    close_compute(pipeline->backend, pipeline->aligner);
    ndt_preprocessor_destroy(pipeline->preprocessor);
    ndt_map_release(pipeline->map);
    ndt_cloud_free(&pipeline->scan);
    ndtd_settings_snapshot_release(pipeline->snapshot);
    free(pipeline);
}

static void keep_map(struct ndtd_pipeline *pipeline, struct ndt_map *map)
{
    ndt_map_retain(map);
    ndt_map_release(pipeline->map);
    pipeline->map = map;
}

enum ndt_status ndtd_pipeline_set_map(struct ndtd_pipeline *pipeline, struct ndt_map *map, struct ndt_error *err)
{
    enum ndt_status status = ndt_aligner_set_map(pipeline->aligner, map, err);
    if (status == NDT_OK)
        keep_map(pipeline, map);
    return status;
}

/* Takes `backend` over, whatever comes of it. */
static enum ndt_status exchange(struct ndtd_pipeline *pipeline, struct ndt_backend *backend, struct ndt_error *err)
{
    struct ndt_aligner *aligner = NULL;
    enum ndt_status status = ndt_aligner_create(&aligner, backend, err);
    if (status == NDT_OK && pipeline->map)
        status = ndt_aligner_set_map(aligner, pipeline->map, err);
    if (status != NDT_OK) {
        close_compute(backend, aligner);
        return status;
    }
    close_compute(pipeline->backend, pipeline->aligner);
    pipeline->backend = backend;
    pipeline->aligner = aligner;
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
    const int is_open_to_choice = strcmp(pipeline->settings->backend, "auto") == 0 && tuned->choice.row >= 0;
    enum ndt_status status = NDT_OK;
    if (opened && !is_open_to_choice)
        opened->ops->close(opened);
    else if (is_open_to_choice && !opened)
        status = open_candidate(pipeline, &tuned->rows[tuned->choice.row].candidate, &opened, err);
    if (status == NDT_OK && is_open_to_choice)
        status = exchange(pipeline, opened, err);
    if (status != NDT_OK)
        return status;
    ndt_aligner_set_costs(pipeline->aligner, &tuned->costs);
    pipeline->evaluation_us = ndtd_autotune_evaluation_us(tuned, tuned->points);
    return NDT_OK;
}

int ndtd_pipeline_last_scan(const struct ndtd_pipeline *pipeline, const struct ndt_cloud **points,
                            struct ndt_pose *T_map_sensor)
{
    *points = pipeline->last_points;
    *T_map_sensor = pipeline->T_map_last;
    return pipeline->last_points != NULL;
}

enum ndt_status ndtd_pipeline_set_map_async(struct ndtd_pipeline *pipeline, struct ndt_map *map, int *taken,
                                            struct ndt_error *err)
{
    enum ndt_status status = ndt_aligner_set_map_async(pipeline->aligner, map, taken, err);
    if (status == NDT_OK && *taken)
        keep_map(pipeline, map);
    return status;
}

void ndtd_pipeline_apply(struct ndtd_pipeline *pipeline, const struct ndtd_settings_snapshot *snapshot)
{
    ndtd_settings_snapshot_replace(&pipeline->snapshot, snapshot);
    pipeline->settings = &snapshot->settings;
    pipeline->tracker.max_prediction_s = pipeline->settings->max_prediction_s;
}

void ndtd_pipeline_set_deadline(struct ndtd_pipeline *pipeline, double deadline_us)
{
    pipeline->deadline_us = deadline_us;
}

void ndtd_pipeline_set_active(struct ndtd_pipeline *pipeline, int active)
{
    pipeline->stopped = !active;
}

void ndtd_pipeline_start_at(struct ndtd_pipeline *pipeline, const struct ndt_pose_message *start)
{
    pipeline->has_start = start->stamp_ns == 0;
    pipeline->start = *start;
    if (!pipeline->has_start)
        ndtd_tracker_reset(&pipeline->tracker, start->stamp_ns, &start->pose,
                           start->has_twist ? &start->twist : NULL);
}

struct ndtd_tracker *ndtd_pipeline_tracker(struct ndtd_pipeline *pipeline)
{
    return &pipeline->tracker;
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

static enum ndt_status take_pose(struct ndtd_pipeline *pipeline, enum ndt_message_type type, const uint8_t *data,
                                 size_t size, struct ndt_error *err)
{
    struct ndt_pose_message message;
    enum ndt_status status = ndt_pose_message_decode(data, size, type, &message, err);
    if (status != NDT_OK)
        return status;
    if (type == NDT_MESSAGE_INITIAL_POSE) {
        ndtd_tracker_reset(&pipeline->tracker, message.stamp_ns, &message.pose,
                           message.has_twist ? &message.twist : NULL);
        pipeline->has_start = 0;
    } else {
        const struct ndtd_odometry odometry = {.stamp_ns = message.stamp_ns,
                                               .has_pose = message.has_pose,
                                               .has_twist = message.has_twist,
                                               .T_odom_sensor = message.pose,
                                               .twist = message.twist};
        ndtd_tracker_odometry(&pipeline->tracker, &odometry);
    }
    return NDT_OK;
}

static enum ndt_status take_gnss(struct ndtd_pipeline *pipeline, const uint8_t *data, size_t size,
                                 struct ndt_error *err)
{
    struct ndt_gnss_message message;
    enum ndt_status status = ndt_gnss_decode(data, size, &message, err);
    if (status != NDT_OK)
        return status;
    pipeline->gnss = message;
    pipeline->has_gnss = 1;
    return NDT_OK;
}

static void refuse(struct ndtd_scan_record *record, enum ndt_outcome outcome, const char *reason)
{
    record->result.outcome = outcome;
    snprintf(record->result.reason, sizeof(record->result.reason), "%.*s", (int)sizeof(record->result.reason) - 1,
             reason);
}

/* Poses are found at mid-sweep and told at the stamp. */
static struct ndt_pose moved(const struct ndt_pose *pose, const struct ndt_twist *twist, double dt_s)
{
    const struct ndt_pose step = ndt_pose_exp(twist, dt_s);
    return dt_s == 0 ? *pose : ndt_pose_compose(pose, &step);
}

/* What the settings say, and what holds for this scan only. */
static struct ndt_align_params params_for(const struct ndtd_pipeline *pipeline, int64_t stamp_ns)
{
    struct ndt_align_params params = pipeline->settings->align;
    const double age_s = ((double)stamp_ns - (double)pipeline->gnss.stamp_ns) * 1e-9;
    params.has_gnss = pipeline->settings->use_gnss && pipeline->has_gnss && fabs(age_s) <= GNSS_REACH_S;
    memcpy(params.gnss_position_m, pipeline->gnss.position_m, sizeof(params.gnss_position_m));
    return params;
}

/* Hands the time that is left to the aligner; 0 when there is none, or less than one evaluation needs. That
 * estimate is halved each time it stands in the way, so that one slow moment cannot end all matching. */
static int has_time(struct ndtd_pipeline *pipeline, struct ndt_align_params *params)
{
    if (pipeline->deadline_us <= 0)
        return 1;
    const double left_us = pipeline->deadline_us - ndt_clock_us();
    if (params->deadline_s <= 0 || left_us * 1e-6 < params->deadline_s)
        params->deadline_s = left_us * 1e-6;
    if (left_us > pipeline->evaluation_us)
        return 1;
    pipeline->evaluation_us /= 2;
    return 0;
}

/* debug.align_delay_ms, but never beyond the deadline: as a slow machine that keeps its budget would look. */
static void delay(const struct ndtd_pipeline *pipeline)
{
    double delay_us = pipeline->settings->align_delay_s * 1e6;
    if (delay_us <= 0)
        return;
    if (pipeline->deadline_us > 0)
        delay_us = fmin(delay_us, pipeline->deadline_us - ndt_clock_us());
    const long long ns = (long long)(fmax(delay_us, 0) * 1e3);
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)}, NULL);
}

/* Preprocesses on the host; twist_again: the motion of a second pass, or NULL. */
static enum ndt_status preprocess_here(struct ndtd_pipeline *pipeline, struct ndtd_scan_record *record,
                                       const struct ndt_twist *twist, const struct ndt_twist *twist_again,
                                       const struct ndt_cloud **points, double *reference_s, struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    enum ndt_status status = ndt_preprocess(pipeline->preprocessor, &pipeline->settings->preprocess,
                                            &pipeline->scan, record->seq, twist, points, reference_s, err);
    if (status == NDT_OK && twist_again)
        status = ndt_preprocess_again(pipeline->preprocessor, twist_again, points, err);
    record->preprocess_us += ndt_clock_us() - start_us;
    if (status == NDT_OK)
        record->points_used = (*points)->count;
    return status;
}

/* Aligns `points`, or with NULL what the backend makes of the scan (twist_again NULL) or of the first pass's
 * points. Should the backend no longer be able to, the host does it, and *points says so. */
static enum ndt_status align_points(struct ndtd_pipeline *pipeline, struct ndtd_scan_record *record,
                                    const struct ndt_align_params *params, const struct ndt_cloud **points,
                                    const struct ndt_twist *twist_again, const struct ndt_pose *guess,
                                    struct ndt_error *err)
{
    const struct ndt_twist first = pipeline->plan.twist;
    double reference_s;
    enum ndt_status status = NDT_OK;
    if (!*points) {
        status = ndt_align_raw(pipeline->aligner, params, &pipeline->plan, twist_again ? NULL : &pipeline->scan,
                               guess, &record->result, err);
        if (status != NDT_ERR_UNSUPPORTED)
            return status;
        status = preprocess_here(pipeline, record, &first, twist_again, points, &reference_s, err);
    }
    return status == NDT_OK ? ndt_align(pipeline->aligner, params, *points, guess, &record->result, err) : status;
}

/* The second pass: undo the sweep with the motion that the first pass found. It starts where the first one ended,
 * so the finest level is enough. */
static enum ndt_status align_again(struct ndtd_pipeline *pipeline, struct ndtd_scan_record *record,
                                   const struct ndt_cloud *points, double reference_s, struct ndt_twist *twist,
                                   struct ndt_error *err)
{
    struct ndtd_tracker after = pipeline->tracker;
    struct ndt_align_params params = params_for(pipeline, record->stamp_ns);
    const struct ndt_align_result first = record->result;
    ndtd_tracker_update(&after, record->stamp_ns, &first);
    if (!after.has_twist || first.outcome != NDT_CONVERGED)
        return NDT_OK;
    if (!has_time(pipeline, &params))
        return refuse(record, NDT_DEADLINE, "no time left for the second pass"), NDT_OK;
    *twist = after.twist;
    const double start_us = ndt_clock_us();
    enum ndt_status status = NDT_OK;
    if (points)
        status = ndt_preprocess_again(pipeline->preprocessor, twist, &points, err);
    else
        ndt_preprocess_plan_set_motion(&pipeline->plan, twist);
    record->preprocess_us += ndt_clock_us() - start_us;
    if (status != NDT_OK)
        return status;
    params.levels[0] = params.levels[params.level_count - 1];
    params.level_count = 1;
    const struct ndt_pose guess = moved(&first.T_map_sensor, twist, reference_s);
    status = align_points(pipeline, record, &params, &points, twist, &guess, err);
    record->result.iterations += first.iterations;
    record->result.evaluations += first.evaluations;
    record->result.align_us += first.align_us;
    record->result.upload_us += first.upload_us;
    record->result.T_map_sensor = moved(&record->result.T_map_sensor, twist, -reference_s);
    return status;
}

/* *points NULL: the backend will do it, with pipeline->front. */
static enum ndt_status preprocess(struct ndtd_pipeline *pipeline, struct ndtd_scan_record *record,
                                  const struct ndt_twist *twist, const struct ndt_cloud **points,
                                  double *reference_s, struct ndt_error *err)
{
    const size_t limit = ndt_aligner_raw_limit(pipeline->aligner);
    const double start_us = ndt_clock_us();
    *points = NULL;
    if (limit == 0 || pipeline->scan.count > limit)
        return preprocess_here(pipeline, record, twist, NULL, points, reference_s, err);
    enum ndt_status status = ndt_preprocess_plan_set(&pipeline->plan, &pipeline->settings->preprocess,
                                                     &pipeline->scan, record->seq, twist, err);
    *reference_s = pipeline->plan.reference_s;
    record->preprocess_us = ndt_clock_us() - start_us;
    return status;
}

static void keep_last(struct ndtd_pipeline *pipeline, const struct ndt_cloud *points,
                      const struct ndt_align_result *result)
{
    pipeline->last_points = result->outcome == NDT_CONVERGED ? points : NULL;
    pipeline->T_map_last = result->T_map_sensor;
}

static enum ndt_status align(struct ndtd_pipeline *pipeline, struct ndtd_scan_record *record,
                             const struct ndt_cloud *points, double reference_s, struct ndt_twist *twist,
                             struct ndt_error *err)
{
    const struct ndtd_settings *settings = pipeline->settings;
    const struct ndt_pose predicted = record->result.T_map_sensor;
    const struct ndt_pose guess = moved(&predicted, twist, reference_s);
    struct ndt_align_params params = params_for(pipeline, record->stamp_ns);
    const double start_us = ndt_clock_us();
    delay(pipeline);
    const double delay_us = settings->align_delay_s > 0 ? ndt_clock_us() - start_us : 0;
    if (!has_time(pipeline, &params))
        return refuse(record, NDT_DEADLINE, "no time left to align it: the pose is the prediction"), NDT_OK;
    enum ndt_status status = align_points(pipeline, record, &params, &points, NULL, &guess, err);
    if (!points)
        record->points_used = record->result.points;
    if (record->result.evaluations > 0)
        pipeline->evaluation_us = record->result.align_us / record->result.evaluations;
    keep_last(pipeline, points, &record->result);
    record->result.T_map_sensor = moved(&record->result.T_map_sensor, twist, -reference_s);
    record->trace = ndt_aligner_trace(pipeline->aligner, &record->trace_count);
    if (status == NDT_OK && settings->deskew_passes > 1 && settings->preprocess.deskew != NDT_DESKEW_OFF)
        status = align_again(pipeline, record, points, reference_s, twist, err);
    record->trace = ndt_aligner_trace(pipeline->aligner, &record->trace_count);
    record->result.align_us += delay_us;
    record->upload_us = record->result.upload_us;
    record->align_us = record->result.align_us - record->upload_us;
    return status;
}

static enum ndt_status match(struct ndtd_pipeline *pipeline, struct ndtd_scan_record *record, struct ndt_error *err)
{
    struct ndt_twist twist;
    const struct ndt_cloud *points;
    double reference_s;
    const int has_guess =
        ndtd_tracker_guess(&pipeline->tracker, record->stamp_ns, &record->result.T_map_sensor, &twist);
    if (!has_guess)
        return refuse(record, NDT_NO_GUESS, "no initial pose yet"), NDT_OK;
    if (pipeline->deadline_us > 0 && ndt_clock_us() >= pipeline->deadline_us)
        return refuse(record, NDT_DEADLINE, "no time left to align it: the pose is the prediction"), NDT_OK;
    enum ndt_status status = preprocess(pipeline, record, &twist, &points, &reference_s, err);
    return status == NDT_OK ? align(pipeline, record, points, reference_s, &twist, err) : status;
}

/* Takes the header and, unless scans are refused anyway, the points. */
static enum ndt_status decode(struct ndtd_pipeline *pipeline, const uint8_t *data, size_t size,
                              struct ndtd_scan_record *record, struct ndt_error *err)
{
    struct ndt_scan_message message;
    const double start_us = ndt_clock_us();
    enum ndt_status status = pipeline->stopped ? ndt_scan_header_decode(data, size, &message, err)
                                               : ndt_scan_decode(data, size, &message, &pipeline->scan, err);
    if (status != NDT_OK)
        return status;
    record->decode_us = ndt_clock_us() - start_us;
    record->seq = message.seq;
    record->stamp_ns = message.stamp_ns;
    record->points_raw = pipeline->stopped ? 0 : pipeline->scan.count;
    return NDT_OK;
}

static void take_start(struct ndtd_pipeline *pipeline, int64_t stamp_ns)
{
    if (!pipeline->has_start)
        return;
    pipeline->has_start = 0;
    ndtd_tracker_reset(&pipeline->tracker, stamp_ns, &pipeline->start.pose,
                       pipeline->start.has_twist ? &pipeline->start.twist : NULL);
}

static enum ndt_status take_scan(struct ndtd_pipeline *pipeline, const uint8_t *data, size_t size,
                                 struct ndtd_scan_record *record, struct ndt_error *err)
{
    struct ndt_error why = {0};
    enum ndt_status status = decode(pipeline, data, size, record, err);
    if (status != NDT_OK)
        return status;
    if (pipeline->stopped)
        return refuse(record, NDT_REJECTED, "localising is stopped"), NDT_OK;
    take_start(pipeline, record->stamp_ns);
    status = match(pipeline, record, &why);
    if (status == NDT_ERR_MEMORY ||
        status == NDT_ERR_DEVICE) { /* not the scan's fault: the next would fare alike */
        if (err)
            *err = why;
        return status;
    }
    if (status != NDT_OK)
        refuse(record, NDT_REJECTED, why.text);
    ndtd_tracker_update(&pipeline->tracker, record->stamp_ns, &record->result);
    return NDT_OK;
}

enum ndt_status ndtd_pipeline_frame(struct ndtd_pipeline *pipeline, enum ndt_message_type type, const uint8_t *data,
                                    size_t size, int *emitted, struct ndtd_scan_record *record,
                                    struct ndt_error *err)
{
    *emitted = 0;
    memset(record, 0, sizeof(*record));
    pipeline->last_points = NULL;
    if (type == NDT_MESSAGE_INITIAL_POSE || type == NDT_MESSAGE_ODOMETRY)
        return take_pose(pipeline, type, data, size, err);
    if (type == NDT_MESSAGE_GNSS)
        return take_gnss(pipeline, data, size, err);
    if (type != NDT_MESSAGE_SCAN)
        return NDT_OK;
    enum ndt_status status = take_scan(pipeline, data, size, record, err);
    *emitted = status == NDT_OK;
    return status;
}
