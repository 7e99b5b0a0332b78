/** @file
 * @brief The parts of the simulator: solids and ground, the drive through them, the LiDAR, the survey of the map.
 *
 * Frame: the local map, z up, metres. Everything follows from a seed; each part draws from a random stream of its
 * own (ndt_random_stream), so that a change of one part does not change the others. The streams are numbered: 1
 * course, 2 drive, 3 traffic, 4 ground, 5 to 7 scene, 8 sweeps, 9 survey, 10 odometry, 11 IMU, 12 walk, 13 hall, 14
 * and 15 people, 16 paths, 17 gaps, 18 city, 19 its surfaces, 20 changes, 21 office, 22 the day of the survey. */
#ifndef SIM_H
#define SIM_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/cloud.h"
#include "ndt/pose.h"
#include "ndt/random.h"
#include "ndt/status.h"

/* ---- world: solids on rolling ground, and the ray caster that finds the first hit ----
 *
 * Solids are convex: boxes turned about z, upright cylinders, upright ellipsoids. A uniform grid over x and y
 * keeps, for every cell, the solids that touch it. A world is built once (init, add ..., finish) and only read
 * from then on; a caster belongs to one thread. */

enum sim_shape { SIM_BOX, SIM_CYLINDER, SIM_ELLIPSOID };

/* Openings in the upright faces of a box, in rows and columns; period_m = 0 for none. */
struct sim_windows {
    double period_m, width_m;          /* along the face */
    double storey_m, sill_m, height_m; /* upwards, from the foot of the box */
    double recess_m;                   /* depth */
    double lost;                       /* fraction of the rays that the pane absorbs */
};

struct sim_solid {
    enum sim_shape shape;
    double centre_m[3];
    double half_m[3]; /* half edges, or semi-axes; cylinder: radius, radius, half height */
    double cos_yaw, sin_yaw;
    double free_path_m; /* foliage: mean free path of a ray; 0 = opaque */
    double foot_m;      /* z from which storeys are counted */
    double hinge_m;     /* a door: from its middle to its hinge, against its x axis; 0 = none */
    double swing_rad;   /* angle between its two positions, open and closed */
    float reflectance;  /* 0..1 */
    struct sim_windows windows;
};

/* z = slope . (x, y) + sum of two waves */
struct sim_ground {
    double slope[2];
    double amplitude_m[2], k_radpm[2][2], phase_rad[2];
    double steepest; /* bound of the gradient's length */
};

/* The upright cylinder around a solid, in the list of a cell or of the movers. */
struct sim_around {
    double x_m, y_m, radius_m, low_m, high_m;
    uint32_t solid;
};

struct sim_world {
    struct sim_ground ground;
    double bore_radius_m; /* a tunnel along x around (bore_y_m, bore_z_m); 0 = none */
    double bore_y_m, bore_z_m;
    struct sim_solid *solids;
    uint32_t count, capacity;
    int out_of_memory; /* an add failed; finish reports it */
    /* the grid, from sim_world_finish on */
    double grid_min_m[2], cell_m;
    int grid_dim[2];
    uint32_t *cell_first; /* start of the list of every cell, and the end of the last */
    struct sim_around *cell_solids;
    double *cell_top_m;
    double top_m;
};

void sim_world_init(struct sim_world *world);
void sim_world_free(struct sim_world *world);
/* Copies the solid. sim_world_finish() reports a failed allocation. */
void sim_world_add(struct sim_world *world, const struct sim_solid *solid);
NDT_MUST_CHECK enum ndt_status sim_world_finish(struct sim_world *world, struct ndt_error *err);

/* Height at (x, y); gradient may be NULL. */
double sim_ground_height(const struct sim_ground *ground, double x_m, double y_m, double gradient[2]);

struct sim_solid sim_box(const double centre_m[3], const double half_m[3], double yaw_rad);
struct sim_solid sim_round(enum sim_shape shape, const double centre_m[3], const double half_m[3]);

struct sim_ray {
    double origin_m[3];
    double direction[3]; /* unit length */
};

struct sim_hit {
    double range_m;
    float reflectance;
    int is_mover; /* the ray has hit one of the caster's movers */
};

/* Whether an opaque solid contains the point. */
int sim_world_inside(const struct sim_world *world, const double point_m[3]);

#define SIM_MAX_PEOPLE 20
#define SIM_MAX_CARS   6
#define SIM_MAX_MOVERS (2 * SIM_MAX_CARS + 2 * SIM_MAX_PEOPLE + 6)

struct sim_caster {
    const struct sim_world *world;
    const struct sim_solid *movers; /* sim_caster_set_movers; none: NULL */
    struct sim_around around[SIM_MAX_MOVERS];
    uint32_t mover_count;
    uint32_t *seen; /* per solid: the last ray that met it */
    uint32_t ray;
};
NDT_MUST_CHECK enum ndt_status sim_caster_open(struct sim_caster *caster, const struct sim_world *world,
                                               struct ndt_error *err);
void sim_caster_close(struct sim_caster *caster);
/* Movers that rays may hit as well, SIM_MAX_MOVERS at most, borrowed until the next call; NULL, 0: none. */
void sim_caster_set_movers(struct sim_caster *caster, const struct sim_solid *movers, uint32_t count);
/* Returns 1 and the first hit within max_range_m, or 0. Draws from `random` for foliage and panes. */
int sim_cast(struct sim_caster *caster, const struct sim_ray *ray, double max_range_m, struct ndt_random *random,
             struct sim_hit *hit);

/* ---- course and drive ----
 *
 * Course: the centre line of the lane. A street is a closed loop of straights and quarter turns whose curvature
 * rises and falls smoothly; corridor and tunnel are one straight line along x without end. Drive: the pose of the
 * base of the vehicle at any time t [s], t = 0 at the start of the first sweep: speed that drops in turns, weaving
 * in the lane, roll and pitch from the slope of the ground and from swaying. The ground truth is this function of
 * time, not interpolated samples. */

enum sim_place {
    SIM_STREET,
    SIM_CORRIDOR,
    SIM_TUNNEL,
    SIM_HALL,
    SIM_OFFICE,
    SIM_DORMITORY,
    SIM_FURNISHED,
    SIM_SHELVES,
    SIM_PARKING,
    SIM_TERRACE
};
/* Whether it has a plan, on which only a person walks. */
int sim_place_has_plan(enum sim_place place);

#define SIM_MAX_EDGES  8
#define SIM_TURN_STEPS 64

/* A straight between two vertices, and the turn at its end: +1 left, -1 right, 0 none. */
struct sim_edge {
    double start_m[2];
    double heading_rad;
    double length_m; /* length from vertex to vertex */
    int turn;
    double s_m;        /* course length at which its straight part begins */
    double straight_m; /* length of that part */
};

struct sim_course {
    enum sim_place place;
    int edge_count;
    struct sim_edge edges[SIM_MAX_EDGES];
    double length_m;                         /* length of one round; INFINITY for a straight course */
    double turn_m;                           /* length of a quarter turn */
    double reach_m;                          /* course length from the begin to the vertex */
    double turn_xy_m[SIM_TURN_STEPS + 1][2]; /* a left turn from the origin along x */
};

struct sim_course_point {
    double x_m, y_m, heading_rad, curvature_radpm;
};

void sim_course_init(struct sim_course *course, enum sim_place place, uint64_t seed);
/* Moves a street: where its first edge starts, and its heading. */
void sim_course_place(struct sim_course *course, const double start_m[2], double heading_rad);
/* The point at any s, also below zero and beyond one round; a street is periodic. */
struct sim_course_point sim_course_at(const struct sim_course *course, double s_m);
/* The point `left_m` to the left of the course. */
struct sim_course_point sim_course_beside(const struct sim_course *course, double s_m, double left_m);

/* ---- on foot: paths, the walk along one, and people ----
 *
 * A plan is a graph: the aisles of a hall, its stairs and its gallery. A path leads through a plan or
 * along a course; someone who walks along it stops, looks around, and carries the sensor in the hands. */

#define SIM_MAX_NODES 100
#define SIM_MAX_LINKS 200

struct sim_plan {
    int node_count, edge_count;
    double node_m[SIM_MAX_NODES][3];
    int edges[SIM_MAX_LINKS][2];
    double length_m[SIM_MAX_LINKS]; /* of the edges */
};
/* Joins two nodes, which are at their places. */
void sim_plan_add_edge(struct sim_plan *plan, int a, int b);
/* A random place on or near its edges, uniform along them. */
void sim_plan_place(const struct sim_plan *plan, struct ndt_random *random, double at_m[3]);

/* Points on the floor, about SIM_PATH_STEP_M apart. */
struct sim_path {
    double (*points_m)[3];
    size_t count;
};
#define SIM_PATH_STEP_M 0.1
/* A smooth step from 0 to 1 as x goes from 0 to 1, level at both ends and beyond. */
double sim_smooth_step(double x);

/* Beside the lane, or on it here and there. */
NDT_MUST_CHECK enum ndt_status sim_path_on_course(struct sim_path *path, const struct sim_course *course,
                                                  const struct sim_ground *ground, double begin_m, double length_m,
                                                  struct ndt_random *random, struct ndt_error *err);
/* A random walk that turns back at dead ends only. */
NDT_MUST_CHECK enum ndt_status sim_path_on_plan(struct sim_path *path, const struct sim_plan *plan, double length_m,
                                                struct ndt_random *random, struct ndt_error *err);
void sim_path_close(struct sim_path *path);
void sim_path_at(const struct sim_path *path, double along_m, double at_m[3]);
double sim_path_heading(const struct sim_path *path, double along_m, double ahead_m);

/* x, y, z of the sensor, its roll, pitch and yaw, and the length walked along the path. */
enum { SIM_STEP_VALUES = 7 };
struct sim_step {
    double value[SIM_STEP_VALUES];
};
struct sim_walk {
    double begin_s; /* time of the first step */
    size_t count;
    struct sim_step *steps; /* control points of a spline, every SIM_WALK_STEP_S */
};
#define SIM_WALK_STEP_S 0.02

/* Opens a walk from `begin_m` along the path, from a standing start. It ends where the path does. */
NDT_MUST_CHECK enum ndt_status sim_walk_open(struct sim_walk *walk, const struct sim_path *path, double begin_m,
                                             double duration_s, uint64_t seed, struct ndt_error *err);
void sim_walk_close(struct sim_walk *walk);
void sim_walk_at(const struct sim_walk *walk, double t_s, struct sim_step *out);

struct sim_person {
    struct sim_path path; /* walked to and fro */
    double start_m, speed_mps, left_m, radius_m, height_m;
};
struct sim_people {
    int count, companions;
    struct sim_person persons[SIM_MAX_PEOPLE];
    const struct sim_walk *walk; /* borrowed: of the carrier; NULL: there is none */
    const struct sim_path *path; /* borrowed: of the carrier */
    double body_m;               /* from the sensor back to the carrier's body; 0: sensor above the head */
    uint64_t seed;
};
/* People and their places: in a plan, or along a course from begin_m to end_m. */
struct sim_crowd {
    int count;
    const struct sim_plan *plan;
    const struct sim_course *course;
    const struct sim_ground *ground;
    double begin_m, end_m;
    const struct sim_walk *walk;
    const struct sim_path *path;
    uint64_t seed;
};
NDT_MUST_CHECK enum ndt_status sim_people_open(struct sim_people *people, const struct sim_crowd *crowd,
                                               struct ndt_error *err);
void sim_people_close(struct sim_people *people);
/* Two solids for each; returns how many. */
uint32_t sim_people_at(const struct sim_people *people, double t_s, struct sim_solid *solids);

/* ---- drive ---- */

struct sim_drive {
    const struct sim_course *course; /* borrowed */
    const struct sim_ground *ground; /* borrowed */
    const struct sim_walk *walk;     /* borrowed: a person carries the sensor; NULL: a vehicle */
    const struct sim_people *people; /* borrowed: of a walk */
    double path_begin_m;             /* course length where the path of a walk begins */
    double slow_mps, fast_mps;
    double height_m; /* height of the base above the ground */
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
/* The drive of a person: `walk` and `people` stay with the caller. */
void sim_drive_on_foot(struct sim_drive *drive, const struct sim_course *course, const struct sim_ground *ground,
                       const struct sim_walk *walk, const struct sim_people *people);
void sim_drive_close(struct sim_drive *drive);
double sim_drive_length(const struct sim_drive *drive, double t_s); /* course length at t [m] */
struct ndt_pose sim_drive_pose(const struct sim_drive *drive, double t_s);
struct ndt_twist sim_drive_twist(const struct sim_drive *drive, double t_s);
/* Specific force in the base frame: acceleration without gravity; +9.81 on z at rest. */
void sim_drive_force(const struct sim_drive *drive, double t_s, double force_mps2[3]);
/* Row-major Rz(yaw) Ry(pitch) Rx(roll). */
void sim_rotation(double roll_rad, double pitch_rad, double yaw_rad, double R[9]);
/* Rotation (row-major) and position of the base, for rays. */
void sim_drive_frame(const struct sim_drive *drive, double t_s, double R[9], double t_m[3]);

/* Other cars, and people, at time t, as solids; `solids` holds SIM_MAX_MOVERS. Returns how many. */
uint32_t sim_drive_traffic(const struct sim_drive *drive, double t_s, uint64_t seed, struct sim_solid *solids);
/* A car as two boxes standing on the ground, heading along yaw. */
void sim_car(const struct sim_ground *ground, double x_m, double y_m, double yaw_rad, struct ndt_random *random,
             struct sim_solid solids[2]);

/* ---- builder: solids placed in a turned frame, on the ground ---- */

enum { SIM_DICE = 4 };
struct sim_builder {
    struct sim_world *world;
    struct ndt_random random;
    double origin_m[2], yaw_rad, cos_yaw, sin_yaw; /* the frame; sim_build_turn() sets these members */
    double dice[SIM_DICE];                         /* random numbers in [0, 1) */
};
void sim_build_turn(struct sim_builder *build, const double origin_m[2], double yaw_rad);
/* The next random number. Several in one expression would have no fixed order: those are dice, thrown before it. */
double sim_pick(struct sim_builder *build, double low, double high);
void sim_throw_dice(struct sim_builder *build);
double sim_die(const struct sim_builder *build, int number, double low, double high);
/* Local frame; z: height of the ground. */
void sim_build_place(const struct sim_builder *build, double x_m, double y_m, double out_m[3]);
/* A box by its middle, its edges, and z0 and z1 above the ground there. */
struct sim_solid sim_build_solid(const struct sim_builder *build, double x_m, double y_m, double length_m,
                                 double width_m, double z0_m, double z1_m, double yaw_rad);
/* Adds it, with a random reflectance. */
void sim_build_box(struct sim_builder *build, double x_m, double y_m, double length_m, double width_m, double z0_m,
                   double z1_m, double yaw_rad);
void sim_build_round(struct sim_builder *build, enum sim_shape shape, double x_m, double y_m, double radius_m,
                     double z0_m, double z1_m, double free_path_m);

/* ---- scene: the solids along the course ----
 *
 * Street: facades with windows and balconies, trees, bushes, lamp posts, signs and parked cars. Corridor: bare
 * walls with shallow doors. Tunnel: a bore with a few lamps. Corridor and tunnel constrain the position along their
 * axis only weakly, on purpose. Hall: aisles between racks, booths, machines, offices and more, pillars, irregular
 * walls, a ceiling, and a gallery with two stairs. Office: a corridor with doors and rooms that are all alike but
 * for one cabinet. */

void sim_scene_ground(struct sim_ground *ground, enum sim_place place, uint64_t seed);
/** Fills an initialised world whose ground sim_scene_ground() has set. Corridor and tunnel are built for courses
 * from 0 to length_m. */
void sim_scene_build(struct sim_world *world, const struct sim_course *course, double length_m, uint64_t seed);

/* Each fills an initialised world with flat ground. */
void sim_hall_build(struct sim_world *world, struct sim_plan *plan, uint64_t seed);
void sim_office_build(struct sim_world *world, struct sim_plan *plan, enum sim_place place, uint64_t seed);

/* ---- another day ----
 *
 * The world as it was on the day of the survey: a share of its loose things was not there, elsewhere, or there and
 * elsewhere as well; doors stood the other way, foliage was larger or smaller. Fills and finishes `aged`. */
NDT_MUST_CHECK enum ndt_status sim_age_build(struct sim_world *aged, const struct sim_world *world, double share,
                                             uint64_t seed, struct ndt_error *err);

/* ---- city: a square of tiles around the street of the drive, and the points on its surfaces ---- */

struct sim_frame {
    double origin_m[2], yaw_rad, cos_yaw, sin_yaw;
};
struct sim_city {
    struct sim_frame frame; /* frame of the tiles; the origin is the start of the course */
    double low_m[2];        /* lower corner in that frame */
    double extent_m;        /* edge of the square */
};
/* Adds the tiles around the scene of the drive, which is there already. */
void sim_city_build(struct sim_city *city, struct sim_world *world, const struct sim_course *course,
                    double extent_m, uint64_t seed);
/* Whether the square of the city holds the place. */
int sim_city_holds(const struct sim_city *city, const double at_m[2]);

struct sim_sampler {
    const struct sim_city *city;
    double spacing_m, noise_m;
    uint64_t seed;
};
/* Low belongs to it, high does not. */
struct sim_area {
    double low_m[2], high_m[2];
};
/* The surfaces within the area, one point for every square of the spacing. `number` tells areas apart. */
NDT_MUST_CHECK enum ndt_status sim_surface_sample(const struct sim_sampler *sampler, const struct sim_area *area,
                                                  struct sim_caster *caster, uint64_t number,
                                                  struct ndt_cloud *cloud, struct ndt_error *err);

/* ---- a drive on foot, and all that it needs ---- */

struct sim_foot {
    struct sim_plan plan; /* plan of a hall */
    struct sim_path path;
    struct sim_walk walk;
    struct sim_people people, streaks; /* people during the drive, and during the survey */
};
/* `foot` is zero before. Sets `drive`, and builds the hall if that is the place. */
NDT_MUST_CHECK enum ndt_status sim_foot_open(struct sim_foot *foot, struct sim_drive *drive,
                                             struct sim_world *world, const struct sim_course *course,
                                             double duration_s, uint64_t seed, struct ndt_error *err);
void sim_foot_close(struct sim_foot *foot);

/* ---- wheels and IMU: what they measure of the drive, with errors ---- */

struct sim_odometer {
    double rate_hz, scale; /* scale: of the speeds; 1: right */
    struct ndt_random random;
    struct ndt_pose T_odom_base; /* integrated from all twists so far */
    uint64_t count;
};
void sim_odometer_init(struct sim_odometer *odometer, double rate_hz, double scale, uint64_t seed);
/* The next measurement: the twist at t_s; T_odom_base follows. */
struct ndt_twist sim_odometer_measure(struct sim_odometer *odometer, const struct sim_drive *drive, double t_s);

/* An IMU at the base, with its axes. Each sample has white noise of the given density, and each axis a constant
 * bias of the given size and random sign. */
struct sim_imu {
    double rate_hz; /* 0: no IMU */
    double gyro_bias_radps, accelerometer_bias_mps2;
    double gyro_noise, accelerometer_noise; /* [rad/s/sqrt(Hz)], [m/s^2/sqrt(Hz)] */
    uint64_t seed;
};
struct sim_imu_sample {
    double angular_velocity_radps[3];
    double force_mps2[3];
};
/* Sample number `index`, at t_s. */
struct sim_imu_sample sim_imu_measure(const struct sim_imu *imu, const struct sim_drive *drive, uint64_t index,
                                      double t_s);

/* ---- LiDAR, and the survey that makes the prior map ----
 *
 * A sweep is one turn, clockwise seen from above, that starts and ends behind the sensor (as KITTI's HDL-64). All
 * beams of a column fire at once, each column from the pose of the sensor at that moment. Several sensors share the
 * columns of a sweep: each has a part of the turn, one after the other. Points are in the frame of their sensor, x
 * forward, y left, z up, beam by beam within a column. */

#define SIM_MAX_BEAMS   128
#define SIM_MAX_SENSORS 4

/* T_base_sensor */
struct sim_mount {
    double R[9], t_m[3];
};

#define SIM_MOVER_INTENSITY (-1.0) /* reflectances are 0 to 1 */
struct sim_lidar {
    int beams;       /* 16, 32, 64 or 128 */
    int columns;     /* firings per turn */
    double rate_hz;  /* turns per second */
    double view_rad; /* firings ahead only, within this angle; 2 pi: all around */
    double min_range_m, max_range_m;
    double noise_m;  /* standard deviation of a range */
    double dropout;  /* fraction of the returns that is lost, besides those lost by distance */
    int mark_movers; /* returns of movers have SIM_MOVER_INTENSITY */
    int sensors;
    struct sim_mount mounts[SIM_MAX_SENSORS];
    uint64_t seed;
};

/* Elevations of the beams, from low to high [rad]; 0 when there is no such device. */
int sim_lidar_elevations(int beams, double elevation_rad[SIM_MAX_BEAMS]);
/* The random numbers of a sweep. */
struct ndt_random sim_lidar_random(const struct sim_lidar *lidar, uint64_t sweep);
/* Part of a sweep: what one sensor sees. The parts of a sweep, in their order, with one `random`, are the points of
 * the whole. The cloud is reused. */
struct sim_part {
    int sensor;
    double middle_s; /* middle of the sweep */
    double stamp_s;  /* stamp after the middle; times of points are relative to it */
};
NDT_MUST_CHECK enum ndt_status sim_lidar_scan(const struct sim_lidar *lidar, const struct sim_drive *drive,
                                              struct sim_caster *caster, const struct sim_part *part,
                                              struct ndt_random *random, struct ndt_cloud *cloud,
                                              struct ndt_error *err);

struct sim_survey {
    double spacing_m; /* edge of the cells; each keeps one point */
    double noise_m;   /* standard deviation of every coordinate */
    double range_m;
    const struct sim_plan *plan;     /* standpoints on it; NULL: along the course */
    const struct sim_people *people; /* who leave streaks; may be NULL */
    uint64_t seed;
};
/* Points on the surfaces visible from the course between both lengths, with standpoints, directions and noise
 * independent of the drive and without its cars and people. Local map frame, with intensity, without time. */
NDT_MUST_CHECK enum ndt_status sim_survey_run(const struct sim_survey *survey, const struct sim_drive *drive,
                                              struct sim_caster *caster, double begin_m, double end_m,
                                              struct ndt_cloud *cloud, struct ndt_error *err);

#endif
