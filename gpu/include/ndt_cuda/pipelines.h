/** @file
 * The pipelines of the CUDA backend, by name. Needs no CUDA: options and help texts name them in every build. */
#ifndef NDT_CUDA_PIPELINES_H
#define NDT_CUDA_PIPELINES_H

/** X(KERNELS, SHAPE, NAME, ABOUT) for each pipeline, the default first. KERNELS: how one pose is evaluated; SHAPE:
 * an enum ndt_cuda_shape without its prefix; NAME: of ndt_backend_config.pipeline; ABOUT: a few words. The choices
 * are the values of cuda.pipeline. `resident` takes the shape that fits the device, unless cuda.shape names one. */
#define NDT_CUDA_CHOICES(X)                                                                                        \
    X(FUSED, HOST, "fused", "one kernel per evaluation")                                                           \
    X(STAGED, HOST, "staged", "a kernel per step, every intermediate in a buffer")                                 \
    X(RESIDENT, AUTOMATIC, "resident", "whole alignments on the device, the shape that fits")
#define NDT_CUDA_SHAPES(X)                                                                                         \
    X(RESIDENT, BLOCK, "resident-block", "one block per alignment")                                                \
    X(RESIDENT, CLUSTER, "resident-cluster", "a cluster of blocks per alignment")                                  \
    X(RESIDENT, LOOP, "resident-graph", "a graph that loops on the device")                                        \
    X(RESIDENT, CHAIN, "resident-chain", "a graph of passes in a row")
#define NDT_CUDA_PIPELINES(X) NDT_CUDA_CHOICES(X) NDT_CUDA_SHAPES(X)

#endif
