#include "search_aligner.h"

#include "backends.h"

/* Points of a batch together, those of the search's scans at all heights: what the device keeps room for. */
enum { MAX_POINTS = 1 << 15 };

static enum ndt_status open_parts(struct ndtd_search_aligner *aligner, const char *backend,
                                  const struct ndt_backend_config *compute, struct ndt_error *err)
{
    struct ndt_backend_config config = *compute;
    config.preprocess = 0;
    config.max_points = MAX_POINTS;
    if (!config.pipeline)
        config.pipeline = "resident";
    enum ndt_status status = ndt_backend_open(&aligner->backend, backend, &config, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&aligner->aligner, aligner->backend, err);
    if (status == NDT_OK && ndt_aligner_solve_limit(aligner->aligner) < 2)
        status = ndt_fail(err, NDT_ERR_UNSUPPORTED, "pipeline %s does not solve", config.pipeline);
    return status;
}

enum ndt_status ndtd_search_aligner_ready(struct ndtd_search_aligner *aligner, const char *backend,
                                          const struct ndt_backend_config *compute, struct ndt_map *map,
                                          struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    if (!aligner->aligner)
        status = open_parts(aligner, backend, compute, err);
    if (status == NDT_OK && aligner->map != map)
        status = ndt_aligner_set_map(aligner->aligner, map, err);
    if (status == NDT_OK)
        aligner->map = map;
    else
        ndtd_search_aligner_close(aligner);
    return status;
}

void ndtd_search_aligner_close(struct ndtd_search_aligner *aligner)
{
    ndt_aligner_destroy(aligner->aligner);
    if (aligner->backend)
        aligner->backend->ops->close(aligner->backend);
    *aligner = (struct ndtd_search_aligner){0};
}
