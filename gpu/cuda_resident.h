/* The host side of the resident pipelines: whole searches on the device. One upload of all searches, one launch (of
 * a kernel or a graph), one download, one wait. A deadline limits the evaluations of a launch, by the time that one
 * took recently. */
#ifndef NDT_CUDA_RESIDENT_H
#define NDT_CUDA_RESIDENT_H

#include "cuda_device.h"
#include "cuda_map.h"
#include "cuda_pipeline.h"
#include "cuda_plan.h"

enum { NDT_CUDA_GRAPHS = 8 };

/* Where a scan is: floats into the scan's memory. */
struct ndt_cuda_scan {
    uint32_t at, count, blocks;
};

/* A graph for launches of up to so many items and blocks each; the longest unused one makes room. */
struct ndt_cuda_cached_graph {
    struct ndt_cuda_graph graph;
    unsigned items, blocks;
    uint64_t used; /* when, by launches */
};

struct ndt_cuda_resident {
    enum ndt_cuda_shape shape; /* NDT_CUDA_HOST: this pipeline has no searches */
    struct ndt_cuda_device *device;
    const struct ndt_cuda_facts *facts;
    const struct ndt_cuda_plan *plan;
    char *memory, *pinned; /* of the plan */
    struct ndt_gpu_job job;
    const struct ndt_gpu_preprocess
        *preprocess; /* on the device: scan 0 was made there, and its size is a bound; or NULL */
    struct ndt_cuda_scan scans[NDT_CUDA_ITEMS];
    size_t scan_count;
    struct ndt_cuda_cached_graph graphs[NDT_CUDA_GRAPHS];
    uint64_t launches;
    /* What one evaluation of a launch took lately, and of how many blocks: for deadlines only. */
    double pass_us;
    unsigned pass_blocks;
};

/* What the shape `automatic` comes down to for so many items of so many blocks at most. */
enum ndt_cuda_shape ndt_cuda_choose_shape(const struct ndt_cuda_facts *facts, size_t items, unsigned blocks);
/* Blocks per cluster, at least 2, for as many items and blocks. */
unsigned ndt_cuda_cluster_size(const struct ndt_cuda_facts *facts, size_t items, unsigned blocks);

/* All buffers are of the plan; on_device is the map that the searches are made in. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_resident_solve(struct ndt_cuda_resident *resident,
                                                       const struct ndt_cuda_map *on_device,
                                                       const struct ndt_newton_rules *rules,
                                                       struct ndt_solve_item *items, size_t count, double until_us,
                                                       struct ndt_error *err);
/* The scans are known (resident->scans): the graph for searches of each is made now, if there will be one. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_resident_prepare(struct ndt_cuda_resident *resident, struct ndt_error *err);
/* Every kernel of the shape once, without items; the device is waited for. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_resident_warm_up(struct ndt_cuda_resident *resident, struct ndt_error *err);
void ndt_cuda_resident_close(struct ndt_cuda_resident *resident);

#endif
