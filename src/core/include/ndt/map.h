/* The prior map: one Gaussian per occupied cell, at one or several cell sizes ("levels").
 *
 * Source: Biber & Strasser 2003; Magnusson 2009, section 6.2; the rules that keep or reject a voxel are
 * those of PCL and Autoware (n >= 6, smaller eigenvalues raised to 1 % of the largest).
 *
 * Two objects:
 *  - `ndt_map_builder` holds additive sums (n, sum x, sum x x^T) per cell. They are kept as integers:
 *    every coordinate is rounded to 2^-18 of the finest cell's edge (4 um at 1 m) relative to its cell,
 *    and the sums are exact. So the result does not depend on the order of points or tiles, a tile
 *    that is removed leaves no trace, and a coarser level follows from a finer one without the points.
 *  - `ndt_map` is immutable and reference-counted: voxel records, and for every cell near an occupied
 *    one the list of the voxels around it. All positions are int cell numbers plus floats relative to
 *    a cell, and the origin is double: UTM coordinates cost no precision.
 *
 * A builder has one owner, who calls it from one thread at a time. A call with enough to do starts helper threads
 * (see `threads`) and ends them before it returns; because the sums are exact and everything else has a fixed
 * order, the map is the same bit by bit for any number of them. A finished map may be read by any number of
 * threads. */
#ifndef NDT_MAP_H
#define NDT_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/cloud.h"
#include "ndt/status.h"
#include "ndt/voxel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDT_MAX_LEVELS        6
#define NDT_BUILD_THREADS_MAX 64

enum ndt_covariance_kind {
    NDT_COVARIANCE_UNBIASED, /* sample covariance; the default */
    NDT_COVARIANCE_AUTOWARE  /* seeded with the identity: larger by I/(n-1); needed for parity */
};

/* Which voxels a point is compared with. `radius`: all whose mean lies within one cell edge of the
 * point (Autoware, PCL). `directN`: the point's own cell, with its 6 face neighbours, with all 26. */
enum ndt_neighbours { NDT_RADIUS, NDT_DIRECT1, NDT_DIRECT7, NDT_DIRECT27 };

struct ndt_map_config {
    size_t level_count;            /* 1..NDT_MAX_LEVELS */
    double leaf_m[NDT_MAX_LEVELS]; /* any order; 0.1 .. 100 m */
    uint32_t min_points;           /* fewest points of a voxel, >= 3; Autoware and PCL: 6 */
    double min_eigenvalue_ratio;   /* 0.01 */
    enum ndt_covariance_kind covariance;
    double outlier_ratio; /* 0.55 */
    int threads;          /* that build, the caller's included; 0: one per core, at most 4. Not part of the map */
};

void ndt_map_config_default(struct ndt_map_config *config); /* 4, 2, 1 m */

struct ndt_map_builder;

/* The origin of the map is fixed by the first finite point ever added, rounded to a multiple of 1024 m, so
 * that cell borders are where Autoware and PCL have them (multiples of the leaf, for leaves that
 * divide 1024). */
NDT_MUST_CHECK enum ndt_status ndt_map_builder_create(struct ndt_map_builder **out,
                                                      const struct ndt_map_config *config, struct ndt_error *err);
void ndt_map_builder_destroy(struct ndt_map_builder *builder);
/* Adds every finite point of the cloud. On failure (NDT_ERR_LIMIT, NDT_ERR_MEMORY) nothing was added. */
NDT_MUST_CHECK enum ndt_status ndt_map_builder_add(struct ndt_map_builder *builder, const struct ndt_cloud *cloud,
                                                   struct ndt_error *err);
/* Takes away exactly what ndt_map_builder_add of the same cloud added. */
NDT_MUST_CHECK enum ndt_status ndt_map_builder_remove(struct ndt_map_builder *builder,
                                                      const struct ndt_cloud *cloud, struct ndt_error *err);
uint64_t ndt_map_builder_points(const struct ndt_map_builder *builder);
/* Makes the sums those of a builder that had this origin from the start, bit by bit, without the points. 1 when
 * that is possible: leaves are powers of two, origins multiples of 1024 m, and along the axes on which they differ
 * no coordinate was rounded on its way into its cell (all within 2^13 m of either origin; none within 2^-17 m of
 * its cloud's origin but on it). 0: nothing changed, and the points have to be added anew. */
int ndt_map_builder_move_origin(struct ndt_map_builder *builder, const double origin_m[3]);
/* Memory behind the sums; that of cells left empty by removals is given back as it becomes the larger part. */
size_t ndt_map_builder_bytes(const struct ndt_map_builder *builder);

/* One level of a map. Everything is read-only and lives as long as the map. */
struct ndt_map_level {
    double leaf_m;
    double d1, d2, d3;              /* mixture constants (Magnusson 2009, eq. 6.8), from leaf and outlier ratio */
    uint32_t voxel_count;           /* including the null voxel 0 */
    const struct ndt_voxel *voxels; /* sorted by cell (z, y, x) */

    /* Two-level index from cell to neighbour list. A brick is 8x8x8 cells. `bricks` is either dense
     * over the box [brick_min, brick_min + brick_dim), or, where that would exceed 4 M entries, an
     * open-addressing table (hashed = 1) of `brick_slots` keys with linear probing. Brick 0 is empty. */
    int32_t brick_min[3], brick_dim[3];
    int hashed;
    uint32_t brick_slots;       /* power of two when hashed, else brick_dim product */
    const uint32_t *bricks;     /* slot -> brick number */
    const uint64_t *brick_keys; /* hashed only: key of the slot, 0 = free */
    uint32_t brick_count;
    /* cells[brick * 512 + (z & 7) * 64 + (y & 7) * 8 + (x & 7)] */
    const struct ndt_cell_ref *cells;
    /* Neighbour lists: for a ref with P = padded length, at lists + 8 * offset: P floats x, P floats y,
     * P floats z (means relative to the lower corner of the CELL THAT OWNS THE LIST), then P uint32
     * voxel numbers. Order: own cell, 6 face neighbours, the other 20. */
    const uint32_t *lists;
    uint64_t list_words;
};

/* Where a cell's neighbour list is: n1 <= n7 <= n27 entries for direct1, direct7, direct27/radius.
 * The list is padded to a multiple of 8 with the null voxel at a mean of 1e9 m. */
struct ndt_cell_ref {
    uint32_t offset; /* in units of 8 words; 0 = no list (n27 is 0 as well) */
    uint8_t n1, n7, n27, padded;
};

struct ndt_map {
    double origin_m[3];
    uint64_t id; /* hash of everything the matcher sees: equal ids mean equal maps */
    uint64_t points;
    struct ndt_map_config config;
    size_t level_count;
    struct ndt_map_level levels[NDT_MAX_LEVELS]; /* from coarse to fine */
    size_t bytes;                                /* memory behind all levels */
    /* private */
    int references;
    void (*release)(struct ndt_map *map); /* frees whatever is behind the levels, and the map */
    void *storage;
    size_t storage_bytes;
};

/* Private to the readers of maps: the identity of a map that is otherwise complete. */
uint64_t ndt_map_identity(const struct ndt_map *map);

/* Finishes a map from the sums as they are now; the builder can go on. The caller owns one reference. */
NDT_MUST_CHECK enum ndt_status ndt_map_build(struct ndt_map **out, const struct ndt_map_builder *builder,
                                             struct ndt_error *err);
/* The same in one call, from one cloud. */
NDT_MUST_CHECK enum ndt_status ndt_map_from_cloud(struct ndt_map **out, const struct ndt_map_config *config,
                                                  const struct ndt_cloud *cloud, struct ndt_error *err);
struct ndt_map *ndt_map_retain(struct ndt_map *map); /* thread-safe; NULL is passed through */
void ndt_map_release(struct ndt_map *map);           /* thread-safe; NULL allowed */

/* Number of the level with this leaf (to 1e-6 m), or -1. */
int ndt_map_find_level(const struct ndt_map *map, double leaf_m);
/* Neighbour list reference of a cell; all zero where there is none. */
struct ndt_cell_ref ndt_map_lookup(const struct ndt_map_level *level, const int32_t cell[3]);

#ifdef __cplusplus
}
#endif
#endif
