/** @file
 * @brief Global localisation: search for the place of a scan in a whole map, or a part of it, without a prior pose.
 *
 *     ndt_search_params_default(&params);
 *     ndt_search_create(&search, &config, &err);
 *     ndt_search_set_map(search, map, field, &err);
 *     ndt_search_run(search, &params, scan, NULL, NULL, NULL, &result, &err);
 *
 * 0. Upright: the points of a tilted, hanging or merged sensor are put into a frame whose z axis is upward; the
 *    other steps work there, and poses are given back for the sensor.
 * 1. Prepare: voxel filter, the plane of the ground (RANSAC below the sensor), levelling and height above it. The
 *    points above the ground become at most 200, one per column of 1 m, in small rooms down to 0.25 m, and band of
 *    height (ndt_search/field.h). A scan without visible ground is tried at several heights.
 * 2. Dense: every heading times every cell near known ground. The score of a place is the number of points whose
 *    cell has the bit of the point's band. The best of each 8x8 cells and heading counts. In a large region, a
 *    first pass with every second point keeps one block of 32 (100 points cost half; the block of the truth, among
 *    the best 100 of a square kilometre with all points, is among the best 3 % with half of them).
 * 3. Refine: the best blocks at 0.5 m and 1.5 deg; of places closer than 2 m and 8 deg the best one is kept.
 * 4. Align: the NDT score of each place, on 2 m, leaves out those far worse than the best one, at most every
 *    second of those that may be aligned; ndt_align_batch on the levels of 2 and 1 m, rank by `gaussian_fit`; the
 *    best few again with more points.
 *
 * Near a known position (NDT_SEARCH_NEAR) step 2 scores cells of 0.5 m, on any ground and by the threads alone;
 * step 3 only finds the best cell of each block, and step 4 scores more places, on 1 m, and aligns the best of
 * them.
 *
 * This costs 1 to 2 ns per place. Branch and bound is exact, but finds one optimum and no margin; grids of
 * alignments take seconds. The cells around 64 x 64 places are copied next to each other, so that all headings of
 * them are scored from the first-level cache; units of 32 x 8 places follow the streets.
 *
 * The result is a list of candidates, best first. THE SEARCH DOES NOT DECIDE WHICH OF THEM MAY BE ACCEPTED: there
 * is a best candidate in a wrong world as well. Scores and margins of one scan separate right from wrong in most
 * worlds; perceptual aliasing (repeated facades, corridors) needs several scans.
 *
 * Threads: one thread at a time uses a search; it starts its own workers. Determinism: equal inputs and seed give
 * bit-equal results, for any number of threads and every vector variant; only times_us and the time at which a
 * cancellation is seen vary; with a lent aligner the last digits are those of its backend. Memory: grows with the
 * largest map and scan, then stays. */
#ifndef NDT_SEARCH_H
#define NDT_SEARCH_H

#include <stdint.h>

#include "ndt/align.h"
#include "ndt/cloud.h"
#include "ndt/map.h"
#include "ndt/pose.h"
#include "ndt/dense_score.h"
#include "ndt_search/field.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    NDT_SEARCH_CANDIDATES = 10, /**< most candidates of a result */
    NDT_SEARCH_POINTS = 250,    /**< most points of a dense score: sums are bytes */
    NDT_SEARCH_HEIGHTS = 8      /**< most heights that are tried without ground */
};

/** Tiers: how thoroughly a search looks. */
enum ndt_search_tier {
    /** regions: NDT_SEARCH_NEAR for small ones, else NDT_SEARCH_REGION; the whole map: QUICK, and
     * THOROUGH where the result of QUICK is not convincing; THOROUGH at once for views of less than half a turn and
     * without ground */
    NDT_SEARCH_AUTO,
    NDT_SEARCH_QUICK,    /**< cells of 2 m, wide views */
    NDT_SEARCH_THOROUGH, /**< cells of 1 m, narrow and short views: 4 times the cost */
    NDT_SEARCH_REGION,   /**< cells of 1 m around a known position, also where no ground is known */
    NDT_SEARCH_NEAR      /**< the same with cells of 0.5 m: for a few rooms */
};
enum { NDT_SEARCH_TIERS = 5 };

/** Parameters of one tier; those of NDT_SEARCH_AUTO are not used. */
struct ndt_search_tier_params {
    int level;           /**< level of the field: 0: 2 m, 1: 1 m, 2: 0.5 m */
    double heading_deg;  /**< angle between two headings */
    uint32_t blocks;     /**< K1: blocks (8x8 cells, one heading) that are refined */
    uint32_t places;     /**< K2: places that are scored as by the NDT; those near the best are aligned */
    uint32_t alignments; /**< K3: most of them that are aligned */
};

/** Parameters; ndt_search_params_default gives the values in brackets. */
struct ndt_search_params {
    enum ndt_search_tier tier;                             /**< [NDT_SEARCH_AUTO] */
    struct ndt_search_tier_params tiers[NDT_SEARCH_TIERS]; /**< [2 m 4 deg 100/10/10; 1 m 3 deg 1000/40/40; 1 m 3
                                                              deg 64/12/12; 0.5 m 1.5 deg 200/96/20] */
    uint64_t seed;                                         /**< seed of the search for the ground [1] */
    double voxel_m;                  /**< leaf of the voxel filter, halved for scans of few points [0.5] */
    double min_range_m, max_range_m; /**< range of the points that are used [1, 50] */
    uint32_t dense_points;           /**< most points of the dense score [200] */
    uint32_t refine_points;          /**< most points of the refinement [250] */
    uint32_t align_points, align_ground_points; /**< most points of step 4 [200, 100] */
    uint32_t final_count, final_points;         /**< best candidates aligned again, and their points [4, 1500] */
    double max_tilt_deg;                        /**< largest tilt of the ground in the upright frame [12] */
    double max_height_m;                        /**< largest height of the origin above the ground [5] */
    uint32_t height_count;                      /**< heights tried where a scan shows no ground [4] */
    double heights_m[NDT_SEARCH_HEIGHTS];       /**< [0.5, 1.1, 1.75, 2.4] */
    double near_radius_m;            /**< regions up to this radius are searched as NDT_SEARCH_NEAR [8] */
    double region_radius_m;          /**< regions up to this radius are searched as NDT_SEARCH_REGION [100] */
    double distinct_m, distinct_deg; /**< limits, one of which distinct candidates exceed [1, 5] */
};
/** Sets the defaults. */
void ndt_search_params_default(struct ndt_search_params *params);

/** Configuration of a search; all zero is a good choice. */
struct ndt_search_config {
    int threads;     /**< 0: one per core, at most 4. Does not affect results */
    const char *isa; /**< as in struct ndt_backend_config; "plain": C without vectors, the reference */
    int pin_threads; /**< see struct ndt_backend_config */
    const struct ndt_dense_ops *engine; /**< scores step 2 on a device; NULL: the threads do. Same results */
    int device;                         /**< number of the engine's device, from 0 */
};

/** A search: buffers, workers and a CPU aligner. */
struct ndt_search;
NDT_MUST_CHECK enum ndt_status ndt_search_create(struct ndt_search **out, const struct ndt_search_config *config,
                                                 struct ndt_error *err);
/** `search` may be NULL. */
void ndt_search_destroy(struct ndt_search *search);
/** The reason why the engine is not used: it could not be opened, was lost, or has no memory for the field, so that
 * the threads score. NULL: it is used, or there is none. */
const char *ndt_search_engine_failure(const struct ndt_search *search);
/** Sets whether the engine, if there is one, scores from the next run on; 1 as created. */
void ndt_search_use_engine(struct ndt_search *search, int is_used);
/** Closes the engine and frees what it has on the device: the threads score. */
void ndt_search_drop_engine(struct ndt_search *search);
/** Whether the engine scores: it is open, has the field, and is used. */
int ndt_search_has_engine(const struct ndt_search *search);
/** Writes one line: what scores step 2. */
void ndt_search_describe(const struct ndt_search *search, char *text, size_t size);
/** Lends an aligner with the map of the search, whose backend solves (ndt_backend_ops.solve): the places of step 4
 * are aligned by it, all in one launch, with the poses of that backend. until_us, by ndt_clock_us: when its work
 * ends; 0: no limit. If it fails or ends before its work is done, the threads align the same places, and it is not
 * used again. The caller keeps it while runs may use it. NULL: the threads align. */
void ndt_search_lend_aligner(struct ndt_search *search, struct ndt_aligner *aligner, double until_us);
/** The reason why the lent aligner is not used any more; NULL: it has not failed. */
const char *ndt_search_lent_failure(const struct ndt_search *search);
/** Sets map and field, of which it holds references until the next call. NDT_ERR_ARGUMENT: the field belongs to
 * another map, or the map has no level of 1 m. After a failure the previous map stays. NULL, NULL: none. */
NDT_MUST_CHECK enum ndt_status ndt_search_set_map(struct ndt_search *search, struct ndt_map *map,
                                                  struct ndt_field *field, struct ndt_error *err);

/** Prior knowledge of the pose, which bounds the search; all zero: none. */
struct ndt_search_region {
    int has_position;
    double position_m[3], radius_m; /**< place of the upright frame in the map: a circle */
    int has_height;                 /**< position_m[2] counts, too: it selects storeys */
    double height_reach_m;          /**< largest error of position_m[2] */
    int has_heading;
    double heading_rad, heading_reach_rad; /**< heading of the upright x axis in the map, and its largest error */
    /** height of the origin above the ground; a scan that shows no ground there is tried at this height alone; 0:
     * unknown */
    double above_ground_m;
};

/** Control of a running search, shared with another thread; all zero at first. */
struct ndt_search_control {
    int is_cancelled;      /**< private: ndt_search_cancel */
    unsigned done_percent; /**< private: ndt_search_progress */
};
/** Makes the running search return within milliseconds; thread-safe. */
void ndt_search_cancel(struct ndt_search_control *control);
/** Takes a cancellation back, for the next search; thread-safe. Earlier writes of the canceller are visible after
 * it. */
void ndt_search_rearm(struct ndt_search_control *control);
/** Percent of the running search, 0 to 100; thread-safe. */
unsigned ndt_search_progress(const struct ndt_search_control *control);

/** A place at which the scan may have been taken. */
struct ndt_search_candidate {
    struct ndt_pose T_map_sensor;
    int32_t layer;
    uint32_t height_view;     /**< without ground: index of the height that was tried; else 0 */
    double gaussian_fit;      /**< mean of max exp(-d^2 / 2), d to voxels of 1 m, over points above ground; ranks */
    double inliers;           /**< share of these points with a value above 0.1 */
    struct ndt_scores scores; /**< scores of the alignment */
    double fit;               /**< scores.nvtl_normalized * scores.match_ratio */
    double bits;              /**< share of the points that meet their bit at the pose */
    double best_m, best_deg;  /**< distance to the first candidate */
    int is_final;             /**< 1: it was aligned with final_points */
    enum ndt_outcome outcome; /**< outcome of the alignment */
    struct ndt_align_result alignment; /**< last alignment, of the scan in the upright frame */
};

/** Properties of the scan's view. */
struct ndt_search_view {
    int has_ground;
    double height_m;        /**< height of the upright frame above the ground; 0 without ground */
    double up_in_sensor[3]; /**< normal of the ground, or the upright z axis */
    double ground_ratio;    /**< inliers of the ground's plane over the points within 20 m */
    uint32_t points;        /**< points after the voxel filter */
    uint32_t above;         /**< points above the ground */
    uint32_t dense_points;  /**< points of the dense score: one per column and band */
    double sectors;         /**< share of 32 azimuth sectors with a point above the ground */
};

/** Durations of the steps. */
struct ndt_search_times {
    double prepare_us, dense_us, refine_us, align_us, final_us, total_us;
};

/** Result of a search. */
struct ndt_search_result {
    uint32_t count; /**< candidates; 0: nothing was found, or cancelled */
    int is_cancelled;
    enum ndt_search_tier tier; /**< last tier that ran */
    /** Best first by gaussian_fit, mutually distinct. */
    struct ndt_search_candidate candidates[NDT_SEARCH_CANDIDATES];
    struct ndt_search_view view;
    /** Ratios of the second candidate to the first one; 0 if there is none. Small is good. */
    double margin_gaussian, margin_fit;
    uint64_t poses;            /**< poses scored by the dense search: cells times headings times heights */
    uint64_t evaluated_points; /**< sum over all alignments: points times evaluations */
    struct ndt_search_times times_us;
};

/** Sets the pose of a sensor in the upright frame at its place, with its heading. up_in_sensor: opposite of gravity
 * in the sensor frame (IMU at rest), of any length. Returns 0, and the identity, where it has no direction. */
int ndt_search_upright(const double up_in_sensor[3], struct ndt_pose *T_upright_sensor);

/** Searches for the place of a scan.
 *
 * scan: sensor frame, deskewed or not; its origin is ignored. T_upright_sensor: its pose in a frame whose z axis is
 * upward within max_tilt_deg and whose origin is where the points were measured from, above the ground: the
 * rotation of the sensor on a vehicle, or ndt_search_upright. NULL: the sensor is upright itself. region, control:
 * may be NULL. NDT_OK with count = 0: the scan has too few points above the ground, or the map has no place for it.
 * NDT_ERR_UNSUPPORTED: no map. NDT_ERR_ARGUMENT: a parameter is out of range. */
NDT_MUST_CHECK enum ndt_status ndt_search_run(struct ndt_search *search, const struct ndt_search_params *params,
                                              const struct ndt_cloud *scan, const struct ndt_pose *T_upright_sensor,
                                              const struct ndt_search_region *region,
                                              struct ndt_search_control *control, struct ndt_search_result *result,
                                              struct ndt_error *err);

/** The vector variants of the dense score that run here, such as "plain,baseline,avx2,avx512". */
void ndt_search_variants(char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
