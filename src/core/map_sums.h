/* Private to the core: the additive sums of one level, as integers (see ndt/map.h). */
#ifndef NDT_MAP_SUMS_H
#define NDT_MAP_SUMS_H

#include "ndt/map.h"

/* Coordinates of a point within its cell: whole steps of leaf / 2^18 from the centre of the cell. Then
 * |u| <= 2^17, and 2^28 points per cell keep every sum below 2^63. */
#define NDT_CELL_STEPS      262144
#define NDT_CELL_MAX_POINTS ((uint32_t)1 << 28)
/* Cell numbers that fit a key: |cell| < 2^20. */
#define NDT_CELL_LIMIT 1048576

struct ndt_cell_sums {
    uint64_t key; /* 0 = free slot */
    uint32_t n;
    int64_t s[3];
    int64_t q[6]; /* xx xy xz yy yz zz */
};

struct ndt_sum_table {
    double leaf_m;
    struct ndt_cell_sums *slots;
    size_t slot_count; /* power of two */
    size_t used;
};

/* The same sums in metres relative to the centre of the cell. */
struct ndt_moments {
    int32_t cell[3];
    double n;
    double s_m[3];
    double q_m2[6];
};

static inline uint64_t ndt_cell_key(const int32_t cell[3])
{
    return (uint64_t)1 << 63 | (uint64_t)(uint32_t)(cell[2] + NDT_CELL_LIMIT) << 42 |
           (uint64_t)(uint32_t)(cell[1] + NDT_CELL_LIMIT) << 21 | (uint64_t)(uint32_t)(cell[0] + NDT_CELL_LIMIT);
}

static inline void ndt_cell_from_key(uint64_t key, int32_t cell[3])
{
    for (int i = 0; i < 3; i++)
        cell[i] = (int32_t)(key >> (21 * i) & 0x1fffff) - NDT_CELL_LIMIT;
}

static inline uint64_t ndt_key_hash(uint64_t key)
{
    key *= 0x9e3779b97f4a7c15u;
    return key ^ key >> 29;
}

/* Builds one level (voxels and index) from its moments, which are reordered. The arrays are owned by the
 * level and freed with ndt_map_level_free. */
NDT_MUST_CHECK enum ndt_status ndt_map_level_build(struct ndt_map_level *out, const struct ndt_map_config *config,
                                                   double leaf_m, struct ndt_moments *moments, size_t count,
                                                   struct ndt_error *err);
void ndt_map_level_free(struct ndt_map_level *level);

/* One Gaussian from its moments; 0 when the voxel is rejected. */
int ndt_voxel_from_moments(struct ndt_voxel *out, const struct ndt_map_config *config, double leaf_m,
                           const struct ndt_moments *moments);

#endif
