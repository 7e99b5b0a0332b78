/* Building a map of three levels. */
#include "guard_work.h"

enum { BUILD_POINTS = 200000, FEWEST_VOXELS = 100 };

enum ndt_status guard_sums_prepare(struct guard_work *work, struct ndt_error *err)
{
    struct ndt_map_config config;
    ndt_map_config_default(&config);
    config.threads = 1; /* only the thread that calls is counted */
    enum ndt_status status = guard_street_map(work, BUILD_POINTS, err);
    return status == NDT_OK ? ndt_map_builder_create(&work->builder, &config, err) : status;
}

enum ndt_status guard_sums_run(struct guard_work *work, struct ndt_error *err)
{
    enum ndt_status status = ndt_map_builder_add(work->builder, &work->map_points, err);
    if (status == NDT_OK && ndt_map_builder_points(work->builder) != BUILD_POINTS)
        return ndt_fail(err, NDT_ERR_LIMIT, "the map does not hold every point");
    return status;
}

enum ndt_status guard_build_prepare(struct guard_work *work, struct ndt_error *err)
{
    enum ndt_status status = guard_sums_prepare(work, err);
    return status == NDT_OK ? guard_sums_run(work, err) : status;
}

enum ndt_status guard_build_run(struct guard_work *work, struct ndt_error *err)
{
    enum ndt_status status = ndt_map_build(&work->map, work->builder, err);
    for (size_t i = 0; status == NDT_OK && i < work->map->level_count; i++)
        if (work->map->levels[i].voxel_count < FEWEST_VOXELS)
            return ndt_fail(err, NDT_ERR_LIMIT, "level %zu has %u voxels", i, work->map->levels[i].voxel_count);
    return status;
}
