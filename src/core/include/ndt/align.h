/** @file
 * @brief Alignment of a scan with a map: one scan, one guess, one pose.
 *
 * Newton's method maximises the NDT score (Magnusson 2009, eq. 6.9) over the six coordinates of the pose;
 * ndt/newton.h describes it. Two variants:
 *  - NDT_ROBUST: saddle-free Newton steps, capped in metres and radians, with a short line search, on levels from
 *    coarse to fine. The best pose is kept. A prior (struct ndt_prior) takes part in the search in every direction.
 *  - NDT_AUTOWARE: the step rule of Autoware's ndt_scan_matcher, for comparison: the whole step with the clamped
 *    mixed norm, reversed where it points downhill, no line search, the finest level only.
 *
 *     struct ndt_aligner *aligner;
 *     ndt_align_params_default(&params);
 *     ndt_cpu_backend.open(&backend, &config, &err);
 *     ndt_aligner_create(&aligner, backend, &err);
 *     ndt_aligner_set_map(aligner, map, &err);
 *     ndt_align(aligner, &params, scan, &T_map_guess, &result, &err);
 *
 * Threads: an aligner is used by one thread at a time. Memory: allocates in ndt_aligner_create and when a scan or
 * a batch is larger than any before; never per iteration. Determinism: the same inputs on the same backend give
 * bit-equal results; the clock is read for timings and, if a deadline is set, to stop. */
#ifndef NDT_ALIGN_H
#define NDT_ALIGN_H

#include <stdint.h>

#include "ndt/backend.h"
#include "ndt/newton.h"
#include "ndt/observation.h"
#include "ndt/pose.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Outcome of a scan. */
enum ndt_outcome {
    NDT_CONVERGED,
    NDT_ITERATION_LIMIT, /**< not converged; the best pose so far */
    NDT_DEADLINE,        /**< stopped at the deadline; the best pose so far */
    NDT_DROPPED,         /**< not aligned: the queue was full */
    NDT_REJECTED,        /**< not aligned: the scan could not be used */
    NDT_LOW_SCORE,       /**< aligned, but the score is too low to trust the pose */
    NDT_DEGENERATE,      /**< aligned, but too few points matched to determine a pose */
    NDT_NO_MAP,          /**< not aligned */
    NDT_NO_GUESS,        /**< not aligned: no initial pose yet */
    NDT_OFF_MAP,         /**< no point met a voxel; with the state extending, too few did */
    NDT_LOST,            /**< the estimator has lost the pose */
    NDT_MERGED,          /**< not aligned: the points go with another scan of the same sweep */
    NDT_OUTCOME_COUNT
};

/** "converged", "iteration_limit", ...; "unknown" for other numbers. */
const char *ndt_outcome_name(enum ndt_outcome outcome);

/** One level of the coarse-to-fine chain. */
struct ndt_align_level {
    double leaf_m; /**< edge of the voxels; the map must have this level */
    enum ndt_neighbours neighbours;
};

/** A Gaussian prior of the pose, such as the prediction of an estimator. */
struct ndt_prior {
    struct ndt_pose T_map_sensor; /**< mean */
    /** Covariance of the error d = (rho, phi) in T = T_map_sensor Exp(d) [m^2, m rad, rad^2]; row-major, positive
     * definite */
    double covariance[36];
};

/** Parameters of an alignment; ndt_align_params_default gives the values in brackets. */
struct ndt_align_params {
    enum ndt_variant variant; /**< [NDT_ROBUST] */
    size_t level_count;       /**< [3] */
    /** From coarse to fine [4 m direct7, 2 m direct7, 1 m radius]. */
    struct ndt_align_level levels[NDT_MAX_LEVELS];
    int max_iterations; /**< over all levels [30] */

    double step_limit_m, step_limit_rad; /**< robust: longest step [0.75 m, 3 deg] */
    double eigenvalue_floor;             /**< robust: smallest curvature, relative to the largest [1e-6] */
    /** robust: a coarse level ends after a step below both sizes or a relative gain below this one
     * [5 cm, 0.2 deg, 1e-4] */
    double coarse_stop_m, coarse_stop_rad, coarse_stop_gain;
    double fine_stop_m, fine_stop_rad,
        fine_stop_gain;        /**< robust: the same for the finest [5 mm, 0.05 deg, 1e-6] */
    int max_line_search_steps; /**< robust: step lengths tried per iteration [2] */

    double trans_epsilon; /**< autoware: converged after a step shorter than this [0.01] */
    double step_size;     /**< autoware: longest step, metres and radians mixed [0.1] */

    /** Below this nvtl_normalized * match_ratio the outcome is NDT_LOW_SCORE [0.35]. With leaves of 1 m correct
     * poses reach 0.44 and more, wrong ones at most 0.42, mostly below 0.3. */
    double score_threshold;
    double min_match_ratio; /**< below this match ratio the outcome is NDT_DEGENERATE [0.1] */
    /** Unless the score of this name is above it the outcome is NDT_LOW_SCORE, as in Autoware; 0: no condition. Not
     * normalised: the scale depends on the leaf of the finest level [0, 0] */
    double min_transform_probability, min_nvtl;
    /** Directions with less than this fraction of the information of the best one are weakly observed and reported
     * [0.0125]. */
    double weak_eigenvalue_ratio;
    /** Multiplies the Laplace covariance, because the points of a scan are not independent [10]: the mean squared
     * error over the unscaled variance was 8 to 13 on KITTI 0005. Not used with wants_observation. */
    double covariance_scale;

    /** Regularisation by a position, as in Autoware: gnss_scale * pairs * e^2 is subtracted from the score, where e
     * is the distance from the pose to the position along the heading. Score, transform probability and covariance
     * then include it. [0: off] */
    int has_gnss;
    double gnss_position_m[3]; /**< in the map frame; the height is not used */
    double gnss_scale;         /**< [0.01] */

    /** robust: subtracts prior_weight / 2 d^T covariance^-1 d from the score, on all levels. NULL: none; borrowed
     * during the call; ndt_align_batch takes those of the items. A prior that is not positive definite is
     * NDT_ERR_ARGUMENT. [NULL] */
    const struct ndt_prior *prior;
    /** The score counts points as independent that are not: its curvature is about this many times the information
     * about the pose. [10] */
    double prior_weight;
    /** robust, with a prior: begin at the finest level whose basin holds three standard deviations of the prior; if
     * that is a coarse one, the finest level is also tried from the guess, and the better final score counts.
     * 0: always the whole chain. [1] */
    int choose_levels;
    double basin;          /**< reach of a level: this part of its leaf_m, of the mean movement of points [0.5] */
    int wants_observation; /**< also evaluate the information at the final pose [0] */
    struct ndt_observation_noise noise; /**< for the covariance, with wants_observation */

    double deadline_s; /**< stop before this much time has passed since ndt_align was called; 0: never [0] */
};

/** Sets the defaults. */
void ndt_align_params_default(struct ndt_align_params *params);

/** Most iterations that a trace holds. */
#define NDT_MAX_ITERATIONS 512

/** One iteration of the trace. */
struct ndt_iteration {
    int32_t iteration;   /**< from 0 */
    int32_t level;       /**< index into the levels of the map */
    int32_t evaluations; /**< since the previous iteration, including the one that opens a level */
    double score;        /**< at the pose where the iteration starts */
    double gradient_norm;
    double hessian[21];      /**< there; upper triangle by rows */
    double step_m, step_rad; /**< of the step made; 0 if none was acceptable */
    double matched, pairs;   /**< see struct ndt_eval */
    double eval_us, solve_us, kernel_us;
    uint64_t h2d_bytes, d2h_bytes, launches, synchronisations, allocations;
    struct ndt_pose T_map_sensor; /**< after the step */
};

/** Scores of the final pose, on the finest level. */
struct ndt_scores {
    double transform_probability; /**< score over the number of all points */
    double nvtl;                  /**< nearest voxel transformation likelihood: mean over the matched points */
    double nvtl_normalized;       /**< nvtl / -d1, in [0, 1]: comparable between leaf sizes */
    double match_ratio;           /**< matched points over all points */
    double coverage;              /**< fraction of 32 azimuth sectors around the sensor with a point near a voxel */
};

/** Result of an alignment. */
struct ndt_align_result {
    enum ndt_outcome outcome;
    char reason[96];              /**< one line; empty for NDT_CONVERGED */
    struct ndt_pose T_map_sensor; /**< the guess if nothing was aligned */
    int has_covariance; /**< 0 if the score is not at a maximum, or an observation was made with a prior: fuse the
                           two */
    /** Row-major, x y z rx ry rz [m^2, m rad, rad^2], map frame; rotations about the axes of the map at the sensor.
     */
    double covariance[36];
    int has_observation;                /**< with params->wants_observation, unless no point met a voxel */
    struct ndt_observation observation; /**< at T_map_sensor */
    int weak_count;                     /**< weakly observed directions, 0 .. 3 */
    double weak_axes[3][6];             /**< unit vectors in the order of the covariance */
    struct ndt_scores scores;
    int iterations;  /**< of the solve that counts */
    int evaluations; /**< of the score and its derivatives, in all solves; that of the observation is not counted */
    int oscillation; /**< longest run of reversing steps; above 10 the pose is doubtful */
    size_t points;   /**< of the scan that was aligned */
    double align_us; /**< duration of the whole call */
    double upload_us; /**< part of align_us: handing the scan to the backend */
};

/** Aligns scans with one map on one backend. */
struct ndt_aligner;

/** Creates an aligner without a map. Borrows the backend, which must outlive the aligner. */
NDT_MUST_CHECK enum ndt_status ndt_aligner_create(struct ndt_aligner **out, struct ndt_backend *backend,
                                                  struct ndt_error *err);
/** Does not close the backend. `aligner` may be NULL. */
void ndt_aligner_destroy(struct ndt_aligner *aligner);

/** Hands the map to the backend and keeps a reference. On failure the aligner keeps the previous map. */
NDT_MUST_CHECK enum ndt_status ndt_aligner_set_map(struct ndt_aligner *aligner, struct ndt_map *map,
                                                   struct ndt_error *err);
/** As ndt_aligner_set_map, without waiting. Call it with the same map between scans until *taken is 1; until then
 * the previous map is used. The map is set synchronously if the backend does not support this or no map is set
 * yet. After a failure the transfer is cancelled. See ndt_backend_ops.set_map_async. */
NDT_MUST_CHECK enum ndt_status ndt_aligner_set_map_async(struct ndt_aligner *aligner, struct ndt_map *map,
                                                         int *taken, struct ndt_error *err);

/** Duration of a part of an alignment: fixed_us + point_us * points of the scan. All zero: not known. */
struct ndt_cost {
    double fixed_us, point_us;
};
/** Expected durations. They bound the iterations if a deadline is set, and affect nothing else. */
struct ndt_align_costs {
    struct ndt_cost levels[NDT_MAX_LEVELS]; /**< one evaluation on each level of the map, from coarse to fine */
    struct ndt_cost assess;                 /**< everything after the last evaluation */
};
/** Sets the expected costs; measured ones replace them. Without them nothing bounds the first evaluations of the
 * first scans under a tight deadline, nor those of a scan with far more points than the previous scans. */
void ndt_aligner_set_costs(struct ndt_aligner *aligner, const struct ndt_align_costs *costs);
/** Costs measured with scans like the last one, as fixed_us; 0 for levels that were not used. */
void ndt_aligner_costs(const struct ndt_aligner *aligner, struct ndt_align_costs *out);

/** Aligns `scan` (sensor frame; its origin is ignored) from the guess, which is absolute in the map frame. The
 * levels of `params` must exist in the map (NDT_ERR_ARGUMENT). A status other than NDT_OK means that nothing could
 * be computed; `out` then holds the guess. */
NDT_MUST_CHECK enum ndt_status ndt_align(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                                         const struct ndt_cloud *scan, const struct ndt_pose *T_map_guess,
                                         struct ndt_align_result *out, struct ndt_error *err);

/** ndt_align of a raw scan that the backend preprocesses; the scan is bit-identical to that of ndt_preprocess.
 *
 * plan: from ndt_preprocess_plan_set. out->upload_us is the time to hand over the raw scan; preprocessing is part
 * of out->align_us. A scan of which no point is left ends as NDT_REJECTED. NDT_ERR_UNSUPPORTED: the backend cannot
 * preprocess, or its device was lost; nothing was computed, and the caller preprocesses on the host. */
NDT_MUST_CHECK enum ndt_status ndt_align_raw(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                                             const struct ndt_preprocess_plan *plan, const struct ndt_cloud *raw,
                                             const struct ndt_pose *T_map_guess, struct ndt_align_result *out,
                                             struct ndt_error *err);
/** As ndt_align_raw, for the scan of the last ndt_align_raw, with the motion of ndt_preprocess_plan_set_motion. */
NDT_MUST_CHECK enum ndt_status ndt_align_raw_again(struct ndt_aligner *aligner,
                                                   const struct ndt_align_params *params,
                                                   const struct ndt_preprocess_plan *plan,
                                                   const struct ndt_pose *T_map_guess, struct ndt_align_result *out,
                                                   struct ndt_error *err);
/** Most alignments that the backend solves in one launch; 0: it evaluates, and the host solves. */
size_t ndt_aligner_solve_limit(const struct ndt_aligner *aligner);
/** Most raw points that ndt_align_raw takes; 0: the backend does not preprocess. */
size_t ndt_aligner_raw_limit(const struct ndt_aligner *aligner);

/** One of many alignments. Items with the same `scan` pointer share its upload. */
struct ndt_align_item {
    const struct ndt_cloud *scan;
    struct ndt_pose T_map_guess;
    const struct ndt_prior *prior; /**< in place of params->prior */
};
/** Many alignments at once: scans from a queue, or several guesses for one scan. They run together if the backend
 * solves on its device (ndt_backend_ops.solve), one per thread if it has lanes (ndt_backend_ops.run_lanes),
 * otherwise one after the other; each result is bit-identical to that of ndt_align with the prior of the item.
 *
 * params->deadline_s applies to the whole batch. Where the backend does not solve, items that could not begin in
 * time keep their guess and end as NDT_DEADLINE; the first item is always begun. align_us counts from the call to
 * the end of the item or of the batch.
 *
 * An item that fails (a prior that is not positive definite, a scan beyond a limit) does not stop the others,
 * unless the backend solves; the status is that of the first one in the list that failed, which keeps its guess.
 * The trace stays that of the last ndt_align. Allocates when a batch or one of its scans is larger than any before.
 */
NDT_MUST_CHECK enum ndt_status ndt_align_batch(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                                               const struct ndt_align_item *items, size_t count,
                                               struct ndt_align_result *out, struct ndt_error *err);

/** Allocates what a batch of so many items of so many points needs, so that ndt_align_batch does not. After
 * ndt_aligner_create; again if the device of the backend is lost. */
NDT_MUST_CHECK enum ndt_status ndt_aligner_reserve_batch(struct ndt_aligner *aligner, size_t items, size_t points,
                                                         struct ndt_error *err);

/** One scan at many poses. */
struct ndt_score_job {
    double leaf_m; /**< of the level, which the map must have */
    enum ndt_neighbours neighbours;
    const struct ndt_cloud *scan; /**< sensor frame; its origin is ignored */
    size_t count;
    const struct ndt_pose *T_map_sensor;        /**< absolute in the map frame */
    int (*goes_on)(void *context, size_t done); /**< see struct ndt_score_request */
    void *context;
};
/** Scores of the scan at each pose, to choose those to align from; the same bits on every backend. *done: poses
 * that were scored, see ndt_backend_ops.score_poses. NDT_ERR_UNSUPPORTED: the backend does not score poses, or its
 * device was lost. NDT_ERR_ARGUMENT: no map, no such level, or a pose that is not finite. Allocates when there are
 * more poses than ever before. */
NDT_MUST_CHECK enum ndt_status ndt_aligner_score(struct ndt_aligner *aligner, const struct ndt_score_job *job,
                                                 struct ndt_pose_score *out, size_t *done, struct ndt_error *err);

/** The iterations of the last ndt_align or ndt_align_raw; borrowed until the next call. */
const struct ndt_iteration *ndt_aligner_trace(const struct ndt_aligner *aligner, size_t *count);
/** Repeats the evaluation at the start of iteration `iteration` of the trace and writes the intermediate values of
 * each point; see ndt_backend_ops.dump. NDT_ERR_LIMIT: there is no such iteration. NDT_ERR_UNSUPPORTED: the
 * backend keeps no intermediate values. */
NDT_MUST_CHECK enum ndt_status ndt_aligner_dump(struct ndt_aligner *aligner, size_t iteration, FILE *file,
                                                struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
