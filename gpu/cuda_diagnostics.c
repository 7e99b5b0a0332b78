#include "cuda_diagnostics.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_local.h"
#include "cuda_plan.h"
#include "cuda_resident.h"
#include "cuda_shape.h"
#include "kernels.h"
#include "ndt/clock.h"
#include "ndt/quantile.h"

/* ---- intermediates ---- */

enum { COLUMNS = 3 + 3 + NDT_GPU_JACOBIAN + NDT_GPU_POINT_HESSIAN + NDT_GPU_SUMS };

static void write_names(FILE *file)
{
    static const char *const axes[] = {"x", "y", "z"}, *const columns[] = {"tx", "ty", "tz", "a", "b", "c"};
    static const char *const pairs[] = {"aa", "ab", "ac", "bb", "bc", "cc"};
    fprintf(file, "point,x_m,y_m,z_m,moved_x_m,moved_y_m,moved_z_m");
    for (int i = 0; i < NDT_GPU_JACOBIAN; i++)
        fprintf(file, ",J_%s_%s", axes[i / 6], columns[i % 6]);
    for (int i = 0; i < NDT_GPU_POINT_HESSIAN; i++)
        fprintf(file, ",H_%s_%s", axes[i % 3], pairs[i / 3]);
    fprintf(file, ",score");
    for (int i = 0; i < 6; i++)
        fprintf(file, ",g_%s", columns[i]);
    for (int i = 0; i < 6; i++)
        for (int k = i; k < 6; k++)
            fprintf(file, ",h_%s_%s", columns[i], columns[k]);
    fprintf(file, ",nearest,matched,pairs\n");
}

/* Column k of a buffer, or of the scan, on the device. */
static const float *device_column(const struct ndt_gpu_job *job, int k)
{
    const float *const scan[] = {job->x_m, job->y_m, job->z_m};
    if (k < 3)
        return scan[k];
    return job->moved_m + (size_t)(k - 3) * job->stride; /* the buffers are contiguous */
}

static enum ndt_status fetch(struct ndt_cuda_device *device, const struct ndt_gpu_job *job, float *columns,
                             struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (int k = 0; status == NDT_OK && k < COLUMNS; k++)
        status = ndt_cuda_download(device, columns + (size_t)k * job->count, device_column(job, k),
                                   job->count * sizeof(float), err);
    return status == NDT_OK ? ndt_cuda_wait(device, err) : status;
}

enum ndt_status ndt_cuda_dump(struct ndt_cuda_device *device, const struct ndt_gpu_job *job, FILE *file,
                              struct ndt_error *err)
{
    float *columns = malloc((size_t)COLUMNS * job->count * sizeof(float) + 1);
    if (!columns)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the intermediates of %u points", (unsigned)job->count);
    enum ndt_status status = fetch(device, job, columns, err);
    if (status == NDT_OK)
        write_names(file);
    for (size_t i = 0; status == NDT_OK && i < job->count; i++) {
        fprintf(file, "%zu", i);
        for (size_t k = 0; k < COLUMNS; k++)
            fprintf(file, ",%.9g", (double)columns[k * job->count + i]);
        fputc('\n', file);
    }
    free(columns);
    return status;
}

/* ---- overheads ---- */

enum { COPIES, LAUNCH, QUEUE, SYNCHRONISE, STAGE, UPLOAD, PAGEABLE, KINDS, MOST_ROUNDS = 1000 };

/* Uploads the scan that is there already, so that it stays. `pageable` has its bytes. */
static enum ndt_status measure_upload(struct ndt_cuda_device *device, const struct ndt_cuda_copies *copies,
                                      const void *pageable, double took_us[KINDS], struct ndt_error *err)
{
    took_us[STAGE] = took_us[UPLOAD] = took_us[PAGEABLE] = 0;
    if (copies->scan_bytes == 0)
        return NDT_OK;
    double start_us = ndt_clock_us();
    memcpy(copies->staged, pageable, copies->scan_bytes);
    took_us[STAGE] = ndt_clock_us() - start_us;
    start_us = ndt_clock_us();
    enum ndt_status status = ndt_cuda_upload(device, copies->scan, copies->staged, copies->scan_bytes, err);
    if (status == NDT_OK)
        status = ndt_cuda_wait(device, err);
    took_us[UPLOAD] = ndt_clock_us() - start_us;
    start_us = ndt_clock_us();
    if (status == NDT_OK)
        status = ndt_cuda_upload(device, copies->scan, pageable, copies->scan_bytes, err);
    if (status == NDT_OK)
        status = ndt_cuda_wait(device, err);
    took_us[PAGEABLE] = ndt_clock_us() - start_us;
    return status;
}

/* Makes one round of all measurements; each starts and ends with an idle device. */
static enum ndt_status measure(struct ndt_cuda_device *device, const struct ndt_gpu_job *job,
                               const struct ndt_cuda_copies *copies, const void *pageable, double took_us[KINDS],
                               struct ndt_error *err)
{
    double start_us = ndt_clock_us();
    enum ndt_status status = ndt_cuda_upload(device, copies->device, copies->up, sizeof(job->angles), err);
    if (status == NDT_OK)
        status = ndt_cuda_download(device, copies->down, copies->device, NDT_GPU_SUMS * sizeof(double), err);
    if (status == NDT_OK)
        status = ndt_cuda_wait(device, err);
    took_us[COPIES] = ndt_clock_us() - start_us;
    start_us = ndt_clock_us();
    if (status == NDT_OK)
        status = ndt_cuda_launch(device, ndt_kernel_empty(), 1, job, err);
    took_us[QUEUE] = ndt_clock_us() - start_us;
    if (status == NDT_OK)
        status = ndt_cuda_wait(device, err);
    took_us[LAUNCH] = ndt_clock_us() - start_us;
    start_us = ndt_clock_us();
    if (status == NDT_OK)
        status = ndt_cuda_wait(device, err);
    took_us[SYNCHRONISE] = ndt_clock_us() - start_us;
    return status == NDT_OK ? measure_upload(device, copies, pageable, took_us, err) : status;
}

enum ndt_status ndt_cuda_overheads(struct ndt_cuda_device *device, const struct ndt_gpu_job *job,
                                   const struct ndt_cuda_copies *copies, int rounds, struct ndt_overheads *out,
                                   struct ndt_error *err)
{
    if (rounds < 1 || rounds > MOST_ROUNDS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%d rounds; 1 to %d are possible", rounds, MOST_ROUNDS);
    const size_t count = (size_t)rounds;
    double *all_us = malloc(KINDS * count * sizeof(double) + copies->scan_bytes), one_us[KINDS];
    if (!all_us)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %d rounds", rounds);
    void *pageable = all_us + KINDS * count;
    if (copies->scan_bytes > 0)
        memcpy(pageable, copies->staged, copies->scan_bytes);
    enum ndt_status status =
        measure(device, job, copies, pageable, one_us, err); /* the first round is slow and not counted */
    for (size_t i = 0; status == NDT_OK && i < count; i++) {
        status = measure(device, job, copies, pageable, one_us, err);
        for (size_t k = 0; k < KINDS; k++)
            all_us[k * count + i] = one_us[k];
    }
    for (size_t k = 0; status == NDT_OK && k < KINDS; k++)
        one_us[k] = ndt_quantile(all_us + k * count, count, 0.5);
    if (status == NDT_OK)
        *out = (struct ndt_overheads){.copies_us = one_us[COPIES],
                                      .launch_us = one_us[LAUNCH],
                                      .queue_us = one_us[QUEUE],
                                      .synchronise_us = one_us[SYNCHRONISE],
                                      .stage_us = one_us[STAGE],
                                      .upload_us = one_us[UPLOAD],
                                      .pageable_us = one_us[PAGEABLE]};
    free(all_us);
    return status;
}

/* ---- plan ---- */

static const double MIB = 1048576.0;

/* Describes the shapes that `resident` selects on this device for common sizes. */
static size_t print_shapes(const struct ndt_cuda_facts *facts, char *text, size_t size)
{
    static const struct {
        size_t items, points;
    } sizes[] = {{1, 500}, {1, 1500}, {1, 5000}, {1, 20000}, {1, 100000}, {3, 1500}, {200, 1500}};
    size_t used = (size_t)snprintf(text, size, "resident selects, up to %d alignments per launch:", NDT_CUDA_ITEMS);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && used < size; i++)
        used += (size_t)snprintf(
            text + used, size - used, "%s %zu x %zu points %s", i ? "," : "", sizes[i].items, sizes[i].points,
            ndt_cuda_shape_name(ndt_cuda_choose_shape(facts, (unsigned)facts->largest_cluster, sizes[i].items,
                                                      ndt_cuda_blocks(sizes[i].points))));
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, "\n");
    return used;
}

/* Writes the stacks of the kernels on this device, for each pipeline: only a context knows them. */
static size_t print_stacks(const struct ndt_cuda_facts *facts, const struct ndt_backend_config *config, char *text,
                           size_t size)
{
    struct ndt_cuda_device device;
    struct ndt_error why = {""};
    size_t used = (size_t)snprintf(text, size, "the driver reserves for the stacks of the kernels:");
    enum ndt_status status = ndt_cuda_device_open(&device, config->device, &why);
    for (const struct ndt_cuda_pipeline *pipeline = ndt_cuda_pipelines;
         status == NDT_OK && pipeline->name && used < size; pipeline++) {
        size_t bytes = 0;
        if (pipeline->shape > NDT_CUDA_AUTOMATIC)
            continue;
        status = ndt_cuda_local_bytes(&bytes, &device, facts, pipeline, config->preprocess == 1, &why);
        if (status == NDT_OK)
            used +=
                (size_t)snprintf(text + used, size - used, "%s %.1f MiB %s",
                                 pipeline == ndt_cuda_pipelines ? "" : ",", (double)bytes / MIB, pipeline->name);
    }
    ndt_cuda_device_close(&device);
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, "%s%s\n",
                                 status == NDT_OK ? "" : " not known: ", status == NDT_OK ? "" : why.text);
    return used;
}

void ndt_cuda_describe_plan(const struct ndt_backend_config *config, char *text, size_t size)
{
    struct ndt_cuda_facts facts;
    struct ndt_error why = {""};
    size_t used = 0;
    for (const struct ndt_cuda_pipeline *pipeline = ndt_cuda_pipelines; pipeline->name && used < size; pipeline++) {
        struct ndt_cuda_plan plan;
        if (pipeline->shape > NDT_CUDA_AUTOMATIC) /* as `resident` */
            continue;
        ndt_cuda_plan_make(&plan, pipeline, config->max_points, config->preprocess == 1);
        used += (size_t)snprintf(
            text + used, size - used, "%s (%s)%s: %zu points: %.1f MiB of the device, %.1f MiB pinned\n",
            pipeline->name, pipeline->about, plan.preprocess_slots > 0 ? " with preprocessing" : "",
            config->max_points, (double)plan.device_bytes / MIB, (double)plan.pinned_bytes / MIB);
    }
    const int is_here = ndt_cuda_facts(&facts, config->device, &why) == NDT_OK;
    if (used < size && is_here)
        used += (size_t)snprintf(
            text + used, size - used,
            "device %d: %s, compute %d.%d, %.0f MiB: all of it would hold %zu points fused, %zu "
            "staged, without a map\n",
            config->device, facts.name, facts.major, facts.minor, (double)facts.bytes / MIB,
            ndt_cuda_points_that_fit(ndt_cuda_pipeline_find("fused", NULL), (size_t)facts.bytes, 0),
            ndt_cuda_points_that_fit(ndt_cuda_pipeline_find("staged", NULL), (size_t)facts.bytes, 0));
    if (used < size && is_here)
        used += print_stacks(&facts, config, text + used, size - used);
    if (used < size && is_here)
        used += print_shapes(&facts, text + used, size - used);
    if (used < size)
        snprintf(
            text + used, size - used,
            "a map needs as much as on the host: %zu bytes per voxel, and its index; larger scans or maps than "
            "fit are refused\n"
            "a live map change needs room for the old and the new map, or matching waits while the new one is "
            "uploaded\n",
            sizeof(struct ndt_voxel));
}
