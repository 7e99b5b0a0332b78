/* A storm of messages: sequences of messages that decode, or nearly, with numbers that are not expected, mixed with
 * good scans of a street. Drives a pipeline as receiver and worker do, and checks after every frame what must
 * always hold. The choices come from a seed or from bytes (a fuzzer's), so that a failure can be repeated.
 *
 *     struct storm storm;
 *     struct storm_choices choices = storm_choices_seeded(1);          // or storm_choices_from(data, size)
 *     const char *failure = storm_open(&storm, 0);
 *     while (!failure && storm_has_choices(&choices))
 *         failure = storm_step(&storm, &choices);
 *     if (!failure)
 *         failure = storm_recovers(&storm, 1, 10);
 *     storm_close(&storm);
 *
 * Functions return NULL, or what was violated, in storm.failure. One storm, one thread. Without Check: for
 * libFuzzer too. Needs ndt_daemon and street_world.c. */
#ifndef MESSAGE_STORM_H
#define MESSAGE_STORM_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/random.h"
#include "ndt_proto/message.h"
#include "ndtd/options.h"
#include "ndtd/pipeline.h"
#include "ndtd/scan_result.h"
#include "ndtd/scan_state.h"
#include "street_world.h"

#define STORM_UNUSED __attribute__((unused)) static

enum { STORM_SCANS = 32, STORM_SCAN_POINTS = 1500, STORM_MAP_POINTS = 60000, STORM_VARIANTS = 5 };
#define STORM_STEP_NS  INT64_C(100000000)
#define STORM_BEGIN_NS INT64_C(1700000000000000000)

/* ---- choices ---- */

struct storm_choices {
    const uint8_t *data; /* NULL: drawn from `random` */
    size_t size, at;
    struct ndt_random random;
    uint64_t left; /* numbers that may still be drawn from `random` */
};

STORM_UNUSED struct storm_choices storm_choices_seeded(uint64_t seed, uint64_t most)
{
    return (struct storm_choices){.random = {seed}, .left = most};
}

STORM_UNUSED struct storm_choices storm_choices_from(const uint8_t *data, size_t size)
{
    static const uint8_t none[1];
    return (struct storm_choices){.data = data ? data : none, .size = size};
}

STORM_UNUSED int storm_has_choices(const struct storm_choices *choices)
{
    return choices->data ? choices->at < choices->size : choices->left > 0;
}

/* 0 .. count - 1 with count <= 256; 0 when there are no more choices. */
static uint32_t storm_pick(struct storm_choices *choices, uint32_t count)
{
    if (choices->data)
        return choices->at < choices->size ? choices->data[choices->at++] % count : 0;
    choices->left -= choices->left > 0;
    return (uint32_t)(ndt_random_next(&choices->random) >> 32) % count;
}

static const double storm_numbers[] = {
    0,
    -0.0,
    1,
    -1,
    1e-300,
    5e-324,
    1e300,
    -1e300,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    0.1,
    -0.5,
    3.14,
    1e3,
    -1e3,
    999.9,
    1e2,
    -99.9,
    1e8,
    -1e8,
    1e9,
    1e4,
    1e12,
    1e6,
    1e-12,
    10,
    -25,
    300,
    4096,
    2e9,
    -3e9,
    1e19,
    NAN,
};

/* Small, or one of the numbers above. */
static double storm_number(struct storm_choices *choices)
{
    const uint32_t pick = storm_pick(choices, 64);
    const size_t count = sizeof(storm_numbers) / sizeof(storm_numbers[0]);
    return pick < count ? storm_numbers[pick] : 0.05 * ((double)storm_pick(choices, 41) - 20);
}

static int64_t storm_stamp(struct storm_choices *choices, int64_t now_ns)
{
    static const int64_t year_ns = INT64_C(31556952000000000);
    switch (storm_pick(choices, 16)) {
    case 0:
        return INT64_MAX;
    case 1:
        return INT64_MIN;
    case 2:
        return storm_pick(choices, 2) ? INT64_C(4600000000000000000) : -INT64_C(4600000000000000000);
    case 3:
        return now_ns - 30 * year_ns;
    case 4:
        return now_ns + 30 * year_ns;
    case 5:
        return 0;
    case 6:
        return now_ns - 1;
    case 7:
        return now_ns + 900000000;
    case 8:
        return now_ns - 5000000000;
    case 9:
        return now_ns - 20000000;
    default:
        return now_ns;
    }
}

/* ---- msgpack by hand: the encoders of the schema refuse what decoders have to survive ---- */

struct storm_bytes {
    uint8_t *data;
    size_t size, capacity;
};

static void storm_put(struct storm_bytes *out, const void *bytes, size_t count)
{
    if (out->size + count > out->capacity) {
        out->capacity = 2 * (out->size + count);
        uint8_t *grown = realloc(out->data, out->capacity);
        if (!grown)
            abort();
        out->data = grown;
    }
    if (count > 0)
        memcpy(out->data + out->size, bytes, count);
    out->size += count;
}

static void storm_put_big_endian(struct storm_bytes *out, uint8_t tag, uint64_t value, unsigned bytes)
{
    uint8_t item[9] = {tag};
    for (unsigned i = 0; i < bytes; i++)
        item[1 + i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
    storm_put(out, item, 1 + bytes);
}

static void storm_put_text(struct storm_bytes *out, const char *text)
{
    storm_put_big_endian(out, 0xd9, strlen(text), 1);
    storm_put(out, text, strlen(text));
}

static void storm_put_int(struct storm_bytes *out, int64_t value)
{
    storm_put_big_endian(out, 0xd3, (uint64_t)value, 8);
}

static void storm_put_real(struct storm_bytes *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    storm_put_big_endian(out, 0xcb, bits, 8);
}

static void storm_put_reals(struct storm_bytes *out, const char *key, const double *values, size_t count)
{
    storm_put_text(out, key);
    storm_put_big_endian(out, 0xdc, count, 2);
    for (size_t i = 0; i < count; i++)
        storm_put_real(out, values[i]);
}

static void storm_begin(struct storm_bytes *out, size_t pairs, const char *type, int64_t stamp_ns,
                        const char *frame)
{
    out->size = 0;
    storm_put_big_endian(out, 0xde, pairs, 2);
    storm_put_text(out, "v");
    storm_put_int(out, 1);
    storm_put_text(out, "type");
    storm_put_text(out, type);
    storm_put_text(out, "stamp_ns");
    storm_put_int(out, stamp_ns);
    storm_put_text(out, "frame_id");
    storm_put_text(out, frame);
}

/* ---- the storm ---- */

struct storm_counts {
    uint64_t frames, refused, scans, good_scans, tracked, failures;
};

struct storm {
    struct ndtd_settings settings;
    struct ndt_map *map;
    struct ndtd_pipeline *pipeline;
    struct ndt_buffer scans[STORM_SCANS]; /* encoded; seq and stamp are put in */
    struct ndt_pose truth[STORM_SCANS];
    struct ndt_cloud clouds[STORM_SCANS];
    struct ndt_cloud hostile; /* room for the points of a hostile scan */
    struct ndt_buffer encoded, answer;
    struct storm_bytes bytes;
    struct storm_counts counts;
    struct ndtd_scan_record last; /* record of the last scan that reached the pipeline */
    int64_t now_ns;
    uint64_t seq;
    size_t at;         /* the next good scan */
    double odometry_m; /* distance of the odometry so far */
    struct ndt_error err;
    char failure[400];
};

static const char *storm_fail(struct storm *storm, const char *what, const char *detail)
{
    snprintf(storm->failure, sizeof(storm->failure), "frame %llu: %s: %.300s",
             (unsigned long long)storm->counts.frames, what, detail);
    return storm->failure;
}

/* Pose that moves to and fro along the street, 1 m to each side, once in STORM_SCANS. */
static struct ndt_pose storm_pose(size_t i)
{
    const double phase = 6.283185307179586 * (double)(i % STORM_SCANS) / STORM_SCANS;
    return (struct ndt_pose){.t_m = {50 + sin(phase), 0.3, 1.8}, .q_xyzw = {0, 0, 0, 1}};
}

static enum ndt_status storm_make_world(struct storm *storm, struct ndt_error *err)
{
    const struct world world = {WORLD_STREET, 5, 100, 0.02};
    struct ndt_cloud points;
    ndt_cloud_init(&points);
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; i < STORM_SCANS && status == NDT_OK; i++) {
        storm->truth[i] = storm_pose(i);
        status = world_scan(&storm->clouds[i], &world, 100 + i, STORM_SCAN_POINTS, &storm->truth[i], 40, err);
    }
    if (status == NDT_OK)
        status = world_map(&points, &world, STORM_MAP_POINTS, (double[3]){0, 0, 0}, err);
    if (status == NDT_OK)
        status = ndt_map_from_cloud(&storm->map, &storm->settings.map, &points, err);
    ndt_cloud_free(&points);
    return status;
}

/* Sets options that differ from the defaults: without searches a storm of hundreds of scans takes a second. 0:
 * nothing else; 1: GNSS in the alignment; 2: times of points and two passes; 3: with searches, a tenth as fast; 4:
 * also with odometry beyond the edge of the map. */
static enum ndt_status storm_set(struct storm *storm, int variant, struct ndt_error *err)
{
    static const char *const options[STORM_VARIANTS][8] = {
        {"recovery.enable", "false"},
        {"recovery.enable", "false", "ndt.regularization.enable", "true"},
        {"recovery.enable", "false", "preprocess.deskew", "time", "preprocess.deskew_passes", "2"},
        {"recovery.enable", "true"},
        {"recovery.enable", "true", "map.extend", "true"}};
    ndtd_settings_default(&storm->settings);
    enum ndt_status status = ndtd_option_set_text(&storm->settings, "cpu.threads", "1", err);
    if (status == NDT_OK)
        status = ndtd_option_set_text(&storm->settings, "preprocess.sample_count", "300", err);
    for (int i = 0; i < 8 && status == NDT_OK && options[variant][i]; i += 2)
        status = ndtd_option_set_text(&storm->settings, options[variant][i], options[variant][i + 1], err);
    strcpy(storm->settings.backend, "cpu");
    return status == NDT_OK ? ndtd_settings_finish(&storm->settings, err) : status;
}

STORM_UNUSED void storm_close(struct storm *storm)
{
    ndtd_pipeline_destroy(storm->pipeline);
    ndt_map_release(storm->map);
    for (size_t i = 0; i < STORM_SCANS; i++)
        ndt_cloud_free(&storm->clouds[i]);
    ndt_cloud_free(&storm->hostile);
    ndt_buffer_free(&storm->encoded);
    ndt_buffer_free(&storm->answer);
    free(storm->bytes.data);
    storm->bytes = (struct storm_bytes){0};
    storm->pipeline = NULL;
    storm->map = NULL;
}

/* Begins with a new pipeline; the world stays. */
STORM_UNUSED const char *storm_restart(struct storm *storm)
{
    const struct ndtd_settings_snapshot *snapshot = NULL;
    ndtd_pipeline_destroy(storm->pipeline);
    storm->pipeline = NULL;
    storm->counts = (struct storm_counts){0};
    storm->now_ns = STORM_BEGIN_NS;
    storm->seq = storm->at = 0;
    storm->odometry_m = 0;
    enum ndt_status status = ndtd_settings_snapshot_create(&snapshot, &storm->settings, &storm->err);
    if (status == NDT_OK)
        status = ndtd_pipeline_create(&storm->pipeline, snapshot, storm->map, 0, &storm->err);
    ndtd_settings_snapshot_release(snapshot);
    return status == NDT_OK ? NULL : storm_fail(storm, "no pipeline", storm->err.text);
}

STORM_UNUSED const char *storm_open(struct storm *storm, int variant)
{
    memset(storm, 0, sizeof(*storm));
    enum ndt_status status = storm_set(storm, variant % STORM_VARIANTS, &storm->err);
    if (status == NDT_OK)
        status = storm_make_world(storm, &storm->err);
    return status == NDT_OK ? storm_restart(storm) : storm_fail(storm, "no world", storm->err.text);
}

/* ---- what must always hold ---- */

static int storm_is_finite(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return 0;
    return 1;
}

/* A result can be sent, holds finite numbers, and says why it has no pose. */
static const char *storm_check_result(struct storm *storm, const struct ndtd_scan_record *record)
{
    struct ndt_result_message message, read;
    ndtd_scan_result(record, &message);
    if (ndt_result_encode(&storm->answer, &message, &storm->err) != NDT_OK)
        return storm_fail(storm, "a result cannot be encoded", storm->err.text);
    if (ndt_result_decode(storm->answer.data, storm->answer.size, &read, &storm->err) != NDT_OK)
        return storm_fail(storm, "a result cannot be decoded", storm->err.text);
    if (read.seq != record->seq || read.stamp_ns != record->stamp_ns)
        return storm_fail(storm, "a result is that of another scan", "");
    if (read.result.outcome != NDT_CONVERGED && !*read.result.reason)
        return storm_fail(storm, "an outcome without a reason", ndt_outcome_name(read.result.outcome));
    if (!storm_is_finite(read.result.T_map_sensor.t_m, 7) || !storm_is_finite(read.result.covariance, 36) ||
        !storm_is_finite(read.twist.v_mps, 6) || !storm_is_finite(read.T_map_guess.t_m, 7))
        return storm_fail(storm, "a result is not finite", "");
    if ((read.result.outcome == NDT_LOST || read.result.outcome == NDT_OFF_MAP) &&
        ndtd_state_is_trusted(read.state))
        return storm_fail(storm, "the pose is lost and the state trusts it", ndt_state_name(read.state));
    return NULL;
}

static const char *storm_check_estimate(struct storm *storm)
{
    const struct ndt_track *track = ndtd_pipeline_track(storm->pipeline);
    const struct ndt_track_state *state = &track->state;
    if (!storm_is_finite(state->T_map_base.t_m, 7) || !storm_is_finite(state->twist.v_mps, 6) ||
        !storm_is_finite(state->P, NDT_TRACK_STATES * NDT_TRACK_STATES) || !storm_is_finite(state->bias_radps, 3) ||
        !isfinite(state->scale) || !isfinite(state->process_noise_scale))
        return storm_fail(storm, "the estimate is not finite", "");
    for (int i = 0; i < 3; i++)
        if (fabs(state->T_map_base.t_m[i]) > 1e9)
            return storm_fail(storm, "the estimate is not on Earth", "");
    return NULL;
}

/* ---- feeding ---- */

/* A scan that is refused before it reaches the pipeline is answered where it can be identified. */
static const char *storm_refuse(struct storm *storm, const uint8_t *data, size_t size)
{
    struct ndt_scan_message message;
    storm->counts.refused++;
    if (ndt_scan_identify(data, size, &message, &storm->err) != NDT_OK)
        return NULL;
    struct ndtd_scan_record record = {
        .seq = message.seq, .stamp_ns = message.stamp_ns, .confidence = NAN, .margin = NAN};
    record.result.outcome = NDT_REJECTED;
    strcpy(record.result.reason, "refused");
    return storm_check_result(storm, &record);
}

/* Feeds any bytes, as receiver and worker do. */
STORM_UNUSED const char *storm_feed(struct storm *storm, const uint8_t *data, size_t size)
{
    struct ndtd_message frame = {.data = data, .size = size};
    struct ndtd_scan_record record;
    storm->counts.frames++;
    if (ndt_message_peek(data, size, &frame.type, &storm->err) != NDT_OK) {
        storm->counts.refused++;
        return NULL;
    }
    const int is_scan = frame.type == NDT_MESSAGE_SCAN;
    if (is_scan && ndt_scan_header_decode(data, size, &frame.scan, &storm->err) != NDT_OK)
        return storm_refuse(storm, data, size);
    const enum ndt_status status = ndtd_pipeline_process(storm->pipeline, &frame, &record, &storm->err);
    storm->counts.refused += status != NDT_OK;
    if (status == NDT_ERR_MEMORY || status == NDT_ERR_DEVICE)
        return storm_fail(storm, "no further scan can be computed", storm->err.text);
    if (is_scan && status == NDT_OK) {
        const char *failure = storm_check_result(storm, &record);
        if (failure)
            return failure;
        storm->counts.scans++;
        storm->last = record;
    }
    return storm_check_estimate(storm);
}

/* The next scan of the drive, as a sensor sends it. */
STORM_UNUSED const char *storm_good_scan(struct storm *storm)
{
    const size_t i = storm->at++ % STORM_SCANS;
    struct ndt_scan_message message = {.seq = storm->seq++, .stamp_ns = storm->now_ns};
    struct ndt_cloud timed = storm->clouds[i];
    strcpy(message.frame_id, "lidar");
    storm->now_ns += STORM_STEP_NS;
    storm->counts.good_scans++;
    if (storm->settings.preprocess.deskew == NDT_DESKEW_TIME) { /* all points at the stamp */
        static float zeros[STORM_SCAN_POINTS + 64];
        timed.time_s = zeros;
    }
    if (ndt_scan_encode(&storm->encoded, &message, &timed, &storm->err) != NDT_OK)
        return storm_fail(storm, "a good scan cannot be encoded", storm->err.text);
    const char *failure = storm_feed(storm, storm->encoded.data, storm->encoded.size);
    if (!failure && storm->last.seq != message.seq)
        failure = storm_fail(storm, "a good scan was refused", storm->err.text);
    storm->counts.tracked += storm->last.state == NDT_STATE_TRACKING;
    return failure;
}

/* The initial pose of the next good scan. */
STORM_UNUSED const char *storm_good_pose(struct storm *storm)
{
    const struct ndt_pose_message start = {
        .stamp_ns = storm->now_ns, .frame_id = "map", .has_pose = 1, .pose = storm->truth[storm->at % STORM_SCANS]};
    if (ndt_pose_message_encode(&storm->encoded, NDT_MESSAGE_INITIAL_POSE, &start, &storm->err) != NDT_OK)
        return storm_fail(storm, "a good pose cannot be encoded", storm->err.text);
    return storm_feed(storm, storm->encoded.data, storm->encoded.size);
}

/* ---- hostile messages ---- */

static void storm_pose_numbers(struct storm_choices *choices, struct storm *storm, double pose[7])
{
    const struct ndt_pose *truth = &storm->truth[storm->at % STORM_SCANS];
    memcpy(pose, truth->t_m, 3 * sizeof(double));
    memcpy(pose + 3, truth->q_xyzw, 4 * sizeof(double));
    for (int i = 0; i < 3; i++)
        if (storm_pick(choices, 3) == 0)
            pose[i] = storm_number(choices);
    if (storm_pick(choices, 4) == 0) {
        const double half = 0.1 * storm_pick(choices, 63);
        pose[5] = sin(half);
        pose[6] = cos(half);
    }
    if (storm_pick(choices, 16) == 0)
        pose[3 + storm_pick(choices, 4)] = storm_number(choices);
}

static void storm_make_pose(struct storm_choices *choices, struct storm *storm)
{
    static const char *const types[] = {"initial_pose", "odometry", "odometry", "odometry", "truth"};
    struct storm_bytes *out = &storm->bytes;
    const char *type = types[storm_pick(choices, 5)];
    const uint32_t parts = 1 + storm_pick(choices, 7);
    double pose[7], twist[6], covariance[36] = {0};
    storm_begin(out, 4 + (parts & 1) + (parts >> 1 & 1) + (parts >> 2 & 1), type,
                storm_stamp(choices, storm->now_ns), *type == 'o' ? "odom" : "map");
    if (parts & 1) {
        storm_pose_numbers(choices, storm, pose);
        storm_put_reals(out, "pose", pose, 7);
    }
    if (parts & 2) {
        for (int i = 0; i < 6; i++)
            twist[i] = storm_pick(choices, 3) ? 0 : storm_number(choices);
        storm_put_reals(out, "twist", twist, 6);
    }
    if (parts & 4) {
        for (int i = 0; i < 6; i++)
            covariance[7 * i] = storm_pick(choices, 3) ? 0.1 : storm_number(choices);
        covariance[storm_pick(choices, 36)] = storm_pick(choices, 3) ? 0.01 : storm_number(choices);
        storm_put_reals(out, "covariance", covariance, 36);
    }
}

static void storm_make_gnss(struct storm_choices *choices, struct storm *storm)
{
    double position[3], deviation[3];
    const int has_deviation = storm_pick(choices, 4) != 0;
    storm_begin(&storm->bytes, has_deviation ? 6 : 5, "gnss", storm_stamp(choices, storm->now_ns), "map");
    for (int i = 0; i < 3; i++) {
        position[i] = storm_pick(choices, 2) ? storm->truth[storm->at % STORM_SCANS].t_m[i] : storm_number(choices);
        deviation[i] = storm_pick(choices, 2) ? 1 : storm_number(choices);
    }
    storm_put_reals(&storm->bytes, "position", position, 3);
    if (has_deviation)
        storm_put_reals(&storm->bytes, "deviation", deviation, 3);
}

static void storm_make_imu(struct storm_choices *choices, struct storm *storm)
{
    double rate[3], acceleration[3];
    const int has_acceleration = storm_pick(choices, 2) != 0;
    storm_begin(&storm->bytes, has_acceleration ? 6 : 5, "imu", storm_stamp(choices, storm->now_ns), "imu");
    for (int i = 0; i < 3; i++) {
        rate[i] = storm_pick(choices, 2) ? 0 : storm_number(choices);
        acceleration[i] = storm_pick(choices, 2) ? 9.81 * (i == 2) : storm_number(choices);
    }
    storm_put_reals(&storm->bytes, "angular_velocity", rate, 3);
    if (has_acceleration)
        storm_put_reals(&storm->bytes, "linear_acceleration", acceleration, 3);
}

static void storm_put_field(struct storm_bytes *out, const char *name, uint32_t offset, uint32_t datatype)
{
    storm_put_big_endian(out, 0xdc, 4, 2);
    storm_put_text(out, name);
    storm_put_int(out, offset);
    storm_put_int(out, datatype);
    storm_put_int(out, 1);
}

/* A scan of float64 x y z, intensity and time with points that are not what they should be. */
static void storm_make_scan(struct storm_choices *choices, struct storm *storm)
{
    static const char *const frames[] = {"lidar", "", "another", "a/b.c-d", "%s%n"};
    static const size_t counts[] = {0, 1, 2, 3, 17, 256, 257, STORM_SCAN_POINTS};
    struct storm_bytes *out = &storm->bytes;
    const struct ndt_cloud *cloud = &storm->clouds[storm->at % STORM_SCANS];
    const size_t count = counts[storm_pick(choices, 8)], step = 40;
    const uint32_t spoilt = storm_pick(choices, 6), every = 1 + storm_pick(choices, 7);
    const double with = storm_number(choices), time = storm_number(choices);
    const uint32_t odd = storm_pick(choices, 24);
    storm_begin(out, 9 + (odd == 0), "scan", storm_stamp(choices, storm->now_ns), frames[storm_pick(choices, 5)]);
    storm_put_text(out, "seq");
    storm_put_big_endian(out, 0xcf, odd == 1 ? UINT64_MAX : storm->seq++, 8);
    storm_put_text(out, "count");
    storm_put_int(out, (int64_t)count + (odd == 2));
    storm_put_text(out, "point_step");
    storm_put_int(out, (int64_t)step - (odd == 3));
    storm_put_text(out, "fields");
    storm_put_big_endian(out, 0xdc, 5, 2);
    storm_put_field(out, "x", 0, 8);
    storm_put_field(out, odd == 4 ? "x" : "y", 8, 8);
    storm_put_field(out, "z", 16, 8);
    storm_put_field(out, "intensity", 24, 8);
    storm_put_field(out, "t", odd == 5 ? UINT32_MAX : 32, odd == 6 ? 6 : 8);
    if (odd == 0) {
        storm_put_text(out, "seq");
        storm_put_int(out, 7);
    }
    storm_put_text(out, "data");
    storm_put_big_endian(out, 0xc6, count * step, 4);
    for (size_t i = 0; i < count; i++) {
        double record[5] = {(double)cloud->x_m[i], (double)cloud->y_m[i], (double)cloud->z_m[i], 1, 0};
        if (spoilt < 5 && i % every == 0)
            record[spoilt] = spoilt == 4 ? time : with;
        storm_put(out, record, sizeof(record));
    }
}

/* Odometry that goes on, or begins anew at zero. */
static void storm_make_odometry(struct storm_choices *choices, struct storm *storm)
{
    double pose[7] = {0, 0, 0, 0, 0, 0, 1};
    storm->odometry_m = storm_pick(choices, 8) ? storm->odometry_m + 0.1 : 0;
    if (storm_pick(choices, 16) == 0)
        storm->odometry_m += 300;
    pose[0] = storm->odometry_m;
    storm_begin(&storm->bytes, 5, "odometry", storm->now_ns, "odom");
    storm_put_reals(&storm->bytes, "pose", pose, 7);
}

/* Makes one message of the storm, which may be a good one. */
STORM_UNUSED const char *storm_step(struct storm *storm, struct storm_choices *choices)
{
    switch (storm_pick(choices, 12)) {
    case 0:
    case 1:
    case 2:
        return storm_good_scan(storm);
    case 3:
        if (storm_pick(choices, 4) == 0)
            return storm_good_pose(storm);
        storm_make_odometry(choices, storm);
        break;
    case 4:
    case 5:
        storm_make_scan(choices, storm);
        break;
    case 6:
        storm_make_gnss(choices, storm);
        break;
    case 7:
        storm_make_imu(choices, storm);
        break;
    default:
        storm_make_pose(choices, storm);
    }
    if (storm_pick(choices, 32) == 0) /* a byte is wrong */
        storm->bytes.data[storm_pick(choices, 64) % storm->bytes.size] ^= (uint8_t)(1u << storm_pick(choices, 8));
    return storm_feed(storm, storm->bytes.data, storm->bytes.size);
}

/* Whether the state is tracking, near the true pose, after at most `most` good scans; with_pose: after a good
 * initial pose. */
STORM_UNUSED const char *storm_recovers(struct storm *storm, int with_pose, int most)
{
    char detail[160];
    storm->now_ns += 30 * STORM_STEP_NS; /* a wrong position is used for a second */
    const char *failure = with_pose ? storm_good_pose(storm) : NULL;
    for (int i = 0; !failure && i < most; i++) {
        const struct ndt_pose *truth = &storm->truth[storm->at % STORM_SCANS];
        failure = storm_good_scan(storm);
        if (!failure && storm->last.state == NDT_STATE_TRACKING && storm->last.result.outcome == NDT_CONVERGED &&
            ndt_pose_distance_m(&storm->last.result.T_map_sensor, truth) < 0.3)
            return NULL;
    }
    if (failure)
        return failure;
    snprintf(detail, sizeof(detail), "%s, state %s at %.6g %.6g %.6g m: %.80s",
             ndt_outcome_name(storm->last.result.outcome), ndt_state_name(storm->last.state),
             storm->last.result.T_map_sensor.t_m[0], storm->last.result.T_map_sensor.t_m[1],
             storm->last.result.T_map_sensor.t_m[2], storm->last.result.reason);
    return storm_fail(storm, "good scans are not localised again", detail);
}

#endif
