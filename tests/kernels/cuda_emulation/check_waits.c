/** @file
 * @brief Results and waits of the host on the emulated device: memory that kernels write, devices that cannot, and
 * the modes to wait of cuda.wait. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "check_harness.h"
#include "cuda_device.h"
#include "cuda_runtime_api.h"
#include "device_kernels.h"
#include "emulated_device.h"

static void expect(int good, const char *what)
{
    check_expect(good, what, "");
}

/* The kernel writes its numbers to job.sums, which lies in memory of the host. */
static void check_mapped(void)
{
    enum { THREADS = 64 };
    struct ndt_cuda_device device;
    struct ndt_error err = {""};
    void *memory = NULL, *pinned = NULL;
    emulated_set_seed(3);
    expect(ndt_cuda_device_open(&device, 0, &err) == NDT_OK &&
               ndt_cuda_allocate(&device, &memory, THREADS * sizeof(float), "numbers", &err) == NDT_OK &&
               ndt_cuda_allocate_pinned(&device, &pinned, 2 * THREADS * sizeof(double), "numbers", &err) == NDT_OK,
           "a device with memory");
    if (!pinned)
        return;
    double *const results = pinned;
    float *const numbers = (float *)(void *)(results + THREADS);
    const struct ndt_gpu_job job = {.count = THREADS, .x_m = memory, .sums = ndt_cuda_mapped(&device, results)};
    expect(job.sums != NULL, "pinned memory has an address on the device");
    for (int i = 0; i < THREADS; i++)
        numbers[i] = (float)i;
    memset(results, 0xff, THREADS * sizeof(double));
    const struct ndt_backend_counters before = device.counters;
    expect(ndt_cuda_upload(&device, memory, numbers, THREADS * sizeof(float), &err) == NDT_OK &&
               ndt_cuda_launch_team(&device, kernel_take(), 1, THREADS, 1, &job, &err) == NDT_OK,
           "a kernel that writes memory of the host is queued");
    expect(isnan(results[0]), "what a kernel writes is not there before the host has waited");
    expect(ndt_cuda_wait(&device, &err) == NDT_OK && results[0] == 0 && results[THREADS - 1] == THREADS - 1,
           "what a kernel writes is there after the wait");
    expect(device.counters.d2h_copies == before.d2h_copies, "no copy");
    expect(ndt_cuda_mapped(&device, memory) == NULL, "memory of the device has no such address");
    setenv("NDT_EMULATION_MAPPED", "0", 1);
    expect(ndt_cuda_mapped(&device, results) == NULL, "a device that cannot write memory of the host");
    unsetenv("NDT_EMULATION_MAPPED");
    expect(ndt_cuda_wait(&device, &err) == NDT_OK, "the device is not lost by that");
    ndt_cuda_release(&device, memory);
    ndt_cuda_release_pinned(&device, pinned);
    ndt_cuda_device_close(&device);
}

static unsigned flags_now(void)
{
    unsigned flags = ~0u;
    return cudaGetDeviceFlags(&flags) == cudaSuccess ? flags : ~0u;
}

/* The context is that of the process: forgotten by a reset only. */
static void check_modes(void)
{
    static const struct {
        enum ndt_wait wait;
        unsigned flags;
    } modes[] = {{NDT_WAIT_SPIN, cudaDeviceScheduleSpin},
                 {NDT_WAIT_YIELD, cudaDeviceScheduleYield},
                 {NDT_WAIT_BLOCK, cudaDeviceScheduleBlockingSync}};
    struct ndt_error err = {""};
    int taken = 0;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        (void)cudaDeviceReset();
        expect(ndt_cuda_choose_wait(0, modes[i].wait, &taken, &err) == NDT_OK && taken &&
                   flags_now() == modes[i].flags,
               "a way to wait becomes that of the context");
    }
    expect(ndt_cuda_choose_wait(0, NDT_WAIT_AUTO, &taken, &err) == NDT_OK && taken &&
               flags_now() == cudaDeviceScheduleBlockingSync,
           "auto changes nothing");
    expect(ndt_cuda_choose_wait(0, NDT_WAIT_SPIN, &taken, &err) == NDT_OK && taken &&
               flags_now() == cudaDeviceScheduleSpin,
           "a context in use takes another way");
    emulated_keeps_flags = 1;
    expect(ndt_cuda_choose_wait(0, NDT_WAIT_BLOCK, &taken, &err) == NDT_OK && !taken &&
               flags_now() == cudaDeviceScheduleSpin,
           "a context that keeps its way is no failure");
    emulated_keeps_flags = 0;
    expect(ndt_cuda_choose_wait(7, NDT_WAIT_BLOCK, &taken, &err) == NDT_ERR_DEVICE && !taken,
           "a device that does not exist is one");
    (void)cudaDeviceReset();
}

/* The backend chooses before it makes the context, also after its device was lost and reset. */
static void check_backend(void)
{
    struct ndt_backend_config config;
    struct ndt_backend *backend = NULL;
    struct ndt_error err = {""};
    ndt_backend_config_default(&config);
    expect(config.wait == NDT_WAIT_AUTO && !config.kernel_times, "the defaults: auto, no clock");
    config.max_points = 256;
    config.wait = NDT_WAIT_BLOCK;
    (void)cudaDeviceReset();
    emulated_keeps_flags = 1; /* too late is never */
    for (int i = 0; i < 2; i++) {
        expect(ndt_backend_open(&backend, "cuda-emulated", &config, &err) == NDT_OK &&
                   flags_now() == cudaDeviceScheduleBlockingSync,
               "the backend waits as it was told");
        backend->ops->close(backend);
        (void)cudaDeviceReset();
    }
    expect(flags_now() == 0, "a reset forgets it");
    emulated_keeps_flags = 0;
}

int main(int argc, char **argv)
{
    check_start(argc, argv, NULL);
    if (check_begin("mapped"))
        check_mapped();
    if (check_begin("modes"))
        check_modes();
    if (check_begin("backend"))
        check_backend();
    return check_finish(1);
}
