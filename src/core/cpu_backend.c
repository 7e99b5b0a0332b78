/* The CPU backend: float with SIMD, chunks of points over a thread pool, sums in double. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/clock.h"
#include "cpu/eval_wide.h"
#include "ndt/backend.h"
#include "ndt/linalg.h"
#include "ndt/pool.h"

struct variant {
    const char *name;
    void (*eval_chunk)(const struct ndt_wide_job *job, size_t chunk, double *sums);
    void (*inform_chunk)(const struct ndt_wide_job *job, size_t chunk, double *sums, double *informed);
    void (*score_chunk)(const struct ndt_wide_job *job, size_t chunk, struct ndt_score_sums *sums);
    void (*score_each)(const struct ndt_wide_job *job, uint32_t *units);
    int (*runs_here)(void);
};

#if defined(NDT_HAVE_avx512)
static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("bmi2");
}
#endif
#if defined(NDT_HAVE_avx2)
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
#endif
static int always(void)
{
    return 1;
}

/* One row per variant, the best first: "auto" takes the first that runs here. */
static const struct variant variants[] = {
#if defined(NDT_HAVE_avx512)
    {"avx512", ndt_eval_chunk_avx512, ndt_inform_chunk_avx512, ndt_score_chunk_avx512, ndt_score_each_avx512,
     has_avx512},
#endif
#if defined(NDT_HAVE_avx2)
    {"avx2", ndt_eval_chunk_avx2, ndt_inform_chunk_avx2, ndt_score_chunk_avx2, ndt_score_each_avx2, has_avx2},
#endif
#if defined(NDT_HAVE_neon)
    {"neon", ndt_eval_chunk_neon, ndt_inform_chunk_neon, ndt_score_chunk_neon, ndt_score_each_neon, always},
#endif
#if defined(NDT_HAVE_baseline)
    {"baseline", ndt_eval_chunk_baseline, ndt_inform_chunk_baseline, ndt_score_chunk_baseline,
     ndt_score_each_baseline, always},
#endif
};
enum { VARIANT_COUNT = sizeof(variants) / sizeof(variants[0]) };

struct cpu_backend {
    struct ndt_backend base;
    struct ndt_backend_config config;
    const struct variant *variant;
    struct ndt_pool *pool; /* NULL in a lane */
    struct ndt_map *map;
    struct ndt_cloud scan;
    int has_times;
    double *chunk_sums;     /* NDT_SUM_COUNT per chunk */
    double *chunk_informed; /* NDT_INFORM_COUNT per chunk, in the same memory */
    size_t chunk_capacity;
    struct ndt_wide_job job;
    struct ndt_backend_counters counters;
    struct cpu_backend **lanes; /* one per thread; opened by the first run_lanes */
    size_t lane_count;
    struct ndt_pool_job lane_work; /* in a lane: its evaluation, where others may help */
};

void ndt_backend_config_default(struct ndt_backend_config *config)
{
    *config = (struct ndt_backend_config){
        .threads = 0, .spin_us = 100, .pin_threads = 1, .isa = NULL, .max_points = (size_t)1 << 20};
}

void ndt_cpu_variants(char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = VARIANT_COUNT; i-- > 0;)
        if (variants[i].runs_here()) {
            const size_t used = strlen(text);
            snprintf(text + used, size - used, "%s%s", used ? "," : "", variants[i].name);
        }
}

static enum ndt_status choose_variant(const struct variant **out, const char *isa, struct ndt_error *err)
{
    if (!isa || strcmp(isa, "auto") == 0) /* the environment is used if the configuration is not set */
        isa = getenv("NDT_CPU_ISA");
    const int any = !isa || isa[0] == '\0' || strcmp(isa, "auto") == 0;
    for (size_t i = 0; i < VARIANT_COUNT; i++) {
        if (!any && strcmp(isa, variants[i].name) != 0)
            continue;
        if (variants[i].runs_here()) {
            *out = &variants[i];
            return NDT_OK;
        }
        if (!any)
            return ndt_fail(err, NDT_ERR_UNSUPPORTED, "this processor cannot run the CPU variant '%s'", isa);
    }
    char names[128];
    ndt_cpu_variants(names, sizeof(names));
    return ndt_fail(err, NDT_ERR_ARGUMENT, "CPU variant '%s' is not in this build; there are: auto,%s", isa, names);
}

static enum ndt_status cpu_probe(int device, struct ndt_error *why)
{
    (void)device;
    (void)why;
    return NDT_OK;
}

static void cpu_close(struct ndt_backend *backend)
{
    struct cpu_backend *cpu = (struct cpu_backend *)backend;
    if (!cpu)
        return;
    for (size_t i = 0; i < cpu->lane_count; i++)
        cpu_close(&cpu->lanes[i]->base);
    free(cpu->lanes);
    if (cpu->pool)
        ndt_pool_destroy(cpu->pool);
    ndt_map_release(cpu->map);
    ndt_cloud_free(&cpu->scan);
    free(cpu->chunk_sums);
    free(cpu);
}

static enum ndt_status cpu_open(struct ndt_backend **out, const struct ndt_backend_config *config,
                                struct ndt_error *err)
{
    *out = NULL;
    const int cores = ndt_pool_cores();
    struct cpu_backend *cpu = calloc(1, sizeof(*cpu));
    if (!cpu)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the CPU backend");
    cpu->base.ops = &ndt_cpu_backend;
    cpu->config = *config;
    if (cpu->config.threads == 0)
        cpu->config.threads = cores < 4 ? cores : 4;
    ndt_cloud_init(&cpu->scan);
    enum ndt_status status = choose_variant(&cpu->variant, config->isa, err);
    if (status == NDT_OK)
        status = ndt_pool_create(&cpu->pool, cpu->config.threads, config->spin_us,
                                 config->pin_threads && cpu->config.threads <= cores, err);
    if (status == NDT_OK)
        *out = &cpu->base;
    else
        cpu_close(&cpu->base);
    return status;
}

static enum ndt_status cpu_set_map(struct ndt_backend *backend, struct ndt_map *map, struct ndt_error *err)
{
    struct cpu_backend *cpu = (struct cpu_backend *)backend;
    (void)err;
    ndt_map_retain(map);
    ndt_map_release(cpu->map);
    cpu->map = map;
    for (size_t i = 0; i < cpu->lane_count; i++)
        (void)cpu_set_map(&cpu->lanes[i]->base, map, err); /* never fails */
    return NDT_OK;
}

static enum ndt_status reserve_chunks(struct cpu_backend *cpu, size_t points, struct ndt_error *err)
{
    const size_t chunks = (points + NDT_CHUNK_POINTS - 1) / NDT_CHUNK_POINTS;
    if (chunks <= cpu->chunk_capacity)
        return NDT_OK;
    double *sums = malloc(chunks * (NDT_SUM_COUNT + NDT_INFORM_COUNT) * sizeof(double));
    if (!sums)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the sums of %zu points", points);
    free(cpu->chunk_sums);
    cpu->chunk_sums = sums;
    cpu->chunk_informed = sums + chunks * NDT_SUM_COUNT;
    cpu->chunk_capacity = chunks;
    cpu->counters.allocations++;
    return NDT_OK;
}

static enum ndt_status reserve_scan(struct cpu_backend *cpu, size_t points, unsigned fields, struct ndt_error *err)
{
    const size_t capacity_before = cpu->scan.capacity;
    const unsigned fields_before = cpu->scan.fields;
    enum ndt_status status = ndt_cloud_reserve(&cpu->scan, points, fields, err);
    if (status == NDT_OK)
        status = reserve_chunks(cpu, points, err);
    cpu->counters.allocations += cpu->scan.capacity != capacity_before || cpu->scan.fields != fields_before;
    return status;
}

static enum ndt_status cpu_set_scan(struct ndt_backend *backend, const struct ndt_cloud *scan,
                                    struct ndt_error *err)
{
    struct cpu_backend *cpu = (struct cpu_backend *)backend;
    if (scan->count > cpu->config.max_points)
        return ndt_fail(err, NDT_ERR_LIMIT, "a scan of %zu points; the limit is %zu", scan->count,
                        cpu->config.max_points);
    cpu->scan.count = 0;
    cpu->has_times = scan->time_s != NULL;
    enum ndt_status status = reserve_scan(cpu, scan->count, cpu->has_times ? NDT_CLOUD_TIME : 0, err);
    if (status != NDT_OK)
        return status;
    cpu->scan.count = scan->count;
    if (scan->count == 0)
        return NDT_OK;
    memcpy(cpu->scan.x_m, scan->x_m, scan->count * sizeof(float));
    memcpy(cpu->scan.y_m, scan->y_m, scan->count * sizeof(float));
    memcpy(cpu->scan.z_m, scan->z_m, scan->count * sizeof(float));
    for (size_t i = 0; scan->time_s && i < scan->count; i++)
        cpu->scan.time_s[i] = isfinite(scan->time_s[i]) ? scan->time_s[i] : 0;
    for (size_t i = scan->count; i < cpu->scan.capacity && i % 16 != 0; i++)
        cpu->scan.x_m[i] = cpu->scan.y_m[i] = cpu->scan.z_m[i] = 0;
    return NDT_OK;
}

static void eval_chunk(void *context, size_t chunk)
{
    struct cpu_backend *cpu = context;
    cpu->variant->eval_chunk(&cpu->job, chunk, cpu->chunk_sums + chunk * NDT_SUM_COUNT);
}

static void inform_chunk(void *context, size_t chunk)
{
    struct cpu_backend *cpu = context;
    cpu->variant->inform_chunk(&cpu->job, chunk, cpu->chunk_sums + chunk * NDT_SUM_COUNT,
                               cpu->chunk_informed + chunk * NDT_INFORM_COUNT);
}

/* Sets what does not depend on the pose. */
static void set_level(struct cpu_backend *cpu, int level, enum ndt_neighbours neighbours)
{
    struct ndt_wide_job *job = &cpu->job;
    job->level = &cpu->map->levels[level];
    job->neighbours = neighbours;
    job->count = cpu->scan.count;
    job->x_m = cpu->scan.x_m;
    job->y_m = cpu->scan.y_m;
    job->z_m = cpu->scan.z_m;
    job->time_s = cpu->has_times ? cpu->scan.time_s : NULL;
}

/* Splits the translation into a whole cell and a remainder, so that float holds only coordinates near the sensor.
 */
static void prepare_job(struct cpu_backend *cpu, const struct ndt_eval_request *request, double axes[3][3])
{
    struct ndt_wide_job *job = &cpu->job;
    const double sa = sin(request->p[3]), ca = cos(request->p[3]), sb = sin(request->p[4]), cb = cos(request->p[4]);
    const double sc = sin(request->p[5]), cc = cos(request->p[5]);
    const double R[9] = {cb * cc,
                         -cb * sc,
                         sb,
                         ca * sc + sa * sb * cc,
                         ca * cc - sa * sb * sc,
                         -sa * cb,
                         sa * sc - ca * sb * cc,
                         sa * cc + ca * sb * sc,
                         ca * cb};
    const double turned[3][3] = {{1, 0, 0}, {0, ca, sa}, {sb, -sa * cb, ca * cb}};
    memcpy(axes, turned, sizeof(turned));
    set_level(cpu, request->level, request->neighbours);
    for (int i = 0; i < 9; i++)
        job->R[i] = (float)R[i];
    for (int i = 0; i < 3; i++) {
        const double cell = floor(request->p[i] / job->level->leaf_m);
        const double near = fmax(-1e9, fmin(1e9, cell)); /* far off the map: no voxel is found */
        job->near_cell[i] = (int32_t)near;
        job->t_m[i] = (float)(request->p[i] - near * job->level->leaf_m);
    }
}

/* From sums for rotations about fixed axes to derivatives by (a, b, c): angle i turns about axes[i], and
 * e_i x (e_k x y) = e_k (e_i . y) - y (e_i . e_k) for i <= k (R = Rx Ry Rz: earlier angles turn later axes). */
static void derive_by_angles(const double *sums, double axes[3][3], double d1, struct ndt_eval *out)
{
    const double *A = sums + NDT_SUM_A, *N = sums + NDT_SUM_N, *S = sums + NDT_SUM_S, *K = sums + NDT_SUM_K;
    const double *L6 = sums + NDT_SUM_L;
    const double L[9] = {L6[0], L6[1], L6[2], L6[1], L6[3], L6[4], L6[2], L6[4], L6[5]};
    const double torque[3] = {N[7] - N[5], N[2] - N[6], N[3] - N[1]};
    const double trace = N[0] + N[4] + N[8];
    const int at_t[3] = {0, 6, 11}, at_r[3] = {15, 18, 20};
    out->score = -d1 * sums[NDT_SUM_SCORE];
    out->nearest_score = -d1 * sums[NDT_SUM_BEST];
    out->matched = sums[NDT_SUM_MATCHED];
    out->pairs = sums[NDT_SUM_PAIRS];
    for (int i = 0, at = 0; i < 3; i++) {
        const double *e = axes[i];
        out->gradient[i] = A[i];
        out->gradient[3 + i] = e[0] * torque[0] + e[1] * torque[1] + e[2] * torque[2];
        for (int k = i; k < 3; k++) {
            const double *f = axes[k];
            double sum = -trace * (e[0] * f[0] + e[1] * f[1] + e[2] * f[2]);
            for (int r = 0; r < 3; r++)
                for (int c = 0; c < 3; c++)
                    sum += e[r] * L[3 * r + c] * f[c] + f[r] * N[3 * r + c] * e[c];
            out->hessian[at_r[i] + k - i] = sum;
            out->hessian[at_t[i] + k - i] = S[at++];
        }
        for (int k = 0; k < 3; k++)
            out->hessian[at_t[i] + 3 - i + k] =
                K[3 * i] * axes[k][0] + K[3 * i + 1] * axes[k][1] + K[3 * i + 2] * axes[k][2];
    }
}

/* The same for the information; sums lacks the factor -d1 d2. */
static void inform_by_angles(const double *sums, double axes[3][3], double d1d2, struct ndt_information *out)
{
    const int at_t[3] = {0, 6, 11}, at_r[3] = {15, 18, 20};
    for (int i = 0; i < 3; i++) {
        out->time_gradient[i] = d1d2 * sums[NDT_INFORM_A + i];
        for (int k = 0; k < 3; k++)
            out->time_gradient[3 + i] += d1d2 * axes[i][k] * sums[NDT_INFORM_TORQUE + k];
    }
    for (int power = 0; power < 3; power++) {
        const double *K = sums + NDT_INFORM_BLOCKS + power * NDT_INFORM_BLOCK, *C = K + 6, *R6 = C + 9;
        const double R[9] = {R6[0], R6[1], R6[2], R6[1], R6[3], R6[4], R6[2], R6[4], R6[5]};
        double *to = out->information[power];
        for (int i = 0, at = 0; i < 3; i++)
            for (int k = 0; k < 3; k++) {
                const double *e = axes[i], *f = axes[k];
                double sum = 0;
                for (int r = 0; k >= i && r < 3; r++)
                    sum += e[r] * (R[3 * r] * f[0] + R[3 * r + 1] * f[1] + R[3 * r + 2] * f[2]);
                if (k >= i) {
                    to[at_t[i] + k - i] = -d1d2 * K[at++];
                    to[at_r[i] + k - i] = -d1d2 * sum;
                }
                to[at_t[i] + 3 - i + k] = -d1d2 * (C[3 * i] * f[0] + C[3 * i + 1] * f[1] + C[3 * i + 2] * f[2]);
            }
    }
}

/* Runs `chunk_function` over all chunks and adds up their sums. */
static enum ndt_status evaluate(struct cpu_backend *cpu, const struct ndt_eval_request *request,
                                void (*chunk_function)(void *context, size_t chunk), double axes[3][3],
                                struct ndt_eval *out, struct ndt_error *err)
{
    double sums[NDT_SUM_COUNT] = {0};
    if (!cpu->map || request->level < 0 || (size_t)request->level >= cpu->map->level_count)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "level %d of a map that has %zu", request->level,
                        cpu->map ? cpu->map->level_count : 0);
    for (int i = 0; i < 6; i++)
        if (!isfinite(request->p[i]))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "the pose to evaluate at is not finite");
    const double start_us = ndt_clock_us();
    const size_t chunks = (cpu->scan.count + NDT_CHUNK_POINTS - 1) / NDT_CHUNK_POINTS;
    prepare_job(cpu, request, axes);
    if (cpu->pool)
        ndt_pool_run(cpu->pool, chunk_function, cpu, chunks);
    else
        ndt_pool_run_alone(&cpu->lane_work, chunk_function, cpu, chunks);
    for (size_t c = 0; c < chunks; c++)
        for (int i = 0; i < NDT_SUM_COUNT; i++)
            sums[i] += cpu->chunk_sums[c * NDT_SUM_COUNT + (size_t)i];
    derive_by_angles(sums, axes, cpu->job.level->d1, out);
    cpu->counters.evaluations++;
    cpu->counters.kernel_us += ndt_clock_us() - start_us;
    return NDT_OK;
}

static enum ndt_status cpu_eval(struct ndt_backend *backend, const struct ndt_eval_request *request,
                                struct ndt_eval *out, struct ndt_error *err)
{
    double axes[3][3];
    memset(out, 0, sizeof(*out));
    return evaluate((struct cpu_backend *)backend, request, eval_chunk, axes, out, err);
}

static enum ndt_status cpu_inform(struct ndt_backend *backend, const struct ndt_eval_request *request,
                                  struct ndt_information *out, struct ndt_error *err)
{
    struct cpu_backend *cpu = (struct cpu_backend *)backend;
    double axes[3][3], sums[NDT_INFORM_COUNT] = {0};
    memset(out, 0, sizeof(*out));
    enum ndt_status status = evaluate(cpu, request, inform_chunk, axes, &out->eval, err);
    if (status != NDT_OK)
        return status;
    const size_t chunks = (cpu->scan.count + NDT_CHUNK_POINTS - 1) / NDT_CHUNK_POINTS;
    for (size_t c = 0; c < chunks; c++)
        for (int i = 0; i < NDT_INFORM_COUNT; i++)
            sums[i] += cpu->chunk_informed[c * NDT_INFORM_COUNT + (size_t)i];
    inform_by_angles(sums, axes, cpu->job.level->d1 * cpu->job.level->d2, out);
    return NDT_OK;
}

/* ---- scores at many poses ---- */

/* Pairs of point and pose between two questions whether to go on: about a millisecond of one core. */
enum { SCORE_SLICE = 20000 };

struct score_call {
    const struct cpu_backend *cpu;
    const struct ndt_score_request *request;
    struct ndt_pose_score *out;
    size_t first; /* pose of the slice */
};

static void score_pose(void *context, size_t item)
{
    const struct score_call *call = context;
    const size_t i = call->first + item;
    struct ndt_wide_job job = call->cpu->job;
    struct ndt_packed_pose pose;
    struct ndt_score_sums sums = {0};
    ndt_score_pack(&call->request->poses[i], job.level->leaf_m, &pose);
    memcpy(job.R, pose.R, sizeof(job.R));
    memcpy(job.t_m, pose.t_m, sizeof(job.t_m));
    memcpy(job.near_cell, pose.near_cell, sizeof(job.near_cell));
    for (size_t chunk = 0; chunk * NDT_CHUNK_POINTS < job.count; chunk++)
        call->cpu->variant->score_chunk(&job, chunk, &sums);
    ndt_score_unpack(&sums, job.level, &call->out[i]);
}

static enum ndt_status cpu_score_poses(struct ndt_backend *backend, const struct ndt_score_request *request,
                                       struct ndt_pose_score *out, size_t *done, struct ndt_error *err)
{
    struct cpu_backend *cpu = (struct cpu_backend *)backend;
    struct score_call call = {.cpu = cpu, .request = request, .out = out};
    const double start_us = ndt_clock_us();
    const size_t threads = cpu->pool ? (size_t)cpu->config.threads : 1;
    const size_t most = threads * (1 + SCORE_SLICE / (cpu->scan.count + 1));
    *done = 0;
    memset(out, 0, request->count * sizeof(*out));
    enum ndt_status status = ndt_score_check(cpu->map, request, err);
    if (status == NDT_OK && request->scan != 0)
        status = ndt_fail(err, NDT_ERR_ARGUMENT, "scan %u of 1", request->scan);
    if (status != NDT_OK)
        return status;
    set_level(cpu, request->level, request->neighbours);
    while (*done < request->count && (!request->goes_on || request->goes_on(request->context, *done))) {
        const size_t left = request->count - *done, slice = left < most ? left : most;
        call.first = *done;
        if (cpu->pool)
            ndt_pool_run(cpu->pool, score_pose, &call, slice);
        else
            ndt_pool_run_alone(&cpu->lane_work, score_pose, &call, slice);
        *done += slice;
    }
    cpu->counters.evaluations += *done;
    cpu->counters.kernel_us += ndt_clock_us() - start_us;
    return NDT_OK;
}

/* Scores `count` points, each `stride` after the one before, from number `first` on. */
static void score_each(const struct variant *variant, struct ndt_wide_job *job, const struct ndt_cloud *scan,
                       size_t first, size_t stride, float *values)
{
    float x_m[3][NDT_CHUNK_POINTS] = {{0}};
    uint32_t units[NDT_CHUNK_POINTS];
    for (size_t i = 0; i < job->count; i++) {
        x_m[0][i] = scan->x_m[first + i * stride];
        x_m[1][i] = scan->y_m[first + i * stride];
        x_m[2][i] = scan->z_m[first + i * stride];
    }
    job->x_m = x_m[0];
    job->y_m = x_m[1];
    job->z_m = x_m[2];
    variant->score_each(job, units);
    for (size_t i = 0; i < job->count; i++)
        values[i] = (float)units[i] / (float)NDT_SCORE_UNITS;
}

void ndt_score_points(const struct ndt_map *map, int level, enum ndt_neighbours neighbours,
                      const struct ndt_cloud *scan, size_t stride, const struct ndt_score_pose *pose,
                      const char *isa, float *values)
{
    const struct variant *variant = variants; /* the best first */
    struct ndt_error ignored;
    const size_t count = (scan->count + stride - 1) / stride;
    struct ndt_wide_job job = {.level = &map->levels[level], .neighbours = neighbours};
    struct ndt_packed_pose packed;
    if (choose_variant(&variant, isa, &ignored) != NDT_OK)
        while (!variant->runs_here())
            variant++;
    ndt_score_pack(pose, job.level->leaf_m, &packed);
    memcpy(job.R, packed.R, sizeof(job.R));
    memcpy(job.t_m, packed.t_m, sizeof(job.t_m));
    memcpy(job.near_cell, packed.near_cell, sizeof(job.near_cell));
    for (size_t done = 0; done < count; done += job.count) {
        job.count = count - done < NDT_CHUNK_POINTS ? count - done : NDT_CHUNK_POINTS;
        score_each(variant, &job, scan, done * stride, stride, values + done);
    }
}

/* ---- lanes: one backend per thread of the pool, without a pool of their own ---- */

static size_t cpu_lane_count(const struct ndt_backend *backend)
{
    return (size_t)((const struct cpu_backend *)backend)->config.threads;
}

static enum ndt_status open_lanes(struct cpu_backend *cpu, struct ndt_error *err)
{
    const size_t count = cpu_lane_count(&cpu->base);
    if (!cpu->lanes)
        cpu->lanes = calloc(count, sizeof(*cpu->lanes));
    while (cpu->lanes && cpu->lane_count < count) {
        struct cpu_backend *lane = calloc(1, sizeof(*lane));
        if (!lane)
            break;
        lane->base.ops = &ndt_cpu_backend;
        lane->config = cpu->config;
        lane->variant = cpu->variant;
        ndt_cloud_init(&lane->scan);
        (void)cpu_set_map(&lane->base, cpu->map, err); /* never fails */
        cpu->lanes[cpu->lane_count++] = lane;
        cpu->counters.allocations++;
    }
    return cpu->lane_count == count
               ? NDT_OK
               : ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu lanes of the CPU backend", count);
}

struct lane_job {
    struct cpu_backend *cpu;
    ndt_lane_work *work;
    void *context;
    _Atomic int working; /* lanes whose work has begun and not ended */
};

/* A lane without work helps the others with their evaluations, until none is left that has work. */
static void run_lane(void *context, size_t index)
{
    struct lane_job *job = context;
    const struct cpu_backend *cpu = job->cpu;
    atomic_fetch_add(&job->working, 1);
    job->work(job->context, index, &cpu->lanes[index]->base);
    atomic_fetch_sub(&job->working, 1);
    for (int spins = 0; atomic_load(&job->working) > 0; spins++) {
        for (size_t i = 0; i < cpu->lane_count; i++)
            spins = ndt_pool_help(&cpu->lanes[i]->lane_work) ? 0 : spins;
        ndt_pool_relax(spins);
    }
}

static enum ndt_status cpu_run_lanes(struct ndt_backend *backend, size_t points, ndt_lane_work *work, void *context,
                                     struct ndt_error *err)
{
    struct cpu_backend *cpu = (struct cpu_backend *)backend;
    struct lane_job job = {.cpu = cpu, .work = work, .context = context};
    const size_t room = points < cpu->config.max_points ? points : cpu->config.max_points;
    enum ndt_status status = open_lanes(cpu, err);
    for (size_t i = 0; status == NDT_OK && i < cpu->lane_count; i++)
        status = reserve_scan(cpu->lanes[i], room, NDT_CLOUD_TIME, err);
    if (status == NDT_OK)
        ndt_pool_run(cpu->pool, run_lane, &job, cpu->lane_count);
    return status;
}

static void cpu_counters(const struct ndt_backend *backend, struct ndt_backend_counters *out)
{
    const struct cpu_backend *cpu = (const struct cpu_backend *)backend;
    *out = cpu->counters;
    for (size_t i = 0; i < cpu->lane_count; i++) {
        out->evaluations += cpu->lanes[i]->counters.evaluations;
        out->allocations += cpu->lanes[i]->counters.allocations;
        out->kernel_us += cpu->lanes[i]->counters.kernel_us;
    }
}

static void cpu_describe(const struct ndt_backend *backend, char *text, size_t size)
{
    const struct cpu_backend *cpu = (const struct cpu_backend *)backend;
    snprintf(text, size, "cpu %s, %d thread%s", cpu->variant->name, cpu->config.threads,
             cpu->config.threads == 1 ? "" : "s");
}

const struct ndt_backend_ops ndt_cpu_backend = {
    .name = "cpu",
    .about = "SIMD on the CPU, any number of threads, bit-equal results",
    .probe = cpu_probe,
    .open = cpu_open,
    .close = cpu_close,
    .set_map = cpu_set_map,
    .set_scan = cpu_set_scan,
    .eval = cpu_eval,
    .inform = cpu_inform,
    .score_poses = cpu_score_poses,
    .lane_count = cpu_lane_count,
    .run_lanes = cpu_run_lanes,
    .counters = cpu_counters,
    .describe = cpu_describe,
};
