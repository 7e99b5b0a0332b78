#include "sim.h"

#include <math.h>
#include <string.h>

void sim_build_turn(struct sim_builder *build, const double origin_m[2], double yaw_rad)
{
    memcpy(build->origin_m, origin_m, sizeof(build->origin_m));
    build->yaw_rad = yaw_rad;
    build->cos_yaw = cos(yaw_rad);
    build->sin_yaw = sin(yaw_rad);
}

double sim_pick(struct sim_builder *build, double low, double high)
{
    return ndt_random_between(&build->random, low, high);
}

void sim_throw_dice(struct sim_builder *build)
{
    for (int i = 0; i < SIM_DICE; i++)
        build->dice[i] = ndt_random_unit(&build->random);
}

double sim_die(const struct sim_builder *build, int number, double low, double high)
{
    return low + (high - low) * build->dice[number];
}

void sim_build_place(const struct sim_builder *build, double x_m, double y_m, double out_m[3])
{
    out_m[0] = build->origin_m[0] + build->cos_yaw * x_m - build->sin_yaw * y_m;
    out_m[1] = build->origin_m[1] + build->sin_yaw * x_m + build->cos_yaw * y_m;
    out_m[2] = sim_ground_height(&build->world->ground, out_m[0], out_m[1], NULL);
}

struct sim_solid sim_build_solid(const struct sim_builder *build, double x_m, double y_m, double length_m,
                                 double width_m, double z0_m, double z1_m, double yaw_rad)
{
    double centre_m[3];
    const double half_m[3] = {0.5 * length_m, 0.5 * width_m, 0.5 * (z1_m - z0_m)};
    sim_build_place(build, x_m, y_m, centre_m);
    centre_m[2] += 0.5 * (z0_m + z1_m);
    return sim_box(centre_m, half_m, build->yaw_rad + yaw_rad);
}

void sim_build_box(struct sim_builder *build, double x_m, double y_m, double length_m, double width_m, double z0_m,
                   double z1_m, double yaw_rad)
{
    struct sim_solid box = sim_build_solid(build, x_m, y_m, length_m, width_m, z0_m, z1_m, yaw_rad);
    box.reflectance = (float)sim_pick(build, 0.15, 0.8);
    sim_world_add(build->world, &box);
}

void sim_build_round(struct sim_builder *build, enum sim_shape shape, double x_m, double y_m, double radius_m,
                     double z0_m, double z1_m, double free_path_m)
{
    double centre_m[3];
    const double half_m[3] = {radius_m, radius_m, 0.5 * (z1_m - z0_m)};
    sim_build_place(build, x_m, y_m, centre_m);
    centre_m[2] += 0.5 * (z0_m + z1_m);
    struct sim_solid solid = sim_round(shape, centre_m, half_m);
    solid.free_path_m = free_path_m;
    sim_world_add(build->world, &solid);
}
