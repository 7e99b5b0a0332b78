/* Private: data of a scan that a viewer gets besides its result, see ndtd_pipeline_points. Without a viewer nothing
 * is kept. */
#ifndef NDTD_POINTS_VIEW_H
#define NDTD_POINTS_VIEW_H

#include "matcher.h"
#include "ndtd/pipeline.h"

struct ndtd_points_view;

NDT_MUST_CHECK enum ndt_status ndtd_points_view_create(struct ndtd_points_view **out, struct ndt_error *err);
void ndtd_points_view_destroy(struct ndtd_points_view *view);
/* Gives the memory of the largest scan back. */
void ndtd_points_view_release(struct ndtd_points_view *view);
/* Forgets the previous scan. */
void ndtd_points_view_begin(struct ndtd_points_view *view);
/* Adds alignments of the scan from other guesses. */
void ndtd_points_view_tried(struct ndtd_points_view *view, const struct ndt_pose *T_base_sensor,
                            const struct ndt_align_result *results, size_t count);
/* Keeps a scan whose result is known. */
void ndtd_points_view_keep(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record);

#endif
