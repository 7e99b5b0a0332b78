/** @file
 * @brief point_math.h in float on the device, and the first two steps of every kernel. */
#ifndef NDT_POINT_DEVICE_CUH
#define NDT_POINT_DEVICE_CUH

#include <cuda_runtime.h>

#include "gpu_job.h"

static __device__ inline float ndt_exp_f(float x)
{
    return expf(x);
}
static __device__ inline float ndt_root_f(float x)
{
    return sqrtf(x);
}
#define NDT_REAL    float
#define NDT_NAME(x) x##_f
#define NDT_DEVICE  __device__
#include "ndt/point_math.h"

/* Number of the thread's point; may lie beyond the last one. */
static __device__ inline uint32_t point_index()
{
    return blockIdx.x * (uint32_t)NDT_GPU_BLOCK + threadIdx.x;
}

static __device__ inline void make_tables(const float angles[6], struct ndt_tables_f *tables)
{
    const struct ndt_angles_f named = {angles[0], angles[1], angles[2], angles[3], angles[4], angles[5]};
    ndt_set_tables_f(tables, &named);
}

/* Computes the tables of the block from the 24 bytes by one thread; all threads wait. */
static __device__ inline void share_tables(const struct ndt_gpu_job &job, struct ndt_tables_f *tables)
{
    if (threadIdx.x == 0)
        make_tables(job.angles, tables);
    __syncthreads(); /* tables are complete */
}

static __device__ inline void load_point(const struct ndt_gpu_job &job, uint32_t i, float x[3])
{
    x[0] = job.x_m[i];
    x[1] = job.y_m[i];
    x[2] = job.z_m[i];
}

#endif
