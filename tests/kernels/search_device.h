/* Backends whose pipelines run whole searches, opened for check_searches, and calls to them in which nothing may be
 * written beyond what was offered. */
#ifndef SEARCH_DEVICE_H
#define SEARCH_DEVICE_H

#include "search_cases.h"
#include "search_compare.h"

enum { SEARCH_PLANS = 16, SEARCH_MOST = 200, SEARCH_MAX_POINTS = 8192 };

/* One pipeline, and a host that evaluates on the same device. */
struct search_plan {
    const struct ndt_backend_ops *ops;
    const char *pipeline;
    struct ndt_backend *backend;
    size_t limit; /* searches per call */
    struct search_host *host;
    char name[64];
};

/* Opens a pipeline; NDT_OK with limit 0 where it has no searches. */
NDT_MUST_CHECK enum ndt_status search_plan_open(struct search_plan *out, const struct ndt_backend_ops *ops,
                                                const char *pipeline, struct ndt_map *map, struct ndt_error *err);
void search_plan_close(struct search_plan *plan);
/* A host on `ops`, evaluating with its pipeline `fused` where it has one. */
NDT_MUST_CHECK enum ndt_status search_host_open(struct search_host *out, const struct ndt_backend_ops *ops,
                                                struct ndt_map *map, struct ndt_error *err);
void search_host_close(struct search_host *host);

/* What one call is asked: problems[i] with the room for rows[i] (NULL: SEARCH_ROWS each). */
struct search_call {
    const struct search_scene *scene;
    const struct ndt_newton_rules *rules;
    const struct search_problem *const *problems;
    const int32_t *rows;
    size_t count;
    double until_us;
};
/* set_scans of all of the scene's scans, or of this one only (>= 0); then the call counts its scans accordingly. */
NDT_MUST_CHECK enum ndt_status search_give_scans(const struct search_plan *plan, const struct search_scene *scene,
                                                 int only, struct ndt_error *err);
/* One call to search. NDT_ERR_FORMAT: something was written where nothing may be, or a result is not sound. */
NDT_MUST_CHECK enum ndt_status search_on_device(const struct search_plan *plan, const struct search_call *call,
                                                int only, struct search_result *out, struct ndt_error *err);

#endif
