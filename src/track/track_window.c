/* The pose at, between and after the last scans. */
#include "ndt_track/track_window.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndt/linalg.h"
#include "track_internal.h"

static const struct ndt_track_window_scan *scan_at_age(const struct ndt_track_window *window, uint32_t age)
{
    return &window->scans[(window->head + NDT_TRACK_WINDOW_SCANS - 1 - age) % NDT_TRACK_WINDOW_SCANS];
}

static struct ndt_track_window_scan *scan_to_change(struct ndt_track_window *window, uint32_t age)
{
    return &window->scans[scan_at_age(window, age) - window->scans];
}

void ndt_track_window_clear(struct ndt_track_window *window)
{
    window->head = window->count = 0;
}

int ndt_track_is_same_state(const struct ndt_track_state *a, const struct ndt_track_state *b)
{
    return a->stamp_ns == b->stamp_ns && memcmp(&a->T_map_base, &b->T_map_base, sizeof(a->T_map_base)) == 0 &&
           a->has_twist == b->has_twist && memcmp(&a->twist, &b->twist, sizeof(a->twist)) == 0 &&
           a->scale == b->scale && memcmp(a->bias_radps, b->bias_radps, sizeof(a->bias_radps)) == 0 &&
           a->process_noise_scale == b->process_noise_scale && memcmp(a->P, b->P, sizeof(a->P)) == 0;
}

int ndt_track_window_ends_at(const struct ndt_track_window *window, const struct ndt_track *track)
{
    return window->count > 0 && window->starts == track->starts &&
           ndt_track_is_same_state(&scan_at_age(window, 0)->state, &track->state);
}

const struct ndt_track_step *ndt_track_window_last_step(const struct ndt_track_window *window)
{
    return window->count > 0 && scan_at_age(window, 0)->is_followed ? &scan_at_age(window, 0)->step : NULL;
}

/* ---- states that are computed again ---- */

/* Computes the state after a scan from the one before it, with the samples that are there now. */
static void follow(const struct ndt_track *track, const struct ndt_track_state *before,
                   const struct ndt_track_window_scan *scan, struct ndt_track_state *out)
{
    const struct ndt_track_step *step = &scan->step;
    struct ndt_track_measurement measurement = step->measurement;
    struct ndt_track_state predicted;
    const int is_told =
        track->odometry.count > 0 || track->imu.count > 0; /* otherwise it would be the same again */
    *out = scan->state;
    if (scan->is_fixed || !scan->is_followed || !is_told)
        return;
    ndt_track_predict_from(track, before, scan->state.stamp_ns, &predicted);
    if (step->has_gnss)
        (void)ndt_track_add_gnss(track, &step->gnss, &predicted);
    if (!step->is_measured) {
        *out = predicted;
        return;
    }
    measurement.observation = step->has_observation ? &step->observation : NULL;
    ndt_track_update_from(track, before, &predicted, &measurement, out, NULL, NULL);
    if (!ndt_track_state_is_plausible(out))
        *out = scan->state;
}

/* Computes the states of ages `oldest` to `newest` again; states[age - newest]. */
static void follow_all(const struct ndt_track_window *window, const struct ndt_track *track, uint32_t oldest,
                       uint32_t newest, struct ndt_track_state *states)
{
    uint32_t age = oldest;
    while (age + 1 < window->count && scan_at_age(window, age)->is_followed && !scan_at_age(window, age)->is_fixed)
        age++;
    struct ndt_track_state now = scan_at_age(window, age)->state, before;
    for (;; age--) {
        if (age <= oldest)
            states[age - newest] = now;
        if (age == newest)
            return;
        before = now;
        follow(track, &before, scan_at_age(window, age - 1), &now);
    }
}

/* Whether the samples before a scan are complete, or will be lost. */
static int must_fix(const struct ndt_track_window *window, const struct ndt_track *track, uint32_t age)
{
    const int64_t newest_ns = ndt_track_newest_ns(window, track),
                  stamp_ns = scan_at_age(window, age)->state.stamp_ns;
    const uint32_t previous = age + 1 < window->count ? age + 1 : age;
    return age >= NDT_TRACK_WINDOW_SCANS - 2 || ndt_track_seconds(stamp_ns, newest_ns) >= NDT_TRACK_LATE_S ||
           ndt_track_ring_ends_after(track, scan_at_age(window, previous)->state.stamp_ns);
}

/* Computes states for the last time, oldest first. */
static void fix(struct ndt_track_window *window, const struct ndt_track *track)
{
    for (uint32_t age = window->count - 1; age > 0; age--) {
        struct ndt_track_window_scan *scan = scan_to_change(window, age);
        struct ndt_track_state state;
        if (scan->is_fixed)
            continue;
        if (!must_fix(window, track, age))
            return;
        if (age + 1 < window->count) {
            follow(track, &scan_at_age(window, age + 1)->state, scan, &state);
            scan->state = state;
        }
        scan->is_fixed = 1;
    }
}

void ndt_track_window_renew(struct ndt_track_window *window, struct ndt_track *track)
{
    struct ndt_track_state state;
    if (!ndt_track_window_ends_at(window, track) || !ndt_track_window_last_step(window))
        return;
    follow_all(window, track, 0, 0, &state);
    /* The next prediction may lack its motion again: how far such ones go astray stays known. */
    state.process_noise_scale = fmax(state.process_noise_scale, track->state.process_noise_scale);
    scan_to_change(window, 0)->state = state;
    track->state = state;
}

/* ---- the next scan ---- */

void ndt_track_window_add(struct ndt_track_window *window, const struct ndt_track *track,
                          const struct ndt_track_step *step, int is_trusted)
{
    if (!track->has_pose || !ndt_track_state_is_plausible(&track->state))
        return;
    int is_joined = window->count > 0 && window->starts == track->starts;
    if (window->count > 0) {
        struct ndt_track_window_scan *last = scan_to_change(window, 0);
        const double dt_s = ndt_track_seconds(last->state.stamp_ns, track->state.stamp_ns);
        if (dt_s < -track->params.max_prediction_s) {
            ndt_track_window_clear(window);
            is_joined = 0;
        } else if (dt_s < 0) {
            return;
        } else if (is_joined && ndt_track_is_same_state(&last->state, &track->state)) {
            last->is_trusted = is_trusted;
            return;
        } else if (dt_s == 0) {
            is_joined = is_joined && last->is_joined;
            window->head = (window->head + NDT_TRACK_WINDOW_SCANS - 1) % NDT_TRACK_WINDOW_SCANS;
            window->count--;
        }
    }
    struct ndt_track_window_scan *scan = &window->scans[window->head];
    scan->state = track->state;
    scan->is_trusted = is_trusted;
    scan->is_joined = is_joined;
    scan->is_followed =
        step && is_joined && window->count > 0 && scan_at_age(window, 0)->state.stamp_ns == step->before_ns;
    scan->is_fixed = 0;
    if (scan->is_followed)
        scan->step = *step;
    window->starts = track->starts;
    window->head = (window->head + 1) % NDT_TRACK_WINDOW_SCANS;
    if (window->count < NDT_TRACK_WINDOW_SCANS)
        window->count++;
    fix(window, track);
}

/* ---- names ---- */

const char *ndt_track_refusal_name(enum ndt_track_refusal refusal)
{
    static const char *const names[] = {"", "no_pose", "before_window", "too_far_ahead", "not_trusted"};
    return names[refusal];
}

void ndt_track_refusal_line(enum ndt_track_refusal refusal, const struct ndt_track_pose *pose, char *text,
                            size_t size)
{
    static const char *const lines[] = {[NDT_TRACK_NOT_REFUSED] = "",
                                        [NDT_TRACK_NO_POSE] = "no scan has left a pose yet",
                                        [NDT_TRACK_NOT_TRUSTED] = "the state of a scan beside it is not trusted"};
    if (refusal == NDT_TRACK_BEFORE_WINDOW)
        snprintf(text, size, "the stamp is %.3g s older than the states that are kept", pose->off_s);
    else if (refusal == NDT_TRACK_TOO_FAR_AHEAD)
        snprintf(text, size, "the stamp is %.3g s later than can be predicted", pose->off_s);
    else
        snprintf(text, size, "%s", lines[refusal]);
}

/* ---- smoothing ---- */

/* Error of `later` with respect to `before`, as in track.h. The biases of different sources are not compared. */
static void error_between(const struct ndt_track_state *before, const struct ndt_track_state *later, double x[N])
{
    const struct ndt_pose off = ndt_pose_between(&before->T_map_base, &later->T_map_base);
    const struct ndt_twist d = ndt_pose_log(&off, 1);
    const int is_same_bias = before->bias_of_gyro == later->bias_of_gyro;
    for (int i = 0; i < 3; i++) {
        x[AT_POSE + i] = d.v_mps[i];
        x[AT_ROTATION + i] = d.w_radps[i];
        x[AT_TWIST + i] = later->twist.v_mps[i] - before->twist.v_mps[i];
        x[AT_TURN + i] = later->twist.w_radps[i] - before->twist.w_radps[i];
        x[AT_BIAS + i] = is_same_bias ? later->bias_radps[i] - before->bias_radps[i] : 0;
    }
    x[AT_SCALE] = later->scale - before->scale;
}

/* Difference of the covariances of prediction and smoothed state; nothing is known of the bias of another source.
 */
static void covariance_change(const struct ndt_track_state *predicted, const struct ndt_track_state *later,
                              double change[N * N])
{
    for (int i = 0; i < N * N; i++)
        change[i] = later->P[i] - predicted->P[i];
    if (predicted->bias_of_gyro == later->bias_of_gyro)
        return;
    for (int i = 0; i < N; i++)
        for (int k = AT_BIAS; k < AT_BIAS + 3; k++)
            change[N * i + k] = change[N * k + i] = 0;
}

/* Makes one step of Rauch, Tung and Striebel: `state` learns from `later`, the smoothed state of the next scan.
 * Returns 0, and changes nothing, where the motion between the two is not known. */
static int smooth(const struct ndt_track *track, const struct ndt_track_state *later, struct ndt_track_state *state)
{
    struct ndt_track_state predicted;
    double F[N * N], FP[N * N], inverse[N * N], transposed[N * N], off[N], x[N], change[N * N], P[N * N];
    if (!ndt_track_propagate(track, state, later->stamp_ns, 1, &predicted, F) ||
        !ndt_invert_symmetric(N, predicted.P, inverse))
        return 0;
    ndt_multiply(N, N, N, F, state->P, FP);
    ndt_multiply(N, N, N, inverse, FP, transposed); /* C^T */
    error_between(&predicted, later, off);
    ndt_multiply_transposed(N, N, 1, transposed, off, x);
    covariance_change(&predicted, later, change);
    ndt_congruence(N, N, transposed, change, P);
    for (int i = 0; i < N * N; i++)
        P[i] += state->P[i];
    struct ndt_track_state smoothed = *state;
    ndt_track_apply(&smoothed, x, P);
    for (int i = 0; i < N; i++)
        if (!(P[(N + 1) * i] > 0))
            return 0;
    if (!ndt_track_state_is_plausible(&smoothed))
        return 0;
    *state = smoothed;
    return 1;
}

/* The newest of the scans that smooth the one of this age: with known motion in between. */
static uint32_t last_of(const struct ndt_track_window *window, uint32_t age)
{
    uint32_t last = age;
    while (last > 0 && age - last < NDT_TRACK_LATER_SCANS && scan_at_age(window, last - 1)->is_joined &&
           scan_at_age(window, last - 1)->is_trusted)
        last--;
    return last;
}

/* ---- the pose at a stamp ---- */

int64_t ndt_track_newest_ns(const struct ndt_track_window *window, const struct ndt_track *track)
{
    if (window->count == 0)
        return 0;
    const int64_t scan_ns = scan_at_age(window, 0)->state.stamp_ns, sample_ns = ndt_track_newest_sample_ns(track);
    return sample_ns > scan_ns ? sample_ns : scan_ns;
}

/* Age of the newest scan at or before a stamp; window->count: there is none. */
static uint32_t age_before(const struct ndt_track_window *window, int64_t stamp_ns)
{
    uint32_t age = 0;
    while (age < window->count && scan_at_age(window, age)->state.stamp_ns > stamp_ns)
        age++;
    return age;
}

/* Whether the pose at the stamp can be found from the scan of this age. */
static enum ndt_track_refusal check(const struct ndt_track_window *window, const struct ndt_track *track,
                                    int64_t stamp_ns, double ahead_s, uint32_t age, double *off_s)
{
    *off_s = 0;
    if (window->count == 0)
        return NDT_TRACK_NO_POSE;
    if (age == window->count) {
        *off_s = ndt_track_seconds(stamp_ns, scan_at_age(window, age - 1)->state.stamp_ns);
        return NDT_TRACK_BEFORE_WINDOW;
    }
    if (!scan_at_age(window, age)->is_trusted || (age > 0 && !scan_at_age(window, age - 1)->is_trusted))
        return NDT_TRACK_NOT_TRUSTED;
    const double since_scan_s = ndt_track_seconds(scan_at_age(window, age)->state.stamp_ns, stamp_ns);
    const double since_data_s = ndt_track_seconds(ndt_track_newest_ns(window, track), stamp_ns);
    *off_s = fmax(since_scan_s - track->params.max_prediction_s, since_data_s - ahead_s);
    return *off_s > 0 ? NDT_TRACK_TOO_FAR_AHEAD : NDT_TRACK_NOT_REFUSED;
}

/* Adds the error of the gyro's last rate, which is carried on beyond its samples. A person with a sensor turns far
 * more abruptly than turn_noise says, which predictions from scan to scan hardly notice; the recent error counts.
 */
static void add_turns_ahead(const struct ndt_track *track, struct ndt_track_state *state)
{
    const double ahead_s = ndt_track_seconds(ndt_track_newest_sample_ns(track), state->stamp_ns);
    double square[3];
    if (state->source != NDT_TRACK_GYRO || ahead_s <= 0)
        return;
    const double q2 = track->params.turn_noise * track->params.turn_noise * fmax(state->process_noise_scale, 1);
    const double assumed = q2 * ahead_s * ahead_s * ahead_s / 3; /* part of the covariance already */
    ndt_track_gyro_astray(track, ahead_s, square);
    for (int i = 0; i < 3; i++)
        state->P[(N + 1) * (AT_ROTATION + i)] += fmax(square[i] - assumed, 0);
}

enum ndt_track_refusal ndt_track_pose_at(const struct ndt_track_window *window, const struct ndt_track *track,
                                         int64_t stamp_ns, double ahead_s, struct ndt_track_pose *out)
{
    const uint32_t age = age_before(window, stamp_ns);
    struct ndt_track_state states[NDT_TRACK_LATER_SCANS + 2]; /* newest first */
    double F[N * N];
    memset(out, 0, sizeof(*out));
    const enum ndt_track_refusal refusal = check(window, track, stamp_ns, ahead_s, age, &out->off_s);
    if (refusal != NDT_TRACK_NOT_REFUSED)
        return refusal;
    out->off_s = 0;
    const int is_joined = age > 0 && scan_at_age(window, age - 1)->is_joined;
    const uint32_t newest = is_joined ? last_of(window, age - 1) : age;
    if (age == 0)
        states[0] = scan_at_age(window, 0)->state;
    else
        follow_all(window, track, age, newest, states);
    const struct ndt_track_state *before = &states[age - newest];
    out->scan_ns = before->stamp_ns;
    out->state = *before;
    if (stamp_ns != before->stamp_ns)
        (void)ndt_track_propagate(track, before, stamp_ns, 0, &out->state, F);
    const int is_known = stamp_ns == before->stamp_ns || stamp_ns <= ndt_track_newest_sample_ns(track);
    out->kind = is_known ? NDT_POSE_FILTERED : NDT_POSE_PREDICTED;
    if (age == 0)
        add_turns_ahead(track, &out->state);
    if (!is_joined)
        return NDT_TRACK_NOT_REFUSED;
    for (uint32_t i = 1; i < age - newest; i++)
        (void)smooth(track, &states[i - 1], &states[i]);
    if (smooth(track, &states[age - newest - 1], &out->state))
        out->kind = NDT_POSE_SMOOTHED;
    return NDT_TRACK_NOT_REFUSED;
}
