#include "sim.h"

#include <math.h>
#include <string.h>

/* A hall is a plan, rows and columns of aisles with irregular distances, and what stands in the blocks between
 * them. Its own frame is turned by a random angle. A gallery on one side has two stairs. */

static const double PI = 3.14159265358979323846;

enum { HALL_MAX_LINES = 10 };

struct hall {
    struct sim_builder build;
    int columns, rows;                                         /* number of blocks */
    double x_m[HALL_MAX_LINES], y_m[HALL_MAX_LINES];           /* middles of the aisles */
    double x_half_m[HALL_MAX_LINES], y_half_m[HALL_MAX_LINES]; /* their half widths */
    double height_m;                                           /* height of the ceiling */
    int gallery_first, gallery_last;                           /* columns of blocks in the last row */
    double gallery_m;                                          /* height of its floor */
};

/* Borders of a block, and how high things in it may be. */
struct block {
    double x0, x1, y0, y1, top_m;
};

/* ---- what stands in a block ---- */

static void fill_racks(struct hall *hall, const struct block *block)
{
    const double top_m = fmin(block->top_m, sim_pick(&hall->build, 2.2, 5.5)),
                 level_m = sim_pick(&hall->build, 0.9, 1.6);
    const double depth = sim_pick(&hall->build, 0.6, 1.2), gap = sim_pick(&hall->build, 1.1, 1.9),
                 bay = sim_pick(&hall->build, 1.8, 2.9);
    for (double y = block->y0 + 0.5 * depth; y + 0.5 * depth < block->y1; y += depth + gap)
        for (double x = block->x0; x + bay < block->x1; x += bay) {
            if (ndt_random_unit(&hall->build.random) < 0.12)
                continue;
            sim_build_box(&hall->build, x, y, 0.08, depth, 0.0, top_m, 0.0);
            for (double z = 0.15; z + 0.4 < top_m; z += level_m) {
                sim_build_box(&hall->build, x + 0.5 * bay, y, bay, depth, z - 0.06, z, 0.0);
                const double goods = sim_pick(&hall->build, 0.3, 0.95), high = sim_pick(&hall->build, 0.3, 0.9);
                sim_throw_dice(&hall->build);
                if (ndt_random_unit(&hall->build.random) < 0.7)
                    sim_build_box(&hall->build, x + 0.5 * bay, y, goods * bay,
                                  sim_die(&hall->build, 0, 0.5, 0.95) * depth, z, z + high * level_m,
                                  sim_die(&hall->build, 1, -0.06, 0.06));
            }
        }
}

static void fill_booth(struct hall *hall, const struct block *block)
{
    const double x = 0.5 * (block->x0 + block->x1), y = 0.5 * (block->y0 + block->y1);
    const double size = fmin(block->x1 - block->x0, block->y1 - block->y0);
    const double yaw = sim_pick(&hall->build, -PI, PI), c = cos(yaw), s = sin(yaw),
                 top_m = fmin(block->top_m, sim_pick(&hall->build, 2.2, 3.4));
    const double reach = 0.33 * size;
    for (int i = 0; i < 3; i++) { /* walls on two or three sides */
        const double angle = yaw + 0.5 * PI * i;
        if (i < 2 || ndt_random_unit(&hall->build.random) < 0.6)
            sim_build_box(&hall->build, x + reach * cos(angle), y + reach * sin(angle), 0.1,
                          sim_pick(&hall->build, 1.2, 2.0) * reach, 0.0, top_m, angle);
    }
    sim_build_box(&hall->build, x - 0.4 * reach * c, y - 0.4 * reach * s, 0.6, sim_pick(&hall->build, 1.0, 2.2),
                  0.0, 1.05, yaw);
    sim_build_box(&hall->build, x + 0.5 * reach * s, y - 0.5 * reach * c, 0.5, 0.5, 0.0,
                  sim_pick(&hall->build, 0.7, 1.9), yaw);
    if (ndt_random_unit(&hall->build.random) < 0.5)
        sim_build_box(&hall->build, x, y, 1.6 * reach, 0.9, top_m - 0.4, top_m, yaw);
}

static void fill_machines(struct hall *hall, const struct block *block)
{
    const int count = 3 + (int)sim_pick(&hall->build, 0.0, 5.0);
    for (int i = 0; i < count; i++) {
        const double x = sim_pick(&hall->build, block->x0 + 1.0, block->x1 - 1.0),
                     y = sim_pick(&hall->build, block->y0 + 1.0, block->y1 - 1.0);
        const double top_m = fmin(block->top_m, sim_pick(&hall->build, 0.8, 3.2)),
                     length = sim_pick(&hall->build, 0.7, 2.0);
        sim_throw_dice(&hall->build);
        if (ndt_random_unit(&hall->build.random) < 0.3)
            sim_build_round(&hall->build, SIM_CYLINDER, x, y, 0.4 * length, 0.0, top_m, 0.0);
        else
            sim_build_box(&hall->build, x, y, length, sim_die(&hall->build, 0, 0.6, 1.6), 0.0, top_m,
                          sim_die(&hall->build, 1, -0.3, 0.3));
    }
    sim_throw_dice(&hall->build);
    sim_build_box(&hall->build, 0.5 * (block->x0 + block->x1), sim_die(&hall->build, 0, block->y0, block->y1),
                  block->x1 - block->x0, sim_die(&hall->build, 1, 0.3, 0.8), 0.7, 1.0, 0.0); /* a conveyor */
}

static void fill_office(struct hall *hall, const struct block *block)
{
    const double length = block->x1 - block->x0, width = block->y1 - block->y0, top_m = fmin(2.7, block->top_m);
    const double x = 0.5 * (block->x0 + block->x1), y = 0.5 * (block->y0 + block->y1);
    const double door = sim_pick(&hall->build, 0.9, 1.6),
                 door_at = sim_pick(&hall->build, 0.2, 0.8) * (length - door);
    for (int i = 0; i < 3; i++) {
        struct sim_solid wall =
            i == 0 ? sim_build_solid(&hall->build, x, block->y1, length, 0.15, 0.0, top_m, 0.0)
                   : sim_build_solid(&hall->build, i == 1 ? block->x0 : block->x1, y, 0.15, width, 0.0, top_m, 0.0);
        sim_throw_dice(&hall->build);
        if (ndt_random_unit(&hall->build.random) < 0.7)
            wall.windows = (struct sim_windows){sim_die(&hall->build, 0, 1.4, 2.6), 0.9, 100.0, 0.9, 1.2, 0.05,
                                                sim_die(&hall->build, 1, 0.2, 0.8)};
        sim_world_add(hall->build.world, &wall);
    }
    sim_build_box(&hall->build, block->x0 + 0.5 * door_at, block->y0, door_at, 0.15, 0.0, top_m, 0.0);
    sim_build_box(&hall->build, 0.5 * (block->x0 + door_at + door + block->x1), block->y0, length - door_at - door,
                  0.15, 0.0, top_m, 0.0);
    sim_build_box(&hall->build, x, y, length + 0.3, width + 0.3, top_m, top_m + 0.15, 0.0);
    sim_build_box(&hall->build, x, y + 0.2 * width, 1.6, 0.8, 0.0, 0.75, sim_pick(&hall->build, -0.2, 0.2));
    sim_build_box(&hall->build, x + 0.3 * length, y, 0.5, 1.2, 0.0, 1.9, 0.0);
}

static void fill_chairs(struct hall *hall, const struct block *block)
{
    const double yaw = sim_pick(&hall->build, -0.15, 0.15), dx = sim_pick(&hall->build, 0.7, 1.3),
                 dy = sim_pick(&hall->build, 1.0, 2.1);
    for (double y = block->y0 + 0.7; y < block->y1 - 0.5; y += dy)
        for (double x = block->x0 + 0.5; x < block->x1 - 0.5; x += dx) {
            if (ndt_random_unit(&hall->build.random) < 0.2)
                continue;
            const double turned = yaw + sim_pick(&hall->build, -0.2, 0.2);
            sim_build_box(&hall->build, x, y, 0.45, 0.45, 0.38, 0.46, turned);
            sim_build_box(&hall->build, x, y - 0.2, 0.45, 0.06, 0.0, 0.9, turned);
        }
    sim_build_box(&hall->build, 0.5 * (block->x0 + block->x1), block->y1 - 0.2, 0.5 * (block->x1 - block->x0), 0.1,
                  0.6, fmin(block->top_m, 2.6), yaw); /* a screen */
}

static void fill_pallets(struct hall *hall, const struct block *block)
{
    for (double y = block->y0 + 0.7; y < block->y1 - 0.5; y += sim_pick(&hall->build, 1.3, 2.2))
        for (double x = block->x0 + 0.7; x < block->x1 - 0.5; x += sim_pick(&hall->build, 1.3, 2.6)) {
            const double empty = ndt_random_unit(&hall->build.random);
            if (empty < 0.3)
                continue;
            sim_throw_dice(&hall->build);
            sim_build_box(
                &hall->build, x, y, sim_die(&hall->build, 0, 0.8, 1.2), sim_die(&hall->build, 1, 0.7, 1.0), 0.0,
                fmin(block->top_m, sim_die(&hall->build, 2, 0.15, 2.3)), sim_die(&hall->build, 3, -0.25, 0.25));
        }
}

static void fill_lounge(struct hall *hall, const struct block *block)
{
    const int count = 3 + (int)sim_pick(&hall->build, 0.0, 5.0);
    for (int i = 0; i < count; i++) {
        const double x = sim_pick(&hall->build, block->x0 + 0.6, block->x1 - 0.6),
                     y = sim_pick(&hall->build, block->y0 + 0.6, block->y1 - 0.6);
        const double pot = sim_pick(&hall->build, 0.2, 0.4), crown = sim_pick(&hall->build, 0.4, 0.9),
                     yaw = sim_pick(&hall->build, -PI, PI);
        if (ndt_random_unit(&hall->build.random) < 0.5) {
            sim_build_round(&hall->build, SIM_CYLINDER, x, y, pot, 0.0, 0.5, 0.0);
            sim_build_round(&hall->build, SIM_ELLIPSOID, x, y, crown, 0.6, fmin(block->top_m, 0.8 + 2.0 * crown),
                            0.25);
        } else {
            sim_build_box(&hall->build, x, y, sim_pick(&hall->build, 1.2, 2.4), 0.8, 0.0, 0.42, yaw);
            sim_build_box(&hall->build, x - 0.35 * cos(yaw + 0.5 * PI), y - 0.35 * sin(yaw + 0.5 * PI), 1.6, 0.15,
                          0.0, 0.85, yaw);
        }
    }
}

static void fill_tanks(struct hall *hall, const struct block *block)
{
    const double top_m = block->top_m;
    double x = block->x0 + 1.0;
    while (x < block->x1 - 0.8) {
        const double radius = fmin(sim_pick(&hall->build, 0.5, 1.6), 0.45 * (block->y1 - block->y0));
        const double y = sim_pick(&hall->build, block->y0 + radius, block->y1 - radius),
                     high = fmin(top_m, sim_pick(&hall->build, 1.5, 5.0));
        sim_build_round(&hall->build, SIM_CYLINDER, x + radius, y, radius, sim_pick(&hall->build, 0.0, 0.5), high,
                        0.0);
        x += 2.0 * radius + sim_pick(&hall->build, 0.3, 1.2);
    }
    const double pipe_m = fmin(top_m, sim_pick(&hall->build, 1.5, 4.0));
    sim_build_box(&hall->build, 0.5 * (block->x0 + block->x1), sim_pick(&hall->build, block->y0, block->y1),
                  block->x1 - block->x0, 0.3, pipe_m - 0.3, pipe_m, 0.0);
}

static void fill_cars(struct hall *hall, const struct block *block)
{
    const struct sim_ground floor = {0};
    for (double x = block->x0 + 1.8; x < block->x1 - 1.2; x += sim_pick(&hall->build, 3.0, 4.5)) {
        double at_m[3];
        struct sim_solid car[2];
        sim_build_place(&hall->build, x, 0.5 * (block->y0 + block->y1), at_m);
        sim_car(&floor, at_m[0], at_m[1], hall->build.yaw_rad + 0.5 * PI + sim_pick(&hall->build, -0.5, 0.5),
                &hall->build.random, car);
        sim_world_add(hall->build.world, &car[0]);
        sim_world_add(hall->build.world, &car[1]);
    }
}

static void fill_block(struct hall *hall, const struct block *block)
{
    static void (*const fillings[])(struct hall *, const struct block *) = {fill_racks,  fill_booth,  fill_machines,
                                                                            fill_office, fill_chairs, fill_pallets,
                                                                            fill_lounge, fill_tanks,  fill_cars};
    fillings[(int)sim_pick(&hall->build, 0.0, sizeof(fillings) / sizeof(fillings[0]) - 1e-9)](hall, block);
}

static void fill_blocks(struct hall *hall)
{
    for (int row = 0; row < hall->rows; row++)
        for (int column = 0; column < hall->columns; column++) {
            const int below =
                row == hall->rows - 1 && column >= hall->gallery_first - 1 && column <= hall->gallery_last + 1;
            const int has_stairs = below && (column < hall->gallery_first || column > hall->gallery_last);
            struct block block;
            block.x0 = hall->x_m[column] + hall->x_half_m[column] + sim_pick(&hall->build, 0.0, 0.9);
            block.x1 = hall->x_m[column + 1] - hall->x_half_m[column + 1] - sim_pick(&hall->build, 0.0, 0.9);
            block.y0 = hall->y_m[row] + hall->y_half_m[row] + sim_pick(&hall->build, 0.0, 0.9);
            block.y1 = hall->y_m[row + 1] - hall->y_half_m[row + 1] - sim_pick(&hall->build, 0.0, 0.9);
            block.top_m = below ? hall->gallery_m - 0.5 : hall->height_m - 1.6;
            if (!has_stairs)
                fill_block(hall, &block);
        }
}

/* ---- walls, ceiling, pillars ---- */

/* The wall along one side, outside of (x0, y0) to (x1, y1): pieces of different depth with doors or panes. */
static void add_side(struct hall *hall, double x0, double y0, double x1, double y1)
{
    const double length = hypot(x1 - x0, y1 - y0), ux = (x1 - x0) / length, uy = (y1 - y0) / length;
    for (double at = -4.0; at < length + 4.0;) {
        const double piece = sim_pick(&hall->build, 2.5, 9.0), back = sim_pick(&hall->build, 0.0, 2.2),
                     yaw = sim_pick(&hall->build, -0.04, 0.04);
        const double along = at + 0.5 * piece, out = back + 3.0;
        struct sim_solid wall =
            sim_build_solid(&hall->build, x0 + ux * along + uy * out, y0 + uy * along - ux * out, piece + 0.2, 6.0,
                            -0.2, hall->height_m + 0.5, atan2(uy, ux) + yaw);
        const double kind = ndt_random_unit(&hall->build.random);
        wall.foot_m = 0.0;
        wall.reflectance = (float)sim_pick(&hall->build, 0.3, 0.8);
        sim_throw_dice(&hall->build);
        if (kind < 0.35) /* a door or a gate */
            wall.windows = (struct sim_windows){
                piece + 0.2, sim_die(&hall->build, 0, 0.25, 0.6) * piece, 100.0,
                0.0,         sim_die(&hall->build, 1, 2.0, 4.0),          sim_die(&hall->build, 2, 0.15, 0.6),
                0.0};
        else if (kind < 0.65)
            wall.windows =
                (struct sim_windows){sim_die(&hall->build, 0, 1.6, 3.5), 1.2, sim_die(&hall->build, 1, 2.8, 4.0),
                                     sim_die(&hall->build, 2, 0.8, 1.4), 1.3, 0.2,
                                     sim_die(&hall->build, 3, 0.3, 0.9)};
        sim_world_add(hall->build.world, &wall);
        at += piece;
    }
}

static void add_shell(struct hall *hall)
{
    const int nx = hall->columns, ny = hall->rows;
    const double x0 = -hall->x_half_m[0], x1 = hall->x_m[nx] + hall->x_half_m[nx];
    const double y0 = -hall->y_half_m[0], y1 = hall->y_m[ny] + hall->y_half_m[ny], top_m = hall->height_m;
    add_side(hall, x0, y0, x1, y0);
    add_side(hall, x1, y0, x1, y1);
    add_side(hall, x1, y1, x0, y1);
    add_side(hall, x0, y1, x0, y0);
    sim_build_box(&hall->build, 0.5 * (x0 + x1), 0.5 * (y0 + y1), x1 - x0 + 12.0, y1 - y0 + 12.0, top_m,
                  top_m + 0.5, 0.0);
    for (double x = x0 + sim_pick(&hall->build, 1.0, 4.0); x < x1;
         x += sim_pick(&hall->build, 3.5, 8.0)) { /* girders */
        const double deep = sim_pick(&hall->build, 0.3, 0.8);
        sim_throw_dice(&hall->build);
        sim_build_box(&hall->build, x, 0.5 * (y0 + y1), sim_die(&hall->build, 0, 0.2, 0.5), y1 - y0 + 6.0,
                      top_m - deep, top_m, sim_die(&hall->build, 1, -0.02, 0.02));
    }
    for (int i = 0; i < 3; i++) { /* ducts */
        const double z = top_m - sim_pick(&hall->build, 1.0, 1.5),
                     length = sim_pick(&hall->build, 0.4, 1.0) * (x1 - x0);
        sim_throw_dice(&hall->build);
        sim_build_box(&hall->build, sim_die(&hall->build, 0, x0 + 0.3 * length, x1 - 0.3 * length),
                      sim_die(&hall->build, 1, y0, y1), length, sim_die(&hall->build, 2, 0.4, 0.9), z, z + 0.5,
                      0.0);
    }
    for (int i = 0; i < nx; i++)
        for (int k = 0; k < ny; k++) {
            const double x = hall->x_m[i] + hall->x_half_m[i] + 0.3, y = hall->y_m[k] + hall->y_half_m[k] + 0.3;
            const double size = sim_pick(&hall->build, 0.18, 0.42), kind = ndt_random_unit(&hall->build.random);
            if (kind < 0.3)
                sim_build_round(&hall->build, SIM_CYLINDER, x, y, size, 0.0, top_m, 0.0);
            else if (kind < 0.6)
                sim_build_box(&hall->build, x, y, 2.0 * size, sim_pick(&hall->build, 0.3, 0.7), 0.0, top_m, 0.0);
        }
}

/* ---- gallery ---- */

/* Steps from (x0, y) at the floor to (x1, y) at the gallery, and the rails. */
static void add_stairs(struct hall *hall, double x0, double x1, double y, double width_m)
{
    const int steps = (int)ceil(hall->gallery_m / sim_pick(&hall->build, 0.155, 0.19));
    const double run = (x1 - x0) / steps, rise = hall->gallery_m / steps, thick = sim_pick(&hall->build, 0.06, 0.2);
    for (int i = 0; i < steps; i++) {
        const double x = x0 + (i + 0.5) * run, z = (i + 1) * rise;
        sim_build_box(&hall->build, x, y, fabs(run) + 0.02, width_m, z - thick, z, 0.0);
        if (i % 4 == 1)
            for (int side = -1; side <= 1; side += 2)
                sim_build_box(&hall->build, x, y + side * 0.5 * width_m, 0.06, 0.06, z, z + 1.0, 0.0);
    }
}

static void add_gallery(struct hall *hall)
{
    const double x0 = hall->x_m[hall->gallery_first], x1 = hall->x_m[hall->gallery_last + 1];
    const double y0 = hall->y_m[hall->rows - 1] + hall->y_half_m[hall->rows - 1];
    const double y1 = hall->y_m[hall->rows] + hall->y_half_m[hall->rows] + 3.0, z = hall->gallery_m;
    const double middle = 0.5 * (hall->y_m[hall->rows - 1] + hall->y_m[hall->rows]);
    sim_build_box(&hall->build, 0.5 * (x0 + x1), 0.5 * (y0 + y1), x1 - x0, y1 - y0,
                  z - sim_pick(&hall->build, 0.2, 0.4), z, 0.0);
    for (double x = x0 + 0.1; x < x1; x += sim_pick(&hall->build, 1.0, 2.0))
        sim_build_box(&hall->build, x, y0, 0.06, 0.06, z, z + 1.05, 0.0);
    sim_build_box(&hall->build, 0.5 * (x0 + x1), y0, x1 - x0, 0.06, z + 1.0, z + 1.06, 0.0);
    sim_build_box(&hall->build, 0.5 * (x0 + x1), y0, x1 - x0, 0.04, z + 0.45, z + 0.5, 0.0);
    for (double x = x0 + 1.2; x < x1 - 1.5;
         x += sim_pick(&hall->build, 1.8, 3.5)) { /* cupboards at the wall, desks at the rail */
        sim_throw_dice(&hall->build);
        sim_build_box(&hall->build, x, y1 - sim_die(&hall->build, 0, 2.2, 3.0), sim_die(&hall->build, 1, 0.6, 1.8),
                      0.6, z, z + sim_die(&hall->build, 2, 0.9, 2.1), 0.0);
        sim_throw_dice(&hall->build);
        if (ndt_random_unit(&hall->build.random) < 0.5)
            sim_build_box(&hall->build, x, middle - sim_die(&hall->build, 0, 1.3, 1.8),
                          sim_die(&hall->build, 1, 0.6, 1.5), 0.7, z, z + sim_die(&hall->build, 2, 0.7, 1.4), 0.0);
    }
    const int left = hall->gallery_first - 1, right = hall->gallery_last + 1;
    add_stairs(hall, hall->x_m[left] + hall->x_half_m[left], x0, middle, sim_pick(&hall->build, 1.6, 3.0));
    sim_throw_dice(&hall->build);
    add_stairs(hall, hall->x_m[right + 1] - hall->x_half_m[right + 1] - sim_die(&hall->build, 0, 0.0, 1.0), x1,
               middle, sim_die(&hall->build, 1, 1.2, 1.8));
}

/* ---- plan ---- */

static int add_node(const struct hall *hall, struct sim_plan *plan, double x_m, double y_m, double z_m)
{
    double *node_m = plan->node_m[plan->node_count];
    sim_build_place(&hall->build, x_m, y_m, node_m);
    node_m[2] = z_m;
    return plan->node_count++;
}

static void make_plan(const struct hall *hall, struct sim_plan *plan)
{
    const int wide = hall->columns + 1;
    memset(plan, 0, sizeof(*plan));
    for (int k = 0; k <= hall->rows; k++)
        for (int i = 0; i < wide; i++) {
            const int node = add_node(hall, plan, hall->x_m[i], hall->y_m[k], 0.0);
            if (i > 0)
                sim_plan_add_edge(plan, node - 1, node);
            if (k > 0)
                sim_plan_add_edge(plan, node - wide, node);
        }
    const double y = 0.5 * (hall->y_m[hall->rows - 1] + hall->y_m[hall->rows]), z = hall->gallery_m;
    const int left = hall->gallery_first - 1, right = hall->gallery_last + 2;
    const int bottom[2] = {add_node(hall, plan, hall->x_m[left], y, 0.0),
                           add_node(hall, plan, hall->x_m[right], y, 0.0)};
    const int foot[2] = {add_node(hall, plan, hall->x_m[left] + hall->x_half_m[left], y, 0.0),
                         add_node(hall, plan, hall->x_m[right] - hall->x_half_m[right] - 0.5, y, 0.0)};
    const int top[2] = {add_node(hall, plan, hall->x_m[left + 1], y, z),
                        add_node(hall, plan, hall->x_m[right - 1], y, z)};
    for (int i = 0; i < 2; i++) {
        const int column = i == 0 ? left : right;
        sim_plan_add_edge(plan, (hall->rows - 1) * wide + column, bottom[i]);
        sim_plan_add_edge(plan, hall->rows * wide + column, bottom[i]);
        sim_plan_add_edge(plan, bottom[i], foot[i]);
        sim_plan_add_edge(plan, foot[i], top[i]);
    }
    sim_plan_add_edge(plan, top[0], top[1]);
}

static void divide(struct hall *hall, int blocks, double least_m, double most_m, double *middle_m, double *half_m)
{
    for (int i = 0; i <= blocks; i++)
        half_m[i] = sim_pick(&hall->build, 1.0, 1.9);
    middle_m[0] = 0.0;
    for (int i = 0; i < blocks; i++)
        middle_m[i + 1] = middle_m[i] + half_m[i] + half_m[i + 1] + sim_pick(&hall->build, least_m, most_m);
}

void sim_hall_build(struct sim_world *world, struct sim_plan *plan, uint64_t seed)
{
    struct hall hall = {.build = {.world = world, .random = ndt_random_stream(seed, 13, 0)}};
    static const double origin_m[2] = {0.0, 0.0};
    sim_build_turn(&hall.build, origin_m, sim_pick(&hall.build, -PI, PI));
    hall.columns = 5 + (int)sim_pick(&hall.build, 0.0, 3.0);
    hall.rows = 3 + (int)sim_pick(&hall.build, 0.0, 2.0);
    hall.height_m = sim_pick(&hall.build, 6.3, 10.5);
    hall.gallery_m = sim_pick(&hall.build, 3.2, hall.height_m - 3.0 < 4.3 ? hall.height_m - 3.0 : 4.3);
    divide(&hall, hall.columns, 4.5, 9.5, hall.x_m, hall.x_half_m);
    divide(&hall, hall.rows, 4.0, 7.5, hall.y_m, hall.y_half_m);
    hall.gallery_first = 1 + (int)sim_pick(&hall.build, 0.0, hall.columns - 3.5);
    hall.gallery_last =
        hall.gallery_first + (int)sim_pick(&hall.build, 0.0, hall.columns - 2 - hall.gallery_first + 0.99);
    add_shell(&hall);
    add_gallery(&hall);
    fill_blocks(&hall);
    make_plan(&hall, plan);
}
