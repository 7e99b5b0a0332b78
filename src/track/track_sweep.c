/* The motion within a sweep, for deskewing. */
#include "ndt_track/track.h"

void ndt_track_sweep_motion(const struct ndt_track *track, const struct ndt_track_state *state,
                            const struct ndt_sweep *sweep, const struct ndt_pose *T_base_sensor,
                            struct ndt_sweep_motion *out)
{
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(T_base_sensor);
    double time_s[NDT_PREPROCESS_SEGMENTS + 1];
    out->twist = ndt_pose_carried_twist(T_base_sensor, &state->twist);
    out->is_piecewise = 0;
    if (state->source != NDT_TRACK_GYRO || sweep->begin_s == sweep->end_s)
        return;
    for (int i = 0; i <= NDT_PREPROCESS_SEGMENTS; i++)
        time_s[i] = ndt_sweep_boundary_s(sweep, i);
    out->is_piecewise = ndt_track_motion(track, state, time_s, NDT_PREPROCESS_SEGMENTS + 1, out->T_reference_at);
    for (int i = 0; out->is_piecewise && i <= NDT_PREPROCESS_SEGMENTS; i++) {
        const struct ndt_pose moved = ndt_pose_compose(&T_sensor_base, &out->T_reference_at[i]);
        out->T_reference_at[i] = ndt_pose_compose(&moved, T_base_sensor);
    }
}
