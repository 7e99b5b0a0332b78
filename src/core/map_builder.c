/* The builder: keeps the sums of all levels, adds and removes clouds, moves the origin. */
#include "map_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/limits.h"

static const double ORIGIN_STEP_M = 1024.0, EXACT_M = 8192.0, POOL_SPIN_US = 100.0;
/* Least work for which a thread is started; its start costs as much as some thousand points. */
enum { POINTS_PER_THREAD = 32768, THREADS_BY_DEFAULT = 4 };

void ndt_map_config_default(struct ndt_map_config *config)
{
    *config = (struct ndt_map_config){
        .level_count = 3,
        .leaf_m = {4.0, 2.0, 1.0},
        .min_points = 6,
        .min_eigenvalue_ratio = 0.01,
        .covariance = NDT_COVARIANCE_UNBIASED,
        .outlier_ratio = 0.55,
    };
}

static enum ndt_status check_config(const struct ndt_map_config *config, struct ndt_error *err)
{
    if (config->level_count < 1 || config->level_count > NDT_MAX_LEVELS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%zu map levels; the range is 1 to %d", config->level_count,
                        NDT_MAX_LEVELS);
    for (size_t i = 0; i < config->level_count; i++)
        if (!(config->leaf_m[i] >= 0.1 && config->leaf_m[i] <= 100.0))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "map leaf %g m is outside 0.1 .. 100 m", config->leaf_m[i]);
    if (config->min_points < 3)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "a voxel needs at least 3 points, not %u", config->min_points);
    if (!(config->min_eigenvalue_ratio >= 1e-6 && config->min_eigenvalue_ratio <= 1.0))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "smallest eigenvalue ratio %g is outside 1e-6 .. 1",
                        config->min_eigenvalue_ratio);
    if (config->threads < 0 || config->threads > NDT_BUILD_THREADS_MAX)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "a map cannot be built by %d threads; 0 to %d are possible",
                        config->threads, NDT_BUILD_THREADS_MAX);
    if (!(config->outlier_ratio > 0 && config->outlier_ratio < 1))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "outlier ratio %g is outside 0 .. 1", config->outlier_ratio);
    return NDT_OK;
}

static int compare_descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* A level is derived from the next finer one if its edge is exactly twice as long. */
static void plan_levels(struct ndt_map_builder *builder)
{
    struct ndt_map_config *config = &builder->config;
    qsort(config->leaf_m, config->level_count, sizeof(double), compare_descending);
    for (size_t i = 0; i < config->level_count; i++) {
        builder->derived[i] = i + 1 < config->level_count && config->leaf_m[i] == 2 * config->leaf_m[i + 1];
        builder->tables[i].leaf_m = config->leaf_m[i];
    }
}

enum ndt_status ndt_map_builder_create(struct ndt_map_builder **out, const struct ndt_map_config *config,
                                       struct ndt_error *err)
{
    *out = NULL;
    enum ndt_status status = check_config(config, err);
    if (status != NDT_OK)
        return status;
    struct ndt_map_builder *builder = calloc(1, sizeof(*builder));
    if (!builder)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a map builder");
    builder->config = *config;
    plan_levels(builder);
    *out = builder;
    return NDT_OK;
}

void ndt_map_builder_destroy(struct ndt_map_builder *builder)
{
    if (!builder)
        return;
    for (size_t i = 0; i < NDT_MAX_LEVELS; i++)
        ndt_sum_table_free(&builder->tables[i]);
    free(builder);
}

/* If threads cannot be started, the caller works alone. */
enum ndt_status ndt_map_builder_pool(const struct ndt_map_builder *builder, size_t worth, struct ndt_pool **out,
                                     struct ndt_error *err)
{
    size_t threads = (size_t)builder->config.threads;
    if (threads == 0) {
        threads = (size_t)ndt_pool_cores();
        threads = threads < THREADS_BY_DEFAULT ? threads : THREADS_BY_DEFAULT;
    }
    threads = threads < worth ? threads : worth;
    if (threads > 1 && ndt_pool_create(out, (int)threads, POOL_SPIN_US, 0, NULL) == NDT_OK)
        return NDT_OK;
    return ndt_pool_create(out, 1, 0, 0, err);
}

void ndt_map_builder_watch(struct ndt_map_builder *builder, struct ndt_progress *progress)
{
    builder->progress = progress;
}

uint64_t ndt_map_builder_points(const struct ndt_map_builder *builder)
{
    return builder->points;
}

size_t ndt_map_builder_bytes(const struct ndt_map_builder *builder)
{
    size_t bytes = 0;
    for (size_t i = 0; i < builder->config.level_count; i++)
        bytes += builder->tables[i].capacity * sizeof(*builder->tables[i].cells) +
                 builder->tables[i].index_slots * sizeof(*builder->tables[i].index);
    return bytes;
}

static void choose_origin(struct ndt_map_builder *builder, const struct ndt_cloud *cloud)
{
    double x_m[3];
    for (size_t i = 0; !builder->has_origin && i < cloud->count; i++) {
        if (!ndt_cloud_point(cloud, i, builder->origin_m, x_m))
            continue;
        for (int k = 0; k < 3; k++)
            builder->origin_m[k] = round(x_m[k] / ORIGIN_STEP_M) * ORIGIN_STEP_M + 0.0; /* no minus zero */
        builder->has_origin = 1;
    }
}

/* The sums of a cloud for every level that has sums of its own. */
struct change {
    struct ndt_sum_table tables[NDT_MAX_LEVELS];
    uint64_t points;
};

static enum ndt_status prepare(struct ndt_map_builder *builder, const struct ndt_cloud *cloud, int sign,
                               struct change *change, struct ndt_error *err)
{
    struct ndt_pool *pool;
    enum ndt_status status = ndt_map_builder_pool(builder, cloud->count / POINTS_PER_THREAD, &pool, err);
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; status == NDT_OK && i < builder->config.level_count; i++) {
        struct ndt_sum_table *table = &change->tables[i];
        if (builder->derived[i])
            continue;
        status = ndt_cloud_sums(table, &change->points, cloud, builder->origin_m, builder->config.leaf_m[i], pool,
                                builder->progress, err);
        if (status == NDT_OK)
            status = sign > 0 ? ndt_sum_table_can_add(&builder->tables[i], table, err)
                              : ndt_sum_table_can_remove(&builder->tables[i], table, err);
    }
    ndt_pool_destroy(pool);
    return status;
}

/* ---- another origin ---- */

/* A float of at least 2^-17 is a multiple of 2^-40, and so is, without rounding, its double relative to an origin
 * that is a multiple of 2^-30 up to 2^13 m away. Then its remainder within its cell is the same for any such
 * origin. Bit operations instead of comparisons, so that the loop is vectorised. */
static int has_tiny(const float *p_m, size_t count)
{
    const uint32_t two_to_minus_17 = 0x37000000u;
    uint32_t tiny = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &p_m[i], sizeof(bits));
        bits &= 0x7fffffffu;
        tiny |= (bits - two_to_minus_17) & -bits; /* top bit: below the limit, and not zero */
    }
    return (tiny >> 31) != 0;
}

/* Whether some cell lies beyond the distance that is exact. */
static int is_far(const struct ndt_sum_table *table, int axis)
{
    const double limit = EXACT_M / table->leaf_m - 1;
    int far = 0;
    for (size_t i = 0; i < table->used; i++) {
        int32_t cell[3];
        ndt_cell_from_key(table->cells[i].key, cell);
        far |= abs(cell[axis]) >= limit;
    }
    return far;
}

static void note_inexact(struct ndt_map_builder *builder, const struct ndt_cloud *cloud,
                         const struct change *change)
{
    const float *p_m[] = {cloud->x_m, cloud->y_m, cloud->z_m};
    for (int k = 0; k < 3; k++) {
        const double from_m = cloud->origin_m[k];
        builder->inexact[k] |= !(fabs(from_m) < 0x1p23) || from_m * 0x1p30 != rint(from_m * 0x1p30);
        builder->inexact[k] |= has_tiny(p_m[k], cloud->count);
        for (size_t i = 0; i < builder->config.level_count; i++)
            builder->inexact[k] |= !builder->derived[i] && is_far(&change->tables[i], k);
    }
}

static int can_move(const struct ndt_map_builder *builder, const double by_m[3])
{
    int exponent;
    for (size_t i = 0; i < builder->config.level_count; i++)
        if (frexp(builder->config.leaf_m[i], &exponent) != 0.5)
            return 0;
    for (int k = 0; k < 3; k++)
        if (by_m[k] != 0.0 &&
            (builder->inexact[k] || fmod(by_m[k], ORIGIN_STEP_M) != 0.0 || !(fabs(by_m[k]) < 2 * EXACT_M)))
            return 0;
    return builder->has_origin;
}

/* Renumbers all levels into `moved`; the builder is unchanged. */
static int renumber_levels(const struct ndt_map_builder *builder, const double by_m[3], struct ndt_sum_table *moved)
{
    int good = 1;
    for (size_t i = 0; good && i < builder->config.level_count; i++) {
        const double leaf_m = builder->config.leaf_m[i];
        int64_t zero[3];
        for (int k = 0; k < 3; k++)
            zero[k] = (int64_t)(by_m[k] / leaf_m);
        if (!builder->derived[i])
            good = ndt_sum_table_renumber(&moved[i], &builder->tables[i], zero, (int64_t)(EXACT_M / leaf_m));
    }
    return good;
}

int ndt_map_builder_move_origin(struct ndt_map_builder *builder, const double origin_m[3])
{
    struct ndt_sum_table moved[NDT_MAX_LEVELS] = {0};
    double by_m[3];
    for (int k = 0; k < 3; k++)
        by_m[k] = origin_m[k] - builder->origin_m[k];
    const int good = can_move(builder, by_m) && renumber_levels(builder, by_m, moved);
    for (size_t i = 0; i < builder->config.level_count; i++) {
        if (!builder->derived[i] && good) {
            const struct ndt_sum_table before = builder->tables[i];
            builder->tables[i] = moved[i];
            moved[i] = before;
        }
        ndt_sum_table_free(&moved[i]);
    }
    if (good)
        memcpy(builder->origin_m, origin_m, sizeof(builder->origin_m));
    return good;
}

/* Changes all levels or none: everything that can fail is done first. */
static enum ndt_status apply(struct ndt_map_builder *builder, const struct ndt_cloud *cloud, int sign,
                             struct ndt_error *err)
{
    struct change change = {0};
    enum ndt_status status = prepare(builder, cloud, sign, &change, err);
    if (status == NDT_OK && sign > 0)
        note_inexact(builder, cloud, &change);
    for (size_t i = 0; i < builder->config.level_count; i++) {
        if (status == NDT_OK && sign > 0)
            ndt_sum_table_add(&builder->tables[i], &change.tables[i]);
        else if (status == NDT_OK)
            ndt_sum_table_remove(&builder->tables[i], &change.tables[i]);
        ndt_sum_table_free(&change.tables[i]);
    }
    if (status == NDT_OK)
        builder->points += (uint64_t)sign * change.points;
    return status;
}

/* From some thousand points: the magnitude decides, and it differs little within a cloud. */
static void note_spacing(struct ndt_map_builder *builder, const struct ndt_cloud *cloud)
{
    const float *const axes_m[3] = {cloud->x_m, cloud->y_m, cloud->z_m};
    const size_t step = 1 + cloud->count / 4096;
    float most_m = 0;
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < cloud->count; i += step) {
            const float size_m = fabsf(axes_m[k][i]);
            most_m = size_m > most_m && size_m <= (float)NDT_LIMIT_POSITION_M ? size_m : most_m;
        }
    builder->spacing_m = fmax(builder->spacing_m, (double)(nextafterf(most_m, INFINITY) - most_m));
}

enum ndt_status ndt_map_builder_add(struct ndt_map_builder *builder, const struct ndt_cloud *cloud,
                                    struct ndt_error *err)
{
    const int had_origin = builder->has_origin;
    choose_origin(builder, cloud);
    const enum ndt_status status = apply(builder, cloud, 1, err);
    if (status == NDT_OK)
        note_spacing(builder, cloud);
    else
        builder->has_origin = had_origin;
    return status;
}

enum ndt_status ndt_map_builder_remove(struct ndt_map_builder *builder, const struct ndt_cloud *cloud,
                                       struct ndt_error *err)
{
    return apply(builder, cloud, -1, err);
}
