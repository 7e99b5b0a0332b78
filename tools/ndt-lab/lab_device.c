/* ndt-lab-device: what the CUDA backend does against what it does not, in kernels and copies of their own. Prints
 * lines of CSV as ndt-lab does (lab.h). */
#include <cuda_runtime_api.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"
#include "lab_device.h"
#include "ndt/clock.h"

/* Exit codes, as of every program of the house. */
enum { DONE = 0, USAGE = 2, FAILED = 3 };
enum { MOST_POINTS = 120000, ITEMS = 8, STREAMS = 2 };

/* Everything an experiment may need, made once. */
struct bench {
    struct lab lab;
    size_t points;
    float *pageable, *pinned, *back; /* 3 floats per point; `back` is pinned */
    float *scan[STREAMS], *terms[STREAMS];
    float *columns;
    struct ndt_voxel *voxels;
    double *block_sums;
    cudaStream_t streams[STREAMS];
    cudaEvent_t up[STREAMS], done[STREAMS];
};

static int good(cudaError_t code, const char *what)
{
    if (code != cudaSuccess)
        fprintf(stderr, "ndt-lab-device: %s: %s\n", what, cudaGetErrorString(code));
    return code == cudaSuccess;
}

static uint32_t blocks_of(size_t points)
{
    return (uint32_t)((points + NDT_GPU_BLOCK - 1) / NDT_GPU_BLOCK);
}

static int launch(const struct bench *b, const void *kernel, struct ndt_gpu_job *job, cudaStream_t stream)
{
    const cudaLaunchConfig_t config = {
        .gridDim = {blocks_of(b->points), 1, 1}, .blockDim = {NDT_GPU_BLOCK, 1, 1}, .stream = stream};
    void *arguments[] = {job};
    return good(cudaLaunchKernelExC(&config, kernel, arguments), "launch");
}

static struct ndt_gpu_job job_of(const struct bench *b, int buffer)
{
    struct ndt_gpu_job job = {.x_m = b->scan[buffer],
                              .count = (uint32_t)b->points,
                              .blocks = blocks_of(b->points),
                              .block_sums = b->block_sums,
                              .terms = b->terms[buffer],
                              .jacobian = b->columns,
                              .stride = LAB_VOXELS};
    job.level.voxels = b->voxels;
    return job;
}

static size_t scan_bytes(const struct bench *b)
{
    return 3 * b->points * sizeof(float);
}

static double measure_staging(void *context, int variant, int repetition)
{
    struct bench *b = context;
    (void)repetition;
    const double start_us = ndt_clock_us();
    if (variant == 1)
        memcpy(b->pinned, b->pageable, scan_bytes(b));
    if (!good(cudaMemcpyAsync(b->scan[0], variant ? b->pinned : b->pageable, scan_bytes(b), cudaMemcpyHostToDevice,
                              b->streams[0]),
              "copy") ||
        !good(cudaStreamSynchronize(b->streams[0]), "wait"))
        return -1;
    return ndt_clock_us() - start_us;
}

/* Copies on a stream of their own; a buffer is filled again once the kernel that read it is done. */
static int item_apart(struct bench *b, int i)
{
    const int buffer = i % STREAMS;
    struct ndt_gpu_job job = job_of(b, buffer);
    return (i < STREAMS || good(cudaStreamWaitEvent(b->streams[1], b->done[buffer], 0), "wait for kernel")) &&
           good(cudaMemcpyAsync(b->scan[buffer], b->pinned, scan_bytes(b), cudaMemcpyHostToDevice, b->streams[1]),
                "copy") &&
           good(cudaEventRecord(b->up[buffer], b->streams[1]), "mark") &&
           good(cudaStreamWaitEvent(b->streams[0], b->up[buffer], 0), "wait for copy") &&
           launch(b, lab_kernel_busy(), &job, b->streams[0]) &&
           good(cudaMemcpyAsync(b->back, b->terms[buffer], 248, cudaMemcpyDeviceToHost, b->streams[0]), "copy") &&
           good(cudaEventRecord(b->done[buffer], b->streams[0]), "mark");
}

static int item_in_line(struct bench *b)
{
    struct ndt_gpu_job job = job_of(b, 0);
    return good(cudaMemcpyAsync(b->scan[0], b->pinned, scan_bytes(b), cudaMemcpyHostToDevice, b->streams[0]),
                "copy") &&
           launch(b, lab_kernel_busy(), &job, b->streams[0]) &&
           good(cudaMemcpyAsync(b->back, b->terms[0], 248, cudaMemcpyDeviceToHost, b->streams[0]), "copy");
}

static double measure_streams(void *context, int variant, int repetition)
{
    struct bench *b = context;
    (void)repetition;
    const double start_us = ndt_clock_us();
    for (int i = 0; i < ITEMS; i++)
        if (!(variant ? item_apart(b, i) : item_in_line(b)))
            return -1;
    if (!good(cudaStreamSynchronize(b->streams[0]), "wait") || !good(cudaStreamSynchronize(b->streams[1]), "wait"))
        return -1;
    return (ndt_clock_us() - start_us) / ITEMS;
}

/* A kernel by the device's clock. */
static double kernel_us(struct bench *b, const void *kernel)
{
    struct ndt_gpu_job job = job_of(b, 0);
    float took_ms;
    if (!good(cudaEventRecord(b->up[0], b->streams[0]), "mark") || !launch(b, kernel, &job, b->streams[0]) ||
        !good(cudaEventRecord(b->up[1], b->streams[0]), "mark") ||
        !good(cudaStreamSynchronize(b->streams[0]), "wait") ||
        !good(cudaEventElapsedTime(&took_ms, b->up[0], b->up[1]), "time"))
        return -1;
    return 1e3 * (double)took_ms;
}

static double measure_reduction(void *context, int variant, int repetition)
{
    (void)repetition;
    return kernel_us(context, variant ? lab_kernel_shuffled() : lab_kernel_shared());
}

static double measure_layout(void *context, int variant, int repetition)
{
    (void)repetition;
    return kernel_us(context, variant ? lab_kernel_rows() : lab_kernel_columns());
}

/* Both kernels find the same: `bytes` of `from` after each. */
static int agree(struct bench *b, double (*measure)(void *, int, int), const void *from, size_t bytes, int doubles)
{
    static float found[2][4096];
    bytes = bytes < sizeof(found[0]) ? bytes : sizeof(found[0]);
    for (int v = 0; v < 2; v++) {
        if (measure(b, v, 0) < 0 ||
            !good(cudaMemcpyAsync(b->back, from, bytes, cudaMemcpyDeviceToHost, b->streams[0]), "copy") ||
            !good(cudaStreamSynchronize(b->streams[0]), "wait"))
            return 0;
        memcpy(found[v], b->back, bytes);
    }
    for (size_t i = 0; i < bytes / (doubles ? 8 : 4); i++) {
        double x[2];
        for (int v = 0; v < 2; v++)
            x[v] = doubles ? ((const double *)found[v])[i] : (double)found[v][i];
        if (!(fabs(x[0] - x[1]) <= 1e-4 * fabs(x[0]) + 1e-3)) {
            fprintf(stderr, "ndt-lab-device: the two kernels do not agree at %zu: %g and %g\n", i, x[0], x[1]);
            return 0;
        }
    }
    return 1;
}

static const struct {
    const char *name, *base, *variant, *unit;
    double (*measure)(void *context, int variant, int repetition);
} experiments[] = {
    {"staging", "pageable", "pinned (copied there first)", "us/upload", measure_staging},
    {"streams", "one stream", "copies on a stream of their own", "us/scan", measure_streams},
    {"reduction", "shared memory", "warp shuffles", "us/kernel", measure_reduction},
    {"layout", "structure of arrays", "array of structures", "us/kernel", measure_layout},
};
enum { EXPERIMENTS = sizeof(experiments) / sizeof(experiments[0]) };

static int allocate(struct bench *b)
{
    const size_t points = 3 * MOST_POINTS * sizeof(float),
                 rows = blocks_of(MOST_POINTS) * NDT_GPU_ROW * sizeof(double);
    int fine = good(cudaSetDevice(0), "device") && good(cudaMallocHost((void **)&b->pinned, points), "memory") &&
               good(cudaMallocHost((void **)&b->back, points), "memory") &&
               good(cudaMalloc((void **)&b->voxels, LAB_VOXELS * sizeof(*b->voxels)), "memory") &&
               good(cudaMalloc((void **)&b->columns, 12 * LAB_VOXELS * sizeof(float)), "memory") &&
               good(cudaMalloc((void **)&b->block_sums, rows), "memory");
    for (int i = 0; fine && i < STREAMS; i++)
        fine = good(cudaMalloc((void **)&b->scan[i], points), "memory") &&
               good(cudaMalloc((void **)&b->terms[i], points), "memory") &&
               good(cudaStreamCreateWithFlags(&b->streams[i], cudaStreamNonBlocking), "stream") &&
               good(cudaEventCreate(&b->up[i]), "event") && good(cudaEventCreate(&b->done[i]), "event");
    b->pageable = fine ? malloc(points) : NULL;
    return fine && b->pageable;
}

static int fill(struct bench *b)
{
    static struct ndt_voxel voxels[LAB_VOXELS];
    static float columns[12 * LAB_VOXELS];
    uint64_t state = b->lab.seed;
    for (size_t i = 0; i < 3 * (size_t)MOST_POINTS; i++)
        b->pinned[i] = b->pageable[i] = (float)lab_uniform(&state);
    for (size_t v = 0; v < LAB_VOXELS; v++)
        for (size_t w = 0; w < 9; w++) {
            const float value = (float)lab_uniform(&state);
            memcpy((char *)&voxels[v] + 4 * w, &value, sizeof(value));
            columns[w * LAB_VOXELS + v] = value;
        }
    return good(cudaMemcpyAsync(b->voxels, voxels, sizeof(voxels), cudaMemcpyHostToDevice, b->streams[0]),
                "copy") &&
           good(cudaMemcpyAsync(b->columns, columns, sizeof(columns), cudaMemcpyHostToDevice, b->streams[0]),
                "copy") &&
           good(cudaMemcpyAsync(b->scan[0], b->pinned, 3 * MOST_POINTS * sizeof(float), cudaMemcpyHostToDevice,
                                b->streams[0]),
                "copy") &&
           good(cudaStreamSynchronize(b->streams[0]), "wait");
}

static void release(struct bench *b)
{
    (void)cudaFreeHost(b->pinned);
    (void)cudaFreeHost(b->back);
    (void)cudaFree(b->voxels);
    (void)cudaFree(b->columns);
    (void)cudaFree(b->block_sums);
    for (int i = 0; i < STREAMS; i++) {
        (void)cudaFree(b->scan[i]);
        (void)cudaFree(b->terms[i]);
        if (b->streams[i])
            (void)cudaStreamDestroy(b->streams[i]);
        if (b->up[i])
            (void)cudaEventDestroy(b->up[i]);
        if (b->done[i])
            (void)cudaEventDestroy(b->done[i]);
    }
    free(b->pageable);
}

static int run(struct bench *b, int e)
{
    static const size_t sizes[] = {756, 5000, 20000, 120000};
    int fine = allocate(b) && fill(b);
    for (int s = 0; fine && s < (b->lab.quick ? 1 : 4); s++) {
        char what[64];
        b->points = b->lab.quick ? 300 : sizes[s];
        snprintf(what, sizeof(what), "%zu points", b->points);
        if (experiments[e].measure == measure_reduction)
            fine =
                agree(b, measure_reduction, b->block_sums, blocks_of(b->points) * NDT_GPU_ROW * sizeof(double), 1);
        else if (experiments[e].measure == measure_layout)
            fine = agree(b, measure_layout, b->terms[0], b->points * sizeof(float), 0);
        if (fine)
            lab_compare(&b->lab, &(struct lab_comparison){.experiment = experiments[e].name,
                                                          .what = what,
                                                          .unit = experiments[e].unit,
                                                          .names = {experiments[e].base, experiments[e].variant},
                                                          .count = 2,
                                                          .measure = experiments[e].measure,
                                                          .context = b});
    }
    release(b);
    return fine;
}

int main(int argc, char **argv)
{
    static const struct option flags[] = {
        {"seed", 1, NULL, 's'}, {"repetitions", 1, NULL, 'r'}, {"quick", 0, NULL, 'q'}, {NULL, 0, NULL, 0}};
    static struct bench b = {.lab = {.seed = 1, .repetitions = 21}};
    for (int code; (code = getopt_long(argc, argv, "", flags, NULL)) != -1;) {
        if (code == 's')
            b.lab.seed = strtoull(optarg, NULL, 10);
        else if (code == 'r')
            b.lab.repetitions = atoi(optarg);
        else if (code == 'q')
            b.lab.quick = 1;
        else
            return USAGE;
    }
    if (b.lab.repetitions < 1 || b.lab.repetitions > LAB_MAX_REPETITIONS) {
        fprintf(stderr, "ndt-lab-device: --repetitions: a number from 1 to %d is wanted\n", LAB_MAX_REPETITIONS);
        return USAGE;
    }
    for (int e = 0; optind == argc - 1 && e < EXPERIMENTS; e++)
        if (strcmp(experiments[e].name, argv[optind]) == 0)
            return run(&b, e) ? DONE : FAILED;
    fprintf(stderr, "ndt-lab-device: one of staging, streams, reduction and layout is wanted\n");
    return USAGE;
}
