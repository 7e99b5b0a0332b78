/* The error of a pose whose points were moved by the motion within the sweep, where nothing has undone it. */
#include <math.h>
#include <string.h>

#include "track_internal.h"

/* The moment of the sweep at which the points fit best depends on what was seen when, and lies anywhere within it:
 * half a sweep to either side counts as three sigma. */
static const double MOMENT_PART = 1.0 / 6;
/* A turn shears the scan, and where surfaces differ from side to side that looks like a movement: one sigma as a
 * part of how far a typical point moves within the sweep. */
static const double SHEAR_PART = 0.05;

/* The distance at which a rotation moves points as it informs: a typical lever of the points of an observation. */
static double lever_of(const struct ndt_observation *observation)
{
    const double *A = observation->information[0];
    const double moved = A[0] + A[7] + A[14], turned = A[21] + A[28] + A[35];
    return moved > 0 && turned > 0 ? sqrt(turned / moved) : 0;
}

/* The mean square of the twist within the sweep: that of the estimate, its uncertainty, and half of the change
 * since the measurement before, for the twist of this sweep is known no better. */
static void set_mean_square(const struct ndt_track_state *before, const struct ndt_track_state *state,
                            double square[36])
{
    double nu[6], half[6];
    for (int i = 0; i < 6; i++) {
        const double *now = i < 3 ? state->twist.v_mps : state->twist.w_radps;
        const double *then = i < 3 ? before->twist.v_mps : before->twist.w_radps;
        nu[i] = now[i % 3];
        half[i] = before->has_twist ? (now[i % 3] - then[i % 3]) / 2 : 0;
    }
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            square[6 * i + j] = nu[i] * nu[j] + half[i] * half[j] + state->P[N * (AT_TWIST + i) + AT_TWIST + j];
}

void ndt_track_set_distortion(const struct ndt_track_state *before, const struct ndt_track_measurement *measurement,
                              struct ndt_track_state *state)
{
    memset(state->distortion, 0, sizeof(state->distortion));
    if (!(measurement->distorted_s > 0) || !measurement->observation)
        return;
    const double moment_s = MOMENT_PART * measurement->distorted_s;
    const double shear_ms = SHEAR_PART * measurement->distorted_s * lever_of(measurement->observation);
    double square[36];
    set_mean_square(before, state, square);
    for (int i = 0; i < 36; i++)
        state->distortion[i] = moment_s * moment_s * square[i];
    const double turned = square[21] + square[28] + square[35];
    for (int i = 0; i < 3; i++) /* across the axis of the turn: |w|^2 I - w w^T */
        for (int j = 0; j < 3; j++)
            state->distortion[6 * i + j] += shear_ms * shear_ms * ((i == j) * turned - square[6 * (3 + i) + 3 + j]);
}
