#include "sim.h"

#include <math.h>
#include <string.h>

/* A city is a square of tiles around the street of the drive, each of another kind or with other numbers: streets
 * like that of the drive, squares, parks, yards, parking lots, suburbs, towers. Each draws from a stream of its
 * own. */

static const double PI = 3.14159265358979323846;
static const double TILE_M = 190.0;
/* The drive's own tile: its course and the houses on both sides. */
static const double STREET_LOW_M = -24.0, STREET_MIDDLE_X_M = 69.0, STREET_MIDDLE_Y_M = 59.0;

/* ---- parts ---- */

static void add_tree(struct sim_builder *build, double x, double y, double size)
{
    const double trunk_m = size * sim_pick(build, 1.6, 3.0), crown_m = size * sim_pick(build, 1.1, 2.2);
    const double shape = sim_pick(build, 0.8, 1.8);
    sim_build_round(build, SIM_CYLINDER, x, y, 0.05 + 0.12 * size, -0.2, trunk_m + 0.8 * crown_m, 0.0);
    sim_build_round(build, SIM_ELLIPSOID, x, y, crown_m, trunk_m, trunk_m + 2.0 * shape * crown_m, 0.5);
}

static void add_house(struct sim_builder *build, double x, double y, double length, double width, double top_m,
                      double yaw_rad)
{
    struct sim_solid house = sim_build_solid(build, x, y, length, width, -1.5, top_m, yaw_rad);
    house.foot_m += 1.5;
    house.reflectance = (float)sim_pick(build, 0.3, 0.8);
    sim_throw_dice(build);
    house.windows.period_m = sim_die(build, 0, 1.8, 5.0);
    house.windows.width_m = house.windows.period_m * sim_die(build, 1, 0.3, 0.7);
    house.windows.storey_m = sim_die(build, 2, 2.6, 4.2);
    house.windows.lost = sim_die(build, 3, 0.1, 0.8);
    sim_throw_dice(build);
    house.windows.sill_m = sim_die(build, 0, 0.4, 1.2);
    house.windows.height_m = sim_die(build, 1, 1.0, 1.7);
    house.windows.recess_m = sim_die(build, 2, 0.08, 0.4);
    sim_world_add(build->world, &house);
    const int parts = (int)sim_pick(build, 0.0, 3.99); /* porches, bays, steps, wings */
    for (int i = 0; i < parts; i++) {
        const double side = sim_pick(build, 0.0, 1.0) < 0.5 ? -1.0 : 1.0,
                     along = sim_pick(build, -0.4, 0.4) * length;
        const double c = cos(yaw_rad), s = sin(yaw_rad), out = side * 0.5 * width;
        sim_throw_dice(build);
        sim_build_box(build, x + c * along - s * out, y + s * along + c * out,
                      sim_die(build, 0, 1.0, 0.35 * length), sim_die(build, 1, 0.6, 3.0), 0.0,
                      fmin(top_m, sim_die(build, 2, 0.5, 4.5)), yaw_rad);
    }
}

static void add_car(struct sim_builder *build, double x, double y, double yaw_rad)
{
    double at_m[3];
    struct sim_solid car[2];
    sim_build_place(build, x, y, at_m);
    sim_car(&build->world->ground, at_m[0], at_m[1], build->yaw_rad + yaw_rad, &build->random, car);
    sim_world_add(build->world, &car[0]);
    sim_world_add(build->world, &car[1]);
}

/* Upright and thin: a hedge with free_path_m, a wall or a fence without. */
static void add_hedge(struct sim_builder *build, double x, double y, double length, double high_m, double yaw_rad,
                      double free_path_m)
{
    struct sim_solid hedge =
        sim_build_solid(build, x, y, length, free_path_m > 0.0 ? 0.8 : 0.15, -0.3, high_m, yaw_rad);
    hedge.free_path_m = free_path_m;
    sim_world_add(build->world, &hedge);
}

static void add_trees(struct sim_builder *build, int count, double low_m, double high_m)
{
    for (int i = 0; i < count; i++) {
        const double x = sim_pick(build, low_m, high_m), y = sim_pick(build, low_m, high_m);
        add_tree(build, x, y, sim_pick(build, 0.5, 2.0));
    }
}

static void add_lamps(struct sim_builder *build, double y)
{
    for (double x = sim_pick(build, 0.0, 20.0); x < TILE_M; x += sim_pick(build, 18.0, 40.0))
        sim_build_round(build, SIM_CYLINDER, x, y, 0.09, 0.0, sim_pick(build, 4.0, 9.0), 0.0);
}

/* ---- tiles: from 0 to TILE_M in x and y ---- */

static void build_square(struct sim_builder *build)
{
    const double size = sim_pick(build, 55.0, 130.0), middle = 0.5 * TILE_M, high = sim_pick(build, 8.0, 22.0);
    for (int side = 0; side < 4; side++) /* houses around it */
        for (double at = -0.5 * size - 8.0; at < 0.5 * size;) {
            const double length = sim_pick(build, 7.0, 26.0), depth = sim_pick(build, 8.0, 22.0);
            const double out = 0.5 * size + 0.5 * depth + sim_pick(build, 0.0, 2.0), along = at + 0.5 * length;
            const double angle = 0.5 * PI * side;
            if (sim_pick(build, 0.0, 1.0) < 0.85)
                add_house(build, middle + cos(angle) * along - sin(angle) * out,
                          middle + sin(angle) * along + cos(angle) * out, length, depth,
                          high * sim_pick(build, 0.7, 1.3), angle);
            at += length + (sim_pick(build, 0.0, 1.0) < 0.3 ? sim_pick(build, 3.0, 14.0) : 0.0);
        }
    const double x = middle + sim_pick(build, -0.3, 0.3) * size, y = middle + sim_pick(build, -0.3, 0.3) * size;
    const double radius = sim_pick(build, 2.0, 6.0);
    sim_build_round(build, SIM_CYLINDER, x, y, radius, -0.3, 0.6, 0.0);
    sim_build_round(build, SIM_CYLINDER, x, y, 0.2 * radius, 0.0, sim_pick(build, 2.0, 7.0), 0.0);
    add_trees(build, (int)sim_pick(build, 0.0, 25.0), middle - 0.45 * size, middle + 0.45 * size);
    for (int i = (int)sim_pick(build, 4.0, 25.0); i > 0; i--) { /* stands, benches, shelters */
        const double at_x = middle + sim_pick(build, -0.45, 0.45) * size,
                     at_y = middle + sim_pick(build, -0.45, 0.45) * size;
        sim_throw_dice(build);
        sim_build_box(build, at_x, at_y, sim_die(build, 0, 0.8, 5.0), sim_die(build, 1, 0.5, 3.0), 0.0,
                      sim_die(build, 2, 0.4, 3.0), sim_die(build, 3, -PI, PI));
    }
    add_lamps(build, middle + 0.35 * size);
}

static void build_park(struct sim_builder *build)
{
    add_trees(build, (int)sim_pick(build, 60.0, 260.0), 0.0, TILE_M);
    for (int i = (int)sim_pick(build, 10.0, 60.0); i > 0; i--) {
        const double x = sim_pick(build, 0.0, TILE_M), y = sim_pick(build, 0.0, TILE_M);
        const double radius = sim_pick(build, 0.4, 2.5);
        sim_build_round(build, SIM_ELLIPSOID, x, y, radius, -0.3, sim_pick(build, 0.7, 1.4) * radius, 0.2);
    }
    for (int i = (int)sim_pick(build, 2.0, 9.0); i > 0; i--) {
        const double x = sim_pick(build, 10.0, TILE_M - 10.0), y = sim_pick(build, 10.0, TILE_M - 10.0);
        const double yaw = sim_pick(build, -PI, PI), length = sim_pick(build, 4.0, 16.0);
        const double width = sim_pick(build, 3.0, 9.0);
        add_house(build, x, y, length, width, sim_pick(build, 2.6, 6.0), yaw);
        add_hedge(build, x + 12.0, y, sim_pick(build, 8.0, 40.0), 1.3, yaw, 0.25);
    }
    add_lamps(build, sim_pick(build, 20.0, 170.0));
}

static void build_yard(struct sim_builder *build)
{
    for (int i = (int)sim_pick(build, 3.0, 7.0); i > 0; i--) {
        const double length = sim_pick(build, 18.0, 60.0), width = sim_pick(build, 12.0, 35.0);
        const double x = sim_pick(build, 25.0, TILE_M - 25.0), y = sim_pick(build, 20.0, TILE_M - 20.0);
        const double yaw = sim_pick(build, 0.0, 1.0) < 0.7 ? 0.0 : sim_pick(build, -0.7, 0.7);
        add_house(build, x, y, length, width, sim_pick(build, 5.0, 13.0), yaw);
    }
    for (int i = (int)sim_pick(build, 0.0, 9.0); i > 0; i--) { /* silos */
        const double x = sim_pick(build, 5.0, TILE_M - 5.0), y = sim_pick(build, 5.0, TILE_M - 5.0);
        const double radius = sim_pick(build, 1.2, 7.0);
        sim_build_round(build, SIM_CYLINDER, x, y, radius, 0.0, sim_pick(build, 4.0, 16.0), 0.0);
    }
    const double x0 = sim_pick(build, 10.0, 120.0), y0 = sim_pick(build, 10.0, 120.0);
    const double yaw = sim_pick(build, -0.4, 0.4);
    for (int row = (int)sim_pick(build, 1.0, 7.0); row > 0; row--) /* containers */
        for (int i = (int)sim_pick(build, 2.0, 9.0); i > 0; i--) {
            const double x = 6.4 * i + sim_pick(build, -0.2, 0.2), y = 4.0 * row + sim_pick(build, -0.4, 0.4);
            const double high = 2.6 * floor(sim_pick(build, 1.0, 3.99));
            sim_build_box(build, x0 + cos(yaw) * x - sin(yaw) * y, y0 + sin(yaw) * x + cos(yaw) * y, 6.06, 2.44,
                          0.0, high, yaw);
        }
    for (double x = 4.0; x < TILE_M; x += 14.0)
        if (sim_pick(build, 0.0, 1.0) < 0.6)
            add_hedge(build, x, sim_pick(build, 0.0, 2.0), 14.0, 2.0, 0.0, 0.0);
    for (int i = (int)sim_pick(build, 3.0, 25.0); i > 0; i--) {
        const double x = sim_pick(build, 0.0, TILE_M), y = sim_pick(build, 0.0, TILE_M);
        sim_throw_dice(build);
        sim_build_box(build, x, y, sim_die(build, 0, 1.0, 12.0), sim_die(build, 1, 1.0, 2.5), 0.0,
                      sim_die(build, 2, 0.6, 3.8), sim_die(build, 3, -PI, PI));
    }
}

static void build_parking(struct sim_builder *build)
{
    const double taken = sim_pick(build, 0.15, 0.9), pitch = sim_pick(build, 2.5, 2.9),
                 row_m = sim_pick(build, 15.0, 18.0);
    const double yaw = sim_pick(build, -0.2, 0.2), market = sim_pick(build, 25.0, 60.0);
    for (double y = 12.0; y < TILE_M - market - 15.0; y += row_m) {
        for (double x = 10.0; x < TILE_M - 10.0; x += pitch) {
            if (sim_pick(build, 0.0, 1.0) < taken)
                add_car(build, x, y, 0.5 * PI + sim_pick(build, -0.06, 0.06) + yaw);
            if (sim_pick(build, 0.0, 1.0) < taken)
                add_car(build, x + 0.5, y + 5.2, -0.5 * PI + sim_pick(build, -0.06, 0.06) + yaw);
        }
        for (double x = sim_pick(build, 10.0, 30.0); x < TILE_M; x += sim_pick(build, 12.0, 45.0))
            add_tree(build, x, y + 2.6, sim_pick(build, 0.4, 1.0));
        add_lamps(build, y + 2.6);
    }
    sim_throw_dice(build);
    add_house(build, sim_die(build, 0, 60.0, 130.0), TILE_M - 0.5 * market, sim_die(build, 1, 40.0, 110.0),
              market - 6.0, sim_die(build, 2, 4.5, 9.0), 0.0);
    for (int i = 0; i < 4; i++) {
        const double x = sim_pick(build, 20.0, 170.0), y = sim_pick(build, 10.0, TILE_M - market - 10.0);
        sim_build_box(build, x, y, sim_pick(build, 3.0, 8.0), 2.0, 2.1, 2.4, 0.0);
        sim_build_box(build, x, y + 1.0, 3.0, 0.1, 0.0, 2.1, 0.0);
    }
}

static void build_suburb(struct sim_builder *build)
{
    double y = sim_pick(build, 8.0, 16.0);
    while (y < TILE_M - 12.0) {
        double x = sim_pick(build, 4.0, 14.0);
        while (x < TILE_M - 8.0) {
            const double length = sim_pick(build, 7.0, 15.0), width = sim_pick(build, 6.5, 10.0);
            const double across = sim_pick(build, 0.0, 1.0) < 0.4 ? 0.5 * PI : 0.0;
            const double yaw = across + sim_pick(build, -0.35, 0.35);
            const double back = sim_pick(build, -3.0, 3.0);
            add_house(build, x, y + back, length, width, sim_pick(build, 3.2, 8.5), yaw);
            if (sim_pick(build, 0.0, 1.0) < 0.6) { /* a garage */
                const double beside = x + 0.6 * length + 2.5;
                sim_build_box(build, beside, y + back + sim_pick(build, -3.0, 3.0), 3.2, 5.8, 0.0, 2.5, yaw);
                add_car(build, beside, y - 7.0, 0.5 * PI + sim_pick(build, -0.2, 0.2));
            }
            sim_throw_dice(build);
            if (sim_die(build, 0, 0.0, 1.0) < 0.5)
                add_hedge(build, x, y - sim_die(build, 1, 8.7, 10.3), 0.8 * length, sim_die(build, 2, 0.8, 2.0),
                          0.0, sim_die(build, 3, 0.0, 1.0) < 0.6 ? 0.25 : 0.0);
            const double tree_x = x + sim_pick(build, -6.0, 6.0), tree_y = y + sim_pick(build, 6.0, 10.0);
            add_tree(build, tree_x, tree_y, sim_pick(build, 0.5, 1.6));
            x += length + sim_pick(build, 6.0, 15.0);
        }
        add_lamps(build, y - 11.0);
        y += sim_pick(build, 26.0, 40.0);
    }
}

static void build_towers(struct sim_builder *build)
{
    for (int i = (int)sim_pick(build, 4.0, 11.0); i > 0; i--) {
        const double x = sim_pick(build, 15.0, TILE_M - 15.0), y = sim_pick(build, 15.0, TILE_M - 15.0);
        const double length = sim_pick(build, 14.0, 55.0), width = sim_pick(build, 11.0, 20.0);
        const double top = sim_pick(build, 14.0, 45.0);
        add_house(build, x, y, length, width, top, sim_pick(build, -PI, PI));
    }
    add_trees(build, (int)sim_pick(build, 20.0, 90.0), 0.0, TILE_M);
    const double yaw = sim_pick(build, -PI, PI), y0 = sim_pick(build, 40.0, 150.0);
    for (double x = 40.0; x < 130.0; x += 2.8)
        if (sim_pick(build, 0.0, 1.0) < 0.6)
            add_car(build, x, y0 + sim_pick(build, -0.3, 0.3), yaw);
    add_lamps(build, y0 + 5.0);
}

/* A street with houses like the one of the drive, but its own course, heights and things. */
static void build_street(struct sim_builder *build)
{
    struct sim_course course;
    const uint64_t seed = ndt_random_next(&build->random);
    const uint32_t first = build->world->count;
    const double quarter = 0.5 * PI * floor(sim_pick(build, 0.0, 3.99));
    const double turned = quarter + sim_pick(build, -0.06, 0.06);
    const double higher = sim_pick(build, 0.5, 2.0);
    double at_m[3];
    const double c = cos(turned), s = sin(turned);
    sim_build_place(build, 0.5 * TILE_M - c * STREET_MIDDLE_X_M + s * STREET_MIDDLE_Y_M,
                    0.5 * TILE_M - s * STREET_MIDDLE_X_M - c * STREET_MIDDLE_Y_M, at_m);
    sim_course_init(&course, SIM_STREET, seed);
    sim_course_place(&course, at_m, build->yaw_rad + turned);
    sim_scene_build(build->world, &course, 0.0, seed);
    for (uint32_t i = first; i < build->world->count; i++) {
        struct sim_solid *solid = &build->world->solids[i];
        if (!(solid->windows.period_m > 0.0))
            continue;
        solid->centre_m[2] += (higher - 1.0) * solid->half_m[2];
        solid->half_m[2] *= higher;
    }
}

/* ---- city ---- */

static int in_rectangle(const struct sim_frame *frame, const double at_m[2], double x0, double x1, double y0,
                        double y1)
{
    const double dx = at_m[0] - frame->origin_m[0], dy = at_m[1] - frame->origin_m[1];
    const double x = frame->cos_yaw * dx + frame->sin_yaw * dy, y = frame->cos_yaw * dy - frame->sin_yaw * dx;
    return x >= x0 && x < x1 && y >= y0 && y < y1;
}

int sim_city_holds(const struct sim_city *city, const double at_m[2])
{
    return in_rectangle(&city->frame, at_m, city->low_m[0], city->low_m[0] + city->extent_m, city->low_m[1],
                        city->low_m[1] + city->extent_m);
}

static void build_tile(struct sim_world *world, const struct sim_city *city, int i, int k, uint64_t seed)
{
    static void (*const kinds[])(struct sim_builder *) = {build_street, build_square, build_park,    build_yard,
                                                          build_street, build_suburb, build_parking, build_towers};
    struct sim_builder build = {
        .world = world, .random = ndt_random_stream(seed, 18, (uint64_t)(i + 100) * 1000 + (uint64_t)(k + 100))};
    const double x = STREET_LOW_M + i * TILE_M, y = STREET_LOW_M + k * TILE_M;
    const struct sim_frame *frame = &city->frame;
    const double origin_m[2] = {frame->origin_m[0] + frame->cos_yaw * x - frame->sin_yaw * y,
                                frame->origin_m[1] + frame->sin_yaw * x + frame->cos_yaw * y};
    sim_build_turn(&build, origin_m, frame->yaw_rad);
    kinds[(int)sim_pick(&build, 0.0, sizeof(kinds) / sizeof(kinds[0]) - 1e-9)](&build);
}

void sim_city_build(struct sim_city *city, struct sim_world *world, const struct sim_course *course,
                    double extent_m, uint64_t seed)
{
    struct ndt_random random = ndt_random_stream(seed, 18, 0);
    const struct sim_edge *edge = &course->edges[0];
    const double spare_m = fmax(extent_m - TILE_M, 0.0);
    memcpy(city->frame.origin_m, edge->start_m, sizeof(city->frame.origin_m));
    city->frame.yaw_rad = edge->heading_rad;
    city->frame.cos_yaw = cos(edge->heading_rad);
    city->frame.sin_yaw = sin(edge->heading_rad);
    city->extent_m = extent_m;
    for (int k = 0; k < 2; k++)
        city->low_m[k] = STREET_LOW_M - ndt_random_between(&random, 0.1, 0.9) * spare_m;
    const uint32_t own = world->count;
    const int first_x = (int)floor((city->low_m[0] - STREET_LOW_M) / TILE_M),
              tiles = (int)ceil(extent_m / TILE_M) + 1;
    const int first_y = (int)floor((city->low_m[1] - STREET_LOW_M) / TILE_M);
    for (int k = first_y; k < first_y + tiles; k++)
        for (int i = first_x; i < first_x + tiles; i++)
            if (i != 0 || k != 0)
                build_tile(world, city, i, k, seed);
    /* Houses that reach over the border of the drive's tile, or of the city, are left out. */
    uint32_t kept = own;
    for (uint32_t i = own; i < world->count; i++) {
        const double *at_m = world->solids[i].centre_m;
        const double near = hypot(world->solids[i].half_m[0], world->solids[i].half_m[1]);
        const double low = STREET_LOW_M - near, high = STREET_LOW_M + TILE_M + near;
        if (sim_city_holds(city, at_m) && !in_rectangle(&city->frame, at_m, low, high, low, high))
            world->solids[kept++] = world->solids[i];
    }
    world->count = kept;
}
