#include "sim.h"

#include <math.h>
#include <string.h>

enum ndt_status sim_people_open(struct sim_people *people, const struct sim_crowd *crowd, struct ndt_error *err)
{
    struct ndt_random random = ndt_random_stream(crowd->seed, 14, 0);
    enum ndt_status status = NDT_OK;
    memset(people, 0, sizeof(*people));
    people->companions = crowd->walk ? 1 + (int)ndt_random_between(&random, 0.0, 2.99) : 0;
    people->walk = crowd->walk;
    people->path = crowd->path;
    people->body_m = crowd->walk && ndt_random_unit(&random) < 0.7 ? ndt_random_between(&random, 0.3, 0.5) : 0.0;
    people->seed = crowd->seed;
    for (int i = 0; i < crowd->count && status == NDT_OK; i++) {
        struct sim_person *person = &people->persons[people->count++];
        person->left_m = ndt_random_between(&random, -0.8, 0.8);
        person->speed_mps = ndt_random_between(&random, 0.5, 1.7);
        person->radius_m = ndt_random_between(&random, 0.17, 0.28);
        person->height_m = ndt_random_between(&random, 1.55, 1.95);
        person->start_m = ndt_random_between(&random, 0.0, 200.0);
        const double length_m = ndt_random_between(&random, 20.0, 90.0);
        const double begin_m = ndt_random_between(&random, crowd->begin_m - 30.0, crowd->end_m);
        if (crowd->plan)
            status = sim_path_on_plan(&person->path, crowd->plan, length_m, &random, err);
        else
            status =
                sim_path_on_course(&person->path, crowd->course, crowd->ground, begin_m, length_m, &random, err);
    }
    return status;
}

void sim_people_close(struct sim_people *people)
{
    for (int i = 0; i < people->count; i++)
        sim_path_close(&people->persons[i].path);
    memset(people, 0, sizeof(*people));
}

/* Legs and trunk as one cylinder, and a head. */
static uint32_t add_person(double x_m, double y_m, double foot_m, double radius_m, double height_m,
                           struct sim_solid *solids)
{
    const double body_m[3] = {x_m, y_m, foot_m + 0.43 * height_m}, head_m[3] = {x_m, y_m, foot_m + height_m - 0.14};
    const double body_half_m[3] = {radius_m, radius_m, 0.43 * height_m}, head_half_m[3] = {0.1, 0.1, 0.14};
    solids[0] = sim_round(SIM_CYLINDER, body_m, body_half_m);
    solids[1] = sim_round(SIM_ELLIPSOID, head_m, head_half_m);
    return 2;
}

static uint32_t add_on_path(const struct sim_path *path, double along_m, double left_m, double radius_m,
                            double height_m, struct sim_solid *solids)
{
    double at_m[3];
    sim_path_at(path, along_m, at_m);
    const double heading = sim_path_heading(path, along_m, 0.5);
    return add_person(at_m[0] - left_m * sin(heading), at_m[1] + left_m * cos(heading), at_m[2], radius_m, height_m,
                      solids);
}

/* The body of a carrier who holds the sensor in front of it hides what is behind. */
static uint32_t add_carrier(const struct sim_people *people, double t_s, struct sim_solid *solids)
{
    struct sim_step step;
    uint32_t count = 0;
    sim_walk_at(people->walk, t_s, &step);
    const double yaw = step.value[5], along_m = step.value[6];
    if (people->body_m > 0.0)
        count += add_person(step.value[0] - people->body_m * cos(yaw), step.value[1] - people->body_m * sin(yaw),
                            step.value[2] - 1.4, 0.22, 1.75, solids);
    for (int i = 0; i < people->companions; i++) {
        struct ndt_random random = ndt_random_stream(people->seed, 15, (uint64_t)i);
        const double apart_m =
            i == 0 ? ndt_random_between(&random, 1.6, 4.0) : ndt_random_between(&random, -3.0, -1.2);
        const double swing = ndt_random_between(&random, 0.1, 0.35), phase = ndt_random_between(&random, -3.0, 3.0);
        const double left_m = ndt_random_between(&random, -0.7, 0.7) * sin(0.7 * swing * t_s + phase);
        count += add_on_path(people->path, along_m + apart_m * (1.0 + 0.45 * sin(swing * t_s + phase)), left_m,
                             0.22, 1.75, solids + count);
    }
    return count;
}

uint32_t sim_people_at(const struct sim_people *people, double t_s, struct sim_solid *solids)
{
    uint32_t count = people->walk ? add_carrier(people, t_s, solids) : 0;
    for (int i = 0; i < people->count; i++) {
        const struct sim_person *person = &people->persons[i];
        const double length_m = (double)(person->path.count - 2) * SIM_PATH_STEP_M;
        const double walked_m = fmod(person->start_m + person->speed_mps * (t_s + 100.0), 2.0 * length_m);
        count += add_on_path(&person->path, walked_m > length_m ? 2.0 * length_m - walked_m : walked_m,
                             person->left_m, person->radius_m, person->height_m, solids + count);
    }
    return count;
}
