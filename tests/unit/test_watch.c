/* The search for a better place while the pose is accepted: two streets that look alike, of which one has changed.
 */
#include <check.h>

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
            if (copy == 1 && is_changed && (int)floor(street->x_m[i] / 3) % 4 == 0)
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

/* Follows the drive from its true start, or from the same place of the other street. */
static const struct ndtd_watch_report *drive_from(double aside_m)
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
    }
    return ndtd_relocalizer_watch(here.relocalizer);
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
    here.relocalizer->watch.has_started = 0;
    take(DRIVE_SCANS - 1); /* its search is done, and nobody has taken the answer */
    ck_assert(ndtd_searcher_is_free(here.searcher, NDTD_SEARCH_RECOVERY));
    ck_assert(ndtd_searcher_is_free(here.searcher, NDTD_SEARCH_LOCALIZE));
}
