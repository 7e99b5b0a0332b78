/* The relocaliser by itself, on the CPU. */
#include <check.h>

#include "relocalizer_drive.h"

static void setup(void)
{
    street_drive_make();
    street_drive_set("backend.name", "cpu");
    memset(&here, 0, sizeof(here));
    open_parts(1);
}

static void teardown(void)
{
    close_parts();
    street_drive_free();
}

FIXTURE(setup, teardown)

TEST(the_estimator_is_never_changed)
{
    static struct ndt_track before;
    for (size_t i = 0; i < 3; i++) {
        if (i == 1)
            give_pose(0, 3, 0.3);
        before = here.track;
        take(i);
        ck_assert_mem_eq(&before, &here.track, sizeof(before));
    }
}

TEST(a_given_pose_is_accepted_where_the_scan_confirms_it)
{
    give_pose(0, 0, 0);
    ck_assert_ptr_null(ndtd_relocalizer_verified(here.relocalizer));
    ck_assert_ptr_nonnull(ndtd_relocalizer_reference(here.relocalizer));
    take(0);
    ck_assert_int_eq(here.alignment.result.outcome, NDT_CONVERGED);
    ck_assert(!here.decision.is_unproven && !here.decision.is_replaced && !here.decision.is_ambiguous);
    ck_assert(!ndtd_relocalizer_is_active(here.relocalizer));
    ck_assert_double_lt(error_m(0), 0.1);
    follow();
    ck_assert_ptr_nonnull(ndtd_relocalizer_verified(here.relocalizer));
}

TEST(a_tracked_scan_needs_no_other_guess)
{
    give_pose(0, 0, 0);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        take(i);
        follow();
        ck_assert_int_eq(here.alignment.result.outcome, NDT_CONVERGED);
    }
    ck_assert(!here.decision.is_multistart && isnan(here.decision.margin));
    ck_assert_int_eq(here.matcher->guesses, 1);
}

/* A prediction that may be metres off is no place to begin at: the window search proposes a better one. */
TEST(a_window_search_proposes_where_to_begin)
{
    struct ndt_pose proposed;
    int is_proposed;
    verify_start();
    for (int i = 0; i < 6; i++)
        here.alignment.predicted.P[(NDT_TRACK_STATES + 1) * i] = i < 3 ? 0.01 : 1e-5;
    must(ndtd_relocalizer_propose(here.relocalizer, &here.alignment, &proposed, &is_proposed, &err));
    ck_assert(!is_proposed); /* it is trusted */
    predict_wide();
    must(ndtd_relocalizer_propose(here.relocalizer, &here.alignment, &proposed, &is_proposed, &err));
    ck_assert(is_proposed);
    ck_assert_double_lt(ndt_pose_distance_m(&proposed, &drive.truth[0]), 0.5);
}

TEST(a_wrong_pose_is_unproven_and_hypotheses_follow)
{
    give_pose(0, 40, 3.1);
    take(0);
    ck_assert(here.decision.is_unproven);
    ck_assert_double_lt(here.decision.certainty, 0.8);
    ck_assert_int_ne(here.alignment.result.outcome, NDT_CONVERGED);
    ck_assert(ndtd_relocalizer_is_active(here.relocalizer));
    ck_assert_int_gt(here.matcher->guesses, 5);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        follow();
        take(i);
        if (here.alignment.result.outcome == NDT_CONVERGED)
            ck_assert_double_lt(error_m(i), 1);
    }
}

TEST(without_a_pose_a_search_replaces_it)
{
    int found = 0;
    ck_assert_ptr_null(ndtd_relocalizer_reference(here.relocalizer));
    for (size_t i = 0; i < DRIVE_SCANS && !found; i++) {
        take(i);
        found = here.decision.is_replaced;
        if (here.alignment.result.outcome == NDT_CONVERGED)
            ck_assert_double_lt(error_m(i), 1);
        follow();
    }
    ck_assert(found);
    ck_assert(here.track.has_pose);
}

/* Four scans of a drive, and then a pose that is 30 m off. */
static void give_in_mid_drive(void)
{
    give_pose(0, 0, 0);
    for (size_t i = 0; i < 4; i++) {
        take(i);
        follow();
    }
    give_pose(4, -30, 0.5);
}

TEST(a_pose_given_in_mid_drive_is_refused_where_the_track_fits)
{
    give_in_mid_drive();
    take(4);
    ck_assert(here.decision.is_refused && here.decision.is_replaced);
    ck_assert_double_eq_tol(here.decision.refused_m, 30, 2);
    ck_assert_double_lt(error_m(4), 0.1);
    follow();
    take(5);
    ck_assert(!here.decision.is_refused && !here.decision.is_unproven);
    ck_assert_int_eq(here.alignment.result.outcome, NDT_CONVERGED);
}

/* Recovery has begun at the given pose: its views say nothing about the track. */
TEST(a_refused_pose_takes_its_views_along)
{
    give_in_mid_drive();
    here.relocalizer->recovery.is_active = 1;
    ndtd_places_begin(here.relocalizer);
    here.relocalizer->recovery.has_view = 1;
    take(4);
    ck_assert(here.decision.is_refused && !here.decision.is_unproven);
    ck_assert_int_eq(here.alignment.result.outcome, NDT_CONVERGED);
    ck_assert_double_lt(error_m(4), 0.1);
}

/* One that was deskewed with a wrong motion fits no place well: it must not replace the view before. */
TEST(a_scan_that_fits_nowhere_is_no_view)
{
    const struct ndtd_relocalization now = {.relocalizer = here.relocalizer, .alignment = &here.alignment};
    struct ndtd_recovery *recovery = &here.relocalizer->recovery;
    give_pose(0, 0, 0);
    ndtd_belief_begin(&recovery->places, &drive.truth[0], -5);
    recovery->has_places = 1;
    recovery->places.log_fit_unfound = 0;
    ndtd_places_keep(&now);
    ck_assert_uint_eq(recovery->views, 0);
    recovery->places.log_fit_unfound = -4;
    ndtd_places_keep(&now);
    ck_assert_uint_eq(recovery->views, 1);
}

TEST(a_place_that_a_search_has_found_leaves_the_track)
{
    give_pose(0, 40, 3.1);
    take(0);
    ck_assert(ndtd_relocalizer_is_active(here.relocalizer));
    ck_assert_int_eq(ndtd_relocalizer_has_left_track(here.relocalizer),
                     here.relocalizer->recovery.leading.is_found);
    here.relocalizer->recovery.leading.is_found = 1;
    ck_assert(ndtd_relocalizer_has_left_track(here.relocalizer));
    here.relocalizer->recovery.is_active = 0;
    ck_assert(!ndtd_relocalizer_has_left_track(here.relocalizer));
}

/* Wheels that stand still make scan after scan fit a little better elsewhere: the sum tells, one scan does not. */
TEST(contradicted_odometry_leaves_the_track)
{
    struct ndtd_relocalizer *relocalizer = here.relocalizer;
    give_pose(0, 0, 0);
    relocalizer->odometry_lead_sum = 0.9 * NDTD_CONTRADICTION;
    relocalizer->recovery.against_odometry = 1;
    ck_assert(!ndtd_is_odometry_contradicted(relocalizer));
    relocalizer->recovery.against_odometry = 2;
    ck_assert(ndtd_is_odometry_contradicted(relocalizer));
    relocalizer->recovery.against_odometry = 0;
    relocalizer->odometry_lead_sum = NDTD_CONTRADICTION;
    ck_assert(ndtd_is_odometry_contradicted(relocalizer));
    ck_assert(!ndtd_relocalizer_has_left_track(relocalizer));
    relocalizer->recovery.is_active = 1;
    ck_assert(ndtd_relocalizer_has_left_track(relocalizer));
}

TEST(what_ends_a_contradiction_of_odometry)
{
    struct ndtd_relocalizer *relocalizer = here.relocalizer;
    double *sum = &relocalizer->odometry_lead_sum;
    give_pose(0, 0, 0);
    *sum = 2 * NDTD_CONTRADICTION;
    take(0);
    ndtd_relocalizer_verify(relocalizer, &here.alignment.updated, &here.alignment.result);
    ck_assert_double_lt(*sum, NDTD_CONTRADICTION);
    *sum = NDTD_CONTRADICTION;
    ndtd_relocalizer_extend(relocalizer, &here.track.state);
    ck_assert_double_eq(*sum, 0);
    *sum = NDTD_CONTRADICTION;
    ndtd_relocalizer_set_map(relocalizer, drive.map, NULL);
    ck_assert_double_eq(*sum, 0);
    *sum = NDTD_CONTRADICTION;
    ndtd_relocalizer_start_at(relocalizer, NULL);
    ck_assert_double_eq(*sum, 0);
}

/* However small the budget is: the track is aligned before the pose, for which no time is left here. */
TEST(the_track_comes_back_without_time_for_the_pose_that_was_given)
{
    give_in_mid_drive();
    ck_assert_int_eq(begin(4), 1);
    ndtd_refuse(&here.alignment.result, NDT_DEADLINE, "no time is left");
    must(ndtd_relocalizer_decide_unaligned(here.relocalizer, &here.alignment, &here.decision, &err));
    ck_assert(here.decision.is_refused && here.decision.is_replaced);
    ck_assert_int_eq(here.alignment.result.outcome, NDT_CONVERGED);
    ck_assert_double_lt(error_m(4), 0.1);
}

/* Speeds and accelerations that the carrier cannot have lead nowhere. */
TEST(the_carrier_comes_no_farther_than_it_can)
{
    drive.settings.recovery.max_speed_mps = 20;
    drive.settings.recovery.max_acceleration_mps2 = 2;
    ck_assert_double_eq_tol(ndtd_reach_m(&drive.settings, 5, 2), 14, 1e-9);
    ck_assert_double_eq_tol(ndtd_reach_m(&drive.settings, 19, 10), 200, 1e-9);
    ck_assert_double_eq(ndtd_reach_m(&drive.settings, 19, 0), 0);
}

TEST(another_map_forgets_what_was_found_in_this)
{
    give_pose(0, 40, 3.1);
    take(0);
    follow();
    take(1);
    ck_assert(ndtd_relocalizer_has_hypotheses(here.relocalizer));
    ndtd_relocalizer_set_map(here.relocalizer, drive.map, drive.map);
    ck_assert(ndtd_relocalizer_has_hypotheses(here.relocalizer));
    ndtd_relocalizer_set_map(here.relocalizer, drive.map, NULL);
    ck_assert(!ndtd_relocalizer_has_hypotheses(here.relocalizer));
}

static void setup_without_search(void)
{
    street_drive_make();
    street_drive_set("backend.name", "cpu");
    memset(&here, 0, sizeof(here));
    open_parts(0);
}

FIXTURE(setup_without_search, teardown)

TEST(without_a_searcher_it_says_what_it_cannot)
{
    struct ndt_localize_report report;
    const struct ndt_request_message request = {.hint.apply = 1};
    ck_assert(!ndtd_relocalizer_can_recover(here.relocalizer, 1));
    ck_assert(!ndtd_relocalizer_can_recover(here.relocalizer, 0));
    give_pose(0, 40, 3.1);
    take(0);
    ck_assert(!here.decision.is_unproven && !ndtd_relocalizer_is_active(here.relocalizer));
    ndtd_relocalizer_request(here.relocalizer, &request);
    ck_assert(!ndtd_relocalizer_is_requested(here.relocalizer));
    ck_assert_int_eq(ndtd_relocalizer_answer(here.relocalizer, &report), 1);
    ck_assert(!report.accepted && *report.reason);
}
