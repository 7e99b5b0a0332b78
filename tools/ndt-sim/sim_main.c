/** @file
 * @brief ndt-sim: simulates a drive with exact ground truth, and its map.
 *
 * DIR/map.pcd and DIR/drive.bag are written atomically: both or none. The bag holds, by receive time: an initial
 * pose with the twist of the first scan; odometry at 50 Hz with --odometry; for every scan the exact ground truth
 * at its stamp, then the scan, both with the receive time of the end of the sweep. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ndt_io/bag.h"
#include "ndt_io/cloud_file.h"
#include "ndt_proto/message.h"
#include "sim.h"
#include "tool_options.h"

enum sim_world_name { STREET, UTM, CORRIDOR, TUNNEL };
static const char *const world_names[] = {
    [STREET] = "street", [UTM] = "utm", [CORRIDOR] = "corridor", [TUNNEL] = "tunnel", NULL};

static struct {
    const char *out;
    uint64_t seed, scans, beams, columns;
    int world;
    double rate_hz, noise_m, dropout, spacing_m;
    int odometry, force;
} args = {.seed = 1,
          .scans = 150,
          .beams = 32,
          .columns = 1800,
          .rate_hz = 10,
          .noise_m = 0.02,
          .dropout = 0.03,
          .spacing_m = NAN};

/* ---- the recording ---- */

struct sim_recording {
    const char *map_path, *bag_path;
    const struct sim_drive *drive; /* borrowed, like caster and lidar */
    struct sim_caster *caster;
    const struct sim_lidar *lidar;
    struct sim_survey survey;
    double origin_m[3]; /* of the local frame in the map frame, added to everything */
    int scans;
    /* results */
    size_t map_points, scan_points;
};

static const int64_t BEGIN_NS = INT64_C(1700000000) * 1000000000;
static const double ODOMETRY_HZ = 50.0;

/* Errors of wheels and gyroscope: white noise, a scale of the wheels, a bias of the turn rate. */
static const double WHEEL_NOISE_MPS = 0.03, WHEEL_SCALE = 1.006;
static const double GYRO_NOISE_RADPS = 0.002, GYRO_BIAS_RADPS = 0.0008;

/* State of the bag that is being written. */
struct recorder {
    struct sim_recording *recording;
    struct ndt_bag_writer *writer;
    struct ndt_frame frame;
    struct ndt_cloud cloud;
    struct ndt_random random; /* of the odometry */
    struct ndt_pose T_odom_sensor;
    int64_t odometry_count;
};

/* Stamp of a scan; the first sweep begins at BEGIN_NS. */
static int64_t stamp_of(const struct sim_recording *recording, int scan)
{
    return BEGIN_NS + llround((scan + 0.5) / recording->lidar->rate_hz * 1e9);
}

/* Seconds since the begin of the first sweep, for the drive. */
static double time_of(int64_t stamp_ns)
{
    return (double)(stamp_ns - BEGIN_NS) * 1e-9;
}

static enum ndt_status write_frame(struct recorder *recorder, enum ndt_message_type type, int64_t receive_time_ns,
                                   struct ndt_error *err)
{
    const struct ndt_bag_record record = {(uint32_t)type, (uint32_t)recorder->frame.size, receive_time_ns,
                                          recorder->frame.data};
    return ndt_bag_write(recorder->writer, &record, err);
}

static enum ndt_status write_pose(struct recorder *recorder, enum ndt_message_type type,
                                  const struct ndt_pose_message *message, int64_t receive_time_ns,
                                  struct ndt_error *err)
{
    enum ndt_status status = ndt_pose_message_encode(&recorder->frame, type, message, err);
    return status == NDT_OK ? write_frame(recorder, type, receive_time_ns, err) : status;
}

/* The ground truth at a stamp, in the map frame. */
static struct ndt_pose_message truth_at(const struct sim_recording *recording, int64_t stamp_ns)
{
    struct ndt_pose_message message = {.stamp_ns = stamp_ns, .frame_id = "map", .has_pose = 1, .has_twist = 1};
    const double t_s = time_of(stamp_ns);
    message.pose = sim_drive_pose(recording->drive, t_s);
    message.twist = sim_drive_twist(recording->drive, t_s);
    for (int k = 0; k < 3; k++)
        message.pose.t_m[k] += recording->origin_m[k];
    return message;
}

/* One odometry message: the measured twist, and the pose integrated from all twists so far. */
static enum ndt_status write_odometry(struct recorder *recorder, int64_t stamp_ns, struct ndt_error *err)
{
    struct ndt_pose_message message = {.stamp_ns = stamp_ns, .frame_id = "odom", .has_pose = 1, .has_twist = 1};
    message.twist = sim_drive_twist(recorder->recording->drive, time_of(stamp_ns));
    for (int k = 0; k < 3; k++) {
        message.twist.v_mps[k] *= WHEEL_SCALE;
        message.twist.v_mps[k] += WHEEL_NOISE_MPS * ndt_random_normal(&recorder->random);
        message.twist.w_radps[k] += GYRO_BIAS_RADPS;
        message.twist.w_radps[k] += GYRO_NOISE_RADPS * ndt_random_normal(&recorder->random);
    }
    if (recorder->odometry_count > 0) {
        const struct ndt_pose step = ndt_pose_exp(&message.twist, 1.0 / ODOMETRY_HZ);
        recorder->T_odom_sensor = ndt_pose_compose(&recorder->T_odom_sensor, &step);
        ndt_pose_normalize(&recorder->T_odom_sensor);
    }
    message.pose = recorder->T_odom_sensor;
    recorder->odometry_count++;
    return write_pose(recorder, NDT_MESSAGE_ODOMETRY, &message, stamp_ns, err);
}

static enum ndt_status write_odometry_until(struct recorder *recorder, int64_t end_ns, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    while (status == NDT_OK && args.odometry) {
        const int64_t stamp_ns = BEGIN_NS + llround((double)recorder->odometry_count / ODOMETRY_HZ * 1e9);
        if (stamp_ns > end_ns)
            break;
        status = write_odometry(recorder, stamp_ns, err);
    }
    return status;
}

static enum ndt_status write_scan(struct recorder *recorder, int scan, struct ndt_error *err)
{
    struct sim_recording *recording = recorder->recording;
    const int64_t stamp_ns = stamp_of(recording, scan);
    const int64_t received_ns = stamp_ns + llround(0.5e9 / recording->lidar->rate_hz);
    const struct ndt_scan_message message = {(uint64_t)scan, stamp_ns, "lidar"};
    const struct ndt_pose_message truth = truth_at(recording, stamp_ns);
    enum ndt_status status = write_odometry_until(recorder, received_ns, err);
    if (status == NDT_OK)
        status = write_pose(recorder, NDT_MESSAGE_TRUTH, &truth, received_ns, err);
    if (status == NDT_OK)
        status = sim_lidar_sweep(recording->lidar, recording->drive, recording->caster, time_of(stamp_ns),
                                 (uint64_t)scan, &recorder->cloud, err);
    if (status == NDT_OK)
        status = ndt_scan_encode(&recorder->frame, &message, &recorder->cloud, err);
    if (status == NDT_OK)
        status = write_frame(recorder, NDT_MESSAGE_SCAN, received_ns, err);
    recording->scan_points += recorder->cloud.count;
    return status;
}

static enum ndt_status write_messages(struct recorder *recorder, struct ndt_error *err)
{
    struct sim_recording *recording = recorder->recording;
    const struct ndt_pose_message start = truth_at(recording, stamp_of(recording, 0));
    enum ndt_status status = write_pose(recorder, NDT_MESSAGE_INITIAL_POSE, &start, BEGIN_NS, err);
    for (int scan = 0; scan < recording->scans && status == NDT_OK; scan++) {
        if (tool_interrupted())
            return ndt_fail(err, NDT_ERR_IO, "interrupted; all files are removed");
        status = write_scan(recorder, scan, err);
    }
    return status;
}

static enum ndt_status write_bag(struct sim_recording *recording, const char *path, struct ndt_error *err)
{
    struct recorder recorder = {.recording = recording, .T_odom_sensor = ndt_pose_identity()};
    recorder.random = ndt_random_stream(recording->lidar->seed, 10, 0);
    enum ndt_status status = ndt_bag_create(&recorder.writer, path, 0, err);
    if (status != NDT_OK)
        return status;
    ndt_frame_init(&recorder.frame);
    ndt_cloud_init(&recorder.cloud);
    status = write_messages(&recorder, err);
    if (status == NDT_OK)
        status = ndt_bag_finish(recorder.writer, err);
    else
        ndt_bag_discard(recorder.writer);
    ndt_frame_free(&recorder.frame);
    ndt_cloud_free(&recorder.cloud);
    return status;
}

static enum ndt_status write_map(struct sim_recording *recording, const char *path, struct ndt_error *err)
{
    const struct sim_drive *drive = recording->drive;
    const double last_s = time_of(stamp_of(recording, recording->scans - 1));
    /* In a corridor or tunnel the map must reach as far as the sensor sees, or its ends bias the match. */
    const double margin_m = drive->course->place == SIM_STREET ? 30.0 : recording->lidar->max_range_m + 5.0;
    const double begin_m = sim_drive_length(drive, 0.0) - margin_m;
    double end_m = sim_drive_length(drive, last_s) + margin_m;
    if (end_m - begin_m > drive->course->length_m) /* more than one round */
        end_m = begin_m + drive->course->length_m;
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    enum ndt_status status =
        sim_survey_run(&recording->survey, drive, recording->caster, begin_m, end_m, &cloud, err);
    memcpy(cloud.origin_m, recording->origin_m, sizeof(cloud.origin_m));
    if (status == NDT_OK)
        status = ndt_pcd_write(&cloud, path, NDT_PCD_BINARY, err);
    recording->map_points = cloud.count;
    ndt_cloud_free(&cloud);
    return status;
}

static enum ndt_status refuse_existing(const char *path, struct ndt_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return NDT_OK;
    if (!S_ISREG(info.st_mode))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: exists and is not a plain file", path);
    if (!args.force)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: exists already; --force overwrites it", path);
    return NDT_OK;
}

static enum ndt_status move(const char *from, const char *to, struct ndt_error *err)
{
    if (rename(from, to) == 0)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_IO, "%s: cannot be renamed to %s: %s", from, to, strerror(errno));
}

/* Writes both files in the directory of their targets and renames them when both are complete. */
static enum ndt_status record_drive(struct sim_recording *recording, struct ndt_error *err)
{
    char map_part[4096], bag_part[4096];
    const int map_length = snprintf(map_part, sizeof(map_part), "%s.part", recording->map_path);
    const int bag_length = snprintf(bag_part, sizeof(bag_part), "%s.part", recording->bag_path);
    if (map_length >= (int)sizeof(map_part) || bag_length >= (int)sizeof(bag_part))
        return ndt_fail(err, NDT_ERR_LIMIT, "the path is longer than %zu bytes", sizeof(map_part) - 1);
    enum ndt_status status = refuse_existing(recording->map_path, err);
    if (status == NDT_OK)
        status = refuse_existing(recording->bag_path, err);
    if (status != NDT_OK)
        return status;
    unlink(bag_part); /* left over from a run that was killed */
    status = write_map(recording, map_part, err);
    if (status == NDT_OK)
        status = write_bag(recording, bag_part, err);
    if (status == NDT_OK)
        status = move(map_part, recording->map_path, err);
    if (status == NDT_OK)
        status = move(bag_part, recording->bag_path, err);
    if (status != NDT_OK) {
        unlink(map_part);
        unlink(bag_part);
    }
    return status;
}

/* ---- program ---- */

static void report(const struct sim_recording *recording)
{
    const struct sim_drive *drive = recording->drive;
    const double end_s = time_of(stamp_of(recording, recording->scans - 1));
    printf("%s: %zu points\n", recording->map_path, recording->map_points);
    printf("%s: %d scans of %s, %.1f m in %.1f s, %zu points per scan%s\n", recording->bag_path, recording->scans,
           world_names[args.world], sim_drive_length(drive, end_s) - sim_drive_length(drive, 0.0),
           recording->scans / args.rate_hz, recording->scan_points / (size_t)recording->scans,
           args.odometry ? ", with odometry" : "");
}

static enum ndt_status record(struct sim_drive *drive, struct sim_caster *caster, struct ndt_error *err)
{
    static const double utm_m[3] = {389000.0, 4970000.0, 120.0};
    char map_path[4000], bag_path[4000];
    const struct sim_lidar lidar = {.beams = (int)args.beams,
                                    .columns = (int)args.columns,
                                    .rate_hz = args.rate_hz,
                                    .min_range_m = 0.9,
                                    .max_range_m = 100.0,
                                    .noise_m = args.noise_m,
                                    .dropout = args.dropout,
                                    .seed = args.seed};
    struct sim_recording recording = {
        .map_path = map_path,
        .bag_path = bag_path,
        .drive = drive,
        .caster = caster,
        .lidar = &lidar,
        .survey = {.spacing_m = args.spacing_m, .noise_m = 0.01, .range_m = 100.0, .seed = args.seed},
        .scans = (int)args.scans};
    if (args.world == UTM)
        memcpy(recording.origin_m, utm_m, sizeof(utm_m));
    const int map_length = snprintf(map_path, sizeof(map_path), "%s/map.pcd", args.out);
    const int bag_length = snprintf(bag_path, sizeof(bag_path), "%s/drive.bag", args.out);
    if (map_length >= (int)sizeof(map_path) || bag_length >= (int)sizeof(bag_path))
        return ndt_fail(err, NDT_ERR_LIMIT, "--out: the path is longer than %zu bytes", sizeof(map_path) - 12);
    const enum ndt_status status = record_drive(&recording, err);
    if (status == NDT_OK)
        report(&recording);
    return status;
}

static enum ndt_status simulate(struct ndt_error *err)
{
    const enum sim_place place = args.world == CORRIDOR ? SIM_CORRIDOR
                                 : args.world == TUNNEL ? SIM_TUNNEL
                                                        : SIM_STREET;
    const double duration_s = (double)args.scans / args.rate_hz;
    struct sim_course course;
    struct sim_world world;
    struct sim_drive drive = {0};
    struct sim_caster caster = {0};
    sim_world_init(&world);
    sim_course_init(&course, place, args.seed);
    sim_scene_ground(&world.ground, place, args.seed);
    enum ndt_status status = sim_drive_open(&drive, &course, &world.ground, duration_s, args.seed, err);
    if (status == NDT_OK) {
        sim_scene_build(&world, &course, sim_drive_length(&drive, duration_s), args.seed);
        status = sim_world_finish(&world, err);
    }
    if (status == NDT_OK)
        status = sim_caster_open(&caster, &world, err);
    if (status == NDT_OK)
        status = record(&drive, &caster, err);
    sim_caster_close(&caster);
    sim_drive_close(&drive);
    sim_world_free(&world);
    return status;
}

static enum ndt_status check_args(struct ndt_error *err)
{
    double elevation_rad[SIM_MAX_BEAMS];
    const double duration_s = (double)args.scans / args.rate_hz;
    if (!sim_lidar_elevations((int)args.beams, elevation_rad))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--beams: no LiDAR has %d beams; 16, 32 and 64 are known",
                        (int)args.beams);
    if (duration_s > 600.0 && (args.world == CORRIDOR || args.world == TUNNEL))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--scans: a %s is built for drives of up to 600 s, not %.0f s",
                        world_names[args.world], duration_s);
    if (isnan(args.spacing_m))
        args.spacing_m = args.world == CORRIDOR ? 0.08 : 0.15;
    return NDT_OK;
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
     .help = "street (houses, trees, parked and moving cars, slopes, turns), utm (the same far from the origin, at "
             "389000 4970000 120), corridor or tunnel (weakly constrained along their axis)"},
    {"scans", "N", TOOL_COUNT, &args.scans, 1, 20000, .help = "number of scans, 1 to 20000"},
    {"rate", "HZ", TOOL_REAL, &args.rate_hz, 1, 50, .help = "sweeps per second, 1 to 50"},
    {"beams", "N", TOOL_COUNT, &args.beams, 16, 64, .help = "16, 32 or 64"},
    {"columns", "N", TOOL_COUNT, &args.columns, 36, 4096, .help = "firings per sweep, 36 to 4096"},
    {"noise", "M", TOOL_REAL, &args.noise_m, 0, 1, .help = "standard deviation of a range, 0 to 1 m"},
    {"dropout", "P", TOOL_REAL, &args.dropout, 0, 0.95, .help = "fraction of the returns that is lost, 0 to 0.95"},
    {"map-spacing", "M", TOOL_REAL, &args.spacing_m, 0.05, 2,
     .help = "distance between points of the map, 0.05 to 2 m (default: 0.15, corridor 0.08)"},
    {"odometry", NULL, TOOL_FLAG, &args.odometry, .help = "add noisy odometry at 50 Hz"},
    {"force", NULL, TOOL_FLAG, &args.force, .help = "overwrite files of an earlier run"},
};

static const struct tool_command command = {
    .name = "ndt-sim",
    .summary = "simulates a drive with a spinning LiDAR and exact ground truth",
    .details =
        "Writes DIR/map.pcd, a prior map surveyed independently of the drive, and DIR/drive.bag: an initial pose "
        "with twist, then the exact truth and the scan of every sweep. The same seed and options give the same "
        "bytes.\n\n"
        "A sweep is one clockwise turn that starts and ends behind the sensor; its stamp is its middle. Points "
        "carry "
        "their time relative to the stamp, so that a replay can undo the motion with preprocess.deskew=time.",
    TOOL_OPTIONS(options),
    .run = run,
};

int main(int argc, char **argv)
{
    return tool_main(&command, argc, argv);
}
