/* A correction of the state by an error. */
#include <string.h>

#include "track_internal.h"

void ndt_track_apply(struct ndt_track_state *state, const double x[N], const double P[N * N])
{
    const struct ndt_twist error = {.v_mps = {x[0], x[1], x[2]}, .w_radps = {x[3], x[4], x[5]}};
    const struct ndt_pose step = ndt_pose_exp(&error, 1);
    state->T_map_base = ndt_pose_compose(&state->T_map_base, &step);
    (void)ndt_pose_normalize(&state->T_map_base);
    for (int i = 0; i < 3; i++) {
        state->twist.v_mps[i] += x[AT_TWIST + i];
        state->twist.w_radps[i] += x[AT_TURN + i];
        state->bias_radps[i] += x[AT_BIAS + i];
    }
    state->scale += x[AT_SCALE];
    memcpy(state->P, P, N * N * sizeof(*P));
}
