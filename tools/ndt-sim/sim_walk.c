#include "sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;
static const double DEG = 0.017453292519943295;
static const double MAX_TILT_RAD = 10.0 * 0.017453292519943295;

enum { WANDER_WAVES = 3 };

/* Three sine waves of 0.12 to 0.9 Hz with random phases: a hand that never rests. */
struct wander {
    double size, radps[WANDER_WAVES], phase_rad[WANDER_WAVES];
};

/* Motion of a carrier: the differences between them. */
struct gait {
    double pace_mps, stride_m, turn_radps;
    double height_m, bob_m, sway_m, roll_rad, pitch_rad;
    double weave_m, weave_k_radpm, phase_rad, held_pitch_rad;
    struct wander roll, pitch, yaw;
};

/* The carrier while it walks. */
struct walker {
    const struct sim_path *path;
    struct gait gait;
    struct ndt_random random;
    double along_m, speed_mps, steps; /* steps: phase of the gait, two steps are one stride */
    double yaw_rad, yaw_radps;
    double look_rad, look_until_s, next_look_s; /* away from the direction of the path */
    double stand_until_s, next_stop_s;
};

static struct wander random_wander(struct ndt_random *random, double size)
{
    struct wander wander = {.size = size / sqrt(0.5 * WANDER_WAVES)};
    for (int i = 0; i < WANDER_WAVES; i++) {
        wander.radps[i] = 2.0 * PI * ndt_random_between(random, 0.12, 0.9);
        wander.phase_rad[i] = ndt_random_between(random, -PI, PI);
    }
    return wander;
}

static double wander_at(const struct wander *wander, double t_s)
{
    double sum = 0.0;
    for (int i = 0; i < WANDER_WAVES; i++)
        sum += sin(wander->radps[i] * t_s + wander->phase_rad[i]);
    return wander->size * sum;
}

static struct gait random_gait(struct ndt_random *random)
{
    struct gait gait;
    gait.pace_mps = ndt_random_between(random, 1.2, 1.6);
    gait.stride_m = ndt_random_between(random, 1.3, 1.6);
    gait.turn_radps = ndt_random_between(random, 1.6, 2.05);
    gait.height_m = ndt_random_between(random, 1.1, 1.75);
    gait.bob_m = ndt_random_between(random, 0.015, 0.035);
    gait.sway_m = ndt_random_between(random, 0.01, 0.03);
    gait.roll_rad = DEG * ndt_random_between(random, 1.0, 3.5);
    gait.pitch_rad = DEG * ndt_random_between(random, 0.7, 2.0);
    gait.weave_m = ndt_random_between(random, 0.05, 0.2);
    gait.weave_k_radpm = 2.0 * PI / ndt_random_between(random, 5.0, 12.0);
    gait.phase_rad = ndt_random_between(random, -PI, PI);
    gait.held_pitch_rad = DEG * ndt_random_between(random, -3.0, 5.0);
    gait.roll = random_wander(random, DEG * ndt_random_between(random, 1.5, 4.5));
    gait.pitch = random_wander(random, DEG * ndt_random_between(random, 1.5, 4.0));
    gait.yaw = random_wander(random, DEG * ndt_random_between(random, 1.0, 4.0));
    return gait;
}

void sim_path_at(const struct sim_path *path, double along_m, double at_m[3])
{
    const double place = fmin(fmax(along_m / SIM_PATH_STEP_M, 0.0), (double)path->count - 1.001);
    const size_t i = (size_t)place;
    for (int k = 0; k < 3; k++)
        at_m[k] = path->points_m[i][k] + (place - (double)i) * (path->points_m[i + 1][k] - path->points_m[i][k]);
}

double sim_path_heading(const struct sim_path *path, double along_m, double ahead_m)
{
    double a_m[3], b_m[3];
    sim_path_at(path, along_m, a_m);
    sim_path_at(path, along_m + ahead_m, b_m);
    return atan2(b_m[1] - a_m[1], b_m[0] - a_m[0]);
}

/* Stops now and then, and looks around: while standing by up to 160 degrees, while walking by up to 70. */
static void decide(struct walker *walker, double t_s)
{
    struct ndt_random *random = &walker->random;
    if (t_s >= walker->next_stop_s) {
        walker->stand_until_s = t_s + ndt_random_between(random, 2.0, 7.0);
        walker->next_stop_s = walker->stand_until_s + ndt_random_between(random, 12.0, 40.0);
        walker->next_look_s = t_s + ndt_random_between(random, 0.3, 1.0);
    }
    if (t_s >= walker->look_until_s)
        walker->look_rad = 0.0;
    if (t_s >= walker->next_look_s) {
        const int stands = t_s < walker->stand_until_s;
        const double side = ndt_random_unit(random) < 0.5 ? -1.0 : 1.0;
        walker->look_rad = side * DEG * ndt_random_between(random, 20.0, stands ? 160.0 : 70.0);
        walker->look_until_s = t_s + ndt_random_between(random, 0.8, 2.5);
        walker->next_look_s =
            walker->look_until_s + ndt_random_between(random, stands ? 0.2 : 3.0, stands ? 1.0 : 12.0);
    }
}

/* Brakes for turns and for the end of the path. */
static void advance(struct walker *walker, double t_s, double step_s)
{
    const struct sim_path *path = walker->path;
    const double here = sim_path_heading(path, walker->along_m, 0.3);
    const double turn = fabs(remainder(sim_path_heading(path, walker->along_m + 1.0, 0.3) - here, 2.0 * PI));
    const double left_m = (double)(path->count - 1) * SIM_PATH_STEP_M - walker->along_m - 1.5;
    double want_mps = walker->gait.pace_mps * (1.0 - 0.5 * fmin(turn / 1.2, 1.0));
    if (t_s < walker->stand_until_s || left_m < 0.0)
        want_mps = 0.0;
    walker->speed_mps += fmin(fmax(want_mps - walker->speed_mps, -2.0 * step_s), 1.3 * step_s);
    walker->along_m += walker->speed_mps * step_s;
    walker->steps += 4.0 * PI * walker->speed_mps / walker->gait.stride_m * step_s;
    /* The heading follows the path and the eyes: a damped spring with bounds of rate and acceleration. */
    const double ahead = sim_path_heading(path, walker->along_m, 0.9);
    const double off = remainder(ahead + walker->look_rad - walker->yaw_rad, 2.0 * PI);
    const double pull = fmin(fmax(22.0 * off - 7.5 * walker->yaw_radps, -14.0), 14.0);
    const double most = walker->gait.turn_radps;
    walker->yaw_radps = fmin(fmax(walker->yaw_radps + pull * step_s, -most), most);
    walker->yaw_rad += walker->yaw_radps * step_s;
}

static double limited(double tilt_rad)
{
    return MAX_TILT_RAD * tanh(tilt_rad / MAX_TILT_RAD);
}

static void hold_sensor(const struct walker *walker, double t_s, struct sim_step *step)
{
    const struct gait *gait = &walker->gait;
    const double effort = walker->speed_mps / gait->pace_mps;
    const double heading = sim_path_heading(walker->path, walker->along_m, 0.5);
    const double aside_m = gait->weave_m * sin(gait->weave_k_radpm * walker->along_m + gait->phase_rad) +
                           effort * gait->sway_m * sin(0.5 * walker->steps);
    double at_m[3];
    sim_path_at(walker->path, walker->along_m, at_m);
    step->value[0] = at_m[0] - aside_m * sin(heading);
    step->value[1] = at_m[1] + aside_m * cos(heading);
    step->value[2] = at_m[2] + gait->height_m + effort * gait->bob_m * sin(walker->steps);
    step->value[3] =
        limited(wander_at(&gait->roll, t_s) + effort * gait->roll_rad * sin(0.5 * walker->steps + 0.4));
    step->value[4] = limited(wander_at(&gait->pitch, t_s) + gait->held_pitch_rad +
                             effort * gait->pitch_rad * sin(walker->steps + 1.1));
    step->value[5] = walker->yaw_rad + wander_at(&gait->yaw, t_s);
    step->value[6] = walker->along_m;
}

enum ndt_status sim_walk_open(struct sim_walk *walk, const struct sim_path *path, double begin_m, double duration_s,
                              uint64_t seed, struct ndt_error *err)
{
    struct walker walker = {.path = path, .along_m = begin_m, .random = ndt_random_stream(seed, 12, 0)};
    walk->begin_s = -1.0;
    walk->count = (size_t)ceil((duration_s + 3.0) / SIM_WALK_STEP_S) + 4;
    walk->steps = malloc(walk->count * sizeof(*walk->steps));
    if (!walk->steps)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a walk of %.0f s", duration_s);
    walker.gait = random_gait(&walker.random);
    walker.stand_until_s = ndt_random_between(&walker.random, 1.5, 4.0);
    walker.next_stop_s = walker.stand_until_s + ndt_random_between(&walker.random, 8.0, 30.0);
    walker.next_look_s = ndt_random_between(&walker.random, 0.5, 6.0);
    walker.yaw_rad = sim_path_heading(path, begin_m, 0.9) + ndt_random_between(&walker.random, -1.0, 1.0);
    for (size_t i = 0; i < walk->count; i++) {
        const double t_s = walk->begin_s + (double)i * SIM_WALK_STEP_S;
        decide(&walker, t_s);
        advance(&walker, t_s, SIM_WALK_STEP_S);
        hold_sensor(&walker, t_s, &walk->steps[i]);
    }
    return NDT_OK;
}

void sim_walk_close(struct sim_walk *walk)
{
    free(walk->steps);
    memset(walk, 0, sizeof(*walk));
}

/* A uniform cubic B-spline: twice continuously differentiable, as the IMU needs it. */
void sim_walk_at(const struct sim_walk *walk, double t_s, struct sim_step *out)
{
    const double place = fmin(fmax((t_s - walk->begin_s) / SIM_WALK_STEP_S, 1.0), (double)walk->count - 3.001);
    const size_t i = (size_t)place;
    const double u = place - (double)i, v = 1.0 - u;
    const double weight[4] = {v * v * v / 6.0, (3.0 * u * u * u - 6.0 * u * u + 4.0) / 6.0,
                              (3.0 * v * v * v - 6.0 * v * v + 4.0) / 6.0, u * u * u / 6.0};
    for (int k = 0; k < SIM_STEP_VALUES; k++) {
        out->value[k] = 0.0;
        for (int j = 0; j < 4; j++)
            out->value[k] += weight[j] * walk->steps[i - 1 + (size_t)j].value[k];
    }
}
