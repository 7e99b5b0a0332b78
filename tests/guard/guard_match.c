/* Evaluations and whole alignments. */
#include "guard_work.h"

enum { MAP_POINTS = 60000, EVAL_POINTS = 5000, ALIGN_POINTS = 1500, EVALUATIONS = 4 };

static enum ndt_status open_matcher(struct guard_work *work, const struct ndt_map_config *config,
                                    size_t scan_points, struct ndt_error *err)
{
    struct ndt_backend_config backend;
    ndt_backend_config_default(&backend);
    backend.threads = 1;
    backend.pin_threads = 0;
    backend.isa = work->item->isa;
    enum ndt_status status = guard_street_map(work, MAP_POINTS, err);
    if (status == NDT_OK)
        status = ndt_map_from_cloud(&work->map, config, &work->map_points, err);
    if (status == NDT_OK)
        status = guard_street_scan(work, scan_points, err);
    if (status == NDT_OK)
        status = ndt_cpu_backend.open(&work->backend, &backend, err);
    return status;
}

enum ndt_status guard_eval_prepare(struct guard_work *work, struct ndt_error *err)
{
    struct ndt_map_config config;
    ndt_map_config_default(&config);
    config.level_count = 1;
    config.leaf_m[0] = work->item->leaf_m;
    enum ndt_status status = open_matcher(work, &config, EVAL_POINTS, err);
    if (status == NDT_OK)
        status = work->backend->ops->set_map(work->backend, work->map, err);
    if (status == NDT_OK)
        status = work->backend->ops->set_scan(work->backend, &work->scan, err);
    return status;
}

/* At poses a step apart, as an alignment would. */
enum ndt_status guard_eval_run(struct guard_work *work, struct ndt_error *err)
{
    struct ndt_eval_request request = {.level = 0, .neighbours = work->item->neighbours};
    struct ndt_eval sums;
    ndt_pose_to_euler(&work->T_map_guess[0], request.p);
    for (int i = 0; i < EVALUATIONS; i++) {
        enum ndt_status status = work->backend->ops->eval(work->backend, &request, &sums, err);
        if (status != NDT_OK)
            return status;
        if (sums.matched < EVAL_POINTS * 0.4 || !(sums.score > 0))
            return ndt_fail(err, NDT_ERR_LIMIT, "only %g of %d points matched", sums.matched, EVAL_POINTS);
        request.p[0] += 0.05;
        request.p[5] += 0.002;
    }
    return NDT_OK;
}

enum ndt_status guard_align_prepare(struct guard_work *work, struct ndt_error *err)
{
    struct ndt_map_config config;
    ndt_map_config_default(&config);
    ndt_align_params_default(&work->align);
    work->align.variant = work->item->variant;
    if (work->align.variant == NDT_AUTOWARE) {
        work->align.level_count = 1;
        work->align.levels[0] = (struct ndt_align_level){2.0, NDT_RADIUS};
        config.covariance = NDT_COVARIANCE_AUTOWARE;
    }
    enum ndt_status status = open_matcher(work, &config, ALIGN_POINTS, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&work->aligner, work->backend, err);
    return status == NDT_OK ? ndt_aligner_set_map(work->aligner, work->map, err) : status;
}

static enum ndt_status align_from(struct guard_work *work, const struct ndt_pose *guess, struct ndt_error *err)
{
    struct ndt_align_result result;
    enum ndt_status status = ndt_align(work->aligner, &work->align, &work->scan, guess, &result, err);
    if (status != NDT_OK)
        return status;
    const double off_m = ndt_pose_distance_m(&work->T_map_sensor, &result.T_map_sensor);
    if (result.outcome != NDT_CONVERGED || off_m > 0.1)
        return ndt_fail(err, NDT_ERR_LIMIT, "the alignment ended as %s, %.3f m off",
                        ndt_outcome_name(result.outcome), off_m);
    return NDT_OK;
}

enum ndt_status guard_align_run(struct guard_work *work, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < GUARD_STARTS; i++)
        status = align_from(work, &work->T_map_guess[i], err);
    return status;
}
