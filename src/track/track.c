/* Prediction: the state and its covariance between the scans. */
#include <math.h>
#include <string.h>

#include "ndt/linalg.h"
#include "track_internal.h"

static const double DEG = 0.017453292519943295;
/* Standard deviation of the direction of gravity from an IMU at rest. */
static const double LEVEL_RAD = 0.01;
/* Initial deviation of an unused state: keeps the covariance invertible. */
static const double TINY = 1e-6;
/* Longest gap whose mean velocity tells the current one. */
static const double LONGEST_GAP_S = 10;
/* Time before its stamp for which a given pose holds: the points of the sweep with that stamp were measured up to a
 * sweep before, on average, where the stamp is that of the last one. */
static const double GIVEN_SWEEP_S = 0.1;
/* Deviations of a given twist: one that is 4 m/s wrong is within two of them. */
static const double GIVEN_MPS = 2, GIVEN_RADPS = 0.1;
/* Largest deviation in metres, radians and per second; beyond it nothing is known anyway. */
static const double MOST_DEVIATION = 1e3;
/* Scale and bias above which odometry or a gyro is broken: its estimates are forgotten. */
static const double MOST_SCALE = 0.5, MOST_BIAS_RADPS = 1;

void ndt_track_params_default(struct ndt_track_params *params)
{
    *params = (struct ndt_track_params){.acceleration_noise = 1.0,
                                        .turn_noise = 0.2,
                                        .stamp_deviation_s = 0.003,
                                        .odometry_noise_m = 0.02,
                                        .odometry_noise_rad = 0.002,
                                        .odometry_deviation_mps = 0.05,
                                        .odometry_deviation_radps = 0.005,
                                        .twist_noise_m = 0.05,
                                        .twist_noise_rad = 0.005,
                                        .scale_deviation = 0.01,
                                        .odometry_bias_radps = 0.001,
                                        .gyro_noise_rad = 0.002,
                                        .gyro_bias_radps = 0.02,
                                        .pose_deviation_m = 1.0,
                                        .pose_deviation_rad = 10 * DEG,
                                        .start_mps = 10.0,
                                        .start_radps = 0.5,
                                        .max_prediction_s = 1.0,
                                        .lost_deviation_m = 2.0,
                                        .gate = 22.5};
    ndt_observation_noise_default(&params->noise);
}

void ndt_track_init(struct ndt_track *track, const struct ndt_track_params *params)
{
    memset(track, 0, sizeof(*track));
    track->params = *params;
    track->state.T_map_base = ndt_pose_identity();
}

/* ---- plausibility ---- */

int ndt_track_state_is_plausible(const struct ndt_track_state *state)
{
    double sum = state->scale * 0 + state->process_noise_scale * 0;
    for (int i = 0; i < N * N; i++)
        sum += state->P[i] * 0;
    for (int i = 0; i < 3; i++)
        sum += state->bias_radps[i] * 0;
    return sum == 0 && ndt_track_is_plausible(&state->T_map_base, &state->twist);
}

/* ---- covariance ---- */

static void set_variance(double P[N * N], int first, int count, double deviation)
{
    for (int i = first; i < first + count; i++) {
        for (int k = 0; k < N; k++)
            P[i * N + k] = P[k * N + i] = 0;
        P[i * N + i] = deviation * deviation + TINY * TINY;
    }
}

/* Cuts errors `from`..`from` + count - 1 off from all earlier ones. */
static void forget_rows(double F[N * N], int from, int count)
{
    memset(F + N * from, 0, (size_t)(count * N) * sizeof(*F));
}

static void forget_twist(const struct ndt_track *track, struct ndt_track_state *state)
{
    state->has_twist = 0;
    state->twist = (struct ndt_twist){0};
    set_variance(state->P, AT_TWIST, 3, track->params.start_mps);
    set_variance(state->P, AT_TURN, 3, track->params.start_radps);
}

static int is_odometry(enum ndt_track_source source)
{
    return source == NDT_TRACK_ODOMETRY || source == NDT_TRACK_ODOMETRY_TWIST;
}

static int odometry_between(const struct ndt_track *track, int64_t from_ns, int64_t to_ns,
                            struct ndt_track_motion *out)
{
    return ndt_track_odometry_between(track, from_ns, to_ns, out) &&
           (out->is_of_scans || !track->ignores[NDT_TRACK_INPUT_ODOMETRY]);
}

static int gyro_between(const struct ndt_track *track, int64_t from_ns, int64_t to_ns, const double bias[3],
                        const double v_mps[3], struct ndt_track_motion *out)
{
    return !track->ignores[NDT_TRACK_INPUT_GYRO] && ndt_track_gyro_between(track, from_ns, to_ns, bias, v_mps, out);
}

/* Changes the source of the bias, since odometry and gyro each have their own. */
static void use_bias_of(const struct ndt_track *track, struct ndt_track_state *state, int gyro)
{
    if (state->bias_of_gyro == gyro)
        return;
    state->bias_of_gyro = gyro;
    memset(state->bias_radps, 0, sizeof(state->bias_radps));
    set_variance(state->P, AT_BIAS, 3, gyro ? track->params.gyro_bias_radps : track->params.odometry_bias_radps);
}

/* out = diag(R, R) P diag(R, R)^T, with R transposed for the other direction. */
static void turn_pose_covariance(const struct ndt_pose *T, int to_map, const double in[36], double out[36])
{
    double R[9], turn[36] = {0};
    ndt_pose_rotation(T, R);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            turn[6 * i + j] = turn[6 * (3 + i) + 3 + j] = to_map ? R[3 * j + i] : R[3 * i + j];
    ndt_congruence(6, 6, turn, in, out);
}

static void get_pose_block(const double P[N * N], double out[36])
{
    for (int i = 0; i < 6; i++)
        memcpy(out + 6 * i, P + N * i, 6 * sizeof(*out));
}

void ndt_track_map_covariance(const struct ndt_track_state *state, double covariance[36])
{
    double block[36];
    get_pose_block(state->P, block);
    for (int i = 0; i < 6; i++)
        block[7 * i] += state->distortion[i];
    turn_pose_covariance(&state->T_map_base, 1, block, covariance);
}

void ndt_track_pose_covariance(const struct ndt_track_state *state, const struct ndt_pose *T_base_sensor,
                               double covariance[36])
{
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(T_base_sensor);
    double block[36], Ad[36], transposed[36];
    get_pose_block(state->P, block);
    ndt_pose_adjoint(&T_sensor_base, Ad);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            transposed[6 * i + j] = Ad[6 * j + i];
    ndt_congruence(6, 6, transposed, block, covariance);
}

/* Deviation along the least certain axis of the three states from `first` on. */
static double deviation_of(const struct ndt_track_state *state, int first)
{
    const double *P = state->P + (N + 1) * first;
    const double upper[6] = {P[0], P[1], P[2], P[N + 1], P[N + 2], P[2 * N + 2]};
    double values[3], V[9];
    ndt_eigen_symmetric(3, upper, values, V);
    return sqrt(fmax(values[2], 0));
}

double ndt_track_position_deviation(const struct ndt_track_state *state)
{
    return deviation_of(state, AT_POSE);
}

double ndt_track_attitude_deviation(const struct ndt_track_state *state)
{
    return deviation_of(state, AT_ROTATION);
}

double ndt_track_velocity_deviation(const struct ndt_track_state *state)
{
    return deviation_of(state, AT_TWIST);
}

/* ---- start ---- */

/* Updates the attitude by the direction of gravity: up = R^T e_z, and R^T e_z moves by up x phi. */
static void level(struct ndt_track_state *state, const double up[3])
{
    double R[9], H[3 * N] = {0}, J[N * N], x[N] = {0}, P[N * N];
    ndt_pose_rotation(&state->T_map_base, R);
    const double u[3] = {R[6], R[7], R[8]};
    const double cross[9] = {0, -u[2], u[1], u[2], 0, -u[0], -u[1], u[0], 0};
    for (int i = 0; i < 3; i++)
        memcpy(H + N * i + AT_ROTATION, cross + 3 * i, 3 * sizeof(double));
    if (!ndt_invert_symmetric(N, state->P, J))
        return;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++) {
            for (int j = 0; j < N; j++)
                J[N * i + j] += H[N * k + i] * H[N * k + j] / (LEVEL_RAD * LEVEL_RAD);
            x[i] += H[N * k + i] * (up[k] - u[k]) / (LEVEL_RAD * LEVEL_RAD);
        }
    if (!ndt_invert_symmetric(N, J, P))
        return;
    double rhs[N];
    memcpy(rhs, x, sizeof(rhs));
    ndt_multiply(N, N, 1, P, rhs, x);
    ndt_track_apply(state, x, P);
}

void ndt_track_start_state(const struct ndt_track *track, int64_t stamp_ns, const struct ndt_pose *T_map_base,
                           const struct ndt_twist *twist, const double covariance[36],
                           struct ndt_track_state *state)
{
    const struct ndt_track_params *params = &track->params;
    double block[36], checked[36], up[3];
    *state = (struct ndt_track_state){
        .stamp_ns = stamp_ns, .T_map_base = *T_map_base, .process_noise_scale = 1, .source = NDT_TRACK_POSE};
    set_variance(state->P, 0, 3, params->pose_deviation_m);
    set_variance(state->P, 3, 3, params->pose_deviation_rad);
    if (covariance) {
        turn_pose_covariance(T_map_base, 0, covariance, block);
        for (int i = 0; i < 6; i++)
            block[7 * i] += TINY * TINY;
        for (int i = 0; i < 6 && ndt_invert_symmetric(6, block, checked); i++)
            memcpy(state->P + N * i, block + 6 * i, 6 * sizeof(double));
    }
    forget_twist(track, state);
    if (twist && ndt_track_is_plausible(NULL, twist)) {
        state->twist = *twist;
        state->has_twist = 1;
        set_variance(state->P, AT_TWIST, 3, GIVEN_MPS);
        set_variance(state->P, AT_TURN, 3, GIVEN_RADPS);
    }
    set_variance(state->P, AT_SCALE, 1, params->scale_deviation);
    set_variance(state->P, AT_BIAS, 3, params->odometry_bias_radps);
    if (ndt_track_gravity(track, stamp_ns, up))
        level(state, up);
}

void ndt_track_reset(struct ndt_track *track, int64_t stamp_ns, const struct ndt_pose *T_map_base,
                     const struct ndt_twist *twist, const double covariance[36])
{
    struct ndt_track_state start;
    ndt_track_start_state(track, stamp_ns, T_map_base, twist, covariance, &start);
    if (!ndt_track_state_is_plausible(&start))
        return;
    track->state = start;
    track->starts++;
    track->has_pose = 1;
    track->is_measured = 0;
    track->fixed_ns = stamp_ns;
}

void ndt_track_adopt(struct ndt_track *track, const struct ndt_track_state *state, int is_measured)
{
    if (!ndt_track_state_is_plausible(state))
        return;
    track->state = *state;
    track->starts++;
    track->has_pose = 1;
    track->is_measured = is_measured;
    track->fixed_ns = state->stamp_ns;
    track->has_gnss = 0;
}

/* ---- prediction ---- */

/* Sets F to the identity with Ad(D^-1) for the pose. */
static void set_transition(const struct ndt_pose *D, double F[N * N])
{
    const struct ndt_pose back = ndt_pose_inverse(D);
    double Ad[36];
    memset(F, 0, N * N * sizeof(*F));
    for (int i = 0; i < N; i++)
        F[N * i + i] = 1;
    ndt_pose_adjoint(&back, Ad);
    for (int i = 0; i < 6; i++)
        memcpy(F + N * i, Ad + 6 * i, 6 * sizeof(double));
}

/* P <- F P F^T */
static void propagate(const double F[N * N], double P[N * N])
{
    double transposed[N * N], out[N * N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            transposed[N * i + j] = F[N * j + i];
    ndt_congruence(N, N, transposed, P, out);
    memcpy(P, out, sizeof(out));
}

/* Adds white noise on the acceleration for dt_s, on axes of the pose and the twist at the same offset. */
static void add_acceleration_noise(struct ndt_track_state *state, int axis, int count, double q, double dt_s)
{
    const double t = fabs(dt_s), q2 = q * q * fmax(state->process_noise_scale, 1);
    double *P = state->P;
    for (int i = axis; i < axis + count; i++) {
        P[N * i + i] += q2 * t * t * t / 3;
        P[N * i + AT_TWIST + i] += q2 * t * t / 2;
        P[N * (AT_TWIST + i) + i] += q2 * t * t / 2;
        P[N * (AT_TWIST + i) + AT_TWIST + i] += q2 * t;
    }
}

static void add_noise(double P[N * N], int first, int count, double variance)
{
    for (int i = first; i < first + count; i++)
        P[N * i + i] += variance;
}

/* Adds the error of the stamp, which moves the pose along its velocity. */
static void add_stamp_noise(const struct ndt_track *track, struct ndt_track_state *state)
{
    const double *v = state->twist.v_mps, *w = state->twist.w_radps, s = track->params.stamp_deviation_s;
    const double nu[6] = {v[0], v[1], v[2], w[0], w[1], w[2]};
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            state->P[N * i + j] += s * s * (nu[i] * nu[j]);
}

/* An increment without the estimated bias and scale. */
static struct ndt_pose corrected(const struct ndt_track_state *state, const struct ndt_pose *D, double dt_s)
{
    struct ndt_twist rotation = {0};
    for (int i = 0; i < 3; i++)
        rotation.w_radps[i] = -state->bias_radps[i];
    const struct ndt_pose back = ndt_pose_exp(&rotation, dt_s);
    struct ndt_pose out = ndt_pose_compose(D, &back);
    for (int i = 0; i < 3; i++)
        out.t_m[i] = D->t_m[i] * (1 - state->scale);
    return out;
}

static void predict_by_odometry(const struct ndt_track *track, const struct ndt_track_motion *motion, double dt_s,
                                struct ndt_track_state *state, double F[N * N])
{
    const struct ndt_track_params *params = &track->params;
    const double noise_m = motion->has_pose ? params->odometry_noise_m : params->twist_noise_m;
    const double noise_rad = motion->has_pose ? params->odometry_noise_rad : params->twist_noise_rad;
    const double t = fabs(dt_s);
    double R[9];
    state->source = motion->has_pose ? NDT_TRACK_ODOMETRY : NDT_TRACK_ODOMETRY_TWIST;
    use_bias_of(track, state, 0);
    const struct ndt_pose D = corrected(state, &motion->D, dt_s);
    set_transition(&D, F);
    ndt_pose_rotation(&D, R);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            F[N * (AT_POSE + i) + AT_SCALE] -= R[3 * k + i] * motion->D.t_m[k];
        F[N * (AT_ROTATION + i) + AT_BIAS + i] = -dt_s;
    }
    propagate(F, state->P);
    state->T_map_base = ndt_pose_compose(&state->T_map_base, &D);
    state->twist = motion->twist;
    for (int i = 0; i < 3; i++) {
        state->twist.v_mps[i] *= 1 - state->scale;
        state->twist.w_radps[i] -= state->bias_radps[i];
    }
    state->has_twist = 1;
    add_noise(state->P, AT_POSE, 3, noise_m * noise_m * t);
    add_noise(state->P, AT_ROTATION, 3, noise_rad * noise_rad * t);
    set_variance(state->P, AT_TWIST, 3, params->odometry_deviation_mps);
    set_variance(state->P, AT_TURN, 3, params->odometry_deviation_radps);
    forget_rows(F, AT_TWIST, 6);
    add_acceleration_noise(state, AT_POSE, 3, params->acceleration_noise, motion->extrapolated_s);
    add_acceleration_noise(state, AT_ROTATION, 3, params->turn_noise, motion->extrapolated_s);
}

/* Noise of LiDAR odometry, per square root of a second. */
static const double OF_SCANS_M = 0.06, OF_SCANS_RAD = 0.02;

/* Predicts by LiDAR odometry, which has neither scale nor bias. It tells the mean twist since the scan before,
 * which changes meanwhile. */
static void predict_by_scans(const struct ndt_track *track, const struct ndt_track_motion *motion, double dt_s,
                             struct ndt_track_state *state, double F[N * N])
{
    const struct ndt_track_params *params = &track->params;
    const double t = fabs(dt_s), changes = sqrt(fmax(state->process_noise_scale, 1) * t / 3);
    state->source = NDT_TRACK_TWIST;
    state->is_of_scans = 1;
    set_transition(&motion->D, F);
    propagate(F, state->P);
    state->T_map_base = ndt_pose_compose(&state->T_map_base, &motion->D);
    state->twist = motion->twist;
    state->has_twist = 1;
    add_noise(state->P, AT_POSE, 3, OF_SCANS_M * OF_SCANS_M * t);
    add_noise(state->P, AT_ROTATION, 3, OF_SCANS_RAD * OF_SCANS_RAD * t);
    set_variance(state->P, AT_TWIST, 3,
                 hypot(params->odometry_deviation_mps, changes * params->acceleration_noise));
    set_variance(state->P, AT_TURN, 3, hypot(params->odometry_deviation_radps, changes * params->turn_noise));
    forget_rows(F, AT_TWIST, 6);
    add_acceleration_noise(state, AT_POSE, 3, params->acceleration_noise, motion->extrapolated_s);
    add_acceleration_noise(state, AT_ROTATION, 3, params->turn_noise, motion->extrapolated_s);
}

static void predict_by_gyro(const struct ndt_track *track, const struct ndt_track_motion *motion, double dt_s,
                            struct ndt_track_state *state, double F[N * N])
{
    const double noise = track->params.gyro_noise_rad;
    state->source = NDT_TRACK_GYRO;
    set_transition(&motion->D, F);
    for (int i = 0; i < 3; i++) {
        F[N * (AT_POSE + i) + AT_TWIST + i] = dt_s;
        F[N * (AT_ROTATION + i) + AT_BIAS + i] = -dt_s;
        F[N * (AT_TURN + i) + AT_TURN + i] = 0;
        F[N * (AT_TURN + i) + AT_BIAS + i] = -1;
    }
    propagate(F, state->P);
    state->T_map_base = ndt_pose_compose(&state->T_map_base, &motion->D);
    for (int i = 0; i < 3; i++)
        state->twist.w_radps[i] = motion->twist.w_radps[i] - state->bias_radps[i];
    state->has_twist = 1;
    add_acceleration_noise(state, AT_POSE, 3, track->params.acceleration_noise, dt_s);
    add_noise(state->P, AT_ROTATION, 3, noise * noise * fabs(dt_s));
    add_noise(state->P, AT_TURN, 3, noise * noise / 0.01); /* noise of one sample at 100 Hz */
    add_acceleration_noise(state, AT_ROTATION, 3, track->params.turn_noise, motion->extrapolated_s);
}

static void predict_by_twist(const struct ndt_track *track, double dt_s, struct ndt_track_state *state,
                             double F[N * N])
{
    const struct ndt_pose D = ndt_pose_exp(&state->twist, dt_s);
    state->source = state->has_twist ? NDT_TRACK_TWIST : NDT_TRACK_POSE;
    set_transition(&D, F);
    for (int i = 0; i < 6; i++)
        F[N * i + AT_TWIST + i] = dt_s;
    propagate(F, state->P);
    state->T_map_base = ndt_pose_compose(&state->T_map_base, &D);
    add_acceleration_noise(state, AT_POSE, 3, track->params.acceleration_noise, dt_s);
    add_acceleration_noise(state, AT_ROTATION, 3, track->params.turn_noise, dt_s);
}

static int has_jumped(const struct ndt_track *track, double dt_s)
{
    return fabs(dt_s) > track->params.max_prediction_s;
}

/* Bounds the covariance of a pose that is lost for long and contradicted again and again: it must stay invertible,
 * or every later scan would be refused. */
static void bound_covariance(const struct ndt_track *track, struct ndt_track_state *state)
{
    int is_bounded = 1;
    for (int i = 0; i < 12; i++)
        is_bounded = is_bounded && state->P[(N + 1) * i] <= MOST_DEVIATION * MOST_DEVIATION;
    if (is_bounded)
        return;
    set_variance(state->P, AT_POSE, 3, MOST_DEVIATION);
    set_variance(state->P, AT_ROTATION, 3, 1);
    set_variance(state->P, AT_SCALE, 1, track->params.scale_deviation);
    set_variance(state->P, AT_BIAS, 3,
                 state->bias_of_gyro ? track->params.gyro_bias_radps : track->params.odometry_bias_radps);
    forget_twist(track, state);
}

/* Predicts across a gap: the pose stays, with the reach of the largest start velocity as its deviation. The pose
 * that is found next then tells the velocity. */
static void predict_across_gap(const struct ndt_track *track, double dt_s, struct ndt_track_state *out)
{
    double F[N * N];
    forget_twist(track, out);
    if (dt_s > 0 && dt_s <= LONGEST_GAP_S) {
        predict_by_twist(track, dt_s, out, F);
        return;
    }
    out->source = NDT_TRACK_POSE;
    add_noise(out->P, AT_POSE, 3, pow(LONGEST_GAP_S * track->params.start_mps, 2));
    add_noise(out->P, AT_ROTATION, 3, 1);
}

/* Predicts with the transition F of the errors from `state`, zero where the motion is unknown. Returns whether it
 * is known. takes_scans: by LiDAR odometry, too. */
static int predict(const struct ndt_track *track, const struct ndt_track_state *state, int64_t stamp_ns,
                   int takes_scans, struct ndt_track_state *out, double F[N * N])
{
    const double dt_s = ndt_track_seconds(state->stamp_ns, stamp_ns);
    const int bias_before = out->bias_of_gyro;
    struct ndt_track_motion motion = {.is_of_scans = 0};
    const int is_told = odometry_between(track, state->stamp_ns, stamp_ns, &motion);
    out->is_of_scans = 0;
    if (is_told && !motion.is_of_scans) {
        predict_by_odometry(track, &motion, dt_s, out, F);
    } else if (is_told && takes_scans) {
        predict_by_scans(track, &motion, dt_s, out, F);
    } else if (has_jumped(track, dt_s)) {
        predict_across_gap(track, dt_s, out);
        memset(F, 0, N * N * sizeof(*F));
        return 0;
    } else {
        struct ndt_track_state by_gyro = *out;
        use_bias_of(track, &by_gyro, 1);
        if (gyro_between(track, state->stamp_ns, stamp_ns, by_gyro.bias_radps, out->twist.v_mps, &motion)) {
            *out = by_gyro;
            predict_by_gyro(track, &motion, dt_s, out, F);
        } else {
            predict_by_twist(track, dt_s, out, F);
        }
    }
    if (out->bias_of_gyro != bias_before) /* the bias is another one */
        for (int i = 0; i < N; i++)
            memset(F + N * i + AT_BIAS, 0, 3 * sizeof(*F));
    return 1;
}

static void bound_parameters(const struct ndt_track *track, struct ndt_track_state *state)
{
    int is_bounded = fabs(state->scale) <= MOST_SCALE;
    for (int i = 0; i < 3; i++)
        is_bounded = is_bounded && fabs(state->bias_radps[i]) <= MOST_BIAS_RADPS;
    if (is_bounded)
        return;
    state->scale = 0;
    memset(state->bias_radps, 0, sizeof(state->bias_radps));
    set_variance(state->P, AT_SCALE, 1, track->params.scale_deviation);
    set_variance(state->P, AT_BIAS, 3,
                 state->bias_of_gyro ? track->params.gyro_bias_radps : track->params.odometry_bias_radps);
}

void ndt_track_predict_without_scans(const struct ndt_track *track, const struct ndt_track_state *before,
                                     int64_t stamp_ns, struct ndt_track_state *out)
{
    double F[N * N];
    *out = *before;
    out->stamp_ns = stamp_ns;
    bound_parameters(track, out);
    if (predict(track, before, stamp_ns, 0, out, F))
        add_stamp_noise(track, out);
    bound_covariance(track, out);
}

int ndt_track_propagate(const struct ndt_track *track, const struct ndt_track_state *before, int64_t stamp_ns,
                        int is_of_scan, struct ndt_track_state *out, double F[N * N])
{
    *out = *before;
    out->stamp_ns = stamp_ns;
    bound_parameters(track, out);
    const int is_known = predict(track, before, stamp_ns, 1, out, F);
    if (is_known && is_of_scan)
        add_stamp_noise(track, out);
    bound_covariance(track, out);
    if (ndt_track_state_is_plausible(out))
        return is_known;
    *out = *before;
    out->stamp_ns = stamp_ns;
    memset(F, 0, N * N * sizeof(*F));
    bound_parameters(track, out);
    predict_across_gap(track, INFINITY, out);
    bound_covariance(track, out);
    return 0;
}

void ndt_track_predict_from(const struct ndt_track *track, const struct ndt_track_state *before, int64_t stamp_ns,
                            struct ndt_track_state *out)
{
    double F[N * N];
    (void)ndt_track_propagate(track, before, stamp_ns, 1, out, F);
}

int ndt_track_predict(const struct ndt_track *track, int64_t stamp_ns, struct ndt_track_state *out)
{
    *out = track->state;
    if (track->has_pose)
        ndt_track_predict_from(track, &track->state, stamp_ns, out);
    return track->has_pose;
}

int ndt_track_motion(const struct ndt_track *track, const struct ndt_track_state *state, const double *time_s,
                     int count, struct ndt_pose *T_reference_at)
{
    const double none[3] = {0}, *bias = state->bias_of_gyro ? state->bias_radps : none;
    int64_t before_ns = state->stamp_ns;
    for (int i = 0; i < count; i++) {
        struct ndt_track_motion motion;
        const int64_t stamp_ns = state->stamp_ns + (int64_t)llround(time_s[i] * 1e9);
        if (!gyro_between(track, before_ns, stamp_ns, bias, state->twist.v_mps, &motion))
            return 0;
        T_reference_at[i] = i == 0 ? motion.D : ndt_pose_compose(&T_reference_at[i - 1], &motion.D);
        before_ns = stamp_ns;
    }
    return 1;
}

/* Mean twist from dt_s < 0 to the state: the one since the last measurement, and its change within that time. */
static struct ndt_twist mean_twist_before(const struct ndt_track_state *state, double dt_s)
{
    struct ndt_twist twist = state->mean_twist;
    const double later_s = 0.5 * (dt_s + state->since_s);
    for (int i = 0; i < 3; i++) {
        twist.v_mps[i] += later_s * state->acceleration.v_mps[i];
        twist.w_radps[i] += later_s * state->acceleration.w_radps[i];
    }
    return twist;
}

void ndt_track_shift(const struct ndt_track *track, const struct ndt_track_state *state, double dt_s,
                     struct ndt_track_state *out)
{
    const double *v0 = state->twist.v_mps;
    struct ndt_track_motion motion;
    double F[N * N];
    *out = *state;
    if (dt_s == 0)
        return;
    out->stamp_ns = state->stamp_ns + (int64_t)llround(dt_s * 1e9);
    if (odometry_between(track, state->stamp_ns, out->stamp_ns, &motion) && !motion.is_of_scans) {
        predict_by_odometry(track, &motion, dt_s, out, F);
    } else if (state->bias_of_gyro &&
               gyro_between(track, state->stamp_ns, out->stamp_ns, state->bias_radps, v0, &motion)) {
        predict_by_gyro(track, &motion, dt_s, out, F);
    } else {
        if (dt_s < 0 && state->since_s > 0)
            out->twist = mean_twist_before(state, dt_s);
        predict_by_twist(track, dt_s, out, F);
        out->twist = state->twist;
    }
    out->source = state->source;
    if (ndt_track_state_is_plausible(out))
        return;
    const int64_t stamp_ns = out->stamp_ns;
    *out = *state;
    out->stamp_ns = stamp_ns;
}

/* ---- the state ---- */

void ndt_track_ignore(struct ndt_track *track, enum ndt_track_input input, int is_ignored,
                      const struct ndt_twist *seen)
{
    struct ndt_track_state *state = &track->state;
    if (track->ignores[input] == is_ignored)
        return;
    track->ignores[input] = is_ignored;
    state->scale = 0;
    memset(state->bias_radps, 0, sizeof(state->bias_radps));
    set_variance(state->P, AT_SCALE, 1, track->params.scale_deviation);
    set_variance(state->P, AT_BIAS, 3,
                 state->bias_of_gyro ? track->params.gyro_bias_radps : track->params.odometry_bias_radps);
    if (!seen || !ndt_track_is_plausible(NULL, seen))
        return;
    forget_twist(track, state);
    state->twist = *seen;
    state->has_twist = 1;
}

int ndt_track_is_late(const struct ndt_track *track, int64_t stamp_ns)
{
    const double dt_s = ndt_track_seconds(track->state.stamp_ns, stamp_ns);
    const int is_given = !track->is_measured && track->fixed_ns == track->state.stamp_ns;
    return track->has_pose && dt_s < (is_given ? -GIVEN_SWEEP_S : 0) && !has_jumped(track, dt_s);
}

void ndt_track_commit(struct ndt_track *track, const struct ndt_track_state *updated)
{
    if (!track->has_pose || ndt_track_is_late(track, updated->stamp_ns) || !ndt_track_state_is_plausible(updated))
        return;
    if (track->is_measured && updated->stamp_ns == track->state.stamp_ns)
        return;
    track->state = *updated;
    track->fixed_ns = updated->stamp_ns;
    track->is_measured = 1;
    track->has_gnss = 0;
}

/* A velocity that no scan confirms for max_prediction_s is dropped: it must not carry the pose off the map. */
void ndt_track_coast(struct ndt_track *track, const struct ndt_track_state *predicted)
{
    if (!track->has_pose || ndt_track_is_late(track, predicted->stamp_ns) ||
        !ndt_track_state_is_plausible(predicted))
        return;
    if (track->is_measured && predicted->stamp_ns == track->state.stamp_ns)
        return;
    track->state = *predicted;
    track->is_measured = 0;
    track->has_gnss = 0;
    if (has_jumped(track, ndt_track_seconds(track->fixed_ns, predicted->stamp_ns)) &&
        !is_odometry(predicted->source))
        forget_twist(track, &track->state);
}
