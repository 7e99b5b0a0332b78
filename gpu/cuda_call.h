/* What the files that call the CUDA runtime share: cuda_device.c, cuda_stream.c and cuda_graph.c, and no other. */
#ifndef NDT_CUDA_CALL_H
#define NDT_CUDA_CALL_H

#include <cuda_runtime_api.h>

#include "cuda_device.h"

/* First of all in every function that may fail: NDT_ERR_DEVICE once the device is lost. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_enter(struct ndt_cuda_device *device, struct ndt_error *err);
/* Around every call: NDT_OK, or the device is lost from now on. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_check(struct ndt_cuda_device *device, cudaError_t code, const char *what,
                                              struct ndt_error *err);
/* Around calls that allocate `bytes` (0: the runtime knows how many): counted; NDT_ERR_MEMORY loses nothing. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_check_allocated(struct ndt_cuda_device *device, cudaError_t code,
                                                        size_t bytes, const char *what, struct ndt_error *err);

/* Part of opening and closing: all streams, clocks and marks. Closing takes what is there. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_streams_open(struct ndt_cuda_device *device, struct ndt_error *err);
void ndt_cuda_streams_close(struct ndt_cuda_device *device);

#endif
