/* Evidence of searches for a place; see ndt_search/evidence.h. */
#include "ndt_search/evidence.h"

#include <math.h>

#include "evidence_fit.h"

static const double DEG = 0.017453292519943295;
/* One search says no more than this: its points are not independent. */
static const double MOST = 8;
/* A place that is not found is so much further behind than the second best. */
static const double NOT_FOUND = -1;
/* Weight that is left of a view when the next one begins. */
static const double FADES = 0.8;

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
                                          .inliers = second};
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
    return evidence->view_searches == 0 ||
           ndt_pose_distance_m(&evidence->T_view, T_map_sensor) > NDT_EVIDENCE_STEP_M ||
           (features->sectors < NDT_EVIDENCE_NARROW &&
            ndt_pose_angle_rad(&evidence->T_view, T_map_sensor) > NDT_EVIDENCE_TURN_DEG * DEG);
}

static void begin_view(struct ndt_evidence *evidence, const struct ndt_pose *T_map_sensor)
{
    if (evidence->view_searches > 0) {
        evidence->sum = FADES * (evidence->sum + evidence->view_sum / evidence->view_searches);
        evidence->weight2 = FADES * FADES * (evidence->weight2 + 1);
    }
    evidence->weight *= FADES;
    evidence->unexplained_sum *= FADES;
    evidence->sectors_sum *= FADES;
    evidence->points_sum *= FADES;
    evidence->T_view = *T_map_sensor;
    evidence->view_searches = 0;
    evidence->view_sum = 0;
    evidence->is_view_found = 0;
}

void ndt_evidence_add(struct ndt_evidence *evidence, const struct ndt_evidence_features *features,
                      const struct ndt_pose *T_map_sensor)
{
    evidence->is_found = features->is_found;
    if (features->points < NDT_EVIDENCE_LEAST)
        return;
    if (is_new_view(evidence, features, T_map_sensor))
        begin_view(evidence, T_map_sensor);
    evidence->searches++;
    evidence->view_searches++;
    evidence->view_sum += fmax(-MOST, fmin(ndt_evidence_difference(features), MOST));
    if (!features->is_found)
        return;
    evidence->views += !evidence->is_view_found;
    evidence->is_view_found = 1;
    evidence->weight++;
    evidence->unexplained_sum += 1 - features->match_ratio;
    evidence->sectors_sum += features->sectors;
    evidence->points_sum += features->points;
}

double ndt_evidence_significance(const struct ndt_evidence *evidence)
{
    if (evidence->view_searches == 0)
        return 0;
    return (evidence->sum + evidence->view_sum / evidence->view_searches) / sqrt(evidence->weight2 + 1);
}

static double mean_unexplained(const struct ndt_evidence *evidence)
{
    return evidence->unexplained_sum / evidence->weight;
}

static int is_narrow(const struct ndt_evidence *evidence)
{
    return !(evidence->sectors_sum / evidence->weight >= NDT_EVIDENCE_NARROW);
}

double ndt_evidence_probability(const struct ndt_evidence *evidence)
{
    if (!(evidence->weight > 0))
        return 0;
    const double z = FIT_ONE + FIT_SIGNIFICANCE * fmin(ndt_evidence_significance(evidence), MOST) +
                     (is_narrow(evidence) ? FIT_UNEXPLAINED * mean_unexplained(evidence) : 0);
    const double probability = 1 / (1 + exp(-z));
    return isfinite(probability) ? probability : 0; /* a NaN feature too */
}

int ndt_evidence_is_believed(const struct ndt_evidence *evidence, int is_guarded)
{
    if (!evidence->is_found || !(ndt_evidence_probability(evidence) >= NDT_EVIDENCE_BELIEVED))
        return 0;
    return !is_guarded || !is_narrow(evidence) ||
           (evidence->views >= NDT_EVIDENCE_VIEWS &&
            evidence->points_sum >= NDT_EVIDENCE_POINTS * evidence->weight &&
            mean_unexplained(evidence) <= NDT_EVIDENCE_UNEXPLAINED);
}
