/** @file
 * @brief The dense score of a search on a CUDA device; see ndt/dense_score.h. */
#ifndef NDT_CUDA_SEARCH_ENGINE_H
#define NDT_CUDA_SEARCH_ENGINE_H

#ifdef __cplusplus
extern "C" {
#endif

/** The engine. It calls no CUDA library before open, and shares the device with its other uses: see
 * gpu/cuda_context.h. */
extern const struct ndt_dense_ops ndt_cuda_search_engine;

#ifdef __cplusplus
}
#endif
#endif
