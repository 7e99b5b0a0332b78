/* Voxel filter: places points in cells, WIDE at a time, and sums them there. */
#include "preprocess_steps.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/wide.h"

enum { LEAST_BITS = 10 };

typedef uint32_t quad_u __attribute__((vector_size(16)));
typedef uint64_t quad_sum __attribute__((vector_size(32)));

/* A block of points with their cells. */
struct placed {
    uint64_t key[NDT_BLOCK_POINTS + NDT_BLOCK_PAD];
    quad_u offset[NDT_BLOCK_POINTS + NDT_BLOCK_PAD]; /* x y z from the corner of the cell, time from the begin of
                                                        the sweep, in NDT_FILTER_PARTS */
    size_t count;
};

void ndt_voxel_filter_free(struct ndt_voxel_filter *filter)
{
    free(filter->slots);
    free(filter->cells);
    memset(filter, 0, sizeof(*filter));
}

enum ndt_status ndt_voxel_filter_reserve(struct ndt_voxel_filter *filter, size_t points, struct ndt_error *err)
{
    if (points <= filter->capacity)
        return NDT_OK;
    int bits = LEAST_BITS;
    while ((size_t)1 << bits < 2 * points)
        bits++;
    ndt_voxel_filter_free(filter);
    filter->slots = calloc((size_t)1 << bits, sizeof(*filter->slots));
    filter->cells = aligned_alloc(64, (points * sizeof(*filter->cells) + 63) / 64 * 64);
    if (!filter->slots || !filter->cells) {
        ndt_voxel_filter_free(filter);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory to filter %zu points", points);
    }
    filter->base = 1;
    filter->bits = LEAST_BITS;
    filter->most_bits = bits;
    filter->capacity = points;
    return NDT_OK;
}

/* Frees every slot. */
static void clear_slots(struct ndt_voxel_filter *filter)
{
    filter->base += (uint32_t)filter->count;
    if (filter->base > UINT32_MAX / 2) {
        memset(filter->slots, 0, sizeof(*filter->slots) << filter->most_bits);
        filter->base = 1;
    }
}

/* For a power of two, multiplying by 1 / voxel_m is bit-identical to the division. */
static float exact_inverse(float voxel_m)
{
    int exponent;
    return frexpf(voxel_m, &exponent) == 0.5f && abs(exponent) < 100 ? 1 / voxel_m : 0;
}

void ndt_voxel_filter_start(struct ndt_voxel_filter *filter, double voxel_m, double begin_s, double end_s)
{
    filter->voxel_m = (float)voxel_m;
    filter->inverse = exact_inverse(filter->voxel_m);
    filter->times = ndt_filter_times_of(begin_s, end_s);
    if (filter->capacity == 0)
        return;
    clear_slots(filter);
    /* As many slots as the last scan needed. */
    filter->bits = LEAST_BITS;
    while (filter->bits < filter->most_bits && (size_t)1 << filter->bits < 3 * filter->count)
        filter->bits++;
    filter->count = 0;
}

/* Cell numbers along one axis, and the distances from the corner of the cell in NDT_FILTER_PARTS. Clears the lanes
 * of `mask` that are too far away or not finite. */
static inline wide_i place_axis(wide_f p_m, float voxel_m, float inverse, int is_inverse, wide_i *mask,
                                wide_i *parts)
{
    const wide_f at = is_inverse ? p_m * inverse : p_m / voxel_m;
    const wide_i inside = (at >= -999999.0f) & (at < 1e6f);
    const wide_f known = (wide_f)((wide_i)at & inside);
    const wide_i cell = wide_floor(known);
    *mask &= inside;
    *parts = __builtin_convertvector((known - wide_to_float(cell)) * (float)NDT_FILTER_PARTS, wide_i);
    return cell + NDT_FILTER_CELLS;
}

static inline wide_i place_time(wide_f time_s, const struct ndt_filter_times *times)
{
    const wide_f most = wide_set(NDT_FILTER_PARTS);
    const wide_f at = wide_max((time_s - times->first_s) * times->parts_per_s, (wide_f){0});
    return __builtin_convertvector(wide_select(at < most, at, most), wide_i);
}

static inline void put_keys(uint64_t *key, const wide_i cell[3])
{
    typedef uint64_t wide_key __attribute__((vector_size(sizeof(uint64_t) * WIDE)));
    const wide_key k = __builtin_convertvector((wide_u)cell[0], wide_key) |
                       __builtin_convertvector((wide_u)cell[1], wide_key) << 21 |
                       __builtin_convertvector((wide_u)cell[2], wide_key) << 42;
    memcpy(key, &k, sizeof(k));
}

/* Four vectors of WIDE points to four numbers per point. */
static inline void put_points(quad_u *out, const wide_i v[4])
{
    wide_f r[4] = {(wide_f)v[0], (wide_f)v[1], (wide_f)v[2],
                   (wide_f)v[3]}; /* only moved: integers in float registers */
    wide_transpose4(r);
    for (int i = 0; i < 4; i++) {
        quad_u groups[WIDE / 4];
        memcpy(groups, &r[i], sizeof(groups));
        for (int g = 0; g < WIDE / 4; g++)
            out[4 * g + i] = groups[g];
    }
}

static void drop_lanes(struct placed *placed, wide_i mask)
{
    const size_t first = placed->count;
    for (int i = 0; i < WIDE; i++) {
        placed->key[placed->count] = placed->key[first + (size_t)i];
        placed->offset[placed->count] = placed->offset[first + (size_t)i];
        placed->count += (size_t)-mask[i];
    }
}

/* Inlined with a constant `is_inverse`. */
static inline void place_all(struct placed *placed, const struct ndt_voxel_filter *filter,
                             const struct ndt_point_block *points, int is_inverse)
{
    const float *const x_m = points->x_m, *const y_m = points->y_m, *const z_m = points->z_m;
    const float *const time_s = points->time_s;
    const float voxel_m = filter->voxel_m, inverse = filter->inverse;
    const struct ndt_filter_times times = filter->times;
    const size_t count = points->count;
    placed->count = 0;
    for (size_t i = 0; i < count; i += WIDE) {
        wide_i mask = {0}, cell[3];
        mask = ~mask;
        if (count - i < WIDE)
            mask = wide_first(count - i);
        wide_i parts[4];
        cell[0] = place_axis(wide_load(x_m + i), voxel_m, inverse, is_inverse, &mask, &parts[0]);
        cell[1] = place_axis(wide_load(y_m + i), voxel_m, inverse, is_inverse, &mask, &parts[1]);
        cell[2] = place_axis(wide_load(z_m + i), voxel_m, inverse, is_inverse, &mask, &parts[2]);
        parts[3] = place_time(wide_load(time_s + i), &times);
        put_keys(placed->key + placed->count, cell);
        put_points(placed->offset + placed->count, parts);
        if (wide_all(mask))
            placed->count += WIDE;
        else
            drop_lanes(placed, mask);
    }
}

static void place(struct placed *placed, const struct ndt_voxel_filter *filter,
                  const struct ndt_point_block *points)
{
    if (filter->inverse > 0)
        place_all(placed, filter, points, 1);
    else
        place_all(placed, filter, points, 0);
}

static inline size_t slot_of(const struct ndt_voxel_filter *filter, uint64_t key)
{
    return key * 0x9e3779b97f4a7c15u >> (64 - filter->bits);
}

static void double_slots(struct ndt_voxel_filter *filter)
{
    clear_slots(filter);
    filter->bits++;
    const size_t mask = ((size_t)1 << filter->bits) - 1;
    for (size_t i = 0; i < filter->count; i++) {
        size_t at = slot_of(filter, filter->cells[i].key);
        while (filter->slots[at] >= filter->base)
            at = (at + 1) & mask;
        filter->slots[at] = filter->base + (uint32_t)i;
    }
}

static uint32_t add_cell(struct ndt_voxel_filter *filter, size_t slot, uint64_t key)
{
    const uint32_t number = (uint32_t)filter->count++;
    filter->cells[number] = (struct ndt_filter_cell){.key = key};
    filter->slots[slot] = filter->base + number;
    if (2 * filter->count > (size_t)1 << filter->bits && filter->bits < filter->most_bits)
        double_slots(filter);
    return number;
}

static inline uint32_t find_cell(struct ndt_voxel_filter *filter, uint64_t key)
{
    const uint32_t *const slots = filter->slots, base = filter->base;
    const struct ndt_filter_cell *const cells = filter->cells;
    const size_t mask = ((size_t)1 << filter->bits) - 1;
    for (size_t at = slot_of(filter, key);; at = (at + 1) & mask) {
        const uint32_t slot = slots[at];
        if (slot < base)
            return add_cell(filter, at, key);
        if (cells[slot - base].key == key)
            return slot - base;
    }
}

/* Consecutive points of a scan often share a cell: one look-up for each run of them. The end of a run is
 * unpredictable, so no branch depends on it: prefix sums are stored for every point, and the difference of two is
 * the sum of a run. They may wrap around; the sum of a run within a block is below 2^32. */
static size_t find_runs(const struct placed *placed, uint32_t *first, quad_u *sum_before)
{
    uint64_t before = ~placed->key[0];
    quad_u sum = {0};
    size_t runs = 0;
    for (size_t i = 0; i < placed->count; i++) {
        first[runs] = (uint32_t)i;
        sum_before[i] = sum;
        sum += placed->offset[i];
        runs += placed->key[i] != before;
        before = placed->key[i];
        first[runs] = (uint32_t)i + 1;
    }
    sum_before[placed->count] = sum;
    return runs;
}

static void gather(struct ndt_voxel_filter *filter, const struct placed *placed)
{
    uint32_t first[NDT_BLOCK_POINTS + 1], cell_of[NDT_BLOCK_POINTS];
    quad_u sum_before[NDT_BLOCK_POINTS + 1];
    const size_t runs = placed->count > 0 ? find_runs(placed, first, sum_before) : 0;
    for (size_t i = 0; i < runs; i++)
        cell_of[i] = find_cell(filter, placed->key[first[i]]);
    for (size_t i = 0; i < runs; i++) {
        struct ndt_filter_cell *const cell = &filter->cells[cell_of[i]];
        const quad_u run = sum_before[first[i + 1]] - sum_before[first[i]];
        quad_sum sum;
        memcpy(&sum, cell->sum, sizeof(sum));
        sum += __builtin_convertvector(run, quad_sum);
        memcpy(cell->sum, &sum, sizeof(sum));
        cell->n += first[i + 1] - first[i];
    }
}

void ndt_voxel_filter_add(struct ndt_voxel_filter *filter, const struct ndt_point_block *points)
{
    struct placed placed;
    place(&placed, filter, points);
    gather(filter, &placed);
}

void ndt_voxel_filter_means(const struct ndt_voxel_filter *filter, const uint32_t *picks, size_t count,
                            struct ndt_cloud *out)
{
    float *const x_m = out->x_m, *const y_m = out->y_m, *const z_m = out->z_m, *const time_s = out->time_s;
    const struct ndt_filter_cell *const cells = filter->cells;
    const struct ndt_filter_times times = filter->times;
    const float voxel_m = filter->voxel_m;
    for (size_t i = 0; i < count; i++) {
        const struct ndt_filter_cell cell = cells[picks ? picks[i] : i];
        const double weight = ndt_filter_weight(cell.n);
        x_m[i] = ndt_filter_mean(ndt_filter_cell(cell.key, 0), cell.sum[0], weight, voxel_m);
        y_m[i] = ndt_filter_mean(ndt_filter_cell(cell.key, 1), cell.sum[1], weight, voxel_m);
        z_m[i] = ndt_filter_mean(ndt_filter_cell(cell.key, 2), cell.sum[2], weight, voxel_m);
        time_s[i] = ndt_filter_mean_time(times, cell.sum[3], weight);
    }
    out->count = count;
}
