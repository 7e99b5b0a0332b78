/* Tests of other poses of the vehicle: the guesses and their order, optima, pose hypotheses. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pose_hypotheses.h"
#include "guesses.h"
#include "run_tests.h"

static const double DEG = M_PI / 180;
static struct ndtd_guesses list;
static struct ndt_track_state before, predicted, verified;
static struct ndtd_guess_sources sources;

static struct ndt_pose pose_at(double x_m, double y_m, double z_m, double yaw_rad)
{
    return ndt_pose_from_rpy((double[3]){x_m, y_m, z_m}, (double[3]){0, 0, yaw_rad});
}

static double yaw_of(const struct ndt_pose *pose)
{
    return 2 * atan2(pose->q_xyzw[2], pose->q_xyzw[3]);
}

static void assert_pose(const struct ndt_pose *pose, double x_m, double y_m, double z_m, double yaw_rad)
{
    ck_assert_double_eq_tol(pose->t_m[0], x_m, 1e-9);
    ck_assert_double_eq_tol(pose->t_m[1], y_m, 1e-9);
    ck_assert_double_eq_tol(pose->t_m[2], z_m, 1e-9);
    ck_assert_double_eq_tol(remainder(yaw_of(pose) - yaw_rad, 2 * M_PI), 0, 1e-9);
}

static void setup(void)
{
    before = (struct ndt_track_state){.stamp_ns = 1000000000, .T_map_base = pose_at(10, 20, 3, 0)};
    predicted = (struct ndt_track_state){.stamp_ns = 1500000000, .T_map_base = pose_at(14, 20, 3, 0.5)};
    verified = (struct ndt_track_state){.T_map_base = pose_at(7, 8, 9, -1)};
    sources = (struct ndtd_guess_sources){.before = &before, .predicted = &predicted};
}

/* ---- guesses ---- */

FIXTURE(setup, NULL)

TEST(the_obvious_come_in_order)
{
    ndtd_guesses_obvious(&list, &sources);
    ck_assert_uint_eq(list.count, 2);
    assert_pose(&list.T_map_base[0], 14, 20, 3, 0.5);
    assert_pose(&list.T_map_base[1], 10, 20, 3, 0);
    before.has_twist = 1;
    before.twist = (struct ndt_twist){.v_mps = {0, 4, 2}};
    sources.verified = &verified;
    ndtd_guesses_obvious(&list, &sources);
    ck_assert_uint_eq(list.count, 4);
    assert_pose(&list.T_map_base[2], 10, 22, 4, 0); /* half a second later */
    assert_pose(&list.T_map_base[3], 7, 8, 9, -1);
}

/* Guesses nearer than 0.5 m and 0.1 rad lead to the same optimum; what is not finite leads nowhere. */
TEST(near_guesses_are_one)
{
    sources.verified = &verified;
    verified.T_map_base = pose_at(10, 20, 3.499, 0.099);
    ndtd_guesses_obvious(&list, &sources);
    ck_assert_uint_eq(list.count, 2);
    verified.T_map_base = pose_at(10, 20, 3.501, 0.099);
    ndtd_guesses_obvious(&list, &sources);
    ck_assert_uint_eq(list.count, 3);
    verified.T_map_base = pose_at(10, 20, 3.499, 0.101);
    ndtd_guesses_obvious(&list, &sources);
    ck_assert_uint_eq(list.count, 3);
    verified.T_map_base.t_m[1] = NAN;
    ndtd_guesses_obvious(&list, &sources);
    ck_assert_uint_eq(list.count, 2);
}

/* ---- optima ---- */

TEST(speeds_and_distances)
{
    ck_assert_double_eq(ndtd_speed_mps(&(struct ndt_twist){.v_mps = {2, -3, 6}}), 7);
    const struct ndt_pose here = pose_at(0, 0, 0, 0);
    struct ndt_pose there = pose_at(0, 0, 1, 0);
    ck_assert(!ndtd_are_distinct(&here, &there));
    there.t_m[0] = 0.1;
    ck_assert(ndtd_are_distinct(&here, &there));
    there = pose_at(0, 0, 0, 4.99 * DEG);
    ck_assert(!ndtd_are_distinct(&here, &there));
    there = pose_at(0, 0, 0, -5.01 * DEG);
    ck_assert(ndtd_are_distinct(&here, &there));
}

static struct ndt_align_result result_of(enum ndt_outcome outcome, double nvtl, double ratio)
{
    struct ndt_align_result result = {.outcome = outcome, .T_map_sensor = pose_at(1, 2, 3, 0)};
    result.scores.nvtl_normalized = nvtl;
    result.scores.match_ratio = ratio;
    return result;
}

TEST(fit_of_every_outcome)
{
    for (int outcome = 0; outcome < NDT_OUTCOME_COUNT; outcome++) {
        const struct ndt_align_result result = result_of((enum ndt_outcome)outcome, 0.5, 0.75);
        const int is_optimum = outcome == NDT_CONVERGED || outcome == NDT_ITERATION_LIMIT ||
                               outcome == NDT_DEADLINE || outcome == NDT_LOW_SCORE;
        ck_assert_double_eq(ndtd_fit(&result), is_optimum ? 0.375 : 0);
    }
}

TEST(distance_in_sigmas)
{
    const struct ndt_pose mean = pose_at(1, 2, 3, 0);
    struct ndt_pose pose = pose_at(1, 2.5, 3.25, 0);
    double P[36] = {0};
    for (int i = 0; i < 6; i++)
        P[7 * i] = i < 3 ? 0.25 : 0.01;
    ck_assert_double_eq(ndt_pose_squared_mahalanobis(&mean, P, &mean), 0);
    ck_assert_double_eq_tol(ndt_pose_squared_mahalanobis(&mean, P, &pose), 1.25, 1e-12);
    pose = pose_at(1, 2, 3, 0.1);
    ck_assert_double_eq_tol(ndt_pose_squared_mahalanobis(&mean, P, &pose), 1, 1e-9);
    memset(P, 0, sizeof(P)); /* not invertible: far away */
    ck_assert(isinf(ndt_pose_squared_mahalanobis(&mean, P, &mean)));
}

TEST(room_for_optima)
{
    struct ndtd_optima optima = {0};
    const struct ndt_pose here = pose_at(1, 2, 3, 0);
    for (size_t i = 0; i < NDTD_OPTIMA_MAX + 3; i++) {
        ck_assert_uint_eq(optima.count, i < NDTD_OPTIMA_MAX ? i : NDTD_OPTIMA_MAX);
        ndtd_optima_add(&optima, &here);
    }
}

/* A mean is known from the first scan on, and a fit that is too bad from the third. */
TEST(fit_that_is_usual)
{
    struct ndtd_usual_fit usual = {0};
    ck_assert_double_eq(ndtd_usual_fit(&usual), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(ndtd_fit_deficit(&usual, 0.1), 0);
        ndtd_usual_fit_add(&usual, 0.3, 0.6);
        ck_assert_double_eq_tol(ndtd_usual_fit(&usual), 0.3, 1e-12);
    }
    ck_assert_double_eq(ndtd_fit_deficit(&usual, 0.4), 0);
    ck_assert_double_eq_tol(ndtd_fit_deficit(&usual, 0.24), 2, 1e-9);
    for (int i = 0; i < 100; i++)
        ndtd_usual_fit_add(&usual, i % 2 ? 0.5 : 0.3, 0.6);
    ck_assert_double_eq_tol(ndtd_usual_fit(&usual), 0.4, 0.01);
    ck_assert_double_eq_tol(usual.matched, 0.6, 1e-9);
    ck_assert_double_eq_tol(ndtd_fit_deficit(&usual, 0.2), 0.2 / hypot(0.1, 0.03), 0.2);
}

/* ---- places ---- */

static struct ndtd_hypotheses places;

static void add_place(double x_m, double fit, uint32_t agreements)
{
    struct ndtd_hypothesis place = {.fit = fit, .agreements = agreements};
    place.state.T_map_base = pose_at(x_m, 0, 0, 0);
    ndtd_hypotheses_add(&places, &place);
}

/* The mean of the first five fits, then a fifth of each new one; three scans without a fit. */
TEST(a_place_is_followed)
{
    struct ndtd_hypothesis place = {0};
    for (int i = 1; i <= 5; i++)
        ndtd_hypothesis_follow(&place, &verified, 0.1 * i, 0.9);
    ck_assert_double_eq_tol(place.fit, 0.3, 1e-12);
    ndtd_hypothesis_follow(&place, &verified, 0.8, 0.7);
    ck_assert_double_eq_tol(place.fit, 0.4, 1e-12);
    ck_assert_double_eq(place.confidence, 0.7);
    ck_assert_uint_eq(place.scans, 6);
    ck_assert_uint_eq(place.misses, 0);
    assert_pose(&place.state.T_map_base, 7, 8, 9, -1);
    ndtd_hypothesis_follow(&place, &verified, 0, 0);
    ndtd_hypothesis_follow(&place, &verified, 0, 0);
    ck_assert_uint_eq(place.misses, 2);
    ndtd_hypothesis_follow(&place, &verified, 0.1, 0);
    ck_assert_uint_eq(place.misses, 0);
    place.agreements = place.contradictions = 3;
    place.test.unexplained_sum = 1;
    ndtd_hypothesis_forget(&place);
    const struct ndt_hypothesis_test none = {0};
    ck_assert(place.agreements == 0 && place.contradictions == 0 && place.scans == 0 && place.fit == 0);
    ck_assert_mem_eq(&place.test, &none, sizeof(none));
}

TEST(the_best_place_has_the_most_agreements)
{
    memset(&places, 0, sizeof(places));
    ck_assert_ptr_null(ndtd_hypotheses_best(&places));
    add_place(0, 0.9, 1);
    add_place(10, 0.2, 2);
    add_place(20, 0.3, 2);
    ck_assert_ptr_eq(ndtd_hypotheses_best(&places), &places.list[2]);
    const struct ndt_pose second = pose_at(0.9, 0, 0, 0), far = pose_at(5, 0, 0, 0), last = pose_at(20, 0, 0, 0);
    ck_assert_double_eq(ndtd_hypotheses_second(&places, &second), 0.3);
    ck_assert_double_eq(ndtd_hypotheses_second(&places, &far), 0.9);
    ck_assert_double_eq(ndtd_hypotheses_second(&places, &last), 0.9);
    places.count = 1;
    ck_assert_double_eq(ndtd_hypotheses_second(&places, &second), 0);
}

TEST(a_full_list_loses_the_worst)
{
    memset(&places, 0, sizeof(places));
    for (int i = 0; i < NDTD_HYPOTHESES_MAX; i++)
        add_place(10 * i, i == 4 ? 0.1 : 0.5, i == 7 ? 1 : 2);
    ck_assert_uint_eq(places.count, NDTD_HYPOTHESES_MAX);
    add_place(200, 0.4, 1); /* worse than number 7, the only one with one agreement */
    ck_assert_double_eq(places.list[7].state.T_map_base.t_m[0], 70);
    add_place(300, 0.6, 1);
    ck_assert_double_eq(places.list[7].state.T_map_base.t_m[0], 300);
    add_place(400, 0.3, 2);
    ck_assert_double_eq(places.list[7].state.T_map_base.t_m[0], 400);
    add_place(500, 0.2, 2);
    ck_assert_double_eq(places.list[4].state.T_map_base.t_m[0], 500);
    ck_assert_uint_eq(places.count, NDTD_HYPOTHESES_MAX);
}

TEST(places_that_met_are_one)
{
    memset(&places, 0, sizeof(places));
    add_place(0, 0.5, 1);
    add_place(0.9, 0.6, 1); /* the better one of two */
    add_place(10, 0.5, 1);
    add_place(10.5, 0.5, 1); /* as good: the first one stays */
    add_place(20, 0.5, 1);
    add_place(30, 0.5, 1);
    places.list[4].misses = 3;
    places.list[5].misses = 2;
    ndtd_hypotheses_prune(&places);
    ck_assert_uint_eq(places.count, 3);
    ck_assert_double_eq(places.list[0].state.T_map_base.t_m[0], 0.9);
    ck_assert_double_eq(places.list[1].state.T_map_base.t_m[0], 10);
    ck_assert_double_eq(places.list[2].state.T_map_base.t_m[0], 30);
}
