/* Private to the core: what ndt_map_build needs of a builder. */
#ifndef NDT_MAP_BUILDER_H
#define NDT_MAP_BUILDER_H

#include "ndt/map.h"
#include "pool.h"
#include "sum_table.h"

struct ndt_map_builder {
    struct ndt_map_config config; /* levels sorted from coarse to fine */
    int has_origin;
    double origin_m[3];
    uint64_t points;
    int inexact[3]; /* per axis: some point may have lost bits on its way to the origin, or may with another one */
    /* Level i has sums of its own (table) or is merged from the next finer level, 2x2x2 cells into one. */
    int derived[NDT_MAX_LEVELS];
    struct ndt_sum_table tables[NDT_MAX_LEVELS];
};

/* Threads for one call, its own, to be destroyed before it returns: those of the configuration, but no more than
 * `worth` (1 at least). */
NDT_MUST_CHECK enum ndt_status ndt_map_builder_pool(const struct ndt_map_builder *builder, size_t worth,
                                                    struct ndt_pool **out, struct ndt_error *err);

#endif
