/** @file
 * @brief The field: an occupancy grid of the map by bands of height, one byte per cell, for correlative scan
 * matching (Olson 2009).
 *
 * A cell holds a bit per band of height above the LOCAL ground that the map occupies there. A scan, levelled by the
 * ground that it sees, is described in the same way, so that its place is searched in x, y and heading only.
 *
 * It is built from the voxels of the map's level nearest to 1 m, without points:
 *  - Ground, per square metre: the lowest voxel that is flat (normal within 26 deg of vertical, deviation along it
 *    < 0.2 m) and within 0.9 m of the 30th percentile of the lowest flat voxels 6 m around. Other cells of a tile
 *    take the height of the nearest ground, breadth first.
 *  - Bits: bands between 0.3, 0.8, 1.4, 2, 3, 4.5, 7, 10 m above the ground and beyond. A voxel is sampled at nine
 *    places (mean and 1.2 deviations along its two long axes, at most 0.6 m); each sets the cells 3x3 around it, in
 *    cells of 2, 1 and 0.5 m.
 *  - Known: cells within 2 m of measured ground. Sensors are searched for there.
 *  - Layers: another floor above the ground (a bridge, a storey) is a layer with a ground and bits of its own.
 *
 * Memory: tiles of 32 m where the map has voxels, 7.4 MB per square kilometre of them; nothing where it has none.
 *
 * A field is immutable and reference-counted; any number of threads may read it. Determinism: equal maps give equal
 * fields, bit for bit. */
#ifndef NDT_FIELD_H
#define NDT_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/map.h"
#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    NDT_FIELD_TILE_M = 32,           /**< edge of a tile; square metres per row of its ground */
    NDT_FIELD_LEVELS = 3,            /**< 0: cells of 2 m, 1: 1 m, 2: 0.5 m */
    NDT_FIELD_BANDS = 8,             /**< bits of a cell */
    NDT_FIELD_LAYERS = 8,            /**< most layers */
    NDT_FIELD_TILES_MAX = 1 << 20,   /**< most tiles of a field: 1000 km2, 7.4 GB */
    NDT_FIELD_NO_GROUND = INT16_MIN, /**< no ground is connected with the cell */
    NDT_FIELD_VERSION = 1            /**< version of the encoding */
};

/** Lower edges of the bands above the ground [m]. */
extern const double ndt_field_band_edges_m[NDT_FIELD_BANDS];

/** A tile: [32 x, 32 x + 32) m by [32 y, 32 y + 32) m from the origin of the field. Cells by rows of equal y. */
struct ndt_field_tile {
    int32_t layer, y, x;
    float base_m;                                             /**< height of ground_cm = 0 above the origin */
    int16_t ground_cm[NDT_FIELD_TILE_M * NDT_FIELD_TILE_M];   /**< height, or NDT_FIELD_NO_GROUND */
    uint8_t known[NDT_FIELD_TILE_M * NDT_FIELD_TILE_M / 8];   /**< bit c % 8 of byte c / 8 belongs to cell c */
    uint8_t bits_2m[NDT_FIELD_TILE_M * NDT_FIELD_TILE_M / 4]; /**< cells of 2 m */
    uint8_t bits_1m[NDT_FIELD_TILE_M * NDT_FIELD_TILE_M];
    uint8_t bits_05m[NDT_FIELD_TILE_M * NDT_FIELD_TILE_M * 4];
};

/** The occupancy field of a map; see the top of this file. */
struct ndt_field {
    double origin_m[3]; /**< origin of the map */
    uint64_t map_id;    /**< id of the map that it was built from */
    uint32_t tile_count;
    uint32_t layer_count;
    const struct ndt_field_tile *tiles; /**< sorted by layer, y, x */
    int references;                     /**< private */
};

/** Builds the field of a map; NDT_ERR_UNSUPPORTED without a level of 0.5 to 2 m, NDT_ERR_LIMIT beyond
 * NDT_FIELD_TILES_MAX. A map without ground gives a field without tiles or without known cells. The caller owns one
 * reference. */
NDT_MUST_CHECK enum ndt_status ndt_field_build(struct ndt_field **out, const struct ndt_map *map,
                                               struct ndt_error *err);
/** Adds a reference and returns the field; thread-safe. `field` may be NULL. */
struct ndt_field *ndt_field_retain(struct ndt_field *field);
/** Drops a reference; the last one frees the field. Thread-safe. `field` may be NULL. */
void ndt_field_release(struct ndt_field *field);

/** Size of the memory that the field holds. */
size_t ndt_field_bytes(const struct ndt_field *field);
/** Edge of the cells of a level [m]. */
double ndt_field_cell_m(int level);
/** The tile at a place; NULL: there is none. */
const struct ndt_field_tile *ndt_field_tile(const struct ndt_field *field, int32_t layer, int32_t y, int32_t x);
/** Finds the height of the ground above the origin, at a place relative to the origin; 0 where there is none. */
int ndt_field_ground(const struct ndt_field *field, int32_t layer, double x_m, double y_m, double *height_m);

/** @name As bytes, for files The encoding is little endian, with a header that names the map and a hash. Decoding
 * trusts nothing: a damaged, truncated or foreign input is refused with one line (NDT_ERR_FORMAT, NDT_ERR_LIMIT,
 * NDT_ERR_UNSUPPORTED), and never allocates more than `size` bytes and a constant.
 * @{ */
size_t ndt_field_encoded_bytes(const struct ndt_field *field);
/** Writes ndt_field_encoded_bytes(field) bytes. */
void ndt_field_encode(const struct ndt_field *field, uint8_t *out);
NDT_MUST_CHECK enum ndt_status ndt_field_decode(struct ndt_field **out, const uint8_t *data, size_t size,
                                                struct ndt_error *err);
/** @} */

#ifdef __cplusplus
}
#endif
#endif
