#include "ndt/cloud.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, PAD = 16 };

void ndt_cloud_init(struct ndt_cloud *cloud)
{
    memset(cloud, 0, sizeof(*cloud));
}

void ndt_cloud_free(struct ndt_cloud *cloud)
{
    free(cloud->block);
    ndt_cloud_init(cloud);
}

static void copy_points(struct ndt_cloud *dst, size_t at, const struct ndt_cloud *src)
{
    const size_t bytes = src->count * sizeof(float);
    if (bytes == 0)
        return;
    memcpy(dst->x_m + at, src->x_m, bytes);
    memcpy(dst->y_m + at, src->y_m, bytes);
    memcpy(dst->z_m + at, src->z_m, bytes);
    if (dst->intensity && src->intensity)
        memcpy(dst->intensity + at, src->intensity, bytes);
    else if (dst->intensity)
        memset(dst->intensity + at, 0, bytes);
    if (dst->time_s && src->time_s)
        memcpy(dst->time_s + at, src->time_s, bytes);
    else if (dst->time_s)
        memset(dst->time_s + at, 0, bytes);
}

enum ndt_status ndt_cloud_reserve(struct ndt_cloud *cloud, size_t capacity, unsigned fields, struct ndt_error *err)
{
    fields |= cloud->fields;
    if (capacity <= cloud->capacity && fields == cloud->fields)
        return NDT_OK;
    if (capacity > NDT_CLOUD_MAX_POINTS)
        return ndt_fail(err, NDT_ERR_LIMIT, "%zu points are more than the limit of %zu", capacity,
                        NDT_CLOUD_MAX_POINTS);
    if (capacity < cloud->capacity)
        capacity = cloud->capacity;
    const size_t padded = (capacity + PAD - 1) / PAD * PAD;
    const size_t arrays = 3u + (fields & NDT_CLOUD_INTENSITY ? 1u : 0u) + (fields & NDT_CLOUD_TIME ? 1u : 0u);
    float *block = padded ? aligned_alloc(ALIGNMENT, padded * arrays * sizeof(float)) : NULL;
    if (padded && !block)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a cloud of %zu points", capacity);
    struct ndt_cloud grown = *cloud;
    grown.block = block;
    grown.capacity = padded;
    grown.fields = fields;
    grown.x_m = block;
    grown.y_m = block ? block + padded : NULL;
    grown.z_m = block ? block + 2 * padded : NULL;
    float *next = block ? block + 3 * padded : NULL;
    grown.intensity = fields & NDT_CLOUD_INTENSITY ? next : NULL;
    if (grown.intensity && next)
        next += padded;
    grown.time_s = fields & NDT_CLOUD_TIME ? next : NULL;
    copy_points(&grown, 0, cloud);
    free(cloud->block);
    *cloud = grown;
    return NDT_OK;
}

enum ndt_status ndt_cloud_copy(struct ndt_cloud *dst, const struct ndt_cloud *src, struct ndt_error *err)
{
    dst->count = 0;
    enum ndt_status status = ndt_cloud_reserve(dst, src->count, src->fields, err);
    if (status != NDT_OK)
        return status;
    memcpy(dst->origin_m, src->origin_m, sizeof(dst->origin_m));
    dst->time_offset_s = src->time_offset_s;
    copy_points(dst, 0, src);
    dst->count = src->count;
    return NDT_OK;
}
