/* Checks of a compiled map before it is used. */
#include "compiled_map_file.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/pool.h"

/* Limit of the builder above which bricks are hashed; cells are counted up to this. */
#define DENSE_BRICKS_MAX ((uint64_t)4 << 20)
#define CELL_LIMIT       (1 << 20)
/* Longest run of used slots that is accepted. Half of the slots are free, so that even 2^32 slots hardly have a run
 * of 200. */
enum { LONGEST_RUN = 1024 };
/* Items per step of the check, some milliseconds each. */
enum {
    BRICKS_AT_ONCE = 64,
    VOXELS_AT_ONCE = 65536,
    SLOTS_AT_ONCE = 1 << 20,
    MOST_THREADS = 4,
    PARTS_PER_THREAD = 4
};
static const double POOL_SPIN_US = 100.0;
static const float FAR_AWAY_M = 1e9f;
static const double ORIGIN_LIMIT_M = 1e12;

void ndt_file_array_sizes(const struct ndt_file_level *level, uint64_t sizes[NDT_FILE_ARRAYS])
{
    sizes[NDT_FILE_VOXELS] = (uint64_t)level->voxel_count * sizeof(struct ndt_voxel);
    sizes[NDT_FILE_BRICKS] = (uint64_t)level->brick_slots * sizeof(uint32_t);
    sizes[NDT_FILE_KEYS] = level->hashed ? (uint64_t)level->brick_slots * sizeof(uint64_t) : 0;
    sizes[NDT_FILE_CELLS] = (uint64_t)level->brick_count * NDT_FILE_BRICK_CELLS * sizeof(struct ndt_cell_ref);
    sizes[NDT_FILE_LISTS] = level->list_words * sizeof(uint32_t);
}

/* ---- the header ---- */

static int array_fits(uint64_t offset, uint64_t size, uint64_t file_bytes)
{
    return offset % NDT_FILE_ALIGNMENT == 0 && offset >= sizeof(struct ndt_file_header) && offset <= file_bytes &&
           size <= file_bytes - offset;
}

/* Whether the table covers the box around all bricks: one slot for each, or a power of two. */
static int table_fits(const struct ndt_file_level *level)
{
    uint64_t slots = 1;
    for (int i = 0; i < 3; i++) {
        if (level->brick_dim[i] < 0 || level->brick_dim[i] > CELL_LIMIT || level->brick_min[i] < -CELL_LIMIT ||
            level->brick_min[i] > CELL_LIMIT)
            return 0;
        slots = slots > UINT32_MAX ? slots : slots * (uint64_t)level->brick_dim[i];
    }
    if (level->hashed)
        return (level->brick_slots & (level->brick_slots - 1)) == 0;
    return level->brick_slots == (slots > 0 ? slots : 1) && level->brick_slots <= DENSE_BRICKS_MAX;
}

static int is_mixture(const struct ndt_file_level *level)
{
    return isfinite(level->d1) && isfinite(level->d2) && isfinite(level->d3) && level->d1 < 0 && level->d2 > 0;
}

static const char *level_fault(const struct ndt_file_level *level, uint64_t file_bytes)
{
    uint64_t sizes[NDT_FILE_ARRAYS];
    if (!(level->leaf_m >= 0.1 && level->leaf_m <= 100.0))
        return "a leaf is outside 0.1 .. 100 m";
    if (!is_mixture(level))
        return "the constants of a level are not those of a mixture";
    if (level->hashed > 1 || level->voxel_count < 1 || level->brick_count < 1 || level->brick_slots < 1 ||
        level->list_words < 32 || level->list_words > file_bytes || !table_fits(level))
        return "sizes contradict each other";
    ndt_file_array_sizes(level, sizes);
    for (int i = 0; i < NDT_FILE_ARRAYS; i++)
        if (!array_fits(level->offset[i], sizes[i], file_bytes))
            return "an array is outside of the file";
    return NULL;
}

static int is_origin(const double origin_m[3])
{
    for (int i = 0; i < 3; i++)
        if (!(fabs(origin_m[i]) <= ORIGIN_LIMIT_M))
            return 0;
    return 1;
}

const char *ndt_file_header_fault(const struct ndt_file_header *header, uint64_t file_bytes)
{
    if (!is_origin(header->origin_m))
        return "the origin is not a position";
    if (header->covariance > NDT_COVARIANCE_AUTOWARE)
        return "the kind of the covariances is unknown";
    if (!isfinite(header->min_eigenvalue_ratio) || !isfinite(header->outlier_ratio))
        return "a rule is not a number";
    for (uint32_t i = 0; i < header->level_count; i++) {
        const char *fault = level_fault(&header->levels[i], file_bytes);
        if (fault)
            return fault;
        if (i > 0 && header->levels[i].leaf_m > header->levels[i - 1].leaf_m)
            return "levels do not go from coarse to fine";
    }
    return NULL;
}

/* ---- the index, and the lists of every brick ---- */

struct brick {
    int32_t at[3];
    int32_t is_found; /* a slot leads to it */
};

struct check {
    const struct ndt_map_level *level;
    struct ndt_progress *progress;
    struct ndt_error *err;
    struct brick *bricks;
    uint32_t found;            /* bricks that a slot leads to */
    uint32_t run;              /* used slots just before the next one */
    const char *_Atomic fault; /* first fault that a thread has found in a list */
};

static int is_none(const struct ndt_cell_ref *ref)
{
    uint64_t bits;
    _Static_assert(sizeof(*ref) == sizeof(bits), "a reference is a word");
    memcpy(&bits, ref, sizeof(bits));
    return bits == 0;
}

static int ref_fits(const struct ndt_map_level *level, const struct ndt_cell_ref *ref)
{
    const uint64_t first = (uint64_t)ref->offset * 8;
    return ref->n1 <= ref->n7 && ref->n7 <= ref->n27 && ref->n27 >= 1 && ref->n27 <= 27 &&
           ref->padded == (ref->n27 + 7) / 8 * 8 && first >= 32 && first + 4u * ref->padded <= level->list_words;
}

/* Whether all ids are voxels: neither the null voxel nor beyond the last. */
static int are_voxels(const uint32_t *ids, uint32_t count, uint32_t voxel_count)
{
    uint32_t good = 1;
    for (uint32_t i = 0; i < count; i++)
        good &= ids[i] - 1 < voxel_count - 1;
    return (int)good;
}

/* Whether the list of `cell` has voxels of adjacent cells, with their means as the builder rounds them. */
static int voxels_are_near(const struct ndt_map_level *level, const struct ndt_cell_ref *ref, const int32_t cell[3])
{
    const uint32_t *list = level->lists + (size_t)ref->offset * 8, *ids = list + 3u * ref->padded;
    const float *x_m = (const float *)(const void *)list, *y_m = x_m + ref->padded, *z_m = y_m + ref->padded;
    const double leaf_m = level->leaf_m;
    uint32_t good = 1;
    if (!are_voxels(ids, ref->n27, level->voxel_count))
        return 0;
    for (uint32_t i = 0; i < ref->n27; i++) {
        const struct ndt_voxel *voxel = &level->voxels[ids[i]];
        const int32_t dx = voxel->cell[0] - cell[0], dy = voxel->cell[1] - cell[1], dz = voxel->cell[2] - cell[2];
        good &= ((uint32_t)(dx + 1) <= 2) & ((uint32_t)(dy + 1) <= 2) & ((uint32_t)(dz + 1) <= 2);
        good &= (x_m[i] == (float)(dx * leaf_m + (double)voxel->mean_m[0])) &
                (y_m[i] == (float)(dy * leaf_m + (double)voxel->mean_m[1])) &
                (z_m[i] == (float)(dz * leaf_m + (double)voxel->mean_m[2]));
    }
    return (int)good;
}

/* Whether the padding is the null voxel, out of the reach of any point. */
static int is_padded(const struct ndt_map_level *level, const struct ndt_cell_ref *ref)
{
    const uint32_t *list = level->lists + (size_t)ref->offset * 8;
    const float *means_m = (const float *)(const void *)list;
    int good = 1;
    for (uint32_t i = ref->n27; i < ref->padded; i++) {
        for (uint32_t k = 0; k < 3; k++)
            good &= means_m[k * ref->padded + i] == FAR_AWAY_M;
        good &= list[3u * ref->padded + i] == 0;
    }
    return good;
}

static const char *brick_fault(const struct ndt_map_level *level, uint32_t number, const int32_t brick[3])
{
    const struct ndt_cell_ref *refs = &level->cells[(size_t)number * NDT_FILE_BRICK_CELLS];
    for (int32_t c = 0; c < NDT_FILE_BRICK_CELLS; c++) {
        const int32_t cell[3] = {8 * brick[0] + c % 8, 8 * brick[1] + c / 8 % 8, 8 * brick[2] + c / 64};
        if (is_none(&refs[c]))
            continue;
        if (number == 0)
            return "the empty brick is not empty";
        if (!ref_fits(level, &refs[c]))
            return "an index points outside of the file";
        if (!voxels_are_near(level, &refs[c], cell) || !is_padded(level, &refs[c]))
            return "a list of neighbours is damaged";
    }
    return NULL;
}

/* Finds the brick of a used slot; 0 where it is outside of the box. */
static int brick_of_slot(const struct ndt_map_level *level, uint64_t slot, int32_t brick[3])
{
    const uint64_t key = level->hashed ? level->brick_keys[slot] : 0;
    for (int k = 0; k < 3; k++) {
        int64_t from_edge = 0;
        if (level->hashed) {
            from_edge = (int64_t)(key >> (21 * k) & 0x1fffff) - CELL_LIMIT - level->brick_min[k];
        } else if (level->brick_dim[k] > 0) {
            from_edge = (int64_t)(slot % (uint32_t)level->brick_dim[k]);
            slot /= (uint32_t)level->brick_dim[k];
        }
        if (from_edge < 0 || from_edge >= level->brick_dim[k])
            return 0;
        brick[k] = level->brick_min[k] + (int32_t)from_edge;
    }
    return level->hashed ? key >> 63 == 1 : slot == 0;
}

/* Checks that every slot leads to a brick of its own or to the empty one. */
static const char *slots_fault(struct check *check, uint64_t from, uint64_t to)
{
    const struct ndt_map_level *level = check->level;
    for (uint64_t slot = from; slot < to; slot++) {
        const uint32_t number = level->bricks[slot];
        const int in_use = level->hashed ? level->brick_keys[slot] != 0 : number != 0;
        check->run = in_use ? check->run + 1 : 0;
        if (!in_use && number == 0)
            continue;
        if (!in_use || number == 0 || number >= level->brick_count || check->bricks[number].is_found ||
            !brick_of_slot(level, slot, check->bricks[number].at) || (level->hashed && check->run > LONGEST_RUN))
            return "the index of its bricks is damaged";
        check->bricks[number].is_found = 1;
        check->found++;
    }
    return NULL;
}

/* Checks that half of a hashed table is free, so that a search that finds nothing ends. */
static const char *table_fault(const struct check *check)
{
    const struct ndt_map_level *level = check->level;
    if (level->hashed && check->found > level->brick_slots / 2)
        return "the index of its bricks is too full";
    return check->found != level->brick_count - 1 ? "a brick is not in the index" : NULL;
}

static void check_bricks(void *context, size_t part)
{
    struct check *check = context;
    const size_t last = (part + 1) * BRICKS_AT_ONCE, count = check->level->brick_count;
    if (atomic_load(&check->fault) || !ndt_progress_step(check->progress))
        return;
    for (size_t i = part * BRICKS_AT_ONCE; i < last && i < count; i++) {
        const char *fault = brick_fault(check->level, (uint32_t)i, check->bricks[i].at);
        if (fault)
            atomic_store(&check->fault, fault);
    }
}

/* Checks the lists, most of the file, by several threads. */
static enum ndt_status check_lists(struct check *check, const char **fault)
{
    const size_t parts = (check->level->brick_count + BRICKS_AT_ONCE - 1) / BRICKS_AT_ONCE;
    struct ndt_pool *pool;
    int threads = ndt_pool_cores() < MOST_THREADS ? ndt_pool_cores() : MOST_THREADS;
    if (parts < PARTS_PER_THREAD * (size_t)threads)
        threads = 1 + (int)(parts / PARTS_PER_THREAD);
    if (ndt_pool_create(&pool, threads, POOL_SPIN_US, 0, NULL) != NDT_OK) {
        enum ndt_status status = ndt_pool_create(&pool, 1, 0, 0, check->err);
        if (status != NDT_OK)
            return status;
    }
    ndt_pool_run(pool, check_bricks, check, parts);
    ndt_pool_destroy(pool);
    *fault = atomic_load(&check->fault);
    return ndt_progress_check(check->progress, check->err);
}

/* ---- voxels ---- */

/* Whether a matrix is finite, and positive definite by its leading minors. This is exact enough for the ratios of
 * eigenvalues that a builder allows (1e-6) after rounding to float. */
static int is_inverse_covariance(const float icov[6])
{
    const double xx = icov[0], xy = icov[1], xz = icov[2], yy = icov[3], yz = icov[4], zz = icov[5];
    const double minor = xx * yy - xy * xy;
    const double det = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz);
    int finite = 1;
    for (int i = 0; i < 6; i++)
        finite &= fabsf(icov[i]) <= NDT_MAX_INVERSE_COVARIANCE;
    return finite & (xx > 0) & (minor > 0) & (det > 0);
}

static const char *voxels_fault(struct check *check, uint64_t from, uint64_t to)
{
    const struct ndt_map_level *level = check->level;
    const float low_m = -0.01f * (float)level->leaf_m, high_m = 1.01f * (float)level->leaf_m;
    int good = 1;
    for (uint64_t v = from > 0 ? from : 1; v < to; v++) {
        const struct ndt_voxel *voxel = &level->voxels[v];
        for (int k = 0; k < 3; k++) {
            good &= (voxel->mean_m[k] >= low_m) & (voxel->mean_m[k] <= high_m);
            good &= (voxel->cell[k] >= -CELL_LIMIT) & (voxel->cell[k] <= CELL_LIMIT);
        }
        good &= is_inverse_covariance(voxel->icov);
    }
    return good ? NULL : "a voxel is not a Gaussian in its cell";
}

static const char *null_voxel_fault(const struct ndt_map_level *level)
{
    static const struct ndt_voxel none;
    return memcmp(&level->voxels[0], &none, sizeof(none)) == 0 ? NULL : "the null voxel is not empty";
}

/* ---- all of a level ---- */

static enum ndt_status check_part(struct check *check, uint64_t count, uint64_t at_once,
                                  const char *(*find_fault)(struct check *, uint64_t from, uint64_t to),
                                  const char **fault)
{
    for (uint64_t from = 0; !*fault && from < count; from += at_once) {
        if (ndt_progress_check(check->progress, check->err) != NDT_OK)
            return NDT_ERR_CANCELLED;
        *fault = find_fault(check, from, count - from < at_once ? count : from + at_once);
    }
    return NDT_OK;
}

static enum ndt_status check_index(struct check *check, const char **fault)
{
    const struct ndt_map_level *level = check->level;
    check->bricks = calloc(level->brick_count, sizeof(*check->bricks));
    if (!check->bricks)
        return ndt_fail(check->err, NDT_ERR_MEMORY, "no memory to check %u bricks", level->brick_count);
    enum ndt_status status = check_part(check, level->brick_slots, SLOTS_AT_ONCE, slots_fault, fault);
    if (status == NDT_OK && !*fault)
        *fault = table_fault(check);
    if (status == NDT_OK && !*fault)
        status = check_lists(check, fault);
    free(check->bricks);
    return status;
}

enum ndt_status ndt_file_level_check(const struct ndt_map_level *level, struct ndt_progress *progress,
                                     const char **fault, struct ndt_error *err)
{
    struct check check = {.level = level, .progress = progress, .err = err};
    *fault = null_voxel_fault(level);
    enum ndt_status status = check_part(&check, level->voxel_count, VOXELS_AT_ONCE, voxels_fault, fault);
    return status == NDT_OK && !*fault ? check_index(&check, fault) : status;
}
