/* Newton's method on the NDT score as a machine that is fed: it says where it wants the score evaluated, is given
 * the sums, and says where next, until it wants nothing more.
 *
 * Whoever has the sums drives it: a loop on the host for backends that evaluate (ndt_align), a kernel for the
 * pipelines that keep the whole search on the device. Both run the code of newton_steps.h, so the method exists
 * once.
 *
 *     ndt_newton_begin(&newton, &rules);
 *     while (newton.wants_eval) {
 *         evaluate at newton.ask on newton.level with newton.neighbours;
 *         ndt_newton_step(&newton, &rules, rows, capacity, &sums);    (or ndt_newton_give_up: no time left)
 *     }
 *
 * Variants:
 *  - robust: a Newton step where -H is safely positive definite, otherwise V |Lambda|^-1 V^T g of -H (saddle-free
 *    Newton, Dauphin et al. 2014): an ascent direction wherever the Hessian is indefinite. Metres and radians are
 *    capped separately, a step that is too long is cut by a cubic through both ends, the last small one is made
 *    without another evaluation. Coarse-to-fine levels, best pose kept, unobserved directions held.
 *  - autoware: the step rule of Autoware's ndt_scan_matcher, for comparison.
 *
 * Plain data throughout, no pointers: a machine can be copied to a device and back between any two calls. Pure
 * functions: no clock, no allocation; same inputs, same bits (on a device: the last digits may differ). */
#ifndef NDT_NEWTON_H
#define NDT_NEWTON_H

#include <stdint.h>

#include "ndt/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ndt_variant { NDT_ROBUST, NDT_AUTOWARE };

/* Why a level, and in the end the search, stopped. */
enum ndt_stop { NDT_STOP_CONVERGED, NDT_STOP_ITERATIONS, NDT_STOP_DEADLINE, NDT_STOP_OFF_MAP };

/* When to leave a level: after a step below both sizes, or a gain below this part of the score. */
struct ndt_newton_limits {
    double step_m, step_rad, gain;
};

/* What holds for all searches of a call; see struct ndt_align_params. */
struct ndt_newton_rules {
    int32_t variant;                                           /* enum ndt_variant */
    int32_t level_count;                                       /* of the chain, from coarse to fine */
    int32_t level[NDT_MAX_LEVELS], neighbours[NDT_MAX_LEVELS]; /* index into map->levels, enum ndt_neighbours */
    int32_t max_iterations, max_line_search_steps;
    double step_limit_m, step_limit_rad, eigenvalue_floor;
    struct ndt_newton_limits coarse, fine;
    double trans_epsilon, step_size;
    double weak_eigenvalue_ratio;
    int32_t has_gnss;
    double gnss_m[2]; /* x and y, relative to the origin of the map */
    double gnss_scale;
};

/* Directions that the scan does not observe, as unit steps of p in lever-scaled units. */
struct ndt_newton_weak {
    int32_t count;
    double axes[3][6];
};

/* One iteration: where it started and what came of it. */
struct ndt_newton_row {
    int32_t level, neighbours;
    int32_t evaluations;  /* made since the last row: trials of this step, and the one that opened the level */
    double p[6];          /* where it started */
    struct ndt_eval eval; /* there */
    double step[6];       /* what was done; zero where no step was acceptable */
    double took_us;       /* written by whoever drives: on a device since the row before, by the device's clock */
};

/* One search. The optimiser works on p relative to the map's origin; for `robust` the scan is turned by the guess
 * beforehand (R0), so that its angles start at zero: no gimbal lock whatever the attitude of the vehicle, and
 * rotation and translation keep their meaning. */
struct ndt_newton {
    /* Given. */
    double guess[6]; /* p of the guess */
    double R0[9];    /* turns the scan before p moves it; row-major */
    /* Lever arms of the turned points about the sensor, as symmetric matrices: sqrt(mean(|x|^2 I - x x^T)) and
     * inverse. A rotation r moves the points by |rotation_scale_m r| on average: so rotations compare with
     * translations. */
    double rotation_scale_m[9], inverse_rotation_scale[9];

    /* What it wants. */
    int32_t wants_eval; /* 0: done */
    int32_t level, neighbours;
    double query_pose[6];

    /* What it has; the answer once it is done. */
    int32_t stop; /* enum ndt_stop */
    int32_t evaluations;
    int32_t row_count; /* iterations begun; the last one is closed unless wants_eval */
    int32_t rows_closed;
    int32_t oscillation; /* longest run of steps that reverse the one before */
    double p[6];         /* where `eval` was taken, or a last step below the limits away from there */
    struct ndt_eval eval;
    struct ndt_newton_weak weak; /* found once the finest level has converged; robust only */

    /* Between calls. */
    int32_t phase, chain, line_search_step, holding, row_limit, row_evaluations, reversals;
    int32_t downhill; /* steps of this level that lost score */
    double trust;     /* part of the step caps that steps have kept to lately */
    double d[6];      /* the step that is tried */
    double alpha;     /* how much of it */
    double best_p[6];
    struct ndt_eval best;
    double last_step_m[3];
};

/* From the mean of x x^T over the finite points of the scan as it came (upper triangle); R0 is set. */
void ndt_newton_set_rotation_scale(struct ndt_newton *newton, const double second_m2[6]);
/* guess, R0 and the levers are set. */
void ndt_newton_begin(struct ndt_newton *newton, const struct ndt_newton_rules *rules);
/* sums: at newton->ask, as the backend gives them. rows: of the iterations, `capacity` of them (>= 1); the last one
 * is used again when they do not suffice. */
void ndt_newton_step(struct ndt_newton *newton, const struct ndt_newton_rules *rules, struct ndt_newton_row *rows,
                     int32_t capacity, const struct ndt_eval *sums);
/* No time for what it asks for: it ends with the best pose so far and NDT_STOP_DEADLINE. */
void ndt_newton_give_up(struct ndt_newton *newton, struct ndt_newton_row *rows, int32_t capacity);

/* What a position beside the scan adds to sums at newton->ask: -gnss_scale * pairs * e^2, e = (g - t) . h with the
 * heading h. ndt_newton_step does it. */
void ndt_newton_regularize(const struct ndt_newton *newton, const struct ndt_newton_rules *rules,
                           struct ndt_eval *eval);

/* -H at newton->eval in lever-scaled units, upper triangle: the information about the pose. */
void ndt_newton_information(const struct ndt_newton *newton, double upper[21]);
/* x -> diag(I, M) x for a six-vector. */
void ndt_newton_turn_rotation(const double M[9], const double in[6], double out[6]);

#ifdef __cplusplus
}
#endif
#endif
