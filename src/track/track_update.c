/* Measurements of the estimator: alignments and positions. */
#include <math.h>
#include <string.h>

#include "ndt/linalg.h"
#include "track_internal.h"

/* Shortest time whose difference of poses tells a velocity. */
static const double SHORTEST_S = 0.03;
/* Longest time between measurements over which the acceleration counts as constant. */
static const double LONGEST_S = 0.5;
/* Mean of chi-square with 6 degrees of freedom. */
static const double EXPECTED_INNOVATION = 6;
/* Gain and limit of the process-noise scale: one sudden turn in five scans is a habit. */
static const double AGILITY_GAIN = 0.2, MOST_AGILITY = 50;
/* Least deviation of an antenna [m]. */
static const double GNSS_LEAST_M = 1e-3;
/* Gate of a GNSS position: chi-square with 3 degrees of freedom, 99.9 %. */
static const double GNSS_GATE = 16.27;

/* Squared Mahalanobis distance of z from zero with covariance M P M^T + W^-1, where W may be singular: with M P M^T
 * = L L^T (W^-1 + L L^T)^-1 = W - W L (I + L^T W L)^-1 L^T W. */
static double innovation_of(const double P12[144], const double M[72], const double W[36], const double z[6])
{
    double transposed[72], S[36], WL[36], inner[36], Wz[6], LWz[6], sum = 0;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 12; j++)
            transposed[6 * j + i] = M[12 * i + j];
    ndt_congruence(12, 6, transposed, P12, S);
    if (!ndt_factor_cholesky(6, S))
        return 0;
    ndt_multiply(6, 6, 6, W, S, WL);
    ndt_congruence(6, 6, S, W, inner);
    for (int i = 0; i < 6; i++)
        inner[7 * i] += 1;
    ndt_multiply(6, 6, 1, W, z, Wz);
    ndt_multiply_transposed(6, 6, 1, WL, z, LWz);
    double solved[6];
    memcpy(solved, LWz, sizeof(solved));
    if (!ndt_factor_cholesky(6, inner))
        return 0;
    ndt_solve_cholesky(6, inner, solved);
    for (int i = 0; i < 6; i++)
        sum += z[i] * Wz[i] - LWz[i] * solved[i];
    return fmax(sum, 0);
}

/* Discounts information along the directions in which the prediction is uncertain.
 *
 * In a tunnel the null space of W wobbles from scan to scan by the noise of the normals, about a milliradian:
 * together many scans would seem to observe the axis. The null space of the accumulated information, an eigenvector
 * of the covariance of the prediction, is known far better. Along that null space W counts as in
 * ndt_observation_weigh. */
static void discount_along_prediction(const double P[N * N], double discount, double W[36])
{
    double scaled[36], values[6], U[36], in_U[36], back[36], unit[6];
    const double moved = W[0] + W[7] + W[14], turned = W[21] + W[28] + W[35];
    const double arm_m = moved > 0 && turned > moved ? sqrt(turned / moved) : 1;
    for (int i = 0; i < 6; i++)
        unit[i] = i < 3 ? 1 : arm_m;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            scaled[6 * i + j] = P[N * i + j] * unit[i] * unit[j];
    ndt_eigen_full(6, scaled, values, U);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            scaled[6 * i + j] = W[6 * i + j] / (unit[i] * unit[j]);
            back[6 * j + i] = U[6 * i + j];
        }
    ndt_congruence(6, 6, U, scaled, in_U);
    double largest = 0, root[6];
    for (int k = 0; k < 6; k++)
        largest = fmax(largest, in_U[7 * k]);
    for (int k = 0; k < 6; k++) {
        const double l = fmax(in_U[7 * k], 0), small = discount * largest;
        root[k] = largest > 0 ? sqrt(l * l / (l * l + small * small)) : 0;
    }
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            in_U[6 * i + j] *= root[i] * root[j];
    ndt_congruence(6, 6, back, in_U, W);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            W[6 * i + j] *= unit[i] * unit[j];
}

/* The measurement z = M (d, dv) with information W, and the information about dv alone. */
struct linear {
    double z[6], M[72], W[36], claimed[36]; /* claimed: as in ndt_weighed_observation */
    double twist_information[36], twist_right[6];
    double weakest;
};

/* Adds the motion within the sweep that no constant twist describes. White noise on the acceleration moves the mean
 * of a sweep of T seconds by a variance of q^2 T^3 / 320 from the position that the twist at its middle gives. The
 * floor covers the motion of a vehicle; a more agile carrier adds the rest. */
static void add_motion_within(const struct ndt_track *track, const struct ndt_track_state *predicted,
                              double sweep_s, struct ndt_observation_noise *noise)
{
    const double agility = fmax(predicted->process_noise_scale - 1, 0);
    const double part = sqrt(agility * sweep_s * sweep_s * sweep_s / 320);
    noise->floor_m = hypot(noise->floor_m, part * track->params.acceleration_noise);
    if (predicted->source != NDT_TRACK_GYRO) /* deskewing follows the gyro */
        noise->floor_rad = hypot(noise->floor_rad, part * track->params.turn_noise);
}

static void linearize(const struct ndt_track *track, const struct ndt_track_state *predicted,
                      const struct ndt_track_measurement *measurement, struct linear *out)
{
    struct ndt_weighed_observation weighed;
    double offset[6], moved[6], known[6];
    struct ndt_observation_noise noise = track->params.noise;
    add_motion_within(track, predicted, measurement->sweep_s, &noise);
    ndt_observation_weigh(measurement->observation, &noise, &weighed);
    if (!measurement->is_converged) {
        const double *step = weighed.step;
        noise.floor_m = hypot(noise.floor_m, sqrt(step[0] * step[0] + step[1] * step[1] + step[2] * step[2]));
        noise.floor_rad = hypot(noise.floor_rad, sqrt(step[3] * step[3] + step[4] * step[4] + step[5] * step[5]));
        ndt_observation_weigh(measurement->observation, &noise, &weighed);
    }
    const struct ndt_pose off = ndt_pose_between(&predicted->T_map_base, &measurement->T_map_base);
    const struct ndt_twist error = ndt_pose_log(&off, 1);
    for (int i = 0; i < 3; i++) {
        offset[i] = measurement->twist.v_mps[i] - predicted->twist.v_mps[i];
        offset[3 + i] = measurement->twist.w_radps[i] - predicted->twist.w_radps[i];
    }
    ndt_multiply(6, 6, 1, weighed.twist_to_pose, offset, moved);
    ndt_multiply(6, 6, 1, weighed.twist_information, offset, known);
    for (int i = 0; i < 6; i++) {
        out->z[i] = (i < 3 ? error.v_mps[i] : error.w_radps[i - 3]) + weighed.step[i] + moved[i];
        out->twist_right[i] = weighed.twist_gradient[i] + known[i];
        for (int j = 0; j < 6; j++) {
            out->M[12 * i + j] = i == j;
            out->M[12 * i + 6 + j] = weighed.twist_to_pose[6 * i + j];
        }
    }
    memcpy(out->W, weighed.information, sizeof(out->W));
    discount_along_prediction(predicted->P, noise.discount, out->W);
    memcpy(out->claimed, out->W, sizeof(out->claimed));
    if (memcmp(weighed.claimed, weighed.information, sizeof(weighed.claimed)) != 0) {
        memcpy(out->claimed, weighed.claimed, sizeof(out->claimed));
        discount_along_prediction(predicted->P, noise.discount, out->claimed);
    }
    memcpy(out->twist_information, weighed.twist_information, sizeof(out->twist_information));
    out->weakest = weighed.weakest;
}

/* Takes an alignment without an observation: its pose, and the twist from the difference to the last state. */
static void take_pose(const struct ndt_track *track, const struct ndt_track_state *last,
                      const struct ndt_track_state *predicted, const struct ndt_track_measurement *measurement,
                      struct ndt_track_state *out)
{
    const double dt_s = ndt_track_seconds(last->stamp_ns, predicted->stamp_ns);
    const struct ndt_pose step = ndt_pose_between(&last->T_map_base, &measurement->T_map_base);
    *out = *predicted;
    out->T_map_base = measurement->T_map_base;
    for (int i = 0; i < 6; i++) {
        const double deviation = i < 3 ? track->params.noise.floor_m : track->params.noise.floor_rad;
        for (int k = 0; k < N; k++)
            out->P[N * i + k] = out->P[N * k + i] = 0;
        out->P[N * i + i] = deviation * deviation;
    }
    if (predicted->source == NDT_TRACK_ODOMETRY || predicted->source == NDT_TRACK_ODOMETRY_TWIST)
        return;
    if (fabs(dt_s) <= track->params.max_prediction_s && dt_s >= SHORTEST_S) {
        out->twist = ndt_pose_log(&step, dt_s);
        out->has_twist = 1;
    }
    if (predicted->source == NDT_TRACK_GYRO)
        memcpy(out->twist.w_radps, predicted->twist.w_radps, sizeof(out->twist.w_radps));
}

/* Adds the information of the measurement to that of the prediction. 0: the result is no valid covariance. */
static int fuse(const struct linear *m, const double P_predicted[N * N], struct ndt_track_state *out)
{
    double J[N * N], P[N * N], WM[72], MWM[144], right[N] = {0}, x[N];
    if (!ndt_invert_symmetric(N, P_predicted, J))
        return 0;
    ndt_multiply(6, 6, 12, m->W, m->M, WM);
    ndt_multiply_transposed(6, 12, 12, m->M, WM, MWM);
    ndt_multiply_transposed(6, 12, 1, WM, m->z, right);
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 12; j++) {
            J[N * i + j] += 0.5 * (MWM[12 * i + j] + MWM[12 * j + i]);
            if (i >= 6 && j >= 6)
                J[N * i + j] += m->twist_information[6 * (i - 6) + j - 6];
        }
    for (int i = 0; i < 6; i++)
        right[6 + i] += m->twist_right[i];
    if (!ndt_invert_symmetric(N, J, P))
        return 0;
    ndt_multiply(N, N, 1, P, right, x);
    ndt_track_apply(out, x, P);
    out->has_twist = 1;
    return 1;
}

/* Widens the covariance of a prediction that the measurement contradicts, as after a sudden turn or a push, until
 * the distance is the expected one. */
static void widen(double P[N * N], double distance)
{
    const double factor = distance / EXPECTED_INNOVATION;
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < N; k++) {
            P[N * i + k] *= k < 12 ? factor : sqrt(factor);
            if (k >= 12)
                P[N * k + i] = P[N * i + k];
        }
}

/* Updates the process-noise scale: repeated innovations above the expected one mean a more agile vehicle than
 * assumed. Where odometry predicted, they are about the odometry and do not count. */
static void follow_agility(double distance, struct ndt_track_state *out)
{
    if (out->source == NDT_TRACK_ODOMETRY || out->source == NDT_TRACK_ODOMETRY_TWIST) {
        out->process_noise_scale = 1;
        return;
    }
    const double found = fmin(out->process_noise_scale * distance / EXPECTED_INNOVATION, MOST_AGILITY);
    out->process_noise_scale =
        fmax(1, out->process_noise_scale + AGILITY_GAIN * (found - out->process_noise_scale));
}

/* Squared distance of an estimate from what would have been predicted without LiDAR odometry. */
static double distance_without_scans(const struct ndt_track *track, const struct ndt_track_state *before,
                                     const struct ndt_track_state *found)
{
    struct ndt_track_state expected;
    double block[36];
    ndt_track_predict_without_scans(track, before, found->stamp_ns, &expected);
    for (int i = 0; i < 6; i++)
        memcpy(block + 6 * i, expected.P + N * i, 6 * sizeof(*block));
    return ndt_pose_squared_mahalanobis(&expected.T_map_base, block, &found->T_map_base);
}

/* Sets the mean motion since the last measurement, for stamps that lie between the two. */
static void set_mean_motion(const struct ndt_track_state *last, struct ndt_track_state *out)
{
    const double dt_s = ndt_track_seconds(last->stamp_ns, out->stamp_ns);
    const struct ndt_pose step = ndt_pose_between(&last->T_map_base, &out->T_map_base);
    out->since_s = last->has_twist && dt_s >= SHORTEST_S && dt_s <= LONGEST_S ? dt_s : 0;
    if (out->since_s == 0)
        return;
    out->mean_twist = ndt_pose_log(&step, dt_s);
    for (int i = 0; i < 3; i++) {
        out->acceleration.v_mps[i] = (out->twist.v_mps[i] - last->twist.v_mps[i]) / dt_s;
        out->acceleration.w_radps[i] = (out->twist.w_radps[i] - last->twist.w_radps[i]) / dt_s;
    }
}

void ndt_track_update_from(const struct ndt_track *track, const struct ndt_track_state *before,
                           const struct ndt_track_state *predicted, const struct ndt_track_measurement *measurement,
                           struct ndt_track_state *out, double *innovation, double *weakest)
{
    struct linear m;
    double P[N * N], P12[144];
    if (innovation)
        *innovation = 0;
    if (weakest)
        *weakest = 0;
    if (!measurement->observation) {
        take_pose(track, before, predicted, measurement, out);
        ndt_track_set_distortion(before, measurement, out);
        return;
    }
    *out = *predicted;
    linearize(track, predicted, measurement, &m);
    for (int i = 0; i < 12; i++)
        memcpy(P12 + 12 * i, predicted->P + N * i, 12 * sizeof(double));
    const double distance = innovation_of(P12, m.M, m.claimed, m.z);
    if (innovation)
        *innovation = distance;
    if (weakest)
        *weakest = m.weakest;
    memcpy(P, predicted->P, sizeof(P));
    if (distance > track->params.gate) { /* the prediction was wrong: the scan counts in full */
        widen(P, distance);
        memcpy(m.W, m.claimed, sizeof(m.W));
    }
    if (fuse(&m, P, out))
        set_mean_motion(before, out);
    follow_agility(predicted->is_of_scans ? distance_without_scans(track, before, out) : distance, out);
    ndt_track_set_distortion(before, measurement, out);
}

void ndt_track_update(const struct ndt_track *track, const struct ndt_track_state *predicted,
                      const struct ndt_track_measurement *measurement, struct ndt_track_state *out,
                      double *innovation, double *weakest)
{
    ndt_track_update_from(track, &track->state, predicted, measurement, out, innovation, weakest);
}

int ndt_track_add_gnss(const struct ndt_track *track, const struct ndt_track_gnss_sample *gnss,
                       struct ndt_track_state *predicted)
{
    const double dt_s = ndt_track_seconds(gnss->stamp_ns, predicted->stamp_ns);
    double R[9], antenna[3], drift[3], J[N * N], P[N * N], right[N] = {0}, x[N], distance = 0;
    if (!ndt_invert_symmetric(N, predicted->P, J))
        return 0;
    ndt_pose_rotation(&predicted->T_map_base, R);
    ndt_pose_apply(&predicted->T_map_base, gnss->antenna_m, antenna);
    for (int k = 0; k < 3; k++) {
        drift[k] = 0;
        for (int i = 0; i < 3; i++)
            drift[k] += R[3 * k + i] * predicted->twist.v_mps[i] * dt_s;
    }
    for (int k = 0; k < 3; k++) {
        /* derivative: d moves the antenna by R (rho + phi x a) */
        const double *a = gnss->antenna_m, *r = R + 3 * k;
        const double H[6] = {
            r[0], r[1], r[2], r[2] * a[1] - r[1] * a[2], r[0] * a[2] - r[2] * a[0], r[1] * a[0] - r[0] * a[1]};
        const double later_m = track->params.acceleration_noise * dt_s * dt_s / 2;
        const double sigma = fmax(hypot(gnss->deviation_m[k], later_m), GNSS_LEAST_M);
        const double z = gnss->position_m[k] + drift[k] - antenna[k];
        if (!(gnss->deviation_m[k] > 0) || !isfinite(sigma))
            continue;
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 6; j++)
                J[N * i + j] += H[i] * H[j] / (sigma * sigma);
        for (int i = 0; i < 6; i++)
            right[i] += H[i] * z / (sigma * sigma);
        distance += z * z / (sigma * sigma);
    }
    if (!ndt_invert_symmetric(N, J, P))
        return 0;
    ndt_multiply(N, N, 1, P, right, x);
    /* z^T (H P H^T + R)^-1 z = z^T R^-1 z - x^T H^T R^-1 z */
    for (int i = 0; i < 6; i++)
        distance -= x[i] * right[i];
    if (distance > GNSS_GATE)
        return -1;
    ndt_track_apply(predicted, x, P);
    return 1;
}

int ndt_track_use_gnss(struct ndt_track *track, struct ndt_track_state *predicted)
{
    if (!track->has_gnss ||
        fabs(ndt_track_seconds(track->gnss.stamp_ns, predicted->stamp_ns)) > NDT_TRACK_GNSS_REACH_S)
        return 0;
    track->has_gnss = 0;
    return ndt_track_add_gnss(track, &track->gnss, predicted);
}
