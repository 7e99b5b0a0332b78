#include "voxel_filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum ndt_status reserve(struct ndt_voxel_filter *filter, size_t points, struct ndt_error *err)
{
    if (points <= filter->cell_capacity)
        return NDT_OK;
    size_t slots = 1024;
    while (slots < 2 * points)
        slots *= 2;
    ndt_voxel_filter_free(filter);
    filter->slots = calloc(slots, sizeof(*filter->slots));
    filter->cells = malloc(points * sizeof(*filter->cells));
    if (!filter->slots || !filter->cells) {
        ndt_voxel_filter_free(filter);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory to filter %zu points", points);
    }
    filter->slot_count = slots;
    filter->cell_capacity = points;
    return NDT_OK;
}

void ndt_voxel_filter_free(struct ndt_voxel_filter *filter)
{
    free(filter->slots);
    free(filter->cells);
    memset(filter, 0, sizeof(*filter));
}

static struct ndt_filter_cell *find_cell(struct ndt_voxel_filter *filter, uint64_t key)
{
    const size_t mask = filter->slot_count - 1;
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    size_t at = (hash ^ hash >> 32) & mask;
    while (filter->slots[at].round == filter->round && filter->slots[at].key != key)
        at = (at + 1) & mask;
    struct ndt_filter_slot *slot = &filter->slots[at];
    if (slot->round != filter->round) {
        *slot = (struct ndt_filter_slot){key, filter->round, (uint32_t)filter->cell_count};
        filter->cells[filter->cell_count++].n = 0;
    }
    return &filter->cells[slot->index];
}

static void add_point(struct ndt_voxel_filter *filter, const float p_m[3], float time_s, float voxel_m)
{
    uint64_t key = 0;
    float corner_m[3];
    for (int k = 0; k < 3; k++) {
        const float cell = floorf(p_m[k] / voxel_m);
        if (!(fabsf(cell) < 1e6f)) /* farther away than any sensor sees */
            return;
        key |= (uint64_t)((int32_t)cell + 1048576) << (21 * k);
        corner_m[k] = cell * voxel_m;
    }
    struct ndt_filter_cell *cell = find_cell(filter, key);
    if (cell->n == 0) {
        memcpy(cell->corner_m, corner_m, sizeof(corner_m));
        memset(cell->sum, 0, sizeof(cell->sum));
        cell->first_s = time_s;
    }
    for (int k = 0; k < 3; k++)
        cell->sum[k] += p_m[k] - cell->corner_m[k];
    cell->sum[3] += time_s - cell->first_s;
    cell->n++;
}

enum ndt_status ndt_voxel_filter_run(struct ndt_voxel_filter *filter, const struct ndt_cloud *in, double voxel_m,
                                     struct ndt_cloud *out, struct ndt_error *err)
{
    enum ndt_status status = reserve(filter, in->count, err);
    if (status == NDT_OK)
        status = ndt_cloud_reserve(out, in->count, in->fields & NDT_CLOUD_TIME, err);
    if (status != NDT_OK)
        return status;
    filter->cell_count = 0;
    if (++filter->round == 0) {
        memset(filter->slots, 0, filter->slot_count * sizeof(*filter->slots));
        filter->round = 1;
    }
    for (size_t i = 0; i < in->count; i++) {
        const float p_m[3] = {in->x_m[i], in->y_m[i], in->z_m[i]};
        add_point(filter, p_m, in->time_s ? in->time_s[i] : 0, (float)voxel_m);
    }
    for (size_t i = 0; i < filter->cell_count; i++) {
        const struct ndt_filter_cell *cell = &filter->cells[i];
        const float n = (float)cell->n;
        out->x_m[i] = cell->corner_m[0] + cell->sum[0] / n;
        out->y_m[i] = cell->corner_m[1] + cell->sum[1] / n;
        out->z_m[i] = cell->corner_m[2] + cell->sum[2] / n;
        if (out->time_s)
            out->time_s[i] = cell->first_s + cell->sum[3] / n;
    }
    out->count = filter->cell_count;
    return NDT_OK;
}
