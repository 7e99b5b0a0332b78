/* Inputs of an alignment: parameters as rules of the solver, the guess as optimiser coordinates, the extent of the
 * scan. */
#include "align_state.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndt/preprocess_math.h"

static const double DEG = 0.017453292519943295;
/* Typical distance of points from the sensor, for what a rotation moves. Not that of the scan: a device
 * preprocesses it after the levels are chosen. */
static const double PRIOR_ARM_M = 15.0;

const char *ndt_outcome_name(enum ndt_outcome outcome)
{
    static const char *const names[NDT_OUTCOME_COUNT] = {
        "converged",  "iteration_limit", "deadline", "dropped", "rejected", "low_score",
        "degenerate", "no_map",          "no_guess", "off_map", "lost",     "merged",
    };
    return (unsigned)outcome < NDT_OUTCOME_COUNT ? names[outcome] : "unknown";
}

void ndt_align_params_default(struct ndt_align_params *params)
{
    *params = (struct ndt_align_params){
        .variant = NDT_ROBUST,
        .level_count = 3,
        .levels = {{4.0, NDT_DIRECT7}, {2.0, NDT_DIRECT7}, {1.0, NDT_RADIUS}},
        .max_iterations = 30,
        .step_limit_m = 0.75,
        .step_limit_rad = 3 * DEG,
        .eigenvalue_floor = 1e-6,
        .coarse_stop_m = 0.05,
        .coarse_stop_rad = 0.2 * DEG,
        .coarse_stop_gain = 1e-4,
        .fine_stop_m = 0.005,
        .fine_stop_rad = 0.05 * DEG,
        .fine_stop_gain = 1e-6,
        .max_line_search_steps = 2,
        .trans_epsilon = 0.01,
        .step_size = 0.1,
        .score_threshold = 0.35,
        .min_match_ratio = 0.1,
        .weak_eigenvalue_ratio = 0.0125,
        .covariance_scale = 10.0,
        .gnss_scale = 0.01,
        .prior_weight = 10.0,
        .choose_levels = 1,
        .basin = 0.5,
        .deadline_s = 0,
    };
    ndt_observation_noise_default(&params->noise);
}

static enum ndt_status find_levels(struct ndt_newton_rules *rules, const struct ndt_align_params *params,
                                   const struct ndt_map *map, struct ndt_error *err)
{
    if (params->level_count < 1 || params->level_count > NDT_MAX_LEVELS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%zu levels; the range is 1 to %d", params->level_count,
                        NDT_MAX_LEVELS);
    rules->level_count = (int32_t)params->level_count;
    for (size_t i = 0; i < params->level_count; i++) {
        rules->level[i] = ndt_map_find_level(map, params->levels[i].leaf_m);
        rules->neighbours[i] = (int32_t)params->levels[i].neighbours;
        if (rules->level[i] < 0)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "the map has no level of %g m", params->levels[i].leaf_m);
    }
    return NDT_OK;
}

enum ndt_status ndt_rules_from(struct ndt_newton_rules *out, const struct ndt_align_params *params,
                               const struct ndt_map *map, struct ndt_error *err)
{
    *out = (struct ndt_newton_rules){
        .variant = (int32_t)params->variant,
        .max_iterations = params->max_iterations,
        .max_line_search_steps = params->max_line_search_steps,
        .step_limit_m = params->step_limit_m,
        .step_limit_rad = params->step_limit_rad,
        .eigenvalue_floor = params->eigenvalue_floor,
        .coarse = {params->coarse_stop_m, params->coarse_stop_rad, params->coarse_stop_gain},
        .fine = {params->fine_stop_m, params->fine_stop_rad, params->fine_stop_gain},
        .trans_epsilon = params->trans_epsilon,
        .step_size = params->step_size,
        .weak_eigenvalue_ratio = params->weak_eigenvalue_ratio,
        .has_gnss = params->has_gnss,
        .gnss_m = {params->gnss_position_m[0] - map->origin_m[0], params->gnss_position_m[1] - map->origin_m[1]},
        .gnss_scale = params->gnss_scale,
        .wants_information = params->wants_observation,
    };
    return find_levels(out, params, map, err);
}

void ndt_solve_set_guess(struct ndt_newton *newton, enum ndt_variant variant, const struct ndt_pose *T_map_guess,
                         const double origin_m[3])
{
    struct ndt_pose local = *T_map_guess;
    for (int i = 0; i < 3; i++)
        local.t_m[i] -= origin_m[i];
    if (variant == NDT_AUTOWARE) {
        memcpy(newton->R0, (double[9]){1, 0, 0, 0, 1, 0, 0, 0, 1}, sizeof(newton->R0));
        ndt_pose_to_euler(&local, newton->guess);
    } else {
        ndt_pose_rotation(&local, newton->R0);
        memcpy(newton->guess, local.t_m, sizeof(local.t_m));
        memset(newton->guess + 3, 0, 3 * sizeof(double));
    }
}

/* Longest movement of points by three standard deviations of the prior: along its worst axis, and by a rotation
 * about its worst axis with an arm of arm_m. */
static double three_sigma_m(const struct ndt_prior *prior, double arm_m)
{
    double moved = 0, turned = 0;
    for (int block = 0; block < 2; block++) {
        const double *P = prior->covariance + 21 * block;
        const double upper[6] = {P[0], P[1], P[2], P[7], P[8], P[14]};
        double values[3], V[9];
        ndt_eigen_symmetric(3, upper, values, V);
        *(block == 0 ? &moved : &turned) = fmax(values[2], 0);
    }
    return 3 * sqrt(moved + arm_m * arm_m * turned);
}

int ndt_solve_is_coarse(const struct ndt_newton *newton, const struct ndt_align_params *params)
{
    return params->choose_levels && newton->prior[0] > 0 && newton->first_level + 1 < (int32_t)params->level_count;
}

int ndt_solve_tries_finest(const struct ndt_newton *chain, const struct ndt_align_params *params)
{
    const double reach_m = params->basin * params->levels[params->level_count - 1].leaf_m;
    double moved = 0, turned = 0;
    if (!ndt_solve_is_coarse(chain, params) || chain->stop == NDT_STOP_DEADLINE)
        return 0;
    for (int i = 0; i < 3; i++) {
        moved += (chain->p[i] - chain->guess[i]) * (chain->p[i] - chain->guess[i]);
        turned += chain->p[3 + i] * chain->p[3 + i];
    }
    return chain->stop == NDT_STOP_OFF_MAP || moved + PRIOR_ARM_M * PRIOR_ARM_M * turned > reach_m * reach_m;
}

static int32_t choose_level(const struct ndt_align_params *params, const struct ndt_prior *prior)
{
    const double reach_m = three_sigma_m(prior, PRIOR_ARM_M);
    int32_t level = (int32_t)params->level_count - 1;
    while (level > 0 && params->basin * params->levels[level].leaf_m < reach_m)
        level--;
    return level;
}

/* The prior in the coordinates of the optimiser: to first order an error d of the pose is a change of p by
 * diag(R, R) d, R the rotation of the mean. */
enum ndt_status ndt_solve_set_prior(struct ndt_newton *newton, const struct ndt_align_params *params,
                                    const struct ndt_prior *prior, const double origin_m[3], struct ndt_error *err)
{
    double information[36], R[9], turn[36] = {0}, in_map[36];
    if (!prior || params->variant == NDT_AUTOWARE)
        return NDT_OK;
    if (!ndt_pose_is_finite(&prior->T_map_sensor) || !ndt_invert_symmetric(6, prior->covariance, information))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "the covariance of the prior is not positive definite");
    ndt_pose_rotation(&prior->T_map_sensor, R);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            turn[6 * i + j] = turn[6 * (3 + i) + 3 + j] = R[3 * j + i];
    ndt_congruence(6, 6, turn, information, in_map);
    for (int i = 0, at = 0; i < 6; i++)
        for (int j = i; j < 6; j++)
            newton->prior[at++] = params->prior_weight * in_map[6 * i + j];
    const struct ndt_pose turn0 = ndt_pose_from_rotation(newton->R0, (double[3]){0, 0, 0});
    struct ndt_pose mean = prior->T_map_sensor;
    for (int i = 0; i < 3; i++) {
        newton->prior_offset[i] = mean.t_m[i] - origin_m[i] - newton->guess[i];
        mean.t_m[i] = 0;
    }
    const struct ndt_pose back = ndt_pose_inverse(&turn0), off = ndt_pose_compose(&mean, &back);
    const struct ndt_twist rotation = ndt_pose_log(&off, 1);
    memcpy(newton->prior_offset + 3, rotation.w_radps, sizeof(rotation.w_radps));
    if (params->choose_levels)
        newton->first_level = choose_level(params, prior);
    return NDT_OK;
}

struct ndt_pose ndt_solve_pose(const struct ndt_solve *solve, const double p[6])
{
    const struct ndt_pose turn = ndt_pose_from_rotation(solve->newton.R0, (double[3]){0, 0, 0});
    struct ndt_pose pose = ndt_pose_from_euler(p);
    pose = ndt_pose_compose(&pose, &turn);
    for (int i = 0; i < 3; i++)
        pose.t_m[i] += solve->aligner->map->origin_m[i];
    return pose;
}

/* Adds points first .. first + lanes - 1, one per lane, as ndt_moments_add does; a point that is not finite adds
 * zeros. */
static inline void add_moments(double sum[7][NDT_MOMENT_LANES], const struct ndt_cloud *scan, size_t first,
                               int lanes)
{
    for (int l = 0; l < lanes; l++) {
        const double a = scan->x_m[first + (size_t)l], b = scan->y_m[first + (size_t)l];
        const double c = scan->z_m[first + (size_t)l];
        const int finite = fabs(a + b + c) <= DBL_MAX;
        const double x = finite ? a : 0, y = finite ? b : 0, z = finite ? c : 0;
        sum[0][l] += x * x;
        sum[1][l] += x * y;
        sum[2][l] += x * z;
        sum[3][l] += y * y;
        sum[4][l] += y * z;
        sum[5][l] += z * z;
        sum[6][l] += finite ? 1 : 0;
    }
}

void ndt_second_moments(const struct ndt_cloud *scan, double out_m2[6])
{
    double sum[7][NDT_MOMENT_LANES] = {{0}}, total[7] = {0};
    const size_t whole = scan->count / NDT_MOMENT_LANES * NDT_MOMENT_LANES;
    for (size_t i = 0; i < whole; i += NDT_MOMENT_LANES)
        add_moments(sum, scan, i, NDT_MOMENT_LANES);
    add_moments(sum, scan, whole, (int)(scan->count - whole));
    for (int lane = 0; lane < NDT_MOMENT_LANES; lane++)
        for (int i = 0; i < 7; i++)
            total[i] += sum[i][lane];
    for (int i = 0; i < 6; i++)
        out_m2[i] = total[6] > 0 ? total[i] / total[6] : 0;
}

void ndt_solve_refuse(struct ndt_align_result *out, enum ndt_outcome outcome, const char *reason)
{
    out->outcome = outcome;
    snprintf(out->reason, sizeof(out->reason), "%s", reason);
}

int ndt_solve_can_begin(const struct ndt_map *map, size_t points, const struct ndt_pose *T_map_guess,
                        struct ndt_align_result *out)
{
    memset(out, 0, sizeof(*out));
    out->T_map_sensor = *T_map_guess;
    if (!map)
        ndt_solve_refuse(out, NDT_NO_MAP, "no map is set");
    else if (points == 0)
        ndt_solve_refuse(out, NDT_REJECTED, "the scan has no points");
    else if (!ndt_pose_is_finite(T_map_guess))
        ndt_solve_refuse(out, NDT_NO_GUESS, "the guess is not finite");
    return out->reason[0] == '\0';
}
