/* The dense score, compiled once per CPU variant; a row of a unit is one vector or two.
 *
 * Eight rows share the load of a point. Misses are counted: comparing with zero needs one instruction less than
 * comparing for difference. */
#include <string.h>

#include "score.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b)  PASTE2(a, b)

#if defined(NDT_ISA_avx512) || defined(NDT_ISA_avx2)
enum { WIDTH = 32 };
#else
enum { WIDTH = 16 };
#endif
typedef uint8_t row_u __attribute__((vector_size(WIDTH)));

static inline row_u load(const uint8_t *p)
{
    row_u v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline row_u larger(row_u a, row_u b)
{
    const row_u above = (row_u)(a > b);
    return (a & above) | (b & ~above);
}

/* Scores WIDTH x 8 cells. */
static inline void score_columns(const uint8_t *cells, ptrdiff_t stride, const struct ndt_score_points *points,
                                 const uint8_t *allowed, ptrdiff_t allowed_stride, uint8_t *sums, uint8_t *peaks)
{
    row_u miss[NDT_UNIT_Y] = {{0}}, most = {0};
    for (uint32_t i = 0; i < points->count; i++) {
        const uint8_t *at = cells + points->offset[i];
        const row_u mask = points->mask[i] - (row_u){0};
#pragma GCC unroll 8
        for (int y = 0; y < NDT_UNIT_Y; y++)
            miss[y] -= (row_u)((load(at + y * stride) & mask) == 0);
    }
    for (int y = 0; y < NDT_UNIT_Y; y++) {
        const row_u sum = ((uint8_t)points->count - miss[y]) & load(allowed + y * allowed_stride);
        memcpy(sums + y * NDT_UNIT_X, &sum, sizeof(sum));
        most = larger(most, sum);
    }
    for (int b = 0; b < WIDTH / NDT_BLOCK; b++) {
        peaks[b] = 0;
        for (int x = 0; x < NDT_BLOCK; x++)
            peaks[b] = most[b * NDT_BLOCK + x] > peaks[b] ? most[b * NDT_BLOCK + x] : peaks[b];
    }
}

void PASTE(ndt_score_unit_, NDT_ISA)(const uint8_t *cells, ptrdiff_t stride, const struct ndt_score_points *points,
                                     const uint8_t *allowed, ptrdiff_t allowed_stride, uint8_t sums[NDT_UNIT_CELLS],
                                     uint8_t peaks[NDT_UNIT_BLOCKS])
{
    for (int x = 0; x < NDT_UNIT_X; x += WIDTH)
        score_columns(cells + x, stride, points, allowed + x, allowed_stride, sums + x, peaks + x / NDT_BLOCK);
}
