#include "sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A floor: a corridor with rooms on both sides. In an office no two rooms are alike. In a dormitory all are: one
 * size, doors at the same places, the same furniture but for one cabinet. In a furnished office much more stands in
 * the rooms, and pilasters, beams and pipes are irregular, so that single scans are as distinct as those recorded
 * in buildings. Its own frame has the corridor along x and is turned by a random angle. */

static const double PI = 3.14159265358979323846;
static const double WALL_M = 0.12, DOOR_M = 0.95, LINTEL_M = 2.05;

enum { MOST_ROOMS = 24 }; /* on each side */

struct room {
    double x0, length_m, depth_m;
    double door_m;            /* distance from x0 to the door */
    double desk_m, desk_up_m; /* distance from x0 to the desk, and its height */
    double side;              /* side of the corridor: 1 or -1 */
    int is_open;
};

struct floor_plan {
    struct sim_builder build;
    int is_uniform;
    double length_m, half_m, top_m; /* corridor: its length, half width and ceiling */
    struct room rooms[2 * MOST_ROOMS];
    int count;
};

/* ---- rooms ---- */

static struct room random_room(struct floor_plan *floor)
{
    struct sim_builder *build = &floor->build;
    struct room room = {.length_m = floor->is_uniform ? sim_pick(build, 3.4, 4.4) : sim_pick(build, 2.6, 6.5)};
    room.depth_m = sim_pick(build, 4.2, floor->is_uniform ? 5.6 : 7.0);
    room.door_m = sim_pick(build, 0.3, room.length_m - DOOR_M - 0.3);
    room.desk_m = sim_pick(build, 1.1, room.length_m - 1.2);
    room.desk_up_m = sim_pick(build, 0.7, 0.8);
    return room;
}

static void divide(struct floor_plan *floor, double side)
{
    struct room room = floor->count > 0 ? floor->rooms[0] : random_room(floor);
    for (double x = 0.0; floor->count < (side < 0 ? MOST_ROOMS : 2 * MOST_ROOMS); x += room.length_m) {
        if (!floor->is_uniform)
            room = random_room(floor);
        if (x + room.length_m > floor->length_m)
            return;
        room.x0 = x;
        room.side = side;
        room.is_open = ndt_random_unit(&floor->build.random) < 0.6;
        floor->rooms[floor->count++] = room;
    }
}

/* The wall of the corridor at a room: both sides of the door, and the lintel. */
static void add_front(struct floor_plan *floor, const struct room *room)
{
    const double y = room->side * (floor->half_m + 0.5 * WALL_M), end = room->x0 + room->length_m;
    const double door = room->x0 + room->door_m, after = door + DOOR_M;
    sim_build_box(&floor->build, 0.5 * (room->x0 + door), y, room->door_m, WALL_M, -0.2, floor->top_m, 0.0);
    sim_build_box(&floor->build, 0.5 * (after + end), y, end - after, WALL_M, -0.2, floor->top_m, 0.0);
    sim_build_box(&floor->build, door + 0.5 * DOOR_M, y, DOOR_M + 0.1, WALL_M, LINTEL_M, floor->top_m, 0.0);
}

/* A leaf on its hinge, closed or turned into the room. */
static void add_door(struct floor_plan *floor, const struct room *room)
{
    const double hinge = room->x0 + room->door_m, y = room->side * (floor->half_m + 0.5 * WALL_M),
                 high = LINTEL_M - 0.02;
    struct sim_solid leaf =
        room->is_open ? sim_build_solid(&floor->build, hinge, y + room->side * 0.5 * DOOR_M, DOOR_M, 0.05, 0.0,
                                        high, room->side * 0.5 * PI)
                      : sim_build_solid(&floor->build, hinge + 0.5 * DOOR_M, y, DOOR_M, 0.05, 0.0, high, 0.0);
    leaf.hinge_m = 0.5 * DOOR_M;
    leaf.swing_rad = room->side * (room->is_open ? -0.5 : 0.5) * PI;
    sim_world_add(floor->build.world, &leaf);
}

/* Adds a cabinet at a side wall, if the room has one. */
static void add_cabinet(struct floor_plan *floor, const struct room *room)
{
    const int place = (int)sim_pick(&floor->build, 0.0, 5.99);
    const double high = sim_pick(&floor->build, 1.0, 2.0), inner = floor->half_m + WALL_M;
    const double at = floor->is_uniform ? 0.25 + 0.2 * (place % 3) : sim_pick(&floor->build, 0.15, 0.85);
    const double x = place < 3 ? room->x0 + WALL_M + 0.25 : room->x0 + room->length_m - WALL_M - 0.25;
    if (place < 5)
        sim_build_box(&floor->build, x, room->side * (inner + at * room->depth_m), 0.45, 1.0, 0.0, high, 0.0);
}

static void add_desk(struct floor_plan *floor, const struct room *room)
{
    const double outer = floor->half_m + WALL_M + room->depth_m, x = room->x0 + room->desk_m;
    const double up_m = room->desk_up_m - 0.04;
    sim_build_box(&floor->build, x, room->side * (outer - 0.5), 1.6, 0.8, up_m, room->desk_up_m, 0.0);
    sim_build_box(&floor->build, x + 0.6, room->side * (outer - 0.5), 0.4, 0.6, 0.0, up_m, 0.0);
    sim_build_box(&floor->build, x, room->side * (outer - 1.3), 0.5, 0.5, 0.4, 0.48, 0.3); /* a chair */
    sim_build_box(&floor->build, x, room->side * (outer - 1.5), 0.45, 0.06, 0.0, 0.95, 0.3);
}

static void add_room(struct floor_plan *floor, const struct room *room)
{
    const double inner = floor->half_m + WALL_M, outer = inner + room->depth_m;
    const double x = room->x0 + 0.5 * room->length_m;
    struct sim_solid wall = sim_build_solid(&floor->build, x, room->side * (outer + 0.15), room->length_m + 0.1,
                                            0.3, -0.2, floor->top_m, 0.0);
    wall.foot_m = 0.0;
    wall.windows = (struct sim_windows){0.5 * room->length_m, 1.2, 100.0, 0.9, 1.3, 0.12, 0.7};
    sim_world_add(floor->build.world, &wall);
    for (int end = 0; end < 2; end++) /* the adjacent rooms may be less deep */
        sim_build_box(&floor->build, room->x0 + end * room->length_m, room->side * 0.5 * (inner + outer), WALL_M,
                      room->depth_m, -0.2, floor->top_m, 0.0);
    add_desk(floor, room);
    add_cabinet(floor, room);
    for (int more = 0; !floor->is_uniform && more < 3; more++)
        add_cabinet(floor, room);
}

/* ---- what makes a place distinct ---- */

/* Adds shelves and the like along a wall from (x, y), which runs to (x + along_m, y) or, `is_across`, to
 * (x, y + along_m); they stand on the side `into` of it. */
static void furnish_wall(struct floor_plan *floor, double x, double y, double along_m, int is_across, double into)
{
    struct sim_builder *build = &floor->build;
    const double sign = along_m < 0.0 ? -1.0 : 1.0;
    for (double at = sim_pick(build, 0.2, 1.5); at < fabs(along_m) - 0.4; at += sim_pick(build, 0.9, 2.6)) {
        const double length = sim_pick(build, 0.3, 1.4), depth = sim_pick(build, 0.15, 0.6);
        const double foot = ndt_random_unit(&build->random) < 0.3 ? sim_pick(build, 0.6, 1.4) : 0.0;
        const double top = foot + sim_pick(build, 0.4, 2.1 - foot), aside = into * (0.5 * depth + 0.05);
        sim_build_box(build, is_across ? x + aside : x + sign * at, is_across ? y + sign * at : y + aside,
                      is_across ? depth : length, is_across ? length : depth, foot, top, 0.0);
    }
}

static void furnish_room(struct floor_plan *floor, const struct room *room)
{
    struct sim_builder *build = &floor->build;
    const double inner = floor->half_m + WALL_M, outer = inner + room->depth_m, side = room->side;
    furnish_wall(floor, room->x0 + 0.5 * WALL_M, side * (inner + 1.0), side * (room->depth_m - 1.0), 1, 1.0);
    furnish_wall(floor, room->x0 + room->length_m - 0.5 * WALL_M, side * (inner + 1.0),
                 side * (room->depth_m - 1.0), 1, -1.0);
    furnish_wall(floor, room->x0, side * outer, room->length_m, 0, -side);
    for (int i = (int)sim_pick(build, 1.0, 5.0); i > 0; i--) {
        const double x = room->x0 + sim_pick(build, 0.6, room->length_m - 0.6);
        const double y = side * (inner + sim_pick(build, 1.6, room->depth_m - 0.6)),
                     wide = sim_pick(build, 0.25, 0.9);
        sim_throw_dice(build);
        sim_build_box(build, x, y, wide, wide * sim_die(build, 0, 0.5, 1.2), 0.0, sim_die(build, 1, 0.4, 1.5),
                      sim_die(build, 2, -PI, PI));
    }
}

/* Adds pilasters at the walls of the corridor, beams and short pipes below its ceiling. */
static void add_installations(struct floor_plan *floor)
{
    struct sim_builder *build = &floor->build;
    for (int side = -1; side <= 1; side += 2)
        for (double x = sim_pick(build, 0.5, 5.0); x < floor->length_m - 0.5; x += sim_pick(build, 1.5, 7.0)) {
            const double depth = sim_pick(build, 0.08, 0.3);
            sim_build_box(build, x, side * (floor->half_m - 0.5 * depth), sim_pick(build, 0.15, 0.6), depth, 0.0,
                          floor->top_m, 0.0);
        }
    for (double x = sim_pick(build, 0.5, 6.0); x < floor->length_m; x += sim_pick(build, 2.0, 9.0)) {
        const double high = sim_pick(build, 0.1, 0.4), length = sim_pick(build, 0.15, 0.5);
        sim_build_box(build, x, 0.0, length, 2.0 * floor->half_m, floor->top_m - high, floor->top_m, 0.0);
    }
    for (double x = 0.0; x < floor->length_m; x += sim_pick(build, 3.0, 9.0)) {
        const double length = sim_pick(build, 1.0, 8.0), size = sim_pick(build, 0.08, 0.3);
        const double low = floor->top_m - size - sim_pick(build, 0.05, 0.5);
        sim_build_box(build, fmin(x + 0.5 * length, floor->length_m), sim_pick(build, -0.8, 0.8) * floor->half_m,
                      length, size, low, low + size, 0.0);
    }
}

/* ---- corridor ---- */

static void add_ends(struct floor_plan *floor)
{
    for (int end = 0; end < 2; end++) {
        struct sim_solid wall = sim_build_solid(&floor->build, end ? floor->length_m + 0.15 : -0.15, 0.0, 0.3,
                                                2.0 * floor->half_m + 0.5, -0.2, floor->top_m, 0.0);
        wall.foot_m = 0.0;
        if (end)
            wall.windows = (struct sim_windows){1.4, 0.9, 100.0, 0.4, 1.7, 0.15, 0.5};
        sim_world_add(floor->build.world, &wall);
    }
    for (int side = -1; side <= 1; side += 2) { /* walls behind the last rooms */
        double from = 0.0;
        for (int i = 0; i < floor->count; i++)
            if (floor->rooms[i].side * side > 0.0)
                from = fmax(from, floor->rooms[i].x0 + floor->rooms[i].length_m);
        if (floor->length_m - from > 0.01)
            sim_build_box(&floor->build, 0.5 * (from + floor->length_m), side * (floor->half_m + 0.5 * WALL_M),
                          floor->length_m - from, WALL_M, -0.2, floor->top_m, 0.0);
    }
}

/* Adds objects that stand or hang in the corridor here and there. */
static void add_corridor(struct floor_plan *floor)
{
    struct sim_builder *build = &floor->build;
    const double length = floor->length_m, wide = 2.0 * floor->half_m + 16.0;
    for (double x = sim_pick(build, 2.0, 12.0); x < length - 2.0; x += sim_pick(build, 6.0, 16.0)) {
        const double side = ndt_random_unit(&build->random) < 0.5 ? -1.0 : 1.0;
        sim_throw_dice(build);
        sim_build_box(build, x, side * (floor->half_m - 0.15), sim_die(build, 0, 0.3, 1.2), 0.3,
                      sim_die(build, 1, 0.0, 0.7), sim_die(build, 2, 0.9, 1.8), 0.0);
    }
    sim_throw_dice(build);
    sim_build_box(build, 0.5 * length, sim_die(build, 0, -0.6, 0.6) * floor->half_m, length, 0.3,
                  floor->top_m - sim_die(build, 1, 0.2, 0.35), floor->top_m, 0.0); /* a duct */
    add_ends(floor);
    sim_build_box(build, 0.5 * length, 0.0, length + 2.0, wide, floor->top_m, floor->top_m + 0.3, 0.0);
}

/* ---- plan ---- */

static int add_node(const struct floor_plan *floor, struct sim_plan *plan, double x_m, double y_m)
{
    sim_build_place(&floor->build, x_m, y_m, plan->node_m[plan->node_count]);
    return plan->node_count++;
}

static double door_of(const struct room *room)
{
    return room->x0 + room->door_m + 0.5 * DOOR_M;
}

static int by_door(const void *a, const void *b)
{
    const double x = door_of(a), y = door_of(b);
    return x < y ? -1 : x > y;
}

/* Makes a plan of paths along the corridor from door to door, and into the open rooms. */
static void make_plan(struct floor_plan *floor, struct sim_plan *plan)
{
    memset(plan, 0, sizeof(*plan));
    qsort(floor->rooms, (size_t)floor->count, sizeof(floor->rooms[0]), by_door);
    for (int i = 0, before = -1; i < floor->count; i++) {
        const struct room *room = &floor->rooms[i];
        const int node = add_node(floor, plan, door_of(room) + (before >= 0 ? 0.01 : 0.0), 0.0);
        if (before >= 0)
            sim_plan_add_edge(plan, before, node);
        before = node;
        if (room->is_open)
            sim_plan_add_edge(
                plan, node,
                add_node(floor, plan, door_of(room), room->side * (floor->half_m + 0.45 * room->depth_m)));
    }
}

void sim_office_build(struct sim_world *world, struct sim_plan *plan, enum sim_place place, uint64_t seed)
{
    struct floor_plan floor = {.build = {.world = world, .random = ndt_random_stream(seed, 21, 0)},
                               .is_uniform = place == SIM_DORMITORY};
    static const double origin_m[2] = {0.0, 0.0};
    sim_build_turn(&floor.build, origin_m, sim_pick(&floor.build, -PI, PI));
    floor.length_m = sim_pick(&floor.build, 38.0, 62.0);
    floor.half_m = sim_pick(&floor.build, 0.95, 1.4);
    floor.top_m = sim_pick(&floor.build, 2.55, 3.1);
    divide(&floor, -1.0);
    divide(&floor, 1.0);
    add_corridor(&floor);
    for (int i = 0; i < floor.count; i++) {
        add_front(&floor, &floor.rooms[i]);
        add_room(&floor, &floor.rooms[i]);
        add_door(&floor, &floor.rooms[i]);
    }
    for (int i = 0; place == SIM_FURNISHED && i < floor.count; i++)
        furnish_room(&floor, &floor.rooms[i]);
    if (place == SIM_FURNISHED)
        add_installations(&floor);
    make_plan(&floor, plan);
}
