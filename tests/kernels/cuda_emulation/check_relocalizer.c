/** @file
 * @brief The relocaliser with `resident` on the emulated device: guesses and places of a scan are aligned in one
 * launch, and a device that fails or hangs leaves them to the CPU. No pose that is called converged is wrong. */
#include <check.h>

#include "cuda_runtime_api.h"
#include "ndt/clock.h"
#include "relocalizer_drive.h"

static const double NEAR_M = 0.5;

static void setup(void)
{
    ndt_backends_own_process();
    street_drive_make();
    street_drive_set("backend.name", "cuda-emulated");
    street_drive_set("cuda.pipeline", "resident");
    street_drive_set("cuda.shape", "block");
    street_drive_set("preprocess.sample_count", "300");
    memset(&here, 0, sizeof(here));
    open_parts(1);
}

static void teardown(void)
{
    close_parts();
    street_drive_free();
}

static uint64_t launches(void)
{
    struct ndt_backend_counters counters;
    here.matcher->backend->ops->counters(here.matcher->backend, &counters);
    return counters.launches;
}

static int is_on_device(void)
{
    return ndt_aligner_solve_limit(here.matcher->aligner) > 0;
}

static void expect_proposal(void)
{
    struct ndt_pose proposed;
    int is_proposed;
    must(ndtd_relocalizer_propose(here.relocalizer, &here.alignment, &proposed, &is_proposed, &err));
    ck_assert(is_proposed);
    ck_assert_uint_gt(here.relocalizer->proposals.found->count, 1);
    ck_assert_double_lt(ndt_pose_distance_m(&proposed, &drive.truth[0]), NEAR_M);
}

FIXTURE(setup, teardown)

TEST(the_places_of_a_window_are_aligned_in_one_launch)
{
    verify_start();
    predict_wide();
    const uint64_t before = launches();
    expect_proposal();
    ck_assert_uint_eq(launches() - before, 1);
}

/* A second launch finds what the scan tells about each pose. */
TEST(the_guesses_of_a_scan_are_aligned_in_one_launch)
{
    enum { GUESSES = 8 };
    verify_start();
    const struct ndt_align_params params = ndtd_matcher_params(here.matcher, &here.alignment.prior);
    for (int i = 0; i < GUESSES; i++) {
        const struct ndt_pose off = ndt_pose_from_rpy((double[3]){0.1 * i - 0.4, 0, 0}, (double[3]){0, 0, 0});
        struct ndt_prior *prior = &here.matcher->batch.priors[i];
        prior->T_map_sensor = ndt_pose_compose(&drive.truth[0], &off);
        ndtd_matcher_wide_covariance(here.matcher, prior->covariance);
    }
    const uint64_t before = launches();
    must(ndtd_matcher_align_batch(here.matcher, &params, GUESSES, &err));
    ck_assert_uint_eq(launches() - before, 2);
    for (int i = 0; i < GUESSES; i++) {
        const struct ndt_align_result *result = &here.matcher->batch.results[i];
        ck_assert_int_eq(result->outcome, NDT_CONVERGED);
        ck_assert_double_lt(ndt_pose_distance_m(&result->T_map_sensor, &drive.truth[0]), 0.1);
    }
}

/* The threads, or the device once it is open again, align the same places for the same scan. */
TEST_EACH(a_device_that_fails_in_a_window_search_costs_nothing, 1, 3)
{
    verify_start();
    predict_wide();
    emulated_fail_launches(0, _i);
    expect_proposal();
    ck_assert_int_eq(is_on_device(), _i == 1);
    emulated_fail_launches(0, 0);
}

TEST(a_window_search_that_hangs_is_left_to_the_cpu)
{
    verify_start();
    predict_wide();
    here.matcher->deadline_us = ndt_clock_us() + 10e6;
    emulated_hang_launches(0, 1);
    expect_proposal();
    emulated_end_hang();
    ck_assert(!is_on_device());
}

/* A vehicle that is lost, by a wrong pose, with a device that works, and with one that is lost twice. */
TEST_EACH(a_lost_vehicle_is_never_wrong, 0, 2)
{
    int found = 0;
    give_pose(0, 40, 3.1);
    emulated_fail_launches(1, 2 * _i);
    take(0);
    ck_assert(here.decision.is_unproven);
    ck_assert_int_gt(here.matcher->guesses, 10);
    ck_assert_int_eq(is_on_device(), _i == 0);
    for (size_t i = 1; i < DRIVE_SCANS; i++) {
        follow();
        take(i);
        found += here.alignment.result.outcome == NDT_CONVERGED;
        if (here.alignment.result.outcome == NDT_CONVERGED)
            ck_assert_double_lt(error_m(i), 1);
    }
    ck_assert_int_gt(found, 0);
}
