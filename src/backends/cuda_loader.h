/** @file
 * @brief Loader of the CUDA backend for the table of backends: from the module libndt_cuda.so at run time; in tests
 * on the emulated device, from the program itself. Source: cuda_loader.c. */
#ifndef NDT_CUDA_LOADER_H
#define NDT_CUDA_LOADER_H

#include "ndt/status.h"
#include "ndt_cuda/module.h"

/** Loads the driver's library, once for the process. NDT_ERR_UNSUPPORTED: the machine has no driver of NVIDIA. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_find_driver(struct ndt_error *why);
/** Loads the module in the first call; it stays loaded, and a failure is final. NDT_ERR_UNSUPPORTED: there is no
 * module, or it is not of this version. Thread-safe. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_load(const struct ndt_cuda_module **out, struct ndt_error *why);

#endif
