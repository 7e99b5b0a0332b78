/** @file
 * @brief Cases of check_kernels: a list of names, and the map, scan and pose of each.
 *
 * A case is GROUP/ITEM/NEIGHBOURS, such as sizes/257/radius. Inputs follow from the name and the seed. */
#ifndef KERNEL_CASES_H
#define KERNEL_CASES_H

#include <stdint.h>

#include "ndt/backend.h"
#include "ndt/cloud.h"
#include "ndt/map.h"

/* Inputs whose surroundings are watched: a kernel that reads or writes beyond what it was given is caught. */

/* A cloud as the contract promises it (64-byte aligned arrays, padded to 16 elements) and not a byte more: an
 * unreadable page begins right behind the padding of every array, guard bytes lie before it. The padding
 * holds copies of the first point, which must not be counted. */
struct guarded_cloud {
    struct ndt_cloud cloud;
    unsigned char *region;
    size_t region_bytes;
    unsigned char *copy; /* copy of the readable part, to compare with */
    size_t array_bytes;  /* readable bytes per array, guard included */
    size_t stride;       /* distance from one array's readable part to the next */
};

/* Returns 0 when memory could not be had. */
int guarded_cloud_make(struct guarded_cloud *guarded, const struct ndt_cloud *source);
void guarded_cloud_free(struct guarded_cloud *guarded);
/* 1 when neither the points nor the bytes around them have changed since guarded_cloud_make. */
int guarded_cloud_intact(const struct guarded_cloud *guarded);
/* Overwrites the points: who copied them must not care. */
void guarded_cloud_spoil(struct guarded_cloud *guarded);
void guarded_cloud_restore(struct guarded_cloud *guarded);

/* Hash that is not cryptographic, eight bytes at a time; starts with hash = 0. */
uint64_t guard_hash(uint64_t hash, const void *data, size_t size);
/* Hash over every array of every level of the map. */
uint64_t guard_hash_map(const struct ndt_map *map);

enum kernel_map {
    KERNEL_MAP_STREET,
    KERNEL_MAP_SEEDED,
    KERNEL_MAP_UTM,
    KERNEL_MAP_SPREAD,
    KERNEL_MAP_THIN,
    KERNEL_MAP_EMPTY,
    KERNEL_MAPS
};
enum kernel_pose {
    KERNEL_POSE_DRIVE,
    KERNEL_POSE_TURNED,
    KERNEL_POSE_STEEP,
    KERNEL_POSE_GIMBAL,
    KERNEL_POSE_UPSIDE,
    KERNEL_POSE_PLAIN,
    KERNEL_POSE_AWAY,
    KERNEL_POSE_BEYOND,
    KERNEL_POSES
};
enum kernel_points {
    KERNEL_POINTS_SCAN,
    KERNEL_POINTS_FACES,
    KERNEL_POINTS_OUTSIDE,
    KERNEL_POINTS_NONFINITE,
    KERNEL_POINTS_HUGE,
    KERNEL_POINTS_MEANS,
    KERNEL_POINT_KINDS
};

enum kernel_times {
    KERNEL_TIMES_SWEEP,
    KERNEL_TIMES_NONE,
    KERNEL_TIMES_NONFINITE, /* some of them: they count as zero */
    KERNEL_TIME_KINDS
};

struct kernel_case {
    char name[64];
    enum kernel_map map;
    double leaf_m;
    enum ndt_neighbours neighbours;
    enum kernel_pose pose;
    enum kernel_points points;
    enum kernel_times times;
    size_t size;
};
/* 0 after the last. */
int kernel_case_at(size_t i, struct kernel_case *out);

/* Maps made so far; zero-initialise, set the seed. */
struct kernel_maps {
    uint64_t seed;
    struct ndt_map *made[KERNEL_MAPS];
};
void kernel_maps_free(struct kernel_maps *maps);

struct kernel_inputs {
    struct ndt_map *map; /* borrowed */
    int level;
    double p[6];
    int exact; /* the transform of these points is exact in float */
    struct guarded_cloud scan;
};
/* Makes all inputs from the case and the seed alone. */
NDT_MUST_CHECK enum ndt_status kernel_inputs_make(struct kernel_inputs *out, struct kernel_maps *maps,
                                                  const struct kernel_case *item, struct ndt_error *err);
void kernel_inputs_free(struct kernel_inputs *inputs);

#endif
