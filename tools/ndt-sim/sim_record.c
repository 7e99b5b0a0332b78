#include "sim_record.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ndt_io/bag.h"
#include "ndt_io/cloud_file.h"
#include "ndt_proto/message.h"
#include "output_guard.h"
#include "sim_tiles.h"
#include "tool_options.h"

static const int64_t BEGIN_NS = INT64_C(1700000000) * 1000000000; /* begin of the first sweep */

/* State of the bag that is being written. */
struct recorder {
    struct sim_recording *recording;
    struct ndt_bag_writer *writer;
    struct ndt_buffer frame;
    struct ndt_cloud cloud;
    struct sim_odometer odometer;
    uint64_t imu_count, truth_count;
};

static int64_t middle_of(const struct sim_recording *recording, int sweep)
{
    return BEGIN_NS + llround((sweep + 0.5) / recording->scan_hz * 1e9 + 1e9 * recording->late_s[sweep]);
}

/* A place in the part of a sweep that one sensor sees, 0 = begin and 1 = end, after the middle of the sweep [us].
 */
static double place_us(const struct sim_recording *recording, int sensor, double place)
{
    return ((sensor + place) / recording->lidar->sensors - 0.5) * 1e6 / recording->lidar->rate_hz;
}

/* Whole microseconds: scans that differ in the place of their stamps have the same points at the same times. */
static int64_t stamp_after_middle_ns(const struct sim_recording *recording, int sensor)
{
    static const double places[] = {[SIM_STAMP_BEGIN] = 0.0, [SIM_STAMP_MIDDLE] = 0.5, [SIM_STAMP_END] = 1.0};
    return llround(place_us(recording, sensor, places[recording->stamp])) * 1000;
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

static int64_t sample_ns(uint64_t index, double rate_hz)
{
    return rate_hz > 0 ? BEGIN_NS + llround((double)index / rate_hz * 1e9) : INT64_MAX;
}

static enum ndt_status write_odometry(struct recorder *recorder, int64_t stamp_ns, struct ndt_error *err)
{
    struct ndt_pose_message message = {.stamp_ns = stamp_ns, .frame_id = "odom", .has_pose = 1, .has_twist = 1};
    message.twist = sim_odometer_measure(&recorder->odometer, recorder->recording->drive, time_of(stamp_ns));
    message.pose = recorder->odometer.T_odom_base;
    return write_pose(recorder, NDT_MESSAGE_ODOMETRY, &message, stamp_ns, err);
}

/* Returns 1 if the covariance is known: that of exact values is not. */
static int set_covariance(double covariance[9], double noise, double rate_hz)
{
    for (int i = 0; i < 9; i += 4)
        covariance[i] = noise * noise * rate_hz;
    return noise > 0;
}

static enum ndt_status write_imu(struct recorder *recorder, int64_t stamp_ns, struct ndt_error *err)
{
    const struct sim_imu *imu = &recorder->recording->imu;
    const struct sim_imu_sample sample =
        sim_imu_measure(imu, recorder->recording->drive, recorder->imu_count++, time_of(stamp_ns));
    struct ndt_imu_message message = {.stamp_ns = stamp_ns, .frame_id = "imu", .has_acceleration = 1};
    memcpy(message.angular_velocity_radps, sample.angular_velocity_radps, sizeof(sample.angular_velocity_radps));
    memcpy(message.linear_acceleration_mps2, sample.force_mps2, sizeof(sample.force_mps2));
    message.has_angular_velocity_covariance =
        set_covariance(message.angular_velocity_covariance, imu->gyro_noise, imu->rate_hz);
    message.has_linear_acceleration_covariance =
        set_covariance(message.linear_acceleration_covariance, imu->accelerometer_noise, imu->rate_hz);
    const enum ndt_status status = ndt_imu_encode(&recorder->frame, &message, err);
    return status == NDT_OK ? write_frame(recorder, NDT_MESSAGE_IMU, stamp_ns, err) : status;
}

/* The truth between scans. */
static enum ndt_status write_truth(struct recorder *recorder, int64_t stamp_ns, struct ndt_error *err)
{
    const struct ndt_pose_message truth = truth_at(recorder->recording, stamp_ns);
    recorder->truth_count++;
    return write_pose(recorder, NDT_MESSAGE_TRUTH, &truth, stamp_ns, err);
}

/* Odometry, IMU and truth, in the order of their stamps. */
static enum ndt_status write_motion_until(struct recorder *recorder, int64_t end_ns, struct ndt_error *err)
{
    for (;;) {
        const int64_t odometry_ns = sample_ns(recorder->odometer.count, recorder->odometer.rate_hz);
        const int64_t imu_ns = sample_ns(recorder->imu_count, recorder->recording->imu.rate_hz);
        const int64_t truth_ns = sample_ns(recorder->truth_count, recorder->recording->truth_hz);
        enum ndt_status status = NDT_OK;
        if (odometry_ns > end_ns && imu_ns > end_ns && truth_ns > end_ns)
            return NDT_OK;
        if (truth_ns < odometry_ns && truth_ns < imu_ns)
            status = write_truth(recorder, truth_ns, err);
        else
            status = odometry_ns <= imu_ns ? write_odometry(recorder, odometry_ns, err)
                                           : write_imu(recorder, imu_ns, err);
        if (status != NDT_OK)
            return status;
    }
}

/* Writes one sensor's share of a sweep. */
static enum ndt_status write_scan(struct recorder *recorder, int sweep, int sensor, struct ndt_random *random,
                                  struct ndt_error *err)
{
    struct sim_recording *recording = recorder->recording;
    const struct sim_lidar *lidar = recording->lidar;
    const int64_t middle_ns = middle_of(recording, sweep), after_ns = stamp_after_middle_ns(recording, sensor);
    const int64_t received_ns = middle_ns + llround(place_us(recording, sensor, 1.0) * 1e3);
    const struct sim_part part = {sensor, time_of(middle_ns), (double)after_ns * 1e-9};
    struct ndt_scan_message message = {.seq = (uint64_t)sweep * (uint64_t)lidar->sensors + (uint64_t)sensor,
                                       .stamp_ns = middle_ns + after_ns,
                                       .frame_id = "lidar"};
    const struct ndt_pose_message truth = truth_at(recording, message.stamp_ns);
    if (lidar->sensors > 1)
        snprintf(message.frame_id, sizeof(message.frame_id), "lidar_%d", sensor);
    enum ndt_status status = write_motion_until(recorder, received_ns, err);
    if (status == NDT_OK)
        status = write_pose(recorder, NDT_MESSAGE_TRUTH, &truth, received_ns, err);
    if (status == NDT_OK)
        status = sim_lidar_scan(lidar, recording->drive, recording->caster, &part, random, &recorder->cloud, err);
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
    const struct ndt_pose_message start = truth_at(recording, middle_of(recording, 0));
    enum ndt_status status = write_pose(recorder, NDT_MESSAGE_INITIAL_POSE, &start, BEGIN_NS, err);
    for (int sweep = 0; sweep < recording->sweeps && status == NDT_OK; sweep++) {
        struct ndt_random random = sim_lidar_random(recording->lidar, (uint64_t)sweep);
        if (tool_interrupted())
            return ndt_fail(err, NDT_ERR_IO, "interrupted; all files are removed");
        for (int sensor = 0; sensor < recording->lidar->sensors && status == NDT_OK; sensor++)
            status = write_scan(recorder, sweep, sensor, &random, err);
    }
    return status;
}

static enum ndt_status write_bag(struct sim_recording *recording, const char *path, struct ndt_error *err)
{
    struct recorder recorder = {.recording = recording};
    sim_odometer_init(&recorder.odometer, recording->odometry_hz, recording->wheel_scale, recording->lidar->seed);
    enum ndt_status status = ndt_bag_create(&recorder.writer, path, 0, err);
    if (status != NDT_OK)
        return status;
    ndt_buffer_init(&recorder.frame);
    ndt_cloud_init(&recorder.cloud);
    status = write_messages(&recorder, err);
    if (status == NDT_OK)
        status = ndt_bag_finish(recorder.writer, err);
    else
        ndt_bag_discard(recorder.writer);
    ndt_buffer_free(&recorder.frame);
    ndt_cloud_free(&recorder.cloud);
    return status;
}

/* The points of a scan, each from where its sensor was at its time. */
static enum ndt_status add_scan(const struct sim_recording *recording, const struct sim_part *part,
                                const struct ndt_cloud *scan, struct ndt_cloud *map, struct ndt_error *err)
{
    const struct sim_mount *mount = &recording->lidar->mounts[part->sensor];
    const enum ndt_status status = ndt_cloud_reserve(map, map->count + scan->count, NDT_CLOUD_INTENSITY, err);
    for (size_t i = 0; status == NDT_OK && i < scan->count; i++) {
        const double p[3] = {(double)scan->x_m[i], (double)scan->y_m[i], (double)scan->z_m[i]};
        double R[9], t_m[3], q[3], at[3];
        sim_drive_frame(recording->drive, part->middle_s + part->stamp_s + (double)scan->time_s[i], R, t_m);
        for (int k = 0; k < 3; k++)
            q[k] = mount->t_m[k] + mount->R[3 * k] * p[0] + mount->R[3 * k + 1] * p[1] + mount->R[3 * k + 2] * p[2];
        for (int k = 0; k < 3; k++)
            at[k] = t_m[k] + R[3 * k] * q[0] + R[3 * k + 1] * q[1] + R[3 * k + 2] * q[2];
        map->x_m[map->count] = (float)at[0];
        map->y_m[map->count] = (float)at[1];
        map->z_m[map->count] = (float)at[2];
        map->intensity[map->count++] = scan->intensity[i];
    }
    return status;
}

/* Other sweeps than those of the bag, at the same places. */
static enum ndt_status add_sweeps(const struct sim_recording *recording, struct ndt_cloud *map,
                                  struct ndt_error *err)
{
    struct sim_lidar lidar = *recording->lidar;
    struct ndt_cloud scan;
    enum ndt_status status = NDT_OK;
    lidar.seed++;
    ndt_cloud_init(&scan);
    for (int sweep = 0; sweep < recording->map_sweeps && sweep < recording->sweeps; sweep++) {
        struct ndt_random random = sim_lidar_random(&lidar, (uint64_t)sweep);
        for (int sensor = 0; status == NDT_OK && sensor < lidar.sensors; sensor++) {
            const struct sim_part part = {sensor, time_of(middle_of(recording, sweep)), 0.0};
            status = sim_lidar_scan(&lidar, recording->drive, recording->surveyed, &part, &random, &scan, err);
            if (status == NDT_OK)
                status = add_scan(recording, &part, &scan, map, err);
        }
    }
    ndt_cloud_free(&scan);
    return status;
}

/* Points on what the survey sees. */
static enum ndt_status write_survey(struct sim_recording *recording, const char *path, double end_s,
                                    struct ndt_error *err)
{
    const struct sim_drive *drive = recording->drive;
    /* The map of a corridor or tunnel must reach as far as the sensor sees, or its ends bias the match. */
    const double margin_m = drive->course->place == SIM_STREET ? 30.0 : recording->lidar->max_range_m + 5.0;
    const double begin_m = sim_drive_length(drive, 0.0) - margin_m;
    double end_m = sim_drive_length(drive, end_s) + margin_m;
    if (end_m - begin_m > drive->course->length_m) /* more than one round */
        end_m = begin_m + drive->course->length_m;
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    enum ndt_status status =
        recording->map_sweeps > 0
            ? add_sweeps(recording, &cloud, err)
            : sim_survey_run(&recording->survey, drive, recording->surveyed, begin_m, end_m, &cloud, err);
    if (status == NDT_OK)
        status = sim_change_apply(&recording->change, &cloud, err);
    memcpy(cloud.origin_m, recording->origin_m, sizeof(cloud.origin_m));
    if (status == NDT_OK)
        status = ndt_pcd_write(&cloud, path, NDT_PCD_BINARY, err);
    recording->map_points = cloud.count;
    ndt_cloud_free(&cloud);
    return status;
}

static enum ndt_status write_tiles(struct sim_recording *recording, const char *path, struct ndt_error *err)
{
    const struct sim_survey *survey = &recording->survey;
    struct sim_tiles tiles = {.sampler = {recording->city, survey->spacing_m, survey->noise_m, survey->seed},
                              .change = &recording->change,
                              .caster = recording->surveyed};
    const enum ndt_status status = sim_tiles_write(&tiles, path, err);
    recording->map_points = tiles.points;
    return status;
}

static enum ndt_status write_map(struct sim_recording *recording, const char *path, struct ndt_error *err)
{
    const struct sim_drive *drive = recording->drive;
    const double end_s = time_of(middle_of(recording, recording->sweeps - 1));
    recording->length_m = sim_drive_length(drive, end_s) - sim_drive_length(drive, 0.0);
    enum ndt_status status =
        sim_change_open(&recording->change, drive, end_s, recording->city, recording->survey.seed, err);
    if (status == NDT_OK)
        status = recording->city ? write_tiles(recording, path, err) : write_survey(recording, path, end_s, err);
    sim_change_close(&recording->change);
    return status;
}

static enum ndt_status move(const char *from, const char *to, struct ndt_error *err)
{
    if (rename(from, to) == 0)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_IO, "%s: cannot be renamed to %s: %s", from, to, strerror(errno));
}

/* Writes both files in the directory of their targets and renames them when both are complete. */
enum ndt_status sim_record(struct sim_recording *recording, struct ndt_error *err)
{
    char map_part[4096], bag_part[4096];
    const int map_length = snprintf(map_part, sizeof(map_part), "%s.part", recording->map_path);
    const int bag_length = snprintf(bag_part, sizeof(bag_part), "%s.part", recording->bag_path);
    if (map_length >= (int)sizeof(map_part) || bag_length >= (int)sizeof(bag_part))
        return ndt_fail(err, NDT_ERR_LIMIT, "the path is longer than %zu bytes", sizeof(map_part) - 1);
    enum ndt_status status = tool_output_check(
        recording->map_path, recording->city ? TOOL_OUTPUT_FOLDER : TOOL_OUTPUT_FILE, recording->overwrite, err);
    if (status == NDT_OK)
        status = tool_output_check(recording->bag_path, TOOL_OUTPUT_FILE, recording->overwrite, err);
    if (status != NDT_OK)
        return status;
    unlink(bag_part); /* left over from a run that was killed */
    if (recording->city)
        status = sim_tiles_remove(map_part, err);
    if (status == NDT_OK)
        status = write_map(recording, map_part, err);
    if (status == NDT_OK)
        status = write_bag(recording, bag_part, err);
    if (status == NDT_OK && recording->city)
        status = sim_tiles_remove(recording->map_path, err);
    if (status == NDT_OK)
        status = move(map_part, recording->map_path, err);
    if (status == NDT_OK)
        status = move(bag_part, recording->bag_path, err);
    if (status != NDT_OK) {
        struct ndt_error ignored;
        if (!recording->city || sim_tiles_remove(map_part, &ignored) != NDT_OK)
            unlink(map_part);
        unlink(bag_part);
    }
    return status;
}
