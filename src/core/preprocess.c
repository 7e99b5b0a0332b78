/* Preprocessing on the CPU, and its plan for backends that preprocess on a device. */
#include "ndt/preprocess.h"

#include <stdlib.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndt/preprocess_plan.h"
#include "preprocess_steps.h"

struct ndt_preprocessor {
    struct ndt_cloud moved;   /* cropped and moved to the reference moment; without the filter only */
    struct ndt_cloud sampled; /* the result */
    struct ndt_cloud again;   /* the result with another motion */
    struct ndt_voxel_filter filter;
    uint32_t *picks; /* indices of the points or cells of the sample */
    size_t pick_capacity;
    struct ndt_crop crop;
    struct ndt_deskew deskewing;
    struct ndt_sweep_motion motion; /* the motion that was undone */
    enum ndt_deskew_mode deskew;
    struct ndt_sweep sweep;
};

/* Memory of one block of points. */
struct block_room {
    _Alignas(64) float values[4][NDT_BLOCK_POINTS + NDT_BLOCK_PAD];
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
        .sweep_stamp = NDT_STAMP_MIDDLE,
    };
}

enum ndt_status ndt_preprocessor_create(struct ndt_preprocessor **out, struct ndt_error *err)
{
    *out = calloc(1, sizeof(**out));
    return *out ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory for a preprocessor");
}

void ndt_preprocessor_release(struct ndt_preprocessor *pre)
{
    ndt_cloud_free(&pre->moved);
    ndt_cloud_free(&pre->sampled);
    ndt_cloud_free(&pre->again);
    ndt_voxel_filter_free(&pre->filter);
    free(pre->picks);
    pre->picks = NULL;
    pre->pick_capacity = 0;
}

void ndt_preprocessor_destroy(struct ndt_preprocessor *pre)
{
    if (!pre)
        return;
    ndt_preprocessor_release(pre);
    free(pre);
}

enum ndt_deskew_mode ndt_deskew_mode_of(enum ndt_deskew_mode mode, const struct ndt_cloud *raw)
{
    if (mode != NDT_DESKEW_AUTO)
        return mode;
    return raw->time_s ? NDT_DESKEW_TIME : NDT_DESKEW_OFF;
}

static struct ndt_point_block block_in(struct block_room *room)
{
    return (struct ndt_point_block){
        .x_m = room->values[0], .y_m = room->values[1], .z_m = room->values[2], .time_s = room->values[3]};
}

/* The points of a cloud from `first` on, as a block that may exceed NDT_BLOCK_POINTS. */
static struct ndt_point_block block_of(const struct ndt_cloud *cloud, size_t first)
{
    return (struct ndt_point_block){.count = cloud->count - first,
                                    .x_m = cloud->x_m + first,
                                    .y_m = cloud->y_m + first,
                                    .z_m = cloud->z_m + first,
                                    .time_s = cloud->time_s + first};
}

/* The usable points among the next NDT_BLOCK_POINTS, with their ranges corrected, moved to the reference moment. */
static void next_block(const struct ndt_preprocessor *pre, const struct ndt_cloud *raw, size_t first,
                       struct ndt_point_block *block)
{
    const double offset_m = pre->crop.params->range_offset_m;
    ndt_crop_block(&pre->crop, raw, first, block);
    if (offset_m != 0)
        ndt_range_offset_apply((float)offset_m, block);
    if (pre->deskew != NDT_DESKEW_OFF)
        ndt_deskew_apply(&pre->deskewing, block, block);
}

/* Asked before every block; looks at the clock every CLOCK_BLOCKS blocks. */
static int is_late(const struct ndt_preprocessor *pre, size_t at)
{
    enum { CLOCK_BLOCKS = 16 };
    const double deadline_us = pre->crop.params->deadline_us;
    return deadline_us > 0 && at % (CLOCK_BLOCKS * NDT_BLOCK_POINTS) == 0 && ndt_clock_us() >= deadline_us;
}

/* Returns 0 when the deadline has passed; so does move_all. */
static int filter_all(struct ndt_preprocessor *pre, const struct ndt_cloud *raw)
{
    ndt_voxel_filter_start(&pre->filter, pre->crop.params->voxel_m, pre->sweep.begin_s, pre->sweep.end_s);
    struct block_room room;
    struct ndt_point_block block = block_in(&room);
    for (size_t at = 0; at < raw->count; at += NDT_BLOCK_POINTS) {
        if (is_late(pre, at))
            return 0;
        next_block(pre, raw, at, &block);
        ndt_voxel_filter_add(&pre->filter, &block);
    }
    return 1;
}

static int move_all(struct ndt_preprocessor *pre, const struct ndt_cloud *raw)
{
    struct ndt_cloud *moved = &pre->moved;
    moved->count = 0;
    for (size_t at = 0; at < raw->count; at += NDT_BLOCK_POINTS) {
        if (is_late(pre, at))
            return 0;
        struct ndt_point_block block = block_of(moved, moved->count);
        next_block(pre, raw, at, &block);
        moved->count += block.count;
    }
    return 1;
}

/* Chooses exactly `wanted` of `count`, in their order, spread over the whole sweep. */
static void choose(uint32_t *picks, size_t count, size_t wanted, uint64_t seed)
{
    for (size_t j = 0; j < wanted; j++)
        picks[j] = ndt_sample_pick(seed, (uint32_t)j, (uint32_t)wanted, (uint32_t)count);
}

static void copy_picked(const struct ndt_cloud *in, const uint32_t *picks, size_t count, struct ndt_cloud *out)
{
    const float *const from[4] = {in->x_m, in->y_m, in->z_m, in->time_s};
    float *const to[4] = {out->x_m, out->y_m, out->z_m, out->time_s};
    for (int k = 0; k < 4; k++) {
        for (size_t i = 0; picks && i < count; i++)
            to[k][i] = from[k][picks[i]];
        if (!picks && count > 0)
            memcpy(to[k], from[k], count * sizeof(float));
    }
    out->count = count;
}

/* Samples the cells, or the points if they are not filtered. */
static void sample(struct ndt_preprocessor *pre, uint64_t seed)
{
    const struct ndt_preprocess_params *params = pre->crop.params;
    const int is_filtered = params->voxel_m > 0;
    const uint32_t *picks = NULL;
    size_t count = is_filtered ? pre->filter.count : pre->moved.count;
    if (params->sample_count > 0 && params->sample_count < count) {
        choose(pre->picks, count, params->sample_count, seed);
        picks = pre->picks;
        count = params->sample_count;
    }
    if (is_filtered)
        ndt_voxel_filter_means(&pre->filter, picks, count, &pre->sampled);
    else
        copy_picked(&pre->moved, picks, count, &pre->sampled);
}

static enum ndt_status reserve(struct ndt_preprocessor *pre, size_t points, struct ndt_error *err)
{
    const size_t with_pad = points + NDT_BLOCK_PAD; /* blocks are written in whole vectors */
    enum ndt_status status = ndt_cloud_reserve(&pre->sampled, points, NDT_CLOUD_TIME, err);
    if (status == NDT_OK)
        status = ndt_cloud_reserve(&pre->again, points, NDT_CLOUD_TIME, err);
    if (status == NDT_OK && pre->crop.params->voxel_m > 0)
        status = ndt_voxel_filter_reserve(&pre->filter, points, err);
    else if (status == NDT_OK)
        status = ndt_cloud_reserve(&pre->moved, with_pad, NDT_CLOUD_TIME, err);
    if (status != NDT_OK || with_pad <= pre->pick_capacity)
        return status;
    uint32_t *picks = realloc(pre->picks, with_pad * sizeof(*picks));
    if (!picks)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory to choose from %zu points", points);
    pre->picks = picks;
    pre->pick_capacity = with_pad;
    return NDT_OK;
}

enum ndt_status ndt_preprocess(struct ndt_preprocessor *pre, const struct ndt_preprocess_params *params,
                               const struct ndt_cloud *raw, const struct ndt_sweep *sweep, uint64_t sequence,
                               const struct ndt_sweep_motion *motion, const struct ndt_cloud **out,
                               struct ndt_error *err)
{
    enum ndt_status status = ndt_crop_check(params, raw, err);
    if (status != NDT_OK)
        return status;
    ndt_crop_set(&pre->crop, params, sweep);
    status = reserve(pre, raw->count, err);
    if (status != NDT_OK)
        return status;
    pre->deskew = params->deskew;
    pre->motion = motion ? *motion : (struct ndt_sweep_motion){.is_piecewise = 0};
    pre->sweep = *sweep;
    if (pre->deskew != NDT_DESKEW_OFF)
        ndt_deskew_set(&pre->deskewing, &pre->motion, &pre->sweep);
    if (!(params->voxel_m > 0 ? filter_all(pre, raw) : move_all(pre, raw)))
        return ndt_fail(err, NDT_ERR_CANCELLED, "no time left to preprocess it: the pose is the prediction");
    sample(pre, ndt_sample_seed(params->seed, sequence));
    *out = &pre->sampled;
    return NDT_OK;
}

enum ndt_status ndt_preprocess_again(struct ndt_preprocessor *pre, const struct ndt_sweep_motion *motion,
                                     const struct ndt_cloud **out, struct ndt_error *err)
{
    *out = &pre->sampled;
    if (pre->deskew == NDT_DESKEW_OFF)
        return NDT_OK;
    enum ndt_status status = ndt_cloud_reserve(&pre->again, pre->sampled.count, NDT_CLOUD_TIME, err);
    if (status != NDT_OK)
        return status;
    ndt_deskew_set_change(&pre->deskewing, &pre->motion, motion, &pre->sweep);
    const struct ndt_point_block from = block_of(&pre->sampled, 0);
    struct ndt_point_block to = block_of(&pre->again, 0);
    ndt_deskew_apply(&pre->deskewing, &from, &to);
    for (size_t i = 0; i < pre->sampled.count; i++)
        pre->again.time_s[i] = pre->sampled.time_s[i];
    pre->again.count = pre->sampled.count;
    *out = &pre->again;
    return NDT_OK;
}

/* ---- the plan ---- */

static void copy_crop(struct ndt_preprocess_plan *out, const struct ndt_crop *crop)
{
    const struct ndt_preprocess_params *params = crop->params;
    memcpy(out->low_m, crop->low_m, sizeof(out->low_m));
    memcpy(out->high_m, crop->high_m, sizeof(out->high_m));
    out->certain_low_m2 = crop->certain_low_m2;
    out->certain_high_m2 = crop->certain_high_m2;
    out->possible_low_m2 = crop->possible_low_m2;
    out->possible_high_m2 = crop->possible_high_m2;
    out->near_m2 = params->min_range_m * params->min_range_m;
    out->far_m2 = params->max_range_m * params->max_range_m;
    out->reference_us = crop->reference_us;
    out->begin_s = crop->begin_s;
    out->end_s = crop->end_s;
}

static void copy_deskew(struct ndt_preprocess_plan *out, const struct ndt_deskew *deskewing)
{
    out->start_s = deskewing->start_s;
    out->segments_per_s = deskewing->segments_per_s;
    for (int i = 0; i < NDT_PREPROCESS_BOUNDARIES; i++)
        memcpy(out->boundaries[i], deskewing->boundaries[i].columns, sizeof(out->boundaries[i]));
}

void ndt_preprocess_plan_set(struct ndt_preprocess_plan *out, const struct ndt_preprocess_params *params,
                             const struct ndt_sweep *sweep, uint64_t sequence,
                             const struct ndt_sweep_motion *motion)
{
    struct ndt_crop crop;
    struct ndt_deskew deskewing = {0};
    *out = (struct ndt_preprocess_plan){.deskew = (int32_t)params->deskew,
                                        .filtered = params->voxel_m > 0,
                                        .wanted = params->sample_count,
                                        .voxel_m = (float)params->voxel_m,
                                        .seed = ndt_sample_seed(params->seed, sequence),
                                        .range_offset_m = (float)params->range_offset_m,
                                        .sweep_s = (float)params->sweep_s,
                                        .times = ndt_filter_times_of(sweep->begin_s, sweep->end_s)};
    ndt_crop_set(&crop, params, sweep);
    copy_crop(out, &crop);
    if (params->deskew != NDT_DESKEW_OFF)
        ndt_deskew_set(&deskewing, motion, sweep);
    copy_deskew(out, &deskewing);
}

void ndt_preprocess_plan_set_motion(struct ndt_preprocess_plan *plan, const struct ndt_sweep *sweep,
                                    const struct ndt_sweep_motion *from, const struct ndt_sweep_motion *to)
{
    struct ndt_deskew deskewing;
    if (plan->deskew == NDT_DESKEW_OFF)
        return;
    ndt_deskew_set_change(&deskewing, from, to, sweep);
    copy_deskew(plan, &deskewing);
}
