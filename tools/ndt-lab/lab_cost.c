/* Cost of an evaluation and of building a map, over the number of points, voxels and threads. */
#include <math.h>
#include <stdio.h>

#include "backends.h"
#include "lab.h"
#include "ndt/clock.h"

enum { PLACES = 8, BUILDS = 3 };

struct costs {
    const struct lab *lab;
    struct ndt_map *map;
    double side_m;
    struct ndt_cloud clouds[PLACES];
    struct ndt_eval_request requests[PLACES];
};

static enum ndt_status lay_out(struct costs *costs, size_t points, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    const double radius_m = costs->side_m / 2 < 60 ? costs->side_m / 2 : 60, reach_m = costs->side_m / 2 - radius_m;
    for (int i = 0; status == NDT_OK && i < PLACES; i++) {
        const double travelled_m = reach_m * (2.0 * i / (PLACES - 1) - 1),
                     at_m[2] = {travelled_m, 0.6 * travelled_m};
        const struct ndt_pose pose = lab_world_pose(at_m);
        status = lab_world_scan(&costs->clouds[i], points, at_m, radius_m, costs->lab->seed + (uint64_t)i, err);
        costs->requests[i] = (struct ndt_eval_request){.level = 0, .neighbours = NDT_RADIUS};
        ndt_pose_to_euler(&pose, costs->requests[i].p);
        for (int k = 0; k < 3; k++)
            costs->requests[i].p[k] -= costs->map->origin_m[k];
    }
    return status;
}

/* Median over the places of the quicker of two evaluations. */
static double evaluate(struct costs *costs, struct ndt_backend *backend)
{
    double took_us[PLACES];
    for (int i = 0; i < PLACES; i++) {
        struct ndt_eval sums;
        if (backend->ops->set_scan(backend, &costs->clouds[i], NULL) != NDT_OK)
            return -1;
        took_us[i] = INFINITY;
        for (int k = 0; k < 2; k++) {
            const double start_us = ndt_clock_us();
            if (backend->ops->eval(backend, &costs->requests[i], &sums, NULL) != NDT_OK)
                return -1;
            took_us[i] = fmin(took_us[i], ndt_clock_us() - start_us);
        }
    }
    return lab_median(took_us, PLACES);
}

static enum ndt_status curve(struct costs *costs, int threads, const char *series, size_t x, struct ndt_error *err)
{
    double samples[LAB_MAX_REPETITIONS];
    char text[32];
    struct ndt_backend *backend = NULL;
    struct ndt_backend_config config = costs->lab->settings.compute;
    config.threads = threads;
    enum ndt_status status = ndt_backend_open(&backend, "cpu", &config, err);
    if (status == NDT_OK)
        status = backend->ops->set_map(backend, costs->map, err);
    for (int r = -1; status == NDT_OK && r < costs->lab->repetitions; r++)
        samples[r < 0 ? 0 : r] = evaluate(costs, backend);
    snprintf(text, sizeof(text), "%zu", x);
    if (status == NDT_OK)
        lab_print("cost", series, text, "curve", "us/evaluation", samples, costs->lab->repetitions);
    if (backend)
        backend->ops->close(backend);
    return status;
}

static enum ndt_status over_points(struct costs *costs, struct ndt_error *err)
{
    static const size_t sizes[] = {500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < (costs->lab->quick ? 2 : 8); i++) {
        status = lay_out(costs, sizes[i], err);
        if (status == NDT_OK)
            status = curve(costs, 1, "evaluation over points: 1 thread", sizes[i], err);
        if (status == NDT_OK)
            status = curve(costs, 2, "evaluation over points: 2 threads", sizes[i], err);
    }
    return status;
}

static enum ndt_status over_threads(struct costs *costs, struct ndt_error *err)
{
    const size_t points = costs->lab->quick ? 500 : 20000;
    char series[64];
    enum ndt_status status = lay_out(costs, points, err);
    snprintf(series, sizeof(series), "evaluation of %zu points over threads", points);
    for (int threads = 1; status == NDT_OK && threads <= 4; threads++)
        status = curve(costs, threads, series, (size_t)threads, err);
    return status;
}

/* Leaves the last of three maps of that world in `costs`. */
static enum ndt_status time_builds(struct costs *costs, double side_m, struct ndt_error *err)
{
    double took_ms[BUILDS];
    char voxels[32];
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    enum ndt_status status = lab_world_cloud(&cloud, side_m, err);
    for (int i = 0; status == NDT_OK && i < BUILDS; i++) {
        ndt_map_release(costs->map);
        costs->map = NULL;
        const double start_us = ndt_clock_us();
        status = lab_world_build(&costs->map, &cloud, err);
        took_ms[i] = (ndt_clock_us() - start_us) * 1e-3;
    }
    costs->side_m = side_m;
    if (status == NDT_OK) {
        snprintf(voxels, sizeof(voxels), "%u", costs->map->levels[0].voxel_count);
        lab_print("cost", "map build over voxels", voxels, "curve", "ms", took_ms, BUILDS);
    }
    ndt_cloud_free(&cloud);
    return status;
}

static enum ndt_status over_voxels(struct costs *costs, struct ndt_error *err)
{
    static const double sides_m[] = {60, 120, 240, 480, 800};
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < (costs->lab->quick ? 2 : 5); i++) {
        status = time_builds(costs, sides_m[i], err);
        if (status == NDT_OK)
            status = lay_out(costs, 5000, err);
        if (status == NDT_OK)
            status =
                curve(costs, 1, "evaluation of 5000 points over voxels", costs->map->levels[0].voxel_count, err);
    }
    return status;
}

enum ndt_status lab_cost(const struct lab *lab, struct ndt_error *err)
{
    struct costs costs = {.lab = lab, .side_m = 240};
    for (int i = 0; i < PLACES; i++)
        ndt_cloud_init(&costs.clouds[i]);
    enum ndt_status status = lab_world_map(&costs.map, costs.side_m, err);
    if (status == NDT_OK)
        status = over_points(&costs, err);
    if (status == NDT_OK)
        status = over_threads(&costs, err);
    if (status == NDT_OK)
        status = over_voxels(&costs, err);
    for (int i = 0; i < PLACES; i++)
        ndt_cloud_free(&costs.clouds[i]);
    ndt_map_release(costs.map);
    return status;
}
