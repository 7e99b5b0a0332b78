#include "sim.h"

#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

/* Across a street, left of the lane's centre line [m]; the oncoming lane is at +3.4. */
static const double FACADE_LEFT_M = 11.5, FACADE_RIGHT_M = -8.0;
static const double TREES_LEFT_M = 9.2, TREES_RIGHT_M = -5.6;
static const double PARKED_LEFT_M = 6.6, PARKED_RIGHT_M = -3.1;

struct scene {
    struct sim_world *world;
    const struct sim_course *course;
    const struct sim_edge *edge;
    int turn_before; /* the turn at the edge's start */
    struct ndt_random random;
};

void sim_scene_ground(struct sim_ground *ground, enum sim_place place, uint64_t seed)
{
    struct ndt_random random = ndt_random_stream(seed, 4, 0);
    memset(ground, 0, sizeof(*ground));
    if (place != SIM_STREET)
        return;
    for (int i = 0; i < 2; i++) {
        const double heading = ndt_random_between(&random, -PI, PI);
        const double k = 2.0 * PI / ndt_random_between(&random, 70.0, 130.0);
        ground->slope[i] = ndt_random_between(&random, -0.02, 0.02);
        ground->amplitude_m[i] = ndt_random_between(&random, 0.15, 0.4);
        ground->phase_rad[i] = ndt_random_between(&random, -PI, PI);
        ground->k_radpm[i][0] = k * cos(heading);
        ground->k_radpm[i][1] = k * sin(heading);
        ground->steepest += ground->amplitude_m[i] * k;
    }
    ground->steepest += hypot(ground->slope[0], ground->slope[1]);
}

/* ---- street ---- */

/* Map position of a point `along` the edge and `left` of it; z: height of the ground there. */
static void place(const struct scene *scene, double along_m, double left_m, double out_m[3])
{
    const struct sim_edge *edge = scene->edge;
    const double c = cos(edge->heading_rad), s = sin(edge->heading_rad);
    out_m[0] = edge->start_m[0] + c * along_m - s * left_m;
    out_m[1] = edge->start_m[1] + s * along_m + c * left_m;
    out_m[2] = sim_ground_height(&scene->world->ground, out_m[0], out_m[1], NULL);
}

/* A box on the ground at (along, left), its foot raised by `up`. */
static struct sim_solid standing_box(const struct scene *scene, double along_m, double left_m, double up_m,
                                     const double half_m[3], double yaw_rad)
{
    double centre_m[3];
    place(scene, along_m, left_m, centre_m);
    centre_m[2] += up_m + half_m[2];
    return sim_box(centre_m, half_m, scene->edge->heading_rad + yaw_rad);
}

static void add_post(struct scene *scene, double along_m, double left_m, double radius_m, double height_m)
{
    double centre_m[3];
    place(scene, along_m, left_m, centre_m);
    centre_m[2] += 0.5 * height_m;
    const double half_m[3] = {radius_m, radius_m, 0.5 * height_m + 0.2};
    const struct sim_solid post = sim_round(SIM_CYLINDER, centre_m, half_m);
    sim_world_add(scene->world, &post);
}

static void add_foliage(struct scene *scene, double along_m, double left_m, double middle_m, double radius_m,
                        double half_height_m, double free_path_m)
{
    double centre_m[3];
    place(scene, along_m, left_m, centre_m);
    centre_m[2] += middle_m;
    const double stretch = ndt_random_between(&scene->random, 0.8, 1.25);
    const double half_m[3] = {radius_m * stretch, radius_m / stretch, half_height_m};
    struct sim_solid crown = sim_round(SIM_ELLIPSOID, centre_m, half_m);
    crown.free_path_m = free_path_m;
    crown.reflectance = 0.3f;
    sim_world_add(scene->world, &crown);
}

static void add_tree(struct scene *scene, double along_m, double left_m)
{
    const double trunk_m = ndt_random_between(&scene->random, 1.9, 2.8);
    const double crown_m = ndt_random_between(&scene->random, 1.3, 2.0);
    add_post(scene, along_m, left_m, ndt_random_between(&scene->random, 0.1, 0.25), trunk_m + 1.0);
    add_foliage(scene, along_m, left_m, trunk_m + 1.2 * crown_m, crown_m, 1.2 * crown_m, 0.5);
    const double branch_m = ndt_random_between(&scene->random, -0.8, 0.8);
    add_foliage(scene, along_m + branch_m, left_m, trunk_m + 2.0 * crown_m, 0.6 * crown_m, 0.7 * crown_m, 0.35);
}

static struct sim_windows random_windows(struct ndt_random *random)
{
    struct sim_windows windows;
    windows.period_m = ndt_random_between(random, 2.2, 3.6);
    windows.width_m = windows.period_m * ndt_random_between(random, 0.35, 0.6);
    windows.storey_m = ndt_random_between(random, 2.8, 3.6);
    windows.sill_m = ndt_random_between(random, 0.7, 1.1);
    windows.height_m = ndt_random_between(random, 1.2, 1.6);
    windows.recess_m = ndt_random_between(random, 0.12, 0.35);
    windows.lost = ndt_random_between(random, 0.2, 0.7);
    return windows;
}

/* Balconies and bays on the face towards the street, `inward` = +1 when the street is to the left. */
static void add_balconies(struct scene *scene, double begin_m, double end_m, double face_m, double height_m,
                          double storey_m)
{
    const double inward = face_m > 0.0 ? -1.0 : 1.0;
    for (double up = storey_m; up + 2.0 < height_m; up += storey_m)
        for (double along = begin_m + 1.8; along < end_m - 1.8; along += 3.7) {
            if (ndt_random_unit(&scene->random) > 0.3)
                continue;
            const double half_m[3] = {ndt_random_between(&scene->random, 0.8, 1.5), 0.5, 0.55};
            const struct sim_solid balcony =
                standing_box(scene, along, face_m + inward * 0.45, up - 0.2, half_m, 0.0);
            sim_world_add(scene->world, &balcony);
        }
}

static void add_house(struct scene *scene, double begin_m, double end_m, double facade_m)
{
    struct ndt_random *random = &scene->random;
    const double side = facade_m > 0.0 ? 1.0 : -1.0;
    const double face_m = facade_m + side * ndt_random_between(random, 0.0, 1.2);
    const double height_m = ndt_random_between(random, 5.5, 16.0), depth_m = 9.0;
    const double yaw_rad = ndt_random_between(random, -0.025, 0.025);
    const double half_m[3] = {0.5 * (end_m - begin_m), 0.5 * depth_m, 0.5 * height_m + 0.75};
    struct sim_solid house =
        standing_box(scene, 0.5 * (begin_m + end_m), face_m + side * 0.5 * depth_m, -1.5, half_m, yaw_rad);
    house.foot_m += 1.5;
    house.windows = random_windows(random);
    house.reflectance = (float)ndt_random_between(random, 0.3, 0.8);
    sim_world_add(scene->world, &house);
    add_balconies(scene, begin_m, end_m, face_m, height_m, house.windows.storey_m);
    if (ndt_random_unit(random) < 0.5) { /* a porch */
        const double porch_m = ndt_random_between(random, begin_m + 1.5, end_m - 1.5);
        const double porch_half_m[3] = {ndt_random_between(random, 0.7, 1.6), 0.45, 1.35};
        const struct sim_solid porch = standing_box(scene, porch_m, face_m - side * 0.4, 0.0, porch_half_m, 0.0);
        sim_world_add(scene->world, &porch);
    }
}

/* A gap between houses: a wall at the back, bushes in front. */
static void add_garden(struct scene *scene, double begin_m, double end_m, double facade_m)
{
    const double side = facade_m > 0.0 ? 1.0 : -1.0;
    const double half_m[3] = {0.5 * (end_m - begin_m), 0.15, 0.9};
    const struct sim_solid wall =
        standing_box(scene, 0.5 * (begin_m + end_m), facade_m + side * 3.0, -0.2, half_m, 0.0);
    sim_world_add(scene->world, &wall);
    for (double along = begin_m + 0.6; along < end_m; along += 1.3) {
        const double radius_m = ndt_random_between(&scene->random, 0.4, 0.9);
        const double away_m = ndt_random_between(&scene->random, 0.5, 2.2);
        add_foliage(scene, along, facade_m + side * away_m, 0.7 * radius_m, radius_m, radius_m, 0.2);
    }
}

/* Houses along one side. On the inner side of a turn the row ends where the next street begins; on the outer side
 * it continues. */
static void add_row(struct scene *scene, double facade_m)
{
    const int side = facade_m > 0.0 ? 1 : -1;
    const double reach_m = fabs(facade_m);
    const double end_m = scene->edge->length_m + (scene->edge->turn == side ? -reach_m - 1.0 : reach_m);
    double at_m = scene->turn_before == side ? reach_m + 1.0 : -reach_m;
    while (at_m + 5.0 < end_m) {
        double next_m = at_m + ndt_random_between(&scene->random, 8.0, 17.0);
        if (end_m - next_m < 5.0)
            next_m = end_m;
        add_house(scene, at_m, next_m, facade_m);
        at_m = next_m;
        if (ndt_random_unit(&scene->random) < 0.35) {
            next_m = fmin(at_m + ndt_random_between(&scene->random, 2.5, 6.0), end_m);
            add_garden(scene, at_m, next_m, facade_m);
            at_m = next_m;
        }
    }
}

static void add_trees_and_posts(struct scene *scene, double left_m, double post_every_m)
{
    const double begin_m = scene->course->reach_m, end_m = scene->edge->length_m - begin_m;
    double at_m = begin_m + ndt_random_between(&scene->random, 0.0, 4.0);
    while (at_m < end_m) {
        if (ndt_random_unit(&scene->random) < 0.7)
            add_tree(scene, at_m, left_m + ndt_random_between(&scene->random, -0.3, 0.3));
        at_m += ndt_random_between(&scene->random, 7.0, 14.0);
    }
    for (at_m = begin_m - 6.0; at_m < end_m + 6.0; at_m += post_every_m) {
        const double along_m = at_m + ndt_random_between(&scene->random, -2.0, 2.0);
        add_post(scene, along_m, left_m, 0.08, 7.0);
        const double half_m[3] = {0.04, 0.4, 0.4}; /* a sign on a post of its own */
        add_post(scene, along_m + 3.0, left_m, 0.04, 2.9);
        const struct sim_solid sign = standing_box(scene, along_m + 3.0, left_m, 2.1, half_m, 0.1);
        sim_world_add(scene->world, &sign);
    }
}

static void add_parked(struct scene *scene, double left_m)
{
    const double begin_m = scene->course->reach_m + 5.0, end_m = scene->edge->length_m - begin_m;
    for (double at_m = begin_m; at_m < end_m; at_m += 6.2) {
        if (ndt_random_unit(&scene->random) > 0.55)
            continue;
        double centre_m[3];
        const double along_m = at_m + ndt_random_between(&scene->random, -0.4, 0.4);
        const double aside_m = left_m + ndt_random_between(&scene->random, -0.12, 0.12);
        const double turn_rad = ndt_random_between(&scene->random, -0.03, 0.03) + (left_m > 0.0 ? PI : 0.0);
        place(scene, along_m, aside_m, centre_m);
        struct sim_solid car[2];
        sim_car(&scene->world->ground, centre_m[0], centre_m[1], scene->edge->heading_rad + turn_rad,
                &scene->random, car);
        sim_world_add(scene->world, &car[0]);
        sim_world_add(scene->world, &car[1]);
    }
}

static void build_street(struct sim_world *world, const struct sim_course *course, uint64_t seed)
{
    for (int i = 0; i < course->edge_count; i++) {
        const int before = (i + course->edge_count - 1) % course->edge_count;
        struct scene scene = {world, course, &course->edges[i], course->edges[before].turn,
                              ndt_random_stream(seed, 5, (uint64_t)i)};
        add_row(&scene, FACADE_LEFT_M);
        add_row(&scene, FACADE_RIGHT_M);
        add_trees_and_posts(&scene, TREES_LEFT_M, 27.0);
        add_trees_and_posts(&scene, TREES_RIGHT_M, 31.0);
        add_parked(&scene, PARKED_LEFT_M);
        add_parked(&scene, PARKED_RIGHT_M);
    }
}

/* ---- corridor and tunnel ---- */

/* A box given by its borders in y and z, along x. */
static struct sim_solid beam(double x0, double x1, double y0, double y1, double z0, double z1)
{
    const double centre_m[3] = {0.5 * (x0 + x1), 0.5 * (y0 + y1), 0.5 * (z0 + z1)};
    const double half_m[3] = {0.5 * (x1 - x0), 0.5 * (y1 - y0), 0.5 * (z1 - z0)};
    return sim_box(centre_m, half_m, 0.0);
}

static void build_corridor(struct sim_world *world, double length_m, uint64_t seed)
{
    struct ndt_random random = ndt_random_stream(seed, 6, 0);
    const double x0 = -210.0, x1 = length_m + 210.0;
    struct sim_solid walls[2] = {beam(x0, x1, 1.3, 1.7, -0.2, 3.0), beam(x0, x1, -1.7, -1.3, -0.2, 3.0)};
    for (int i = 0; i < 2; i++) { /* doors, 12 cm deep, the only features along the axis */
        walls[i].foot_m = 0.0;
        walls[i].reflectance = 0.6f;
        const double period_m = ndt_random_between(&random, 8.5, 10.5);
        walls[i].windows = (struct sim_windows){period_m, 0.95, 100.0, 0.0, 2.05, 0.12, 0.0};
        sim_world_add(world, &walls[i]);
    }
    const struct sim_solid ceiling = beam(x0, x1, -1.7, 1.7, 2.6, 3.0);
    sim_world_add(world, &ceiling);
}

static void build_tunnel(struct sim_world *world, double length_m, uint64_t seed)
{
    struct ndt_random random = ndt_random_stream(seed, 7, 0);
    const double x0 = -210.0, x1 = length_m + 210.0;
    world->bore_radius_m = 5.4;
    world->bore_y_m = 1.7;
    world->bore_z_m = 1.4;
    const struct sim_solid kerbs[2] = {beam(x0, x1, 5.5, 7.2, -0.2, 0.25), beam(x0, x1, -3.8, -2.1, -0.2, 0.25)};
    sim_world_add(world, &kerbs[0]);
    sim_world_add(world, &kerbs[1]);
    for (double x = x0; x < x1; x += 12.0) { /* lamps */
        const struct sim_solid lamp = beam(x, x + 0.9, 1.55, 1.85, 6.5, 6.7);
        sim_world_add(world, &lamp);
    }
    for (double x = x0; x < x1; x += 45.0) { /* call boxes */
        const double at = x + ndt_random_between(&random, -6.0, 6.0);
        const struct sim_solid box = beam(at, at + 0.6, -3.6, -3.2, 0.0, 2.0);
        sim_world_add(world, &box);
    }
}

/* ---- rows: racks, parked cars, equal houses along x ---- */

/* An item that stands on both sides of the way again and again. */
struct sim_row {
    double least_period_m, most_period_m;
    double front_m, depth_m;     /* distance from the middle of the course, and depth beyond */
    double width_part, height_m; /* width of an item as a part of the period, and its height */
    double filled, jitter_m;     /* share of the places that are taken; how far an item stands from the middle */
    double post_front_m, post_half_m; /* a post at the begin of each post_every-th place */
    int post_every;
    double wall_m, ceiling_m; /* behind the rows; 0: none */
};

static const struct sim_row shelves_row = {2.4, 3.0, 1.5, 1.1, 0.8, 0.8, 0.85, 0.1, 1.55, 0.06, 1, 7.0, 6.0};
static const struct sim_row parking_row = {2.4, 2.7, 3.4, 4.4, 0.72, 1.5, 0.8, 0.15, 3.2, 0.25, 3, 8.3, 2.7};
static const struct sim_row terrace_row = {6.5, 8.5, 7.0, 8.0, 0.86, 7.0, 1.0, 0.0, 4.6, 0.12, 1, 0.0, 0.0};

static void add_item(struct sim_world *world, const struct sim_row *row, double x_m, double period_m, double side,
                     struct ndt_random *random)
{
    const double half_m = 0.5 * row->width_part * period_m;
    const double at_m = x_m + 0.5 * period_m + ndt_random_between(random, -row->jitter_m, row->jitter_m);
    const double near_m = row->front_m + ndt_random_between(random, 0.0, 2.0 * row->jitter_m);
    const double far_m = row->front_m + row->depth_m;
    const struct sim_solid item = beam(at_m - half_m, at_m + half_m, side > 0 ? near_m : -far_m,
                                       side > 0 ? far_m : -near_m, 0.0, row->height_m);
    if (ndt_random_unit(random) < row->filled)
        sim_world_add(world, &item);
}

static void add_row_of(struct sim_world *world, const struct sim_row *row, double x0, double x1, double side,
                       struct ndt_random *random)
{
    const double period_m = ndt_random_between(random, row->least_period_m, row->most_period_m);
    int number = 0;
    for (double x = x0; x < x1; x += period_m, number++) {
        const double y = side * (row->post_front_m + row->post_half_m), half = row->post_half_m;
        const double top_m = row->ceiling_m > 0 ? row->ceiling_m : 5.0;
        const struct sim_solid post = beam(x - half, x + half, y - half, y + half, 0.0, fmin(top_m, 5.0));
        if (number % row->post_every == 0)
            sim_world_add(world, &post);
        add_item(world, row, x, period_m, side, random);
    }
    const double wall_m = side * row->wall_m;
    const struct sim_solid wall =
        beam(x0, x1, fmin(wall_m, wall_m + side * 0.4), fmax(wall_m, wall_m + side * 0.4), -0.2, row->ceiling_m);
    if (row->wall_m > 0)
        sim_world_add(world, &wall);
}

static void build_rows(struct sim_world *world, const struct sim_row *row, double length_m, uint64_t seed)
{
    struct ndt_random random = ndt_random_stream(seed, 8, 0);
    const double x0 = -210.0, x1 = length_m + 210.0;
    add_row_of(world, row, x0, x1, 1.0, &random);
    add_row_of(world, row, x0, x1, -1.0, &random);
    const struct sim_solid ceiling =
        beam(x0, x1, -row->wall_m - 0.4, row->wall_m + 0.4, row->ceiling_m, row->ceiling_m + 0.3);
    if (row->ceiling_m > 0)
        sim_world_add(world, &ceiling);
}

void sim_scene_build(struct sim_world *world, const struct sim_course *course, double length_m, uint64_t seed)
{
    if (course->place == SIM_STREET)
        build_street(world, course, seed);
    else if (course->place == SIM_CORRIDOR)
        build_corridor(world, length_m, seed);
    else if (course->place == SIM_TUNNEL)
        build_tunnel(world, length_m, seed);
    else if (course->place == SIM_SHELVES)
        build_rows(world, &shelves_row, length_m, seed);
    else if (course->place == SIM_PARKING)
        build_rows(world, &parking_row, length_m, seed);
    else if (course->place == SIM_TERRACE)
        build_rows(world, &terrace_row, length_m, seed);
}
