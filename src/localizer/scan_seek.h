/* Private: what follows the first pass. */
#ifndef NDTD_SCAN_SEEK_H
#define NDTD_SCAN_SEEK_H

#include "scan_estimate.h"

/* preprocess.deskew_passes = 2: deskews with the motion that the first pass found and aligns again. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_second_pass(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                                     struct ndt_error *err);
/* Aligns from other guesses, all together; the best fit becomes the result. Does nothing for a scan that is
 * confirmed. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_seek(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                              struct ndt_error *err);

#endif
