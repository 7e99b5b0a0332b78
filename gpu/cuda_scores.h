/** @file
 * @brief Scores of one scan at many poses: see ndt_backend_ops.score_poses. */
#ifndef NDT_CUDA_SCORES_H
#define NDT_CUDA_SCORES_H

#include "cuda_resident.h"
#include "ndt/pose_scores.h"

/** Parts of the backend that score poses; borrowed. */
struct ndt_cuda_scores {
    struct ndt_cuda_device *device;
    const struct ndt_cuda_plan *plan;
    char *memory, *pinned; /**< memory of the plan */
    const struct ndt_map *map;
    const struct ndt_cuda_map *on_device;
    const struct ndt_cuda_resident *scans;
    struct ndt_gpu_job job; /**< private */
};

/** Scores poses (ndt_backend_ops.score_poses) in slices: per slice one copy up (64 bytes per pose), one launch, one
 * copy down (24 bytes per pose and NDT_GPU_SCORE_POINTS points) and one wait. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_score_poses(struct ndt_cuda_scores *scores,
                                                    const struct ndt_score_request *request,
                                                    struct ndt_pose_score *out, size_t *done,
                                                    struct ndt_error *err);

/** Launches the kernel once, without points and without waiting. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_scores_warm_up(struct ndt_cuda_scores *scores, struct ndt_error *err);

#endif
