/* Private: the local map of the odometry: keyframes, and the NDT map of those in use. */
#ifndef NDT_LOCAL_MAP_H
#define NDT_LOCAL_MAP_H

#include "ndt_odometry/odometry.h"

struct ndt_keyframe {
    struct ndt_cloud points; /* axes of `odom`, relative to the sensor */
    struct ndt_pose T_odom_base;
    double path_m; /* path of the base up to it */
    int is_in_map;
};

struct ndt_local_map {
    const struct ndt_odometry_params *params;
    struct ndt_map_builder *builder;
    struct ndt_map *map;            /* NULL: no keyframe yet */
    struct ndt_keyframe *keyframes; /* room for params->max_keyframes, oldest first */
    size_t count;
};

/* Creates a local map; borrows the parameters. The caller frees it even after a failure. */
NDT_MUST_CHECK enum ndt_status
ndt_local_map_create(struct ndt_local_map *local, const struct ndt_odometry_params *params, struct ndt_error *err);
void ndt_local_map_free(struct ndt_local_map *local);
/* Forgets all keyframes. */
NDT_MUST_CHECK enum ndt_status ndt_local_map_clear(struct ndt_local_map *local, struct ndt_error *err);
/* Adds a keyframe and makes the map of the keyframes in use from now on. points: in the frame of the sensor. */
NDT_MUST_CHECK enum ndt_status ndt_local_map_add(struct ndt_local_map *local, const struct ndt_cloud *points,
                                                 const struct ndt_pose *T_odom_base, double path_m,
                                                 struct ndt_error *err);

#endif
