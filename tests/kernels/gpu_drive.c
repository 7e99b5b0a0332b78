#include "gpu_drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "ndt/hash.h"
#include "street_world.h"

enum { MAP_POINTS = 60000, MOST_ITERATIONS = GPU_DRIVE_SCANS * 64 };
static const double LIMIT_M = 0.001, LIMIT_DEG = 0.01, DEG = 3.14159265358979323846 / 180.0;
static const double STREET_M = 80.0, RANGE_M = 20.0;
static const struct world STREET = {WORLD_STREET, 11, 80.0, 0.02};

struct times {
    double align_us[GPU_DRIVE_SCANS], iteration_us[MOST_ITERATIONS];
    size_t iterations;
    int evaluations;
};

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(double), ascending);
    return count ? values[count / 2] : 0;
}

enum ndt_status gpu_drive_map(struct ndt_map **out, struct ndt_error *err)
{
    static const double zero[3];
    struct ndt_map_config config;
    struct ndt_cloud cloud;
    ndt_map_config_default(&config);
    ndt_cloud_init(&cloud);
    enum ndt_status status = world_map(&cloud, &STREET, MAP_POINTS, zero, err);
    if (status == NDT_OK)
        status = ndt_map_from_cloud(out, &config, &cloud, err);
    ndt_cloud_free(&cloud);
    return status;
}

/* At most 40 m on, with a heading that swings: the ends of the street stay out of range. */
enum ndt_status gpu_drive_scan(struct ndt_cloud *out, struct ndt_pose *T_map_sensor, size_t number, size_t points,
                               struct ndt_error *err)
{
    const double candidate = (double)number / GPU_DRIVE_SCANS, swing = 8 * candidate - (double)(int)(8 * candidate);
    *T_map_sensor = world_pose(&STREET, (RANGE_M + (STREET_M - 2 * RANGE_M) * candidate) / STREET_M,
                               0.1 * (swing < 0.5 ? swing : 1 - swing));
    return world_scan(out, &STREET, number + 1, points, T_map_sensor, RANGE_M, err);
}

static enum ndt_status make_scans(struct gpu_drive *drive, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    struct ndt_pose pose;
    for (size_t i = 0; i < GPU_DRIVE_SCANS; i++)
        ndt_cloud_init(&drive->clouds[i]);
    for (size_t i = 0; status == NDT_OK && i < drive->scans; i++) {
        status = gpu_drive_scan(&drive->clouds[i], &pose, i, drive->points, err);
        if (i == 0)
            drive->start = pose;
    }
    return status;
}

static void note_times(struct times *times, size_t scan, const struct ndt_align_result *result,
                       const struct ndt_iteration *rows, size_t count)
{
    times->align_us[scan] = result->align_us;
    times->evaluations += result->evaluations;
    for (size_t i = 0; i < count && times->iterations < MOST_ITERATIONS; i++)
        times->iteration_us[times->iterations++] = rows[i].eval_us + rows[i].solve_us;
}

/* Constant velocity from the two poses before. */
static enum ndt_status drive_along(const struct gpu_drive *drive, struct ndt_aligner *aligner,
                                   struct ndt_pose *poses, struct times *times, struct ndt_error *err)
{
    struct ndt_align_params params;
    struct ndt_align_result result;
    struct ndt_pose guess = drive->start, step = ndt_pose_identity();
    enum ndt_status status = NDT_OK;
    ndt_align_params_default(&params);
    for (size_t i = 0; status == NDT_OK && i < drive->scans; i++) {
        size_t count;
        status = ndt_align(aligner, &params, &drive->clouds[i], &guess, &result, err);
        if (status == NDT_OK && result.outcome != NDT_CONVERGED)
            status = ndt_fail(err, NDT_ERR_DEVICE, "scan %zu: %s %s", i, ndt_outcome_name(result.outcome),
                              result.reason);
        if (status != NDT_OK)
            break;
        poses[i] = result.T_map_sensor;
        if (i > 0)
            step = ndt_pose_between(&poses[i - 1], &poses[i]);
        guess = ndt_pose_compose(&poses[i], &step);
        const struct ndt_iteration *rows = ndt_aligner_trace(aligner, &count);
        note_times(times, i, &result, rows, count);
    }
    return status;
}

static void summarise(struct gpu_drive_candidate *candidate, const struct gpu_drive *drive, struct times *times)
{
    candidate->align_us = median(times->align_us, drive->scans);
    candidate->iteration_us = median(times->iteration_us, times->iterations);
    candidate->evaluations = (double)times->evaluations / (double)drive->scans;
}

static uint64_t hash_of(const struct ndt_pose *poses, size_t count)
{
    return ndt_hash64(poses, count * sizeof(*poses), 0);
}

static enum ndt_status drive_twice(struct gpu_drive_candidate *candidate, const struct gpu_drive *drive,
                                   struct ndt_backend *backend)
{
    static struct ndt_pose again[GPU_DRIVE_SCANS];
    static struct times times;
    struct ndt_aligner *aligner = NULL;
    enum ndt_status status = ndt_aligner_create(&aligner, backend, &candidate->why);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(aligner, drive->map, &candidate->why);
    memset(&times, 0, sizeof(times));
    if (status == NDT_OK) /* the times of the second run count: everything is warm */
        status = drive_along(drive, aligner, again, &times, &candidate->why);
    memset(&times, 0, sizeof(times));
    if (status == NDT_OK)
        status = drive_along(drive, aligner, candidate->poses, &times, &candidate->why);
    if (status == NDT_OK) {
        candidate->hash = hash_of(again, drive->scans);
        candidate->hash_again = hash_of(candidate->poses, drive->scans);
        summarise(candidate, drive, &times);
    }
    ndt_aligner_destroy(aligner);
    return status;
}

static void assess(struct gpu_drive_candidate *candidate, const struct gpu_drive *drive)
{
    const struct gpu_drive_candidate *cpu = &drive->candidates[0];
    for (size_t i = 0; i < drive->scans; i++) {
        const double off_m = ndt_pose_distance_m(&candidate->poses[i], &cpu->poses[i]);
        const double off_deg = ndt_pose_angle_rad(&candidate->poses[i], &cpu->poses[i]) / DEG;
        candidate->most_m = off_m > candidate->most_m ? off_m : candidate->most_m;
        candidate->most_deg = off_deg > candidate->most_deg ? off_deg : candidate->most_deg;
    }
    candidate->is_good = cpu->is_here && candidate->hash == candidate->hash_again && candidate->most_m <= LIMIT_M &&
                         candidate->most_deg <= LIMIT_DEG;
}

static void run_candidate(struct gpu_drive *drive, const struct ndt_backend_ops *ops, const char *pipeline)
{
    if (drive->candidate_count == GPU_DRIVE_CANDIDATES)
        return;
    struct gpu_drive_candidate *candidate = &drive->candidates[drive->candidate_count++];
    struct ndt_backend_config config;
    struct ndt_backend *backend;
    *candidate = (struct gpu_drive_candidate){.is_here = 0};
    snprintf(candidate->name, sizeof(candidate->name), "%s%s%s", ops->name, pipeline ? " " : "",
             pipeline ? pipeline : "");
    ndt_backend_config_default(&config);
    config.threads = drive->threads;
    config.pipeline = pipeline;
    config.max_points = drive->points;
    if (ops->probe(&candidate->why) != NDT_OK)
        return;
    const enum ndt_status status = ops->open(&backend, &config, &candidate->why);
    candidate->is_here = status != NDT_ERR_UNSUPPORTED; /* by this device: the others have to open */
    if (status != NDT_OK)
        return;
    if (ops->describe)
        ops->describe(backend, candidate->about, sizeof(candidate->about));
    if (drive_twice(candidate, drive, backend) == NDT_OK)
        assess(candidate, drive);
    ops->close(backend);
}

enum ndt_status gpu_drive_run(struct gpu_drive *drive, struct ndt_error *err)
{
    const struct ndt_backend_ops *ops;
    drive->candidate_count = 0;
    if (drive->scans < 2 || drive->scans > GPU_DRIVE_SCANS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%zu scans; 2 to %d are possible", drive->scans, GPU_DRIVE_SCANS);
    enum ndt_status status = make_scans(drive, err);
    if (status != NDT_OK)
        return status;
    run_candidate(drive, &ndt_cpu_backend, NULL);
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++)
        for (const char *const *name = ops->pipelines; name && *name; name++)
            run_candidate(drive, ops, *name);
    return NDT_OK;
}

void gpu_drive_free(struct gpu_drive *drive)
{
    for (size_t i = 0; i < GPU_DRIVE_SCANS; i++)
        ndt_cloud_free(&drive->clouds[i]);
}
