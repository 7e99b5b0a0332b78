/* Whole searches driven by the host: what searches on a device are compared with. The same steps as ndt_align,
 * apart from its clock: the scan turned by R0, every evaluation by the backend, coverage at the end. */
#ifndef SEARCH_HOST_H
#define SEARCH_HOST_H

#include "ndt/align.h"

enum { SEARCH_ROWS = 64, SEARCH_NO_LIMIT = 100000 };

/* One search as it came out. */
struct search_result {
    struct ndt_newton newton;
    double coverage;
    struct ndt_newton_row rows[SEARCH_ROWS];
};

/* A backend that evaluates, with the map that it has been given. */
struct search_host {
    struct ndt_backend *backend; /* borrowed */
    struct ndt_map *map;         /* borrowed */
    struct ndt_cloud turned;
};

/* guess, R0 and levers of a search; everything else is filled with NaN. */
void search_start(struct ndt_newton *out, enum ndt_variant variant, const struct ndt_pose *T_map_guess,
                  const struct ndt_map *map, const struct ndt_cloud *scan);
/* R0 x of every point, as ndt_align turns them. */
NDT_MUST_CHECK enum ndt_status search_turn(struct ndt_cloud *out, const double R0[9], const struct ndt_cloud *scan,
                                           struct ndt_error *err);
/* See struct ndt_scores; 0 for a search that ended off the map. `turned`: the scan, turned by R0. */
double search_coverage(struct ndt_map *map, const struct ndt_cloud *turned, const struct ndt_newton *newton);
/* The pose in the map at which a search stands. */
struct ndt_pose search_pose(struct ndt_map *map, const struct ndt_newton *newton);

/* Gives up after `most` evaluations, or once until_us (by ndt_clock_us, 0: never) has passed. */
NDT_MUST_CHECK enum ndt_status search_on_host(struct search_host *host, const struct ndt_newton_rules *rules,
                                              const struct ndt_cloud *scan, const struct ndt_newton *start,
                                              int most, double until_us, struct search_result *out,
                                              struct ndt_error *err);
void search_host_free(struct search_host *host);

#endif
