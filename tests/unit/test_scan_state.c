/* The state after a scan, and its changes as lines of text. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "ndtd/scan_state.h"
#include "run_tests.h"

static enum ndt_state next(enum ndt_state before, enum ndt_outcome outcome, double deviation_m)
{
    const struct ndtd_scan_facts scan = {
        .has_pose = 1, .outcome = outcome, .deviation_m = deviation_m, .lost_deviation_m = 2};
    return ndtd_scan_state_next(before, &scan);
}

TEST(without_a_pose_it_is_initialising)
{
    const struct ndtd_scan_facts scan = {.has_pose = 0, .outcome = NDT_NO_GUESS, .lost_deviation_m = 2};
    for (int before = 0; before < NDT_STATE_COUNT; before++)
        ck_assert_int_eq(ndtd_scan_state_next((enum ndt_state)before, &scan), NDT_STATE_INITIALISING);
}

TEST(a_converged_scan_makes_it_tracking)
{
    for (int before = 0; before < NDT_STATE_COUNT; before++)
        ck_assert_int_eq(next((enum ndt_state)before, NDT_CONVERGED, 0.1), NDT_STATE_TRACKING);
}

TEST(only_tracking_turns_into_coasting)
{
    for (int outcome = 0; outcome < NDT_OUTCOME_COUNT; outcome++) {
        if (outcome == NDT_CONVERGED || outcome == NDT_LOST || outcome == NDT_OFF_MAP)
            continue;
        ck_assert_int_eq(next(NDT_STATE_TRACKING, (enum ndt_outcome)outcome, 2), NDT_STATE_COASTING);
        ck_assert_int_eq(next(NDT_STATE_COASTING, (enum ndt_outcome)outcome, 2), NDT_STATE_COASTING);
        ck_assert_int_eq(next(NDT_STATE_LOST, (enum ndt_outcome)outcome, 2), NDT_STATE_LOST);
        ck_assert_int_eq(next(NDT_STATE_RECOVERING, (enum ndt_outcome)outcome, 2), NDT_STATE_RECOVERING);
        ck_assert_int_eq(next(NDT_STATE_INITIALISING, (enum ndt_outcome)outcome, 2), NDT_STATE_INITIALISING);
    }
}

TEST(an_uncertain_position_or_a_lost_outcome_is_lost)
{
    for (int before = 0; before < NDT_STATE_COUNT; before++) {
        ck_assert_int_eq(next((enum ndt_state)before, NDT_LOW_SCORE, 2.001), NDT_STATE_LOST);
        ck_assert_int_eq(next((enum ndt_state)before, NDT_OFF_MAP, 0.1), NDT_STATE_LOST);
        ck_assert_int_eq(next((enum ndt_state)before, NDT_LOST, 0.1), NDT_STATE_LOST);
    }
}

/* An uncertain attitude changes nothing where the pose is not trusted yet, as at a start. */
TEST(an_uncertain_attitude_is_not_trusted)
{
    struct ndtd_scan_facts scan = {
        .has_pose = 1, .outcome = NDT_LOW_SCORE, .lost_deviation_m = 2, .deviation_rad = 1.01 * NDTD_LOST_RAD};
    ck_assert_int_eq(ndtd_scan_state_next(NDT_STATE_TRACKING, &scan), NDT_STATE_LOST);
    ck_assert_int_eq(ndtd_scan_state_next(NDT_STATE_COASTING, &scan), NDT_STATE_LOST);
    ck_assert_int_eq(ndtd_scan_state_next(NDT_STATE_INITIALISING, &scan), NDT_STATE_INITIALISING);
    scan.deviation_rad = 0.99 * NDTD_LOST_RAD;
    ck_assert_int_eq(ndtd_scan_state_next(NDT_STATE_TRACKING, &scan), NDT_STATE_COASTING);
}

/* A place that a search has found is not the track's, however certain the pose there is. */
TEST(a_pose_that_has_left_the_track_is_not_trusted)
{
    const struct ndtd_scan_facts scan = {
        .has_pose = 1, .has_left_track = 1, .is_recovering = 1, .outcome = NDT_LOW_SCORE, .lost_deviation_m = 2};
    ck_assert_int_eq(ndtd_scan_state_next(NDT_STATE_TRACKING, &scan), NDT_STATE_RECOVERING);
    ck_assert_int_eq(ndtd_scan_state_next(NDT_STATE_COASTING, &scan), NDT_STATE_RECOVERING);
    ck_assert_int_eq(ndtd_scan_state_next(NDT_STATE_INITIALISING, &scan), NDT_STATE_INITIALISING);
}

/* The state before does not matter: odometry knows where the edge was left, whatever the scans told since. */
TEST(beyond_the_edge_it_is_extending_while_certain)
{
    struct ndtd_scan_facts scan = {
        .has_pose = 1, .is_extending = 1, .outcome = NDT_OFF_MAP, .lost_deviation_m = 2, .deviation_m = 2};
    ck_assert_int_eq(ndtd_scan_state_next(NDT_STATE_TRACKING, &scan), NDT_STATE_EXTENDING);
    ck_assert_int_eq(ndtd_scan_state_next(NDT_STATE_EXTENDING, &scan), NDT_STATE_EXTENDING);
    scan.outcome = NDT_CONVERGED;
    ck_assert_int_eq(ndtd_scan_state_next(NDT_STATE_EXTENDING, &scan), NDT_STATE_TRACKING);
    scan.outcome = NDT_OFF_MAP;
    scan.deviation_rad = 1.01 * NDTD_LOST_RAD;
    ck_assert_int_eq(ndtd_scan_state_next(NDT_STATE_EXTENDING, &scan), NDT_STATE_LOST);
    scan.deviation_rad = 0;
    scan.deviation_m = 2.001;
    ck_assert_int_eq(ndtd_scan_state_next(NDT_STATE_EXTENDING, &scan), NDT_STATE_LOST);
}

TEST(tracking_coasting_and_extending_are_trusted)
{
    struct ndtd_scan_record record = {.state = NDT_STATE_LOST};
    for (int i = 0; i < NDT_STATE_COUNT; i++) {
        const enum ndt_state state = (enum ndt_state)i;
        const int is_trusted =
            state == NDT_STATE_TRACKING || state == NDT_STATE_COASTING || state == NDT_STATE_EXTENDING;
        ck_assert_int_eq(ndtd_state_is_trusted(state), is_trusted);
        ck_assert_int_eq(ndt_state_name_is_trusted(ndt_state_name(state)), is_trusted);
    }
    ck_assert(ndtd_scan_is_untrusted(&record));
    record.result.outcome = NDT_MERGED; /* the scan that completes the sweep counts */
    ck_assert(!ndtd_scan_is_untrusted(&record));
}

TEST(a_change_is_one_line)
{
    char line[512];
    struct ndtd_state_change change = {.seq = 0};
    struct ndtd_scan_record record = {.seq = 7, .stamp_ns = 1234, .confidence = 0.875};
    record.result.T_map_sensor = (struct ndt_pose){{1, 2, 3}, {0, 0, 0.7071067811865476, 0.7071067811865476}};
    ck_assert(!ndtd_state_change_update(&change, &record)); /* it begins as initialising */
    record.state = NDT_STATE_TRACKING;
    ck_assert(ndtd_state_change_update(&change, &record));
    ck_assert_str_eq(
        ndtd_state_change_line(&change, line, sizeof(line)),
        "state: initialising -> tracking at scan 7, stamp 1234 ns, x 1.00 y 2.00 z 3.00 m yaw 90.0 deg: "
        "converged, confidence 0.875");
    record.seq = 8;
    ck_assert(!ndtd_state_change_update(&change, &record));
    ck_assert_uint_eq(change.seq, 7);
    record.state = NDT_STATE_LOST;
    record.result.outcome = NDT_OFF_MAP;
    strcpy(record.result.reason, "no point met a voxel");
    ck_assert(ndtd_state_change_update(&change, &record));
    ck_assert_ptr_nonnull(strstr(ndtd_state_change_line(&change, line, sizeof(line)),
                                 "state: tracking -> lost at scan 8, stamp 1234 ns, x 1.00"));
    ck_assert_ptr_nonnull(strstr(line, " deg: off_map: no point met a voxel"));
    record.state = NDT_STATE_INITIALISING;
    record.result.outcome = NDT_NO_GUESS;
    record.confidence = NAN;
    *record.result.reason = '\0';
    ck_assert(ndtd_state_change_update(&change, &record));
    ck_assert_ptr_nonnull(strstr(ndtd_state_change_line(&change, line, sizeof(line)), ", no pose: no_guess"));
}
