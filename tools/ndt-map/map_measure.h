/** @file
 * @brief Measures of a map: bounds and density. */
#ifndef MAP_MEASURE_H
#define MAP_MEASURE_H

#include <stdint.h>

#include "ndt/cloud.h"

struct map_measure {
    uint64_t points, not_finite; /**< finite ones, others */
    double min_m[3], max_m[3];   /**< bounds of the finite points; undefined without any */
    unsigned fields;             /**< fields that every file has: NDT_CLOUD_* */
    uint64_t area_m2;            /**< squares of 1 m with a point */
    /** @name Private: a set of squares, open addressing
     * @{ */
    uint64_t *squares;
    uint64_t capacity;
    /** @} */
};

/** Starts with nothing. */
void map_measure_init(struct map_measure *measure);
/** Allowed on an initialised one. */
void map_measure_free(struct map_measure *measure);
/** Takes the points of a file. */
NDT_MUST_CHECK enum ndt_status map_measure_add(struct map_measure *measure, const struct ndt_cloud *cloud,
                                               struct ndt_error *err);

#endif
