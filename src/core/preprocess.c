#include "ndt/preprocess.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sweep.h"
#include "voxel_filter.h"

struct ndt_preprocessor {
    struct ndt_cloud kept;     /* cropped and moved to the reference moment; time_s is set */
    struct ndt_cloud filtered; /* one point per cell */
    struct ndt_cloud sampled;  /* what is matched */
    struct ndt_cloud again;    /* the same after another motion */
    struct ndt_voxel_filter filter;
    struct ndt_sweep sweep;
    struct ndt_twist twist; /* the motion that was undone */
    enum ndt_deskew deskew;
    double start_s, end_s, reference_s;
};

void ndt_preprocess_params_default(struct ndt_preprocess_params *params)
{
    *params = (struct ndt_preprocess_params){
        .min_range_m = 1.0,
        .max_range_m = 200.0,
        .crop_min_m = {-1000, -1000, -1000},
        .crop_max_m = {1000, 1000, 1000},
        .voxel_m = 0.5,
        .sample_count = 1500,
        .seed = 1,
        .deskew = NDT_DESKEW_OFF,
        .sweep_s = 0.1,
    };
}

enum ndt_status ndt_preprocessor_create(struct ndt_preprocessor **out, struct ndt_error *err)
{
    *out = calloc(1, sizeof(**out));
    return *out ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory for a preprocessor");
}

void ndt_preprocessor_destroy(struct ndt_preprocessor *pre)
{
    if (!pre)
        return;
    ndt_cloud_free(&pre->kept);
    ndt_cloud_free(&pre->filtered);
    ndt_cloud_free(&pre->sampled);
    ndt_cloud_free(&pre->again);
    ndt_voxel_filter_free(&pre->filter);
    free(pre);
}

static int keep_point(const struct ndt_preprocess_params *params, const float p_m[3])
{
    const double x = p_m[0], y = p_m[1], z = p_m[2], r2 = x * x + y * y + z * z;
    /* comparisons with NaN are false */
    if (!(r2 >= params->min_range_m * params->min_range_m && r2 <= params->max_range_m * params->max_range_m))
        return 0;
    for (int k = 0; k < 3; k++)
        if (!(p_m[k] >= params->crop_min_m[k] && p_m[k] <= params->crop_max_m[k]))
            return 0;
    return 1;
}

static float point_time(const struct ndt_preprocess_params *params, const struct ndt_cloud *raw, size_t i)
{
    if (params->deskew == NDT_DESKEW_OFF)
        return 0;
    if (params->deskew == NDT_DESKEW_TIME)
        return raw->time_s[i];
    return ndt_sweep_azimuth_time(raw->x_m[i], raw->y_m[i], params->sweep_s,
                                  params->deskew == NDT_DESKEW_AZIMUTH_CW);
}

/* Usable points with their times, not yet moved. */
static void crop(struct ndt_preprocessor *pre, const struct ndt_preprocess_params *params,
                 const struct ndt_cloud *raw)
{
    struct ndt_cloud *kept = &pre->kept;
    float first_s = INFINITY, last_s = -INFINITY;
    kept->count = 0;
    for (size_t i = 0; i < raw->count; i++) {
        const float p_m[3] = {raw->x_m[i], raw->y_m[i], raw->z_m[i]};
        if (!keep_point(params, p_m))
            continue;
        const float time_s = point_time(params, raw, i);
        if (!isfinite(time_s))
            continue;
        const size_t at = kept->count++;
        kept->x_m[at] = p_m[0];
        kept->y_m[at] = p_m[1];
        kept->z_m[at] = p_m[2];
        kept->time_s[at] = time_s;
        first_s = fminf(first_s, time_s);
        last_s = fmaxf(last_s, time_s);
    }
    if (params->deskew == NDT_DESKEW_TIME && kept->count > 0) {
        pre->start_s = first_s;
        pre->end_s = last_s;
        pre->reference_s = ((double)first_s + (double)last_s) / 2;
    } else {
        pre->start_s = -params->sweep_s / 2;
        pre->end_s = params->sweep_s / 2;
        pre->reference_s = 0;
    }
}

static void move_points(const struct ndt_sweep *sweep, const struct ndt_cloud *in, struct ndt_cloud *out)
{
    for (size_t i = 0; i < in->count; i++) {
        float p_m[3] = {in->x_m[i], in->y_m[i], in->z_m[i]};
        ndt_sweep_apply(sweep, in->time_s[i], p_m);
        out->x_m[i] = p_m[0];
        out->y_m[i] = p_m[1];
        out->z_m[i] = p_m[2];
    }
}

static uint64_t random_next(uint64_t *state) /* splitmix64 (Steele, Lea, Flood 2014) */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Selection sampling (Knuth, TAOCP 2, algorithm S): exactly `wanted` points, in their order. */
static void sample(const struct ndt_cloud *in, size_t wanted, uint64_t seed, struct ndt_cloud *out)
{
    uint64_t state = seed;
    out->count = 0;
    for (size_t i = 0; i < in->count && out->count < wanted; i++) {
        const uint64_t left = in->count - i, needed = wanted - out->count;
        if ((random_next(&state) >> 32) * left >> 32 >= needed)
            continue;
        const size_t at = out->count++;
        out->x_m[at] = in->x_m[i];
        out->y_m[at] = in->y_m[i];
        out->z_m[at] = in->z_m[i];
        out->time_s[at] = in->time_s[i];
    }
}

static enum ndt_status reserve(struct ndt_preprocessor *pre, size_t points, struct ndt_error *err)
{
    struct ndt_cloud *clouds[] = {&pre->kept, &pre->filtered, &pre->sampled, &pre->again};
    for (size_t i = 0; i < sizeof(clouds) / sizeof(clouds[0]); i++) {
        enum ndt_status status = ndt_cloud_reserve(clouds[i], points, NDT_CLOUD_TIME, err);
        if (status != NDT_OK)
            return status;
    }
    return NDT_OK;
}

enum ndt_status ndt_preprocess(struct ndt_preprocessor *pre, const struct ndt_preprocess_params *params,
                               const struct ndt_cloud *raw, uint64_t sequence, const struct ndt_twist *twist,
                               const struct ndt_cloud **out, double *reference_s, struct ndt_error *err)
{
    if (params->deskew == NDT_DESKEW_TIME && !raw->time_s && raw->count > 0)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "the scan has no time field, but preprocess.deskew is 'time'; azimuth_cw, azimuth_ccw and "
                        "off need none");
    enum ndt_status status = reserve(pre, raw->count, err);
    if (status != NDT_OK)
        return status;
    pre->deskew = params->deskew;
    pre->twist = twist ? *twist : (struct ndt_twist){0};
    crop(pre, params, raw);
    if (pre->deskew != NDT_DESKEW_OFF) {
        ndt_sweep_set(&pre->sweep, &pre->twist, pre->start_s, pre->end_s, pre->reference_s);
        move_points(&pre->sweep, &pre->kept, &pre->kept);
    }
    const struct ndt_cloud *points = &pre->kept;
    if (params->voxel_m > 0) {
        status = ndt_voxel_filter_run(&pre->filter, &pre->kept, params->voxel_m, &pre->filtered, err);
        if (status != NDT_OK)
            return status;
        points = &pre->filtered;
    }
    const size_t wanted = params->sample_count > 0 ? params->sample_count : points->count;
    sample(points, wanted, params->seed * 0x9e3779b97f4a7c15u + sequence, &pre->sampled);
    *out = &pre->sampled;
    *reference_s = pre->reference_s;
    return NDT_OK;
}

enum ndt_status ndt_preprocess_again(struct ndt_preprocessor *pre, const struct ndt_twist *twist,
                                     const struct ndt_cloud **out, struct ndt_error *err)
{
    *out = &pre->sampled;
    if (pre->deskew == NDT_DESKEW_OFF)
        return NDT_OK;
    enum ndt_status status = ndt_cloud_reserve(&pre->again, pre->sampled.count, NDT_CLOUD_TIME, err);
    if (status != NDT_OK)
        return status;
    ndt_sweep_set_change(&pre->sweep, &pre->twist, twist, pre->start_s, pre->end_s, pre->reference_s);
    move_points(&pre->sweep, &pre->sampled, &pre->again);
    memcpy(pre->again.time_s, pre->sampled.time_s, pre->sampled.count * sizeof(float));
    pre->again.count = pre->sampled.count;
    *out = &pre->again;
    return NDT_OK;
}
