#include "bench_start.h"

#include <math.h>

/* splitmix64 */
static double uniform(uint64_t *state, double low, double high)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return low + (high - low) * ((double)(z >> 11) * 0x1p-53);
}

static void direction(uint64_t *state, double out[3])
{
    double norm2;
    do {
        norm2 = 0;
        for (int i = 0; i < 3; i++) {
            out[i] = uniform(state, -1, 1);
            norm2 += out[i] * out[i];
        }
    } while (norm2 > 1 || norm2 < 0.01);
    for (int i = 0; i < 3; i++)
        out[i] /= sqrt(norm2);
}

struct ndt_pose bench_start(uint64_t seed, uint64_t start, const struct ndt_pose *truth, double shift_m,
                            double turn_rad)
{
    uint64_t state = seed * 0xd1342543de82ef95u + start;
    struct ndt_twist turn = {{0, 0, 0}, {0, 0, 0}};
    double candidate[3];
    direction(&state, turn.w_radps);
    direction(&state, candidate);
    const struct ndt_pose rotation = ndt_pose_exp(&turn, uniform(&state, 0, turn_rad));
    struct ndt_pose pose = ndt_pose_compose(truth, &rotation);
    const double shift = uniform(&state, 0, shift_m);
    for (int i = 0; i < 3; i++)
        pose.t_m[i] += shift * candidate[i];
    return pose;
}
