/* Hypothesis test of a pose over several searches; see ndt_search/hypothesis_test.h. */
#include "ndt_search/hypothesis_test.h"

#include <math.h>

#include "hypothesis_fit.h"

static const double DEG = 0.017453292519943295;
/* Largest significance of one search: its points are not independent. */
static const double MOST = 8;
/* Significance of a pose that a search has not found, relative to its second candidate. */
static const double NOT_FOUND = -1;
/* Weight of a view that is left when the next one begins. */
static const double FADES = 0.8;

void ndt_hypothesis_features_of(const struct ndt_search_result *result, uint32_t i,
                                struct ndt_hypothesis_features *out)
{
    const struct ndt_search_candidate *candidates = result->candidates;
    double first = 0, second = 0; /* largest shares of the other candidates */
    for (uint32_t k = 0; k < result->count; k++) {
        const double inliers = candidates[k].inliers;
        if (k == i)
            continue;
        second = inliers > first ? first : fmax(second, inliers);
        first = fmax(first, inliers);
    }
    *out = (struct ndt_hypothesis_features){.rival_inliers = first,
                                            .points = result->view.dense_points,
                                            .sectors = result->view.sectors,
                                            .is_found = i < result->count,
                                            .inliers = second};
    if (!out->is_found)
        return;
    out->inliers = candidates[i].inliers;
    out->match_ratio = candidates[i].scores.match_ratio;
}

double ndt_hypothesis_test_difference(const struct ndt_hypothesis_features *features)
{
    const double p = features->inliers, r = features->rival_inliers, n = features->points;
    if (n <= 0)
        return 0;
    return (p - r) / sqrt((p * (1 - p) + r * (1 - r) + 0.25 / n) / n) + (features->is_found ? 0 : NOT_FOUND);
}

static int is_new_view(const struct ndt_hypothesis_test *test, const struct ndt_hypothesis_features *features,
                       const struct ndt_pose *T_map_sensor)
{
    return test->view_searches == 0 || ndt_pose_distance_m(&test->T_view, T_map_sensor) > NDT_HYPOTHESIS_STEP_M ||
           (features->sectors < NDT_HYPOTHESIS_NARROW &&
            ndt_pose_angle_rad(&test->T_view, T_map_sensor) > NDT_HYPOTHESIS_TURN_DEG * DEG);
}

static void begin_view(struct ndt_hypothesis_test *test, const struct ndt_pose *T_map_sensor)
{
    if (test->view_searches > 0) {
        test->sum = FADES * (test->sum + test->view_sum / test->view_searches);
        test->weight2 = FADES * FADES * (test->weight2 + 1);
    }
    test->weight *= FADES;
    test->unexplained_sum *= FADES;
    test->sectors_sum *= FADES;
    test->points_sum *= FADES;
    test->T_view = *T_map_sensor;
    test->view_searches = 0;
    test->view_sum = 0;
    test->is_view_found = 0;
}

void ndt_hypothesis_test_add(struct ndt_hypothesis_test *test, const struct ndt_hypothesis_features *features,
                             const struct ndt_pose *T_map_sensor)
{
    test->is_found = features->is_found;
    if (features->points < NDT_HYPOTHESIS_LEAST)
        return;
    if (is_new_view(test, features, T_map_sensor))
        begin_view(test, T_map_sensor);
    test->searches++;
    test->view_searches++;
    test->view_sum += fmax(-MOST, fmin(ndt_hypothesis_test_difference(features), MOST));
    if (!features->is_found)
        return;
    test->views += !test->is_view_found;
    test->is_view_found = 1;
    test->weight++;
    test->unexplained_sum += 1 - features->match_ratio;
    test->sectors_sum += features->sectors;
    test->points_sum += features->points;
}

double ndt_hypothesis_test_significance(const struct ndt_hypothesis_test *test)
{
    if (test->view_searches == 0)
        return 0;
    return (test->sum + test->view_sum / test->view_searches) / sqrt(test->weight2 + 1);
}

static double mean_unexplained(const struct ndt_hypothesis_test *test)
{
    return test->unexplained_sum / test->weight;
}

static int is_narrow(const struct ndt_hypothesis_test *test)
{
    return !(test->sectors_sum / test->weight >= NDT_HYPOTHESIS_NARROW);
}

double ndt_hypothesis_test_probability(const struct ndt_hypothesis_test *test)
{
    if (!(test->weight > 0))
        return 0;
    const double z = FIT_ONE + FIT_SIGNIFICANCE * fmin(ndt_hypothesis_test_significance(test), MOST) +
                     (is_narrow(test) ? FIT_UNEXPLAINED * mean_unexplained(test) : 0);
    const double probability = 1 / (1 + exp(-z));
    return isfinite(probability) ? probability : 0; /* a NaN feature too */
}

int ndt_hypothesis_test_accepts(const struct ndt_hypothesis_test *test, int is_guarded)
{
    const double least = is_guarded && test->views < 2 ? NDT_HYPOTHESIS_AT_ONCE : NDT_HYPOTHESIS_ACCEPTED;
    if (!test->is_found || !(ndt_hypothesis_test_probability(test) >= least))
        return 0;
    return !is_guarded || !is_narrow(test) ||
           (test->views >= NDT_HYPOTHESIS_VIEWS && test->points_sum >= NDT_HYPOTHESIS_POINTS * test->weight &&
            mean_unexplained(test) <= NDT_HYPOTHESIS_UNEXPLAINED);
}
