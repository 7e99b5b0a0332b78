/* What check_searches searches for: one street, scans of it in several sizes, guesses, and rules by name.
 * Everything follows from the seed. */
#ifndef SEARCH_CASES_H
#define SEARCH_CASES_H

#include "search_host.h"

/* Points: 1, 31, 33, 128, 129, 700, 1500; then a scan without points, one of 129 with every third point spoilt, and
 * one whose points are all NaN. */
enum { SEARCH_SIZES = 7, SEARCH_EMPTY = SEARCH_SIZES, SEARCH_SPOILT, SEARCH_NOTHING, SEARCH_SCANS };

struct search_scene {
    struct ndt_map *map; /* 4, 2 and 1 m */
    struct ndt_cloud scans[SEARCH_SCANS];
    struct ndt_pose truth[SEARCH_SCANS];
};
NDT_MUST_CHECK enum ndt_status search_scene_make(struct search_scene *out, uint64_t seed, struct ndt_error *err);
void search_scene_free(struct search_scene *scene);

/* A search, iteration by iteration: rows/POINTS/CHAIN/NEIGHBOURS/VARIANT/GNSS. */
struct search_case {
    char name[64];
    int scan;
    struct ndt_align_params params;
    struct ndt_pose guess;
};
/* 0 after the last. */
int search_case_at(const struct search_scene *scene, uint64_t seed, size_t i, struct search_case *out);

/* The searches of batches: scans of many sizes, guesses near, wrong and far off the map. */
enum { SEARCH_PROBLEMS = 24 };
struct search_problem {
    int scan;
    struct ndt_pose guess;
};
void search_problems_make(const struct search_scene *scene, uint64_t seed,
                          struct search_problem out[SEARCH_PROBLEMS]);

#endif
