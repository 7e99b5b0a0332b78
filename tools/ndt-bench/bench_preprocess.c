/** @file
 * @brief preprocess: decoding and the steps of the preprocessor. */
#include "bench.h"
#include "ndt/clock.h"
#include "ndt_proto/message.h"

enum { WARM_UP = 3 };

/* The steps of the preprocessor share one pass. The cost of a step is the difference between the time with it and
 * the time without it, on the same scan right before. */
enum step {
    DECODE,
    CROP,
    DESKEW_TIME,    /* only where scans have times */
    DESKEW_AZIMUTH, /* clockwise */
    FILTER,         /* all cells are averaged */
    SAMPLING,       /* only sampled cells are averaged: may be negative */
    WHOLE,          /* without deskewing */
    WHOLE_TIME,
    WHOLE_AZIMUTH,
    STEPS
};
static const char *const step_names[STEPS] = {
    "decode",   "crop",  "deskew time",     "deskew azimuth",    "voxel filter",
    "sampling", "whole", "whole, by times", "whole, by azimuths"};

/* One scan on its way through all steps. */
struct pipeline {
    struct ndt_preprocessor *pre;
    struct ndt_buffer frame;
    struct ndt_cloud decoded;
    struct ndt_preprocess_params params; /* of the settings */
    const struct bench_recording *recording;
    const struct bench_raw_scan *scan;
    size_t cells;
    double points_sum, cells_sum;
    struct bench_samples took_us[STEPS]; /* empty: not possible with these scans */
};

static enum ndt_status decode(struct pipeline *pipeline, double *took_us, struct ndt_error *err)
{
    struct ndt_scan_message message = {.frame_id = "lidar"};
    enum ndt_status status = ndt_scan_encode(&pipeline->frame, &message, &pipeline->scan->cloud, err);
    const double start_us = ndt_clock_us();
    if (status == NDT_OK)
        status = ndt_scan_decode(pipeline->frame.data, pipeline->frame.size, &message, &pipeline->decoded, err);
    *took_us = ndt_clock_us() - start_us;
    return status;
}

static enum ndt_status preprocess(struct pipeline *pipeline, enum ndt_deskew_mode deskew, double voxel_m,
                                  uint32_t samples, double *took_us, struct ndt_error *err)
{
    struct ndt_preprocess_params params = pipeline->params;
    const struct ndt_cloud *out;
    const struct ndt_sweep_motion motion = {.twist = pipeline->scan->twist};
    struct ndt_sweep sweep;
    params.deskew = deskew;
    params.voxel_m = voxel_m;
    params.sample_count = samples;
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < 2; i++) { /* the first one warms the caches */
        const double start_us = ndt_clock_us();
        status = ndt_preprocess_sweep(&params, &pipeline->decoded, &sweep, err);
        if (status == NDT_OK)
            status = ndt_preprocess(pipeline->pre, &params, &pipeline->decoded, &sweep, pipeline->scan->seq,
                                    &motion, &out, err);
        *took_us = ndt_clock_us() - start_us;
    }
    if (status == NDT_OK)
        pipeline->cells = out->count;
    return status;
}

/* All steps of one round, without the modes that the scan does not support. */
static enum ndt_status measure_steps(struct pipeline *pipeline, double took_us[STEPS], struct ndt_error *err)
{
    static const enum ndt_deskew_mode modes[] = {NDT_DESKEW_OFF, NDT_DESKEW_TIME, NDT_DESKEW_AZIMUTH_CW};
    static const enum step steps[] = {CROP, DESKEW_TIME, DESKEW_AZIMUTH};
    static const enum step wholes[] = {WHOLE, WHOLE_TIME, WHOLE_AZIMUTH};
    const double voxel_m = pipeline->params.voxel_m;
    double filtered_us = 0;
    enum ndt_status status = decode(pipeline, &took_us[DECODE], err);
    for (size_t m = 0; status == NDT_OK && m < 3; m++) {
        if (modes[m] == NDT_DESKEW_TIME && !pipeline->decoded.time_s)
            continue;
        status = preprocess(pipeline, modes[m], 0, 0, &took_us[steps[m]], err);
        if (status == NDT_OK)
            status =
                preprocess(pipeline, modes[m], voxel_m, pipeline->params.sample_count, &took_us[wholes[m]], err);
        if (m > 0)
            took_us[steps[m]] -= took_us[CROP];
    }
    if (status == NDT_OK)
        status = preprocess(pipeline, NDT_DESKEW_OFF, voxel_m, 0, &filtered_us, err);
    took_us[FILTER] = filtered_us - took_us[CROP];
    took_us[SAMPLING] = took_us[WHOLE] - filtered_us;
    return status;
}

static int is_possible(enum step step, const struct ndt_cloud *scan)
{
    return scan->time_s || (step != DESKEW_TIME && step != WHOLE_TIME);
}

static enum ndt_status sample(void *context, size_t item, size_t round, int is_counted, struct ndt_error *err)
{
    struct pipeline *pipeline = context;
    double took_us[STEPS];
    (void)item;
    pipeline->scan = &pipeline->recording->scans[round % pipeline->recording->count];
    enum ndt_status status = measure_steps(pipeline, took_us, err);
    pipeline->points_sum += is_counted ? (double)pipeline->scan->cloud.count : 0;
    pipeline->cells_sum += is_counted ? (double)pipeline->cells : 0;
    for (int step = 0; status == NDT_OK && is_counted && step < STEPS; step++)
        if (is_possible((enum step)step, &pipeline->decoded))
            bench_samples_add(&pipeline->took_us[step], took_us[step]);
    return status;
}

static enum ndt_status measure(const struct bench_options *options, const struct bench_recording *recording,
                               struct bench_report *report, struct bench_table *table, struct ndt_error *err)
{
    struct pipeline pipeline = {.params = options->preprocess, .recording = recording};
    const double rounds = (double)options->rounds;
    ndt_buffer_init(&pipeline.frame);
    ndt_cloud_init(&pipeline.decoded);
    enum ndt_status status = ndt_preprocessor_create(&pipeline.pre, err);
    if (status == NDT_OK)
        status = bench_sample(1, WARM_UP, options->rounds, sample, &pipeline, err);
    for (int step = 0; step < STEPS; step++) {
        struct bench_samples *took_us = &pipeline.took_us[step];
        bench_row(report, table);
        bench_number(table, "points", 0, pipeline.points_sum / rounds);
        bench_number(table, "cells", 0, pipeline.cells_sum / rounds);
        bench_text(table, "step", "%s", step_names[step]);
        if (took_us->count) {
            bench_number(table, "median_us", 1, bench_median(took_us));
            bench_number(table, "p95_us", 1, bench_quantile(took_us, 0.95));
            bench_number(table, "ns_per_point", 3, 1e3 * bench_median(took_us) * rounds / pipeline.points_sum);
        } else {
            bench_text(table, "why", "not here: the scans have no times");
        }
        bench_samples_free(took_us, 1);
    }
    ndt_preprocessor_destroy(pipeline.pre);
    ndt_buffer_free(&pipeline.frame);
    ndt_cloud_free(&pipeline.decoded);
    return status;
}

/* The scans of a recording in turn, or one synthetic scan for each of --points. */
enum ndt_status bench_preprocess(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    const struct bench_options *options = source->options;
    char title[200];
    enum ndt_status status = NDT_OK;
    if (options->has_points && source->recording)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "either --points of synthetic scans, or --scan or --bag");
    bench_source_report(source, report);
    snprintf(title, sizeof(title),
             "Preprocessing: %s scans, filter %g m, sample of %u, one thread; medians; the cost of a step is the "
             "time that it adds",
             source->recording ? "given" : "synthetic", options->preprocess.voxel_m,
             options->preprocess.sample_count);
    struct bench_table *table = bench_report_table(report, "preprocess", title);
    if (source->recording)
        return measure(options, source->recording, report, table, err);
    for (size_t i = 0; status == NDT_OK && i < options->points.count; i++) {
        struct bench_raw_scan scan = {.twist = {{12, 0, 0}, {0, 0, 0.2}}};
        const struct bench_recording recording = {.scans = &scan, .count = 1};
        ndt_cloud_init(&scan.cloud);
        status = bench_street_revolution(&scan.cloud, options->points.values[i], options->seed, err);
        if (status == NDT_OK)
            status = measure(options, &recording, report, table, err);
        ndt_cloud_free(&scan.cloud);
    }
    return status;
}
