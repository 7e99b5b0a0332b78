#include "bench_commands.h"
#include "bench_street.h"
#include "ndt/clock.h"
#include "ndt_proto/message.h"

enum { WARM_UP = 3 };

/* The steps of the preprocessor share one pass, so the time of a step is the difference with and without it,
 * measured on the same scan. */
enum step {
    DECODE,
    CROP,
    DESKEW_TIME,    /* only where scans have times */
    DESKEW_AZIMUTH, /* clockwise */
    FILTER,         /* every cell is finished */
    SAMPLING,       /* only cells that are picked are finished: may be below 0 */
    WHOLE,          /* without deskewing */
    WHOLE_TIME,
    WHOLE_AZIMUTH,
    STEPS
};
static const char *const step_names[STEPS] = {
    "decode",   "crop",  "deskew time",     "deskew azimuth",    "voxel filter",
    "sampling", "whole", "whole, by times", "whole, by azimuths"};

/* Inputs and buffers to run one scan through every step. */
struct course {
    struct ndt_preprocessor *pre;
    struct ndt_frame frame;
    struct ndt_cloud decoded;
    struct ndt_preprocess_params params; /* of the settings */
    const struct bench_recording *recording;
    const struct bench_raw_scan *scan;
    size_t cells;
    double points_sum, cells_sum;
    struct bench_samples took_us[STEPS]; /* empty if not possible with these scans */
};

static enum ndt_status decode(struct course *course, double *took_us, struct ndt_error *err)
{
    struct ndt_scan_message message = {.frame_id = "lidar"};
    enum ndt_status status = ndt_scan_encode(&course->frame, &message, &course->scan->cloud, err);
    const double start_us = ndt_clock_us();
    if (status == NDT_OK)
        status = ndt_scan_decode(course->frame.data, course->frame.size, &message, &course->decoded, err);
    *took_us = ndt_clock_us() - start_us;
    return status;
}

static enum ndt_status preprocess(struct course *course, enum ndt_deskew_mode deskew, double voxel_m,
                                  uint32_t samples, double *took_us, struct ndt_error *err)
{
    struct ndt_preprocess_params params = course->params;
    const struct ndt_cloud *out;
    double reference_s;
    params.deskew = deskew;
    params.voxel_m = voxel_m;
    params.sample_count = samples;
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < 2; i++) { /* the first run warms the caches */
        const double start_us = ndt_clock_us();
        status = ndt_preprocess(course->pre, &params, &course->decoded, course->scan->seq, &course->scan->twist,
                                &out, &reference_s, err);
        *took_us = ndt_clock_us() - start_us;
    }
    if (status == NDT_OK)
        course->cells = out->count;
    return status;
}

/* Measures every row of one round; rows of modes that the scan does not support are not changed. */
static enum ndt_status take_steps(struct course *course, double took_us[STEPS], struct ndt_error *err)
{
    static const enum ndt_deskew_mode modes[] = {NDT_DESKEW_OFF, NDT_DESKEW_TIME, NDT_DESKEW_AZIMUTH_CW};
    static const enum step steps[] = {CROP, DESKEW_TIME, DESKEW_AZIMUTH};
    static const enum step wholes[] = {WHOLE, WHOLE_TIME, WHOLE_AZIMUTH};
    const double voxel_m = course->params.voxel_m;
    double filtered_us = 0;
    enum ndt_status status = decode(course, &took_us[DECODE], err);
    for (size_t m = 0; status == NDT_OK && m < 3; m++) {
        if (modes[m] == NDT_DESKEW_TIME && !course->decoded.time_s)
            continue;
        status = preprocess(course, modes[m], 0, 0, &took_us[steps[m]], err);
        if (status == NDT_OK)
            status = preprocess(course, modes[m], voxel_m, course->params.sample_count, &took_us[wholes[m]], err);
        if (m > 0)
            took_us[steps[m]] -= took_us[CROP];
    }
    if (status == NDT_OK)
        status = preprocess(course, NDT_DESKEW_OFF, voxel_m, 0, &filtered_us, err);
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
    struct course *course = context;
    double took_us[STEPS];
    (void)item;
    course->scan = &course->recording->scans[round % course->recording->count];
    enum ndt_status status = take_steps(course, took_us, err);
    course->points_sum += is_counted ? (double)course->scan->cloud.count : 0;
    course->cells_sum += is_counted ? (double)course->cells : 0;
    for (int step = 0; status == NDT_OK && is_counted && step < STEPS; step++)
        if (is_possible((enum step)step, &course->decoded))
            status = bench_samples_add(&course->took_us[step], took_us[step], err);
    return status;
}

static enum ndt_status measure(const struct bench_options *options, const struct bench_recording *recording,
                               struct bench_report *report, struct bench_table *table, struct ndt_error *err)
{
    struct course course = {.params = options->preprocess, .recording = recording};
    const double rounds = (double)options->rounds;
    ndt_frame_init(&course.frame);
    ndt_cloud_init(&course.decoded);
    enum ndt_status status = ndt_preprocessor_create(&course.pre, err);
    if (status == NDT_OK)
        status = bench_sample(&(struct bench_sampling){.items = 1,
                                                       .warm_up = WARM_UP,
                                                       .rounds = (size_t)options->rounds,
                                                       .sample = sample,
                                                       .context = &course},
                              err);
    for (int step = 0; step < STEPS; step++) {
        struct bench_samples *took_us = &course.took_us[step];
        bench_row(report, table);
        bench_number(table, "points", 0, course.points_sum / rounds);
        bench_number(table, "cells", 0, course.cells_sum / rounds);
        bench_text(table, "step", "%s", step_names[step]);
        if (took_us->count) {
            bench_number(table, "median_us", 1, bench_median(took_us));
            bench_number(table, "p95_us", 1, bench_quantile(took_us, 0.95));
            bench_number(table, "ns_per_point", 3, 1e3 * bench_median(took_us) * rounds / course.points_sum);
        } else {
            bench_text(table, "why", "not here: the scans have no times");
        }
        bench_samples_free(took_us);
    }
    ndt_preprocessor_destroy(course.pre);
    ndt_frame_free(&course.frame);
    ndt_cloud_free(&course.decoded);
    return status;
}

/* Uses the scans of a recording in turn, otherwise one synthetic scan for each of --points. */
enum ndt_status bench_preprocess(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    const struct bench_options *options = source->options;
    char title[200];
    enum ndt_status status = NDT_OK;
    bench_source_report(source, NULL, 0, report);
    snprintf(title, sizeof(title),
             "Preprocessing: %s scans, filter %g m, sample of %u, one thread; medians; a step is what it adds to "
             "the pass",
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
