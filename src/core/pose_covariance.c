/* Covariance of a pose as Autoware estimates it; see ndt/pose_covariance.h. */
#include "ndt/pose_covariance.h"

#include <math.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndt/linalg.h"

void ndt_pose_covariance_params_default(struct ndt_pose_covariance_params *params)
{
    *params = (struct ndt_pose_covariance_params){.kind = NDT_POSE_COVARIANCE_POSTERIOR,
                                                  .offset_x_m = {0, 0, 0.5, -0.5, 1, -1},
                                                  .offset_y_m = {0.5, -0.5, 0, 0, 0, 0},
                                                  .offset_x_count = 6,
                                                  .offset_y_count = 6,
                                                  .temperature = 0.05};
    for (int i = 0; i < 6; i++)
        params->fixed[7 * i] = i < 3 ? 0.0225 : 0.000625;
}

/* diag(R, R) P diag(R, R)^T; to_map = 0: with R transposed. */
static void turn(const struct ndt_pose *T, int to_map, const double in[36], double out[36])
{
    double R[9], turned[36] = {0};
    ndt_pose_rotation(T, R);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            turned[6 * i + j] = turned[6 * (3 + i) + 3 + j] = to_map ? R[3 * j + i] : R[3 * i + j];
    ndt_congruence(6, 6, turned, in, out);
}

/* Writes the covariance of the base, axes of the base. The covariance of a result without an observation is already
 * scaled. */
static int laplace(const struct ndt_aligned_pose *pose, const struct ndt_align_result *result, double out[36])
{
    double of_sensor[36], Ad[36], transposed[36];
    if (result->has_observation) {
        if (!ndt_invert_symmetric(6, result->observation.curvature, of_sensor))
            return 0;
        for (int i = 0; i < 36; i++)
            of_sensor[i] *= pose->align->covariance_scale;
    } else if (result->has_covariance) {
        turn(&result->T_map_sensor, 0, result->covariance, of_sensor);
    } else {
        return 0;
    }
    ndt_pose_adjoint(pose->T_base_sensor, Ad);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            transposed[6 * i + j] = Ad[6 * j + i];
    ndt_congruence(6, 6, transposed, of_sensor, out);
    return 1;
}

static void add_square(const struct ndt_pose *T_map_base, const struct ndt_pose *T_map_other, double weight,
                       double sum[36])
{
    const struct ndt_pose off = ndt_pose_between(T_map_base, T_map_other);
    const struct ndt_twist error = ndt_pose_log(&off, 1);
    double d[6];
    memcpy(d, error.v_mps, sizeof(error.v_mps));
    memcpy(d + 3, error.w_radps, sizeof(error.w_radps));
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            sum[6 * i + j] += weight * d[i] * d[j];
}

/* Aligned from the offsets, or only scored there. */
struct offset_results {
    size_t count;
    struct ndt_align_result results[NDT_POSE_COVARIANCE_OFFSETS];
};

static enum ndt_status align_offsets(struct ndt_aligner *aligner, const struct ndt_pose_covariance_params *params,
                                     const struct ndt_aligned_pose *pose, const struct ndt_pose *T_map_base,
                                     struct offset_results *offsets, struct ndt_error *err)
{
    struct ndt_align_params align = *pose->align;
    struct ndt_align_item items[NDT_POSE_COVARIANCE_OFFSETS];
    align.prior = NULL;
    align.wants_observation = 0;
    if (params->kind == NDT_POSE_COVARIANCE_MULTI_NDT_SCORE) {
        align.levels[0] = align.levels[align.level_count - 1];
        align.level_count = 1;
        align.max_iterations = 0;
    }
    offsets->count = params->offset_x_count;
    for (size_t i = 0; i < offsets->count; i++) {
        const struct ndt_pose offset = {.t_m = {params->offset_x_m[i], params->offset_y_m[i], 0},
                                        .q_xyzw = {0, 0, 0, 1}};
        const struct ndt_pose T_map_offset = ndt_pose_compose(T_map_base, &offset);
        items[i] = (struct ndt_align_item){.scan = pose->scan,
                                           .T_map_guess = ndt_pose_compose(&T_map_offset, pose->T_base_sensor)};
    }
    return ndt_align_batch(aligner, &align, items, offsets->count, offsets->results, err);
}

/* 0 when no alignment has come to an end. */
static int spread_of_poses(const struct ndt_pose *T_map_base, const struct ndt_pose *T_base_sensor,
                           const struct offset_results *offsets, double out[36])
{
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(T_base_sensor);
    size_t found = 0;
    memset(out, 0, 36 * sizeof(*out));
    for (size_t i = 0; i < offsets->count; i++) {
        const struct ndt_align_result *offset = &offsets->results[i];
        if (offset->outcome != NDT_CONVERGED && offset->outcome != NDT_ITERATION_LIMIT)
            continue;
        const struct ndt_pose T_map_found = ndt_pose_compose(&offset->T_map_sensor, &T_sensor_base);
        add_square(T_map_base, &T_map_found, 1, out);
        found++;
    }
    for (int i = 0; found > 0 && i < 36; i++)
        out[i] /= (double)found;
    return found > 0;
}

/* 0 when no offset was scored. */
static int spread_of_scores(const struct ndt_pose *T_map_base, const struct ndt_pose *T_base_sensor,
                            const struct offset_results *offsets, double nvtl, double temperature, double out[36])
{
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(T_base_sensor);
    double best = nvtl, weights = 0;
    memset(out, 0, 36 * sizeof(*out));
    for (size_t i = 0; i < offsets->count; i++)
        if (offsets->results[i].evaluations > 0)
            best = fmax(best, offsets->results[i].scores.nvtl);
    weights += exp((nvtl - best) / temperature);
    size_t scored = 0;
    for (size_t i = 0; i < offsets->count; i++) {
        const struct ndt_align_result *offset = &offsets->results[i];
        if (offset->evaluations == 0)
            continue;
        const struct ndt_pose T_map_offset = ndt_pose_compose(&offset->T_map_sensor, &T_sensor_base);
        const double weight = exp((offset->scores.nvtl - best) / temperature);
        add_square(T_map_base, &T_map_offset, weight, out);
        weights += weight;
        scored++;
    }
    for (int i = 0; i < 36; i++)
        out[i] /= weights;
    return scored > 0;
}

/* Every variance is at least the fixed one. */
static void raise_to_fixed(const struct ndt_pose_covariance_params *params, double scale, double covariance[36])
{
    for (int i = 0; i < 36; i++)
        covariance[i] *= scale;
    for (int i = 0; i < 6; i++)
        covariance[7 * i] = fmax(covariance[7 * i], params->fixed[7 * i]);
}

enum ndt_status ndt_pose_covariance_estimate(struct ndt_aligner *aligner,
                                             const struct ndt_pose_covariance_params *params,
                                             const struct ndt_aligned_pose *pose, struct ndt_align_result *result,
                                             struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(pose->T_base_sensor);
    const struct ndt_pose T_map_base = ndt_pose_compose(&result->T_map_sensor, &T_sensor_base);
    struct offset_results offsets = {0};
    double covariance[36];
    int is_known = 0;
    if (params->kind == NDT_POSE_COVARIANCE_POSTERIOR)
        return NDT_OK;
    if (params->kind == NDT_POSE_COVARIANCE_LAPLACE) {
        is_known = laplace(pose, result, covariance);
        if (is_known)
            raise_to_fixed(params, 1, covariance);
    } else if (params->kind != NDT_POSE_COVARIANCE_FIXED) {
        const enum ndt_status status = align_offsets(aligner, params, pose, &T_map_base, &offsets, err);
        if (status != NDT_OK)
            return status;
        is_known = params->kind == NDT_POSE_COVARIANCE_MULTI_NDT
                       ? spread_of_poses(&T_map_base, pose->T_base_sensor, &offsets, covariance)
                       : spread_of_scores(&T_map_base, pose->T_base_sensor, &offsets, result->scores.nvtl,
                                          params->temperature, covariance);
        if (is_known)
            raise_to_fixed(params, pose->align->covariance_scale, covariance);
    }
    turn(&T_map_base, 1, is_known ? covariance : params->fixed, result->covariance);
    result->has_covariance = 1;
    for (size_t i = 0; i < offsets.count; i++)
        result->evaluations += offsets.results[i].evaluations;
    result->align_us += ndt_clock_us() - start_us;
    return NDT_OK;
}
