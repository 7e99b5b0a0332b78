#include "kernel_cases.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "street_world.h"
#include "ndt/names.h"

/* ---- guarded inputs ---- */

enum { PAD = 16, GUARD_BYTE = 0xa5, ARRAYS = 4 };

static size_t round_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

/* The array ends where the unreadable page begins. */
static float *array_at(const struct guarded_cloud *guarded, int i, size_t padded)
{
    unsigned char *end = guarded->region + (size_t)i * guarded->stride + guarded->array_bytes;
    return (float *)(void *)(end - padded * sizeof(float));
}

static void fill(float *array, const float *source, size_t count, size_t padded)
{
    if (count)
        memcpy(array, source, count * sizeof(float));
    for (size_t i = count; i < padded; i++)
        array[i] = source[0];
}

static int protect_and_copy(struct guarded_cloud *guarded, size_t page)
{
    for (size_t i = 0; i < ARRAYS; i++) {
        unsigned char *readable = guarded->region + i * guarded->stride;
        memcpy(guarded->copy + i * guarded->array_bytes, readable, guarded->array_bytes);
        if (mprotect(readable + guarded->array_bytes, page, PROT_NONE) != 0)
            return 0;
    }
    return 1;
}

int guarded_cloud_make(struct guarded_cloud *guarded, const struct ndt_cloud *source)
{
    memset(guarded, 0, sizeof(*guarded));
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), padded = round_up(source->count, PAD);
    guarded->array_bytes = round_up(padded * sizeof(float) + 64, page);
    guarded->stride = guarded->array_bytes + page;
    guarded->region_bytes = ARRAYS * guarded->stride;
    void *region = mmap(NULL, guarded->region_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    guarded->copy = malloc(ARRAYS * guarded->array_bytes);
    guarded->region = region == MAP_FAILED ? NULL : region;
    if (!guarded->region || !guarded->copy) {
        guarded_cloud_free(guarded);
        return 0;
    }
    memset(guarded->region, GUARD_BYTE, guarded->region_bytes);
    guarded->cloud.count = source->count;
    guarded->cloud.capacity = padded;
    guarded->cloud.x_m = array_at(guarded, 0, padded);
    guarded->cloud.y_m = array_at(guarded, 1, padded);
    guarded->cloud.z_m = array_at(guarded, 2, padded);
    fill(guarded->cloud.x_m, source->x_m, source->count, padded);
    fill(guarded->cloud.y_m, source->y_m, source->count, padded);
    fill(guarded->cloud.z_m, source->z_m, source->count, padded);
    if (source->time_s) {
        guarded->cloud.fields = NDT_CLOUD_TIME;
        guarded->cloud.time_s = array_at(guarded, 3, padded);
        fill(guarded->cloud.time_s, source->time_s, source->count, padded);
    }
    return protect_and_copy(guarded, page);
}

void guarded_cloud_free(struct guarded_cloud *guarded)
{
    if (guarded->region)
        munmap(guarded->region, guarded->region_bytes);
    free(guarded->copy);
    memset(guarded, 0, sizeof(*guarded));
}

int guarded_cloud_intact(const struct guarded_cloud *guarded)
{
    for (size_t i = 0; i < ARRAYS; i++)
        if (memcmp(guarded->region + i * guarded->stride, guarded->copy + i * guarded->array_bytes,
                   guarded->array_bytes) != 0)
            return 0;
    return 1;
}

void guarded_cloud_spoil(struct guarded_cloud *guarded)
{
    for (size_t i = 0; i < guarded->cloud.count; i++)
        guarded->cloud.x_m[i] = guarded->cloud.y_m[i] = guarded->cloud.z_m[i] = NAN;
    for (size_t i = 0; guarded->cloud.time_s && i < guarded->cloud.count; i++)
        guarded->cloud.time_s[i] = 1e9f;
}

void guarded_cloud_restore(struct guarded_cloud *guarded)
{
    for (size_t i = 0; i < ARRAYS; i++)
        memcpy(guarded->region + i * guarded->stride, guarded->copy + i * guarded->array_bytes,
               guarded->array_bytes);
}

uint64_t guard_hash(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    hash ^= 0xcbf29ce484222325u;
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), bytes += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes, sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    for (; size > 0; size--)
        hash = (hash ^ *bytes++) * 0x100000001b3u;
    return hash;
}

uint64_t guard_hash_map(const struct ndt_map *map)
{
    uint64_t hash = guard_hash(0, map->origin_m, sizeof(map->origin_m));
    for (size_t i = 0; i < map->level_count; i++) {
        const struct ndt_map_level *level = &map->levels[i];
        hash = guard_hash(hash, level->voxels, level->voxel_count * sizeof(*level->voxels));
        hash = guard_hash(hash, level->bricks, level->brick_slots * sizeof(*level->bricks));
        hash = guard_hash(hash, level->cells, (size_t)level->brick_count * 512u * sizeof(*level->cells));
        hash = guard_hash(hash, level->lists, level->list_words * sizeof(*level->lists));
    }
    return hash;
}

/* ---- cases ---- */

enum { MODES = 4, MAP_POINTS = 30000, THIN_CLUSTERS = 64, THIN_SHAPES = 8, THIN_POINTS = 24 };
static const double LENGTH_M = 40.0;
static const double SPREAD_M = 20000.0; /* too far for a dense index of 1 m cells */
static const double AWAY_M = 5000.0;
static const double BEYOND_M = 16777216.0; /* 2^24 cells of 1 m: keys of an index must not wrap around */
static const double UTM_M[3] = {1000123.0, 5000321.5, 412.25};

static const size_t sizes[] = {0, 1, 31, 32, 33, 255, 256, 257, 1000, 100000};
static const size_t largest_of_many = 20000; /* points that see up to 27 voxels each cost the reference seconds */
static const double leaves_m[] = {4.0, 2.0, 1.0, 0.7};
static const char *const pose_names[] = {"drive", "turned", "steep", "gimbal", "upside", "plain", "away", "beyond"};
static const char *const map_names[] = {"street", "seeded", "utm", "spread", "thin", "empty"};
static const char *const point_names[] = {"scan", "faces", "outside", "nonfinite", "huge", "means"};
static const char *const time_names[] = {"sweep", "none", "nonfinite"};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), LEAVES = sizeof(leaves_m) / sizeof(leaves_m[0]) };

static void make_size(size_t item, struct kernel_case *out)
{
    out->size = sizes[item];
    if ((out->neighbours == NDT_DIRECT27 || out->neighbours == NDT_RADIUS) && out->size > largest_of_many)
        out->size = largest_of_many;
    snprintf(out->name, sizeof(out->name), "sizes/%zu", out->size);
}

static void make_pose(size_t item, struct kernel_case *out)
{
    out->pose = (enum kernel_pose)item;
    if (out->pose == KERNEL_POSE_BEYOND) {
        out->map = KERNEL_MAP_SPREAD;
        out->leaf_m = 1.0;
    }
    snprintf(out->name, sizeof(out->name), "poses/%s", pose_names[item]);
}

static void make_leaf(size_t item, struct kernel_case *out)
{
    out->leaf_m = leaves_m[item];
    snprintf(out->name, sizeof(out->name), "leaves/%g", out->leaf_m);
}

static void make_map(size_t item, struct kernel_case *out)
{
    out->map = (enum kernel_map)(item / 2);
    out->leaf_m = item % 2 ? 1.0 : 2.0;
    snprintf(out->name, sizeof(out->name), "maps/%s-%g", map_names[item / 2], out->leaf_m);
}

static void make_points(size_t item, struct kernel_case *out)
{
    out->points = (enum kernel_points)(item / 2);
    out->leaf_m = item % 2 ? 1.0 : 2.0;
    out->pose = out->points == KERNEL_POINTS_FACES ? KERNEL_POSE_PLAIN : KERNEL_POSE_DRIVE;
    snprintf(out->name, sizeof(out->name), "points/%s-%g", point_names[item / 2], out->leaf_m);
}

static void make_times(size_t item, struct kernel_case *out)
{
    out->times = (enum kernel_times)item;
    snprintf(out->name, sizeof(out->name), "times/%s", time_names[item]);
}

static const struct group {
    size_t count;
    void (*make)(size_t item, struct kernel_case *out);
} groups[] = {
    {SIZES, make_size},
    {KERNEL_POSES, make_pose},
    {LEAVES, make_leaf},
    {2 * KERNEL_MAPS, make_map},
    {2 * KERNEL_POINT_KINDS, make_points},
    {KERNEL_TIME_KINDS, make_times},
};

int kernel_case_at(size_t i, struct kernel_case *out)
{
    for (size_t k = 0; k < sizeof(groups) / sizeof(groups[0]); k++) {
        if (i >= groups[k].count * MODES) {
            i -= groups[k].count * MODES;
            continue;
        }
        *out = (struct kernel_case){.leaf_m = 2.0, .neighbours = (enum ndt_neighbours)(i % MODES), .size = 257};
        groups[k].make(i / MODES, out);
        const size_t used = strlen(out->name);
        snprintf(out->name + used, sizeof(out->name) - used, "/%s", ndt_neighbours_name(out->neighbours));
        return 1;
    }
    return 0;
}

static struct world street(uint64_t seed)
{
    return (struct world){WORLD_STREET, seed, LENGTH_M, 0.02};
}

static void put(struct ndt_cloud *cloud, size_t i, const double x[3])
{
    cloud->x_m[i] = (float)x[0];
    cloud->y_m[i] = (float)x[1];
    cloud->z_m[i] = (float)x[2];
}

/* Clusters of every degenerate shape, one per cell of 4 m: flat, straight, a single place, nearly that, tilted and
 * flat, round, a needle along no axis, and the corners of an octahedron, of which all eigenvalues are equal. */
static void thin_point(struct ndt_random *random, size_t cluster, size_t number, double out[3])
{
    double d[3];
    for (int i = 0; i < 3; i++)
        d[i] = ndt_random_between(random, -0.4, 0.4);
    const double tilted = 0.5 * d[0] + 0.3 * d[1];
    const double corner = number % 2 ? 0.25 : -0.25;
    const double keep[THIN_SHAPES][3] = {
        {d[0], d[1], 0},
        {d[0], 0, 0},
        {0, 0, 0},
        {1e-4 * d[0], 1e-4 * d[1], 1e-5 * d[2]},
        {d[0], d[1], tilted},
        {d[0], d[1], d[2]},
        {d[0], 0.7 * d[0] + 1e-3 * d[1], 0.4 * d[0]},
        {number % 6 / 2 == 0 ? corner : 0, number % 6 / 2 == 1 ? corner : 0, number % 6 / 2 == 2 ? corner : 0}};
    out[0] = 4.0 * (double)(cluster % 10) + 2.5 + keep[cluster % THIN_SHAPES][0];
    out[1] = 4.0 * (double)(cluster / 10) - 10.5 + keep[cluster % THIN_SHAPES][1];
    out[2] = 0.5 + keep[cluster % THIN_SHAPES][2];
}

static enum ndt_status thin_map(struct ndt_cloud *cloud, uint64_t seed, struct ndt_error *err)
{
    enum ndt_status status = ndt_cloud_reserve(cloud, THIN_CLUSTERS * THIN_POINTS, 0, err);
    if (status != NDT_OK)
        return status;
    struct ndt_random random = {seed};
    double x[3];
    for (size_t i = 0; i < THIN_CLUSTERS * THIN_POINTS; i++) {
        thin_point(&random, i / THIN_POINTS, i, x);
        put(cloud, i, x);
    }
    cloud->count = THIN_CLUSTERS * THIN_POINTS;
    return NDT_OK;
}

/* The street twice: here, and too far away for one dense index. */
static enum ndt_status spread_map(struct ndt_cloud *cloud, const struct world *world, struct ndt_error *err)
{
    static const double zero[3];
    enum ndt_status status = world_map(cloud, world, MAP_POINTS, zero, err);
    for (size_t i = 0; status == NDT_OK && i < cloud->count; i += 2) {
        cloud->x_m[i] += (float)SPREAD_M;
        cloud->y_m[i] += (float)SPREAD_M;
    }
    return status;
}

/* Points too few to make a voxel. */
static enum ndt_status empty_map(struct ndt_cloud *cloud, struct ndt_error *err)
{
    enum ndt_status status = ndt_cloud_reserve(cloud, 3, 0, err);
    for (size_t i = 0; status == NDT_OK && i < 3; i++)
        put(cloud, i, (double[3]){10.0 * (double)i, 0, 0});
    if (status == NDT_OK)
        cloud->count = 3;
    return status;
}

static enum ndt_status map_cloud(struct ndt_cloud *cloud, enum kernel_map kind, uint64_t seed,
                                 struct ndt_error *err)
{
    static const double zero[3];
    const struct world world = street(seed);
    switch (kind) {
    case KERNEL_MAP_UTM:
        return world_map(cloud, &world, MAP_POINTS, UTM_M, err);
    case KERNEL_MAP_SPREAD:
        return spread_map(cloud, &world, err);
    case KERNEL_MAP_THIN:
        return thin_map(cloud, seed, err);
    case KERNEL_MAP_EMPTY:
        return empty_map(cloud, err);
    default:
        return world_map(cloud, &world, MAP_POINTS, zero, err);
    }
}

static enum ndt_status map_of(struct kernel_maps *maps, enum kernel_map kind, struct ndt_map **out,
                              struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    if (!maps->made[kind]) {
        struct ndt_map_config config;
        ndt_map_config_default(&config);
        config.level_count = LEAVES;
        memcpy(config.leaf_m, leaves_m, sizeof(leaves_m));
        config.covariance = kind == KERNEL_MAP_SEEDED ? NDT_COVARIANCE_AUTOWARE : NDT_COVARIANCE_UNBIASED;
        struct ndt_cloud cloud;
        ndt_cloud_init(&cloud);
        status = map_cloud(&cloud, kind, maps->seed, err);
        if (status == NDT_OK)
            status = ndt_map_from_cloud(&maps->made[kind], &config, &cloud, err);
        ndt_cloud_free(&cloud);
    }
    *out = maps->made[kind];
    return status;
}

void kernel_maps_free(struct kernel_maps *maps)
{
    for (int i = 0; i < KERNEL_MAPS; i++) {
        ndt_map_release(maps->made[i]);
        maps->made[i] = NULL;
    }
}

/* The pose in the world, as optimiser vector. */
static void world_vector(enum kernel_pose kind, enum kernel_map map, double p[6])
{
    static const double angles[KERNEL_POSES][3] = {{0.02, -0.03, 0.3},    {-0.01, 0.02, 2.5}, {1.2, -1.0, 3.0},
                                                   {0.4, 1.570795, -0.7}, {3.1, 0.1, -2.0},   {0, 0, 0},
                                                   {0.02, -0.03, 0.3},    {0.02, -0.03, 0.3}};
    static const double position_m[3] = {20.5, 0.25, 2.125};
    for (int i = 0; i < 3; i++) {
        p[i] = position_m[i] + (kind == KERNEL_POSE_AWAY ? AWAY_M : kind == KERNEL_POSE_BEYOND ? BEYOND_M : 0.0);
        p[3 + i] = angles[kind][i];
        if (map == KERNEL_MAP_UTM)
            p[i] += UTM_M[i];
        if (map == KERNEL_MAP_SPREAD && i < 2)
            p[i] += SPREAD_M;
    }
}

/* Points of the sensor frame whose place in the map is on faces, edges and corners of cells; the pose turns
 * nothing and all numbers are short, so every backend must see them exactly there. */
static void face_points(struct ndt_cloud *cloud, struct ndt_random *random, size_t count, double leaf_m)
{
    static const double position_m[3] = {20.5, 0.25, 2.125};
    for (size_t i = 0; i < count; i++) {
        double x[3];
        for (size_t k = 0; k < 3; k++) {
            const double near_m = k == 0   ? ndt_random_between(random, 5, 35)
                                  : k == 1 ? ndt_random_between(random, -10, 10)
                                           : ndt_random_between(random, -1, 6);
            const int on_face = k == i % 3 || (i % 7 < 2 && k == (i + 1) % 3) || i % 7 == 0;
            x[k] = on_face ? leaf_m * round(near_m / leaf_m) : round(near_m * 64.0) / 64.0;
            x[k] -= position_m[k];
        }
        put(cloud, i, x);
    }
}

static void far_points(struct ndt_cloud *cloud, struct ndt_random *random, size_t count, double scale_m)
{
    for (size_t i = 0; i < count; i++) {
        double x[3];
        for (int k = 0; k < 3; k++) {
            const double sign = ndt_random_next(random) & 1 ? 1.0 : -1.0;
            x[k] = sign * scale_m * ndt_random_between(random, 0.5, 1.0);
        }
        put(cloud, i, x);
    }
}

/* Every third point is spoilt in one or more coordinates. */
static void spoil_points(struct ndt_cloud *cloud)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < cloud->count; i += 3) {
        float *const axis[3] = {cloud->x_m, cloud->y_m, cloud->z_m};
        axis[i / 3 % 3][i] = bad[i / 9 % 3];
        if (i % 2)
            axis[(i / 3 + 1) % 3][i] = bad[i / 3 % 3];
    }
}

static void huge_points(struct ndt_cloud *cloud, struct ndt_random *random, size_t count)
{
    static const float big[] = {1e9f, 2.2e9f, 5e9f, 1e19f, 1e30f, FLT_MAX};
    far_points(cloud, random, count, 1000.0);
    for (size_t i = 0; i < count; i++) {
        float *const axis[3] = {cloud->x_m, cloud->y_m, cloud->z_m};
        axis[i % 3][i] = (i & 1 ? -1.0f : 1.0f) * big[i % 6];
    }
}

/* The means of voxels (to float), seen from the pose: q = 0 up to rounding. */
static void mean_points(struct ndt_cloud *cloud, const struct ndt_map_level *level, const double p[6], size_t count)
{
    const struct ndt_pose T_map_sensor = ndt_pose_from_euler(p);
    const struct ndt_pose T_sensor_map = ndt_pose_inverse(&T_map_sensor);
    for (size_t i = 0; i < count; i++) {
        const struct ndt_voxel *voxel = &level->voxels[1 + i * 7 % (level->voxel_count - 1)];
        double mean_m[3], x[3];
        for (int k = 0; k < 3; k++)
            mean_m[k] = voxel->cell[k] * level->leaf_m + (double)voxel->mean_m[k];
        ndt_pose_apply(&T_sensor_map, mean_m, x);
        put(cloud, i, x);
    }
}

static void thin_scan(struct ndt_cloud *cloud, struct ndt_random *random, const double p[6], size_t count)
{
    const struct ndt_pose T_world_sensor = ndt_pose_from_euler(p);
    const struct ndt_pose T_sensor_world = ndt_pose_inverse(&T_world_sensor);
    for (size_t i = 0; i < count; i++) {
        double point[3], x[3];
        const size_t cluster = (size_t)(ndt_random_next(random) % THIN_CLUSTERS);
        thin_point(random, cluster, i, point);
        for (int k = 0; k < 3; k++)
            point[k] += (cluster % THIN_SHAPES == 3 ? 1e-5 : 0.02) * world_normal(random);
        ndt_pose_apply(&T_sensor_world, point, x);
        put(cloud, i, x);
    }
}

static enum ndt_status street_scan(struct ndt_cloud *cloud, uint64_t seed, const struct kernel_case *item,
                                   struct ndt_error *err)
{
    struct world world = street(seed);
    world.noise_m = 0.08;
    double p[6];
    const int off_map = item->pose == KERNEL_POSE_AWAY || item->pose == KERNEL_POSE_BEYOND;
    world_vector(off_map ? KERNEL_POSE_DRIVE : item->pose, KERNEL_MAP_STREET, p);
    const struct ndt_pose T_world_sensor = ndt_pose_from_euler(p);
    return world_scan(cloud, &world, seed, item->size, &T_world_sensor, 25.0, err);
}

static enum ndt_status make_scan(struct ndt_cloud *cloud, const struct kernel_inputs *inputs, uint64_t seed,
                                 const struct kernel_case *item, struct ndt_error *err)
{
    enum ndt_status status = street_scan(cloud, seed, item, err);
    if (status != NDT_OK)
        return status;
    struct ndt_random random = {seed + 17u};
    double p[6];
    world_vector(item->pose, KERNEL_MAP_STREET, p);
    if (item->map == KERNEL_MAP_THIN)
        thin_scan(cloud, &random, p, item->size);
    else if (item->points == KERNEL_POINTS_FACES)
        face_points(cloud, &random, item->size, item->leaf_m);
    else if (item->points == KERNEL_POINTS_OUTSIDE)
        far_points(cloud, &random, item->size, 500.0);
    else if (item->points == KERNEL_POINTS_NONFINITE)
        spoil_points(cloud);
    else if (item->points == KERNEL_POINTS_HUGE)
        huge_points(cloud, &random, item->size);
    else if (item->points == KERNEL_POINTS_MEANS)
        mean_points(cloud, &inputs->map->levels[inputs->level], inputs->p, item->size);
    return NDT_OK;
}

/* Pose of an evaluation: that of the scan, moved a little, relative to the origin of the map. */
static void eval_vector(const struct kernel_case *item, const struct ndt_map *map, double p[6])
{
    static const double off[6] = {0.11, -0.07, 0.05, 0.004, -0.003, 0.006};
    const int keep = item->pose == KERNEL_POSE_PLAIN || item->map == KERNEL_MAP_THIN;
    world_vector(item->pose, item->map, p);
    for (int i = 0; i < 6; i++)
        p[i] += (keep ? 0.0 : off[i]) - (i < 3 ? map->origin_m[i] : 0.0);
}

/* Within a sweep; of the others every third is not finite. */
static enum ndt_status add_times(struct ndt_cloud *cloud, uint64_t seed, enum kernel_times times,
                                 struct ndt_error *err)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct ndt_random random = {seed + 29u};
    if (times == KERNEL_TIMES_NONE)
        return NDT_OK;
    enum ndt_status status = ndt_cloud_reserve(cloud, cloud->count, NDT_CLOUD_TIME, err);
    for (size_t i = 0; status == NDT_OK && i < cloud->count; i++) {
        cloud->time_s[i] = (float)ndt_random_between(&random, -0.03, 0.07);
        if (times == KERNEL_TIMES_NONFINITE && i % 3 == 0)
            cloud->time_s[i] = bad[i / 3 % 3];
    }
    return status;
}

enum ndt_status kernel_inputs_make(struct kernel_inputs *out, struct kernel_maps *maps,
                                   const struct kernel_case *item, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    enum ndt_status status = map_of(maps, item->map, &out->map, err);
    if (status != NDT_OK)
        return status;
    out->level = ndt_map_find_level(out->map, item->leaf_m);
    if (out->level < 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: the map has no level of %g m", item->name, item->leaf_m);
    out->exact = item->points == KERNEL_POINTS_FACES;
    eval_vector(item, out->map, out->p);
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    status = make_scan(&cloud, out, maps->seed, item, err);
    if (status == NDT_OK)
        status = add_times(&cloud, maps->seed, item->times, err);
    if (status == NDT_OK && !guarded_cloud_make(&out->scan, &cloud))
        status = ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for the scan", item->name);
    ndt_cloud_free(&cloud);
    return status;
}

void kernel_inputs_free(struct kernel_inputs *inputs)
{
    guarded_cloud_free(&inputs->scan);
}
