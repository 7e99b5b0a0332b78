/* Assessment of a final pose: scores, covariance, weak directions, outcome. */
#include "align_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndt/linalg.h"

enum { SECTORS = 32 };

/* Sector 0..31 of a direction, by comparing slopes within its octant: no arc tangent needed. */
static unsigned sector(float x, float y)
{
    const float ax = fabsf(x), ay = fabsf(y);
    const float low = ax < ay ? ax : ay, high = ax < ay ? ay : ax;
    const unsigned part = (unsigned)(low > 0.19891237f * high) + (unsigned)(low > 0.41421356f * high) +
                          (unsigned)(low > 0.66817864f * high);
    const unsigned octant = (ax < ay ? 1u : 0u) | (x < 0 ? 2u : 0u) | (y < 0 ? 4u : 0u);
    return octant * 4 + part;
}

/* A scan that matches in one direction only does not confirm its pose, however high its score. */
double ndt_solve_coverage(const struct ndt_map *map, const struct ndt_cloud *turned,
                          const struct ndt_newton *newton)
{
    const struct ndt_map_level *level = &map->levels[newton->level];
    const struct ndt_pose turn = ndt_pose_from_euler(newton->p);
    double R[9];
    uint32_t seen = 0;
    ndt_pose_rotation(&turn, R);
    for (size_t i = 0; i < turned->count && seen != UINT32_MAX; i++) {
        const float x = turned->x_m[i], y = turned->y_m[i], z = turned->z_m[i];
        const uint32_t bit = 1u << sector(x, y);
        if (seen & bit || !isfinite(x + y + z))
            continue;
        int32_t cell[3];
        double far = 0;
        for (int k = 0; k < 3; k++) {
            const double moved = R[3 * k] * (double)x + R[3 * k + 1] * (double)y + R[3 * k + 2] * (double)z;
            const double scaled = floor((moved + newton->p[k]) / level->leaf_m);
            far = fmax(far, fabs(scaled));
            cell[k] = far < 1e6 ? (int32_t)scaled : 0;
        }
        if (far < 1e6 && ndt_map_lookup(level, cell).n7 > 0)
            seen |= bit;
    }
    return (double)__builtin_popcount(seen) / SECTORS;
}

static void set_scores(const struct ndt_solve *solve, struct ndt_scores *scores)
{
    const struct ndt_eval *eval = solve->is_observed ? &solve->information.eval : &solve->newton.eval;
    const double points = (double)solve->points;
    const double best = -solve->aligner->map->levels[solve->newton.level].d1;
    scores->transform_probability = eval->score / points;
    scores->nvtl = eval->matched > 0 ? eval->nearest_score / eval->matched : 0;
    scores->nvtl_normalized = scores->nvtl / best;
    scores->match_ratio = eval->matched / points;
    scores->coverage = solve->coverage;
}

/* Columns: the rotations about the axes of the map that changes of a, b and c make. */
static void rotation_axes(const double p[6], double E[9])
{
    const double sa = sin(p[3]), ca = cos(p[3]), sb = sin(p[4]), cb = cos(p[4]);
    const double axes[9] = {1, 0, sb, 0, ca, -sa * cb, 0, sa, ca * cb};
    memcpy(E, axes, sizeof(axes));
}

static void normalize6(double v[6])
{
    double norm = 0;
    for (int i = 0; i < 6; i++)
        norm += v[i] * v[i];
    for (int i = 0; i < 6 && norm > 0; i++)
        v[i] /= sqrt(norm);
}

static void set_weak_axes(const struct ndt_solve *solve, struct ndt_align_result *out)
{
    double E[9];
    rotation_axes(solve->newton.p, E);
    for (int k = 0; k < solve->newton.weak.count; k++) {
        double axis[6];
        ndt_newton_transform_rotation(solve->newton.inverse_rotation_scale, solve->newton.weak.axes[k], axis);
        ndt_newton_transform_rotation(E, axis, out->weak_axes[k]);
        normalize6(out->weak_axes[k]);
    }
    out->weak_count = solve->newton.weak.count;
}

/* Laplace approximation: scale * (-H)^-1 of all six coordinates, in the axes of the map. Absent if the score is
 * not at a maximum. */
static void set_covariance(const struct ndt_solve *solve, struct ndt_align_result *out)
{
    double upper[21], root[36], E[9], axes[6][6];
    ndt_newton_information(&solve->newton, upper);
    if (!ndt_inverse_root6(upper, root))
        return;
    rotation_axes(solve->newton.p, E);
    for (int k = 0; k < 6; k++) {
        double scaled[6], axis[6];
        for (int i = 0; i < 6; i++)
            scaled[i] = root[i * 6 + k];
        ndt_newton_transform_rotation(solve->newton.inverse_rotation_scale, scaled, axis);
        ndt_newton_transform_rotation(E, axis, axes[k]);
    }
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            double sum = 0;
            for (int k = 0; k < 6; k++)
                sum += axes[k][i] * axes[k][j];
            out->covariance[i * 6 + j] = solve->params->covariance_scale * sum;
        }
    out->has_covariance = 1;
}

/* G turns an error d = (rho, phi) of the pose, in the frame of the sensor, into a change of p: rotations about the
 * axes of the map are E dp. */
static int error_to_p(const struct ndt_solve *solve, const struct ndt_pose *T_map_sensor, double G[36])
{
    double E[9], R[9], inverse[9];
    rotation_axes(solve->newton.p, E);
    const double det = E[0] * (E[4] * E[8] - E[5] * E[7]); /* the first column of E is (1, 0, 0) */
    if (!(fabs(det) > 1e-6))
        return 0;
    const double adjugate[9] = {E[4] * E[8] - E[5] * E[7],
                                E[2] * E[7] - E[1] * E[8],
                                E[1] * E[5] - E[2] * E[4],
                                0,
                                E[0] * E[8],
                                -E[0] * E[5],
                                0,
                                -E[0] * E[7],
                                E[0] * E[4]};
    for (int i = 0; i < 9; i++)
        inverse[i] = adjugate[i] / det;
    ndt_pose_rotation(T_map_sensor, R);
    memset(G, 0, 36 * sizeof(*G));
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            G[6 * i + j] = R[3 * i + j];
            for (int k = 0; k < 3; k++)
                G[6 * (3 + i) + 3 + j] += inverse[3 * i + k] * R[3 * k + j];
        }
    return 1;
}

static void transform_information(const double G[36], const double upper[21], double sign, double out[36])
{
    double full[36];
    for (int i = 0, at = 0; i < 6; i++)
        for (int j = i; j < 6; j++, at++)
            full[6 * i + j] = full[6 * j + i] = sign * upper[at];
    ndt_congruence(6, 6, G, full, out);
}

void ndt_observation_from_sums(const struct ndt_information *in, const double G[36], struct ndt_observation *out)
{
    ndt_multiply_transposed(6, 6, 1, G, in->eval.gradient, out->gradient);
    ndt_multiply_transposed(6, 6, 1, G, in->time_gradient, out->time_gradient);
    transform_information(G, in->eval.hessian, -1, out->curvature);
    for (int k = 0; k < 3; k++)
        transform_information(G, in->information[k], 1, out->information[k]);
}

static void set_observation(const struct ndt_solve *solve, struct ndt_align_result *out)
{
    double G[36];
    if (!solve->is_observed || !error_to_p(solve, &out->T_map_sensor, G))
        return;
    ndt_observation_from_sums(&solve->information, G, &out->observation);
    out->has_observation = 1;
}

/* The covariance from the observation alone, without a prior: the motion during the sweep counts as known. */
static void set_observed_covariance(const struct ndt_solve *solve, struct ndt_align_result *out)
{
    struct ndt_weighed_observation weighed;
    double R[9], turn[36] = {0}, covariance[36];
    ndt_observation_weigh(&out->observation, &solve->params->noise, &weighed);
    out->has_covariance = ndt_invert_symmetric(6, weighed.information, covariance);
    if (!out->has_covariance)
        return;
    ndt_pose_rotation(&out->T_map_sensor, R);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            turn[6 * i + j] = turn[6 * (3 + i) + 3 + j] = R[3 * j + i];
    ndt_congruence(6, 6, turn, covariance, out->covariance);
}

/* Without a threshold every score is. */
static int is_above(double score, double threshold)
{
    return !(threshold > 0) || score > threshold;
}

static void set_outcome(const struct ndt_solve *solve, enum ndt_stop stop, struct ndt_align_result *out)
{
    const struct ndt_align_params *params = solve->params;
    const struct ndt_scores *s = &out->scores;
    const double quality = s->nvtl_normalized * s->match_ratio;
    out->outcome = NDT_CONVERGED;
    if (stop == NDT_STOP_OFF_MAP) {
        out->outcome = NDT_OFF_MAP;
        snprintf(out->reason, sizeof(out->reason), "none of %zu points met a voxel", solve->points);
    } else if (s->match_ratio < params->min_match_ratio) {
        out->outcome = NDT_DEGENERATE;
        snprintf(out->reason, sizeof(out->reason), "only %.1f %% of the points met a voxel, limit %.1f %%",
                 100 * s->match_ratio, 100 * params->min_match_ratio);
    } else if (stop == NDT_STOP_DEADLINE) {
        out->outcome = NDT_DEADLINE;
        snprintf(out->reason, sizeof(out->reason),
                 "no time left to finish the alignment: it had %.1f ms, enough for %d evaluation%s",
                 params->deadline_s * 1e3, solve->newton.evaluations, solve->newton.evaluations == 1 ? "" : "s");
    } else if (!(quality >= params->score_threshold)) { /* NaN too */
        out->outcome = NDT_LOW_SCORE;
        snprintf(out->reason, sizeof(out->reason), "score %.3f is below the threshold %.3f", quality,
                 params->score_threshold);
    } else if (!is_above(s->transform_probability, params->min_transform_probability)) {
        out->outcome = NDT_LOW_SCORE;
        snprintf(out->reason, sizeof(out->reason), "transform probability %.3f is not above the threshold %.3f",
                 s->transform_probability, params->min_transform_probability);
    } else if (!is_above(s->nvtl, params->min_nvtl)) {
        out->outcome = NDT_LOW_SCORE;
        snprintf(out->reason, sizeof(out->reason), "NVTL %.3f is not above the threshold %.3f", s->nvtl,
                 params->min_nvtl);
    } else if (stop == NDT_STOP_ITERATIONS) {
        out->outcome = NDT_ITERATION_LIMIT;
        snprintf(out->reason, sizeof(out->reason), "not converged after %d iterations", params->max_iterations);
    }
}

void ndt_assess_result(const struct ndt_solve *solve, struct ndt_align_result *out)
{
    const struct ndt_newton *newton = &solve->newton;
    out->T_map_sensor = ndt_solve_pose(solve, newton->p);
    if (newton->stop != NDT_STOP_OFF_MAP) {
        set_scores(solve, &out->scores);
        set_observation(solve, out);
        if (!out->has_observation)
            set_covariance(solve, out);
        else if (!solve->prior)
            set_observed_covariance(solve, out);
        set_weak_axes(solve, out);
    }
    set_outcome(solve, (enum ndt_stop)newton->stop, out);
    out->iterations = newton->row_count;
    out->evaluations = newton->evaluations;
    out->oscillation = newton->oscillation;
}
