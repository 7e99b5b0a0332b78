#include "sim_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ndt_io/bag.h"
#include "ndt_io/cloud_file.h"
#include "ndt_proto/message.h"

static const int64_t BEGIN_NS = INT64_C(1700000000) * 1000000000;
static const double ODOMETRY_HZ = 50.0;

/* Wheels and gyroscope: white noise, a wheel that is a little too large, a turn rate that is never quite zero. */
static const double WHEEL_NOISE_MPS = 0.03, WHEEL_SCALE = 1.006;
static const double GYRO_NOISE_RADPS = 0.002, GYRO_BIAS_RADPS = 0.0008;

/* A bag while it is written. */
struct recorder {
    struct sim_recording *recording;
    struct ndt_bag_writer *writer;
    struct ndt_frame frame;
    struct ndt_cloud cloud;
    struct sim_random random; /* of the odometry */
    struct ndt_pose T_odom_sensor;
    int64_t odometry_count;
};

int64_t sim_record_stamp_ns(const struct sim_recording *recording, int scan)
{
    return BEGIN_NS + llround((scan + 0.5) / recording->lidar->rate_hz * 1e9);
}

double sim_record_time_s(int64_t stamp_ns)
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

/* The truth at a stamp, in the map frame. */
static struct ndt_pose_message truth_at(const struct sim_recording *recording, int64_t stamp_ns)
{
    struct ndt_pose_message message = {.stamp_ns = stamp_ns, .frame_id = "map", .has_pose = 1, .has_twist = 1};
    const double t_s = sim_record_time_s(stamp_ns);
    message.pose = sim_drive_pose(recording->drive, t_s);
    message.twist = sim_drive_twist(recording->drive, t_s);
    for (int k = 0; k < 3; k++)
        message.pose.t_m[k] += recording->origin_m[k];
    return message;
}

/* One odometry message: the measured twist, and the pose that follows from all of them. */
static enum ndt_status write_odometry(struct recorder *recorder, int64_t stamp_ns, struct ndt_error *err)
{
    struct ndt_pose_message message = {.stamp_ns = stamp_ns, .frame_id = "odom", .has_pose = 1, .has_twist = 1};
    message.twist = sim_drive_twist(recorder->recording->drive, sim_record_time_s(stamp_ns));
    for (int k = 0; k < 3; k++) {
        message.twist.v_mps[k] *= WHEEL_SCALE;
        message.twist.v_mps[k] += WHEEL_NOISE_MPS * sim_random_normal(&recorder->random);
        message.twist.w_radps[k] += GYRO_BIAS_RADPS;
        message.twist.w_radps[k] += GYRO_NOISE_RADPS * sim_random_normal(&recorder->random);
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
    while (status == NDT_OK && recorder->recording->odometry) {
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
    const int64_t stamp_ns = sim_record_stamp_ns(recording, scan);
    const int64_t received_ns = stamp_ns + llround(0.5e9 / recording->lidar->rate_hz);
    const struct ndt_scan_message message = {(uint64_t)scan, stamp_ns, "lidar"};
    const struct ndt_pose_message truth = truth_at(recording, stamp_ns);
    enum ndt_status status = write_odometry_until(recorder, received_ns, err);
    if (status == NDT_OK)
        status = write_pose(recorder, NDT_MESSAGE_TRUTH, &truth, received_ns, err);
    if (status == NDT_OK)
        status = sim_lidar_sweep(recording->lidar, recording->drive, recording->caster, sim_record_time_s(stamp_ns),
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
    const struct ndt_pose_message start = truth_at(recording, sim_record_stamp_ns(recording, 0));
    enum ndt_status status = write_pose(recorder, NDT_MESSAGE_INITIAL_POSE, &start, BEGIN_NS, err);
    for (int scan = 0; scan < recording->scans && status == NDT_OK; scan++) {
        if (*recording->interrupted)
            return ndt_fail(err, NDT_ERR_IO, "interrupted; nothing is left behind");
        status = write_scan(recorder, scan, err);
    }
    return status;
}

static enum ndt_status write_bag(struct sim_recording *recording, const char *path, struct ndt_error *err)
{
    struct recorder recorder = {.recording = recording, .T_odom_sensor = ndt_pose_identity()};
    recorder.random = sim_random_stream(recording->lidar->seed, 10, 0);
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
    const double last_s = sim_record_time_s(sim_record_stamp_ns(recording, recording->scans - 1));
    /* In a tube the map has to reach as far as the sensor, or its ends pull at the scan. */
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

static enum ndt_status refuse_existing(const struct sim_recording *recording, const char *path,
                                       struct ndt_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return NDT_OK;
    if (!S_ISREG(info.st_mode))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: exists and is not a plain file", path);
    if (!recording->overwrite)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: exists already; --force overwrites it", path);
    return NDT_OK;
}

static enum ndt_status move(const char *from, const char *to, struct ndt_error *err)
{
    if (rename(from, to) == 0)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_IO, "%s: cannot be renamed to %s: %s", from, to, strerror(errno));
}

/* Both files are written beside their targets and moved when both are whole. */
enum ndt_status sim_record(struct sim_recording *recording, struct ndt_error *err)
{
    char map_part[4096], bag_part[4096];
    const int map_length = snprintf(map_part, sizeof(map_part), "%s.part", recording->map_path);
    const int bag_length = snprintf(bag_part, sizeof(bag_part), "%s.part", recording->bag_path);
    if (map_length >= (int)sizeof(map_part) || bag_length >= (int)sizeof(bag_part))
        return ndt_fail(err, NDT_ERR_LIMIT, "the path is longer than %zu bytes", sizeof(map_part) - 1);
    enum ndt_status status = refuse_existing(recording, recording->map_path, err);
    if (status == NDT_OK)
        status = refuse_existing(recording, recording->bag_path, err);
    if (status != NDT_OK)
        return status;
    unlink(bag_part); /* of a run that was killed */
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
