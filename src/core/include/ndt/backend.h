/** @file
 * @brief The interface of compute backends: a table of operations.
 *
 * A backend evaluates the NDT score of a scan at a pose against one level of a map, with first and second
 * derivatives (Magnusson 2009, eq. 6.9-6.13), as 31 sums in double. Newton's method exists once, above `eval`. A
 * backend provides six functions (probe, open, close, set_map, set_scan, eval); everything else is optional and
 * may be NULL.
 *
 * Threads: an open backend is used by one thread at a time. Determinism: the same backend on the same machine
 * gives bit-equal sums for the same inputs, for any number of worker threads. Memory: allocates in open, in
 * set_map and when a scan is larger than any before. */
#ifndef NDT_BACKEND_H
#define NDT_BACKEND_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ndt/cloud.h"
#include "ndt/eval.h"
#include "ndt/map.h"
#include "ndt/newton.h"
#include "ndt/pose_scores.h"
#include "ndt/preprocess_plan.h"
#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the host waits for a device: as yield, unless the process has chosen another way, in a loop, in a loop that
 * gives the core to other threads, or asleep. */
enum ndt_wait { NDT_WAIT_AUTO, NDT_WAIT_SPIN, NDT_WAIT_YIELD, NDT_WAIT_BLOCK };

/** How a backend is opened; ndt_backend_config_default gives the values in brackets. */
struct ndt_backend_config {
    int threads;       /**< 0: one per core, at most 4 [0] */
    double spin_us;    /**< how long idle workers spin before they sleep [100] */
    int pin_threads;   /**< 1: worker i stays on the i-th allowed core [1] */
    const char *isa;   /**< "auto", "baseline", "avx2", "avx512", "neon"; NULL: $NDT_CPU_ISA, else auto */
    size_t max_points; /**< larger scans are refused with NDT_ERR_LIMIT [1 << 20] */
    /* Backends on devices only. */
    const char *pipeline; /**< one of ops->pipelines; NULL or "auto": the first */
    int device;           /**< index, from 0 */
    int preprocess;       /**< 1: reserve memory for ops->preprocess if the pipeline solves on the device */
    enum ndt_wait wait;   /**< for the device; holds for the whole process [NDT_WAIT_AUTO] */
    int kernel_times;     /**< 1: counters.kernel_us is measured, which makes evaluations slower by some us [0] */
};

/** Sets the defaults. */
void ndt_backend_config_default(struct ndt_backend_config *config);

/** Costs of evaluations besides time, counted since open. Bytes that a kernel is launched with, or writes into
 * memory of the host, count as bytes, but not as copies. */
struct ndt_backend_counters {
    uint64_t evaluations;
    uint64_t h2d_bytes, d2h_bytes, launches, synchronisations, allocations;
    uint64_t h2d_copies, d2h_copies;
    uint64_t graphs;      /**< of launches, made so far */
    uint64_t graph_bytes; /**< memory of those that exist now, measured or estimated */
    double kernel_us;     /**< time on the device, with config.kernel_times; on the CPU the wall time of eval */
};

/** Cost of an evaluation on a device without its work: medians [us], each including the wait for it. */
struct ndt_overheads {
    double copies_us;      /**< 24 bytes to the device and the sums back, as copies */
    double launch_us;      /**< one empty kernel, launched and waited for */
    double queue_us;       /**< the part of it that the host spends to queue the kernel */
    double synchronise_us; /**< a wait when there is nothing to wait for */
    double stage_us;       /**< the scan, from memory of the program into pinned memory; without a wait */
    double upload_us;      /**< the scan, from there to the device */
    double pageable_us;    /**< instead of both: straight from memory of the program */
};

/** One solve of a call of ndt_backend_ops.solve. */
struct ndt_solve_item {
    uint32_t scan;            /**< in: its index in the last set_scans */
    int32_t row_capacity;     /**< in: of `rows`; 0: no trace wanted */
    int32_t row_count;        /**< out: rows written; a device may keep only the first ones */
    struct ndt_newton newton; /**< in: guess, prior, first_level, R0 and rotation scales; out: the answer */
    /** out: at newton.p, with rules->wants_information; zeros when no point met a voxel */
    struct ndt_information information;
    double coverage;             /**< out: see struct ndt_scores */
    uint32_t points;             /**< out: of the scan */
    struct ndt_newton_row *rows; /**< out: the trace */
};

/** Defined by each backend; begins with a pointer to its operations. */
struct ndt_backend;

/** Work on one lane of a backend, see ndt_backend_ops.run_lanes. */
typedef void ndt_lane_work(void *context, size_t index, struct ndt_backend *lane);

/** The operations of a backend. */
struct ndt_backend_ops {
    const char *name;
    const char *about; /**< one line */

    /** @name Required
     * @{ */
    /** NDT_OK, or NDT_ERR_UNSUPPORTED with the reason in one line. device: config.device; others ignore it. */
    enum ndt_status (*probe)(int device, struct ndt_error *why);
    /** Opens the backend; on failure *out is NULL. */
    enum ndt_status (*open)(struct ndt_backend **out, const struct ndt_backend_config *config,
                            struct ndt_error *err);
    /** `backend` may be NULL. */
    void (*close)(struct ndt_backend *backend);
    /** Keeps a reference to the map until the next call or close. After NDT_ERR_LIMIT the previous map stays. */
    enum ndt_status (*set_map)(struct ndt_backend *backend, struct ndt_map *map, struct ndt_error *err);
    /** Copies the points (count, x_m, y_m, z_m, and time_s if there are times; the origin is ignored). Points that
     * are not finite match nothing. */
    enum ndt_status (*set_scan)(struct ndt_backend *backend, const struct ndt_cloud *scan, struct ndt_error *err);
    /** Evaluates the score and its derivatives of the scan against the map. */
    enum ndt_status (*eval)(struct ndt_backend *backend, const struct ndt_eval_request *request,
                            struct ndt_eval *out, struct ndt_error *err);
    /** @} */

    /** @name Optional: what the scan tells about the pose
     * @{ */
    /** Evaluates at a pose and sums the information, see struct ndt_information. NULL: not available. */
    enum ndt_status (*inform)(struct ndt_backend *backend, const struct ndt_eval_request *request,
                              struct ndt_information *out, struct ndt_error *err);
    /** @} */

    /** @name Optional: about the backend
     * @{ */
    /** The counters since open. */
    void (*counters)(const struct ndt_backend *backend, struct ndt_backend_counters *out);
    /** One line: variant, threads, device. */
    void (*describe)(const struct ndt_backend *backend, char *text, size_t size);
    /** Names for config->pipeline, the default first, NULL after the last. */
    const char *const *pipelines;
    /** Describes the allocations of this configuration, one per line. Needs neither an open backend nor a device.
     */
    void (*plan)(const struct ndt_backend_config *config, char *text, size_t size);
    /** Evaluates and writes the intermediate values of each point as one line of CSV. NDT_ERR_UNSUPPORTED if the
     * pipeline keeps none. The caller checks the file for write errors. */
    enum ndt_status (*dump)(struct ndt_backend *backend, const struct ndt_eval_request *request, FILE *file,
                            struct ndt_error *err);
    /** @} */

    /** @name Optional: whole solves on the device
     * All three or none. The host does not take part between evaluations.
     * @{ */
    /** Most solves that one call takes; 0: the backend, as it was opened, does not solve. */
    size_t (*solve_limit)(const struct ndt_backend *backend);
    /** In place of set_scan: copies scans 0 .. count - 1 as the sensor measured them; each solve rotates its own by
     * newton.R0. NDT_ERR_LIMIT: together, each rounded up to whole blocks, more than config.max_points. */
    enum ndt_status (*set_scans)(struct ndt_backend *backend, const struct ndt_cloud *const *scans, size_t count,
                                 struct ndt_error *err);
    /** Runs all solves at once; each result is bit-identical to that of the solve alone. until_us, by ndt_clock_us:
     * when unfinished solves stop; 0: never. A scan without points ends as NDT_STOP_OFF_MAP. NDT_ERR_UNSUPPORTED:
     * the device was lost and replaced; query solve_limit again. */
    enum ndt_status (*solve)(struct ndt_backend *backend, const struct ndt_newton_rules *rules,
                             struct ndt_solve_item *items, size_t count, double until_us, struct ndt_error *err);
    /** @} */

    /** @name Optional: one scan at many poses
     * @{ */
    /** Scores one of the scans that are set at each pose; the bits of ndt_score_poses_plain on every backend, see
     * ndt/pose_scores.h. Thousands of poses per call are divided into parts that take about a millisecond or one
     * launch; between them request->goes_on is asked. *done: poses that were scored, from the first on; the other
     * results are zero. After `preprocess` the scan has no points, as for `eval`. Allocates nothing. NULL: not
     * available. */
    enum ndt_status (*score_poses)(struct ndt_backend *backend, const struct ndt_score_request *request,
                                   struct ndt_pose_score *out, size_t *done, struct ndt_error *err);
    /** @} */

    /** @name Optional: several scans at the same time, for backends that do not solve
     * Both or none.
     * @{ */
    /** Number of lanes: scans that can be worked on at the same time. */
    size_t (*lane_count)(const struct ndt_backend *backend);
    /** Calls work(context, i, lane) once for each i < lane_count, on threads of the backend, and returns when all
     * are done. A lane is a backend for that one call and its thread, with the map of this backend and a scan of
     * its own: set_scan, eval and inform of a lane give the bits that this backend gives, and take scans of up to
     * `points` points without allocating. Calls do not wait for each other: some may begin when others are done. */
    enum ndt_status (*run_lanes)(struct ndt_backend *backend, size_t points, ndt_lane_work *work, void *context,
                                 struct ndt_error *err);
    /** @} */

    /** @name Optional: preprocessing on the device
     * All three or none, and only if the backend solves.
     * @{ */
    /** Most raw points that `preprocess` takes; 0: the backend, as it was opened, does not preprocess. */
    size_t (*preprocess_limit)(const struct ndt_backend *backend);
    /** In place of set_scans: copies `raw` and preprocesses it into scan 0, bit-identical to ndt_preprocess. Does
     * not wait. The number of remaining points is known to the device only and is returned by the solve; the
     * rotation scales of the items are computed there (newton.rotation_scale_m and inverse_rotation_scale are not
     * read). For `solve` only: `eval` sees a scan without points. NDT_ERR_LIMIT: more than preprocess_limit.
     * NDT_ERR_UNSUPPORTED: query preprocess_limit again. */
    enum ndt_status (*preprocess)(struct ndt_backend *backend, const struct ndt_preprocess_plan *plan,
                                  const struct ndt_cloud *raw, struct ndt_error *err);
    /** Moves the points of the last `preprocess` as ndt_preprocess_again does; `plan` went through
     * ndt_preprocess_plan_set_motion. NDT_ERR_UNSUPPORTED: there are no such points, or they were lost with the
     * device. */
    enum ndt_status (*preprocess_again)(struct ndt_backend *backend, const struct ndt_preprocess_plan *plan,
                                        struct ndt_error *err);
    /** @} */

    /** @name Optional: measuring, and changing the map while matching
     * @{ */
    /** Measures over `rounds` rounds, which the counters include. */
    enum ndt_status (*overheads)(struct ndt_backend *backend, int rounds, struct ndt_overheads *out,
                                 struct ndt_error *err);
    /** set_map without waiting, for maps that change while scans are matched.
     *
     * Starts or continues the upload of `map`, a bounded part of it per call; call it with the same map between
     * scans until *taken is 1. Until then everything is computed on the previous map, afterwards as after set_map.
     * Holds a reference during the upload. A different map than in the last call, or set_map, cancels the upload;
     * NULL or the map in use is taken immediately. Allocates if the map is larger than all previous ones. Both
     * maps have to fit on the device: otherwise one line on stderr reports it once and the old map is freed first,
     * as in set_map. Errors are those of set_map; the upload is then cancelled and *taken is 0. */
    enum ndt_status (*set_map_async)(struct ndt_backend *backend, struct ndt_map *map, int *taken,
                                     struct ndt_error *err);
    /** @} */
};

/** Common first member of every backend. */
struct ndt_backend {
    const struct ndt_backend_ops *ops;
};

/** The backends of the core library. */
extern const struct ndt_backend_ops ndt_cpu_backend; /**< float, SIMD, threads */
extern const struct ndt_backend_ops
    ndt_reference_backend; /**< plain double, one thread, slow: ground truth of tests */

/** Comma-separated CPU variants that are compiled in and run here, such as "baseline,avx2,avx512". */
void ndt_cpu_variants(char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
