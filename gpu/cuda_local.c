#include "cuda_local.h"

#include "kernels.h"

/* Kernels of a kind, and whether a pipeline launches them. */
struct kernels {
    int is_used;
    const void *(*kernels[6])(void); /* ends with NULL */
};

static enum ndt_status find_largest(const struct kernels *kinds, size_t count, struct ndt_cuda_device *device,
                                    size_t *bytes, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < count; i++) {
        for (int k = 0; status == NDT_OK && kinds[i].is_used && kinds[i].kernels[k]; k++) {
            size_t here = 0;
            status = ndt_cuda_stack_bytes(device, kinds[i].kernels[k](), &here, err);
            *bytes = here > *bytes ? here : *bytes;
        }
    }
    return status;
}

enum ndt_status ndt_cuda_local_bytes(size_t *out, struct ndt_cuda_device *device,
                                     const struct ndt_cuda_facts *facts, const struct ndt_cuda_pipeline *pipeline,
                                     int has_preprocess, struct ndt_error *err)
{
    const enum ndt_cuda_shape shape = pipeline->shape;
    const int is_any = shape == NDT_CUDA_AUTOMATIC, is_resident = shape != NDT_CUDA_HOST;
    const int is_pass = is_any || shape == NDT_CUDA_CLUSTER; /* a cluster runs such passes for large scans only */
    const int is_chain = shape == NDT_CUDA_CHAIN || (is_pass && !facts->has_loops);
    const int is_loop = (shape == NDT_CUDA_LOOP || is_pass) && facts->has_loops; /* else it cannot be loaded */
    const struct kernels kinds[] = {
        {1, {ndt_kernel_inform, ndt_kernel_score_poses, ndt_kernel_empty}},
        {!pipeline->has_intermediates, {ndt_kernel_fused}},
        {pipeline->has_intermediates,
         {ndt_kernel_jacobian, ndt_kernel_point_hessian, ndt_kernel_terms, ndt_kernel_reduce, ndt_kernel_finish}},
        {is_resident, {ndt_kernel_resident_inform}},
        {is_any || shape == NDT_CUDA_BLOCK, {ndt_kernel_resident_block}},
        {(is_any || shape == NDT_CUDA_CLUSTER) && facts->largest_cluster > 1, {ndt_kernel_resident_cluster}},
        {is_chain, {ndt_kernel_resident_pass}},
        {is_loop, {ndt_kernel_resident_loop}},
        {is_resident && has_preprocess,
         {ndt_kernel_preprocess_place, ndt_kernel_preprocess_add, ndt_kernel_preprocess_list,
          ndt_kernel_preprocess_sample, ndt_kernel_preprocess_again}},
        {is_resident && has_preprocess, {ndt_kernel_preprocess_begin}},
    };
    size_t bytes = 0;
    const enum ndt_status status = find_largest(kinds, sizeof(kinds) / sizeof(kinds[0]), device, &bytes, err);
    *out = bytes * (size_t)facts->threads;
    return status;
}
