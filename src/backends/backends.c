#include "backends.h"

#include <string.h>

#ifdef NDT_HAVE_CUDA
#include "cuda_row.h"
#endif
#include "ndt_cuda/pipelines.h"

/* One row per backend. "auto" selects the first working one, which is the CPU, so that a replay is bit-identical on
 * every machine. The live daemon selects by measurement instead, see ndtd/autotune.h. */
static const struct ndt_backend_ops *const backends[] = {
    &ndt_cpu_backend,
    &ndt_reference_backend,
#ifdef NDT_HAVE_CUDA
    &ndt_cuda_row,
#endif
};
#define LABEL(kernels, shape, name, about)       {name, 0},
#define NAME(kernels, shape, name, about)        name,
#define SHAPE_LABEL(kernels, shape, name, about) {&name[sizeof("resident")], 0},
const struct ndt_label ndt_pipeline_labels[] = {{"auto", 0}, NDT_CUDA_CHOICES(LABEL){NULL, 0}};
const struct ndt_label ndt_shape_labels[] = {{"auto", 0}, NDT_CUDA_SHAPES(SHAPE_LABEL){NULL, 0}};

enum { BACKEND_COUNT = sizeof(backends) / sizeof(backends[0]) };

const struct ndt_backend_ops *ndt_backend_at(size_t i)
{
#ifdef NDT_HAVE_CUDA
    if (i < BACKEND_COUNT && backends[i] == &ndt_cuda_row)
        return ndt_cuda_row_as_loaded();
#endif
    return i < BACKEND_COUNT ? backends[i] : NULL;
}

void ndt_backends_own_process(void)
{
#ifdef NDT_HAVE_CUDA
    ndt_cuda_row_allow_reset();
#endif
}

void ndt_backends_load(void)
{
#ifdef NDT_HAVE_CUDA
    (void)!ndt_cuda_row_load(NULL); /* the probe of the backend tells the reason of a failure */
#endif
}

static enum ndt_status open_auto(struct ndt_backend **out, const struct ndt_backend_config *config,
                                 struct ndt_error *err)
{
    for (size_t i = 0; i < BACKEND_COUNT; i++)
        if (backends[i]->probe(config->device, NULL) == NDT_OK && backends[i]->open(out, config, err) == NDT_OK)
            return NDT_OK;
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "no backend works on this machine");
}

enum ndt_status ndt_backend_open(struct ndt_backend **out, const char *name,
                                 const struct ndt_backend_config *config, struct ndt_error *err)
{
    if (strcmp(name, "auto") == 0)
        return open_auto(out, config, err);
    char known[256] = "auto";
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        const struct ndt_backend_ops *ops = ndt_backend_at(i);
        if (strcmp(name, ops->name) == 0) {
            enum ndt_status status = ops->probe(config->device, err);
            return status == NDT_OK ? ops->open(out, config, err)
                                    : ndt_fail_prefix(err, status, "backend %s cannot be used here", name);
        }
        strncat(known, ", ", sizeof(known) - strlen(known) - 1);
        strncat(known, ops->name, sizeof(known) - strlen(known) - 1);
    }
    return ndt_fail(err, NDT_ERR_ARGUMENT, "backend '%s' is not known; there are: %s", name, known);
}

const char *ndt_pipeline_name(const char *pipeline, const char *shape)
{
    static const char *const names[] = {NDT_CUDA_SHAPES(NAME)};
    for (size_t i = 0; shape && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i] + sizeof("resident"), shape) == 0)
            return names[i];
    return pipeline;
}

const struct ndt_dense_ops *ndt_backend_search_engine(const char *name)
{
#ifdef NDT_HAVE_CUDA
    if (strcmp(name, ndt_cuda_row.name) == 0)
        return ndt_cuda_row_search_engine();
#endif
    (void)name;
    return NULL;
}
