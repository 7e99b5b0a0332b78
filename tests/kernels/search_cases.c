#include "search_cases.h"

#include <stdio.h>
#include <string.h>

#include "check_harness.h"
#include "street_world.h"

static const double SENSOR_M = 1.7; /* above the ground */

static void drop_ground(struct ndt_cloud *scan)
{
    size_t kept = 0;
    for (size_t i = 0; i < scan->count; i++) {
        if ((double)scan->z_m[i] < 0.5 - SENSOR_M)
            continue;
        scan->x_m[kept] = scan->x_m[i];
        scan->y_m[kept] = scan->y_m[i];
        scan->z_m[kept++] = scan->z_m[i];
    }
    scan->count = kept;
}

int search_case_make(struct search_case *out, double length_m, int has_ground)
{
    static const double origin_m[3] = {-1234.5, 77.25, 12};
    const struct world world = {WORLD_STREET, 5, length_m, 0.02};
    struct ndt_pose T_world_sensor = world_pose(&world, 0.4, 2.1);
    struct ndt_map_config config;
    struct ndt_cloud cloud;
    struct ndt_error err = {""};
    *out = (struct search_case){0};
    ndt_map_config_default(&config);
    config.leaf_m[0] = 1;
    config.leaf_m[1] = 2;
    config.level_count = 2;
    ndt_cloud_init(&cloud);
    ndt_cloud_init(&out->scan);
    enum ndt_status status = world_map(&cloud, &world, (size_t)(length_m * 1500), origin_m, &err);
    if (status == NDT_OK)
        status = ndt_map_from_cloud(&out->map, &config, &cloud, &err);
    if (status == NDT_OK)
        status = ndt_field_build(&out->field, out->map, &err);
    if (status == NDT_OK)
        status = world_scan(&out->scan, &world, 1, 20000, &T_world_sensor, 45, &err);
    ndt_cloud_free(&cloud);
    if (!has_ground)
        drop_ground(&out->scan);
    out->truth = T_world_sensor;
    for (int k = 0; k < 3; k++)
        out->truth.t_m[k] += origin_m[k];
    if (status != NDT_OK)
        check_expect(0, "a street with its field", err.text);
    return status == NDT_OK;
}

void search_case_free(struct search_case *one)
{
    ndt_field_release(one->field);
    ndt_map_release(one->map);
    ndt_cloud_free(&one->scan);
}

struct ndt_search *search_case_open(const struct search_case *one, const struct ndt_dense_ops *engine,
                                    const char *isa)
{
    const struct ndt_search_config config = {.threads = 1, .isa = isa, .engine = engine};
    struct ndt_search *search = NULL;
    struct ndt_error err = {""};
    enum ndt_status status = ndt_search_create(&search, &config, &err);
    if (status == NDT_OK)
        status = ndt_search_set_map(search, one->map, one->field, &err);
    if (status == NDT_OK)
        return search;
    check_expect(0, "a search opens", err.text);
    ndt_search_destroy(search);
    return NULL;
}

int search_case_run(const struct search_case *one, struct ndt_search *search, enum ndt_search_tier tier,
                    uint32_t blocks, struct ndt_search_result *out)
{
    struct ndt_search_params params;
    struct ndt_search_region region = {.has_position = 1, .radius_m = 30, .has_heading = 1, .heading_rad = 2.2};
    struct ndt_error err = {""};
    ndt_search_params_default(&params);
    params.tier = tier;
    if (blocks > 0)
        params.tiers[tier].blocks = blocks;
    region.heading_reach_rad = 0.4;
    memcpy(region.position_m, one->truth.t_m, sizeof(region.position_m));
    region.position_m[0] += 11;
    if (ndt_search_run(search, &params, &one->scan, NULL, tier == NDT_SEARCH_REGION ? &region : NULL, NULL, out,
                       &err) == NDT_OK)
        return 1;
    check_expect(0, "a search runs", err.text);
    return 0;
}

int search_case_same(const struct ndt_search_result *a, const struct ndt_search_result *b, char *text, size_t size)
{
    snprintf(text, size, "%u and %u candidates, %llu and %llu poses", a->count, b->count,
             (unsigned long long)a->poses, (unsigned long long)b->poses);
    if (a->count != b->count || a->poses != b->poses || a->tier != b->tier)
        return 0;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct ndt_search_candidate *x = &a->candidates[i], *y = &b->candidates[i];
        if (memcmp(&x->T_map_sensor, &y->T_map_sensor, sizeof(x->T_map_sensor)) != 0 ||
            x->gaussian_fit != y->gaussian_fit || x->bits != y->bits || x->fit != y->fit || x->layer != y->layer ||
            x->height_view != y->height_view) {
            snprintf(text, size, "candidate %u differs: ng %g and %g, bits %g and %g", i, x->gaussian_fit,
                     y->gaussian_fit, x->bits, y->bits);
            return 0;
        }
    }
    return 1;
}

static int has_near(const struct ndt_search_result *in, const struct ndt_search_candidate *wanted)
{
    for (uint32_t i = 0; i < in->count; i++)
        if (ndt_pose_distance_m(&in->candidates[i].T_map_sensor, &wanted->T_map_sensor) < 0.05)
            return 1;
    return 0;
}

int search_case_near(const struct ndt_search_result *a, const struct ndt_search_result *b, char *text, size_t size)
{
    const struct ndt_search_candidate *x = &a->candidates[0], *y = &b->candidates[0];
    uint32_t near = 0;
    for (uint32_t i = 0; i < b->count; i++)
        near += (uint32_t)has_near(a, &b->candidates[i]);
    const double apart_m = a->count && b->count ? ndt_pose_distance_m(&x->T_map_sensor, &y->T_map_sensor) : 1e9;
    snprintf(text, size, "%u and %u candidates, %u near, the first ones %.3g m apart", a->count, b->count, near,
             apart_m);
    return apart_m < 0.005 && a->count == b->count && near == b->count && a->poses == b->poses;
}
