/* Scores of one scan at many poses, by the backend of an aligner. */
#include "align_state.h"

#include <stdlib.h>
#include <string.h>

static enum ndt_status reserve(struct ndt_aligner *aligner, size_t count, struct ndt_error *err)
{
    if (aligner->pose_capacity >= count)
        return NDT_OK;
    struct ndt_score_pose *poses = malloc(count * sizeof(*poses));
    if (!poses)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu poses", count);
    free(aligner->poses);
    aligner->poses = poses;
    aligner->pose_capacity = count;
    return NDT_OK;
}

enum ndt_status ndt_aligner_score(struct ndt_aligner *aligner, const struct ndt_score_job *job,
                                  struct ndt_pose_score *out, size_t *done, struct ndt_error *err)
{
    const struct ndt_backend_ops *ops = aligner->backend->ops;
    struct ndt_score_request request = {.level = aligner->map ? ndt_map_find_level(aligner->map, job->leaf_m) : -1,
                                        .neighbours = job->neighbours,
                                        .count = job->count,
                                        .goes_on = job->goes_on,
                                        .context = job->context};
    *done = 0;
    memset(out, 0, job->count * sizeof(*out));
    if (!ops->score_poses)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "backend %s does not score poses", ops->name);
    if (request.level < 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "the map has no level of %g m to score poses on", job->leaf_m);
    enum ndt_status status = reserve(aligner, job->count, err);
    if (status == NDT_OK)
        status = ops->set_scan(aligner->backend, job->scan, err);
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; i < job->count; i++) {
        const struct ndt_pose *pose = &job->T_map_sensor[i];
        ndt_pose_rotation(pose, aligner->poses[i].R);
        for (int k = 0; k < 3; k++)
            aligner->poses[i].t_m[k] = pose->t_m[k] - aligner->map->origin_m[k];
    }
    request.poses = aligner->poses;
    return ops->score_poses(aligner->backend, &request, out, done, err);
}
