/* Protection levels: what parts of a scan tell, estimates without them, and the levels that follow. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "integrity.h"
#include "ndt/align.h"
#include "ndt/part_observer.h"
#include "pipeline_state.h"
#include "run_tests.h"
#include "street_drive.h"

enum { LATERAL, LONGITUDINAL, VERTICAL, HEADING, OCTANTS = 8 };
static const struct world STREET = {WORLD_STREET, 5, 120, 0.02};

static void setup(void)
{
    street_drive_make();
    strcpy(drive.settings.backend, "cpu");
    street_drive_set("preprocess.deskew", "off"); /* the points are of one moment */
    drive.settings.integrity_risk = 1e-5;
}

FIXTURE(setup, street_drive_free)

/* ---- parts of a scan ---- */

static uint8_t octant_by_angle(float x, float y)
{
    const double turn = atan2((double)y, (double)x) / (M_PI / 4);
    return (uint8_t)floor(turn < 0 ? turn + OCTANTS : turn);
}

static uint8_t *octants(const struct ndt_cloud *scan)
{
    uint8_t *part_of = malloc(scan->count);
    for (size_t i = 0; i < scan->count; i++)
        part_of[i] = octant_by_angle(scan->x_m[i], scan->y_m[i]);
    return part_of;
}

static void align_scan(const struct ndt_cloud *scan, const struct ndt_pose *guess, struct ndt_align_result *result)
{
    struct ndt_backend_config config;
    struct ndt_align_params params;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    ndt_backend_config_default(&config);
    ndt_align_params_default(&params);
    config.threads = 1;
    params.wants_observation = 1;
    params.fine_stop_m = params.fine_stop_rad = params.fine_stop_gain = 1e-9;
    params.max_iterations = 200;
    must(ndt_cpu_backend.open(&backend, &config, &err));
    must(ndt_aligner_create(&aligner, backend, &err));
    must(ndt_aligner_set_map(aligner, drive.map, &err));
    must(ndt_align(aligner, &params, scan, guess, result, &err));
    ndt_aligner_destroy(aligner);
    backend->ops->close(backend);
}

static void observe(const struct ndt_cloud *scan, const uint8_t *part_of, const struct ndt_pose *T_map_sensor,
                    struct ndt_observation out[OCTANTS])
{
    const struct ndt_parts parts = {.scan = scan,
                                    .part_of = part_of,
                                    .count = OCTANTS,
                                    .T_map_sensor = *T_map_sensor,
                                    .leaf_m = 1,
                                    .neighbours = NDT_RADIUS};
    struct ndt_part_observer *observer;
    must(ndt_part_observer_create(&observer, NULL, &err));
    ck_assert_int_eq(ndt_part_observer_observe(observer, &parts, out, &err), NDT_ERR_ARGUMENT); /* no map yet */
    ndt_part_observer_set_map(observer, drive.map);
    must(ndt_part_observer_observe(observer, &parts, out, &err));
    ndt_part_observer_destroy(observer);
}

/* A scan of the street whose left wall is `moved_m` farther away than in the map. */
static void make_scan(double moved_m, struct ndt_cloud *scan)
{
    const struct ndt_pose pose = street_drive_pose(0);
    ndt_cloud_init(scan);
    must(world_scan(scan, &STREET, 77, 3000, &pose, 40, &err));
    for (size_t i = 0; i < scan->count; i++) {
        const uint8_t octant = octant_by_angle(scan->x_m[i], scan->y_m[i]);
        if ((octant == 1 || octant == 2) && scan->y_m[i] > 3)
            scan->y_m[i] += (float)moved_m;
    }
}

TEST(parts_add_up_to_the_whole)
{
    struct ndt_observation parts[OCTANTS], sum = {.gradient = {0}};
    struct ndt_align_result result;
    struct ndt_cloud scan;
    const struct ndt_pose guess = street_drive_pose(0);
    make_scan(0, &scan);
    align_scan(&scan, &guess, &result);
    uint8_t *part_of = octants(&scan);
    observe(&scan, part_of, &result.T_map_sensor, parts);
    for (int k = 0; k < OCTANTS; k++)
        ndt_observation_add(&sum, 1, &parts[k]);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            const double whole = result.observation.curvature[6 * i + j],
                         size = sqrt(result.observation.curvature[7 * i] * result.observation.curvature[7 * j]);
            ck_assert_double_le(fabs(sum.curvature[6 * i + j] - whole), 1e-4 * size);
        }
    free(part_of);
    ndt_cloud_free(&scan);
}

/* Removes the points of two octants from a scan. */
static void leave_out(const struct ndt_cloud *scan, const uint8_t *part_of, int first, struct ndt_cloud *out)
{
    ndt_cloud_init(out);
    must(ndt_cloud_copy(out, scan, &err));
    out->count = 0;
    for (size_t i = 0; i < scan->count; i++) {
        if (part_of[i] == first || part_of[i] == (first + 1) % OCTANTS)
            continue;
        out->x_m[out->count] = scan->x_m[i];
        out->y_m[out->count] = scan->y_m[i];
        out->z_m[out->count] = scan->z_m[i];
        out->count++;
    }
}

/* The step without a window, from one evaluation, is where an alignment without those points goes. */
TEST(a_window_left_out_moves_the_pose_as_an_alignment_without_it)
{
    struct ndt_observation parts[OCTANTS];
    struct ndt_observation_noise noise;
    struct ndt_align_result whole, without;
    struct ndt_cloud scan, rest;
    const struct ndt_pose guess = street_drive_pose(0);
    ndt_observation_noise_default(&noise);
    make_scan(0.1, &scan);
    align_scan(&scan, &guess, &whole);
    uint8_t *part_of = octants(&scan);
    observe(&scan, part_of, &whole.T_map_sensor, parts);
    for (int first = 0; first < OCTANTS; first++) {
        struct ndt_observation sum = {.gradient = {0}};
        struct ndt_weighed_observation weighed;
        for (int k = 0; k < OCTANTS; k++)
            if (k != first && k != (first + 1) % OCTANTS)
                ndt_observation_add(&sum, 1, &parts[k]);
        ndt_observation_weigh(&sum, &noise, &weighed);
        leave_out(&scan, part_of, first, &rest);
        align_scan(&rest, &whole.T_map_sensor, &without);
        const struct ndt_pose moved = ndt_pose_between(&whole.T_map_sensor, &without.T_map_sensor);
        const struct ndt_twist step = ndt_pose_log(&moved, 1);
        for (int i = 0; i < 3; i++) {
            ck_assert_double_le(fabs(weighed.step[i] - step.v_mps[i]), 0.002 + 0.3 * fabs(step.v_mps[i]));
            ck_assert_double_le(fabs(weighed.step[3 + i] - step.w_radps[i]), 2e-4 + 0.3 * fabs(step.w_radps[i]));
        }
        if (first == 1) /* the wall at fault, without which the pose is right again */
            ck_assert_double_le(ndt_pose_distance_m(&without.T_map_sensor, &guess), 0.02);
        ndt_cloud_free(&rest);
    }
    free(part_of);
    ndt_cloud_free(&scan);
}

/* ---- levels ---- */

static int has_odometry;

/* Odometry without an error, and an initial pose that is known to 1 cm. */
static void feed_odometry(struct ndtd_pipeline *pipeline, size_t i)
{
    struct ndt_buffer encoded;
    struct ndt_pose_message message = {.stamp_ns = DRIVE_START_NS + DRIVE_STEP_NS * (int64_t)i,
                                       .frame_id = "odom",
                                       .has_pose = 1,
                                       .pose = drive.truth[i],
                                       .has_twist = 1,
                                       .twist = {{8, 0, 0}, {0, 0, 0.05}},
                                       .has_covariance = i == 0};
    ndt_buffer_init(&encoded);
    for (int k = 0; k < 6; k++)
        message.covariance[7 * k] = 1e-4;
    if (i == 0) {
        must(ndt_pose_message_encode(&encoded, NDT_MESSAGE_INITIAL_POSE, &message, &err));
        (void)street_drive_feed(pipeline, NDT_MESSAGE_INITIAL_POSE, &encoded);
    }
    message.has_covariance = 0;
    must(ndt_pose_message_encode(&encoded, NDT_MESSAGE_ODOMETRY, &message, &err));
    (void)street_drive_feed(pipeline, NDT_MESSAGE_ODOMETRY, &encoded);
    ndt_buffer_free(&encoded);
}

/* Runs the drive; left: what is to the left is that much farther away. Returns the last record. */
static struct ndtd_scan_record run_drive(const struct world *world, double left_m, struct ndt_pose poses[])
{
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    struct ndtd_scan_record record;
    struct ndt_buffer encoded;
    struct ndt_cloud cloud;
    ndt_buffer_init(&encoded);
    ndt_cloud_init(&cloud);
    (void)street_drive_feed(pipeline, NDT_MESSAGE_INITIAL_POSE, &drive.start);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        const struct ndt_scan_message message = {
            .seq = i, .stamp_ns = DRIVE_START_NS + DRIVE_STEP_NS * (int64_t)i, .frame_id = "lidar"};
        must(world_scan(&cloud, world, 100 + i, 6000, &drive.truth[i], 40, &err));
        for (size_t k = 0; k < cloud.count; k++) {
            const uint8_t octant = octant_by_angle(cloud.x_m[k], cloud.y_m[k]);
            if ((octant == 1 || octant == 2) && cloud.y_m[k] > 3)
                cloud.y_m[k] += (float)left_m;
        }
        must(ndt_scan_encode(&encoded, &message, &cloud, &err));
        if (has_odometry)
            feed_odometry(pipeline, i);
        record = street_drive_feed(pipeline, NDT_MESSAGE_SCAN, &encoded);
        poses[i] = record.result.T_map_sensor;
    }
    ndtd_pipeline_destroy(pipeline);
    ndt_cloud_free(&cloud);
    ndt_buffer_free(&encoded);
    return record;
}

TEST(levels_bound_the_errors_and_change_no_pose)
{
    struct ndt_pose with[DRIVE_SCANS], again[DRIVE_SCANS], off[DRIVE_SCANS];
    const struct ndtd_scan_record record = run_drive(&STREET, 0, with);
    const struct ndt_pose error = ndt_pose_between(&with[DRIVE_SCANS - 1], &drive.truth[DRIVE_SCANS - 1]);
    ck_assert(record.has_protection && !record.protection.is_unsafe);
    ck_assert_str_eq(record.protection.reason, "");
    ck_assert_double_lt(fabs(error.t_m[1]), record.protection.level[LATERAL]);
    ck_assert_double_lt(fabs(error.t_m[0]), record.protection.level[LONGITUDINAL]);
    ck_assert_double_lt(fabs(error.t_m[2]), record.protection.level[VERTICAL]);
    ck_assert_double_lt(ndt_pose_angle_rad(&with[DRIVE_SCANS - 1], &drive.truth[DRIVE_SCANS - 1]),
                        record.protection.level[HEADING]);
    for (int k = 0; k < 4; k++)
        ck_assert_double_lt(record.protection.level[k], 1);
    drive.settings.compute.threads = 3;
    const struct ndtd_scan_record other = run_drive(&STREET, 0, again);
    ck_assert_mem_eq(other.protection.level, record.protection.level, sizeof(record.protection.level));
    drive.settings.integrity_risk = 0;
    ck_assert(!run_drive(&STREET, 0, off).has_protection);
    ck_assert_mem_eq(with, off, sizeof(with));
}

TEST(a_wall_that_has_moved_widens_the_level_and_is_told)
{
    struct ndt_pose poses[DRIVE_SCANS];
    const struct ndtd_scan_record right = run_drive(&STREET, 0, poses);
    drive.settings.alert_limit_m = 0.15;
    const struct ndtd_scan_record moved = run_drive(&STREET, 0.06, poses);
    const struct ndt_pose error = ndt_pose_between(&poses[DRIVE_SCANS - 1], &drive.truth[DRIVE_SCANS - 1]);
    ck_assert_double_gt(moved.protection.level[LATERAL], 2 * right.protection.level[LATERAL]);
    ck_assert_double_gt(moved.protection.level[LATERAL], fabs(error.t_m[1]));
    ck_assert(moved.protection.is_unsafe);
    ck_assert_msg(strstr(moved.protection.reason, "limit 0.15 m; without azimuth ") != NULL, "%s",
                  moved.protection.reason);
    ck_assert_int_eq(moved.state, NDT_STATE_TRACKING);
}

/* Odometry holds the pose along a corridor, which no scan confirms: the level along it is that of the motion. */
TEST(along_a_corridor_the_level_is_large)
{
    const struct world corridor = {WORLD_CORRIDOR, 4, 120, 0.02};
    struct ndt_pose poses[DRIVE_SCANS];
    struct ndt_cloud points;
    ndt_cloud_init(&points);
    must(world_map(&points, &corridor, 60000, (double[3]){0, 0, 0}, &err));
    ndt_map_release(drive.map);
    must(ndt_map_from_cloud(&drive.map, &drive.settings.map, &points, &err));
    ndt_cloud_free(&points);
    drive.settings.alert_limit_m = 0.5;
    has_odometry = 1;
    const struct ndtd_scan_record record = run_drive(&corridor, 0, poses);
    has_odometry = 0;
    ck_assert_int_eq(record.state, NDT_STATE_TRACKING);
    ck_assert_double_gt(record.protection.level[LONGITUDINAL], 0.5);
    ck_assert_double_gt(record.protection.level[LONGITUDINAL], 5 * record.protection.level[LATERAL]);
    ck_assert(record.protection.is_unsafe && isfinite(record.protection.level[LONGITUDINAL]));
    ck_assert_str_ne(record.protection.reason, "");
}

TEST(a_pose_without_a_scan_has_no_level)
{
    const struct ndt_cloud nothing = {.count = 0};
    const struct ndt_scan_message message = {.seq = 1, .stamp_ns = DRIVE_START_NS, .frame_id = "lidar"};
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    struct ndt_buffer encoded;
    ndt_buffer_init(&encoded);
    must(ndt_scan_encode(&encoded, &message, &nothing, &err));
    (void)street_drive_feed(pipeline, NDT_MESSAGE_INITIAL_POSE, &drive.start);
    const struct ndtd_scan_record record = street_drive_feed(pipeline, NDT_MESSAGE_SCAN, &encoded);
    ck_assert(record.has_protection && isinf(record.protection.level[LATERAL]));
    ck_assert_str_ne(record.protection.reason, "");
    ndtd_pipeline_destroy(pipeline);
    ndt_buffer_free(&encoded);
}

/* A scan whose deadline has passed does not inform the estimates, which are predicted: levels grow, and stay. */
TEST(without_time_the_level_grows)
{
    struct ndtd_alignment alignment = {.is_updated = 1};
    struct ndtd_pipeline *pipeline = street_drive_pipeline(drive.map);
    struct ndtd_scan_record record, late;
    (void)street_drive_feed(pipeline, NDT_MESSAGE_INITIAL_POSE, &drive.start);
    for (size_t i = 0; i < DRIVE_SCANS; i++)
        record = late = street_drive_feed(pipeline, NDT_MESSAGE_SCAN, &drive.scans[i]);
    ck_assert_str_eq(record.protection.reason, "");
    alignment.result.has_observation = 1;
    ck_assert(
        ndt_track_predict(&pipeline->track, pipeline->track.state.stamp_ns + DRIVE_STEP_NS, &alignment.predicted));
    alignment.updated = alignment.predicted;
    ndtd_pipeline_set_deadline(pipeline, 1);
    ndtd_integrity_follow(pipeline->integrity, pipeline, &alignment, &late);
    for (int k = 0; k < 4; k++) {
        ck_assert_double_gt(late.protection.level[k], record.protection.level[k]);
        ck_assert(isfinite(late.protection.level[k]));
    }
    ndtd_pipeline_destroy(pipeline);
}

TEST(the_factor_is_the_quantile_of_students_t)
{
    ck_assert_double_eq_tol(ndtd_integrity_factor(0.05), 2.306004,
                            1e-6); /* tables: 8 degrees of freedom, two-sided */
    ck_assert_double_eq_tol(ndtd_integrity_factor(0.001), 5.041305, 1e-6);
    ck_assert_double_gt(ndtd_integrity_factor(1e-5), 2 * 4.417); /* a Gaussian's quantile */
    ck_assert_double_gt(ndtd_integrity_factor(1e-9), ndtd_integrity_factor(1e-7));
    ck_assert_double_eq_tol(ndtd_integrity_factor(1e-24), 2405.204361, 1e-5); /* the same formula with 120 digits */
}
