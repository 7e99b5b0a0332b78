#include "sim_change.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

/* ---- near the drive ---- */

static void bounds(const struct sim_drive *drive, double duration_s, double low_m[2], double high_m[2])
{
    double R[9], at_m[3];
    low_m[0] = low_m[1] = INFINITY;
    high_m[0] = high_m[1] = -INFINITY;
    for (double t_s = 0.0; t_s <= duration_s; t_s += 0.2) {
        sim_drive_frame(drive, t_s, R, at_m);
        for (int k = 0; k < 2; k++) {
            low_m[k] = fmin(low_m[k], at_m[k]);
            high_m[k] = fmax(high_m[k], at_m[k]);
        }
    }
}

static enum ndt_status open_near(struct sim_near *near, const struct sim_drive *drive, double duration_s,
                                 double radius_m, struct ndt_error *err)
{
    double R[9], at_m[3], high_m[2];
    if (!(radius_m > 0.0))
        return NDT_OK;
    bounds(drive, duration_s, near->low_m, high_m);
    for (int k = 0; k < 2; k++) {
        near->low_m[k] -= radius_m + 1.0;
        near->dim[k] = (int)ceil(high_m[k] - near->low_m[k] + radius_m + 1.0);
    }
    near->cells = calloc((size_t)near->dim[0] * (size_t)near->dim[1], 1);
    if (!near->cells)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %d x %d m around the drive", near->dim[0],
                        near->dim[1]);
    double last_m[2] = {INFINITY, INFINITY};
    for (double t_s = 0.0; t_s <= duration_s; t_s += 0.2) {
        sim_drive_frame(drive, t_s, R, at_m);
        if (hypot(at_m[0] - last_m[0], at_m[1] - last_m[1]) < 1.0)
            continue;
        memcpy(last_m, at_m, sizeof(last_m));
        const int reach = (int)ceil(radius_m);
        const int x0 = (int)floor(at_m[0] - near->low_m[0]), y0 = (int)floor(at_m[1] - near->low_m[1]);
        for (int y = y0 - reach; y <= y0 + reach; y++)
            for (int x = x0 - reach; x <= x0 + reach; x++)
                if (x >= 0 && y >= 0 && x < near->dim[0] && y < near->dim[1] && hypot(x - x0, y - y0) <= radius_m)
                    near->cells[(size_t)y * (size_t)near->dim[0] + (size_t)x] = 1;
    }
    return NDT_OK;
}

int sim_near_holds(const struct sim_near *near, const double at_m[2])
{
    const double x = floor(at_m[0] - near->low_m[0]), y = floor(at_m[1] - near->low_m[1]);
    return near->cells && x >= 0 && y >= 0 && x < near->dim[0] && y < near->dim[1] &&
           near->cells[(size_t)y * (size_t)near->dim[0] + (size_t)x];
}

/* ---- twin ---- */

/* The point of the copy. */
static void twin_of(const struct sim_change *change, const double at_m[3], double out_m[3])
{
    const double dx = at_m[0] - change->from_m[0], dy = at_m[1] - change->from_m[1];
    out_m[0] = change->to_m[0] + change->cos_turn * dx - change->sin_turn * dy;
    out_m[1] = change->to_m[1] + change->sin_turn * dx + change->cos_turn * dy;
    out_m[2] = at_m[2] + change->to_m[2] - change->from_m[2];
}

/* Whether a place is in the copy, by the place that it was copied from. */
static int in_twin(const struct sim_change *change, const double at_m[2])
{
    const double dx = at_m[0] - change->to_m[0], dy = at_m[1] - change->to_m[1];
    const double from_m[2] = {change->from_m[0] + change->cos_turn * dx + change->sin_turn * dy,
                              change->from_m[1] - change->sin_turn * dx + change->cos_turn * dy};
    return change->copied.cells && sim_near_holds(&change->copied, from_m);
}

/* The circle around the copy lies within the square. */
static int fits(const struct sim_city *city, const double at_m[2], double radius_m)
{
    for (int k = 0; k < 16; k++) {
        const double edge_m[2] = {at_m[0] + radius_m * cos(k * PI / 8.0), at_m[1] + radius_m * sin(k * PI / 8.0)};
        if (!sim_city_holds(city, edge_m))
            return 0;
    }
    return 1;
}

static enum ndt_status place_twin(struct sim_change *change, const struct sim_drive *drive,
                                  const struct sim_city *city, uint64_t seed, struct ndt_error *err)
{
    struct ndt_random random = ndt_random_stream(seed, 20, 0);
    const double radius_m = 0.5 * hypot(change->copied.dim[0], change->copied.dim[1]);
    const double turn_rad = ndt_random_between(&random, -PI, PI);
    double away_m = 2.0 * radius_m + (city ? 0.0 : 260.0); /* distance beyond the range of the survey */
    change->cos_turn = cos(turn_rad);
    change->sin_turn = sin(turn_rad);
    for (int k = 0; k < 2; k++)
        change->from_m[k] = change->copied.low_m[k] + 0.5 * change->copied.dim[k];
    change->from_m[2] = sim_ground_height(drive->ground, change->from_m[0], change->from_m[1], NULL);
    for (int tries = 0; tries < 10000; tries++) {
        const double heading = ndt_random_between(&random, -PI, PI);
        if (city)
            away_m = ndt_random_between(&random, 2.0 * radius_m, 2.0 * radius_m + city->extent_m);
        change->to_m[0] = change->from_m[0] + away_m * cos(heading);
        change->to_m[1] = change->from_m[1] + away_m * sin(heading);
        change->to_m[2] = sim_ground_height(drive->ground, change->to_m[0], change->to_m[1], NULL);
        if (!city || fits(city, change->to_m, radius_m))
            return NDT_OK;
    }
    return ndt_fail(err, NDT_ERR_ARGUMENT,
                    "--twin: a copy of %.0f m does not fit into the map; --extent or fewer scans", 2.0 * radius_m);
}

/* ---- all changes ---- */

enum ndt_status sim_change_open(struct sim_change *change, const struct sim_drive *drive, double duration_s,
                                const struct sim_city *city, uint64_t seed, struct ndt_error *err)
{
    double R[9], at_m[3];
    sim_drive_frame(drive, 0.0, R, at_m);
    change->mirror_y_m = floor(at_m[1]);
    enum ndt_status status = open_near(&change->cut, drive, duration_s, change->cut_out_m, err);
    if (status == NDT_OK)
        status = open_near(&change->copied, drive, duration_s, change->twin_m, err);
    if (status == NDT_OK && change->copied.cells)
        status = place_twin(change, drive, city, seed, err);
    return status;
}

void sim_change_close(struct sim_change *change)
{
    free(change->cut.cells);
    free(change->copied.cells);
    memset(change, 0, sizeof(*change));
}

int sim_change_keeps(const struct sim_change *change, const double at_m[2])
{
    return !sim_near_holds(&change->cut, at_m) && !in_twin(change, at_m);
}

static void store(struct ndt_cloud *cloud, const double at_m[3], float intensity)
{
    const size_t i = cloud->count++;
    cloud->x_m[i] = (float)at_m[0];
    cloud->y_m[i] = (float)at_m[1];
    cloud->z_m[i] = (float)at_m[2];
    cloud->intensity[i] = intensity;
}

static int within(const struct sim_area *area, const double at_m[2])
{
    return at_m[0] >= area->low_m[0] && at_m[0] < area->high_m[0] && at_m[1] >= area->low_m[1] &&
           at_m[1] < area->high_m[1];
}

enum ndt_status sim_change_copy(const struct sim_change *change, const struct ndt_cloud *copied,
                                const struct sim_area *area, struct ndt_cloud *cloud, struct ndt_error *err)
{
    for (size_t i = 0; i < copied->count; i++) {
        const double at_m[3] = {(double)copied->x_m[i], (double)copied->y_m[i], (double)copied->z_m[i]};
        double twin_m[3];
        if (!sim_near_holds(&change->copied, at_m))
            continue;
        if (cloud->count + 2 > cloud->capacity) {
            const enum ndt_status status =
                ndt_cloud_reserve(cloud, 2 * cloud->count + 65536, NDT_CLOUD_INTENSITY, err);
            if (status != NDT_OK)
                return status;
        }
        if (within(area, at_m) && sim_change_keeps(change, at_m))
            store(cloud, at_m, copied->intensity[i]);
        twin_of(change, at_m, twin_m);
        if (within(area, twin_m))
            store(cloud, twin_m, copied->intensity[i]);
    }
    return NDT_OK;
}

enum ndt_status sim_change_apply(const struct sim_change *change, struct ndt_cloud *cloud, struct ndt_error *err)
{
    static const struct sim_area everywhere = {{-1e9, -1e9}, {1e9, 1e9}};
    struct ndt_cloud before;
    if (!change->cut.cells && !change->copied.cells && !change->mirror)
        return NDT_OK;
    ndt_cloud_init(&before);
    enum ndt_status status = ndt_cloud_copy(&before, cloud, err);
    cloud->count = 0;
    for (size_t i = 0; i < before.count && status == NDT_OK; i++) {
        const double at_m[3] = {(double)before.x_m[i], (double)before.y_m[i], (double)before.z_m[i]};
        if (!sim_near_holds(&change->copied, at_m) && sim_change_keeps(change, at_m))
            store(cloud, at_m, before.intensity[i]);
    }
    if (status == NDT_OK && change->copied.cells)
        status = sim_change_copy(change, &before, &everywhere, cloud, err);
    for (size_t i = 0; change->mirror && i < cloud->count; i++)
        cloud->y_m[i] = (float)(2.0 * change->mirror_y_m - (double)cloud->y_m[i]);
    ndt_cloud_free(&before);
    return status;
}
