#include "cuda_scans.h"

#include <string.h>

/* ---- places ---- */

static size_t floats_of(const struct ndt_cuda_scan *scan)
{
    return (size_t)scan->blocks * NDT_GPU_BLOCK;
}

static int have_times(const struct ndt_cloud *const *scans, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (scans[i]->time_s)
            return 1;
    return 0;
}

enum ndt_status ndt_cuda_scans_place(struct ndt_cuda_resident *out, const struct ndt_cuda_plan *plan,
                                     const struct ndt_cloud *const *scans, size_t count, struct ndt_error *err)
{
    size_t points = 0, floats = 0;
    out->scan_count = out->times_at = 0;
    if (count > NDT_CUDA_ITEMS)
        return ndt_fail(err, NDT_ERR_LIMIT, "%zu scans at once; the limit is %d", count, NDT_CUDA_ITEMS);
    for (size_t i = 0; i < count; i++) {
        struct ndt_cuda_scan *scan = &out->scans[i];
        points += scans[i]->count;
        if (points > plan->max_points)
            break;
        scan->at = (uint32_t)(3 * floats);
        scan->count = (uint32_t)scans[i]->count;
        scan->blocks = scan->count ? ndt_cuda_blocks(scan->count) : 1;
        floats += floats_of(scan);
    }
    if (points > plan->max_points || floats > plan->stride)
        return ndt_fail(err, NDT_ERR_LIMIT, "%s of %zu points; the limit is backend.max_points, %zu",
                        count == 1 ? "a scan" : "scans", points, plan->max_points);
    out->scan_count = count;
    out->times_at = have_times(scans, count) ? 3 * floats : 0;
    return NDT_OK;
}

/* ---- upload ---- */

/* Finds a pinned buffer that no copy reads any more. */
static enum ndt_status next_buffer(struct ndt_cuda_scans *buffers, struct ndt_cuda_device *device,
                                   const struct ndt_cuda_plan *plan, float **out, struct ndt_error *err)
{
    const unsigned next = buffers->next;
    enum ndt_status status = NDT_OK;
    if (buffers->used[next].is_used && !ndt_cuda_has_waited(device, buffers->used[next].queued_at))
        status = ndt_cuda_wait(device, err);
    if (status != NDT_OK)
        return status;
    *out = (float *)(void *)(buffers->pinned + plan->pinned_scans[next]);
    buffers->used[next].is_used = 1;
    buffers->used[next].queued_at = device->waits;
    buffers->next = (next + 1) % NDT_CUDA_POOL;
    return NDT_OK;
}

/* Copies `count` numbers to a column, and zeros behind them. */
static void pack_column(float *to, size_t column, const float *from, size_t count)
{
    if (count > 0)
        memcpy(to, from, count * sizeof(float));
    memset(to + count, 0, (column - count) * sizeof(float));
}

/* Packs a scan. times: of all scans, behind their points; NULL: no scan has any. */
static void pack_scan(const struct ndt_cloud *scan, const struct ndt_cuda_scan *place, float *buffer, float *times)
{
    const size_t column = floats_of(place);
    const float *const columns[] = {scan->x_m, scan->y_m, scan->z_m};
    for (size_t k = 0; k < 3; k++)
        pack_column(buffer + place->at + k * column, column, columns[k], scan->count);
    if (times)
        pack_column(times + place->at / 3, column, scan->time_s, scan->time_s ? scan->count : 0);
}

enum ndt_status ndt_cuda_scans_upload(struct ndt_cuda_scans *buffers, struct ndt_cuda_device *device,
                                      const struct ndt_cuda_plan *plan, void *to,
                                      const struct ndt_cuda_resident *placed, const struct ndt_cloud *const *scans,
                                      struct ndt_error *err)
{
    const struct ndt_cuda_scan *last = &placed->scans[placed->scan_count - 1];
    float *buffer;
    buffers->last_bytes = 0;
    enum ndt_status status = next_buffer(buffers, device, plan, &buffer, err);
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; i < placed->scan_count; i++)
        pack_scan(scans[i], &placed->scans[i], buffer, placed->times_at > 0 ? buffer + placed->times_at : NULL);
    const size_t floats = last->at / 3 + floats_of(last), columns = placed->times_at > 0 ? 4 : 3;
    buffers->last = buffer;
    buffers->last_bytes = columns * floats * sizeof(float);
    return ndt_cuda_upload(device, to, buffer, buffers->last_bytes, err);
}
