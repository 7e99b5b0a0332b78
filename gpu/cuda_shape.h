/** @file
 * @brief Choice of the shape of `resident` that suits a batch on a device.
 *
 * Plain arithmetic, no CUDA. The limits come from counted cycles: see docs/gpu.md, "Choice of shape". */
#ifndef NDT_CUDA_SHAPE_H
#define NDT_CUDA_SHAPE_H

#include "cuda_device.h"
#include "cuda_pipeline.h"

/** A team of blocks per alignment. */
struct ndt_cuda_team {
    unsigned size;    /**< number of blocks; 1: no cluster */
    unsigned threads; /**< threads of a block */
};

/** The shape for NDT_CUDA_AUTOMATIC and `items` of at most `blocks` each. largest_cluster: blocks, 1: the device
 * has no clusters; facts->largest_cluster or more. */
enum ndt_cuda_shape ndt_cuda_choose_shape(const struct ndt_cuda_facts *facts, unsigned largest_cluster,
                                          size_t items, unsigned blocks);
/** The shape that a pipeline uses: `wanted`, or another one where the device cannot run it. */
enum ndt_cuda_shape ndt_cuda_shape_for(enum ndt_cuda_shape wanted, const struct ndt_cuda_facts *facts,
                                       unsigned largest_cluster, size_t items, unsigned blocks);
/** The cluster of each item of such a batch: as few rounds of rows as possible, and then as few threads. */
struct ndt_cuda_team ndt_cuda_cluster_team(const struct ndt_cuda_facts *facts, unsigned largest_cluster,
                                           size_t items, unsigned blocks);

#endif
