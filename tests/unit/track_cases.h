/* An estimator and its errors, for tests of its mathematics. */
#ifndef TRACK_CASES_H
#define TRACK_CASES_H

#include <check.h>
#include <math.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndt/random.h"
#include "ndt_track/track.h"

/* Indices of the error state. */
enum { N = NDT_TRACK_STATES, ROTATION = 3, TWIST = 6, TURN = 9, SCALE = 12, BIAS = 13 };

static const int64_t START_NS = 1317042272349000000;
static struct ndt_random random_state;
static struct ndt_track_params params;
static struct ndt_track track;

__attribute__((unused)) static int64_t after(double s)
{
    return START_NS + (int64_t)llround(s * 1e9);
}

__attribute__((unused)) static struct ndt_pose start_pose(void)
{
    return ndt_pose_from_rpy((double[3]){100, -50, 3}, (double[3]){0.1, -0.2, 2.5});
}

__attribute__((unused)) static void restart(void)
{
    const struct ndt_pose start = start_pose();
    ndt_track_init(&track, &params);
    ndt_track_reset(&track, START_NS, &start, NULL, NULL);
}

__attribute__((unused)) static void setup(void)
{
    random_state = (struct ndt_random){31};
    ndt_track_params_default(&params);
    restart();
}

__attribute__((unused)) static struct ndt_pose exp_of(const double x[6])
{
    const struct ndt_twist twist = {{x[0], x[1], x[2]}, {x[3], x[4], x[5]}};
    return ndt_pose_exp(&twist, 1);
}

/* Error of `b` with respect to `a`: T_b = T_a Exp(d), the others by difference. */
__attribute__((unused)) static void error_between(const struct ndt_track_state *a, const struct ndt_track_state *b,
                                                  double x[N])
{
    const struct ndt_pose off = ndt_pose_between(&a->T_map_base, &b->T_map_base);
    const struct ndt_twist d = ndt_pose_log(&off, 1);
    for (int i = 0; i < 3; i++) {
        x[i] = d.v_mps[i];
        x[ROTATION + i] = d.w_radps[i];
        x[TWIST + i] = b->twist.v_mps[i] - a->twist.v_mps[i];
        x[TURN + i] = b->twist.w_radps[i] - a->twist.w_radps[i];
        x[BIAS + i] = b->bias_radps[i] - a->bias_radps[i];
    }
    x[SCALE] = b->scale - a->scale;
}

__attribute__((unused)) static void move_state(struct ndt_track_state *state, int k, double amount)
{
    double d[6] = {0};
    if (k < 6) {
        d[k] = amount;
        const struct ndt_pose step = exp_of(d);
        state->T_map_base = ndt_pose_compose(&state->T_map_base, &step);
    } else if (k < TURN) {
        state->twist.v_mps[k - TWIST] += amount;
    } else if (k < SCALE) {
        state->twist.w_radps[k - TURN] += amount;
    } else if (k == SCALE) {
        state->scale += amount;
    } else {
        state->bias_radps[k - BIAS] += amount;
    }
}

__attribute__((unused)) static void predict(const struct ndt_track_state *from, double dt_s,
                                            struct ndt_track_state *out)
{
    track.state = *from;
    ck_assert(ndt_track_predict(&track, after(dt_s), out));
}

/* One assertion for the whole matrix: each assertion of Check writes to a pipe, which is too slow for every number.
 */
__attribute__((unused)) static void must_be_definite(const double P[N * N], const char *what, int step)
{
    double scaled[N * N], out[N * N];
    int finite = 1, symmetric = 1;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            finite &= isfinite(P[N * i + j]) != 0;
            symmetric &= P[N * i + j] == P[N * j + i];
            scaled[N * i + j] = P[N * i + j] / sqrt(P[N * i + i] * P[N * j + j]);
        }
    ck_assert_msg(finite && symmetric && ndt_invert_symmetric(N, scaled, out), "%s, step %d: %s", what, step,
                  !finite      ? "not finite"
                  : !symmetric ? "not symmetric"
                               : "not positive definite");
}

__attribute__((unused)) static double any(double size)
{
    return ndt_random_between(&random_state, -size, size);
}

__attribute__((unused)) static struct ndt_track_state moving_state(void)
{
    struct ndt_track_state state = track.state;
    state.has_twist = 1;
    state.twist = (struct ndt_twist){{8, -0.5, 0.2}, {0.05, -0.1, 0.4}};
    state.scale = 0.02;
    for (int i = 0; i < 3; i++)
        state.bias_radps[i] = 0.004 * (i - 1);
    return state;
}

/* A covariance of all states that are coupled. */
__attribute__((unused)) static void make_covariance(double P[N * N])
{
    static const double sigma[N] = {0.1, 0.2, 0.1, 0.01, 0.02, 0.01, 1,    0.5,
                                    0.5, 0.1, 0.1, 0.1,  0.01, 1e-3, 1e-3, 1e-3};
    double A[N * N];
    for (int i = 0; i < N * N; i++)
        A[i] = (i / N == i % N) + any(0.3);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += A[N * i + k] * A[N * j + k];
            P[N * i + j] = sum * sigma[i] * sigma[j];
        }
}

/* x and P after z = H x with covariance R (row-major m x m): the textbook's gain in long double, row by row after
 * R has been made diagonal by its Cholesky factor. */
__attribute__((unused)) static void kalman(int m, const double *H, const double *R, const double *z,
                                           long double x[N], long double P[N * N])
{
    double L[36];
    memcpy(L, R, (size_t)(m * m) * sizeof(*L));
    ck_assert(ndt_factor_cholesky(m, L));
    long double rows[6][N], values[6];
    for (int i = 0; i < m; i++) {
        values[i] = z[i];
        for (int j = 0; j < N; j++)
            rows[i][j] = H[N * i + j];
        for (int k = 0; k < i; k++) {
            values[i] -= L[m * i + k] * values[k];
            for (int j = 0; j < N; j++)
                rows[i][j] -= L[m * i + k] * rows[k][j];
        }
        values[i] /= L[m * i + i];
        for (int j = 0; j < N; j++)
            rows[i][j] /= L[m * i + i];
    }
    for (int i = 0; i < m; i++) {
        long double PH[N], S = 1, left = values[i], next[N * N];
        for (int j = 0; j < N; j++) {
            PH[j] = 0;
            for (int k = 0; k < N; k++)
                PH[j] += P[N * j + k] * rows[i][k];
            left -= rows[i][j] * x[j];
        }
        for (int j = 0; j < N; j++)
            S += rows[i][j] * PH[j];
        for (int j = 0; j < N; j++)
            x[j] += PH[j] / S * left;
        for (int j = 0; j < N * N; j++)
            next[j] = P[j] - PH[j / N] * PH[j % N] / S;
        memcpy(P, next, sizeof(next));
    }
}

__attribute__((unused)) static void must_equal(const struct ndt_track_state *predicted,
                                               const struct ndt_track_state *updated, const long double x[N],
                                               const long double P[N * N], double tolerance)
{
    double is[N];
    error_between(predicted, updated, is);
    for (int i = 0; i < N; i++) {
        const double sigma = sqrt(predicted->P[N * i + i]);
        ck_assert_msg(fabs(is[i] - (double)x[i]) <= tolerance * sigma, "x[%d] is %.12g, expected %.12Lg", i, is[i],
                      x[i]);
        for (int j = 0; j < N; j++)
            ck_assert_msg(fabs(updated->P[N * i + j] - (double)P[N * i + j]) <=
                              tolerance * sigma * sqrt(predicted->P[N * j + j]),
                          "P[%d][%d] is %.12g, expected %.12Lg", i, j, updated->P[N * i + j], P[N * i + j]);
    }
}

__attribute__((unused)) static struct ndt_track_state uncertain_state(void)
{
    struct ndt_track_state state = moving_state();
    make_covariance(state.P);
    track.state = state;
    return state;
}

#endif
