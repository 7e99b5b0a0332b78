/* Observations of the parts of a scan; see ndt/part_observer.h. */
#include "ndt/part_observer.h"

#include <stdlib.h>
#include <string.h>

#include "align_state.h"
#include "ndt/backend.h"

struct ndt_part_observer {
    struct ndt_backend *backend;
    struct ndt_map *map;
    struct ndt_cloud turned; /* points of one part, rotated into the axes of the map */
};

enum ndt_status ndt_part_observer_create(struct ndt_part_observer **out, const char *isa, struct ndt_error *err)
{
    struct ndt_backend_config config;
    ndt_backend_config_default(&config);
    config.threads = 1;
    config.pin_threads = 0;
    config.isa = isa;
    *out = NULL;
    struct ndt_part_observer *observer = calloc(1, sizeof(*observer));
    if (!observer)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the observer of parts");
    ndt_cloud_init(&observer->turned);
    const enum ndt_status status = ndt_cpu_backend.open(&observer->backend, &config, err);
    if (status == NDT_OK)
        *out = observer;
    else
        ndt_part_observer_destroy(observer);
    return status;
}

void ndt_part_observer_destroy(struct ndt_part_observer *observer)
{
    if (!observer)
        return;
    if (observer->backend)
        observer->backend->ops->close(observer->backend);
    ndt_map_release(observer->map);
    ndt_cloud_free(&observer->turned);
    free(observer);
}

void ndt_part_observer_set_map(struct ndt_part_observer *observer, struct ndt_map *map)
{
    struct ndt_error ignored;
    if (observer->map == map)
        return;
    (void)observer->backend->ops->set_map(observer->backend, map, &ignored); /* that of the CPU never fails */
    ndt_map_release(observer->map);
    observer->map = ndt_map_retain(map);
}

/* Copies the points of a part, rotated by R: the pose to evaluate at is then a translation, far from the singular
 * attitudes of its angles. */
static void turn_part(const struct ndt_parts *parts, size_t part, const double R[9], struct ndt_cloud *turned)
{
    const struct ndt_cloud *scan = parts->scan;
    turned->count = 0;
    for (size_t i = 0; i < scan->count; i++) {
        const double x = (double)scan->x_m[i], y = (double)scan->y_m[i], z = (double)scan->z_m[i];
        const size_t to = turned->count;
        if (parts->part_of[i] != part)
            continue;
        turned->x_m[to] = (float)(R[0] * x + R[1] * y + R[2] * z);
        turned->y_m[to] = (float)(R[3] * x + R[4] * y + R[5] * z);
        turned->z_m[to] = (float)(R[6] * x + R[7] * y + R[8] * z);
        if (scan->time_s)
            turned->time_s[to] = scan->time_s[i];
        turned->count++;
    }
}

/* From derivatives by a translation and rotations about the axes of the map to the error of the pose in the frame
 * of the sensor: d is turned by diag(R, R). */
static void set_observation(const struct ndt_information *in, const double R[9], struct ndt_observation *out)
{
    double G[36] = {0};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            G[6 * i + j] = G[6 * (3 + i) + 3 + j] = R[3 * i + j];
    ndt_observation_from_sums(in, G, out);
}

enum ndt_status ndt_part_observer_observe(struct ndt_part_observer *observer, const struct ndt_parts *parts,
                                          struct ndt_observation *out, struct ndt_error *err)
{
    struct ndt_backend *backend = observer->backend;
    struct ndt_eval_request request = {.neighbours = parts->neighbours};
    double R[9];
    memset(out, 0, parts->count * sizeof(*out));
    if (!observer->map || ndt_map_find_level(observer->map, parts->leaf_m) < 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "there is no map with a level of %g m", parts->leaf_m);
    request.level = ndt_map_find_level(observer->map, parts->leaf_m);
    for (int k = 0; k < 3; k++)
        request.p[k] = parts->T_map_sensor.t_m[k] - observer->map->origin_m[k];
    ndt_pose_rotation(&parts->T_map_sensor, R);
    enum ndt_status status =
        ndt_cloud_reserve(&observer->turned, parts->scan->count, parts->scan->time_s ? NDT_CLOUD_TIME : 0, err);
    for (size_t part = 0; status == NDT_OK && part < parts->count; part++) {
        struct ndt_information information;
        struct ndt_cloud points = observer->turned;
        turn_part(parts, part, R, &observer->turned);
        points.count = observer->turned.count;
        if (!parts->scan->time_s)
            points.time_s = NULL;
        if (points.count == 0)
            continue;
        status = backend->ops->set_scan(backend, &points, err);
        if (status == NDT_OK)
            status = backend->ops->inform(backend, &request, &information, err);
        if (status == NDT_OK)
            set_observation(&information, R, &out[part]);
    }
    return status;
}

void ndt_observation_add(struct ndt_observation *sum, double factor, const struct ndt_observation *part)
{
    for (int i = 0; i < 6; i++) {
        sum->gradient[i] += factor * part->gradient[i];
        sum->time_gradient[i] += factor * part->time_gradient[i];
    }
    for (int i = 0; i < 36; i++) {
        sum->curvature[i] += factor * part->curvature[i];
        for (int k = 0; k < 3; k++)
            sum->information[k][i] += factor * part->information[k][i];
    }
}
