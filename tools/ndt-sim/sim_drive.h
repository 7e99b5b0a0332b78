/* The course of the road and the drive along it.
 *
 * Course: the centre line of the lane. A street is a closed loop of straights and quarter turns whose
 * curvature rises and falls smoothly; corridor and tunnel are one straight line along x, without end.
 * Drive: where the sensor is at any time t [s], t = 0 at the start of the first sweep: speed that drops
 * in turns, weaving in the lane, roll and pitch from the slope of the ground and from swaying. This
 * function of time is the truth; nothing is interpolated from samples of it. */
#ifndef SIM_DRIVE_H
#define SIM_DRIVE_H

#include "ndt/pose.h"
#include "sim_world.h"

enum sim_place { SIM_STREET, SIM_CORRIDOR, SIM_TUNNEL };

#define SIM_MAX_EDGES  8
#define SIM_TURN_STEPS 64

/* A straight between two vertices, and the turn at its end: +1 left, -1 right, 0 none. */
struct sim_edge {
    double start_m[2];
    double heading_rad;
    double length_m; /* from vertex to vertex */
    int turn;
    double s_m;        /* course length at which its straight part begins */
    double straight_m; /* length of that part */
};

struct sim_course {
    enum sim_place place;
    int edge_count;
    struct sim_edge edges[SIM_MAX_EDGES];
    double length_m;                         /* once around; INFINITY for a straight course */
    double turn_m;                           /* length of a quarter turn */
    double reach_m;                          /* from its begin to the vertex */
    double turn_xy_m[SIM_TURN_STEPS + 1][2]; /* a left turn from the origin along x */
};

struct sim_course_point {
    double x_m, y_m, heading_rad, curvature_radpm;
};

void sim_course_init(struct sim_course *course, enum sim_place place, uint64_t seed);
/* Any s, also below zero and beyond one round. */
struct sim_course_point sim_course_at(const struct sim_course *course, double s_m);
/* The point `left_m` to the left of the course. */
struct sim_course_point sim_course_beside(const struct sim_course *course, double s_m, double left_m);

struct sim_drive {
    const struct sim_course *course; /* borrowed */
    const struct sim_ground *ground; /* borrowed */
    double slow_mps, fast_mps;
    double height_m; /* of the sensor above the ground */
    double weave_m, weave_k_radpm;
    double sway_rad, heave_m, phase_rad;
    double begin_s; /* time of the first entry of s_m */
    double *s_m;    /* course length driven, every SIM_DRIVE_STEP_S */
    size_t count;
};

#define SIM_DRIVE_STEP_S 0.01

NDT_MUST_CHECK enum ndt_status sim_drive_open(struct sim_drive *drive, const struct sim_course *course,
                                              const struct sim_ground *ground, double duration_s, uint64_t seed,
                                              struct ndt_error *err);
void sim_drive_close(struct sim_drive *drive);
double sim_drive_length(const struct sim_drive *drive, double t_s); /* course length at t [m] */
struct ndt_pose sim_drive_pose(const struct sim_drive *drive, double t_s);
struct ndt_twist sim_drive_twist(const struct sim_drive *drive, double t_s);
/* Rotation (row-major) and position of the sensor, for rays. */
void sim_drive_frame(const struct sim_drive *drive, double t_s, double R[9], double t_m[3]);

/* Other cars at time t, as solids; `solids` holds SIM_MAX_MOVERS. Returns how many. */
#define SIM_MAX_MOVERS 12
uint32_t sim_drive_traffic(const struct sim_drive *drive, double t_s, uint64_t seed, struct sim_solid *solids);
/* A car as two boxes standing on the ground, heading along yaw. */
void sim_car(const struct sim_ground *ground, double x_m, double y_m, double yaw_rad, struct sim_random *random,
             struct sim_solid solids[2]);

#endif
