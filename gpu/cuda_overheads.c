#include "cuda_overheads.h"

#include <stdlib.h>
#include <time.h>

#include "kernels.h"

enum { COPIES, LAUNCH, QUEUE, SYNCHRONISE, KINDS, MOST_ROUNDS = 1000 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One round of everything, each from idle to idle. */
static enum ndt_status measure(struct ndt_cuda_device *device, const struct ndt_gpu_job *job,
                               const struct ndt_cuda_copies *copies, double took_us[KINDS], struct ndt_error *err)
{
    double start_us = now_us();
    enum ndt_status status =
        ndt_cuda_upload(device, copies->device_angles, copies->pinned_angles, 6 * sizeof(float), err);
    if (status == NDT_OK)
        status = ndt_cuda_download(device, copies->pinned_sums, job->sums, NDT_GPU_SUMS * sizeof(double), err);
    if (status == NDT_OK)
        status = ndt_cuda_wait(device, err);
    took_us[COPIES] = now_us() - start_us;
    start_us = now_us();
    if (status == NDT_OK)
        status = ndt_cuda_launch(device, ndt_kernel_empty(), 1, job, err);
    took_us[QUEUE] = now_us() - start_us;
    if (status == NDT_OK)
        status = ndt_cuda_wait(device, err);
    took_us[LAUNCH] = now_us() - start_us;
    start_us = now_us();
    if (status == NDT_OK)
        status = ndt_cuda_wait(device, err);
    took_us[SYNCHRONISE] = now_us() - start_us;
    return status;
}

enum ndt_status ndt_cuda_overheads(struct ndt_cuda_device *device, const struct ndt_gpu_job *job,
                                   const struct ndt_cuda_copies *copies, int rounds, struct ndt_overheads *out,
                                   struct ndt_error *err)
{
    if (rounds < 1 || rounds > MOST_ROUNDS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%d rounds; 1 to %d are possible", rounds, MOST_ROUNDS);
    const size_t count = (size_t)rounds;
    double *all_us = malloc(KINDS * count * sizeof(double)), one_us[KINDS];
    if (!all_us)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %d rounds", rounds);
    enum ndt_status status = measure(device, job, copies, one_us, err); /* the first one of everything is slow */
    for (size_t i = 0; status == NDT_OK && i < count; i++) {
        status = measure(device, job, copies, one_us, err);
        for (size_t k = 0; k < KINDS; k++)
            all_us[k * count + i] = one_us[k];
    }
    for (size_t k = 0; status == NDT_OK && k < KINDS; k++) {
        qsort(all_us + k * count, count, sizeof(double), ascending);
        one_us[k] = all_us[k * count + count / 2];
    }
    if (status == NDT_OK)
        *out = (struct ndt_overheads){.copies_us = one_us[COPIES],
                                      .launch_us = one_us[LAUNCH],
                                      .queue_us = one_us[QUEUE],
                                      .synchronise_us = one_us[SYNCHRONISE]};
    free(all_us);
    return status;
}
