#include "solve_host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "align_state.h"
#include "ndt/clock.h"

void solve_start(struct ndt_newton *out, enum ndt_variant variant, const struct ndt_pose *T_map_guess,
                 const struct ndt_map *map, const struct ndt_cloud *scan)
{
    static const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    double second_m2[6];
    struct ndt_pose local = *T_map_guess;
    for (int i = 0; i < 3; i++)
        local.t_m[i] -= map->origin_m[i];
    memset(out, 0xff, sizeof(*out));
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

enum ndt_status solve_turn(struct ndt_cloud *out, const double R0[9], const struct ndt_cloud *scan,
                           struct ndt_error *err)
{
    enum ndt_status status = ndt_cloud_reserve(out, scan->count, 0, err);
    if (status != NDT_OK)
        return status;
    out->count = scan->count;
    for (size_t i = 0; i < scan->count; i++) {
        const double x = scan->x_m[i], y = scan->y_m[i], z = scan->z_m[i];
        out->x_m[i] = (float)(R0[0] * x + R0[1] * y + R0[2] * z);
        out->y_m[i] = (float)(R0[3] * x + R0[4] * y + R0[5] * z);
        out->z_m[i] = (float)(R0[6] * x + R0[7] * y + R0[8] * z);
    }
    return NDT_OK;
}

double solve_coverage(struct ndt_map *map, const struct ndt_cloud *turned, const struct ndt_newton *newton)
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
        struct ndt_eval_request request = {newton->level, (enum ndt_neighbours)newton->neighbours, {0}};
        memcpy(request.p, newton->query_pose, sizeof(request.p));
        if (newton->evaluations >= most || (until_us > 0 && ndt_clock_us() > until_us)) {
            ndt_newton_give_up(newton, out->rows, SOLVE_ROWS);
            break;
        }
        status = ops->eval(host->backend, &request, &sums, err);
        if (status == NDT_OK)
            ndt_newton_step(newton, rules, out->rows, SOLVE_ROWS, &sums);
    }
    out->coverage = status == NDT_OK ? solve_coverage(host->map, &host->turned, newton) : 0;
    return status;
}

void solve_host_free(struct solve_host *host)
{
    ndt_cloud_free(&host->turned);
}
