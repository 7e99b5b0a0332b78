#define _GNU_SOURCE /* CPU sets */
#include "ndtd/settings.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "ndt/linalg.h"
#include "ndt/names.h"
#include "ndtd/nearest_name.h"
#include "ndtd/realtime.h"

/* Defaults of options outside the core; everything else is zero or empty. */
static const struct ndtd_settings daemon_defaults = {
    .backend = "auto",
    .deskew_passes = 1,
    .max_points = 1048576,
    .initial_pose = {0, 0, 0, 0, 0, 0, 1},
    .initial_pose_mode = NDTD_POSE_AUTO,
    .frames = {.T_base_sensor.q_xyzw[3] = 1, .T_base_imu.q_xyzw[3] = 1},
    .min_confidence = 0.8,
    .min_transform_probability = 3.0,
    .min_nvtl = 2.3,
    .recovery = {.enable = 1, .radius_m = 60, .max_speed_mps = 40, .max_acceleration_mps2 = 5, .check_s = 10},
    .autotune = 1,
    .autotune_limit_s = 1.2,
    .max_ahead_s = 0.2,
    .points_max = 20000,
    .high_water_mark = 64,
    .max_senders = 16,
    .max_connections = 32,
    .max_message_bytes = 64 << 20,
    .recording = {.queue_mb = 64, .min_free_mb = 500},
    .queue_depth = 3,
    .batch_max = 3,
    .dynamic_map = 1,
    .update_distance_m = 20,
    .map_radius_m = 150,
    .lidar_radius_m = 100,
    .search_limit_mb = 250,
    .log_level = NDTD_LEVEL_INFO,
};

void ndtd_settings_default(struct ndtd_settings *settings)
{
    *settings = daemon_defaults;
    ndt_backend_config_default(&settings->compute);
    ndt_map_config_default(&settings->map);
    ndt_align_params_default(&settings->align);
    settings->align.score_threshold = 0;
    ndt_preprocess_params_default(&settings->preprocess);
    settings->preprocess.deskew = NDT_DESKEW_AUTO;
    ndt_track_params_default(&settings->track);
    ndt_pose_covariance_params_default(&settings->pose_covariance);
    settings->neighbours_count = settings->align.level_count;
    for (size_t i = 0; i < settings->neighbours_count; i++)
        settings->neighbours[i] = settings->align.levels[i].neighbours;
    if (ndtd_settings_finish(settings, NULL) != NDT_OK)
        abort(); /* a wrong default, not wrong input */
}

static enum ndt_status check_backend(const struct ndtd_settings *settings, struct ndt_error *err)
{
    struct ndtd_nearest nearest = ndtd_nearest_start(settings->backend);
    char known[200] = "auto";
    ndtd_nearest_consider(&nearest, "auto");
    for (size_t i = 0; ndt_backend_at(i); i++) {
        ndtd_nearest_consider(&nearest, ndt_backend_at(i)->name);
        size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, ", %s", ndt_backend_at(i)->name);
    }
    if (settings->cuda_shape && settings->cuda_pipeline && strcmp(settings->cuda_pipeline, "resident") != 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "cuda.shape: '%s' is for cuda.pipeline: resident, not %s",
                        settings->cuda_shape, settings->cuda_pipeline);
    if (nearest.name && nearest.distance == 0)
        return NDT_OK;
    char hint[80];
    ndtd_nearest_hint(&nearest, hint, sizeof(hint));
    return ndt_fail(err, NDT_ERR_ARGUMENT, "backend.name: '%s' is not one of %s%s", settings->backend, known, hint);
}

static enum ndt_status check_levels(const struct ndtd_settings *settings, struct ndt_error *err)
{
    const struct ndt_align_params *align = &settings->align;
    for (size_t i = 1; i < align->level_count; i++)
        if (!(align->levels[i].leaf_m < align->levels[i - 1].leaf_m))
            return ndt_fail(err, NDT_ERR_ARGUMENT,
                            "ndt.levels: %g m after %g m, but the order is from coarse to fine",
                            align->levels[i].leaf_m, align->levels[i - 1].leaf_m);
    if (align->variant == NDT_AUTOWARE && align->level_count != 1)
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "ndt.levels: %zu levels, but ndt.variant autoware needs exactly one, such as [2.0]",
                        align->level_count);
    return NDT_OK;
}

static enum ndt_status check_ranges(const struct ndtd_settings *settings, struct ndt_error *err)
{
    const struct ndt_preprocess_params *pre = &settings->preprocess;
    if (!(pre->min_range_m < pre->max_range_m))
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "preprocess.min_range_m: %g m is not below preprocess.max_range_m, %g m", pre->min_range_m,
                        pre->max_range_m);
    if (pre->range_offset_m < 0 && !(pre->min_range_m + pre->range_offset_m > 0))
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "preprocess.range_offset_m: %g m leaves nothing of preprocess.min_range_m, %g m",
                        pre->range_offset_m, pre->min_range_m);
    for (int i = 0; i < 3; i++)
        if (!(pre->crop_min_m[i] < pre->crop_max_m[i]))
            return ndt_fail(err, NDT_ERR_ARGUMENT,
                            "preprocess.crop_min_m: %g m (%c) is not below preprocess.crop_max_m, %g m",
                            pre->crop_min_m[i], "xyz"[i], pre -> crop_max_m[i]);
    return NDT_OK;
}

/* Checks frames.*: points of several sensors in the base frame have no azimuth that tells a time. */
static enum ndt_status check_frames(const struct ndtd_settings *settings, struct ndt_error *err)
{
    const enum ndt_deskew_mode deskew = settings->preprocess.deskew;
    const enum ndt_status status = ndtd_extrinsics_check(&settings->frames, err);
    if (status == NDT_OK && settings->frames.merge_sensors &&
        (deskew == NDT_DESKEW_AZIMUTH_CW || deskew == NDT_DESKEW_AZIMUTH_CCW))
        return ndt_fail(
            err, NDT_ERR_ARGUMENT,
            "frames.merge_sensors: preprocess.deskew is '%s', but merged scans can be deskewed by time only",
            ndt_label_name(ndt_deskew_labels, (int)deskew));
    return status;
}

static enum ndt_status check_cpus(const struct ndtd_settings *settings, struct ndt_error *err)
{
    cpu_set_t cpus;
    return ndtd_cpu_list_parse(settings->rt_cpus, &cpus, err);
}

static enum ndt_status check_covariance(const struct ndtd_settings *settings, struct ndt_error *err)
{
    const struct ndt_pose_covariance_params *params = &settings->pose_covariance;
    double root[36];
    memcpy(root, params->fixed, sizeof(root));
    for (int i = 0; i < 36; i++)
        if (params->fixed[i] != params->fixed[6 * (i % 6) + i / 6])
            return ndt_fail(err, NDT_ERR_ARGUMENT, "covariance.output_pose_covariance: %g and %g are not symmetric",
                            params->fixed[i], params->fixed[6 * (i % 6) + i / 6]);
    if (!ndt_factor_cholesky(6, root))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "covariance.output_pose_covariance: not positive definite");
    return NDT_OK;
}

static enum ndt_status check_offsets(const struct ndtd_settings *settings, struct ndt_error *err)
{
    const struct ndt_pose_covariance_params *params = &settings->pose_covariance;
    if (params->offset_x_count != params->offset_y_count)
        return ndt_fail(
            err, NDT_ERR_ARGUMENT,
            "covariance.covariance_estimation.initial_pose_offset_model_x: %zu offsets, but model_y has "
            "%zu",
            params->offset_x_count, params->offset_y_count);
    return NDT_OK;
}

/* Checks map.extend, which needs priors: the path beyond the edge is the prior of the alignment where the map is
 * met again. */
static enum ndt_status check_extension(const struct ndtd_settings *settings, struct ndt_error *err)
{
    if (!settings->extend_map)
        return NDT_OK;
    if (ndtd_settings_has_no_map(settings))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "map.extend: there is no map to extend, map.path is none");
    if (settings->align.variant != NDT_ROBUST || settings->prior == NDTD_PRIOR_OFF || !settings->recovery.enable)
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "map.extend: needs ndt.variant robust, ndt.prior auto and recovery.enable true");
    return NDT_OK;
}

/* Checks integrity.*, which need priors: levels are those of the estimator. */
static enum ndt_status check_integrity(const struct ndtd_settings *settings, struct ndt_error *err)
{
    if (settings->alert_limit_m > 0 && settings->integrity_risk <= 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "integrity.alert_limit_m: needs an integrity.risk above 0");
    if (settings->integrity_risk > 0 && (settings->align.variant != NDT_ROBUST ||
                                         settings->prior == NDTD_PRIOR_OFF || ndtd_settings_has_no_map(settings)))
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "integrity.risk: needs a map, ndt.variant robust and ndt.prior auto");
    return NDT_OK;
}

static void derive(struct ndtd_settings *settings)
{
    struct ndt_align_params *align = &settings->align;
    settings->compute.pipeline = ndt_pipeline_name(settings->cuda_pipeline, settings->cuda_shape);
    settings->map.level_count = align->level_count;
    align->noise = settings->track.noise;
    align->min_transform_probability =
        settings->score_condition == NDTD_SCORE_TRANSFORM_PROBABILITY ? settings->min_transform_probability : 0;
    align->min_nvtl = settings->score_condition == NDTD_SCORE_NVTL ? settings->min_nvtl : 0;
    for (size_t i = 0; i < align->level_count; i++) {
        settings->map.leaf_m[i] = align->levels[i].leaf_m;
        const size_t from_finest = align->level_count - i; /* 1 = the finest */
        const size_t given = settings->neighbours_count;
        align->levels[i].neighbours = settings->neighbours[from_finest > given ? 0 : given - from_finest];
    }
}

void ndtd_settings_check(const struct ndtd_settings *settings, struct ndtd_faults *faults)
{
    static enum ndt_status (*const checks[])(const struct ndtd_settings *settings, struct ndt_error *err) = {
        check_backend,    check_levels,  check_ranges,    check_frames,   check_cpus,
        check_covariance, check_offsets, check_extension, check_integrity};
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        struct ndt_error why = {""};
        if (checks[i](settings, &why) != NDT_OK)
            ndtd_faults_add(faults, "%s", why.text);
    }
}

enum ndt_status ndtd_settings_finish(struct ndtd_settings *settings, struct ndt_error *err)
{
    struct ndtd_faults faults = {0};
    ndtd_settings_check(settings, &faults);
    if (faults.count == 0)
        derive(settings);
    return ndtd_faults_status(&faults, err);
}

int ndtd_settings_starts_at_pose(const struct ndtd_settings *settings)
{
    return settings->has_initial_pose && settings->initial_pose_mode != NDTD_POSE_SEARCH;
}

int ndtd_settings_has_no_map(const struct ndtd_settings *settings)
{
    return strcmp(settings->map_path, "none") == 0;
}

double ndtd_settings_budget_s(const struct ndtd_settings *settings)
{
    return settings->budget_s > 0 ? settings->budget_s : NDTD_BUDGET_S;
}

int ndtd_settings_threads(const struct ndtd_settings *settings)
{
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
    if (settings->compute.threads > 0)
        return settings->compute.threads;
    return count < 4 ? count : 4;
}

int ndtd_settings_allow_backend(const struct ndtd_settings *settings, const char *name)
{
    return settings->isolation != NDTD_ISOLATION_ON || strcmp(name, "cuda") != 0;
}
