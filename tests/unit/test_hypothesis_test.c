/* Tests of accepting a place: evidence of one search, evidence of further views, refusals by guards, and the
 * weights of the places that recovery follows. The numbers are those of the fit; the tests hold for every sensible
 * one. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pose_hypotheses.h"
#include "ndt_search/hypothesis_test.h"
#include "run_tests.h"

static struct ndt_search_result result;

/* A search with these shares of points that fit, best first. */
static void set_search(uint32_t count, const double *inliers)
{
    memset(&result, 0, sizeof(result));
    result.count = count;
    result.view = (struct ndt_search_view){.dense_points = 150, .sectors = 0.9};
    for (uint32_t i = 0; i < count; i++) {
        result.candidates[i].inliers = inliers[i];
        result.candidates[i].scores.match_ratio = 0.99;
        result.candidates[i].T_map_sensor = ndt_pose_identity();
        result.candidates[i].T_map_sensor.t_m[0] = 100.0 * i;
    }
}

static struct ndt_pose pose_at(double x_m, double heading_deg)
{
    const struct ndt_twist turn = {.v_mps = {0}, .w_radps = {0, 0, heading_deg * 3.14159265358979323846 / 180}};
    struct ndt_pose pose = ndt_pose_exp(&turn, 1);
    pose.t_m[0] = x_m;
    return pose;
}

/* Adds `count` searches of candidate i, from places step_m and turns turn_deg apart. */
static struct ndt_hypothesis_test gathered(uint32_t i, int count, double step_m, double turn_deg)
{
    struct ndt_hypothesis_test evidence = {0};
    struct ndt_hypothesis_features features;
    ndt_hypothesis_features_of(&result, i, &features);
    for (int k = 0; k < count; k++) {
        const struct ndt_pose T = pose_at(k * step_m, k * turn_deg);
        ndt_hypothesis_test_add(&evidence, &features, &T);
    }
    return evidence;
}

static int is_believed_after(uint32_t i, int count, double step_m, double turn_deg)
{
    const struct ndt_hypothesis_test evidence = gathered(i, count, step_m, turn_deg);
    return ndt_hypothesis_test_accepts(&evidence, 1);
}

static const double CLEAR[] = {0.75, 0.3, 0.28, 0.25}, TWINS[] = {0.75, 0.74, 0.28, 0.25},
                    WRONG[] = {0.32, 0.28, 0.27, 0.25}, FAIR[] = {0.6, 0.43, 0.3, 0.25};

TEST(clear_place_is_believed_at_the_first_search)
{
    set_search(4, CLEAR);
    ck_assert_int_eq(is_believed_after(0, 1, 0, 0), 1);
    ck_assert_int_eq(is_believed_after(1, 1, 0, 0), 0);
    result.view.dense_points = 20; /* says nothing */
    ck_assert_int_eq(is_believed_after(0, 1, 0, 0), 0);
    ck_assert_uint_eq(gathered(0, 5, 2, 0).searches, 0);
    set_search(0, CLEAR);
    ck_assert_int_eq(is_believed_after(0, 1, 0, 0), 0);
}

/* One view needs a higher probability than several, unless the pose is near a verified one. */
TEST(one_view_needs_more)
{
    static const double LIKELY[] = {0.75, 0.48, 0.28, 0.25};
    set_search(4, LIKELY);
    const struct ndt_hypothesis_test once = gathered(0, 1, 0, 0), twice = gathered(0, 2, 1.5, 0);
    ck_assert_double_gt(ndt_hypothesis_test_probability(&once), NDT_HYPOTHESIS_ACCEPTED);
    ck_assert_double_lt(ndt_hypothesis_test_probability(&once), NDT_HYPOTHESIS_AT_ONCE);
    ck_assert(!ndt_hypothesis_test_accepts(&once, 1));
    ck_assert(ndt_hypothesis_test_accepts(&once, 0));
    ck_assert(ndt_hypothesis_test_accepts(&twice, 1));
}

/* However well it fits, however long it is followed. */
TEST(twins_are_never_believed)
{
    set_search(4, TWINS);
    for (int count = 1; count <= 200; count += 7)
        for (uint32_t i = 0; i < 2; i++)
            ck_assert_int_eq(is_believed_after(i, count, 2, 40), 0);
    set_search(4, WRONG);
    ck_assert_int_eq(is_believed_after(0, 1, 0, 0), 0);
}

/* Standing still is one experiment; moving on makes more of them. A wide view does not change by turning. */
TEST(only_new_views_add_evidence)
{
    set_search(4, FAIR);
    const struct ndt_hypothesis_test once = gathered(0, 1, 0, 0), same = gathered(0, 100, 0.001, 0),
                                     turned = gathered(0, 100, 0, 30), moved = gathered(0, 4, 1.5, 0);
    ck_assert(!ndt_hypothesis_test_accepts(&once, 1));
    ck_assert_double_eq_tol(ndt_hypothesis_test_significance(&same), ndt_hypothesis_test_significance(&once), 1e-9);
    ck_assert_double_eq_tol(ndt_hypothesis_test_significance(&turned), ndt_hypothesis_test_significance(&once),
                            1e-9);
    ck_assert_double_gt(ndt_hypothesis_test_significance(&moved), 1.5 * ndt_hypothesis_test_significance(&once));
    ck_assert(ndt_hypothesis_test_accepts(&moved, 1));
    ck_assert_uint_eq(same.views, 1);
    ck_assert_uint_eq(moved.views, 4);
    result.view.sectors = 0.2;
    ck_assert_uint_eq(gathered(0, 4, 0, 30).views, 4);
}

TEST(narrow_views_need_motion_points_and_an_explanation)
{
    set_search(4, CLEAR);
    result.view.sectors = 0.2;
    ck_assert_int_eq(is_believed_after(0, 50, 0, 0), 0);
    ck_assert_int_eq(is_believed_after(0, 2, 1.5, 0), 0);
    ck_assert_int_eq(is_believed_after(0, NDT_HYPOTHESIS_VIEWS, 1.5, 0), 1);
    const struct ndt_hypothesis_test once = gathered(0, 1, 0, 0);
    ck_assert_int_eq(ndt_hypothesis_test_accepts(&once, 0), 1);
    result.candidates[0].scores.match_ratio = 0.94;
    ck_assert_int_eq(is_believed_after(0, 10, 1.5, 0), 0);
    set_search(4, CLEAR);
    result.view.sectors = 0.2;
    result.view.dense_points = NDT_HYPOTHESIS_POINTS - 1;
    ck_assert_int_eq(is_believed_after(0, 10, 1.5, 0), 0);
}

/* Being found is not enough, and having been found is not either. */
TEST(contradictions_count_and_fade)
{
    struct ndt_hypothesis_features found, missing;
    set_search(4, CLEAR);
    struct ndt_hypothesis_test evidence = gathered(0, 3, 2, 0);
    ndt_hypothesis_features_of(&result, 0, &found);
    ndt_hypothesis_features_of(&result, 4, &missing);
    ck_assert_double_lt(ndt_hypothesis_test_difference(&missing), -1);
    double last = ndt_hypothesis_test_probability(&evidence);
    for (int k = 3; k < 9; k++) {
        const struct ndt_pose T = pose_at(2 * k, 0);
        ndt_hypothesis_test_add(&evidence, &missing, &T);
        ck_assert(!ndt_hypothesis_test_accepts(&evidence, 1));
        ck_assert_double_le(ndt_hypothesis_test_probability(&evidence), last);
        last = ndt_hypothesis_test_probability(&evidence);
    }
    ck_assert_double_lt(last, 0.5);
    for (int k = 9; k < 14; k++) {
        const struct ndt_pose T = pose_at(2 * k, 0);
        ndt_hypothesis_test_add(&evidence, &found, &T);
    }
    ck_assert(ndt_hypothesis_test_accepts(&evidence, 1));
}

/* z is a number of standard errors: it falls with the points and with the rival, and nothing makes it infinite. */
TEST(difference_is_in_standard_errors)
{
    struct ndt_hypothesis_features f = {.inliers = 0.5, .rival_inliers = 0.3, .points = 100, .is_found = 1};
    const double z = ndt_hypothesis_test_difference(&f);
    ck_assert_double_eq_tol(z, 0.2 / sqrt((0.25 + 0.21 + 0.0025) / 100), 1e-12);
    f.points = 400;
    ck_assert_double_eq_tol(ndt_hypothesis_test_difference(&f), 2 * z, 0.02);
    f.rival_inliers = 0.5;
    ck_assert_double_eq(ndt_hypothesis_test_difference(&f), 0);
    f = (struct ndt_hypothesis_features){.inliers = 1, .rival_inliers = 0, .points = 5, .is_found = 1};
    ck_assert(isfinite(ndt_hypothesis_test_difference(&f)));
    f.points = 0;
    ck_assert_double_eq(ndt_hypothesis_test_difference(&f), 0);
    f = (struct ndt_hypothesis_features){
        .inliers = NAN, .points = 100, .is_found = 1, .match_ratio = NAN, .sectors = NAN};
    struct ndt_hypothesis_test evidence = {0};
    const struct ndt_pose T = ndt_pose_identity();
    ndt_hypothesis_test_add(&evidence, &f, &T);
    ck_assert(!ndt_hypothesis_test_accepts(&evidence, 1));
    ck_assert(ndt_hypothesis_test_probability(&evidence) >= 0);
}

/* ---- the places that a recovery follows ---- */

static struct ndtd_hypothesis place(double confidence, double fit)
{
    struct ndtd_hypothesis candidate = {.scans = 1, .fit = fit, .confidence = confidence};
    candidate.state.T_map_base = ndt_pose_identity();
    return candidate;
}

/* Takes in `result`, of a scan at time 0; doubted: all that was searched, or NULL. */
static void take_within(struct ndtd_hypotheses *places, struct ndtd_hypothesis *lead,
                        const struct ndt_search_region *doubted)
{
    static struct ndt_track track;
    struct ndt_track_params params;
    const struct ndtd_found found = {.result = &result, .T_base_sensor = ndt_pose_identity(), .doubted = doubted};
    ndt_track_params_default(&params);
    ndt_track_init(&track, &params);
    ndtd_hypotheses_take(places, lead, &track, &found, NDT_SEARCH_CANDIDATES);
}

static void take(struct ndtd_hypotheses *places, struct ndtd_hypothesis *lead)
{
    take_within(places, lead, NULL);
}

TEST(belief_needs_fit_evidence_and_no_rival)
{
    struct ndtd_hypotheses none = {0};
    struct ndtd_hypothesis candidate = place(0.95, 0.6);
    set_search(4, CLEAR);
    ck_assert_int_eq(ndtd_hypothesis_is_accepted(&candidate, 0, 0.8, 1), 0);
    take(&none, &candidate);
    ck_assert_int_eq(ndtd_hypothesis_is_accepted(&candidate, 0, 0.8, 0), 1);
    ck_assert_int_eq(ndtd_hypothesis_is_accepted(&candidate, 0.59, 0.8, 0), 0); /* a twin that is followed */
    candidate.confidence = 0.7;
    ck_assert_int_eq(ndtd_hypothesis_is_accepted(&candidate, 0, 0.8, 0), 0);
}

TEST(places_that_are_not_found_are_contradicted)
{
    struct ndtd_hypotheses places = {.count = 2, .list = {place(0.95, 0.6), place(0.95, 0.5)}};
    places.list[1].state.T_map_base.t_m[0] = 1000;
    set_search(4, CLEAR);
    take(&places, NULL);
    ck_assert_uint_eq(places.count, 2 + 4 - 1); /* the others of the search are new */
    ck_assert_uint_eq(places.list[0].test.searches, 1);
    ck_assert_uint_eq(places.list[0].agreements, 1);
    ck_assert_uint_eq(places.list[1].test.searches, 1);
    ck_assert_uint_eq(places.list[1].contradictions, 1);
    ck_assert_double_lt(ndt_hypothesis_test_significance(&places.list[1].test), 0);
    places.list[0].state.T_map_base.t_m[0] = 2000; /* the next search does not find it there */
    take(&places, NULL);
    ck_assert_int_eq(ndtd_hypothesis_is_accepted(&places.list[0], 0, 0.8, 0), 0);
}

/* A search near a position that may be wrong says nothing of places elsewhere, and its best place was told. */
TEST(places_elsewhere_lose_nothing_by_a_doubted_hint)
{
    const struct ndt_search_region near = {.has_position = 1, .radius_m = 20};
    struct ndtd_hypotheses places = {.count = 2, .list = {place(0.95, 0.6), place(0.95, 0.5)}};
    places.list[1].state.T_map_base.t_m[0] = 1000;
    set_search(4, CLEAR);
    take_within(&places, NULL, &near);
    ck_assert_uint_eq(places.list[0].test.searches, 1);
    ck_assert_uint_eq(places.list[0].agreements, 0);
    ck_assert_uint_eq(places.list[1].test.searches, 0);
    ck_assert_uint_eq(places.list[1].contradictions, 0);
}

/* A search of an earlier moment names the places where they were then. */
TEST(places_are_met_where_they_were)
{
    struct ndtd_hypotheses places = {.count = 1, .list = {place(0.95, 0.6)}};
    struct ndt_track_state *state = &places.list[0].state;
    state->has_twist = 1;
    state->twist.v_mps[0] = 10;
    state->stamp_ns = 2000000000;
    state->T_map_base.t_m[0] = 20; /* after 2 s from the origin */
    set_search(1, CLEAR);
    take(&places, NULL);
    ck_assert_uint_eq(places.count, 1);
    ck_assert_uint_eq(places.list[0].agreements, 1);
}
