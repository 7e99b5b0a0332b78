#include "search_choice.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "ndtd/autotune.h"

/* Rounds of searches; the first does not count: it finds cold caches and a device whose kernels are not loaded. */
enum { ROUNDS = 4 };
/* Points of the scan, and radius of the searched region around it. */
enum { POINTS = 4000 };
static const double RADIUS_M = 200;

static void pause_for(double seconds)
{
    const double whole_s = floor(seconds);
    nanosleep(&(struct timespec){.tv_sec = (time_t)whole_s, .tv_nsec = (long)((seconds - whole_s) * 1e9)}, NULL);
}

/* Searches once for the scan, with the engine or without. */
static enum ndt_status run_search(const struct ndtd_search_measurement *measurement, const struct ndt_cloud *scan,
                                  const struct ndt_search_region *region, int on_engine,
                                  struct ndt_search_result *result, struct ndt_error *err)
{
    const struct ndt_pose upright = ndt_pose_identity();
    struct ndt_search_params params;
    ndt_search_params_default(&params);
    params.tier = NDT_SEARCH_QUICK;
    ndt_search_use_engine(measurement->search, on_engine);
    const enum ndt_status status =
        ndt_search_run(measurement->search, &params, scan, &upright, region, measurement->control, result, err);
    if (status == NDT_OK && result->is_cancelled)
        return ndt_fail(err, NDT_ERR_CANCELLED, "a search comes first");
    if (status == NDT_OK && on_engine && !ndt_search_has_engine(measurement->search))
        return ndt_fail(err, NDT_ERR_DEVICE, "the engine has failed");
    return status;
}

static double alignments_us(const struct ndtd_search_measurement *measurement,
                            const struct ndt_search_result *result)
{
    if (measurement->align_us)
        return measurement->align_us(result);
    return result->times_us.align_us + result->times_us.final_us;
}

/* Times one search without the aligner: all of it, and its alignments. */
static enum ndt_status time_search(const struct ndtd_search_measurement *measurement, const struct ndt_cloud *scan,
                                   const struct ndt_search_region *region, int on_engine, double *us,
                                   double *align_us, struct ndt_error *err)
{
    struct ndt_search_result result;
    pause_for(measurement->pause_s);
    const double start_us = measurement->now_us();
    const enum ndt_status status = run_search(measurement, scan, region, on_engine, &result, err);
    *us = measurement->now_us() - start_us;
    *align_us = alignments_us(measurement, &result);
    return status;
}

/* Times the alignments of one search with the aligner. Its failure is written to `out`, and no failure here. */
static enum ndt_status time_aligner(const struct ndtd_search_measurement *measurement, const struct ndt_cloud *scan,
                                    const struct ndt_search_region *region, struct ndtd_search_choice *out,
                                    double *us, struct ndt_error *err)
{
    struct ndt_search_result result;
    *us = INFINITY;
    if (!measurement->aligner || out->aligner_failure.text[0])
        return NDT_OK;
    pause_for(measurement->pause_s);
    ndt_search_lend_aligner(measurement->search, measurement->aligner, 0);
    const enum ndt_status status = run_search(measurement, scan, region, 0, &result, err);
    const char *failure = ndt_search_lent_failure(measurement->search);
    if (failure) {
        snprintf(out->aligner_failure.text, sizeof(out->aligner_failure.text), "%s", failure);
        out->aligner_us = INFINITY;
    } else
        *us = alignments_us(measurement, &result);
    ndt_search_lend_aligner(measurement->search, NULL, 0);
    return status;
}

static enum ndt_status take_rounds(const struct ndtd_search_measurement *measurement, const struct ndt_cloud *scan,
                                   const struct ndt_search_region *region, struct ndtd_search_choice *out,
                                   struct ndt_error *err)
{
    double spent_us = 0;
    for (int round = 0; round < ROUNDS && (round < 2 || spent_us < measurement->limit_us); round++) {
        double engine_us, threads_us, aligner_us, ignored_us, align_us;
        enum ndt_status status = time_search(measurement, scan, region, 1, &engine_us, &ignored_us, err);
        if (status == NDT_OK)
            status = time_search(measurement, scan, region, 0, &threads_us, &align_us, err);
        if (status == NDT_OK)
            status = time_aligner(measurement, scan, region, out, &aligner_us, err);
        if (status != NDT_OK)
            return status;
        if (round > 0) {
            out->engine_us = fmin(out->engine_us, engine_us);
            out->threads_us = fmin(out->threads_us, threads_us);
            out->aligner_us = fmin(out->aligner_us, aligner_us);
            out->align_threads_us = fmin(out->align_threads_us, align_us);
        }
        spent_us += engine_us + 2 * threads_us + 3e6 * measurement->pause_s;
    }
    out->is_engine = out->engine_us < out->threads_us;
    out->is_aligner = !out->aligner_failure.text[0] && out->aligner_us < out->align_threads_us;
    return NDT_OK;
}

enum ndt_status ndtd_search_choose(const struct ndtd_search_measurement *measurement,
                                   struct ndtd_search_choice *out, struct ndt_error *err)
{
    struct ndt_search_region region = {.has_position = 1, .radius_m = RADIUS_M};
    struct ndt_cloud scan;
    struct ndt_pose T_map_sensor;
    *out = (struct ndtd_search_choice){
        .engine_us = INFINITY, .threads_us = INFINITY, .aligner_us = INFINITY, .align_threads_us = INFINITY};
    ndt_cloud_init(&scan);
    enum ndt_status status = ndtd_probe_scan(&scan, &T_map_sensor, measurement->map, NULL, POINTS, err);
    for (int i = 0; i < 3; i++)
        region.position_m[i] = T_map_sensor.t_m[i];
    if (status == NDT_OK)
        status = take_rounds(measurement, &scan, &region, out, err);
    ndt_search_use_engine(measurement->search, 0);
    ndt_cloud_free(&scan);
    return status;
}
