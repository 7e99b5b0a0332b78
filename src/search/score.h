/* Private to the search: the dense score, in plain C and once per CPU variant (score_wide.c). All sums are
 * integers, so that every variant gives the same bits.
 *
 * A unit has 32 x 8 cells, each a candidate position. Point i is at cell + offset[i] and counts where that cell has
 * a bit of mask[i]. */
#ifndef NDT_SCORE_H
#define NDT_SCORE_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/status.h"
#include "ndt/dense_score.h"

enum {
    NDT_UNIT_X = 32,
    NDT_UNIT_Y = 8,
    NDT_UNIT_CELLS = NDT_UNIT_X * NDT_UNIT_Y,
    NDT_UNIT_BLOCKS = NDT_UNIT_X / NDT_BLOCK,
    NDT_SCORE_POINTS = 255 /* sums are bytes */
};

/* Scores one unit. cells: its first cell; every cell that offsets lead to is readable. allowed: 255 where a sensor
 * may be, else 0; rows of NDT_UNIT_X, allowed_stride apart. sums: matched points at each cell, 0 where not allowed;
 * rows of NDT_UNIT_X. peaks: the largest sum of each block. */
typedef void ndt_score_unit(const uint8_t *cells, ptrdiff_t stride, const struct ndt_score_points *points,
                            const uint8_t *allowed, ptrdiff_t allowed_stride, uint8_t sums[NDT_UNIT_CELLS],
                            uint8_t peaks[NDT_UNIT_BLOCKS]);

ndt_score_unit ndt_score_unit_plain, ndt_score_unit_baseline, ndt_score_unit_avx2, ndt_score_unit_avx512,
    ndt_score_unit_neon;

/* isa: "plain", the name of a CPU variant, "auto" or NULL: $NDT_CPU_ISA, else the best that runs here. */
NDT_MUST_CHECK enum ndt_status ndt_score_choose(ndt_score_unit **out, const char *isa, struct ndt_error *err);

/* Name of a variant that was chosen. */
const char *ndt_score_name(ndt_score_unit *unit);

#endif
