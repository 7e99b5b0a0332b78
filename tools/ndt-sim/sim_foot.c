#include "sim.h"

#include <string.h>

/* Length of a walk at the fastest pace, and some rest for the map around the end. */
static const double LONGEST_MPS = 1.75;

static enum ndt_status open_people(struct sim_foot *foot, const struct sim_drive *drive, double begin_m,
                                   double end_m, uint64_t seed, struct ndt_error *err)
{
    struct ndt_random random = ndt_random_stream(seed, 16, 1);
    struct sim_crowd crowd = {.plan = sim_place_has_plan(drive->course->place) ? &foot->plan : NULL,
                              .course = drive->course,
                              .ground = drive->ground,
                              .begin_m = begin_m,
                              .end_m = end_m,
                              .walk = &foot->walk,
                              .path = &foot->path,
                              .seed = seed};
    const int is_narrow = sim_place_has_plan(drive->course->place) && drive->course->place != SIM_HALL;
    crowd.count = 8 + (int)ndt_random_between(&random, 0.0, SIM_MAX_PEOPLE - 8 + 0.99);
    crowd.count /= is_narrow ? 5 : 1;
    enum ndt_status status = sim_people_open(&foot->people, &crowd, err);
    /* Others, on the day of the survey. */
    crowd.count = (2 + (int)ndt_random_between(&random, 0.0, 3.99)) / (is_narrow ? 2 : 1);
    crowd.walk = NULL;
    crowd.seed = ndt_random_next(&random);
    return status == NDT_OK ? sim_people_open(&foot->streaks, &crowd, err) : status;
}

enum ndt_status sim_foot_open(struct sim_foot *foot, struct sim_drive *drive, struct sim_world *world,
                              const struct sim_course *course, double duration_s, uint64_t seed,
                              struct ndt_error *err)
{
    struct ndt_random random = ndt_random_stream(seed, 16, 0);
    const double length_m = LONGEST_MPS * (duration_s + 5.0) + 20.0;
    const double begin_m = course->edge_count ? ndt_random_between(&random, 0.0, course->length_m) : -10.0;
    enum ndt_status status;
    if (sim_place_has_plan(course->place)) {
        if (course->place == SIM_HALL)
            sim_hall_build(world, &foot->plan, seed);
        else
            sim_office_build(world, &foot->plan, course->place, seed);
        status = sim_path_on_plan(&foot->path, &foot->plan, length_m, &random, err);
    } else {
        status = sim_path_on_course(&foot->path, course, &world->ground, begin_m, length_m, &random, err);
    }
    if (status == NDT_OK)
        status = sim_walk_open(&foot->walk, &foot->path, 10.0, duration_s, seed, err);
    if (status != NDT_OK)
        return status;
    sim_drive_on_foot(drive, course, &world->ground, &foot->walk, &foot->people);
    drive->path_begin_m = begin_m;
    return open_people(foot, drive, begin_m, begin_m + length_m, seed, err);
}

void sim_foot_close(struct sim_foot *foot)
{
    sim_people_close(&foot->people);
    sim_people_close(&foot->streaks);
    sim_walk_close(&foot->walk);
    sim_path_close(&foot->path);
}
