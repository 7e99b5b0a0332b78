/** @file
 * @brief The points of several sensors as one scan in the base frame. */
#include "ndtd/scan_merge.h"

#include <math.h>
#include <stdlib.h>

#include "ndt/preprocess_math.h"
#include "ndt_track/track.h"

struct ndtd_scan_merge {
    struct ndt_cloud points; /* points of the held scans; times relative to first_ns */
    unsigned held;           /* bit i: a scan of sensor i is held */
    int has_times;           /* a sensor had times, for deskew auto; others get that of the stamp */
    int64_t first_ns;        /* stamp of the first held scan */
    struct ndtd_scan_merge_counters counters;
};

enum ndt_status ndtd_scan_merge_create(struct ndtd_scan_merge **out, struct ndt_error *err)
{
    *out = calloc(1, sizeof(**out));
    return *out ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory to merge scans");
}

void ndtd_scan_merge_destroy(struct ndtd_scan_merge *merge)
{
    if (!merge)
        return;
    ndt_cloud_free(&merge->points);
    free(merge);
}

void ndtd_scan_merge_reset(struct ndtd_scan_merge *merge)
{
    merge->held = 0;
    merge->points.count = 0;
}

void ndtd_scan_merge_release(struct ndtd_scan_merge *merge)
{
    ndtd_scan_merge_reset(merge);
    ndt_cloud_free(&merge->points);
}

struct ndtd_scan_merge_counters ndtd_scan_merge_counters(const struct ndtd_scan_merge *merge)
{
    return merge->counters;
}

struct ndt_preprocess_params ndtd_scan_merge_params(const struct ndt_preprocess_params *params)
{
    struct ndt_preprocess_params open = *params;
    open.min_range_m = open.range_offset_m = 0;
    open.max_range_m = 1e6; /* upper limit of the option */
    return open;
}

static void drop_incomplete(struct ndtd_scan_merge *merge)
{
    merge->counters.incomplete += (uint64_t)__builtin_popcount(merge->held);
    ndtd_scan_merge_reset(merge);
}

/* Corrects the ranges of points that were measured at t_m. */
static void lengthen(float *const out[3], size_t count, const double t_m[3], double offset_m)
{
    const float t[3] = {(float)t_m[0], (float)t_m[1], (float)t_m[2]};
    for (size_t i = 0; offset_m != 0 && i < count; i++) {
        float ray_m[3] = {out[0][i] - t[0], out[1][i] - t[1], out[2][i] - t[2]};
        ndt_preprocess_lengthen((float)offset_m, ray_m);
        for (int k = 0; k < 3; k++)
            out[k][i] = t[k] + ray_m[k];
    }
}

/* Writes points behind those of `to`, which has room, in the base frame; points outside the limits of range become
 * NaN. Plain loops that compilers vectorise. */
static void transform(const struct ndt_cloud *to, const struct ndt_cloud *from,
                      const struct ndt_pose *T_base_sensor, const struct ndt_preprocess_params *params)
{
    const double near_m2 = params->min_range_m * params->min_range_m,
                 far_m2 = params->max_range_m * params->max_range_m;
    const float *const x_m = from->x_m, *const y_m = from->y_m, *const z_m = from->z_m;
    double R[9], t_m[3];
    ndt_pose_rotation(T_base_sensor, R);
    ndt_pose_apply(T_base_sensor, from->origin_m, t_m);
    float *const out[3] = {to->x_m + to->count, to->y_m + to->count, to->z_m + to->count};
    for (int k = 0; k < 3; k++) {
        const float r[3] = {(float)R[3 * k], (float)R[3 * k + 1], (float)R[3 * k + 2]}, t = (float)t_m[k];
        float *const coordinate_m = out[k];
        for (size_t i = 0; i < from->count; i++)
            coordinate_m[i] = r[0] * x_m[i] + r[1] * y_m[i] + r[2] * z_m[i] + t;
    }
    for (size_t i = 0; i < from->count; i++) {
        const double x = (double)x_m[i], y = (double)y_m[i], z = (double)z_m[i], r2 = x * x + y * y + z * z;
        out[0][i] = r2 >= near_m2 && r2 <= far_m2 ? out[0][i] : NAN;
    }
    lengthen(out, from->count, t_m, params->range_offset_m);
}

static enum ndt_status append(struct ndtd_scan_merge *merge, const struct ndt_cloud *scan, double offset_s,
                              const struct ndt_pose *T_base_sensor, const struct ndt_preprocess_params *params,
                              struct ndt_error *err)
{
    struct ndt_cloud *points = &merge->points;
    const size_t at = points->count;
    merge->has_times |= params->deskew == NDT_DESKEW_TIME || (params->deskew == NDT_DESKEW_AUTO && scan->time_s);
    const unsigned fields = merge->has_times ? NDT_CLOUD_TIME : 0;
    const enum ndt_status status = ndt_cloud_reserve(points, at + scan->count, fields, err);
    if (status != NDT_OK || scan->count == 0)
        return status;
    transform(points, scan, T_base_sensor, params);
    for (size_t i = 0; points->time_s && i < scan->count; i++)
        points->time_s[at + i] = (scan->time_s ? scan->time_s[i] : 0) + (float)offset_s;
    points->count = at + scan->count;
    return NDT_OK;
}

/* Exchanges the clouds; times become relative to the stamp of the last scan. */
static void give_all(struct ndtd_scan_merge *merge, int64_t stamp_ns, struct ndt_cloud *points)
{
    const struct ndt_cloud spare = *points;
    const float shift_s = (float)ndt_track_seconds(stamp_ns, merge->first_ns);
    for (size_t i = 0; merge->points.time_s && i < merge->points.count; i++)
        merge->points.time_s[i] += shift_s;
    *points = merge->points;
    for (int k = 0; k < 3; k++)
        points->origin_m[k] = 0;
    merge->points = spare;
    ndtd_scan_merge_reset(merge);
    merge->counters.merged++;
}

static enum ndt_status check(const struct ndtd_settings *settings, const struct ndt_scan_header *scan,
                             const struct ndt_cloud *points, struct ndt_error *err)
{
    if (!ndtd_extrinsics_sensor(&settings->frames, scan->frame_id))
        return ndt_fail(err, NDT_ERR_FORMAT, "the frame_id '%s' is not one of frames.sensors", scan->frame_id);
    if (settings->preprocess.deskew == NDT_DESKEW_TIME && !points->time_s && points->count > 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "the scan has no time field, but preprocess.deskew is 'time'");
    return NDT_OK;
}

enum ndt_status ndtd_scan_merge_add(struct ndtd_scan_merge *merge, const struct ndtd_settings *settings,
                                    const struct ndt_scan_header *scan, struct ndt_cloud *points, int *is_complete,
                                    struct ndt_error *err)
{
    const struct ndtd_extrinsics *frames = &settings->frames;
    *is_complete = 0;
    enum ndt_status status = check(settings, scan, points, err);
    if (status != NDT_OK)
        return status;
    const struct ndtd_sensor_frame *sensor = ndtd_extrinsics_sensor(frames, scan->frame_id);
    const unsigned mine = 1u << (sensor - frames->sensors), all = (1u << frames->sensor_count) - 1;
    double offset_s = merge->held ? ndt_track_seconds(merge->first_ns, scan->stamp_ns) : 0;
    if (merge->held & mine || fabs(offset_s) > settings->preprocess.sweep_s) {
        drop_incomplete(merge);
        offset_s = 0;
    }
    status = append(merge, points, offset_s, &sensor->T_base_sensor, &settings->preprocess, err);
    if (status != NDT_OK)
        return status;
    if (!merge->held)
        merge->first_ns = scan->stamp_ns;
    merge->held |= mine;
    *is_complete = merge->held == all;
    if (*is_complete)
        give_all(merge, scan->stamp_ns, points);
    return NDT_OK;
}
