/* Private to the core: what the parts of an alignment share. */
#ifndef NDT_ALIGN_STATE_H
#define NDT_ALIGN_STATE_H

#include "ndt/align.h"

struct ndt_aligner {
    struct ndt_backend *backend;
    struct ndt_map *map;
    struct ndt_cloud turned; /* the scan as the backend has it */
    /* Lever arms of its points about the sensor, as symmetric matrices: sqrt(mean(|x|^2 I - x x^T)) and inverse.
     * A rotation r moves the points by |lever_m r| on average: so rotations compare with translations. */
    double lever_m[9], per_lever[9];
    struct ndt_iteration trace[NDT_MAX_ITERATIONS];
    struct ndt_eval_request starts[NDT_MAX_ITERATIONS]; /* of each row: where it was evaluated, for ndt_aligner_dump */
    size_t trace_count;
    /* What things usually cost, for the deadline only: one evaluation per level, and the judgement. */
    double level_us[NDT_MAX_LEVELS], judge_us;
    struct ndt_align_costs costs; /* what they were expected to be, see ndt_aligner_set_costs */
    size_t cost_points;           /* for scans of this size; 0 = nothing is known yet */
};

/* Why a level, and in the end the alignment, stopped. */
enum ndt_stop { NDT_STOP_CONVERGED, NDT_STOP_ITERATIONS, NDT_STOP_DEADLINE, NDT_STOP_OFF_MAP };

/* Directions that the scan does not observe, as unit steps of p in lever-scaled units. */
struct ndt_weak {
    int count;
    double axes[3][6];
};

/* One alignment while it runs. The optimiser works on p relative to the map's origin; for `robust` the scan
 * was turned by the guess beforehand (R0), so that its angles start at zero: no gimbal lock whatever the
 * attitude of the vehicle, and rotation and translation keep their meaning. */
struct ndt_search {
    struct ndt_aligner *aligner;
    const struct ndt_align_params *params;
    int levels[NDT_MAX_LEVELS]; /* level numbers in the map */
    double R0[9];
    double start_us;
    double slowest_eval_us; /* cost of an evaluation as seen so far, for the deadline */
    int evaluations;
    /* Cost since the last row was closed: the evaluation that opens a level belongs to its first row. */
    int unbilled_evaluations;
    double unbilled_us;
    struct ndt_backend_counters billed;
    double guess[6]; /* p of the guess */
    double p[6];     /* where `eval` was taken */
    struct ndt_eval eval;
    struct ndt_eval_request request;
    struct ndt_weak weak; /* found once the finest level has converged; robust only */
    int iteration_limit;
    double trust; /* part of the step caps that steps have kept to lately; robust only */
};

struct ndt_pose ndt_search_pose(const struct ndt_search *search, const double p[6]);
/* Evaluates at p; counts and times it. */
NDT_MUST_CHECK enum ndt_status ndt_search_eval(struct ndt_search *search, const double p[6], struct ndt_eval *out,
                                               struct ndt_error *err);
/* Unit vector of the heading at p, x and y in the map; 0 (and zeros) when the sensor looks straight up or down. */
int ndt_search_heading(const struct ndt_search *search, const double p[6], double n[2]);
/* Would one more evaluation pass the deadline? */
int ndt_search_late(const struct ndt_search *search);
/* A new row of the trace, filled from the evaluation that the iteration starts from; the last one when full. */
struct ndt_iteration *ndt_search_row(struct ndt_search *search);
void ndt_search_close_row(struct ndt_search *search, struct ndt_iteration *row, const double step[6]);

NDT_MUST_CHECK enum ndt_status ndt_newton_robust(struct ndt_search *search, enum ndt_stop *stop,
                                                 struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndt_newton_autoware(struct ndt_search *search, enum ndt_stop *stop,
                                                   struct ndt_error *err);

/* The weak directions at search->eval, which should be a maximum. A voxel's smallest variance is limited to 1 % of
 * its largest, so flat surfaces give every direction at least about 1 % of the information of the best one: no more
 * than that means that nothing is seen there. */
void ndt_find_weak(const struct ndt_search *search, struct ndt_weak *out);
/* Takes the part along the weak directions out of a step of p. */
void ndt_remove_weak(const struct ndt_search *search, const struct ndt_weak *weak, double step[6]);

/* Everything that is said about the final pose: scores, covariance, weak axes, outcome and reason. */
void ndt_judge(struct ndt_search *search, enum ndt_stop stop, struct ndt_align_result *out);

#endif
