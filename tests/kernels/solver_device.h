/* Backends whose pipelines run whole searches, opened for check_solver, and calls to them in which nothing may be
 * written beyond what was offered. */
#ifndef SOLVE_DEVICE_H
#define SOLVE_DEVICE_H

#include "solve_cases.h"
#include "solve_compare.h"

enum { SOLVE_PLANS = 16, SOLVE_MOST = 200, SOLVE_MAX_POINTS = 8192 };

/* One pipeline, and a host that evaluates on the same device. */
struct solve_plan {
    const struct ndt_backend_ops *ops;
    const char *pipeline;
    struct ndt_backend *backend;
    size_t limit; /* searches per call */
    struct solve_host *host;
    char name[64];
};

/* Opens a pipeline; NDT_OK with limit 0 where it has no searches. */
NDT_MUST_CHECK enum ndt_status solve_plan_open(struct solve_plan *out, const struct ndt_backend_ops *ops,
                                               const char *pipeline, struct ndt_map *map, struct ndt_error *err);
void solve_plan_close(struct solve_plan *plan);
/* A host on `ops`, evaluating with its pipeline `fused` where it has one. */
NDT_MUST_CHECK enum ndt_status solve_host_open(struct solve_host *out, const struct ndt_backend_ops *ops,
                                               struct ndt_map *map, struct ndt_error *err);
void solve_host_close(struct solve_host *host);

/* What one call is asked: problems[i] with the room for rows[i] (NULL: SOLVE_ROWS each). */
struct solve_call {
    const struct solve_scene *scene;
    const struct ndt_newton_rules *rules;
    const struct solve_problem *const *problems;
    const int32_t *rows;
    size_t count;
    double until_us;
};
/* set_scans of all of the scene's scans, or of this one only (>= 0); then the call counts its scans accordingly. */
NDT_MUST_CHECK enum ndt_status solve_give_scans(const struct solve_plan *plan, const struct solve_scene *scene,
                                                int only, struct ndt_error *err);
/* One call to search. NDT_ERR_FORMAT: something was written where nothing may be, or a result is not sound. */
NDT_MUST_CHECK enum ndt_status solve_on_device(const struct solve_plan *plan, const struct solve_call *call,
                                               int only, struct solve_result *out, struct ndt_error *err);

#endif
