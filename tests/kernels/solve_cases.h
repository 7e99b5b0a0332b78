/* What check_solver searches for: one street, scans of it in several sizes, guesses, and rules by name.
 * Everything follows from the seed. */
#ifndef SOLVE_CASES_H
#define SOLVE_CASES_H

#include "solve_host.h"

/* Points: 1, 31, 33, 128, 129, 700, 1500; then a scan without points, one of 129 with every third point spoilt, and
 * one whose points are all NaN. */
enum { SOLVE_SIZES = 7, SOLVE_EMPTY = SOLVE_SIZES, SOLVE_SPOILT, SOLVE_NOTHING, SOLVE_SCANS };

struct solve_scene {
    struct ndt_map *map; /* 4, 2 and 1 m */
    struct ndt_cloud scans[SOLVE_SCANS];
    struct ndt_pose truth[SOLVE_SCANS];
};
NDT_MUST_CHECK enum ndt_status solve_scene_make(struct solve_scene *out, uint64_t seed, struct ndt_error *err);
void solve_scene_free(struct solve_scene *scene);

/* A search, iteration by iteration: rows/POINTS/CHAIN/NEIGHBOURS/VARIANT/GNSS. */
struct solve_case {
    char name[64];
    int scan;
    struct ndt_align_params params;
    struct ndt_pose guess;
};
/* 0 after the last. */
int solve_case_at(const struct solve_scene *scene, uint64_t seed, size_t i, struct solve_case *out);

/* The searches of batches: scans of many sizes, guesses near, wrong and far off the map. */
enum { SOLVE_PROBLEMS = 24 };
struct solve_problem {
    int scan;
    struct ndt_pose guess;
};
void solve_problems_make(const struct solve_scene *scene, uint64_t seed, struct solve_problem out[SOLVE_PROBLEMS]);

#endif
