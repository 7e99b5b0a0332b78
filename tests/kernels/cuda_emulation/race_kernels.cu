#include "race_kernels.h"

#include "cluster.cuh"
#include "gpu_job.h"

enum { FOUND = 7 };

static __device__ inline void in_a_block(const struct ndt_gpu_job &job)
{
    __shared__ uint32_t words[32];
    uint8_t *bytes = (uint8_t *)(void *)job.block_sums;
    const unsigned lane = threadIdx.x % 32, next = (lane + 1) % 32;
    words[lane] = lane;
    switch (job.count) {
    case RACE_BARRIER:
        __syncthreads();
        break;
    case RACE_WARP_BARRIER:
        __syncwarp();
        break;
    case RACE_SHUFFLE:
        (void)__shfl_xor_sync(0xffffffffu, lane, 1);
        break;
    case RACE_LOAD_THEN_STORE:
        __syncthreads();
        job.sums[lane] = words[next];
        words[lane] = 0;
        return;
    case RACE_SEPARATE_BYTES:
        bytes[lane] = (uint8_t)lane;
        return;
    case RACE_SAME_BYTE:
        bytes[lane / 2] = (uint8_t)lane;
        return;
    case RACE_CONSTANT_WRITTEN:
        job.block_sums[lane] = lane;
        __syncthreads();
        job.sums[lane] = __ldg(job.block_sums + next);
        return;
    case RACE_UNWRITTEN:
        job.sums[lane] = job.block_sums[lane];
        return;
    }
    job.sums[lane] = words[next];
}

static __device__ inline void leave_number(const struct ndt_gpu_job &job)
{
    if (job.count == RACE_MESSAGE_VOLATILE || job.count == RACE_MESSAGE_VOLATILE_UNFENCED)
        *(volatile double *)job.block_sums = FOUND;
    else
        *job.block_sums = FOUND;
    if (job.count != RACE_MESSAGE_NO_RELEASE && job.count != RACE_MESSAGE_VOLATILE_UNFENCED)
        __threadfence();
    if (job.count == RACE_MESSAGE_PLAIN_FLAG)
        *job.ticket = 1;
    else if (job.count == RACE_MESSAGE_VOLATILE_FLAG)
        *(volatile uint32_t *)job.ticket = 1;
    else
        (void)atomicExch(job.ticket, 1u);
}

static __device__ inline void take_number(const struct ndt_gpu_job &job)
{
    uint32_t flag = 0;
    for (int i = 0; i < 100 && flag == 0; i++) {
        if (job.count == RACE_MESSAGE_PLAIN_FLAG)
            flag = *job.ticket;
        else if (job.count == RACE_MESSAGE_VOLATILE_FLAG)
            flag = *(volatile uint32_t *)job.ticket;
        else
            flag = atomicAdd(job.ticket, 0u);
        __nanosleep(10);
    }
    if (flag == 0)
        return;
    if (job.count != RACE_MESSAGE_NO_ACQUIRE && job.count != RACE_MESSAGE_NO_ACQUIRE_LDCG &&
        job.count != RACE_MESSAGE_VOLATILE_UNFENCED)
        __threadfence();
    job.sums[1] = 1;
    if (job.count == RACE_MESSAGE_VOLATILE || job.count == RACE_MESSAGE_VOLATILE_UNFENCED)
        job.sums[0] = *(volatile double *)job.block_sums;
    else if (job.count == RACE_MESSAGE_NO_ACQUIRE_LDCG)
        job.sums[0] = __ldcg(job.block_sums);
    else
        job.sums[0] = *job.block_sums;
}

static __device__ inline void between_blocks(const struct ndt_gpu_job &job)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        leave_number(job);
    if (threadIdx.x == 0 && blockIdx.x == 1)
        take_number(job);
}

static __device__ inline void by_the_last_block(const struct ndt_gpu_job &job)
{
    __shared__ uint32_t place;
    job.block_sums[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    if (job.count != RACE_LAST_BLOCK_NO_FENCE)
        __threadfence();
    if (job.count != RACE_LAST_BLOCK_NO_BARRIER)
        __syncthreads();
    if (threadIdx.x == 0)
        place = atomicAdd(job.ticket, 1u);
    __syncthreads();
    if (place != gridDim.x - 1)
        return;
    __threadfence();
    double sum = 0;
    for (unsigned i = 0; threadIdx.x == 0 && i < gridDim.x * blockDim.x; i++)
        sum += __ldcg(job.block_sums + i);
    if (threadIdx.x != 0)
        return;
    job.sums[0] = sum;
    *job.ticket = 0;
}

static __device__ inline void in_a_cluster(const struct ndt_gpu_job &job)
{
    __shared__ byte_barrier come;
    __shared__ uint64_t word;
    const bool sends = job.count >= RACE_SENT;
    if (threadIdx.x == 0)
        byte_barrier_begin(&come);
    cluster_barrier();
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        job.block_sums[0] = FOUND;
        if (sends)
            store_at_rank(1, &word, FOUND, &come);
    }
    if (job.count == RACE_CLUSTER)
        cluster_barrier();
    if (threadIdx.x == 0 && blockIdx.x == 1) {
        if (sends) {
            byte_barrier_expect(&come, sizeof(word));
            if (job.count != RACE_SENT_NO_WAIT)
                byte_barrier_wait(&come, 0);
        }
        job.sums[0] = job.count == RACE_SENT || job.count == RACE_SENT_NO_WAIT ? (double)word : job.block_sums[0];
    }
    if (job.count == RACE_SENT_NO_WAIT && threadIdx.x == 0 && blockIdx.x == 1)
        byte_barrier_wait(&come, 0);
    cluster_barrier();
}

extern "C" __global__ void race_pattern(const struct ndt_gpu_job job)
{
    if (job.count < RACE_MESSAGE)
        in_a_block(job);
    else if (job.count < RACE_LAST_BLOCK)
        between_blocks(job);
    else if (job.count < RACE_CLUSTER)
        by_the_last_block(job);
    else
        in_a_cluster(job);
}

extern "C" const void *kernel_race_pattern(void)
{
    return (const void *)race_pattern;
}
