/** @file
 * @brief The CUDA backend: the part that all pipelines share.
 *
 * Memory is allocated only at open and for a map that is larger than all previous ones (twice with set_map_async:
 * for the map in use and for the next). Per evaluation: the pipeline's kernels, launched with 24 bytes, one row of
 * sums that the last of them writes into memory of the host, one synchronisation, no copy. For the information: one
 * kernel more, NDT_GPU_PLANES rows. */
#include "ndt_cuda/cuda_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_diagnostics.h"
#include "cuda_local.h"
#include "cuda_map.h"
#include "cuda_pipeline.h"
#include "cuda_plan.h"
#include "cuda_preprocess.h"
#include "cuda_resident.h"
#include "cuda_scans.h"
#include "cuda_scores.h"
#include "kernels.h"
#include "ndt_cuda/pipelines.h"

#ifndef NDT_CUDA_NAME /* a test build has another one */
#define NDT_CUDA_NAME "cuda"
#endif

/* Part of the time until a deadline that an evaluation may take before the device counts as lost. The rest is for
 * the CPU, which makes the other evaluations. */
static const double EVALUATION_PART = 0.3;

#define NAME(kernels, shape, name, about) name,
static const char *const pipeline_names[] = {NDT_CUDA_PIPELINES(NAME) NULL};

struct cuda_backend {
    struct ndt_backend base;
    const struct ndt_cuda_pipeline *pipeline;
    struct ndt_cuda_device device;
    struct ndt_cuda_facts facts;
    struct ndt_cuda_plan plan;
    size_t local_bytes; /* local memory that the driver reserves for stacks */
    char *memory;       /* memory of the device, see the plan */
    char *pinned;
    int has_mapped_sums; /* kernels write the sums into pinned memory; else these are downloaded */
    struct ndt_map *map;
    struct ndt_cuda_map on_device;
    struct ndt_cuda_map_upload upload;
    int has_warned; /* the log has the warning that two maps do not fit */
    struct ndt_gpu_job job;
    struct ndt_cuda_scans scans;
    struct ndt_cuda_resident resident;
    struct ndt_cuda_preprocess preprocess;
};

static enum ndt_status cuda_probe(int device, struct ndt_error *why)
{
    struct ndt_cuda_facts facts;
    struct ndt_cuda_plan least;
    enum ndt_status status = ndt_cuda_facts(&facts, device, why);
    ndt_cuda_plan_make(&least, &ndt_cuda_pipelines[0], 1, 0);
    if (status == NDT_OK && facts.bytes < least.device_bytes)
        return ndt_fail(why, NDT_ERR_UNSUPPORTED, "%s has only %llu bytes of memory", facts.name, facts.bytes);
    return status;
}

static void cuda_close(struct ndt_backend *backend)
{
    struct cuda_backend *cuda = (struct cuda_backend *)backend;
    if (!cuda)
        return;
    ndt_cuda_resident_close(&cuda->resident);
    ndt_cuda_map_upload_free(&cuda->upload, &cuda->device);
    ndt_cuda_map_free(&cuda->on_device, &cuda->device);
    ndt_cuda_release(&cuda->device, cuda->memory);
    ndt_cuda_release_pinned(&cuda->device, cuda->pinned);
    ndt_cuda_device_close(&cuda->device);
    ndt_map_release(cuda->map);
    free(cuda);
}

static void place_buffers(struct cuda_backend *cuda)
{
    const struct ndt_cuda_plan *plan = &cuda->plan;
    struct ndt_gpu_job *job = &cuda->job;
    const float *scan = (const float *)(void *)(cuda->memory + plan->scan);
    job->stride = plan->stride;
    job->x_m = scan;
    job->y_m = scan + plan->stride;
    job->z_m = scan + 2 * plan->stride;
    job->sums = ndt_cuda_mapped(&cuda->device, cuda->pinned + plan->pinned_sums);
    cuda->has_mapped_sums = job->sums != NULL;
    if (!cuda->has_mapped_sums)
        job->sums = (double *)(void *)(cuda->memory + plan->sums);
    job->ticket = (uint32_t *)(void *)(cuda->memory + plan->ticket);
    job->block_sums = (double *)(void *)(cuda->memory + plan->block_sums);
    cuda->upload.pinned = cuda->pinned + plan->pinned_staging;
    cuda->scans.pinned = cuda->pinned;
    cuda->pipeline->place(job, (float *)(void *)(cuda->memory + plan->buffers));
}

/* Completes the error after NDT_ERR_MEMORY. The free memory is asked for only now: on devices that share the memory
 * of the host it is too little, and an allocation may succeed nevertheless. */
static enum ndt_status refuse(struct cuda_backend *cuda, struct ndt_error *err)
{
    const struct ndt_cuda_plan *plan = &cuda->plan;
    const size_t local = cuda->local_bytes;
    size_t free_bytes;
    enum ndt_status status = ndt_cuda_free_bytes(&cuda->device, &free_bytes, err);
    if (status != NDT_OK)
        return status;
    return ndt_fail(err, NDT_ERR_MEMORY,
                    "backend.max_points %zu with cuda.pipeline %s needs %zu bytes, and %zu for the stacks of its "
                    "kernels; %s has %zu free, enough for %zu points",
                    plan->max_points, cuda->pipeline->name, plan->device_bytes, local, cuda->facts.name, free_bytes,
                    free_bytes > local
                        ? ndt_cuda_points_that_fit(cuda->pipeline, free_bytes - local, plan->preprocess_slots > 0)
                        : 0);
}

/* Clears memory. The ticket begins at zero. The rest is copied down before all of it is written: the trace of an
 * alignment has room for rows that the alignment does not make, and the cost of a copy is measured without sums. */
static enum ndt_status clear_memory(struct cuda_backend *cuda, struct ndt_error *err)
{
    const struct ndt_cuda_plan *plan = &cuda->plan;
    const struct {
        size_t at, bytes;
    } parts[] = {{plan->ticket, sizeof(uint32_t)},
                 {plan->sums, NDT_GPU_PLANES * NDT_GPU_ROW * sizeof(double)},
                 {plan->batch, plan->batch_bytes}};
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status == NDT_OK; i++)
        if (parts[i].bytes > 0)
            status = ndt_cuda_clear(&cuda->device, cuda->memory + parts[i].at, parts[i].bytes, err);
    return status;
}

static enum ndt_status allocate(struct cuda_backend *cuda, struct ndt_error *err)
{
    const struct ndt_cuda_plan *plan = &cuda->plan;
    void *memory = NULL, *pinned = NULL;
    enum ndt_status status = ndt_cuda_allocate(&cuda->device, &memory, plan->device_bytes, "scans and sums", err);
    if (status == NDT_ERR_MEMORY)
        return refuse(cuda, err);
    cuda->memory = memory;
    if (status == NDT_OK)
        status = ndt_cuda_allocate_pinned(&cuda->device, &pinned, plan->pinned_bytes, "staging scans", err);
    cuda->pinned = pinned;
    if (status == NDT_OK)
        status = clear_memory(cuda, err);
    if (status == NDT_OK)
        place_buffers(cuda);
    return status;
}

/* Refuses a launch for lack of memory: the first launch of a kernel makes the driver reserve its stacks. */
static enum ndt_status refuse_if_full(struct cuda_backend *cuda, enum ndt_status status, struct ndt_error *err)
{
    if (status != NDT_ERR_MEMORY)
        return status;
    ndt_cuda_release(&cuda->device, cuda->memory);
    cuda->memory = NULL;
    return refuse(cuda, err);
}

/* Launches the kernels between job.angles and the rows of job.sums. Those of an evaluation come last, so that its
 * sums have the same bits with and without the information. */
static enum ndt_status launch(struct cuda_backend *cuda, int wants_information, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    if (wants_information)
        status = ndt_cuda_launch(&cuda->device, ndt_kernel_inform(), cuda->job.blocks, &cuda->job, err);
    return status == NDT_OK ? cuda->pipeline->launch(&cuda->device, &cuda->job, err) : status;
}

static struct ndt_cuda_scores borrow_for_scores(struct cuda_backend *cuda)
{
    return (struct ndt_cuda_scores){.device = &cuda->device,
                                    .plan = &cuda->plan,
                                    .memory = cuda->memory,
                                    .pinned = cuda->pinned,
                                    .map = cuda->map,
                                    .on_device = &cuda->on_device,
                                    .scans = &cuda->resident};
}

/* Launches every kernel once without points, so that the first evaluation does not have to load it and a device
 * that this build has no code for is refused here. */
static enum ndt_status warm_up(struct cuda_backend *cuda, struct ndt_error *err)
{
    cuda->job.blocks = 1;
    enum ndt_status status = launch(cuda, 1, err);
    cuda->job.blocks = 0;
    struct ndt_cuda_scores scores = borrow_for_scores(cuda);
    if (status == NDT_OK)
        status = ndt_cuda_scores_warm_up(&scores, err);
    if (status == NDT_OK)
        status = ndt_cuda_wait(&cuda->device, err);
    if (status != NDT_OK || cuda->pipeline->shape == NDT_CUDA_HOST)
        return status;
    cuda->resident = (struct ndt_cuda_resident){.shape = cuda->pipeline->shape,
                                                .device = &cuda->device,
                                                .facts = &cuda->facts,
                                                .plan = &cuda->plan,
                                                .memory = cuda->memory,
                                                .pinned = cuda->pinned};
    status = ndt_cuda_resident_warm_up(&cuda->resident, err);
    if (status != NDT_OK || cuda->plan.preprocess_slots == 0)
        return status;
    cuda->preprocess = (struct ndt_cuda_preprocess){
        .device = &cuda->device, .layout = &cuda->plan, .memory = cuda->memory, .pinned = cuda->pinned};
    return ndt_cuda_preprocess_open(&cuda->preprocess, err);
}

static enum ndt_status choose_wait(const struct ndt_backend_config *config, struct ndt_error *err)
{
    int taken;
    const enum ndt_status status = ndt_cuda_choose_wait(config->device, config->wait, &taken, err);
    if (status == NDT_OK && !taken)
        fprintf(
            stderr,
            "ndtd: warning: backend %s: the device is in use in this process already; cuda.wait has no effect\n",
            NDT_CUDA_NAME);
    return status;
}

static enum ndt_status cuda_open(struct ndt_backend **out, const struct ndt_backend_config *config,
                                 struct ndt_error *err)
{
    *out = NULL;
    struct cuda_backend *cuda = calloc(1, sizeof(*cuda));
    if (!cuda)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the CUDA backend");
    cuda->base.ops = &ndt_cuda_backend;
    cuda->pipeline = ndt_cuda_pipeline_find(config->pipeline, err);
    enum ndt_status status = cuda->pipeline ? NDT_OK : NDT_ERR_ARGUMENT;
    if (status == NDT_OK)
        status = ndt_cuda_facts(&cuda->facts, config->device, err);
    if (status == NDT_OK)
        status = choose_wait(config, err);
    if (status == NDT_OK)
        status = ndt_cuda_device_open(&cuda->device, config->device, err);
    if (status == NDT_OK) {
        cuda->device.has_clock = config->kernel_times;
        ndt_cuda_plan_make(&cuda->plan, cuda->pipeline, config->max_points, config->preprocess == 1);
        status = ndt_cuda_local_bytes(&cuda->local_bytes, &cuda->device, &cuda->facts, cuda->pipeline,
                                      cuda->plan.preprocess_slots > 0, err);
    }
    if (status == NDT_OK)
        status = allocate(cuda, err);
    if (status == NDT_OK)
        status = refuse_if_full(cuda, warm_up(cuda, err), err);
    if (status == NDT_OK)
        *out = &cuda->base;
    else
        cuda_close(&cuda->base);
    return status;
}

static int is_on_device(const struct cuda_backend *cuda, const struct ndt_map *map)
{
    return cuda->on_device.is_loaded && cuda->on_device.id == map->id;
}

static void use_map(struct cuda_backend *cuda, struct ndt_map *map)
{
    ndt_map_retain(map);
    ndt_map_release(cuda->map);
    cuda->map = map;
}

static enum ndt_status cuda_set_map(struct ndt_backend *backend, struct ndt_map *map, struct ndt_error *err)
{
    struct cuda_backend *cuda = (struct cuda_backend *)backend;
    enum ndt_status status = NDT_OK;
    ndt_cuda_map_upload_cancel(&cuda->upload);
    if (map && !is_on_device(cuda, map)) {
        ndt_cuda_map_upload_free(&cuda->upload, &cuda->device); /* frees memory that the map may need */
        status = ndt_cuda_map_load(&cuda->on_device, &cuda->device, map, err);
    }
    if (status == NDT_OK)
        use_map(cuda, map);
    else if (!cuda->on_device.is_loaded && cuda->map && /* the previous map was freed in vain */
             ndt_cuda_map_load(&cuda->on_device, &cuda->device, cuda->map, NULL) != NDT_OK)
        use_map(cuda, NULL);
    return status;
}

static void warn_no_room(struct cuda_backend *cuda, const char *why)
{
    if (!cuda->has_warned)
        fprintf(stderr,
                "ndtd: warning: backend %s: %s; without room for two maps matching waits while one is uploaded in "
                "place of the other\n",
                NDT_CUDA_NAME, why);
    cuda->has_warned = 1;
}

static enum ndt_status cuda_set_map_async(struct ndt_backend *backend, struct ndt_map *map, int *taken,
                                          struct ndt_error *err)
{
    struct cuda_backend *cuda = (struct cuda_backend *)backend;
    struct ndt_error why = {""};
    enum ndt_status status = NDT_OK;
    *taken = !map || is_on_device(cuda, map);
    if (!*taken)
        status = ndt_cuda_map_upload_carry(&cuda->upload, &cuda->device, &cuda->on_device, map, taken, &why);
    if (status == NDT_OK && !*taken)
        return NDT_OK;
    if (status == NDT_ERR_LIMIT || status == NDT_ERR_MEMORY) {
        warn_no_room(cuda, why.text);
    } else if (status != NDT_OK) {
        if (err)
            *err = why;
        return status;
    }
    status = cuda_set_map(backend, map, err); /* returns at once, unless two maps did not fit */
    *taken = status == NDT_OK;
    return status;
}

static enum ndt_status cuda_set_scans(struct ndt_backend *backend, const struct ndt_cloud *const *scans,
                                      size_t count, struct ndt_error *err)
{
    struct cuda_backend *cuda = (struct cuda_backend *)backend;
    struct ndt_gpu_job *job = &cuda->job;
    cuda->resident.preprocess = NULL;
    job->count = job->blocks = 0;
    enum ndt_status status = ndt_cuda_scans_place(&cuda->resident, &cuda->plan, scans, count, err);
    if (status != NDT_OK || count == 0)
        return status;
    job->count = (uint32_t)scans[0]->count;
    job->blocks = ndt_cuda_blocks(scans[0]->count);
    job->y_m = job->x_m + (size_t)job->blocks * NDT_GPU_BLOCK;
    job->z_m = job->y_m + (size_t)job->blocks * NDT_GPU_BLOCK;
    job->times_at = (uint32_t)cuda->resident.times_at;
    if (cuda->pipeline->shape != NDT_CUDA_HOST)
        status = ndt_cuda_resident_prepare(&cuda->resident, err);
    if (status != NDT_OK || (count == 1 && scans[0]->count == 0))
        return status;
    return ndt_cuda_scans_upload(&cuda->scans, &cuda->device, &cuda->plan, cuda->memory + cuda->plan.scan,
                                 &cuda->resident, scans, err);
}

static enum ndt_status cuda_set_scan(struct ndt_backend *backend, const struct ndt_cloud *scan,
                                     struct ndt_error *err)
{
    return cuda_set_scans(backend, &scan, 1, err);
}

static void prepare_job(struct cuda_backend *cuda, const struct ndt_eval_request *request)
{
    struct ndt_gpu_job *job = &cuda->job;
    const double leaf_m = cuda->map->levels[request->level].leaf_m;
    job->level = cuda->on_device.levels[request->level];
    job->neighbours = (int32_t)request->neighbours;
    ndt_cuda_split_pose(request->p, leaf_m, job->near_cell, job->t_m, job->angles);
}

/* Queues one evaluation and waits for its sums. */
static enum ndt_status run(struct cuda_backend *cuda, int wants_information, struct ndt_error *err)
{
    const size_t bytes = (wants_information ? NDT_GPU_PLANES * NDT_GPU_ROW : NDT_GPU_SUMS) * sizeof(double);
    struct ndt_cuda_device *device = &cuda->device;
    enum ndt_status status = ndt_cuda_clock_start(device, err);
    if (status == NDT_OK)
        status = launch(cuda, wants_information, err);
    if (status == NDT_OK)
        status = ndt_cuda_clock_stop(device, err);
    device->counters.h2d_bytes += sizeof(cuda->job.angles);
    if (cuda->has_mapped_sums)
        device->counters.d2h_bytes += bytes;
    else if (status == NDT_OK)
        status = ndt_cuda_download(device, cuda->pinned + cuda->plan.pinned_sums, cuda->job.sums, bytes, err);
    if (status == NDT_OK)
        status = ndt_cuda_wait(device, err);
    if (status != NDT_OK)
        return ndt_cuda_settle(device, NDT_CUDA_MAIN, status);
    return ndt_cuda_add_kernel_time(device, err);
}

static enum ndt_status check_request(const struct cuda_backend *cuda, const struct ndt_eval_request *request,
                                     struct ndt_error *err)
{
    if (!cuda->map || request->level < 0 || (size_t)request->level >= cuda->map->level_count)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "level %d of a map that has %zu", request->level,
                        cuda->map ? cuda->map->level_count : 0);
    for (int i = 0; i < 6; i++)
        if (!isfinite(request->p[i]))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "the pose to evaluate at is not finite");
    return NDT_OK;
}

/* Evaluates a pose. *sums: the downloaded rows; NULL: the scan has no points, and all sums are zero. */
static enum ndt_status evaluate(struct cuda_backend *cuda, const struct ndt_eval_request *request,
                                int wants_information, const double **sums, struct ndt_error *err)
{
    *sums = NULL;
    enum ndt_status status = check_request(cuda, request, err);
    if (status != NDT_OK)
        return status;
    cuda->device.counters.evaluations++;
    if (cuda->job.count == 0)
        return NDT_OK;
    prepare_job(cuda, request);
    cuda->device.until_us = ndt_cuda_give_up_at(request->until_us, EVALUATION_PART);
    status = run(cuda, wants_information, err);
    cuda->device.until_us = 0;
    if (status == NDT_OK)
        *sums = (const double *)(const void *)(cuda->pinned + cuda->plan.pinned_sums);
    return status;
}

static enum ndt_status cuda_eval(struct ndt_backend *backend, const struct ndt_eval_request *request,
                                 struct ndt_eval *out, struct ndt_error *err)
{
    const double *sums;
    _Static_assert(sizeof(*out) == NDT_GPU_SUMS * sizeof(double), "the row of sums is a struct ndt_eval");
    memset(out, 0, sizeof(*out));
    enum ndt_status status = evaluate((struct cuda_backend *)backend, request, 0, &sums, err);
    if (sums)
        memcpy(out, sums, sizeof(*out));
    return status;
}

static enum ndt_status cuda_inform(struct ndt_backend *backend, const struct ndt_eval_request *request,
                                   struct ndt_information *out, struct ndt_error *err)
{
    const double *planes;
    memset(out, 0, sizeof(*out));
    enum ndt_status status = evaluate((struct cuda_backend *)backend, request, 1, &planes, err);
    if (planes)
        ndt_cuda_read_information(out, planes);
    return status;
}

static enum ndt_status cuda_score_poses(struct ndt_backend *backend, const struct ndt_score_request *request,
                                        struct ndt_pose_score *out, size_t *done, struct ndt_error *err)
{
    struct cuda_backend *cuda = (struct cuda_backend *)backend;
    struct ndt_cuda_scores scores = borrow_for_scores(cuda);
    const enum ndt_status status = ndt_cuda_score_poses(&scores, request, out, done, err);
    return ndt_cuda_settle(&cuda->device, NDT_CUDA_MAIN, status);
}

static size_t cuda_solve_limit(const struct ndt_backend *backend)
{
    return ((const struct cuda_backend *)backend)->pipeline->shape == NDT_CUDA_HOST ? 0 : NDT_CUDA_ITEMS;
}

static enum ndt_status check_solve(const struct cuda_backend *cuda, const struct ndt_newton_rules *rules,
                                   const struct ndt_solve_item *items, size_t count, struct ndt_error *err)
{
    const size_t levels = cuda->map ? cuda->map->level_count : 0;
    if (cuda->pipeline->shape == NDT_CUDA_HOST)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "cuda.pipeline %s has no alignments", cuda->pipeline->name);
    if (count > NDT_CUDA_ITEMS)
        return ndt_fail(err, NDT_ERR_LIMIT, "%zu alignments at once; the limit is %d", count, NDT_CUDA_ITEMS);
    if (rules->level_count < 1 || rules->level_count > NDT_MAX_LEVELS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "a chain of %d levels", rules->level_count);
    for (int32_t i = 0; i < rules->level_count; i++)
        if (rules->level[i] < 0 || (size_t)rules->level[i] >= levels)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "level %d of a map that has %zu", rules->level[i], levels);
    for (size_t i = 0; i < count; i++) {
        const int32_t first = items[i].newton.first_level;
        if (items[i].scan >= cuda->resident.scan_count)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "scan %u of %zu", items[i].scan, cuda->resident.scan_count);
        if (rules->variant == NDT_ROBUST && (first < 0 || first >= rules->level_count))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "first level %d of a chain of %d", first, rules->level_count);
    }
    return NDT_OK;
}

static enum ndt_status cuda_solve(struct ndt_backend *backend, const struct ndt_newton_rules *rules,
                                  struct ndt_solve_item *items, size_t count, double until_us,
                                  struct ndt_error *err)
{
    struct cuda_backend *cuda = (struct cuda_backend *)backend;
    enum ndt_status status = check_solve(cuda, rules, items, count, err);
    if (status == NDT_OK)
        status = ndt_cuda_resident_solve(&cuda->resident, &cuda->on_device, rules, items, count, until_us, err);
    return ndt_cuda_settle(&cuda->device, NDT_CUDA_MAIN, status);
}

static size_t cuda_preprocess_limit(const struct ndt_backend *backend)
{
    const struct ndt_cuda_plan *plan = &((const struct cuda_backend *)backend)->plan;
    return plan->preprocess_slots > 0 ? plan->max_points : 0;
}

/* Bounds scan 0, which is on the device: its size is known to be no larger than this. */
static void bound_scan(struct cuda_backend *cuda)
{
    const size_t most = cuda->preprocess.most;
    cuda->resident.scans[0] =
        (struct ndt_cuda_scan){.count = (uint32_t)most, .blocks = most > 0 ? ndt_cuda_blocks(most) : 1};
    cuda->resident.scan_count = 1;
    cuda->resident.preprocess = cuda->preprocess.job.preprocess;
}

/* Implements preprocess, and with raw NULL preprocess_again. */
static enum ndt_status preprocess_scan(struct cuda_backend *cuda, const struct ndt_preprocess_plan *plan,
                                       const struct ndt_cloud *raw, struct ndt_error *err)
{
    cuda->resident.scan_count = 0;
    cuda->job.count = cuda->job.blocks = 0;
    if (cuda->plan.preprocess_slots == 0)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "cuda.pipeline %s was opened without preprocessing",
                        cuda->pipeline->name);
    enum ndt_status status = raw ? ndt_cuda_preprocess_load(&cuda->preprocess, plan, raw, err)
                                 : ndt_cuda_preprocess_again(&cuda->preprocess, plan, err);
    if (status != NDT_OK)
        return status;
    bound_scan(cuda);
    return ndt_cuda_resident_prepare(&cuda->resident, err);
}

static enum ndt_status cuda_preprocess(struct ndt_backend *backend, const struct ndt_preprocess_plan *plan,
                                       const struct ndt_cloud *raw, struct ndt_error *err)
{
    return preprocess_scan((struct cuda_backend *)backend, plan, raw, err);
}

static enum ndt_status cuda_preprocess_again(struct ndt_backend *backend, const struct ndt_preprocess_plan *plan,
                                             struct ndt_error *err)
{
    return preprocess_scan((struct cuda_backend *)backend, plan, NULL, err);
}

static enum ndt_status cuda_dump(struct ndt_backend *backend, const struct ndt_eval_request *request, FILE *file,
                                 struct ndt_error *err)
{
    struct cuda_backend *cuda = (struct cuda_backend *)backend;
    struct ndt_eval sums;
    if (!cuda->pipeline->has_intermediates)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                        "cuda.pipeline %s keeps no intermediates; use cuda.pipeline=staged", cuda->pipeline->name);
    enum ndt_status status = cuda_eval(backend, request, &sums, err);
    return status == NDT_OK ? ndt_cuda_dump(&cuda->device, &cuda->job, file, err) : status;
}

static enum ndt_status cuda_overheads(struct ndt_backend *backend, int rounds, struct ndt_overheads *out,
                                      struct ndt_error *err)
{
    struct cuda_backend *cuda = (struct cuda_backend *)backend;
    char *const sums = cuda->pinned + cuda->plan.pinned_sums;
    const struct ndt_cuda_copies copies = {.device = cuda->memory + cuda->plan.sums,
                                           .up = sums + NDT_GPU_ROW * sizeof(double),
                                           .down = sums,
                                           .scan = cuda->memory + cuda->plan.scan,
                                           .staged = cuda->scans.last,
                                           .scan_bytes = cuda->job.count > 0 ? cuda->scans.last_bytes : 0};
    return ndt_cuda_overheads(&cuda->device, &cuda->job, &copies, rounds, out, err);
}

static void cuda_counters(const struct ndt_backend *backend, struct ndt_backend_counters *out)
{
    *out = ((const struct cuda_backend *)backend)->device.counters;
}

static void cuda_describe(const struct ndt_backend *backend, char *text, size_t size)
{
    const struct cuda_backend *cuda = (const struct cuda_backend *)backend;
    const struct ndt_cuda_facts *facts = &cuda->facts;
    snprintf(text, size, "%s %s on %s (compute %d.%d), driver for CUDA %d.%d, runtime %d.%d", NDT_CUDA_NAME,
             cuda->pipeline->name, facts->name, facts->major, facts->minor, facts->driver / 1000,
             facts->driver % 1000 / 10, facts->runtime / 1000, facts->runtime % 1000 / 10);
}

const struct ndt_backend_ops ndt_cuda_backend = {
    .name = NDT_CUDA_NAME,
    .about = "an NVIDIA GPU, evaluations or whole alignments; cuda.pipeline chooses how",
    .probe = cuda_probe,
    .open = cuda_open,
    .close = cuda_close,
    .set_map = cuda_set_map,
    .set_scan = cuda_set_scan,
    .eval = cuda_eval,
    .inform = cuda_inform,
    .score_poses = cuda_score_poses,
    .counters = cuda_counters,
    .describe = cuda_describe,
    .pipelines = pipeline_names,
    .plan = ndt_cuda_describe_plan,
    .dump = cuda_dump,
    .overheads = cuda_overheads,
    .solve_limit = cuda_solve_limit,
    .set_scans = cuda_set_scans,
    .solve = cuda_solve,
    .set_map_async = cuda_set_map_async,
    .preprocess_limit = cuda_preprocess_limit,
    .preprocess = cuda_preprocess,
    .preprocess_again = cuda_preprocess_again,
};
