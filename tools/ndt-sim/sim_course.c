#include "sim.h"

#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

/* Heading within a left turn at u in [0, 1]: its curvature is a raised cosine. */
static double turn_heading(double u)
{
    return 0.5 * PI * (u - sin(2.0 * PI * u) / (2.0 * PI));
}

/* Adds the displacement from u0 to u1 within a turn (Gauss-Legendre quadrature, three points). */
static void turn_advance(double turn_m, double u0, double u1, double xy[2])
{
    static const double node[3] = {-0.774596669241483377, 0.0, 0.774596669241483377};
    static const double weight[3] = {5.0 / 18.0, 8.0 / 18.0, 5.0 / 18.0};
    const double length = turn_m * (u1 - u0);
    for (int i = 0; i < 3; i++) {
        const double heading = turn_heading(0.5 * (u0 + u1) + 0.5 * node[i] * (u1 - u0));
        xy[0] += weight[i] * length * cos(heading);
        xy[1] += weight[i] * length * sin(heading);
    }
}

static void init_turn(struct sim_course *course)
{
    double xy[2] = {0.0, 0.0};
    course->turn_m = 22.0;
    for (int i = 0; i <= SIM_TURN_STEPS; i++) {
        memcpy(course->turn_xy_m[i], xy, sizeof(xy));
        turn_advance(course->turn_m, (double)i / SIM_TURN_STEPS, (i + 1.0) / SIM_TURN_STEPS, xy);
    }
    course->reach_m = course->turn_xy_m[SIM_TURN_STEPS][0];
}

/* An L-shaped loop: five left turns and a right one, rotated by a random angle. */
static void init_loop(struct sim_course *course, uint64_t seed)
{
    struct ndt_random random = ndt_random_stream(seed, 1, 0);
    const double x1 = ndt_random_between(&random, 68.0, 76.0), x2 = x1 + ndt_random_between(&random, 58.0, 66.0);
    const double y1 = ndt_random_between(&random, 58.0, 66.0), y2 = y1 + ndt_random_between(&random, 48.0, 56.0);
    const double yaw = ndt_random_between(&random, -PI, PI);
    const double corner[6][2] = {{0, 0}, {x2, 0}, {x2, y1}, {x1, y1}, {x1, y2}, {0, y2}};
    static const int turns[6] = {1, 1, -1, 1, 1, 1};
    course->edge_count = 6;
    for (int i = 0; i < 6; i++) {
        struct sim_edge *edge = &course->edges[i];
        const double *from = corner[i], *to = corner[(i + 1) % 6];
        edge->start_m[0] = cos(yaw) * from[0] - sin(yaw) * from[1];
        edge->start_m[1] = sin(yaw) * from[0] + cos(yaw) * from[1];
        edge->heading_rad = yaw + atan2(to[1] - from[1], to[0] - from[0]);
        edge->length_m = hypot(to[0] - from[0], to[1] - from[1]);
        edge->turn = turns[i];
        edge->straight_m = edge->length_m - 2.0 * course->reach_m;
        edge->s_m = course->length_m;
        course->length_m += edge->straight_m + course->turn_m;
    }
}

int sim_place_has_plan(enum sim_place place)
{
    return place == SIM_HALL || place == SIM_OFFICE || place == SIM_DORMITORY || place == SIM_FURNISHED;
}

void sim_course_init(struct sim_course *course, enum sim_place place, uint64_t seed)
{
    memset(course, 0, sizeof(*course));
    course->place = place;
    init_turn(course);
    if (place == SIM_STREET)
        init_loop(course, seed);
    else
        course->length_m = INFINITY;
}

static struct sim_course_point turn_at(const struct sim_course *course, const struct sim_edge *edge, double along_m)
{
    const double u = along_m / course->turn_m;
    const int step = u >= 1.0 ? SIM_TURN_STEPS - 1 : (int)(u * SIM_TURN_STEPS);
    double xy[2] = {course->turn_xy_m[step][0], course->turn_xy_m[step][1]};
    turn_advance(course->turn_m, (double)step / SIM_TURN_STEPS, u, xy);
    const double c = cos(edge->heading_rad), s = sin(edge->heading_rad);
    const double x = edge->length_m - course->reach_m + xy[0], y = edge->turn * xy[1];
    return (struct sim_course_point){edge->start_m[0] + c * x - s * y, edge->start_m[1] + s * x + c * y,
                                     edge->heading_rad + edge->turn * turn_heading(u),
                                     edge->turn * 0.5 * PI / course->turn_m * (1.0 - cos(2.0 * PI * u))};
}

void sim_course_place(struct sim_course *course, const double start_m[2], double heading_rad)
{
    const double turn_rad = heading_rad - course->edges[0].heading_rad, c = cos(turn_rad), s = sin(turn_rad);
    const double from_m[2] = {course->edges[0].start_m[0], course->edges[0].start_m[1]};
    for (int i = 0; i < course->edge_count; i++) {
        struct sim_edge *edge = &course->edges[i];
        const double x = edge->start_m[0] - from_m[0], y = edge->start_m[1] - from_m[1];
        edge->start_m[0] = start_m[0] + c * x - s * y;
        edge->start_m[1] = start_m[1] + s * x + c * y;
        edge->heading_rad += turn_rad;
    }
}

struct sim_course_point sim_course_at(const struct sim_course *course, double s_m)
{
    if (course->edge_count == 0)
        return (struct sim_course_point){s_m, 0.0, 0.0, 0.0};
    double s = s_m - floor(s_m / course->length_m) * course->length_m;
    if (s >= course->length_m)
        s = 0.0;
    int i = course->edge_count - 1;
    while (s < course->edges[i].s_m)
        i--;
    const struct sim_edge *edge = &course->edges[i];
    s -= edge->s_m;
    if (s > edge->straight_m)
        return turn_at(course, edge, s - edge->straight_m);
    const double x = course->reach_m + s;
    return (struct sim_course_point){edge->start_m[0] + cos(edge->heading_rad) * x,
                                     edge->start_m[1] + sin(edge->heading_rad) * x, edge->heading_rad, 0.0};
}

struct sim_course_point sim_course_beside(const struct sim_course *course, double s_m, double left_m)
{
    struct sim_course_point point = sim_course_at(course, s_m);
    point.x_m -= left_m * sin(point.heading_rad);
    point.y_m += left_m * cos(point.heading_rad);
    return point;
}
