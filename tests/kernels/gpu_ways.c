#include "gpu_ways.h"

#include <stdio.h>
#include <string.h>

#include "backends.h"

static void close_way(struct gpu_way *way)
{
    ndt_aligner_destroy(way->aligner);
    if (way->backend)
        way->backend->ops->close(way->backend);
    way->aligner = NULL;
    way->backend = NULL;
}

static enum ndt_status load(struct gpu_way *way, struct ndt_map *map)
{
    enum ndt_status status = ndt_aligner_create(&way->aligner, way->backend, &way->why);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(way->aligner, map, &way->why);
    return status;
}

static void open_way(struct gpu_ways *ways, const struct gpu_ways_request *request,
                     const struct ndt_backend_ops *ops, const char *pipeline, int threads)
{
    if (ways->count == GPU_WAYS)
        return;
    struct gpu_way *way = &ways->items[ways->count++];
    struct ndt_backend_config config;
    memset(way, 0, sizeof(*way));
    ndt_backend_config_default(&config);
    config.threads = threads;
    config.pipeline = pipeline;
    config.max_points = request->max_points;
    way->is_host = pipeline == NULL;
    if (pipeline)
        snprintf(way->name, sizeof(way->name), "%s %s", ops->name, pipeline);
    else
        snprintf(way->name, sizeof(way->name), "%s, %s", ops->name, threads == 1 ? "1 thread" : "all threads");
    enum ndt_status status = ops->probe(&way->why);
    if (status == NDT_OK)
        status = ops->open(&way->backend, &config, &way->why);
    way->is_broken = status != NDT_OK && status != NDT_ERR_UNSUPPORTED;
    if (status != NDT_OK)
        return;
    if (ops->describe)
        ops->describe(way->backend, pipeline ? way->about : way->name,
                      pipeline ? sizeof(way->about) : GPU_WAY_NAME);
    way->is_resident = ops->search_limit && ops->search_limit(way->backend) > 0;
    if (load(way, request->map) != NDT_OK) {
        way->is_broken = 1;
        close_way(way);
    }
}

void gpu_ways_open(struct gpu_ways *ways, const struct gpu_ways_request *request)
{
    const struct ndt_backend_ops *ops;
    ways->count = 0;
    open_way(ways, request, &ndt_cpu_backend, NULL, 1);
    if (request->threads != 1)
        open_way(ways, request, &ndt_cpu_backend, NULL, request->threads);
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++)
        for (const char *const *name = ops->pipelines; name && *name; name++)
            if (!request->pipeline || strcmp(request->pipeline, *name) == 0)
                open_way(ways, request, ops, *name, 1);
}

void gpu_ways_close(struct gpu_ways *ways)
{
    for (size_t i = 0; i < ways->count; i++)
        close_way(&ways->items[i]);
    ways->count = 0;
}
