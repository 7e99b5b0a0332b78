/* What a whole run amounts to: outcomes, errors, times. Filled scan by scan; report.h prints it. One
 * owner, one thread. */
#ifndef NDTD_SUMMARY_H
#define NDTD_SUMMARY_H

#include <stdint.h>

#include "ndtd/trajectory_error.h"
#include "ndtd/pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NDTD_STAGE_COUNT = 6 };

/* One stage of a scan's way and where its time stands in struct ndtd_scan_record [us]. */
struct ndtd_stage {
    const char *name;
    size_t offset;
};
const struct ndtd_stage *ndtd_stage_at(size_t i); /* NULL after the last */

/* All zero is a run of no scan. Texts are borrowed. */
struct ndtd_summary {
    uint64_t scans;
    uint64_t outcomes[NDT_OUTCOME_COUNT];
    struct ndtd_samples align_ms, iterations, evaluations; /* of scans that were matched */
    struct ndtd_samples stage_us[NDTD_STAGE_COUNT];        /* of all scans */
    struct ndtd_errors errors;
    const char *backend, *variant;
    char description[160]; /* of the backend: variant, threads, device */
    int threads;
    uint64_t trajectory_hash;
    uint64_t map_id, map_points;
    double map_load_ms, replay_s;
    uint64_t peak_memory_bytes;
};

NDT_MUST_CHECK enum ndt_status ndtd_summary_add(struct ndtd_summary *summary, const struct ndtd_scan_record *record,
                                                struct ndt_error *err);
void ndtd_summary_free(struct ndtd_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
