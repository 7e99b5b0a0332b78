/* Maps built of any points: two clouds are added, a third one is added and removed, which changes nothing. What was
 * built evaluates to finite numbers. The first bytes choose levels, rules, scale and origin; six more are a point.
 */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "ndt/backend.h"

enum { HEAD = 4, POINT_BYTES = 6, MOST_POINTS = 512 };

static struct ndt_error err;
static struct ndt_backend *backend;
static struct ndt_cloud clouds[3];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct ndt_backend_config config;
    (void)argc;
    (void)argv;
    ndt_backend_config_default(&config);
    config.threads = 1;
    FUZZ_REQUIRE(ndt_cpu_backend.open(&backend, &config, &err) == NDT_OK, "%s", err.text);
    for (int i = 0; i < 3; i++) {
        ndt_cloud_init(&clouds[i]);
        FUZZ_REQUIRE(ndt_cloud_reserve(&clouds[i], MOST_POINTS, 0, &err) == NDT_OK, "%s", err.text);
    }
    return 0;
}

static float coordinate(const uint8_t *bytes, double scale_m)
{
    static const float special_m[] = {NAN, INFINITY, -INFINITY, 3e38f, -1e30f, 1e-40f, 1e9f, 0.1f};
    const int16_t value = (int16_t)(bytes[0] | bytes[1] << 8);
    return bytes[1] == 0x80 ? special_m[bytes[0] % 8] : (float)(value * scale_m);
}

/* The points of all three clouds, one after the other. */
static void read_clouds(const uint8_t *data, size_t size)
{
    static const double scales_m[] = {1e-4, 1e-3, 0.01, 1, 100, 1e5},
                        origins_m[] = {0, 1024, 400384, -5e6, 1e9, 0.3};
    const double scale_m = scales_m[data[1] % 6];
    const size_t count = (size - HEAD) / POINT_BYTES;
    for (size_t c = 0; c < 3; c++) {
        clouds[c].count = 0;
        for (int k = 0; k < 3; k++)
            clouds[c].origin_m[k] = origins_m[(data[2] >> 2 * k & 3) + (c == 2 ? 2 : 0)];
    }
    for (size_t i = 0; i < count; i++) {
        struct ndt_cloud *cloud = &clouds[i * 3 / count];
        const uint8_t *point = data + HEAD + i * POINT_BYTES;
        if (cloud->count == MOST_POINTS)
            continue;
        cloud->x_m[cloud->count] = coordinate(point, scale_m);
        cloud->y_m[cloud->count] = coordinate(point + 2, scale_m);
        cloud->z_m[cloud->count++] = coordinate(point + 4, scale_m);
    }
}

static struct ndt_map_config read_config(const uint8_t *data)
{
    static const double leaves_m[] = {0.1, 1, 2, 4, 0.75, 100};
    struct ndt_map_config config;
    ndt_map_config_default(&config);
    config.threads = 1;
    config.level_count = 1 + data[0] % 3;
    for (size_t i = 0; i < config.level_count; i++)
        config.leaf_m[i] = leaves_m[(data[0] / 3 + i) % 6];
    config.min_points = data[3] & 1 ? 3 : 6;
    config.covariance = data[3] & 2 ? NDT_COVARIANCE_AUTOWARE : NDT_COVARIANCE_UNBIASED;
    return config;
}

static void evaluate(struct ndt_map *map)
{
    struct ndt_eval sums;
    struct ndt_eval_request request = {.p = {0.1, -0.2, 0.05, 0.01, 0.02, 0.3}};
    for (int k = 0; k < 3; k++)
        request.p[k] += clouds[0].origin_m[k] - map->origin_m[k];
    FUZZ_REQUIRE(backend->ops->set_map(backend, map, &err) == NDT_OK, "%s", err.text);
    FUZZ_REQUIRE(backend->ops->set_scan(backend, &clouds[0], &err) == NDT_OK, "%s", err.text);
    for (int i = 0; i < 4 * (int)map->level_count; i++) {
        request.level = i / 4;
        request.neighbours = (enum ndt_neighbours)(i % 4);
        FUZZ_REQUIRE(backend->ops->eval(backend, &request, &sums, &err) == NDT_OK, "%s", err.text);
        FUZZ_REQUIRE(isfinite(sums.score) && isfinite(sums.gradient[5]) && isfinite(sums.hessian[20]), "level %d",
                     request.level);
        FUZZ_REQUIRE(sums.pairs <= 27 * (double)clouds[0].count, "%g pairs", sums.pairs);
    }
    (void)backend->ops->set_map(backend, NULL, &err);
}

/* The map of the builder as it is; NULL where there is none. */
static struct ndt_map *build(const struct ndt_map_builder *builder)
{
    struct ndt_map *map;
    if (ndt_map_build(&map, builder, &err) != NDT_OK)
        return NULL;
    FUZZ_REQUIRE(ndt_map_identity(map) == map->id, "another identity");
    return map;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ndt_map_builder *builder;
    if (size < HEAD + 3 * POINT_BYTES)
        return 0;
    const struct ndt_map_config config = read_config(data);
    read_clouds(data, size);
    if (ndt_map_builder_create(&builder, &config, &err) != NDT_OK)
        return 0;
    (void)ndt_map_builder_add(builder, &clouds[0], &err);
    (void)ndt_map_builder_add(builder, &clouds[1], &err);
    const uint64_t points = ndt_map_builder_points(builder);
    struct ndt_map *before = build(builder); /* with points the origin is chosen */
    if (points > 0 && ndt_map_builder_add(builder, &clouds[2], &err) == NDT_OK)
        FUZZ_REQUIRE(ndt_map_builder_remove(builder, &clouds[2], &err) == NDT_OK, "%s", err.text);
    FUZZ_REQUIRE(ndt_map_builder_points(builder) == points, "other points");
    struct ndt_map *after = build(builder);
    FUZZ_REQUIRE(!before == !after && (!before || before->id == after->id), "another map");
    if (before)
        evaluate(before);
    ndt_map_release(before);
    ndt_map_release(after);
    ndt_map_builder_destroy(builder);
    return 0;
}
