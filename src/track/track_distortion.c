/* Error of a pose from the motion within the sweep, where that was not undone. */
#include <math.h>
#include <string.h>

#include "track_internal.h"

/* Standard deviation of the moment of an axis, as a part of the sweep. An axis of the pose is found at some moment
 * of the sweep, depending on the surfaces that hold it and when they were seen: half a sweep to either side counts
 * as three sigma. */
static const double MOMENT_PART = 1.0 / 6;
/* Standard deviation of the apparent movement by a turn, as a part of the motion of a typical point within the
 * sweep: a turn shears the scan, which looks like a movement where surfaces differ from side to side. */
static const double SHEAR_PART = 0.05;

/* Typical lever of the points [m] with which a rotation moves them, from the information about both. */
static double lever_of(const struct ndt_observation *observation)
{
    const double *A = observation->information[0];
    const double moved = A[0] + A[7] + A[14], turned = A[21] + A[28] + A[35];
    return moved > 0 && turned > 0 ? sqrt(turned / moved) : 0;
}

/* Mean square of a component of the twist within the sweep: that of the estimate, its variance, and half of the
 * change since the previous measurement, because the motion in between is not known better. */
static double mean_square(double now, double then, int is_known, double variance)
{
    const double half = is_known ? (now - then) / 2 : 0;
    return now * now + half * half + variance;
}

void ndt_track_set_distortion(const struct ndt_track_state *before, const struct ndt_track_measurement *measurement,
                              struct ndt_track_state *state)
{
    memset(state->distortion, 0, sizeof(state->distortion));
    if (!(measurement->distorted_s > 0) || !measurement->observation)
        return;
    const double moment_s = MOMENT_PART * measurement->distorted_s;
    const double shear_ms = SHEAR_PART * measurement->distorted_s * lever_of(measurement->observation);
    double moved[3], turned[3];
    for (int i = 0; i < 3; i++) {
        moved[i] = mean_square(state->twist.v_mps[i], before->twist.v_mps[i], before->has_twist,
                               state->P[(N + 1) * (AT_TWIST + i)]);
        turned[i] = mean_square(state->twist.w_radps[i], before->twist.w_radps[i], before->has_twist,
                                state->P[(N + 1) * (AT_TURN + i)]);
    }
    for (int i = 0; i < 3; i++) {
        const double across = turned[(i + 1) % 3] + turned[(i + 2) % 3];
        state->distortion[AT_POSE + i] = moment_s * moment_s * moved[i] + shear_ms * shear_ms * across;
        state->distortion[AT_ROTATION + i] = moment_s * moment_s * turned[i];
    }
}
