/* Private to the core: what the parts of an alignment share. */
#ifndef NDT_ALIGN_STATE_H
#define NDT_ALIGN_STATE_H

#include "ndt/align.h"

/* One alignment while it runs. */
struct ndt_solve {
    struct ndt_aligner *aligner;
    const struct ndt_align_params *params;
    const struct ndt_newton_rules *rules;
    const struct ndt_cloud *scan;
    size_t points; /* of it; what the backend preprocessed is counted once it is done */
    const struct ndt_preprocess_plan *preprocess; /* in place of `scan`: the backend preprocesses */
    const struct ndt_cloud *raw;                  /* with `front`; NULL: the same as before */
    struct ndt_newton newton;
    double start_us;
    int32_t row_capacity; /* rows that whoever drives keeps */
    double coverage;      /* see struct ndt_scores */
    /* Driven by the host only: cost since the last row was closed; the evaluation that opens a level belongs to its
     * first row. */
    double slowest_eval_us; /* as seen so far, for the deadline */
    double unbilled_us, unbilled_solve_us;
    struct ndt_backend_counters billed;
};

struct ndt_aligner {
    struct ndt_backend *backend;
    struct ndt_map *map;
    struct ndt_cloud turned; /* the scan as the backend has it */
    struct ndt_newton_rows {
        struct ndt_newton_row rows[NDT_MAX_ITERATIONS];
        struct ndt_iteration trace[NDT_MAX_ITERATIONS];
        size_t count;
    } last; /* of the last ndt_align */
    /* What things usually cost, for the deadline only: one evaluation per level, and the judgement. */
    double level_us[NDT_MAX_LEVELS], assess_us;
    struct ndt_align_costs costs; /* what they were expected to be, see ndt_aligner_set_costs */
    size_t cost_points;           /* for scans of this size; 0 = nothing is known yet */
    struct ndt_batch *batch;      /* room for searches that run together; NULL until there are some */
};

/* What `params` mean on this map. */
NDT_MUST_CHECK enum ndt_status ndt_rules_from(struct ndt_newton_rules *out, const struct ndt_align_params *params,
                                              const struct ndt_map *map, struct ndt_error *err);
/* Where p is, in the map: with the turn R0 that the scan got beforehand. */
struct ndt_pose ndt_solve_pose(const struct ndt_solve *solve, const double p[6]);

/* What one search begins with: 0 and the reason in `out` when there is nothing to align, or nothing to align it
 * with. */
int ndt_solve_can_begin(const struct ndt_map *map, size_t points, const struct ndt_pose *T_map_guess,
                        struct ndt_align_result *out);
/* What is said of a search that did not take place. */
void ndt_solve_refuse(struct ndt_align_result *out, enum ndt_outcome outcome, const char *reason);
/* Where it starts, and by how much the scan is turned before. */
void ndt_solve_place(struct ndt_newton *newton, enum ndt_variant variant, const struct ndt_pose *T_map_guess,
                     const double origin_m[3]);
/* Mean of x x^T over the finite points, upper triangle. */
void ndt_second_moments(const struct ndt_cloud *scan, double out_m2[6]);

/* Searches that run on the device, in align_batch.c. NDT_ERR_UNSUPPORTED: not, or no more: the host has to do it.
 */
NDT_MUST_CHECK enum ndt_status ndt_solve_on_device(struct ndt_solve *solve, double *upload_us,
                                                   struct ndt_error *err);
void ndt_batch_free(struct ndt_batch *batch);

/* The loop for backends that evaluate: turns the scan, hands it to the backend and feeds newton until it is done or
 * time is up. */
NDT_MUST_CHECK enum ndt_status ndt_solve_load(struct ndt_solve *solve, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndt_solve_run(struct ndt_solve *solve, struct ndt_error *err);

/* A running mean. What stands out (the thread lost its core) counts for little: it says nothing about the next
 * time. */
void ndt_remember_cost(double *cost_us, double seen_us);
/* A scan of so many points comes: what is remembered of others is scaled to it. */
void ndt_expect_costs(struct ndt_aligner *aligner, size_t points);

/* How much of the horizon has points near the map; see struct ndt_scores. Of the turned scan. */
double ndt_solve_coverage(const struct ndt_solve *solve);
/* Everything that is said about the final pose: scores, covariance, weak axes, outcome and reason. */
void ndt_assess_result(const struct ndt_solve *solve, struct ndt_align_result *out);

#endif
