/* Private to the core: declarations shared by the parts of an alignment.
 *
 * align_setup.c (rules, start) and assess_result.c (scores, outcome) are leaves; align_solve.c runs the solve;
 * align.c and, above it, align_batch.c and align_lanes.c implement the public functions. */
#ifndef NDT_ALIGN_STATE_H
#define NDT_ALIGN_STATE_H

#include "ndt/align.h"

/* How often a solve is repeated on a replaced device before the host solves. */
enum { NDT_DEVICE_ATTEMPTS = 3 };

/* Where the backend gets the points that it aligns. */
enum ndt_scan_source {
    NDT_SCAN_PREPROCESSED, /* from `scan` */
    NDT_SCAN_RAW,          /* it preprocesses `raw` by `plan` */
    NDT_SCAN_RAW_AGAIN     /* it moves the points of its last preprocessing by `plan` */
};

/* One alignment while it runs. */
struct ndt_solve {
    struct ndt_aligner *aligner;
    const struct ndt_align_params *params;
    const struct ndt_newton_rules *rules;
    const struct ndt_prior *prior; /* NULL: none; params->prior is not read */
    enum ndt_scan_source source;
    const struct ndt_cloud *scan, *raw;
    const struct ndt_preprocess_plan *plan;
    size_t points; /* of the scan that is aligned; known only afterwards where the backend preprocesses */
    struct ndt_newton newton;
    struct ndt_information information; /* at newton.p, with rules->wants_information */
    int is_observed;                    /* `information` is set */
    struct ndt_newton_rows *trace;      /* where the rows go */
    double start_us;                    /* of the call, by ndt_clock_us */
    int32_t row_capacity;               /* of the trace; a device may keep fewer rows than the host */
    double coverage;                    /* see struct ndt_scores */
    /* Host loop only: cost since the last row was closed. The evaluation that opens a level counts for its first
     * row. */
    double slowest_eval_us; /* longest evaluation yet, for the deadline */
    double open_eval_us, open_solve_us;
    struct ndt_backend_counters counted; /* when the last row was closed */
};

struct ndt_aligner {
    struct ndt_backend *backend; /* borrowed */
    struct ndt_map *map;         /* owns a reference; may be NULL (none yet) */
    struct ndt_cloud turned;     /* the scan, rotated by R0, as the backend has it */
    struct ndt_newton_rows {
        struct ndt_newton_row rows[NDT_MAX_ITERATIONS];
        struct ndt_iteration trace[NDT_MAX_ITERATIONS];
        size_t count;
    } traces[2], *of_batch; /* of_batch: room for what a batch writes; NULL in lanes */
    /* Rows of the last ndt_align: those of the solve that counts, and room for those from the finest level. */
    struct ndt_newton_rows *last, *other;
    /* Typical costs, for the deadline only: one evaluation per level, and the assessment. */
    double level_us[NDT_MAX_LEVELS], assess_us;
    struct ndt_align_costs costs; /* expected before anything was measured, see ndt_aligner_set_costs */
    size_t cost_points;           /* level_us and assess_us are for scans of this size; 0: not measured yet */
    /* Room for alignments that run together; grows with the largest batch. */
    struct ndt_batch {
        size_t capacity;
        struct ndt_solve_item *items;
        size_t *numbers; /* of the items in the caller's list */
        const struct ndt_cloud **scans;
        double (*moments_m2)[6]; /* of the scans */
    } batch;
    struct ndt_score_pose *poses; /* for ndt_aligner_score; grows with the largest number */
    size_t pose_capacity;
    /* For batches on backends with lanes (ndt_backend_ops.run_lanes). */
    struct ndt_lane *lanes;
    size_t lane_count;
};

/* Before the first alignment. */
static inline void ndt_aligner_init_traces(struct ndt_aligner *aligner)
{
    aligner->last = &aligner->traces[0];
    aligner->other = &aligner->traces[1];
}

/* The first item that failed, in the order of the list, and why. */
struct ndt_batch_failure {
    size_t item;
    enum ndt_status status; /* NDT_OK: none did */
    struct ndt_error err;
};

/* A lane of a batch. Its aligner borrows the map, and the backend during the call. */
struct ndt_lane {
    struct ndt_aligner aligner;
    struct ndt_batch_failure failure;
};

/* ---- align.c ---- */

/* ndt_align of an item, with the prior of the item. start_us, by ndt_clock_us: when the time of params->deadline_s
 * began. */
NDT_MUST_CHECK enum ndt_status ndt_align_since(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                                               const struct ndt_align_item *item, double start_us,
                                               struct ndt_align_result *out, struct ndt_error *err);

/* ---- align_lanes.c ---- */

/* ndt_align_batch on backends that evaluate: item by item, on the lanes of the backend where it has some. */
NDT_MUST_CHECK enum ndt_status ndt_align_in_lanes(struct ndt_aligner *aligner,
                                                  const struct ndt_align_params *params, double start_us,
                                                  const struct ndt_align_item *items, size_t count,
                                                  struct ndt_align_result *out, struct ndt_error *err);

/* Makes room for scans of so many points on every lane. */
NDT_MUST_CHECK enum ndt_status ndt_lanes_reserve(struct ndt_aligner *aligner, size_t points, struct ndt_error *err);

/* ---- align_setup.c ---- */

/* The parameters as rules of the solver for this map. NDT_ERR_ARGUMENT: the map lacks a level. */
NDT_MUST_CHECK enum ndt_status ndt_rules_from(struct ndt_newton_rules *out, const struct ndt_align_params *params,
                                              const struct ndt_map *map, struct ndt_error *err);
/* Sets newton->guess and newton->R0, the rotation that the scan gets beforehand. */
void ndt_solve_set_guess(struct ndt_newton *newton, enum ndt_variant variant, const struct ndt_pose *T_map_guess,
                         const double origin_m[3]);
/* Sets newton->prior, prior_offset and first_level; after ndt_solve_set_guess. prior: NULL: none.
 * NDT_ERR_ARGUMENT: it is not positive definite. */
NDT_MUST_CHECK enum ndt_status ndt_solve_set_prior(struct ndt_newton *newton, const struct ndt_align_params *params,
                                                   const struct ndt_prior *prior, const double origin_m[3],
                                                   struct ndt_error *err);
/* The pose in the map of optimiser coordinates p, R0 included. */
struct ndt_pose ndt_solve_pose(const struct ndt_solve *solve, const double p[6]);
/* Mean of x x^T over the finite points, upper triangle. */
void ndt_second_moments(const struct ndt_cloud *scan, double out_m2[6]);
/* Initialises `out`; 0, with the reason in `out`, when there is no map, no point or no finite guess. */
int ndt_solve_can_begin(const struct ndt_map *map, size_t points, const struct ndt_pose *T_map_guess,
                        struct ndt_align_result *out);
/* The result of an alignment that did not take place. */
void ndt_solve_refuse(struct ndt_align_result *out, enum ndt_outcome outcome, const char *reason);

/* ---- assess_result.c ---- */

/* Fraction of the azimuth sectors with points near the map, see struct ndt_scores; `turned`: the scan rotated by
 * R0. */
double ndt_solve_coverage(const struct ndt_map *map, const struct ndt_cloud *turned,
                          const struct ndt_newton *newton);
/* The observation of sums whose derivatives are those of p, by the error d of the pose: p changes by G d. */
void ndt_observation_from_sums(const struct ndt_information *in, const double G[36], struct ndt_observation *out);
/* Writes the assessment of the final pose: scores, covariance, weak axes, outcome and reason. */
void ndt_assess_result(const struct ndt_solve *solve, struct ndt_align_result *out);

/* ---- align_solve.c ---- */

/* Scales the measured costs to a scan of this number of points. */
void ndt_expect_costs(struct ndt_aligner *aligner, size_t points);
/* Updates a running mean. Outliers (the thread lost its core) count for little: they do not predict the next time.
 */
void ndt_remember_cost(double *cost_us, double seen_us);
/* Whether a solve begins on a coarse level that its prior chose: the finest level alone may then be tried, too. */
int ndt_solve_is_coarse(const struct ndt_newton *newton, const struct ndt_align_params *params);
/* Whether it is tried: the chain ended beyond the reach of the finest level from the guess, so that the coarse
 * levels may have pulled it away from a nearer optimum. */
int ndt_solve_tries_finest(const struct ndt_newton *chain, const struct ndt_align_params *params);
/* Whether the solve of the finest level counts in place of that of the chain. */
int ndt_solve_is_better(const struct ndt_newton *finest, const struct ndt_newton *chain);
/* Time by ndt_clock_us at which the device must finish so that `assessments` of results still fit; 0: no deadline.
 */
double ndt_solve_until_us(const struct ndt_solve *solve, size_t assessments);
/* Solves on the device. NDT_ERR_UNSUPPORTED: the backend does not or no longer support it; the host solves. */
NDT_MUST_CHECK enum ndt_status ndt_solve_on_device(struct ndt_solve *solve, double *upload_us,
                                                   struct ndt_error *err);
/* Solves on the host: hands the rotated scan to the backend and evaluates until the solver is done or time is up.
 */
NDT_MUST_CHECK enum ndt_status ndt_solve_on_host(struct ndt_solve *solve, double *upload_us, struct ndt_error *err);

#endif
