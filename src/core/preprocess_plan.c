#include "ndt/preprocess_plan.h"

#include <string.h>

#include "crop.h"
#include "ndt/preprocess_math.h"
#include "deskew.h"

_Static_assert((int)NDT_PREPROCESS_SEGMENTS == (int)NDT_DESKEW_SEGMENTS, "one sweep");

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
}

static void copy_deskew(struct ndt_preprocess_plan *out, const struct ndt_deskew *motion)
{
    out->start_s = motion->start_s;
    out->per_s = motion->per_s;
    for (int i = 0; i < NDT_PREPROCESS_SEGMENTS + 2; i++)
        memcpy(out->segments[i], motion->segments[i].columns, sizeof(out->segments[i]));
}

enum ndt_status ndt_preprocess_plan_set(struct ndt_preprocess_plan *out, const struct ndt_preprocess_params *params,
                                        const struct ndt_cloud *raw, uint64_t sequence,
                                        const struct ndt_twist *twist, struct ndt_error *err)
{
    struct ndt_crop crop;
    struct ndt_deskew motion = {0};
    struct ndt_deskew_span span;
    enum ndt_status status = ndt_crop_check(params, raw, err);
    if (status != NDT_OK)
        return status;
    *out = (struct ndt_preprocess_plan){.deskew = (int32_t)params->deskew,
                                        .filtered = params->voxel_m > 0,
                                        .wanted = params->sample_count,
                                        .voxel_m = (float)params->voxel_m,
                                        .seed = ndt_sample_seed(params->seed, sequence),
                                        .sweep_s = (float)params->sweep_s};
    if (twist)
        out->twist = *twist;
    ndt_crop_set(&crop, params);
    copy_crop(out, &crop);
    span = ndt_crop_span(&crop, raw);
    out->begin_s = span.start_s;
    out->end_s = span.end_s;
    out->reference_s = span.reference_s;
    out->times = ndt_filter_times_of(span.start_s, span.end_s);
    if (params->deskew != NDT_DESKEW_OFF)
        ndt_deskew_set(&motion, &out->twist, span.start_s, span.end_s, span.reference_s);
    copy_deskew(out, &motion);
    return NDT_OK;
}

void ndt_preprocess_plan_set_motion(struct ndt_preprocess_plan *plan, const struct ndt_twist *twist)
{
    struct ndt_deskew motion;
    if (plan->deskew == NDT_DESKEW_OFF)
        return;
    ndt_deskew_set_change(&motion, &plan->twist, twist, plan->begin_s, plan->end_s, plan->reference_s);
    copy_deskew(plan, &motion);
}
