#include "cuda_scores.h"

#include <string.h>

#include "kernels.h"

_Static_assert(sizeof(struct ndt_gpu_scores) <= NDT_CUDA_SCORES_HEAD, "the head fits in front of the poses");

/* Number of parts of a scan, at least one. */
static uint32_t parts_of(uint32_t points)
{
    return points == 0 ? 1 : (points + NDT_GPU_SCORE_POINTS - 1) / NDT_GPU_SCORE_POINTS;
}

static size_t slice_of(uint32_t parts)
{
    const size_t most = NDT_CUDA_SCORE_PARTS / parts;
    return most > NDT_CUDA_POSES ? NDT_CUDA_POSES : most > 0 ? most : 1;
}

/* The head of the upload; the poses follow it. */
static void fill_head(struct ndt_cuda_scores *scores, const struct ndt_score_scale *scale, uint32_t parts)
{
    char *memory = scores->memory + scores->plan->scores;
    *(struct ndt_gpu_scores *)(void *)(scores->pinned + scores->plan->pinned_scores) = (struct ndt_gpu_scores){
        .scale = *scale,
        .poses = (const struct ndt_packed_pose *)(const void *)(memory + NDT_CUDA_SCORES_HEAD),
        .sums = (struct ndt_score_sums *)(void *)(scores->memory + scores->plan->score_sums),
        .parts = parts};
    scores->job.scores = (const struct ndt_gpu_scores *)(const void *)memory;
}

static struct ndt_packed_pose *pinned_poses(const struct ndt_cuda_scores *scores)
{
    return (struct ndt_packed_pose *)(void *)(scores->pinned + scores->plan->pinned_scores + NDT_CUDA_SCORES_HEAD);
}

/* Queues the copies and the kernel for `count` poses. */
static enum ndt_status queue_slice(struct ndt_cuda_scores *scores, size_t count, uint32_t parts,
                                   struct ndt_error *err)
{
    const struct ndt_cuda_plan *plan = scores->plan;
    struct ndt_cuda_device *device = scores->device;
    const size_t bytes = NDT_CUDA_SCORES_HEAD + count * sizeof(struct ndt_packed_pose);
    enum ndt_status status =
        ndt_cuda_upload(device, scores->memory + plan->scores, scores->pinned + plan->pinned_scores, bytes, err);
    if (status == NDT_OK)
        status = ndt_cuda_clock_start(device, err);
    if (status == NDT_OK)
        status = ndt_cuda_launch(device, ndt_kernel_score_poses(), (unsigned)(count * parts), &scores->job, err);
    if (status == NDT_OK)
        status = ndt_cuda_clock_stop(device, err);
    if (status == NDT_OK)
        status =
            ndt_cuda_download(device, scores->pinned + plan->pinned_score_sums, scores->memory + plan->score_sums,
                              count * parts * sizeof(struct ndt_score_sums), err);
    return status;
}

/* Turns the sums of the parts into scores. */
static void take(const struct ndt_cuda_scores *scores, const struct ndt_map_level *level, size_t count,
                 uint32_t parts, struct ndt_pose_score *out)
{
    const struct ndt_score_sums *from =
        (const struct ndt_score_sums *)(const void *)(scores->pinned + scores->plan->pinned_score_sums);
    for (size_t i = 0; i < count; i++) {
        struct ndt_score_sums sums = {0};
        for (uint32_t part = 0; part < parts; part++, from++) {
            sums.score += from->score;
            sums.nearest += from->nearest;
            sums.matched += from->matched;
            sums.pairs += from->pairs;
        }
        ndt_score_unpack(&sums, level, &out[i]);
    }
}

static enum ndt_status score_slice(struct ndt_cuda_scores *scores, const struct ndt_score_request *request,
                                   size_t first, size_t count, uint32_t parts, struct ndt_pose_score *out,
                                   struct ndt_error *err)
{
    const struct ndt_map_level *level = &scores->map->levels[request->level];
    struct ndt_packed_pose *packed = pinned_poses(scores);
    for (size_t i = 0; i < count; i++)
        ndt_score_pack(&request->poses[first + i], level->leaf_m, &packed[i]);
    enum ndt_status status = queue_slice(scores, count, parts, err);
    if (status == NDT_OK)
        status = ndt_cuda_wait(scores->device, err);
    if (status == NDT_OK)
        status = ndt_cuda_add_kernel_time(scores->device, err);
    if (status == NDT_OK)
        take(scores, level, count, parts, out + first);
    return status;
}

/* Sets the level and the scan of the job; a scan that only the device knows counts as empty. */
static enum ndt_status set_job(struct ndt_cuda_scores *scores, const struct ndt_score_request *request,
                               struct ndt_error *err)
{
    const struct ndt_cuda_resident *scans = scores->scans;
    enum ndt_status status = ndt_score_check(scores->map, request, err);
    if (status != NDT_OK)
        return status;
    if (request->scan > 0 && request->scan >= scans->scan_count)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "scan %u of %zu", request->scan, scans->scan_count);
    const struct ndt_cuda_scan *scan = &scans->scans[request->scan];
    const float *const x_m = (const float *)(void *)(scores->memory + scores->plan->scan) + scan->at;
    const size_t column = (size_t)scan->blocks * NDT_GPU_BLOCK;
    scores->job = (struct ndt_gpu_job){.level = scores->on_device->levels[request->level],
                                       .x_m = x_m,
                                       .y_m = x_m + column,
                                       .z_m = x_m + 2 * column,
                                       .count = scans->scan_count > 0 && !scans->preprocess ? scan->count : 0,
                                       .neighbours = (int32_t)request->neighbours};
    return NDT_OK;
}

enum ndt_status ndt_cuda_score_poses(struct ndt_cuda_scores *scores, const struct ndt_score_request *request,
                                     struct ndt_pose_score *out, size_t *done, struct ndt_error *err)
{
    *done = 0;
    memset(out, 0, request->count * sizeof(*out));
    enum ndt_status status = set_job(scores, request, err);
    if (status != NDT_OK)
        return status;
    const struct ndt_score_scale scale = ndt_score_scale_of(&scores->map->levels[request->level]);
    const uint32_t parts = parts_of(scores->job.count);
    const size_t most = slice_of(parts);
    fill_head(scores, &scale, parts);
    while (*done < request->count && (!request->goes_on || request->goes_on(request->context, *done))) {
        const size_t left = request->count - *done, count = left < most ? left : most;
        status = score_slice(scores, request, *done, count, parts, out, err);
        if (status != NDT_OK)
            break;
        *done += count;
    }
    scores->device->counters.evaluations += *done;
    return status;
}

enum ndt_status ndt_cuda_scores_warm_up(struct ndt_cuda_scores *scores, struct ndt_error *err)
{
    const struct ndt_score_scale scale = {0};
    pinned_poses(scores)[0] = (struct ndt_packed_pose){.unused = 0};
    fill_head(scores, &scale, 1);
    return queue_slice(scores, 1, 1, err);
}
