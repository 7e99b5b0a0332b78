/** @file
 * @brief The result message of a scan, as the daemon publishes it and --results writes it. Pure. */
#ifndef NDTD_SCAN_RESULT_H
#define NDTD_SCAN_RESULT_H

#include "ndtd/pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Fills in the message from the record; map_id, config_hash, queue_depth and drop_counter are 0. Unknown values
 * are absent. */
void ndtd_scan_result(const struct ndtd_scan_record *record, struct ndt_result_message *message);
/** Whether pose, covariance, twist and guess are finite and within ndt/limits.h, where they are known. Other
 * results cannot be sent. */
int ndtd_scan_record_is_sound(const struct ndtd_scan_record *record);
/** Replaces the result by the outcome `rejected` and nothing else; seq, stamp, state, counts and times stay. */
void ndtd_scan_record_reject(struct ndtd_scan_record *record, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
