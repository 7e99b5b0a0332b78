/** @file
 * @brief The dense score of a search on a CUDA device; see ndt_search/engine.h. */
#ifndef NDT_CUDA_SEARCH_ENGINE_H
#define NDT_CUDA_SEARCH_ENGINE_H

#ifdef __cplusplus
extern "C" {
#endif

/** Calls no CUDA library before open. A guest of the device: see gpu/cuda_device.h. */
extern const struct ndt_search_engine_ops ndt_cuda_search_engine;

#ifdef __cplusplus
}
#endif
#endif
