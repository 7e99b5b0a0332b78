/** @file
 * @brief The problems of check_solver: one street, scans of it in several sizes, guesses, and rules by name.
 *
 * Everything follows from the seed. */
#ifndef SOLVE_CASES_H
#define SOLVE_CASES_H

#include "ndt/align.h"

/* Solves driven by the host, the reference for solves on a device. The same steps as ndt_align,
 * apart from its clock: the scan turned by R0, every evaluation by the backend, coverage at the end. */

enum { SOLVE_ROWS = 64, SOLVE_NO_LIMIT = 100000 };

/* The result of one alignment. */
struct solve_result {
    struct ndt_newton newton;
    struct ndt_information information; /* zeros unless it is wanted */
    double coverage;
    struct ndt_newton_row rows[SOLVE_ROWS];
};

/* A backend that evaluates, with the map that it has been given. */
struct solve_host {
    struct ndt_backend *backend; /* borrowed */
    struct ndt_map *map;         /* borrowed */
    struct ndt_cloud turned;
};

/* Sets the input of an alignment, without a prior and from the first level of the chain; everything else is filled
 * with NaN. */
void solve_start(struct ndt_newton *out, enum ndt_variant variant, const struct ndt_pose *T_map_guess,
                 const struct ndt_map *map, const struct ndt_cloud *scan);
/* R0 x of every point, as ndt_align turns them; and the times. */
NDT_MUST_CHECK enum ndt_status solve_turn(struct ndt_cloud *out, const double R0[9], const struct ndt_cloud *scan,
                                          struct ndt_error *err);
/* The current pose of an alignment in the map. */
struct ndt_pose solve_pose(struct ndt_map *map, const struct ndt_newton *newton);

/* Gives up after `most` evaluations, or once until_us (by ndt_clock_us, 0: never) has passed. */
NDT_MUST_CHECK enum ndt_status solve_on_host(struct solve_host *host, const struct ndt_newton_rules *rules,
                                             const struct ndt_cloud *scan, const struct ndt_newton *start, int most,
                                             double until_us, struct solve_result *out, struct ndt_error *err);
void solve_host_free(struct solve_host *host);

/* Points: 1, 31, 33, 128, 129, 700, 1500; then a scan without points, one of 129 with every third point spoilt, and
 * one whose points are all NaN. All but the second have times; the spoilt one has times that are not finite. */
enum { SOLVE_SIZES = 7, SOLVE_EMPTY = SOLVE_SIZES, SOLVE_SPOILT, SOLVE_NOTHING, SOLVE_SCANS };

struct solve_scene {
    struct ndt_map *map; /* 4, 2 and 1 m */
    struct ndt_cloud scans[SOLVE_SCANS];
    struct ndt_pose truth[SOLVE_SCANS];
};
NDT_MUST_CHECK enum ndt_status solve_scene_make(struct solve_scene *out, uint64_t seed, struct ndt_error *err);
void solve_scene_free(struct solve_scene *scene);

/* An alignment, iteration by iteration: rows/POINTS/CHAIN/NEIGHBOURS/VARIANT/GNSS. */
struct solve_case {
    char name[64];
    int scan;
    struct ndt_align_params params;
    struct ndt_pose guess;
};
/* 0 after the last. */
int solve_case_at(const struct solve_scene *scene, uint64_t seed, size_t i, struct solve_case *out);

/* The alignments of batches: scans of many sizes, guesses near, wrong and far off the map. */
enum { SOLVE_PROBLEMS = 24 };
struct solve_problem {
    int scan;
    struct ndt_pose guess;
    double prior_per_m2; /* information of the prior about the first axis */
    int first_level;
};
void solve_problems_make(const struct solve_scene *scene, uint64_t seed, struct solve_problem out[SOLVE_PROBLEMS]);
/* Gives each of the problems a prior and a first level below 3, in all combinations; some have none. */
void solve_problems_add_priors(struct solve_problem problems[SOLVE_PROBLEMS]);
/* The start of a problem's alignment. */
void solve_start_problem(struct ndt_newton *out, enum ndt_variant variant, const struct solve_problem *problem,
                         const struct solve_scene *scene);

#endif
