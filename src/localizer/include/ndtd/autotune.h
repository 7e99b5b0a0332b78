/**
 * @file
 * @brief Choice of backend, pipeline and number of threads by measurement: candidates, sampling, decision.
 *
 * The candidates follow from the backend table. backend.name auto stands for the CPU with 1, 2, 3, 4, 6, 8 ...
 * threads up to the number of cores (autotune.max_threads; cpu.threads restricts it to one) and for the pipelines
 * `fused` and `resident` of every device (cuda.pipeline restricts it to one). A named backend is the only
 * candidate.
 *
 * Whole alignments of one scan are timed in turns, so that other load affects all candidates alike. Their start
 * poses are off as they are while tracking. The smallest 95th percentile wins, because a budget concerns the slow
 * scans. Candidates within 5 % of it count as equal; the first of them is taken, since rows are ordered from little
 * use of the machine to much.
 *
 * Where a device wins that way, it and the best of the CPU are timed again with a scan period of rest before each
 * alignment, since devices lower their clocks meanwhile; the smallest median of these times decides. Half of the
 * time is kept for that where there is a device.
 *
 * With batch.together the chosen candidate then aligns groups of scans at once, up to batch.max, and the size with
 * the least time per scan is the one that scans which wait go together in.
 *
 * The live daemon measures once, with its first map, before it handles scans; a replay does not measure. Nothing is
 * kept for the next start: it takes about 0.1 s on a CPU, and the machine may have changed.
 *
 * The functions have no state and may be called from any thread. ndtd_autotune_measure and ndtd_probe_scan
 * allocate. A measurement uses the cores and the priority of the calling thread.
 */
#ifndef NDTD_AUTOTUNE_H
#define NDTD_AUTOTUNE_H

#include <stddef.h>
#include <stdint.h>

#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_SCAN_PERIOD_S 0.1 /**< between scans of most LiDARs; a device lowers its clocks meanwhile */
enum { NDTD_AUTOTUNE_ROWS = 32, NDTD_AUTOTUNE_SAMPLES = 60, NDTD_AUTOTUNE_REASON = 160 };
enum { NDTD_AUTOTUNE_BATCHES = 8 }; /**< Largest number of scans at once, of the option batch.max. */

/** The texts belong to the backend table. */
struct ndtd_backend_candidate {
    const char *backend;
    const char *pipeline; /**< Empty where a backend has none. */
    int threads;          /**< Threads of the CPU backend; 0: default, or not applicable. */
};

/** A candidate with its measured times. */
struct ndtd_autotune_row {
    struct ndtd_backend_candidate candidate;
    size_t samples;                 /**< 0: not measured, see `why`. */
    double p50_us, p95_us;          /**< Whole alignments, back to back. */
    double rested_us;               /**< Median after a scan period of rest; 0: not measured. */
    double evaluation_us;           /**< Median alignment time per evaluation. */
    char why[NDTD_AUTOTUNE_REASON]; /**< Reason why it was not measured. */
};

struct ndtd_autotune_choice {
    int row; /**< -1: no candidate was measured. */
    int meets_budget;
    char reason[NDTD_AUTOTUNE_REASON];
};

/** The decision and its basis. All zero: nothing was measured, the default is in use. */
struct ndtd_autotune_result {
    int64_t measured_s; /**< Wall clock, for display only. */
    uint64_t map_id;
    size_t points; /**< Points of the aligned scan. */
    double budget_us;
    double took_us; /**< Duration of the measurement. */
    struct ndtd_autotune_choice choice;
    struct ndt_align_costs costs; /**< Expected costs of the chosen row. */
    /** Median times of 1, 2 ... scans at once, by the chosen row; 0: not measured. */
    double batch_us[NDTD_AUTOTUNE_BATCHES];
    int together; /**< Scans that wait to align at once; 0: not measured. */
    struct ndtd_autotune_row rows[NDTD_AUTOTUNE_ROWS];
    size_t row_count;
};

/** Writes "cpu, 2 threads" or "cuda fused"; returns `text`. */
const char *ndtd_backend_candidate_name(const struct ndtd_backend_candidate *candidate, char *text, size_t size);
/** Completes `config` for the candidate and returns its backend; NULL: there is no such backend. */
const struct ndt_backend_ops *ndtd_backend_candidate_config(const struct ndtd_backend_candidate *candidate,
                                                            struct ndt_backend_config *config);
/** Writes the candidates that the settings allow; returns their number. */
size_t ndtd_autotune_candidates(const struct ndtd_settings *settings,
                                struct ndtd_autotune_row rows[NDTD_AUTOTUNE_ROWS]);
struct ndtd_autotune_choice ndtd_autotune_decide(const struct ndtd_autotune_row *rows, size_t count,
                                                 double budget_us);
/** Returns the size of the group with the least time per scan. us[k - 1]: of k scans at once. Sizes within 5 % of
 * it count as equal: the smallest is taken, whose first answer comes first. With has_lanes the largest of them is
 * taken: the lanes also preprocess scans at the same time, which `us` does not contain. */
int ndtd_autotune_together(const double *us, size_t count, int has_lanes);
/** Writes one line with the choice and all rows, cut at `size`; returns `text`. */
const char *ndtd_autotune_line(const struct ndtd_autotune_result *tuned, char *text, size_t size);

/** Writes the reason, in a few words, why backend.name: auto leaves the backend `device` out; NULL: it was chosen,
 * or asked for by its name. tuned: the measurement, NULL without one (autotune.enable). */
const char *ndtd_autotune_why_unused(const struct ndtd_settings *settings, const struct ndtd_autotune_result *tuned,
                                     const char *device, char *text, size_t size);

/** Source of alignment times: this machine, or recorded times. */
struct ndtd_autotune_target {
    void *context;
    /** Runs alignment `number` (from 0, the same ones for every row) of a row. A failure disqualifies the row. */
    enum ndt_status (*align)(void *context, size_t row, size_t number, double *us, struct ndt_error *err);
    double (*now_us)(void *context);
    void (*rest)(void *context); /**< Waits a scan period; NULL: alignments are timed back to back only. */
};
/** Times the rows in turns, up to NDTD_AUTOTUNE_SAMPLES times each. No alignment begins after `time_us`. Rows that
 * are clearly slower than the best one are not continued. */
void ndtd_autotune_take_samples(struct ndtd_autotune_row *rows, size_t count,
                                const struct ndtd_autotune_target *target, double time_us);

struct ndtd_autotune_request {
    const struct ndtd_settings *settings;
    struct ndt_map *map;
    size_t points;  /**< Points of the scan, which is drawn from the map; 0: as many as the settings ask for. */
    double time_us; /**< Limit of the measurement. */
};
/** Measures on this machine. A candidate that fails has the reason in its row. Errors: NDT_ERR_MEMORY,
 * NDT_ERR_ARGUMENT (the map has no voxels). */
NDT_MUST_CHECK enum ndt_status ndtd_autotune_measure(const struct ndtd_autotune_request *request,
                                                     struct ndtd_autotune_result *out, struct ndt_error *err);

/** Draws a scan of `count` points (sensor frame) from the Gaussians of the map's finest level around a place; a
 * tenth of the points matches nothing. near_m: a position in the map, used if there are voxels around it; may be
 * NULL. Otherwise the densest of some random places is taken. T_map_sensor receives the true pose. The same
 * arguments give the same scan. NDT_ERR_ARGUMENT: the map has no voxels. */
NDT_MUST_CHECK enum ndt_status ndtd_probe_scan(struct ndt_cloud *scan, struct ndt_pose *T_map_sensor,
                                               const struct ndt_map *map, const double near_m[3], size_t count,
                                               struct ndt_error *err);
/** Start pose `number`: off by up to 0.2 m and 0.6 deg, as while tracking. */
struct ndt_pose ndtd_probe_guess(const struct ndt_pose *T_map_sensor, size_t number);

#ifdef __cplusplus
}
#endif
#endif
