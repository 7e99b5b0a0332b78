/* How likely it is that a pose is right; see ndt_track/confidence.h. */
#include "ndt_track/confidence.h"

#include <math.h>

/* A direction observed with this part of the information of the best one is held like by a prior of this deviation,
 * three of which are just right. */
static const double HELD_RATIO = 0.01, HELD_M = 0.17;

double ndt_confidence_slack_m(const struct ndt_observation *observation, const double prior_covariance[36])
{
    double ratio[6], axes[36], least = INFINITY;
    ndt_observation_directions(observation, ratio, axes);
    for (int k = 0; k < 6; k++) {
        double held = ratio[k] / (HELD_RATIO * HELD_M * HELD_M), variance = 0;
        for (int i = 0; prior_covariance && i < 6; i++)
            for (int j = 0; j < 6; j++)
                variance += axes[6 * k + i] * prior_covariance[6 * i + j] * axes[6 * k + j];
        if (variance > 0)
            held += 1 / variance;
        least = fmin(least, held);
    }
    return least > 0 ? 1 / sqrt(least) : INFINITY;
}
