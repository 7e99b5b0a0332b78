/** @file
 * @brief ndt-sim: simulates a drive with exact ground truth, and its map. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output_guard.h"
#include "sim_record.h"
#include "tool_options.h"

enum sim_world_name {
    STREET,
    UTM,
    CORRIDOR,
    TUNNEL,
    HALL,
    OFFICE,
    DORMITORY,
    FURNISHED,
    CITY,
    SHELVES,
    PARKING,
    TERRACE
};
enum sim_carrier { VEHICLE, HANDHELD };
static const char *const world_names[] = {[STREET] = "street",
                                          [UTM] = "utm",
                                          [CORRIDOR] = "corridor",
                                          [TUNNEL] = "tunnel",
                                          [HALL] = "hall",
                                          [OFFICE] = "office",
                                          [DORMITORY] = "dormitory",
                                          [FURNISHED] = "furnished",
                                          [CITY] = "city",
                                          [SHELVES] = "shelves",
                                          [PARKING] = "parking",
                                          [TERRACE] = "terrace",
                                          NULL};
static const char *const carrier_names[] = {[VEHICLE] = "vehicle", [HANDHELD] = "handheld", NULL};
static const char *const stamp_names[] = {
    [SIM_STAMP_BEGIN] = "begin", [SIM_STAMP_MIDDLE] = "middle", [SIM_STAMP_END] = "end", NULL};

static struct {
    const char *out;
    uint64_t seed, scans, beams, columns, sensors, map_scans;
    int world, carrier, stamp;
    double rate_hz, gap_s, view_deg, range_m, noise_m, dropout, spacing_m, extent_m, cut_out_m, twin_m, changed;
    struct tool_reals mount; /* x y z roll pitch yaw [m, deg]; none, one for all sensors, or one for each */
    struct sim_imu imu;
    double truth_hz, wheel_scale;
    int drive_later, mirror, odometry, mark_movers, force;
} args = {
    .seed = 1,
    .scans = 150,
    .beams = 32,
    .columns = 1800,
    .sensors = 1,
    .stamp = SIM_STAMP_MIDDLE,
    .rate_hz = NAN,
    .wheel_scale = 1,
    .view_deg = 360,
    .range_m = 100,
    .noise_m = 0.02,
    .dropout = 0.03,
    .spacing_m = NAN,
    .extent_m = 1000,
    .imu = {
        .gyro_bias_radps = 2e-3, .gyro_noise = 1e-4, .accelerometer_bias_mps2 = 0.05, .accelerometer_noise = 1e-3}};

static const double ODOMETRY_HZ = 50.0, DEG = 0.017453292519943295;
enum { OTHER_DAY = 1000003 };       /* from the seed of the noise of a drive to that of the later one */
static const double TURN_HZ = 10.0; /* the slowest turn: a LiDAR that scans less often waits in between */

/* The parts of a simulation. */
struct simulation {
    struct sim_course course;
    struct sim_world world, aged; /* on the day of the drive, and of the survey */
    struct sim_city city;
    struct sim_foot foot;
    struct sim_drive drive;
    struct sim_caster caster, surveyed;
    double *late_s; /* see struct sim_recording */
    double duration_s;
};

static void report(const struct sim_recording *recording)
{
    const int scans = recording->sweeps * recording->lidar->sensors;
    printf("%s: %zu points\n", recording->map_path, recording->map_points);
    printf("%s: %d scans of %s, %.1f m in %.1f s, %zu points per scan%s%s\n", recording->bag_path, scans,
           world_names[args.world], recording->length_m,
           recording->sweeps / args.rate_hz + recording->late_s[recording->sweeps - 1],
           recording->scan_points / (size_t)scans, args.odometry ? ", with odometry" : "",
           args.imu.rate_hz > 0 ? ", with IMU" : "");
}

static void set_mounts(struct sim_lidar *lidar)
{
    static const double none[6];
    for (int i = 0; i < lidar->sensors; i++) {
        const double *v = args.mount.count > 6 ? args.mount.values + 6 * i
                          : args.mount.count   ? args.mount.values
                                               : none;
        memcpy(lidar->mounts[i].t_m, v, sizeof(lidar->mounts[i].t_m));
        sim_rotation(v[3] * DEG, v[4] * DEG, v[5] * DEG, lidar->mounts[i].R);
    }
}

static int has_plan(void)
{
    return args.world == HALL || args.world == OFFICE || args.world == DORMITORY || args.world == FURNISHED;
}

static enum ndt_status record(struct simulation *simulation, struct ndt_error *err)
{
    const int on_foot = args.carrier == HANDHELD;
    static const double utm_m[3] = {389000.0, 4970000.0, 120.0};
    char map_path[4000], bag_path[4000];
    struct sim_caster *today = &simulation->caster;
    struct sim_caster *other_day = args.changed > 0 ? &simulation->surveyed : today;
    struct sim_lidar lidar = {.beams = (int)args.beams,
                              .columns = (int)args.columns,
                              .rate_hz = on_foot || args.rate_hz < 1 ? fmax(args.rate_hz, TURN_HZ) : args.rate_hz,
                              .view_rad = args.view_deg * DEG,
                              .min_range_m = 0.9,
                              .max_range_m = args.range_m,
                              .noise_m = args.noise_m,
                              .dropout = args.dropout,
                              .mark_movers = args.mark_movers,
                              .sensors = (int)args.sensors,
                              .seed = args.seed + (args.drive_later ? OTHER_DAY : 0)};
    struct sim_recording recording = {
        .map_path = map_path,
        .bag_path = bag_path,
        .drive = &simulation->drive,
        .caster = args.drive_later ? other_day : today,
        .surveyed = args.drive_later ? today : other_day,
        .map_sweeps = (int)args.map_scans,
        .lidar = &lidar,
        .survey = {.spacing_m = args.spacing_m,
                   .noise_m = on_foot ? 0.02 : 0.01,
                   .range_m = 100.0,
                   .plan = has_plan() ? &simulation->foot.plan : NULL,
                   .people = on_foot ? &simulation->foot.streaks : NULL,
                   .seed = args.seed},
        .imu = args.imu,
        .change = {.cut_out_m = args.cut_out_m, .twin_m = args.twin_m, .mirror = args.mirror},
        .city = args.world == CITY ? &simulation->city : NULL,
        .odometry_hz = args.odometry ? ODOMETRY_HZ : 0.0,
        .wheel_scale = args.wheel_scale,
        .truth_hz = args.truth_hz,
        .scan_hz = args.rate_hz,
        .late_s = simulation->late_s,
        .stamp = (enum sim_stamp)args.stamp,
        .sweeps = (int)args.scans,
        .overwrite = args.force};
    recording.imu.seed = lidar.seed;
    set_mounts(&lidar);
    if (args.world == UTM)
        memcpy(recording.origin_m, utm_m, sizeof(utm_m));
    const int map_length = snprintf(map_path, sizeof(map_path), "%s/map.pcd", args.out);
    const int bag_length = snprintf(bag_path, sizeof(bag_path), "%s/drive.bag", args.out);
    if (map_length >= (int)sizeof(map_path) || bag_length >= (int)sizeof(bag_path))
        return ndt_fail(err, NDT_ERR_LIMIT, "--out: the path is longer than %zu bytes", sizeof(map_path) - 12);
    const enum ndt_status status = sim_record(&recording, err);
    if (status == NDT_OK)
        report(&recording);
    return status;
}

/* Gaps begin after one scan in twenty, on average. */
static enum ndt_status place_gaps(struct simulation *simulation, struct ndt_error *err)
{
    struct ndt_random random = ndt_random_stream(args.seed, 17, 0);
    simulation->late_s = calloc(args.scans, sizeof(*simulation->late_s));
    if (!simulation->late_s)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %d scans", (int)args.scans);
    for (uint64_t i = 1; i < args.scans && args.gap_s > 0.0; i++) {
        const int begins = ndt_random_unit(&random) < 0.05;
        const double gap_s = ndt_random_between(&random, 0.2, 1.0) * args.gap_s;
        simulation->late_s[i] = simulation->late_s[i - 1] + (begins ? gap_s : 0.0);
    }
    simulation->duration_s = (double)args.scans / args.rate_hz + simulation->late_s[args.scans - 1];
    return NDT_OK;
}

static enum ndt_status open_drive(struct simulation *simulation, struct ndt_error *err)
{
    if (args.carrier == HANDHELD)
        return sim_foot_open(&simulation->foot, &simulation->drive, &simulation->world, &simulation->course,
                             simulation->duration_s, args.seed, err);
    return sim_drive_open(&simulation->drive, &simulation->course, &simulation->world.ground,
                          simulation->duration_s, args.seed, err);
}

static enum ndt_status run_simulation(struct simulation *simulation, struct ndt_error *err)
{
    static const enum sim_place places[] = {
        [STREET] = SIM_STREET, [UTM] = SIM_STREET,      [CORRIDOR] = SIM_CORRIDOR,   [TUNNEL] = SIM_TUNNEL,
        [HALL] = SIM_HALL,     [OFFICE] = SIM_OFFICE,   [DORMITORY] = SIM_DORMITORY, [FURNISHED] = SIM_FURNISHED,
        [CITY] = SIM_STREET,   [SHELVES] = SIM_SHELVES, [PARKING] = SIM_PARKING,     [TERRACE] = SIM_TERRACE};
    const enum sim_place place = places[args.world];
    enum ndt_status status = place_gaps(simulation, err);
    if (status != NDT_OK)
        return status;
    sim_course_init(&simulation->course, place, args.seed);
    sim_scene_ground(&simulation->world.ground, place, args.seed);
    status = open_drive(simulation, err);
    if (status != NDT_OK)
        return status;
    sim_scene_build(&simulation->world, &simulation->course,
                    sim_drive_length(&simulation->drive, simulation->duration_s), args.seed);
    if (args.world == CITY)
        sim_city_build(&simulation->city, &simulation->world, &simulation->course, args.extent_m, args.seed);
    status = sim_world_finish(&simulation->world, err);
    if (status == NDT_OK)
        status = sim_caster_open(&simulation->caster, &simulation->world, err);
    if (status == NDT_OK && args.changed > 0)
        status = sim_age_build(&simulation->aged, &simulation->world, args.changed, args.seed, err);
    if (status == NDT_OK && args.changed > 0)
        status = sim_caster_open(&simulation->surveyed, &simulation->aged, err);
    return status == NDT_OK ? record(simulation, err) : status;
}

static enum ndt_status simulate(struct ndt_error *err)
{
    struct simulation *simulation = calloc(1, sizeof(*simulation));
    if (!simulation)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a simulation");
    sim_world_init(&simulation->world);
    sim_world_init(&simulation->aged);
    const enum ndt_status status = run_simulation(simulation, err);
    sim_caster_close(&simulation->caster);
    sim_caster_close(&simulation->surveyed);
    sim_drive_close(&simulation->drive);
    sim_foot_close(&simulation->foot);
    sim_world_free(&simulation->world);
    sim_world_free(&simulation->aged);
    free(simulation->late_s);
    free(simulation);
    return status;
}

/* The sensor stays between the ground, the ceiling and the walls. */
static enum ndt_status check_mounts(struct ndt_error *err)
{
    const struct tool_reals *mount = &args.mount;
    const int indoors = args.world == CORRIDOR || has_plan() || args.carrier == HANDHELD;
    const double low_m[3] = {-5, indoors ? -0.9 : -1.8, indoors ? -0.7 : -1.5};
    const double high_m[3] = {5, indoors ? 0.9 : 1.8, indoors ? 1.5 : 3};
    if (mount->count != 0 && mount->count != 6 && mount->count != 6 * args.sensors)
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "--mount: %zu numbers; 6 (x,y,z,roll,pitch,yaw) or 6 for each of %d sensors are needed",
                        mount->count, (int)args.sensors);
    for (size_t i = 0; i < mount->count; i++)
        if (i % 6 < 3 && !(mount->values[i] >= low_m[i % 6] && mount->values[i] <= high_m[i % 6]))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "--mount: %c is %.6g m, not from %g to %g m in this world",
                            "xyz"[i % 6], mount -> values[i], low_m[i % 6], high_m[i % 6]);
    return NDT_OK;
}

static enum ndt_status check_args(struct ndt_error *err)
{
    double elevation_rad[SIM_MAX_BEAMS];
    if (isnan(args.rate_hz))
        args.rate_hz = args.carrier == HANDHELD ? 2.0 : 10.0;
    const double duration_s = (double)args.scans / args.rate_hz;
    if (has_plan() && args.carrier == VEHICLE)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--world: no vehicle fits into the %s; it needs --carrier handheld",
                        world_names[args.world]);
    if (args.drive_later && !(args.changed > 0))
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "--drive-later: the other day is that of --changed, which is missing");
    if (args.wheel_scale != 1.0 && !args.odometry)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--wheel-scale: nothing tells the speed without --odometry");
    if (args.world == CITY && args.map_scans > 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--map-scans: a city has a map of tiles, not of scans");
    if (!sim_lidar_elevations((int)args.beams, elevation_rad))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--beams: no LiDAR has %d beams; 16, 32, 64 and 128 are known",
                        (int)args.beams);
    if (duration_s > 600.0 && (args.world == CORRIDOR || args.world == TUNNEL))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--scans: a %s is built for drives of up to 600 s, not %.0f s",
                        world_names[args.world], duration_s);
    if (isnan(args.spacing_m))
        args.spacing_m = args.world == CORRIDOR ? 0.08 : args.world == CITY ? 0.3 : 0.15;
    return check_mounts(err);
}

/* Creates the folder, and removes it if it was created here and the simulation fails. */
static enum ndt_status run(struct ndt_error *err)
{
    struct stat info;
    enum ndt_status status = check_args(err);
    if (status != NDT_OK)
        return status;
    const int made = mkdir(args.out, 0777) == 0;
    if (!made && errno == EEXIST && stat(args.out, &info) == 0 && !S_ISDIR(info.st_mode))
        return ndt_fail(err, NDT_ERR_IO, "%s: is not a folder", args.out);
    if (!made && errno != EEXIST)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be made: %s", args.out, strerror(errno));
    status = simulate(err);
    if (status != NDT_OK && made)
        rmdir(args.out);
    return status;
}

static const struct tool_option options[] = {
    {"seed", "N", TOOL_COUNT, &args.seed, .help = "seed of all random numbers"},
    {"out", "DIR", TOOL_TEXT, &args.out, .required = 1, .help = "output folder; created if it does not exist"},
    {"world", "NAME", TOOL_CHOICE, &args.world, .choices = world_names,
     .help =
         "street (houses, trees, parked and moving cars, slopes, turns), utm (the same far from the origin, at "
         "389000 4970000 120), city (the street among others, squares, parks, yards, parking lots, suburbs and "
         "towers, all different; map.pcd is a folder of tiles), corridor or tunnel (weakly constrained along their "
         "axis), shelves, parking or terrace (an aisle of racks, a deck of parked cars, a street of equal houses: "
         "one "
         "step aside all looks the same); with --carrier handheld also hall (aisles, racks, booths, machines, "
         "offices, pillars, a gallery with stairs), office (a corridor, doors, rooms), dormitory (the same, and "
         "all "
         "rooms are alike but for one cabinet) or furnished (an office with pilasters, beams, pipes and much more "
         "furniture)"},
    {"extent", "M", TOOL_REAL, &args.extent_m, 200, 5000, .help = "edge of a city's map, 200 to 5000 m"},
    {"cut-out", "M", TOOL_REAL, &args.cut_out_m, 0, 1000,
     .help = "leave out of the map what is within M metres of the drive; 0: nothing"},
    {"twin", "M", TOOL_REAL, &args.twin_m, 0, 1000,
     .help = "copy what is within M metres of the drive to another place of the map, turned; 0: no copy"},
    {"changed", "P", TOOL_REAL, &args.changed, 0, 1,
     .help = "survey the map (with --drive-later: drive) on another day: that share of the loose things was moved, "
             "not there, or there as well, "
             "doors stood the other way, foliage was larger or smaller"},
    {"drive-later", NULL, TOOL_FLAG, &args.drive_later,
     .help = "drive on the other day of --changed, and survey the map before"},
    {"map-scans", "N", TOOL_COUNT, &args.map_scans, 0, 40000,
     .help = "make the map of the first N sweeps at their true poses; 0: of a survey"},
    {"mirror", NULL, TOOL_FLAG, &args.mirror, .help = "make the map the mirror image of the world"},
    {"carrier", "NAME", TOOL_CHOICE, &args.carrier, .choices = carrier_names,
     .help = "vehicle, or handheld: a person walks at 1.2 to 1.6 m/s, bobbing and tilting the sensor by up to 10 "
             "degrees, stands at the start and now and then, and looks around, turning by up to 60 degrees between "
             "scans at 2 Hz; other people walk around, also close by, and leave streaks in the map"},
    {"scans", "N", TOOL_COUNT, &args.scans, 1, 40000,
     .help = "number of sweeps, 1 to 40000: an hour at 10 Hz and some"},
    {"rate", "HZ", TOOL_REAL, &args.rate_hz, 0.2, 50,
     .help = "sweeps per second, 0.2 to 50 (default: 10, handheld 2); a handheld sweep takes 0.1 s at most"},
    {"gaps", "S", TOOL_REAL, &args.gap_s, 0, 60,
     .help = "leave gaps of up to S seconds between scans, at random moments; the carrier moves on"},
    {"beams", "N", TOOL_COUNT, &args.beams, 16, 128, .help = "16, 32, 64 or 128"},
    {"columns", "N", TOOL_COUNT, &args.columns, 36, 4096, .help = "firings per turn, 36 to 4096"},
    {"view", "DEG", TOOL_REAL, &args.view_deg, 10, 360,
     .help = "horizontal field of view, ahead, 10 to 360 degrees"},
    {"range", "M", TOOL_REAL, &args.range_m, 5, 200, .help = "largest range, 5 to 200 m"},
    {"stamp", "WHERE", TOOL_CHOICE, &args.stamp, .choices = stamp_names,
     .help = "where in its scan a stamp lies: begin, middle or end; points and their absolute times stay the same"},
    {"mount", "LIST", TOOL_REALS, &args.mount, -360, 360,
     .help =
         "pose of the sensor on the vehicle: x,y,z,roll,pitch,yaw in metres and degrees, or six numbers for each "
         "sensor (default: 0,0,0,0,0,0); the vehicle drives the same path"},
    {"sensors", "N", TOOL_COUNT, &args.sensors, 1, SIM_MAX_SENSORS,
     .help = "divide the turn among N sensors, 1 to 4: a sweep becomes N scans, frames lidar_0 to lidar_N-1, each "
             "stamped by its own part of the sweep"},
    {"noise", "M", TOOL_REAL, &args.noise_m, 0, 1, .help = "standard deviation of a range, 0 to 1 m"},
    {"dropout", "P", TOOL_REAL, &args.dropout, 0, 0.95, .help = "fraction of the returns that is lost, 0 to 0.95"},
    {"mark-movers", NULL, TOOL_FLAG, &args.mark_movers,
     .help = "returns of what moves (cars that drive, people) have the intensity -1"},
    {"map-spacing", "M", TOOL_REAL, &args.spacing_m, 0.05, 2,
     .help = "distance between points of the map, 0.05 to 2 m (default: 0.15, corridor 0.08, city 0.3)"},
    {"odometry", NULL, TOOL_FLAG, &args.odometry, .help = "add noisy odometry at 50 Hz"},
    {"wheel-scale", "F", TOOL_REAL, &args.wheel_scale, -10, 10,
     .help = "with --odometry: factor of the speeds that it tells; 0: wheels that stand still"},
    {"truth", "HZ", TOOL_REAL, &args.truth_hz, 0, 1000,
     .help = "add the exact truth HZ times per second, besides that of the scans; 0: none"},
    {"imu", "HZ", TOOL_REAL, &args.imu.rate_hz, 0, 1000, .help = "add an IMU with HZ samples per second; 0: none"},
    {"gyro-bias", "B", TOOL_REAL, &args.imu.gyro_bias_radps, 0, 1,
     .help = "constant bias of each axis of the gyroscope, of random sign, rad/s"},
    {"gyro-noise", "D", TOOL_REAL, &args.imu.gyro_noise, 0, 1, .help = "its noise density, rad/s/sqrt(Hz)"},
    {"accel-bias", "B", TOOL_REAL, &args.imu.accelerometer_bias_mps2, 0, 10,
     .help = "constant bias of each axis of the accelerometer, of random sign, m/s^2"},
    {"accel-noise", "D", TOOL_REAL, &args.imu.accelerometer_noise, 0, 10,
     .help = "its noise density, m/s^2/sqrt(Hz)"},
    TOOL_FORCE_OPTION(args.force),
};

static const struct tool_command command = {
    .name = "ndt-sim",
    .summary = "simulates a drive with a spinning LiDAR and exact ground truth",
    .details =
        "Writes DIR/map.pcd, a prior map surveyed independently of the drive, and DIR/drive.bag: an initial pose "
        "with twist, then the exact truth and the scan of every sweep. The same seed and options give the same "
        "bytes.\n\n"
        "A sweep is one clockwise turn that starts and ends behind the sensor. Points carry their time relative to "
        "the stamp, so that a replay can undo the motion.\n\n"
        "Truth, initial pose, odometry and IMU are those of the vehicle, which is where the sensor is without "
        "--mount. An IMU measures angular velocity and specific force (+9.81 m/s^2 on z at rest).",
    TOOL_OPTIONS(options),
    .run = run,
};

int main(int argc, char **argv)
{
    return tool_main(&command, argc, argv);
}
