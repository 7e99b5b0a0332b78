#include "gpu_candidates.h"

#include <stdio.h>
#include <string.h>

#include "backends.h"

static void close_candidate(struct gpu_candidate *candidate)
{
    ndt_aligner_destroy(candidate->aligner);
    if (candidate->backend)
        candidate->backend->ops->close(candidate->backend);
    candidate->aligner = NULL;
    candidate->backend = NULL;
}

static enum ndt_status load(struct gpu_candidate *candidate, struct ndt_map *map)
{
    enum ndt_status status = ndt_aligner_create(&candidate->aligner, candidate->backend, &candidate->why);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(candidate->aligner, map, &candidate->why);
    return status;
}

static void open_candidate(struct gpu_candidates *candidates, const struct gpu_candidates_request *request,
                           const struct ndt_backend_ops *ops, const char *pipeline, int threads)
{
    if (candidates->count == GPU_CANDIDATES)
        return;
    struct gpu_candidate *candidate = &candidates->items[candidates->count++];
    struct ndt_backend_config config;
    memset(candidate, 0, sizeof(*candidate));
    ndt_backend_config_default(&config);
    config.threads = threads;
    config.pipeline = pipeline;
    config.max_points = request->max_points;
    candidate->is_host = pipeline == NULL;
    if (pipeline)
        snprintf(candidate->name, sizeof(candidate->name), "%s %s", ops->name, pipeline);
    else
        snprintf(candidate->name, sizeof(candidate->name), "%s, %s", ops->name,
                 threads == 1 ? "1 thread" : "all threads");
    enum ndt_status status = ops->probe(&candidate->why);
    if (status == NDT_OK)
        status = ops->open(&candidate->backend, &config, &candidate->why);
    candidate->is_broken = status != NDT_OK && status != NDT_ERR_UNSUPPORTED;
    if (status != NDT_OK)
        return;
    if (ops->describe)
        ops->describe(candidate->backend, pipeline ? candidate->about : candidate->name,
                      pipeline ? sizeof(candidate->about) : GPU_CANDIDATE_NAME);
    candidate->is_resident = ops->solve_limit && ops->solve_limit(candidate->backend) > 0;
    if (load(candidate, request->map) != NDT_OK) {
        candidate->is_broken = 1;
        close_candidate(candidate);
    }
}

void gpu_candidates_open(struct gpu_candidates *candidates, const struct gpu_candidates_request *request)
{
    const struct ndt_backend_ops *ops;
    candidates->count = 0;
    open_candidate(candidates, request, &ndt_cpu_backend, NULL, 1);
    if (request->threads != 1)
        open_candidate(candidates, request, &ndt_cpu_backend, NULL, request->threads);
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++)
        for (const char *const *name = ops->pipelines; name && *name; name++)
            if (!request->pipeline || strcmp(request->pipeline, *name) == 0)
                open_candidate(candidates, request, ops, *name, 1);
}

void gpu_candidates_close(struct gpu_candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++)
        close_candidate(&candidates->items[i]);
    candidates->count = 0;
}
