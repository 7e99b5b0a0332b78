/** @file
 * @brief The module's table. */
#include "ndt_cuda/module.h"

#include "ndt/version.h"
#include "ndt_cuda/search_engine.h"

const struct ndt_cuda_module ndt_cuda_module = {.version = ndt_version,
                                                .commit = ndt_commit,
                                                .backend = &ndt_cuda_backend,
                                                .search_engine = &ndt_cuda_search_engine,
                                                .allow_reset = ndt_cuda_allow_reset};
