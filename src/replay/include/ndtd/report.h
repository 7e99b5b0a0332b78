/** @file
 * @brief Report of a replay: a summary collected scan by scan, printed as a table and as summary.json.
 *
 * One owner, one thread. Write errors remain set on the stream for its owner to check. */
#ifndef NDTD_REPORT_H
#define NDTD_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "ndtd/hints.h"
#include "ndtd/run_inputs.h"
#include "ndtd/scan_state.h"
#include "ndtd/trajectory_error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NDTD_STAGE_COUNT = 6, NDTD_STATE_CHANGES_KEPT = 100 };

/** Outcomes, errors and times of a run. All zero: no scan. Texts are borrowed. */
struct ndtd_summary {
    uint64_t scans;
    uint64_t outcomes[NDT_OUTCOME_COUNT];
    uint64_t states[NDT_STATE_COUNT];
    uint64_t untrusted;                 /**< Scans that end without a trusted pose, see ndtd_scan_is_untrusted. */
    int has_out;                        /**< A trajectory is written. */
    uint64_t omitted;                   /**< Poses that the trajectory leaves out. */
    uint64_t messages[NDT_MESSAGE_END]; /**< Messages of each kind that were taken in, besides scans. */
    uint64_t state_change_count;        /**< Number of changes; the first ones are kept. */
    struct ndtd_state_change state_change, state_changes[NDTD_STATE_CHANGES_KEPT]; /**< Last change; kept ones. */
    struct ndtd_samples align_ms, iterations, evaluations; /**< One value per matched scan. */
    struct ndtd_samples confidence;                        /**< Confidences of the scans that have one. */
    uint64_t doubted;                                      /**< Scans below the least confidence. */
    struct ndtd_samples stage_us[NDTD_STAGE_COUNT];        /**< One value per scan. */
    struct ndtd_errors errors;
    const struct ndtd_run_inputs *inputs; /**< NULL: unknown. */
    const struct ndtd_hints *hints;       /**< NULL: none. */
    const char *backend, *variant;
    char description[160]; /**< Backend: variant, threads, device. */
    int threads;
    uint64_t trajectory_hash;
    uint64_t map_id, map_points;
    uint64_t overlay_id; /**< Id of the overlay that changed the map; 0: none. */
    double map_load_ms, replay_s;
    uint64_t peak_memory_bytes;
};

/** Adds one scan. */
NDT_MUST_CHECK enum ndt_status ndtd_summary_add(struct ndtd_summary *summary, const struct ndtd_scan_record *record,
                                                struct ndt_error *err);
/** Frees the samples. */
void ndtd_summary_free(struct ndtd_summary *summary);

/** Prints the summary as a table. */
void ndtd_report_table(FILE *file, struct ndtd_summary *summary);
/** Writes the keys scans, outcomes, states, untrusted, out_omitted, state_changes
 * (their number, the first ones), off,
 * translation_error_m, rotation_error_deg, align_ms, iterations, evaluations, confidence, stages_us, backend,
 * backend_description, variant, threads, trajectory_hash, map_id, map_points, map_load_ms, overlay_id (of an
 * overlay), replay_s, peak_memory_bytes, bag, map, settings (files and overrides), messages, hints, machine,
 * version, commit. Without ground truth off and both errors are null; without inputs bag, map and settings are
 * absent. */
void ndtd_report_json(FILE *file, struct ndtd_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
