/* The mathematics of the estimator against finite differences and textbook formulas. */
#include "run_tests.h"
#include "track_cases.h"

/* ---- Jacobians ---- */

static void no_noise(void)
{
    params.acceleration_noise = params.turn_noise = params.stamp_deviation_s = 0;
    params.odometry_noise_m = params.odometry_noise_rad = params.twist_noise_m = params.twist_noise_rad = 0;
    params.gyro_noise_rad = 0;
    track.params = params;
}

/* F X F^T without noise, for a symmetric X with ones at (i, k) and (k, i). */
static void propagate_ones(const struct ndt_track_state *from, double dt_s, int i, int k, double out[N * N])
{
    struct ndt_track_state state = *from, predicted;
    memset(state.P, 0, sizeof(state.P));
    state.P[N * i + k] = state.P[N * k + i] = 1;
    predict(&state, dt_s, &predicted);
    memcpy(out, predicted.P, sizeof(predicted.P));
}

/* Column k of F from what prediction makes of P: f0 f0^T gives f0, whose first element is positive, and
 * f0 fk^T + fk f0^T the others. */
static void column_of(const struct ndt_track_state *from, double dt_s, int k, double column[N])
{
    double square[N * N], mixed[N * N], first[N], norm2 = 0, product[N], dot = 0;
    propagate_ones(from, dt_s, 0, 0, square);
    for (int i = 0; i < N; i++) { /* only the pose: other variances may have been replaced */
        first[i] = i < 6 ? square[i] / sqrt(square[0]) : 0;
        norm2 += first[i] * first[i];
    }
    memcpy(column, first, sizeof(first));
    if (k == 0)
        return;
    propagate_ones(from, dt_s, 0, k, mixed);
    ndt_multiply(N, N, 1, mixed, first, product);
    for (int i = 0; i < N; i++)
        dot += first[i] * product[i] / (2 * norm2);
    for (int i = 0; i < N; i++)
        column[i] = (product[i] - first[i] * dot) / norm2;
}

static void difference_of(const struct ndt_track_state *from, double dt_s, int k, double column[N])
{
    const double h = 1e-5;
    struct ndt_track_state state = *from, middle, high, low;
    double up[N], down[N];
    predict(&state, dt_s, &middle);
    move_state(&state, k, h);
    predict(&state, dt_s, &high);
    state = *from;
    move_state(&state, k, -h);
    predict(&state, dt_s, &low);
    error_between(&middle, &high, up);
    error_between(&middle, &low, down);
    for (int i = 0; i < N; i++)
        column[i] = (up[i] - down[i]) / (2 * h);
}

/* The analytic F against finite differences. The effect of twist and bias is of first order in the motion of the
 * step: `order` bounds the rest of the series. rows: how many states are compared. */
static void compare_jacobians(const struct ndt_track_state *from, double dt_s, int rows, double order,
                              const char *what)
{
    for (int k = 0; k < N; k++) {
        const double limit = k < 6 || k == SCALE ? 1e-6 : 1e-6 + order;
        double is[N], expected[N];
        column_of(from, dt_s, k, is);
        difference_of(from, dt_s, k, expected);
        for (int i = 0; i < rows; i++)
            ck_assert_msg(fabs(is[i] - expected[i]) <= limit,
                          "%s, dt %g: F[%d][%d] is %.9g, finite differences give %.9g", what, dt_s, i, k, is[i],
                          expected[i]);
    }
}

FIXTURE(setup, NULL)

TEST(jacobian_of_constant_twist)
{
    const struct ndt_track_state state = moving_state();
    no_noise();
    const double steps[] = {-0.1, -0.01, 0.001, 0.01, 0.1};
    for (size_t i = 0; i < 5; i++) { /* Jr(v dt) dt = dt + O(v dt^2 / 2) */
        const double dt = steps[i];
        compare_jacobians(&state, dt, N, 0.5 * 9 * dt * dt, "constant twist");
    }
}

static void give_odometry(int has_pose)
{
    const struct ndt_twist twist = {{8.2, -0.4, 0.1}, {0.04, -0.1, 0.4}};
    for (int i = -10; i <= 10; i++) {
        struct ndt_track_odometry_sample sample = {.stamp_ns = after(i * 0.02),
                                                   .has_pose = has_pose,
                                                   .has_twist = 1,
                                                   .T_odom_base = ndt_pose_exp(&twist, i * 0.02),
                                                   .twist = twist};
        ndt_track_odometry(&track, &sample);
    }
}

/* The twist behind is that of the odometry: pose and scale are compared, with the small bias. */
TEST(jacobian_of_odometry)
{
    for (int has_pose = 0; has_pose < 2; has_pose++) {
        restart();
        struct ndt_track_state state = moving_state(), out;
        no_noise();
        give_odometry(has_pose);
        const double steps[] = {-0.1, -0.01, 0.01, 0.1, 0.2};
        for (size_t i = 0; i < 5; i++) {
            const double dt = steps[i];
            predict(&state, dt, &out);
            ck_assert_int_eq(out.source, has_pose ? NDT_TRACK_ODOMETRY : NDT_TRACK_ODOMETRY_TWIST);
            compare_jacobians(&state, dt, 6, 0.004 * dt * dt, "odometry"); /* Jr(b dt) dt = dt + O(b dt^2 / 2) */
        }
    }
}

TEST(jacobian_of_gyro)
{
    struct ndt_track_state state = moving_state(), out;
    state.bias_of_gyro = 1;
    no_noise();
    for (int i = -10; i <= 10; i++) {
        const struct ndt_track_imu_sample sample = {.stamp_ns = after(i * 0.02),
                                                    .angular_velocity_radps = {0.05, -0.1, 0.4 + 0.01 * i}};
        ndt_track_imu(&track, &sample);
    }
    const double steps[] = {-0.1, -0.01, 0.01, 0.1};
    for (size_t i = 0; i < 4; i++) {
        const double dt = steps[i];
        predict(&state, dt, &out);
        ck_assert_int_eq(out.source, NDT_TRACK_GYRO);
        compare_jacobians(&state, dt, N, 0.5 * 9 * dt * dt, "gyro");
    }
}

/* ---- covariance ---- */

/* A number between 10^low and 10^high. */
static double any_power(double low, double high)
{
    return pow(10, ndt_random_between(&random_state, low, high));
}

/* Information with condition up to 1e12, some of it none at all, and steps to match. */
static struct ndt_observation any_observation(void)
{
    struct ndt_observation out = {0};
    const double strength = any_power(0, 8);
    for (int k = 0; k < 8; k++) {
        const double arm = 20, time = any(0.05), weight = strength * any_power(-6, 0);
        double J[6];
        for (int i = 0; i < 6; i++)
            J[i] = (i < 3 ? 1 : arm) * any(1) * (k % 2 == 0 || i != 0);
        for (int i = 0; i < 6; i++) {
            out.gradient[i] += J[i] * weight * any(0.01);
            out.time_gradient[i] += time * J[i] * weight * any(0.01);
            for (int j = 0; j < 6; j++) {
                const double part = J[i] * weight * J[j];
                out.curvature[6 * i + j] += part;
                out.information[0][6 * i + j] += part;
                out.information[1][6 * i + j] += time * part;
                out.information[2][6 * i + j] += time * time * part;
            }
        }
    }
    return out;
}

static void give_inputs(int64_t stamp_ns, int step)
{
    if (step / 500 % 3 != 0) {
        struct ndt_track_odometry_sample sample = {.stamp_ns = stamp_ns,
                                                   .has_pose = step / 500 % 3 == 1,
                                                   .has_twist = 1,
                                                   .T_odom_base = {{step * 0.5, 0, 0}, {0, 0, 0, 1}},
                                                   .twist = {{any(40), any(2), any(2)}, {any(2), any(2), any(2)}}};
        ndt_track_odometry(&track, &sample);
    }
    if (step / 1000 % 2 == 1) {
        const struct ndt_track_imu_sample sample = {.stamp_ns = stamp_ns,
                                                    .angular_velocity_radps = {any(3), any(3), any(30)}};
        ndt_track_imu(&track, &sample);
    }
}

/* Predictions and updates of all kinds, steps from none to far beyond max_prediction_s, forwards and backwards. */
TEST(covariance_stays_definite)
{
    int64_t stamp_ns = START_NS;
    for (int step = 0; step < 10000; step++) {
        struct ndt_track_state predicted, updated, shifted;
        double innovation, weakest;
        const int kind = step % 50;
        stamp_ns += kind == 7 ? 0 : kind == 8 ? 1 : kind == 9 ? 30000000000 : kind == 10 ? -50000000 : 100000000;
        give_inputs(stamp_ns, step);
        ck_assert(ndt_track_predict(&track, stamp_ns, &predicted));
        must_be_definite(predicted.P, "predicted", step);
        if (kind == 20) {
            ndt_track_coast(&track, &predicted);
            continue;
        }
        const struct ndt_observation observation = any_observation();
        const double far[6] = {any(0.3), any(0.3), any(0.3), any(0.05), any(0.05), any(0.05)};
        const struct ndt_pose off = exp_of(far);
        const struct ndt_track_measurement measurement = {.T_map_base =
                                                              ndt_pose_compose(&predicted.T_map_base, &off),
                                                          .observation = &observation,
                                                          .twist = predicted.twist,
                                                          .is_converged = kind % 4 != 0};
        ndt_track_update(&track, &predicted, &measurement, &updated, &innovation, &weakest);
        must_be_definite(updated.P, "updated", step);
        ck_assert(isfinite(innovation) && innovation >= 0 && weakest >= 0 && weakest <= 1);
        ck_assert(ndt_pose_is_finite(&updated.T_map_base));
        ndt_track_commit(&track, &updated);
        ndt_track_shift(&track, &updated, -0.05, &shifted);
        must_be_definite(shifted.P, "shifted", step);
    }
}

/* However often a lost pose is contradicted: an alignment refuses a prior that is not positive definite, and every
 * scan after it would be lost. */
TEST(contradicted_without_end)
{
    int grew = 0;
    for (int step = 1; step <= 400; step++) {
        struct ndt_track_state predicted, updated;
        double prior[36];
        struct ndt_observation observation = any_observation();
        ck_assert(ndt_track_predict(&track, after(0.1 * step), &predicted));
        grew |= ndt_track_position_deviation(&predicted) > 100;
        ndt_track_pose_covariance(&predicted, &(struct ndt_pose){.q_xyzw = {0, 0, 0, 1}}, prior);
        ck_assert_msg(ndt_factor_cholesky(6, prior), "the prior of step %d is not positive definite", step);
        const double far[6] = {1e6, -1e6 * step, 500, 0.4, -0.8, 1.2};
        const struct ndt_pose off = exp_of(far);
        const struct ndt_track_measurement measurement = {.T_map_base =
                                                              ndt_pose_compose(&predicted.T_map_base, &off),
                                                          .observation = &observation,
                                                          .twist = predicted.twist,
                                                          .is_converged = 1};
        ndt_track_update(&track, &predicted, &measurement, &updated, NULL, NULL);
        ndt_track_commit(&track, &updated);
        ck_assert(ndt_track_predict(&track, after(0.1 * step + 0.05), &predicted));
        for (int i = 0; i < 36; i++)
            predicted.P[N * (i / 6) + i % 6] = 1e4 * updated.P[N * (i / 6) + i % 6];
        ndt_track_coast(&track, &predicted);
    }
    ck_assert(grew);
}

TEST(extreme_motion_is_finite)
{
    const double sizes[] = {0, 1e-300, 1e-12, 1, 1e3, 1e6};
    for (size_t v = 0; v < 6; v++)
        for (size_t w = 0; w < 6; w++) {
            const struct ndt_twist twist = {{sizes[v], -sizes[v], sizes[v]}, {sizes[w], 0, -sizes[w]}};
            const struct ndt_pose start = start_pose();
            restart();
            ndt_track_reset(&track, START_NS, &start, &twist, NULL);
            for (int step = 0; step < 20; step++) {
                struct ndt_track_state predicted;
                ck_assert(ndt_track_predict(&track, after(step * 0.1), &predicted));
                ck_assert(ndt_pose_is_finite(&predicted.T_map_base));
                for (int i = 0; i < N * N; i++)
                    ck_assert(isfinite(predicted.P[i]));
                ndt_track_coast(&track, &predicted);
            }
        }
}

/* A covariance of an initial pose that is none leaves the default. */
TEST(bad_initial_covariances_are_replaced)
{
    double covariance[36] = {0};
    const struct ndt_pose start = start_pose();
    const double bad[] = {NAN, -1, INFINITY};
    for (size_t b = 0; b < 3; b++) {
        for (int i = 0; i < 6; i++)
            covariance[7 * i] = i == 2 ? bad[b] : 0.01;
        ndt_track_reset(&track, START_NS, &start, NULL, covariance);
        ck_assert_double_eq_tol(track.state.P[0], params.pose_deviation_m * params.pose_deviation_m, 1e-9);
        must_be_definite(track.state.P, "reset", (int)b);
    }
    for (int i = 0; i < 6; i++)
        covariance[7 * i] = i == 5 ? 0 : 0.01 * (i + 1); /* known yaw: singular is taken as tiny */
    ndt_track_reset(&track, START_NS, &start, NULL, covariance);
    must_be_definite(track.state.P, "reset", 3);
    double back[36];
    ndt_track_map_covariance(&track.state, back);
    for (int i = 0; i < 36; i++)
        ck_assert_double_eq_tol(back[i], covariance[i], 1e-9);
}

/* ---- updates ---- */

/* A well-conditioned scan with times: rows J (d + time dv) = residual. */
static struct ndt_observation good_observation(void)
{
    struct ndt_observation out = {0};
    for (int k = 0; k < 40; k++) {
        const double time = any(0.05), weight = 300, residual = any(0.02);
        double J[6];
        for (int i = 0; i < 6; i++)
            J[i] = (i < 3 ? 1 : 10) * any(1);
        for (int i = 0; i < 6; i++) {
            out.gradient[i] += J[i] * weight * residual;
            out.time_gradient[i] += time * J[i] * weight * residual;
            for (int j = 0; j < 6; j++) {
                const double part = J[i] * weight * J[j];
                out.curvature[6 * i + j] += part;
                out.information[0][6 * i + j] += part;
                out.information[1][6 * i + j] += time * part;
                out.information[2][6 * i + j] += time * time * part;
            }
        }
    }
    return out;
}

TEST(update_is_that_of_the_textbook)
{
    for (int trial = 0; trial < 20; trial++) {
        struct ndt_weighed_observation weighed;
        struct ndt_track_state updated;
        track.params.noise.discount = 0;
        const struct ndt_track_state predicted = uncertain_state();
        const struct ndt_observation observation = good_observation();
        const double found[6] = {any(0.05), any(0.05), any(0.05), any(0.005), any(0.005), any(0.005)};
        const struct ndt_pose off = exp_of(found);
        struct ndt_track_measurement measurement = {.T_map_base = ndt_pose_compose(&predicted.T_map_base, &off),
                                                    .observation = &observation,
                                                    .twist = predicted.twist,
                                                    .is_converged = 1};
        double offset[6] = {0};
        for (int i = 0; i < 3; i++) { /* another motion was undone than that of the prediction */
            measurement.twist.v_mps[i] += offset[i] = any(0.2);
            measurement.twist.w_radps[i] += offset[3 + i] = any(0.02);
        }
        ndt_observation_weigh(&observation, &track.params.noise, &weighed);
        double R[36], T[36], moved[6], H[6 * N] = {0}, H2[6 * N] = {0}, z[6], z2[6];
        ck_assert(ndt_invert_symmetric(6, weighed.information, R));
        ck_assert(ndt_invert_symmetric(6, weighed.twist_information, T));
        ndt_multiply(6, 6, 1, weighed.twist_to_pose, offset, moved);
        ndt_multiply(6, 6, 1, T, weighed.twist_gradient, z2);
        for (int i = 0; i < 6; i++) {
            z[i] = found[i] + weighed.step[i] + moved[i];
            z2[i] += offset[i];
            H[N * i + i] = H2[N * i + TWIST + i] = 1;
            for (int j = 0; j < 6; j++)
                H[N * i + TWIST + j] = weighed.twist_to_pose[6 * i + j];
        }
        long double x[N] = {0}, P[N * N];
        for (int i = 0; i < N * N; i++)
            P[i] = predicted.P[i];
        kalman(6, H, R, z, x, P);
        kalman(6, H2, T, z2, x, P);
        ndt_track_update(&track, &predicted, &measurement, &updated, NULL, NULL);
        must_equal(&predicted, &updated, x, P, 1e-7);
    }
}

/* The squared distance from the prediction in sigmas: z^T (H P H^T + R)^-1 z. */
TEST(innovation_is_that_of_the_textbook)
{
    struct ndt_weighed_observation weighed;
    struct ndt_track_state updated;
    track.params.noise.discount = 0;
    const struct ndt_track_state predicted = uncertain_state();
    const struct ndt_observation observation = good_observation();
    const double found[6] = {0.3, -0.2, 0.1, 0.01, 0.02, -0.03};
    const struct ndt_pose off = exp_of(found);
    const struct ndt_track_measurement measurement = {.T_map_base = ndt_pose_compose(&predicted.T_map_base, &off),
                                                      .observation = &observation,
                                                      .twist = predicted.twist,
                                                      .is_converged = 1};
    ndt_observation_weigh(&observation, &track.params.noise, &weighed);
    double S[36], z[6], solved[6], H[6 * N] = {0}, transposed[6 * N], innovation, expected = 0;
    ck_assert(ndt_invert_symmetric(6, weighed.information, S));
    for (int i = 0; i < 6; i++) {
        z[i] = solved[i] = found[i] + weighed.step[i];
        H[N * i + i] = 1;
        for (int j = 0; j < 6; j++)
            H[N * i + TWIST + j] = weighed.twist_to_pose[6 * i + j];
    }
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < N; j++)
            transposed[6 * j + i] = H[N * i + j];
    double HPH[36];
    ndt_congruence(N, 6, transposed, predicted.P, HPH);
    for (int i = 0; i < 36; i++)
        S[i] += HPH[i];
    ck_assert(ndt_factor_cholesky(6, S));
    ndt_solve_cholesky(6, S, solved);
    for (int i = 0; i < 6; i++)
        expected += z[i] * solved[i];
    ndt_track_update(&track, &predicted, &measurement, &updated, &innovation, NULL);
    ck_assert_double_eq_tol(innovation / expected, 1, 1e-6);
}

/* No constant twist describes how a carrier moves within a sweep that turns and accelerates more than assumed. */
TEST(an_agile_carrier_moves_within_the_sweep)
{
    struct ndt_track_state predicted = uncertain_state(), updated, at_once;
    const struct ndt_observation observation = good_observation();
    struct ndt_track_measurement measurement = {.T_map_base = predicted.T_map_base,
                                                .observation = &observation,
                                                .twist = predicted.twist,
                                                .is_converged = 1};
    for (int agile = 0; agile < 2; agile++)
        for (int gyro = 0; gyro < 2; gyro++) {
            predicted.process_noise_scale = agile ? 41 : 1;
            predicted.source = gyro ? NDT_TRACK_GYRO : NDT_TRACK_TWIST;
            measurement.sweep_s = 0;
            ndt_track_update(&track, &predicted, &measurement, &at_once, NULL, NULL);
            measurement.sweep_s = 0.2;
            ndt_track_update(&track, &predicted, &measurement, &updated, NULL, NULL);
            for (int i = 0; i < 6; i++) {
                const double noise = i < 3 ? track.params.acceleration_noise : gyro ? 0 : track.params.turn_noise;
                const double more = (agile ? 40 : 0) * noise * noise * 0.2 * 0.2 * 0.2 / 320;
                const double found = updated.P[(N + 1) * i] - at_once.P[(N + 1) * i];
                ck_assert_double_le(found, more + 1e-8);
                ck_assert_double_ge(found, 0.5 * more - 1e-8); /* the prediction holds the rest */
            }
        }
}

/* The search found a pose between the prediction and the maximum of the score, by the weight of the prior. Whatever
 * that weight, the update is the same. */
TEST(prior_of_the_search_does_not_count_twice)
{
    const double weights[] = {0, 1, 10, 1000};
    const double best[6] = {0.004, -0.002, 0.001,
                            2e-4,  -1e-4,  3e-4}; /* the maximum of the score, from the prediction */
    const struct ndt_track_state predicted = uncertain_state();
    struct ndt_observation observation = good_observation();
    struct ndt_track_state first;
    double prior[36], covariance[36];
    ndt_track_pose_covariance(&predicted, &(struct ndt_pose){.q_xyzw = {0, 0, 0, 1}}, covariance);
    ck_assert(ndt_invert_symmetric(6, covariance, prior));
    memset(observation.time_gradient, 0, sizeof(observation.time_gradient));
    for (size_t w = 0; w < 4; w++) {
        double sum[36], found[6], left[6];
        for (int i = 0; i < 36; i++)
            sum[i] = observation.curvature[i] + weights[w] * prior[i];
        ndt_multiply(6, 6, 1, observation.curvature, best, found);
        ck_assert(ndt_factor_cholesky(6, sum));
        ndt_solve_cholesky(6, sum, found);
        for (int i = 0; i < 6; i++)
            left[i] = best[i] - found[i];
        ndt_multiply(6, 6, 1, observation.curvature, left, observation.gradient);
        /* information about the twist from the same residuals */
        ndt_multiply_transposed(6, 6, 1, observation.information[1], left, observation.time_gradient);
        const struct ndt_pose off = exp_of(found);
        const struct ndt_track_measurement measurement = {.T_map_base =
                                                              ndt_pose_compose(&predicted.T_map_base, &off),
                                                          .observation = &observation,
                                                          .twist = predicted.twist,
                                                          .is_converged = 1};
        struct ndt_track_state updated;
        ndt_track_update(&track, &predicted, &measurement, &updated, NULL, NULL);
        double x[N];
        if (w == 0)
            first = updated;
        error_between(&first, &updated, x);
        for (int i = 0; i < N; i++)
            ck_assert_msg(fabs(x[i]) < 2e-3 * sqrt(first.P[N * i + i]), "weight %g: state %d is %g away",
                          weights[w], i, x[i]);
    }
}

TEST(unfinished_alignments_count_less)
{
    const struct ndt_track_state predicted = uncertain_state();
    const struct ndt_observation observation = good_observation();
    struct ndt_track_measurement measurement = {.T_map_base = predicted.T_map_base,
                                                .observation = &observation,
                                                .twist = predicted.twist,
                                                .is_converged = 1};
    struct ndt_track_state finished, unfinished;
    ndt_track_update(&track, &predicted, &measurement, &finished, NULL, NULL);
    measurement.is_converged = 0;
    ndt_track_update(&track, &predicted, &measurement, &unfinished, NULL, NULL);
    for (int i = 0; i < 6; i++)
        ck_assert_double_gt(unfinished.P[N * i + i], finished.P[N * i + i]);
}

/* A tunnel: nothing is observed along x, and the normals wobble by a milliradian. However many scans, the error
 * along the axis does not shrink, and grows as without scans. */
TEST(what_is_not_observed_is_not_known)
{
    const struct ndt_twist twist = {{10, 0, 0}, {0, 0, 0}};
    const struct ndt_pose start = ndt_pose_identity();
    double covariance[36] = {0}, least = 0;
    for (int i = 0; i < 6; i++)
        covariance[7 * i] = i < 3 ? 0.04 : 1e-4;
    ndt_track_reset(&track, START_NS, &start, &twist, covariance);
    struct ndt_track blind = track;
    for (int scan = 1; scan <= 100; scan++) {
        struct ndt_observation observation = {0};
        struct ndt_track_state predicted, updated;
        ck_assert(ndt_track_predict(&track, after(scan * 0.1), &predicted));
        for (int k = 0; k < 400; k++) {
            const double angle = any(3.14159), x = any(30), y = 4 * cos(angle), z = 4 * sin(angle);
            const double n[3] = {1e-3 * ndt_random_normal(&random_state), -cos(angle), -sin(angle)};
            const double J[6] = {n[0], n[1], n[2], y * n[2] - z * n[1], z * n[0] - x * n[2], x * n[1] - y * n[0]};
            for (int i = 0; i < 6; i++)
                for (int j = 0; j < 6; j++) {
                    observation.information[0][6 * i + j] += 300 * J[i] * J[j];
                    observation.curvature[6 * i + j] += 300 * J[i] * J[j];
                }
        }
        const struct ndt_track_measurement measurement = {.T_map_base = predicted.T_map_base,
                                                          .observation = &observation,
                                                          .twist = predicted.twist,
                                                          .is_converged = 1};
        ndt_track_update(&track, &predicted, &measurement, &updated, NULL, NULL);
        ck_assert_double_ge(updated.P[0], least);
        least = updated.P[0];
        ndt_track_commit(&track, &updated);
        ck_assert(ndt_track_predict(&blind, after(scan * 0.1), &predicted));
        ndt_track_coast(&blind, &predicted);
        blind.fixed_ns = after(scan * 0.1);                 /* keeps the velocity */
        ck_assert_double_lt(updated.P[N + 1], 0.01 * 0.01); /* across */
    }
    ck_assert_double_gt(sqrt(track.state.P[0]), 0.5 * sqrt(blind.state.P[0]));
}
