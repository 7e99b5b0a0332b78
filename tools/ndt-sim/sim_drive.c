#include "sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;
static const double GRAVITY_MPS2 = 9.81;

/* Slow in turns, with transitions of 18 m before and behind, and a variation of 7 % everywhere. */
static double speed_at(const struct sim_drive *drive, double s_m)
{
    const struct sim_course *course = drive->course;
    double ease = 1.0;
    for (int i = 0; i < course->edge_count; i++) {
        const struct sim_edge *edge = &course->edges[i];
        const double middle = edge->s_m + edge->straight_m + 0.5 * course->turn_m;
        const double away = fabs(remainder(s_m - middle, course->length_m));
        ease *= sim_smooth_step((away - 0.3 * course->turn_m) / 18.0);
    }
    const double speed = drive->slow_mps + (drive->fast_mps - drive->slow_mps) * ease;
    return speed * (1.0 + 0.07 * sin(drive->phase_rad + s_m * (2.0 * PI / (4.0 * drive->fast_mps))));
}

static void set_character(struct sim_drive *drive, uint64_t seed)
{
    struct ndt_random random = ndt_random_stream(seed, 2, 0);
    const enum sim_place place = drive->course->place;
    const int on_foot = place == SIM_CORRIDOR || place == SIM_SHELVES;
    drive->phase_rad = ndt_random_between(&random, -PI, PI);
    drive->slow_mps = on_foot ? 1.2 : place == SIM_TUNNEL ? 14.0 : 4.8;
    drive->fast_mps = on_foot ? 1.2 : place == SIM_TUNNEL ? 14.0 : place == SIM_PARKING ? 4.8 : 10.5;
    drive->height_m = on_foot ? 0.9 : 1.75;
    drive->weave_m = on_foot ? 0.12 : 0.2;
    drive->weave_k_radpm = 2.0 * PI / (on_foot ? 6.0 : 45.0);
    drive->sway_rad = on_foot ? 0.003 : 0.006;
    drive->heave_m = on_foot ? 0.002 : 0.015;
}

enum ndt_status sim_drive_open(struct sim_drive *drive, const struct sim_course *course,
                               const struct sim_ground *ground, double duration_s, uint64_t seed,
                               struct ndt_error *err)
{
    memset(drive, 0, sizeof(*drive));
    drive->course = course;
    drive->ground = ground;
    set_character(drive, seed);
    drive->begin_s = -0.5;
    drive->count = (size_t)ceil((duration_s + 1.0) / SIM_DRIVE_STEP_S) + 2;
    drive->s_m = malloc(drive->count * sizeof(*drive->s_m));
    if (!drive->s_m)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a drive of %.0f s", duration_s);
    /* A street starts 28 m before the first turn. */
    double s = course->edge_count ? course->edges[0].straight_m - 28.0 : 0.0;
    for (size_t i = 0; i < drive->count; i++) {
        drive->s_m[i] = s;
        const double h = SIM_DRIVE_STEP_S; /* Runge-Kutta, fourth order */
        const double k1 = speed_at(drive, s), k2 = speed_at(drive, s + 0.5 * h * k1);
        const double k3 = speed_at(drive, s + 0.5 * h * k2), k4 = speed_at(drive, s + h * k3);
        s += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
    }
    return NDT_OK;
}

void sim_drive_on_foot(struct sim_drive *drive, const struct sim_course *course, const struct sim_ground *ground,
                       const struct sim_walk *walk, const struct sim_people *people)
{
    memset(drive, 0, sizeof(*drive));
    drive->course = course;
    drive->ground = ground;
    drive->walk = walk;
    drive->people = people;
}

void sim_drive_close(struct sim_drive *drive)
{
    free(drive->s_m);
    memset(drive, 0, sizeof(*drive));
}

double sim_drive_length(const struct sim_drive *drive, double t_s)
{
    struct sim_step step;
    if (drive->walk) {
        sim_walk_at(drive->walk, t_s, &step);
        return drive->path_begin_m + step.value[6];
    }
    const double at = (t_s - drive->begin_s) / SIM_DRIVE_STEP_S;
    const double clamped = fmin(fmax(at, 0.0), (double)(drive->count - 2));
    const size_t i = (size_t)clamped;
    const double a = drive->s_m[i], b = drive->s_m[i + 1], u = at - (double)i;
    /* Cubic Hermite interpolation with the speeds at both ends. */
    const double va = speed_at(drive, a) * SIM_DRIVE_STEP_S, vb = speed_at(drive, b) * SIM_DRIVE_STEP_S;
    const double d = b - a;
    return a + u * (va + u * ((3.0 * d - 2.0 * va - vb) + u * (va + vb - 2.0 * d)));
}

void sim_rotation(double roll_rad, double pitch_rad, double yaw_rad, double R[9])
{
    const double cy = cos(yaw_rad), sy = sin(yaw_rad), cp = cos(pitch_rad), sp = sin(pitch_rad);
    const double cr = cos(roll_rad), sr = sin(roll_rad);
    const double Rzyx[9] = {cy * cp,
                            cy * sp * sr - sy * cr,
                            cy * sp * cr + sy * sr,
                            sy * cp,
                            sy * sp * sr + cy * cr,
                            sy * sp * cr - cy * sr,
                            -sp,
                            cp * sr,
                            cp * cr};
    memcpy(R, Rzyx, sizeof(Rzyx));
}

void sim_drive_frame(const struct sim_drive *drive, double t_s, double R[9], double t_m[3])
{
    struct sim_step step;
    if (drive->walk) {
        sim_walk_at(drive->walk, t_s, &step);
        memcpy(t_m, step.value, 3 * sizeof(*t_m));
        sim_rotation(step.value[3], step.value[4], step.value[5], R);
        return;
    }
    const double s = sim_drive_length(drive, t_s);
    const double swing = drive->weave_k_radpm * s + drive->phase_rad;
    const double aside = drive->weave_m * sin(swing), drift = drive->weave_m * drive->weave_k_radpm * cos(swing);
    const struct sim_course_point at = sim_course_at(drive->course, s);
    const double yaw = at.heading_rad + atan2(drift, 1.0 - at.curvature_radpm * aside);
    const double cy = cos(yaw), sy = sin(yaw);
    double g[2];
    t_m[0] = at.x_m - aside * sin(at.heading_rad);
    t_m[1] = at.y_m + aside * cos(at.heading_rad);
    t_m[2] = sim_ground_height(drive->ground, t_m[0], t_m[1], g) + drive->height_m +
             drive->heave_m * sin(2.0 * PI * 1.3 * t_s + drive->phase_rad);
    const double pitch = -atan(g[0] * cy + g[1] * sy) + drive->sway_rad * sin(2.0 * PI * 0.8 * t_s);
    const double roll = atan(g[1] * cy - g[0] * sy) + drive->sway_rad * sin(2.0 * PI * 0.6 * t_s + 1.0);
    sim_rotation(roll, pitch, yaw, R);
}

struct ndt_pose sim_drive_pose(const struct sim_drive *drive, double t_s)
{
    double R[9], t_m[3];
    sim_drive_frame(drive, t_s, R, t_m);
    return ndt_pose_from_rotation(R, t_m);
}

struct ndt_twist sim_drive_twist(const struct sim_drive *drive, double t_s)
{
    const double h = 1e-3;
    const struct ndt_pose before = sim_drive_pose(drive, t_s - h), after = sim_drive_pose(drive, t_s + h);
    const struct ndt_pose motion = ndt_pose_between(&before, &after);
    return ndt_pose_log(&motion, 2.0 * h);
}

void sim_drive_force(const struct sim_drive *drive, double t_s, double force_mps2[3])
{
    const double h = 2e-3;
    double R[9], before_m[3], at_m[3], after_m[3], up_mps2[3];
    sim_drive_frame(drive, t_s - h, R, before_m);
    sim_drive_frame(drive, t_s + h, R, after_m);
    sim_drive_frame(drive, t_s, R, at_m);
    for (int k = 0; k < 3; k++)
        up_mps2[k] = (before_m[k] - 2.0 * at_m[k] + after_m[k]) / (h * h) + (k == 2 ? GRAVITY_MPS2 : 0.0);
    for (int k = 0; k < 3; k++)
        force_mps2[k] = R[k] * up_mps2[0] + R[3 + k] * up_mps2[1] + R[6 + k] * up_mps2[2];
}

/* ---- other cars ---- */

void sim_car(const struct sim_ground *ground, double x_m, double y_m, double yaw_rad, struct ndt_random *random,
             struct sim_solid solids[2])
{
    const double length = ndt_random_between(random, 3.8, 5.2), width = ndt_random_between(random, 1.65, 1.95);
    const double height = ndt_random_between(random, 1.35, 2.1);
    const double cabin = height > 1.8 ? 0.92 : 0.6, shift = height > 1.8 ? 0.0 : -0.08 * length;
    const double foot = sim_ground_height(ground, x_m, y_m, NULL);
    const double body_m[3] = {x_m, y_m, foot + 0.2 + 0.3 * height};
    const double body_half_m[3] = {0.5 * length, 0.5 * width, 0.3 * height};
    const double cabin_m[3] = {x_m + shift * cos(yaw_rad), y_m + shift * sin(yaw_rad), foot + 0.5 * height + 0.1};
    const double cabin_half_m[3] = {0.5 * cabin * length, 0.46 * width, 0.5 * height - 0.1};
    solids[0] = sim_box(body_m, body_half_m, yaw_rad);
    solids[1] = sim_box(cabin_m, cabin_half_m, yaw_rad);
    solids[0].reflectance = solids[1].reflectance = (float)ndt_random_between(random, 0.1, 0.9);
}

/* Traffic: one car drives ahead of a vehicle in the same lane, the others approach in the opposite lane. */
uint32_t sim_drive_traffic(const struct sim_drive *drive, double t_s, uint64_t seed, struct sim_solid *solids)
{
    const struct sim_course *course = drive->course;
    uint32_t count = drive->people ? sim_people_at(drive->people, t_s, solids) : 0;
    if (course->place != SIM_STREET && course->place != SIM_TUNNEL)
        return count;
    const double begin_m = sim_drive_length(drive, drive->begin_s);
    for (uint32_t i = drive->walk ? 1 : 0; i < SIM_MAX_CARS; i++) {
        struct ndt_random random = ndt_random_stream(seed, 3, i);
        const double start = ndt_random_between(&random, 0.0, 20.0);
        const double speed = course->place == SIM_TUNNEL ? -13.0 : -6.5;
        const double s = i == 0 ? sim_drive_length(drive, t_s) + 16.0 + 2.0 * sin(0.4 * t_s + start)
                                : begin_m + 55.0 * i + start + speed * t_s;
        const struct sim_course_point at = sim_course_beside(course, s, i == 0 ? 0.0 : 3.4);
        sim_car(drive->ground, at.x_m, at.y_m, at.heading_rad + (i == 0 ? 0.0 : PI), &random, solids + count);
        count += 2;
    }
    return count;
}
