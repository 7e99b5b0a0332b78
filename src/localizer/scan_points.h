/* Private: what a viewer gets of a scan besides its result, see ndtd_pipeline_points. Without a viewer
 * nothing is kept. */
#ifndef NDTD_SCAN_POINTS_H
#define NDTD_SCAN_POINTS_H

#include "scan_align.h"

NDT_MUST_CHECK enum ndt_status ndtd_scan_points_create(struct ndtd_scan_points **out, struct ndt_error *err);
void ndtd_scan_points_destroy(struct ndtd_scan_points *view);
/* Gives the memory of the largest scan back. */
void ndtd_scan_points_release(struct ndtd_scan_points *view);
/* Forgets the scan before. */
void ndtd_scan_points_begin(struct ndtd_scan_points *view);
/* Alignments of the scan from other guesses. */
void ndtd_scan_points_tried(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                            const struct ndt_align_result *results, size_t count);
/* Keeps a scan whose result is known. */
void ndtd_scan_points_keep(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job);

#endif
