/** @file
 * @brief The points of a map as Morton keys, in the cube that an octree divides.
 *
 * The cube has an edge that is a power of two [m] and its centre at origin_m, which is a whole number of metres. A
 * key holds 21 bits per axis, interleaved (bit 0 x, bit 1 y, bit 2 z): positions are exact to the edge / 2^21,
 * which is 1 mm for a map of 2 km and 8 mm for one of 10 km, wherever on Earth it lies.
 *
 * Memory: 9 bytes per point; while they are read, that of the largest file besides (16 bytes per point).
 * Determinism: the same files give the same keys. One owner, one thread. */
#ifndef MAP_KEYS_H
#define MAP_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/progress.h"
#include "ndt/status.h"

/** Bits per axis of a key. */
enum { WEB_KEY_BITS = 21 };

/** See the top of this file. */
struct web_keys {
    uint64_t *keys;
    uint8_t *shades; /**< intensities from 0 (the 2nd percentile and below) to 255 (the 98th and above) */
    size_t count;
    size_t capacity;
    double origin_m[3]; /**< whole metres, in the middle of the map and below it; map frame */
    double corner_m[3]; /**< lower corner of the cube, relative to origin_m */
    double size_m;      /**< edge of the cube */
    double min_m[3];    /**< box of the points, relative to origin_m */
    double max_m[3];
    int has_intensity;
    int is_voxels;     /**< the points are the means of a compiled map's finest voxels */
    uint64_t left_out; /**< points that are not finite, or farther away from all others than the map is large */
};

/** Reads everything that ndt_map_load reads: a cloud, a folder of tiles (each twice, one after the other), a
 * compiled map. Counts tiles and bytes in `progress`. Intensities are scaled by a sample of them. After a failure
 * `out` is empty. NDT_ERR_CANCELLED; NDT_ERR_LIMIT: more than 2^32 - 1 points. */
NDT_MUST_CHECK enum ndt_status web_keys_read(struct web_keys *out, const char *path, struct ndt_progress *progress,
                                             struct ndt_error *err);
/** Sorts by key, in place; points with equal keys in an order that depends on the input alone. NDT_ERR_CANCELLED.
 */
NDT_MUST_CHECK enum ndt_status web_keys_sort(struct web_keys *keys, struct ndt_progress *progress,
                                             struct ndt_error *err);
/** Frees the memory; allowed on an empty or zeroed one. */
void web_keys_free(struct web_keys *keys);

/** The key of a cell with coordinates below 2^WEB_KEY_BITS. */
uint64_t web_key_of(const uint32_t cell[3]);
/** The cell of a key. */
void web_key_cell(uint64_t key, uint32_t cell[3]);

#endif
