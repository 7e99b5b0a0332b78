/** @file
 * @brief The probability that a pose is right, from what an alignment and a prediction say about it.
 *
 * Right means within NDT_CONFIDENCE_RIGHT_M and NDT_CONFIDENCE_RIGHT_DEG of the truth. */
#ifndef NDT_TRACK_CONFIDENCE_H
#define NDT_TRACK_CONFIDENCE_H

#include "ndt/align.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDT_CONFIDENCE_RIGHT_M   0.5
#define NDT_CONFIDENCE_RIGHT_DEG 3.0

/** How well the pose is held in the direction in which it is held worst [m]: by the observation, whose direction k
 * counts as a deviation of 0.17 m sqrt(0.01 / ratio[k]), and by the prior; rotations as movements of typical
 * points. prior_covariance: of the error of struct ndt_prior; NULL: none. INFINITY where nothing holds it. */
double ndt_confidence_slack_m(const struct ndt_observation *observation, const double prior_covariance[36]);

#ifdef __cplusplus
}
#endif
#endif
