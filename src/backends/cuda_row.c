#include "cuda_row.h"

#include <stdatomic.h>
#include <stdio.h>

#include "cuda_loader.h"
#include "ndt_cuda/pipelines.h"

#ifndef NDT_CUDA_NAME /* a test build sets another name */
#define NDT_CUDA_NAME "cuda"
#endif
#define NAME(kernels, shape, name, about) name,

static const char *const pipeline_names[] = {NDT_CUDA_PIPELINES(NAME) NULL};
static enum ndt_status probe(int device, struct ndt_error *why);
static enum ndt_status open_module(struct ndt_backend **out, const struct ndt_backend_config *config,
                                   struct ndt_error *err);
static void plan(const struct ndt_backend_config *config, char *text, size_t size);

const struct ndt_backend_ops ndt_cuda_row = {
    .name = NDT_CUDA_NAME,
    .about = "an NVIDIA GPU, evaluations or whole alignments; cuda.pipeline chooses how",
    .probe = probe,
    .open = open_module,
    .pipelines = pipeline_names,
    .plan = plan,
};

static _Atomic(const struct ndt_backend_ops *) as_loaded = &ndt_cuda_row;
static atomic_int is_reset_allowed;

const struct ndt_backend_ops *ndt_cuda_row_as_loaded(void)
{
    return atomic_load(&as_loaded);
}

static enum ndt_status load(const struct ndt_cuda_module **module, struct ndt_error *why)
{
    const enum ndt_status status = ndt_cuda_load(module, why);
    if (status != NDT_OK)
        return status;
    atomic_store(&as_loaded, (*module)->backend);
    /* Passes on a reset that was allowed before; from now on ndt_cuda_row_allow_reset finds the module. */
    if (atomic_load(&is_reset_allowed))
        (*module)->allow_reset(1);
    return NDT_OK;
}

enum ndt_status ndt_cuda_row_load(struct ndt_error *why)
{
    const struct ndt_cuda_module *module;
    const enum ndt_status status = ndt_cuda_find_driver(why);
    return status == NDT_OK ? load(&module, why) : status;
}

static enum ndt_status probe(int device, struct ndt_error *why)
{
    const enum ndt_status status = ndt_cuda_row_load(why);
    return status == NDT_OK ? ndt_cuda_row_as_loaded()->probe(device, why) : status;
}

static enum ndt_status open_module(struct ndt_backend **out, const struct ndt_backend_config *config,
                                   struct ndt_error *err)
{
    const enum ndt_status status = ndt_cuda_row_load(err);
    *out = NULL;
    return status == NDT_OK ? ndt_cuda_row_as_loaded()->open(out, config, err) : status;
}

/* Plans need no driver. */
static void plan(const struct ndt_backend_config *config, char *text, size_t size)
{
    const struct ndt_cuda_module *module;
    struct ndt_error why;
    if (load(&module, &why) == NDT_OK)
        module->backend->plan(config, text, size);
    else
        snprintf(text, size, "%s", why.text);
}

void ndt_cuda_row_allow_reset(void)
{
    const struct ndt_cuda_module *module;
    atomic_store(&is_reset_allowed, 1);
    if (ndt_cuda_row_as_loaded() != &ndt_cuda_row && ndt_cuda_load(&module, NULL) == NDT_OK)
        module->allow_reset(1);
}

const struct ndt_dense_ops *ndt_cuda_row_search_engine(void)
{
    const struct ndt_cuda_module *module;
    if (ndt_cuda_row_load(NULL) != NDT_OK || ndt_cuda_load(&module, NULL) != NDT_OK)
        return NULL;
    return module->search_engine;
}
