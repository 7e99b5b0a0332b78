#include "cuda_preprocess.h"

#include <string.h>

#include "kernels.h"

static struct ndt_gpu_preprocess *header(const struct ndt_cuda_preprocess *preprocess)
{
    return (struct ndt_gpu_preprocess *)(void *)(preprocess->pinned + preprocess->layout->pinned_preprocess);
}

/* Waits before the pinned buffer is written again; a solve waits anyway. */
static enum ndt_status wait_for_buffer(struct ndt_cuda_preprocess *preprocess, struct ndt_error *err)
{
    const int is_free = !preprocess->is_queued || ndt_cuda_has_waited(preprocess->device, preprocess->queued_at);
    return is_free ? NDT_OK : ndt_cuda_wait(preprocess->device, err);
}

/* The number of slots that keeps the table half empty. */
static uint32_t slot_bits(size_t points)
{
    uint32_t bits = 10;
    while ((size_t)1 << bits < 2 * points)
        bits++;
    return bits;
}

/* Sets everything but the plan and the sizes of the scan, which change. */
static void place_memory(const struct ndt_cuda_preprocess *preprocess, struct ndt_gpu_preprocess *out)
{
    const struct ndt_cuda_plan *layout = preprocess->layout;
    char *const memory = preprocess->memory;
    float *const raw = (float *)(void *)(memory + layout->preprocess + NDT_CUDA_PREPROCESS_HEAD);
    float *const sampled = (float *)(void *)(memory + layout->sampled);
    for (size_t k = 0; k < 4; k++) {
        out->raw[k] = raw + k * out->blocks * NDT_GPU_BLOCK;
        out->sampled[k] = sampled + k * layout->stride;
    }
    out->keys = (unsigned long long *)(void *)(memory + layout->keys);
    out->slots = (unsigned long long *)(void *)(memory + layout->slots);
    out->cell_of = (uint32_t *)(void *)(memory + layout->cell_of);
    out->sums = (unsigned long long *)(void *)(memory + layout->cell_sums);
    out->sizes = (uint32_t *)(void *)(memory + layout->cell_sizes);
    out->block_cells = (uint32_t *)(void *)(memory + layout->block_cells);
    out->firsts = (uint32_t *)(void *)(memory + layout->firsts);
    out->scan = (float *)(void *)(memory + layout->scan);
    out->state = (struct ndt_gpu_preprocess_state *)(void *)(memory + layout->preprocess_state);
}

/* Begins the next round: entries of other rounds count as empty; after 2^32 rounds the table has to be cleared. */
static enum ndt_status next_round(struct ndt_cuda_preprocess *preprocess, struct ndt_error *err)
{
    if (++preprocess->round != 0)
        return NDT_OK;
    preprocess->round = 1;
    return ndt_cuda_clear(preprocess->device, preprocess->memory + preprocess->layout->slots,
                          preprocess->layout->preprocess_slots * sizeof(uint64_t), err);
}

static void write_points(float *to, size_t column, const struct ndt_cloud *raw, size_t columns)
{
    const float *const from[4] = {raw->x_m, raw->y_m, raw->z_m, raw->time_s};
    for (size_t k = 0; k < columns && raw->count > 0; k++)
        memcpy(to + k * column, from[k], raw->count * sizeof(float));
}

static enum ndt_status launch_all(struct ndt_cuda_preprocess *preprocess, unsigned blocks, struct ndt_error *err)
{
    const void *const kernels[] = {ndt_kernel_preprocess_place(), ndt_kernel_preprocess_add(),
                                   ndt_kernel_preprocess_list()};
    const unsigned most = preprocess->most > 0 ? ndt_cuda_blocks(preprocess->most) : 1;
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < sizeof(kernels) / sizeof(kernels[0]); i++)
        status = ndt_cuda_launch(preprocess->device, kernels[i], blocks, &preprocess->job, err);
    return status == NDT_OK
               ? ndt_cuda_launch(preprocess->device, ndt_kernel_preprocess_sample(), most, &preprocess->job, err)
               : status;
}

enum ndt_status ndt_cuda_preprocess_load(struct ndt_cuda_preprocess *preprocess,
                                         const struct ndt_preprocess_plan *plan, const struct ndt_cloud *raw,
                                         struct ndt_error *err)
{
    const size_t columns = plan->deskew == NDT_DESKEW_TIME ? 4 : 3;
    const unsigned blocks = raw->count > 0 ? ndt_cuda_blocks(raw->count) : 1;
    struct ndt_gpu_preprocess *head = header(preprocess);
    preprocess->has_sample = 0;
    if (raw->count > preprocess->layout->max_points)
        return ndt_fail(err, NDT_ERR_LIMIT, "a raw scan of %zu points; the limit is backend.max_points, %zu",
                        raw->count, preprocess->layout->max_points);
    enum ndt_status status = wait_for_buffer(preprocess, err);
    if (status == NDT_OK)
        status = next_round(preprocess, err);
    if (status != NDT_OK)
        return status;
    memset(head, 0, sizeof(*head));
    head->plan = *plan;
    head->count = (uint32_t)raw->count;
    head->blocks = blocks;
    head->round = preprocess->round;
    head->slot_bits = slot_bits(raw->count);
    place_memory(preprocess, head);
    const size_t column = (size_t)blocks * NDT_GPU_BLOCK;
    write_points((float *)(void *)((char *)head + NDT_CUDA_PREPROCESS_HEAD), column, raw, columns);
    preprocess->most = plan->wanted > 0 && plan->wanted < raw->count ? plan->wanted : raw->count;
    preprocess->is_queued = 1;
    preprocess->queued_at = preprocess->device->waits;
    status = ndt_cuda_upload(preprocess->device, preprocess->memory + preprocess->layout->preprocess, head,
                             NDT_CUDA_PREPROCESS_HEAD + columns * column * sizeof(float), err);
    if (status == NDT_OK)
        status = launch_all(preprocess, blocks, err);
    preprocess->has_sample = status == NDT_OK;
    return status;
}

enum ndt_status ndt_cuda_preprocess_again(struct ndt_cuda_preprocess *preprocess,
                                          const struct ndt_preprocess_plan *plan, struct ndt_error *err)
{
    struct ndt_gpu_preprocess *head = header(preprocess);
    if (!preprocess->has_sample)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "no scan has been preprocessed on this device");
    enum ndt_status status = wait_for_buffer(preprocess, err);
    if (status != NDT_OK)
        return status;
    head->plan = *plan;
    preprocess->is_queued = 1;
    preprocess->queued_at = preprocess->device->waits;
    status = ndt_cuda_upload(preprocess->device, preprocess->memory + preprocess->layout->preprocess, head,
                             sizeof(head->plan), err);
    return status == NDT_OK ? ndt_cuda_launch(preprocess->device, ndt_kernel_preprocess_again(),
                                              preprocess->most > 0 ? ndt_cuda_blocks(preprocess->most) : 1,
                                              &preprocess->job, err)
                            : status;
}

enum ndt_status ndt_cuda_preprocess_open(struct ndt_cuda_preprocess *preprocess, struct ndt_error *err)
{
    const struct ndt_cloud nothing = {.count = 0};
    const struct ndt_preprocess_plan plan = {.deskew = NDT_DESKEW_OFF};
    preprocess->job.preprocess =
        (const struct ndt_gpu_preprocess *)(const void *)(preprocess->memory + preprocess->layout->preprocess);
    enum ndt_status status = ndt_cuda_clear(preprocess->device, preprocess->memory + preprocess->layout->slots,
                                            preprocess->layout->preprocess_slots * sizeof(uint64_t), err);
    if (status == NDT_OK)
        status = ndt_cuda_clear(preprocess->device, preprocess->memory + preprocess->layout->preprocess_state,
                                sizeof(struct ndt_gpu_preprocess_state), err);
    if (status == NDT_OK)
        status = ndt_cuda_preprocess_load(preprocess, &plan, &nothing, err);
    if (status == NDT_OK)
        status = ndt_cuda_preprocess_again(preprocess, &plan, err);
    preprocess->has_sample = 0;
    return status == NDT_OK ? wait_for_buffer(preprocess, err) : status;
}
