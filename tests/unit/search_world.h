/* Worlds for tests of the search: boxes on a ground that may slope, a hole without ground, a second floor. Scans
 * are points of the world around a pose, which no wall hides. */
#ifndef SEARCH_WORLD_H
#define SEARCH_WORLD_H

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/map.h"
#include "ndt/random.h"
#include "ndt_search/search.h"

struct world_wish {
    uint64_t seed;
    double size_m, slope; /* half the edge; of the ground along x */
    int boxes;
    int has_floor, has_ceiling; /* 4 m above the ground, x and y in [-20, 20] m: with boxes on it, or without */
    double hole_m;              /* half the edge of a hole in the ground around the origin */
    double origin_m[3];
};

static inline void world_point(struct ndt_cloud *cloud, double x, double y, double z)
{
    ck_assert(ndt_cloud_reserve(cloud,
                                cloud->count + 1 < cloud->capacity ? cloud->count + 1 : 2 * cloud->count + 1024, 0,
                                NULL) == NDT_OK);
    cloud->x_m[cloud->count] = (float)x;
    cloud->y_m[cloud->count] = (float)y;
    cloud->z_m[cloud->count++] = (float)z;
}

/* The sides and the top of a box, a point per 0.2 m. */
static inline void world_box(struct ndt_cloud *cloud, struct ndt_random *random, const double middle_m[2],
                             double base_m, const double half_m[2], double height_m)
{
    for (double y = -half_m[1]; y <= half_m[1]; y += 0.25)
        for (double x = -half_m[0]; x <= half_m[0]; x += 0.25)
            world_point(cloud, middle_m[0] + x, middle_m[1] + y,
                        base_m + height_m + 0.02 * ndt_random_normal(random));
    for (int side = 0; side < 4; side++) {
        const double along_m = half_m[side < 2 ? 0 : 1];
        for (double s = -along_m; s <= along_m; s += 0.2)
            for (double z = 0; z <= height_m; z += 0.2) {
                const double edge = side % 2 ? 1 : -1, noise_m = 0.02 * ndt_random_normal(random);
                const double x = side < 2 ? s : edge * half_m[0] + noise_m,
                             y = side < 2 ? edge * half_m[1] + noise_m : s;
                world_point(cloud, middle_m[0] + x, middle_m[1] + y, base_m + z);
            }
    }
}

static inline void world_boxes(const struct world_wish *wish, struct ndt_cloud *cloud, struct ndt_random *random,
                               int count, double size_m, double base_m)
{
    for (int i = 0; i < count; i++) {
        double middle_m[2], half_m[2];
        for (int k = 0; k < 2; k++) {
            middle_m[k] = ndt_random_between(random, -size_m, size_m);
            half_m[k] = ndt_random_between(random, 0.5, 4);
        }
        world_box(cloud, random, middle_m, base_m + wish->slope * middle_m[0], half_m,
                  ndt_random_between(random, 1, 9));
    }
}

static inline void world_plane(const struct world_wish *wish, struct ndt_cloud *cloud, struct ndt_random *random,
                               double size_m, double base_m, double hole_m)
{
    for (double y = -size_m; y <= size_m; y += 0.25)
        for (double x = -size_m; x <= size_m; x += 0.25)
            if (fabs(x) > hole_m || fabs(y) > hole_m)
                world_point(cloud, x, y, base_m + wish->slope * x + 0.01 * ndt_random_normal(random));
}

/* All points of a world; the caller frees them. */
static inline void world_make(const struct world_wish *wish, struct ndt_cloud *cloud)
{
    struct ndt_random random = ndt_random_stream(wish->seed, 0, 0);
    ndt_cloud_init(cloud);
    memcpy(cloud->origin_m, wish->origin_m, sizeof(cloud->origin_m));
    world_plane(wish, cloud, &random, wish->size_m, 0, wish->hole_m > 0 ? wish->hole_m : -1);
    world_boxes(wish, cloud, &random, wish->boxes, wish->size_m, 0);
    if (wish->has_floor || wish->has_ceiling)
        world_plane(wish, cloud, &random, 20, 4, -1);
    if (wish->has_floor)
        world_boxes(wish, cloud, &random, 12, 20, 4);
}

static inline struct ndt_map *world_map(const struct ndt_cloud *cloud)
{
    struct ndt_map_config config;
    struct ndt_map *map;
    struct ndt_error err;
    ndt_map_config_default(&config);
    ck_assert_msg(ndt_map_from_cloud(&map, &config, cloud, &err) == NDT_OK, "%s", err.text);
    return map;
}

static inline struct ndt_field *world_field(const struct ndt_map *map)
{
    struct ndt_field *field;
    struct ndt_error err;
    ck_assert_msg(ndt_field_build(&field, map, &err) == NDT_OK, "%s", err.text);
    return field;
}

/* Makes a scan from one of `every` points of the world within 45 m of the pose, from low_m to high_m above the
 * sensor. */
static inline void world_scan(const struct ndt_cloud *world, const struct ndt_pose *T_map_sensor, int every,
                              double low_m, double high_m, struct ndt_cloud *scan)
{
    const struct ndt_pose T_sensor_map = ndt_pose_inverse(T_map_sensor);
    ndt_cloud_init(scan);
    for (size_t i = 0; i < world->count; i += (size_t)every) {
        const double at_m[3] = {world->origin_m[0] + (double)world->x_m[i],
                                world->origin_m[1] + (double)world->y_m[i],
                                world->origin_m[2] + (double)world->z_m[i]};
        const double rise_m = at_m[2] - T_map_sensor->t_m[2];
        double p[3];
        ndt_pose_apply(&T_sensor_map, at_m, p);
        if (p[0] * p[0] + p[1] * p[1] + p[2] * p[2] < 45 * 45 && rise_m >= low_m && rise_m <= high_m)
            world_point(scan, p[0], p[1], p[2]);
    }
}

#endif
