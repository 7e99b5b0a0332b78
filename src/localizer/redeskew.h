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
/* Tries other motions for a scan that contradicts its prediction, and so was deskewed with a wrong one: that which
 * its alignment suggests, again as long as the fit improves, and those that lead there from the scan before. */
NDT_MUST_CHECK enum ndt_status ndtd_find_motion(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                                struct ndt_error *err);
/* Tries to turn faster or slower within the sweep, as a person does who looks around, for a scan that fits worse
 * than scans do; with a gyro, which knows the turn, it does nothing. */
NDT_MUST_CHECK enum ndt_status ndtd_try_turns(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                              struct ndt_error *err);
/* The motion that the points are deskewed with. */
struct ndtd_deskewing {
    enum ndtd_pass pass;
    const struct ndt_cloud *points;
    struct ndt_twist motion;
};
struct ndtd_deskewing ndtd_deskewing_now(const struct ndtd_matcher *matcher);
/* Uses its points, which were not written over since then. */
void ndtd_deskewing_use(struct ndtd_matcher *matcher, const struct ndtd_deskewing *first);
/* Aligns the scan from another pose of the sensor, deskewed as `first` at the beginning and then with the motion
 * that fits there. *lead: the standard deviations by which it fits better at the alignment, deskewed as it is for
 * that one; INFINITY where it fits nowhere else from there. Alignment and points stay as they are; costs are added.
 */
NDT_MUST_CHECK enum ndt_status ndtd_lead_with_motions(struct ndtd_matcher *matcher,
                                                      struct ndtd_alignment *alignment,
                                                      const struct ndtd_deskewing *first,
                                                      const struct ndt_pose *other, double *lead,
                                                      struct ndt_error *err);

#endif
