/* Whole searches driven by the host: what searches on a device are compared with. The same steps as ndt_align,
 * apart from its clock: the scan turned by R0, every evaluation by the backend, coverage at the end. */
#ifndef SOLVE_HOST_H
#define SOLVE_HOST_H

#include "ndt/align.h"

enum { SOLVE_ROWS = 64, SOLVE_NO_LIMIT = 100000 };

/* One search as it came out. */
struct solve_result {
    struct ndt_newton newton;
    double coverage;
    struct ndt_newton_row rows[SOLVE_ROWS];
};

/* A backend that evaluates, with the map that it has been given. */
struct solve_host {
    struct ndt_backend *backend; /* borrowed */
    struct ndt_map *map;         /* borrowed */
    struct ndt_cloud turned;
};

/* guess, R0 and levers of a search; everything else is filled with NaN. */
void solve_start(struct ndt_newton *out, enum ndt_variant variant, const struct ndt_pose *T_map_guess,
                 const struct ndt_map *map, const struct ndt_cloud *scan);
/* R0 x of every point, as ndt_align turns them. */
NDT_MUST_CHECK enum ndt_status solve_turn(struct ndt_cloud *out, const double R0[9], const struct ndt_cloud *scan,
                                          struct ndt_error *err);
/* See struct ndt_scores; 0 for a search that ended off the map. `turned`: the scan, turned by R0. */
double solve_coverage(struct ndt_map *map, const struct ndt_cloud *turned, const struct ndt_newton *newton);
/* The pose in the map at which a search stands. */
struct ndt_pose solve_pose(struct ndt_map *map, const struct ndt_newton *newton);

/* Gives up after `most` evaluations, or once until_us (by ndt_clock_us, 0: never) has passed. */
NDT_MUST_CHECK enum ndt_status solve_on_host(struct solve_host *host, const struct ndt_newton_rules *rules,
                                             const struct ndt_cloud *scan, const struct ndt_newton *start, int most,
                                             double until_us, struct solve_result *out, struct ndt_error *err);
void solve_host_free(struct solve_host *host);

#endif
