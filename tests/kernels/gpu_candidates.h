/* The CPU backend with one thread and with all, and every pipeline of every backend on a device, all open at once
 * on one map, so that they can be measured in turn. */
#ifndef GPU_CANDIDATES_H
#define GPU_CANDIDATES_H

#include "ndt/align.h"

enum { GPU_CANDIDATES = 16, GPU_CANDIDATE_NAME = 64 };

struct gpu_candidate {
    char name[GPU_CANDIDATE_NAME]; /* "cpu, 2 threads", "cuda resident" */
    char about[256];               /* as the backend describes itself */
    struct ndt_backend *backend;
    struct ndt_aligner *aligner; /* its map is there; NULL: does not work here */
    int is_host, is_resident;
    int is_broken; /* it should have worked */
    struct ndt_error why;
};
struct gpu_candidates {
    struct gpu_candidate items[GPU_CANDIDATES];
    size_t count;
};

struct gpu_candidates_request {
    struct ndt_map *map;
    size_t max_points;
    int threads;          /* of the second row of the CPU; 0 as its own choice, 1: there is none */
    const char *pipeline; /* only this one; NULL: all */
};
/* What does not open stands there with the reason. `ways` needs no init; close it in any case. */
void gpu_candidates_open(struct gpu_candidates *candidates, const struct gpu_candidates_request *request);
void gpu_candidates_close(struct gpu_candidates *candidates);

#endif
