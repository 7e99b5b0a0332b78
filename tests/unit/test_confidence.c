/* The confidence of poses: the numbers of the script that fits them, in which direction every feature counts, and
 * how scan and prediction hold a pose. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "confidence_rows.h"
#include "ndt_track/confidence.h"
#include "run_tests.h"

static struct ndt_confidence_features features_of(const double v[7])
{
    return (struct ndt_confidence_features){.nvtl_normalized = v[0],
                                            .match_ratio = v[1],
                                            .coverage = v[2],
                                            .slack_m = v[3],
                                            .moved_m = v[4],
                                            .innovation = v[5],
                                            .leaf_m = v[6]};
}

/* A street scan at the right place. */
static const double GOOD[7] = {0.6, 0.97, 1, 0.06, 0.01, 5, 1};

static double good_with(int at, double value)
{
    double values[7];
    memcpy(values, GOOD, sizeof(values));
    values[at] = value;
    const struct ndt_confidence_features features = features_of(values);
    return ndt_confidence(&features);
}

TEST(equals_the_script)
{
    const size_t count = sizeof(confidence_rows) / sizeof(confidence_rows[0]);
    ck_assert_uint_ge(count, 10);
    for (size_t i = 0; i < count; i++) {
        const struct ndt_confidence_features features = features_of(confidence_rows[i].values);
        ck_assert_double_eq_tol(ndt_confidence(&features), confidence_rows[i].confidence, 1e-6);
    }
}

TEST(every_feature_counts_in_its_direction)
{
    static const struct {
        int at;
        double from, to;
        int rises;
    } cases[] = {{0, 0.2, 0.7, 1}, {1, 0.3, 1, 1}, {3, 0.05, 5, 0}, {4, 0, 2, 0}, {5, 0, 1e6, 0}, {6, 0.5, 4, 0}};
    ck_assert_double_gt(good_with(0, GOOD[0]), 0.99);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double last = good_with(cases[i].at, cases[i].from);
        for (int k = 1; k <= 50; k++) {
            const double value = cases[i].from + (cases[i].to - cases[i].from) * k / 50;
            const double next = good_with(cases[i].at, value);
            ck_assert(next >= 0 && next <= 1);
            ck_assert_msg(cases[i].rises ? next >= last : next <= last, "feature %d at %g: %g after %g",
                          cases[i].at, value, next, last);
            last = next;
        }
        ck_assert_msg(cases[i].rises ? last > good_with(cases[i].at, cases[i].from)
                                     : last < good_with(cases[i].at, cases[i].from),
                      "feature %d has no part", cases[i].at);
    }
}

TEST(unknown_features_are_no_confidence)
{
    for (int at = 0; at < 7; at++)
        if (at != 2 && at != 5) /* coverage has no part; no innovation: no prediction */
            ck_assert_double_eq(good_with(at, NAN), 0);
    ck_assert_double_eq(good_with(5, NAN), good_with(5, 0));
    ck_assert_double_eq(good_with(3, INFINITY), 0);
    ck_assert_double_eq(good_with(4, INFINITY), 0);
    ck_assert_double_lt(good_with(5, INFINITY), 1e-9);
}

/* The scan does not hold the axis: a prediction alone may vouch for it, with a deviation up to about 0.17 m. */
TEST(a_tunnel_needs_a_prediction)
{
    ck_assert_double_gt(good_with(3, 0.1), 0.95);
    ck_assert_double_lt(good_with(3, 0.3), 0.8);
    ck_assert_double_lt(good_with(3, 1), 0.2);
}

static struct ndt_observation observation_of(const double information[6])
{
    struct ndt_observation observation;
    memset(&observation, 0, sizeof(observation));
    for (int i = 0; i < 6; i++)
        observation.information[0][7 * i] = information[i];
    return observation;
}

TEST(scan_and_prediction_hold_a_pose)
{
    const double street[6] = {1e4, 1e4, 1e4, 1e6, 1e6, 1e6}; /* an arm of 10 m */
    const double tunnel[6] = {0, 1e4, 1e4, 1e6, 1e6, 1e6};
    struct ndt_observation observation = observation_of(street);
    struct ndt_confidence_features features;
    double prior[36] = {0};
    memset(&features, 0, sizeof(features));
    ndt_confidence_set_hold(&features, &observation, NULL, NULL);
    ck_assert_double_eq_tol(features.slack_m, 0.017, 1e-9);
    ck_assert_double_eq(features.moved_m, 0);
    observation = observation_of(tunnel);
    ndt_confidence_set_hold(&features, &observation, NULL, NULL);
    ck_assert(isinf(features.slack_m));
    for (int i = 0; i < 6; i++)
        prior[7 * i] = i == 0 ? 0.09 : 1e-6;
    ndt_confidence_set_hold(&features, &observation, prior, NULL);
    ck_assert_double_eq_tol(features.slack_m, 0.3, 1e-9);
    /* A prediction that the scan contradicts vouches for less: three times the deviation for an innovation of 54.
     */
    features.innovation = 54;
    ndt_confidence_set_hold(&features, &observation, prior, NULL);
    ck_assert_double_eq_tol(features.slack_m, 0.9, 1e-9);
    features.innovation = 0;
    /* Along the tunnel the place of the estimate does not count; across it does. */
    const struct ndt_twist along = {{2, 0, 0}, {0, 0, 0}}, across = {{0, 0.3, 0}, {0, 0, 0}};
    const struct ndt_twist turned = {{0, 0, 0}, {0, 0, 0.03}};
    ndt_confidence_set_hold(&features, &observation, prior, &along);
    ck_assert_double_lt(features.moved_m, 1e-9);
    ndt_confidence_set_hold(&features, &observation, prior, &across);
    ck_assert_double_eq_tol(features.moved_m, 0.3, 3e-3);
    const double arm_m = sqrt(3e6 / 2e4);
    ndt_confidence_set_hold(&features, &observation, prior, &turned);
    ck_assert_double_eq_tol(features.moved_m, 0.03 * arm_m, 5e-3);
}

TEST(nothing_observed_holds_nothing)
{
    const double nothing[6] = {0};
    const struct ndt_observation observation = observation_of(nothing);
    struct ndt_confidence_features features;
    memset(&features, 0, sizeof(features));
    ndt_confidence_set_hold(&features, &observation, NULL, NULL);
    ck_assert(isinf(features.slack_m));
}
