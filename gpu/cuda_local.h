/** @file
 * @brief Local memory: the driver's reserve for the stacks of a pipeline's kernels, outside every allocation.
 *
 * For the kernel with the largest stack, local memory is reserved for every thread that can be resident on the
 * device, once per context and not given back: bytes per thread (cudaFuncGetAttributes, localSizeBytes) x
 * cudaDeviceProp.maxThreadsPerMultiProcessor x multiprocessors. NVIDIA states the product in its forum ("Local
 * memory management": MAX_THREADS_PER_SM x SMs x LOCAL_MEM_PER_THREAD, context wide); that it never shrinks is the
 * documentation of cudaDeviceLmemResizeToMax, now the default. It is reserved at the first launch that needs it. */
#ifndef NDT_CUDA_LOCAL_H
#define NDT_CUDA_LOCAL_H

#include "cuda_pipeline.h"

/** Size of the local memory of the kernels that the pipeline launches on this device [bytes], with or without
 * preprocessing. Loads the kernels. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_local_bytes(size_t *out, struct ndt_cuda_device *device,
                                                    const struct ndt_cuda_facts *facts,
                                                    const struct ndt_cuda_pipeline *pipeline, int has_preprocess,
                                                    struct ndt_error *err);

#endif
