/* What is said about a final pose: scores, covariance, weak directions, outcome. */
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

/* How much of the horizon has points near the map: a scan that matches in one direction only cannot vouch for
 * its pose, however well it scores. */
static double coverage(const struct ndt_search *search)
{
    const struct ndt_aligner *aligner = search->aligner;
    const struct ndt_map_level *level = &aligner->map->levels[search->request.level];
    const struct ndt_pose turn = ndt_pose_from_euler(search->p);
    double R[9];
    uint32_t seen = 0;
    ndt_pose_rotation(&turn, R);
    for (size_t i = 0; i < aligner->turned.count && seen != UINT32_MAX; i++) {
        const float x = aligner->turned.x_m[i], y = aligner->turned.y_m[i], z = aligner->turned.z_m[i];
        const uint32_t bit = 1u << sector(x, y);
        if (seen & bit || !isfinite(x + y + z))
            continue;
        int32_t cell[3];
        double far = 0;
        for (int k = 0; k < 3; k++) {
            const double moved = R[3 * k] * (double)x + R[3 * k + 1] * (double)y + R[3 * k + 2] * (double)z;
            const double scaled = floor((moved + search->p[k]) / level->leaf_m);
            far = fmax(far, fabs(scaled));
            cell[k] = far < 1e6 ? (int32_t)scaled : 0;
        }
        if (far < 1e6 && ndt_map_lookup(level, cell).n7 > 0)
            seen |= bit;
    }
    return (double)__builtin_popcount(seen) / SECTORS;
}

static void set_scores(const struct ndt_search *search, struct ndt_scores *scores)
{
    const struct ndt_eval *eval = &search->eval;
    const double points = (double)search->aligner->turned.count;
    const double best = -search->aligner->map->levels[search->request.level].d1;
    scores->transform_probability = eval->score / points;
    scores->nvtl = eval->matched > 0 ? eval->nearest_score / eval->matched : 0;
    scores->nvtl_normalized = scores->nvtl / best;
    scores->match_ratio = eval->matched / points;
    scores->coverage = coverage(search);
}

/* Columns: rotations about the map's axes that a change of (a, b, c) makes. */
static void rotation_axes(const double p[6], double E[9])
{
    const double sa = sin(p[3]), ca = cos(p[3]), sb = sin(p[4]), cb = cos(p[4]);
    const double axes[9] = {1, 0, sb, 0, ca, -sa * cb, 0, sa, ca * cb};
    memcpy(E, axes, sizeof(axes));
}

/* x -> diag(I, M) x for a six-vector */
static void turn_rotation(const double M[9], const double in[6], double out[6])
{
    for (int i = 0; i < 3; i++) {
        out[i] = in[i];
        out[3 + i] = M[3 * i] * in[3] + M[3 * i + 1] * in[4] + M[3 * i + 2] * in[5];
    }
}

static void normalize6(double v[6])
{
    double norm = 0;
    for (int i = 0; i < 6; i++)
        norm += v[i] * v[i];
    for (int i = 0; i < 6 && norm > 0; i++)
        v[i] /= sqrt(norm);
}

/* -D H D with D = diag(I, M), M symmetric, as an upper triangle. */
static void scale_information(const double M[9], const double hessian[21], double upper[21])
{
    double full[36], half[36];
    ndt_unpack_symmetric6(hessian, full);
    for (int i = 0; i < 6; i++)
        turn_rotation(M, full + 6 * i, half + 6 * i);
    for (int j = 0; j < 6; j++) {
        double column[6], turned[6];
        for (int i = 0; i < 6; i++)
            column[i] = half[6 * i + j];
        turn_rotation(M, column, turned);
        for (int i = 0; i < 6; i++)
            full[6 * i + j] = turned[i];
    }
    for (int i = 0, at = 0; i < 6; i++)
        for (int j = i; j < 6; j++)
            upper[at++] = -full[6 * i + j];
}

/* Eigenvalues (ascending) and directions of -H in lever-scaled units. */
static void information(const struct ndt_search *search, double lambda[6], double V[36])
{
    double upper[21];
    scale_information(search->aligner->per_lever, search->eval.hessian, upper);
    ndt_eigen_symmetric(6, upper, lambda, V);
}

void ndt_find_weak(const struct ndt_search *search, struct ndt_weak *out)
{
    double lambda[6], V[36];
    information(search, lambda, V);
    out->count = 0;
    while (out->count < 3 && lambda[out->count] < search->params->weak_eigenvalue_ratio * lambda[5]) {
        for (int i = 0; i < 6; i++)
            out->axes[out->count][i] = V[i * 6 + out->count];
        out->count++;
    }
}

void ndt_remove_weak(const struct ndt_search *search, const struct ndt_weak *weak, double step[6])
{
    double scaled[6];
    if (weak->count == 0)
        return;
    turn_rotation(search->aligner->lever_m, step, scaled);
    for (int k = 0; k < weak->count; k++) {
        double along = 0;
        for (int i = 0; i < 6; i++)
            along += weak->axes[k][i] * scaled[i];
        for (int i = 0; i < 6; i++)
            scaled[i] -= along * weak->axes[k][i];
    }
    turn_rotation(search->aligner->per_lever, scaled, step);
}

static void tell_weak(const struct ndt_search *search, struct ndt_align_result *out)
{
    double E[9];
    rotation_axes(search->p, E);
    for (int k = 0; k < search->weak.count; k++) {
        double axis[6];
        turn_rotation(search->aligner->per_lever, search->weak.axes[k], axis);
        turn_rotation(E, axis, out->weak_axes[k]);
        normalize6(out->weak_axes[k]);
    }
    out->weak_count = search->weak.count;
}

/* Laplace: scale * (-H)^-1 of the full 6x6, in the map's axes. Absent where the score is not at a maximum. */
static void set_covariance(const struct ndt_search *search, struct ndt_align_result *out)
{
    double lambda[6], V[36], E[9], axes[6][6];
    information(search, lambda, V);
    if (!(lambda[0] > 0))
        return;
    rotation_axes(search->p, E);
    for (int k = 0; k < 6; k++) {
        double scaled[6], axis[6];
        for (int i = 0; i < 6; i++)
            scaled[i] = V[i * 6 + k];
        turn_rotation(search->aligner->per_lever, scaled, axis);
        turn_rotation(E, axis, axes[k]);
    }
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            double sum = 0;
            for (int k = 0; k < 6; k++)
                sum += axes[k][i] * axes[k][j] / lambda[k];
            out->covariance[i * 6 + j] = search->params->covariance_scale * sum;
        }
    out->has_covariance = 1;
}

/* Longest run of steps that reverse the one before. */
static int oscillation(const struct ndt_aligner *aligner)
{
    int run = 0, longest = 0;
    double last[3] = {0}, from[3] = {0};
    for (size_t i = 0; i < aligner->trace_count; i++) {
        const double *t = aligner->trace[i].T_map_sensor.t_m;
        double dot = 0, a = 0, b = 0, step[3];
        for (int k = 0; k < 3; k++) {
            step[k] = i > 0 ? t[k] - from[k] : 0;
            dot += step[k] * last[k];
            a += step[k] * step[k];
            b += last[k] * last[k];
        }
        run = a > 0 && b > 0 && dot < -0.9 * sqrt(a * b) ? run + 1 : 0;
        longest = run > longest ? run : longest;
        memcpy(last, step, sizeof(last));
        memcpy(from, t, sizeof(from));
    }
    return longest;
}

static void set_outcome(const struct ndt_search *search, enum ndt_stop stop, struct ndt_align_result *out)
{
    const struct ndt_align_params *params = search->params;
    const struct ndt_scores *s = &out->scores;
    const double quality = s->nvtl_normalized * s->match_ratio;
    out->outcome = NDT_CONVERGED;
    if (stop == NDT_STOP_OFF_MAP) {
        out->outcome = NDT_OFF_MAP;
        snprintf(out->reason, sizeof(out->reason), "none of %zu points met a voxel", search->aligner->turned.count);
    } else if (s->match_ratio < params->min_match_ratio) {
        out->outcome = NDT_DEGENERATE;
        snprintf(out->reason, sizeof(out->reason), "only %.1f %% of the points met a voxel, limit %.1f %%",
                 100 * s->match_ratio, 100 * params->min_match_ratio);
    } else if (stop == NDT_STOP_DEADLINE) {
        out->outcome = NDT_DEADLINE;
        snprintf(out->reason, sizeof(out->reason), "stopped after %d evaluations to keep %.1f ms",
                 search->evaluations, params->deadline_s * 1e3);
    } else if (quality < params->score_threshold) {
        out->outcome = NDT_LOW_SCORE;
        snprintf(out->reason, sizeof(out->reason), "score %.3f is below the threshold %.3f", quality,
                 params->score_threshold);
    } else if (stop == NDT_STOP_ITERATIONS) {
        out->outcome = NDT_ITERATION_LIMIT;
        snprintf(out->reason, sizeof(out->reason), "not converged after %d iterations", params->max_iterations);
    }
}

void ndt_judge(struct ndt_search *search, enum ndt_stop stop, struct ndt_align_result *out)
{
    if (stop != NDT_STOP_OFF_MAP) {
        set_scores(search, &out->scores);
        set_covariance(search, out);
        tell_weak(search, out);
    }
    set_outcome(search, stop, out);
    out->T_map_sensor = ndt_search_pose(search, search->p);
    out->iterations = (int)search->aligner->trace_count;
    out->evaluations = search->evaluations;
    out->oscillation = oscillation(search->aligner);
}
