/* The relocaliser by itself: a matcher on the CPU, an estimator and a map, without pipeline and daemon. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "backends.h"
#include "relocalizer_state.h"
#include "run_tests.h"
#include "street_drive.h"

/* Parts of a pipeline that the relocaliser uses. */
static struct {
    struct ndt_track track;
    struct ndtd_gnss_fix gnss;
    struct ndtd_matcher *matcher;
    struct ndtd_searcher *searcher;
    struct ndtd_relocalizer *relocalizer;
    struct ndtd_alignment alignment;
    struct ndtd_decision decision;
} here;

static void open_parts(int has_searcher)
{
    struct ndtd_matcher *matcher = here.matcher = calloc(1, sizeof(*matcher));
    const struct ndtd_searcher_config config = {.compute = &drive.settings.compute, .backend = "cpu"};
    ck_assert_ptr_nonnull(matcher);
    ndt_track_init(&here.track, &drive.settings.track);
    matcher->settings = &drive.settings;
    matcher->track = &here.track;
    matcher->gnss = &here.gnss;
    matcher->map = drive.map;
    ndt_cloud_init(&matcher->raw);
    must(ndt_backend_open_failover(&matcher->backend, "cpu", &drive.settings.compute, &err));
    must(ndt_aligner_create(&matcher->aligner, matcher->backend, &err));
    must(ndt_aligner_set_map(matcher->aligner, drive.map, &err));
    must(ndt_preprocessor_create(&matcher->preprocessor, &err));
    if (has_searcher)
        must(ndtd_searcher_create(&here.searcher, &config, &err));
    const struct ndtd_relocalizer_parts parts = {.matcher = matcher,
                                                 .track = &here.track,
                                                 .gnss = &here.gnss,
                                                 .searcher = here.searcher,
                                                 .compute = &drive.settings.compute};
    must(ndtd_relocalizer_create(&here.relocalizer, &parts, &err));
    ndtd_relocalizer_set_settings(here.relocalizer, &drive.settings);
    ndtd_relocalizer_set_map(here.relocalizer, NULL, drive.map);
}

static void setup(void)
{
    street_drive_make();
    memset(&here, 0, sizeof(here));
    open_parts(1);
}

static void teardown(void)
{
    ndtd_relocalizer_destroy(here.relocalizer);
    ndtd_searcher_destroy(here.searcher);
    ndt_aligner_destroy(here.matcher->aligner);
    here.matcher->backend->ops->close(here.matcher->backend);
    ndt_preprocessor_destroy(here.matcher->preprocessor);
    ndt_cloud_free(&here.matcher->raw);
    free(here.matcher);
    street_drive_free();
}

/* An initial pose at the stamp of a scan, off along and across the street, as a pipeline takes it. */
static void give_pose(size_t scan, double along_m, double turn_rad)
{
    const int64_t stamp_ns = DRIVE_START_NS + DRIVE_STEP_NS * (int64_t)scan;
    const struct ndt_pose off = ndt_pose_from_rpy((double[3]){along_m, 0, 0}, (double[3]){0, 0, turn_rad});
    const struct ndt_pose pose = ndt_pose_compose(&drive.truth[scan], &off);
    const struct ndt_twist twist = {{8, 0, 0}, {0, 0, 0.05}};
    (void)ndtd_relocalizer_keep_track(here.relocalizer, stamp_ns, 1);
    ndt_track_reset(&here.track, stamp_ns, &pose, &twist, NULL);
    ndtd_relocalizer_start_at(here.relocalizer, &here.track.state);
}

/* Takes one scan up to its prediction and what the relocaliser begins with. Returns whether there is a pose. */
static int begin(size_t number)
{
    struct ndtd_matcher *matcher = here.matcher;
    struct ndtd_alignment *alignment = &here.alignment;
    struct ndt_scan_header header;
    must(ndt_scan_header_decode(drive.scans[number].data, drive.scans[number].size, &header, &err));
    must(ndt_scan_points(drive.scans[number].data, drive.scans[number].size, &header, 0, &matcher->raw, &err));
    *alignment = (struct ndtd_alignment){.is_updated = 0};
    matcher->scan = (struct ndtd_scan){.seq = header.seq,
                                       .stamp_ns = header.stamp_ns,
                                       .frame_id = "lidar",
                                       .T_base_sensor = ndt_pose_identity(),
                                       .preprocess = drive.settings.preprocess};
    matcher->scan.preprocess.deskew = NDT_DESKEW_OFF;
    must(ndt_preprocess_sweep(&matcher->scan.preprocess, &matcher->raw, &matcher->scan.sweep, &err));
    const int has_pose = ndtd_scan_predict(&matcher->scan, &here.track, 0);
    ndtd_matcher_begin(matcher);
    ndtd_alignment_begin(alignment, &matcher->scan, has_pose ? &here.track.state : NULL, &matcher->scan.predicted);
    must(ndtd_matcher_preprocess(matcher, &err));
    must(ndtd_relocalizer_begin(here.relocalizer, &here.decision, &err));
    return has_pose;
}

/* One scan, as a pipeline takes it from its points to the estimator. */
static void take(size_t number)
{
    struct ndtd_matcher *matcher = here.matcher;
    struct ndtd_alignment *alignment = &here.alignment;
    const int has_pose = begin(number);
    const struct ndt_align_params params = ndtd_matcher_params(matcher, &alignment->prior);
    if (has_pose) {
        must(ndtd_matcher_align(matcher, FIRST_PASS, &params, &alignment->prior.T_map_sensor, alignment, &err));
        if (ndtd_outcome_is_usable(alignment->result.outcome))
            ndtd_alignment_update(alignment, &matcher->scan, &here.track, &matcher->motion[FIRST_PASS].twist);
    }
    must(ndtd_relocalizer_decide(here.relocalizer, alignment, &here.decision, &err));
    ndtd_relocalizer_report(here.relocalizer, &here.decision, &alignment->result);
}

/* The estimator follows the decision. */
static void follow(void)
{
    if (here.decision.is_replaced)
        ndt_track_adopt(&here.track, &here.decision.replacement, 0);
    if (!here.alignment.is_updated) {
        ndt_track_coast(&here.track, &here.alignment.predicted);
        return;
    }
    ndt_track_commit(&here.track, &here.alignment.updated);
    if (here.alignment.result.outcome == NDT_CONVERGED)
        ndtd_relocalizer_verify(here.relocalizer, &here.alignment.updated, &here.alignment.result);
}

static double error_m(size_t scan)
{
    return ndt_pose_distance_m(&here.alignment.updated.T_map_base, &drive.truth[scan]);
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
    const struct ndt_pose off = ndt_pose_from_rpy((double[3]){2.5, -1, 0}, (double[3]){0, 0, 0.25});
    const struct ndt_align_result good = {.outcome = NDT_CONVERGED,
                                          .scores = {.nvtl_normalized = 0.6, .match_ratio = 1}};
    struct ndt_pose proposed;
    int is_proposed;
    give_pose(0, 0, 0);
    take(0);
    follow();
    ndtd_relocalizer_verify(here.relocalizer, &here.track.state, &good);
    for (int i = 0; i < 6; i++)
        here.alignment.predicted.P[(NDT_TRACK_STATES + 1) * i] = i < 3 ? 0.01 : 1e-5;
    must(ndtd_relocalizer_propose(here.relocalizer, &here.alignment, &proposed, &is_proposed, &err));
    ck_assert(!is_proposed); /* it is trusted */
    here.alignment.predicted.T_map_base = ndt_pose_compose(&drive.truth[0], &off);
    for (int i = 0; i < 6; i++)
        here.alignment.predicted.P[(NDT_TRACK_STATES + 1) * i] = i < 3 ? 1 : 0.01;
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
    ck_assert_int_gt(here.matcher->guesses, 10);
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

TEST(a_pose_given_in_mid_drive_is_refused_where_the_track_fits)
{
    give_pose(0, 0, 0);
    for (size_t i = 0; i < 4; i++) {
        take(i);
        follow();
    }
    give_pose(4, -30, 0.5);
    take(4);
    ck_assert(here.decision.is_refused && here.decision.is_replaced);
    ck_assert_double_eq_tol(here.decision.refused_m, 30, 2);
    ck_assert_double_lt(error_m(4), 0.1);
    follow();
    take(5);
    ck_assert(!here.decision.is_refused && !here.decision.is_unproven);
    ck_assert_int_eq(here.alignment.result.outcome, NDT_CONVERGED);
}

/* However small the budget is: the track is aligned before the pose, for which no time is left here. */
TEST(the_track_comes_back_without_time_for_the_pose_that_was_given)
{
    give_pose(0, 0, 0);
    for (size_t i = 0; i < 4; i++) {
        take(i);
        follow();
    }
    give_pose(4, -30, 0.5);
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
