#include "sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

/* Common devices: 16 beams over +-15 deg, 32 over -30.67..+10.67 deg, 64 over -24.8..+2 deg, 128 over +-22.5 deg.
 */
int sim_lidar_elevations(int beams, double elevation_rad[SIM_MAX_BEAMS])
{
    static const struct {
        int beams;
        double low_deg, high_deg;
    } devices[] = {{16, -15.0, 15.0}, {32, -30.67, 10.67}, {64, -24.8, 2.0}, {128, -22.5, 22.5}};
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        if (devices[i].beams != beams)
            continue;
        const double step = (devices[i].high_deg - devices[i].low_deg) / (beams - 1);
        for (int k = 0; k < beams; k++)
            elevation_rad[k] = (devices[i].low_deg + step * k) * PI / 180.0;
        return 1;
    }
    return 0;
}

static void add_point(struct ndt_cloud *cloud, const double point_m[3], double time_s, double intensity)
{
    const size_t i = cloud->count++;
    cloud->x_m[i] = (float)point_m[0];
    cloud->y_m[i] = (float)point_m[1];
    cloud->z_m[i] = (float)point_m[2];
    cloud->intensity[i] = (float)intensity;
    if (cloud->time_s)
        cloud->time_s[i] = (float)time_s;
}

/* Fires one beam: returns 1 and the measured range, or 0 when there is no return. */
static int measure(const struct sim_lidar *lidar, struct sim_caster *caster, const struct sim_ray *ray,
                   struct ndt_random *random, struct sim_hit *hit)
{
    if (!sim_cast(caster, ray, lidar->max_range_m, random, hit))
        return 0;
    /* Returns of distant and dark surfaces are lost first. */
    const double faded = hit->range_m / lidar->max_range_m;
    const double lost = lidar->dropout + (1.0 - lidar->dropout) * faded * faded * (1.0 - hit->reflectance);
    if (ndt_random_unit(random) < lost)
        return 0;
    hit->range_m += lidar->noise_m * ndt_random_normal(random);
    return hit->range_m >= lidar->min_range_m;
}

/* Directions of the beams in the plane of a column. */
struct beam_fan {
    int count;
    double level[SIM_MAX_BEAMS], up[SIM_MAX_BEAMS];
};

static int open_fan(struct beam_fan *fan, int beams)
{
    double elevation_rad[SIM_MAX_BEAMS];
    if (!sim_lidar_elevations(beams, elevation_rad))
        return 0;
    fan->count = beams;
    for (int k = 0; k < beams; k++) {
        fan->level[k] = cos(elevation_rad[k]);
        fan->up[k] = sin(elevation_rad[k]);
    }
    return 1;
}

/* Keeps the movers that a column towards (ux, uy) can hit; margin and spread allow for the tilt of the base. */
static uint32_t movers_ahead(struct sim_solid *movers, uint32_t count, const double origin_m[3], double ux,
                             double uy, double spread)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const double dx = movers[i].centre_m[0] - origin_m[0], dy = movers[i].centre_m[1] - origin_m[1];
        const double ahead = dx * ux + dy * uy, aside = fabs(dx * uy - dy * ux);
        if (ahead > -3.0 && aside < 3.0 + spread * ahead)
            movers[kept++] = movers[i];
    }
    return kept;
}

/* Pose of a sensor in the local frame. */
static void sensor_frame(const struct sim_mount *mount, const struct sim_drive *drive, double t_s, double R[9],
                         double t_m[3])
{
    double B[9];
    sim_drive_frame(drive, t_s, B, t_m);
    for (int i = 0; i < 3; i++) {
        const double *row = B + 3 * i;
        for (int k = 0; k < 3; k++)
            R[3 * i + k] = row[0] * mount->R[k] + row[1] * mount->R[3 + k] + row[2] * mount->R[6 + k];
        t_m[i] += row[0] * mount->t_m[0] + row[1] * mount->t_m[1] + row[2] * mount->t_m[2];
    }
}

/* All beams at one azimuth, from the pose of the sensor at that time. */
static void fire_column(const struct sim_lidar *lidar, const struct sim_drive *drive, struct sim_caster *caster,
                        const struct beam_fan *fan, const struct sim_part *part, int column,
                        struct ndt_random *random, struct ndt_cloud *cloud)
{
    const struct sim_mount *mount = &lidar->mounts[part->sensor];
    const double turned = (column + 0.5) / lidar->columns; /* fraction of the turn */
    const double after_s = (turned - 0.5) / lidar->rate_hz, t_s = part->middle_s + after_s;
    const double ca = cos(PI - 2.0 * PI * turned), sa = sin(PI - 2.0 * PI * turned);
    struct sim_solid movers[SIM_MAX_MOVERS];
    struct sim_ray ray;
    double R[9];
    sensor_frame(mount, drive, t_s, R, ray.origin_m);
    uint32_t count = sim_drive_traffic(drive, t_s, lidar->seed, movers);
    if (mount->R[8] > 0.9999) /* upright: a column is a vertical plane */
        count = movers_ahead(movers, count, ray.origin_m, R[0] * ca + R[1] * sa, R[3] * ca + R[4] * sa,
                             drive->walk ? 0.3 : 0.08);
    sim_caster_set_movers(caster, movers, count);
    for (int beam = 0; beam < fan->count; beam++) {
        const double local[3] = {fan->level[beam] * ca, fan->level[beam] * sa, fan->up[beam]};
        for (int k = 0; k < 3; k++)
            ray.direction[k] = R[3 * k] * local[0] + R[3 * k + 1] * local[1] + R[3 * k + 2] * local[2];
        struct sim_hit hit;
        if (!measure(lidar, caster, &ray, random, &hit))
            continue;
        const double point_m[3] = {hit.range_m * local[0], hit.range_m * local[1], hit.range_m * local[2]};
        const double intensity = lidar->mark_movers && hit.is_mover ? SIM_MOVER_INTENSITY : hit.reflectance;
        add_point(cloud, point_m, after_s - part->stamp_s, intensity);
    }
    sim_caster_set_movers(caster, NULL, 0);
}

struct ndt_random sim_lidar_random(const struct sim_lidar *lidar, uint64_t sweep)
{
    return ndt_random_stream(lidar->seed, 8, sweep);
}

enum ndt_status sim_lidar_scan(const struct sim_lidar *lidar, const struct sim_drive *drive,
                               struct sim_caster *caster, const struct sim_part *part, struct ndt_random *random,
                               struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct beam_fan fan;
    const int first = lidar->columns * part->sensor / lidar->sensors;
    const int end = lidar->columns * (part->sensor + 1) / lidar->sensors;
    const size_t rays = (size_t)lidar->beams * (size_t)(end - first);
    if (!open_fan(&fan, lidar->beams))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "no LiDAR has %d beams; 16, 32, 64 and 128 are known", lidar->beams);
    cloud->count = 0;
    enum ndt_status status = ndt_cloud_reserve(cloud, rays, NDT_CLOUD_INTENSITY | NDT_CLOUD_TIME, err);
    for (int column = first; column < end && status == NDT_OK; column++)
        if (fabs((column + 0.5) / lidar->columns - 0.5) * 2.0 * PI <= 0.5 * lidar->view_rad)
            fire_column(lidar, drive, caster, &fan, part, column, random, cloud);
    return status;
}

/* ---- survey ---- */

/* The occupied cells: an open-addressing set of keys, at most half full. */
struct cell_set {
    uint64_t *keys; /* 0 = free */
    size_t capacity, count;
};

static size_t find_slot(const struct cell_set *set, uint64_t key)
{
    struct ndt_random hash = {key};
    size_t slot = (size_t)ndt_random_next(&hash) & (set->capacity - 1);
    while (set->keys[slot] != 0 && set->keys[slot] != key)
        slot = (slot + 1) & (set->capacity - 1);
    return slot;
}

static int grow_set(struct cell_set *set)
{
    struct cell_set grown = {NULL, set->capacity ? 2 * set->capacity : (size_t)1 << 16, set->count};
    grown.keys = calloc(grown.capacity, sizeof(*grown.keys));
    if (!grown.keys)
        return 0;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->keys[i] != 0)
            grown.keys[find_slot(&grown, set->keys[i])] = set->keys[i];
    free(set->keys);
    *set = grown;
    return 1;
}

/* Returns 1 for a new cell, 0 for a known one, -1 without memory. */
static int add_cell(struct cell_set *set, const double point_m[3], double spacing_m)
{
    if (2 * (set->count + 1) > set->capacity && !grow_set(set))
        return -1;
    uint64_t key = 1; /* never 0 */
    for (int k = 0; k < 3; k++)
        key = key << 21 | ((uint64_t)(int64_t)floor(point_m[k] / spacing_m) & 0x1fffff);
    const size_t slot = find_slot(set, key);
    if (set->keys[slot] == key)
        return 0;
    set->keys[slot] = key;
    set->count++;
    return 1;
}

/* A random standpoint on foot in a plan, or along the course. */
static void stand(const struct sim_survey *survey, const struct sim_drive *drive, double begin_m, double end_m,
                  struct ndt_random *random, double at_m[3])
{
    if (survey->plan) {
        sim_plan_place(survey->plan, random, at_m);
        return;
    }
    const enum sim_place place = drive->course->place;
    const double reach_m = place == SIM_CORRIDOR || place == SIM_SHELVES ? 0.8 : 1.5;
    const double s_m = ndt_random_between(random, begin_m, end_m);
    const double left_m = ndt_random_between(random, drive->walk && reach_m > 1.0 ? -4.8 : -reach_m, reach_m);
    const struct sim_course_point at = sim_course_beside(drive->course, s_m, left_m);
    at_m[0] = at.x_m;
    at_m[1] = at.y_m;
    at_m[2] = sim_ground_height(drive->ground, at.x_m, at.y_m, NULL);
}

/* Casts one ray from a random standpoint; returns 1 and the surveyed point when it hits. */
static int survey_ray(const struct sim_survey *survey, const struct sim_drive *drive, struct sim_caster *caster,
                      double begin_m, double end_m, struct ndt_random *random, double point_m[3], float *intensity)
{
    struct sim_ray ray;
    struct sim_hit hit;
    stand(survey, drive, begin_m, end_m, random, ray.origin_m);
    const double azimuth = ndt_random_between(random, -PI, PI);
    const double elevation = ndt_random_between(random, -0.7, 0.85);
    ray.origin_m[2] += ndt_random_between(random, 1.0, 2.2);
    ray.direction[0] = cos(elevation) * cos(azimuth);
    ray.direction[1] = cos(elevation) * sin(azimuth);
    ray.direction[2] = sin(elevation);
    if (!sim_cast(caster, &ray, survey->range_m, random, &hit))
        return 0;
    for (int k = 0; k < 3; k++)
        point_m[k] = ray.origin_m[k] + hit.range_m * ray.direction[k] + survey->noise_m * ndt_random_normal(random);
    *intensity = hit.reflectance;
    return 1;
}

enum ndt_status sim_survey_run(const struct sim_survey *survey, const struct sim_drive *drive,
                               struct sim_caster *caster, double begin_m, double end_m, struct ndt_cloud *cloud,
                               struct ndt_error *err)
{
    const size_t batch = 50000, most = (size_t)100000000;
    struct ndt_random random = ndt_random_stream(survey->seed, 9, 0);
    struct cell_set cells = {NULL, 0, 0};
    struct sim_solid movers[SIM_MAX_MOVERS];
    enum ndt_status status = NDT_OK;
    cloud->count = 0;
    /* The survey ends when less than a tenth of the rays of a batch hit a new cell. */
    for (size_t rays = 0, fresh = batch; fresh > batch / 10 && rays < most && status == NDT_OK; rays += batch) {
        const size_t before = cloud->count;
        const size_t room = before + batch > cloud->capacity ? 2 * before + batch : before + batch;
        status = ndt_cloud_reserve(cloud, room, NDT_CLOUD_INTENSITY, err);
        for (size_t i = 0; i < batch && status == NDT_OK; i++) {
            double point_m[3];
            if (survey->people && i % 100 == 0)
                sim_caster_set_movers(caster, movers,
                                      sim_people_at(survey->people, 1e-4 * (double)(rays + i), movers));
            float intensity;
            if (!survey_ray(survey, drive, caster, begin_m, end_m, &random, point_m, &intensity))
                continue;
            const int added = add_cell(&cells, point_m, survey->spacing_m);
            if (added < 0)
                status = ndt_fail(err, NDT_ERR_MEMORY, "no memory for a survey of %zu cells", cells.count);
            else if (added)
                add_point(cloud, point_m, 0.0, intensity);
        }
        fresh = cloud->count - before;
    }
    sim_caster_set_movers(caster, NULL, 0);
    free(cells.keys);
    return status;
}
