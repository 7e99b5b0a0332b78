#include "sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum ndt_status open_path(struct sim_path *path, double length_m, struct ndt_error *err)
{
    path->count = (size_t)ceil(fmax(length_m, 1.0) / SIM_PATH_STEP_M) + 2;
    path->points_m = malloc(path->count * sizeof(*path->points_m));
    return path->points_m ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory for a path of %.0f m", length_m);
}

void sim_path_close(struct sim_path *path)
{
    free(path->points_m);
    memset(path, 0, sizeof(*path));
}

/* Rounds the corners: a moving average over `reach` points to either side, less at the ends. */
static enum ndt_status round_corners(struct sim_path *path, size_t reach, struct ndt_error *err)
{
    double(*sum_m)[3] = calloc(path->count + 1, sizeof(*sum_m));
    if (!sum_m)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a path of %zu points", path->count);
    for (size_t i = 0; i < path->count; i++)
        for (int k = 0; k < 3; k++)
            sum_m[i + 1][k] = sum_m[i][k] + path->points_m[i][k];
    for (size_t i = 0; i < path->count; i++) {
        const size_t room = i < path->count - 1 - i ? i : path->count - 1 - i;
        const size_t near = room < reach ? room : reach;
        for (int k = 0; k < 3; k++)
            path->points_m[i][k] = (sum_m[i + near + 1][k] - sum_m[i - near][k]) / (double)(2 * near + 1);
    }
    free(sum_m);
    return NDT_OK;
}

/* ---- along a course ---- */

/* Left of the course: on the pavement or on the roadway. It changes in turns, where no cars are parked. */
static double side_at(const struct sim_course *course, const double *sides_m, double s_m)
{
    if (course->edge_count == 0)
        return sides_m[0];
    const double s = s_m - floor(s_m / course->length_m) * course->length_m;
    int i = course->edge_count - 1;
    while (i > 0 && s < course->edges[i].s_m)
        i--;
    const double turned = (s - course->edges[i].s_m - course->edges[i].straight_m) / course->turn_m;
    const double next_m = sides_m[(i + 1) % course->edge_count];
    return sides_m[i] + (next_m - sides_m[i]) * sim_smooth_step(turned);
}

enum ndt_status sim_path_on_course(struct sim_path *path, const struct sim_course *course,
                                   const struct sim_ground *ground, double begin_m, double length_m,
                                   struct ndt_random *random, struct ndt_error *err)
{
    double sides_m[SIM_MAX_EDGES] = {0};
    const enum ndt_status status = open_path(path, length_m, err);
    if (status != NDT_OK)
        return status;
    for (int i = 0; i < course->edge_count; i++) {
        const int in_the_road = ndt_random_unit(random) < 0.3;
        sides_m[i] = in_the_road ? ndt_random_between(random, -1.0, -0.3) : ndt_random_between(random, -4.75, -4.5);
    }
    for (size_t i = 0; i < path->count; i++) {
        const double s_m = begin_m + (double)i * SIM_PATH_STEP_M;
        const struct sim_course_point at = sim_course_beside(course, s_m, side_at(course, sides_m, s_m));
        double *point_m = path->points_m[i];
        point_m[0] = at.x_m;
        point_m[1] = at.y_m;
        point_m[2] = sim_ground_height(ground, at.x_m, at.y_m, NULL);
    }
    return NDT_OK;
}

/* ---- through a plan ---- */

double sim_smooth_step(double x)
{
    const double u = x < 0.0 ? 0.0 : x > 1.0 ? 1.0 : x;
    return u * u * (3.0 - 2.0 * u);
}

void sim_plan_add_edge(struct sim_plan *plan, int a, int b)
{
    const double *from = plan->node_m[a], *to = plan->node_m[b];
    plan->edges[plan->edge_count][0] = a;
    plan->edges[plan->edge_count][1] = b;
    plan->length_m[plan->edge_count++] = hypot(hypot(to[0] - from[0], to[1] - from[1]), to[2] - from[2]);
}

/* Chooses any edge of the node but the one that the path came on, unless there is no other. Stairs are the rarest
 * and the most likely. */
static int next_edge(const struct sim_plan *plan, int node, int came, struct ndt_random *random)
{
    int found = came;
    double all = 0.0;
    for (int i = 0; i < plan->edge_count; i++) {
        if (i == came || (plan->edges[i][0] != node && plan->edges[i][1] != node))
            continue;
        const double *a = plan->node_m[plan->edges[i][0]], *b = plan->node_m[plan->edges[i][1]];
        const double weight = fabs(a[2] - b[2]) > 0.5 ? 6.0 : 1.0;
        all += weight;
        if (ndt_random_unit(random) * all < weight)
            found = i;
    }
    return found;
}

enum ndt_status sim_path_on_plan(struct sim_path *path, const struct sim_plan *plan, double length_m,
                                 struct ndt_random *random, struct ndt_error *err)
{
    enum ndt_status status = open_path(path, length_m, err);
    if (status != NDT_OK)
        return status;
    int node = (int)(ndt_random_unit(random) * plan->node_count);
    int edge = next_edge(plan, node, -1, random);
    double on_m = 0.0;
    for (size_t i = 0; i < path->count; i++, on_m += SIM_PATH_STEP_M) {
        while (on_m >= plan->length_m[edge]) {
            on_m -= plan->length_m[edge];
            node = plan->edges[edge][0] == node ? plan->edges[edge][1] : plan->edges[edge][0];
            edge = next_edge(plan, node, edge, random);
        }
        const int other = plan->edges[edge][0] == node ? plan->edges[edge][1] : plan->edges[edge][0];
        const double u = on_m / plan->length_m[edge];
        for (int k = 0; k < 3; k++)
            path->points_m[i][k] = plan->node_m[node][k] + u * (plan->node_m[other][k] - plan->node_m[node][k]);
    }
    return round_corners(path, 6, err);
}

void sim_plan_place(const struct sim_plan *plan, struct ndt_random *random, double at_m[3])
{
    double length_m = 0.0;
    int edge = 0;
    for (int i = 0; i < plan->edge_count; i++)
        length_m += plan->length_m[i];
    double on_m = ndt_random_between(random, 0.0, length_m);
    while (edge < plan->edge_count - 1 && on_m >= plan->length_m[edge])
        on_m -= plan->length_m[edge++];
    const double *a = plan->node_m[plan->edges[edge][0]], *b = plan->node_m[plan->edges[edge][1]];
    const double u = on_m / plan->length_m[edge];
    for (int k = 0; k < 3; k++)
        at_m[k] = a[k] + u * (b[k] - a[k]);
    at_m[0] += ndt_random_between(random, -0.5, 0.5);
    at_m[1] += ndt_random_between(random, -0.5, 0.5);
}
