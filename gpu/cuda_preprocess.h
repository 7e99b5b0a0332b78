/* Preprocessing on the device: a raw scan goes up, with everything that is to be done to it in front, and what is
 * matched stays there. Nothing waits and nothing comes back: how many points are left is told by the search. */
#ifndef NDT_CUDA_PREPROCESS_H
#define NDT_CUDA_PREPROCESS_H

#include "cuda_device.h"
#include "cuda_plan.h"

struct ndt_cuda_preprocess {
    struct ndt_cuda_device *device;
    const struct ndt_cuda_plan *plan;
    char *memory, *pinned;  /* of the plan */
    struct ndt_gpu_job job; /* job.front: on the device */
    uint32_t round;
    int is_queued;  /* the pinned buffer may still be read */
    size_t most;    /* points that the last scan can have left */
    int has_sample; /* there is something to move again */
};

/* Once the memory is there: clears what has to be, loads the kernels, waits. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_preprocess_open(struct ndt_cuda_preprocess *plan, struct ndt_error *err);
/* NDT_ERR_LIMIT: more points than the plan is for. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_preprocess_load(struct ndt_cuda_preprocess *plan,
                                                        const struct ndt_preprocess_plan *rules,
                                                        const struct ndt_cloud *raw, struct ndt_error *err);
/* The last sample with another motion; NDT_ERR_UNSUPPORTED: there is none. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_preprocess_again(struct ndt_cuda_preprocess *plan,
                                                         const struct ndt_preprocess_plan *rules,
                                                         struct ndt_error *err);

#endif
