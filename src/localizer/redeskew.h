/* Private: improves the motion within the sweep by the alignment itself. The points are deskewed again with the
 * motion that an alignment has found, and aligned again on the finest level. */
#ifndef NDTD_REDESKEW_H
#define NDTD_REDESKEW_H

#include "matcher.h"

/* Adds the costs of the previous alignments to a result that stands for all of them. */
void ndtd_add_costs(struct ndt_align_result *result, const struct ndt_align_result *before);
/* Gives a result other costs. */
void ndtd_set_costs(struct ndt_align_result *result, const struct ndt_align_result *costs);
/* Runs the second pass of preprocess.deskew_passes = 2, and several for a scan whose motion was unknown, where they
 * pay. Without time the second pass that was asked for refuses the scan; others are left out. */
NDT_MUST_CHECK enum ndt_status ndtd_deskew_passes(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                                  struct ndt_error *err);
/* Tries other motions for a scan that contradicts its prediction and was therefore deskewed with a wrong one: the
 * motion that its alignment suggests, again as long as the fit improves, and those that lead to the alignment from
 * the previous scan. Where the scan still fits worse than usual, faster and slower turns follow: a person who looks
 * around changes the rate of turn. *is_cut_short: no time was left for one of them. */
NDT_MUST_CHECK enum ndt_status ndtd_find_motion(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                                int *is_cut_short, struct ndt_error *err);
/* The motion that the points are deskewed with. */
struct ndtd_deskewing {
    enum ndtd_pass pass;
    const struct ndt_cloud *points;
    struct ndt_twist motion;
    double fit; /* best fit with these points; 0: not known */
};
struct ndtd_deskewing ndtd_deskewing_now(const struct ndtd_matcher *matcher);
/* Returns to the points of `first`, which must not have been overwritten since. */
void ndtd_deskewing_use(struct ndtd_matcher *matcher, const struct ndtd_deskewing *first);
/* Aligns the scan from another sensor pose, deskewed as `first` and then with the motion that fits there. *lead:
 * number of standard deviations by which the scan fits better at `alignment`, with the motion of that; INFINITY
 * where the other pose leads to no distinct optimum. 0 where the time did not suffice. No motion is sought at an
 * optimum that the scan, deskewed as `first`, fits far worse than the best one. Alignment and points stay as they
 * are; costs are added. */
NDT_MUST_CHECK enum ndt_status ndtd_lead_with_motions(struct ndtd_matcher *matcher,
                                                      struct ndtd_alignment *alignment,
                                                      const struct ndtd_deskewing *first,
                                                      const struct ndt_pose *other, double *lead,
                                                      struct ndt_error *err);

#endif
