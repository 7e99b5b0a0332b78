/* The covariance of poses whose scans were distorted by motion that nothing has undone. */
#include "run_tests.h"
#include "track_cases.h"

static const double SWEEP_S = 0.1;

/* A view of all directions: its points are 10 m away. */
static struct ndt_observation round_view(void)
{
    struct ndt_observation out = {0};
    for (int i = 0; i < 6; i++)
        out.information[0][7 * i] = out.curvature[7 * i] = i < 3 ? 1e5 : 1e7;
    return out;
}

/* Follows scans of a carrier that moves with a constant twist. */
static void follow(const struct ndt_twist *twist, double distorted_s, int scans)
{
    const struct ndt_pose start = ndt_pose_identity();
    const struct ndt_observation observation = round_view();
    setup();
    ndt_track_reset(&track, START_NS, &start, twist, NULL);
    for (int scan = 1; scan <= scans; scan++) {
        struct ndt_track_state predicted, updated;
        ck_assert(ndt_track_predict(&track, after(scan * SWEEP_S), &predicted));
        const struct ndt_track_measurement measurement = {.T_map_base = ndt_pose_exp(twist, scan * SWEEP_S),
                                                          .observation = &observation,
                                                          .twist = predicted.twist,
                                                          .distorted_s = distorted_s,
                                                          .is_converged = 1};
        ndt_track_update(&track, &predicted, &measurement, &updated, NULL, NULL);
        ndt_track_commit(&track, &updated);
    }
}

/* Standard deviations of the published pose in the axes of the base. */
static void published(double sigma[6])
{
    double covariance[36], R[9];
    ndt_track_map_covariance(&track.state, covariance);
    ndt_pose_rotation(&track.state.T_map_base, R);
    for (int k = 0; k < 6; k++) {
        double sum = 0;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                sum += R[3 * i + k % 3] * covariance[6 * (k - k % 3 + i) + k - k % 3 + j] * R[3 * j + k % 3];
        sigma[k] = sqrt(sum);
    }
}

FIXTURE(setup, NULL)

/* The alignment finds the pose of some moment of the sweep, and from scan to scan it is the same one. */
TEST(motion_along_the_way_is_not_averaged_out)
{
    const struct ndt_twist car = {{12, 0, 0}, {0, 0, 0}};
    double undone[6], sigma[6];
    for (int scans = 5; scans <= 500; scans *= 10) {
        follow(&car, 0, scans);
        published(undone);
        follow(&car, SWEEP_S, scans);
        published(sigma);
        ck_assert_double_lt(undone[0], 0.02);
        ck_assert_double_ge(sigma[0], 12 * SWEEP_S / 6);
        ck_assert_double_lt(sigma[0], 1.1 * 12 * SWEEP_S / 6);
        for (int i = 1; i < 6; i++)
            ck_assert_double_lt(sigma[i], undone[i] + (i < 3 ? 0.01 : 0.002)); /* the twist is not known exactly */
    }
}

/* A turn is off about its axis, and shears the scan across it. */
TEST(a_turn_moves_what_is_across_its_axis)
{
    const struct ndt_twist turn = {{0, 0, 0}, {0, 0, 1.2}};
    double sigma[6];
    follow(&turn, SWEEP_S, 20);
    published(sigma);
    ck_assert_double_eq_tol(sigma[5], 1.2 * SWEEP_S / 6, 1e-3);
    ck_assert_double_eq_tol(sigma[0], 0.05 * 1.2 * SWEEP_S * 10, 5e-3);
    ck_assert_double_eq_tol(sigma[0], sigma[1], 1e-3);
    ck_assert_double_lt(sigma[2], 0.01);
    ck_assert_double_lt(sigma[3], 3e-3);
}

/* A carrier that turns around between two scans may have turned anyhow within the second one. */
TEST(a_change_of_motion_counts_by_half)
{
    const struct ndt_twist still = {{0, 0, 0}, {0, 0, 0}};
    const struct ndt_observation observation = round_view();
    struct ndt_track_state predicted, updated;
    follow(&still, SWEEP_S, 20);
    struct ndt_track_state before = track.state;
    before.twist.w_radps[2] = 2;
    ck_assert(ndt_track_predict(&track, after(21 * SWEEP_S), &predicted));
    const struct ndt_track_measurement measurement = {.T_map_base = predicted.T_map_base,
                                                      .observation = &observation,
                                                      .twist = predicted.twist,
                                                      .distorted_s = SWEEP_S,
                                                      .is_converged = 1};
    ndt_track_update_from(&track, &before, &predicted, &measurement, &updated, NULL, NULL);
    ck_assert_double_eq_tol(sqrt(updated.distortion[5]), 2.0 / 2 * SWEEP_S / 6, 1e-3);
    before.has_twist = 0;
    ndt_track_update_from(&track, &before, &predicted, &measurement, &updated, NULL, NULL);
    ck_assert_double_lt(sqrt(updated.distortion[5]), 2e-3);
}

/* The filter, and so every pose, is that of scans without distortion; what was undone adds nothing. */
TEST(the_filter_does_without_it)
{
    const struct ndt_twist curve = {{8, 0.2, 0}, {0.02, -0.1, 0.4}};
    const double none[6] = {0};
    follow(&curve, 0, 30);
    const struct ndt_track_state undone = track.state;
    ck_assert_mem_eq(undone.distortion, none, sizeof(none));
    follow(&curve, SWEEP_S, 30);
    ck_assert_mem_eq(&undone.T_map_base, &track.state.T_map_base, sizeof(undone.T_map_base));
    ck_assert_mem_eq(&undone.twist, &track.state.twist, sizeof(undone.twist));
    ck_assert_mem_eq(undone.P, track.state.P, sizeof(undone.P));
}

/* A prediction keeps the error of the pose that it began at; the next scan that is undone ends it. */
TEST(it_lasts_until_the_next_scan)
{
    const struct ndt_twist car = {{12, 0, 0}, {0, 0, 0}};
    const double none[6] = {0};
    const struct ndt_observation observation = round_view();
    struct ndt_track_state predicted, updated;
    follow(&car, SWEEP_S, 20);
    ck_assert(ndt_track_predict(&track, after(21 * SWEEP_S), &predicted));
    ck_assert_mem_eq(predicted.distortion, track.state.distortion, sizeof(predicted.distortion));
    const struct ndt_track_measurement measurement = {.T_map_base = predicted.T_map_base,
                                                      .observation = &observation,
                                                      .twist = predicted.twist,
                                                      .is_converged = 1};
    ndt_track_update(&track, &predicted, &measurement, &updated, NULL, NULL);
    ck_assert_mem_eq(updated.distortion, none, sizeof(none));
}
