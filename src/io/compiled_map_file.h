/* Private to ndt_io: the layout of a compiled map, and the checks after reading one. */
#ifndef NDT_IO_COMPILED_MAP_FILE_H
#define NDT_IO_COMPILED_MAP_FILE_H

#include <stdint.h>

#include "ndt/map.h"
#include "ndt/progress.h"

/* Arrays of a level, in the order of ndt_file_level.offset. */
enum ndt_file_array {
    NDT_FILE_VOXELS,
    NDT_FILE_BRICKS,
    NDT_FILE_KEYS,
    NDT_FILE_CELLS,
    NDT_FILE_LISTS,
    NDT_FILE_ARRAYS
};
enum { NDT_FILE_BRICK_CELLS = 512, NDT_FILE_ALIGNMENT = 64 };

struct ndt_file_level {
    double leaf_m, d1, d2, d3;
    int32_t brick_min[3], brick_dim[3];
    uint32_t hashed, voxel_count, brick_slots, brick_count;
    uint64_t list_words;
    uint64_t offset[NDT_FILE_ARRAYS];
};

struct ndt_file_header {
    char magic[8];
    uint32_t version;
    uint32_t level_count;
    uint64_t file_bytes;
    uint64_t hash; /* hash of the whole file with this field zero */
    double origin_m[3];
    uint64_t id, points;
    uint32_t min_points, covariance;
    double min_eigenvalue_ratio, outlier_ratio;
    struct ndt_file_level levels[NDT_MAX_LEVELS];
};

/* Sizes of a level's arrays in bytes; counts from a file have been checked to fit (below). */
void ndt_file_array_sizes(const struct ndt_file_level *level, uint64_t sizes[NDT_FILE_ARRAYS]);

/* ---- compiled_map_check.c: nothing in the file is trusted, whatever its hash ---- */

/* The reason why a header is refused for a file of this size; NULL: it is good. Refused are numbers that are not
 * finite or out of range, levels out of order, and arrays beyond the end of the file. */
const char *ndt_file_header_fault(const struct ndt_file_header *header, uint64_t file_bytes);

/* Checks that the arrays of a level are such as a builder makes (ndt/map.h): every index points into its array and
 * every brick has one slot; a list has at most 27 voxels, of the cells around its own, with their means, and its
 * padding is out of reach; means are within their cells; inverse covariances are finite and positive definite; the
 * hashed index ends every search soon. *fault is the reason why the level is refused, NULL for a good one. */
NDT_MUST_CHECK enum ndt_status ndt_file_level_check(const struct ndt_map_level *level,
                                                    struct ndt_progress *progress, const char **fault,
                                                    struct ndt_error *err);

#endif
