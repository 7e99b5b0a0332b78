/* Tests of the belief about the place after several views: places with a past, aliases, and places that were not
 * found. */
#include <check.h>
#include <math.h>

#include "place_belief.h"
#include "run_tests.h"

static const struct ndtd_motion_limit walk = {.most_m = 3, .most_rad = 2.8, .usual_m = 1.3, .usual_rad = 1};
static const struct ndtd_motion_limit anywhere = {.most_m = 30, .most_rad = M_PI};
static const struct ndtd_motion_limit half_a_second = {
    .most_m = 2.5, .most_rad = 1.6, .usual_m = 1, .usual_rad = 0.6, .is_short = 1};
static struct ndt_pose moved; /* 2 m, as odometry has measured */
static const struct ndtd_motion_limit odometry = {
    .most_m = 1.4, .most_rad = 0.3, .usual_m = 0.3, .usual_rad = 0.05, .T_before_now = &moved, .is_exact = 1};
static const struct ndtd_motion_limit *motion = &walk;
static struct ndtd_belief before, now;

static struct ndt_pose pose_at(double x_m, double yaw_rad)
{
    return ndt_pose_from_rpy((double[3]){x_m, 0, 0}, (double[3]){0, 0, yaw_rad});
}

static void add(double x_m, double log_fit)
{
    const struct ndt_pose T_map_base = pose_at(x_m, 0);
    ndtd_belief_add(&now, &T_map_base, log_fit);
}

/* The next view, with the places that were added. */
static void step(double log_fit_unfound)
{
    ndtd_belief_arrive(&now, &before, motion, &anywhere);
    now.log_fit_unfound = log_fit_unfound;
    ndtd_belief_weigh(&now);
}

static void next_view(void)
{
    before = now;
    now.count = 0;
}

static double margin_at(double x_m)
{
    const struct ndt_pose T_map_base = pose_at(x_m, 0);
    const struct ndtd_place *place = ndtd_belief_at(&now, &T_map_base);
    ck_assert_ptr_nonnull(place);
    return ndtd_belief_margin(&now, place);
}

static void setup(void)
{
    const struct ndt_pose start = pose_at(0, 0);
    ndtd_belief_begin(&before, &start, -INFINITY);
    now.count = 0;
    now.log_missed_again = 3;
    moved = pose_at(2, 0);
    motion = &walk;
}

FIXTURE(setup, NULL)

TEST(probabilities_sum_to_one)
{
    double sum;
    add(1, 0);
    add(2.5, -1);
    add(20, -3);
    step(-2);
    sum = exp(now.log_unfound);
    for (size_t i = 0; i < now.count; i++)
        sum += exp(now.places[i].log_weight);
    ck_assert_double_eq_tol(sum, 1, 1e-12);
}

TEST(what_fits_elsewhere_has_no_past)
{
    add(1, -2);
    add(20, 0); /* fits better, but is out of reach */
    step(-6);
    ck_assert_double_gt(margin_at(1), 3);
    ck_assert_double_lt(margin_at(20), -10);
    ck_assert_ptr_eq(ndtd_belief_best(&now), &now.places[0]);
}

TEST(what_is_alike_stays_a_rival)
{
    for (int view = 1; view <= 8; view++) { /* two places side by side go on in step */
        add(view, 0);
        add(view + 2, 0);
        step(-8);
        ck_assert_double_lt(margin_at(view), 4);
        next_view();
    }
}

TEST(a_lost_place_needs_views)
{
    step(-1); /* nothing was found */
    ck_assert_double_eq(now.log_unfound, 0);
    ck_assert_ptr_null(ndtd_belief_best(&now));
    double last = -INFINITY;
    for (int view = 1; view <= 4; view++) {
        next_view();
        add(view, 0);
        step(-8);
        ck_assert_double_gt(margin_at(view), last);
        if (view == 1)
            ck_assert_double_lt(margin_at(view), 0); /* one view alone proves nothing */
        last = margin_at(view);
    }
    ck_assert_double_gt(last, 4.6);
}

TEST(one_scan_against_a_place_says_only_so_much)
{
    add(1, -1e4);
    add(2.5, 0);
    step(-20);
    ck_assert_double_gt(margin_at(2.5), 6);
    ck_assert_double_lt(margin_at(2.5), 11);
}

TEST(a_given_pose_may_be_wrong)
{
    const struct ndt_pose start = pose_at(0, 0);
    double margin[2];
    for (int is_given = 0; is_given < 2; is_given++) {
        ndtd_belief_begin(&before, &start, is_given ? -2.3 : -INFINITY);
        now.count = 0;
        add(1, 0);
        add(20, 0); /* out of reach: the pose was wrong, or the scan fits by chance */
        step(-4);
        margin[is_given] = margin_at(1);
        ck_assert_double_eq(is_given, isfinite(now.places[1].log_arrival));
    }
    ck_assert_double_lt(margin[1], margin[0]);
}

TEST(one_optimum_is_one_place)
{
    add(1, -2);
    add(1.4, -1);
    ck_assert_uint_eq(now.count, 1);
    ck_assert_double_eq(now.places[0].log_fit, -1);
    ck_assert_double_eq(now.places[0].T_map_base.t_m[0], 1.4);
    add(1.2, -3); /* a worse view of it changes nothing */
    ck_assert_double_eq(now.places[0].T_map_base.t_m[0], 1.4);
    for (int i = 0; i < 2 * NDTD_PLACES_MAX; i++)
        add(10 + 2 * i, -5);
    ck_assert_uint_eq(now.count, NDTD_PLACES_MAX);
}

TEST(the_best_fit_stands_out)
{
    add(1, 0);
    ck_assert_double_eq(ndtd_belief_stands_out(&now), INFINITY);
    add(5, -3);
    ck_assert_double_eq_tol(ndtd_belief_stands_out(&now), 3, 1e-12);
    add(9, 2);
    ck_assert_double_eq_tol(ndtd_belief_stands_out(&now), 2 - log(1 + exp(-3)), 1e-12);
}

/* Odometry has measured 2 m: of two places that a walk reaches alike, the one that it leads to is right, and no
 * other one may have been missed. */
TEST(a_measured_motion_tells_places_apart)
{
    for (int is_measured = 0; is_measured < 2; is_measured++) {
        setup();
        motion = is_measured ? &odometry : &walk;
        add(2.1, 0);
        add(-1, 0);
        step(-2);
        ck_assert(is_measured ? margin_at(2.1) > 10 : margin_at(2.1) < 1);
        const struct ndt_pose there = pose_at(2.1, 0), nowhere = pose_at(9, 0);
        ck_assert(is_measured ? margin_at(-1) < -10 : margin_at(-1) > -3);
        ck_assert_double_eq_tol(ndtd_belief_at(&now, &there)->log_weight, -log1p(exp(-margin_at(2.1))), 1e-9);
        ck_assert_ptr_null(ndtd_belief_at(&now, &nowhere));
    }
}

/* Half a second after a verified pose other rooms are out of reach, and all places within reach were tried. */
TEST(a_short_way_hides_no_place)
{
    add(0.5, 0);
    add(9, 0); /* alike, out of reach */
    step(-4);
    ck_assert_double_lt(margin_at(0.5), 5);
    motion = &half_a_second;
    step(-4);
    ck_assert_double_gt(margin_at(0.5), 7);
}

TEST(a_short_way_to_a_place_that_fits_worse)
{
    motion = &half_a_second;
    add(0.5, -8);
    add(9, 0);
    step(-4);
    ck_assert_double_lt(margin_at(0.5), 5);
}

TEST(a_short_way_to_a_rival)
{
    motion = &half_a_second;
    add(0.5, 0);
    add(2, 0); /* alike, within reach */
    step(-4);
    ck_assert_double_lt(margin_at(0.5), 3);
}

/* Where nothing was found at the place that odometry leads to, it is carried there: as likely as a place that
 * nobody knows. */
TEST(a_measured_motion_to_a_place_that_was_not_found)
{
    motion = &odometry;
    add(-1, 0);
    step(-2);
    ck_assert_double_lt(margin_at(-1), -5);
    const struct ndt_pose there = pose_at(2, 0), elsewhere = pose_at(-1, 0);
    ck_assert(ndtd_belief_at(&now, &there)->is_carried);
    ck_assert(!ndtd_belief_at(&now, &elsewhere)->is_carried);
    ck_assert_double_eq_tol(ndtd_belief_at(&now, &there)->log_weight, now.log_unfound, 1e-12);
}

/* After a view that faced a wall the next one finds the place to which odometry has led: without the carried place
 * it would be one of many that nobody had found before. */
TEST(a_carried_place_is_found_again)
{
    motion = &odometry;
    add(-1, 0);
    step(-2);
    next_view();
    add(4.1, 0);
    add(8, 0);
    step(-6);
    ck_assert_double_gt(margin_at(4.1), 2);
    ck_assert_double_lt(margin_at(8), -5);
    const struct ndt_pose there = pose_at(4.1, 0);
    ck_assert(!ndtd_belief_at(&now, &there)->is_carried);
}

/* A full list has no room for the carried place: nothing is written beyond it. */
TEST(a_full_list_carries_nothing)
{
    motion = &odometry;
    for (int i = 0; i < NDTD_PLACES_MAX; i++)
        add(100 + 2 * i, 0);
    step(-2);
    ck_assert_uint_eq(now.count, NDTD_PLACES_MAX);
    ck_assert_double_gt(now.log_unfound, -0.01);
}

/* Where odometry leads to, the scan fits far worse than at a place beyond its reach: a wheel may have slipped. */
TEST(a_measured_motion_to_a_place_that_fits_worse)
{
    motion = &odometry;
    add(2.1, -20);
    add(-1, 0);
    step(-8);
    const struct ndt_pose there = pose_at(2.1, 0);
    ck_assert(ndtd_belief_at(&now, &there)->is_carried);
    ck_assert_double_eq_tol(ndtd_belief_at(&now, &there)->log_weight, now.log_unfound, 1e-3);
}

/* Two places that fit alike, 6 m and a quarter turn apart, and a third of the weight within 20 m of 3 m beside. */
TEST(the_covariance_covers_every_place)
{
    struct ndt_pose here = pose_at(0, 0.75 * M_PI), there = pose_at(6, -0.75 * M_PI);
    double covariance[36] = {[0] = 0.01, [7] = 0.01, [14] = 0.01, [35] = 0.001};
    const double third = 1.0 / 3, disc = third * 20 * 20 / 4, centre_m[3] = {0, 3, 0};
    there.t_m[2] = 2;
    ndtd_belief_add(&now, &here, 0);
    ndtd_belief_add(&now, &there, 0);
    now.log_unfound = now.places[0].log_weight = now.places[1].log_weight = log(third);
    ndtd_belief_spread(&now, &here, centre_m, 20, covariance);
    ck_assert_double_eq_tol(covariance[0], 0.01 + third * 36 + disc, 1e-9);
    ck_assert_double_eq_tol(covariance[7], 0.01 + third * 9 + disc, 1e-9);
    ck_assert_double_eq_tol(covariance[14], 0.01 + third * 4, 1e-9);
    ck_assert_double_eq_tol(covariance[5], third * 6 * M_PI / 2, 1e-9);
    ck_assert_double_eq(covariance[5], covariance[30]);
    ck_assert_double_eq_tol(covariance[35], 0.001 + third * (M_PI * M_PI / 4 + M_PI * M_PI / 3), 1e-9);
}
