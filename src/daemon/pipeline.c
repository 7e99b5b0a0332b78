#include "ndtd/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends.h"

struct ndtd_pipeline {
    struct ndtd_settings settings;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    struct ndt_preprocessor *preprocessor;
    struct ndtd_tracker tracker;
    struct ndt_cloud scan;
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* A configured initial pose holds from the first scan on, whatever its stamp. */
static void set_configured_pose(struct ndtd_pipeline *pipeline)
{
    struct ndt_pose pose;
    if (!pipeline->settings.has_initial_pose)
        return;
    memcpy(pose.t_m, pipeline->settings.initial_pose, sizeof(pose.t_m));
    memcpy(pose.q_xyzw, pipeline->settings.initial_pose + 3, sizeof(pose.q_xyzw));
    (void)ndt_pose_normalize(&pose);
    ndtd_tracker_reset(&pipeline->tracker, 0, &pose, NULL);
}

static enum ndt_status open_parts(struct ndtd_pipeline *pipeline, struct ndt_map *map, struct ndt_error *err)
{
    const struct ndtd_settings *settings = &pipeline->settings;
    enum ndt_status status =
        ndt_backend_open_lasting(&pipeline->backend, settings->backend, &settings->compute, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&pipeline->aligner, pipeline->backend, err);
    if (status == NDT_OK)
        status = ndt_preprocessor_create(&pipeline->preprocessor, err);
    if (status == NDT_OK && map)
        status = ndt_aligner_set_map(pipeline->aligner, map, err);
    return status;
}

enum ndt_status ndtd_pipeline_create(struct ndtd_pipeline **out, const struct ndtd_settings *settings,
                                     struct ndt_map *map, struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_pipeline *pipeline = calloc(1, sizeof(*pipeline));
    if (!pipeline)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the pipeline");
    pipeline->settings = *settings;
    if (settings->compute.isa == settings->isa) /* points into the struct itself */
        pipeline->settings.compute.isa = pipeline->settings.isa;
    ndt_cloud_init(&pipeline->scan);
    ndtd_tracker_init(&pipeline->tracker, settings->max_prediction_s);
    set_configured_pose(pipeline);
    enum ndt_status status = open_parts(pipeline, map, err);
    if (status == NDT_OK)
        *out = pipeline;
    else
        ndtd_pipeline_destroy(pipeline);
    return status;
}

void ndtd_pipeline_destroy(struct ndtd_pipeline *pipeline)
{
    if (!pipeline)
        return;
    ndt_aligner_destroy(pipeline->aligner);
    ndt_preprocessor_destroy(pipeline->preprocessor);
    if (pipeline->backend)
        pipeline->backend->ops->close(pipeline->backend);
    ndt_cloud_free(&pipeline->scan);
    free(pipeline);
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

/* The second pass: undo the sweep with the motion that the first pass found. It starts where the first one ended,
 * so the finest level is enough. */
static enum ndt_status align_again(struct ndtd_pipeline *pipeline, struct ndtd_scan_record *record,
                                   double reference_s, struct ndt_twist *twist, struct ndt_error *err)
{
    struct ndtd_tracker after = pipeline->tracker;
    struct ndt_align_params params = pipeline->settings.align;
    const struct ndt_align_result first = record->result;
    const struct ndt_cloud *points;
    ndtd_tracker_update(&after, record->stamp_ns, &first);
    if (!after.has_twist || first.outcome != NDT_CONVERGED)
        return NDT_OK;
    *twist = after.twist;
    const double start_us = now_us();
    enum ndt_status status = ndt_preprocess_again(pipeline->preprocessor, twist, &points, err);
    record->preprocess_us += now_us() - start_us;
    if (status != NDT_OK)
        return status;
    params.levels[0] = params.levels[params.level_count - 1];
    params.level_count = 1;
    const struct ndt_pose guess = moved(&first.T_map_sensor, twist, reference_s);
    status = ndt_align(pipeline->aligner, &params, points, &guess, &record->result, err);
    record->result.iterations += first.iterations;
    record->result.evaluations += first.evaluations;
    record->result.align_us += first.align_us;
    record->result.upload_us += first.upload_us;
    record->result.T_map_sensor = moved(&record->result.T_map_sensor, twist, -reference_s);
    return status;
}

static enum ndt_status match(struct ndtd_pipeline *pipeline, struct ndtd_scan_record *record, struct ndt_error *err)
{
    const struct ndtd_settings *settings = &pipeline->settings;
    struct ndt_pose guess;
    struct ndt_twist twist;
    const struct ndt_cloud *points;
    double reference_s;
    const int has_guess = ndtd_tracker_guess(&pipeline->tracker, record->stamp_ns, &guess, &twist);
    record->result.T_map_sensor = guess;
    if (!has_guess)
        return refuse(record, NDT_NO_GUESS, "no initial pose yet"), NDT_OK;
    const double start_us = now_us();
    enum ndt_status status = ndt_preprocess(pipeline->preprocessor, &settings->preprocess, &pipeline->scan,
                                            record->seq, &twist, &points, &reference_s, err);
    record->preprocess_us = now_us() - start_us;
    if (status != NDT_OK)
        return status;
    record->points_used = points->count;
    guess = moved(&guess, &twist, reference_s);
    status = ndt_align(pipeline->aligner, &settings->align, points, &guess, &record->result, err);
    record->result.T_map_sensor = moved(&record->result.T_map_sensor, &twist, -reference_s);
    if (status == NDT_OK && settings->deskew_passes > 1 && settings->preprocess.deskew != NDT_DESKEW_OFF)
        status = align_again(pipeline, record, reference_s, &twist, err);
    record->upload_us = record->result.upload_us;
    record->align_us = record->result.align_us - record->upload_us;
    record->trace = ndt_aligner_trace(pipeline->aligner, &record->trace_count);
    return status;
}

static enum ndt_status take_scan(struct ndtd_pipeline *pipeline, const uint8_t *data, size_t size,
                                 struct ndtd_scan_record *record, struct ndt_error *err)
{
    struct ndt_scan_message message;
    struct ndt_error why = {0};
    const double start_us = now_us();
    enum ndt_status status = ndt_scan_decode(data, size, &message, &pipeline->scan, err);
    if (status != NDT_OK)
        return status;
    record->decode_us = now_us() - start_us;
    record->seq = message.seq;
    record->stamp_ns = message.stamp_ns;
    record->points_raw = pipeline->scan.count;
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
    if (type == NDT_MESSAGE_INITIAL_POSE || type == NDT_MESSAGE_ODOMETRY)
        return take_pose(pipeline, type, data, size, err);
    if (type != NDT_MESSAGE_SCAN)
        return NDT_OK;
    enum ndt_status status = take_scan(pipeline, data, size, record, err);
    *emitted = status == NDT_OK;
    return status;
}
