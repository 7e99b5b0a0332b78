/** @file
 * @brief Where the table of backends gets the CUDA backend from: the module libndt_cuda.so, which is loaded at run
 * time; in tests on the emulated device, the program itself. Source: cuda_loader.c. */
#ifndef NDT_CUDA_LOADER_H
#define NDT_CUDA_LOADER_H

#include "ndt/status.h"
#include "ndt_cuda/module.h"

/** NDT_ERR_UNSUPPORTED: the machine has no driver of NVIDIA. Loads the driver's library, once for the process. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_find_driver(struct ndt_error *why);
/** Loads the module in the first call; it stays loaded, and a failure stays one. NDT_ERR_UNSUPPORTED: it is not
 * there, or is no module of this version. Thread-safe. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_load(const struct ndt_cuda_module **out, struct ndt_error *why);

#endif
