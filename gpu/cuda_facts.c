/** @file
 * @brief Properties and abilities of a device, before anything is opened on it. */
#include "cuda_device.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#include "cuda_context.h"

enum { OLDEST_MAJOR = 7, OLDEST_MINOR = 5, PORTABLE_CLUSTER = 8, FIRST_WITH_LOOPS = 12040 };

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

/* Largest cluster: eight blocks wherever clusters exist, except on partitions of a device with fewer processors. */
static int largest_cluster(int index, const struct ndt_cuda_facts *facts)
{
    int has_clusters = 0, blocks = PORTABLE_CLUSTER;
    if (cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, index) != cudaSuccess || !has_clusters ||
        facts->major < 9)
        return 1;
    while (blocks > 1 && blocks > facts->processors)
        blocks /= 2;
    return blocks;
}

static void describe(struct ndt_cuda_facts *out, const struct cudaDeviceProp *properties)
{
    (void)cudaDriverGetVersion(&out->driver);
    (void)cudaRuntimeGetVersion(&out->runtime);
    snprintf(out->name, sizeof(out->name), "%.*s", (int)sizeof(out->name) - 1, properties->name);
    out->major = properties->major;
    out->minor = properties->minor;
    out->processors = properties->multiProcessorCount;
    out->threads = properties->multiProcessorCount * properties->maxThreadsPerMultiProcessor;
    out->bytes = properties->totalGlobalMem;
    out->has_loops = out->driver >= FIRST_WITH_LOOPS && out->runtime >= FIRST_WITH_LOOPS;
}

static enum ndt_status find_facts(struct ndt_cuda_facts *out, int index, struct ndt_error *err)
{
    struct cudaDeviceProp properties;
    int count = 0;
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
    describe(out, &properties);
    out->largest_cluster = largest_cluster(index, out);
    if (out->major < OLDEST_MAJOR || (out->major == OLDEST_MAJOR && out->minor < OLDEST_MINOR))
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s is too old: compute capability %d.%d, %d.%d is needed",
                        out->name, out->major, out->minor, OLDEST_MAJOR, OLDEST_MINOR);
    return NDT_OK;
}

enum ndt_status ndt_cuda_facts(struct ndt_cuda_facts *out, int index, struct ndt_error *err)
{
    unsigned epoch;
    memset(out, 0, sizeof(*out));
    enum ndt_status status = ndt_cuda_context_open(index, &epoch, err); /* these calls return sticky errors, too */
    if (status != NDT_OK)
        return status;
    status = find_facts(out, index, err);
    ndt_cuda_context_leave(index);
    return status;
}
