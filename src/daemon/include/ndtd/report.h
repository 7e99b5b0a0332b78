/* A summary as a table for people and as summary.json for programs. Quantiles interpolate linearly between
 * neighbours. Writing errors are left to whoever closes the stream. */
#ifndef NDTD_REPORT_H
#define NDTD_REPORT_H

#include <stdio.h>

#include "ndtd/summary.h"

#ifdef __cplusplus
extern "C" {
#endif

void ndtd_report_table(FILE *file, struct ndtd_summary *summary);
/* Keys: scans, outcomes, lost, translation_error_m, rotation_error_deg, align_ms, iterations, evaluations,
 * stages_us, backend, backend_description, variant, threads, trajectory_hash, map_id, map_points, map_load_ms,
 * replay_s, peak_memory_bytes, version. Without truth lost and both errors are null. */
void ndtd_report_json(FILE *file, struct ndtd_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
