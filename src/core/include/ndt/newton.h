/** @file
 * @brief Newton's method on the NDT score, as a resumable state machine.
 *
 * The solver publishes the pose at which it needs the score (`query_pose`), receives the sums at that pose,
 * computes its next step, and repeats until it needs no further evaluation. The caller owns the loop: the host for
 * backends that evaluate (ndt_align), a kernel for pipelines that solve on the device. Both run the code of
 * ndt/newton_steps.h, so the method exists once.
 *
 *     ndt_newton_begin(&newton, &rules);
 *     while (newton.wants_eval) {
 *         // evaluate at newton.query_pose on newton.level with newton.neighbours
 *         ndt_newton_step(&newton, &rules, rows, capacity, &sums); // or ndt_newton_give_up: no time left
 *     }
 *
 * Variants:
 *  - NDT_ROBUST: a Newton step where -H is safely positive definite, otherwise V |Lambda|^-1 V^T g of -H
 *    (saddle-free Newton, Dauphin et al. 2014): an ascent direction wherever the Hessian is indefinite. Metres
 *    and radians are capped separately. A step without sufficient increase (Armijo; Nocedal & Wright, section
 *    3.1) is shortened at the maximum of a cubic through both ends (section 3.5), max_line_search_steps lengths
 *    in all. The last, small step of a level is made without evaluating it. Levels from coarse to fine; the best
 *    pose is kept. A Gaussian prior about the guess can be part of the objective on every level.
 *  - NDT_AUTOWARE: the step rule of Autoware's ndt_scan_matcher, for comparison.
 *
 * Coordinates: p = (tx, ty, tz, a, b, c), x_map = Rx(a) Ry(b) Rz(c) x + t with t relative to the origin of the map
 * [m] and angles in rad. For NDT_ROBUST the scan is rotated by the guess beforehand (R0), so the angles start at
 * zero: no gimbal lock whatever the attitude of the vehicle, and each angle turns nearly about an axis of the map.
 *
 * Plain data without pointers: a solver can be copied to a device and back between any two calls. Pure functions:
 * no clock, no allocation; equal inputs give bit-identical results (on a device the last digits may differ). */
#ifndef NDT_NEWTON_H
#define NDT_NEWTON_H

#include <stdint.h>

#include "ndt/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The step rule. */
enum ndt_variant { NDT_ROBUST, NDT_AUTOWARE };

/** Why the solver left a level and, in the end, why it stopped. */
enum ndt_stop {
    NDT_STOP_CONVERGED,
    NDT_STOP_ITERATIONS, /**< the limit was reached */
    NDT_STOP_DEADLINE,   /**< ndt_newton_give_up */
    NDT_STOP_OFF_MAP     /**< no point met a voxel */
};

/** When to leave a level: after a step below both sizes, or a gain below this part of the score. */
struct ndt_newton_limits {
    double step_m, step_rad, gain;
};

/** Parameters common to all solves of a call; see struct ndt_align_params. */
struct ndt_newton_rules {
    int32_t variant;                       /**< enum ndt_variant */
    int32_t level_count;                   /**< of the chain of levels, from coarse to fine */
    int32_t level[NDT_MAX_LEVELS];         /**< index into map->levels */
    int32_t neighbours[NDT_MAX_LEVELS];    /**< enum ndt_neighbours */
    int32_t max_iterations;                /**< over all levels */
    int32_t max_line_search_steps;         /**< step lengths tried per iteration */
    double step_limit_m, step_limit_rad;   /**< longest step */
    double eigenvalue_floor;               /**< smallest curvature, relative to the largest */
    struct ndt_newton_limits coarse, fine; /**< fine: the last level of the chain */
    double trans_epsilon, step_size;       /**< NDT_AUTOWARE only */
    double weak_eigenvalue_ratio;
    int32_t has_gnss;
    double gnss_m[2]; /**< x and y, relative to the origin of the map */
    double gnss_scale;
    int32_t wants_information; /**< 1: a device also returns the information at the answer (ndt/eval.h) */
};

/** Directions that the scan does not observe: unit steps of p with rotations in metres (see rotation_scale_m). */
struct ndt_newton_weak {
    int32_t count;
    double axes[3][6];
};

/** One iteration of the trace. */
struct ndt_newton_row {
    int32_t level, neighbours;
    int32_t evaluations;  /**< since the previous row: those of the line search, and the one that opens a level */
    double p[6];          /**< where the iteration started */
    struct ndt_eval eval; /**< there */
    double step[6];       /**< the step taken; zero if no step was acceptable */
    double took_us;       /**< not written here; on a device since the previous row, by the clock of the device */
};

/** One solve. */
struct ndt_newton {
    /** @name Input
     * @{ */
    double guess[6]; /**< p of the guess */
    /** Prior information: -1/2 e^T prior e with e = p - guess - prior_offset is added to the score. Upper triangle
     * [score per m^2, m rad, rad^2]; zeros: none. */
    double prior[21];
    double prior_offset[6]; /**< mean of the prior, relative to the guess */
    int32_t first_level;    /**< where in the chain of rules->level the solve begins; NDT_ROBUST only */
    double R0[9];           /**< rotates the scan before p is applied; row-major */
    /** Root mean square distance of the rotated points from the rotation axis, as the symmetric matrix
     * sqrt(mean(|x|^2 I - x x^T)), and its inverse [1/m]: a rotation vector r [rad] moves the points by
     * |rotation_scale_m r| on average. Makes rotations comparable with translations. */
    double rotation_scale_m[9], inverse_rotation_scale[9];
    /** @} */

    /** @name The next evaluation
     * @{ */
    int32_t wants_eval;        /**< 0: done */
    int32_t level, neighbours; /**< index into map->levels, enum ndt_neighbours */
    double query_pose[6];      /**< p where the score is needed */
    /** @} */

    /** @name State; the answer once the solver is done
     * @{ */
    int32_t stop; /**< enum ndt_stop */
    int32_t evaluations;
    int32_t row_count;           /**< iterations begun; the last one is closed unless wants_eval */
    int32_t rows_closed;         /**< completed iterations */
    int32_t oscillation;         /**< longest run of steps that reverse the previous one */
    double p[6];                 /**< where `eval` was taken, or one last step below the limits away from there */
    struct ndt_eval eval;        /**< with prior and regularisation */
    struct ndt_newton_weak weak; /**< found once the finest level has converged; NDT_ROBUST only */
    /** @} */

    /** @name Internal
     * @{ */
    int32_t phase;            /**< opening a level, in the line search, or done */
    int32_t chain;            /**< position of the level in rules->level */
    int32_t line_search_step; /**< lengths rejected in this iteration */
    int32_t row_evaluations;  /**< since the last row was closed */
    int32_t reversals;        /**< length of the current run of reversing steps */
    int32_t downhill;         /**< steps of this level that were made although they lowered the score */
    double trust;             /**< part of the step limits in force */
    double d[6];              /**< direction of the line search */
    double alpha;             /**< part of d that is being evaluated */
    double best_p[6];         /**< best pose of this level */
    struct ndt_eval best;     /**< there */
    double last_step_m[3];    /**< translation of the previous step */
    /** @} */
};

/** Sets the rotation scales from the mean of x x^T [m^2] over the finite points of the scan as measured (upper
 * triangle). Reads R0. */
void ndt_newton_set_rotation_scale(struct ndt_newton *newton, const double second_m2[6]);

/** Starts a solve. Reads guess, prior, first_level, R0 and the rotation scales. */
void ndt_newton_begin(struct ndt_newton *newton, const struct ndt_newton_rules *rules);

/** Continues with the sums at newton->query_pose as the backend computed them, without prior and regularisation.
 * rows: receives the trace, `capacity` (>= 1) rows; the last one is overwritten if they do not suffice. */
void ndt_newton_step(struct ndt_newton *newton, const struct ndt_newton_rules *rules, struct ndt_newton_row *rows,
                     int32_t capacity, const struct ndt_eval *sums);

/** Stops the solve before the pending evaluation, with the best pose so far and NDT_STOP_DEADLINE. */
void ndt_newton_give_up(struct ndt_newton *newton, struct ndt_newton_row *rows, int32_t capacity);

/** The information about the pose: -H at newton->eval with rotations in metres, upper triangle. */
void ndt_newton_information(const struct ndt_newton *newton, double upper[21]);

/** Applies the 3x3 matrix M to the rotation part of a six-vector: out = diag(I, M) in. */
void ndt_newton_transform_rotation(const double M[9], const double in[6], double out[6]);

#ifdef __cplusplus
}
#endif
#endif
