/** @file
 * @brief Merges the scans of several sensors into one (frames.merge_sensors).
 *
 * A scan of one of frames.sensors is held until each of them has sent one whose stamp lies within
 * preprocess.sweep_s of that of the first. The scan that completes the set gets the points of all: in the base
 * frame (float, origin 0), in the order of arrival, with times, where they are used, relative to its own stamp. A
 * second scan of the same sensor, or one with a stamp outside of that time, begins a new set; the old set is
 * dropped as incomplete and counted.
 *
 * Points outside preprocess.min_range_m .. max_range_m of their own sensor become NaN, which preprocessing drops;
 * the others have their ranges corrected by preprocess.range_offset_m.
 * The merged scan is to be preprocessed with ndtd_scan_merge_params and with the identity as T_base_sensor; its
 * crop box is in the base frame.
 *
 * One owner, one thread. Memory: one cloud, as large as the largest set; no allocation once it has held that. The
 * result depends on the scans and their order only. */
#ifndef NDTD_SCAN_MERGE_H
#define NDTD_SCAN_MERGE_H

#include <stdint.h>

#include "ndt/cloud.h"
#include "ndt_proto/message.h"
#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_scan_merge;
/** Creates a merger that holds nothing. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_merge_create(struct ndtd_scan_merge **out, struct ndt_error *err);
/** `merge` may be NULL. */
void ndtd_scan_merge_destroy(struct ndtd_scan_merge *merge);

/** Adds a scan. *is_complete = 0: it is held, its answer is `merged`, and the contents of `points` are unspecified.
 * 1: `points` are those of the whole set; memory is exchanged, not copied. settings: frames, preprocess.
 * NDT_ERR_FORMAT: the frame_id is not one of frames.sensors, or preprocess.deskew is `time` and the scan has no
 * times; NDT_ERR_LIMIT, NDT_ERR_MEMORY: too many points. A scan that is refused is not held. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_merge_add(struct ndtd_scan_merge *merge,
                                                   const struct ndtd_settings *settings,
                                                   const struct ndt_scan_header *scan, struct ndt_cloud *points,
                                                   int *is_complete, struct ndt_error *err);
/** Drops the held scans without counting them: after frames.* or the recording has changed. */
void ndtd_scan_merge_reset(struct ndtd_scan_merge *merge);
/** Drops the held scans without counting them and gives the memory of the largest scans back. */
void ndtd_scan_merge_release(struct ndtd_scan_merge *merge);
/** The parameters for a merged scan: those given, without the limits of range and the correction of ranges, which
 * ndtd_scan_merge_add applied. */
struct ndt_preprocess_params ndtd_scan_merge_params(const struct ndt_preprocess_params *params);

/** Counters since the creation. */
struct ndtd_scan_merge_counters {
    uint64_t merged;     /**< complete sets */
    uint64_t incomplete; /**< scans that were held and dropped because their set did not become complete */
};
/** Copies the counters. */
struct ndtd_scan_merge_counters ndtd_scan_merge_counters(const struct ndtd_scan_merge *merge);

#ifdef __cplusplus
}
#endif
#endif
