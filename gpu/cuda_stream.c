/* Streams of a device, marks on them, and the clocks around the kernels of an evaluation. */
#include "cuda_call.h"

enum ndt_status ndt_cuda_streams_open(struct ndt_cuda_device *device, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < NDT_CUDA_STREAMS; i++)
        status = ndt_cuda_check(device, cudaStreamCreateWithFlags(&device->streams[i], cudaStreamNonBlocking),
                                "stream", err);
    for (int i = 0; status == NDT_OK && i < NDT_CUDA_MARKS; i++)
        status = ndt_cuda_check(device, cudaEventCreateWithFlags(&device->marks[i], cudaEventDisableTiming),
                                "event", err);
    if (status == NDT_OK)
        status = ndt_cuda_check(device, cudaEventCreate(&device->start), "event", err);
    if (status == NDT_OK)
        status = ndt_cuda_check(device, cudaEventCreate(&device->stop), "event", err);
    return status;
}

static void destroy_event(struct CUevent_st *event)
{
    if (event)
        (void)cudaEventDestroy(event);
}

void ndt_cuda_streams_close(struct ndt_cuda_device *device)
{
    destroy_event(device->stop);
    destroy_event(device->start);
    for (int i = 0; i < NDT_CUDA_MARKS; i++)
        destroy_event(device->marks[i]);
    for (int i = 0; i < NDT_CUDA_STREAMS; i++)
        if (device->streams[i])
            (void)cudaStreamDestroy(device->streams[i]);
}

enum ndt_status ndt_cuda_set_mark(struct ndt_cuda_device *device, int mark, enum ndt_cuda_stream stream,
                                  struct ndt_error *err)
{
    enum ndt_status status = ndt_cuda_enter(device, err);
    if (status != NDT_OK)
        return status;
    return ndt_cuda_check(device, cudaEventRecord(device->marks[mark], device->streams[stream]), "mark", err);
}

enum ndt_status ndt_cuda_follow_mark(struct ndt_cuda_device *device, enum ndt_cuda_stream stream, int mark,
                                     struct ndt_error *err)
{
    enum ndt_status status = ndt_cuda_enter(device, err);
    if (status != NDT_OK)
        return status;
    return ndt_cuda_check(device, cudaStreamWaitEvent(device->streams[stream], device->marks[mark], 0), "mark",
                          err);
}

enum ndt_status ndt_cuda_mark_reached(struct ndt_cuda_device *device, int mark, int *out, struct ndt_error *err)
{
    *out = 0;
    enum ndt_status status = ndt_cuda_enter(device, err);
    if (status != NDT_OK)
        return status;
    const cudaError_t code = cudaEventQuery(device->marks[mark]);
    *out = code == cudaSuccess;
    if (code != cudaErrorNotReady)
        return ndt_cuda_check(device, code, "running", err);
    (void)cudaGetLastError(); /* no failure, but kept as one: the next launch is not to find it */
    return NDT_OK;
}

enum ndt_status ndt_cuda_wait_mark(struct ndt_cuda_device *device, int mark, struct ndt_error *err)
{
    enum ndt_status status = ndt_cuda_enter(device, err);
    if (status != NDT_OK)
        return status;
    device->counters.synchronisations++;
    return ndt_cuda_check(device, cudaEventSynchronize(device->marks[mark]), "running", err);
}

enum ndt_status ndt_cuda_wait(struct ndt_cuda_device *device, struct ndt_error *err)
{
    enum ndt_status status = ndt_cuda_enter(device, err);
    if (status != NDT_OK)
        return status;
    device->counters.synchronisations++;
    return ndt_cuda_check(device, cudaStreamSynchronize(device->streams[NDT_CUDA_MAIN]), "running", err);
}

enum ndt_status ndt_cuda_clock_start(struct ndt_cuda_device *device, struct ndt_error *err)
{
    enum ndt_status status = ndt_cuda_enter(device, err);
    if (status != NDT_OK)
        return status;
    return ndt_cuda_check(device, cudaEventRecord(device->start, device->streams[NDT_CUDA_MAIN]), "event", err);
}

enum ndt_status ndt_cuda_clock_stop(struct ndt_cuda_device *device, struct ndt_error *err)
{
    enum ndt_status status = ndt_cuda_enter(device, err);
    if (status != NDT_OK)
        return status;
    return ndt_cuda_check(device, cudaEventRecord(device->stop, device->streams[NDT_CUDA_MAIN]), "event", err);
}

enum ndt_status ndt_cuda_bill_kernels(struct ndt_cuda_device *device, struct ndt_error *err)
{
    float took_ms = 0;
    enum ndt_status status = ndt_cuda_enter(device, err);
    if (status != NDT_OK)
        return status;
    status = ndt_cuda_check(device, cudaEventElapsedTime(&took_ms, device->start, device->stop), "event", err);
    device->counters.kernel_us += (double)took_ms * 1e3;
    return status;
}
