/* Private: protection levels, bounds of the error of a pose at a stated risk, by solution separation.
 *
 * Beside the estimate of all points there are estimates without some of them: one for each window of 90 degrees of
 * azimuth, one without the near points and one without the far ones. Each is a whole track: it predicts with the
 * same inputs of motion and takes in what the other points of the scan say. A wall that has moved, or a blocked
 * sector, is wrong in the estimate of all points and right in one of the others, also after many scans. With e the
 * error of the estimate, s that of an estimate without the points at fault and d the distance of the two,
 * |e| <= |d| + |s|, and the level is the largest |d| + k sigma of all (solution separation: Brown and McBurney
 * 1988; Joerger, Chan and Pervan 2014). Exactly one of these hypotheses is true, so each may use the whole risk.
 *
 * sigma: variance of the estimate without the points, plus the variance that the distances of the windows show (the
 * jackknife of overlapping blocks, Kuensch 1989), over the squared share of the scan that fits. Both are from few
 * independent parts: k is the quantile of Student's t distribution with as many degrees of freedom as there are
 * octants, not of a Gaussian. Everything is plain arithmetic on the data: equal inputs give equal bits.
 *
 * One owner, one thread; no allocation once the largest scan was seen. */
#ifndef NDTD_INTEGRITY_H
#define NDTD_INTEGRITY_H

#include "alignment.h"
#include "ndt/map.h"
#include "ndtd/pipeline.h"

struct ndtd_integrity;

/* risk: of each scan, above 0. isa: see ndt_part_observer_create. */
NDT_MUST_CHECK enum ndt_status ndtd_integrity_create(struct ndtd_integrity **out, double risk, const char *isa,
                                                     struct ndt_error *err);
/* `integrity` may be NULL, here and below: protection levels are off. */
void ndtd_integrity_destroy(struct ndtd_integrity *integrity);
void ndtd_integrity_set_map(struct ndtd_integrity *integrity, struct ndt_map *map);
/* Sets record->protection to no level. */
void ndtd_integrity_begin(struct ndtd_scan_record *record);
/* Sets record->protection for an answered scan, whose points the matcher still holds. A scan for which the sums of
 * the parts cannot be computed has no level. */
void ndtd_integrity_follow(struct ndtd_integrity *integrity, struct ndtd_pipeline *pipeline,
                           const struct ndtd_alignment *alignment, struct ndtd_scan_record *record);
/* Factor of sigma at a risk: two-sided quantile of Student's t with 8 degrees of freedom. */
double ndtd_integrity_factor(double risk);

#endif
