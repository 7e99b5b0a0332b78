/** @file
 * @brief The host side of the resident pipelines: whole alignments on the device.
 *
 * One upload of all alignments, one launch (of a kernel or a graph), one download, one wait. A single alignment by
 * a team needs neither copy: it goes up as an argument of the kernel, which writes the result into memory of the
 * host. A deadline limits the evaluations of a launch, by their recent duration. */
#ifndef NDT_CUDA_RESIDENT_H
#define NDT_CUDA_RESIDENT_H

#include "cuda_device.h"
#include "cuda_graphs.h"
#include "cuda_map.h"
#include "cuda_pipeline.h"
#include "cuda_plan.h"

/** Position of a scan: floats into the memory of the scans. */
struct ndt_cuda_scan {
    uint32_t at, count, blocks;
};

struct ndt_cuda_resident {
    enum ndt_cuda_shape shape; /**< NDT_CUDA_HOST: this pipeline has no alignments */
    struct ndt_cuda_device *device;
    struct ndt_cuda_facts *facts; /**< largest_cluster becomes smaller where there is no room for such a cluster */
    const struct ndt_cuda_plan *plan;
    char *memory, *pinned; /**< memory of the plan */
    struct ndt_gpu_job job;
    const struct ndt_gpu_preprocess
        *preprocess; /**< scan 0 was made on the device, and its size is an upper bound; NULL: it was not */
    struct ndt_cuda_scan scans[NDT_CUDA_ITEMS];
    size_t scan_count;
    size_t
        times_at; /**< offset of the times of all points in the memory of the scans, in floats; 0: all are zero */
    struct ndt_cuda_graphs graphs;
    size_t recent_items;          /**< items of the last solve */
    unsigned largest_cluster;     /**< largest cluster on this device, in blocks; 1: no clusters */
    struct ndt_gpu_item *mapped;  /**< pinned results, for kernels; NULL: the device cannot write them */
    struct ndt_gpu_single single; /**< argument of the launch */
    /* Recent duration of one evaluation of a launch, and its number of blocks: for deadlines only. */
    double pass_us;
    unsigned pass_blocks;
};

/** Solves `count` alignments in the map on_device; see ndt_backend_ops.solve. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_resident_solve(struct ndt_cuda_resident *resident,
                                                       const struct ndt_cuda_map *on_device,
                                                       const struct ndt_newton_rules *rules,
                                                       struct ndt_solve_item *items, size_t count, double until_us,
                                                       struct ndt_error *err);
/** Makes the graph for the known scans (resident->scans), if the shape needs one. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_resident_prepare(struct ndt_cuda_resident *resident, struct ndt_error *err);
/** Launches every kernel of the shape once, without items, and waits. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_resident_warm_up(struct ndt_cuda_resident *resident, struct ndt_error *err);
void ndt_cuda_resident_close(struct ndt_cuda_resident *resident);

#endif
