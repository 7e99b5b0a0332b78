#include "bench_preprocess.h"

#include <string.h>

#include "bench_preprocess_scan.h"
#include "ndt_proto/message.h"
#include "ndtd/options.h"
#include "ndt/clock.h"

enum { ROUNDS = 101, WARM_UP = 3 };

/* What is needed to take one scan through every step. */
struct course {
    struct ndt_preprocessor *pre;
    struct ndt_frame frame;
    struct ndt_cloud decoded;
    struct ndt_preprocess_params params; /* of the settings */
    const struct bench_scan *scan;
    size_t cells;
};

const char *bench_preprocess_step_name(enum bench_preprocess_step step)
{
    static const char *const names[BENCH_PREPROCESS_STEPS] = {
        "decode",   "crop",  "deskew time",     "deskew azimuth",    "voxel filter",
        "sampling", "whole", "whole, by times", "whole, by azimuths"};
    return names[step];
}

static enum ndt_status decode(struct course *course, double *took_us, struct ndt_error *err)
{
    struct ndt_scan_message message = {.frame_id = "lidar"};
    enum ndt_status status = ndt_scan_encode(&course->frame, &message, &course->scan->raw, err);
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
    for (int i = 0; status == NDT_OK && i < 2; i++) { /* the first finds caches that other modes have used */
        const double start_us = ndt_clock_us();
        status = ndt_preprocess(course->pre, &params, &course->decoded, course->scan->seq, &course->scan->twist,
                                &out, &reference_s, err);
        *took_us = ndt_clock_us() - start_us;
    }
    if (status == NDT_OK)
        course->cells = out->count;
    return status;
}

/* Every row of one round; rows of modes that the scan cannot have stay as they are. */
static enum ndt_status take_steps(struct course *course, double took_us[BENCH_PREPROCESS_STEPS],
                                  struct ndt_error *err)
{
    static const enum ndt_deskew_mode modes[] = {NDT_DESKEW_OFF, NDT_DESKEW_TIME, NDT_DESKEW_AZIMUTH_CW};
    static const enum bench_preprocess_step steps[] = {BENCH_PREPROCESS_CROP, BENCH_PREPROCESS_DESKEW_TIME,
                                                       BENCH_PREPROCESS_DESKEW_AZIMUTH};
    static const enum bench_preprocess_step wholes[] = {BENCH_PREPROCESS_WHOLE, BENCH_PREPROCESS_WHOLE_TIME,
                                                        BENCH_PREPROCESS_WHOLE_AZIMUTH};
    const double voxel_m = course->params.voxel_m;
    double filtered_us = 0;
    enum ndt_status status = decode(course, &took_us[BENCH_PREPROCESS_DECODE], err);
    for (size_t m = 0; status == NDT_OK && m < 3; m++) {
        if (modes[m] == NDT_DESKEW_TIME && !course->decoded.time_s)
            continue;
        status = preprocess(course, modes[m], 0, 0, &took_us[steps[m]], err);
        if (status == NDT_OK)
            status = preprocess(course, modes[m], voxel_m, course->params.sample_count, &took_us[wholes[m]], err);
        if (m > 0)
            took_us[steps[m]] -= took_us[BENCH_PREPROCESS_CROP];
    }
    if (status == NDT_OK)
        status = preprocess(course, NDT_DESKEW_OFF, voxel_m, 0, &filtered_us, err);
    took_us[BENCH_PREPROCESS_FILTER] = filtered_us - took_us[BENCH_PREPROCESS_CROP];
    took_us[BENCH_PREPROCESS_SAMPLING] = took_us[BENCH_PREPROCESS_WHOLE] - filtered_us;
    return status;
}

static int is_possible(enum bench_preprocess_step step, const struct ndt_cloud *scan)
{
    return scan->time_s || (step != BENCH_PREPROCESS_DESKEW_TIME && step != BENCH_PREPROCESS_WHOLE_TIME);
}

static enum ndt_status measure(struct bench_preprocess_case *out, struct course *course,
                               const struct bench_input *input, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (size_t round = 0; status == NDT_OK && round < WARM_UP + ROUNDS; round++) {
        double took_us[BENCH_PREPROCESS_STEPS];
        course->scan = &input->scans[round % input->count];
        status = take_steps(course, took_us, err);
        if (round < WARM_UP)
            continue;
        out->points += (double)course->scan->raw.count / ROUNDS;
        out->cells += (double)course->cells / ROUNDS;
        for (int step = 0; status == NDT_OK && step < BENCH_PREPROCESS_STEPS; step++)
            if (is_possible((enum bench_preprocess_step)step, &course->decoded))
                status = ndtd_samples_add(&out->took_us[step], took_us[step], err);
    }
    return status;
}

static enum ndt_status run_case(struct bench_preprocess *plan, const struct bench_input *input,
                                struct ndt_error *err)
{
    struct course course = {.params = plan->params};
    ndt_frame_init(&course.frame);
    ndt_cloud_init(&course.decoded);
    enum ndt_status status = ndt_preprocessor_create(&course.pre, err);
    if (status == NDT_OK)
        status = measure(&plan->cases[plan->count++], &course, input, err);
    ndt_preprocessor_destroy(course.pre);
    ndt_frame_free(&course.frame);
    ndt_cloud_free(&course.decoded);
    return status;
}

static enum ndt_status run_synthetic(struct bench_preprocess *plan, size_t points, uint64_t seed,
                                     struct ndt_error *err)
{
    struct bench_scan scan = {.twist = {{12, 0, 0}, {0, 0, 0.2}}};
    const struct bench_input input = {.scans = &scan, .count = 1};
    ndt_cloud_init(&scan.raw);
    enum ndt_status status = bench_preprocess_scan(&scan.raw, points, seed, err);
    if (status == NDT_OK)
        status = run_case(plan, &input, err);
    ndt_cloud_free(&scan.raw);
    return status;
}

enum ndt_status bench_preprocess_run(struct bench_preprocess *plan, const struct bench_options *options,
                                     const struct bench_input *input, struct ndt_error *err)
{
    static const size_t usual[] = {13500, 120000};
    struct ndtd_settings numbers;
    enum ndt_status status = NDT_OK;
    plan->params = options->settings.preprocess;
    plan->is_synthetic = input->count == 0;
    if (!plan->is_synthetic)
        return run_case(plan, input, err);
    ndtd_settings_default(&numbers);
    for (size_t i = 0; status == NDT_OK && i < options->points.count; i++) {
        status = ndtd_option_set_text(&numbers, "preprocess.sample_count", options->points.items[i], err);
        if (status == NDT_OK)
            status = run_synthetic(plan, numbers.preprocess.sample_count, options->seed, err);
    }
    for (size_t i = 0; status == NDT_OK && options->points.count == 0 && i < sizeof(usual) / sizeof(usual[0]); i++)
        status = run_synthetic(plan, usual[i], options->seed, err);
    return status;
}

void bench_preprocess_free(struct bench_preprocess *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        for (int step = 0; step < BENCH_PREPROCESS_STEPS; step++)
            ndtd_samples_free(&plan->cases[i].took_us[step]);
    *plan = (struct bench_preprocess){0};
}

/* NULL when the step is not possible there. */
static struct ndtd_samples *row(struct bench_preprocess *plan, size_t item, int step, double *ns_per_point)
{
    struct bench_preprocess_case *at = &plan->cases[item];
    struct ndtd_samples *took_us = &at->took_us[step];
    *ns_per_point = at->points > 0 ? ndtd_samples_quantile(took_us, 0.5) * 1e3 / at->points : 0;
    return took_us->count > 0 ? took_us : NULL;
}

void bench_preprocess_print(struct bench_preprocess *plan, FILE *file)
{
    double ns;
    fprintf(file,
            "\n%s, filter %g m, sample of %u, one thread; medians of %d, a step is what it adds to the pass\n",
            plan->is_synthetic ? "synthetic scans" : "given scans", plan->params.voxel_m, plan->params.sample_count,
            ROUNDS);
    fprintf(file, "%9s %9s  %-20s %10s %10s %10s\n", "points", "cells", "step", "us", "p95", "ns/point");
    for (size_t i = 0; i < plan->count; i++)
        for (int step = 0; step < BENCH_PREPROCESS_STEPS; step++) {
            struct ndtd_samples *took_us = row(plan, i, step, &ns);
            fprintf(file, "%9.0f %9.0f  %-20s ", plan->cases[i].points, plan->cases[i].cells,
                    bench_preprocess_step_name((enum bench_preprocess_step)step));
            if (took_us)
                fprintf(file, "%10.1f %10.1f %10.3f\n", ndtd_samples_quantile(took_us, 0.5),
                        ndtd_samples_quantile(took_us, 0.95), ns);
            else
                fprintf(file, "not here: the scans have no times\n");
        }
}

void bench_preprocess_json(struct bench_preprocess *plan, FILE *file)
{
    double ns;
    const char *before = "";
    fputc('[', file);
    for (size_t i = 0; i < plan->count; i++)
        for (int step = 0; step < BENCH_PREPROCESS_STEPS; step++) {
            struct ndtd_samples *took_us = row(plan, i, step, &ns);
            if (!took_us)
                continue;
            fprintf(file, "%s\n  {\"step\": \"%s\", \"points\": %.6g, \"cells\": %.6g, \"synthetic\": %s, ", before,
                    bench_preprocess_step_name((enum bench_preprocess_step)step), plan->cases[i].points,
                    plan->cases[i].cells, plan->is_synthetic ? "true" : "false");
            fprintf(file, "\"median_us\": %.6g, \"p95_us\": %.6g, \"ns_per_point\": %.6g}",
                    ndtd_samples_quantile(took_us, 0.5), ndtd_samples_quantile(took_us, 0.95), ns);
            before = ",";
        }
    fputc(']', file);
}
