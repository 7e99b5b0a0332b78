/* Newton's method on the NDT score: one scan, one guess, one pose.
 *
 * Variants (see README for what they measure on real drives):
 *  - robust: -H is eigen-decomposed and |lambda| used (saddle-free Newton), metres and radians are capped
 *    separately, Armijo backtracking with at most four trials, coarse-to-fine levels, best pose kept.
 *  - autoware: the step rule of Autoware's ndt_scan_matcher, for comparison: fixed clamp of the mixed
 *    norm, whole step flipped where it points downhill, no line search, one level.
 *
 * Threads: an aligner is used by one thread at a time. Allocates at create and when a scan is larger than
 * any before; never per iteration. Determinism: same inputs, same backend: bit-equal results; the clock
 * is only read to write timings and, when a deadline is set, to stop. */
#ifndef NDT_ALIGN_H
#define NDT_ALIGN_H

#include <stdint.h>

#include "ndt/backend.h"
#include "ndt/newton.h"
#include "ndt/pose.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ndt_outcome {
    NDT_CONVERGED,
    NDT_ITERATION_LIMIT,
    NDT_DEADLINE,   /* stopped in time with the best pose so far */
    NDT_DROPPED,    /* never aligned: the queue was full */
    NDT_REJECTED,   /* the scan could not be used */
    NDT_LOW_SCORE,  /* aligned, but the score says it is not to be trusted */
    NDT_DEGENERATE, /* aligned, but too few matches to determine a pose */
    NDT_NO_MAP,
    NDT_NO_GUESS, /* no initial pose yet */
    NDT_OFF_MAP,  /* not one point met a voxel */
    NDT_OUTCOME_COUNT
};
const char *ndt_outcome_name(enum ndt_outcome outcome); /* "converged", "iteration_limit", ... */

/* One level of the coarse-to-fine chain and when to leave it. */
struct ndt_align_level {
    double leaf_m;
    enum ndt_neighbours neighbours;
};

struct ndt_align_params {
    enum ndt_variant variant;
    size_t level_count;
    struct ndt_align_level levels[NDT_MAX_LEVELS]; /* from coarse to fine; leaves present in the map */
    int max_iterations;                            /* over all levels, 30 */
    /* robust */
    double step_limit_m, step_limit_rad;                     /* 0.75 m, 3 deg */
    double eigenvalue_floor;                                 /* 1e-6 of the largest */
    double coarse_stop_m, coarse_stop_rad, coarse_stop_gain; /* 5 cm, 0.2 deg, 1e-4 */
    double fine_stop_m, fine_stop_rad, fine_stop_gain;       /* 5 mm, 0.05 deg, 1e-6 */
    int max_line_search_steps;                               /* step lengths tried per iteration, 2 */
    /* autoware */
    double trans_epsilon; /* 0.01 */
    double step_size;     /* 0.1 */
    /* judgement */
    double score_threshold;       /* normalised NVTL times match ratio below which: low_score. 0.35: at 1 m right
                                     poses have 0.44 and more, wrong ones up to 0.42, mostly below 0.3 */
    double min_match_ratio;       /* below: degenerate */
    double weak_eigenvalue_ratio; /* directions with less than this part of the best one's information are weak:
                                     reported, and the guess is kept there; 0.0125 */
    double covariance_scale;      /* multiplies the Laplace covariance: the points of a scan are not independent.
                                     10: mean squared error over variance on KITTI 0005 was 8 to 13 */
    /* Regularisation as in Autoware: gnss_scale * pairs * e^2 is taken off the score, e the distance from the pose
     * to the position along the heading. Score, transform probability and covariance then include it; along the
     * heading a weak direction is not held at the guess. */
    int has_gnss;
    double gnss_position_m[3]; /* in the map, height unused */
    double gnss_scale;         /* 0.01 */
    /* Real time: stop before this much time has passed since `ndt_align` began; 0 = never. */
    double deadline_s;
};
void ndt_align_params_default(struct ndt_align_params *params);

#define NDT_MAX_ITERATIONS 512

/* One row of the timing dump. The columns of the file come from the table in timing.h. */
struct ndt_iteration {
    int32_t iteration;
    int32_t level;
    int32_t evaluations; /* made since the last row: trials of this step, and the one that opened the level */
    double score;        /* at the pose the iteration starts from */
    double gradient_norm;
    double hessian[21]; /* there, upper triangle */
    double step_m, step_rad;
    double matched, pairs;
    double eval_us, solve_us, kernel_us;
    uint64_t h2d_bytes, d2h_bytes, launches, synchronisations, allocations;
    struct ndt_pose T_map_sensor; /* after the step */
};

/* All at the final pose, on the finest level. */
struct ndt_scores {
    double transform_probability; /* score / N, all N points */
    double nvtl;                  /* mean over matched points of the best voxel's score */
    double nvtl_normalized;       /* nvtl / -d1, in [0, 1]: comparable between leaf sizes */
    double match_ratio;           /* matched / N */
    double coverage;              /* part of 32 azimuth sectors around the sensor that hold a point near a voxel */
};

struct ndt_align_result {
    enum ndt_outcome outcome;
    char reason[96]; /* one line, empty for converged */
    struct ndt_pose T_map_sensor;
    int has_covariance;
    double covariance[36]; /* row-major, x y z rx ry rz [m^2, m rad, rad^2], map frame, rotations about
                              the axes of the map at the sensor */
    int weak_count;        /* weakly observed directions, unit six-vectors in the same order */
    double weak_axes[3][6];
    struct ndt_scores scores;
    int iterations;
    int evaluations;
    int oscillation;  /* longest run of reversing steps; above 10 the pose is doubtful */
    size_t points;    /* of the scan that was aligned */
    double align_us;  /* everything in ndt_align */
    double upload_us; /* the part of it that hands the scan to the backend */
};

struct ndt_aligner;
NDT_MUST_CHECK enum ndt_status ndt_aligner_create(struct ndt_aligner **out, struct ndt_backend *backend,
                                                  struct ndt_error *err); /* borrows the backend */
void ndt_aligner_destroy(struct ndt_aligner *aligner);
/* Checks that the map has the levels of `params` and hands it to the backend. */
NDT_MUST_CHECK enum ndt_status ndt_aligner_set_map(struct ndt_aligner *aligner, struct ndt_map *map,
                                                   struct ndt_error *err);
/* The same without waiting, between scans, to be called until *taken is 1; the map before is used until then. At
 * once where the backend does not offer it, and where there is no map yet: there is nothing to go on with. On
 * failure the offer is forgotten. See ndt_backend_ops.offer_map. */
NDT_MUST_CHECK enum ndt_status ndt_aligner_set_map_async(struct ndt_aligner *aligner, struct ndt_map *map,
                                                         int *taken, struct ndt_error *err);
/* What things take here: fixed_us + point_us * points of the scan. Bounds the iterations where a deadline is set,
 * and nothing else. All zero: not known. */
struct ndt_cost {
    double fixed_us, point_us;
};
struct ndt_align_costs {
    struct ndt_cost levels[NDT_MAX_LEVELS]; /* one evaluation on each level of the map, from coarse to fine */
    struct ndt_cost assess;                 /* what comes after the last one */
};
/* From now on alignments expect these costs; what they really take corrects them. Without this the first scans
 * under a tight deadline have nothing to go by, nor has one with far more points than the scans before. */
void ndt_aligner_set_costs(struct ndt_aligner *aligner, const struct ndt_align_costs *costs);
/* What they took lately, as fixed_us, for scans like the last one; 0 for levels that were not used. */
void ndt_aligner_costs(const struct ndt_aligner *aligner, struct ndt_align_costs *out);
/* scan: sensor frame, relative to its own origin (0). T_map_guess: in map coordinates (absolute, double).
 * A status other than NDT_OK means that nothing could be computed; `out` then holds the guess. */
NDT_MUST_CHECK enum ndt_status ndt_align(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                                         const struct ndt_cloud *scan, const struct ndt_pose *T_map_guess,
                                         struct ndt_align_result *out, struct ndt_error *err);
/* ndt_align of what ndt_preprocess would make of `raw`, preprocessed by the backend: bit for bit the same scan.
 * front: from ndt_preprocess_plan_set; raw NULL: the scan of the call before with the motion of
 * ndt_front_set_again. out->upload_us is what handing over the raw scan took; the preprocessing itself is part of
 * out->align_us. NDT_ERR_UNSUPPORTED: the backend cannot, or its device was lost; nothing was computed, and the
 * caller goes the host's way. A scan of which no point is left ends as NDT_REJECTED. */
NDT_MUST_CHECK enum ndt_status ndt_align_raw(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                                             const struct ndt_preprocess_plan *plan, const struct ndt_cloud *raw,
                                             const struct ndt_pose *T_map_guess, struct ndt_align_result *out,
                                             struct ndt_error *err);
/* Most raw points that ndt_align_raw takes; 0: it is of no use with this backend. */
size_t ndt_aligner_raw_limit(const struct ndt_aligner *aligner);
/* Many at once: scans that wait in a queue, or guesses for one scan. Where the backend has searches (see
 * ndt/backend.h) they run together, otherwise one after the other; either way each result is bit for bit that of
 * ndt_align alone. params->deadline_s is for all together, and what upload_us and align_us of each result tell.
 * Items with the same `scan` pointer share its upload. Leaves no trace. Allocates when a batch is larger than any
 * before. */
struct ndt_align_item {
    const struct ndt_cloud *scan;
    struct ndt_pose T_map_guess;
};
NDT_MUST_CHECK enum ndt_status ndt_align_batch(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                                               const struct ndt_align_item *items, size_t count,
                                               struct ndt_align_result *out, struct ndt_error *err);
/* How many of a batch run together; 1: one after the other. */
size_t ndt_aligner_batch_size(const struct ndt_aligner *aligner);
/* The rows of the last ndt_align; borrowed until the next one. */
const struct ndt_iteration *ndt_aligner_trace(const struct ndt_aligner *aligner, size_t *count);
/* Evaluates again where row `iteration` of the trace started from, and writes what lies between points and sums;
 * see ndt_backend_ops.dump. NDT_ERR_LIMIT: there is no such row; NDT_ERR_UNSUPPORTED: the backend keeps nothing. */
NDT_MUST_CHECK enum ndt_status ndt_aligner_dump(struct ndt_aligner *aligner, size_t iteration, FILE *file,
                                                struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
