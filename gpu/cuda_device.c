#include "cuda_device.h"

#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

enum { OLDEST_MAJOR = 7, OLDEST_MINOR = 5 };

static enum ndt_status lost(struct ndt_cuda_device *device, struct ndt_error *err)
{
    if (err)
        *err = device->why;
    return NDT_ERR_DEVICE;
}

/* NDT_OK, or the device is lost from now on. */
static enum ndt_status check(struct ndt_cuda_device *device, cudaError_t code, const char *what,
                             struct ndt_error *err)
{
    if (code == cudaSuccess)
        return NDT_OK;
    device->is_lost = 1;
    (void)ndt_fail(&device->why, NDT_ERR_DEVICE, "CUDA device %d: %s: %s", device->index, what,
                   cudaGetErrorString(code));
    return lost(device, err);
}

/* Which device a thread talks to is a property of the thread, and the backend may be used by another one than
 * opened it. */
static enum ndt_status enter(struct ndt_cuda_device *device, struct ndt_error *err)
{
    return device->is_lost ? lost(device, err) : check(device, cudaSetDevice(device->index), "cannot be used", err);
}

static enum ndt_status no_driver(struct ndt_error *err, cudaError_t code)
{
    int driver = 0, runtime = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "no NVIDIA driver");
    (void)cudaRuntimeGetVersion(&runtime);
    if (code == cudaErrorInsufficientDriver)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                        "the NVIDIA driver is too old: it knows CUDA %d.%d, this build needs %d.%d", driver / 1000,
                        driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (code == cudaErrorNoDevice)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "an NVIDIA driver, but no CUDA device");
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s", cudaGetErrorString(code));
}

enum ndt_status ndt_cuda_facts(struct ndt_cuda_facts *out, int index, struct ndt_error *err)
{
    struct cudaDeviceProp properties;
    int count = 0;
    memset(out, 0, sizeof(*out));
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaSuccess && count == 0)
        code = cudaErrorNoDevice;
    if (code != cudaSuccess)
        return no_driver(err, code);
    if (index >= count)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "no CUDA device %d; there %s %d", index,
                        count == 1 ? "is" : "are", count);
    code = cudaGetDeviceProperties(&properties, index);
    if (code != cudaSuccess)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "CUDA device %d: %s", index, cudaGetErrorString(code));
    (void)cudaDriverGetVersion(&out->driver);
    (void)cudaRuntimeGetVersion(&out->runtime);
    snprintf(out->name, sizeof(out->name), "%.*s", (int)sizeof(out->name) - 1, properties.name);
    out->major = properties.major;
    out->minor = properties.minor;
    out->processors = properties.multiProcessorCount;
    out->bytes = properties.totalGlobalMem;
    if (out->major < OLDEST_MAJOR || (out->major == OLDEST_MAJOR && out->minor < OLDEST_MINOR))
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s is too old: compute capability %d.%d, %d.%d is needed",
                        out->name, out->major, out->minor, OLDEST_MAJOR, OLDEST_MINOR);
    return NDT_OK;
}

enum ndt_status ndt_cuda_device_open(struct ndt_cuda_device *device, int index, struct ndt_error *err)
{
    *device = (struct ndt_cuda_device){.index = index, .is_open = 1};
    enum ndt_status status = check(device, cudaSetDevice(index), "cannot be used", err);
    if (status == NDT_OK)
        status = check(device, cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking), "stream", err);
    if (status == NDT_OK)
        status = check(device, cudaEventCreate(&device->start), "event", err);
    if (status == NDT_OK)
        status = check(device, cudaEventCreate(&device->stop), "event", err);
    if (status != NDT_OK)
        ndt_cuda_device_close(device);
    return status;
}

/* Results of the calls do not matter: a lost device is reset, which is the only way to use it again. */
void ndt_cuda_device_close(struct ndt_cuda_device *device)
{
    if (!device->is_open)
        return;
    (void)cudaSetDevice(device->index);
    if (device->stop)
        (void)cudaEventDestroy(device->stop);
    if (device->start)
        (void)cudaEventDestroy(device->start);
    if (device->stream)
        (void)cudaStreamDestroy(device->stream);
    if (device->is_lost) {
        (void)cudaDeviceReset();
        (void)cudaGetLastError();
    }
    memset(device, 0, sizeof(*device));
}

enum ndt_status ndt_cuda_free_bytes(struct ndt_cuda_device *device, size_t *out, struct ndt_error *err)
{
    size_t total;
    *out = 0;
    enum ndt_status status = enter(device, err);
    return status == NDT_OK ? check(device, cudaMemGetInfo(out, &total), "free memory", err) : status;
}

static enum ndt_status allocated(struct ndt_cuda_device *device, cudaError_t code, size_t bytes, const char *what,
                                 struct ndt_error *err)
{
    if (code == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError(); /* would be reported again by the next launch */
        return ndt_fail(err, NDT_ERR_MEMORY, "CUDA device %d: no %zu bytes for %s", device->index, bytes, what);
    }
    device->counters.allocations += code == cudaSuccess;
    return check(device, code, what, err);
}

enum ndt_status ndt_cuda_allocate(struct ndt_cuda_device *device, void **out, size_t bytes, const char *what,
                                  struct ndt_error *err)
{
    *out = NULL;
    enum ndt_status status = enter(device, err);
    return status == NDT_OK ? allocated(device, cudaMalloc(out, bytes ? bytes : 1), bytes, what, err) : status;
}

enum ndt_status ndt_cuda_allocate_pinned(struct ndt_cuda_device *device, void **out, size_t bytes, const char *what,
                                         struct ndt_error *err)
{
    *out = NULL;
    enum ndt_status status = enter(device, err);
    return status == NDT_OK ? allocated(device, cudaMallocHost(out, bytes ? bytes : 1), bytes, what, err) : status;
}

void ndt_cuda_release(struct ndt_cuda_device *device, void *memory)
{
    if (memory && device->is_open)
        (void)cudaFree(memory);
}

void ndt_cuda_release_pinned(struct ndt_cuda_device *device, void *memory)
{
    if (memory && device->is_open)
        (void)cudaFreeHost(memory);
}

enum ndt_status ndt_cuda_upload(struct ndt_cuda_device *device, void *to, const void *from, size_t bytes,
                                struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    device->counters.h2d_bytes += bytes;
    device->counters.h2d_copies++;
    return check(device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, device->stream), "upload", err);
}

enum ndt_status ndt_cuda_download(struct ndt_cuda_device *device, void *to, const void *from, size_t bytes,
                                  struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    device->counters.d2h_bytes += bytes;
    device->counters.d2h_copies++;
    return check(device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device->stream), "download", err);
}

enum ndt_status ndt_cuda_clear(struct ndt_cuda_device *device, void *memory, size_t bytes, struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    return check(device, cudaMemsetAsync(memory, 0, bytes, device->stream), "clearing memory", err);
}

enum ndt_status ndt_cuda_launch(struct ndt_cuda_device *device, const void *kernel, unsigned blocks,
                                const struct ndt_gpu_job *job, struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    const dim3 grid = {blocks, 1, 1}, block = {NDT_GPU_BLOCK, 1, 1};
    struct ndt_gpu_job copy = *job;
    void *arguments[] = {&copy};
    device->counters.launches++;
    return check(device, cudaLaunchKernel(kernel, grid, block, arguments, 0, device->stream), "launch", err);
}

enum ndt_status ndt_cuda_clock_start(struct ndt_cuda_device *device, struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    return check(device, cudaEventRecord(device->start, device->stream), "event", err);
}

enum ndt_status ndt_cuda_clock_stop(struct ndt_cuda_device *device, struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    return check(device, cudaEventRecord(device->stop, device->stream), "event", err);
}

enum ndt_status ndt_cuda_wait(struct ndt_cuda_device *device, struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    device->counters.synchronisations++;
    return check(device, cudaStreamSynchronize(device->stream), "running", err);
}

enum ndt_status ndt_cuda_bill_kernels(struct ndt_cuda_device *device, struct ndt_error *err)
{
    float took_ms = 0;
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    status = check(device, cudaEventElapsedTime(&took_ms, device->start, device->stop), "event", err);
    device->counters.kernel_us += (double)took_ms * 1e3;
    return status;
}
