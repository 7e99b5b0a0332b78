/* Private: the motion within the sweep, improved by the alignment itself. The points are deskewed again with the
 * motion that an alignment has found, and aligned again on the finest level. */
#ifndef NDTD_REDESKEW_H
#define NDTD_REDESKEW_H

#include "matcher.h"

/* Adds the costs of the alignments before to a result, which stands for all of them. */
void ndtd_add_costs(struct ndt_align_result *result, const struct ndt_align_result *before);
/* preprocess.deskew_passes = 2: one more pass, where it pays. */
NDT_MUST_CHECK enum ndt_status ndtd_second_pass(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                                struct ndt_error *err);
/* For a scan that contradicts its prediction, and so was deskewed with a wrong motion: tries the motion that its
 * alignment suggests, again as long as the fit improves, and those that lead there from the scan before. */
NDT_MUST_CHECK enum ndt_status ndtd_find_motion(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                                struct ndt_error *err);
/* For a scan that fits worse than scans do: tries to turn faster or slower within the sweep, as a person does who
 * looks around; not with a gyro either, which knows. */
NDT_MUST_CHECK enum ndt_status ndtd_try_turns(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                              struct ndt_error *err);

#endif
