/* Probability that a pose is right; see ndt_track/confidence.h. */
#include "ndt_track/confidence.h"

#include <math.h>

#include "confidence_fit.h"

/* Deviation of a direction that the scan observes as well as the best one. */
static const double BEST_M = 0.017;
/* Part of the best direction's information at which a direction counts as half observed. */
static const double OBSERVED_RATIO = 0.01;
/* Limits of the slack: a prediction more certain than any scan does not make the scan fit better. */
static const double LEAST_SLACK_M = 0.05, TYPICAL_SLACK_M = 0.1, MOST_SLACK_M = 10;
/* q of right poses in the drives of the fit, and the largest factor for maps in which right poses reach less. */
static const double NORMAL_QUALITY = 0.5, MOST_SCALE = 5;
/* Part of the usual fit below which a scan does not fit, whatever else speaks for the pose, and the width of that
 * border. */
static const double LEAST_PART = 0.55, PART_WIDTH = 0.03;
/* Chi-square with 6 degrees of freedom: 99.9 %, and its mean. */
static const double GATE = 22.5, EXPECTED = 6;

static double variance_along(const double axis[6], const double covariance[36])
{
    double sum = 0;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            sum += axis[i] * covariance[6 * i + j] * axis[j];
    return sum;
}

void ndt_confidence_set_scores(struct ndt_confidence_features *features, const struct ndt_scores *scores,
                               const struct ndt_align_params *params)
{
    *features = (struct ndt_confidence_features){.nvtl_normalized = scores->nvtl_normalized,
                                                 .match_ratio = scores->match_ratio,
                                                 .coverage = scores->coverage,
                                                 .slack_m = INFINITY,
                                                 .innovation = NAN,
                                                 .leaf_m = params->levels[params->level_count - 1].leaf_m};
}

void ndt_confidence_set_hold(struct ndt_confidence_features *features, const struct ndt_observation *observation,
                             const double prior[36], const struct ndt_twist *moved)
{
    const double doubt = features->innovation > GATE ? features->innovation / EXPECTED : 1;
    double ratio[6], axes[36], least = INFINITY, moved_m2 = 0;
    ndt_observation_directions(observation, ratio, axes);
    for (int k = 0; k < 6; k++) {
        const double *axis = axes + 6 * k;
        const double variance_m2 = prior ? doubt * variance_along(axis, prior) : INFINITY;
        double along_m = 0;
        for (int i = 0; moved && i < 3; i++)
            along_m += axis[i] * moved->v_mps[i] + axis[3 + i] * moved->w_radps[i];
        moved_m2 += along_m * along_m * ratio[k] / (ratio[k] + OBSERVED_RATIO);
        least = fmin(least, ratio[k] / (BEST_M * BEST_M) + (variance_m2 > 0 ? 1 / variance_m2 : 0));
    }
    features->slack_m = least > 0 ? 1 / sqrt(least) : INFINITY;
    features->moved_m = sqrt(moved_m2);
}

/* Limits a value; NaN stays NaN, unlike with fmin and fmax. */
static double limited(double value, double least, double most)
{
    return value < least ? least : value > most ? most : value;
}

static double normal_below(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* 1 where right poses usually fit like this, 0 where they fit far better. */
static double usual_part(const struct ndt_confidence_features *features)
{
    const double part = features->nvtl_normalized * features->match_ratio / features->usual_quality;
    return features->usual_quality > 0 ? 1 / (1 + exp((LEAST_PART - part) / PART_WIDTH)) : 1;
}

double ndt_confidence(const struct ndt_confidence_features *features)
{
    const double scale =
        features->usual_quality > 0 ? limited(NORMAL_QUALITY / features->usual_quality, 1, MOST_SCALE) : 1;
    const double quality = scale * features->nvtl_normalized * features->match_ratio;
    const double slack_m = limited(features->slack_m, LEAST_SLACK_M, MOST_SLACK_M);
    const double innovation = isnan(features->innovation) ? 0 : features->innovation;
    const double z = FIT_ONE + FIT_QUALITY * quality + FIT_LEAF * log2(features->leaf_m) +
                     FIT_SLACK * log(slack_m / TYPICAL_SLACK_M) + FIT_INNOVATION * log1p(innovation / GATE);
    const double deviation_m = limited(features->slack_m, 1e-3, INFINITY), moved_m = features->moved_m;
    const double held = normal_below((NDT_CONFIDENCE_RIGHT_M - moved_m) / deviation_m) -
                        normal_below((-NDT_CONFIDENCE_RIGHT_M - moved_m) / deviation_m);
    const double confidence = held / (1 + exp(-z)) * usual_part(features);
    return isfinite(confidence) ? confidence : 0; /* a NaN feature too */
}
