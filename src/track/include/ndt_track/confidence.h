/** @file
 * @brief The probability that a pose is right, from the features of an alignment and of a prediction.
 *
 * Right means within NDT_CONFIDENCE_RIGHT_M and NDT_CONFIDENCE_RIGHT_DEG of the truth. Two things must hold:
 *
 *     confidence = 1 / (1 + exp(-z)) * (Phi((0.5 m - moved) / slack) - Phi((-0.5 m - moved) / slack))
 *     z = a + b q + c log2(leaf / 1 m) - d ln(slack / 0.1 m) - e ln(1 + innovation / 22.5)
 *
 * with q = nvtl_normalized * match_ratio, scaled up where right poses are known to reach less than 0.5 (a sparse
 * map, one of another day); less than about half of what they reach is no fit: the scan fits the map there, and
 * scan and prediction together hold the pose so tightly that it cannot be elsewhere (Phi: the normal distribution).
 * A corridor without a good prediction fails the second. The numbers are fitted to alignments from right and wrong
 * starts: tools/dev/fits. Coverage has no part: it adds nothing to the other features, not even for views of half
 * the circle. Pure functions without allocation. */
#ifndef NDT_TRACK_CONFIDENCE_H
#define NDT_TRACK_CONFIDENCE_H

#include "ndt/align.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDT_CONFIDENCE_RIGHT_M   0.5
#define NDT_CONFIDENCE_RIGHT_DEG 3.0

/** Features for and against a pose. */
struct ndt_confidence_features {
    double nvtl_normalized, match_ratio, coverage; /**< see struct ndt_scores */
    double usual_quality; /**< mean of q at right poses, with this sensor in this map; 0: not known */
    double slack_m; /**< standard deviation in the direction in which the pose is held worst; INFINITY: not held */
    double moved_m; /**< distance of the pose from the aligned one, which has the scores */
    double innovation; /**< see ndt_track_update; NAN: there was no prediction */
    double leaf_m;     /**< leaf of the level with the scores */
};

/** Sets the features of an alignment's scores; the others become those of a pose without prediction that nothing
 * holds. */
void ndt_confidence_set_scores(struct ndt_confidence_features *features, const struct ndt_scores *scores,
                               const struct ndt_align_params *params);
/** Sets slack_m and moved_m, given the innovation in `features`. Rotations count as movements of typical points.
 *
 * A pose is held by the scan, whose direction with the part r of the information of the best one counts as a
 * deviation of 0.017 m / sqrt(r), and by the prediction, whose covariance is `prior` (of the error of struct
 * ndt_prior; NULL: none) and grows where the innovation contradicts it, as in ndt_track_update. moved: Log of the
 * pose relative to the aligned one, in the frame of the observation; NULL: it is the aligned one. Only directions
 * that the scan observes count. */
void ndt_confidence_set_hold(struct ndt_confidence_features *features, const struct ndt_observation *observation,
                             const double prior[36], const struct ndt_twist *moved);

/** The probability that the pose is right, in [0, 1]; 0 where a feature is missing. */
double ndt_confidence(const struct ndt_confidence_features *features);

#ifdef __cplusplus
}
#endif
#endif
