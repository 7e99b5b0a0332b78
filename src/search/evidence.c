/* What searches say about a place; see ndt_search/evidence.h. */
#include "ndt_search/evidence.h"

#include <math.h>

#include "evidence_fit.h"

static const double DEG = 0.017453292519943295;
/* One search says no more than this: its points are not independent. */
static const double MOST = 8;
/* A place that is not found counts as so much further behind than the second best, and as explained to this part.
 */
static const double NOT_FOUND = -1, NOT_FOUND_MATCH = 0.5;

void ndt_evidence_of(const struct ndt_search_result *result, uint32_t i, struct ndt_evidence_features *out)
{
    const struct ndt_search_candidate *candidates = result->candidates;
    double first = 0, second = 0; /* of the others */
    for (uint32_t k = 0; k < result->count; k++) {
        const double inliers = candidates[k].inliers;
        if (k == i)
            continue;
        second = inliers > first ? first : fmax(second, inliers);
        first = fmax(first, inliers);
    }
    *out = (struct ndt_evidence_features){.rival_inliers = first,
                                          .points = result->view.dense_points,
                                          .sectors = result->view.sectors,
                                          .is_found = i < result->count,
                                          .inliers = second,
                                          .match_ratio = NOT_FOUND_MATCH};
    if (!out->is_found)
        return;
    out->inliers = candidates[i].inliers;
    out->match_ratio = candidates[i].scores.match_ratio;
}

double ndt_evidence_difference(const struct ndt_evidence_features *features)
{
    const double p = features->inliers, r = features->rival_inliers, n = features->points;
    if (n <= 0)
        return 0;
    return (p - r) / sqrt((p * (1 - p) + r * (1 - r) + 0.25 / n) / n) + (features->is_found ? 0 : NOT_FOUND);
}

static int is_new_view(const struct ndt_evidence *evidence, const struct ndt_evidence_features *features,
                       const struct ndt_pose *T_map_sensor)
{
    return evidence->views == 0 || ndt_pose_distance_m(&evidence->T_view, T_map_sensor) > NDT_EVIDENCE_STEP_M ||
           (features->sectors < NDT_EVIDENCE_NARROW &&
            ndt_pose_angle_rad(&evidence->T_view, T_map_sensor) > NDT_EVIDENCE_TURN_DEG * DEG);
}

void ndt_evidence_add(struct ndt_evidence *evidence, const struct ndt_evidence_features *features,
                      const struct ndt_pose *T_map_sensor)
{
    const double difference = fmax(-MOST, fmin(ndt_evidence_difference(features), MOST));
    if (is_new_view(evidence, features, T_map_sensor)) {
        if (evidence->view_searches > 0)
            evidence->sum += evidence->view_sum / evidence->view_searches;
        evidence->views++;
        evidence->T_view = *T_map_sensor;
        evidence->view_searches = 0;
        evidence->view_sum = 0;
    }
    evidence->view_searches++;
    evidence->view_sum += difference;
    evidence->searches++;
    evidence->unexplained_sum += 1 - features->match_ratio;
    evidence->sectors_sum += features->sectors;
    evidence->points_sum += features->points;
    evidence->is_found = features->is_found;
}

double ndt_evidence_significance(const struct ndt_evidence *evidence)
{
    if (evidence->views == 0)
        return 0;
    return (evidence->sum + evidence->view_sum / evidence->view_searches) / sqrt(evidence->views);
}

static double mean_unexplained(const struct ndt_evidence *evidence)
{
    return evidence->unexplained_sum / evidence->searches;
}

static int is_narrow(const struct ndt_evidence *evidence)
{
    return !(evidence->sectors_sum / evidence->searches >= NDT_EVIDENCE_NARROW);
}

double ndt_evidence_probability(const struct ndt_evidence *evidence)
{
    if (evidence->searches == 0)
        return 0;
    const double z = FIT_ONE + FIT_SIGNIFICANCE * fmin(ndt_evidence_significance(evidence), MOST) +
                     (is_narrow(evidence) ? FIT_UNEXPLAINED * mean_unexplained(evidence) : 0);
    const double probability = 1 / (1 + exp(-z));
    return isfinite(probability) ? probability : 0; /* a NaN feature too */
}

int ndt_evidence_is_believed(const struct ndt_evidence *evidence)
{
    if (evidence->searches == 0 || !evidence->is_found ||
        !(ndt_evidence_probability(evidence) >= NDT_EVIDENCE_BELIEVED))
        return 0;
    return !is_narrow(evidence) || (evidence->views >= NDT_EVIDENCE_VIEWS &&
                                    evidence->points_sum >= (double)NDT_EVIDENCE_POINTS * evidence->searches &&
                                    mean_unexplained(evidence) <= NDT_EVIDENCE_UNEXPLAINED);
}
