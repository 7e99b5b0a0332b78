#include "bench_maps.h"

#include <string.h>

#include "ndt_io/cloud_file.h"
#include "ndt_io/map_file.h"
#include "ndt/clock.h"

enum { BUILDS = 5 };

static int is_cloud_file(const char *path)
{
    static const char *const ends[] = {".pcd", ".ply", ".bin"};
    const size_t length = strlen(path);
    for (size_t i = 0; i < 3; i++)
        if (length > 4 && strcmp(path + length - 4, ends[i]) == 0)
            return 1;
    return 0;
}

enum ndt_status bench_maps_open(struct bench_maps *maps, const char *path, struct ndt_error *err)
{
    *maps = (struct bench_maps){.path = path};
    ndt_cloud_init(&maps->points);
    const double start_us = ndt_clock_us();
    enum ndt_status status = is_cloud_file(path) ? ndt_cloud_read(&maps->points, path, err) : NDT_OK;
    maps->read_ms = (ndt_clock_us() - start_us) * 1e-3;
    return status;
}

static int same(const struct ndt_map_config *a, const struct ndt_map_config *b)
{
    return a->level_count == b->level_count && a->min_points == b->min_points && a->covariance == b->covariance &&
           a->min_eigenvalue_ratio == b->min_eigenvalue_ratio && a->outlier_ratio == b->outlier_ratio &&
           memcmp(a->leaf_m, b->leaf_m, a->level_count * sizeof(double)) == 0;
}

static enum ndt_status build(struct bench_map *item, const struct ndt_cloud *points, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < BUILDS; i++) {
        ndt_map_release(item->map);
        item->map = NULL;
        const double start_us = ndt_clock_us();
        status = ndt_map_from_cloud(&item->map, &item->config, points, err);
        if (status == NDT_OK)
            status = ndtd_samples_add(&item->build_ms, (ndt_clock_us() - start_us) * 1e-3, err);
    }
    return status;
}

enum ndt_status bench_maps_get(struct bench_maps *maps, const struct ndt_map_config *config, struct ndt_map **out,
                               struct ndt_error *err)
{
    for (size_t i = 0; i < maps->count; i++) {
        if (same(&maps->items[i].config, config)) {
            *out = maps->items[i].map;
            return NDT_OK;
        }
    }
    if (maps->count == BENCH_MAX_MAPS)
        return ndt_fail(err, NDT_ERR_LIMIT, "more than %d different maps", BENCH_MAX_MAPS);
    struct bench_map *item = &maps->items[maps->count++];
    *item = (struct bench_map){.config = *config};
    enum ndt_status status =
        maps->points.count ? build(item, &maps->points, err) : ndt_map_load(&item->map, maps->path, config, err);
    *out = item->map;
    return status;
}

void bench_maps_close(struct bench_maps *maps)
{
    for (size_t i = 0; i < maps->count; i++) {
        ndt_map_release(maps->items[i].map);
        ndtd_samples_free(&maps->items[i].build_ms);
    }
    ndt_cloud_free(&maps->points);
}
