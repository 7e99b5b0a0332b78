/* The search for a better place while the pose is accepted: two streets that look alike, of which one has changed.
 */
#include <check.h>
#include <time.h>

#include "relocalizer_drive.h"

static const double ASIDE_M = 150; /* of the second street */
static struct ndt_cloud two_streets;

/* The street, and a copy aside of it that lacks the points of every fourth strip of 3 m when `is_changed`. */
static void make_map(int is_changed)
{
    const struct ndt_cloud *street = &drive.map_points;
    two_streets.count = 0;
    must(ndt_cloud_reserve(&two_streets, 2 * street->count, 0, &err));
    for (size_t copy = 0; copy < 2; copy++)
        for (size_t i = 0; i < street->count; i++) {
            if (copy == 1 && is_changed && (int)floorf(street->x_m[i] / 3) % 4 == 0)
                continue;
            two_streets.x_m[two_streets.count] = street->x_m[i];
            two_streets.y_m[two_streets.count] = street->y_m[i] + (copy == 1 ? (float)ASIDE_M : 0);
            two_streets.z_m[two_streets.count++] = street->z_m[i];
        }
    ndt_map_release(drive.map);
    must(ndt_map_from_cloud(&drive.map, &drive.settings.map, &two_streets, &err));
}

static void open_with(int is_changed)
{
    make_map(is_changed);
    open_parts(1);
    here.relocalizer->parts.is_watched = 1;
}

static void setup(void)
{
    street_drive_make();
    street_drive_set("backend.name", "cpu");
    ndt_cloud_init(&two_streets);
    memset(&here, 0, sizeof(here));
}

static void teardown(void)
{
    close_parts();
    ndt_cloud_free(&two_streets);
    street_drive_free();
}

FIXTURE(setup, teardown)

/* Follows the drive from its true start, or from the same place of the other street. The scans after the first one
 * are watched from number `resumed` on: so long its search takes. */
static const struct ndtd_watch_report *drive_with_search_until(double aside_m, size_t resumed)
{
    struct ndt_pose start = drive.truth[0];
    const struct ndt_twist twist = {{8, 0, 0}, {0, 0, 0.05}};
    start.t_m[1] += aside_m;
    ndt_track_reset(&here.track, DRIVE_START_NS, &start, &twist, NULL);
    ndtd_relocalizer_start_at(here.relocalizer, &here.track.state);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        take(i);
        follow();
        ck_assert_int_eq(here.alignment.result.outcome, NDT_CONVERGED);
        if (i == 0 || i >= resumed)
            must(ndtd_relocalizer_watch_scan(here.relocalizer, &err));
    }
    return ndtd_relocalizer_watch(here.relocalizer);
}

static const struct ndtd_watch_report *drive_from(double aside_m)
{
    return drive_with_search_until(aside_m, 1);
}

TEST(a_better_place_is_told)
{
    open_with(1);
    const struct ndtd_watch_report *report = drive_from(ASIDE_M);
    ck_assert_uint_eq(report->checks, 1);
    ck_assert_uint_eq(report->elsewhere, 1);
    ck_assert_double_eq_tol(report->elsewhere_m, ASIDE_M, 1);
    ck_assert_double_eq_tol(error_m(DRIVE_SCANS - 1), ASIDE_M, 1); /* told, not changed */
}

/* The vehicle is 5 m away by then. */
TEST(a_better_place_is_told_after_a_long_search)
{
    open_with(1);
    ck_assert_uint_eq(drive_with_search_until(ASIDE_M, 6)->elsewhere, 1);
}

TEST(a_place_that_fits_worse_is_not)
{
    open_with(1);
    const struct ndtd_watch_report *report = drive_from(0);
    ck_assert_uint_eq(report->checks, 1);
    ck_assert_uint_eq(report->elsewhere, 0);
    ck_assert_uint_eq(here.relocalizer->watch.rivals.count, 0);
}

TEST(a_place_that_fits_as_well_is_not)
{
    open_with(0);
    ck_assert_uint_eq(drive_from(ASIDE_M)->elsewhere, 0);
    ck_assert_uint_eq(here.relocalizer->watch.report.checks, 1);
}

TEST(searches_come_after_their_period)
{
    street_drive_set("recovery.check_s", "0.35");
    open_with(0);
    ck_assert_uint_eq(drive_from(0)->checks, 3);
}

TEST(none_without_a_period_without_recovery_and_in_a_replay)
{
    street_drive_set("recovery.check_s", "0");
    open_with(1);
    ck_assert_uint_eq(drive_from(ASIDE_M)->checks, 0);
    street_drive_set("recovery.check_s", "10");
    street_drive_set("recovery.enable", "false");
    ck_assert_uint_eq(drive_from(ASIDE_M)->checks, 0);
    street_drive_set("recovery.enable", "true");
    here.relocalizer->parts.is_watched = 0;
    ck_assert_uint_eq(drive_from(ASIDE_M)->checks, 0);
}

/* A search for a lost pose, or on request, does not wait for this one. */
TEST(others_come_first)
{
    open_with(0);
    (void)drive_from(0);
    here.relocalizer->watch.has_started = here.relocalizer->watch.has_seen = 0;
    must(ndtd_relocalizer_watch_scan(here.relocalizer, &err)); /* its search is done, nobody has taken the answer */
    ck_assert(ndtd_searcher_claim(here.searcher, NDTD_SEARCH_RECOVERY));
    ck_assert(ndtd_searcher_claim(here.searcher, NDTD_SEARCH_LOCALIZE));
}

/* Recovery and requests leave the answer of their last search behind. */
TEST_EACH(answers_that_nobody_takes_do_not_stop_it, 0, 2)
{
    const enum ndtd_search_owner owners[] = {NDTD_SEARCH_RECOVERY, NDTD_SEARCH_LOCALIZE};
    open_with(0);
    give_pose(0, 0, 0);
    take(0);
    const struct ndtd_search_request request = ndtd_search_request_of(here.matcher, &drive.settings, owners[_i]);
    must(ndtd_searcher_start(here.searcher, &request, &err));
    ck_assert_uint_eq(drive_from(0)->checks, 1);
}

TEST(an_answer_from_before_a_pause_is_dropped)
{
    open_with(1);
    (void)drive_with_search_until(ASIDE_M, DRIVE_SCANS); /* the answer to the first scan waits */
    here.relocalizer->recovery.is_active = 1;
    must(ndtd_relocalizer_watch_scan(here.relocalizer, &err));
    here.relocalizer->recovery.is_active = 0;
    must(ndtd_relocalizer_watch_scan(here.relocalizer, &err));
    ck_assert_uint_eq(here.relocalizer->watch.report.checks, 0);
    ck_assert_uint_eq(here.relocalizer->watch.rivals.count, 0);
}

/* A search that runs in the thread is cancelled for another owner, which can start soon after, and by another map.
 */
TEST_OF_THREADS(a_running_search_gives_way)
{
    const struct ndtd_searcher_config config = {
        .compute = &drive.settings.compute, .backend = "cpu", .is_background = 1};
    struct ndtd_searcher *searcher;
    open_with(0);
    give_pose(0, 0, 0);
    take(0);
    must(ndtd_searcher_create(&searcher, &config, &err));
    ndtd_searcher_set_map(searcher, drive.map);
    const struct ndtd_search_request request =
        ndtd_search_request_of(here.matcher, &drive.settings, NDTD_SEARCH_WATCH);
    must(ndtd_searcher_start(searcher, &request, &err));
    while (!ndtd_searcher_claim(searcher, NDTD_SEARCH_RECOVERY))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    must(ndtd_searcher_start(searcher, &request, &err));
    ndtd_searcher_set_map(searcher, NULL);
    const struct ndtd_search_answer *answer;
    while (!(answer = ndtd_searcher_take(searcher, NDTD_SEARCH_WATCH)))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    ck_assert(answer->status != NDT_OK || answer->result.is_cancelled);
    ndtd_searcher_destroy(searcher);
}
