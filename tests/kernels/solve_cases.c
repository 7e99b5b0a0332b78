#include "solve_cases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "street_world.h"

enum { MAP_POINTS = 20000, SPOILT_POINTS = 129, NOTHING_POINTS = 5, MODES = 4 };
static const double DEG = 0.017453292519943295;
static const struct world STREET = {WORLD_STREET, 3, 40.0, 0.02};
static const size_t sizes[SOLVE_SCANS] = {1, 31, 33, 128, 129, 700, 1500, 0, SPOILT_POINTS, NOTHING_POINTS};
static const char *const mode_names[MODES] = {"radius", "direct1", "direct7", "direct27"};

static void spoil(struct ndt_cloud *cloud, size_t every)
{
    static const float bad[3] = {NAN, INFINITY, -INFINITY};
    float *const axes[3] = {cloud->x_m, cloud->y_m, cloud->z_m};
    for (size_t i = 0; i < cloud->count; i += every)
        axes[i % 3][i] = every == 1 ? NAN : bad[i / every % 3];
}

static enum ndt_status make_map(struct solve_scene *scene, struct ndt_error *err)
{
    static const double origin_m[3] = {200, 300, 0};
    struct ndt_cloud points;
    struct ndt_map_config config;
    ndt_cloud_init(&points);
    ndt_map_config_default(&config);
    enum ndt_status status = world_map(&points, &STREET, MAP_POINTS, origin_m, err);
    if (status == NDT_OK)
        status = ndt_map_from_cloud(&scene->map, &config, &points, err);
    ndt_cloud_free(&points);
    return status;
}

enum ndt_status solve_scene_make(struct solve_scene *out, uint64_t seed, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < SOLVE_SCANS; i++)
        ndt_cloud_init(&out->scans[i]);
    enum ndt_status status = make_map(out, err);
    for (int i = 0; i < SOLVE_SCANS && status == NDT_OK; i++) {
        struct ndt_pose pose = world_pose(&STREET, 0.3 + 0.05 * i, 0.8 * i - 2);
        status = world_scan(&out->scans[i], &STREET, seed + (uint64_t)i, sizes[i], &pose, 15.0, err);
        pose.t_m[0] += 200;
        pose.t_m[1] += 300;
        out->truth[i] = pose;
    }
    if (status != NDT_OK)
        return status;
    spoil(&out->scans[SOLVE_SPOILT], 3);
    spoil(&out->scans[SOLVE_NOTHING], 1);
    return NDT_OK;
}

void solve_scene_free(struct solve_scene *scene)
{
    ndt_map_release(scene->map);
    for (int i = 0; i < SOLVE_SCANS; i++)
        ndt_cloud_free(&scene->scans[i]);
}

/* Kinds of a rows case, counted through: chain 4-2-1, chain 2, autoware; by neighbours; by GNSS. */
enum { KINDS = 3 };

static void set_params(struct ndt_align_params *params, int kind, int mode, const struct ndt_pose *gnss)
{
    static const double leaves_m[] = {4, 2, 1};
    ndt_align_params_default(params);
    params->level_count = kind == 0 ? 3 : 1;
    for (size_t i = 0; i < params->level_count; i++)
        params->levels[i] = (struct ndt_align_level){kind == 0 ? leaves_m[i] : 2, (enum ndt_neighbours)mode};
    params->variant = kind == 2 ? NDT_AUTOWARE : NDT_ROBUST;
    params->has_gnss = gnss != NULL;
    for (int i = 0; i < 3 && gnss; i++)
        params->gnss_position_m[i] = gnss->t_m[i] + 0.3;
}

int solve_case_at(const struct solve_scene *scene, uint64_t seed, size_t i, struct solve_case *out)
{
    static const char *const kind_names[KINDS] = {"421", "2", "2"};
    const int mode = (int)(i % MODES), gnss = (int)(i / MODES % 2), kind = (int)(i / MODES / 2 % KINDS);
    const size_t scan = i / MODES / 2 / KINDS;
    if (scan >= SOLVE_SPOILT + 1)
        return 0;
    struct world_random random = {seed * 31 + i};
    out->scan = (int)scan;
    out->guess = world_perturb(&random, &scene->truth[scan], 0.7, 4 * DEG);
    set_params(&out->params, kind, mode, gnss ? &scene->truth[scan] : NULL);
    snprintf(out->name, sizeof(out->name), "rows/%zu%s/%s/%s/%s/%s", sizes[scan],
             scan == SOLVE_SPOILT ? "spoilt" : "", kind_names[kind], mode_names[mode],
             kind == 2 ? "autoware" : "robust", gnss ? "gnss" : "alone");
    return 1;
}

void solve_problems_make(const struct solve_scene *scene, uint64_t seed, struct solve_problem out[SOLVE_PROBLEMS])
{
    static const int scans[8] = {4, 2, SOLVE_EMPTY, SOLVE_SPOILT, 1, SOLVE_NOTHING, 0, 3};
    struct world_random random = {seed + 5};
    for (int i = 0; i < SOLVE_PROBLEMS; i++) {
        struct solve_problem *problem = &out[i];
        problem->scan = scans[i % 8];
        const double wrong = i % 3 == 0 ? 0 : i % 3 == 1 ? 0.5 : 2.5;
        problem->guess = world_perturb(&random, &scene->truth[problem->scan], wrong, 5 * wrong * DEG);
        if (i % 11 == 7)
            problem->guess.t_m[i % 2] += i % 2 ? 500 : -1e7; /* far off the map */
    }
}
