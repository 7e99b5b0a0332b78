/** @file
 * @brief The interface between libndt_cuda.so, the module with the CUDA backend, and the program that loads it.
 *
 * Program and module share the structures of ndt/backend.h, which change from commit to commit: a module of another
 * version or commit is refused. Version and commit stand first and stay there, so that any two can be compared. */
#ifndef NDT_CUDA_MODULE_H
#define NDT_CUDA_MODULE_H

#include "ndt/dense_score.h"
#include "ndt_cuda/cuda_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDT_CUDA_MODULE_FILE   "libndt_cuda.so"
#define NDT_CUDA_MODULE_SYMBOL "ndt_cuda_module"

/** The only symbol that the module exports. */
struct ndt_cuda_module {
    const char *(*version)(void);
    const char *(*commit)(void);
    const struct ndt_backend_ops *backend;
    const struct ndt_dense_ops *search_engine;
    void (*allow_reset)(int is_allowed);
};
extern const struct ndt_cuda_module ndt_cuda_module;

#ifdef __cplusplus
}
#endif
#endif
