#include "local_map.h"

#include <stdlib.h>
#include <string.h>

enum ndt_status ndt_local_map_create(struct ndt_local_map *local, const struct ndt_odometry_params *params,
                                     struct ndt_error *err)
{
    *local = (struct ndt_local_map){.params = params};
    local->keyframes = calloc(params->max_keyframes, sizeof(*local->keyframes));
    if (!local->keyframes)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %u keyframes", params->max_keyframes);
    for (size_t i = 0; i < params->max_keyframes; i++)
        ndt_cloud_init(&local->keyframes[i].points);
    return ndt_map_builder_create(&local->builder, &params->map, err);
}

void ndt_local_map_free(struct ndt_local_map *local)
{
    for (size_t i = 0; local->keyframes && i < local->params->max_keyframes; i++)
        ndt_cloud_free(&local->keyframes[i].points);
    free(local->keyframes);
    ndt_map_builder_destroy(local->builder);
    ndt_map_release(local->map);
    *local = (struct ndt_local_map){.params = local->params};
}

enum ndt_status ndt_local_map_clear(struct ndt_local_map *local, struct ndt_error *err)
{
    ndt_map_builder_destroy(local->builder);
    ndt_map_release(local->map);
    local->map = NULL;
    local->count = 0;
    return ndt_map_builder_create(&local->builder, &local->params->map, err);
}

/* Turns points into the axes of `odom`, but keeps them relative to the sensor, so that floats stay exact wherever
 * the vehicle is. */
static enum ndt_status place_points(struct ndt_keyframe *keyframe, const struct ndt_cloud *points,
                                    const struct ndt_pose *T_odom_sensor, struct ndt_error *err)
{
    struct ndt_cloud *out = &keyframe->points;
    double R[9];
    const enum ndt_status status = ndt_cloud_reserve(out, points->count, 0, err);
    if (status != NDT_OK)
        return status;
    ndt_pose_rotation(T_odom_sensor, R);
    for (size_t i = 0; i < points->count; i++) {
        const double x = points->x_m[i], y = points->y_m[i], z = points->z_m[i];
        out->x_m[i] = (float)(R[0] * x + R[1] * y + R[2] * z);
        out->y_m[i] = (float)(R[3] * x + R[4] * y + R[5] * z);
        out->z_m[i] = (float)(R[6] * x + R[7] * y + R[8] * z);
    }
    memcpy(out->origin_m, T_odom_sensor->t_m, sizeof(out->origin_m));
    out->count = points->count;
    return NDT_OK;
}

static enum ndt_status set_in_map(struct ndt_local_map *local, struct ndt_keyframe *keyframe, int is_in_map,
                                  struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    if (keyframe->is_in_map == is_in_map)
        return NDT_OK;
    status = is_in_map ? ndt_map_builder_add(local->builder, &keyframe->points, err)
                       : ndt_map_builder_remove(local->builder, &keyframe->points, err);
    if (status == NDT_OK)
        keyframe->is_in_map = is_in_map;
    return status;
}

/* Makes room for another keyframe: drops the oldest one if the array is full, and those too far back along the path
 * to count ever again. Their memory goes to the end of the array and is used again. */
static enum ndt_status make_room(struct ndt_local_map *local, double path_m, struct ndt_error *err)
{
    const struct ndt_odometry_params *params = local->params;
    while (local->count > 0) {
        struct ndt_keyframe oldest = local->keyframes[0];
        const int is_behind = local->count >= params->window && path_m - oldest.path_m > params->near_path_m;
        if (local->count < params->max_keyframes && !is_behind)
            break;
        const enum ndt_status status = set_in_map(local, &oldest, 0, err);
        if (status != NDT_OK)
            return status;
        local->count--;
        memmove(local->keyframes, local->keyframes + 1, local->count * sizeof(*local->keyframes));
        local->keyframes[local->count] = oldest;
    }
    return NDT_OK;
}

/* Selects the last keyframes, and older ones nearby. */
static enum ndt_status select_keyframes(struct ndt_local_map *local, struct ndt_error *err)
{
    const struct ndt_odometry_params *params = local->params;
    const struct ndt_keyframe *newest = &local->keyframes[local->count - 1];
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; i < local->count && status == NDT_OK; i++) {
        struct ndt_keyframe *keyframe = &local->keyframes[i];
        const int is_recent = i + params->window >= local->count;
        const int is_near = newest->path_m - keyframe->path_m <= params->near_path_m &&
                            ndt_pose_distance_m(&newest->T_odom_base, &keyframe->T_odom_base) <= params->near_m;
        status = set_in_map(local, keyframe, is_recent || is_near, err);
    }
    return status;
}

enum ndt_status ndt_local_map_add(struct ndt_local_map *local, const struct ndt_cloud *points,
                                  const struct ndt_pose *T_odom_base, double path_m, struct ndt_error *err)
{
    enum ndt_status status = make_room(local, path_m, err);
    if (status != NDT_OK)
        return status;
    struct ndt_keyframe *keyframe = &local->keyframes[local->count];
    const struct ndt_pose T_odom_sensor = ndt_pose_compose(T_odom_base, &local->params->T_base_sensor);
    keyframe->T_odom_base = *T_odom_base;
    keyframe->path_m = path_m;
    keyframe->is_in_map = 0;
    status = place_points(keyframe, points, &T_odom_sensor, err);
    if (status != NDT_OK)
        return status;
    local->count++;
    status = select_keyframes(local, err);
    struct ndt_map *map = NULL;
    if (status == NDT_OK)
        status = ndt_map_build(&map, local->builder, err);
    if (status != NDT_OK)
        return status;
    ndt_map_release(local->map);
    local->map = map;
    return NDT_OK;
}
