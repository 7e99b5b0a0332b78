/** @file
 * @brief The prior map: one Gaussian per occupied cell, at one or several cell sizes ("levels").
 *
 * Sources: Biber & Strasser 2003; Magnusson 2009, section 6.2. The rules that keep or reject a voxel are those of
 * PCL and Autoware (n >= 6, smaller eigenvalues raised to 1 % of the largest).
 *
 * Two objects:
 *  - `ndt_map_builder` holds additive sums (n, sum x, sum x x^T) per cell, as integers: every coordinate is rounded
 *    to 2^-18 of the edge of its cell (4 um at 1 m), and the sums are exact. Therefore the result does not depend
 *    on the order of points or tiles, a tile is removed exactly, and a coarser level is derived from a finer one
 *    without the points.
 *  - `ndt_map` is immutable and reference-counted: voxel records, and a neighbour list for every cell near an
 *    occupied one. Positions are integer cell numbers plus floats relative to a cell, and the origin is double:
 *    UTM coordinates cost no precision.
 *
 * Threads: a builder is used by one thread at a time. A call with enough work starts helper threads (see
 * ndt_map_config.threads) and ends them before it returns. Determinism: the sums are exact and everything else has
 * a fixed order, so the map is bit-identical for any number of threads. A finished map may be read by any number
 * of threads. */
#ifndef NDT_MAP_H
#define NDT_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/cloud.h"
#include "ndt/progress.h"
#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most levels of a map, and of an alignment. */
#define NDT_MAX_LEVELS 6
/** Largest element of an inverse covariance: products with the square of any distance in a map are finite. [1/m^2]
 */
#define NDT_MAX_INVERSE_COVARIANCE 1e30f
/** Most threads that build a map. */
#define NDT_BUILD_THREADS_MAX 64

/** Covariance of a voxel. */
enum ndt_covariance_kind {
    NDT_COVARIANCE_UNBIASED, /**< sample covariance; the default */
    NDT_COVARIANCE_AUTOWARE  /**< larger by I/(n-1), as in Autoware, whose sum starts with the identity */
};

/** The voxels that a point is compared with. */
enum ndt_neighbours {
    NDT_RADIUS,  /**< voxels whose mean lies within one cell edge of the point (Autoware, PCL) */
    NDT_DIRECT1, /**< the voxel of the point's own cell */
    NDT_DIRECT7, /**< with the 6 cells that share a face */
    NDT_DIRECT27 /**< with all 26 cells around */
};

/** How a map is built; ndt_map_config_default gives the values in brackets. */
struct ndt_map_config {
    size_t level_count;                  /**< 1 .. NDT_MAX_LEVELS [3] */
    double leaf_m[NDT_MAX_LEVELS];       /**< edges of the cells, in any order; 0.1 .. 100 m [4, 2, 1] */
    uint32_t min_points;                 /**< fewest points of a voxel, >= 3 [6, as Autoware and PCL] */
    double min_eigenvalue_ratio;         /**< smaller eigenvalues are raised to this part of the largest [0.01] */
    enum ndt_covariance_kind covariance; /**< [NDT_COVARIANCE_UNBIASED] */
    double outlier_ratio;                /**< weight of the uniform background (Magnusson 2009, eq. 6.8) [0.55] */
    int threads; /**< number of building threads, the caller's included; 0: one per core, at most 4. Does not affect
                    the map [0] */
};

/** Sets the defaults. */
void ndt_map_config_default(struct ndt_map_config *config);

/** Additive sums of the cells of all levels. */
struct ndt_map_builder;

/** Creates an empty builder. The first finite point ever added, rounded to multiples of 1024 m, becomes the origin
 * of the map; so cell borders are where Autoware and PCL have them (multiples of the leaf, for leaves that divide
 * 1024). */
NDT_MUST_CHECK enum ndt_status ndt_map_builder_create(struct ndt_map_builder **out,
                                                      const struct ndt_map_config *config, struct ndt_error *err);
/** `builder` may be NULL. */
void ndt_map_builder_destroy(struct ndt_map_builder *builder);
/** Adds every finite point of the cloud. On failure (NDT_ERR_LIMIT, NDT_ERR_MEMORY) nothing was added. */
NDT_MUST_CHECK enum ndt_status ndt_map_builder_add(struct ndt_map_builder *builder, const struct ndt_cloud *cloud,
                                                   struct ndt_error *err);
/** Removes exactly what ndt_map_builder_add of the same cloud added. On failure (NDT_ERR_ARGUMENT: it was not
 * added) nothing was removed. */
NDT_MUST_CHECK enum ndt_status ndt_map_builder_remove(struct ndt_map_builder *builder,
                                                      const struct ndt_cloud *cloud, struct ndt_error *err);
/** Makes further calls with this builder count what they do in `progress` and end with NDT_ERR_CANCELLED, as if
 * they had failed, when it is cancelled. NULL: no progress. Borrowed until the next call of this function or
 * destroy. */
void ndt_map_builder_watch(struct ndt_map_builder *builder, struct ndt_progress *progress);
/** Points added and not removed. */
uint64_t ndt_map_builder_points(const struct ndt_map_builder *builder);
/** Moves the origin without the points: the sums become bit-identical to those of a builder that had this origin
 * from the start. Returns 1 if that is possible: leaves are powers of two, origins multiples of 1024 m, and along
 * the axes on which they differ no coordinate was rounded when it was converted to its cell (all within 2^13 m of
 * either origin; none within 2^-17 m of its cloud's origin except on it). Returns 0 and changes nothing otherwise;
 * the points have to be added again. */
int ndt_map_builder_move_origin(struct ndt_map_builder *builder, const double origin_m[3]);
/** Bytes of memory behind the sums. Cells left empty by removals are freed once they are the larger part. */
size_t ndt_map_builder_bytes(const struct ndt_map_builder *builder);

/** One Gaussian, one cache line; an evaluation needs its first 48 bytes. Record 0 of every level is the null voxel
 * (zero inverse covariance, count 0); neighbour lists are padded with it. Shared with the CUDA backend. */
struct ndt_voxel {
    float
        mean_m[3]; /**< relative to the lower corner of its own cell: full float precision anywhere in the world */
    float icov[6]; /**< inverse covariance, upper triangle xx xy xz yy yz zz [1/m^2] */
    int32_t cell[3]; /**< floor((x_map - origin_m) / leaf_m) */
    uint32_t count;  /**< points behind the Gaussian */
    uint32_t reserved[3];
};

/** One level of a map. Everything is read-only and lives as long as the map. */
struct ndt_map_level {
    double leaf_m;
    double d1, d2, d3;              /**< mixture constants (Magnusson 2009, eq. 6.8), from leaf and outlier ratio */
    uint32_t voxel_count;           /**< including the null voxel 0 */
    const struct ndt_voxel *voxels; /**< sorted by cell (z, y, x) */

    /** Index from cell to neighbour list in two levels. A brick is 8x8x8 cells. `bricks` is dense over the box
     * [brick_min, brick_min + brick_dim) or, where that would exceed 4 M entries, an open-addressing table (hashed
     * = 1) of `brick_slots` keys with linear probing. Brick 0 is empty. */
    int32_t brick_min[3], brick_dim[3];
    int hashed;
    uint32_t brick_slots;       /**< power of two when hashed, else the product of brick_dim */
    const uint32_t *bricks;     /**< slot to brick number */
    const uint64_t *brick_keys; /**< hashed only: key of the slot, 0: free */
    uint32_t brick_count;
    /** cells[brick * 512 + (z & 7) * 64 + (y & 7) * 8 + (x & 7)] */
    const struct ndt_cell_ref *cells;
    /** Neighbour lists. That of a ref with padded length P is at lists + 8 * offset: P floats x, P floats y, P
     * floats z (means relative to the lower corner of the cell that owns the list), then P uint32 voxel numbers.
     * Order: own cell, 6 face neighbours, the other 20. */
    const uint32_t *lists;
    uint64_t list_words;
};

/** Neighbour list of a cell: n1 <= n7 <= n27 entries for direct1, direct7, direct27 and radius. The list is padded
 * to a multiple of 8 with the null voxel at a mean of 1e9 m. */
struct ndt_cell_ref {
    uint32_t offset; /**< in units of 8 words; 0: no list (n27 is 0 as well) */
    uint8_t n1, n7, n27, padded;
};

/** A finished map. */
struct ndt_map {
    double origin_m[3];
    uint64_t id; /**< hash of all contents that affect matching: equal ids mean equal maps */
    uint64_t points;
    /** Distance of neighbouring floats at the largest coordinate of a cloud (of some thousand points of it),
     * relative to the origin of that cloud: what the points were rounded to. 0: not known (a compiled map). No part
     * of the id. */
    double spacing_m;
    struct ndt_map_config config;
    size_t level_count;
    struct ndt_map_level levels[NDT_MAX_LEVELS]; /**< from coarse to fine */
    size_t bytes;                                /**< memory behind all levels */
    /** @name Private
     * @{ */
    int references;
    void (*release)(struct ndt_map *map); /**< frees the memory behind the levels, and the map */
    void *storage;
    size_t storage_bytes;
    /** @} */
};

/** Number of levels, from the coarsest on, that are worth an alignment: each of those has at least as many
 * Gaussians as the level before it. A surface has four times as many in cells of half the size; fewer in all mean
 * that most cells have too few points for one, so that most points of a scan would meet nothing there. At least 1.
 */
size_t ndt_map_filled_levels(const struct ndt_map *map);
/** Computes the id from the levels; equals map->id unless the memory of the map was damaged. */
uint64_t ndt_map_identity(const struct ndt_map *map);

/** Makes a map of the sums as they are now; the builder can continue. The caller owns one reference. */
NDT_MUST_CHECK enum ndt_status ndt_map_build(struct ndt_map **out, const struct ndt_map_builder *builder,
                                             struct ndt_error *err);
/** Makes a map of one cloud. */
NDT_MUST_CHECK enum ndt_status ndt_map_from_cloud(struct ndt_map **out, const struct ndt_map_config *config,
                                                  const struct ndt_cloud *cloud, struct ndt_error *err);
/** Adds a reference and returns the map; thread-safe. `map` may be NULL. */
struct ndt_map *ndt_map_retain(struct ndt_map *map);
/** Drops a reference; the last one frees the map. Thread-safe. `map` may be NULL. */
void ndt_map_release(struct ndt_map *map);

/** Index of the level with this leaf (to 1e-6 m), or -1. */
int ndt_map_find_level(const struct ndt_map *map, double leaf_m);
/** The neighbour list of a cell; all zero if the cell has none. */
struct ndt_cell_ref ndt_map_lookup(const struct ndt_map_level *level, const int32_t cell[3]);

#ifdef __cplusplus
}
#endif
#endif
