#include "map_builder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double ORIGIN_STEP_M = 1024.0;

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
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%zu map levels; 1 to %d are possible", config->level_count,
                        NDT_MAX_LEVELS);
    for (size_t i = 0; i < config->level_count; i++)
        if (!(config->leaf_m[i] >= 0.1 && config->leaf_m[i] <= 100.0))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "map leaf %g m is outside 0.1 .. 100 m", config->leaf_m[i]);
    if (config->min_points < 3)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "a voxel needs at least 3 points, not %u", config->min_points);
    if (!(config->min_eigenvalue_ratio >= 1e-6 && config->min_eigenvalue_ratio <= 1.0))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "smallest eigenvalue ratio %g is outside 1e-6 .. 1",
                        config->min_eigenvalue_ratio);
    if (!(config->outlier_ratio > 0 && config->outlier_ratio < 1))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "outlier ratio %g is outside 0 .. 1", config->outlier_ratio);
    return NDT_OK;
}

static int compare_descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* A level follows from the next finer one when its edge is exactly twice as long. */
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
        free(builder->tables[i].slots);
    free(builder);
}

uint64_t ndt_map_builder_points(const struct ndt_map_builder *builder)
{
    return builder->points;
}

static struct ndt_cell_sums *find_slot(const struct ndt_sum_table *table, uint64_t key)
{
    const size_t mask = table->slot_count - 1;
    size_t at = ndt_key_hash(key) & mask;
    while (table->slots[at].key != key && table->slots[at].key != 0)
        at = (at + 1) & mask;
    return &table->slots[at];
}

static enum ndt_status grow(struct ndt_sum_table *table, struct ndt_error *err)
{
    struct ndt_sum_table grown = *table;
    grown.slot_count = table->slot_count ? 2 * table->slot_count : 4096;
    grown.slots = calloc(grown.slot_count, sizeof(*grown.slots));
    if (!grown.slots)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a map of %zu cells of %g m", grown.slot_count / 2,
                        table->leaf_m);
    for (size_t i = 0; i < table->slot_count; i++)
        if (table->slots[i].key != 0)
            *find_slot(&grown, table->slots[i].key) = table->slots[i];
    free(table->slots);
    *table = grown;
    return NDT_OK;
}

/* A point as cell number and whole steps from the centre of the cell. */
struct cell_point {
    uint64_t key;
    int64_t u[3];
};

static int locate(double leaf_m, const double x_m[3], struct cell_point *out)
{
    int32_t cell[3];
    for (int i = 0; i < 3; i++) {
        const double scaled = x_m[i] / leaf_m;
        if (!(fabs(scaled) < NDT_CELL_LIMIT - 2))
            return 0;
        const double corner = floor(scaled);
        cell[i] = (int32_t)corner;
        out->u[i] = (int64_t)((scaled - corner) * NDT_CELL_STEPS + 0.5) - NDT_CELL_STEPS / 2;
    }
    out->key = ndt_cell_key(cell);
    return 1;
}

static void accumulate(struct ndt_cell_sums *sums, const int64_t u[3], int sign)
{
    sums->n = sign > 0 ? sums->n + 1 : sums->n - 1;
    for (int i = 0, at = 0; i < 3; i++) {
        sums->s[i] += sign * u[i];
        for (int j = i; j < 3; j++)
            sums->q[at++] += sign * u[i] * u[j];
    }
}

static enum ndt_status add_point(struct ndt_sum_table *table, const struct cell_point *point, struct ndt_error *err)
{
    if (table->used * 2 >= table->slot_count) {
        enum ndt_status status = grow(table, err);
        if (status != NDT_OK)
            return status;
    }
    struct ndt_cell_sums *sums = find_slot(table, point->key);
    if (sums->n >= NDT_CELL_MAX_POINTS)
        return ndt_fail(err, NDT_ERR_LIMIT, "more than %u points in one cell of %g m", NDT_CELL_MAX_POINTS,
                        table->leaf_m);
    if (sums->key == 0) {
        sums->key = point->key;
        table->used++;
    }
    accumulate(sums, point->u, 1);
    return NDT_OK;
}

static enum ndt_status remove_point(struct ndt_sum_table *table, const struct cell_point *point,
                                    struct ndt_error *err)
{
    struct ndt_cell_sums *sums = table->slot_count ? find_slot(table, point->key) : NULL;
    if (!sums || sums->key == 0 || sums->n == 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "a point to remove was never added to the map");
    accumulate(sums, point->u, -1);
    return NDT_OK;
}

static int map_point(const struct ndt_map_builder *builder, const struct ndt_cloud *cloud, size_t i, double x_m[3])
{
    const float p[3] = {cloud->x_m[i], cloud->y_m[i], cloud->z_m[i]};
    for (int k = 0; k < 3; k++) {
        if (!isfinite(p[k]))
            return 0;
        x_m[k] = p[k] + (cloud->origin_m[k] - builder->origin_m[k]);
    }
    return 1;
}

static void choose_origin(struct ndt_map_builder *builder, const struct ndt_cloud *cloud)
{
    double x_m[3];
    for (size_t i = 0; !builder->has_origin && i < cloud->count; i++) {
        if (!map_point(builder, cloud, i, x_m))
            continue;
        for (int k = 0; k < 3; k++)
            builder->origin_m[k] = round(x_m[k] / ORIGIN_STEP_M) * ORIGIN_STEP_M + 0.0; /* never minus zero */
        builder->has_origin = 1;
    }
}

/* Adds or removes points [0, count) of one level; *done says how many were handled before a failure. */
static enum ndt_status apply(struct ndt_map_builder *builder, size_t level, const struct ndt_cloud *cloud,
                             size_t count, int sign, size_t *done, struct ndt_error *err)
{
    struct ndt_sum_table *table = &builder->tables[level];
    struct cell_point point;
    double x_m[3];
    for (*done = 0; *done < count; ++*done) {
        if (!map_point(builder, cloud, *done, x_m))
            continue;
        if (!locate(table->leaf_m, x_m, &point))
            return ndt_fail(err, NDT_ERR_LIMIT,
                            "point %zu is %.0f m from the origin of the map; with cells of %g m "
                            "%.0f m are possible",
                            *done, fmax(fabs(x_m[0]), fmax(fabs(x_m[1]), fabs(x_m[2]))), table->leaf_m,
                            table->leaf_m * NDT_CELL_LIMIT);
        enum ndt_status status = sign > 0 ? add_point(table, &point, err) : remove_point(table, &point, err);
        if (status != NDT_OK)
            return status;
    }
    return NDT_OK;
}

static uint64_t count_finite(const struct ndt_map_builder *builder, const struct ndt_cloud *cloud)
{
    uint64_t count = 0;
    double x_m[3];
    for (size_t i = 0; i < cloud->count; i++)
        count += (uint64_t)map_point(builder, cloud, i, x_m);
    return count;
}

/* Integer sums make the way back exact: a failure leaves the builder as it was. */
static enum ndt_status apply_all(struct ndt_map_builder *builder, const struct ndt_cloud *cloud, int sign,
                                 struct ndt_error *err)
{
    for (size_t i = 0; i < builder->config.level_count; i++) {
        if (builder->derived[i])
            continue;
        size_t done, undone;
        enum ndt_status status = apply(builder, i, cloud, cloud->count, sign, &done, err);
        if (status == NDT_OK)
            continue;
        (void)!apply(builder, i, cloud, done, -sign, &undone, NULL);
        for (size_t j = 0; j < i; j++)
            if (!builder->derived[j])
                (void)!apply(builder, j, cloud, cloud->count, -sign, &undone, NULL);
        return status;
    }
    builder->points += (uint64_t)sign * count_finite(builder, cloud);
    return NDT_OK;
}

enum ndt_status ndt_map_builder_add(struct ndt_map_builder *builder, const struct ndt_cloud *cloud,
                                    struct ndt_error *err)
{
    const int had_origin = builder->has_origin;
    choose_origin(builder, cloud);
    const enum ndt_status status = apply_all(builder, cloud, 1, err);
    if (status != NDT_OK)
        builder->has_origin = had_origin;
    return status;
}

enum ndt_status ndt_map_builder_remove(struct ndt_map_builder *builder, const struct ndt_cloud *cloud,
                                       struct ndt_error *err)
{
    return apply_all(builder, cloud, -1, err);
}
