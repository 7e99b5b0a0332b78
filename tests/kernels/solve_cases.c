#include "solve_cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align_state.h"
#include "ndt/clock.h"
#include "street_world.h"

/* ---- driven by the host ---- */

void solve_start(struct ndt_newton *out, enum ndt_variant variant, const struct ndt_pose *T_map_guess,
                 const struct ndt_map *map, const struct ndt_cloud *scan)
{
    static const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    double second_m2[6];
    struct ndt_pose local = *T_map_guess;
    for (int i = 0; i < 3; i++)
        local.t_m[i] -= map->origin_m[i];
    memset(out, 0xff, sizeof(*out));
    memset(out->prior, 0, sizeof(out->prior));
    memset(out->prior_offset, 0, sizeof(out->prior_offset));
    out->first_level = 0;
    if (variant == NDT_AUTOWARE) {
        memcpy(out->R0, identity, sizeof(identity));
        ndt_pose_to_euler(&local, out->guess);
    } else {
        ndt_pose_rotation(&local, out->R0);
        memcpy(out->guess, local.t_m, sizeof(local.t_m));
        memset(out->guess + 3, 0, 3 * sizeof(double));
    }
    ndt_second_moments(scan, second_m2);
    ndt_newton_set_rotation_scale(out, second_m2);
}

/* Adds a prior near the guess, with every element, and this information about the first axis [score per m^2]. */
static void set_prior(struct ndt_newton *newton, double per_m2)
{
    static const double parts[6] = {1, 1.4, 0.7, 5, 6, 9}; /* square roots of those of the other axes */
    static const double offset[6] = {0.05, -0.03, 0.02, 0.004, -0.002, 0.007};
    memcpy(newton->prior_offset, offset, sizeof(offset));
    for (int i = 0, at = 0; i < 6; i++)
        for (int j = i; j < 6; j++, at++)
            newton->prior[at] = per_m2 * parts[i] * parts[j] * (i == j ? 1 : (i + j) % 2 ? 0.15 : -0.1);
}

enum ndt_status solve_turn(struct ndt_cloud *out, const double R0[9], const struct ndt_cloud *scan,
                           struct ndt_error *err)
{
    enum ndt_status status = ndt_cloud_copy(out, scan, err);
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; i < scan->count; i++) {
        const double x = scan->x_m[i], y = scan->y_m[i], z = scan->z_m[i];
        out->x_m[i] = (float)(R0[0] * x + R0[1] * y + R0[2] * z);
        out->y_m[i] = (float)(R0[3] * x + R0[4] * y + R0[5] * z);
        out->z_m[i] = (float)(R0[6] * x + R0[7] * y + R0[8] * z);
    }
    return NDT_OK;
}

/* See struct ndt_scores; 0 for an alignment that ended off the map. `turned`: the scan, turned by R0. */
static double coverage_of(struct ndt_map *map, const struct ndt_cloud *turned, const struct ndt_newton *newton)
{
    return newton->stop == NDT_STOP_OFF_MAP ? 0 : ndt_solve_coverage(map, turned, newton);
}

struct ndt_pose solve_pose(struct ndt_map *map, const struct ndt_newton *newton)
{
    const struct ndt_pose turn = ndt_pose_from_rotation(newton->R0, (double[3]){0, 0, 0});
    struct ndt_pose pose = ndt_pose_from_euler(newton->p);
    pose = ndt_pose_compose(&pose, &turn);
    for (int i = 0; i < 3; i++)
        pose.t_m[i] += map->origin_m[i];
    return pose;
}

/* Computes the information as a device does: one more evaluation at the answer. */
static enum ndt_status inform_on_host(struct solve_host *host, const struct ndt_newton *newton,
                                      struct ndt_information *out, struct ndt_error *err)
{
    struct ndt_eval_request request = {.level = newton->level,
                                       .neighbours = (enum ndt_neighbours)newton->neighbours};
    if (newton->stop == NDT_STOP_OFF_MAP)
        return NDT_OK;
    memcpy(request.p, newton->p, sizeof(request.p));
    return host->backend->ops->inform(host->backend, &request, out, err);
}

enum ndt_status solve_on_host(struct solve_host *host, const struct ndt_newton_rules *rules,
                              const struct ndt_cloud *scan, const struct ndt_newton *start, int most,
                              double until_us, struct solve_result *out, struct ndt_error *err)
{
    const struct ndt_backend_ops *ops = host->backend->ops;
    struct ndt_newton *newton = &out->newton;
    memset(out, 0, sizeof(*out));
    *newton = *start;
    enum ndt_status status = solve_turn(&host->turned, newton->R0, scan, err);
    if (status == NDT_OK)
        status = ops->set_scan(host->backend, &host->turned, err);
    ndt_newton_begin(newton, rules);
    while (status == NDT_OK && newton->wants_eval) {
        struct ndt_eval sums;
        struct ndt_eval_request request = {.level = newton->level,
                                           .neighbours = (enum ndt_neighbours)newton->neighbours};
        memcpy(request.p, newton->query_pose, sizeof(request.p));
        if (newton->evaluations >= most || (until_us > 0 && ndt_clock_us() > until_us)) {
            ndt_newton_give_up(newton, out->rows, SOLVE_ROWS);
            break;
        }
        status = ops->eval(host->backend, &request, &sums, err);
        if (status == NDT_OK)
            ndt_newton_step(newton, rules, out->rows, SOLVE_ROWS, &sums);
    }
    out->coverage = status == NDT_OK ? coverage_of(host->map, &host->turned, newton) : 0;
    return status == NDT_OK && rules->wants_information ? inform_on_host(host, newton, &out->information, err)
                                                        : status;
}

void solve_host_free(struct solve_host *host)
{
    ndt_cloud_free(&host->turned);
}

/* ---- scenes ---- */

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

/* The second scan has none. */
static enum ndt_status add_times(struct ndt_cloud *cloud, int scan, struct ndt_error *err)
{
    if (scan == 1)
        return NDT_OK;
    enum ndt_status status = ndt_cloud_reserve(cloud, cloud->count, NDT_CLOUD_TIME, err);
    for (size_t i = 0; status == NDT_OK && i < cloud->count; i++)
        cloud->time_s[i] = 0.1f * (float)(i * 37 % cloud->count) / (float)cloud->count - 0.04f;
    for (size_t i = 0; scan == SOLVE_SPOILT && status == NDT_OK && i < cloud->count; i += 7)
        cloud->time_s[i] = i % 2 ? NAN : INFINITY;
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
        if (status == NDT_OK)
            status = add_times(&out->scans[i], i, err);
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
    struct ndt_random random = {seed * 31 + i};
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
    struct ndt_random random = {seed + 5};
    for (int i = 0; i < SOLVE_PROBLEMS; i++) {
        struct solve_problem *problem = &out[i];
        *problem = (struct solve_problem){.scan = scans[i % 8]};
        const double wrong = i % 3 == 0 ? 0 : i % 3 == 1 ? 0.5 : 2.5;
        problem->guess = world_perturb(&random, &scene->truth[problem->scan], wrong, 5 * wrong * DEG);
        if (i % 11 == 7)
            problem->guess.t_m[i % 2] += i % 2 ? 500 : -1e7; /* far off the map */
    }
}

void solve_problems_add_priors(struct solve_problem problems[SOLVE_PROBLEMS])
{
    static const double per_m2[] = {30, 0, 3000, 300};
    for (int i = 0; i < SOLVE_PROBLEMS; i++) {
        problems[i].prior_per_m2 = per_m2[i / 2 % 4];
        problems[i].first_level = (i + i / 8) % 3;
    }
}

void solve_start_problem(struct ndt_newton *out, enum ndt_variant variant, const struct solve_problem *problem,
                         const struct solve_scene *scene)
{
    solve_start(out, variant, &problem->guess, scene->map, &scene->scans[problem->scan]);
    set_prior(out, problem->prior_per_m2);
    out->first_level = problem->first_level;
}
