#include "cuda_context.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "ndt_cuda/cuda_backend.h"

enum { POLL_NS = 1000000, PATIENCE_POLLS = 1000 }; /* a second, or slightly more */

static struct context {
    atomic_uint epoch, inside;
    struct CUevent_st *_Atomic endless; /* event behind work that has not ended in time; NULL: none */
} contexts[NDT_CUDA_MOST_DEVICES];
static pthread_mutex_t reset_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int is_reset_allowed;

void ndt_cuda_allow_reset(int is_allowed)
{
    atomic_store(&is_reset_allowed, is_allowed);
}

static int is_corrupt(unsigned epoch)
{
    return epoch % 2 == 1;
}

static int still_runs(int index)
{
    struct CUevent_st *event = atomic_load(&contexts[index].endless);
    if (!event)
        return 0;
    (void)cudaSetDevice(index);
    const int runs = cudaEventQuery(event) == cudaErrorNotReady;
    (void)cudaGetLastError();
    if (!runs)
        atomic_store(&contexts[index].endless, NULL);
    return runs;
}

static void reset(int index)
{
    struct context *context = &contexts[index];
    if (still_runs(index)) /* a reset would wait for it */
        return;
    for (int i = 0; i < PATIENCE_POLLS && atomic_load(&context->inside) > 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    if (atomic_load(&context->inside) > 0)
        return;
    (void)cudaSetDevice(index);
    /* The first reset may report the failure of an earlier launch and have done its work: the second one then
     * succeeds. */
    const int is_done = cudaDeviceReset() == cudaSuccess || cudaDeviceReset() == cudaSuccess;
    (void)cudaGetLastError();
    if (is_done) /* otherwise nothing was freed, and the device may still write to it */
        atomic_fetch_add(&context->epoch, 1);
}

int ndt_cuda_context_reset_if_corrupt(int index)
{
    struct context *context = &contexts[index];
    if (!is_corrupt(atomic_load(&context->epoch)))
        return 1;
    if (!atomic_load(&is_reset_allowed))
        return 0;
    pthread_mutex_lock(&reset_lock);
    if (is_corrupt(atomic_load(&context->epoch))) /* no other thread was faster */
        reset(index);
    pthread_mutex_unlock(&reset_lock);
    return !is_corrupt(atomic_load(&context->epoch));
}

int ndt_cuda_context_join(int index, unsigned *epoch)
{
    while (ndt_cuda_context_reset_if_corrupt(index)) {
        *epoch = atomic_load(&contexts[index].epoch);
        if (!is_corrupt(*epoch) && ndt_cuda_context_enter(index, *epoch))
            return 1;
    }
    return 0;
}

enum ndt_status ndt_cuda_context_open(int index, unsigned *epoch, struct ndt_error *err)
{
    if (index < 0 || index >= NDT_CUDA_MOST_DEVICES)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "no CUDA device %d; the limit is %d", index,
                        NDT_CUDA_MOST_DEVICES);
    if (ndt_cuda_context_join(index, epoch))
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_DEVICE, "CUDA device %d: has failed, and %s", index,
                    !atomic_load(&is_reset_allowed)         ? "its reset would end other contexts of this process"
                    : atomic_load(&contexts[index].endless) ? "its work does not end"
                    : atomic_load(&contexts[index].inside) > 0 ? "a call of another thread does not end"
                                                               : "its reset fails, too");
}

int ndt_cuda_context_enter(int index, unsigned epoch)
{
    atomic_fetch_add(&contexts[index].inside, 1);
    if (atomic_load(&contexts[index].epoch) == epoch)
        return 1;
    ndt_cuda_context_leave(index);
    return 0;
}

void ndt_cuda_context_leave(int index)
{
    atomic_fetch_sub(&contexts[index].inside, 1);
}

void ndt_cuda_context_give_up(int index, unsigned epoch, struct CUevent_st *event)
{
    struct CUevent_st *none = NULL;
    (void)atomic_compare_exchange_strong(&contexts[index].endless, &none, event);
    (void)atomic_compare_exchange_strong(&contexts[index].epoch, &epoch, epoch + 1);
}

/* Whether an error is sticky: every later call returns it. */
static int is_sticky(void)
{
    cudaError_t code = cudaSuccess;
    for (int i = 0; i < 2; i++) {
        (void)cudaGetLastError();
        code = cudaDeviceSynchronize();
        if (code == cudaSuccess || code == cudaErrorMemoryAllocation)
            return 0;
    }
    return 1;
}

void ndt_cuda_context_inspect(int index, unsigned epoch, int code)
{
    if (code == cudaSuccess)
        return;
    if (code != cudaErrorMemoryAllocation && is_sticky())
        (void)atomic_compare_exchange_strong(&contexts[index].epoch, &epoch, epoch + 1);
    (void)cudaGetLastError();
}
