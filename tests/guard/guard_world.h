/** @file
 * @brief Inputs of guard_cases: seeded, single-threaded, without files, so that every run of the same binary takes
 * the same instructions. */
#ifndef GUARD_WORLD_H
#define GUARD_WORLD_H

#include "ndt/align.h"
#include "ndt/preprocess.h"
#include "ndt_proto/message.h"

enum { GUARD_STARTS = 8 };

struct guard_work;

struct guard_case {
    const char *name;
    enum ndt_status (*prepare)(struct guard_work *work, struct ndt_error *err);
    /* Fails when the work was not done, so that nothing is never taken for fast. */
    enum ndt_status (*run)(struct guard_work *work, struct ndt_error *err);
    int once; /* run without a warm-up: what is made is to be made from nothing */
    /* Where the case has a choice. */
    const char *isa;
    double leaf_m;
    enum ndt_neighbours neighbours;
    enum ndt_variant variant;
    enum ndt_deskew_mode deskew;
};

/* Whatever cases need; freed whole by guard_work_free. */
struct guard_work {
    const struct guard_case *item;
    struct ndt_cloud map_points; /* map frame */
    struct ndt_cloud scan;       /* sensor frame */
    struct ndt_pose T_map_sensor;
    struct ndt_pose T_map_guess[GUARD_STARTS]; /* up to 0.5 m and 2 deg off */
    struct ndt_map *map;
    struct ndt_map_builder *builder;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    struct ndt_align_params align;
    struct ndt_preprocessor *preprocessor;
    struct ndt_preprocess_params preprocess;
    struct ndt_twist twist;
    struct ndt_frame frame;
    struct ndt_result_message result;
};

void guard_work_init(struct guard_work *work, const struct guard_case *item);
void guard_work_free(struct guard_work *work);

/* Points of a street, 120 m long, and a scan of `count` of them from its middle; the guess is off by half a metre.
 */
NDT_MUST_CHECK enum ndt_status guard_street_map(struct guard_work *work, size_t count, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status guard_street_scan(struct guard_work *work, size_t count, struct ndt_error *err);
/* A turn of a 64-beam LiDAR in a yard, ring by ring as sensors send it: 120 000 points with times. */
NDT_MUST_CHECK enum ndt_status guard_lidar_turn(struct guard_work *work, struct ndt_error *err);

#endif
