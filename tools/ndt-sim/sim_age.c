#include "sim.h"

#include <math.h>
#include <string.h>

/* Edge of a cell: solids within one cell are one object, with one fate. */
static const double CELL_M = 1.2;
/* Loose things stand on the ground and are no higher and no wider than a car, or are as small as a box on a shelf.
 */
static const double HIGHEST_M = 2.4, WIDEST_M = 2.8, SMALL_M = 0.45, ON_GROUND_M = 0.3;
static const double FARTHEST_M = 1.5, TURN_RAD = 0.6;

enum fate { STAYS, GONE, MOVED, JOINED, FATES };

static int is_loose(const struct sim_world *world, const struct sim_solid *solid)
{
    const double *half = solid->half_m;
    const double widest = fmax(half[0], half[1]), foot_m = solid->centre_m[2] - half[2];
    const double ground_m = sim_ground_height(&world->ground, solid->centre_m[0], solid->centre_m[1], NULL);
    if (fmax(widest, half[2]) <= SMALL_M)
        return 1;
    return widest <= WIDEST_M && foot_m - ground_m <= ON_GROUND_M && foot_m + 2.0 * half[2] - ground_m <= HIGHEST_M;
}

static struct ndt_random random_of(const struct sim_solid *solid, uint64_t seed)
{
    const int64_t x = (int64_t)floor(solid->centre_m[0] / CELL_M), y = (int64_t)floor(solid->centre_m[1] / CELL_M);
    return ndt_random_stream(seed, 22, ((uint64_t)x << 32) ^ ((uint64_t)y & UINT32_MAX));
}

static enum fate fate_of(struct ndt_random *random, double share)
{
    const double at = ndt_random_unit(random);
    return at < share ? (enum fate)(GONE + (int)(at / share * (FATES - GONE))) : STAYS;
}

static void turn(struct sim_solid *solid, double angle_rad)
{
    const double c = cos(angle_rad), s = sin(angle_rad), was = solid->cos_yaw;
    solid->cos_yaw = c * was - s * solid->sin_yaw;
    solid->sin_yaw = s * was + c * solid->sin_yaw;
}

/* Moves a solid: it turns about the middle of its cell, which moves. */
static void move(struct sim_solid *solid, struct ndt_random *random)
{
    const double angle = ndt_random_between(random, -TURN_RAD, TURN_RAD), c = cos(angle), s = sin(angle);
    double off[2], middle[2];
    for (int k = 0; k < 2; k++) {
        middle[k] = (floor(solid->centre_m[k] / CELL_M) + 0.5) * CELL_M;
        off[k] = solid->centre_m[k] - middle[k];
        middle[k] += ndt_random_between(random, -FARTHEST_M, FARTHEST_M);
    }
    solid->centre_m[0] = middle[0] + c * off[0] - s * off[1];
    solid->centre_m[1] = middle[1] + s * off[0] + c * off[1];
    turn(solid, angle);
}

/* A door turns about its hinge. */
static void swing(struct sim_solid *solid)
{
    const double hinge[2] = {solid->centre_m[0] - solid->hinge_m * solid->cos_yaw,
                             solid->centre_m[1] - solid->hinge_m * solid->sin_yaw};
    turn(solid, solid->swing_rad);
    solid->centre_m[0] = hinge[0] + solid->hinge_m * solid->cos_yaw;
    solid->centre_m[1] = hinge[1] + solid->hinge_m * solid->sin_yaw;
}

static void grow(struct sim_solid *solid, struct ndt_random *random)
{
    for (int k = 0; k < 3; k++)
        solid->half_m[k] *= ndt_random_between(random, 0.7, 1.3);
}

static void add_changed(struct sim_world *aged, const struct sim_solid *solid, enum fate fate,
                        struct ndt_random *random)
{
    struct sim_solid changed = *solid;
    if (solid->free_path_m > 0.0)
        grow(&changed, random);
    else if (solid->hinge_m > 0.0)
        swing(&changed);
    else if (fate != GONE)
        move(&changed, random);
    else
        return;
    sim_world_add(aged, &changed);
    if (fate == JOINED && !(solid->free_path_m > 0.0) && !(solid->hinge_m > 0.0))
        sim_world_add(aged, solid);
}

enum ndt_status sim_age_build(struct sim_world *aged, const struct sim_world *world, double share, uint64_t seed,
                              struct ndt_error *err)
{
    sim_world_init(aged);
    aged->ground = world->ground;
    aged->bore_radius_m = world->bore_radius_m;
    aged->bore_y_m = world->bore_y_m;
    aged->bore_z_m = world->bore_z_m;
    for (uint32_t i = 0; i < world->count; i++) {
        const struct sim_solid *solid = &world->solids[i];
        struct ndt_random random = random_of(solid, seed);
        const enum fate fate = fate_of(&random, share);
        if (fate == STAYS || !(is_loose(world, solid) || solid->free_path_m > 0.0))
            sim_world_add(aged, solid);
        else
            add_changed(aged, solid, fate, &random);
    }
    return sim_world_finish(aged, err);
}
