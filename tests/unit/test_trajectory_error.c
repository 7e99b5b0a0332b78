/* Errors against ground truth, their statistics, and the hash of a trajectory. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "ndtd/trajectory_error.h"
#include "ndtd/reference_trajectory.h"
#include "run_tests.h"

static struct ndtd_trajectory_error error;
static struct ndtd_errors errors;
static const int64_t T0 = 1317042272000000000, STEP = 100000000; /* 0.1 s */

static void setup(void)
{
    error = (struct ndtd_trajectory_error){0};
    errors = (struct ndtd_errors){0};
}

static void teardown(void)
{
    ndtd_trajectory_error_free(&error);
    ndtd_errors_free(&errors);
}

static struct ndt_pose at_x(double x_m)
{
    struct ndt_pose pose = ndt_pose_identity();
    pose.t_m[0] = x_m;
    return pose;
}

static void truth(int64_t stamp_ns, double x_m)
{
    struct ndt_pose pose = at_x(x_m);
    ck_assert_int_eq(ndtd_trajectory_error_add_truth(&error, stamp_ns, &pose, NULL), NDT_OK);
}

static void result(int64_t stamp_ns, double x_m)
{
    struct ndt_pose pose = at_x(x_m);
    ck_assert_int_eq(ndtd_trajectory_error_add_result(&error, stamp_ns, &pose, NULL), NDT_OK);
}

FIXTURE(setup, teardown)

TEST(errors_are_matched_by_stamp_in_any_order)
{
    result(T0 + STEP, 1.25);
    truth(T0 + STEP, 1.0);
    truth(T0, 0.0);
    result(T0, 0.5);
    ck_assert_int_eq(ndtd_trajectory_error_compute(&error, &errors, NULL), NDT_OK);
    ck_assert_uint_eq(errors.compared, 2);
    ck_assert_uint_eq(errors.off, 0);
    ck_assert_double_eq_tol(ndtd_samples_quantile(&errors.translation_m, 1), 0.5, 1e-12);
    ck_assert_double_eq_tol(ndtd_samples_quantile(&errors.translation_m, 0), 0.25, 1e-12);
}

/* Odometry begins where it likes: the truth is moved onto the first pose that has one. */
TEST(truth_is_anchored_to_the_first_pose)
{
    ndtd_trajectory_error_anchor(&error); /* nothing to move */
    ck_assert_int_eq(ndtd_trajectory_error_add_result(&error, T0, NULL, NULL), NDT_OK);
    for (int i = 0; i < 4; i++) {
        truth(T0 + i * STEP, 100 + i);
        if (i > 0)
            result(T0 + i * STEP, 1.01 * (i - 1));
    }
    ndtd_trajectory_error_anchor(&error);
    ck_assert_int_eq(ndtd_trajectory_error_compute(&error, &errors, NULL), NDT_OK);
    ck_assert_uint_eq(errors.compared, 4);
    ck_assert_uint_eq(errors.off, 1); /* that without a pose */
    ck_assert_double_eq_tol(ndtd_samples_quantile(&errors.translation_m, 1), 0.02, 1e-9);
}

TEST(ground_truth_is_interpolated_over_short_gaps_only)
{
    truth(T0, 0.0);
    truth(T0 + STEP, 1.0);
    truth(T0 + 10 * STEP, 2.0);
    struct ndt_pose pose;
    struct ndt_twist twist;
    ck_assert_int_eq(ndtd_trajectory_error_truth_at(&error, T0 + STEP / 4, &pose, &twist), 1);
    ck_assert_double_eq_tol(pose.t_m[0], 0.25, 1e-9);
    ck_assert_double_eq_tol(twist.v_mps[0], 10.0, 1e-6);
    ck_assert_int_eq(ndtd_trajectory_error_truth_at(&error, T0 + STEP, &pose, &twist), 1);
    ck_assert_double_eq(pose.t_m[0], 1.0);
    ck_assert_double_eq(twist.v_mps[0], 0.0); /* the next ground truth is too far */
    ck_assert_int_eq(ndtd_trajectory_error_truth_at(&error, T0 + 5 * STEP, &pose, NULL), 0);
    ck_assert_int_eq(ndtd_trajectory_error_truth_at(&error, T0 - 1, &pose, NULL), 0);
    ck_assert_int_eq(ndtd_trajectory_error_truth_at(&error, T0 + 11 * STEP, &pose, NULL), 0);
}

TEST(motion_at_the_last_ground_truth_uses_the_previous_one)
{
    truth(T0, 0.0);
    truth(T0 + STEP, 2.0);
    struct ndt_pose pose;
    struct ndt_twist twist;
    ck_assert_int_eq(ndtd_trajectory_error_truth_at(&error, T0 + STEP, &pose, &twist), 1);
    ck_assert_double_eq_tol(twist.v_mps[0], 20.0, 1e-6);
}

TEST(single_and_repeated_ground_truth)
{
    struct ndt_pose pose;
    struct ndt_twist twist;
    ck_assert_int_eq(ndtd_trajectory_error_truth_at(&error, T0, &pose, &twist), 0);
    truth(T0, 1.0);
    ck_assert_int_eq(ndtd_trajectory_error_truth_at(&error, T0, &pose, &twist), 1);
    ck_assert_double_eq(twist.v_mps[0], 0.0);
    truth(T0, 1.0);
    ck_assert_int_eq(ndtd_trajectory_error_truth_at(&error, T0, &pose, &twist), 1);
    ck_assert_double_eq(twist.v_mps[0], 0.0);
    truth(INT64_MIN, 0.0);
    truth(INT64_MAX, 0.0);
    ck_assert_int_eq(ndtd_trajectory_error_truth_at(&error, T0 + 1, &pose, &twist), 0);
}

/* A metre and five degrees are not lost; a truth that is 20 s away does not count, however far the stamps reach. */
TEST(limits_of_what_is_lost)
{
    struct ndt_pose pose;
    truth(T0, 0.0);
    truth(T0 + STEP, 0.0);
    result(T0, 1.0);
    result(T0 + STEP, nextafter(1.0, 2.0));
    ck_assert_int_eq(ndtd_trajectory_error_compute(&error, &errors, NULL), NDT_OK);
    ck_assert_uint_eq(errors.compared, 2);
    ck_assert_uint_eq(errors.off, 1);
    truth(INT64_MIN, 0.0);
    ck_assert_int_eq(ndtd_trajectory_error_truth_at(&error, T0 - 1, &pose, NULL), 0);
}

TEST(lost_scans_are_counted)
{
    truth(T0, 0.0);
    truth(T0 + STEP, 0.0);
    truth(T0 + 2 * STEP, 0.0);
    result(T0, 1.01);
    ck_assert_int_eq(ndtd_trajectory_error_add_result(&error, T0 + STEP, NULL, NULL), NDT_OK);
    struct ndt_pose turned = ndt_pose_identity();
    turned.q_xyzw[2] = sin(0.05);
    turned.q_xyzw[3] = cos(0.05); /* 5.7 deg */
    ck_assert_int_eq(ndtd_trajectory_error_add_result(&error, T0 + 2 * STEP, &turned, NULL), NDT_OK);
    result(T0 + 20 * STEP, 0.0); /* no ground truth: not compared */
    ck_assert_int_eq(ndtd_trajectory_error_compute(&error, &errors, NULL), NDT_OK);
    ck_assert_uint_eq(errors.compared, 3);
    ck_assert_uint_eq(errors.off, 3);
    ck_assert_uint_eq(errors.translation_m.count, 2); /* no pose, no error */
}

TEST(quantiles_interpolate)
{
    struct ndtd_samples samples = {0};
    ck_assert_double_eq(ndtd_samples_quantile(&samples, 0.5), 0);
    ck_assert_double_eq(ndtd_samples_mean(&samples), 0);
    const double values[] = {4, 1, 3, NAN, 2, INFINITY};
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(ndtd_samples_add(&samples, values[i], NULL), NDT_OK);
    ck_assert_uint_eq(samples.count, 4);
    ck_assert_double_eq(ndtd_samples_quantile(&samples, 0), 1);
    ck_assert_double_eq(ndtd_samples_quantile(&samples, 0.5), 2.5);
    ck_assert_double_eq_tol(ndtd_samples_quantile(&samples, 0.95), 3.85, 1e-12);
    ck_assert_double_eq(ndtd_samples_quantile(&samples, 1), 4);
    ck_assert_int_eq(ndtd_samples_add(&samples, 10, NULL), NDT_OK);
    ck_assert_double_eq(ndtd_samples_quantile(&samples, 1), 10);
    ck_assert_double_eq(ndtd_samples_mean(&samples), 4);
    for (int i = 0; i < 5000; i++)
        ck_assert_int_eq(ndtd_samples_add(&samples, i, NULL), NDT_OK);
    ck_assert_uint_eq(samples.count, 5005);
    ndtd_samples_free(&samples);
}

TEST(hash_depends_on_every_bit_and_the_order)
{
    const uint64_t start = NDTD_TRAJECTORY_HASH_START;
    struct ndt_pose pose = at_x(1.0), other = pose;
    const uint64_t hash = ndtd_trajectory_hash(start, 1, T0, NDT_CONVERGED, &pose);
    ck_assert_uint_eq(hash, ndtd_trajectory_hash(start, 1, T0, NDT_CONVERGED, &pose));
    ck_assert_uint_ne(hash, ndtd_trajectory_hash(start, 2, T0, NDT_CONVERGED, &pose));
    ck_assert_uint_ne(hash, ndtd_trajectory_hash(start, 1, T0 + 1, NDT_CONVERGED, &pose));
    ck_assert_uint_ne(hash, ndtd_trajectory_hash(start, 1, T0, NDT_LOW_SCORE, &pose));
    for (int i = 0; i < 7; i++) {
        double *number = i < 3 ? &other.t_m[i] : &other.q_xyzw[i - 3];
        const double before = *number;
        *number = nextafter(before, 2.0);
        ck_assert_uint_ne(hash, ndtd_trajectory_hash(start, 1, T0, NDT_CONVERGED, &other));
        *number = before;
    }
    other = at_x(2.0);
    const uint64_t ab = ndtd_trajectory_hash(hash, 2, T0, NDT_CONVERGED, &other);
    const uint64_t ba = ndtd_trajectory_hash(ndtd_trajectory_hash(start, 2, T0, NDT_CONVERGED, &other), 1, T0,
                                             NDT_CONVERGED, &pose);
    ck_assert_uint_ne(ab, ba);
}
